//! Ends the process cleanly on SIGINT, SIGTERM, SIGHUP or a fatal failure: removes partial files, prints one line
//! about what is kept, and exits with code 130, 143, 129 or 1.

use std::cell::Cell;
use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpgrp, kill_process};
use rustix::termios::tcgetpgrp;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::exit;

use crate::critical_section;
pub use crate::critical_section::{CriticalSectionGuard, enter_critical_section};
use crate::publish::remove_partial_files_of_process;

/// Function that runs when a signal or a fatal failure ends the process. Returns a message for the user, if any.
type TerminationHandler = Box<dyn FnOnce() -> Option<String> + Send>;

/// Maximum time to wait for the signal thread to clean up before [`exit_after_failure`] exits anyway.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(10);

static TERMINATION_HANDLER: Mutex<Option<TerminationHandler>> = Mutex::new(None);
/// Child process that gets the signals which would otherwise end this process; `None` without such a child.
static FORWARD_TO: Mutex<Option<Pid>> = Mutex::new(None);
/// Handle of the thread that waits for signals. Closing it makes that thread clean up and end the process.
static SIGNAL_THREAD: OnceLock<Handle> = OnceLock::new();

/// Passes signals on to the process `child` from now on, until [`stop_forwarding_signals`] is called. Meanwhile signals
/// do not end this process; it is to end when the child ends.
pub fn forward_signals_to_child(child: u32) {
    *lock(&FORWARD_TO) = Pid::from_raw(child as i32);
}

/// Ends the forwarding of signals: from now on signals end this process again.
pub fn stop_forwarding_signals() {
    *lock(&FORWARD_TO) = None;
}

/// Passes a signal on to the child process, unless the terminal has sent the signal to the whole process group already.
/// Returns whether signals are forwarded to a child.
fn forward_signal(signal: i32) -> bool {
    let child = lock(&FORWARD_TO);
    let Some(child) = *child else { return false };
    let by_terminal = matches!(signal, SIGINT | SIGHUP) && is_in_foreground();
    let named = match signal {
        SIGINT => Signal::INT,
        SIGHUP => Signal::HUP,
        _ => Signal::TERM,
    };
    if !by_terminal {
        // The child may just have ended.
        let _ = kill_process(child, named);
    }
    true
}

/// Whether this process is in the foreground process group of a terminal.
fn is_in_foreground() -> bool {
    let terminal = fs::File::open("/dev/tty");
    terminal.is_ok_and(|terminal| tcgetpgrp(&terminal).is_ok_and(|group| group == getpgrp()))
}

fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Starts the thread that ends the process cleanly on SIGINT, SIGTERM or SIGHUP. SIGHUP stays ignored if it already is,
/// as under `nohup`.
///
/// # Errors
/// The signal handlers cannot be installed, or the thread cannot be started.
pub fn start_signal_thread() -> io::Result<()> {
    let signal_numbers = [SIGINT, SIGTERM, SIGHUP];
    let handled = if is_ignored(SIGHUP) { &signal_numbers[..2] } else { &signal_numbers };
    let mut signals = Signals::new(handled)?;
    let handle = signals.handle();
    let (sender, thread_started) = mpsc::channel();
    let wait = move || {
        drop(sender);
        // `None` if the handle was closed after a failure, which has already printed its error.
        let signal = signals.forever().find(|&signal| !forward_signal(signal));
        critical_section::wait_and_close_critical_sections();
        remove_partial_files_of_process();
        let message = lock(&TERMINATION_HANDLER).take().and_then(|handler| handler());
        match (signal, message) {
            (Some(_), message) => {
                tracing::warn!("interrupted{}", message.map_or_else(String::new, |message| format!("; {message}")));
            }
            (None, Some(message)) => tracing::warn!("{message}"),
            (None, None) => {}
        }
        exit(signal.map_or(1, |signal| 128 + signal));
    };
    thread::Builder::new().spawn(wait).map_err(|e| {
        let limits = "raise the limits on threads and memory (ulimit -u, ulimit -v, pids of the container)";
        io::Error::new(e.kind(), format!("the thread that waits for signals cannot be started: {e}: {limits}"))
    })?;
    // The thread may die before it runs if memory for its signal stack is refused. Without the thread nothing could
    // be cleaned up, so wait here until it runs.
    let _ = thread_started.recv() as Result<(), _>;
    let _ = SIGNAL_THREAD.set(handle);
    Ok(())
}

/// Whether this process ignores the signal (proc_pid_status(5), `SigIgn`).
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Ends the process after a fatal failure, with exit code 1, from any thread. The first caller prints its error with
/// `print_error`; only that thread ends the process, so that the error is printed completely. If `print_error` itself
/// fails fatally, that second error is printed instead. The signal thread removes partial files; this thread may hold
/// locks that the cleanup needs, so it exits after 10 s even if the cleanup has not finished. Exit handlers are not
/// run: an allocator without memory would crash in them.
pub fn exit_after_failure(print_error: impl FnOnce()) -> ! {
    static FAILED: AtomicBool = AtomicBool::new(false);
    thread_local!(static IS_FIRST: Cell<bool> = const { Cell::new(false) });
    let first = !FAILED.swap(true, Relaxed);
    if first || IS_FIRST.take() {
        IS_FIRST.set(first);
        print_error();
        match SIGNAL_THREAD.get() {
            Some(thread) => thread.close(),
            None => exit(1),
        }
    }
    thread::sleep(CLEANUP_TIMEOUT);
    exit(1)
}

/// Sets the function that runs on a signal, or after a fatal failure, before the process ends; `None` removes it. The
/// function must not enter a critical section.
pub fn set_termination_handler(handler: Option<TerminationHandler>) {
    *lock(&TERMINATION_HANDLER) = handler;
}
