//! Results from the counts of marker k-mers: relative copy number of each contig, sex, mitochondrial copies, and the
//! screened sequences that the samples contain.

use serde::{Deserialize, Serialize};

use super::{MarkerSequenceKind, MarkerTally, SequenceMarkerCounts};
use crate::confidence_interval::{Estimate, Z_SCORE_95_PERCENT};

/// Results from marker k-mers in the normal and the tumour: copy numbers of the contigs, and detected screened
/// sequences.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ContigCopiesAndScreen {
    /// Relative copy numbers of the contigs of the reference; `None` without a reference.
    pub karyotype: Option<RelativeContigCopyNumbers>,
    /// Result of the screen for known sequences; `None` if no sequences to screen for were given.
    pub screen: Option<ScreenResult>,
}

/// Relative copy numbers of all contigs of the reference, and what follows from them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RelativeContigCopyNumbers {
    /// For the normal and the tumour: mean count of a marker k-mer of an autosome, as median over the autosomes
    /// weighted by length. X, Y and organelles are excluded; if there are no other contigs, all contigs are used.
    pub autosome_depth: [f64; 2],
    /// Sex of the person as text, estimated from the normal and from the tumour.
    pub sex: [String; 2],
    /// Share of the tumour sample's cells that have lost the Y chromosome (0 to 1); `None` if the normal has no Y, or
    /// if the tumour does not have significantly less of it.
    pub y_loss: Option<Estimate>,
    /// Copies of the mitochondrion per diploid cell in the normal and in the tumour: its depth relative to the
    /// autosomes, times 2. `None` without a mitochondrial contig, or if the depth is too low.
    pub mitochondrial_copies: [Option<Estimate>; 2],
    /// Names of the contigs with a different copy number in the tumour than in the normal.
    pub changed_contigs: Vec<String>,
    /// Number of contigs without a result, because they have too few markers.
    pub unassessed_contigs: u64,
    /// Contigs with enough markers, in the order of the reference.
    pub contigs: Vec<ContigCopyNumber>,
}

/// Relative copy number of one contig.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContigCopyNumber {
    /// Name of the contig in the reference.
    pub name: String,
    /// Length of the sequence in bases, N included.
    pub bases: u64,
    /// Number of marker k-mers of the contig.
    pub marker_kmers: u64,
    /// Depth relative to the autosomes, in the normal and in the tumour; 1 means two copies. `None` if the depth is too
    /// low.
    pub relative_depth: [Option<Estimate>; 2],
    /// Relative depth of the tumour divided by that of the normal; `None` if either is unknown, or if that of the
    /// normal may be 0.
    pub tumour_normal_ratio: Option<Estimate>,
    /// Change of the copy number in the tumour: `gained`, `lost`, `unchanged` or `unknown`; `organelle` for an
    /// organelle.
    pub status: String,
}

/// Result of screening both samples for known sequences, such as viruses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScreenResult {
    /// Number of sequences that the samples were screened for, found or not.
    pub sequences: u64,
    /// Share of the k-mers of all screened sequences that were sampled as candidate markers (0 to 1).
    pub searched_share: f64,
    /// Number of sequences that cannot be detected, because they have fewer than 5 markers: they are short, or the
    /// reference or earlier sequences share nearly all of their k-mers.
    pub indistinguishable: u64,
    /// Detected sequences: those with an estimated 1.5 or more reads in a sample, by decreasing number of reads.
    pub detected: Vec<DetectedSequence>,
    /// Number of sequences that could be detected but were not.
    pub not_detected: u64,
}

/// A screened sequence that was detected in a sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DetectedSequence {
    /// Name of the sequence: the first word of its FASTA header.
    pub name: String,
    /// Length of the sequence in bases, N included.
    pub bases: u64,
    /// Number of marker k-mers, and number of candidate markers that were not used because the reference or an earlier
    /// sequence has them too.
    pub marker_kmers: [u64; 2],
    /// Name of the earlier screened sequence that shares most k-mers with this one; `None` if no earlier sequence
    /// shares any.
    pub most_similar: Option<String>,
    /// Detection of the sequence in the normal and in the tumour.
    pub samples: [SequenceDetectionInSample; 2],
}

