use std::io::Write as _;
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::*;

fn contigs() -> Contigs {
    Contigs::new([("chr1".to_owned(), 250_000_000), ("HLA*01:02".to_owned(), 3000), ("2".to_owned(), 9)])
}

fn round_trip(line: &str) -> String {
    let contigs = contigs();
    let (mut bytes, mut text) = (b"before".to_vec(), b"before".to_vec());
    parse_sam_line(line.as_bytes(), &contigs, &mut bytes).unwrap();
    write_sam_line(&bytes[6..], &contigs, &mut text).unwrap();
    assert!(text.starts_with(b"before") && text.ends_with(b"\n"));
    String::from_utf8(text[6..text.len() - 1].to_vec()).unwrap()
}

/// Lines of every kind that the engines write, and some more.
const LINES: &[&str] = &[
    "r1\t99\tchr1\t100\t60\t4M\t=\t200\t104\tACGT\tIIII\tNM:i:0\tAS:i:8\tms:i:8\tmd:i:-8\tMC:Z:4M\tMQ:i:60",
    "r1\t147\tchr1\t200\t60\t1S2M1I3D1H\t=\t100\t-104\tACGT\t!~#5\tRG:Z:lane one\tSA:Z:chr1,5,-,3S4M,7,0;",
    "odd\t0\tHLA*01:02\t1\t255\t5=\t*\t0\t0\t=NRYK\t*",
    "none\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*",
    "at_mate\t133\t2\t9\t0\t*\t=\t9\t0\tA\t#\tYT:Z:",
    "far\t65\tchr1\t249999999\t0\t2M\tHLA*01:02\t17\t0\tMS\tAA\tXX:A:!\tXF:f:1.5\tXG:f:1e-12\tXH:H:1AE3",
    "arrays\t16\tchr1\t16384\t1\t3M2N1P4X\t2\t1\t-2147483648\tACGTWHB\t*\tB0:B:c,-128,127\tB1:B:C,0,255\
     \tB2:B:s,-32768\tB3:B:S,65535\tB4:B:i,-2147483648\tB5:B:I,4294967295\tB6:B:f,0.25,-3\tB7:B:I",
    "ints\t0\tchr1\t1\t0\t1M\t*\t0\t0\tA\t!\tA0:i:255\tA1:i:256\tA2:i:65535\tA3:i:65536\tA4:i:4294967295\tA5:i:-1\
     \tA6:i:-128\tA7:i:-129\tA8:i:-32768\tA9:i:-32769\tB0:i:-2147483648",
];

#[test]
fn lines_come_back() {
    for line in LINES {
        assert_eq!(round_trip(line), *line);
    }
}

#[test]
fn what_bam_cannot_hold_becomes_what_it_can() {
    let with = |seq: &str| format!("r\t4\t*\t0\t0\t*\t*\t0\t0\t{seq}\t*");
    assert_eq!(round_trip(&with("acgtnUu.-Zr")), with("ACGTNTTNNNR"));
    assert_eq!(round_trip("r\t4\t*\t0\t0\t*\t*\t0\t0\t\t*"), with("*"), "no bases at all");
    assert_eq!(round_trip("\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*\r\n"), "*\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*");
}

#[test]
fn a_long_cigar_goes_through_its_tag() {
    for operations in [MAX_CIGAR_OPS, MAX_CIGAR_OPS + 1] {
        let cigar: String = (0..operations).map(|i| if i % 2 == 0 { "1M" } else { "1D" }).collect();
        let seq = "A".repeat(operations.div_ceil(2));
        let line = format!("r\t0\tchr1\t7\t0\t{cigar}\t*\t0\t0\t{seq}\t*\tNM:i:3\tAS:i:1");
        assert_eq!(round_trip(&line), line);
        let mut bytes = Vec::new();
        parse_sam_line(line.as_bytes(), &contigs(), &mut bytes).unwrap();
        let own = usize::from(u16::from_le_bytes([bytes[16], bytes[17]]));
        assert_eq!(own, if operations > MAX_CIGAR_OPS { 2 } else { operations });
    }
}

