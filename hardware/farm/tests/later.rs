//! A source that waits for results is called again when there are more results, and never waits for ever.

mod common;

use std::sync::atomic::{AtomicU64, Ordering};

use common::{cpu_slots, mix, seats_on, toil};
use genuma_farm::{Error, Farm, FarmSummary, SourceStatus};

/// Farms of one and of three masters, with few and many tasks.
fn farms() -> Vec<(Farm, bool)> {
    let mut farms = Vec::new();
    for tasks_per_worker in [1, 2, 64] {
        for workers in [1, 2, 5] {
            farms.push((Farm::new(cpu_slots(workers)).with_tasks_per_worker(tasks_per_worker), false));
        }
        farms.push((Farm::new(seats_on(5, 3)).with_tasks_per_worker(tasks_per_worker), true));
    }
    farms
}

/// Sends numbers through: blocks of `block` tasks, of which one begins when all but the `ahead` last blocks before it are
/// handed on.
fn run(farm: &Farm, masters: bool, tasks: u64, block: u64, ahead: u64) -> Result<FarmSummary, Error<String>> {
    let (mut read, mut later) = (0, 0);
    let handed_on = AtomicU64::new(0);
    let source = |task: &mut u64| {
        if read == tasks {
            return Ok(SourceStatus::End);
        }
        let known = handed_on.load(Ordering::Acquire);
        let wanted = (read / block).saturating_sub(ahead) * block;
        if known < wanted {
            later += 1;
            return Ok(SourceStatus::WaitForResult);
        }
        *task = read;
        read += 1;
        Ok(SourceStatus::Filled)
    };
    let work = |(): &mut (), task: &mut u64| {
        toil(*task, mix(*task) % 3000);
        Ok(())
    };
    let sink = |task: &mut u64| {
        assert_eq!(*task, handed_on.fetch_add(1, Ordering::Release));
        Ok(())
    };
    let summary = match masters {
        true => farm.run_tasks_with_master_per_node(|_| 0, |_| Ok(()), source, work, sink),
        false => farm.run_tasks(|_| 0, |_| Ok(()), source, work, sink),
    };
    // A single master reads on until there is no room: with room for two it comes upon the one that must wait.
    if !masters && farm.num_allocated_tasks() > 1 && tasks > 1 && (block, ahead) == (1, 0) {
        assert!(later > 0, "the source never had to wait: {farm:?}");
    }
    summary
}

#[test]
fn blocks_that_wait_for_blocks() {
    for (farm, masters) in farms() {
        for (block, ahead) in [(1, 0), (1, 1), (7, 0), (7, 1), (100, 0), (100, 1), (100, 3)] {
            for tasks in [0, 1, 7, 8, 250, 3000] {
                let summary = run(&farm, masters, tasks, block, ahead).expect("nothing fails");
                assert_eq!(summary.tasks, tasks, "{farm:?}, blocks of {block}, {ahead} ahead");
            }
        }
    }
}

#[test]
fn waiting_for_nothing_is_an_error() {
    for (farm, masters) in farms() {
        for end in [0_u64, 1, 5, 300] {
            let mut read = 0;
            let source = |task: &mut u64| {
                if read == end {
                    return Ok::<_, String>(SourceStatus::WaitForResult);
                }
                (*task, read) = (read, read + 1);
                Ok(SourceStatus::Filled)
            };
            let done = match masters {
                true => farm.run_tasks_with_master_per_node(|_| 0, |_| Ok(()), source, |(), _| Ok(()), |_| Ok(())),
                false => farm.run_tasks(|_| 0, |_| Ok(()), source, |(), _| Ok(()), |_| Ok(())),
            };
            let error = done.expect_err("nothing more can come");
            assert!(matches!(error, Error::SourceDeadlock { task } if task == end), "{error}");
            assert_eq!(
                error.to_string(),
                format!(
                    "internal error, please report: reading task {end}: the source waits for a result, but the results of all {end} earlier tasks have been passed on"
                )
            );
        }
    }
}

/// A fault of what the source waits for ends the farm with that fault.
#[test]
fn what_is_waited_for_may_fail() {
    for (farm, masters) in farms() {
        let mut read = 0;
        let source = |task: &mut u64| {
            if read == 1 {
                return Ok(SourceStatus::WaitForResult);
            }
            (*task, read) = (read, read + 1);
            Ok(SourceStatus::Filled)
        };
        let work = |(): &mut (), _: &mut u64| Err("bad".to_owned());
        let done = match masters {
            true => farm.run_tasks_with_master_per_node(|_| 0, |_| Ok(()), source, work, |_| Ok(())),
            false => farm.run_tasks(|_| 0, |_| Ok(()), source, work, |_| Ok(())),
        };
        assert!(matches!(done, Err(Error::ClosureFailed { .. })), "{done:?}");
    }
}
