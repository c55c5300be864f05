//! Divides the entries of a table into pages, in the order of the entries.
//!
//! With a fixed layout every page but the last has the same number of entries. A compact page takes entries as long as
//! they fit. The parameters of its encoding are constants for the first page; for others they are chosen from the
//! entries of an earlier page, so that they are known before the page's own entries; neighbouring pages have similar
//! entries. Therefore the pages depend only on the entries, whichever thread encodes a page.

use std::sync::Arc;

use genuma_machine::simd_and_prefetch::SimdLevel;

use crate::compact_page::{
    CompactPageEncoding, NUM_KEY_DISTANCE_WIDTHS, SampleCountEncoding, bits_of_distance_minus_one,
};
use crate::format::{PageEncoding, PageLayout};

/// Number of pages after which the parameters of the encoding are chosen again. With fewer pages they fit the entries
/// better, but choosing them takes more time.
const PAGES_PER_CODE: u64 = 8;
/// For each key width but the last, the share of the key distances that must fit in it. The last width is 64 bits, for
/// distances larger than any observed. Chosen on 31-mers of 5 and 60 Mbp, with and without k-mers of sequencing
/// errors.
const WIDTH_QUANTILES: [f64; NUM_KEY_DISTANCE_WIDTHS - 1] = [0.1, 0.2, 0.3, 0.45, 0.62, 0.82, 1.0];
/// Number of small counts. When an encoding is chosen, the frequency of each smaller count is tallied, and those of
/// larger counts by their number of bits.
const SMALL_COUNTS: usize = 256;

/// Number of entries of a complete page and, for a compact page, the parameters of its encoding.
#[derive(Debug, Clone)]
pub(crate) struct PageEntryCountAndEncoding {
    pub entries: usize,
    pub code: Option<Arc<CompactPageEncoding>>,
}

/// Divides a sequence of entries into pages.
#[derive(Debug)]
pub(crate) struct PageCutter {
    /// Number of entries on the current page.
    entries: usize,
    compact: Option<Box<CompactState>>,
    max_entries: usize,
}

#[derive(Debug)]
struct CompactState {
    samples: usize,
    code: Arc<CompactPageEncoding>,
    key_bits: [u32; 65],
    last_key: u64,
    /// Number of bits that are left in the streams of the current page.
    bits_left: u32,
    num_pages: u64,
    /// Statistics of the entries of the current page, from which the next encoding may be chosen.
    statistics: EntryStatistics,
}

/// Statistics of the entries of a page: lengths of key distances in bits, and frequencies of counts.
#[derive(Debug)]
struct EntryStatistics {
    /// For each length in bits, the number of key distances.
    distances: [u32; 65],
    counts: Vec<CountHistogram>,
}

/// Frequencies of the counts of one sample.
#[derive(Debug, Clone)]
struct CountHistogram {
    small: [u32; SMALL_COUNTS],
    /// For each length in bits, the frequency of counts of [`SMALL_COUNTS`] or more.
    large: [u32; 33],
}

impl PageCutter {
    /// Creates a divider for pages of this layout.
    pub(crate) fn new(layout: PageLayout) -> PageCutter {
        let compact = match layout.encoding {
            PageEncoding::Fixed => None,
            PageEncoding::Compact => Some(Box::new(CompactState::new(layout.counts_per_entry()))),
        };
        PageCutter { entries: 0, compact, max_entries: layout.entries_per_page }
    }

    /// Adds the next entries, and appends the pages that they complete to `cuts`. A page is complete when the next
    /// entry does not fit.
    pub(crate) fn cut_entries_into_pages(
        &mut self,
        keys: &[u64],
        values: &[u8],
        cuts: &mut Vec<PageEntryCountAndEncoding>,
    ) {
        let Some(compact) = &mut self.compact else {
            let mut left = keys.len();
            while self.entries + left > self.max_entries {
                left -= self.max_entries - self.entries;
                cuts.push(PageEntryCountAndEncoding { entries: self.max_entries, code: None });
                self.entries = 0;
            }
            self.entries += left;
            return;
        };
        let counts = values.as_chunks().0;
        let (mut first, samples) = (0, compact.samples);
        while first < keys.len() {
            let room = self.max_entries - self.entries;
            let fit = compact.take_fitting(self.entries, &keys[first..], &counts[first * samples..], room);
            (first, self.entries) = (first + fit, self.entries + fit);
            if first < keys.len() {
                cuts.push(compact.end_page(self.entries));
                self.entries = 0;
            }
        }
    }

    /// Number of entries and encoding of the current page, which is the last and may not be full. `None` if it has no
    /// entries.
    pub(crate) fn last_page_entry_count_and_encoding(&self) -> Option<PageEntryCountAndEncoding> {
        let code = self.compact.as_ref().map(|compact| compact.code.clone());
        (self.entries > 0).then_some(PageEntryCountAndEncoding { entries: self.entries, code })
    }
}

