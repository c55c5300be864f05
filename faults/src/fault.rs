//! Faults that are injected into system calls. A fault is written as `write:ENOSPC:17:0`: kind of call, effect, number
//! of the first failing call, and interval of further failing calls (0 for none).

use std::fmt;
use std::str::FromStr;

/// Kind of system call or library call in which faults can be injected. The order is that of `enum kind` in
/// `shim/shim.c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SystemCallKind {
    /// Opens or creates a file (open, openat).
    Open,
    /// Reads bytes from a file.
    Read,
    /// Writes bytes to a file.
    Write,
    /// Writes a file or folder to the disk (fsync).
    Sync,
    /// Renames a file.
    Rename,
    /// Removes a file or an empty folder.
    Unlink,
    /// Creates a hard or symbolic link.
    Link,
    /// Creates a folder.
    Mkdir,
    /// Reads file metadata.
    Stat,
    /// Moves the file offset.
    Seek,
    /// Sets the length of a file.
    Truncate,
    /// Allocates or frees disk space of a file (fallocate).
    AllocateDiskSpace,
    /// Copies bytes between files inside the kernel (copy_file_range, sendfile).
    Copy,
    /// Lists the entries of a folder.
    ListFolder,
    /// Locks a file.
    Lock,
    /// Gets random bytes from the kernel (getrandom).
    GetRandomBytes,
    /// Maps memory or a file (mmap). The allocator of Rust code gets all its memory in this way.
    MapMemory,
    /// Allocates memory in C code (malloc).
    AllocateMemory,
    /// Starts a thread.
    StartThread,
}

impl SystemCallKind {
    /// All kinds of calls.
    pub(crate) const ALL_CALL_KINDS: [SystemCallKind; 19] = [
        SystemCallKind::Open,
        SystemCallKind::Read,
        SystemCallKind::Write,
        SystemCallKind::Sync,
        SystemCallKind::Rename,
        SystemCallKind::Unlink,
        SystemCallKind::Link,
        SystemCallKind::Mkdir,
        SystemCallKind::Stat,
        SystemCallKind::Seek,
        SystemCallKind::Truncate,
        SystemCallKind::AllocateDiskSpace,
        SystemCallKind::Copy,
        SystemCallKind::ListFolder,
        SystemCallKind::Lock,
        SystemCallKind::GetRandomBytes,
        SystemCallKind::MapMemory,
        SystemCallKind::AllocateMemory,
        SystemCallKind::StartThread,
    ];

