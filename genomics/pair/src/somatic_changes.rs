//! Likelihood of the read fractions (variant allele fractions) of somatic changes, as a function of purity and copy
//! numbers.

use crate::beta_binomial::{BetaBinomial, NUM_MINOR_SHARE_STEPS};
use crate::confidence_interval::MIN_DIVISOR;
use crate::copy_states::CopyState;
use crate::non_somatic::{NonSomaticModel, NonSomaticModelInputs, allele_detection_probability};
use crate::purity_params::PURITY_PARAMS;
use crate::segments::{OptionalGenomePosition, Segment};

/// A somatic change of the tumour with the molecule counts from which purity is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SomaticChange {
    /// Contig index and 0-based position on the reference; `None` if unknown.
    pub position: OptionalGenomePosition,
    /// Number of tumour molecules without the change, and with it.
    pub molecules: [u32; 2],
    /// Number of molecules of the normal at the position; none of them has the change.
    pub normal_depth: u32,
}

/// Number of steps of the read fraction from 0 to 1.
const NUM_FRACTION_STEPS: usize = 2 * NUM_MINOR_SHARE_STEPS;

/// A number for each value of `PURITY_PARAMS.subclonal_share_grid`, and for each of `PURITY_PARAMS.early_share_grid`.
type ShareGrid = [[f64; PURITY_PARAMS.early_share_grid.len()]; PURITY_PARAMS.subclonal_share_grid.len()];

/// Likelihood of the molecule counts of one change, as a function of the share of molecules that have it.
struct ChangeLikelihood {
    fraction_logs: Vec<f32>,
    /// Probability of the counts if all read fractions are equally likely.
    uniform_probability: f64,
    /// Probability that the change is a germline allele which the normal does not show by chance.
    germline_probability: f64,
    /// Probability that the change is detected if it is an allele of a contaminant, who is heterozygous or homozygous
    /// for it ([`NonSomaticModel::foreign_alleles`]).
    foreign_detection: [f64; 2],
    /// Index of the copy-number segment that contains the change; `None` outside of all segments.
    segment: Option<usize>,
    /// Weight of the change in the likelihood: less than 1 if the roots on both sides show it as two changes, more than
    /// 1 if only every nth change is evaluated.
    weight: f64,
}

/// Likelihood of the read fractions of all changes, given purity and copy numbers. Each change is either somatic, in
/// the copy state of its segment, or not somatic as described by a [`NonSomaticModel`].
pub(crate) struct SomaticChangeModel {
    changes: Vec<ChangeLikelihood>,
    non_somatic: NonSomaticModel,
    /// Number of changes, without those that are expected to be germline alleles. A change that two roots show counts
    /// once.
    pub count: f64,
}

