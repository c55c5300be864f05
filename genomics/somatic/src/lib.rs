//! Tumour and normal reads → somatic variants. Modules in the order data flows through them.
pub mod select;
mod kmer_map;
pub mod label;
pub mod group;
pub mod duplicates;
pub mod assemble;
pub mod change;
mod affine;
pub mod compare;
pub mod recruit;
pub mod evidence;
pub mod genotype;
pub mod event;
pub mod outcome;
pub mod picture;
pub mod unit;
pub mod pipeline;
pub mod vcf;
