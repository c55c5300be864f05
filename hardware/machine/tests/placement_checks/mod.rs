//! Checks for virtual machines with several nodes, and helper functions.

mod memory;
mod pages;
mod threads;
mod wrong;
mod forbidden;
mod logged;
mod seccomp;

use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use genuma_machine::IdSet;
use genuma_machine::placement::{MemoryPlacement, MemoryPolicy, PageSize, PlacedSlice, query_slice_residence};

pub use forbidden::{FORBIDDEN, UNASKED, forbid, forbid_asking};
pub use pages::POOL;
pub use wrong::{CPUSET, ODD, enter_cpuset};

/// A check: its name, and what panics when it does not hold.
pub type Check = (&'static str, fn());

/// What must hold on any machine of several nodes.
pub const EVERYWHERE: &[Check] = &[
    ("local", memory::local),
    ("bind to each node", memory::bind_to_each),
    ("bind to two nodes", memory::bind_to_two),
    ("interleave over all nodes", memory::interleave_over_all),
    ("interleave over two nodes", memory::interleave_over_two),
    ("weighted", memory::weighted),
    ("weighted as the kernel's", memory::weighted_as_the_kernels),
    ("kernel-weighted", memory::kernel_weighted),
    ("preferred", memory::preferred),
    ("odd lengths", memory::odd_lengths),
    ("the thread's own policy is kept", memory::policy_is_kept),
    ("filled by several threads", memory::filled_by_several),
    ("huge bind", pages::huge_bind),
    ("huge interleave", pages::huge_interleave),
    ("huge weighted", pages::huge_weighted),
    ("huge kernel-weighted", pages::huge_kernel_weighted),
    ("too little for huge pages", pages::too_little_for_huge),
    ("pin to each CPU", threads::pin_to_each),
    ("pin to each node", threads::pin_to_node),
    ("replicated slices", threads::replicated_slices),
    ("replicated anything", threads::replicated_anything),
    ("scoped interleave of foreign memory", threads::scoped_interleave),
    ("scoped bind of foreign memory", threads::scoped_bind),
    ("scoped weights", threads::scoped_weights),
    ("scoped policies are nested and restored", threads::scoped_nested),
    ("threads inherit a scoped policy", threads::scoped_inherited),
    ("nodes that are not there", wrong::not_there),
    ("weights that are none", wrong::weights),
    ("CPUs that are not there", wrong::no_such_cpu),
    ("more than a node has", wrong::too_large),
    ("all that a node has", wrong::all_of_a_node),
];

/// Whether this runs in a guest; says so where it does not.
pub fn in_a_guest() -> bool {
    let inside = std::env::var_os("GENUMA_GUEST").is_some();
    if !inside {
        let _ = writeln!(std::io::stderr(), "skipped: this runs in the guests that the other tests start");
    }
    inside
}

/// Runs the checks and prints a line for each.
pub fn run(checks: &[Check]) {
    println!();
    for (name, check) in checks {
        match catch_unwind(AssertUnwindSafe(check)) {
            Ok(()) => println!("ok {name}"),
            Err(why) => {
                let text = why.downcast_ref::<String>().cloned();
                let text = text.or_else(|| why.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                println!("FAILED {name} {}", text.unwrap_or_default().replace('\n', " | "));
            }
        }
    }
}

/// Runs another of this program's tests in a process of its own, with its output ours.
pub fn run_as(test: &str) {
    let program = std::env::current_exe().expect("this program");
    let status = Command::new(program).args(["--ignored", "--exact", test, "--nocapture"]).status();
    assert!(status.expect("a process").success(), "{test} failed");
}

/// A list the kernel keeps in a file.
fn list(path: &str) -> IdSet {
    std::fs::read_to_string(path).expect(path).parse().expect(path)
}

/// Nodes with memory.
fn nodes() -> IdSet {
    list("/sys/devices/system/node/has_memory")
}

/// Each node with CPUs, and them.
fn cpus() -> BTreeMap<u32, IdSet> {
    let of = |node| (node, list(&format!("/sys/devices/system/node/node{node}/cpulist")));
    list("/sys/devices/system/node/has_cpu").iter().map(of).collect()
}

/// The second and the last node with memory.
fn two() -> IdSet {
    let nodes = nodes();
    nodes.iter().skip(1).take(1).chain(nodes.iter().last()).collect()
}

/// Allocates `bytes` and checks by move_pages and numa_maps that the pages are as requested. Returns the number of
/// pages on each node.
fn place(policy: &MemoryPolicy, pages: PageSize, bytes: usize) -> (PlacedSlice<u8>, BTreeMap<u32, u64>) {
    let asked = MemoryPlacement { policy: policy.clone(), page_size: pages };
    let placed: PlacedSlice<u8> = PlacedSlice::new_zeroed(bytes, &asked).expect("memory");
    let verdict = placed.verify_placement().expect("an answer");
    assert!(verdict.is_as_requested && verdict.misplaced_pages == 0, "{verdict}");
    assert!(verdict.to_string().ends_with(": as asked"), "{verdict}");
    assert!(placed.iter().step_by(512).all(|&byte| byte == 0));
    let found = placed.query_residence().expect("an answer");
    assert_eq!(found.num_resident_pages(), (bytes as u64).div_ceil(found.page_bytes), "{found}");
    let (_, mapped, page) = numa_maps(placed.as_ptr());
    assert_eq!((&mapped, page), (&found.pages_by_node, found.page_bytes), "numa_maps and move_pages");
    if found.page_bytes == 4096 {
        assert_eq!(query_slice_residence(&placed).expect("an answer"), found);
    }
    (placed, found.pages_by_node)
}

/// Entry of /proc/self/numa_maps for the mapping at `address`: its policy, the pages on each node, the bytes of a page.
fn numa_maps<T>(address: *const T) -> (String, BTreeMap<u32, u64>, u64) {
    let maps = std::fs::read_to_string("/proc/self/numa_maps").expect("numa_maps");
    let head = format!("{:x} ", address as usize);
    let line = maps.lines().find_map(|line| line.strip_prefix(&head)).expect("a mapping of its own");
    let mut nodes = BTreeMap::new();
    let mut page = 0;
    for word in line.split_whitespace() {
        if let Some((name, number)) = word.split_once('=') {
            if name == "kernelpagesize_kB" {
                page = number.parse::<u64>().expect("kB") * 1024;
            } else if let Some(Ok(node)) = name.strip_prefix('N').map(str::parse::<u32>) {
                nodes.insert(node, number.parse().expect("pages"));
            }
        }
    }
    (line.split_whitespace().next().unwrap_or_default().to_owned(), nodes, page)
}
