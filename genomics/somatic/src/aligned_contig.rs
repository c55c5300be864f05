//! Aligns a tumour contig with the genome, and finds its changes.

use std::borrow::Cow;
use std::collections::HashSet;

use genuma_align::Hit;
use genuma_reads::dna::reverse_complement;
use genuma_reads::fasta::Reference;
use serde::{Deserialize, Serialize};

use crate::affine_alignment::{self, AlignmentOp};
use crate::assemble::{Contig, MIN_CHANGED_BASE_QUALITY_SUM};
use crate::change::{Change, left_align_allele};
use crate::circular_contig::OriginWindow;
use crate::contig_segments::{ContigSegment, MAX_JOINED_SEGMENT_DISTANCE_BP, SegmentEnd, select_segments};
use crate::explanation::{Explanation, ExplanationMethod};
use crate::other_loci::OtherLoci;
use crate::repeat_family_allele;
use crate::tandem_repeat::MAX_SHORT_REPEAT_UNIT_BP;

mod junctions;
mod nearby_copies;

/// A change on a contig, with the sequences without this change with which reads are compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContigChange {
    /// The difference from the genome.
    pub change: Change,
    /// Range of the changed bases in [`AlignedContig::seq`]; empty for a deletion.
    pub contig_range: std::ops::Range<usize>,
    /// The contig's left flank, continued as in the genome without the change. Up to the start of `contig_range` its
    /// coordinates are those of the contig.
    pub left_normal: Vec<u8>,
    /// The contig's right flank, preceded by the genome bases that are before it without the change.
    pub right_normal: Vec<u8>,
    /// Number to add to a contig coordinate after `contig_range` to get the coordinate in `right_normal`.
    pub right_shift: i32,
    /// Mapping quality (Phred) of the contig's position: three times the score difference to the second-best position,
    /// in matching bases, at most 60. For a junction, the lower value of its two segments.
    pub mapq: u8,
}

/// Number of genome bases that are added beyond each breakpoint and each end of a contig, for reads that extend past
/// them.
const FLANKING_GENOME_BASES: usize = 500;
/// Maximum number of bases at an end of a contig that may remain unaligned without indicating a breakpoint.
const MAX_UNALIGNED_END_BASES: usize = 12;

/// Minimum number of bases, not counting tandem repeats, between a small change and each end of its contig.
const MIN_FLANK_BASES: usize = 5;
/// Minimum length in bases of repeated units that count as a tandem repeat.
const MIN_REPEAT_BASES: usize = 10;

/// Number of leading bases that form a tandem repeat; 0 if they form none.
fn leading_repeat_len(bases: &[&u8]) -> usize {
    let run = |unit: usize| unit + bases.iter().zip(&bases[unit..]).take_while(|(a, b)| a == b).count();
    (1..=MAX_SHORT_REPEAT_UNIT_BP.min(bases.len())).map(run).filter(|&n| n >= MIN_REPEAT_BASES).max().unwrap_or(0)
}

/// A range of the genome, read on its forward or reverse strand.
#[derive(Debug, Clone, Copy)]
struct GenomeRegion {
    chrom: usize,
    forward: bool,
    start: usize,
    end: usize,
}

impl GenomeRegion {
    fn bases(&self, genome: &Reference) -> Vec<u8> {
        let bases = &genome.contigs[self.chrom].seq[self.start..self.end];
        if self.forward { bases.to_vec() } else { reverse_complement(bases) }
    }

    /// Converts a range of this region's bases to the range on the genome.
    fn genome_range(&self, range: &std::ops::Range<usize>) -> std::ops::Range<usize> {
        if self.forward {
            self.start + range.start..self.start + range.end
        } else {
            self.end - range.end..self.end - range.start
        }
    }
}

/// A contig in the orientation in which its longest segment is on the forward strand of the genome.
struct OrientedContig<'a> {
    genome: &'a Reference,
    seq: Vec<u8>,
    novel: Vec<bool>,
    quality_sums: Vec<u16>,
    num_reads: usize,
    segments: Vec<ContigSegment>,
}

