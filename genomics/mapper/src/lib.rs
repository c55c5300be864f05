//! The short-read mapper of the engine `genuma`: an index of about one byte per base ([`index`]), the placements of
//! each read ([`mapper`]), and the pairing of mates ([`pairs`]).
//!
//! Most reads are placed without a gapped alignment: xor and a bit count over two cache lines of the reference give
//! the number of mismatches. The modules are listed in the order of the data flow.
//!
//! The position and the mapping quality of one read:
//!
//! ```
//! use genuma_machine::simd_and_prefetch::SimdLevel;
//! use genuma_mapper::index::{Error, Index, ReferenceBuilder, build_and_write_index};
//! use genuma_mapper::mapper::{MappedReads, MappingBuffers, map_reads};
//! use genuma_mapper::options::ScoringOptions;
//! use genuma_mapper::pairs::{PairingBuffers, pair_and_report_templates};
//!
//! # let mut state = 1_u64;
//! # let bases: Vec<u8> = (0..2000).map(|_| {
//! #     state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
//! #     b"ACGT"[(state >> 62) as usize]
//! # }).collect();
//! let mut reference = ReferenceBuilder::default();
//! reference.begin_contig("chr1".into());
//! reference.add_bases(&bases);
//! // An index is used where it lies: at a multiple of 64 bytes.
//! let mut stored = vec![0; 64];
//! build_and_write_index(reference, 1, |part| Ok::<(), Error>(stored.extend_from_slice(part)))?;
//! let start = stored.as_ptr().align_offset(64);
//! stored.copy_within(64.., start);
//! let index = Index::from_bytes(&stored[start..start + stored.len() - 64])?;
//!
//! let (view, scores, simd) = (index.view(), ScoringOptions::default(), SimdLevel::widest_available());
//! let mut mapped = MappedReads::default();
//! map_reads(&view, &scores, simd, &mut MappingBuffers::default(), [&bases[500..650]].into_iter(), &mut mapped);
//! let mut found = Vec::new();
//! pair_and_report_templates(&view, &scores, simd, &mut PairingBuffers::default(), &mut mapped, None, |_, _, reads, _| {
//!     let segment = &reads[0].segments[0];
//!     let placement = &reads[0].placements[segment.place];
//!     found.push((placement.ref_start() - index.contigs()[0].start, placement.reverse, segment.mapq));
//!     Ok::<(), Error>(())
//! })?;
//! assert_eq!(found, [(500, false, 60)]);
//! # Ok::<(), Error>(())
//! ```
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
