//! The index of a reference: its bases packed at two bits each, and the positions of its seeds.
//!
//! A seed ([`crate::syncmers`]) is looked up in one cache line, its *bucket*: twelve slots, each with a tag of the
//! seed's hash and a position. A seed with more than three positions has one slot, which refers to a *list*: the number
//! of positions on each strand, and the positions. Tags are short, so a slot with the same tag may belong to another
//! seed; the caller compares the bases.
//!
//! ```text
//!  hash  8 bits: partition | bucket in the partition | tag (7 bits)
//!
//!  bucket, 64 bytes:  12 tags of one byte | which slots are lists, number of slots, whether the next bucket continues | 12 positions of 4 bytes
//!  list:              number of positions on the strand whose k-mer was hashed, number on the other strand, then both groups of positions, each sorted
//! ```
//!
//! Positions have 32 bits. For a longer reference the tag holds one more bit of the position and six bits of the
//! hash, and a list has two counts per strand. From 8.6 to 17 Gbp these numbers are two, five and four.
//!
//! An index is one sequence of bytes ([`Index::from_bytes`]), the same in a file and in memory: about 1.1 bytes per
//! base.

mod build;

use std::ops::{Deref, Range};

use bytemuck::{Pod, Zeroable};

use crate::bases::{BASES_PER_WORD, base_code_at};

pub use build::{ReferenceBuilder, build_and_write_index};

/// Padding (bp) before the first and after the last sequence, so that no window around a read leaves the packed
/// words.
pub(crate) const EDGE_PADDING_BP: u64 = 4096;
/// Minimum padding (bp) between two sequences.
pub(crate) const MIN_PADDING_BETWEEN_CONTIGS_BP: u64 = 64;
const SLOTS_PER_BUCKET: usize = 12;
/// Number of partitions of the hash values, by the first eight bits of the hash. Each partition has its own buckets.
const PARTITIONS: u64 = 256;
/// Number of buckets at the end of a partition that only take the seeds for which earlier buckets have no free slot.
const SPARE_BUCKETS: u64 = 16;
/// Maximum number of positions of a seed that are stored in slots of its bucket instead of a list.
const MAX_SINGLE_POSITIONS: usize = 3;
/// The first bytes of an index; the last byte is the format version.
const MAGIC: [u8; 8] = *b"genuma\x00\x01";
/// Alignment (bytes) of the sections with bases, buckets and lists.
const SECTION_ALIGNMENT_BYTES: usize = 4096;

/// A bucket: one cache line with twelve slots, each for one position of a seed or for the list of its positions.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Bucket {
    tags: [u8; SLOTS_PER_BUCKET],
    /// Bits: which slots are lists (12), number of used slots (4), whether the next bucket continues this one (1).
    flags: u32,
    places: [u32; SLOTS_PER_BUCKET],
}

const COUNT_SHIFT: u32 = 12;
const CONTINUES_FLAG: u32 = 1 << 16;

/// One sequence of the reference (a contig).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contig {
    /// Name of the sequence: the first word of its FASTA header.
    pub name: String,
    /// Position of the first base of the contig in the packed bases of the reference.
    pub start: u64,
    /// Length of the sequence in bp, ambiguous bases included.
    pub length: u64,
}

impl Contig {
    /// Position of the end (exclusive) of the contig in the packed bases of the reference.
    pub fn packed_end(&self) -> u64 {
        self.start + self.length
    }
}

/// Why bytes are not a valid index, or an index cannot be built.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// The bytes are not an index.
    #[error("not an index of genuma")]
    NotAnIndex,
    /// The index has a format version that this program does not read.
    #[error("an index of another version of genuma")]
    OtherVersion,
    /// The lengths of the sections are not consistent, or do not fit the number of bytes.
    #[error("cut short or damaged")]
    Damaged,
    /// The reference has more bases than an index can have; the number of its bases, padding included.
    #[error("a reference of {0} bases is too long: at most 17 Gbp are supported")]
    ReferenceTooLong(u64),
    /// Too many seeds belong into one bucket and the spare buckets. Does not happen with real sequences.
    #[error("the reference cannot be indexed (too many hash collisions): please report it")]
    TooManyCollisions,
}

