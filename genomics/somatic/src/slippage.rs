//! Tandem repeats that change their length while they are copied or read: how likely that is, and how long a repeat is
//! in a read.
//!
//! A polymerase that loses its place in a repeat puts in a unit too many or too few, the oftener the longer the repeat.
//! The rates are those of the samples' own reads: repeats beside the changes, which have no reason to differ, are
//! measured in the normal; a guess counts as much as a hundred reads: what libraries without PCR do, times as much as this one
//! slips more than they.

use serde::{Deserialize, Serialize};

use crate::tract::LONGEST_UNIT;

/// Copies of the unit told apart; longer repeats count as these.
const MOST: usize = 40;
/// Reads that the guess counts for.
const GUESS: f64 = 100.0;
/// Share of slips by more than one unit.
const FARTHER: f64 = 0.1;
/// Probability that a read shows a length no slip explains.
const OTHERWISE: f64 = 1e-4;
/// Bases of each flank that a read must show for the repeat's length to be read off it.
const FLANK: usize = 6;
/// Units by which a repeat may have changed for its length to be read off.
const FARTHEST: i32 = 12;
/// Bases of each flank that are compared if the read has them.
const COMPARED: usize = 20;

/// Share of a repeat's reads that one other length may have before it is an allele.
const ALLELE: f64 = 0.33;

/// Copies of the shortest homopolymer, and of the shortest repeat of longer units, whose reads are counted by length.
const SHORTEST: [usize; 2] = [6, 4];

/// The reads of one repeat of the normal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Site {
    cell: u16,
    /// As long as they should be, shorter, longer.
    counts: [u32; 3],
}

/// Reads of repeats by how their length differs from what it should be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    sites: Vec<Site>,
}

fn cell(unit: usize, copies: usize) -> usize {
    (unit - 1) * (MOST + 1) + copies.min(MOST)
}

impl Tally {
    /// Counts reads of one repeat of `expected` bases by their lengths. When another length is as frequent as an allele, the
    /// repeat is not what it was taken for, and tells nothing.
    pub fn add_reads(&mut self, unit: usize, expected: usize, lengths: &[usize]) {
        let mut others: Vec<usize> = lengths.iter().copied().filter(|&l| l != expected).collect();
        others.sort_unstable();
        let most = others.chunk_by(|a, b| a == b).map(<[usize]>::len).max().unwrap_or(0);
        if most as f64 > ALLELE * lengths.len() as f64 || lengths.is_empty() {
            return;
        }
        let shorter = others.partition_point(|&l| l < expected);
        let counts = [lengths.len() - others.len(), shorter, others.len() - shorter].map(|n| n as u32);
        self.sites.push(Site { cell: cell(unit, expected / unit) as u16, counts });
    }

    /// Adds another tally.
    pub fn add(&mut self, other: &Tally) {
        self.sites.extend_from_slice(&other.sites);
    }

    /// Sums of the sites of each cell, without those that differ so much from all others of their kind that they hold an allele of
    /// few reads; and how far the others are apart.
    fn sums(&self) -> (Vec<[f64; 3]>, Library, f64) {
        let cells = LONGEST_UNIT * (MOST + 1);
        let mut all = vec![[0u64; 3]; cells];
        let add = |all: &mut Vec<[u64; 3]>, site: &Site| {
            all[usize::from(site.cell)].iter_mut().zip(site.counts).for_each(|(a, n)| *a += u64::from(n));
        };
        self.sites.iter().for_each(|site| add(&mut all, site));
        let library = Library::of(&all);
        let mut kept = vec![[0u64; 3]; cells];
        let mut apart = Apart::default();
        for site in &self.sites {
            let c = usize::from(site.cell);
            let (unit, copies) = (c / (MOST + 1) + 1, c % (MOST + 1));
            let [exact, shorter, longer] = site.counts.map(u64::from);
            let (n, slipped) = (exact + shorter + longer, shorter + longer);
            let others = all[c].iter().sum::<u64>() - n;
            let guessed: f64 = library.guess(unit, copies).iter().sum();
            let rate = (guessed * GUESS + (all[c][1] + all[c][2] - slipped) as f64) / (GUESS + others as f64);
            if tail(n, slipped, rate) >= UNLIKELY {
                add(&mut kept, site);
                apart.add(n as f64 * rate, slipped as f64);
            }
        }
        let kept = kept.into_iter().map(|counts| counts.map(|n| n as f64)).collect();
        (kept, library, apart.spread())
    }
}

