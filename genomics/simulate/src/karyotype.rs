//! One haplotype of a cell as reference segments in a new order, and the chromosome sequences that they form.

use std::sync::Arc;

use crate::chromosome_sequence::ChromosomeSequence;
use crate::genome::Genome;
use crate::healthy_ploidy::HealthyPloidy;
use crate::reference_origins::ReferenceOrigins;
use crate::variant::{ContigSpan, GenomePosition, SequenceEdit, StructuralVariant};

#[derive(Debug, Clone, PartialEq, Eq)]
enum SegmentSource {
    Reference(ContigSpan),
    Novel(Vec<u8>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct KaryotypeSegment {
    source: SegmentSource,
    reverse: bool,
    age: AmplifiedCopyAge,
}

/// Age of a copy of an amplified span relative to small variants in the span. It decides which variants the copy has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AmplifiedCopyAge {
    /// A late copy has all variants of its haplotype.
    Late,
    /// An early copy was made before some of the variants arose, and lacks those.
    Early,
}

/// Small variants of one haplotype by contig: sorted, without overlaps, and not across breakpoints.
#[derive(Debug, Default)]
pub(crate) struct HaplotypeSmallVariants<'a> {
    /// Variants that late copies have: all variants of the haplotype. Without amplification all segments are late.
    pub late: Vec<Vec<&'a SequenceEdit>>,
    /// Variants that early copies of amplified spans have: only those that are older than the amplification.
    pub early: Vec<Vec<&'a SequenceEdit>>,
}

impl<'a> HaplotypeSmallVariants<'a> {
    fn for_age(&self, age: AmplifiedCopyAge) -> &[Vec<&'a SequenceEdit>] {
        match age {
            AmplifiedCopyAge::Late => &self.late,
            AmplifiedCopyAge::Early => &self.early,
        }
    }
}

/// One haplotype of a cell: derived chromosomes, each a list of segments of the reference or of novel sequence.
#[derive(Debug, Clone)]
pub(crate) struct Karyotype {
    chromosomes: Vec<Vec<KaryotypeSegment>>,
    /// Number of copies of each chromosome in the cell.
    copies: Vec<usize>,
}

/// A boundary between two segments of a chromosome: the segments before index `segment` are on its left. `reverse` is
/// whether the segment there is reverse complemented.
struct SegmentBoundary {
    chromosome: usize,
    segment: usize,
    reverse: bool,
}

/// Error if a translocation has both breakpoints on one derived chromosome.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SameChromosomeTranslocationError;

impl Karyotype {
    /// Creates a haplotype without variants: one chromosome per contig of the reference.
    pub(crate) fn from_reference(genome: &Genome) -> Self {
        let whole = |(contig, seq): (usize, &Arc<Vec<u8>>)| {
            vec![KaryotypeSegment {
                source: SegmentSource::Reference(ContigSpan { contig, start: 0, end: seq.len() }),
                reverse: false,
                age: AmplifiedCopyAge::Late,
            }]
        };
        Karyotype {
            chromosomes: genome.seqs.iter().enumerate().map(whole).collect(),
            copies: vec![1; genome.seqs.len()],
        }
    }

    /// Creates the two haplotypes of a healthy cell, with the contigs that `ploidy` gives.
    pub(crate) fn create_healthy_haplotypes(genome: &Genome, ploidy: &HealthyPloidy) -> [Karyotype; 2] {
        [0, 1].map(|haplotype| {
            let copies = (0..genome.seqs.len()).map(|i| usize::from(ploidy.has_each_haplotype(i)[haplotype]));
            Karyotype { copies: copies.collect(), ..Karyotype::from_reference(genome) }
        })
    }

    /// Sets the number of copies of a chromosome in the cell. A chromosome has the index of the contig from which it
    /// was created.
    pub(crate) fn set_chromosome_copies(&mut self, chromosome: usize, copies: usize) {
        self.copies[chromosome] = copies;
    }

