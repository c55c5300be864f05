//! Measures tables for `bench/flash.sh`.
//!
//! usage: flash build TABLE ENTRIES
//!        flash get TABLE ACCESS THREADS DEPTH SECONDS
//!        flash absent TABLE KEYS
//!        flash memory TABLE ENTRIES KEYS
//!        flash counts TABLE FOLDER ROUNDS
//!
//! `build` writes entries of 128 bytes; `get` looks random ones up and prints lookups a second and CPU µs a lookup; `absent` prints which share of
//! absent keys reads flash; `counts` rewrites a table of counts with fixed layout and with compact pages, and prints the bytes of each part and
//! CPU ns a key of writing, of reading all entries, and of lookups in memory; `memory` makes a set of keys without values, brings it into memory and prints CPU ns an absent and a present key.
//! Keys are spread evenly with a random offset each, so key number i is known without a list.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use genuma_flash::{
    EntryBatch, LookupResults, PageEncoding, PageReadMethod, Table, TableOpenOptions, TablePageReader, TableSpec,
    TableWriter,
};

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
        "io_uring" => PageReadMethod::IoUring,
        "libaio" => PageReadMethod::LinuxAio,
        "pread" => PageReadMethod::Pread,
        other => bail!("no access '{other}': io_uring, libaio or pread"),
    };
    let table =
        Table::open(path, &TableOpenOptions { access, load_hot_entries: false, ..TableOpenOptions::default() })?;
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
        Ok((calls * BATCH as u64, reader.lookup_statistics().pages_read))
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
    let table = Table::open(path, &TableOpenOptions::default())?;
    let mut reader = table.new_reader(128)?;
    let keys: Vec<u64> = (0..count).map(|i| key(mix(i) % table.len(), table.len()) | 1).collect();
    let mut results = LookupResults::new();
    for keys in keys.chunks(BATCH) {
        reader.get_many(keys, &mut results)?;
        ensure!(results.iter().all(|answer| answer.is_none()), "an absent key was found");
    }
    println!(
        "{:.3} % of {count} absent keys read a page",
        reader.lookup_statistics().pages_read as f64 * 100.0 / count as f64
    );
    Ok(())
}

fn memory(path: &str, entries: u64, count: u64) -> Result<()> {
    let mut writer = TableWriter::create(path, TableSpec::new(0, entries))?;
    for number in 0..entries {
        writer.push_entry(key(number, entries), &[], 0)?;
    }
    writer.finish_and_publish()?;
    let table = Table::open(path, &TableOpenOptions { access: PageReadMethod::Memory, ..TableOpenOptions::default() })?;
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

/// Looks up random keys on flash, with 128 reads in flight. Describes the rate, the CPU time and the page reads.
fn measure_flash_lookups(path: &str, entry: impl Fn(u64) -> u64) -> Result<String> {
    let table = Table::open(path, &TableOpenOptions::default())?;
    let (mut reader, mut results) = (table.new_reader(128)?, LookupResults::new());
    let (before, begin, mut calls) = (cpu()?, Instant::now(), 0);
    let mut made = Duration::ZERO;
    while begin.elapsed().as_secs_f64() < 3.0 {
        let start = cpu()?;
        let keys: Vec<u64> = (0..BATCH as u64).map(|i| entry(mix(calls << 32) ^ i)).collect();
        made += cpu()? - start;
        reader.get_many(&keys, &mut results)?;
        ensure!(results.iter().all(|answer| answer.is_some()), "a key was not found");
        calls += 1;
    }
    let lookups = (calls * BATCH as u64) as f64;
    Ok(format!(
        "from flash {:.0} a second, {:.2} CPU us, {:.4} pages each",
        lookups / begin.elapsed().as_secs_f64(),
        (cpu()? - before - made).as_secs_f64() * 1e6 / lookups,
        reader.lookup_statistics().pages_read as f64 / lookups
    ))
}

/// Writes entries as a table, reads all, and looks some up. Prints what each takes.
fn measure_counts(path: &str, spec: TableSpec, entries: &EntryBatch<u32>) -> Result<()> {
    let (name, n) = (spec.encoding, entries.keys.len() as f64);
    let ns = |spent: Duration, keys: f64| spent.as_secs_f64() * 1e9 / keys;
    let before = cpu()?;
    let mut writer = TableWriter::create(path, spec)?;
    writer.push_entries(&entries.keys, bytemuck::cast_slice(&entries.values), |_| 0)?;
    let written = writer.finish_and_publish()?;
    let write_ns = ns(cpu()? - before, n);
    let (scan, mut batch) = (TablePageReader::open(path)?, EntryBatch::<u32>::default());
    let (before, mut walk) = (cpu()?, scan.new_entry_batch_reader(256)?);
    let mut sum = 0_u64;
    loop {
        walk.read_next_batch(&mut batch)?;
        let Some(last) = batch.keys.last() else { break };
        sum = sum.wrapping_add(*last);
    }
    let scan_ns = ns(cpu()? - before, n);
    let table = Table::open(path, &TableOpenOptions { access: PageReadMethod::Memory, ..TableOpenOptions::default() })?;
    let mut reader = table.new_reader(1)?;
    let (mut results, mut lookup_ns) = (LookupResults::new(), [0.0; 2]);
    for (absent, lookup_ns) in lookup_ns.iter_mut().enumerate() {
        let entry = |i: u64| entries.keys[(mix(i) % entries.keys.len() as u64) as usize];
        let keys: Vec<u64> = (0..1 << 20).map(|i| entry(i) ^ absent as u64).collect();
        let before = cpu()?;
        (0..2).try_for_each(|_| reader.get_many(&keys, &mut results))?;
        *lookup_ns = ns(cpu()? - before, 2.0 * keys.len() as f64);
    }
    let entry = |i: u64| entries.keys[(mix(i) % entries.keys.len() as u64) as usize];
    let from_flash = measure_flash_lookups(path, entry)?;
    let (pages, bytes) = (written.pages * 4096, written.file_bytes);
    let memory = table.memory_bytes_by_part();
    println!(
        "{name:?}: {:.3} bytes a key: pages {:.3}, filter {:.3}, index {:.3}; write {write_ns:.1} ns, scan {scan_ns:.1} ns, \
         present {:.0} ns, absent or beside {:.0} ns; {from_flash}; check {sum:x}",
        bytes as f64 / n,
        pages as f64 / n,
        memory.filter as f64 / n,
        memory.index as f64 / n,
        lookup_ns[0],
        lookup_ns[1]
    );
    Ok(())
}

fn counts(path: &str, folder: &str, rounds: usize) -> Result<()> {
    let scan = TablePageReader::open(path)?;
    let counts = scan.value_bytes() / 4;
    let mut entries = EntryBatch::<u32>::default();
    let (mut batch, mut walk) = (EntryBatch::default(), scan.new_entry_batch_reader(256)?);
    loop {
        walk.read_next_batch(&mut batch)?;
        if batch.keys.is_empty() {
            break;
        }
        entries.keys.append(&mut batch.keys);
        entries.values.append(&mut batch.values);
    }
    for _ in 0..rounds {
        for encoding in [PageEncoding::Fixed, PageEncoding::Compact] {
            let spec = TableSpec { encoding, ..TableSpec::new_for_counts(counts, entries.keys.len() as u64) };
            measure_counts(&format!("{folder}/measured"), spec, &entries)?;
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
        ["counts", path, folder, rounds] => counts(path, folder, rounds.parse()?),
        ["memory", path, entries, keys] => memory(path, entries.parse()?, keys.parse()?),
        _ => bail!("usage: flash build|get|absent|memory|counts ...: see the head of the file"),
    }
}
