//! Library metrics computed from the counts of a sample, with confidence intervals.

use genuma_reads::TrimCounts;
use serde::{Deserialize, Serialize};

use super::cycles::{RANDOM_BASE_ERROR_PROBABILITY, SingleCycleTally, UNITS_PER_EXPECTED_ERROR};
use super::duplicates::{DUPLICATE_KEY_BASES_PER_MATE, DuplicateKeySummary};
use super::telomere::TELOMERE_MOTIFS;
use super::{DetailTally, LibraryTally, MAX_TRACKED_LENGTH, overlap};
use crate::confidence_interval::Estimate;

/// Metrics of the sequencing library of one sample.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LibraryMetrics {
    /// Number of read pairs of the sample, duplicates included; a single read counts as a pair.
    pub pairs: u64,
    /// Number of bases of all reads, before trimming.
    pub bases: u64,
    /// Number of pairs that were examined base by base, sampled by read name. [`Self::mates`] (except the read
    /// lengths), [`Self::gc`], [`Self::insert`] and [`Self::errors`] are based on them.
    pub examined_pairs: u64,
    /// Read lengths, qualities and base composition of read 1 and of read 2.
    pub mates: [MateMetrics; 2],
    /// GC content: share of G and C among the bases that are not N (0 to 1); `None` without such bases.
    pub gc: Option<f64>,
    /// Share of the read pairs whose fragment is shorter than a read, so that reads run into the adapter; `None`
    /// without pairs.
    pub adapter_share: Option<Estimate>,
    /// Distribution of insert sizes, measured in pairs whose mates overlap.
    pub insert: InsertSizeMetrics,
    /// Sequencing error rates, measured where the two mates of a pair overlap.
    pub errors: ErrorMetrics,
    /// Shares of duplicates, and the number of distinct molecules.
    pub duplicates: DuplicateMetrics,
    /// Read pairs with telomere repeats.
    pub telomeres: TelomereMetrics,
}

/// Read lengths of all pairs, and qualities and base composition of the examined pairs, for read 1 or for read 2.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MateMetrics {
    /// Length in bases of the shortest, of the most frequent and of the longest read; lengths above 1024 count as 1024.
    pub lengths: [u64; 3],
    /// Mean Phred quality of all bases; `None` without bases.
    pub quality: Option<f64>,
    /// Share of the bases (before trimming) with Phred quality 30 or more; `None` without bases.
    pub q30: Option<f64>,
    /// Share of the bases (before trimming) that are N; `None` without bases.
    pub n: Option<f64>,
    /// Number of cycles at the start of the reads with another base composition than later cycles, a trace of the
    /// fragmentation method.
    pub(crate) biased_start: usize,
    /// Metrics by cycle, from the first cycle on.
    pub cycles: Vec<SingleCycleMetrics>,
}

/// Qualities, base composition and error rate of one sequencing cycle.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SingleCycleMetrics {
    /// Mean Phred quality of the bases of this cycle.
    pub quality: f64,
    /// Share of the bases of this cycle (before trimming) with Phred quality 30 or more.
    pub q30: f64,
    /// Share of the bases of this cycle (before trimming) that are N.
    pub n: f64,
    /// Shares of A, C, G and T among the bases that are not N.
    pub bases: [f64; 4],
    /// Sequencing errors per base; `None` if fewer than 1000 bases of this cycle were compared with the other mate.
    pub errors: Option<f64>,
}

/// Insert sizes (fragment lengths), measured in pairs whose mates overlap. Longer inserts cannot be measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct InsertSizeMetrics {
    /// Share of the examined read pairs whose mates overlap by at least 24 bases; `None` without examined pairs.
    pub overlapping_share: Option<Estimate>,
    /// Longest insert size that can be measured, in bases: the sum of the most frequent lengths of both mates minus the
    /// minimum overlap.
    pub max_measurable: u64,
    /// Insert size in bases at the quantiles 0.05, 0.25, 0.5 and 0.75; `None` if it is too long to be measured, or if
    /// fewer than 100 pairs were examined.
    pub quantiles: [Option<u64>; 4],
    /// Mean of the measured insert sizes, in bases; `None` if no mates overlap.
    pub mean_measured: Option<f64>,
    /// Number of pairs by insert size, in classes of 10 bases.
    pub histogram: Vec<u64>,
}

