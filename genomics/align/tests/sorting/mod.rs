//! Common parts of the tests of sorting and duplicate marking: made records, our sorting, and samtools.
#![allow(dead_code)]

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use genuma_align::bgzf::CompressionLevel;
use genuma_align::sort::markdup::MarkdupOptions;
use genuma_align::sort::{BamFileWriter, BlockSorter, Error, SortOptions, SortSummary, SortedFileHeader, Sorter};
use genuma_work::publish::AtomicFileSet;

/// A small random generator, so that the data never change.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

/// What samtools prints.
#[track_caller]
pub fn samtools(args: &[&str]) -> Vec<u8> {
    let ended = Command::new("samtools").args(args).output().expect("samtools is installed");
    assert!(ended.status.success(), "samtools {args:?}: {}", String::from_utf8_lossy(&ended.stderr));
    ended.stdout
}

/// The records of a BAM as SAM lines.
pub fn lines(bam: &Path) -> Vec<String> {
    String::from_utf8(samtools(&["view", text(bam)])).expect("text").lines().map(str::to_owned).collect()
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Header lines and encoded records.
pub struct Records {
    pub header: String,
    /// Each with its `block_size`.
    pub records: Vec<Vec<u8>>,
}

fn number(bytes: &[u8]) -> usize {
    u32::from_le_bytes(bytes[..4].try_into().expect("4 bytes")) as usize
}

impl Records {
    /// The records of a BAM file, in file order.
    pub fn read(bam: &Path) -> Records {
        let mut all = Vec::new();
        noodles_bgzf::io::Reader::new(fs::File::open(bam).expect("a BAM")).read_to_end(&mut all).expect("BGZF");
        let (header, mut rest) = all[8..].split_at(number(&all[4..]));
        let sequences = number(rest);
        rest = &rest[4..];
        for _ in 0..sequences {
            rest = &rest[8 + number(rest)..];
        }
        let mut records = Vec::new();
        while !rest.is_empty() {
            let (record, after) = rest.split_at(4 + number(rest));
            records.push(record.to_vec());
            rest = after;
        }
        Records { header: String::from_utf8(header.to_vec()).expect("text"), records }
    }

    /// The records that samtools makes from SAM text.
    pub fn of(sam: &str, folder: &Path) -> Records {
        let (from, to) = (folder.join("made.sam"), folder.join("made.bam"));
        fs::write(&from, sam).expect("a file");
        samtools(&["view", "-b", "--no-PG", "-o", text(&to), text(&from)]);
        Records::read(&to)
    }

    /// The records of whole templates (equal names) together, about `size` bytes at a time.
    pub fn batches(&self, size: usize) -> Vec<Vec<u8>> {
        let mut batches = vec![Vec::new()];
        let mut last: &[u8] = b"";
        for record in &self.records {
            let name = &record[36..36 + usize::from(record[12])];
            if name != last && batches[batches.len() - 1].len() >= size {
                batches.push(Vec::new());
            }
            batches.last_mut().expect("one").extend_from_slice(record);
            last = name;
        }
        batches
    }
}

/// Sorting options of a test.
#[derive(Clone)]
pub struct How {
    pub memory: usize,
    pub threads: usize,
    /// Bytes of the records in a block.
    pub block: usize,
    pub marking: Option<MarkdupOptions>,
    pub level: u8,
}

impl Default for How {
    fn default() -> How {
        How { memory: 1 << 26, threads: 2, block: 20_000, marking: None, level: 1 }
    }
}

/// Sorts the records and writes them to `path`.
pub fn try_sort(records: &Records, path: &Path, how: &How) -> Result<SortSummary, Error> {
    let header = SortedFileHeader::from_sam_header(&records.header)?;
    let file = BamFileWriter::create(path, header, CompressionLevel::from_level_number(how.level).expect("a level"))?;
    let mut set = AtomicFileSet::default();
    let summary = sorter(records, path.parent().expect("a folder"), how)?.write_bam(file, &mut set)?;
    set.publish_all().map_err(|error| Error::Output(error.into()))?;
    Ok(summary)
}

/// Creates a sorter and pushes all records.
pub fn sorter(records: &Records, work: &Path, how: &How) -> Result<Sorter, Error> {
    let marking = how.marking.clone().map(Arc::new);
    let options = SortOptions {
        memory_bytes: how.memory,
        threads: how.threads,
        work_dir: work.to_owned(),
        markdup: marking.clone(),
    };
    let mut sorter = Sorter::new(&options);
    let mut blocks = BlockSorter::new(marking);
    for batch in records.batches(how.block) {
        sorter.push_block(blocks.sort_records(&batch)?)?;
    }
    Ok(sorter)
}

/// Sorts the records and writes them to a file in `folder`.
#[track_caller]
pub fn sort(records: &Records, folder: &Path, how: &How) -> (PathBuf, SortSummary) {
    let path = folder.join("sorted.bam");
    let summary = try_sort(records, &path, how).expect("sorted");
    (path, summary)
}
