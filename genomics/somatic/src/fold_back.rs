//! Molecules that folded back on themselves in the library: a strand finds its own reverse complement near, and is copied on from there.

use genuma_kmers::encode::kmers;

use crate::change::Change;
use crate::compare::{Compared, Finding};

/// Whether the contig goes on behind the change as the reverse complement of what is before it, or the change is copied from such a place.
pub fn turns_back(seq: &[u8], finding: &Finding) -> bool {
    match &finding.change {
        Change::Allele { reference, alternative, .. } => {
            let substitutes = reference.len() == alternative.len();
            is_hairpin(seq, &finding.at, HINGE) || (substitutes && copies_an_arm(seq, &finding.at))
        }
        _ => is_hairpin(seq, &finding.at, NEAR),
    }
}

/// Pairs of a contig up to which a hairpin is an artefact where the library folds: half of the molecules that [`crate::event`] asks for, as
/// some may not have been assembled.
const FEW: usize = 3;

/// Whether a contig of so many pairs, of a library that folds, is a hairpin of so few molecules that it will not be believed: such a library has
/// thousands of them, and reads are not looked for.
pub(crate) fn is_folded(contig: &Compared, pairs: usize) -> bool {
    let hairpin = |f: &Finding| matches!(f.change, Change::Junction { .. }) && turns_back(&contig.seq, f);
    pairs <= FEW && contig.findings.iter().all(hairpin)
}

/// Bases in a row before a change that stand behind it in reverse, from which a strand has folded back on itself there.
const ARM: u32 = 20;
/// Bases from the change within which they lie.
const NEAR: usize = 200;

/// Bases from where the strand turns within which a small change is its doing.
const HINGE: usize = 15;

/// Whether `seq` has before `at` what it has after it as well, in reverse: the two arms of a hairpin, the middle of which is at most
/// `turn` bases from `at`.
fn is_hairpin(seq: &[u8], at: &std::ops::Range<usize>, turn: usize) -> bool {
    let arms = |from: usize, to: usize| {
        let arms = kmers(&seq[from..to.min(seq.len())], ARM);
        arms.map(move |(i, arm)| (from + i, arm))
    };
    let arm = ARM as usize;
    let before = arms(at.start.saturating_sub(NEAR), at.start + arm);
    let mut before: Vec<(u64, usize)> = before.map(|(i, arm)| (arm.reverse, i)).collect();
    before.sort_unstable();
    arms(at.end.saturating_sub(arm).max(at.start), at.end + NEAR).any(|(j, after)| {
        let alike = &before[before.partition_point(|b| b.0 < after.forward)..];
        let mut alike = alike.iter().take_while(|b| b.0 == after.forward);
        alike.any(|(_, i)| ((i + j + arm) / 2).abs_diff(at.start) <= turn)
    })
}

/// Whether bases `at` of `seq`, with those beside them, stand elsewhere near in reverse: where the genome has two arms that are nearly each other's
/// reverse, a strand that folds is completed after the other arm, and their differences are copied.
fn copies_an_arm(seq: &[u8], at: &std::ops::Range<usize>) -> bool {
    let arm = ARM as usize;
    let from = at.start.saturating_sub(NEAR);
    let near = kmers(&seq[from..(at.end + NEAR).min(seq.len())], ARM).map(|(i, kmer)| (from + i, kmer));
    let (over, others): (Vec<_>, Vec<_>) = near.partition(|(i, _)| *i <= at.start && i + arm >= at.end);
    let beside = others.into_iter().filter(|(i, _)| *i >= at.end || i + arm <= at.start);
    let mut beside: Vec<u64> = beside.map(|(_, kmer)| kmer.reverse).collect();
    beside.sort_unstable();
    over.iter().any(|(_, kmer)| beside.binary_search(&kmer.forward).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{Breakend, Side};
    use genuma_reads::dna::revcomp;

    #[test]
    fn hairpins_turn_back_and_other_junctions_do_not() {
        let arm = b"GATTACCTGAGTCCGTACGGATCTTAGCAACTGG";
        let other = b"CTTGCAGGTCAATCGCGTATTCCGAGATGCAAGC";
        let turn = b"TTACA";
        let hairpin = [&other[..], arm, turn, &revcomp(arm), other].concat();
        // Wherever between the arms the junction was put.
        for at in other.len() + arm.len()..=other.len() + arm.len() + turn.len() {
            assert!(is_hairpin(&hairpin, &(at..at), NEAR), "{at}");
        }
        let straight = [&other[..], arm, turn, arm, other].concat();
        assert!(!is_hairpin(&straight, &(68..73), NEAR));
        assert!(!is_hairpin(&[&arm[..], &revcomp(&arm[..12])].concat(), &(34..34), NEAR));
        assert!(!is_hairpin(b"ACGT", &(2..2), NEAR));
        assert!(!is_hairpin(b"", &(0..0), NEAR));
    }

    #[test]
    fn a_base_copied_from_the_other_arm_is_told() {
        let (arm, turn) = (b"GATTACCTGAGTCCGTACGGATCTTAGCAACTGG", b"TTACAGGACCATTGA");
        // The genome's other arm differs in one base; copied, it does not.
        let mut differs = arm.to_vec();
        differs[14] = b'A';
        for (first, copied) in [(&arm[..], true), (&differs[..], false)] {
            let seq = [first, turn, &revcomp(arm)].concat();
            assert_eq!(copies_an_arm(&seq, &(14..15)), copied);
        }
        assert!(!copies_an_arm(&[&arm[..], turn, arm].concat(), &(14..15)));
        assert!(!copies_an_arm(b"ACGT", &(2..3)));
    }

    #[test]
    fn a_hairpin_of_few_molecules_is_an_artefact() {
        let arm = b"GATTACCTGAGTCCGTACGGATCTTAGCAACTGG";
        let hairpin = [&arm[..], b"TTACA", &revcomp(arm)].concat();
        let end = |pos, side| Breakend { chrom: 0, pos, side };
        let ends = [end(900, Side::Left), end(905, Side::Left)];
        let junction = Change::Junction { ends, inserted: Vec::new(), homology: 0 };
        let finding = |change| Finding {
            change,
            at: 34..39,
            left_normal: Vec::new(),
            right_normal: Vec::new(),
            right_shift: 0,
            mapq: 60,
        };
        let contig = |findings| Compared {
            novel: vec![true; hairpin.len()],
            weight: vec![30; hairpin.len()],
            assembled: 0..hairpin.len(),
            seq: hairpin.clone(),
            depth: 6,
            findings,
            diagonals: [None; 2],
        };
        assert!(is_folded(&contig(vec![finding(junction.clone())]), FEW));
        assert!(!is_folded(&contig(vec![finding(junction.clone())]), FEW + 1));
        // What else the contig shows may be true.
        let base =
            Change::Allele { chrom: 0, pos: 900, reference: b"A".to_vec(), alternative: b"C".to_vec() };
        assert!(!is_folded(&contig(vec![finding(junction), finding(base)]), FEW));
    }
}
