//! Molecules that copied themselves: the 3' end of a single strand folds back on an inverted repeat nearby and is
//! extended along its own strand, so that the molecule is its own reverse complement up to a loop.

use genuma_reads::dna;

use super::molecule::{Molecule, Part};
use crate::rng::Rng;

/// How far from the 3' end the repeat lies, bases.
const REACH: usize = 300;
/// Shortest stem, bases.
const SHORTEST_STEM: usize = 4;
/// Longest loop between its halves, bases.
const LONGEST_LOOP: usize = 250;
/// How much likelier a stem is than one shorter by a base: about 1.5 kcal/mol for each pair of bases that closes.
const PER_PAIR: f64 = 10.0;
/// A loop of n bases closes with a chance that goes as 1 / (n + this): half-way between a free chain and a stiff one.
const STIFF: f64 = 3.0;
/// Fewest bases that are copied.
const SHORTEST_COPY: usize = 20;
/// Bases that a cut molecule keeps on either side of its stem if it can.
const KEPT: usize = 10;

/// Two halves of an inverted repeat: `i..i + h` pairs with `e - h..e`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stem {
    i: usize,
    e: usize,
    h: usize,
}

/// Folds the molecule back at one of its inverted repeats, long ones preferred, and cuts it to `length` bases if it is
/// longer then; says whether there was such a repeat.
pub fn fold_back(molecule: &mut Molecule, length: usize, rng: &mut Rng) -> bool {
    let Some(part) = molecule.whole() else { return false };
    let strand = molecule.strand();
    let stems = stems(strand);
    let Some(Stem { i, e, .. }) = choose(&stems, rng) else { return false };
    let mut folded = strand[..e].to_vec();
    folded.extend(dna::revcomp(&strand[..i]));
    let total = folded.len();
    let (start, end) = if total <= length { (0, total) } else { window(i, e, length, rng) };
    let copied = |at: usize| i - (at.max(e) - e);
    let second = (end > e).then(|| {
        let Part { fragment, reverse } = part.cut(copied(end), copied(start));
        Part { fragment, reverse: !reverse }
    });
    let first = part.cut(start, end.min(e));
    molecule.rebuild(folded[start..end].to_vec(), [Some(first), second]);
    true
}

/// `length` bases of the folded molecule with something of both halves, if that is possible.
fn window(i: usize, e: usize, length: usize, rng: &mut Rng) -> (usize, usize) {
    let last = e + i - length;
    let low = (e + KEPT).saturating_sub(length).min(last);
    let high = i.saturating_sub(KEPT).min(last).max(low);
    let start = low + rng.below(high - low + 1);
    (start, start + length)
}

fn choose(stems: &[Stem], rng: &mut Rng) -> Option<Stem> {
    let weight = |s: &Stem| PER_PAIR.powi(s.h as i32) / ((s.e - s.i - 2 * s.h) as f64 + STIFF);
    let sum: f64 = stems.iter().map(weight).sum();
    let mut left = rng.unit() * sum;
    let found = stems.iter().find(|stem| {
        left -= weight(stem);
        left < 0.0
    });
    found.or(stems.last()).copied()
}

/// All inverted repeats that cannot be made longer, in the last bases of a strand.
fn stems(strand: &[u8]) -> Vec<Stem> {
    let from = strand.len().saturating_sub(REACH).max(SHORTEST_COPY);
    let pairs = |a: usize, b: usize| strand[a] != b'N' && strand[a] == dna::complement(strand[b]);
    // Words of the shortest stem's length, those with the same letters linked from the last to the first.
    let mut latest = [usize::MAX; 1 << (2 * SHORTEST_STEM)];
    let mut before = vec![usize::MAX; strand.len()];
    let mut found = vec![];
    for b in from..(strand.len() + 1).saturating_sub(SHORTEST_STEM) {
        let Some((word, other)) = words(&strand[b..b + SHORTEST_STEM]) else { continue };
        let e = b + SHORTEST_STEM;
        let mut i = latest[other];
        while i != usize::MAX && e - i <= LONGEST_LOOP + 2 * REACH {
            // Each repeat is found at its outermost pairs.
            let outermost = i == from || e == strand.len() || !pairs(i - 1, e);
            if i + SHORTEST_STEM <= b && outermost {
                let mut h = SHORTEST_STEM;
                while i + h + 1 < e - h && pairs(i + h, e - 1 - h) {
                    h += 1;
                }
                if e - i - 2 * h <= LONGEST_LOOP {
                    found.push(Stem { i, e, h });
                }
            }
            i = before[i];
        }
        before[b] = latest[word];
        latest[word] = b;
    }
    found
}

