//! Counts of k-mers in the order of the strings, compressed in blocks.
//!
//! K-mers next to each other in a string have similar counts, because the same reads cover them. A block stores, for
//! each sample, how much each count exceeds a base in a fixed number of bits. Counts below the base, or too far above
//! it, are stored in full (32 bits).

use crate::bits::{BitWriter, push_word_with_small_growth, read_bits};

/// Number of k-mers in a block.
pub(crate) const KMERS_PER_BLOCK: u64 = 64;
const OFFSET_BITS: u32 = 48;
/// Bits of a header field that contains a bit width of at most 32.
const WIDTH_BITS: u32 = 6;
/// Bits of a count that is stored in full.
const FULL_BITS: u32 = 32;

/// Header of the counts of one sample in one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BlockHeader {
    /// Offset in bits of the counts in [`CompressedCounts::data`].
    offset: u64,
    base_width: u32,
    /// Number of bits in which each count minus the base is stored.
    width: u32,
    /// Whether some counts are stored in full. If so, all ones in place of the difference mark them.
    has_full_counts: bool,
}

impl BlockHeader {
    fn pack(self) -> u64 {
        let widths = u64::from(self.base_width) | u64::from(self.width) << WIDTH_BITS;
        self.offset | (widths | u64::from(self.has_full_counts) << (2 * WIDTH_BITS)) << OFFSET_BITS
    }

    #[inline]
    fn unpack(word: u64) -> BlockHeader {
        let width = |bits: u64| (bits as u32 & ((1 << WIDTH_BITS) - 1)).min(FULL_BITS);
        BlockHeader {
            offset: word & ((1 << OFFSET_BITS) - 1),
            base_width: width(word >> OFFSET_BITS),
            width: width(word >> (OFFSET_BITS + WIDTH_BITS)),
            has_full_counts: word >> (OFFSET_BITS + 2 * WIDTH_BITS) & 1 == 1,
        }
    }
}

/// Parameters of the encoding of one sample's counts in a block: differences of `width` bits from `base`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BlockCode {
    base: u32,
    width: u32,
    has_full_counts: bool,
    num_bits: u64,
}

/// Chooses the base and width that encode one sample's counts of a block in the fewest bits, apart from the bits of the
/// base. `sorted` has these counts in ascending order, at least one.
fn choose_code(sorted: &[u32]) -> BlockCode {
    let num_counts = sorted.len() as u64;
    let (first, last) = (sorted[0], sorted[sorted.len() - 1]);
    let max_width = u32::BITS - (last - first).leading_zeros();
    let num_bits = num_counts * u64::from(max_width);
    let mut best = BlockCode { base: first, width: max_width, has_full_counts: false, num_bits };
    for width in 1..max_width {
        if num_counts * u64::from(width) + u64::from(FULL_BITS) >= best.num_bits {
            break;
        }
        // The largest number stands for full counts.
        let max_distance = (1u32 << width) - 2;
        let (mut low, mut fitting, mut base) = (0, 0, first);
        for (high, &count) in sorted.iter().enumerate() {
            while count - sorted[low] > max_distance {
                low += 1;
            }
            if high + 1 - low > fitting {
                (fitting, base) = (high + 1 - low, sorted[low]);
            }
        }
        let num_full = num_counts - fitting as u64;
        let num_bits = num_counts * u64::from(width) + u64::from(FULL_BITS) * num_full;
        if num_bits < best.num_bits {
            best = BlockCode { base, width, has_full_counts: true, num_bits };
        }
    }
    best
}

/// Compresses the counts of all samples, k-mer by k-mer.
#[derive(Debug)]
pub(crate) struct DictionaryCountsBuilder {
    num_samples: usize,
    num_kmers: u64,
    /// For each sample, the counts of the current block, which is not encoded yet.
    block: Vec<Vec<u32>>,
    sorted: Vec<u32>,
    headers: Vec<u64>,
    data: BitWriter,
}

impl DictionaryCountsBuilder {
    /// Creates an empty builder for k-mers with `num_samples` counts each.
    pub(crate) fn with_num_samples(num_samples: usize) -> DictionaryCountsBuilder {
        let block = vec![Vec::with_capacity(KMERS_PER_BLOCK as usize); num_samples];
        let (sorted, headers, data) = (Vec::new(), Vec::new(), BitWriter::default());
        DictionaryCountsBuilder { num_samples, num_kmers: 0, block, sorted, headers, data }
    }

    /// Appends the counts of the next k-mer, one for each sample.
    #[inline]
    pub(crate) fn push_counts(&mut self, counts: &[u32]) {
        for (block, &count) in self.block.iter_mut().zip(counts) {
            block.push(count);
        }
        self.num_kmers += 1;
        if self.block.first().is_some_and(|block| block.len() as u64 == KMERS_PER_BLOCK) {
            self.write_block();
        }
    }

