//! Homopolymer errors of sequencers that read a run of equal bases as one signal (Ion Torrent): a read shows the run
//! too short or too long.

use super::slippage::RepeatSlip;
use crate::rng::Rng;
use crate::tandem_repeats::TandemRepeat;

/// Minimum length of a homopolymer with errors, bp.
const MIN_HOMOPOLYMER_BP: usize = 2;
/// Share of the homopolymer errors that lose a base (chosen); the others gain one.
const DELETION_SHARE: f64 = 0.6;
/// Highest error probability of a homopolymer, however long it is.
const MAX_ERROR_RATE: f64 = 0.5;

/// Draws the errors in the homopolymers of a read: one base lost or gained, with the probability `rate` per base of the
/// homopolymer.
pub(crate) fn draw_homopolymer_errors(bases: &[u8], rate: f64, rng: &mut Rng) -> Vec<RepeatSlip> {
    let (mut errors, mut start) = (vec![], 0);
    for run in bases.chunk_by(|a, b| a == b) {
        let repeat = TandemRepeat { start, end: start + run.len(), unit: 1 };
        start = repeat.end;
        let is_homopolymer = run.len() >= MIN_HOMOPOLYMER_BP && run[0] != b'N';
        if is_homopolymer && rng.draw_bernoulli((rate * run.len() as f64).min(MAX_ERROR_RATE)) {
            errors.push(RepeatSlip { repeat, units: if rng.draw_bernoulli(DELETION_SHARE) { -1 } else { 1 } });
        }
    }
    errors
}
