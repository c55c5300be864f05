//! Merges the sorted k-mers of several tables in one k-mer range to one sorted list. Each k-mer occurs once, with its
//! counts combined by a rule.

use std::ops::Range;

use genuma_flash::EntryBatch;
use genuma_machine::simd_and_prefetch::SimdLevel;

use crate::note::INVALID_KMER;
use crate::rule::{self, CombineRule, CountMode, CountReducer, SetOperation};

/// Number of keys that are compared at once with vector instructions.
const KEYS_PER_VECTOR: usize = 8;

/// A batch of k-mers of one table, with their counts.
pub(crate) type KmerCountBatch = EntryBatch<u32>;

/// Consecutive entries of a k-mer table: ascending k-mers and their counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntrySlice<'a> {
    pub(crate) keys: &'a [u64],
    pub(crate) counts: &'a [u32],
}

/// Merged k-mers with their counts. Only the first `num_entries` entries are valid.
#[derive(Debug, Default)]
struct MergedEntries {
    keys: Vec<u64>,
    counts: Vec<u32>,
    num_entries: usize,
}

impl MergedEntries {
    fn first_entries(&self, samples: usize) -> EntrySlice<'_> {
        EntrySlice { keys: &self.keys[..self.num_entries], counts: &self.counts[..self.num_entries * samples] }
    }

    /// Makes space for this number of entries with one count each, and empties the list.
    fn reserve(&mut self, entries: usize) {
        if self.keys.len() < entries {
            self.keys.resize(entries, 0);
            self.counts.resize(entries, 0);
        }
        self.num_entries = 0;
    }
}

/// A sorted list in two halves: the k-mers below a middle k-mer, and the others. One thread merges both halves
/// alternately. In a single merge, each step has to wait for the result of the step before it.
type LowAndHighHalf<T> = [T; 2];

/// An input of a merge of two lists.
enum MergeInput<'a> {
    /// Entries of a table.
    Table(LowAndHighHalf<EntrySlice<'a>>),
    /// Entries from an earlier merge.
    Merged(LowAndHighHalf<MergedEntries>),
}

impl MergeInput<'_> {
    fn runs(&self) -> LowAndHighHalf<EntrySlice<'_>> {
        match self {
            MergeInput::Table(runs) => *runs,
            MergeInput::Merged(blocks) => blocks.each_ref().map(|block| block.first_entries(1)),
        }
    }
}

/// Conditions under which a merged k-mer is kept.
#[derive(Debug, Clone, Copy)]
struct MergeFilter {
    /// Keep only k-mers of both inputs.
    in_both: bool,
    /// Keep only k-mers that the second input lacks.
    only_first: bool,
    min_count: u64,
    max_count: u64,
}

impl MergeFilter {
    #[inline(always)]
    fn keeps(self, [a, b]: [u32; 2], count: u32) -> bool {
        let kept = (!self.in_both | ((a > 0) & (b > 0))) & (!self.only_first | (b == 0));
        kept & (count > 0) & (u64::from(count) >= self.min_count) & (u64::from(count) <= self.max_count)
    }
}

/// Merges k-mer ranges, one at each call. Its buffers are reused for the next range.
#[derive(Debug, Default)]
pub(crate) struct TableMerger {
    merged: LowAndHighHalf<MergedEntries>,
    spare: Vec<LowAndHighHalf<MergedEntries>>,
    num_samples: usize,
}

impl TableMerger {
    /// Merges the entries in `ranges` (one range for each table) by `rule`. The result is available from
    /// [`TableMerger::last_merge_result`]. Modifies the counts in `entries`: those outside the rule's limits become 0,
    /// and, if the rule counts samples, the others may become 1.
    pub(crate) fn merge_range(&mut self, rule: &CombineRule, entries: &mut [KmerCountBatch], ranges: &[Range<usize>]) {
        self.num_samples = rule.num_samples;
        entries.iter_mut().for_each(|piece| rule.zero_counts_out_of_range(&mut piece.values));
        let one_sample_each = rule.num_samples == 1 && rule.row_starts.windows(2).all(|table| table[1] - table[0] == 1);
        if one_sample_each && (rule.counts != CountMode::Columns || entries.len() == 1) {
            if rule.counts == CountMode::Samples {
                entries.iter_mut().for_each(|piece| rule::cap_counts_at_one(&mut piece.values));
            }
            self.merge_single_sample(rule, entries, ranges);
        } else {
            self.merge_multi_sample(rule, entries, ranges);
        }
    }

