//! Merges the VCF text of instances that called variants in different intervals.
//!
//! The header is that of the first interval. The records of each interval follow, without those outside of its own regions:
//! the instance has seen more of the reference than its interval.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};

use super::intervals::{Contig, Interval};

/// Maximum length of a header, bytes.
const MAX_HEADER_BYTES: usize = 256 << 20;
/// Parts of the keys of header lines that may differ between instances: command lines and times.
const DIFFERING_KEY_PARTS: [&str; 4] = ["command", "cmdline", "date", "time"];
/// Alternative alleles of a reference block (VCF specification, section 5.5, and GATK).
const BLOCK_ALLELES: [&[u8]; 3] = [b".", b"<*>", b"<NON_REF>"];
/// Maximum characters of a line that a message shows.
const MAX_SHOWN_CHARS: usize = 80;

/// Reason why the output of an instance cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum VcfError {
    /// The output is not VCF text.
    #[error(
        "its output is not VCF text; if it wrote BCF or gzip, omit that option, and name the merged file with -o x.vcf.gz"
    )]
    NotVcf,
    /// The output has no line with the names of the columns.
    #[error("its header has no #CHROM line")]
    NoColumnNames,
    /// The header does not end.
    #[error("its header does not end")]
    EndlessHeader,
    /// The output ends inside a line.
    #[error("its output ends inside a line")]
    Truncated,
    /// The header differs from that of the first interval.
    #[error("its header differs from that of the first interval: '{line}'; genuma merges VCF with equal headers only")]
    DifferentHeader {
        /// First line that differs.
        line: String,
    },
    /// A record has no valid place.
    #[error("an invalid record: '{line}'")]
    InvalidRecord {
        /// Start of the record.
        line: String,
    },
    /// A record is on a contig that the reads and the reference do not have.
    #[error("a record on a contig that the header of the reads does not have: '{line}'")]
    UnknownContig {
        /// Start of the record.
        line: String,
    },
    /// A reference block reaches over the end of an interval.
    #[error("a reference block (gVCF) reaches over the end of the interval: '{line}'; run again with --padding 0")]
    BlockAcrossCut {
        /// Start of the record.
        line: String,
    },
    /// The output cannot be read.
    #[error("its output cannot be read: {0}")]
    Read(io::Error),
    /// The merged output cannot be written.
    #[error(transparent)]
    Write(io::Error),
}

/// Writes the merged VCF.
pub struct VcfMerger<'a> {
    out: &'a mut dyn Write,
    contigs: &'a [Contig],
    contig_indexes: HashMap<&'a [u8], usize>,
    /// Lines that genuma adds to the header, before the names of the columns.
    added_header: String,
    /// Comparable lines of the header of the first interval; `None` before it.
    first_header: Option<Vec<Vec<u8>>>,
    /// Number of records written.
    pub num_records: u64,
}