/// An index whose bytes the caller provides, for example as a memory-mapped file.
#[derive(Debug)]
pub struct Index<M> {
    bytes: M,
    contigs: Vec<Contig>,
    /// For each sequence whether it is an ALT contig.
    alt: Vec<bool>,
    /// Packed position of the first ALT contig; the maximum of `u64` without ALT contigs.
    first_alt: u64,
    /// For each block of 65,536 packed bases: number of the first sequence that ends after the start of the block.
    first_contig_by_block: Vec<u32>,
    /// Ranges of packed bases that are ambiguous in the reference, in order.
    ambiguous_ranges: Vec<Range<u64>>,
    head: IndexHeader,
    words: Range<usize>,
    buckets: Range<usize>,
    lists: Range<usize>,
}

/// The numbers that follow [`MAGIC`] in an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct IndexHeader {
    contigs: u64,
    /// Size (bytes) of the section with the names of all sequences, each with a NUL at its end.
    names: u64,
    ambiguous_ranges: u64,
    words: u64,
    /// Number of buckets in a partition, without the spare ones.
    buckets: u64,
    lists: u64,
    /// Number of bits of a position beyond 32.
    extra_position_bits: u64,
}

impl IndexHeader {
    /// Byte ranges of the sections (contigs, names, ambiguous ranges, words, buckets, lists) and the total size of the
    /// index; `None` if the total size overflows.
    fn section_layout(&self) -> Option<([Range<usize>; 6], usize)> {
        let buckets = self.buckets.checked_add(SPARE_BUCKETS)?.checked_mul(PARTITIONS)?;
        let sections = [
            (self.contigs, 16, 8),
            (self.names, 1, 8),
            (self.ambiguous_ranges, 16, 8),
            (self.words, 8, SECTION_ALIGNMENT_BYTES),
            (buckets, 64, SECTION_ALIGNMENT_BYTES),
            (self.lists, 4, SECTION_ALIGNMENT_BYTES),
        ];
        let mut end = MAGIC.len() + size_of::<IndexHeader>();
        let mut ranges = [const { 0..0 }; 6];
        for (range, (items, size, aligned)) in ranges.iter_mut().zip(sections) {
            let start = end.checked_next_multiple_of(aligned)?;
            end = start.checked_add(usize::try_from(items.checked_mul(size)?).ok()?)?;
            *range = start..end;
        }
        Some((ranges, end))
    }
}

impl<M: Deref<Target = [u8]>> Index<M> {
    /// Opens the index in `bytes`, which must be aligned to 64 bytes. Checks the header and the sizes of the sections.
    ///
    /// # Errors
    /// The bytes are not an index, have another format version, or are cut short or damaged. The content itself must be
    /// checked with a checksum.
    pub fn from_bytes(bytes: M) -> Result<Self, Error> {
        let numbers = MAGIC.len() + size_of::<IndexHeader>();
        let Some(begin) = bytes.get(..numbers) else { return Err(Error::NotAnIndex) };
        if begin[..7] != MAGIC[..7] {
            return Err(Error::NotAnIndex);
        }
        if begin[7] != MAGIC[7] {
            return Err(Error::OtherVersion);
        }
        let head: IndexHeader = bytemuck::pod_read_unaligned(&begin[MAGIC.len()..]);
        let ([contigs, names, ambiguous_ranges, words, buckets, lists], end) =
            head.section_layout().ok_or(Error::Damaged)?;
        if bytes.len() != end || head.extra_position_bits > 2 || head.contigs == 0 || head.buckets == 0 {
            return Err(Error::Damaged);
        }
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let bases = head.words * BASES_PER_WORD as u64;
        let mut all: Vec<Contig> = Vec::new();
        let mut texts = bytes[names].split(|&b| b == 0);
        for at in contigs.step_by(16) {
            let name = texts.next().ok_or(Error::Damaged)?;
            let name = String::from_utf8(name.to_vec()).map_err(|_| Error::Damaged)?;
            let contig = Contig { name, start: number(at), length: number(at + 8) };
            let before = all.last().map_or(EDGE_PADDING_BP, |last| last.packed_end() + MIN_PADDING_BETWEEN_CONTIGS_BP);
            let end = contig.start.checked_add(contig.length).and_then(|end| end.checked_add(EDGE_PADDING_BP));
            if contig.start < before || contig.length == 0 || end.is_none_or(|end| end > bases) {
                return Err(Error::Damaged);
            }
            all.push(contig);
        }
        let ambiguous_ranges: Vec<Range<u64>> =
            ambiguous_ranges.step_by(16).map(|at| number(at)..number(at + 8)).collect();
        if !ambiguous_ranges.is_sorted_by(|a, b| a.end <= b.start)
            || ambiguous_ranges.iter().any(|hole| hole.is_empty())
        {
            return Err(Error::Damaged);
        }
        let mut first_contig_by_block = Vec::new();
        for stretch in 0..=(bases >> 16) {
            let from = first_contig_by_block.last().map_or(0, |&n| n as usize);
            let further = all[from..].iter().take_while(|contig| contig.packed_end() <= stretch << 16).count();
            first_contig_by_block.push((from + further).min(all.len() - 1) as u32);
        }
        Ok(Index {
            bytes,
            contigs: all,
            alt: Vec::new(),
            first_alt: u64::MAX,
            first_contig_by_block,
            ambiguous_ranges,
            head,
            words,
            buckets,
            lists,
        })
    }

