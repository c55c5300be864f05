//! Verifies a minibwa index without a seal.
//!
//! The sequences are compared with the reference base by base. The transform is verified in two steps. First, its
//! counts must be those of its bases. Second, from each sampled row the text is walked backwards (LF mapping of
//! Ferragina and Manzini): each step must find the base of the text, and the walk must end at the next sampled row
//! with the position stored for it. Correct counts make the steps a permutation of the rows. If the steps visit each
//! row once, and each step goes to the previous position, there is only one cycle, and it spells the text. Only the
//! text's own transform has this property.
//!
//! A step costs one or two cache misses, so that a thread follows several walks at once.

use genuma_reads::fasta::Reference;

use super::super::{Error, parallel_ranges};
use super::index_files::{BurrowsWheelerTransform, PackedSequences};

/// Number of blocks that a thread checks at a time.
const BLOCKS_PER_TASK: u64 = 1 << 14;
/// Number of sampled rows that a thread checks at a time.
const SAMPLES_PER_TASK: u64 = 1 << 13;
/// Number of bases that a thread checks at a time.
const BASES_PER_TASK: u64 = 1 << 20;
/// Number of walks that a thread follows at once.
const WALKS_AT_ONCE: usize = 24;
/// Number of low bits of a count that count the bases before the block; the higher bits count the bases in its first
/// half.
const BLOCK_COUNT_BITS: u32 = 56;

/// 2-bit code of each base letter; 4 for every other letter.
pub(super) const BASE_CODES: [u8; 256] = {
    let mut codes = [4; 256];
    let mut i = 0;
    while i < 4 {
        codes[b"ACGT"[i] as usize] = i as u8;
        codes[b"acgt"[i] as usize] = i as u8;
        i += 1;
    }
    codes
};

/// Count of each base in a word of 32 bases.
fn base_counts(word: u64) -> [u64; 4] {
    const LOW: u64 = 0x5555_5555_5555_5555;
    let (low, high) = (word & LOW, word >> 1 & LOW);
    let of = |bits: u64| u64::from(bits.count_ones());
    let t = of(low & high);
    let (c, g) = (of(low) - t, of(high) - t);
    [32 - c - g - t, c, g, t]
}

/// For each of the first `n` bases of a word that equals `base`, the lower of its two bits is set. With `n` above 32
/// all bases are compared.
fn match_bits(word: u64, base: u64, n: u64) -> u64 {
    const LOW: u64 = 0x5555_5555_5555_5555;
    let same = !(word ^ base.wrapping_mul(LOW));
    let first = !u64::MAX.checked_shl(2 * n as u32).unwrap_or(0);
    same & same >> 1 & LOW & first
}

