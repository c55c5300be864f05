//! What was measured: the types behind `machine.json`. Every field and unit is in `docs/formats/machine.md`.

use std::collections::BTreeMap;

use genuma_machine::{IdSet, Topology};
use serde::{Deserialize, Serialize};

/// Word in the field `format` of every profile.
pub const FORMAT: &str = "genuma-machine";
/// Version of the format that this crate writes, and the only one it reads.
pub const VERSION: u32 = 1;

/// A machine's memory as measured: topology, theory, latency, bandwidth, loaded latency, contention.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MachineProfile {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// Program and version that wrote this.
    pub made_by: String,
    /// When measuring began, seconds since 1970-01-01 UTC; absent when the clock cannot be read.
    pub made_at: Option<u64>,
    /// Name of the machine; absent when it has none.
    pub host: Option<String>,
    /// How it was measured.
    pub effort: Effort,
    /// What the machine is made of, as seen when measuring began.
    pub topology: Topology,
    /// What the memory modules promise.
    pub theory: Theory,
    /// Latency of an idle machine.
    pub latency: Latency,
    /// Bandwidth, one entry a kernel, place and number of threads.
    pub bandwidth: Vec<Bandwidth>,
    /// Latency under load.
    pub loaded: Vec<LoadedCurve>,
    /// What is left to each thread when many use the same memory.
    pub contention: Vec<ContentionCurve>,
    /// Where the measured buffers were asked to be, and where the kernel said they were.
    pub buffers: Vec<BufferCheck>,
    /// Devices beside the CPUs; profiles made before they were looked for have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceProfile>,
    /// What could not be measured or read, and what was done instead, one sentence each.
    pub missing: Vec<String>,
}

/// A device beside the CPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceProfile {
    /// Name.
    pub name: String,
    /// `gpu`, `accelerator`, `cpu` or `other`.
    pub kind: String,
    /// Driver and its version.
    pub driver: String,
    /// Bytes of its memory.
    pub memory: u64,
    /// Node on which it hangs, if the kernel knows.
    pub node: Option<u32>,
    /// Copies of pinned memory to it, GB/s.
    pub to_gbs: f64,
    /// Copies from it, GB/s.
    pub from_gbs: f64,
    /// Atomic changes of 64-bit words at random places of its memory, millions a second.
    pub random_mops: f64,
}

/// How much was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// `quick`, `full`, or another plan's name.
    pub plan: String,
    /// Seconds that the plan was expected to take.
    pub expected_s: f64,
    /// Seconds that it took.
    pub took_s: f64,
    /// Instruction set of the kernels: `scalar`, `avx2`, `avx512`.
    pub instructions: String,
}

/// A quantity measured several times. The unit is [`Measured::unit`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// What the numbers are.
    pub unit: Unit,
    /// The middle of the repetitions.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Median of the distances from the median: half of the repetitions lie within it.
    pub mad: f64,
    /// How often it was measured.
    pub repetitions: u32,
}

/// Unit of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Nanoseconds for one access.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// 1e9 bytes a second.
    #[serde(rename = "GB/s")]
    GigabytesPerSecond,
}

/// The pages behind a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PageKind {
    /// The machine's smallest, usually 4 KiB.
    Base,
    /// Transparent huge pages, usually 2 MiB.
    Huge,
}

/// What the memory modules promise, as the firmware (SMBIOS) describes them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Theory {
    /// Channels in use × transfers a second × bytes a transfer, in 1e9 bytes a second, for the whole machine; absent when unknown.
    pub peak_gbs: Option<f64>,
    /// Memory channels in use; absent when unknown.
    pub channels: Option<u32>,
    /// The modules that are plugged in.
    pub modules: Vec<MemoryModule>,
    /// Why the peak is unknown, one sentence; absent when it is known.
    pub unknown_because: Option<String>,
}

/// A memory module (SMBIOS type 17).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryModule {
    /// Its slot, as the board names it.
    pub locator: String,
    /// Its bank or channel, as the board names it.
    pub bank: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Million transfers a second at which it runs; absent when the firmware does not say.
    pub mts: Option<u32>,
    /// Bits of data in a transfer, without those for error correction; absent when the firmware does not say.
    pub width: Option<u32>,
}

/// Latency of dependent loads on an idle machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Latency against the size of the chased buffer: complete for local memory, for remote memory perhaps only large sizes.
    pub curves: Vec<LatencyCurve>,
    /// The steps of the first complete curve on huge pages, or on base pages without them: caches, then DRAM.
    pub levels: Vec<Level>,
    /// Latency of DRAM for each pair of nodes and kind of pages.
    pub pairs: Vec<PairLatency>,
}

/// Latency against the size of the chased buffer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyCurve {
    /// Node of the thread.
    pub cpu_node: u32,
    /// Node of the memory.
    pub memory_node: u32,
    /// Pages of the buffer.
    pub pages: PageKind,
    /// By rising size.
    pub points: Vec<LatencyPoint>,
}

/// One point of a [`LatencyCurve`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencyPoint {
    /// Bytes chased over.
    pub bytes: u64,
    /// ns a load.
    pub latency: Measured,
}

/// A plateau of the latency curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// `L1`, `L2`, …, `DRAM`.
    pub name: String,
    /// Smallest chased buffer on the plateau, bytes.
    pub from_bytes: u64,
    /// Largest chased buffer on the plateau, bytes.
    pub to_bytes: u64,
    /// Size of the cache as the kernel tells it, bytes; absent for DRAM, and when no cache of the topology fits.
    pub cache_bytes: Option<u64>,
    /// ns a load, on the plateau's flattest part.
    pub latency: Measured,
}

