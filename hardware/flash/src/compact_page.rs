//! Compact pages of a table whose values are counts: distances between keys in as few bits as possible, and the counts
//! of each sample in separate streams. Each page can be decoded on its own. `docs/formats/table.md` documents the
//! format.
//!
//! A key is stored as its distance from the previous key, in one of eight bit widths that are chosen for the page. A
//! selector of three bits gives the width; the distances are in a stream after the selectors. Most counts of a sample
//! are stored in a fixed width. A flag of one bit may stand for the most frequent count, and larger counts are stored
//! in full (32 bits) at the end.

use genuma_machine::simd_and_prefetch::SimdLevel;

use crate::page::{CHECKSUMMED_BYTES, PAGE_BYTES, Page};

/// Maximum number of entries on a compact page. It bounds the memory of decoded pages.
pub(crate) const MAX_ENTRIES_PER_COMPACT_PAGE: usize = 2048;
/// Maximum number of counts of an entry (number of samples).
pub(crate) const MAX_COUNTS_PER_ENTRY: usize = 64;
/// Number of different bit widths of key distances on a page.
pub(crate) const NUM_KEY_DISTANCE_WIDTHS: usize = 8;
/// Number of bits of a selector, which selects one of the key widths.
const SELECTOR_BITS: usize = 3;
/// Number of selectors that are read at once: six bytes.
const SELECTORS_PER_READ: usize = 16;
/// Size of the page header in bytes: number of entries, offset of the counts, first key, key widths.
const HEADER_BYTES: usize = 24;
/// Byte offset of the first key on a page.
pub(crate) const FIRST_KEY_OFFSET_BYTES: usize = 8;
/// Size in bytes of the header of each sample's counts: most frequent count, base, width, whether there are flags,
/// number of full counts.
const COUNT_HEADER_BYTES: usize = 12;
/// Byte offset on the page at which the last stream must end: reads from any byte of a stream extend up to 16 bytes
/// further.
const STREAMS_END: usize = CHECKSUMMED_BYTES - 16;
const LAST_WIDE_READ: usize = PAGE_BYTES - 16;
/// Number of flags that are read at once: four bytes.
const FLAGS_PER_READ: usize = 32;
/// Number of bits of a count that is stored in full.
const FULL_COUNT_BITS: u32 = 32;

/// Error message for a page with a valid checksum whose content is not a compact page.
pub(crate) const DAMAGED_COMPACT_PAGE_MESSAGE: &str = "its entries do not fit together";

/// Encoding of the counts that one sample has on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SampleCountEncoding {
    /// The most frequent count, if a flag of one bit encodes it; `None` if it is encoded like all other counts.
    pub common: Option<u32>,
    /// The count that is encoded as 0: counts are stored as differences from it.
    pub base: u32,
    /// Number of bits of an encoded count, 1 to 32. The largest number of this width marks a count that is stored in
    /// full.
    pub width: u8,
}

impl SampleCountEncoding {
    /// The encoded number that marks a count stored in full.
    #[inline(always)]
    fn full_count_marker(self) -> u32 {
        u32::MAX >> (u32::BITS - u32::from(self.width))
    }

    /// Total number of bits that encode `count`, with its flag.
    #[inline(always)]
    pub(crate) fn encoded_bits_of_count(self, count: u32) -> u32 {
        let is_full = count.wrapping_sub(self.base) >= self.full_count_marker();
        let coded = u32::from(self.width) + FULL_COUNT_BITS * u32::from(is_full);
        u32::from(self.common.is_some()) + coded * u32::from(self.common != Some(count))
    }
}

/// Parameters of the encoding of a page: bit widths of key distances, and encodings of counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompactPageEncoding {
    /// Bit widths of key distances, ascending. The last is 64.
    pub key_widths: [u8; NUM_KEY_DISTANCE_WIDTHS],
    /// Encoding of each sample's counts.
    pub count_encodings: Vec<SampleCountEncoding>,
}

impl CompactPageEncoding {
    /// The encoding of the first page, whose entries are not known when it is chosen. Entries have `counts` counts.
    pub(crate) fn first_page_encoding(counts: usize) -> CompactPageEncoding {
        let code = SampleCountEncoding { common: Some(1), base: 0, width: 8 };
        CompactPageEncoding { key_widths: [8, 16, 24, 32, 40, 48, 56, 64], count_encodings: vec![code; counts] }
    }

