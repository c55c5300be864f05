//! The types of a machine profile, `machine.json`. Every field and unit is documented in `docs/formats/machine.md`.

use std::collections::BTreeMap;

use genuma_machine::{IdSet, Topology};
use serde::{Deserialize, Serialize};

/// Value of the field `format` of every profile.
pub const PROFILE_FORMAT_NAME: &str = "genuma-machine";
/// Version of the profile format that this crate writes, and the only one it reads.
pub const PROFILE_FORMAT_VERSION: u32 = 1;

/// A machine profile: topology and measured memory performance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MachineProfile {
    /// Always [`PROFILE_FORMAT_NAME`].
    pub format: String,
    /// Always [`PROFILE_FORMAT_VERSION`].
    pub version: u32,
    /// Program and version that wrote the profile.
    pub made_by: String,
    /// Time when measuring began, in seconds since 1970-01-01 UTC. `None` if the clock cannot be read.
    pub made_at: Option<u64>,
    /// Host name. `None` if the machine has none, or it was left out.
    pub host: Option<String>,
    /// Description of the load by other programs during the measurement. `None` if the machine was idle or the load is
    /// unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<String>,
    /// Plan, duration and instruction set of the measurements.
    pub effort: MeasurementRunInfo,
    /// Topology of the machine when measuring began.
    pub topology: Topology,
    /// Theoretical bandwidth of the memory modules.
    pub theory: TheoreticalBandwidth,
    /// Memory latency of the idle machine.
    pub latency: LatencyMeasurements,
    /// Bandwidth, one entry per kernel, node of the threads, memory location, page kind and number of threads.
    pub bandwidth: Vec<BandwidthMeasurement>,
    /// Memory latency under load.
    pub loaded: Vec<LoadedLatencyCurve>,
    /// Bandwidth per thread when many threads use the same memory.
    pub contention: Vec<ContentionCurve>,
    /// Requested and actual locations of the measured buffers.
    pub buffers: Vec<BufferPlacementCheck>,
    /// GPUs and other devices. Empty in profiles of versions that did not measure devices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceProfile>,
    /// Sentences for the user on what could not be measured or read, and what was used instead.
    pub missing: Vec<String>,
}

/// A GPU or another OpenCL device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceProfile {
    /// Name of the device, as its driver reports it.
    pub name: String,
    /// Device type: `gpu`, `accelerator`, `cpu` or `other`.
    pub kind: String,
    /// Name and version of the driver.
    pub driver: String,
    /// Device memory in bytes.
    #[serde(rename = "memory")]
    pub memory_bytes: u64,
    /// NUMA node that the device is attached to. `None` if the kernel does not report it.
    #[serde(rename = "node")]
    pub numa_node: Option<u32>,
    /// Bandwidth of copies from pinned host memory to the device, in GB/s.
    #[serde(rename = "to_gbs")]
    pub copy_to_device_gbs: f64,
    /// Bandwidth of copies from the device to pinned host memory, in GB/s.
    #[serde(rename = "from_gbs")]
    pub copy_from_device_gbs: f64,
    /// Rate of atomic updates of 64-bit words at random positions in device memory, in millions per second.
    #[serde(rename = "random_mops")]
    pub atomic_updates_mops: f64,
}

/// Plan, duration and instruction set of the measurements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasurementRunInfo {
    /// Name of the plan: `quick`, `full` or another.
    pub plan: String,
    /// Expected duration in seconds.
    pub expected_s: f64,
    /// Actual duration in seconds.
    pub took_s: f64,
    /// Instruction set of the bandwidth kernels: `scalar`, `avx2`, `avx512`.
    pub instructions: String,
}

/// A quantity measured several times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Unit of the values.
    pub unit: MeasurementUnit,
    /// Median of the repetitions.
    pub median: f64,
    /// Smallest value of all repetitions.
    pub min: f64,
    /// Largest value of all repetitions.
    pub max: f64,
    /// Median of the absolute differences between the repetitions and their median.
    #[serde(rename = "mad")]
    pub median_absolute_deviation: f64,
    /// Number of times that the quantity was measured.
    pub repetitions: u32,
}

/// Unit of a measured quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MeasurementUnit {
    /// Nanoseconds per memory access.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// 10^9 bytes per second.
    #[serde(rename = "GB/s")]
    GigabytesPerSecond,
}

/// Kind of pages in which the measured memory was allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BufferPageKind {
    /// Base pages, usually 4 KiB.
    Base,
    /// Transparent huge pages, usually 2 MiB.
    Huge,
}

