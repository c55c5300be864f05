//! Quick check that a machine, container or cpuset honours memory placement and thread pinning: requests memory under
//! every policy and a thread on every CPU, and queries the kernel for where memory and threads are.

use std::collections::BTreeMap;
use std::fmt;

use genuma_machine::placement::{Error, MemoryPlacement, MemoryPolicy, PageSize, PlacedSlice, pin};
use genuma_machine::{IdSet, Topology};
use serde::Serialize;

/// Bytes allocated under each policy.
pub(crate) const ALLOCATED_BYTES_PER_POLICY: u64 = 64 << 20;

/// Result of the placement check: for each request, where memory and threads were found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlacementReport {
    /// Bytes allocated under each policy.
    pub bytes: u64,
    /// One row per memory policy and page kind.
    pub memory: Vec<MemoryPlacementRow>,
    /// One row per CPU.
    pub threads: Vec<ThreadPinningRow>,
}

/// Result for memory under one policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryPlacementRow {
    /// Requested nodes, policy and page size.
    #[serde(rename = "asked")]
    pub requested: MemoryPlacement,
    /// The placement that was applied. It differs from the requested one where the kernel refuses it, or there is
    /// only one node. `None` on failure.
    #[serde(rename = "done")]
    pub applied: Option<MemoryPlacement>,
    /// Number of base pages found on each node (`move_pages`).
    #[serde(rename = "pages")]
    pub pages_by_node: BTreeMap<u32, u64>,
    /// Whether the memory is on the requested nodes.
    pub outcome: PlacementOutcome,
    /// Why the memory could not be allocated or checked. `None` on success.
    pub why: Option<String>,
}

/// Result for one thread that was pinned to one CPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ThreadPinningRow {
    /// Number of the CPU that the thread was pinned to.
    pub cpu: u32,
    /// NUMA node of the CPU that the thread was pinned to.
    pub node: u32,
    /// CPU that the thread ran on (`getcpu`).
    pub(crate) found_cpu: u32,
    /// NUMA node that the thread ran on (`getcpu`).
    pub(crate) found_node: u32,
    /// Whether the thread ran on the CPU that it was pinned to, and on the NUMA node of that CPU.
    pub outcome: PlacementOutcome,
    /// Why the thread could not be pinned. `None` on success.
    pub why: Option<String>,
}

/// Outcome of a placement or pinning request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlacementOutcome {
    /// The memory is on the requested nodes, or the thread ran on the requested CPU.
    #[serde(rename = "as-asked")]
    AsRequested,
    /// The kernel refused the request, so the memory or thread is on other nodes or CPUs, or there is no memory.
    Refused,
    /// The kernel accepted the request, but memory or thread is on other nodes or CPUs.
    Elsewhere,
}

/// Checks that the kernel does what genuma requests: allocates [`ALLOCATED_BYTES_PER_POLICY`] bytes under each memory
/// policy that the topology allows, pins a thread to each CPU, and reports where memory and threads actually are.
pub fn check_memory_and_thread_placement(topology: &Topology) -> PlacementReport {
    let memory = placements_to_check(topology).into_iter().map(check_memory).collect();
    let usable = topology.cpus.iter().filter(|cpu| topology.allowed.cpus.contains(cpu.id));
    let threads = usable.map(|cpu| check_thread(cpu.id, cpu.node)).collect();
    PlacementReport { bytes: ALLOCATED_BYTES_PER_POLICY, memory, threads }
}

/// All placements to check: each policy with base pages and with transparent huge pages.
fn placements_to_check(topology: &Topology) -> Vec<MemoryPlacement> {
    let nodes = topology.allowed_memory_nodes();
    let mut policies = vec![MemoryPolicy::Local];
    policies.extend(nodes.iter().map(|node| MemoryPolicy::Bind(IdSet::from([node]))));
    policies.push(MemoryPolicy::Interleave(nodes.clone()));
    // Unequal weights, so that an equal distribution is not mistaken for a weighted one.
    let weights = nodes.iter().zip([3, 1, 2].into_iter().cycle()).collect();
    policies.push(MemoryPolicy::Weighted(weights));
    policies.push(MemoryPolicy::KernelWeighted(nodes.clone()));
    policies.push(MemoryPolicy::PreferredMany(nodes));
    let in_pages = |pages| policies.clone().into_iter().map(move |policy| MemoryPlacement { policy, page_size: pages });
    in_pages(PageSize::Base).chain(in_pages(PageSize::Transparent)).collect()
}

