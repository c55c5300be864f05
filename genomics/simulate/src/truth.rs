//! Formats the truth (the simulated variants) as VCF and BEDPE.

use std::fmt::Write as _;

use crate::genome::Genome;
use crate::germline::GermlineVariant;
use crate::healthy_ploidy::HealthyPloidy;
use crate::mitochondrial_variants::MitochondrialVariants;
use crate::repeated_kmers::RepeatedKmersOfSpans;
use crate::sequencing::RecurrentError;
use crate::tandem_repeats;
use crate::tumour::{PlacedVariant, ReportedStructuralVariant, Tumour};
use crate::variant::{Breakend, BreakendSide, ContigSpan, GenomePosition, SequenceEdit, StructuralVariant};

/// Maximum length of a somatic insertion whose bases are written in ALT, bp; longer ones are symbolic.
const MAX_WRITTEN_ALLELE_BP: usize = 1000;

const INFO_FIELDS: &[(&str, &str, &str, &str)] = &[
    ("CLASS", "1", "String", "SNV, INDEL, DEL, INS, DUP, INV, TRA (translocation) or COPY (dispersed copy)"),
    ("AF", "A", "Float", "Expected share of the tumour sample's reads that show the variant"),
    ("CLONE", "1", "Integer", "0: founder clone, in all tumour cells; otherwise the subclone"),
    ("REPEAT", "0", "Flag", "A 31-mer at the variant occurs more than once in the genome"),
    ("STR", "0", "Flag", "The variant is in a tandem repeat or homopolymer"),
    ("SVTYPE", "1", "String", "Type of structural variant"),
    ("SVLEN", "1", "Integer", "Length of the structural variant, bp; negative when bases are lost"),
    ("END", "1", "Integer", "Last base of the variant"),
    ("EVENT", "1", "String", "Name of the event of the breakend"),
    ("MATEID", "1", "String", "ID of the breakend at the other side of the junction"),
];
/// INFO fields that are declared only in files with records that have them: ID, number, type, description.
const OPTIONAL_INFO_FIELDS: &[(&str, &str, &str, &str)] = &[
    ("CN", "1", "Integer", "Copies of the span in a tumour cell"),
    (
        "SHARE",
        "1",
        "Float",
        "Mean share over libraries of the molecules (of the affected strand) that show the wrong base",
    ),
    (
        "STRAND",
        "1",
        "String",
        "Molecules that show the wrong base, by the strand of read 1 on the reference: forward, reverse or both",
    ),
    ("CLUSTER", "1", "Integer", "Number of the variant cluster; a cluster is on one haplotype of one clone"),
];
const SYMBOLIC_ALLELES: &[(&str, &str)] =
    &[("DEL", "Deletion"), ("INS", "Insertion"), ("DUP", "Tandem duplication"), ("INV", "Inversion")];

/// One VCF record, before records are sorted.
struct TruthRecord {
    contig: usize,
    /// Position, 1-based.
    pos: usize,
    id: String,
    reference: String,
    alternate: String,
    info: String,
    genotype: &'static str,
}

/// Creates VCF records of the truth, with genotype and INFO fields (such as CLASS, AF and REPEAT).
pub(crate) struct TruthRecordBuilder<'a> {
    /// The reference genome, without the patient's variants.
    pub genome: &'a Genome,
    /// Repeated 31-mers of the reference at the variants.
    pub repeats: &'a RepeatedKmersOfSpans<'a>,
    /// Haplotypes of each contig that healthy cells have.
    pub ploidy: &'a HealthyPloidy,
}

fn bases_to_string(bases: &[u8]) -> String {
    String::from_utf8_lossy(bases).into_owned()
}

/// Returns POS (1-based), REF and ALT of a small variant; for an indel REF and ALT begin with the base before it.
pub(crate) fn vcf_pos_and_alleles(genome: &Genome, edit: &SequenceEdit) -> (usize, String, String) {
    if edit.is_substitution() {
        return (edit.position.pos + 1, bases_to_string(&edit.removed), bases_to_string(&edit.added));
    }
    let before = bases_to_string(&genome.seqs[edit.position.contig][edit.position.pos - 1..edit.position.pos]);
    (
        edit.position.pos,
        format!("{before}{}", bases_to_string(&edit.removed)),
        format!("{before}{}", bases_to_string(&edit.added)),
    )
}

