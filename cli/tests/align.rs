//! `genuma index` and `genuma align`: the output formats agree with one another and with samtools.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{SharedFixture, data, genuma, gunzip, installed, names, records, run, scratch, text};
use serde_json::Value;

/// A folder with the simulated genome and its index.
fn reference() -> &'static Path {
    static MADE: SharedFixture<PathBuf> = SharedFixture::new();
    MADE.get_or_init(|| {
        let path = scratch("reference").join("genome.fa");
        fs::copy(data().folder.join("genome.fa"), &path).expect("a copy");
        let said = run(["index", text(&path)]).assert_success().stderr;
        assert!(said.contains("genome.fa.gnm in"), "{said}");
        path
    })
}

/// Both mate files of the simulated normal.
fn mates() -> [&'static str; 2] {
    [text(&data().normal[0]), text(&data().normal[1])]
}

/// Aligns the pairs of the normal with further options.
fn align(options: &[&str]) -> crate::common::RunOutput {
    run(["align", text(reference()), mates()[0], mates()[1]].iter().chain(options))
}

/// Lines of SAM text without the header's command line.
fn lines(sam: &str) -> Vec<&str> {
    sam.lines().filter(|line| !line.starts_with("@PG\tID:genuma\t")).collect()
}

fn samtools(args: &[&str]) -> String {
    let ended = Command::new("samtools").args(args).output().expect("samtools starts");
    assert!(ended.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).expect("text")
}

#[test]
fn the_same_records_whatever_the_threads_and_wherever_they_go() {
    let folder = scratch("same");
    let one = align(&["-t", "1"]).assert_success();
    assert!(one.stdout.starts_with("@HD\tVN:1.6\tSO:unsorted\tGO:query\n@SQ\tSN:"), "{}", &one.stdout[..200]);
    assert!(one.stdout.contains("\n@PG\tID:genuma-mapper\tPN:genuma-mapper\tVN:"));
    assert!(one.stdout.contains("\n@PG\tID:genuma\tPN:genuma\tPP:genuma-mapper\tVN:"));
    let records = lines(&one.stdout).iter().filter(|line| !line.starts_with('@')).count();
    let reads: usize = data().normal.iter().map(|file| crate::common::records(&gunzip(file)).len()).sum();
    assert!(records >= reads, "{records} records of {reads} reads");
    let last = one.stderr.lines().last().expect("a last word");
    for part in [&format!("{} pairs in ", reads / 2), "% of reads mapped, ", "% properly paired, insert size "] {
        assert!(last.contains(part), "{last}");
    }
    for threads in ["2", "8"] {
        let other = align(&["-t", threads]).assert_success().stdout;
        assert!(lines(&other) == lines(&one.stdout), "{threads} threads");
    }
    // The option of earlier versions is accepted.
    let path = folder.join("out.sam");
    align(&["--engine", "genuma", "-o", text(&path)]).assert_success();
    assert!(lines(&fs::read_to_string(path).expect("SAM")) == lines(&one.stdout), "to a file");
    assert_eq!(names(&folder), ["out.sam"]);
}

#[test]
fn a_sorted_bam_is_that_of_samtools() {
    if installed("samtools").is_none() {
        return;
    }
    let folder = scratch("sorted");
    let path = |name: &str| folder.join(name);
    let (bam, json) = (path("ours.bam"), path("run.json"));
    align(&["-o", text(&path("ours.sam"))]).assert_success();
    let said = align(&["-o", text(&bam), "--json", text(&json), "--memory", "64M"]).assert_success();
    assert!(said.stdout.is_empty() && said.stderr.contains("; see "), "{}", said.stderr);
    samtools(&["quickcheck", text(&bam)]);
    samtools(&["sort", "--no-PG", "-o", text(&path("theirs.bam")), text(&path("ours.sam"))]);
    let view = |file: &str| samtools(&["view", "--no-PG", "-h", text(&path(file))]);
    assert!(lines(&view("ours.bam")) == lines(&view("theirs.bam")));
    assert!(!samtools(&["view", text(&bam), "chr1:1000-2000"]).is_empty());
    assert_eq!(names(&folder), ["ours.bam", "ours.bam.bai", "ours.sam", "run.json", "theirs.bam"]);

    let said: Value = serde_json::from_slice(&fs::read(json).expect("JSON")).expect("JSON");
    let records: u64 = samtools(&["view", "-c", text(&bam)]).trim().parse().expect("a number");
    assert_eq!(said["records"]["records"], records);
    let mapped: u64 = samtools(&["view", "-c", "-F", "2308", text(&bam)]).trim().parse().expect("a number");
    assert_eq!(said["reads"]["mapped"], mapped);
    assert_eq!((said["engine"]["name"].as_str(), &said["duplicates"]), (Some("genuma-mapper"), &Value::Null));
    assert!(said["seconds"]["align"].as_f64() > Some(0.0) && said["worker_seconds"]["map"].as_f64() > Some(0.0));
    assert!(said["placement"]["copies"][0]["pages"].as_object().is_some_and(|nodes| !nodes.is_empty()), "{said}");
}

