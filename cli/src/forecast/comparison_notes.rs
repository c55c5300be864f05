//! Notes on the numbers of a comparison of machines.

use super::machine_comparison::MachineComparison;
use super::rates::MACHINE_OF_MEASURED_RATES;

/// Returns the notes on a comparison, a line each.
pub(crate) fn comparison_notes(comparison: &MachineComparison) -> Vec<String> {
    let years = comparison.years;
    let mut notes = vec![format!(
        "Calculated, not measured: CPU times are those of an {MACHINE_OF_MEASURED_RATES}, times cpu_time of the table."
    )];
    let energy = match comparison.price_per_kwh {
        Some(price) => format!("and their energy at {price} a kWh"),
        None => "without energy (--price-per-kwh)".to_owned(),
    };
    notes.push(format!(
        "Costs: of machines that are bought, the price for {years} years {energy}; of rented ones, the hours of the calls."
    ));
    if comparison.machines.iter().filter_map(|one| one.cost.as_ref()).any(|cost| cost.energy_is_estimated) {
        notes.push("* estimated from CPU time and memory, because the table does not have the power.".to_owned());
    }
    notes
}
