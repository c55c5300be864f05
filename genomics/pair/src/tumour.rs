//! How pure a tumour is, and how many copies of its genome its cells have.
//!
//! At each site where the normal has two alleles the tumour's reads show their balance and, beside the normal's, how many there are. Both follow from the
//! share of tumour cells and from how many copies of each allele these have. Sites side by side have them in common ([`crate::segments`]); changes of the tumour alone have shares
//! of reads that follow from the same numbers. What makes all of it likeliest is told, with all that is about as likely ([`crate::fit`]).

use serde::{Deserialize, Serialize};

use crate::changes::{Change, Changes};
use crate::depths::Deep;
use crate::fit::{Fit, Model};
use crate::interval::Estimate;
use crate::others::Beside;
use crate::roots::Site;
use crate::segments::{Balances, Place, segments, varies};

/// What the tumour is like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Clone {
    /// Share of the cells that are the tumour's; nothing if neither copies nor changes tell.
    pub purity: Option<Estimate>,
    /// Copies of the genome in a tumour cell, on average.
    pub ploidy: Option<Estimate>,
    /// Share of the genome of which one parent's copy is lost.
    pub lost: Option<f64>,
    /// Other purities that explain the samples about as well, or not much worse.
    pub also: Vec<Other>,
    /// What is to be known of it, or why there is nothing.
    pub word: String,
    /// Sites of two alleles that were looked at.
    pub sites: u64,
    /// Changes of the tumour, without what is reckoned to be inherited or another person's; of more than 2,000 every second or less is looked at, and counts for those left out.
    pub changes: u64,
    /// Stretches of the genome, each with its own copies.
    pub segments: u64,
}

/// Another explanation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Other {
    /// Share of the cells that are the tumour's.
    pub purity: f64,
    /// Copies of the genome in a tumour cell.
    pub ploidy: f64,
    /// Share of the genome of which one parent's copy is lost.
    pub lost: f64,
    /// How many times less likely it is than the best, in natural logarithms.
    pub less: f64,
}

/// What is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// Sites of two alleles in the normal.
    pub het: &'a [(Site, Place)],
    /// Roots of single places.
    pub deep: &'a [(Deep, Place)],
    /// The tumour's own changes.
    pub changes: &'a [Change],
    /// What there may be among them.
    pub beside: Beside<'a>,
    /// Reads of the normal that cover a place.
    pub usual: f64,
    /// Bases of a root.
    pub bases: u32,
}

/// Fewest sites of two alleles from which balances tell anything; fewest changes of a call, and of roots, some of which are no changes, which matters where few are
/// seen.
const SITES: usize = 150;
const CHANGES: [f64; 2] = [12.0, 50.0];
/// Fewest roots whose places are known.
const ROOTS: usize = 2_000;
/// Fewest molecules of the normal at a place: below, which sites have two alleles is chance.
const SHALLOW: f64 = 5.0;
/// A normal whose balances of alleles vary so much, of the largest variance that there is, has more than two copies.
const UNBALANCED: f64 = 0.12;
/// How much the shares of called changes vary; those of others beside the shares of sites of two alleles, some of which are in repeats.
const CALLED: f64 = 0.004;
const COUNTED: f64 = 0.3;
/// Differences in log-likelihood up to which an explanation is within the interval: one of about the same copies of the genome, another one; and up to which it is
/// told beside the best. For one number chance alone makes it 1.92: simulated tumours were off by some more.
const WITHIN: [f64; 2] = [4.0, 2.5];
/// Copies of the genome that are about the same.
const ALIKE: f64 = 0.2;
const BESIDE: f64 = 7.0;
/// What an interval is wide at least, to either side: of purity, and of copies.
const LEAST: [f64; 2] = [0.01, 0.03];
/// Widest intervals of purity and copies that say something.
const WIDEST: [f64; 2] = [0.45, 1.0];
/// Purity below which chance looks like copies.
const HARDLY: f64 = 0.1;
/// Share of the genome that may be in no state that is known.
const ODD: f64 = 0.3;

