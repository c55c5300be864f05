//! Selects candidate k-mers from root counters: k-mers that the tumour has and the normal lacks.
//!
//! The selection looks at one root at a time, so it runs while the counter has the bin of the root in memory
//! (cadenelli2019, section 2.4). It is sensitive on purpose: it leaves a few hundred false loci in 5 Mbp, which
//! grouping and genotyping remove. Fixed thresholds would lose two fifths of the true ones. It tolerates sequencing
//! errors in the tumour and contamination of the normal. Where the normal has the root, both tolerances are computed
//! from the depth of this root, so that amplified, captured and repeated sequence is compared with its own depth.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use genuma_kmers::RootCounters;
use genuma_kmers::encode::{kmer_mask, reverse_complement_kmer};
pub use genuma_pair::error_threshold::min_count_above_errors_at_depth;
use genuma_pair::error_threshold::{MAX_RATE_OF_SPECIFIC_WRONG_BASE, min_count_above_expected_errors};
use genuma_pair::library_properties::SamplePairLibraryProperties;
use genuma_reads::{NORMAL_SAMPLE, TUMOUR_SAMPLE};
use serde::{Deserialize, Serialize};

use crate::tumour_alleles::{TumourAlleleCollector, TumourAlleles, may_root_yield_alleles_or_errors};

/// A candidate k-mer of a tumour: a k-mer that the tumour has and the normal lacks, or has much less often. Its root
/// consists of its k−2 middle bases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct CandidateKmer {
    /// The k-mer in canonical form: the smaller of both strands, at 2 bits per base.
    pub kmer: u64,
    /// Number of occurrences of the k-mer in the tumour.
    pub tumour_count: u32,
    /// Number of occurrences of the k-mer in the normal.
    pub normal_count: u32,
    /// Number of occurrences of the root in the tumour, if this is a branching k-mer: the normal has the root with
    /// another first or last base, and the tumour has this k-mer more often than sequencing errors explain. 0 for a
    /// novel k-mer, whose root the normal lacks or has too rarely with other first or last bases.
    pub root_depth: u32,
    /// Number of the selector that chose the k-mer: the number of a tumour, or [`POOLED_SELECTOR_NUMBER`] for all
    /// tumours pooled. The counts and the root depth are those of this selector's samples. Several selectors may choose
    /// the same k-mer.
    pub selector: u8,
    /// Smallest ratio, in percent, of the allele fraction in the normal to that in the tumour that would explain the
    /// count in the normal by tumour cells in it. 0 if slight contamination, which every normal may have, explains the
    /// count.
    pub tumour_in_normal_percent: u8,
}

/// Number of the selector that pools the counts of all tumours.
pub const POOLED_SELECTOR_NUMBER: u8 = 0;

/// Groups candidates with the same k-mer. The candidates must be sorted.
pub(crate) fn group_candidates_by_kmer(candidates: &[CandidateKmer]) -> impl Iterator<Item = &[CandidateKmer]> {
    candidates.chunk_by(|a, b| a.kmer == b.kmer)
}

impl CandidateKmer {
    /// Whether this is a branching k-mer: the normal has the same root with another first or last base.
    pub fn is_branching(&self) -> bool {
        self.root_depth > 0
    }

    /// Whether this is a branching k-mer in a repeat: its root occurs more than [`MIN_REPEAT_DEPTH_RATIO`] times as
    /// often as `median_depth`, the median k-mer depth of the tumour.
    pub fn is_in_repeat(&self, median_depth: f64) -> bool {
        f64::from(self.root_depth) > MIN_REPEAT_DEPTH_RATIO * median_depth
    }

    /// Whether this is a branching k-mer that is rare enough to be a sequencing error. It is then used only if enough
    /// of its occurrences have high base quality.
    pub fn needs_high_quality_bases(&self) -> bool {
        self.is_branching()
            && f64::from(self.tumour_count) < min_count_above_errors_at_depth(f64::from(self.root_depth))
    }
}

