//! A thread's way into bins: a small buffer for each, so that a bin is locked once for many records.

use crate::Error;
use crate::bins::Bins;
use crate::native::prefetch;

/// Equal parts of one allocation, one a bin.
#[derive(Debug)]
pub struct Buffers<'a> {
    bins: &'a Bins,
    bytes: Vec<u8>,
    size: usize,
    filled: Vec<Filled>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Filled {
    bytes: u32,
    kmers: u32,
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
        if self.size < self.filled[bin].bytes as usize + bytes {
            self.flush(bin)?;
        }
        let start = bin * self.size;
        Ok(&mut self.bytes[start + self.filled[bin].bytes as usize..start + self.size])
    }

    /// Prepares for [`Buffers::room`].
    #[inline]
    pub fn fetch(&self, bin: usize) {
        let next = bin * self.size + self.filled[bin].bytes as usize;
        prefetch(&self.bytes[next.min(self.bytes.len() - 1)]);
    }

    /// Counts a record of `bytes` bytes and `kmers` k-mers in.
    #[inline]
    pub fn wrote(&mut self, bin: usize, bytes: usize, kmers: usize) {
        let filled = &mut self.filled[bin];
        filled.bytes += bytes as u32;
        filled.kmers += kmers as u32;
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
        let Filled { bytes, kmers } = std::mem::take(&mut self.filled[bin]);
        let start = bin * self.size;
        self.bins.append(bin, &self.bytes[start..start + bytes as usize], u64::from(kmers))
    }
}