/// Detection of a screened sequence in one sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SequenceDetectionInSample {
    /// Share of the markers that occur at least once in the sample (0 to 1).
    pub breadth: f64,
    /// Mean number of occurrences of a marker.
    pub depth: f64,
    /// Estimated number of reads that come from the sequence.
    pub reads: f64,
    /// Estimated number of reads that come from the sequence, per million reads of the sample.
    pub reads_per_million: f64,
    /// Result as text, such as `detected` or `traces (possible carry-over)`.
    pub note: String,
}

/// Number of reads of a sample and mean number of k-mers per read, which convert marker counts to numbers of reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReadCountAndKmersPerRead {
    /// Number of reads, both mates of a pair counted.
    pub num_reads: f64,
    /// Mean number of k-mers per read.
    pub kmers_per_read: f64,
}

/// Assumed fragment length in bases: counts of markers closer than this are treated as dependent, because the same
/// fragments contain both. Chosen; a higher value widens the confidence intervals.
const FRAGMENT_BP: u64 = 300;
/// Minimum number of markers to report a contig. Chosen.
const MIN_CONTIG_MARKERS: u64 = 20;
/// Minimum sum of marker counts over all autosomes to report copy numbers. Chosen.
const MIN_AUTOSOME_KMERS: u64 = 500;

/// Mean count of the markers of a sequence in a sample, without outliers in repeats and amplified regions.
#[derive(Debug, Clone, Copy, PartialEq)]
struct MarkerDepth {
    mean: f64,
    /// Standard error of the mean.
    standard_error: f64,
    /// Sum of the counts of all markers that were used.
    total_count: u64,
}

/// Number of standard deviations (Poisson) above the median count beyond which a marker k-mer is left out as a repeat.
/// Chosen; a higher value admits more repeats to the mean.
const REPEAT_DEVIATIONS: f64 = 3.0;
/// Smallest count from which a marker k-mer may be left out as a repeat. Chosen; a higher value admits more repeats in
/// shallow samples.
const MIN_REPEAT_COUNT: f64 = 3.0;

