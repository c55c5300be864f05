//! Scatters batches of reads into bins as super-k-mers.

use crate::bin_buffers::BinBuffers;
use crate::bins::Bins;
use crate::partition::{BinGrid, Partition};
use crate::superkmer::{MAX_RECORD_BYTES, SuperKmer, SuperKmerCutter, record_bytes};
use crate::{CountParams, Error, PreparePair};
use genuma_reads::{Mate, PairBatch};

/// State of one thread that scatters reads.
#[derive(Debug)]
pub(crate) struct ScatterThread<'a, R, const S: usize> {
    grid: BinGrid,
    k: u32,
    /// Partition of the k-mer space whose super-k-mers go into bins.
    partition: Partition,
    prepare: R,
    /// Letters of k-mers that the current pair adds to its own, and quality letters for them.
    added: Vec<u8>,
    good_letters: Vec<u8>,
    cutter: SuperKmerCutter,
    /// Super-k-mers of the current read, with their bins.
    super_kmers: Vec<(usize, SuperKmer)>,
    buffers: BinBuffers<'a>,
    totals: ScatterTotals<S>,
}

/// Totals of the scattered reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScatterTotals<const S: usize> {
    /// Number of bases read, per sample.
    pub bases: [u64; S],
    /// Number of k-mers read, per sample, in all partitions.
    pub kmers: [u64; S],
    /// Bytes of records in bins.
    pub bytes: u64,
}

impl<const S: usize> ScatterTotals<S> {
    /// Totals of nothing.
    pub(crate) fn zero() -> Self {
        Self { bases: [0; S], kmers: [0; S], bytes: 0 }
    }

    /// Adds the totals of another thread.
    pub(crate) fn add_totals(&mut self, other: &Self) {
        for sample in 0..S {
            self.bases[sample] += other.bases[sample];
            self.kmers[sample] += other.kmers[sample];
        }
        self.bytes += other.bytes;
    }
}

impl<'a, R: PreparePair, const S: usize> ScatterThread<'a, R, S> {
    /// Scatters into the bins of a grid, with buffers of `buffer_bytes` bytes per bin.
    pub(crate) fn new(bins: &'a Bins, grid: BinGrid, params: &CountParams, buffer_bytes: usize, prepare: R) -> Self {
        let cutter = SuperKmerCutter::new(params.k, params.min_base_quality);
        Self {
            grid,
            k: params.k,
            partition: params.partition,
            prepare,
            added: Vec::new(),
            good_letters: vec![u8::MAX; params.k as usize],
            cutter,
            super_kmers: Vec::new(),
            buffers: BinBuffers::new(bins, buffer_bytes),
            totals: ScatterTotals::zero(),
        }
    }

    /// Scatters the k-mers of a batch. K-mers of other partitions only enter the totals.
    ///
    /// # Errors
    /// Returns an error if the sample number is `S` or more, or if the spill file fails.
    pub(crate) fn scatter_batch(&mut self, batch: &PairBatch) -> Result<(), Error> {
        let sample = usize::from(batch.sample);
        if sample >= S {
            return Err(Error::InvalidParams(format!(
                "sample number {sample} is out of range: this count has {S} samples, numbered from 0"
            )));
        }
        let Self { grid, k, partition: part, prepare, added, good_letters: good, cutter, super_kmers, buffers, totals } =
            self;
        let mut count = |mate: Mate<'_>| {
            // The bins of a read's super-k-mers are spread over more memory than a core's caches hold, so they are
            // prefetched first.
            super_kmers.clear();
            let mut kmers = 0;
            let packed = cutter.cut_read(mate, |super_kmer| {
                kmers += super_kmer.kmers as u64;
                if !part.contains_minimizer(super_kmer.minimizer) {
                    return;
                }
                let bin = grid.bin_of_minimizer(super_kmer.minimizer);
                buffers.prefetch_bin(bin);
                super_kmers.push((bin, super_kmer));
            });
            let mut all = 0;
            for &(bin, super_kmer) in super_kmers.iter() {
                let bytes = record_bytes(super_kmer.kmers, *k);
                super_kmer.write_record(packed, *k, batch.sample, buffers.reserve_record(bin, MAX_RECORD_BYTES)?);
                buffers.commit_record(bin, bytes, super_kmer.kmers);
                all += bytes as u64;
            }
            totals.kmers[sample] += kmers;
            totals.bytes += all;
            Ok::<(), Error>(())
        };
        for pair in batch.iter() {
            totals.bases[sample] += pair.mates.iter().map(|mate| mate.seq.len() as u64).sum::<u64>();
            added.clear();
            let mates = prepare.prepare(pair, batch.sample, added).mates;
            mates.into_iter().try_for_each(&mut count)?;
            added.chunks_exact(*k as usize).try_for_each(|seq| count(Mate { seq, qual: good }))?;
        }
        Ok(())
    }

    /// Flushes the buffers; returns the totals and the preparation.
    ///
    /// # Errors
    /// Returns an error if the spill file fails.
    pub(crate) fn finish(self) -> Result<(ScatterTotals<S>, R), Error> {
        self.buffers.flush_all()?;
        Ok((self.totals, self.prepare))
    }
}
