//! 10⁷ tasks of next to nothing through 64 workers on the CPUs there are: order is checked for each, memory at the end.

use std::fs;
use std::time::Instant;

use genuma_farm::{CpuSlot, Farm};
use genuma_machine::placement::pin;

const TASKS: u64 = 10_000_000;
const WORKERS: usize = 64;

fn main() {
    let cpus: Vec<u32> = pin::allowed_cpus().iter().collect();
    let cpu_slots = cpus.iter().cycle().take(WORKERS).map(|&cpu| CpuSlot { cpu: Some(cpu), node: None }).collect();
    let farm = Farm::new(cpu_slots);
    println!("{WORKERS} workers on {} CPUs, {} tasks made", cpus.len(), farm.num_allocated_tasks());
    for tasks in [TASKS / 100, TASKS / 10, TASKS] {
        let (mut read, mut next) = (0, 0);
        let start = Instant::now();
        let summary = farm
            .run_tasks(
                |_| (0_u64, 0_u64),
                |_| Ok(()),
                |task| {
                    *task = (read, 0);
                    read += 1;
                    Ok(read <= tasks)
                },
                |(), (number, result)| {
                    *result = number.wrapping_mul(3);
                    Ok::<(), String>(())
                },
                |&mut task| {
                    assert_eq!(task, (next, next * 3), "out of order");
                    next += 1;
                    Ok(())
                },
            )
            .expect("nothing fails");
        let seconds = start.elapsed().as_secs_f64();
        assert_eq!((next, summary.tasks, summary.allocated_tasks), (tasks, tasks, farm.num_allocated_tasks()));
        println!(
            "{tasks} tasks in order: {seconds:.2} s, {:.0} tasks/ms, peak of the process {} KiB",
            tasks as f64 / seconds / 1e3,
            peak()
        );
    }
}

/// The most memory the process ever had resident, in KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
