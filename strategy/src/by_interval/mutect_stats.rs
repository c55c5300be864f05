//! Merges the `.stats` files of Mutect2, which FilterMutectCalls reads beside the VCF. They hold the number of callable
//! sites.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use super::intervals::{Contig, Interval, Region};

const HEADER: &str = "statistic\tvalue";
const CALLABLE: &str = "callable";

/// Totals of the `.stats` files of Mutect2.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MutectStats {
    /// Number of sites with enough reads to call a variant.
    callable_sites: f64,
}

/// Reason why a `.stats` file cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum StatsError {
    /// The file cannot be read.
    #[error("its .stats file cannot be read: {0}")]
    Read(io::Error),
    /// A line is not a statistic of Mutect2 that genuma knows.
    #[error("unknown line in its .stats file: '{0}'")]
    UnknownLine(String),
}

impl MutectStats {
    /// Adds the statistics of an instance from its `.stats` file. `totals` becomes `Some` with the first file. A missing
    /// file, and one that is not of Mutect2, changes nothing.
    ///
    /// The instance has counted callable sites in its padding too, so the count is multiplied by the share of the
    /// interval's own bases.
    ///
    /// # Errors
    /// The file cannot be read, or has a statistic other than the number of callable sites.
    pub(super) fn add_file(
        totals: &mut Option<MutectStats>,
        path: &Path,
        interval: &Interval,
        padding_bp: u64,
        contigs: &[Contig],
    ) -> Result<(), StatsError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(StatsError::Read(error)),
        };
        let Some(lines) = text.strip_prefix(HEADER) else { return Ok(()) };
        let total_bp = |regions: &[Region]| regions.iter().map(Region::len_bp).sum::<u64>() as f64;
        let own_share = total_bp(&interval.regions) / total_bp(&interval.padded_regions(padding_bp, contigs)).max(1.0);
        let totals = totals.get_or_insert_default();
        for line in lines.lines().filter(|line| !line.is_empty()) {
            let value = line.strip_prefix(CALLABLE).and_then(|rest| rest.strip_prefix('\t')?.parse::<f64>().ok());
            let sites = value.ok_or_else(|| StatsError::UnknownLine(line.to_owned()))?;
            totals.callable_sites += sites * own_share;
        }
        Ok(())
    }

    /// Formats the totals as a `.stats` file of Mutect2.
    pub fn format_file(&self) -> String {
        format!("{HEADER}\n{CALLABLE}\t{:.1}\n", self.callable_sites.round())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contigs() -> Vec<Contig> {
        vec![Contig { name: "chr1".to_owned(), length: 10_000 }]
    }

    fn interval(start: u64, end: u64) -> Interval {
        Interval { regions: vec![Region { contig: 0, start, end }] }
    }

    fn add(totals: &mut Option<MutectStats>, text: Option<&str>, of: &Interval) -> Result<(), StatsError> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.vcf.stats");
        if let Some(text) = text {
            fs::write(&path, text).expect("a file");
        }
        MutectStats::add_file(totals, &path, of, 1000, &contigs())
    }

    #[test]
    fn callable_sites_are_added_without_those_of_the_padding() {
        let mut totals = None;
        // 4,000 of 5,000 bp are the interval's own: the padding ends with the contig.
        add(&mut totals, Some("statistic\tvalue\ncallable\t5000.0\n"), &interval(0, 4000)).expect("statistics");
        add(&mut totals, Some("statistic\tvalue\ncallable\t700.0\n"), &interval(4000, 10_000)).expect("statistics");
        let text = totals.expect("totals").format_file();
        assert_eq!(text, "statistic\tvalue\ncallable\t4600.0\n");
    }

    #[test]
    fn other_files_are_ignored_and_unknown_statistics_are_an_error() {
        let mut totals = None;
        add(&mut totals, None, &interval(0, 4000)).expect("no file");
        add(&mut totals, Some("# This file was produced by bcftools stats\n"), &interval(0, 4000))
            .expect("another file");
        assert_eq!(totals, None);
        let error = add(&mut totals, Some("statistic\tvalue\nreads\t5\n"), &interval(0, 4000)).expect_err("an error");
        assert_eq!(error.to_string(), "unknown line in its .stats file: 'reads\t5'");
    }
}
