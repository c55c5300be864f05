//! Records in any order, given back by the names of their templates.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::Arc;

use hashbrown::HashTable;

use crate::deal::{Batch, Chunk};
use crate::merge::{Fault, Given, shown};

use super::{LONGEST, Line, endless};

/// Records in any order, those of a template together. They leave in the order of the reads.
#[derive(Default)]
pub(super) struct ByName {
    /// Batches of which names are known.
    batches: Vec<Answered>,
    /// Templates that have no records yet, by the hash of their name.
    due: HashTable<Due>,
    hasher: RandomState,
    /// The template that the last record was of.
    current: Option<Current>,
}

/// A template, in the order of the reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    /// Number of its batch.
    batch: u32,
    /// Number of its chunk in the batch.
    chunk: u32,
    /// Its number in the chunk.
    at: u32,
}

struct Current {
    due: Due,
    reads: u32,
    primaries: u32,
    /// Where its records begin in the text of its batch.
    start: usize,
}

/// A batch and what is known of it.
struct Answered {
    batch: Arc<Batch>,
    /// Chunks whose names are known; none when all is answered.
    chunks: Vec<Arc<Chunk>>,
    /// How many they were.
    known: usize,
    /// Their templates.
    templates: usize,
    /// Records as they came.
    text: Vec<u8>,
    /// Where those of each template are.
    records: Vec<(Due, Range<usize>)>,
}

fn name<'a>(batches: &'a [Answered], due: &Due) -> &'a [u8] {
    batches[due.batch as usize].chunks[due.chunk as usize].name(due.at as usize)
}

impl ByName {
    pub fn line(&mut self, line: &Line<'_>, given: &impl Given) -> Result<(), Fault> {
        let batches = &self.batches;
        let same = |current: &Current| {
            (!line.primary || current.primaries < current.reads) && name(batches, &current.due) == line.name
        };
        if !self.current.as_ref().is_some_and(same) {
            self.end_template(given)?;
            let due = self.find(line.name, given).ok_or_else(|| Fault::Unknown(shown(line.name)))?;
            let batch = &self.batches[due.batch as usize];
            let reads = batch.chunks[due.chunk as usize].reads(due.at as usize);
            self.current = Some(Current { due, reads, primaries: 0, start: batch.text.len() });
        }
        if let Some(current) = &mut self.current {
            current.primaries += u32::from(line.primary);
            let text = &mut self.batches[current.due.batch as usize].text;
            text.extend_from_slice(line.text);
            if text.len() - current.start > LONGEST {
                return Err(endless("a template"));
            }
        }
        Ok(())
    }

    /// The first template of that name that has no records yet.
    fn find(&mut self, wanted: &[u8], given: &impl Given) -> Option<Due> {
        let hash = self.hasher.hash_one(wanted);
        loop {
            let named = |due: &&Due| name(&self.batches, due) == wanted;
            if let Some(first) = self.due.iter_hash(hash).filter(named).min().copied() {
                if let Ok(entry) = self.due.find_entry(hash, |due| *due == first) {
                    entry.remove();
                }
                return Some(first);
            }
            if !self.learn(given) {
                return None;
            }
        }
    }

    /// Learns the names of one more chunk; false if there is none.
    fn learn(&mut self, given: &impl Given) -> bool {
        loop {
            let number = self.batches.len();
            if let Some(last) = self.batches.last_mut()
                && let Some(chunk) = last.next_chunk()
            {
                last.templates += chunk.templates();
                last.chunks.push(Arc::clone(&chunk));
                let of = last.known;
                last.known += 1;
                let hash = |due: &Due| self.hasher.hash_one(name(&self.batches, due));
                for at in 0..chunk.templates() {
                    let due = Due { batch: (number - 1) as u32, chunk: of as u32, at: at as u32 };
                    self.due.insert_unique(self.hasher.hash_one(chunk.name(at)), due, hash);
                }
                return true;
            }
            let Some(batch) = given.given(number) else { return false };
            self.batches.push(Answered::new(batch));
        }
    }

    fn end_template(&mut self, given: &impl Given) -> Result<(), Fault> {
        let Some(Current { due, reads, primaries, start }) = self.current.take() else { return Ok(()) };
        if primaries != reads {
            return Err(Fault::Missing { templates: 1, first: shown(name(&self.batches, &due)) });
        }
        let answered = &mut self.batches[due.batch as usize];
        answered.records.push((due, start..answered.text.len()));
        if answered.records.len() == answered.templates && answered.next_chunk().is_none() {
            let text = answered.in_order();
            given.deliver(&answered.batch, text, true);
        }
        Ok(())
    }

    pub fn end(&mut self, given: &impl Given) -> Result<(), Fault> {
        self.end_template(given)?;
        while self.learn(given) {}
        match self.due.iter().min() {
            None => Ok(()),
            Some(first) => Err(Fault::Missing {
                templates: self.due.len() as u64,
                first: shown(name(&self.batches, first)),
            }),
        }
    }
}

impl Answered {
    fn new(batch: Arc<Batch>) -> Self {
        Answered { batch, chunks: Vec::new(), known: 0, templates: 0, text: Vec::new(), records: Vec::new() }
    }

    /// The chunk after those whose names are known.
    fn next_chunk(&self) -> Option<Arc<Chunk>> {
        self.batch.chunk(self.known)
    }

    /// All records in the order of the reads; then nothing of the batch is kept.
    fn in_order(&mut self) -> Vec<u8> {
        let (text, mut records) = (std::mem::take(&mut self.text), std::mem::take(&mut self.records));
        self.chunks.clear();
        if records.is_sorted_by_key(|(due, _)| *due) {
            return text;
        }
        records.sort_unstable_by_key(|(due, _)| *due);
        let mut sorted = Vec::with_capacity(text.len());
        records.into_iter().for_each(|(_, range)| sorted.extend_from_slice(&text[range]));
        sorted
    }
}
