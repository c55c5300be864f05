//! Tests of the readers, in one test binary; memory.rs measures the memory of its own process.

mod common;

mod aligned;
mod batches;
mod binseq;
mod cram;
mod cram_2;
mod cram_header;
mod faults;
mod pipes;
mod reference;
mod several_lines;
mod shards;
mod stream;
mod trim;
mod umis;
