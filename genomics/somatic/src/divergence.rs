//! Decides whether a contig comes from another locus than the one to which it is aligned: from a copy of the sequence
//! that the reference lacks, or from a paralog.

use std::collections::HashMap;
use std::ops::Range;

use genuma_reads::dna::reverse_complement;

use crate::affine_alignment::align_whole_query;
use crate::aligned_contig::AlignedContig;
use crate::change::{Change, is_small_variant, is_substitution};
use crate::genotype::AlleleSupport;
use crate::molecule_vote::MoleculeVote;

/// Minimum number of small changes of a contig that comes from another locus than the one to which it is aligned.
/// Empirical.
const MIN_DIVERGENT_CHANGES: usize = 10;
/// Maximum share (numerator, denominator) of changes other than deaminated cytosines in a kataegis cluster. In a contig
/// of another locus about two thirds are other changes, because only one third of the differences between loci are
/// transitions of C:G.
const MAX_OTHER_KATAEGIS_SHARE: [usize; 2] = [1, 10];

/// Whether a small change is one that deamination of cytosines by APOBEC causes: C to T or C to G, on either strand
/// (Nik-Zainal et al. 2012, "Mutational processes molding the genomes of 21 breast cancers"). Adjacent ones may be one
/// change.
fn is_deamination(change: &Change) -> bool {
    let Change::Allele { reference, alternative, .. } = change else { return false };
    let is_one = |(r, a): (&u8, &u8)| matches!((r, a), (b'C', b'T' | b'G') | (b'G', b'A' | b'C'));
    reference.len() == alternative.len() && reference.iter().zip(alternative).all(is_one)
}

/// Minimum number of molecules of the normal that must lack each change of a cluster to exclude another locus. Chosen:
/// if a contig comes from a copy that the reference lacks, at least two of fifteen molecules of the normal show that
/// copy.
const MIN_EXCLUDING_MOLECULES: u32 = 15;

/// Whether the contig has so many small changes that it comes from another locus. False if nearly all of them are
/// deaminated cytosines (kataegis), or if all are substitutions that enough molecules of the normal lack, in a cluster.
/// An inserted element is not in the normal either, but differs from its copy everywhere. `normal_votes` has the
/// normal's votes on each change; `are_clustered` says whether the small changes are nearer to each other than
/// differences between loci.
pub(crate) fn is_divergent_contig<'a>(
    contig: &AlignedContig,
    normal_votes: impl Iterator<Item = &'a [MoleculeVote]> + Clone,
    are_clustered: bool,
) -> bool {
    let small = || contig.changes.iter().map(|f| &f.change).filter(|change| is_small_variant(change));
    let is_excluded = || {
        are_clustered
            && small().all(is_substitution)
            && normal_votes.clone().all(|votes| {
                let support = AlleleSupport::count_supporting_molecules(votes);
                support.alternative == 0 && support.reference >= MIN_EXCLUDING_MOLECULES
            })
    };
    small().count() >= MIN_DIVERGENT_CHANGES && !are_mostly_deaminations(small()) && !is_excluded()
}

/// Whether nearly all small changes are deaminated cytosines.
pub(crate) fn are_mostly_deaminations<'a>(small: impl Iterator<Item = &'a Change> + Clone) -> bool {
    let others = small.clone().filter(|change| !is_deamination(change)).count();
    let [most, of] = MAX_OTHER_KATAEGIS_SHARE;
    others * of <= small.count() * most
}

/// Minimum number of small changes, without germline variants, in a contig that comes from a paralog. Chosen: three
/// neighbouring changes may be one event.
const MIN_PARALOG_CHANGES: usize = 4;
/// Minimum number of small changes, with germline variants, in a contig that comes from a paralog, if the normal may
/// contain tumour cells. Chosen: a somatic change may have a few germline variants next to it, and larger clusters of
/// somatic changes are kataegis.
const MIN_ALL_PARALOG_CHANGES: usize = 6;
/// Minimum number of molecules of the normal that must show the paralog. Chosen: one may be contamination.
const MIN_PARALOG_MOLECULES: usize = 2;
/// Minimum number of the contig's changes that a molecule of the paralog must have. Chosen: two sequencing errors in
/// one molecule are hardly ever changes of the contig.
const MIN_PARALOG_CHANGES_OF_MOLECULE: usize = 2;

