//! In a virtual machine of four nodes, `genuma machine advise` tries strategies of several nodes with a real aligner, and
//! `genuma run` uses its advice. Times of an emulated machine are meaningless; the tests check what is tried,
//! reported and left behind.

use std::path::{Path, PathBuf};

use crate::common::{Data, installed};
use crate::guest::Guest;
use serde_json::Value;

#[test]
fn strategies_of_four_nodes_are_tried() {
    let Some(bwa) = installed("bwa") else { return };
    let size = ["--genome-length", "1500000", "--depth-tumor", "0.01", "--depth-normal", "0.3", "--seed", "5"];
    let data = Data::simulate("guest", &size);
    let inputs = data.bwa_guest_files(&bwa);
    let programs = [PathBuf::from(env!("CARGO_BIN_EXE_genuma")), bwa];
    let files: Vec<&Path> = programs.iter().chain(&inputs).map(PathBuf::as_path).collect();

    let command = "bwa='bwa mem -t 4 -K 24000 genome.fa reads_1.fq reads_2.fq'
         mkdir t; export TMPDIR=$PWD/t
         sum() { echo \"SUM $(grep -v '^@' x.sam | wc -l) $(grep -v '^@' x.sam | md5sum)\"; }
         $bwa >x.sam 2>log || exit 1; sum
         ./genuma machine advise --trial-budget 30 --json a.json --explain a.html -- $bwa || exit 1
         echo \"JSON $(tr -d '\\n' <a.json)\"; echo \"PAGE $(grep -c 'class=\"measured\"' a.html)\"
         ./genuma run -o x.sam --json x.json -- $bwa 2>said || exit 1; sum
         sed 's/^/SAID /' said; echo \"JSON $(tr -d '\\n' <x.json)\"
         echo \"LEFT $(ls t | wc -l) $(grep -c genuma- /proc/mounts)\"";
    let guest = Guest { nodes: 4, cpus: 1, memory: 512, more: &[] };
    let Some(outcome) = guest.run("strategies_of_four_nodes_are_tried", &files, command) else { return };
    assert_eq!(outcome.status, 0, "{}", outcome.output);

    let lines = |head: &str| outcome.output.lines().filter_map(|line| line.strip_prefix(head)).collect::<Vec<_>>();
    let told: Vec<Value> = lines("JSON ").iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let [advised, ran] = &told[..] else { panic!("{}", outcome.output) };
    let machine = &advised["case"]["machine"];
    assert_eq!(machine["nodes"].as_array().map(Vec::len), Some(4));
    let latency = |from: usize, to: usize| machine["latency_ns"][from][to].as_f64().expect("ns");
    assert!(latency(0, 1) > latency(0, 0) && latency(3, 3) == latency(0, 0), "{machine}");

    let considered = advised["advice"]["considered"].as_array().expect("candidates");
    let words: Vec<&str> = considered.iter().filter_map(|one| one["strategy"].as_str()).collect();
    for strategy in ["default", "local", "interleave", "2xbind", "2xinterleave", "4xbind"] {
        assert!(words.contains(&strategy), "{words:?}");
    }
    let tried: Vec<&str> = considered
        .iter()
        .filter(|one| one["measured"].as_array().is_some_and(|trials| !trials.is_empty()))
        .filter_map(|one| one["strategy"].as_str())
        .collect();
    assert!(tried.contains(&"default") && (2..=4).contains(&tried.len()), "{tried:?}");
    assert!(tried.iter().any(|word| word.contains('x')), "several instances were tried: {tried:?}");
    assert!(tried.contains(&advised["advice"]["strategy"].as_str().expect("a word")), "{advised}");
    assert_ne!(lines("PAGE "), ["0"]);

    // The run is too short for trials: the model alone decides.
    let said = lines("SAID ").join("\n");
    let strategy = ran["strategy"].as_str().expect("a word");
    assert!(said.contains(&format!("strategy {strategy}: ")) && said.contains("predicted by the model"), "{said}");
    let sums = lines("SUM ");
    assert!(sums.len() == 2 && sums[0] == sums[1] && !sums[0].starts_with("0 "), "{sums:?}");
    assert_eq!(lines("LEFT "), ["0 0"], "samples and copies are gone");
}
