//! Set operations on k-mer tables, and rules that combine the counts which a k-mer has in several tables.
//!
//! A row is the list of the counts of one k-mer in all samples of all tables, table by table. A count is 0 if the table
//! lacks the k-mer.

use std::ops::RangeInclusive;

/// Set operation on tables: which k-mers the result has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetOperation {
    /// K-mers that any table has.
    Union,
    /// K-mers that all tables have.
    Intersect,
    /// K-mers of the first table that the other tables lack. In the mode [`CountMode::Difference`] also k-mers that the
    /// other tables have with a lower total count.
    Subtract,
    /// K-mers of a single table whose counts are within limits.
    Filter,
}

impl SetOperation {
    /// Returns the name of the operation, which the note of a table has: that of the subcommand of `genuma kmers`.
    pub fn name(self) -> &'static str {
        match self {
            SetOperation::Union => "union",
            SetOperation::Intersect => "intersect",
            SetOperation::Subtract => "subtract",
            SetOperation::Filter => "filter",
        }
    }

    /// Returns how counts are combined by default.
    pub fn default_count_mode(self) -> CountMode {
        match self {
            SetOperation::Union | SetOperation::Filter => CountMode::Sum,
            SetOperation::Intersect => CountMode::Min,
            SetOperation::Subtract => CountMode::First,
        }
    }

    /// Returns whether the operation allows this way of combining counts. The result of a subtraction has the samples
    /// of the first table only.
    pub fn allows(self, counts: CountMode) -> bool {
        match self {
            SetOperation::Subtract => matches!(counts, CountMode::First | CountMode::Difference),
            _ => counts != CountMode::Difference,
        }
    }

    /// Returns whether the result has counts that depend on several tables, or, for different k-mers, on different
    /// tables.
    pub fn combines_counts(self, counts: CountMode) -> bool {
        match counts {
            CountMode::Columns => false,
            // A union has counts of the first or last table that has the k-mer.
            CountMode::First | CountMode::Last => self == SetOperation::Union,
            _ => true,
        }
    }
}

/// How the counts of one k-mer in several tables are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountMode {
    /// Sum of the counts.
    Sum,
    /// Largest count.
    Max,
    /// Smallest count above 0.
    Min,
    /// Counts of the first table that has the k-mer.
    First,
    /// Counts of the last table that has the k-mer.
    Last,
    /// Number of samples that have the k-mer, over all tables: makes a panel of normals.
    Samples,
    /// All counts: each sample of each table is a sample of the result.
    Columns,
    /// Count in the first table minus the counts in the other tables, at least 0.
    Difference,
}

impl CountMode {
    /// All modes.
    pub const ALL_COUNT_MODES: [CountMode; 8] = [
        CountMode::Sum,
        CountMode::Max,
        CountMode::Min,
        CountMode::First,
        CountMode::Last,
        CountMode::Samples,
        CountMode::Columns,
        CountMode::Difference,
    ];

    /// Returns the name of the mode, which the note of a table has.
    pub fn name(self) -> &'static str {
        match self {
            CountMode::Sum => "sum",
            CountMode::Max => "max",
            CountMode::Min => "min",
            CountMode::First => "first",
            CountMode::Last => "last",
            CountMode::Samples => "samples",
            CountMode::Columns => "columns",
            CountMode::Difference => "difference",
        }
    }

    /// Returns the mode with this name.
    pub fn from_name(name: &str) -> Option<CountMode> {
        CountMode::ALL_COUNT_MODES.into_iter().find(|mode| mode.name() == name)
    }

    /// Returns whether the mode requires that all tables have the same number of samples.
    pub fn needs_equal_num_samples(self) -> bool {
        !matches!(self, CountMode::Samples | CountMode::Columns)
    }
}

/// Rule by which tables are combined: which k-mers are written, and with which counts.
#[derive(Debug, Clone)]
pub struct CombineRule {
    /// Set operation that determines which k-mers are written.
    pub operation: SetOperation,
    /// How the counts of a k-mer in several tables are combined.
    pub counts: CountMode,
    /// Range of valid counts in the input tables. Other counts are treated as 0.
    pub input_counts: RangeInclusive<u32>,
    /// A k-mer is written if the sum of its combined counts over `filter_samples` is in this range.
    pub output_counts: RangeInclusive<u64>,
    /// Indices of the result's samples whose counts are compared with `output_counts`; empty for all samples.
    pub filter_samples: Vec<usize>,
    /// Index in a row of the first count of each table, followed by the length of a row.
    pub(crate) row_starts: Vec<usize>,
    /// Number of samples of the result.
    pub(crate) num_samples: usize,
}

/// A way of combining the counts that one k-mer has in all tables (a row). It is a trait, so that the merge loop is
/// compiled separately for each way.
pub(crate) trait CountReducer {
    /// Writes the combined counts of a row to `out`, one for each sample of the result. Each table has `samples`
    /// samples.
    fn apply(row: &[u32], samples: usize, out: &mut [u32]);
}

/// Defines unit structs that implement [`CountReducer`]. Each is given as `Name: |row, samples, sample| expression`;
/// the expression computes the combined count of sample number `sample`.
macro_rules! count_reducers {
    ($($name:ident: |$row:ident, $samples:ident, $sample:ident| $count:expr;)*) => { $(
        pub(crate) struct $name;
        impl CountReducer for $name {
            #[inline(always)]
            fn apply($row: &[u32], $samples: usize, out: &mut [u32]) {
                for ($sample, out) in out.iter_mut().enumerate() {
                    *out = $count;
                }
            }
        }
    )* };
}