/// Minimum length in bases of an unaligned end that is compared with the genome near it. Chosen: calls with shorter
/// ends are filtered anyway.
const MIN_COMPARED_END_BASES: usize = 50;
/// Maximum number of bases of an unaligned end that are compared. Chosen: gaps cost little per base, so a longer end
/// could be aligned as one gap.
const MAX_COMPARED_END_BASES: usize = 100;
/// Range of the alignment score per base (10 for a match, -40 for a mismatch) that indicates a diverged copy: from one
/// mismatch in four bases to one in fifty. Unrelated bases have about -8.
const DIVERGED_COPY_SCORE: Range<i32> = -2..9;

/// Alignment score per base of `bases` at the best position in `target`.
fn alignment_score_per_base(bases: &[u8], target: &[u8]) -> i32 {
    align_whole_query(bases, target).score.div_euclid(bases.len().max(1) as i32)
}

/// Whether an unaligned end of the contig is a diverged copy of the genome near it, and this part of the genome also
/// resembles the bases next to it. Then the contig comes from another part of an array of diverged copies, such as a
/// satellite. An inserted mobile element may also resemble an element nearby, but the genome there is not an array.
pub(crate) fn has_end_from_diverged_array(contig: &AlignedContig) -> bool {
    contig.changes.iter().any(|contig_change| match &contig_change.change {
        Change::Novel { sequence, .. } if sequence.len() >= MIN_COMPARED_END_BASES => {
            let genome = &contig_change.right_normal;
            let end = contig_change.contig_range.start as i32 + contig_change.right_shift;
            // The bases nearest the end.
            let compared = &sequence[..sequence.len().min(MAX_COMPARED_END_BASES)];
            let is_diverged_copy = || {
                let reverse = reverse_complement(compared);
                let best = [compared, &reverse].map(|bases| alignment_score_per_base(bases, genome));
                DIVERGED_COPY_SCORE.contains(&best.into_iter().fold(i32::MIN, i32::max))
            };
            is_in_repeat_array(genome, usize::try_from(end).unwrap_or(0), compared.len()) && is_diverged_copy()
        }
        _ => false,
    })
}

/// Whether the `len` bases around index `at` of the genome resemble the bases to their left or right.
fn is_in_repeat_array(genome: &[u8], at: usize, len: usize) -> bool {
    let around = at.saturating_sub(len / 2)..(at + len / 2).min(genome.len());
    let Some(bases) = genome.get(around.clone()).filter(|bases| bases.len() >= MIN_COMPARED_END_BASES) else {
        return false;
    };
    let resembles = |other: &[u8]| alignment_score_per_base(bases, other) >= DIVERGED_COPY_SCORE.start;
    resembles(&genome[..around.start]) || resembles(&genome[around.end..])
}

/// A small change of a contig with its genotyping result in the normal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangeGenotypedInNormal<'a> {
    pub(crate) change: &'a Change,
    /// Whether the change is a germline variant.
    pub(crate) is_germline: bool,
    /// Votes of the normal's molecules on the change.
    pub(crate) normal_votes: &'a [MoleculeVote],
}

