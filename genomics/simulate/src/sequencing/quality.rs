//! Model of Illumina-like qualities and substitution errors.
//!
//! Most bases have a high quality that falls slightly along the read. Single bases dip, more often towards the end
//! and in mate 2. A few mates lose their quality for good in their second half.

use crate::rng::Rng;

/// Entries of the quality table per read position. One entry is drawn uniformly.
const SLOTS_PER_POSITION: usize = 1024;
/// Lowest and highest quality of a dip.
const DIP_QUALITIES: (u8, u8) = (5, 25);
/// Lowest and highest quality in a lost tail.
const TAIL_QUALITIES: (u8, u8) = (2, 16);
/// Share of the mates that end with a tail of low quality.
const LOST_TAIL_SHARE: f64 = 0.015;
/// Lowest quality at which a base is always called; below it the base may be N.
const MIN_CALLED_QUALITY: u8 = 3;
const MAX_QUALITY: u8 = 41;

/// Draws qualities and errors for mates of one length.
#[derive(Debug)]
pub(crate) struct QualityModel {
    length: usize,
    /// Qualities as `[mate][position * SLOTS_PER_POSITION + slot]`.
    tables: [Vec<u8>; 2],
    /// Error probability of each quality times 2^32.
    error_thresholds: [u32; 64],
}

/// Returns the error probability of a base with quality `q`. High qualities are slightly overestimated, as by real
/// sequencers.
fn error_probability(q: u8) -> f64 {
    0.92 * 10f64.powf(-f64::from(q) / 10.0) + 6e-5
}

fn mean_error(range: (u8, u8)) -> f64 {
    (range.0..=range.1).map(error_probability).sum::<f64>() / f64::from(range.1 - range.0 + 1)
}

/// Returns the quality of a good base at `at` (0 to 1) of the read, for one of eight equally likely variants.
fn good_base_quality(at: f64, mate: usize, shade: usize) -> u8 {
    let shift = [2.0, 1.0, 1.0, 0.0, 0.0, 0.0, -1.0, -3.0][shade];
    let fall = if mate == 0 { 3.0 } else { 5.0 };
    (37.0 + shift - fall * at * at).clamp(2.0, f64::from(MAX_QUALITY)) as u8
}

/// Returns the relative frequency of dips at `at` (0 to 1) of the read.
fn dip_weight(at: f64, mate: usize) -> f64 {
    (0.3 + 2.0 * at * at) * if mate == 0 { 0.8 } else { 1.2 }
}

impl QualityModel {
    /// Creates a model for mates of `length` bases with mean error probability `error_rate`. The frequency of dips is
    /// adjusted to reach the rate. The rate cannot be lower than that of good bases and lost tails.
    pub(super) fn with_error_rate(length: usize, error_rate: f64) -> Self {
        let at = |i: usize| i as f64 / length.max(2).saturating_sub(1) as f64;
        let positions = || (0..2).flat_map(|mate| (0..length).map(move |i| (mate, i)));
        let n = (2 * length) as f64;
        let plain = |mate, i| (0..8).map(|s| error_probability(good_base_quality(at(i), mate, s))).sum::<f64>() / 8.0;
        let base = positions().map(|(mate, i)| plain(mate, i)).sum::<f64>() / n;
        // A tail begins anywhere in the second half and covers a quarter of the mate on average.
        let tail = LOST_TAIL_SHARE * 0.25 * mean_error(TAIL_QUALITIES);
        let gain =
            positions().map(|(m, i)| dip_weight(at(i), m) * (mean_error(DIP_QUALITIES) - plain(m, i))).sum::<f64>() / n;
        let factor = ((error_rate - tail - base) / gain).max(0.0);
        let table = |mate: usize| {
            let slot = |i: usize, s: usize| {
                let dipping = (dip_weight(at(i), mate) * factor * SLOTS_PER_POSITION as f64)
                    .round()
                    .min(0.95 * SLOTS_PER_POSITION as f64) as usize;
                let width = usize::from(DIP_QUALITIES.1 - DIP_QUALITIES.0) + 1;
                if s < dipping {
                    DIP_QUALITIES.0 + (s * width / dipping) as u8
                } else {
                    good_base_quality(at(i), mate, s % 8)
                }
            };
            (0..length).flat_map(|i| (0..SLOTS_PER_POSITION).map(move |s| slot(i, s))).collect()
        };
        let mut wrong_below = [0; 64];
        for (q, threshold) in wrong_below.iter_mut().enumerate() {
            *threshold = (error_probability(q as u8).min(0.75) * 2f64.powi(32)) as u32;
        }
        QualityModel { length, tables: [table(0), table(1)], error_thresholds: wrong_below }
    }

    /// Returns the mate length, bases.
    pub(super) fn mate_length(&self) -> usize {
        self.length
    }

    /// Turns the true bases of a mate into called bases in place, and fills in Phred+33 qualities.
    pub(super) fn sequence_mate(&self, mate: usize, bases: &mut [u8], quals: &mut Vec<u8>, rng: &mut Rng) {
        quals.clear();
        let lost_from = if rng.draw_bernoulli(LOST_TAIL_SHARE) {
            self.length / 2 + rng.draw_below(self.length / 2 + 1)
        } else {
            self.length
        };
        for (i, base) in bases.iter_mut().enumerate() {
            let bits = rng.next_u64();
            let mut q = self.tables[mate][i * SLOTS_PER_POSITION + (bits as usize & (SLOTS_PER_POSITION - 1))];
            if i >= lost_from {
                q = TAIL_QUALITIES.0
                    + ((((bits >> 10) & 0xff) * u64::from(TAIL_QUALITIES.1 - TAIL_QUALITIES.0 + 1)) >> 8) as u8;
            }
            if *base == b'N' || (q < MIN_CALLED_QUALITY && (bits >> 18) & 3 == 0) {
                *base = b'N';
                q = 2;
            } else if ((bits >> 32) as u32) < self.error_thresholds[usize::from(q)] {
                let code = genuma_reads::dna::encode_base(*base);
                *base = genuma_reads::dna::decode_base((code + 1 + ((bits >> 20) % 3) as u8) & 3);
            }
            quals.push(q + 33);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_as_frequent_as_asked_and_as_qualities_say() {
        for (length, rate) in [(150, 0.003), (100, 0.005)] {
            let model = QualityModel::with_error_rate(length, rate);
            let mut rng = Rng::from_labels(5, &[]);
            let (mut wrong, mut seen, mut ns) = (0.0, 0.0, 0.0);
            let (mut said, mut halves) = (0.0, [0.0; 2]);
            let mut quals = vec![];
            for i in 0..20_000 {
                let mut bases = vec![b'A'; length];
                model.sequence_mate(i % 2, &mut bases, &mut quals, &mut rng);
                for (at, (&b, &q)) in bases.iter().zip(&quals).enumerate() {
                    if b == b'N' {
                        ns += 1.0;
                        continue;
                    }
                    seen += 1.0;
                    wrong += f64::from(u8::from(b != b'A'));
                    let p = 10f64.powf(-f64::from(q - 33) / 10.0);
                    said += p;
                    halves[usize::from(at >= length / 2)] += p;
                }
            }
            let mean: f64 = wrong / seen;
            assert!((mean / rate - 1.0).abs() < 0.15, "{mean} instead of {rate}");
            assert!((mean / (said / seen) - 1.0).abs() < 0.15);
            assert!(halves[1] > 1.5 * halves[0]);
            assert!(ns > 0.0 && ns / seen < 1e-3, "{ns}");
        }
    }
}