/// Minimum ratio of root depth to median k-mer depth for a root in a repeat. Empirical.
const MIN_REPEAT_DEPTH_RATIO: f64 = 3.0;

/// Maximum probability that a read has one given wrong base at a position, if the base has quality
/// [`MIN_HIGH_BASE_QUALITY`] or more. Empirical.
const MAX_HIGH_QUALITY_ERROR_RATE: f64 = MAX_RATE_OF_SPECIFIC_WRONG_BASE / 5.0;
/// Minimum Phred quality of a base that counts as high quality.
pub const MIN_HIGH_BASE_QUALITY: u8 = 30;
/// Minimum number of molecules with high-quality bases that support a candidate whose count alone is too low, if no
/// error rate was measured. Empirical.
const MIN_HIGH_QUALITY_COUNT: f64 = 4.0;

/// Minimum number of occurrences of a k-mer with bases of quality [`MIN_HIGH_BASE_QUALITY`] or more that sequencing
/// errors do not explain. `depth` is the number of occurrences of the root in the tumour, `error_rate` the measured
/// probability of one given wrong base of good quality, if the tumour is deep enough to measure it.
pub(crate) fn min_high_quality_count_above_errors(depth: f64, error_rate: Option<f64>) -> f64 {
    match error_rate {
        Some(rate) => min_count_above_expected_errors(depth * rate * ERROR_RATE_MARGIN),
        None => min_count_above_expected_errors(depth * MAX_HIGH_QUALITY_ERROR_RATE).max(MIN_HIGH_QUALITY_COUNT),
    }
}

/// Factor by which the error rate at a position may exceed the mean rate of its substitution. Empirical.
const ERROR_RATE_MARGIN: f64 = 1.5;

/// Counts of a k-mer, and of its root, in the normal and in the tumour.
#[derive(Clone, Copy)]
struct JointCounts {
    /// Numbers of occurrences of the k-mer in the normal and in the tumour.
    kmer: [u32; 2],
    /// Expected number of occurrences in the normal for each occurrence in the tumour, if both samples have the allele
    /// at the same fraction.
    expected_count_ratio: f64,
    /// Number of occurrences of the root in the normal, if the normal has it with another first or last base.
    normal_root: Option<u32>,
}

/// Largest ratio, in percent, of the allele fraction in the normal to that in the tumour at which an allele may be
/// somatic. Chosen: above it, somatic and germline alleles cannot be distinguished at usual depth.
const MAX_TUMOUR_IN_NORMAL_PERCENT: u8 = 40;
/// Number of standard deviations (Poisson) by which the count in the normal may exceed, in addition to one, the count
/// expected from tumour cells in the normal. Chosen: fewer than one allele in a hundred has more.
const TUMOUR_IN_NORMAL_DEVIATIONS: f64 = 2.5;
/// Maximum count of a somatic allele in the normal, as a share of the expected count of a germline allele. Chosen: at a
/// depth of 30 only one germline allele in a hundred has a lower count.
const MAX_GERMLINE_COUNT_SHARE: f64 = 0.5;
/// Maximum share of the normal's occurrences of a root that tumour cells in the normal may contribute to an allele.
/// Chosen like [`MAX_GERMLINE_COUNT_SHARE`].
const MAX_TUMOUR_IN_NORMAL_ROOT_SHARE: f64 = 0.2;

/// Selects the candidate k-mers of one tumour, or of all tumours pooled, root by root. Also counts genotype mismatches
/// and collects tumour alleles over all roots.
#[derive(Debug)]
pub struct CandidateSelector {
    k: u32,
    /// Minimum number of occurrences of a candidate k-mer in the tumour.
    min_tumour_count: u32,
    /// Depth of the normal divided by the depth of the tumour.
    normal_depth_ratio: f64,
    /// Maximum number of occurrences of a novel k-mer in the normal, whatever its count in the tumour. Limits k-mers of
    /// high-copy sequence.
    max_normal_count: f64,
    /// Minimum number of occurrences in the normal of a root with another first or last base, for a branching k-mer.
    min_normal_root_count: u32,
    /// Measured probability of one given wrong base of good quality in the tumour; `None` if it is unknown.
    error_rate: Option<f64>,
    mismatched_roots: AtomicU64,
    /// Collects alleles that the tumour clearly has. Only selectors of single tumours collect them.
    tumour_alleles: TumourAlleleCollector,
    /// Number of novel k-mers found so far; `max_novel_candidates` is the maximum number that is output.
    novel_candidates: AtomicU64,
    max_novel_candidates: u64,
    number: u8,
}

