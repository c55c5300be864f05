//! One event, one record: duplications and deletions of 70 to 240 bp in made reads.

use std::path::Path;

use crate::common::{Data, gunzip, gzip, run, scratch};

/// A small random number generator (splitmix64).
struct Rng(u64);

impl Rng {
    fn within(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) >> 11) as usize % n
    }

    fn sequence(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| b"ACGT"[self.within(4)]).collect()
    }

    /// Copies of a unit of 19 bases, each with two other bases.
    fn imperfect_repeat(&mut self, copies: usize) -> Vec<u8> {
        let unit = self.sequence(19);
        let copy = |rng: &mut Rng| {
            let mut copy = unit.clone();
            for _ in 0..2 {
                copy[rng.within(19)] = b"ACGT"[rng.within(4)];
            }
            copy
        };
        (0..copies).flat_map(|_| copy(self)).collect()
    }
}

fn reverse_complement(seq: &[u8]) -> Vec<u8> {
    let complement = |b: &u8| match b {
        b'A' => b'T',
        b'C' => b'G',
        b'G' => b'C',
        _ => b'A',
    };
    seq.iter().rev().map(complement).collect()
}

/// Pairs of 150 bases of two haplotypes, `share` of them of the first. One base in 500 is wrong.
fn write_reads(
    folder: &Path,
    sample: &str,
    haplotypes: [&[u8]; 2],
    share: usize,
    depth: usize,
) -> Vec<std::path::PathBuf> {
    let mut rng = Rng(depth as u64);
    let mut files = [Vec::new(), Vec::new()];
    for n in 0..haplotypes[1].len() * depth / 300 {
        let haplotype = haplotypes[usize::from(rng.within(100) >= share)];
        let insert = 300 + rng.within(150);
        let from = rng.within(haplotype.len() - insert);
        let fragment = &haplotype[from..from + insert];
        let fragment = if rng.within(2) == 0 { fragment.to_vec() } else { reverse_complement(fragment) };
        for (file, seq) in files.iter_mut().zip([fragment.clone(), reverse_complement(&fragment)]) {
            let mut seq = seq[..150].to_vec();
            for base in &mut seq {
                if rng.within(500) == 0 {
                    *base = b"ACGT"[rng.within(4)];
                }
            }
            file.extend(format!("@{sample}{n}\n{}\n+\n{}\n", String::from_utf8_lossy(&seq), "I".repeat(150)).bytes());
        }
    }
    let path = |mate: usize| folder.join(format!("{sample}_{mate}.fq.gz"));
    files.iter().zip(1..).map(|(bytes, mate)| gzip(path(mate), bytes)).collect()
}

/// Writes a genome and the reads of a pair. A share of the tumour's reads, in percent, is of the haplotype `tumour`; the
/// other number of the tumour, and the one of the normal, are depths.
fn write_pair(
    name: &str,
    genome: &[u8],
    tumour: &[u8],
    [tumour_share, tumour_depth]: [usize; 2],
    normal_depth: usize,
) -> Data {
    let folder = scratch(name);
    let reference = folder.join("genome.fa");
    std::fs::write(&reference, [b">one\n", genome, b"\n"].concat()).expect("a file");
    Data {
        tumor: write_reads(&folder, "tumor", [tumour, genome], tumour_share, tumour_depth),
        normal: write_reads(&folder, "normal", [genome, genome], 50, normal_depth),
        reference: Some(reference),
        folder,
    }
}

/// The records of a call: position, growth in bp, FILTER, allele fraction in the tumour, and depth of the normal.
fn read_calls(out: &Path) -> Vec<(usize, i64, String, f64, u32)> {
    let text = String::from_utf8(gunzip(&out.join("somatic.vcf.gz"))).expect("UTF-8");
    let read = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        let length = columns[7].split(';').find_map(|field| field.strip_prefix("SVLEN="));
        let growth = match length {
            Some(length) => length.parse().expect("a length"),
            None => columns[4].len() as i64 - columns[3].len() as i64,
        };
        let value = |sample: &str, name: &str| {
            let at = columns[8].split(':').position(|key| key == name).expect("a key");
            sample.split(':').nth(at).expect("a value").to_owned()
        };
        let fraction = value(columns[10], "AF").parse().expect("a fraction");
        let depth = value(columns[9], "DP").parse().expect("a depth");
        (columns[1].parse().expect("a position"), growth, columns[6].to_owned(), fraction, depth)
    };
    text.lines().filter(|line| !line.starts_with('#')).map(read).collect()
}

