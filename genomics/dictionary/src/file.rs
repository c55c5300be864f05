//! Reads and writes the file of a dictionary: a header, then arrays of 64-bit words. `docs/formats/dictionary.md`
//! documents the format.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use bytemuck::{Pod, Zeroable};
use genuma_work::publish::{AtomicFile, PartialFile};
use twox_hash::XxHash3_64;

use crate::counts::CompressedCounts;
use crate::dictionary::Dictionary;
use crate::error::Error;
use crate::kmer_strings::KmerStrings;
use crate::position_index::HashPositionIndex;

#[cfg(target_endian = "big")]
compile_error!("dictionaries are little-endian and are read without conversion");

const MAGIC: [u8; 8] = *b"GENUMADI";
const DICTIONARY_FORMAT_VERSION: u32 = 1;
/// Size of the header in bytes.
const HEADER_BYTES: usize = 4096;
/// Number of bytes of the header that its checksum covers.
const CHECKSUMMED_BYTES: usize = HEADER_BYTES - 8;
/// Byte offset of the metadata note in the header.
const NOTE_OFFSET: usize = size_of::<HeaderFields>();
/// Maximum size of the metadata note in bytes.
pub(crate) const MAX_NOTE_BYTES: usize = 2048;
/// Maximum number of samples.
pub(crate) const MAX_SAMPLES: usize = 64;
const NUM_PARTS: usize = 11;
/// Names of the arrays in error messages, in their order in the file.
const PART_NAMES: [&str; NUM_PARTS] = [
    "bases",
    "blocks of the strings",
    "starts of the strings",
    "groups of minimizers",
    "buckets of minimizers",
    "positions of minimizers",
    "groups of k-mers",
    "buckets of k-mers",
    "positions of k-mers",
    "headers of counts",
    "counts",
];
/// Index of the array of compressed counts, the only one whose length does not follow from the other fields of the
/// header.
const COUNTS_PART: usize = 10;
/// Limit of all numbers in the header. Below it, bit offsets and file offsets do not overflow.
const MAX_HEADER_NUMBER: u64 = 1 << 48;

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct PartFields {
    words: u64,
    checksum: u64,
}

/// The fixed fields of the header, as stored in the file.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct HeaderFields {
    magic: [u8; 8],
    version: u32,
    k: u32,
    m: u32,
    position_bits: u32,
    num_samples: u32,
    note_bytes: u32,
    num_kmers: u64,
    num_bases: u64,
    num_strings: u64,
    minimizer_buckets: u64,
    minimizer_entries: u64,
    frequent_buckets: u64,
    frequent_entries: u64,
    parts: [PartFields; NUM_PARTS],
}

impl HeaderFields {
    /// Number of words of each array, computed from the other fields; for the counts as stored in the header.
    fn words_of_parts(&self) -> [u64; NUM_PARTS] {
        let bits = self.position_bits;
        let [bases, blocks, starts] = KmerStrings::array_lengths_in_words(self.num_bases, self.num_strings);
        let [groups, buckets, entries] =
            HashPositionIndex::array_lengths_in_words(self.minimizer_buckets, self.minimizer_entries, bits);
        let [kmer_groups, kmer_buckets, kmer_entries] =
            HashPositionIndex::array_lengths_in_words(self.frequent_buckets, self.frequent_entries, bits);
        let headers = CompressedCounts::num_block_headers(self.num_kmers, self.num_samples.into());
        let counts = self.parts[COUNTS_PART].words;
        [bases, blocks, starts, groups, buckets, entries, kmer_groups, kmer_buckets, kmer_entries, headers, counts]
    }

    /// Whether all fields of the header are valid and fit each other.
    fn is_consistent(&self) -> bool {
        let numbers = [
            self.num_kmers,
            self.num_bases,
            self.num_strings,
            self.minimizer_buckets,
            self.minimizer_entries,
            self.frequent_buckets,
            self.frequent_entries,
            self.parts[COUNTS_PART].words,
        ];
        let in_range = numbers.iter().all(|&number| number < MAX_HEADER_NUMBER)
            && (2..=32).contains(&self.k)
            && (1..=self.k).contains(&self.m)
            && self.num_samples as usize <= MAX_SAMPLES
            && self.note_bytes as usize <= MAX_NOTE_BYTES
            && self.minimizer_buckets > 0
            && self.frequent_buckets > 0;
        in_range
            && self.num_strings <= self.num_kmers
            && self.num_bases == self.num_kmers + self.num_strings * u64::from(self.k - 1)
            && self.position_bits == HashPositionIndex::bits_needed_for_positions(self.num_bases)
            && self.parts.map(|part| part.words) == self.words_of_parts()
    }

