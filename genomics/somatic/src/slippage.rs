//! Slippage of tandem repeats: the probability that a read shows a repeat with a different length, and the length of
//! a repeat in a read.
//!
//! A polymerase that slips in a repeat inserts or omits a unit; this is more frequent in long repeats. The rates are
//! estimated from the samples' own reads: those of the normal, or of the tumours if there is no normal, at repeats next
//! to the changes. A prior weighs as much as 100 reads: the rates of PCR-free libraries, scaled by the factor by which
//! this library slips more.

use serde::{Deserialize, Serialize};

use crate::tandem_repeat::MAX_SHORT_REPEAT_UNIT_BP;

/// Largest number of copies with a slippage rate of its own. Repeats with more copies have the rate of this number.
const MAX_COPIES: usize = 40;

/// Parameters of the slippage model. The formulas are those of `docs/model/slippage.md`.
#[derive(Debug)]
pub(crate) struct SlippageModelParams {
    /// Weight of the prior rate, as a number of reads (formula 3). Unit: reads. Source: chosen (a repeat class with
    /// more than 100 reads is dominated by its own counts). If higher: the prior is trusted more.
    pub(crate) prior_weight_reads: f64,
    /// Slippage rate of PCR-free libraries at the number of copies `pcr_free_copies` and below: of units of 1 bp, of 2
    /// bp, and longer ones (formula 1). Unit: share of reads. Source: empirical; not fitted. If higher: more length
    /// changes are explained by slippage.
    pub(crate) pcr_free_rate: [f64; 3],
    /// Growth of the natural logarithm of `pcr_free_rate` with each further copy (formula 1). Unit: natural-log units
    /// per copy. Source: empirical; not fitted. If higher: long repeats slip more often.
    pub(crate) pcr_free_growth: [f64; 3],
    /// Number of copies from which `pcr_free_rate` grows (formula 1). Unit: copies. Source: empirical; not fitted. If
    /// higher: repeats slip less often.
    pub(crate) pcr_free_copies: [f64; 3],
    /// Maximum slippage rate of PCR-free libraries, both directions together (formula 1). Unit: share of reads. Source:
    /// empirical; not fitted. If higher: very long repeats slip more often.
    pub(crate) pcr_free_max_rate: f64,
    /// Shares of the slips that shorten and that lengthen a repeat (formula 1). Unit: share of slips. Source:
    /// empirical; not fitted. If higher: not to be changed alone, because the sum is 1.
    pub(crate) direction_shares: [f64; 2],
    /// Share of slips by two or more units among all slips, and of slips by one more unit among those (formula 6).
    /// Unit: share of slips. Source: empirical; not fitted. If higher: more length changes of several units are
    /// explained as slips.
    pub(crate) further_unit_share: f64,
    /// Probability that a read shows a length that no slip explains (formula 6). Unit: probability. Source: empirical;
    /// not fitted. If higher: single reads weigh less.
    pub(crate) unexplained_length_probability: f64,
    /// Maximum slippage rate of a library in one direction, shorter or longer (formula 2). Unit: share of reads.
    /// Source: empirical; not fitted. If higher: very long repeats slip more often.
    pub(crate) max_rate: f64,
    /// Weight of the prior scale factor 1 of a library, as a number of expected slips (formula 2). Unit: slips. Source:
    /// empirical; not fitted. If higher: more slips are needed to change the factor.
    pub(crate) scale_prior_slips: f64,
    /// Minimum and maximum of the factor by which a library slips more than PCR-free libraries (formula 2). Unit:
    /// ratio. Source: empirical; not fitted. If higher: libraries that slip more often are modelled.
    pub(crate) scale_range: [f64; 2],
    /// Rate at which PCR-free libraries shorten a repeat, from which the repeat counts as long (formula 2). Unit: share
    /// of reads. Source: empirical; not fitted. If higher: fewer repeats count as long.
    pub(crate) min_long_repeat_rate: f64,
    /// Standard deviation of the natural logarithm of the true rate around the prior rate (formula 4). Unit:
    /// natural-log units. Source: empirical; not fitted. If higher: rates of rare repeats are more uncertain, calls
    /// need more reads.
    pub(crate) prior_rate_spread: f64,
    /// Prior standard deviation of the natural logarithm of the rates of repeats of one class (formula 5). Unit:
    /// natural-log units. Source: empirical; not fitted. If higher: rates are more uncertain.
    pub(crate) prior_site_spread: f64,
    /// Maximum standard deviation of the natural logarithm of the rates of repeats of one class (formula 5). Unit:
    /// natural-log units. Source: empirical; not fitted. If higher: rates may be more uncertain.
    pub(crate) max_site_spread: f64,
    /// Probability of the number of slips of a repeat below which the repeat is an outlier of its class and is left
    /// out. Unit: probability. Source: empirical; not fitted. If higher: more sites are left out.
    pub(crate) min_site_probability: f64,
    /// Share of the reads of a repeat with one other length above which this length is an allele, not slippage. Unit:
    /// share of reads. Source: chosen (below the 0.5 of a heterozygous allele). If higher: more reads count as slips.
    pub(crate) min_allele_share: f64,
    /// Minimum number of copies of a homopolymer, and of a repeat of longer units, whose read lengths are counted.
    /// Unit: copies. Source: empirical; not fitted. If higher: short repeats are not counted.
    pub(crate) min_counted_copies: [usize; 2],
    /// Minimum number of bases of each flank that a read must have to show the length of a repeat. Unit: bases.
    /// Source: empirical; not fitted. If higher: fewer reads show a length.
    pub(crate) min_read_flank_bases: usize,
    /// Maximum number of bases of each flank that are compared with a read. Unit: bases. Source: chosen (for speed). If
    /// higher: slower.
    pub(crate) max_compared_flank_bases: usize,
    /// Maximum length change of a repeat that is recognised in a read. Unit: units. Source: empirical; not fitted. If
    /// higher: larger changes are recognised, slower.
    pub(crate) max_unit_change: i32,
    /// Minimum number of copies of a homopolymer, and of a repeat of longer units, for which the lengths that reads
    /// show are used as evidence. Unit: copies. Source: empirical; not fitted. If higher: short repeats are compared by
    /// haplotype.
    pub(crate) min_evidence_copies: [usize; 2],
    /// Minimum number of copies of a unit for slippage. Unit: copies. Source: empirical; not fitted. If higher: fewer
    /// changes count as length changes of repeats.
    pub(crate) min_slipping_copies: usize,
    /// Minimum share of the reads of the normal with the length of a germline allele. Unit: share of reads. Source:
    /// chosen (below the 0.5 of a heterozygous allele). If higher: more lengths count as slips.
    pub(crate) min_germline_share: f64,
    /// Maximum number of homopolymers of each length from 2 to 5 bases of which reads are counted, by contig (formula
    /// 9). Unit: homopolymers. Source: chosen (for speed). If higher: slower, more reads.
    pub(crate) max_short_homopolymers_per_contig: usize,
    /// Maximum number of reads of one short homopolymer that are counted (formula 9). Unit: reads. Source: chosen (for
    /// speed). If higher: slower, more reads.
    pub(crate) max_reads_per_short_homopolymer: usize,
    /// Minimum number of reads of homopolymers of one length to estimate its rates (formula 9). Unit: reads. Source:
    /// chosen. If higher: rates are estimated in fewer samples.
    pub(crate) min_short_homopolymer_reads: u64,
    /// Share of reads with another length below which a library has no length errors of short homopolymers (formula 9).
    /// Unit: share of reads. Source: chosen; reads of sequencing by synthesis have fewer than one in ten thousand. If
    /// higher: fewer libraries are modelled.
    pub(crate) min_short_homopolymer_rate: f64,
    /// Maximum length of the homopolymers that decide whether a library has frequent length errors of short
    /// homopolymers (formula 9). Unit: bases. Source: chosen; amplification makes length errors from four bases on. If
    /// higher: more libraries are modelled.
    pub(crate) max_bases_of_frequent_errors: usize,
    /// Weight of the general slippage rate against the reads of the normal at the locus (formula 8). Unit: reads.
    /// Source: empirical; not fitted. If higher: the locus weighs less.
    pub(crate) general_rate_weight_reads: f64,
}

