//! Calls somatic variants from the reads of tumours and of a normal, or of tumours alone. The modules are listed in the
//! order of the data flow; `pipeline` runs them.
//!
//! A call of a tumour and a normal on a reference of 4 kb:
//!
//! ```
//! use genuma_reads::{AlignedOptions, Lane, MateLayout, NORMAL_SAMPLE, TUMOUR_SAMPLE};
//! use genuma_somatic::pipeline::{CallJob, Resources};
//! use genuma_somatic::vcf::format_vcf_record;
//! use genuma_somatic::vcf_record::build_vcf_records;
//! use genuma_work::ProgressListener;
//!
//! struct NoProgress;
//! impl ProgressListener for NoProgress {
//!     fn unit_started(&self, _: &str, _: Option<std::sync::Arc<genuma_work::ProgressCounters>>) {}
//! }
//!
//! # use genuma_reads::dna::reverse_complement;
//! # use std::fmt::Write;
//! let folder = tempfile::tempdir()?;
//! # let mut state = 1_u64;
//! # let normal: String = (0..4000).map(|_| {
//! #     state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
//! #     char::from(b"ACGT"[(state >> 62) as usize])
//! # }).collect();
//! # let reference = folder.path().join("ref.fa");
//! # std::fs::write(&reference, format!(">chr1\n{normal}\n"))?;
//! # let mut tumour = normal.clone();
//! # let before = &normal[2000..2001];
//! # let after = if before == "C" { "A" } else { "C" };
//! # tumour.replace_range(2000..2001, after);
//! # let write_reads = |name: &str, copies: &[&str]| {
//! #     let paths = [1, 2].map(|mate| folder.path().join(format!("{name}_{mate}.fq")));
//! #     let mut texts = [String::new(), String::new()];
//! #     for (i, start) in (0..3600).step_by(9).enumerate() {
//! #         let fragment = &copies[i % copies.len()][start..start + 280 + i * 37 % 100];
//! #         let second = String::from_utf8(reverse_complement(fragment.as_bytes())).expect("bases");
//! #         for (text, bases) in texts.iter_mut().zip([&fragment[..150], &second[..150]]) {
//! #             writeln!(text, "@{i}\n{bases}\n+\n{}", "I".repeat(150)).expect("a line");
//! #         }
//! #     }
//! #     paths.iter().zip(texts).try_for_each(|(path, text)| std::fs::write(path, text)).map(|()| paths)
//! # };
//! # let (normal_files, tumour_files) = (write_reads("N", &[&normal])?, write_reads("T", &[&normal, &tumour])?);
//! let options = AlignedOptions::default();
//! let mut lanes = Lane::group_files_into_lanes(NORMAL_SAMPLE, &normal_files, MateLayout::Pairs, &options)?;
//! lanes.extend(Lane::group_files_into_lanes(TUMOUR_SAMPLE, &tumour_files, MateLayout::Pairs, &options)?);
//! let resources = Resources { threads: 1, memory: 1 << 30, scratch: u64::MAX, devices: Default::default() };
//! # let work = folder.path().join("work");
//! # std::fs::create_dir(&work)?;
//! let call = CallJob::with_defaults(lanes, Some(reference), resources, work).run_call(&NoProgress)?;
//! let records = build_vcf_records(&call.events, &call.genome);
//! let lines: Vec<String> = records.iter().map(|record| format_vcf_record(record, &call.genome, true)).collect();
//! // Half of the tumour's copies have another base at position 2001.
//! assert!(lines.len() == 1 && lines[0].starts_with(&format!("chr1\t2001\tg1\t{before}\t{after}\t")), "{lines:?}");
//! assert_eq!(lines[0].split('\t').nth(6), Some("PASS"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
pub mod sample_names;
pub mod provenance;
mod minisatellite;
pub mod tandem_repeat;
pub mod candidate_kmer;
pub mod candidate_selectors;
mod kmer_map;
pub mod kmer_lookup;
pub mod molecule;
pub mod labelled_pair;
pub mod reference_kmers;
mod trim_and_encode_repeats;
pub mod target_depth;
pub mod count;
pub mod group;
mod gapless_stack;
mod gapped_likelihood;
mod branch_points;
mod circular_contig;
pub mod assemble;
mod allele_kind_odds;
mod pcr_errors;
mod per_tumour;
pub mod group_assembly;
mod affine_alignment;
mod contig_segments;
pub mod change;
mod event_model;
pub mod explanation;
mod repeat_family_allele;
pub mod other_loci;
pub mod aligned_contig;
mod insertion_source;
pub mod recruit;
pub mod read_placement;
mod normal_sequences;
pub mod haplotype;
mod short_homopolymer;
pub mod slippage;
pub mod sequencing_errors;
mod read_likelihood;
mod repeat_length_change;
pub mod molecule_vote;
mod unchanged_allele_ends;
pub mod evidence;
mod genotype_params;
pub mod genotype;
mod fold_back;
pub mod contig_filter;
pub mod contig_placement;
mod divergence;
mod linked_changes;
pub mod locus;
mod other_species_filter;
mod repeat_family_copy_filter;
mod germline_haplotype;
pub mod locus_ranges;
pub mod adjacent_substitutions;
mod tumour_only;
mod shared_alleles;
pub mod element_from_junctions;
pub mod event;
mod element_copy_filter;
pub mod read_pileup;
pub mod vcf_record;
pub mod sequence_families;
pub mod target_gaps;
pub mod gene_annotation;
pub mod vcf;
pub mod known_info;
pub mod export_tables;
pub mod screen_hits;
pub mod ledger;
pub mod known_variants;
pub mod panel_lookup;
pub mod panel_of_normals;
pub mod variant_trace;
mod resources;
mod error;
pub mod call_summary;
pub mod output;
mod read_passes;
mod unit_results;
mod genotyping_unit;
pub mod root_positions;
mod tumour_alleles;
mod tumour_in_normal;
pub mod msi;
pub mod mutation_context;
pub mod signatures;
pub mod sample_summary;
pub mod result_warnings;
pub mod pipeline;
mod discordant_mates;
pub mod distributed_call;

pub use genuma_reads::packed_read as packed;