/// Maximum count in the normal, as a share of the count expected from the tumour's depth, that slight contamination
/// with tumour DNA explains. Empirical.
const MAX_SLIGHT_CONTAMINATION_SHARE: f64 = 1.0 / 6.0;
/// Minimum share of a root's occurrences in the normal at which a k-mer counts as germline, whatever its count in the
/// tumour. Empirical.
const MIN_GERMLINE_SHARE: f64 = 1.0 / 12.0;
/// Minimum number of occurrences in the normal of a root with another first or last base, for a branching k-mer, in a
/// normal of usual depth. With fewer reads of the normal, all tumour sequence would look new.
const MIN_NORMAL_ROOT_COUNT: u32 = 4;
/// Depth of the normal for which the minimum root count rises by 1: the minimum is 1 below a depth of 8 and reaches
/// [`MIN_NORMAL_ROOT_COUNT`] at 16. Chosen.
const NORMAL_DEPTH_PER_ROOT_COUNT: f64 = 4.0;
/// Minimum number of occurrences in the tumour at which a single occurrence in the normal counts as an error; at least
/// twice the minimum count of a candidate k-mer.
const MIN_CLEAR_TUMOUR_COUNT: u32 = 4;
/// Minimum ratio of tumour depth to normal depth, normalised by the total depths of both samples, in an amplified
/// region.
const MIN_AMPLIFICATION_RATIO: f64 = 2.0;
/// Minimum number of occurrences of a root in each sample at which the alleles of both samples are compared.
const MIN_COMPARED_ROOT_COUNT: u32 = 8;

impl CandidateSelector {
    /// Creates a selector for a tumour in which a single-copy k-mer occurs `depth` times (0 if unknown). `kmers` has
    /// the total numbers of k-mers of the normal and of the tumour; `min_tumour_count` is the minimum number of
    /// occurrences in the tumour, which is raised if sequencing errors explain as many at this depth.
    pub fn for_tumour(
        k: u32,
        min_tumour_count: u32,
        kmers: [u64; 2],
        depth: f64,
        libraries: &SamplePairLibraryProperties,
    ) -> CandidateSelector {
        let ratio = kmers[NORMAL_SAMPLE as usize] as f64 / kmers[TUMOUR_SAMPLE as usize].max(1) as f64;
        let error_rate = libraries.tumour.error_rate;
        // Where an error rate is measured, the minimum at each root is lower.
        let any_rate = min_count_above_errors_at_depth(depth);
        let above_errors =
            error_rate.map_or(any_rate, |_| any_rate.min(min_high_quality_count_above_errors(depth, error_rate)));
        let normal_root_count = match libraries.normal.depth {
            0.0 => MIN_NORMAL_ROOT_COUNT,
            depth => ((depth / NORMAL_DEPTH_PER_ROOT_COUNT) as u32).clamp(1, MIN_NORMAL_ROOT_COUNT),
        };
        CandidateSelector {
            k,
            min_tumour_count: min_tumour_count.max(above_errors.ceil() as u32),
            normal_depth_ratio: ratio,
            max_normal_count: if depth > 0.0 { 1.0 + depth * ratio * MIN_GERMLINE_SHARE } else { f64::INFINITY },
            min_normal_root_count: normal_root_count,
            error_rate,
            mismatched_roots: AtomicU64::new(0),
            tumour_alleles: TumourAlleleCollector::default(),
            novel_candidates: AtomicU64::new(0),
            max_novel_candidates: u64::MAX,
            number: TUMOUR_SAMPLE,
        }
    }

