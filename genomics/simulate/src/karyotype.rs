//! A haplotype as pieces of the reference in a new order, and the sequence that it spells.

use std::sync::Arc;

use crate::genome::Genome;
use crate::origin::Origins;
use crate::ploidy::Ploidy;
use crate::sequence::Sequence;
use crate::variant::{Cut, Edit, Span, Structural};

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Reference(Span),
    Novel(Vec<u8>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    content: Content,
    reverse: bool,
    age: Age,
}

/// Copies of an amplified span are as old as the variants that they have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Age {
    /// Has every variant of its haplotype.
    Late,
    /// Was there before some of the variants.
    Early,
}

/// Small variants of one haplotype by contig, sorted, not overlapping each other and not reaching over a cut.
#[derive(Debug, Default)]
pub struct Edits<'a> {
    /// Of late pieces, which is all of them unless a span is amplified.
    pub late: Vec<Vec<&'a Edit>>,
    /// Of early pieces.
    pub early: Vec<Vec<&'a Edit>>,
}

impl<'a> Edits<'a> {
    fn of(&self, age: Age) -> &[Vec<&'a Edit>] {
        match age {
            Age::Late => &self.late,
            Age::Early => &self.early,
        }
    }
}

/// One haplotype: chromosomes, each a row of pieces.
#[derive(Debug, Clone)]
pub struct Karyotype {
    chromosomes: Vec<Vec<Piece>>,
    /// How often each chromosome is there.
    copies: Vec<usize>,
}

/// A boundary between pieces: `chromosomes[chromosome][..piece]` lies before it.
struct Boundary {
    chromosome: usize,
    piece: usize,
    reverse: bool,
}

/// Two cuts to be exchanged lie on one derived chromosome.
#[derive(Debug, PartialEq, Eq)]
pub struct SameChromosome;

impl Karyotype {
    /// The unchanged reference.
    pub fn new(genome: &Genome) -> Self {
        let whole = |(contig, seq): (usize, &Arc<Vec<u8>>)| {
            vec![Piece {
                content: Content::Reference(Span { contig, start: 0, end: seq.len() }),
                reverse: false,
                age: Age::Late,
            }]
        };
        Karyotype {
            chromosomes: genome.seqs.iter().enumerate().map(whole).collect(),
            copies: vec![1; genome.seqs.len()],
        }
    }

    /// The two haplotypes of a healthy cell.
    pub fn healthy(genome: &Genome, ploidy: &Ploidy) -> [Karyotype; 2] {
        [0, 1].map(|haplotype| {
            let copies = (0..genome.seqs.len()).map(|i| usize::from(ploidy.haplotypes(i)[haplotype]));
            Karyotype { copies: copies.collect(), ..Karyotype::new(genome) }
        })
    }

    /// Says how often a chromosome is there. Chromosomes have the number of the contig that they begin with.
    pub(crate) fn set_copies(&mut self, chromosome: usize, copies: usize) {
        self.copies[chromosome] = copies;
    }

    /// How often each chromosome is there, in the order of [`Self::spell`].
    pub fn copies(&self) -> &[usize] {
        &self.copies
    }

    /// How often a base of the reference is there beyond once for each of its pieces, because its chromosome is; negative
    /// where the chromosome is lost.
    pub fn gained(&self, at: Cut) -> f64 {
        let covers = |p: &&Piece| match p.content {
            Content::Reference(span) => span.contig == at.contig && span.start <= at.pos && at.pos < span.end,
            Content::Novel(_) => false,
        };
        let pieces = |row: &Vec<Piece>| row.iter().filter(covers).count() as f64;
        let rows = self.chromosomes.iter().zip(&self.copies).filter(|(_, copies)| **copies != 1);
        rows.map(|(row, &copies)| (copies as f64 - 1.0) * pieces(row)).sum()
    }

