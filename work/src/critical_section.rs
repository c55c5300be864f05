//! Critical sections: sequences of steps that a signal must not interrupt. On a signal, the signal thread waits until
//! no thread is in a critical section.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

struct CriticalSections {
    /// Number of critical sections that threads have entered and not left, nested ones included.
    active: usize,
    /// Whether a signal is being handled: no thread may enter a critical section any more.
    closed: bool,
}

static SECTIONS: Mutex<CriticalSections> = Mutex::new(CriticalSections { active: 0, closed: false });
static SECTIONS_CHANGED: Condvar = Condvar::new();

fn lock_sections() -> MutexGuard<'static, CriticalSections> {
    SECTIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits while `unwanted` returns true for the state. Returns the locked state.
fn wait_while(unwanted: impl FnMut(&mut CriticalSections) -> bool) -> MutexGuard<'static, CriticalSections> {
    SECTIONS_CHANGED.wait_while(lock_sections(), unwanted).unwrap_or_else(PoisonError::into_inner)
}

/// Waits until no thread is in a critical section. From then on no thread can enter a critical section.
pub(crate) fn wait_and_close_critical_sections() {
    wait_while(|sections| sections.active > 0).closed = true;
}

/// Guard of a critical section; dropping it leaves the section.
#[derive(Debug)]
pub struct CriticalSectionGuard(());

/// Enters a critical section: until the returned guard is dropped, a signal does not end the process. Use it for steps
/// that must happen together or not at all. Critical sections may be nested. After a signal this function blocks for
/// ever, because the process ends.
pub fn enter_critical_section() -> CriticalSectionGuard {
    wait_while(|sections| sections.closed).active += 1;
    CriticalSectionGuard(())
}

impl Drop for CriticalSectionGuard {
    fn drop(&mut self) {
        lock_sections().active -= 1;
        SECTIONS_CHANGED.notify_all();
    }
}
