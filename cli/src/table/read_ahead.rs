//! Reads k-mer ranges of tables ahead of the threads that combine them. The reading threads only wait for the disk.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use genuma_flash::{Error, TableScan, UncheckedPages};

use super::kmer_ranges::{KmerRange, KmerRangeCutter};

/// Number of reading threads.
pub(crate) const NUM_READING_THREADS: usize = 4;

/// A k-mer range with its pages as read, or the buffers for one.
#[derive(Debug)]
pub(crate) struct KmerRangeSlot {
    pub(crate) kmer_range: KmerRange,
    /// The pages of each table.
    pub(crate) raw_pages: Vec<UncheckedPages>,
}

/// Queue of k-mer ranges between the threads that read and the threads that combine.
#[derive(Debug)]
pub(crate) struct KmerRangeQueue<'a> {
    scans: &'a [TableScan],
    state: Mutex<ReadAheadState>,
    /// Signals reading threads: a slot was freed, or no more ranges will be read.
    slot_freed: Condvar,
    /// Signals combining threads: the next range is ready, or there will be none.
    range_ready: Condvar,
}

#[derive(Debug)]
struct ReadAheadState {
    cutter: KmerRangeCutter,
    free_slots: Vec<KmerRangeSlot>,
    /// Ranges that were read, or the error of reading, by their numbers.
    ready: BTreeMap<u64, Result<KmerRangeSlot, Error>>,
    /// Number of ranges whose reading has begun.
    num_begun: u64,
    num_taken: u64,
    /// Whether no further ranges are read.
    ended: bool,
}

/// Stops the queue when its thread panics, so that no other thread waits for ever.
struct PanicGuard<'f, 'a>(&'f KmerRangeQueue<'a>);

impl Drop for PanicGuard<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut state = self.0.lock();
            (state.num_begun, state.ended) = (state.num_taken, true);
            self.0.notify_all();
        }
    }
}

impl<'a> KmerRangeQueue<'a> {
    /// A queue over these tables, with `slots` slots. Each slot holds up to `steps` pages of each table.
    ///
    /// # Errors
    /// The buffers cannot be allocated.
    pub(crate) fn allocate(
        scans: &'a [TableScan],
        steps: &[u64],
        slots: usize,
    ) -> Result<KmerRangeQueue<'a>, genuma_machine::placement::Error> {
        let raw = |(scan, &step): (&TableScan, &u64)| UncheckedPages::allocate(step.min(scan.num_pages()) as usize);
        let slot = |_| {
            let raw = scans.iter().zip(steps).map(raw).collect::<Result<_, _>>()?;
            Ok(KmerRangeSlot { kmer_range: KmerRange::default(), raw_pages: raw })
        };
        let state = ReadAheadState {
            cutter: KmerRangeCutter::for_tables(scans, steps),
            free_slots: (0..slots).map(slot).collect::<Result<_, _>>()?,
            ready: BTreeMap::new(),
            num_begun: 0,
            num_taken: 0,
            ended: false,
        };
        Ok(KmerRangeQueue { scans, state: Mutex::new(state), slot_freed: Condvar::new(), range_ready: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, ReadAheadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all waiting threads, because the queue has ended.
    fn notify_all(&self) {
        self.slot_freed.notify_all();
        self.range_ready.notify_all();
    }

    /// Stores the result of reading a range, and wakes one combining thread if the range is the next one. The thread
    /// that takes it wakes another for the range after it.
    fn deliver(&self, state: &mut ReadAheadState, number: u64, read: Result<KmerRangeSlot, Error>) {
        state.ready.insert(number, read);
        if number == state.num_taken {
            self.range_ready.notify_one();
        }
    }

    /// Reads ranges until there are no more; called by each reading thread.
    pub(crate) fn run_reading_thread(&self) {
        let _watch = PanicGuard(self);
        let mut state = self.lock();
        loop {
            if state.ended {
                return;
            }
            // The lowest unread range always has a slot, because numbers and slots are taken together.
            let Some(mut slot) = state.free_slots.pop() else {
                state = self.slot_freed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let number = state.num_begun;
            match state.cutter.next_range(self.scans, &mut slot.kmer_range) {
                Ok(false) => {
                    state.ended = true;
                    self.notify_all();
                    return;
                }
                Ok(true) => state.num_begun += 1,
                Err(error) => {
                    (state.num_begun, state.ended) = (number + 1, true);
                    self.deliver(&mut state, number, Err(error));
                    self.notify_all();
                    return;
                }
            }
            drop(state);
            let parts = self.scans.iter().zip(&mut slot.raw_pages).zip(&slot.kmer_range.table_pages);
            let read = parts.map(|((scan, raw), share)| scan.read_pages(share.pages.clone(), raw));
            let read = read.collect::<Result<(), Error>>();
            state = self.lock();
            self.deliver(&mut state, number, read.map(|()| slot));
        }
    }

    /// The next range in order with its number, or the error of reading it. Ranges are handed out in order, so that
    /// no thread waits for a range that nobody has.
    pub(crate) fn next_range(&self) -> Option<(u64, Result<KmerRangeSlot, Error>)> {
        let mut state = self.lock();
        loop {
            let number = state.num_taken;
            if let Some(slot) = state.ready.remove(&number) {
                state.num_taken += 1;
                if state.ready.contains_key(&state.num_taken) || (state.ended && state.num_begun <= state.num_taken) {
                    self.range_ready.notify_one();
                }
                return Some((number, slot));
            }
            if state.ended && state.num_begun <= number {
                // The other threads end too.
                self.range_ready.notify_all();
                return None;
            }
            state = self.range_ready.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns the slot of a range for reuse.
    pub(crate) fn return_slot(&self, slot: KmerRangeSlot) {
        self.lock().free_slots.push(slot);
        self.slot_freed.notify_one();
    }

    /// Stops the queue: no further range is read or handed out.
    pub(crate) fn stop_reading(&self) {
        let mut state = self.lock();
        (state.num_begun, state.ended) = (state.num_taken, true);
        state.ready.clear();
        self.notify_all();
    }
}
