//! Proof that an index is what it should be, from first principles, for one that no seal vouches for.
//!
//! The sequences are compared with the reference base by base. The transform is proven to be that of the sequences: its counts
//! are those of its bases, and from each row whose place in the text is known, stepping back through the text (the
//! LF mapping of Ferragina and Manzini) finds the text's base at each step and ends at the next such row, at the place that is known
//! for it. Counts that are right make the steps a permutation of the rows; when they have visited each row once, and each step went
//! from a place to the one before, there is but one cycle, and it spells the text: only the text's own transform does that.
//!
//! A step costs a cache miss or two, so a worker takes some rows side by side.

use genuma_reads::fasta::Reference;

use super::super::{Error, in_stretches};
use super::image::{Sequences, Transform};

/// Blocks, rows with a known place, and bases that a worker takes at a time.
const BLOCKS: u64 = 1 << 14;
const ROWS: u64 = 1 << 13;
const BASES: u64 = 1 << 20;
/// Rows that a worker follows side by side.
const ABREAST: usize = 24;
/// Bits of a word of counts that count the bases before a block; the others count those in its first half.
const BEFORE: u32 = 56;

/// The two bits of each letter; 4 for those that are none of the four bases.
pub(super) const CODES: [u8; 256] = {
    let mut codes = [4; 256];
    let mut i = 0;
    while i < 4 {
        codes[b"ACGT"[i] as usize] = i as u8;
        codes[b"acgt"[i] as usize] = i as u8;
        i += 1;
    }
    codes
};

/// How many of each base a word of 32 has.
fn counts(word: u64) -> [u64; 4] {
    const LOW: u64 = 0x5555_5555_5555_5555;
    let (low, high) = (word & LOW, word >> 1 & LOW);
    let of = |bits: u64| u64::from(bits.count_ones());
    let t = of(low & high);
    let (c, g) = (of(low) - t, of(high) - t);
    [32 - c - g - t, c, g, t]
}

/// A bit, the lower one of the two, for each `base` among the first `n` of a word: among all 32 if there are more.
fn matches(word: u64, base: u64, n: u64) -> u64 {
    const LOW: u64 = 0x5555_5555_5555_5555;
    let same = !(word ^ base.wrapping_mul(LOW));
    let first = !u64::MAX.checked_shl(2 * n as u32).unwrap_or(0);
    same & same >> 1 & LOW & first
}

/// Sees that the sequences are those of `genome`: names, lengths, all bases.
///
/// # Errors
/// Says where they differ first.
pub(super) fn is_of(sequences: &Sequences, genome: &Reference, threads: usize) -> Result<(), Error> {
    let differ = |what: String| sequences.wrong(format!("not an index of this reference: {what}"));
    let (here, there) = (sequences.lengths().len(), genome.contigs.len());
    if here != there {
        return Err(differ(format!("it has {here} sequences, the reference {there}")));
    }
    let mut starts = Vec::with_capacity(here);
    let mut total = 0;
    for ((name, length), contig) in sequences.contigs().zip(&genome.contigs) {
        let bases = contig.seq.len() as u64;
        if name != contig.name || length != bases {
            return Err(differ(format!(
                "{name} of {length} bp stands where the reference has {} of {bases} bp",
                contig.name
            )));
        }
        starts.push(total);
        total += bases;
    }
    let words = sequences.words();
    let found = in_stretches(total, BASES, threads, |range| {
        // The bases of all sequences in this range, and the stretches of those that are none of the four.
        let mut runs: Vec<[u64; 2]> = Vec::new();
        let first = starts.partition_point(|&start| start <= range.start) - 1;
        for (contig, &start) in genome.contigs[first..].iter().zip(&starts[first..]) {
            if start >= range.end {
                break;
            }
            let (from, to) = (range.start.max(start), range.end.min(start + contig.seq.len() as u64));
            for (at, &letter) in (from..to).zip(&contig.seq[(from - start) as usize..]) {
                match CODES[usize::from(letter)] {
                    4 => match runs.last_mut() {
                        Some(run) if run[1] == at && at > start => run[1] += 1,
                        _ => runs.push([at, at + 1]),
                    },
                    code if words[(at / 32) as usize] >> (2 * (at % 32)) & 3 == u64::from(code) => {}
                    _ => {
                        let place = at - start + 1;
                        return Err(differ(format!("they differ at base {place} of {}", contig.name)));
                    }
                }
            }
        }
        Ok(runs)
    })?;
    // minibwa forgets those that a sequence ends with.
    let mut runs: Vec<[u64; 2]> = Vec::new();
    for [from, to] in found.into_iter().flatten() {
        match runs.last_mut() {
            Some(run) if run[1] == from && starts.binary_search(&from).is_err() => run[1] = to,
            _ => runs.push([from, to]),
        }
    }
    runs.retain(|run| run[1] != total && starts.binary_search(&run[1]).is_err());
    if runs != sequences.ambiguous() {
        return Err(differ("other bases are none of A, C, G and T".into()));
    }
    Ok(())
}

