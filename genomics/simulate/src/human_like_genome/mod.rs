//! Generates a genome of any length with the chromosomes, repeats and GC distribution of the human genome. None of its
//! sequence is human.
//!
//! First all chromosomes are random sequence with isochores. Later elements overwrite earlier ones in evolutionary
//! order: interspersed repeats (oldest first), tandem repeats, segmental duplications, centromeric satellites, gaps
//! (N), telomeres, and the gaps at the chromosome ends last.

mod random_sequence;
mod segmental_duplications;
mod repeat_families;
mod isochores;
mod satellites;
mod tandem_repeats;

use std::io::{self, Write};

use genuma_work::parallel::map_in_order;

use crate::genome::Genome;
use crate::rng::Rng;
use isochores::Isochores;
use repeat_families::{RepeatClass, RepeatFamilies};
use satellites::AlphaMonomers;

/// Minimum total length of a human-like genome, bp: with fewer bases some chromosomes would be shorter than 15 kb.
pub(crate) const MIN_GENOME_BP: usize = 1_000_000;

/// Name, length (Mbp) and centromere position (as share of the length) of each human chromosome.
const HUMAN_CHROMOSOMES: [(&str, f64, f64); 24] = [
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

/// Length of the alpha satellite of a centromere, relative to its chromosome.
const ALPHA_SATELLITE_SHARE: f64 = 0.025;
/// Chromosomes that have a simple satellite next to the centromere, and its length relative to the chromosome.
const SIMPLE_SATELLITES: ([&str; 4], f64) = (["chr1", "chr9", "chr16", "chrY"], 0.02);
/// Length of the gap (N) after the satellites, relative to the chromosome.
const CENTROMERIC_GAP_SHARE: f64 = 0.027;
/// Length of the gap (N) at each chromosome end, bp, and the divisor of the chromosome length that limits it.
const END_GAP_SIZE: (usize, usize) = (10_000, 200);
/// Other gaps (N): length (bp), the divisor of the chromosome length that limits it, and number of bases per gap.
const OTHER_GAPS: (usize, usize, usize) = (50_000, 200, 6_000_000);
/// Length of the telomere repeats next to the gap at each chromosome end, bp, and the divisor of the chromosome length
/// that limits it.
const TELOMERE_SIZE: (usize, usize) = (3_000, 500);

/// Type of a repeat, satellite or gap of a human-like chromosome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum GenomeElement {
    Interspersed(RepeatClass),
    TandemRepeat,
    Duplication,
    AlphaSatellite,
    SimpleSatellite,
    Telomere,
    Gap,
}

impl GenomeElement {
    /// Returns the name of the element type in `repeats.bed`.
    fn name(self) -> &'static str {
        match self {
            GenomeElement::Interspersed(RepeatClass::Alu) => "alu",
            GenomeElement::Interspersed(RepeatClass::L1) => "l1",
            GenomeElement::Interspersed(RepeatClass::Ancient) => "old_family",
            GenomeElement::Interspersed(RepeatClass::Dna) => "dna_transposon",
            GenomeElement::Interspersed(RepeatClass::Ltr) => "ltr",
            GenomeElement::TandemRepeat => "tandem_repeat",
            GenomeElement::Duplication => "segmental_duplication",
            GenomeElement::AlphaSatellite => "alpha_satellite",
            GenomeElement::SimpleSatellite => "simple_satellite",
            GenomeElement::Telomere => "telomere",
            GenomeElement::Gap => "gap",
        }
    }
}

/// Repeats, satellites and gaps of a chromosome, in the order in which they were written: type, position (0-based),
/// length (bp).
#[derive(Debug, Clone, Default)]
pub(crate) struct RepeatAndGapAnnotation(Vec<(GenomeElement, u32, u32)>);

impl RepeatAndGapAnnotation {
    fn push_element(&mut self, part: GenomeElement, at: usize, n: usize) {
        self.0.push((part, at as u32, n as u32));
    }

