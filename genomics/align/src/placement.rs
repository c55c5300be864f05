//! Where an index lies: on which nodes, chosen, brought there, and looked up afterwards.
//!
//! An index is read at random by all workers, so on a machine with several nodes its place decides what each read costs
//! (misale2014, section V; lenis2017): a copy on each node makes every access local; one copy spread over all nodes shares
//! their bandwidth; one copy on the node of the thread that loaded it makes that node's bank the bottleneck.

use std::collections::BTreeMap;
use std::fmt;

use genuma_machine::placement::{self, Policy, Replicated, Residence, Scoped, residence_of};
use genuma_machine::{IdSet, Topology};

use crate::engine::{self, Engine};

/// What the user wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wish {
    /// Whatever suits the machine and the index.
    #[default]
    Auto,
    /// On the node of the thread that loads it.
    Local,
    /// Spread evenly, page by page.
    Interleave,
    /// Spread by the kernel's weights of the nodes.
    Weighted,
    /// A copy on each node that has workers.
    Replicate,
}

/// What is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// On the node of the thread that loads it.
    Local,
    /// Spread evenly over these nodes.
    Interleave(IdSet),
    /// Spread over these nodes by the kernel's weights.
    Weighted(IdSet),
    /// A copy on each of these nodes.
    Replicate(IdSet),
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Local => write!(f, "local"),
            Choice::Interleave(nodes) => write!(f, "interleaved over nodes {nodes}"),
            Choice::Weighted(nodes) => write!(f, "spread over nodes {nodes} by the kernel's weights"),
            Choice::Replicate(nodes) => write!(f, "a copy on each of nodes {nodes}"),
        }
    }
}

/// A choice and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What is done.
    pub choice: Choice,
    /// Why, in words.
    pub why: String,
}

/// What was measured of a machine's memory, as far as it decides where an index should lie.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Measured {
    /// Latency (ns) from the CPUs of a node, the first number, to the memory of another or the same, the second.
    pub latency: BTreeMap<(u32, u32), f64>,
    /// Bandwidth (GB/s) of each node's memory to its own CPUs.
    pub bandwidth: BTreeMap<u32, f64>,
}

/// Farther memory costs so much more time that copies are worth their loading.
const FAR: f64 = 1.1;
/// Banks whose bandwidths differ by more than this ratio are not alike.
const UNEVEN: f64 = 1.25;

impl Measured {
    /// The mean latency of memory on another node over that on the own, for these nodes; none where a pair was not measured.
    fn far(&self, nodes: &IdSet) -> Option<f64> {
        let (mut near, mut far, mut pairs) = (0.0, 0.0, 0.0);
        for from in nodes.iter() {
            near += self.latency.get(&(from, from))?;
            for to in nodes.iter().filter(|&to| to != from) {
                far += self.latency.get(&(from, to))?;
                pairs += 1.0;
            }
        }
        let ratio = far / pairs / (near / nodes.len() as f64);
        ratio.is_finite().then_some(ratio)
    }

    /// The least and the greatest bandwidth of these nodes' banks; none where one was not measured.
    fn banks(&self, nodes: &IdSet) -> Option<(f64, f64)> {
        let all = nodes.iter().map(|node| self.bandwidth.get(&node).copied()).collect::<Option<Vec<_>>>()?;
        Some((all.iter().copied().reduce(f64::min)?, all.iter().copied().reduce(f64::max)?))
    }
}

