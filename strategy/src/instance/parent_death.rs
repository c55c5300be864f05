//! Makes sure that child processes do not outlive this process.
#![allow(unsafe_code)] // Code between fork and exec.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};

/// Makes the kernel kill the process that `command` starts when the starting *thread* ends (prctl(2),
/// `PR_SET_PDEATHSIG`). That thread must wait for the process.
pub(crate) fn kill_process_when_parent_thread_ends(command: &mut Command) {
    let parent = getpid();
    let tie = move || -> io::Result<()> {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have ended before the signal was set.
        if getppid().map(Pid::as_raw_nonzero) != Some(parent.as_raw_nonzero()) {
            return Err(Errno::SRCH.into());
        }
        Ok(())
    };
    // SAFETY: only two system calls run between fork and exec; nothing allocates or locks.
    unsafe { command.pre_exec(tie) };
}