impl<'a> VcfMerger<'a> {
    /// Creates a merger. `added_header` are lines that are added to the header.
    pub fn new(out: &'a mut dyn Write, contigs: &'a [Contig], added_header: String) -> VcfMerger<'a> {
        let contig_indexes = contigs.iter().enumerate().map(|(n, contig)| (contig.name.as_bytes(), n)).collect();
        VcfMerger { out, contigs, contig_indexes, added_header, first_header: None, num_records: 0 }
    }

    /// Appends the records of the next interval. Records outside of its own regions are left out.
    ///
    /// # Errors
    /// The output of the instance is not VCF, has another header than that of the first interval, or has a record that
    /// is invalid or a reference block across the end of the interval; or the merged output cannot be written.
    pub fn append_interval(&mut self, mut vcf: impl BufRead, interval: &Interval) -> Result<(), VcfError> {
        let header = read_header(&mut vcf)?;
        let comparable: Vec<Vec<u8>> = header.iter().filter(|line| is_compared(line)).cloned().collect();
        match &self.first_header {
            None => {
                self.write_header(&header)?;
                self.first_header = Some(comparable);
            }
            Some(first) => check_same_header(first, &comparable)?,
        }
        let mut line = Vec::new();
        loop {
            line.clear();
            match vcf.read_until(b'\n', &mut line) {
                Ok(0) => return Ok(()),
                Ok(_) if line.ends_with(b"\n") => {}
                Ok(_) => return Err(VcfError::Truncated),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(VcfError::Read(error)),
            }
            if self.is_own_record(&line, interval)? {
                self.out.write_all(&line).map_err(VcfError::Write)?;
                self.num_records += 1;
            }
        }
    }

    fn write_header(&mut self, header: &[Vec<u8>]) -> Result<(), VcfError> {
        let (column_names, lines) = header.split_last().ok_or(VcfError::NoColumnNames)?;
        let added = self.added_header.as_bytes();
        let all = lines.iter().map(Vec::as_slice).chain([added, column_names]);
        all.into_iter().try_for_each(|line| self.out.write_all(line)).map_err(VcfError::Write)
    }

    /// Whether a record starts in the interval's own regions.
    fn is_own_record(&self, line: &[u8], interval: &Interval) -> Result<bool, VcfError> {
        let mut columns = line.trim_ascii_end().split(|&byte| byte == b'\t');
        let (Some(name), Some(pos), _, _, Some(alleles)) =
            (columns.next(), columns.next(), columns.next(), columns.next(), columns.next())
        else {
            return Err(VcfError::InvalidRecord { line: start_of_line(line) });
        };
        let pos: Option<u64> = std::str::from_utf8(pos).ok().and_then(|pos| pos.parse().ok());
        let pos = pos.ok_or_else(|| VcfError::InvalidRecord { line: start_of_line(line) })?;
        let contig = self.contig_indexes.get(name).copied();
        let contig = contig.ok_or_else(|| VcfError::UnknownContig { line: start_of_line(line) })?;
        // Position 0 is before the first base (VCF specification, section 1.6.1).
        let start = pos.saturating_sub(1);
        let own = interval.find_region(contig, start);
        if BLOCK_ALLELES.contains(&alleles)
            && let Some(end) = columns.nth(2).and_then(block_end)
        {
            let is_cut = match own {
                Some(region) => end > region.end && region.end < self.contigs[contig].length,
                None => interval.find_region(contig, end.saturating_sub(1)).is_some(),
            };
            if is_cut {
                return Err(VcfError::BlockAcrossCut { line: start_of_line(line) });
            }
        }
        Ok(own.is_some())
    }
}

/// Position after the last base of a reference block: `END` of INFO.
fn block_end(info: &[u8]) -> Option<u64> {
    let end = info.split(|&byte| byte == b';').find_map(|field| field.strip_prefix(b"END="))?;
    std::str::from_utf8(end).ok()?.parse().ok()
}

/// Reads all lines of the header; the last one has the names of the columns.
fn read_header(vcf: &mut impl BufRead) -> Result<Vec<Vec<u8>>, VcfError> {
    let (mut lines, mut num_bytes) = (Vec::new(), 0);
    loop {
        let mut line = Vec::new();
        let limit = (MAX_HEADER_BYTES - num_bytes) as u64;
        io::Read::take(&mut *vcf, limit).read_until(b'\n', &mut line).map_err(VcfError::Read)?;
        num_bytes += line.len();
        match lines.len() {
            0 if !line.starts_with(b"##fileformat=VCF") => return Err(VcfError::NotVcf),
            _ if num_bytes >= MAX_HEADER_BYTES => return Err(VcfError::EndlessHeader),
            _ if !line.starts_with(b"#") => return Err(VcfError::NoColumnNames),
            _ if !line.ends_with(b"\n") => return Err(VcfError::Truncated),
            _ => {}
        }
        let is_last = line.starts_with(b"#CHROM");
        lines.push(line);
        if is_last {
            return Ok(lines);
        }
    }
}

/// Whether a header line must be the same in all instances: not if its key names a command line or a time.
fn is_compared(line: &[u8]) -> bool {
    let key = line.split(|&byte| byte == b'=').next().unwrap_or_default();
    let key = String::from_utf8_lossy(key).to_ascii_lowercase();
    !DIFFERING_KEY_PARTS.iter().any(|part| key.contains(part))
}

