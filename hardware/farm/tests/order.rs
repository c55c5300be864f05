//! Results come in the order of the input, whatever the sizes and however long tasks take.

mod common;

use std::sync::atomic::{AtomicU64, Ordering};

use common::{cpu_slots, mix, seats_on, toil};
use genuma_farm::{CpuSlot, Farm, FarmSummary};

/// A task with its result.
#[derive(Default)]
struct Task {
    number: u64,
    result: u64,
}

/// How long a task takes, in steps of about a nanosecond: mostly nothing, sometimes much.
fn steps(seed: u64, number: u64) -> u64 {
    let random = mix(seed ^ mix(number));
    match random % 64 {
        0 => 20_000,
        1..16 => random % 1000,
        _ => 0,
    }
}

/// Sends `tasks` tasks through and checks each result; with `masters`, one master per node sends them.
fn check(farm: &Farm, tasks: u64, seed: u64, masters: bool) -> FarmSummary {
    let mut numbers = 0..tasks;
    let mut next = 0;
    let make_task = |_: &CpuSlot| Task::default();
    let make_state = |_: &CpuSlot| Ok::<_, String>(0_u64);
    let source = |task: &mut Task| Ok(numbers.next().map(|number| task.number = number).is_some());
    let work = |count: &mut u64, task: &mut Task| {
        *count += 1;
        task.result = toil(task.number, steps(seed, task.number));
        Ok(())
    };
    let sink = |task: &mut Task| {
        assert_eq!(task.number, next);
        assert_eq!(task.result, toil(next, steps(seed, next)), "task {next}");
        next += 1;
        Ok(())
    };
    let summary = if masters {
        farm.run_tasks_with_master_per_node(make_task, make_state, source, work, sink)
    } else {
        farm.run_tasks(make_task, make_state, source, work, sink)
    };
    let summary = summary.expect("nothing fails");
    assert_eq!(next, tasks);
    assert_eq!(summary.tasks, tasks);
    assert_eq!(summary.allocated_tasks, farm.num_allocated_tasks());
    assert_eq!(summary.workers.iter().map(|worker| worker.tasks).sum::<u64>(), tasks);
    summary
}

#[test]
fn every_size_of_farm_and_input() {
    for workers in [1, 2, 3, 7] {
        for tasks_per_worker in [1, 2, 5, 64] {
            let farm = Farm::new(cpu_slots(workers)).with_tasks_per_worker(tasks_per_worker);
            for tasks in [0, 1, 2, 3, 64, 1000] {
                check(&farm, tasks, 1, false);
            }
        }
    }
}

#[test]
fn every_number_of_masters() {
    for (workers, nodes) in [(1, 1), (2, 2), (5, 2), (7, 3), (8, 8)] {
        for tasks_per_worker in [1, 3, 64] {
            let farm = Farm::new(seats_on(workers, nodes)).with_tasks_per_worker(tasks_per_worker);
            for tasks in [0, 1, 2, 5, 1000, 20_000] {
                let summary = check(&farm, tasks, 2, true);
                assert_eq!(summary.num_masters, nodes);
            }
        }
    }
}

#[test]
fn seats_without_a_cpu() {
    let summary = check(&Farm::new(vec![CpuSlot::default(); 3]), 5000, 3, false);
    assert!(summary.workers.iter().all(|worker| worker.cpu_slot == CpuSlot::default()));
}

#[test]
fn workers_run_where_their_seats_are() {
    let cpu_slots = cpu_slots(4);
    let summary = check(&Farm::new(cpu_slots.clone()).with_task_timing(true), 5000, 4, false);
    for (cpu_slot, worker) in cpu_slots.iter().zip(&summary.workers) {
        assert_eq!((Some(worker.cpu), &worker.cpu_slot), (cpu_slot.cpu, cpu_slot));
        assert!(worker.busy_time.is_some_and(|busy| !busy.is_zero()) || worker.tasks == 0);
    }
}

#[test]
fn random_lengths_under_many_seeds() {
    for seed in 0..20 {
        let workers = 1 + seed as usize % 5;
        let tasks_per_worker = 1 + mix(seed) as usize % 40;
        check(&Farm::new(cpu_slots(workers)).with_tasks_per_worker(tasks_per_worker), 5000, seed, false);
        check(&Farm::new(seats_on(workers, 2.min(workers))).with_tasks_per_worker(tasks_per_worker), 5000, seed, true);
    }
}

/// A worker at a long task is given no more than it has room for, and the others do the rest.
#[test]
fn a_slow_task_does_not_hold_up_the_others() {
    let farm = Farm::new(vec![CpuSlot::default(); 2]).with_tasks_per_worker(8);
    let done = AtomicU64::new(0);
    let mut numbers = 0..12_u64;
    let summary = farm
        .run_tasks(
            |_| 0,
            |_| Ok(()),
            |task| Ok(numbers.next().map(|number| *task = number).is_some()),
            |(), task| {
                // The first task ends when all but those that may queue behind it are done.
                while *task == 0 && done.load(Ordering::Acquire) < 6 {
                    std::thread::yield_now();
                }
                done.fetch_add(1, Ordering::Release);
                Ok::<(), String>(())
            },
            |_| Ok(()),
        )
        .expect("nothing fails");
    assert_eq!(summary.tasks, 12);
}

/// Workers' states are theirs alone.
#[test]
fn a_state_for_each_worker() {
    let made = AtomicU64::new(0);
    let mut numbers = 0..1000_u64;
    let mut seen = [0_u64; 3];
    Farm::new(cpu_slots(3))
        .run_tasks(
            |_| (0, 0),
            |_| Ok((made.fetch_add(1, Ordering::Relaxed), 0)),
            |task| {
                Ok(numbers.next().is_some_and(|number| {
                    *task = (number, 0);
                    true
                }))
            },
            |(worker, count), task| {
                *count += 1;
                *task = (*worker, *count);
                Ok::<(), String>(())
            },
            |(worker, count)| {
                seen[*worker as usize] += 1;
                assert_eq!(seen[*worker as usize], *count, "a worker's tasks come back in its order");
                Ok(())
            },
        )
        .expect("nothing fails");
    assert_eq!((made.into_inner(), seen.iter().sum::<u64>()), (3, 1000));
}
