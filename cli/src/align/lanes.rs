//! Files on the command line → lanes with their read groups.

use std::path::PathBuf;

use genuma_align::engine::Layout;
use genuma_align::header::ReadGroup;
use genuma_reads::{Aligned, AlignedOptions, ReadLane};

use super::unit;
use crate::failure::Usage;

/// The lanes, and how the reads of each come. Files of aligned reads, told by what is in them, are a lane each.
pub(crate) fn lanes(
    files: &[PathBuf],
    interleaved: bool,
    single: bool,
    aligned: AlignedOptions,
) -> Result<(Vec<ReadLane>, Vec<Layout>), Usage> {
    let options = AlignedOptions { mates: !single, ..aligned };
    // One file is single reads.
    let single = single || (!interleaved && files.len() == 1);
    let (mut lanes, mut files) = (Vec::new(), files.iter());
    while let Some(file) = files.next() {
        lanes.push(if Aligned::is(file) {
            let layout = if options.mates { Layout::Paired } else { Layout::Single };
            (ReadLane::Aligned(Aligned::new(file, options.clone())), layout)
        } else if interleaved {
            (ReadLane::Interleaved(file.clone()), Layout::Interleaved)
        } else if single {
            (ReadLane::Single(file.clone()), Layout::Single)
        } else if let Some(mates) = files.next().filter(|mates| !Aligned::is(mates)) {
            (ReadLane::Pair(file.clone(), mates.clone()), Layout::Paired)
        } else {
            return Err(Usage(format!(
                "{}: has no mate file: give files of read 1 and read 2 in turn, or say --interleaved or --single",
                file.display()
            )));
        });
    }
    Ok(lanes.into_iter().unzip())
}

/// Read groups that are given, each with an identifier: where that is not given, by the names of the reads of its lane, so that one for all lanes becomes one for each.
///
/// # Errors
/// Reads that cannot be read; names that tell no unit, or reads of a pipe, whose names are not known yet.
pub(crate) fn with_ids(given: &[String], lanes: &[ReadLane]) -> anyhow::Result<Vec<String>> {
    if !given.iter().any(|fields| unit::lacks_id(fields)) || ![1, lanes.len()].contains(&given.len()) {
        return Ok(given.to_vec());
    }
    let of_lane = |(i, lane): (usize, &ReadLane)| {
        let fields = &given[i.min(given.len() - 1)];
        if !unit::lacks_id(fields) {
            return Ok(fields.clone());
        }
        let known = if lane.has_pipe() { None } else { unit::completed(fields, lane)? };
        known.ok_or_else(|| {
            let files = lane.paths().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" and ");
            let why = "the names of its reads do not tell flowcell and lane: give ID as well";
            Usage(format!("-R '{fields}' has no ID, and {files}: {why}")).into()
        })
    };
    lanes.iter().enumerate().map(of_lane).collect()
}

/// The read group of each lane; none at all where none is given.
pub(crate) fn groups(given: &[String], lanes: usize) -> Result<Vec<ReadGroup>, Usage> {
    let groups: Result<Vec<_>, _> = given.iter().map(|text| ReadGroup::parse(text)).collect();
    let groups = groups.map_err(|fault| Usage(fault.to_string()))?;
    if groups.len() == 1 {
        return Ok(vec![groups[0].clone(); lanes]);
    }
    if !groups.is_empty() && groups.len() != lanes {
        return Err(Usage(format!(
            "{} read groups for {lanes} lanes: give one -R for all lanes, or one for each",
            groups.len()
        )));
    }
    for (i, group) in groups.iter().enumerate() {
        if groups[..i].iter().any(|other| other.id() == group.id() && other != group) {
            return Err(Usage(format!("read group {} is given twice, with other fields", group.id())));
        }
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(files: &[&str], interleaved: bool, single: bool) -> Result<Vec<ReadLane>, String> {
        let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
        lanes(&files, interleaved, single, AlignedOptions::default())
            .map(|(lanes, _)| lanes)
            .map_err(|e| e.to_string())
    }

    #[test]
    fn files_become_lanes() {
        let pair = |one: &str, two: &str| ReadLane::Pair(one.into(), two.into());
        assert_eq!(made(&["a"], false, false), Ok(vec![ReadLane::Single("a".into())]));
        assert_eq!(made(&["a", "b", "c", "d"], false, false), Ok(vec![pair("a", "b"), pair("c", "d")]));
        let interleaved = |file: &str| ReadLane::Interleaved(file.into());
        assert_eq!(made(&["a", "b", "c"], true, false), Ok(["a", "b", "c"].map(interleaved).to_vec()));
        assert_eq!(
            made(&["a", "b"], false, true),
            Ok(["a", "b"].map(|f| ReadLane::Single(f.into())).to_vec())
        );
        assert!(made(&["a", "b", "c"], false, false).unwrap_err().starts_with("c: has no mate file: give"));
    }

    #[test]
    fn read_groups_are_for_all_lanes_or_for_each() {
        let given = |texts: &[&str], lanes| {
            let texts: Vec<String> = texts.iter().map(|t| (*t).to_owned()).collect();
            let ids = |groups: Vec<ReadGroup>| groups.iter().map(|g| g.id().to_owned()).collect::<Vec<_>>();
            groups(&texts, lanes).map(ids).map_err(|e| e.to_string())
        };
        assert_eq!(given(&[], 2), Ok(vec![]));
        assert_eq!(given(&["ID:x"], 2), Ok(vec!["x".to_owned(); 2]));
        assert_eq!(given(&["ID:x", "ID:y"], 2), Ok(vec!["x".to_owned(), "y".to_owned()]));
        assert!(given(&["ID:x", "ID:y"], 3).unwrap_err().contains("2 read groups for 3 lanes"));
        assert!(given(&["ID:x", "ID:x\\tSM:y"], 2).unwrap_err().contains("x is given twice"));
        assert!(given(&["SM:x"], 1).unwrap_err().contains("has no ID"));
    }
}
