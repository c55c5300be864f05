//! SIGINT, SIGTERM and SIGHUP, and failures in the middle of anything: what is unfinished goes, one line says what stays, the exit code is
//! 130, 143, 129 or 1.

use std::cell::Cell;
use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::exit;

use crate::gate;
pub use crate::gate::{Undivided, undivided};
use crate::publish::discard_unfinished;

/// What a verb wants done when it is interrupted; it returns what the user should know.
type Farewell = Box<dyn FnOnce() -> Option<String> + Send>;

/// How long tidying up may take where nothing else may be waited for.
const TIDYING: Duration = Duration::from_secs(10);

static FAREWELL: Mutex<Option<Farewell>> = Mutex::new(None);
/// Closed to end the program.
static HEEDED: OnceLock<Handle> = OnceLock::new();

fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Heeds the signals from now on. SIGHUP stays ignored where it is: under `nohup`.
///
/// # Errors
/// The system refuses the handlers, or a thread to wait for signals.
pub fn heed() -> io::Result<()> {
    let all = [SIGINT, SIGTERM, SIGHUP];
    let heeded = if is_ignored(SIGHUP) { &all[..2] } else { &all };
    let mut signals = Signals::new(heeded)?;
    let handle = signals.handle();
    let (tell, running) = mpsc::channel();
    let wait = move || {
        drop(tell);
        // None when the program has failed, which it has said by itself.
        let signal = signals.forever().next();
        gate::close();
        discard_unfinished();
        let word = lock(&FAREWELL).take().and_then(|farewell| farewell());
        match (signal, word) {
            (Some(_), word) => {
                tracing::warn!("interrupted{}", word.map_or_else(String::new, |word| format!("; {word}")));
            }
            (None, Some(word)) => tracing::warn!("{word}"),
            (None, None) => {}
        }
        exit(signal.map_or(1, |signal| 128 + signal));
    };
    thread::Builder::new().spawn(wait).map_err(|e| {
        let limits = "raise the limits on threads and memory (ulimit -u, ulimit -v, pids of the container)";
        io::Error::new(e.kind(), format!("no thread to wait for them can be started: {e}: {limits}"))
    })?;
    // A thread may die before it runs, where memory for its stack of signals is refused: it could not tidy up then, and nothing is begun before.
    let _ = running.recv() as Result<(), _>;
    let _ = HEEDED.set(handle);
    Ok(())
}

/// Whether a signal is ignored (proc_pid_status(5), `SigIgn`).
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Ends the program after a failure in the midst of anything, with exit code 1. The first that comes here tells of it and only it ends the
/// program, so that none does before all is told; what fails while it tells is told instead. Another thread tidies up: this one may hold what
/// that needs, so it does not wait for long. Nothing runs at the exit: an allocator without memory dies of its own handlers there.
pub fn give_up(tell: impl FnOnce()) -> ! {
    static TOLD: AtomicBool = AtomicBool::new(false);
    thread_local!(static TELLS: Cell<bool> = const { Cell::new(false) });
    let first = !TOLD.swap(true, Relaxed);
    if first || TELLS.take() {
        TELLS.set(first);
        tell();
        match HEEDED.get() {
            Some(heeded) => heeded.close(),
            None => exit(1),
        }
    }
    thread::sleep(TIDYING);
    exit(1)
}

/// Sets what is done on a signal before the process ends; `None` takes it back. It must begin no undivided step.
pub fn on_interruption(farewell: Option<Farewell>) {
    *lock(&FAREWELL) = farewell;
}