    /// For each length of a key distance in bits (0 to 64), the selector of the narrowest width that holds it.
    pub(crate) fn key_selectors_by_distance_bits(&self) -> [u8; 65] {
        let mut selectors = [0; 65];
        for (length, selector) in selectors.iter_mut().enumerate() {
            let narrower = self.key_widths.iter().filter(|&&width| usize::from(width) < length).count();
            *selector = narrower.min(NUM_KEY_DISTANCE_WIDTHS - 1) as u8;
        }
        selectors
    }

    /// For each length of a key distance in bits (0 to 64), the number of bits that its encoding takes, with the
    /// selector.
    pub(crate) fn encoded_key_bits_by_distance_bits(&self) -> [u32; 65] {
        self.key_selectors_by_distance_bits()
            .map(|selector| SELECTOR_BITS as u32 + u32::from(self.key_widths[usize::from(selector)]))
    }

    /// Number of bits of a page that are available for streams of entries with `counts` counts. The end of each stream
    /// is padded to a byte.
    pub(crate) fn available_stream_bits(counts: usize) -> u32 {
        let bytes = STREAMS_END - HEADER_BYTES - counts * COUNT_HEADER_BYTES;
        (8 * bytes - 7 * (2 + 2 * counts)) as u32
    }
}

/// Minimum number of entries on a full page if entries have `counts` counts.
pub(crate) fn min_entries_per_full_page(counts: usize) -> u64 {
    let most = SELECTOR_BITS as u64 + 64 + counts as u64 * (1 + 32 + u64::from(FULL_COUNT_BITS));
    (u64::from(CompactPageEncoding::available_stream_bits(counts)) / most).max(1)
}

/// Number of significant bits of the distance between consecutive keys, after subtracting 1 from the distance.
#[inline(always)]
pub(crate) fn bits_of_distance_minus_one(before: u64, key: u64) -> usize {
    (u64::BITS - key.wrapping_sub(before).wrapping_sub(1).leading_zeros()) as usize
}

/// Writes bits to a page, each byte from its lowest bit on. Overwrites up to 8 bytes after the written bits with
/// zeros.
struct BitWriter<'p> {
    page: &'p mut Page,
    /// Offset of the byte that is being filled.
    at: usize,
    /// Bits of the incomplete byte at `at`: the lowest `filled` bits, fewer than 8. They are on the page already, and are
    /// written again with the next bits.
    bits: u64,
    filled: u32,
}

