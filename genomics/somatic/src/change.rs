//! What a tumour contig says has changed, in coordinates of the genome it is compared with.

use serde::{Deserialize, Serialize};

/// Which side of a breakpoint the retained sequence lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Side {
    /// The retained sequence ends at the position (strand `+` in BEDPE).
    Left,
    /// The retained sequence begins at the position (strand `-` in BEDPE).
    Right,
}

/// One end of a junction: the last (or first) base retained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Breakend {
    /// Index of the sequence in the genome.
    pub chrom: usize,
    /// 0-based position of the outermost retained base.
    pub pos: usize,
    /// Where the retained sequence lies.
    pub side: Side,
}

/// A change of sequence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Change {
    /// `reference` at `pos` (0-based) has become `alternative`; left-aligned, with an anchor base when one is needed.
    Allele {
        /// Index of the sequence in the genome.
        chrom: usize,
        /// 0-based position of the first reference base.
        pos: usize,
        /// Reference bases.
        reference: Vec<u8>,
        /// Tumour bases.
        alternative: Vec<u8>,
    },
    /// Two places joined that are apart in the genome, the smaller end first.
    Junction {
        /// Both ends.
        ends: [Breakend; 2],
        /// Bases between the ends that belong to neither, read from the first end to the second.
        inserted: Vec<u8>,
        /// Bases that could belong to either end (microhomology); the ends stand as far left on the first as they can.
        homology: usize,
    },
    /// Sequence found nowhere in the genome begins here: one side of a long insertion.
    Novel {
        /// Where the known sequence stops.
        end: Breakend,
        /// The novel bases read off so far, outwards from the breakend.
        sequence: Vec<u8>,
    },
}

/// Changes of this many bases or more are structural.
pub const STRUCTURAL: usize = 50;
/// Junction ends this near are the same end: alignment of the flanks may differ by that much.
pub(crate) const SAME: usize = 15;

/// Whether a change is an allele that is not structural.
pub(crate) fn is_small(change: &Change) -> bool {
    match change {
        Change::Allele { reference, alternative, .. } => {
            reference.len().abs_diff(alternative.len()) < STRUCTURAL
        }
        _ => false,
    }
}

/// The places a change touches: sequence index and 0-based position.
pub(crate) fn places(change: &Change) -> Vec<(usize, usize)> {
    match change {
        Change::Allele { chrom, pos, reference, .. } if reference.len() > STRUCTURAL => {
            vec![(*chrom, *pos), (*chrom, pos + reference.len())]
        }
        Change::Allele { chrom, pos, .. } => vec![(*chrom, *pos)],
        Change::Junction { ends, .. } => ends.iter().map(|e| (e.chrom, e.pos)).collect(),
        Change::Novel { end, .. } => vec![(end.chrom, end.pos)],
    }
}

/// Sequence index and 0-based position a change is sorted by.
pub fn position(change: &Change) -> (usize, usize) {
    match change {
        Change::Allele { chrom, pos, .. } => (*chrom, *pos),
        Change::Junction { ends, .. } => (ends[0].chrom, ends[0].pos),
        Change::Novel { end, .. } => (end.chrom, end.pos),
    }
}

/// Whether two ends are within so many bases.
pub(crate) fn near(a: &Breakend, b: &Breakend, within: usize) -> bool {
    a.chrom == b.chrom && a.pos.abs_diff(b.pos) <= within
}

/// Whether two changes are one.
pub(crate) fn alike(a: &Change, b: &Change) -> bool {
    a == b || same(a, b)
}

/// Whether two junctions, or two loose ends, are copies of one.
pub(crate) fn same(a: &Change, b: &Change) -> bool {
    match (a, b) {
        (Change::Junction { ends: x, .. }, Change::Junction { ends: y, .. }) => {
            x.iter().zip(y).all(|(x, y)| near(x, y, SAME) && x.side == y.side)
        }
        (Change::Novel { end: x, .. }, Change::Novel { end: y, .. }) => near(x, y, SAME) && x.side == y.side,
        _ => false,
    }
}

/// Removes shared ends and shifts an indel as far left as it goes (Tan et al. 2015, "Unified representation").
pub fn left_align(
    genome: &[u8],
    pos: usize,
    reference: &[u8],
    alternative: &[u8],
) -> (usize, Vec<u8>, Vec<u8>) {
    let (mut pos, mut r, mut a) = (pos, reference.to_vec(), alternative.to_vec());
    loop {
        let shares_end = r.last().is_some() && r.last() == a.last();
        if shares_end {
            r.pop();
            a.pop();
        }
        if r.is_empty() || a.is_empty() {
            if pos == 0 {
                // Nothing stands before the first base: the base after the change anchors it instead.
                let after = genome[r.len()];
                r.push(after);
                a.push(after);
                break;
            }
            pos -= 1;
            r.insert(0, genome[pos]);
            a.insert(0, genome[pos]);
        } else if !shares_end {
            break;
        }
    }
    let shared =
        r.iter().zip(&a).take_while(|(x, y)| x == y).count().min(r.len().min(a.len()).saturating_sub(1));
    (pos + shared, r[shared..].to_vec(), a[shared..].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indels_move_left_and_shared_ends_go() {
        let genome = b"GGCACACACATT";
        let aligned = |pos, r: &[u8], a: &[u8]| left_align(genome, pos, r, a);
        assert_eq!(aligned(7, b"ACA", b"A"), (1, b"GCA".to_vec(), b"G".to_vec()));
        assert_eq!(aligned(9, b"A", b"ACA"), (1, b"G".to_vec(), b"GCA".to_vec()));
        assert_eq!(aligned(5, b"A", b"T"), (5, b"A".to_vec(), b"T".to_vec()));
        assert_eq!(aligned(4, b"CAC", b"CGC"), (5, b"A".to_vec(), b"G".to_vec()));
        assert_eq!(aligned(10, b"TT", b"T"), (9, b"AT".to_vec(), b"A".to_vec()));
    }
}