    /// Sets the number that the selector writes into its candidates.
    pub(crate) fn with_selector_number(self, number: u8) -> CandidateSelector {
        CandidateSelector { number, ..self }
    }

    /// Limits the output to about `max_candidates` novel k-mers in total.
    pub fn with_novel_kmer_limit(self, max_candidates: u64) -> CandidateSelector {
        CandidateSelector { max_novel_candidates: max_candidates, ..self }
    }

    /// Number of novel k-mers found, including those above the limit, which were not output.
    pub fn num_novel_candidates_found(&self) -> u64 {
        self.novel_candidates.load(Relaxed)
    }

    /// Number of roots, among those with enough reads in both samples, at which the samples have different alleles: a
    /// read of the normal and a read of the tumour rarely have the same first and last base. Two people have many such
    /// roots, one person hardly any.
    pub fn num_genotype_mismatches(&self) -> u64 {
        self.mismatched_roots.load(Relaxed)
    }

    /// Alleles that the tumour clearly has, with their counts in the normal. Empty for the pooled selector.
    pub fn tumour_alleles(&self) -> TumourAlleles {
        self.tumour_alleles.merge_collected_alleles()
    }

    /// Appends the candidate k-mers of a root: k-mers that are frequent enough in the tumour and that the normal lacks,
    /// except for occurrences that contamination or tumour cells in the normal explain. Palindromic k-mers are skipped:
    /// without a direction they cannot anchor a read.
    pub fn append_candidates_of_root(&self, root: &RootCounters, candidates: &mut Vec<CandidateKmer>) {
        self.append_candidates_in_viewed_samples(root, |counts| *counts, candidates);
    }

    /// Maximum count of a k-mer in a normal without tumour cells, allowing for slight contamination.
    fn max_contamination_count(&self, joint: &JointCounts) -> f64 {
        let tumour = joint.kmer[usize::from(TUMOUR_SAMPLE)];
        let most = f64::from(tumour) * joint.expected_count_ratio * MAX_SLIGHT_CONTAMINATION_SHARE;
        let most = most.min(match joint.normal_root {
            Some(root) => 1.0 + f64::from(root) * MIN_GERMLINE_SHARE,
            None => self.max_normal_count,
        });
        // One read of the normal may be an error.
        if tumour >= MIN_CLEAR_TUMOUR_COUNT.max(2 * self.min_tumour_count) { most.max(1.0) } else { most }
    }

    /// Smallest ratio, in percent, of the allele fraction in the normal to that in the tumour that explains the count
    /// in the normal. 0 if slight contamination explains it; `None` if no ratio up to [`MAX_TUMOUR_IN_NORMAL_PERCENT`]
    /// does, or if the count may be that of a germline allele.
    fn tumour_in_normal_percent(&self, joint: &JointCounts) -> Option<u8> {
        let [normal, tumour] = joint.kmer.map(f64::from);
        if normal <= self.max_contamination_count(joint) {
            return Some(0);
        }
        // A germline allele has the same fraction in both samples.
        let germline = tumour * joint.expected_count_ratio;
        let most = MAX_GERMLINE_COUNT_SHARE * germline;
        let most =
            joint.normal_root.map_or(most, |root| most.min(1.0 + f64::from(root) * MAX_TUMOUR_IN_NORMAL_ROOT_SHARE));
        if normal > most {
            return None;
        }
        let explains = |percent: &u8| {
            let expected = germline * f64::from(*percent) / 100.0;
            normal <= 1.0 + expected + TUMOUR_IN_NORMAL_DEVIATIONS * expected.sqrt()
        };
        (1..=MAX_TUMOUR_IN_NORMAL_PERCENT).find(explains)
    }