impl<'p> BitWriter<'p> {
    fn new(page: &'p mut Page, at: usize) -> BitWriter<'p> {
        BitWriter { page, at, bits: 0, filled: 0 }
    }

    /// Writes the lowest `width` bits (at most 56) of `bits`; the higher bits must be 0. Has no branch, because it
    /// would be unpredictable.
    #[inline(always)]
    fn write(&mut self, bits: u64, width: u32) {
        let word = self.bits | bits << self.filled;
        self.page.0[self.at..self.at + 8].copy_from_slice(&word.to_le_bytes());
        let filled = self.filled + width;
        self.at += (filled / 8) as usize;
        self.bits = word >> (filled / 8 * 8);
        self.filled = filled % 8;
    }

    /// Writes the lowest `width` bits (at most 64) of `bits`; the higher bits must be 0.
    #[inline(always)]
    fn write_wide(&mut self, bits: u64, width: u32) {
        if width <= 56 {
            self.write(bits, width);
        } else {
            self.write(bits & u64::from(u32::MAX), 32);
            self.write(bits >> 32, width - 32);
        }
    }

    /// Offset in the page of the byte after the written bits.
    fn end_offset(&self) -> usize {
        self.at + usize::from(self.filled > 0)
    }
}

fn put(page: &mut Page, at: usize, bytes: &[u8]) {
    page.0[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Encodes entries as a page, without its checksum. `counts` has the counts of each key, one key after the other. The
/// entries must fit: their bits must not exceed [`CompactPageEncoding::available_stream_bits`].
pub(crate) fn encode_page(code: &CompactPageEncoding, keys: &[u64], counts: &[[u8; 4]], page: &mut Page) {
    page.0.fill(0);
    let samples = code.count_encodings.len();
    let mut at = SimdLevel::widest_available().run_at_level(
        #[inline(always)]
        || encode_keys(code, keys, page),
    );
    put(page, 0, &(keys.len() as u16).to_le_bytes());
    put(page, 2, &(at as u16).to_le_bytes());
    put(page, FIRST_KEY_OFFSET_BYTES, &keys[0].to_le_bytes());
    put(page, 16, &code.key_widths);
    for (sample, &count_code) in code.count_encodings.iter().enumerate() {
        let (end, num_full) = SimdLevel::widest_available().run_at_level(
            #[inline(always)]
            || match samples {
                1 => encode_counts(count_code, counts.iter(), page, at),
                _ => encode_counts(count_code, counts.iter().skip(sample).step_by(samples), page, at),
            },
        );
        let full = (num_full as u16).to_le_bytes();
        let header = HEADER_BYTES + sample * COUNT_HEADER_BYTES;
        put(page, header, &count_code.common.unwrap_or(0).to_le_bytes());
        put(page, header + 4, &count_code.base.to_le_bytes());
        put(page, header + 8, &[count_code.width, u8::from(count_code.common.is_some()), full[0], full[1]]);
        at = end;
    }
}

/// Writes the streams of selectors and key distances. Returns the byte offset of their end.
#[inline(always)]
fn encode_keys(code: &CompactPageEncoding, keys: &[u64], page: &mut Page) -> usize {
    let selector_of_length = code.key_selectors_by_distance_bits();
    let mut selected = [0_u8; MAX_ENTRIES_PER_COMPACT_PAGE];
    let selectors_at = HEADER_BYTES + code.count_encodings.len() * COUNT_HEADER_BYTES;
    let mut selectors = BitWriter::new(page, selectors_at);
    let selected = &mut selected[..keys.len() - 1];
    for (pair, place) in keys.windows(2).zip(&mut *selected) {
        *place = selector_of_length[bits_of_distance_minus_one(pair[0], pair[1])];
    }
    for some in selected.chunks(SELECTORS_PER_READ) {
        let word = some.iter().rev().fold(0, |word, &selector| word << SELECTOR_BITS | u64::from(selector));
        selectors.write(word, (some.len() * SELECTOR_BITS) as u32);
    }
    let distances_at = selectors.end_offset();
    let mut distances = BitWriter::new(page, distances_at);
    for (pair, &selector) in keys.windows(2).zip(&*selected) {
        distances.write_wide(
            pair[1] - pair[0] - 1,
            u32::from(code.key_widths[usize::from(selector) % NUM_KEY_DISTANCE_WIDTHS]),
        );
    }
    distances.end_offset()
}

/// Writes the streams of one sample's counts from byte `at` on. Returns the byte offset of their end, and the number of
/// counts stored in full.
#[inline(always)]
fn encode_counts<'c>(
    code: SampleCountEncoding,
    counts: impl Iterator<Item = &'c [u8; 4]> + Clone,
    page: &mut Page,
    mut at: usize,
) -> (usize, usize) {
    let counts = counts.map(|&count| u32::from_le_bytes(count));
    if let Some(common) = code.common {
        let (mut flags, mut word, mut num_flags) = (BitWriter::new(page, at), 0, 0);
        for count in counts.clone() {
            word |= u64::from(count != common) << num_flags;
            num_flags += 1;
            if num_flags == FLAGS_PER_READ {
                flags.write(word, FLAGS_PER_READ as u32);
                (word, num_flags) = (0, 0);
            }
        }
        flags.write(word, num_flags as u32);
        at = flags.end_offset();
    }
    let (mut numbers, mut full) = (BitWriter::new(page, at), Vec::new());
    for count in counts {
        let number = count.wrapping_sub(code.base).min(code.full_count_marker());
        let is_coded = code.common.is_none_or(|common| count != common);
        // A width of zero writes nothing.
        let mask = u32::from(is_coded).wrapping_neg();
        numbers.write(u64::from(number & mask), u32::from(code.width) & mask);
        if number == code.full_count_marker() && is_coded {
            full.push(count);
        }
    }
    at = numbers.end_offset();
    for count in &full {
        put(page, at, &count.to_le_bytes());
        at += 4;
    }
    (at, full.len())
}

/// Reads 64 bits from any bit offset. Bits after the last stream are undefined.
#[inline(always)]
fn read_bits(page: &Page, bit: usize) -> u64 {
    let at = (bit / 8).min(LAST_WIDE_READ);
    let bytes: [u8; 16] = page.0[at..at + 16].try_into().unwrap_or_default();
    (u128::from_le_bytes(bytes) >> (bit % 8)) as u64
}

/// Reads at least 57 bits from any bit offset, faster than [`read_bits`]. Bits after the last stream are undefined.
#[inline(always)]
fn read_57_bits(page: &Page, bit: usize) -> u64 {
    let at = (bit / 8).min(LAST_WIDE_READ);
    let bytes: [u8; 8] = page.0[at..at + 8].try_into().unwrap_or_default();
    u64::from_le_bytes(bytes) >> (bit % 8)
}

/// Reads a distance of `width` bits (up to 64) from any bit offset. `mask` has the lowest `width` bits set.
#[inline(always)]
fn read_distance(page: &Page, bit: usize, width: usize, mask: u64) -> u64 {
    (if width <= 57 { read_57_bits(page, bit) } else { read_bits(page, bit) }) & mask
}

/// Mask with the lowest `width` bits set.
#[inline(always)]
fn low_bits(width: usize) -> u64 {
    if width == 0 { 0 } else { u64::MAX >> (64 - width) }
}

/// A compact page whose header has been parsed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CompactPage<'p> {
    page: &'p Page,
    num_entries: usize,
    samples: usize,
    counts_at: usize,
    widths: [usize; NUM_KEY_DISTANCE_WIDTHS],
}

/// Positions of the streams of one sample's counts.
struct CountStreams {
    code: SampleCountEncoding,
    flags_at: usize,
    numbers_at: usize,
    full_at: usize,
    num_full: usize,
    end: usize,
}

impl<'p> CompactPage<'p> {
    /// Parses the header of a page whose entries have `samples` counts. `None` if the header is invalid; the headers of
    /// the samples' counts and the streams are not checked.
    #[inline]
    pub(crate) fn parse_header(page: &'p Page, samples: usize) -> Option<CompactPage<'p>> {
        let half = |at: usize| usize::from(u16::from_le_bytes([page.0[at], page.0[at + 1]]));
        let (entries, counts_at) = (half(0), half(2));
        let mut widths = [0; NUM_KEY_DISTANCE_WIDTHS];
        for (width, &byte) in widths.iter_mut().zip(&page.0[16..16 + NUM_KEY_DISTANCE_WIDTHS]) {
            *width = usize::from(byte);
        }
        let fits = (1..=MAX_ENTRIES_PER_COMPACT_PAGE).contains(&entries)
            && counts_at <= STREAMS_END
            && widths.iter().all(|&width| width <= 64)
            && page.0[4..8] == [0; 4];
        fits.then_some(CompactPage { page, num_entries: entries, samples, counts_at, widths })
    }

    /// Number of entries on the page.
    pub(crate) fn num_entries(&self) -> usize {
        self.num_entries
    }

    fn first_key(&self) -> u64 {
        u64::from_le_bytes(self.page.0[FIRST_KEY_OFFSET_BYTES..16].try_into().unwrap_or_default())
    }

    fn selectors_at(&self) -> usize {
        HEADER_BYTES + self.samples * COUNT_HEADER_BYTES
    }

    fn distances_at(&self) -> usize {
        self.selectors_at() + ((self.num_entries - 1) * SELECTOR_BITS).div_ceil(8)
    }

    /// Decodes all keys into `keys`, whose length must be the number of entries. `None` if the page is damaged.
    pub(crate) fn decode_keys(&self, keys: &mut [u64]) -> Option<()> {
        let (bits, rises) = SimdLevel::widest_available().run_at_level(
            #[inline(always)]
            || self.decode_keys_inline(keys),
        );
        (rises && bits.div_ceil(8) == self.counts_at).then_some(())
    }

    /// Decodes all keys. Returns the bit offset after the last distance, and whether the keys are ascending.
    #[inline(always)]
    fn decode_keys_inline(&self, keys: &mut [u64]) -> (usize, bool) {
        let masks = self.widths.map(low_bits);
        let (mut bit, mut key, mut rises) = (8 * self.distances_at(), self.first_key(), true);
        keys[0] = key;
        for (block, keys) in keys[1..].chunks_mut(SELECTORS_PER_READ).enumerate() {
            let mut selectors =
                read_57_bits(self.page, 8 * self.selectors_at() + block * SELECTORS_PER_READ * SELECTOR_BITS);
            for place in keys {
                let selector = selectors as usize % NUM_KEY_DISTANCE_WIDTHS;
                selectors >>= SELECTOR_BITS;
                let distance = read_distance(self.page, bit, self.widths[selector], masks[selector]);
                bit += self.widths[selector];
                let next = key.wrapping_add(distance).wrapping_add(1);
                rises &= next > key;
                key = next;
                *place = key;
            }
        }
        (bit, rises)
    }

    /// Index of the entry with `key` on the page; `None` if the page does not have it.
    pub(crate) fn find_entry(&self, key: u64) -> Option<usize> {
        SimdLevel::widest_available().run_at_level(
            #[inline(always)]
            || self.find_entry_inline(key),
        )
    }

    #[inline(always)]
    fn find_entry_inline(&self, wanted: u64) -> Option<usize> {
        let masks = self.widths.map(low_bits);
        let (mut bit, mut key) = (8 * self.distances_at(), self.first_key());
        for first in (0..self.num_entries - 1).step_by(SELECTORS_PER_READ) {
            if key >= wanted {
                break;
            }
            let mut selectors = read_57_bits(self.page, 8 * self.selectors_at() + first * SELECTOR_BITS);
            for entry in first..(first + SELECTORS_PER_READ).min(self.num_entries - 1) {
                let selector = selectors as usize % NUM_KEY_DISTANCE_WIDTHS;
                selectors >>= SELECTOR_BITS;
                let distance = read_distance(self.page, bit, self.widths[selector], masks[selector]);
                bit += self.widths[selector];
                key = key.wrapping_add(distance).wrapping_add(1);
                if key == wanted {
                    return Some(entry + 1);
                }
            }
        }
        (self.first_key() == wanted).then_some(0)
    }

    /// Finds the streams of a sample's counts, the first of which begins at byte `at`.
    fn count_streams(&self, sample: usize, at: usize) -> Option<CountStreams> {
        let header = HEADER_BYTES + sample * COUNT_HEADER_BYTES;
        let word = |at: usize| u32::from_le_bytes(self.page.0[at..at + 4].try_into().unwrap_or_default());
        let (width, has_flags) = (self.page.0[header + 8], self.page.0[header + 9]);
        let num_full = usize::from(u16::from_le_bytes([self.page.0[header + 10], self.page.0[header + 11]]));
        if !(1..=32).contains(&width) || has_flags > 1 {
            return None;
        }
        let common = (has_flags == 1).then(|| word(header));
        let (numbers_at, num_numbers) = match common {
            Some(_) => (at + self.num_entries.div_ceil(8), self.count_flags(at, self.num_entries)?),
            None => (at, self.num_entries),
        };
        let full_at = numbers_at + (num_numbers * usize::from(width)).div_ceil(8);
        let end = full_at + 4 * num_full;
        let code = SampleCountEncoding { common, base: word(header + 4), width };
        (end <= STREAMS_END).then_some(CountStreams { code, flags_at: at, numbers_at, full_at, num_full, end })
    }

    /// Number of flags that are set among the first `entries` flags of the stream at byte `at`.
    fn count_flags(&self, at: usize, entries: usize) -> Option<usize> {
        let flags = self.page.0[..STREAMS_END].get(at..at + entries.div_ceil(8))?;
        let (words, bytes) = flags.as_chunks::<8>();
        let (last, rest) = (flags.last().copied().unwrap_or(0), entries % 8);
        let beyond = if rest == 0 { 0 } else { (last >> rest).count_ones() };
        let in_words: u32 = words.iter().map(|&word| u64::from_le_bytes(word).count_ones()).sum();
        let in_bytes: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
        Some((in_words + in_bytes - beyond) as usize)
    }

    /// Decodes all counts, one key after the other. `None` if the page is damaged.
    pub(crate) fn decode_counts(&self, counts: &mut [[u8; 4]]) -> Option<()> {
        let mut at = self.counts_at;
        for sample in 0..self.samples {
            let streams = self.count_streams(sample, at)?;
            at = streams.end;
            let counts = &mut *counts;
            let full = SimdLevel::widest_available().run_at_level(
                #[inline(always)]
                || match (streams.code.common, streams.num_full) {
                    (None, 0) => self.decode_stream::<false, false>(&streams, counts, sample),
                    (None, _) => self.decode_stream::<false, true>(&streams, counts, sample),
                    (Some(_), 0) => self.decode_stream::<true, false>(&streams, counts, sample),
                    (Some(_), _) => self.decode_stream::<true, true>(&streams, counts, sample),
                },
            );
            if full != streams.num_full {
                return None;
            }
        }
        Some(())
    }

    /// Decodes the counts of one sample. Returns the number of counts that are stored in full.
    #[inline(always)]
    fn decode_stream<const HAS_FLAGS: bool, const HAS_FULL: bool>(
        &self,
        streams: &CountStreams,
        counts: &mut [[u8; 4]],
        sample: usize,
    ) -> usize {
        let CountStreams { code, flags_at, numbers_at, full_at, .. } = *streams;
        let (full_count_marker, width, common) =
            (code.full_count_marker(), usize::from(code.width), code.common.unwrap_or(0));
        let (mut bit, mut num_full) = (8 * numbers_at, 0);
        for (block, counts) in counts.chunks_mut(FLAGS_PER_READ * self.samples).enumerate() {
            let mut flags = if HAS_FLAGS { read_57_bits(self.page, 8 * flags_at + block * FLAGS_PER_READ) } else { 0 };
            for counts in counts.chunks_mut(self.samples) {
                // Masks instead of branches, which would be unpredictable.
                let coded = if HAS_FLAGS { (flags as u32 & 1).wrapping_neg() } else { u32::MAX };
                flags >>= 1;
                let number = read_57_bits(self.page, bit) as u32 & full_count_marker;
                bit += width & coded as usize;
                let mut count = code.base.wrapping_add(number);
                let is_full = coded != 0 && number == full_count_marker;
                if HAS_FULL && is_full {
                    count = read_57_bits(self.page, 8 * (full_at + 4 * num_full)) as u32;
                }
                num_full += usize::from(is_full);
                counts[sample] = (common ^ (common ^ count) & coded).to_le_bytes();
            }
        }
        num_full
    }

    /// Decodes the counts of one entry. `None` if the page is damaged.
    pub(crate) fn decode_counts_of_entry(&self, entry: usize, counts: &mut [[u8; 4]]) -> Option<()> {
        let mut at = self.counts_at;
        for (sample, place) in counts.iter_mut().enumerate() {
            let streams = self.count_streams(sample, at)?;
            at = streams.end;
            let rank = match streams.code.common {
                Some(common) => {
                    if self.page.0[streams.flags_at + entry / 8] >> (entry % 8) & 1 == 0 {
                        *place = common.to_le_bytes();
                        continue;
                    }
                    self.count_flags(streams.flags_at, entry)?
                }
                None => entry,
            };
            let (full_count_marker, width) = (streams.code.full_count_marker(), usize::from(streams.code.width));
            let number =
                |rank: usize| read_57_bits(self.page, 8 * streams.numbers_at + rank * width) as u32 & full_count_marker;
            let own = number(rank);
            let mut count = streams.code.base.wrapping_add(own);
            if own == full_count_marker {
                let before = (0..rank).filter(|&rank| number(rank) == full_count_marker).count();
                if before >= streams.num_full {
                    return None;
                }
                count = read_57_bits(self.page, 8 * (streams.full_at + 4 * before)) as u32;
            }
            *place = count.to_le_bytes();
        }
        Some(())
    }
}

#[cfg(test)]
mod tests;
