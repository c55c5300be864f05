//! Records: what must be true of one, of its name, and of two that are mates.

use std::path::Path;

use crate::batch::{Mate, PairBatch};
use crate::error::{Error, RecordFault, Shown};

use super::block::Block;

/// Longest name that a SAM record can hold, in bytes (SAM specification, section 1.4).
const LONGEST_NAME: usize = 254;

/// A checked record.
pub(crate) struct Record<'a> {
    /// The header line behind its mark.
    pub(crate) header: &'a [u8],
    /// First word of the header.
    pub(crate) word: &'a [u8],
    /// The same without a closing `/1` or `/2`.
    pub(crate) name: &'a [u8],
    /// `1` or `2` where the header says which read of the template it is.
    pub(crate) number: Option<u8>,
    /// What follows the first word and a blank.
    pub(crate) comment: &'a [u8],
    pub(crate) mate: Mate<'a>,
}

/// Where a record is: its block, its number in it, and the file's path.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) block: &'a Block,
    pub(crate) path: &'a Path,
    pub(crate) index: usize,
}

impl<'a> Place<'a> {
    pub(crate) fn fault(&self, fault: RecordFault) -> Error {
        Error::record(self.path, self.block.before + self.index as u64 + 1, fault)
    }

    /// Whether the file ends within the last line of the record, or at least without a line end.
    fn is_cut_off(&self) -> bool {
        let Block { unterminated, filled, .. } = *self.block;
        unterminated && self.index + 1 == self.block.records() && self.block.whole() == filled
    }

    /// Checks a record as far as that is possible without its mate.
    fn check(&self) -> Result<(), Error> {
        let [header, seq, plus, qual] = self.block.lines(self.index);
        let first = |line: &[u8]| Shown(line.first().copied().unwrap_or(b'\n'));
        if !header.starts_with(&[self.block.mark]) {
            return Err(self.fault(RecordFault::NoAt(first(header))));
        }
        if self.block.mark == b'@' {
            if !plus.starts_with(b"+") {
                return Err(self.fault(RecordFault::NoPlus(first(plus))));
            }
            if seq.len() != qual.len() {
                if self.is_cut_off() && qual.len() < seq.len() {
                    return Err(self.fault(RecordFault::Truncated));
                }
                return Err(self.fault(RecordFault::Lengths { seq: seq.len(), qual: qual.len() }));
            }
        }
        if !seq.iter().fold(true, |ok, &b| ok & usual(b))
            && let Some(&b) = seq.iter().find(|&&b| !is_iupac(b))
        {
            return Err(self.fault(RecordFault::Letter(Shown(b))));
        }
        if !qual.iter().fold(true, |ok, &q| ok & is_printable(q)) {
            let bad = qual.iter().find(|&&q| !is_printable(q)).map_or(0, |&q| q);
            return Err(self.fault(RecordFault::Quality(Shown(bad))));
        }
        Ok(())
    }

    /// Checks that a SAM record can have this name.
    fn check_name(&self) -> Result<(), Error> {
        let Record { word, name, .. } = self.view();
        if name.is_empty() {
            return Err(self.fault(RecordFault::NoName));
        }
        if word.len() > LONGEST_NAME {
            return Err(self.fault(RecordFault::LongName { length: word.len(), longest: LONGEST_NAME }));
        }
        match word.iter().find(|&&b| !is_printable(b)) {
            Some(&b) => Err(self.fault(RecordFault::NameLetter(Shown(b)))),
            None => Ok(()),
        }
    }

    /// The parts of a record that is known to be sound.
    pub(crate) fn view(&self) -> Record<'a> {
        let [header, seq, _, qual] = self.block.lines(self.index);
        let header = header.get(1..).unwrap_or_default();
        let (word, comment) = words(header);
        let (name, number) = template(word, comment);
        Record { header, word, name, number, comment, mate: Mate { seq, qual } }
    }

    fn record(&self) -> Result<Record<'a>, Error> {
        self.check()?;
        Ok(self.view())
    }
}

/// Letters nearly every read is made of; compared one by one so that the compiler can do it for many bases at once.
pub(super) fn usual(b: u8) -> bool {
    (b == b'A') | (b == b'C') | (b == b'G') | (b == b'T') | (b == b'N')
}

const IUPAC: [bool; 256] = {
    let mut table = [false; 256];
    let letters = b"ACGTUNRYSWKMBDHV";
    let mut i = 0;
    while i < letters.len() {
        table[letters[i] as usize] = true;
        table[letters[i].to_ascii_lowercase() as usize] = true;
        i += 1;
    }
    table
};

/// Whether a byte is a letter of the IUPAC nucleotide alphabet, in either case.
pub(crate) fn is_iupac(b: u8) -> bool {
    IUPAC[b as usize]
}

