//! Detects fold-back artefacts: during library preparation a strand anneals to its own reverse complement nearby, and
//! is extended from there.

use std::ops::Range;

use genuma_kmers::encode::kmers;
use genuma_reads::dna::{encode_base, reverse_complement};

use crate::aligned_contig::{AlignedContig, ContigChange};
use crate::change::{Change, is_small_variant};

/// For each change of the contig, whether it may be a fold-back artefact. It may be one if the contig continues after
/// the change as the reverse complement of the sequence before it, if the changed bases are copied from such a reverse
/// complement nearby, or if the contig has the reverse complement of the genome around the change.
pub(crate) fn flag_fold_back_changes(contig: &AlignedContig) -> Vec<bool> {
    let changes = contig.changes.iter();
    changes.map(|change| folds_back(&contig.seq, change) || is_inverted_loop(contig, change)).collect()
}

/// Whether the contig continues after the change as the reverse complement of the sequence before it, or the changed
/// bases are copied from such a reverse complement nearby.
fn folds_back(seq: &[u8], contig_change: &ContigChange) -> bool {
    match &contig_change.change {
        Change::Allele { reference, alternative, .. } => {
            let substitutes = reference.len() == alternative.len();
            has_hairpin(seq, &contig_change.contig_range, MAX_HINGE_DISTANCE_BASES)
                || (substitutes && is_copied_from_arm(seq, &contig_change.contig_range))
        }
        _ => has_hairpin(seq, &contig_change.contig_range, MAX_ARM_DISTANCE_BASES),
    }
}

/// Maximum number of pairs of a contig that is discarded as a fold-back artefact: half of the molecules at which
/// [`crate::event`] no longer filters it, because assembly may miss some molecules.
const MAX_FOLD_BACK_PAIRS: usize = 3;

/// Whether a contig of at most [`MAX_FOLD_BACK_PAIRS`] pairs has only changes that are junctions and fold back. In a
/// library with many fold-backs, no reads are recruited for such a contig.
pub(crate) fn is_fold_back_artefact_of_few_pairs(contig: &AlignedContig, pairs: usize) -> bool {
    let hairpin = |f: &ContigChange| matches!(f.change, Change::Junction { .. }) && folds_back(&contig.seq, f);
    pairs <= MAX_FOLD_BACK_PAIRS && contig.changes.iter().all(hairpin)
}

/// Minimum length in bases of the arms of a hairpin: a stretch before the change, and its reverse complement after it.
const ARM_BASES: u32 = 20;
/// Maximum distance in bases of each arm of a hairpin from the change.
const MAX_ARM_DISTANCE_BASES: usize = 200;

/// Maximum distance in bases between a small change and the turning point of the hairpin that explains it.
const MAX_HINGE_DISTANCE_BASES: usize = 15;

/// Whether [`ARM_BASES`] bases near the start of `at` are repeated near its end as reverse complement, each at most
/// [`MAX_ARM_DISTANCE_BASES`] away: the two arms of a hairpin whose turning point is at most `turn` bases from the start
/// of `at`. The arms may overlap `at`.
fn has_hairpin(seq: &[u8], at: &Range<usize>, turn: usize) -> bool {
    let arms = |from: usize, to: usize| {
        let arms = kmers(&seq[from..to.min(seq.len())], ARM_BASES);
        arms.map(move |(i, arm)| (from + i, arm))
    };
    let arm = ARM_BASES as usize;
    let before = arms(at.start.saturating_sub(MAX_ARM_DISTANCE_BASES), at.start + arm);
    let mut before: Vec<(u64, usize)> = before.map(|(i, arm)| (arm.reverse, i)).collect();
    before.sort_unstable();
    arms(at.end.saturating_sub(arm).max(at.start), at.end + MAX_ARM_DISTANCE_BASES).any(|(j, after)| {
        let alike = &before[before.partition_point(|b| b.0 < after.forward)..];
        let mut alike = alike.iter().take_while(|b| b.0 == after.forward);
        alike.any(|(_, i)| ((i + j + arm) / 2).abs_diff(at.start) <= turn)
    })
}

/// Whether the bases `at` of `seq`, with their flanks, occur nearby as reverse complement. If two arms of a hairpin in
/// the genome differ in some bases, a strand that folds back copies these from one arm to the other.
fn is_copied_from_arm(seq: &[u8], at: &Range<usize>) -> bool {
    let arm = ARM_BASES as usize;
    let from = at.start.saturating_sub(MAX_ARM_DISTANCE_BASES);
    let near = kmers(&seq[from..(at.end + MAX_ARM_DISTANCE_BASES).min(seq.len())], ARM_BASES)
        .map(|(i, kmer)| (from + i, kmer));
    let (over, others): (Vec<_>, Vec<_>) = near.partition(|(i, _)| *i <= at.start && i + arm >= at.end);
    let nearby_kmers = others.into_iter().filter(|(i, _)| *i >= at.end || i + arm <= at.start);
    let mut nearby_kmers: Vec<u64> = nearby_kmers.map(|(_, kmer)| kmer.reverse).collect();
    nearby_kmers.sort_unstable();
    over.iter().any(|(_, kmer)| nearby_kmers.binary_search(&kmer.forward).is_ok())
}

