//! Measurements of other people in which a memory policy made programs slower or faster, with their sources.
//!
//! The advisor's model does not contain them: it predicts one aligner on one machine. `docs/internals/advisor.md` has
//! the details of each source.

use serde::Serialize;

use crate::strategy::{InstanceMemoryPolicy, Strategy};

/// A measured effect of a memory policy, and when it may apply.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KnownCase {
    /// Name of the case, for programs.
    pub id: &'static str,
    /// Whether the policy made programs slower or faster.
    pub effect: PolicyEffect,
    /// What was measured: a sentence for the user.
    pub finding: &'static str,
    /// Where it was reported: web addresses and papers.
    pub sources: &'static [&'static str],
    #[serde(skip)]
    conditions: CaseConditions,
}

/// Direction of a measured effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyEffect {
    /// Programs took longer.
    Slower,
    /// Programs took less time.
    Faster,
}

/// What an advised run must have in common with the measured ones.
#[derive(Debug, Clone, PartialEq)]
struct CaseConditions {
    policies: &'static [InstanceMemoryPolicy],
    /// Whether the effect was measured with one instance only.
    has_one_instance: bool,
    /// Minimum number of NUMA nodes.
    min_nodes: usize,
    /// Minimum number of threads, as a share of the machine's hardware threads.
    min_thread_share: f64,
    /// Maximum number of threads, as a share of the machine's hardware threads.
    max_thread_share: f64,
    /// Whether the machine must have a GPU.
    needs_gpu: bool,
}

/// The advised run, as far as the cases depend on it.
#[derive(Debug, Clone, Copy)]
pub struct AdvisedPlacement {
    /// Number of instances and memory policy.
    pub strategy: Strategy,
    /// Number of NUMA nodes with CPUs and memory.
    pub nodes: usize,
    /// Threads of all instances together.
    pub threads: usize,
    /// Hardware threads of the nodes.
    pub hardware_threads: usize,
    /// Number of GPUs of the machine, as far as known.
    pub gpus: usize,
}

const SPREADING_POLICIES: &[InstanceMemoryPolicy] = &[InstanceMemoryPolicy::Interleave, InstanceMemoryPolicy::Weighted];
const LENIS2017: &str = "Lenis and Senar 2017, A performance comparison of data and memory allocation strategies for sequence \
                         aligners on NUMA architectures (servers of 4 and 8 nodes; strategy/data/lenis2017.csv)";

/// All cases. Figures of lenis2017 are those of `strategy/data/lenis2017.csv`, which a test recalculates.
static KNOWN_CASES: [KnownCase; 4] = [
    KnownCase {
        id: "interleave_with_gpu",
        effect: PolicyEffect::Slower,
        finding: "if a program copies data to a GPU, interleaving all of its memory puts the copied buffers on nodes that are far \
                  from the GPU, too: a language model on A100 cards ran at 0.22 instead of 2.32 tokens/s, and copies from the \
                  memory of the other node to a P100 at 3.8 instead of 12.2 GB/s; on another machine with RTX 5090 cards it ran \
                  13 % faster interleaved",
        sources: &[
            "https://github.com/JustVugg/colibri/issues/82",
            "https://github.com/mpicbg-scicomp/gearshifft/pull/82",
            "https://github.com/JustVugg/colibri/pull/384",
        ],
        conditions: CaseConditions {
            policies: SPREADING_POLICIES,
            has_one_instance: false,
            min_nodes: 2,
            min_thread_share: 0.0,
            max_thread_share: f64::INFINITY,
            needs_gpu: true,
        },
    },
    KnownCase {
        id: "interleave_few_threads",
        effect: PolicyEffect::Slower,
        finding: "interleaving over all nodes for few threads (8 and 16 of 64): aligners ran at 0.49 to 1.14 times the speed of \
                  the plain run, slower in 25 of 32 published runs, because memory next to the threads was replaced by distant \
                  memory; consider fewer nodes (--nodes)",
        sources: &[LENIS2017],
        conditions: CaseConditions {
            policies: SPREADING_POLICIES,
            has_one_instance: true,
            min_nodes: 4,
            min_thread_share: 0.0,
            max_thread_share: 0.25,
            needs_gpu: false,
        },
    },
    KnownCase {
        id: "interleave_all_threads",
        effect: PolicyEffect::Faster,
        finding: "interleaving the index for most threads of the machine (48 and 64 of 64): aligners ran at 0.80 to 7.21 times \
                  the speed of the plain run, slower in 6 of 32 published runs; those with large indexes (GEM, SNAP) gained \
                  most. Other programs that read much memory gained about 30 % (vLLM, AMD EPYC with 4 nodes a socket) and 40 % \
                  (a language model on CPUs)",
        sources: &[
            LENIS2017,
            "https://github.com/vllm-project/vllm/pull/30800",
            "https://github.com/JustVugg/colibri/issues/82",
        ],
        conditions: CaseConditions {
            policies: SPREADING_POLICIES,
            has_one_instance: true,
            min_nodes: 4,
            min_thread_share: 0.75,
            max_thread_share: f64::INFINITY,
            needs_gpu: false,
        },
    },
    KnownCase {
        id: "local_shared_index",
        effect: PolicyEffect::Slower,
        finding: "local allocation for one instance with a shared index, which one thread loads to its own node: aligners ran at \
                  0.46 to 2.10 times the speed of the plain run, slower in 59 of 80 published runs",
        sources: &[LENIS2017],
        conditions: CaseConditions {
            policies: &[InstanceMemoryPolicy::Local],
            has_one_instance: true,
            min_nodes: 4,
            min_thread_share: 0.0,
            max_thread_share: f64::INFINITY,
            needs_gpu: false,
        },
    },
];

