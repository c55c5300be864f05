//! Pinned threads that start each repetition at the same time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use genuma_machine::placement::pin;

use crate::backend::Error;

/// Maximum number of spins before a waiting thread yields its CPU. With fewer CPUs than threads, the thread that is
/// waited for needs that CPU.
const MAX_SPINS_BEFORE_YIELD: u32 = 1 << 14;

/// A spinning barrier: threads continue within less than a microsecond of each other.
#[derive(Debug)]
pub(crate) struct SpinBarrier {
    num_threads: usize,
    num_waiting: AtomicUsize,
    generation: AtomicUsize,
    is_broken: AtomicBool,
}

impl SpinBarrier {
    fn new(parties: usize) -> SpinBarrier {
        SpinBarrier {
            num_threads: parties,
            num_waiting: AtomicUsize::new(0),
            generation: AtomicUsize::new(0),
            is_broken: AtomicBool::new(false),
        }
    }

    /// Waits until all threads have arrived, or one has panicked.
    pub(super) fn wait_for_all_threads(&self) {
        let turn = self.generation.load(Ordering::Acquire);
        if self.num_waiting.fetch_add(1, Ordering::AcqRel) + 1 == self.num_threads {
            self.num_waiting.store(0, Ordering::Relaxed);
            self.generation.store(turn + 1, Ordering::Release);
            return;
        }
        let mut spins = 0;
        while self.generation.load(Ordering::Acquire) == turn && !self.is_broken.load(Ordering::Relaxed) {
            spins += 1;
            if spins < MAX_SPINS_BEFORE_YIELD { std::hint::spin_loop() } else { thread::yield_now() }
        }
    }
}

/// Releases the barrier when its thread panics.
struct BreakBarrierOnPanic<'a>(&'a SpinBarrier);

impl Drop for BreakBarrierOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.is_broken.store(true, Ordering::Relaxed);
        }
    }
}

/// What one pinned thread returned, and the CPU that it ran on.
#[derive(Debug)]
pub(super) struct ThreadResult<T> {
    /// Return value of the work closure.
    pub result: T,
    /// CPU that the thread ran on.
    pub(crate) cpu: u32,
}

/// Runs `work` on one pinned thread per CPU, each with its own input. Results are in the same order.
///
/// # Errors
/// A thread cannot be pinned, or panicked.
pub(crate) fn run_on_pinned_threads<I: Send, T: Send>(
    cpus: &[u32],
    inputs: Vec<I>,
    work: impl Fn(I, &SpinBarrier) -> T + Sync,
) -> Result<Vec<ThreadResult<T>>, Error> {
    let barrier = SpinBarrier::new(inputs.len());
    let one = |cpu: u32, input: I| -> Result<ThreadResult<T>, Error> {
        let _unbroken = BreakBarrierOnPanic(&barrier);
        // Other threads wait for this thread at the barrier even if it cannot be pinned.
        let pinned = pin::pin_to_cpu(cpu);
        let result = work(input, &barrier);
        let found_on = pin::current_location().cpu;
        pinned.map(|_| ThreadResult { result, cpu: found_on }).map_err(Error::from)
    };
    let one = &one;
    let results: Vec<_> = thread::scope(|scope| {
        let started: Vec<_> =
            cpus.iter().zip(inputs).map(|(cpu, input)| scope.spawn(move || one(*cpu, input))).collect();
        started.into_iter().map(|thread| thread.join()).collect()
    });
    results.into_iter().map(|joined| joined.map_err(|_| Error::ThreadPanicked)?).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some_cpu() -> u32 {
        pin::allowed_cpus().smallest_id().expect("a CPU")
    }

    #[test]
    fn nobody_passes_before_all_have_come() {
        let rounds = 20;
        let came = AtomicUsize::new(0);
        let cpus = [some_cpu(); 4];
        let seen = run_on_pinned_threads(&cpus, vec![(); 4], |(), barrier| {
            let mut seen = Vec::new();
            for _ in 0..rounds {
                came.fetch_add(1, Ordering::Relaxed);
                barrier.wait_for_all_threads();
                seen.push(came.load(Ordering::Relaxed));
                barrier.wait_for_all_threads();
            }
            seen
        });
        for done in seen.expect("four threads") {
            let expected: Vec<usize> = (1..=rounds).map(|round| 4 * round).collect();
            assert_eq!(done.result, expected);
        }
    }

    #[test]
    fn threads_are_where_they_were_put() {
        let cpus: Vec<u32> = pin::allowed_cpus().iter().collect();
        let done = run_on_pinned_threads(&cpus, cpus.clone(), |cpu, _| cpu).expect("threads");
        assert!(done.iter().zip(&cpus).all(|(done, cpu)| (done.result, done.cpu) == (*cpu, *cpu)));
    }

    #[test]
    fn a_panic_or_a_forbidden_cpu_is_an_error_and_no_hang() {
        let cpus = [some_cpu(); 2];
        let panicked = run_on_pinned_threads(&cpus, vec![false, true], |panics, barrier| {
            assert!(!panics, "this thread is meant to panic");
            barrier.wait_for_all_threads();
        });
        assert!(matches!(panicked, Err(Error::ThreadPanicked)), "{panicked:?}");
        let forbidden =
            run_on_pinned_threads(&[60_000, cpus[0]], vec![(), ()], |(), barrier| barrier.wait_for_all_threads());
        assert!(matches!(forbidden, Err(Error::Placement(_))), "{forbidden:?}");
    }
}
