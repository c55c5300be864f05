//! Records whether standard output was open when the program started.
//!
//! Before `main`, Rust opens `/dev/null` in place of a closed standard stream. Without this check, results would be
//! lost without an error.
#![allow(unsafe_code)] // A function that runs before that.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::io::fcntl_getfd;

static STDOUT_CLOSED: AtomicBool = AtomicBool::new(false);

extern "C" fn record_stdout_state() {
    STDOUT_CLOSED.store(fcntl_getfd(rustix::stdio::stdout()).is_err(), Relaxed);
}

// SAFETY: the loader calls the functions of this section one by one, with the C ABI; this one makes a system call and
// stores a flag.
#[used]
#[unsafe(link_section = ".init_array")]
static RECORD_STDOUT_STATE: extern "C" fn() = record_stdout_state;

/// Returns whether standard output was closed when the program started.
pub(crate) fn was_stdout_closed_at_start() -> bool {
    STDOUT_CLOSED.load(Relaxed)
}