impl SomaticChangeModel {
    /// Builds the model for changes on segments that are sorted by position. Changes with fewer than
    /// `PURITY_PARAMS.min_change_reads` molecules are left out. Two changes at most `bases + 1` apart are one position
    /// seen from the roots on both sides; `bases` is the length of a root. `overdispersion` is the variance of the read
    /// fractions beyond binomial, as a fraction of the largest possible variance.
    pub fn from_changes(
        changes: &[SomaticChange],
        context: &NonSomaticModelInputs<'_>,
        segments: &[Segment],
        bases: u32,
        overdispersion: f64,
    ) -> SomaticChangeModel {
        let mut changes: Vec<&SomaticChange> =
            changes.iter().filter(|change| change.molecules[1] >= PURITY_PARAMS.min_change_reads).collect();
        changes.sort_unstable_by_key(|change| (change.position, change.molecules));
        let sides = |a: &SomaticChange, b: &SomaticChange| match (a.position, b.position) {
            (Some(a), Some(b)) => a.0 == b.0 && a.1.abs_diff(b.1) <= bases + 1,
            _ => false,
        };
        let weights: Vec<f64> = (0..changes.len())
            .map(|i| {
                let like = |j: Option<usize>| {
                    let other = j.and_then(|j| changes.get(j));
                    f64::from(u8::from(other.is_some_and(|other| sides(changes[i], other))))
                };
                1.0 / (1.0 + like(i.checked_sub(1)) + like(Some(i + 1)))
            })
            .collect();
        let non_somatic = NonSomaticModel::from_normal_depths(
            &changes.iter().map(|change| change.normal_depth).collect::<Vec<_>>(),
            context,
        );
        let own = changes
            .iter()
            .zip(&weights)
            .map(|(change, weight)| weight * (1.0 - non_somatic.missed_germline_probability(change.normal_depth)));
        let count = own.sum::<f64>();
        let each = changes.len().div_ceil(PURITY_PARAMS.max_changes).max(1);
        let chosen = || changes.iter().zip(&weights).step_by(each);
        let deepest = chosen().map(|(c, _)| c.molecules[0] + c.molecules[1]).max().unwrap_or(0);
        let draws = BetaBinomial::with_max_trials(deepest as usize, overdispersion);
        let mut all: Vec<ChangeLikelihood> = chosen()
            .map(|(change, weight)| {
                let logs = fraction_log_likelihoods(change.molecules, &draws);
                let any = logs.iter().map(|log| f64::from(*log).exp()).sum::<f64>() / logs.len() as f64;
                let segment = find_segment(change.position, segments);
                let inherited = non_somatic.missed_germline_probability(change.normal_depth);
                let seen = non_somatic
                    .foreign_alleles
                    .map(|(share, _)| allele_detection_probability(change.molecules.iter().sum(), share));
                ChangeLikelihood {
                    fraction_logs: logs,
                    uniform_probability: any,
                    germline_probability: inherited,
                    foreign_detection: seen,
                    segment,
                    weight: *weight * each as f64,
                }
            })
            .collect();
        all.sort_by(|a, b| a.weight.total_cmp(&b.weight));
        SomaticChangeModel { changes: all, non_somatic, count }
    }

    /// Returns the log-likelihood of all changes for a purity and the copy states of all segments, and the share of the
    /// changes that are foreign alleles in the best fit. `weighted_states` are copy states with weights, used for
    /// changes outside of all segments.
    pub(crate) fn log_likelihood_and_foreign_share(
        &self,
        purity: f64,
        states: &[&CopyState],
        weighted_states: &[(&CopyState, f64)],
    ) -> (f64, f64) {
        let of_each: Vec<FractionClasses> = states.iter().map(|state| fraction_classes(purity, state)).collect();
        // A contaminant's cells have two copies everywhere; where the tumour has fewer, they contribute a larger
        // share of the reads.
        let deep: f64 = weighted_states.iter().map(|(state, weight)| weight * mean_copies(purity, state)).sum();
        let scarce: Vec<f64> = states.iter().map(|state| deep / mean_copies(purity, state)).collect();
        let anywhere = weighted_fraction_classes(purity, weighted_states);
        let mut sums: Vec<ShareGrid> = vec![Default::default(); self.non_somatic.foreign_share_priors.len()];
        // The logarithm of a product of many probabilities is taken at once, for all changes of equal weight.
        for alike in self.changes.chunk_by(|a, b| a.weight == b.weight) {
            let weight = alike[0].weight;
            let mut products = vec![
                [[1.0f64; PURITY_PARAMS.early_share_grid.len()];
                    PURITY_PARAMS.subclonal_share_grid.len()];
                sums.len()
            ];
            for own in alike {
                let kinds = own.segment.map_or(&anywhere, |segment| &of_each[segment]);
                let chance = |kinds: &Vec<(f64, f64)>| -> f64 {
                    kinds.iter().map(|(share, weight)| weight * own.log_at(*share).exp()).sum()
                };
                let [older, later, partly, inherited] = kinds.each_ref().map(chance);
                let scarce = own.segment.map_or(1.0, |segment| scarce[segment]);
                let foreign =
                    self.non_somatic.foreign_alleles.iter().zip(own.foreign_detection).filter(|(_, seen)| *seen > 0.0);
                let foreign = foreign.map(|((share, weight), seen)| weight * seen * own.log_at(share * scarce).exp());
                let foreign: f64 = foreign.sum();
                for ((products, sums), (share, _)) in
                    products.iter_mut().zip(&mut sums).zip(&self.non_somatic.foreign_share_priors)
                {
                    // docs/model/purity_ploidy.md (13)
                    let other = share * foreign
                        + (1.0 - share) * own.germline_probability * inherited
                        + PURITY_PARAMS.min_probability;
                    let own_share = (1.0 - share) * (1.0 - own.germline_probability);
                    for ((products, sums), part) in
                        products.iter_mut().zip(sums).zip(PURITY_PARAMS.subclonal_share_grid)
                    {
                        for ((product, sum), old) in products.iter_mut().zip(sums).zip(PURITY_PARAMS.early_share_grid) {
                            let clonal = old * older + (1.0 - old) * later;
                            let chance = (1.0 - part) * clonal + part * partly;
                            *product *= own_share
                                * ((1.0 - PURITY_PARAMS.outlier_change_share) * chance
                                    + PURITY_PARAMS.outlier_change_share * own.uniform_probability)
                                + other;
                            if !(PURITY_PARAMS.min_product..1.0 / PURITY_PARAMS.min_product).contains(product) {
                                *sum += weight * product.ln();
                                *product = 1.0;
                            }
                        }
                    }
                }
            }
            let each = sums.iter_mut().flatten().flatten().zip(products.iter().flatten().flatten());
            each.for_each(|(sum, product)| *sum += weight * product.ln());
        }
        self.maximum_with_priors(sums)
    }