/// Returns the INFO value CLASS of a small variant: SNV, MNV or INDEL.
fn small_variant_class(edit: &SequenceEdit) -> &'static str {
    match edit.is_substitution() {
        true if edit.is_snv() => "SNV",
        true => "MNV",
        false => "INDEL",
    }
}

/// Returns the phased genotype, such as `0|1`. `haplotypes` are those that have the variant; `there` are those that the
/// person has of the contig. With only one haplotype the genotype is `1`.
fn phased_genotype(haplotypes: [bool; 2], there: [bool; 2]) -> &'static str {
    match (there, haplotypes) {
        ([true, true], [true, true]) => "1|1",
        ([true, true], [true, false]) => "1|0",
        ([true, true], [false, true]) => "0|1",
        ([true, true], [false, false]) => "0|0",
        _ => "1",
    }
}

/// Composition of a tumour sample, from which the expected allele fractions are computed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TumourSampleComposition {
    /// Share of tumour cells among the patient's cells in the sample, 0 to 1.
    pub purity: f64,
    /// Share of the sample's reads that come from the patient, 0 to 1. Reads of another species do not count.
    pub patient_share: f64,
}

/// Lists the spans around the variants for which the truth states whether they are in repeats.
pub(crate) fn list_spans_to_check_for_repeats(
    tumour: &Tumour,
    mitochondrion: Option<&MitochondrialVariants>,
) -> Vec<ContigSpan> {
    let small = tumour.small.iter().map(|p| p.variant.reference_span());
    let cuts = tumour.structural.iter().flat_map(|p| p.variant.breakpoints()).map(empty_span);
    let inner = tumour
        .amplified_span_deletions
        .iter()
        .flat_map(|p| p.variant.reference_span().start_and_end_positions())
        .map(empty_span);
    let circular = mitochondrion.iter().flat_map(|m| &m.somatic).map(|(edit, _)| edit.reference_span());
    small.chain(cuts).chain(inner).chain(circular).collect()
}

fn empty_span(cut: GenomePosition) -> ContigSpan {
    ContigSpan { contig: cut.contig, start: cut.pos, end: cut.pos }
}

/// Formats the somatic variants that at least one tumour cell of the sample has as VCF text.
pub(crate) fn format_somatic_vcf(
    annotator: &TruthRecordBuilder,
    tumour: &Tumour,
    mitochondrion: Option<&MitochondrialVariants>,
    sample: TumourSampleComposition,
) -> String {
    let small = |p| annotator.small_record(p, tumour.allele_fraction(p, sample.purity) * sample.patient_share);
    let mut records: Vec<TruthRecord> =
        tumour.small.iter().filter(|p| tumour.is_variant_in_sample(p)).map(small).collect();
    for (i, event) in tumour.list_structural_variants_in_sample(sample.purity).iter().enumerate() {
        records.extend(annotator.structural_records(event, &format!("sv{}", i + 1), sample.patient_share));
    }
    for (edit, fraction) in mitochondrion.iter().flat_map(|m| &m.somatic) {
        // Mitochondria have no haplotypes; haplotype 1 represents the copies with the variant.
        let placed = PlacedVariant::on_all_copies(edit.clone(), 1, 0);
        records.push(annotator.small_record(&placed, fraction * sample.purity * sample.patient_share));
    }
    format_vcf(annotator.genome, records, "TUMOR")
}

/// Formats the germline variants of one person as VCF text.
pub(crate) fn format_germline_vcf(
    genome: &Genome,
    ploidy: &HealthyPloidy,
    germline: &[GermlineVariant],
    mitochondrion: Option<&MitochondrialVariants>,
) -> String {
    let record = |(i, g): (usize, &GermlineVariant)| {
        let (pos, reference, alternate) = vcf_pos_and_alleles(genome, &g.edit);
        let genotype = phased_genotype(g.haplotypes, ploidy.has_each_haplotype(g.edit.position.contig));
        TruthRecord {
            contig: g.edit.position.contig,
            pos,
            id: format!("g{}", i + 1),
            reference,
            alternate,
            info: format!("CLASS={}", small_variant_class(&g.edit)),
            genotype,
        }
    };
    let all = germline.iter().chain(mitochondrion.iter().flat_map(|m| &m.germline));
    format_vcf(genome, all.enumerate().map(record).collect(), "NORMAL")
}