#[test]
fn broken_lines_are_refused_and_leave_nothing() {
    let cases = [
        ("r\t4\t*\t0", "the line ends before its MAPQ"),
        ("r\t-4\t*\t0\t0\t*\t*\t0\t0\t*\t*", "FLAG '-4' is not a valid number"),
        ("r\t4\tchrX\t0\t0\t*\t*\t0\t0\t*\t*", "sequence 'chrX' is not in the header"),
        ("r\t0\t2\t1\t0\t3M4\t*\t0\t0\tACG\t*", "CIGAR '3M4' is not valid"),
        ("r\t0\t2\t1\t0\t3Q\t*\t0\t0\tACG\t*", "CIGAR '3Q' is not valid"),
        ("r\t0\t2\t1\t0\t268435456M\t*\t0\t0\tACG\t*", "CIGAR '268435456M' is not valid"),
        ("r\t4\t*\t0\t0\t*\t*\t0\t0\tACG\tII", "3 bases and 2 qualities"),
        ("r\t4\t*\t0\t0\t*\t*\t0\t0\tA\tI\tNM:i:x", "tag 'x' is not a valid number"),
        ("r\t4\t*\t0\t0\t*\t*\t0\t0\tA\tI\tNM:i:4294967296", "'NM:i:4294967296' is not a valid tag"),
        ("r\t4\t*\t0\t0\t*\t*\t0\t0\tA\tI\t1:N:0:ACGT", "'1:N:0:ACGT' is not a valid tag"),
        ("r\t4\t*\t0\t0\t*\t*\t0\t0\tA\tI\tXX:B:q,1", "'XX:B:q,1' is not a valid tag"),
    ];
    for (line, reason) in cases {
        let mut out = b"before".to_vec();
        let error = parse_sam_line(line.as_bytes(), &contigs(), &mut out).unwrap_err();
        assert_eq!(error.to_string(), format!("SAM line of read r: {reason}"));
        assert_eq!(out, b"before");
    }
    let long = format!("{}\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*", "n".repeat(255));
    assert_eq!(parse_sam_line(long.as_bytes(), &contigs(), &mut Vec::new()), Err(Error::NameTooLong(255)));
    assert_eq!(round_trip(&long[1..]), &long[1..]);
}

/// All lines as records, back to back.
fn all_bytes() -> Vec<u8> {
    let mut bytes = Vec::new();
    LINES.iter().for_each(|line| parse_sam_line(line.as_bytes(), &contigs(), &mut bytes).unwrap());
    bytes
}

#[test]
fn records_are_told_apart() {
    let bytes = all_bytes();
    let records: Vec<_> = split_bam_records(&bytes).collect::<Result<_, _>>().unwrap();
    assert_eq!(records.len(), LINES.len());
    assert_eq!(records.concat(), bytes);
    for cut in [1, 3, 4, bytes.len() - 1] {
        let last = super::split_bam_records(&bytes[..cut]).last().unwrap();
        assert_eq!(last, Err(Error::InvalidBamRecord("the buffer ends within the record")), "{cut}");
    }
}