fn marker_depth(sequence: &SequenceMarkerCounts, sample: usize) -> MarkerDepth {
    let seen = &sequence.count_histograms[sample];
    let there: u64 = seen.iter().map(|&(_, n)| u64::from(n)).sum();
    let none = sequence.markers.saturating_sub(there);
    let all = || std::iter::once((0, none)).chain(seen.iter().map(|&(count, n)| (count, u64::from(n))));
    let mut left = sequence.markers / 2;
    let median = all().find(|&(_, n)| {
        let here = n > left;
        left = left.saturating_sub(n);
        here
    });
    let median = f64::from(median.map_or(0, |(count, _)| count));
    let most = (median + REPEAT_DEVIATIONS * median.sqrt() + 1.0).max(MIN_REPEAT_COUNT);
    let (mut marks, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for (count, n) in all().filter(|&(count, _)| f64::from(count) <= most) {
        let (count, n) = (f64::from(count), n as f64);
        (marks, sum, squares) = (marks + n, sum + count * n, squares + count * count * n);
    }
    let mean = if marks > 0.0 { sum / marks } else { 0.0 };
    let variance = if marks > 0.0 { (squares / marks - mean * mean).max(mean) } else { 0.0 };
    let independent = marks.min((sequence.bases / FRAGMENT_BP) as f64).max(1.0);
    // The error is not 0 even if no marker was seen.
    let error = (variance / independent).sqrt().max(1.0 / independent);
    MarkerDepth { mean, standard_error: error, total_count: sum as u64 }
}

impl MarkerDepth {
    /// Ratio of this mean count to `other`, with a confidence interval; `None` if it is undefined.
    fn ratio_to(self, other: MarkerDepth) -> Option<Estimate> {
        if other.mean <= 0.0 {
            return None;
        }
        let value = self.mean / other.mean;
        let error = Z_SCORE_95_PERCENT * (self.standard_error.powi(2) + (value * other.standard_error).powi(2)).sqrt()
            / other.mean;
        Some(Estimate { value, low: (value - error).max(0.0), high: value + error })
    }
}

/// Whether a contig is the sex chromosome `sex` (`X` or `Y`) by its name, with or without the prefix `chr`.
fn is_sex_chromosome(name: &str, sex: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.strip_prefix("CHR").unwrap_or(&name) == sex
}

/// Minimum relative change of the depth of a whole contig, in addition to significance, to call it gained or lost.
/// Chosen; a higher value reports fewer changes.
const MIN_RATIO_CHANGE: f64 = 0.1;

impl ContigCopiesAndScreen {
    /// Computes copy numbers and screen results from the marker counts of both samples. `reads` are the numbers of
    /// reads of the normal and the tumour, with their k-mers per read.
    pub fn from_marker_tally(tally: &MarkerTally, reads: [ReadCountAndKmersPerRead; 2]) -> ContigCopiesAndScreen {
        let kinds = |screened: bool| {
            tally
                .sequences
                .iter()
                .filter(move |s| (s.kind == MarkerSequenceKind::Screened) == screened)
                .collect::<Vec<_>>()
        };
        let [contigs, screened] = [false, true].map(kinds);
        ContigCopiesAndScreen {
            karyotype: (!contigs.is_empty()).then(|| build_karyotype(&contigs)),
            screen: (!screened.is_empty()).then(|| build_screen(&screened, reads)),
        }
    }
}

fn build_karyotype(contigs: &[&SequenceMarkerCounts]) -> RelativeContigCopyNumbers {
    let assessed: Vec<(&SequenceMarkerCounts, [MarkerDepth; 2])> = contigs
        .iter()
        .filter(|contig| contig.markers >= MIN_CONTIG_MARKERS)
        .map(|&contig| (contig, [0, 1].map(|sample| marker_depth(contig, sample))))
        .collect();
    let is_usual = |contig: &SequenceMarkerCounts| {
        contig.kind == MarkerSequenceKind::Contig
            && !["X", "Y"].into_iter().any(|sex| is_sex_chromosome(&contig.name, sex))
    };
    let autosomes = [0, 1].map(|sample| autosome_depth(&assessed, sample, is_usual));
    let enough = autosomes.map(|autosomes| autosomes.total_count >= MIN_AUTOSOME_KMERS && autosomes.mean > 0.0);
    let relative = |depths: &[MarkerDepth; 2], sample: usize| {
        if enough[sample] { depths[sample].ratio_to(autosomes[sample]) } else { None }
    };
    let contig_copies: Vec<ContigCopyNumber> = assessed
        .iter()
        .map(|(contig, depths)| {
            let relative = [0, 1].map(|sample| relative(depths, sample));
            let ratio = relative[0].zip(relative[1]).and_then(|(normal, tumour)| divide_estimates(tumour, normal));
            let word = match ratio {
                _ if contig.kind == MarkerSequenceKind::Organelle => "organelle",
                None => "unknown",
                Some(ratio) if ratio.low > 1.0 && ratio.value > 1.0 + MIN_RATIO_CHANGE => "gained",
                Some(ratio) if ratio.high < 1.0 && ratio.value < 1.0 - MIN_RATIO_CHANGE => "lost",
                Some(_) => "unchanged",
            };
            let SequenceMarkerCounts { name, bases, markers: marks, .. } = contig;
            ContigCopyNumber {
                name: name.clone(),
                bases: *bases,
                marker_kmers: *marks,
                relative_depth: relative,
                tumour_normal_ratio: ratio,
                status: word.to_owned(),
            }
        })
        .collect();
    let of_sex = |sex| contig_copies.iter().find(|fact| is_sex_chromosome(&fact.name, sex));
    let (x, y) = (of_sex("X"), of_sex("Y"));
    let sex = [0, 1].map(|sample| {
        let relative = |fact: Option<&ContigCopyNumber>| fact.and_then(|fact| fact.relative_depth[sample]);
        self::describe_sex(relative(x), relative(y), x.is_some(), enough[sample]).to_owned()
    });
    let had = y.filter(|y| y.relative_depth[0].is_some_and(|normal| normal.low > MIN_Y_DEPTH));
    let y_lost = had.and_then(|y| y.tumour_normal_ratio).filter(|ratio| ratio.high < 1.0).map(|ratio| {
        let lost = |left: f64| (1.0 - left).clamp(0.0, 1.0);
        Estimate { value: lost(ratio.value), low: lost(ratio.high), high: lost(ratio.low) }
    });
    let mitochondrion = |(contig, _): &&(&SequenceMarkerCounts, [MarkerDepth; 2])| {
        contig.kind == MarkerSequenceKind::Organelle && contig.name.to_ascii_lowercase().contains('m')
    };
    let mitochondria = [0, 1].map(|sample| {
        let relative = assessed.iter().find(mitochondrion).and_then(|(_, depths)| relative(depths, sample));
        relative.map(|relative| relative.scale_by(2.0))
    });
    let changed = contig_copies.iter().filter(|fact| ["gained", "lost"].contains(&&fact.status[..]));
    RelativeContigCopyNumbers {
        autosome_depth: autosomes.map(|autosomes| autosomes.mean),
        sex,
        y_loss: y_lost,
        mitochondrial_copies: mitochondria,
        changed_contigs: changed.map(|fact| fact.name.clone()).collect(),
        unassessed_contigs: (contigs.len() - assessed.len()) as u64,
        contigs: contig_copies,
    }
}

/// Median over the autosomes of their depth, weighted by length; over all contigs if there are no autosomes.
fn autosome_depth(
    contigs: &[(&SequenceMarkerCounts, [MarkerDepth; 2])],
    sample: usize,
    is_autosome: impl Fn(&SequenceMarkerCounts) -> bool,
) -> MarkerDepth {
    let any = contigs.iter().any(|(contig, _)| is_autosome(contig));
    let used = contigs.iter().filter(|(contig, _)| !any || is_autosome(contig));
    let mut depths: Vec<(u64, MarkerDepth)> = used.map(|(contig, depths)| (contig.bases, depths[sample])).collect();
    depths.sort_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    let seen = depths.iter().map(|(_, depth)| depth.total_count).sum();
    let mut left = depths.iter().map(|(bases, _)| bases).sum::<u64>() / 2;
    let middle = depths.iter().find(|(bases, _)| {
        let here = *bases > left;
        left = left.saturating_sub(*bases);
        here
    });
    middle.map_or(MarkerDepth { mean: 0.0, standard_error: 0.0, total_count: 0 }, |&(_, depth)| MarkerDepth {
        total_count: seen,
        ..depth
    })
}

/// Ratio `a / b` of two independent estimates, with a confidence interval; `None` if `b` may be 0.
fn divide_estimates(a: Estimate, b: Estimate) -> Option<Estimate> {
    if b.value <= 0.0 || b.low <= 0.0 {
        return None;
    }
    let value = a.value / b.value;
    let side = |of: Estimate| (of.high - of.low) / 2.0;
    let error = (side(a).powi(2) + (value * side(b)).powi(2)).sqrt() / b.value;
    Some(Estimate { value, low: (value - error).max(0.0), high: value + error })
}

/// Smallest and largest depth, relative to the autosomes, of a chromosome with one copy. Chosen around 0.5; with a
/// wider range the sex of fewer samples is unclear.
const ONE_COPY_RELATIVE_DEPTH: (f64, f64) = (0.35, 0.7);
/// Smallest and largest depth, relative to the autosomes, of a chromosome with two copies. Chosen around 1.
const TWO_COPIES_RELATIVE_DEPTH: (f64, f64) = (0.8, 1.3);
/// Depth of Y relative to the autosomes below which Y is absent. Chosen: above the depth of homologous sequence of X.
const MAX_ABSENT_DEPTH: f64 = 0.1;

/// Minimum depth of Y in the normal, relative to the autosomes, to report that the tumour lost it. Chosen: half of one
/// copy; a higher value reports fewer losses.
const MIN_Y_DEPTH: f64 = 0.25;

fn describe_sex(x: Option<Estimate>, y: Option<Estimate>, has_x: bool, enough: bool) -> &'static str {
    if !has_x {
        return "unknown: no sequence is called X or chrX";
    }
    let Some(x) = x.filter(|_| enough) else { return "unknown: too few reads" };
    let (one, two) = (
        ONE_COPY_RELATIVE_DEPTH.0..ONE_COPY_RELATIVE_DEPTH.1,
        TWO_COPIES_RELATIVE_DEPTH.0..TWO_COPIES_RELATIVE_DEPTH.1,
    );
    match (x.value, y.map(|y| y.value)) {
        (x, None) if two.contains(&x) => "female (from X alone: no sequence is called Y)",
        (x, None) if one.contains(&x) => "male (from X alone: no sequence is called Y)",
        (x, Some(0.0..MAX_ABSENT_DEPTH)) if two.contains(&x) => "female",
        (x, Some(y)) if one.contains(&x) && one.contains(&y) => "male",
        (x, Some(0.0..MAX_ABSENT_DEPTH)) if one.contains(&x) => "one X, no Y",
        (x, Some(y)) if one.contains(&x) && y < ONE_COPY_RELATIVE_DEPTH.0 => "male, with Y lost in a part of the cells",
        (x, Some(y)) if two.contains(&x) && one.contains(&y) => "two X and one Y",
        (x, Some(y)) if two.contains(&x) && y < ONE_COPY_RELATIVE_DEPTH.0 => {
            "female, with some Y: possibly contamination"
        }
        (x, Some(0.0..MAX_ABSENT_DEPTH)) if x > ONE_COPY_RELATIVE_DEPTH.1 && x < TWO_COPIES_RELATIVE_DEPTH.0 => {
            "one copy of X lost in a part of the cells, no Y"
        }
        _ => "unclear: X and Y have neither one nor two copies",
    }
}

