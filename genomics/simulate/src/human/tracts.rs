//! Homopolymers, microsatellites and minisatellites.

use genuma_reads::dna;

use super::bases::{aged, exponential, random};
use crate::rng::Rng;

/// One kind of tract.
struct Kind {
    /// Units, one drawn for each tract, on either strand.
    units: &'static [&'static str],
    /// Tracts of a Mbp.
    per_mbp: f64,
    /// Shortest one, and the bases that are there beyond it on average.
    shortest: usize,
    further: f64,
}

const KINDS: [Kind; 10] = [
    Kind { units: &["A"], per_mbp: 2000.0, shortest: 6, further: 1.5 },
    Kind { units: &["A"], per_mbp: 130.0, shortest: 10, further: 8.0 },
    Kind { units: &["C"], per_mbp: 10.0, shortest: 6, further: 3.0 },
    Kind { units: &["AC"], per_mbp: 60.0, shortest: 12, further: 18.0 },
    Kind { units: &["AT"], per_mbp: 15.0, shortest: 12, further: 14.0 },
    Kind { units: &["AG"], per_mbp: 20.0, shortest: 12, further: 14.0 },
    Kind { units: &["AAT", "AAC", "AAG", "AGG", "ATC"], per_mbp: 20.0, shortest: 12, further: 14.0 },
    Kind { units: &["AAAT", "AAAG", "AGAT", "AAGG", "AATG"], per_mbp: 45.0, shortest: 14, further: 18.0 },
    Kind { units: &["AAAAT", "AAAAC", "AAAAG", "AATGG"], per_mbp: 15.0, shortest: 16, further: 20.0 },
    Kind { units: &["AAAAAT", "AAAAAC", "AACCCT", "AGATAT"], per_mbp: 8.0, shortest: 18, further: 24.0 },
];
/// Tracts of this length and more have some wrong bases in them …
const LONG: usize = 12;
/// … as often as this, so many.
const IMPERFECT: (f64, f64) = (0.35, 0.06);
/// Minisatellites of a Mbp; lengths of the unit and of the whole, bp; largest divergence of a unit.
const MINISATELLITES: (f64, (usize, usize), (usize, usize), f64) = (6.0, (10, 60), (100, 3_000), 0.12);

/// Puts tracts over the sequence. `put` is told where.
pub fn scatter(seq: &mut [u8], rng: &mut Rng, put: &mut impl FnMut(usize, usize)) {
    let mbp = seq.len() as f64 / 1e6;
    let mut write = |seq: &mut [u8], tract: &[u8], rng: &mut Rng| {
        let at = rng.below(seq.len());
        let room = tract.len().min(seq.len() - at);
        seq[at..at + room].copy_from_slice(&tract[..room]);
        put(at, room);
    };
    for kind in &KINDS {
        for _ in 0..count(kind.per_mbp * mbp, rng) {
            let unit = rng.pick(kind.units).bytes();
            let length = kind.shortest + exponential(kind.further, rng);
            let mut tract: Vec<u8> = unit.cycle().skip(rng.below(6)).take(length).collect();
            if rng.chance(0.5) {
                tract = dna::revcomp(&tract);
            }
            if length >= LONG && rng.chance(IMPERFECT.0) {
                tract = aged(&tract, IMPERFECT.1, rng);
            }
            write(seq, &tract, rng);
        }
    }
    let (per_mbp, unit, whole, divergence) = MINISATELLITES;
    for _ in 0..count(per_mbp * mbp, rng) {
        let unit = random(rng.log_uniform(unit.0, unit.1), 0.5, rng);
        let length = rng.log_uniform(whole.0, whole.1);
        let divergence = divergence * rng.unit();
        let mut tract = vec![];
        while tract.len() < length {
            tract.extend(aged(&unit, divergence, rng));
        }
        write(seq, &tract, rng);
    }
}

/// A whole number that is `mean` on average.
fn count(mean: f64, rng: &mut Rng) -> usize {
    mean as usize + usize::from(rng.chance(mean.fract()))
}
