//! The note (metadata) in a file with k-mer counts: parameters, samples, and encoding of the counts.

use std::path::Path;

use genuma_flash::{MAX_NOTE_BYTES, TablePageReader, TableSpec};
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Value of the key `kind` in the notes of k-mer counts.
const NOTE_KIND: &str = "genuma k-mer counts";
const COUNT_BYTES: usize = size_of::<u32>();
/// A value that is no canonical k-mer, greater than all of them: a canonical k-mer begins or ends with A or C.
pub(crate) const INVALID_KMER: u64 = u64::MAX;
/// A table of n k-mers has at most n divided by this number hot k-mers: those with the highest counts, which readers
/// keep in memory. Chosen.
const KMERS_PER_HOT_KMER: u64 = 1024;
/// Maximum number of hot k-mers of a table.
const MAX_HOT_KMERS: u64 = 1 << 16;

/// The note of a table or dictionary of k-mer counts, stored as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableNote {
    kind: String,
    /// Length of the k-mers in bases.
    pub k: u32,
    /// Minimum count of a k-mer in the table, summed over all samples.
    pub min_count: u32,
    /// Minimum Phred quality of all bases of a k-mer that was counted; 0 if qualities were ignored.
    pub min_base_quality: u8,
    /// Names of the samples, in the order of the counts of a k-mer.
    pub samples: Vec<String>,
    /// How the table was derived from other tables; absent if the k-mers were counted from reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<TableDerivation>,
}

/// How a table was derived from other tables (`genuma kmers union` and so on).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableDerivation {
    /// The set operation: `union`, `intersect` and so on.
    pub operation: String,
    /// How counts were combined, such as `sum`; [`TableDerivation::COUNTS_VALUE_FOR_NUM_SAMPLES`] if each count is the
    /// number of samples that have the k-mer.
    pub counts: String,
    /// Number of input tables.
    pub tables: u64,
    /// Total number of samples in the input tables.
    pub samples: u64,
}

impl TableDerivation {
    /// Value of `counts` if each count in the table is the number of samples that have the k-mer.
    pub const COUNTS_VALUE_FOR_NUM_SAMPLES: &str = "samples";
}

impl TableNote {
    /// Creates the note of a table whose k-mers were counted from reads.
    pub fn for_counted_table(k: u32, min_count: u32, min_base_quality: u8, samples: Vec<String>) -> Self {
        TableNote { kind: NOTE_KIND.to_owned(), k, min_count, min_base_quality, samples, made: None }
    }

    /// Returns the note of a table: k, samples and parameters.
    ///
    /// # Errors
    /// The table is not of k-mer counts.
    pub fn read_from_table(scan: &TablePageReader) -> Result<Self, Error> {
        TableNote::parse_table_note(scan.note(), scan.value_bytes())
            .filter(|_| scan.min_and_max_key().is_none_or(|(_, last)| last < INVALID_KMER))
            .ok_or_else(|| Error::NoKmerCounts { path: scan.path().to_path_buf() })
    }

    /// Returns the specification of a k-mer table with this note and at most `max_kmers` k-mers.
    ///
    /// # Errors
    /// The names of the samples are too long.
    pub fn table_spec(&self, max_kmers: u64) -> Result<TableSpec, Error> {
        let note = serde_json::to_vec(self).map_err(std::io::Error::from)?;
        if note.len() > MAX_NOTE_BYTES {
            return Err(Error::NoteTooLong);
        }
        Ok(TableSpec {
            hot_entries: (max_kmers / KMERS_PER_HOT_KMER).min(MAX_HOT_KMERS) as usize,
            min_entries_per_hot_entry: KMERS_PER_HOT_KMER,
            note,
            ..TableSpec::new_for_counts(self.samples.len(), max_kmers)
        })
    }

    /// Parses a note. `None` if it is not the note of k-mer counts.
    pub fn parse_note(bytes: &[u8]) -> Option<Self> {
        let note: TableNote = serde_json::from_slice(bytes).ok()?;
        (note.kind == NOTE_KIND && (1..=32).contains(&note.k) && !note.samples.is_empty()).then_some(note)
    }

