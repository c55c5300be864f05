//! Opens the panel of normals of a call (`--panel`).

use std::path::Path;

use anyhow::bail;
use genuma_dictionary::{DictionaryHeader, is_dictionary_file};
use genuma_flash::TablePageReader;
use genuma_planner::min_memory::min_call_memory_bytes;
use genuma_somatic::panel_of_normals::PanelOfNormals;
use genuma_somatic::pipeline::Resources;
use genuma_tables::note::TableNote;

use super::memory_limits;
use crate::errors::UsageError;

/// Default of `--panel-min-samples`: minimum number of normals of the panel that have a k-mer. A k-mer that only one
/// normal has may be a private variant of that person.
const DEFAULT_MIN_NORMALS: u32 = 2;
/// How to make a panel of normals, for messages.
const MAKE_PANEL: &str = "create one with `genuma kmers union --counts samples`";

/// Reads the note of a k-mer table or dictionary that is a panel of normals. Returns it with the number of normals.
///
/// # Errors
/// The file cannot be read, or is not a panel.
fn read_panel_note(panel: &Path) -> anyhow::Result<(TableNote, u64)> {
    let path = panel.display();
    let (note, form) = if is_dictionary_file(panel)? {
        let header = DictionaryHeader::read(panel)?;
        let note = TableNote::parse_dictionary_note(&header.note, header.k, header.num_samples);
        if note.is_some() && header.num_samples == 0 {
            bail!(
                "{path}: is a k-mer dictionary without counts, which a panel of normals needs: repeat `genuma kmers compact` \
                 without --no-counts"
            );
        }
        (note, "dictionary")
    } else {
        let scan = TablePageReader::open(panel)?;
        (TableNote::parse_table_note(scan.note(), scan.value_bytes()), "table")
    };
    match note.and_then(|note| note.num_panel_samples().map(|num_normals| (note, num_normals))) {
        Some(found) => Ok(found),
        None => bail!("{path}: is a k-mer {form} but not a panel of normals: {MAKE_PANEL}"),
    }
}

/// Opens a panel of normals, a table or a dictionary, and checks its parameters. `least`: minimum number of normals that
/// must have a variant (`--panel-min-samples`), or `None` for the default.
///
/// # Errors
/// The file cannot be read, is not a panel, has another k, or has fewer than `least` normals.
pub(crate) fn open_panel_of_normals(panel: &Path, k: u32, least: Option<u32>) -> anyhow::Result<PanelOfNormals> {
    let (path, least) = (panel.display(), least.unwrap_or(DEFAULT_MIN_NORMALS));
    let (note, num_normals) = read_panel_note(panel)?;
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
            "--panel-min-samples {least}: {path} has only {num_normals} {normals}: lower the option, or {MAKE_PANEL} from more normals"
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
    Ok(PanelOfNormals { table: panel.to_path_buf(), min_normals: least })
}

/// Checks before the call begins that a panel that is a dictionary fits the memory: it is read as a whole. `reference` is
/// the number of bases of the reference.
///
/// # Errors
/// The memory is too small, or the panel cannot be read.
pub(crate) fn check_panel_fits_memory(
    panel: &PanelOfNormals,
    resources: &Resources,
    reference: Option<u64>,
) -> anyhow::Result<()> {
    if !is_dictionary_file(&panel.table)? {
        return Ok(());
    }
    let panel_bytes = DictionaryHeader::read(&panel.table)?.file_bytes.next_multiple_of(1 << 20);
    let needed = min_call_memory_bytes(resources.threads, reference) + panel_bytes;
    if resources.memory < needed {
        let subject = format!("a call with the panel {} needs", panel.table.display());
        let alternative = Some("give the panel as a table (.gkt)");
        return Err(memory_limits::too_little_memory_error(resources.memory, needed, &subject, alternative).into());
    }
    Ok(())
}
