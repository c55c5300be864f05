//! The panel of normals that a call is given.

use std::path::Path;

use anyhow::bail;
use genuma_flash::Scan;
use genuma_somatic::panel::Panel;

use crate::failure::Usage;
use crate::note::Note;

/// In how many normals what recurs is, at least, unless told otherwise: of one it may be its own.
const LEAST: u32 = 2;

/// Looks at a panel for what would otherwise fail late.
///
/// # Errors
/// It cannot be read, is none, is of another k, or is of fewer normals than are to have what recurs.
pub(crate) fn open(table: &Path, k: u32, least: Option<u32>) -> anyhow::Result<Panel> {
    let (path, least) = (table.display(), least.unwrap_or(LEAST));
    let scan = Scan::open(table)?;
    let make = "make one with `genuma table union --counts samples`";
    let note = Note::read(scan.note()).filter(|note| note.value_bytes() == scan.value_bytes());
    let Some((note, of)) = note.and_then(|note| note.panel_of().map(|of| (note, of))) else {
        bail!("{path}: is a table, but no panel of normals: {make}");
    };
    if note.k != k {
        let other = note.k;
        return Err(Usage(format!(
            "{path}: has {other}-mers, the call {k}-mers: call with -k {other}, or make another panel"
        ))
        .into());
    }
    if of < u64::from(least) {
        let told = format!("--panel-least {least}: {path} is of {of} normals: lower it, or {make} of more");
        return Err(Usage(told).into());
    }
    if note.min_count > least {
        let fewest = note.min_count;
        tracing::warn!(
            "{path}: has only what {fewest} normals have or more, so that --panel-least {least} is {fewest}"
        );
    }
    Ok(Panel { table: table.to_path_buf(), least })
}
