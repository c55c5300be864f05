//! Entries that several threads have → one table. Each thread makes the entries of a stretch of keys; in the order of the stretches each is told where
//! its own begin, and packs its pages by itself. What does not fill the last page goes to the next stretch.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use genuma_machine::placement::Placed;
use genuma_machine::processor::Vectors;
use genuma_work::turns::{Turns, Watch};

use crate::error::Error;
use crate::filter::{Filling, Groups};
use crate::format::{Page, Shape};
use crate::hot::Chooser;
use crate::sink::Ways;
use crate::writer::TableWriter;

/// What is handed on from stretch to stretch.
#[derive(Debug, Default)]
struct Turn {
    /// Entries before the stretch.
    entries: u64,
    /// Keys of those that lie on the page which is not yet full, ...
    keys: Vec<u64>,
    /// ... and their values.
    values: Vec<u8>,
    first: u64,
    last: u64,
    /// Why there are no more turns.
    fault: Option<Error>,
}

/// A table that several threads write: see [`TableWriter::together`].
#[derive(Debug)]
pub struct Together<'w> {
    path: PathBuf,
    shape: Shape,
    /// Entries at most.
    most: u64,
    wanted_hot: usize,
    turns: Turns<Turn>,
    groups: &'w Groups,
    ways: Ways<'w>,
    /// First keys of all full pages.
    firsts: Mutex<Vec<u64>>,
    choosers: Mutex<Vec<Chooser>>,
    refused: AtomicBool,
}

/// One thread's hand in a table.
#[derive(Debug)]
pub struct Hand<'t, 'w> {
    table: &'t Together<'w>,
    _watch: Watch<'t, Turn>,
    buffer: Placed<Page>,
    firsts: Vec<u64>,
    filling: Filling,
    chooser: Chooser,
}

/// Entries one after the other: keys, and their values.
pub type Run<'a> = (&'a [u64], &'a [u8]);

impl<'w> Together<'w> {
    /// For one thread.
    ///
    /// # Errors
    /// There is no memory.
    pub fn hand(&self) -> Result<Hand<'_, 'w>, Error> {
        let memory = |source| Error::Memory { path: self.path.clone(), source };
        Ok(Hand {
            table: self,
            _watch: self.turns.watch(),
            buffer: Ways::buffer().map_err(memory)?,
            firsts: Vec::new(),
            filling: self.groups.filling(),
            chooser: Chooser::new(self.wanted_hot, self.shape.value),
        })
    }

