//! What reads say that their molecules did not: learned from the samples' own reads.
//!
//! Reads of both samples are held against the sequence they were laid on, away from its changes. Three things come of it:
//! how often a base of each quality is wrong; how often each base is read as each other by the orientation of the pair,
//! which tells damage of one strand (oxidised guanine reads as T, deaminated cytosine too) from errors of the sequencer;
//! and how often tandem repeats change their length ([`crate::slippage`]).

use genuma_reads::dna::code;
use serde::{Deserialize, Serialize};

use crate::packed::Read;
use crate::slippage::{RepeatSlips, Slippage};

/// Probability that a read shows a base that its molecule did not have, whatever its quality says: damage, PCR.
const FLOOR: f64 = 1e-4;
/// Bases of one quality from which its error rate can be told.
const ENOUGH: u64 = 5_000;
/// Bases of a kind from which the rate of a substitution can be told.
const ENOUGH_DAMAGE: u64 = 20_000;
/// Phred quality from which a wrong base is the molecule's rather than the sequencer's.
const GOOD: u8 = 25;
/// Share of a read's bases that may disagree with where it lies before it is taken for a stranger.
pub(crate) const STRANGER: f64 = 0.06;

/// How often bases were right and wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// By quality: all and wrong ones.
    quality: [[u64; 2]; 64],
    /// Good bases by sample, orientation of the pair, base of the sequence and base read.
    read_as: Vec<ReadAs>,
}

/// Good bases of a sample, by orientation of the pair, base of the sequence and base read.
type ReadAs = [[[u64; 4]; 4]; 2];

impl Default for Tally {
    /// Of a normal and a tumour.
    fn default() -> Tally {
        Tally::of_samples(2)
    }
}

/// A read on a sequence.
#[derive(Debug, Clone)]
pub struct OnSequence<'a> {
    /// Of which sample.
    pub sample: u8,
    /// Whether read 1 of its pair runs with the sequence, or read 2 against it.
    pub first_forward: bool,
    /// Where it begins.
    pub at: i32,
    /// The read along the sequence.
    pub read: &'a Read,
}

/// Share of the reads at a column from which differing ones are an allele or another place of the genome.
const ALLELE: f64 = 0.04;

impl Tally {
    /// Of so many samples, without bases.
    pub fn of_samples(samples: usize) -> Tally {
        Tally { quality: [[0; 2]; 64], read_as: vec![ReadAs::default(); samples] }
    }

    /// Compares reads with the sequence they lie on, but for columns that are `left_out`. Columns where several reads differ
    /// hold a variant or a paralogue, not errors.
    pub fn of(seq: &[u8], left_out: &[bool], reads: &[OnSequence<'_>]) -> Tally {
        let (mut differing, mut depth) = (vec![0u32; seq.len()], vec![0u32; seq.len()]);
        let samples = reads.iter().map(|on| usize::from(on.sample) + 1).fold(2, usize::max);
        let mut tally = Tally::of_samples(samples);
        let mut kept = Vec::with_capacity(reads.len());
        for on in reads {
            let from = (-on.at).max(0) as usize;
            let start = (on.at.max(0) as usize).min(seq.len());
            let bases = on.read.seq.get(from..).unwrap_or_default();
            let beside = &seq[start..];
            let wrong = bases.iter().zip(beside).filter(|(b, s)| b != s && **b != b'N').count();
            let compared = bases.len().min(beside.len());
            // More than a few differences: another place, or the far side of an insertion or deletion.
            if wrong as f64 > STRANGER * compared as f64 {
                continue;
            }
            for (i, (b, s)) in bases.iter().zip(beside).enumerate() {
                depth[start + i] += 1;
                differing[start + i] += u32::from(b != s);
            }
            kept.push((on, from, start, compared));
        }
        let counts = |column: usize| {
            !left_out[column] && f64::from(differing[column]) <= (f64::from(depth[column]) * ALLELE).max(1.0)
        };
        for (on, from, start, compared) in kept {
            for i in (0..compared).filter(|i| counts(start + i)) {
                let (b, s) = (code(on.read.seq[from + i]), code(seq[start + i]));
                if b < 4 && s < 4 {
                    let quality = on.read.qual[from + i].min(63);
                    tally.quality[usize::from(quality)][0] += 1;
                    tally.quality[usize::from(quality)][1] += u64::from(b != s);
                    if quality >= GOOD {
                        let by = &mut tally.read_as[usize::from(on.sample)][usize::from(on.first_forward)];
                        by[usize::from(s)][usize::from(b)] += 1;
                    }
                }
            }
        }
        tally
    }

    /// Share of wrong bases of a Phred quality; `None` when there are too few of them to tell.
    pub fn error_rate(&self, quality: usize) -> Option<f64> {
        let [all, wrong] = self.quality[quality];
        (all >= ENOUGH).then(|| wrong as f64 / all as f64)
    }

    /// Share of the good bases of a kind that are read as another, in one sample and orientation; `None` when there are too few.
    pub fn read_as(&self, sample: u8, first_forward: bool, from: u8, to: u8) -> Option<f64> {
        let by = &self.read_as[usize::from(sample)][usize::from(first_forward)][usize::from(from)];
        let all = by.iter().sum::<u64>();
        (all >= ENOUGH_DAMAGE).then(|| by[usize::from(to)] as f64 / all as f64)
    }

    /// Adds another tally, of as many samples or fewer.
    pub fn add(&mut self, other: &Tally) {
        let add = |to: &mut u64, n: &u64| *to += n;
        self.quality
            .as_flattened_mut()
            .iter_mut()
            .zip(other.quality.as_flattened())
            .for_each(|(a, b)| add(a, b));
        for (mine, others) in self.read_as.iter_mut().zip(&other.read_as) {
            let (mine, others) = (mine.as_flattened_mut(), others.as_flattened());
            mine.as_flattened_mut().iter_mut().zip(others.as_flattened()).for_each(|(a, b)| add(a, b));
        }
    }
}

/// How often bases of one quality are wrong.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Wrong {
    /// Phred quality.
    pub quality: u8,
    /// Share of the bases of this quality that differ from where they lie.
    pub share: f64,
}

