use std::hint::black_box;
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::*;

/// Counters of a shell that runs `script`.
#[allow(clippy::zombie_processes)] // wait_for_child waits for it.
fn count_script(script: &str) -> ProcessCounters {
    let mut counters = ChildCounters::for_next_child();
    let child = Command::new("sh").args(["-c", script]).spawn().expect("sh starts");
    let id = child.id();
    counters.start_sampling(move || vec![id]);
    let (status, usage) = wait_for_child(id).expect("a child");
    assert!(status.success());
    counters.finish(usage)
}

#[test]
fn a_child_and_its_children_are_counted() {
    let idle = count_script("sleep 0.5");
    let busy = count_script("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; (sleep 0.3; sleep 0.3; sleep 0.3)");
    assert!(busy.user_cpu_s + busy.system_cpu_s > idle.user_cpu_s + idle.system_cpu_s + 0.05, "{busy:?} {idle:?}");
    assert!(busy.voluntary_switches >= idle.voluntary_switches, "{busy:?}");
    assert!(busy.minor_faults > idle.minor_faults && idle.minor_faults > 50, "{busy:?} {idle:?}");
    let resident: u64 = busy.resident_bytes_by_node.values().sum();
    assert!(resident > 100_000 || busy.resident_missing.is_some(), "{busy:?}");
}

#[test]
fn a_counter_has_a_number_or_a_reason() {
    let counted = count_script("sleep 0.5");
    let counts = [
        &counted.max_resident_bytes,
        &counted.cpu_migrations,
        &counted.disk_read_bytes,
        &counted.disk_wait_ms,
        &counted.cycles,
        &counted.instructions,
        &counted.llc_misses,
        &counted.remote_loads,
    ];
    for count in counts {
        assert!(count.value.is_some() || count.note.is_some(), "{counted:?}");
        assert!(!count.at_least || count.note.is_some(), "{counted:?}");
        assert!(count.value.is_some() || !count.at_least, "{counted:?}");
    }
    // Where the CPU counts, a process has instructions and cycles.
    for count in [&counted.cycles, &counted.instructions] {
        assert_ne!(count.value, Some(0), "{counted:?}");
    }
}

#[test]
fn this_process_is_counted_with_its_threads() {
    let counters = OwnCounters::start();
    let filled = thread::spawn(|| vec![1_u8; 48 << 20]).join().expect("a thread");
    thread::sleep(Duration::from_millis(10));
    let counted = counters.finish();
    assert_eq!(filled.iter().map(|&byte| u64::from(black_box(byte))).sum::<u64>(), 48 << 20);
    assert!(counted.minor_faults > 10 && counted.max_resident_bytes.value >= Some(48 << 20), "{counted:?}");
    let resident: u64 = counted.resident_bytes_by_node.values().sum();
    assert!(resident >= 48 << 20 || counted.resident_missing.is_some(), "{counted:?}");
}

#[test]
fn processes_of_an_instance_are_added() {
    let mut one = count_script("true");
    one.cycles = CounterValue::with_exact_value(5);
    one.instructions = CounterValue::missing_with_reason("first");
    one.llc_misses = CounterValue::missing_with_reason("first");
    one.max_resident_bytes = CounterValue::with_exact_value(7);
    one.resident_bytes_by_node = BTreeMap::from([(0, 10)]);
    let mut two = one.clone();
    two.cycles = CounterValue::with_lower_bound_and_reason(6, "sampled");
    two.instructions = CounterValue::with_exact_value(8);
    two.max_resident_bytes = CounterValue::with_exact_value(9);
    two.resident_bytes_by_node = BTreeMap::from([(1, 4)]);
    let both = one.clone().add_counters_of_later_process(two);
    assert_eq!(both.cycles, CounterValue::with_lower_bound_and_reason(11, "sampled"));
    assert_eq!(both.instructions, CounterValue::with_lower_bound_and_reason(8, "first"));
    assert_eq!(both.llc_misses, CounterValue::missing_with_reason("first"));
    assert_eq!(both.max_resident_bytes, CounterValue::with_exact_value(9));
    assert_eq!(both.resident_bytes_by_node, BTreeMap::from([(0, 10)]));
    assert_eq!(both.minor_faults, 2 * one.minor_faults);
}

#[test]
fn the_sample_with_the_most_memory_counts() {
    let mut counters = count_script("true");
    (counters.resident_bytes_by_node, counters.resident_missing) = (BTreeMap::new(), Some("ended".to_owned()));
    counters.keep_larger_resident_sample(&BTreeMap::from([(0, 4), (1, 5)]));
    counters.keep_larger_resident_sample(&BTreeMap::from([(0, 6)]));
    assert_eq!(counters.resident_bytes_by_node, BTreeMap::from([(0, 4), (1, 5)]));
    assert_eq!(counters.resident_missing, None);
}
