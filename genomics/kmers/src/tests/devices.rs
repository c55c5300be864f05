//! Whole counts with devices: the result is the same as without.

use std::sync::OnceLock;

use genuma_gpu::DeviceTestSettings;

use super::*;
use crate::Devices;
use crate::device::tests::opened;
use crate::scatter::ScatterDevice;
use crate::scatter::tests::simulated_fpga;

/// Devices of a trial; reports if there is none.
fn devices(trial: &DeviceTestSettings) -> Option<Devices> {
    opened(trial).map(Devices::new)
}

/// Two devices with little memory each, whose kernels are compiled once for all tests.
fn two() -> Option<Devices> {
    static TWO: OnceLock<Option<Devices>> = OnceLock::new();
    // Each test has its own statistics.
    TWO.get_or_init(|| {
        devices(
            &DeviceTestSettings::default()
                .with_memory_limit(700 << 10)
                .with_sub_devices(2)
                .with_device_taking_all_work(),
        )
    })
    .clone()
}

#[test]
fn results_do_not_depend_on_devices() {
    let Some(two) = two() else { return };
    let reads = awkward_reads(2000, 12);
    let files = Files::new(&reads);
    for k in [24, 25, 31, 32] {
        let roots = expected(&reads, k, 0);
        let before = two.bin_statistics();
        let params = CountParams { devices: two.clone(), ..files.params(k) };
        let stats = assert_counts(&files, &params, None, &roots);
        // With little memory, bins are larger than the tables of the devices.
        let plan = MemoryPlan { bins: 3, max_extents: 4, ..SMALL };
        assert_counts(&files, &params, Some(plan), &roots);
        let after = two.bin_statistics();
        assert!(after[1] - before[1] >= stats.bins, "{before:?}, {after:?}");
    }
}

#[test]
fn sorted_kmers_do_not_depend_on_devices() {
    let Some(two) = two() else { return };
    let reads = awkward_reads(2000, 13);
    let files = Files::new(&reads);
    for (k, least) in [(24, 2), (31, 1), (32, 3)] {
        let expected = sorted_by_definition(&reads, k, least);
        let params = CountParams { devices: two.clone(), ..files.params(k) };
        let scattered =
            ScatteredReads::<2>::scatter_lanes(&files.lanes, &params, &ProgressCounters::default()).expect("read");
        let sorted = scattered.count_and_keep_frequent_kmers(least).expect("counted");
        let mut found = Vec::new();
        let done = sorted.for_each_kmer(|kmer, &counts| {
            found.push((kmer, counts));
            Ok::<_, Error>(())
        });
        done.expect("readable");
        assert!(found == expected, "k {k}, {least} at least");
    }
}

#[test]
fn threads_count_what_lost_devices_leave() {
    let reads = awkward_reads(2000, 14);
    let files = Files::new(&reads);
    let roots = expected(&reads, 31, 0);
    let mut bins = [0; 3];
    for fail in [1, 2, 30, 60, 61, 62, 63, 90, 200] {
        let trial = DeviceTestSettings::default()
            .with_memory_limit(700 << 10)
            .with_sub_devices(2)
            .with_failing_call_number(fail)
            .with_device_taking_all_work();
        let Some(devices) = devices(&trial) else { return };
        let params = CountParams { devices: devices.clone(), ..files.params(31) };
        assert_counts(&files, &params, None, &roots);
        devices.bin_statistics().iter().zip(&mut bins).for_each(|(n, sum)| *sum += n);
    }
    let [all, on_devices, begun] = bins;
    assert!(on_devices > 0 && on_devices < all && begun > 0, "{bins:?}");
}

#[test]
fn devices_without_memory_are_not_used() {
    let reads = awkward_reads(300, 15);
    let files = Files::new(&reads);
    let roots = expected(&reads, 31, 0);
    // Hardly any device memory, and no host memory beyond what the threads need.
    let Some(none) = devices(&DeviceTestSettings::default().with_memory_limit(16 << 10)) else { return };
    let params = CountParams { devices: none.clone(), ..files.params(31) };
    assert_counts(&files, &params, None, &roots);
    let Some(some) = devices(&DeviceTestSettings::default()) else { return };
    let params = CountParams { devices: some.clone(), memory_bytes: min_memory_bytes(2), ..files.params(31) };
    assert_counts(&files, &params, None, &roots);
    assert_eq!((none.bin_statistics()[1], some.bin_statistics()[1]), (0, 0));
    assert!(some.summary().expect("a line").starts_with("0 of 16 bins"), "{:?}", some.summary());
}

#[test]
fn results_do_not_depend_on_a_simulated_fpga() {
    let reads = awkward_reads(2000, 16);
    let files = Files::new(&reads);
    for k in [21, 24, 31, 32] {
        let Some(fpga) = simulated_fpga(k, &["--stalls", "5"]) else { return };
        let devices = Devices::default().with_scatter_device(ScatterDevice::SimulatedFpga(fpga.clone()));
        let roots = expected(&reads, k, 0);
        let params = CountParams { devices, ..files.params(k) };
        assert_counts(&files, &params, None, &roots);
        assert_counts(&files, &params, Some(SMALL), &roots);
        let [all, on_device] = fpga.num_total_and_device_batches();
        assert!(on_device > 0 && on_device <= all, "{on_device} of {all} batches");
    }
}

#[test]
fn devices_are_equal_when_they_are_the_same() {
    let (Some(one), Some(other)) = (devices(&DeviceTestSettings::default()), devices(&DeviceTestSettings::default()))
    else {
        return;
    };
    assert!(one == one.clone() && one != other && one != Devices::default());
}
