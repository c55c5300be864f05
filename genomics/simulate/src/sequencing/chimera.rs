//! Chimeric molecules: two fragments that were ligated during library preparation.

use super::dna_pool::DnaPool;
use super::molecule::{Molecule, MoleculePart};
use crate::rng::Rng;

/// Share of the chimeric partners that come from nearby on the same chromosome, and their maximum distance, bp.
const NEARBY_PARTNERS: (f64, usize) = (0.5, 1000);
/// Share of the chimeric partners that come from another contig. The others come from anywhere.
const OTHER_CONTIG_SHARE: f64 = 0.1;
/// Minimum length of either part of a chimera, bp, if the molecule is long enough.
const MIN_PART_BP: usize = 20;
/// Maximum number of attempts to draw a partner from another contig.
const MAX_PARTNER_TRIES: usize = 50;

/// Replaces the end of the molecule by a part of another fragment, on a random strand. The length of the molecule stays
/// the same, unless the other fragment is shorter than the part that it replaces. Returns `false` if the molecule is
/// too short or already consists of two parts.
pub(super) fn make_molecule_chimeric<'a>(molecule: &mut Molecule<'a>, dna_pool: &DnaPool<'a>, rng: &mut Rng) -> bool {
    let (Some(part), n) = (molecule.only_part(), molecule.len()) else { return false };
    if n < 4 {
        return false;
    }
    let least = MIN_PART_BP.min(n / 2);
    let cut = least + rng.draw_below(n - 2 * least + 1);
    let length = n - cut;
    let kind = molecule.source;
    let choice = rng.draw_unit_interval();
    let other = if choice < NEARBY_PARTNERS.0 {
        dna_pool.draw_fragment_near(&part.fragment, length, NEARBY_PARTNERS.1, rng)
    } else {
        let anywhere = |rng: &mut Rng| dna_pool.draw_fragment_of_source(kind, length, rng);
        let contig = part.fragment.middle_reference_position().map(|at| at.contig);
        let elsewhere = choice < NEARBY_PARTNERS.0 + OTHER_CONTIG_SHARE;
        let fitting = (0..if elsewhere { MAX_PARTNER_TRIES } else { 1 })
            .map(|_| anywhere(rng))
            .find(|f| !elsewhere || f.middle_reference_position().map(|at| at.contig) != contig);
        fitting.unwrap_or_else(|| anywhere(rng))
    };
    let other = MoleculePart { fragment: other, reverse: rng.draw_bernoulli(0.5) };
    let mut bases = molecule.read1_strand_mut()[..cut].to_vec();
    Molecule::from_fragment(other.fragment, other.reverse, kind).append_mate_bases(0, length, &mut bases);
    molecule.replace_bases_and_parts(bases, [Some(part.subpart(0, cut)), Some(other)]);
    true
}
