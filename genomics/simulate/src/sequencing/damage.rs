//! DNA damage of single strands, and errors of early PCR cycles. All duplicates of a molecule share them.

use super::molecule::Molecule;
use super::params::LibraryParams;
use super::read_counts::ReadAndArtefactCounts;
use crate::rng::Rng;

/// Factor by which a G followed by another G is oxidised more often.
const GG_OXIDATION_FACTOR: f64 = 3.0;
/// Factor by which the C of a CpG is deaminated more often.
const CPG_DEAMINATION_FACTOR: f64 = 3.0;
/// Distance from the ends of a molecule within which its strands fray, so that deamination is more frequent there, bp.
const FRAYED_END_BP: usize = 10;
/// Factor by which deamination is more frequent near the ends.
const END_DEAMINATION_FACTOR: f64 = 5.0;

/// Oxidises G and deaminates C in the strand that read 1 reads. Read 1 then shows G>T and C>T, and read 2 shows C>A and
/// G>A (Costello et al., Nucleic Acids Research 2013).
pub(super) fn oxidise_and_deaminate_molecule(
    molecule: &mut Molecule,
    params: &LibraryParams,
    rng: &mut Rng,
    counts: &mut ReadAndArtefactCounts,
) {
    let n = molecule.len();
    let oxidation = |m: &Molecule, at: usize| match m.base_of_read1_strand(at) {
        b'G' if at + 1 < n && m.base_of_read1_strand(at + 1) == b'G' => GG_OXIDATION_FACTOR,
        b'G' => 1.0,
        _ => 0.0,
    };
    counts.oxidised_bases += replace_by_t(molecule, params.oxidation, GG_OXIDATION_FACTOR, oxidation, rng);
    let deamination = |m: &Molecule, at: usize| {
        if m.base_of_read1_strand(at) != b'C' {
            return 0.0;
        }
        let cpg = if at + 1 < n && m.base_of_read1_strand(at + 1) == b'G' { CPG_DEAMINATION_FACTOR } else { 1.0 };
        let end = if at < FRAYED_END_BP || n - at <= FRAYED_END_BP { END_DEAMINATION_FACTOR } else { 1.0 };
        cpg * end
    };
    counts.deaminated_bases +=
        replace_by_t(molecule, params.deamination, CPG_DEAMINATION_FACTOR * END_DEAMINATION_FACTOR, deamination, rng);
}

/// Replaces bases by T, each with probability `rate` times `factor(base)`. `most` is the maximum of the factor. Returns
/// the number of replaced bases.
fn replace_by_t(
    molecule: &mut Molecule,
    rate: f64,
    most: f64,
    factor: impl Fn(&Molecule, usize) -> f64,
    rng: &mut Rng,
) -> u64 {
    let often = (rate * most).min(1.0);
    let mut struck = vec![];
    let mut at = rng.draw_geometric(often);
    while at < molecule.len() {
        let factor = factor(molecule, at);
        if factor > 0.0 && rng.draw_bernoulli(rate * factor / often) {
            struck.push(at);
        }
        at = at.saturating_add(1).saturating_add(rng.draw_geometric(often));
    }
    if !struck.is_empty() {
        let strand = molecule.read1_strand_mut();
        struck.iter().for_each(|&at| strand[at] = b'T');
    }
    struck.len() as u64
}

/// Adds substitution errors of early PCR cycles with the given rate per base.
pub(crate) fn add_pcr_errors(molecule: &mut Molecule, rate: f64, rng: &mut Rng, counts: &mut ReadAndArtefactCounts) {
    let mut at = rng.draw_geometric(rate);
    while at < molecule.len() {
        let base = &mut molecule.read1_strand_mut()[at];
        if *base != b'N' {
            *base = rng.draw_other_base(*base);
            counts.pcr_errors += 1;
        }
        at = at.saturating_add(1).saturating_add(rng.draw_geometric(rate));
    }
}
