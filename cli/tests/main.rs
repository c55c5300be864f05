//! The tests of the binary that may run beside each other, in one test binary: they share the simulated pair and its call.
//!
//! Tests that measure, time or interrupt processes, or boot a guest, have binaries of their own (see Cargo.toml).

mod common;

mod accepted;
mod accuracy;
mod advise;
mod align;
mod align_faults;
mod align_valid;
mod aligned_reads;
mod assays;
mod bad_input;
mod binseq_reads;
mod benchmarks;
mod check;
mod count;
mod dictionary;
mod dirt;
mod docs;
mod events;
mod genes;
mod fpga;
mod gpu;
mod guard;
mod help;
mod index_faults;
mod layering;
mod mistakes;
mod multiqc;
mod outputs;
mod panel;
mod parts;
mod plan;
mod provenance;
mod public_cases;
mod run;
mod same_bytes;
mod schema;
mod several;
mod signatures;
mod supply;
mod table;
mod targets;
mod topology;
mod track;
mod tumour_only;
mod umis;
mod why;
