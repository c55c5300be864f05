//! Passes over the reads after counting. They read either the input files, and trim each pair as the first pass did,
//! or the packed reads that the first pass wrote.

use genuma_reads::packed_reads::PackedReadsFile;
use genuma_reads::{Lane, ReadPair, TUMOUR_SAMPLE, Trimmer};
use genuma_work::ProgressCounters;

use crate::error::Error;
use crate::kmer_lookup::{KmerHit, KmerLookup, KmerLookupBuffers};
use crate::labelled_pair::{self, LabelledPair};
use crate::recruit::{PairCountsByRecruitingKmer, RecruitedPair, RecruitingKmerIndex};

/// Where a pass over the reads gets them: the input files, or packed reads.
#[derive(Debug, Clone, Copy)]
pub enum ReadSource<'a> {
    /// The input files; each pass trims the reads again.
    Files(&'a [Lane]),
    /// The packed reads, already trimmed.
    Packed(&'a PackedReadsFile),
}

/// What all passes over the reads after counting have in common: the source of the reads, and parameters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadPasses<'a> {
    /// The input files, or the packed reads of the first pass.
    pub reads: ReadSource<'a>,
    /// Number of samples, the normal first.
    pub num_samples: usize,
    /// Number of threads, at least 1.
    pub threads: usize,
    /// Whether there is a normal. Without one, sample 0 consists of reads of the reference, which are not evidence.
    pub has_normal: bool,
}

/// Buffers of one thread for searching k-mers, and the hits in the current pair.
#[derive(Default)]
struct SearchScratch {
    looking: KmerLookupBuffers,
    hits: [Vec<KmerHit>; 2],
}

impl ReadPasses<'_> {
    /// Calls `each` with every pair of all samples, its sample number, and buffers for searching k-mers.
    ///
    /// # Errors
    /// Reads cannot be read.
    pub fn for_each_pair(
        &self,
        meter: &ProgressCounters,
        each: impl Fn(ReadPair<'_>, u8, &mut KmerLookupBuffers, &mut Vec<KmerHit>) + Sync,
    ) -> Result<(), Error> {
        self.run_pass(
            0,
            meter,
            |_, _| true,
            |pair, sample, scratch| {
                each(pair, sample, &mut scratch.looking, &mut scratch.hits[0]);
                Ok(())
            },
        )
    }

    /// Searches the pairs of the tumours for k-mers of `lookup`, and passes those that contain any, as labelled pairs,
    /// to `put`.
    ///
    /// # Errors
    /// Reads cannot be read, or `put` fails.
    pub fn for_each_labelled_pair(
        &self,
        lookup: &KmerLookup,
        meter: &ProgressCounters,
        put: impl Fn(LabelledPair) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let search = |pair: ReadPair<'_>, scratch: &mut SearchScratch| {
            labelled_pair::find_candidates_in_pair(pair, lookup, &mut scratch.looking, &mut scratch.hits)
        };
        self.run_pass(TUMOUR_SAMPLE, meter, search, |pair, sample, scratch| {
            if search(pair, scratch) {
                put(LabelledPair::from_pair_and_hits(pair, sample, &scratch.hits))?;
            }
            Ok(())
        })
    }

    /// Passes the pairs of all samples, or of the tumours if there is no normal, that contain recruiting k-mers to
    /// `put`, unless downsampling drops them. Counts the recruiting k-mers of all these pairs in `seen`.
    ///
    /// # Errors
    /// Reads cannot be read, or `put` fails.
    pub fn recruit_pairs(
        &self,
        index: &RecruitingKmerIndex,
        seen: &PairCountsByRecruitingKmer,
        meter: &ProgressCounters,
        put: impl Fn(RecruitedPair) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let may_use = |pair: ReadPair<'_>, scratch: &mut SearchScratch| {
            index.has_recruiting_kmer(pair, &mut scratch.looking, &mut scratch.hits[0])
        };
        let first = if self.has_normal { 0 } else { TUMOUR_SAMPLE };
        self.run_pass(first, meter, may_use, |pair, sample, SearchScratch { looking, hits: [hits, _] }| {
            index.recruit_pair(pair, sample, seen, looking, hits).map_or(Ok(()), &put)
        })
    }

    /// Reads the pairs of the samples from number `first` on, trimmed as in the first pass, in any order. `may_use`
    /// decides from the bases of a pair (which may be untrimmed, and without qualities) whether the whole pair is
    /// passed to `each`.
    fn run_pass(
        &self,
        first: u8,
        meter: &ProgressCounters,
        may_use: impl Fn(ReadPair<'_>, &mut SearchScratch) -> bool + Sync,
        each: impl Fn(ReadPair<'_>, u8, &mut SearchScratch) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let (threads, scratch) = (self.threads, SearchScratch::default);
        let lanes = match self.reads {
            ReadSource::Files(lanes) => lanes,
            ReadSource::Packed(copy) => {
                let samples: Vec<u8> = (first..).take(self.num_samples - usize::from(first)).collect();
                return copy.for_each_pair(&samples, threads, meter, scratch, |scratch, pair, sample| {
                    if may_use(pair.unpack_bases(), scratch) {
                        each(pair.unpack_bases_and_quals(), sample, scratch)
                    } else {
                        Ok(())
                    }
                });
            }
        };
        let of_samples = lanes.iter().filter(|lane| lane.sample >= first);
        let lanes: Vec<Lane> = of_samples.cloned().collect();
        let start = || (scratch(), Trimmer::default());
        genuma_reads::for_each_batch(&lanes, threads, meter, start, |(scratch, trimmer), batch| {
            let mut wanted = batch.iter();
            wanted.try_for_each(|pair| {
                if may_use(pair, scratch) { each(trimmer.trim_pair(pair), batch.sample, scratch) } else { Ok(()) }
            })
        })
        .map(drop)
    }
}
