//! What can change in a genome, in coordinates of the reference (0-based, half-open).

/// A cut of the reference between `pos - 1` and `pos`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cut {
    /// Contig number.
    pub contig: usize,
    /// First base right of the cut.
    pub pos: usize,
}

/// Bases `start..end` of a contig.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Contig number.
    pub contig: usize,
    /// First base.
    pub start: usize,
    /// One past the last base.
    pub end: usize,
}

impl Span {
    /// Length, bp.
    pub fn length(&self) -> usize {
        self.end - self.start
    }

    /// The cuts at both ends.
    pub fn cuts(&self) -> [Cut; 2] {
        [self.start, self.end].map(|pos| Cut { contig: self.contig, pos })
    }
}

/// Replaces the reference bases from `at.pos` on by other bases: an SNV, a deletion or an insertion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Where it begins.
    pub at: Cut,
    /// Bases taken out.
    pub removed: Vec<u8>,
    /// Bases put in.
    pub added: Vec<u8>,
}

impl Edit {
    /// One past the last reference base taken out.
    pub fn end(&self) -> usize {
        self.at.pos + self.removed.len()
    }

    /// The reference bases taken out.
    pub fn span(&self) -> Span {
        Span { contig: self.at.contig, start: self.at.pos, end: self.end() }
    }

    /// Whether bases are replaced by as many others.
    pub fn is_substitution(&self) -> bool {
        self.removed.len() == self.added.len()
    }

    /// Whether one base is replaced by another.
    pub(crate) fn is_snv(&self) -> bool {
        self.removed.len() == 1 && self.added.len() == 1
    }

    /// Moves a pure insertion or deletion as far left as the reference allows.
    pub fn left_align(&mut self, seq: &[u8]) {
        let allele = match (self.removed.is_empty(), self.added.is_empty()) {
            (true, false) => &mut self.added,
            (false, true) => &mut self.removed,
            _ => return,
        };
        // One step left turns the allele like a wheel: its last base comes to the front.
        let n = allele.len();
        let mut steps = 0;
        while self.at.pos > steps && seq[self.at.pos - 1 - steps] == allele[n - 1 - steps % n] {
            steps += 1;
        }
        allele.rotate_right(steps % n);
        self.at.pos -= steps;
    }
}

/// Structural variants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Structural {
    /// A span is lost.
    Deletion(Span),
    /// Novel bases are put in.
    Insertion(Cut, Vec<u8>),
    /// A span is there twice, side by side.
    Duplication(Span),
    /// A span is there many times, side by side.
    Amplification {
        /// The span.
        span: Span,
        /// How often it is there.
        copies: usize,
    },
    /// A span is turned round.
    Inversion(Span),
    /// Two chromosomes exchange their ends; `inverted`: left end to left end.
    Translocation {
        /// The cuts.
        cuts: [Cut; 2],
        /// Whether the parts are joined head to head.
        inverted: bool,
    },
    /// A copy of a span is put in elsewhere.
    Copy {
        /// What is copied.
        from: Span,
        /// Where the copy goes.
        to: Cut,
        /// Whether the copy is turned round.
        inverted: bool,
    },
}

/// Which part of the reference beside a breakend is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// What lies left of the breakend, up to and with its base: BEDPE `+`.
    Left,
    /// What lies right of it, from its base on: BEDPE `-`.
    Right,
}

/// One end of a new adjacency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breakend {
    /// Contig number.
    pub contig: usize,
    /// The last reference base that is kept, 0-based.
    pub base: usize,
    /// Where the kept sequence lies.
    pub side: Side,
}

impl Cut {
    fn end(self, side: Side) -> Breakend {
        let base = if side == Side::Left { self.pos - 1 } else { self.pos };
        Breakend { contig: self.contig, base, side }
    }
}

impl Structural {
    /// Short name of the class: DEL, INS, DUP, INV, TRA or COPY.
    pub fn class(&self) -> &'static str {
        match self {
            Structural::Deletion(_) => "DEL",
            Structural::Insertion(..) => "INS",
            Structural::Duplication(_) | Structural::Amplification { .. } => "DUP",
            Structural::Inversion(_) => "INV",
            Structural::Translocation { .. } => "TRA",
            Structural::Copy { .. } => "COPY",
        }
    }

    /// Every place where the reference is cut or copied from.
    pub fn cuts(&self) -> Vec<Cut> {
        match self {
            Structural::Deletion(s)
            | Structural::Duplication(s)
            | Structural::Amplification { span: s, .. }
            | Structural::Inversion(s) => s.cuts().to_vec(),
            Structural::Insertion(c, _) => vec![*c],
            Structural::Translocation { cuts, .. } => cuts.to_vec(),
            Structural::Copy { from, to, .. } => [from.cuts().as_slice(), &[*to]].concat(),
        }
    }

    /// The span that is lost, gained, turned or copied, if there is one.
    pub fn body(&self) -> Option<Span> {
        match self {
            Structural::Deletion(s)
            | Structural::Duplication(s)
            | Structural::Amplification { span: s, .. }
            | Structural::Inversion(s) => Some(*s),
            Structural::Copy { from, .. } => Some(*from),
            Structural::Insertion(..) | Structural::Translocation { .. } => None,
        }
    }

    /// How many copies of [`Self::body`] the variant adds.
    pub(crate) fn copies_added(&self) -> i32 {
        match self {
            Structural::Deletion(_) => -1,
            Structural::Duplication(_) | Structural::Copy { .. } => 1,
            Structural::Amplification { copies, .. } => *copies as i32 - 1,
            _ => 0,
        }
    }

    /// Pairs of bases that become neighbours and were not.
    pub(crate) fn adjacencies(&self) -> Vec<[Breakend; 2]> {
        use Side::{Left, Right};
        let across = |a: Cut, b: Cut, inverted: bool| {
            if inverted {
                vec![[a.end(Left), b.end(Left)], [a.end(Right), b.end(Right)]]
            } else {
                vec![[a.end(Left), b.end(Right)], [b.end(Left), a.end(Right)]]
            }
        };
        match self {
            Structural::Deletion(s) => vec![[s.cuts()[0].end(Left), s.cuts()[1].end(Right)]],
            Structural::Duplication(s) | Structural::Amplification { span: s, .. } => {
                vec![[s.cuts()[1].end(Left), s.cuts()[0].end(Right)]]
            }
            Structural::Insertion(c, _) => vec![[c.end(Left), c.end(Right)]],
            Structural::Inversion(s) => across(s.cuts()[0], s.cuts()[1], true),
            Structural::Translocation { cuts: [a, b], inverted } => across(*a, *b, *inverted),
            Structural::Copy { from, to, inverted } => {
                let [start, end] = from.cuts();
                if *inverted {
                    vec![[to.end(Left), end.end(Left)], [start.end(Right), to.end(Right)]]
                } else {
                    vec![[to.end(Left), start.end(Right)], [end.end(Left), to.end(Right)]]
                }
            }
        }
    }
}
