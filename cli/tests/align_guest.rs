//! In a virtual machine of four nodes, `genuma align` places its index as requested and its workers on all nodes; the
//! records do not depend on the placement.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::common::{Data, run, text};
use crate::guest::Guest;
use serde_json::Value;

/// Requested placements, and the placements that result on that machine.
const WISHES: [(&str, &str); 5] = [
    ("local", "local"),
    ("interleave", "interleaved over nodes 0-3"),
    ("weighted", "spread over nodes 0-3 by the kernel's weights"),
    ("replicate", "a copy on each of nodes 0-3"),
    ("auto", "a copy on each of nodes 0-3"),
];

/// Number of pages by node of each copy of the index, with the node that the copy is for.
fn copies(said: &Value) -> Vec<(Option<u64>, BTreeMap<String, u64>)> {
    let copies = said["placement"]["copies"].as_array().expect("copies");
    copies
        .iter()
        .map(|copy| {
            let pages = serde_json::from_value(copy["pages"].clone()).expect("pages");
            (copy["for_node"].as_u64(), pages)
        })
        .collect()
}

#[test]
fn the_index_is_where_it_was_asked_to_be() {
    // Two million bases: an index of about a thousand pages.
    let data = Data::simulate_normal_only("guest", "0.5");
    let genome = data.folder.join("genome.fa");
    let reads = data.write_unpacked_normal();
    run(["index", text(&genome)]).assert_success();
    let here = run(["align", text(&genome), text(&reads[0]), text(&reads[1])]).assert_success().stdout;
    let records: String = here.split_inclusive('\n').filter(|line| !line.starts_with('@')).collect();
    assert!(records.lines().count() > 5_000);
    let expected = data.folder.join("expected.sam");
    fs::write(&expected, records).expect("a file");

    let index = ["gnm", "gnm.seal"].map(|extension| data.folder.join(format!("genome.fa.{extension}")));
    let program = Path::new(env!("CARGO_BIN_EXE_genuma"));
    let files: Vec<&Path> =
        [program, &genome, &expected].into_iter().chain(index.iter().chain(&reads).map(AsRef::as_ref)).collect();
    let wishes: Vec<&str> = WISHES.iter().map(|(request, _)| *request).collect();
    let command = format!(
        "for request in {}; do \
           ./genuma align genome.fa reads_1.fq reads_2.fq -t 8 --placement $request -o x.sam --json x.json || exit 1; \
           echo \"JSON $(tr -d '\\n' <x.json)\"; grep -v '^@' x.sam | cmp - expected.sam || exit 1; \
         done",
        wishes.join(" ")
    );
    let guest = Guest { nodes: 4, cpus: 2, memory: 512, more: &[("NUMAVM_SMT", "1")] };
    let Some(outcome) = guest.run("the_index_is_where_it_was_asked_to_be", &files, &command) else { return };
    assert_eq!(outcome.status, 0, "{}", outcome.output);

    let lines = |head: &str| outcome.output.lines().filter_map(|line| line.strip_prefix(head)).collect::<Vec<_>>();
    let runs: Vec<Value> = lines("JSON ").iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(runs.len(), WISHES.len());
    for ((request, chosen), said) in WISHES.iter().zip(&runs) {
        assert_eq!(said["placement"]["chosen"], *chosen, "{request}: {said}");
        assert_eq!(said["placement"]["as_chosen"], true, "{request}: {said}");
        let mut nodes: Vec<u64> =
            said["workers"].as_array().expect("workers").iter().filter_map(|w| w["node"].as_u64()).collect();
        nodes.sort_unstable();
        assert_eq!(nodes, [0, 0, 1, 1, 2, 2, 3, 3], "{request}: workers on all nodes");
        let copies = copies(said);
        let all: u64 = copies.iter().flat_map(|(_, pages)| pages.values()).sum();
        assert!(all > 500 * copies.len() as u64, "{request}: {copies:?}");
        match *request {
            "local" => assert_eq!((copies.len(), copies[0].1.len()), (1, 1), "{copies:?}"),
            "interleave" | "weighted" => {
                assert_eq!((copies.len(), copies[0].1.len()), (1, 4), "{copies:?}");
                assert!(copies[0].1.values().all(|pages| (4 * pages).abs_diff(all) < all / 20), "{copies:?}");
            }
            _ => {
                let own: Vec<Option<u64>> = copies.iter().map(|(node, _)| *node).collect();
                assert_eq!(own, [0, 1, 2, 3].map(Some));
                for (node, pages) in &copies {
                    assert_eq!(pages.keys().cloned().collect::<Vec<_>>(), [node.expect("a node").to_string()]);
                }
            }
        }
    }
}
