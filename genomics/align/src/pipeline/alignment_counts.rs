//! Counts of the records of an alignment run, as in samtools flagstat and stats.

use crate::sam::{self, split_bam_records};

/// Insert sizes (bp) above this value are not counted.
const MAX_INSERT_SIZE_BP: usize = 10_000;

const FLAG_PAIRED: u16 = 0x1;
const FLAG_PROPER: u16 = 0x2;
const FLAG_UNMAPPED: u16 = 0x4;
const FLAG_SECONDARY: u16 = 0x100;
const FLAG_SUPPLEMENTARY: u16 = 0x800;

/// Counts of reads, records, mapped reads and pairs, for the summary of an alignment run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AlignmentCounts {
    /// Number of SAM records, secondary and supplementary ones included.
    pub records: u64,
    /// Number of reads: records that are neither secondary nor supplementary.
    pub reads: u64,
    /// Number of bases (bp) of the reads.
    pub bases: u64,
    /// Number of reads with a mate.
    pub paired_reads: u64,
    /// Number of reads with at least one alignment.
    pub mapped_reads: u64,
    /// Number of reads in proper pairs.
    pub properly_paired_reads: u64,
    /// Number of records of further positions of a read (flag 0x100), and of further segments that the engine marks as
    /// secondary.
    pub secondary_records: u64,
    /// Number of records of further segments of split reads (flag 0x800).
    pub supplementary_records: u64,
    /// Number of proper pairs for each insert size (bp), which is the index.
    insert_size_counts: Vec<u64>,
}

/// Median, mean and standard deviation of the insert sizes of proper pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InsertSizeStatistics {
    /// Median insert size (bp).
    pub median: usize,
    /// Mean insert size (bp).
    pub mean: f64,
    /// Standard deviation of the insert size (bp).
    pub std_dev: f64,
}

impl AlignmentCounts {
    /// Counts BAM records that are stored back to back.
    ///
    /// # Errors
    /// The bytes are not valid BAM records.
    pub(super) fn count_bam_records(&mut self, bytes: &[u8]) -> Result<(), sam::Error> {
        for record in split_bam_records(bytes) {
            let head: &[u8; 36] =
                record?.first_chunk().ok_or(sam::Error::InvalidBamRecord("shorter than its fixed fields"))?;
            let int = |at: usize| i32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
            let flag = u16::from_le_bytes([head[18], head[19]]);
            let has = |bits: u16| flag & bits != 0;
            self.records += 1;
            self.secondary_records += u64::from(has(FLAG_SECONDARY));
            self.supplementary_records += u64::from(has(FLAG_SUPPLEMENTARY) && !has(FLAG_SECONDARY));
            if has(FLAG_SECONDARY | FLAG_SUPPLEMENTARY) {
                continue;
            }
            self.reads += 1;
            self.bases += u64::from(int(20) as u32);
            self.paired_reads += u64::from(has(FLAG_PAIRED));
            self.mapped_reads += u64::from(!has(FLAG_UNMAPPED));
            self.properly_paired_reads += u64::from(has(FLAG_PROPER));
            // Of both mates, the left one has the positive template length.
            let insert = int(32);
            if has(FLAG_PROPER) && (1..=MAX_INSERT_SIZE_BP as i32).contains(&insert) {
                self.insert_size_counts.resize(MAX_INSERT_SIZE_BP + 1, 0);
                self.insert_size_counts[insert as usize] += 1;
            }
        }
        Ok(())
    }

    /// Adds the counts of `other`.
    pub(super) fn add_counts(&mut self, other: &AlignmentCounts) {
        self.records += other.records;
        self.reads += other.reads;
        self.bases += other.bases;
        self.paired_reads += other.paired_reads;
        self.mapped_reads += other.mapped_reads;
        self.properly_paired_reads += other.properly_paired_reads;
        self.secondary_records += other.secondary_records;
        self.supplementary_records += other.supplementary_records;
        self.insert_size_counts.resize(self.insert_size_counts.len().max(other.insert_size_counts.len()), 0);
        for (sum, count) in self.insert_size_counts.iter_mut().zip(&other.insert_size_counts) {
            *sum += count;
        }
    }

    /// Computes median, mean and standard deviation of the insert sizes of proper pairs up to 10 kbp; `None` without
    /// such pairs.
    pub fn compute_insert_size_statistics(&self) -> Option<InsertSizeStatistics> {
        let all: u64 = self.insert_size_counts.iter().sum();
        if all == 0 {
            return None;
        }
        let sum = |of: &dyn Fn(f64) -> f64| -> f64 {
            self.insert_size_counts.iter().enumerate().map(|(size, &count)| of(size as f64) * count as f64).sum()
        };
        let mean = sum(&|size| size) / all as f64;
        let std_dev = (sum(&|size| (size - mean).powi(2)) / all as f64).sqrt();
        let mut below = 0;
        let median = self.insert_size_counts.iter().position(|count| {
            below += count;
            2 * below >= all
        });
        Some(InsertSizeStatistics { median: median.unwrap_or(0), mean, std_dev })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sam::{Contigs, parse_sam_line};

    #[test]
    fn reads_are_counted_once_and_templates_by_their_left_mate() {
        let contigs = Contigs::new([("c".to_owned(), 1000)]);
        let mut bytes = Vec::new();
        for line in [
            "a\t99\tc\t1\t60\t4M\t=\t97\t100\tACGT\tFFFF",
            "a\t147\tc\t97\t60\t4M\t=\t1\t-100\tACGT\tFFFF",
            "a\t2147\tc\t500\t60\t2S2M\t=\t1\t-100\tACGT\tFFFF",
            "b\t99\tc\t1\t60\t4M\t=\t197\t200\tACGT\tFFFF",
            "b\t147\tc\t197\t60\t4M\t=\t1\t-200\tACGT\tFFFF",
            "d\t4\t*\t0\t0\t*\t*\t0\t0\tACGTA\tFFFFF",
            "e\t0\tc\t5\t0\t4M\t*\t0\t0\tACGT\t*",
            "e\t256\tc\t50\t0\t4M\t*\t0\t0\t*\t*",
        ] {
            parse_sam_line(line.as_bytes(), &contigs, &mut bytes).unwrap();
        }
        let mut one = AlignmentCounts::default();
        one.count_bam_records(&bytes).unwrap();
        let mut two = AlignmentCounts::default();
        two.add_counts(&one);
        two.add_counts(&AlignmentCounts::default());
        assert_eq!(one, two);
        assert_eq!((one.records, one.reads, one.bases, one.paired_reads), (8, 6, 25, 4));
        assert_eq!(
            (one.mapped_reads, one.properly_paired_reads, one.secondary_records, one.supplementary_records),
            (5, 4, 1, 1)
        );
        assert_eq!(
            one.compute_insert_size_statistics(),
            Some(InsertSizeStatistics { median: 100, mean: 150.0, std_dev: 50.0 })
        );
        assert_eq!(AlignmentCounts::default().compute_insert_size_statistics(), None);
        assert!(one.count_bam_records(&bytes[..20]).is_err());
    }
}
