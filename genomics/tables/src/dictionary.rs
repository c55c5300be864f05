//! Converts a k-mer table to a dictionary, and writes the strings of a dictionary as FASTA.

use std::io::Write;
use std::path::Path;

use genuma_dictionary::{Dictionary, DictionaryBuilder, DictionarySpec};
use genuma_flash::{EntryBatch, TablePageReader};

use crate::combine::PAGE_BYTES;
use crate::error::Error;
use crate::note::TableNote;

/// Number of table pages that are read at a time.
const PAGES_PER_BATCH: u64 = 256;
/// Field of the headers that gives the kind of the sequences. They are no unitigs: they continue at branches.
const STRING_KIND_FIELD: &str = "tp:Z:simplitig";

/// Returns the memory for the pages of a table that are read at a time (bytes).
pub fn batch_memory_bytes(scan: &TablePageReader) -> u64 {
    PAGES_PER_BATCH * (PAGE_BYTES + scan.max_unpacked_page_bytes())
}

/// Makes a dictionary of all k-mers of a table with this note, with their counts or without. Building takes at most
/// `memory_bytes` bytes, and [`batch_memory_bytes`] for reading.
///
/// # Errors
/// The memory is too small: [`genuma_dictionary::Error::MemoryLimit`] has the memory that is needed. The table cannot be
/// read or is damaged.
pub fn build_dictionary(
    scan: &TablePageReader,
    note: &TableNote,
    keeps_counts: bool,
    memory_bytes: u64,
) -> Result<Dictionary, Error> {
    let num_samples = note.samples.len();
    let num_kept_counts = if keeps_counts { num_samples } else { 0 };
    let mut builder = DictionaryBuilder::with_spec(DictionarySpec {
        k: note.k,
        num_kmers: scan.len(),
        num_samples: num_kept_counts,
        note: scan.note().to_vec(),
        memory_bytes,
    })?;
    let mut reader = scan.new_entry_batch_reader(PAGES_PER_BATCH as usize)?;
    let mut batch = EntryBatch::<u32>::default();
    loop {
        reader.read_next_batch(&mut batch)?;
        if batch.keys.is_empty() {
            return Ok(builder.build()?);
        }
        for (&key, counts) in batch.keys.iter().zip(batch.values.chunks_exact(num_samples)) {
            builder.push_kmer(key, &counts[..num_kept_counts])?;
        }
    }
}

/// Writes all strings of the dictionary of the file `path` as FASTA with headers like those of BCALM2 and GGCAT. Strings
/// are numbered from 0. `samples` has the numbers of the samples
/// whose counts are summed for the fields KC and km; `None` leaves these fields out.
///
/// # Errors
/// The output cannot be written, or the dictionary is damaged.
pub fn write_string_fasta(
    dictionary: &Dictionary,
    path: &Path,
    samples: Option<&[usize]>,
    out: &mut impl Write,
) -> Result<(), Error> {
    for (id, string) in dictionary.strings().enumerate() {
        let string = string.map_err(|source| Error::DamagedDictionary { path: path.to_path_buf(), source })?;
        write!(out, ">{id} LN:i:{}", string.num_bases())?;
        if let Some(samples) = samples {
            let num_kmers = string.kmer_numbers().end - string.kmer_numbers().start;
            let counts = string
                .kmer_numbers()
                .flat_map(|kmer| samples.iter().map(move |&sample| u64::from(dictionary.get_count(kmer, sample))));
            let sum: u64 = counts.sum();
            write!(out, " KC:i:{sum} km:f:{:.1}", sum as f64 / num_kmers as f64)?;
        }
        writeln!(out, " {STRING_KIND_FIELD}")?;
        string.write_bases(out)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}
