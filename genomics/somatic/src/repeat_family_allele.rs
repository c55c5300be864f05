//! Finds changes of a contig to bases that most other members of a repeat family have. The other members are the other
//! loci of the genome to which the contig aligns. A copy of another member that was inserted here has such bases;
//! somatic mutations hardly ever do.

use std::ops::Range;

use genuma_align::{CigarKind, Hit, Strand};
use genuma_reads::dna::complement;
use genuma_reads::fasta::Reference;

use crate::contig_segments::{ContigSegment, overlaps_own_locus};

/// Minimum number of other members of a repeat family that must cover a change. Chosen: with only two copies, either
/// may have the ancestral base.
const MIN_FAMILY_MEMBERS: usize = 2;

/// Comparison of a base of the contig with the base of another member of the repeat family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FamilyMemberBase {
    /// The contig is not aligned with this member at the base.
    Uncovered,
    Equal,
    Different,
}

/// Another locus of the genome to which a part of the contig aligns: another member of the repeat family.
struct FamilyMember {
    /// For each base of the contig, the comparison with the base of this locus.
    bases: Vec<FamilyMemberBase>,
    /// For each base of the contig, whether this locus has additional bases before it (a deletion in the contig).
    has_bases_before: Vec<bool>,
}

impl FamilyMember {
    fn from_hit(hit: &Hit, seq: &[u8], genome: &Reference) -> FamilyMember {
        let target = &genome.contigs[hit.tid].seq;
        let is_forward = hit.strand == Strand::Forward;
        let mut place = FamilyMember {
            bases: vec![FamilyMemberBase::Uncovered; seq.len()],
            has_bases_before: vec![false; seq.len() + 1],
        };
        // A CIGAR string follows the genome: on the reverse strand the contig is read from its other end.
        let index = |q: usize| if is_forward { hit.query_start + q } else { hit.query_end - 1 - q };
        let (mut q, mut t) = (0, hit.ref_start);
        for op in &hit.cigar {
            let len = op.len as usize;
            match op.kind {
                CigarKind::Match => {
                    for i in 0..len {
                        let at = index(q + i);
                        let base = if is_forward { seq[at] } else { complement(seq[at]) };
                        place.bases[at] =
                            if base == target[t + i] { FamilyMemberBase::Equal } else { FamilyMemberBase::Different };
                    }
                    (q, t) = (q + len, t + len);
                }
                CigarKind::Ins => {
                    (0..len).for_each(|i| place.bases[index(q + i)] = FamilyMemberBase::Different);
                    q += len;
                }
                _ => {
                    place.has_bases_before[if is_forward { index(q) } else { index(q) + 1 }] = true;
                    t += len;
                }
            }
        }
        place
    }

    /// Whether this locus has the same bases as the contig at `range`; `None` if the alignment does not cover `range`
    /// and the bases next to it.
    fn has_bases(&self, range: &Range<usize>) -> Option<bool> {
        let around = self.bases.get(range.start.checked_sub(1)?..range.end + 1)?;
        if around.contains(&FamilyMemberBase::Uncovered) {
            return None;
        }
        let is_equal = self.bases[range.clone()].iter().all(|base| *base == FamilyMemberBase::Equal);
        Some(is_equal && !self.has_bases_before[range.start..=range.end].contains(&true))
    }
}

/// Selects, of the changed ranges of a contig `seq`, those whose bases most other members of the repeat family have.
/// `own` are the segments aligned to the contig's own locus, `hits` the alignments of the contig to all loci.
pub(crate) fn find_repeat_family_alleles(
    seq: &[u8],
    ranges: impl Iterator<Item = Range<usize>>,
    own: &[ContigSegment],
    hits: &[Hit],
    genome: &Reference,
) -> Vec<Range<usize>> {
    let others: Vec<FamilyMember> = hits
        .iter()
        .filter(|hit| !overlaps_own_locus(hit, own))
        .map(|hit| FamilyMember::from_hit(hit, seq, genome))
        .collect();
    if others.len() < MIN_FAMILY_MEMBERS {
        return Vec::new();
    }
    let is_repeat_family_allele = |range: &Range<usize>| {
        let shown: Vec<bool> = others.iter().filter_map(|place| place.has_bases(range)).collect();
        shown.len() >= MIN_FAMILY_MEMBERS && 2 * shown.iter().filter(|has| **has).count() > shown.len()
    };
    ranges.filter(is_repeat_family_allele).collect()
}

