//! Sets the memory policy of a thread for a limited time.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use super::error::FailedSystemCall;
use super::node_sets::{self, NumaNodeSets};
use super::{Error, MemoryPolicy, pin};
use crate::{IdSet, sys};

/// Guard that sets the calling thread's memory policy. Dropping it restores the previous policy. The policy applies
/// to pages that the thread touches first and that have no policy of their own. Meant for memory that a foreign
/// library allocates.
///
/// Memory that an allocator has kept from earlier stays on its nodes, and so does file content in the page cache.
/// Threads started in the meantime inherit the policy and keep it. Drop guards in reverse order of creation. A guard
/// cannot be sent to another thread.
///
/// ```
/// use genuma_machine::placement::{MemoryPolicy, ScopedMemoryPolicy};
/// use genuma_machine::{IdSet, placement};
///
/// let interleaved = ScopedMemoryPolicy::set_thread_policy(&MemoryPolicy::Interleave(IdSet::from([0])))?;
/// let index = vec![1_u8; 16 << 20]; // what a library would load
/// drop(interleaved);
/// println!("{}", placement::query_slice_residence(&index)?);
/// # Ok::<(), placement::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "the policy holds only as long as this is kept"]
pub struct ScopedMemoryPolicy {
    previous: Option<sys::KernelMempolicy>,
    policy: MemoryPolicy,
    not_send: PhantomData<*const ()>,
}

impl ScopedMemoryPolicy {
    /// Sets the calling thread's memory policy.
    ///
    /// # Errors
    /// When the policy names nodes that may not be used, or the system call fails; on a machine with several usable
    /// nodes also when the policy has weights other than the kernel's.
    pub fn set_thread_policy(policy: &MemoryPolicy) -> Result<ScopedMemoryPolicy, Error> {
        let nodes = NumaNodeSets::read_current_node_sets();
        nodes.check_policy(policy)?;
        let scoped = |before, policy| ScopedMemoryPolicy { previous: before, policy, not_send: PhantomData };
        if nodes.has_one_usable_node() {
            warn_policy_needs_several_nodes(policy, &nodes);
            return Ok(scoped(None, MemoryPolicy::Local));
        }
        let asked = match policy {
            MemoryPolicy::Weighted(weights) if are_proportional_to_kernel_weights(weights) => {
                MemoryPolicy::KernelWeighted(policy.named_nodes())
            }
            MemoryPolicy::Weighted(_) => return Err(Error::UnsupportedCustomWeights { policy: policy.clone() }),
            other => other.clone(),
        };
        match replace_thread_policy(&asked) {
            Ok((before, done)) => Ok(scoped(Some(before), done)),
            Err(FailedSystemCall(call, error)) if sys::is_policy_refused(&error) => {
                node_sets::warn_placement_degraded(node_sets::LOCAL_FALLBACK_MESSAGE, &format!("{call}: {error}"));
                Ok(scoped(None, MemoryPolicy::Local))
            }
            Err(FailedSystemCall(call, source)) => {
                Err(Error::SystemCallFailed { asked: policy.to_string(), call, source })
            }
        }
    }

    /// Makes the calling thread prefer the usable node nearest to the CPU that runs it now. Unlike under
    /// [`MemoryPolicy::Local`], its memory stays on that node if the kernel moves the thread to another one. Where the
    /// kernel forbids memory policies, memory is local.
    ///
    /// # Errors
    /// When the system call fails.
    pub fn prefer_current_node() -> Result<ScopedMemoryPolicy, Error> {
        let nodes = NumaNodeSets::read_current_node_sets();
        let scoped = |previous, policy| ScopedMemoryPolicy { previous, policy, not_send: PhantomData };
        if nodes.has_one_usable_node() {
            return Ok(scoped(None, MemoryPolicy::Local));
        }
        let nearest = node_sets::nearest_nodes(pin::current_location().node, &nodes.usable);
        let policy = MemoryPolicy::PreferredMany(nearest.smallest_id().into_iter().collect());
        match replace_thread_policy(&policy) {
            Ok((before, done)) => Ok(scoped(Some(before), done)),
            Err(FailedSystemCall(_, error)) if sys::is_policy_refused(&error) => Ok(scoped(None, MemoryPolicy::Local)),
            Err(FailedSystemCall(call, source)) => {
                Err(Error::SystemCallFailed { asked: policy.to_string(), call, source })
            }
        }
    }

    /// The policy that was set. It differs from the requested policy if the kernel does not support or forbids the
    /// requested one, or if the process may use one node only.
    pub fn applied_policy(&self) -> &MemoryPolicy {
        &self.policy
    }

    /// Restores the previous policy, as dropping the guard does, and reports a failure instead of logging it.
    ///
    /// # Errors
    /// When the system call fails. The thread then keeps the policy of this guard.
    pub fn restore_previous_policy(mut self) -> Result<(), Error> {
        let asked = || format!("restoring the memory policy that a thread had before {}", self.policy);
        match self.previous.take().map(|before| sys::set_thread_mempolicy(&before)) {
            Some(Err(source)) => Err(Error::SystemCallFailed { asked: asked(), call: "set_mempolicy", source }),
            _ => Ok(()),
        }
    }
}