/// Whether a byte can be a quality, or stand in a name.
pub(crate) fn is_printable(q: u8) -> bool {
    q.wrapping_sub(b'!') <= b'~' - b'!'
}

/// The first word of a header, without its mark, and what follows that and a blank.
fn words(header: &[u8]) -> (&[u8], &[u8]) {
    let end = header.iter().position(|b| matches!(b, b' ' | b'\t')).unwrap_or(header.len());
    let (word, rest) = header.split_at(end);
    (word, rest.get(1..).unwrap_or_default())
}

/// Template name of a header without its mark: mates have the same.
pub(crate) fn template_name(header: &[u8]) -> &[u8] {
    let (word, comment) = words(header);
    template(word, comment).0
}

/// Template name and read number of a header: `name/1`, or `name 1:N:0:ACGT` (Casava 1.8), or just a name.
fn template<'a>(word: &'a [u8], comment: &[u8]) -> (&'a [u8], Option<u8>) {
    match (word, comment) {
        ([name @ .., b'/', number @ (b'1' | b'2')], _) => (name, Some(*number)),
        (_, [number @ (b'1' | b'2'), b':', ..]) => (word, Some(*number)),
        _ => (word, None),
    }
}

/// Checks that two records are mates.
pub(crate) fn check_mates(places: [Place<'_>; 2], [one, two]: [&Record<'_>; 2]) -> Result<(), Error> {
    let text = |s: &[u8]| String::from_utf8_lossy(s).into_owned();
    let mate_path = || places[1].path.to_path_buf();
    if one.name != two.name {
        let (name, mate) = (text(one.name), text(two.name));
        return Err(places[0].fault(RecordFault::Names { name, mate, mate_path: mate_path() }));
    }
    if let (Some(number), true) = (one.number, one.number == two.number) {
        let (name, number) = (text(one.name), number as char);
        return Err(places[0].fault(RecordFault::SameMate { name, number, mate_path: mate_path() }));
    }
    Ok(())
}

impl Block {
    /// Checks all records and names; the block then ends before the first that is wrong, with that as its fault.
    pub(crate) fn verify(&mut self, path: &Path) {
        for index in 0..self.records() {
            let place = Place { block: self, path, index };
            if let Err(fault) = place.check().and_then(|()| place.check_name()) {
                self.truncate(index);
                (self.more, self.fault) = (false, Some(fault));
                return;
            }
        }
    }
}

/// Checks the records of two blocks of mate files and appends them to `batch` as pairs.
pub(crate) fn pair_up(
    blocks: &mut [Block; 2],
    paths: [&Path; 2],
    batch: &mut PairBatch,
) -> Result<(), Error> {
    let records = [0, 1].map(|mate| blocks[mate].records());
    let both = records[0].min(records[1]);
    for index in 0..both {
        push_pair([0, 1].map(|mate| Place { block: &blocks[mate], path: paths[mate], index }), batch)?;
    }
    if let Some(fault) = blocks.iter_mut().find_map(|block| block.fault.take()) {
        return Err(fault);
    }
    if records[0] == records[1] {
        return Ok(());
    }
    // Only the last block of a file is shorter than asked for, so the shorter one ends its file.
    let (short, long) = if records[0] < records[1] { (0, 1) } else { (1, 0) };
    Err(Error::MatesMissing {
        short: paths[short].into(),
        records: blocks[short].before + both as u64,
        from: None,
        long: paths[long].into(),
    })
}

/// Same for a block of an interleaved file.
pub(crate) fn pair_up_interleaved(
    block: &mut Block,
    path: &Path,
    batch: &mut PairBatch,
) -> Result<(), Error> {
    let records = block.records();
    for pair in 0..records / 2 {
        push_pair([2 * pair, 2 * pair + 1].map(|index| Place { block, path, index }), batch)?;
    }
    let mut alone = None;
    if records % 2 == 1 {
        let last = Place { block, path, index: records - 1 };
        last.record()?;
        alone = Some(last.fault(RecordFault::NoMate));
    }
    block.fault.take().or(alone).map_or(Ok(()), Err)
}

/// Same for a block of reads whose mates do not matter: each is paired with an empty read.
pub(crate) fn pair_up_single(block: &mut Block, path: &Path, batch: &mut PairBatch) -> Result<(), Error> {
    for index in 0..block.records() {
        let record = Place { block, path, index }.record()?;
        batch.push(record.name, [record.mate, Mate { seq: &[], qual: &[] }]);
    }
    block.fault.take().map_or(Ok(()), Err)
}

fn push_pair(places: [Place<'_>; 2], batch: &mut PairBatch) -> Result<(), Error> {
    let [one, two] = [places[0].record()?, places[1].record()?];
    check_mates(places, [&one, &two])?;
    batch.push(one.name, [one.mate, two.mate]);
    Ok(())
}