    /// The index as bytes, as it is stored in its file.
    pub fn as_stored_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The large arrays of the index as bytes, each with its name: `bases`, `buckets`, `lists`.
    pub fn large_arrays_with_names(&self) -> [(&'static str, &[u8]); 3] {
        let of = |range: &Range<usize>| &self.bytes[range.clone()];
        [("bases", of(&self.words)), ("buckets", of(&self.buckets)), ("lists", of(&self.lists))]
    }

    /// The sequences of the reference.
    pub fn contigs(&self) -> &[Contig] {
        &self.contigs
    }

    /// Sets which sequences are ALT contigs: alternative forms of a part of the primary assembly. The index file does
    /// not contain this information.
    pub fn set_alt_contigs(&mut self, is_alt: impl FnMut(&Contig) -> bool) {
        self.alt = self.contigs.iter().map(is_alt).collect();
        let first = self.alt.iter().position(|&alt| alt);
        self.first_alt = first.map_or(u64::MAX, |first| self.contigs[first].start);
    }

    /// The arrays of the index as typed slices, for lookups.
    pub fn view(&self) -> IndexView<'_> {
        IndexView {
            words: bytemuck::cast_slice(&self.bytes[self.words.clone()]),
            buckets: bytemuck::cast_slice(&self.bytes[self.buckets.clone()]),
            lists: bytemuck::cast_slice(&self.bytes[self.lists.clone()]),
            contigs: &self.contigs,
            alt: &self.alt,
            first_alt: self.first_alt,
            first_contig_by_block: &self.first_contig_by_block,
            ambiguous_ranges: &self.ambiguous_ranges,
            buckets_per_partition: self.head.buckets,
            extra_position_bits: self.head.extra_position_bits as u32,
        }
    }
}

/// Where a seed is looked up: the number of its bucket and its tag.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BucketAndTag {
    bucket: u32,
    /// The seed's tag: some bits of its hash, without the strand and position bits that the tag of a slot has as well.
    tag: u8,
}

/// The arrays of an index as typed slices, for lookups.
#[derive(Debug, Clone, Copy)]
pub struct IndexView<'a> {
    /// Bases of all contigs at 2 bits a base, 32 in a word, with padding between contigs.
    pub words: &'a [u64],
    buckets: &'a [Bucket],
    lists: &'a [u32],
    /// The sequences of the reference.
    pub contigs: &'a [Contig],
    alt: &'a [bool],
    first_alt: u64,
    first_contig_by_block: &'a [u32],
    /// Ranges of packed bases that are ambiguous in the reference, in order.
    pub ambiguous_ranges: &'a [Range<u64>],
    buckets_per_partition: u64,
    extra_position_bits: u32,
}

