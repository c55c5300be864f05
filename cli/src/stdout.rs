//! Whether standard output was there when the program began.
//!
//! Rust opens `/dev/null` in place of a standard stream that is closed, before `main` begins, so that results would go nowhere without a word.
#![allow(unsafe_code)] // A function that runs before that.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::io::fcntl_getfd;

static CLOSED: AtomicBool = AtomicBool::new(false);

extern "C" fn look() {
    CLOSED.store(fcntl_getfd(rustix::stdio::stdout()).is_err(), Relaxed);
}

// SAFETY: the loader calls the functions of this section one by one, with the C ABI; this one makes a system call and stores a flag.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Whether results have nowhere to go.
pub(crate) fn was_closed() -> bool {
    CLOSED.load(Relaxed)
}
