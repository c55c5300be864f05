//! Molecules ligated from two fragments.

use super::molecule::{Molecule, Part};
use super::tube::Tube;
use crate::rng::Rng;

/// Share of the second fragments that are from near by, and how near, bp.
const NEAR: (f64, usize) = (0.5, 1000);
/// Share of them that are of another contig.
const OTHER_CONTIG: f64 = 0.1;
/// Fewest bases of either fragment, if the molecule is long enough.
const SHORTEST: usize = 20;
/// Times a fragment of another contig is looked for.
const TRIES: usize = 50;

/// Replaces the rear of the molecule by a part of another fragment, on either strand, so that its length stays.
pub fn join<'a>(molecule: &mut Molecule<'a>, tube: &Tube<'a>, rng: &mut Rng) -> bool {
    let (Some(part), n) = (molecule.whole(), molecule.len()) else { return false };
    if n < 4 {
        return false;
    }
    let least = SHORTEST.min(n / 2);
    let cut = least + rng.below(n - 2 * least + 1);
    let length = n - cut;
    let kind = molecule.kind;
    let choice = rng.unit();
    let other = if choice < NEAR.0 {
        tube.fragment_near(&part.fragment, length, NEAR.1, rng)
    } else {
        let anywhere = |rng: &mut Rng| tube.fragment_of(kind, length, rng);
        let contig = part.fragment.middle().map(|at| at.contig);
        let elsewhere = choice < NEAR.0 + OTHER_CONTIG;
        let fitting = (0..if elsewhere { TRIES } else { 1 })
            .map(|_| anywhere(rng))
            .find(|f| !elsewhere || f.middle().map(|at| at.contig) != contig);
        fitting.unwrap_or_else(|| anywhere(rng))
    };
    let other = Part { fragment: other, reverse: rng.chance(0.5) };
    let mut bases = molecule.strand()[..cut].to_vec();
    Molecule::new(other.fragment, other.reverse, kind).read(0, length, &mut bases);
    molecule.rebuild(bases, [Some(part.cut(0, cut)), Some(other)]);
    true
}
