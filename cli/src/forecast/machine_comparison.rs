//! Compares machines for a call: time, energy and cost on each.

use std::path::PathBuf;

use genuma_work::quantity::format_energy;
use serde::Serialize;

use super::cost::parse_non_negative_number;
use super::machine_table::Machine;
use super::model::{CallForecast, ForecastInput};
use super::rates::MEASURED_RATES;

/// Hours of a year, with leap years.
const HOURS_PER_YEAR: f64 = 8766.0;
/// Default of `--years`: how long a machine is used.
const DEFAULT_YEARS: f64 = 3.0;

/// Options of a comparison of machines.
#[derive(Debug, clap::Args)]
pub(crate) struct MachineComparisonOptions {
    /// Compare machines: print time, energy and cost of the call on each machine of a table. Its columns, separated by
    /// tabs and named in the first line, are name, threads, memory and, if known, scratch (else unlimited), cpu_time (of
    /// a call, relative to the machine of the built-in rates, as --measure prints it; else 1), disk_mb_per_s, watts,
    /// price or price_per_hour, source
    #[arg(long, value_name = "FILE", conflicts_with_all = ["threads", "memory", "scratch", "work", "from", "measure", "watts", "price_per_hour", "gpu"], help_heading = "Machines")]
    pub(crate) machines: Option<PathBuf>,
    /// How long a machine that is bought is used (years)
    #[arg(long, value_name = "YEARS", requires = "machines", default_value_t = DEFAULT_YEARS, value_parser = parse_years, help_heading = "Machines")]
    pub(crate) years: f64,
    /// Number of calls in these years [default: as many as one machine can make]
    #[arg(long, value_name = "N", requires = "machines", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000), help_heading = "Machines")]
    pub(crate) calls: Option<u64>,
    /// Also write the comparison as HTML, with charts
    #[arg(long, value_name = "FILE", requires = "machines", help_heading = "Machines")]
    pub(crate) html: Option<PathBuf>,
}

/// Parses a number of years.
fn parse_years(text: &str) -> Result<f64, String> {
    let years = parse_non_negative_number(text).ok().filter(|years| (0.01..=100.0).contains(years));
    years.ok_or_else(|| "give a number from 0.01 to 100".to_owned())
}

/// Forecasts of a call on several machines.
#[derive(Debug, Serialize)]
pub(crate) struct MachineComparison {
    /// Version of genuma that made the forecasts.
    pub(crate) genuma: &'static str,
    /// Number of bases of the normal, and of all tumours.
    pub(crate) bases: [u64; 2],
    /// Number of bases of the reference, if there is one.
    pub(crate) reference_bases: Option<u64>,
    /// How long a machine is used (years).
    pub(crate) years: f64,
    /// Price of a kilowatt hour, if given.
    pub(crate) price_per_kwh: Option<f64>,
    /// The machines, in the order of the table.
    pub(crate) machines: Vec<CallOnMachine>,
}

/// Time, energy and cost of a call on one machine.
#[derive(Debug, Serialize)]
pub(crate) struct CallOnMachine {
    pub(crate) machine: Machine,
    pub(crate) forecast: CallForecast,
    /// Costs; `None` if the call does not fit.
    pub(crate) cost: Option<CallCost>,
}

/// Time, energy and money that a call costs on a machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct CallCost {
    /// Wall-clock time of a call (s).
    pub(crate) wall_s: f64,
    /// CPU time of a call (s).
    pub(crate) cpu_s: f64,
    /// Energy of a call (kWh).
    pub(crate) energy_kwh: f64,
    /// Whether the energy is estimated from CPU time and memory, because the table does not have the power.
    pub(crate) energy_is_estimated: bool,
    /// Number of calls in all years.
    pub(crate) calls: u64,
    /// Number of machines that these calls need.
    pub(crate) num_machines: u64,
    /// Cost of all calls: machines that are bought, or hours that are rented; and energy of machines that are bought, if its
    /// price is given. `None` if the table has no price of the machine.
    pub(crate) total_cost: Option<f64>,
    /// Total cost divided by the number of calls.
    pub(crate) cost_per_call: Option<f64>,
}

impl CallOnMachine {
    /// Why the call does not fit, if it does not.
    pub(super) fn why_it_does_not_fit(&self) -> &str {
        self.forecast.refused.as_deref().unwrap_or("a unit needs more memory than the machine has")
    }
}

impl CallCost {
    /// Formats the energy of a call; an asterisk marks an estimate.
    pub(super) fn energy_text(&self) -> String {
        format_energy(self.energy_kwh * 3.6e6) + if self.energy_is_estimated { "*" } else { "" }
    }
}

impl MachineComparison {
    /// Forecasts a call with this input on each machine. The resources of `input` are not used.
    pub(crate) fn compare_machines(
        input: &ForecastInput,
        machines: Vec<Machine>,
        options: &MachineComparisonOptions,
        price_per_kwh: Option<f64>,
    ) -> MachineComparison {
        let forecast = |machine: Machine| {
            let mut rates = MEASURED_RATES;
            rates.scale_times(machine.cpu_time);
            if let Some(rate) = machine.disk_mb_per_s {
                rates.disk_bytes_per_s = rate * 1e6;
            }
            let mut input = input.clone();
            input.resources.threads = machine.threads;
            input.resources.memory = machine.memory;
            input.resources.scratch = machine.scratch;
            let forecast = input.forecast_call(&rates);
            let cost = forecast.fits.then(|| call_cost(&machine, &forecast, options, price_per_kwh));
            CallOnMachine { machine, forecast, cost }
        };
        MachineComparison {
            genuma: env!("CARGO_PKG_VERSION"),
            bases: input.bases,
            reference_bases: input.reference_bases,
            years: options.years,
            price_per_kwh,
            machines: machines.into_iter().map(forecast).collect(),
        }
    }
}

