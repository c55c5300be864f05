//! Parses policies, lists of nodes and CPUs, and flags of a request.

use std::collections::BTreeMap;
use std::ffi::c_uint;

use genuma_machine::IdSet;
use genuma_machine::placement::{MemoryPlacement, MemoryPolicy, PageSize, usable_nodes};

use crate::status::Failure;

/// Flag `GENUMA_HUGE_PAGES`: transparent huge pages.
const HUGE_PAGES: c_uint = 1;
/// Word for all nodes that the process may use.
const ALL_NODES: &str = "all";

/// Restriction of a thread to CPUs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CpuRequest {
    /// These CPUs.
    Cpus(IdSet),
    /// The CPUs of this node that the process may use.
    CpusOfNode(u32),
}

/// Parses a memory policy: `local`, or its name and nodes, such as `bind 0`, `interleave all` or `weighted 0:3,1:1`.
pub(crate) fn parse_policy(text: &str) -> Result<MemoryPolicy, Failure> {
    let (name, nodes) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    match (name, nodes.trim()) {
        ("local", "") => Ok(MemoryPolicy::Local),
        ("weighted", nodes) => parse_weights(nodes).map(MemoryPolicy::Weighted),
        ("bind", nodes) => parse_nodes(nodes).map(MemoryPolicy::Bind),
        ("interleave", nodes) => parse_nodes(nodes).map(MemoryPolicy::Interleave),
        ("kernel-weighted", nodes) => parse_nodes(nodes).map(MemoryPolicy::KernelWeighted),
        ("preferred", nodes) => parse_nodes(nodes).map(MemoryPolicy::PreferredMany),
        _ => Err(Failure::invalid(format!(
            "'{text}' is not a memory policy: use local, bind NODES, interleave NODES, weighted NODE:WEIGHT,..., \
             kernel-weighted NODES or preferred NODES"
        ))),
    }
}

/// Parses a list of nodes, such as `0-3,8` or `all`.
pub(crate) fn parse_nodes(text: &str) -> Result<IdSet, Failure> {
    if text.trim() == ALL_NODES {
        return Ok(usable_nodes());
    }
    match text.parse::<IdSet>() {
        Ok(nodes) if !nodes.is_empty() => Ok(nodes),
        _ => Err(Failure::invalid(format!("'{text}' is not a list of nodes such as 0-3,8 or all"))),
    }
}

/// Parses nodes with weights, such as `0:3,1:1`.
fn parse_weights(text: &str) -> Result<BTreeMap<u32, u32>, Failure> {
    let invalid = || Failure::invalid(format!("'{text}' is not a list of nodes with weights such as 0:3,1:1"));
    let mut weights = BTreeMap::new();
    for part in text.split(',') {
        let (node, weight) = part.split_once(':').ok_or_else(invalid)?;
        let number = |word: &str| word.trim().parse::<u32>().map_err(|_| invalid());
        if weights.insert(number(node)?, number(weight)?).is_some() {
            return Err(invalid());
        }
    }
    Ok(weights)
}

/// Parses CPUs: a list such as `0-7,16`, or `node 1` for the CPUs of a node.
pub(crate) fn parse_cpus(text: &str) -> Result<CpuRequest, Failure> {
    let node = text.trim().strip_prefix("node ").map(|node| node.trim().parse());
    match (node, text.parse::<IdSet>()) {
        (Some(Ok(node)), _) => Ok(CpuRequest::CpusOfNode(node)),
        (None, Ok(cpus)) if !cpus.is_empty() => Ok(CpuRequest::Cpus(cpus)),
        _ => Err(Failure::invalid(format!("'{text}' is not a list of CPUs such as 0-7,16, or a node such as node 1"))),
    }
}

/// Page size that the flags request.
pub(crate) fn page_size(flags: c_uint) -> Result<PageSize, Failure> {
    match flags {
        0 => Ok(PageSize::Base),
        HUGE_PAGES => Ok(PageSize::Transparent),
        _ => Err(Failure::invalid(format!("flags {flags:#x} are unknown: use 0 or GENUMA_HUGE_PAGES"))),
    }
}

/// Differences between a requested and an applied placement, as text.
pub(crate) fn placement_differences(requested: &MemoryPlacement, applied: &MemoryPlacement) -> Vec<String> {
    let mut differences = policy_difference(&requested.policy, &applied.policy);
    if requested.page_size != applied.page_size {
        let [requested, applied] = [requested, applied].map(|placement| placement.page_size);
        differences.push(format!(
            "{requested}: {applied} are used, because the memory is too small for huge pages or the kernel gave none \
             (/sys/kernel/mm/transparent_hugepage/enabled)"
        ));
    }
    differences
}

/// Difference between a requested and an applied policy, as text; nothing if their effect is the same.
pub(crate) fn policy_difference(requested: &MemoryPolicy, applied: &MemoryPolicy) -> Vec<String> {
    let kernel_places_weighted =
        matches!((requested, applied), (MemoryPolicy::Weighted(_), MemoryPolicy::KernelWeighted(_)));
    // On one node every policy is local.
    if requested == applied || kernel_places_weighted || usable_nodes().len() == 1 {
        return Vec::new();
    }
    vec![format!(
        "{requested}: the policy is {applied} instead, because this kernel lacks the policy, or this process may not set \
         memory policies (limits of a container or batch job)"
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_written_as_they_are_shown() {
        for text in ["local", "bind 0-3,8", "interleave 0,2", "weighted 0:3,1:1", "kernel-weighted 0-1", "preferred 5"]
        {
            assert_eq!(parse_policy(text).expect("a policy").to_string(), text);
        }
        let all = MemoryPolicy::Interleave(usable_nodes());
        assert_eq!(parse_policy(" interleave  all ").expect("a policy"), all);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "bind", "bind x", "local 0", "spread 0-3", "weighted 0", "weighted 0:1,0:2", "Bind 0"] {
            assert!(parse_policy(text).is_err(), "{text}");
        }
        for text in ["", "node", "node x", "0-", "all"] {
            assert!(parse_cpus(text).is_err(), "{text}");
        }
        assert_eq!(parse_cpus("node 3").expect("a node"), CpuRequest::CpusOfNode(3));
        assert_eq!(parse_cpus("0-1,7").expect("CPUs"), CpuRequest::Cpus([0, 1, 7].into()));
        assert!(page_size(2).is_err() && page_size(3).is_err());
    }

    #[test]
    fn page_sizes_that_differ_are_reported() {
        let placement = |page_size| MemoryPlacement { policy: MemoryPolicy::Local, page_size };
        let of = |applied| placement_differences(&placement(PageSize::Transparent), &placement(applied));
        assert!(of(PageSize::Transparent).is_empty());
        assert!(of(PageSize::Base)[0].starts_with("transparent huge pages: base pages are used"));
    }
}
