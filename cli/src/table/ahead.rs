//! Stretches of tables read ahead of whoever combines them, by threads that do nothing but wait for the disk.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use genuma_flash::{Error, Raw, Scan};

use super::cuts::{Cuts, Stretch};

/// Threads that read.
pub const READERS: usize = 2;

/// A stretch with its pages as they were read, or room for one.
#[derive(Debug)]
pub struct Slot {
    pub stretch: Stretch,
    /// Of each table.
    pub raw: Vec<Raw>,
}

/// Stretches on their way from the disk to whoever combines them.
#[derive(Debug)]
pub struct Feed<'a> {
    scans: &'a [Scan],
    state: Mutex<State>,
    changed: Condvar,
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
            self.0.changed.notify_all();
        }
    }
}

impl<'a> Feed<'a> {
    /// Of tables, with room for so many stretches of so many pages of each table.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(
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
        Ok(Feed { scans, state: Mutex::new(state), changed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads until there is no more: for some threads.
    pub fn read(&self) {
        let _watch = Watch(self);
        let mut state = self.lock();
        loop {
            if state.ended {
                return;
            }
            // The lowest number that is not read always has its room: numbers and rooms are taken together.
            let Some(mut slot) = state.empty.pop() else {
                state = self.wait(state);
                continue;
            };
            let number = state.begun;
            match state.cuts.next(self.scans, &mut slot.stretch) {
                Ok(false) => {
                    state.ended = true;
                    self.changed.notify_all();
                    return;
                }
                Ok(true) => state.begun += 1,
                Err(error) => {
                    (state.begun, state.ended) = (number + 1, true);
                    state.ready.insert(number, Err(error));
                    self.changed.notify_all();
                    return;
                }
            }
            drop(state);
            let parts = self.scans.iter().zip(&mut slot.raw).zip(&slot.stretch.shares);
            let read = parts.map(|((scan, raw), share)| scan.read(share.pages.clone(), raw));
            let read = read.collect::<Result<(), Error>>();
            state = self.lock();
            state.ready.insert(number, read.map(|()| slot));
            self.changed.notify_all();
        }
    }

    /// The next stretch with its number, or why it cannot be had: in order, so that none waits for one which nobody has.
    pub fn next(&self) -> Option<(u64, Result<Slot, Error>)> {
        let mut state = self.lock();
        loop {
            let number = state.taken;
            if let Some(slot) = state.ready.remove(&number) {
                state.taken += 1;
                return Some((number, slot));
            }
            if state.ended && state.begun <= number {
                return None;
            }
            state = self.wait(state);
        }
    }

    /// Gives the room of a stretch back, for another.
    pub fn give_back(&self, slot: Slot) {
        self.lock().empty.push(slot);
        self.changed.notify_all();
    }

    /// Lets no further stretch be read or taken.
    pub fn stop(&self) {
        let mut state = self.lock();
        (state.begun, state.ended) = (state.taken, true);
        state.ready.clear();
        self.changed.notify_all();
    }
}