/// A BAM file written by samtools without compression equals our header and our records.
#[test]
fn the_bytes_are_those_of_samtools() {
    let header = format!("@HD\tVN:1.6\n{}", contigs().format_sq_header_lines());
    let sam = format!("{header}{}\n", LINES.join("\n"));
    let run = Command::new("samtools")
        .args(["view", "--no-PG", "-b", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut samtools) = run else {
        let _ = writeln!(std::io::stderr(), "skipped: the_bytes_are_those_of_samtools: no samtools");
        return;
    };
    samtools.stdin.take().unwrap().write_all(sam.as_bytes()).unwrap();
    let output = samtools.wait_with_output().unwrap();
    assert!(output.status.success());
    let mut theirs = Vec::new();
    let mut reader = noodles_bgzf::io::Reader::new(&output.stdout[..]);
    std::io::Read::read_to_end(&mut reader, &mut theirs).unwrap();
    let number = |at: usize| u32::from_le_bytes(theirs[at..at + 4].try_into().unwrap()) as usize;
    let mut at = 8 + number(4);
    let sequences = number(at);
    at += 4;
    for _ in 0..sequences {
        at += 4 + number(at) + 4;
    }
    for ((line, ours), theirs) in
        LINES.iter().zip(split_bam_records(&all_bytes())).zip(split_bam_records(&theirs[at..]))
    {
        assert_eq!(ours, theirs, "{line}");
    }
    assert_eq!(all_bytes().len(), theirs.len() - at);
}

fn tag() -> impl Strategy<Value = String> {
    let array = prop::collection::vec(any::<i16>(), 0..5)
        .prop_map(|items| items.iter().fold("B:s".to_owned(), |text, i| format!("{text},{i}")));
    let value = prop_oneof![
        (i64::from(i32::MIN)..=i64::from(u32::MAX)).prop_map(|i| format!("i:{i}")),
        "[ -~]{0,20}".prop_map(|s| format!("Z:{s}")),
        "[!-~]".prop_map(|s| format!("A:{s}")),
        prop::num::f32::NORMAL.prop_map(|f| format!("f:{f:e}")),
        array,
    ];
    ("[A-Za-z][A-Za-z0-9]", value).prop_map(|(tag, value)| format!("\t{tag}:{value}"))
}

fn any_line() -> impl Strategy<Value = String> {
    let sequence = prop_oneof![Just("*"), Just("chr1"), Just("HLA*01:02"), Just("2")];
    let cigar = prop_oneof![Just("*".to_owned()), "([1-9][0-9]{0,4}[MIDNSHP=X]){1,9}"];
    let bases = prop_oneof![Just("*".to_owned()), "[=ACMGRSVTWYHKDBN]{1,40}"];
    let place = (sequence.clone(), 0..i32::MAX);
    let tags = prop::collection::vec(tag(), 0..5);
    ("[!-?A-~]{1,60}", any::<u16>(), place.clone(), any::<u8>(), cigar, place, any::<i32>(), bases, any::<bool>(), tags)
        .prop_map(|(name, flag, (rname, pos), mapq, cigar, (rnext, pnext), tlen, bases, quals, tags)| {
            let quals = match quals && bases != "*" {
                true => "I".repeat(bases.len()),
                false => "*".to_owned(),
            };
            let rnext = if rnext == rname && rnext != "*" { "=" } else { rnext };
            let tags = tags.concat();
            format!("{name}\t{flag}\t{rname}\t{pos}\t{mapq}\t{cigar}\t{rnext}\t{pnext}\t{tlen}\t{bases}\t{quals}{tags}")
        })
}

/// A line with its floating-point tags as numbers: `1e3` and `1000` are the same.
fn with_numbers(line: &str) -> Vec<String> {
    let number = |field: &str| match field.get(2..).and_then(|rest| rest.strip_prefix(":f:")) {
        Some(number) => format!("{}:f:{:e}", &field[..2], number.parse::<f32>().unwrap()),
        None => field.to_owned(),
    };
    line.split('\t').map(number).collect()
}

proptest! {
    #[test]
    fn any_line_comes_back(line in any_line()) {
        prop_assert_eq!(with_numbers(&round_trip(&line)), with_numbers(&line));
    }

    /// Any bytes give a line or an error, never a panic.
    #[test]
    fn any_bytes_are_taken(mut bytes in prop::collection::vec(any::<u8>(), 0..200), small in any::<bool>()) {
        if small && bytes.len() > 36 {
            let size = bytes.len() as u32 - 4;
            bytes[..4].copy_from_slice(&size.to_le_bytes());
            (bytes[12], bytes[16], bytes[17], bytes[20]) = (2, 1, 0, 3);
            bytes[21..24].fill(0);
            bytes[4..8].fill(0);
            bytes[24..28].fill(0);
        }
        let mut out = Vec::new();
        if write_sam_line(&bytes, &contigs(), &mut out).is_err() {
            prop_assert!(out.is_empty());
        }
    }

    #[test]
    fn any_text_is_taken(line in "\\PC{0,100}(\t\\PC{0,10}){0,14}") {
        let mut out = Vec::new();
        if parse_sam_line(line.as_bytes(), &contigs(), &mut out).is_err() {
            prop_assert!(out.is_empty());
        }
    }
}