/// A contig aligned with the genome. It has the orientation of the forward strand. Genome bases are added at both ends,
/// so that reads that extend past the contig can be aligned with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlignedContig {
    /// Bases of the contig, with the genome bases added at both ends.
    pub seq: Vec<u8>,
    /// For each base of `seq`, whether a candidate k-mer covers it: a k-mer that the tumour has and the normal lacks.
    pub novel: Vec<bool>,
    /// For each base of `seq`, the sum of the base qualities of the tumour reads that have this base; 0 outside
    /// `assembled`.
    pub quality_sums: Vec<u16>,
    /// Range of the assembled bases in `seq`; the bases outside were added from the genome.
    pub assembled: std::ops::Range<usize>,
    /// Number of tumour reads from which the contig was assembled.
    pub num_reads: usize,
    /// Differences from the genome that candidate k-mers cover, with positions in `seq`.
    pub changes: Vec<ContigChange>,
    /// For the first and the last segment of the contig: the index of its chromosome, and its diagonal, the number to
    /// add to a contig coordinate to get the genome position. `None` for a segment on the reverse strand.
    pub diagonals: [Option<(usize, i64)>; 2],
    /// Ranges of changed bases that are equal to those of most other members of the repeat family: the other loci to
    /// which the contig aligns.
    pub family_alleles: Vec<std::ops::Range<usize>>,
    /// The other loci to which the contig aligns.
    pub other_loci: OtherLoci,
    /// Ways to explain the contig by changes of the genome, which the event model compared; the selected one is first.
    pub explanations: Vec<Explanation>,
}

impl AlignedContig {
    /// An aligned contig without a position on the genome and without changes.
    pub fn from_unplaced_contig(contig: &Contig) -> AlignedContig {
        AlignedContig {
            seq: contig.seq.clone(),
            novel: contig.novel.clone(),
            quality_sums: contig.quality_sums.clone(),
            assembled: 0..contig.seq.len(),
            num_reads: contig.reads.len(),
            changes: Vec::new(),
            diagonals: [None; 2],
            family_alleles: Vec::new(),
            other_loci: OtherLoci::default(),
            explanations: Vec::new(),
        }
    }

    /// Converts a contig that was aligned with the window around the origin of a circular sequence to positions of that
    /// sequence. `None` if one of its changes has no position there.
    fn convert_from_window(mut self, window: &OriginWindow) -> Option<AlignedContig> {
        for found in &mut self.changes {
            found.change = window.convert_change_from_window(found.change.clone())?;
        }
        self.diagonals = window.convert_diagonals_from_window(self.diagonals, self.seq.len());
        Some(self)
    }

    /// Whether most other members of the repeat family have the contig's bases at `range`.
    pub(crate) fn has_repeat_family_allele_at(&self, range: &std::ops::Range<usize>) -> bool {
        let has = |bases: std::ops::Range<usize>| self.family_alleles.contains(&bases);
        // Neighbouring substitutions may have been joined.
        has(range.clone()) || range.len() > 1 && range.clone().all(|at| has(at..at + 1))
    }

    /// Whether a candidate k-mer covers a base of a change whose contig range is `at`, or a base next to it.
    pub(crate) fn range_touches_candidate_kmer(&self, at: &std::ops::Range<usize>) -> bool {
        is_novel_range(&self.novel, at)
    }

    /// Whether at least one change is supported by more than a few low-quality bases. A change of several contig bases,
    /// or of none (a deletion), always counts as well supported.
    pub fn has_change_with_good_bases(&self) -> bool {
        let poor = |f: &ContigChange| {
            f.contig_range.len() == 1 && self.quality_sums[f.contig_range.start] < MIN_CHANGED_BASE_QUALITY_SUM
        };
        !self.changes.iter().all(poor)
    }
}

/// Whether a candidate k-mer covers a base of a range of a contig, or a base next to it. `novel` has, for each base,
/// whether one covers it.
fn is_novel_range(novel: &[bool], at: &std::ops::Range<usize>) -> bool {
    let range = at.start.saturating_sub(1)..(at.end + 1).min(novel.len());
    novel[range].iter().any(|&n| n)
}

/// Aligns a contig with the genome, starting from the hits of the mapper, and finds its changes.
pub fn align_contig(contig: &Contig, hits: &[Hit], genome: &Reference) -> AlignedContig {
    let segments = select_segments(contig, hits, genome);
    let other_loci = OtherLoci::from_hits(hits, &segments);
    if let Some(window) = OriginWindow::for_segments_near_origin(&segments, contig.seq.len(), genome) {
        let hits = window.convert_hits_to_window(hits);
        let aligned = align_segments(contig, &hits, select_segments(contig, &hits, &window.genome), &window.genome);
        if let Some(aligned) = aligned.convert_from_window(&window) {
            return AlignedContig { other_loci, ..aligned };
        }
    }
    AlignedContig { other_loci, ..align_segments(contig, hits, segments, genome) }
}