fn check_memory(asked: MemoryPlacement) -> MemoryPlacementRow {
    let looked = PlacedSlice::<u64>::new_zeroed((ALLOCATED_BYTES_PER_POLICY / 8) as usize, &asked)
        .and_then(|placed| Ok((placed.applied_placement().clone(), placed.verify_placement()?)));
    match looked {
        Ok((done, verdict)) => MemoryPlacementRow {
            outcome: match (verdict.is_as_requested, done.policy == asked.policy) {
                (true, _) => PlacementOutcome::AsRequested,
                (false, true) => PlacementOutcome::Elsewhere,
                (false, false) => PlacementOutcome::Refused,
            },
            pages_by_node: verdict.residence.pages_by_node,
            applied: Some(done),
            why: None,
            requested: asked,
        },
        Err(error) => failed_memory_row(asked, &error),
    }
}

fn failed_memory_row(asked: MemoryPlacement, error: &Error) -> MemoryPlacementRow {
    MemoryPlacementRow {
        requested: asked,
        applied: None,
        pages_by_node: BTreeMap::new(),
        outcome: PlacementOutcome::Refused,
        why: Some(error.to_string()),
    }
}

fn check_thread(cpu: u32, node: u32) -> ThreadPinningRow {
    // In a separate thread, so that no pinning remains.
    let pinned = std::thread::spawn(move || {
        let pinned = pin::pin_to_cpu(cpu);
        let here = pin::current_location();
        let kept = pinned.as_ref().is_ok_and(|pinned| *pinned.pinned_cpus() == IdSet::from([cpu]));
        (here, kept, pinned.err().map(|error| error.to_string()))
    });
    let Ok((here, kept, why)) = pinned.join() else {
        let why = Some("the thread ended unexpectedly".to_owned());
        return ThreadPinningRow { cpu, node, found_cpu: 0, found_node: 0, outcome: PlacementOutcome::Elsewhere, why };
    };
    let outcome = match ((here.cpu, here.node) == (cpu, node), kept) {
        (true, _) => PlacementOutcome::AsRequested,
        (false, true) => PlacementOutcome::Elsewhere,
        (false, false) => PlacementOutcome::Refused,
    };
    ThreadPinningRow { cpu, node, found_cpu: here.cpu, found_node: here.node, outcome, why }
}

impl PlacementReport {
    /// Number of rows with this outcome.
    pub fn count_rows_with_outcome(&self, outcome: PlacementOutcome) -> usize {
        let memory = self.memory.iter().filter(|row| row.outcome == outcome).count();
        memory + self.threads.iter().filter(|row| row.outcome == outcome).count()
    }
}

impl fmt::Display for PlacementOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            PlacementOutcome::AsRequested => "as asked",
            PlacementOutcome::Refused => "refused",
            PlacementOutcome::Elsewhere => "ELSEWHERE",
        })
    }
}