/// Values of the parameters of the slippage model.
pub(crate) const SLIPPAGE_MODEL_PARAMS: SlippageModelParams = SlippageModelParams {
    prior_weight_reads: 100.0,
    pcr_free_rate: [5e-4, 5e-4, 2e-4],
    pcr_free_growth: [0.33, 0.3, 0.3],
    pcr_free_copies: [6.0, 4.0, 4.0],
    pcr_free_max_rate: 0.3,
    direction_shares: [0.7, 0.3],
    further_unit_share: 0.1,
    unexplained_length_probability: 1e-4,
    max_rate: 0.3,
    scale_prior_slips: 5.0,
    scale_range: [0.05, 10.0],
    min_long_repeat_rate: 0.005,
    prior_rate_spread: 0.4,
    prior_site_spread: 0.2,
    max_site_spread: 0.5,
    min_site_probability: 1e-4,
    min_allele_share: 0.33,
    min_counted_copies: [6, 4],
    min_read_flank_bases: 6,
    max_compared_flank_bases: 20,
    max_unit_change: 12,
    min_evidence_copies: [6, 3],
    min_slipping_copies: 3,
    min_germline_share: 0.2,
    max_short_homopolymers_per_contig: 4,
    max_reads_per_short_homopolymer: 200,
    min_short_homopolymer_reads: 2000,
    min_short_homopolymer_rate: 1e-3,
    max_bases_of_frequent_errors: 3,
    general_rate_weight_reads: 20.0,
};

