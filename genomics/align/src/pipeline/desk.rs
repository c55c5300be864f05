//! The master's part: what to hand out next, and what to do with what comes back.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use genuma_farm::Next;

use super::cutter::{Cutter, Part};
use super::worker::{Piece, Step, Task};
use super::{Error, Output};
use crate::engine::Engine;

/// Blocks whose pieces are read before the first of them is mapped.
const BLOCKS: usize = 2;

/// A block whose pieces are being mapped.
struct Block<E: Engine> {
    /// Pieces handed out.
    given: usize,
    /// Whether these are all.
    closed: bool,
    /// Those that are mapped, in order.
    pieces: Vec<Box<Piece<E>>>,
}

/// A piece and its block's estimate.
type Finishable<E> = (Box<Piece<E>>, Arc<<E as Engine>::Estimate>);

/// Source and sink of the farm.
pub(super) struct Desk<'e, 'o, E: Engine> {
    engine: &'e E,
    cutter: Cutter,
    output: Output<'o>,
    /// Blocks under way, in order.
    mapping: VecDeque<Block<E>>,
    /// Pieces to be finished, in order.
    ready: VecDeque<Finishable<E>>,
    /// A piece that is a block of its own and must wait until those before it are handed out.
    held: Option<Box<Piece<E>>>,
    /// Pieces to be used again.
    spare: Vec<Box<Piece<E>>>,
    /// No more reads.
    ended: bool,
    blocks: u64,
    waited: Duration,
    wrote: Duration,
}

impl<'e, 'o, E: Engine> Desk<'e, 'o, E> {
    pub(super) fn new(engine: &'e E, cutter: Cutter, output: Output<'o>) -> Self {
        Desk {
            engine,
            cutter,
            output,
            mapping: VecDeque::new(),
            ready: VecDeque::new(),
            held: None,
            spare: Vec::new(),
            ended: false,
            blocks: 0,
            waited: Duration::ZERO,
            wrote: Duration::ZERO,
        }
    }

    /// Blocks begun.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Time spent waiting for reads.
    pub(super) fn waited(&self) -> Duration {
        self.waited
    }

    /// Time spent on results.
    pub(super) fn wrote(&self) -> Duration {
        self.wrote
    }

    /// Gives out the next task. Finishing comes first: it frees pieces.
    pub(super) fn next(&mut self, task: &mut Task<E>) -> Result<Next, Error> {
        loop {
            if let Some((piece, estimate)) = self.ready.pop_front() {
                task.step = Step::Finish(piece, estimate);
                return Ok(Next::Task);
            }
            if self.held.is_some() || self.ended {
                // Everything before is handed out when no block is being mapped.
                if !self.mapping.is_empty() {
                    return Ok(Next::Later);
                }
                let Some(piece) = self.held.take() else { return Ok(Next::End) };
                task.step = Step::Whole(piece);
                return Ok(Next::Task);
            }
            if self.mapping.len() >= BLOCKS && self.mapping.back().is_some_and(|block| block.closed) {
                return Ok(Next::Later);
            }
            if let Some(piece) = self.read()? {
                task.step = Step::Map(piece);
                return Ok(Next::Task);
            }
        }
    }

    /// Reads a piece. Gives it when it is one of several of its block, which is the last one under way.
    fn read(&mut self) -> Result<Option<Box<Piece<E>>>, Error> {
        let mut piece = self.spare.pop().unwrap_or_default();
        let start = Instant::now();
        let part = self.cutter.next(&mut piece.reads);
        self.waited += start.elapsed();
        let Some(part) = part? else {
            self.ended = true;
            self.close();
            return Ok(None);
        };
        match part {
            Part::Whole => {
                self.close();
                self.blocks += 1;
                self.held = Some(piece);
                Ok(None)
            }
            Part::Some { first, last } => {
                if first {
                    self.close();
                    self.blocks += 1;
                    self.mapping.push_back(Block { given: 0, closed: false, pieces: Vec::new() });
                }
                if let Some(block) = self.mapping.back_mut() {
                    block.given += 1;
                    block.closed = last;
                }
                Ok(Some(piece))
            }
        }
    }

    /// The last block has no more pieces.
    fn close(&mut self) {
        if let Some(block) = self.mapping.back_mut() {
            block.closed = true;
            self.settle();
        }
    }

    /// Makes the estimates of blocks that are mapped.
    fn settle(&mut self) {
        while self.mapping.front().is_some_and(|block| block.closed && block.pieces.len() == block.given)
            && let Some(block) = self.mapping.pop_front()
        {
            let estimate = Arc::new(self.engine.estimate(block.pieces.iter().map(|piece| &piece.draft)));
            self.ready.extend(block.pieces.into_iter().map(|piece| (piece, Arc::clone(&estimate))));
        }
    }

    /// Takes a result. They come in the order of [`Self::next`].
    pub(super) fn take(&mut self, task: &mut Task<E>) -> Result<(), Error> {
        match std::mem::take(&mut task.step) {
            Step::Idle => Ok(()),
            Step::Map(piece) => {
                let block = self.mapping.iter_mut().find(|block| block.pieces.len() < block.given);
                block.expect("a piece that was mapped has its block").pieces.push(piece);
                self.settle();
                Ok(())
            }
            Step::Finish(piece, _) | Step::Whole(piece) => {
                self.spare.push(piece);
                let start = Instant::now();
                match &mut self.output {
                    Output::Sam(out) => out.write_all(&task.text)?,
                    Output::Sorter(sorter, _) => {
                        task.sorted.take().map_or(Ok(()), |block| sorter.push(block))?
                    }
                }
                self.wrote += start.elapsed();
                Ok(())
            }
        }
    }
}
