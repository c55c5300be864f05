//! Effects of structural variants on genes: genes that junctions break, fusions with their reading frame, and exons
//! that are deleted or duplicated.

use std::ops::Range;

use crate::consequence::{Consequence, ConsequenceSet};
use crate::gene_model::{GenesAndTranscripts, Strand, Transcript};

/// Side of a breakend on which the tumour keeps the sequence of the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptSide {
    /// The sequence up to the breakend is kept.
    Left,
    /// The sequence from the breakend on is kept.
    Right,
}

/// One of the two breakends of a junction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JunctionEnd {
    /// Index of the contig in the reference, from 0.
    pub contig: usize,
    /// Position of the outermost base that is kept (0-based).
    pub position: usize,
    /// Side of the position on which the sequence is kept.
    pub kept: KeptSide,
}

/// Reading frame of a fusion, or of a transcript after exons were deleted or duplicated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadingFrame {
    /// The codons after the junction are those of the 3' transcript (of the same transcript, if exons were deleted or
    /// duplicated).
    InFrame,
    /// The reading frame after the junction is shifted, so the protein of the 3' transcript is not made.
    OutOfFrame,
    /// The junction is before the start codon of the 3' transcript, so its whole coding sequence is kept, and it is not
    /// within the coding sequence of the 5' transcript.
    CompleteCodingSequence,
    /// The frame cannot be determined: a transcript is not coding at the junction, or it is not known how the exons are
    /// spliced.
    Unknown,
}

impl ReadingFrame {
    /// Name of the reading frame in the INFO fields of VCF files.
    pub fn frame_name(self) -> &'static str {
        match self {
            ReadingFrame::InFrame => "in_frame",
            ReadingFrame::OutOfFrame => "out_of_frame",
            ReadingFrame::CompleteCodingSequence => "complete_cds",
            ReadingFrame::Unknown => "frame_unknown",
        }
    }
}

/// A fusion of two genes: a transcript that starts as one gene and ends as another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fusion {
    /// Index of the transcript that forms the start (5' part) of the fusion, in the gene model.
    pub five_prime: usize,
    /// Index of the transcript that forms the end (3' part) of the fusion, in the gene model.
    pub three_prime: usize,
    /// Number of the last exon of the 5' transcript that is in the fusion, completely or in part; counted from 1 in the
    /// direction of the transcript.
    pub last_exon: usize,
    /// Number of the first exon of the 3' transcript that is in the fusion; counted from 1 in the direction of the
    /// transcript.
    pub first_exon: usize,
    /// Whether the 3' transcript keeps its reading frame.
    pub frame: ReadingFrame,
}

/// A transcript that overlaps a deletion or tandem duplication, with the exons that are removed or repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExonChange {
    /// Index of the transcript in the gene model, from 0.
    pub transcript: usize,
    /// Numbers of the first and the last changed exon, counted from 1 in the direction of the transcript; `None` if no
    /// exon is changed.
    pub exons: Option<(usize, usize)>,
    /// Whether all exons of the transcript are deleted or duplicated.
    pub affects_all_exons: bool,
    /// Reading frame after the deleted or duplicated exons.
    pub frame: ReadingFrame,
}

/// Effects of a structural variant on genes. Only the representative transcript of each gene is considered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StructuralEffect {
    /// Indices of the transcripts that contain a breakend of the variant, introns included; each once.
    pub broken_transcripts: Vec<usize>,
    /// Fusions that the junctions of the variant make.
    pub fusions: Vec<Fusion>,
    /// Transcripts that overlap a deletion or tandem duplication, also those of which it changes introns only.
    pub exon_changes: Vec<ExonChange>,
}

/// Whether a structural variant deletes or duplicates the interval between its breakends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletionOrDuplication {
    /// The bases between the breakends are deleted.
    Deletion,
    /// The bases between the breakends are duplicated.
    Duplication,
}

/// Predicts the effects of a structural variant on genes. `junctions` are its junctions, each with `num_inserted_bases`
/// bases between its breakends. `interval` is the contig and range that a deletion or tandem duplication affects;
/// `None` for other variants.
pub fn predict_structural_effect(
    model: &GenesAndTranscripts,
    junctions: &[[JunctionEnd; 2]],
    num_inserted_bases: usize,
    interval: Option<(DeletionOrDuplication, usize, Range<usize>)>,
) -> StructuralEffect {
    let mut effect = StructuralEffect::default();
    for ends in junctions {
        for end in ends {
            for transcript in representatives_at(model, end) {
                if !effect.broken_transcripts.contains(&transcript) {
                    effect.broken_transcripts.push(transcript);
                }
            }
        }
        for [first, second] in [[ends[0], ends[1]], [ends[1], ends[0]]] {
            find_fusions(model, &first, &second, num_inserted_bases, &mut effect.fusions);
        }
    }
    if let Some((_, contig, range)) = interval {
        let touched = model.overlapping_transcripts(contig, range.clone());
        let touched = touched.into_iter().filter(|&transcript| model.is_representative(transcript));
        effect.exon_changes = touched.map(|transcript| describe_exon_change(model, transcript, &range)).collect();
    }
    effect
}

