//! Placement on the machine that the tests run on, whatever it is; several nodes are in `placement_guest.rs`.

#[path = "placement_checks/logged.rs"]
mod logged;
#[path = "placement_checks/seccomp.rs"]
mod seccomp;

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Command;

use genuma_machine::IdSet;
use genuma_machine::placement::{
    Error, MemoryPlacement, MemoryPolicy, PageSize, PlacedSlice, ReplicatedPerNode, ScopedMemoryPolicy, Slab,
    online_nodes, pin, query_address_range_residence, query_slice_residence, usable_nodes,
};

/// Nodes this process may take memory from.
fn usable() -> IdSet {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("status");
    let allowed = status.lines().find_map(|line| line.strip_prefix("Mems_allowed_list:"));
    let with_memory = std::fs::read_to_string("/sys/devices/system/node/has_memory");
    let list = |text: &str| text.parse::<IdSet>().expect("a list");
    list(allowed.unwrap_or("0")).intersection(&list(&with_memory.unwrap_or("0".to_owned())))
}

/// Every policy over all nodes.
fn policies() -> [MemoryPolicy; 6] {
    let nodes = usable();
    [
        MemoryPolicy::Local,
        MemoryPolicy::Bind(nodes.clone()),
        MemoryPolicy::Interleave(nodes.clone()),
        MemoryPolicy::Weighted(nodes.iter().zip([3, 1].into_iter().cycle()).collect()),
        MemoryPolicy::KernelWeighted(nodes.clone()),
        MemoryPolicy::PreferredMany(nodes),
    ]
}

/// Every policy in every kind of pages.
fn placements() -> impl Iterator<Item = MemoryPlacement> {
    let pages = [PageSize::Base, PageSize::Transparent, PageSize::Huge(2 << 20)];
    let with =
        move |policy: MemoryPolicy| pages.map(|pages| MemoryPlacement { policy: policy.clone(), page_size: pages });
    policies().into_iter().flat_map(with)
}

#[test]
fn slices_of_any_length_are_zero_and_keep_what_is_written() {
    for asked in placements() {
        for len in [0, 1, 511, 512, 513, 300_001] {
            let mut placed: PlacedSlice<u64> = PlacedSlice::new_zeroed(len, &asked).expect("memory");
            assert!(placed.len() == len && placed.iter().all(|&number| number == 0), "{asked}");
            placed.iter_mut().zip(1..).for_each(|(at, number)| *at = number);
            assert_eq!(placed.iter().sum::<u64>(), len as u64 * (len as u64 + 1) / 2);
            let found = placed.query_residence().expect("an answer");
            let bytes = found.num_resident_pages() * found.page_bytes;
            let (needed, page) = (len as u64 * 8, found.page_bytes);
            assert!(found.absent_pages == 0 && bytes >= needed && bytes < needed + page, "{asked} {len}: {found}");
            assert!(found.pages_by_node.keys().all(|&node| usable().contains(node)), "{found}");
            let verdict = placed.verify_placement().expect("an answer");
            assert!(verdict.is_as_requested, "{verdict}");
            let copy = PlacedSlice::from_slice(&placed, &asked).expect("memory");
            assert_eq!(copy[..], placed[..]);
        }
        let nothing: PlacedSlice<()> = PlacedSlice::new_zeroed(usize::MAX, &asked).expect("nothing");
        assert_eq!(
            (nothing.len(), nothing.query_residence().expect("an answer").num_resident_pages()),
            (usize::MAX, 0)
        );
    }
}

#[test]
fn placed_memory_is_sent_and_shared() {
    let mut placed: PlacedSlice<u32> = PlacedSlice::new_zeroed(10_000, &MemoryPolicy::Local.into()).expect("memory");
    std::thread::scope(|scope| {
        let (left, right) = placed.split_at_mut(5000);
        scope.spawn(|| left.fill(1));
        scope.spawn(|| right.fill(2));
    });
    let sum: u32 = std::thread::spawn(move || placed.iter().sum()).join().expect("a thread");
    assert_eq!(sum, 15_000);
}

#[test]
fn more_than_there_is_is_an_error() {
    for asked in placements() {
        for len in [1 << 40, usize::MAX / 8, usize::MAX] {
            let error = PlacedSlice::<u64>::new_zeroed(len, &asked).expect_err("too much");
            assert!(matches!(error, Error::NotEnoughMemory { .. }), "{error}");
            assert!(error.to_string().contains(" do not fit: "), "{error}");
        }
    }
    let asked = MemoryPlacement { policy: MemoryPolicy::Local, page_size: PageSize::Huge(12345) };
    assert!(matches!(PlacedSlice::<u8>::new_zeroed(5, &asked), Err(Error::InvalidHugePageSize { bytes: 12345 })));
}

