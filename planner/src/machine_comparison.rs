//! Compares machines for a call: time, energy and cost on each.

use genuma_work::quantity::format_energy;
use serde::Serialize;

use crate::call_forecast::CallForecast;
use crate::input::ForecastInput;
use crate::machine_table::Machine;
use crate::rates::{MACHINE_OF_MEASURED_RATES, MEASURED_RATES};

/// Hours of a year, with leap years.
const HOURS_PER_YEAR: f64 = 8766.0;
/// How long and how often machines are used, and the price of their energy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MachineUse {
    /// How long a machine that is bought is used (years, more than 0).
    pub years: f64,
    /// Number of calls in these years; as many as one machine can make if `None`.
    pub calls: Option<u64>,
    /// Price of a kilowatt hour; energy costs nothing if `None`.
    pub price_per_kwh: Option<f64>,
}

/// Forecasts of a call on several machines.
#[derive(Debug, Serialize)]
pub struct MachineComparison {
    /// Version of genuma that made the forecasts.
    pub genuma: &'static str,
    /// Number of bases of the normal, and of all tumours.
    pub bases: [u64; 2],
    /// Number of bases of the reference, if there is one.
    pub reference_bases: Option<u64>,
    /// How long a machine is used (years).
    pub years: f64,
    /// Price of a kilowatt hour, if given.
    pub price_per_kwh: Option<f64>,
    /// The machines, in the order of the table.
    pub machines: Vec<CallOnMachine>,
}

/// Time, energy and cost of a call on one machine.
#[derive(Debug, Serialize)]
pub struct CallOnMachine {
    /// The machine.
    pub machine: Machine,
    /// The forecast for all its threads and memory.
    pub forecast: CallForecast,
    /// Costs; `None` if the call does not fit.
    pub cost: Option<CallCost>,
}

/// Time, energy and money that a call costs on a machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallCost {
    /// Wall-clock time of a call (s).
    pub wall_s: f64,
    /// CPU time of a call (s).
    pub cpu_s: f64,
    /// Energy of a call (kWh).
    pub energy_kwh: f64,
    /// Whether the energy is estimated from CPU time and memory, because the table does not have the power.
    pub energy_is_estimated: bool,
    /// Number of calls in all years.
    pub calls: u64,
    /// Number of machines that these calls need.
    pub num_machines: u64,
    /// Cost of all calls: machines that are bought, or hours that are rented; and energy of machines that are bought, if its
    /// price is given. `None` if the table has no price of the machine.
    pub total_cost: Option<f64>,
    /// Total cost divided by the number of calls.
    pub cost_per_call: Option<f64>,
}

impl CallOnMachine {
    /// Why the call does not fit, if it does not.
    pub fn why_it_does_not_fit(&self) -> &str {
        self.forecast.refused.as_deref().unwrap_or("a unit needs more memory than the machine has")
    }
}

impl CallCost {
    /// Formats the energy of a call; an asterisk marks an estimate.
    pub fn energy_text(&self) -> String {
        format_energy(self.energy_kwh * 3.6e6) + if self.energy_is_estimated { "*" } else { "" }
    }
}

impl MachineComparison {
    /// Forecasts a call with this input on each machine. The resources of `input` are not used.
    pub fn compare_machines(
        input: &ForecastInput,
        machines: Vec<Machine>,
        machine_use: &MachineUse,
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
            let cost = forecast.fits.then(|| call_cost(&machine, &forecast, machine_use));
            CallOnMachine { machine, forecast, cost }
        };
        MachineComparison {
            genuma: env!("CARGO_PKG_VERSION"),
            bases: input.bases,
            reference_bases: input.reference_bases,
            years: machine_use.years,
            price_per_kwh: machine_use.price_per_kwh,
            machines: machines.into_iter().map(forecast).collect(),
        }
    }

    /// Returns notes for readers on how the numbers were computed, a line each.
    pub fn notes(&self) -> Vec<String> {
        let years = self.years;
        let mut notes = vec![format!(
            "Calculated, not measured: CPU times are those of an {MACHINE_OF_MEASURED_RATES}, times cpu_time of the table."
        )];
        let energy = match self.price_per_kwh {
            Some(price) => format!("and their energy at {price} a kWh"),
            None => "without energy (--price-per-kwh)".to_owned(),
        };
        notes.push(format!(
            "Costs: of machines that are bought, the price for {years} years {energy}; of rented ones, the hours of the calls."
        ));
        if self.machines.iter().filter_map(|one| one.cost.as_ref()).any(|cost| cost.energy_is_estimated) {
            notes.push("* estimated from CPU time and memory, because the table does not have the power.".to_owned());
        }
        notes
    }
}

fn call_cost(machine: &Machine, forecast: &CallForecast, machine_use: &MachineUse) -> CallCost {
    let MachineUse { years, calls, price_per_kwh } = *machine_use;
    let wall_s = forecast.total_wall_s();
    let energy_kwh = forecast.energy_kwh(machine.watts);
    let calls_of_one_machine = (years * HOURS_PER_YEAR * 3600.0 / wall_s).floor() as u64;
    let calls = calls.unwrap_or(calls_of_one_machine).max(1);
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
mod tests {
    use super::*;
    use crate::call_forecast::tests::human_genome_input;

    /// A machine on which a human genome at 30x/30x can be called.
    fn machine(name: &str) -> Machine {
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
        let machine_use = MachineUse { years: 3.0, calls, price_per_kwh };
        MachineComparison::compare_machines(&human_genome_input(), machines, &machine_use).machines
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
