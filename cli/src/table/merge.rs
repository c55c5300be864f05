//! Stretches of sorted tables → their k-mers in order, each once, with the counts that a rule makes of those in the tables.

use std::ops::Range;

use genuma_flash::Piece;
use genuma_machine::processor::Vectors;

use super::rule::{self, Counts, Operation, Rule, Way};

/// No k-mer: canonical ones have an A or a C where they begin or end.
pub(crate) const NONE: u64 = u64::MAX;

/// Keys that are compared at once.
const LANES: usize = 8;

/// Entries of a table with their counts.
pub(crate) type Entries = Piece<u32>;

/// K-mers in order and their counts, one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) keys: &'a [u64],
    pub(crate) counts: &'a [u32],
}

/// K-mers that were made. What lies behind those is of no meaning.
#[derive(Debug, Default)]
struct Block {
    keys: Vec<u64>,
    counts: Vec<u32>,
    filled: usize,
}

impl Block {
    fn run(&self, samples: usize) -> Run<'_> {
        Run { keys: &self.keys[..self.filled], counts: &self.counts[..self.filled * samples] }
    }

    /// Makes room for so many of one sample.
    fn room(&mut self, entries: usize) {
        if self.keys.len() < entries {
            self.keys.resize(entries, 0);
            self.counts.resize(entries, 0);
        }
        self.filled = 0;
    }
}

/// The k-mers below a middle one and the others: two that can be merged at the same time by one thread, which else would mostly wait for its own last step.
type Both<T> = [T; 2];

/// What is merged.
enum Part<'a> {
    /// Of a table.
    Given(Both<Run<'a>>),
    /// By a merge.
    Made(Both<Block>),
}

impl Part<'_> {
    fn runs(&self) -> Both<Run<'_>> {
        match self {
            Part::Given(runs) => *runs,
            Part::Made(blocks) => blocks.each_ref().map(|block| block.run(1)),
        }
    }
}

/// What is kept of two.
#[derive(Debug, Clone, Copy)]
struct Node {
    /// Both must have it.
    all: bool,
    /// Only the first may have it.
    only_first: bool,
    least: u64,
    most: u64,
}

impl Node {
    #[inline(always)]
    fn keeps(self, [a, b]: [u32; 2], count: u32) -> bool {
        let kept = (!self.all | ((a > 0) & (b > 0))) & (!self.only_first | (b == 0));
        kept & (count > 0) & (u64::from(count) >= self.least) & (u64::from(count) <= self.most)
    }
}

/// Merges stretch after stretch. Use it again and again: it keeps its memory.
#[derive(Debug, Default)]
pub(crate) struct Merger {
    done: Both<Block>,
    free: Vec<Both<Block>>,
    samples: usize,
}

impl Merger {
    /// The k-mers that `rule` makes of those in `ranges` of the pieces of tables, whose counts are changed. In [`Merger::runs`] they are then.
    pub(crate) fn merge(&mut self, rule: &Rule, pieces: &mut [Entries], ranges: &[Range<usize>]) {
        self.samples = rule.samples;
        pieces.iter_mut().for_each(|piece| rule.limit(&mut piece.values));
        let alone = rule.samples == 1 && rule.starts.windows(2).all(|table| table[1] - table[0] == 1);
        if alone && (rule.counts != Counts::Columns || pieces.len() == 1) {
            if rule.counts == Counts::Samples {
                pieces.iter_mut().for_each(|piece| rule::ones(&mut piece.values));
            }
            self.of_one_sample(rule, pieces, ranges);
        } else {
            self.of_many(rule, pieces, ranges);
        }
    }