    /// Returns the result of the last merge: two sorted lists, the second of which continues the first.
    pub(crate) fn last_merge_result(&self) -> LowAndHighHalf<EntrySlice<'_>> {
        self.merged.each_ref().map(|block| block.first_entries(self.num_samples))
    }

    fn merge_single_sample(&mut self, rule: &CombineRule, entries: &[KmerCountBatch], ranges: &[Range<usize>]) {
        let largest = ranges.iter().map(Range::len).enumerate().max_by_key(|&(_, n)| n);
        let middle = largest
            .filter(|&(_, n)| n > 0)
            .map_or(INVALID_KMER, |(table, n)| entries[table].keys[ranges[table].start + n / 2]);
        let mut inputs: Vec<MergeInput<'_>> = entries
            .iter()
            .zip(ranges)
            .map(|(piece, range)| {
                let (keys, counts) = (&piece.keys[range.clone()], &piece.values[range.clone()]);
                let at = keys.partition_point(|&key| key < middle);
                let low = EntrySlice { keys: &keys[..at], counts: &counts[..at] };
                MergeInput::Table([low, EntrySlice { keys: &keys[at..], counts: &counts[at..] }])
            })
            .collect();
        let any = MergeFilter { in_both: false, only_first: false, min_count: 1, max_count: u64::MAX };
        let last = MergeFilter { min_count: *rule.output_counts.start(), max_count: *rule.output_counts.end(), ..any };
        let done = std::mem::take(&mut self.merged);
        self.spare.push(done);
        if let [one] = &inputs[..] {
            let mut made = self.spare.pop().unwrap_or_default();
            for (run, block) in one.runs().into_iter().zip(&mut made) {
                filter_run(last, run, block);
            }
            self.merged = made;
            return;
        }
        if rule.operation == SetOperation::Subtract {
            let others = inputs.split_off(1);
            let others = self.merge_pairwise::<rule::Sum>(any, any, others);
            inputs.push(others);
            let last = MergeFilter { only_first: rule.counts != CountMode::Difference, ..last };
            self.merged = match rule.counts {
                CountMode::Difference => self.merge_to_one::<rule::Difference>(last, last, inputs),
                _ => self.merge_to_one::<rule::First>(last, last, inputs),
            };
            return;
        }
        let in_both = rule.operation == SetOperation::Intersect;
        let (each, last) = (MergeFilter { in_both, ..any }, MergeFilter { in_both, ..last });
        self.merged = match rule.counts {
            CountMode::Max => self.merge_to_one::<rule::Max>(each, last, inputs),
            CountMode::Min => self.merge_to_one::<rule::Min>(each, last, inputs),
            CountMode::First => self.merge_to_one::<rule::First>(each, last, inputs),
            CountMode::Last => self.merge_to_one::<rule::Last>(each, last, inputs),
            // When samples are counted, all counts are ones.
            _ => self.merge_to_one::<rule::Sum>(each, last, inputs),
        };
    }

    /// Merges at least two inputs as [`TableMerger::merge_pairwise`] does.
    fn merge_to_one<W: CountReducer>(
        &mut self,
        each: MergeFilter,
        last: MergeFilter,
        inputs: Vec<MergeInput<'_>>,
    ) -> LowAndHighHalf<MergedEntries> {
        match self.merge_pairwise::<W>(each, last, inputs) {
            MergeInput::Merged(blocks) => blocks,
            // A single input, which does not occur.
            MergeInput::Table(_) => LowAndHighHalf::default(),
        }
    }

    /// Merges neighbouring pairs of inputs until one is left. The counts are the same as if all inputs were merged at
    /// once, because the reducers are associative. `last` is the filter of the last merge, `each` that of the others.
    fn merge_pairwise<'a, W: CountReducer>(
        &mut self,
        each: MergeFilter,
        last: MergeFilter,
        mut inputs: Vec<MergeInput<'a>>,
    ) -> MergeInput<'a> {
        while inputs.len() > 1 {
            let node = if inputs.len() == 2 { last } else { each };
            let mut merged = Vec::with_capacity(inputs.len().div_ceil(2));
            let mut left = inputs.into_iter();
            while let Some(a) = left.next() {
                let Some(b) = left.next() else {
                    merged.push(a);
                    break;
                };
                let mut made = self.spare.pop().unwrap_or_default();
                merge_pair::<W>(node, a.runs(), b.runs(), &mut made);
                for part in [a, b] {
                    if let MergeInput::Merged(blocks) = part {
                        self.spare.push(blocks);
                    }
                }
                merged.push(MergeInput::Merged(made));
            }
            inputs = merged;
        }
        inputs.pop().unwrap_or(MergeInput::Merged(LowAndHighHalf::default()))
    }

    /// Merges tables with any number of samples. Each step takes the smallest of the tables' next k-mers and advances
    /// all tables that have it. Tables of one species share most k-mers, so most steps advance many tables.
    fn merge_multi_sample(&mut self, rule: &CombineRule, entries: &[KmerCountBatch], ranges: &[Range<usize>]) {
        let first_only = rule.counts == CountMode::First && rule.operation != SetOperation::Union;
        let block = &mut self.merged[0];
        block.keys.clear();
        block.counts.clear();
        match rule.counts {
            // All tables have the k-mer, or only the first one has it: its counts are at the beginning of the row.
            _ if first_only => merge_many::<rule::Columns>(rule, entries, ranges, block),
            CountMode::Sum => merge_many::<rule::Sum>(rule, entries, ranges, block),
            CountMode::Max => merge_many::<rule::Max>(rule, entries, ranges, block),
            CountMode::Min => merge_many::<rule::Min>(rule, entries, ranges, block),
            CountMode::First => merge_many::<rule::First>(rule, entries, ranges, block),
            CountMode::Last => merge_many::<rule::Last>(rule, entries, ranges, block),
            CountMode::Samples => merge_many::<rule::Samples>(rule, entries, ranges, block),
            CountMode::Columns => merge_many::<rule::Columns>(rule, entries, ranges, block),
            CountMode::Difference => merge_many::<rule::Difference>(rule, entries, ranges, block),
        }
        block.num_entries = block.keys.len();
    }
}

