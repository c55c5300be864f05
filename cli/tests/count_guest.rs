//! In a virtual machine of four nodes, `genuma kmers count` keeps its threads on all nodes and the memory of each bin on
//! its node; the k-mers are the same as on this machine.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Data, run};
use crate::guest::Guest;
use serde_json::Value;

#[test]
fn bins_are_on_the_nodes_of_their_threads() {
    let data = Data::simulate_normal_only("count-guest", "3");
    let reads = data.write_unpacked_normal();
    // Text, because the table's filter for absent k-mers depends on the memory.
    let expected = data.folder.join("expected.tsv");
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let mut here = vec!["kmers".to_owned(), "count".to_owned(), "-o".to_owned(), text(&expected)];
    here.extend(reads.iter().map(|path| text(path)));
    run(here.iter().map(String::as_str)).assert_success();
    let md5 = Command::new("md5sum").stdin(fs::File::open(&expected).expect("there")).output().expect("run");

    let program = Path::new(env!("CARGO_BIN_EXE_genuma"));
    let files: Vec<&Path> = std::iter::once(program).chain(reads.iter().map(AsRef::as_ref)).collect();
    // With six threads, two nodes have two threads each; in the second run most data is spilled.
    let command = "for with in '-t 4 --memory 300M' '-t 6 --memory 130M'; do \
           ./genuma kmers count $with --json x.json -o x.tsv reads_1.fq reads_2.fq || exit 1; \
           echo \"JSON $(tr -d '\\n' <x.json)\"; echo \"MD5 $(md5sum <x.tsv)\"; \
         done";
    let guest = Guest { nodes: 4, cpus: 2, memory: 512, more: &[] };
    let Some(outcome) = guest.run("bins_are_on_the_nodes_of_their_threads", &files, command) else { return };
    assert_eq!(outcome.status, 0, "{}", outcome.output);

    let lines = |head: &'static str| outcome.output.lines().filter_map(move |line| line.strip_prefix(head));
    let expected = String::from_utf8(md5.stdout).expect("a number");
    assert_eq!(lines("MD5 ").collect::<Vec<_>>(), [expected.trim(); 2]);
    let runs: Vec<Value> = lines("JSON ").map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(runs.len(), 2);
    for (said, threads) in runs.iter().zip([[1, 1, 1, 1], [2, 2, 1, 1]]) {
        let nodes = said["nodes"].as_array().expect("nodes");
        let number = |key: &str| nodes.iter().map(|node| node[key].as_u64().expect(key)).collect::<Vec<_>>();
        assert_eq!(number("node"), [0, 1, 2, 3]);
        assert_eq!(number("threads"), threads);
        assert_eq!(number("bytes_elsewhere"), [0; 4], "{nodes:?}");
        // Each node has as many bins as threads.
        let here = number("bytes_here");
        let (bytes, all): (u64, u64) = (here.iter().sum(), threads.iter().sum());
        let fair = |(here, threads): (&u64, u64)| here.abs_diff(bytes * threads / all) < bytes / 8;
        assert!(here.iter().zip(threads).all(fair), "{nodes:?}");
    }
    assert!(runs[1]["spilled_bytes"].as_u64() > Some(0), "the second run does not fit its memory");
}
