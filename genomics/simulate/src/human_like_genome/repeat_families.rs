//! Places interspersed repeats: copies of families of transposable elements, from the oldest to the youngest family.

use genuma_reads::dna;

use super::isochores::Isochores;
use super::random_sequence::{append_mutated_copy, create_mutated_copy, draw_bases, draw_exponential_length};
use crate::rng::Rng;

/// Class of an interspersed repeat family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RepeatClass {
    /// Alu-like SINE: short, with two arms and a poly-A tail; the class with the most copies.
    Alu,
    /// L1-like LINE: long; most copies consist of the 3' end only.
    L1,
    /// Ancient repeats, such as L2 and MIR, of which only fragments remain.
    Ancient,
    /// DNA transposons, of which only fragments remain.
    Dna,
    /// LTR retrotransposons; most copies are a solitary long terminal repeat.
    Ltr,
}

/// Whether copies of a repeat family prefer GC-rich or GC-poor regions: of two random positions, a copy takes the
/// preferred one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GcPreference {
    GcRich,
    GcPoor,
    NoPreference,
}

/// A repeat family: copies of one consensus sequence that inserted at about the same time.
#[derive(Debug, Clone)]
struct RepeatFamily {
    class: RepeatClass,
    /// Consensus sequence of the family, without the poly-A tail.
    consensus: Vec<u8>,
    /// Age of the family, as the mean divergence of its copies from the consensus (share of bases).
    age: f64,
    /// Share of the final genome sequence that consists of copies of this family, 0 to 1.
    share: f64,
}

/// All repeat families, the oldest first. The number is the bases of copies to write per base of the genome; it is
/// larger than the family's share, because younger copies overwrite some of them.
#[derive(Debug)]
pub(crate) struct RepeatFamilies(Vec<(RepeatFamily, f64)>);

/// The three generations of Alu families: share of the genome, age (divergence), number of subfamilies. The consensus
/// of each generation derives from that of the generation before.
const ALU_GENERATIONS: [(f64, f64, usize); 3] = [(0.026, 0.15, 2), (0.065, 0.08, 6), (0.014, 0.03, 3)];
/// Divergence of an Alu generation from the generation before, and of its subfamilies from the generation.
const ALU_DIVERGENCES: (f64, f64) = (0.04, 0.015);
/// L1 families: share of the genome, youngest and oldest age (divergence), number of subfamilies. Each subfamily
/// derives from the next older one.
const L1_FAMILY: (f64, f64, f64, usize) = (0.17, 0.01, 0.25, 20);
/// Divergence of an L1 subfamily from the next older one.
const L1_SUBFAMILY_DIVERGENCE: f64 = 0.015;
const L1_CONSENSUS_BP: usize = 6_000;
/// Share of the L1 copies that have full length, and mean length of the truncated ones, bp.
const L1_FULL_LENGTH_SHARE_AND_TRUNCATED_BP: (f64, f64) = (0.02, 900.0);
/// Other families: class, share of the genome, youngest and oldest age (divergence), number of families, minimum and
/// maximum length of the consensus (bp).
const OTHER_FAMILIES: [(RepeatClass, f64, f64, f64, usize, usize, usize); 4] = [
    (RepeatClass::Ancient, 0.035, 0.25, 0.30, 3, 3_000, 3_300),
    (RepeatClass::Ancient, 0.028, 0.24, 0.30, 4, 250, 270),
    (RepeatClass::Dna, 0.035, 0.15, 0.28, 40, 180, 2_500),
    (RepeatClass::Ltr, 0.088, 0.08, 0.26, 60, 350, 1_000),
];
/// Mean length of the fragments of ancient repeats and DNA transposons, bp.
const MEAN_FRAGMENT_BP: f64 = 260.0;
/// Minimum length of a repeat copy, bp.
const MIN_COPY_BP: usize = 40;
/// LTR retrotransposons: length of the internal sequence between both LTRs (bp), share of complete proviruses, share of
/// solitary LTRs. The other copies are fragments.
const PROVIRUS_PARTS: (usize, f64, f64) = (5_500, 0.03, 0.6);
/// Standard deviation of a copy's divergence, relative to the age of its family.
const DIVERGENCE_RELATIVE_SD: f64 = 0.2;
/// Minimum and maximum length of the poly-A tail of an Alu or L1 copy before it is mutated, bp.
const POLY_A_TAIL_BP: (usize, usize) = (8, 35);

