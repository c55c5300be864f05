//! What two samples say of themselves: from their reads and their joint k-mer counters. Modules in the order data flows through them.
//!
//! Tallies are filled while reads are counted, each thread or partition its own, and added up; facts are made of tallies, each with the
//! interval that it lies in and a plain word.
pub mod interval;
pub mod library;
pub mod marks;
pub mod sampled;
pub mod each;
mod usual;
pub mod roots;
pub mod identity;
pub mod mixture;
pub mod coverage;
pub mod depths;
pub mod segments;
mod states;
pub mod others;
pub mod changes;
mod fit;
pub mod tumour;
pub mod facts;
pub mod check;
