//! The probe's triad kernel and pointer chase alone, for a comparison with the same in C by `bench/probe.sh`.
//!
//! `bench triad THREADS BYTES REPETITIONS` prints GB/s of each repetition over three arrays of BYTES bytes,
//! `bench chase BYTES LOADS REPETITIONS` prints ns per load; both use huge pages of the node of CPU 0.

use genuma_machine::topology::TopologySource;
use genuma_probe::backend::MeasurementBackend;
use genuma_probe::local_machine::LocalMachine;
use genuma_probe::plan::{BandwidthJob, LatencyJob, ResultSection};
use genuma_probe::profile::{BandwidthKernel, BufferPageKind, MemoryLocation};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u64> = words.iter().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let topology = genuma_machine::topology::Sysfs::new().topology()?;
    let node = topology.cpus.first().ok_or("no CPU")?.node;
    let mut machine = LocalMachine::new(&topology);
    let results = match (words.first().map(String::as_str), &numbers[..]) {
        (Some("triad"), &[threads, bytes, repetitions]) => machine.measure_bandwidth(&BandwidthJob {
            kernel: BandwidthKernel::Triad,
            cpu_node: Some(node),
            cpus: topology.allowed.cpus.iter().take(threads as usize).collect(),
            memory: MemoryLocation::Node(node),
            pages: BufferPageKind::Huge,
            arrays_bytes: 3 * bytes,
            repetitions: repetitions as u32,
            result_section: ResultSection::Bandwidth,
        })?,
        (Some("chase"), &[bytes, loads, repetitions]) => machine.measure_latency(&LatencyJob {
            cpu: 0,
            cpu_node: node,
            memory_node: node,
            pages: BufferPageKind::Huge,
            // A huge page at least, as in C.
            buffer_bytes: bytes.max(4 << 20),
            chain_bytes: bytes,
            is_dram: true,
            warm_up_loads: bytes / 64,
            loads_per_repetition: loads,
            repetitions: repetitions as u32,
        })?,
        _ => {
            return Err("usage: bench triad THREADS BYTES REPETITIONS | chase BYTES LOADS REPETITIONS".into());
        }
    };
    for result in results {
        println!("{result:.4}");
    }
    for remark in machine.warnings() {
        eprintln!("{remark}");
    }
    Ok(())
}