/// Copies the entries of one sorted list that the filter keeps.
fn filter_run(node: MergeFilter, run: EntrySlice<'_>, block: &mut MergedEntries) {
    block.reserve(run.keys.len());
    let (keys, counts) = (&mut block.keys[..run.keys.len()], &mut block.counts[..run.keys.len()]);
    let mut filled = 0;
    for (&key, &count) in run.keys.iter().zip(run.counts) {
        (keys[filled], counts[filled]) = (key, count);
        filled += usize::from(node.keeps([count, 0], count));
    }
    block.num_entries = filled;
}

/// Merges two sorted inputs, the lower halves with each other and the upper halves with each other, in alternate steps
/// (see [`LowAndHighHalf`]). Entries that `node` rejects are left out.
fn merge_pair<W: CountReducer>(
    node: MergeFilter,
    a: LowAndHighHalf<EntrySlice<'_>>,
    b: LowAndHighHalf<EntrySlice<'_>>,
    out: &mut LowAndHighHalf<MergedEntries>,
) {
    let [low, high] = out;
    low.reserve(a[0].keys.len() + b[0].keys.len());
    high.reserve(a[1].keys.len() + b[1].keys.len());
    [low.num_entries, high.num_entries] = SimdLevel::widest_available().run_at_level(
        #[inline(always)]
        || {
            let mut low = PairMerge::new(a[0], b[0], low);
            let mut high = PairMerge::new(a[1], b[1], high);
            loop {
                let n = low.steps_before_end().min(high.steps_before_end());
                if n == 0 {
                    break;
                }
                for _ in 0..n {
                    low.step::<W>(node);
                    high.step::<W>(node);
                }
            }
            low.finish::<W>(node);
            high.finish::<W>(node);
            [low.num_entries, high.num_entries]
        },
    );
}

/// State of a merge of two sorted lists, `a` and `b`, of which `i` and `j` entries are merged.
struct PairMerge<'a> {
    a: EntrySlice<'a>,
    b: EntrySlice<'a>,
    i: usize,
    j: usize,
    keys: &'a mut [u64],
    counts: &'a mut [u32],
    num_entries: usize,
}

