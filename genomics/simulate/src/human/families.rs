//! Interspersed repeats: families that copied themselves all over the genome for a while, long ago or not so long ago.

use genuma_reads::dna;

use super::bases::{aged, exponential, extend_aged, random};
use super::isochores::Isochores;
use crate::rng::Rng;

/// What a family is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Short, the most frequent one, of two arms and a tail of A.
    Alu,
    /// Long; most copies have their 3' end only.
    L1,
    /// Pieces of old L2 and MIR.
    Old,
    /// DNA transposons.
    Dna,
    /// Retroviruses, mostly one of their long terminal repeats.
    Ltr,
}

/// Which of two random places a copy takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lean {
    Rich,
    Poor,
    Neither,
}

/// Copies of one kind and age.
#[derive(Debug, Clone)]
struct Family {
    class: Class,
    /// What its copies are copies of, without a tail.
    consensus: Vec<u8>,
    /// Mean divergence of the copies from it.
    age: f64,
    /// Share of the sequence that it makes up in the end.
    share: f64,
}

/// All families, the oldest first, each with the bases put in per base of the genome.
#[derive(Debug)]
pub(crate) struct Families(Vec<(Family, f64)>);

/// Share of the sequence, age and subfamilies of the three generations of Alu. Each generation comes from the one
/// before.
const ALU: [(f64, f64, usize); 3] = [(0.026, 0.15, 2), (0.065, 0.08, 6), (0.014, 0.03, 3)];
/// Difference of a generation from the one before, and of its subfamilies from it.
const ALU_STEPS: (f64, f64) = (0.04, 0.015);
/// Share, youngest and oldest age, subfamilies. Each comes from the next older one.
const L1: (f64, f64, f64, usize) = (0.17, 0.01, 0.25, 20);
/// Difference of a subfamily of L1 from the next older one.
const L1_STEP: f64 = 0.015;
const L1_LENGTH: usize = 6_000;
/// Share of the copies of L1 that are whole, and the mean length of the others, bp.
const L1_COPIES: (f64, f64) = (0.02, 900.0);
/// Class, share, youngest and oldest age, families, shortest and longest consensus, bp.
const OTHERS: [(Class, f64, f64, f64, usize, usize, usize); 4] = [
    (Class::Old, 0.035, 0.25, 0.30, 3, 3_000, 3_300),
    (Class::Old, 0.028, 0.24, 0.30, 4, 250, 270),
    (Class::Dna, 0.035, 0.15, 0.28, 40, 180, 2_500),
    (Class::Ltr, 0.088, 0.08, 0.26, 60, 350, 1_000),
];
/// Mean length of the pieces that are left of old copies, bp.
const PIECE: f64 = 260.0;
/// Shortest copy, bp.
const SHORTEST: usize = 40;
/// Of a retrovirus: what lies between its ends (bp), share of the copies that are whole, and of those that are one end.
const PROVIRUS: (usize, f64, f64) = (5_500, 0.03, 0.6);
/// Standard deviation of a copy's divergence, relative to its family's age.
const SPREAD: f64 = 0.2;
/// Tails of A, bp.
const TAIL: (usize, usize) = (8, 35);

impl Families {
    /// Families of a genome that has never been. Their sequences are random, not those of human ones.
    pub fn new(rng: &mut Rng) -> Self {
        let mut all = vec![];
        alu(&mut all, rng);
        l1(&mut all, rng);
        for (class, share, young, old, families, shortest, longest) in OTHERS {
            for i in 0..families {
                let end = random(rng.log_uniform(shortest, longest), 0.42, rng);
                let consensus = match class {
                    Class::Ltr => [&end, &random(PROVIRUS.0, 0.42, rng), &end].map(Vec::as_slice).concat(),
                    _ => end,
                };
                let age = between(young, old, i, families);
                all.push(Family { class, consensus, age, share: share / families as f64 });
            }
        }
        all.sort_by(|a, b| b.age.total_cmp(&a.age));
        // What is put in later covers a part of what was there: with as much as p per base put in, exp(-p) stays.
        let mut uncovered = 1.0;
        let mut put_in: Vec<f64> = vec![];
        for family in all.iter().rev() {
            put_in.push(-(1.0 - family.share / uncovered).ln());
            uncovered -= family.share;
        }
        put_in.reverse();
        Families(all.into_iter().zip(put_in).collect())
    }