    /// Returns the number of copies of each chromosome in the cell, in the order of
    /// [`Self::build_chromosome_sequences`].
    pub(crate) fn copies_per_chromosome(&self) -> &[usize] {
        &self.copies
    }

    /// Returns the number of copies of a reference base that are due to additional copies of whole chromosomes. It is
    /// negative where a chromosome is lost, or healthy cells lack it.
    pub(crate) fn extra_chromosome_copies_at(&self, at: GenomePosition) -> f64 {
        let covers = |p: &&KaryotypeSegment| match p.source {
            SegmentSource::Reference(span) => span.contig == at.contig && span.start <= at.pos && at.pos < span.end,
            SegmentSource::Novel(_) => false,
        };
        let pieces = |row: &Vec<KaryotypeSegment>| row.iter().filter(covers).count() as f64;
        let rows = self.chromosomes.iter().zip(&self.copies).filter(|(_, copies)| **copies != 1);
        rows.map(|(row, &copies)| (copies as f64 - 1.0) * pieces(row)).sum()
    }

    /// Iterates over the segments that come from the reference: the span on the reference, and the number of copies of
    /// the chromosome that contains it.
    pub fn reference_spans_with_copies(&self) -> impl Iterator<Item = (ContigSpan, usize)> + '_ {
        self.chromosomes.iter().zip(&self.copies).flat_map(|(row, &copies)| {
            row.iter().filter_map(move |piece| match piece.source {
                SegmentSource::Reference(span) => Some((span, copies)),
                SegmentSource::Novel(_) => None,
            })
        })
    }

    /// Returns the number of copies of a reference base: in all segments, and in segments that are
    /// [`AmplifiedCopyAge::Late`].
    pub(crate) fn count_all_and_late_copies_of_base(&self, at: GenomePosition) -> (usize, usize) {
        let (mut all, mut late) = (0, 0);
        for (row, &copies) in self.chromosomes.iter().zip(&self.copies) {
            for piece in row {
                let SegmentSource::Reference(span) = piece.source else { continue };
                if span.contig == at.contig && span.start <= at.pos && at.pos < span.end {
                    all += copies;
                    late += copies * usize::from(piece.age == AmplifiedCopyAge::Late);
                }
            }
        }
        (all, late)
    }

    /// Applies a structural variant to the haplotype. No earlier variant may have a breakpoint at the same position,
    /// and the affected span must be unchanged.
    ///
    /// # Errors
    /// Returns an error if a translocation has both breakpoints on one derived chromosome.
    pub(crate) fn apply_structural_variant(
        &mut self,
        variant: &StructuralVariant,
    ) -> Result<(), SameChromosomeTranslocationError> {
        match variant {
            StructuralVariant::Deletion(span) => {
                let at = self.isolate_segment(*span);
                self.chromosomes[at.chromosome].remove(at.segment);
            }
            StructuralVariant::Duplication(span) => {
                let at = self.isolate_segment(*span);
                let row = &mut self.chromosomes[at.chromosome];
                row.insert(at.segment, row[at.segment].clone());
            }
            StructuralVariant::Amplification { span, copies } => {
                let at = self.isolate_segment(*span);
                let row = &mut self.chromosomes[at.chromosome];
                let piece = row.remove(at.segment);
                let age =
                    |copy: usize| if copy.is_multiple_of(2) { AmplifiedCopyAge::Late } else { AmplifiedCopyAge::Early };
                let tandem = (0..*copies).map(|copy| KaryotypeSegment { age: age(copy), ..piece.clone() });
                row.splice(at.segment..at.segment, tandem);
            }
            StructuralVariant::Inversion(span) => {
                let at = self.isolate_segment(*span);
                self.chromosomes[at.chromosome][at.segment].reverse ^= true;
            }
            StructuralVariant::Insertion(cut, sequence) => {
                self.insert_segment(*cut, SegmentSource::Novel(sequence.clone()), false)
            }
            StructuralVariant::Copy { from, to, inverted } => {
                self.insert_segment(*to, SegmentSource::Reference(*from), *inverted)
            }
            StructuralVariant::Translocation { cuts: [a, b], inverted } => {
                let (chromosome_a, chromosome_b) = (self.split_at(*a).chromosome, self.split_at(*b).chromosome);
                if chromosome_a == chromosome_b {
                    return Err(SameChromosomeTranslocationError);
                }
                let (at_a, at_b) = (self.split_at_forward(*a), self.split_at_forward(*b));
                let tail_a = self.chromosomes[at_a.chromosome].split_off(at_a.segment);
                let tail_b = self.chromosomes[at_b.chromosome].split_off(at_b.segment);
                if *inverted {
                    let head_b = std::mem::take(&mut self.chromosomes[at_b.chromosome]);
                    self.chromosomes[at_a.chromosome].extend(reverse_complement_segments(head_b));
                    self.chromosomes[at_b.chromosome] = reverse_complement_segments(tail_a);
                    self.chromosomes[at_b.chromosome].extend(tail_b);
                } else {
                    self.chromosomes[at_a.chromosome].extend(tail_b);
                    self.chromosomes[at_b.chromosome].extend(tail_a);
                }
            }
        }
        Ok(())
    }

    /// Splits segments so that `span` is a segment of its own. Returns the boundary before it.
    fn isolate_segment(&mut self, span: ContigSpan) -> SegmentBoundary {
        let [start, end] = span.start_and_end_positions();
        self.split_at(start);
        let at = self.split_at(end);
        let piece = if at.reverse { at.segment } else { at.segment - 1 };
        debug_assert_eq!(self.chromosomes[at.chromosome][piece].source, SegmentSource::Reference(span));
        SegmentBoundary { segment: piece, ..at }
    }

    fn insert_segment(&mut self, cut: GenomePosition, content: SegmentSource, inverted: bool) {
        let at = self.split_at(cut);
        let piece = KaryotypeSegment { source: content, reverse: inverted ^ at.reverse, age: AmplifiedCopyAge::Late };
        self.chromosomes[at.chromosome].insert(at.segment, piece);
    }

    /// Splits the first segment that contains a position there, and returns the boundary between both parts.
    fn split_at(&mut self, cut: GenomePosition) -> SegmentBoundary {
        for (chromosome, row) in self.chromosomes.iter_mut().enumerate() {
            for piece in 0..row.len() {
                let SegmentSource::Reference(span) = row[piece].source else { continue };
                let KaryotypeSegment { reverse, age, .. } = row[piece];
                if span.contig != cut.contig || cut.pos <= span.start || cut.pos > span.end {
                    continue;
                }
                if cut.pos < span.end {
                    let mut halves = [ContigSpan { end: cut.pos, ..span }, ContigSpan { start: cut.pos, ..span }]
                        .map(SegmentSource::Reference);
                    if reverse {
                        halves.reverse();
                    }
                    row.splice(piece..=piece, halves.map(|content| KaryotypeSegment { source: content, reverse, age }));
                    return SegmentBoundary { chromosome, segment: piece + 1, reverse };
                }
                // The position is already the end of a segment: the boundary is behind the segment, or before it when
                // it is reversed.
                return SegmentBoundary { chromosome, segment: if reverse { piece } else { piece + 1 }, reverse };
            }
        }
        unreachable!("cut {cut:?} lies outside the genome or in a deleted span")
    }

    /// Like [`Self::split_at`], but reverse complements the whole chromosome if needed, so that the segment at the
    /// boundary is forward.
    fn split_at_forward(&mut self, cut: GenomePosition) -> SegmentBoundary {
        let at = self.split_at(cut);
        if !at.reverse {
            return at;
        }
        let row = std::mem::take(&mut self.chromosomes[at.chromosome]);
        let piece = row.len() - at.segment;
        self.chromosomes[at.chromosome] = reverse_complement_segments(row);
        SegmentBoundary { segment: piece, reverse: false, ..at }
    }

    /// Returns the sequence of each chromosome with the small variants `edits` applied.
    pub(crate) fn build_chromosome_sequences<'a>(
        &'a self,
        genome: &'a Genome,
        edits: &HaplotypeSmallVariants<'a>,
    ) -> Vec<ChromosomeSequence<'a>> {
        let row = |row: &'a Vec<KaryotypeSegment>| {
            let mut sequence = ChromosomeSequence::default();
            for piece in row {
                match &piece.source {
                    SegmentSource::Novel(bases) => sequence.append_bases_or_reverse_complement(bases, piece.reverse),
                    SegmentSource::Reference(span) => {
                        let edits = edits_within(*span, &edits.for_age(piece.age)[span.contig]);
                        sequence.append_edited_span(&genome.seqs[span.contig], *span, edits, piece.reverse);
                    }
                }
            }
            sequence
        };
        self.chromosomes.iter().map(row).collect()
    }

    /// Returns the reference positions from which the bases of each chromosome of
    /// [`Self::build_chromosome_sequences`] come, for the same `edits`.
    pub(crate) fn list_reference_origins_of_chromosomes(
        &self,
        edits: &HaplotypeSmallVariants,
    ) -> Vec<ReferenceOrigins> {
        let row = |row: &Vec<KaryotypeSegment>| {
            let mut origins = ReferenceOrigins::default();
            for piece in row {
                match &piece.source {
                    SegmentSource::Novel(sequence) => origins.append_novel_length_bp(sequence.len()),
                    SegmentSource::Reference(span) => {
                        let edits = edits_within(*span, &edits.for_age(piece.age)[span.contig]);
                        origins.append_edited_reference_span(*span, edits, piece.reverse);
                    }
                }
            }
            origins
        };
        self.chromosomes.iter().map(row).collect()
    }
}

