//! Where inserted sequence comes from: the base next to it, or another place of the genome.

use genuma_align::{Hit, Strand};
use genuma_reads::fasta::Reference;

use crate::change::{Breakend, Change, STRUCTURAL, Side};
use crate::compare::Finding;

/// Bases of an insertion that may differ from its source.
fn tolerated(len: usize) -> usize {
    len / 50
}

/// Rewrites insertions of 50 bases or more whose source is known as the junctions they make: one for a tandem copy,
/// two for a copy from elsewhere.
///
/// `hits` are those of what [`inserted`] says of each finding, in order.
pub(crate) fn resolve(
    findings: Vec<Finding>,
    genome: &Reference,
    hits: &mut impl Iterator<Item = Vec<Hit>>,
) -> Vec<Finding> {
    let mut resolved = Vec::with_capacity(findings.len());
    for finding in findings {
        let hits = inserted(&finding.change).and_then(|_| hits.next()).unwrap_or_default();
        match junctions(&finding.change, genome, &hits) {
            Some(changes) => {
                resolved.extend(changes.into_iter().map(|change| Finding { change, ..finding.clone() }))
            }
            None => resolved.push(finding),
        }
    }
    resolved
}

/// What a change inserts that may have a source.
pub fn inserted(change: &Change) -> Option<&[u8]> {
    let Change::Allele { reference, alternative, .. } = change else { return None };
    let inserts = reference.len() == 1 && alternative.len() > STRUCTURAL && reference[0] == alternative[0];
    inserts.then(|| &alternative[1..])
}

fn junctions(change: &Change, genome: &Reference, hits: &[Hit]) -> Option<Vec<Change>> {
    let Change::Allele { chrom, pos, .. } = change else { return None };
    let (chrom, pos, inserted) = (*chrom, *pos, inserted(change)?);
    let seq = &genome.contigs[chrom].seq;
    let end = |chrom, pos, side| Breakend { chrom, pos, side };
    let join = |a: Breakend, b: Breakend| Change::Junction {
        ends: [a.min(b), a.max(b)],
        inserted: Vec::new(),
        homology: 0,
    };
    let differing = |other: &[u8]| other.iter().zip(inserted).filter(|(a, b)| a != b).count();
    if let Some(next) = seq.get(pos + 1..pos + 1 + inserted.len())
        && differing(next) <= tolerated(inserted.len())
    {
        let (first, last) = (end(chrom, pos + 1, Side::Right), end(chrom, pos + inserted.len(), Side::Left));
        return Some(vec![join(first, last)]);
    }
    let hit = hits.iter().find(|h| h.is_primary)?;
    let rival = hits.iter().filter(|h| h.is_secondary).map(|h| h.score).max().unwrap_or(0);
    let whole = hit.query_start <= 2 && hit.query_end + 2 >= inserted.len();
    let faithful = hit.blen - hit.mlen <= tolerated(inserted.len());
    if !whole || !faithful || rival + 10 > hit.score {
        return None;
    }
    let (source, from, to) = (hit.tid, hit.ref_start, hit.ref_end - 1);
    let (before, after) = (end(chrom, pos, Side::Left), end(chrom, pos + 1, Side::Right));
    let (enter, leave) = match hit.strand {
        Strand::Forward => (end(source, from, Side::Right), end(source, to, Side::Left)),
        Strand::Reverse => (end(source, to, Side::Left), end(source, from, Side::Right)),
    };
    Some(vec![join(before, enter), join(after, leave)])
}
