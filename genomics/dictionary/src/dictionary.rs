//! Looks up k-mers in a dictionary.

use genuma_kmers::encode::KmerOnBothStrands;
use genuma_work::hash::mix_bits;

use crate::counts::CompressedCounts;
use crate::kmer_strings::{KmerStrings, StringRange};
use crate::minimizer::{self, find_minimizer};
use crate::position_index::{HashPositionIndex, IndexEntry};

/// A compressed set of k-mers in memory, usually with a count for each sample.
#[derive(Debug, Default)]
pub struct Dictionary {
    pub(crate) k: u32,
    /// Length of the minimizers in bases.
    pub(crate) m: u32,
    pub(crate) num_kmers: u64,
    pub(crate) strings: KmerStrings,
    /// Index from the hash of a minimizer to its positions in the strings.
    pub(crate) minimizers: HashPositionIndex,
    /// Index from the hash of a k-mer to its position, for k-mers whose minimizer is frequent: it has too many
    /// positions to be indexed.
    pub(crate) frequent: HashPositionIndex,
    pub(crate) counts: CompressedCounts,
    pub(crate) note: Vec<u8>,
}

/// Size of each part of a dictionary in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DictionaryPartSizes {
    /// Bytes of the strings and of the array with their starts.
    pub strings: u64,
    /// Bytes of the indexes of minimizers, and of k-mers with a frequent minimizer.
    pub index: u64,
    /// Bytes of the compressed counts.
    pub counts: u64,
}

/// Position of a k-mer in the strings, and its strand.
#[derive(Debug, Clone, Copy)]
struct KmerPosition {
    start: u64,
    /// Whether the string has the searched k-mer itself; otherwise it has the reverse complement.
    is_forward: bool,
    stretch: StringRange,
}

impl Dictionary {
    /// Length of the k-mers in bases.
    pub fn k(&self) -> u32 {
        self.k
    }

    /// Number of k-mers.
    pub fn len(&self) -> u64 {
        self.num_kmers
    }

    /// Whether the dictionary has no k-mers.
    pub fn is_empty(&self) -> bool {
        self.num_kmers == 0
    }

    /// Number of samples, each of which has a count for each k-mer; 0 if the dictionary has no counts.
    pub fn num_samples(&self) -> usize {
        self.counts.num_samples
    }

    /// Number of strings into which the k-mers were joined.
    pub fn num_strings(&self) -> u64 {
        self.strings.num_strings
    }

    /// Metadata of the file, as given in [`crate::DictionarySpec::note`].
    pub fn note(&self) -> &[u8] {
        &self.note
    }

    /// Size of each part in bytes, equal in memory and in the file. The header of the file is not included.
    pub fn part_sizes(&self) -> DictionaryPartSizes {
        let bytes = |words: &[&Vec<u64>]| words.iter().map(|words| size_of_val(&words[..]) as u64).sum();
        let index =
            |index: &HashPositionIndex| bytes(&[&index.entries_before_group, &index.bucket_sizes, &index.entries]);
        let strings = &self.strings;
        DictionaryPartSizes {
            strings: bytes(&[&strings.bases, &strings.starts_before_block, &strings.starts]),
            index: index(&self.minimizers) + index(&self.frequent),
            counts: bytes(&[&self.counts.headers, &self.counts.data]),
        }
    }

    /// Finds a k-mer or its reverse complement. Returns the number of the k-mer in the order of the strings, from 0;
    /// `None` if the dictionary does not have it.
    #[inline]
    pub fn find_kmer_number(&self, kmer: KmerOnBothStrands) -> Option<u64> {
        let minimizer = find_minimizer(kmer, self.k, self.m);
        self.find_place(kmer, minimizer).0.and_then(|place| self.number_at(place))
    }

    /// The count of a k-mer in a sample. `number` is the number of the k-mer as returned by [`Dictionary::find_kmer_number`].
    ///
    /// # Panics
    /// The dictionary has fewer k-mers or samples.
    #[inline]
    pub fn get_count(&self, number: u64, sample: usize) -> u32 {
        assert!(number < self.num_kmers && sample < self.counts.num_samples);
        self.counts.get_count(number, sample)
    }

    /// Computes the number of a k-mer from its position: the last k − 1 bases of each earlier string begin no k-mer and
    /// are subtracted. `None` only for a damaged file.
    #[inline]
    fn number_at(&self, place: KmerPosition) -> Option<u64> {
        let number = place.start.checked_sub(place.stretch.string * u64::from(self.k - 1))?;
        (number < self.num_kmers).then_some(number)
    }

