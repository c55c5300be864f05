//! Whatever fails, wherever: an error that says where, the same one each time, and never a hang.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{cpu_slots, seats_on};
use genuma_farm::{CpuSlot, Error, FailedClosure, Farm, FarmSummary};

/// Which stage fails, and for which task.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    Source(u64),
    Work(u64),
    WorkPanic(u64),
    Sink(u64),
    SourcePanic(u64),
    SinkPanic(u64),
}

/// Runs `tasks` numbers through a farm where `faults` happen. Gives the result and how many were handed on.
fn run(farm: &Farm, masters: bool, tasks: u64, faults: &[Fault]) -> (Result<FarmSummary, Error<String>>, u64) {
    // Hundreds of panics are meant here: their words are enough, backtraces take long.
    static HOOK: Once = Once::new();
    HOOK.call_once(|| set_hook(Box::new(|panic| eprintln!("{panic}"))));
    let has = |fault| faults.contains(&fault);
    let mut read = 0;
    let handed_on = AtomicU64::new(0);
    let source = |task: &mut u64| {
        assert!(!has(Fault::SourcePanic(read)), "source broke at {read}");
        if has(Fault::Source(read)) {
            return Err(format!("no line {read}"));
        }
        *task = read;
        read += 1;
        Ok(read <= tasks)
    };
    let work = |(): &mut (), task: &mut u64| {
        assert!(!has(Fault::WorkPanic(*task)), "work broke at {task}");
        if has(Fault::Work(*task)) { Err(format!("bad task {task}")) } else { Ok(()) }
    };
    let sink = |task: &mut u64| {
        assert!(!has(Fault::SinkPanic(*task)), "sink broke at {task}");
        if has(Fault::Sink(*task)) {
            return Err(format!("disk full at {task}"));
        }
        assert_eq!(*task, handed_on.fetch_add(1, Ordering::Relaxed));
        Ok(())
    };
    let result = if masters {
        farm.run_tasks_with_master_per_node(|_| 0, |_| Ok(()), source, work, sink)
    } else {
        farm.run_tasks(|_| 0, |_| Ok(()), source, work, sink)
    };
    (result, handed_on.into_inner())
}

/// Farms of one and of three masters, with few and many tasks.
fn farms() -> Vec<(Farm, bool)> {
    let mut farms = Vec::new();
    for tasks_per_worker in [1, 3, 64] {
        for workers in [1, 4] {
            farms.push((Farm::new(cpu_slots(workers)).with_tasks_per_worker(tasks_per_worker), false));
        }
        farms.push((Farm::new(seats_on(5, 3)).with_tasks_per_worker(tasks_per_worker), true));
    }
    farms
}

#[test]
fn the_first_fault_of_the_input_is_returned() {
    use Fault::{Sink, Source, Work, WorkPanic};
    let cases: &[(&[Fault], u64, &str)] = &[
        (&[Source(0)], 0, "reading task 0: no line 0"),
        (&[Source(777)], 777, "reading task 777: no line 777"),
        (&[Work(0)], 0, "task 0 on worker W: bad task 0"),
        (&[Work(500)], 500, "task 500 on worker W: bad task 500"),
        (&[Work(999)], 999, "task 999 on worker W: bad task 999"),
        (&[WorkPanic(0)], 0, "task 0 on worker W: panicked: work broke at 0"),
        (&[WorkPanic(500)], 500, "task 500 on worker W: panicked: work broke at 500"),
        (&[WorkPanic(999)], 999, "task 999 on worker W: panicked: work broke at 999"),
        (&[Sink(0)], 0, "passing on task 0: disk full at 0"),
        (&[Sink(321)], 321, "passing on task 321: disk full at 321"),
        (&[Work(501), Work(500), WorkPanic(502)], 500, "task 500 on worker W: bad task 500"),
        (&[WorkPanic(500), WorkPanic(501), Work(503)], 500, "task 500 on worker W: panicked: work broke at 500"),
        (&[Source(510), Work(505)], 505, "task 505 on worker W: bad task 505"),
        (&[Source(510), Sink(509)], 509, "passing on task 509: disk full at 509"),
        (&[Work(600), Sink(600)], 600, "task 600 on worker W: bad task 600"),
    ];
    for (farm, masters) in farms() {
        for (faults, handed_on, message) in cases {
            for _ in 0..5 {
                let (result, count) = run(&farm, masters, 1000, faults);
                let error = result.expect_err("a fault is an error");
                let found = match &error {
                    Error::ClosureFailed { stage: FailedClosure::Work { worker, .. }, .. }
                    | Error::ClosurePanicked { stage: FailedClosure::Work { worker, .. }, .. } => {
                        error.to_string().replacen(&format!("worker {worker}"), "worker W", 1)
                    }
                    _ => error.to_string(),
                };
                assert_eq!((found.as_str(), count), (*message, *handed_on), "{farm:?}");
            }
        }
    }
}

