//! Looks up k-mers in a panel of normals, which is a k-mer table or a k-mer dictionary.

use std::path::{Path, PathBuf};

use genuma_dictionary::{Dictionary, DictionaryHeader, is_dictionary_file};
use genuma_flash::{EntryBatch, LookupResults, Table, TableOpenOptions, TablePageReader};
use genuma_kmers::encode::{KmerOnBothStrands, kmer_mask, reverse_complement_kmer};
use genuma_work::parallel;

/// Number of k-mers that are looked up in the table at a time.
const KMERS_PER_LOOKUP: usize = 1 << 20;
/// Number of read requests to the table file per thread that are in progress at the same time.
const READS_IN_FLIGHT: usize = 64;
/// Number of k-mers that a thread looks up in a dictionary at a time.
const KMERS_PER_DICTIONARY_TASK: usize = 1 << 14;
/// Number of table pages that are read at a time when the whole table is scanned.
const PAGES_PER_READ: usize = 256;

/// Why the candidate k-mers cannot be looked up in the panel.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The k-mer table cannot be read, or is damaged.
    #[error(transparent)]
    Table(#[from] genuma_flash::Error),
    /// The k-mer dictionary cannot be read, or is damaged.
    #[error(transparent)]
    Dictionary(#[from] genuma_dictionary::Error),
    /// The memory limit leaves too little memory for the k-mer dictionary, which is read as a whole.
    #[error(
        "{}: the dictionary takes {} MiB of memory, but {} are left: raise --memory, or give the panel as a table (.gkt)",
        path.display(), needed_bytes.div_ceil(1 << 20), allowed_bytes >> 20
    )]
    MemoryLimit {
        /// Path of the dictionary.
        path: PathBuf,
        /// Memory in bytes that the dictionary takes.
        needed_bytes: u64,
        /// Memory in bytes that is left.
        allowed_bytes: u64,
    },
}

/// Looks up `kmers`, which must be sorted, in the panel `path`. Returns for each the number of normals that have it; 65,535
/// for larger numbers. `memory` is the number of bytes that may be allocated. If the index, filters and hot k-mers of a
/// table fit in half of it, they are loaded and the k-mers are looked up one by one; otherwise the whole table is read.
/// A dictionary is loaded as a whole.
///
/// # Errors
/// The panel cannot be read, or is damaged; or there is too little memory for a dictionary.
pub(crate) fn look_up_kmers(path: &Path, kmers: &[u64], threads: usize, memory: u64) -> Result<Vec<u16>, Error> {
    if is_dictionary_file(path)? {
        return look_up_in_dictionary(path, kmers, threads, memory);
    }
    let scan = TablePageReader::open(path)?;
    let beside_pages = scan.file_bytes().saturating_sub((1 + scan.num_pages()) * 4096);
    if beside_pages <= memory / 2 {
        let table = Table::open(path, &TableOpenOptions::default())?;
        look_up_by_key(&table, kmers, threads)
    } else {
        look_up_by_scan(&scan, kmers)
    }
}

fn look_up_in_dictionary(path: &Path, kmers: &[u64], threads: usize, memory: u64) -> Result<Vec<u16>, Error> {
    let needed_bytes = DictionaryHeader::read(path)?.file_bytes;
    if needed_bytes > memory {
        return Err(Error::MemoryLimit { path: path.to_path_buf(), needed_bytes, allowed_bytes: memory });
    }
    let dictionary = Dictionary::open(path)?;
    let tasks: Vec<&[u64]> = kmers.chunks(KMERS_PER_DICTIONARY_TASK).collect();
    let look_up = |(): &mut (), task: usize| -> Vec<u16> {
        tasks[task].iter().map(|&kmer| look_up_kmer_in_dictionary(&dictionary, kmer)).collect()
    };
    Ok(parallel::map_in_order(tasks.len(), threads, || (), look_up).concat())
}

/// Number of normals that have a candidate k-mer. Constructed k-mers of tandem repeats that are no canonical k-mers are in
/// no panel.
fn look_up_kmer_in_dictionary(dictionary: &Dictionary, kmer: u64) -> u16 {
    let k = dictionary.k();
    let reverse = reverse_complement_kmer(kmer, k);
    if kmer > kmer_mask(k) || kmer > reverse {
        return 0;
    }
    let number = dictionary.find_kmer_number(KmerOnBothStrands { forward: kmer, reverse });
    number.map_or(0, |number| u16::try_from(dictionary.get_count(number, 0)).unwrap_or(u16::MAX))
}

/// Decodes the number of normals from a value of the table; 65,535 for larger numbers.
fn decode_normals(value: &[u8]) -> u16 {
    let bytes = value.first_chunk().copied().unwrap_or_default();
    u16::try_from(u32::from_le_bytes(bytes)).unwrap_or(u16::MAX)
}

fn look_up_by_key(table: &Table, kmers: &[u64], threads: usize) -> Result<Vec<u16>, Error> {
    let (mut normals, mut answers) = (Vec::with_capacity(kmers.len()), LookupResults::new());
    for some in kmers.chunks(KMERS_PER_LOOKUP) {
        table.get_many_with_threads(some, threads, READS_IN_FLIGHT, &mut answers)?;
        normals.extend(answers.iter().map(|found| found.map_or(0, decode_normals)));
    }
    Ok(normals)
}

fn look_up_by_scan(scan: &TablePageReader, kmers: &[u64]) -> Result<Vec<u16>, Error> {
    let (mut normals, mut piece) = (vec![0; kmers.len()], EntryBatch::<u32>::default());
    let mut walk = scan.new_entry_batch_reader(PAGES_PER_READ)?;
    let mut next = 0;
    while next < kmers.len() {
        walk.read_next_batch(&mut piece)?;
        let Some(&last) = piece.keys.last() else { break };
        let mut at = 0;
        while let Some(&kmer) = kmers.get(next).filter(|&&kmer| kmer <= last) {
            at += piece.keys[at..].partition_point(|&key| key < kmer);
            if piece.keys[at] == kmer {
                normals[next] = u16::try_from(piece.values[at]).unwrap_or(u16::MAX);
            }
            next += 1;
        }
    }
    Ok(normals)
}
