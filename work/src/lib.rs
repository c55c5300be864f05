//! How work is done and published, whatever the work is.
//!
//! [`publish`] gives files their names when they are complete; [`folder`] is a run's own place on disk, [`unit`] what finished steps leave
//! there; [`spill`] where what memory has no room for waits, [`shelves`] and [`piles`] values of any kind among it;
//! [`parallel`] shares work out among threads, which [`turns`] lets do in order what has one;
//! [`clock`], [`meter`] and [`timeline`] tell what has been done and what it took; [`signals`] end a run that is interrupted.

pub mod clock;
pub mod folder;
mod gate;
pub mod meter;
pub mod parallel;
pub mod piles;
pub mod publish;
pub mod shelves;
pub mod signals;
pub mod spill;
pub mod timeline;
pub mod turns;
pub mod unit;
mod usage;

pub use meter::{Meter, Watch};
