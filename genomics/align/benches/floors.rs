//! CPU time of the stages around the mapper, each beside a floor: the least work that any program needs for this stage,
//! measured on the same data with one thread.
//!
//! `cargo bench -p genuma-align --bench floors -- READS.fq.gz RECORDS.sam` prints a table; `make bench-align` runs it on
//! its reads. The SAM has the records in the order of the reads.

use std::error::Error;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use genuma_align::bgzf::{BlockCompressor, CompressionLevel, MAX_BLOCK_DATA_BYTES};
use genuma_align::sam::{Contigs, parse_sam_line, split_bam_records};
use genuma_align::sort::markdup::MarkdupOptions;
use genuma_align::sort::{BlockSorter, SortOptions, SortedFileHeader, Sorter};
use genuma_reads::{AlignedOptions, Lane, MateLayout, ProgressCounters, for_each_batch};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Each stage runs this often; the least CPU time counts, because other programs can only add to it.
const ROUNDS: usize = 3;
/// Bytes of records in a block that the sorter gets, about those of a batch of the aligner.
const BLOCK_BYTES: usize = 1 << 20;
/// Memory of the sorter: nothing is spilled.
const SORT_MEMORY_BYTES: usize = 4 << 30;

fn main() -> Result<()> {
    // cargo adds `--bench`.
    let paths: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let [reads, sam] = &paths[..] else {
        return Err("usage: floors READS.fq.gz RECORDS.sam".into());
    };
    let folder = tempfile::tempdir()?;
    println!("| stage | MB | CPU s | floor, CPU s | ratio | the floor |");
    println!("|---|---|---|---|---|---|");
    measure_reading(Path::new(reads), folder.path())?;
    measure_writing(Path::new(sam), folder.path())
}

/// CPU time of this process and its finished children, in seconds.
fn cpu_s() -> f64 {
    let times = |who| {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
        // SAFETY: the call fills the structure, which is large enough, or fails.
        #[allow(unsafe_code)]
        let usage = unsafe {
            assert_eq!(libc::getrusage(who, usage.as_mut_ptr()), 0, "getrusage of a known scope succeeds");
            usage.assume_init()
        };
        [usage.ru_utime, usage.ru_stime].map(|time| time.tv_sec as f64 + time.tv_usec as f64 / 1e6).iter().sum::<f64>()
    };
    times(libc::RUSAGE_SELF) + times(libc::RUSAGE_CHILDREN)
}

/// The least CPU time of some runs, in seconds.
fn least_cpu_s(mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = cpu_s();
        run()?;
        least = least.min(cpu_s() - start);
    }
    Ok(least)
}

/// Prints the row of a stage; `None` for a floor that cannot be measured here.
fn print_row(stage: &str, bytes: usize, own_s: f64, floor_s: Option<f64>, floor: &str) {
    let mb = bytes as f64 / 1e6;
    match floor_s {
        Some(floor_s) => {
            println!("| {stage} | {mb:.1} | {own_s:.3} | {floor_s:.3} | {:.2} | {floor} |", own_s / floor_s.max(1e-4))
        }
        None => println!("| {stage} | {mb:.1} | {own_s:.3} | – | – | {floor} |"),
    }
}