fn representatives_at(model: &GenesAndTranscripts, end: &JunctionEnd) -> Vec<usize> {
    let mut found = model.overlapping_transcripts(end.contig, end.position..end.position + 1);
    found.retain(|&transcript| model.is_representative(transcript));
    found
}

fn keeps_start(transcript: &Transcript, end: &JunctionEnd) -> bool {
    (transcript.strand == Strand::Forward) == (end.kept == KeptSide::Left)
}

fn find_fusions(
    model: &GenesAndTranscripts,
    first: &JunctionEnd,
    second: &JunctionEnd,
    inserted: usize,
    into: &mut Vec<Fusion>,
) {
    for five_prime in representatives_at(model, first) {
        if !keeps_start(&model.transcripts[five_prime], first) {
            continue;
        }
        for three_prime in representatives_at(model, second) {
            let (start, end) = (&model.transcripts[five_prime], &model.transcripts[three_prime]);
            // Of genes that overlap, a junction within both leaves each with its own end.
            let reads_on = [(start, second), (end, first)].iter().any(|(transcript, end)| {
                transcript.contig == end.contig && transcript.transcript_span().contains(&end.position)
            });
            if start.gene != end.gene && !reads_on && !keeps_start(end, second) {
                let (before, after) =
                    (KeptStart::from_junction_end(start, first), KeptEnd::from_junction_end(end, second));
                let (Some(before), Some(after)) = (before, after) else { continue };
                let frame = frame_of_fusion(&before, &after, inserted);
                let fusion = Fusion { five_prime, three_prime, last_exon: before.exon, first_exon: after.exon, frame };
                if !into.contains(&fusion) {
                    into.push(fusion);
                }
            }
        }
    }
}

/// The start (5' part) of a transcript up to a junction, if the tumour keeps it.
struct KeptStart {
    /// Number of the last exon that is kept, completely or in part; counted from 1 in the direction of the transcript.
    exon: usize,
    is_in_exon: bool,
    /// Number of coding bases before the junction, from the first complete codon on. `None` if the junction is not
    /// within the coding sequence.
    coding_bases: Option<usize>,
}

/// The end (3' part) of a transcript from a junction on, if the tumour keeps it.
struct KeptEnd {
    exon: usize,
    is_in_exon: bool,
    /// Offset of the first kept base in the coding sequence, from the first complete codon on; `None` if no coding base
    /// is kept.
    coding_offset: Option<usize>,
    /// Whether the kept part contains the start codon.
    keeps_start_codon: bool,
}

/// Exons of a transcript in the direction of the transcript.
fn exons_in_order(transcript: &Transcript) -> Vec<Range<usize>> {
    match transcript.strand {
        Strand::Forward => transcript.exons.clone(),
        Strand::Reverse => transcript.exons.iter().rev().cloned().collect(),
    }
}

/// Number of coding bases of a transcript in a range of the contig.
fn coding_bases_within(transcript: &Transcript, range: &Range<usize>) -> usize {
    let parts = transcript.coding.iter().flat_map(|coding| &coding.parts);
    parts.map(|part| part.end.min(range.end).saturating_sub(part.start.max(range.start))).sum()
}

impl JunctionEnd {
    /// Range of the contig that the tumour keeps at this breakend.
    fn kept_range(&self) -> Range<usize> {
        match self.kept {
            KeptSide::Left => 0..self.position + 1,
            KeptSide::Right => self.position..usize::MAX,
        }
    }
}

impl KeptStart {
    /// The start of the transcript up to the junction. `None` if no exon is kept.
    fn from_junction_end(transcript: &Transcript, end: &JunctionEnd) -> Option<KeptStart> {
        let kept = end.kept_range();
        let exons = exons_in_order(transcript);
        let last = exons.iter().rposition(|exon| exon.start < kept.end && kept.start < exon.end)?;
        let phase = transcript.coding.as_ref().map_or(0, |coding| coding.phase);
        let coding_bases = coding_bases_within(transcript, &kept);
        let all = transcript.coding.as_ref().map_or(0, |coding| coding.num_coding_bases());
        Some(KeptStart {
            exon: last + 1,
            is_in_exon: exons[last].contains(&end.position) && !is_exon_edge(&exons[last], end),
            coding_bases: (coding_bases > phase && coding_bases < all).then(|| coding_bases - phase),
        })
    }
}