fn reverse_complement_segments(row: Vec<KaryotypeSegment>) -> Vec<KaryotypeSegment> {
    row.into_iter().rev().map(|p| KaryotypeSegment { reverse: !p.reverse, ..p }).collect()
}

/// Returns those of the sorted edits of a contig that are within `span`.
fn edits_within<'a, 'e>(span: ContigSpan, edits: &'a [&'e SequenceEdit]) -> &'a [&'e SequenceEdit] {
    let from = edits.partition_point(|e| e.position.pos < span.start);
    let inside =
        edits[from..].iter().take_while(|e| e.reference_end() <= span.end && e.position.pos < span.end).count();
    &edits[from..from + inside]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn genome() -> Genome {
        Genome::from_sequences(vec!["a".into(), "b".into()], vec![b"AACCAACCTT".to_vec(), b"GGTGTGAGAG".to_vec()])
    }

    fn spelled(variants: &[StructuralVariant]) -> Vec<String> {
        let genome = genome();
        let mut karyotype = Karyotype::from_reference(&genome);
        for v in variants {
            karyotype.apply_structural_variant(v).unwrap();
        }
        let text = |s: ChromosomeSequence| String::from_utf8(s.bases_in_range(0..s.len())).unwrap();
        let edits = HaplotypeSmallVariants { late: vec![vec![]; 2], early: vec![vec![]; 2] };
        karyotype.build_chromosome_sequences(&genome, &edits).into_iter().map(text).collect()
    }

    const SPAN: ContigSpan = ContigSpan { contig: 0, start: 3, end: 6 };
    const A: GenomePosition = GenomePosition { contig: 0, pos: 4 };
    const B: GenomePosition = GenomePosition { contig: 1, pos: 7 };

    #[test]
    fn each_class_spells_what_it_says() {
        let b = "GGTGTGAGAG";
        assert_eq!(spelled(&[StructuralVariant::Deletion(SPAN)]), ["AACCCTT", b]);
        assert_eq!(spelled(&[StructuralVariant::Duplication(SPAN)]), ["AACCAACAACCTT", b]);
        assert_eq!(spelled(&[StructuralVariant::Inversion(SPAN)]), ["AACTTGCCTT", b]);
        assert_eq!(spelled(&[StructuralVariant::Insertion(A, b"GGG".to_vec())]), ["AACCGGGAACCTT", b]);
        let translocation = |inverted| StructuralVariant::Translocation { cuts: [A, B], inverted };
        assert_eq!(spelled(&[translocation(false)]), ["AACCGAG", "GGTGTGAAACCTT"]);
        assert_eq!(spelled(&[translocation(true)]), ["AACCTCACACC", "AAGGTTGAG"]);
        let copy = |inverted| StructuralVariant::Copy { from: SPAN, to: B, inverted };
        assert_eq!(spelled(&[copy(false)]), ["AACCAACCTT", "GGTGTGACAAGAG"]);
        assert_eq!(spelled(&[copy(true)]), ["AACCAACCTT", "GGTGTGATTGGAG"]);
    }

    #[test]
    fn later_variants_find_their_place_in_turned_chromosomes() {
        let first = StructuralVariant::Translocation { cuts: [A, B], inverted: true };
        // "CCTT" of contig a is now "AAGG" at the front of the second chromosome.
        let insertion = StructuralVariant::Insertion(GenomePosition { contig: 0, pos: 8 }, b"AC".to_vec());
        assert_eq!(spelled(&[first.clone(), insertion]), ["AACCTCACACC", "AAGTGGTTGAG"]);
        let back = StructuralVariant::Translocation {
            cuts: [GenomePosition { contig: 0, pos: 8 }, GenomePosition { contig: 1, pos: 2 }],
            inverted: false,
        };
        let spelled = spelled(&[first.clone(), back]);
        assert_eq!(spelled.iter().map(String::len).sum::<usize>(), 20);
        let mut karyotype = Karyotype::from_reference(&genome());
        karyotype.apply_structural_variant(&first).unwrap();
        let same = StructuralVariant::Translocation {
            cuts: [GenomePosition { contig: 0, pos: 2 }, GenomePosition { contig: 1, pos: 3 }],
            inverted: false,
        };
        assert_eq!(karyotype.apply_structural_variant(&same), Err(SameChromosomeTranslocationError));
    }

    #[test]
    fn small_variants_ride_along() {
        let genome = genome();
        let mut karyotype = Karyotype::from_reference(&genome);
        karyotype.apply_structural_variant(&StructuralVariant::Duplication(SPAN)).unwrap();
        let snv = SequenceEdit {
            position: GenomePosition { contig: 0, pos: 4 },
            removed: b"A".to_vec(),
            added: b"G".to_vec(),
        };
        let insertion =
            SequenceEdit { position: GenomePosition { contig: 0, pos: 8 }, removed: vec![], added: b"CC".to_vec() };
        let edits = HaplotypeSmallVariants { late: vec![vec![&snv, &insertion], vec![]], early: vec![vec![]; 2] };
        let spelled = karyotype.build_chromosome_sequences(&genome, &edits);
        assert_eq!(spelled[0].bases_in_range(0..15), b"AACCGACGACCCCTT");
    }

    #[test]
    fn early_copies_lack_some_variants_and_chromosomes_are_counted() {
        let genome = genome();
        let mut karyotype = Karyotype::from_reference(&genome);
        karyotype.apply_structural_variant(&StructuralVariant::Amplification { span: SPAN, copies: 3 }).unwrap();
        let snv = SequenceEdit {
            position: GenomePosition { contig: 0, pos: 4 },
            removed: b"A".to_vec(),
            added: b"G".to_vec(),
        };
        let edits = HaplotypeSmallVariants { late: vec![vec![&snv], vec![]], early: vec![vec![]; 2] };
        assert_eq!(karyotype.build_chromosome_sequences(&genome, &edits)[0].bases_in_range(0..16), b"AACCGACAACGACCTT");
        karyotype.set_chromosome_copies(0, 2);
        let at = |contig, pos| karyotype.count_all_and_late_copies_of_base(GenomePosition { contig, pos });
        assert_eq!((at(0, 4), at(0, 6), at(1, 4)), ((6, 4), (2, 2), (1, 1)));
    }
}