#[test]
fn a_cram_holds_what_the_bam_holds() {
    if installed("samtools").is_none() {
        return;
    }
    let folder = scratch("cram");
    let path = |name: &str| folder.join(name);
    for (name, threads) in [("x.bam", "2"), ("x.cram", "2"), ("y.cram", "5")] {
        let group = ["-R", "ID:a\\tSM:me\\tLB:one", "--mark-duplicates", "-t", threads];
        align(&[&group[..], &["-o", text(&path(name))]].concat()).assert_success();
    }
    samtools(&["quickcheck", text(&path("x.cram"))]);
    // samtools writes the read group after all other tags, and adds MD unless told otherwise.
    let lines = |name: &str| -> Vec<String> {
        let file = path(name);
        let view = ["view", "--input-fmt-option", "decode_md=0", "-T", text(reference()), text(&file)];
        let last = |line: &str| {
            let (group, rest): (Vec<&str>, _) = line.split('\t').partition(|field| *field == "RG:Z:a");
            [rest, group].concat().join("\t")
        };
        samtools(&view).lines().map(last).collect()
    };
    assert!(lines("x.cram") == lines("x.bam"), "x.bam and x.cram");
    let newer = path("z.cram");
    let newer = ["-R", "ID:a\\tSM:me\\tLB:one", "--mark-duplicates", "--cram-version", "3.1", "-o", text(&newer)];
    align(&newer).assert_success();
    assert!(lines("z.cram") == lines("x.bam"), "CRAM 3.1");
    assert_eq!(
        (&fs::read(path("x.cram")).expect("CRAM")[4..6], &fs::read(path("z.cram")).expect("CRAM")[4..6]),
        (&[3, 0][..], &[3, 1][..])
    );
    assert!(fs::metadata(path("z.cram")).expect("CRAM").len() < fs::metadata(path("x.cram")).expect("CRAM").len());
    ["z.cram", "z.cram.crai"].iter().for_each(|name| fs::remove_file(path(name)).expect("a file"));
    let header = |name: &str| samtools(&["view", "-H", "--no-PG", text(&path(name))]);
    let crams = header("x.cram");
    let sequences: Vec<&str> = crams.lines().filter(|line| line.starts_with("@SQ")).collect();
    let file = format!("\tUR:file://{}", text(&reference().canonicalize().expect("a path")));
    assert!(sequences.iter().all(|line| line.contains("\tM5:") && line.ends_with(&file)), "{crams}");
    let others = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with("@SQ") && !line.starts_with("@PG\tID:genuma\t"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(others(&crams), others(&header("x.bam")));
    let bytes = |name: &str| fs::read(path(name)).expect("a file");
    // Everything except the header's command line, which is in a container of its own.
    let records = |name: &str| {
        let cram = bytes(name);
        let length = i32::from_le_bytes(cram[26..30].try_into().expect("4 bytes")) as usize;
        cram[cram.len().min(26 + length)..].to_vec()
    };
    assert!(
        records("x.cram").len() > 1_000 && records("x.cram").ends_with(&records("y.cram")[200..]),
        "x.bam and x.cram"
    );
    let index = |name: &str| samtools(&["view", "-c", "-T", text(reference()), text(&path(name)), "chr1:1000-3000"]);
    assert_eq!(index("x.cram"), index("x.bam"));
    assert_eq!(names(&folder), ["x.bam", "x.bam.bai", "x.cram", "x.cram.crai", "y.cram", "y.cram.crai"]);
}

#[test]
fn duplicates_are_marked_within_their_library() {
    if installed("samtools").is_none() {
        return;
    }
    let folder = scratch("marked");
    // The same reads in two lanes under other names: all reads of the second lane are duplicates, unless it is
    // another library.
    let renamed: Vec<PathBuf> = data()
        .normal
        .iter()
        .enumerate()
        .map(|(i, file)| {
            let copy: Vec<u8> =
                records(&gunzip(file)).iter().flat_map(|record| [b"@copy_", &record[1..]].concat()).collect();
            let path = folder.join(format!("copy_{}.fq", i + 1));
            fs::write(&path, copy).expect("a file");
            path
        })
        .collect();
    let marked = |library: &str| -> (u64, u64) {
        let bam = folder.join("out.bam");
        let groups = ["ID:a\\tSM:s\\tLB:one", &format!("ID:b\\tSM:s\\tLB:{library}")];
        let files = [text(&renamed[0]), text(&renamed[1]), "-R", groups[0], "-R", groups[1]];
        align(&[&files[..], &["--mark-duplicates", "-o", text(&bam)]].concat()).assert_success();
        samtools(&["quickcheck", text(&bam)]);
        let count = |options: &[&str]| {
            let command = [&["view", "-c"], options, &[text(&bam)]].concat();
            samtools(&command).trim().parse().expect("a number")
        };
        assert_eq!(count(&["-r", "a"]), count(&["-r", "b"]));
        (count(&["-f", "1024"]), count(&["-F", "2308"]))
    };
    let (same, all) = marked("one");
    let (other, _) = marked("two");
    assert!(same * 2 > all * 9 / 10 && other * 10 < all, "{same} and {other} of {all} are marked");
}

#[test]
fn pipes_in_and_out() {
    let folder = scratch("pipes");
    let (one, two) = (gunzip(&data().normal[0]), gunzip(&data().normal[1]));
    let mixed: Vec<u8> = records(&one).iter().zip(records(&two)).flat_map(|(a, b)| [*a, b].concat()).collect();
    let path = folder.join("mixed.fq");
    fs::write(&path, &mixed).expect("a file");
    let from_file = run(["align", "--interleaved", text(reference()), text(&path)]).assert_success().stdout;
    assert!(lines(&from_file) == lines(&align(&[]).assert_success().stdout), "a small lane is one block either way");
    let command = ["align", "--interleaved", text(reference())];
    let file = run(command.iter().chain(&[text(&path)])).assert_success().stdout;
    let piped =
        genuma().args(command).arg("-").stdin(fs::File::open(&path).expect("a file")).output().expect("genuma starts");
    assert!(lines(&String::from_utf8(piped.stdout).expect("SAM")) == lines(&file), "a pipe");
    // The reader closes the pipe early.
    let mut child = genuma()
        .args(["align", text(reference()), mates()[0], mates()[1]])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("genuma starts");
    drop(child.stdout.take());
    let ended = child.wait_with_output().expect("an end");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.code() == Some(0) && !said.contains("error"), "{said}");
}