/// Slips for which what is expected of a library counts beside those seen.
const USUAL: f64 = 5.0;
/// How many times as often as in a library without PCR repeats slip, at least and at most.
const TIMES: [f64; 2] = [0.05, 10.0];
/// Share of the reads that slips one way from which on a repeat is a long one.
const LONG: f64 = 0.005;

/// How a library's repeats slip beside one without PCR: tells of lengths of which it has few. Short ones and long ones are told apart: what looks like
/// a slip of a short one is mostly something else, and does not grow with the length.
#[derive(Debug, Clone, Copy)]
struct Library {
    /// By homopolymers and longer units, short and long ones, shorter and longer reads: how many times as often.
    times: [[[f64; 2]; 2]; 2],
}

/// Slips expected and seen.
#[derive(Debug, Clone, Copy, Default)]
struct Slips {
    expected: f64,
    seen: f64,
}

impl Slips {
    /// How many times as many are seen as expected, if it was `before` until these came.
    fn times(&self, before: f64) -> f64 {
        ((USUAL * before + self.seen) / (USUAL + self.expected)).clamp(TIMES[0], TIMES[1])
    }
}

impl Library {
    /// From the reads of each cell: as long as they should be, shorter, longer.
    fn of(all: &[[u64; 3]]) -> Library {
        // Short ones by unit; of long ones there are few, and units slip together there.
        let (mut short, mut long) = ([[Slips::default(); 2]; 2], [Slips::default(); 2]);
        for (c, counts) in all.iter().enumerate() {
            let (unit, copies) = (c / (MOST + 1) + 1, c % (MOST + 1));
            let n = counts.iter().sum::<u64>() as f64;
            for (way, guessed) in guess(unit, copies).into_iter().enumerate() {
                let slips = if is_long(unit, copies) {
                    &mut long[way]
                } else {
                    &mut short[usize::from(unit > 1)][way]
                };
                slips.expected += n * guessed;
                slips.seen += counts[1 + way] as f64;
            }
        }
        let times = |units: usize| {
            let short = [0, 1].map(|way| short[units][way].times(1.0));
            [short, [0, 1].map(|way| long[way].times(short[way]))]
        };
        Library { times: [0, 1].map(times) }
    }

    /// How often it should make `copies` of a unit shorter and longer.
    fn guess(&self, unit: usize, copies: usize) -> [f64; 2] {
        let [shorter, longer] = self.times[usize::from(unit > 1)][usize::from(is_long(unit, copies))];
        let guess = guess(unit, copies);
        [(guess[0] * shorter).min(MOST_SLIPS), (guess[1] * longer).min(MOST_SLIPS)]
    }
}

/// Share of the reads that slips one way at most.
const MOST_SLIPS: f64 = 0.3;

/// Spread (of the logarithm) of the guess round what a library really does.
const GUESSED: f64 = 0.4;

/// How far the places of one kind are apart, their flanks and their bases counting too: the variance of the logarithm of their rates. Each
/// site tells it, the surer the more slips are expected there; what was believed before counts beside them.
#[derive(Debug, Clone, Copy)]
struct Apart {
    /// Sum of what the sites tell, each by its weight, and of the weights (over the variance of what each tells).
    told: f64,
    weights: f64,
}

/// Spread that is believed before any site tells; its square may be wrong by as much as it is.
const BELIEVED: f64 = 0.2;
/// Spread of places at most.
const FARTHEST_APART: f64 = 0.5;

