//! The two files of a minibwa index in memory, with access to their arrays.
//!
//! minibwa's own loader ignores read errors. So the files are read here into newly mapped pages, and their sizes are
//! checked before the C code gets arrays within them.

use std::ops::Range;
use std::path::Path;

use super::super::Error;
use super::super::file_image::{FileImage, array_byte_ranges};

/// Unused bytes before the content of the sequence file, so that its 64-bit words are aligned.
const SEQUENCES_FILE_OFFSET_BYTES: usize = 64;
/// Unused bytes before the content of the transform file, so that its 64-byte blocks, which begin at byte 48, are
/// aligned to cache lines.
const TRANSFORM_FILE_OFFSET_BYTES: usize = 16;

/// The file `PREFIX.l2b`: names and lengths of the sequences, ranges of ambiguous bases, and all bases at 2 bits
/// each.
pub(super) struct PackedSequences {
    image: FileImage,
    /// Number of bases of all sequences (bp).
    pub bases: u64,
    lengths: Range<usize>,
    ambiguous: Range<usize>,
    words: Range<usize>,
    names: Range<usize>,
    comments: Range<usize>,
}

impl PackedSequences {
    /// Reads the file, calls `check` on its bytes, and checks that its size matches its header.
    pub(super) fn read_file(path: &Path, check: impl Fn(&[u8]) -> Result<(), Error>) -> Result<PackedSequences, Error> {
        let image = FileImage::read_file(path, SEQUENCES_FILE_OFFSET_BYTES)?;
        check(&image)?;
        let [_, contigs, bases, ambiguous, masked, names, comments, packed] = image.header_numbers(b"L2B\x01")?;
        let arrays = [(8, 8), (contigs, 8), (ambiguous, 16), (masked, 16), (packed, 8), (names, 1), (comments, 1)];
        let ([_, lengths, ambiguous, _, words, names, comments], end) =
            array_byte_ranges(arrays).ok_or_else(|| image.damaged_error())?;
        // Each sequence has a name and a comment that end with NUL.
        let ended = |texts: &Range<usize>| {
            let texts = &image[texts.clone()];
            memchr::memchr_iter(0, texts).count() as u64 == contigs && texts.last().is_none_or(|&b| b == 0)
        };
        let whole = end == image.len()
            && contigs <= i32::MAX as u64 / 2
            && packed == bases.div_ceil(32)
            && ended(&names)
            && ended(&comments);
        if !whole {
            return Err(image.damaged_error());
        }
        let sequences = PackedSequences { image, bases, lengths, ambiguous, words, names, comments };
        let total = sequences.contig_lengths().iter().try_fold(0u64, |sum, &length| sum.checked_add(length));
        if total == Some(bases) { Ok(sequences) } else { Err(sequences.image.damaged_error()) }
    }

    /// All bytes of the file.
    pub(super) fn file_bytes(&self) -> &[u8] {
        &self.image
    }

    /// The error that this index file cannot be used, with the reason.
    pub(super) fn index_error(&self, reason: impl Into<String>) -> Error {
        self.image.index_error(reason)
    }

    /// Length of each sequence (bp).
    pub(super) fn contig_lengths(&self) -> &[u64] {
        bytemuck::cast_slice(&self.image[self.lengths.clone()])
    }

    /// Ranges of ambiguous bases (not A, C, G or T): first base and end (exclusive), counted over all sequences.
    pub(crate) fn ambiguous_ranges(&self) -> &[[u64; 2]] {
        bytemuck::cast_slice(&self.image[self.ambiguous.clone()])
    }

    /// All bases, 32 per word, the first in the lowest bits.
    pub(super) fn base_words(&self) -> &[u64] {
        bytemuck::cast_slice(&self.image[self.words.clone()])
    }

    /// Names and comments of the sequences, each with a NUL at its end.
    pub(super) fn names_and_comments(&self) -> [impl Iterator<Item = &[u8]>; 2] {
        [&self.names, &self.comments].map(|texts| self.image[texts.clone()].split_inclusive(|&b| b == 0))
    }

    /// Name and length (bp) of each sequence.
    pub(super) fn contigs(&self) -> impl Iterator<Item = (String, u64)> {
        let [names, _] = self.names_and_comments();
        let names = names.map(|name| String::from_utf8_lossy(&name[..name.len() - 1]).into_owned());
        names.zip(self.contig_lengths().iter().copied())
    }
}

/// The file `PREFIX.mbw`: the Burrows-Wheeler transform of both strands with its counts, and the sampled suffix
/// array.
///
/// A block of 128 bases has eight words: four with the count of each base before the block (the highest byte counts
/// its first half), and four with its bases. The total counts follow the last block.
pub(super) struct BurrowsWheelerTransform {
    image: FileImage,
    /// Base-2 logarithm of the distance between sampled rows of the suffix array.
    pub rate: u32,
    /// The row that has the end of the text instead of a base.
    pub end: u64,
    /// For each base the number of smaller bases in the text, and the total number of bases.
    pub less: [u64; 5],
    blocks: Range<usize>,
    samples: Range<usize>,
}

impl BurrowsWheelerTransform {
    /// Reads the file, calls `check` on its bytes, and checks that its size matches its header and the `sequences`.
    pub(super) fn read_file(
        path: &Path,
        sequences: &PackedSequences,
        check: impl Fn(&[u8]) -> Result<(), Error>,
    ) -> Result<BurrowsWheelerTransform, Error> {
        let image = FileImage::read_file(path, TRANSFORM_FILE_OFFSET_BYTES)?;
        check(&image)?;
        let [first, end, counts @ ..] = image.header_numbers::<6>(b"MBW\x02")?;
        let [.., length] = counts;
        if end > length || !counts.is_sorted() {
            return Err(image.damaged_error());
        }
        if sequences.bases.checked_mul(2) != Some(length) {
            let other = sequences.image.path.display();
            return Err(image.index_error(format!("not of the genome that {other} has")));
        }
        let (rate, rows) = ((first >> 32) as u32, length + 1);
        if rate >= 32 {
            return Err(image.damaged_error());
        }
        let samples = rows.div_ceil(1 << rate);
        let arrays = [(6, 8), (length.div_ceil(128), 64), (4, 8), (1, 8), (samples, 8)];
        let ([_, blocks, totals, number, sampled], size) =
            array_byte_ranges(arrays).ok_or_else(|| image.damaged_error())?;
        if size != image.len() || image[number] != samples.to_le_bytes() {
            return Err(image.damaged_error());
        }
        let mut less = [0; 5];
        less[1..].copy_from_slice(&counts);
        Ok(BurrowsWheelerTransform { image, rate, end, less, blocks: blocks.start..totals.end, samples: sampled })
    }

    /// All bytes of the file.
    pub(super) fn file_bytes(&self) -> &[u8] {
        &self.image
    }

    /// The error that this index file cannot be used, with the reason.
    pub(super) fn index_error(&self, reason: impl Into<String>) -> Error {
        self.image.index_error(reason)
    }

    /// Number of bases of both strands (bp).
    pub(super) fn text_len(&self) -> u64 {
        self.less[4]
    }

    /// The blocks of 128 bases of the transform, eight words each, followed by the total counts of the four bases.
    pub(super) fn transform_blocks(&self) -> &[u64] {
        bytemuck::cast_slice(&self.image[self.blocks.clone()])
    }

    /// The sampled suffix array. Its first item has all bits set, in place of the length of the text.
    pub(super) fn suffix_array_samples(&self) -> &[u64] {
        bytemuck::cast_slice(&self.image[self.samples.clone()])
    }
}
