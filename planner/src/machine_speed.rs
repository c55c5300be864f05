//! The speed of a machine relative to the machine of the built-in rates, measured with a call of the same reads.

use serde::Serialize;

use crate::rates::CostRates;

/// The speed of a machine in a call of simulated reads.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct MachineSpeed {
    /// CPU time of the call on this machine (s).
    pub cpu_s: f64,
    /// CPU time of the same call on the machine of the built-in rates (s).
    pub cpu_s_on_machine_of_rates: f64,
    /// Share of the time in which the threads used a CPU.
    pub busy_share: f64,
    /// Mean power of this machine (W), if it reports its energy.
    pub watts: Option<f64>,
}

impl MachineSpeed {
    /// Returns how many times as long as on the machine of the built-in rates a CPU of this machine takes.
    pub fn cpu_time_ratio(&self) -> f64 {
        self.cpu_s / self.cpu_s_on_machine_of_rates
    }

    /// Scales all times of the rates to this machine.
    pub(crate) fn scale_rates(&self, rates: &mut CostRates) {
        rates.scale_times(self.cpu_time_ratio());
        rates.busy_share = self.busy_share;
        rates.watts = self.watts;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rates::MEASURED_RATES;

    #[test]
    fn times_are_scaled_and_sizes_are_not() {
        let speed = MachineSpeed { cpu_s: 30.0, cpu_s_on_machine_of_rates: 20.0, busy_share: 0.5, watts: Some(90.0) };
        let mut rates = MEASURED_RATES;
        speed.scale_rates(&mut rates);
        assert_eq!(rates.count_cpu_s, 1.5 * MEASURED_RATES.count_cpu_s);
        assert_eq!(rates.inflate_s, 1.5 * MEASURED_RATES.inflate_s);
        assert_eq!((rates.busy_share, rates.watts), (0.5, Some(90.0)));
        assert_eq!(
            (rates.candidate_kmer_bytes, rates.packed_bytes_per_base),
            (MEASURED_RATES.candidate_kmer_bytes, MEASURED_RATES.packed_bytes_per_base)
        );
    }
}
