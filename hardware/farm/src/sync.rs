//! Synchronisation primitives for [`sleep`](crate::sleep) and [`try_lock`](crate::try_lock). `tests/models.rs`
//! compiles both modules again with loom's primitives of the same names, and checks every thread interleaving.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
pub(crate) use std::thread::{Thread, current, park};

/// A cell whose value is only accessed through a raw pointer.
#[derive(Debug, Default)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// Creates a cell that holds `value`.
    pub(crate) fn new(value: T) -> Self {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    /// Calls `act` with a pointer to the value. A caller that dereferences the pointer must ensure exclusive access.
    pub(crate) fn with_mut<R>(&self, act: impl FnOnce(*mut T) -> R) -> R {
        act(self.0.get())
    }
}