/// Formats all rows as a table, followed by a summary line.
impl fmt::Display for PlacementReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let asked = |row: &MemoryPlacementRow| row.requested.policy.to_string();
        let wide = self.memory.iter().map(|row| asked(row).len()).max().unwrap_or(0).max(5);
        writeln!(f, "{} MiB of memory under each policy", self.bytes >> 20)?;
        writeln!(f, "  {:wide$}  pages  {:10}  found, in base pages", "asked", "outcome")?;
        for row in &self.memory {
            let pages = if row.requested.page_size == PageSize::Base { "base" } else { "huge" };
            let found: Vec<String> = row.pages_by_node.iter().map(|(node, n)| format!("node {node}: {n}")).collect();
            let instead = row.applied.as_ref().filter(|done| **done != row.requested);
            let instead = instead.map_or(String::new(), |done| format!("  (done as {done})"));
            let why = row.why.as_deref().unwrap_or_default();
            let outcome = row.outcome;
            writeln!(f, "  {:wide$}  {pages}   {outcome:10}  {}{why}{instead}", asked(row), found.join(", "))?;
        }
        writeln!(f, "\na thread pinned to each CPU")?;
        writeln!(f, "  asked           outcome     found")?;
        for row in &self.threads {
            let asked = format!("CPU {} node {}", row.cpu, row.node);
            let found = format!("CPU {} node {}", row.found_cpu, row.found_node);
            let outcome = row.outcome;
            let why = row.why.as_ref().map_or(String::new(), |why| format!("  {why}"));
            writeln!(f, "  {asked:14}  {outcome:10}  {found}{why}")?;
        }
        let [as_asked, refused, elsewhere] =
            [PlacementOutcome::AsRequested, PlacementOutcome::Refused, PlacementOutcome::Elsewhere]
                .map(|outcome| self.count_rows_with_outcome(outcome));
        writeln!(f, "\n{as_asked} as asked, {refused} refused by the kernel, {elsewhere} elsewhere than asked")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use genuma_machine::topology::{SyntheticMachine, Sysfs, TopologySource};

    #[test]
    fn every_policy_is_asked_for_in_both_kinds_of_pages() {
        let server: SyntheticMachine = "4 nodes x 2 cores, 16 GiB".parse().expect("a description");
        let asked: Vec<String> =
            placements_to_check(&server.topology().expect("a topology")).iter().map(ToString::to_string).collect();
        assert_eq!(asked.len(), 2 * 9);
        for words in ["local, base pages", "bind 2, transparent huge pages", "weighted 0:3,1:1,2:2,3:3, base pages"] {
            assert!(asked.iter().any(|ask| ask == words), "{words}: {asked:?}");
        }
    }

    #[test]
    fn this_machine_is_asked() {
        let topology = Sysfs::new().topology().expect("a topology");
        let report = check_memory_and_thread_placement(&topology);
        assert_eq!(report.threads.len(), topology.allowed.cpus.len());
        assert_eq!(report.memory.len(), 2 * (5 + topology.allowed_memory_nodes().len()));
        // Where the kernel refuses a request, the row says so; no accepted request may be elsewhere.
        assert_eq!(report.count_rows_with_outcome(PlacementOutcome::Elsewhere), 0, "{report}");
        for row in report.memory.iter().filter(|row| row.outcome == PlacementOutcome::AsRequested) {
            assert_eq!(
                row.pages_by_node.values().sum::<u64>() * topology.page_bytes,
                ALLOCATED_BYTES_PER_POLICY,
                "{row:?}"
            );
        }
    }

    #[test]
    fn a_table_shows_what_went_wrong() {
        let asked = MemoryPlacement::from(MemoryPolicy::Bind(IdSet::from([1])));
        let wrong = MemoryPlacementRow {
            applied: Some(asked.clone()),
            pages_by_node: [(0, 10), (1, 6)].into(),
            outcome: PlacementOutcome::Elsewhere,
            why: None,
            requested: asked.clone(),
        };
        let refused = MemoryPlacementRow {
            applied: Some(MemoryPlacement::from(MemoryPolicy::Local)),
            outcome: PlacementOutcome::Refused,
            ..wrong.clone()
        };
        let thread = ThreadPinningRow {
            cpu: 3,
            node: 1,
            found_cpu: 0,
            found_node: 0,
            outcome: PlacementOutcome::Refused,
            why: None,
        };
        let table =
            PlacementReport { bytes: ALLOCATED_BYTES_PER_POLICY, memory: vec![wrong, refused], threads: vec![thread] }
                .to_string();
        assert!(table.contains("  bind 1  base   ELSEWHERE   node 0: 10, node 1: 6\n"), "{table}");
        assert!(table.contains("(done as local, base pages)"), "{table}");
        assert!(table.contains("  CPU 3 node 1    refused     CPU 0 node 0"), "{table}");
        assert!(table.ends_with("0 as asked, 2 refused by the kernel, 1 elsewhere than asked\n"), "{table}");
    }
}