/// How often good bases of one kind are read as another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Substitution {
    /// 0 normal, 1 tumour, or the number of another tumour.
    pub sample: u8,
    /// Whether read 1 of the pair runs with the reference (F1R2), or read 2 (F2R1).
    pub first_forward: bool,
    /// The base of the molecule.
    pub from: char,
    /// What is read.
    pub to: char,
    /// Share of the bases.
    pub share: f64,
}

/// What was learned of the samples' errors, for people. What there are too few bases or repeats of to tell is not in it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Learned {
    /// By quality, ascending.
    pub wrong: Vec<Wrong>,
    /// By sample, orientation and bases.
    pub substitutions: Vec<Substitution>,
    /// By unit and copies, ascending.
    pub slips: Vec<RepeatSlips>,
}

impl Learned {
    fn of(tally: &Tally, slippage: &Slippage) -> Learned {
        let wrong = |q: usize| tally.error_rate(q).map(|share| Wrong { quality: q as u8, share });
        let mut substitutions = Vec::new();
        let samples = (0..).take(tally.read_as.len());
        for (sample, first_forward) in samples.flat_map(|sample| [(sample, false), (sample, true)]) {
            for (from, to) in
                (0..4u8).flat_map(|from| (0..4).map(move |to| (from, to))).filter(|(f, t)| f != t)
            {
                let share = tally.read_as(sample, first_forward, from, to);
                let [from, to] = [from, to].map(|base| char::from(b"ACGT"[usize::from(base)]));
                substitutions.extend(share.map(|share| Substitution {
                    sample,
                    first_forward,
                    from,
                    to,
                    share,
                }));
            }
        }
        Learned { wrong: (0..64).filter_map(wrong).collect(), substitutions, slips: slippage.seen() }
    }
}

/// Natural-log probabilities of what a read shows, given its molecule.
#[derive(Debug, Clone)]
pub struct Errors {
    /// By quality: the base is right.
    pub(crate) right: [f64; 64],
    /// By quality: it is one particular wrong base.
    wrong: [f64; 64],
    /// By sample, orientation, base of the molecule and base read: damage.
    damage: Vec<[[[f64; 4]; 4]; 2]>,
    /// Changes of length of tandem repeats.
    pub slippage: Slippage,
    /// What all this was made of.
    pub learned: Learned,
}

impl Errors {
    /// Takes the reported qualities at their word where the reads bear them out, and lowers them where bases of that
    /// quality, or in that orientation, are wrong more often.
    pub fn of(tally: &Tally, slippage: Slippage) -> Errors {
        let error = |q: usize| {
            let reported = 10f64.powf(-(q as f64) / 10.0);
            reported.max(tally.error_rate(q).unwrap_or(0.0)).clamp(FLOOR, 0.7)
        };
        let damage = |sample: u8, first_forward: bool, from: u8, to: u8| {
            tally
                .read_as(sample, first_forward, from, to)
                .map_or(f64::NEG_INFINITY, |rate| rate.max(1e-9).ln())
        };
        Errors {
            right: std::array::from_fn(|q| (1.0 - error(q)).ln()),
            wrong: std::array::from_fn(|q| (error(q) / 3.0).ln()),
            damage: (0..)
                .take(tally.read_as.len())
                .map(|s| {
                    let damage = |f: bool, from| [0, 1, 2, 3].map(|to| damage(s, f, from, to));
                    [false, true].map(|f| [0, 1, 2, 3].map(|from| damage(f, from)))
                })
                .collect(),
            learned: Learned::of(tally, &slippage),
            slippage,
        }
    }

    /// How many samples they are of.
    pub fn samples(&self) -> usize {
        self.damage.len()
    }

    /// The substitutions of a sample, with how often one orientation of pairs shows them.
    pub(crate) fn damage_of(&self, sample: u8, first_forward: bool) -> &[[f64; 4]; 4] {
        &self.damage[usize::from(sample)][usize::from(first_forward)]
    }

    /// Probability that a molecule of a sample in one orientation shows `read` for `molecule`, in both mates and all copies, at least `floor`.
    pub(crate) fn damaged(
        &self,
        sample: u8,
        first_forward: bool,
        [molecule, read]: [u8; 2],
        floor: f64,
    ) -> f64 {
        let (from, to) = (usize::from(code(molecule)), usize::from(code(read)));
        let rate = self.damage_of(sample, first_forward).get(from).and_then(|row| row.get(to));
        rate.map_or(floor, |ln| ln.exp().max(floor))
    }

    /// A wrong base of some quality.
    pub(crate) fn wrong(&self, quality: u8, damage: &[[f64; 4]; 4], molecule: u8, read: u8) -> f64 {
        let damaged = match (code(molecule), code(read)) {
            (m @ 0..4, r @ 0..4) => damage[usize::from(m)][usize::from(r)],
            _ => f64::NEG_INFINITY,
        };
        self.wrong[usize::from(quality.min(63))].max(damaged)
    }
}
