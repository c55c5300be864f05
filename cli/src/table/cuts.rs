//! Tables cut at the same k-mers into stretches that are combined each by itself, none of many pages of any table.

use std::ops::Range;

use genuma_flash::{Error, Scan};

use super::merge::NONE;

/// Pages of the index that are read at once, in steps of a table.
const STEPS: u64 = 16;

/// K-mers from `low` to before `high`, and where they are.
#[derive(Debug, Default)]
pub(crate) struct Stretch {
    pub(crate) low: u64,
    /// [`NONE`] where there is no end.
    pub(crate) high: u64,
    /// Of each table.
    pub(crate) shares: Vec<Share>,
}

/// Pages of a table that have all of its k-mers of a stretch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Share {
    pub(crate) pages: Range<u64>,
    /// Their first k-mers by the index, and that of the page after them if there is one.
    pub(crate) firsts: Vec<u64>,
}

/// How far a table has been cut.
#[derive(Debug)]
struct Table {
    /// The first page that may have k-mers of the next stretch.
    page: u64,
    pages: u64,
    /// Pages of a stretch at most.
    step: u64,
    /// What was read of the index: first k-mers of `page` and those after it.
    index: Vec<u64>,
}

/// Cuts tables, stretch by stretch.
#[derive(Debug)]
pub(crate) struct Cuts {
    tables: Vec<Table>,
    low: u64,
    ended: bool,
}

impl Cuts {
    /// Of tables, into stretches of so many pages of each at most.
    pub(crate) fn new(scans: &[Scan], steps: &[u64]) -> Cuts {
        let table = |(scan, &step): (&Scan, &u64)| {
            let (pages, index) = (scan.pages(), Vec::new());
            Table { page: 0, pages, step: step.max(1), index }
        };
        Cuts { tables: scans.iter().zip(steps).map(table).collect(), low: 0, ended: false }
    }

    /// Puts the next stretch in place of what `stretch` is; whether there is one.
    ///
    /// # Errors
    /// An index cannot be read or is damaged.
    pub(crate) fn next(&mut self, scans: &[Scan], stretch: &mut Stretch) -> Result<bool, Error> {
        if self.ended {
            return Ok(false);
        }
        let mut high = NONE;
        for (table, scan) in self.tables.iter_mut().zip(scans) {
            high = high.min(table.end(scan)?);
        }
        stretch.low = std::mem::replace(&mut self.low, high);
        stretch.high = high;
        stretch.shares.resize(self.tables.len(), Share::default());
        self.tables.iter_mut().zip(&mut stretch.shares).for_each(|(table, share)| table.cut(high, share));
        self.ended = high == NONE;
        Ok(true)
    }
}

impl Table {
    /// Where the stretch has to end for this table.
    fn end(&mut self, scan: &Scan) -> Result<u64, Error> {
        let there = self.index.len() as u64;
        if there <= self.step && self.page + there < self.pages {
            let from = self.page + there;
            scan.first_keys(from..(from + STEPS * self.step).min(self.pages), &mut self.index)?;
        }
        Ok(self.index.get(self.step as usize).copied().unwrap_or(NONE))
    }

    /// Takes the pages with k-mers before `high`.
    fn cut(&mut self, high: u64, share: &mut Share) {
        let upto = self.index.len().min(self.step as usize);
        let n = self.index[..upto].partition_point(|&first| first < high);
        share.pages = self.page..self.page + n as u64;
        share.firsts.clear();
        share.firsts.extend_from_slice(&self.index[..self.index.len().min(n + 1)]);
        // The last of them has k-mers of the next stretch as well, unless another begins with it.
        let done = if self.index.get(n) == Some(&high) { n } else { n.saturating_sub(1) };
        self.page += done as u64;
        self.index.drain(..done);
    }
}

#[cfg(test)]
mod tests {
    use genuma_flash::{Piece, Raw, Spec, TableWriter};

    use super::*;
    use crate::table::merge::range_of;

    /// Tables of all sizes, some with their k-mers in one place, cut into stretches of one page and more.
    #[test]
    fn every_kmer_is_in_one_stretch() {
        let folder = tempfile::tempdir().expect("a folder");
        let dense = |from: u64, n: u64| (from..from + n).collect::<Vec<u64>>();
        let sparse = |n: u64, apart: u64| (0..n).map(|i| i * apart).collect::<Vec<u64>>();
        let all = [
            sparse(40_000, 50),
            dense(1_000_000, 9000),
            Vec::new(),
            sparse(340, 7),
            dense(5, 1),
            sparse(3400, 600),
        ];
        let table = |(number, keys): (usize, &Vec<u64>)| {
            let path = folder.path().join(number.to_string());
            let mut writer = TableWriter::create(&path, Spec::new(4, keys.len() as u64)).expect("a table");
            writer.push_all(keys, &vec![1; 4 * keys.len()], |_| 0).expect("written");
            writer.finish().expect("written");
            Scan::open(&path).expect("a table")
        };
        let scans: Vec<Scan> = all.iter().enumerate().map(table).collect();
        for steps in [[1; 6], [3, 2, 1, 1, 1, 4], [200, 1, 1, 1, 1, 3], [512; 6]] {
            let mut cuts = Cuts::new(&scans, &steps);
            let (mut stretch, mut found) = (Stretch::default(), vec![Vec::new(); all.len()]);
            let (mut before, mut raw) = (0, Raw::new(512).expect("memory"));
            while cuts.next(&scans, &mut stretch).expect("whole tables") {
                assert!(stretch.low == before && stretch.low < stretch.high);
                before = stretch.high;
                for (table, share) in stretch.shares.iter().enumerate() {
                    assert!(share.pages.end - share.pages.start <= steps[table]);
                    let mut piece = Piece::<u32>::default();
                    scans[table].read(share.pages.clone(), &mut raw).expect("read");
                    scans[table].unpack(&raw, &share.firsts, &mut piece).expect("whole");
                    found[table].extend_from_slice(&piece.keys[range_of(&piece, stretch.low, stretch.high)]);
                }
            }
            assert!(before == NONE && found == all, "{steps:?}");
        }
    }
}
