//! GC content of made reads, a batch at a time, by all CPUs: `cargo run --release -p genuma-farm --example gc [THREADS [BATCHES]]`.
//!
//! The master makes batches and prints results in order; workers count.

use std::io::{BufWriter, Write, stdout};

use anyhow::{Context, Result};
use genuma_farm::{Farm, allocate_touched_buffer, assign_cpu_slots};
use genuma_machine::topology::{Sysfs, TopologySource};

/// Reads in a batch, and bases in a read.
const READS: usize = 1000;
const LENGTH: usize = 150;

/// A batch on its way out, its GC content on the way back.
struct Batch {
    number: u64,
    bases: Vec<u8>,
    gc: f64,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|text| text.parse::<u64>().with_context(|| format!("'{text}' is no number: give threads and batches")));
    let topology = Sysfs::new().topology()?;
    let threads = arguments.next().transpose()?.unwrap_or(topology.allowed.cpus.len() as u64);
    let batches = arguments.next().transpose()?.unwrap_or(200);

    let (mut random, mut read) = (1_u64, 0);
    let mut out = BufWriter::new(stdout().lock());
    // A batch takes some 0.1 ms: a few for each worker are enough.
    let farm = Farm::new(assign_cpu_slots(&topology, threads as usize)).with_tasks_per_worker(8).with_task_timing(true);
    let summary = farm.run_tasks(
        |_seat| Batch { number: 0, bases: allocate_touched_buffer(READS * LENGTH), gc: 0.0 },
        |_seat| Ok(()),
        |batch| {
            batch.number = read;
            batch.bases.clear();
            batch.bases.extend((0..READS * LENGTH).map(|_| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                b"ACGT"[(random >> 62) as usize]
            }));
            read += 1;
            Ok(read <= batches)
        },
        |(), batch| {
            let gc = batch.bases.iter().filter(|&&base| base == b'G' || base == b'C').count();
            batch.gc = gc as f64 / batch.bases.len() as f64;
            Ok(())
        },
        |batch| writeln!(out, "batch {}\tGC {:.4}", batch.number, batch.gc),
    )?;
    out.flush()?;
    drop(out);
    for worker in &summary.workers {
        let busy = worker.busy_time.unwrap_or_default().as_secs_f64() * 1e3;
        eprintln!("{} on CPU {}: {} batches in {busy:.1} ms", worker.cpu_slot, worker.cpu, worker.tasks);
    }
    eprintln!("{} batches through {} places", summary.tasks, summary.allocated_tasks);
    Ok(())
}
