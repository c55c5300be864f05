//! Sorted tables → their k-mers in order, each once, with the counts that a rule makes of those in the tables.

use genuma_flash::Error;
use genuma_machine::processor::Vectors;

use super::ahead::{Entries, Source};
use super::rule::{self, Counts, Operation, Rule, Way};

/// No k-mer: canonical ones have an A or a C where they begin or end.
pub const NONE: u64 = u64::MAX;

/// Keys that are compared at once.
const LANES: usize = 8;

/// K-mers that are handed over together.
pub const AT_ONCE: usize = 1 << 14;

/// A table that is gone through.
#[derive(Debug)]
struct Input {
    source: Source,
    entries: Entries,
    /// The entry that comes next.
    at: usize,
    samples: usize,
}

impl Input {
    /// The k-mer that comes next, [`NONE`] when there is none.
    #[inline(always)]
    fn key(&mut self) -> Result<u64, Error> {
        match self.entries.keys.get(self.at) {
            Some(&key) => Ok(key),
            None => self.turn(),
        }
    }

    #[cold]
    fn turn(&mut self) -> Result<u64, Error> {
        self.at = 0;
        self.source.next(&mut self.entries)?;
        Ok(self.entries.keys.first().copied().unwrap_or(NONE))
    }

    /// The k-mers of the piece that are left and their counts, of one sample: [`NONE`] alone where the table has ended, which is never gone past.
    #[inline(always)]
    fn left(&self) -> (&[u64], &[u32]) {
        match self.entries.keys.get(self.at..) {
            Some(keys @ [_, ..]) => (keys, &self.entries.values[self.at..]),
            _ => (&[NONE], &[0]),
        }
    }

    /// The counts of the k-mer that comes next.
    #[inline(always)]
    fn counts(&self) -> &[u32] {
        &self.entries.values[self.at * self.samples..][..self.samples]
    }
}

/// K-mers that a merge makes, waiting to be taken.
#[derive(Debug, Default)]
pub struct Block {
    pub keys: Vec<u64>,
    pub counts: Vec<u32>,
}

impl Block {
    /// Forgets all.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.counts.clear();
    }
}

/// Goes through tables, the next entries of each given with where more come from, and hands over blocks of k-mers that `rule` keeps: `take` leaves an
/// empty one for the next.
///
/// # Errors
/// When a table is damaged; the first error of `take`.
pub fn merge<E: From<Error>>(
    rule: &Rule,
    sources: Vec<(Source, Entries)>,
    take: impl FnMut(&mut Block) -> Result<(), E>,
) -> Result<(), E> {
    let first_only = rule.counts == Counts::First && rule.operation != Operation::Union;
    match rule.counts {
        // All tables have it, or only the first: its counts are where the row begins.
        _ if first_only => by::<rule::Columns, E>(rule, sources, take),
        Counts::Sum => by::<rule::Sum, E>(rule, sources, take),
        Counts::Max => by::<rule::Max, E>(rule, sources, take),
        Counts::Min => by::<rule::Min, E>(rule, sources, take),
        Counts::First => by::<rule::First, E>(rule, sources, take),
        Counts::Last => by::<rule::Last, E>(rule, sources, take),
        Counts::Samples => by::<rule::Samples, E>(rule, sources, take),
        Counts::Columns => by::<rule::Columns, E>(rule, sources, take),
        Counts::Difference => by::<rule::Difference, E>(rule, sources, take),
    }
}

fn by<W: Way, E: From<Error>>(
    rule: &Rule,
    sources: Vec<(Source, Entries)>,
    take: impl FnMut(&mut Block) -> Result<(), E>,
) -> Result<(), E> {
    let input = |((source, entries), range): ((Source, Entries), &[usize])| Input {
        source,
        entries,
        at: 0,
        samples: range[1] - range[0],
    };
    let mut inputs: Vec<Input> = sources.into_iter().zip(rule.starts.windows(2)).map(input).collect();
    let simple = rule.samples == 1 && rule.starts.windows(2).all(|table| table[1] - table[0] == 1);
    match &mut inputs[..] {
        [a, b] if simple => two::<W, E>(rule, a, b, take),
        all => many::<W, E>(rule, all, take),
    }
}

