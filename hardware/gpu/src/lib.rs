//! Devices that OpenCL drives, without anything of what is done on them: which there are, how much memory they have and on which node they
//! hang ([`find`]), how fast they are ([`rates()`]), and programs run on them ([`Device`], [`Lane`]).
//!
//! The library is loaded when it is asked for the first time, by name (`libOpenCL.so.1`): nothing is needed to build, and a machine without it has no
//! devices, and says so. Everything that can fail returns an [`Error`]; after the first one a device counts as lost, and what
//! it held is left alone, since a driver that has lost its device may not even let go of things.

mod error;
mod trial;
mod node;
mod found;
mod device;
mod rates;

pub use device::{Arg, Device, Kernel, Lane, Memory, Staging};
pub use error::Error;
pub use found::{Described, Found, Kind, find, has_device_files};
pub use rates::{Rates, rates};
pub use trial::Trial;