    /// Writes the elements as BED lines sorted by position. Where elements overlap, only the one that was written last
    /// is listed. Adjacent elements of one type are one line.
    pub(crate) fn write_elements_as_bed(
        &self,
        chromosome: &str,
        length: usize,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let mut painted: Vec<Option<GenomeElement>> = vec![None; length];
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

/// Generates a genome of `length` bp with 24 chromosomes that have the names and relative lengths of the human ones.
/// Also returns the elements of each chromosome. The result does not depend on the number of threads.
pub(crate) fn generate_human_like_genome(
    length: usize,
    rng: &mut Rng,
    threads: usize,
) -> (Genome, Vec<RepeatAndGapAnnotation>) {
    let seed = rng.next_u64();
    let random = |what: StreamLabel| Rng::from_seed_and_labels(seed, &[what as u64]);
    let (families, alpha) = (
        RepeatFamilies::with_random_consensus_sequences(&mut random(StreamLabel::Families)),
        AlphaMonomers::with_random_monomers(&mut random(StreamLabel::Alpha)),
    );
    let sizes = chromosome_lengths(length);
    let of = |i: usize, stage: u64| Rng::from_seed_and_labels(seed, &[u64::from(u32::MAX), i as u64, stage]);
    let ancient = |(): &mut (), i: usize| {
        let mut laid = RepeatAndGapAnnotation::default();
        let seq =
            generate_chromosome(sizes[i], &families, &mut of(i, 0), &mut |part, at, n| laid.push_element(part, at, n));
        (seq, laid)
    };
    let (mut seqs, mut laid): (Vec<Vec<u8>>, Vec<RepeatAndGapAnnotation>) =
        map_in_order(sizes.len(), threads, || (), ancient).into_iter().unzip();
    let mut copied = |to: usize, at, n, _| laid[to].push_element(GenomeElement::Duplication, at, n);
    segmental_duplications::place_segmental_duplications(
        &mut seqs,
        &mut random(StreamLabel::Duplications),
        &mut copied,
    );
    for (i, (seq, laid)) in seqs.iter_mut().zip(&mut laid).enumerate() {
        add_centromere_and_gaps(seq, i, &alpha, &mut of(i, 1), &mut |part, at, n| laid.push_element(part, at, n));
    }
    (Genome::from_sequences(HUMAN_CHROMOSOMES.iter().map(|c| c.0.to_owned()).collect(), seqs), laid)
}

/// Labels of the random streams that are used for all chromosomes together.
#[derive(Clone, Copy)]
enum StreamLabel {
    Families,
    Alpha,
    Duplications,
}

/// Returns the lengths of the 24 chromosomes, in proportion to the human ones, bp.
fn chromosome_lengths(length: usize) -> Vec<usize> {
    let human: f64 = HUMAN_CHROMOSOMES.iter().map(|c| c.1).sum();
    let mut sizes: Vec<usize> = HUMAN_CHROMOSOMES.iter().map(|c| (length as f64 * c.1 / human) as usize).collect();
    sizes[0] += length - sizes.iter().sum::<usize>();
    sizes
}

/// Generates a chromosome with isochores, interspersed repeats and tandem repeats. Calls `on_placed` with type,
/// position and length of each repeat.
fn generate_chromosome(
    length: usize,
    families: &RepeatFamilies,
    rng: &mut Rng,
    on_placed: &mut impl FnMut(GenomeElement, usize, usize),
) -> Vec<u8> {
    let (mut seq, isochores) = Isochores::generate_bases_and_isochores(length, rng);
    families.overwrite_with_repeat_copies(&mut seq, &isochores, rng, &mut |class, at, n| {
        on_placed(GenomeElement::Interspersed(class), at, n)
    });
    tandem_repeats::place_tandem_repeats(&mut seq, rng, &mut |at, n| on_placed(GenomeElement::TandemRepeat, at, n));
    seq
}

/// Writes satellites, telomeres and gaps into chromosome `number`. Calls `on_placed` with type, position and length of
/// each.
fn add_centromere_and_gaps(
    seq: &mut [u8],
    number: usize,
    alpha: &AlphaMonomers,
    rng: &mut Rng,
    on_placed: &mut impl FnMut(GenomeElement, usize, usize),
) {
    let (name, _, centromere) = HUMAN_CHROMOSOMES[number];
    let n = seq.len();
    let share = |share: f64| (share * n as f64) as usize;
    let mut at = share(centromere - ALPHA_SATELLITE_SHARE);
    let mut write = |seq: &mut [u8], part: GenomeElement, at: usize, bases: &[u8]| {
        seq[at..at + bases.len()].copy_from_slice(bases);
        on_placed(part, at, bases.len());
    };
    let (array, _) = alpha.generate_alpha_satellite(share(ALPHA_SATELLITE_SHARE), rng);
    write(seq, GenomeElement::AlphaSatellite, at, &array);
    at += array.len();
    if SIMPLE_SATELLITES.0.contains(&name) {
        let satellite = satellites::generate_simple_satellite(share(SIMPLE_SATELLITES.1), rng);
        write(seq, GenomeElement::SimpleSatellite, at, &satellite);
        at += satellite.len();
    }
    let gap = |length: usize| vec![b'N'; length];
    write(seq, GenomeElement::Gap, at, &gap(share(CENTROMERIC_GAP_SHARE)));
    let other = OTHER_GAPS.0.min(n / OTHER_GAPS.1);
    for _ in 0..n.div_ceil(OTHER_GAPS.2) {
        write(seq, GenomeElement::Gap, rng.draw_below(n - other), &gap(other));
    }
    let (end, telomere) = (END_GAP_SIZE.0.min(n / END_GAP_SIZE.1), TELOMERE_SIZE.0.min(n / TELOMERE_SIZE.1));
    let row = |unit: &[u8; 6]| unit.iter().copied().cycle().take(telomere).collect::<Vec<u8>>();
    write(seq, GenomeElement::Telomere, end, &row(b"CCCTAA"));
    write(seq, GenomeElement::Telomere, n - end - telomere, &row(b"TTAGGG"));
    write(seq, GenomeElement::Gap, 0, &gap(end));
    write(seq, GenomeElement::Gap, n - end, &gap(end));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn chromosomes_are_those_of_a_human_and_bases_do_not_depend_on_threads() {
        let all =
            |seed, threads| generate_human_like_genome(2_400_000, &mut Rng::from_seed_and_labels(seed, &[]), threads);
        let made = |seed, threads| all(seed, threads).0;
        let (genome, laid) = all(1, 1);
        let mut bed = vec![];
        laid[2].write_elements_as_bed("chr3", genome.seqs[2].len(), &mut bed).unwrap();
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
        assert_eq!(genome.length_bp(), 2_400_000);
        assert_eq!((genome.names.len(), genome.names[22].as_str()), (24, "chrX"));
        let part = |i: usize| genome.seqs[i].len() as f64 / 2.4e6;
        assert!((part(0) - 0.0807).abs() < 0.001 && (part(22) - 0.0505).abs() < 0.001);
        assert!(genome == made(1, 3) && genome != made(2, 1));
        let unknown = 1.0 - genome.num_acgt_bases() as f64 / 2.4e6;
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
        let families = RepeatFamilies::with_random_consensus_sequences(&mut Rng::from_seed_and_labels(5, &[]));
        let mut painted = vec![None; length];
        let mut copies: BTreeMap<GenomeElement, usize> = BTreeMap::new();
        let mut rng = Rng::from_seed_and_labels(6, &[]);
        let mut seq = generate_chromosome(length, &families, &mut rng, &mut |part, at, n| {
            painted[at..at + n].fill(Some(part));
            *copies.entry(part).or_default() += 1;
        });
        let share = |painted: &[Option<GenomeElement>], part: GenomeElement| {
            painted.iter().filter(|p| **p == Some(part)).count() as f64 / length as f64
        };
        for (class, wanted) in [
            (RepeatClass::Alu, 0.105),
            (RepeatClass::L1, 0.17),
            (RepeatClass::Ancient, 0.063),
            (RepeatClass::Dna, 0.035),
            (RepeatClass::Ltr, 0.088),
        ] {
            // Tandem repeats cover a little of the interspersed repeats.
            let found = share(&painted, GenomeElement::Interspersed(class));
            assert!((0.85..1.1).contains(&(found / wanted)), "{class:?} {found}");
        }
        let tracts = share(&painted, GenomeElement::TandemRepeat);
        assert!((0.02..0.035).contains(&tracts), "{tracts}");
        // The human genome has 1.1 to 1.3 million copies of Alu in 3.1 Gbp.
        let alu = copies[&GenomeElement::Interspersed(RepeatClass::Alu)] as f64 * 3.1e9 / length as f64;
        assert!((1.05e6..1.35e6).contains(&alu), "{alu}");

        add_centromere_and_gaps(
            &mut seq,
            0,
            &AlphaMonomers::with_random_monomers(&mut rng),
            &mut rng,
            &mut |part, at, n| {
                painted[at..at + n].fill(Some(part));
            },
        );
        assert!((0.024..0.0251).contains(&share(&painted, GenomeElement::AlphaSatellite)));
        assert!((0.015..0.021).contains(&share(&painted, GenomeElement::SimpleSatellite)));
        let gaps = share(&painted, GenomeElement::Gap);
        assert!((0.03..0.05).contains(&gaps), "{gaps}");
        assert!(seq.iter().zip(&painted).all(|(b, part)| (*b == b'N') == (*part == Some(GenomeElement::Gap))));
    }
}
