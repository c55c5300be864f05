//! Batches of read pairs: one allocation for many reads, recycled by its owner.

/// One read of a pair, borrowed from its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mate<'a> {
    /// Bases as they stand in the file (ASCII).
    pub seq: &'a [u8],
    /// Qualities as they stand in the file (Phred + 33), as long as `seq`.
    pub qual: &'a [u8],
}

/// Two mates of one template, borrowed from their batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair<'a> {
    /// Template name: the first word of the header, without `@` and without a closing `/1`.
    pub name: &'a [u8],
    /// Read 1 and read 2.
    pub mates: [Mate<'a>; 2],
}

/// End offsets of one pair's fields in [`PairBatch::bytes`]: name, then sequence and quality of each mate.
#[derive(Debug, Clone, Copy)]
struct Ends {
    start: u32,
    name: u32,
    seq: [u32; 2],
    qual: [u32; 2],
}

/// Some consecutive read pairs of one lane.
#[derive(Debug, Default)]
pub struct PairBatch {
    /// Which sample the pairs belong to (see [`crate::Lane::sample`]).
    pub sample: u8,
    bytes: Vec<u8>,
    ends: Vec<Ends>,
}

impl PairBatch {
    /// Forgets the pairs and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no pair in it.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of names, bases and qualities held.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Appends a pair.
    pub fn push(&mut self, name: &[u8], mates: [Mate<'_>; 2]) {
        let start = self.bytes.len() as u32;
        let mut put = |s: &[u8]| {
            self.bytes.extend_from_slice(s);
            self.bytes.len() as u32
        };
        let name = put(name);
        let (s0, q0) = (put(mates[0].seq), put(mates[0].qual));
        let (s1, q1) = (put(mates[1].seq), put(mates[1].qual));
        self.ends.push(Ends { start, name, seq: [s0, s1], qual: [q0, q1] });
    }

    /// The pair at `i`.
    pub fn pair(&self, i: usize) -> Pair<'_> {
        let e = self.ends[i];
        let at = |from: u32, to: u32| &self.bytes[from as usize..to as usize];
        Pair {
            name: at(e.start, e.name),
            mates: [
                Mate { seq: at(e.name, e.seq[0]), qual: at(e.seq[0], e.qual[0]) },
                Mate { seq: at(e.qual[0], e.seq[1]), qual: at(e.seq[1], e.qual[1]) },
            ],
        }
    }

    /// All pairs in file order.
    pub fn iter(&self) -> impl Iterator<Item = Pair<'_>> {
        (0..self.len()).map(|i| self.pair(i))
    }
}
