//! What follows from a profile: the few numbers that the tiles, the words and the plots' titles speak of.

use std::collections::BTreeSet;

use genuma_probe::MachineProfile;
use genuma_probe::profile::{ContentionCurve, Kernel, LatencyCurve, Measured, PageKind, Spot};

use crate::report::markup::counted;

/// The smallest, middle and largest of several quantities.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Range {
    pub(crate) low: f64,
    pub(crate) middle: f64,
    pub(crate) high: f64,
}

impl Range {
    /// The range of what is given. What is not positive was not measured; nothing has no range.
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Option<Range> {
        let mut sorted: Vec<f64> = values.filter(|v| v.is_finite() && *v > 0.0).collect();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (*sorted.first()?, *sorted.last()?);
        let n = sorted.len();
        Some(Range { low, middle: (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0, high })
    }
}

/// Bandwidth of some threads, wherever in the profile it stands.
#[derive(Debug, Clone)]
pub(crate) struct Rate<'a> {
    pub(crate) kernel: Kernel,
    /// The threads' node; absent when they are on several, or when the profile does not say.
    pub(crate) cpu_node: Option<u32>,
    pub(crate) memory: &'a Spot,
    pub(crate) threads: u32,
    pub(crate) total: Measured,
}

/// What huge pages do for the latency of local memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HugeGain {
    pub(crate) base: Measured,
    pub(crate) huge: Measured,
}

impl HugeGain {
    /// The part of the latency that goes away; negative when huge pages are slower.
    pub(crate) fn share(&self) -> f64 {
        1.0 - self.huge.median / self.base.median
    }

    /// Whether the difference is larger than both spreads together and than one in thirty.
    pub(crate) fn clear(&self) -> bool {
        let difference = (self.base.median - self.huge.median).abs();
        difference > self.base.mad + self.huge.mad && self.share().abs() > 1.0 / 30.0
    }
}

/// Where adding threads stops to pay.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Saturation {
    /// What the threads do.
    pub(crate) kernel: Kernel,
    /// The fewest threads that reach four fifths of the most.
    pub(crate) threads: u32,
    /// The share of the most that they reach.
    pub(crate) share: f64,
    /// GB/s of all threads where it is most.
    pub(crate) most: f64,
    /// GB/s of one thread alone, when that was measured.
    pub(crate) alone: Option<f64>,
    /// The largest number of threads measured, and GB/s of each then.
    pub(crate) last: (u32, f64),
}

impl Saturation {
    /// Whether adding the last threads hardly paid: four fifths were reached well before all took part.
    pub(crate) fn reached(&self) -> bool {
        self.threads * 4 <= self.last.0 * 3
    }
}

/// A profile, and what follows from it.
#[derive(Clone, Copy)]
pub(crate) struct Findings<'a>(pub &'a MachineProfile);

impl<'a> Findings<'a> {
    /// Nodes with cores.
    pub(crate) fn cpu_nodes(self) -> Vec<u32> {
        self.0.topology.nodes.iter().filter(|n| !n.cpus.is_empty()).map(|n| n.id).collect()
    }

    /// Nodes with memory.
    pub(crate) fn memory_nodes(self) -> Vec<u32> {
        self.0.topology.nodes.iter().filter(|n| n.memory > 0).map(|n| n.id).collect()
    }

    /// Nodes with memory and no cores.
    pub(crate) fn memory_only(self) -> Vec<u32> {
        let of = self.0.topology.nodes.iter();
        of.filter(|n| n.memory > 0 && n.cpus.is_empty()).map(|n| n.id).collect()
    }

    /// Nodes with cores and no memory.
    pub(crate) fn without_memory(self) -> Vec<u32> {
        let of = self.0.topology.nodes.iter();
        of.filter(|n| n.memory == 0 && !n.cpus.is_empty()).map(|n| n.id).collect()
    }

    /// Cores: hardware threads with the same siblings are one.
    pub(crate) fn cores(self) -> usize {
        let cpus = &self.0.topology.cpus;
        cpus.iter().map(|c| c.siblings.first().unwrap_or(c.id)).collect::<BTreeSet<u32>>().len()
    }