    fn write_block(&mut self) {
        for block in &mut self.block {
            self.sorted.clear();
            self.sorted.extend_from_slice(block);
            self.sorted.sort_unstable();
            let code = choose_code(&self.sorted);
            let base_width = u32::BITS - code.base.leading_zeros();
            let (width, has_full_counts) = (code.width, code.has_full_counts);
            let header = BlockHeader { offset: self.data.num_bits(), base_width, width, has_full_counts };
            push_word_with_small_growth(&mut self.headers, header.pack());
            self.data.push_bits(u64::from(code.base), base_width);
            let escape = (1u64 << width) - 1;
            let number = |count: u32| match u64::from(count.wrapping_sub(code.base)) {
                distance if has_full_counts => distance.min(escape),
                distance => distance,
            };
            block.iter().for_each(|&count| self.data.push_bits(number(count), width));
            let is_full = |&count: &u32| has_full_counts && number(count) == escape;
            block.iter().copied().filter(is_full).for_each(|count| self.data.push_bits(count.into(), FULL_BITS));
            block.clear();
        }
    }

    /// Number of bytes of memory allocated for the encoded blocks.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.headers.capacity() * size_of::<u64>()) as u64 + self.data.memory_bytes()
    }

    /// Encodes the last block and returns the compressed counts of all k-mers.
    pub(crate) fn finish(mut self) -> CompressedCounts {
        if self.block.first().is_some_and(|block| !block.is_empty()) {
            self.write_block();
        }
        let DictionaryCountsBuilder { num_samples, num_kmers, headers, data, .. } = self;
        CompressedCounts { num_samples, num_kmers, headers, data: data.into_words() }
    }
}

/// The counts of all k-mers of a dictionary in all samples, compressed.
#[derive(Debug, Default)]
pub(crate) struct CompressedCounts {
    pub(crate) num_samples: usize,
    pub(crate) num_kmers: u64,
    /// Packed [`BlockHeader`]s: one for each sample of each block.
    pub(crate) headers: Vec<u64>,
    pub(crate) data: Vec<u64>,
}

impl CompressedCounts {
    /// Number of block headers for `num_kmers` k-mers of `num_samples` samples.
    pub(crate) fn num_block_headers(num_kmers: u64, num_samples: u64) -> u64 {
        num_kmers.div_ceil(KMERS_PER_BLOCK) * num_samples
    }

    /// The count of a k-mer in a sample. `kmer` is the number of the k-mer in the order of the strings, from 0.
    #[inline]
    pub(crate) fn get_count(&self, kmer: u64, sample: usize) -> u32 {
        let block = (kmer / KMERS_PER_BLOCK) as usize * self.num_samples + sample;
        let header = BlockHeader::unpack(self.headers.get(block).copied().unwrap_or(0));
        let base = read_bits(&self.data, header.offset, header.base_width) as u32;
        let numbers = header.offset + u64::from(header.base_width);
        let number_at = |at: u64| read_bits(&self.data, numbers + at * u64::from(header.width), header.width);
        let (at, escape) = (kmer % KMERS_PER_BLOCK, (1u64 << header.width) - 1);
        let number = number_at(at);
        if !header.has_full_counts || number != escape {
            return base.wrapping_add(number as u32);
        }
        let num_before = (0..at).filter(|&before| number_at(before) == escape).count() as u64;
        let in_block = KMERS_PER_BLOCK.min(self.num_kmers - (kmer - at));
        let full_counts = numbers + in_block * u64::from(header.width);
        read_bits(&self.data, full_counts + num_before * u64::from(FULL_BITS), FULL_BITS) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_come_back() {
        let scrambled = |i: u64| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let kinds: [&dyn Fn(u64) -> u32; 5] = [
            &|_| 30,
            &|i| 20 + (scrambled(i) % 7) as u32,
            &|i| if scrambled(i) % 20 == 0 { scrambled(i) as u32 } else { 17 + (i % 4) as u32 },
            &|i| scrambled(i) as u32,
            &|i| [0, u32::MAX, 1][(scrambled(i) % 3) as usize],
        ];
        for num_kmers in [1, 63, 64, 65, 1000] {
            let mut builder = DictionaryCountsBuilder::with_num_samples(kinds.len());
            let row = |i: u64| kinds.map(|kind| kind(i));
            (0..num_kmers).for_each(|i| builder.push_counts(&row(i)));
            let counts = builder.finish();
            assert_eq!(counts.headers.len() as u64, CompressedCounts::num_block_headers(num_kmers, kinds.len() as u64));
            for i in 0..num_kmers {
                let found: Vec<u32> = (0..kinds.len()).map(|sample| counts.get_count(i, sample)).collect();
                assert_eq!(found, row(i), "k-mer {i} of {num_kmers}");
            }
        }
    }

    #[test]
    fn equal_counts_take_no_bits_and_outliers_do_not_widen_a_block() {
        assert_eq!(choose_code(&[30; 64]).num_bits, 0);
        let mut sorted: Vec<u32> = (0..64).map(|i| 20 + i % 6).collect();
        sorted[0] = 5000;
        sorted.sort_unstable();
        let code = choose_code(&sorted);
        assert_eq!((code.base, code.width, code.has_full_counts), (20, 3, true));
        assert_eq!(code.num_bits, 3 * 64 + 32);
    }
}
