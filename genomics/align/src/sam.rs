//! Alignment records in their two forms: the bytes of a BAM body and lines of SAM text (SAM specification, sections 1.4
//! and 4.2).
//!
//! Inside the process a record is always the bytes that BAM has for it, with the 4-byte `block_size` before them, and
//! many records stand back to back in one buffer ([`records`]). [`write_line`] and [`parse_line`] translate; neither
//! allocates for a record once its output buffer has grown.
//!
//! The bytes are those that `samtools view -b` writes for the same line: integers in the smallest type that holds them
//! (unsigned when not negative), the bin of the 5-level scheme, and a CIGAR of more than 65,535 operations in a `CG` tag
//! (section 4.2.2). What BAM cannot hold does not survive: bases in lower case become upper case, letters other than
//! `=ACMGRSVTWYHKDBN` become N (U becomes T), and a name has 254 bytes at most.

use std::collections::HashMap;
use std::fmt::Write as _;

mod record;
mod parse;
mod text;

pub(crate) use parse::{parse_fields, parse_operations};
pub(crate) use record::{Builder, Fixed, NO_PLACE};

pub use parse::parse_line;
pub use text::write_line;

/// What can be wrong with a record.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// A line of SAM that breaks the format.
    #[error("SAM line of read {name}: {what}")]
    Line {
        /// Its first field.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// Bytes that are no BAM record.
    #[error("not a BAM record: {0}")]
    Record(&'static str),
    /// A name that BAM cannot hold.
    #[error("read name of {0} bytes: BAM holds 254 at most; shorten it")]
    Name(usize),
}

/// The sequences of a header: the `@SQ` lines, in their order.
#[derive(Debug, Clone, Default)]
pub struct Contigs {
    names: Vec<String>,
    lengths: Vec<u64>,
    /// Numbers of the ALT contigs, in order.
    alt: Vec<usize>,
    numbers: HashMap<Vec<u8>, i32>,
}

impl Contigs {
    /// From names and lengths (bp). Of two with the same name the first is found.
    pub fn new(contigs: impl IntoIterator<Item = (String, u64)>) -> Self {
        let mut all = Contigs::default();
        for (name, length) in contigs {
            let number = all.names.len() as i32;
            all.numbers.entry(name.clone().into_bytes()).or_insert(number);
            all.names.push(name);
            all.lengths.push(length);
        }
        all
    }

    /// The same with those that are ALT contigs by their names: their `@SQ` lines say so (`AH:*`).
    pub(crate) fn with_alt(mut self, is_alt: impl Fn(&str) -> bool) -> Self {
        self.alt = (0..self.len()).filter(|&number| is_alt(&self.names[number])).collect();
        self
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Name of sequence `number`.
    pub fn name(&self, number: i32) -> Option<&str> {
        self.names.get(usize::try_from(number).ok()?).map(String::as_str)
    }

    /// Number of the sequence with that name.
    pub fn number(&self, name: &[u8]) -> Option<i32> {
        self.numbers.get(name).copied()
    }

    /// Names and lengths (bp) in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, u64)> {
        self.names.iter().map(String::as_str).zip(self.lengths.iter().copied())
    }

    /// The `@SQ` lines, each with its line end.
    pub fn header_lines(&self) -> String {
        let mut lines = String::new();
        for (number, (name, length)) in self.iter().enumerate() {
            let alt = if self.alt.binary_search(&number).is_ok() { "\tAH:*" } else { "" };
            // Writing to a string cannot fail.
            let _ = writeln!(lines, "@SQ\tSN:{name}\tLN:{length}{alt}");
        }
        lines
    }
}

/// The records of a buffer, one after the other, each with its `block_size`.
///
/// A buffer that ends within a record gives an error as its last item.
pub fn records(mut bytes: &[u8]) -> impl Iterator<Item = Result<&[u8], Error>> {
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
                Err(Error::Record("the buffer ends within it"))
            }
        })
    })
}

/// Letters of the 4-bit bases (section 4.2.3).
const LETTERS: &[u8; 16] = b"=ACMGRSVTWYHKDBN";
/// Letters of the CIGAR operations (section 4.2).
const OPERATIONS: &[u8; 9] = b"MIDNSHP=X";
/// Operations that a record holds in its own CIGAR field.
const MOST_OPERATIONS: usize = 65_535;

#[cfg(test)]
mod tests;
