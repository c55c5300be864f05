//! What there was in files of aligned reads, told after they were read.

use genuma_reads::{Lane, Tally};
use serde_json::{Value, json};
use tracing::{info, warn};

/// Files of aligned reads that were read to their end.
fn read(lanes: &[Lane]) -> impl Iterator<Item = (String, &Tally)> {
    let name = |lane: &Lane| lane.paths().map(|path| path.display().to_string()).collect::<String>();
    lanes.iter().filter_map(move |lane| Some((name(lane), lane.tally()?)))
}

/// Says what was skipped, which is usual, and warns of what is missing, which is not.
pub(crate) fn tell(lanes: &[Lane]) {
    for (file, tally) in read(lanes) {
        tell_of(&file, tally);
    }
}

/// The same of one file.
pub(crate) fn tell_of(file: &str, tally: &Tally) {
    let Tally { records, secondary, supplementary, alone, .. } = tally;
    info!(
        "{file}: {records} records; skipped: {secondary} secondary, {supplementary} supplementary; without mates by their flags: {alone}"
    );
    for (what, n) in tally.missing() {
        warn!("{file}: {what}: {n}");
    }
}

/// The same for JSON; null where there are no such files.
pub(crate) fn value(lanes: &[Lane]) -> Value {
    let files: Vec<Value> =
        read(lanes).map(|(file, tally)| json!({ "file": file, "records": tally })).collect();
    if files.is_empty() { Value::Null } else { files.into() }
}
