//! Branch points of repeated tumour sequence. The same sequence, for example a part of a virus, may be inserted at
//! several loci. Then the reads of all these loci overlap in the common sequence, and diverge where it ends. This
//! module selects the reads of one locus, starting from a seed k-mer at the border of the common sequence, and finds
//! how far from the seed the consensus is unambiguous.

use std::ops::Range;

use crate::gapless_stack::GaplessStack;
use crate::packed::OwnedRead;

/// Minimum overlap in bp between a read and the reads selected before.
const MIN_OVERLAP_BP: usize = 24;
/// Number of bases on each side of a column that are compared to decide whether a read diverges from the consensus
/// there.
///
/// At most [`MAX_AGREEING_MISMATCHES`] of the bases before the column differ, and at least [`MIN_DIVERGING_MISMATCHES`]
/// of the bases after it.
const WINDOW_BP: usize = 20;
const MAX_AGREEING_MISMATCHES: u32 = 1;
const MIN_DIVERGING_MISMATCHES: u32 = 8;
/// Minimum number of reads that must diverge at the same column. Fewer may be chimeras.
const MIN_DIVERGING_READS: u32 = 3;
/// Minimum Phred quality of a mismatch that counts.
const MIN_BASE_QUALITY: u8 = 15;

/// Selects the reads that come from the same locus as the reads with the seed. Starting at the seed, each selected read
/// must overlap the reads selected before and agree with them. `carries` returns whether a read has the seed, and
/// `seed` is the range of the seed in stack coordinates. Returns indices of `reads`.
pub(crate) fn select_reads_of_seed_locus(
    reads: &[(i32, &OwnedRead)],
    carries: impl Fn(usize) -> bool,
    seed: &Range<i32>,
) -> Vec<usize> {
    let (mut selected, mut others): (Vec<usize>, Vec<usize>) = (0..reads.len()).partition(|&i| carries(i));
    let from_seed = |&i: &usize| {
        let (at, read) = reads[i];
        (2 * at + read.seq.len() as i32 - seed.start - seed.end).abs()
    };
    others.sort_by_key(|i| (from_seed(i), *i));
    let mut columns = GaplessStack::empty_with_columns_for_reads(reads.iter().copied());
    selected.iter().for_each(|&i| columns.add_votes_of_read(reads[i].0, reads[i].1));
    for i in others {
        let (at, read) = reads[i];
        if columns.num_bases_in_covered_columns(at, read) >= MIN_OVERLAP_BP
            && columns.read_agrees_with_majority(at, read)
        {
            columns.add_votes_of_read(at, read);
            selected.push(i);
        }
    }
    selected.sort_unstable();
    selected
}

/// The columns nearest to a seed, on the left and on the right, at which several reads diverge from the consensus and
/// no read with the seed agrees with it for [`WINDOW_BP`] bases more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct BranchPoints {
    /// First column of the unambiguous consensus; `None` if no reads diverge to the left of the seed.
    pub(crate) left: Option<usize>,
    /// Column after the last of the unambiguous consensus; `None` if no reads diverge to the right of the seed.
    pub(crate) right: Option<usize>,
    /// Whether reads diverge within the seed.
    pub(crate) within_seed: bool,
}

impl BranchPoints {
    /// Finds the branch points. `start` is the stack coordinate of the first base of `consensus`; `seed` is the range
    /// of the seed in the consensus.
    pub(crate) fn find_branch_points<'a>(
        reads: impl Iterator<Item = (i32, &'a OwnedRead)>,
        start: i32,
        consensus: &[u8],
        seed: &Range<usize>,
    ) -> BranchPoints {
        let mut diverging_reads = [vec![0u32; consensus.len() + 1], vec![0u32; consensus.len() + 1]];
        // How far reads from the seed continue with the consensus.
        let (mut left, mut right) = (seed.start, seed.end);
        let mut mismatch_sums: Vec<u32> = Vec::new();
        for (at, read) in reads {
            let Ok(from) = usize::try_from(at - start) else { continue };
            let Some(consensus_part) = consensus.get(from..from + read.seq.len()) else { continue };
            mismatch_sums.clear();
            mismatch_sums.push(0);
            let mut sum = 0;
            mismatch_sums.extend(read.seq.iter().zip(&read.qual).zip(consensus_part).map(|((b, &q), c)| {
                sum += u32::from(b != c && q >= MIN_BASE_QUALITY);
                sum
            }));
            let differs = |range: Range<usize>| mismatch_sums[range.end] - mismatch_sums[range.start];
            let end = read.seq.len();
            let columns = WINDOW_BP..(end + 1).saturating_sub(WINDOW_BP);
            let before = |i: usize| differs(i - WINDOW_BP..i);
            let behind = |i: usize| differs(i..i + WINDOW_BP);
            let diverges = columns.clone().find(|&i| {
                before(i) <= MAX_AGREEING_MISMATCHES && behind(i) >= MIN_DIVERGING_MISMATCHES && differs(i..i + 1) > 0
            });
            let converges = columns.rev().find(|&i| {
                behind(i) <= MAX_AGREEING_MISMATCHES && before(i) >= MIN_DIVERGING_MISMATCHES && differs(i - 1..i) > 0
            });
            if let Some(i) = converges {
                diverging_reads[0][from + i] += 1;
            }
            if let Some(i) = diverges {
                diverging_reads[1][from + i] += 1;
            }
            let holds = from <= seed.start && from + end >= seed.end;
            if holds && differs(seed.start - from..seed.end - from) == 0 {
                left = left.min(from + converges.unwrap_or(0));
                right = right.max(from + diverges.unwrap_or(end));
            }
        }
        let many = |side: usize, column: &usize| diverging_reads[side][*column] >= MIN_DIVERGING_READS;
        BranchPoints {
            left: (0..=seed.start).rev().find(|c| many(0, c) && left + WINDOW_BP > *c),
            within_seed: seed.clone().any(|c| many(0, &c) || many(1, &c)),
            right: (seed.end..=consensus.len()).find(|c| many(1, c) && right < *c + WINDOW_BP),
        }
    }
}
