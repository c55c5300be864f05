//! Alleles among a tumour's changes that are none: those that the normal has too and happens not to show, and another person's.

use crate::interval::Estimate;
use crate::mixture::FOREIGN;

/// What is known of the pair beside its changes.
#[derive(Debug, Clone, Copy)]
pub struct Beside<'a> {
    /// Sites where the normal has one allele, and two, by its molecules, of those among which changes were found; nothing if a call has found them, which tells
    /// inherited alleles itself.
    pub(crate) zygosities: &'a [[f64; 2]],
    /// Share of the sites at which the person has two alleles.
    pub het: f64,
    /// Share of the tumour sample that is another person's, where that is known.
    pub foreign: Option<Estimate>,
    /// Molecules of the tumour at some places.
    pub depths: &'a [u32],
}

/// Fewest reads of a change.
pub const LEAST: u32 = 4;
/// Least share of the changes that are the tumour's own, as others are reckoned and not seen.
const OWN: f64 = 0.02;
/// Shares of the changes that may be another person's where nobody knows how many sites were looked at, and how many times as many as reckoned where that is
/// known.
const ANY: [f64; 6] = [0.0, 0.1, 0.25, 0.45, 0.65, 0.85];
const TIMES: [f64; 6] = [0.35, 0.5, 0.7, 1.0, 1.4, 2.0];
/// Standard deviation of the logarithm of that, at least.
const VARIES: f64 = 0.4;

/// How likely a change is none.
#[derive(Debug, Clone)]
pub struct Others {
    /// That the normal has it, too: by molecules of the normal.
    inherited: Vec<f64>,
    /// Another person's alleles, in half of his share of the reads and in all of it: that share, and how many there are of each for one that is seen ([`seen`]).
    pub foreign: [(f64, f64); 2],
    /// Shares of the changes that may be another person's, and the natural logarithm of how likely that is.
    pub shares: Vec<(f64, f64)>,
}

impl Others {
    /// Of changes, each seen in [`LEAST`] molecules and more, that so many molecules of the normal do not have.
    pub fn of(normal: &[u32], beside: &Beside<'_>) -> Others {
        // The last is of all that are as deep or deeper.
        let last = beside.zygosities.len().saturating_sub(1);
        let depths = || normal.iter().map(|depth| (*depth as usize).min(last));
        let [from, to] = [depths().min(), depths().max()].map(|depth| depth.unwrap_or(0));
        let looked_at = |depth: usize| f64::from(u8::from((from..=to).contains(&depth)));
        let zygosities = beside.zygosities.iter().enumerate();
        let zygosities: Vec<[f64; 2]> =
            zygosities.map(|(depth, sites)| sites.map(|sites| sites * looked_at(depth))).collect();
        Others {
            inherited: inherited(normal.len(), &zygosities),
            ..foreign(normal.len(), &zygosities, beside)
        }
    }

    /// How likely the normal has a change, too, that so many molecules do not have.
    pub fn inherited(&self, normal: u32) -> f64 {
        self.inherited.get(normal as usize).copied().unwrap_or(0.0)
    }
}

/// At `n` molecules one of `2^(n - 1)` of the normal's sites of two alleles shows one of them only, and is a change to whoever looks. The fewer changes a tumour has
/// in a large genome the more of them are such sites.
fn inherited(changes: usize, zygosities: &[[f64; 2]]) -> Vec<f64> {
    let expected = |(n, [_, two]): (usize, &[f64; 2])| two * 0.5f64.powi(n as i32 - 1);
    let inherited: f64 = zygosities.iter().enumerate().map(expected).sum();
    let sites: f64 = zygosities.iter().map(|[one, _]| one).sum();
    let number = changes as f64;
    let own = (number - inherited).max(OWN * number) / sites.max(1.0);
    let by_depth = zygosities.iter().enumerate();
    by_depth
        .map(|own_and| (expected(own_and), own * own_and.1[0]))
        .map(|(a, b)| a / (a + b).max(1e-9))
        .collect()
}

