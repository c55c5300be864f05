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
    Error, Pages, Placed, Placement, Policy, Replicated, Scoped, pin, residence_of,
};

/// Nodes this process may take memory from.
fn usable() -> IdSet {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("status");
    let allowed = status.lines().find_map(|line| line.strip_prefix("Mems_allowed_list:"));
    let with_memory = std::fs::read_to_string("/sys/devices/system/node/has_memory");
    let list = |text: &str| text.parse::<IdSet>().expect("a list");
    list(allowed.unwrap_or("0")).and(&list(&with_memory.unwrap_or("0".to_owned())))
}

/// Every policy over all nodes.
fn policies() -> [Policy; 6] {
    let nodes = usable();
    [
        Policy::Local,
        Policy::Bind(nodes.clone()),
        Policy::Interleave(nodes.clone()),
        Policy::Weighted(nodes.iter().zip([3, 1].into_iter().cycle()).collect()),
        Policy::KernelWeighted(nodes.clone()),
        Policy::PreferredMany(nodes),
    ]
}

/// Every policy in every kind of pages.
fn placements() -> impl Iterator<Item = Placement> {
    let pages = [Pages::Base, Pages::Transparent, Pages::Huge(2 << 20)];
    let with = move |policy: Policy| pages.map(|pages| Placement { policy: policy.clone(), pages });
    policies().into_iter().flat_map(with)
}

#[test]
fn slices_of_any_length_are_zero_and_keep_what_is_written() {
    for asked in placements() {
        for len in [0, 1, 511, 512, 513, 300_001] {
            let mut placed: Placed<u64> = Placed::zeroed(len, &asked).expect("memory");
            assert!(placed.len() == len && placed.iter().all(|&number| number == 0), "{asked}");
            placed.iter_mut().zip(1..).for_each(|(at, number)| *at = number);
            assert_eq!(placed.iter().sum::<u64>(), len as u64 * (len as u64 + 1) / 2);
            let found = placed.residence().expect("an answer");
            let bytes = found.present() * found.page;
            let (needed, page) = (len as u64 * 8, found.page);
            assert!(found.absent == 0 && bytes >= needed && bytes < needed + page, "{asked} {len}: {found}");
            assert!(found.nodes.keys().all(|&node| usable().contains(node)), "{found}");
            let verdict = placed.verify().expect("an answer");
            assert!(verdict.fits, "{verdict}");
            let copy = Placed::copy_of(&placed, &asked).expect("memory");
            assert_eq!(copy[..], placed[..]);
        }
        let nothing: Placed<()> = Placed::zeroed(usize::MAX, &asked).expect("nothing");
        assert_eq!((nothing.len(), nothing.residence().expect("an answer").present()), (usize::MAX, 0));
    }
}

#[test]
fn placed_memory_is_sent_and_shared() {
    let mut placed: Placed<u32> = Placed::zeroed(10_000, &Policy::Local.into()).expect("memory");
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
            let error = Placed::<u64>::zeroed(len, &asked).expect_err("too much");
            assert!(matches!(error, Error::TooLarge { .. }), "{error}");
            assert!(error.to_string().contains(" do not fit: "), "{error}");
        }
    }
    let asked = Placement { policy: Policy::Local, pages: Pages::Huge(12345) };
    assert!(matches!(Placed::<u8>::zeroed(5, &asked), Err(Error::HugePageSize { bytes: 12345 })));
}

#[test]
fn nodes_that_are_not_there_are_refused_on_one_node_too() {
    for policy in [
        Policy::Bind([0, 900].into()),
        Policy::Weighted([(0, 1), (900, 2)].into()),
        Policy::PreferredMany([900].into()),
    ] {
        let said = Scoped::new(&policy).expect_err("no such node").to_string();
        let usable = usable();
        assert_eq!(
            said,
            format!("{policy}: no node 900 on this machine: this process may use memory of nodes {usable}")
        );
    }
}

#[test]
fn residence_counts_the_pages_a_slice_lies_in() {
    let placed: Placed<u8> = Placed::zeroed(10 * 4096, &Policy::Local.into()).expect("memory");
    let page = placed.residence().expect("an answer").page as usize;
    let pages = |slice: &[u8]| residence_of(slice).expect("an answer").present();
    assert_eq!((pages(&placed[..0]), pages(&placed[..1]), pages(&placed[page - 1..page + 1])), (0, 1, 2));
    let untouched = vec![0_u8; 64 << 20];
    let found = residence_of(&untouched).expect("an answer");
    assert!(found.absent > found.present(), "{found}");
}

