//! Variants, in coordinates of the reference (0-based, end exclusive).

/// A position between two reference bases: `pos - 1` and `pos`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GenomePosition {
    /// Index of the contig in the genome.
    pub contig: usize,
    /// Position of the base to the right, 0-based.
    pub pos: usize,
}

/// The bases `start..end` of a contig.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContigSpan {
    /// Index of the contig in the genome.
    pub contig: usize,
    /// First base, 0-based.
    pub start: usize,
    /// One past the last base.
    pub end: usize,
}

impl ContigSpan {
    /// Returns the length of the span, bp.
    pub fn length_bp(&self) -> usize {
        self.end - self.start
    }

    /// Returns the positions at the start and at the end of the span.
    pub(crate) fn start_and_end_positions(&self) -> [GenomePosition; 2] {
        [self.start, self.end].map(|pos| GenomePosition { contig: self.contig, pos })
    }
}

/// A replacement of reference bases by other bases: an SNV, an MNV, a deletion or an insertion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SequenceEdit {
    /// Position of the first replaced base.
    pub position: GenomePosition,
    /// Reference bases that are removed; empty for an insertion.
    pub removed: Vec<u8>,
    /// Bases that are added in their place; empty for a deletion.
    pub added: Vec<u8>,
}

impl SequenceEdit {
    /// Returns the position one past the last removed reference base.
    pub(crate) fn reference_end(&self) -> usize {
        self.position.pos + self.removed.len()
    }

    /// Returns the span of the removed reference bases; empty for an insertion.
    pub(crate) fn reference_span(&self) -> ContigSpan {
        ContigSpan { contig: self.position.contig, start: self.position.pos, end: self.reference_end() }
    }

    /// Returns whether the numbers of added and of removed bases are equal.
    pub fn is_substitution(&self) -> bool {
        self.removed.len() == self.added.len()
    }

    /// Returns whether one base is replaced by another one.
    pub(crate) fn is_snv(&self) -> bool {
        self.removed.len() == 1 && self.added.len() == 1
    }

    /// Left-aligns a pure insertion or deletion; `seq` is the sequence of the contig. Other edits are unchanged.
    pub(crate) fn left_align(&mut self, seq: &[u8]) {
        let allele = match (self.removed.is_empty(), self.added.is_empty()) {
            (true, false) => &mut self.added,
            (false, true) => &mut self.removed,
            _ => return,
        };
        // One step left rotates the allele: its last base becomes the first.
        let n = allele.len();
        let mut steps = 0;
        while self.position.pos > steps && seq[self.position.pos - 1 - steps] == allele[n - 1 - steps % n] {
            steps += 1;
        }
        allele.rotate_right(steps % n);
        self.position.pos -= steps;
    }
}

/// A change of 50 bp or more: which ranges of the reference are deleted, copied, inverted or joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StructuralVariant {
    Deletion(ContigSpan),
    /// Insertion of novel bases.
    Insertion(GenomePosition, Vec<u8>),
    /// Tandem duplication of a span: a second copy follows the first one.
    Duplication(ContigSpan),
    /// Amplification of a span: many copies in tandem.
    Amplification {
        span: ContigSpan,
        /// Number of copies of the span in tandem.
        copies: usize,
    },
    Inversion(ContigSpan),
    /// Reciprocal translocation: two chromosomes exchange their ends.
    Translocation {
        /// The breakpoint on each of the two chromosomes.
        cuts: [GenomePosition; 2],
        /// Whether each chromosome part is joined to the other one in inverted orientation (head to head and tail to
        /// tail).
        inverted: bool,
    },
    /// Dispersed duplication: a copy of a span is inserted elsewhere.
    Copy {
        from: ContigSpan,
        /// Position at which the copy of the span is inserted.
        to: GenomePosition,
        /// Whether the inserted copy is the reverse complement.
        inverted: bool,
    },
}

/// Side of a breakend on which the reference sequence is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum BreakendSide {
    /// The bases on the left are kept, up to and including the base of the breakend (BEDPE strand `+`).
    Left,
    /// The bases on the right are kept, from the base of the breakend on (BEDPE strand `-`).
    Right,
}

/// One end of a new adjacency: position, and the side that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Breakend {
    /// Index of the contig.
    pub contig: usize,
    /// Position of the outermost reference base that is kept, 0-based.
    pub base: usize,
    /// Side of the breakend on which the reference sequence is kept.
    pub side: BreakendSide,
}

