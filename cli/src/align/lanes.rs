//! Groups the files on the command line into lanes and assigns a read group to each lane.

use std::path::PathBuf;

use genuma_align::engine::ReadLayout;
use genuma_align::header::ReadGroup;
use genuma_reads::{
    AlignedInput, AlignedOptions, StreamLane, check_no_other_format, format_empty_lane_warning,
    which_lanes_to_leave_out,
};
use tracing::warn;

use super::sequencing_unit;
use crate::errors::UsageError;
use crate::first_reads::warn_of_phred64_and_mate_files;

/// Groups files into lanes. Also returns the layout of the reads in each lane (single, pairs, interleaved). A BAM, CRAM
/// or BINSEQ file, recognised by its content, is a lane of its own. Without `interleaved`, a FASTQ file that is the
/// only file is a lane of single reads.
///
/// # Errors
/// [`UsageError`] if a file has no mate file; other errors if a file cannot be read.
pub(crate) fn group_files_into_lanes(
    files: &[PathBuf],
    interleaved: bool,
    single: bool,
    aligned: AlignedOptions,
) -> anyhow::Result<(Vec<StreamLane>, Vec<ReadLayout>)> {
    let options = AlignedOptions { pair_mates: !single, ..aligned };
    // A single FASTQ file holds reads without mates.
    let single = single || (!interleaved && files.len() == 1);
    let (mut lanes, mut files) = (Vec::new(), files.iter());
    while let Some(file) = files.next() {
        lanes.push(if AlignedInput::is_bam_cram_or_binseq(file)? {
            let layout = if options.pair_mates { ReadLayout::Paired } else { ReadLayout::Single };
            (StreamLane::Aligned(AlignedInput::new(file, options.clone())), layout)
        } else if interleaved {
            (StreamLane::Interleaved(file.clone()), ReadLayout::Interleaved)
        } else if single {
            (StreamLane::Single(file.clone()), ReadLayout::Single)
        } else {
            match files.next() {
                Some(mates) if !AlignedInput::is_bam_cram_or_binseq(mates)? => {
                    (StreamLane::Pair(file.clone(), mates.clone()), ReadLayout::Paired)
                }
                _ => {
                    check_no_other_format(file, true)?;
                    return Err(UsageError(format!(
                        "{}: has no mate file: give files of read 1 and read 2 in turn, or add --interleaved or --single",
                        file.display()
                    ))
                    .into());
                }
            }
        });
    }
    let (lanes, layouts): (Vec<StreamLane>, Vec<ReadLayout>) = lanes.into_iter().unzip();
    let fastq = lanes.iter().filter(|lane| !matches!(lane, StreamLane::Aligned(_))).flat_map(StreamLane::paths);
    warn_of_phred64_and_mate_files(fastq, single);
    Ok((lanes, layouts))
}

/// Removes lanes without reads, with their layouts and their read groups, unless all lanes are empty. `read_groups` has
/// one for all lanes, or one for each.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn leave_out_empty_lanes(
    lanes: &mut Vec<StreamLane>,
    layouts: &mut Vec<ReadLayout>,
    read_groups: &mut Vec<String>,
) -> anyhow::Result<()> {
    let empty = which_lanes_to_leave_out(lanes)?;
    for (lane, _) in lanes.iter().zip(&empty).filter(|(_, empty)| **empty) {
        warn!("{}", format_empty_lane_warning(lane.paths()));
    }
    if read_groups.len() == lanes.len() {
        retain_lanes_with_reads(read_groups, &empty);
    }
    retain_lanes_with_reads(lanes, &empty);
    retain_lanes_with_reads(layouts, &empty);
    Ok(())
}

/// Keeps the items of the lanes that are not empty.
fn retain_lanes_with_reads<T>(of_lanes: &mut Vec<T>, empty: &[bool]) {
    let mut empty = empty.iter();
    of_lanes.retain(|_| empty.next() == Some(&false));
}