/// Checks that the sequences of the index have the names, lengths and bases of the sequences of `genome`.
///
/// # Errors
/// The first difference.
pub(super) fn check_sequences(sequences: &PackedSequences, genome: &Reference, threads: usize) -> Result<(), Error> {
    let differ = |reason: String| sequences.index_error(format!("not an index of this reference: {reason}"));
    let (here, there) = (sequences.contig_lengths().len(), genome.contigs.len());
    if here != there {
        return Err(differ(format!("it has {here} sequences, the reference {there}")));
    }
    let mut starts = Vec::with_capacity(here);
    let mut total = 0;
    for ((name, length), contig) in sequences.contigs().zip(&genome.contigs) {
        let bases = contig.seq.len() as u64;
        if name != contig.name || length != bases {
            return Err(differ(format!(
                "it has {name} of {length} bp where the reference has {} of {bases} bp",
                contig.name
            )));
        }
        starts.push(total);
        total += bases;
    }
    let words = sequences.base_words();
    let found = parallel_ranges(total, BASES_PER_TASK, threads, |range| {
        // Compare the bases of all sequences in this range, and collect the ranges of ambiguous bases.
        let mut runs: Vec<[u64; 2]> = Vec::new();
        let first = starts.partition_point(|&start| start <= range.start) - 1;
        for (contig, &start) in genome.contigs[first..].iter().zip(&starts[first..]) {
            if start >= range.end {
                break;
            }
            let (from, to) = (range.start.max(start), range.end.min(start + contig.seq.len() as u64));
            for (at, &letter) in (from..to).zip(&contig.seq[(from - start) as usize..]) {
                match BASE_CODES[usize::from(letter)] {
                    4 => match runs.last_mut() {
                        Some(run) if run[1] == at && at > start => run[1] += 1,
                        _ => runs.push([at, at + 1]),
                    },
                    code if words[(at / 32) as usize] >> (2 * (at % 32)) & 3 == u64::from(code) => {}
                    _ => {
                        let position = at - start + 1;
                        return Err(differ(format!("they differ at base {position} of {}", contig.name)));
                    }
                }
            }
        }
        Ok(runs)
    })?;
    // minibwa does not store ambiguous ranges at the end of a sequence.
    let mut runs: Vec<[u64; 2]> = Vec::new();
    for [from, to] in found.into_iter().flatten() {
        match runs.last_mut() {
            Some(run) if run[1] == from && starts.binary_search(&from).is_err() => run[1] = to,
            _ => runs.push([from, to]),
        }
    }
    runs.retain(|run| run[1] != total && starts.binary_search(&run[1]).is_err());
    if runs != sequences.ambiguous_ranges() {
        return Err(differ("the ambiguous bases differ".into()));
    }
    Ok(())
}

/// Checks that the ambiguous ranges are sorted and within the sequences, which is all that can be checked without a
/// reference.
///
/// # Errors
/// They are not.
pub(super) fn check_ambiguous_ranges(sequences: &PackedSequences) -> Result<(), Error> {
    let within = sequences.ambiguous_ranges().as_flattened();
    if within.is_sorted() && within.last().is_none_or(|&last| last <= sequences.bases) {
        return Ok(());
    }
    Err(sequences.index_error("cut short or damaged"))
}

/// Checks that the transform is that of the sequences.
///
/// # Errors
/// What does not match.
pub(super) fn check_transform(
    transform: &BurrowsWheelerTransform,
    sequences: &PackedSequences,
    threads: usize,
) -> Result<(), Error> {
    check_counts(transform, threads)?;
    let (rows, samples) = (transform.text_len() + 1, transform.suffix_array_samples().len() as u64);
    let steps = parallel_ranges(samples, SAMPLES_PER_TASK, threads, |range| {
        let mut walks =
            LfWalks { transform, sequences, blocks: transform.transform_blocks(), words: sequences.base_words() };
        walks.walk_samples(range)
    })?;
    if steps.iter().sum::<u64>() != rows {
        return Err(transform_error(transform));
    }
    Ok(())
}

fn transform_error(transform: &BurrowsWheelerTransform) -> Error {
    transform.index_error("damaged, or not the transform of the sequences in the other file")
}

/// Checks that the counts of each block are the counts of the blocks before it and of its own first half.
fn check_counts(transform: &BurrowsWheelerTransform, threads: usize) -> Result<(), Error> {
    let (length, blocks) = (transform.text_len(), transform.transform_blocks());
    let damaged = || transform.index_error("damaged: its counts do not match its bases");
    let before = |block: usize| -> [u64; 4] {
        [0, 1, 2, 3].map(|base| blocks[8 * block + base] & ((1 << BLOCK_COUNT_BITS) - 1))
    };
    let number = (length.div_ceil(128)) as usize;
    let totals = [0, 1, 2, 3].map(|base| transform.less[base + 1] - transform.less[base]);
    // The total counts follow the last block.
    if before(0) != [0; 4] || blocks[8 * number..] != totals {
        return Err(damaged());
    }
    let checked = parallel_ranges(number as u64, BLOCKS_PER_TASK, threads, |range| {
        let right = range.map(|block| block as usize).all(|block| {
            let words = &blocks[8 * block + 4..8 * block + 8];
            let halves = [0, 2].map(|first| {
                let [a, b] = [words[first], words[first + 1]].map(base_counts);
                [0, 1, 2, 3].map(|base| a[base] + b[base])
            });
            // Unused bases after the end of the text are zero, like A.
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
                && (0..4).all(|base| blocks[8 * block + base] >> BLOCK_COUNT_BITS == half[base])
        });
        if right { Ok(()) } else { Err(()) }
    });
    checked.map(drop).map_err(|()| damaged())
}