impl KeptEnd {
    /// The end of the transcript from the junction on. `None` if no exon is kept to which the 5' transcript can be
    /// spliced.
    fn from_junction_end(transcript: &Transcript, end: &JunctionEnd) -> Option<KeptEnd> {
        let kept = end.kept_range();
        let exons = exons_in_order(transcript);
        let touches = |exon: &Range<usize>| exon.start < kept.end && kept.start < exon.end;
        let own = exons.iter().position(touches)?;
        let is_in_exon = exons[own].contains(&end.position) && !is_exon_edge(&exons[own], end);
        // The first exon of a transcript has no splice acceptor: after an intron of the partner the second exon
        // follows.
        let first = if own == 0 && !is_in_exon { (own + 1 < exons.len()).then_some(1)? } else { own };
        let coding = transcript.coding.as_ref();
        let all = coding.map_or(0, |coding| coding.num_coding_bases());
        let kept_exons: Range<usize> = match (transcript.strand, is_in_exon) {
            (_, true) => kept,
            (Strand::Forward, false) => exons[first].start..usize::MAX,
            (Strand::Reverse, false) => 0..exons[first].end,
        };
        let kept_bases = coding_bases_within(transcript, &kept_exons);
        let phase = coding.map_or(0, |coding| coding.phase);
        Some(KeptEnd {
            exon: first + 1,
            is_in_exon,
            coding_offset: (kept_bases > 0).then(|| all - kept_bases).and_then(|offset| offset.checked_sub(phase)),
            keeps_start_codon: kept_bases > 0 && kept_bases == all && phase == 0,
        })
    }
}

/// Whether a breakend is at the edge of an exon, so that the whole exon is kept.
fn is_exon_edge(exon: &Range<usize>, end: &JunctionEnd) -> bool {
    match end.kept {
        KeptSide::Left => end.position + 1 == exon.end,
        KeptSide::Right => end.position == exon.start,
    }
}

fn frame_of_fusion(before: &KeptStart, after: &KeptEnd, inserted: usize) -> ReadingFrame {
    if before.is_in_exon != after.is_in_exon {
        return ReadingFrame::Unknown;
    }
    match (before.coding_bases, after.coding_offset) {
        (None, Some(_)) if after.keeps_start_codon => ReadingFrame::CompleteCodingSequence,
        (Some(bases), Some(offset)) => {
            // Inserted bases in introns are spliced out.
            let inserted = if before.is_in_exon { inserted } else { 0 };
            if (bases + inserted) % 3 == offset % 3 { ReadingFrame::InFrame } else { ReadingFrame::OutOfFrame }
        }
        _ => ReadingFrame::Unknown,
    }
}

fn describe_exon_change(model: &GenesAndTranscripts, number: usize, range: &Range<usize>) -> ExonChange {
    let transcript = &model.transcripts[number];
    let touched: Vec<usize> = (0..transcript.exons.len())
        .filter(|&exon| transcript.exons[exon].start < range.end && range.start < transcript.exons[exon].end)
        .map(|exon| transcript.exon_number_in_transcript(exon))
        .collect();
    let ends = [range.start, range.end - 1];
    let cuts_exon = transcript.exons.iter().any(|exon| {
        let inside = |position: usize, edge: usize| exon.contains(&position) && position != edge;
        inside(ends[0], exon.start) || inside(ends[1], exon.end - 1)
    });
    let affects_all_exons = transcript.exons.iter().all(|exon| range.start <= exon.start && exon.end <= range.end);
    let coding_bases = coding_bases_within(transcript, range);
    let keeps_ends = transcript.coding.as_ref().is_some_and(|coding| {
        let span = coding.coding_span();
        let outside = |position: usize| !range.contains(&position);
        outside(span.start) && outside(span.end - 1)
    });
    let is_within_one_exon = transcript.exons.iter().any(|exon| exon.start <= range.start && range.end <= exon.end);
    let frame = if coding_bases == 0 || !keeps_ends || cuts_exon && !is_within_one_exon {
        ReadingFrame::Unknown
    } else if coding_bases.is_multiple_of(3) {
        ReadingFrame::InFrame
    } else {
        ReadingFrame::OutOfFrame
    };
    let exons = touched.iter().min().zip(touched.iter().max()).map(|(&first, &last)| (first, last));
    ExonChange { transcript: number, exons, affects_all_exons, frame }
}

