//! Estimates error rates of reads from the samples' own reads.
//!
//! Reads of all samples are compared with the contig they are placed on, away from its changes. This gives the error
//! rate of each base quality, and the slippage of tandem repeats ([`crate::slippage`]). It also gives the rate of each
//! substitution by orientation of the pair, which separates damage of one strand (oxidised guanine and deaminated
//! cytosine are both read with T) from sequencing errors.

use genuma_pair::assay::RandomOrFixedEnds;
use genuma_pair::error_threshold::min_count_above_expected_errors;
use genuma_reads::TUMOUR_SAMPLE;
use genuma_reads::dna::encode_base;
use serde::{Deserialize, Serialize};

use crate::packed::OwnedRead;
use crate::short_homopolymer::ShortHomopolymerRates;
use crate::slippage::{RepeatClassSlippage, SlippageModel};

/// Parameters of the error model. The formulas are those of `docs/model/error_model.md`.
#[derive(Debug)]
pub(crate) struct ErrorModelParams {
    /// Minimum probability of a wrong base at any quality: damage, PCR errors (formula 1). Unit: probability. Source:
    /// empirical; not fitted. If higher: bases of high quality weigh less.
    pub(crate) min_error_probability: f64,
    /// Minimum probability of a wrong base where the reads show fewer wrong bases, as consensus reads do (formula 7).
    /// Unit: probability. Source: chosen (errors before the first PCR cycle are not rarer). If higher: bases of
    /// consensus reads weigh less.
    pub(crate) min_measured_error_probability: f64,
    /// Number of wrong bases added to those found, so that a small number of bases does not give a low rate (formula
    /// 7). Unit: bases. Source: definition (upper 95 % limit if none is found). If higher: more bases are needed to
    /// lower the rate.
    pub(crate) unseen_errors: f64,
    /// Maximum probability of a wrong base (formula 1). Unit: probability. Source: chosen (below the 0.75 of a random
    /// base). If higher: bases of quality 0 and 1 weigh less.
    pub(crate) max_error_probability: f64,
    /// Number of different wrong bases that can be read instead of the correct base (formula 2). Unit: bases. Source:
    /// definition. If higher: not to be changed.
    pub(crate) num_wrong_bases: f64,
    /// Minimum number of bases of one quality to estimate its error rate (formula 1). Unit: bases. Source: empirical;
    /// not fitted. If higher: reported qualities are used more often.
    pub(crate) min_bases_per_quality: u64,
    /// Minimum number of reference bases of one kind to estimate the rate of a substitution (formula 3). Unit: bases.
    /// Source: empirical; not fitted. If higher: damage is estimated in fewer samples.
    pub(crate) min_bases_per_substitution: u64,
    /// Minimum quality at which a wrong base counts as damage of the molecule rather than as a sequencing error
    /// (formula 3). Unit: Phred. Source: empirical; not fitted. If higher: fewer bases, less sequencing error in the
    /// damage rates.
    pub(crate) min_damage_quality: u8,
    /// Minimum quality of the bases whose error rate is measured before candidate selection, and by which alleles with
    /// few reads are recognised (formula 8). Unit: Phred. Source: chosen (that of the k-mer sketch). If higher: fewer
    /// bases, fewer columns with such alleles.
    pub(crate) min_good_quality: u8,
    /// Minimum damage rate; keeps its logarithm finite (formula 3). Unit: probability. Source: chosen (lower than any
    /// real rate). If higher: no effect unless rates are that low.
    pub(crate) min_damage_rate: f64,
    /// Share of mismatches above which a read is taken not to belong to the locus. Unit: share of the compared bases.
    /// Source: empirical; not fitted. If higher: more reads of other loci are admitted.
    pub(crate) max_mismatch_share: f64,
    /// Share of the reads of a column above which mismatches are an allele or a paralog, not errors. Unit: share of
    /// reads. Source: empirical; not fitted. If higher: more alleles are counted as errors.
    pub(crate) min_allele_share: f64,
    /// Probability of each base of a read beyond the end of a haplotype (formula 4). Unit: probability. Source:
    /// definition (one of four bases). If higher: reads beyond the end of a haplotype fit it better.
    pub(crate) uncovered_base_probability: f64,
    /// Probability of an insertion or deletion error at a base of a read (formula 9). Unit: probability. Source:
    /// chosen (semiconductor sequencers make one in some hundred bases, others fewer). If higher: reads with mismatches
    /// are more often taken for reads with indel errors.
    pub(crate) read_indel_probability: f64,
    /// Maximum length of an insertion or deletion error of a read (formula 9). Unit: bases. Source: chosen (errors of
    /// homopolymers are of one or two bases). If higher: reads of other alleles count as reads with errors.
    pub(crate) max_read_indel_bases: u32,
    /// Minimum number of mismatches of a read that may be due to an indel error (formula 9). Unit: bases. Source:
    /// chosen (two are frequent in reads without such errors). If higher: fewer reads are aligned with gaps.
    pub(crate) min_mismatches_of_indel: u32,
    /// Minimum quality of the mismatches that decide whether a read belongs to the locus. Unit: Phred. Source:
    /// empirical; not fitted. If higher: fewer reads are left out.
    pub(crate) min_mismatch_quality: u8,
    /// Probability that a molecule shows an allele that it does not have although its bases are good, for substitutions
    /// and length changes of repeats: damage, PCR errors (formula 6). Unit: probability. Source: empirical; not fitted.
    /// If higher: each molecule weighs less.
    pub(crate) common_error_probability: f64,
    /// Probability that a molecule shows an allele that it does not have, for changes that sequencers and PCR hardly
    /// ever make: indels outside repeats, junctions (formula 6). Unit: probability. Source: empirical; not fitted. If
    /// higher: each molecule weighs less.
    pub(crate) rare_error_probability: f64,
}