#[test]
fn a_panic_of_source_or_sink_goes_on_after_the_workers_have_ended() {
    for (farm, masters) in farms() {
        for fault in [
            Fault::SourcePanic(0),
            Fault::SourcePanic(700),
            Fault::SourcePanic(1000),
            Fault::SinkPanic(0),
            Fault::SinkPanic(700),
            Fault::SinkPanic(999),
        ] {
            let panic = catch_unwind(AssertUnwindSafe(|| run(&farm, masters, 1000, &[fault])));
            let message = panic.expect_err("the panic goes on").downcast::<String>().expect("with its words");
            let expected = match fault {
                Fault::SourcePanic(task) => format!("source broke at {task}"),
                Fault::SinkPanic(task) => format!("sink broke at {task}"),
                _ => unreachable!("only these panic"),
            };
            assert!(message.contains(&expected), "{message}");
        }
    }
}

/// Runs a farm of three workers whose making fails, and gives what it says.
fn making(
    make_task: impl Fn(&CpuSlot) -> u64 + Sync,
    make_state: impl Fn(&CpuSlot) -> Result<(), String> + Sync,
) -> String {
    let cpu_slots = (0..3).map(|node| CpuSlot { cpu: None, node: Some(node) }).collect();
    let result = Farm::new(cpu_slots).run_tasks(make_task, make_state, |_| Ok(true), |(), _| Ok(()), |_| Ok(()));
    result.expect_err("nothing is made").to_string()
}

#[test]
fn faults_of_making_are_the_first_workers() {
    let second = |cpu_slot: &CpuSlot| cpu_slot.node >= Some(1);
    let state = |cpu_slot: &CpuSlot| if second(cpu_slot) { Err("no index".to_owned()) } else { Ok(()) };
    assert_eq!(making(|_| 0, state), "making the state of worker 1: no index");
    let state = |cpu_slot: &CpuSlot| {
        assert!(!second(cpu_slot), "no memory");
        Ok(())
    };
    assert_eq!(making(|_| 0, state), "making the state of worker 1: panicked: no memory");
    let task = |cpu_slot: &CpuSlot| {
        assert!(!second(cpu_slot), "no memory");
        0
    };
    assert_eq!(making(task, |_| Ok(())), "making the tasks of worker 1: panicked: no memory");
}

#[test]
fn a_cpu_that_may_not_be_used() {
    let mut cpu_slots = cpu_slots(2);
    cpu_slots[1] = CpuSlot { cpu: Some(60_000), node: Some(7) };
    for masters in [false, true] {
        let (result, handed_on) = run(&Farm::new(cpu_slots.clone()), masters, 10, &[]);
        let message = result.expect_err("there is no such CPU").to_string();
        assert!(
            message
                .starts_with("worker 1 cannot run on CPU 60000 of node 7: CPU 60000 does not exist or is not allowed"),
            "{message}"
        );
        assert_eq!(handed_on, 0);
    }
}

#[test]
fn a_farm_of_nothing() {
    for farm in [Farm::new(Vec::new()), Farm::new(cpu_slots(2)).with_tasks_per_worker(0)] {
        for masters in [false, true] {
            let (result, _) = run(&farm, masters, 10, &[]);
            assert!(matches!(result, Err(Error::NoWorkersOrTasks { .. })), "{farm:?}");
        }
    }
}