/// Minimum number of markers that a screened sequence needs to be searched for. Chosen.
const MIN_SCREEN_MARKERS: u64 = 5;
/// Minimum estimated number of reads to report a screened sequence as detected; with fewer reads it is reported as
/// traces. Chosen; with a higher value more sequences are reported as traces.
const MIN_PRESENT_READS: f64 = 10.0;
/// Minimum estimated number of reads to report a screened sequence at all, as traces. Chosen: above a single read.
const MIN_TRACE_READS: f64 = 1.5;
/// Minimum ratio of the observed breadth (share of the markers that were found) to the breadth expected for the number
/// of reads. With a lower ratio only a part of the sequence is reported as present. Chosen.
const MIN_BREADTH_SHARE: f64 = 0.2;

fn build_screen(screened: &[&SequenceMarkerCounts], reads: [ReadCountAndKmersPerRead; 2]) -> ScreenResult {
    let kmers: u64 = screened.iter().map(|s| s.kmers).sum();
    let marks: u64 = screened.iter().map(|s| s.markers + s.shared_markers).sum();
    let searched = screened.iter().filter(|s| s.markers >= MIN_SCREEN_MARKERS);
    let of = |&&sequence: &&&SequenceMarkerCounts| {
        let samples = [0, 1].map(|sample| detect_in_sample(sequence, sample, reads[sample]));
        let SequenceMarkerCounts { name, bases, markers: marks, shared_markers: not_own, most_similar: like, .. } =
            sequence.clone();
        samples.iter().any(|sample| sample.reads >= MIN_TRACE_READS).then_some(DetectedSequence {
            name,
            bases,
            marker_kmers: [marks, not_own],
            most_similar: like,
            samples,
        })
    };
    let mut detected: Vec<DetectedSequence> = searched.clone().filter_map(|s| of(&s)).collect();
    let most = |detected: &DetectedSequence| detected.samples.iter().map(|sample| sample.reads).fold(0.0, f64::max);
    detected.sort_by(|a, b| most(b).total_cmp(&most(a)));
    let searched = searched.count();
    ScreenResult {
        sequences: screened.len() as u64,
        searched_share: marks as f64 / kmers.max(1) as f64,
        indistinguishable: (screened.len() - searched) as u64,
        not_detected: (searched - detected.len()) as u64,
        detected,
    }
}

