//! Derives key figures from a machine profile, for the report's tiles, text and plot titles.

use std::collections::BTreeSet;

use genuma_probe::MachineProfile;
use genuma_probe::profile::{
    BandwidthKernel, BufferPageKind, ContentionCurve, LatencyCurve, Measurement, MemoryLocation,
};
use genuma_work::quantity::format_count_with_noun;

/// Minimum, median and maximum of several measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MinMedianMax {
    pub low: f64,
    pub middle: f64,
    pub high: f64,
}

impl MinMedianMax {
    /// Computes minimum, median and maximum of the values that are positive and finite. Other values stand for missing
    /// measurements. `None` if no value is positive and finite.
    pub fn summarize_positive_values(values: impl Iterator<Item = f64>) -> Option<MinMedianMax> {
        let mut sorted: Vec<f64> = values.filter(|v| v.is_finite() && *v > 0.0).collect();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (*sorted.first()?, *sorted.last()?);
        let n = sorted.len();
        Some(MinMedianMax { low, middle: (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0, high })
    }
}

/// The result of one bandwidth measurement, from the bandwidth table or from a contention curve.
#[derive(Debug, Clone)]
pub struct MeasuredBandwidth<'a> {
    pub kernel: BandwidthKernel,
    /// NUMA node of the threads; `None` if the threads are on several nodes, or if the profile does not record the
    /// node.
    pub cpu_node: Option<u32>,
    pub memory: &'a MemoryLocation,
    pub threads: u32,
    /// Bandwidth of all threads together.
    pub total: Measurement,
}

/// Latency of local memory with base pages and with huge pages.
#[derive(Debug, Clone, Copy)]
pub struct BaseAndHugePageLatencies {
    pub base: Measurement,
    pub huge: Measurement,
}

impl BaseAndHugePageLatencies {
    /// Returns the reduction of the latency by huge pages as a share; negative if huge pages are slower.
    pub fn huge_page_latency_reduction(&self) -> f64 {
        1.0 - self.huge.median / self.base.median
    }

    /// Returns whether the difference of the latencies is larger than the sum of both spreads, and larger than 1/30 of
    /// the latency with base pages.
    pub fn is_huge_page_effect_significant(&self) -> bool {
        let difference = (self.base.median - self.huge.median).abs();
        difference > self.base.median_absolute_deviation + self.huge.median_absolute_deviation
            && self.huge_page_latency_reduction().abs() > 1.0 / 30.0
    }
}

/// Number of threads at which the bandwidth of a node's memory stops growing.
#[derive(Debug, Clone, Copy)]
pub struct BandwidthSaturation {
    /// Bandwidth kernel that the threads ran.
    pub kernel: BandwidthKernel,
    /// Minimum number of threads that together reach 80% of the maximum bandwidth.
    pub threads: u32,
    /// Share of the maximum bandwidth that this number of threads reaches.
    pub share_of_max: f64,
    /// Maximum of the total bandwidth over all numbers of threads, in GB/s.
    pub max_gbs: f64,
    /// Bandwidth of a single thread in GB/s, if it was measured.
    pub one_thread_gbs: Option<f64>,
    /// The largest number of threads measured, and the bandwidth of each of them in GB/s.
    pub bandwidth_at_max_threads: (u32, f64),
}

impl BandwidthSaturation {
    /// Returns whether three quarters of the threads, or fewer, reach 80% of the maximum bandwidth.
    pub fn saturates_before_all_threads(&self) -> bool {
        self.threads * 4 <= self.bandwidth_at_max_threads.0 * 3
    }
}

/// Derives key figures from a machine profile.
#[derive(Clone, Copy)]
pub struct ProfileKeyFigures<'a>(pub &'a MachineProfile);

impl<'a> ProfileKeyFigures<'a> {
    /// Returns the numbers of the nodes that have CPUs.
    pub fn nodes_with_cores(self) -> Vec<u32> {
        self.0.topology.nodes.iter().filter(|n| !n.cpus.is_empty()).map(|n| n.id).collect()
    }

    /// Returns the numbers of the nodes that have memory. Nodes of GPU memory are left out.
    pub fn nodes_with_memory(self) -> Vec<u32> {
        self.0.topology.memory_nodes().iter().collect()
    }