#[test]
fn nodes_that_are_not_there_are_refused_on_one_node_too() {
    for policy in [
        MemoryPolicy::Bind([0, 900].into()),
        MemoryPolicy::Weighted([(0, 1), (900, 2)].into()),
        MemoryPolicy::PreferredMany([900].into()),
    ] {
        let said = ScopedMemoryPolicy::set_thread_policy(&policy).expect_err("no such node").to_string();
        let usable = usable();
        assert_eq!(
            said,
            format!("{policy}: no node 900 on this machine: this process may use memory of nodes {usable}")
        );
    }
}

#[test]
fn guards_report_that_the_earlier_state_is_restored() {
    let first = pin::allowed_cpus().smallest_id().expect("a CPU");
    let (pinned, scoped) =
        (pin::pin_to_cpu(first), ScopedMemoryPolicy::set_thread_policy(&MemoryPolicy::Bind(usable())));
    scoped.expect("a policy").restore_previous_policy().expect("restored");
    let pinned = pinned.expect("a CPU");
    let is_applied = pinned.is_applied();
    pinned.restore_previous_affinity().expect("restored");
    // Where the kernel forbids pinning, nothing was changed.
    let again = pin::pin_to_cpus(&pin::allowed_cpus()).expect("all CPUs");
    assert_eq!((again.is_applied(), again.pinned_cpus()), (is_applied, &pin::allowed_cpus()));
}

#[test]
fn usable_nodes_are_those_of_the_kernel() {
    assert_eq!(usable_nodes(), usable());
    assert!(usable_nodes().is_subset(&online_nodes()));
}

#[test]
fn pages_without_a_mapping_are_absent() {
    let found = query_address_range_residence(4096..3 * 4096).expect("an answer");
    assert_eq!((found.num_resident_pages(), found.absent_pages), (0, (2 * 4096_u64).div_ceil(found.page_bytes)));
    assert_eq!(query_address_range_residence(9..9).expect("an answer").absent_pages, 0);
}

#[test]
fn residence_counts_the_pages_a_slice_lies_in() {
    let placed: PlacedSlice<u8> = PlacedSlice::new_zeroed(10 * 4096, &MemoryPolicy::Local.into()).expect("memory");
    let page = placed.query_residence().expect("an answer").page_bytes as usize;
    let pages = |slice: &[u8]| query_slice_residence(slice).expect("an answer").num_resident_pages();
    assert_eq!((pages(&placed[..0]), pages(&placed[..1]), pages(&placed[page - 1..page + 1])), (0, 1, 2));
    let untouched = vec![0_u8; 64 << 20];
    let found = query_slice_residence(&untouched).expect("an answer");
    assert!(found.absent_pages > found.num_resident_pages(), "{found}");
}

#[test]
fn a_thread_is_pinned_and_let_go() {
    let before = pin::allowed_cpus();
    for cpu in before.iter() {
        let pinned = pin::pin_to_cpu(cpu).expect("a CPU");
        assert_eq!((pin::current_location().cpu, pinned.pinned_cpus()), (cpu, &IdSet::from([cpu])));
        assert_eq!(pin::allowed_cpus(), before);
    }
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("status");
    assert!(status.contains(&format!("Cpus_allowed_list:\t{before}\n")), "{status}");
}

#[test]
fn copies_are_made_in_order_and_a_panic_is_passed_on() {
    let mut order = Vec::new();
    let copies = ReplicatedPerNode::new(&usable(), |node| {
        order.push(node);
        Ok::<_, Error>(vec![node; 3])
    });
    let copies = copies.expect("copies");
    assert_eq!(order.into_iter().collect::<IdSet>(), usable());
    assert!(copies.iter_copies().all(|(node, copy)| copy[..] == [node; 3]));
    assert!(usable().contains(copies.nearest_copy()[0]));
    let panicked =
        std::panic::catch_unwind(|| ReplicatedPerNode::new(&usable(), |_| -> Result<u8, Error> { panic!("not made") }));
    let why = panicked.expect_err("a panic");
    assert_eq!(why.downcast_ref::<&str>(), Some(&"not made"));
}

