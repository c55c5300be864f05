//! Iterates over the strings of a dictionary.

use std::io::{self, Write};
use std::ops::Range;

use crate::dictionary::Dictionary;
use crate::error::Error;
use crate::kmer_strings::KmerStrings;

/// Number of bases that are decoded at a time.
const BASES_PER_READ: u32 = 32;

/// A string of a dictionary: a simplitig, whose k-mers occur in no other string.
#[derive(Debug, Clone)]
pub struct DictionaryString<'d> {
    strings: &'d KmerStrings,
    /// Positions of its bases among the bases of all strings.
    positions: Range<u64>,
    kmer_numbers: Range<u64>,
}

impl DictionaryString<'_> {
    /// Number of bases.
    pub fn num_bases(&self) -> u64 {
        self.positions.end - self.positions.start
    }

    /// Numbers of its k-mers in the order of the string, for [`Dictionary::get_count`].
    pub fn kmer_numbers(&self) -> Range<u64> {
        self.kmer_numbers.clone()
    }

    /// Writes the bases as A, C, G and T.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn write_bases(&self, out: &mut impl Write) -> io::Result<()> {
        let mut position = self.positions.start;
        while position < self.positions.end {
            let num_bases = (self.positions.end - position).min(BASES_PER_READ.into()) as u32;
            let codes = self.strings.kmer_at(position, num_bases);
            let mut bases = [0; BASES_PER_READ as usize];
            for (base, place) in bases.iter_mut().zip((0..num_bases).rev()) {
                *base = b"ACGT"[(codes >> (2 * place) & 3) as usize];
            }
            out.write_all(&bases[..num_bases as usize])?;
            position += u64::from(num_bases);
        }
        Ok(())
    }
}

impl Dictionary {
    /// The strings into which the k-mers were joined, in the order of the k-mer numbers. After an error there are no
    /// more strings.
    ///
    /// # Errors
    /// [`Error::InconsistentStrings`], only for a damaged file with valid checksums.
    pub fn strings(&self) -> impl Iterator<Item = Result<DictionaryString<'_>, Error>> {
        let (strings, k) = (&self.strings, u64::from(self.k));
        let mut starts = strings.start_positions().peekable();
        let (mut string, mut expected_start, mut has_failed) = (0, 0, false);
        std::iter::from_fn(move || {
            if has_failed || (string == strings.num_strings && starts.peek().is_none() && string > 0) {
                return None;
            }
            let start = match starts.next() {
                Some(start) => start,
                None if strings.num_strings == 0 && strings.num_bases == 0 => return None,
                None => {
                    has_failed = true;
                    return Some(Err(Error::InconsistentStrings));
                }
            };
            let end = starts.peek().copied().unwrap_or(strings.num_bases);
            let is_last = starts.peek().is_none();
            let num_later = strings.num_strings.saturating_sub(string + 1);
            let is_consistent = start == expected_start
                && string < strings.num_strings
                && is_last == (num_later == 0)
                && end >= start + k
                && end + num_later * k <= strings.num_bases;
            if !is_consistent {
                has_failed = true;
                return Some(Err(Error::InconsistentStrings));
            }
            let first_kmer = start - string * (k - 1);
            let kmer_numbers = first_kmer..first_kmer + (end - start - k + 1);
            (string, expected_start) = (string + 1, end);
            Some(Ok(DictionaryString { strings, positions: start..end, kmer_numbers }))
        })
    }
}
