//! The probe's triad and chase alone, for `bench/probe.sh` to hold beside the same in C.
//!
//! `bench triad THREADS BYTES REPETITIONS` prints GB/s of each repetition over three arrays of so many bytes,
//! `bench chase BYTES LOADS REPETITIONS` prints ns a load; both on huge pages of CPU 0's node.

use genuma_machine::topology::Source;
use genuma_probe::backend::Backend;
use genuma_probe::native::Native;
use genuma_probe::plan::{Chase, Part, Stream};
use genuma_probe::profile::{Kernel, PageKind, Spot};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u64> = words.iter().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let topology = genuma_machine::topology::Sysfs::new().topology()?;
    let node = topology.cpus.first().ok_or("no CPU")?.node;
    let mut machine = Native::new(&topology);
    let results = match (words.first().map(String::as_str), &numbers[..]) {
        (Some("triad"), &[threads, bytes, repetitions]) => machine.stream(&Stream {
            kernel: Kernel::Triad,
            cpu_node: Some(node),
            cpus: topology.allowed.cpus.iter().take(threads as usize).collect(),
            memory: Spot::Node(node),
            pages: PageKind::Huge,
            bytes: 3 * bytes,
            repetitions: repetitions as u32,
            part: Part::Bandwidth,
        })?,
        (Some("chase"), &[bytes, loads, repetitions]) => machine.chase(&Chase {
            cpu: 0,
            cpu_node: node,
            memory_node: node,
            pages: PageKind::Huge,
            // A huge page at least, as in C.
            buffer: bytes.max(4 << 20),
            bytes,
            dram: true,
            warm_up: bytes / 64,
            loads,
            repetitions: repetitions as u32,
        })?,
        _ => {
            return Err("usage: bench triad THREADS BYTES REPETITIONS | chase BYTES LOADS REPETITIONS".into());
        }
    };
    for result in results {
        println!("{result:.4}");
    }
    for remark in machine.remarks() {
        eprintln!("{remark}");
    }
    Ok(())
}
