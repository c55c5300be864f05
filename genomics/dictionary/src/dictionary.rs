//! Lookups of k-mers.

use genuma_kmers::encode::Kmer;
use genuma_work::hash::mix_bits;

use crate::counts::Counts;
use crate::minimizer::{self, find_minimizer};
use crate::position_index::{HashPositionIndex, IndexEntry};
use crate::sequence::{StringStretch, Strings};

/// A set of k-mers, most of them with a count for each sample, in memory.
#[derive(Debug, Default)]
pub struct Dictionary {
    pub(crate) k: u32,
    /// Length of the minimizers.
    pub(crate) m: u32,
    pub(crate) num_kmers: u64,
    pub(crate) strings: Strings,
    /// Positions of minimizers.
    pub(crate) minimizers: HashPositionIndex,
    /// Positions of the k-mers whose minimizer has too many positions.
    pub(crate) frequent: HashPositionIndex,
    pub(crate) counts: Counts,
    pub(crate) note: Vec<u8>,
}

/// Bytes of the parts of a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DictionaryPartSizes {
    /// Bases of the strings, and where strings begin.
    pub strings: u64,
    /// Positions of minimizers and of k-mers with a frequent minimizer.
    pub index: u64,
    /// Bytes of the counts.
    pub counts: u64,
}

/// Where a k-mer is in the strings.
#[derive(Debug, Clone, Copy)]
struct KmerPlace {
    start: u64,
    /// Whether the string has the requested k-mer itself, rather than its reverse complement.
    is_forward: bool,
    stretch: StringStretch,
}

impl Dictionary {
    /// Length of the k-mers.
    pub fn k(&self) -> u32 {
        self.k
    }

    /// Number of k-mers.
    pub fn len(&self) -> u64 {
        self.num_kmers
    }

    /// Whether there are no k-mers.
    pub fn is_empty(&self) -> bool {
        self.num_kmers == 0
    }

    /// Number of counts of a k-mer; 0 if the dictionary has only the k-mers.
    pub fn num_samples(&self) -> usize {
        self.counts.num_samples
    }

    /// Number of strings into which the k-mers were joined.
    pub fn num_strings(&self) -> u64 {
        self.strings.num_strings
    }

    /// Metadata that [`crate::DictionarySpec`] gave.
    pub fn note(&self) -> &[u8] {
        &self.note
    }

    /// Bytes in memory and in the file, without the header.
    pub fn bytes(&self) -> DictionaryPartSizes {
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

    /// Looks a k-mer up, on either strand. Returns its number: k-mers are numbered from 0 in the order of the strings.
    #[inline]
    pub fn find_kmer(&self, kmer: Kmer) -> Option<u64> {
        let minimizer = find_minimizer(kmer, self.k, self.m);
        self.find_place(kmer, minimizer).0.and_then(|place| self.number_at(place))
    }

    /// The count of a k-mer in a sample. The k-mer is given by its number ([`Dictionary::find_kmer`]).
    ///
    /// # Panics
    /// The dictionary has fewer k-mers or samples.
    #[inline]
    pub fn get_count(&self, number: u64, sample: usize) -> u32 {
        assert!(number < self.num_kmers && sample < self.counts.num_samples);
        self.counts.get_count(number, sample)
    }

    /// Number of a k-mer: each string before its own has k − 1 bases with which no k-mer begins. `None` only for a
    /// damaged file.
    #[inline]
    fn number_at(&self, place: KmerPlace) -> Option<u64> {
        let number = place.start.checked_sub(place.stretch.string * u64::from(self.k - 1))?;
        (number < self.num_kmers).then_some(number)
    }

    /// Finds a k-mer by its minimizer. The second value is whether the index has an entry for the minimizer.
    #[inline]
    fn find_place(&self, kmer: Kmer, minimizer: minimizer::Minimizer) -> (Option<KmerPlace>, bool) {
        let (canonical, other) = (kmer.canonical(), kmer.forward.max(kmer.reverse));
        let from_end = u64::from(self.k - self.m) - minimizer.at;
        let (mut place, mut is_frequent, mut has_entry) = (None, false, false);
        self.minimizers.visit_entries_until(mix_bits(minimizer.hash), |entry| {
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
            self.frequent.visit_entries_until(hash_kmer(canonical), |entry| {
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

    /// The position `start` with its strand, if the k-mer `stored` there is the searched k-mer or its reverse
    /// complement.
    #[inline]
    fn kmer_at(&self, start: Option<u64>, stored: u64, forward: u64) -> Option<KmerPlace> {
        let start = start?;
        if self.strings.kmer_at(start, self.k) != stored {
            return None;
        }
        let stretch = self.strings.stretch_around_base(start)?;
        let inside = start >= stretch.from && start + u64::from(self.k) <= stretch.to;
        inside.then_some(KmerPlace { start, is_forward: stored == forward, stretch })
    }
}

/// Hash of a canonical k-mer in the index of k-mers.
#[inline]
pub(crate) fn hash_kmer(canonical: u64) -> u64 {
    mix_bits(canonical.wrapping_add(1))
}

/// Looks up the k-mers of sequences one after the other. As long as the next base is that of the string, no index is
/// needed.
#[derive(Debug)]
pub struct KmerStream<'d> {
    dictionary: &'d Dictionary,
    /// Start of the previous k-mer in the sequence, and its position in the strings.
    last: Option<(usize, KmerPlace)>,
    /// Hash of the last minimizer that the index lacks.
    absent_minimizer: Option<u64>,
    num_index_lookups: u64,
}

impl<'d> KmerStream<'d> {
    /// A stream that has no k-mer before the first.
    pub fn for_dictionary(dictionary: &'d Dictionary) -> KmerStream<'d> {
        KmerStream { dictionary, last: None, absent_minimizer: None, num_index_lookups: 0 }
    }

    /// Tells the stream that the next lookup is of another sequence.
    pub fn start_sequence(&mut self) {
        self.last = None;
    }

    /// Number of lookups that needed the index.
    pub fn num_index_lookups(&self) -> u64 {
        self.num_index_lookups
    }

    /// Looks up the k-mer that begins at `start` of the sequence, as [`Dictionary::find_kmer`] does.
    #[inline]
    pub fn find_kmer(&mut self, start: usize, kmer: Kmer) -> Option<u64> {
        let before = self.last.take().filter(|(last, _)| last + 1 == start);
        let place = before.and_then(|(_, place)| self.extend(place, kmer)).or_else(|| self.find_by_index(kmer))?;
        self.last = Some((start, place));
        self.dictionary.number_at(place)
    }

    #[inline]
    fn find_by_index(&mut self, kmer: Kmer) -> Option<KmerPlace> {
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

    /// The position of `kmer`, which follows the k-mer at `place` by one base, if the string continues with this base.
    #[inline]
    fn extend(&self, place: KmerPlace, kmer: Kmer) -> Option<KmerPlace> {
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
                strings.stretch_around_base(next.start).filter(|found| found.string == place.stretch.string)?;
            if next.start + k > next.stretch.to {
                return None;
            }
        }
        Some(next)
    }
}
