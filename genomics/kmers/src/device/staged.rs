//! Records on their way to a device: copied as they lie, end to end, with a note of where every sixty-fourth starts.
//!
//! Records are as long as their first byte says, so whoever does not start at one's beginning is lost. The note is a hundredth of their bytes.

use std::ops::DerefMut;

use super::table::CHUNK;
use crate::superkmer::{MAX_KMERS, MAX_RECORD, record_bytes};

/// A piece of records that is being filled.
#[derive(Debug)]
pub(crate) struct Staged<B> {
    bytes: B,
    len: usize,
    starts: Vec<u32>,
    most_chunks: usize,
    /// Records of the last chunk.
    in_chunk: usize,
    /// Bytes of a record, by its number of k-mers less one.
    lengths: [u8; MAX_KMERS],
}

impl<B: DerefMut<Target = [u8]>> Staged<B> {
    /// Records of `k`-mers, in `bytes`, which have room for one at least, and `most_chunks` chunks.
    pub fn new(k: u32, bytes: B, most_chunks: usize) -> Self {
        assert!(bytes.len() >= MAX_RECORD && most_chunks > 0, "no room for a record");
        let lengths = std::array::from_fn(|i| record_bytes(i + 1, k) as u8);
        let starts = Vec::with_capacity(most_chunks + 1);
        Self { bytes, len: 0, starts, most_chunks, in_chunk: CHUNK, lengths }
    }

    /// Forgets what was taken.
    pub fn clear(&mut self) {
        self.len = 0;
        self.starts.clear();
        self.in_chunk = CHUNK;
    }

    /// Takes whole records; calls `send` with each piece that is full, and where its chunks start and the last ends.
    pub fn take<E>(
        &mut self,
        records: &[u8],
        mut send: impl FnMut(&[u8], &[u32]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = records;
        loop {
            let room = self.bytes.len() - self.len;
            let mut at = 0;
            while let Some(&head) = rest.get(at) {
                let bytes = usize::from(self.lengths[usize::from(head) % MAX_KMERS]);
                let new_chunk = self.in_chunk == CHUNK;
                if at + bytes > room || new_chunk && self.starts.len() == self.most_chunks {
                    break;
                }
                if new_chunk {
                    self.starts.push((self.len + at) as u32);
                    self.in_chunk = 0;
                }
                self.in_chunk += 1;
                at += bytes;
            }
            let (here, later) = rest.split_at(at);
            self.bytes[self.len..self.len + at].copy_from_slice(here);
            self.len += at;
            rest = later;
            if rest.is_empty() {
                return Ok(());
            }
            self.send(&mut send)?;
        }
    }

    /// Calls `send` with what is still here.
    pub fn send<E>(&mut self, mut send: impl FnMut(&[u8], &[u32]) -> Result<(), E>) -> Result<(), E> {
        if self.len > 0 {
            self.starts.push(self.len as u32);
            send(&self.bytes[..self.len], &self.starts)?;
        }
        self.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Random;

    #[test]
    fn records_come_out_as_they_went_in() {
        let random = &mut Random(3);
        let mut records = Vec::new();
        for _ in 0..2000 {
            let kmers = random.below(32) as usize;
            records.push(vec![(random.below(8) << 5) as u8 | kmers as u8; record_bytes(kmers + 1, 25)]);
        }
        for (bytes, chunks) in [(17, 1), (400, 1), (4096, 2), (4096, 100), (1 << 20, 1000)] {
            let mut staged = Staged::new(25, vec![0; bytes], chunks);
            let (mut out, mut pieces) = (Vec::new(), 0);
            let mut send = |bytes: &[u8], starts: &[u32]| {
                assert!(starts.len() <= chunks + 1 && starts[0] == 0);
                assert_eq!(starts[starts.len() - 1] as usize, bytes.len());
                for chunk in starts.windows(2) {
                    let chunk = &bytes[chunk[0] as usize..chunk[1] as usize];
                    let n = crate::superkmer::records(chunk, 25).count();
                    assert!((1..=CHUNK).contains(&n), "{n} records");
                }
                out.extend_from_slice(bytes);
                pieces += 1;
                Ok::<(), ()>(())
            };
            for some in records.chunks(97) {
                staged.take(&some.concat(), &mut send).expect("taken");
            }
            staged.send(&mut send).expect("sent");
            staged.send(&mut send).expect("nothing is left");
            assert_eq!(out, records.concat(), "{bytes} bytes, {chunks} chunks");
            assert_eq!(pieces == 1, bytes == 1 << 20, "{pieces} pieces");
        }
    }
}