    /// Finds the position of a k-mer by its minimizer. The second value is whether the index has an entry for the
    /// minimizer, or for another hash with the same bucket and fingerprint.
    #[inline]
    fn find_place(&self, kmer: KmerOnBothStrands, minimizer: minimizer::Minimizer) -> (Option<KmerPosition>, bool) {
        let (canonical, other) = (kmer.canonical(), kmer.forward.max(kmer.reverse));
        let from_end = u64::from(self.k - self.m) - minimizer.at;
        let (mut place, mut is_frequent, mut has_entry) = (None, false, false);
        self.minimizers.visit_entries_of_hash_until(mix_bits(minimizer.hash), |entry| {
            has_entry = true;
            match entry {
                IndexEntry::ManyPositions => is_frequent = true,
                IndexEntry::Position(at) => {
                    place = self.kmer_at(at.checked_sub(minimizer.at), canonical, kmer.forward);
                    if place.is_none() {
                        place = self.kmer_at(at.checked_sub(from_end), other, kmer.forward);
                    }
                }
            }
            place.is_some()
        });
        if place.is_none() && is_frequent {
            self.frequent.visit_entries_of_hash_until(hash_kmer(canonical), |entry| {
                if let IndexEntry::Position(at) = entry {
                    place = self.kmer_at(Some(at), canonical, kmer.forward);
                    if place.is_none() {
                        place = self.kmer_at(Some(at), other, kmer.forward);
                    }
                }
                place.is_some()
            });
        }
        (place, has_entry)
    }

    /// Returns `start` with the strand and the range of the string, if the k-mer at this position equals `stored` and
    /// is inside one string; `forward` is the searched k-mer.
    #[inline]
    fn kmer_at(&self, start: Option<u64>, stored: u64, forward: u64) -> Option<KmerPosition> {
        let start = start?;
        if self.strings.kmer_at(start, self.k) != stored {
            return None;
        }
        let stretch = self.strings.range_in_one_string_around(start)?;
        let inside = start >= stretch.from && start + u64::from(self.k) <= stretch.to;
        inside.then_some(KmerPosition { start, is_forward: stored == forward, stretch })
    }
}

/// Hash of a canonical k-mer, by which the index of k-mers with frequent minimizers finds it.
#[inline]
pub(crate) fn hash_kmer(canonical: u64) -> u64 {
    mix_bits(canonical.wrapping_add(1))
}

/// Looks up consecutive k-mers of a sequence. As long as the sequence continues like the string of the k-mer before,
/// the index is not needed.
#[derive(Debug)]
pub struct SequenceKmerLookup<'d> {
    dictionary: &'d Dictionary,
    /// The last k-mer, if the dictionary has it: its start in the sequence, and its position in the strings.
    last: Option<(usize, KmerPosition)>,
    /// Hash of the last minimizer that the index does not have.
    absent_minimizer: Option<u64>,
    num_index_lookups: u64,
}

impl<'d> SequenceKmerLookup<'d> {
    /// Creates a lookup of k-mers in `dictionary`, ready for the first k-mer of a sequence.
    pub fn for_dictionary(dictionary: &'d Dictionary) -> SequenceKmerLookup<'d> {
        SequenceKmerLookup { dictionary, last: None, absent_minimizer: None, num_index_lookups: 0 }
    }

    /// Starts another sequence: the next k-mer does not continue the one before.
    pub fn start_query_sequence(&mut self) {
        self.last = None;
    }

    /// Number of lookups so far that used the index.
    pub fn num_index_lookups(&self) -> u64 {
        self.num_index_lookups
    }

    /// Finds `kmer`, which begins at index `start` of the sequence. Returns its number, or `None`, as
    /// [`Dictionary::find_kmer_number`] does.
    #[inline]
    pub fn find_kmer_number(&mut self, start: usize, kmer: KmerOnBothStrands) -> Option<u64> {
        let before = self.last.take().filter(|(last, _)| last + 1 == start);
        let place = before.and_then(|(_, place)| self.extend(place, kmer)).or_else(|| self.find_by_index(kmer))?;
        self.last = Some((start, place));
        self.dictionary.number_at(place)
    }

    #[inline]
    fn find_by_index(&mut self, kmer: KmerOnBothStrands) -> Option<KmerPosition> {
        let Dictionary { k, m, .. } = *self.dictionary;
        let minimizer = find_minimizer(kmer, k, m);
        if self.absent_minimizer == Some(minimizer.hash) {
            return None;
        }
        self.num_index_lookups += 1;
        let (place, has_entry) = self.dictionary.find_place(kmer, minimizer);
        if !has_entry {
            self.absent_minimizer = Some(minimizer.hash);
        }
        place
    }

    /// The position of `kmer`, which begins one base after the k-mer at `place`. `None` if the string does not continue
    /// with the last base of `kmer`.
    #[inline]
    fn extend(&self, place: KmerPosition, kmer: KmerOnBothStrands) -> Option<KmerPosition> {
        let strings = &self.dictionary.strings;
        let k = u64::from(self.dictionary.k);
        let mut next = place;
        let base = if place.is_forward {
            next.start += 1;
            strings.kmer_at(place.start + k, 1) == kmer.forward & 3
        } else {
            next.start = next.start.checked_sub(1)?;
            strings.kmer_at(next.start, 1) == 3 - (kmer.forward & 3)
        };
        if !base {
            return None;
        }
        if next.start < next.stretch.from || next.start + k > next.stretch.to {
            // A stretch is a part of its string.
            next.stretch =
                strings.range_in_one_string_around(next.start).filter(|found| found.string == place.stretch.string)?;
            if next.start + k > next.stretch.to {
                return None;
            }
        }
        Some(next)
    }
}
