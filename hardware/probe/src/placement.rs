//! The quick check that a machine, container or cpuset honours placement: asks for memory and threads in every way there is, and asks the
//! kernel where they came to be.

use std::collections::BTreeMap;
use std::fmt;

use genuma_machine::placement::{Error, Pages, Placed, Placement, Policy, pin};
use genuma_machine::{IdSet, Topology};
use serde::Serialize;

/// Bytes placed under each policy.
pub const BYTES: u64 = 64 << 20;

/// What was asked for, and what the kernel says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Bytes placed under each policy.
    pub bytes: u64,
    /// One row a policy and kind of pages.
    pub memory: Vec<MemoryRow>,
    /// One row a CPU.
    pub threads: Vec<ThreadRow>,
}

/// Memory under one policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryRow {
    /// What was asked for.
    pub asked: Placement,
    /// What was done: other than asked where the kernel refuses, or where there is no choice.
    pub done: Option<Placement>,
    /// Base pages found on each node (`move_pages`).
    pub pages: BTreeMap<u32, u64>,
    /// How it came out.
    pub outcome: Outcome,
    /// Why nothing is known; absent when something is.
    pub why: Option<String>,
}

/// A thread pinned to one CPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ThreadRow {
    /// CPU asked for.
    pub cpu: u32,
    /// Its node.
    pub node: u32,
    /// CPU the thread ran on (`getcpu`).
    pub(crate) found_cpu: u32,
    /// Node it ran on (`getcpu`).
    pub(crate) found_node: u32,
    /// How it came out.
    pub outcome: Outcome,
    /// Why it was not pinned; absent when it was.
    pub why: Option<String>,
}

/// How an ask came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// All of it is where it was asked to be.
    AsAsked,
    /// The kernel refused, and it is elsewhere.
    Refused,
    /// The kernel took the ask, and it is elsewhere all the same.
    Elsewhere,
}

/// Places [`BYTES`] under each policy that the topology allows and a thread on each CPU.
pub fn check(topology: &Topology) -> Report {
    let memory = asks(topology).into_iter().map(memory_row).collect();
    let usable = topology.cpus.iter().filter(|cpu| topology.allowed.cpus.contains(cpu.id));
    let threads = usable.map(|cpu| thread_row(cpu.id, cpu.node)).collect();
    Report { bytes: BYTES, memory, threads }
}

/// All ways to ask, in base and in transparent huge pages.
fn asks(topology: &Topology) -> Vec<Placement> {
    let nodes = topology.memory_nodes();
    let mut policies = vec![Policy::Local];
    policies.extend(nodes.iter().map(|node| Policy::Bind(IdSet::from([node]))));
    policies.push(Policy::Interleave(nodes.clone()));
    // Unequal weights, so that an equal spread is not taken for theirs.
    let weights = nodes.iter().zip([3, 1, 2].into_iter().cycle()).collect();
    policies.push(Policy::Weighted(weights));
    policies.push(Policy::KernelWeighted(nodes.clone()));
    policies.push(Policy::PreferredMany(nodes));
    let in_pages = |pages| policies.clone().into_iter().map(move |policy| Placement { policy, pages });
    in_pages(Pages::Base).chain(in_pages(Pages::Transparent)).collect()
}

fn memory_row(asked: Placement) -> MemoryRow {
    let looked = Placed::<u64>::zeroed((BYTES / 8) as usize, &asked)
        .and_then(|placed| Ok((placed.placement().clone(), placed.verify()?)));
    match looked {
        Ok((done, verdict)) => MemoryRow {
            outcome: match (verdict.fits, done.policy == asked.policy) {
                (true, _) => Outcome::AsAsked,
                (false, true) => Outcome::Elsewhere,
                (false, false) => Outcome::Refused,
            },
            pages: verdict.found.nodes,
            done: Some(done),
            why: None,
            asked,
        },
        Err(error) => unknown(asked, &error),
    }
}

fn unknown(asked: Placement, error: &Error) -> MemoryRow {
    MemoryRow {
        asked,
        done: None,
        pages: BTreeMap::new(),
        outcome: Outcome::Refused,
        why: Some(error.to_string()),
    }
}

fn thread_row(cpu: u32, node: u32) -> ThreadRow {
    // In a thread of its own: nothing that is pinned here may stay so.
    let pinned = std::thread::spawn(move || {
        let pinned = pin::to_cpu(cpu);
        let here = pin::here();
        let kept = pinned.as_ref().is_ok_and(|pinned| *pinned.cpus() == IdSet::from([cpu]));
        (here, kept, pinned.err().map(|error| error.to_string()))
    });
    let Ok((here, kept, why)) = pinned.join() else {
        let why = Some("the thread ended unexpectedly".to_owned());
        return ThreadRow { cpu, node, found_cpu: 0, found_node: 0, outcome: Outcome::Elsewhere, why };
    };
    let outcome = match ((here.cpu, here.node) == (cpu, node), kept) {
        (true, _) => Outcome::AsAsked,
        (false, true) => Outcome::Elsewhere,
        (false, false) => Outcome::Refused,
    };
    ThreadRow { cpu, node, found_cpu: here.cpu, found_node: here.node, outcome, why }
}

