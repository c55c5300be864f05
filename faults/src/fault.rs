//! What can be done to a call of the system, and how it is written: `write:ENOSPC:17:0`.

use std::fmt;
use std::str::FromStr;

/// What kind of call fails. The order is that of `enum kind` in `shim/shim.c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A file is opened or made.
    Open,
    /// Bytes are read.
    Read,
    /// Bytes are written.
    Write,
    /// A file or folder is brought to the disk.
    Sync,
    /// A file gets another name.
    Rename,
    /// A file or folder is removed.
    Unlink,
    /// A file gets a further name.
    Link,
    /// A folder is made.
    Mkdir,
    /// The system is asked about a file.
    Stat,
    /// The place to read or write is moved.
    Seek,
    /// A file is given its length.
    Truncate,
    /// Room on the disk is asked for, or given back.
    Reserve,
    /// The system copies bytes from file to file.
    Copy,
    /// A folder is listed.
    List,
    /// A file is locked.
    Lock,
    /// Random bytes are asked for.
    Random,
    /// Memory or a file is mapped: all memory of the Rust code.
    Map,
    /// Memory is taken by C code.
    Alloc,
    /// A thread is started.
    Thread,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 19] = [
        Kind::Open,
        Kind::Read,
        Kind::Write,
        Kind::Sync,
        Kind::Rename,
        Kind::Unlink,
        Kind::Link,
        Kind::Mkdir,
        Kind::Stat,
        Kind::Seek,
        Kind::Truncate,
        Kind::Reserve,
        Kind::Copy,
        Kind::List,
        Kind::Lock,
        Kind::Random,
        Kind::Map,
        Kind::Alloc,
        Kind::Thread,
    ];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Open => "open",
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Sync => "sync",
            Kind::Rename => "rename",
            Kind::Unlink => "unlink",
            Kind::Link => "link",
            Kind::Mkdir => "mkdir",
            Kind::Stat => "stat",
            Kind::Seek => "seek",
            Kind::Truncate => "truncate",
            Kind::Reserve => "reserve",
            Kind::Copy => "copy",
            Kind::List => "list",
            Kind::Lock => "lock",
            Kind::Random => "random",
            Kind::Map => "map",
            Kind::Alloc => "alloc",
            Kind::Thread => "thread",
        }
    }

    /// Whether such a call is about a file, so that the error has a file to name.
    pub fn of_files(self) -> bool {
        !matches!(self, Kind::Random | Kind::Map | Kind::Alloc | Kind::Thread)
    }

    /// What a campaign does to calls of this kind.
    pub fn series(self) -> &'static [(What, Every)] {
        use Every::{Following, Once};
        use What::*;
        match self {
            Kind::Open => {
                &[(Eio, Once), (Enospc, Once), (Eacces, Once), (Emfile, Once), (Eintr, Once), (Kill, Once)]
            }
            Kind::Read => &[
                (Eio, Once),
                (Eio, Following(1)),
                (Eintr, Once),
                (Eintr, Following(2)),
                (Short, Once),
                (Short, Following(1)),
                (Kill, Once),
            ],
            Kind::Write => &[
                (Enospc, Once),
                (Enospc, Following(1)),
                (Eio, Once),
                (Eintr, Once),
                (Eintr, Following(2)),
                (Short, Once),
                (Short, Following(1)),
                (Kill, Once),
            ],
            Kind::Sync => &[(Eio, Once), (Enospc, Once), (Eintr, Once), (Kill, Once)],
            Kind::Rename => &[(Eio, Once), (Enospc, Once), (Eacces, Once), (Kill, Once)],
            Kind::Unlink => &[(Eio, Once), (Eacces, Once), (Kill, Once)],
            Kind::Link => &[(Eio, Once), (Enospc, Once), (Kill, Once)],
            Kind::Mkdir => &[(Enospc, Once), (Eacces, Once), (Kill, Once)],
            Kind::Stat => &[(Eio, Once), (Eacces, Once)],
            Kind::Seek => &[(Eio, Once)],
            Kind::Truncate => &[(Eio, Once), (Enospc, Once), (Kill, Once)],
            Kind::Reserve => &[(Enospc, Once), (Eopnotsupp, Once)],
            Kind::Copy => &[(Eio, Once), (Enospc, Once), (Kill, Once)],
            Kind::List => &[(Eio, Once), (Eacces, Once)],
            Kind::Lock => &[(Enolck, Once), (Eintr, Once)],
            Kind::Random => &[(Enosys, Once)],
            Kind::Map | Kind::Alloc => &[(Enomem, Once), (Enomem, Following(1))],
            Kind::Thread => &[(Eagain, Once), (Eagain, Following(1))],
        }
    }
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum What {
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
    /// Half of the bytes are moved.
    Short,
    /// The process is killed, in a write when half of it is done.
    Kill,
}

