//! Model of base qualities and substitution errors that resemble those of Illumina sequencers.
//!
//! Most bases have a high quality that decreases slightly along the read. Single bases have a much lower quality
//! (dips), more often towards the end and in read 2. A few mates have low quality from a position in their second half
//! to the end (low-quality tails).

use crate::rng::Rng;

/// Number of entries of the quality table per read position. One of them is drawn uniformly for each base.
const QUALITIES_PER_POSITION: usize = 1024;
/// Lowest and highest Phred quality of a dip, a single base of low quality.
const DIP_QUALITIES: (u8, u8) = (5, 25);
/// Lowest and highest Phred quality in a low-quality tail.
const TAIL_QUALITIES: (u8, u8) = (2, 16);
/// Share of the mates that end with a low-quality tail.
const LOW_QUALITY_TAIL_SHARE: f64 = 0.015;
/// Lowest Phred quality at which a base is always called; with a lower quality it may be N.
const MIN_CALLED_QUALITY: u8 = 3;
const MAX_QUALITY: u8 = 41;

/// Draws qualities and substitution errors for mates of one length.
#[derive(Debug)]
pub(crate) struct QualityModel {
    length: usize,
    /// Phred qualities to draw from, as `[mate][position * QUALITIES_PER_POSITION + entry]`.
    tables: [Vec<u8>; 2],
    /// Error probability of each Phred quality, multiplied by 2^32.
    error_thresholds: [u32; 64],
}

/// Returns the error probability of a base with Phred quality `q`. For high qualities it is higher than the Phred scale
/// says, because real sequencers overestimate high qualities.
fn error_probability(q: u8) -> f64 {
    0.92 * 10f64.powf(-f64::from(q) / 10.0) + 6e-5
}

fn mean_error(range: (u8, u8)) -> f64 {
    (range.0..=range.1).map(error_probability).sum::<f64>() / f64::from(range.1 - range.0 + 1)
}

/// Returns the Phred quality of a base without a dip at `at` (0: start, 1: end) of the read. `shade` selects one of
/// eight equally likely values.
fn good_base_quality(at: f64, mate: usize, shade: usize) -> u8 {
    let shift = [2.0, 1.0, 1.0, 0.0, 0.0, 0.0, -1.0, -3.0][shade];
    let fall = if mate == 0 { 3.0 } else { 5.0 };
    (37.0 + shift - fall * at * at).clamp(2.0, f64::from(MAX_QUALITY)) as u8
}

/// Returns the relative frequency of dips at `at` (0: start, 1: end) of the read.
fn dip_weight(at: f64, mate: usize) -> f64 {
    (0.3 + 2.0 * at * at) * if mate == 0 { 0.8 } else { 1.2 }
}

impl QualityModel {
    /// Creates a model for mates of `length` bases with the mean error probability `error_rate`. The frequency of dips
    /// is chosen to reach this rate. The rate cannot be lower than that of mates without dips.
    pub(super) fn with_error_rate(length: usize, error_rate: f64) -> Self {
        let at = |i: usize| i as f64 / length.max(2).saturating_sub(1) as f64;
        let positions = || (0..2).flat_map(|mate| (0..length).map(move |i| (mate, i)));
        let n = (2 * length) as f64;
        let plain = |mate, i| (0..8).map(|s| error_probability(good_base_quality(at(i), mate, s))).sum::<f64>() / 8.0;
        let base = positions().map(|(mate, i)| plain(mate, i)).sum::<f64>() / n;
        // A tail begins anywhere in the second half and covers a quarter of the mate on average.
        let tail = LOW_QUALITY_TAIL_SHARE * 0.25 * mean_error(TAIL_QUALITIES);
        let gain =
            positions().map(|(m, i)| dip_weight(at(i), m) * (mean_error(DIP_QUALITIES) - plain(m, i))).sum::<f64>() / n;
        let factor = ((error_rate - tail - base) / gain).max(0.0);
        let table = |mate: usize| {
            let slot = |i: usize, s: usize| {
                let dipping = (dip_weight(at(i), mate) * factor * QUALITIES_PER_POSITION as f64)
                    .round()
                    .min(0.95 * QUALITIES_PER_POSITION as f64) as usize;
                let width = usize::from(DIP_QUALITIES.1 - DIP_QUALITIES.0) + 1;
                if s < dipping {
                    DIP_QUALITIES.0 + (s * width / dipping) as u8
                } else {
                    good_base_quality(at(i), mate, s % 8)
                }
            };
            (0..length).flat_map(|i| (0..QUALITIES_PER_POSITION).map(move |s| slot(i, s))).collect()
        };
        let mut wrong_below = [0; 64];
        for (q, threshold) in wrong_below.iter_mut().enumerate() {
            *threshold = (error_probability(q as u8).min(0.75) * 2f64.powi(32)) as u32;
        }
        QualityModel { length, tables: [table(0), table(1)], error_thresholds: wrong_below }
    }

    /// Returns the length of the mates, bases.
    pub(super) fn mate_length(&self) -> usize {
        self.length
    }

    /// Replaces the true bases of a mate by called bases, with errors, and fills `quals` with qualities as Phred+33.
    /// `mate` is 0 for read 1 and 1 for read 2.
    pub(super) fn sequence_mate(&self, mate: usize, bases: &mut [u8], quals: &mut Vec<u8>, rng: &mut Rng) {
        quals.clear();
        let lost_from = if rng.draw_bernoulli(LOW_QUALITY_TAIL_SHARE) {
            self.length / 2 + rng.draw_below(self.length / 2 + 1)
        } else {
            self.length
        };
        for (i, base) in bases.iter_mut().enumerate() {
            let bits = rng.next_u64();
            let mut q = self.tables[mate][i * QUALITIES_PER_POSITION + (bits as usize & (QUALITIES_PER_POSITION - 1))];
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
            let mut rng = Rng::from_seed_and_labels(5, &[]);
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
