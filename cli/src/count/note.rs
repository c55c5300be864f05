//! What a table of k-mer counts says of itself, and how its values look.

use serde::{Deserialize, Serialize};

/// What tables of k-mer counts have in their note.
const KIND: &str = "genuma k-mer counts";
/// Bytes of a count.
const COUNT: usize = size_of::<u32>();

/// The note of a table, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    kind: String,
    /// Length of the k-mers.
    pub k: u32,
    /// Fewest occurrences of a k-mer, all samples summed.
    pub min_count: u32,
    /// Lowest quality (Phred) of a base of a k-mer.
    pub min_base_quality: u8,
    /// Names of the samples in the order of the counts.
    pub samples: Vec<String>,
}

impl Note {
    /// Of counts of `k`-mers.
    pub fn new(k: u32, min_count: u32, min_base_quality: u8, samples: Vec<String>) -> Self {
        Note { kind: KIND.to_owned(), k, min_count, min_base_quality, samples }
    }

    /// The note in these bytes; `None` when they are another kind of table's.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let note: Note = serde_json::from_slice(bytes).ok()?;
        (note.kind == KIND && (1..=32).contains(&note.k) && !note.samples.is_empty()).then_some(note)
    }

    /// Bytes of each value of the table.
    pub fn value_bytes(&self) -> usize {
        COUNT * self.samples.len()
    }

    /// The value of these counts; those beyond the samples' are left out.
    #[inline]
    pub fn value<'a>(&self, counts: &'a [u32]) -> &'a [u8] {
        // Tables are little-endian, and so is every machine that has them.
        bytemuck::cast_slice(&counts[..self.samples.len()])
    }
}

/// The counts in a value.
pub fn counts(value: &[u8]) -> impl Iterator<Item = u32> + '_ {
    value.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_and_values_come_back() {
        let note = Note::new(31, 2, 0, vec!["normal".into(), "tumor".into()]);
        assert_eq!(Note::read(&serde_json::to_vec(&note).unwrap()), Some(note.clone()));
        assert_eq!(Note::read(b"something else"), None);
        let other = serde_json::to_string(&note).unwrap().replace("k-mer counts", "reads");
        assert_eq!(Note::read(other.as_bytes()), None);
        let value = note.value(&[3, 1 << 20, 0, 0]);
        assert_eq!(value, [3, 0, 0, 0, 0, 0, 16, 0]);
        assert_eq!(value.len(), note.value_bytes());
        assert_eq!(counts(value).collect::<Vec<_>>(), [3, 1 << 20]);
    }
}