#[test]
fn policies_and_verdicts_are_written_and_read() {
    for asked in placements() {
        let text = serde_json::to_string(&asked).expect("text");
        assert_eq!(serde_json::from_str::<MemoryPlacement>(&text).expect("a placement"), asked, "{text}");
    }
    let weighted = MemoryPlacement::from(MemoryPolicy::Weighted(BTreeMap::from([(0, 3), (4, 1)])));
    let text = serde_json::to_string(&weighted).expect("text");
    assert_eq!(text, r#"{"policy":{"weighted":{"0":3,"4":1}},"pages":"base"}"#);
    assert_eq!(weighted.to_string(), "weighted 0:3,4:1, base pages");
    let huge =
        MemoryPlacement { policy: MemoryPolicy::Interleave([0, 1, 2].into()), page_size: PageSize::Huge(2 << 20) };
    assert_eq!(huge.to_string(), "interleave 0-2, huge pages of 2 MiB");
}

/// Runs another of this program's tests alone in a process of its own.
fn alone(test: &str) {
    let program = std::env::current_exe().expect("this program");
    let run =
        Command::new(program).args(["--ignored", "--exact", test, "--nocapture"]).env("GENUMA_ALONE", "1").output();
    let run = run.expect("a run");
    let said = String::from_utf8_lossy(&run.stdout) + String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
}

/// Whether this process is one of [`alone`]'s; says so where it is not.
fn is_alone() -> bool {
    let alone = std::env::var_os("GENUMA_ALONE").is_some();
    if !alone {
        let _ = writeln!(std::io::stderr(), "skipped: this runs in a process of its own that another test starts");
    }
    alone
}

#[test]
fn everything_works_where_the_kernel_forbids_it() {
    alone("forbidden");
}

/// The files of the kernel list nodes that the kernel does not know.
#[test]
fn memory_is_local_where_the_kernel_does_not_know_the_nodes() {
    alone("unknown_nodes");
}

#[test]
fn one_node_is_said_once() {
    alone("said_once");
}

/// Messages that are logged once about placement and once about page sizes.
fn warnings(about: &str) -> usize {
    logged::warnings().iter().filter(|warning| warning.starts_with(about)).count()
}

#[test]
#[ignore = "runs alone, started by everything_works_where_the_kernel_forbids_it"]
fn forbidden() {
    if !is_alone() {
        return;
    }
    logged::start();
    seccomp::forbid(seccomp::PLACING);
    for asked in placements() {
        let placed = PlacedSlice::from_slice(&vec![7_u64; 1 << 20], &asked).expect("memory");
        assert_eq!(placed.applied_placement().policy, MemoryPolicy::Local);
        assert!(placed.iter().all(|&number| number == 7));
        let verdict = placed.verify_placement().expect("numa_maps answers");
        assert!(verdict.residence.absent_pages == 0 && (verdict.is_as_requested || usable().len() > 1), "{verdict}");
    }
    let pinned = pin::pin_to_cpu(pin::allowed_cpus().smallest_id().expect("a CPU")).expect("a guard");
    assert_eq!(pinned.pinned_cpus(), &pin::allowed_cpus());
    let scoped = ScopedMemoryPolicy::set_thread_policy(&MemoryPolicy::Interleave(usable())).expect("a guard");
    assert_eq!(scoped.applied_policy(), &MemoryPolicy::Local);
    assert!(query_slice_residence(&[1_u8; 5000]).is_err());
    assert_eq!(warnings("memory is not placed"), 1, "{:?}", logged::warnings());
    assert!(logged::warnings().len() <= 2, "{:?}", logged::warnings());
}

#[test]
#[ignore = "runs alone, started by memory_is_local_where_the_kernel_does_not_know_the_nodes"]
fn unknown_nodes() {
    if !is_alone() {
        return;
    }
    logged::start();
    seccomp::fail(seccomp::POLICIES, libc::EINVAL);
    for asked in placements() {
        let placed = PlacedSlice::from_slice(&vec![7_u64; 1 << 20], &asked).expect("memory");
        assert_eq!(placed.applied_placement().policy, MemoryPolicy::Local);
        assert!(placed.iter().all(|&number| number == 7));
    }
    let slab = Slab::reserve_address_space(4096, 4, usable().smallest_id()).expect("a slab");
    assert!(slab.take_buffer().is_some());
    for scoped in [
        ScopedMemoryPolicy::set_thread_policy(&MemoryPolicy::Bind(usable())),
        ScopedMemoryPolicy::prefer_current_node(),
    ] {
        assert_eq!(scoped.expect("a guard").applied_policy(), &MemoryPolicy::Local);
    }
    assert_eq!(warnings("memory is not placed"), 1, "{:?}", logged::warnings());
}

#[test]
#[ignore = "runs alone, started by one_node_is_said_once"]
fn said_once() {
    if !is_alone() {
        return;
    }
    logged::start();
    for _ in 0..2 {
        for policy in policies() {
            let placed: PlacedSlice<u8> = PlacedSlice::new_zeroed(100, &policy.into()).expect("memory");
            assert!(placed.verify_placement().expect("an answer").is_as_requested);
        }
        drop(ScopedMemoryPolicy::set_thread_policy(&MemoryPolicy::Bind(usable())).expect("a guard"));
    }
    // On several nodes there is nothing to say.
    assert_eq!(logged::warnings().len(), usize::from(usable().len() == 1), "{:?}", logged::warnings());
}
