//! Fold-back molecules: the 3' end of a single strand anneals to an inverted repeat nearby on the same strand and is
//! extended there. The second half of the molecule is then the reverse complement of its first half, except for a loop
//! between them.

use genuma_reads::dna;

use super::molecule::{Molecule, MoleculePart};
use crate::rng::Rng;

/// Maximum distance of the inverted repeat from the 3' end, bp.
const MAX_STEM_FROM_END_BP: usize = 300;
/// Minimum length of a stem, that is of either half of the inverted repeat, bp.
const MIN_STEM_BP: usize = 4;
/// Maximum length of the loop between the halves of the inverted repeat, bp.
const MAX_LOOP_BP: usize = 250;
/// Factor by which each further base pair makes a stem more likely: corresponds to about 1.5 kcal/mol per base pair.
const WEIGHT_PER_BASE_PAIR: f64 = 10.0;
/// Constant c of the probability that a loop of n bases closes, which is proportional to 1 / (n + c). The value is
/// between those of a flexible and of a stiff strand.
const LOOP_STIFFNESS_BP: f64 = 3.0;
/// Minimum number of bases that are copied when the strand is extended.
const MIN_COPIED_BP: usize = 20;
/// Number of bases that a truncated fold-back molecule keeps on either side of the stem, if possible.
const MIN_FLANK_BP: usize = 10;

/// An inverted repeat of a strand: `start..start + stem_bp` is the reverse complement of `end - stem_bp..end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stem {
    start: usize,
    end: usize,
    stem_bp: usize,
}

/// Makes the molecule a fold-back at a random inverted repeat; longer stems are more likely. Truncates it to at most
/// `length` bases. Returns `false`, without changes, if the molecule does not consist of exactly one fragment or has no
/// inverted repeat near its end.
pub(super) fn fold_molecule_back(molecule: &mut Molecule, length: usize, rng: &mut Rng) -> bool {
    let Some(part) = molecule.only_part() else { return false };
    let strand = molecule.read1_strand_mut();
    let stems = find_stems(strand);
    let Some(Stem { start: i, end: e, .. }) = choose_stem(&stems, rng) else { return false };
    let mut folded = strand[..e].to_vec();
    folded.extend(dna::reverse_complement(&strand[..i]));
    let total = folded.len();
    let (start, end) = if total <= length { (0, total) } else { draw_window(i, e, length, rng) };
    let copied = |at: usize| i - (at.max(e) - e);
    let second = (end > e).then(|| {
        let MoleculePart { fragment, reverse } = part.subpart(copied(end), copied(start));
        MoleculePart { fragment, reverse: !reverse }
    });
    let first = part.subpart(start, end.min(e));
    molecule.replace_bases_and_parts(folded[start..end].to_vec(), [Some(first), second]);
    true
}

/// Draws the part of `length` bases that is kept of a fold-back molecule, with bases of both halves if possible. `i`
/// and `e` are start and end of the inverted repeat.
fn draw_window(i: usize, e: usize, length: usize, rng: &mut Rng) -> (usize, usize) {
    let last = e + i - length;
    let low = (e + MIN_FLANK_BP).saturating_sub(length).min(last);
    let high = i.saturating_sub(MIN_FLANK_BP).min(last).max(low);
    let start = low + rng.draw_below(high - low + 1);
    (start, start + length)
}

fn choose_stem(stems: &[Stem], rng: &mut Rng) -> Option<Stem> {
    let weight = |s: &Stem| {
        WEIGHT_PER_BASE_PAIR.powi(s.stem_bp as i32) / ((s.end - s.start - 2 * s.stem_bp) as f64 + LOOP_STIFFNESS_BP)
    };
    let sum: f64 = stems.iter().map(weight).sum();
    let mut left = rng.draw_unit_interval() * sum;
    let found = stems.iter().find(|stem| {
        left -= weight(stem);
        left < 0.0
    });
    found.or(stems.last()).copied()
}

/// Finds all maximal inverted repeats near the 3' end of a strand.
fn find_stems(strand: &[u8]) -> Vec<Stem> {
    let from = strand.len().saturating_sub(MAX_STEM_FROM_END_BP).max(MIN_COPIED_BP);
    let pairs = |a: usize, b: usize| strand[a] != b'N' && strand[a] == dna::complement(strand[b]);
    // Positions of each k-mer of the minimum stem length, linked from the last to the first.
    let mut latest = [usize::MAX; 1 << (2 * MIN_STEM_BP)];
    let mut before = vec![usize::MAX; strand.len()];
    let mut found = vec![];
    for b in from..(strand.len() + 1).saturating_sub(MIN_STEM_BP) {
        let Some((word, other)) = kmer_codes(&strand[b..b + MIN_STEM_BP]) else { continue };
        let e = b + MIN_STEM_BP;
        let mut i = latest[other];
        while i != usize::MAX && e - i <= MAX_LOOP_BP + 2 * MAX_STEM_FROM_END_BP {
            // Report each inverted repeat at its outermost pair only.
            let outermost = i == from || e == strand.len() || !pairs(i - 1, e);
            if i + MIN_STEM_BP <= b && outermost {
                let mut h = MIN_STEM_BP;
                while i + h + 1 < e - h && pairs(i + h, e - 1 - h) {
                    h += 1;
                }
                if e - i - 2 * h <= MAX_LOOP_BP {
                    found.push(Stem { start: i, end: e, stem_bp: h });
                }
            }
            i = before[i];
        }
        before[b] = latest[word];
        latest[word] = b;
    }
    found
}

