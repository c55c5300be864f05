//! Measures how fast this machine is: calls simulated reads, and compares the CPU time of the call with that on the
//! machine of the built-in rates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use genuma_planner::calibration::EarlierRun;
use genuma_planner::machine_speed::MachineSpeed;
use genuma_work::signals;
use rustix::process::{Pid, Signal, kill_process};
use tracing::info;

use crate::command_line;

/// Options of `genuma bench simulate` for the reads of the measurement. The seed is fixed, so that the call does the
/// same work on each machine.
const SIMULATED_READS: &[&str] = &[
    "--genome-like",
    "human",
    "--genome-length",
    "3M",
    "--library",
    "wgs",
    "--depth-tumor",
    "30",
    "--depth-normal",
    "30",
    "--seed",
    "1",
];
/// CPU time (s) of the call of [`SIMULATED_READS`] on the machine of the built-in rates, by the build for which these
/// were measured.
const CPU_S_ON_MACHINE_OF_RATES: f64 = 11.2;
/// Memory of the call of [`SIMULATED_READS`] in MiB: for the k-mers, and for each thread, so that `genuma call` accepts
/// it with any number of threads.
const CALL_MEMORY_MIB: usize = 2048;
const CALL_MEMORY_OF_THREAD_MIB: usize = 32;
/// How often removing the folder is tried after a signal, and the pause in between.
const REMOVAL_TRIALS: u32 = 20;
const PAUSE_BETWEEN_TRIALS: Duration = Duration::from_millis(50);

/// Simulates reads in a temporary folder inside `folder`, or inside the nearest folder above that exists, and calls
/// them with this number of threads.
///
/// # Errors
/// The folder cannot be written, or simulating or calling fails.
pub(crate) fn measure_machine_speed(folder: &Path, threads: usize) -> anyhow::Result<MachineSpeed> {
    // I/O error ignored: making the temporary folder reports a folder that cannot be examined.
    let folder = folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let critical = signals::enter_critical_section();
    let temporary = tempfile::Builder::new()
        .prefix(".genuma-plan-")
        .tempdir_in(folder)
        .with_context(|| format!("{}: cannot make a folder for the measurement", folder.display()))?;
    let running = RunningProgram::default();
    running.end_and_remove_folder_on_signal(temporary.path().to_path_buf());
    drop(critical);
    let (data, calls) = (temporary.path().join("reads"), temporary.path().join("calls"));
    info!("measuring the speed of this machine with a call of simulated reads");
    let program = command_line::own_program_path()?;
    running.run_genuma(Command::new(&program).args(["bench", "simulate", "-o"]).arg(&data).args(SIMULATED_READS))?;
    let read_files = |sample: &str| [1, 2].map(|mate| data.join(format!("{sample}_{mate}.fq.gz")));
    let mut call = Command::new(&program);
    call.arg("call").arg("--tumor").args(read_files("tumor")).arg("--normal").args(read_files("normal"));
    call.arg("--reference").arg(data.join("genome.fa")).arg("--out").arg(&calls);
    let memory = format!("{}M", CALL_MEMORY_MIB + threads * CALL_MEMORY_OF_THREAD_MIB);
    call.args(["--memory", &memory, "--threads", &threads.to_string()]);
    running.run_genuma(&mut call)?;
    let run = EarlierRun::load(&calls.join("summary.json"))?;
    let speed = MachineSpeed {
        cpu_s: run.total_cpu_s(),
        cpu_s_on_machine_of_rates: CPU_S_ON_MACHINE_OF_RATES,
        busy_share: run.busy_share().context("the call of the measurement recorded no time")?,
        watts: run.mean_watts(),
    };
    temporary.close().context("cannot remove the folder of the measurement")?;
    signals::set_termination_handler(None);
    Ok(speed)
}

/// The program that the measurement runs at the moment.
#[derive(Debug, Clone, Default)]
struct RunningProgram(Arc<Mutex<Option<Pid>>>);

impl RunningProgram {
    fn set(&self, program: Option<Pid>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = program;
    }

    /// Lets a signal end the program and remove `folder` before it ends this process.
    fn end_and_remove_folder_on_signal(&self, folder: PathBuf) {
        let running = self.clone();
        signals::set_termination_handler(Some(Box::new(move || {
            if let Some(program) = *running.0.lock().unwrap_or_else(PoisonError::into_inner) {
                // I/O error ignored: the program may just have ended.
                let _ = kill_process(program, Signal::KILL);
            }
            for _ in 0..REMOVAL_TRIALS {
                // I/O error ignored: the program may write for a moment after the signal.
                if fs::remove_dir_all(&folder).is_ok() || !folder.exists() {
                    break;
                }
                thread::sleep(PAUSE_BETWEEN_TRIALS);
            }
            None
        })));
    }

    /// Runs genuma without output; its messages are part of the error if it fails.
    fn run_genuma(&self, command: &mut Command) -> anyhow::Result<()> {
        let command = command.arg("--quiet").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let critical = signals::enter_critical_section();
        let child = command.spawn().context("cannot run the genuma program")?;
        self.set(Some(Pid::from_child(&child)));
        drop(critical);
        let ended = child.wait_with_output();
        self.set(None);
        let ended = ended.context("cannot wait for the genuma program")?;
        if !ended.status.success() {
            bail!(
                "the measurement of this machine's speed failed ({}): {}",
                ended.status,
                String::from_utf8_lossy(&ended.stderr).trim()
            );
        }
        Ok(())
    }
}