fn detect_in_sample(
    sequence: &SequenceMarkerCounts,
    sample: usize,
    reads: ReadCountAndKmersPerRead,
) -> SequenceDetectionInSample {
    let seen = &sequence.count_histograms[sample];
    let (marks, kmers) = (sequence.markers.max(1) as f64, sequence.kmers.max(1) as f64);
    let there = seen.iter().fold(0.0, |sum, &(_, n)| sum + f64::from(n));
    let times = seen.iter().fold(0.0, |sum, &(count, n)| sum + f64::from(count) * f64::from(n));
    // Expected number of marker counts per read; at least 1, else the read is not seen.
    let each = (reads.kmers_per_read * marks / kmers).max(1.0);
    let (breadth, depth, number) = (there / marks, times / marks, times / each);
    // Expected breadth if the reads are spread randomly over the sequence.
    let expected = 1.0 - (-depth).exp();
    let per_million = if reads.num_reads > 0.0 { number / reads.num_reads * 1e6 } else { 0.0 };
    let word = if number < MIN_TRACE_READS {
        "not detected"
    } else if breadth < MIN_BREADTH_SHARE * expected.max(f64::min(0.5, number * each / marks)) {
        "part of the sequence only (integrated, or similar to another sequence)"
    } else if number < MIN_PRESENT_READS {
        "traces (possible carry-over)"
    } else {
        "detected"
    };
    let word = word.to_owned();
    SequenceDetectionInSample { breadth, depth, reads: number, reads_per_million: per_million, note: word }
}
