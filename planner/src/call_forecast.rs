//! Predicts the cost of a whole call, whether its resources suffice, and what to change if they do not. The prediction
//! depends only on its arguments, not on the machine or on files.
//!
//! The number of partitions is computed by the k-mer counter's own function, so that forecast and call agree.
//! Everything else is a number of bases multiplied by [`CostRates`].

use genuma_kmers::{ExpectedKmers, MAX_PARTITIONS};
use genuma_somatic::count::scratch_bytes_for_reads_and_kmers;
use genuma_somatic::pipeline::Resources;
use genuma_work::energy::estimate_energy_j;
use genuma_work::quantity;
use serde::Serialize;

use crate::input::ForecastInput;
use crate::min_memory::min_call_memory_bytes;
use crate::rates::CostRates;
use crate::units::{UnitForecast, UnitForecaster};

/// Predicted time, memory and bytes of a call, whether its resources suffice, and advice how to change them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallForecast {
    /// Forecast of each unit in the order of execution. Empty if the call is refused.
    pub units: Vec<UnitForecast>,
    /// Number of partitions of the k-mers, each counted in one pass over all reads.
    pub partitions: u32,
    /// Size of packed reads (bytes); 0 if later passes read the input files again.
    pub packed_bytes: u64,
    /// Peak size of the work folder (bytes).
    pub scratch_bytes: u64,
    /// Reason why the call is refused; `None` if it can start.
    pub refused: Option<String>,
    /// Advice to the user: first what makes the resources suffice, then what makes the call faster.
    pub advice: Vec<String>,
    /// Whether the call is not refused and no unit is expected to need more memory than the call may use. Too little
    /// disk space only makes the call slower, unless it is refused.
    pub fits: bool,
}

impl CallForecast {
    fn refuse(why: String, advice: String) -> CallForecast {
        CallForecast {
            units: Vec::new(),
            partitions: 0,
            packed_bytes: 0,
            scratch_bytes: 0,
            refused: Some(why),
            advice: vec![advice],
            fits: false,
        }
    }

    /// Returns the wall-clock time of all units (s).
    pub fn total_wall_s(&self) -> f64 {
        self.units.iter().map(|unit| unit.wall_s).sum()
    }

    /// Returns the energy of all units (J), estimated from their CPU time and memory.
    fn estimated_energy_j(&self) -> f64 {
        self.units.iter().map(|unit| estimate_energy_j(unit.cpu_s, unit.peak_bytes as f64, unit.wall_s)).sum()
    }

    /// Returns the energy of the call (kWh) on a machine with this power (W), or an estimate if the power is not known.
    pub(crate) fn energy_kwh(&self, watts: Option<f64>) -> f64 {
        watts.map_or_else(|| self.estimated_energy_j(), |watts| watts * self.total_wall_s()) / 3.6e6
    }

    /// Returns the CPU seconds of all units.
    pub fn total_cpu_s(&self) -> f64 {
        self.units.iter().map(|unit| unit.cpu_s).sum()
    }

    /// Returns the peak memory of the call: the maximum of all units (bytes).
    pub fn peak_memory_bytes(&self) -> u64 {
        self.units.iter().map(|unit| unit.peak_bytes).max().unwrap_or(0)
    }

    /// Returns the bytes read and the bytes written by all units.
    pub fn total_read_and_written_bytes(&self) -> [u64; 2] {
        let sum = |of: fn(&UnitForecast) -> u64| self.units.iter().map(of).sum();
        [sum(|unit| unit.read_bytes), sum(|unit| unit.written_bytes)]
    }
}

