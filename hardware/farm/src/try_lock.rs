//! A lock that threads only try to take: a thread that finds the lock held does not wait.
#![allow(unsafe_code)] // A value behind an atomic flag: the compiler cannot see that only the flag's holder reaches it.

use crate::sync::{AtomicBool, Ordering, UnsafeCell};

/// A value that one thread at a time may use. A thread that finds the value in use does not wait but does something
/// else.
pub(crate) struct TryLock<T> {
    is_locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: only the thread that set `is_locked` accesses the value, so it moves between threads (`T: Send`) but is
// never shared.
unsafe impl<T: Send> Sync for TryLock<T> {}

impl<T> TryLock<T> {
    /// Creates an unlocked lock that holds `value`.
    pub(crate) fn new(value: T) -> Self {
        TryLock { is_locked: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Calls `act` with the value. Returns `None` if another thread is using the value. Writes of earlier holders are
    /// visible. If `act` panics, the value stays locked for ever.
    pub(crate) fn try_lock_and_run<R>(&self, act: impl FnOnce(&mut T) -> R) -> Option<R> {
        if self.is_locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return None;
        }
        let result = self.value.with_mut(|value| {
            // SAFETY: `is_locked` was false and is true now. No other thread gets here before the store below, and
            // `act`, which can reach the value only through this reference, ends before the store.
            act(unsafe { &mut *value })
        });
        self.is_locked.store(false, Ordering::Release);
        Some(result)
    }

    /// Whether a thread is using the value.
    pub(crate) fn is_locked(&self) -> bool {
        self.is_locked.load(Ordering::Relaxed)
    }
}