/// Returns the cases whose conditions the advised run meets.
pub fn find_matching_cases(advised: &AdvisedPlacement) -> Vec<&'static KnownCase> {
    KNOWN_CASES.iter().filter(|case| case.conditions.are_met(advised)).collect()
}

impl CaseConditions {
    fn are_met(&self, advised: &AdvisedPlacement) -> bool {
        let share = advised.threads as f64 / advised.hardware_threads.max(1) as f64;
        self.policies.contains(&advised.strategy.memory)
            && (!self.has_one_instance || advised.strategy.instances == 1)
            && advised.nodes >= self.min_nodes
            && (self.min_thread_share..=self.max_thread_share).contains(&share)
            && (!self.needs_gpu || advised.gpus > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::published_runs::{PublishedRun, parse_published_runs};

    fn matching(strategy: &str, nodes: usize, threads: usize, gpus: usize) -> Vec<&'static str> {
        let strategy = strategy.parse().expect("a strategy");
        let advised = AdvisedPlacement { strategy, nodes, threads, hardware_threads: 64, gpus };
        find_matching_cases(&advised).iter().map(|case| case.id).collect()
    }

    #[test]
    fn cases_apply_to_runs_like_those_measured() {
        assert_eq!(matching("interleave", 8, 64, 0), ["interleave_all_threads"]);
        assert_eq!(matching("weighted", 4, 48, 2), ["interleave_with_gpu", "interleave_all_threads"]);
        assert_eq!(matching("interleave", 8, 16, 0), ["interleave_few_threads"]);
        assert_eq!(matching("interleave", 2, 64, 1), ["interleave_with_gpu"]);
        assert_eq!(matching("4xinterleave", 8, 64, 1), ["interleave_with_gpu"]);
        assert_eq!(matching("local", 8, 32, 1), ["local_shared_index"]);
        for (strategy, nodes, threads) in
            [("interleave", 8, 32), ("interleave", 2, 64), ("4xlocal", 8, 64), ("4xbind", 8, 64), ("default", 8, 64)]
        {
            assert_eq!(matching(strategy, nodes, threads, 0), Vec::<&str>::new(), "{strategy}");
        }
    }

    #[test]
    fn each_case_has_a_source() {
        for case in &KNOWN_CASES {
            assert!(!case.sources.is_empty(), "{}", case.id);
            let is_source =
                |source: &&str| source.starts_with("https://") || source.starts_with("Lenis and Senar 2017, ");
            assert!(case.sources.iter().all(is_source), "{:?}", case.sources);
        }
    }

    #[test]
    fn figures_are_those_of_the_published_runs() {
        let table = include_str!("../data/lenis2017.csv");
        let runs = parse_published_runs("lenis2017.csv", table).expect("a table");
        let one = |run: &&PublishedRun| run.strategy.instances == 1;
        let speeds = |policy: InstanceMemoryPolicy, threads: std::ops::RangeInclusive<u32>| -> Vec<f64> {
            let is_like =
                |run: &&PublishedRun| run.strategy.memory == policy && threads.contains(&run.threads) && one(run);
            let speed = |run: &PublishedRun| {
                let is_plain = |other: &&PublishedRun| {
                    other.strategy == Strategy::PLAIN_RUN
                        && (&other.aligner, &other.server, &other.dataset, other.threads)
                            == (&run.aligner, &run.server, &run.dataset, run.threads)
                };
                runs.iter().find(is_plain).expect("a plain run").seconds / run.seconds
            };
            runs.iter().filter(is_like).map(speed).collect()
        };
        for (id, policy, threads) in [
            ("interleave_few_threads", InstanceMemoryPolicy::Interleave, 8..=16),
            ("interleave_all_threads", InstanceMemoryPolicy::Interleave, 48..=64),
            ("local_shared_index", InstanceMemoryPolicy::Local, 8..=64),
        ] {
            let speeds = speeds(policy, threads);
            let (min, max) = speeds.iter().fold((f64::INFINITY, 0.0f64), |(low, high), &x| (low.min(x), high.max(x)));
            let slower = speeds.iter().filter(|&&speed| speed < 1.0).count();
            let figures = format!(
                "{min:.2} to {max:.2} times the speed of the plain run, slower in {slower} of {} published runs",
                speeds.len()
            );
            let case = KNOWN_CASES.iter().find(|case| case.id == id).expect("a case");
            assert!(case.finding.contains(&figures), "{id}: {figures}: {}", case.finding);
        }
    }
}
