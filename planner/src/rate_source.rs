//! Where the cost rates of a forecast come from: built in, calibrated with earlier runs, or scaled to the measured speed
//! of a machine.

use crate::calibration::{EarlierRun, calibrate_rates};
use crate::machine_speed::MachineSpeed;
use crate::rates::{CostRates, MEASURED_RATES};

/// What the rates of a forecast are adapted to.
#[derive(Debug)]
pub enum RateSource {
    /// Nothing: the built-in rates.
    BuiltIn,
    /// Earlier runs on this machine.
    EarlierRuns(Vec<EarlierRun>),
    /// The measured speed of this machine.
    Measured(MachineSpeed),
}

impl RateSource {
    /// Returns the rates.
    pub fn rates(&self) -> CostRates {
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