impl Default for Apart {
    fn default() -> Apart {
        Apart { told: BELIEVED.powi(-2), weights: BELIEVED.powi(-4) }
    }
}

impl Apart {
    /// A site with so many slips where so many are expected: the variance of a Poisson variable is its mean, what is beyond that is the
    /// rate's.
    fn add(&mut self, expected: f64, slips: f64) {
        let weight = expected.powi(3) / (1.0 + 2.0 * expected);
        if weight > 0.0 {
            self.told += weight * ((slips - expected).powi(2) - expected) / expected.powi(2);
            self.weights += weight;
        }
    }

    fn spread(&self) -> f64 {
        (self.told / self.weights).max(0.0).sqrt().min(FARTHEST_APART)
    }
}

/// Probability under which a site does not belong to its kind.
const UNLIKELY: f64 = 1e-4;

/// About the probability of `k` or more of `n` at a rate: that of a Poisson variable, from its largest term on.
fn tail(n: u64, k: u64, rate: f64) -> f64 {
    let mean = n as f64 * rate;
    if k == 0 || k as f64 <= mean {
        return 1.0;
    }
    let mut term = (-mean).exp();
    for i in 1..=k {
        term *= mean / i as f64;
    }
    // The terms that follow fall at least this fast.
    term / (1.0 - mean / (k + 1) as f64)
}

/// How often one thing slips.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rate {
    /// Probability that a read shows it.
    pub rate: f64,
    /// How uncertain that is: standard deviation of its natural logarithm.
    pub spread: f64,
}

/// How likely repeats change their length in a read.
#[derive(Debug, Clone)]
pub struct Slippage {
    /// By unit and copies: how often it is shorter, and how often longer.
    rates: Vec<[Rate; 2]>,
    /// By unit and copies: reads of the normal counted.
    reads: Vec<u64>,
}

/// How often repeats of so many copies of a unit show another length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RepeatSlips {
    /// Bases of the unit.
    pub unit: u8,
    /// Copies; the highest number stands for more as well.
    pub copies: u8,
    /// Reads of the normal that this was learned from.
    pub reads: u64,
    /// Share of the reads that are shorter.
    pub shorter: f64,
    /// Share of the reads that are longer.
    pub longer: f64,
}

/// What a library without PCR does to `copies` of a unit: shorter and longer.
fn guess(unit: usize, copies: usize) -> [f64; 2] {
    let n = copies as f64;
    let rate = match unit {
        1 => 5e-4 * (0.33 * (n - 6.0).max(0.0)).exp(),
        2 => 5e-4 * (0.3 * (n - 4.0).max(0.0)).exp(),
        _ => 2e-4 * (0.3 * (n - 4.0).max(0.0)).exp(),
    };
    [0.7, 0.3].map(|share| share * rate.min(0.3))
}

/// Whether a library without PCR makes so many copies shorter often.
fn is_long(unit: usize, copies: usize) -> bool {
    guess(unit, copies)[0] >= LONG
}

impl Slippage {
    /// The rates of the reads counted, drawn to the guess where there are few. Repeats of nearly the same length help out.
    pub fn of(tally: &Tally) -> Slippage {
        let (sums, library, apart) = tally.sums();
        let rate = |unit: usize, copies: usize| {
            let mut all = GUESS;
            let mut seen = [0.0; 2];
            for near in copies.saturating_sub(1)..=(copies + 1).min(MOST) {
                let [exact, shorter, longer] = sums[cell(unit, near)];
                all += exact + shorter + longer;
                seen[0] += shorter;
                seen[1] += longer;
            }
            let guessed = library.guess(unit, copies);
            [0, 1].map(|way| Rate {
                rate: (guessed[way] * GUESS + seen[way]) / all,
                spread: (1.0 / (GUESSED.powi(-2) + seen[way]) + apart.powi(2)).sqrt(),
            })
        };
        Slippage {
            rates: (1..=LONGEST_UNIT)
                .flat_map(|unit| (0..=MOST).map(move |c| (unit, c)))
                .map(|(u, c)| rate(u, c))
                .collect(),
            reads: sums.iter().map(|counts| counts.iter().sum::<f64>() as u64).collect(),
        }
    }