    /// Every stretch of the reference that is there, with how often its chromosome is.
    pub fn stretches(&self) -> impl Iterator<Item = (Span, usize)> + '_ {
        self.chromosomes.iter().zip(&self.copies).flat_map(|(row, &copies)| {
            row.iter().filter_map(move |piece| match piece.content {
                Content::Reference(span) => Some((span, copies)),
                Content::Novel(_) => None,
            })
        })
    }

    /// How often a base of the reference is there: in `(all, late)` pieces, chromosomes times their copies.
    pub(crate) fn occurrences(&self, at: Cut) -> (usize, usize) {
        let (mut all, mut late) = (0, 0);
        for (row, &copies) in self.chromosomes.iter().zip(&self.copies) {
            for piece in row {
                let Content::Reference(span) = piece.content else { continue };
                if span.contig == at.contig && span.start <= at.pos && at.pos < span.end {
                    all += copies;
                    late += copies * usize::from(piece.age == Age::Late);
                }
            }
        }
        (all, late)
    }

    /// Carries out one variant. Its cuts must not have been used by another one, and its body must be untouched.
    pub fn apply(&mut self, variant: &Structural) -> Result<(), SameChromosome> {
        match variant {
            Structural::Deletion(span) => {
                let at = self.isolate(*span);
                self.chromosomes[at.chromosome].remove(at.piece);
            }
            Structural::Duplication(span) => {
                let at = self.isolate(*span);
                let row = &mut self.chromosomes[at.chromosome];
                row.insert(at.piece, row[at.piece].clone());
            }
            Structural::Amplification { span, copies } => {
                let at = self.isolate(*span);
                let row = &mut self.chromosomes[at.chromosome];
                let piece = row.remove(at.piece);
                let age = |copy: usize| if copy.is_multiple_of(2) { Age::Late } else { Age::Early };
                let tandem = (0..*copies).map(|copy| Piece { age: age(copy), ..piece.clone() });
                row.splice(at.piece..at.piece, tandem);
            }
            Structural::Inversion(span) => {
                let at = self.isolate(*span);
                self.chromosomes[at.chromosome][at.piece].reverse ^= true;
            }
            Structural::Insertion(cut, sequence) => {
                self.insert(*cut, Content::Novel(sequence.clone()), false)
            }
            Structural::Copy { from, to, inverted } => self.insert(*to, Content::Reference(*from), *inverted),
            Structural::Translocation { cuts: [a, b], inverted } => {
                let (chromosome_a, chromosome_b) = (self.split(*a).chromosome, self.split(*b).chromosome);
                if chromosome_a == chromosome_b {
                    return Err(SameChromosome);
                }
                let (at_a, at_b) = (self.split_forward(*a), self.split_forward(*b));
                let tail_a = self.chromosomes[at_a.chromosome].split_off(at_a.piece);
                let tail_b = self.chromosomes[at_b.chromosome].split_off(at_b.piece);
                if *inverted {
                    let head_b = std::mem::take(&mut self.chromosomes[at_b.chromosome]);
                    self.chromosomes[at_a.chromosome].extend(turned(head_b));
                    self.chromosomes[at_b.chromosome] = turned(tail_a);
                    self.chromosomes[at_b.chromosome].extend(tail_b);
                } else {
                    self.chromosomes[at_a.chromosome].extend(tail_b);
                    self.chromosomes[at_b.chromosome].extend(tail_a);
                }
            }
        }
        Ok(())
    }

    /// Makes `span` a piece of its own; returns where it is.
    fn isolate(&mut self, span: Span) -> Boundary {
        let [start, end] = span.cuts();
        self.split(start);
        let at = self.split(end);
        let piece = if at.reverse { at.piece } else { at.piece - 1 };
        debug_assert_eq!(self.chromosomes[at.chromosome][piece].content, Content::Reference(span));
        Boundary { piece, ..at }
    }

    fn insert(&mut self, cut: Cut, content: Content, inverted: bool) {
        let at = self.split(cut);
        let piece = Piece { content, reverse: inverted ^ at.reverse, age: Age::Late };
        self.chromosomes[at.chromosome].insert(at.piece, piece);
    }

    /// Makes the cut a boundary between pieces and says where it is.
    fn split(&mut self, cut: Cut) -> Boundary {
        for (chromosome, row) in self.chromosomes.iter_mut().enumerate() {
            for piece in 0..row.len() {
                let Content::Reference(span) = row[piece].content else { continue };
                let Piece { reverse, age, .. } = row[piece];
                if span.contig != cut.contig || cut.pos <= span.start || cut.pos > span.end {
                    continue;
                }
                if cut.pos < span.end {
                    let mut halves = [Span { end: cut.pos, ..span }, Span { start: cut.pos, ..span }]
                        .map(Content::Reference);
                    if reverse {
                        halves.reverse();
                    }
                    row.splice(piece..=piece, halves.map(|content| Piece { content, reverse, age }));
                    return Boundary { chromosome, piece: piece + 1, reverse };
                }
                // Already the end of a piece: the boundary lies behind it, or before it when it is turned round.
                return Boundary { chromosome, piece: if reverse { piece } else { piece + 1 }, reverse };
            }
        }
        unreachable!("cut {cut:?} lies outside the genome or in a deleted span")
    }

    /// Like [`Self::split`], but turns the chromosome round if need be, so that the cut reads forward.
    fn split_forward(&mut self, cut: Cut) -> Boundary {
        let at = self.split(cut);
        if !at.reverse {
            return at;
        }
        let row = std::mem::take(&mut self.chromosomes[at.chromosome]);
        let piece = row.len() - at.piece;
        self.chromosomes[at.chromosome] = turned(row);
        Boundary { piece, reverse: false, ..at }
    }

    /// Every chromosome with small variants in place.
    pub fn spell<'a>(&'a self, genome: &'a Genome, edits: &Edits<'a>) -> Vec<Sequence<'a>> {
        let row = |row: &'a Vec<Piece>| {
            let mut sequence = Sequence::default();
            for piece in row {
                match &piece.content {
                    Content::Novel(bases) => sequence.push(bases, piece.reverse),
                    Content::Reference(span) => {
                        let edits = edits_within(*span, &edits.of(piece.age)[span.contig]);
                        sequence.push_span(&genome.seqs[span.contig], *span, edits, piece.reverse);
                    }
                }
            }
            sequence
        };
        self.chromosomes.iter().map(row).collect()
    }

    /// Where the bases that [`Self::spell`] gives with the same `edits` come from, chromosome by chromosome.
    pub(crate) fn origins(&self, edits: &Edits) -> Vec<Origins> {
        let row = |row: &Vec<Piece>| {
            let mut origins = Origins::default();
            for piece in row {
                match &piece.content {
                    Content::Novel(sequence) => origins.novel(sequence.len()),
                    Content::Reference(span) => {
                        let edits = edits_within(*span, &edits.of(piece.age)[span.contig]);
                        origins.reference(*span, edits, piece.reverse);
                    }
                }
            }
            origins
        };
        self.chromosomes.iter().map(row).collect()
    }
}