/// Adds an ID, and PL and PU if they are missing, to read groups without an ID. The values are derived from flowcell
/// and lane in the read names. If an ID is missing and one read group is given for several lanes, the result has one
/// for each lane. A wrong number of read groups is returned unchanged.
///
/// # Errors
/// A read group has no ID, and the reads of its lane cannot be read, their names contain no flowcell and lane, or they
/// come from a pipe.
pub(crate) fn complete_read_groups_without_id(given: &[String], lanes: &[StreamLane]) -> anyhow::Result<Vec<String>> {
    if !given.iter().any(|fields| sequencing_unit::lacks_read_group_id(fields))
        || ![1, lanes.len()].contains(&given.len())
    {
        return Ok(given.to_vec());
    }
    let of_lane = |(i, lane): (usize, &StreamLane)| {
        let fields = &given[i.min(given.len() - 1)];
        if !sequencing_unit::lacks_read_group_id(fields) {
            return Ok(fields.clone());
        }
        let completed =
            if lane.has_pipe() { None } else { sequencing_unit::complete_read_group_from_read_name(fields, lane)? };
        completed.ok_or_else(|| {
            let files = lane.paths().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" and ");
            let why = "the read names contain no flowcell and lane: give the ID too";
            UsageError(format!("-R '{fields}' has no ID, and {files}: {why}")).into()
        })
    };
    lanes.iter().enumerate().map(of_lane).collect()
}

/// Parses the read groups and returns one for each lane: a single read group applies to all lanes. Empty if none is
/// given.
///
/// # Errors
/// A read group is malformed, their number does not fit the lanes, or two with the same ID differ.
pub(crate) fn parse_read_groups(given: &[String], lanes: usize) -> Result<Vec<ReadGroup>, UsageError> {
    let groups: Result<Vec<_>, _> = given.iter().map(|text| ReadGroup::parse(text)).collect();
    let groups = groups.map_err(|fault| UsageError(fault.to_string()))?;
    if groups.len() == 1 {
        return Ok(vec![groups[0].clone(); lanes]);
    }
    if !groups.is_empty() && groups.len() != lanes {
        return Err(UsageError(format!(
            "{} read groups for {lanes} lanes: give one -R for all lanes, or one for each",
            groups.len()
        )));
    }
    for (i, group) in groups.iter().enumerate() {
        if groups[..i].iter().any(|other| other.id() == group.id() && other != group) {
            return Err(UsageError(format!("read group {} is given twice, with other fields", group.id())));
        }
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(files: &[&str], interleaved: bool, single: bool) -> Result<Vec<StreamLane>, String> {
        let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
        group_files_into_lanes(&files, interleaved, single, AlignedOptions::default())
            .map(|(lanes, _)| lanes)
            .map_err(|e| e.to_string())
    }

    #[test]
    fn files_become_lanes() {
        let pair = |one: &str, two: &str| StreamLane::Pair(one.into(), two.into());
        assert_eq!(parse(&["a"], false, false), Ok(vec![StreamLane::Single("a".into())]));
        assert_eq!(parse(&["a", "b", "c", "d"], false, false), Ok(vec![pair("a", "b"), pair("c", "d")]));
        let interleaved = |file: &str| StreamLane::Interleaved(file.into());
        assert_eq!(parse(&["a", "b", "c"], true, false), Ok(["a", "b", "c"].map(interleaved).to_vec()));
        assert_eq!(parse(&["a", "b"], false, true), Ok(["a", "b"].map(|f| StreamLane::Single(f.into())).to_vec()));
        let without_mates = parse(&["a", "b", "Cargo.toml"], false, false).unwrap_err();
        assert!(without_mates.starts_with("Cargo.toml: has no mate file: give"), "{without_mates}");
        assert!(parse(&["a", "b", "c"], false, false).unwrap_err().starts_with("c: cannot read: No such file"));
    }

    #[test]
    fn read_groups_are_for_all_lanes_or_for_each() {
        let given = |texts: &[&str], lanes| {
            let texts: Vec<String> = texts.iter().map(|t| (*t).to_owned()).collect();
            let ids = |groups: Vec<ReadGroup>| groups.iter().map(|g| g.id().to_owned()).collect::<Vec<_>>();
            parse_read_groups(&texts, lanes).map(ids).map_err(|e| e.to_string())
        };
        assert_eq!(given(&[], 2), Ok(vec![]));
        assert_eq!(given(&["ID:x"], 2), Ok(vec!["x".to_owned(); 2]));
        assert_eq!(given(&["ID:x", "ID:y"], 2), Ok(vec!["x".to_owned(), "y".to_owned()]));
        assert!(given(&["ID:x", "ID:y"], 3).unwrap_err().contains("2 read groups for 3 lanes"));
        assert!(given(&["ID:x", "ID:x\\tSM:y"], 2).unwrap_err().contains("x is given twice"));
        assert!(given(&["SM:x"], 1).unwrap_err().contains("has no ID"));
    }
}
