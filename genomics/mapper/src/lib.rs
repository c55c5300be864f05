//! Where short reads come from: an index of one byte a base ([`index`]), the places of each read ([`mapper`]), mates together ([`pairs`]).
//!
//! Most reads are settled without aligning anything: two cache lines of the reference, xor and a count of bits say at how many bases a read
//! differs. Modules in the order in which data flows through them.
#![allow(rustdoc::private_intra_doc_links)]

pub mod bases;
pub mod options;
mod syncmers;
pub mod index;
pub mod diagonal;
pub mod place;
pub mod ungapped;
pub mod gapped;
pub mod mapper;
pub mod insert;
pub mod quality;
mod join;
pub mod pairs;
