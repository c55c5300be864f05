//! The preloaded shim: unpacked, told what to do, and asked what it saw.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fault::{Fault, Kind};

const SHIM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/shim.so"));

/// `struct page` of `shim/shim.c`: 32 numbers of calls, one of faults, one that is the shim's own, a path.
const NUMBERS: usize = 34;
const PATH: usize = 1024;

/// The shim as a file that can be preloaded.
#[derive(Debug, Clone)]
pub(crate) struct Shim {
    library: PathBuf,
}

/// What the shim saw of a run.
#[derive(Debug, Clone)]
pub struct Seen {
    calls: Vec<u64>,
    /// Calls that failed.
    pub(crate) fired: u64,
    /// The file of the first call that failed, if it was one of files.
    pub path: Option<String>,
}

impl Seen {
    /// How many calls of a kind there were.
    pub fn calls(&self, kind: Kind) -> u64 {
        self.calls[kind as usize]
    }
}

impl Shim {
    /// Writes the shim into a folder.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn unpack(folder: &Path) -> io::Result<Shim> {
        let library = folder.join("shim.so");
        fs::write(&library, SHIM)?;
        Ok(Shim { library })
    }

    /// Lets a command run with the shim: calls on files below `under` count, `fault` happens to them, `page` keeps what was seen.
    ///
    /// # Errors
    /// `page` cannot be written.
    pub(crate) fn preload(
        &self,
        command: &mut Command,
        program: &Path,
        under: &str,
        page: &Path,
        fault: Option<Fault>,
    ) -> io::Result<()> {
        fs::write(page, [0; NUMBERS * 8 + PATH])?;
        command.env("LD_PRELOAD", &self.library);
        command.env("GENUMA_FAULT_PROGRAM", program).env("GENUMA_FAULT_UNDER", under);
        command.env("GENUMA_FAULT_PAGE", page).env("GENUMA_FAULT_STDOUT", "yes");
        if let Some(fault) = fault {
            command.env("GENUMA_FAULT", fault.for_shim());
        }
        Ok(())
    }

    /// What was seen by a run that has ended.
    ///
    /// # Errors
    /// `page` cannot be read.
    pub fn seen(page: &Path) -> io::Result<Seen> {
        let bytes = fs::read(page)?;
        let (numbers, path) = bytes.split_at(NUMBERS * 8);
        let numbers: Vec<u64> = numbers
            .chunks_exact(8)
            .map(|n| n.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
            .collect();
        let path: Vec<u8> = path.iter().copied().take_while(|byte| *byte != 0).collect();
        let path = Some(String::from_utf8_lossy(&path).into_owned()).filter(|path| !path.is_empty());
        Ok(Seen { fired: numbers[32], calls: numbers, path })
    }
}
