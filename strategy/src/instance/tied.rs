//! Processes that do not outlive this one, however it ends.
#![allow(unsafe_code)] // What runs between fork and exec.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};

/// Has the kernel kill the process that `command` starts when the *thread* that starts it ends (prctl(2), `PR_SET_PDEATHSIG`): that thread
/// must wait for the process.
pub(super) fn to_this_thread(command: &mut Command) {
    let parent = getpid();
    let tie = move || -> io::Result<()> {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have ended before the kernel was asked.
        if getppid().map(Pid::as_raw_nonzero) != Some(parent.as_raw_nonzero()) {
            return Err(Errno::SRCH.into());
        }
        Ok(())
    };
    // SAFETY: between fork and exec only three system calls are made; nothing is allocated, nothing locked.
    unsafe { command.pre_exec(tie) };
}
