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
fn contradictions_are_notes_that_name_the_file() {
    let cases: &[(&str, &str, &str)] = &[
        ("node/node1/cpulist", "1-3", "CPUs 1 are also in node 0: assuming that they belong to node 0 only"),
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
        ("cpu/present", "none", "'none' is not a list of numbers such as 0-3,8"),
        ("cpu/cpu1/topology/core_cpus_list", "0", "'0' lacks CPU 1 itself"),
        ("cpu/cpu1/topology/core_id", "x", "'x' is not a number that can be here"),
        ("cpu/cpu1/cache/index0/level", "low", "'low' is not a number that can be here"),
        ("cpu/cpu1/cache/index0/size", "large", "'large' is not a size"),
        ("cpu/cpu1/cache/index0/type", "Trace", "'Trace' is not a cache type"),
        ("cpu/cpu1/cache/index3/shared_cpu_list", "0", "'0' lacks CPU 1 itself"),
        ("cpu/cpu1/cache/index3/shared_cpu_list", "", "'' lacks CPU 1 itself"),
    ];
    for (path, content, why) in cases {
        let path = format!("/sys/devices/system/{path}");
        let read = topology(&[(&path, Some(content))]);
        assert_noted(&read, &format!("{path}: {why}"));
        assert_eq!((read.nodes.len(), read.cpus.len()), (2, 4), "{path}");
        let assigned: IdSet = read.nodes.iter().flat_map(|node| node.cpus.iter().collect::<Vec<_>>()).collect();
        assert_eq!(assigned, IdSet::from([0, 1, 2, 3]), "{path}: each CPU is in a node");
        assert_eq!(read.nodes.iter().map(|node| node.cpus.len()).sum::<usize>(), 4, "{path}: and in one only");
        assert!(read.nodes.iter().all(|node| node.memory_bytes > 0 && node.free_bytes <= node.memory_bytes), "{path}");
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
        let read = topology(&[(path, Some(content))]);
        assert_noted(&read, &format!("{path}: {why}"));
        assert_eq!((read.allowed.cpus.len(), read.page_bytes), (4, 4096), "{path}");
    }
}

/// Fails unless one of the notes begins with `start`.
#[track_caller]
fn assert_noted(topology: &Topology, start: &str) {
    let notes = &topology.missing_notes;
    assert!(notes.iter().any(|note| note.starts_with(start)), "'{start}' is not in {notes:?}");
}

#[test]
fn a_bad_cache_is_skipped_and_others_are_kept() {
    let whole = topology(&[]).caches.len();
    let read = topology(&[(&format!("{CPU}/cpu1/cache/index0/shared_cpu_list"), Some(""))]);
    assert_eq!(read.caches.len(), whole - 1, "the first cache of CPU 1 is left out, those after it are not");
    let note = format!("{CPU}/cpu1/cache/index0/shared_cpu_list: '' lacks CPU 1 itself: these caches are left out");
    assert_eq!(read.missing_notes, [note]);
}

#[test]
fn cpus_without_a_node_get_one() {
    let node1 = format!("{NODE}/node1/cpulist");
    // CPU 2 has the package of CPU 3.
    let same_package = topology(&[(&node1, Some("3"))]);
    assert_eq!(same_package.find_cpu(2).expect("CPU 2").node, 1);
    assert_noted(
        &same_package,
        &format!("{CPU}/online: CPUs 2 are in no node's cpulist: assuming that they belong to node 1"),
    );
    // In all nodes: the first has them, and the second keeps its memory.
    let in_both = topology(&[(&node1, Some("0-3")), (&format!("{NODE}/node0/cpulist"), Some("0-3"))]);
    assert_eq!((in_both.nodes[0].cpus.len(), in_both.nodes[1].cpus.len()), (4, 0));
    assert_eq!(in_both.allowed_memory_nodes(), IdSet::from([0, 1]));
    // In no node.
    let in_none = topology(&[(&node1, Some("")), (&format!("{NODE}/node0/cpulist"), Some(""))]);
    assert_eq!(in_none.allowed_cpu_nodes(), IdSet::from([0]));
}

#[test]
fn what_nothing_can_stand_in_for_names_the_file() {
    let cpulist = format!("{NODE}/node1/cpulist");
    let unlisted = topology(&[(&cpulist, None)]);
    assert_eq!(unlisted.nodes[1].cpus, IdSet::from([2, 3]));
    assert_noted(&unlisted, &format!("{cpulist} cannot be read: assuming that the CPUs that no other node lists"));

    let meminfo = format!("{NODE}/node1/meminfo");
    let rest = topology(&[(&meminfo, None)]);
    let system = topology(&[(NODE, None)]).memory_bytes();
    assert_eq!(rest.memory_bytes(), system, "node 1 has what node 0 leaves");
    assert!(rest.nodes[1].memory_bytes > 0 && rest.nodes[1].free_bytes <= rest.nodes[1].memory_bytes);
    assert_noted(&rest, &format!("{meminfo} cannot be read: using /proc/meminfo, without the memory of other nodes"));
    let first = format!("{NODE}/node0/meminfo");
    let unknown = topology(&[(&meminfo, None), (&first, None)]);
    assert_eq!((unknown.nodes[0].memory_bytes, unknown.nodes[1].memory_bytes), (system, 0));

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

    let wrong = |file: (&str, Option<&str>), why: &str| {
        let read = topology(&[&base[..], &[file]].concat());
        assert_noted(&read, &format!("{}: {why}: this limit is unknown", file.0));
        assert_eq!((read.allowed.memory_limit_bytes, read.allowed.cpu_time_limit_cpus), (None, None));
    };
    let maximum = "/sys/fs/cgroup/unified/u/cpu.max";
    wrong((maximum, Some("5")), "'5' is not a quota and a period");
    wrong((maximum, Some("5 0")), "a period of 0");
    wrong((memory, Some("much")), "'much' is not a number that can be here");

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
