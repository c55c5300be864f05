//! Finds lanes without reads: a sequencer may write files without records for a lane that has no reads of the sample.

use std::path::Path;

use crate::error::{Error, FileFault};
use crate::fastq::{FastqOptions, FastqReader};
use crate::lane::{Lane, num_samples};
use crate::pipe::is_regular_file;
use crate::stream::StreamLane;
use genuma_work::ProgressCounters;

/// Removes lanes whose FASTQ files have no records, unless the sample has no other lane, and returns the removed
/// lanes. A lane of two files of which only one is empty is not removed; it fails in
/// [`check_lanes`](crate::check_lanes).
///
/// # Errors
/// A file cannot be read.
pub fn remove_empty_lanes(lanes: &mut Vec<Lane>) -> Result<Vec<Lane>, Error> {
    let mut empty = Vec::new();
    for sample in 0..num_samples(lanes) {
        let own: Vec<bool> = lanes
            .iter()
            .map(|lane| Ok(usize::from(lane.sample) == sample && is_empty_lane(lane)?))
            .collect::<Result<_, Error>>()?;
        let has_reads = lanes.iter().zip(&own).any(|(lane, is_empty)| usize::from(lane.sample) == sample && !is_empty);
        if has_reads {
            let (removed, kept) =
                std::mem::take(lanes).into_iter().zip(own).partition::<Vec<_>, _>(|(_, empty)| *empty);
            *lanes = kept.into_iter().map(|(lane, _)| lane).collect();
            empty.extend(removed.into_iter().map(|(lane, _)| lane));
        }
    }
    Ok(empty)
}

/// Returns for each lane whether it is to be left out: its FASTQ files have no records, and another lane has some.
///
/// # Errors
/// A file cannot be read.
pub fn which_lanes_to_leave_out(lanes: &[StreamLane]) -> Result<Vec<bool>, Error> {
    let is_empty = |lane: &StreamLane| match lane {
        StreamLane::Aligned(_) => Ok(false),
        _ => are_empty_fastq_files(lane.paths()),
    };
    let empty: Vec<bool> = lanes.iter().map(is_empty).collect::<Result<_, Error>>()?;
    Ok(if empty.iter().all(|&empty| empty) { vec![false; lanes.len()] } else { empty })
}

/// Returns the lanes that have reads, and warns of the others; all lanes if none has reads.
///
/// # Errors
/// A file cannot be read.
pub fn leave_out_empty_stream_lanes(mut lanes: Vec<StreamLane>) -> Result<Vec<StreamLane>, Error> {
    let mut empty = which_lanes_to_leave_out(&lanes)?.into_iter();
    lanes.retain(|lane| {
        let is_empty = empty.next() == Some(true);
        if is_empty {
            tracing::warn!("{}", format_empty_lane_warning(lane.paths()));
        }
        !is_empty
    });
    Ok(lanes)
}

/// The warning for a lane that is left out because its files have no records.
pub fn format_empty_lane_warning<'a>(paths: impl Iterator<Item = &'a Path>) -> String {
    let paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
    format!("{}: no reads in this lane, so it is left out: check that it should be empty", paths.join(", "))
}

fn is_empty_lane(lane: &Lane) -> Result<bool, Error> {
    Ok(lane.is_fastq() && lane.slice.is_none() && are_empty_fastq_files(lane.paths())?)
}

/// Whether all files are regular FASTQ files without content. A damaged file does not count as empty: it is reported when
/// it is read.
fn are_empty_fastq_files<'a>(mut paths: impl Iterator<Item = &'a Path>) -> Result<bool, Error> {
    let progress = ProgressCounters::default();
    let is_empty = |path: &Path| -> Result<bool, Error> {
        let is_regular = is_regular_file(path).map_err(|source| Error::Read { path: path.into(), source })?;
        let open = || FastqReader::open(path, &progress, &FastqOptions::for_pairs(None));
        Ok(is_regular && matches!(open(), Err(Error::File { fault: FileFault::Empty, .. })))
    };
    paths.try_fold(true, |all, path| Ok(all && is_empty(path)?))
}
