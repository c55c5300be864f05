//! Builds a dictionary from sorted k-mers.

use std::collections::HashSet;

use genuma_work::hash::mix_bits;

use crate::dictionary::{Dictionary, hash_kmer};
use crate::error::Error;
use crate::file::{MAX_NOTE_BYTES, MAX_SAMPLES};
use crate::kmer_set::{KmerSet, allocate_empty_vec};
use crate::kmer_strings::KmerStrings;
use crate::minimizer::{choose_minimizer_length, for_each_kmer_and_its_minimizer};
use crate::position_index::{
    HashPositionIndex, IndexAndFrequentHashes, MAX_POSITIONS_PER_MINIMIZER, build_hash_position_index,
};
use crate::simplitigs::{StringsAndCounts, join_kmers_to_strings};

/// Minimum memory in bytes for the index entries of one pass over the minimizers, or over the k-mers with a frequent
/// one.
const MIN_PASS_BYTES: u64 = 1 << 20;
/// Memory in bytes for buffers whose size does not depend on the number of k-mers.
const FIXED_BYTES: u64 = 16 << 20;
/// Minimum memory in bytes for each k-mer, for the strings and counts while they grow.
const MIN_JOINED_BYTES_PER_KMER: u64 = 2;

/// Size and parameters of a dictionary to be built.
#[derive(Debug, Clone)]
pub struct DictionarySpec {
    /// Length of the k-mers, 2 to 32.
    pub k: u32,
    /// Number of k-mers that will be added, exactly.
    pub num_kmers: u64,
    /// Number of samples, each of which has a count for each k-mer; 0 to store k-mers without counts.
    pub num_samples: usize,
    /// Metadata that the file stores unchanged, at most 2,048 bytes.
    pub note: Vec<u8>,
    /// Maximum memory in bytes that building may take.
    pub memory_bytes: u64,
}

impl DictionarySpec {
    /// Memory in bytes for the k-mers and their counts before they are joined to strings.
    fn input_bytes(&self) -> u64 {
        KmerSet::memory_bytes_for_kmers(self.k, self.num_kmers) + 4 * self.num_kmers * self.num_samples as u64
    }

    /// Minimum of [`DictionarySpec::memory_bytes`]. It may not suffice: the strings, counts and indexes take more for
    /// some k-mers.
    pub fn min_memory_bytes(&self) -> u64 {
        self.input_bytes() + MIN_JOINED_BYTES_PER_KMER * self.num_kmers + FIXED_BYTES
    }
}

/// Builds a dictionary from k-mers that are added in ascending order.
#[derive(Debug)]
pub struct DictionaryBuilder {
    spec: DictionarySpec,
    set: KmerSet,
    /// Counts of all samples for each k-mer added so far, one k-mer after the other.
    rows: Vec<u32>,
}

impl DictionaryBuilder {
    /// Creates a builder without k-mers, and allocates the memory for them.
    ///
    /// # Errors
    /// A field of the specification is out of range, its memory limit is below
    /// [`DictionarySpec::min_memory_bytes`], or the operating system has no more memory.
    pub fn with_spec(spec: DictionarySpec) -> Result<DictionaryBuilder, Error> {
        let invalid = |what: String| Err(Error::InvalidInput { what });
        if !(2..=32).contains(&spec.k) {
            return invalid(format!("{}-mers: k is 2 to 32", spec.k));
        }
        if spec.num_samples > MAX_SAMPLES || spec.note.len() > MAX_NOTE_BYTES {
            let (samples, bytes) = (spec.num_samples, spec.note.len());
            return invalid(format!(
                "{samples} samples and a note of {bytes} bytes: at most {MAX_SAMPLES} and {MAX_NOTE_BYTES} fit"
            ));
        }
        let (needed_bytes, allowed_bytes) = (spec.min_memory_bytes(), spec.memory_bytes);
        if needed_bytes > allowed_bytes {
            return Err(Error::MemoryLimit { needed_bytes, allowed_bytes });
        }
        let set = KmerSet::with_capacity(spec.k, spec.num_kmers)?;
        let rows = allocate_empty_vec(spec.num_kmers * spec.num_samples as u64)?;
        Ok(DictionaryBuilder { spec, set, rows })
    }

