//! Tests the advisor on the published run times of lenis2017: how good its choices are, and that the evaluation is
//! fair.

use std::sync::OnceLock;

use genuma_strategy::replay::report::{AdvisorEvaluation, EvaluatedCase, evaluate_advisor_on_table, maximum, mean};
use genuma_strategy::replay::{
    BaselineRule, PublishedRun, fit_aligners_of_server, list_published_cases, published_runs,
};

const FILE: &str = "lenis2017.csv";
const TEXT: &str = include_str!("../data/lenis2017.csv");

fn report() -> &'static AdvisorEvaluation {
    static REPORT: OnceLock<AdvisorEvaluation> = OnceLock::new();
    REPORT.get_or_init(|| evaluate_advisor_on_table(FILE, TEXT).unwrap())
}

fn runs() -> Vec<PublishedRun> {
    published_runs::parse_published_runs(FILE, TEXT).unwrap()
}

#[test]
fn the_model_alone_is_better_than_the_papers_rule() {
    for from in ["amd", "intel"] {
        let of: Vec<&EvaluatedCase> = report().judged.iter().filter(|judged| judged.fitted_server == from).collect();
        assert_eq!(of.len(), 8);
        assert!(of.iter().all(|judged| judged.case.server != from));
        let mean = mean(of.iter().map(|judged| judged.model_regret()));
        let most = maximum(of.iter().map(|judged| judged.model_regret()));
        assert!(mean <= 0.04 && most <= 0.40, "learnt on {from}: mean {mean}, max {most}");
    }
}

#[test]
fn pilots_make_it_better_still() {
    let raced = || report().judged.iter().map(EvaluatedCase::mean_race_regret);
    assert!(mean(raced()) <= 0.015, "{}", mean(raced()));
    assert!(maximum(raced()) <= 0.05, "{}", maximum(raced()));
    for judged in &report().judged {
        for race in &judged.races {
            let choice = judged.case.relative_regret(race.strategy);
            assert!(race.trials >= 2 && race.cost > 0.0 && (race.regret - choice - race.cost).abs() < 1e-12);
        }
    }
}

#[test]
fn predicted_times_rank_as_the_published_ones() {
    let correlations = |aligners: &[&str]| -> Vec<f64> {
        let of = report().judged.iter().filter(|judged| aligners.contains(&&*judged.case.workload.aligner));
        of.map(|judged| judged.rank_correlation).collect()
    };
    let bound_by_memory = correlations(&["bowtie2", "bwa-mem"]);
    assert!(bound_by_memory.len() == 8 && bound_by_memory.iter().all(|&r| r >= 0.84), "{bound_by_memory:?}");
    // Without placement, the published times of these rise and fall with the number of threads.
    let others = correlations(&["gem", "snap"]);
    assert!(others.len() == 8 && mean(others.iter().copied()) >= 0.5, "{others:?}");
}

#[test]
fn simple_rules_score_as_published() {
    let regret = |rule: BaselineRule| {
        let n = BaselineRule::ALL_BASELINE_RULES.iter().position(|other| *other == rule).unwrap();
        let of = |judged: &EvaluatedCase| judged.case.relative_regret(judged.rules[n]);
        [mean(report().judged.iter().map(of)), maximum(report().judged.iter().map(of))]
    };
    let near = |found: [f64; 2], told: [f64; 2]| found.iter().zip(told).all(|(a, b)| (a - b).abs() < 0.001);
    assert!(near(regret(BaselineRule::PublishedRule), [0.040, 0.403]), "{:?}", regret(BaselineRule::PublishedRule));
    assert!(near(regret(BaselineRule::Interleave), [0.637, 3.597]), "{:?}", regret(BaselineRule::Interleave));
}

