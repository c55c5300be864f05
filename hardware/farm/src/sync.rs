//! What [`sleep`](crate::sleep) and [`turn`](crate::turn) are made of. `tests/models.rs` compiles both a second time
//! over loom's parts of the same names, and checks every order in which they can run.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
pub(crate) use std::thread::{Thread, current, park};

/// A cell that is only reached through a pointer.
#[derive(Debug, Default)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// A cell that holds `value`.
    pub(crate) fn new(value: T) -> Self {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    /// Calls `act` with a pointer to the value; whoever follows it answers for having it alone.
    pub(crate) fn with_mut<R>(&self, act: impl FnOnce(*mut T) -> R) -> R {
        act(self.0.get())
    }
}
