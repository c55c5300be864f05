//! Tests that each simulated artefact is found in the reads at its rate, and is absent when it is off.

mod assays;
mod bytes;
mod common;
mod coverage;
mod library;
mod machine;
mod people;
mod tumour;
