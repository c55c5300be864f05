//! Alignment records as BAM bytes and as lines of SAM text (SAM specification, sections 1.4 and 4.2).
//!
//! Inside the process a record is always its BAM bytes with the 4-byte `block_size` before them. Many records are
//! stored back to back in one buffer ([`split_bam_records`]). [`write_sam_line`] converts BAM to SAM,
//! [`parse_sam_line`] converts SAM to BAM. Neither allocates memory per record once its output buffer is large enough.
//!
//! The bytes are the same as those of `samtools view -b` for the same line: an integer tag has the smallest type that
//! holds its value (unsigned if the value is not negative), the bin is that of the 5-level scheme, and a CIGAR of
//! more than 65,535 operations is stored in a `CG` tag (section 4.2.2). BAM cannot represent everything: bases in
//! lower case become upper case, letters other than `=ACMGRSVTWYHKDBN` become N (U becomes T), and a read name has at
//! most 254 bytes.

use std::collections::HashMap;
use std::fmt::Write as _;

mod bam_record;
mod parse;
mod text;

pub(crate) use bam_record::{FixedFields, NO_POSITION, RecordBuilder};
pub(crate) use parse::parse_and_push_tags;

pub use parse::parse_sam_line;
pub use text::write_sam_line;

/// Why a record cannot be converted between SAM and BAM.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// A line of SAM text that violates the SAM format.
    #[error("SAM line of read {name}: {reason}")]
    SamLine {
        /// First field of the line: the read name.
        name: String,
        /// What is wrong with the line.
        reason: String,
    },
    /// Bytes that are not a valid BAM record.
    #[error("not a BAM record: {0}")]
    InvalidBamRecord(&'static str),
    /// A read name that is longer than the 254 bytes that BAM allows; the field is its length in bytes.
    #[error("read name of {0} bytes: BAM holds 254 at most; shorten it")]
    NameTooLong(usize),
}

/// The reference sequences of a SAM header (`@SQ` lines) in header order, with a lookup by name.
#[derive(Debug, Clone, Default)]
pub struct Contigs {
    names: Vec<String>,
    lengths: Vec<u64>,
    /// Indices in the header of the ALT contigs, ascending.
    alt_numbers: Vec<usize>,
    number_by_name: HashMap<Vec<u8>, i32>,
}

impl Contigs {
    /// Builds the table from names and lengths (bp). If two sequences have the same name, the lookup by name returns
    /// the first.
    pub fn new(contigs: impl IntoIterator<Item = (String, u64)>) -> Self {
        let mut table = Contigs::default();
        for (name, length) in contigs {
            let number = table.names.len() as i32;
            table.number_by_name.entry(name.clone().into_bytes()).or_insert(number);
            table.names.push(name);
            table.lengths.push(length);
        }
        table
    }

    /// Marks the sequences for whose name `is_alt` returns true as ALT contigs. Their `@SQ` lines get the tag `AH:*`.
    pub(crate) fn with_alt_contigs_marked(mut self, is_alt: impl Fn(&str) -> bool) -> Self {
        self.alt_numbers = (0..self.num_contigs()).filter(|&number| is_alt(&self.names[number])).collect();
        self
    }

    /// Number of sequences of the reference, as in `@SQ` lines.
    pub fn num_contigs(&self) -> usize {
        self.names.len()
    }

    /// Name of the sequence with this index in the header; `None` if the index is negative or too large.
    pub fn contig_name(&self, number: i32) -> Option<&str> {
        self.names.get(usize::try_from(number).ok()?).map(String::as_str)
    }

    /// Index in the header of the sequence with this name; `None` if there is none.
    pub fn contig_index(&self, name: &[u8]) -> Option<i32> {
        self.number_by_name.get(name).copied()
    }

    /// Names and lengths (bp) of all sequences, in header order.
    pub fn iter_names_and_lengths(&self) -> impl ExactSizeIterator<Item = (&str, u64)> {
        self.names.iter().map(String::as_str).zip(self.lengths.iter().copied())
    }

    /// The `@SQ` header lines, each with a line end.
    pub fn format_sq_header_lines(&self) -> String {
        let mut lines = String::new();
        for (number, (name, length)) in self.iter_names_and_lengths().enumerate() {
            let alt = if self.alt_numbers.binary_search(&number).is_ok() { "\tAH:*" } else { "" };
            // Writing to a string cannot fail.
            let _ = writeln!(lines, "@SQ\tSN:{name}\tLN:{length}{alt}");
        }
        lines
    }
}

/// Splits a buffer of BAM records that are stored back to back. Each item is one record with its `block_size`.
///
/// If the buffer ends in the middle of a record, the last item is an error.
pub fn split_bam_records(mut bytes: &[u8]) -> impl Iterator<Item = Result<&[u8], Error>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let size = bytes.first_chunk().map(|b| u32::from_le_bytes(*b) as usize);
        let whole = size.and_then(|size| bytes.split_at_checked(size.checked_add(4)?));
        Some(match whole {
            Some((record, rest)) => {
                bytes = rest;
                Ok(record)
            }
            None => {
                bytes = &[];
                Err(Error::InvalidBamRecord("the buffer ends within the record"))
            }
        })
    })
}

/// Letters of the 4-bit base codes of BAM (section 4.2.3).
const BASE_LETTERS: &[u8; 16] = b"=ACMGRSVTWYHKDBN";
/// Letters of the CIGAR operation codes of BAM (section 4.2).
const CIGAR_LETTERS: &[u8; 9] = b"MIDNSHP=X";
/// Maximum number of operations in the CIGAR field of a BAM record; a longer CIGAR is stored in the `CG` tag.
const MAX_CIGAR_OPS: usize = 65_535;

#[cfg(test)]
mod tests;