/// Theoretical memory bandwidth according to the firmware's description of the memory modules (SMBIOS).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TheoreticalBandwidth {
    /// Theoretical bandwidth of the whole machine in GB/s: transfers per second × bytes per transfer, summed over the
    /// memory channels in use. `None` if unknown.
    pub peak_gbs: Option<f64>,
    /// Number of memory channels in use. `None` if unknown.
    pub channels: Option<u32>,
    /// Installed memory modules according to SMBIOS.
    pub modules: Vec<MemoryModule>,
    /// Why the theoretical bandwidth is unknown, one sentence. `None` if it is known.
    pub unknown_because: Option<String>,
}

/// An installed memory module (SMBIOS type 17).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryModule {
    /// Name of the slot on the board.
    pub locator: String,
    /// Name of the bank or channel on the board.
    pub bank: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Configured speed in million transfers per second. `None` if the firmware does not report it.
    #[serde(rename = "mts")]
    pub megatransfers_per_s: Option<u32>,
    /// Data bits per transfer, without error correction bits. `None` if the firmware does not report them.
    #[serde(rename = "width")]
    pub width_bits: Option<u32>,
}

/// Latency of dependent loads on an idle machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyMeasurements {
    /// Latency by chain size: complete curves for local memory, for remote memory possibly only large sizes.
    pub curves: Vec<LatencyCurve>,
    /// Memory levels (caches, then DRAM) found in the first complete latency curve. This curve was measured on huge
    /// pages if the machine has them, else on base pages.
    #[serde(rename = "levels")]
    pub memory_levels: Vec<MemoryLevel>,
    /// DRAM latency of each pair of nodes and page kind.
    #[serde(rename = "pairs")]
    pub node_pairs: Vec<NodePairLatency>,
}

/// Latency as a function of the size of the pointer chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyCurve {
    /// NUMA node of the thread.
    pub cpu_node: u32,
    /// NUMA node of the memory.
    pub memory_node: u32,
    /// Page size of the measured memory.
    pub pages: BufferPageKind,
    /// Points, in ascending order of the chain size.
    pub points: Vec<LatencyPoint>,
}

/// One point of a [`LatencyCurve`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencyPoint {
    /// Size of the pointer chain in bytes.
    pub bytes: u64,
    /// Nanoseconds per load.
    pub latency: Measurement,
}

/// A level of the memory hierarchy: a plateau of the latency curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryLevel {
    /// `L1`, `L2`, …, `DRAM`, or `step N` for a plateau that belongs to no cache.
    pub name: String,
    /// Smallest chain size on the plateau, in bytes.
    pub from_bytes: u64,
    /// Largest chain size on the plateau, in bytes.
    pub to_bytes: u64,
    /// Size of the cache in bytes according to the kernel. `None` for DRAM, and when no cache of the topology fits.
    pub cache_bytes: Option<u64>,
    /// Nanoseconds per load at the flattest point of the plateau; for DRAM at the largest chain.
    pub latency: Measurement,
}

/// DRAM latency from the CPUs of one node to the memory of one node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodePairLatency {
    /// NUMA node of the thread.
    pub cpu_node: u32,
    /// NUMA node of the memory.
    pub memory_node: u32,
    /// Page size of the measured memory.
    pub pages: BufferPageKind,
    /// Size of the pointer chain in bytes.
    pub bytes: u64,
    /// Nanoseconds per load.
    pub latency: Measurement,
}

/// Kernel that a thread of a bandwidth measurement runs on its share of the arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BandwidthKernel {
    /// STREAM copy: `c = a`; counts 16 bytes per element.
    Copy,
    /// STREAM scale: `b = q c`; counts 16 bytes per element.
    Scale,
    /// STREAM add: `c = a + b`; counts 24 bytes per element.
    Add,
    /// STREAM triad: `a = b + q c`; counts 24 bytes per element.
    Triad,
    /// Sum of `a`; counts 8 bytes per element.
    Read,
    /// Fill: `a = q`; counts 8 bytes per element.
    Write,
    /// Fill with non-temporal stores, which bypass the caches: `a = q`; counts 8 bytes per element.
    WriteNt,
    /// Copy with non-temporal stores, which bypass the caches: `c = a`; counts 16 bytes per element.
    CopyNt,
    /// Independent reads of cache lines in random order; counts 64 bytes per read.
    Random,
    /// Increments one byte in every 1009 bytes of the array, taken as a ring (lenis2018, eq. 3.3); counts 64 bytes per
    /// access (eq. 3.4).
    Strided,
}

/// Location of the memory that several threads use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryLocation {
    /// The memory is on this NUMA node.
    Node(u32),
    /// Interleaved page by page over these nodes.
    Interleaved(IdSet),
    /// Interleaved page by page over nodes in proportion to weights (node to weight).
    Weighted(BTreeMap<u32, u32>),
    /// The memory of each thread is on that thread's own node.
    Local,
}