/// What a tumour is like.
pub fn clone(seen: &Seen<'_>) -> Clone {
    let fits = |(site, _): &&(Site, Place)| {
        let depth = f64::from(site.normal[0] + site.normal[1]);
        depth >= 0.6 * seen.usual && depth <= 1.5 * seen.usual && site.tumour[0] + site.tumour[1] > 0
    };
    let het: Vec<(Site, Place)> = seen.het.iter().filter(fits).copied().collect();
    let none = |why: &str| Clone {
        purity: None,
        ploidy: None,
        lost: None,
        also: Vec::new(),
        word: why.into(),
        sites: het.len() as u64,
        changes: 0,
        segments: 0,
    };
    if seen.usual < SHALLOW {
        return none("too shallow");
    }
    if seen.deep.iter().filter(|(_, place)| place.is_some()).count() < ROOTS {
        return none("without a reference it is not known which places lie side by side");
    }
    // Most of what has no place is of repeats.
    let varies = varies(het.iter().filter(|(_, place)| place.is_some()).map(|(site, _)| site.normal));
    if het.len() >= SITES && varies > UNBALANCED {
        return none(
            "the alleles of the normal are not half and half: healthy cells have more than two copies, or the normal is mixed",
        );
    }
    let deepest = het.iter().map(|(site, _)| site.tumour[0] + site.tumour[1]).max().unwrap_or(0);
    let mut balances = Balances::new(deepest as usize, varies);
    let parts = segments(&het, seen.deep, &mut balances, seen.bases);
    // A call counts molecules better than roots do.
    let called = seen.beside.zygosities.is_empty();
    let own_varies = if called { CALLED } else { COUNTED * varies };
    let changes = Changes::of(seen.changes, &seen.beside, &parts, seen.bases, own_varies);
    let balanced = het.iter().filter(|(_, place)| place.is_some()).count() >= SITES;
    let none = |why: &str| Clone {
        changes: changes.count.round() as u64,
        segments: parts.len() as u64,
        ..none(why)
    };
    let no_changes = Changes::of(&[], &seen.beside, &parts, seen.bases, 0.0);
    let model = Model::new(
        &parts,
        if changes.count.round() < CHANGES[usize::from(!called)] { &no_changes } else { &changes },
    );
    let kinds = model.best();
    let Some(best) = kinds.first().copied() else { return none("nothing to look at") };
    let near: Vec<Fit> = kinds
        .iter()
        .filter(|fit| fit.log > best.log - BESIDE)
        .flat_map(|fit| model.along(*fit, BESIDE))
        .collect();
    let best = near.iter().copied().max_by(|a, b| a.log.total_cmp(&b.log)).unwrap_or(best);
    if best.odd > ODD {
        return none("no combination of copies explains depths and balances");
    }
    let likely = |fit: &&Fit| {
        let other = usize::from((fit.ploidy - best.ploidy).abs() > ALIKE);
        fit.log > best.log - WITHIN[other]
    };
    let profile = |of: fn(&Fit) -> f64, least: f64, bounds: [f64; 2]| {
        let likely = || near.iter().filter(likely).map(of);
        let value = of(&best);
        Estimate {
            value,
            low: likely().fold(value - least, f64::min).max(bounds[0]).min(value),
            high: likely().fold(value + least, f64::max).min(bounds[1]).max(value),
        }
    };
    let purity = profile(|fit| fit.purity, LEAST[0], [0.0, 1.0]);
    let ploidy = profile(|fit| fit.ploidy, LEAST[1], [0.0, f64::INFINITY]);
    let lost: Vec<f64> = near.iter().filter(likely).map(|fit| fit.lost).collect();
    let wide = |of: Estimate| of.high - of.low;
    let spread = lost.iter().copied().fold(0.0, f64::max) - lost.iter().copied().fold(1.0, f64::min);
    let also: Vec<Other> = kinds
        .iter()
        .filter(|fit| fit.log > best.log - BESIDE)
        .filter(|fit| (fit.purity - best.purity).abs() > 0.05 || (fit.ploidy - best.ploidy).abs() > 0.2)
        .map(|fit| Other { purity: fit.purity, ploidy: fit.ploidy, lost: fit.lost, less: best.log - fit.log })
        .collect();
    let even = best.even > 0.98;
    let few = purity.low < HARDLY;
    let told = wide(purity) <= WIDEST[0] && !few;
    let word = match (told, even, also.is_empty()) {
        (false, false, _) if few => {
            "so few cells are the tumour's, or of so little of its genome copies differ, that purity cannot be told"
        }
        (false, true, _) => "two copies everywhere, and too few changes to tell purity from",
        (false, ..) => "more than one answer: several combinations of copies explain it as well",
        (true, true, _) => "two copies everywhere, as far as can be told: purity is that of the changes",
        (true, false, true) => "as copies have it",
        (true, false, false) => "other combinations of copies explain it not much worse",
    };
    Clone {
        purity: told.then_some(purity),
        ploidy: ((told || even) && wide(ploidy) <= WIDEST[1]).then_some(ploidy),
        lost: (balanced && (told || even) && spread < 0.1).then_some(best.lost),
        also,
        changes: (changes.count * (1.0 - best.foreign)).round() as u64,
        ..none(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that a seed decides.
    struct Random(u64);

    impl Random {
        fn chance(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let x = (self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (x >> 40) as f64 / (1u64 << 24) as f64
        }

        fn poisson(&mut self, mean: f64) -> u32 {
            let (least, mut product, mut n) = ((-mean).exp(), self.chance(), 0);
            while product > least {
                product *= self.chance();
                n += 1;
            }
            n
        }
    }

    /// A sample of a tumour: copies of each sequence of 300,000 bases, of `depth` molecules, with a site of two alleles each `apart` bases and `changes` of its own
    /// in each sequence, each in all copies of an allele, or every other one in one.
    struct Made {
        het: Vec<(Site, Place)>,
        deep: Vec<(Deep, Place)>,
        changes: Vec<Change>,
    }

    fn made(states: &[[u32; 2]], purity: f64, apart: usize, changes: u32, seed: u64) -> Made {
        let states: Vec<[f64; 2]> = states.iter().map(|copies| copies.map(f64::from)).collect();
        made_with(&states, purity, apart, changes, 2, seed)
    }

    /// The same, of which one in so many is in all copies.
    fn made_with(
        states: &[[f64; 2]],
        purity: f64,
        apart: usize,
        changes: u32,
        older: u32,
        seed: u64,
    ) -> Made {
        const LENGTH: u32 = 300_000;
        const DEPTH: f64 = 14.0;
        let mut random = Random(seed);
        let mut made = Made { het: Vec::new(), deep: Vec::new(), changes: Vec::new() };
        for (contig, copies) in (0..).zip(states) {
            let alleles = copies.map(|n| purity * n + 1.0 - purity);
            let all = alleles[0] + alleles[1];
            for at in (0..LENGTH).step_by(150) {
                let depth = [random.poisson(DEPTH), random.poisson(DEPTH * all / 2.0)];
                made.deep.push((Deep { root: 0, depth }, Some((contig, at))));
            }
            for at in (70..LENGTH).step_by(apart) {
                let normal = [0, 1].map(|_| random.poisson(DEPTH / 2.0));
                let turned = usize::from(random.chance() < 0.5);
                let tumour = [turned, 1 - turned].map(|i| random.poisson(DEPTH * alleles[i] / 2.0));
                let (a, b) = (normal[0].min(normal[1]), normal[0] + normal[1]);
                if b >= 8 && tumour[0] + tumour[1] >= 8 && a >= 3 && 4 * a >= b {
                    let site = serde_json::json!({"hash": 0, "root": 0, "normal": normal, "tumour": tumour});
                    made.het.push((serde_json::from_value(site).expect("a site"), Some((contig, at))));
                }
            }
            for i in 0..changes {
                let with = if i % older == 0 { copies[0].max(1.0) } else { 1.0 };
                let mean = DEPTH * purity * with / 2.0;
                let [with, without] = [mean, DEPTH * all / 2.0 - mean].map(|mean| random.poisson(mean));
                made.changes.push(Change {
                    place: Some((contig, 1_000 * i + 500)),
                    molecules: [without, with],
                    normal: 14,
                });
            }
        }
        made
    }

    fn told(made: &Made) -> Clone {
        told_beside(made, Beside { zygosities: &[], het: 0.001, foreign: None, depths: &[] })
    }

    fn told_beside(made: &Made, beside: Beside<'_>) -> Clone {
        let Made { het, deep, changes } = made;
        clone(&Seen { het, deep, changes, beside, usual: 14.0, bases: 29 })
    }

    #[track_caller]
    fn assert_about(found: Option<Estimate>, truth: f64, off: f64, what: &str) {
        let found = found.unwrap_or_else(|| panic!("{what}: nothing is told"));
        assert!((found.value - truth).abs() <= off, "{what}: {truth} is told as {found:?}");
        assert!(
            found.low <= truth + 0.01 && truth - 0.01 <= found.high,
            "{what}: {truth} is not in {found:?}"
        );
    }

    #[test]
    fn purity_ploidy_and_losses_are_those_of_the_mixture() {
        let lost_and_gained =
            [[1, 1], [2, 1], [1, 0], [2, 0], [1, 1], [2, 1], [1, 1], [1, 0], [2, 2], [1, 1]];
        let gained = [[1, 1], [2, 1], [2, 1], [1, 1], [2, 1], [1, 1], [3, 1], [2, 1], [1, 1], [1, 1]];
        let doubled = [[2, 2], [3, 2], [2, 0], [2, 1], [2, 2], [4, 2], [2, 2], [1, 0], [2, 2], [3, 2]];
        for (name, states) in [("mixed", lost_and_gained), ("gained", gained), ("doubled", doubled)] {
            let sum = |of: fn(&[u32; 2]) -> f64| states.iter().map(of).sum::<f64>() / states.len() as f64;
            let ploidy = sum(|s| f64::from(s[0] + s[1]));
            let lost = sum(|s| f64::from(u8::from(s[1] == 0)));
            for (purity, seed) in [(0.3, 11), (0.5, 12), (0.65, 13), (0.8, 14), (0.95, 15)] {
                let found = told(&made(&states, purity, 1_000, 8, seed));
                let what = format!("{name}, {purity}");
                assert_about(found.purity, purity, 0.03, &what);
                assert_about(found.ploidy, ploidy, 0.1, &what);
                assert!(found.lost.is_some_and(|share| (share - lost).abs() < 0.05), "{what}: {found:?}");
            }
        }
    }

    #[test]
    fn without_copies_changes_tell_and_without_either_nothing_does() {
        let even = [[1, 1]; 8];
        let found = told(&made(&even, 0.7, 1_000, 30, 21));
        assert_about(found.purity, 0.7, 0.06, "even");
        assert_about(found.ploidy, 2.0, 0.03, "even");
        let found = told(&made(&even, 0.7, 1_000, 0, 22));
        assert_eq!((found.purity, found.lost), (None, Some(0.0)));
        assert!(found.word.contains("too few changes"), "{}", found.word);
        // No tumour at all.
        assert_eq!(told(&made(&even, 0.0, 1_000, 0, 23)).purity, None);
    }

    /// Where many stretches differ in the same part of the cells they are of a subclone.
    #[test]
    fn a_large_subclone_does_not_change_the_purity() {
        for (part, purity, seed) in [(0.35, 0.8, 51), (0.35, 0.5, 52), (0.25, 0.7, 53), (0.7, 0.8, 54)] {
            let (more, less) = (1.0 + part, 1.0 - part);
            let states = [
                [1.0; 2],
                [more, 1.0],
                [1.0, less],
                [1.0; 2],
                [more, 1.0],
                [2.0, 1.0],
                [1.0; 2],
                [1.0, less],
            ];
            let states: Vec<[f64; 2]> =
                states.into_iter().chain([[more, 1.0], [1.0, 0.0], [1.0; 2], [more, 1.0]]).collect();
            let found = told(&made_with(&states, purity, 1_000, 12, 2, seed));
            let ploidy = states.iter().flatten().sum::<f64>() / states.len() as f64;
            let what = format!("{part} of the cells, {purity}");
            assert_about(found.purity, purity, 0.03, &what);
            assert!(found.ploidy.is_some_and(|told| (told.value - ploidy).abs() < 0.1), "{what}: {found:?}");
        }
    }

    /// Half of what looks as changes are alleles of another person or of the normal.
    #[test]
    fn what_is_no_change_does_not_tell_purity() {
        let mut random = Random(31);
        let with = |shares: [f64; 2], normal: u32, random: &mut Random| {
            let mut made = made(&[[1, 1]; 8], 0.7, 1_000, 30, 32);
            let mut at = 0;
            while at < 240 {
                let reads = 14.0 * shares[usize::from(random.chance() < 175.0 / 825.0)];
                let molecules = [random.poisson(14.0 - reads), random.poisson(reads)];
                if molecules[1] >= 4 {
                    made.changes.push(Change {
                        place: Some((at % 8, 1_000 * (at / 8) + 250)),
                        molecules,
                        normal,
                    });
                    at += 1;
                }
            }
            made
        };
        let none = Beside { zygosities: &[], het: 0.001, foreign: None, depths: &[] };
        let foreign = with([0.1, 0.2], 14, &mut random);
        let share = Estimate { value: 0.2, low: 0.18, high: 0.22 };
        let beside = Beside { foreign: Some(share), depths: &[14], ..none };
        let inherited = with([0.5, 0.5], 8, &mut random);
        let mut zygosities = [[0.0; 2]; 15];
        (zygosities[8], zygosities[14]) = ([20_000.0, 240.0 * 128.0], [1_000_000.0, 1_000.0]);
        let unseen = Beside { zygosities: &zygosities, ..none };
        for (what, made, beside) in [("foreign", foreign, beside), ("inherited", inherited, unseen)] {
            let off = |found: &Clone| found.purity.map_or(1.0, |purity| (purity.value - 0.7).abs());
            let (known, unknown) = (told_beside(&made, beside), told(&made));
            assert_about(known.purity, 0.7, 0.06, what);
            assert!(off(&unknown) > 0.1, "{what}: {unknown:?}");
        }
    }

    /// Whether changes came before a genome was doubled or afterwards does not show in the purity that is told.
    #[test]
    fn changes_of_a_doubled_tumour_may_be_of_any_age() {
        let states =
            [[2, 2], [2, 2], [3, 2], [2, 2], [3, 3], [2, 2], [2, 1], [2, 2]].map(|own| own.map(f64::from));
        for older in [1, 2, 4] {
            let mut off = 0.0;
            for seed in 41..45 {
                let found = told(&made_with(&states, 0.8, 1_000, 30, older, seed));
                assert_about(found.purity, 0.8, 0.09, &format!("one of {older} is older, seed {seed}"));
                off += found.purity.map_or(0.0, |purity| purity.value - 0.8) / 4.0;
            }
            assert!(off.abs() < 0.035, "one of {older} is older: off by {off} on average");
        }
    }

    #[test]
    fn what_cannot_be_told_is_not() {
        let states = [[1, 1], [2, 1], [1, 0], [2, 1], [1, 1], [1, 1]];
        // An inbred mouse: what is lost cannot be known.
        let inbred = told(&made(&states, 0.6, 1_000_000, 30, 31));
        assert_eq!((inbred.sites < 150, inbred.lost), (true, None));
        // Copies without the lowest state and without changes: as pure a tumour that was doubled looks the same.
        let twins = made(&[[2, 2], [3, 2], [2, 1], [2, 2], [3, 2], [2, 2]], 0.7, 600, 0, 32);
        let found = told(&twins);
        let all: Vec<f64> =
            found.purity.iter().map(|p| p.value).chain(found.also.iter().map(|o| o.purity)).collect();
        assert!(all.iter().any(|p| (p - 0.7).abs() < 0.05) || found.purity.is_none(), "{found:?}");
        // Four copies in healthy cells: alleles are one and three.
        let mut four = made(&states, 0.6, 500, 0, 33);
        let mut random = Random(5);
        for (site, _) in &mut four.het {
            let a = (0..16).filter(|_| random.chance() < 0.25).count().clamp(4, 12) as u32;
            site.normal = [a, 16 - a];
        }
        let found = told(&four);
        assert_eq!((found.purity, found.ploidy), (None, None));
        assert!(found.word.contains("more than two copies"), "{}", found.word);
        // Nobody knows what lies side by side.
        let mut loose = made(&states, 0.6, 1_000, 0, 34);
        loose.deep.iter_mut().for_each(|(_, place)| *place = None);
        assert!(told(&loose).word.contains("without a reference"));
    }
}
