//! What a farm holds depends on its size, not on its input: an allocator that counts, and tasks that do.
#![allow(unsafe_code)] // An allocator that counts and hands every call on to the system's.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use common::{cpu_slots, seats_on, toil};
use genuma_farm::{CpuSlot, Error, Farm, allocate_touched_buffer};

struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);
static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator with the same arguments; counting touches no memory of theirs.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Relaxed);
        PEAK.fetch_max(HELD.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The counters are the process's: one test at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Tasks alive, and tasks ever made.
static ALIVE: AtomicUsize = AtomicUsize::new(0);
static MADE: AtomicUsize = AtomicUsize::new(0);

/// A task that counts itself, with a buffer.
struct Task {
    number: u64,
    buffer: Vec<u8>,
}

impl Task {
    fn new(_: &CpuSlot) -> Self {
        ALIVE.fetch_add(1, Relaxed);
        MADE.fetch_add(1, Relaxed);
        Task { number: 0, buffer: allocate_touched_buffer(1000) }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let alive = ALIVE.fetch_sub(1, Relaxed);
        assert!(alive > 0, "a task is dropped twice");
    }
}

/// What a run took.
#[derive(Debug)]
struct Cost {
    allocations: u64,
    /// Bytes beyond what was held before.
    peak: usize,
    made: usize,
}

/// Runs the given number of tasks, the one numbered `bad` with an error, and checks that all allocations were freed.
fn cost(farm: &Farm, masters: bool, tasks: u64, bad: Option<u64>) -> Cost {
    let (calls, held, made) = (CALLS.load(Relaxed), HELD.load(Relaxed), MADE.load(Relaxed));
    PEAK.store(held, Relaxed);
    let mut numbers = 0..tasks;
    let mut next = 0;
    let source = |task: &mut Task| {
        task.buffer.clear();
        task.buffer.resize(1000, 0);
        Ok(numbers.next().map(|number| task.number = number).is_some())
    };
    let work = |_: &mut (), task: &mut Task| {
        task.buffer[0] = toil(task.number, 30) as u8;
        if Some(task.number) == bad { Err("bad") } else { Ok(()) }
    };
    let sink = |task: &mut Task| {
        assert_eq!(task.number, next, "out of order");
        next += 1;
        Ok(())
    };
    let result = if masters {
        farm.run_tasks_with_master_per_node(Task::new, |_| Ok(()), source, work, sink)
    } else {
        farm.run_tasks(Task::new, |_| Ok(()), source, work, sink)
    };
    match (result, bad) {
        (Ok(summary), None) => {
            assert_eq!((summary.tasks, summary.allocated_tasks), (tasks, farm.num_allocated_tasks()))
        }
        (Err(Error::ClosureFailed { .. }), Some(_)) => {}
        (result, _) => panic!("{result:?}"),
    }
    assert_eq!(ALIVE.load(Relaxed), 0, "tasks are left over");
    Cost { allocations: CALLS.load(Relaxed) - calls, peak: PEAK.load(Relaxed) - held, made: MADE.load(Relaxed) - made }
}

#[test]
fn ten_times_the_input_takes_no_more_memory_and_no_more_allocations() {
    let _alone = ONE_AT_A_TIME.lock();
    for masters in [false, true] {
        let farm = Farm::new(seats_on(4, 2)).with_tasks_per_worker(16);
        cost(&farm, masters, 1000, None);
        let short = cost(&farm, masters, 10_000, None);
        let long = cost(&farm, masters, 100_000, None);
        // A few more or less: lists of threads and the like, whose growth depends on who is first.
        assert!(long.allocations <= short.allocations + 20, "{short:?} {long:?}");
        assert!(long.peak <= short.peak + 10_000, "{short:?} {long:?}");
        assert!(long.peak >= farm.num_allocated_tasks() * 1000, "{long:?}");
        assert_eq!((short.made, long.made), (64, 64));
    }
}

/// As many tasks as the reads of a few lanes, in batches of a hundred.
#[test]
fn sixty_four_workers_on_the_cpus_there_are() {
    let _alone = ONE_AT_A_TIME.lock();
    let farm = Farm::new(cpu_slots(64)).with_tasks_per_worker(16);
    let short = cost(&farm, false, 10_000, None);
    let long = cost(&farm, false, 10_000_000, None);
    assert!(long.peak <= short.peak + 100_000, "{short:?} {long:?}");
    assert!(long.allocations <= short.allocations + 200, "{short:?} {long:?}");
    assert_eq!(long.made, 1024);
}

#[test]
fn tasks_are_dropped_once_when_the_farm_fails() {
    let _alone = ONE_AT_A_TIME.lock();
    for masters in [false, true] {
        for bad in [0, 1, 500, 4999] {
            let farm = Farm::new(seats_on(5, 2)).with_tasks_per_worker(7);
            assert_eq!(cost(&farm, masters, 5000, Some(bad)).made, 35);
        }
    }
}