/// Numbers of reads of one tandem repeat by the length that they show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RepeatSiteCounts {
    cell: u16,
    /// Number of reads with the expected length, with a shorter length, and with a longer length.
    counts: [u32; 3],
}

/// Numbers of reads of all counted tandem repeats, by whether they show the expected, a shorter or a longer length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadCountsByRepeatLength {
    sites: Vec<RepeatSiteCounts>,
}

fn repeat_class(unit: usize, copies: usize) -> usize {
    (unit - 1) * (MAX_COPIES + 1) + copies.min(MAX_COPIES)
}

impl ReadCountsByRepeatLength {
    /// Counts the reads of one repeat of `expected` bases, with units of `unit` bases, by the `lengths` that they show.
    /// If a different length is so frequent that it may be an allele, the repeat is not counted.
    pub fn count_repeat_reads(&mut self, unit: usize, expected: usize, lengths: &[usize]) {
        let mut others: Vec<usize> = lengths.iter().copied().filter(|&l| l != expected).collect();
        others.sort_unstable();
        let most = others.chunk_by(|a, b| a == b).map(<[usize]>::len).max().unwrap_or(0);
        if most as f64 > SLIPPAGE_MODEL_PARAMS.min_allele_share * lengths.len() as f64 || lengths.is_empty() {
            return;
        }
        let shorter = others.partition_point(|&l| l < expected);
        let counts = [lengths.len() - others.len(), shorter, others.len() - shorter].map(|n| n as u32);
        self.sites.push(RepeatSiteCounts { cell: repeat_class(unit, expected / unit) as u16, counts });
    }

    /// Adds the counts of other repeats, which another thread collected.
    pub fn merge_counts(&mut self, other: &ReadCountsByRepeatLength) {
        self.sites.extend_from_slice(&other.sites);
    }

    /// Sums the counts of each repeat class (unit length, number of copies). Also returns the scale factors of the
    /// library, and the spread of the rates of repeats of one class. Leaves out repeats with so many slips that they
    /// probably contain an allele with few reads.
    fn sum_by_class(&self) -> (Vec<[f64; 3]>, LibraryScale, f64) {
        let cells = MAX_SHORT_REPEAT_UNIT_BP * (MAX_COPIES + 1);
        let mut all = vec![[0u64; 3]; cells];
        let add = |all: &mut Vec<[u64; 3]>, site: &RepeatSiteCounts| {
            all[usize::from(site.cell)].iter_mut().zip(site.counts).for_each(|(a, n)| *a += u64::from(n));
        };
        self.sites.iter().for_each(|site| add(&mut all, site));
        let library = LibraryScale::estimate(&all);
        let mut kept = vec![[0u64; 3]; cells];
        let mut apart = RateDispersion::default();
        for site in &self.sites {
            let c = usize::from(site.cell);
            let (unit, copies) = (c / (MAX_COPIES + 1) + 1, c % (MAX_COPIES + 1));
            let [exact, shorter, longer] = site.counts.map(u64::from);
            let (n, slipped) = (exact + shorter + longer, shorter + longer);
            let others = all[c].iter().sum::<u64>() - n;
            let guessed: f64 = library.prior_rates(unit, copies).iter().sum();
            let rate = (guessed * SLIPPAGE_MODEL_PARAMS.prior_weight_reads + (all[c][1] + all[c][2] - slipped) as f64)
                / (SLIPPAGE_MODEL_PARAMS.prior_weight_reads + others as f64);
            if poisson_tail(n, slipped, rate) >= SLIPPAGE_MODEL_PARAMS.min_site_probability {
                add(&mut kept, site);
                apart.add_site(n as f64 * rate, slipped as f64);
            }
        }
        let kept = kept.into_iter().map(|counts| counts.map(|n| n as f64)).collect();
        (kept, library, apart.spread())
    }
}

