//! What a call logs about its inputs and its results.

use std::path::Path;
use std::time::Instant;

use genuma_pair::assay::RandomOrFixedEnds;
use genuma_reads::targets::Targets;
use genuma_somatic::call_summary::CallSummary;
use genuma_somatic::gene_annotation::{GeneAnnotation, GeneFile};
use genuma_somatic::result_warnings::ResultWarning;
use genuma_somatic::target_depth::TargetsOption;
use genuma_work::cost::measure_process_cost;
use genuma_work::quantity::{self, format_count_with_noun, group_thousands};
use tracing::{info, warn};

use super::result_files;
use crate::counter_table;

/// Logs the number of genes, and the features of the GFF3 file that are skipped.
pub(super) fn log_gene_counts(gff: &GeneFile, genes: &GeneAnnotation) {
    let name = gff.path.display();
    info!("{name}: {}", genes.describe_gene_counts());
    genes.describe_skipped_features().iter().for_each(|sentence| warn!("{name}: {sentence}"));
}

/// Logs the number of targets, and how many intervals were merged.
pub(super) fn log_target_counts(option: &TargetsOption, targets: &Targets) {
    let merged = targets.num_intervals_read - targets.intervals.len();
    info!(
        "{}: {} of {} bp, extended by {} bp on both sides{}",
        option.path.display(),
        format_count_with_noun(targets.intervals.len() as u64, "target"),
        group_thousands(targets.num_bases()),
        option.padding_bp,
        match merged {
            0 => String::new(),
            n => format!("; {} merged into others that they overlap", format_count_with_noun(n as u64, "interval")),
        }
    );
}

/// Logs properties of the samples that change how variants are called: a missing normal, the assays, fragments with
/// fixed ends, tumour cells in the normal, and DNA of another person in the tumour.
pub(super) fn log_sample_properties(outcome: &CallSummary) {
    let summary = &outcome.sample_summary;
    if !outcome.has_normal && outcome.known.is_some() {
        info!(
            "no normal: variants that are common in the population, or have the allele fraction of a germline variant, get the \
             FILTER germline"
        );
    }
    let libraries = [("normal", &summary.libraries.normal), ("tumour", &summary.libraries.tumour)];
    for (sample, library) in libraries.iter().skip(usize::from(!outcome.has_normal)) {
        info!("assay of the {sample}: {} ({})", library.assay.assay.name(), library.assay.reason);
    }
    for (sample, _) in libraries.iter().filter(|(_, library)| library.fragment_ends == RandomOrFixedEnds::Fixed) {
        info!(
            "the fragments of the {sample} end at fixed positions, as amplicons do: each read pair counts as a molecule, and \
             none is removed as a duplicate"
        );
    }
    let admixture = &outcome.admixture;
    if admixture.tumour_in_normal_ratio > 0.0 {
        info!(
            "the normal has alleles of the tumour, at up to {:.0}% of their fractions in the tumour: calling allows for tumour cells \
             in the normal, but misses more variants than with a clean normal",
            100.0 * admixture.tumour_in_normal_ratio
        );
    }
    if let Some(foreign) = &admixture.foreign_dna {
        let [low, high] = foreign.share.map(|share| 100.0 * share);
        info!(
            "{low:.1} to {high:.1}% of the tumour's DNA is of another person: variants as frequent as that get the FILTER contamination"
        );
    }
}

/// Logs the warnings that a user must read before trusting the calls.
pub(crate) fn log_warnings(warnings: &[ResultWarning]) {
    warnings.iter().for_each(|warning| warn!("{}", warning.message));
}

/// Logs the resource counters, if they were recorded, and the last line: number of calls that pass, time, memory, and
/// the path of the report.
pub(super) fn log_result(outcome: &CallSummary, out: &Path, start: Instant) {
    counter_table::log_counters_of_this_process(outcome.counters.as_ref());
    let passed = result_files::count_passed_calls_by_class(outcome);
    let classes: Vec<String> = passed.iter().map(|(class, n)| format!("{n} {class}")).collect();
    info!(
        "{} calls pass{}; {:.1} s, {} peak memory; see {}",
        passed.values().sum::<u64>(),
        if classes.is_empty() { String::new() } else { format!(" ({})", classes.join(", ")) },
        start.elapsed().as_secs_f64(),
        quantity::format_bytes(measure_process_cost().peak_bytes),
        out.join(result_files::REPORT_FILE_NAME).display()
    );
}