fn turned(row: Vec<Piece>) -> Vec<Piece> {
    row.into_iter().rev().map(|p| Piece { reverse: !p.reverse, ..p }).collect()
}

/// The part of a contig's sorted edits that lies in `span`.
fn edits_within<'a, 'e>(span: Span, edits: &'a [&'e Edit]) -> &'a [&'e Edit] {
    let from = edits.partition_point(|e| e.at.pos < span.start);
    let inside = edits[from..].iter().take_while(|e| e.end() <= span.end && e.at.pos < span.end).count();
    &edits[from..from + inside]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn genome() -> Genome {
        Genome::new(vec!["a".into(), "b".into()], vec![b"AACCAACCTT".to_vec(), b"GGTGTGAGAG".to_vec()])
    }

    fn spelled(variants: &[Structural]) -> Vec<String> {
        let genome = genome();
        let mut karyotype = Karyotype::new(&genome);
        for v in variants {
            karyotype.apply(v).unwrap();
        }
        let text = |s: Sequence| String::from_utf8(s.bases(0..s.len())).unwrap();
        let edits = Edits { late: vec![vec![]; 2], early: vec![vec![]; 2] };
        karyotype.spell(&genome, &edits).into_iter().map(text).collect()
    }

    const SPAN: Span = Span { contig: 0, start: 3, end: 6 };
    const A: Cut = Cut { contig: 0, pos: 4 };
    const B: Cut = Cut { contig: 1, pos: 7 };

    #[test]
    fn each_class_spells_what_it_says() {
        let b = "GGTGTGAGAG";
        assert_eq!(spelled(&[Structural::Deletion(SPAN)]), ["AACCCTT", b]);
        assert_eq!(spelled(&[Structural::Duplication(SPAN)]), ["AACCAACAACCTT", b]);
        assert_eq!(spelled(&[Structural::Inversion(SPAN)]), ["AACTTGCCTT", b]);
        assert_eq!(spelled(&[Structural::Insertion(A, b"GGG".to_vec())]), ["AACCGGGAACCTT", b]);
        let translocation = |inverted| Structural::Translocation { cuts: [A, B], inverted };
        assert_eq!(spelled(&[translocation(false)]), ["AACCGAG", "GGTGTGAAACCTT"]);
        assert_eq!(spelled(&[translocation(true)]), ["AACCTCACACC", "AAGGTTGAG"]);
        let copy = |inverted| Structural::Copy { from: SPAN, to: B, inverted };
        assert_eq!(spelled(&[copy(false)]), ["AACCAACCTT", "GGTGTGACAAGAG"]);
        assert_eq!(spelled(&[copy(true)]), ["AACCAACCTT", "GGTGTGATTGGAG"]);
    }

    #[test]
    fn later_variants_find_their_place_in_turned_chromosomes() {
        let first = Structural::Translocation { cuts: [A, B], inverted: true };
        // "CCTT" of contig a now reads "AAGG" at the front of the second chromosome.
        let insertion = Structural::Insertion(Cut { contig: 0, pos: 8 }, b"AC".to_vec());
        assert_eq!(spelled(&[first.clone(), insertion]), ["AACCTCACACC", "AAGTGGTTGAG"]);
        let back = Structural::Translocation {
            cuts: [Cut { contig: 0, pos: 8 }, Cut { contig: 1, pos: 2 }],
            inverted: false,
        };
        let spelled = spelled(&[first.clone(), back]);
        assert_eq!(spelled.iter().map(String::len).sum::<usize>(), 20);
        let mut karyotype = Karyotype::new(&genome());
        karyotype.apply(&first).unwrap();
        let same = Structural::Translocation {
            cuts: [Cut { contig: 0, pos: 2 }, Cut { contig: 1, pos: 3 }],
            inverted: false,
        };
        assert_eq!(karyotype.apply(&same), Err(SameChromosome));
    }

    #[test]
    fn small_variants_ride_along() {
        let genome = genome();
        let mut karyotype = Karyotype::new(&genome);
        karyotype.apply(&Structural::Duplication(SPAN)).unwrap();
        let snv = Edit { at: Cut { contig: 0, pos: 4 }, removed: b"A".to_vec(), added: b"G".to_vec() };
        let insertion = Edit { at: Cut { contig: 0, pos: 8 }, removed: vec![], added: b"CC".to_vec() };
        let edits = Edits { late: vec![vec![&snv, &insertion], vec![]], early: vec![vec![]; 2] };
        let spelled = karyotype.spell(&genome, &edits);
        assert_eq!(spelled[0].bases(0..15), b"AACCGACGACCCCTT");
    }

    #[test]
    fn early_copies_lack_some_variants_and_chromosomes_are_counted() {
        let genome = genome();
        let mut karyotype = Karyotype::new(&genome);
        karyotype.apply(&Structural::Amplification { span: SPAN, copies: 3 }).unwrap();
        let snv = Edit { at: Cut { contig: 0, pos: 4 }, removed: b"A".to_vec(), added: b"G".to_vec() };
        let edits = Edits { late: vec![vec![&snv], vec![]], early: vec![vec![]; 2] };
        assert_eq!(karyotype.spell(&genome, &edits)[0].bases(0..16), b"AACCGACAACGACCTT");
        karyotype.set_copies(0, 2);
        let at = |contig, pos| karyotype.occurrences(Cut { contig, pos });
        assert_eq!((at(0, 4), at(0, 6), at(1, 4)), ((6, 4), (2, 2), (1, 1)));
    }
}