/// Another person has an allele of his own at so many places ([`FOREIGN`]), in half of his share of the reads or in all of it.
fn foreign(changes: usize, zygosities: &[[f64; 2]], beside: &Beside<'_>) -> Others {
    let none = Others { inherited: Vec::new(), foreign: [(0.0, 0.0); 2], shares: vec![(0.0, 0.0)] };
    let Some(share) = beside.foreign else { return none };
    if share.value <= 0.0 || changes == 0 || beside.depths.is_empty() {
        return none;
    }
    // Of his sites, how many are seen.
    let number = |share: f64| {
        let mean =
            |of: f64| beside.depths.iter().map(|n| seen(*n, of)).sum::<f64>() / beside.depths.len() as f64;
        (FOREIGN[0] * mean(share / 2.0) + FOREIGN[1] * mean(share)).max(1e-12)
    };
    let all = number(share.value);
    let foreign = [(share.value / 2.0, FOREIGN[0] / all), (share.value, FOREIGN[1] / all)];
    let sites: f64 = zygosities.iter().map(|[one, _]| one).sum();
    let shares = if zygosities.is_empty() {
        ANY.map(|share| (share, 0.0)).to_vec()
    } else {
        let varies = ((number(share.high) / number(share.low)).ln() / 4.0).max(VARIES);
        let expected = sites * beside.het * all / changes as f64;
        let times = |times: f64| ((expected * times).min(1.0 - OWN), -(times.ln() / varies).powi(2) / 2.0);
        TIMES.map(times).to_vec()
    };
    Others { foreign, shares, ..none }
}

/// How often an allele of such a share of the reads is in [`LEAST`] of so many and more.
pub fn seen(n: u32, share: f64) -> f64 {
    let mut chance = (1.0 - share).powi(n as i32);
    let mut missed = 0.0;
    for k in 0..LEAST {
        missed += chance;
        chance *= f64::from(n.saturating_sub(k)) / f64::from(k + 1) * share / (1.0 - share);
    }
    (1.0 - missed).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Beside<'_> = Beside { zygosities: &[], het: 0.001, foreign: None, depths: &[] };

    #[test]
    fn the_normal_may_have_what_it_does_not_show() {
        // A thousand sites of two alleles at 8 molecules, of which 8 show one only, and at 12, of which none does; beyond, there are no changes.
        let mut zygosities = [[0.0; 2]; 16];
        for (depth, sites) in [(8, 100_000.0), (12, 300_000.0), (15, 100_000.0)] {
            zygosities[depth] = [sites, 1_024.0];
        }
        let all: Vec<u32> = (0..40).map(|i| if i < 16 { 8 } else { 12 }).collect();
        let others = Others::of(&all, &Beside { zygosities: &zygosities, ..NONE });
        // Of 40 changes 8.5 are expected to be inherited, so the tumour has 31.5, a quarter of them at 8 molecules.
        let chances = [8, 12, 15, 20].map(|depth| others.inherited(depth));
        let expected = [8.0 / (8.0 + 31.5 / 4.0), 0.5 / (0.5 + 31.5 * 0.75), 0.0, 0.0];
        for (chance, expected) in chances.into_iter().zip(expected) {
            assert!((chance - expected).abs() < 1e-9, "{chances:?}, not {expected}");
        }
        // A call has told these.
        assert_eq!(Others::of(&all, &NONE).inherited(8), 0.0);
    }

    #[test]
    fn another_person_has_as_many_alleles_as_people_have() {
        let (zygosities, depths) = ([[0.0, 0.0], [0.0, 0.0], [1e6, 0.0]], [40; 3]);
        let all = vec![2; 600];
        let foreign = Some(Estimate { value: 0.1, low: 0.09, high: 0.11 });
        let beside = Beside { zygosities: &zygosities, foreign, depths: &depths, ..NONE };
        let others = Others::of(&all, &beside);
        // 650 places with 2 of 40 molecules on average, of which 13.8 % show four and more, and 175 with four, of which 57.7 %.
        let [half, whole] = [650.0 * 0.138_149, 175.0 * 0.576_869];
        let [a, b] = others.foreign;
        assert_eq!([a.0, b.0], [0.05, 0.1]);
        assert!(
            [a.1 - 650.0 / (half + whole), b.1 - 175.0 / (half + whole)].iter().all(|off| off.abs() < 1e-3)
        );
        let likeliest = others.shares.iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("shares");
        assert!((likeliest.0 - (half + whole) / 600.0).abs() < 1e-4, "{likeliest:?}");
        // Of how many sites a call's changes are is not known: then any share may be.
        assert_eq!(Others::of(&all, &Beside { zygosities: &[], ..beside }).shares.len(), ANY.len());
        assert_eq!(Others::of(&all, &NONE).shares, [(0.0, 0.0)]);
    }
}
