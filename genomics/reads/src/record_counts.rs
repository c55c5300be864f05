//! Record counts of BAM, CRAM and BINSEQ files, and of FASTQ files whose reads contain UMIs.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

/// A kind of incomplete reads.
pub struct IncompleteReadKind {
    /// What the reads are, after their number; the beginning of their description in the ledger.
    pub description: &'static str,
    /// What a warning adds.
    pub advice: &'static str,
    counts: fn(&RecordCounts) -> &CountWithExample,
}

/// Kinds of incomplete reads that the ledger has (see [`RecordCounts::describe_skipped_and_missing_counts`]).
pub const INCOMPLETE_READ_KINDS: [IncompleteReadKind; 4] = [
    IncompleteReadKind {
        description: "reads shorter than their read structure, left out with their mates",
        advice: "check that the read structure (--umi, --normal-umi) describes these reads",
        counts: |counts| &counts.shorter_than_structure,
    },
    IncompleteReadKind {
        description: "reads whose mate is not in the file, used without it",
        advice: "check that the files have all reads of the sample",
        counts: |counts| &counts.mate_missing,
    },
    IncompleteReadKind {
        description: "hard-clipped reads without their clipped bases",
        advice: "the clipped bases cannot be aligned or support variants. Use the original FASTQ or BAM files",
        counts: |counts| &counts.hard_clipped,
    },
    IncompleteReadKind {
        description: "reads without bases",
        advice: "these reads contribute nothing. Use the original FASTQ or BAM files",
        counts: |counts| &counts.without_bases,
    },
];

const WITHOUT_QUALITIES: IncompleteReadKind = IncompleteReadKind {
    description: "reads without qualities",
    advice: "all their bases are used, whatever the minimum quality",
    counts: |counts| &counts.without_qualities,
};

/// Numbers of the records of a file or lane, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordCounts {
    /// Number of records (of BINSEQ: reads), including those that are skipped; 0 for FASTQ.
    pub records: u64,
    /// Secondary records (flag 0x100), which are skipped.
    pub secondary: u64,
    /// Supplementary records (flag 0x800), which are skipped.
    pub supplementary: u64,
    /// Reads without a mate according to their flags.
    pub unpaired: u64,
    /// Reads whose mate is not in the file; they are processed without a mate.
    pub mate_missing: CountWithExample,
    /// Hard-clipped reads, whose clipped bases are not in the file.
    pub hard_clipped: CountWithExample,
    /// Reads without bases, whose SEQ is `*` in SAM.
    pub without_bases: CountWithExample,
    /// Reads without qualities, whose bases are used as if they had the highest quality.
    pub without_qualities: CountWithExample,
    /// Reads whose UMI was taken from the tag RX or MI, or from their bases.
    pub with_umi: u64,
    /// Reads with fewer bases than their read structure has before the template. These reads and their mates lose all
    /// their bases.
    pub shorter_than_structure: CountWithExample,
}

/// What is known of a file or lane when it has been read. Clones of a lane share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedOnce<T>(Arc<OnceLock<T>>);

/// Record counts of a file or lane, which are set when it has first been read to its end.
pub(crate) type SharedRecordCounts = SharedOnce<RecordCounts>;

impl<T> SharedOnce<T> {
    /// The value; `None` until it has been set.
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.get()
    }

    /// Sets the value. Reading the file again does not change it.
    pub(crate) fn set(&self, value: T) {
        let _ = self.0.set(value);
    }
}

impl<T> PartialEq for SharedOnce<T> {
    /// Always equal: what was read does not distinguish files.
    fn eq(&self, _: &SharedOnce<T>) -> bool {
        true
    }
}

impl<T> Eq for SharedOnce<T> {}

/// A number of reads with some property, and the name of one of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountWithExample {
    /// Number of reads with this property.
    pub num_reads: u64,
    /// Name of the alphabetically first of these reads, as an example; `None` if there are no such reads.
    pub example_name: Option<String>,
}

