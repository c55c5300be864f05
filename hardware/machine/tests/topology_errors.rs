//! Recordings that lack files or contradict themselves, and descriptions that make no sense: a word on what stands in, or
//! an error that names the file.

use genuma_machine::topology::{RecordedMachine, SyntheticMachine};
use genuma_machine::{IdSet, Topology, TopologySource};

const TWO_NODES: &str = include_str!("machines/2-nodes.txt");
const NODE: &str = "/sys/devices/system/node";
const CPU: &str = "/sys/devices/system/cpu";

/// The recording with the text of some files replaced; `None` removes a file, and all below it.
fn changed(changes: &[(&str, Option<&str>)]) -> String {
    let mut text = TWO_NODES.to_owned();
    for (path, content) in changes {
        let here = |line: &&str| match line.strip_prefix(path) {
            Some(rest) => rest.is_empty() || rest.starts_with(' ') || rest.starts_with('/'),
            None => false,
        };
        assert!(content.is_some() || text.lines().any(|line| here(&line)), "{path} is in the recording");
        let kept = text.lines().filter(|line| !here(line)).map(|line| format!("{line}\n"));
        text = kept.chain(content.map(|content| format!("{path} {content}\n"))).collect();
    }
    text
}

fn topology(changes: &[(&str, Option<&str>)]) -> Topology {
    let recorded = RecordedMachine::parse("x", &changed(changes)).expect("a recording");
    recorded.topology().unwrap_or_else(|e| panic!("{changes:?}: {e}"))
}

