//! Pinned threads that start each repetition together.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use genuma_machine::placement::pin;

use crate::backend::Error;

/// Spins before a waiting thread lets others run: where there are fewer CPUs than threads, the one waited for needs one.
const SPINS: u32 = 1 << 14;

/// Where threads wait for each other, spinning, so that they go on within less than a microsecond of each other.
#[derive(Debug)]
pub(crate) struct Barrier {
    parties: usize,
    waiting: AtomicUsize,
    turn: AtomicUsize,
    broken: AtomicBool,
}

impl Barrier {
    fn new(parties: usize) -> Barrier {
        Barrier {
            parties,
            waiting: AtomicUsize::new(0),
            turn: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
        }
    }

    /// Waits until all are here, or one has panicked.
    pub fn wait(&self) {
        let turn = self.turn.load(Ordering::Acquire);
        if self.waiting.fetch_add(1, Ordering::AcqRel) + 1 == self.parties {
            self.waiting.store(0, Ordering::Relaxed);
            self.turn.store(turn + 1, Ordering::Release);
            return;
        }
        let mut spins = 0;
        while self.turn.load(Ordering::Acquire) == turn && !self.broken.load(Ordering::Relaxed) {
            spins += 1;
            if spins < SPINS { std::hint::spin_loop() } else { thread::yield_now() }
        }
    }
}

/// Breaks the barrier when its thread panics.
struct Unbroken<'a>(&'a Barrier);

impl Drop for Unbroken<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.broken.store(true, Ordering::Relaxed);
        }
    }
}

/// What one thread did.
#[derive(Debug)]
pub struct Done<T> {
    /// What its work gave.
    pub result: T,
    /// The CPU it was found on.
    pub(crate) found_on: u32,
}

/// Runs `work` on one thread for each CPU, each with its own input; results in the same order.
///
/// # Errors
/// A thread cannot be pinned, or panicked.
pub(crate) fn on_cpus<I: Send, T: Send>(
    cpus: &[u32],
    inputs: Vec<I>,
    work: impl Fn(I, &Barrier) -> T + Sync,
) -> Result<Vec<Done<T>>, Error> {
    let barrier = Barrier::new(inputs.len());
    let one = |cpu: u32, input: I| -> Result<Done<T>, Error> {
        let _unbroken = Unbroken(&barrier);
        // Others wait for this thread even if it cannot be pinned.
        let pinned = pin::to_cpu(cpu);
        let result = work(input, &barrier);
        let found_on = pin::here().cpu;
        pinned.map(|_| Done { result, found_on }).map_err(Error::from)
    };
    let one = &one;
    let results: Vec<_> = thread::scope(|scope| {
        let started: Vec<_> =
            cpus.iter().zip(inputs).map(|(cpu, input)| scope.spawn(move || one(*cpu, input))).collect();
        started.into_iter().map(|thread| thread.join()).collect()
    });
    results.into_iter().map(|joined| joined.map_err(|_| Error::Thread)?).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some_cpu() -> u32 {
        pin::allowed().first().expect("a CPU")
    }

    #[test]
    fn nobody_passes_before_all_have_come() {
        let rounds = 20;
        let came = AtomicUsize::new(0);
        let cpus = [some_cpu(); 4];
        let seen = on_cpus(&cpus, vec![(); 4], |(), barrier| {
            let mut seen = Vec::new();
            for _ in 0..rounds {
                came.fetch_add(1, Ordering::Relaxed);
                barrier.wait();
                seen.push(came.load(Ordering::Relaxed));
                barrier.wait();
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
        let cpus: Vec<u32> = pin::allowed().iter().collect();
        let done = on_cpus(&cpus, cpus.clone(), |cpu, _| cpu).expect("threads");
        assert!(done.iter().zip(&cpus).all(|(done, cpu)| (done.result, done.found_on) == (*cpu, *cpu)));
    }

    #[test]
    fn a_panic_or_a_forbidden_cpu_is_an_error_and_no_hang() {
        let cpus = [some_cpu(); 2];
        let panicked = on_cpus(&cpus, vec![false, true], |panics, barrier| {
            assert!(!panics, "this thread is meant to panic");
            barrier.wait();
        });
        assert!(matches!(panicked, Err(Error::Thread)), "{panicked:?}");
        let forbidden = on_cpus(&[60_000, cpus[0]], vec![(), ()], |(), barrier| barrier.wait());
        assert!(matches!(forbidden, Err(Error::Placement(_))), "{forbidden:?}");
    }
}
