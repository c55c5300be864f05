//! Illumina-like qualities and the errors that go with them.
//!
//! Most bases have a high quality that falls a little along the read. Single bases dip, more often towards the end
//! and in the second mate. A few mates lose their quality for good somewhere in their second half.

use crate::rng::Rng;

/// Entries of a position's quality table: one is drawn with equal chance.
const SLOTS: usize = 1024;
/// Range of the qualities of a dip.
const DIP: (u8, u8) = (5, 25);
/// Range of the qualities in a lost tail.
const TAIL: (u8, u8) = (2, 16);
/// Share of mates with a lost tail.
const LOST: f64 = 0.015;
/// Quality below which a base may be called N.
const N_BELOW: u8 = 3;
const HIGHEST: u8 = 41;

/// Draws qualities and errors for mates of one length.
#[derive(Debug)]
pub(crate) struct QualityModel {
    length: usize,
    /// `[mate][position * SLOTS + slot]`
    tables: [Vec<u8>; 2],
    /// Error probability of each quality times 2^32.
    wrong_below: [u32; 64],
}

/// The chance that a base of quality `q` is wrong: the sequencer flatters its best bases a little.
fn error_of(q: u8) -> f64 {
    0.92 * 10f64.powf(-f64::from(q) / 10.0) + 6e-5
}

fn mean_error(range: (u8, u8)) -> f64 {
    (range.0..=range.1).map(error_of).sum::<f64>() / f64::from(range.1 - range.0 + 1)
}

/// The quality a good base has at `at` (0 to 1) of the read, for one of eight equally likely shades.
fn good(at: f64, mate: usize, shade: usize) -> u8 {
    let shift = [2.0, 1.0, 1.0, 0.0, 0.0, 0.0, -1.0, -3.0][shade];
    let fall = if mate == 0 { 3.0 } else { 5.0 };
    (37.0 + shift - fall * at * at).clamp(2.0, f64::from(HIGHEST)) as u8
}

/// How likely dips are along the read, up to a factor.
fn dips(at: f64, mate: usize) -> f64 {
    (0.3 + 2.0 * at * at) * if mate == 0 { 0.8 } else { 1.2 }
}

impl QualityModel {
    /// A model for mates of `length` bases in which a base is wrong with probability `error_rate` on average. The
    /// rate is met by making dips as frequent as needed; it cannot fall below that of the good bases and lost tails.
    pub fn new(length: usize, error_rate: f64) -> Self {
        let at = |i: usize| i as f64 / length.max(2).saturating_sub(1) as f64;
        let positions = || (0..2).flat_map(|mate| (0..length).map(move |i| (mate, i)));
        let n = (2 * length) as f64;
        let plain = |mate, i| (0..8).map(|s| error_of(good(at(i), mate, s))).sum::<f64>() / 8.0;
        let base = positions().map(|(mate, i)| plain(mate, i)).sum::<f64>() / n;
        // A tail begins anywhere in the second half: on average it covers a quarter of the mate.
        let tail = LOST * 0.25 * mean_error(TAIL);
        let gain =
            positions().map(|(m, i)| dips(at(i), m) * (mean_error(DIP) - plain(m, i))).sum::<f64>() / n;
        let factor = ((error_rate - tail - base) / gain).max(0.0);
        let table = |mate: usize| {
            let slot = |i: usize, s: usize| {
                let dipping =
                    (dips(at(i), mate) * factor * SLOTS as f64).round().min(0.95 * SLOTS as f64) as usize;
                let width = usize::from(DIP.1 - DIP.0) + 1;
                if s < dipping { DIP.0 + (s * width / dipping) as u8 } else { good(at(i), mate, s % 8) }
            };
            (0..length).flat_map(|i| (0..SLOTS).map(move |s| slot(i, s))).collect()
        };
        let mut wrong_below = [0; 64];
        for (q, threshold) in wrong_below.iter_mut().enumerate() {
            *threshold = (error_of(q as u8).min(0.75) * 2f64.powi(32)) as u32;
        }
        QualityModel { length, tables: [table(0), table(1)], wrong_below }
    }

    /// Bases of a mate.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Turns the true bases of a mate into what the sequencer says: changes them in place and fills in Phred+33
    /// qualities.
    pub fn read(&self, mate: usize, bases: &mut [u8], quals: &mut Vec<u8>, rng: &mut Rng) {
        quals.clear();
        let lost_from =
            if rng.chance(LOST) { self.length / 2 + rng.below(self.length / 2 + 1) } else { self.length };
        for (i, base) in bases.iter_mut().enumerate() {
            let bits = rng.bits();
            let mut q = self.tables[mate][i * SLOTS + (bits as usize & (SLOTS - 1))];
            if i >= lost_from {
                q = TAIL.0 + ((((bits >> 10) & 0xff) * u64::from(TAIL.1 - TAIL.0 + 1)) >> 8) as u8;
            }
            if *base == b'N' || (q < N_BELOW && (bits >> 18) & 3 == 0) {
                *base = b'N';
                q = 2;
            } else if ((bits >> 32) as u32) < self.wrong_below[usize::from(q)] {
                let code = genuma_reads::dna::code(*base);
                *base = genuma_reads::dna::base((code + 1 + ((bits >> 20) % 3) as u8) & 3);
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
            let model = QualityModel::new(length, rate);
            let mut rng = Rng::stream(5, &[]);
            let (mut wrong, mut seen, mut ns) = (0.0, 0.0, 0.0);
            let (mut said, mut halves) = (0.0, [0.0; 2]);
            let mut quals = vec![];
            for i in 0..20_000 {
                let mut bases = vec![b'A'; length];
                model.read(i % 2, &mut bases, &mut quals, &mut rng);
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
