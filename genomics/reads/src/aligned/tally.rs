//! What there was in a file of aligned reads, and what of it is no read, or not all of one.

use serde::{Deserialize, Serialize};

/// Records of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// All.
    pub records: u64,
    /// Secondary ones (flag 0x100), which are skipped.
    pub secondary: u64,
    /// Supplementary ones (flag 0x800), which are skipped.
    pub supplementary: u64,
    /// Reads that have no mate by their own flags.
    pub alone: u64,
    /// Reads whose mate is not in the file: taken as reads without one.
    pub lost: Named,
    /// Reads that were hard-clipped: bases of theirs are not in the file.
    pub clipped: Named,
    /// Reads without any bases.
    pub empty: Named,
}

/// Some reads, and the name of one of them: the first by the alphabet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// How many.
    pub reads: u64,
    /// One of them.
    pub example: Option<String>,
}

impl Named {
    pub(super) fn count(&mut self, name: &[u8]) {
        self.reads += 1;
        if self.example.as_ref().is_none_or(|example| name < example.as_bytes()) {
            self.example = Some(String::from_utf8_lossy(name).into_owned());
        }
    }

    fn add(&mut self, other: &Named) {
        self.reads += other.reads;
        self.example = match (self.example.take(), other.example.clone()) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
    }
}

impl Tally {
    /// Adds what others have counted.
    pub fn add(&mut self, other: &Tally) {
        let Tally { records, secondary, supplementary, alone, lost, clipped, empty } = other;
        self.records += records;
        self.secondary += secondary;
        self.supplementary += supplementary;
        self.alone += alone;
        self.lost.add(lost);
        self.clipped.add(clipped);
        self.empty.add(empty);
    }

    /// What is left out of the records, or missing of the reads, in words and numbers, where there is any.
    pub fn left_out(&self) -> Vec<(String, u64)> {
        let skipped = [
            ("secondary records, skipped".to_owned(), self.secondary),
            ("supplementary records, skipped".to_owned(), self.supplementary),
        ];
        skipped.into_iter().filter(|(_, n)| *n > 0).chain(self.missing()).collect()
    }

    /// What is missing of the reads.
    pub fn missing(&self) -> Vec<(String, u64)> {
        let named = |what: &str, Named { reads, example }: &Named| {
            let example = example.as_ref().map_or(String::new(), |name| format!(" (such as {name})"));
            (format!("{what}{example}"), *reads)
        };
        let all = [
            named("mates that are not in the file: their reads are taken without them", &self.lost),
            named("reads that were hard-clipped and lack the bases cut off", &self.clipped),
            named("reads without bases", &self.empty),
        ];
        all.into_iter().filter(|(_, n)| *n > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_do_not_depend_on_who_counted_what() {
        let of = |names: &[&str]| {
            let mut tally = Tally { records: 3, secondary: 1, ..Tally::default() };
            names.iter().for_each(|name| tally.lost.count(name.as_bytes()));
            tally
        };
        let (mut one, mut two) = (of(&["c", "b"]), of(&["a"]));
        one.add(&of(&["a"]));
        two.add(&of(&["c", "b"]));
        assert_eq!(one, two);
        assert_eq!(
            one.left_out(),
            [
                ("secondary records, skipped".to_owned(), 2),
                (
                    "mates that are not in the file: their reads are taken without them (such as a)"
                        .to_owned(),
                    3
                )
            ]
        );
    }
}
