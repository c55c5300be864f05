//! Batches of reads in the order of their files: one allocation for many reads, recycled by its owner.

/// One read, borrowed from its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadRef<'a> {
    /// First word of the header, without `@` or `>`; of a mate also without a closing `/1` or `/2`. The whole header where
    /// [`StreamOptions::whole_headers`](crate::StreamOptions::whole_headers) says so.
    pub name: &'a [u8],
    /// What follows the name on the header line, after one blank; empty when nothing does.
    pub comment: &'a [u8],
    /// Bases as they stand in the file (ASCII, either case).
    pub seq: &'a [u8],
    /// Qualities as they stand in the file (Phred + 33), as long as `seq`; empty for reads from FASTA.
    pub qual: &'a [u8],
}

/// Where a read lies in [`ReadBatch::bytes`]: its fields follow each other in the order of [`ReadRef`].
#[derive(Debug, Clone, Copy)]
struct Fields {
    start: usize,
    name: u32,
    comment: u32,
    seq: u32,
    qual: u32,
}

/// Some consecutive reads of one lane, in the order of its files.
#[derive(Debug, Default)]
pub struct ReadBatch {
    /// Whether reads 2i and 2i + 1 are mates: read 1 and read 2 of one template.
    pub paired: bool,
    /// Number of the lane, from 0: the index of its read group.
    pub lane: u32,
    /// Reads of the lane before this batch.
    pub before: u64,
    bytes: Vec<u8>,
    fields: Vec<Fields>,
    bases: u64,
}

impl ReadBatch {
    /// An empty batch without memory of its own.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets the reads and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.fields.clear();
        self.bases = 0;
    }

    /// Number of reads: twice the number of templates when `paired`.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there is no read in it.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Bases of all its reads.
    pub fn bases(&self) -> u64 {
        self.bases
    }

    /// Bytes of names, comments, bases and qualities held.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Appends a read.
    ///
    /// # Panics
    /// A field is 4 GiB long or longer.
    pub fn push(&mut self, read: ReadRef<'_>) {
        let start = self.bytes.len();
        let mut put = |field: &[u8]| {
            self.bytes.extend_from_slice(field);
            u32::try_from(field.len()).expect("a field of a read is shorter than 4 GiB")
        };
        let name = put(read.name);
        let comment = put(read.comment);
        let seq = put(read.seq);
        let qual = put(read.qual);
        self.fields.push(Fields { start, name, comment, seq, qual });
        self.bases += u64::from(seq);
    }

    /// The read at `i`.
    ///
    /// # Panics
    /// There is no such read.
    pub fn read(&self, i: usize) -> ReadRef<'_> {
        let fields = self.fields[i];
        let (name, rest) = self.bytes[fields.start..].split_at(fields.name as usize);
        let (comment, rest) = rest.split_at(fields.comment as usize);
        let (seq, rest) = rest.split_at(fields.seq as usize);
        ReadRef { name, comment, seq, qual: &rest[..fields.qual as usize] }
    }

    /// All reads in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = ReadRef<'_>> {
        (0..self.len()).map(|i| self.read(i))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_come_back_as_they_were_put() {
        let reads = [
            ReadRef { name: b"a", comment: b"1:N:0:ACGT", seq: b"ACGTN", qual: b"FFF#!" },
            ReadRef { name: b"from_fasta", comment: b"", seq: b"acg", qual: b"" },
            ReadRef { name: b"empty", comment: b" two  words\t", seq: b"", qual: b"" },
            ReadRef { name: b"", comment: b"", seq: b"A", qual: b"~" },
        ];
        let mut batch = ReadBatch::new();
        for round in 0..2 {
            assert!(batch.is_empty(), "round {round}");
            reads.iter().for_each(|&read| batch.push(read));
            assert_eq!(batch.iter().collect::<Vec<_>>(), reads);
            assert_eq!(batch.read(1), reads[1]);
            assert_eq!((batch.len(), batch.bases(), batch.bytes()), (4, 9, 53));
            batch.clear();
        }
    }

    #[test]
    fn clearing_keeps_the_memory() {
        let mut batch = ReadBatch::new();
        let fill = |batch: &mut ReadBatch| {
            (0..1000)
                .for_each(|_| batch.push(ReadRef { name: b"r", comment: b"", seq: b"ACGT", qual: b"FFFF" }));
            (batch.bytes.as_ptr(), batch.bytes.capacity(), batch.fields.as_ptr(), batch.fields.capacity())
        };
        let first = fill(&mut batch);
        batch.clear();
        assert_eq!((batch.len(), batch.bases(), batch.bytes()), (0, 0, 0));
        assert_eq!(fill(&mut batch), first);
    }
}
