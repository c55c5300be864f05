//! Keeping threads on CPUs.

use std::marker::PhantomData;
use std::sync::OnceLock;

use super::Error;
use super::nodes;
use crate::{IdSet, sys};

/// Keeps this thread on some CPUs until dropped; then it may run again where it might before.
///
/// Threads started meanwhile inherit the restriction and keep it. It belongs to its thread: it cannot be sent to another.
#[derive(Debug)]
#[must_use = "the thread is pinned only as long as this is kept"]
pub struct Pinned {
    before: Option<IdSet>,
    cpus: IdSet,
    of_this_thread: PhantomData<*const ()>,
}

/// Where a thread runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Here {
    /// The CPU.
    pub cpu: u32,
    /// Its node.
    pub node: u32,
}

/// Keeps this thread on one CPU.
///
/// ```
/// use genuma_machine::placement::pin;
///
/// let cpu = pin::allowed().first().expect("a process may use a CPU");
/// let pinned = pin::to_cpu(cpu)?;
/// assert_eq!(pin::here().cpu, cpu);
/// drop(pinned);
/// # Ok::<(), genuma_machine::placement::Error>(())
/// ```
///
/// # Errors
/// When the process may not use the CPU. Where the kernel forbids the call, the thread stays where it is and a warning is logged once.
pub fn to_cpu(cpu: u32) -> Result<Pinned, Error> {
    to_cpus(&IdSet::from([cpu]))
}

/// Keeps this thread on some CPUs, between which the kernel may move it.
///
/// # Errors
/// When there are none, or the process may not use all of them.
pub fn to_cpus(cpus: &IdSet) -> Result<Pinned, Error> {
    let usable = allowed();
    if cpus.is_empty() || !cpus.within(&usable) {
        return Err(Error::CpuNotAllowed { cpus: cpus.without(&usable), usable });
    }
    let pinned = |before, cpus| Pinned { before, cpus, of_this_thread: PhantomData };
    let before = sys::affinity(0).and_then(|before| sys::set_affinity(cpus).map(|()| before));
    match before {
        Ok(before) => Ok(pinned(Some(before), cpus.clone())),
        Err(error) if sys::refused(&error) => {
            nodes::degraded("threads are not pinned", &format!("sched_setaffinity: {error}"));
            Ok(pinned(None, usable))
        }
        Err(error) if sys::unknown(&error) => Err(Error::CpuNotAllowed { cpus: cpus.clone(), usable }),
        Err(source) => Err(Error::System { asked: format!("CPU {cpus}"), call: "sched_setaffinity", source }),
    }
}

/// Keeps this thread on the CPUs of one node.
///
/// # Errors
/// When the node is not there or has no CPU that this process may use.
pub fn to_node(node: u32) -> Result<Pinned, Error> {
    let usable = allowed();
    let cpus = nodes::cpus(node).and(&usable);
    if cpus.is_empty() { Err(Error::NodeWithoutCpu { node, usable }) } else { to_cpus(&cpus) }
}

/// The CPU this thread runs on and its node, as the kernel says. Unless pinned it may run elsewhere a moment later.
pub fn here() -> Here {
    let (cpu, node) = sys::cpu_and_node().unwrap_or_else(|_| (sys::cpu(), 0));
    Here { cpu, node }
}

/// The CPUs this process may use: those its first thread might run on when it was asked for the first time (cpuset and `taskset`).
/// Threads that are pinned since do not narrow it.
pub fn allowed() -> IdSet {
    static ALLOWED: OnceLock<IdSet> = OnceLock::new();
    let first_thread = || {
        let known = sys::affinity(std::process::id()).or_else(|_| sys::affinity(0));
        known.unwrap_or_else(|_| nodes::read("/sys/devices/system/cpu/online").unwrap_or(IdSet::from([0])))
    };
    ALLOWED.get_or_init(first_thread).clone()
}

impl Pinned {
    /// The CPUs this thread is kept on.
    pub fn cpus(&self) -> &IdSet {
        &self.cpus
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.before
            && let Err(error) = sys::set_affinity(before)
        {
            tracing::warn!("the thread stays on CPU {}: {error}", self.cpus);
        }
    }
}
