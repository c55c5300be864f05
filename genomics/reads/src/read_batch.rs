//! Batches of reads in the order of their files. The memory of a batch is reused for further reads.

/// One read, borrowed from its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadRef<'a> {
    /// First word of the header, without `@` or `>`; for mates also without a final `/1` or `/2`. The whole header
    /// line without its first byte if
    /// [`StreamOptions::uses_whole_header_as_name`](crate::StreamOptions::uses_whole_header_as_name) is set.
    pub name: &'a [u8],
    /// The rest of the header line after the name and one blank; may be empty.
    pub comment: &'a [u8],
    /// Carried tags of a BAM or CRAM record, encoded as in BAM, with values in the order of sequencing; empty unless
    /// [`StreamOptions::carried_tags`](crate::StreamOptions::carried_tags) is set.
    pub tags: &'a [u8],
    /// Bases as in the file (ASCII, upper or lower case).
    pub seq: &'a [u8],
    /// Qualities (Phred + 33), as many as bases; empty for a read without qualities, such as one from FASTA.
    pub qual: &'a [u8],
}

impl ReadRef<'_> {
    /// Whether SAM would take the record of the read for a header line, because its name begins with `@`.
    pub fn name_looks_like_sam_header(&self) -> bool {
        self.name.starts_with(b"@")
    }
}

/// Position of a read in [`ReadBatch::bytes`]: its start, and the lengths of its fields in the order of [`ReadRef`].
#[derive(Debug, Clone, Copy)]
struct FieldLengths {
    start: usize,
    name: u32,
    comment: u32,
    tags: u32,
    seq: u32,
    qual: u32,
}

/// Reads of one lane, in the order in which they are delivered: that of the files, except for BAM, CRAM and BINSEQ.
#[derive(Debug, Default)]
pub struct ReadBatch {
    /// Whether the batch has pairs: reads 2i and 2i + 1 are read 1 and read 2 of one template.
    pub is_paired: bool,
    /// Index of the lane, from 0; also the index of its read group.
    pub lane_index: u32,
    /// Number of reads of the lane before this batch.
    pub reads_before: u64,
    bytes: Vec<u8>,
    fields: Vec<FieldLengths>,
    num_bases: u64,
}

impl ReadBatch {
    /// An empty batch without allocated memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all reads and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.fields.clear();
        self.num_bases = 0;
    }

    /// Number of reads: twice the number of templates if [`ReadBatch::is_paired`].
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether the batch has no reads.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Total number of bases.
    pub fn num_bases(&self) -> u64 {
        self.num_bases
    }

    /// Total bytes of names, comments, tags, bases and qualities.
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Appends a read.
    ///
    /// # Panics
    /// A field is 4 GiB long or longer.
    pub fn push(&mut self, read: ReadRef<'_>) {
        let start = self.bytes.len();
        let mut append = |field: &[u8]| {
            self.bytes.extend_from_slice(field);
            u32::try_from(field.len()).expect("a field of a read is shorter than 4 GiB")
        };
        let name = append(read.name);
        let comment = append(read.comment);
        let tags = append(read.tags);
        let seq = append(read.seq);
        let qual = append(read.qual);
        self.fields.push(FieldLengths { start, name, comment, tags, seq, qual });
        self.num_bases += u64::from(seq);
    }

    /// The read with index `i`.
    ///
    /// # Panics
    /// The index is not less than [`ReadBatch::len`].
    pub fn read(&self, i: usize) -> ReadRef<'_> {
        let fields = self.fields[i];
        let (name, rest) = self.bytes[fields.start..].split_at(fields.name as usize);
        let (comment, rest) = rest.split_at(fields.comment as usize);
        let (tags, rest) = rest.split_at(fields.tags as usize);
        let (seq, rest) = rest.split_at(fields.seq as usize);
        ReadRef { name, comment, tags, seq, qual: &rest[..fields.qual as usize] }
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
            ReadRef { name: b"a", comment: b"1:N:0:ACGT", tags: b"", seq: b"ACGTN", qual: b"FFF#!" },
            ReadRef { name: b"from_fasta", comment: b"", tags: b"", seq: b"acg", qual: b"" },
            ReadRef { name: b"empty", comment: b" two  words\t", tags: b"RXZA\0", seq: b"", qual: b"" },
            ReadRef { name: b"", comment: b"", tags: b"", seq: b"A", qual: b"~" },
        ];
        let mut batch = ReadBatch::new();
        for round in 0..2 {
            assert!(batch.is_empty(), "round {round}");
            reads.iter().for_each(|&read| batch.push(read));
            assert_eq!(batch.iter().collect::<Vec<_>>(), reads);
            assert_eq!(batch.read(1), reads[1]);
            assert_eq!((batch.len(), batch.num_bases(), batch.len_bytes()), (4, 9, 58));
            batch.clear();
        }
    }

    #[test]
    fn clearing_keeps_the_memory() {
        let mut batch = ReadBatch::new();
        let fill = |batch: &mut ReadBatch| {
            (0..1000)
                .for_each(|_| batch.push(ReadRef { name: b"r", comment: b"", tags: b"", seq: b"ACGT", qual: b"FFFF" }));
            (batch.bytes.as_ptr(), batch.bytes.capacity(), batch.fields.as_ptr(), batch.fields.capacity())
        };
        let first = fill(&mut batch);
        batch.clear();
        assert_eq!((batch.len(), batch.num_bases(), batch.len_bytes()), (0, 0, 0));
        assert_eq!(fill(&mut batch), first);
    }
}