/// Sees that what is said to be none of the four bases lies within the sequences, in order: all that can be said without a reference.
///
/// # Errors
/// It does not.
pub(super) fn is_sound(sequences: &Sequences) -> Result<(), Error> {
    let within = sequences.ambiguous().as_flattened();
    if within.is_sorted() && within.last().is_none_or(|&last| last <= sequences.bases) {
        return Ok(());
    }
    Err(sequences.wrong("cut short or damaged"))
}

/// Sees that the transform is that of the sequences.
///
/// # Errors
/// Says what is not.
pub(super) fn is_transform(
    transform: &Transform,
    sequences: &Sequences,
    threads: usize,
) -> Result<(), Error> {
    counts_are_right(transform, threads)?;
    let (rows, samples) = (transform.length() + 1, transform.samples().len() as u64);
    let steps = in_stretches(samples, ROWS, threads, |range| {
        let mut walks = Walks { transform, sequences, blocks: transform.blocks(), words: sequences.words() };
        walks.from(range)
    })?;
    if steps.iter().sum::<u64>() != rows {
        return Err(not_the_transform(transform));
    }
    Ok(())
}

fn not_the_transform(transform: &Transform) -> Error {
    transform.wrong("damaged, or not of the sequences beside it")
}

/// Sees that each block's counts are those of the blocks before it and of its own first half.
fn counts_are_right(transform: &Transform, threads: usize) -> Result<(), Error> {
    let (length, blocks) = (transform.length(), transform.blocks());
    let damaged = || transform.wrong("damaged: its counts are not those of its bases");
    let before = |block: usize| -> [u64; 4] {
        [0, 1, 2, 3].map(|base| blocks[8 * block + base] & ((1 << BEFORE) - 1))
    };
    let number = (length.div_ceil(128)) as usize;
    let totals = [0, 1, 2, 3].map(|base| transform.less[base + 1] - transform.less[base]);
    // Behind the last block are plain counts.
    if before(0) != [0; 4] || blocks[8 * number..] != totals {
        return Err(damaged());
    }
    let checked = in_stretches(number as u64, BLOCKS, threads, |range| {
        let right = range.map(|block| block as usize).all(|block| {
            let words = &blocks[8 * block + 4..8 * block + 8];
            let halves = [0, 2].map(|first| {
                let [a, b] = [words[first], words[first + 1]].map(counts);
                [0, 1, 2, 3].map(|base| a[base] + b[base])
            });
            // What is behind the end of the text is zero, as A is.
            let here = (length - 128 * block as u64).min(128);
            let spare = 128 - here;
            let empty = |word: usize| match here.saturating_sub(32 * word as u64) {
                32.. => true,
                n => words[word] >> (2 * n) == 0,
            };
            let mut after = before(block);
            for half in halves {
                after.iter_mut().zip(half).for_each(|(sum, count)| *sum += count);
            }
            after[0] -= spare;
            let half = if here > 64 { halves[0] } else { [0; 4] };
            (0..4).all(empty)
                && before(block + 1) == after
                && (0..4).all(|base| blocks[8 * block + base] >> BEFORE == half[base])
        });
        if right { Ok(()) } else { Err(()) }
    });
    checked.map(drop).map_err(|()| damaged())
}

