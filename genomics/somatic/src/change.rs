//! Types for differences between a tumour contig and the genome: small variants, junctions and novel sequence.

use genuma_reads::dna::reverse_complement;
use genuma_reads::fasta::Reference;
use genuma_reads::targets::Targets;
use serde::{Deserialize, Serialize};

/// Side of a breakend on which the tumour keeps the sequence of the genome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RetainedSide {
    /// The kept sequence ends at the breakend (strand `+` in BEDPE).
    Left,
    /// The kept sequence begins at the breakend (strand `-` in BEDPE).
    Right,
}

/// One end of a junction, as the outermost base of the genome that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Breakend {
    /// Index of the chromosome or contig in the genome.
    pub chrom: usize,
    /// 0-based position of the outermost base that is kept.
    pub pos: usize,
    /// Side of `pos` on which the kept sequence is.
    pub side: RetainedSide,
}

/// A difference between the sequence of a tumour and the genome.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Change {
    /// A small variant, or a long insertion or deletion: `reference` at `pos` (0-based) is replaced by `alternative`.
    /// Left-aligned, with an anchor base where VCF requires one.
    Allele {
        /// Index of the chromosome or contig in the genome.
        chrom: usize,
        /// 0-based position of the first reference base.
        pos: usize,
        /// Bases of the reference from `pos` on, upper case; VCF: REF.
        reference: Vec<u8>,
        /// Bases of the tumour instead of `reference`, upper case; VCF: ALT.
        alternative: Vec<u8>,
    },
    /// Two breakends that are not adjacent in the genome but adjacent in the tumour; the smaller breakend first.
    Junction {
        /// The two breakends that are joined.
        ends: [Breakend; 2],
        /// Bases inserted between the breakends, in the direction from the first to the second.
        inserted: Vec<u8>,
        /// Number of bases that could belong to either breakend (microhomology). The first breakend has the leftmost
        /// possible position.
        homology: usize,
    },
    /// Novel sequence, which is not found in the genome, begins here: one end of a long insertion, or a single
    /// breakend.
    Novel {
        /// The breakend at which the genome's sequence ends.
        end: Breakend,
        /// The novel bases that the contig shows, in the direction away from the breakend.
        sequence: Vec<u8>,
    },
}

/// Minimum size in bp of a structural variant; smaller insertions and deletions are indels (50 bp by convention). A
/// larger value reports more changes as indels.
pub const MIN_STRUCTURAL_VARIANT_BP: usize = 50;
/// Maximum distance in bp of two breakends that count as the same: the alignment may shift them in repeated flanks.
pub(crate) const MAX_SAME_BREAKEND_DISTANCE_BP: usize = 15;

/// Whether a change is an SNV, an MNV, or an indel shorter than [`MIN_STRUCTURAL_VARIANT_BP`].
pub(crate) fn is_small_variant(change: &Change) -> bool {
    match change {
        Change::Allele { reference, alternative, .. } => {
            reference.len().abs_diff(alternative.len()) < MIN_STRUCTURAL_VARIANT_BP
        }
        _ => false,
    }
}

/// Whether a change replaces bases by the same number of other bases (SNV or MNV).
pub(crate) fn is_substitution(change: &Change) -> bool {
    matches!(change, Change::Allele { reference, alternative, .. } if reference.len() == alternative.len())
}

/// Positions that a change affects (chromosome index, 0-based position): both ends of a junction or of a deletion of at
/// least [`MIN_STRUCTURAL_VARIANT_BP`] bases, the breakend of novel sequence, the first position of any other allele.
pub(crate) fn positions_of_change_ends(change: &Change) -> Vec<(usize, usize)> {
    match change {
        Change::Allele { chrom, pos, reference, .. } if reference.len() > MIN_STRUCTURAL_VARIANT_BP => {
            vec![(*chrom, *pos), (*chrom, pos + reference.len())]
        }
        Change::Allele { chrom, pos, .. } => vec![(*chrom, *pos)],
        Change::Junction { ends, .. } => ends.iter().map(|e| (e.chrom, e.pos)).collect(),
        Change::Novel { end, .. } => vec![(end.chrom, end.pos)],
    }
}