/// Inflating and parsing.
fn measure_reading(reads: &Path, folder: &Path) -> Result<()> {
    let mut text = Vec::new();
    flate2::read::MultiGzDecoder::new(File::open(reads)?).read_to_end(&mut text)?;
    // One member, as sequencers write it.
    let (plain, packed) = (folder.join("reads.fq"), folder.join("reads.fq.gz"));
    fs::write(&plain, &text)?;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(&text)?;
    let gzip = encoder.finish()?;
    fs::write(&packed, &gzip)?;

    let read = |path: &Path| -> Result<()> {
        let lanes =
            Lane::group_files_into_lanes(0, &[path.to_owned()], MateLayout::Single, &AlignedOptions::default())?;
        let bases = for_each_batch(
            &lanes,
            1,
            &ProgressCounters::default(),
            || 0,
            |bases, batch| {
                *bases += batch.iter().map(|pair| pair.mates[0].seq.len()).sum::<usize>();
                Ok::<(), genuma_reads::Error>(())
            },
        )?;
        black_box(bases);
        Ok(())
    };
    let parse_s = least_cpu_s(|| read(&plain))?;
    let inflate_s = (least_cpu_s(|| read(&packed))? - parse_s).max(0.0);

    let zlib_s = least_cpu_s(|| {
        io::copy(&mut flate2::read::GzDecoder::new(&gzip[..]), &mut Discard)?;
        Ok(())
    })?;
    let mut out = vec![0; text.len()];
    let libdeflate_s = least_cpu_s(|| {
        libdeflater::Decompressor::new().gzip_decompress(&gzip, &mut out)?;
        Ok(())
    })?;
    let igzip_s = least_cpu_s(|| {
        let done = Command::new("igzip").arg("-dc").arg(&packed).stdout(Stdio::null()).status()?;
        done.success().then_some(()).ok_or_else(|| "igzip failed".into())
    });
    let mb = text.len();
    print_row("inflate", mb, inflate_s, Some(zlib_s), "zlib-rs alone, from memory");
    print_row("inflate", mb, inflate_s, Some(libdeflate_s), "libdeflate, which needs the whole member in memory");
    print_row("inflate", mb, inflate_s, igzip_s.ok(), "igzip (ISA-L), its process and its reading of the file counted");

    let lines_s = least_cpu_s(|| {
        let mut bytes = Vec::with_capacity(text.len());
        File::open(&plain)?.read_to_end(&mut bytes)?;
        black_box(memchr::memchr_iter(b'\n', &bytes).count());
        Ok(())
    })?;
    print_row("parse", mb, parse_s, Some(lines_s), "reading the file and finding its line ends");
    Ok(())
}

/// A writer that drops all bytes.
struct Discard;