    /// Adds a canonical k-mer, which must be larger than the one before, with its count in each sample.
    ///
    /// # Errors
    /// The k-mer is not canonical or not larger than the k-mer added before, [`DictionarySpec::num_kmers`] k-mers were
    /// added already, or `counts` does not have one count for each sample.
    #[inline]
    pub fn push_kmer(&mut self, key: u64, counts: &[u32]) -> Result<(), Error> {
        let k = self.spec.k;
        let is_canonical =
            genuma_kmers::encode::kmer_mask(k) >= key && key <= genuma_kmers::encode::reverse_complement_kmer(key, k);
        let is_above = self.set.last_kmer().is_none_or(|last| last < key);
        let fits = (self.set.len() as u64) < self.spec.num_kmers && counts.len() == self.spec.num_samples;
        if !(is_canonical && is_above && fits) {
            let what =
                format!("entry {}: {key:#x} is not the next canonical {k}-mer, or has other counts", self.set.len());
            return Err(Error::InvalidInput { what });
        }
        self.set.push_kmer(key);
        self.rows.extend_from_slice(counts);
        Ok(())
    }

    /// Joins the k-mers to strings, builds the indexes and returns the dictionary.
    ///
    /// # Errors
    /// Fewer than [`DictionarySpec::num_kmers`] k-mers were added, or the memory does not suffice.
    pub fn build(self) -> Result<Dictionary, Error> {
        let DictionaryBuilder { spec, mut set, rows } = self;
        if set.len() as u64 != spec.num_kmers {
            let what = format!("{} of {} k-mers", set.len(), spec.num_kmers);
            return Err(Error::InvalidInput { what });
        }
        set.complete_prefix_index();
        let used = spec.input_bytes() + FIXED_BYTES;
        let joined = join_kmers_to_strings(set, spec.k, &rows, spec.num_samples, spec.memory_bytes - used);
        let StringsAndCounts { strings, counts } = joined.map_err(|error| match error {
            Error::MemoryLimit { needed_bytes, .. } => {
                Error::MemoryLimit { needed_bytes: needed_bytes + used, allowed_bytes: spec.memory_bytes }
            }
            other => other,
        })?;
        drop(rows);
        let counts = counts.finish();
        let kept = strings.memory_bytes() + 8 * (counts.headers.capacity() + counts.data.capacity()) as u64;
        let (m, memory) = (choose_minimizer_length(spec.k, strings.num_bases), spec.memory_bytes - FIXED_BYTES);
        let (minimizers, frequent) = index_strings(&strings, spec.k, m, memory.saturating_sub(kept))?;
        let DictionarySpec { k, num_kmers, note, .. } = spec;
        Ok(Dictionary { k, m, num_kmers, strings, minimizers, frequent, counts, note })
    }
}

/// Builds the index of minimizers, and the index of k-mers whose minimizers are frequent: they have more than
/// [`MAX_POSITIONS_PER_MINIMIZER`] positions.
fn index_strings(
    strings: &KmerStrings,
    k: u32,
    m: u32,
    memory: u64,
) -> Result<(HashPositionIndex, HashPositionIndex), Error> {
    let position_bits = HashPositionIndex::bits_needed_for_positions(strings.num_bases);
    // An index of n entries takes fewer than 9 bytes for each, an entry of a pass 16.
    let pass_bytes = (memory / 2).max(MIN_PASS_BYTES);
    let scan_minimizers = |each: &mut dyn FnMut(u64, u64)| {
        let mut last = None;
        for_each_kmer_and_its_minimizer(strings, k, m, |_, _, minimizer| {
            if last != Some(minimizer) {
                each(mix_bits(minimizer.hash), minimizer.at);
                last = Some(minimizer);
            }
        });
    };
    let IndexAndFrequentHashes { index, frequent_hashes } =
        build_hash_position_index(&scan_minimizers, position_bits, MAX_POSITIONS_PER_MINIMIZER, pass_bytes)?;
    let frequent_hashes: HashSet<u64> = frequent_hashes.into_iter().collect();
    let scan_kmers = |each: &mut dyn FnMut(u64, u64)| {
        let (mut last, mut is_frequent) = (None, false);
        for_each_kmer_and_its_minimizer(strings, k, m, |start, kmer, minimizer| {
            if last != Some(minimizer.hash) {
                last = Some(minimizer.hash);
                is_frequent = frequent_hashes.contains(&mix_bits(minimizer.hash));
            }
            if is_frequent {
                each(hash_kmer(kmer.canonical()), start);
            }
        });
    };
    let no_kmers = |_: &mut dyn FnMut(u64, u64)| {};
    let frequent = match frequent_hashes.is_empty() {
        true => build_hash_position_index(&no_kmers, position_bits, usize::MAX, pass_bytes)?,
        false => build_hash_position_index(&scan_kmers, position_bits, usize::MAX, pass_bytes)?,
    };
    Ok((index, frequent.index))
}