#[test]
fn fitting_does_not_see_the_judged_server() {
    let honest = runs();
    let poisoned: Vec<PublishedRun> = honest
        .iter()
        .enumerate()
        .map(|(n, run)| match run.server.as_str() {
            "intel" => PublishedRun { seconds: 1.0 + (n * 7919 % 1000) as f64, error: 0.9, ..run.clone() },
            _ => run.clone(),
        })
        .collect();
    let fitted = fit_aligners_of_server(&honest, "amd").unwrap();
    assert_eq!(fitted, fit_aligners_of_server(&poisoned, "amd").unwrap());
    let without: Vec<PublishedRun> = honest.iter().filter(|run| run.server == "amd").cloned().collect();
    assert_eq!(fitted, fit_aligners_of_server(&without, "amd").unwrap());
    // The order of lines must not change the fit except for rounding; the times of the fitted server must.
    assert_ne!(fit_aligners_of_server(&poisoned, "intel").unwrap(), fit_aligners_of_server(&honest, "intel").unwrap());
}

#[test]
fn there_are_sixteen_cases() {
    let runs = runs();
    assert_eq!(runs.len(), 320);
    let [amd, intel] = ["amd", "intel"].map(|server| list_published_cases(&runs, server).unwrap());
    assert_eq!((amd.len(), intel.len()), (8, 8));
    assert!(amd.iter().chain(&intel).all(|case| case.threads == 64));
    let gem = amd.iter().find(|case| case.workload.aligner == "gem" && case.workload.dataset == "na12878").unwrap();
    assert_eq!(gem.fastest_strategy(), ("2xinterleave".parse().unwrap(), 90.68));
    assert!((gem.relative_regret("interleave".parse().unwrap()) - 0.4032).abs() < 1e-3);
}

#[test]
fn bad_tables_are_refused_with_their_line() {
    let line = "bowtie2,amd,gcat,original,none,1,8,8,937.96,0.48";
    let table = |line: &str| format!("{}\n{line}\n", published_runs::PUBLISHED_RUNS_TABLE_HEADER);
    let refused = |text: &str| evaluate_advisor_on_table("t.csv", text).unwrap_err().to_string();
    for (bad, said) in [
        ("bowtie2,amd,gcat", "t.csv, line 2: 3 fields; there are ten"),
        (
            "bowtie2,amd,gcat,original,first,1,8,8,9,1",
            "t.csv, line 2: policy 'first'; there are none, localalloc, interleave and membind",
        ),
        ("bowtie2,amd,gcat,original,none,0,8,8,9,1", "t.csv, line 2: instances is '0'; expected a number from 1"),
        ("bowtie2,amd,gcat,original,none,2,8,8,9,1", "t.csv, line 2: 2 instances of 8 threads do not make 8 threads"),
        ("bowtie2,amd,gcat,original,none,1,8,8,NaN,1", "t.csv, line 2: mean_s is 'NaN'; expected a number"),
        ("bowtie2,amd,gcat,original,none,1,8,8,0,1", "t.csv, line 2: mean_s is 0; a time is above 0"),
        ("bowtie2,amd,gcat,original,none,1,8,8,9,-1", "t.csv, line 2: err_pct is below 0"),
    ] {
        assert_eq!(refused(&table(bad)), said);
    }
    assert_eq!(refused(&table(&format!("{line}\n{line}"))), "t.csv, line 3: default with 8 threads occurs twice");
    assert!(refused("").starts_with("t.csv, line 1: expected the header"), "{}", refused(""));
    assert!(refused(&table(line)).contains("the table has 1"), "{}", refused(&table(line)));
    let elsewhere = format!("{line}\n{}", line.replace("amd", "sparc"));
    assert!(refused(&table(&elsewhere)).contains("server 'sparc' is not described"));
    let unplain = format!("{line}\n{}", line.replace("amd", "intel").replace("none", "interleave"));
    assert!(
        refused(&table(&unplain))
            .contains("bowtie2 intel gcat, 8 threads: the table lacks a run of the strategy default")
    );
}
