//! What measures: the machine itself ([`crate::native`]), or one whose numbers are given ([`crate::model`]).

use genuma_machine::placement;

use crate::plan::{Chase, Loaded, Stream};
use crate::profile::BufferCheck;

/// Something that carries out the jobs of a plan.
pub trait Backend {
    /// ns a load, one number a repetition.
    ///
    /// # Errors
    /// The buffer cannot be placed, or the thread not pinned.
    fn chase(&mut self, job: &Chase) -> Result<Vec<f64>, Error>;

    /// GB/s of all threads together, one number a repetition.
    ///
    /// # Errors
    /// The arrays cannot be placed, or a thread not pinned.
    fn stream(&mut self, job: &Stream) -> Result<Vec<f64>, Error>;

    /// For each of the job's pauses, one number pair a repetition.
    ///
    /// # Errors
    /// A buffer cannot be placed, or a thread not pinned.
    fn loaded(&mut self, job: &Loaded) -> Result<Vec<Vec<UnderLoad>>, Error>;

    /// Where the buffers were, of all jobs so far.
    fn buffers(&self) -> Vec<BufferCheck>;

    /// What was not as it should be, of all jobs so far, one sentence each.
    fn remarks(&self) -> Vec<String>;

    /// Instruction set of the kernels.
    fn instructions(&self) -> &'static str;

    /// Seconds since some moment before the first job.
    fn clock_s(&self) -> f64;
}

/// One repetition of a point of a loaded curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnderLoad {
    /// GB/s of all injectors together; 0 when they rest.
    pub(crate) injected_gbs: f64,
    /// ns a load of the thread that chases.
    pub(crate) load_ns: f64,
}

/// Why a job was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Memory or threads cannot be where they should.
    #[error(transparent)]
    Placement(#[from] placement::Error),
    /// A ring without lines.
    #[error("a ring of {bytes} bytes in a buffer of {buffer} has no lines")]
    NoRing {
        /// Bytes of the ring.
        bytes: u64,
        /// Bytes of the buffer.
        buffer: u64,
    },
    /// A thread ended by a panic.
    #[error("a measuring thread ended unexpectedly: run again with RUST_BACKTRACE=1 and report it")]
    Thread,
}