/// Returns a k-mer and its reverse complement as integers with 2 bits a base; `None` if it contains N.
fn kmer_codes(bases: &[u8]) -> Option<(usize, usize)> {
    let (mut word, mut other) = (0, 0);
    for (k, &base) in bases.iter().enumerate() {
        let code = usize::from(dna::encode_base(base));
        if code > 3 {
            return None;
        }
        word = word << 2 | code;
        other |= (3 - code) << (2 * k);
    }
    Some((word, other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chromosome_sequence::ChromosomeSequence;
    use crate::reference_origins::ReferenceOrigins;
    use crate::sequencing::dna_pool::DnaSource;
    use crate::sequencing::fragments::{CellChromosome, Fragment};
    use crate::variant::ContigSpan;

    #[test]
    fn stems_are_those_that_trying_all_finds() {
        let mut rng = Rng::from_seed_and_labels(2, &[]);
        for round in 0..60 {
            let n: usize = 20 + 5 * round;
            let strand: Vec<u8> = (0..n).map(|_| *rng.choose_item(b"ACGTACGTACGTACGTN")).collect();
            let from = n.saturating_sub(MAX_STEM_FROM_END_BP).max(MIN_COPIED_BP);
            let pairs = |a: usize, b: usize| strand[a] != b'N' && strand[a] == dna::complement(strand[b]);
            let mut expected = vec![];
            for i in from..n {
                for e in i + 2 * MIN_STEM_BP..=n {
                    let h = (0..(e - i) / 2).take_while(|&k| pairs(i + k, e - 1 - k)).count();
                    let outermost = i == from || e == n || !pairs(i - 1, e);
                    if h >= MIN_STEM_BP && outermost && e - i - 2 * h <= MAX_LOOP_BP {
                        expected.push((i, e, h));
                    }
                }
            }
            let mut found: Vec<_> = find_stems(&strand).iter().map(|s| (s.start, s.end, s.stem_bp)).collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{n}");
        }
    }

    #[test]
    fn folded_molecules_go_on_with_their_own_reverse_complement() {
        let mut rng = Rng::from_seed_and_labels(3, &[]);
        let mut bases: Vec<u8> = (0..2000).map(|_| rng.draw_base(0.45)).collect();
        // An inverted repeat much better than random ones: 15 bases with a loop of 30, on either strand.
        let stem = dna::reverse_complement(&bases[900..915]);
        bases.splice(945..960, stem);
        let mut origins = ReferenceOrigins::default();
        origins.append_edited_reference_span(ContigSpan { contig: 0, start: 0, end: 2000 }, &[], false);
        let chromosome = CellChromosome {
            sequence: ChromosomeSequence::from_bases(&bases),
            origins,
            copies: 1,
            circular: false,
            carried_variants: vec![],
        };
        let mut at_repeat = [0; 2];
        for round in 0..400 {
            let reverse = round % 2 == 0;
            let fragment = Fragment::new(&chromosome, 730, 1130);
            let mut molecule = Molecule::from_fragment(fragment, reverse, DnaSource::Patient);
            assert!(fold_molecule_back(&mut molecule, 380, &mut rng));
            assert!(molecule.len() <= 380);
            // Both mates read the same strand towards the fold.
            let [one, two] = [0, 1].map(|mate| molecule.reference_placement_of_mate(mate, MIN_FLANK_BP).unwrap());
            assert_eq!((one.reverse, two.reverse), (reverse, reverse));
            let folded = if reverse {
                [dna::reverse_complement(&bases[900..1130]), bases[960..1130].to_vec()].concat()
            } else {
                [&bases[730..960], &dna::reverse_complement(&bases[730..900])].concat()
            };
            let found = folded.windows(molecule.len()).any(|w| w == molecule.read1_strand_mut().as_slice());
            at_repeat[usize::from(reverse)] += usize::from(found);
        }
        assert!(at_repeat.iter().all(|&n| n > 195), "{at_repeat:?} of 200");
    }

    #[test]
    fn molecules_without_an_inverted_repeat_stay_as_they_are() {
        let mut origins = ReferenceOrigins::default();
        origins.append_edited_reference_span(ContigSpan { contig: 0, start: 0, end: 500 }, &[], false);
        let bases = b"AC".repeat(250);
        let chromosome = CellChromosome {
            sequence: ChromosomeSequence::from_bases(&bases),
            origins,
            copies: 1,
            circular: false,
            carried_variants: vec![],
        };
        let mut molecule = Molecule::from_fragment(Fragment::new(&chromosome, 50, 400), false, DnaSource::Patient);
        assert!(!fold_molecule_back(&mut molecule, 400, &mut Rng::from_seed_and_labels(1, &[])));
        assert_eq!(molecule.len(), 350);
    }
}