    /// What is wrong about entries that come after those of `turn`.
    fn fault(&self, turn: &Turn, runs: &[Run<'_>]) -> Option<Error> {
        let (mut entry, mut before) = (turn.entries, (turn.entries > 0).then_some(turn.last));
        for (keys, values) in runs {
            let path = self.path.clone();
            if values.len() != keys.len() * self.shape.value {
                let wanted = keys.len() * self.shape.value;
                return Some(Error::Value { path, entry, given: values.len(), wanted });
            }
            if entry + keys.len() as u64 > self.most {
                return Some(Error::TooMany { path, most: self.most });
            }
            let follows = |&key: &u64| before.is_none_or(|before| before < key);
            if !(keys.first().is_none_or(follows) && rise(keys)) {
                for &key in *keys {
                    match before {
                        Some(before) if before >= key => {
                            return Some(Error::Order { path, entry, key, before });
                        }
                        _ => (entry, before) = (entry + 1, Some(key)),
                    }
                }
            }
            entry += keys.len() as u64;
            before = keys.last().copied().or(before);
        }
        None
    }
}

/// Whether each key is above the one before.
pub(crate) fn rise(keys: &[u64]) -> bool {
    // Without a way out in between, which vectors do not have.
    Vectors::widest().run(
        #[inline(always)]
        || keys.iter().zip(keys.get(1..).unwrap_or_default()).fold(true, |rise, (a, b)| rise & (a < b)),
    )
}

/// The last so many entries of runs.
fn end_of(runs: &[Run<'_>], mut entries: usize, shape: Shape, keys: &mut Vec<u64>, values: &mut Vec<u8>) {
    let mut from = runs.len();
    let mut skip = 0;
    while entries > 0 {
        from -= 1;
        let there = runs[from].0.len();
        skip = there.saturating_sub(entries);
        entries = entries.saturating_sub(there);
    }
    for (run_keys, run_values) in &runs[from..] {
        keys.extend_from_slice(&run_keys[skip..]);
        values.extend_from_slice(&run_values[skip * shape.value..]);
        skip = 0;
    }
}

impl Hand<'_, '_> {
    /// Adds the entries of stretch `number` in their order. Each stretch is added once by one of the threads, none without those before it being added
    /// sooner or later; `weight` says of a value how often its key will be looked up, as for [`TableWriter::push`]. Whether to go on: not where another
    /// thread has ended all, an entry is wrong or the disk refuses, which [`TableWriter::together`] says.
    pub fn add(&mut self, number: u64, runs: &[Run<'_>], weight: impl Fn(&[u8]) -> u64) -> bool {
        let (shape, turns) = (self.table.shape, &self.table.turns);
        let entries: usize = runs.iter().map(|(keys, _)| keys.len()).sum();
        let (mut fit, mut first, mut last) = (true, None, None);
        for &(keys, values) in runs.iter().filter(|run| !run.0.is_empty()) {
            fit &= values.len() == keys.len() * shape.value && last.is_none_or(|last| last < keys[0]);
            fit &= rise(keys);
            first = first.or(Some(keys[0]));
            last = keys.last().copied();
        }
        let begun = turns.take(number, |turn| {
            let follows = turn.entries == 0 || first.is_none_or(|first| turn.last < first);
            if !(fit && follows && turn.entries + entries as u64 <= self.table.most) {
                turn.fault = self.table.fault(turn, runs);
                return None;
            }
            let (before, on_page) = (turn.entries, turn.keys.len());
            if before == 0 {
                turn.first = first.unwrap_or(0);
            }
            turn.entries += entries as u64;
            turn.last = last.unwrap_or(turn.last);
            let carried = if on_page + entries < shape.per_page {
                end_of(runs, entries, shape, &mut turn.keys, &mut turn.values);
                None
            } else {
                let carried = (std::mem::take(&mut turn.keys), std::mem::take(&mut turn.values));
                let left = (on_page + entries) % shape.per_page;
                end_of(runs, left, shape, &mut turn.keys, &mut turn.values);
                Some((carried, entries - left))
            };
            Some((before, carried))
        });
        let go_on = match begun {
            None => false,
            Some(None) => {
                turns.stop();
                false
            }
            Some(Some((_, None))) => true,
            Some(Some((before, Some(((keys, values), now))))) => {
                let page = before / shape.per_page as u64;
                self.pack(page, (&keys, &values), runs, now)
            }
        };
        if go_on && self.table.wanted_hot > 0 {
            for (keys, values) in runs {
                for (entry, &key) in keys.iter().enumerate() {
                    let value = &values[entry * shape.value..][..shape.value];
                    self.chooser.offer(key, value, weight(value));
                }
            }
        }
        go_on
    }

    /// Packs whole pages from `page` on, counted from 0: of what was carried there, and of the first `entries` of runs.
    fn pack(&mut self, page: u64, carried: Run<'_>, runs: &[Run<'_>], mut entries: usize) -> bool {
        let shape = self.table.shape;
        self.firsts.clear();
        // Pages of the file count its header.
        let (mut number, mut full, mut on_page) = (page + 1, 0, 0);
        let mut first = number;
        let full_pages = runs.iter().map(|&(keys, values)| {
            let now = keys.len().min(entries);
            entries -= now;
            (&keys[..now], &values[..now * shape.value])
        });
        for (mut keys, mut values) in [carried].into_iter().chain(full_pages) {
            while let Some(&key) = keys.first() {
                if on_page == 0 {
                    self.filling.page(self.table.groups, number - 1);
                    self.firsts.push(key);
                }
                let now = keys.len().min(shape.per_page - on_page);
                let (page_keys, page_values) = (&keys[..now], &values[..now * shape.value]);
                self.filling.add(page_keys);
                let page = &mut self.buffer[full];
                shape.put_all(page, on_page, page_keys, page_values);
                (keys, values) = (&keys[now..], &values[now * shape.value..]);
                on_page += now;
                if on_page == shape.per_page {
                    page.seal(number);
                    (number, full, on_page) = (number + 1, full + 1, 0);
                    if full == self.buffer.len() {
                        if !self.write(full, first) {
                            return false;
                        }
                        (full, first) = (0, number);
                    }
                }
            }
        }
        let mut firsts = self.table.firsts.lock().unwrap_or_else(PoisonError::into_inner);
        let (from, end) = (page as usize, page as usize + self.firsts.len());
        let len = firsts.len().max(end);
        firsts.resize(len, 0);
        firsts[from..end].copy_from_slice(&self.firsts);
        drop(firsts);
        full == 0 || self.write(full, first)
    }

    fn write(&mut self, full: usize, first: u64) -> bool {
        let written = self.table.ways.write(&mut self.buffer, full, first);
        if !written {
            self.table.refused.store(true, Relaxed);
            self.table.turns.stop();
        }
        written
    }

    /// Ends all in the turn of stretch `number`, which cannot be made. Whether no other ended all before.
    pub fn stop(&mut self, number: u64) -> bool {
        self.table.turns.end(number, |_| ()).is_some()
    }

    /// Ends this thread's part: there are no more stretches.
    pub fn finish(mut self) {
        self.filling.hand_over(self.table.groups);
        self.table.choosers.lock().unwrap_or_else(PoisonError::into_inner).push(self.chooser);
    }
}

impl TableWriter {
    /// Lets threads, which `work` starts and ends, write all entries of the table: nothing else is to be added to it, before or after.
    /// The same entries make the same table as [`TableWriter::push`] does, however they are cut into stretches. What `work` gives.
    ///
    /// # Errors
    /// As for [`TableWriter::push`].
    pub fn together<T>(&mut self, work: impl FnOnce(&Together<'_>) -> T) -> Result<T, Error> {
        let (shape, wanted_hot) = (self.shape, self.spec.hot_entries);
        let together = Together {
            path: self.sink.path().to_path_buf(),
            shape,
            most: self.spec.entries,
            wanted_hot,
            turns: Turns::new(Turn::default()),
            groups: &self.groups,
            ways: self.sink.ways()?,
            firsts: Mutex::default(),
            choosers: Mutex::default(),
            refused: AtomicBool::new(false),
        };
        let done = work(&together);
        let Together { turns, firsts, choosers, refused, .. } = together;
        let turn = turns.into_inner();
        if let Some(fault) = turn.fault {
            return Err(fault);
        }
        self.firsts = firsts.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.sink.skip(self.firsts.len() as u64, refused.into_inner())?;
        if let Some(&key) = turn.keys.first() {
            self.begin_page(key);
            self.filling.add(&turn.keys);
            shape.put_all(self.sink.page(), 0, &turn.keys, &turn.values);
        }
        (self.entries, self.on_page, self.first, self.last) =
            (turn.entries, turn.keys.len(), turn.first, turn.last);
        self.chooser = Chooser::of(
            choosers.into_inner().unwrap_or_else(PoisonError::into_inner),
            wanted_hot,
            shape.value,
        );
        Ok(done)
    }
}
