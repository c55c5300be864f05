//! The copy-number profile of a tumour: depth ratio and B-allele frequency along the genome.

use serde::{Deserialize, Serialize};

use crate::beta_binomial::NUM_MINOR_SHARE_STEPS;
use crate::confidence_interval::{MIN_DIVISOR, MIN_PROBABILITY_FOR_LOG};
use crate::purity_params::PURITY_PARAMS;
use crate::segments::{Segment, Segmentation};

/// Copy-number profile of a tumour. It is empty without a reference, if the depth is too low to estimate purity, or if
/// the alleles at heterozygous sites of the normal are not balanced.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CopyNumberProfile {
    /// Segments with one copy number each, in the order of the reference.
    pub segments: Vec<ProfileSegment>,
    /// The bins of the genome that were joined to segments; [`ProfileSegment::copies`] is `None` in all of them.
    pub bins: Vec<ProfileSegment>,
}

/// Depth ratio and B-allele frequency of a segment or bin of the genome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileSegment {
    /// Name of the contig of the reference.
    pub contig: String,
    /// First position of the segment or bin, 0-based.
    pub start: u32,
    /// Position after the last one of the segment or bin, 0-based.
    pub end: u32,
    /// Number of single-copy k-mer roots in the segment from which its depth ratio was measured.
    pub roots: u64,
    /// Binary logarithm of the depth ratio of tumour to normal in this segment, divided by that of the whole genome.
    pub log2_ratio: f64,
    /// Share of the tumour's reads that have the rarer allele at heterozygous sites of the normal (0 to 0.5). `None` if
    /// there are too few such sites.
    pub minor_allele_share: Option<f64>,
    /// Number of copies of the two alleles in tumour cells, the larger first. It is a mean over subclones, so it need
    /// not be an integer. `None` if purity or ploidy is undetermined, and for bins.
    pub copies: Option<[f64; 2]>,
}

impl CopyNumberProfile {
    /// Creates the profile from the segments and bins of a segmentation. `copies` has the copies of both alleles for
    /// each segment; it is empty if they are unknown.
    pub(crate) fn from_segmentation(
        segmentation: &Segmentation,
        contig_names: &[&str],
        copies: &[Option<[f64; 2]>],
    ) -> Self {
        let weight = |segments: &[Segment]| segments.iter().map(|segment| segment.weight).sum::<f64>();
        let all: f64 = segmentation.segments.iter().map(|segment| segment.weight * segment.depth_ratio).sum();
        let mean_ratio = all / weight(&segmentation.segments).max(MIN_DIVISOR);
        let convert = |segment: &Segment, copies: Option<[f64; 2]>| {
            let (contig, start, last) = segment.span;
            let ratio = segment.depth_ratio / mean_ratio.max(MIN_DIVISOR);
            let has_sites = segment.het_sites >= PURITY_PARAMS.min_profile_het_sites;
            ProfileSegment {
                contig: contig_names.get(contig as usize).map(ToString::to_string).unwrap_or_default(),
                start,
                end: last + 1,
                roots: segment.weight as u64,
                log2_ratio: round_for_json(ratio.max(MIN_PROBABILITY_FOR_LOG).log2()),
                minor_allele_share: has_sites.then(|| likeliest_minor_share(segment)),
                copies,
            }
        };
        let copies = copies.iter().copied().chain(std::iter::repeat(None));
        CopyNumberProfile {
            segments: segmentation.segments.iter().zip(copies).map(|(segment, own)| convert(segment, own)).collect(),
            bins: segmentation.bins.iter().map(|bin| convert(bin, None)).collect(),
        }
    }
}

/// Returns the minor allele share with the highest likelihood.
fn likeliest_minor_share(segment: &Segment) -> f64 {
    let logs = segment.minor_share_log_likelihoods.iter().enumerate();
    let (step, _) = logs.max_by(|a, b| a.1.total_cmp(b.1)).unwrap_or((NUM_MINOR_SHARE_STEPS, &0.0));
    round_for_json(step as f64 / (2 * NUM_MINOR_SHARE_STEPS) as f64)
}

/// Rounds to four decimals, which is far below the noise of a segment.
fn round_for_json(value: f64) -> f64 {
    const STEPS_PER_UNIT: u32 = 10_000;
    (value * f64::from(STEPS_PER_UNIT)).round() / f64::from(STEPS_PER_UNIT)
}