/// Content of a slot of the index: one position of a seed, or a reference to the list of its positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexSlot {
    /// Position of the seed in the packed bases of the reference, and whether the reverse complement of the seed was
    /// hashed there.
    Position(u64, bool),
    /// Offset of the seed's position list in the array of lists, for [`IndexView::position_list`].
    List(u32),
}

/// Splits the hash of a seed into partition, bucket in the partition, and tag.
#[inline(always)]
fn split_hash(hash: u64, buckets_per_partition: u64, extra_position_bits: u32) -> (u64, u64, u8) {
    let bucket = ((hash << 8 >> 32) * buckets_per_partition) >> 32;
    (hash >> 56, bucket, (hash >> 3) as u8 & (0x7f >> extra_position_bits))
}

impl<'a> IndexView<'a> {
    /// The bucket and the tag of the seed with hash `hash`.
    #[inline(always)]
    pub(crate) fn bucket_and_tag_of_hash(&self, hash: u64) -> BucketAndTag {
        let (partition, bucket, tag) = split_hash(hash, self.buckets_per_partition, self.extra_position_bits);
        BucketAndTag { bucket: (partition * (self.buckets_per_partition + SPARE_BUCKETS) + bucket) as u32, tag }
    }

    /// Prefetches the cache line of a bucket, so that the later lookup does not wait for memory.
    #[inline(always)]
    pub(crate) fn prefetch_bucket(&self, address: BucketAndTag) {
        genuma_machine::simd_and_prefetch::prefetch(&self.buckets[address.bucket as usize]);
    }

    /// Passes the content of all slots with the seed's tag to `each`. Some of them may belong to other seeds with the
    /// same tag.
    #[inline(always)]
    pub(crate) fn for_each_slot_with_tag(&self, address: BucketAndTag, mut each: impl FnMut(IndexSlot)) {
        const ONES: u64 = 0x0101_0101_0101_0101;
        let wanted = u64::from(address.tag) * ONES;
        let compared = u64::from(0x7fu8 >> self.extra_position_bits) * ONES;
        let mut at = address.bucket as usize;
        loop {
            let bucket = &self.buckets[at];
            let count = bucket.flags >> COUNT_SHIFT & 15;
            let (low, high) = bucket.tags.split_first_chunk::<8>().expect("twelve tags");
            let high: [u8; 4] = high.try_into().expect("four tags");
            let equal = |tags: u64| {
                let other = (tags ^ wanted) & compared;
                !(other + 0x7f7f_7f7f_7f7f_7f7f) & (ONES << 7)
            };
            // One bit per slot, eight bits apart.
            let (low, high) = (equal(u64::from_le_bytes(*low)), equal(u64::from(u32::from_le_bytes(high))));
            for (mut found, first) in [(low, 0), (high & 0x8080_8080, 8)] {
                while found != 0 {
                    let slot = first + found.trailing_zeros() as usize / 8;
                    found &= found - 1;
                    if slot >= count as usize {
                        break;
                    }
                    let place = bucket.places[slot];
                    each(if bucket.flags >> slot & 1 == 1 {
                        IndexSlot::List(place)
                    } else {
                        let tag = bucket.tags[slot];
                        let high = u64::from(tag & 0x7f) >> (7 - self.extra_position_bits);
                        IndexSlot::Position(high << 32 | u64::from(place), tag >> 7 == 1)
                    });
                }
            }
            at += 1;
            if bucket.flags & CONTINUES_FLAG == 0 || at == self.buckets.len() {
                return;
            }
        }
    }

