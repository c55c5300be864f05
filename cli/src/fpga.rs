//! The option `--fpga`: a simulated FPGA scatters reads into bins; the CPU threads scatter the batches that it cannot.

use std::path::{Path, PathBuf};

use genuma_kmers::{Devices, ScatterDevice, SimulatedFpga};
use tracing::info;

use crate::errors::UsageError;

/// Environment variable with the folder that contains the FPGA simulators.
const SIMULATOR_FOLDER_VARIABLE: &str = "GENUMA_FPGA_SIM";

/// The option `--fpga`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FpgaOptions {
    /// For developers: distribute k-mers to bins on a simulated FPGA (`sim`); much slower, same result.
    /// `scripts/fpga.sh sim` builds the simulators; the environment variable GENUMA_FPGA_SIM names their folder
    #[arg(long, value_name = "off|sim", default_value = "off", hide_possible_values = true, help_heading = "Advanced")]
    fpga: FpgaChoice,
}

/// The value of `--fpga`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FpgaChoice {
    Off,
    Sim,
}

impl FpgaOptions {
    /// Adds the device that the option chooses, if any, to `devices`. `k` is the length of the k-mers.
    ///
    /// # Errors
    /// The simulator is missing.
    pub(crate) fn add_scatter_device(&self, devices: Devices, k: u32) -> Result<Devices, UsageError> {
        if self.fpga == FpgaChoice::Off {
            return Ok(devices);
        }
        let fpga = SimulatedFpga::find_simulator(&simulator_folder()?, k).map_err(|why| {
            UsageError(format!(
                "--fpga sim: {why}, or set {SIMULATOR_FOLDER_VARIABLE} to the folder that has it, such as target/fpga"
            ))
        })?;
        Ok(devices.with_scatter_device(ScatterDevice::SimulatedFpga(fpga)))
    }
}

/// Returns the folder of the FPGA simulators: that of the environment variable, else the folder of this program.
fn simulator_folder() -> Result<PathBuf, UsageError> {
    if let Some(folder) = std::env::var_os(SIMULATOR_FOLDER_VARIABLE) {
        return Ok(folder.into());
    }
    let program = std::env::current_exe().map_err(|error| {
        UsageError(format!("--fpga sim: {error}: set {SIMULATOR_FOLDER_VARIABLE} to the folder of the simulators"))
    })?;
    Ok(program.parent().unwrap_or(Path::new(".")).to_path_buf())
}

/// Logs how many batches of reads the FPGA and the threads scattered, if an FPGA is used.
pub(crate) fn log_scattered_batches(devices: &Devices) {
    if let ScatterDevice::SimulatedFpga(fpga) = devices.scatter_device() {
        let [all, on_device] = fpga.num_total_and_device_batches();
        info!("{on_device} of {all} batches of reads were scattered by a {fpga}; threads scattered the others");
    }
}
