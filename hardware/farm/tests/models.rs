//! Every order in which threads can meet in `sleep.rs` and `try_lock.rs`: both are compiled here a second time, over loom's atomics,
//! cells and threads.

#[path = "../src/sleep.rs"]
#[allow(dead_code)]
mod sleep;
#[path = "../src/try_lock.rs"]
#[allow(dead_code)]
mod try_lock;

/// What `src/sync.rs` gives, from loom.
mod sync {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
    pub(crate) use loom::thread::{Thread, current, park};
}

use loom::sync::Arc;
use loom::thread;
use sleep::{MasterWakeThreshold, Sleeper};
use sync::{AtomicBool, AtomicU64, Ordering};
use try_lock::TryLock;

/// A thread that sleeps and what it waits for; a counter takes the place of a ring.
#[derive(Default)]
struct Meeting {
    sleeper: Sleeper,
    alarm: MasterWakeThreshold,
    brought: AtomicU64,
    stop: AtomicBool,
}

#[test]
fn a_sleeper_misses_nothing() {
    loom::model(|| {
        let meeting = Arc::new(Meeting::default());
        let other = Arc::clone(&meeting);
        let bringer = thread::spawn(move || {
            for _ in 0..2 {
                // As a ring does it.
                other.brought.fetch_add(1, Ordering::Release);
                other.sleeper.wake_thread();
            }
        });
        for wanted in 1..=2 {
            while meeting.brought.load(Ordering::Acquire) < wanted {
                meeting.sleeper.sleep_unless(|| meeting.brought.load(Ordering::Acquire) >= wanted);
            }
        }
        bringer.join().expect("no panic");
    });
}

#[test]
fn a_sleeper_hears_of_the_end() {
    loom::model(|| {
        let meeting = Arc::new(Meeting::default());
        let other = Arc::clone(&meeting);
        let worker = thread::spawn(move || {
            let mut worked = 0;
            loop {
                if other.stop.load(Ordering::Relaxed) {
                    return;
                }
                if other.brought.load(Ordering::Acquire) > worked {
                    worked += 1;
                    continue;
                }
                other.sleeper.sleep_unless(|| {
                    other.brought.load(Ordering::Acquire) > worked || other.stop.load(Ordering::Relaxed)
                });
            }
        });
        meeting.brought.fetch_add(1, Ordering::Release);
        meeting.sleeper.wake_thread();
        meeting.stop.store(true, Ordering::Relaxed);
        meeting.sleeper.wake_thread();
        worker.join().expect("no panic");
    });
}

#[test]
fn an_alarm_rings_for_the_number_that_is_wanted() {
    loom::model(|| {
        let meeting = Arc::new(Meeting::default());
        let other = Arc::clone(&meeting);
        let worker = thread::spawn(move || {
            for count in 1..=2 {
                other.brought.fetch_add(1, Ordering::Release);
                other.alarm.wake_if_num_results_reached(count, &other.sleeper);
            }
        });
        meeting.alarm.request_wake_at_num_results(2);
        let slept = meeting.sleeper.sleep_unless(|| meeting.brought.load(Ordering::Acquire) >= 2);
        let brought = meeting.brought.load(Ordering::Acquire);
        // Rung for the first only when that came before the alarm was set.
        assert!(brought == 2 || (slept && brought == 1), "{brought}");
        while meeting.brought.load(Ordering::Acquire) < 2 {
            meeting.sleeper.sleep_unless(|| meeting.brought.load(Ordering::Acquire) >= 2);
        }
        worker.join().expect("no panic");
    });
}

#[test]
fn an_alarm_set_lower_is_heard() {
    loom::model(|| {
        let meeting = Arc::new(Meeting::default());
        meeting.alarm.request_wake_at_num_results(9);
        let other = Arc::clone(&meeting);
        let worker = thread::spawn(move || {
            other.brought.fetch_add(1, Ordering::Release);
            other.alarm.wake_if_num_results_reached(1, &other.sleeper);
        });
        meeting.alarm.request_wake_at_num_results(1);
        meeting.sleeper.sleep_unless(|| meeting.brought.load(Ordering::Acquire) >= 1);
        assert_eq!(meeting.brought.load(Ordering::Acquire), 1);
        worker.join().expect("no panic");
    });
}

#[test]
fn a_turn_is_one_threads_at_a_time() {
    loom::model(|| {
        // Loom's cell fails the model when two threads are in it, or one does not see what the other wrote.
        let turn = Arc::new(TryLock::new(0));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let turn = Arc::clone(&turn);
                thread::spawn(move || (0..2).filter(|_| turn.try_lock_and_run(|value| *value += 1).is_some()).count())
            })
            .collect();
        let taken: usize = threads.into_iter().map(|thread| thread.join().expect("no panic")).sum();
        assert!(!turn.is_locked());
        assert_eq!(turn.try_lock_and_run(|value| *value), Some(taken));
        assert!(taken >= 1, "somebody gets the turn");
    });
}

/// A master that finds the lock in use sleeps until the holder unlocks it.
#[test]
fn a_turn_that_was_taken_is_heard_of_when_free() {
    loom::model(|| {
        let shared = Arc::new((TryLock::new(()), Sleeper::default()));
        let other = Arc::clone(&shared);
        let holder = thread::spawn(move || {
            if other.0.try_lock_and_run(|()| ()).is_some() {
                other.1.wake_thread();
            }
        });
        while shared.0.try_lock_and_run(|()| ()).is_none() {
            shared.1.sleep_unless(|| !shared.0.is_locked());
        }
        holder.join().expect("no panic");
    });
}
