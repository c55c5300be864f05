//! Duplicate marking by the rules of `samtools markdup` (mode t, after `samtools fixmate -m`), without its passes.
//!
//! Copies are pairs whose templates begin and end at the same bases, clips added, with the same orientation. All but
//! one are marked: the one with the highest sum of base qualities from 15 up stays, and among equals the one whose name
//! comes first. A mapped read without a mapped mate is a copy when any read of a pair begins at the same base on the
//! same strand; else the best of such reads stays, and among equals the first in the order of the genome. Secondary,
//! supplementary and unmapped records, and those that failed quality control, take no part. A read of a
//! pair whose mate has no record, which samtools refuses, is taken as one without a mate.
//!
//! Other than samtools, which looks as far as 300 bases (`-l`) along the genome, this finds copies whatever the lengths of
//! their clips. With [`Marking::libraries`], copies must be of one library too, as Picard has it; samtools 1.16 does
//! not look at read groups.

mod ends;
mod judge;

use std::collections::HashMap;

use super::merge::sorted;
use super::record::{Record, flag};
use ends::{End, Pair, Single};

pub(crate) use judge::Judge;

/// What is marked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marking {
    /// Keeps libraries apart; `None` takes all reads as of one.
    pub libraries: Option<Libraries>,
    /// Marks the supplementary and secondary records of a marked template too, and its unmapped read, as
    /// `samtools markdup -S` (which does so only when a marked read of the template has an SA or XA tag or an unmapped
    /// mate).
    pub whole_templates: bool,
}

/// The library of each read group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Libraries(HashMap<Vec<u8>, u16>);

impl Libraries {
    /// From the `@RG` lines of a SAM header: their `LB`. Read groups without are one more library together, and so are
    /// reads without a read group.
    pub fn from_header(sam: &str) -> Libraries {
        let mut numbers: HashMap<&str, u16> = HashMap::new();
        let mut groups = HashMap::new();
        for line in sam.lines().filter(|l| l.starts_with("@RG\t")) {
            let field = |name| line.split('\t').find_map(|f| f.strip_prefix(name));
            let (Some(id), Some(library)) = (field("ID:"), field("LB:")) else { continue };
            // Beyond 65,534 libraries the last ones are taken together.
            let next = u16::try_from(numbers.len() + 1).unwrap_or(u16::MAX);
            groups.insert(id.as_bytes().to_vec(), *numbers.entry(library).or_insert(next));
        }
        Libraries(groups)
    }

    fn of(&self, record: Record<'_>) -> u16 {
        let group = record.tag(*b"RG").and_then(|t| t.strip_prefix(b"Z")).and_then(|t| t.strip_suffix(b"\0"));
        group.and_then(|g| self.0.get(g)).copied().unwrap_or(0)
    }
}

/// What was marked, in reads (not pairs). Reads that take no part are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marked {
    /// Reads with a mapped mate that were looked at.
    pub paired: u64,
    /// Mapped reads without one that were looked at.
    pub single: u64,
    /// Those of `paired` that are marked.
    pub paired_duplicates: u64,
    /// Those of `single` that are marked.
    pub single_duplicates: u64,
}

/// What is compared of the templates of a block.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    pub(crate) pairs: Vec<u8>,
    pub(crate) singles: Vec<u8>,
}

impl Ends {
    /// Adds a template by its primary records: read 1 (or the only one) and read 2.
    pub(crate) fn push(&mut self, primary: [Option<Record<'_>>; 2], marking: &Marking, ordinal: u64) {
        let mapped = |r: &Record<'_>| !r.is(flag::UNMAPPED) && r.sequence().is_some();
        let counts = |r: &Record<'_>| !r.is(flag::FAILED);
        let library = |r| marking.libraries.as_ref().map_or(0, |l| l.of(r));
        match primary.map(|r| r.filter(mapped)) {
            [Some(a), Some(b)] => {
                let reads = [a, b].map(|r| (End::new(r), counts(&r)));
                Pair::push(reads, a.name(), library(a), ordinal, &mut self.pairs);
            }
            [Some(one), None] | [None, Some(one)] if counts(&one) => {
                End::new(one).push_single(library(one), ordinal, &mut self.singles);
            }
            _ => {}
        }
    }

    /// Brings both kinds into order.
    pub(crate) fn sorted(self) -> Ends {
        Ends { pairs: sorted::<Pair>(&self.pairs), singles: sorted::<Single>(&self.singles) }
    }
}

/// Two bits for each template: whether its read 1 (or only read) is marked, and its read 2.
#[derive(Debug, Default)]
pub(crate) struct Marks(Vec<u64>);

impl Marks {
    fn new(templates: u64) -> Marks {
        Marks(vec![0; templates.div_ceil(32) as usize])
    }

    fn set(&mut self, ordinal: u64, last: bool) {
        self.0[(ordinal / 32) as usize] |= 1 << (2 * (ordinal % 32) + u64::from(last));
    }

    /// Whether a record of the template is to be marked.
    pub(crate) fn apply(&self, ordinal: u64, record: Record<'_>, whole_templates: bool) -> bool {
        let bits = self.0[(ordinal / 32) as usize] >> (2 * (ordinal % 32)) & 3;
        if bits == 0 {
            return false;
        }
        if record.is(flag::SECONDARY | flag::SUPPLEMENTARY | flag::UNMAPPED) {
            return whole_templates;
        }
        bits >> u8::from(record.is(flag::LAST)) & 1 != 0
    }
}