impl GenomePosition {
    fn breakend(self, side: BreakendSide) -> Breakend {
        let base = if side == BreakendSide::Left { self.pos - 1 } else { self.pos };
        Breakend { contig: self.contig, base, side }
    }
}

impl StructuralVariant {
    /// Returns the class of the variant as in the truth: DEL, INS, DUP, INV, TRA or COPY.
    pub fn class_name(&self) -> &'static str {
        match self {
            StructuralVariant::Deletion(_) => "DEL",
            StructuralVariant::Insertion(..) => "INS",
            StructuralVariant::Duplication(_) | StructuralVariant::Amplification { .. } => "DUP",
            StructuralVariant::Inversion(_) => "INV",
            StructuralVariant::Translocation { .. } => "TRA",
            StructuralVariant::Copy { .. } => "COPY",
        }
    }

    /// Returns all breakpoints: the positions at which the reference is cut or from which it is copied.
    pub fn breakpoints(&self) -> Vec<GenomePosition> {
        match self {
            StructuralVariant::Deletion(s)
            | StructuralVariant::Duplication(s)
            | StructuralVariant::Amplification { span: s, .. }
            | StructuralVariant::Inversion(s) => s.start_and_end_positions().to_vec(),
            StructuralVariant::Insertion(c, _) => vec![*c],
            StructuralVariant::Translocation { cuts, .. } => cuts.to_vec(),
            StructuralVariant::Copy { from, to, .. } => [from.start_and_end_positions().as_slice(), &[*to]].concat(),
        }
    }

    /// Returns the span that is deleted, amplified, inverted or copied; `None` for insertions and translocations.
    pub(crate) fn affected_span(&self) -> Option<ContigSpan> {
        match self {
            StructuralVariant::Deletion(s)
            | StructuralVariant::Duplication(s)
            | StructuralVariant::Amplification { span: s, .. }
            | StructuralVariant::Inversion(s) => Some(*s),
            StructuralVariant::Copy { from, .. } => Some(*from),
            StructuralVariant::Insertion(..) | StructuralVariant::Translocation { .. } => None,
        }
    }

    /// Returns the number of copies of [`Self::affected_span`] that the variant adds; −1 for a deletion.
    pub(crate) fn num_added_copies(&self) -> i32 {
        match self {
            StructuralVariant::Deletion(_) => -1,
            StructuralVariant::Duplication(_) | StructuralVariant::Copy { .. } => 1,
            StructuralVariant::Amplification { copies, .. } => *copies as i32 - 1,
            _ => 0,
        }
    }

    /// Returns the new adjacencies, each as two breakends that are joined.
    pub(crate) fn adjacencies(&self) -> Vec<[Breakend; 2]> {
        use BreakendSide::{Left, Right};
        let across = |a: GenomePosition, b: GenomePosition, inverted: bool| {
            if inverted {
                vec![[a.breakend(Left), b.breakend(Left)], [a.breakend(Right), b.breakend(Right)]]
            } else {
                vec![[a.breakend(Left), b.breakend(Right)], [b.breakend(Left), a.breakend(Right)]]
            }
        };
        match self {
            StructuralVariant::Deletion(s) => {
                vec![[s.start_and_end_positions()[0].breakend(Left), s.start_and_end_positions()[1].breakend(Right)]]
            }
            StructuralVariant::Duplication(s) | StructuralVariant::Amplification { span: s, .. } => {
                vec![[s.start_and_end_positions()[1].breakend(Left), s.start_and_end_positions()[0].breakend(Right)]]
            }
            StructuralVariant::Insertion(c, _) => vec![[c.breakend(Left), c.breakend(Right)]],
            StructuralVariant::Inversion(s) => {
                across(s.start_and_end_positions()[0], s.start_and_end_positions()[1], true)
            }
            StructuralVariant::Translocation { cuts: [a, b], inverted } => across(*a, *b, *inverted),
            StructuralVariant::Copy { from, to, inverted } => {
                let [start, end] = from.start_and_end_positions();
                if *inverted {
                    vec![[to.breakend(Left), end.breakend(Left)], [start.breakend(Right), to.breakend(Right)]]
                } else {
                    vec![[to.breakend(Left), start.breakend(Right)], [end.breakend(Left), to.breakend(Right)]]
                }
            }
        }
    }
}