/// Sequencing errors, from disagreements of overlapping mates. The base of lower quality counts as wrong; if both
/// qualities are equal, each base counts as half an error.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorMetrics {
    /// Number of bases that were compared with the other mate, counted in both mates.
    pub compared: u64,
    /// Errors per compared base; `None` if no bases were compared.
    pub compared_rate: Option<Estimate>,
    /// Errors per base over all examined reads, without bases of quality 2 or less. It combines the rates of the
    /// cycles; in cycles with few compared bases the qualities, calibrated by the compared bases, give the rate. `None`
    /// if the compared bases show no error.
    pub rate: Option<Estimate>,
    /// Errors per base that the Phred qualities of the compared bases predict; `None` if no bases were compared.
    pub expected_from_quality: Option<f64>,
    /// Shares of the 12 substitutions among all errors, as true base>read base: A>C, A>G, … T>G.
    pub substitutions: Vec<SubstitutionErrorShare>,
    /// Measured error rate for each Phred quality of the compared bases.
    pub(crate) by_quality: Vec<SingleQualityErrorRate>,
}

/// One substitution (such as C>T) and its share of all sequencing errors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SubstitutionErrorShare {
    /// True base and read base, such as `A>C`.
    pub change: String,
    /// Share of this substitution among all sequencing errors (0 to 1).
    pub share: Estimate,
}

/// Measured error rate of the bases to which the sequencer gave one Phred quality.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SingleQualityErrorRate {
    /// Phred quality that the sequencer gave to these bases.
    pub quality: usize,
    /// Number of bases of this quality that were compared with the other mate.
    pub compared: u64,
    /// Sequencing errors per compared base of this quality.
    pub errors: Estimate,
}

/// Duplicates: read pairs whose mates both start with the same bases as those of another pair.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DuplicateMetrics {
    /// Number of read pairs that were compared: those whose duplicate key (hash of the first bases of both mates) is
    /// among the sampled keys.
    pub compared: u64,
    /// Number of pairs that were not compared, because a mate has fewer bases than the duplicate key needs.
    pub short_pairs: u64,
    /// Share of the compared read pairs whose duplicate key an earlier pair has; `None` if no pairs were compared.
    pub observed: Option<Estimate>,
    /// [`Self::observed`], corrected for duplicates that sequencing errors in the first bases hide; `None` if no pairs
    /// were compared.
    pub share: Option<Estimate>,
    /// Share of the compared read pairs that have the same duplicate key as another molecule by coincidence, at this
    /// depth; `None` if the depth is unknown or no pairs were compared.
    pub(crate) by_chance: Option<f64>,
    /// Share of the compared read pairs that are PCR or optical duplicates: [`Self::share`] without coincidences
    /// (`by_chance`, 0 if unknown). `None` if no pairs were compared.
    pub pcr_duplicates: Option<Estimate>,
    /// Estimated number of distinct molecules in the library (library size), if all are amplified equally; `None` if
    /// there are fewer than 10 duplicates, or if nearly all pairs start at a few positions, as in amplicons.
    pub molecules: Option<Estimate>,
    /// Rating of the share of duplicates as text for the report, such as `few duplicates`.
    pub note: String,
}

/// Read pairs with telomere repeats: a mate contains the telomere motif at least six times.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TelomereMetrics {
    /// Telomere motif that most pairs have, such as `TTAGGG`; `None` if fewer than 3 pairs have one.
    pub motif: Option<String>,
    /// Taxon whose telomeres consist of this motif, such as vertebrates; `None` if [`Self::motif`] is `None`.
    pub taxon: Option<String>,
    /// Number of pairs with the most frequent telomere motif, also if there are too few to report the motif.
    pub pairs: u64,
    /// [`Self::pairs`] per million read pairs; `None` without read pairs.
    pub per_million: Option<Estimate>,
    /// Each motif that was searched for, with the number of pairs that have it; a pair with several counts for the
    /// longest run.
    pub(crate) motifs: Vec<(String, u64)>,
}