    /// Returns the highest log-posterior of the given log-likelihoods, one grid for each foreign share, and the share
    /// that has it.
    fn maximum_with_priors(&self, sums: Vec<ShareGrid>) -> (f64, f64) {
        let with_prior = |sums: [f64; PURITY_PARAMS.early_share_grid.len()]| {
            // Beta(3, 3) prior: one half is the likeliest, and few genomes have only older or only later changes.
            // docs/model/purity_ploidy.md (15)
            let prior = |old: f64| {
                PURITY_PARAMS.early_share_exponent * (PURITY_PARAMS.early_share_scale * old * (1.0 - old)).ln()
            };
            sums.into_iter()
                .zip(PURITY_PARAMS.early_share_grid)
                .map(|(sum, old)| sum + prior(old))
                .fold(f64::NEG_INFINITY, f64::max)
        };
        // Beta(1, 4) prior: a fifth on average. If few changes leave it open, they are not explained as subclonal
        // changes of a purer tumour.
        let fewer = |part: f64| PURITY_PARAMS.subclonal_share_exponent * (1.0 - part).ln();
        let of_parts = |sums: ShareGrid| {
            let all = sums.into_iter().zip(PURITY_PARAMS.subclonal_share_grid);
            all.map(|(sums, part)| with_prior(sums) + fewer(part)).fold(f64::NEG_INFINITY, f64::max)
        };
        let all = sums.into_iter().zip(&self.non_somatic.foreign_share_priors);
        all.map(|(sums, (share, prior))| (of_parts(sums) + prior, *share))
            .fold((f64::NEG_INFINITY, 0.0), |a, b| if b.0 > a.0 { b } else { a })
    }
}

impl ChangeLikelihood {
    /// Log-likelihood of a read fraction, interpolated linearly between grid values.
    fn log_at(&self, share: f64) -> f64 {
        let at = share.clamp(0.0, 1.0) * NUM_FRACTION_STEPS as f64;
        let from = (at as usize).min(NUM_FRACTION_STEPS - 1);
        let part = at - from as f64;
        f64::from(self.fraction_logs[from]) * (1.0 - part) + f64::from(self.fraction_logs[from + 1]) * part
    }
}

