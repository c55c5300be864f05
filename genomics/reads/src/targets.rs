//! Target intervals of exomes and panels: BED, or an interval list of Picard, plain or gzipped.
//!
//! BED positions are 0-based and half-open. Interval lists start with a SAM header; their positions are 1-based and
//! closed. Overlapping intervals are merged, so that each base of the targets counts once.

use std::collections::HashMap;
use std::path::Path;

use crate::error::{Error, FileFault, TargetFault};
use crate::text_lines::for_each_line;

/// One target interval on a contig; 0-based, half-open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Index of the contig in the reference.
    pub contig: usize,
    /// 0-based position of the first base.
    pub start: usize,
    /// 0-based position after the last base.
    pub end: usize,
    /// Name of the interval; the different names, separated by commas, if overlapping intervals were merged. Empty if
    /// the file has no name for it, or a dot.
    pub name: String,
}

impl Target {
    /// Length of the interval in bases.
    pub fn num_bases(&self) -> usize {
        self.end - self.start
    }
}

/// The target intervals of a file, sorted by contig and position, without overlaps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Targets {
    /// Intervals, sorted by contig and position. Overlapping intervals are merged.
    pub intervals: Vec<Target>,
    /// Number of intervals in the file, before overlapping intervals were merged.
    pub num_intervals_read: usize,
}

impl Targets {
    /// Reads a targets file and checks it against the names and lengths of the contigs of the reference.
    ///
    /// # Errors
    /// The file cannot be read or has no interval; a line is invalid or does not fit the reference.
    pub fn read_targets_file(path: &Path, contigs: &[(String, usize)]) -> Result<Targets, Error> {
        let mut parser = TargetParser {
            contigs,
            index: contigs.iter().enumerate().map(|(i, (name, _))| (name.as_str(), i)).collect(),
            is_interval_list: false,
            intervals: Vec::new(),
        };
        let error_at = |line, fault| Error::Target { path: path.into(), line, fault };
        for_each_line(
            path,
            |number, line| parser.parse_line(line).map_err(|fault| error_at(number, fault)),
            |number, format, damage| error_at(number, TargetFault::Compressed(format, damage)),
        )?;
        if parser.intervals.is_empty() {
            return Err(Error::error_in_file(path, FileFault::NoTargets));
        }
        Ok(Targets::merge_overlapping_intervals(parser.intervals))
    }

    /// Sorts intervals and merges those that overlap.
    pub fn merge_overlapping_intervals(mut intervals: Vec<Target>) -> Targets {
        let num_intervals_read = intervals.len();
        // The sort is stable, so names stay in the order of the file.
        intervals.sort_by_key(|target| (target.contig, target.start, target.end));
        intervals.dedup_by(|next, kept| {
            let overlaps = next.contig == kept.contig && next.start < kept.end;
            if overlaps {
                kept.end = kept.end.max(next.end);
                if !next.name.is_empty() && kept.name.split(',').all(|name| name != next.name) {
                    kept.name += if kept.name.is_empty() { "" } else { "," };
                    kept.name += &next.name;
                }
            }
            overlaps
        });
        Targets { intervals, num_intervals_read }
    }

    /// Total number of bases in the targets.
    pub fn num_bases(&self) -> u64 {
        self.intervals.iter().map(|target| target.num_bases() as u64).sum()
    }

    /// Whether some base of `start..end` of a contig is in a target that is extended by `padding_bp` bases on both
    /// sides.
    pub fn any_padded_target_overlaps(&self, contig: usize, start: usize, end: usize, padding_bp: usize) -> bool {
        // As targets do not overlap, their ends are sorted too.
        let first =
            self.intervals.partition_point(|target| (target.contig, target.end + padding_bp) <= (contig, start));
        self.intervals.get(first).is_some_and(|target| target.contig == contig && target.start < end + padding_bp)
    }
}

