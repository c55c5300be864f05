//! Work shared out among threads, the same way everywhere: results in order, the first error stops all, a panic in a thread is the
//! caller's, and a system that gives fewer threads than were asked for slows the work down instead of ending it.

use std::convert::Infallible;
use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, Once};
use std::thread::{self, ScopedJoinHandle};

/// Says once that the system gives fewer threads than were asked for.
fn fewer(started: usize, threads: usize, why: &io::Error) {
    static SAID: Once = Once::new();
    SAID.call_once(|| tracing::warn!("only {started} of {threads} threads can be started: {why}"));
}

/// Runs `worker` with the numbers 0, 1, … on up to `threads` threads (one at least) and gives what each returned, by number. Workers share
/// out the work among themselves, so fewer do as well; if no thread can be started the caller's is the only one. All have ended before
/// a panic goes on.
pub fn workers<T: Send>(threads: usize, worker: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let (threads, worker) = (threads.max(1), &worker);
    thread::scope(|scope| {
        let mut started = Vec::with_capacity(threads);
        while started.len() < threads {
            let number = started.len();
            match thread::Builder::new().spawn_scoped(scope, move || worker(number)) {
                Ok(handle) => started.push(handle),
                Err(why) => {
                    fewer(number, threads, &why);
                    break;
                }
            }
        }
        if started.is_empty() {
            return vec![worker(0)];
        }
        let ended: Vec<_> = started.into_iter().map(ScopedJoinHandle::join).collect();
        ended.into_iter().map(|end| end.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// Sets a flag when a panic goes by.
struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Relaxed);
        }
    }
}

/// Runs `work` on each of `0..n`, on up to `threads` threads with a state of its own each, and gives the results in order.
pub fn in_order<S, T: Send>(
    n: usize,
    threads: usize,
    init: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> T + Sync,
) -> Vec<T> {
    match try_in_order(n, threads, init, |state, i| Ok::<T, Infallible>(work(state, i))) {
        Ok(results) => results,
        Err(never) => match never {},
    }
}

/// The same with work that may fail.
///
/// # Errors
/// Of the errors that were met, that of the lowest number. After one no new work is begun.
pub fn try_in_order<S, T: Send, E: Send>(
    n: usize,
    threads: usize,
    init: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let failure: Mutex<Option<(usize, E)>> = Mutex::new(None);
    let worker = |_| {
        let _guard = StopOnPanic(&stop);
        let (mut state, mut mine) = (init(), Vec::new());
        while !stop.load(Relaxed) {
            let i = next.fetch_add(1, Relaxed);
            if i >= n {
                break;
            }
            match work(&mut state, i) {
                Ok(result) => mine.push((i, result)),
                Err(error) => {
                    stop.store(true, Relaxed);
                    let mut first = failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    if first.as_ref().is_none_or(|(earlier, _)| i < *earlier) {
                        *first = Some((i, error));
                    }
                }
            }
        }
        mine
    };
    let mut results: Vec<(usize, T)> = workers(threads.min(n), worker).into_iter().flatten().collect();
    if let Some((_, error)) = failure.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        return Err(error);
    }
    results.sort_unstable_by_key(|(i, _)| *i);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;

    #[test]
    fn results_come_in_order_whatever_the_threads() {
        for threads in [0, 1, 3, 64] {
            let squares = try_in_order(
                100,
                threads,
                || 0usize,
                |seen, i| {
                    *seen += 1;
                    Ok::<_, ()>(i * i)
                },
            );
            assert_eq!(squares, Ok((0..100).map(|i| i * i).collect()));
        }
        assert_eq!(try_in_order(0, 4, || (), |(), _| Err::<(), _>("work")), Ok(Vec::new()));
        assert_eq!(workers(3, |number| number), [0, 1, 2]);
    }

    #[test]
    fn the_first_error_stops_all() {
        let done = AtomicUsize::new(0);
        let ended = try_in_order(
            1_000_000,
            4,
            || (),
            |(), i| {
                done.fetch_add(1, Relaxed);
                if i >= 10 { Err(i) } else { Ok(()) }
            },
        );
        assert!(ended.is_err_and(|i| (10..14).contains(&i)));
        assert!(done.load(Relaxed) < 1_000);
    }

    #[test]
    fn a_panic_is_the_callers_and_stops_all() {
        let done = AtomicUsize::new(0);
        let work = |(): &mut (), i: usize| {
            done.fetch_add(1, Relaxed);
            assert!(i != 10, "ten");
            // Telling of a panic takes its time; the others are to have something left to do.
            thread::sleep(Duration::from_millis(1));
            Ok::<_, ()>(())
        };
        let panic = catch_unwind(AssertUnwindSafe(|| try_in_order(100_000, 4, || (), work)));
        let words = panic.expect_err("a panic").downcast_ref::<&str>().map(|words| (*words).to_owned());
        assert_eq!(words.as_deref(), Some("ten"));
        assert!(done.load(Relaxed) < 100_000);
    }
}