/// Formats the recurrent sequencing errors as VCF text. No sample has them as variants.
pub(crate) fn format_recurrent_error_vcf(genome: &Genome, places: &[RecurrentError]) -> String {
    let record = |(i, place): (usize, &RecurrentError)| TruthRecord {
        contig: place.position.contig,
        pos: place.position.pos + 1,
        id: format!("r{}", i + 1),
        reference: bases_to_string(&[place.reference_base]),
        alternate: bases_to_string(&[place.error_base]),
        info: format!("CLASS=SNV;SHARE={:.3};STRAND={}", place.molecule_share, place.strand.vcf_strand_value()),
        genotype: "0|0",
    };
    format_vcf(genome, places.iter().enumerate().map(record).collect(), "TUMOR")
}

impl TruthRecordBuilder<'_> {
    fn genotype_of(&self, haplotype: usize, contig: usize) -> &'static str {
        phased_genotype([0, 1].map(|h| h == haplotype), self.ploidy.has_each_haplotype(contig))
    }

    fn repeat_flags(&self, cuts: &[GenomePosition], span: Option<ContigSpan>) -> String {
        let spans: Vec<ContigSpan> = match span {
            Some(span) => vec![span],
            None => cuts.iter().map(|cut| empty_span(*cut)).collect(),
        };
        let repeat = spans.iter().any(|s| self.repeats.touches_repeat(s.contig, s.start, s.end));
        let tandem =
            spans.iter().any(|s| tandem_repeats::touches_tandem_repeat(&self.genome.seqs[s.contig], s.start, s.end));
        format!("{}{}", if repeat { ";REPEAT" } else { "" }, if tandem { ";STR" } else { "" })
    }

    fn small_record(&self, placed: &PlacedVariant<SequenceEdit>, af: f64) -> TruthRecord {
        let edit = &placed.variant;
        let (pos, reference, alternate) = vcf_pos_and_alleles(self.genome, edit);
        let flags = self.repeat_flags(&[], Some(edit.reference_span()));
        let cluster = placed.cluster.map_or_else(String::new, |n| format!(";CLUSTER={n}"));
        TruthRecord {
            contig: edit.position.contig,
            pos,
            id: ".".into(),
            reference,
            alternate,
            info: format!("CLASS={};AF={af:.4};CLONE={}{cluster}{flags}", small_variant_class(edit), placed.clone),
            genotype: self.genotype_of(placed.haplotype, edit.position.contig),
        }
    }

    fn structural_records(&self, event: &ReportedStructuralVariant, id: &str, own: f64) -> Vec<TruthRecord> {
        let ReportedStructuralVariant { variant, haplotype, clone, .. } = event;
        let af = event.allele_fraction * own;
        let cuts = variant.breakpoints();
        let flags = self.repeat_flags(&cuts, None);
        let copies = event.copies.map_or_else(String::new, |n| format!(";CN={n:.0}"));
        let about = format!("CLASS={};AF={af:.4};CLONE={clone}{copies}{flags}", variant.class_name());
        let base = |contig: usize, at: usize| bases_to_string(&self.genome.seqs[contig][at..=at]);
        let record = |contig: usize, pos: usize, alternate: String, info: String| TruthRecord {
            contig,
            pos,
            id: id.to_owned(),
            reference: base(contig, pos - 1),
            alternate,
            info,
            genotype: self.genotype_of(*haplotype, contig),
        };
        let symbolic = |span: &ContigSpan, svtype: &str, sign: &str| {
            let info = format!("{about};SVTYPE={svtype};END={};SVLEN={sign}{}", span.end, span.length_bp());
            vec![record(span.contig, span.start, format!("<{svtype}>"), info)]
        };
        match variant {
            StructuralVariant::Deletion(span) => symbolic(span, "DEL", "-"),
            StructuralVariant::Duplication(span) | StructuralVariant::Amplification { span, .. } => {
                symbolic(span, "DUP", "")
            }
            StructuralVariant::Inversion(span) => symbolic(span, "INV", ""),
            StructuralVariant::Insertion(cut, sequence) => {
                let info = format!("{about};SVTYPE=INS;END={};SVLEN={}", cut.pos, sequence.len());
                let alternate = if sequence.len() <= MAX_WRITTEN_ALLELE_BP {
                    format!("{}{}", base(cut.contig, cut.pos - 1), bases_to_string(sequence))
                } else {
                    "<INS>".into()
                };
                vec![record(cut.contig, cut.pos, alternate, info)]
            }
            StructuralVariant::Translocation { .. } | StructuralVariant::Copy { .. } => {
                let mut records = vec![];
                for (i, ends) in variant.adjacencies().iter().enumerate() {
                    let names = ["a", "b"].map(|end| format!("{id}_{}{end}", i + 1));
                    for side in 0..2 {
                        let (here, there) = (ends[side], ends[1 - side]);
                        let alternate = self.breakend_alt(here, there);
                        let info = format!("{about};SVTYPE=BND;EVENT={id};MATEID={}", names[1 - side]);
                        let id = names[side].clone();
                        records.push(TruthRecord { id, ..record(here.contig, here.base + 1, alternate, info) });
                    }
                }
                records
            }
        }
    }

    /// Returns ALT of a VCF record for the breakend `here` that is joined to `there` (VCF 4.2, section 5.4).
    fn breakend_alt(&self, here: Breakend, there: Breakend) -> String {
        let base = self.genome.seqs[here.contig][here.base] as char;
        let bracket = if there.side == BreakendSide::Left { ']' } else { '[' };
        let place = format!("{bracket}{}:{}{bracket}", self.genome.names[there.contig], there.base + 1);
        if here.side == BreakendSide::Left { format!("{base}{place}") } else { format!("{place}{base}") }
    }
}