/// Finds the changes of a contig whose segments are given.
fn align_segments(contig: &Contig, hits: &[Hit], segments: Vec<ContigSegment>, genome: &Reference) -> AlignedContig {
    let Some(longest) = segments.iter().max_by_key(|p| p.query_len()).copied() else {
        return AlignedContig::from_unplaced_contig(contig);
    };
    let len = contig.seq.len();
    let flipped = !longest.forward;
    let mut oriented = OrientedContig {
        genome,
        seq: if flipped { reverse_complement(&contig.seq) } else { contig.seq.clone() },
        novel: contig.novel.clone(),
        quality_sums: contig.quality_sums.clone(),
        num_reads: contig.reads.len(),
        segments,
    };
    if flipped {
        oriented.novel.reverse();
        oriented.quality_sums.reverse();
        oriented.segments = oriented.segments.iter().map(|p| p.in_reverse_complement_coordinates(len)).collect();
        oriented.segments.sort_by_key(|p| (p.query.0, p.query.1));
    }
    oriented.insert_segments_of_inversions();
    let (contig_changes, ends, explanations) = oriented.find_changes();
    let family_alleles = oriented.find_repeat_family_alleles(&contig_changes, hits, flipped);
    AlignedContig { explanations, ..oriented.add_genome_flanks(contig_changes, ends, family_alleles) }
}

/// The changes of a contig, each with its range on the contig.
pub(crate) fn changes_with_contig_ranges(
    changes: &[ContigChange],
) -> impl ExactSizeIterator<Item = (&Change, &std::ops::Range<usize>)> {
    changes.iter().map(|found| (&found.change, &found.contig_range))
}

