//! Sequence that stands in several places of the tumour, beside others each time, as pieces of a virus do: reads of all those places meet in
//! it. Which of them go with a seed at its border, and how far from there it is known what follows.

use std::ops::Range;

use crate::columns::Columns;
use crate::packed::Read;

/// Bases by which two reads must overlap to be laid one after the other.
const OVERLAP: usize = 24;
/// Bases before and after a column by which a read tells that it leaves the others there, and of these how many differ at most before it
/// and at least behind it.
const WINDOW: usize = 20;
const AGREE: u32 = 1;
const DIFFER: u32 = 8;
/// Fewest reads that leave at one column: fewer may be chimeras.
const FEWEST: u32 = 3;
/// Quality under which a base that differs says nothing.
const POOR: u8 = 15;

/// The reads, by number, that go with those that carry the seed: from the seed on each overlaps those before it and fits them. `seed` is where it lies,
/// in the coordinates in which reads are stacked.
pub(crate) fn along(
    reads: &[(i32, &Read)],
    carries: impl Fn(usize) -> bool,
    seed: &Range<i32>,
) -> Vec<usize> {
    let (mut taken, mut rest): (Vec<usize>, Vec<usize>) = (0..reads.len()).partition(|&i| carries(i));
    let from_seed = |&i: &usize| {
        let (at, read) = reads[i];
        (2 * at + read.seq.len() as i32 - seed.start - seed.end).abs()
    };
    rest.sort_by_key(|i| (from_seed(i), *i));
    let mut columns = Columns::wide_enough(reads.iter().copied());
    taken.iter().for_each(|&i| columns.add(reads[i].0, reads[i].1));
    for i in rest {
        let (at, read) = reads[i];
        if columns.overlap(at, read) >= OVERLAP && columns.fits(at, read) {
            columns.add(at, read);
            taken.push(i);
        }
    }
    taken.sort_unstable();
    taken
}

/// The first columns left and right of a seed at which reads leave the consensus, and no read goes on from the seed with the consensus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Branches {
    /// The first column that is known, if reads leave to its left.
    pub(crate) left: Option<usize>,
    /// The column after the last that is known.
    pub(crate) right: Option<usize>,
    /// Whether reads leave within the seed itself, to either side.
    pub(crate) within: bool,
}

impl Branches {
    /// Of reads stacked on columns that begin at `start`. `seed` is where the seed lies in the consensus.
    pub(crate) fn of<'a>(
        reads: impl Iterator<Item = (i32, &'a Read)>,
        start: i32,
        consensus: &[u8],
        seed: &Range<usize>,
    ) -> Branches {
        let mut leaving = [vec![0u32; consensus.len() + 1], vec![0u32; consensus.len() + 1]];
        // How far reads from the seed go on with the consensus.
        let (mut left, mut right) = (seed.start, seed.end);
        let mut wrong: Vec<u32> = Vec::new();
        for (at, read) in reads {
            let Ok(from) = usize::try_from(at - start) else { continue };
            let Some(beside) = consensus.get(from..from + read.seq.len()) else { continue };
            wrong.clear();
            wrong.push(0);
            let mut sum = 0;
            wrong.extend(read.seq.iter().zip(&read.qual).zip(beside).map(|((b, &q), c)| {
                sum += u32::from(b != c && q >= POOR);
                sum
            }));
            let differs = |range: Range<usize>| wrong[range.end] - wrong[range.start];
            let end = read.seq.len();
            let columns = WINDOW..(end + 1).saturating_sub(WINDOW);
            let before = |i: usize| differs(i - WINDOW..i);
            let behind = |i: usize| differs(i..i + WINDOW);
            let leaves =
                columns.clone().find(|&i| before(i) <= AGREE && behind(i) >= DIFFER && differs(i..i + 1) > 0);
            let joins =
                columns.rev().find(|&i| behind(i) <= AGREE && before(i) >= DIFFER && differs(i - 1..i) > 0);
            if let Some(i) = joins {
                leaving[0][from + i] += 1;
            }
            if let Some(i) = leaves {
                leaving[1][from + i] += 1;
            }
            let holds = from <= seed.start && from + end >= seed.end;
            if holds && differs(seed.start - from..seed.end - from) <= AGREE {
                left = left.min(from + joins.unwrap_or(0));
                right = right.max(from + leaves.unwrap_or(end));
            }
        }
        let many = |side: usize, column: &usize| leaving[side][*column] >= FEWEST;
        Branches {
            left: (0..=seed.start).rev().find(|c| many(0, c) && left + WINDOW > *c),
            within: seed.clone().any(|c| many(0, &c) || many(1, &c)),
            right: (seed.end..=consensus.len()).find(|c| many(1, c) && right < *c + WINDOW),
        }
    }
}