/// Factors by which a library slips more than PCR-free libraries. They give the prior rates, which matter for repeat
/// classes with few reads. Short and long repeats have separate factors: most apparent slips of short repeats have
/// other causes, which do not increase with the length.
#[derive(Debug, Clone, Copy)]
struct LibraryScale {
    /// Factors by unit length (homopolymers, longer units), length (short, long) and direction (shorter, longer).
    ratios: [[[f64; 2]; 2]; 2],
}

/// Expected and observed numbers of reads that show a repeat too short or too long by whole units.
#[derive(Debug, Clone, Copy, Default)]
struct SlipCounts {
    expected: f64,
    observed: f64,
}

impl SlipCounts {
    /// Ratio of observed to expected slips with a prior ratio `before`, limited to `SLIPPAGE_MODEL_PARAMS.scale_range`.
    fn ratio(&self, before: f64) -> f64 {
        // docs/model/slippage.md (2)
        ((SLIPPAGE_MODEL_PARAMS.scale_prior_slips * before + self.observed)
            / (SLIPPAGE_MODEL_PARAMS.scale_prior_slips + self.expected))
            .clamp(SLIPPAGE_MODEL_PARAMS.scale_range[0], SLIPPAGE_MODEL_PARAMS.scale_range[1])
    }
}

impl LibraryScale {
    /// Estimates the factors from the counts of each repeat class: reads with the expected length, a shorter length,
    /// and a longer length.
    fn estimate(all: &[[u64; 3]]) -> LibraryScale {
        // Short repeats by unit; there are few long repeats, so all units are combined.
        let (mut short, mut long) = ([[SlipCounts::default(); 2]; 2], [SlipCounts::default(); 2]);
        for (c, counts) in all.iter().enumerate() {
            let (unit, copies) = (c / (MAX_COPIES + 1) + 1, c % (MAX_COPIES + 1));
            let n = counts.iter().sum::<u64>() as f64;
            for (direction, guessed) in pcr_free_rates(unit, copies).into_iter().enumerate() {
                let slips = if is_long_repeat(unit, copies) {
                    &mut long[direction]
                } else {
                    &mut short[usize::from(unit > 1)][direction]
                };
                slips.expected += n * guessed;
                slips.observed += counts[1 + direction] as f64;
            }
        }
        let times = |units: usize| {
            let short = [0, 1].map(|direction| short[units][direction].ratio(1.0));
            [short, [0, 1].map(|direction| long[direction].ratio(short[direction]))]
        };
        LibraryScale { ratios: [0, 1].map(times) }
    }

    /// Prior slippage rates of this library for a repeat of `copies` copies of a unit of `unit` bases: shorter, longer.
    fn prior_rates(&self, unit: usize, copies: usize) -> [f64; 2] {
        let [shorter, longer] = self.ratios[usize::from(unit > 1)][usize::from(is_long_repeat(unit, copies))];
        let guess = pcr_free_rates(unit, copies);
        [
            (guess[0] * shorter).min(SLIPPAGE_MODEL_PARAMS.max_rate),
            (guess[1] * longer).min(SLIPPAGE_MODEL_PARAMS.max_rate),
        ]
    }
}

/// Estimates how much the slippage rates of repeats of one class differ, for example because of their flanks: the
/// variance of the natural logarithm of their rates. Each repeat contributes an estimate with a weight that increases
/// with its expected number of slips. A prior contributes, too.
#[derive(Debug, Clone, Copy)]
struct RateDispersion {
    /// Weighted sum of the variance estimates of all repeats and of the prior variance; the weights are the reciprocal
    /// variances of these estimates.
    weighted_variance: f64,
    weights: f64,
}

