//! Decides whether a run with a fault behaved correctly. It must end like the run without the fault, or report the
//! error in one line and leave all files unchanged, or, if the fault kills it, leave no incomplete result.

use std::fmt;
use std::path::Path;

use crate::fault::{FaultEffect, InjectedFault, SystemCallKind};
use crate::process::{ExitKind, ProcessResult};
use crate::shim::SystemCallCounts;
use crate::snapshot::{FolderSnapshot, strip_measurements_from_content};
use crate::test_cases::TestCase;

/// Outcome of a run. The first six are correct; all others are violations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunOutcome {
    /// Correct: exit code 0 and the same results as without the fault, measured values such as times aside. Results of
    /// a damaged file without a checksum may differ.
    SameResults,
    /// Correct failure: exit code 1 (or 2 with a damaged input file), one error line that names the file (if the fault is
    /// about one), all result files unchanged, and no temporary files left but those that the case permits.
    FailedCleanly,
    /// Correct: the fault killed the process. Each result file is the old one or the complete new one, and a repeated
    /// run made all results.
    Killed,
    /// Correct: a signal (SIGTERM, SIGINT, SIGHUP) ended the run with the exit code 128 plus its number. Either
    /// all files are unchanged, or all results are complete, and a repeated run made all results.
    Interrupted,
    /// Correct failure: exit code 1 and one error line after all result files were complete. Only a later action
    /// failed, such as syncing the folder or writing to standard output.
    FailedAfterResults,
    /// Correct: Rust's standard library or the C library aborted for lack of memory, with a message. All result files
    /// are unchanged.
    OutOfMemory,
    /// Violation: exit code 0, but other results than without the fault.
    DifferentResults,
    /// Violation: the run failed, but a result file was changed or removed; or the fault killed the run, and a result
    /// file is neither the old one nor the complete new one.
    ChangedAfterFailure,
    /// Violation: the run failed and left a file that is neither a result nor permitted by the case.
    LeftoverFile,
    /// Violation: the run panicked.
    Panic,
    /// Violation: a signal ended the run, other than that of the fault.
    Signal,
    /// Violation: the run exceeded the time limit.
    Timeout,
    /// Violation: a process that the run had started was still running after the run ended.
    OrphanProcess,
    /// Violation: the run failed without an error line, or with several.
    NoErrorLine,
    /// Violation: the error line names no file of the run, nor its damaged input file or standard output.
    FileNotNamed,
    /// Violation: the exit code is neither 0 nor 1 (101 is a panic), or the trial could not be run.
    WrongExitCode,
    /// Violation: after a failure or a kill, a repeated or resumed run does not make the results.
    CannotRecover,
}

impl RunOutcome {
    /// All outcomes, the correct ones first.
    pub(crate) const ALL_OUTCOMES: [RunOutcome; 17] = [
        RunOutcome::SameResults,
        RunOutcome::FailedCleanly,
        RunOutcome::Killed,
        RunOutcome::Interrupted,
        RunOutcome::FailedAfterResults,
        RunOutcome::OutOfMemory,
        RunOutcome::DifferentResults,
        RunOutcome::ChangedAfterFailure,
        RunOutcome::LeftoverFile,
        RunOutcome::Panic,
        RunOutcome::Signal,
        RunOutcome::Timeout,
        RunOutcome::OrphanProcess,
        RunOutcome::NoErrorLine,
        RunOutcome::FileNotNamed,
        RunOutcome::WrongExitCode,
        RunOutcome::CannotRecover,
    ];

    /// Returns whether the program behaved wrongly.
    pub fn is_violation(self) -> bool {
        self >= RunOutcome::DifferentResults
    }

    /// Returns the name of the outcome in result tables, such as `same`.
    pub(crate) fn outcome_name(self) -> &'static str {
        match self {
            RunOutcome::SameResults => "same",
            RunOutcome::FailedCleanly => "refused",
            RunOutcome::Killed => "killed",
            RunOutcome::Interrupted => "interrupted",
            RunOutcome::FailedAfterResults => "late",
            RunOutcome::OutOfMemory => "memory",
            RunOutcome::DifferentResults => "differs",
            RunOutcome::ChangedAfterFailure => "changed",
            RunOutcome::LeftoverFile => "left",
            RunOutcome::Panic => "panic",
            RunOutcome::Signal => "signal",
            RunOutcome::Timeout => "hang",
            RunOutcome::OrphanProcess => "orphan",
            RunOutcome::NoErrorLine => "words",
            RunOutcome::FileNotNamed => "unnamed",
            RunOutcome::WrongExitCode => "code",
            RunOutcome::CannotRecover => "lost",
        }
    }
}

/// The outcome of a run with its evidence.
#[derive(Debug, Clone)]
pub struct RunVerdict {
    /// Outcome: correct, or the rule that the run violated.
    pub outcome: RunOutcome,
    /// Evidence of the outcome: the file that differs, the exit code or signal, or the last lines of standard error.
    pub detail: String,
}

impl fmt::Display for RunVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.outcome.outcome_name(), self.detail)
    }
}

