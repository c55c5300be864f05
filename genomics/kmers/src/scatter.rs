//! Reads → super-k-mers → bins, one batch at a time.

use crate::bins::Bins;
use crate::minimizer::bin_of;
use crate::superkmer::{Cutter, MAX_RECORD, record_bytes};
use crate::{CountParams, Error};
use genuma_reads::PairBatch;

/// One thread's way into the bins: a small buffer for each of them.
#[derive(Debug)]
pub struct Scatter<'a> {
    bins: &'a Bins,
    k: u32,
    cutter: Cutter,
    buffers: Buffers,
    totals: Totals,
}

/// What a thread has scattered.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    /// Bases seen, per sample.
    pub bases: [u64; 2],
    /// K-mers put in bins, per sample.
    pub kmers: [u64; 2],
    /// Bytes put in bins.
    pub bytes: u64,
}

/// Equal parts of one allocation, one a bin.
#[derive(Debug)]
struct Buffers {
    bytes: Vec<u8>,
    size: usize,
    filled: Vec<Filled>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Filled {
    bytes: u32,
    kmers: u32,
}

impl<'a> Scatter<'a> {
    /// With buffers of `private` bytes a bin.
    pub fn new(bins: &'a Bins, params: &CountParams, private: usize) -> Self {
        let buffers = Buffers {
            bytes: vec![0; bins.len() * private],
            size: private,
            filled: vec![Filled::default(); bins.len()],
        };
        let cutter = Cutter::new(params.k, params.min_base_quality);
        Self { bins, k: params.k, cutter, buffers, totals: Totals::default() }
    }

    /// Puts the k-mers of a batch into bins.
    ///
    /// # Errors
    /// A sample number above 1, and failure of the spill file.
    pub fn batch(&mut self, batch: &PairBatch) -> Result<(), Error> {
        let sample = usize::from(batch.sample);
        if sample > 1 {
            return Err(Error::Params(format!(
                "sample {sample}: only 0 (normal) and 1 (tumour) are counted"
            )));
        }
        let Self { bins, k, cutter, buffers, totals } = self;
        for mate in batch.iter().flat_map(|pair| pair.mates) {
            totals.bases[sample] += mate.seq.len() as u64;
            cutter.cut(mate, |piece, packed| {
                let bin = bin_of(piece.minimizer, bins.len());
                if buffers.left(bin) < MAX_RECORD + 8 {
                    buffers.flush(bin, bins)?;
                }
                packed.write_record(piece, *k, batch.sample, buffers.end(bin));
                buffers.filled[bin].bytes += record_bytes(piece.kmers, *k) as u32;
                buffers.filled[bin].kmers += piece.kmers as u32;
                totals.kmers[sample] += piece.kmers as u64;
                totals.bytes += record_bytes(piece.kmers, *k) as u64;
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Empties the buffers and says what was scattered.
    ///
    /// # Errors
    /// Failure of the spill file.
    pub fn finish(mut self) -> Result<Totals, Error> {
        (0..self.bins.len()).try_for_each(|bin| self.buffers.flush(bin, self.bins))?;
        Ok(self.totals)
    }
}

impl Buffers {
    #[inline]
    fn left(&self, bin: usize) -> usize {
        self.size - self.filled[bin].bytes as usize
    }

    /// The unused part of a bin's buffer.
    #[inline]
    fn end(&mut self, bin: usize) -> &mut [u8] {
        let start = bin * self.size;
        &mut self.bytes[start + self.filled[bin].bytes as usize..start + self.size]
    }

    fn flush(&mut self, bin: usize, bins: &Bins) -> Result<(), Error> {
        let Filled { bytes, kmers } = std::mem::take(&mut self.filled[bin]);
        let start = bin * self.size;
        bins.append(bin, &self.bytes[start..start + bytes as usize], u64::from(kmers))
    }
}
