//! A molecule of the library: what of the DNA it is made of, and its bases after all that happened to it.

use genuma_reads::dna;

use super::fragments::Fragment;
use super::tube::Kind;
use crate::origin::Place;
use crate::tandem::Tract;

/// A fragment, or a part of one, and whether the molecule reads it from its end.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// The bases.
    pub fragment: Fragment<'a>,
    /// Whether the molecule's strand is the other one.
    pub reverse: bool,
}

impl<'a> Part<'a> {
    /// Bases `start..end` as the molecule reads them.
    pub fn cut(&self, start: usize, end: usize) -> Part<'a> {
        let n = self.fragment.len();
        let (start, end) = if self.reverse { (n - end, n - start) } else { (start, end) };
        Part { fragment: self.fragment.part(start, end), ..*self }
    }

    /// Where a mate of `length` bases comes from that begins at one of its ends.
    fn place(&self, mate: usize, length: usize) -> Option<Place> {
        let last = self.reverse == (mate == 0);
        let place = self.fragment.end_place(length, last)?;
        Some(Place { reverse: place.reverse ^ last, ..place })
    }
}

/// A molecule with adapters at its ends; the adapters are not among its bases. The strand that read 1 reads counts.
#[derive(Debug, Clone)]
pub(crate) struct Molecule<'a> {
    bases: Vec<u8>,
    /// Whether `bases` are those of the other strand.
    reverse: bool,
    /// One, two if it was joined, none if it is but adapters.
    parts: [Option<Part<'a>>; 2],
    /// Bases gained (or lost, if negative) by slips, and where.
    slips: Vec<(usize, isize)>,
    /// Tandem repeats of `bases`, if anybody asks for them.
    pub tracts: Vec<Tract>,
    /// Whose it is.
    pub kind: Kind,
    /// Whether a target caught it.
    pub(crate) captured: bool,
}

impl<'a> Molecule<'a> {
    /// A fragment as it is; `reverse` if read 1 reads its other strand.
    pub fn new(fragment: Fragment<'a>, reverse: bool, kind: Kind) -> Self {
        let parts = [Some(Part { fragment, reverse }), None];
        Molecule {
            bases: fragment.bases(),
            reverse,
            parts,
            slips: vec![],
            tracts: vec![],
            kind,
            captured: false,
        }
    }

    /// Two adapters with nothing between them.
    pub(crate) fn dimer() -> Self {
        Molecule {
            bases: vec![],
            reverse: false,
            parts: [None; 2],
            slips: vec![],
            tracts: vec![],
            kind: Kind::Patient,
            captured: false,
        }
    }

    /// Its length, bp.
    pub fn len(&self) -> usize {
        self.bases.len()
    }

    /// The part that it consists of, if that is one only.
    pub fn whole(&self) -> Option<Part<'a>> {
        if self.parts[1].is_none() { self.parts[0] } else { None }
    }

    /// A base of read 1's strand.
    pub fn base(&self, at: usize) -> u8 {
        if self.reverse { dna::complement(self.bases[self.bases.len() - 1 - at]) } else { self.bases[at] }
    }

    /// Its bases as they are kept: those of read 1's strand or of the other one.
    pub fn bases(&self) -> &[u8] {
        &self.bases
    }

    /// Read 1's strand, to be changed in place.
    pub fn strand(&mut self) -> &mut Vec<u8> {
        if self.reverse {
            self.bases = dna::revcomp(&self.bases);
            self.reverse = false;
        }
        &mut self.bases
    }

    /// Replaces what it consists of.
    pub fn rebuild(&mut self, bases: Vec<u8>, parts: [Option<Part<'a>>; 2]) {
        self.bases = bases;
        self.reverse = false;
        self.parts = parts;
    }

    /// Remembers that the strand gained bases (negative: lost) at a place.
    pub fn slipped(&mut self, at: usize, gained: isize) {
        self.slips.push((at, gained));
    }

    /// Whether a mate reads [`Self::bases`] from their end.
    pub(crate) fn read_backwards(&self, mate: usize) -> bool {
        self.reverse == (mate == 0)
    }

    /// Adds up to `length` bases as a mate reads them.
    pub fn read(&self, mate: usize, length: usize, bases: &mut Vec<u8>) {
        if self.read_backwards(mate) {
            bases.extend(self.bases.iter().rev().take(length).map(|&b| dna::complement(b)));
        } else {
            bases.extend(&self.bases[..length.min(self.bases.len())]);
        }
    }

    /// Where a mate comes from that has read `length` bases; `None` when that is no one place.
    pub fn place(&self, mate: usize, length: usize) -> Option<Place> {
        let from_end = |at: usize| if mate == 0 { at } else { self.bases.len().saturating_sub(at) };
        let passed = self.slips.iter().filter(|(at, _)| from_end(*at) < length);
        let gained: isize = passed.map(|(_, gained)| gained).sum();
        let length = length.saturating_add_signed(-gained);
        let part = if mate == 0 { self.parts[0] } else { self.parts[1].or(self.parts[0]) }?;
        // Beyond a joint there is another place; beyond the ends there is nothing more to come from anywhere.
        let joined = self.parts[1].is_some();
        if joined && length > part.fragment.len() { None } else { part.place(mate, length) }
    }
}
