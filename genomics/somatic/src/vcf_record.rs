//! Converts events into VCF records with typed values. They are formatted as VCF text ([`crate::vcf`]) and as tables
//! ([`crate::export_tables`]). The summary and the report show the first record of each event. Sections in comments are
//! those of the VCF 4.3 specification.

use std::fmt::Write as _;

use genuma_reads::dna::reverse_complement;
use genuma_reads::fasta::Reference;
use serde::Serialize;

use crate::change::{Breakend, Change, RetainedSide};
use crate::element_from_junctions::{ElementSource, InsertedElement};
use crate::event::{Event, EventClass};
use crate::genotype::GenotypingResult;
use crate::locus::VariantCall;
use crate::other_loci::OtherLoci;

/// One VCF record. Positions are 1-based.
#[derive(Debug, Clone, PartialEq)]
pub struct VcfRecord {
    /// Index of the event among the events of the call, from 0.
    pub event: usize,
    /// VCF ID: the ID of the event, or of one of its breakends.
    pub id: String,
    /// CHROM: index of the reference sequence.
    pub chrom: usize,
    /// POS: 1-based position of the first base of REF.
    pub pos: usize,
    /// Last position of the event (1-based); for breakends and for insertions of novel sequence or of elements the same
    /// as `pos`.
    pub end: usize,
    /// REF: bases of the reference allele.
    pub reference: String,
    /// ALT: the alternative allele.
    pub alternative: AltAllele,
    /// INFO/CLASS: SNV, MNV, indel or kind of structural variant.
    pub class: EventClass,
    /// INFO fields of structural variants; `None` for other records.
    pub structural: Option<StructuralVariantFields>,
    /// Index of the locus of the call. The contig in `contigs.fa` is named `tN`, where N is this index plus 1.
    pub locus: usize,
    /// Genotypes, quality and filters.
    pub genotype: GenotypingResult,
    /// Frequency of the allele in the population; `None` if it is not among the known variants.
    pub population_frequency: Option<f64>,
    /// Number of normals of the panel that have the change; `None` without a panel, or if the panel does not apply to
    /// the change.
    pub panel: Option<u32>,
    /// Position (1-based) of the first record on the same haplotype; `None` if no other record is known to be on it.
    pub phase_set: Option<usize>,
    /// Name of the screened sequence from which the inserted sequence comes, and the position in that sequence; `None`
    /// if it comes from none of the screened sequences.
    pub screen: Option<(String, u64)>,
    /// PARALOGS: other loci of the reference to which the contig aligns; empty unless a filter says that the contig or
    /// its reads may come from another locus.
    pub other_loci: OtherLoci,
    /// Fields of known variants (`--known-info`) for a small variant that their file lists, in the order of the options.
    pub known_info: Vec<KnownInfoValue>,
    /// Genes and consequences; `None` without a GFF3 file.
    pub annotation: Option<RecordGeneAnnotation>,
}

/// Percent-encodes the given ASCII characters of a text (section 1.2).
pub(crate) fn percent_encode(text: &str, characters: &[char]) -> String {
    let mut encoded = String::with_capacity(text.len());
    for c in text.chars() {
        if characters.contains(&c) {
            let _ = write!(encoded, "%{:02X}", u32::from(c));
        } else {
            encoded.push(c);
        }
    }
    encoded
}

/// Value of a carried-over INFO field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KnownInfoValue {
    /// ID of the field in the records of the call.
    pub id: String,
    /// The value as in VCF; empty for a flag that is set.
    pub value: String,
}

/// Genes and consequences of a record, as values of its INFO fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordGeneAnnotation {
    /// BCSQ: consequences in all transcripts, in the format of `bcftools csq`.
    pub bcsq: Vec<String>,
    /// HGVS: HGVS names of the change in all transcripts.
    pub hgvs: Vec<String>,
    /// FUSION: gene fusions that the change makes.
    pub fusions: Vec<String>,
    /// EXONS: exons that are deleted or duplicated.
    pub exons: Vec<String>,
    /// Effect on the representative transcript, for tables. `None` outside of genes.
    pub gene: Option<GeneEffect>,
}

/// The effect of a record on one gene, for tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GeneEffect {
    /// Symbol of the gene; for a fusion the symbols of both genes, joined by `::`.
    pub gene: String,
    /// Name of the transcript with its version, such as `ENST00000269305.9`.
    pub transcript: String,
    /// Consequence: Sequence Ontology terms, joined by `&`.
    pub consequence: String,
    /// Variant_Classification as in the MAF specification (Genomic Data Commons).
    pub classification: String,
    /// HGVS name of the change in the transcript, if there is one.
    pub hgvs_c: Option<String>,
    /// HGVS name of the change in the protein, if there is one.
    pub hgvs_p: Option<String>,
}