/// Whether a change overlaps the targets, extended by `padding_bp` on both sides. Of a small variant any reference base
/// counts, of a structural variant either end.
pub(crate) fn is_on_target(change: &Change, targets: &Targets, padding_bp: usize) -> bool {
    match change {
        Change::Allele { chrom, pos, reference, .. } if is_small_variant(change) => {
            targets.any_padded_target_overlaps(*chrom, *pos, pos + reference.len().max(1), padding_bp)
        }
        _ => positions_of_change_ends(change)
            .into_iter()
            .any(|(chrom, pos)| targets.any_padded_target_overlaps(chrom, pos, pos + 1, padding_bp)),
    }
}

/// Position by which changes are sorted: chromosome index, 0-based position.
pub fn change_sort_position(change: &Change) -> (usize, usize) {
    match change {
        Change::Allele { chrom, pos, .. } => (*chrom, *pos),
        Change::Junction { ends, .. } => (ends[0].chrom, ends[0].pos),
        Change::Novel { end, .. } => (end.chrom, end.pos),
    }
}

/// Whether two breakends are on the same chromosome and at most `within` bp apart.
pub(crate) fn are_breakends_near(a: &Breakend, b: &Breakend, within: usize) -> bool {
    a.chrom == b.chrom && a.pos.abs_diff(b.pos) <= within
}

/// Whether two changes are equal, or are junctions or novel ends with the same breakends within
/// [`MAX_SAME_BREAKEND_DISTANCE_BP`].
pub(crate) fn are_changes_equal_within_tolerance(a: &Change, b: &Change) -> bool {
    a == b || are_breakends_equal_within_tolerance(a, b)
}

/// Whether two junctions, or two novel ends, have the same breakends within [`MAX_SAME_BREAKEND_DISTANCE_BP`].
pub(crate) fn are_breakends_equal_within_tolerance(a: &Change, b: &Change) -> bool {
    match (a, b) {
        (Change::Junction { ends: x, .. }, Change::Junction { ends: y, .. }) => {
            x.iter().zip(y).all(|(x, y)| are_breakends_near(x, y, MAX_SAME_BREAKEND_DISTANCE_BP) && x.side == y.side)
        }
        (Change::Novel { end: x, .. }, Change::Novel { end: y, .. }) => {
            are_breakends_near(x, y, MAX_SAME_BREAKEND_DISTANCE_BP) && x.side == y.side
        }
        _ => false,
    }
}

