//! Finds where inserted sequence comes from: a tandem duplication, or a copy of another locus of the genome.

use genuma_align::{Hit, Strand};
use genuma_reads::fasta::Reference;

use crate::aligned_contig::ContigChange;
use crate::change::{Breakend, Change, MIN_STRUCTURAL_VARIANT_BP, RetainedSide};

/// Maximum number of mismatches, or of mismatches and gap bases in a copy of another locus, between an insertion of
/// `len` bases and the sequence it was copied from.
fn max_mismatches(len: usize) -> usize {
    len / 50
}

/// Maximum distance in bp between an insertion and the sequence it was copied from at which it is a tandem duplication
/// with new bases between the copies. Such a duplication remains an insertion.
const MAX_SOURCE_DISTANCE_BP: usize = 20;

/// Replaces insertions of 50 bp or more by junctions, if the sequence they were copied from is found: one junction for
/// a tandem duplication, two for a copy of another locus.
///
/// `hits` has the mapper's hits of each sequence that [`long_inserted_sequence`] returns for `contig_changes`, in their
/// order.
pub(crate) fn replace_insertions_by_junctions(
    contig_changes: Vec<ContigChange>,
    genome: &Reference,
    hits: &mut impl Iterator<Item = Vec<Hit>>,
) -> Vec<ContigChange> {
    let mut resolved = Vec::with_capacity(contig_changes.len());
    for contig_change in contig_changes {
        let hits = long_inserted_sequence(&contig_change.change).and_then(|_| hits.next()).unwrap_or_default();
        match insertion_junctions(&contig_change.change, genome, &hits) {
            Some(changes) => {
                resolved.extend(changes.into_iter().map(|change| ContigChange { change, ..contig_change.clone() }))
            }
            None => resolved.push(contig_change),
        }
    }
    resolved
}

/// The inserted bases, if the change is an insertion of at least 50 bp; otherwise `None`.
pub fn long_inserted_sequence(change: &Change) -> Option<&[u8]> {
    let Change::Allele { reference, alternative, .. } = change else { return None };
    let inserts =
        reference.len() == 1 && alternative.len() > MIN_STRUCTURAL_VARIANT_BP && reference[0] == alternative[0];
    inserts.then(|| &alternative[1..])
}

fn insertion_junctions(change: &Change, genome: &Reference, hits: &[Hit]) -> Option<Vec<Change>> {
    let Change::Allele { chrom, pos, .. } = change else { return None };
    let (chrom, pos, inserted) = (*chrom, *pos, long_inserted_sequence(change)?);
    let seq = &genome.contigs[chrom].seq;
    let end = |chrom, pos, side| Breakend { chrom, pos, side };
    let join =
        |a: Breakend, b: Breakend| Change::Junction { ends: [a.min(b), a.max(b)], inserted: Vec::new(), homology: 0 };
    let differing = |other: &[u8]| other.iter().zip(inserted).filter(|(a, b)| a != b).count();
    if let Some(next) = seq.get(pos + 1..pos + 1 + inserted.len())
        && differing(next) <= max_mismatches(inserted.len())
    {
        let (first, last) =
            (end(chrom, pos + 1, RetainedSide::Right), end(chrom, pos + inserted.len(), RetainedSide::Left));
        return Some(vec![join(first, last)]);
    }
    let hit = hits.iter().find(|h| h.is_primary)?;
    let rival = hits.iter().filter(|h| h.is_secondary).map(|h| h.score).max().unwrap_or(0);
    let is_complete = hit.query_start <= 2 && hit.query_end + 2 >= inserted.len();
    let faithful = hit.alignment_columns - hit.matching_bases <= max_mismatches(inserted.len());
    if !is_complete || !faithful || rival + 10 > hit.score {
        return None;
    }
    let (source, from, to) = (hit.tid, hit.ref_start, hit.ref_end - 1);
    // A copy of the bases next to the insertion, with a few new bases beside it, is a tandem duplication: one event.
    let is_beside = from <= pos + 1 + MAX_SOURCE_DISTANCE_BP && to + MAX_SOURCE_DISTANCE_BP >= pos;
    if source == chrom && hit.strand == Strand::Forward && is_beside {
        return None;
    }
    let (before, after) = (end(chrom, pos, RetainedSide::Left), end(chrom, pos + 1, RetainedSide::Right));
    let (enter, leave) = match hit.strand {
        Strand::Forward => (end(source, from, RetainedSide::Right), end(source, to, RetainedSide::Left)),
        Strand::Reverse => (end(source, to, RetainedSide::Left), end(source, from, RetainedSide::Right)),
    };
    Some(vec![join(before, enter), join(after, leave)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use genuma_align::{CigarKind, CigarOp};
    use genuma_reads::fasta;

    /// The junctions of an insertion of `inserted` after base 199, which the mapper finds at `source`.
    fn junctions(genome: &Reference, inserted: &[u8], source: usize) -> Option<Vec<Change>> {
        let anchor = genome.contigs[0].seq[199];
        let alternative = [&[anchor], inserted].concat();
        let change = Change::Allele { chrom: 0, pos: 199, reference: vec![anchor], alternative };
        let len = inserted.len() - 2;
        let hit = Hit {
            tid: 0,
            ref_start: source,
            ref_end: source + len,
            query_start: 2,
            query_end: 2 + len,
            strand: Strand::Forward,
            mapq: 60,
            score: len as i32,
            alignment_columns: len,
            matching_bases: len,
            proper_pair: false,
            is_primary: true,
            is_secondary: false,
            cigar: vec![CigarOp { kind: CigarKind::Match, len: len as u32 }],
        };
        insertion_junctions(&change, genome, &[hit])
    }

    #[test]
    fn a_tandem_copy_after_new_bases_remains_one_insertion() {
        let mut x = 3u64;
        let mut base = || {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(x >> 62) as usize]
        };
        let seq: Vec<u8> = (0..2000).map(|_| base()).collect();
        let genome = Reference::from_contigs(vec![fasta::Contig { name: "one".into(), seq: seq.clone() }]);
        let beside = [b"TT", &seq[120..200]].concat();
        assert_eq!(junctions(&genome, &beside, 120), None);
        let from_elsewhere = [b"TT", &seq[1000..1080]].concat();
        assert_eq!(junctions(&genome, &from_elsewhere, 1000).map(|found| found.len()), Some(2));
        // Without new bases it is the junction of a tandem duplication.
        assert_eq!(junctions(&genome, &seq[200..280], 200).map(|found| found.len()), Some(1));
    }
}
