//! The lines name the CPUs and nodes of described and recorded machines, and numactl accepts them.

use std::process::Command;

use genuma_machine::topology::{RecordedMachine, SyntheticMachine, Sysfs, TopologySource};

use super::*;
use crate::cpu_layout::assign_cpu_slots;

/// Recordings with several memory nodes, among them nodes without CPUs or memory, and CPUs that may not be used.
const RECORDED_MACHINES: [&str; 9] = [
    "2-nodes",
    "4-nodes",
    "8-nodes",
    "cpuset",
    "memory-only-node",
    "node-without-memory",
    "offline-cpus",
    "smt",
    "sparse-nodes",
];
const STRATEGIES: [&str; 9] =
    ["default", "local", "interleave", "weighted", "bind", "2xlocal", "2xinterleave", "2xbind", "2xdefault"];

fn described(text: &str) -> Topology {
    text.parse::<SyntheticMachine>().and_then(|machine| machine.topology()).expect("a machine")
}

fn recorded(name: &str) -> Topology {
    let path = format!("{}/../hardware/machine/tests/machines/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    RecordedMachine::open(path.as_ref()).and_then(|machine| machine.topology()).expect("a recording")
}

fn launch(strategy: &str, topology: &Topology, threads: usize) -> LaunchCommands {
    let cpu_slots = assign_cpu_slots(&strategy.parse().expect("a strategy"), topology, threads).expect("CPU slots");
    let commands: Vec<String> = (1..=cpu_slots.len()).map(|part| format!("mapper part{part}.fq")).collect();
    LaunchCommands::for_cpu_slots(&cpu_slots, &commands, topology)
}

/// Value of the option `name` of a command line.
fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn list(text: &str) -> IdSet {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Decodes a hexadecimal mask.
fn mask(text: &str) -> IdSet {
    let digits = text.strip_prefix("0x").expect("0x").chars().rev();
    let bits = |(n, digit): (usize, char)| {
        let digit = digit.to_digit(16).expect("a digit");
        (0..4).filter(move |bit| digit >> bit & 1 == 1).map(move |bit| 4 * n as u32 + bit)
    };
    digits.enumerate().flat_map(bits).collect()
}

#[test]
fn each_policy_has_its_options() {
    let machine = described("4 nodes x 4 cores, 2 threads, 8 GiB");
    for (strategy, numactl, srun, systemd) in [
        ("default", "", "mapper", "-p AllowedMemoryNodes=0-3 -- mapper"),
        ("local", " --localalloc", "numactl --localalloc -- mapper", "=0-3 -- numactl --localalloc -- mapper"),
        (
            "interleave",
            " --interleave=0-3",
            "numactl --interleave=0-3 -- mapper",
            "=0-3 -- numactl --interleave=0-3 -- mapper",
        ),
        (
            "weighted",
            " --weighted-interleave=0-3",
            "numactl --weighted-interleave=0-3 -- mapper",
            "=0-3 -- numactl --weighted-interleave=0-3 -- mapper",
        ),
        ("bind", " --membind=0-3", "--mem-bind=mask_mem:0xf mapper", "-p AllowedMemoryNodes=0-3 -- mapper"),
    ] {
        let [line] = &launch(strategy, &machine, 32).instances[..] else { panic!("one instance") };
        assert_eq!(line.numactl, format!("numactl --physcpubind=0-31{numactl} -- mapper part1.fq"));
        let start = "srun --nodes=1 --ntasks=1 --overlap --cpus-per-task=32 --cpu-bind=mask_cpu:0xffffffff ";
        assert_eq!(line.srun, format!("{start}{srun} part1.fq"));
        assert!(line.systemd_run.starts_with("systemd-run --scope -p AllowedCPUs=0-31 -p AllowedMemoryNodes="));
        assert!(line.systemd_run.ends_with(&format!("{systemd} part1.fq")), "{}", line.systemd_run);
    }
}

#[test]
fn several_instances_have_a_line_each() {
    let told = launch("2xbind", &described("4 nodes x 4 cores, 2 threads, 8 GiB"), 20);
    assert_eq!(
        told.sbatch_options, "--nodes=1 --exclusive --mem=0 --ntasks=2 --cpus-per-task=16 --hint=multithread",
        "20 threads on 16 cores"
    );
    let lines: Vec<&str> = told.instances.iter().map(|one| one.numactl.as_str()).collect();
    assert_eq!(
        lines,
        [
            "numactl --physcpubind=0-7,16-23 --membind=0-1 -- mapper part1.fq",
            "numactl --physcpubind=8-15,24-31 --membind=2-3 -- mapper part2.fq",
        ]
    );
    let second = &told.instances[1];
    assert!(second.srun.contains(" --cpu-bind=mask_cpu:0xff00ff00 --mem-bind=mask_mem:0xc mapper"), "{}", second.srun);
    assert!(second.systemd_run.contains("-p AllowedMemoryNodes=2-3 -- mapper"), "{}", second.systemd_run);
    assert_eq!((second.threads, second.policy.as_deref()), (10, Some("bind 2-3")));
    // Local memory may overflow to the nodes of the other instance.
    let local = launch("2xlocal", &described("4 nodes x 4 cores, 8 GiB"), 16);
    assert!(local.instances[1].systemd_run.contains("-p AllowedCPUs=8-15 -p AllowedMemoryNodes=0-3 -- numactl"));
    assert!(local.sbatch_options.ends_with(" --hint=nomultithread"), "a thread for each core");
}

#[test]
fn lines_name_what_a_machine_has_and_allows() {
    let described = ["8 nodes x 8 cores, 2 threads, 16 GiB", "2 nodes x 4 cores, 32 GiB, 2 memory-only nodes"];
    let machines = described.map(self::described).into_iter().chain(RECORDED_MACHINES.map(recorded));
    let mut checked = 0;
    for machine in machines {
        let threads = machine.allowed.cpus.len();
        for strategy in STRATEGIES {
            let lines = launch(strategy, &machine, threads).instances;
            let all: IdSet = lines.iter().flat_map(|one| one.cpus.iter()).collect();
            assert_eq!(all, machine.allowed.cpus, "{strategy} on {}", machine.origin);
            for one in &lines {
                let at = format!("{strategy} on {}: {one:?}", machine.origin);
                for cpus in [value(&one.numactl, "--physcpubind"), value(&one.systemd_run, "AllowedCPUs")] {
                    assert_eq!(list(cpus.expect("CPUs")), one.cpus, "{at}");
                }
                let cpus = value(&one.srun, "--cpu-bind").and_then(|bind| bind.strip_prefix("mask_cpu:"));
                assert_eq!(mask(cpus.expect("CPUs")), one.cpus, "{at}");
                let limit = list(value(&one.systemd_run, "AllowedMemoryNodes").expect("nodes"));
                assert!(!limit.is_empty() && limit.is_subset(&machine.allowed_memory_nodes()), "{at}");
                assert!(one.nodes.is_subset(&limit), "{at}");
                let options = ["--membind", "--interleave", "--weighted-interleave"];
                let named = options.iter().find_map(|option| value(&one.numactl, option));
                let has_policy = one.policy.as_ref().is_some_and(|policy| policy != "local");
                assert_eq!(named.map(list), has_policy.then(|| one.nodes.clone()), "{at}");
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 11 * (5 + 4 * 2), "11 machines, 5 strategies of one instance and 4 of two");
}

#[test]
fn masks_are_hexadecimal() {
    for (ids, text) in [("0", "0x1"), ("3", "0x8"), ("4", "0x10"), ("0-7,16", "0x100ff"), ("64", "0x10000000000000000")]
    {
        assert_eq!(hexadecimal_mask(&list(ids)), text);
        assert_eq!(mask(text), list(ids));
    }
}

/// Runs the line on this machine with a harmless command that prints its CPUs and nodes.
#[test]
fn numactl_accepts_the_lines() {
    let skip = |why: &str| eprintln!("skipped: numactl_accepts_the_lines: {why}");
    let shell = |line: &str| Command::new("sh").args(["-c", line]).output().expect("a shell");
    if !shell("command -v numactl").status.success() {
        return skip("numactl is not installed");
    }
    if !shell("numactl --show").status.success() {
        return skip("the kernel forbids or lacks memory policies");
    }
    let here = Sysfs::new().topology().expect("this machine");
    let nodes = here.allowed_memory_nodes();
    let command = "grep -E '^(Cpus|Mems)_allowed_list:' /proc/self/status; numactl --show";
    for strategy in ["default", "local", "interleave", "bind"] {
        let mut cpu_slots =
            assign_cpu_slots(&strategy.parse().expect("a strategy"), &here, here.allowed.cpus.len()).expect("slots");
        // One CPU only, so that the line has an effect, and a policy also on a machine with one node.
        cpu_slots[0].cpus = here.allowed.cpus.iter().take(1).collect();
        cpu_slots[0].policy = match strategy {
            "local" => Some(MemoryPolicy::Local),
            "interleave" => Some(MemoryPolicy::Interleave(nodes.clone())),
            "bind" => Some(MemoryPolicy::Bind(nodes.clone())),
            _ => None,
        };
        let told = LaunchCommands::for_cpu_slots(&cpu_slots, &[format!("sh -c {command:?}")], &here);
        let output = shell(&told.instances[0].numactl);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}: {}", told.instances[0].numactl, String::from_utf8_lossy(&output.stderr));
        let field = |name: &str| {
            let line =
                said.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}: {said}"));
            line.trim().to_owned()
        };
        assert_eq!(list(&field("Cpus_allowed_list:")), cpu_slots[0].cpus, "{strategy}");
        let policy = if strategy == "local" { "preferred" } else { strategy };
        let accepted = [policy, strategy];
        assert!(accepted.contains(&field("policy:").as_str()), "{strategy}: {said}");
        let named = match strategy {
            "interleave" => field("interleavemask:"),
            _ => field("membind:"),
        };
        assert_eq!(list(&named.replace(' ', ",")), nodes, "{strategy}: {said}");
    }
}
