//! Errors of OpenCL devices.

/// Why a device cannot be used, or can no longer be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An OpenCL call failed.
    #[error("{device}: {what} failed: {why}")]
    DriverCallFailed {
        /// Name of the device.
        device: String,
        /// Purpose of the call, as a phrase for messages.
        what: &'static str,
        /// Error of the OpenCL library.
        why: String,
    },
    /// The driver could not compile a program.
    #[error("{device}: its driver cannot compile the kernels: {log}")]
    CompilationFailed {
        /// Name of the device.
        device: String,
        /// First lines of the compiler log.
        log: String,
    },
    /// The device lacks a required feature.
    #[error("{device}: {what}")]
    UnsuitableDevice {
        /// Name of the device.
        device: String,
        /// What the device lacks, as a clause, such as `it has no 64-bit atomics`.
        what: String,
    },
    /// An earlier error made the device unusable.
    #[error("{device} is lost after an earlier error")]
    DeviceLost {
        /// Name of the device.
        device: String,
    },
    /// The environment variable with the test settings is malformed.
    #[error("{0}")]
    InvalidTestSettings(String),
}
