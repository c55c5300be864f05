//! Reads genes from a GFF3 file and predicts the consequences of variants for their transcripts: Sequence Ontology
//! terms, protein changes, HGVS names, genes that junctions break, and fusions with their reading frame.
//!
//! The modules are in the order in which data flows through them.

/// Genes, transcripts and their index by position.
pub mod gene_model;
/// Reads genes from GFF3 files.
pub mod gff;
/// Translation of codons to amino acids.
pub mod genetic_code;
/// Consequences of variants, with their names in `bcftools csq` and in the Sequence Ontology.
pub mod consequence;
/// Protein changes from changes of a coding sequence.
pub mod coding_sequence;
/// HGVS names of variants.
pub mod hgvs;
/// Effects of SNVs, MNVs and indels on transcripts.
pub mod small_change;
/// Effects of structural variants on genes.
pub mod junction;