/// Combines with `combine` the counts that sample number `sample` has in each table of `row`, from the value `start`
/// on. Each table has `samples` samples. The function uses a loop, because an iterator is not always inlined here.
#[inline(always)]
fn combine_sample_counts(
    row: &[u32],
    sample: usize,
    samples: usize,
    start: u32,
    combine: impl Fn(u32, u32) -> u32,
) -> u32 {
    let (mut at, mut combined) = (sample, start);
    while at < row.len() {
        combined = combine(combined, row[at]);
        at += samples;
    }
    combined
}

/// Returns the count of a sample in the first of these tables that has the k-mer; 0 if none has it.
#[inline(always)]
fn count_of_first_present<'r>(mut tables: impl Iterator<Item = &'r [u32]>, sample: usize) -> u32 {
    tables.find(|counts| counts.iter().any(|&n| n > 0)).map_or(0, |counts| counts[sample])
}

count_reducers! {
    Sum: |row, samples, sample| combine_sample_counts(row, sample, samples, 0, u32::saturating_add);
    Max: |row, samples, sample| combine_sample_counts(row, sample, samples, 0, u32::max);
    // Subtracting 1 turns 0 into the largest number; adding 1 at the end restores 0 if there is no other count.
    Min: |row, samples, sample| combine_sample_counts(row, sample, samples, u32::MAX, |least, n| least.min(n.wrapping_sub(1))).wrapping_add(1);
    First: |row, samples, sample| count_of_first_present(row.chunks_exact(samples), sample);
    Last: |row, samples, sample| count_of_first_present(row.chunks_exact(samples).rev(), sample);
    // Here all columns of the row are samples.
    Samples: |row, _samples, _sample| row.iter().map(|&n| u32::from(n > 0)).sum();
    Columns: |row, _samples, sample| row[sample];
    Difference: |row, samples, sample| {
        let others = combine_sample_counts(&row[samples..], sample, samples, 0, u32::saturating_add);
        row[sample].saturating_sub(others)
    };
}

impl CombineRule {
    /// Creates a rule that combines tables with these numbers of samples, and neither ignores counts nor leaves k-mers out
    /// for their counts.
    ///
    /// Except for [`CountMode::Samples`] and [`CountMode::Columns`], and for [`CountMode::First`] of an intersection or
    /// subtraction, all tables must have the same number of samples.
    pub fn new(operation: SetOperation, counts: CountMode, samples_of_tables: &[usize]) -> CombineRule {
        let mut row_starts = vec![0];
        row_starts.extend(samples_of_tables.iter().scan(0, |end, samples| {
            *end += samples;
            Some(*end)
        }));
        let num_samples = match counts {
            CountMode::Samples => 1,
            CountMode::Columns => samples_of_tables.iter().sum(),
            _ => samples_of_tables.first().copied().unwrap_or(1),
        };
        CombineRule {
            operation,
            counts,
            input_counts: 1..=u32::MAX,
            output_counts: 1..=u64::MAX,
            filter_samples: Vec::new(),
            row_starts,
            num_samples,
        }
    }

    /// Returns the number of samples of the first table. In modes that need equal samples, every table has this number.
    pub(crate) fn num_samples_of_first_table(&self) -> usize {
        self.row_starts.get(1).copied().unwrap_or(1)
    }

    /// Sets counts outside `input_counts` to 0.
    pub(crate) fn zero_counts_out_of_range(&self, counts: &mut [u32]) {
        if self.input_counts != (1..=u32::MAX) {
            let (least, most) = (*self.input_counts.start(), *self.input_counts.end());
            for count in counts {
                *count &= u32::from((least <= *count) & (*count <= most)).wrapping_neg();
            }
        }
    }

    /// Returns whether a k-mer is written. `row`: its counts in the tables; `counts`: its combined counts.
    #[inline(always)]
    pub(crate) fn keeps_kmer(&self, row: &[u32], counts: &[u32]) -> bool {
        let has = |counts: &[u32]| counts.iter().any(|&n| n > 0);
        let (own, others) = row.split_at(self.num_samples_of_first_table());
        let kept = match self.operation {
            SetOperation::Union | SetOperation::Filter => true,
            SetOperation::Intersect => self.row_starts.windows(2).all(|table| has(&row[table[0]..table[1]])),
            SetOperation::Subtract => self.counts == CountMode::Difference || (has(own) && !has(others)),
        };
        let filter_count: u64 = match &self.filter_samples[..] {
            [] => counts.iter().map(|&n| u64::from(n)).sum(),
            some => some.iter().map(|&sample| u64::from(counts[sample])).sum(),
        };
        kept && has(counts) && self.output_counts.contains(&filter_count)
    }
}

/// Replaces every count above 0 by 1.
pub(crate) fn cap_counts_at_one(counts: &mut [u32]) {
    counts.iter_mut().for_each(|count| *count = u32::from(*count > 0));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied<W: CountReducer>(row: &[u32], samples: usize, out: usize) -> Vec<u32> {
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
