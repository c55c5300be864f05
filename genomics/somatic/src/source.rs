//! Where inserted sequence comes from: the base next to it, or another place of the genome.

use genuma_align::{Mapper, Strand};
use genuma_reads::fasta::Reference;

use crate::change::{Breakend, Change, STRUCTURAL, Side};
use crate::compare::Finding;

/// Bases of an insertion that may differ from its source.
fn tolerated(len: usize) -> usize {
    len / 50
}

/// Rewrites insertions of 50 bases or more whose source is known as the junctions they make: one for a tandem copy,
/// two for a copy from elsewhere.
pub fn resolve(
    findings: Vec<Finding>,
    genome: &Reference,
    mapper: &mut Mapper,
) -> Result<Vec<Finding>, genuma_align::Error> {
    let mut resolved = Vec::with_capacity(findings.len());
    for finding in findings {
        match junctions(&finding.change, genome, mapper)? {
            Some(changes) => {
                resolved.extend(changes.into_iter().map(|change| Finding { change, ..finding.clone() }))
            }
            None => resolved.push(finding),
        }
    }
    Ok(resolved)
}

fn junctions(
    change: &Change,
    genome: &Reference,
    mapper: &mut Mapper,
) -> Result<Option<Vec<Change>>, genuma_align::Error> {
    let Change::Allele { chrom, pos, reference, alternative } = change else { return Ok(None) };
    if reference.len() != 1 || alternative.len() < 1 + STRUCTURAL || reference[0] != alternative[0] {
        return Ok(None);
    }
    let (chrom, pos, inserted) = (*chrom, *pos, &alternative[1..]);
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
        return Ok(Some(vec![join(first, last)]));
    }
    let hits = mapper.map(b"inserted", inserted)?;
    let Some(hit) = hits.iter().find(|h| h.is_primary) else { return Ok(None) };
    let rival = hits.iter().filter(|h| h.is_secondary).map(|h| h.score).max().unwrap_or(0);
    let whole = hit.query_start <= 2 && hit.query_end as usize + 2 >= inserted.len();
    let faithful = (hit.blen - hit.mlen) as usize <= tolerated(inserted.len());
    if !whole || !faithful || rival + 10 > hit.score {
        return Ok(None);
    }
    let source = usize::try_from(hit.tid).unwrap_or(0);
    let (from, to) = (hit.ref_start.max(0) as usize, hit.ref_end.max(1) as usize - 1);
    let (before, after) = (end(chrom, pos, Side::Left), end(chrom, pos + 1, Side::Right));
    let (enter, leave) = match hit.strand {
        Strand::Forward => (end(source, from, Side::Right), end(source, to, Side::Left)),
        Strand::Reverse => (end(source, to, Side::Left), end(source, from, Side::Right)),
    };
    Ok(Some(vec![join(before, enter), join(after, leave)]))
}