impl Default for RateDispersion {
    fn default() -> RateDispersion {
        RateDispersion {
            weighted_variance: SLIPPAGE_MODEL_PARAMS.prior_site_spread.powi(-2),
            weights: SLIPPAGE_MODEL_PARAMS.prior_site_spread.powi(-4),
        }
    }
}

impl RateDispersion {
    /// Adds a repeat with `slips` observed and `expected` expected slips. The variance of a Poisson variable is its
    /// mean; any excess is variance of the rate.
    fn add_site(&mut self, expected: f64, slips: f64) {
        let weight = expected.powi(3) / (1.0 + 2.0 * expected);
        if weight > 0.0 {
            // docs/model/slippage.md (5)
            self.weighted_variance += weight * ((slips - expected).powi(2) - expected) / expected.powi(2);
            self.weights += weight;
        }
    }

    fn spread(&self) -> f64 {
        (self.weighted_variance / self.weights).max(0.0).sqrt().min(SLIPPAGE_MODEL_PARAMS.max_site_spread)
    }
}

/// Approximate probability that `k` or more of `n` reads slip at a given rate: Poisson tail, from its largest term.
fn poisson_tail(n: u64, k: u64, rate: f64) -> f64 {
    let mean = n as f64 * rate;
    if k == 0 || k as f64 <= mean {
        return 1.0;
    }
    let mut term = (-mean).exp();
    for i in 1..=k {
        term *= mean / i as f64;
    }
    // The following terms decrease at least this fast.
    term / (1.0 - mean / (k + 1) as f64)
}

/// Slippage rate of a repeat in one direction, shorter or longer.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SlippageRate {
    /// Probability that a read of the repeat has slipped in this direction.
    pub rate: f64,
    /// Standard deviation of the natural logarithm of the rate: its uncertainty.
    pub log_spread: f64,
}

/// Slippage rates of all repeat classes (unit length, number of copies) in the samples of a call.
#[derive(Debug, Clone)]
pub struct SlippageModel {
    /// Rates at which a repeat is read too short, and too long; indexed by repeat class (unit length, copies).
    rates: Vec<[SlippageRate; 2]>,
    /// Number of reads of each repeat class that were counted in the normal, or in the tumours without a normal.
    reads: Vec<u64>,
}

/// Estimated slippage of repeats with a given unit length and number of copies, for the report.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RepeatClassSlippage {
    /// Length of the repeat unit in bases.
    pub unit: u8,
    /// Number of copies; the highest number includes longer repeats.
    pub copies: u8,
    /// Number of reads that were counted, of the normal, or of the tumours without a normal.
    pub reads: u64,
    /// Slippage rate: share of the reads over a repeat that show fewer units than the allele has.
    pub shorter: f64,
    /// Slippage rate: share of the reads over a repeat that show more units than the allele has.
    pub longer: f64,
}

/// Slippage rates of a PCR-free library for a repeat of `copies` copies of a unit of `unit` bases: shorter, longer
/// (share of reads). Empirical: exponential in the number of copies, 70 % of the slips shorten the repeat.
fn pcr_free_rates(unit: usize, copies: usize) -> [f64; 2] {
    let n = copies as f64;
    // docs/model/slippage.md (1)
    let of = |class: usize| {
        let more = (n - SLIPPAGE_MODEL_PARAMS.pcr_free_copies[class]).max(0.0);
        SLIPPAGE_MODEL_PARAMS.pcr_free_rate[class] * (SLIPPAGE_MODEL_PARAMS.pcr_free_growth[class] * more).exp()
    };
    let rate = match unit {
        1 => of(0),
        2 => of(1),
        _ => of(2),
    };
    SLIPPAGE_MODEL_PARAMS.direction_shares.map(|share| share * rate.min(SLIPPAGE_MODEL_PARAMS.pcr_free_max_rate))
}

/// Whether the repeat counts as long, because PCR-free libraries often shorten it.
fn is_long_repeat(unit: usize, copies: usize) -> bool {
    pcr_free_rates(unit, copies)[0] >= SLIPPAGE_MODEL_PARAMS.min_long_repeat_rate
}

