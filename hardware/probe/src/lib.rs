//! Measures a machine's memory: the NUMA performance aspects of lenis2018, chapter 3.
pub mod profile;

pub use profile::MachineProfile;
