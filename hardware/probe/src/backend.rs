//! Interface of measurement backends: the local machine ([`crate::local_machine`]) or a simulated one
//! ([`crate::simulated_machine`]).

use genuma_machine::placement;

use crate::plan::{BandwidthJob, LatencyJob, LoadedLatencyJob};
use crate::profile::BufferPlacementCheck;

/// Carries out the measurement jobs of a plan.
pub trait MeasurementBackend {
    /// Measures the latency of dependent loads. Returns nanoseconds per load, one number per repetition.
    ///
    /// # Errors
    /// The buffer cannot be placed on its node, or the thread cannot be pinned.
    fn measure_latency(&mut self, job: &LatencyJob) -> Result<Vec<f64>, Error>;

    /// Measures memory bandwidth. Returns the GB/s of all threads together, one number per repetition.
    ///
    /// # Errors
    /// The arrays cannot be placed on their nodes, or a thread cannot be pinned.
    fn measure_bandwidth(&mut self, job: &BandwidthJob) -> Result<Vec<f64>, Error>;

    /// Measures latency under load. Returns one list for each injector pause of the job; the list has one sample per
    /// repetition.
    ///
    /// # Errors
    /// A buffer cannot be placed on its node, or a thread cannot be pinned.
    fn measure_loaded_latency(&mut self, job: &LoadedLatencyJob) -> Result<Vec<Vec<LoadedLatencySample>>, Error>;

    /// Compares requested and actual nodes of the buffers of all jobs so far: one check per policy and page kind.
    fn buffer_checks(&self) -> Vec<BufferPlacementCheck>;

    /// Problems in all jobs so far, one sentence each.
    fn warnings(&self) -> Vec<String>;

    /// Name of the instruction set that the bandwidth kernels use.
    fn instruction_set(&self) -> &'static str;

    /// Time in seconds since a fixed moment before the first job.
    fn elapsed_s(&self) -> f64;
}

/// One repetition of one point of a loaded latency curve: the load, and the latency under this load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadedLatencySample {
    /// Read bandwidth of all injector threads together in GB/s; 0 when they are idle.
    pub(crate) injected_gbs: f64,
    /// Latency of the pointer-chasing thread in nanoseconds per load.
    pub(crate) latency_ns: f64,
}

/// Why a measurement job failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Memory could not be placed or a thread could not be pinned.
    #[error(transparent)]
    Placement(#[from] placement::Error),
    /// The pointer chain has no cache lines.
    #[error("a pointer chain of {bytes} bytes in a buffer of {buffer} bytes has no cache lines")]
    EmptyPointerChain {
        /// Size of the pointer chain in bytes.
        bytes: u64,
        /// Size of the buffer in bytes.
        buffer: u64,
    },
    /// A measuring thread panicked.
    #[error("a measuring thread ended unexpectedly: report this with the message above it")]
    ThreadPanicked,
}
