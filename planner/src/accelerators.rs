//! Compares counting k-mers by threads alone, by threads and a GPU, and by threads and an FPGA.
//!
//! A device takes the share *s* of the CPU time of the unit `count`, and works at its own rate beside the threads. With
//! the CPU time *c* of threads alone, the work *w* of the device at the rate *r*, and its power *P*:
//!
//! ```text
//! CPU time      (1 − s)·c
//! time          max(time of the unit with (1 − s)·c, w / r)
//! energy        energy of the unit with these times + P·time
//! ```

use genuma_work::energy::estimate_energy_j;
use serde::Serialize;

use crate::call_forecast::CallForecast;
use crate::input::ForecastInput;
use crate::rates::CostRates;
use crate::units::UnitForecaster;

/// Predicted cost of counting the k-mers of a call in one way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CountingForecast {
    /// What counts: threads, or threads and a device.
    pub counted_by: &'static str,
    /// Where the rates of the device are from: measured on a card, or simulated.
    pub basis: &'static str,
    /// CPU seconds, summed over all threads.
    pub cpu_s: f64,
    /// Wall-clock time (s).
    pub wall_s: f64,
    /// Energy (J).
    pub energy_j: f64,
}

/// What the device of an [`Accelerator`] works on.
enum DeviceWork {
    Kmers,
    Bases,
}

/// A device with its rates.
struct Accelerator {
    counted_by: &'static str,
    basis: &'static str,
    /// Share of the CPU time of counting that the device takes from the threads.
    cpu_share: f64,
    work: DeviceWork,
    /// Amount of work in a second.
    rate: f64,
    /// Power of the device while it works (W).
    watts: f64,
}

/// `threads and a GPU`: the card counts the k-mers of all bins. Measured on one NVIDIA H200 with 16 threads and 12 Gbases
/// of reads (docs/evidence/2026-11-26-gpu-card.md, 200 Mbp): 307 instead of 375 CPU s, 1,438 million k-mers a second,
/// 9,002 J in 72.8 s.
///
/// `threads and an FPGA`: the design cuts reads into super-k-mers and sorts them into bins, with eight lanes at 80.5 MHz
/// as place and route for an ECP5-85F gives (docs/internals/fpga.md). Its share of the CPU time is that of cutting,
/// minimizers and bins, 40 of 103 s (docs/internals/gpu.md), its power the maximum of one Arria 10 card in table 4 of the
/// SMUFIN thesis (cadenelli2019). No card was tried.
const ACCELERATORS: [Accelerator; 2] = [
    Accelerator {
        counted_by: "threads and a GPU",
        basis: "measured on an NVIDIA H200",
        cpu_share: 1.0 - 307.0 / 375.0,
        work: DeviceWork::Kmers,
        rate: 1.438e9,
        watts: 9002.0 / 72.8,
    },
    Accelerator {
        counted_by: "threads and an FPGA",
        basis: "simulated, no card was tried",
        cpu_share: 40.0 / 103.0,
        work: DeviceWork::Bases,
        rate: 0.64e9,
        watts: 112.5,
    },
];

impl ForecastInput {
    /// Predicts the cost of counting the k-mers of the call `forecast` by threads alone, and with each kind of device.
    /// `watts` is the power of the machine without devices (W); if `None`, its energy is estimated from CPU time and
    /// memory. Empty if the call is refused.
    pub fn compare_accelerators(
        &self,
        forecast: &CallForecast,
        rates: &CostRates,
        watts: Option<f64>,
    ) -> Vec<CountingForecast> {
        let Some(count) = forecast.units.iter().find(|unit| unit.name == "count") else {
            return Vec::new();
        };
        let units = UnitForecaster::new(self, rates, forecast.packed_bytes > 0);
        let files_bytes = self.file_bytes.iter().sum::<u64>() * u64::from(forecast.partitions);
        let spilled_bytes = count.read_bytes - files_bytes;
        let machine_energy_j = |cpu_s: f64, wall_s: f64| match watts {
            Some(watts) => watts * wall_s,
            None => estimate_energy_j(cpu_s, count.peak_bytes as f64, wall_s),
        };
        let threads = CountingForecast {
            counted_by: "threads",
            basis: "the forecast above",
            cpu_s: count.cpu_s,
            wall_s: count.wall_s,
            energy_j: machine_energy_j(count.cpu_s, count.wall_s),
        };
        let with_device = |device: &Accelerator| {
            let work = match device.work {
                DeviceWork::Kmers => self.expected_num_kmer_occurrences() as f64,
                DeviceWork::Bases => self.bases.iter().sum::<u64>() as f64 * f64::from(forecast.partitions),
            };
            let cpu_s = (1.0 - device.cpu_share) * count.cpu_s;
            let wall_s = units.count_wall_s(cpu_s, forecast.partitions, spilled_bytes).max(work / device.rate);
            CountingForecast {
                counted_by: device.counted_by,
                basis: device.basis,
                cpu_s,
                wall_s,
                energy_j: machine_energy_j(cpu_s, wall_s) + device.watts * wall_s,
            }
        };
        std::iter::once(threads).chain(ACCELERATORS.iter().map(with_device)).collect()
    }
}

#[cfg(test)]
mod tests {
    use genuma_somatic::pipeline::Resources;

    use super::*;
    use crate::call_forecast::tests::human_genome_input;
    use crate::rates::MEASURED_RATES;

    #[test]
    fn devices_take_cpu_time_and_never_work_faster_than_their_rate() {
        for threads in [4, 64] {
            let resources = Resources { threads, memory: 64 << 30, scratch: 1 << 40, devices: Default::default() };
            let input = ForecastInput { resources, ..human_genome_input() };
            let forecast = input.forecast_call(&MEASURED_RATES);
            let compared = input.compare_accelerators(&forecast, &MEASURED_RATES, None);
            let [by_threads, gpu, fpga] = &compared[..] else { panic!("{compared:?}") };
            let count = forecast.units.iter().find(|unit| unit.name == "count").expect("a unit");
            assert_eq!([by_threads.cpu_s, by_threads.wall_s], [count.cpu_s, count.wall_s]);
            assert!(fpga.cpu_s < gpu.cpu_s && gpu.cpu_s < by_threads.cpu_s, "{compared:?}");
            let bases: u64 = input.bases.iter().sum();
            assert!(fpga.wall_s >= bases as f64 / 0.64e9, "{compared:?}");
            // With few threads the CPUs set the time, so each device shortens it. With many, the FPGA's rate does.
            assert_eq!(fpga.wall_s < by_threads.wall_s, threads == 4, "{compared:?}");
            let with_meter = input.compare_accelerators(&forecast, &MEASURED_RATES, Some(200.0));
            assert!((with_meter[0].energy_j - 200.0 * count.wall_s).abs() < 1.0);
            assert!((with_meter[2].energy_j - 312.5 * fpga.wall_s).abs() < 1.0);
        }
        let tiny = Resources { threads: 4, memory: 1 << 20, scratch: 0, devices: Default::default() };
        let refused = ForecastInput { resources: tiny, ..human_genome_input() };
        let forecast = refused.forecast_call(&MEASURED_RATES);
        assert!(refused.compare_accelerators(&forecast, &MEASURED_RATES, None).is_empty());
    }
}
