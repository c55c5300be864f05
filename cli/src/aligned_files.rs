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
        describe_missing_data(&file, tally).iter().for_each(|text| info!("{text}"));
    }
}

/// Logs the numbers of skipped records and of reads with UMIs of one lane, and warns of missing mates and other missing
/// data. `file` is what the messages call it.
pub(crate) fn log_record_counts_of_lane(file: &str, tally: &RecordCounts) {
    log_skipped_records(file, tally);
    describe_missing_data(file, tally).iter().for_each(|text| warn!("{text}"));
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

/// Describes missing mates and other missing data: what was found, and what to do.
fn describe_missing_data(file: &str, tally: &RecordCounts) -> Vec<String> {
    let reads = tally.records.saturating_sub(tally.secondary + tally.supplementary);
    let (short, num_short) =
        tally.shorter_than_structure.describe_with_example_and_count("reads are shorter than their read structure");
    let (alone, num_alone) =
        tally.mate_missing.describe_with_example_and_count("reads whose mate is not in the file, used without it");
    let (clipped, num_clipped) = tally.hard_clipped.describe_with_example_and_count("reads are hard-clipped");
    let (empty, num_empty) = tally.without_bases.describe_with_example_and_count("reads have no bases, only SEQ `*`");
    let (plain, num_plain) = tally.without_qualities.describe_with_example_and_count("reads have no qualities");
    let all = [
        (
            num_short,
            format!(
                "{file}: {num_short} {short} and were left out with their mates; check that --umi describes the reads of \
                 this file"
            ),
        ),
        (num_alone, format!("{file}: {num_alone} {alone}; check that the file has all reads of the sample")),
        (
            num_clipped,
            format!(
                "{file}: {num_clipped} of {reads} {clipped}: their clipped bases are not in the file, so they cannot be \
                 aligned or support variants. Use the original FASTQ or BAM files"
            ),
        ),
        (
            num_empty,
            format!(
                "{file}: {num_empty} of {reads} {empty}, and contribute nothing. Use the original FASTQ or BAM files"
            ),
        ),
        (
            num_plain,
            format!("{file}: {num_plain} of {reads} {plain}: all their bases are used, whatever the minimum quality"),
        ),
    ];
    all.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text).collect()
}

/// Returns the record counts of all input files that have them as JSON; null if there are no such files.
pub(crate) fn record_counts_to_json(lanes: &[Lane]) -> Value {
    let files: Vec<Value> =
        files_with_record_counts(lanes).map(|(file, tally)| json!({ "file": file, "records": tally })).collect();
    if files.is_empty() { Value::Null } else { files.into() }
}
