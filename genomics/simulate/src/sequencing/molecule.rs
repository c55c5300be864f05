//! A library molecule: the fragments that it consists of, and its bases after all artefacts.

use genuma_reads::dna;

use super::amplicon_products::PrimerPair;
use super::dna_pool::DnaSource;
use super::fragments::Fragment;
use crate::reference_origins::ReferencePlacement;
use crate::tandem_repeats::TandemRepeat;

/// A fragment (or a part of one) in a molecule, with its strand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MoleculePart<'a> {
    /// The fragment from which the bases of this part come.
    pub fragment: Fragment<'a>,
    /// Whether the molecule contains the reverse complement of the fragment.
    pub reverse: bool,
}

impl<'a> MoleculePart<'a> {
    /// Returns the bases `start..end` of this part, counted in the direction of the molecule.
    pub(crate) fn subpart(&self, start: usize, end: usize) -> MoleculePart<'a> {
        let n = self.fragment.len();
        let (start, end) = if self.reverse { (n - end, n - start) } else { (start, end) };
        MoleculePart { fragment: self.fragment.subfragment(start, end), ..*self }
    }

    /// Returns the reference placement of a mate (0: read 1, 1: read 2) of `length` bases that starts at its end of the
    /// part.
    fn reference_placement_of_mate(&self, mate: usize, length: usize) -> Option<ReferencePlacement> {
        let last = self.reverse == (mate == 0);
        let place = self.fragment.reference_placement_of_end_bases(length, last)?;
        Some(ReferencePlacement { reverse: place.reverse ^ last, ..place })
    }
}

/// A library molecule between its adapters. Positions and artefacts refer to the strand that read 1 reads.
#[derive(Debug, Clone)]
pub(crate) struct Molecule<'a> {
    bases: Vec<u8>,
    /// Whether `bases` is the reverse complement of the strand that read 1 reads.
    reverse: bool,
    /// Fragments that the molecule consists of: one; two for chimeras and fold-backs; both `None` for adapter dimers.
    parts: [Option<MoleculePart<'a>>; 2],
    /// Position of each slippage error, and the number of bases that it added (negative: removed).
    slips: Vec<(usize, isize)>,
    /// Number of bases before the template in read 1 and in read 2: UMI and skipped bases.
    pub(crate) prefix_bp: [usize; 2],
    /// Tandem repeats in the stored bases, if slippage is simulated; otherwise empty.
    pub repeats: Vec<TandemRepeat>,
    /// Origin of the DNA: patient, foreign or mitochondrial.
    pub source: DnaSource,
    /// Whether the molecule was enriched by target capture.
    pub(crate) captured: bool,
}

impl<'a> Molecule<'a> {
    /// Creates a molecule from one fragment, without artefacts. If `reverse` is set, read 1 reads the reverse
    /// complement of the fragment.
    pub(crate) fn from_fragment(fragment: Fragment<'a>, reverse: bool, kind: DnaSource) -> Self {
        let parts = [Some(MoleculePart { fragment, reverse }), None];
        Molecule {
            bases: fragment.to_bases(),
            reverse,
            parts,
            slips: vec![],
            prefix_bp: [0; 2],
            repeats: vec![],
            source: kind,
            captured: false,
        }
    }

    /// Creates an adapter dimer, which has no insert.
    pub(crate) fn new_adapter_dimer() -> Self {
        Molecule {
            bases: vec![],
            reverse: false,
            parts: [None; 2],
            slips: vec![],
            prefix_bp: [0; 2],
            repeats: vec![],
            source: DnaSource::Patient,
            captured: false,
        }
    }

    /// Returns the length of the molecule without adapters, bp.
    pub(crate) fn len(&self) -> usize {
        self.bases.len()
    }

