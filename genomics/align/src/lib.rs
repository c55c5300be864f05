//! Alignment: reads → records with one of several aligners ([`engine`], [`sam`]), by all workers of a farm ([`pipeline`]),
//! sorted and marked ([`sort`], [`sort::markdup`]); and the placing of sequences that calling needs.
//!
//! Both load an index the same way ([`engine::minibwa`]). For calling it is the one beside the reference (`ref.fa.l2b`, `ref.fa.mbw`) when
//! it is there, else one that is made in the work folder.
pub mod engine;
pub mod sam;

pub mod sort;

pub mod bgzf;
pub mod indexed;

pub mod bam;

pub mod header;
pub mod placement;
pub mod pipeline;

pub use engine::Error;
pub use engine::minibwa::{CigarKind, CigarOp, Hit, Mapper, Placer, Strand};