    /// Packages (sockets).
    pub(crate) fn packages(self) -> usize {
        self.0.topology.cpus.iter().map(|c| c.package).collect::<BTreeSet<u32>>().len()
    }

    fn latencies(self, wanted: impl Fn(u32, u32) -> bool) -> Option<Range> {
        let pairs: BTreeSet<(u32, u32)> =
            self.0.latency.pairs.iter().map(|p| (p.cpu_node, p.memory_node)).collect();
        let of = pairs.into_iter().filter(|&(cpu, memory)| wanted(cpu, memory));
        Range::of(of.filter_map(|(cpu, memory)| self.0.latency_between(cpu, memory)).map(|m| m.median))
    }

    /// ns to a core's own node.
    pub(crate) fn local(self) -> Option<Range> {
        self.latencies(|cpu, memory| cpu == memory)
    }

    /// ns to another node that has cores of its own.
    pub(crate) fn remote(self) -> Option<Range> {
        let own = self.cpu_nodes();
        self.latencies(|cpu, memory| cpu != memory && own.contains(&memory))
    }

    /// ns to the farthest memory from any core, wherever it is.
    pub(crate) fn farthest(self) -> Option<f64> {
        self.latencies(|cpu, memory| cpu != memory).map(|range| range.high)
    }

    /// ns to nodes without cores.
    pub(crate) fn to_memory_only(self) -> Option<Range> {
        let only = self.memory_only();
        self.latencies(|_, memory| only.contains(&memory))
    }

    /// ns on average when pages are spread evenly over the nodes that have cores and memory.
    pub(crate) fn spread(self) -> Option<f64> {
        let (own, with_memory) = (self.cpu_nodes(), self.memory_nodes());
        let banks: Vec<u32> = own.iter().copied().filter(|n| with_memory.contains(n)).collect();
        let pairs = own.iter().flat_map(|&cpu| banks.iter().map(move |&memory| (cpu, memory)));
        let all = pairs.map(|(cpu, memory)| {
            self.0.latency_between(cpu, memory).map(|m| m.median).filter(|&ns| ns > 0.0)
        });
        // An average over some of the pairs would be of another machine.
        let all: Vec<f64> = all.collect::<Option<_>>()?;
        (banks.len() > 1).then(|| all.iter().sum::<f64>() / all.len() as f64)
    }

    /// Local latency of the first node on which both kinds of pages were measured.
    pub(crate) fn huge_gain(self) -> Option<HugeGain> {
        let of = |node: u32, pages: PageKind| {
            let pairs = self.0.latency.pairs.iter();
            let mut of_node = pairs.filter(move |p| p.cpu_node == node && p.memory_node == node);
            of_node.find(|p| p.pages == pages && p.latency.median > 0.0).map(|p| p.latency)
        };
        self.cpu_nodes().into_iter().find_map(|node| {
            Some(HugeGain { base: of(node, PageKind::Base)?, huge: of(node, PageKind::Huge)? })
        })
    }

