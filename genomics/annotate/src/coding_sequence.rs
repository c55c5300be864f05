//! The coding sequence of a transcript, and the changes of its protein that variants make.

use std::ops::Range;

use genuma_reads::dna::reverse_complement;

use crate::consequence::{Consequence, ConsequenceSet};
use crate::gene_model::{CodingRegion, Strand, Transcript};
use crate::genetic_code::GeneticCode;
use crate::hgvs;

/// A change of the bases of a coding sequence. Bases and positions are on the strand of the transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodingEdit {
    /// Range of the coding sequence that is replaced (0-based offsets); empty for an insertion.
    pub range: Range<usize>,
    /// Bases that replace `range`; empty for a deletion.
    pub bases: Vec<u8>,
    /// Index of the variant that makes this edit, in the list of variants that are annotated together; from 0.
    pub change: usize,
}

/// The effect on a protein of one variant, or of several variants that must be translated together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProteinChange {
    /// Indices of the variants that are translated together, in the direction of the transcript.
    pub changes: Vec<usize>,
    /// Sequence Ontology terms of the effect on the protein.
    pub consequences: ConsequenceSet,
    /// Changed amino acids as `bcftools csq` writes them, such as `12R>12C`.
    pub amino_acids: String,
    /// HGVS name of the protein change, with three-letter amino acids; `None` if no protein is predicted.
    pub hgvs: Option<String>,
    /// Whether an earlier variant of the haplotype makes a stop codon, so that the changed bases are not translated.
    pub is_after_stop: bool,
}

/// The bases of a coding sequence and of the exons after it, on the strand of the transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodingSequence {
    bases: Vec<u8>,
    /// Bases of the exons after the coding sequence. A protein that has lost its stop codon continues here.
    downstream: Vec<u8>,
    phase: usize,
    code: GeneticCode,
}

/// Converts a 0-based position of the contig to the offset in the coding sequence, in the direction of the transcript.
/// `None` for positions outside the coding sequence.
pub(crate) fn offset_in_coding_sequence(coding: &CodingRegion, strand: Strand, position: usize) -> Option<usize> {
    let part = coding.parts.partition_point(|part| part.end <= position);
    let own = coding.parts.get(part).filter(|part| part.start <= position)?;
    let before: usize = coding.parts[..part].iter().map(Range::len).sum::<usize>() + position - own.start;
    Some(match strand {
        Strand::Forward => before,
        Strand::Reverse => coding.num_coding_bases() - 1 - before,
    })
}

/// Joins the bases of `ranges` of a contig; reverse-complemented for the reverse strand.
fn spliced_bases(contig: &[u8], ranges: &[Range<usize>], strand: Strand) -> Vec<u8> {
    let forward: Vec<u8> = ranges.iter().flat_map(|range| &contig[range.clone()]).copied().collect();
    match strand {
        Strand::Forward => forward,
        Strand::Reverse => reverse_complement(&forward),
    }
}

impl CodingSequence {
    /// Extracts the coding sequence of a transcript from its contig. `None` if the transcript is not coding or the
    /// parts of its coding sequence overlap.
    pub(crate) fn from_transcript(transcript: &Transcript, contig: &[u8], code: GeneticCode) -> Option<CodingSequence> {
        let coding = transcript.coding.as_ref().filter(|coding| coding.has_disjoint_parts)?;
        let span = coding.coding_span();
        let outside: Vec<Range<usize>> = transcript
            .exons
            .iter()
            .map(|exon| match transcript.strand {
                Strand::Forward => exon.start.max(span.end)..exon.end.max(span.end),
                Strand::Reverse => exon.start.min(span.start)..exon.end.min(span.start),
            })
            .collect();
        Some(CodingSequence {
            bases: spliced_bases(contig, &coding.parts, transcript.strand),
            downstream: spliced_bases(contig, &outside, transcript.strand),
            phase: coding.phase,
            code,
        })
    }

    /// Codons that a range of the coding sequence overlaps; an insertion between two codons overlaps none. `None` if
    /// the range begins before the first complete codon.
    fn codons_of_range(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let start = range.start.checked_sub(self.phase)?;
        let end = range.end - self.phase;
        let first = start / 3;
        Some(if start == end && start % 3 == 0 { first..first } else { first..(end.max(start + 1)).div_ceil(3) })
    }