/// The parameters that all calls use. `docs/model/error_model.md` lists each with its source.
pub(crate) const ERROR_MODEL_PARAMS: ErrorModelParams = ErrorModelParams {
    min_error_probability: 1e-4,
    min_measured_error_probability: 1e-6,
    unseen_errors: 3.0,
    max_error_probability: 0.7,
    num_wrong_bases: 3.0,
    min_bases_per_quality: 5_000,
    min_bases_per_substitution: 20_000,
    min_damage_quality: 25,
    min_good_quality: 30,
    min_damage_rate: 1e-9,
    max_mismatch_share: 0.06,
    min_allele_share: 0.04,
    uncovered_base_probability: 0.25,
    read_indel_probability: 1e-3,
    max_read_indel_bases: 4,
    min_mismatches_of_indel: 3,
    min_mismatch_quality: 15,
    common_error_probability: 1e-4,
    rare_error_probability: 1e-6,
};

/// Numbers of compared bases and of wrong bases, by quality and by substitution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseErrorCounts {
    /// For each Phred quality: number of bases, and number of wrong bases.
    by_quality: [[u64; 2]; 64],
    /// For each sample the counts of its high-quality bases, by substitution.
    substitutions: Vec<SubstitutionCounts>,
}

/// Number of high-quality bases of a sample, by orientation of the pair (F2R1, F1R2), contig base and read base (base
/// codes 0 to 3).
type SubstitutionCounts = [[[u64; 4]; 4]; 2];

impl Default for BaseErrorCounts {
    /// Counts of 0 for a normal and one tumour.
    fn default() -> BaseErrorCounts {
        BaseErrorCounts::zero_counts(2)
    }
}

/// A read placed on a contig or another sequence.
#[derive(Debug, Clone)]
pub struct ReadOnContig<'a> {
    /// Number of the sample that the read is from: 0 for the normal, 1 and up for tumours.
    pub sample: u8,
    /// Whether read 1 of the pair has the sequence's orientation and read 2 the opposite one (F1R2).
    pub is_f1r2: bool,
    /// Position of the read's first base on the sequence.
    pub start: i32,
    /// The read, oriented like the sequence.
    pub read: &'a OwnedRead,
}

/// Whether the library of at least one tumour has fragments that end at fixed positions, as amplicons do.
/// `fragment_ends` has one value for each sample, the normal first.
pub(crate) fn has_tumour_with_fixed_fragment_ends(fragment_ends: &[RandomOrFixedEnds]) -> bool {
    fragment_ends.iter().skip(TUMOUR_SAMPLE.into()).any(|ends| *ends == RandomOrFixedEnds::Fixed)
}