/// Library metrics of the normal and the tumour.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SamplePairLibraryMetrics {
    /// Metrics of the normal.
    pub normal: LibraryMetrics,
    /// Metrics of the tumour.
    pub tumor: LibraryMetrics,
    /// Ratio of tumour to normal of the share of pairs with telomere repeats; `None` if either sample has no motif, or
    /// if the motifs differ.
    pub telomeres: Option<Estimate>,
}

impl SamplePairLibraryMetrics {
    /// Computes the metrics of both samples (normal, tumour) from their counts and trimming counts. `depths` are the
    /// read depths of the samples, `None` if unknown.
    pub fn from_tallies(
        tallies: [&LibraryTally; 2],
        trimmed: [&TrimCounts; 2],
        depths: [Option<f64>; 2],
    ) -> SamplePairLibraryMetrics {
        let [normal, tumor] = [0, 1].map(|i| LibraryMetrics::from_tally(tallies[i], trimmed[i], depths[i]));
        let (over, under) = (&tumor.telomeres, &normal.telomeres);
        let same = over.motif.is_some() && over.motif == under.motif;
        let ratio =
            || Estimate::ratio_of_event_rates((over.pairs, tumor.pairs as f64), (under.pairs, normal.pairs as f64));
        let telomeres = if same { ratio() } else { None };
        SamplePairLibraryMetrics { normal, tumor, telomeres }
    }
}

impl LibraryMetrics {
    /// Computes the metrics of a sample from its counts and trimming counts. `depth` is its read depth, `None` if
    /// unknown; without it, duplicates by coincidence are not estimated.
    pub fn from_tally(tally: &LibraryTally, trimmed: &TrimCounts, depth: Option<f64>) -> LibraryMetrics {
        let detail = tally.details.sum_of_levels();
        let mates = [0, 1].map(|i| mate_metrics(&detail.cycles.by_mate[i], &tally.lengths[i]));
        let mut known = [0; 4];
        for cycle in detail.cycles.by_mate.iter().flatten() {
            known.iter_mut().zip(cycle.base_counts).for_each(|(sum, n)| *sum += n);
        }
        let insert = insert_sizes(&detail, mates[0].lengths[1] + mates[1].lengths[1]);
        let errors = error_metrics(&detail);
        let density = depth.map(|depth| depth * tally.num_pairs as f64 / tally.num_bases.max(1) as f64);
        let met = density.map(|pairs| pairs * same_length_probability(&detail));
        LibraryMetrics {
            pairs: tally.num_pairs,
            bases: tally.num_bases,
            examined_pairs: detail.pairs,
            gc: proportion(known[1] + known[2], known.iter().sum()).map(rounded),
            adapter_share: Estimate::from_binomial(trimmed.pairs_with_adapter, trimmed.pairs),
            duplicates: duplicate_metrics(tally, error_free_key_probability(&detail), met),
            telomeres: telomere_metrics(tally),
            mates,
            insert,
            errors,
        }
    }
}

/// Factor for rounding to four decimals.
const FOUR_DECIMALS: f64 = 1e4;

/// Rounds to four decimals to keep the JSON output short. Further digits are below the accuracy of the measurement.
fn rounded(x: f64) -> f64 {
    (x * FOUR_DECIMALS).round() / FOUR_DECIMALS
}

fn proportion(count: u64, total: u64) -> Option<f64> {
    (total > 0).then(|| count as f64 / total as f64)
}

/// Minimum deviation of a base's share in a cycle from its share in later cycles, in addition to noise, to call the
/// cycle biased. Chosen.
const MIN_BASE_BIAS: f64 = 0.03;
/// Number of standard deviations by which a base's share in a cycle may differ from its share in later cycles. Chosen:
/// one of 16,000 cycles differs more by chance; a higher value finds fewer biased cycles.
const BIAS_DEVIATIONS: f64 = 4.0;
/// Largest possible variance of a base's share in a cycle, per observed base: that of a share of one half.
const MAX_BASE_VARIANCE: f64 = 0.25;

/// Number of first cycles that are tested for bias.
const MAX_BIASED_CYCLES: usize = 25;
/// Minimum number of compared bases of a cycle to report its error rate.
const MIN_COMPARED_BASES: u64 = 1000;

