//! What a table of k-mer counts says of itself, and how its values look.

use serde::{Deserialize, Serialize};

/// What tables of k-mer counts have in their note.
const KIND: &str = "genuma k-mer counts";
/// Bytes of a count.
const COUNT: usize = size_of::<u32>();

/// The note of a table, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Note {
    kind: String,
    /// Length of the k-mers.
    pub(crate) k: u32,
    /// Fewest occurrences of a k-mer, all samples summed.
    pub(crate) min_count: u32,
    /// Lowest quality (Phred) of a base of a k-mer.
    pub(crate) min_base_quality: u8,
    /// Names of the samples in the order of the counts.
    pub(crate) samples: Vec<String>,
    /// How it came of other tables, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) made: Option<Made>,
}

/// How a table came of others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Made {
    /// What was done with them.
    pub(crate) operation: String,
    /// What became of their counts, or [`Made::SAMPLES`].
    pub(crate) counts: String,
    /// How many tables there were.
    pub(crate) tables: u64,
    /// How many samples they had.
    pub(crate) samples: u64,
}

impl Made {
    /// Counts that say in how many samples a k-mer is.
    pub(crate) const SAMPLES: &str = "samples";
}

impl Note {
    /// Of counts of `k`-mers.
    pub(crate) fn new(k: u32, min_count: u32, min_base_quality: u8, samples: Vec<String>) -> Self {
        Note { kind: KIND.to_owned(), k, min_count, min_base_quality, samples, made: None }
    }

    /// The note in these bytes; `None` when they are another kind of table's.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let note: Note = serde_json::from_slice(bytes).ok()?;
        (note.kind == KIND && (1..=32).contains(&note.k) && !note.samples.is_empty()).then_some(note)
    }

    /// Of how many samples it says in how many of them a k-mer is; `None` when its counts say something else.
    pub(crate) fn panel_of(&self) -> Option<u64> {
        self.made.as_ref().filter(|made| made.counts == Made::SAMPLES).map(|made| made.samples)
    }

    /// Bytes of each value of the table.
    pub(crate) fn value_bytes(&self) -> usize {
        COUNT * self.samples.len()
    }

    /// The value of these counts; those beyond the samples' are left out.
    #[inline]
    pub(crate) fn value<'a>(&self, counts: &'a [u32]) -> &'a [u8] {
        // Tables are little-endian, and so is every machine that has them.
        bytemuck::cast_slice(&counts[..self.samples.len()])
    }
}

/// The counts in a value.
pub(crate) fn counts(value: &[u8]) -> impl Iterator<Item = u32> + '_ {
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

    #[test]
    fn only_counts_of_samples_are_a_panel() {
        let mut note = Note::new(31, 1, 0, vec!["samples".into()]);
        assert_eq!(note.panel_of(), None);
        for (counts, panel) in [("sum", None), (Made::SAMPLES, Some(7))] {
            let (operation, counts) = ("union".to_owned(), counts.to_owned());
            note.made = Some(Made { operation, counts, tables: 5, samples: 7 });
            let read = Note::read(&serde_json::to_vec(&note).unwrap()).unwrap();
            assert_eq!((&read, read.panel_of()), (&note, panel));
        }
    }
}