/// Minimum length in bases of the two complementary arms next to an inverted loop. Chosen: one change in 1,000 has such
/// arms by chance; a higher value misses short hairpins.
const MIN_LOOP_ARM_BASES: usize = 5;
/// Maximum distance in bases between a change in the loop of a hairpin and the outer ends of the arms. Chosen: longer
/// inversions are called as junctions.
const MAX_LOOP_DISTANCE_BASES: usize = 30;

/// Whether the genome has a hairpin around a small change, and the contig has the loop of this hairpin as reverse
/// complement: a strand that folds back in the hairpin copies the loop from the other strand.
fn is_inverted_loop(contig: &AlignedContig, contig_change: &ContigChange) -> bool {
    if !is_small_variant(&contig_change.change) {
        return false;
    }
    let (seq, arm, at) = (&contig.seq, MIN_LOOP_ARM_BASES, &contig_change.contig_range);
    let starts = at.start.saturating_sub(MAX_LOOP_DISTANCE_BASES)..=at.start.saturating_sub(arm);
    let ends = at.end + arm..=(at.end + MAX_LOOP_DISTANCE_BASES).min(seq.len());
    starts.flat_map(|start| ends.clone().map(move |end| start..end)).any(|stretch| {
        stretch.start + arm <= at.start
            && has_complementary_ends(&seq[stretch.clone()])
            && genome_bases(contig, &stretch).is_some_and(|bases| reverse_complement(&bases) == seq[stretch.clone()])
    })
}

/// Whether the last bases of a sequence are the reverse complement of its first bases.
fn has_complementary_ends(seq: &[u8]) -> bool {
    let paired = seq.iter().zip(seq.iter().rev()).take(MIN_LOOP_ARM_BASES);
    paired.into_iter().all(|(a, b)| encode_base(*a) + encode_base(*b) == encode_base(b'T'))
}