impl CompactState {
    fn new(samples: usize) -> CompactState {
        let code = CompactPageEncoding::first_page_encoding(samples);
        CompactState {
            samples,
            key_bits: code.encoded_key_bits_by_distance_bits(),
            code: Arc::new(code),
            last_key: 0,
            bits_left: CompactPageEncoding::available_stream_bits(samples),
            num_pages: 0,
            statistics: EntryStatistics::new(samples),
        }
    }

    /// Whether statistics of the current page are gathered, from which the next encoding is chosen.
    fn gathers_statistics(&self) -> bool {
        self.num_pages.is_multiple_of(PAGES_PER_CODE)
    }

    /// Adds up to `room` of the next entries to the current page, which has `on_page` entries, as long as they fit.
    /// Returns the number of entries added.
    fn take_fitting(&mut self, on_page: usize, keys: &[u64], counts: &[[u8; 4]], room: usize) -> usize {
        let keys = &keys[..keys.len().min(room)];
        let before = self.last_key;
        let taken = SimdLevel::widest_available().run_at_level(
            #[inline(always)]
            || match self.code.clone().count_encodings[..] {
                [code] => self.add_fitting(&[code], on_page, keys, counts),
                ref codes => self.add_fitting(codes, on_page, keys, counts),
            },
        );
        if self.gathers_statistics() {
            let befores = std::iter::once(before).chain(keys.iter().copied());
            for (entry, (before, &key)) in befores.zip(&keys[..taken]).enumerate() {
                let has_distance = on_page + entry > 0;
                self.statistics.distances[bits_of_distance_minus_one(before, key)] += u32::from(has_distance);
            }
            for own in counts[..taken * self.samples].chunks_exact(self.samples) {
                for (&count, histogram) in own.iter().zip(&mut self.statistics.counts) {
                    histogram.add_count(u32::from_le_bytes(count));
                }
            }
        }
        taken
    }

    #[inline(always)]
    fn add_fitting(
        &mut self,
        codes: &[SampleCountEncoding],
        on_page: usize,
        keys: &[u64],
        counts: &[[u8; 4]],
    ) -> usize {
        let (mut last_key, mut bits_left, mut taken) = (self.last_key, self.bits_left, 0);
        for (&key, own) in keys.iter().zip(counts.chunks_exact(codes.len())) {
            let mut bits =
                if on_page + taken == 0 { 0 } else { self.key_bits[bits_of_distance_minus_one(last_key, key)] };
            for (&count, code) in own.iter().zip(codes) {
                bits += code.encoded_bits_of_count(u32::from_le_bytes(count));
            }
            if bits > bits_left {
                break;
            }
            bits_left -= bits;
            last_key = key;
            taken += 1;
        }
        (self.last_key, self.bits_left) = (last_key, bits_left);
        taken
    }

    fn end_page(&mut self, entries: usize) -> PageEntryCountAndEncoding {
        let cut = PageEntryCountAndEncoding { entries, code: Some(self.code.clone()) };
        if self.gathers_statistics() {
            self.code = Arc::new(self.statistics.choose_code());
            self.key_bits = self.code.encoded_key_bits_by_distance_bits();
            self.statistics = EntryStatistics::new(self.samples);
        }
        self.num_pages += 1;
        self.bits_left = CompactPageEncoding::available_stream_bits(self.samples);
        cut
    }
}

impl EntryStatistics {
    fn new(samples: usize) -> EntryStatistics {
        let histogram = CountHistogram { small: [0; SMALL_COUNTS], large: [0; 33] };
        EntryStatistics { distances: [0; 65], counts: vec![histogram; samples] }
    }

    /// Chooses the encoding for entries with these statistics.
    fn choose_code(&self) -> CompactPageEncoding {
        let mut key_widths = CompactPageEncoding::first_page_encoding(0).key_widths;
        let all: u32 = self.distances.iter().sum();
        if all > 0 {
            let (mut width, mut below) = (0, self.distances[0]);
            for (quantile, chosen) in WIDTH_QUANTILES.iter().zip(&mut key_widths) {
                while f64::from(below) < quantile * f64::from(all) {
                    width += 1;
                    below += self.distances[width];
                }
                *chosen = width as u8;
            }
        }
        CompactPageEncoding {
            key_widths,
            count_encodings: self.counts.iter().map(CountHistogram::choose_code).collect(),
        }
    }
}

impl CountHistogram {
    fn add_count(&mut self, count: u32) {
        match self.small.get_mut(count as usize) {
            Some(number) => *number += 1,
            None => self.large[(u32::BITS - count.leading_zeros()) as usize] += 1,
        }
    }

