//! Adds energy and cost to a forecast.

use serde::Serialize;

use crate::accelerators::CountingForecast;
use crate::call_forecast::CallForecast;
use crate::input::ForecastInput;
use crate::machine_speed::MachineSpeed;
use crate::rate_source::RateSource;
use crate::rates::CostRates;

/// Power of the machine and prices, in any one currency. What is `None` is not known, or costs nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct PowerAndPrices {
    /// Power of the machine during the call (W); if `None`, the power that is measured with the rates is used.
    pub watts: Option<f64>,
    /// Price of a kilowatt hour.
    pub price_per_kwh: Option<f64>,
    /// Price of the machine for an hour.
    pub price_per_hour: Option<f64>,
}

/// The forecast of a call with energy and cost, as it is written as JSON.
#[derive(Debug, Serialize)]
pub struct ForecastWithCost {
    /// Version of genuma that made the forecast.
    pub genuma: &'static str,
    /// What is called, with which resources.
    pub input: ForecastInput,
    /// Number of earlier runs to which the rates were calibrated (`--from`); 0 without them.
    pub num_earlier_runs: usize,
    /// Speed of this machine to which the rates were scaled (`--measure`).
    pub machine_speed: Option<MachineSpeed>,
    /// Rates from which the forecast is computed.
    pub rates: CostRates,
    /// Time, memory and bytes, and whether the call fits.
    pub forecast: CallForecast,
    /// Devices that will count k-mers in addition to the threads, or the reason why there are none. The forecast is for
    /// the threads alone.
    pub devices: String,
    /// Counting of the k-mers by threads, with a GPU and with an FPGA; empty if it is not requested
    /// ([`ForecastWithCost::with_accelerators`]).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accelerators: Vec<CountingForecast>,
    /// Power of the machine during the call (W), if known.
    pub watts: Option<f64>,
    /// Energy of the call (kWh): power times time, or an estimate if the power is not known; `None` if the call is
    /// refused.
    pub energy_kwh: Option<f64>,
    /// Cost of energy and machine time, as far as prices are given, in their currency; `None` if neither is given, or
    /// the call is refused.
    pub cost: Option<f64>,
}

impl ForecastWithCost {
    /// Forecasts a call with this input, and computes its energy and cost. `devices` describes the devices that will count
    /// k-mers in addition to the threads; it does not change the forecast.
    pub fn new(
        input: ForecastInput,
        source: &RateSource,
        devices: String,
        prices: &PowerAndPrices,
    ) -> ForecastWithCost {
        let rates = source.rates();
        let (num_earlier_runs, machine_speed) = match source {
            RateSource::BuiltIn => (0, None),
            RateSource::EarlierRuns(runs) => (runs.len(), None),
            RateSource::Measured(speed) => (0, Some(*speed)),
        };
        let forecast = input.forecast_call(&rates);
        let watts = prices.watts.or(rates.watts);
        let hours = forecast.total_wall_s() / 3600.0;
        let energy_kwh = forecast.refused.is_none().then(|| forecast.energy_kwh(watts));
        let costs = [prices.price_per_kwh.zip(energy_kwh), prices.price_per_hour.zip(energy_kwh.map(|_| hours))];
        let cost = costs.iter().flatten().map(|(price, amount)| price * amount).reduce(|a, b| a + b);
        ForecastWithCost {
            genuma: env!("CARGO_PKG_VERSION"),
            input,
            num_earlier_runs,
            machine_speed,
            rates,
            forecast,
            devices,
            accelerators: Vec::new(),
            watts,
            energy_kwh,
            cost,
        }
    }

    /// Adds the comparison of devices that count k-mers.
    pub fn with_accelerators(mut self) -> ForecastWithCost {
        self.accelerators = self.input.compare_accelerators(&self.forecast, &self.rates, self.watts);
        self
    }
}
