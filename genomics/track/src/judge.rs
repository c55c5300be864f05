//! Molecules and errors of all changes → what each change, and the sample as a whole, says of the tumour.

use serde::Serialize;

use crate::background::Local;
use crate::molecules::Votes;
use crate::statistics::{Cell, interval, tail};

/// Probability that errors alone make as much, from which on a change is not believed, or a sample.
pub const UNLIKELY: f64 = 1e-3;
/// Fewest molecules of a change that is found.
pub const FEWEST: u64 = 2;
/// Share of the first tumour's reads that a change is taken to have when nobody says: all cells have it on one of two copies.
const USUAL: f64 = 0.5;
/// How much of the first tumour is looked for, relative to then: what each molecule weighs depends on it.
const TRACE: f64 = 1e-3;
/// A change that is in as many molecules surely, where those of the others are in as few of theirs, is no trace of a tumour.
const GERMLINE: f64 = 0.2;
const TRACES: f64 = 0.02;
/// Fewest other changes, for that.
const OTHERS: usize = 5;
/// Molecules that the errors of the own normal are guessed from beside it.
const GUESS: f64 = 3.0;

/// What is said of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// More molecules have it than errors make.
    Found,
    /// Some have it, which may be errors.
    Unsure,
    /// None has it.
    NotSeen,
    /// No molecule says anything.
    NoMolecules,
    /// The normal sample has it too: it is no tumour's.
    InNormal,
    /// It is as frequent as the germline's, where the others are rare: left out of the sample's verdict.
    StandsOut,
}

impl Verdict {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Found => "found",
            Verdict::Unsure => "unsure",
            Verdict::NotSeen => "not_seen",
            Verdict::NoMolecules => "no_molecules",
            Verdict::InNormal => "in_normal",
            Verdict::StandsOut => "stands_out",
        }
    }

    /// Whether it counts for the sample.
    fn counts(self) -> bool {
        !matches!(self, Verdict::NoMolecules | Verdict::InNormal | Verdict::StandsOut)
    }
}

/// A change in one sample.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tracked {
    /// Index of the change.
    #[serde(skip)]
    pub change: usize,
    /// Molecules with it.
    pub changed: u64,
    /// Molecules that tell.
    pub molecules: u64,
    /// The share of the one in the other, and its interval of 95%.
    pub fraction: f64,
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Share of the molecules that errors give the change.
    pub error_rate: f64,
    /// Molecules that errors make.
    pub expected: f64,
    /// Probability that errors make as many, or more.
    pub p: f64,
    /// What is said of it.
    pub verdict: Verdict,
    /// Pairs that are copies of others.
    pub copies: u64,
    /// Molecules whose reads contradict each other, and those of which no read is good enough.
    pub torn: u64,
    /// See `torn`.
    pub unclear: u64,
    /// One molecule in so many was looked at.
    pub thinned: u32,
    /// What counts for the sample.
    #[serde(skip)]
    evidence: Vec<Evidence>,
}

/// Molecules of one place and orientation.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Evidence {
    found: u64,
    all: f64,
    rate: f64,
    shape: f64,
}

/// A number and its interval of 95%.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The likeliest value.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What a sample as a whole says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Whole {
    /// Changes that were looked for and have molecules.
    pub changes: usize,
    /// Molecules with a change.
    pub changed: u64,
    /// Molecules that tell.
    pub molecules: u64,
    /// Molecules with a change that errors make.
    pub expected: f64,
    /// Probability that errors alone make as much, each molecule weighed by how seldom errors make its change.
    pub p: f64,
    /// Whether there is tumour in the sample.
    pub detected: bool,
    /// Its DNA as a part of what it was in the first tumour sample; of changes with unknown shares there, as a part of a pure tumour.
    pub relative: Estimate,
    /// Share of the sample's cells that are the tumour's, if changes are in one of two copies of all tumour cells.
    pub tumour_fraction: Estimate,
}

/// What is known of a change's place in a sample.
pub struct Given<'a> {
    /// Its molecules.
    pub votes: &'a Votes,
    /// Its errors.
    pub local: Local,
    /// One molecule in so many was looked at.
    pub thinned: u32,
}

/// The cell that evidence makes, and how much the change's molecules weigh in it.
fn cell(of: &Evidence, share: f64) -> Cell {
    let expected = (of.all * of.rate).max(1e-12);
    let weight = if of.all > 0.0 { (1.0 + TRACE * share / of.rate).ln() } else { 0.0 };
    Cell { expected, weight, found: of.found, shape: of.shape }
}

