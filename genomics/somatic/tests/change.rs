//! Tests left-alignment by brute force: enumerates all representations of a change.

use crate::common::{Rng, replaced};
use genuma_somatic::change::left_align_allele;

type Written = (usize, Vec<u8>, Vec<u8>);

/// All representations of the change from `genome` to `changed` with at least one base on both sides and at most
/// `longest` reference bases.
fn writings(genome: &[u8], changed: &[u8], longest: usize) -> Vec<Written> {
    let mut all = Vec::new();
    for pos in 0..genome.len() {
        for r in 1..=longest.min(genome.len() - pos) {
            let Some(a) = (r + changed.len()).checked_sub(genome.len()).filter(|&a| a > 0) else { continue };
            let alternative = &changed[pos..pos + a];
            if replaced(genome, pos, r, alternative) == changed {
                all.push((pos, genome[pos..pos + r].to_vec(), alternative.to_vec()));
            }
        }
    }
    all
}

/// The shortest representation, and the leftmost of the shortest ones (Tan et al. 2015).
fn expected(genome: &[u8], changed: &[u8]) -> Option<Written> {
    writings(genome, changed, genome.len()).into_iter().min_by_key(|(pos, r, a)| (r.len() + a.len(), *pos))
}

#[test]
fn equals_the_shortest_leftmost_of_all_writings() {
    let mut rng = Rng(21);
    let mut moved = 0;
    for _ in 0..3000 {
        // Two letters make repeats, and so many positions for one indel.
        let letters = rng.within(2..5);
        let genome: Vec<u8> = (0..rng.within(6..24)).map(|_| b"ACGT"[rng.within(0..letters)]).collect();
        let removed = rng.within(0..5);
        let pos = rng.within(0..genome.len() - removed);
        let added: Vec<u8> = (0..rng.within(0..5)).map(|_| b"ACGT"[rng.within(0..letters)]).collect();
        if genome[pos..pos + removed] == added[..] {
            continue;
        }
        let changed = replaced(&genome, pos, removed, &added);
        if changed == genome {
            continue;
        }
        let found = left_align_allele(&genome, pos, &genome[pos..pos + removed], &added);
        assert_eq!(
            Some(&found),
            expected(&genome, &changed).as_ref(),
            "{} {pos} {removed} {}",
            String::from_utf8_lossy(&genome),
            String::from_utf8_lossy(&added)
        );
        assert_eq!(replaced(&genome, found.0, found.1.len(), &found.2), changed);
        moved += usize::from(found.0 + 1 < pos);
    }
    assert!(moved > 300, "the cases are too easy: {moved}");
}

#[test]
fn every_writing_aligns_to_the_same_one() {
    let mut rng = Rng(22);
    for _ in 0..200 {
        let unit = rng.sequence(2);
        let genome = [rng.sequence(6), unit.repeat(5), rng.sequence(6)].concat();
        let changed = if rng.chance(0.5) { replaced(&genome, 10, 2, b"") } else { replaced(&genome, 10, 0, &unit) };
        let target = expected(&genome, &changed);
        let all = writings(&genome, &changed, 14);
        assert!(all.len() > 20);
        for (pos, reference, alternative) in all {
            assert_eq!(Some(left_align_allele(&genome, pos, &reference, &alternative)), target);
        }
    }
}

#[test]
fn before_the_first_base_the_next_one_anchors() {
    assert_eq!(left_align_allele(b"AAACG", 1, b"A", b""), (0, b"AA".to_vec(), b"A".to_vec()));
    assert_eq!(left_align_allele(b"ACG", 0, b"", b"TT"), (0, b"A".to_vec(), b"TTA".to_vec()));
}