/// The ALT field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AltAllele {
    /// Bases of the alternative allele.
    Bases(String),
    /// A symbolic allele such as `<DEL>`; INFO fields describe the change.
    Symbolic(EventClass),
    /// A breakend: the reference base at this end, joined to the mate breakend.
    Breakend {
        /// Side of this breakend on which the bases are retained.
        side: RetainedSide,
        /// Index of the reference sequence of the mate breakend.
        chrom: usize,
        /// Position of the mate breakend (1-based).
        pos: usize,
        /// Side of the mate breakend on which the bases are retained.
        mate_side: RetainedSide,
    },
}

/// INFO fields of a structural variant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StructuralVariantFields {
    /// SVLEN: length difference of the alleles in bp, for an inversion its length; `None` for breakends and if it is
    /// unknown.
    pub len: Option<i64>,
    /// END: last position of the event (1-based); `None` for breakends.
    pub end: Option<usize>,
    /// MATEID: ID of the mate breakend; `None` if the record is not a breakend.
    pub mate_id: Option<String>,
    /// HOMLEN: length in bp of the microhomology, within which the position of the junction is ambiguous.
    pub homology: usize,
    /// HOMSEQ: bases of the microhomology on the forward strand; `None` if there is no microhomology, or if the
    /// reference does not have the same bases at both ends.
    pub homology_bases: Option<Vec<u8>>,
    /// SVINSSEQ: bases inserted at the junction, on the forward strand; for an inversion in the direction from its first
    /// to its second breakend.
    pub inserted: Vec<u8>,
    /// The junctions of the event, each once: of two mate breakend records only the first contains the junction.
    /// Positions are 0-based.
    pub junctions: Vec<[Breakend; 2]>,
    /// LEFT_SVINSSEQ and RIGHT_SVINSSEQ: known left and right part of an insertion that is not completely known.
    pub sides: [Option<Vec<u8>>; 2],
    /// INSSOURCE: the copy in the reference that an inserted element resembles.
    pub source: Option<ElementSource>,
}

/// VCF ID of the event with index `event`: `g1` for the first.
pub fn format_event_id(event: usize) -> String {
    format!("g{}", event + 1)
}

impl VcfRecord {
    /// Position of the other end of a structural event: index of the sequence and 1-based position. `None` for small
    /// variants, and if the position is that of the record itself.
    pub fn position_of_other_end(&self) -> Option<(usize, usize)> {
        if let AltAllele::Breakend { chrom, pos, .. } = self.alternative {
            return Some((chrom, pos));
        }
        let end = self.structural.as_ref()?.end?;
        (end != self.pos).then_some((self.chrom, end))
    }

    /// Formats the ALT field as VCF text.
    pub fn format_alt(&self, genome: &Reference) -> String {
        match &self.alternative {
            AltAllele::Bases(bases) => bases.clone(),
            AltAllele::Symbolic(class) => format!("<{}>", class.class_name()),
            AltAllele::Breakend { side, chrom, pos, mate_side } => {
                let bracket = if *mate_side == RetainedSide::Right { '[' } else { ']' };
                let place = format!("{bracket}{}:{pos}{bracket}", genome.contigs[*chrom].name);
                // Inserted bases are in INFO. `bcftools norm` stops if they are in ALT (section 5.4.1).
                match side {
                    RetainedSide::Left => format!("{}{place}", self.reference),
                    RetainedSide::Right => format!("{place}{}", self.reference),
                }
            }
        }
    }
}

/// Builds the records of all events, sorted by position and ID. Each event has at least one record.
pub fn build_vcf_records(events: &[Event], genome: &Reference) -> Vec<VcfRecord> {
    let of = |(event, of)| RecordBuilder { genome, event, event_calls: of }.records();
    let mut records: Vec<VcfRecord> = events.iter().enumerate().flat_map(of).collect();
    records.sort_by(|a, b| (a.chrom, a.pos, a.end, &a.id).cmp(&(b.chrom, b.pos, b.end, &b.id)));
    records
}

/// Builds the records of one event.
struct RecordBuilder<'a> {
    genome: &'a Reference,
    event: usize,
    event_calls: &'a Event,
}

/// Two breakends at the last retained bases before and after a change.
fn flanking_breakends(chrom: usize, before: usize, after: usize) -> [Breakend; 2] {
    [(before, RetainedSide::Left), (after, RetainedSide::Right)].map(|(pos, side)| Breakend { chrom, pos, side })
}

/// The two breakends of a junction; `None` for other changes.
fn junction_ends(change: &Change) -> Option<[Breakend; 2]> {
    match change {
        Change::Junction { ends, .. } => Some(*ends),
        _ => None,
    }
}

