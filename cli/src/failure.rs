//! How a failure ends the program: one line on stderr and an exit code.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::panic;
use std::path::Path;
use std::process::ExitCode;

use genuma_work::signals;

use crate::voice;

/// A wish that cannot be fulfilled as it was put: exit code 2, like the faults that the parser finds.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub String);

/// A folder that has to be there; `name` is what an error calls it.
///
/// # Errors
/// A [`Usage`] if it is none; what the system says if it cannot be asked.
pub(crate) fn must_be_folder(path: &Path, name: &str) -> anyhow::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(()),
        Err(e) if !matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(anyhow::Error::new(e).context(name.to_owned()))
        }
        _ => Err(Usage(format!("{name}: is not a folder")).into()),
    }
}

/// Tells the error in one line and gives its exit code: 2 for wrong usage, else 1.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    voice::say(&format!("genuma: error: {}", line(error)));
    ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
}

/// What the parser has to say: help, the version, or what is wrong with the command line. Gives the exit code.
pub(crate) fn answer(asked: &clap::Error) -> ExitCode {
    let text = asked.render().to_string();
    let code = ExitCode::from(asked.exit_code() as u8);
    // What is typed is quoted as it is where styles are shown.
    let typed = std::env::args_os().any(|arg| arg.to_string_lossy().contains(char::is_control));
    if asked.use_stderr() {
        if typed {
            text.lines().for_each(voice::say);
        } else {
            drop(asked.print());
        }
        return code;
    }
    match asked.print().and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            report(&anyhow::Error::new(error).context("standard output"))
        }
        _ => code,
    }
}

/// What panics say of threads that the system does not start: the standard library's, at either end, and rayon's.
const NO_THREADS: [&str; 4] = [
    "failed to spawn thread",
    "failed to set up alternative stack",
    "failed to allocate an alternative stack",
    "ThreadPoolBuildError",
];

/// Makes a failure like any other of threads that cannot be started: whoever starts them panics then.
pub(crate) fn heed_threads() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if panic.payload_as_str().is_some_and(|said| NO_THREADS.iter().any(|words| said.contains(words))) {
            signals::give_up(|| {
                voice::say(
                    "genuma: error: the system starts no more threads: lower --threads, or raise the limits on threads and \
                     memory (ulimit -u, ulimit -v, pids of the container)",
                );
            });
        }
        usual(panic);
    }));
}

/// The error with those of its causes that its own words do not tell.
fn line(error: &anyhow::Error) -> String {
    let mut said = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !said.contains(&cause) {
            said = format!("{said}: {cause}");
        }
    }
    said.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn causes_are_told_once() {
        let full = || std::io::Error::other("no space");
        let told = genuma_work::publish::Error::Write { path: "x".into(), source: full() };
        assert_eq!(line(&told.into()), "x: cannot write: no space");
        let untold = Err::<(), _>(full()).context("standard output").unwrap_err();
        assert_eq!(line(&untold), "standard output: no space");
    }

    #[test]
    fn a_folder_that_cannot_be_asked_for_is_no_wrong_usage() {
        let asked = |name: &str| must_be_folder(Path::new(name), name).unwrap_err();
        assert!(asked("/nowhere").is::<Usage>());
        assert_eq!(asked("/dev/null").to_string(), "/dev/null: is not a folder");
        let long = "x".repeat(300);
        assert!(!asked(&long).is::<Usage>());
        assert_eq!(line(&asked(&long)), format!("{long}: File name too long (os error 36)"));
    }
}
