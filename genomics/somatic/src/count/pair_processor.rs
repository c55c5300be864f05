//! What the counting pass does with each read pair before its k-mers are counted, and the statistics of the reads.

use genuma_kmers::PreparePair;
use genuma_pair::library::{LibraryTally, LibraryTallyCollector, RawAndTrimmedPair};
use genuma_pair::sketches_per_tumour::{SketchBuilders, SketchWriters};
use genuma_reads::packed_reads::{PackedPairRecorder, PackedReadsWriter};
use genuma_reads::{Lane, ReadPair, RecordCounts, TrimCounts};
use serde::{Deserialize, Serialize};

use crate::trim_and_encode_repeats::PairTrimmerAndRepeatEncoder;

/// Processes the read pairs of one thread: trims them, updates library statistics and the k-mer sketches, and writes
/// packed reads.
pub(super) struct PairProcessor<'a, 'b> {
    preprocessor: PairTrimmerAndRepeatEncoder,
    pub(super) observer: LibraryTallyCollector,
    recorder: Option<PackedPairRecorder<'a>>,
    /// Writers of the k-mer sketches; `None` if an earlier pass has made the sketches.
    pub(super) sketch_writers: Option<SketchWriters<'b>>,
}

impl<'a, 'b> PairProcessor<'a, 'b> {
    /// Creates a processor for `k`-mers. `expected` is the expected number of pairs of each sample.
    pub(super) fn new(
        k: u32,
        expected: &[u64],
        packed_writer: Option<&'a PackedReadsWriter>,
        sketches: Option<&'b SketchBuilders>,
    ) -> Self {
        let (preprocessor, observer) =
            (PairTrimmerAndRepeatEncoder::new(k, expected.len()), LibraryTallyCollector::with_expected_pairs(expected));
        let (recorder, sketch_writers) =
            (packed_writer.map(PackedReadsWriter::new_recorder), sketches.map(SketchBuilders::new_writers));
        PairProcessor { preprocessor, observer, recorder, sketch_writers }
    }
}

impl PreparePair for PairProcessor<'_, '_> {
    fn prepare<'a>(&mut self, raw: ReadPair<'a>, sample: u8, added: &mut Vec<u8>) -> ReadPair<'a> {
        let cut = self.preprocessor.prepare(raw, sample, added);
        self.observer.add_pair(
            &RawAndTrimmedPair { raw, trimmed: cut, packed: self.preprocessor.packed_bases_of_last_pair(sample) },
            sample,
        );
        if let Some(sketch_writers) = &mut self.sketch_writers {
            sketch_writers.add_pair(cut, self.preprocessor.packed_bases_of_last_pair(sample), sample);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.push_pair(cut, sample);
        }
        cut
    }
}

/// Trimming and library statistics of each sample, summed over all threads.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct TrimAndLibraryStats {
    pub(super) trimmed: Vec<TrimCounts>,
    pub(super) libraries: Vec<LibraryTally>,
    /// For each sample, record counts of its BAM, CRAM and BINSEQ files, and of FASTQ files whose reads contain UMIs.
    pub(super) aligned: Vec<RecordCounts>,
}

impl TrimAndLibraryStats {
    /// Statistics of no reads, for the given number of samples.
    pub(super) fn zero_stats(samples: usize) -> TrimAndLibraryStats {
        let (trimmed, aligned) = (vec![TrimCounts::default(); samples], vec![RecordCounts::default(); samples]);
        TrimAndLibraryStats { trimmed, libraries: vec![LibraryTally::default(); samples], aligned }
    }

    /// Adds the statistics of other read pairs.
    pub(super) fn merge_stats(&mut self, other: &TrimAndLibraryStats) {
        self.trimmed.iter_mut().zip(&other.trimmed).for_each(|(sum, partition)| sum.merge_counts(partition));
        self.libraries.iter_mut().zip(&other.libraries).for_each(|(sum, partition)| sum.merge_tally(partition));
        self.aligned.iter_mut().zip(&other.aligned).for_each(|(sum, partition)| sum.merge_counts(partition));
    }
}

/// Sums the statistics of all threads after all lanes were read. Also returns their writers of packed reads.
pub(super) fn sum_stats_of_threads<'a>(
    recorders_by_thread: Vec<PairProcessor<'a, '_>>,
    lanes: &[Lane],
    samples: usize,
) -> (TrimAndLibraryStats, Vec<PackedPairRecorder<'a>>) {
    let (mut stats, mut recorders) = (TrimAndLibraryStats::zero_stats(samples), Vec::new());
    for (lane, tally) in lanes.iter().filter_map(|lane| Some((lane, lane.record_counts()?))) {
        stats.aligned[usize::from(lane.sample)].merge_counts(tally);
    }
    for PairProcessor { preprocessor, observer, recorder, .. } in recorders_by_thread {
        let (trimmed, libraries) = (preprocessor.trim_counts().collect(), observer.into_tallies());
        stats.merge_stats(&TrimAndLibraryStats { trimmed, libraries, aligned: Vec::new() });
        recorders.extend(recorder);
    }
    (stats, recorders)
}
