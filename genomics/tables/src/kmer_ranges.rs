//! Divides tables into k-mer ranges that can be combined independently. Each range has a limited number of pages of
//! each table.

use std::ops::Range;

use genuma_flash::{Error, TablePageReader};

use crate::note::INVALID_KMER;

/// Number of ranges for which index entries of a table are read at once.
const RANGES_PER_INDEX_READ: u64 = 16;

/// A k-mer range: k-mers from `low` to before `high`, with the table pages that contain them.
#[derive(Debug, Default)]
pub(crate) struct KmerRange {
    pub(crate) low: u64,
    /// First k-mer after the range; [`INVALID_KMER`] for the last range.
    pub(crate) high: u64,
    /// The pages of each table that contain k-mers of the range.
    pub(crate) table_pages: Vec<TablePagesOfRange>,
}

/// The pages of one table that contain the table's k-mers of a range.
#[derive(Debug, Clone, Default)]
pub(crate) struct TablePagesOfRange {
    pub(crate) pages: Range<u64>,
    /// First k-mer of each page, and of the page after the last one if the table has one.
    pub(crate) first_kmers: Vec<u64>,
}

/// Position up to which a table has been divided into k-mer ranges.
#[derive(Debug)]
struct TableCursor {
    /// Number of the first page that may have k-mers of the next range.
    next_page: u64,
    num_pages: u64,
    /// Maximum number of pages of this table in a k-mer range.
    max_pages: u64,
    /// First k-mers of page `next_page` and of the pages after it, as far as the index has been read.
    first_kmers: Vec<u64>,
}

/// Divides tables into consecutive k-mer ranges, one at each call of [`KmerRangeDivider::compute_next_range`].
#[derive(Debug)]
pub(crate) struct KmerRangeDivider {
    tables: Vec<TableCursor>,
    low: u64,
    ended: bool,
}

impl KmerRangeDivider {
    /// Creates a value that divides these tables. A range has at most `steps[i]` pages of table i.
    pub(crate) fn new_for_tables(scans: &[TablePageReader], steps: &[u64]) -> KmerRangeDivider {
        let table = |(scan, &step): (&TablePageReader, &u64)| {
            let (pages, index) = (scan.num_pages(), Vec::new());
            TableCursor { next_page: 0, num_pages: pages, max_pages: step.max(1), first_kmers: index }
        };
        KmerRangeDivider { tables: scans.iter().zip(steps).map(table).collect(), low: 0, ended: false }
    }

    /// Replaces `range` by the next range. Returns false if all tables are divided.
    ///
    /// # Errors
    /// An index cannot be read or is damaged.
    pub(crate) fn compute_next_range(
        &mut self,
        scans: &[TablePageReader],
        range: &mut KmerRange,
    ) -> Result<bool, Error> {
        if self.ended {
            return Ok(false);
        }
        let mut high = INVALID_KMER;
        for (table, scan) in self.tables.iter_mut().zip(scans) {
            high = high.min(table.range_end(scan)?);
        }
        range.low = std::mem::replace(&mut self.low, high);
        range.high = high;
        range.table_pages.resize(self.tables.len(), TablePagesOfRange::default());
        self.tables.iter_mut().zip(&mut range.table_pages).for_each(|(table, share)| table.take_pages(high, share));
        self.ended = high == INVALID_KMER;
        Ok(true)
    }
}

impl TableCursor {
    /// Returns the largest k-mer at which the next range may end, given the maximum number of pages of this table.
    /// [`INVALID_KMER`] if the rest of the table fits in the range.
    fn range_end(&mut self, scan: &TablePageReader) -> Result<u64, Error> {
        let num_read = self.first_kmers.len() as u64;
        if num_read <= self.max_pages && self.next_page + num_read < self.num_pages {
            let from = self.next_page + num_read;
            scan.read_first_keys_of_pages(
                from..(from + RANGES_PER_INDEX_READ * self.max_pages).min(self.num_pages),
                &mut self.first_kmers,
            )?;
        }
        Ok(self.first_kmers.get(self.max_pages as usize).copied().unwrap_or(INVALID_KMER))
    }

    /// Moves the pages that have k-mers before `high` to `share`, the part of the current range.
    fn take_pages(&mut self, high: u64, share: &mut TablePagesOfRange) {
        let num_usable = self.first_kmers.len().min(self.max_pages as usize);
        let n = self.first_kmers[..num_usable].partition_point(|&first| first < high);
        share.pages = self.next_page..self.next_page + n as u64;
        share.first_kmers.clear();
        share.first_kmers.extend_from_slice(&self.first_kmers[..self.first_kmers.len().min(n + 1)]);
        // The last of these pages also has k-mers of the next range, unless a page begins with `high`.
        let done = if self.first_kmers.get(n) == Some(&high) { n } else { n.saturating_sub(1) };
        self.next_page += done as u64;
        self.first_kmers.drain(..done);
    }
}

#[cfg(test)]
mod tests {
    use genuma_flash::{EntryBatch, TableSpec, TableWriter, UncheckedPages};

    use super::*;
    use crate::merge::entry_range_of_kmers;

    /// Divides tables of all sizes, some of which have their k-mers close together, into ranges of one page and more.
    #[test]
    fn every_kmer_is_in_one_stretch() {
        let folder = tempfile::tempdir().expect("a folder");
        let dense = |from: u64, n: u64| (from..from + n).collect::<Vec<u64>>();
        let sparse = |n: u64, apart: u64| (0..n).map(|i| i * apart).collect::<Vec<u64>>();
        let all =
            [sparse(40_000, 50), dense(1_000_000, 9000), Vec::new(), sparse(340, 7), dense(5, 1), sparse(3400, 600)];
        let table = |(number, keys): (usize, &Vec<u64>)| {
            let path = folder.path().join(number.to_string());
            let mut writer = TableWriter::create(&path, TableSpec::new(4, keys.len() as u64)).expect("a table");
            writer.push_entries(keys, &vec![1; 4 * keys.len()], |_| 0).expect("written");
            writer.finish_and_publish().expect("written");
            TablePageReader::open(&path).expect("a table")
        };
        let scans: Vec<TablePageReader> = all.iter().enumerate().map(table).collect();
        for steps in [[1; 6], [3, 2, 1, 1, 1, 4], [200, 1, 1, 1, 1, 3], [512; 6]] {
            let mut cuts = KmerRangeDivider::new_for_tables(&scans, &steps);
            let (mut stretch, mut found) = (KmerRange::default(), vec![Vec::new(); all.len()]);
            let (mut before, mut raw) = (0, UncheckedPages::allocate(512).expect("memory"));
            while cuts.compute_next_range(&scans, &mut stretch).expect("whole tables") {
                assert!(stretch.low == before && stretch.low < stretch.high);
                before = stretch.high;
                for (table, share) in stretch.table_pages.iter().enumerate() {
                    assert!(share.pages.end - share.pages.start <= steps[table]);
                    let mut piece = EntryBatch::<u32>::default();
                    scans[table].read_unchecked_pages(share.pages.clone(), &mut raw).expect("read");
                    scans[table].check_and_unpack_pages(&raw, &share.first_kmers, &mut piece).expect("whole");
                    found[table]
                        .extend_from_slice(&piece.keys[entry_range_of_kmers(&piece, stretch.low, stretch.high)]);
                }
            }
            assert!(before == INVALID_KMER && found == all, "{steps:?}");
        }
    }
}
