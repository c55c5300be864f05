//! `genuma run --pages`: unmodified programs with transparent huge pages or with base pages, as the kernel reports.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::common::{genuma, installed, json, scratch, skipped, text};

/// Anonymous memory that the program allocates and writes, bytes.
const ALLOCATED_BYTES: u64 = 64 << 20;
/// The program: it allocates memory with malloc, writes it, prints its `smaps`, and keeps the memory for a second.
const PROGRAM: &str = "$x = 'a' x (64 << 20); open F, '/proc/self/smaps'; print while <F>; sleep 1";

/// Mode of transparent huge pages, such as `madvise`; `None` if the kernel has none.
fn transparent_huge_page_mode() -> Option<String> {
    let modes = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok()?;
    let mode = modes.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))?.to_owned();
    (mode != "never").then_some(mode)
}

/// Whether malloc of the C library can request huge pages: glibc 2.35 or later.
fn has_malloc_huge_pages() -> bool {
    let Ok(output) = Command::new("getconf").arg("GNU_LIBC_VERSION").output() else { return false };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = said.trim().strip_prefix("glibc 2.").and_then(|minor| minor.parse::<u32>().ok());
    version.is_some_and(|minor| minor >= 35)
}

/// Runs the program with `--pages`. Returns its memory in huge pages (bytes), as its `smaps` has it, the JSON of the run,
/// and the log.
fn run_with_pages(folder: &std::path::Path, pages: &str, tunables: &str) -> (u64, Value, String) {
    let path = folder.join("run.json");
    let output = genuma()
        .args(["run", "--pages", pages, "--json", text(&path), "--", "perl", "-e", PROGRAM])
        .env("GLIBC_TUNABLES", tunables)
        .output()
        .expect("genuma starts");
    let log = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.status.success(), "{log}");
    let smaps = String::from_utf8(output.stdout).expect("UTF-8");
    let kib = |line: &str| line.strip_prefix("AnonHugePages:")?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok();
    let lines: Vec<u64> = smaps.lines().filter_map(kib).collect();
    assert!(!lines.is_empty(), "smaps has no AnonHugePages: {smaps}");
    (lines.iter().sum::<u64>() * 1024, json(&path), log)
}

#[test]
fn a_program_gets_the_pages_that_are_requested() {
    if installed("perl").is_none() {
        return;
    }
    let Some(mode) = transparent_huge_page_mode() else {
        return skipped("this kernel has no transparent huge pages");
    };
    if !has_malloc_huge_pages() {
        return skipped("the C library is not glibc 2.35 or later");
    }
    let folder = scratch("pages");
    let sampled = |told: &Value, key: &str| told["run"]["instances"][0]["huge_pages"][key].as_u64();

    let (huge, told, log) = run_with_pages(&folder, "huge", "glibc.malloc.arena_max=1");
    assert!(huge >= ALLOCATED_BYTES / 2, "{huge} bytes in huge pages");
    assert!(sampled(&told, "huge_bytes") >= Some(ALLOCATED_BYTES / 2), "{told}");
    assert!(sampled(&told, "anonymous_bytes") >= Some(ALLOCATED_BYTES), "{told}");
    assert_eq!(told["run"]["instances"][0]["requested_pages"], "huge");
    assert!(log.contains("% of its memory in huge pages") && !log.contains("huge pages were requested"), "{log}");

    // Base pages, although the environment asks malloc to request huge ones.
    let (huge, told, log) = run_with_pages(&folder, "base", "glibc.malloc.hugetlb=1");
    assert_eq!(huge, 0);
    assert_eq!(
        (sampled(&told, "huge_bytes"), told["run"]["instances"][0]["requested_pages"].as_str()),
        (Some(0), Some("base"))
    );
    assert!(log.contains(", 0% of its memory in huge pages"), "{log}");

    // By default the environment decides, and nothing is sampled.
    let (huge, told, _) = run_with_pages(&folder, "default", "glibc.malloc.hugetlb=1");
    assert!(huge >= ALLOCATED_BYTES / 2, "{huge} bytes in huge pages");
    assert_eq!(told["run"]["instances"][0]["huge_pages"], Value::Null);
    if mode == "madvise" {
        assert_eq!(run_with_pages(&folder, "default", "").0, 0, "nobody requests huge pages");
    }
}

#[test]
fn instances_of_an_aligner_get_huge_pages() {
    if installed("perl").is_none() {
        return;
    }
    if transparent_huge_page_mode().is_none() || !has_malloc_huge_pages() {
        return skipped("no transparent huge pages, or a C library without them");
    }
    let folder = scratch("instances");
    let reads = folder.join("reads.fq");
    fs::write(&reads, "@a\nACGT\n+\nFFFF\n".repeat(2)).expect("a file");
    let aligner = "$x = 'a' x (64 << 20); print \"\\@SQ\\tSN:c\\tLN:9\\n\"; sleep 1; \
                   while (<>) { print \"a\\t4\\t*\\t0\\t0\\t*\\t*\\t0\\t0\\tACGT\\tFFFF\\n\" if $. % 4 == 0 }";
    let path = folder.join("run.json");
    let output = genuma()
        .args(["run", "--strategy", "default", "--pages", "huge", "--reads", text(&reads), "--json", text(&path)])
        .args(["--", "perl", "-e", aligner])
        .output()
        .expect("genuma starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let records = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(records.lines().filter(|line| line.starts_with("a\t4")).count(), 2, "{records}");
    let told = json(&path);
    assert!(told["run"]["instances"][0]["huge_pages"]["huge_bytes"].as_u64() >= Some(ALLOCATED_BYTES / 2), "{told}");
}