    /// Returns the numbers of the nodes that have memory but no cores. Nodes of GPU memory are left out.
    pub fn memory_only_nodes(self) -> Vec<u32> {
        let nodes = self.0.topology.nodes.iter();
        nodes.filter(|n| n.memory_bytes > 0 && n.cpus.is_empty() && !n.is_gpu_memory).map(|n| n.id).collect()
    }

    /// Returns the numbers of the nodes that have cores but no memory.
    pub fn memoryless_nodes(self) -> Vec<u32> {
        let nodes = self.0.topology.nodes.iter();
        nodes.filter(|n| n.memory_bytes == 0 && !n.cpus.is_empty()).map(|n| n.id).collect()
    }

    /// Returns the number of cores. Hardware threads with the same siblings are one core.
    pub fn num_cores(self) -> usize {
        let cpus = &self.0.topology.cpus;
        cpus.iter().map(|c| c.siblings.smallest_id().unwrap_or(c.id)).collect::<BTreeSet<u32>>().len()
    }

    /// Returns the number of sockets (CPU packages).
    pub fn num_sockets(self) -> usize {
        self.0.topology.cpus.iter().map(|c| c.package).collect::<BTreeSet<u32>>().len()
    }

    fn latency_range(self, wanted: impl Fn(u32, u32) -> bool) -> Option<MinMedianMax> {
        let pairs: BTreeSet<(u32, u32)> =
            self.0.latency.node_pairs.iter().map(|p| (p.cpu_node, p.memory_node)).collect();
        let pairs = pairs.into_iter().filter(|&(cpu, memory)| wanted(cpu, memory));
        MinMedianMax::summarize_positive_values(
            pairs.filter_map(|(cpu, memory)| self.0.dram_latency_between(cpu, memory)).map(|m| m.median),
        )
    }

    /// Returns minimum, median and maximum over all nodes of the latency from a node to its own memory, in ns. `None`
    /// if none was measured.
    pub fn local_memory_latency_range_ns(self) -> Option<MinMedianMax> {
        self.latency_range(|cpu, memory| cpu == memory)
    }

    /// Returns minimum, median and maximum of the latencies from a node to the memory of another node that has cores,
    /// in ns. `None` if none was measured.
    pub fn remote_memory_latency_range_ns(self) -> Option<MinMedianMax> {
        let own = self.nodes_with_cores();
        self.latency_range(|cpu, memory| cpu != memory && own.contains(&memory))
    }

    /// Returns the highest latency from any node to the memory of another node, in ns. `None` if none was measured.
    pub fn max_remote_memory_latency_ns(self) -> Option<f64> {
        self.latency_range(|cpu, memory| cpu != memory).map(|range| range.high)
    }

    /// Returns minimum, median and maximum of the latencies from a node to the memory of a node without cores, in ns.
    /// `None` if none was measured.
    pub fn memory_only_node_latency_range_ns(self) -> Option<MinMedianMax> {
        let only = self.memory_only_nodes();
        self.latency_range(|_, memory| only.contains(&memory))
    }

    /// Returns the expected mean latency of memory that is interleaved over the nodes with cores and memory, in ns. It
    /// is computed from the measured latencies from each node with cores to each of these nodes. `None` if one of the
    /// latencies is missing, or if fewer than two nodes have cores and memory.
    pub fn expected_interleaved_latency_ns(self) -> Option<f64> {
        let (own, with_memory) = (self.nodes_with_cores(), self.nodes_with_memory());
        let banks: Vec<u32> = own.iter().copied().filter(|n| with_memory.contains(n)).collect();
        let pairs = own.iter().flat_map(|&cpu| banks.iter().map(move |&memory| (cpu, memory)));
        let all = pairs
            .map(|(cpu, memory)| self.0.dram_latency_between(cpu, memory).map(|m| m.median).filter(|&ns| ns > 0.0));
        // If a pair of nodes was not measured there is no mean.
        let all: Vec<f64> = all.collect::<Option<_>>()?;
        (banks.len() > 1).then(|| all.iter().sum::<f64>() / all.len() as f64)
    }

    /// Returns the local latency with base and huge pages, of the first node on which both were measured. `None` if
    /// there is no such node.
    pub fn base_and_huge_page_latencies(self) -> Option<BaseAndHugePageLatencies> {
        let of = |node: u32, pages: BufferPageKind| {
            let pairs = self.0.latency.node_pairs.iter();
            let mut of_node = pairs.filter(move |p| p.cpu_node == node && p.memory_node == node);
            of_node.find(|p| p.pages == pages && p.latency.median > 0.0).map(|p| p.latency)
        };
        self.nodes_with_cores().into_iter().find_map(|node| {
            Some(BaseAndHugePageLatencies {
                base: of(node, BufferPageKind::Base)?,
                huge: of(node, BufferPageKind::Huge)?,
            })
        })
    }