fn mate_metrics(cycles: &[SingleCycleTally], lengths: &[u64]) -> MateMetrics {
    let seen = |&(_, &n): &(usize, &u64)| n > 0;
    let all = || lengths.iter().enumerate().filter(seen).map(|(length, _)| length as u64);
    let most_frequent =
        lengths.iter().enumerate().max_by_key(|&(length, n)| (*n, length)).map_or(0, |(length, _)| length);
    let lengths = [all().min().unwrap_or(0), most_frequent as u64, all().max().unwrap_or(0)];
    let sum = |of: fn(&SingleCycleTally) -> u64| cycles.iter().map(of).sum::<u64>();
    let bases = sum(SingleCycleTally::num_bases_in_cycle);
    MateMetrics {
        lengths,
        quality: proportion(sum(|c| c.quality_sum), bases).map(rounded),
        q30: proportion(sum(|c| c.q30_bases), bases).map(rounded),
        n: proportion(sum(|c| c.base_counts[4]), bases).map(rounded),
        biased_start: biased_start(cycles),
        cycles: cycles.iter().map(cycle_metrics).collect(),
    }
}

fn base_shares(cycle: &SingleCycleTally) -> [f64; 4] {
    let known: u64 = cycle.base_counts[..4].iter().sum();
    [0, 1, 2, 3].map(|base| cycle.base_counts[base] as f64 / known.max(1) as f64)
}

fn cycle_metrics(cycle: &SingleCycleTally) -> SingleCycleMetrics {
    let of = |n: u64| rounded(proportion(n, cycle.num_bases_in_cycle()).unwrap_or(0.0));
    SingleCycleMetrics {
        quality: of(cycle.quality_sum),
        q30: of(cycle.q30_bases),
        n: of(cycle.base_counts[4]),
        bases: base_shares(cycle).map(rounded),
        errors: (cycle.compared_bases >= MIN_COMPARED_BASES)
            .then(|| rounded_rate(cycle.error_halves as f64 / 2.0 / cycle.compared_bases as f64)),
    }
}

fn rounded_rate(x: f64) -> f64 {
    (x * 1e6).round() / 1e6
}

/// Returns the number of cycles at the start of the reads up to the last biased one: a cycle whose base composition
/// differs from that of later cycles.
fn biased_start(cycles: &[SingleCycleTally]) -> usize {
    let mut later = SingleCycleTally::default();
    for cycle in cycles.iter().skip(MAX_BIASED_CYCLES).take(2 * MAX_BIASED_CYCLES) {
        later.base_counts.iter_mut().zip(cycle.base_counts).for_each(|(sum, n)| *sum += n);
    }
    if later.num_bases_in_cycle() == 0 {
        return 0;
    }
    let later_shares = base_shares(&later);
    let biased = |cycle: &SingleCycleTally| {
        let chance = BIAS_DEVIATIONS * (MAX_BASE_VARIANCE / cycle.num_bases_in_cycle().max(1) as f64).sqrt();
        base_shares(cycle)
            .iter()
            .zip(later_shares)
            .any(|(here, later_shares)| (here - later_shares).abs() > MIN_BASE_BIAS + chance)
    };
    cycles.iter().take(MAX_BIASED_CYCLES).rposition(biased).map_or(0, |last| last + 1)
}

/// Quantiles of the insert size that are reported.
const INSERT_QUANTILES: [f64; 4] = [0.05, 0.25, 0.5, 0.75];
/// Minimum number of pairs to report quantiles of the insert size, and to rate the share of duplicates.
const MIN_REPORTED_PAIRS: u64 = 100;
/// Width of a class of the insert size histogram, in bases.
const HISTOGRAM_STEP_BP: usize = 10;

