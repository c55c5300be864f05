//! Where the cost rates of a forecast come from.

use super::calibrate::{EarlierRun, calibrate_rates};
use super::machine_speed::MachineSpeed;
use super::rates::{CostRates, MEASURED_RATES};

/// What the rates of a forecast are adapted to.
#[derive(Debug)]
pub(crate) enum RateSource {
    /// Nothing: the built-in rates.
    BuiltIn,
    /// Earlier runs on this machine.
    EarlierRuns(Vec<EarlierRun>),
    /// The measured speed of this machine.
    Measured(MachineSpeed),
}

impl RateSource {
    /// Returns the rates.
    pub(super) fn rates(&self) -> CostRates {
        match self {
            RateSource::BuiltIn => MEASURED_RATES,
            RateSource::EarlierRuns(runs) => calibrate_rates(runs),
            RateSource::Measured(speed) => {
                let mut rates = MEASURED_RATES;
                speed.scale_rates(&mut rates);
                rates
            }
        }
    }
}
