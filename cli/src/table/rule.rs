//! What becomes of a k-mer's counts in several tables.
//!
//! A row has the counts of a k-mer in all tables, table by table, and those of each in the order of its samples; 0 where a table does not have it.

use std::ops::RangeInclusive;

use clap::ValueEnum;

/// Which k-mers the result has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Those of any table.
    Union,
    /// Those of all tables.
    Intersect,
    /// Those of the first that no other has, or has less often.
    Subtract,
    /// Those of the only table.
    Filter,
}

impl Operation {
    /// As a user writes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Operation::Union => "union",
            Operation::Intersect => "intersect",
            Operation::Subtract => "subtract",
            Operation::Filter => "filter",
        }
    }
}

/// What the counts of the result are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Counts {
    /// The sum of the tables' counts
    Sum,
    /// The largest of them
    Max,
    /// The smallest of those that are not 0
    Min,
    /// Those of the first table that has the k-mer
    First,
    /// Those of the last table that has the k-mer
    Last,
    /// In how many samples of all tables the k-mer is: makes a panel of normals
    Samples,
    /// All of them: every sample of every table stays a sample, 8 at most
    Columns,
    /// What is left of the first table's when those of the others are taken from it
    Difference,
}

impl Counts {
    /// As a user writes it.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Whether tables have to have the same number of samples for it.
    pub(crate) fn by_sample(self) -> bool {
        !matches!(self, Counts::Samples | Counts::Columns)
    }
}

/// All that decides which k-mers are written with which counts.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    /// Which k-mers.
    pub(crate) operation: Operation,
    /// What their counts are.
    pub(crate) counts: Counts,
    /// Counts of the tables beyond these are taken as 0.
    pub(crate) given: RangeInclusive<u32>,
    /// K-mers whose counts, those of `of` summed, are beyond these are not written.
    pub(crate) wanted: RangeInclusive<u64>,
    /// Samples of the result that `wanted` looks at; none: all.
    pub(crate) of: Vec<usize>,
    /// Where the counts of each table begin in a row, and the length of a row.
    pub(crate) starts: Vec<usize>,
    /// Samples of the result.
    pub(crate) samples: usize,
}

/// A way to make counts of a row. Each is compiled for itself.
pub(crate) trait Way {
    /// Writes the counts of a row for tables of so many samples each.
    fn apply(row: &[u32], samples: usize, out: &mut [u32]);
}

macro_rules! ways {
    ($($name:ident: |$row:ident, $samples:ident, $sample:ident| $count:expr;)*) => { $(
        pub struct $name;
        impl Way for $name {
            #[inline(always)]
            fn apply($row: &[u32], $samples: usize, out: &mut [u32]) {
                for ($sample, out) in out.iter_mut().enumerate() {
                    *out = $count;
                }
            }
        }
    )* };
}

/// Counts of one sample in all tables, made one: written as a loop, which is always compiled where it stands.
#[inline(always)]
fn fold(row: &[u32], sample: usize, samples: usize, start: u32, of: impl Fn(u32, u32) -> u32) -> u32 {
    let (mut at, mut all) = (sample, start);
    while at < row.len() {
        all = of(all, row[at]);
        at += samples;
    }
    all
}

/// The counts of a table that has the k-mer, the first or the last.
#[inline(always)]
fn whole<'r>(mut tables: impl Iterator<Item = &'r [u32]>, sample: usize) -> u32 {
    tables.find(|counts| counts.iter().any(|&n| n > 0)).map_or(0, |counts| counts[sample])
}

ways! {
    Sum: |row, samples, sample| fold(row, sample, samples, 0, u32::saturating_add);
    Max: |row, samples, sample| fold(row, sample, samples, 0, u32::max);
    // 0 becomes the largest number, and that 0 again where there is nothing else.
    Min: |row, samples, sample| fold(row, sample, samples, u32::MAX, |least, n| least.min(n.wrapping_sub(1))).wrapping_add(1);
    First: |row, samples, sample| whole(row.chunks_exact(samples), sample);
    Last: |row, samples, sample| whole(row.chunks_exact(samples).rev(), sample);
    // The samples are all columns of the row here: each is looked at.
    Samples: |row, _samples, _sample| row.iter().map(|&n| u32::from(n > 0)).sum();
    Columns: |row, _samples, sample| row[sample];
    Difference: |row, samples, sample| {
        let others = fold(&row[samples..], sample, samples, 0, u32::saturating_add);
        row[sample].saturating_sub(others)
    };
}