/// Normalises an allele: removes bases shared by both alleles and shifts an indel as far left as possible (Tan et al.
/// 2015, "Unified representation of genetic variants"). Returns position, reference and alternative allele.
pub fn left_align_allele(genome: &[u8], pos: usize, reference: &[u8], alternative: &[u8]) -> (usize, Vec<u8>, Vec<u8>) {
    let (mut pos, mut r, mut a) = (pos, reference.to_vec(), alternative.to_vec());
    loop {
        let shares_end = r.last().is_some() && r.last() == a.last();
        if shares_end {
            r.pop();
            a.pop();
        }
        if r.is_empty() || a.is_empty() {
            if pos == 0 {
                // There is no base before the first one: the base after the change is the anchor.
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
    let shared = r.iter().zip(&a).take_while(|(x, y)| x == y).count().min(r.len().min(a.len()).saturating_sub(1));
    (pos + shared, r[shared..].to_vec(), a[shared..].to_vec())
}

/// Converts a junction that deletes or tandemly duplicates fewer than [`MIN_STRUCTURAL_VARIANT_BP`] bases to the
/// equivalent small variant; `None` for all other changes.
pub(crate) fn convert_short_junction_to_allele(change: &Change, genome: &Reference) -> Option<Change> {
    let Change::Junction { ends: [first, second], inserted, .. } = change else { return None };
    if first.chrom != second.chrom {
        return None;
    }
    let seq = &genome.contigs[first.chrom].seq;
    let bases = |range: std::ops::Range<usize>| seq.get(range);
    // The anchor is the base before the deleted bases, or the last base of the first copy.
    let (anchor, deleted, added) = match (first.side, second.side) {
        (RetainedSide::Left, RetainedSide::Right) => (first.pos, bases(first.pos + 1..second.pos)?, inserted.clone()),
        (RetainedSide::Right, RetainedSide::Left) => {
            // Inserted bases are read from the first breakend outwards, which is to the left of the second copy.
            let second_copy = bases(first.pos..second.pos + 1)?;
            (second.pos, &[][..], [&reverse_complement(inserted), second_copy].concat())
        }
        _ => return None,
    };
    if deleted.len().max(added.len()) >= MIN_STRUCTURAL_VARIANT_BP {
        return None;
    }
    let before = bases(anchor..anchor + 1)?;
    let (reference, alternative) = ([before, deleted].concat(), [before, &added].concat());
    let (pos, reference, alternative) = left_align_allele(seq, anchor, &reference, &alternative);
    Some(Change::Allele { chrom: first.chrom, pos, reference, alternative })
}

#[cfg(test)]
mod tests {
    use super::*;
    use genuma_reads::fasta::Contig;

    #[test]
    fn short_junctions_are_small_variants() {
        let seq = b"TTGACCATGAAGTCCGGTA".to_vec();
        let genome = Reference::from_contigs(vec![Contig { name: "c".into(), seq }]);
        let junction = |a: (usize, RetainedSide), b: (usize, RetainedSide), inserted: &[u8]| {
            let ends = [a, b].map(|(pos, side)| Breakend { chrom: 0, pos, side });
            convert_short_junction_to_allele(
                &Change::Junction { ends, inserted: inserted.to_vec(), homology: 0 },
                &genome,
            )
        };
        let allele = |pos, r: &[u8], a: &[u8]| {
            Some(Change::Allele { chrom: 0, pos, reference: r.to_vec(), alternative: a.to_vec() })
        };
        // TTGAC[CATG]AAG without and with two bases in place of the deleted ones.
        assert_eq!(junction((4, RetainedSide::Left), (9, RetainedSide::Right), b""), allele(4, b"CCATG", b"C"));
        assert_eq!(junction((4, RetainedSide::Left), (9, RetainedSide::Right), b"TT"), allele(5, b"CATG", b"TT"));
        // CATG twice, with GG between the copies: CATG GG CATG. The junction stores the reverse complement.
        assert_eq!(junction((5, RetainedSide::Right), (8, RetainedSide::Left), b""), allele(4, b"C", b"CCATG"));
        assert_eq!(junction((5, RetainedSide::Right), (8, RetainedSide::Left), b"CC"), allele(4, b"C", b"CCATGGG"));
        assert_eq!(junction((5, RetainedSide::Left), (8, RetainedSide::Left), b""), None);
    }

    #[test]
    fn indels_move_left_and_shared_ends_go() {
        let genome = b"GGCACACACATT";
        let aligned = |pos, r: &[u8], a: &[u8]| left_align_allele(genome, pos, r, a);
        assert_eq!(aligned(7, b"ACA", b"A"), (1, b"GCA".to_vec(), b"G".to_vec()));
        assert_eq!(aligned(9, b"A", b"ACA"), (1, b"G".to_vec(), b"GCA".to_vec()));
        assert_eq!(aligned(5, b"A", b"T"), (5, b"A".to_vec(), b"T".to_vec()));
        assert_eq!(aligned(4, b"CAC", b"CGC"), (5, b"A".to_vec(), b"G".to_vec()));
        assert_eq!(aligned(10, b"TT", b"T"), (9, b"AT".to_vec(), b"A".to_vec()));
    }
}
