//! Effects of substitutions, insertions and deletions on all transcripts that they overlap.

use std::collections::BTreeMap;
use std::ops::Range;

use genuma_reads::dna::reverse_complement;
use genuma_reads::fasta::Reference;

use crate::coding_sequence::{CodingEdit, CodingSequence, ProteinChange, offset_in_coding_sequence};
use crate::consequence::{Consequence, ConsequenceSet};
use crate::gene_model::{CodingRegion, GenesAndTranscripts, Strand, Transcript};
use crate::genetic_code::GeneticCode;
use crate::hgvs;

/// Number of bases at each end of an intron that form its splice donor and acceptor sites.
const SPLICE_SITE_BP: usize = 2;
/// Number of exon bases next to an intron that belong to the splice region (Sequence Ontology, SO:0001630).
const SPLICE_REGION_EXON_BP: usize = 3;
/// Last intron base, counted from the exon, that belongs to the splice region (Sequence Ontology, SO:0001630).
const SPLICE_REGION_INTRON_BP: usize = 8;

/// A small variant: a substitution, insertion or deletion with known bases.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SmallChange {
    /// Index of the contig in the reference, from 0.
    pub contig: usize,
    /// Position of the first base of the reference allele on the contig (0-based).
    pub position: usize,
    /// Bases of the reference allele.
    pub reference: Vec<u8>,
    /// Bases of the alternative allele.
    pub alternative: Vec<u8>,
}

/// A small variant without the bases that both alleles share at their ends.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TrimmedChange {
    range: Range<usize>,
    alternative: Vec<u8>,
}

impl SmallChange {
    /// Removes the bases that both alleles share, first at the right end, so that indels are left-aligned as in VCF
    /// files.
    fn trim(&self) -> TrimmedChange {
        let (old, new) = (&self.reference, &self.alternative);
        let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
        let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
        let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
        TrimmedChange { range: self.position + head..self.position + old.len(), alternative: new[head..].to_vec() }
    }

    /// Length of the alternative allele minus that of the reference allele.
    pub fn length_difference(&self) -> isize {
        self.alternative.len() as isize - self.reference.len() as isize
    }

    /// Formats the variant as `bcftools csq` does: `7889972T>C`, with a 1-based position.
    fn format_dna_change(&self) -> String {
        let text = |bases: &[u8]| String::from_utf8_lossy(bases).into_owned();
        format!("{}{}>{}", self.position + 1, text(&self.reference), text(&self.alternative))
    }
}

/// The effect of a small variant on one transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptEffect {
    /// Index of the transcript in the gene model, from 0.
    pub transcript: usize,
    /// Sequence Ontology terms. Variants that are translated together (compound variants) all have the same terms for
    /// the effect on the protein.
    pub consequences: ConsequenceSet,
    /// Changed amino acids as `bcftools csq` writes them; empty if no protein is predicted.
    pub amino_acids: String,
    /// Changed bases as `bcftools csq` writes them, those of a compound variant joined by `+`; empty unless the variant
    /// is within one coding range.
    pub bases: String,
    /// HGVS name of the variant in the transcript, without the transcript ID: `c.524G>A`. `None` if the variant extends
    /// beyond the transcript.
    pub hgvs_c: Option<String>,
    /// HGVS name of the protein change; `None` if no protein is predicted.
    pub hgvs_p: Option<String>,
    /// If the variant is translated together with others: index in the haplotype of the first of them in the direction
    /// of the transcript. `None` if this variant is the first, or is translated on its own.
    pub joined_with: Option<usize>,
    /// Whether an earlier variant of the haplotype makes a stop codon, so that the changed bases are not translated.
    pub is_after_stop: bool,
}