    fn file_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + 8 * self.parts.iter().map(|part| part.words).sum::<u64>()
    }
}

/// The arrays of a dictionary in their order in the file.
fn parts_of(dictionary: &Dictionary) -> [&Vec<u64>; NUM_PARTS] {
    let Dictionary { strings, minimizers, frequent, counts, .. } = dictionary;
    [
        &strings.bases,
        &strings.starts_before_block,
        &strings.starts,
        &minimizers.entries_before_group,
        &minimizers.bucket_sizes,
        &minimizers.entries,
        &frequent.entries_before_group,
        &frequent.bucket_sizes,
        &frequent.entries,
        &counts.headers,
        &counts.data,
    ]
}

impl Dictionary {
    /// Reads a dictionary from a file into memory, and checks all checksums.
    ///
    /// # Errors
    /// The file cannot be opened or read, is no dictionary, has another format version or length, or is damaged; or
    /// there is not enough memory.
    pub fn open(path: impl AsRef<Path>) -> Result<Dictionary, Error> {
        read_dictionary(path.as_ref())
    }

    /// Writes the dictionary to a partial file, which the caller must publish under the name `path`. Returns the
    /// partial file and its size in bytes.
    ///
    /// # Errors
    /// The file cannot be written, for example because the disk is full.
    pub fn write_unpublished(&self, path: impl AsRef<Path>) -> Result<(PartialFile, u64), Error> {
        write_dictionary(self, path.as_ref())
    }
}

fn write_dictionary(dictionary: &Dictionary, path: &Path) -> Result<(PartialFile, u64), Error> {
    let parts = parts_of(dictionary);
    let fields = HeaderFields {
        magic: MAGIC,
        version: DICTIONARY_FORMAT_VERSION,
        k: dictionary.k,
        m: dictionary.m,
        position_bits: dictionary.minimizers.position_bits,
        num_samples: dictionary.counts.num_samples as u32,
        note_bytes: dictionary.note.len() as u32,
        num_kmers: dictionary.num_kmers,
        num_bases: dictionary.strings.num_bases,
        num_strings: dictionary.strings.num_strings,
        minimizer_buckets: dictionary.minimizers.num_buckets,
        minimizer_entries: dictionary.minimizers.num_entries,
        frequent_buckets: dictionary.frequent.num_buckets,
        frequent_entries: dictionary.frequent.num_entries,
        parts: parts.map(|words| PartFields {
            words: words.len() as u64,
            checksum: XxHash3_64::oneshot(bytemuck::cast_slice(words)),
        }),
    };
    assert!(fields.is_consistent(), "a dictionary that would not be read: {fields:?}");
    let mut header = [0; HEADER_BYTES];
    header[..NOTE_OFFSET].copy_from_slice(bytemuck::bytes_of(&fields));
    header[NOTE_OFFSET..][..dictionary.note.len()].copy_from_slice(&dictionary.note);
    let checksum = XxHash3_64::oneshot(&header[..CHECKSUMMED_BYTES]);
    header[CHECKSUMMED_BYTES..].copy_from_slice(&checksum.to_le_bytes());
    let mut file = AtomicFile::create(path)?;
    file.write_all(&header)?;
    for words in parts {
        file.write_all(bytemuck::cast_slice(words))?;
    }
    Ok((file.flush_to_partial_file()?, fields.file_bytes()))
}

/// Whether a file begins with the magic bytes of a dictionary.
///
/// # Errors
/// The file cannot be read.
pub fn is_dictionary_file(path: impl AsRef<Path>) -> Result<bool, Error> {
    let path = path.as_ref();
    let opened = |source| Error::Open { path: path.to_path_buf(), source };
    let mut magic = [0; MAGIC.len()];
    match File::open(path).map_err(opened)?.read_exact(&mut magic) {
        Ok(()) => Ok(magic == MAGIC),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(opened(error)),
    }
}

/// The properties of a dictionary that its header has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DictionaryHeader {
    /// Length of the k-mers in bases.
    pub k: u32,
    /// Number of k-mers.
    pub num_kmers: u64,
    /// Number of samples, each of which has a count for each k-mer; 0 if the dictionary has no counts.
    pub num_samples: usize,
    /// Metadata, as given in [`crate::DictionarySpec::note`].
    pub note: Vec<u8>,
    /// Size of the file in bytes. The dictionary takes as much memory.
    pub file_bytes: u64,
}

