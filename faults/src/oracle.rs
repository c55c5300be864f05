//! What a run under a fault may do: end as if nothing had been, or say in one line what is wrong and leave all as it was.

use std::fmt;
use std::path::Path;

use crate::case::Case;
use crate::fault::{Fault, Kind, What};
use crate::process::{Ended, How};
use crate::shim::Seen;
use crate::snapshot::{Snapshot, lasting};

/// What became of a run. The first five are right; each of the others breaks a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// Exit 0 and the same bytes as without the fault.
    Same,
    /// Exit 1, one line that names the file, nothing new under a final name, nothing left behind.
    Refused,
    /// Killed, as it was to be; every final name has its old or its whole new file, and what came after made all of them.
    Killed,
    /// Exit 1 and one line after all results, whole, had their final names: the folder could not be brought to the disk, or standard
    /// output not be written.
    Late,
    /// Rust's standard library or the C library ended it for want of memory and said so; all files are as they were.
    Memory,
    /// Exit 0 and other bytes.
    Differs,
    /// It failed, and yet a final name has something new, or nothing.
    Changed,
    /// It failed, and left a file behind that is none of its results.
    Left,
    /// It panicked.
    Panic,
    /// It died by a signal.
    Signal,
    /// It did not end.
    Hang,
    /// It ended before a process that it had started.
    Orphan,
    /// It failed without one line of error.
    Words,
    /// Its line of error names no file.
    Unnamed,
    /// It ended with another code than 0 and 1.
    Code,
    /// After it, the same command, or one that takes it up, does not make the results.
    Lost,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Outcome; 16] = [
        Outcome::Same,
        Outcome::Refused,
        Outcome::Killed,
        Outcome::Late,
        Outcome::Memory,
        Outcome::Differs,
        Outcome::Changed,
        Outcome::Left,
        Outcome::Panic,
        Outcome::Signal,
        Outcome::Hang,
        Outcome::Orphan,
        Outcome::Words,
        Outcome::Unnamed,
        Outcome::Code,
        Outcome::Lost,
    ];

    /// Whether a promise is broken.
    pub fn is_violation(self) -> bool {
        self >= Outcome::Differs
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Same => "same",
            Outcome::Refused => "refused",
            Outcome::Killed => "killed",
            Outcome::Late => "late",
            Outcome::Memory => "memory",
            Outcome::Differs => "differs",
            Outcome::Changed => "changed",
            Outcome::Left => "left",
            Outcome::Panic => "panic",
            Outcome::Signal => "signal",
            Outcome::Hang => "hang",
            Outcome::Orphan => "orphan",
            Outcome::Words => "words",
            Outcome::Unnamed => "unnamed",
            Outcome::Code => "code",
            Outcome::Lost => "lost",
        }
    }
}

/// What became of a run, and the detail that shows it.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// What.
    pub outcome: Outcome,
    /// Which file, which line.
    pub detail: String,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.outcome.word(), self.detail)
    }
}

/// A verdict.
pub fn verdict(outcome: Outcome, detail: impl Into<String>) -> Verdict {
    Verdict { outcome, detail: detail.into() }
}

/// What a run without faults printed and made.
#[derive(Debug, Clone)]
pub struct Undisturbed {
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// What lay in `{made}` then.
    pub files: Snapshot,
}

/// A run and what lay around it.
#[derive(Debug)]
pub struct Run<'a> {
    /// The command.
    pub case: &'a Case,
    /// How it ended.
    pub ended: &'a Ended,
    /// `{made}` before it.
    pub before: &'a Snapshot,
    /// `{made}` after it.
    pub after: &'a Snapshot,
    /// The same command without faults.
    pub want: &'a Undisturbed,
    /// The folder all paths of the run begin with.
    pub root: &'a Path,
    /// The name of a file that is damaged.
    pub damaged: Option<&'a str>,
}

