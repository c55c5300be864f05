//! Tests fits of runs whose model is known.

use super::*;
use crate::replay::published_servers;

fn truth() -> [ApplicationModel; 2] {
    let one = ApplicationModel {
        index_bytes: 5_000_000_000,
        private_bytes: 0,
        reads: 1e7,
        cpu: 250e-6,
        touches: 500.0,
        bytes_per_touch: 600.0,
        handovers: 0.8,
        spread: 0.0,
    };
    [one, ApplicationModel { cpu: 600e-6, touches: 200.0, reads: 2e7, ..one }]
}

fn workloads() -> Vec<WorkloadSizes> {
    let of =
        |app: &ApplicationModel| WorkloadSizes { index_bytes: app.index_bytes, private_bytes: 0, reads: app.reads };
    truth().iter().map(of).collect()
}

/// Returns the times that `server` would show without noise.
fn runs(server: &str) -> Vec<RunObservation> {
    let machine = published_servers::published_server_model(server).unwrap();
    let plain = [8, 16, 32, 48].map(|threads| ("default", threads));
    let all = ["default", "interleave", "2xbind", "2xinterleave", "4xbind", "8xbind"].map(|word| (word, 64));
    let mut runs = Vec::new();
    for (workload, app) in truth().iter().enumerate() {
        for (word, threads) in plain.iter().chain(&all) {
            let strategy: Strategy = word.parse().unwrap();
            let seconds = predict_run_time(&machine, app, &strategy, *threads).unwrap().seconds;
            runs.push(RunObservation { workload, strategy, threads: *threads, seconds });
        }
    }
    runs
}

#[test]
fn what_made_the_runs_is_found_and_holds_elsewhere() {
    let fitted =
        fit_application_models(&published_servers::published_server_model("amd").unwrap(), &workloads(), &runs("amd"));
    let intel = published_servers::published_server_model("intel").unwrap();
    for run in runs("intel") {
        let predicted = predict_run_time(&intel, &fitted[run.workload], &run.strategy, run.threads).unwrap().seconds;
        assert!((predicted / run.seconds).ln().abs() < 0.15, "{run:?} {predicted}");
    }
    assert!(fitted.iter().all(|app| app.spread < 0.1), "{fitted:?}");
}

#[test]
fn one_wild_run_does_not_decide() {
    let machine = published_servers::published_server_model("amd").unwrap();
    let mut runs = runs("amd");
    runs[6].seconds *= 20.0;
    let fitted = fit_application_models(&machine, &workloads(), &runs);
    for run in runs.iter().enumerate().filter(|(n, _)| *n != 6).map(|(_, run)| run) {
        let predicted = predict_run_time(&machine, &fitted[run.workload], &run.strategy, run.threads).unwrap().seconds;
        assert!((predicted / run.seconds).ln().abs() < 0.3, "{run:?} {predicted}");
    }
    assert!(fitted[0].spread > 0.3);
}

#[test]
fn nothing_measured_leaves_what_is_typical() {
    let fitted = fit_application_models(&published_servers::published_server_model("amd").unwrap(), &workloads(), &[]);
    for app in fitted {
        let near = |found: f64, typical: f64| (found / typical).ln().abs() < 0.05;
        assert!(near(app.cpu, TYPICAL_APPLICATION.cpu) && near(app.touches, TYPICAL_APPLICATION.touches), "{app:?}");
        assert!(
            near(app.handovers, TYPICAL_APPLICATION.handovers)
                && near(app.bytes_per_touch, TYPICAL_APPLICATION.bytes_per_touch),
            "{app:?}"
        );
    }
}
