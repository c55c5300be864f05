//! How pure a tumour is, and how many copies of its genome its cells have.
//!
//! At each site where the normal has two alleles the tumour's reads show their balance and, beside the normal's, how many there are. Both follow from the
//! share of tumour cells and from how many copies of each allele these have. Sites side by side have them in common ([`crate::segments`]); changes of the tumour alone have shares
//! of reads that follow from the same numbers. What makes all of it likeliest is told, with all that is about as likely ([`crate::fit`]).

use serde::{Deserialize, Serialize};

use crate::changes::Changes;
use crate::depths::Deep;
use crate::fit::{Fit, Model};
use crate::interval::Estimate;
use crate::roots::Site;
use crate::segments::{Balances, segments, varies};

/// Where something lies in the genome, if that is known: sequence and base, from 0.
pub type Place = Option<(u32, u32)>;

/// A change of the tumour's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Where it lies.
    pub place: Place,
    /// Molecules of the tumour without and with it.
    pub molecules: [u32; 2],
}

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
    /// Changes of the tumour that were looked at.
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
    /// Whether a call has found these, which counts their molecules better than roots do.
    pub called: bool,
    /// Reads of the normal that cover a place.
    pub usual: f64,
    /// Bases of a root.
    pub bases: u32,
}

/// Fewest sites of two alleles from which balances tell anything, and fewest changes.
const FEWEST: (usize, u64) = (150, 12);
/// Fewest roots whose places are known.
const ROOTS: usize = 2_000;
/// Fewest molecules of the normal at a place: below, which sites have two alleles is chance.
const SHALLOW: f64 = 5.0;
/// A normal whose balances of alleles vary so much, of the largest variance that there is, has more than two copies.
const UNBALANCED: f64 = 0.12;
/// How much the shares of called changes vary.
const CALLED: f64 = 0.004;
/// Differences in log-likelihood up to which an explanation is within the interval, and is told beside the best.
const WITHIN: f64 = 2.5;
const BESIDE: f64 = 7.0;
/// What an interval is wide at least, to either side: of purity, and of copies.
const LEAST: [f64; 2] = [0.01, 0.03];
/// Widest intervals of purity and copies that say something.
const WIDEST: [f64; 2] = [0.45, 1.0];
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
    // Most of what has no place is of repeats.
    let varies = varies(het.iter().filter(|(_, place)| place.is_some()).map(|(site, _)| site.normal));
    if het.len() >= FEWEST.0 && varies > UNBALANCED {
        return none("the alleles of the normal are not half and half: healthy cells have more than two copies, or the normal is mixed");
    }
    if seen.deep.iter().filter(|(_, place)| place.is_some()).count() < ROOTS {
        return none("without a reference it is not known which places lie side by side");
    }
    let deepest = het.iter().map(|(site, _)| site.tumour[0] + site.tumour[1]).max().unwrap_or(0);
    let mut balances = Balances::new(deepest as usize, varies);
    let parts = segments(&het, seen.deep, &mut balances, seen.bases);
    let changes = Changes::of(seen.changes, &parts, seen.bases, if seen.called { CALLED } else { std::env::var("V").map_or(CALLED, |v| v.parse::<f64>().unwrap() * varies) });
    let balanced = het.iter().filter(|(_, place)| place.is_some()).count() >= FEWEST.0;
    let none = |why: &str| Clone { changes: changes.count, segments: parts.len() as u64, ..none(why) };
    let few = Changes::of(&[], &parts, seen.bases, 0.0);
    let model = Model::new(&parts, if changes.count < FEWEST.1 { &few } else { &changes });
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
    let profile = |of: fn(&Fit) -> f64, least: f64, bounds: [f64; 2]| {
        let likely = || near.iter().filter(|fit| fit.log > best.log - WITHIN).map(of);
        let value = of(&best);
        Estimate {
            value,
            low: likely().fold(value - least, f64::min).max(bounds[0]).min(value),
            high: likely().fold(value + least, f64::max).min(bounds[1]).max(value),
        }
    };
    let purity = profile(|fit| fit.purity, LEAST[0], [0.0, 1.0]);
    let ploidy = profile(|fit| fit.ploidy, LEAST[1], [0.0, f64::INFINITY]);
    let lost: Vec<f64> = near.iter().filter(|fit| fit.log > best.log - WITHIN).map(|fit| fit.lost).collect();
    let wide = |of: Estimate| of.high - of.low;
    let spread = lost.iter().copied().fold(0.0, f64::max) - lost.iter().copied().fold(1.0, f64::min);
    let also: Vec<Other> = kinds
        .iter()
        .filter(|fit| fit.log > best.log - BESIDE)
        .filter(|fit| (fit.purity - best.purity).abs() > 0.05 || (fit.ploidy - best.ploidy).abs() > 0.2)
        .map(|fit| Other { purity: fit.purity, ploidy: fit.ploidy, lost: fit.lost, less: best.log - fit.log })
        .collect();
    if std::env::var("DBGK").is_ok() { // DEBUG
        eprintln!("varies {varies}");
        for fit in kinds.iter().take(5) {
            eprintln!("{fit:?}");
            model.fit(fit.purity, fit.diploid, 0.0031, true);
        }
    }
    let even = best.even > 0.98;
    let told = wide(purity) <= WIDEST[0];
    let word = match (told, even, also.is_empty()) {
        (false, true, _) => "two copies everywhere, and too few changes to tell purity from",
        (false, ..) => "more than one answer: several combinations of copies explain it as well",
        (true, true, _) => "two copies everywhere, as far as can be told: purity is that of the changes",
        (true, false, true) => "as copies have it",
        (true, false, false) => "other combinations of copies explain it not much worse",
    };
    Clone {
        purity: told.then_some(purity),
        ploidy: (wide(ploidy) <= WIDEST[1]).then_some(ploidy),
        lost: (balanced && spread < 0.1).then_some(best.lost),
        also,
        ..none(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balances_vary_as_chance_has_it_or_more() {
        let mut x = 3u64;
        let mut chance = || {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (x >> 40) as f64 / (1u64 << 24) as f64
        };
        // Draws of one half, and of shares that lie about it.
        for (spread, low, high) in [(0.0, 1.0, 1.08), (0.25, 1.08, 3.0)] {
            let sites: Vec<[u32; 2]> = (0..20_000)
                .filter_map(|_| {
                    let share = 0.5 + spread * (chance() - 0.5);
                    let one = (0..30).filter(|_| chance() < share).count() as u32;
                    (4 * one.min(30 - one) >= 30).then_some([one, 30 - one])
                })
                .collect();
            let variable = variability(sites.into_iter());
            assert!((low..high).contains(&variable), "{spread}: {variable}");
        }
        assert_eq!(variability(std::iter::empty()), 1.0);
    }
}