/// Predicts the effects of variants that are on one haplotype. The result has, for each variant, its effects on all
/// transcripts that it overlaps, that on a representative transcript first.
pub fn predict_effects(
    model: &GenesAndTranscripts,
    genome: &Reference,
    haplotype: &[SmallChange],
) -> Vec<Vec<TranscriptEffect>> {
    let trimmed: Vec<TrimmedChange> = haplotype.iter().map(SmallChange::trim).collect();
    let mut by_transcript: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, (change, trimmed)) in haplotype.iter().zip(&trimmed).enumerate() {
        let touched = touched_bases(&trimmed.range);
        for transcript in model.overlapping_transcripts(change.contig, touched) {
            by_transcript.entry(transcript).or_default().push(index);
        }
    }
    let mut effects: Vec<Vec<TranscriptEffect>> = vec![Vec::new(); haplotype.len()];
    for (number, changes) in by_transcript {
        let transcript = &model.transcripts[number];
        let contig = &genome.contigs[transcript.contig];
        let haplotype = Haplotype { transcript, contig: &contig.seq, changes: haplotype, trimmed: &trimmed };
        let proteins = haplotype.predict_proteins(&changes, GeneticCode::for_contig(&contig.name));
        for change in changes {
            let joint = proteins.iter().find(|protein| protein.changes.contains(&change));
            effects[change].extend(haplotype.describe_effect(number, change, joint));
        }
    }
    effects.iter_mut().for_each(|effects| effects.sort_by_key(|effect| preference(model, effect)));
    effects
}

/// Sort key of the effects of a variant. Effects on representative transcripts come first, the most severe of them
/// first; then the effects on other transcripts by position.
fn preference(model: &GenesAndTranscripts, effect: &TranscriptEffect) -> (bool, Option<Consequence>, usize) {
    let represents = model.is_representative(effect.transcript);
    let severity = if represents { effect.consequences.most_severe() } else { None };
    (!represents, severity, effect.transcript)
}

/// The changed bases; for an insertion, the bases on both sides of it.
fn touched_bases(range: &Range<usize>) -> Range<usize> {
    if range.is_empty() { range.start.saturating_sub(1)..range.end + 1 } else { range.clone() }
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Whether a variant changes a base of `site`, or inserts bases between two bases of `site`.
fn alters_site(change: &Range<usize>, site: &Range<usize>) -> bool {
    match change.is_empty() {
        true => site.start < change.start && change.start < site.end,
        false => overlap(change, site),
    }
}

/// The variants of one haplotype, with a transcript that some of them overlap.
struct Haplotype<'a> {
    transcript: &'a Transcript,
    contig: &'a [u8],
    changes: &'a [SmallChange],
    trimmed: &'a [TrimmedChange],
}