impl Rule {
    /// Samples of the tables, where all have the same number.
    pub(crate) fn each(&self) -> usize {
        self.starts.get(1).copied().unwrap_or(1)
    }

    /// Sets those counts of tables to 0 that are beyond the limits.
    pub(crate) fn limit(&self, counts: &mut [u32]) {
        if self.given != (1..=u32::MAX) {
            let (least, most) = (*self.given.start(), *self.given.end());
            for count in counts {
                *count &= u32::from((least <= *count) & (*count <= most)).wrapping_neg();
            }
        }
    }

    /// Whether a k-mer with this row and these counts is written.
    #[inline(always)]
    pub(crate) fn keeps(&self, row: &[u32], counts: &[u32]) -> bool {
        let has = |counts: &[u32]| counts.iter().any(|&n| n > 0);
        let (own, others) = row.split_at(self.each());
        let kept = match self.operation {
            Operation::Union | Operation::Filter => true,
            Operation::Intersect => self.starts.windows(2).all(|table| has(&row[table[0]..table[1]])),
            Operation::Subtract => self.counts == Counts::Difference || (has(own) && !has(others)),
        };
        let looked_at: u64 = match &self.of[..] {
            [] => counts.iter().map(|&n| u64::from(n)).sum(),
            some => some.iter().map(|&sample| u64::from(counts[sample])).sum(),
        };
        kept && has(counts) && self.wanted.contains(&looked_at)
    }
}

/// Makes 1 of every count but 0.
pub(crate) fn ones(counts: &mut [u32]) {
    counts.iter_mut().for_each(|count| *count = u32::from(*count > 0));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied<W: Way>(row: &[u32], samples: usize, out: usize) -> Vec<u32> {
        let mut counts = vec![0; out];
        W::apply(row, samples, &mut counts);
        counts
    }

    #[test]
    fn counts_become_one() {
        let row = [0, 7, 3, 0, u32::MAX];
        assert_eq!(applied::<Sum>(&row, 1, 1), [u32::MAX]);
        assert_eq!(applied::<Max>(&row[..4], 1, 1), [7]);
        assert_eq!(applied::<Min>(&row, 1, 1), [3]);
        assert_eq!(applied::<Min>(&[0, u32::MAX], 1, 1), [u32::MAX]);
        assert_eq!(applied::<Min>(&[0, 0], 1, 1), [0]);
        assert_eq!(applied::<First>(&row, 1, 1), [7]);
        assert_eq!(applied::<Last>(&row, 1, 1), [u32::MAX]);
        assert_eq!(applied::<Samples>(&row, 1, 1), [3]);
        assert_eq!(applied::<Columns>(&row, 1, 5), row);
        assert_eq!(applied::<Difference>(&[9, 4, 3], 1, 1), [2]);
        assert_eq!(applied::<Difference>(&[9, 4, 6], 1, 1), [0]);
    }

    #[test]
    fn samples_are_kept_apart() {
        let row = [0, 0, 5, 0, 2, 6];
        assert_eq!(applied::<Sum>(&row, 2, 2), [7, 6]);
        assert_eq!(applied::<Min>(&row, 2, 2), [2, 6]);
        assert_eq!(applied::<First>(&row, 2, 2), [5, 0]);
        assert_eq!(applied::<Last>(&row, 2, 2), [2, 6]);
        assert_eq!(applied::<Samples>(&row, 2, 1), [3]);
        assert_eq!(applied::<Difference>(&[5, 9, 1, 0, 1, 20], 2, 2), [3, 0]);
    }
}