/// Latency of DRAM from one node's CPUs to one node's memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairLatency {
    /// Node of the thread.
    pub cpu_node: u32,
    /// Node of the memory.
    pub memory_node: u32,
    /// Pages of the buffer.
    pub pages: PageKind,
    /// Bytes chased over.
    pub bytes: u64,
    /// ns a load.
    pub latency: Measured,
}

/// What a bandwidth thread does with its part of the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kernel {
    /// STREAM: `c = a`; 16 bytes an element are counted.
    Copy,
    /// STREAM: `b = q c`; 16 bytes.
    Scale,
    /// STREAM: `c = a + b`; 24 bytes.
    Add,
    /// STREAM: `a = b + q c`; 24 bytes.
    Triad,
    /// Sum of `a`; 8 bytes.
    Read,
    /// `a = q`; 8 bytes.
    Write,
    /// `a = q` past the caches (non-temporal stores); 8 bytes.
    WriteNt,
    /// Copy past the caches; 16 bytes.
    CopyNt,
    /// Independent reads of cache lines in random order; 64 bytes each.
    Random,
    /// A byte in every 1009 is read and written, the array taken as a ring (lenis2018, eq. 3.3); 64 bytes each (eq. 3.4).
    Strided,
}

/// Where the memory of several threads lies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spot {
    /// On one node.
    Node(u32),
    /// Page by page over these nodes.
    Interleaved(IdSet),
    /// Page by page over nodes in proportion to weights, node to weight.
    Weighted(BTreeMap<u32, u32>),
    /// Each thread's on its own node.
    Local,
}

/// Bandwidth of some threads together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bandwidth {
    /// What they do.
    pub kernel: Kernel,
    /// Their node; absent when they are on several.
    pub cpu_node: Option<u32>,
    /// Where their memory lies.
    pub memory: Spot,
    /// Pages of the memory.
    pub pages: PageKind,
    /// How many threads there are, each on a CPU of its own.
    pub threads: u32,
    /// Their CPUs.
    pub cpus: IdSet,
    /// Bytes that all threads together go over once, all arrays counted.
    pub bytes: u64,
    /// GB/s of all threads together; bytes are counted as STREAM does, without the lines a store fetches first.
    pub total: Measured,
}

/// Latency of one thread against what others make of traffic at the same time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadedCurve {
    /// Node of all threads.
    pub cpu_node: u32,
    /// Node of all memory.
    pub memory_node: u32,
    /// Pages of all memory.
    pub pages: PageKind,
    /// CPUs that make the traffic.
    pub injectors: IdSet,
    /// By growing rate.
    pub points: Vec<LoadedPoint>,
}

/// One point of a [`LoadedCurve`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LoadedPoint {
    /// Idle steps of an injector after each KiB it reads; absent when injectors rest altogether.
    pub pause: Option<u32>,
    /// GB/s of all injectors together; absent when they rest.
    pub injected: Option<Measured>,
    /// ns a load of the thread that chases.
    pub latency: Measured,
}

/// Bandwidth as more and more threads join.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContentionCurve {
    /// What the threads do.
    pub kernel: Kernel,
    /// Where their memory lies: on one node, or spread.
    pub memory: Spot,
    /// Pages of the memory.
    pub pages: PageKind,
    /// By rising number of threads.
    pub points: Vec<ContentionPoint>,
}

/// One point of a [`ContentionCurve`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContentionPoint {
    /// How many threads there are.
    pub threads: u32,
    /// Their CPUs: one hardware thread of each core first, the cores of the memory's node first.
    pub cpus: IdSet,
    /// GB/s of all threads together.
    pub total: Measured,
    /// GB/s of the average thread: `total / threads`.
    pub per_thread: Measured,
}

/// Where a measured buffer was asked to be, and where it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BufferCheck {
    /// The policy asked for, in words.
    pub asked: String,
    /// Pages of the buffer.
    pub pages: PageKind,
    /// Bytes of all buffers placed this way.
    pub bytes: u64,
    /// Bytes found on each node; empty when the kernel does not tell.
    pub found: BTreeMap<u32, u64>,
    /// Whether the kernel confirms what was asked; absent when it does not tell.
    pub as_asked: Option<bool>,
}

impl MachineProfile {
    /// ns of a load from `memory_node`'s DRAM by a CPU of `cpu_node`; huge pages before base pages.
    pub fn latency_between(&self, cpu_node: u32, memory_node: u32) -> Option<&Measured> {
        let pairs = self.latency.pairs.iter();
        let of_pair = pairs.filter(|pair| pair.cpu_node == cpu_node && pair.memory_node == memory_node);
        of_pair.max_by_key(|pair| pair.pages).map(|pair| &pair.latency)
    }

    /// GB/s of `kernel` by the most threads of `cpu_node` that were measured on `memory_node`'s memory.
    pub fn bandwidth_between(&self, kernel: Kernel, cpu_node: u32, memory_node: u32) -> Option<&Bandwidth> {
        let of_pair = self.bandwidth.iter().filter(|b| {
            b.kernel == kernel && b.cpu_node == Some(cpu_node) && b.memory == Spot::Node(memory_node)
        });
        of_pair.max_by_key(|b| b.threads)
    }
}
