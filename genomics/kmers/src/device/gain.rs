//! Whether a device gains anything, reckoned from how much there is to count and how fast the device is.

use genuma_gpu::Rates;

/// Nanoseconds of a CPU a k-mer, to count it out of a bin (29 s for 4,074 M, docs/kmers.md).
const CPU_NS: f64 = 7.0;
/// Bytes that go to a device for each k-mer (docs/kmers.md), with the starts of chunks.
const BYTES_PER_KMER: f64 = 1.23;
/// Changes at random places for each k-mer: the key looked at or put there, and the counter.
const CHANGES_PER_KMER: f64 = 2.0;
/// Rows that come back for each k-mer, at most in a usual count, and bytes of each.
const ROWS_PER_KMER: f64 = 0.1;
const ROW_BYTES: f64 = 16.0;
/// Seconds to open a device and compile the kernels.
pub(crate) const STARTUP_S: f64 = 1.5;
/// Share of the count that has to be gained beyond that.
const WORTH: f64 = 0.05;

/// What counting bins is expected to take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    /// Seconds by the threads alone.
    pub threads_s: f64,
    /// Seconds with the devices beside them.
    pub with_s: f64,
}

impl Gain {
    /// Whether it is worth it.
    pub fn pays(&self) -> bool {
        self.threads_s - self.with_s > WORTH * self.threads_s
    }

    /// Whether anything could be worth it, were a device infinitely fast: asked before one is looked for.
    pub fn could_pay(kmers: u64, threads: usize) -> bool {
        gain(kmers, threads, &[Rates { to_gbs: 1e9, from_gbs: 1e9, random_mops: 1e9, bytes: 0 }]).pays()
    }
}

/// K-mers a second that a device counts beside threads: its slowest step, as all go on at once.
fn kmers_a_second(rates: &Rates) -> f64 {
    let to = rates.to_gbs * 1e9 / BYTES_PER_KMER;
    let counted = rates.random_mops * 1e6 / CHANGES_PER_KMER;
    let from = rates.from_gbs * 1e9 / (ROWS_PER_KMER * ROW_BYTES);
    to.min(counted).min(from)
}

/// What so many k-mers in bins are expected to take with so many threads and devices of these rates.
pub fn gain(kmers: u64, threads: usize, devices: &[Rates]) -> Gain {
    let cpu = threads.max(1) as f64 / (CPU_NS * 1e-9);
    let all = cpu + devices.iter().map(kmers_a_second).sum::<f64>();
    Gain { threads_s: kmers as f64 / cpu, with_s: kmers as f64 / all + STARTUP_S }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_pay_where_there_is_much_to_count_and_they_are_fast() {
        // PCIe 4.0 x16, and random changes of a large card.
        let fast = Rates { to_gbs: 24.0, from_gbs: 24.0, random_mops: 3000.0, bytes: 0 };
        let slow = Rates { random_mops: 10.0, ..fast };
        let human = 80_000_000_000;
        assert!(gain(human, 16, &[fast]).pays());
        assert!(!gain(human, 16, &[slow]).pays());
        assert!(gain(human, 16, &[fast, fast]).with_s < gain(human, 16, &[fast]).with_s);
        assert!(!Gain::could_pay(100_000_000, 16) && Gain::could_pay(human, 16));
    }
}