/// Chooses for an index of so many bytes on this machine. A machine where memory may come from one node only leaves no choice.
///
/// Without measurements other nodes are taken to be far, and banks to be as the kernel's weights say.
pub fn plan(wish: Wish, topology: &Topology, measured: Option<&Measured>, bytes: u64) -> Plan {
    let banks = topology.memory_nodes();
    let near = banks.and(&topology.cpu_nodes());
    let near = if near.is_empty() { banks.clone() } else { near };
    let plan = |choice, why: String| Plan { choice, why };
    if banks.len() < 2 {
        return plan(Choice::Local, "there is one node".to_owned());
    }
    let asked = || "as asked".to_owned();
    match wish {
        Wish::Local => plan(Choice::Local, asked()),
        Wish::Interleave => plan(Choice::Interleave(banks), asked()),
        Wish::Weighted => plan(Choice::Weighted(banks), asked()),
        Wish::Replicate => plan(Choice::Replicate(near), asked()),
        Wish::Auto => {
            let free = |node| topology.node(node).map_or(0, |node| node.free);
            let least = near.iter().map(free).min().unwrap_or(0);
            let far = measured.and_then(|measured| measured.far(&near));
            let told = far.map(|far| format!("other nodes' memory takes {far:.2} times as long"));
            let because = |why: String| told.iter().fold(why, |why, told| format!("{why}, and {told}"));
            // Reads, records and the cache of files need room, too.
            let fits = bytes <= least / 2;
            if fits && far.is_none_or(|far| far >= FAR) {
                let why = format!("{} fit into half of what each node has free", mib(bytes));
                return plan(Choice::Replicate(near), because(why));
            }
            let why = match told {
                Some(told) if fits => told,
                _ => format!("{} are more than half of the {} free on a node", mib(bytes), mib(least)),
            };
            let uneven = measured.and_then(|measured| measured.banks(&banks)).filter(|(a, b)| b / a > UNEVEN);
            match (&topology.weights, uneven) {
                (Some(weights), _) if differ(weights, &banks) => plan(
                    Choice::Weighted(banks),
                    format!("{why}, and the kernel weighs the nodes' banks differently"),
                ),
                (_, Some((a, b))) => plan(
                    Choice::Interleave(banks),
                    format!(
                        "{why}; the banks reach {a:.0} to {b:.0} GB/s but the kernel weighs them alike: see \
                         /sys/kernel/mm/mempolicy/weighted_interleave"
                    ),
                ),
                _ => plan(Choice::Interleave(banks), why),
            }
        }
    }
}

/// Whether the weights of these nodes are not all the same.
fn differ(weights: &BTreeMap<u32, u32>, nodes: &IdSet) -> bool {
    let mut weights = nodes.iter().filter_map(|node| weights.get(&node));
    let first = weights.next();
    weights.any(|weight| Some(weight) != first)
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

/// Why an index is not where it should be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be loaded.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// It cannot be placed.
    #[error("the index cannot be placed: {0}")]
    Placement(#[from] placement::Error),
}

/// An engine in memory, or several, of which each worker takes the nearest.
pub enum Loaded<E> {
    /// One for all.
    One(E),
    /// One on each node.
    Each(Replicated<E>),
}

/// Where the large arrays of an index are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The node that this copy is for; none where there is one copy.
    pub copy: Option<u32>,
    /// Where its pages are.
    pub residence: Residence,
}

/// The arrays of an engine that lies on one node, in huge pages where the kernel has them. An index that is spread stays
/// in small pages: a huge one lies on one node.
fn huge<E: Engine>(engine: E) -> E {
    let covered: usize = engine.regions().iter().map(|region| placement::collapse(region.bytes)).sum();
    tracing::debug!("{} of the index in huge pages", mib(covered as u64));
    engine
}