impl Haplotype<'_> {
    fn predict_proteins(&self, changes: &[usize], code: GeneticCode) -> Vec<ProteinChange> {
        let Some(coding) = &self.transcript.coding else { return Vec::new() };
        let edits: Vec<CodingEdit> = changes.iter().filter_map(|&change| self.coding_edit(coding, change)).collect();
        if edits.is_empty() {
            return Vec::new();
        }
        match CodingSequence::from_transcript(self.transcript, self.contig, code) {
            Some(sequence) => sequence.predict_protein_changes(edits),
            None => Vec::new(),
        }
    }

    /// Converts variant number `change` to an edit of the coding sequence; `None` if the variant is not within one
    /// coding range.
    fn coding_edit(&self, coding: &CodingRegion, change: usize) -> Option<CodingEdit> {
        let TrimmedChange { range, alternative } = &self.trimmed[change];
        let touched = touched_bases(range);
        let is_inside = |part: &Range<usize>| part.start <= touched.start && touched.end <= part.end;
        coding.parts.iter().find(|part| is_inside(part))?;
        let strand = self.transcript.strand;
        let range = match (strand, range.is_empty()) {
            (Strand::Forward, true) => offset_in_coding_sequence(coding, strand, range.start).map(|start| start..start),
            (Strand::Reverse, true) => {
                offset_in_coding_sequence(coding, strand, range.start - 1).map(|start| start..start)
            }
            (Strand::Forward, false) => {
                offset_in_coding_sequence(coding, strand, range.start).map(|n| n..n + range.len())
            }
            (Strand::Reverse, false) => {
                offset_in_coding_sequence(coding, strand, range.end - 1).map(|n| n..n + range.len())
            }
        }?;
        let bases = match strand {
            Strand::Forward => alternative.clone(),
            Strand::Reverse => reverse_complement(alternative),
        };
        Some(CodingEdit { range, bases, change })
    }

    /// Describes the effect of a variant on the transcript; `None` for an insertion next to the transcript.
    fn describe_effect(
        &self,
        number: usize,
        change: usize,
        protein: Option<&ProteinChange>,
    ) -> Option<TranscriptEffect> {
        let TrimmedChange { range, alternative } = &self.trimmed[change];
        if range.is_empty() && !alters_site(range, &self.transcript.transcript_span()) {
            return None;
        }
        let mut consequences = self.splice_consequences(range);
        self.add_region_consequences(range, protein.is_some(), &mut consequences);
        let hgvs_c = hgvs::format_transcript_change(self.transcript, self.contig, range, alternative);
        let mut effect = TranscriptEffect {
            transcript: number,
            consequences,
            amino_acids: String::new(),
            bases: String::new(),
            hgvs_c,
            hgvs_p: None,
            joined_with: None,
            is_after_stop: protein.is_some_and(|protein| protein.is_after_stop),
        };
        if let Some(protein) = protein {
            effect.consequences.extend(&protein.consequences);
            effect.amino_acids.clone_from(&protein.amino_acids);
            effect.hgvs_p.clone_from(&protein.hgvs);
            effect.joined_with = protein.changes.first().copied().filter(|&first| first != change);
            let mut joined = protein.changes.clone();
            joined.sort_unstable();
            let bases: Vec<String> = joined.iter().map(|&c| self.changes[c].format_dna_change()).collect();
            effect.bases = bases.join("+");
        }
        Some(effect)
    }

    fn splice_consequences(&self, range: &Range<usize>) -> ConsequenceSet {
        let (mut consequences, mut touches_region) = (ConsequenceSet::default(), false);
        for intron in self.transcript.introns() {
            let near = intron.start - SPLICE_REGION_EXON_BP.min(intron.start)..intron.end + SPLICE_REGION_EXON_BP;
            if !overlap(&touched_bases(range), &near) {
                continue;
            }
            let site = SPLICE_SITE_BP.min(intron.len());
            let sites = [intron.start..intron.start + site, intron.end - site..intron.end];
            let names = match self.transcript.strand {
                Strand::Forward => [Consequence::SpliceDonor, Consequence::SpliceAcceptor],
                Strand::Reverse => [Consequence::SpliceAcceptor, Consequence::SpliceDonor],
            };
            let inner = SPLICE_REGION_INTRON_BP.min(intron.len());
            let regions = [near.start..intron.start + inner, intron.end - inner..near.end];
            for ((site, name), region) in sites.iter().zip(names).zip(&regions) {
                if alters_site(range, site) {
                    consequences.insert(name);
                }
                touches_region |= alters_site(range, region);
            }
        }
        // As in csq, the splice region counts only if both splice sites are intact.
        consequences.insert_consequence_if(touches_region && consequences.is_empty(), Consequence::SpliceRegion);
        consequences
    }

    /// Adds the consequences that follow from the region of the transcript in which the variant is: untranslated
    /// region, coding sequence, exon or intron.
    fn add_region_consequences(&self, range: &Range<usize>, has_protein: bool, into: &mut ConsequenceSet) {
        let alters_exon = self.transcript.exons.iter().any(|exon| alters_site(range, exon));
        let Some(coding) = &self.transcript.coding else {
            let intron = if into.is_empty() { Consequence::NonCodingIntron } else { return };
            into.insert(if alters_exon { Consequence::NonCodingExon } else { intron });
            return;
        };
        let alters_coding = coding.parts.iter().any(|part| alters_site(range, part));
        if alters_coding && !has_protein {
            into.insert(Consequence::CodingSequence);
            self.add_lost_start_or_stop(coding, range, into);
        }
        let span = coding.coding_span();
        let untranslated =
            |exon: &Range<usize>| [exon.start..exon.end.min(span.start), exon.start.max(span.end)..exon.end];
        for exon in &self.transcript.exons {
            let sides =
                untranslated(exon).map(|side| side.start < side.end && alters_untranslated(range, &side, &span));
            let names = match self.transcript.strand {
                Strand::Forward => [Consequence::FivePrimeUtr, Consequence::ThreePrimeUtr],
                Strand::Reverse => [Consequence::ThreePrimeUtr, Consequence::FivePrimeUtr],
            };
            sides.iter().zip(names).for_each(|(&alters, name)| into.insert_consequence_if(alters, name));
        }
        let alters_intron = self.transcript.introns().any(|intron| overlap(&touched_bases(range), &intron));
        into.insert_consequence_if(into.is_empty() && alters_intron, Consequence::Intron);
    }

    /// Adds `StartLost` or `StopLost` if a variant that extends beyond the coding sequence removes the start or the
    /// stop codon.
    fn add_lost_start_or_stop(&self, coding: &CodingRegion, range: &Range<usize>, into: &mut ConsequenceSet) {
        let (span, strand) = (coding.coding_span(), self.transcript.strand);
        let (before, after) =
            (range.start < span.start && overlap(range, &span), range.end > span.end && overlap(range, &span));
        let (start, stop) = match strand {
            Strand::Forward => (before, after),
            Strand::Reverse => (after, before),
        };
        into.insert_consequence_if(start && coding.phase == 0, Consequence::StartLost);
        into.insert_consequence_if(stop, Consequence::StopLost);
    }
}