fn call_cost(
    machine: &Machine,
    forecast: &CallForecast,
    options: &MachineComparisonOptions,
    price_per_kwh: Option<f64>,
) -> CallCost {
    let wall_s = forecast.total_wall_s();
    let energy_kwh = forecast.energy_kwh(machine.watts);
    let calls_of_one_machine = (options.years * HOURS_PER_YEAR * 3600.0 / wall_s).floor() as u64;
    let calls = options.calls.unwrap_or(calls_of_one_machine).max(1);
    let num_machines = calls.div_ceil(calls_of_one_machine.max(1));
    let bought = machine
        .price
        .map(|price| num_machines as f64 * price + calls as f64 * energy_kwh * price_per_kwh.unwrap_or(0.0));
    let rented = machine.price_per_hour.map(|price| calls as f64 * wall_s / 3600.0 * price);
    let total_cost = bought.or(rented);
    CallCost {
        wall_s,
        cpu_s: forecast.total_cpu_s(),
        energy_kwh,
        energy_is_estimated: machine.watts.is_none(),
        calls,
        num_machines,
        total_cost,
        cost_per_call: total_cost.map(|cost| cost / calls as f64),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::forecast::model::tests::human_genome_input;

    /// A machine on which a human genome at 30x/30x can be called.
    pub(in crate::forecast) fn machine(name: &str) -> Machine {
        Machine {
            name: name.to_owned(),
            threads: 16,
            memory: 64 << 30,
            scratch: u64::MAX,
            cpu_time: 1.0,
            disk_mb_per_s: None,
            watts: Some(200.0),
            price: Some(5000.0),
            price_per_hour: None,
            source: String::new(),
        }
    }

    fn compare(machines: Vec<Machine>, calls: Option<u64>, price_per_kwh: Option<f64>) -> Vec<CallOnMachine> {
        let options = MachineComparisonOptions { machines: None, years: 3.0, calls, html: None };
        MachineComparison::compare_machines(&human_genome_input(), machines, &options, price_per_kwh).machines
    }

    fn cost(compared: &CallOnMachine) -> &CallCost {
        compared.cost.as_ref().expect("a call that fits")
    }

    #[test]
    fn costs_are_machines_and_energy_or_hours() {
        let rented = Machine { price: None, price_per_hour: Some(2.0), ..machine("rented") };
        let compared = compare(vec![machine("bought"), rented], None, Some(0.25));
        let bought = cost(&compared[0]);
        assert!((bought.energy_kwh - 200.0 * bought.wall_s / 3.6e6).abs() < 1e-9 && !bought.energy_is_estimated);
        assert_eq!(bought.num_machines, 1);
        assert!((bought.calls as f64 - 3.0 * 8766.0 * 3600.0 / bought.wall_s).abs() <= 1.0);
        let total = 5000.0 + bought.calls as f64 * bought.energy_kwh * 0.25;
        assert!((bought.total_cost.unwrap() - total).abs() < 1e-6);
        let rented = cost(&compared[1]);
        assert!((rented.cost_per_call.unwrap() - 2.0 * rented.wall_s / 3600.0).abs() < 1e-9);
    }

    #[test]
    fn many_calls_need_several_machines() {
        let one = cost(&compare(vec![machine("a")], None, None)[0]).calls;
        let compared = compare(vec![machine("a")], Some(one * 2 + 1), None);
        assert_eq!((cost(&compared[0]).num_machines, cost(&compared[0]).total_cost), (3, Some(15_000.0)));
        let few = compare(vec![machine("a")], Some(10), None);
        assert_eq!((cost(&few[0]).num_machines, cost(&few[0]).cost_per_call), (1, Some(500.0)));
    }

    #[test]
    fn machines_differ_in_speed_power_and_memory() {
        let slow = Machine { cpu_time: 2.0, watts: None, ..machine("slow") };
        let small = Machine { memory: 1 << 30, ..machine("small") };
        let free = Machine { price: None, ..machine("free") };
        let disk = Machine { disk_mb_per_s: Some(10.0), ..machine("disk") };
        let compared = compare(vec![machine("a"), slow, small, free, disk], None, None);
        let [a, slow] = [0, 1].map(|i| cost(&compared[i]));
        assert!(slow.wall_s > a.wall_s && (slow.cpu_s / a.cpu_s - 2.0).abs() < 1e-9);
        assert!(slow.energy_is_estimated && slow.energy_kwh > 12.0 * slow.cpu_s / 3.6e6);
        assert!(compared[2].cost.is_none() && !compared[2].forecast.fits);
        assert_eq!(cost(&compared[3]).total_cost, None);
        assert!(cost(&compared[4]).wall_s > 2.0 * a.wall_s);
    }
}