    /// Returns the name of the kind in a trial, such as `write`.
    pub(crate) fn call_kind_name(self) -> &'static str {
        match self {
            SystemCallKind::Open => "open",
            SystemCallKind::Read => "read",
            SystemCallKind::Write => "write",
            SystemCallKind::Sync => "sync",
            SystemCallKind::Rename => "rename",
            SystemCallKind::Unlink => "unlink",
            SystemCallKind::Link => "link",
            SystemCallKind::Mkdir => "mkdir",
            SystemCallKind::Stat => "stat",
            SystemCallKind::Seek => "seek",
            SystemCallKind::Truncate => "truncate",
            SystemCallKind::AllocateDiskSpace => "reserve",
            SystemCallKind::Copy => "copy",
            SystemCallKind::ListFolder => "list",
            SystemCallKind::Lock => "lock",
            SystemCallKind::GetRandomBytes => "random",
            SystemCallKind::MapMemory => "map",
            SystemCallKind::AllocateMemory => "alloc",
            SystemCallKind::StartThread => "thread",
        }
    }

    /// Returns whether calls of this kind act on a file. The error message of a failed run must then name a file or
    /// standard output.
    pub(crate) fn is_file_call(self) -> bool {
        !matches!(
            self,
            SystemCallKind::GetRandomBytes
                | SystemCallKind::MapMemory
                | SystemCallKind::AllocateMemory
                | SystemCallKind::StartThread
        )
    }

    /// Returns the faults that a campaign injects into calls of this kind: what a failing call does, and which calls
    /// fail.
    pub(crate) fn faults_to_inject(self) -> &'static [(FaultEffect, FaultRepetition)] {
        use FaultEffect::*;
        use FaultRepetition::{EveryNth, Once};
        match self {
            SystemCallKind::Open => &[
                (Eio, Once),
                (Enospc, Once),
                (Eacces, Once),
                (Emfile, Once),
                (Eintr, Once),
                (Kill, Once),
                (Terminate, Once),
            ],
            SystemCallKind::Read => &[
                (Eio, Once),
                (Eio, EveryNth(1)),
                (Eintr, Once),
                (Eintr, EveryNth(2)),
                (ShortTransfer, Once),
                (ShortTransfer, EveryNth(1)),
                (Kill, Once),
                (Interrupt, Once),
            ],
            SystemCallKind::Write => &[
                (Enospc, Once),
                (Enospc, EveryNth(1)),
                (Eio, Once),
                (Eintr, Once),
                (Eintr, EveryNth(2)),
                (ShortTransfer, Once),
                (ShortTransfer, EveryNth(1)),
                (Kill, Once),
                (Terminate, Once),
                (Interrupt, Once),
                (HangUp, Once),
            ],
            SystemCallKind::Sync => &[(Eio, Once), (Enospc, Once), (Eintr, Once), (Kill, Once), (Terminate, Once)],
            SystemCallKind::Rename => &[
                (Eio, Once),
                (Enospc, Once),
                (Eacces, Once),
                (Kill, Once),
                (Terminate, Once),
                (Interrupt, Once),
                (HangUp, Once),
            ],
            SystemCallKind::Unlink => &[(Eio, Once), (Eacces, Once), (Kill, Once), (Terminate, Once)],
            SystemCallKind::Link => &[(Eio, Once), (Enospc, Once), (Kill, Once), (Terminate, Once)],
            SystemCallKind::Mkdir => &[(Enospc, Once), (Eacces, Once), (Kill, Once), (HangUp, Once)],
            SystemCallKind::Stat => &[(Eio, Once), (Eacces, Once)],
            SystemCallKind::Seek => &[(Eio, Once)],
            SystemCallKind::Truncate => &[(Eio, Once), (Enospc, Once), (Kill, Once)],
            SystemCallKind::AllocateDiskSpace => &[(Enospc, Once), (Eopnotsupp, Once)],
            SystemCallKind::Copy => &[(Eio, Once), (Enospc, Once), (Kill, Once)],
            SystemCallKind::ListFolder => &[(Eio, Once), (Eacces, Once)],
            SystemCallKind::Lock => &[(Enolck, Once), (Eintr, Once)],
            SystemCallKind::GetRandomBytes => &[(Enosys, Once)],
            SystemCallKind::MapMemory | SystemCallKind::AllocateMemory => &[(Enomem, Once), (Enomem, EveryNth(1))],
            SystemCallKind::StartThread => &[(Eagain, Once), (Eagain, EveryNth(1))],
        }
    }
}

/// What a call with an injected fault does: it fails with this error of Linux (such as ENOSPC), transfers fewer bytes
/// than requested, kills the process, or succeeds after a signal or after an input was replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum FaultEffect {
    Eio,
    Enospc,
    Eacces,
    Emfile,
    Eintr,
    Enomem,
    Eagain,
    Enolck,
    Enosys,
    Eopnotsupp,
    /// The call transfers half of the requested bytes (`readv`, `writev`: of the first buffer that is not empty). A
    /// transfer of one byte is complete.
    ShortTransfer,
    /// The process is killed. If the call is a write, half of its bytes are written before.
    Kill,
    /// The process gets the signal SIGTERM before the call, which succeeds.
    Terminate,
    /// The process gets the signal SIGINT before the call, which succeeds.
    Interrupt,
    /// The process gets the signal SIGHUP before the call, which succeeds.
    HangUp,
    /// Another file is renamed over an input before the call, which succeeds.
    ReplaceInput,
}

impl FaultEffect {
    const ALL: [FaultEffect; 16] = [
        FaultEffect::Eio,
        FaultEffect::Enospc,
        FaultEffect::Eacces,
        FaultEffect::Emfile,
        FaultEffect::Eintr,
        FaultEffect::Enomem,
        FaultEffect::Eagain,
        FaultEffect::Enolck,
        FaultEffect::Enosys,
        FaultEffect::Eopnotsupp,
        FaultEffect::ShortTransfer,
        FaultEffect::Kill,
        FaultEffect::Terminate,
        FaultEffect::Interrupt,
        FaultEffect::HangUp,
        FaultEffect::ReplaceInput,
    ];