impl<E: Engine> Loaded<E> {
    /// Loads by the plan: `load` is called once for each copy, by a thread whose memory comes from where the copy is to be.
    ///
    /// # Errors
    /// What `load` returns, or nodes that may not be used.
    pub fn load(choice: &Choice, load: impl Fn() -> Result<E, engine::Error> + Sync) -> Result<Self, Error> {
        let spread = |policy: Policy| {
            // A thread of its own has no memory from earlier that it could fill first.
            let made = std::thread::scope(|scope| {
                let load = &load;
                let loading = scope.spawn(move || {
                    let _policy = Scoped::new(&policy)?;
                    Ok(Loaded::One(load()?))
                });
                loading.join()
            });
            made.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        match choice {
            Choice::Local => Ok(Loaded::One(huge(load()?))),
            Choice::Interleave(nodes) => spread(Policy::Interleave(nodes.clone())),
            Choice::Weighted(nodes) => spread(Policy::KernelWeighted(nodes.clone())),
            Choice::Replicate(nodes) => {
                Ok(Loaded::Each(Replicated::new(nodes, |_| Ok::<_, Error>(huge(load()?)))?))
            }
        }
    }

    /// The copy nearest to the CPU this runs on.
    pub fn nearest(&self) -> &E {
        match self {
            Loaded::One(engine) => engine,
            Loaded::Each(copies) => copies.local(),
        }
    }

    /// Where the kernel says that the arrays are which the engine shows; nothing where it shows none.
    ///
    /// # Errors
    /// When the kernel forbids the question.
    pub fn found(&self) -> Result<Vec<Found>, Error> {
        let of = |copy, engine: &E| {
            let mut all = Residence::default();
            for region in engine.regions() {
                let residence = residence_of(region.bytes)?;
                all.page = residence.page;
                all.absent += residence.absent;
                for (node, pages) in residence.nodes {
                    *all.nodes.entry(node).or_default() += pages;
                }
            }
            Ok((!engine.regions().is_empty()).then_some(Found { copy, residence: all }))
        };
        let found: Result<Vec<_>, Error> = match self {
            Loaded::One(engine) => vec![of(None, engine)].into_iter().collect(),
            Loaded::Each(copies) => copies.iter().map(|(node, engine)| of(Some(node), engine)).collect(),
        };
        Ok(found?.into_iter().flatten().collect())
    }
}

/// Whether what was found is what was chosen: each copy on its node, a spread even to a fiftieth. Nothing is promised of local
/// memory, or of the kernel's weights.
pub fn as_chosen(choice: &Choice, found: &[Found]) -> bool {
    found.iter().all(|Found { copy, residence }| {
        let pages = residence.present();
        let on = |node: &u32| residence.nodes.get(node).copied().unwrap_or(0);
        match (choice, copy) {
            (Choice::Replicate(_), Some(node)) => on(node) == pages,
            (Choice::Interleave(nodes), _) => {
                let share = pages / nodes.len().max(1) as u64;
                nodes.iter().all(|node| on(&node).abs_diff(share) <= share / 50 + 2)
                    && residence.nodes.keys().all(|&node| nodes.contains(node))
            }
            (Choice::Weighted(nodes), _) => residence.nodes.keys().all(|&node| nodes.contains(node)),
            _ => true,
        }
    })
}

#[cfg(test)]
mod tests {
    use genuma_machine::Source;
    use genuma_machine::topology::Synthetic;

    use super::*;

    fn machine(text: &str) -> Topology {
        text.parse::<Synthetic>().unwrap().topology().unwrap()
    }

    #[test]
    fn one_node_leaves_no_choice() {
        let laptop = machine("1 node × 4 cores, 8 GiB");
        for wish in [Wish::Auto, Wish::Local, Wish::Interleave, Wish::Weighted, Wish::Replicate] {
            assert_eq!(plan(wish, &laptop, None, 1 << 30).choice, Choice::Local);
        }
    }

    #[test]
    fn copies_where_they_fit_easily_else_one_that_is_spread() {
        let mut server = machine("4 nodes × 4 cores, 64 GiB");
        let all = IdSet::from([0, 1, 2, 3]);
        let chosen = |server: &Topology, bytes| plan(Wish::Auto, server, None, bytes);
        server.nodes.iter_mut().for_each(|node| node.free = 16 << 30);
        let small = chosen(&server, 8 << 30);
        assert_eq!(small.choice, Choice::Replicate(all.clone()));
        assert_eq!(small.why, "8192 MiB fit into half of what each node has free");
        let large = chosen(&server, (8 << 30) + 1);
        assert_eq!(large.choice, Choice::Interleave(all.clone()));
        assert_eq!(large.why, "8193 MiB are more than half of the 16384 MiB free on a node");
        server.weights = Some([(0, 3), (1, 3), (2, 1), (3, 3)].into());
        assert_eq!(chosen(&server, 9 << 30).choice, Choice::Weighted(all.clone()));
        server.weights = Some(all.iter().map(|node| (node, 5)).collect());
        assert_eq!(chosen(&server, 9 << 30).choice, Choice::Interleave(all.clone()));
        server.nodes[2].free = 1 << 30;
        assert_eq!(chosen(&server, 1 << 30).choice, Choice::Interleave(all.clone()));
        for (wish, choice) in [
            (Wish::Local, Choice::Local),
            (Wish::Interleave, Choice::Interleave(all.clone())),
            (Wish::Weighted, Choice::Weighted(all.clone())),
            (Wish::Replicate, Choice::Replicate(all.clone())),
        ] {
            assert_eq!(plan(wish, &server, None, 1 << 40), Plan { choice, why: "as asked".to_owned() });
        }
    }

