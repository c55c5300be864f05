//! Distributes work over threads. Results are returned in order. The first error stops all threads. A panic in a thread
//! is passed on to the caller. If the system cannot start all requested threads, fewer threads are used.

use std::convert::Infallible;
use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, Once};
use std::thread::{self, ScopedJoinHandle};

/// Warns once that the system cannot start all requested threads.
fn warn_fewer_threads(started: usize, threads: usize, reason: &io::Error) {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        tracing::warn!(
            "only {started} of {threads} threads can be started ({reason}): the result is the same, but takes longer; raise the \
             limit on threads (ulimit -u, pids of the container) or lower --threads"
        );
    });
}

/// Calls `worker` with the numbers 0, 1, … on up to `threads` threads (at least one) and returns the results by number.
/// The workers must divide the work among themselves (for example by a shared counter), because fewer than `threads`
/// may be started. If no thread can be started, the calling thread is the only worker. A panic is passed on after all
/// workers have ended.
pub fn run_workers<T: Send>(threads: usize, worker: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let (threads, worker) = (threads.max(1), &worker);
    thread::scope(|scope| {
        let mut started = Vec::with_capacity(threads);
        while started.len() < threads {
            let number = started.len();
            match thread::Builder::new().spawn_scoped(scope, move || worker(number)) {
                Ok(handle) => started.push(handle),
                Err(reason) => {
                    warn_fewer_threads(number, threads, &reason);
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

/// Guard that sets a flag if its thread panics, so that other threads stop.
struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Relaxed);
        }
    }
}

/// Calls `work` for each number in `0..n` on up to `threads` threads, each with its own state from `init`, and
/// returns the results in order.
pub fn map_in_order<S, T: Send>(
    n: usize,
    threads: usize,
    init: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> T + Sync,
) -> Vec<T> {
    match try_map_in_order(n, threads, init, |state, i| Ok::<T, Infallible>(work(state, i))) {
        Ok(results) => results,
        Err(never) => match never {},
    }
}

/// Like [`map_in_order`], with work that may fail.
///
/// # Errors
/// The error with the lowest number among those that occurred. After an error no new work is started.
pub fn try_map_in_order<S, T: Send, E: Send>(
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
    let mut results: Vec<(usize, T)> = run_workers(threads.min(n), worker).into_iter().flatten().collect();
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
            let squares = try_map_in_order(
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
        assert_eq!(try_map_in_order(0, 4, || (), |(), _| Err::<(), _>("work")), Ok(Vec::new()));
        assert_eq!(run_workers(3, |number| number), [0, 1, 2]);
    }

    #[test]
    fn the_first_error_stops_all() {
        let done = AtomicUsize::new(0);
        let ended = try_map_in_order(
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
            // Printing the panic takes time; the other threads must still have work left meanwhile.
            thread::sleep(Duration::from_millis(1));
            Ok::<_, ()>(())
        };
        let panic = catch_unwind(AssertUnwindSafe(|| try_map_in_order(100_000, 4, || (), work)));
        let words = panic.expect_err("a panic").downcast_ref::<&str>().map(|words| (*words).to_owned());
        assert_eq!(words.as_deref(), Some("ten"));
        assert!(done.load(Relaxed) < 100_000);
    }
}
