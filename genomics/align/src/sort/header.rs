//! Header of a coordinate-sorted BAM or CRAM file.

use std::fmt::Write as _;
use std::path::Path;

use super::Error;

/// The header of a sorted BAM or CRAM file (SAM specification, sections 1.3 and 4.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortedFileHeader {
    text: String,
    /// Name and length (bp) of each reference sequence.
    sequences: Vec<(String, u32)>,
}

impl SortedFileHeader {
    /// Makes the header of a sorted file from the header lines `sam`. All lines are kept except `@HD`, which is
    /// replaced by a line for records sorted by coordinate.
    ///
    /// # Errors
    /// An `@SQ` line has no name, or no length that BAM can hold.
    pub fn from_sam_header(sam: &str) -> Result<SortedFileHeader, Error> {
        let mut version = "1.6";
        let mut others = String::with_capacity(sam.len());
        let mut sequences = Vec::new();
        for line in sam.lines().filter(|l| !l.is_empty()) {
            let field = |name| line.split('\t').find_map(|f| f.strip_prefix(name));
            match line.split('\t').next() {
                Some("@HD") => {
                    version = field("VN:").unwrap_or(version);
                    continue;
                }
                Some("@SQ") => {
                    let length = field("LN:").and_then(|l| l.parse().ok()).filter(|l| (1..1 << 31).contains(l));
                    let (Some(name), Some(length)) = (field("SN:"), length) else {
                        return Err(Error::Header { line: line.to_owned() });
                    };
                    sequences.push((name.to_owned(), length));
                }
                _ => {}
            }
            others.push_str(line);
            others.push('\n');
        }
        Ok(SortedFileHeader { text: format!("@HD\tVN:{version}\tSO:coordinate\n{others}"), sequences })
    }

    /// The header lines as SAM text.
    pub fn header_text(&self) -> &str {
        &self.text
    }

    /// Name and length (bp) of each reference sequence.
    pub(super) fn sequence_names_and_lengths(&self) -> &[(String, u32)] {
        &self.sequences
    }

    /// IDs of the read groups, in header order.
    pub(super) fn read_group_ids(&self) -> impl Iterator<Item = &str> {
        let groups = self.text.lines().filter(|line| line.starts_with("@RG\t"));
        groups.filter_map(|line| line.split('\t').find_map(|field| field.strip_prefix("ID:")))
    }

    /// The header lines for CRAM. To `@SQ` lines that lack them, adds the MD5 sum (`M5`) from `sums` and the path of
    /// the reference file (`UR`).
    pub(super) fn format_cram_header(&self, sums: &[[u8; 16]], path: Option<&Path>) -> String {
        // I/O error ignored: the path is then written as it was given.
        let path = path.map(|path| path.canonicalize().unwrap_or_else(|_| path.to_owned()));
        let mut text = String::with_capacity(2 * self.text.len());
        let mut sums = sums.iter();
        for line in self.text.lines() {
            text.push_str(line);
            if line.starts_with("@SQ\t") {
                let has = |tag| line.split('\t').any(|field| field.starts_with(tag));
                // Writing to a string cannot fail.
                if let Some(sum) = sums.next().filter(|_| !has("M5:")) {
                    let _ = write!(text, "\tM5:{:032x}", u128::from_be_bytes(*sum));
                }
                if let Some(path) = path.as_ref().filter(|_| !has("UR:")) {
                    let _ = write!(text, "\tUR:file://{}", path.display());
                }
            }
            text.push('\n');
        }
        text
    }

    /// Number of `@SQ` lines.
    pub fn num_sequences(&self) -> usize {
        self.sequences.len()
    }

    /// Length (bp) of the longest reference sequence.
    pub fn max_sequence_bp(&self) -> usize {
        self.sequences.iter().map(|s| s.1 as usize).max().unwrap_or(0)
    }

    /// The header encoded as the first bytes of a BAM file.
    pub(super) fn encode_bam_header(&self) -> Vec<u8> {
        let number = |n: usize| (n as u32).to_le_bytes();
        let mut out = b"BAM\x01".to_vec();
        out.extend_from_slice(&number(self.text.len()));
        out.extend_from_slice(self.text.as_bytes());
        out.extend_from_slice(&number(self.sequences.len()));
        for (name, length) in &self.sequences {
            out.extend_from_slice(&number(name.len() + 1));
            out.extend_from_slice(name.as_bytes());
            out.push(0);
            out.extend_from_slice(&length.to_le_bytes());
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_and_the_order_is_told() {
        let header = SortedFileHeader::from_sam_header(
            "@HD\tVN:1.5\tSO:queryname\tGO:query\n@SQ\tSN:a\tLN:7\n@SQ\tLN:9\tSN:b\n@CO\tx\n",
        )
        .unwrap();
        assert_eq!(header.header_text(), "@HD\tVN:1.5\tSO:coordinate\n@SQ\tSN:a\tLN:7\n@SQ\tLN:9\tSN:b\n@CO\tx\n");
        assert_eq!((header.num_sequences(), header.max_sequence_bp()), (2, 9));
        let encoded = header.encode_bam_header();
        assert!(encoded.ends_with(b"\x02\0\0\0\x02\0\0\0a\0\x07\0\0\0\x02\0\0\0b\0\x09\0\0\0"));
        assert_eq!(SortedFileHeader::from_sam_header("").unwrap().header_text(), "@HD\tVN:1.6\tSO:coordinate\n");
    }

    #[test]
    fn a_sequence_without_a_length_is_refused() {
        for line in ["@SQ\tSN:a", "@SQ\tSN:a\tLN:0", "@SQ\tSN:a\tLN:2147483648", "@SQ\tLN:5"] {
            let said = SortedFileHeader::from_sam_header(line).unwrap_err().to_string();
            assert!(said.contains(line), "{said}");
        }
    }
}
