//! `--fpga`: chooses a device that scatters reads into bins in place of the threads.

use std::path::{Path, PathBuf};

use genuma_kmers::{Devices, ScatterDevice, SimulatedFpga};
use tracing::info;

use crate::errors::UsageError;

/// Environment variable with the folder of the simulators.
const FOLDER_VARIABLE: &str = "GENUMA_FPGA_SIM";

/// The option `--fpga`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FpgaOptions {
    /// Scatter k-mers on a simulated FPGA (`sim`), to test its design; much slower than threads. The result is the
    /// same. `scripts/fpga.sh sim` builds the simulators; GENUMA_FPGA_SIM is their folder
    #[arg(
        long,
        value_name = "off|sim",
        default_value = "off",
        hide_possible_values = true,
        help_heading = "Resources"
    )]
    fpga: FpgaChoice,
}

/// The value of `--fpga`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FpgaChoice {
    Off,
    Sim,
}

impl FpgaOptions {
    /// Adds the chosen device for `k`-mers.
    ///
    /// # Errors
    /// The simulator is missing.
    pub(crate) fn add_scatter_device(&self, devices: Devices, k: u32) -> Result<Devices, UsageError> {
        if self.fpga == FpgaChoice::Off {
            return Ok(devices);
        }
        let fpga = SimulatedFpga::find_simulator(&simulator_folder()?, k).map_err(|why| {
            UsageError(format!(
                "--fpga sim: {why}, or set {FOLDER_VARIABLE} to the folder that has it, such as target/fpga"
            ))
        })?;
        Ok(devices.with_scatter_device(ScatterDevice::SimulatedFpga(fpga)))
    }
}

/// The folder of the simulators: that of the environment variable, else that of this program.
fn simulator_folder() -> Result<PathBuf, UsageError> {
    if let Some(folder) = std::env::var_os(FOLDER_VARIABLE) {
        return Ok(folder.into());
    }
    let program = std::env::current_exe().map_err(|error| {
        UsageError(format!("--fpga sim: {error}: set {FOLDER_VARIABLE} to the folder of the simulators"))
    })?;
    Ok(program.parent().unwrap_or(Path::new(".")).to_path_buf())
}

/// Logs one line on the batches that an FPGA scattered.
pub(crate) fn log_scattered_batches(devices: &Devices) {
    if let ScatterDevice::SimulatedFpga(fpga) = devices.scatter_device() {
        let [all, on_device] = fpga.num_batches();
        info!("{on_device} of {all} batches of reads were scattered by a {fpga}; threads scattered the others");
    }
}