impl Report {
    /// How many rows came out in a way.
    pub fn count(&self, outcome: Outcome) -> usize {
        let memory = self.memory.iter().filter(|row| row.outcome == outcome).count();
        memory + self.threads.iter().filter(|row| row.outcome == outcome).count()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Outcome::AsAsked => "as asked",
            Outcome::Refused => "refused",
            Outcome::Elsewhere => "ELSEWHERE",
        })
    }
}

/// A table of all rows and a line that sums them up.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let asked = |row: &MemoryRow| row.asked.policy.to_string();
        let wide = self.memory.iter().map(|row| asked(row).len()).max().unwrap_or(0).max(5);
        writeln!(f, "{} MiB of memory under each policy", self.bytes >> 20)?;
        writeln!(f, "  {:wide$}  pages  {:10}  found, in base pages", "asked", "outcome")?;
        for row in &self.memory {
            let pages = if row.asked.pages == Pages::Base { "base" } else { "huge" };
            let found: Vec<String> = row.pages.iter().map(|(node, n)| format!("node {node}: {n}")).collect();
            let instead = row.done.as_ref().filter(|done| **done != row.asked);
            let instead = instead.map_or(String::new(), |done| format!("  (done as {done})"));
            let why = row.why.as_deref().unwrap_or_default();
            let outcome = row.outcome;
            writeln!(
                f,
                "  {:wide$}  {pages}   {outcome:10}  {}{why}{instead}",
                asked(row),
                found.join(", ")
            )?;
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
            [Outcome::AsAsked, Outcome::Refused, Outcome::Elsewhere].map(|outcome| self.count(outcome));
        writeln!(
            f,
            "\n{as_asked} as asked, {refused} refused by the kernel, {elsewhere} elsewhere than asked"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use genuma_machine::topology::{Source, Synthetic, Sysfs};

    #[test]
    fn every_policy_is_asked_for_in_both_kinds_of_pages() {
        let server: Synthetic = "4 nodes x 2 cores, 16 GiB".parse().expect("a description");
        let asked: Vec<String> =
            asks(&server.topology().expect("a topology")).iter().map(ToString::to_string).collect();
        assert_eq!(asked.len(), 2 * 9);
        for words in
            ["local, base pages", "bind 2, transparent huge pages", "weighted 0:3,1:1,2:2,3:3, base pages"]
        {
            assert!(asked.iter().any(|ask| ask == words), "{words}: {asked:?}");
        }
    }

    #[test]
    fn this_machine_is_asked() {
        let topology = Sysfs::new().topology().expect("a topology");
        let report = check(&topology);
        assert_eq!(report.threads.len(), topology.allowed.cpus.len());
        assert_eq!(report.memory.len(), 2 * (5 + topology.memory_nodes().len()));
        // Where the kernel refuses, that is told; nothing it takes may be elsewhere.
        assert_eq!(report.count(Outcome::Elsewhere), 0, "{report}");
        for row in report.memory.iter().filter(|row| row.outcome == Outcome::AsAsked) {
            assert_eq!(row.pages.values().sum::<u64>() * topology.page, BYTES, "{row:?}");
        }
    }

    #[test]
    fn a_table_shows_what_went_wrong() {
        let asked = Placement::from(Policy::Bind(IdSet::from([1])));
        let wrong = MemoryRow {
            done: Some(asked.clone()),
            pages: [(0, 10), (1, 6)].into(),
            outcome: Outcome::Elsewhere,
            why: None,
            asked: asked.clone(),
        };
        let refused = MemoryRow {
            done: Some(Placement::from(Policy::Local)),
            outcome: Outcome::Refused,
            ..wrong.clone()
        };
        let thread =
            ThreadRow { cpu: 3, node: 1, found_cpu: 0, found_node: 0, outcome: Outcome::Refused, why: None };
        let table = Report { bytes: BYTES, memory: vec![wrong, refused], threads: vec![thread] }.to_string();
        assert!(table.contains("  bind 1  base   ELSEWHERE   node 0: 10, node 1: 6\n"), "{table}");
        assert!(table.contains("(done as local, base pages)"), "{table}");
        assert!(table.contains("  CPU 3 node 1    refused     CPU 0 node 0"), "{table}");
        assert!(table.ends_with("0 as asked, 2 refused by the kernel, 1 elsewhere than asked\n"), "{table}");
    }
}