    /// The position list at offset `at` of the array of lists; empty if there is none.
    #[inline(always)]
    pub(crate) fn position_list(&self, at: u32) -> PositionList<'a> {
        let counts = 2usize << self.extra_position_bits;
        let from = self.lists.get(at as usize..).unwrap_or_default();
        let (counts, places) = from.split_at_checked(counts).unwrap_or_default();
        PositionList { counts, places }
    }

    /// Prefetches the first cache line of the position list at offset `at`.
    #[inline(always)]
    pub(crate) fn prefetch_position_list(&self, at: u32) {
        if let Some(first) = self.lists.get(at as usize) {
            genuma_machine::simd_and_prefetch::prefetch(first);
        }
    }

    /// Prefetches the `length` reference bases from packed position `at` on, with which a read will be compared: at
    /// most two cache lines.
    #[inline(always)]
    pub(crate) fn prefetch_reference_bases(&self, at: u64, length: usize) {
        let last = (at as usize + length) / BASES_PER_WORD;
        if let (Some(one), Some(two)) = (self.words.get(at as usize / BASES_PER_WORD), self.words.get(last)) {
            genuma_machine::simd_and_prefetch::prefetch(one);
            // Prefetching a line again that is being loaded costs time.
            if !genuma_machine::simd_and_prefetch::do_both_start_in_same_cache_line(one, two) {
                genuma_machine::simd_and_prefetch::prefetch(two);
            }
        }
    }

    /// Number of the sequence that contains packed position `at`; in padding, that of the next sequence, or the last
    /// one.
    #[inline(always)]
    pub fn contig_index_at(&self, at: u64) -> usize {
        let mut number =
            self.first_contig_by_block.get((at >> 16) as usize).map_or(self.contigs.len() - 1, |&n| n as usize);
        while number + 1 < self.contigs.len() && self.contigs[number].packed_end() <= at {
            number += 1;
        }
        number
    }

    /// Whether the sequence that contains packed position `at` is an ALT contig.
    #[inline(always)]
    pub fn is_on_alt_contig(&self, at: u64) -> bool {
        at >= self.first_alt && self.alt[self.contig_index_at(at)]
    }

    /// Whether the reference has ALT contigs.
    #[inline(always)]
    pub(crate) fn has_alt_contigs(&self) -> bool {
        self.first_alt != u64::MAX
    }

    /// Packed positions of the first base and of the end (exclusive) of the sequence that contains packed position
    /// `at`.
    #[inline(always)]
    pub(crate) fn contig_bounds(&self, at: u64) -> Range<u64> {
        let contig = &self.contigs[self.contig_index_at(at)];
        contig.start..contig.packed_end()
    }

    /// The ambiguous ranges that overlap a range of packed bases.
    pub fn ambiguous_ranges_in(&self, range: Range<u64>) -> &'a [Range<u64>] {
        let from = self.ambiguous_ranges.partition_point(|hole| hole.end <= range.start);
        let count = self.ambiguous_ranges[from..].iter().take_while(|hole| hole.start < range.end).count();
        &self.ambiguous_ranges[from..from + count]
    }

    /// Code (0 to 3) of the reference base at packed position `at`.
    #[inline(always)]
    pub fn base_code_at(&self, at: u64) -> u8 {
        base_code_at(self.words, at as usize)
    }
}

/// Reference positions of a frequent seed, sorted, separately for both strands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PositionList<'a> {
    counts: &'a [u32],
    places: &'a [u32],
}

impl<'a> PositionList<'a> {
    /// Number of positions of the seed in the reference.
    #[inline(always)]
    pub fn num_positions(&self) -> usize {
        self.counts.iter().map(|&n| n as usize).sum::<usize>().min(self.places.len())
    }

    /// The sorted reference positions of the seed at which the k-mer of the forward strand was hashed, or, if `reverse`
    /// is set, those at which its reverse complement was hashed, because it is the smaller one.
    #[inline(always)]
    pub(crate) fn positions_hashed_on_strand(&self, reverse: bool) -> impl Iterator<Item = u64> + Clone + use<'a> {
        let half = self.counts.len() / 2;
        let first = if reverse { half } else { 0 };
        let skipped: usize = self.counts[..first].iter().map(|&n| n as usize).sum();
        let mut places = self.places.get(skipped..).unwrap_or_default();
        self.counts[first..first + half].iter().enumerate().flat_map(move |(high, &n)| {
            let (these, others) = places.split_at(places.len().min(n as usize));
            places = others;
            these.iter().map(move |&place| (high as u64) << 32 | u64::from(place))
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