/// Reads compared with a sequence, by column of the sequence.
struct ColumnCounts<'a> {
    seq: &'a [u8],
    /// Probability of one given wrong base of good quality, if it is known.
    error_rate: Option<f64>,
    /// Number of reads with another base than the sequence.
    differing: Vec<u32>,
    depth: Vec<u32>,
    /// Number of reads with each base, at good quality; empty if the error rate is unknown.
    good_bases: Vec<[u32; 4]>,
}

/// The bases of a read that were compared with the sequence.
#[derive(Clone, Copy)]
struct ComparedBases {
    /// Index of the first compared base in the read.
    from: usize,
    /// Index of the first compared base in the sequence.
    start: usize,
    num_compared: usize,
}

impl ColumnCounts<'_> {
    fn zero(seq: &[u8], error_rate: Option<f64>) -> ColumnCounts<'_> {
        let good_bases = vec![[0; 4]; if error_rate.is_some() { seq.len() } else { 0 }];
        ColumnCounts { seq, error_rate, differing: vec![0; seq.len()], depth: vec![0; seq.len()], good_bases }
    }

    /// Adds a read. Returns `None`, and adds nothing, if it differs so much that it belongs to another locus or is on
    /// the other side of an insertion or deletion.
    fn add_read(&mut self, on: &ReadOnContig<'_>) -> Option<ComparedBases> {
        // A read may end before the sequence begins.
        let from = ((-on.start).max(0) as usize).min(on.read.seq.len());
        let start = (on.start.max(0) as usize).min(self.seq.len());
        let bases = on.read.seq.get(from..).unwrap_or_default();
        let reference_bases = &self.seq[start..];
        let mismatches = bases.iter().zip(reference_bases).filter(|(b, s)| b != s && **b != b'N').count();
        let num_compared = bases.len().min(reference_bases.len());
        if mismatches as f64 > ERROR_MODEL_PARAMS.max_mismatch_share * num_compared as f64 {
            return None;
        }
        let columns = start..start + num_compared;
        self.depth[columns.clone()].iter_mut().for_each(|depth| *depth += 1);
        for ((differing, b), s) in self.differing[columns.clone()].iter_mut().zip(bases).zip(reference_bases) {
            *differing += u32::from(b != s);
        }
        let good_bases = self.good_bases.get_mut(columns).unwrap_or_default();
        for ((counts, b), &quality) in good_bases.iter_mut().zip(bases).zip(&on.read.qual[from..]) {
            if quality >= ERROR_MODEL_PARAMS.min_good_quality
                && let Some(count) = counts.get_mut(usize::from(encode_base(*b)))
            {
                *count += 1;
            }
        }
        Some(ComparedBases { from, start, num_compared })
    }

    /// Whether another base than that of the sequence is more frequent than errors explain.
    fn has_rare_allele(&self, column: usize) -> bool {
        // docs/model/error_model.md (8)
        let Some((bases, rate)) = self.good_bases.get(column).zip(self.error_rate) else { return false };
        let limit = min_count_above_expected_errors(f64::from(bases.iter().sum::<u32>()) * rate);
        let own = encode_base(self.seq[column]);
        let other = (0..4).filter(|&base| base != own).map(|base| bases[usize::from(base)]);
        other.max().is_some_and(|most| f64::from(most) > limit)
    }

    /// Encoded bases of the columns in which errors count; 4 in the others.
    fn bases_of_counted_columns(&self, left_out: &[bool]) -> Vec<u8> {
        let is_counted = |column: usize| {
            !left_out[column]
                && !self.has_rare_allele(column)
                && f64::from(self.differing[column])
                    <= (f64::from(self.depth[column]) * ERROR_MODEL_PARAMS.min_allele_share).max(1.0)
        };
        let bases = self.seq.iter().enumerate();
        bases.map(|(column, &base)| if is_counted(column) { encode_base(base) } else { 4 }).collect()
    }
}

impl BaseErrorCounts {
    /// Counts of 0 for each of `samples` samples.
    pub fn zero_counts(samples: usize) -> BaseErrorCounts {
        BaseErrorCounts { by_quality: [[0; 2]; 64], substitutions: vec![SubstitutionCounts::default(); samples] }
    }