/// Whether a contig comes from a paralog that the normal has too: it has several small changes, and some molecules of
/// the normal have at least two of them. Molecules of the normal lack somatic changes, but have those of a paralog,
/// even where too few reads show each change as a germline variant. If the normal contains tumour cells
/// (`normal_has_tumour`), these have the somatic changes too, so more changes are required. False if nearly all small
/// changes are deaminated cytosines.
pub(crate) fn is_contig_of_paralog(changes: &[ChangeGenotypedInNormal<'_>], normal_has_tumour: bool) -> bool {
    let small = || changes.iter().filter(|genotyped| is_small_variant(genotyped.change));
    let not_germline = small().filter(|genotyped| !genotyped.is_germline).count();
    let enough =
        small().count() >= MIN_ALL_PARALOG_CHANGES || not_germline >= MIN_PARALOG_CHANGES && !normal_has_tumour;
    if !enough || are_mostly_deaminations(small().map(|genotyped| genotyped.change)) {
        return false;
    }
    let mut changes_of_molecule: HashMap<u32, usize> = HashMap::new();
    for vote in small().flat_map(|genotyped| genotyped.normal_votes).filter(|vote| vote.supports_tumour_allele()) {
        *changes_of_molecule.entry(vote.pair).or_default() += 1;
    }
    let has_several = |changes: &&usize| **changes >= MIN_PARALOG_CHANGES_OF_MOLECULE;
    changes_of_molecule.values().filter(has_several).count() >= MIN_PARALOG_MOLECULES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aligned_contig::ContigChange;
    use crate::assemble::Contig;
    use crate::change::{Breakend, RetainedSide};

    /// A contig with changes of these reference and alternative bases.
    fn contig_with(changes: &[(&[u8], &[u8])]) -> AlignedContig {
        let contig = Contig {
            seq: vec![b'A'; 300],
            novel: vec![true; 300],
            quality_sums: vec![90; 300],
            reads: Vec::new(),
            outer_mates: Default::default(),
        };
        let mut contig = AlignedContig::from_unplaced_contig(&contig);
        contig.changes = (0..)
            .zip(changes)
            .map(|(i, (reference, alternative))| ContigChange {
                change: Change::Allele {
                    chrom: 0,
                    pos: 100 + 10 * i,
                    reference: reference.to_vec(),
                    alternative: alternative.to_vec(),
                },
                contig_range: 10 * i..10 * i + 1,
                left_normal: Vec::new(),
                right_normal: Vec::new(),
                right_shift: 0,
                mapq: 60,
            })
            .collect();
        contig
    }

    /// Whether a contig is divergent if no molecule of the normal covers it.
    fn is_divergent_alone(contig: &AlignedContig) -> bool {
        is_divergent_contig(contig, std::iter::once(&[][..]), false)
    }

    fn normal_vote(pair: u32, supports: bool) -> MoleculeVote {
        MoleculeVote::for_test(pair, if supports { 9.0 } else { -9.0 })
    }

    #[test]
    fn a_cluster_that_a_deep_normal_lacks_is_not_divergent() {
        let cluster: [(&[u8], &[u8]); 5] = [(b"A", b"G"), (b"T", b"C"), (b"C", b"A"), (b"G", b"T"), (b"AC", b"GT")];
        let contig = contig_with(&[cluster, cluster].concat());
        let is_divergent_with = |contig: &AlignedContig, votes: &[MoleculeVote]| {
            is_divergent_contig(contig, std::iter::repeat_n(votes, contig.changes.len()), true)
        };
        let without: Vec<MoleculeVote> = (0..15).map(|pair| normal_vote(pair, false)).collect();
        assert!(!is_divergent_with(&contig, &without));
        let spread = is_divergent_contig(&contig, std::iter::repeat_n(&without[..], contig.changes.len()), false);
        assert!(spread, "differences of an inserted element");
        assert!(is_divergent_with(&contig, &without[..14]));
        assert!(is_divergent_with(&contig, &[&without[..], &[normal_vote(15, true)]].concat()));
        let with_indel = contig_with(&[&cluster[..], &cluster[1..], &[(b"AC", b"A")]].concat());
        assert!(is_divergent_with(&with_indel, &without));
        assert!(!is_divergent_with(&contig_with(&cluster[..3]), &without));
    }

    #[test]
    fn kataegis_is_not_a_contig_of_another_locus() {
        let [c_to_t, g_to_a, joined]: [(&[u8], &[u8]); 3] = [(b"C", b"T"), (b"G", b"A"), (b"CC", b"TT")];
        let kataegis = [[c_to_t; 6], [g_to_a; 6]].concat();
        assert!(!is_divergent_alone(&contig_with(&kataegis)));
        assert!(!is_divergent_alone(&contig_with(&[&kataegis[..], &[joined, (b"A", b"C")]].concat())));
        // Differences of another locus are of all kinds.
        let other: [(&[u8], &[u8]); 4] = [(b"A", b"G"), (b"T", b"C"), (b"C", b"A"), (b"AC", b"A")];
        assert!(is_divergent_alone(&contig_with(&[&kataegis[..8], &other[..2]].concat())));
        assert!(is_divergent_alone(&contig_with(&[other, other, other].concat())));
        assert!(!is_divergent_alone(&contig_with(&[other, other].concat())));
    }

    /// Whether changes of these reference and alternative bases are of a paralog, if the given molecules of the normal
    /// have the changes of these indices.
    fn is_paralog_of(bases: &[(&[u8], &[u8])], germline: usize, molecules: &[&[usize]], has_tumour: bool) -> bool {
        let contig = contig_with(bases);
        let votes_on = |f: usize| (0..).zip(molecules).map(|(pair, own)| normal_vote(pair, own.contains(&f))).collect();
        let votes: Vec<Vec<MoleculeVote>> = (0..bases.len()).map(votes_on).collect();
        let genotyped = |f: usize| ChangeGenotypedInNormal {
            change: &contig.changes[f].change,
            is_germline: f < germline,
            normal_votes: &votes[f],
        };
        is_contig_of_paralog(&(0..bases.len()).map(genotyped).collect::<Vec<_>>(), has_tumour)
    }

    #[test]
    fn linked_changes_that_the_normal_has_are_a_paralog() {
        let other: [(&[u8], &[u8]); 4] = [(b"A", b"G"), (b"T", b"C"), (b"C", b"A"), (b"AC", b"A")];
        let carriers: [&[usize]; 4] = [&[0, 1], &[2, 3], &[], &[]];
        assert!(is_paralog_of(&other, 0, &carriers, false));
        // Tumour cells in the normal.
        assert!(!is_paralog_of(&other, 0, &carriers, true));
        assert!(is_paralog_of(&[other, other].concat(), 0, &carriers, true));
        // One molecule, and molecules with one change each, may be contamination and errors.
        assert!(!is_paralog_of(&other, 0, &[&[0, 1, 2], &[3], &[2], &[]], false));
        // Three changes, a somatic change beside germline variants, and kataegis.
        assert!(!is_paralog_of(&other[..3], 0, &[&[0, 1], &[1, 2], &[], &[]], false));
        assert!(!is_paralog_of(&other, 3, &carriers, false));
        assert!(is_paralog_of(&[other, other].concat(), 7, &carriers, false));
        let kataegis: [(&[u8], &[u8]); 4] = [(b"C", b"T"); 4];
        assert!(!is_paralog_of(&kataegis, 0, &carriers, false));
    }

    #[test]
    fn an_end_that_resembles_the_genome_near_it_is_a_diverged_copy() {
        let mut x = 5u64;
        let mut draw = |n: usize| -> Vec<u8> {
            let mut base = || {
                x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                b"ACGT"[(x >> 62) as usize]
            };
            (0..n).map(|_| base()).collect()
        };
        let mutate = |bases: &[u8], first: usize| -> Vec<u8> {
            let mut mutated = bases.to_vec();
            for at in (first..bases.len()).step_by(10) {
                mutated[at] = if mutated[at] == b'A' { b'C' } else { b'A' };
            }
            mutated
        };
        // Diverged copies of a unit, and other sequence.
        let (unit, other) = (draw(90), draw(540));
        let array = (0..6).flat_map(|first| mutate(&unit, first)).collect::<Vec<u8>>();
        let ends_in = |genome: &[u8], sequence: &[u8]| {
            let mut contig = contig_with(&[(b"A", b"C")]);
            (contig.changes[0].right_normal, contig.changes[0].contig_range) = (genome.to_vec(), 250..250);
            let end = Breakend { chrom: 0, pos: 100, side: RetainedSide::Left };
            contig.changes[0].change = Change::Novel { end, sequence: sequence.to_vec() };
            has_end_from_diverged_array(&contig)
        };
        let diverged = mutate(&unit, 7);
        assert!(ends_in(&array, &diverged) && ends_in(&array, &reverse_complement(&diverged)));
        // Long and short unrelated bases, and an exact copy.
        let inserted = draw(600);
        assert!(!ends_in(&array, &inserted) && !ends_in(&other, &inserted));
        assert!(!ends_in(&array, &other[..90]) && !ends_in(&array, &array[180..260]));
        // A mobile element in other sequence, near another copy of it.
        let beside = [&other[..400], &unit, &other[400..]].concat();
        assert!(!ends_in(&beside, &diverged) && !ends_in(&array, &diverged[..40]));
    }
}
