//! Turns: threads that work at pieces side by side, and do one thing with each in the order of the pieces.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What is done in turns, and who is next.
#[derive(Debug)]
pub struct Turns<S> {
    next: Mutex<Next<S>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Next<S> {
    /// Whose turn it is; nobody's any more where one of them ended all.
    number: Option<u64>,
    state: S,
}

/// Ends all turns when its thread panics, so that none waits for it for ever.
#[derive(Debug)]
pub struct Watch<'t, S>(&'t Turns<S>);

impl<S> Drop for Watch<'_, S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

impl<S> Turns<S> {
    /// With what is handed on from turn to turn; number 0 comes first.
    pub fn new(state: S) -> Self {
        Turns { next: Mutex::new(Next { number: Some(0), state }), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Next<S>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be held by each thread that takes turns, as long as it does.
    pub fn watch(&self) -> Watch<'_, S> {
        Watch(self)
    }

    /// Waits until it is the turn of `number`, does `work`, and lets the next number have its turn. Each number has one turn, and whoever has a lower one
    /// must not wait for a thread that waits here. What `work` gives; nothing when turns have ended.
    pub fn take<T>(&self, number: u64, work: impl FnOnce(&mut S) -> T) -> Option<T> {
        self.turn(number, Some(number + 1), work)
    }

    /// The turn of `number`, after which it is that of `then`.
    fn turn<T>(&self, number: u64, then: Option<u64>, work: impl FnOnce(&mut S) -> T) -> Option<T> {
        let mut next = self.lock();
        while next.number.is_some_and(|now| now != number) {
            next = self.changed.wait(next).unwrap_or_else(PoisonError::into_inner);
        }
        next.number?;
        let done = work(&mut next.state);
        next.number = then;
        drop(next);
        self.changed.notify_all();
        Some(done)
    }

    /// [`Turns::take`], after which no number has a turn: whoever waits gets nothing.
    pub fn end<T>(&self, number: u64, work: impl FnOnce(&mut S) -> T) -> Option<T> {
        self.turn(number, None, work)
    }

    /// Ends all turns at once.
    pub fn stop(&self) {
        self.lock().number = None;
        self.changed.notify_all();
    }

    /// What was handed on.
    pub fn into_inner(self) -> S {
        self.next.into_inner().unwrap_or_else(PoisonError::into_inner).state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::thread;

    #[test]
    fn numbers_have_their_turns_in_order() {
        let (turns, number) = (Turns::new(Vec::new()), AtomicU64::new(0));
        let work = || {
            loop {
                let number = number.fetch_add(1, Relaxed);
                let go_on = match number {
                    500 => turns.end(number, |seen| seen.push(number)),
                    _ => turns.take(number, |seen| seen.push(number)),
                };
                if go_on.is_none() || number == 500 {
                    break;
                }
            }
        };
        thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
        assert_eq!(turns.into_inner(), (0..=500).collect::<Vec<_>>());
    }

    #[test]
    fn a_panic_lets_nobody_wait() {
        let turns = Turns::new(());
        thread::scope(|scope| {
            let waits = scope.spawn(|| turns.take(1, |()| ()));
            let panics = scope.spawn(|| {
                let _watch = turns.watch();
                turns.take(0, |()| panic!("as it should"))
            });
            assert!(panics.join().is_err());
            assert!(waits.join().expect("no panic").is_none());
        });
    }
}