impl Write for Discard {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        black_box(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// BAM records in the order of the reads, in blocks of whole templates.
struct Records {
    header: String,
    blocks: Vec<Vec<u8>>,
}

impl Records {
    fn from_sam(path: &Path) -> Result<Records> {
        let (mut header, mut sequences) = (String::new(), Vec::new());
        let mut blocks = vec![Vec::new()];
        let mut contigs = None;
        let mut last_name = Vec::new();
        for line in BufReader::new(File::open(path)?).split(b'\n') {
            let line = line?;
            if line.starts_with(b"@") {
                let text = String::from_utf8(line)?;
                if let Some(fields) = text.strip_prefix("@SQ\t") {
                    let field = |name| fields.split('\t').find_map(|field| field.strip_prefix(name));
                    let (Some(name), Some(length)) = (field("SN:"), field("LN:")) else { continue };
                    sequences.push((name.to_owned(), length.parse()?));
                }
                header += &text;
                header.push('\n');
                continue;
            }
            let contigs = contigs.get_or_insert_with(|| Contigs::new(sequences.clone()));
            let name = line.split(|&byte| byte == b'\t').next().unwrap_or_default();
            let block = blocks.last_mut().expect("there is a block");
            let block = if block.len() >= BLOCK_BYTES && name != last_name {
                blocks.push(Vec::new());
                blocks.last_mut().expect("a block was added")
            } else {
                block
            };
            name.clone_into(&mut last_name);
            parse_sam_line(&line, contigs, block)?;
        }
        Ok(Records { header, blocks })
    }

    fn sort(&self, markdup: Option<Arc<MarkdupOptions>>, folder: &Path) -> Result<()> {
        let options = SortOptions {
            memory_bytes: SORT_MEMORY_BYTES,
            threads: 1,
            work_dir: folder.to_owned(),
            markdup: markdup.clone(),
        };
        let (mut sorter, mut blocks) = (Sorter::new(&options), BlockSorter::new(markdup));
        for block in &self.blocks {
            sorter.push_block(blocks.sort_records(block)?)?;
        }
        let level = CompressionLevel::from_level_number(1).expect("a level");
        sorter.write_unindexed_bam(&SortedFileHeader::from_sam_header(&self.header)?, level, Discard)?;
        Ok(())
    }
}

/// Compresses all data into blocks, one after the other.
fn compress(data: &[u8], level: CompressionLevel) {
    let (mut compressor, mut out) = (BlockCompressor::with_compression_level(level), Vec::new());
    for block in data.chunks(MAX_BLOCK_DATA_BYTES) {
        out.clear();
        compressor.compress_block(block, &mut out);
        black_box(&out);
    }
}

/// The 4 bytes at `at` of a record as a number.
fn number(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
}

/// Sequence and position of a record, and its strand, as one number that sorts as the file is sorted.
fn sort_key(record: &[u8]) -> u64 {
    let strand = u64::from(number(record, 16) >> 20 & 1);
    u64::from(number(record, 4)) << 32 | u64::from(number(record, 8).wrapping_add(1)) << 1 | strand
}

/// Sorting, marking of duplicates, and compression.
fn measure_writing(sam: &Path, folder: &Path) -> Result<()> {
    let records = Records::from_sam(sam)?;
    let whole = records.blocks.concat();
    let first_level = CompressionLevel::from_level_number(1).expect("a level");
    let sorted_level_s = least_cpu_s(|| {
        compress(&whole, first_level);
        Ok(())
    })?;
    let unmarked_s = least_cpu_s(|| records.sort(None, folder))?;
    let marked_s = least_cpu_s(|| records.sort(Some(Arc::default()), folder))?;

    let mut out = Vec::with_capacity(whole.len());
    let sort_floor_s = least_cpu_s(|| {
        let mut at = 0;
        let mut keys = Vec::new();
        for record in split_bam_records(&whole) {
            let record = record?;
            keys.push((sort_key(record), at as u32));
            at += record.len();
        }
        keys.sort_unstable();
        out.clear();
        for &(_, at) in &keys {
            let bytes = number(&whole, at as usize) as usize + 4;
            out.extend_from_slice(&whole[at as usize..at as usize + bytes]);
        }
        black_box(&out);
        Ok(())
    })?;
    let mark_floor_s = least_cpu_s(|| {
        let mut ends = Vec::new();
        for record in split_bam_records(&whole) {
            let record = record?;
            let mate = u64::from(number(record, 24)) << 32 | u64::from(number(record, 28));
            ends.push((sort_key(record), mate, ends.len() as u32));
        }
        ends.sort_unstable();
        black_box(ends.windows(2).filter(|two| (two[0].0, two[0].1) == (two[1].0, two[1].1)).count());
        Ok(())
    })?;
    let block_s = least_cpu_s(|| {
        compress(&whole, CompressionLevel::default());
        Ok(())
    })?;
    let level = libdeflater::CompressionLvl::new(6).map_err(|_| "libdeflate has no level 6")?;
    let mut room = vec![0; MAX_BLOCK_DATA_BYTES * 2];
    let deflate_s = least_cpu_s(|| {
        let mut compressor = libdeflater::Compressor::new(level);
        for block in whole.chunks(MAX_BLOCK_DATA_BYTES) {
            compressor.deflate_compress(block, &mut room)?;
        }
        Ok(())
    })?;
    let bytes = whole.len();
    let sort_s = (unmarked_s - sorted_level_s).max(0.0);
    print_row("sort", bytes, sort_s, Some(sort_floor_s), "sorting keys of 12 bytes in memory, one copy of the records");
    let mark_s = (marked_s - unmarked_s).max(0.0);
    print_row("mark duplicates", bytes, mark_s, Some(mark_floor_s), "sorting the two ends of each record");
    print_row("BGZF, level 6", bytes, block_s, Some(deflate_s), "libdeflate on the same blocks, without checksums");
    Ok(())
}
