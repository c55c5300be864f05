//! Marks duplicates by the rules of `samtools markdup` (mode t, after `samtools fixmate -m`), without additional
//! passes over the records.
//!
//! Duplicates are pairs whose templates begin and end at the same unclipped bases with the same orientation. All but
//! one of a duplicate set are marked. The pair with the highest sum of base qualities of at least 15 stays; among
//! equals, the one whose name sorts first. A mapped read without a mapped mate is a duplicate if any read of a pair
//! begins at the same base on the same strand. Otherwise the best of such single reads stays; among equals, the first
//! in genome order. Secondary, supplementary and unmapped records, and records that failed quality control, are not
//! compared. A read of a pair whose mate has no record, which samtools rejects, counts as a read without a mate.
//!
//! samtools searches at most 300 bases (`-l`) along the genome; this module finds duplicates whatever the lengths of
//! their clips. With [`MarkdupOptions::libraries`] set, duplicates must be of one library, as in Picard; samtools
//! 1.16 ignores read groups.

mod read_ends;
mod duplicate_finder;

use std::collections::HashMap;

use super::loser_tree::sort_items_by_key;
use super::record::{Record, flag};
use read_ends::{PairEndsSortItem, SingleReadEndSortItem, UnclippedReadEnds};

pub(crate) use duplicate_finder::DuplicateFinder;

/// Options of duplicate marking.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarkdupOptions {
    /// Library of each read group, so that only reads of the same library are duplicates; `None` treats all reads as
    /// one library.
    pub libraries: Option<ReadGroupLibraries>,
    /// Also mark the supplementary and secondary records and the unmapped read of a marked template, as `samtools
    /// markdup -S` (which does so only if a marked read of the template has an SA or XA tag or an unmapped mate).
    pub mark_whole_template: bool,
}

/// The library of each read group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadGroupLibraries(HashMap<Vec<u8>, u16>);

impl ReadGroupLibraries {
    /// Reads the libraries from the `LB` fields of the `@RG` lines of a SAM header. Read groups without `LB` and
    /// reads without a read group form one more library.
    pub fn parse_libraries_from_sam_header(sam: &str) -> ReadGroupLibraries {
        let mut numbers: HashMap<&str, u16> = HashMap::new();
        let mut groups = HashMap::new();
        for line in sam.lines().filter(|l| l.starts_with("@RG\t")) {
            let field = |name| line.split('\t').find_map(|f| f.strip_prefix(name));
            let (Some(id), Some(library)) = (field("ID:"), field("LB:")) else { continue };
            // Beyond 65,534 libraries, the further ones count as one library.
            let next = u16::try_from(numbers.len() + 1).unwrap_or(u16::MAX);
            groups.insert(id.as_bytes().to_vec(), *numbers.entry(library).or_insert(next));
        }
        ReadGroupLibraries(groups)
    }

    fn library_number(&self, record: Record<'_>) -> u16 {
        let group =
            record.typed_tag_value(*b"RG").and_then(|t| t.strip_prefix(b"Z")).and_then(|t| t.strip_suffix(b"\0"));
        group.and_then(|g| self.0.get(g)).copied().unwrap_or(0)
    }
}

/// Counts of duplicate marking, in reads (not pairs). Reads that are not compared are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MarkdupReadCounts {
    /// Compared reads with a mapped mate.
    pub paired_reads: u64,
    /// Compared mapped reads without a mapped mate.
    pub single_reads: u64,
    /// Reads with a mapped mate that are marked as duplicates.
    pub paired_duplicates: u64,
    /// Reads without a mapped mate that are marked as duplicates.
    pub single_duplicates: u64,
}

/// The read ends of the templates of a block, as sort items.
#[derive(Debug, Default)]
pub(crate) struct BlockReadEnds {
    pub(crate) pairs: Vec<u8>,
    pub(crate) singles: Vec<u8>,
}

impl BlockReadEnds {
    /// Adds the read ends of a template, from its primary records: read 1 (or the only read) and read 2. Unmapped
    /// reads, and single reads that failed quality control, are left out. A read whose mate is unmapped counts as a
    /// single read.
    pub(crate) fn push_template_read_ends(
        &mut self,
        primary: [Option<Record<'_>>; 2],
        marking: &MarkdupOptions,
        ordinal: u64,
    ) {
        let mapped = |r: &Record<'_>| !r.has_any_flag(flag::UNMAPPED) && r.sequence_index().is_some();
        let counts = |r: &Record<'_>| !r.has_any_flag(flag::QC_FAIL);
        let library = |r| marking.libraries.as_ref().map_or(0, |l| l.library_number(r));
        match primary.map(|r| r.filter(mapped)) {
            [Some(a), Some(b)] => {
                let reads = [a, b].map(|r| (UnclippedReadEnds::from_record(r), counts(&r)));
                PairEndsSortItem::push_pair_sort_items(reads, a.name(), library(a), ordinal, &mut self.pairs);
            }
            [Some(one), None] | [None, Some(one)] if counts(&one) => {
                UnclippedReadEnds::from_record(one).push_item_of_single_read(library(one), ordinal, &mut self.singles);
            }
            _ => {}
        }
    }

    /// Returns the items of the pairs and of the single reads, each sorted by key.
    pub(crate) fn into_sorted_read_ends(self) -> BlockReadEnds {
        BlockReadEnds {
            pairs: sort_items_by_key::<PairEndsSortItem>(&self.pairs),
            singles: sort_items_by_key::<SingleReadEndSortItem>(&self.singles),
        }
    }
}

/// Two duplicate flags for each template: one for read 1 (or the only read), one for read 2.
#[derive(Debug, Default)]
pub(crate) struct DuplicateFlags(Vec<u64>);

impl DuplicateFlags {
    fn new(templates: u64) -> DuplicateFlags {
        DuplicateFlags(vec![0; templates.div_ceil(32) as usize])
    }

    fn set_duplicate(&mut self, ordinal: u64, last: bool) {
        self.0[(ordinal / 32) as usize] |= 1 << (2 * (ordinal % 32) + u64::from(last));
    }

    /// Whether the duplicate flag of this record of template `ordinal` is to be set.
    pub(crate) fn should_mark_as_duplicate(&self, ordinal: u64, record: Record<'_>, mark_whole_template: bool) -> bool {
        let bits = self.0[(ordinal / 32) as usize] >> (2 * (ordinal % 32)) & 3;
        if bits == 0 {
            return false;
        }
        if record.has_any_flag(flag::SECONDARY | flag::SUPPLEMENTARY | flag::UNMAPPED) {
            return mark_whole_template;
        }
        bits >> u8::from(record.has_any_flag(flag::READ2)) & 1 != 0
    }
}
