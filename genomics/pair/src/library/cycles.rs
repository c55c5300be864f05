//! What reads are like cycle by cycle, and where overlapping mates say otherwise.

use genuma_reads::packed::Codes;
use genuma_reads::{Mate, dna};
use serde::{Deserialize, Serialize};

use super::overlap::facing;

/// Cycles that are told apart; those beyond are not looked at.
pub const MOST: usize = 1024;
/// Qualities that are told apart.
pub const QUALITIES: usize = 64;
/// Qualities up to this one say that a base is worth nothing.
const WORTHLESS: usize = 2;
/// Units of the chance that a base is wrong.
pub(crate) const CHANCE: f64 = 1e9;

/// What the bases of one cycle of one mate are like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cycle {
    /// A, C, G, T and what is none of them.
    pub bases: [u64; 5],
    /// Sum of the qualities.
    pub quality: u64,
    /// Bases of quality 30 and more.
    pub good: u64,
    /// Bases that the sequencer does not call worthless, and what their qualities say of how many are wrong, in billionths.
    pub worth: u64,
    /// See above.
    pub chance: u64,
    /// Bases that face one of the other mate.
    pub faced: u64,
    /// Half the bases of them that are taken for wrong.
    pub wrong: u64,
}

impl Cycle {
    fn add(&mut self, other: &Cycle) {
        self.bases.iter_mut().zip(other.bases).for_each(|(sum, n)| *sum += n);
        self.quality += other.quality;
        self.good += other.good;
        self.worth += other.worth;
        self.chance += other.chance;
        self.faced += other.faced;
        self.wrong += other.wrong;
    }

    /// All bases.
    pub fn all(&self) -> u64 {
        self.bases.iter().sum()
    }
}

/// Where overlapping mates say otherwise. Numbers of wrong bases are halves: where both qualities are equal, either may be wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Disagreements {
    /// Bases compared, of both mates.
    pub faced: u64,
    /// Half-bases taken for wrong.
    pub wrong: u64,
    /// The sum, over pairs, of the squares of wrong bases: they come together in poor pairs.
    pub squares: u64,
    /// Half-bases by what the molecule has and what was read instead.
    pub substitutions: [[u64; 4]; 4],
    /// Bases that face another, and half-bases taken for wrong, by their quality.
    pub(crate) by_quality: Vec<[u64; 2]>,
    /// What the qualities of the bases compared say of how many are wrong, in billionths.
    pub chance: u64,
}

impl Disagreements {
    fn add(&mut self, other: &Disagreements) {
        self.faced += other.faced;
        self.wrong += other.wrong;
        self.squares += other.squares;
        self.chance += other.chance;
        for (sum, n) in
            self.substitutions.as_flattened_mut().iter_mut().zip(other.substitutions.as_flattened())
        {
            *sum += n;
        }
        self.by_quality.resize(self.by_quality.len().max(other.by_quality.len()), [0; 2]);
        for (sum, n) in self.by_quality.iter_mut().zip(&other.by_quality) {
            sum.iter_mut().zip(n).for_each(|(sum, n)| *sum += n);
        }
    }
}

/// All cycles of both mates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cycles {
    /// By mate and cycle.
    pub of_mates: [Vec<Cycle>; 2],
    /// What overlaps say.
    pub(crate) disagreements: Disagreements,
}

/// The chance that a base of each quality is wrong, in billionths.
#[derive(Debug, Clone)]
pub(crate) struct Chances([u64; QUALITIES]);

impl Default for Chances {
    fn default() -> Self {
        // Of quality 0 and 1 more than three of four would be wrong.
        Chances(std::array::from_fn(|q| (CHANCE * 10f64.powf(-(q as f64) / 10.0).min(0.75)).round() as u64))
    }
}

fn quality(letter: u8) -> usize {
    usize::from(letter.saturating_sub(b'!')).min(QUALITIES - 1)
}

impl Cycles {
    /// Looks at mates as they came.
    pub fn see(&mut self, mates: [Mate<'_>; 2], chances: &Chances) {
        for (cycles, mate) in self.of_mates.iter_mut().zip(mates) {
            let seen = mate.seq.len().min(MOST);
            if cycles.len() < seen {
                cycles.resize(seen, Cycle::default());
            }
            for ((cycle, &base), &letter) in cycles.iter_mut().zip(mate.seq).zip(mate.qual) {
                let quality = quality(letter);
                cycle.bases[usize::from(dna::code(base))] += 1;
                cycle.quality += quality as u64;
                cycle.good += u64::from(quality >= 30);
                cycle.worth += u64::from(quality > WORTHLESS);
                cycle.chance += if quality > WORTHLESS { chances.0[quality] } else { 0 };
            }
        }
    }

    /// Compares mates, as they were cut, that overlap in a fragment of so many bases.
    pub fn compare(&mut self, codes: [&Codes; 2], mates: [Mate<'_>; 2], fragment: usize, chances: &Chances) {
        let [one, two] = codes.map(Codes::codes);
        let [of_one, of_two] = &mut self.of_mates;
        let told = &mut self.disagreements;
        told.by_quality.resize(QUALITIES, [0; 2]);
        let mut wrong = 0;
        for i in facing(one.len(), two.len(), fragment) {
            let j = fragment - 1 - i;
            let (a, b) = (one[i], two[j]);
            if a >= 4 || b >= 4 || i.max(j) >= MOST {
                continue;
            }
            let [p, q] = [quality(mates[0].qual[i]), quality(mates[1].qual[j])];
            told.faced += 2;
            told.chance += chances.0[p] + chances.0[q];
            of_one[i].faced += 1;
            of_two[j].faced += 1;
            told.by_quality[p][0] += 1;
            told.by_quality[q][0] += 1;
            if a == b ^ 3 {
                continue;
            }
            wrong += 1;
            let [halves_of_one, halves_of_two] = match p.cmp(&q) {
                std::cmp::Ordering::Less => [2, 0],
                std::cmp::Ordering::Equal => [1, 1],
                std::cmp::Ordering::Greater => [0, 2],
            };
            told.wrong += 2;
            of_one[i].wrong += halves_of_one;
            of_two[j].wrong += halves_of_two;
            told.by_quality[p][1] += halves_of_one;
            told.by_quality[q][1] += halves_of_two;
            told.substitutions[usize::from(b ^ 3)][usize::from(a)] += halves_of_one;
            told.substitutions[usize::from(a ^ 3)][usize::from(b)] += halves_of_two;
        }
        told.squares += wrong * wrong;
    }

    /// Adds what others saw.
    pub fn add(&mut self, other: &Cycles) {
        for (cycles, others) in self.of_mates.iter_mut().zip(&other.of_mates) {
            cycles.resize(cycles.len().max(others.len()), Cycle::default());
            cycles.iter_mut().zip(others).for_each(|(sum, cycle)| sum.add(cycle));
        }
        self.disagreements.add(&other.disagreements);
    }
}