impl RepeatFamilies {
    /// Creates all repeat families with random consensus sequences, which are not human.
    pub(super) fn with_random_consensus_sequences(rng: &mut Rng) -> Self {
        let mut all = vec![];
        add_alu_families(&mut all, rng);
        add_l1_families(&mut all, rng);
        for (class, share, young, old, families, shortest, longest) in OTHER_FAMILIES {
            for i in 0..families {
                let end = draw_bases(rng.draw_log_uniform(shortest, longest), 0.42, rng);
                let consensus = match class {
                    RepeatClass::Ltr => {
                        [&end, &draw_bases(PROVIRUS_PARTS.0, 0.42, rng), &end].map(Vec::as_slice).concat()
                    }
                    _ => end,
                };
                let age = interpolate(young, old, i, families);
                all.push(RepeatFamily { class, consensus, age, share: share / families as f64 });
            }
        }
        all.sort_by(|a, b| b.age.total_cmp(&a.age));
        // Later copies overwrite earlier ones: with p bases written per base, exp(-p) of the earlier sequence stays.
        let mut uncovered = 1.0;
        let mut put_in: Vec<f64> = vec![];
        for family in all.iter().rev() {
            put_in.push(-(1.0 - family.share / uncovered).ln());
            uncovered -= family.share;
        }
        put_in.reverse();
        RepeatFamilies(all.into_iter().zip(put_in).collect())
    }

    /// Overwrites random positions of the sequence with repeat copies, the oldest first; the length of the sequence
    /// does not change. Calls `on_placed` with class, position and length of each copy.
    pub(super) fn overwrite_with_repeat_copies(
        &self,
        seq: &mut [u8],
        isochores: &Isochores,
        rng: &mut Rng,
        on_placed: &mut impl FnMut(RepeatClass, usize, usize),
    ) {
        let mut copy = vec![];
        for (family, per_base) in &self.0 {
            let mut left = per_base * seq.len() as f64;
            while left > 0.0 {
                family.draw_copy(&mut copy, rng);
                // Write the wanted amount on average, also on the smallest chromosome.
                if left < copy.len() as f64 && !rng.draw_bernoulli(left / copy.len() as f64) {
                    break;
                }
                left -= copy.len() as f64;
                let at = family.draw_position(seq.len(), isochores, rng);
                let room = copy.len().min(seq.len() - at);
                seq[at..at + room].copy_from_slice(&copy[..room]);
                on_placed(family.class, at, room);
            }
        }
    }
}

/// Returns the `i`-th of `n` evenly spaced values from `low` to `high`.
fn interpolate(low: f64, high: f64, i: usize, n: usize) -> f64 {
    low + (high - low) * i as f64 / (n - 1).max(1) as f64
}

fn add_alu_families(all: &mut Vec<RepeatFamily>, rng: &mut Rng) {
    // The right arm has 31 bases more than the left one. An A-rich linker is between them.
    let left = draw_bases(125, 0.6, rng);
    let mut right = create_mutated_copy(&left, 0.15, rng);
    right.splice(60..60, draw_bases(31, 0.6, rng));
    let mut ancestor = [left.as_slice(), b"AAAAATACAAAA", right.as_slice()].concat();
    for (share, age, subfamilies) in ALU_GENERATIONS {
        ancestor = create_mutated_copy(&ancestor, ALU_DIVERGENCES.0, rng);
        for i in 0..subfamilies {
            let consensus = create_mutated_copy(&ancestor, ALU_DIVERGENCES.1, rng);
            let age = age * interpolate(1.25, 0.75, i, subfamilies);
            all.push(RepeatFamily { class: RepeatClass::Alu, consensus, age, share: share / subfamilies as f64 });
        }
    }
}