/// Creates a verdict of an outcome and its evidence.
pub(crate) fn new_verdict(outcome: RunOutcome, detail: impl Into<String>) -> RunVerdict {
    RunVerdict { outcome, detail: detail.into() }
}

/// Output of a run without faults, with which other runs are compared.
#[derive(Debug, Clone)]
pub(crate) struct ReferenceRun {
    /// Standard output of the run.
    pub stdout: Vec<u8>,
    /// Files in the output folder `{made}` after the run.
    pub files: FolderSnapshot,
}

/// A run that is to be judged, with the files before and after the run.
#[derive(Debug)]
pub(crate) struct ObservedRun<'a> {
    /// The test case: command, inputs, and what a failed run may leave.
    pub case: &'a TestCase,
    /// Exit status and output of the run.
    pub ended: &'a ProcessResult,
    /// Files in the output folder `{made}` before the run.
    pub before: &'a FolderSnapshot,
    /// Files in the output folder `{made}` after the run.
    pub after: &'a FolderSnapshot,
    /// The run without faults.
    pub reference: &'a ReferenceRun,
    /// Folder that contains all files of the run. An error line that contains its path counts as naming a file.
    pub root: &'a Path,
    /// Name of the damaged input file, if the run had one.
    pub damaged_file: Option<&'a str>,
}

