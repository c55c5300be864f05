//! The shim: the preloaded C library that injects faults. This module writes it to disk, configures it and reads its
//! log.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fault::{InjectedFault, SystemCallKind};

const SHIM_LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/shim.so"));

/// Number of 64-bit counters in the log file of the shim (`struct page` in `shim/shim.c`): 32 call counters, the number
/// of injected faults, and one internal number. A path follows them.
const NUM_COUNTERS: usize = 34;
const PATH_BYTES: usize = 1024;

/// The shim library in a file, which a process can preload.
#[derive(Debug, Clone)]
pub struct FaultShim {
    library: PathBuf,
}

/// What the shim does in a run, apart from counting calls.
#[derive(Debug, Clone, Copy, Default)]
pub struct ShimActions<'a> {
    /// The fault to inject, if any.
    pub fault: Option<InjectedFault>,
    /// The input that a fault replaces, and the file that is renamed to it.
    pub replacement: Option<[&'a Path; 2]>,
    /// File to which the shim appends the writes, syncs and renames.
    pub trace: Option<&'a Path>,
}

/// The calls of a run that the shim counted.
#[derive(Debug, Clone)]
pub(crate) struct SystemCallCounts {
    calls: Vec<u64>,
    /// Number of calls into which the fault was injected.
    pub(crate) num_faults: u64,
    /// Path of the file of the first call into which the fault was injected (the new path of a rename); `None` if there
    /// is no such call on a file.
    pub path: Option<String>,
}

impl SystemCallCounts {
    /// Returns the number of calls of a kind. Calls on files count only if the file is in the folder of the run, or is
    /// standard output.
    pub(crate) fn num_calls_of_kind(&self, kind: SystemCallKind) -> u64 {
        self.calls[kind as usize]
    }
}

impl FaultShim {
    /// Writes the shim library to a file in a folder.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_shim_into_folder(folder: &Path) -> io::Result<FaultShim> {
        let library = folder.join("shim.so");
        fs::write(&library, SHIM_LIBRARY)?;
        Ok(FaultShim { library })
    }

    /// Sets environment variables of `command` so that it runs with the shim. The shim acts on the executable `program`
    /// only. It counts calls (those on files only if the path begins with `under`, or on standard output), does what
    /// `actions` says at the counted calls, and keeps its log in the file `page`.
    ///
    /// # Errors
    /// `page` cannot be written.
    pub fn preload_into_command(
        &self,
        command: &mut Command,
        program: &Path,
        under: &str,
        page: &Path,
        actions: ShimActions<'_>,
    ) -> io::Result<()> {
        fs::write(page, [0; NUM_COUNTERS * 8 + PATH_BYTES])?;
        command.env("LD_PRELOAD", &self.library);
        command.env("GENUMA_FAULT_PROGRAM", program).env("GENUMA_FAULT_UNDER", under);
        command.env("GENUMA_FAULT_PAGE", page).env("GENUMA_FAULT_STDOUT", "yes");
        if let Some(fault) = actions.fault {
            command.env("GENUMA_FAULT", fault.format_for_shim_environment());
        }
        if let Some([input, replacement]) = actions.replacement {
            command.env("GENUMA_FAULT_REPLACED", input).env("GENUMA_FAULT_REPLACEMENT", replacement);
        }
        if let Some(trace) = actions.trace {
            command.env("GENUMA_FAULT_TRACE", trace);
        }
        Ok(())
    }

    /// Reads the log that the shim has written to the file `page`, after the run has ended.
    ///
    /// # Errors
    /// `page` cannot be read.
    pub(crate) fn read_system_call_counts(page: &Path) -> io::Result<SystemCallCounts> {
        let bytes = fs::read(page)?;
        let (numbers, path) = bytes.split_at(NUM_COUNTERS * 8);
        let numbers: Vec<u64> =
            numbers.chunks_exact(8).map(|n| n.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))).collect();
        let path: Vec<u8> = path.iter().copied().take_while(|byte| *byte != 0).collect();
        let path = Some(String::from_utf8_lossy(&path).into_owned()).filter(|path| !path.is_empty());
        Ok(SystemCallCounts { num_faults: numbers[32], calls: numbers, path })
    }
}