    /// Returns the latency curves (latency by buffer size) of local memory, of the first node that has any: base pages
    /// first, then huge pages.
    pub fn local_latency_curves_of_first_node(self) -> Vec<&'a LatencyCurve> {
        let curves = &self.0.latency.curves;
        let local = |c: &&LatencyCurve| c.cpu_node == c.memory_node && !c.points.is_empty();
        let node = curves.iter().find(local).map(|c| c.cpu_node);
        let mut curves_of_node: Vec<&LatencyCurve> =
            curves.iter().filter(local).filter(|c| Some(c.cpu_node) == node).collect();
        curves_of_node.sort_by_key(|c| c.pages);
        curves_of_node
    }

    /// Returns all bandwidth measurements that succeeded.
    pub fn successful_bandwidth_measurements(self) -> impl Iterator<Item = MeasuredBandwidth<'a>> {
        let alone = self.0.bandwidth.iter().map(|b| MeasuredBandwidth {
            kernel: b.kernel,
            cpu_node: b.cpu_node,
            memory: &b.memory,
            threads: b.threads,
            total: b.total,
        });
        let crowded = self.0.contention.iter().flat_map(|c| {
            c.points.iter().map(|p| MeasuredBandwidth {
                kernel: c.kernel,
                cpu_node: None,
                memory: &c.memory,
                threads: p.threads,
                total: p.total,
            })
        });
        alone.chain(crowded).filter(|r| r.total.median.is_finite() && r.total.median > 0.0)
    }

    /// Returns the bandwidth kernel whose results the text of the report states: triad, or, if it was not measured, the
    /// next one in the order read, copy, add, scale, copy past caches. `None` if none of these was measured.
    pub fn main_bandwidth_kernel(self) -> Option<BandwidthKernel> {
        let preferred = [
            BandwidthKernel::Triad,
            BandwidthKernel::Read,
            BandwidthKernel::Copy,
            BandwidthKernel::Add,
            BandwidthKernel::Scale,
            BandwidthKernel::CopyNt,
        ];
        preferred.into_iter().find(|&k| self.successful_bandwidth_measurements().any(|r| r.kernel == k))
    }

    /// Returns the bandwidth of one thread that runs the main bandwidth kernel on the memory of its own node. `None` if
    /// it was not measured.
    pub fn one_thread_local_bandwidth(self) -> Option<MeasuredBandwidth<'a>> {
        let kernel = self.main_bandwidth_kernel()?;
        let own = |r: &MeasuredBandwidth| match (r.cpu_node, r.memory) {
            (Some(node), MemoryLocation::Node(memory)) => node == *memory,
            (_, MemoryLocation::Local) => true,
            // The first thread of a contention curve runs on the node of the memory.
            (None, MemoryLocation::Node(_)) => true,
            _ => false,
        };
        self.successful_bandwidth_measurements().find(|r| r.kernel == kernel && r.threads == 1 && own(r))
    }

    /// Returns the measurement with the highest bandwidth of `kernel`, with any placement of threads and memory. `None`
    /// if the kernel was not measured.
    pub fn max_bandwidth_of_kernel(self, kernel: BandwidthKernel) -> Option<MeasuredBandwidth<'a>> {
        let rates = self.successful_bandwidth_measurements().filter(|r| r.kernel == kernel);
        rates.max_by(|a, b| a.total.median.total_cmp(&b.total.median))
    }

    /// Returns the measurement with the highest bandwidth of any kernel. Random and strided are left out, because their
    /// bandwidth counts whole cache lines of which little is used. `None` without measurements.
    pub fn max_bandwidth_except_random_and_strided(self) -> Option<MeasuredBandwidth<'a>> {
        let rates = self
            .successful_bandwidth_measurements()
            .filter(|r| !matches!(r.kernel, BandwidthKernel::Random | BandwidthKernel::Strided));
        rates.max_by(|a, b| a.total.median.total_cmp(&b.total.median))
    }

    /// Returns the highest bandwidth of any kernel (except random and strided) as a share of the machine's theoretical
    /// peak bandwidth, and its measurement. `None` if the peak is unknown or no bandwidth was measured.
    pub fn max_bandwidth_share_of_peak(self) -> Option<(f64, MeasuredBandwidth<'a>)> {
        let peak = self.0.theory.peak_gbs.filter(|&p| p > 0.0)?;
        let best = self.max_bandwidth_except_random_and_strided()?;
        Some((best.total.median / peak, best))
    }

    /// Returns minimum, median and maximum of the bandwidth of the threads of one node that use the memory of one node,
    /// over three kinds of pairs of nodes: own memory, memory of other nodes with cores, memory of nodes without cores.
    /// `None` for a kind that was not measured.
    pub fn bandwidth_ranges_by_kind_of_node_pair(
        self,
        kernel: BandwidthKernel,
    ) -> (Option<MinMedianMax>, Option<MinMedianMax>, Option<MinMedianMax>) {
        let (own, only) = (self.nodes_with_cores(), self.memory_only_nodes());
        let pairs = |wanted: &dyn Fn(u32, u32) -> bool| {
            let all = own.iter().flat_map(|&cpu| self.nodes_with_memory().into_iter().map(move |m| (cpu, m)));
            let of = all.filter(|&(cpu, memory)| wanted(cpu, memory));
            MinMedianMax::summarize_positive_values(
                of.filter_map(|(cpu, m)| self.0.bandwidth_between(kernel, cpu, m)).map(|b| b.total.median),
            )
        };
        (
            pairs(&|cpu, memory| cpu == memory),
            pairs(&|cpu, memory| cpu != memory && own.contains(&memory)),
            pairs(&|_, memory| only.contains(&memory)),
        )
    }

    /// Returns the contention curves of the main bandwidth kernel or, if it has none, of the kernel with most curves:
    /// those for the memory of one node first, then those for interleaved memory.
    pub fn contention_curves_of_main_kernel(self) -> Vec<&'a ContentionCurve> {
        let curves = &self.0.contention;
        let count = |kernel: BandwidthKernel| curves.iter().filter(|c| c.kernel == kernel).count();
        let first = self.main_bandwidth_kernel().filter(|&k| count(k) > 0);
        let Some(kernel) = first.or_else(|| curves.iter().map(|c| c.kernel).max_by_key(|&k| count(k))) else {
            return Vec::new();
        };
        let mut selected: Vec<&ContentionCurve> =
            curves.iter().filter(|c| c.kernel == kernel && !c.points.is_empty()).collect();
        selected.sort_by_key(|c| (!matches!(c.memory, MemoryLocation::Node(_)), c.memory.clone(), c.pages));
        selected
    }

    /// Returns the first curve of [`Self::contention_curves_of_main_kernel`] that is for the memory of a single node
    /// with cores. `None` if there is no such curve.
    pub fn first_single_node_contention_curve(self) -> Option<&'a ContentionCurve> {
        let own = self.nodes_with_cores();
        let on_one = |c: &&ContentionCurve| matches!(&c.memory, MemoryLocation::Node(n) if own.contains(n));
        self.contention_curves_of_main_kernel().into_iter().find(on_one)
    }

    /// Returns how the bandwidth of one node's memory grows with the number of threads and when it stops growing.
    /// `None` without a contention curve for a single node.
    pub fn bandwidth_saturation(self) -> Option<BandwidthSaturation> {
        let points = &self.first_single_node_contention_curve()?.points;
        let max_gbs = points.iter().map(|p| p.total.median).fold(0.0, f64::max);
        let last = points.last()?;
        let enough = points.iter().find(|p| p.total.median >= max_gbs * 0.8)?;
        Some(BandwidthSaturation {
            kernel: self.first_single_node_contention_curve()?.kernel,
            threads: enough.threads,
            share_of_max: if max_gbs > 0.0 { enough.total.median / max_gbs } else { 0.0 },
            max_gbs,
            one_thread_gbs: points.iter().find(|p| p.threads == 1).map(|p| p.total.median),
            bandwidth_at_max_threads: (last.threads, last.per_thread.median),
        })
    }

    /// Returns the largest number of threads of the contention curve for one node, and the bandwidth with so many
    /// threads in GB/s: on the memory of this node, and on interleaved memory. `None` if one of the two was not
    /// measured, or only with a single thread.
    pub fn single_node_and_interleaved_bandwidth(self) -> Option<(u32, f64, f64)> {
        let last = self
            .first_single_node_contention_curve()?
            .points
            .last()
            .filter(|p| p.threads > 1 && p.total.median > 0.0)?;
        let spread = self
            .contention_curves_of_main_kernel()
            .into_iter()
            .filter(|c| matches!(&c.memory, MemoryLocation::Interleaved(_) | MemoryLocation::Weighted(_)))
            .flat_map(|c| &c.points)
            .filter(|p| p.threads == last.threads)
            .map(|p| p.total.median)
            .fold(None, |most: Option<f64>, rate| Some(most.map_or(rate, |m| m.max(rate))))?;
        Some((last.threads, last.total.median, spread))
    }

    /// Returns sentences about measurements that are missing, with the reason. Each sentence occurs once.
    pub fn missing_measurement_notes(self) -> Vec<&'a str> {
        let p = self.0;
        let mut reasons: Vec<&str> = Vec::new();
        let listed = p.missing.iter().chain(&p.topology.missing_notes).map(String::as_str);
        for sentence in p.theory.unknown_because.as_deref().into_iter().chain(listed) {
            if !reasons.contains(&sentence) {
                reasons.push(sentence);
            }
        }
        reasons
    }

    /// Returns the median of the relative spreads (median absolute deviation over median) of
    /// [`Self::measurements_except_latency_curves`], without those that are 0, if it is above 0.05, a sign that other
    /// programs used the machine; otherwise `None`.
    pub fn median_relative_spread_if_high(self) -> Option<f64> {
        let spreads =
            self.measurements_except_latency_curves().into_iter().map(|(_, m)| m.median_absolute_deviation / m.median);
        MinMedianMax::summarize_positive_values(spreads).map(|r| r.middle).filter(|&typical| typical > 0.05)
    }

    /// Returns the measurements of latency between nodes, of bandwidth and of latency under load with their names, for
    /// statements about the spread. Latency curves are left out.
    pub fn measurements_except_latency_curves(self) -> Vec<(String, Measurement)> {
        let p = self.0;
        let mut all = Vec::new();
        for x in &p.latency.node_pairs {
            all.push((format!("latency from node {} to node {}", x.cpu_node, x.memory_node), x.latency));
        }
        for r in self.successful_bandwidth_measurements() {
            let name = format!(
                "{} of {}, {}",
                bandwidth_kernel_name(r.kernel),
                format_count_with_noun(u64::from(r.threads), "thread"),
                describe_memory_location(r.memory)
            );
            all.push((name, r.total));
        }
        for c in &p.loaded {
            all.extend(c.points.iter().map(|x| ("latency under load".to_string(), x.latency)));
        }
        all.retain(|(_, m)| m.median > 0.0 && m.median_absolute_deviation.is_finite());
        all
    }
}

