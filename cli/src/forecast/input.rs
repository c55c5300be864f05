//! Measures the size of the input files of a call before the call begins, for the forecast.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use genuma_dictionary::{DictionaryHeader, is_dictionary_file};
use genuma_flash::TablePageReader;
use genuma_reads::{Lane, LaneFiles, NORMAL_SAMPLE, ReadEstimate, num_samples};
use genuma_somatic::pipeline::Resources;

use super::model::{ForecastInput, PanelSize};

/// Returns the size of a panel of normals, a k-mer table or dictionary.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn measure_panel_size(table: &Path) -> anyhow::Result<PanelSize> {
    if is_dictionary_file(table)? {
        return Ok(PanelSize { page_bytes: 0, filter_and_index_bytes: DictionaryHeader::read(table)?.file_bytes });
    }
    let scan = TablePageReader::open(table)?;
    let pages = scan.num_pages() * 4096;
    Ok(PanelSize { page_bytes: pages, filter_and_index_bytes: scan.file_bytes().saturating_sub(4096 + pages) })
}

/// Returns the input of a call with these lanes and k-mers of length `k`, for the forecast. `reference` is the number
/// of bases of the reference. The number of bases of the reads is estimated from the beginnings of the files.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn measure_forecast_input(
    lanes: &[Lane],
    reference: Option<u64>,
    panel: Option<PanelSize>,
    k: u32,
    resources: Resources,
) -> anyhow::Result<ForecastInput> {
    let lanes_of = |normal| {
        let selected = lanes.iter().filter(|lane| (lane.sample == NORMAL_SAMPLE) == normal);
        selected.cloned().collect::<Vec<Lane>>()
    };
    let lanes_by_kind = [true, false].map(lanes_of);
    let [normal, tumour] = lanes_by_kind.each_ref().map(|lanes| ReadEstimate::estimate_reads_of_lanes(lanes));
    let estimates = [normal?, tumour?];
    let [bases, reads] = [estimates.map(|held| held.bases), estimates.map(|held| held.reads)];
    Ok(ForecastInput {
        bases,
        num_samples: num_samples(lanes),
        file_bytes: [sum_file_bytes(&lanes_by_kind[0])?, sum_file_bytes(&lanes_by_kind[1])?],
        packed_bytes: estimates.iter().map(|held| held.packed_bytes).sum(),
        read_length: bases.iter().sum::<u64>() / reads.iter().sum::<u64>().max(1),
        num_files: lanes.iter().flat_map(Lane::paths).count() as u64,
        num_aligned_files: lanes.iter().filter(|lane| matches!(lane.files, LaneFiles::Aligned(_))).count() as u64,
        panel,
        reference_bases: reference,
        k,
        resources,
    })
}

/// Returns the size in bytes of all files of these lanes. Pipes count as empty.
fn sum_file_bytes(lanes: &[Lane]) -> anyhow::Result<u64> {
    let paths = lanes.iter().flat_map(Lane::paths).filter(|path| *path != Path::new("-"));
    paths.map(|path| Ok(fs::metadata(path).with_context(|| path.display().to_string())?.len())).sum()
}
