//! Buffers of one thread in front of the bins. The thread collects records of a bin and appends them together, so it
//! locks the bin once for many records.

use genuma_machine::simd_and_prefetch::prefetch;

use crate::Error;
use crate::bins::Bins;
use crate::superkmer::MAX_RECORD_BYTES;

/// If a buffer has less free space than this, the next record may not fit, and the buffer is appended to its bin. So
/// [`BinBuffers::prefetch_buffer_of_bin`] then also prefetches the bin.
const FLUSH_MARGIN_BYTES: usize = MAX_RECORD_BYTES;

/// Buffers of one thread: one buffer of records for each bin, all in one allocation. A buffer without space for the
/// next record is appended to its bin.
#[derive(Debug)]
pub(crate) struct BinBuffers<'a> {
    bins: &'a Bins,
    bytes: Vec<u8>,
    size: usize,
    filled: Vec<BufferFill>,
}

/// Content of a buffer, packed into one word: the number of bytes in the low 32 bits, the number of k-mers in the high
/// 32 bits.
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
    /// Allocates one buffer of `size` bytes for each bin.
    pub(crate) fn allocate_for_bins(bins: &'a Bins, size: usize) -> Self {
        Self { bins, bytes: vec![0; bins.len() * size], size, filled: vec![BufferFill::default(); bins.len()] }
    }

    /// Returns the free space of the buffer of a bin: at least `bytes` bytes (at most the size of a buffer). The buffer
    /// is appended to its bin first if it has less. The caller writes a record there and then calls
    /// [`BinBuffers::commit_record`].
    #[inline]
    pub(crate) fn reserve_space_for_record(&mut self, bin: usize, bytes: usize) -> Result<&mut [u8], Error> {
        if self.size < self.filled[bin].bytes() + bytes {
            self.flush(bin)?;
        }
        let start = bin * self.size;
        Ok(&mut self.bytes[start + self.filled[bin].bytes()..start + self.size])
    }

    /// Prefetches the free space of the buffer of a bin into the CPU cache, for
    /// [`BinBuffers::reserve_space_for_record`]; also the entry of the bin if the buffer is almost full.
    #[inline]
    pub(crate) fn prefetch_buffer_of_bin(&self, bin: usize) {
        let filled = self.filled[bin].bytes();
        let next = bin * self.size + filled;
        prefetch(&self.bytes[next.min(self.bytes.len() - 1)]);
        if filled + FLUSH_MARGIN_BYTES > self.size {
            self.bins.prefetch_bin_entry(bin);
        }
    }

    /// Adds the record of `bytes` bytes and `kmers` k-mers to the buffer; the caller has written it to the space from
    /// [`BinBuffers::reserve_space_for_record`].
    #[inline]
    pub(crate) fn commit_record(&mut self, bin: usize, bytes: usize, kmers: usize) {
        self.filled[bin].0 += bytes as u64 | (kmers as u64) << 32;
    }

    /// Appends the content of all buffers to the bins.
    ///
    /// # Errors
    /// Returns an error if the spill file fails.
    pub(crate) fn flush_all_to_bins(mut self) -> Result<(), Error> {
        (0..self.bins.len()).try_for_each(|bin| self.flush(bin))
    }

    #[cold]
    fn flush(&mut self, bin: usize) -> Result<(), Error> {
        let filled = std::mem::take(&mut self.filled[bin]);
        let start = bin * self.size;
        self.bins.append_records(bin, &self.bytes[start..start + filled.bytes()], filled.kmers())
    }
}