    /// Local latency curves of the first node with one: base pages, huge pages.
    pub(crate) fn staircases(self) -> Vec<&'a LatencyCurve> {
        let curves = &self.0.latency.curves;
        let local = |c: &&LatencyCurve| c.cpu_node == c.memory_node && !c.points.is_empty();
        let node = curves.iter().find(local).map(|c| c.cpu_node);
        let mut of: Vec<&LatencyCurve> =
            curves.iter().filter(local).filter(|c| Some(c.cpu_node) == node).collect();
        of.sort_by_key(|c| c.pages);
        of
    }

    /// Every bandwidth of the profile that is one.
    pub(crate) fn rates(self) -> impl Iterator<Item = Rate<'a>> {
        let alone = self.0.bandwidth.iter().map(|b| Rate {
            kernel: b.kernel,
            cpu_node: b.cpu_node,
            memory: &b.memory,
            threads: b.threads,
            total: b.total,
        });
        let crowded = self.0.contention.iter().flat_map(|c| {
            c.points.iter().map(|p| Rate {
                kernel: c.kernel,
                cpu_node: None,
                memory: &c.memory,
                threads: p.threads,
                total: p.total,
            })
        });
        alone.chain(crowded).filter(|r| r.total.median.is_finite() && r.total.median > 0.0)
    }

    /// The kernel to speak of: triad, which everybody knows, or the next best that was measured.
    pub(crate) fn kernel(self) -> Option<Kernel> {
        let known = [Kernel::Triad, Kernel::Read, Kernel::Copy, Kernel::Add, Kernel::Scale, Kernel::CopyNt];
        known.into_iter().find(|&k| self.rates().any(|r| r.kernel == k))
    }

    /// One thread on its own node's memory.
    pub(crate) fn one_thread(self) -> Option<Rate<'a>> {
        let kernel = self.kernel()?;
        let own = |r: &Rate| match (r.cpu_node, r.memory) {
            (Some(node), Spot::Node(memory)) => node == *memory,
            (_, Spot::Local) => true,
            // The first thread of a contention curve sits on the memory's node.
            (None, Spot::Node(_)) => true,
            _ => false,
        };
        self.rates().find(|r| r.kernel == kernel && r.threads == 1 && own(r))
    }

    /// The most that `kernel` reaches, wherever threads and memory are.
    pub(crate) fn most(self, kernel: Kernel) -> Option<Rate<'a>> {
        let of = self.rates().filter(|r| r.kernel == kernel);
        of.max_by(|a, b| a.total.median.total_cmp(&b.total.median))
    }

    /// The most that any kernel reaches. Random and strided accesses are none of it: they count lines, not what is used.
    pub(crate) fn most_of_all(self) -> Option<Rate<'a>> {
        let of = self.rates().filter(|r| !matches!(r.kernel, Kernel::Random | Kernel::Strided));
        of.max_by(|a, b| a.total.median.total_cmp(&b.total.median))
    }

    /// The share of the theoretical bandwidth that the best kernel reaches, and that kernel's rate.
    pub(crate) fn of_theory(self) -> Option<(f64, Rate<'a>)> {
        let peak = self.0.theory.peak_gbs.filter(|&p| p > 0.0)?;
        let best = self.most_of_all()?;
        Some((best.total.median / peak, best))
    }

    /// All threads of a node on memory of another place: `(to its own, range to others' with cores, range to memory-only)`.
    pub(crate) fn pair_rates(self, kernel: Kernel) -> (Option<Range>, Option<Range>, Option<Range>) {
        let (own, only) = (self.cpu_nodes(), self.memory_only());
        let pairs = |wanted: &dyn Fn(u32, u32) -> bool| {
            let all = own.iter().flat_map(|&cpu| self.memory_nodes().into_iter().map(move |m| (cpu, m)));
            let of = all.filter(|&(cpu, memory)| wanted(cpu, memory));
            Range::of(
                of.filter_map(|(cpu, m)| self.0.bandwidth_between(kernel, cpu, m)).map(|b| b.total.median),
            )
        };
        (
            pairs(&|cpu, memory| cpu == memory),
            pairs(&|cpu, memory| cpu != memory && own.contains(&memory)),
            pairs(&|_, memory| only.contains(&memory)),
        )
    }

    /// Contention curves of the kernel that most of them are of: on one node with cores first, then spread.
    pub(crate) fn contention(self) -> Vec<&'a ContentionCurve> {
        let curves = &self.0.contention;
        let count = |kernel: Kernel| curves.iter().filter(|c| c.kernel == kernel).count();
        let first = self.kernel().filter(|&k| count(k) > 0);
        let Some(kernel) = first.or_else(|| curves.iter().map(|c| c.kernel).max_by_key(|&k| count(k))) else {
            return Vec::new();
        };
        let mut of: Vec<&ContentionCurve> =
            curves.iter().filter(|c| c.kernel == kernel && !c.points.is_empty()).collect();
        of.sort_by_key(|c| (!matches!(c.memory, Spot::Node(_)), c.memory.clone(), c.pages));
        of
    }

    /// The crowd on one node's memory.
    pub(crate) fn crowd(self) -> Option<&'a ContentionCurve> {
        let own = self.cpu_nodes();
        let on_one = |c: &&ContentionCurve| matches!(&c.memory, Spot::Node(n) if own.contains(n));
        self.contention().into_iter().find(on_one)
    }

    /// Where a node's memory is saturated.
    pub(crate) fn saturation(self) -> Option<Saturation> {
        let points = &self.crowd()?.points;
        let most = points.iter().map(|p| p.total.median).fold(0.0, f64::max);
        let last = points.last()?;
        let enough = points.iter().find(|p| p.total.median >= most * 0.8)?;
        Some(Saturation {
            kernel: self.crowd()?.kernel,
            threads: enough.threads,
            share: if most > 0.0 { enough.total.median / most } else { 0.0 },
            most,
            alone: points.iter().find(|p| p.threads == 1).map(|p| p.total.median),
            last: (last.threads, last.per_thread.median),
        })
    }

    /// All threads at once: GB/s on one node's memory and spread over the nodes, for the same number of threads.
    pub(crate) fn one_against_spread(self) -> Option<(u32, f64, f64)> {
        let last = self.crowd()?.points.last().filter(|p| p.threads > 1 && p.total.median > 0.0)?;
        let spread = self
            .contention()
            .into_iter()
            .filter(|c| matches!(&c.memory, Spot::Interleaved(_) | Spot::Weighted(_)))
            .flat_map(|c| &c.points)
            .filter(|p| p.threads == last.threads)
            .map(|p| p.total.median)
            .fold(None, |most: Option<f64>, rate| Some(most.map_or(rate, |m| m.max(rate))))?;
        Some((last.threads, last.total.median, spread))
    }

    /// What could not be read or measured, and why: each sentence once.
    pub(crate) fn missing(self) -> Vec<&'a str> {
        let p = self.0;
        let mut says: Vec<&str> = Vec::new();
        let listed = p.missing.iter().chain(&p.topology.missing).map(String::as_str);
        for sentence in p.theory.unknown_because.as_deref().into_iter().chain(listed) {
            if !says.contains(&sentence) {
                says.push(sentence);
            }
        }
        says
    }

    /// The share of its figures' medians by which half of the repetitions miss them, typically, when that is too much to trust small
    /// differences: the machine was busy.
    pub(crate) fn disturbed(self) -> Option<f64> {
        let spreads = self.all().into_iter().map(|(_, m)| m.mad / m.median);
        Range::of(spreads).map(|r| r.middle).filter(|&typical| typical > 0.05)
    }

    /// Every measured quantity with its name, for the statements on spread.
    pub(crate) fn all(self) -> Vec<(String, Measured)> {
        let p = self.0;
        let mut all = Vec::new();
        for x in &p.latency.pairs {
            all.push((format!("latency from node {} to node {}", x.cpu_node, x.memory_node), x.latency));
        }
        for r in self.rates() {
            let name = format!(
                "{} of {}, {}",
                kernel_name(r.kernel),
                counted(u64::from(r.threads), "thread"),
                spot_name(r.memory)
            );
            all.push((name, r.total));
        }
        for c in &p.loaded {
            all.extend(c.points.iter().map(|x| ("latency under load".to_string(), x.latency)));
        }
        all.retain(|(_, m)| m.median > 0.0 && m.mad.is_finite());
        all
    }
}

/// A kernel in words.
pub(crate) fn kernel_name(kernel: Kernel) -> &'static str {
    match kernel {
        Kernel::Copy => "copy",
        Kernel::Scale => "scale",
        Kernel::Add => "add",
        Kernel::Triad => "triad",
        Kernel::Read => "read",
        Kernel::Write => "write",
        Kernel::WriteNt => "write past caches",
        Kernel::CopyNt => "copy past caches",
        Kernel::Random => "random 64 B",
        Kernel::Strided => "strided",
    }
}

/// Where memory lies, in words.
pub(crate) fn spot_name(spot: &Spot) -> String {
    match spot {
        Spot::Node(node) => format!("memory of node {node}"),
        Spot::Interleaved(nodes) => format!("interleaved over nodes {nodes}"),
        Spot::Weighted(weights) => {
            let parts: Vec<String> =
                weights.iter().map(|(node, weight)| format!("{node}:{weight}")).collect();
            format!("weighted {}", parts.join(" "))
        }
        Spot::Local => "each thread's own node".to_string(),
    }
}

/// Pages in words.
pub(crate) fn pages_name(pages: PageKind) -> &'static str {
    match pages {
        PageKind::Base => "base",
        PageKind::Huge => "huge",
    }
}