/// Log-likelihood of each read fraction of the grid, given that the change was detected. The array has the numbers of
/// molecules without and with the change.
fn fraction_log_likelihoods([without, with]: [u32; 2], draws: &BetaBinomial) -> Vec<f32> {
    let n = (without + with) as usize;
    (0..=NUM_FRACTION_STEPS)
        .map(|i| {
            // docs/model/purity_ploidy.md (14)
            let missed: f64 =
                (0..(PURITY_PARAMS.min_change_reads as usize).min(n)).map(|k| draws.log_pmf(i, k, n).exp()).sum();
            (draws.log_pmf(i, with as usize, n) - (1.0 - missed).max(PURITY_PARAMS.min_detection_probability).ln())
                as f32
        })
        .collect()
}

fn find_segment(position: OptionalGenomePosition, segments: &[Segment]) -> Option<usize> {
    let (contig, at) = position?;
    let behind = segments.partition_point(|segment| (segment.span.0, segment.span.1) <= (contig, at));
    let i = behind.checked_sub(1)?;
    (segments[i].span.0 == contig).then_some(i)
}

/// Read fractions that changes may have, each with its probability, in four classes: changes older than the gain of
/// their allele, later changes, subclonal changes, and germline alleles.
type FractionClasses = [Vec<(f64, f64)>; 4];

/// Mean number of copies of a segment over all cells of the sample, normal cells included.
fn mean_copies(purity: f64, state: &CopyState) -> f64 {
    (purity * state.total_copies() + 2.0 * (1.0 - purity)).max(MIN_DIVISOR)
}

/// Read fractions of changes outside of all segments, which may have any of the weighted copy states.
fn weighted_fraction_classes(purity: f64, weighted_states: &[(&CopyState, f64)]) -> FractionClasses {
    let mut anywhere = FractionClasses::default();
    for (state, weight) in weighted_states {
        let weighted = |kinds: Vec<(f64, f64)>| kinds.into_iter().map(move |(share, w)| (share, w * weight));
        anywhere.iter_mut().zip(fraction_classes(purity, state)).for_each(|(all, kinds)| all.extend(weighted(kinds)));
    }
    anywhere
}

/// Lists the read fractions of changes in a segment with this copy state. Changes older than the gain are in all copies
/// of an allele, later ones in one copy, subclonal ones in one copy of some tumour cells. Germline alleles are in all
/// copies and in normal cells.
fn fraction_classes(purity: f64, state: &CopyState) -> FractionClasses {
    let [a, b] = state.copies;
    let depth = mean_copies(purity, state);
    let each = purity / depth;
    let with = |copies: f64, weight: f64| (each * copies, weight);
    // If both alleles have several copies, each has half of the older changes. Some later changes arose between two
    // gains.
    // docs/model/purity_ploidy.md (12)
    let [older, later] = if a < PURITY_PARAMS.several_copies_limit {
        [(); 2].map(|()| vec![with(a.max(1.0), 1.0)])
    } else {
        let older =
            if b >= PURITY_PARAMS.several_copies_limit { vec![with(a, 0.5), with(b, 0.5)] } else { vec![with(a, 1.0)] };
        [
            older,
            vec![
                with(1.0, PURITY_PARAMS.later_change_weights[0]),
                with(a / 2.0 + 0.5, PURITY_PARAMS.later_change_weights[1]),
            ],
        ]
    };
    let parts = (1..=PURITY_PARAMS.num_cell_fractions)
        .map(|i| {
            (
                each * i as f64 / (PURITY_PARAMS.num_cell_fractions as f64 + PURITY_PARAMS.cell_fraction_offset),
                1.0 / PURITY_PARAMS.num_cell_fractions as f64,
            )
        })
        .collect();
    let inherited = [a, b].map(|copies| ((purity * copies + 1.0 - purity) / depth, 0.5)).to_vec();
    [older, later, parts, inherited]
}