/// Runs a program with system calls blocked by seccomp. The calls fail as in a container, or as on a kernel without
/// them. Arguments: the error number, names of the calls, the program and its arguments.
const WITHOUT: &str = r#"
import ctypes, os, struct, sys
numbers = {
    "x86_64": {"mbind": 237, "set_mempolicy": 238, "move_pages": 279},
    "aarch64": {"mbind": 235, "set_mempolicy": 237, "move_pages": 239},
}[os.uname().machine]
error, calls = int(sys.argv[1]), [numbers[name] for name in sys.argv[2].split(",")]
steps = [(0x20, 0, 0, 0), *((0x15, len(calls) - i, 0, call) for i, call in enumerate(calls))]
steps += [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x50000 | error)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
class Program(ctypes.Structure):
    _fields_ = [("steps", ctypes.c_ushort), ("code", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_void_p] * 4
program = Program(len(steps), ctypes.addressof(code))
if libc.prctl(38, 1, None, None, None) or libc.prctl(22, 2, ctypes.addressof(program), None, None):
    sys.exit("no filter: " + os.strerror(ctypes.get_errno()))
os.execv(sys.argv[3], sys.argv[3:])
"#;

/// genuma with system calls that fail with this error number, run by [`WITHOUT`].
fn genuma_without(calls: &str, error: &str) -> Command {
    let mut python = Command::new("python3");
    python.args(["-c", WITHOUT, error, calls, env!("CARGO_BIN_EXE_genuma")]).stdin(Stdio::null());
    python
}

#[test]
fn where_the_kernel_does_not_tell_places_reads_are_aligned_all_the_same() {
    if installed("python3").is_none() {
        return;
    }
    let folder = scratch("untold");
    let expected = align(&[]).stdout;
    // EPERM of Docker's default profile; ENOSYS of QEMU's user mode.
    for error in ["1", "38"] {
        let json = folder.join("run.json");
        let mut align = genuma_without("move_pages", error);
        align.args(["align", "--json", text(&json)]).arg(reference()).args(mates());
        let output = align.output().expect("python3 starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert!(lines(&String::from_utf8_lossy(&output.stdout)) == lines(&expected), "{said}");
        let told: Value = serde_json::from_slice(&fs::read(&json).expect("a file")).expect("JSON");
        assert!(said.contains("move_pages") && told["placement"]["as_chosen"].is_null(), "{said}\n{told}");
    }
}

/// The kernel does not know nodes that its files list (EINVAL).
#[test]
fn where_the_kernel_refuses_memory_policies_memory_is_local() {
    if installed("python3").is_none() {
        return;
    }
    let folder = scratch("policies");
    let table = |name: &str| folder.join(format!("{name}.gkt"));
    run(["kmers", "count", mates()[0], "-o", text(&table("expected"))]).assert_success();
    let command = |args: &[&str]| {
        let output = genuma_without("mbind,set_mempolicy", "22").args(args).output().expect("python3 starts");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    command(&["kmers", "count", mates()[0], "-o", text(&table("local"))]);
    let tables = ["expected", "local"].map(|name| fs::read(table(name)).expect("a table"));
    assert!(tables[0] == tables[1], "the same table");
    let aligned = command(&["align", text(reference()), mates()[0], mates()[1]]);
    assert!(lines(&aligned) == lines(&align(&[]).assert_success().stdout));
}

/// A record whose name begins with '@' would be a header line.
#[test]
fn names_that_look_like_header_lines_are_refused() {
    let reads = scratch("header-like").join("reads.fq");
    fs::write(&reads, format!("@@A0:1\n{0}\n+\n{0}\n", "ACGTA".repeat(30))).expect("a file");
    let ended = run(["align", text(reference()), text(&reads)]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("read @A0:1: its name begins with '@', so SAM cannot hold it"), "{}", ended.stderr);
}

/// An I/O error while the format is found is reported, and is no wrong usage.
#[test]
fn files_that_cannot_be_read_are_reported() {
    let reads = scratch("unreadable").join("reads.fq");
    fs::write(&reads, "@r\nACGT\n+\nFFFF\n").expect("a file");
    let ended = run(["align", text(reference()), text(&reads), "/proc/self/mem"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("/proc/self/mem: cannot read: "), "{}", ended.stderr);
}

/// Bases of a DNA text on the other strand.
fn reverse_complement(bases: &str) -> String {
    let complement = |base| match base {
        'A' => 'T',
        'C' => 'G',
        'G' => 'C',
        'T' => 'A',
        other => other,
    };
    bases.chars().rev().map(complement).collect()
}

/// Tags of an unaligned read, in the order of sequencing. They depend on its name, so that every read has its own.
fn tags_of_read(name: &str, read: usize, bases: &str) -> Vec<String> {
    let number = name.bytes().fold(read, |sum, byte| (31 * sum + usize::from(byte)) % 9973);
    let depths: Vec<String> = (0..bases.len()).map(|at| (300 + (number + at) % 600).to_string()).collect();
    let originals: String = (0..bases.len()).map(|at| char::from(b'#' + ((number + at) % 40) as u8)).collect();
    vec![
        format!("RX:Z:ACGT-{number}"),
        format!("xi:i:{}", number as i64 - 70_000),
        format!("xf:f:{number}.5"),
        format!("xb:B:s,{number},-1,7"),
        "xc:A:q".to_owned(),
        format!("MM:Z:C+m,{read};"),
        format!("ML:B:C,{}", number % 256),
        format!("OQ:Z:{originals}"),
        format!("cd:B:S,{}", depths.join(",")),
        format!("ac:Z:{bases}"),
        // These are never carried: the records have their own, or they are of another alignment.
        "NM:i:77".to_owned(),
        "RG:Z:input".to_owned(),
        "NH:i:9".to_owned(),
    ]
}

/// The carried tags of a SAM line with values in the order of sequencing, sorted; the values for each base are compared
/// for records with all bases only.
fn carried_tags(line: &str) -> Vec<String> {
    let fields: Vec<&str> = line.split('\t').collect();
    let reverse = fields[1].parse::<u16>().expect("FLAG") & 16 != 0;
    let own = ["RX:", "xi:", "xf:", "xb:", "xc:", "MM:", "ML:", "OQ:", "cd:", "ac:"];
    let tags = fields[11..].iter().filter(|tag| own.iter().any(|name| tag.starts_with(name)));
    let mut tags: Vec<String> = tags
        .map(|tag| match &tag[..5] {
            "OQ:Z:" if reverse => format!("OQ:Z:{}", tag[5..].chars().rev().collect::<String>()),
            "ac:Z:" if reverse => format!("ac:Z:{}", reverse_complement(&tag[5..])),
            "cd:B:" if reverse => {
                format!("cd:B:S,{}", tag[7..].split(',').rev().collect::<Vec<_>>().join(","))
            }
            _ => (*tag).to_owned(),
        })
        .collect();
    tags.sort();
    tags
}

/// SAM text of unaligned pairs of the normal, and of single reads whose halves lie in two places. All have tags.
fn unaligned_sam_with_tags() -> String {
    let reads: Vec<_> = data().normal.iter().map(|file| gunzip(file)).collect();
    let reads: Vec<_> = reads.iter().map(|fastq| records(fastq)).collect();
    let mut sam = "@HD\tVN:1.6\tSO:unsorted\n@RG\tID:input\tSM:me\n".to_owned();
    let mut push = |name: &str, flag: u16, bases: &str, qualities: &str| {
        let tags = tags_of_read(name, usize::from(flag & 128), bases).join("\t");
        sam += &format!("{name}\t{flag}\t*\t0\t0\t*\t*\t0\t0\t{bases}\t{qualities}\t{tags}\n");
    };
    for (one, two) in reads[0].iter().zip(&reads[1]).take(3000) {
        for (record, flag) in [(one, 77), (two, 141)] {
            let lines: Vec<&str> = std::str::from_utf8(record).expect("text").lines().collect();
            let name = lines[0][1..].split_whitespace().next().expect("a name");
            let name = name.strip_suffix("/1").or_else(|| name.strip_suffix("/2")).unwrap_or(name);
            push(name, flag, lines[1], lines[3]);
        }
    }
    // The second half is on the reverse strand.
    let genome = fs::read_to_string(reference()).expect("a genome");
    let contig: String = genome.lines().skip(1).take_while(|line| !line.starts_with('>')).collect();
    for i in 0..20 {
        let at = 3000 + 1000 * i;
        let bases = contig[at..at + 100].to_owned() + &reverse_complement(&contig[at + 30_000..at + 30_090]);
        push(&format!("split{i}"), 4, &bases, &"I".repeat(bases.len()));
    }
    sam
}

/// The carried tags of each read, by its name and whether it is read 2.
type TagsByRead = HashMap<(String, bool), Vec<String>>;

/// Asserts that the records of aligned reads have the tags of the input. `all_bases`: supplementary records have all bases
/// of the read.
fn assert_tags_are_carried(sam: &str, expected: &TagsByRead, all_bases: bool) {
    let (mut supplementary, mut reverse) = (0, 0);
    for line in sam.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let flag: u16 = fields[1].parse().expect("FLAG");
        let (carried, wanted) = (carried_tags(line), &expected[&(fields[0].to_owned(), flag & 128 != 0)]);
        if fields[9].len() == wanted[2].len() - "OQ:Z:".len() || all_bases {
            assert_eq!(&carried, wanted, "{line}");
        } else {
            // A part of the bases: no base modifications, and as many values as bases.
            assert_eq!(carried.len(), wanted.len() - 2, "{line}");
            let qualities = carried.iter().find(|tag| tag.starts_with("OQ:Z:")).expect("qualities");
            let depths = carried.iter().find(|tag| tag.starts_with("cd:B:")).expect("depths");
            assert!(wanted[2].contains(&qualities[5..]), "{line}");
            assert_eq!((qualities.len() - 5, depths.split(',').count() - 1), (fields[9].len(), fields[9].len()));
        }
        let names: Vec<&str> = fields[11..].iter().map(|tag| &tag[..2]).collect();
        let distinct: HashSet<&&str> = names.iter().collect();
        assert!(distinct.len() == names.len() && !names.contains(&"RG") && !names.contains(&"NH"), "{line}");
        assert!(!fields.contains(&"NM:i:77"), "{line}");
        supplementary += u32::from(flag & 2048 != 0);
        reverse += u32::from(flag & 16 != 0);
    }
    assert!(supplementary >= 20 && reverse > 2500, "{supplementary} {reverse}");
}

#[test]
fn tags_of_unaligned_reads_are_carried() {
    if installed("samtools").is_none() {
        return;
    }
    let folder = scratch("tags");
    let path = |name: &str| folder.join(name);
    let sam = unaligned_sam_with_tags();
    fs::write(path("in.sam"), &sam).expect("SAM");
    let expected: TagsByRead = sam
        .lines()
        .filter(|line| !line.starts_with('@'))
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            ((fields[0].to_owned(), fields[1] == "141"), carried_tags(line))
        })
        .collect();
    samtools(&["view", "-b", "-o", text(&path("in.bam")), text(&path("in.sam"))]);
    samtools(&["view", "-C", "-o", text(&path("in.cram")), text(&path("in.sam"))]);

    let align = |input: &str, output: &str, options: &[&str]| {
        let (input, output) = (path(input), path(output));
        let args = ["align", text(reference()), text(&input), "-o", text(&output)];
        run(args.iter().chain(options)).assert_success();
        samtools(&["view", "--input-fmt-option", "decode_md=0", "-T", text(reference()), text(&output)])
    };
    let bam = align("in.bam", "out.bam", &["--tags", "all", "-t", "1"]);
    assert_tags_are_carried(&bam, &expected, false);
    assert!(align("in.bam", "four.bam", &["--tags", "all", "-t", "4"]) == bam, "four threads");
    assert!(align("in.cram", "cram.bam", &["--tags", "all"]) == bam, "CRAM in");
    assert!(align("in.bam", "out.cram", &["--tags", "all"]) == bam, "CRAM out");
    assert_tags_are_carried(&align("in.bam", "out.sam", &["--tags", "all"]), &expected, false);
    let soft_clipped = align("in.bam", "soft.bam", &["--tags", "all", "-Y", "-R", "ID:a"]);
    assert_tags_are_carried(&soft_clipped.replace("\tRG:Z:a", ""), &expected, true);
    // Sorted input: mates are far apart, and half of the reads are on the reverse strand.
    assert_tags_are_carried(&align("out.bam", "again.bam", &["--tags", "all"]), &expected, false);

    // Records without bases have no values for each base.
    for line in align("in.bam", "all.bam", &["--tags", "all", "-a"]).lines() {
        if line.split('\t').nth(9) == Some("*") {
            let names: Vec<_> = carried_tags(line).iter().map(|tag| tag[..3].to_owned()).collect();
            assert_eq!(names, ["RX:", "xb:", "xc:", "xf:", "xi:"], "{line}");
        }
    }

    // Lanes of FASTQ have no tags.
    let (fastq, input, output) = (text(&data().normal[0]), path("in.bam"), path("lanes.sam"));
    let lanes = ["align", text(reference()), fastq, text(&input), "--single", "--tags", "RX", "-o", text(&output)];
    let stderr = run(lanes).assert_success().stderr;
    assert!(stderr.contains("1 of 2 lanes are FASTQ or BINSEQ files"), "{stderr}");

    // Without the option no tag comes through; a list chooses.
    let plain = align("in.bam", "plain.bam", &[]);
    assert!(plain.lines().all(|line| carried_tags(line).is_empty()));
    let chosen = align("in.bam", "chosen.bam", &["--tags", "xb,RX,zz"]);
    assert!(chosen.lines().all(|line| {
        let tags = carried_tags(line);
        tags.len() == 2 && tags[0].starts_with("RX:Z:ACGT-") && tags[1].starts_with("xb:B:s,")
    }));
    let without = |sam: &str| -> Vec<String> {
        let kept = |line: &str| {
            let fields = line.split('\t').filter(|field| !["RX:", "xb:"].iter().any(|name| field.starts_with(name)));
            fields.collect::<Vec<_>>().join("\t")
        };
        sam.lines().map(kept).collect()
    };
    assert!(without(&chosen) == without(&plain), "other fields");
}
