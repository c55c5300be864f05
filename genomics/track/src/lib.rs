//! Known changes looked for in later samples, molecule by molecule. Modules in the order data flows through them; `pipeline` runs them.
mod error;
pub mod change;
mod windows;
pub mod place;
mod anchors;
mod seen;
mod look;
mod molecules;
mod background;
pub mod statistics;
pub mod judge;
pub mod pipeline;

pub use error::Error;
