//! Restricts threads to CPUs.

use std::marker::PhantomData;
use std::sync::OnceLock;

use super::Error;
use super::node_sets;
use crate::{IdSet, sys};

/// Guard that restricts the calling thread to some CPUs. Dropping it restores the previous affinity.
///
/// Threads started in the meantime inherit the restriction and keep it. The guard cannot be sent to another thread.
#[derive(Debug)]
#[must_use = "the thread is pinned only as long as this is kept"]
pub struct PinnedThread {
    previous_affinity: Option<IdSet>,
    cpus: IdSet,
    not_send: PhantomData<*const ()>,
}

/// CPU and NUMA node on which a thread runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadLocation {
    /// Linux number of the CPU on which the thread runs.
    pub cpu: u32,
    /// Linux number of the NUMA node of the CPU.
    pub node: u32,
}

/// Restricts the calling thread to one CPU.
///
/// ```
/// use genuma_machine::placement::pin;
///
/// let cpu = pin::allowed_cpus().smallest_id().expect("a process may use a CPU");
/// let pinned = pin::pin_to_cpu(cpu)?;
/// assert_eq!(pin::current_location().cpu, cpu);
/// drop(pinned);
/// # Ok::<(), genuma_machine::placement::Error>(())
/// ```
///
/// # Errors
/// When the process may not use the CPU. Where the kernel forbids the call, the thread is not restricted and a
/// warning is logged once.
pub fn pin_to_cpu(cpu: u32) -> Result<PinnedThread, Error> {
    pin_to_cpus(&IdSet::from([cpu]))
}

/// Restricts the calling thread to `cpus`. The kernel may move the thread between these CPUs.
///
/// # Errors
/// When `cpus` is empty, or the process may not use all of the CPUs. Where the kernel forbids the call, the thread is
/// not restricted and a warning is logged once.
pub fn pin_to_cpus(cpus: &IdSet) -> Result<PinnedThread, Error> {
    let usable = allowed_cpus();
    if cpus.is_empty() || !cpus.is_subset(&usable) {
        return Err(Error::CpuNotAllowed { cpus: cpus.difference(&usable), usable });
    }
    let pinned = |before, cpus| PinnedThread { previous_affinity: before, cpus, not_send: PhantomData };
    let before = sys::thread_affinity(0).and_then(|before| sys::set_thread_affinity(cpus).map(|()| before));
    match before {
        Ok(before) => Ok(pinned(Some(before), cpus.clone())),
        Err(error) if sys::is_call_forbidden(&error) => {
            node_sets::warn_placement_degraded(
                "threads are not pinned to CPUs",
                &format!("sched_setaffinity: {error}"),
            );
            Ok(pinned(None, usable))
        }
        Err(error) if sys::is_invalid_argument(&error) => Err(Error::CpuNotAllowed { cpus: cpus.clone(), usable }),
        Err(source) => Err(Error::SystemCallFailed { asked: format!("CPU {cpus}"), call: "sched_setaffinity", source }),
    }
}

/// Restricts the calling thread to those CPUs of one NUMA node that the process may use.
///
/// # Errors
/// When the node does not exist or has no CPU that this process may use. Where the kernel forbids the call, the thread
/// is not restricted and a warning is logged once.
pub fn pin_to_node(node: u32) -> Result<PinnedThread, Error> {
    let usable = allowed_cpus();
    let cpus = node_sets::read_node_cpus(node).intersection(&usable);
    if cpus.is_empty() { Err(Error::NodeWithoutCpu { node, usable }) } else { pin_to_cpus(&cpus) }
}

/// The CPU and NUMA node that the calling thread runs on now. Unless the thread is pinned, it may run elsewhere a
/// moment later. Where the kernel cannot report the node, the node is 0.
pub fn current_location() -> ThreadLocation {
    let (cpu, node) = sys::current_cpu_and_node().unwrap_or_else(|_| (sys::current_cpu(), 0));
    ThreadLocation { cpu, node }
}

/// The CPUs that this process may use (cpuset and `taskset`): the affinity of its first thread when this function is
/// first called. Threads that are pinned later do not change the result.
pub fn allowed_cpus() -> IdSet {
    static ALLOWED: OnceLock<IdSet> = OnceLock::new();
    let first_thread = || {
        let known = sys::thread_affinity(std::process::id()).or_else(|_| sys::thread_affinity(0));
        known.unwrap_or_else(|_| {
            node_sets::read_and_parse_file("/sys/devices/system/cpu/online").unwrap_or(IdSet::from([0]))
        })
    };
    ALLOWED.get_or_init(first_thread).clone()
}

impl PinnedThread {
    /// The CPUs that the thread is restricted to; all CPUs that the process may use where the kernel forbids the
    /// restriction.
    pub fn pinned_cpus(&self) -> &IdSet {
        &self.cpus
    }

    /// Whether the kernel restricted the thread. It does not where it forbids the call.
    pub fn is_applied(&self) -> bool {
        self.previous_affinity.is_some()
    }

    /// Restores the previous affinity, as dropping the guard does, and reports a failure instead of logging it.
    ///
    /// # Errors
    /// When the system call fails. The thread then stays restricted.
    pub fn restore_previous_affinity(mut self) -> Result<(), Error> {
        match self.previous_affinity.take() {
            None => Ok(()),
            Some(before) => sys::set_thread_affinity(&before).map_err(|source| Error::SystemCallFailed {
                asked: format!("CPU {before}"),
                call: "sched_setaffinity",
                source,
            }),
        }
    }
}

impl Drop for PinnedThread {
    fn drop(&mut self) {
        if let Some(before) = &self.previous_affinity
            && let Err(error) = sys::set_thread_affinity(before)
        {
            tracing::warn!(
                "a thread stays restricted to CPUs {}, because its earlier CPUs cannot be restored ({error}): results are the same, \
                 but may take longer; nothing needs to be done",
                self.cpus
            );
        }
    }
}