fn insert_sizes(detail: &DetailTally, read_bases: u64) -> InsertSizeMetrics {
    let fragments = &detail.fragment_lengths;
    let overlapping: u64 = fragments.iter().sum();
    let quantile = |share: f64| {
        let wanted = share * detail.pairs as f64;
        let mut sum = 0;
        let mut lengths = fragments.iter().map(|n| {
            sum += n;
            sum
        });
        lengths.position(|sum| sum as f64 >= wanted).map(|length| length as u64)
    };
    let enough = detail.pairs >= MIN_REPORTED_PAIRS;
    let sum: u64 = fragments.iter().enumerate().map(|(length, n)| length as u64 * n).sum();
    InsertSizeMetrics {
        overlapping_share: Estimate::from_binomial(overlapping, detail.pairs),
        max_measurable: read_bases.min(2 * MAX_TRACKED_LENGTH as u64).saturating_sub(overlap::MIN_OVERLAP_BASES as u64),
        quantiles: INSERT_QUANTILES.map(|share| quantile(share).filter(|_| enough)),
        mean_measured: proportion(sum, overlapping).map(rounded),
        histogram: fragments.chunks(HISTOGRAM_STEP_BP).map(|step| step.iter().sum()).collect(),
    }
}

/// Assumed standard deviation, in bases, of insert sizes that are too long to be measured. Chosen; with a higher value
/// fewer pairs are expected to have the same two ends by coincidence.
const UNMEASURED_INSERT_SD_BP: f64 = 80.0;

/// Probability that two random fragments of the library have the same length.
fn same_length_probability(detail: &DetailTally) -> f64 {
    let pairs = detail.pairs.max(1) as f64;
    let seen: u64 = detail.fragment_lengths.iter().sum();
    let of_seen: f64 = detail.fragment_lengths.iter().map(|&n| (n as f64 / pairs).powi(2)).sum();
    // A pair equals itself; subtract that.
    let of_seen = (of_seen - seen as f64 / pairs.powi(2)).max(0.0);
    let unseen = 1.0 - seen as f64 / pairs;
    of_seen + unseen * unseen / (2.0 * UNMEASURED_INSERT_SD_BP * std::f64::consts::PI.sqrt())
}

/// Ratio of the observed error rate to that predicted by the qualities; 1 if there are too few disagreements.
fn quality_calibration(detail: &DetailTally) -> f64 {
    let disagreements = &detail.cycles.disagreements;
    let expected = disagreements.expected_errors as f64 / UNITS_PER_EXPECTED_ERROR;
    if disagreements.error_halves < 40 || expected <= 0.0 {
        1.0
    } else {
        disagreements.error_halves as f64 / 2.0 / expected
    }
}

fn cycle_error_rate(cycle: &SingleCycleTally, calibration: f64) -> f64 {
    match cycle.compared_bases {
        MIN_COMPARED_BASES.. => cycle.error_halves as f64 / 2.0 / cycle.compared_bases as f64,
        _ => (cycle.expected_errors as f64 / UNITS_PER_EXPECTED_ERROR / cycle.usable_bases.max(1) as f64 * calibration)
            .min(RANDOM_BASE_ERROR_PROBABILITY),
    }
}

/// Probability that the bases of a pair's duplicate key have no sequencing error.
fn error_free_key_probability(detail: &DetailTally) -> f64 {
    let calibration = quality_calibration(detail);
    let first =
        detail.cycles.by_mate.iter().flat_map(|cycles| &cycles[..cycles.len().min(DUPLICATE_KEY_BASES_PER_MATE)]);
    first.map(|cycle| 1.0 - cycle_error_rate(cycle, calibration)).product()
}

