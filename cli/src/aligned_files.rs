//! Logs what BAM, CRAM and BINSEQ input files contained, and how many reads had UMIs, after the files were read.

use genuma_reads::{Lane, RecordCounts};
use serde_json::{Value, json};
use tracing::{info, warn};

/// Returns the file names and the record counts of each lane that was read to its end and has record counts: BAM, CRAM
/// and BINSEQ files, and FASTQ files with UMIs.
fn files_with_record_counts(lanes: &[Lane]) -> impl Iterator<Item = (String, &RecordCounts)> {
    let name = |lane: &Lane| lane.paths().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ");
    lanes.iter().filter_map(move |lane| Some((name(lane), lane.record_counts()?)))
}

/// Logs the numbers of skipped records and of reads with UMIs of each lane, and warns of missing mates and other
/// missing data.
pub(crate) fn log_record_counts(lanes: &[Lane]) {
    for (file, tally) in files_with_record_counts(lanes) {
        log_record_counts_of_lane(&file, tally);
    }
}

/// Logs what [`log_record_counts`] does, but without warnings: the results have them ([`WarningTopic::IncompleteReads`]).
///
/// [`WarningTopic::IncompleteReads`]: genuma_somatic::result_warnings::WarningTopic::IncompleteReads
pub(crate) fn log_record_counts_at_info_level(lanes: &[Lane]) {
    for (file, tally) in files_with_record_counts(lanes) {
        log_skipped_records(&file, tally);
        tally.format_incomplete_read_warnings().iter().for_each(|text| info!("{file}: {text}"));
    }
}

/// Logs the numbers of skipped records and of reads with UMIs of one lane, and warns of missing mates and other missing
/// data. `file` is what the messages call it.
pub(crate) fn log_record_counts_of_lane(file: &str, tally: &RecordCounts) {
    log_skipped_records(file, tally);
    tally.format_incomplete_read_warnings().iter().for_each(|text| warn!("{file}: {text}"));
}

fn log_skipped_records(file: &str, tally: &RecordCounts) {
    let RecordCounts { records, secondary, supplementary, unpaired: alone, with_umi, .. } = tally;
    if *with_umi > 0 {
        info!("{file}: the UMIs of {with_umi} reads were taken from tags or from their bases");
    }
    if *records > 0 {
        info!(
            "{file}: {records} records; skipped: {secondary} secondary, {supplementary} supplementary; unpaired by their flags: {alone}"
        );
    }
}

/// Returns the record counts of all input files that have them as JSON; null if there are no such files.
pub(crate) fn record_counts_to_json(lanes: &[Lane]) -> Value {
    let files: Vec<Value> =
        files_with_record_counts(lanes).map(|(file, tally)| json!({ "file": file, "records": tally })).collect();
    if files.is_empty() { Value::Null } else { files.into() }
}
