//! Measures tables for `bench/flash.sh`.
//!
//! usage: flash build TABLE ENTRIES
//!        flash get TABLE ACCESS THREADS DEPTH SECONDS
//!        flash absent TABLE KEYS
//!        flash memory TABLE ENTRIES KEYS
//!
//! `build` writes entries of 128 bytes; `get` looks random ones up and prints lookups a second and CPU µs a lookup; `absent` prints which share of
//! absent keys reads flash; `memory` makes a set of keys without values, brings it into memory and prints CPU ns an absent and a present key.
//! Keys are spread evenly with a random offset each, so key number i is known without a list.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use genuma_flash::{LookupResults, PageAccess, Table, TableOptions, TableSpec, TableWriter};

const VALUE: usize = 128;
/// Keys of one call.
const BATCH: usize = 1 << 16;

/// The finaliser of SplitMix64.
fn mix(number: u64) -> u64 {
    let mut x = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Key `number` of `entries`. Present ones are even, so that odd ones are absent.
fn key(number: u64, entries: u64) -> u64 {
    let step = u64::MAX / entries;
    (number * step + mix(number) % (step - 1)) & !1
}

fn value(number: u64) -> [u8; VALUE] {
    std::array::from_fn(|byte| (mix(number) >> (byte % 8)) as u8)
}

/// User and system time of this process.
fn cpu() -> Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit_once(')').context("/proc/self/stat has a name")?.1;
    let ticks = after_name.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
    let ticks: u64 = ticks.sum::<Result<u64, _>>()?;
    // USER_HZ is 100 wherever Linux runs.
    Ok(Duration::from_millis(10 * ticks))
}

fn build(path: &str, entries: u64) -> Result<()> {
    let begin = Instant::now();
    let mut writer = TableWriter::create(path, TableSpec::new(VALUE, entries))?;
    for number in 0..entries {
        writer.push_entry(key(number, entries), &value(number), 0)?;
    }
    let written = writer.finish_and_publish()?;
    let seconds = begin.elapsed().as_secs_f64();
    let gb = written.file_bytes as f64 / 1e9;
    println!("{} pages, {gb:.2} GB, {:.2} GB/s, {:.1} CPU s", written.pages, gb / seconds, cpu()?.as_secs_f64());
    Ok(())
}

fn get(path: &str, access: &str, threads: u64, depth: usize, seconds: f64) -> Result<()> {
    let access = match access {
        "io_uring" => PageAccess::IoUring,
        "libaio" => PageAccess::LinuxAio,
        "pread" => PageAccess::Pread,
        other => bail!("no access '{other}': io_uring, libaio or pread"),
    };
    let table = Table::open(path, &TableOptions { access, load_hot_entries: false, ..TableOptions::default() })?;
    let entries = table.len();
    let look_up = |thread: u64| -> Result<(u64, u64)> {
        let mut reader = table.new_reader(depth)?;
        let (mut keys, mut results, mut calls) = (Vec::new(), LookupResults::new(), 0);
        let begin = Instant::now();
        // The first number of each call distinguishes calls and threads.
        let start = mix(begin.elapsed().as_nanos() as u64 + (thread << 40));
        while begin.elapsed().as_secs_f64() < seconds {
            let numbers: Vec<u64> = (0..BATCH as u64).map(|i| mix(start + (calls << 24) + i) % entries).collect();
            keys.clear();
            keys.extend(numbers.iter().map(|&number| key(number, entries)));
            reader.get_many(&keys, &mut results)?;
            for (&number, answer) in numbers.iter().zip(results.iter()).step_by(64) {
                ensure!(answer == Some(&value(number)[..]), "entry {number} is wrong");
            }
            calls += 1;
        }
        Ok((calls * BATCH as u64, reader.lookup_counts().pages_read))
    };
    let (before, begin) = (cpu()?, Instant::now());
    let done: Vec<_> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..threads).map(|thread| scope.spawn(move || look_up(thread))).collect();
        started.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Result<_>>()
    })?;
    let (took, spent) = (begin.elapsed(), cpu()? - before);
    let (lookups, pages) = done.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    println!(
        "{:.0} {:.2} {:.4}",
        lookups as f64 / took.as_secs_f64(),
        spent.as_secs_f64() * 1e6 / lookups as f64,
        pages as f64 / lookups as f64
    );
    Ok(())
}

fn absent(path: &str, count: u64) -> Result<()> {
    let table = Table::open(path, &TableOptions::default())?;
    let mut reader = table.new_reader(128)?;
    let keys: Vec<u64> = (0..count).map(|i| key(mix(i) % table.len(), table.len()) | 1).collect();
    let mut results = LookupResults::new();
    for keys in keys.chunks(BATCH) {
        reader.get_many(keys, &mut results)?;
        ensure!(results.iter().all(|answer| answer.is_none()), "an absent key was found");
    }
    println!(
        "{:.3} % of {count} absent keys read a page",
        reader.lookup_counts().pages_read as f64 * 100.0 / count as f64
    );
    Ok(())
}

fn memory(path: &str, entries: u64, count: u64) -> Result<()> {
    let mut writer = TableWriter::create(path, TableSpec::new(0, entries))?;
    for number in 0..entries {
        writer.push_entry(key(number, entries), &[], 0)?;
    }
    writer.finish_and_publish()?;
    let table = Table::open(path, &TableOptions { access: PageAccess::Memory, ..TableOptions::default() })?;
    println!("{:?}", table.memory_bytes_by_part());
    let mut reader = table.new_reader(1)?;
    let mut results = LookupResults::new();
    for (name, odd) in [("absent", 1), ("present", 0)] {
        for _ in 0..3 {
            let mut spent = Duration::ZERO;
            for first in (0..count).step_by(1 << 20) {
                let keys: Vec<u64> = (first..first + (1 << 20)).map(|i| key(mix(i) % entries, entries) | odd).collect();
                let before = Instant::now();
                reader.get_many(&keys, &mut results)?;
                spent += before.elapsed();
                ensure!(results.iter().all(|answer| answer.is_some() == (odd == 0)), "an answer is wrong");
            }
            println!("{name} {:.1} ns", spent.as_nanos() as f64 / count.next_multiple_of(1 << 20) as f64);
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["build", path, entries] => build(path, entries.parse()?),
        ["get", path, access, threads, depth, seconds] => {
            get(path, access, threads.parse()?, depth.parse()?, seconds.parse()?)
        }
        ["absent", path, keys] => absent(path, keys.parse()?),
        ["memory", path, entries, keys] => memory(path, entries.parse()?, keys.parse()?),
        _ => bail!("usage: flash build|get|absent|memory ...: see the head of the file"),
    }
}
