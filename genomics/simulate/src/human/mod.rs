//! A genome as large, as repetitive and as uneven as the human one, at any scale. None of its sequence is human.
//!
//! First the ground (isochores), then what was put over it, in the order in which it came: families of repeats, the oldest
//! first, tandem repeats, segmental duplications, satellites of centromeres, and last what nobody has sequenced, the gaps.

mod bases;
mod duplications;
mod families;
mod isochores;
mod satellites;
mod tracts;

use std::io::{self, Write};

use genuma_work::parallel::in_order;

use crate::genome::Genome;
use crate::rng::Rng;
use families::{Class, Families};
use isochores::Isochores;
use satellites::Alpha;

/// Fewest bases of such a genome: chromosomes of less than 15 kb are not worth the name.
pub const SHORTEST: usize = 1_000_000;

/// Name, length (Mbp) and centromere (as share of the length) of each human chromosome.
const CHROMOSOMES: [(&str, f64, f64); 24] = [
    ("chr1", 249.0, 0.50),
    ("chr2", 242.2, 0.39),
    ("chr3", 198.3, 0.46),
    ("chr4", 190.2, 0.27),
    ("chr5", 181.5, 0.27),
    ("chr6", 170.8, 0.35),
    ("chr7", 159.3, 0.38),
    ("chr8", 145.1, 0.31),
    ("chr9", 138.4, 0.32),
    ("chr10", 133.8, 0.30),
    ("chr11", 135.1, 0.40),
    ("chr12", 133.3, 0.27),
    ("chr13", 114.4, 0.16),
    ("chr14", 107.0, 0.16),
    ("chr15", 102.0, 0.19),
    ("chr16", 90.3, 0.41),
    ("chr17", 83.3, 0.30),
    ("chr18", 80.4, 0.23),
    ("chr19", 58.6, 0.44),
    ("chr20", 64.4, 0.43),
    ("chr21", 46.7, 0.27),
    ("chr22", 50.8, 0.30),
    ("chrX", 156.0, 0.39),
    ("chrY", 57.2, 0.18),
];

/// Satellite of a centromere, as share of its chromosome.
const ALPHA: f64 = 0.025;
/// Chromosomes with a satellite of five bases beside it, and its share.
const SIMPLE: ([&str; 4], f64) = (["chr1", "chr9", "chr16", "chrY"], 0.02);
/// Unknown sequence behind the satellites, as share of the chromosome.
const CENTROMERIC_GAP: f64 = 0.027;
/// Unknown sequence at each end, bp, and the largest part of the chromosome that it may be.
const END_GAP: (usize, usize) = (10_000, 200);
/// Other gaps: length (bp), largest part of the chromosome, and bases for each.
const GAP: (usize, usize, usize) = (50_000, 200, 6_000_000);
/// Repeats of six bases inside of the ends, bp, and the largest part of the chromosome that they may be.
const TELOMERE: (usize, usize) = (3_000, 500);

/// What a stretch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Family(Class),
    Tract,
    Duplication,
    Alpha,
    Simple,
    Telomere,
    Gap,
}

impl Part {
    /// Its name in a BED.
    fn name(self) -> &'static str {
        match self {
            Part::Family(Class::Alu) => "alu",
            Part::Family(Class::L1) => "l1",
            Part::Family(Class::Old) => "old_family",
            Part::Family(Class::Dna) => "dna_transposon",
            Part::Family(Class::Ltr) => "ltr",
            Part::Tract => "tandem_repeat",
            Part::Duplication => "segmental_duplication",
            Part::Alpha => "alpha_satellite",
            Part::Simple => "simple_satellite",
            Part::Telomere => "telomere",
            Part::Gap => "gap",
        }
    }
}

/// What was laid over a chromosome: what, where, and how many bases, in the order in which it came.
#[derive(Debug, Clone, Default)]
pub struct Laid(Vec<(Part, u32, u32)>);

impl Laid {
    fn put(&mut self, part: Part, at: usize, n: usize) {
        self.0.push((part, at as u32, n as u32));
    }

    /// Writes lines of a BED, by place: what came last lies there.
    pub fn bed(&self, chromosome: &str, length: usize, out: &mut impl Write) -> io::Result<()> {
        let mut painted: Vec<Option<Part>> = vec![None; length];
        for &(part, at, n) in &self.0 {
            painted[at as usize..(at + n) as usize].fill(Some(part));
        }
        let mut at = 0;
        for run in painted.chunk_by(|a, b| a == b) {
            let end = at + run.len();
            if let Some(part) = run[0] {
                writeln!(out, "{chromosome}\t{at}\t{end}\t{}", part.name())?;
            }
            at = end;
        }
        Ok(())
    }
}