/// Whether a variant changes an untranslated region of an exon. An insertion between this region and the coding
/// sequence does.
fn alters_untranslated(change: &Range<usize>, part: &Range<usize>, coding: &Range<usize>) -> bool {
    let at_coding_edge =
        change.is_empty() && change.start == if part.end == coding.start { part.end } else { part.start };
    let is_next_to_coding = part.end == coding.start || part.start == coding.end;
    alters_site(change, part) || is_next_to_coding && at_coding_edge
}

/// Formats the effects of a variant as values of the INFO field BCSQ, in the format of `bcftools csq`. `haplotype` has
/// all variants of the haplotype, as in [`predict_effects`].
pub fn format_bcsq(
    model: &GenesAndTranscripts,
    haplotype: &[SmallChange],
    effects: &[TranscriptEffect],
) -> Vec<String> {
    let mut values = Vec::new();
    for effect in effects {
        let value = match effect.joined_with {
            Some(first) => format!("@{}", haplotype[first].position + 1),
            None => format_value(model, effect),
        };
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

fn format_value(model: &GenesAndTranscripts, effect: &TranscriptEffect) -> String {
    let transcript = &model.transcripts[effect.transcript];
    let names = effect.consequences.bcftools_csq_names();
    let gene = &model.gene_of_transcript(effect.transcript).name;
    let mark = if effect.is_after_stop { "*" } else { "" };
    let start = format!("{mark}{names}|{gene}|{}|{}", transcript.id, transcript.biotype);
    if effect.amino_acids.is_empty() {
        return start;
    }
    let strand = match transcript.strand {
        Strand::Forward => '+',
        Strand::Reverse => '-',
    };
    format!("{start}|{strand}|{}|{}", effect.amino_acids, effect.bases)
}

/// Formats the HGVS name with the transcript ID: `ENST00000269305.9:c.524G>A`. `None` if the effect has no HGVS name.
pub fn format_hgvs_c(model: &GenesAndTranscripts, effect: &TranscriptEffect) -> Option<String> {
    let name = effect.hgvs_c.as_ref()?;
    Some(format!("{}:{name}", model.transcripts[effect.transcript].versioned_id()))
}
