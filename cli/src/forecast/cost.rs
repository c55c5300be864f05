//! Adds energy and cost to a forecast.

use genuma_somatic::pipeline::Resources;
use serde::Serialize;

use super::machine_speed::MachineSpeed;
use super::model::{CallForecast, ForecastInput};
use super::rate_source::RateSource;
use super::rates::CostRates;
use crate::gpu;

/// Power of the machine and prices.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct CostOptions {
    /// Power of the machine during the call (watts) [default: the power measured with --measure or in the runs of
    /// --from; else energy is estimated from CPU time and memory]
    #[arg(long, value_name = "W", value_parser = parse_non_negative_number, help_heading = "Energy and cost")]
    watts: Option<f64>,
    /// Price of a kilowatt hour, in any currency
    #[arg(long, value_name = "PRICE", value_parser = parse_non_negative_number, help_heading = "Energy and cost")]
    pub(crate) price_per_kwh: Option<f64>,
    /// Price of the machine for an hour, in the same currency
    #[arg(long, value_name = "PRICE", value_parser = parse_non_negative_number, help_heading = "Energy and cost")]
    price_per_hour: Option<f64>,
}

/// Parses a number from 0 to 10⁹.
pub(crate) fn parse_non_negative_number(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if (0.0..=1e9).contains(&number) => Ok(number),
        _ => Err("give a number from 0 on".into()),
    }
}

impl CallForecast {
    /// Energy of the call (kWh) on a machine with this power (W); estimated if the power is not known.
    pub(super) fn energy_kwh(&self, watts: Option<f64>) -> f64 {
        watts.map_or_else(|| self.estimated_energy_j(), |watts| watts * self.total_wall_s()) / 3.6e6
    }
}

/// The forecast of a call with energy and cost, as it is written as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct ForecastWithCost {
    /// Version of genuma that made the forecast.
    pub(super) genuma: &'static str,
    pub(super) input: ForecastInput,
    /// Number of earlier runs to which the rates were calibrated (`--from`); 0 without them.
    pub(super) num_earlier_runs: usize,
    /// Speed of this machine to which the rates were scaled (`--measure`).
    pub(super) machine_speed: Option<MachineSpeed>,
    pub(super) rates: CostRates,
    pub(super) forecast: CallForecast,
    /// Devices that will count k-mers in addition to the threads, or the reason why there are none. The forecast is for
    /// the threads alone.
    pub(super) devices: String,
    /// Power of the machine during the call (W), if known.
    pub(super) watts: Option<f64>,
    /// Energy of the call (kWh): power times time, or an estimate if the power is not known; `None` if the call is
    /// refused.
    pub(super) energy_kwh: Option<f64>,
    /// Cost of energy and machine time, as far as prices are given, in their currency; `None` if neither is given, or
    /// the call is refused.
    pub(super) cost: Option<f64>,
}

impl ForecastWithCost {
    /// Forecasts a call with this input.
    ///
    /// # Errors
    /// A requested GPU is missing.
    pub(super) fn forecast_call_with_cost(
        input: ForecastInput,
        source: &RateSource,
        gpu: &gpu::GpuOptions,
        costs: &CostOptions,
    ) -> anyhow::Result<ForecastWithCost> {
        let rates = source.rates();
        let (num_earlier_runs, machine_speed) = match source {
            RateSource::BuiltIn => (0, None),
            RateSource::EarlierRuns(runs) => (runs.len(), None),
            RateSource::Measured(speed) => (0, Some(*speed)),
        };
        let forecast = input.forecast_call(&rates);
        let Resources { threads, memory, .. } = input.resources;
        let devices = gpu.describe_device_choice(input.expected_num_kmer_occurrences(), threads, memory)?;
        let watts = costs.watts.or(rates.watts);
        let hours = forecast.total_wall_s() / 3600.0;
        let energy_kwh = forecast.refused.is_none().then(|| forecast.energy_kwh(watts));
        let prices = [costs.price_per_kwh.zip(energy_kwh), costs.price_per_hour.zip(energy_kwh.map(|_| hours))];
        let cost = prices.iter().flatten().map(|(price, amount)| price * amount).reduce(|a, b| a + b);
        Ok(ForecastWithCost {
            genuma: env!("CARGO_PKG_VERSION"),
            input,
            num_earlier_runs,
            machine_speed,
            rates,
            forecast,
            devices,
            watts,
            energy_kwh,
            cost,
        })
    }
}