    /// Four nodes: `far` is the latency of another node's memory over that of the own, banks reach `bandwidth`.
    fn measured(far: f64, bandwidth: [f64; 4]) -> Measured {
        let pairs = (0..4).flat_map(|from| (0..4).map(move |to| (from, to)));
        let latency = pairs.map(|pair| (pair, if pair.0 == pair.1 { 90.0 } else { 90.0 * far })).collect();
        Measured { latency, bandwidth: (0..).zip(bandwidth).collect() }
    }

    #[test]
    fn what_was_measured_decides_where_it_is_known() {
        let mut server = machine("4 nodes × 4 cores, 64 GiB");
        let all = IdSet::from([0, 1, 2, 3]);
        server.nodes.iter_mut().for_each(|node| node.free = 16 << 30);
        let chosen =
            |server: &Topology, measured: &Measured, bytes| plan(Wish::Auto, server, Some(measured), bytes);
        let even = [40.0; 4];
        let far = chosen(&server, &measured(1.8, even), 1 << 30);
        assert_eq!(far.choice, Choice::Replicate(all.clone()));
        assert_eq!(
            far.why,
            "1024 MiB fit into half of what each node has free, and other nodes' memory takes 1.80 times as long"
        );
        let near = chosen(&server, &measured(1.02, even), 1 << 30);
        assert_eq!(near.choice, Choice::Interleave(all.clone()), "copies would gain nothing");
        assert_eq!(near.why, "other nodes' memory takes 1.02 times as long");
        let uneven = measured(1.8, [40.0, 40.0, 10.0, 40.0]);
        let large = chosen(&server, &uneven, 9 << 30);
        assert_eq!(large.choice, Choice::Interleave(all.clone()));
        assert!(large.why.contains("10 to 40 GB/s"), "{}", large.why);
        server.weights = Some([(0, 4), (1, 4), (2, 1), (3, 4)].into());
        assert_eq!(chosen(&server, &uneven, 9 << 30).choice, Choice::Weighted(all.clone()));
        // Half a profile is none.
        let mut part = measured(1.02, even);
        part.latency.remove(&(2, 3));
        assert_eq!(chosen(&server, &part, 1 << 30).choice, Choice::Replicate(all));
    }

    #[test]
    fn what_is_found_is_held_against_what_was_chosen() {
        let found = |copy, nodes: &[(u32, u64)]| {
            let residence = Residence { page: 4096, nodes: nodes.iter().copied().collect(), absent: 3 };
            Found { copy, residence }
        };
        let both = IdSet::from([0, 1]);
        let spread = Choice::Interleave(both.clone());
        assert!(as_chosen(&spread, &[found(None, &[(0, 500), (1, 505)])]));
        assert!(!as_chosen(&spread, &[found(None, &[(0, 400), (1, 600)])]));
        assert!(!as_chosen(&spread, &[found(None, &[(0, 1000)])]));
        assert!(!as_chosen(&spread, &[found(None, &[(0, 500), (1, 500), (2, 9)])]));
        let copies = Choice::Replicate(both.clone());
        assert!(as_chosen(&copies, &[found(Some(0), &[(0, 9)]), found(Some(1), &[(1, 9)])]));
        assert!(!as_chosen(&copies, &[found(Some(0), &[(0, 9)]), found(Some(1), &[(1, 8), (0, 1)])]));
        assert!(as_chosen(&Choice::Weighted(both), &[found(None, &[(0, 900), (1, 100)])]));
        assert!(as_chosen(&Choice::Local, &[]));
    }
}
