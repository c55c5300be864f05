//! Reads the genes of a GFF3 file and predicts the consequences of changes for their transcripts: Sequence Ontology terms,
//! changes of proteins, HGVS names, genes cut by junctions, and fusions with their frame.
//!
//! Modules in the order in which data flows through them.

pub mod gene_model;
pub mod gff;
pub mod genetic_code;
pub mod consequence;
pub mod coding_sequence;
pub mod hgvs;
pub mod small_change;
pub mod junction;
