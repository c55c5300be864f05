//! An ordered section: threads that process numbered work items in parallel execute one step, the section, strictly
//! in the order of the numbers.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A section of code that threads execute one at a time, in the order of their work item numbers, with a shared
/// state.
#[derive(Debug)]
pub struct OrderedSection<S> {
    state: Mutex<SectionState<S>>,
    changed: Condvar,
}

#[derive(Debug)]
struct SectionState<S> {
    /// Number of the work item that may execute the section next; `None` after the section was closed.
    next_number: Option<u64>,
    state: S,
}

/// A guard that closes the section if the thread that owns the guard panics, so that no other thread waits for ever.
#[derive(Debug)]
pub struct CloseOnPanicGuard<'t, S>(&'t OrderedSection<S>);

impl<S> Drop for CloseOnPanicGuard<'_, S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.close();
        }
    }
}

impl<S> OrderedSection<S> {
    /// Creates a section with the shared state `state`; work item 0 may execute it first.
    pub fn new(state: S) -> Self {
        OrderedSection { state: Mutex::new(SectionState { next_number: Some(0), state }), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, SectionState<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a guard that closes the section if the thread that owns the guard panics. Every thread that uses the
    /// section must hold such a guard.
    pub fn close_on_panic(&self) -> CloseOnPanicGuard<'_, S> {
        CloseOnPanicGuard(self)
    }

    /// Waits until all lower numbers have executed the section, then calls `work`. Each number must execute the
    /// section exactly once, and a thread with a lower number must not wait for a thread that waits here. Returns the
    /// result of `work`; `None` if the section was closed.
    pub fn run_in_turn<T>(&self, number: u64, work: impl FnOnce(&mut S) -> T) -> Option<T> {
        self.run_then(number, Some(number + 1), work)
    }

    /// Executes the section as work item `number`; then work item `following` may execute it, or the section is closed.
    fn run_then<T>(&self, number: u64, following: Option<u64>, work: impl FnOnce(&mut S) -> T) -> Option<T> {
        let mut state = self.lock();
        while state.next_number.is_some_and(|now| now != number) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.next_number?;
        let result = work(&mut state.state);
        state.next_number = following;
        drop(state);
        self.changed.notify_all();
        Some(result)
    }

    /// Like [`OrderedSection::run_in_turn`], but closes the section afterwards: threads that wait get `None`.
    pub fn run_in_turn_and_close<T>(&self, number: u64, work: impl FnOnce(&mut S) -> T) -> Option<T> {
        self.run_then(number, None, work)
    }

    /// Closes the section: threads that wait get `None`.
    pub fn close(&self) {
        self.lock().next_number = None;
        self.changed.notify_all();
    }

    /// Consumes the section and returns the shared state.
    pub fn into_inner(self) -> S {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::thread;

    #[test]
    fn numbers_run_in_order() {
        let (section, number) = (OrderedSection::new(Vec::new()), AtomicU64::new(0));
        let work = || {
            loop {
                let number = number.fetch_add(1, Relaxed);
                let go_on = match number {
                    500 => section.run_in_turn_and_close(number, |seen| seen.push(number)),
                    _ => section.run_in_turn(number, |seen| seen.push(number)),
                };
                if go_on.is_none() || number == 500 {
                    break;
                }
            }
        };
        thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
        assert_eq!(section.into_inner(), (0..=500).collect::<Vec<_>>());
    }

    #[test]
    fn a_panic_releases_waiting_threads() {
        let section = OrderedSection::new(());
        thread::scope(|scope| {
            let waiting = scope.spawn(|| section.run_in_turn(1, |()| ()));
            let panicking = scope.spawn(|| {
                let _watch = section.close_on_panic();
                section.run_in_turn(0, |()| panic!("as it should"))
            });
            assert!(panicking.join().is_err());
            assert!(waiting.join().expect("no panic").is_none());
        });
    }
}
