//! Fingerprint of the inputs and parameters that the calls depend on.

use std::path::Path;

use genuma_reads::{Lane, LaneFiles};
use genuma_somatic::gene_annotation::GeneFile;
use genuma_somatic::known_variants::KnownVariants;
use genuma_somatic::panel_of_normals::PanelOfNormals;
use genuma_somatic::pipeline::CallParams;
use genuma_somatic::sample_names::SampleNames;
use genuma_somatic::target_depth::TargetsOption;

use crate::fingerprint::Fingerprint;

/// Optional inputs that the calls depend on, besides the reads and the reference.
pub(super) struct AdditionalInputs<'a> {
    pub(super) screen: Option<&'a Path>,
    pub(super) panel: Option<&'a PanelOfNormals>,
    pub(super) targets: Option<&'a TargetsOption>,
    pub(super) known: Option<&'a KnownVariants>,
    pub(super) gff: Option<&'a GeneFile>,
}

/// Returns the fingerprint of the call: text with all inputs and parameters that the calls depend on. An interrupted
/// run is resumed only if its fingerprint is the same.
pub(super) fn call_fingerprint(
    samples: &SampleNames,
    lanes: &[Lane],
    reference: Option<&Path>,
    additional: &AdditionalInputs<'_>,
    params: &CallParams,
) -> anyhow::Result<String> {
    let &AdditionalInputs { screen, panel, targets, known, gff } = additional;
    let CallParams { k, min_base_quality, min_tumour_count: least_tumour, min_quality: least_quality, assay } = params;
    let mut fingerprint = Fingerprint::with_program_version()
        .with_parameter("k", k)
        .with_parameter("min-base-quality", min_base_quality)
        .with_parameter("least-tumour", least_tumour)
        .with_parameter("min-quality", least_quality);
    if let Some(assay) = assay {
        fingerprint = fingerprint.with_parameter("assay", assay.name());
    }
    if *samples != SampleNames::default() {
        fingerprint = fingerprint.with_parameter("samples", samples.names().join(" "));
    }
    for lane in lanes {
        for path in lane.paths() {
            let label = samples.name_in_messages(lane.sample.into());
            // A run that reads a pipe cannot be resumed, so the name of the pipe is enough.
            fingerprint = match lane.has_pipe() {
                true => fingerprint.with_parameter(&label, path.display()),
                false => fingerprint.with_file(&label, path)?,
            };
        }
        match &lane.files {
            LaneFiles::Single(_) => fingerprint = fingerprint.with_parameter("layout", "single"),
            LaneFiles::Reference(_) => fingerprint = fingerprint.with_parameter("normal", "none"),
            _ => {}
        }
        if let Some(umis) = &lane.umis {
            fingerprint = fingerprint.with_parameter("umi", &umis.structures);
        }
    }
    let fingerprint = match reference {
        Some(path) => fingerprint.with_file("reference", path)?,
        None => fingerprint.with_parameter("reference", "none"),
    };
    let fingerprint = match screen {
        Some(path) => fingerprint.with_file("screen", path)?,
        None => fingerprint,
    };
    let fingerprint = match panel {
        Some(panel) => {
            fingerprint.with_file("panel", &panel.table)?.with_parameter("panel-min-samples", panel.min_normals)
        }
        None => fingerprint,
    };
    let fingerprint = match targets {
        Some(option) => {
            fingerprint.with_file("targets", &option.path)?.with_parameter("target-padding", option.padding_bp)
        }
        None => fingerprint,
    };
    let fingerprint = match known {
        Some(known) => fingerprint.with_file("known", &known.path)?,
        None => fingerprint,
    };
    let fingerprint = match gff {
        Some(gff) => fingerprint.with_file("gff", &gff.path)?,
        None => fingerprint,
    };
    Ok(fingerprint.into_text())
}
