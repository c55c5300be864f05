//! A thread's own memory policy, for a while.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use super::nodes::{self, Nodes};
use super::{Error, Policy};
use crate::{IdSet, sys};

/// This thread's policy for all memory that it is the first to touch and that has no policy of its own, until dropped; then the policy it
/// had before. Meant for memory that a foreign library allocates.
///
/// Only pages touched for the first time meanwhile follow it: memory that an allocator kept from earlier stays where it is, and so does a
/// file's content that is cached already. Threads started meanwhile inherit the policy and keep it. Guards are dropped in reverse
/// order of their making, each by its thread: they cannot be sent to another.
///
/// ```
/// use genuma_machine::placement::{Policy, Scoped};
/// use genuma_machine::{IdSet, placement};
///
/// let spread = Scoped::new(&Policy::Interleave(IdSet::from([0])))?;
/// let index = vec![1_u8; 16 << 20]; // what a library would load
/// drop(spread);
/// println!("{}", placement::residence_of(&index)?);
/// # Ok::<(), placement::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "the policy holds only as long as this is kept"]
pub struct Scoped {
    before: Option<sys::Policy>,
    policy: Policy,
    of_this_thread: PhantomData<*const ()>,
}

impl Scoped {
    /// Sets the policy.
    ///
    /// # Errors
    /// When the policy names nodes that may not be used, or weights other than the kernel's.
    pub fn new(policy: &Policy) -> Result<Scoped, Error> {
        let nodes = Nodes::read();
        nodes.check(policy)?;
        let scoped = |before, policy| Scoped { before, policy, of_this_thread: PhantomData };
        if nodes.single() {
            one_node(policy, &nodes);
            return Ok(scoped(None, Policy::Local));
        }
        let asked = match policy {
            Policy::Weighted(weights) if as_the_kernels(weights) => Policy::KernelWeighted(policy.nodes()),
            Policy::Weighted(_) => return Err(Error::WeightsOfItsOwn { policy: policy.clone() }),
            other => other.clone(),
        };
        let mut call = "get_mempolicy";
        let set = sys::policy().and_then(|before| {
            call = "set_mempolicy";
            kernel_policy(&asked, sys::set_policy).map(|done| (before, done))
        });
        match set {
            Ok((before, done)) => Ok(scoped(Some(before), done)),
            Err(error) if sys::refused(&error) => {
                nodes::degraded(nodes::LOCAL, &format!("{call}: {error}"));
                Ok(scoped(None, Policy::Local))
            }
            Err(source) => Err(Error::System { asked: policy.to_string(), call, source }),
        }
    }

    /// The policy that was really set: where it differs from the one asked for, the kernel does not know or not allow that one.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }
}

impl Drop for Scoped {
    fn drop(&mut self) {
        if let Some(before) = &self.before
            && let Err(error) = sys::set_policy(before)
        {
            tracing::warn!("the thread keeps its memory policy {}: {error}", self.policy);
        }
    }
}

/// Says once that there is nothing to choose.
pub(super) fn one_node(policy: &Policy, nodes: &Nodes) {
    if *policy != Policy::Local {
        nodes::degraded(
            nodes::LOCAL,
            &format!("this process may use memory of one node only, {}", nodes.usable),
        );
    }
}

/// Whether the kernel's weights of these nodes are in the proportions of the given ones.
pub(super) fn as_the_kernels(weights: &BTreeMap<u32, u32>) -> bool {
    let nodes: IdSet = weights.keys().copied().collect();
    nodes::kernel_weights(&nodes).is_some_and(|kernels| reduced(&kernels) == reduced(weights))
}

/// Weights over their greatest common divisor.
pub(super) fn reduced(weights: &BTreeMap<u32, u32>) -> BTreeMap<u32, u32> {
    let mut divisor = 0;
    for &weight in weights.values() {
        let mut other = weight;
        while other != 0 {
            (divisor, other) = (other, divisor % other);
        }
    }
    weights.iter().map(|(&node, &weight)| (node, weight / divisor.max(1))).collect()
}

/// Makes the kernel follow `policy` through `set`, or the next best that an older kernel knows; returns what it follows.
pub(super) fn kernel_policy(
    policy: &Policy,
    set: impl Fn(&sys::Policy) -> std::io::Result<()>,
) -> std::io::Result<Policy> {
    let with = |mode, nodes: &IdSet| set(&sys::Policy { mode, nodes: nodes.clone() });
    let older = |set: std::io::Result<()>, next: &dyn Fn() -> std::io::Result<Policy>| match set {
        Ok(()) => Ok(policy.clone()),
        Err(error) if sys::unknown(&error) => next(),
        Err(error) => Err(error),
    };
    match policy {
        Policy::Local => with(sys::Mode::LOCAL, &IdSet::new())?,
        Policy::Bind(nodes) => with(sys::Mode::BIND, nodes)?,
        Policy::Interleave(nodes) => with(sys::Mode::INTERLEAVE, nodes)?,
        // Placed one by one: now that they are there, nothing may move them away.
        Policy::Weighted(_) => with(sys::Mode::BIND, &policy.nodes())?,
        Policy::KernelWeighted(nodes) => {
            return older(with(sys::Mode::WEIGHTED_INTERLEAVE, nodes), &|| {
                with(sys::Mode::INTERLEAVE, nodes).map(|()| Policy::Interleave(nodes.clone()))
            });
        }
        Policy::PreferredMany(nodes) => {
            return older(with(sys::Mode::PREFERRED_MANY, nodes), &|| {
                let first: IdSet = nodes.first().into_iter().collect();
                with(sys::Mode::PREFERRED, &first).map(|()| Policy::PreferredMany(first.clone()))
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
            reduced(&(0..).zip(weights.iter().copied()).collect()).into_values().collect()
        };
        assert_eq!(of(&[12, 4, 8]), [3, 1, 2]);
        assert_eq!(of(&[5]), [1]);
        assert_eq!(of(&[255, 254]), [255, 254]);
    }
}