impl Run<'_> {
    /// The verdict on a run under a fault. A killed run is judged further by what comes after it.
    pub fn judge(&self, fault: Option<Fault>, seen: Option<&Seen>) -> Verdict {
        let killed = fault.is_some_and(|fault| fault.what == What::Kill);
        let of_memory = fault.is_some_and(|fault| matches!(fault.kind, Kind::Map | Kind::Alloc));
        match self.ended.how {
            How::Signal(_) | How::Exit(101) if of_memory && self.says_no_memory() => {
                self.untouched().unwrap_or_else(|| verdict(Outcome::Memory, self.last_words()))
            }
            _ if self.ended.stderr.contains("panicked at") => verdict(Outcome::Panic, self.last_words()),
            How::Hung => verdict(Outcome::Hang, self.last_words()),
            How::Signal(9) if killed => self.whole_or_old(),
            How::Signal(signal) => verdict(Outcome::Signal, format!("{signal}; {}", self.last_words())),
            _ if self.ended.orphans => verdict(Outcome::Orphan, self.last_words()),
            How::Exit(0) => self.same(fault.is_some_and(|fault| fault.kind == Kind::Unlink)),
            How::Exit(101) => verdict(Outcome::Panic, self.last_words()),
            How::Exit(1) => self.untouched().unwrap_or_else(|| self.said(fault, seen)),
            How::Exit(code) => verdict(Outcome::Code, format!("{code}; {}", self.last_words())),
        }
    }

    /// Whether the libraries below genuma ended it, which they do by a signal or a panic when there is no memory.
    fn says_no_memory(&self) -> bool {
        let words = ["memory allocation of", "Fatal glibc error", "failed to allocate an alternative stack"];
        words.iter().any(|words| self.ended.stderr.contains(words))
    }

    fn last_words(&self) -> String {
        let lines: Vec<&str> = self.ended.stderr.lines().collect();
        lines[lines.len().saturating_sub(3)..].join(" | ")
    }

    /// Whether all is as without the fault, which may be that nothing could be removed.
    pub fn same(&self, unlinked: bool) -> Verdict {
        if !self.case.exact {
            return verdict(Outcome::Same, "");
        }
        if self.ended.stdout != self.want.stdout {
            return verdict(Outcome::Differs, "standard output");
        }
        match self.unlike(unlinked) {
            Some(name) => verdict(Outcome::Differs, name),
            None => verdict(Outcome::Same, ""),
        }
    }

    /// The first file that is not as it should be.
    fn unlike(&self, unlinked: bool) -> Option<String> {
        // What could not be removed stays: a work folder, which is said, and a result's old file, which the next run removes.
        let warned = self.ended.stderr.contains("warning: ");
        let stays = |name: &str| {
            let hidden = name.rsplit('/').next().is_some_and(|name| name.starts_with('.'));
            let old = unlinked && hidden && name.ends_with(".partial");
            (old || warned && self.keeps(name)) && !self.want.files.contains_key(name)
        };
        let names = self.want.files.keys().chain(self.after.keys()).filter(|name| !stays(name));
        let unlike = |name: &&String| match (self.want.files.get(*name), self.after.get(*name)) {
            (Some(want), Some(is)) => lasting(name, want) != lasting(name, is),
            _ => true,
        };
        names.into_iter().find(unlike).cloned()
    }

    /// Every file of the results is as it was, or as it is to be.
    fn whole_or_old(&self) -> Verdict {
        let half = self.want.files.iter().find(|(name, want)| {
            let is = self.after.get(*name);
            let new = is.is_some_and(|is| self.alike(name, want, is));
            !new && is != self.before.get(*name)
        });
        match half {
            Some((name, _)) => verdict(Outcome::Changed, format!("{name} is neither old nor whole")),
            None => verdict(Outcome::Killed, ""),
        }
    }

    /// `None` if a run that failed left all as it was, but for what it may keep.
    fn untouched(&self) -> Option<Verdict> {
        let names = self.before.keys().chain(self.after.keys()).filter(|name| !self.keeps(name));
        let other = names.into_iter().find(|name| self.before.get(*name) != self.after.get(*name))?;
        // All that is made is there: what failed came after.
        let all = self
            .want
            .files
            .iter()
            .all(|(name, want)| self.after.get(name).is_some_and(|is| self.alike(name, want, is)));
        if all && self.ended.how == How::Exit(1) && self.errors().len() == 1 {
            return Some(verdict(Outcome::Late, self.last_words()));
        }
        let result = self.want.files.contains_key(other) || self.before.contains_key(other);
        let outcome = if result { Outcome::Changed } else { Outcome::Left };
        Some(verdict(outcome, format!("{other}; {}", self.last_words())))
    }

    /// Whether a file holds what it should, as far as that is the same each time.
    fn alike(&self, name: &str, want: &[u8], is: &[u8]) -> bool {
        !self.case.exact || lasting(name, want) == lasting(name, is)
    }

    /// Whether a run that fails may leave this file.
    fn keeps(&self, name: &str) -> bool {
        self.case.keeps.iter().any(|folder| name.starts_with(folder))
    }

    fn errors(&self) -> Vec<&str> {
        self.ended.stderr.lines().filter(|line| line.contains("error: ")).collect()
    }

    /// One line, and in it the file, if it is a fault of files.
    fn said(&self, fault: Option<Fault>, seen: Option<&Seen>) -> Verdict {
        let [error] = self.errors()[..] else { return verdict(Outcome::Words, self.last_words()) };
        let of_files = fault.is_none_or(|fault| fault.kind.of_files());
        let root = self.root.to_string_lossy();
        let words = [Some(&*root), Some("standard output"), self.damaged];
        let named = words.into_iter().flatten().any(|words| error.contains(words));
        if of_files && !named {
            let path = seen.and_then(|seen| seen.path.as_deref()).unwrap_or_default();
            return verdict(Outcome::Unnamed, format!("{path}: {error}"));
        }
        verdict(Outcome::Refused, error)
    }
}
