//! Where memory may be asked to be.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::readable;
use crate::IdSet;

/// Which nodes' memory is used, and how the pages are spread over them.
///
/// ```
/// use genuma_machine::{IdSet, placement::Policy};
///
/// let spread = Policy::Interleave(IdSet::from([0, 1, 2, 3]));
/// assert_eq!(spread.to_string(), "interleave 0-3");
/// assert_eq!(Policy::Weighted([(0, 3), (1, 1)].into()).to_string(), "weighted 0:3,1:1");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The node of the thread that places (`MPOL_LOCAL`); others when it is full.
    Local,
    /// These nodes and no other (`MPOL_BIND`).
    Bind(IdSet),
    /// These nodes in turn, page by page (`MPOL_INTERLEAVE`); others when one is full.
    Interleave(IdSet),
    /// These nodes in turn, as many pages at a time as the node's weight (1 to 255) says, over their greatest common divisor. Any kernel and
    /// no privilege will do: the pages are placed one by one.
    Weighted(BTreeMap<u32, u32>),
    /// These nodes in turn, with the kernel's weights (`MPOL_WEIGHTED_INTERLEAVE`, Linux 6.9). They are the same for the whole system and
    /// come from firmware (Linux 6.16) or the administrator: `/sys/kernel/mm/mempolicy/weighted_interleave`. An older kernel interleaves.
    KernelWeighted(IdSet),
    /// The nearest of these nodes that has room, others when all of them are full (`MPOL_PREFERRED_MANY`, Linux 5.15; an older kernel
    /// prefers the first).
    PreferredMany(IdSet),
}

impl Policy {
    /// The nodes it names; none for [`Policy::Local`].
    pub fn nodes(&self) -> IdSet {
        match self {
            Policy::Local => IdSet::new(),
            Policy::Weighted(weights) => weights.keys().copied().collect(),
            Policy::Bind(nodes)
            | Policy::Interleave(nodes)
            | Policy::KernelWeighted(nodes)
            | Policy::PreferredMany(nodes) => nodes.clone(),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Local => write!(f, "local"),
            Policy::Bind(nodes) => write!(f, "bind {nodes}"),
            Policy::Interleave(nodes) => write!(f, "interleave {nodes}"),
            Policy::Weighted(weights) => {
                write!(f, "weighted")?;
                let mut before = ' ';
                for (node, weight) in weights {
                    write!(f, "{before}{node}:{weight}")?;
                    before = ',';
                }
                Ok(())
            }
            Policy::KernelWeighted(nodes) => write!(f, "kernel-weighted {nodes}"),
            Policy::PreferredMany(nodes) => write!(f, "preferred {nodes}"),
        }
    }
}

/// Which pages memory is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pages {
    /// The machine's base pages (4 KiB on x86-64), never merged into huge ones.
    Base,
    /// Transparent huge pages (2 MiB on x86-64) for all of it but an odd end.
    Transparent,
    /// Pages of so many bytes from the pool that the administrator has set aside (hugetlb).
    Huge(u64),
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pages::Base => write!(f, "base pages"),
            Pages::Transparent => write!(f, "transparent huge pages"),
            Pages::Huge(bytes) => write!(f, "huge pages of {}", readable(*bytes)),
        }
    }
}

/// How memory is to be placed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// On which nodes.
    pub policy: Policy,
    /// In which pages.
    pub pages: Pages,
}

impl From<Policy> for Placement {
    /// The policy with base pages, which spread finest.
    fn from(policy: Policy) -> Self {
        Placement { policy, pages: Pages::Base }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.policy, self.pages)
    }
}
