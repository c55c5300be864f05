//! Memory policy and CPUs of the calling thread between two calls.

use std::cell::RefCell;

use genuma_machine::placement::ScopedMemoryPolicy;
use genuma_machine::placement::pin::{self, PinnedThread};

use crate::request::{CpuRequest, parse_cpus, parse_policy, policy_difference};
use crate::status::{Failure, Fulfilled};

/// Guards of one scope.
struct Scope {
    policy: Option<ScopedMemoryPolicy>,
    pinned: Option<PinnedThread>,
}

/// Open scopes of a thread, the innermost last.
#[derive(Default)]
struct OpenScopes(Vec<Scope>);

thread_local! {
    static OPEN_SCOPES: RefCell<OpenScopes> = RefCell::default();
}

impl Drop for OpenScopes {
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}

/// Opens a scope of the calling thread: sets its memory policy, its CPUs, or both. After an error neither is changed.
pub(crate) fn begin(policy: Option<&str>, cpus: Option<&str>) -> Result<Fulfilled<()>, Failure> {
    if policy.is_none() && cpus.is_none() {
        return Err(Failure::invalid("neither a policy nor CPUs are given"));
    }
    let requested_policy = policy.map(parse_policy).transpose()?;
    let pinned = match cpus.map(parse_cpus).transpose()? {
        None => None,
        Some(CpuRequest::Cpus(cpus)) => Some(pin::pin_to_cpus(&cpus)?),
        Some(CpuRequest::CpusOfNode(node)) => Some(pin::pin_to_node(node)?),
    };
    let policy = requested_policy.as_ref().map(ScopedMemoryPolicy::set_thread_policy).transpose()?;
    let mut differences = Vec::new();
    if let (Some(requested), Some(set)) = (&requested_policy, &policy) {
        differences.extend(policy_difference(requested, set.applied_policy()));
    }
    if let (Some(cpus), Some(false)) = (cpus, pinned.as_ref().map(PinnedThread::is_applied)) {
        differences.push(format!("CPUs {cpus}: this process may not restrict its threads (sched_setaffinity)"));
    }
    let opened = OPEN_SCOPES.try_with(|open| open.borrow_mut().0.push(Scope { policy, pinned }));
    opened.map_err(|_| Failure::invalid("the thread ends"))?;
    Ok(Fulfilled { value: (), differences })
}

/// Closes the innermost scope of the calling thread: restores the policy and the CPUs from before.
pub(crate) fn end() -> Result<(), Failure> {
    let scope = OPEN_SCOPES.try_with(|open| open.borrow_mut().0.pop()).ok().flatten();
    let Scope { policy, pinned } = scope.ok_or_else(|| Failure::invalid("this thread has no open scope"))?;
    let restored_policy = policy.map_or(Ok(()), ScopedMemoryPolicy::restore_previous_policy);
    let restored_cpus = pinned.map_or(Ok(()), PinnedThread::restore_previous_affinity);
    Ok(restored_policy.and(restored_cpus)?)
}