    fn name_and_shim_code(self) -> (&'static str, &'static str) {
        // Linux errno values.
        match self {
            FaultEffect::Eio => ("EIO", "5"),
            FaultEffect::Enospc => ("ENOSPC", "28"),
            FaultEffect::Eacces => ("EACCES", "13"),
            FaultEffect::Emfile => ("EMFILE", "24"),
            FaultEffect::Eintr => ("EINTR", "4"),
            FaultEffect::Enomem => ("ENOMEM", "12"),
            FaultEffect::Eagain => ("EAGAIN", "11"),
            FaultEffect::Enolck => ("ENOLCK", "37"),
            FaultEffect::Enosys => ("ENOSYS", "38"),
            FaultEffect::Eopnotsupp => ("EOPNOTSUPP", "95"),
            FaultEffect::ShortTransfer => ("short", "short"),
            FaultEffect::Kill => ("kill", "kill"),
            FaultEffect::Terminate => ("term", "term"),
            FaultEffect::Interrupt => ("int", "int"),
            FaultEffect::HangUp => ("hup", "hup"),
            FaultEffect::ReplaceInput => ("replace", "replace"),
        }
    }

    /// Returns the number of the signal that the program gets and handles; `None` for other effects.
    pub(crate) fn signal_handled_by_program(self) -> Option<i32> {
        match self {
            FaultEffect::HangUp => Some(1),
            FaultEffect::Interrupt => Some(2),
            FaultEffect::Terminate => Some(15),
            _ => None,
        }
    }

    /// Returns the name of the effect in a trial, such as `ENOSPC` or `short`.
    pub(crate) fn effect_name(self) -> &'static str {
        self.name_and_shim_code().0
    }
}

/// Which calls of the kind fail after the first failing call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultRepetition {
    /// None: later calls succeed.
    Once,
    /// Every n-th call after the first failing one.
    EveryNth(u64),
}

/// An injected fault: which system calls of one kind fail, and in which way. Written as `KIND:WHAT:AT:EVERY`, such as
/// `write:ENOSPC:17:0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InjectedFault {
    /// Kind of the calls that fail.
    pub kind: SystemCallKind,
    /// What a failing call does: return an error, transfer fewer bytes, or kill the process.
    pub what: FaultEffect,
    /// Number of the first failing call among the calls of its kind, from 1.
    pub at: u64,
    /// Which later calls fail.
    pub every: FaultRepetition,
}

impl InjectedFault {
    fn repeat_interval(&self) -> u64 {
        match self.every {
            FaultRepetition::Once => 0,
            FaultRepetition::EveryNth(step) => step,
        }
    }

    /// Formats the fault for the environment variable GENUMA_FAULT, which the shim reads.
    pub(crate) fn format_for_shim_environment(self) -> String {
        format!(
            "{}:{}:{}:{}",
            self.kind.call_kind_name(),
            self.what.name_and_shim_code().1,
            self.at,
            self.repeat_interval()
        )
    }
}

impl fmt::Display for InjectedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}:{}", self.kind.call_kind_name(), self.what.effect_name(), self.at, self.repeat_interval())
    }
}

impl FromStr for InjectedFault {
    type Err = String;

    fn from_str(text: &str) -> Result<InjectedFault, String> {
        let wrong = || format!("'{text}' is not a fault: write KIND:WHAT:AT:EVERY, as in write:ENOSPC:17:0");
        let [kind, what, at, step] = text.split(':').collect::<Vec<_>>()[..] else { return Err(wrong()) };
        let step: u64 = step.parse().map_err(|_| wrong())?;
        Ok(InjectedFault {
            kind: SystemCallKind::ALL_CALL_KINDS.into_iter().find(|k| k.call_kind_name() == kind).ok_or_else(wrong)?,
            what: FaultEffect::ALL.into_iter().find(|w| w.effect_name() == what).ok_or_else(wrong)?,
            at: at.parse().map_err(|_| wrong())?,
            every: if step == 0 { FaultRepetition::Once } else { FaultRepetition::EveryNth(step) },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for kind in SystemCallKind::ALL_CALL_KINDS {
            for &(what, every) in kind.faults_to_inject() {
                let fault = InjectedFault { kind, what, at: 17, every };
                assert_eq!(fault.to_string().parse(), Ok(fault));
            }
        }
        assert!("write:ENOSPC:17".parse::<InjectedFault>().is_err());
        assert!("write:ENOSUCH:17:0".parse::<InjectedFault>().is_err());
    }
}
