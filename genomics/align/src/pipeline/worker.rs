//! A worker's part: one piece through the engine.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use genuma_reads::ReadBatch;

use super::{Error, Tally};
use crate::engine::Engine;
use crate::sam::{records, write_line};
use crate::sort::markdup::Marking;
use crate::sort::{Blocks, SortedBlock};

/// Some consecutive reads, and what mapping left of them.
pub(super) struct Piece<E: Engine> {
    pub(super) reads: ReadBatch,
    pub(super) draft: E::Draft,
}

impl<E: Engine> Default for Piece<E> {
    fn default() -> Self {
        Piece { reads: ReadBatch::new(), draft: E::Draft::default() }
    }
}

/// What is to be done with a piece.
#[derive(Default)]
pub(super) enum Step<E: Engine> {
    /// There is none.
    #[default]
    Idle,
    /// Map its reads, each alone.
    Map(Box<Piece<E>>),
    /// Make its records.
    Finish(Box<Piece<E>>, Arc<E::Estimate>),
    /// Both: it is a block of its own.
    Whole(Box<Piece<E>>),
}

/// A task of the farm: a step on the way out, its result on the way back.
pub(super) struct Task<E: Engine> {
    pub(super) step: Step<E>,
    /// SAM lines.
    pub(super) text: Vec<u8>,
    /// Or records.
    pub(super) sorted: Option<SortedBlock>,
}

impl<E: Engine> Default for Task<E> {
    fn default() -> Self {
        Task { step: Step::Idle, text: Vec::new(), sorted: None }
    }
}

/// What records become.
#[derive(Debug, Clone)]
pub(super) enum Form {
    Sam,
    Sorted(Option<Arc<Marking>>),
}

/// What workers did, each for itself until it ends.
#[derive(Debug, Clone, Default)]
pub(super) struct Worksheet {
    pub(super) tally: Tally,
    pub(super) map: Duration,
    pub(super) finish: Duration,
    pub(super) shape: Duration,
    pub(super) left_out: BTreeMap<&'static str, u64>,
}

/// What a worker keeps from task to task.
pub(super) struct Worker<'a, E: Engine> {
    /// That of its node.
    engine: &'a E,
    state: E::State,
    /// Records of a piece.
    records: Vec<u8>,
    /// Sorts them, if they are to be sorted.
    blocks: Option<Blocks>,
    sheet: Worksheet,
    /// Where the sheet goes in the end.
    sheets: &'a Mutex<Worksheet>,
}

impl<'a, E: Engine> Worker<'a, E> {
    pub(super) fn new(engine: &'a E, form: &Form, sheets: &'a Mutex<Worksheet>) -> Self {
        let blocks = match form {
            Form::Sam => None,
            Form::Sorted(marking) => Some(Blocks::new(marking.clone())),
        };
        let (state, records, sheet) = (engine.state(), Vec::new(), Worksheet::default());
        Worker { engine, state, records, blocks, sheet, sheets }
    }

    /// Does what the task says.
    pub(super) fn work(&mut self, task: &mut Task<E>) -> Result<(), Error> {
        let Task { step, text, sorted } = task;
        match step {
            Step::Idle => Ok(()),
            Step::Map(piece) => self.map(piece),
            Step::Finish(piece, estimate) => self.finish(piece, estimate, text, sorted),
            Step::Whole(piece) => {
                self.map(piece)?;
                let estimate = self.engine.estimate(std::iter::once(&piece.draft));
                self.finish(piece, &estimate, text, sorted)
            }
        }
    }

    fn map(&mut self, piece: &mut Piece<E>) -> Result<(), Error> {
        let start = Instant::now();
        self.engine.map(&mut self.state, &piece.reads, &mut piece.draft)?;
        self.sheet.map += start.elapsed();
        Ok(())
    }

    fn finish(
        &mut self,
        piece: &mut Piece<E>,
        estimate: &E::Estimate,
        text: &mut Vec<u8>,
        sorted: &mut Option<SortedBlock>,
    ) -> Result<(), Error> {
        let start = Instant::now();
        self.records.clear();
        self.engine.finish(&mut self.state, &piece.reads, &mut piece.draft, estimate, &mut self.records)?;
        let made = Instant::now();
        self.sheet.finish += made - start;
        self.sheet.tally.add(&self.records)?;
        match &mut self.blocks {
            Some(blocks) => *sorted = Some(blocks.block(&self.records)?),
            None => {
                text.clear();
                for record in records(&self.records) {
                    write_line(record?, self.engine.contigs(), text)?;
                }
            }
        }
        self.sheet.shape += made.elapsed();
        Ok(())
    }
}

impl<E: Engine> Drop for Worker<'_, E> {
    fn drop(&mut self) {
        let mut all = self.sheets.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        all.tally.merge(&self.sheet.tally);
        all.map += self.sheet.map;
        all.finish += self.sheet.finish;
        all.shape += self.sheet.shape;
        for (kind, reads) in self.engine.left_out(&self.state) {
            *all.left_out.entry(kind).or_default() += reads;
        }
    }
}