fn error_metrics(detail: &DetailTally) -> ErrorMetrics {
    let disagreements = &detail.cycles.disagreements;
    let (errors, compared) = (disagreements.error_halves as f64 / 2.0, disagreements.compared_bases as f64);
    let compared_rate = Estimate::rate_of_clustered_events(errors, disagreements.squared_errors as f64, compared);
    let calibration = quality_calibration(detail);
    let all = detail.cycles.by_mate.iter().flatten();
    let (mut bases, mut expected) = (0.0, 0.0);
    for cycle in all {
        bases += cycle.usable_bases as f64;
        expected += cycle.usable_bases as f64 * cycle_error_rate(cycle, calibration);
    }
    let of_all = |compared: Estimate| compared.scale_by(expected / bases / compared.value);
    let rate = compared_rate.filter(|rate| rate.value > 0.0 && expected > 0.0).map(of_all);
    let letters = ["A", "C", "G", "T"];
    let changes = (0..16).filter(|i| i / 4 != i % 4).filter_map(|i| {
        let share =
            Estimate::from_binomial(disagreements.substitutions[i / 4][i % 4] / 2, disagreements.error_halves / 2)?;
        Some(SubstitutionErrorShare { change: format!("{}>{}", letters[i / 4], letters[i % 4]), share })
    });
    let qualities = disagreements.by_quality.iter().enumerate().filter_map(|(quality, &[compared, halves])| {
        let errors = Estimate::rate_of_independent_events(halves / 2, compared as f64)?;
        Some(SingleQualityErrorRate { quality, compared, errors })
    });
    ErrorMetrics {
        compared: disagreements.compared_bases,
        compared_rate,
        rate,
        expected_from_quality: (disagreements.compared_bases > 0)
            .then(|| disagreements.expected_errors as f64 / UNITS_PER_EXPECTED_ERROR / compared),
        substitutions: changes.collect(),
        by_quality: qualities.collect(),
    }
}

/// Minimum number of duplicate pairs to estimate the number of molecules.
const MIN_DUPLICATES: f64 = 10.0;
/// Limits above which a library is described as amplicons: mean number of pairs per duplicate key, and share of pairs
/// whose key other pairs have. Chosen.
const AMPLICON_LIBRARY_LIMITS: (f64, f64) = (20.0, 0.9);

/// Expected number of distinct molecules among `pairs` pairs of a library of `molecules` molecules (Lander and
/// Waterman 1988).
fn expected_distinct_molecules(molecules: f64, pairs: f64) -> f64 {
    -molecules * (-pairs / molecules).exp_m1()
}

/// Estimates the number of molecules of a library: the number for which `distinct` distinct molecules are expected
/// among `pairs` pairs.
fn estimate_library_size(pairs: f64, distinct: f64) -> f64 {
    let (mut low, mut high) = (distinct.max(1.0), pairs * 1e9);
    for _ in 0..200 {
        let middle = (low * high).sqrt();
        if expected_distinct_molecules(middle, pairs) < distinct { low = middle } else { high = middle }
    }
    high
}

/// Corrects the share of duplicates for errors in the duplicate keys. `observed` is the share of pairs with the key of
/// an earlier pair, `error_free` the probability that a key has no error. Returns the corrected share and the estimated
/// number of molecules.
fn correct_for_key_errors(observed: f64, pairs: f64, error_free: f64) -> (f64, f64) {
    let whole = error_free * pairs;
    // Each key with an error is unique.
    let shows = (whole - observed * pairs).max(1.0);
    let molecules = estimate_library_size(whole, shows);
    (1.0 - expected_distinct_molecules(molecules, pairs) / pairs, molecules)
}

fn duplicate_metrics(tally: &LibraryTally, error_free: f64, expected_coincidences: Option<f64>) -> DuplicateMetrics {
    let counts @ DuplicateKeySummary { pairs, keys, repeated_pairs: repeated } =
        tally.duplicate_keys.summarise_pairs_and_keys();
    let copies = (pairs - keys) as f64;
    // Keys are sampled, not pairs.
    let seen = proportion(pairs - keys, pairs).and_then(|share| {
        Estimate::from_binomial((share * keys as f64).round() as u64, keys).map(|e| Estimate { value: share, ..e })
    });
    let share = seen.map(|seen| {
        seen.apply_increasing_function(|seen| correct_for_key_errors(seen, pairs as f64, error_free).0.max(seen))
    });
    let by_chance = expected_coincidences
        .zip(share)
        .map(|(expected_coincidences, share)| coincidence_share(expected_coincidences, share.value));
    let copied = share.map(|share| {
        share.apply_increasing_function(|share| duplicate_share_without_coincidences(share, by_chance.unwrap_or(0.0)))
    });
    // Many pairs share keys if all molecules start at a few places.
    let (each, alike) = AMPLICON_LIBRARY_LIMITS;
    let amplicons = pairs as f64 > each * keys as f64 && repeated as f64 > alike * pairs as f64;
    let molecules = seen.filter(|_| copies >= MIN_DUPLICATES && !amplicons).map(|seen| {
        let of =
            |seen| correct_for_key_errors(seen, pairs as f64, error_free).1 * tally.duplicate_keys.sampling_factor();
        Estimate { value: of(seen.value), low: of(seen.high), high: of(seen.low) }
    });
    DuplicateMetrics {
        compared: pairs,
        short_pairs: tally.short_pairs,
        observed: seen,
        by_chance: by_chance.map(rounded),
        molecules,
        note: duplicate_note(&counts, amplicons, copied).to_owned(),
        share,
        pcr_duplicates: copied,
    }
}