    /// Counts wrong bases: compares reads with the sequence on which they are placed, except in the columns `left_out`.
    /// Reads with too many differences do not count: they belong to another locus. Columns in which a large share of
    /// the reads differs from the sequence contain a variant or a paralog, not errors, and do not count. `error_rate`
    /// is the measured probability of one given wrong base of good quality. If it is known, a column does not count
    /// either if another base than that of the sequence is more frequent there, among bases of good quality, than
    /// errors explain.
    pub fn count_wrong_bases(
        seq: &[u8],
        left_out: &[bool],
        reads: &[ReadOnContig<'_>],
        error_rate: Option<f64>,
    ) -> BaseErrorCounts {
        let samples = reads.iter().map(|on| usize::from(on.sample) + 1).fold(2, usize::max);
        let mut error_counts = BaseErrorCounts::zero_counts(samples);
        // docs/model/error_model.md (3)
        let min_damage_quality = match error_rate {
            Some(_) => ERROR_MODEL_PARAMS.min_good_quality,
            None => ERROR_MODEL_PARAMS.min_damage_quality,
        };
        let mut columns = ColumnCounts::zero(seq, error_rate);
        let compared: Vec<_> = reads.iter().filter_map(|on| Some((on, columns.add_read(on)?))).collect();
        let column_bases = columns.bases_of_counted_columns(left_out);
        for (on, ComparedBases { from, start, num_compared }) in compared {
            let by = &mut error_counts.substitutions[usize::from(on.sample)][usize::from(on.is_f1r2)];
            let read_bases = on.read.seq[from..].iter().zip(&on.read.qual[from..]);
            for ((&b, &quality), &s) in read_bases.zip(&column_bases[start..start + num_compared]) {
                let b = encode_base(b);
                if b < 4 && s < 4 {
                    let quality = quality.min(63);
                    error_counts.by_quality[usize::from(quality)][0] += 1;
                    error_counts.by_quality[usize::from(quality)][1] += u64::from(b != s);
                    if quality >= min_damage_quality {
                        by[usize::from(s)][usize::from(b)] += 1;
                    }
                }
            }
        }
        error_counts
    }

    /// Share of the compared bases of a Phred quality that are wrong; `None` with fewer than 5,000 bases.
    pub fn error_rate_at_quality(&self, quality: usize) -> Option<f64> {
        let [all, mismatches] = self.by_quality[quality];
        (all >= ERROR_MODEL_PARAMS.min_bases_per_quality).then(|| mismatches as f64 / all as f64)
    }

    /// Share of high-quality bases `from` that are read as `to` (base codes 0 to 3), in one sample and one orientation
    /// of the pair (`first_forward`: F1R2, otherwise F2R1); `None` with fewer than 20,000 bases.
    pub fn substitution_rate(&self, sample: u8, first_forward: bool, from: u8, to: u8) -> Option<f64> {
        let by = &self.substitutions[usize::from(sample)][usize::from(first_forward)][usize::from(from)];
        let all = by.iter().sum::<u64>();
        (all >= ERROR_MODEL_PARAMS.min_bases_per_substitution).then(|| by[usize::from(to)] as f64 / all as f64)
    }

    /// Probability that a molecule shows an allele that it does not have although its bases are good: the highest
    /// measured error rate of high-quality bases of any sample, but at most the assumed probability.
    fn common_error_probability(&self) -> f64 {
        let of_sample = |counts: &SubstitutionCounts| {
            let all = || counts.iter().flatten().enumerate();
            let bases: u64 = all().map(|(_, row)| row.iter().sum::<u64>()).sum();
            let correct: u64 = all().map(|(from, row)| row[from % 4]).sum();
            min_error_probability(bases - correct, bases)
        };
        self.substitutions.iter().map(of_sample).fold(0.0, f64::max)
    }

    /// Adds counts of the same number of samples or fewer.
    pub fn merge_counts(&mut self, other: &BaseErrorCounts) {
        let add = |to: &mut u64, n: &u64| *to += n;
        self.by_quality.as_flattened_mut().iter_mut().zip(other.by_quality.as_flattened()).for_each(|(a, b)| add(a, b));
        for (mine, others) in self.substitutions.iter_mut().zip(&other.substitutions) {
            let (mine, others) = (mine.as_flattened_mut(), others.as_flattened());
            mine.as_flattened_mut().iter_mut().zip(others.as_flattened()).for_each(|(a, b)| add(a, b));
        }
    }
}

/// Lower bound of the probability of a wrong base, if `mismatches` of `bases` bases were wrong: the assumed bound, or
/// less if the bases show a lower rate.
fn min_error_probability(mismatches: u64, bases: u64) -> f64 {
    // docs/model/error_model.md (7)
    let upper = (mismatches as f64 + ERROR_MODEL_PARAMS.unseen_errors) / bases.max(1) as f64;
    upper.clamp(ERROR_MODEL_PARAMS.min_measured_error_probability, ERROR_MODEL_PARAMS.min_error_probability)
}

/// Measured error rate of the bases with one Phred quality.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct QualityErrorRate {
    /// Phred quality that the sequencer assigned to the bases.
    pub quality: u8,
    /// Share of the bases with this quality that differ from the contig.
    pub share: f64,
}