fn to_text(bases: &[u8]) -> String {
    String::from_utf8_lossy(bases).into_owned()
}

impl RecordBuilder<'_> {
    fn records(&self) -> Vec<VcfRecord> {
        let call = &self.event_calls.calls[0];
        match &call.change {
            Change::Allele { chrom, pos, reference, alternative } => {
                let end = pos + reference.len();
                let structural = matches!(self.event_calls.class, EventClass::Del | EventClass::Ins).then(|| {
                    StructuralVariantFields {
                        len: Some(alternative.len() as i64 - reference.len() as i64),
                        end: Some(end),
                        junctions: vec![flanking_breakends(*chrom, *pos, end)],
                        ..StructuralVariantFields::default()
                    }
                });
                vec![VcfRecord {
                    end,
                    reference: to_text(reference),
                    alternative: AltAllele::Bases(to_text(alternative)),
                    structural,
                    ..self.new_record(*chrom, pos + 1, call)
                }]
            }
            Change::Junction { ends, inserted, homology } => match self.event_calls.class {
                EventClass::Del | EventClass::Dup | EventClass::Inv => {
                    vec![self.build_symbolic_record(call, ends, inserted, *homology)]
                }
                _ => match &self.event_calls.inserted_element {
                    Some(element) => vec![self.build_element_record(element)],
                    None => (0..)
                        .zip(&self.event_calls.calls)
                        .flat_map(|(n, call)| self.build_breakend_records(n, call))
                        .collect(),
                },
            },
            Change::Novel { .. } => vec![self.build_insertion_record()],
        }
    }

    /// Creates a record of a call with the fields that all records have. REF is the base at `pos`.
    fn new_record(&self, chrom: usize, pos: usize, call: &VariantCall) -> VcfRecord {
        VcfRecord {
            event: self.event,
            id: format_event_id(self.event),
            chrom,
            pos,
            end: pos,
            reference: self.reference_base(chrom, pos - 1).to_string(),
            alternative: AltAllele::Symbolic(self.event_calls.class),
            class: self.event_calls.class,
            structural: None,
            locus: call.locus,
            genotype: call.genotype.clone(),
            population_frequency: call.population_frequency.frequency_if_listed(),
            panel: call.panel_normals,
            phase_set: self.event_calls.phase_set.map(|first| first + 1),
            screen: None,
            other_loci: OtherLoci::default(),
            known_info: Vec::new(),
            annotation: None,
        }
    }

    fn reference_base(&self, chrom: usize, pos: usize) -> char {
        let base = self.genome.contigs[chrom].seq[pos];
        // REF allows only A, C, G, T and N (section 1.6.1).
        if b"ACGT".contains(&base) { base as char } else { 'N' }
    }

    /// Builds a record with the symbolic allele `<DEL>`, `<DUP>` or `<INV>`. POS is the base before the event (section
    /// 1.6.1).
    fn build_symbolic_record(
        &self,
        call: &VariantCall,
        ends: &[Breakend; 2],
        inserted: &[u8],
        homology: usize,
    ) -> VcfRecord {
        let (from, to) = match (ends[0].side, ends[1].side) {
            (RetainedSide::Left, RetainedSide::Right) => (ends[0].pos + 1, ends[1].pos),
            (RetainedSide::Right, RetainedSide::Left) => (ends[0].pos, ends[1].pos + 1),
            (RetainedSide::Left, RetainedSide::Left) => (ends[0].pos + 1, ends[1].pos + 1),
            (RetainedSide::Right, RetainedSide::Right) => (ends[0].pos, ends[1].pos),
        };
        // The event is [from, to) in 0-based coordinates. The 1-based POS is `from`, unless the event is at the start
        // of the sequence.
        let len = (to - from) as i64;
        // A junction is stored in the direction away from its first end, which for a duplication is the reverse strand.
        let inserted = match self.event_calls.class {
            EventClass::Dup => reverse_complement(inserted),
            _ => inserted.to_vec(),
        };
        let structural = StructuralVariantFields {
            len: Some(if self.event_calls.class == EventClass::Del { -len } else { len }),
            end: Some(to),
            homology,
            homology_bases: self.find_homology_bases(ends, homology),
            inserted,
            junctions: self.event_calls.calls.iter().filter_map(|call| junction_ends(&call.change)).collect(),
            ..StructuralVariantFields::default()
        };
        VcfRecord { end: to, structural: Some(structural), ..self.new_record(ends[0].chrom, from.max(1), call) }
    }

    /// Builds two BND records that are mates of each other (section 5.4) for call number `n` of the event.
    fn build_breakend_records(&self, n: usize, call: &VariantCall) -> Vec<VcfRecord> {
        let Change::Junction { ends, inserted, homology } = &call.change else {
            unreachable!("an event of a junction has calls of junctions only")
        };
        let name = |side: usize| format!("{}_{}{}", format_event_id(self.event), n + 1, ["a", "b"][side]);
        [0usize, 1]
            .map(|i| {
                let (here, there) = (&ends[i], &ends[1 - i]);
                // The inserted bases are stored as read outwards from the first end, and written on the strand of
                // this end towards the mate.
                let outwards = if i == 0 { inserted.clone() } else { reverse_complement(inserted) };
                let inserted = if here.side == RetainedSide::Left { outwards } else { reverse_complement(&outwards) };
                let structural = StructuralVariantFields {
                    mate_id: Some(name(1 - i)),
                    homology: *homology,
                    homology_bases: self.find_homology_bases(&[*here, *there], *homology),
                    inserted,
                    junctions: if i == 0 { vec![*ends] } else { Vec::new() },
                    ..StructuralVariantFields::default()
                };
                VcfRecord {
                    id: name(i),
                    alternative: AltAllele::Breakend {
                        side: here.side,
                        chrom: there.chrom,
                        pos: there.pos + 1,
                        mate_side: there.side,
                    },
                    structural: Some(structural),
                    ..self.new_record(here.chrom, here.pos + 1, call)
                }
            })
            .to_vec()
    }

    /// Builds the record of a long insertion of which only the sequence at one end or at both ends is known.
    fn build_insertion_record(&self) -> VcfRecord {
        let mut sides = [None, None];
        let mut at: Option<(usize, usize)> = None;
        for call in &self.event_calls.calls {
            let Change::Novel { end, sequence } = &call.change else { continue };
            // POS is the base before the insertion.
            let before = if end.side == RetainedSide::Left { end.pos } else { end.pos.saturating_sub(1) };
            match end.side {
                RetainedSide::Left => sides[0] = Some(sequence.clone()),
                RetainedSide::Right => sides[1] = Some(reverse_complement(sequence)),
            }
            at = Some(at.map_or((end.chrom, before), |a| (a.0, a.1.min(before))));
        }
        let (chrom, before) = at.unwrap_or_default();
        let structural = StructuralVariantFields {
            end: Some(before + 1),
            sides,
            junctions: vec![flanking_breakends(chrom, before, before + 1)],
            ..StructuralVariantFields::default()
        };
        VcfRecord {
            alternative: AltAllele::Symbolic(EventClass::Ins),
            structural: Some(structural),
            ..self.new_record(chrom, before + 1, &self.event_calls.calls[0])
        }
    }

    /// Builds the record of an inserted element of which both junctions are known. POS is the base before the target-site
    /// duplication, the leftmost position of the insertion.
    fn build_element_record(&self, element: &InsertedElement) -> VcfRecord {
        let before = element.duplication.start.saturating_sub(1);
        let structural = StructuralVariantFields {
            len: element.inserted_len().map(|len| len as i64),
            end: Some(before + 1),
            junctions: vec![flanking_breakends(element.chrom, before, before + 1)],
            source: element.source.clone(),
            ..StructuralVariantFields::default()
        };
        let call = &self.event_calls.calls[0];
        VcfRecord { structural: Some(structural), ..self.new_record(element.chrom, before + 1, call) }
    }

    /// Bases of the microhomology on the forward strand at the first end, if the reference bases beyond one end equal
    /// the retained bases at the other end. `None` if they differ.
    fn find_homology_bases(&self, ends: &[Breakend; 2], bases: usize) -> Option<Vec<u8>> {
        let turned = |seq: Vec<u8>| reverse_complement(&seq);
        let of = |end: &Breakend, from: Option<usize>| {
            let from = from?;
            Some(self.genome.contigs[end.chrom].seq.get(from..from + bases)?.to_vec())
        };
        // Bases beyond an end, away from the bases that stay.
        let beyond = |end: &Breakend| match end.side {
            RetainedSide::Left => of(end, Some(end.pos + 1)),
            RetainedSide::Right => of(end, end.pos.checked_sub(bases)).map(turned),
        };
        // Bases at an end that stay, from the junction.
        let within = |end: &Breakend| match end.side {
            RetainedSide::Right => of(end, Some(end.pos)),
            RetainedSide::Left => of(end, (end.pos + 1).checked_sub(bases)).map(turned),
        };
        let forward = |seq: Vec<u8>, reads_right: bool| if reads_right { seq } else { turned(seq) };
        let [here, there] = ends;
        if bases == 0 {
            return None;
        }
        let (out, into) = (beyond(here)?, within(there)?);
        if out == into {
            return Some(forward(out, here.side == RetainedSide::Left));
        }
        let (out, into) = (beyond(there)?, within(here)?);
        (out == into).then(|| forward(into, here.side == RetainedSide::Right))
    }
}