#[cfg(test)]
mod tests {
    use genuma_align::CigarOp;
    use genuma_reads::dna::reverse_complement;
    use genuma_reads::fasta;

    use super::*;

    const SEQ: &[u8] = b"GATTACCTGAGTCCGTACGGATCTTAGCAACTGGCATCAT";

    /// SEQ with another base at `at`.
    fn with_change(at: usize) -> Vec<u8> {
        let mut seq = SEQ.to_vec();
        seq[at] = if seq[at] == b'A' { b'C' } else { b'A' };
        seq
    }

    fn hit(start: usize, strand: Strand, cigar: &[(CigarKind, u32)]) -> Hit {
        let len = |kinds: [CigarKind; 2]| -> usize {
            cigar.iter().filter(|op| kinds.contains(&op.0)).map(|op| op.1 as usize).sum()
        };
        Hit {
            tid: 0,
            ref_start: start,
            ref_end: start + len([CigarKind::Match, CigarKind::Del]),
            query_start: 0,
            query_end: len([CigarKind::Match, CigarKind::Ins]),
            strand,
            mapq: 0,
            score: 40,
            alignment_columns: 40,
            matching_bases: 40,
            proper_pair: false,
            is_primary: false,
            is_secondary: true,
            cigar: cigar.iter().map(|&(kind, len)| CigarOp { kind, len }).collect(),
        }
    }

    /// The family alleles of a contig among changed bases 10 and 20, where the genome consists of `members`, the first
    /// at the contig's own place.
    fn family_alleles(contig: &[u8], members: &[(Vec<u8>, Strand)]) -> Vec<Range<usize>> {
        let mut genome = Vec::new();
        let mut hits = Vec::new();
        for (member, strand) in members {
            hits.push(hit(genome.len(), *strand, &[(CigarKind::Match, 40)]));
            genome.extend(if *strand == Strand::Forward { member.clone() } else { reverse_complement(member) });
        }
        let genome = Reference::from_contigs(vec![fasta::Contig { name: "one".into(), seq: genome }]);
        let own = [ContigSegment { chrom: 0, forward: true, query: (0, 40), target: (0, 40), mapq: 60 }];
        find_repeat_family_alleles(contig, [10..11, 20..21].into_iter(), &own, &hits, &genome)
    }

    #[test]
    fn a_base_that_most_other_members_have_is_of_the_family() {
        let (own, other, third) = (with_change(10), SEQ.to_vec(), with_change(20));
        let [forward, reverse] = [Strand::Forward, Strand::Reverse];
        let places = |all: &[(&Vec<u8>, Strand)]| -> Vec<(Vec<u8>, Strand)> {
            all.iter().map(|(member, strand)| ((*member).clone(), *strand)).collect()
        };
        // The contig's place differs from it at base 10, where all others are equal to the contig.
        let all = places(&[(&own, forward), (&other, forward), (&other, reverse), (&third, forward)]);
        assert_eq!(family_alleles(SEQ, &all), [10..11, 20..21]);
        // One other place is not enough, nor are half of the places.
        assert!(family_alleles(SEQ, &all[..2]).is_empty());
        let half = places(&[(&own, forward), (&other, forward), (&own, reverse)]);
        assert_eq!(family_alleles(SEQ, &half), vec![20..21]);
        // A mutation that no other member has.
        assert_eq!(family_alleles(&with_change(10), &places(&[(&other, forward); 4])), vec![20..21]);
    }

    #[test]
    fn deleted_bases_are_of_the_family_where_other_members_lack_them() {
        let genome = [SEQ, SEQ, &SEQ[..20], b"AA", &SEQ[20..]].concat();
        let genome = Reference::from_contigs(vec![fasta::Contig { name: "one".into(), seq: genome }]);
        let plain = [(CigarKind::Match, 40)];
        let longer = [(CigarKind::Match, 20), (CigarKind::Del, 2), (CigarKind::Match, 20)];
        let without = [hit(0, Strand::Forward, &plain), hit(40, Strand::Forward, &plain)];
        let deletion = || std::iter::once(20..20);
        assert_eq!(find_repeat_family_alleles(SEQ, deletion(), &[], &without, &genome), vec![20..20]);
        let with = [hit(0, Strand::Forward, &plain), hit(80, Strand::Forward, &longer)];
        assert!(find_repeat_family_alleles(SEQ, deletion(), &[], &with, &genome).is_empty());
    }
}
