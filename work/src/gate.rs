//! Steps that a signal waits for.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

struct Gate {
    /// How many are under way, nested ones counted too.
    under_way: usize,
    /// A signal is being heeded: no step begins any more.
    closed: bool,
}

static GATE: Mutex<Gate> = Mutex::new(Gate { under_way: 0, closed: false });
static GATE_CHANGED: Condvar = Condvar::new();

fn gate() -> MutexGuard<'static, Gate> {
    GATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits while the gate is as `unwanted` says.
fn gate_once_not(unwanted: impl FnMut(&mut Gate) -> bool) -> MutexGuard<'static, Gate> {
    GATE_CHANGED.wait_while(gate(), unwanted).unwrap_or_else(PoisonError::into_inner)
}

/// Waits for the steps under way, and lets none begin any more.
pub(crate) fn close() {
    gate_once_not(|gate| gate.under_way > 0).closed = true;
}

/// A step that a signal waits for, until dropped.
#[derive(Debug)]
pub struct Undivided(());

/// Signals wait while the guard lives: for steps that must be done together or not at all. A step may be part of another. Once a signal
/// is heeded this does not return.
pub fn undivided() -> Undivided {
    gate_once_not(|gate| gate.closed).under_way += 1;
    Undivided(())
}

impl Drop for Undivided {
    fn drop(&mut self) {
        gate().under_way -= 1;
        GATE_CHANGED.notify_all();
    }
}