fn error(changes: &[(&str, Option<&str>)]) -> String {
    let recorded = RecordedMachine::parse("x", &changed(changes)).expect("a recording");
    match recorded.topology() {
        Ok(topology) => panic!("{changes:?}: {topology:?}"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn contradictions_name_the_file() {
    let cases: &[(&str, &str, &str)] = &[
        ("node/node1/cpulist", "1-3", "CPU 1 is also in node 0"),
        ("node/node1/cpulist", "3", "CPUs 2 are in no node's cpulist"),
        ("node/node1/cpulist", "two", "'two' is not a list of numbers such as 0-3,8"),
        ("node/node1/distance", "16", "a row of length 1, but 2 nodes are online"),
        ("node/node0/distance", "10 16 22", "a row of length 3, but 2 nodes are online"),
        ("node/node0/distance", "10 far", "'far' is not a number that can be here"),
        ("node/online", "", "no node is online"),
        ("node/online", "0-", "'0-' is not a list of numbers such as 0-3,8"),
        ("node/node1/meminfo", "Node 1 MemTotal: 4 kB", "line MemFree is missing"),
        (
            "node/node1/meminfo",
            "Node 1 MemTotal: 4 kB\\nNode 1 MemFree: 8 kB",
            "free memory (8192 bytes) exceeds total memory (4096 bytes)",
        ),
        ("node/node1/meminfo", "Node 1 MemTotal: much\\nNode 1 MemFree: 8 kB", "'much' is not a size"),
        ("node/node1/hugepages/hugepages-2048kB/nr_hugepages", "-1", "'-1' is not a number that can be here"),
        ("cpu/online", "", "no CPU is online"),
        ("cpu/cpu1/topology/core_cpus_list", "0", "'0' lacks CPU 1 itself"),
        ("cpu/cpu1/topology/core_id", "x", "'x' is not a number that can be here"),
        ("cpu/cpu1/cache/index0/size", "large", "'large' is not a size"),
        ("cpu/cpu1/cache/index0/type", "Trace", "'Trace' is not a cache type"),
        ("cpu/cpu1/cache/index3/shared_cpu_list", "0", "'0' lacks CPU 1 itself"),
    ];
    for (path, content, why) in cases {
        let path = format!("/sys/devices/system/{path}");
        let named = if why.contains("no node's") { format!("{CPU}/online") } else { path.clone() };
        assert_eq!(error(&[(&path, Some(content))]), format!("x: {named}: {why}"));
    }
    let cases: &[(&str, &str, &str)] = &[
        ("/proc/self/status", "Cpus_allowed_list:\\t9", "Cpus_allowed_list '9' names no CPU that is online (0-3)"),
        ("/proc/self/smaps", "KernelPageSize: 3 kB", "a page of 3072 bytes"),
        (
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "always never",
            "'always never' selects none of always, madvise and never",
        ),
    ];
    for (path, content, why) in cases {
        assert_eq!(error(&[(path, Some(content))]), format!("x: {path}: {why}"));
    }
}

#[test]
fn what_nothing_can_stand_in_for_names_the_file() {
    let cpulist = format!("{NODE}/node1/cpulist");
    let why = "cannot be read, and no other file lists the CPUs of node 1";
    assert_eq!(error(&[(&cpulist, None)]), format!("x: {cpulist}: {why}"));
    let meminfo = format!("{NODE}/node1/meminfo");
    let why = "cannot be read, and no other file has the memory size of node 1";
    assert_eq!(error(&[(&meminfo, None)]), format!("x: {meminfo}: {why}"));
    let why = "cannot be read, and no other file has the memory size";
    assert_eq!(error(&[(NODE, None), ("/proc/meminfo", None)]), format!("x: /proc/meminfo: {why}"));
    let why = "cannot be read, and no other file lists the CPUs";
    assert_eq!(error(&[(NODE, None), (CPU, None), ("/proc", None)]), format!("x: {CPU}/online: {why}"));
    let empty = RecordedMachine::parse("x", "genuma recording 1\n").expect("a recording");
    assert_eq!(empty.topology().expect_err("the recording is empty").to_string(), format!("x: {CPU}/online: {why}"));
}

#[test]
fn what_stands_in_is_said() {
    let distance = format!("{NODE}/node1/distance");
    let one_row = topology(&[(&distance, None)]);
    assert_eq!(one_row.nodes[1].distances.values().copied().collect::<Vec<_>>(), [20, 10]);
    assert_eq!(one_row.nodes[0].distances.values().copied().collect::<Vec<_>>(), [10, 16]);
    assert_eq!(one_row.missing_notes.len(), 1);

    let cache = format!("{CPU}/cpu3/cache");
    let unknown = topology(&[(&cache, None)]);
    assert_eq!(unknown.missing_notes, [format!("{CPU}/cpu*/cache of CPUs 3 cannot be read: their caches are unknown")]);

    let listed = topology(&[(&format!("{NODE}/online"), None)]);
    assert_eq!((listed.nodes.len(), listed.missing_notes.len()), (2, 1));

    // As lxcfs shows a container with two CPUs: the nodes list all of the host's.
    let contained = topology(&[(&format!("{CPU}/online"), Some("0,2"))]);
    assert_eq!(contained.cpus.iter().map(|cpu| cpu.id).collect::<Vec<_>>(), [0, 2]);
    assert_eq!((&contained.offline_cpus, contained.missing_notes.len()), (&IdSet::from([1, 3]), 2));
    assert_eq!(contained.allowed.cpus, IdSet::from([0, 2]));

    let unlimited = topology(&[("/proc/self/status", None)]);
    assert_eq!((unlimited.allowed.cpus.len(), unlimited.allowed.nodes.len()), (4, 2));
    assert_eq!(unlimited.missing_notes.len(), 2);
}

#[test]
fn limits_of_both_versions_are_read() {
    let groups = "4:memory:/a/b\\n3:cpu,cpuacct:/a\\n0::/u";
    let mounts = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\\n\
                  35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\\n\
                  36 31 0:33 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";
    let base = [("/proc/self/cgroup", Some(groups)), ("/proc/self/mountinfo", Some(mounts))];
    let allowed = |files: &[(&str, Option<&str>)]| {
        let allowed = topology(&[&base[..], files].concat()).allowed;
        (allowed.memory_limit_bytes, allowed.cpu_time_limit_cpus)
    };
    assert_eq!(allowed(&[]), (None, None));
    let memory = "/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes";
    let outer = "/sys/fs/cgroup/memory/a/memory.limit_in_bytes";
    let none = Some("9223372036854771712");
    assert_eq!(allowed(&[(memory, none), (outer, none)]), (None, None));
    assert_eq!(allowed(&[(memory, none), (outer, Some("1048576"))]), (Some(1 << 20), None));
    assert_eq!(allowed(&[(memory, Some("4096")), (outer, Some("1048576"))]), (Some(4096), None));
    let quota = "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us";
    let period = ("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", Some("100000"));
    assert_eq!(allowed(&[(quota, Some("-1")), period]), (None, None));
    assert_eq!(allowed(&[(quota, Some("250000")), period]), (None, Some(2.5)));
    let unified = ("/sys/fs/cgroup/unified/u/cpu.max", Some("100000 100000"));
    assert_eq!(allowed(&[(quota, Some("250000")), period, unified]), (None, Some(1.0)));

    let wrong = |file: (&str, Option<&str>)| error(&[&base[..], &[file]].concat());
    let maximum = "/sys/fs/cgroup/unified/u/cpu.max";
    assert_eq!(wrong((maximum, Some("5"))), format!("x: {maximum}: '5' is not a quota and a period"));
    assert_eq!(wrong((maximum, Some("5 0"))), format!("x: {maximum}: a period of 0"));
    assert_eq!(wrong((memory, Some("much"))), format!("x: {memory}: 'much' is not a number that can be here"));

    // In a group, but no hierarchy is mounted.
    let blind = topology(&[("/proc/self/cgroup", Some("0::/a"))]);
    assert_eq!(blind.missing_notes, ["/proc/self/mountinfo shows no control groups: their limits are unknown"]);
}

#[test]
fn descriptions_are_written_as_they_are_read() {
    for text in [
        "1 node × 1 core, 512 MiB",
        "8 nodes × 8 cores, 16 GiB",
        "4 nodes × 24 cores, 2 threads, 1536 MiB",
        "2 nodes × 4 cores, 4 KiB, 1 memory-only node",
        "2 nodes × 4 cores, 1 TiB, 2 memory-only nodes × 3 TiB, distances 10 20 30",
    ] {
        assert_eq!(text.parse::<SyntheticMachine>().expect(text).to_string(), text);
    }
    let free = " 16GiB,8 nodes×8 cores ,1 threads, distances 10 16 22,1 memory-only node x 16 GiB";
    let same: SyntheticMachine = "8 nodes × 8 cores, 16 GiB, 1 memory-only node".parse().expect("a description");
    assert_eq!(free.parse::<SyntheticMachine>().expect("a description"), same);
}

#[test]
fn descriptions_that_make_no_sense_say_why() {
    let known = "'8 nodes × 8 cores', '2 threads', '16 GiB', '2 memory-only nodes × 64 GiB' and 'distances 10 16 22'";
    let unknown = |part: &str| format!("'{part}' is none of {known}");
    for (text, why) in [
        ("8 nodes × 8 cores", "it lacks the memory of a node, such as '16 GiB'".to_owned()),
        ("16 GiB", "it lacks nodes and cores, such as '8 nodes × 8 cores'".to_owned()),
        ("", "a part between two commas is empty".to_owned()),
        ("8 nodes × 8 cores,, 16 GiB", "a part between two commas is empty".to_owned()),
        ("8 nodes × 8 cores, 16 GiB, 2 GiB", "'2 GiB' was given before".to_owned()),
        ("0 nodes × 8 cores, 16 GiB", "'0' is not a number from 1 to 65536".to_owned()),
        ("two nodes × 8 cores, 16 GiB", "'two' is not a number from 1 to 65536".to_owned()),
        ("8 nodes × 8 cores, 16 GB", unknown("16GB")),
        ("8 nodes × 8 cores, 16 GiB, fast", unknown("fast")),
        ("8 nodes × 8 cores × 2 threads, 16 GiB", unknown("8 nodes x 8 cores x 2 threads")),
        ("8 nodes × 8 cores, 0 GiB", "'0GiB' is not a valid memory size of a node".to_owned()),
        ("8 nodes × 8 cores, 9999999 TiB", "'9999999TiB' is not a valid memory size of a node".to_owned()),
        ("1025 nodes × 1 core, 1 GiB", "more than 1024 nodes".to_owned()),
        ("1024 nodes × 65 cores, 1 GiB", "more than 65536 CPUs".to_owned()),
        ("1 node × 65536 cores, 65536 threads, 1 GiB", "more than 65536 CPUs".to_owned()),
    ] {
        let said = text.parse::<SyntheticMachine>().expect_err(text).to_string();
        assert_eq!(said, format!("'{text}' is not a valid machine description: {why}"));
    }
}
