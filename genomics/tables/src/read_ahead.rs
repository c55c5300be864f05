//! Reads k-mer ranges of tables in threads of its own, ahead of the threads that combine them.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use genuma_flash::{Error, TablePageReader, UncheckedPages};

use crate::kmer_ranges::{KmerRange, KmerRangeDivider};

/// Number of reading threads. They spend nearly all of their time waiting for the disk.
pub(crate) const NUM_READING_THREADS: usize = 4;

/// Reusable buffers for a k-mer range and its raw pages.
#[derive(Debug)]
pub(crate) struct KmerRangeSlot {
    pub(crate) kmer_range: KmerRange,
    /// The pages of each table as they were read: not yet verified and unpacked.
    pub(crate) raw_pages: Vec<UncheckedPages>,
}

/// Queue of k-mer ranges from the reading threads to the combining threads. A fixed number of slots limits its memory.
#[derive(Debug)]
pub(crate) struct KmerRangeQueue<'a> {
    scans: &'a [TablePageReader],
    state: Mutex<ReadAheadState>,
    /// Wakes reading threads: a slot was freed, or no more ranges will be read.
    slot_freed: Condvar,
    /// Wakes combining threads: the next range is ready, or there are no more ranges.
    range_ready: Condvar,
}

#[derive(Debug)]
struct ReadAheadState {
    divider: KmerRangeDivider,
    free_slots: Vec<KmerRangeSlot>,
    /// Results of reading: by the number of the range, the range or the error.
    ready: BTreeMap<u64, Result<KmerRangeSlot, Error>>,
    /// Number of ranges that reading threads have started to read.
    num_begun: u64,
    num_taken: u64,
    /// Whether no more ranges will be read.
    ended: bool,
}

/// Stops the queue if the thread that owns this value panics, so that other threads do not wait forever.
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
    /// Creates a queue over these tables with `slots` slots, and allocates their buffers. A slot holds up to `steps[i]`
    /// pages of table i.
    ///
    /// # Errors
    /// The buffers cannot be allocated.
    pub(crate) fn with_allocated_slots(
        scans: &'a [TablePageReader],
        steps: &[u64],
        slots: usize,
    ) -> Result<KmerRangeQueue<'a>, genuma_machine::placement::Error> {
        let raw =
            |(scan, &step): (&TablePageReader, &u64)| UncheckedPages::allocate(step.min(scan.num_pages()) as usize);
        let slot = |_| {
            let raw = scans.iter().zip(steps).map(raw).collect::<Result<_, _>>()?;
            Ok(KmerRangeSlot { kmer_range: KmerRange::default(), raw_pages: raw })
        };
        let state = ReadAheadState {
            divider: KmerRangeDivider::new_for_tables(scans, steps),
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

    /// Wakes all waiting threads, after the queue was stopped or has no more ranges.
    fn notify_all(&self) {
        self.slot_freed.notify_all();
        self.range_ready.notify_all();
    }

    /// Stores the result of reading a range. Wakes one combining thread if this range is the next one to be taken; the
    /// thread that takes it wakes another thread for the next range.
    fn store_read_result(&self, state: &mut ReadAheadState, number: u64, read: Result<KmerRangeSlot, Error>) {
        state.ready.insert(number, read);
        if number == state.num_taken {
            self.range_ready.notify_one();
        }
    }

    /// Reads ranges until there are no more. Each reading thread runs this function.
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
            match state.divider.compute_next_range(self.scans, &mut slot.kmer_range) {
                Ok(false) => {
                    state.ended = true;
                    self.notify_all();
                    return;
                }
                Ok(true) => state.num_begun += 1,
                Err(error) => {
                    (state.num_begun, state.ended) = (number + 1, true);
                    self.store_read_result(&mut state, number, Err(error));
                    self.notify_all();
                    return;
                }
            }
            drop(state);
            let parts = self.scans.iter().zip(&mut slot.raw_pages).zip(&slot.kmer_range.table_pages);
            let read = parts.map(|((scan, raw), share)| scan.read_unchecked_pages(share.pages.clone(), raw));
            let read = read.collect::<Result<(), Error>>();
            state = self.lock();
            self.store_read_result(&mut state, number, read.map(|()| slot));
        }
    }

    /// Waits for the next range, in ascending order. Returns its number, and the range or the error of reading it.
    /// `None` if there are no more ranges.
    pub(crate) fn wait_for_next_range(&self) -> Option<(u64, Result<KmerRangeSlot, Error>)> {
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

    /// Returns a slot to the queue for reuse.
    pub(crate) fn return_slot(&self, slot: KmerRangeSlot) {
        self.lock().free_slots.push(slot);
        self.slot_freed.notify_one();
    }

    /// Stops the queue: no further range is read, and [`KmerRangeQueue::wait_for_next_range`] returns `None`.
    pub(crate) fn stop_reading(&self) {
        let mut state = self.lock();
        (state.num_begun, state.ended) = (state.num_taken, true);
        state.ready.clear();
        self.notify_all();
    }
}
