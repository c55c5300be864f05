//! Reads genes from a GFF3 file and predicts the consequences of variants for their transcripts: Sequence Ontology
//! terms, protein changes, HGVS names, genes that junctions break, and fusions with their reading frame.
//!
//! The modules are in the order in which data flows through them.

pub mod gene_model;
pub mod gff;
pub mod genetic_code;
pub mod consequence;
pub mod coding_sequence;
pub mod hgvs;
pub mod small_change;
pub mod structural_effect;