#[test]
fn a_thread_is_pinned_and_let_go() {
    let before = pin::allowed();
    for cpu in before.iter() {
        let pinned = pin::to_cpu(cpu).expect("a CPU");
        assert_eq!((pin::here().cpu, pinned.cpus()), (cpu, &IdSet::from([cpu])));
        assert_eq!(pin::allowed(), before);
    }
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("status");
    assert!(status.contains(&format!("Cpus_allowed_list:\t{before}\n")), "{status}");
}

#[test]
fn copies_are_made_in_order_and_a_panic_is_passed_on() {
    let mut order = Vec::new();
    let copies = Replicated::new(&usable(), |node| {
        order.push(node);
        Ok::<_, Error>(vec![node; 3])
    });
    let copies = copies.expect("copies");
    assert_eq!(order.into_iter().collect::<IdSet>(), usable());
    assert!(copies.iter().all(|(node, copy)| copy[..] == [node; 3]));
    assert!(usable().contains(copies.local()[0]));
    let panicked = std::panic::catch_unwind(|| {
        Replicated::new(&usable(), |_| -> Result<u8, Error> { panic!("not made") })
    });
    let why = panicked.expect_err("a panic");
    assert_eq!(why.downcast_ref::<&str>(), Some(&"not made"));
}

#[test]
fn policies_and_verdicts_are_written_and_read() {
    for asked in placements() {
        let text = serde_json::to_string(&asked).expect("text");
        assert_eq!(serde_json::from_str::<Placement>(&text).expect("a placement"), asked, "{text}");
    }
    let weighted = Placement::from(Policy::Weighted(BTreeMap::from([(0, 3), (4, 1)])));
    let text = serde_json::to_string(&weighted).expect("text");
    assert_eq!(text, r#"{"policy":{"weighted":{"0":3,"4":1}},"pages":"base"}"#);
    assert_eq!(weighted.to_string(), "weighted 0:3,4:1, base pages");
    let huge = Placement { policy: Policy::Interleave([0, 1, 2].into()), pages: Pages::Huge(2 << 20) };
    assert_eq!(huge.to_string(), "interleave 0-2, huge pages of 2 MiB");
}

/// Runs another of this program's tests alone in a process of its own.
fn alone(test: &str) {
    let program = std::env::current_exe().expect("this program");
    let run =
        Command::new(program).args(["--ignored", "--exact", test, "--nocapture"]).output().expect("a run");
    let said = String::from_utf8_lossy(&run.stdout) + String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
}

/// Whether this process is one of [`alone`]'s; says so where it is not.
fn is_alone() -> bool {
    let alone = std::env::var_os("GENUMA_ALONE").is_some();
    if !alone {
        let _ = writeln!(
            std::io::stderr(),
            "skipped: this runs in a process of its own that another test starts"
        );
    }
    alone
}

#[test]
fn everything_works_where_the_kernel_forbids_it() {
    alone("forbidden");
}

#[test]
fn one_node_is_said_once() {
    alone("said_once");
}

/// What is logged once about placement and once about pages.
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
        let placed = Placed::copy_of(&vec![7_u64; 1 << 20], &asked).expect("memory");
        assert_eq!(placed.placement().policy, Policy::Local);
        assert!(placed.iter().all(|&number| number == 7));
        let verdict = placed.verify().expect("numa_maps answers");
        assert!(verdict.found.absent == 0 && (verdict.fits || usable().len() > 1), "{verdict}");
    }
    let pinned = pin::to_cpu(pin::allowed().first().expect("a CPU")).expect("a guard");
    assert_eq!(pinned.cpus(), &pin::allowed());
    let scoped = Scoped::new(&Policy::Interleave(usable())).expect("a guard");
    assert_eq!(scoped.policy(), &Policy::Local);
    assert!(residence_of(&[1_u8; 5000]).is_err());
    assert_eq!(warnings("memory is not placed"), 1, "{:?}", logged::warnings());
    assert!(logged::warnings().len() <= 2, "{:?}", logged::warnings());
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
            let placed: Placed<u8> = Placed::zeroed(100, &policy.into()).expect("memory");
            assert!(placed.verify().expect("an answer").fits);
        }
        drop(Scoped::new(&Policy::Bind(usable())).expect("a guard"));
    }
    // On several nodes there is nothing to say.
    assert_eq!(logged::warnings().len(), usize::from(usable().len() == 1), "{:?}", logged::warnings());
}
