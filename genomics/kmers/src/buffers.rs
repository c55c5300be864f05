//! A thread's way into bins: a small buffer for each, so that a bin is locked once for many records.

use genuma_machine::processor::prefetch;

use crate::Error;
use crate::bins::Bins;
use crate::superkmer::MAX_RECORD;

/// A buffer with less room left may be emptied next.
const NEARLY: usize = MAX_RECORD;

/// Equal parts of one allocation, one a bin.
#[derive(Debug)]
pub struct Buffers<'a> {
    bins: &'a Bins,
    bytes: Vec<u8>,
    size: usize,
    filled: Vec<Filled>,
}

/// What a buffer holds: its bytes in the low half, and above it the k-mers of its records.
#[derive(Debug, Clone, Copy, Default)]
struct Filled(u64);

impl Filled {
    #[inline]
    fn bytes(self) -> usize {
        self.0 as u32 as usize
    }

    fn kmers(self) -> u64 {
        self.0 >> 32
    }
}

impl<'a> Buffers<'a> {
    /// Buffers of `size` bytes for all bins.
    pub fn new(bins: &'a Bins, size: usize) -> Self {
        Self { bins, bytes: vec![0; bins.len() * size], size, filled: vec![Filled::default(); bins.len()] }
    }

    /// Room for at least `bytes` bytes, at most `size`, in a bin's buffer; what is written there counts once it is
    /// [`Buffers::wrote`].
    #[inline]
    pub fn room(&mut self, bin: usize, bytes: usize) -> Result<&mut [u8], Error> {
        if self.size < self.filled[bin].bytes() + bytes {
            self.flush(bin)?;
        }
        let start = bin * self.size;
        Ok(&mut self.bytes[start + self.filled[bin].bytes()..start + self.size])
    }

    /// Prepares for [`Buffers::room`].
    #[inline]
    pub fn fetch(&self, bin: usize) {
        let filled = self.filled[bin].bytes();
        let next = bin * self.size + filled;
        prefetch(&self.bytes[next.min(self.bytes.len() - 1)]);
        if filled + NEARLY > self.size {
            self.bins.fetch(bin);
        }
    }

    /// Counts a record of `bytes` bytes and `kmers` k-mers in.
    #[inline]
    pub fn wrote(&mut self, bin: usize, bytes: usize, kmers: usize) {
        self.filled[bin].0 += bytes as u64 | (kmers as u64) << 32;
    }

    /// Empties all buffers into the bins.
    ///
    /// # Errors
    /// Failure of the spill file.
    pub fn finish(mut self) -> Result<(), Error> {
        (0..self.bins.len()).try_for_each(|bin| self.flush(bin))
    }

    #[cold]
    fn flush(&mut self, bin: usize) -> Result<(), Error> {
        let filled = std::mem::take(&mut self.filled[bin]);
        let start = bin * self.size;
        self.bins.append(bin, &self.bytes[start..start + filled.bytes()], filled.kmers())
    }
}