/// Sets the memory policy of the calling thread. Returns its previous policy, and the policy that the kernel applied.
fn replace_thread_policy(policy: &MemoryPolicy) -> Result<(sys::KernelMempolicy, MemoryPolicy), FailedSystemCall> {
    let before = sys::thread_mempolicy().map_err(|error| FailedSystemCall("get_mempolicy", error))?;
    let done = set_policy_with_fallback(policy, sys::set_thread_mempolicy)
        .map_err(|error| FailedSystemCall("set_mempolicy", error))?;
    Ok((before, done))
}

impl Drop for ScopedMemoryPolicy {
    fn drop(&mut self) {
        if let Some(before) = &self.previous
            && let Err(error) = sys::set_thread_mempolicy(before)
        {
            tracing::warn!(
                "a thread keeps its memory policy {}, because the earlier one cannot be restored ({error}): results are the same, \
                 but may take longer; nothing needs to be done",
                self.policy
            );
        }
    }
}

/// Warns once that a policy has no effect because the process may use one node only.
pub(super) fn warn_policy_needs_several_nodes(policy: &MemoryPolicy, nodes: &NumaNodeSets) {
    if *policy != MemoryPolicy::Local {
        node_sets::warn_placement_degraded(
            node_sets::LOCAL_FALLBACK_MESSAGE,
            &format!("this process may use memory of one node only, {}", nodes.usable),
        );
    }
}

/// Whether the kernel's weights of these nodes have the same proportions as the given weights.
pub(super) fn are_proportional_to_kernel_weights(weights: &BTreeMap<u32, u32>) -> bool {
    let nodes: IdSet = weights.keys().copied().collect();
    node_sets::read_kernel_interleave_weights(&nodes)
        .is_some_and(|kernels| divide_weights_by_gcd(&kernels) == divide_weights_by_gcd(weights))
}

/// Divides the weights by their greatest common divisor.
pub(super) fn divide_weights_by_gcd(weights: &BTreeMap<u32, u32>) -> BTreeMap<u32, u32> {
    let mut divisor = 0;
    for &weight in weights.values() {
        let mut other = weight;
        while other != 0 {
            (divisor, other) = (other, divisor % other);
        }
    }
    weights.iter().map(|(&node, &weight)| (node, weight / divisor.max(1))).collect()
}

/// Applies `policy` through the function `set`. Falls back to the nearest policy that an older kernel supports.
/// Returns the policy that was applied.
pub(super) fn set_policy_with_fallback(
    policy: &MemoryPolicy,
    set: impl Fn(&sys::KernelMempolicy) -> std::io::Result<()>,
) -> std::io::Result<MemoryPolicy> {
    let with = |mode, nodes: &IdSet| set(&sys::KernelMempolicy { mode, nodes: nodes.clone() });
    let older = |set: std::io::Result<()>, next: &dyn Fn() -> std::io::Result<MemoryPolicy>| match set {
        Ok(()) => Ok(policy.clone()),
        Err(error) if sys::is_invalid_argument(&error) => next(),
        Err(error) => Err(error),
    };
    match policy {
        MemoryPolicy::Local => with(sys::MempolicyMode::MPOL_LOCAL, &IdSet::new())?,
        MemoryPolicy::Bind(nodes) => with(sys::MempolicyMode::MPOL_BIND, nodes)?,
        MemoryPolicy::Interleave(nodes) => with(sys::MempolicyMode::MPOL_INTERLEAVE, nodes)?,
        // The pages were placed one by one and are resident; binding keeps the kernel from migrating them.
        MemoryPolicy::Weighted(_) => with(sys::MempolicyMode::MPOL_BIND, &policy.named_nodes())?,
        MemoryPolicy::KernelWeighted(nodes) => {
            return older(with(sys::MempolicyMode::MPOL_WEIGHTED_INTERLEAVE, nodes), &|| {
                with(sys::MempolicyMode::MPOL_INTERLEAVE, nodes).map(|()| MemoryPolicy::Interleave(nodes.clone()))
            });
        }
        MemoryPolicy::PreferredMany(nodes) => {
            return older(with(sys::MempolicyMode::MPOL_PREFERRED_MANY, nodes), &|| {
                let first: IdSet = nodes.smallest_id().into_iter().collect();
                with(sys::MempolicyMode::MPOL_PREFERRED, &first).map(|()| MemoryPolicy::PreferredMany(first.clone()))
            });
        }
    }
    Ok(policy.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_divided_by_what_divides_all() {
        let of = |weights: &[u32]| -> Vec<u32> {
            divide_weights_by_gcd(&(0..).zip(weights.iter().copied()).collect()).into_values().collect()
        };
        assert_eq!(of(&[12, 4, 8]), [3, 1, 2]);
        assert_eq!(of(&[5]), [1]);
        assert_eq!(of(&[255, 254]), [255, 254]);
    }
}