/// The bases of the genome that correspond to `stretch` of a contig: its small changes are undone. `None` if a change
/// overlaps an end of the stretch.
fn genome_bases(contig: &AlignedContig, stretch: &Range<usize>) -> Option<Vec<u8>> {
    let mut small: Vec<&ContigChange> = contig.changes.iter().filter(|f| is_small_variant(&f.change)).collect();
    small.retain(|f| f.contig_range.start < stretch.end && f.contig_range.end > stretch.start);
    small.sort_by_key(|f| (f.contig_range.start, f.contig_range.end));
    let (mut bases, mut from) = (Vec::new(), stretch.start);
    for f in small {
        let normal_end = usize::try_from(f.contig_range.end as i32 + f.right_shift).ok()?;
        if f.contig_range.end > stretch.end {
            return None;
        }
        bases.extend_from_slice(contig.seq.get(from..f.contig_range.start)?);
        bases.extend_from_slice(f.left_normal.get(f.contig_range.start..normal_end)?);
        from = f.contig_range.end;
    }
    bases.extend_from_slice(contig.seq.get(from..stretch.end)?);
    Some(bases)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A contig of `seq` with changes of these bases of the contig to these of the genome.
    fn contig_with(seq: &[u8], changes: &[(Range<usize>, &[u8])]) -> AlignedContig {
        let change = |(at, genome): &(Range<usize>, &[u8])| {
            let normal = [&seq[..at.start], genome, &seq[at.end..]].concat();
            let (pos, reference, alternative) = (at.start, genome.to_vec(), seq[at.clone()].to_vec());
            ContigChange {
                change: Change::Allele { chrom: 0, pos, reference, alternative },
                contig_range: at.clone(),
                left_normal: normal.clone(),
                right_normal: normal,
                right_shift: genome.len() as i32 - at.len() as i32,
                mapq: 60,
            }
        };
        AlignedContig {
            novel: vec![true; seq.len()],
            quality_sums: vec![30; seq.len()],
            assembled: 0..seq.len(),
            seq: seq.to_vec(),
            num_reads: 6,
            changes: changes.iter().map(change).collect(),
            diagonals: [None; 2],
            family_alleles: Vec::new(),
            other_loci: Default::default(),
            explanations: Vec::new(),
        }
    }

    #[test]
    fn the_loop_of_a_hairpin_is_copied_from_the_other_strand() {
        let fold_backs =
            |seq: &[u8], changes: &[(Range<usize>, &[u8])]| flag_fold_back_changes(&contig_with(seq, changes));
        // Loop TAT between the arms AATAAGC and GCTTATT.
        let one = |seq: &[u8], genome: &[u8]| fold_backs(seq, &[(14..14 + genome.len(), genome)]);
        assert_eq!(one(b"GGCACGAAATAAGCATAGCTTATTACGATC", b"TAT"), [true]);
        assert_eq!(one(b"GGCACGAAATAAGCATCGCTTATTACGATC", b"TAT"), [false]);
        // The arms are too short.
        assert_eq!(one(b"GGCACGACATAAGCATAGCTTCTTACGATC", b"TAT"), [false]);
        // One base, and a loop that is written as deletion and insertion: AGTA between CCCAA and TTGGG becomes TACT.
        assert_eq!(fold_backs(b"GGCACGGCTAAACAGTGTTTAGCGATCACG", &[(14..15, b"C")]), [true]);
        let seq = b"GGCTTCCCAATACTTTGGGATTACAAAGTG";
        assert_eq!(fold_backs(seq, &[(10..10, b"AG"), (12..14, b"")]), [true, true]);
        assert_eq!(fold_backs(seq, &[(10..10, b"AG")]), [false]);
    }
    use crate::change::{Breakend, RetainedSide};

    #[test]
    fn hairpins_turn_back_and_other_junctions_do_not() {
        let arm = b"GATTACCTGAGTCCGTACGGATCTTAGCAACTGG";
        let other = b"CTTGCAGGTCAATCGCGTATTCCGAGATGCAAGC";
        let turn = b"TTACA";
        let hairpin = [&other[..], arm, turn, &reverse_complement(arm), other].concat();
        // Wherever between the arms the junction is.
        for at in other.len() + arm.len()..=other.len() + arm.len() + turn.len() {
            assert!(has_hairpin(&hairpin, &(at..at), MAX_ARM_DISTANCE_BASES), "{at}");
        }
        let straight = [&other[..], arm, turn, arm, other].concat();
        assert!(!has_hairpin(&straight, &(68..73), MAX_ARM_DISTANCE_BASES));
        assert!(!has_hairpin(&[&arm[..], &reverse_complement(&arm[..12])].concat(), &(34..34), MAX_ARM_DISTANCE_BASES));
        assert!(!has_hairpin(b"ACGT", &(2..2), MAX_ARM_DISTANCE_BASES));
        assert!(!has_hairpin(b"", &(0..0), MAX_ARM_DISTANCE_BASES));
    }

    #[test]
    fn a_base_copied_from_the_other_arm_is_told() {
        let (arm, turn) = (b"GATTACCTGAGTCCGTACGGATCTTAGCAACTGG", b"TTACAGGACCATTGA");
        // The other arm of the genome differs in one base; a copied arm does not.
        let mut differs = arm.to_vec();
        differs[14] = b'A';
        for (first, copied) in [(&arm[..], true), (&differs[..], false)] {
            let seq = [first, turn, &reverse_complement(arm)].concat();
            assert_eq!(is_copied_from_arm(&seq, &(14..15)), copied);
        }
        assert!(!is_copied_from_arm(&[&arm[..], turn, arm].concat(), &(14..15)));
        assert!(!is_copied_from_arm(b"ACGT", &(2..3)));
    }

    #[test]
    fn a_hairpin_of_few_molecules_is_an_artefact() {
        let arm = b"GATTACCTGAGTCCGTACGGATCTTAGCAACTGG";
        let hairpin = [&arm[..], b"TTACA", &reverse_complement(arm)].concat();
        let end = |pos, side| Breakend { chrom: 0, pos, side };
        let ends = [end(900, RetainedSide::Left), end(905, RetainedSide::Left)];
        let junction = Change::Junction { ends, inserted: Vec::new(), homology: 0 };
        let finding = |change| ContigChange {
            change,
            contig_range: 34..39,
            left_normal: Vec::new(),
            right_normal: Vec::new(),
            right_shift: 0,
            mapq: 60,
        };
        let contig = |findings| AlignedContig {
            novel: vec![true; hairpin.len()],
            quality_sums: vec![30; hairpin.len()],
            assembled: 0..hairpin.len(),
            seq: hairpin.clone(),
            num_reads: 6,
            changes: findings,
            diagonals: [None; 2],
            family_alleles: Vec::new(),
            other_loci: Default::default(),
            explanations: Vec::new(),
        };
        assert!(is_fold_back_artefact_of_few_pairs(&contig(vec![finding(junction.clone())]), MAX_FOLD_BACK_PAIRS));
        assert!(!is_fold_back_artefact_of_few_pairs(&contig(vec![finding(junction.clone())]), MAX_FOLD_BACK_PAIRS + 1));
        // The contig's other changes may be true.
        let base = Change::Allele { chrom: 0, pos: 900, reference: b"A".to_vec(), alternative: b"C".to_vec() };
        assert!(!is_fold_back_artefact_of_few_pairs(
            &contig(vec![finding(junction), finding(base)]),
            MAX_FOLD_BACK_PAIRS
        ));
    }
}
