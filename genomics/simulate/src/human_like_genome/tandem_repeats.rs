//! Places homopolymers, microsatellites and minisatellites.

use genuma_reads::dna;

use super::random_sequence::{create_mutated_copy, draw_bases, draw_exponential_length};
use crate::rng::Rng;

/// A type of tandem repeat: its units, frequency and length.
struct TandemRepeatKind {
    /// Repeat units; one of them is drawn for each tandem repeat, on a random strand.
    units: &'static [&'static str],
    /// Number of tandem repeats of this type per Mbp.
    per_mbp: f64,
    /// Minimum length, bp. `mean_extra_bp` is the mean length beyond the minimum.
    min_bp: usize,
    mean_extra_bp: f64,
}

const TANDEM_REPEAT_KINDS: [TandemRepeatKind; 10] = [
    TandemRepeatKind { units: &["A"], per_mbp: 2000.0, min_bp: 6, mean_extra_bp: 1.5 },
    TandemRepeatKind { units: &["A"], per_mbp: 130.0, min_bp: 10, mean_extra_bp: 8.0 },
    TandemRepeatKind { units: &["C"], per_mbp: 10.0, min_bp: 6, mean_extra_bp: 3.0 },
    TandemRepeatKind { units: &["AC"], per_mbp: 60.0, min_bp: 12, mean_extra_bp: 18.0 },
    TandemRepeatKind { units: &["AT"], per_mbp: 15.0, min_bp: 12, mean_extra_bp: 14.0 },
    TandemRepeatKind { units: &["AG"], per_mbp: 20.0, min_bp: 12, mean_extra_bp: 14.0 },
    TandemRepeatKind { units: &["AAT", "AAC", "AAG", "AGG", "ATC"], per_mbp: 20.0, min_bp: 12, mean_extra_bp: 14.0 },
    TandemRepeatKind {
        units: &["AAAT", "AAAG", "AGAT", "AAGG", "AATG"],
        per_mbp: 45.0,
        min_bp: 14,
        mean_extra_bp: 18.0,
    },
    TandemRepeatKind { units: &["AAAAT", "AAAAC", "AAAAG", "AATGG"], per_mbp: 15.0, min_bp: 16, mean_extra_bp: 20.0 },
    TandemRepeatKind {
        units: &["AAAAAT", "AAAAAC", "AACCCT", "AGATAT"],
        per_mbp: 8.0,
        min_bp: 18,
        mean_extra_bp: 24.0,
    },
];
/// Minimum length of a tandem repeat that may be imperfect, bp.
const MIN_IMPERFECT_BP: usize = 12;
/// Share of these tandem repeats that are imperfect, and divergence of their bases from perfect copies of the unit.
const IMPERFECT_REPEAT_SHARE_AND_DIVERGENCE: (f64, f64) = (0.35, 0.06);
/// Minisatellites: number per Mbp; minimum and maximum length of the unit (bp); minimum and maximum length of the whole
/// repeat (bp); maximum divergence of a unit.
const MINISATELLITES: (f64, (usize, usize), (usize, usize), f64) = (6.0, (10, 60), (100, 3_000), 0.12);

/// Overwrites random positions of the sequence with tandem repeats. Calls `on_placed` with position and length of each.
pub(super) fn place_tandem_repeats(seq: &mut [u8], rng: &mut Rng, on_placed: &mut impl FnMut(usize, usize)) {
    let mbp = seq.len() as f64 / 1e6;
    let mut write = |seq: &mut [u8], tract: &[u8], rng: &mut Rng| {
        let at = rng.draw_below(seq.len());
        let room = tract.len().min(seq.len() - at);
        seq[at..at + room].copy_from_slice(&tract[..room]);
        on_placed(at, room);
    };
    for kind in &TANDEM_REPEAT_KINDS {
        for _ in 0..round_randomly(kind.per_mbp * mbp, rng) {
            let unit = rng.choose_item(kind.units).bytes();
            let length = kind.min_bp + draw_exponential_length(kind.mean_extra_bp, rng);
            let mut tract: Vec<u8> = unit.cycle().skip(rng.draw_below(6)).take(length).collect();
            if rng.draw_bernoulli(0.5) {
                tract = dna::reverse_complement(&tract);
            }
            if length >= MIN_IMPERFECT_BP && rng.draw_bernoulli(IMPERFECT_REPEAT_SHARE_AND_DIVERGENCE.0) {
                tract = create_mutated_copy(&tract, IMPERFECT_REPEAT_SHARE_AND_DIVERGENCE.1, rng);
            }
            write(seq, &tract, rng);
        }
    }
    let (per_mbp, unit, whole, divergence) = MINISATELLITES;
    for _ in 0..round_randomly(per_mbp * mbp, rng) {
        let unit = draw_bases(rng.draw_log_uniform(unit.0, unit.1), 0.5, rng);
        let length = rng.draw_log_uniform(whole.0, whole.1);
        let divergence = divergence * rng.draw_unit_interval();
        let mut tract = vec![];
        while tract.len() < length {
            tract.extend(create_mutated_copy(&unit, divergence, rng));
        }
        write(seq, &tract, rng);
    }
}

/// Returns a random integer whose expected value is `mean`.
fn round_randomly(mean: f64, rng: &mut Rng) -> usize {
    mean as usize + usize::from(rng.draw_bernoulli(mean.fract()))
}