/// The number of a word and that of its reverse complement; `None` if it has an N.
fn words(bases: &[u8]) -> Option<(usize, usize)> {
    let (mut word, mut other) = (0, 0);
    for (k, &base) in bases.iter().enumerate() {
        let code = usize::from(dna::code(base));
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
    use crate::origin::Origins;
    use crate::sequence::Sequence;
    use crate::sequencing::fragments::{Chromosome, Fragment};
    use crate::sequencing::tube::Kind;
    use crate::variant::Span;

    #[test]
    fn stems_are_those_that_trying_all_finds() {
        let mut rng = Rng::stream(2, &[]);
        for round in 0..60 {
            let n: usize = 20 + 5 * round;
            let strand: Vec<u8> = (0..n).map(|_| *rng.pick(b"ACGTACGTACGTACGTN")).collect();
            let from = n.saturating_sub(REACH).max(SHORTEST_COPY);
            let pairs = |a: usize, b: usize| strand[a] != b'N' && strand[a] == dna::complement(strand[b]);
            let mut expected = vec![];
            for i in from..n {
                for e in i + 2 * SHORTEST_STEM..=n {
                    let h = (0..(e - i) / 2).take_while(|&k| pairs(i + k, e - 1 - k)).count();
                    let outermost = i == from || e == n || !pairs(i - 1, e);
                    if h >= SHORTEST_STEM && outermost && e - i - 2 * h <= LONGEST_LOOP {
                        expected.push((i, e, h));
                    }
                }
            }
            let mut found: Vec<_> = stems(&strand).iter().map(|s| (s.i, s.e, s.h)).collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{n}");
        }
    }

    #[test]
    fn folded_molecules_go_on_with_their_own_reverse_complement() {
        let mut rng = Rng::stream(3, &[]);
        let mut bases: Vec<u8> = (0..2000).map(|_| rng.base(0.45)).collect();
        // A repeat that is far better than what there is by chance: 15 bases, 30 between them, on either strand.
        let stem = dna::revcomp(&bases[900..915]);
        bases.splice(945..960, stem);
        let mut origins = Origins::default();
        origins.reference(Span { contig: 0, start: 0, end: 2000 }, &[], false);
        let chromosome = Chromosome { sequence: Sequence::of(&bases), origins, copies: 1, circular: false };
        let mut at_repeat = [0; 2];
        for round in 0..400 {
            let reverse = round % 2 == 0;
            let fragment = Fragment::new(&chromosome, 730, 1130);
            let mut molecule = Molecule::new(fragment, reverse, Kind::Patient);
            assert!(fold_back(&mut molecule, 380, &mut rng));
            assert!(molecule.len() <= 380);
            // Both mates read the same strand towards the fold.
            let [one, two] = [0, 1].map(|mate| molecule.place(mate, KEPT).unwrap());
            assert_eq!((one.reverse, two.reverse), (reverse, reverse));
            let folded = if reverse {
                [dna::revcomp(&bases[900..1130]), bases[960..1130].to_vec()].concat()
            } else {
                [&bases[730..960], &dna::revcomp(&bases[730..900])].concat()
            };
            let found = folded.windows(molecule.len()).any(|w| w == molecule.strand().as_slice());
            at_repeat[usize::from(reverse)] += usize::from(found);
        }
        assert!(at_repeat.iter().all(|&n| n > 195), "{at_repeat:?} of 200");
    }

    #[test]
    fn molecules_without_an_inverted_repeat_stay_as_they_are() {
        let mut origins = Origins::default();
        origins.reference(Span { contig: 0, start: 0, end: 500 }, &[], false);
        let bases = b"AC".repeat(250);
        let chromosome = Chromosome { sequence: Sequence::of(&bases), origins, copies: 1, circular: false };
        let mut molecule = Molecule::new(Fragment::new(&chromosome, 50, 400), false, Kind::Patient);
        assert!(!fold_back(&mut molecule, 400, &mut Rng::stream(1, &[])));
        assert_eq!(molecule.len(), 350);
    }
}
