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
    BamFileWriter, BlockSorter, CramFileWriter, CramVersion, SortOptions, SortSummary, SortedBlock, SortedFileHeader,
    Sorter,
};
use genuma_reads::CramReference;
use genuma_work::cost::CostTimer;
use genuma_work::publish::AtomicFileSet;

/// Minimum number of bytes of records that a worker sorts at a time.
const BATCH: usize = 2 << 20;

/// The command line.
struct Args {
    input: PathBuf,
    /// The sorted file; `-` for standard output.
    output: PathBuf,
    threads: usize,
    memory: usize,
    level: CompressionLevel,
    work: PathBuf,
    markdup: Option<MarkdupOptions>,
    /// Whether duplicates are marked within each library.
    libraries: bool,
    /// The reference of a CRAM output; `None` for BAM.
    cram_reference: Option<CramReference>,
    cram_version: CramVersion,
}

impl Args {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Args, Box<dyn Error>> {
        let mut files = Vec::new();
        let mut parsed = Args {
            input: PathBuf::new(),
            output: PathBuf::new(),
            threads: 2,
            memory: 1 << 30,
            level: CompressionLevel::default(),
            work: ".".into(),
            markdup: None,
            libraries: false,
            cram_reference: None,
            cram_version: CramVersion::V3_0,
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} needs a value"));
            match arg.as_str() {
                "--threads" => parsed.threads = value()?.parse()?,
                "--memory" => parsed.memory = value()?.parse()?,
                "--level" => {
                    let level = CompressionLevel::from_level_number(value()?.parse()?);
                    parsed.level = level.ok_or("the level is 1 to 9")?;
                }
                "--work" => parsed.work = value()?.into(),
                "--mark" => parsed.markdup = Some(parsed.markdup.unwrap_or_default()),
                "--cram" => parsed.cram_reference = Some(CramReference::new(Some(value()?.into()))),
                "--cram-3.1" => parsed.cram_version = CramVersion::V3_1,
                "--libraries" => parsed.libraries = true,
                "--whole-templates" => parsed.markdup.get_or_insert_default().mark_whole_template = true,
                _ => files.push(PathBuf::from(arg)),
            }
        }
        let files: [PathBuf; 2] = files.try_into().map_err(|_| "an input and an output are needed")?;
        [parsed.input, parsed.output] = files;
        Ok(parsed)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = Args::parse(std::env::args().skip(1))?;
    let begin = Instant::now();
    let mut bam = Vec::new();
    noodles_bgzf::io::Reader::new(File::open(&args.input)?).read_to_end(&mut bam)?;
    let (text, records) = split(&bam).ok_or("no BAM header")?;
    eprintln!("read     {:6.2} s, {} bytes", begin.elapsed().as_secs_f64(), bam.len());

    if args.libraries
        && let Some(markdup) = &mut args.markdup
    {
        markdup.libraries = Some(ReadGroupLibraries::parse_libraries_from_sam_header(text));
    }
    let header = SortedFileHeader::from_sam_header(text)?;
    let markdup = args.markdup.take().map(Arc::new);
    let options =
        SortOptions { memory_bytes: args.memory, threads: args.threads, work_dir: args.work.clone(), markdup };
    let begin = Instant::now();
    let mut sorter = Sorter::new(&options);
    sort_blocks(records, &options, &mut sorter)?;
    eprintln!("blocks   {:6.2} s", begin.elapsed().as_secs_f64());
    let clock = CostTimer::start();
    let summary = write_sorted_file(sorter, header, &args)?;
    let cost = clock.stop("finish");
    eprintln!("finish   {:6.2} s, {:.2} CPU s\n{summary:?}", cost.wall_s, cost.cpu_s);
    Ok(())
}

/// Sorts batches of records in parallel, and passes them to `sorter` in the order of the input.
fn sort_blocks(records: &[u8], options: &SortOptions, sorter: &mut Sorter) -> Result<(), genuma_align::sort::Error> {
    let batches = Mutex::new((0, records));
    let turn = Mutex::new((0, Vec::<Option<SortedBlock>>::new(), sorter));
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
        let workers: Vec<_> = (0..options.threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|w| w.join().expect("no panic"))
    })
}

/// Writes the sorted records to the output file, or to standard output.
fn write_sorted_file(sorter: Sorter, header: SortedFileHeader, args: &Args) -> Result<SortSummary, Box<dyn Error>> {
    let path = args.output.as_path();
    if path == Path::new("-") {
        return Ok(sorter.write_unindexed_bam(&header, args.level, std::io::stdout())?);
    }
    let mut set = AtomicFileSet::default();
    let summary = match &args.cram_reference {
        Some(reference) => {
            let file = CramFileWriter::create(path, header, reference)?.with_version(args.cram_version);
            sorter.write_cram(file, &mut set)?
        }
        None => sorter.write_bam(BamFileWriter::create(path, header, args.level)?, &mut set)?,
    };
    set.publish_all()?;
    Ok(summary)
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