    /// The rates of repeats of which the normal has reads.
    pub fn seen(&self) -> Vec<RepeatSlips> {
        let seen = (0..self.rates.len()).filter(|&c| self.reads[c] > 0);
        seen.map(|c| {
            let [shorter, longer] = self.rates[c].map(|r| r.rate);
            let (unit, copies) = ((c / (MOST + 1) + 1) as u8, (c % (MOST + 1)) as u8);
            RepeatSlips { unit, copies, reads: self.reads[c], shorter, longer }
        })
        .collect()
    }

    /// Probability that a repeat of `length` bases shows as `shown` bases.
    pub fn probability(&self, unit: usize, length: usize, shown: usize) -> f64 {
        let [shorter, longer] = self.rates[cell(unit, length / unit)];
        let off = shown.abs_diff(length);
        if off == 0 {
            return 1.0 - shorter.rate - longer.rate;
        }
        if !off.is_multiple_of(unit) {
            return OTHERWISE;
        }
        let Rate { rate, .. } = if shown < length { shorter } else { longer };
        (rate * (1.0 - FARTHER) * FARTHER.powi((off / unit) as i32 - 1)).max(OTHERWISE)
    }

    /// How often a repeat of `length` bases shows shorter, and longer.
    pub fn rates(&self, unit: usize, length: usize) -> [Rate; 2] {
        self.rates[cell(unit, length / unit)]
    }
}

impl Default for Slippage {
    fn default() -> Slippage {
        Slippage::of(&Tally::default())
    }
}

/// A tandem repeat of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeat {
    /// First base.
    pub start: usize,
    /// One past the last base.
    pub end: usize,
    /// Bases of the unit.
    pub unit: usize,
}

impl Repeat {
    /// The repeat of `unit` bases round position `at`: as far as each base equals the one a unit on.
    pub fn round(seq: &[u8], at: usize, unit: usize) -> Repeat {
        let mut start = at.min(seq.len());
        while start > 0 && start - 1 + unit < seq.len() && seq[start - 1] == seq[start - 1 + unit] {
            start -= 1;
        }
        let mut last = start;
        while last + unit < seq.len() && seq[last] == seq[last + unit] {
            last += 1;
        }
        Repeat { start, end: last + unit, unit }
    }

    /// All repeats of a sequence long enough to be counted, by start.
    pub fn all(seq: &[u8]) -> Vec<Repeat> {
        let mut found: Vec<Repeat> = Vec::new();
        for unit in 1..=LONGEST_UNIT {
            let least = unit * SHORTEST[usize::from(unit > 1)];
            let mut at = 0;
            while at + least <= seq.len() {
                let run =
                    (at..seq.len() - unit).take_while(|&i| seq[i] == seq[i + unit] && seq[i] != b'N').count();
                let repeat = Repeat { start: at, end: at + run + unit, unit };
                let within =
                    |r: &Repeat| r.start <= repeat.start && repeat.end <= r.end && unit % r.unit == 0;
                if run + unit >= least && !found.iter().any(within) {
                    found.push(repeat);
                }
                at += run + 1;
            }
        }
        found
    }

