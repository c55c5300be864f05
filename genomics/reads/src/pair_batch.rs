//! Batches of read pairs. The memory of a batch is reused for further pairs.

/// One read of a pair, borrowed from its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mate<'a> {
    /// Bases as in the file (ASCII, upper or lower case), on the strand that was sequenced.
    pub seq: &'a [u8],
    /// Qualities as in the file (Phred + 33), as many as bases; empty if only the bases of a packed read were unpacked.
    pub qual: &'a [u8],
}

impl Mate<'_> {
    /// A read without bases.
    pub const WITHOUT_BASES: Mate<'static> = Mate { seq: &[], qual: &[] };
}

/// A read pair (both mates of one template), borrowed from its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadPair<'a> {
    /// Name of the template: the first word of the header, without `@` and without a final `/1`. The UMI follows if it
    /// was in tags or bases (see [`crate::umi`]).
    pub name: &'a [u8],
    /// Read 1 and read 2.
    pub mates: [Mate<'a>; 2],
}

/// End offsets in [`PairBatch::bytes`] of the fields of one pair: name, then sequence and quality of each mate.
#[derive(Debug, Clone, Copy)]
struct FieldEnds {
    start: u32,
    name: u32,
    seq: [u32; 2],
    qual: [u32; 2],
}

/// Read pairs of one lane.
#[derive(Debug, Default)]
pub struct PairBatch {
    /// Sample number of the pairs (see [`crate::Lane::sample`]).
    pub sample: u8,
    bytes: Vec<u8>,
    ends: Vec<FieldEnds>,
}

impl PairBatch {
    /// Removes all pairs and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Number of read pairs in the batch.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the batch has no pairs.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Total bytes of names, bases and qualities.
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Copies the name and both mates of a read pair to the end of the batch.
    pub fn push(&mut self, name: &[u8], mates: [Mate<'_>; 2]) {
        self.push_concatenated_parts([name, &[], &[]], mates.map(|mate| [mate, Mate::WITHOUT_BASES]));
    }

    /// Appends a pair whose name is the concatenation of three parts, and each of whose mates is the concatenation of
    /// two parts.
    pub(crate) fn push_concatenated_parts(&mut self, name: [&[u8]; 3], mates: [[Mate<'_>; 2]; 2]) {
        let start = self.bytes.len() as u32;
        let mut append = |pieces: &[&[u8]]| {
            pieces.iter().for_each(|piece| self.bytes.extend_from_slice(piece));
            self.bytes.len() as u32
        };
        let name = append(&name);
        let mut append_mate = |[a, b]: [Mate<'_>; 2]| (append(&[a.seq, b.seq]), append(&[a.qual, b.qual]));
        let (s0, q0) = append_mate(mates[0]);
        let (s1, q1) = append_mate(mates[1]);
        self.ends.push(FieldEnds { start, name, seq: [s0, s1], qual: [q0, q1] });
    }

    /// The pair with index `i`.
    pub fn pair(&self, i: usize) -> ReadPair<'_> {
        let e = self.ends[i];
        let at = |from: u32, to: u32| &self.bytes[from as usize..to as usize];
        ReadPair {
            name: at(e.start, e.name),
            mates: [
                Mate { seq: at(e.name, e.seq[0]), qual: at(e.seq[0], e.qual[0]) },
                Mate { seq: at(e.qual[0], e.seq[1]), qual: at(e.seq[1], e.qual[1]) },
            ],
        }
    }

    /// All pairs in the order in which they were appended.
    pub fn iter(&self) -> impl Iterator<Item = ReadPair<'_>> {
        (0..self.len()).map(|i| self.pair(i))
    }
}
