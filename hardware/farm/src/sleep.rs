//! Sleeping without missing what one is waiting for.
//!
//! Both sides follow the same rule. Who waits first says that it sleeps and then looks once more; who brings something
//! first puts it down and then looks whether the other sleeps. A sequentially consistent fence stands between the two steps
//! on both sides, so at least one of them sees the other.

use std::sync::OnceLock;

use crate::sync::{AtomicBool, AtomicU64, Ordering, Thread, current, fence, park};

/// Lets one thread sleep until another wakes it.
#[derive(Default)]
pub(crate) struct Sleeper {
    asleep: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Sleeper {
    /// Sleeps until [`Self::wake`], but not at all when `ready` holds. Gives whether it slept. Only ever called by one
    /// thread.
    pub(crate) fn sleep_unless(&self, ready: impl FnOnce() -> bool) -> bool {
        self.thread.get_or_init(current);
        // Release: who sees the flag also sees the handle.
        self.asleep.swap(true, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        if ready() {
            self.asleep.swap(false, Ordering::AcqRel);
            return false;
        }
        while self.asleep.load(Ordering::Acquire) {
            park();
        }
        true
    }

    /// Wakes the thread when it sleeps. To be called after what the thread waits for was put down.
    pub(crate) fn wake(&self) {
        fence(Ordering::SeqCst);
        self.wake_after_fence();
    }

    /// [`Self::wake`] for callers that had a sequentially consistent fence of their own. Gives whether it slept.
    fn wake_after_fence(&self) -> bool {
        let mine = self.asleep.load(Ordering::Relaxed)
            && self.asleep.compare_exchange(true, false, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if mine && let Some(thread) = self.thread.get() {
            thread.unpark();
        }
        mine
    }
}

/// Tells a worker how many results the master wants before it is woken. A master that is woken for every result spends
/// its time on switching; one that is woken for every few dozen does not.
#[derive(Default)]
pub(crate) struct Alarm(AtomicU64);

impl Alarm {
    /// Wants to be woken when the worker has returned `count` results since it began. Set before
    /// [`Sleeper::sleep_unless`], whose `ready` looks whether they are there already.
    pub(crate) fn set(&self, count: u64) {
        self.0.store(count, Ordering::Relaxed);
    }

    /// Wakes `master` when it wants that. To be called after the result that made them `count` was put down.
    /// Gives whether it woke it.
    pub(crate) fn ring(&self, count: u64, master: &Sleeper) -> bool {
        fence(Ordering::SeqCst);
        count >= self.0.load(Ordering::Relaxed) && master.wake_after_fence()
    }
}
