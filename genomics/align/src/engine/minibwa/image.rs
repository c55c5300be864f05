//! The two files of an index in memory, byte for byte, and what stands where in them.
//!
//! minibwa's own loader does not look at what reading returns. So the files are read here, into pages that nobody had before, and
//! nothing is made of them before it is known to be there: the C code gets arrays that lie within the images.

use std::ops::Range;
use std::path::Path;

use super::super::Error;
use super::super::image::{Image, laid};

/// Free bytes before an image of the sequences: words are where words must be.
const BEFORE_SEQUENCES: usize = 64;
/// Free bytes before an image of the transform: its blocks of 64 bytes, which begin at byte 48, lie in a cache line each.
const BEFORE_TRANSFORM: usize = 16;

/// `PREFIX.l2b`: names and lengths of the sequences, which bases were none of the four, and all bases at two bits each.
pub(super) struct Sequences {
    image: Image,
    /// Bases of all sequences (bp).
    pub bases: u64,
    lengths: Range<usize>,
    ambiguous: Range<usize>,
    words: Range<usize>,
    names: Range<usize>,
    comments: Range<usize>,
}

impl Sequences {
    /// Reads the file, has its bytes checked, and sees that it is as long as it says.
    pub fn read(path: &Path, check: impl Fn(&[u8]) -> Result<(), Error>) -> Result<Sequences, Error> {
        let image = Image::read(path, BEFORE_SEQUENCES)?;
        check(&image)?;
        let [_, contigs, bases, ambiguous, masked, names, comments, packed] = image.head(b"L2B\x01")?;
        let arrays =
            [(8, 8), (contigs, 8), (ambiguous, 16), (masked, 16), (packed, 8), (names, 1), (comments, 1)];
        let ([_, lengths, ambiguous, _, words, names, comments], end) =
            laid(arrays).ok_or_else(|| image.damaged())?;
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
            return Err(image.damaged());
        }
        let sequences = Sequences { image, bases, lengths, ambiguous, words, names, comments };
        let total = sequences.lengths().iter().try_fold(0u64, |sum, &length| sum.checked_add(length));
        if total == Some(bases) { Ok(sequences) } else { Err(sequences.image.damaged()) }
    }

    /// All bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        &self.image
    }

    pub fn wrong(&self, what: impl Into<String>) -> Error {
        self.image.wrong(what)
    }

    /// Length of each sequence (bp).
    pub fn lengths(&self) -> &[u64] {
        bytemuck::cast_slice(&self.image[self.lengths.clone()])
    }

    /// Stretches of bases that are none of the four: first base and the one behind the last, counted over all sequences.
    pub(crate) fn ambiguous(&self) -> &[[u64; 2]] {
        bytemuck::cast_slice(&self.image[self.ambiguous.clone()])
    }

    /// All bases, 32 a word, the first in the lowest bits.
    pub fn words(&self) -> &[u64] {
        bytemuck::cast_slice(&self.image[self.words.clone()])
    }

    /// Names and comments of the sequences, each with its NUL.
    pub fn texts(&self) -> [impl Iterator<Item = &[u8]>; 2] {
        [&self.names, &self.comments].map(|texts| self.image[texts.clone()].split_inclusive(|&b| b == 0))
    }

    /// Name and length (bp) of each sequence.
    pub fn contigs(&self) -> impl Iterator<Item = (String, u64)> {
        let [names, _] = self.texts();
        let names = names.map(|name| String::from_utf8_lossy(&name[..name.len() - 1]).into_owned());
        names.zip(self.lengths().iter().copied())
    }
}

/// `PREFIX.mbw`: the Burrows-Wheeler transform of both strands, with counts, and a sample of the suffix array.
///
/// A block of 128 bases is eight words: how many of each base come before it, with those in its first half in the
/// highest byte, then its bases. Behind the last block are the counts of all.
pub(super) struct Transform {
    image: Image,
    /// Bits of a row's number that are zero where the suffix array is known.
    pub rate: u32,
    /// The row that has the end of the text where others have a base.
    pub end: u64,
    /// How many bases are less than each of the four, and how many there are.
    pub less: [u64; 5],
    blocks: Range<usize>,
    samples: Range<usize>,
}

impl Transform {
    /// Reads the file, has its bytes checked, and sees that it is as long as it says and belongs to `sequences`.
    pub fn read(
        path: &Path,
        sequences: &Sequences,
        check: impl Fn(&[u8]) -> Result<(), Error>,
    ) -> Result<Transform, Error> {
        let image = Image::read(path, BEFORE_TRANSFORM)?;
        check(&image)?;
        let [first, end, counts @ ..] = image.head::<6>(b"MBW\x02")?;
        let [.., length] = counts;
        if end > length || !counts.is_sorted() {
            return Err(image.damaged());
        }
        if sequences.bases.checked_mul(2) != Some(length) {
            let other = sequences.image.path.display();
            return Err(image.wrong(format!("not of the genome that {other} has")));
        }
        let (rate, rows) = ((first >> 32) as u32, length + 1);
        if rate >= 32 {
            return Err(image.damaged());
        }
        let samples = rows.div_ceil(1 << rate);
        let arrays = [(6, 8), (length.div_ceil(128), 64), (4, 8), (1, 8), (samples, 8)];
        let ([_, blocks, totals, number, sampled], size) = laid(arrays).ok_or_else(|| image.damaged())?;
        if size != image.len() || image[number] != samples.to_le_bytes() {
            return Err(image.damaged());
        }
        let mut less = [0; 5];
        less[1..].copy_from_slice(&counts);
        Ok(Transform { image, rate, end, less, blocks: blocks.start..totals.end, samples: sampled })
    }

    /// All bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        &self.image
    }

    pub fn wrong(&self, what: impl Into<String>) -> Error {
        self.image.wrong(what)
    }

    /// Bases of both strands (bp).
    pub fn length(&self) -> u64 {
        self.less[4]
    }

    /// The blocks, and four more counts.
    pub fn blocks(&self) -> &[u64] {
        bytemuck::cast_slice(&self.image[self.blocks.clone()])
    }

    /// The suffix array where it is known; its first item is all ones, not the length of the text.
    pub fn samples(&self) -> &[u64] {
        bytemuck::cast_slice(&self.image[self.samples.clone()])
    }
}
