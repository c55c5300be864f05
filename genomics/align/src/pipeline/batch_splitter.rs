//! Splits the batches of a read stream at the block boundaries of the engine.

use genuma_reads::{Error, ReadBatch, ReadStream};

use crate::engine::BlockRule;

/// Splits the batches of a read stream at the block boundaries of the engine.
pub(super) struct BlockBoundarySplitter {
    stream: ReadStream,
    /// The block rule of each lane.
    block_rules: Vec<BlockRule>,
    batch: ReadBatch,
    /// Index in `batch` of the next read to be moved to the output.
    next_read: usize,
    /// Lane of the current block, and whether its reads have mates; `None` if the next read begins a block.
    open_block: Option<(u32, bool)>,
    /// Number of bases of the current block so far.
    open_block_bases: u64,
}

/// Whether a batch is a whole block or a part of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WholeOrPartOfBlock {
    WholeBlock,
    /// A part of a block: whether the batch is the first of the block, and whether it is known to be the last. A block
    /// also ends where the next block begins, and at the end of the reads.
    PartOfBlock {
        is_first: bool,
        is_last: bool,
    },
}

impl BlockBoundarySplitter {
    /// Creates a splitter. `first` is the batch that was already taken from `stream`.
    pub(super) fn new(stream: ReadStream, first: ReadBatch, block_rules: Vec<BlockRule>) -> Self {
        BlockBoundarySplitter { stream, block_rules, batch: first, next_read: 0, open_block: None, open_block_bases: 0 }
    }

    /// Fills `out` with the next batch; `None` at the end of the reads.
    pub(super) fn next_batch(&mut self, out: &mut ReadBatch) -> Result<Option<WholeOrPartOfBlock>, Error> {
        out.clear();
        if !self.has_reads()? {
            return Ok(None);
        }
        let own = (self.batch.lane_index, self.batch.is_paired);
        let first = self.open_block != Some(own);
        if first {
            (self.open_block, self.open_block_bases) = (Some(own), 0);
        }
        let role = match self.block_rules[own.0 as usize] {
            BlockRule::EachBatch => {
                self.move_reads(out, None);
                WholeOrPartOfBlock::WholeBlock
            }
            BlockRule::MinBases(limit) => {
                WholeOrPartOfBlock::PartOfBlock { is_first: first, is_last: self.move_reads(out, Some(limit)) }
            }
        };
        if matches!(role, WholeOrPartOfBlock::WholeBlock | WholeOrPartOfBlock::PartOfBlock { is_last: true, .. }) {
            self.open_block = None;
        }
        Ok(Some(role))
    }

    /// Whether there are reads left. Reads the next batch of the stream if necessary.
    fn has_reads(&mut self) -> Result<bool, Error> {
        while self.next_read == self.batch.len() {
            self.next_read = 0;
            if !self.stream.fill_batch(&mut self.batch)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Moves reads from the current batch to `out`, up to the end of the block. Returns whether the end of the block
    /// was reached.
    fn move_reads(&mut self, out: &mut ReadBatch, limit: Option<u64>) -> bool {
        let reached = |bases| limit.is_some_and(|limit| bases >= limit);
        let all = self.open_block_bases + self.batch.num_bases();
        if self.next_read == 0 && out.is_empty() && !reached(all) {
            std::mem::swap(out, &mut self.batch);
            self.batch.clear();
            self.open_block_bases = all;
            return false;
        }
        if out.is_empty() {
            (out.lane_index, out.is_paired) = (self.batch.lane_index, self.batch.is_paired);
            out.reads_before = self.batch.reads_before + self.next_read as u64;
        }
        let template = if self.batch.is_paired { 2 } else { 1 };
        while self.next_read < self.batch.len() {
            for _ in 0..template {
                let read = self.batch.read(self.next_read);
                out.push(read);
                self.open_block_bases += read.seq.len() as u64;
                self.next_read += 1;
            }
            if reached(self.open_block_bases) {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use genuma_reads::{BatchLimits as Ends, StreamLane, StreamOptions};

    use super::*;

    /// Splits lanes with these numbers of pairs of 10 bp, read in batches of `batch` bases. Returns lane, reads
    /// before the batch, reads, and role of each batch.
    fn pieces(lanes: &[usize], batch: u64, block_rules: Vec<BlockRule>) -> Vec<(u32, u64, usize, WholeOrPartOfBlock)> {
        let folder = tempfile::tempdir().unwrap();
        let lane = |(i, &pairs): (usize, &usize)| {
            let path = folder.path().join(format!("{i}.fq"));
            let text: String = (0..2 * pairs).map(|r| format!("@{i}.{}\nACGTACGTAC\n+\nFFFFFFFFFF\n", r / 2)).collect();
            fs::write(&path, text).unwrap();
            StreamLane::Interleaved(path)
        };
        let lanes: Vec<StreamLane> = lanes.iter().enumerate().map(lane).collect();
        let stream = ReadStream::open(&lanes, StreamOptions::new(Ends::with_bases_per_batch(batch))).unwrap();
        let mut splitter = BlockBoundarySplitter::new(stream, ReadBatch::new(), block_rules);
        let (mut pieces, mut piece) = (Vec::new(), ReadBatch::new());
        while let Some(part) = splitter.next_batch(&mut piece).unwrap() {
            assert!(
                piece.is_paired
                    && piece.iter().all(|read| read.name.starts_with(piece.lane_index.to_string().as_bytes()))
            );
            pieces.push((piece.lane_index, piece.reads_before, piece.len(), part));
        }
        assert_eq!(splitter.next_batch(&mut piece).unwrap(), None);
        pieces
    }

    const fn part(first: bool, last: bool) -> WholeOrPartOfBlock {
        WholeOrPartOfBlock::PartOfBlock { is_first: first, is_last: last }
    }

    #[test]
    fn blocks_end_at_their_limit_whatever_the_batches() {
        // Three pairs have 60 bp, so that blocks of 50 bp end with the third pair.
        let block_rules = || vec![BlockRule::MinBases(50); 2];
        assert_eq!(
            pieces(&[7, 2], 40, block_rules()),
            [
                (0, 0, 4, part(true, false)),
                (0, 4, 2, part(false, true)),
                (0, 6, 2, part(true, false)),
                (0, 8, 4, part(false, true)),
                (0, 12, 2, part(true, false)),
                (1, 0, 4, part(true, false)),
            ]
        );
        assert_eq!(
            pieces(&[7, 2], 1000, block_rules()),
            [
                (0, 0, 6, part(true, true)),
                (0, 6, 6, part(true, true)),
                (0, 12, 2, part(true, false)),
                (1, 0, 4, part(true, false)),
            ]
        );
    }

    #[test]
    fn lanes_have_cuts_of_their_own() {
        assert_eq!(
            pieces(&[2, 3, 3], 40, vec![BlockRule::MinBases(1000), BlockRule::EachBatch, BlockRule::MinBases(60)]),
            [
                (0, 0, 4, part(true, false)),
                (1, 0, 4, WholeOrPartOfBlock::WholeBlock),
                (1, 4, 2, WholeOrPartOfBlock::WholeBlock),
                (2, 0, 4, part(true, false)),
                (2, 4, 2, part(false, true)),
            ]
        );
        assert_eq!(pieces(&[], 40, Vec::new()), []);
    }
}
