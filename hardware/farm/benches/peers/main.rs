//! Our farm beside others on tasks of several lengths: `make bench-farm`.
//!
//! Criterion measures; what it found is then printed as one table of medians and ratios.

mod farms;
mod load;

use std::fs;
use std::path::Path;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput};
use genuma_farm::CpuSlot;
use genuma_machine::placement::pin;

use farms::Size;
use load::Load;

const LOADS: [Load; 6] = [
    Load { name: "1us", tasks: 100_000, length: 1.0, skewed: false },
    Load { name: "1us skewed", tasks: 100_000, length: 1.0, skewed: true },
    Load { name: "10us", tasks: 20_000, length: 10.0, skewed: false },
    Load { name: "10us skewed", tasks: 10_000, length: 10.0, skewed: true },
    Load { name: "1ms", tasks: 200, length: 1000.0, skewed: false },
    Load { name: "1ms skewed", tasks: 256, length: 1000.0, skewed: true },
];

type Run = fn(&Size, &Load);
const FARMS: [(&str, Run); 6] = [
    ("farm", farms::ours),
    ("two masters", farms::two_masters),
    ("crossbeam", farms::crossbeam),
    ("mutex", farms::mutex),
    ("mutex swapped", farms::mutex_swapped),
    ("rayon", farms::rayon),
];

/// Where criterion puts what it finds.
const FOUND: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/peers");

fn main() {
    // Numbers of an earlier run do not belong into this one's table.
    let _ = fs::remove_dir_all(FOUND);
    let cpus = pin::allowed_cpus();
    let cpu_slots: Vec<CpuSlot> = cpus.iter().map(|cpu| CpuSlot { cpu: Some(cpu), node: None }).take(2).collect();
    let size = Size { cpu_slots, tasks_per_worker: 256 };

    let mut criterion = Criterion::default()
        .output_directory(Path::new(FOUND))
        .sample_size(15)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();
    for load in &LOADS {
        let mut group = criterion.benchmark_group(load.name);
        group.throughput(Throughput::Elements(load.tasks));
        for (name, run) in FARMS {
            group.bench_function(BenchmarkId::from_parameter(name), |b| b.iter(|| run(&size, load)));
        }
        group.finish();
    }
    criterion.final_summary();
    table(&size);
}

/// Medians as tasks a second, and how many times faster the farm is than each other.
fn table(size: &Size) {
    let workers = size.cpu_slots.len();
    println!(
        "\n{workers} workers, {} tasks each; 1000 tasks/s, and the farm's rate as a multiple of it",
        size.tasks_per_worker
    );
    print!("{:<14}{:>10}", "tasks", "ideal");
    FARMS.iter().for_each(|(name, _)| print!("{name:>20}"));
    println!();
    for load in &LOADS {
        let medians = FARMS.map(|(name, _)| median(load.name, name));
        if medians.iter().all(Option::is_none) {
            continue;
        }
        let rate = |seconds: f64| load.tasks as f64 / seconds / 1e3;
        print!("{:<14}{:>10.1}", load.name, rate(load.cpu_seconds() / workers as f64));
        for seconds in medians {
            let cell = seconds.map(|seconds| {
                let ratio = medians[0].map(|ours| format!(" ({:.2}x)", seconds / ours)).unwrap_or_default();
                format!("{:.1}{ratio}", rate(seconds))
            });
            print!("{:>20}", cell.unwrap_or_default());
        }
        println!();
    }
}

/// Seconds of a run, as criterion found.
fn median(load: &str, farm: &str) -> Option<f64> {
    let folder = |name: &str| name.replace(' ', "_");
    let candidates = [folder(load), load.to_owned()];
    candidates.iter().find_map(|load| {
        [folder(farm), farm.to_owned()].iter().find_map(|farm| {
            let path = Path::new(FOUND).join(load).join(farm).join("new/estimates.json");
            let found: serde_json::Value = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
            Some(found["median"]["point_estimate"].as_f64()? / 1e9)
        })
    })
}