#[test]
fn a_duplication_or_deletion_is_one_record_with_its_fraction() {
    let mut rng = Rng(45);
    let mut genome = Vec::new();
    // Each event is 1500 bases after the start of its part. The first two are in imperfect repeats.
    for repeats in [true, true, false] {
        let repeat = if repeats { rng.imperfect_repeat(30) } else { rng.sequence(570) };
        genome.extend([rng.sequence(1200), repeat, rng.sequence(1230)].concat());
    }
    let copy = |at: usize, len: usize| genome[at - len..at].to_vec();
    let tumour = [
        &genome[..1500],
        b"ACGATG",
        &copy(1500, 71),
        &genome[1500..4500],
        &genome[4741..7500],
        &copy(7500, 180),
        &genome[7500..],
    ]
    .concat();
    let data = write_pair("one-record", &genome, &tumour, [20, 300], 100);
    let out = data.folder.join("out");
    run(data.call(&out)).assert_success();
    let mut calls = read_calls(&out);
    calls.retain(|call| call.2 == "PASS");
    let lengths: Vec<i64> = calls.iter().map(|call| call.1).collect();
    assert_eq!(lengths, [77, -241, 180], "{calls:?}");
    for (_, growth, _, fraction, normal_depth) in &calls {
        // The depth of a deletion counts both of its ends.
        let least = if *growth < 0 { 0.1 } else { 0.15 };
        assert!((least..0.25).contains(fraction), "{calls:?}");
        assert!((70..250).contains(normal_depth), "{calls:?}");
    }
}

#[test]
fn a_unit_of_a_minisatellite_more_or_less_is_one_record() {
    let mut rng = Rng(7);
    let (mut genome, mut tumour, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    // The unit in bp, the units of the genome, and those of the tumour. None of these changes makes a new k-mer. Of
    // the last repeat, few reads hold the genome's length with both flanks.
    for (unit, before, after) in [(9, 6, 5), (17, 4, 5), (17, 4, 3), (24, 4, 3), (12, 4, 5), (40, 3, 2)] {
        let (flank, unit, rest) = (rng.sequence(900), rng.sequence(unit), unit / 2);
        let repeat = |units: usize| [unit.repeat(units), unit[..rest].to_vec()].concat();
        genome.extend([&flank[..], &repeat(before)].concat());
        tumour.extend([&flank[..], &repeat(after)].concat());
        expected.push((after as i64 - before as i64) * unit.len() as i64);
    }
    let end = rng.sequence(900);
    genome.extend(&end);
    tumour.extend(&end);
    let data = write_pair("minisatellites", &genome, &tumour, [40, 60], 30);
    let out = data.folder.join("out");
    run(data.call(&out)).assert_success();
    let calls = read_calls(&out);
    let lengths: Vec<i64> = calls.iter().map(|call| call.1).collect();
    assert_eq!(lengths, expected, "{calls:?}");
    let passing = calls.iter().filter(|call| call.2 == "PASS").count();
    assert!(passing + 1 >= expected.len(), "{calls:?}");

    // A normal with the same lengths has no record that passes.
    let normal = write_reads(&data.folder, "carrier", [&tumour, &genome], 40, 31);
    let out = data.folder.join("out-germline");
    run(Data { normal, ..data }.call(&out)).assert_success();
    let passing: Vec<_> = read_calls(&out).into_iter().filter(|call| call.2 == "PASS").collect();
    assert!(passing.is_empty(), "{passing:?}");
}
