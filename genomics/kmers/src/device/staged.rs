//! Staging of records for a device: records are copied end to end, with an index of every 64th record.
//!
//! The length of a record is known only from its first byte, so a work-group must start at the start of a record. The
//! index takes 1 % of the bytes of the records.

use std::ops::DerefMut;

use super::table::MAX_RECORDS_PER_WORK_GROUP;
use crate::superkmer::{MAX_KMERS_PER_RECORD, MAX_RECORD_BYTES, record_bytes};

/// Buffer in which records are copied end to end, and from which they are sent to a device as one piece.
#[derive(Debug)]
pub(crate) struct RecordStaging<B> {
    bytes: B,
    len: usize,
    starts: Vec<u32>,
    max_chunks: usize,
    /// Number of records in the last chunk, which has at most [`MAX_RECORDS_PER_WORK_GROUP`].
    in_chunk: usize,
    /// Size of a record in bytes, by its number of k-mers minus one.
    lengths: [u8; MAX_KMERS_PER_RECORD],
}

impl<B: DerefMut<Target = [u8]>> RecordStaging<B> {
    /// Creates an empty buffer for records of `k`-mers in the memory `bytes`, which must hold at least one record. At
    /// most `max_chunks` chunks are sent as one piece.
    pub(super) fn new(k: u32, bytes: B, max_chunks: usize) -> Self {
        assert!(bytes.len() >= MAX_RECORD_BYTES && max_chunks > 0, "no room for a record");
        let lengths = std::array::from_fn(|i| record_bytes(i + 1, k) as u8);
        let starts = Vec::with_capacity(max_chunks + 1);
        Self { bytes, len: 0, starts, max_chunks, in_chunk: MAX_RECORDS_PER_WORK_GROUP, lengths }
    }

    /// Removes the records that have not been sent yet.
    pub(super) fn discard_staged_records(&mut self) {
        self.len = 0;
        self.starts.clear();
        self.in_chunk = MAX_RECORDS_PER_WORK_GROUP;
    }

    /// Copies complete records to the buffer. When the buffer is full, calls `send` with its records and with the start
    /// of each chunk and the end of the last.
    pub(super) fn stage_records<E>(
        &mut self,
        records: &[u8],
        mut send: impl FnMut(&[u8], &[u32]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = records;
        loop {
            let room = self.bytes.len() - self.len;
            let mut at = 0;
            while let Some(&head) = rest.get(at) {
                let bytes = usize::from(self.lengths[usize::from(head) % MAX_KMERS_PER_RECORD]);
                let new_chunk = self.in_chunk == MAX_RECORDS_PER_WORK_GROUP;
                if at + bytes > room || new_chunk && self.starts.len() == self.max_chunks {
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
            self.send_staged_records(&mut send)?;
        }
    }

    /// Calls `send` with the records that have not been sent yet, and empties the buffer.
    pub(super) fn send_staged_records<E>(
        &mut self,
        mut send: impl FnMut(&[u8], &[u32]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.len > 0 {
            self.starts.push(self.len as u32);
            send(&self.bytes[..self.len], &self.starts)?;
        }
        self.discard_staged_records();
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
            let mut staged = RecordStaging::new(25, vec![0; bytes], chunks);
            let (mut out, mut pieces) = (Vec::new(), 0);
            let mut send = |bytes: &[u8], starts: &[u32]| {
                assert!(starts.len() <= chunks + 1 && starts[0] == 0);
                assert_eq!(starts[starts.len() - 1] as usize, bytes.len());
                for chunk in starts.windows(2) {
                    let chunk = &bytes[chunk[0] as usize..chunk[1] as usize];
                    let n = crate::superkmer::super_kmer_records(chunk, 25).count();
                    assert!((1..=MAX_RECORDS_PER_WORK_GROUP).contains(&n), "{n} records");
                }
                out.extend_from_slice(bytes);
                pieces += 1;
                Ok::<(), ()>(())
            };
            for some in records.chunks(97) {
                staged.stage_records(&some.concat(), &mut send).expect("taken");
            }
            staged.send_staged_records(&mut send).expect("sent");
            staged.send_staged_records(&mut send).expect("nothing is left");
            assert_eq!(out, records.concat(), "{bytes} bytes, {chunks} chunks");
            assert_eq!(pieces == 1, bytes == 1 << 20, "{pieces} pieces");
        }
    }
}
