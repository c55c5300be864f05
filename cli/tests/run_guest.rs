//! In a virtual machine of four nodes, `genuma run` puts the index and the threads of each instance where the
//! strategy says, as the kernel reports; the records are those of the plain run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Data, installed};
use crate::guest::Guest;
use genuma_machine::IdSet;
use serde_json::Value;

const NODES: usize = 4;
const CPUS: usize = 2;

const STRATEGIES: [&str; 13] = [
    "default",
    "local",
    "interleave",
    "weighted",
    "bind",
    "2xdefault",
    "2xlocal",
    "2xinterleave",
    "2xweighted",
    "2xbind",
    "4xlocal",
    "4xinterleave",
    "4xbind",
];

/// The kernel's weight of node 0; the other nodes have weight 1.
const WEIGHT: f64 = 3.0;

/// Share of an index that may be elsewhere: buffers of threads may look like a small index.
const TOLERANCE: f64 = 0.05;

/// Total bytes, and the share of each node.
fn shares(pages: &Value) -> (u64, BTreeMap<usize, f64>) {
    let on: BTreeMap<usize, u64> = serde_json::from_value(pages.clone()).expect("bytes by node");
    let all = on.values().sum::<u64>();
    (all, on.into_iter().map(|(node, bytes)| (node, bytes as f64 / all as f64)).collect())
}

/// Asserts that each instance has its threads and its index where the strategy says. An index has at least `bytes`
/// bytes.
fn check(strategy: &str, said: &Value, bytes: u64) {
    let (count, memory) = match strategy.split_once('x') {
        Some((count, memory)) => (count.parse().expect("a number"), memory),
        None => (1, strategy),
    };
    let instances = said["run"]["instances"].as_array().expect("instances");
    assert_eq!(instances.len(), count, "{strategy}");
    for (n, instance) in instances.iter().enumerate() {
        let whole = NODES / count;
        let nodes = n * whole..(n + 1) * whole;
        let cpus: IdSet = (nodes.start * CPUS..nodes.end * CPUS).map(|cpu| cpu as u32).collect();
        let threads = &instance["threads_found"];
        let found = |what: &str| -> IdSet {
            threads[what].as_str().and_then(|list| list.parse().ok()).expect("a list of CPUs")
        };
        assert!(threads["number"].as_u64() > Some(0), "{strategy}: {instance}");
        assert_eq!(found("may_run_on"), cpus, "{strategy}: {instance}");
        assert!(found("ran_on").is_subset(&cpus), "{strategy}: {instance}");

        let (all, on) = shares(&instance["pages"]["index"]);
        assert!(all >= bytes, "{strategy}: {all} of {bytes} bytes: {instance}");
        let weight = |node: usize| if memory == "weighted" && node == 0 { WEIGHT } else { 1.0 };
        let weights: f64 = nodes.clone().map(weight).sum();
        let share = |node: usize| on.get(&node).copied().unwrap_or(0.0);
        match memory {
            "interleave" | "weighted" => {
                for node in nodes {
                    let asked = weight(node) / weights;
                    assert!((share(node) - asked).abs() <= TOLERANCE, "{strategy}: {instance}");
                }
            }
            _ => assert!(nodes.map(share).sum::<f64>() >= 1.0 - TOLERANCE, "{strategy}: {instance}"),
        }
        assert!(instance["batches"].as_u64() > Some(0), "{strategy}: {instance}");
    }
}

#[test]
fn instances_are_where_the_strategy_says() {
    let Some(bwa) = installed("bwa") else { return };
    // A genome whose index has a few hundred pages, and reads for several blocks of each instance.
    let size = [
        "--genome-length",
        "1500000",
        "--contigs",
        "2",
        "--depth-tumor",
        "0.01",
        "--depth-normal",
        "0.2",
        "--seed",
        "5",
    ];
    let data = Data::simulate("guest", &size);
    let inputs = data.bwa_guest_files(&bwa);
    let bytes: u64 = inputs[..5].iter().map(|file| fs::metadata(file).expect("a file").len()).sum();
    let programs = [PathBuf::from(env!("CARGO_BIN_EXE_genuma")), bwa];
    let files: Vec<&Path> = programs.iter().chain(&inputs).map(PathBuf::as_path).collect();

    // Blocks of 40 pairs. An index of some MB in huge pages could not be spread.
    let command = format!(
        "echo never >/sys/kernel/mm/transparent_hugepage/enabled
         echo {WEIGHT} >/sys/kernel/mm/mempolicy/weighted_interleave/node0
         bwa='bwa mem -t 8 -K 12000 genome.fa reads_1.fq reads_2.fq'
         sum() {{ echo \"SUM $(grep -v '^@' x.sam | wc -l) $(grep -v '^@' x.sam | md5sum)\"; }}
         $bwa >x.sam 2>log || exit 1; sum
         for strategy in {}; do
           ./genuma run --strategy $strategy -o x.sam --json x.json -- $bwa || exit 1
           echo \"JSON $(tr -d '\\n' <x.json)\"; sum
         done",
        STRATEGIES.join(" ")
    );
    let guest = Guest { nodes: NODES as u32, cpus: CPUS as u32, memory: 512, more: &[] };
    let Some(outcome) = guest.run("instances_are_where_the_strategy_says", &files, &command) else { return };
    assert_eq!(outcome.status, 0, "{}", outcome.output);

    let lines = |head: &str| outcome.output.lines().filter_map(|line| line.strip_prefix(head)).collect::<Vec<_>>();
    let sums = lines("SUM ");
    assert!(sums.iter().all(|sum| *sum == sums[0]) && sums[0].starts_with("2000 "), "{}", outcome.output);
    let runs: Vec<Value> = lines("JSON ").iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((runs.len(), sums.len()), (STRATEGIES.len(), 1 + STRATEGIES.len()));
    for (strategy, said) in STRATEGIES.iter().zip(&runs) {
        assert_eq!(said["strategy"], *strategy);
        check(strategy, said, bytes * 9 / 10);
    }
}