/// Walks backwards through the text from sampled rows.
struct LfWalks<'a> {
    transform: &'a BurrowsWheelerTransform,
    sequences: &'a PackedSequences,
    blocks: &'a [u64],
    words: &'a [u64],
}

impl LfWalks<'_> {
    /// Base at a position of the indexed text, which is the sequences followed by their reverse complement.
    fn base(&self, at: u64) -> u64 {
        let bases = self.sequences.bases;
        let (at, flip) = if at < bases { (at, 0) } else { (2 * bases - 1 - at, 3) };
        (self.words[(at / 32) as usize] >> (2 * (at % 32)) & 3) ^ flip
    }

    /// Text position of a sampled row.
    fn sample_position(&self, sample: u64) -> u64 {
        match (sample, self.transform.suffix_array_samples()[sample as usize]) {
            // The first row is that of the empty suffix.
            (0, u64::MAX) => self.transform.text_len(),
            (_, position) => position,
        }
    }

    /// The row of the previous text position; `None` if the base between them differs from the text.
    fn step_back(&self, row: u64, at: u64) -> Option<u64> {
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
        // Without branches, because the walk is unpredictable.
        let (counts, half) = (block[base as usize], within / 64);
        let [one, two] = [0, 32].map(|n| match_bits(word(2 * half + n / 32), base, (within % 64).saturating_sub(n)));
        let before = (counts & ((1 << BLOCK_COUNT_BITS) - 1)) + half * (counts >> BLOCK_COUNT_BITS);
        let rank = before + u64::from((one | two << 1).count_ones());
        Some(self.transform.less[base as usize] + 1 + rank)
    }

    /// Walks from each sample of the range to the next sampled row. Returns the number of steps.
    fn walk_samples(&mut self, samples: std::ops::Range<u64>) -> Result<u64, Error> {
        let (rate, length) = (self.transform.rate, self.transform.text_len());
        let wrong = || transform_error(self.transform);
        let mut pending_walks = samples.map(|sample| (sample << rate, self.sample_position(sample)));
        let mut active_walks: Vec<(u64, u64)> = pending_walks.by_ref().take(WALKS_AT_ONCE).collect();
        if active_walks.iter().any(|&(_, at)| at > length) {
            return Err(wrong());
        }
        let mut steps = 0;
        while !active_walks.is_empty() {
            let mut i = 0;
            while i < active_walks.len() {
                let (row, at) = active_walks[i];
                let next = self.step_back(row, at).ok_or_else(wrong)?;
                // The position before the first base is the end of the text.
                let at = at.checked_sub(1).unwrap_or(length);
                steps += 1;
                if next & ((1 << rate) - 1) != 0 {
                    active_walks[i] = (next, at);
                    i += 1;
                    continue;
                }
                if self.sample_position(next >> rate) != at {
                    return Err(wrong());
                }
                match pending_walks.next() {
                    Some((_, at)) if at > length => return Err(wrong()),
                    Some(fresh) => active_walks[i] = fresh,
                    None => drop(active_walks.swap_remove(i)),
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
        assert_eq!(base_counts(word), [27, 1, 1, 3]);
        for base in 0..4 {
            let count = |n| u64::from(match_bits(word, base, n).count_ones());
            assert_eq!(count(99), base_counts(word)[base as usize]);
            let among = |n: u64| (0..n).filter(|i| word >> (2 * i) & 3 == base).count() as u64;
            assert!((0..=32).all(|n| count(n) == among(n)), "{base}");
        }
    }
}