    /// Appends the candidate k-mers of a root with counters for `S` samples. `view` converts the counts of all samples
    /// into those of the normal and of this selector's tumours.
    pub(crate) fn append_candidates_in_viewed_samples<const S: usize>(
        &self,
        root: &RootCounters<S>,
        view: impl Fn(&[u32; S]) -> [u32; 2],
        candidates: &mut Vec<CandidateKmer>,
    ) {
        let total = |sample: u8| root.counts.iter().map(|c| view(c)[sample as usize]).sum::<u32>();
        let (root_in_normal, root_in_tumour) = (total(NORMAL_SAMPLE), total(TUMOUR_SAMPLE));
        if root_in_tumour < self.min_tumour_count {
            return;
        }
        let min_count = min_count_above_errors_at_depth(f64::from(root_in_tumour));
        // Base qualities are not counted. Candidates that may have enough high-quality bases are selected and checked
        // later in the reads (see [`crate::labelled_pair`]). Where only the tumour is deep the region is amplified and
        // not a repeat, and true changes are frequent.
        let amplified =
            f64::from(root_in_tumour) * self.normal_depth_ratio > MIN_AMPLIFICATION_RATIO * f64::from(root_in_normal);
        let min_branching_count = if amplified {
            min_count
        } else {
            min_count.min(min_high_quality_count_above_errors(f64::from(root_in_tumour), self.error_rate))
        };
        let slots = OccurringSlots::of_root(root);
        for slot in slots {
            let [normal, tumour] = view(&root.counts[slot]);
            if tumour < self.min_tumour_count {
                continue;
            }
            let branching = root_in_normal >= normal + self.min_normal_root_count;
            if f64::from(tumour) < if branching { min_branching_count } else { min_count } {
                continue;
            }
            // Where the normal has the root, its own depth predicts the count of a germline allele.
            let ratio =
                if branching { f64::from(root_in_normal) / f64::from(root_in_tumour) } else { self.normal_depth_ratio };
            let joint = JointCounts {
                kmer: [normal, tumour],
                expected_count_ratio: ratio,
                normal_root: branching.then_some(root_in_normal),
            };
            let Some(tumour_in_normal_percent) = self.tumour_in_normal_percent(&joint) else { continue };
            let (first, last) = (slot as u64 >> 2, slot as u64 & 3);
            let kmer = (first << (2 * (self.k - 1)) | root.root << 2 | last) & kmer_mask(self.k);
            let reverse = reverse_complement_kmer(kmer, self.k);
            if kmer != reverse {
                if !branching && self.novel_candidates.fetch_add(1, Relaxed) >= self.max_novel_candidates {
                    continue;
                }
                let depth = if branching { root_in_tumour } else { 0 };
                candidates.push(CandidateKmer {
                    kmer: kmer.min(reverse),
                    tumour_count: tumour,
                    normal_count: normal,
                    root_depth: depth,
                    selector: self.number,
                    tumour_in_normal_percent,
                });
            }
        }
        let each = || slots.map(|slot| view(&root.counts[slot]));
        if self.number != POOLED_SELECTOR_NUMBER
            && may_root_yield_alleles_or_errors(root.root, each, [root_in_normal, root_in_tumour])
        {
            let counts = root.counts.each_ref().map(&view);
            self.tumour_alleles.add_root(root.root, self.k - 2, &counts, [root_in_normal, root_in_tumour]);
        }
        self.compare_genotypes(each(), [root_in_normal, root_in_tumour]);
    }

    /// Counts a root at which normal and tumour have different alleles. `of_root` has the counts of the root in both.
    #[inline]
    fn compare_genotypes(&self, counts: impl Iterator<Item = [u32; 2]>, of_root: [u32; 2]) {
        if of_root.into_iter().any(|count| count < MIN_COMPARED_ROOT_COUNT) {
            return;
        }
        let product = |counts: [u32; 2]| counts.into_iter().map(u64::from).product::<u64>();
        // Allow for one error in sixteen reads.
        if counts.map(product).sum::<u64>() * 16 <= product(of_root) {
            self.mismatched_roots.fetch_add(1, Relaxed);
        }
    }
}

/// Iterator over the k-mers of a root that occur in at least one sample: over their indices in
/// [`RootCounters::counts`], in order. Most roots have one such k-mer.
#[derive(Debug, Clone, Copy)]
struct OccurringSlots(u32);