impl CountWithExample {
    /// Counts a read. The alphabetically first name becomes the example, so that it does not depend on the order of
    /// the reads.
    pub(crate) fn add_read(&mut self, name: &[u8]) {
        self.num_reads += 1;
        if self.example_name.as_ref().is_none_or(|example| name < example.as_bytes()) {
            self.example_name = Some(String::from_utf8_lossy(name).into_owned());
        }
    }

    /// Returns `what` with the example name appended, for a message.
    fn describe_with_example(&self, what: &str) -> String {
        let example = self.example_name.as_ref().map_or(String::new(), |name| format!(" (such as {name})"));
        format!("{what}{example}")
    }

    fn add_counts(&mut self, other: &CountWithExample) {
        self.num_reads += other.num_reads;
        self.example_name = match (self.example_name.take(), other.example_name.clone()) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
    }
}

impl RecordCounts {
    /// Adds the counts of another part of the same file or lane.
    pub fn merge_counts(&mut self, other: &RecordCounts) {
        let RecordCounts {
            records,
            secondary,
            supplementary,
            unpaired: alone,
            mate_missing: lost,
            hard_clipped: clipped,
            without_bases: empty,
            without_qualities,
            with_umi,
            shorter_than_structure,
        } = other;
        self.records += records;
        self.secondary += secondary;
        self.supplementary += supplementary;
        self.unpaired += alone;
        self.mate_missing.add_counts(lost);
        self.hard_clipped.add_counts(clipped);
        self.without_bases.add_counts(empty);
        self.without_qualities.add_counts(without_qualities);
        self.with_umi += with_umi;
        self.shorter_than_structure.add_counts(shorter_than_structure);
    }

    /// Descriptions and numbers of skipped records and of incomplete reads, for the ledger; only numbers above 0.
    pub fn describe_skipped_and_missing_counts(&self) -> Vec<(String, u64)> {
        let skipped = [
            ("secondary records, skipped".to_owned(), self.secondary),
            ("supplementary records, skipped".to_owned(), self.supplementary),
        ];
        let incomplete = INCOMPLETE_READ_KINDS.iter().map(|kind| {
            let counts = (kind.counts)(self);
            (counts.describe_with_example(kind.description), counts.num_reads)
        });
        skipped.into_iter().chain(incomplete).filter(|(_, num_reads)| *num_reads > 0).collect()
    }

    /// Warnings of incomplete reads: how many there are, and what to do.
    pub fn format_incomplete_read_warnings(&self) -> Vec<String> {
        let kinds = INCOMPLETE_READ_KINDS.iter().chain([&WITHOUT_QUALITIES]);
        let counted = kinds.map(|kind| (kind, (kind.counts)(self))).filter(|(_, counts)| counts.num_reads > 0);
        let warning = |(kind, counts): (&IncompleteReadKind, &CountWithExample)| {
            format!("{} {}: {}", counts.num_reads, counts.describe_with_example(kind.description), kind.advice)
        };
        counted.map(warning).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_do_not_depend_on_the_order_of_addition() {
        let of = |names: &[&str]| {
            let mut counts = RecordCounts { records: 3, secondary: 1, ..RecordCounts::default() };
            names.iter().for_each(|name| counts.mate_missing.add_read(name.as_bytes()));
            counts
        };
        let (mut one, mut two) = (of(&["c", "b"]), of(&["a"]));
        one.merge_counts(&of(&["a"]));
        two.merge_counts(&of(&["c", "b"]));
        assert_eq!(one, two);
        assert_eq!(
            one.describe_skipped_and_missing_counts(),
            [
                ("secondary records, skipped".to_owned(), 2),
                ("reads whose mate is not in the file, used without it (such as a)".to_owned(), 3)
            ]
        );
        one.without_qualities.add_read(b"q");
        assert_eq!(
            one.format_incomplete_read_warnings(),
            [
                "3 reads whose mate is not in the file, used without it (such as a): check that the files have all reads of the sample",
                "1 reads without qualities (such as q): all their bases are used, whatever the minimum quality",
            ]
        );
    }
}
