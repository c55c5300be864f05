//! The preloaded fault injection library: writes it to disk, configures it and reads its log.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fault::{InjectedFault, SystemCallKind};

const SHIM_LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/shim.so"));

/// `struct page` of `shim/shim.c`: 32 call counters, the number of injected faults, one internal number, a path.
const NUM_COUNTERS: usize = 34;
const PATH_BYTES: usize = 1024;

/// The shim library as a file that can be preloaded.
#[derive(Debug, Clone)]
pub(crate) struct FaultShim {
    library: PathBuf,
}

/// System calls of a run as the shim logged them.
#[derive(Debug, Clone)]
pub struct CallLog {
    calls: Vec<u64>,
    /// Number of calls that failed.
    pub(crate) num_faults: u64,
    /// File of the first failed call, if it was about a file.
    pub path: Option<String>,
}

impl CallLog {
    /// Returns the number of calls of a kind.
    pub fn num_calls_of_kind(&self, kind: SystemCallKind) -> u64 {
        self.calls[kind as usize]
    }
}

impl FaultShim {
    /// Writes the shim library into a folder.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn unpack_into(folder: &Path) -> io::Result<FaultShim> {
        let library = folder.join("shim.so");
        fs::write(&library, SHIM_LIBRARY)?;
        Ok(FaultShim { library })
    }

    /// Sets up a command to run with the shim. Calls on files below `under` are counted, `fault` is injected into
    /// them, and `page` is the log file.
    ///
    /// # Errors
    /// `page` cannot be written.
    pub(crate) fn preload_into_command(
        &self,
        command: &mut Command,
        program: &Path,
        under: &str,
        page: &Path,
        fault: Option<InjectedFault>,
    ) -> io::Result<()> {
        fs::write(page, [0; NUM_COUNTERS * 8 + PATH_BYTES])?;
        command.env("LD_PRELOAD", &self.library);
        command.env("GENUMA_FAULT_PROGRAM", program).env("GENUMA_FAULT_UNDER", under);
        command.env("GENUMA_FAULT_PAGE", page).env("GENUMA_FAULT_STDOUT", "yes");
        if let Some(fault) = fault {
            command.env("GENUMA_FAULT", fault.to_shim_argument());
        }
        Ok(())
    }

    /// Reads the log of a run that has ended.
    ///
    /// # Errors
    /// `page` cannot be read.
    pub fn read_call_log(page: &Path) -> io::Result<CallLog> {
        let bytes = fs::read(page)?;
        let (numbers, path) = bytes.split_at(NUM_COUNTERS * 8);
        let numbers: Vec<u64> =
            numbers.chunks_exact(8).map(|n| n.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))).collect();
        let path: Vec<u8> = path.iter().copied().take_while(|byte| *byte != 0).collect();
        let path = Some(String::from_utf8_lossy(&path).into_owned()).filter(|path| !path.is_empty());
        Ok(CallLog { num_faults: numbers[32], calls: numbers, path })
    }
}
