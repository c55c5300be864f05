//! Options of `genuma plan` on energy, cost and machines.

use std::path::PathBuf;

use genuma_planner::cost::PowerAndPrices;
use genuma_planner::machine_comparison::MachineUse;
use genuma_work::quantity::parse_non_negative_number;

/// Power of the machine, prices, and whether devices are compared.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct CostOptions {
    /// Power of the machine during the call (watts) [default: the power measured with --measure or in the runs of
    /// --from; else energy is estimated from CPU time and memory]
    #[arg(long, value_name = "W", value_parser = parse_non_negative_number, help_heading = "Energy and cost")]
    watts: Option<f64>,
    /// Price of a kilowatt hour, in any currency
    #[arg(long, value_name = "PRICE", value_parser = parse_non_negative_number, help_heading = "Energy and cost")]
    price_per_kwh: Option<f64>,
    /// Price of the machine for an hour, in the same currency
    #[arg(long, value_name = "PRICE", value_parser = parse_non_negative_number, help_heading = "Energy and cost")]
    price_per_hour: Option<f64>,
    /// Also compare how the k-mers are counted: by threads alone, with a GPU (rates of a measured card) and with an FPGA
    /// (simulated rates)
    #[arg(long, help_heading = "Energy and cost")]
    pub(crate) accelerators: bool,
}

impl CostOptions {
    /// Returns the power and the prices that are given.
    pub(crate) fn power_and_prices(&self) -> PowerAndPrices {
        PowerAndPrices { watts: self.watts, price_per_kwh: self.price_per_kwh, price_per_hour: self.price_per_hour }
    }
}

/// Default of `--years`: how long a machine is used.
const DEFAULT_YEARS: f64 = 3.0;

/// Options of a comparison of machines.
#[derive(Debug, clap::Args)]
pub(crate) struct MachineComparisonOptions {
    /// Compare machines: print time, energy and cost of the call on each machine of a table. Its columns, separated by
    /// tabs and named in the first line, are name, threads, memory and, if known, scratch (else unlimited), cpu_time (of
    /// a call, relative to the machine of the built-in rates, as --measure prints it; else 1), disk_mb_per_s, watts,
    /// price or price_per_hour, source
    #[arg(long, value_name = "FILE", conflicts_with_all = ["threads", "memory", "scratch", "work", "from", "measure", "watts", "price_per_hour", "accelerators", "gpu"], help_heading = "Machines")]
    pub(crate) machines: Option<PathBuf>,
    /// How long a machine that is bought is used (years)
    #[arg(long, value_name = "YEARS", requires = "machines", default_value_t = DEFAULT_YEARS, value_parser = parse_years, help_heading = "Machines")]
    years: f64,
    /// Number of calls in these years [default: as many as one machine can make]
    #[arg(long, value_name = "N", requires = "machines", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000), help_heading = "Machines")]
    calls: Option<u64>,
    /// Also write the comparison as HTML, with charts
    #[arg(long, value_name = "FILE", requires = "machines", help_heading = "Machines")]
    pub(crate) html: Option<PathBuf>,
}

/// Parses a number of years.
fn parse_years(text: &str) -> Result<f64, String> {
    let years = parse_non_negative_number(text).ok().filter(|years| (0.01..=100.0).contains(years));
    years.ok_or_else(|| "give a number from 0.01 to 100".to_owned())
}

impl MachineComparisonOptions {
    /// Returns how long and how often machines are used, with this price of a kilowatt hour.
    pub(crate) fn machine_use(&self, price_per_kwh: Option<f64>) -> MachineUse {
        MachineUse { years: self.years, calls: self.calls, price_per_kwh }
    }
}