impl ObservedRun<'_> {
    /// Judges a run with the injected fault `fault` (`None` without) and the calls `seen` that the shim counted. The
    /// verdict on a killed run is preliminary: it also depends on whether a repeated run succeeds.
    pub(crate) fn judge_run(&self, fault: Option<InjectedFault>, seen: Option<&SystemCallCounts>) -> RunVerdict {
        let killed = fault.is_some_and(|fault| fault.what == FaultEffect::Kill);
        let sent = fault.and_then(|fault| fault.what.signal_handled_by_program());
        let of_memory =
            fault.is_some_and(|fault| matches!(fault.kind, SystemCallKind::MapMemory | SystemCallKind::AllocateMemory));
        match self.ended.how {
            ExitKind::Signal(_) | ExitKind::Exit(101) if of_memory && self.reports_out_of_memory() => self
                .judge_changes_after_failure()
                .unwrap_or_else(|| new_verdict(RunOutcome::OutOfMemory, self.last_stderr_lines())),
            _ if self.ended.stderr.contains("panicked at") => new_verdict(RunOutcome::Panic, self.last_stderr_lines()),
            ExitKind::TimedOut => new_verdict(RunOutcome::Timeout, self.last_stderr_lines()),
            ExitKind::Signal(9) if killed => self.judge_killed_run(),
            // The signal came before the program had its handler.
            ExitKind::Signal(signal) if sent == Some(signal) => self.judge_interrupted_run(),
            ExitKind::Signal(signal) => {
                new_verdict(RunOutcome::Signal, format!("{signal}; {}", self.last_stderr_lines()))
            }
            _ if self.ended.has_orphans => new_verdict(RunOutcome::OrphanProcess, self.last_stderr_lines()),
            ExitKind::Exit(code) if sent.is_some_and(|signal| code == 128 + signal) => self.judge_interrupted_run(),
            ExitKind::Exit(0) => {
                let unlinked = fault.is_some_and(|fault| fault.kind == SystemCallKind::Unlink);
                let verdict = self.compare_output_with_reference(unlinked);
                let may_differ = self.case.is_estimate && fault.is_some();
                if may_differ { new_verdict(RunOutcome::SameResults, verdict.detail) } else { verdict }
            }
            ExitKind::Exit(101) => new_verdict(RunOutcome::Panic, self.last_stderr_lines()),
            // A file whose beginning is damaged is of another format, with which the command line may be wrong usage.
            ExitKind::Exit(code) if code == 1 || code == 2 && self.damaged_file.is_some() => {
                self.judge_changes_after_failure().unwrap_or_else(|| self.judge_error_message(fault, seen))
            }
            ExitKind::Exit(code) => {
                new_verdict(RunOutcome::WrongExitCode, format!("{code}; {}", self.last_stderr_lines()))
            }
        }
    }

    /// Returns whether the standard error says that a library aborted for lack of memory.
    fn reports_out_of_memory(&self) -> bool {
        let words = ["memory allocation of", "Fatal glibc error", "failed to allocate an alternative stack"];
        words.iter().any(|words| self.ended.stderr.contains(words))
    }

    fn last_stderr_lines(&self) -> String {
        let lines: Vec<&str> = self.ended.stderr.lines().collect();
        lines[lines.len().saturating_sub(3)..].join(" | ")
    }

    /// Compares standard output and files with those of the run without faults. If the fault prevented the removal of
    /// files (`unlinked`), hidden partial files may be left.
    pub(crate) fn compare_output_with_reference(&self, unlinked: bool) -> RunVerdict {
        if !self.case.has_measured_stdout && self.ended.stdout != self.reference.stdout {
            return new_verdict(RunOutcome::DifferentResults, "standard output");
        }
        match self.first_different_file(unlinked) {
            Some(name) => new_verdict(RunOutcome::DifferentResults, name),
            None => new_verdict(RunOutcome::SameResults, ""),
        }
    }

    /// Returns the name of the first file that differs from the run without faults; `None` if all are equal.
    /// `unlinked`: see [`Self::compare_output_with_reference`].
    fn first_different_file(&self, unlinked: bool) -> Option<String> {
        // Files that could not be removed may stay: a work folder (with a warning), and an old result that the next
        // run removes.
        let warned = self.ended.stderr.contains("warning: ");
        let stays = |name: &str| {
            let hidden = name.rsplit('/').next().is_some_and(|name| name.starts_with('.'));
            let old = unlinked && hidden && name.ends_with(".partial");
            (old || warned && self.may_be_left_by_failed_run(name)) && !self.reference.files.contains_key(name)
        };
        // The objects that a step reads are in the folder of its results.
        let is_damaged_input =
            |name: &str| name.rsplit('/').next() == self.damaged_file && self.before.get(name) == self.after.get(name);
        let names = self.reference.files.keys().chain(self.after.keys());
        let names = names.filter(|name| !stays(name) && !is_damaged_input(name));
        let unlike = |name: &&String| match (self.reference.files.get(*name), self.after.get(*name)) {
            (Some(want), Some(is)) => !has_expected_content(name, want, is),
            _ => true,
        };
        names.into_iter().find(unlike).cloned()
    }

    /// Judges a killed run: each result file must be the old one or the complete new one.
    fn judge_killed_run(&self) -> RunVerdict {
        let half = self.reference.files.iter().find(|(name, want)| {
            let is = self.after.get(*name);
            let new = is.is_some_and(|is| has_expected_content(name, want, is));
            !new && is != self.before.get(*name)
        });
        match half {
            Some((name, _)) => new_verdict(RunOutcome::ChangedAfterFailure, format!("{name} is neither old nor whole")),
            None => new_verdict(RunOutcome::Killed, ""),
        }
    }

    /// Judges a run that a signal ended: all files must be as before, or all results complete.
    fn judge_interrupted_run(&self) -> RunVerdict {
        let interrupted = || new_verdict(RunOutcome::Interrupted, "");
        if self.first_different_file(false).is_none() {
            return interrupted();
        }
        self.judge_changes_after_failure().unwrap_or_else(interrupted)
    }

    /// Returns a verdict if a failed run changed or left files that it must not change or leave; otherwise `None`. The
    /// verdict is no violation if all results are complete and there is one error line: the failure then came after the
    /// results.
    fn judge_changes_after_failure(&self) -> Option<RunVerdict> {
        let names = self.before.keys().chain(self.after.keys()).filter(|name| !self.may_be_left_by_failed_run(name));
        let other = names.into_iter().find(|name| self.before.get(*name) != self.after.get(*name))?;
        // All results are complete: the failure came afterwards.
        let all = self
            .reference
            .files
            .iter()
            .all(|(name, want)| self.after.get(name).is_some_and(|is| has_expected_content(name, want, is)));
        if all && self.ended.how == ExitKind::Exit(1) && self.error_lines().len() == 1 {
            return Some(new_verdict(RunOutcome::FailedAfterResults, self.last_stderr_lines()));
        }
        let result = self.reference.files.contains_key(other) || self.before.contains_key(other);
        let outcome = if result { RunOutcome::ChangedAfterFailure } else { RunOutcome::LeftoverFile };
        Some(new_verdict(outcome, format!("{other}; {}", self.last_stderr_lines())))
    }

    /// Returns whether a failed run may leave or change this file.
    fn may_be_left_by_failed_run(&self, name: &str) -> bool {
        self.case.kept_on_failure.iter().any(|folder| name.starts_with(folder))
    }

    fn error_lines(&self) -> Vec<&str> {
        self.ended.stderr.lines().filter(|line| line.contains("error: ")).collect()
    }

    /// Judges the error message of a failed run: there must be one error line. Unless the fault is not about a file, it
    /// must contain the path of the folder of the run, the name of the damaged input file, or "standard output".
    fn judge_error_message(&self, fault: Option<InjectedFault>, seen: Option<&SystemCallCounts>) -> RunVerdict {
        let [error] = self.error_lines()[..] else {
            return new_verdict(RunOutcome::NoErrorLine, self.last_stderr_lines());
        };
        let of_files = fault.is_none_or(|fault| fault.kind.is_file_call());
        let root = self.root.to_string_lossy();
        let words = [Some(&*root), Some("standard output"), self.damaged_file];
        let named = words.into_iter().flatten().any(|words| error.contains(words));
        if of_files && !named {
            let path = seen.and_then(|seen| seen.path.as_deref()).unwrap_or_default();
            return new_verdict(RunOutcome::FileNotNamed, format!("{path}: {error}"));
        }
        new_verdict(RunOutcome::FailedCleanly, error)
    }
}

/// Returns whether the content `is` of a file equals the expected content `want`, apart from values that vary between
/// runs.
fn has_expected_content(name: &str, want: &[u8], is: &[u8]) -> bool {
    strip_measurements_from_content(name, want) == strip_measurements_from_content(name, is)
}
