//! Buffers through which a thread appends to bins, so that a bin is locked once for many records.

use genuma_machine::processor::prefetch;

use crate::Error;
use crate::bins::Bins;
use crate::superkmer::MAX_RECORD_BYTES;

/// A buffer with less free space than this may be flushed next.
const FLUSH_MARGIN_BYTES: usize = MAX_RECORD_BYTES;

/// One buffer of records per bin, all in one allocation. A full buffer is appended to its bin.
#[derive(Debug)]
pub(crate) struct BinBuffers<'a> {
    bins: &'a Bins,
    bytes: Vec<u8>,
    size: usize,
    filled: Vec<BufferFill>,
}

/// Fill of a buffer: number of bytes in the low half, number of k-mers in the high half.
#[derive(Debug, Clone, Copy, Default)]
struct BufferFill(u64);

impl BufferFill {
    #[inline]
    fn bytes(self) -> usize {
        self.0 as u32 as usize
    }

    fn kmers(self) -> u64 {
        self.0 >> 32
    }
}

impl<'a> BinBuffers<'a> {
    /// Creates buffers of `size` bytes for all bins.
    pub(crate) fn allocate(bins: &'a Bins, size: usize) -> Self {
        Self { bins, bytes: vec![0; bins.len() * size], size, filled: vec![BufferFill::default(); bins.len()] }
    }

    /// Returns free space of at least `bytes` (at most `size`) in the buffer of a bin. [`BinBuffers::commit_record`]
    /// must be called after writing.
    #[inline]
    pub(crate) fn reserve_record(&mut self, bin: usize, bytes: usize) -> Result<&mut [u8], Error> {
        if self.size < self.filled[bin].bytes() + bytes {
            self.flush(bin)?;
        }
        let start = bin * self.size;
        Ok(&mut self.bytes[start + self.filled[bin].bytes()..start + self.size])
    }

    /// Prefetches the free space of the buffer of a bin, for [`BinBuffers::reserve_record`].
    #[inline]
    pub(crate) fn prefetch_bin(&self, bin: usize) {
        let filled = self.filled[bin].bytes();
        let next = bin * self.size + filled;
        prefetch(&self.bytes[next.min(self.bytes.len() - 1)]);
        if filled + FLUSH_MARGIN_BYTES > self.size {
            self.bins.prefetch_bin(bin);
        }
    }

    /// Records that a record of `bytes` bytes and `kmers` k-mers has been written.
    #[inline]
    pub(crate) fn commit_record(&mut self, bin: usize, bytes: usize, kmers: usize) {
        self.filled[bin].0 += bytes as u64 | (kmers as u64) << 32;
    }

    /// Flushes all buffers to the bins.
    ///
    /// # Errors
    /// Returns an error if the spill file fails.
    pub(crate) fn flush_all(mut self) -> Result<(), Error> {
        (0..self.bins.len()).try_for_each(|bin| self.flush(bin))
    }

    #[cold]
    fn flush(&mut self, bin: usize) -> Result<(), Error> {
        let filled = std::mem::take(&mut self.filled[bin]);
        let start = bin * self.size;
        self.bins.append_records(bin, &self.bytes[start..start + filled.bytes()], filled.kmers())
    }
}
