//! The short-read mapper of the engine `genuma`: an index of about one byte per base ([`index`]), the placements of
//! each read ([`mapper`]), and the pairing of mates ([`pairs`]).
//!
//! Most reads are placed without a gapped alignment: xor and a bit count over two cache lines of the reference give
//! the number of mismatches. The modules are listed in the order of the data flow.
#![allow(rustdoc::private_intra_doc_links)]

pub mod bases;
pub mod options;
mod syncmers;
pub mod index;
pub mod diagonal;
pub mod placement;
pub mod ungapped;
pub mod gapped;
pub mod mapper;
pub mod insert_size;
pub mod mapping_quality;
mod mate_join;
pub mod pairs;
