//! Tests of the page with an invented advice.

use genuma_machine::topology::{SyntheticMachine, TopologySource};
use genuma_strategy::advisor::{Advice, ConsideredStrategy, RefusedStrategy, TrialStopReason};
use genuma_strategy::aligner_model_params::find_aligner_model_params;
use genuma_strategy::cpu_layout;
use genuma_strategy::known_cases::{AdvisedPlacement, find_matching_cases};
use genuma_strategy::model::RunPrediction;
use genuma_strategy::replay::published_servers;
use genuma_strategy::sweep::{list_sweep_thread_counts, predict_run_times_of_sweep};
use genuma_strategy::trial_race::RaceVerdict;

use super::*;
use crate::testing::{assert_html_is_nested, run_chromium};

fn case() -> AdvisedRun {
    AdvisedRun {
        aligner: "bwa mem".to_owned(),
        command: "bwa mem -t 64 <ref> & r1.fq r2.fq".to_owned(),
        threads: 64,
        source: "as measured".to_owned(),
        machine: published_servers::published_server_model("intel").expect("a server"),
        application: find_aligner_model_params("bwa mem").to_application_model(5_100_000_000, 22e6),
    }
}

fn considered(word: &str, seconds: f64, measured: &[f64]) -> ConsideredStrategy {
    let predicted = RunPrediction { seconds, low: seconds / 1.2, high: seconds * 1.2 };
    ConsideredStrategy { strategy: word.parse().expect("a strategy"), predicted, measured: measured.to_vec() }
}

fn advice(word: &str) -> Advice {
    let strategy: Strategy = word.parse().expect("a strategy");
    let gain = if strategy == Strategy::PLAIN_RUN { 1.0 } else { 1.9 };
    Advice {
        strategy,
        verdict: RaceVerdict { strategy, gain, low: gain / 1.2, high: gain * 1.2 },
        considered: vec![
            considered("4xbind", 120.0, &[131.0, 137.0]),
            considered("interleave", 200.0, &[]),
            considered("default", 260.0, &[255.0]),
        ],
        refused: vec![RefusedStrategy {
            strategy: "8xbind".parse().expect("a strategy"),
            why: "too <large>".to_owned(),
        }],
        budget_s: 20.0,
        spent_s: 12.0,
        stopped: TrialStopReason::NoTrialWorthwhile,
    }
}

fn points() -> Vec<SweepPoint> {
    let case = case();
    let strategies = ["default", "interleave", "4xbind"].map(|word| word.parse().expect("a strategy"));
    let counts = list_sweep_thread_counts(&case.machine, 64);
    predict_run_times_of_sweep(&case.machine, &case.application, &strategies, &counts)
}

/// Placement of four instances on a machine of four nodes.
fn placement() -> PlacementAdvice {
    let machine: SyntheticMachine = "4 nodes x 8 cores, 2 threads, 32 GiB".parse().expect("a description");
    let topology = machine.topology().expect("a machine");
    let strategy: Strategy = "4xbind".parse().expect("a strategy");
    let cpu_slots = cpu_layout::assign_cpu_slots(&strategy, &topology, 64).expect("CPU slots");
    let commands = ["bwa <1>", "bwa <2>", "bwa <3>", "bwa <4>"].map(str::to_owned);
    let interleaved = AdvisedPlacement {
        strategy: "interleave".parse().expect("a strategy"),
        nodes: 4,
        threads: 64,
        hardware_threads: 64,
        gpus: 1,
    };
    PlacementAdvice {
        nodes: None,
        launch: LaunchCommands::for_cpu_slots(&cpu_slots, &commands, &topology),
        known_cases: find_matching_cases(&interleaved),
        has_read_parts: true,
    }
}

#[test]
fn the_placement_is_told_with_sources() {
    let text = placement_text::format_placement(&placement());
    for said in [
        "Warning: measured elsewhere as slower: if a program copies data to a GPU",
        "https://github.com/JustVugg/colibri/issues/82",
        "Measured elsewhere as faster: interleaving the index for most threads",
        "First divide the reads into part1 to part4",
        "    numactl --physcpubind=8-15,40-47 --membind=1 -- bwa <2> &\n",
        "Slurm, in a job with the options --nodes=1 --exclusive --mem=0 --ntasks=4 --cpus-per-task=16 --hint=multithread:",
        "--cpu-bind=mask_cpu:0xff000000ff00 --mem-bind=mask_mem:0x2 bwa <2> &\n",
        "    systemd-run --scope -p AllowedCPUs=24-31,56-63 -p AllowedMemoryNodes=3 -- bwa <4> &\n    wait\n",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert_eq!(text.matches("\n    wait\n").count(), 3);
}

#[test]
fn the_page_says_what_was_found() {
    let page = render_page(&case(), &advice("4xbind"), &placement(), &points());
    assert_html_is_nested(&page);
    for said in [
        "Run it with --strategy 4xbind: 1.90x the plain run",
        "too &lt;large&gt;",
        "bwa mem -t 64 &lt;ref&gt; &amp; r1.fq r2.fq",
        "134 (131 to 137)",
        "150 ns<br>3.04 GB/s",
        "3 trials, 12.0 s of 20.0 s allowed",
        "--membind=1 -- bwa &lt;2&gt; &amp;",
    ] {
        assert!(page.contains(said), "{said}");
    }
    assert_eq!(page.matches("<rect class=\"bar\"").count(), 5, "three predicted, two measured");
    // Three curves, with the trials of two strategies.
    assert_eq!(page.matches("<path class=\"line curve").count(), 3);
    assert_eq!(page.matches("measured 2 min 14 s").count() + page.matches("measured 4 min 15 s").count(), 2);
    assert!(!page.contains("{{") && !page.contains("NaN"));
}

#[test]
fn to_do_nothing_is_an_answer() {
    let page = render_page(&case(), &advice("default"), &placement(), &points());
    assert_html_is_nested(&page);
    assert!(page.contains("Do nothing: the plain run is the fastest of those tried.") && page.contains("no gain"));
    let untold = RunPrediction { seconds: f64::NAN, low: f64::NAN, high: f64::NAN };
    let mut unknown = advice("default");
    unknown.considered =
        vec![ConsideredStrategy { predicted: untold, measured: vec![], ..unknown.considered[2].clone() }];
    unknown.refused.clear();
    let page = render_page(&case(), &unknown, &placement(), &points());
    assert_html_is_nested(&page);
    assert!(page.contains("the model predicts that the plain run is the fastest."));
}

#[test]
fn a_browser_shows_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("advice.html");
    std::fs::write(&page, render_page(&case(), &advice("4xbind"), &placement(), &points())).expect("a page");
    let url = format!("file://{}", page.display());
    if let Some(seen) = run_chromium(folder.path(), &["--dump-dom"], &url) {
        assert!(seen.contains("How long each strategy takes") && seen.contains("</html>"), "{seen}");
    }
}
