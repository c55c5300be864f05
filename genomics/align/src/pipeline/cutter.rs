//! Batches of a stream → pieces that end where the engine's blocks do.

use genuma_reads::{Error, ReadBatch, ReadStream};

use crate::engine::{Cut, Limit};

/// Cuts the batches of a stream.
pub(super) struct Cutter {
    stream: ReadStream,
    /// How to cut each lane.
    cuts: Vec<Cut>,
    batch: ReadBatch,
    /// Reads of `batch` that are given out.
    at: usize,
    /// The lane of the open block, and whether its reads have mates; none when the next read begins a block.
    open: Option<(u32, bool)>,
    /// What the open block has: bases and reads.
    held: (u64, u64),
}

/// What a piece is to its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it.
    Whole,
    /// One of several: whether it is the first, and whether it is known to be the last. A block also ends when the next one
    /// begins, and with the reads.
    Some { first: bool, last: bool },
}

impl Cutter {
    /// Over a stream of which `first` was taken already.
    pub(super) fn new(stream: ReadStream, first: ReadBatch, cuts: Vec<Cut>) -> Self {
        Cutter { stream, cuts, batch: first, at: 0, open: None, held: (0, 0) }
    }

    /// Fills a piece; none when there are no more reads.
    pub(super) fn next(&mut self, piece: &mut ReadBatch) -> Result<Option<Part>, Error> {
        piece.clear();
        if !self.has_reads()? {
            return Ok(None);
        }
        let own = (self.batch.lane, self.batch.paired);
        let first = self.open != Some(own);
        if first {
            (self.open, self.held) = (Some(own), (0, 0));
        }
        let part = match self.cuts[own.0 as usize] {
            Cut::Anywhere => {
                self.take(piece, None);
                Part::Whole
            }
            Cut::Blocks(limit) => Part::Some { first, last: self.take(piece, Some(limit)) },
            Cut::Whole(limit) => {
                while !self.take(piece, Some(limit))
                    && self.has_reads()?
                    && (self.batch.lane, self.batch.paired) == own
                {}
                Part::Whole
            }
        };
        if matches!(part, Part::Whole | Part::Some { last: true, .. }) {
            self.open = None;
        }
        Ok(Some(part))
    }

    /// Whether there are reads in hand; gets some if there are not.
    fn has_reads(&mut self) -> Result<bool, Error> {
        while self.at == self.batch.len() {
            self.at = 0;
            if !self.stream.fill(&mut self.batch)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Moves reads from the batch into `piece`, up to the end of the block. Whether that was reached.
    fn take(&mut self, piece: &mut ReadBatch, limit: Option<Limit>) -> bool {
        let (bases, reads) = self.held;
        let reached = |bases, reads| limit.is_some_and(|limit| limit.reached(bases, reads));
        let all = (bases + self.batch.bases(), reads + self.batch.len() as u64);
        if self.at == 0 && piece.is_empty() && !reached(all.0, all.1) {
            std::mem::swap(piece, &mut self.batch);
            self.batch.clear();
            self.held = all;
            return false;
        }
        if piece.is_empty() {
            (piece.lane, piece.paired) = (self.batch.lane, self.batch.paired);
            piece.before = self.batch.before + self.at as u64;
        }
        let template = if self.batch.paired { 2 } else { 1 };
        while self.at < self.batch.len() {
            for _ in 0..template {
                let read = self.batch.read(self.at);
                piece.push(read);
                self.held.0 += read.seq.len() as u64;
                self.held.1 += 1;
                self.at += 1;
            }
            if reached(self.held.0, self.held.1) {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use genuma_reads::{Cut as Ends, ReadLane, StreamOptions};

    use super::*;

    /// Pieces of lanes with so many pairs of 10 bp, read in batches of `batch` bases: lane, reads before, reads, and part.
    fn pieces(lanes: &[usize], batch: u64, cuts: Vec<Cut>) -> Vec<(u32, u64, usize, Part)> {
        let folder = tempfile::tempdir().unwrap();
        let lane = |(i, &pairs): (usize, &usize)| {
            let path = folder.path().join(format!("{i}.fq"));
            let text: String =
                (0..2 * pairs).map(|r| format!("@{i}.{}\nACGTACGTAC\n+\nFFFFFFFFFF\n", r / 2)).collect();
            fs::write(&path, text).unwrap();
            ReadLane::Interleaved(path)
        };
        let lanes: Vec<ReadLane> = lanes.iter().enumerate().map(lane).collect();
        let stream = ReadStream::open(&lanes, StreamOptions::new(Ends::at_bases(batch))).unwrap();
        let mut cutter = Cutter::new(stream, ReadBatch::new(), cuts);
        let (mut pieces, mut piece) = (Vec::new(), ReadBatch::new());
        while let Some(part) = cutter.next(&mut piece).unwrap() {
            assert!(
                piece.paired
                    && piece.iter().all(|read| read.name.starts_with(piece.lane.to_string().as_bytes()))
            );
            pieces.push((piece.lane, piece.before, piece.len(), part));
        }
        assert_eq!(cutter.next(&mut piece).unwrap(), None);
        pieces
    }

    fn limit(bases: u64) -> Limit {
        Limit { bases, reads: 0, most: bases }
    }

    const fn part(first: bool, last: bool) -> Part {
        Part::Some { first, last }
    }

    #[test]
    fn blocks_end_at_their_limit_whatever_the_batches() {
        // Three pairs are 60 bp; blocks of 50 bp end with the third pair.
        let cuts = || vec![Cut::Blocks(limit(50)); 2];
        assert_eq!(
            pieces(&[7, 2], 40, cuts()),
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
            pieces(&[7, 2], 1000, cuts()),
            [
                (0, 0, 6, part(true, true)),
                (0, 6, 6, part(true, true)),
                (0, 12, 2, part(true, false)),
                (1, 0, 4, part(true, false)),
            ]
        );
    }

    #[test]
    fn whole_blocks_are_one_piece_whatever_the_batches() {
        for batch in [1, 40, 60, 70, 1000] {
            assert_eq!(
                pieces(&[7, 2], batch, vec![Cut::Whole(limit(50)); 2]),
                [
                    (0, 0, 6, Part::Whole),
                    (0, 6, 6, Part::Whole),
                    (0, 12, 2, Part::Whole),
                    (1, 0, 4, Part::Whole)
                ],
                "batches of {batch}"
            );
        }
    }

    #[test]
    fn lanes_have_cuts_of_their_own() {
        assert_eq!(
            pieces(&[2, 3, 3], 40, vec![Cut::Blocks(limit(1000)), Cut::Anywhere, Cut::Blocks(limit(60))]),
            [
                (0, 0, 4, part(true, false)),
                (1, 0, 4, Part::Whole),
                (1, 4, 2, Part::Whole),
                (2, 0, 4, part(true, false)),
                (2, 4, 2, part(false, true)),
            ]
        );
        assert_eq!(pieces(&[], 40, Vec::new()), []);
    }
}
