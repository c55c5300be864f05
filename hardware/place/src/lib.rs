//! C API of genuma's memory placement: `libgenuma_place` with the header `include/genuma_place.h`, which documents
//! each function. C, C++ and Fortran programs call it; Rust programs use `genuma_machine::placement` instead.
//!
//! Three services: memory with a policy (`genuma_alloc`), one copy of read-only data on each node
//! (`genuma_replicate`), and memory policy and CPUs of the calling thread for a limited time (`genuma_begin_scope`).
//! Calls return 0, `GENUMA_NOT_AS_REQUESTED` or a negative `errno` value, and keep a message for each thread. A panic
//! becomes an error code.
//!
//! `ffi` is the only module with `unsafe` code. It converts arguments; the other modules do the work.

mod status;
mod request;
mod allocations;
mod replicas;
mod scopes;
mod ffi;
