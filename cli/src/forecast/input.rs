//! What files of reads tell of a call before it begins.

use std::fs;
use std::path::Path;

use genuma_flash::Scan;
use genuma_reads::{Estimate, Lane, LaneFiles, NORMAL, samples};
use genuma_somatic::pipeline::Means;

use super::model::{Given, Panel};

/// A panel of normals: how large it is.
///
/// # Errors
/// It cannot be read, or is no table.
pub(crate) fn panel(table: &Path) -> Result<Panel, genuma_flash::Error> {
    let scan = Scan::open(table)?;
    let pages = scan.pages() * 4096;
    Ok(Panel { pages, beside: scan.file_bytes().saturating_sub(4096 + pages) })
}

/// A call of these lanes with `k`-mers, on a reference of so many bases if there is one, with this panel, by these means. Bases are estimated from the beginnings
/// of the files.
pub(crate) fn of(lanes: &[Lane], reference: Option<u64>, panel: Option<Panel>, k: u32, means: Means) -> Given {
    let of = |normal| {
        let own = lanes.iter().filter(|lane| (lane.sample == NORMAL) == normal);
        own.cloned().collect::<Vec<Lane>>()
    };
    let both = [true, false].map(of);
    let held = both.each_ref().map(|lanes| Estimate::of(lanes));
    let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    let [bases, reads] = [held.map(|held| held.bases), held.map(|held| held.reads)];
    Given {
        bases,
        samples: samples(lanes),
        bytes: both.each_ref().map(|lanes| lanes.iter().flat_map(Lane::paths).map(size).sum()),
        copied: held.iter().map(|held| held.copied).sum(),
        read_length: bases.iter().sum::<u64>() / reads.iter().sum::<u64>().max(1),
        files: lanes.iter().flat_map(Lane::paths).count() as u64,
        aligned: lanes.iter().filter(|lane| matches!(lane.files, LaneFiles::Aligned(_))).count() as u64,
        panel,
        reference,
        k,
        means,
    }
}