fn add_l1_families(all: &mut Vec<RepeatFamily>, rng: &mut Rng) {
    let (share, young, old, subfamilies) = L1_FAMILY;
    let mut consensus = draw_bases(L1_CONSENSUS_BP, 0.42, rng);
    for i in 0..subfamilies {
        consensus = create_mutated_copy(&consensus, L1_SUBFAMILY_DIVERGENCE, rng);
        let age = interpolate(old, young, i, subfamilies);
        all.push(RepeatFamily {
            class: RepeatClass::L1,
            consensus: consensus.clone(),
            age,
            share: share / subfamilies as f64,
        });
    }
}

impl RepeatFamily {
    /// Draws a copy of the family as it is in the genome today: whole or truncated, mutated and on a random strand.
    /// Replaces the content of `copy`.
    fn draw_copy(&self, copy: &mut Vec<u8>, rng: &mut Rng) {
        copy.clear();
        let divergence = rng.draw_gaussian(self.age, DIVERGENCE_RELATIVE_SD * self.age).clamp(0.002, 0.4);
        let whole = &self.consensus;
        let n = whole.len();
        let rear = |kept: usize| &whole[n - kept.clamp(MIN_COPY_BP, n)..];
        let kept = match self.class {
            RepeatClass::Alu if rng.draw_bernoulli(0.85) => whole,
            RepeatClass::Alu => rear(rng.draw_below(n)),
            RepeatClass::L1 if rng.draw_bernoulli(L1_FULL_LENGTH_SHARE_AND_TRUNCATED_BP.0) => whole,
            RepeatClass::L1 => rear(draw_exponential_length(L1_FULL_LENGTH_SHARE_AND_TRUNCATED_BP.1, rng)),
            RepeatClass::Ltr => self.draw_provirus_part(rng),
            RepeatClass::Ancient | RepeatClass::Dna => draw_fragment(whole, rng),
        };
        append_mutated_copy(copy, kept, divergence, rng);
        if matches!(self.class, RepeatClass::Alu | RepeatClass::L1) {
            let tail = vec![b'A'; POLY_A_TAIL_BP.0 + rng.draw_below(POLY_A_TAIL_BP.1 - POLY_A_TAIL_BP.0 + 1)];
            append_mutated_copy(copy, &tail, divergence / 2.0, rng);
        }
        if rng.draw_bernoulli(0.5) {
            *copy = dna::reverse_complement(copy);
        }
    }

    fn draw_provirus_part(&self, rng: &mut Rng) -> &[u8] {
        let end = (self.consensus.len() - PROVIRUS_PARTS.0) / 2;
        match rng.draw_unit_interval() {
            part if part < PROVIRUS_PARTS.1 => &self.consensus,
            part if part < PROVIRUS_PARTS.1 + PROVIRUS_PARTS.2 => &self.consensus[..end],
            _ => draw_fragment(&self.consensus, rng),
        }
    }

    fn draw_position(&self, length: usize, isochores: &Isochores, rng: &mut Rng) -> usize {
        let lean = match self.class {
            RepeatClass::Alu => GcPreference::GcRich,
            RepeatClass::L1 => GcPreference::GcPoor,
            _ => GcPreference::NoPreference,
        };
        let place = rng.draw_below(length);
        if lean == GcPreference::NoPreference {
            return place;
        }
        let other = rng.draw_below(length);
        let richer = isochores.gc_content_at(other) > isochores.gc_content_at(place);
        if richer == (lean == GcPreference::GcRich) { other } else { place }
    }
}

/// Draws a random fragment of a consensus sequence.
fn draw_fragment<'a>(whole: &'a [u8], rng: &mut Rng) -> &'a [u8] {
    let length = draw_exponential_length(MEAN_FRAGMENT_BP, rng).clamp(MIN_COPY_BP, whole.len());
    let start = rng.draw_below(whole.len() - length + 1);
    &whole[start..start + length]
}
