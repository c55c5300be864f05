//! Reads of a sample, in the order in which things happen: DNA in a tube, molecules of a library, cycles of a sequencer,
//! FASTQ files.

mod params;

mod fragments;
mod capture;
mod coverage;
mod tube;

mod molecule;
mod damage;
mod recurrent;
mod foldback;
mod chimera;
mod slippage;
mod library;

mod adapter;
mod quality;
mod cycles;

mod counts;
mod fastq;

pub use capture::Captured;
pub use counts::Counts;
pub use coverage::Coverage;
pub use cycles::Machine;
pub use fastq::{Output, Sink, sequence};
pub use fragments::{Chromosome, Mixture, Pool};
pub use library::{Inserts, Library, SHORTEST_INSERT};
pub(crate) use params::is_default;
pub use params::{Adapter, CoverageParams, LibraryParams, MachineParams, SequencingParams};
pub use recurrent::{Recurrent, Shown, Strand};
pub use tube::{Kind, Sampling, Source, Tube, kept};
