//! Sorts a BAM whose records are grouped by template, as aligners write them, and reports the time of each step:
//! `cargo run --release --example sort -- in.bam out.bam [--threads N] [--memory BYTES] [--level 1-9] [--work FOLDER]
//! [--mark] [--libraries] [--whole-templates] [--cram REFERENCE [--cram-3.1]]`. With `-` for `out.bam` the BAM goes to standard
//! output.

use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use genuma_align::bgzf::CompressionLevel;
use genuma_align::sort::markdup::{MarkdupOptions, ReadGroupLibraries};
use genuma_align::sort::{
    BamFileWriter, BlockSorter, CramFileWriter, CramVersion, SortOptions, SortedBlock, SortedFileHeader, Sorter,
};
use genuma_reads::CramReference;
use genuma_work::cost::CostTimer;
use genuma_work::publish::AtomicFileSet;

/// Minimum number of bytes of records that a worker sorts at a time.
const BATCH: usize = 2 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (mut files, mut threads, mut memory, mut level) = (Vec::new(), 2, 1 << 30, CompressionLevel::default());
    let (mut work, mut marking) = (PathBuf::from("."), None::<MarkdupOptions>);
    let (mut libraries, mut genome, mut version) = (false, None, CramVersion::V3_0);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--threads" => threads = value()?.parse()?,
            "--memory" => memory = value()?.parse()?,
            "--level" => level = CompressionLevel::from_level_number(value()?.parse()?).ok_or("the level is 1 to 9")?,
            "--work" => work = value()?.into(),
            "--mark" => marking = Some(marking.unwrap_or_default()),
            "--cram" => genome = Some(CramReference::new(Some(value()?.into()))),
            "--cram-3.1" => version = CramVersion::V3_1,
            "--libraries" => libraries = true,
            "--whole-templates" => {
                marking = Some(MarkdupOptions { mark_whole_template: true, ..marking.unwrap_or_default() })
            }
            _ => files.push(arg),
        }
    }
    let [input, output] = &files[..] else { return Err("an input and an output are needed".into()) };

    let begin = Instant::now();
    let mut bam = Vec::new();
    noodles_bgzf::io::Reader::new(File::open(input)?).read_to_end(&mut bam)?;
    let (text, records) = split(&bam).ok_or("no BAM header")?;
    eprintln!("read     {:6.2} s, {} bytes", begin.elapsed().as_secs_f64(), bam.len());

    if libraries && let Some(marking) = &mut marking {
        marking.libraries = Some(ReadGroupLibraries::parse_libraries_from_sam_header(text));
    }
    let header = SortedFileHeader::from_sam_header(text)?;
    let options = SortOptions { memory_bytes: memory, threads, work_dir: work, markdup: marking.map(Arc::new) };
    let begin = Instant::now();
    let mut sorter = Sorter::new(&options);
    let batches = Mutex::new((0, records));
    let turn = Mutex::new((0, Vec::<Option<SortedBlock>>::new(), &mut sorter));
    std::thread::scope(|scope| {
        let work = || -> Result<(), genuma_align::sort::Error> {
            let mut blocks = BlockSorter::new(options.markdup.clone());
            loop {
                let (number, batch) = {
                    let mut next = batches.lock().expect("no panic");
                    let (batch, rest) = next.1.split_at(whole(next.1));
                    (next.0, next.1) = (next.0 + 1, rest);
                    (next.0 - 1, batch)
                };
                if batch.is_empty() {
                    return Ok(());
                }
                let block = blocks.sort_records(batch)?;
                let (due, waiting, sorter) = &mut *turn.lock().expect("no panic");
                waiting.resize_with(waiting.len().max(number + 1), || None);
                waiting[number] = Some(block);
                while let Some(block) = waiting.get_mut(*due).and_then(Option::take) {
                    sorter.push_block(block)?;
                    *due += 1;
                }
            }
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|w| w.join().expect("no panic"))
    })?;
    eprintln!("blocks   {:6.2} s", begin.elapsed().as_secs_f64());
    let clock = CostTimer::start();
    let summary = match output.as_str() {
        "-" => sorter.write_unindexed_bam(&header, level, std::io::stdout())?,
        path => {
            let mut set = AtomicFileSet::default();
            let path = Path::new(path);
            let summary = match &genome {
                Some(genome) => {
                    let file = CramFileWriter::create(path, header, genome)?.with_version(version);
                    sorter.write_cram(file, &mut set)?
                }
                None => sorter.write_bam(BamFileWriter::create(path, header, level)?, &mut set)?,
            };
            set.publish_all()?;
            summary
        }
    };
    let cost = clock.stop("finish");
    eprintln!("finish   {:6.2} s, {:.2} CPU s\n{summary:?}", cost.wall_s, cost.cpu_s);
    Ok(())
}

fn number(bytes: &[u8]) -> Option<usize> {
    Some(u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize)
}

/// Reads the header text and the records.
fn split(bam: &[u8]) -> Option<(&str, &[u8])> {
    let (text, mut rest) = bam.get(8..)?.split_at_checked(number(bam.get(4..)?)?)?;
    let sequences = number(rest)?;
    rest = &rest[4..];
    for _ in 0..sequences {
        rest = rest.get(8 + number(rest)?..)?;
    }
    Some((std::str::from_utf8(text).ok()?.trim_end_matches('\0'), rest))
}

/// The bytes of complete templates: at least a batch, or all remaining ones.
fn whole(records: &[u8]) -> usize {
    let name = |at: usize| &records[at + 36..][..usize::from(records[at + 12])];
    let (mut at, mut last) = (0, None);
    while at < records.len() {
        if at >= BATCH && last.is_some_and(|l| name(l) != name(at)) {
            return at;
        }
        last = Some(at);
        at += 4 + number(&records[at..]).unwrap_or(records.len());
    }
    records.len()
}
