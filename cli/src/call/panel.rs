//! Opens the panel of normals of a call (`--panel`).

use std::path::Path;

use anyhow::bail;
use genuma_flash::TablePageReader;
use genuma_somatic::panel_of_normals::PanelOfNormals;

use crate::errors::UsageError;
use crate::table_note::TableNote;

/// Default of `--panel-min-samples`: minimum number of normals of the panel that have a k-mer. A k-mer that only one
/// normal has may be a private variant of that person.
const DEFAULT_MIN_NORMALS: u32 = 2;

/// Opens a panel of normals and checks its parameters. `least`: minimum number of normals that must have a variant
/// (`--panel-min-samples`), or `None` for the default.
///
/// # Errors
/// The file cannot be read, is not a panel, has another k, or has fewer than `least` normals.
pub(crate) fn open_panel_of_normals(table: &Path, k: u32, least: Option<u32>) -> anyhow::Result<PanelOfNormals> {
    let (path, least) = (table.display(), least.unwrap_or(DEFAULT_MIN_NORMALS));
    let scan = TablePageReader::open(table)?;
    let make = "create one with `genuma kmers union --counts samples`";
    let note = TableNote::parse_note(scan.note()).filter(|note| note.value_bytes_per_kmer() == scan.value_bytes());
    let Some((note, num_normals)) = note.and_then(|note| note.num_panel_samples().map(|of| (note, of))) else {
        bail!("{path}: is a k-mer table but not a panel of normals: {make}");
    };
    if note.k != k {
        let other = note.k;
        return Err(UsageError(format!(
            "{path}: has {other}-mers, but the call uses {k}-mers: call with -k {other}, or create another panel"
        ))
        .into());
    }
    if num_normals < u64::from(least) {
        let normals = if num_normals == 1 { "normal" } else { "normals" };
        let message = format!(
            "--panel-min-samples {least}: {path} has only {num_normals} {normals}: lower the option, or {make} from more normals"
        );
        return Err(UsageError(message).into());
    }
    if note.min_count > least {
        let min_normals = note.min_count;
        tracing::warn!(
            "{path}: contains only k-mers of {min_normals} or more normals, so --panel-min-samples {least} has the effect of {min_normals}: \
             variants of fewer normals are not filtered; to filter them, create the panel with --min {least}"
        );
    }
    Ok(PanelOfNormals { table: table.to_path_buf(), min_normals: least })
}
