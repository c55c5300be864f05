//! What can go wrong with a device.

/// Why a device cannot be used, or not any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A call of the library failed.
    #[error("{device}: {what} failed: {why}")]
    Call {
        /// Name of the device.
        device: String,
        /// What was done.
        what: &'static str,
        /// What the library says.
        why: String,
    },
    /// A program could not be made for the device.
    #[error("{device}: its driver cannot compile the kernels: {log}")]
    Program {
        /// Name of the device.
        device: String,
        /// First line of what the compiler says.
        log: String,
    },
    /// The device lacks something.
    #[error("{device}: {what}")]
    Unfit {
        /// Name of the device.
        device: String,
        /// What it lacks.
        what: String,
    },
    /// A device was lost by an earlier error.
    #[error("{device} was lost")]
    Lost {
        /// Name of the device.
        device: String,
    },
    /// The environment variable for trials is not understood.
    #[error("{0}")]
    Trial(String),
}
