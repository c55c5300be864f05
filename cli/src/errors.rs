//! Reports errors: one line on stderr and an exit code.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::panic;
use std::path::Path;
use std::process::ExitCode;

use genuma_work::quantity;
use genuma_work::signals;

use crate::allocator::{self, MemoryUlimit};
use crate::logging;

/// An error in the command line that the user gave. It ends the program with exit code 2, like the errors that the
/// command-line parser finds.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub String);

/// A program that genuma ran has failed. genuma ends with the exit code of this program, and adds no message to that of
/// the program.
#[derive(Debug, thiserror::Error)]
#[error("the program failed with exit code {0}")]
pub(crate) struct ChildProgramFailed(pub u8);

/// Converts an error of the reads crate: if a file cannot be read or used, the error is kept; any other error is a
/// mistake in the list of files, a [`UsageError`].
pub(crate) fn to_usage_error_unless_unreadable(error: genuma_reads::Error) -> anyhow::Error {
    match error {
        genuma_reads::Error::Read { .. } | genuma_reads::Error::File { .. } => error.into(),
        _ => UsageError(error.to_string()).into(),
    }
}

/// Checks that `path` is a folder; `name` is how the error names it.
///
/// # Errors
/// [`UsageError`] if it is not a folder; an I/O error if it cannot be examined.
pub(crate) fn require_existing_folder(path: &Path, name: &str) -> anyhow::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(()),
        Err(e) if !matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(anyhow::Error::new(e).context(name.to_owned()))
        }
        _ => Err(UsageError(format!("{name}: is not a folder: create it, or give another one")).into()),
    }
}

/// Prints an error in one line, and returns the exit code: 2 for wrong usage, else 1. If a program that genuma ran has
/// failed ([`ChildProgramFailed`]), prints nothing and returns the exit code of that program.
pub(crate) fn report_error(error: &anyhow::Error) -> ExitCode {
    if let Some(ChildProgramFailed(code)) = error.downcast_ref() {
        return ExitCode::from(*code);
    }
    let line = format_error_line(error);
    let advice = path_advice(&line, error);
    logging::print_stderr_line(&format!("genuma: error: {line}{advice}{}", memory_advice(error)));
    ExitCode::from(if error.is::<UsageError>() { 2 } else { 1 })
}

/// Prints a message of the command-line parser: help, version, or a usage error. Returns the exit code.
pub(crate) fn print_clap_message(asked: &clap::Error) -> ExitCode {
    let text = asked.render().to_string();
    let code = ExitCode::from(asked.exit_code() as u8);
    // The parser would print arguments with control characters unchanged, so such messages are printed as plain text.
    let typed = std::env::args_os().any(|arg| arg.to_string_lossy().contains(char::is_control));
    if asked.use_stderr() {
        if typed {
            text.lines().for_each(logging::print_stderr_line);
        } else {
            drop(asked.print());
        }
        return code;
    }
    match asked.print().and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            report_error(&anyhow::Error::new(error).context("standard output"))
        }
        _ => code,
    }
}

/// Parts of the panic messages of the standard library and of rayon when the system refuses to start a thread.
const THREAD_SPAWN_PANICS: [&str; 4] = [
    "failed to spawn thread",
    "failed to set up alternative stack",
    "failed to allocate an alternative stack",
    "ThreadPoolBuildError",
];

/// Installs a panic hook that prints an error message and ends the program when a library panics because the system
/// refuses to start a thread, and that prints nothing for panics of the CRAM decoder, which become errors.
pub(crate) fn install_panic_hook() {
    let default_hook = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if genuma_reads::is_in_cram_decoder() {
            return;
        }
        if panic.payload_as_str().is_some_and(|said| THREAD_SPAWN_PANICS.iter().any(|words| said.contains(words))) {
            signals::exit_after_failure(|| {
                logging::print_stderr_line(
                    "genuma: error: the system refuses to start more threads: lower --threads, or raise the limits on threads and \
                     memory (ulimit -u, ulimit -v, pids of the container)",
                );
            });
        }
        default_hook(panic);
    }));
}

/// Returns advice for an error line that ends with a system error about a path; empty for other errors, whose messages
/// have their own advice.
fn path_advice(line: &str, error: &anyhow::Error) -> &'static str {
    let system_error = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    match system_error.filter(|cause| line.ends_with(&cause.to_string())).map(io::Error::kind) {
        Some(ErrorKind::NotFound) => ": check the path",
        Some(ErrorKind::PermissionDenied) => ": check the permissions of the path",
        Some(ErrorKind::IsADirectory) => ": give a file, not a folder",
        Some(ErrorKind::NotADirectory) => ": a part of the path is a file, not a folder",
        _ => "",
    }
}

/// Returns advice for an error that was caused by lack of memory; empty for other errors. The advice names the limit of
/// the process on memory, if it has one, and the option `--memory`, if the command has it.
fn memory_advice(error: &anyhow::Error) -> String {
    let is_refusal = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|cause| cause.kind() == ErrorKind::OutOfMemory)
    };
    if !error.chain().any(is_refusal) {
        return String::new();
    }
    let option = if allocator::has_memory_option() { "lower --memory, or " } else { "" };
    match allocator::lowest_memory_ulimit() {
        Some(limit) => format!(": {}: {option}raise the limit", describe_memory_ulimit(limit)),
        None => format!(": {option}use a machine with more memory"),
    }
}

/// Returns a limit of this process on memory as a clause of a message.
pub(crate) fn describe_memory_ulimit(limit: MemoryUlimit) -> String {
    let MemoryUlimit { bytes, subject, command } = limit;
    format!("{subject} is limited to {} ({command}, or a limit of the batch system)", quantity::format_bytes(bytes))
}

/// Formats an error in one line: its message, and those of its causes that the message does not contain.
fn format_error_line(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn causes_are_told_once() {
        let full = || std::io::Error::other("no space");
        let told = genuma_work::publish::Error::Io { path: "x".into(), source: full() };
        assert_eq!(format_error_line(&told.into()), "x: cannot write: no space");
        let untold = Err::<(), _>(full()).context("standard output").unwrap_err();
        assert_eq!(format_error_line(&untold), "standard output: no space");
    }

    #[test]
    fn system_errors_about_a_path_have_advice() {
        let advice = |message: &str, kind: ErrorKind| {
            let error = Err::<(), _>(io::Error::from(kind)).context(message.to_owned()).unwrap_err();
            path_advice(&format_error_line(&error), &error)
        };
        assert_eq!(advice("x", ErrorKind::NotFound), ": check the path");
        assert_eq!(advice("x", ErrorKind::PermissionDenied), ": check the permissions of the path");
        assert_eq!(advice("x", ErrorKind::StorageFull), "");
        let cause = io::Error::from(ErrorKind::NotFound).to_string();
        assert_eq!(advice(&format!("x: {cause}: make it"), ErrorKind::NotFound), "", "it has its own");
    }

    #[test]
    fn a_folder_that_cannot_be_asked_for_is_no_wrong_usage() {
        let asked = |name: &str| require_existing_folder(Path::new(name), name).unwrap_err();
        assert!(asked("/nowhere").is::<UsageError>());
        assert_eq!(asked("/dev/null").to_string(), "/dev/null: is not a folder: create it, or give another one");
        let long = "x".repeat(300);
        assert!(!asked(&long).is::<UsageError>());
        assert_eq!(format_error_line(&asked(&long)), format!("{long}: File name too long (os error 36)"));
    }
}