/// Of two tables of one sample each: without a branch that depends on which has a k-mer, as there is no telling.
fn two<W: Way, E: From<Error>>(
    rule: &Rule,
    a: &mut Input,
    b: &mut Input,
    mut take: impl FnMut(&mut Block) -> Result<(), E>,
) -> Result<(), E> {
    let (mut block, mut filled) = (Block::default(), 0);
    let vectors = Vectors::widest();
    loop {
        let ended = (a.key()?, b.key()?) == (NONE, NONE);
        if filled == AT_ONCE || (ended && filled > 0) {
            block.keys.truncate(filled);
            block.counts.truncate(filled);
            take(&mut block)?;
            filled = 0;
        }
        if ended {
            return Ok(());
        }
        block.keys.resize(AT_ONCE, 0);
        block.counts.resize(AT_ONCE, 0);
        filled = vectors.run(
            #[inline(always)]
            || stretch::<W>(rule, a, b, filled, &mut block),
        );
    }
}

/// Goes on until the entries that are there of one table are used up, or the block is full, and says how full it is.
#[inline(always)]
fn stretch<W: Way>(rule: &Rule, a: &mut Input, b: &mut Input, first: usize, block: &mut Block) -> usize {
    let (a_keys, a_counts) = a.left();
    let (b_keys, b_counts) = b.left();
    let (mut i, mut j, mut filled) = (0, 0, first);
    let (keys, counts) = (&mut block.keys[..AT_ONCE], &mut block.counts[..AT_ONCE]);
    while filled < AT_ONCE {
        let (Some(&x), Some(&y)) = (a_keys.get(i), b_keys.get(j)) else { break };
        let key = x.min(y);
        if key == NONE {
            break;
        }
        let (in_a, in_b) = (x == key, y == key);
        let mut row =
            [a_counts[i] & u32::from(in_a).wrapping_neg(), b_counts[j] & u32::from(in_b).wrapping_neg()];
        rule.limit(&mut row);
        let mut out = [0];
        W::apply(&row, 1, &mut out);
        keys[filled] = key;
        counts[filled] = out[0];
        filled += usize::from(rule.keeps_of_two(row, out[0]));
        i += usize::from(in_a);
        j += usize::from(in_b);
    }
    a.at += i;
    b.at += j;
    filled
}

/// Of any number of tables with any samples: the next k-mers of all are looked at together, and all tables that have the smallest go on. Tables of samples
/// of one species share most k-mers, so most looks move many tables.
fn many<W: Way, E: From<Error>>(
    rule: &Rule,
    inputs: &mut [Input],
    mut take: impl FnMut(&mut Block) -> Result<(), E>,
) -> Result<(), E> {
    let mut heads = vec![NONE; inputs.len().next_multiple_of(LANES)];
    for (head, input) in heads.iter_mut().zip(&mut *inputs) {
        *head = input.key()?;
    }
    let mut block = Block::default();
    let vectors = Vectors::widest();
    loop {
        vectors.run(
            #[inline(always)]
            || full::<W>(rule, inputs, &mut heads, &mut block),
        )?;
        let ended = block.keys.len() < AT_ONCE;
        if !block.keys.is_empty() {
            take(&mut block)?;
        }
        if ended {
            return Ok(());
        }
    }
}

/// Fills the block, as far as there are k-mers.
#[inline(always)]
fn full<W: Way>(
    rule: &Rule,
    inputs: &mut [Input],
    heads: &mut [u64],
    block: &mut Block,
) -> Result<(), Error> {
    let mut row = vec![0; rule.starts[inputs.len()]];
    let mut counts = vec![0; rule.samples];
    let each = rule.each();
    while block.keys.len() < AT_ONCE {
        let key = least(heads);
        if key == NONE {
            break;
        }
        row.fill(0);
        for (table, input) in inputs.iter_mut().enumerate() {
            if heads[table] == key {
                row[rule.starts[table]..][..input.samples].copy_from_slice(input.counts());
                input.at += 1;
                heads[table] = input.key()?;
            }
        }
        rule.limit(&mut row);
        W::apply(&row, each, &mut counts);
        if rule.keeps(&row, &counts) {
            block.keys.push(key);
            block.counts.extend_from_slice(&counts);
        }
    }
    Ok(())
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