impl ForecastInput {
    /// Predicts the cost of the call with these rates. A call that does not fit is no error: [`CallForecast::fits`] and
    /// [`CallForecast::advice`] say what is missing.
    pub fn forecast_call(&self, rates: &CostRates) -> CallForecast {
        let Resources { threads, memory, .. } = self.resources;
        let min_memory_bytes = min_call_memory_bytes(threads, self.reference_bases);
        if memory < min_memory_bytes {
            let (have, need) = (quantity::format_bytes(memory), quantity::format_bytes(min_memory_bytes));
            return CallForecast::refuse(
                format!("{have} of memory is too little: the call needs {need} or more"),
                format!(
                    "give --memory {}, or lower --threads",
                    quantity::format_bytes_as_option_value(min_memory_bytes)
                ),
            );
        }
        let expected = ExpectedKmers::from_read_estimate(&self.estimate(), self.k);
        let Some((planned, reads_are_packed)) = self.plan_count(&expected) else {
            return CallForecast::refuse(
                format!(
                    "counting {} of k-mers would need more than {MAX_PARTITIONS} passes over the reads",
                    quantity::format_bytes(expected.super_kmer_bytes)
                ),
                format!(
                    "give --scratch {} or more",
                    quantity::format_bytes_as_option_value(expected.super_kmer_bytes / 16 + 1)
                ),
            );
        };
        let work = UnitForecaster::new(self, rates, reads_are_packed);
        let unit_files_bytes =
            rates.unit_file_bytes * work.tumour_gbases + rates.recruited_disk_bytes * work.all_gbases;
        let mut forecast = CallForecast {
            units: work.unit_forecasts(&planned),
            partitions: planned.partitions,
            packed_bytes: work.packed_bytes.unwrap_or(0),
            scratch_bytes: planned.spilled_bytes.max(unit_files_bytes as u64) + work.packed_bytes.unwrap_or(0),
            refused: None,
            advice: Vec::new(),
            fits: true,
        };
        let over = forecast.units.iter().filter(|unit| unit.peak_bytes > memory);
        if let Some(UnitForecast { name, peak_bytes, .. }) = over.max_by_key(|unit| unit.peak_bytes) {
            forecast.fits = false;
            forecast.advice.push(format!(
                "{name} may take {} of memory, more than --memory: give --memory {}",
                quantity::format_bytes(*peak_bytes),
                quantity::format_bytes_as_option_value(self.sufficient_memory_bytes(*peak_bytes, rates))
            ));
        }
        if planned.partitions > 1 {
            let all_kmers_bytes = expected.super_kmer_bytes + expected.super_kmer_bytes / 16;
            forecast.advice.push(format!(
                "counting needs {} passes over the reads: with --scratch {} one pass is enough (now {})",
                planned.partitions,
                quantity::format_bytes_as_option_value(all_kmers_bytes),
                quantity::format_bytes(self.resources.scratch)
            ));
        }
        if !reads_are_packed {
            forecast.advice.push(format!(
                "with --scratch {} later passes would read packed reads instead of the input files (now {})",
                quantity::format_bytes_as_option_value(scratch_bytes_for_reads_and_kmers(
                    &self.kmer_count_params(),
                    self.num_samples,
                    &expected,
                    &self.estimate()
                )),
                quantity::format_bytes(self.resources.scratch)
            ));
        }
        forecast
    }

    /// Returns a memory budget (bytes), at least `least`, that no unit is expected to exceed. Some units use more
    /// memory when the budget is larger, so up to 16 budgets are tried one after another.
    fn sufficient_memory_bytes(&self, least: u64, rates: &CostRates) -> u64 {
        let mut memory = least;
        for _ in 0..16 {
            let input = ForecastInput { resources: Resources { memory, ..self.resources.clone() }, ..self.clone() };
            let expected = ExpectedKmers::from_read_estimate(&input.estimate(), input.k);
            let Some((planned, reads_are_packed)) = input.plan_count(&expected) else { break };
            let units = UnitForecaster::new(&input, rates, reads_are_packed).unit_forecasts(&planned);
            let peak = units.iter().map(|unit| unit.peak_bytes).max().unwrap_or(0);
            if peak <= memory {
                break;
            }
            memory = peak;
        }
        memory
    }
}

#[cfg(test)]
pub(crate) mod tests;