impl OccurringSlots {
    #[inline]
    fn of_root<const S: usize>(root: &RootCounters<S>) -> OccurringSlots {
        let occurs = |(slot, counts): (usize, &[u32; S])| u32::from(*counts != [0; S]) << slot;
        OccurringSlots(root.counts.iter().enumerate().map(occurs).fold(0, |all, slot| all | slot))
    }
}

impl Iterator for OccurringSlots {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let slot = self.0.trailing_zeros() as usize;
        (self.0 != 0).then(|| {
            self.0 &= self.0 - 1;
            slot
        })
    }
}

/// Depths and error share that are estimated from the k-mer spectra.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KmerDepths {
    /// For the normal and each tumour: the expected number of occurrences of a k-mer that occurs once in each haploid
    /// genome.
    pub kmer: Vec<f64>,
    /// Share of all k-mer occurrences in the tumours that contain a sequencing error.
    pub error_share: f64,
}

impl KmerDepths {
    /// Estimates the depth of each sample as the highest peak of its spectrum above the error k-mers.
    pub fn estimate_depths_from_spectra(spectra: &[Vec<u64>]) -> KmerDepths {
        let kmer = spectra.iter().map(|spectrum| main_peak_depth(spectrum)).collect();
        let weigh = |range: &[u64]| -> u64 { range.iter().zip(0u64..).map(|(n, m)| m * n).sum() };
        let tumours = spectra.iter().skip(TUMOUR_SAMPLE.into());
        let (errors, total) = tumours.fold((0, 0), |(errors, total), tumour| {
            (errors + weigh(&tumour[..error_valley(tumour)]), total + weigh(tumour))
        });
        KmerDepths { kmer, error_share: errors as f64 / total.max(1) as f64 }
    }
}

/// Median depth of the k-mers of a sample without error k-mers, weighted by their occurrences. Also valid for targeted
/// panels, whose spectrum has no single peak. 0 for an empty spectrum.
pub fn median_kmer_depth_of_spectrum(spectrum: &[u64]) -> f64 {
    let from = error_valley(spectrum);
    let mass = |m: usize| m as u64 * spectrum[m];
    let total: u64 = (from..spectrum.len()).map(mass).sum();
    let mut left = total / 2;
    let reaches = |&m: &usize| {
        let here = mass(m);
        let found = here > left;
        left = left.saturating_sub(here);
        found
    };
    (from..spectrum.len()).find(reaches).unwrap_or(0) as f64
}

/// The multiplicity between the error k-mers and the first peak of a spectrum: the first one from 2 on after which the
/// spectrum rises; 2 if it never rises.
///
/// The spectrum of a shallow sample may rise only behind its peak, in repeats, because most of its k-mers occur once or
/// twice. But the number of occurrences, multiplicity times k-mers, rises before the peak. So if most occurrences lie
/// between the two places, the first one is taken.
fn error_valley(spectrum: &[u64]) -> usize {
    let occurrences = |m: usize| m as u64 * spectrum[m];
    let first_rise = |value: &dyn Fn(usize) -> u64| {
        (2..spectrum.len().saturating_sub(1)).find(|&m| value(m + 1) > value(m)).unwrap_or(2)
    };
    let (of_kmers, of_occurrences) = (first_rise(&|m| spectrum[m]), first_rise(&occurrences));
    let sum = |range: Range<usize>| range.map(occurrences).sum::<u64>();
    let is_shallow = 2 * sum(of_occurrences..of_kmers) > sum(2..spectrum.len());
    if is_shallow { of_occurrences } else { of_kmers }
}

/// The multiplicity above the error k-mers with the most k-mer occurrences. Weighting by occurrences prefers the
/// homozygous peak to the heterozygous one at half the depth.
fn main_peak_depth(spectrum: &[u64]) -> f64 {
    let from = error_valley(spectrum);
    let last = spectrum.len().saturating_sub(1);
    (from..last).max_by_key(|&m| (m as u64 * spectrum[m], std::cmp::Reverse(m))).unwrap_or(1).max(1) as f64
}