/// Measured bandwidth of several threads together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BandwidthMeasurement {
    /// The kernel that the threads ran.
    pub kernel: BandwidthKernel,
    /// NUMA node of the threads. `None` if they are on several nodes.
    pub cpu_node: Option<u32>,
    /// NUMA nodes on which the memory was.
    pub memory: MemoryLocation,
    /// Page kind of the memory.
    pub pages: BufferPageKind,
    /// Number of threads, each on its own CPU.
    pub threads: u32,
    /// CPUs on which the threads ran.
    pub cpus: IdSet,
    /// Total bytes of the arrays of all threads.
    pub bytes: u64,
    /// Bandwidth of all threads together in GB/s. Bytes are counted as in STREAM, without the cache lines that a
    /// store fetches first.
    pub total: Measurement,
}

/// Latency of one thread as a function of the memory traffic of other threads (injectors).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadedLatencyCurve {
    /// NUMA node of all threads.
    pub cpu_node: u32,
    /// NUMA node of all memory.
    pub memory_node: u32,
    /// Page kind of all memory.
    pub pages: BufferPageKind,
    /// CPUs of the threads that generate traffic.
    pub injectors: IdSet,
    /// Points, in ascending order of the traffic.
    pub points: Vec<LoadedLatencyPoint>,
}

/// A point of a [`LoadedLatencyCurve`]: the read traffic of the injectors, and the latency at this traffic.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LoadedLatencyPoint {
    /// Idle loop iterations of an injector thread after each KiB it reads. `None` if the injectors are idle.
    pub pause: Option<u32>,
    /// Read bandwidth of all injector threads together in GB/s. `None` if they are idle.
    pub injected: Option<Measurement>,
    /// Latency of the pointer-chasing thread in nanoseconds per load.
    pub latency: Measurement,
}

/// Bandwidth as a function of the number of threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContentionCurve {
    /// The kernel that the threads ran.
    pub kernel: BandwidthKernel,
    /// Location of the memory: one node or several.
    pub memory: MemoryLocation,
    /// Page kind of the memory.
    pub pages: BufferPageKind,
    /// Points, in ascending order of the number of threads.
    pub points: Vec<ContentionPoint>,
}

/// One point of a [`ContentionCurve`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContentionPoint {
    /// Number of threads that used the memory at the same time.
    pub threads: u32,
    /// CPUs of the threads: one hardware thread of each core first, the cores of the memory's node first.
    pub cpus: IdSet,
    /// Bandwidth of all threads together in GB/s.
    pub total: Measurement,
    /// Mean bandwidth per thread in GB/s: `total / threads`.
    pub per_thread: Measurement,
}

/// Requested and actual location of the measured buffers of one policy and page kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BufferPlacementCheck {
    /// The requested memory policy as text.
    #[serde(rename = "asked")]
    pub requested_policy: String,
    /// Page size of the measured memory.
    #[serde(rename = "pages")]
    pub page_kind: BufferPageKind,
    /// Bytes of all buffers placed with this policy and page kind.
    pub bytes: u64,
    /// Bytes found on each node. Empty if the kernel does not report it.
    #[serde(rename = "found")]
    pub bytes_by_node: BTreeMap<u32, u64>,
    /// Whether the buffers are where they were requested. `None` if the kernel does not report it.
    #[serde(rename = "as_asked")]
    pub is_as_requested: Option<bool>,
}

impl MachineProfile {
    /// Latency in nanoseconds per load from a CPU of `cpu_node` to DRAM of `memory_node`; on huge pages if these were
    /// measured, else on base pages. `None` if the pair was not measured.
    pub fn dram_latency_between(&self, cpu_node: u32, memory_node: u32) -> Option<&Measurement> {
        let pairs = self.latency.node_pairs.iter();
        let of_pair = pairs.filter(|pair| pair.cpu_node == cpu_node && pair.memory_node == memory_node);
        of_pair.max_by_key(|pair| pair.pages).map(|pair| &pair.latency)
    }

    /// Bandwidth of `kernel`, run by CPUs of `cpu_node` on memory of `memory_node`, with the largest number of threads
    /// that was measured. `None` if this kernel was not measured for this pair of nodes.
    pub fn bandwidth_between(
        &self,
        kernel: BandwidthKernel,
        cpu_node: u32,
        memory_node: u32,
    ) -> Option<&BandwidthMeasurement> {
        let of_pair = self.bandwidth.iter().filter(|b| {
            b.kernel == kernel && b.cpu_node == Some(cpu_node) && b.memory == MemoryLocation::Node(memory_node)
        });
        of_pair.max_by_key(|b| b.threads)
    }
}