struct TargetParser<'a> {
    contigs: &'a [(String, usize)],
    index: HashMap<&'a str, usize>,
    /// Whether the file is an interval list of Picard: it has a SAM header.
    is_interval_list: bool,
    intervals: Vec<Target>,
}

impl TargetParser<'_> {
    fn parse_line(&mut self, line: &str) -> Result<(), TargetFault> {
        if line.starts_with('@') {
            self.is_interval_list = true;
            return self.check_header_line(line);
        }
        let first = line.split_ascii_whitespace().next();
        if line.starts_with('#') || matches!(first, None | Some("track" | "browser")) {
            return Ok(());
        }
        // Names of BED files may contain blanks if tabs separate the columns.
        let fields: Vec<&str> =
            if line.contains('\t') { line.split('\t').collect() } else { line.split_ascii_whitespace().collect() };
        let &[name, start, end, ..] = &fields[..] else { return Err(TargetFault::MissingColumns(3)) };
        let parse = |text: &str| text.trim().parse::<u64>().map_err(|_| TargetFault::Position(text.to_owned()));
        let (start, end) = (parse(start)?, parse(end)?);
        let first = if self.is_interval_list { start.checked_sub(1) } else { Some(start) };
        let Some(first) = first.filter(|&first| first < end) else {
            return Err(match self.is_interval_list {
                true => TargetFault::EmptyListInterval { start, end },
                false => TargetFault::EmptyBedInterval { start, end },
            });
        };
        let Some(&contig) = self.index.get(name) else {
            return Err(TargetFault::UnknownContig { name: name.to_owned(), similar: self.similar_name(name) });
        };
        let contig_bases = self.contigs[contig].1;
        if end > contig_bases as u64 {
            return Err(TargetFault::BeyondContig { end, name: name.to_owned(), contig_bases });
        }
        // Column 4 of an interval list is the strand.
        let label = fields.get(if self.is_interval_list { 4 } else { 3 }).map_or("", |label| label.trim());
        let label = if label == "." { "" } else { label };
        self.intervals.push(Target { contig, start: first as usize, end: end as usize, name: label.to_owned() });
        Ok(())
    }

    /// Checks that a contig has the same length in an `@SQ` line of an interval list and in the reference.
    fn check_header_line(&self, line: &str) -> Result<(), TargetFault> {
        let field = |tag: &str| line.split('\t').skip(1).find_map(|field| field.strip_prefix(tag));
        let (Some(name), Some(length)) = (field("SN:"), field("LN:").and_then(|length| length.trim().parse().ok()))
        else {
            return Ok(());
        };
        match self.index.get(name).map(|&contig| self.contigs[contig].1) {
            Some(contig_bases) if line.starts_with("@SQ\t") && contig_bases != length => {
                Err(TargetFault::ContigLength { name: name.to_owned(), header_bases: length, contig_bases })
            }
            _ => Ok(()),
        }
    }

    /// Name of a contig of the reference that differs from `name` only in the prefix `chr`, or in the name of the
    /// mitochondrion.
    fn similar_name(&self, name: &str) -> Option<String> {
        let bare = name.strip_prefix("chr").unwrap_or(name);
        let bare = if matches!(bare, "M" | "MT") { ["M", "MT"] } else { [bare, bare] };
        let names = bare.into_iter().flat_map(|bare| [bare.to_owned(), format!("chr{bare}")]);
        names.into_iter().find(|name| self.index.contains_key(name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(bytes: &[u8]) -> Result<Targets, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("targets.bed");
        std::fs::write(&path, bytes).unwrap();
        Targets::read_targets_file(&path, &[("chr1".to_owned(), 1000), ("2".to_owned(), 500), ("chrM".to_owned(), 90)])
    }

    fn target(contig: usize, start: usize, end: usize, name: &str) -> Target {
        Target { contig, start, end, name: name.to_owned() }
    }

    #[test]
    fn bed_files_are_sorted_and_overlaps_merged() {
        let text = "browser position chr1\ntrack name=x\n# comment\n\n2\t10\t20\tb exon\r\nchr1 100 200 one\n\
                    chr1\t150\t250\ttwo\nchr1\t160\t170\tone\nchr1\t250\t260\nchr1\t0\t1\t.";
        let expected =
            [target(0, 0, 1, ""), target(0, 100, 250, "one,two"), target(0, 250, 260, ""), target(1, 10, 20, "b exon")];
        let plain = read(text.as_bytes()).unwrap();
        assert_eq!(plain.intervals, expected);
        assert_eq!((plain.num_intervals_read, plain.num_bases()), (6, 171));
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let packed = gzip.finish().unwrap();
        assert_eq!(read(&packed).unwrap(), plain);
        let damaged = read(&packed[..packed.len() - 12]).unwrap_err().to_string();
        assert!(damaged.contains("line ") && damaged.contains("gzip data"), "{damaged}");
    }

    #[test]
    fn interval_lists_start_at_one_and_include_their_end() {
        let header = "@HD\tVN:1.6\n@SQ\tSN:chr1\tLN:1000\n@SQ\tSN:other\tLN:7\n";
        let list = |lines: &str| read(format!("{header}{lines}").as_bytes());
        let expected = [target(0, 0, 1000, "all"), target(1, 9, 10, "")];
        assert_eq!(list("2\t10\t10\t-\t.\nchr1\t1\t1000\t+\tall\n").unwrap().intervals, expected);
        for (line, part) in [
            ("chr1\t0\t5\t+\tx", "line 4: 0 to 5 is not an interval"),
            ("chr1\t6\t5\t+\tx", "line 4: 6 to 5 is not an interval"),
            ("chr1\t6\t1001\t+\tx", "line 4: end 1001 is beyond contig \"chr1\" of 1000 bases"),
            ("@SQ\tSN:2\tLN:501", "line 4: contig \"2\" has 501 bases in the header and 500 in the reference"),
        ] {
            let error = list(line).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn each_fault_names_line_and_remedy() {
        for (text, parts) in [
            ("chr1\t1\t2\n1\t1\t2\n", ["line 2: the reference has no contig \"1\", but \"chr1\"", "rename"]),
            ("chr2\t1\t2\n", ["line 1: the reference has no contig \"chr2\", but \"2\"", "rename"]),
            ("MT\t1\t2\n", ["no contig \"MT\", but \"chrM\"", "rename"]),
            ("chr7\t1\t2\n", ["no contig \"chr7\": give targets", "genome build"]),
            ("chr1\t5\t5\n", ["line 1: start 5 is not before end 5", "correct or remove"]),
            ("chr1\t9\t5\n", ["line 1: start 9 is not before end 5", "BED starts at 0"]),
            ("#\nchr1\t9\t1001\n", ["line 2: end 1001 is beyond contig \"chr1\" of 1000", "genome build"]),
            ("chr1\t-1\t5\n", ["line 1: \"-1\" is not a position", "not negative"]),
            ("chr1\t1\tx\n", ["line 1: \"x\" is not a position", "whole number"]),
            ("chr1\t1\n", ["line 1: has fewer than 3 columns", "@SQ"]),
            ("", ["is empty", "give a file"]),
            ("# nothing\n", ["has no targets", "at least one interval"]),
        ] {
            let error = read(text.as_bytes()).unwrap_err().to_string();
            assert!(parts.iter().all(|part| error.contains(part)) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn padding_extends_both_sides() {
        let targets = Targets::merge_overlapping_intervals(vec![target(0, 100, 200, ""), target(1, 50, 60, "")]);
        let inside = |contig, start, end| targets.any_padded_target_overlaps(contig, start, end, 10);
        assert!(!inside(0, 89, 90) && inside(0, 90, 91) && inside(0, 209, 210) && !inside(0, 210, 211));
        assert!(inside(0, 0, 500) && !inside(1, 0, 40) && inside(1, 0, 41) && !inside(2, 0, 500));
        assert!(!inside(1, 70, 71) && !inside(0, 210, 300));
    }
}