/// Judges a change by its places. `normal` is what the patient's own normal says of it: its molecules with the change and without it.
pub fn change(index: usize, share: Option<f64>, given: &[Given<'_>], normal: Option<&Tracked>) -> Tracked {
    let mut evidence = Vec::new();
    for Given { votes, local, .. } in given {
        for side in 0..2 {
            let mut rate = local.rates[side];
            if let Some(normal) = normal {
                let beside = normal.changed as f64 + GUESS;
                rate = rate.max(beside / (normal.molecules as f64 + GUESS / rate));
            }
            let found = u64::from(votes.changed[side]);
            evidence.push(Evidence {
                found,
                all: found as f64 + votes.unchanged[side],
                rate,
                shape: local.shape,
            });
        }
    }
    let sum = |of: fn(&Votes) -> u32| given.iter().map(|g| u64::from(of(g.votes))).sum::<u64>();
    let changed: u64 = given.iter().map(|g| g.votes.with()).sum();
    let molecules: u64 = given.iter().map(|g| g.votes.all()).sum();
    let expected: f64 = evidence.iter().map(|e| e.all * e.rate).sum();
    let cells: Vec<Cell> = evidence.iter().map(|e| cell(e, share.unwrap_or(USUAL).max(0.01))).collect();
    let p = tail(&cells);
    let [low, high] = interval(changed, molecules);
    let verdict = match (changed, molecules) {
        (_, 0) => Verdict::NoMolecules,
        _ if normal.is_some_and(|n| matches!(n.verdict, Verdict::Found | Verdict::StandsOut)) => {
            Verdict::InNormal
        }
        (0, _) => Verdict::NotSeen,
        _ if p <= UNLIKELY && changed >= FEWEST => Verdict::Found,
        _ => Verdict::Unsure,
    };
    Tracked {
        change: index,
        changed,
        molecules,
        fraction: changed as f64 / molecules.max(1) as f64,
        low,
        high,
        error_rate: expected / evidence.iter().map(|e| e.all).sum::<f64>().max(1e-9),
        expected,
        p,
        verdict,
        copies: sum(|v| v.copies),
        torn: sum(|v| v.torn),
        unclear: sum(|v| v.unclear),
        thinned: given.iter().map(|g| g.thinned).max().unwrap_or(1),
        evidence,
    }
}

/// Judges a sample by its changes, of which `share` says how many of the first tumour's reads had each. Those that stand out are marked.
pub fn whole(tracked: &mut [Tracked], share: impl Fn(usize) -> Option<f64>) -> Whole {
    let sums = |of: &[Tracked]| {
        let counting = || of.iter().filter(|t| t.verdict.counts());
        (
            counting().map(|t| t.changed).sum::<u64>(),
            counting().map(|t| t.molecules).sum::<u64>(),
            counting().count(),
        )
    };
    let (changed, molecules, all) = sums(tracked);
    // The frequent ones are not held against each other: what is rare is what the others are without all of them.
    let stands = |t: &Tracked| t.verdict == Verdict::Found && t.low >= GERMLINE;
    let frequent = tracked
        .iter()
        .filter(|t| stands(t))
        .fold((0, 0, 0), |sum, t| (sum.0 + t.changed, sum.1 + t.molecules, sum.2 + 1));
    let others = (changed - frequent.0) as f64 / (molecules - frequent.1).max(1) as f64;
    if all - frequent.2 >= OTHERS.max(frequent.2) && others < TRACES {
        tracked.iter_mut().filter(|t| stands(t)).for_each(|t| t.verdict = Verdict::StandsOut);
    }
    let (changed, molecules, changes) = sums(tracked);
    let counting = || tracked.iter().filter(|t| t.verdict.counts());
    let mut evidence: Vec<(Evidence, f64)> = Vec::new();
    let mut shares = Vec::new();
    for t in counting() {
        let share = share(t.change).unwrap_or(USUAL).clamp(0.01, 1.0);
        shares.push(share);
        evidence.extend(t.evidence.iter().filter(|e| e.all > 0.0).map(|e| (*e, share)));
    }
    let cells: Vec<Cell> = evidence.iter().map(|(e, share)| cell(e, *share)).collect();
    let p = tail(&cells);
    shares.sort_by(f64::total_cmp);
    let median = shares.get(shares.len() / 2).copied().unwrap_or(USUAL);
    let relative = estimate(&evidence);
    let then = (2.0 * median).min(1.0);
    let scaled = |x: f64| (x * then).min(1.0);
    Whole {
        changes,
        changed,
        molecules,
        expected: evidence.iter().map(|(e, _)| e.all * e.rate).sum(),
        p,
        detected: p <= UNLIKELY && changed >= FEWEST,
        tumour_fraction: Estimate {
            value: scaled(relative.value),
            low: scaled(relative.low),
            high: scaled(relative.high),
        },
        relative,
    }
}

/// Half of the drop of twice the log-likelihood that 95% of a chi-squared variable with one degree of freedom stay within.
const DROP: f64 = 1.920_729;

/// How much of the first tumour is there, likeliest, with its interval: each cell has its errors and as many molecules more as its share lets expect.
fn estimate(evidence: &[(Evidence, f64)]) -> Estimate {
    let largest = evidence.iter().map(|(_, share)| 1.0 / share).fold(1.0, f64::max);
    if evidence.is_empty() {
        return Estimate { value: 0.0, low: 0.0, high: largest };
    }
    let expected = |e: &Evidence, share: f64, part: f64| e.all * (e.rate + part * share);
    let likelihood = |part: f64| -> f64 {
        let of = |(e, share): &(Evidence, f64)| {
            let mean = expected(e, *share, part).max(1e-300);
            e.found as f64 * mean.ln() - mean
        };
        evidence.iter().map(of).sum()
    };
    let slope = |part: f64| -> f64 {
        let of = |(e, share): &(Evidence, f64)| {
            e.all * share * (e.found as f64 / expected(e, *share, part).max(1e-300) - 1.0)
        };
        evidence.iter().map(of).sum()
    };
    // The slope falls all along.
    let zero = |f: &dyn Fn(f64) -> f64, mut low: f64, mut high: f64| {
        for _ in 0..80 {
            let middle = 0.5 * (low + high);
            if f(middle) > 0.0 { low = middle } else { high = middle }
        }
        0.5 * (low + high)
    };
    let value = if slope(0.0) <= 0.0 { 0.0 } else { zero(&slope, 0.0, largest) };
    let best = likelihood(value);
    let within = |part: f64| likelihood(part) - best + DROP;
    let low = if value == 0.0 || within(0.0) > 0.0 { 0.0 } else { zero(&|x| -within(x), 0.0, value) };
    let high = if within(largest) > 0.0 { largest } else { zero(&within, value, largest) };
    Estimate { value, low, high }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn votes(changed: u32, unchanged: f64) -> Votes {
        Votes { changed: [changed, 0], unchanged: [unchanged / 2.0; 2], ..Votes::default() }
    }

    fn tracked(index: usize, changed: u32, all: f64) -> Tracked {
        let votes = votes(changed, all - f64::from(changed));
        let local = Local { rates: [1e-4; 2], shape: 20.0 };
        change(index, Some(0.5), &[Given { votes: &votes, local, thinned: 1 }], None)
    }

    #[test]
    fn a_change_is_found_beyond_errors_only() {
        let verdicts = [(0, 0.0), (0, 30.0), (1, 30.0), (2, 30.0), (2, 20_000.0), (12, 20_000.0)]
            .map(|(changed, all)| tracked(0, changed, all).verdict);
        use Verdict::{Found, NoMolecules, NotSeen, Unsure};
        assert_eq!(verdicts, [NoMolecules, NotSeen, Unsure, Found, Unsure, Found]);
    }

    #[test]
    fn many_changes_together_tell_what_none_tells_alone() {
        let mut some: Vec<Tracked> = (0..50).map(|i| tracked(i, u32::from(i % 3 == 0), 1000.0)).collect();
        assert!(some.iter().all(|t| t.verdict != Verdict::Found));
        let all = whole(&mut some, |_| Some(0.5));
        // 17 molecules of 50,000 where errors make 5.
        assert!(all.detected && all.p < 1e-4 && all.changes == 50, "{all:?}");
        assert!((all.expected - 5.0).abs() < 0.01);
        let true_part = (17.0 - 5.0) / 50_000.0 / 0.5;
        assert!((all.relative.value / true_part - 1.0).abs() < 0.02, "{all:?}");
        assert!(all.relative.low < 0.5 * true_part && all.relative.high > 1.5 * true_part);
        assert_eq!(all.tumour_fraction, all.relative);
        let mut none: Vec<Tracked> = (0..50).map(|i| tracked(i, u32::from(i % 10 == 0), 1000.0)).collect();
        let none = whole(&mut none, |_| Some(0.5));
        assert!(!none.detected && none.relative.low == 0.0 && none.relative.high > 0.0, "{none:?}");
    }

    #[test]
    fn what_is_as_frequent_as_the_germline_says_nothing_of_the_sample() {
        let mut some: Vec<Tracked> =
            (0..20).map(|i| tracked(i, if i == 3 { 490 } else { 0 }, 1000.0)).collect();
        let all = whole(&mut some, |_| None);
        assert_eq!(some[3].verdict, Verdict::StandsOut);
        assert!(!all.detected && all.changes == 19);
        // A relapse has them all.
        let mut relapse: Vec<Tracked> = (0..20).map(|i| tracked(i, 490, 1000.0)).collect();
        let all = whole(&mut relapse, |_| None);
        assert!(all.detected && relapse.iter().all(|t| t.verdict == Verdict::Found));
        assert!((all.tumour_fraction.value - 0.98).abs() < 0.01);
    }

    #[test]
    fn the_normal_tells_what_is_no_tumours() {
        let normal = tracked(0, 40, 100.0);
        let votes = votes(400, 600.0);
        let local = Local { rates: [1e-4; 2], shape: 20.0 };
        let given = || Given { votes: &votes, local, thinned: 1 };
        assert_eq!(change(0, None, &[given()], Some(&normal)).verdict, Verdict::InNormal);
        // Also where it stands out among what the normal has.
        let mut others: Vec<Tracked> =
            (0..20).map(|i| tracked(i, if i == 0 { 50 } else { 0 }, 100.0)).collect();
        whole(&mut others, |_| None);
        assert_eq!(others[0].verdict, Verdict::StandsOut);
        assert_eq!(change(0, None, &[given()], Some(&others[0])).verdict, Verdict::InNormal);
        let clean = tracked(0, 0, 100.0);
        assert_eq!(change(0, None, &[given()], Some(&clean)).verdict, Verdict::Found);
    }
}
