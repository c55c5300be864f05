//! Whole counts with devices beside the threads: nothing shows.

use std::sync::OnceLock;

use genuma_gpu::Trial;

use super::*;
use crate::Devices;
use crate::device::tests::opened;

/// None where there is no device, which is said.
fn devices(trial: &Trial) -> Option<Devices> {
    opened(trial).map(Devices::new)
}

/// Two devices with little memory each, whose kernels are compiled once for all tests.
fn two() -> Option<Devices> {
    static TWO: OnceLock<Option<Devices>> = OnceLock::new();
    // What they did is of no count alone.
    TWO.get_or_init(|| devices(&Trial::default().memory(700 << 10).split(2).alone())).clone()
}

#[test]
fn devices_do_not_show() {
    let Some(two) = two() else { return };
    let reads = awkward_reads(2000, 12);
    let files = Files::new(&reads);
    for k in [24, 25, 31, 32] {
        let roots = expected(&reads, k, 0);
        let before = two.bins();
        let params = CountParams { devices: two.clone(), ..files.params(k) };
        let stats = assert_counts(&files, &params, None, &roots);
        // As much in little memory, where bins are larger than the tables of devices.
        let plan = Plan { bins: 3, extents: 4, ..SMALL };
        assert_counts(&files, &params, Some(plan), &roots);
        let after = two.bins();
        assert!(after[1] - before[1] >= stats.bins, "{before:?}, {after:?}");
    }
}

#[test]
fn kmers_are_sorted_with_devices_as_without() {
    let Some(two) = two() else { return };
    let reads = awkward_reads(2000, 13);
    let files = Files::new(&reads);
    for (k, least) in [(24, 2), (31, 1), (32, 3)] {
        let expected = sorted_by_definition(&reads, k, least);
        let params = CountParams { devices: two.clone(), ..files.params(k) };
        let scattered = Scattered::<2>::new(&files.lanes, &params, &Meter::default()).expect("read");
        let sorted = scattered.count(least).expect("counted");
        let mut found = Vec::new();
        let done = sorted.for_each(|kmer, &counts| {
            found.push((kmer, counts));
            Ok::<_, Error>(())
        });
        done.expect("readable");
        assert!(found == expected, "k {k}, {least} at least");
    }
}

#[test]
fn what_lost_devices_leave_is_counted_by_threads() {
    let reads = awkward_reads(2000, 14);
    let files = Files::new(&reads);
    let roots = expected(&reads, 31, 0);
    let mut bins = [0; 3];
    for fail in [1, 2, 30, 60, 61, 62, 63, 90, 200] {
        let trial = Trial::default().memory(700 << 10).split(2).fail_at(fail).alone();
        let Some(devices) = devices(&trial) else { return };
        let params = CountParams { devices: devices.clone(), ..files.params(31) };
        assert_counts(&files, &params, None, &roots);
        devices.bins().iter().zip(&mut bins).for_each(|(n, sum)| *sum += n);
    }
    let [all, on_devices, begun] = bins;
    assert!(on_devices > 0 && on_devices < all && begun > 0, "{bins:?}");
}

#[test]
fn devices_without_room_are_left_out() {
    let reads = awkward_reads(300, 15);
    let files = Files::new(&reads);
    let roots = expected(&reads, 31, 0);
    // Hardly any memory of the device, and of the host none beyond what threads need.
    let Some(none) = devices(&Trial::default().memory(16 << 10)) else { return };
    let params = CountParams { devices: none.clone(), ..files.params(31) };
    assert_counts(&files, &params, None, &roots);
    let Some(some) = devices(&Trial::default()) else { return };
    let params = CountParams { devices: some.clone(), memory: least_memory(2), ..files.params(31) };
    assert_counts(&files, &params, None, &roots);
    assert_eq!((none.bins()[1], some.bins()[1]), (0, 0));
    assert!(some.told().expect("a line").starts_with("0 of 16 bins"), "{:?}", some.told());
}

#[test]
fn devices_are_equal_when_they_are_the_same() {
    let (Some(one), Some(other)) = (devices(&Trial::default()), devices(&Trial::default())) else { return };
    assert!(one == one.clone() && one != other && one != Devices::default());
}