    /// Puts copies over the sequence, the oldest first, so that lengths stay as they are. `put` is told of each.
    pub fn scatter(
        &self,
        seq: &mut [u8],
        isochores: &Isochores,
        rng: &mut Rng,
        put: &mut impl FnMut(Class, usize, usize),
    ) {
        let mut copy = vec![];
        for (family, per_base) in &self.0 {
            let mut left = per_base * seq.len() as f64;
            while left > 0.0 {
                family.copy(&mut copy, rng);
                // As much as is wanted on average, in the smallest chromosome, too.
                if left < copy.len() as f64 && !rng.chance(left / copy.len() as f64) {
                    break;
                }
                left -= copy.len() as f64;
                let at = family.place(seq.len(), isochores, rng);
                let room = copy.len().min(seq.len() - at);
                seq[at..at + room].copy_from_slice(&copy[..room]);
                put(family.class, at, room);
            }
        }
    }
}

/// The `i`-th of `n` values from `low` to `high`.
fn between(low: f64, high: f64, i: usize, n: usize) -> f64 {
    low + (high - low) * i as f64 / (n - 1).max(1) as f64
}

fn alu(all: &mut Vec<Family>, rng: &mut Rng) {
    // The right arm has 31 bases more than the left one; A-rich sequence lies between them.
    let left = random(125, 0.6, rng);
    let mut right = aged(&left, 0.15, rng);
    right.splice(60..60, random(31, 0.6, rng));
    let mut ancestor = [left.as_slice(), b"AAAAATACAAAA", right.as_slice()].concat();
    for (share, age, subfamilies) in ALU {
        ancestor = aged(&ancestor, ALU_STEPS.0, rng);
        for i in 0..subfamilies {
            let consensus = aged(&ancestor, ALU_STEPS.1, rng);
            let age = age * between(1.25, 0.75, i, subfamilies);
            all.push(Family { class: Class::Alu, consensus, age, share: share / subfamilies as f64 });
        }
    }
}

fn l1(all: &mut Vec<Family>, rng: &mut Rng) {
    let (share, young, old, subfamilies) = L1;
    let mut consensus = random(L1_LENGTH, 0.42, rng);
    for i in 0..subfamilies {
        consensus = aged(&consensus, L1_STEP, rng);
        let age = between(old, young, i, subfamilies);
        all.push(Family {
            class: Class::L1,
            consensus: consensus.clone(),
            age,
            share: share / subfamilies as f64,
        });
    }
}

impl Family {
    /// Makes a copy as it is found today, on either strand.
    fn copy(&self, copy: &mut Vec<u8>, rng: &mut Rng) {
        copy.clear();
        let divergence = rng.normal(self.age, SPREAD * self.age).clamp(0.002, 0.4);
        let whole = &self.consensus;
        let n = whole.len();
        let rear = |kept: usize| &whole[n - kept.clamp(SHORTEST, n)..];
        let kept = match self.class {
            Class::Alu if rng.chance(0.85) => whole,
            Class::Alu => rear(rng.below(n)),
            Class::L1 if rng.chance(L1_COPIES.0) => whole,
            Class::L1 => rear(exponential(L1_COPIES.1, rng)),
            Class::Ltr => self.part_of_provirus(rng),
            Class::Old | Class::Dna => piece(whole, rng),
        };
        extend_aged(copy, kept, divergence, rng);
        if matches!(self.class, Class::Alu | Class::L1) {
            let tail = vec![b'A'; TAIL.0 + rng.below(TAIL.1 - TAIL.0 + 1)];
            extend_aged(copy, &tail, divergence / 2.0, rng);
        }
        if rng.chance(0.5) {
            *copy = dna::revcomp(copy);
        }
    }

    fn part_of_provirus(&self, rng: &mut Rng) -> &[u8] {
        let end = (self.consensus.len() - PROVIRUS.0) / 2;
        match rng.unit() {
            part if part < PROVIRUS.1 => &self.consensus,
            part if part < PROVIRUS.1 + PROVIRUS.2 => &self.consensus[..end],
            _ => piece(&self.consensus, rng),
        }
    }

    fn place(&self, length: usize, isochores: &Isochores, rng: &mut Rng) -> usize {
        let lean = match self.class {
            Class::Alu => Lean::Rich,
            Class::L1 => Lean::Poor,
            _ => Lean::Neither,
        };
        let place = rng.below(length);
        if lean == Lean::Neither {
            return place;
        }
        let other = rng.below(length);
        let richer = isochores.gc(other) > isochores.gc(place);
        if richer == (lean == Lean::Rich) { other } else { place }
    }
}

/// A random piece.
fn piece<'a>(whole: &'a [u8], rng: &mut Rng) -> &'a [u8] {
    let length = exponential(PIECE, rng).clamp(SHORTEST, whole.len());
    let start = rng.below(whole.len() - length + 1);
    &whole[start..start + length]
}
