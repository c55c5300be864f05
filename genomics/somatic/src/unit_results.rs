//! Results of the units between counting and genotyping, and how they are computed. Used by calls in one process and by
//! distributed calls.

use genuma_reads::fasta::Reference;
use genuma_work::ProgressCounters;
use serde::{Deserialize, Serialize};

use crate::aligned_contig::AlignedContig;
use crate::assemble::{AssembledContigs, Contig};
use crate::contig_placement::{PlacementContext, place_contigs};
use crate::event::CallThresholds;
use crate::group_assembly::GroupAssemblyResult;
use crate::ledger::Ledger;
use crate::recruit::RecruitingKmers;
use crate::variant_trace::VariantTracer;

/// Stored result of the unit `assemble`: the contigs of all groups, and its ledger lines.
#[derive(Debug, Serialize, Deserialize)]
pub struct AssembleUnitResult {
    /// The contigs, in the order of their groups.
    pub contigs: Vec<Contig>,
    /// Ledger lines of the unit: what was produced and skipped.
    pub ledger: Ledger,
}

impl AssembleUnitResult {
    /// Collects the contigs of all groups, and computes the ledger lines of the assembly.
    pub fn from_group_assembly_result(gathered: GroupAssemblyResult) -> AssembleUnitResult {
        let GroupAssemblyResult {
            pairs,
            duplicates: copies,
            error_kmers: errors,
            groups,
            pairs_in_small_groups: lone,
            pairs_in_unbranched_groups: not_parting,
            assembled,
            ..
        } = gathered;
        let mut ledger = Ledger::default();
        ledger.append_produced_line("assemble", "pairs with candidate k-mers", pairs);
        ledger.append_skipped_line("assemble", "pairs with candidate k-mers that are duplicates", copies);
        ledger.append_skipped_line(
            "assemble",
            "k-mer occurrences in reads that recurrent sequencing errors explain",
            errors,
        );
        ledger.append_produced_line("assemble", "groups of pairs", groups);
        ledger.append_skipped_line("assemble", "pairs in groups with too few pairs", lone);
        ledger.append_skipped_line("assemble", "pairs in groups without a branching k-mer", not_parting);
        let AssembledContigs { contigs, stacks_with_few_pairs: few, low_quality_stacks: poor, skipped_reads: deep } =
            assembled;
        ledger.append_skipped_line("assemble", "read stacks with too few pairs", few);
        ledger.append_skipped_line(
            "assemble",
            "read stacks with too few good bases where they differ from the normal",
            poor,
        );
        ledger.append_skipped_line(
            "assemble",
            "reads not stacked because too many others have the same k-mer or start nearby",
            deep,
        );
        ledger.append_produced_line("assemble", "contigs", contigs.len() as u64);
        AssembleUnitResult { contigs, ledger }
    }
}

/// Stored result of the unit `place`: the aligned contigs with their changes, and their recruiting k-mers.
#[derive(Debug, Serialize, Deserialize)]
pub struct PlaceUnitResult {
    /// Contigs with their changes. Reads are recruited for them, except for contigs at crowded positions, which have no
    /// recruiting k-mers.
    pub contigs: Vec<AlignedContig>,
    /// k-mers by which the reads of these contigs are recruited.
    pub recruiting_kmers: RecruitingKmers,
    /// Ledger lines of the unit: what was produced and skipped.
    pub ledger: Ledger,
}

/// Inputs for placing contigs on the reference and finding their changes.
pub(crate) struct PlaceUnitInputs<'a> {
    /// The reference; without one the contigs get no placement.
    pub genome: Option<&'a Reference>,
    /// Length of the k-mers by which reads are recruited.
    pub k: u32,
    /// Number of threads, at least 1.
    pub threads: usize,
    /// Memory budget (bytes) for seeds and alignments.
    pub memory_bytes: u64,
    /// Thresholds for changes that depend on the properties of the libraries.
    pub thresholds: CallThresholds,
    /// Counts the reference bases that were scanned.
    pub meter: &'a ProgressCounters,
}

impl PlaceUnitResult {
    /// Places all contigs on the reference, finds their changes, and selects recruiting k-mers. With a reference
    /// `contigs` is emptied, because only calls without a reference need the contigs later. `tracer` gets the results
    /// for the contigs of traced variants.
    pub fn place_contigs_and_select_recruiting_kmers(
        contigs: &mut Vec<Contig>,
        context: &PlaceUnitInputs<'_>,
        mut tracer: Option<&mut VariantTracer>,
    ) -> PlaceUnitResult {
        let &PlaceUnitInputs { genome, k, threads, memory_bytes: memory, thresholds, meter } = context;
        let mut ledger = Ledger::default();
        let (numbers, mut contigs): (Vec<usize>, Vec<AlignedContig>) = match genome {
            Some(genome) => {
                let traced = tracer.as_ref().map(|tracer| tracer.indices_of_traced_contigs()).unwrap_or_default();
                let placing =
                    PlacementContext { genome, threads, memory_bytes: memory, thresholds, always_kept: &traced, meter };
                let placed = place_contigs(std::mem::take(contigs), &placing, &mut ledger);
                if let Some(tracer) = &mut tracer {
                    tracer.record_placements(&placed, genome);
                }
                let accepted = placed.into_iter().filter(|placed| placed.reject_reason.is_none());
                accepted.map(|placed| (placed.index, placed.contig)).unzip()
            }
            None => contigs.iter().map(AlignedContig::from_unplaced_contig).enumerate().unzip(),
        };
        let wanted = RecruitingKmers::select_recruiting_kmers(&mut contigs, k, genome, threads);
        if let Some(tracer) = tracer {
            tracer.record_skipped_contigs(wanted.omitted_repeat_contigs.iter().map(|&c| numbers[c as usize]));
        }
        let families = wanted.omitted_repeat_contigs.len() as u64;
        ledger.append_skipped_line(
            "recruit",
            "contigs in repeats with too many copies to assign changes to one of them",
            families,
        );
        ledger.append_skipped_line(
            "recruit",
            "contigs at positions with 64 deeper contigs, most of which recurrent errors make",
            wanted.num_crowded_contigs,
        );
        ledger.append_produced_line(
            "recruit",
            "contigs for which reads were recruited",
            contigs.len() as u64 - wanted.num_crowded_contigs,
        );
        ledger.append_produced_line(
            "recruit",
            "contigs for which reads were recruited without a unique k-mer",
            wanted.contigs_without_unique_kmer - families,
        );
        PlaceUnitResult { contigs, recruiting_kmers: wanted, ledger }
    }
}