impl OrientedContig<'_> {
    /// Finds the changes that candidate k-mers cover and that are not too near an end of the contig. Also returns the
    /// segments at both ends of the contig, and the explanations that were compared.
    fn find_changes(&self) -> (Vec<ContigChange>, [ContigSegment; 2], Vec<Explanation>) {
        let (first, last) = (self.segments[0], self.segments[self.segments.len() - 1]);
        let (kind, explained) = match self.align_whole_contig(&first, &last) {
            Some(whole) => (ExplanationMethod::WholeAlignment, whole),
            None => (ExplanationMethod::Segments, self.changes_of_segments(&first, &last)),
        };
        let explanation = |kind, changes: &[ContigChange]| {
            Explanation::from_changes(kind, &self.seq, changes_with_contig_ranges(changes))
        };
        let mut explanations = vec![explanation(kind, &explained.0)];
        explanations[0].cost += self.cost_of_short_unaligned_ends(&explained.1);
        let (mut found, ends) = match self.explain_by_nearby_copies(explanations[0].cost) {
            Some(copies) => {
                let by_copies = explanation(ExplanationMethod::NearbyCopies, &copies.0);
                if by_copies.cost < explanations[0].cost {
                    explanations.insert(0, by_copies);
                    copies
                } else {
                    explanations.push(by_copies);
                    explained
                }
            }
            None => explained,
        };
        let aligned = self.aligned_range(&ends);
        found.retain(|f| self.is_novel(&f.contig_range) && self.has_sufficient_flanks(f, &aligned));
        // Two overlapping segments may show the same change.
        let mut seen_changes = HashSet::new();
        found.retain(|f| seen_changes.insert(f.change.clone()));
        (found, ends, explanations)
    }

    /// The changes within and between the segments, and the segments at both ends of the contig.
    fn changes_of_segments(
        &self,
        first: &ContigSegment,
        last: &ContigSegment,
    ) -> (Vec<ContigChange>, [ContigSegment; 2]) {
        let mut found = Vec::new();
        // Each segment explains the contig up to its junctions. Matches beyond a junction are chance.
        let mut own: Vec<(usize, usize)> = self.segments.iter().map(|p| p.query).collect();
        for (i, two) in self.segments.windows(2).enumerate() {
            match self.align_segments_as_one(&two[0], &two[1]) {
                Some(small) => found.extend(small),
                None => {
                    if let Some(junction) = self.find_junction(&two[0], &two[1]) {
                        own[i].1 = own[i].1.min(junction.contig_range.start);
                        own[i + 1].0 = own[i + 1].0.max(junction.contig_range.end);
                        found.push(junction);
                    }
                }
            }
        }
        for (segment, own) in self.segments.iter().zip(own) {
            found.extend(
                self.changes_in_segment(segment)
                    .into_iter()
                    .filter(|f| f.contig_range.start >= own.0 && f.contig_range.end <= own.1),
            );
        }
        found.extend(self.find_novel_ends(first, last));
        (found, [*first, *last])
    }

    /// Whether all segments are on the forward strand of one chromosome, and the last one ends after the start of the
    /// first, but not much farther than the contig is long.
    fn are_segments_in_order(&self, first: &ContigSegment, last: &ContigSegment) -> bool {
        first.chrom == last.chrom
            && first.forward
            && last.forward
            && last.target.1 >= first.target.0
            && last.target.1 - first.target.0 <= self.seq.len() + MAX_JOINED_SEGMENT_DISTANCE_BP
            && self.segments.iter().all(|p| p.chrom == first.chrom && p.forward)
    }

    /// Ranges of changes whose bases most other members of the repeat family have. `hits` are those of the contig
    /// before it was oriented; `flipped` means that it was reverse-complemented.
    fn find_repeat_family_alleles(
        &self,
        contig_changes: &[ContigChange],
        hits: &[Hit],
        flipped: bool,
    ) -> Vec<std::ops::Range<usize>> {
        let len = self.seq.len();
        let flip = |range: std::ops::Range<usize>| if flipped { len - range.end..len - range.start } else { range };
        let ranges = contig_changes
            .iter()
            .filter(|f| matches!(f.change, Change::Allele { .. }))
            .map(|f| flip(f.contig_range.clone()));
        let seq = if flipped { Cow::Owned(reverse_complement(&self.seq)) } else { Cow::Borrowed(&self.seq) };
        let found = repeat_family_allele::find_repeat_family_alleles(&seq, ranges, &self.segments, hits, self.genome);
        found.into_iter().map(flip).collect()
    }

    /// Adds genome bases at both ends of the contig and of the sequences without its changes. Nothing is added at an
    /// end without a position on the genome.
    fn add_genome_flanks(
        self,
        contig_changes: Vec<ContigChange>,
        [first, last]: [ContigSegment; 2],
        family_alleles: Vec<std::ops::Range<usize>>,
    ) -> AlignedContig {
        let (first, last) = (&first, &last);
        let len = self.seq.len();
        let before = if first.query.0 <= MAX_UNALIGNED_END_BASES {
            self.extrapolate_genome_bases_before(first, 0)
        } else {
            Vec::new()
        };
        let after = if len - last.query.1 <= MAX_UNALIGNED_END_BASES {
            self.extrapolate_genome_bases_after(last, len)
        } else {
            Vec::new()
        };
        let pad = before.len();
        let contig_changes = contig_changes
            .into_iter()
            .map(|f| {
                let joined = matches!(f.change, Change::Allele { .. });
                let left_normal = [&before[..], &f.left_normal[..], if joined { &after[..] } else { &[] }].concat();
                let right_normal = [if joined { &before[..] } else { &[] }, &f.right_normal[..], &after[..]].concat();
                ContigChange {
                    contig_range: f.contig_range.start + pad..f.contig_range.end + pad,
                    right_shift: f.right_shift - if joined { 0 } else { pad as i32 },
                    left_normal,
                    right_normal,
                    ..f
                }
            })
            .collect();
        let mut novel = vec![false; pad + len + after.len()];
        novel[pad..pad + len].copy_from_slice(&self.novel);
        let mut weight = vec![0; pad + len + after.len()];
        weight[pad..pad + len].copy_from_slice(&self.quality_sums);
        let diagonal = |segment: &ContigSegment, end: SegmentEnd| {
            segment.forward.then(|| (segment.chrom, segment.extrapolate_genome_position(pad, end) - 2 * pad as i64))
        };
        AlignedContig {
            seq: [&before[..], &self.seq, &after[..]].concat(),
            novel,
            quality_sums: weight,
            assembled: pad..pad + len,
            num_reads: self.num_reads,
            changes: contig_changes,
            diagonals: [diagonal(first, SegmentEnd::First), diagonal(last, SegmentEnd::Last)],
            family_alleles: family_alleles.into_iter().map(|range| range.start + pad..range.end + pad).collect(),
            other_loci: OtherLoci::default(),
            explanations: Vec::new(),
        }
    }

    fn chrom(&self, segment: &ContigSegment) -> &[u8] {
        &self.genome.contigs[segment.chrom].seq
    }

    /// Whether a candidate k-mer covers a base of the contig range `at`, or a base next to it.
    fn is_novel(&self, at: &std::ops::Range<usize>) -> bool {
        is_novel_range(&self.novel, at)
    }

    /// The range of the contig without its long unaligned ends, which indicate breakpoints. The segments are those at
    /// both ends of the contig.
    fn aligned_range(&self, [first, last]: &[ContigSegment; 2]) -> std::ops::Range<usize> {
        let len = self.seq.len();
        let start = if first.query.0 > MAX_UNALIGNED_END_BASES { first.query.0 } else { 0 };
        let end = if len - last.query.1 > MAX_UNALIGNED_END_BASES { last.query.1 } else { len };
        start..end
    }

    /// Whether the contig extends far enough on both sides of a small change to exclude that the change is a
    /// breakpoint, or a different length of a tandem repeat at the contig's end. `aligned` is the contig without
    /// unaligned ends. Without this check, a few bases next to an unaligned end could match the genome by chance.
    fn has_sufficient_flanks(&self, f: &ContigChange, aligned: &std::ops::Range<usize>) -> bool {
        let Change::Allele { reference, alternative, .. } = &f.change else { return true };
        let substitutes = reference.len() == alternative.len();
        let is_sufficient = |flank: &[&u8], is_whole: bool| {
            let least = if substitutes && is_whole { MIN_FLANK_BASES } else { MAX_UNALIGNED_END_BASES };
            flank.len() >= least && flank.len() - leading_repeat_len(flank) >= MIN_FLANK_BASES
        };
        let at = &f.contig_range;
        let before: Vec<&u8> = self.seq[aligned.start.min(at.start)..at.start].iter().rev().collect();
        let after: Vec<&u8> = self.seq[at.end..aligned.end.max(at.end)].iter().collect();
        is_sufficient(&before, aligned.start == 0) && is_sufficient(&after, aligned.end == self.seq.len())
    }

    /// Aligns the whole contig with the genome as one segment. `None` if its segments are not in order and near each
    /// other, or if the alignment does not explain the contig.
    fn align_whole_contig(
        &self,
        first: &ContigSegment,
        last: &ContigSegment,
    ) -> Option<(Vec<ContigChange>, [ContigSegment; 2])> {
        if !self.are_segments_in_order(first, last) {
            return None;
        }
        let (head, tail) = (first.query.0, self.seq.len() - last.query.1);
        let loose = head.max(tail) > MAX_UNALIGNED_END_BASES;
        let pad = if loose { MAX_JOINED_SEGMENT_DISTANCE_BP } else { 50 };
        let chrom = self.chrom(first);
        let start = first.target.0.saturating_sub(head + pad);
        let end = (last.target.1 + tail + pad).min(chrom.len());
        let region = GenomeRegion { chrom: first.chrom, forward: true, start, end };
        let bases = &chrom[start..end];
        let alignment = affine_alignment::align_whole_query(&self.seq, bases);
        // If an unaligned end or a second segment is not explained by a gap of the alignment, there is a breakpoint.
        if (loose || self.segments.len() > 1) && !self.explains_contig(&alignment, bases) {
            return None;
        }
        let mapq = self.segments.iter().map(|p| p.mapq).max().unwrap_or(0);
        let found = self.changes_of_alignment(&alignment, region, bases, (0, self.seq.len()), mapq, false);
        let from = start + alignment.start;
        let query = (0, self.seq.len());
        let whole = ContigSegment { query, target: (from, from + alignment.aligned_target_len()), mapq, ..*first };
        Some((found, [whole, whole]))
    }

    /// Whether an alignment has few mismatches and at most two gaps, none at an end of the contig.
    fn explains_contig(&self, alignment: &affine_alignment::Alignment, target: &[u8]) -> bool {
        let (mut q, mut t, mut differing, mut gaps) = (0, alignment.start, 0, 0);
        for op in &alignment.ops {
            match *op {
                AlignmentOp::Match(n) => {
                    let n = n as usize;
                    differing += self.seq[q..q + n].iter().zip(&target[t..t + n]).filter(|(a, b)| a != b).count();
                    (q, t) = (q + n, t + n);
                }
                AlignmentOp::Insert(n) => (q, gaps) = (q + n as usize, gaps + 1),
                AlignmentOp::Delete(n) => (t, gaps) = (t + n as usize, gaps + 1),
            }
        }
        let ends_in_gap = [alignment.ops.first(), alignment.ops.last()]
            .iter()
            .any(|s| !matches!(s, Some(AlignmentOp::Match(n)) if *n >= MAX_UNALIGNED_END_BASES as u32));
        gaps <= 2 && differing <= 2 + self.seq.len() / 50 && !ends_in_gap
    }

    /// Aligns two consecutive segments of a contig as one, and returns the changes in and between them. `None` if they
    /// are not on one strand, in order and near each other.
    fn align_segments_as_one(&self, a: &ContigSegment, b: &ContigSegment) -> Option<Vec<ContigChange>> {
        if a.chrom != b.chrom || a.forward != b.forward {
            return None;
        }
        let (first, second) = if a.forward { (a, b) } else { (b, a) };
        let near = second.target.0 + 20 >= first.target.1
            && second.target.0 <= first.target.1 + MAX_JOINED_SEGMENT_DISTANCE_BP;
        if !near {
            return None;
        }
        let region = GenomeRegion {
            chrom: a.chrom,
            forward: a.forward,
            start: first.target.0,
            end: second.target.1.max(first.target.0),
        };
        Some(self.changes_in_region(region, (a.query.0, b.query.1), a.mapq.min(b.mapq)))
    }

    /// Small changes within one of several segments of a contig.
    fn changes_in_segment(&self, segment: &ContigSegment) -> Vec<ContigChange> {
        let &ContigSegment { chrom, forward, target: (start, end), .. } = segment;
        self.changes_in_region(GenomeRegion { chrom, forward, start, end }, segment.query, segment.mapq)
    }

    /// Changes of the contig bases `query.0..query.1` relative to a region of the genome.
    fn changes_in_region(&self, region: GenomeRegion, query: (usize, usize), mapq: u8) -> Vec<ContigChange> {
        let bases = region.bases(self.genome);
        let alignment = affine_alignment::align_whole_query(&self.seq[query.0..query.1], &bases);
        self.changes_of_alignment(&alignment, region, &bases, query, mapq, false)
    }

    /// Lists the changes that an alignment shows: the alignment of contig bases `from..to` with a region of the genome
    /// whose bases are `bases`. If `joins_gaps` is true, an insertion followed by a deletion is one change. Leaves out
    /// insertions at the ends of the contig bases, and changes with other bases than A, C, G and T.
    fn changes_of_alignment(
        &self,
        alignment: &affine_alignment::Alignment,
        region: GenomeRegion,
        bases: &[u8],
        (from, to): (usize, usize),
        mapq: u8,
        joins_gaps: bool,
    ) -> Vec<ContigChange> {
        let target = &self.genome.contigs[region.chrom].seq;
        let (mut q, mut t) = (from, alignment.start);
        let mut found = Vec::new();
        let mut add = |q: std::ops::Range<usize>, t: std::ops::Range<usize>| {
            // A gap at the end of a contig is an unaligned end.
            if q.start == from && t.is_empty() || q.end == to && t.is_empty() {
                return;
            }
            let in_genome = region.genome_range(&t);
            let alternative = &self.seq[q.clone()];
            let alternative = if region.forward { alternative.to_vec() } else { reverse_complement(alternative) };
            let reference = &target[in_genome.clone()];
            if reference.iter().chain(&alternative).any(|b| !b"ACGT".contains(b)) {
                return;
            }
            let (pos, reference, alternative) = left_align_allele(target, in_genome.start, reference, &alternative);
            let normal = [&self.seq[..q.start], &bases[t.clone()], &self.seq[q.end..]].concat();
            found.push(ContigChange {
                right_shift: t.len() as i32 - q.len() as i32,
                change: Change::Allele { chrom: region.chrom, pos, reference, alternative },
                contig_range: q,
                left_normal: normal.clone(),
                right_normal: normal,
                mapq,
            });
        };
        let mut ops = alignment.ops.iter().peekable();
        while let Some(op) = ops.next() {
            match *op {
                AlignmentOp::Match(n) => {
                    for _ in 0..n {
                        if self.seq[q] != bases[t] {
                            add(q..q + 1, t..t + 1);
                        }
                        (q, t) = (q + 1, t + 1);
                    }
                }
                AlignmentOp::Insert(n) => {
                    let replaced = match ops.peek() {
                        Some(&&AlignmentOp::Delete(deleted)) if joins_gaps => {
                            ops.next().map_or(0, |_| deleted as usize)
                        }
                        _ => 0,
                    };
                    add(q..q + n as usize, t..t + replaced);
                    (q, t) = (q + n as usize, t + replaced);
                }
                AlignmentOp::Delete(n) => {
                    add(q..q, t..t + n as usize);
                    t += n as usize;
                }
            }
        }
        found
    }
}
