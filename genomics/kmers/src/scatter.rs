//! Reads → super-k-mers → bins, one batch at a time.

use crate::bins::Bins;
use crate::buffers::Buffers;
use crate::parts::{Grid, Part};
use crate::superkmer::{Cutter, MAX_RECORD, SuperKmer, record_bytes};
use crate::{CountParams, Error, Prepare};
use genuma_reads::{Mate, PairBatch};

/// One thread's way into the bins.
#[derive(Debug)]
pub struct Scatter<'a, R, const S: usize> {
    grid: Grid,
    k: u32,
    /// What goes into the bins.
    part: Part,
    prepare: R,
    /// What the pair in hand adds to its own k-mers, and letters of a good quality for it.
    added: Vec<u8>,
    good: Vec<u8>,
    cutter: Cutter,
    /// Those of the read in hand, with their bins.
    pieces: Vec<(usize, SuperKmer)>,
    buffers: Buffers<'a>,
    totals: Totals<S>,
}

/// What a thread has scattered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Totals<const S: usize> {
    /// Bases seen, per sample.
    pub bases: [u64; S],
    /// K-mers seen, per sample, whatever the partition.
    pub kmers: [u64; S],
    /// Bytes put in bins.
    pub bytes: u64,
}

impl<const S: usize> Totals<S> {
    /// Nothing.
    pub fn none() -> Self {
        Self { bases: [0; S], kmers: [0; S], bytes: 0 }
    }

    /// Adds what another has scattered.
    pub fn add(&mut self, other: &Self) {
        for sample in 0..S {
            self.bases[sample] += other.bases[sample];
            self.kmers[sample] += other.kmers[sample];
        }
        self.bytes += other.bytes;
    }
}

impl<'a, R: Prepare, const S: usize> Scatter<'a, R, S> {
    /// Into the bins of a grid, with buffers of `private` bytes a bin.
    pub fn new(bins: &'a Bins, grid: Grid, params: &CountParams, private: usize, prepare: R) -> Self {
        let cutter = Cutter::new(params.k, params.min_base_quality);
        Self {
            grid,
            k: params.k,
            part: params.part,
            prepare,
            added: Vec::new(),
            good: vec![u8::MAX; params.k as usize],
            cutter,
            pieces: Vec::new(),
            buffers: Buffers::new(bins, private),
            totals: Totals::none(),
        }
    }

    /// Puts the k-mers of a batch into bins, those of other partitions only into the totals.
    ///
    /// # Errors
    /// A sample number of `S` or more, and failure of the spill file.
    pub fn batch(&mut self, batch: &PairBatch) -> Result<(), Error> {
        let sample = usize::from(batch.sample);
        if sample >= S {
            return Err(Error::Params(format!("sample {sample}: only {S} are counted, from 0 on")));
        }
        let Self { grid, k, part, prepare, added, good, cutter, pieces, buffers, totals } = self;
        let mut count = |mate: Mate<'_>| {
            // Where the pieces of a read go is scattered over more memory than a core's caches hold.
            pieces.clear();
            let mut kmers = 0;
            let packed = cutter.cut(mate, |piece| {
                kmers += piece.kmers as u64;
                if !part.has(piece.minimizer) {
                    return;
                }
                let bin = grid.bin(piece.minimizer);
                buffers.fetch(bin);
                pieces.push((bin, piece));
            });
            let mut all = 0;
            for &(bin, piece) in pieces.iter() {
                let bytes = record_bytes(piece.kmers, *k);
                piece.write_record(packed, *k, batch.sample, buffers.room(bin, MAX_RECORD)?);
                buffers.wrote(bin, bytes, piece.kmers);
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

    /// Empties the buffers and says what was scattered; gives back what prepared the pairs.
    ///
    /// # Errors
    /// Failure of the spill file.
    pub fn finish(self) -> Result<(Totals<S>, R), Error> {
        self.buffers.finish()?;
        Ok((self.totals, self.prepare))
    }
}