    /// What the last merge made.
    pub(crate) fn runs(&self) -> Both<Run<'_>> {
        self.done.each_ref().map(|block| block.run(self.samples))
    }

    fn of_one_sample(&mut self, rule: &Rule, pieces: &[Entries], ranges: &[Range<usize>]) {
        let largest = ranges.iter().map(Range::len).enumerate().max_by_key(|&(_, n)| n);
        let middle = largest
            .filter(|&(_, n)| n > 0)
            .map_or(NONE, |(table, n)| pieces[table].keys[ranges[table].start + n / 2]);
        let mut parts: Vec<Part<'_>> = pieces
            .iter()
            .zip(ranges)
            .map(|(piece, range)| {
                let (keys, counts) = (&piece.keys[range.clone()], &piece.values[range.clone()]);
                let at = keys.partition_point(|&key| key < middle);
                let low = Run { keys: &keys[..at], counts: &counts[..at] };
                Part::Given([low, Run { keys: &keys[at..], counts: &counts[at..] }])
            })
            .collect();
        let any = Node { all: false, only_first: false, least: 1, most: u64::MAX };
        let last = Node { least: *rule.wanted.start(), most: *rule.wanted.end(), ..any };
        let done = std::mem::take(&mut self.done);
        self.free.push(done);
        if let [one] = &parts[..] {
            let mut made = self.free.pop().unwrap_or_default();
            for (run, block) in one.runs().into_iter().zip(&mut made) {
                select(last, run, block);
            }
            self.done = made;
            return;
        }
        if rule.operation == Operation::Subtract {
            let others = parts.split_off(1);
            let others = self.reduce::<rule::Sum>(any, any, others);
            parts.push(others);
            let last = Node { only_first: rule.counts != Counts::Difference, ..last };
            self.done = match rule.counts {
                Counts::Difference => self.all::<rule::Difference>(last, last, parts),
                _ => self.all::<rule::First>(last, last, parts),
            };
            return;
        }
        let all = rule.operation == Operation::Intersect;
        let (each, last) = (Node { all, ..any }, Node { all, ..last });
        self.done = match rule.counts {
            Counts::Max => self.all::<rule::Max>(each, last, parts),
            Counts::Min => self.all::<rule::Min>(each, last, parts),
            Counts::First => self.all::<rule::First>(each, last, parts),
            Counts::Last => self.all::<rule::Last>(each, last, parts),
            // Counts are ones where samples are counted.
            _ => self.all::<rule::Sum>(each, last, parts),
        };
    }

    /// [`Merger::reduce`] of two parts or more.
    fn all<W: Way>(&mut self, each: Node, last: Node, parts: Vec<Part<'_>>) -> Both<Block> {
        match self.reduce::<W>(each, last, parts) {
            Part::Made(blocks) => blocks,
            // A single part, which is never asked for.
            Part::Given(_) => Both::default(),
        }
    }

    /// Merges neighbours until there is one: the ways to make counts of two make of those of all what they would make of all at once.
    fn reduce<'a, W: Way>(&mut self, each: Node, last: Node, mut parts: Vec<Part<'a>>) -> Part<'a> {
        while parts.len() > 1 {
            let node = if parts.len() == 2 { last } else { each };
            let mut merged = Vec::with_capacity(parts.len().div_ceil(2));
            let mut left = parts.into_iter();
            while let Some(a) = left.next() {
                let Some(b) = left.next() else {
                    merged.push(a);
                    break;
                };
                let mut made = self.free.pop().unwrap_or_default();
                pair::<W>(node, a.runs(), b.runs(), &mut made);
                for part in [a, b] {
                    if let Part::Made(blocks) = part {
                        self.free.push(blocks);
                    }
                }
                merged.push(Part::Made(made));
            }
            parts = merged;
        }
        parts.pop().unwrap_or(Part::Made(Both::default()))
    }

    /// Of any number of tables with any samples: the next k-mers of all are looked at together, and all tables that have the smallest go on. Tables of samples
    /// of one species share most k-mers, so most looks move many tables.
    fn of_many(&mut self, rule: &Rule, pieces: &[Entries], ranges: &[Range<usize>]) {
        let first_only = rule.counts == Counts::First && rule.operation != Operation::Union;
        let block = &mut self.done[0];
        block.keys.clear();
        block.counts.clear();
        match rule.counts {
            // All tables have it, or only the first: its counts are where the row begins.
            _ if first_only => many::<rule::Columns>(rule, pieces, ranges, block),
            Counts::Sum => many::<rule::Sum>(rule, pieces, ranges, block),
            Counts::Max => many::<rule::Max>(rule, pieces, ranges, block),
            Counts::Min => many::<rule::Min>(rule, pieces, ranges, block),
            Counts::First => many::<rule::First>(rule, pieces, ranges, block),
            Counts::Last => many::<rule::Last>(rule, pieces, ranges, block),
            Counts::Samples => many::<rule::Samples>(rule, pieces, ranges, block),
            Counts::Columns => many::<rule::Columns>(rule, pieces, ranges, block),
            Counts::Difference => many::<rule::Difference>(rule, pieces, ranges, block),
        }
        block.filled = block.keys.len();
    }
}

/// Keeps some of one table.
fn select(node: Node, run: Run<'_>, block: &mut Block) {
    block.room(run.keys.len());
    let (keys, counts) = (&mut block.keys[..run.keys.len()], &mut block.counts[..run.keys.len()]);
    let mut filled = 0;
    for (&key, &count) in run.keys.iter().zip(run.counts) {
        (keys[filled], counts[filled]) = (key, count);
        filled += usize::from(node.keeps([count, 0], count));
    }
    block.filled = filled;
}

/// Merges two of each.
fn pair<W: Way>(node: Node, a: Both<Run<'_>>, b: Both<Run<'_>>, out: &mut Both<Block>) {
    let [low, high] = out;
    low.room(a[0].keys.len() + b[0].keys.len());
    high.room(a[1].keys.len() + b[1].keys.len());
    [low.filled, high.filled] = Vectors::widest().run(
        #[inline(always)]
        || {
            let mut low = Two::new(a[0], b[0], low);
            let mut high = Two::new(a[1], b[1], high);
            loop {
                let n = low.left().min(high.left());
                if n == 0 {
                    break;
                }
                for _ in 0..n {
                    low.step::<W>(node);
                    high.step::<W>(node);
                }
            }
            low.rest::<W>(node);
            high.rest::<W>(node);
            [low.filled, high.filled]
        },
    );
}

