//! SIGINT and SIGTERM: what is unfinished goes, one line says what stays, the exit code is 130 or 143.

use std::process::exit;
use std::sync::{Mutex, MutexGuard};
use std::thread;

use anyhow::Context;
use genuma_reads::atomic_file::discard_unfinished;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// What a verb wants done when it is interrupted; it returns what the user should know.
type Farewell = Box<dyn FnOnce() -> Option<String> + Send>;

static FAREWELL: Mutex<Option<Farewell>> = Mutex::new(None);
static UNDIVIDED: Mutex<()> = Mutex::new(());

fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Heeds both signals from now on.
///
/// # Errors
/// The system refuses the handlers.
pub fn heed() -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("signal handlers")?;
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let _undivided = lock(&UNDIVIDED);
            discard_unfinished();
            let word = lock(&FAREWELL).take().and_then(|farewell| farewell());
            // A thread that still runs may have begun a file meanwhile.
            discard_unfinished();
            tracing::warn!("interrupted{}", word.map_or_else(String::new, |word| format!("; {word}")));
            exit(128 + signal);
        }
    });
    Ok(())
}

/// Sets what is done on a signal before the process ends; `None` takes it back.
pub fn on_interruption(farewell: Option<Farewell>) {
    *lock(&FAREWELL) = farewell;
}

/// Signals wait while the guard lives: for steps that must be done together or not at all.
pub fn undivided() -> MutexGuard<'static, ()> {
    lock(&UNDIVIDED)
}
