//! Damage of single strands, and errors of early PCR: every copy of the molecule has them.

use super::counts::Counts;
use super::molecule::Molecule;
use super::params::LibraryParams;
use crate::rng::Rng;

/// A G before another G is oxidised that much more often.
const BEFORE_G: f64 = 3.0;
/// A C before a G (a CpG) is deaminated that much more often, …
const CPG: f64 = 3.0;
/// … and one this near to an end of the molecule, where strands come apart, …
const NEAR_END: usize = 10;
/// … that much.
const AT_END: f64 = 5.0;

/// Oxidised G and deaminated C in the strand that read 1 reads, so that read 1 shows G>T and C>T, and read 2 C>A and
/// G>A (Costello et al., Nucleic Acids Research 2013).
pub fn damage(molecule: &mut Molecule, params: &LibraryParams, rng: &mut Rng, counts: &mut Counts) {
    let n = molecule.len();
    let oxidation = |m: &Molecule, at: usize| match m.base(at) {
        b'G' if at + 1 < n && m.base(at + 1) == b'G' => BEFORE_G,
        b'G' => 1.0,
        _ => 0.0,
    };
    counts.oxidised_bases += strike(molecule, params.oxidation, BEFORE_G, oxidation, rng);
    let deamination = |m: &Molecule, at: usize| {
        if m.base(at) != b'C' {
            return 0.0;
        }
        let cpg = if at + 1 < n && m.base(at + 1) == b'G' { CPG } else { 1.0 };
        let end = if at < NEAR_END || n - at <= NEAR_END { AT_END } else { 1.0 };
        cpg * end
    };
    counts.deaminated_bases += strike(molecule, params.deamination, CPG * AT_END, deamination, rng);
}

/// Turns bases into T, each with probability `rate` times the factor that its place has, which is `most` at most. Says
/// how many.
fn strike(
    molecule: &mut Molecule,
    rate: f64,
    most: f64,
    factor: impl Fn(&Molecule, usize) -> f64,
    rng: &mut Rng,
) -> u64 {
    let often = (rate * most).min(1.0);
    let mut struck = vec![];
    let mut at = rng.skip(often);
    while at < molecule.len() {
        let factor = factor(molecule, at);
        if factor > 0.0 && rng.chance(rate * factor / often) {
            struck.push(at);
        }
        at = at.saturating_add(1).saturating_add(rng.skip(often));
    }
    if !struck.is_empty() {
        let strand = molecule.strand();
        struck.iter().for_each(|&at| strand[at] = b'T');
    }
    struck.len() as u64
}

/// Substitutions that PCR makes so early that all copies have them.
pub(crate) fn copy_errors(molecule: &mut Molecule, rate: f64, rng: &mut Rng, counts: &mut Counts) {
    let mut at = rng.skip(rate);
    while at < molecule.len() {
        let base = &mut molecule.strand()[at];
        if *base != b'N' {
            *base = rng.other_base(*base);
            counts.pcr_errors += 1;
        }
        at = at.saturating_add(1).saturating_add(rng.skip(rate));
    }
}