/// A merge of two under way.
struct Two<'a> {
    a: Run<'a>,
    b: Run<'a>,
    i: usize,
    j: usize,
    keys: &'a mut [u64],
    counts: &'a mut [u32],
    filled: usize,
}

impl<'a> Two<'a> {
    #[inline(always)]
    fn new(a: Run<'a>, b: Run<'a>, out: &'a mut Block) -> Two<'a> {
        let n = a.keys.len() + b.keys.len();
        let same = |run: Run<'a>| Run { keys: run.keys, counts: &run.counts[..run.keys.len()] };
        let (keys, counts) = (&mut out.keys[..n], &mut out.counts[..n]);
        Two { a: same(a), b: same(b), i: 0, j: 0, keys, counts, filled: 0 }
    }

    /// Steps that can be done without looking for an end.
    #[inline(always)]
    fn left(&self) -> usize {
        (self.a.keys.len() - self.i).min(self.b.keys.len() - self.j)
    }

    /// The smaller k-mer of the next two, or both if they are one: without a branch that depends on it, as there is no telling.
    #[inline(always)]
    fn step<W: Way>(&mut self, node: Node) {
        let (x, y) = (self.a.keys[self.i], self.b.keys[self.j]);
        let (in_a, in_b) = (x <= y, y <= x);
        let row = [
            self.a.counts[self.i] & u32::from(in_a).wrapping_neg(),
            self.b.counts[self.j] & u32::from(in_b).wrapping_neg(),
        ];
        self.put::<W>(node, x.min(y), row);
        self.i += usize::from(in_a);
        self.j += usize::from(in_b);
    }

    #[inline(always)]
    fn put<W: Way>(&mut self, node: Node, key: u64, row: [u32; 2]) {
        let mut out = [0];
        W::apply(&row, 1, &mut out);
        self.keys[self.filled] = key;
        self.counts[self.filled] = out[0];
        self.filled += usize::from(node.keeps(row, out[0]));
    }

    /// All that is left, of which one has the end.
    #[inline(always)]
    fn rest<W: Way>(&mut self, node: Node) {
        loop {
            let n = self.left();
            if n == 0 {
                break;
            }
            for _ in 0..n {
                self.step::<W>(node);
            }
        }
        let (a, b) = (self.a, self.b);
        for i in self.i..a.keys.len() {
            self.put::<W>(node, a.keys[i], [a.counts[i], 0]);
        }
        for j in self.j..b.keys.len() {
            self.put::<W>(node, b.keys[j], [0, b.counts[j]]);
        }
    }
}

/// A table that is gone through.
struct Input<'a> {
    keys: &'a [u64],
    counts: &'a [u32],
    samples: usize,
}

impl Input<'_> {
    fn key(&self) -> u64 {
        self.keys.first().copied().unwrap_or(NONE)
    }
}

fn many<W: Way>(rule: &Rule, pieces: &[Entries], ranges: &[Range<usize>], block: &mut Block) {
    let mut inputs: Vec<Input<'_>> = pieces
        .iter()
        .zip(ranges)
        .zip(rule.starts.windows(2))
        .map(|((piece, range), starts)| {
            let samples = starts[1] - starts[0];
            let counts = &piece.values[range.start * samples..range.end * samples];
            Input { keys: &piece.keys[range.clone()], counts, samples }
        })
        .collect();
    let mut heads = vec![NONE; inputs.len().next_multiple_of(LANES)];
    for (head, input) in heads.iter_mut().zip(&inputs) {
        *head = input.key();
    }
    Vectors::widest().run(
        #[inline(always)]
        || all::<W>(rule, &mut inputs, &mut heads, block),
    );
}

#[inline(always)]
fn all<W: Way>(rule: &Rule, inputs: &mut [Input<'_>], heads: &mut [u64], block: &mut Block) {
    let mut row = vec![0; rule.starts[inputs.len()]];
    let mut counts = vec![0; rule.samples];
    let each = rule.each();
    loop {
        let key = least(heads);
        if key == NONE {
            return;
        }
        row.fill(0);
        for (table, input) in inputs.iter_mut().enumerate() {
            if heads[table] == key {
                let (own, after) = input.counts.split_at(input.samples);
                row[rule.starts[table]..][..input.samples].copy_from_slice(own);
                (input.keys, input.counts) = (&input.keys[1..], after);
                heads[table] = input.key();
            }
        }
        W::apply(&row, each, &mut counts);
        if rule.keeps(&row, &counts) {
            block.keys.push(key);
            block.counts.extend_from_slice(&counts);
        }
    }
}

/// The smallest of keys, a whole number of [`LANES`].
#[inline(always)]
fn least(heads: &[u64]) -> u64 {
    let mut lanes = [NONE; LANES];
    for some in heads.as_chunks::<LANES>().0 {
        for (least, &key) in lanes.iter_mut().zip(some) {
            *least = (*least).min(key);
        }
    }
    lanes.into_iter().fold(NONE, u64::min)
}

/// The entries of a piece from k-mer `low` to before `high`.
pub(crate) fn range_of(piece: &Entries, low: u64, high: u64) -> Range<usize> {
    piece.keys.partition_point(|&key| key < low)..piece.keys.partition_point(|&key| key < high)
}