    /// Predicts the protein changes of all edits on one haplotype. Edits are translated together if they change the
    /// same codon, or if the reading frame between them is shifted. An edit that overlaps an earlier one is not
    /// translated together with it.
    pub(crate) fn predict_protein_changes(&self, mut edits: Vec<CodingEdit>) -> Vec<ProteinChange> {
        edits.sort_by_key(|edit| (edit.range.start, edit.range.end, edit.change));
        let mut groups: Vec<Vec<CodingEdit>> = Vec::new();
        for edit in edits {
            match groups.last_mut().filter(|group| self.is_translated_with(group, &edit)) {
                Some(group) => group.push(edit),
                None => groups.push(vec![edit]),
            }
        }
        let mut has_stop = false;
        let predict = |group: &Vec<CodingEdit>| {
            let change = ProteinChange { is_after_stop: has_stop, ..self.predict_group(group) };
            has_stop |= change.consequences.contains(Consequence::StopGained);
            change
        };
        groups.iter().map(predict).collect()
    }

    fn is_translated_with(&self, group: &[CodingEdit], next: &CodingEdit) -> bool {
        let Some(last) = group.last().filter(|last| last.range.end <= next.range.start) else { return false };
        let (Some(before), Some(own)) = (self.codons_of_range(&last.range), self.codons_of_range(&next.range)) else {
            return false;
        };
        length_change(group) % 3 != 0 || own.start < before.end
    }

    fn predict_group(&self, edits: &[CodingEdit]) -> ProteinChange {
        let changes = edits.iter().map(|edit| edit.change).collect();
        let range = edits[0].range.start..edits[edits.len() - 1].range.end;
        let codons = self.codons_of_range(&range);
        let shift = length_change(edits);
        let codons = codons.filter(|codons| shift % 3 != 0 || 3 * codons.end + self.phase <= self.bases.len());
        let Some(codons) = codons else {
            // The transcript lacks a part of the codon.
            return ProteinChange {
                changes,
                consequences: [Consequence::CodingSequence].into_iter().collect(),
                amino_acids: String::new(),
                hgvs: None,
                is_after_stop: false,
            };
        };
        let prediction = match shift % 3 {
            0 => self.predict_in_frame(edits, codons, shift),
            _ => self.predict_frameshift(edits, codons),
        };
        ProteinChange { changes, ..prediction }
    }

    /// The bases `from..to` of the unedited coding sequence, with `edits` made. The edits must be sorted and within the
    /// range.
    fn edited_bases(&self, edits: &[CodingEdit], from: usize, to: usize) -> Vec<u8> {
        let (mut bases, mut done) = (Vec::new(), from);
        for edit in edits {
            bases.extend(&self.bases[done..edit.range.start]);
            bases.extend(&edit.bases);
            done = edit.range.end;
        }
        bases.extend(&self.bases[done..to]);
        bases
    }

    /// Whether the first codon is complete and is a start codon.
    fn has_start(&self) -> bool {
        self.phase == 0 && self.bases.get(..3).is_some_and(|codon| self.code.translate_codon(codon) == b'M')
    }

    /// Translates all codons of the coding sequence without edits.
    fn protein(&self) -> Vec<u8> {
        self.code.translate_all_codons(&self.bases[self.phase.min(self.bases.len())..])
    }