/// Returns the share of duplicates among the pairs that do not match another molecule by coincidence.
fn duplicate_share_without_coincidences(share: f64, by_chance: f64) -> f64 {
    (1.0 - (1.0 - share) / (1.0 - by_chance)).max(0.0)
}

/// Expected number of coincidental matches per pair below which their share is taken as 0, because the exact formula
/// divides by this number. Chosen: far below any count.
const NEGLIGIBLE_COINCIDENCES: f64 = 1e-9;

/// Share of the pairs that start with the same bases as another molecule by coincidence. `expected_coincidences` is the
/// number of other molecules that a pair would match if all pairs were from different molecules; `share` is the share
/// of all duplicates.
fn coincidence_share(expected_coincidences: f64, share: f64) -> f64 {
    let alone = |expected_coincidences: f64| {
        if expected_coincidences < NEGLIGIBLE_COINCIDENCES {
            1.0
        } else {
            -(-expected_coincidences).exp_m1() / expected_coincidences
        }
    };
    let mut by_chance = 0.0;
    for _ in 0..50 {
        // The more duplicates, the fewer molecules there are to coincide with.
        by_chance = (by_chance + 1.0
            - alone(expected_coincidences * (1.0 - duplicate_share_without_coincidences(share, by_chance))))
            / 2.0;
        by_chance = f64::min(by_chance, share);
    }
    by_chance
}

/// Duplicate share (0 to 1) from which the note says `some duplicates`. Chosen; affects the wording only.
const MIN_SHARE_SOME_DUPLICATES: f64 = 0.02;
/// Duplicate share (0 to 1) from which the note says `many duplicates`. Chosen; affects the wording only.
const MIN_SHARE_MANY_DUPLICATES: f64 = 0.2;

fn duplicate_note(counts: &DuplicateKeySummary, amplicons: bool, copied: Option<Estimate>) -> &'static str {
    let Some(copied) = copied.filter(|_| counts.pairs >= MIN_REPORTED_PAIRS) else {
        return "unknown: too few pairs";
    };
    match copied.value {
        _ if amplicons => {
            "probably amplicons: nearly all pairs start at a few positions, so duplicates cannot be counted"
        }
        0.0..MIN_SHARE_SOME_DUPLICATES => "few duplicates",
        MIN_SHARE_SOME_DUPLICATES..MIN_SHARE_MANY_DUPLICATES => "some duplicates",
        MIN_SHARE_MANY_DUPLICATES..0.5 => "many duplicates",
        _ => "more duplicates than unique molecules",
    }
}

/// Minimum number of pairs with a telomere motif to report the motif.
const MIN_TELOMERE_PAIRS: u64 = 3;

fn telomere_metrics(tally: &LibraryTally) -> TelomereMetrics {
    let most = (0..TELOMERE_MOTIFS.len()).rev().max_by_key(|&i| tally.telomere_pairs[i]);
    let motif = most.filter(|&i| tally.telomere_pairs[i] >= MIN_TELOMERE_PAIRS).map(|i| TELOMERE_MOTIFS[i]);
    let name = |bases: &[u8]| String::from_utf8_lossy(bases).into_owned();
    let pairs = most.map_or(0, |i| tally.telomere_pairs[i]);
    TelomereMetrics {
        motif: motif.map(|motif| name(motif.bases)),
        taxon: motif.map(|motif| motif.taxon.to_owned()),
        pairs,
        per_million: Estimate::rate_of_independent_events(pairs, tally.num_pairs as f64 / 1e6),
        motifs: TELOMERE_MOTIFS.iter().zip(tally.telomere_pairs).map(|(motif, n)| (name(motif.bases), n)).collect(),
    }
}
