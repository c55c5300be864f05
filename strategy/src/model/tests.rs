//! Tests properties that the model must have for any parameters.

use proptest::prelude::{Strategy as Any, *};

use super::{
    ApplicationModel, InfeasibleStrategy, InstanceMemoryPolicy, MachineModel, index_shares_by_node,
    predict_index_load_seconds, predict_run_time,
};
use crate::replay::published_servers;

fn app() -> ApplicationModel {
    ApplicationModel {
        index_bytes: 4_000_000_000,
        private_bytes: 50 << 20,
        reads: 1e7,
        cpu: 200e-6,
        touches: 400.0,
        bytes_per_touch: 500.0,
        handovers: 0.5,
        spread: 0.2,
    }
}

fn seconds(machine: &MachineModel, app: &ApplicationModel, word: &str, threads: u32) -> f64 {
    predict_run_time(machine, app, &word.parse().unwrap(), threads).unwrap().seconds
}

fn server(name: &str) -> MachineModel {
    published_servers::published_server_model(name).unwrap()
}

/// Returns a machine of one node like those of `machine`.
fn first_node(machine: &MachineModel) -> MachineModel {
    let mut one = machine.clone();
    one.nodes.truncate(1);
    for table in [&mut one.latency_ns, &mut one.bandwidth_gbs] {
        table.truncate(1);
        table[0].truncate(1);
    }
    one
}

#[test]
fn one_node_leaves_no_choice_of_memory() {
    let machine = first_node(&server("intel"));
    let plain = seconds(&machine, &app(), "default", 16);
    for word in ["local", "interleave", "weighted", "bind"] {
        assert_eq!(seconds(&machine, &app(), word, 16), plain, "{word}");
    }
}

#[test]
fn a_lone_thread_waits_for_nobody() {
    let machine = first_node(&server("intel"));
    let app = ApplicationModel { index_bytes: 2_000_000_000, reads: 1000.0, handovers: 0.0, ..app() };
    let read = 200e-6 / 1.15 + 400.0 * 85e-9 + 400.0 * 500.0 / 16.7e9;
    let load = 2.0 / 2.0;
    let predicted = seconds(&machine, &app, "default", 1);
    assert!((predicted - load - 1000.0 * read).abs() < 1e-6 * predicted, "{predicted}");
}

#[test]
fn a_bank_gives_no_more_than_its_bandwidth() {
    // No computing and many threads: the bank of the first node limits the time.
    let machine = server("amd");
    let app =
        ApplicationModel { cpu: 1e-9, touches: 1e4, handovers: 0.0, reads: 1e6, index_bytes: 1_000_000_000, ..app() };
    let least = 1e6 * 1e4 * 500.0 / 11e9;
    let predicted = seconds(&machine, &app, "default", 64);
    assert!(predicted >= least && predicted < 1.3 * least + 1.0, "{predicted} {least}");
    let spread = seconds(&machine, &app, "interleave", 64);
    assert!(spread < predicted / 3.0, "{spread} {predicted}");
}

#[test]
fn what_does_not_fit_is_dropped_with_numbers() {
    let machine = server("amd");
    let large = ApplicationModel { index_bytes: 29_000_000_000, ..app() };
    assert!(predict_run_time(&machine, &large, &"4xbind".parse().unwrap(), 64).is_ok());
    let error = predict_run_time(&machine, &large, &"8xbind".parse().unwrap(), 64).unwrap_err();
    assert_eq!(
        error.to_string(),
        "8xbind: each instance needs 29.4 GB, but its nodes have 16.0 GB free; use fewer instances"
    );
    let error = predict_run_time(&machine, &app(), &"8xbind".parse().unwrap(), 4).unwrap_err();
    assert!(matches!(error, InfeasibleStrategy::Threads { threads: 4, .. }), "{error}");
    // Two instances share each node of the other server.
    assert!(
        predict_run_time(
            &server("intel"),
            &ApplicationModel { index_bytes: 15_900_000_000, ..app() },
            &"8xbind".parse().unwrap(),
            64
        )
        .is_err()
    );
}

#[test]
fn an_index_larger_than_a_bank_spills() {
    let machine = server("amd");
    let shares = index_shares_by_node(
        &machine,
        &ApplicationModel { index_bytes: 29_000_000_000, ..app() },
        InstanceMemoryPolicy::Default,
        &[0, 1, 2, 3],
        1,
    );
    let [(0, first), (1, second), (2, third)] = shares[..] else { panic!("{shares:?}") };
    assert!((first - 14.4 / 29.0).abs() < 1e-9 && first == second && (third - 0.2 / 29.0).abs() < 1e-9);
}

#[test]
fn crowded_memory_sends_copies_to_the_disk() {
    let machine = server("amd");
    let small = predict_index_load_seconds(&machine, &app(), 8);
    assert_eq!(small, 4.0 / machine.load_gbs);
    let large = ApplicationModel { index_bytes: 29_000_000_000, ..app() };
    assert_eq!(predict_index_load_seconds(&machine, &large, 1), 29.0 / machine.load_gbs);
    assert_eq!(predict_index_load_seconds(&machine, &large, 2), 58.0 / machine.disk_gbs);
}

fn any_app() -> impl Any<Value = ApplicationModel> {
    (1e-6..1e-3f64, 1.0..3000.0f64, 64.0..2000.0f64, 0.0..5.0f64, 1_000_000..13_000_000_000u64).prop_map(
        |(cpu, touches, bytes_per_touch, handovers, index_bytes)| ApplicationModel {
            cpu,
            touches,
            bytes_per_touch,
            handovers,
            index_bytes,
            ..app()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn better_hardware_is_never_slower(app in any_app(), amd: bool, word in 0..7usize, by in 1.0..4.0f64) {
        let word = ["default", "interleave", "2xbind", "2xinterleave", "4xbind", "4xinterleave", "4xlocal"][word];
        let machine = server(if amd { "amd" } else { "intel" });
        let before = seconds(&machine, &app, word, 64);
        let scaled = |table: &[Vec<f64>], by: f64| table.iter().map(|row| row.iter().map(|x| x * by).collect()).collect();
        let wider = MachineModel { bandwidth_gbs: scaled(&machine.bandwidth_gbs, by), ..machine.clone() };
        prop_assert!(seconds(&wider, &app, word, 64) <= before * (1.0 + 1e-5));
        let nearer = MachineModel { latency_ns: scaled(&machine.latency_ns, 1.0 / by), ..machine.clone() };
        prop_assert!(seconds(&nearer, &app, word, 64) <= before * (1.0 + 1e-5));
        let faster = MachineModel { speed: machine.speed * by, ..machine.clone() };
        prop_assert!(seconds(&faster, &app, word, 64) <= before * (1.0 + 1e-5));
    }

    #[test]
    fn more_work_takes_longer(app in any_app(), amd: bool, by in 1.0..4.0f64) {
        let machine = server(if amd { "amd" } else { "intel" });
        for word in ["default", "interleave", "2xbind", "4xinterleave"] {
            let before = seconds(&machine, &app, word, 64);
            for more in [
                ApplicationModel { cpu: app.cpu * by, ..app },
                ApplicationModel { touches: app.touches * by, ..app },
                ApplicationModel { handovers: app.handovers * by, ..app },
                ApplicationModel { reads: app.reads * by, ..app },
            ] {
                prop_assert!(seconds(&machine, &more, word, 64) >= before * (1.0 - 1e-5), "{}", word);
            }
        }
    }
}