impl SlippageModel {
    /// Estimates the slippage rates of all repeat classes from counts and the prior. Counts of repeats with one copy
    /// more or less are included in the rate of a class.
    pub fn estimate_slippage_rates(length_counts: &ReadCountsByRepeatLength) -> SlippageModel {
        let (sums, library, apart) = length_counts.sum_by_class();
        let rate = |unit: usize, copies: usize| {
            let mut all = SLIPPAGE_MODEL_PARAMS.prior_weight_reads;
            let mut seen = [0.0; 2];
            for near in copies.saturating_sub(1)..=(copies + 1).min(MAX_COPIES) {
                let [exact, shorter, longer] = sums[repeat_class(unit, near)];
                all += exact + shorter + longer;
                seen[0] += shorter;
                seen[1] += longer;
            }
            let guessed = library.prior_rates(unit, copies);
            [0, 1].map(|direction| SlippageRate {
                // docs/model/slippage.md (3)
                rate: (guessed[direction] * SLIPPAGE_MODEL_PARAMS.prior_weight_reads + seen[direction]) / all,
                // docs/model/slippage.md (4)
                log_spread: (1.0 / (SLIPPAGE_MODEL_PARAMS.prior_rate_spread.powi(-2) + seen[direction])
                    + apart.powi(2))
                .sqrt(),
            })
        };
        SlippageModel {
            rates: (1..=MAX_SHORT_REPEAT_UNIT_BP)
                .flat_map(|unit| (0..=MAX_COPIES).map(move |c| (unit, c)))
                .map(|(u, c)| rate(u, c))
                .collect(),
            reads: sums.iter().map(|counts| counts.iter().sum::<f64>() as u64).collect(),
        }
    }

    /// Slippage rates of the repeat classes for which reads were counted, for the report.
    pub fn rates_of_counted_classes(&self) -> Vec<RepeatClassSlippage> {
        let seen = (0..self.rates.len()).filter(|&c| self.reads[c] > 0);
        seen.map(|c| {
            let [shorter, longer] = self.rates[c].map(|r| r.rate);
            let (unit, copies) = ((c / (MAX_COPIES + 1) + 1) as u8, (c % (MAX_COPIES + 1)) as u8);
            RepeatClassSlippage { unit, copies, reads: self.reads[c], shorter, longer }
        })
        .collect()
    }

    /// Probability that a repeat of `length` bases with units of `unit` bases is read as `shown` bases.
    pub fn probability_of_shown_length(&self, unit: usize, length: usize, shown: usize) -> f64 {
        let [shorter, longer] = self.rates[repeat_class(unit, length / unit)];
        let off = shown.abs_diff(length);
        if off == 0 {
            return 1.0 - shorter.rate - longer.rate;
        }
        if !off.is_multiple_of(unit) {
            return SLIPPAGE_MODEL_PARAMS.unexplained_length_probability;
        }
        let SlippageRate { rate, .. } = if shown < length { shorter } else { longer };
        // docs/model/slippage.md (6)
        (rate
            * (1.0 - SLIPPAGE_MODEL_PARAMS.further_unit_share)
            * SLIPPAGE_MODEL_PARAMS.further_unit_share.powi((off / unit) as i32 - 1))
        .max(SLIPPAGE_MODEL_PARAMS.unexplained_length_probability)
    }

    /// Rates at which a repeat of `length` bases with units of `unit` bases is read shorter, and longer.
    pub fn shortening_and_lengthening_rates(&self, unit: usize, length: usize) -> [SlippageRate; 2] {
        self.rates[repeat_class(unit, length / unit)]
    }
}

impl Default for SlippageModel {
    fn default() -> SlippageModel {
        SlippageModel::estimate_slippage_rates(&ReadCountsByRepeatLength::default())
    }
}

/// The range of a tandem repeat in a sequence, with the length of the repeat unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepeatRange {
    /// Index of the first base of the repeat in the sequence.
    pub start: usize,
    /// Index after the last base of the repeat.
    pub end: usize,
    /// Length of the repeat unit in bases.
    pub unit: usize,
}

impl RepeatRange {
    /// The repeat with units of `unit` bases around position `at`, extended in both directions as long as each base
    /// equals the base one unit away.
    pub fn find_repeat_around(seq: &[u8], at: usize, unit: usize) -> RepeatRange {
        let mut start = at.min(seq.len());
        while start > 0 && start - 1 + unit < seq.len() && seq[start - 1] == seq[start - 1 + unit] {
            start -= 1;
        }
        let mut last = start;
        while last + unit < seq.len() && seq[last] == seq[last + unit] {
            last += 1;
        }
        RepeatRange { start, end: last + unit, unit }
    }

