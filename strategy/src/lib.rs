//! Other people's aligners, unmodified, under the memory strategy that suits the machine.
//!
//! A strategy is a number of instances of the program, the threads of each, and a memory policy. Reads are dealt to the
//! instances, their outputs merged back into the order of the reads.
//!
//! Sources: lenis2015, lenis2017, lenis2018.

pub mod strategy;

pub mod invocation;

pub mod preset;

pub mod model;

pub mod fit;

pub mod pilot;

pub mod application;

pub mod advisor;

pub mod sample;

pub mod replay;

pub mod layout;

pub mod replica;

mod deal;

pub mod instance;

pub mod merge;

pub mod pages;

pub mod threads;

pub mod run;

pub use invocation::Invocation;
pub use layout::Seat;
pub use strategy::{Memory, Strategy};

#[cfg(fuzzing)]
pub mod fuzz;
