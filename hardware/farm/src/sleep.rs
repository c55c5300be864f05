//! Lets threads sleep and wakes them, without lost wake-ups.
//!
//! Both threads follow the same rule. The waiting thread first sets its flag and then checks once more. The waking
//! thread first publishes its data and then checks the flag. A sequentially consistent fence between the two steps of
//! each thread makes sure that at least one of the threads sees the first step of the other one.

use std::sync::OnceLock;

use crate::sync::{AtomicBool, AtomicU64, Ordering, Thread, current, fence, park};

/// Lets one thread sleep until another thread wakes it.
#[derive(Default)]
pub(crate) struct Sleeper {
    asleep: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Sleeper {
    /// Sleeps until [`Self::wake_thread`] is called, but not if `ready` returns true. Returns whether the thread slept.
    /// May only be called by one thread.
    pub(crate) fn sleep_unless(&self, ready: impl FnOnce() -> bool) -> bool {
        self.thread.get_or_init(current);
        // Release: a thread that sees the flag also sees the thread handle.
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

    /// Wakes the thread if it sleeps. Call it after publishing the data that the thread waits for.
    pub(crate) fn wake_thread(&self) {
        fence(Ordering::SeqCst);
        self.wake_after_fence();
    }

    /// Like [`Self::wake_thread`], for callers that have executed a sequentially consistent fence. Returns whether the
    /// thread slept.
    fn wake_after_fence(&self) -> bool {
        let mine = self.asleep.load(Ordering::Relaxed)
            && self.asleep.compare_exchange(true, false, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if mine && let Some(thread) = self.thread.get() {
            thread.unpark();
        }
        mine
    }
}

/// Number of results at which a worker wakes its master. A master that is woken for every single result spends its time
/// on thread switches, so it is woken once for several results.
#[derive(Default)]
pub(crate) struct MasterWakeThreshold(AtomicU64);

impl MasterWakeThreshold {
    /// Requests a wake-up when the worker has returned `count` results in total. Call it before
    /// [`Sleeper::sleep_unless`], whose `ready` checks whether these results have arrived already.
    pub(crate) fn request_wake_at_num_results(&self, count: u64) {
        self.0.store(count, Ordering::Relaxed);
    }

    /// Wakes `master` if it requested a wake-up at `count` results or fewer. Call it after publishing the result after
    /// which the worker has returned `count` results in total. Returns whether the master was asleep.
    pub(crate) fn wake_if_num_results_reached(&self, count: u64, master: &Sleeper) -> bool {
        fence(Ordering::SeqCst);
        count >= self.0.load(Ordering::Relaxed) && master.wake_after_fence()
    }
}