    /// Finds all repeats of a sequence that have enough copies to be counted, sorted by unit length and start.
    pub fn find_countable_repeats(seq: &[u8]) -> Vec<RepeatRange> {
        let mut found: Vec<RepeatRange> = Vec::new();
        for unit in 1..=MAX_SHORT_REPEAT_UNIT_BP {
            let least = unit * SLIPPAGE_MODEL_PARAMS.min_counted_copies[usize::from(unit > 1)];
            let mut at = 0;
            while at + least <= seq.len() {
                let run = (at..seq.len() - unit).take_while(|&i| seq[i] == seq[i + unit] && seq[i] != b'N').count();
                let repeat = RepeatRange { start: at, end: at + run + unit, unit };
                let within = |r: &RepeatRange| r.start <= repeat.start && repeat.end <= r.end && unit % r.unit == 0;
                if run + unit >= least && !found.iter().any(within) {
                    found.push(repeat);
                }
                at += run + 1;
            }
        }
        found
    }

    /// Length of the repeat in bp.
    pub fn length_bp(&self) -> usize {
        self.end - self.start
    }

    /// Length in bases of this repeat of the contig `seq` in a read whose first base is at one of the `offsets` on
    /// `seq`. `None` if the read does not show both flanks. One mismatch in each flank and one in the repeat are
    /// allowed.
    pub(crate) fn length_in_read(&self, seq: &[u8], read: &[u8], offsets: &[i32]) -> Option<usize> {
        let unit = &seq[self.start..self.start + self.unit];
        let left = &seq[self.start.saturating_sub(SLIPPAGE_MODEL_PARAMS.max_compared_flank_bases)..self.start];
        let right = &seq[self.end..(self.end + SLIPPAGE_MODEL_PARAMS.max_compared_flank_bases).min(seq.len())];
        if left.len() < SLIPPAGE_MODEL_PARAMS.min_read_flank_bases
            || right.len() < SLIPPAGE_MODEL_PARAMS.min_read_flank_bases
        {
            return None;
        }
        let wrong = |a: &[u8], b: &[u8]| a.iter().zip(b).filter(|(x, y)| x != y).count();
        // An offset derived from the right flank is shifted by the repeat's length change.
        let changes = (1..=SLIPPAGE_MODEL_PARAMS.max_unit_change).flat_map(|n| [n, -n]);
        let slips = std::iter::once(0).chain(changes).map(|n| n * self.unit as i32);
        let mut best: Option<(usize, usize)> = None;
        let distinct_offsets = offsets.iter().enumerate().filter(|(i, offset)| !offsets[..*i].contains(offset));
        for (slip, (_, offset)) in slips.flat_map(|slip| distinct_offsets.clone().map(move |offset| (slip, offset))) {
            let begin = usize::try_from(self.start as i32 - offset + slip);
            let Some(begin) = begin.ok().filter(|&b| b <= read.len()) else {
                continue;
            };
            let shown = begin.min(left.len());
            let left_mismatches = wrong(&read[begin - shown..begin], &left[left.len() - shown..]);
            if shown < SLIPPAGE_MODEL_PARAMS.min_read_flank_bases || left_mismatches > 1 {
                continue;
            }
            let fits = |i: usize| read.get(begin + i) == Some(&unit[i % self.unit]);
            let run = |from: usize| (from..).take_while(|&i| fits(i)).count() + from;
            let right_mismatches = |len: usize| {
                let right_mismatches = read.get(begin + len..).unwrap_or_default();
                Some(wrong(right_mismatches, right))
                    .filter(|&wrong| right_mismatches.len() >= SLIPPAGE_MODEL_PARAMS.min_read_flank_bases && wrong <= 1)
            };
            let len = run(0);
            // A mismatch in the repeat: the repeat continues after it.
            let on = run(len + 1);
            let found = match right_mismatches(len) {
                Some(wrong) => Some((wrong, len)),
                None if on > len + self.unit.max(2) => right_mismatches(on).map(|wrong| (wrong + 1, on)),
                None => None,
            };
            // Flanks that resemble the repeat fit at several positions: the best one is chosen, the nearest of
            // equals.
            if let Some((wrong, len)) = found.map(|(wrong, len)| (wrong + left_mismatches, len)) {
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
mod tests;
