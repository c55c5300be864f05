//! Header of a BAM or CRAM file: sample names, platforms and reference sequences (SAM specification, section 1.3).

use std::collections::{BTreeSet, HashMap};

/// Sample names, platforms and reference sequences in the header of a BAM or CRAM file. For BINSEQ files, and for pipes
/// that have not been opened for reading, all are empty and `needs_reference` is false.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AlignedHeader {
    /// Sample names in the read groups (`@RG`, `SM`).
    pub sample_names: BTreeSet<String>,
    /// Sequencing platforms of the read groups (`@RG`, `PL`), in upper case; an empty string stands for read groups
    /// without `PL`.
    pub platforms: BTreeSet<String>,
    /// The reference sequences (`@SQ`); usually empty if the reads are unaligned.
    pub sequences: Vec<HeaderSequence>,
    /// Whether a reference may be needed to decode the bases of the reads: true for every CRAM file.
    pub needs_reference: bool,
}

/// A reference sequence in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderSequence {
    /// Name (`SN`).
    pub name: String,
    /// Length in bases (`LN`).
    pub length: u64,
    /// MD5 sum of the bases in upper case (`M5`), in hexadecimal digits as in the file; `None` if the header has none.
    pub md5: Option<String>,
}

/// Maximum of each number in a header (SAM specification, sections 1.3 and 4.2): sizes in bytes of the text and of names,
/// number of reference sequences, and their lengths in bases.
pub(super) const MAX_HEADER_NUMBER: usize = i32::MAX as usize;

/// Sample names in the read groups of a header text.
pub(super) fn parse_sample_names(text: &[u8]) -> BTreeSet<String> {
    let groups = lines_of_type(text, b"@RG\t");
    groups.filter_map(|line| field_value(line, b"SM:")).collect()
}

/// Sequencing platforms of the read groups of a header text, in upper case; an empty string stands for read groups
/// without `PL`.
pub(super) fn parse_platforms(text: &[u8]) -> BTreeSet<String> {
    let groups = lines_of_type(text, b"@RG\t");
    groups.map(|line| field_value(line, b"PL:").unwrap_or_default().to_ascii_uppercase()).collect()
}

/// The MD5 sums of the reference sequences in a header text, by name.
pub(super) fn parse_md5_sums(text: &[u8]) -> HashMap<String, String> {
    let sequences = lines_of_type(text, b"@SQ\t");
    sequences.filter_map(|line| Some((field_value(line, b"SN:")?, field_value(line, b"M5:")?))).collect()
}

/// The reference sequences in a header text, in order.
///
/// # Errors
/// A reference sequence has no name or no valid length.
pub(super) fn parse_sequences(text: &[u8]) -> Result<Vec<HeaderSequence>, &'static str> {
    let sequence = |line| {
        let name = field_value(line, b"SN:").ok_or("a reference sequence has no name")?;
        let length = field_value(line, b"LN:").and_then(|length| length.parse().ok());
        let length = length.filter(|length| *length <= MAX_HEADER_NUMBER as u64);
        let length = length.ok_or("a reference sequence has no valid length")?;
        Ok(HeaderSequence { name, length, md5: field_value(line, b"M5:") })
    };
    lines_of_type(text, b"@SQ\t").map(sequence).collect()
}

/// IDs of the read groups in a header text, in order; `None` for a read group without an ID.
pub(super) fn read_group_ids(text: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    lines_of_type(text, b"@RG\t").map(|line| field_bytes(line, b"ID:"))
}

/// Lines of a header text that begin with `record_type`.
fn lines_of_type<'a>(text: &'a [u8], record_type: &'static [u8]) -> impl Iterator<Item = &'a [u8]> {
    text.split(|&byte| byte == b'\n').filter(move |line| line.starts_with(record_type))
}

/// Value of the first field with this tag in a header line; `None` if there is none.
fn field_value(line: &[u8], tag: &[u8]) -> Option<String> {
    field_bytes(line, tag).map(|value| String::from_utf8_lossy(value).into_owned())
}

/// Bytes of the value of the first field with this tag in a header line; `None` if there is none.
fn field_bytes<'a>(line: &'a [u8], tag: &[u8]) -> Option<&'a [u8]> {
    let value = line.split(|&byte| byte == b'\t').find_map(|field| field.strip_prefix(tag))?;
    let end = value.iter().rposition(|byte| !matches!(byte, b'\r' | b'\0'));
    Some(&value[..end.map_or(0, |last| last + 1)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_and_sums_are_read_from_their_own_lines() {
        let text =
            b"@HD\tVN:1.6\n@SQ\tSN:chr1\tLN:10\tM5:abc\r\n@SQ\tSN:chr2\tLN:5\n@RG\tID:a\tSM:one\tLB:x\n@RG\tID:b\n\
            @RG\tID:c\tSM:two\n@CO\tSM:three\n\0\0";
        assert_eq!(parse_sample_names(text), BTreeSet::from(["one".to_owned(), "two".to_owned()]));
        assert_eq!(parse_platforms(text), BTreeSet::from([String::new()]));
        let groups = b"@RG\tID:a\tPL:illumina\n@RG\tID:b\tPL:ILLUMINA\tSM:x\n@CO\tPL:ONT\n";
        assert_eq!(parse_platforms(groups), BTreeSet::from(["ILLUMINA".to_owned()]));
        assert_eq!(parse_md5_sums(text), HashMap::from([("chr1".to_owned(), "abc".to_owned())]));
    }
}
