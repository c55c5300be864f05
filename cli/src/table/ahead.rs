//! Stretches of tables read ahead of whoever combines them, by threads that do nothing but wait for the disk.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use genuma_flash::{Error, Raw, Scan};

use super::cuts::{Cuts, Stretch};

/// Threads that read.
pub(crate) const READERS: usize = 4;

/// A stretch with its pages as they were read, or room for one.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) stretch: Stretch,
    /// Of each table.
    pub(crate) raw: Vec<Raw>,
}

/// Stretches on their way from the disk to whoever combines them.
#[derive(Debug)]
pub(crate) struct Feed<'a> {
    scans: &'a [Scan],
    state: Mutex<State>,
    /// There is room for another, or no more will begin: for those who read.
    room: Condvar,
    /// The next is there, or none will be: for those who take.
    came: Condvar,
}

#[derive(Debug)]
struct State {
    cuts: Cuts,
    empty: Vec<Slot>,
    /// Stretches that were read, or what was wrong, by their numbers.
    ready: BTreeMap<u64, Result<Slot, Error>>,
    /// Stretches that are being read or were.
    begun: u64,
    taken: u64,
    /// No more will begin.
    ended: bool,
}

/// Ends all when its thread panics, so that none waits for ever.
struct Watch<'f, 'a>(&'f Feed<'a>);

impl Drop for Watch<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut state = self.0.lock();
            (state.begun, state.ended) = (state.taken, true);
            self.0.all();
        }
    }
}

impl<'a> Feed<'a> {
    /// Of tables, with room for so many stretches of so many pages of each table.
    ///
    /// # Errors
    /// There is no memory.
    pub(crate) fn new(
        scans: &'a [Scan],
        steps: &[u64],
        slots: usize,
    ) -> Result<Feed<'a>, genuma_machine::placement::Error> {
        let raw = |(scan, &step): (&Scan, &u64)| Raw::new(step.min(scan.pages()) as usize);
        let slot = |_| {
            let raw = scans.iter().zip(steps).map(raw).collect::<Result<_, _>>()?;
            Ok(Slot { stretch: Stretch::default(), raw })
        };
        let state = State {
            cuts: Cuts::new(scans, steps),
            empty: (0..slots).map(slot).collect::<Result<_, _>>()?,
            ready: BTreeMap::new(),
            begun: 0,
            taken: 0,
            ended: false,
        };
        Ok(Feed { scans, state: Mutex::new(state), room: Condvar::new(), came: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells all that there is no more.
    fn all(&self) {
        self.room.notify_all();
        self.came.notify_all();
    }

    /// Puts what came of a stretch where it is taken, and wakes one of those who wait if it is the next: who takes that looks after the one behind it.
    fn put(&self, state: &mut State, number: u64, read: Result<Slot, Error>) {
        state.ready.insert(number, read);
        if number == state.taken {
            self.came.notify_one();
        }
    }

    /// Reads until there is no more: for some threads.
    pub(crate) fn read(&self) {
        let _watch = Watch(self);
        let mut state = self.lock();
        loop {
            if state.ended {
                return;
            }
            // The lowest number that is not read always has its room: numbers and rooms are taken together.
            let Some(mut slot) = state.empty.pop() else {
                state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let number = state.begun;
            match state.cuts.next(self.scans, &mut slot.stretch) {
                Ok(false) => {
                    state.ended = true;
                    self.all();
                    return;
                }
                Ok(true) => state.begun += 1,
                Err(error) => {
                    (state.begun, state.ended) = (number + 1, true);
                    self.put(&mut state, number, Err(error));
                    self.all();
                    return;
                }
            }
            drop(state);
            let parts = self.scans.iter().zip(&mut slot.raw).zip(&slot.stretch.shares);
            let read = parts.map(|((scan, raw), share)| scan.read(share.pages.clone(), raw));
            let read = read.collect::<Result<(), Error>>();
            state = self.lock();
            self.put(&mut state, number, read.map(|()| slot));
        }
    }

    /// The next stretch with its number, or why it cannot be had: in order, so that none waits for one which nobody has.
    pub(crate) fn next(&self) -> Option<(u64, Result<Slot, Error>)> {
        let mut state = self.lock();
        loop {
            let number = state.taken;
            if let Some(slot) = state.ready.remove(&number) {
                state.taken += 1;
                if state.ready.contains_key(&state.taken) || (state.ended && state.begun <= state.taken) {
                    self.came.notify_one();
                }
                return Some((number, slot));
            }
            if state.ended && state.begun <= number {
                // So will it be for the others.
                self.came.notify_all();
                return None;
            }
            state = self.came.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Gives the room of a stretch back, for another.
    pub(crate) fn give_back(&self, slot: Slot) {
        self.lock().empty.push(slot);
        self.room.notify_one();
    }

    /// Lets no further stretch be read or taken.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        (state.begun, state.ended) = (state.taken, true);
        state.ready.clear();
        self.all();
    }
}
