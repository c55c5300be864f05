//! Something that threads use in turns, and none waits for.
#![allow(unsafe_code)] // A value behind an atomic flag: the compiler cannot see that only the flag's holder reaches it.

use crate::sync::{AtomicBool, Ordering, UnsafeCell};

/// A value that one thread at a time may use. Unlike a lock it cannot be waited for: a thread that finds it taken does
/// something else.
pub(crate) struct Turn<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only reached by the thread that set `taken`, one at a time, so it moves between threads (`T: Send`)
// but is never shared by them.
unsafe impl<T: Send> Sync for Turn<T> {}

impl<T> Turn<T> {
    /// A turn over `value`, free to be taken.
    pub(crate) fn new(value: T) -> Self {
        Turn { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Calls `act` with the value, or gives `None` when another thread is using it. What earlier holders wrote is seen.
    /// A panic of `act` leaves the turn taken for ever.
    pub(crate) fn try_with<R>(&self, act: impl FnOnce(&mut T) -> R) -> Option<R> {
        if self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return None;
        }
        let result = self.value.with_mut(|value| {
            // SAFETY: `taken` was false and is true now: until the store below no other thread comes this far, and
            // `act`, which has no way to the turn's value but this reference, ends before.
            act(unsafe { &mut *value })
        });
        self.taken.store(false, Ordering::Release);
        Some(result)
    }

    /// Whether somebody is using the value.
    pub(crate) fn is_taken(&self) -> bool {
        self.taken.load(Ordering::Relaxed)
    }
}