    fn num_counts(&self) -> u64 {
        self.small.iter().chain(&self.large).map(|&number| u64::from(number)).sum()
    }

    /// Chooses the encoding of counts with these frequencies that takes the fewest bits.
    fn choose_code(&self) -> SampleCountEncoding {
        let (without_flags, bits) = self.best_width(None);
        let (common, number) = (0..).zip(&self.small).max_by_key(|&(_, number)| number).unwrap_or((0, &0));
        let mut others = self.clone();
        others.small[common as usize] -= *number;
        let (with_flags, other_bits) = others.best_width(Some(common));
        if self.num_counts() + other_bits < bits { with_flags } else { without_flags }
    }

    /// The base and width that take the fewest bits, and the number of these bits without the flags. `common` is the
    /// count that a flag encodes.
    fn best_width(&self, common: Option<u32>) -> (SampleCountEncoding, u64) {
        let base = self.small.iter().position(|&number| number > 0).unwrap_or(0) as u32;
        let all = self.num_counts();
        let mut best = (SampleCountEncoding { common, base, width: 1 }, u64::MAX);
        for width in 1..=32 {
            let end = u64::from(base) + (1 << width) - 1;
            let fitting = self.small.iter().take(end.min(SMALL_COUNTS as u64) as usize);
            let large = (0_u64..).zip(&self.large).filter(|&(length, _)| 1 << length <= end).map(|(_, number)| number);
            let fit: u64 = fitting.chain(large).map(|&number| u64::from(number)).sum();
            let bits = all * width + 32 * (all - fit);
            if bits < best.1 {
                best = (SampleCountEncoding { common, base, width: width as u8 }, bits);
            }
            if fit == all {
                break;
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;
    use proptest::prelude::*;

    use super::*;
    use crate::compact_page::{CompactPage, MAX_ENTRIES_PER_COMPACT_PAGE, min_entries_per_full_page};
    use crate::format::Page;

    /// Divides entries into compact pages, `at_once` at a time, encodes and decodes them, and compares. Returns the
    /// number of entries of each page.
    fn check_round_trip(keys: &[u64], counts: &[u32], samples: usize, at_once: usize) -> Vec<usize> {
        let layout = PageLayout::new_compact_layout(4 * samples);
        let values: Vec<u8> = counts.iter().flat_map(|count| count.to_le_bytes()).collect();
        let (mut cutter, mut cuts) = (PageCutter::new(layout), Vec::new());
        for (keys, values) in keys.chunks(at_once).zip(values.chunks(at_once * 4 * samples)) {
            cutter.cut_entries_into_pages(keys, values, &mut cuts);
        }
        cuts.extend(cutter.last_page_entry_count_and_encoding());
        let mut first = 0;
        for cut in &cuts {
            let own = first..first + cut.entries;
            let (own_keys, own_values) = (&keys[own.clone()], &values[own.start * 4 * samples..own.end * 4 * samples]);
            let mut page = Page::zeroed();
            layout.encode_page(cut.code.as_deref(), own_keys, own_values, &mut page);
            assert!(page.0[4088..] == [0; 8], "the checksum has its place");
            assert_eq!(layout.first_key_of_page(&page), own_keys[0]);
            assert_eq!(layout.num_entries_of_page(&page, 0, 0), Some(cut.entries));
            let (mut decoded, mut decoded_values) = (vec![0; cut.entries], vec![0; own_values.len()]);
            layout.decode_entries(&page, &mut decoded, &mut decoded_values).expect("a page");
            assert!(decoded == own_keys && decoded_values == own_values, "page from entry {first}");
            check_single_entries(&page, own_keys, own_values, samples);
            first = own.end;
        }
        assert_eq!(first, keys.len());
        cuts.iter().map(|cut| cut.entries).collect()
    }

    /// Looks up some keys of a page, and keys beside them.
    fn check_single_entries(page: &Page, keys: &[u64], values: &[u8], samples: usize) {
        let page = CompactPage::parse_header(page, samples).expect("a page");
        for (entry, &key) in keys.iter().enumerate().filter(|(entry, _)| entry % 37 == 0 || entry + 2 > keys.len()) {
            assert_eq!(page.find_entry(key), Some(entry));
            let mut counts = vec![[0; 4]; samples];
            page.decode_counts_of_entry(entry, &mut counts).expect("counts");
            assert_eq!(counts.concat(), values[entry * 4 * samples..][..4 * samples]);
            for other in [key.wrapping_sub(1), key.wrapping_add(1)] {
                assert_eq!(page.find_entry(other), keys.binary_search(&other).ok(), "{other}");
            }
        }
    }

    /// Distances of all lengths, often short ones.
    fn distances() -> impl Strategy<Value = Vec<u64>> {
        let distance = (0_u32..64, any::<u64>()).prop_map(|(shift, bits)| bits >> shift);
        let near = (20_u32..30, any::<u64>()).prop_map(|(shift, bits)| bits >> shift);
        let close = (50_u32..64, any::<u64>()).prop_map(|(shift, bits)| bits >> shift);
        prop_oneof![
            proptest::collection::vec(distance, 1..200),
            proptest::collection::vec(near, 1..3000),
            proptest::collection::vec(close, 1..6000),
        ]
    }

    /// Counts as of reads: ones, some near a depth, few large ones.
    fn count(kind: u8, bits: u32) -> u32 {
        match (kind, bits % 16) {
            (0, _) => 1,
            (1, 0..10) => 1,
            (1, 10..15) => 20 + bits % 31,
            (2, 0..8) => 0,
            (3, _) => 300 + bits % 5000,
            (4, 0) => u32::MAX,
            (4, 1) => u32::MAX - 1,
            (_, 15) => bits,
            _ => bits % 64,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn decoded_pages_have_the_entries(
            first in prop_oneof![Just(0), any::<u64>()],
            distances in distances(),
            k in 12_u32..=32,
            samples in prop_oneof![Just(1_usize), Just(2), Just(8), Just(64)],
            kinds in proptest::collection::vec(0_u8..6, 64),
            seed in any::<u32>(),
            at_once in prop_oneof![Just(1_usize), Just(700), Just(100_000)],
        ) {
            // K-mers of k bases are numbers below 4^k.
            let most = u64::MAX >> (64 - 2 * k);
            let mut keys = vec![first & most];
            for distance in distances {
                let Some(key) = keys[keys.len() - 1].checked_add(distance).and_then(|key| key.checked_add(1)) else { break };
                if key > most {
                    break;
                }
                keys.push(key);
            }
            let mut state = seed;
            let mut number = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state.rotate_left(13)
            };
            let counts: Vec<u32> =
                (0..keys.len() * samples).map(|place| count(kinds[place % samples], number())).collect();
            check_round_trip(&keys, &counts, samples, at_once);
        }
    }

    #[test]
    fn extreme_entries_fit() {
        for samples in [1, 3, 64] {
            check_round_trip(&[0], &vec![1; samples], samples, 1);
            check_round_trip(&[u64::MAX], &vec![u32::MAX; samples], samples, 1);
            check_round_trip(&[0, u64::MAX], &vec![0; 2 * samples], samples, 1);
            check_round_trip(&[0, u64::MAX - 1, u64::MAX], &vec![u32::MAX; 3 * samples], samples, 1);
        }
        // Distances and counts that the first code holds badly.
        let keys: Vec<u64> = (0..2000).map(|i| (i << 53) + i * i).collect();
        let pages = check_round_trip(&keys, &vec![u32::MAX; keys.len()], 1, 7);
        let full = &pages[..pages.len() - 1];
        assert!(full.iter().all(|&entries| entries as u64 >= min_entries_per_full_page(1)), "{pages:?}");
    }

    #[test]
    fn a_page_has_a_bounded_number_of_entries() {
        let keys: Vec<u64> = (0..20_000).collect();
        let pages = check_round_trip(&keys, &vec![1; keys.len()], 1, 999);
        assert_eq!(pages[1..5], [MAX_ENTRIES_PER_COMPACT_PAGE; 4]);
    }

    #[test]
    fn codes_follow_the_entries() {
        // As canonical 31-mers of a genome: distances of about 37 bits.
        let mut state = 1_u64;
        let mut number = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 20
        };
        let keys: Vec<u64> = (0..40_000)
            .scan(0, |key, _| {
                *key += 1 + (number() >> 7);
                Some(*key)
            })
            .collect();
        let counts: Vec<u32> =
            (0..40_000).map(|_| if number() % 2 == 0 { 1 } else { 20 + (number() % 20) as u32 }).collect();
        let pages = check_round_trip(&keys, &counts, 1, 1000);
        // 3 + 37 bits a key, and 1 bit for ones or 6 for others: 43.5 bits.
        let mean = keys.len() / pages.len();
        assert!((700..770).contains(&mean), "{mean} entries a page");
    }

    #[test]
    fn pages_of_fixed_layout_are_full() {
        let layout = PageLayout::new_fixed_layout(4);
        let (mut cutter, mut cuts) = (PageCutter::new(layout), Vec::new());
        for n in [340, 1, 339, 0, 681] {
            cutter.cut_entries_into_pages(&vec![0; n], &vec![0; 4 * n], &mut cuts);
        }
        cuts.extend(cutter.last_page_entry_count_and_encoding());
        assert_eq!(cuts.iter().map(|cut| cut.entries).collect::<Vec<_>>(), [340, 340, 340, 340, 1]);
        assert_eq!(PageCutter::new(layout).last_page_entry_count_and_encoding().map(|cut| cut.entries), None);
    }
}