    /// Parses the note of a table with `value_bytes` bytes of counts for each k-mer. `None` if it is not the note of k-mer
    /// counts.
    pub fn parse_table_note(bytes: &[u8], value_bytes: usize) -> Option<Self> {
        TableNote::parse_note(bytes).filter(|note| note.value_bytes_per_kmer() == value_bytes)
    }

    /// Parses the note of a dictionary of k-mers of length `k` with `num_samples` counts each. `None` if it is not the
    /// note of k-mer counts.
    pub fn parse_dictionary_note(bytes: &[u8], k: u32, num_samples: usize) -> Option<Self> {
        TableNote::parse_note(bytes).filter(|note| note.k == k && [0, note.samples.len()].contains(&num_samples))
    }

    /// Returns the number of normals in a panel of normals. `None` if the table is not a panel: its counts are not
    /// numbers of samples.
    pub fn num_panel_samples(&self) -> Option<u64> {
        self.made
            .as_ref()
            .filter(|made| made.counts == TableDerivation::COUNTS_VALUE_FOR_NUM_SAMPLES)
            .map(|made| made.samples)
    }

    /// Returns the size of all counts of one k-mer in the table, in bytes.
    pub fn value_bytes_per_kmer(&self) -> usize {
        COUNT_BYTES * self.samples.len()
    }

    /// Encodes the counts of one k-mer for the table. Counts beyond the number of samples are left out.
    #[inline]
    pub fn encode_kmer_counts<'a>(&self, counts: &'a [u32]) -> &'a [u8] {
        // Tables are little-endian, and so are all supported machines.
        bytemuck::cast_slice(&counts[..self.samples.len()])
    }
}

/// Decodes the counts of a k-mer that the table stores: one for each sample.
pub fn decode_kmer_counts(value: &[u8]) -> impl Iterator<Item = u32> + '_ {
    value.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes))
}

/// Returns the names of all samples of all tables. `tables` has the path and the samples of each table. A name that
/// several tables have is preceded or replaced by the name of the table's file.
pub fn name_samples_of_tables(tables: &[(&Path, &[String])]) -> Vec<String> {
    let all_names: Vec<&String> = tables.iter().flat_map(|(_, samples)| *samples).collect();
    let shared = |name: &String| all_names.iter().filter(|other| **other == name).count() > 1;
    let named = |(path, samples): &(&Path, &[String])| {
        let file = path.file_stem().unwrap_or_default().to_string_lossy();
        let file = file.replace(char::is_whitespace, "_");
        let alone = samples.len() == 1;
        let name = |name: &String| match (shared(name), alone) {
            (false, _) => name.clone(),
            (true, true) => file.clone(),
            (true, false) => format!("{file}.{name}"),
        };
        samples.iter().map(name).collect::<Vec<_>>()
    };
    tables.iter().flat_map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_and_values_come_back() {
        let note = TableNote::for_counted_table(31, 2, 0, vec!["normal".into(), "tumor".into()]);
        assert_eq!(TableNote::parse_note(&serde_json::to_vec(&note).unwrap()), Some(note.clone()));
        assert_eq!(TableNote::parse_note(b"something else"), None);
        let other = serde_json::to_string(&note).unwrap().replace("k-mer counts", "reads");
        assert_eq!(TableNote::parse_note(other.as_bytes()), None);
        let value = note.encode_kmer_counts(&[3, 1 << 20, 0, 0]);
        assert_eq!(value, [3, 0, 0, 0, 0, 0, 16, 0]);
        assert_eq!(value.len(), note.value_bytes_per_kmer());
        assert_eq!(decode_kmer_counts(value).collect::<Vec<_>>(), [3, 1 << 20]);
    }

    #[test]
    fn only_counts_of_samples_are_a_panel() {
        let mut note = TableNote::for_counted_table(31, 1, 0, vec!["samples".into()]);
        assert_eq!(note.num_panel_samples(), None);
        for (counts, panel) in [("sum", None), (TableDerivation::COUNTS_VALUE_FOR_NUM_SAMPLES, Some(7))] {
            let (operation, counts) = ("union".to_owned(), counts.to_owned());
            note.made = Some(TableDerivation { operation, counts, tables: 5, samples: 7 });
            let read = TableNote::parse_note(&serde_json::to_vec(&note).unwrap()).unwrap();
            assert_eq!((&read, read.num_panel_samples()), (&note, panel));
        }
    }
}
