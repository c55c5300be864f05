//! Measures a dictionary: `dictionary TABLE.gkt [READS.fa]` makes dictionaries with and without counts, and prints bytes
//! per k-mer, CPU time and the time of lookups, each with the sum of the counts found. READS.fa has a sequence a line.

use std::hint::black_box;
use std::time::Instant;

use anyhow::Context;
use genuma_dictionary::{Dictionary, DictionaryBuilder, DictionarySpec, SequenceKmerLookup};
use genuma_flash::{EntryBatch, TablePageReader};
use genuma_kmers::encode::{self, KmerOnBothStrands, kmer_mask, reverse_complement_kmer};
use genuma_work::cost::measure_process_cost;

/// Lookups of a measurement.
const NUM_LOOKUPS: usize = 2_000_000;
const NUM_ROUNDS: usize = 5;

fn build(scan: &TablePageReader, k: u32, num_samples: usize, kept: usize) -> anyhow::Result<Dictionary> {
    let (num_kmers, memory_bytes) = (scan.len(), 64 << 30);
    let spec = DictionarySpec { k, num_kmers, num_samples: kept, note: Vec::new(), memory_bytes };
    let mut builder = DictionaryBuilder::with_spec(spec)?;
    let mut reader = scan.new_entry_batch_reader(256)?;
    let mut batch = EntryBatch::<u32>::default();
    loop {
        reader.read_next_batch(&mut batch)?;
        if batch.keys.is_empty() {
            return Ok(builder.build()?);
        }
        for (&key, counts) in batch.keys.iter().zip(batch.values.chunks_exact(num_samples)) {
            builder.push_kmer(key, &counts[..kept])?;
        }
    }
}

/// Numbers that look random.
fn random_numbers(mut state: u64) -> impl Iterator<Item = u64> {
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    })
}

fn both_strands(forward: u64, k: u32) -> KmerOnBothStrands {
    KmerOnBothStrands { forward, reverse: reverse_complement_kmer(forward, k) }
}

/// Prints the median and the least CPU time per lookup (ns).
fn measure(name: &str, num_lookups: usize, mut look_up: impl FnMut() -> u64) {
    let mut times: Vec<f64> = Vec::new();
    let mut sum = 0;
    for _ in 0..NUM_ROUNDS {
        let start = measure_process_cost().cpu_s;
        sum = black_box(look_up());
        times.push((measure_process_cost().cpu_s - start) * 1e9 / num_lookups as f64);
    }
    times.sort_by(f64::total_cmp);
    println!("{name}\t{:.1}\tmin {:.1}\tsum {sum}", times[NUM_ROUNDS / 2], times[0]);
}

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let table = args.next().context("give a table")?;
    let scan = TablePageReader::open(&table)?;
    let note = String::from_utf8_lossy(scan.note()).into_owned();
    let k: u32 = note.split("\"k\":").nth(1).and_then(|rest| rest.split(',').next()?.parse().ok()).context("no k")?;
    let num_samples = scan.value_bytes() / 4;
    let per_kmer = |bytes: u64| bytes as f64 / scan.len() as f64;
    println!("kmers\t{}\ntable_bytes\t{:.3}", scan.len(), per_kmer(scan.file_bytes()));
    for kept in [0, num_samples] {
        let (start, cpu) = (Instant::now(), measure_process_cost().cpu_s);
        let dictionary = build(&scan, k, num_samples, kept)?;
        let bytes = dictionary.part_sizes();
        let (cpu_s, wall_s) = (measure_process_cost().cpu_s - cpu, start.elapsed().as_secs_f64());
        println!("samples {kept}\tstrings {}\tcpu_s {cpu_s:.2}\twall_s {wall_s:.2}", dictionary.num_strings());
        let [strings, index, counts] = [bytes.strings, bytes.index, bytes.counts].map(per_kmer);
        println!(
            "bytes\tstrings {strings:.3}\tindex {index:.3}\tcounts {counts:.3}\tall {:.3}",
            strings + index + counts
        );
        if kept > 0 {
            println!("peak_bytes\t{}", measure_process_cost().peak_bytes);
            measure_lookups(&dictionary, &scan, args.next().as_deref())?;
        }
    }
    Ok(())
}

fn measure_lookups(dictionary: &Dictionary, scan: &TablePageReader, reads: Option<&str>) -> anyhow::Result<()> {
    let k = dictionary.k();
    // Present k-mers: some of all pages, in random order, on random strands.
    let mut keys = Vec::new();
    let mut reader = scan.new_entry_batch_reader(256)?;
    let mut batch = EntryBatch::<u32>::default();
    let one_in = (scan.len() as usize / NUM_LOOKUPS).max(1);
    while reader.read_next_batch(&mut batch).is_ok() && !batch.keys.is_empty() {
        keys.extend(batch.keys.iter().copied().step_by(one_in));
    }
    let mut numbers = random_numbers(1);
    for last in (1..keys.len()).rev() {
        keys.swap(last, numbers.next().unwrap_or(0) as usize % (last + 1));
    }
    keys.truncate(NUM_LOOKUPS);
    let present: Vec<KmerOnBothStrands> = keys.iter().map(|&key| both_strands(key, k)).collect();
    let absent: Vec<KmerOnBothStrands> =
        numbers.map(|number| both_strands(number & kmer_mask(k), k)).take(NUM_LOOKUPS).collect();
    let near: Vec<KmerOnBothStrands> = keys.iter().map(|&key| both_strands(key ^ 1 << k, k)).collect();
    for (name, kmers) in [("present", &present), ("absent", &absent), ("one base changed", &near)] {
        measure(&format!("{name}, ns"), kmers.len(), || {
            kmers.iter().filter(|&&kmer| dictionary.find_kmer_number(kmer).is_some()).count() as u64
        });
    }
    measure("present with count, ns", present.len(), || {
        let found = present.iter().filter_map(|&kmer| dictionary.find_kmer_number(kmer));
        found.map(|number| u64::from(dictionary.get_count(number, 0))).sum()
    });
    let Some(reads) = reads else { return Ok(()) };
    let text = std::fs::read_to_string(reads)?;
    let sequences: Vec<&[u8]> = text.lines().filter(|line| !line.starts_with('>')).map(str::as_bytes).collect();
    let num_kmers = sequences.iter().map(|sequence| encode::kmers(sequence, k).count()).sum();
    let mut num_by_index = 0;
    measure("stream with count, ns", num_kmers, || {
        let mut stream = SequenceKmerLookup::for_dictionary(dictionary);
        let mut sum = 0;
        for sequence in &sequences {
            stream.start_query_sequence();
            for (start, kmer) in encode::kmers(sequence, k) {
                let found = stream.find_kmer_number(start, kmer);
                sum += found.map_or(0, |number| u64::from(dictionary.get_count(number, 0)));
            }
        }
        num_by_index = stream.num_index_lookups();
        sum
    });
    println!("stream_kmers\t{num_kmers}\tby index {num_by_index}");
    Ok(())
}
