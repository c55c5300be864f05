//! Estimates the exposures of each tumour of a finished call to mutational signatures.

use genuma_somatic::pipeline::{CallJob, FinishedCall};
use genuma_somatic::sample_summary::SampleSummary;
use genuma_somatic::signatures::{SignatureExposures, SignatureMatrix, TargetToGenomeContextRatios};

/// Estimates the exposures from the SNVs of each tumour and adds them to the tumour's summary. If the assay of a tumour
/// is a targeted one and there are no targets, the summary gets the reason why there is no estimate.
pub(super) fn add_signature_exposures(matrix: &SignatureMatrix, job: &CallJob, finished: &mut FinishedCall) {
    let ratios = finished.targets.as_ref().zip(job.targets.as_ref()).map(|(found, option)| {
        TargetToGenomeContextRatios::compare_targets_with_genome(
            &finished.genome,
            &found.targets,
            option.padding_bp,
            job.resources.threads,
        )
    });
    for summary in &mut finished.sample_summaries {
        summary.signatures = Some(fit_tumour(matrix, summary, ratios.as_ref()));
    }
}

fn fit_tumour(
    matrix: &SignatureMatrix,
    summary: &SampleSummary,
    ratios: Option<&TargetToGenomeContextRatios>,
) -> SignatureExposures {
    let assay = &summary.libraries.tumour.assay;
    if ratios.is_none() && assay.assay.is_targeted() {
        let why = format!(
            "the assay is {}, whose trinucleotides differ from those of the genome; give the targets with --targets",
            assay.assay.name()
        );
        return matrix.exposures_without_fit(summary.spectrum.iter().sum(), why);
    }
    matrix.fit_exposures(&summary.spectrum, ratios)
}
