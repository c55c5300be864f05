//! Memory policies and page sizes that can be requested.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::format_bytes;
use crate::IdSet;

/// NUMA memory policy: on which nodes memory is allocated, and how its pages are distributed over the nodes.
///
/// ```
/// use genuma_machine::{IdSet, placement::MemoryPolicy};
///
/// let interleaved = MemoryPolicy::Interleave(IdSet::from([0, 1, 2, 3]));
/// assert_eq!(interleaved.to_string(), "interleave 0-3");
/// assert_eq!(MemoryPolicy::Weighted([(0, 3), (1, 1)].into()).to_string(), "weighted 0:3,1:1");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryPolicy {
    /// The node of the thread that allocates (`MPOL_LOCAL`); other nodes when it is full.
    Local,
    /// The given nodes only (`MPOL_BIND`).
    Bind(IdSet),
    /// Round-robin over the given nodes, page by page (`MPOL_INTERLEAVE`); other nodes when one is full.
    Interleave(IdSet),
    /// Round-robin over nodes in proportion to the given weights (node to weight, 1 to 255), which are divided by
    /// their greatest common divisor. Works on any kernel and without privileges, because genuma places each run of
    /// pages itself.
    Weighted(BTreeMap<u32, u32>),
    /// Round-robin over the given nodes in proportion to the kernel's weights (`MPOL_WEIGHTED_INTERLEAVE`, Linux
    /// 6.9). These weights apply to the whole system and come from firmware (Linux 6.16) or the administrator
    /// (`/sys/kernel/mm/mempolicy/weighted_interleave`). An older kernel interleaves with equal weights.
    KernelWeighted(IdSet),
    /// The nearest of the given nodes with free memory; other nodes when all of these are full
    /// (`MPOL_PREFERRED_MANY`, Linux 5.15). An older kernel prefers the first given node.
    PreferredMany(IdSet),
}

impl MemoryPolicy {
    /// The nodes that the policy names; empty for [`MemoryPolicy::Local`].
    pub fn named_nodes(&self) -> IdSet {
        match self {
            MemoryPolicy::Local => IdSet::new(),
            MemoryPolicy::Weighted(weights) => weights.keys().copied().collect(),
            MemoryPolicy::Bind(nodes)
            | MemoryPolicy::Interleave(nodes)
            | MemoryPolicy::KernelWeighted(nodes)
            | MemoryPolicy::PreferredMany(nodes) => nodes.clone(),
        }
    }
}

impl fmt::Display for MemoryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryPolicy::Local => write!(f, "local"),
            MemoryPolicy::Bind(nodes) => write!(f, "bind {nodes}"),
            MemoryPolicy::Interleave(nodes) => write!(f, "interleave {nodes}"),
            MemoryPolicy::Weighted(weights) => {
                write!(f, "weighted")?;
                let mut before = ' ';
                for (node, weight) in weights {
                    write!(f, "{before}{node}:{weight}")?;
                    before = ',';
                }
                Ok(())
            }
            MemoryPolicy::KernelWeighted(nodes) => write!(f, "kernel-weighted {nodes}"),
            MemoryPolicy::PreferredMany(nodes) => write!(f, "preferred {nodes}"),
        }
    }
}

/// Size of the pages in which memory is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageSize {
    /// Base pages of the machine (4 KiB on x86-64), never merged into huge pages.
    Base,
    /// Transparent huge pages (2 MiB on x86-64), except for a remainder at the end.
    Transparent,
    /// Huge pages of this many bytes from the pool that the administrator has reserved (hugetlb).
    Huge(u64),
}

impl fmt::Display for PageSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PageSize::Base => write!(f, "base pages"),
            PageSize::Transparent => write!(f, "transparent huge pages"),
            PageSize::Huge(bytes) => write!(f, "huge pages of {}", format_bytes(*bytes)),
        }
    }
}

/// How memory is placed: memory policy and page size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPlacement {
    /// Policy that selects the NUMA nodes of the memory.
    pub policy: MemoryPolicy,
    /// Size of the pages in which the memory is allocated.
    #[serde(rename = "pages")]
    pub page_size: PageSize,
}

impl From<MemoryPolicy> for MemoryPlacement {
    /// Placement with this policy and base pages, which distribute memory in the smallest units.
    fn from(policy: MemoryPolicy) -> Self {
        MemoryPlacement { policy, page_size: PageSize::Base }
    }
}

impl fmt::Display for MemoryPlacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.policy, self.page_size)
    }
}