    /// Returns the molecule's fragment with its strand if it consists of exactly one; otherwise `None`.
    pub(crate) fn only_part(&self) -> Option<MoleculePart<'a>> {
        if self.parts[1].is_none() { self.parts[0] } else { None }
    }

    /// Returns the base at a position of the strand that read 1 reads.
    pub(crate) fn base_of_read1_strand(&self, at: usize) -> u8 {
        if self.reverse { dna::complement(self.bases[self.bases.len() - 1 - at]) } else { self.bases[at] }
    }

    /// Returns the stored bases: the strand that read 1 reads, or its reverse complement.
    pub(crate) fn bases_on_stored_strand(&self) -> &[u8] {
        &self.bases
    }

    /// Returns the strand that read 1 reads for modification; reverse complements the stored bases if needed.
    pub(crate) fn read1_strand_mut(&mut self) -> &mut Vec<u8> {
        if self.reverse {
            self.bases = dna::reverse_complement(&self.bases);
            self.reverse = false;
        }
        &mut self.bases
    }

    /// Replaces the bases at both ends by primers. The first primer is that with which read 1 begins, the last that
    /// with which read 2 begins.
    pub(crate) fn replace_ends_by_primers(&mut self, [first, last]: PrimerPair<'_>) {
        let strand = self.read1_strand_mut();
        let behind = strand.len() - last.len();
        strand[..first.len()].copy_from_slice(first);
        strand[behind..].copy_from_slice(&dna::reverse_complement(last));
    }

    /// Adds bases at both ends: those that read 1 and read 2 show before the template, such as UMIs.
    pub(crate) fn ligate_bases_before_template(&mut self, [first, second]: &[Vec<u8>; 2]) {
        let strand = self.read1_strand_mut();
        strand.splice(0..0, first.iter().copied());
        strand.extend(dna::reverse_complement(second));
        self.prefix_bp = [first.len(), second.len()];
    }

    /// Replaces the bases of the molecule, and the fragments from which they come.
    pub(crate) fn replace_bases_and_parts(&mut self, bases: Vec<u8>, parts: [Option<MoleculePart<'a>>; 2]) {
        self.bases = bases;
        self.reverse = false;
        self.parts = parts;
    }

    /// Records a slippage error: the position, and the number of bases that it added (negative: removed).
    pub(crate) fn record_slip(&mut self, at: usize, gained: isize) {
        self.slips.push((at, gained));
    }

    /// Returns whether a mate (0: read 1, 1: read 2) starts at the end of the stored bases and reads their reverse
    /// complement.
    pub(crate) fn mate_starts_at_stored_end(&self, mate: usize) -> bool {
        self.reverse == (mate == 0)
    }

    /// Appends up to `length` bases, as a mate (0: read 1, 1: read 2) reads them.
    pub(crate) fn append_mate_bases(&self, mate: usize, length: usize, bases: &mut Vec<u8>) {
        if self.mate_starts_at_stored_end(mate) {
            bases.extend(self.bases.iter().rev().take(length).map(|&b| dna::complement(b)));
        } else {
            bases.extend(&self.bases[..length.min(self.bases.len())]);
        }
    }

    /// Returns the reference placement of a mate (0: read 1, 1: read 2) that reads `length` bases. `None` if none of
    /// these bases come from the reference, or if they span a breakpoint or the junction of two parts.
    pub(crate) fn reference_placement_of_mate(&self, mate: usize, length: usize) -> Option<ReferencePlacement> {
        let from_end = |at: usize| if mate == 0 { at } else { self.bases.len().saturating_sub(at) };
        let passed = self.slips.iter().filter(|(at, _)| from_end(*at) < length);
        let gained: isize = passed.map(|(_, gained)| gained).sum();
        let length = length.saturating_add_signed(-gained);
        let length = match self.prefix_bp[mate] {
            0 => length,
            prefix => length.checked_sub(prefix).filter(|template| *template > 0)?,
        };
        let part = if mate == 0 { self.parts[0] } else { self.parts[1].or(self.parts[0]) }?;
        // Beyond the junction of two parts there is another placement; beyond the ends there is none.
        let joined = self.parts[1].is_some();
        if joined && length > part.fragment.len() { None } else { part.reference_placement_of_mate(mate, length) }
    }
}