/// Returns the name of a bandwidth kernel in the text of the report.
pub fn bandwidth_kernel_name(kernel: BandwidthKernel) -> &'static str {
    match kernel {
        BandwidthKernel::Copy => "copy",
        BandwidthKernel::Scale => "scale",
        BandwidthKernel::Add => "add",
        BandwidthKernel::Triad => "triad",
        BandwidthKernel::Read => "read",
        BandwidthKernel::Write => "write",
        BandwidthKernel::WriteNt => "write past caches",
        BandwidthKernel::CopyNt => "copy past caches",
        BandwidthKernel::Random => "random 64 B",
        BandwidthKernel::Strided => "strided",
    }
}

/// Describes in a few words on which nodes the measured memory was.
pub fn describe_memory_location(spot: &MemoryLocation) -> String {
    match spot {
        MemoryLocation::Node(node) => format!("memory of node {node}"),
        MemoryLocation::Interleaved(nodes) => format!("interleaved over nodes {nodes}"),
        MemoryLocation::Weighted(weights) => {
            let parts: Vec<String> = weights.iter().map(|(node, weight)| format!("{node}:{weight}")).collect();
            format!("weighted {}", parts.join(" "))
        }
        MemoryLocation::Local => "each thread's own node".to_string(),
    }
}

/// Returns the name of a buffer's page size: `base` or `huge`.
pub fn page_size_name(pages: BufferPageKind) -> &'static str {
    match pages {
        BufferPageKind::Base => "base",
        BufferPageKind::Huge => "huge",
    }
}
