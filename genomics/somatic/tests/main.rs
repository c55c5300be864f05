//! Tests of the stages through their public functions, in one test binary.

mod common;

mod assemble;
mod change;
mod compare;
mod event;
mod evidence;
mod gather;
mod genotype;
mod haplotype;
mod label;
mod rules;
mod select;
mod sequencing_errors;
mod vcf;