/// Measured rate of one substitution in one sample and one orientation of the pair.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SubstitutionRate {
    /// Number of the sample: 0 for the normal, 1 for the first tumour.
    pub sample: u8,
    /// Orientation of the pair: true if read 1 has the contig's orientation (F1R2), false if read 2 has (F2R1).
    pub first_forward: bool,
    /// The base that the molecule has, according to the contig.
    pub from: char,
    /// The base that the reads show.
    pub to: char,
    /// Share of the high-quality bases `from` that are read as `to`.
    pub share: f64,
}

/// Error rates estimated from the samples, for the report. Rates based on too few bases, and slippage rates of repeat
/// classes without reads, are left out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EstimatedErrorRates {
    /// Error rates by base quality, sorted by quality.
    pub by_quality: Vec<QualityErrorRate>,
    /// Substitution rates, sorted by sample, orientation of the pair, and bases.
    pub substitutions: Vec<SubstitutionRate>,
    /// Slippage rates of tandem repeats, sorted by unit length and number of copies.
    pub slippage: Vec<RepeatClassSlippage>,
}

impl EstimatedErrorRates {
    fn from_counts(error_counts: &BaseErrorCounts, slippage: &SlippageModel) -> EstimatedErrorRates {
        let quality_error_rate =
            |q: usize| error_counts.error_rate_at_quality(q).map(|share| QualityErrorRate { quality: q as u8, share });
        let mut substitutions = Vec::new();
        let samples = (0..).take(error_counts.substitutions.len());
        for (sample, first_forward) in samples.flat_map(|sample| [(sample, false), (sample, true)]) {
            for (from, to) in (0..4u8).flat_map(|from| (0..4).map(move |to| (from, to))).filter(|(f, t)| f != t) {
                let share = error_counts.substitution_rate(sample, first_forward, from, to);
                let [from, to] = [from, to].map(|base| char::from(b"ACGT"[usize::from(base)]));
                substitutions.extend(share.map(|share| SubstitutionRate { sample, first_forward, from, to, share }));
            }
        }
        EstimatedErrorRates {
            by_quality: (0..64).filter_map(quality_error_rate).collect(),
            substitutions,
            slippage: slippage.rates_of_counted_classes(),
        }
    }
}

/// Natural-log probabilities of read bases, given the base of the molecule, and rates of length errors in repeats.
#[derive(Debug, Clone)]
pub struct ErrorModel {
    /// For each Phred quality, the natural-log probability that a base is read correctly.
    pub(crate) log_correct: [f64; 64],
    /// For each Phred quality, the natural-log probability that one particular wrong base is read.
    log_wrong: [f64; 64],
    /// Natural-log probabilities of substitutions by damage, indexed by sample, orientation of the pair (F2R1, F1R2),
    /// base of the molecule and base in the read.
    log_damage: Vec<[[[f64; 4]; 4]; 2]>,
    /// Slippage rates of tandem repeats.
    pub slippage: SlippageModel,
    /// Rates of length errors of homopolymers that are too short to count as tandem repeats.
    pub(crate) short_homopolymers: ShortHomopolymerRates,
    /// Probability that a molecule shows an allele that it does not have although its bases are good, for substitutions
    /// and length changes of repeats.
    pub(crate) common_error_probability: f64,
    /// Probability of one given wrong base of good quality, of the most frequent substitution, as measured before
    /// candidate selection; `None` if the samples are too shallow.
    pub(crate) measured_error_rate: Option<f64>,
    /// Upper bound of the ratio of the allele fraction in the normal to that in the tumour, because of tumour cells in
    /// the normal; 0 if none are known.
    pub(crate) tumour_in_normal_ratio: f64,
    /// For each sample whether its fragments end at fixed or at random positions, which determines which pairs are
    /// duplicates. If empty, all ends are random.
    pub fragment_ends: Vec<RandomOrFixedEnds>,
    /// The estimated rates, for the report.
    pub estimated_rates: EstimatedErrorRates,
}