    /// Bases.
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether it has no base.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Bases of the repeat that `seq` holds here, in a read that may begin at any of `offsets` of `seq`; `None` when the read does
    /// not show both flanks. One wrong base in each flank and in the repeat is forgiven.
    pub(crate) fn in_read(&self, seq: &[u8], read: &[u8], offsets: &[i32]) -> Option<usize> {
        let unit = &seq[self.start..self.start + self.unit];
        let left = &seq[self.start.saturating_sub(COMPARED)..self.start];
        let right = &seq[self.end..(self.end + COMPARED).min(seq.len())];
        if left.len() < FLANK || right.len() < FLANK {
            return None;
        }
        let wrong = |a: &[u8], b: &[u8]| a.iter().zip(b).filter(|(x, y)| x != y).count();
        // An offset told by the right flank is off by as much as the repeat has changed.
        let slips = (0..=FARTHEST).flat_map(|n| [n * self.unit as i32, -n * self.unit as i32]);
        let mut best: Option<(usize, usize)> = None;
        let mut tried: Vec<usize> = Vec::new();
        for (slip, &offset) in slips.flat_map(|slip| offsets.iter().map(move |offset| (slip, offset))) {
            let begin = usize::try_from(self.start as i32 - offset + slip);
            let Some(begin) = begin.ok().filter(|&b| b <= read.len() && !tried.contains(&b)) else {
                continue;
            };
            tried.push(begin);
            let shown = begin.min(left.len());
            let beside = wrong(&read[begin - shown..begin], &left[left.len() - shown..]);
            if shown < FLANK || beside > 1 {
                continue;
            }
            let fits = |i: usize| read.get(begin + i) == Some(&unit[i % self.unit]);
            let run = |from: usize| (from..).take_while(|&i| fits(i)).count() + from;
            let behind = |len: usize| {
                let behind = read.get(begin + len..).unwrap_or_default();
                Some(wrong(behind, right)).filter(|&wrong| behind.len() >= FLANK && wrong <= 1)
            };
            let len = run(0);
            // A wrong base in the repeat: it goes on behind.
            let on = run(len + 1);
            let found = match behind(len) {
                Some(wrong) => Some((wrong, len)),
                None if on > len + self.unit.max(2) => behind(on).map(|wrong| (wrong + 1, on)),
                None => None,
            };
            // Flanks that look like the repeat fit in several ways: the one that fits best, of equals the nearest.
            if let Some((wrong, len)) = found.map(|(wrong, len)| (wrong + beside, len)) {
                if best.is_none_or(|(least, _)| wrong < least) {
                    best = Some((wrong, len));
                }
                if wrong == 0 {
                    break;
                }
            }
        }
        best.map(|(_, len)| len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_off_reads() {
        let seq =
            |copies: usize| [&b"GATTACCTGAGTCCGT"[..], &b"CA".repeat(copies), b"GTCCAGATTCGGATT"].concat();
        let contig = seq(10);
        let repeat = Repeat::round(&contig, 20, 2);
        assert_eq!((repeat.len(), repeat.unit), (20, 2));
        for copies in [4, 9, 10, 11, 20] {
            assert_eq!(repeat.in_read(&contig, &seq(copies), &[0]), Some(2 * copies));
            assert_eq!(repeat.in_read(&contig, &seq(copies)[5..], &[5]), Some(2 * copies));
        }
        let mut wrong = seq(10);
        wrong[24] = b'G';
        assert_eq!(repeat.in_read(&contig, &wrong, &[0]), Some(20));
        // A flank is missing.
        assert_eq!(repeat.in_read(&contig, &contig[..38], &[0]), None);
        assert_eq!(repeat.in_read(&contig, &contig[12..], &[12]), None);
        assert_eq!(Repeat::all(&contig), [repeat]);
    }

    #[test]
    fn rates_follow_what_was_counted() {
        let mut tally = Tally::default();
        for _ in 0..1000 {
            tally.add_reads(1, 12, &[12, 12, 12, 12, 12, 12, 12, 12, 11, 13]);
        }
        // A germline variant is no slip.
        tally.add_reads(1, 12, &[11; 400]);
        let slippage = Slippage::of(&tally);
        for (shown, expected) in [(12, 0.8), (11, 0.09), (13, 0.09), (10, 0.009)] {
            let p = slippage.probability(1, 12, shown);
            assert!((p - expected).abs() < 0.1 * expected, "{shown}: {p}");
        }
        assert!(slippage.probability(1, 25, 24) > Slippage::default().probability(1, 15, 14));
        assert!(Slippage::default().probability(1, 8, 7) < 0.002);
    }

    #[test]
    fn a_few_reads_of_an_allele_are_no_slips() {
        let reads = |slipped: usize| [vec![11; slipped], vec![12; 100 - slipped]].concat();
        let learned = |outlier: bool| {
            let mut tally = Tally::default();
            (0..200).for_each(|i| tally.add_reads(1, 12, &reads(i % 3)));
            if outlier {
                (0..3).for_each(|_| tally.add_reads(1, 12, &reads(25)));
            }
            Slippage::of(&tally).probability(1, 12, 11)
        };
        assert!((learned(false) - 0.009).abs() < 0.002, "{}", learned(false));
        assert!((learned(true) - learned(false)).abs() < 1e-3);
    }

    #[test]
    fn long_repeats_tell_of_long_ones() {
        let mut tally = Tally::default();
        // Short ones look slipped oftener than they should, long ones never.
        (0..100).for_each(|_| tally.add_reads(2, 10, &[[10; 39].as_slice(), &[8]].concat()));
        (0..60).for_each(|_| tally.add_reads(1, 18, &[18; 40]));
        let times = |unit: usize, length: usize| {
            Slippage::of(&tally).rates(unit, length)[0].rate / Slippage::default().rates(unit, length)[0].rate
        };
        assert!(times(2, 10) > 10.0, "{}", times(2, 10));
        for (unit, length) in [(1, 22), (2, 48), (3, 60)] {
            assert!(
                times(unit, length) < if unit == 1 { 0.3 } else { 1.5 },
                "{unit}: {}",
                times(unit, length)
            );
        }
    }

    #[test]
    fn few_reads_and_places_apart_make_rates_uncertain() {
        let reads = |slipped: usize| [vec![11; slipped], vec![12; 200 - slipped]].concat();
        let spread = |sites: usize, slipped: [usize; 2]| {
            let mut tally = Tally::default();
            (0..sites).for_each(|i| tally.add_reads(1, 12, &reads(slipped[i % 2])));
            Slippage::of(&tally).rates(1, 12)[0].spread
        };
        let [none, few, many] = [0, 4, 400].map(|sites| spread(sites, [10, 10]));
        assert!(none > few && few > many && many < 0.05, "{none} {few} {many}");
        // Half of the places slip three times as often as the other half: 25 in the square, 10 of them by chance, where 10 are expected.
        let apart = spread(400, [5, 15]);
        assert!((apart - 0.15f64.sqrt()).abs() < 0.02, "{apart}");
    }

    #[test]
    fn tallies_add_up_and_units_are_apart() {
        let (mut one, mut two, mut both) = (Tally::default(), Tally::default(), Tally::default());
        for i in 0..100 {
            let lengths = [20, 20, 20, 20, 18];
            both.add_reads(2, 20, &lengths);
            if i % 2 == 0 { &mut one } else { &mut two }.add_reads(2, 20, &lengths);
        }
        one.add(&two);
        let (sum, all, guess) = (Slippage::of(&one), Slippage::of(&both), Slippage::default());
        assert!((sum.probability(2, 20, 18) - all.probability(2, 20, 18)).abs() < 1e-12);
        assert!(all.probability(2, 20, 18) > 0.1 && guess.probability(2, 20, 18) < 0.03);
        let shorter = |s: &Slippage, unit: usize, length: usize| s.probability(unit, length, length - unit);
        // Homopolymers say nothing of longer units, and the other way round; of those, lengths without reads slip as the library does.
        assert!((shorter(&all, 1, 10) - shorter(&guess, 1, 10)).abs() < 1e-12);
        for (unit, length) in [(3, 30), (2, 60)] {
            let times = shorter(&all, unit, length) / shorter(&guess, unit, length);
            assert!(times > 1.4 && times <= TIMES[1] + 1e-9, "{unit} {length}: {times}");
        }
        // No slip makes half a unit.
        assert!(all.probability(2, 20, 19) < 1e-3);
    }
}