impl<'a> PairMerge<'a> {
    #[inline(always)]
    fn new(a: EntrySlice<'a>, b: EntrySlice<'a>, out: &'a mut MergedEntries) -> PairMerge<'a> {
        let n = a.keys.len() + b.keys.len();
        let same = |run: EntrySlice<'a>| EntrySlice { keys: run.keys, counts: &run.counts[..run.keys.len()] };
        let (keys, counts) = (&mut out.keys[..n], &mut out.counts[..n]);
        PairMerge { a: same(a), b: same(b), i: 0, j: 0, keys, counts, num_entries: 0 }
    }

    /// Returns the number of steps that cannot reach the end of an input, and so need no check for it.
    #[inline(always)]
    fn steps_before_end(&self) -> usize {
        (self.a.keys.len() - self.i).min(self.b.keys.len() - self.j)
    }

    /// Takes the smaller of the next two k-mers, or both if they are equal. The code has no branch on the comparison,
    /// because the CPU could not predict it.
    #[inline(always)]
    fn step<W: CountReducer>(&mut self, node: MergeFilter) {
        let (x, y) = (self.a.keys[self.i], self.b.keys[self.j]);
        let (in_a, in_b) = (x <= y, y <= x);
        let row = [
            self.a.counts[self.i] & u32::from(in_a).wrapping_neg(),
            self.b.counts[self.j] & u32::from(in_b).wrapping_neg(),
        ];
        self.push::<W>(node, x.min(y), row);
        self.i += usize::from(in_a);
        self.j += usize::from(in_b);
    }

    #[inline(always)]
    fn push<W: CountReducer>(&mut self, node: MergeFilter, key: u64, row: [u32; 2]) {
        let mut out = [0];
        W::apply(&row, 1, &mut out);
        self.keys[self.num_entries] = key;
        self.counts[self.num_entries] = out[0];
        self.num_entries += usize::from(node.keeps(row, out[0]));
    }

    /// Merges the remaining entries up to the end of one input, then copies the rest of the other input.
    #[inline(always)]
    fn finish<W: CountReducer>(&mut self, node: MergeFilter) {
        loop {
            let n = self.steps_before_end();
            if n == 0 {
                break;
            }
            for _ in 0..n {
                self.step::<W>(node);
            }
        }
        let (a, b) = (self.a, self.b);
        for i in self.i..a.keys.len() {
            self.push::<W>(node, a.keys[i], [a.counts[i], 0]);
        }
        for j in self.j..b.keys.len() {
            self.push::<W>(node, b.keys[j], [0, b.counts[j]]);
        }
    }
}

/// Position of a merge of many tables in one table.
struct InputCursor<'a> {
    keys: &'a [u64],
    counts: &'a [u32],
    num_samples: usize,
}

impl InputCursor<'_> {
    fn next_kmer(&self) -> u64 {
        self.keys.first().copied().unwrap_or(INVALID_KMER)
    }
}

fn merge_many<W: CountReducer>(
    rule: &CombineRule,
    entries: &[KmerCountBatch],
    ranges: &[Range<usize>],
    block: &mut MergedEntries,
) {
    let mut inputs: Vec<InputCursor<'_>> = entries
        .iter()
        .zip(ranges)
        .zip(rule.row_starts.windows(2))
        .map(|((piece, range), starts)| {
            let samples = starts[1] - starts[0];
            let counts = &piece.values[range.start * samples..range.end * samples];
            InputCursor { keys: &piece.keys[range.clone()], counts, num_samples: samples }
        })
        .collect();
    let mut heads = vec![INVALID_KMER; inputs.len().next_multiple_of(KEYS_PER_VECTOR)];
    for (head, input) in heads.iter_mut().zip(&inputs) {
        *head = input.next_kmer();
    }
    SimdLevel::widest_available().run_at_level(
        #[inline(always)]
        || merge_many_with_vectors::<W>(rule, &mut inputs, &mut heads, block),
    );
}

#[inline(always)]
fn merge_many_with_vectors<W: CountReducer>(
    rule: &CombineRule,
    inputs: &mut [InputCursor<'_>],
    heads: &mut [u64],
    block: &mut MergedEntries,
) {
    let mut row = vec![0; rule.row_starts[inputs.len()]];
    let mut counts = vec![0; rule.num_samples];
    let each = rule.num_samples_of_first_table();
    loop {
        let key = min_kmer(heads);
        if key == INVALID_KMER {
            return;
        }
        row.fill(0);
        for (table, input) in inputs.iter_mut().enumerate() {
            if heads[table] == key {
                let (own, after) = input.counts.split_at(input.num_samples);
                row[rule.row_starts[table]..][..input.num_samples].copy_from_slice(own);
                (input.keys, input.counts) = (&input.keys[1..], after);
                heads[table] = input.next_kmer();
            }
        }
        W::apply(&row, each, &mut counts);
        if rule.keeps_kmer(&row, &counts) {
            block.keys.push(key);
            block.counts.extend_from_slice(&counts);
        }
    }
}

/// Returns the smallest key. The number of keys must be a multiple of [`KEYS_PER_VECTOR`].
#[inline(always)]
fn min_kmer(heads: &[u64]) -> u64 {
    let mut lanes = [INVALID_KMER; KEYS_PER_VECTOR];
    for some in heads.as_chunks::<KEYS_PER_VECTOR>().0 {
        for (least, &key) in lanes.iter_mut().zip(some) {
            *least = (*least).min(key);
        }
    }
    lanes.into_iter().fold(INVALID_KMER, u64::min)
}

/// Returns the indices of the entries with k-mers from `low` to before `high`.
pub(crate) fn entry_range_of_kmers(entries: &KmerCountBatch, low: u64, high: u64) -> Range<usize> {
    entries.keys.partition_point(|&key| key < low)..entries.keys.partition_point(|&key| key < high)
}
