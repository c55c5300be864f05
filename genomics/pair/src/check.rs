//! Quick check of a normal and its tumours in one pass over the reads, without counting all k-mers (`genuma check`).

use genuma_reads::{Error, Lane, ProgressCounters, ReadEstimate, TrimCounts, Trimmer, for_each_batch};

use crate::library::metrics::SamplePairLibraryMetrics;
use crate::library::{LibraryTally, LibraryTallyCollector, RawAndTrimmedPair};
use crate::pair_summary::ReferenceFreePairEvidence;
use crate::sketch::{KmerSketch, SketchParams};
use crate::sketches_per_tumour::{SketchBuilders, SketchWriters};

/// Result of the quick check of a normal and one tumour.
#[derive(Debug, Clone)]
pub struct SamplePairCheckResult {
    /// Sites, depths and estimates (such as identity and contamination) from the k-mer sketch of both samples.
    pub evidence: ReferenceFreePairEvidence,
    /// Library metrics of the normal and of the tumour.
    pub libraries: SamplePairLibraryMetrics,
    /// Number of bases of all reads of the normal and of the tumour, before trimming.
    pub bases: [u64; 2],
}

/// Trimmers, library tallies and sketch writers of one reader thread.
struct ReaderState<'a> {
    trimmers: Vec<Trimmer>,
    observer: LibraryTallyCollector,
    samplers: SketchWriters<'a>,
}

/// Returns the expected number of read pairs of each of `samples` samples, in sample order: half of the estimated
/// number of reads, or 0 for a sample without an estimate.
pub fn expected_read_pairs_per_sample(by_sample: &[ReadEstimate], samples: usize) -> Vec<u64> {
    (0..samples).map(|sample| by_sample.get(sample).map_or(0, |own| own.reads / 2)).collect()
}

/// Reads all lanes once and compares the normal with each of the `tumours` tumours of the same person. Returns one
/// result per tumour, in sample order.
///
/// # Errors
/// Returns an error if a read file cannot be read.
pub fn compare_normal_with_tumours(
    lanes: &[Lane],
    tumours: usize,
    params: SketchParams,
    threads: usize,
    meter: &ProgressCounters,
) -> Result<Vec<SamplePairCheckResult>, Error> {
    let (samplings, samples) = (SketchBuilders::empty_for_tumours(params, tumours), tumours + 1);
    let expected = expected_read_pairs_per_sample(&ReadEstimate::estimate_reads_by_sample(lanes)?, samples);
    let start = || ReaderState {
        trimmers: (0..samples).map(|_| Trimmer::default()).collect(),
        observer: LibraryTallyCollector::with_expected_pairs(&expected),
        samplers: samplings.new_writers(),
    };
    let looks = for_each_batch(lanes, threads, meter, start, |look, batch| {
        let trimmer = &mut look.trimmers[usize::from(batch.sample)];
        for raw in batch.iter() {
            let cut = trimmer.trim_pair(raw);
            look.observer.add_pair(
                &RawAndTrimmedPair { raw, trimmed: cut, packed: trimmer.packed_mates_before_adapter_trimming() },
                batch.sample,
            );
            look.samplers.add_pair(cut, trimmer.packed_mates_before_adapter_trimming(), batch.sample);
        }
        Ok::<(), Error>(())
    })?;
    let mut trimmed = vec![TrimCounts::default(); samples];
    let mut tallies = vec![LibraryTally::default(); samples];
    for ReaderState { trimmers, observer, samplers } in looks {
        drop(samplers);
        trimmed.iter_mut().zip(&trimmers).for_each(|(sum, own)| sum.merge_counts(&own.counts()));
        tallies.iter_mut().zip(observer.into_tallies()).for_each(|(sum, own)| sum.merge_tally(&own));
    }
    let of = |(tumour, sampled): (usize, KmerSketch)| {
        // The depth of the reads is unknown here: the sketch counts only k-mers of good bases.
        let libraries = SamplePairLibraryMetrics::from_tallies(
            [&tallies[0], &tallies[tumour]],
            [&trimmed[0], &trimmed[tumour]],
            [None, None],
        );
        let bases = [tallies[0].num_bases(), tallies[tumour].num_bases()];
        SamplePairCheckResult {
            evidence: ReferenceFreePairEvidence::estimate_without_reference(&sampled),
            libraries,
            bases,
        }
    };
    Ok((1..).zip(samplings.take_sketches()).map(of).collect())
}