/// Makes `length` bp in 24 chromosomes that have the names and proportions of human ones. The bases do not depend on the
/// number of threads. With what was laid over each chromosome.
pub fn make(length: usize, rng: &mut Rng, threads: usize) -> (Genome, Vec<Laid>) {
    let seed = rng.bits();
    let random = |what: Beside| Rng::stream(seed, &[what as u64]);
    let (families, alpha) =
        (Families::new(&mut random(Beside::Families)), Alpha::new(&mut random(Beside::Alpha)));
    let sizes = sizes(length);
    let of = |i: usize, stage: u64| Rng::stream(seed, &[u64::from(u32::MAX), i as u64, stage]);
    let ancient = |(): &mut (), i: usize| {
        let mut laid = Laid::default();
        let seq = ancient(sizes[i], &families, &mut of(i, 0), &mut |part, at, n| laid.put(part, at, n));
        (seq, laid)
    };
    let (mut seqs, mut laid): (Vec<Vec<u8>>, Vec<Laid>) =
        in_order(sizes.len(), threads, || (), ancient).into_iter().unzip();
    let mut copied = |to: usize, at, n, _| laid[to].put(Part::Duplication, at, n);
    duplications::duplicate(&mut seqs, &mut random(Beside::Duplications), &mut copied);
    for (i, (seq, laid)) in seqs.iter_mut().zip(&mut laid).enumerate() {
        unfinished(seq, i, &alpha, &mut of(i, 1), &mut |part, at, n| laid.put(part, at, n));
    }
    (Genome::new(CHROMOSOMES.iter().map(|c| c.0.to_owned()).collect(), seqs), laid)
}

/// Random numbers that no single chromosome has for itself.
#[derive(Clone, Copy)]
enum Beside {
    Families,
    Alpha,
    Duplications,
}

/// Lengths of the chromosomes, in proportion to the human ones.
fn sizes(length: usize) -> Vec<usize> {
    let human: f64 = CHROMOSOMES.iter().map(|c| c.1).sum();
    let mut sizes: Vec<usize> = CHROMOSOMES.iter().map(|c| (length as f64 * c.1 / human) as usize).collect();
    sizes[0] += length - sizes.iter().sum::<usize>();
    sizes
}

/// A chromosome with what came to it piece by piece. `put` is told of parts, their places and lengths.
fn ancient(
    length: usize,
    families: &Families,
    rng: &mut Rng,
    put: &mut impl FnMut(Part, usize, usize),
) -> Vec<u8> {
    let (mut seq, isochores) = Isochores::lay(length, rng);
    families.scatter(&mut seq, &isochores, rng, &mut |class, at, n| put(Part::Family(class), at, n));
    tracts::scatter(&mut seq, rng, &mut |at, n| put(Part::Tract, at, n));
    seq
}

