//! What the records of a run say in numbers.

use crate::sam::{self, records};

/// Insert sizes above this are left out (bp).
const LARGEST_INSERT: usize = 10_000;

const PAIRED: u16 = 0x1;
const PROPER: u16 = 0x2;
const UNMAPPED: u16 = 0x4;
const SECONDARY: u16 = 0x100;
const SUPPLEMENTARY: u16 = 0x800;

/// Counts of reads and records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Records.
    pub records: u64,
    /// Reads: records that are neither secondary nor supplementary.
    pub reads: u64,
    /// Bases (bp) of the reads.
    pub bases: u64,
    /// Those of them that have a mate.
    pub paired: u64,
    /// Reads that are mapped.
    pub mapped: u64,
    /// Reads in proper pairs.
    pub proper: u64,
    /// Secondary records.
    pub secondary: u64,
    /// Supplementary records.
    pub supplementary: u64,
    /// Proper pairs by the length of their template (bp).
    inserts: Vec<u64>,
}

/// Template lengths of proper pairs (bp).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Inserts {
    /// Half of them are at most that long.
    pub median: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub deviation: f64,
}

impl Tally {
    /// Adds BAM records that stand back to back.
    ///
    /// # Errors
    /// The bytes are no records.
    pub(super) fn add(&mut self, bytes: &[u8]) -> Result<(), sam::Error> {
        for record in records(bytes) {
            let head: &[u8; 36] =
                record?.first_chunk().ok_or(sam::Error::Record("shorter than its fixed fields"))?;
            let int = |at: usize| i32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
            let flag = u16::from_le_bytes([head[18], head[19]]);
            let has = |bits: u16| flag & bits != 0;
            self.records += 1;
            self.secondary += u64::from(has(SECONDARY));
            self.supplementary += u64::from(has(SUPPLEMENTARY) && !has(SECONDARY));
            if has(SECONDARY | SUPPLEMENTARY) {
                continue;
            }
            self.reads += 1;
            self.bases += u64::from(int(20) as u32);
            self.paired += u64::from(has(PAIRED));
            self.mapped += u64::from(!has(UNMAPPED));
            self.proper += u64::from(has(PROPER));
            // Of the two mates the left one has the positive length.
            let insert = int(32);
            if has(PROPER) && (1..=LARGEST_INSERT as i32).contains(&insert) {
                self.inserts.resize(LARGEST_INSERT + 1, 0);
                self.inserts[insert as usize] += 1;
            }
        }
        Ok(())
    }

    /// Adds what another has counted.
    pub(super) fn merge(&mut self, other: &Tally) {
        self.records += other.records;
        self.reads += other.reads;
        self.bases += other.bases;
        self.paired += other.paired;
        self.mapped += other.mapped;
        self.proper += other.proper;
        self.secondary += other.secondary;
        self.supplementary += other.supplementary;
        self.inserts.resize(self.inserts.len().max(other.inserts.len()), 0);
        for (sum, count) in self.inserts.iter_mut().zip(&other.inserts) {
            *sum += count;
        }
    }

    /// How long the templates of proper pairs are, up to 10 kbp; none without such pairs.
    pub fn inserts(&self) -> Option<Inserts> {
        let all: u64 = self.inserts.iter().sum();
        if all == 0 {
            return None;
        }
        let sum = |of: &dyn Fn(f64) -> f64| -> f64 {
            self.inserts.iter().enumerate().map(|(size, &count)| of(size as f64) * count as f64).sum()
        };
        let mean = sum(&|size| size) / all as f64;
        let deviation = (sum(&|size| (size - mean).powi(2)) / all as f64).sqrt();
        let mut below = 0;
        let median = self.inserts.iter().position(|count| {
            below += count;
            2 * below >= all
        });
        Some(Inserts { median: median.unwrap_or(0), mean, deviation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sam::{Contigs, parse_line};

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
            parse_line(line.as_bytes(), &contigs, &mut bytes).unwrap();
        }
        let mut one = Tally::default();
        one.add(&bytes).unwrap();
        let mut two = Tally::default();
        two.merge(&one);
        two.merge(&Tally::default());
        assert_eq!(one, two);
        assert_eq!((one.records, one.reads, one.bases, one.paired), (8, 6, 25, 4));
        assert_eq!((one.mapped, one.proper, one.secondary, one.supplementary), (5, 4, 1, 1));
        assert_eq!(one.inserts(), Some(Inserts { median: 100, mean: 150.0, deviation: 50.0 }));
        assert_eq!(Tally::default().inserts(), None);
        assert!(one.add(&bytes[..20]).is_err());
    }
}
