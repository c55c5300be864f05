//! What real sequencing does to reads, made and found again in them: each kind at its rate, and none when it is off.

mod bytes;
mod common;
mod coverage;
mod library;
mod machine;
mod people;
mod tumour;