    fn predict_in_frame(&self, edits: &[CodingEdit], codons: Range<usize>, shift: isize) -> ProteinChange {
        let at = |codon: usize| 3 * codon + self.phase;
        let protein = self.protein();
        let old = &protein[codons.clone()];
        let new = self.code.translate_all_codons(&self.edited_bases(edits, at(codons.start), at(codons.end)));
        let mut consequences = ConsequenceSet::default();
        let touches_start = codons.start == 0 && !codons.is_empty() && self.has_start();
        let loses_start = touches_start && new.first() != Some(&b'M');
        let stop = |protein: &[u8]| protein.iter().position(|&amino_acid| amino_acid == b'*');
        let (old_stop, new_stop) = (stop(old), stop(&new));
        if loses_start {
            consequences.insert(Consequence::StartLost);
        }
        if old == new {
            let retained = if old_stop.is_some() { Consequence::StopRetained } else { Consequence::Synonymous };
            consequences.insert(if touches_start && codons.len() == 1 { Consequence::StartRetained } else { retained });
        } else {
            consequences.insert_consequence_if(old_stop.is_none() && new_stop.is_some(), Consequence::StopGained);
            consequences.insert_consequence_if(old_stop.is_some() && new_stop.is_none(), Consequence::StopLost);
            let alike = old_stop.zip(new_stop).is_some_and(|(a, b)| old[..a] == new[..b]);
            consequences.insert_consequence_if(alike, Consequence::StopRetained);
            consequences.insert_consequence_if(shift < 0 && !alike, Consequence::InframeDeletion);
            consequences.insert_consequence_if(shift > 0 && !alike, Consequence::InframeInsertion);
            let is_named = !consequences.is_empty();
            consequences.insert_consequence_if(shift == 0 && !is_named, Consequence::Missense);
            let has_indels = edits.iter().any(|edit| edit.range.len() != edit.bases.len());
            if shift == 0 && has_indels && edits.len() > 1 {
                // Before a new stop the reading frame is not restored.
                let is_cut = consequences.contains(Consequence::StopGained);
                consequences.insert(if is_cut { Consequence::Frameshift } else { Consequence::InframeAltering });
            }
        }
        let name = if loses_start {
            Some("p.Met1?".to_owned())
        } else {
            let mut changed = [&protein[..codons.start], &new].concat();
            if new_stop.is_none() && old_stop.is_some() {
                let rest = [&self.bases[at(codons.end)..], &self.downstream].concat();
                changed.extend(self.code.translate_to_stop(&rest));
            } else {
                changed.extend(&protein[codons.end..]);
            }
            changed.truncate(new_stop.map_or(changed.len(), |stop| codons.start + stop + 1));
            Some(match old_stop.is_none() && new_stop.is_some() {
                true => hgvs::format_gained_stop(&protein, &changed),
                false => hgvs::format_in_frame_protein_change(&protein, &changed, &codons),
            })
        };
        let first = codons.start + 1;
        let amino_acids = match old == new {
            true => format!("{first}{}", text(old)),
            false => {
                format!("{first}{}>{first}{}", text(old), text(&new[..new_stop.map_or(new.len(), |stop| stop + 1)]))
            }
        };
        ProteinChange { changes: Vec::new(), consequences, amino_acids, hgvs: name, is_after_stop: false }
    }

    fn predict_frameshift(&self, edits: &[CodingEdit], codons: Range<usize>) -> ProteinChange {
        let at = |codon: usize| 3 * codon + self.phase;
        let protein = self.protein();
        let mut rest = self.edited_bases(edits, at(codons.start), self.bases.len());
        let num_coding_bases = rest.len();
        rest.extend(&self.downstream);
        let new = self.code.translate_to_stop(&rest);
        let mut consequences: ConsequenceSet = [Consequence::Frameshift].into_iter().collect();
        let loses_start = codons.start == 0 && self.has_start() && new.first() != Some(&b'M');
        consequences.insert_consequence_if(loses_start, Consequence::StartLost);
        let touches_stop = codons.end == protein.len() && protein.last() == Some(&b'*');
        let keeps_stop = new.last() == Some(&b'*') && 3 * new.len() <= num_coding_bases + 2;
        consequences.insert_consequence_if(touches_stop && !keeps_stop, Consequence::StopLost);
        let is_stop_in_place = keeps_stop && codons.start + new.len() == protein.len();
        consequences.insert_consequence_if(touches_stop && is_stop_in_place, Consequence::StopRetained);
        let name = match loses_start {
            true => "p.Met1?".to_owned(),
            false => hgvs::format_frameshift(&protein, &[&protein[..codons.start], &new].concat(), codons.start),
        };
        let first = codons.start + 1;
        let old = text(&protein[codons.start.min(protein.len())..]);
        // As in csq, without what follows the coding sequence.
        let within = new.len().min(num_coding_bases / 3);
        let amino_acids = format!("{first}{old}>{first}{}", text(&new[..within]));
        ProteinChange { changes: Vec::new(), consequences, amino_acids, hgvs: Some(name), is_after_stop: false }
    }
}

/// Number of bases by which edits lengthen the coding sequence; negative if they shorten it.
fn length_change(edits: &[CodingEdit]) -> isize {
    edits.iter().map(|edit| edit.bases.len() as isize - edit.range.len() as isize).sum()
}

fn text(amino_acids: &[u8]) -> String {
    String::from_utf8_lossy(amino_acids).into_owned()
}
