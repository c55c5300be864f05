//! The two files of an index in memory, byte for byte, and what stands where in them.
//!
//! minibwa's own loader does not look at what reading returns. So the files are read here, into pages that nobody had before, and
//! nothing is made of them before it is known to be there: the C code gets arrays that lie within the images.

use std::fs::File;
use std::io::{self, Read};
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};

use memmap2::{Advice, MmapMut};

use super::super::Error;

/// Free bytes before an image of the sequences: words are where words must be.
const BEFORE_SEQUENCES: usize = 64;
/// Free bytes before an image of the transform: its blocks of 64 bytes, which begin at byte 48, lie in a cache line each.
const BEFORE_TRANSFORM: usize = 16;

/// A whole file in memory.
pub(super) struct Image {
    path: PathBuf,
    pages: MmapMut,
    start: usize,
}

impl Image {
    /// Reads a file behind `start` free bytes. The calling thread touches all pages first: its memory policy decides where they go.
    fn read(path: &Path, start: usize) -> Result<Image, Error> {
        let file = File::open(path).map_err(Error::io(path))?;
        let size = file.metadata().map_err(Error::io(path))?.len();
        let pages = filled(file, size, start).map_err(Error::io(path))?;
        Ok(Image { path: path.into(), pages, start })
    }

    fn wrong(&self, what: impl Into<String>) -> Error {
        Error::Index { path: self.path.clone(), what: what.into() }
    }

    fn damaged(&self) -> Error {
        self.wrong("cut short or damaged")
    }

    /// The 64-bit numbers it begins with.
    fn head<const N: usize>(&self, magic: &[u8]) -> Result<[u64; N], Error> {
        let mut numbers = [[0; 8]; N];
        match self.get(..8 * N) {
            Some(bytes) if bytes.starts_with(magic) => numbers.as_flattened_mut().copy_from_slice(bytes),
            _ => return Err(self.wrong("not an index of minibwa")),
        }
        Ok(numbers.map(u64::from_le_bytes))
    }
}

impl Deref for Image {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.pages[self.start..]
    }
}

fn filled(mut from: impl Read, size: u64, start: usize) -> io::Result<MmapMut> {
    let all = usize::try_from(size).ok().and_then(|size| size.checked_add(start));
    let mut pages = MmapMut::map_anon(all.ok_or(io::ErrorKind::OutOfMemory)?)?;
    // A huge page lies on one node: what is to be in such is gathered later, what is spread over nodes stays in small ones. A kernel without
    // huge pages refuses.
    let _ = pages.advise(Advice::NoHugePage);
    from.read_exact(&mut pages[start..])?;
    Ok(pages)
}

/// Where arrays of so many items of such a size lie one after the other; none if that is beyond all memory.
fn laid<const N: usize>(arrays: [(u64, u64); N]) -> Option<([Range<usize>; N], usize)> {
    let mut end = 0usize;
    let mut ranges = [const { 0..0 }; N];
    for (range, (items, size)) in ranges.iter_mut().zip(arrays) {
        let start = end;
        end = end.checked_add(usize::try_from(items.checked_mul(size)?).ok()?)?;
        *range = start..end;
    }
    Some((ranges, end))
}

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
    pub fn ambiguous(&self) -> &[[u64; 2]] {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that breaks off with an error.
    struct Broken(usize);

    impl Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::Error::from_raw_os_error(libc::EIO));
            }
            let n = buffer.len().min(self.0).min(7);
            self.0 -= n;
            Ok(n)
        }
    }

    #[test]
    fn what_cannot_be_read_to_its_end_is_not_taken() {
        assert_eq!(filled(Broken(100), 100, 16).unwrap().len(), 116);
        for broken in [0, 1, 99] {
            let error = filled(Broken(broken), 100, 16).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EIO));
        }
        assert_eq!(filled(&b"short"[..], 6, 16).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert!(filled(io::empty(), u64::MAX, 16).is_err());
    }

    #[test]
    fn no_array_lies_beyond_memory() {
        assert_eq!(laid([(2, 8), (3, 1)]), Some(([0..16, 16..19], 19)));
        assert_eq!(laid([(u64::MAX, 8)]), None);
        assert_eq!(laid([(u64::MAX - 7, 1), (8, 1)]), None);
    }
}