impl StructuralEffect {
    /// The consequences of the structural variant for one transcript. `event` is its kind, if the variant deletes or
    /// duplicates an interval.
    pub fn consequences_for_transcript(
        &self,
        transcript: usize,
        event: Option<DeletionOrDuplication>,
    ) -> ConsequenceSet {
        let mut set = ConsequenceSet::default();
        let is_partner = |fusion: &Fusion| [fusion.five_prime, fusion.three_prime].contains(&transcript);
        set.insert_consequence_if(self.fusions.iter().any(is_partner), Consequence::GeneFusion);
        let change = self.exon_changes.iter().find(|change| change.transcript == transcript);
        match (change, event) {
            (Some(change), Some(DeletionOrDuplication::Deletion)) => {
                set.insert_consequence_if(change.affects_all_exons, Consequence::TranscriptAblation);
                set.insert_consequence_if(!change.affects_all_exons && change.exons.is_some(), Consequence::ExonLoss);
                let is_coding = !change.affects_all_exons && change.exons.is_some();
                set.insert_consequence_if(
                    is_coding && change.frame == ReadingFrame::OutOfFrame,
                    Consequence::Frameshift,
                );
                set.insert_consequence_if(
                    is_coding && change.frame == ReadingFrame::InFrame,
                    Consequence::InframeDeletion,
                );
                set.insert_consequence_if(change.exons.is_none(), Consequence::Intron);
            }
            (Some(change), Some(DeletionOrDuplication::Duplication)) => {
                set.insert_consequence_if(change.affects_all_exons, Consequence::TranscriptAmplification);
                set.insert_consequence_if(
                    !change.affects_all_exons && change.exons.is_some(),
                    Consequence::FeatureElongation,
                );
                set.insert_consequence_if(change.exons.is_none(), Consequence::Intron);
            }
            _ => {
                set.insert_consequence_if(self.broken_transcripts.contains(&transcript), Consequence::FeatureTruncation)
            }
        }
        set
    }

    /// Indices of all transcripts with an effect, each once: those of fusions, those that contain a breakend, those
    /// with changed exons.
    pub fn affected_transcripts(&self) -> Vec<usize> {
        let fused = self.fusions.iter().flat_map(|fusion| [fusion.five_prime, fusion.three_prime]);
        let changed = self.exon_changes.iter().map(|change| change.transcript);
        let mut all: Vec<usize> = Vec::new();
        for transcript in fused.chain(self.broken_transcripts.iter().copied()).chain(changed) {
            if !all.contains(&transcript) {
                all.push(transcript);
            }
        }
        all
    }

    /// Formats the effects as values of the INFO field BCSQ.
    pub fn format_bcsq(&self, model: &GenesAndTranscripts, event: Option<DeletionOrDuplication>) -> Vec<String> {
        let value = |number: usize| {
            let transcript = &model.transcripts[number];
            let (names, gene) = (
                self.consequences_for_transcript(number, event).bcftools_csq_names(),
                &model.gene_of_transcript(number).name,
            );
            format!("{names}|{gene}|{}|{}", transcript.id, transcript.biotype)
        };
        self.affected_transcripts().into_iter().map(value).collect()
    }

    /// Formats the fusions as values of the INFO field FUSION: genes, transcripts, exons, reading frame.
    pub fn format_fusions(&self, model: &GenesAndTranscripts) -> Vec<String> {
        let value = |fusion: &Fusion| {
            let (first, second) = (fusion.five_prime, fusion.three_prime);
            format!(
                "{}::{}|{}|{}|{}|{}|{}",
                model.gene_of_transcript(first).name,
                model.gene_of_transcript(second).name,
                model.transcripts[first].id,
                model.transcripts[second].id,
                fusion.last_exon,
                fusion.first_exon,
                fusion.frame.frame_name()
            )
        };
        self.fusions.iter().map(value).collect()
    }

    /// Formats the changed exons as values of the INFO field EXONS: gene, transcript, exons, number of exons, reading
    /// frame.
    pub fn format_exon_changes(&self, model: &GenesAndTranscripts) -> Vec<String> {
        let value = |change: &ExonChange| {
            let (first, last) = change.exons?;
            let transcript = &model.transcripts[change.transcript];
            let gene = &model.gene_of_transcript(change.transcript).name;
            let (id, all) = (&transcript.id, transcript.exons.len());
            Some(format!("{gene}|{id}|{first}-{last}|{all}|{}", change.frame.frame_name()))
        };
        self.exon_changes.iter().filter_map(value).collect()
    }
}
