//! Runs commands in throw-away guests with several NUMA nodes, by `scripts/numavm.sh`. Other crates' tests may include this file by path.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A guest.
pub struct Guest {
    /// Nodes with CPUs and memory.
    pub nodes: u32,
    /// CPUs of each.
    pub cpus: u32,
    /// MB of memory of each.
    pub memory: u32,
    /// More of what the script reads: `("NUMAVM_MEMONLY", "1")`.
    pub more: &'static [(&'static str, &'static str)],
}

/// What a command in a guest printed, stdout and stderr together, and how it ended.
pub struct Outcome {
    /// The text.
    pub output: String,
    /// Its exit status.
    pub status: i32,
}

impl Guest {
    /// Copies `programs` into the guest's work folder and runs `command` there by sh. Nothing where no guest can be had here; then standard
    /// error says that `test` was skipped and why.
    pub fn run(&self, test: &str, programs: &[&Path], command: &str) -> Option<Outcome> {
        let skipped = |why: &str| {
            // Not by eprintln!, which the test runner keeps to itself.
            let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
            None
        };
        if !cfg!(target_arch = "x86_64") {
            return skipped("the guest is an x86-64 machine");
        }
        let folder = tempfile::tempdir().expect("a folder for the guest's programs");
        for program in programs {
            let name = program.file_name().expect("a file");
            std::fs::copy(program, folder.path().join(name)).expect("a copy of the program");
        }
        let number = |number: u32| number.to_string();
        let run = Command::new(script())
            .args([number(self.nodes), number(self.cpus), number(self.memory)])
            .arg(folder.path())
            .arg(command)
            .env("NUMAVM_TIMEOUT", "900") // ten times what it takes here
            .envs(self.more.iter().copied())
            .stdin(Stdio::null())
            .output();
        let run = match run {
            Ok(run) => run,
            Err(error) => return skipped(&format!("{}: {error}", script().display())),
        };
        let errors = String::from_utf8_lossy(&run.stderr);
        match run.status.code() {
            Some(77) => skipped(errors.trim()),
            Some(status) => {
                let output = String::from_utf8_lossy(&run.stdout) + errors;
                Some(Outcome { output: output.into_owned(), status })
            }
            None => panic!("the guest's script was killed: {errors}"),
        }
    }
}

/// `scripts/numavm.sh` of the workspace.
fn script() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let up = here.ancestors().map(|folder| folder.join("scripts/numavm.sh"));
    up.into_iter().find(|script| script.exists()).unwrap_or_else(|| "scripts/numavm.sh".into())
}