fn check_same_header(first: &[Vec<u8>], other: &[Vec<u8>]) -> Result<(), VcfError> {
    if first == other {
        return Ok(());
    }
    let same = first.iter().zip(other).take_while(|(a, b)| a == b).count();
    let line = other.get(same).or(first.get(same)).map(|line| start_of_line(line)).unwrap_or_default();
    Err(VcfError::DifferentHeader { line })
}

fn start_of_line(line: &[u8]) -> String {
    String::from_utf8_lossy(line).trim_end().chars().take(MAX_SHOWN_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::super::intervals::Region;
    use super::*;

    const HEADER: &str = "##fileformat=VCFv4.2\n##callerCommand=call -r a\n##INFO=<ID=X>\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n";

    fn contigs() -> Vec<Contig> {
        vec![Contig { name: "c1".to_owned(), length: 1000 }, Contig { name: "c2".to_owned(), length: 500 }]
    }

    fn interval(contig: usize, start: u64, end: u64) -> Interval {
        Interval { regions: vec![Region { contig, start, end }] }
    }

    /// Merges the outputs of the intervals c1:1-500, c1:501-1000 and c2:1-500.
    fn merge(outputs: &[String]) -> Result<String, VcfError> {
        let (mut out, contigs) = (Vec::new(), contigs());
        let mut merger = VcfMerger::new(&mut out, &contigs, "##added=1\n".to_owned());
        let intervals = [interval(0, 0, 500), interval(0, 500, 1000), interval(1, 0, 500)];
        for (vcf, interval) in outputs.iter().zip(&intervals) {
            merger.append_interval(vcf.as_bytes(), interval)?;
        }
        Ok(String::from_utf8(out).expect("UTF-8"))
    }

    fn record(contig: &str, pos: u64) -> String {
        format!("{contig}\t{pos}\t.\tA\tC\t9\t.\tX\n")
    }

    #[test]
    fn records_of_the_padding_are_left_out() {
        let all = [1, 500, 501, 520].map(|pos| record("c1", pos)).concat();
        let other = [480, 500, 501, 1000].map(|pos| record("c1", pos)).concat();
        let time = HEADER.replace("call -r a", "call -r b; Date=2");
        let found =
            merge(&[format!("{HEADER}{all}"), format!("{time}{other}"), format!("{HEADER}{}", record("c2", 7))]);
        let header = HEADER.replace("#CHROM", "##added=1\n#CHROM");
        let records =
            [("c1", 1), ("c1", 500), ("c1", 501), ("c1", 1000), ("c2", 7)].map(|(c, pos)| record(c, pos)).concat();
        assert_eq!(found.expect("a merge"), header + &records);
    }

    #[test]
    fn outputs_that_cannot_be_merged() {
        let block = |from: u64, to: u64| format!("{HEADER}c1\t{from}\t.\tA\t<NON_REF>\t.\t.\tEND={to}\n");
        let whole = format!("{HEADER}{}", record("c1", 9));
        for (outputs, part) in [
            (vec!["\u{1f}\u{8b}x".to_owned()], "not VCF text"),
            (vec![String::new()], "not VCF text"),
            (vec!["##fileformat=VCFv4.2\n".to_owned()], "no #CHROM line"),
            (vec![format!("{HEADER}c1\t1")], "ends inside a line"),
            (vec![HEADER.trim_end().to_owned()], "ends inside a line"),
            (vec![format!("{HEADER}c1\tx\t.\tA\tC\n")], "an invalid record: 'c1\tx"),
            (vec![format!("{HEADER}{}", record("c3", 1))], "does not have: 'c3\t1"),
            (vec![whole.clone(), HEADER.replace("ID=X", "ID=Y")], "'##INFO=<ID=Y>'"),
            (vec![whole.clone(), HEADER.replace("INFO\n", "INFO\tFORMAT\tS\n")], "header differs"),
            (vec![block(490, 501)], "--padding 0"),
            (vec![whole, block(490, 501)], "--padding 0"),
        ] {
            let error = merge(&outputs).expect_err(part).to_string();
            assert!(error.contains(part), "{error}");
        }
        assert!(merge(&[block(490, 500), block(501, 1000)]).is_ok());
    }
}