/// Steps back through the text from rows whose place is known.
struct Walks<'a> {
    transform: &'a Transform,
    sequences: &'a Sequences,
    blocks: &'a [u64],
    words: &'a [u64],
}

impl Walks<'_> {
    /// The text's base at a place: that of the sequences, then that of their other strand.
    fn base(&self, at: u64) -> u64 {
        let bases = self.sequences.bases;
        let (at, flip) = if at < bases { (at, 0) } else { (2 * bases - 1 - at, 3) };
        (self.words[(at / 32) as usize] >> (2 * (at % 32)) & 3) ^ flip
    }

    /// The place of the row of a sample.
    fn place(&self, sample: u64) -> u64 {
        match (sample, self.transform.samples()[sample as usize]) {
            // The first row is that of the empty suffix.
            (0, u64::MAX) => self.transform.length(),
            (_, place) => place,
        }
    }

    /// The row before a row whose place is `at`, if the base between them is the text's.
    fn before(&self, row: u64, at: u64) -> Option<u64> {
        if row == self.transform.end {
            return (at == 0).then_some(0);
        }
        let i = row - u64::from(row > self.transform.end);
        let (block, within) = (&self.blocks[8 * (i / 128) as usize..][..8], i % 128);
        let word = |n: u64| block[4 + n as usize];
        let base = word(within / 32) >> (2 * (within % 32)) & 3;
        if at == 0 || self.base(at - 1) != base {
            return None;
        }
        // No branches: where a walk goes cannot be guessed.
        let (counts, half) = (block[base as usize], within / 64);
        let [one, two] =
            [0, 32].map(|n| matches(word(2 * half + n / 32), base, (within % 64).saturating_sub(n)));
        let before = (counts & ((1 << BEFORE) - 1)) + half * (counts >> BEFORE);
        let rank = before + u64::from((one | two << 1).count_ones());
        Some(self.transform.less[base as usize] + 1 + rank)
    }

    /// Walks from each sample of the range to the next sample that it meets; gives the steps that took.
    fn from(&mut self, samples: std::ops::Range<u64>) -> Result<u64, Error> {
        let (rate, length) = (self.transform.rate, self.transform.length());
        let wrong = || not_the_transform(self.transform);
        let mut coming = samples.map(|sample| (sample << rate, self.place(sample)));
        let mut under_way: Vec<(u64, u64)> = coming.by_ref().take(ABREAST).collect();
        if under_way.iter().any(|&(_, at)| at > length) {
            return Err(wrong());
        }
        let mut steps = 0;
        while !under_way.is_empty() {
            let mut i = 0;
            while i < under_way.len() {
                let (row, at) = under_way[i];
                let next = self.before(row, at).ok_or_else(wrong)?;
                // Before the first base is the end: rows and places go round.
                let at = at.checked_sub(1).unwrap_or(length);
                steps += 1;
                if next & ((1 << rate) - 1) != 0 {
                    under_way[i] = (next, at);
                    i += 1;
                    continue;
                }
                if self.place(next >> rate) != at {
                    return Err(wrong());
                }
                match coming.next() {
                    Some((_, at)) if at > length => return Err(wrong()),
                    Some(fresh) => under_way[i] = fresh,
                    None => drop(under_way.swap_remove(i)),
                }
            }
        }
        Ok(steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bases_are_counted() {
        let word = 0b11_10_01_00_11_11u64;
        assert_eq!(counts(word), [27, 1, 1, 3]);
        for base in 0..4 {
            let count = |n| u64::from(matches(word, base, n).count_ones());
            assert_eq!(count(99), counts(word)[base as usize]);
            let among = |n: u64| (0..n).filter(|i| word >> (2 * i) & 3 == base).count() as u64;
            assert!((0..=32).all(|n| count(n) == among(n)), "{base}");
        }
    }
}
