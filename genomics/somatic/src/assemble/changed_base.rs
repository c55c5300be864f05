//! Tests of a contig's change: whether reads with good bases show it, and which base of the stack it is.

use std::ops::Range;

use super::MIN_CONTIG_PAIRS;
use super::read_stack::StackedRead;
use crate::gapless_stack::GaplessStack;

/// Minimum sum of base qualities at a changed base of a contig: that of two good bases.
pub const MIN_CHANGED_BASE_QUALITY_SUM: u16 = 50;

/// Minimum Phred quality of a good base.
const MIN_GOOD_BASE_QUALITY: u8 = 20;

/// Whether enough pairs have good bases in `core`, the range where all candidate k-mers overlap and where the change
/// is. True if there is no such range, as for a long change.
pub(super) fn has_good_bases(stack: &[&StackedRead], core: &Range<i32>) -> bool {
    if core.is_empty() {
        return true;
    }
    let good = |StackedRead { placement, read, .. }: &&&StackedRead| {
        let (from, to) = (core.start - placement.start, core.end - placement.start);
        from >= 0
            && to <= read.seq.len() as i32
            && read.qual[from as usize..to as usize].iter().filter(|&&q| q < MIN_GOOD_BASE_QUALITY).count() * 8
                <= core.len()
    };
    let mut pairs: Vec<u32> = stack.iter().filter(good).map(|s| s.placement.pair).collect();
    pairs.dedup();
    pairs.len() >= MIN_CONTIG_PAIRS
}

/// Finds the column of the changed base, if the stack differs from the normal in one base only; `None` if it differs in
/// more.
///
/// A changed base makes a row of novel k-mers: it is the last base of the first k-mer and the first base of the last
/// one. Either end of the row shows which base changed, unless fewer than [`MIN_CONTIG_PAIRS`] reads have the k-mer
/// beyond it. If the two ends show different bases, or if there are several rows, the change is not a single base.
pub(super) fn find_changed_base(
    novel: &[bool],
    k: usize,
    from: usize,
    stack: &[&StackedRead],
    columns: &GaplessStack,
) -> Option<usize> {
    let start = novel.iter().position(|&n| n)?;
    let end = start + novel[start..].iter().position(|&n| !n).unwrap_or(novel.len() - start);
    if novel[end..].contains(&true) || end - start < k {
        return None;
    }
    let (start, end) = (from + start, from + end);
    let read = |window: Range<usize>| {
        let covers = |s: &&&StackedRead| {
            let at = (s.placement.start - columns.start) as usize;
            at <= window.start && at + s.read.seq.len() >= window.end
        };
        stack.iter().filter(covers).take(MIN_CONTIG_PAIRS).count() == MIN_CONTIG_PAIRS
    };
    let left = (start > 0 && read(start - 1..start - 1 + k)).then(|| start + k - 1);
    let right = read(end + 1 - k..end + 1).then(|| end - k);
    match (left, right) {
        (Some(left), Some(right)) => (left == right).then_some(left),
        (left, right) => left.or(right),
    }
}
