//! Estimates whether devices speed up a count, from the number of k-mers and the speed of the devices.

use genuma_gpu::DeviceRates;

/// CPU time to count one k-mer of a bin, in ns (measured: 29 s for 4,074 million,
/// docs/evidence/2026-11-21-count-kmc.md). A higher value favours devices.
const CPU_NS: f64 = 7.0;
/// Mean number of bytes sent to a device per k-mer: super-k-mer records and the starts of chunks (measured,
/// docs/evidence/2026-11-21-count-kmc.md).
const BYTES_PER_KMER: f64 = 1.23;
/// Random memory updates per k-mer: the key and the counter.
const UPDATES_PER_KMER: f64 = 2.0;
/// Rows copied back per k-mer; an upper limit for usual counts.
const ROWS_PER_KMER: f64 = 0.1;
/// Bytes of a row that is copied from the device: the key of a k-mer and the counts of two samples.
const ROW_BYTES: f64 = 16.0;
/// Time to open a device and compile the kernels, in seconds. Empirical.
pub(crate) const DEVICE_STARTUP_S: f64 = 1.5;
/// Minimum share of the counting time that must be saved, after the startup, to use a device. Chosen; a higher value
/// uses devices less often.
const MIN_GAIN_SHARE: f64 = 0.05;

/// Expected counting time without and with devices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CountingTimesWithAndWithoutDevices {
    /// Counting time with threads alone, in seconds.
    pub threads_s: f64,
    /// Counting time with threads and devices, with the startup of the devices, in seconds.
    pub with_devices_s: f64,
}

impl CountingTimesWithAndWithoutDevices {
    /// Whether the devices save enough time ([`MIN_GAIN_SHARE`]) to be used.
    pub fn are_devices_worthwhile(&self) -> bool {
        self.threads_s - self.with_devices_s > MIN_GAIN_SHARE * self.threads_s
    }

    /// Whether even an infinitely fast device would save enough time; tested before devices are searched.
    pub fn are_infinitely_fast_devices_worthwhile(kmers: u64, threads: usize) -> bool {
        estimate_times_with_and_without_devices(
            kmers,
            threads,
            &[DeviceRates { copy_to_device_gbs: 1e9, copy_from_device_gbs: 1e9, atomic_updates_mops: 1e9, bytes: 0 }],
        )
        .are_devices_worthwhile()
    }
}

/// Number of k-mers per second that a device counts: the rate of its slowest step, because the steps overlap.
fn kmers_per_second(rates: &DeviceRates) -> f64 {
    let to = rates.copy_to_device_gbs * 1e9 / BYTES_PER_KMER;
    let counted = rates.atomic_updates_mops * 1e6 / UPDATES_PER_KMER;
    let from = rates.copy_from_device_gbs * 1e9 / (ROWS_PER_KMER * ROW_BYTES);
    to.min(counted).min(from)
}

/// Estimates the counting time of `kmers` k-mers in bins for the threads alone, and for the threads together with
/// devices of the given speeds.
pub fn estimate_times_with_and_without_devices(
    kmers: u64,
    threads: usize,
    devices: &[DeviceRates],
) -> CountingTimesWithAndWithoutDevices {
    let cpu = threads.max(1) as f64 / (CPU_NS * 1e-9);
    let all = cpu + devices.iter().map(kmers_per_second).sum::<f64>();
    CountingTimesWithAndWithoutDevices {
        threads_s: kmers as f64 / cpu,
        with_devices_s: kmers as f64 / all + DEVICE_STARTUP_S,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_pay_where_there_is_much_to_count_and_they_are_fast() {
        // PCIe 4.0 x16, and the random update rate of a large card.
        let fast =
            DeviceRates { copy_to_device_gbs: 24.0, copy_from_device_gbs: 24.0, atomic_updates_mops: 3000.0, bytes: 0 };
        let slow = DeviceRates { atomic_updates_mops: 10.0, ..fast };
        let human = 80_000_000_000;
        assert!(estimate_times_with_and_without_devices(human, 16, &[fast]).are_devices_worthwhile());
        assert!(!estimate_times_with_and_without_devices(human, 16, &[slow]).are_devices_worthwhile());
        assert!(
            estimate_times_with_and_without_devices(human, 16, &[fast, fast]).with_devices_s
                < estimate_times_with_and_without_devices(human, 16, &[fast]).with_devices_s
        );
        assert!(
            !CountingTimesWithAndWithoutDevices::are_infinitely_fast_devices_worthwhile(100_000_000, 16)
                && CountingTimesWithAndWithoutDevices::are_infinitely_fast_devices_worthwhile(human, 16)
        );
    }
}
