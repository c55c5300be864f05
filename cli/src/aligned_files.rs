//! Reports what BAM, CRAM and CBQ input files contained, after they were read.

use genuma_reads::{Lane, RecordCounts};
use serde_json::{Value, json};
use tracing::{info, warn};

/// The aligned input files that were read to their end, with their record counts.
fn finished_files(lanes: &[Lane]) -> impl Iterator<Item = (String, &RecordCounts)> {
    let name = |lane: &Lane| lane.paths().map(|path| path.display().to_string()).collect::<String>();
    lanes.iter().filter_map(move |lane| Some((name(lane), lane.record_counts()?)))
}

/// Logs the number of skipped records of each file, and warns of missing mates and other missing data.
pub(crate) fn log_record_counts(lanes: &[Lane]) {
    for (file, tally) in finished_files(lanes) {
        log_record_counts_of_file(&file, tally);
    }
}

/// Logs the number of skipped records of one file, and warns of missing mates and other missing data.
pub(crate) fn log_record_counts_of_file(file: &str, tally: &RecordCounts) {
    let RecordCounts { records, secondary, supplementary, unpaired: alone, .. } = tally;
    info!(
        "{file}: {records} records; skipped: {secondary} secondary, {supplementary} supplementary; unpaired by their flags: {alone}"
    );
    for (what, n) in tally.missing_data() {
        warn!("{file}: {what}: {n}; check that the file has all reads of the sample, with all their bases");
    }
}

/// Returns the record counts of all aligned input files as JSON; null if there are no such files.
pub(crate) fn record_counts_to_json(lanes: &[Lane]) -> Value {
    let files: Vec<Value> =
        finished_files(lanes).map(|(file, tally)| json!({ "file": file, "records": tally })).collect();
    if files.is_empty() { Value::Null } else { files.into() }
}