impl ErrorModel {
    /// Builds the model. The error probability of a base is that of its reported quality, or the measured error rate of
    /// its quality if that is higher. Fields that these counts do not determine have their defaults.
    pub fn from_error_counts_and_slippage(error_counts: &BaseErrorCounts, slippage: SlippageModel) -> ErrorModel {
        let error = |q: usize| {
            // docs/model/error_model.md (1)
            let reported = 10f64.powf(-(q as f64) / 10.0);
            let [bases, mismatches] = error_counts.by_quality[q];
            reported
                .max(error_counts.error_rate_at_quality(q).unwrap_or(0.0))
                .clamp(min_error_probability(mismatches, bases), ERROR_MODEL_PARAMS.max_error_probability)
        };
        // docs/model/error_model.md (3)
        let damage = |sample: u8, first_forward: bool, from: u8, to: u8| {
            error_counts
                .substitution_rate(sample, first_forward, from, to)
                .map_or(f64::NEG_INFINITY, |rate| rate.max(ERROR_MODEL_PARAMS.min_damage_rate).ln())
        };
        ErrorModel {
            // docs/model/error_model.md (2)
            log_correct: std::array::from_fn(|q| (1.0 - error(q)).ln()),
            log_wrong: std::array::from_fn(|q| (error(q) / ERROR_MODEL_PARAMS.num_wrong_bases).ln()),
            log_damage: (0..)
                .take(error_counts.substitutions.len())
                .map(|s| {
                    let damage = |f: bool, from| [0, 1, 2, 3].map(|to| damage(s, f, from, to));
                    [false, true].map(|f| [0, 1, 2, 3].map(|from| damage(f, from)))
                })
                .collect(),
            common_error_probability: error_counts.common_error_probability(),
            short_homopolymers: ShortHomopolymerRates::default(),
            measured_error_rate: None,
            tumour_in_normal_ratio: 0.0,
            fragment_ends: Vec::new(),
            estimated_rates: EstimatedErrorRates::from_counts(error_counts, &slippage),
            slippage,
        }
    }

    /// Probability that a molecule shows a substitution that it does not have although its bases are good.
    pub(crate) fn substitution_error_probability(&self) -> f64 {
        // docs/model/error_model.md (7)
        self.measured_error_rate.map_or(self.common_error_probability, |rate| rate.min(self.common_error_probability))
    }

    /// Number of samples, the normal included.
    pub fn num_samples(&self) -> usize {
        self.log_damage.len()
    }

    /// Natural logarithms of the substitution rates of a sample in one orientation of the pair (`first_forward`: F1R2,
    /// otherwise F2R1), indexed by the code of the molecule's base and the code of the base in the read.
    pub(crate) fn damage_log_probabilities(&self, sample: u8, first_forward: bool) -> &[[f64; 4]; 4] {
        &self.log_damage[usize::from(sample)][usize::from(first_forward)]
    }

    /// Probability that a molecule of a sample in one orientation of the pair (`first_forward`: F1R2, otherwise F2R1)
    /// shows the base `read` instead of the base `molecule` in both mates and all duplicates; at least `floor`.
    pub(crate) fn damage_probability(
        &self,
        sample: u8,
        first_forward: bool,
        [molecule, read]: [u8; 2],
        floor: f64,
    ) -> f64 {
        let (from, to) = (usize::from(encode_base(molecule)), usize::from(encode_base(read)));
        let rate = self.damage_log_probabilities(sample, first_forward).get(from).and_then(|row| row.get(to));
        rate.map_or(floor, |ln| ln.exp().max(floor))
    }

    /// Natural-log probability of the wrong base `read`: by a sequencing error at the base quality or by damage,
    /// whichever is larger.
    pub(crate) fn wrong_base_log_probability(
        &self,
        quality: u8,
        damage: &[[f64; 4]; 4],
        molecule: u8,
        read: u8,
    ) -> f64 {
        let damaged = match (encode_base(molecule), encode_base(read)) {
            (m @ 0..4, r @ 0..4) => damage[usize::from(m)][usize::from(r)],
            _ => f64::NEG_INFINITY,
        };
        self.log_wrong[usize::from(quality.min(63))].max(damaged)
    }
}