impl DictionaryHeader {
    /// Reads and checks the header of a dictionary, and the length of the file. The parts are not read.
    ///
    /// # Errors
    /// The file cannot be read, is no dictionary, has another format version or length, or its header is damaged.
    pub fn read(path: impl AsRef<Path>) -> Result<DictionaryHeader, Error> {
        let path = path.as_ref();
        let mut file = File::open(path).map_err(|source| Error::Open { path: path.to_path_buf(), source })?;
        let (fields, note) = read_header(path, &mut file)?;
        let (k, num_kmers, file_bytes) = (fields.k, fields.num_kmers, fields.file_bytes());
        Ok(DictionaryHeader { k, num_kmers, num_samples: fields.num_samples as usize, note, file_bytes })
    }
}

/// Reads and checks the header. Returns its fields and the metadata note.
fn read_header(path: &Path, file: &mut File) -> Result<(HeaderFields, Vec<u8>), Error> {
    let opened = |source| Error::Open { path: path.to_path_buf(), source };
    let wrong_length = |found, wanted| Error::WrongFileLength { path: path.to_path_buf(), found, wanted };
    let damaged = |what| Error::Damaged { path: path.to_path_buf(), part: "header", what };
    let found = file.metadata().map_err(opened)?.len();
    let mut header = Vec::with_capacity(HEADER_BYTES);
    file.take(HEADER_BYTES as u64).read_to_end(&mut header).map_err(opened)?;
    if !header.starts_with(&MAGIC) {
        return Err(Error::NotADictionary { path: path.to_path_buf() });
    }
    if header.len() < HEADER_BYTES {
        return Err(wrong_length(found, HEADER_BYTES as u64));
    }
    let fields: HeaderFields = bytemuck::pod_read_unaligned(&header[..NOTE_OFFSET]);
    if fields.version != DICTIONARY_FORMAT_VERSION {
        let (found, known) = (fields.version, DICTIONARY_FORMAT_VERSION);
        return Err(Error::UnsupportedVersion { path: path.to_path_buf(), found, known });
    }
    if XxHash3_64::oneshot(&header[..CHECKSUMMED_BYTES]).to_le_bytes() != header[CHECKSUMMED_BYTES..] {
        return Err(damaged("its checksum does not match"));
    }
    if !fields.is_consistent() {
        return Err(damaged("its numbers contradict each other"));
    }
    if found != fields.file_bytes() {
        return Err(wrong_length(found, fields.file_bytes()));
    }
    Ok((fields, header[NOTE_OFFSET..][..fields.note_bytes as usize].to_vec()))
}

fn read_dictionary(path: &Path) -> Result<Dictionary, Error> {
    let mut file = File::open(path).map_err(|source| Error::Open { path: path.to_path_buf(), source })?;
    let (fields, note) = read_header(path, &mut file)?;
    let mut parts: [Vec<u64>; NUM_PARTS] = Default::default();
    for ((words, part), stored) in parts.iter_mut().zip(PART_NAMES).zip(fields.parts) {
        let refused = |_| Error::NotEnoughMemory { needed_bytes: 8 * stored.words };
        words.try_reserve_exact(stored.words as usize).map_err(refused)?;
        words.resize(stored.words as usize, 0);
        let unread = |source| Error::Read { path: path.to_path_buf(), part, source };
        file.read_exact(bytemuck::cast_slice_mut(words)).map_err(unread)?;
        if XxHash3_64::oneshot(bytemuck::cast_slice(words)) != stored.checksum {
            return Err(Error::Damaged { path: path.to_path_buf(), part, what: "its checksum does not match" });
        }
    }
    let [bases, blocks, starts, groups, buckets, entries, kmer_groups, kmer_buckets, kmer_entries, headers, data] =
        parts;
    let (num_bases, num_strings, position_bits) = (fields.num_bases, fields.num_strings, fields.position_bits);
    let strings = KmerStrings { bases, num_bases, starts_before_block: blocks, starts, num_strings };
    let minimizers = HashPositionIndex {
        num_buckets: fields.minimizer_buckets,
        num_entries: fields.minimizer_entries,
        position_bits,
        entries_before_group: groups,
        bucket_sizes: buckets,
        entries,
    };
    let frequent = HashPositionIndex {
        num_buckets: fields.frequent_buckets,
        num_entries: fields.frequent_entries,
        position_bits,
        entries_before_group: kmer_groups,
        bucket_sizes: kmer_buckets,
        entries: kmer_entries,
    };
    let (num_kmers, num_samples) = (fields.num_kmers, fields.num_samples as usize);
    let counts = CompressedCounts { num_samples, num_kmers, headers, data };
    Ok(Dictionary { k: fields.k, m: fields.m, num_kmers, strings, minimizers, frequent, counts, note })
}