/// Puts centromere, ends and gaps into chromosome `number`. `put` is told of parts, their places and lengths.
fn unfinished(
    seq: &mut [u8],
    number: usize,
    alpha: &Alpha,
    rng: &mut Rng,
    put: &mut impl FnMut(Part, usize, usize),
) {
    let (name, _, centromere) = CHROMOSOMES[number];
    let n = seq.len();
    let share = |share: f64| (share * n as f64) as usize;
    let mut at = share(centromere - ALPHA);
    let mut write = |seq: &mut [u8], part: Part, at: usize, bases: &[u8]| {
        seq[at..at + bases.len()].copy_from_slice(bases);
        put(part, at, bases.len());
    };
    let (array, _) = alpha.array(share(ALPHA), rng);
    write(seq, Part::Alpha, at, &array);
    at += array.len();
    if SIMPLE.0.contains(&name) {
        let satellite = satellites::simple(share(SIMPLE.1), rng);
        write(seq, Part::Simple, at, &satellite);
        at += satellite.len();
    }
    let gap = |length: usize| vec![b'N'; length];
    write(seq, Part::Gap, at, &gap(share(CENTROMERIC_GAP)));
    let other = GAP.0.min(n / GAP.1);
    for _ in 0..n.div_ceil(GAP.2) {
        write(seq, Part::Gap, rng.below(n - other), &gap(other));
    }
    let (end, telomere) = (END_GAP.0.min(n / END_GAP.1), TELOMERE.0.min(n / TELOMERE.1));
    let row = |unit: &[u8; 6]| unit.iter().copied().cycle().take(telomere).collect::<Vec<u8>>();
    write(seq, Part::Telomere, end, &row(b"CCCTAA"));
    write(seq, Part::Telomere, n - end - telomere, &row(b"TTAGGG"));
    write(seq, Part::Gap, 0, &gap(end));
    write(seq, Part::Gap, n - end, &gap(end));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn chromosomes_are_those_of_a_human_and_bases_do_not_depend_on_threads() {
        let all = |seed, threads| make(2_400_000, &mut Rng::stream(seed, &[]), threads);
        let made = |seed, threads| all(seed, threads).0;
        let (genome, laid) = all(1, 1);
        let mut bed = vec![];
        laid[2].bed("chr3", genome.seqs[2].len(), &mut bed).unwrap();
        let bed = String::from_utf8(bed).unwrap();
        let mut end = 0;
        for line in bed.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let [from, to] = [1, 2].map(|i| fields[i].parse::<usize>().unwrap());
            assert!(fields[0] == "chr3" && end <= from && from < to, "{line}");
            let unknown = genome.seqs[2][from..to].iter().all(|&b| b == b'N');
            assert_eq!(unknown, fields[3] == "gap", "{line}");
            end = to;
        }
        assert_eq!(end, genome.seqs[2].len());
        for part in ["alu", "l1", "tandem_repeat", "segmental_duplication", "alpha_satellite", "telomere"] {
            assert!(bed.lines().any(|line| line.ends_with(part)), "{part}");
        }
        assert_eq!(genome.length(), 2_400_000);
        assert_eq!((genome.names.len(), genome.names[22].as_str()), (24, "chrX"));
        let part = |i: usize| genome.seqs[i].len() as f64 / 2.4e6;
        assert!((part(0) - 0.0807).abs() < 0.001 && (part(22) - 0.0505).abs() < 0.001);
        assert!(genome == made(1, 3) && genome != made(2, 1));
        let unknown = 1.0 - genome.known_bases() as f64 / 2.4e6;
        assert!((0.03..0.05).contains(&unknown), "{unknown}");
        for seq in &genome.seqs {
            assert!(seq.iter().all(|b| b"ACGTN".contains(b)));
            assert!(seq.starts_with(b"NN") && seq.ends_with(b"NN"));
            let end = seq.iter().position(|&b| b != b'N').unwrap();
            assert_eq!(&seq[end..end + 12], b"CCCTAACCCTAA");
            let gaps = seq.chunk_by(|a, b| (*a == b'N') == (*b == b'N')).filter(|run| run[0] == b'N');
            assert!(gaps.clone().count() >= 3 && gaps.map(<[u8]>::len).max() > Some(seq.len() / 40));
        }
    }

    #[test]
    fn parts_are_as_frequent_as_in_humans() {
        let length = 8_000_000;
        let families = Families::new(&mut Rng::stream(5, &[]));
        let mut painted = vec![None; length];
        let mut copies: BTreeMap<Part, usize> = BTreeMap::new();
        let mut rng = Rng::stream(6, &[]);
        let mut seq = ancient(length, &families, &mut rng, &mut |part, at, n| {
            painted[at..at + n].fill(Some(part));
            *copies.entry(part).or_default() += 1;
        });
        let share = |painted: &[Option<Part>], part: Part| {
            painted.iter().filter(|p| **p == Some(part)).count() as f64 / length as f64
        };
        for (class, wanted) in [
            (Class::Alu, 0.105),
            (Class::L1, 0.17),
            (Class::Old, 0.063),
            (Class::Dna, 0.035),
            (Class::Ltr, 0.088),
        ] {
            // Tracts cover a little of them.
            let found = share(&painted, Part::Family(class));
            assert!((0.85..1.1).contains(&(found / wanted)), "{class:?} {found}");
        }
        let tracts = share(&painted, Part::Tract);
        assert!((0.02..0.035).contains(&tracts), "{tracts}");
        // 1.1 to 1.3 million copies of Alu in 3.1 Gbp.
        let alu = copies[&Part::Family(Class::Alu)] as f64 * 3.1e9 / length as f64;
        assert!((1.05e6..1.35e6).contains(&alu), "{alu}");

        unfinished(&mut seq, 0, &Alpha::new(&mut rng), &mut rng, &mut |part, at, n| {
            painted[at..at + n].fill(Some(part));
        });
        assert!((0.024..0.0251).contains(&share(&painted, Part::Alpha)));
        assert!((0.015..0.021).contains(&share(&painted, Part::Simple)));
        let gaps = share(&painted, Part::Gap);
        assert!((0.03..0.05).contains(&gaps), "{gaps}");
        assert!(seq.iter().zip(&painted).all(|(b, part)| (*b == b'N') == (*part == Some(Part::Gap))));
    }
}