impl What {
    const ALL: [What; 12] = [
        What::Eio,
        What::Enospc,
        What::Eacces,
        What::Emfile,
        What::Eintr,
        What::Enomem,
        What::Eagain,
        What::Enolck,
        What::Enosys,
        What::Eopnotsupp,
        What::Short,
        What::Kill,
    ];

    /// The word for it, and what the shim is told.
    fn words(self) -> (&'static str, &'static str) {
        // The numbers are Linux's.
        match self {
            What::Eio => ("EIO", "5"),
            What::Enospc => ("ENOSPC", "28"),
            What::Eacces => ("EACCES", "13"),
            What::Emfile => ("EMFILE", "24"),
            What::Eintr => ("EINTR", "4"),
            What::Enomem => ("ENOMEM", "12"),
            What::Eagain => ("EAGAIN", "11"),
            What::Enolck => ("ENOLCK", "37"),
            What::Enosys => ("ENOSYS", "38"),
            What::Eopnotsupp => ("EOPNOTSUPP", "95"),
            What::Short => ("short", "short"),
            What::Kill => ("kill", "kill"),
        }
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        self.words().0
    }

    /// Whether a program that is right gets over it: the run must end as if nothing had been.
    pub fn harmless(self) -> bool {
        matches!(self, What::Eintr | What::Short)
    }
}

/// Which calls fail after the first one that does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Every {
    /// None.
    Once,
    /// Each so-manieth.
    Following(u64),
}

/// Calls of one kind that fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fault {
    /// Of which calls.
    pub kind: Kind,
    /// What becomes of them.
    pub what: What,
    /// The number of the first, from 1.
    pub at: u64,
    /// And then.
    pub every: Every,
}

impl Fault {
    fn step(&self) -> u64 {
        match self.every {
            Every::Once => 0,
            Every::Following(step) => step,
        }
    }

    /// What the shim is told.
    pub(crate) fn for_shim(&self) -> String {
        format!("{}:{}:{}:{}", self.kind.word(), self.what.words().1, self.at, self.step())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}:{}", self.kind.word(), self.what.word(), self.at, self.step())
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Fault, String> {
        let wrong = || format!("'{text}' is no fault: write KIND:WHAT:AT:EVERY, as in write:ENOSPC:17:0");
        let [kind, what, at, step] = text.split(':').collect::<Vec<_>>()[..] else { return Err(wrong()) };
        let step: u64 = step.parse().map_err(|_| wrong())?;
        Ok(Fault {
            kind: Kind::ALL.into_iter().find(|k| k.word() == kind).ok_or_else(wrong)?,
            what: What::ALL.into_iter().find(|w| w.word() == what).ok_or_else(wrong)?,
            at: at.parse().map_err(|_| wrong())?,
            every: if step == 0 { Every::Once } else { Every::Following(step) },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for kind in Kind::ALL {
            for &(what, every) in kind.series() {
                let fault = Fault { kind, what, at: 17, every };
                assert_eq!(fault.to_string().parse(), Ok(fault));
            }
        }
        assert!("write:ENOSPC:17".parse::<Fault>().is_err());
        assert!("write:ENOSUCH:17:0".parse::<Fault>().is_err());
    }
}