fn format_vcf(genome: &Genome, mut records: Vec<TruthRecord>, sample: &str) -> String {
    records.sort_by(|a, b| (a.contig, a.pos, &a.id).cmp(&(b.contig, b.pos, &b.id)));
    let mut out = String::from("##fileformat=VCFv4.2\n##source=genuma bench simulate\n");
    out.push_str("##FILTER=<ID=PASS,Description=\"All filters passed\">\n");
    for (name, seq) in genome.names.iter().zip(&genome.seqs) {
        let _ = writeln!(out, "##contig=<ID={name},length={}>", seq.len());
    }
    let is_used = |id: &str| records.iter().any(|r| r.info.contains(&format!(";{id}=")));
    let rare = OPTIONAL_INFO_FIELDS.iter().filter(|(id, ..)| is_used(id));
    for (id, number, kind, what) in INFO_FIELDS.iter().chain(rare) {
        let _ = writeln!(out, "##INFO=<ID={id},Number={number},Type={kind},Description=\"{what}\">");
    }
    for (id, what) in SYMBOLIC_ALLELES {
        let _ = writeln!(out, "##ALT=<ID={id},Description=\"{what}\">");
    }
    out.push_str("##FORMAT=<ID=GT,Number=1,Type=String,Description=\"Genotype by haplotype\">\n");
    let _ = writeln!(out, "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t{sample}");
    for r in records {
        let contig = &genome.names[r.contig];
        let TruthRecord { pos, id, reference, alternate, info, genotype, .. } = r;
        let _ = writeln!(out, "{contig}\t{pos}\t{id}\t{reference}\t{alternate}\t.\tPASS\t{info}\tGT\t{genotype}");
    }
    out
}

/// Formats the adjacencies of the structural variants as BEDPE text, one per line.
pub(crate) fn format_structural_variants_as_bedpe(genome: &Genome, events: &[ReportedStructuralVariant]) -> String {
    let mut out = String::from("#chrom1\tstart1\tend1\tchrom2\tstart2\tend2\tname\tscore\tstrand1\tstrand2\tclass\n");
    for (i, event) in events.iter().enumerate() {
        for (j, ends) in event.variant.adjacencies().iter().enumerate() {
            let [a, b] = ends.map(|e| format!("{}\t{}\t{}", genome.names[e.contig], e.base, e.base + 1));
            let [x, y] = ends.map(|e| if e.side == BreakendSide::Left { '+' } else { '-' });
            let class = event.variant.class_name();
            let _ = writeln!(out, "{a}\t{b}\tsv{}_{}\t.\t{x}\t{y}\t{class}", i + 1, j + 1);
        }
    }
    out
}
