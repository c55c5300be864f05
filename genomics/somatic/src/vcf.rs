//! Formats records as VCF 4.3 text. Sections in comments are those of the VCF specification.

use std::fmt::Write as _;
use std::ops::Range;

use genuma_reads::TUMOUR_SAMPLE;
use genuma_reads::fasta::Reference;
use genuma_reads::known_info::InfoFieldDefinition;

use crate::candidate_kmer::KmerDepths;
use crate::element_from_junctions::ElementSource;
use crate::event::EventClass;
use crate::genotype::{AlleleSupport, Filter, GenotypingResult, TumourSupport};
use crate::other_loci::OtherLocus;
use crate::provenance::{InputFile, Provenance, ReferenceIdentity};
use crate::result_warnings::ResultWarning;
use crate::sample_names::SampleNames;
use crate::sample_summary::SampleSummary;
use crate::vcf_record::{
    self, AltAllele, KnownInfoValue, RecordGeneAnnotation, StructuralVariantFields, VcfRecord, percent_encode,
};

/// What a VCF header contains besides the fixed lines.
#[derive(Debug, Clone, Copy)]
pub struct VcfHeaderContent<'a> {
    /// The reference sequences to which the positions of the records refer.
    pub genome: &'a Reference,
    /// Names of the normal and the tumours, in the order of the sample columns.
    pub samples: &'a SampleNames,
    /// URL, assembly and MD5 sums of the reference, for `##reference` and `##contig`.
    pub reference: &'a ReferenceIdentity,
    /// Text of the parameters on which the records depend (`##genumaCommand`): equal for equal calls.
    pub settings: &'a str,
    /// Command line and input files, which are written to the header.
    pub provenance: &'a Provenance,
    /// Whether records may have the INFO field SCREEN.
    pub has_screen: bool,
}

/// The `##ALT` lines, and the `##INFO` lines of every call.
const ALT_AND_INFO_LINES: &str = concat!(
    "##ALT=<ID=DEL,Description=\"Deletion\">\n",
    "##ALT=<ID=DUP,Description=\"Tandem duplication\">\n",
    "##ALT=<ID=INV,Description=\"Inversion\">\n",
    "##ALT=<ID=INS,Description=\"Insertion whose sequence is partly unknown\">\n",
    "##INFO=<ID=SOMATIC,Number=0,Type=Flag,Description=\"Somatic event\">\n",
    "##INFO=<ID=CLASS,Number=1,Type=String,Description=\"SNV, MNV, INDEL, DEL, INS, DUP, INV or BND\">\n",
    "##INFO=<ID=CONTIG,Number=1,Type=String,Description=\"Assembled tumour contig, as named in contigs.fa\">\n",
    "##INFO=<ID=MAPQ,Number=1,Type=Integer,Description=\"Mapping quality of the assembled contig\">\n",
    "##INFO=<ID=SVTYPE,Number=1,Type=String,Description=\"Type of structural variant\">\n",
    "##INFO=<ID=SVLEN,Number=1,Type=Integer,Description=\"Difference in length between the ALT and REF alleles\">\n",
    "##INFO=<ID=SVCLAIM,Number=A,Type=String,Description=\"Evidence of the deletion or duplication: J, a junction of the tumour's sequence\">\n",
    "##INFO=<ID=END,Number=1,Type=Integer,Description=\"Position of the last base of the event\">\n",
    "##INFO=<ID=MATEID,Number=1,Type=String,Description=\"ID of the mate breakend\">\n",
    "##INFO=<ID=EVENT,Number=1,Type=String,Description=\"ID of the event that the breakend belongs to\">\n",
    "##INFO=<ID=HOMLEN,Number=1,Type=Integer,Description=\"Length of microhomology at the breakpoint\">\n",
    "##INFO=<ID=HOMSEQ,Number=1,Type=String,Description=\"Bases of the microhomology, if the reference has them at both ends\">\n",
    "##INFO=<ID=CIPOS,Number=2,Type=Integer,Description=\"Interval of possible positions, relative to POS\">\n",
    "##INFO=<ID=SVINSSEQ,Number=1,Type=String,Description=\"Bases inserted at the breakpoint\">\n",
    "##INFO=<ID=LEFT_SVINSSEQ,Number=1,Type=String,Description=\"Known left part of an insertion\">\n",
    "##INFO=<ID=RIGHT_SVINSSEQ,Number=1,Type=String,Description=\"Known right part of an insertion\">\n",
    "##INFO=<ID=INSSOURCE,Number=1,Type=String,Description=\"Copy in the reference that the inserted sequence resembles: sequence:first-last:strand\">\n",
    "##INFO=<ID=TLOD,Number=A,Type=Float,Description=\"Log10 likelihood ratio: the tumours have the allele at the best-fitting allele fractions, versus sequencing errors only\">\n",
    "##INFO=<ID=NLOD,Number=A,Type=Float,Description=\"Log10 likelihood ratio: the normal lacks the allele, versus a heterozygous germline variant\">\n",
    "##INFO=<ID=TDP,Number=1,Type=Integer,Description=\"Molecules of the tumours that support one of the alleles\">\n",
    "##INFO=<ID=TVAF,Number=1,Type=Float,Description=\"Fraction of molecules of the tumours with the tumour allele\">\n",
    "##INFO=<ID=CDP,Number=1,Type=Integer,Description=\"Molecules of the normal (control) that support one of the alleles\">\n",
    "##INFO=<ID=CVAF,Number=1,Type=Float,Description=\"Fraction of molecules of the normal (control) with the tumour allele\">\n",
    "##INFO=<ID=POPAF,Number=A,Type=Float,Description=\"Negative log10 of the allele's frequency among the known variants\">\n",
    "##INFO=<ID=PANEL,Number=1,Type=Integer,Description=\"Number of normals of the panel that have at least half of the k-mers of the change\">\n",
    "##INFO=<ID=PARALOGS,Number=.,Type=String,Description=\"Other loci of the reference that the contig resembles, at most three, best first: sequence:first-last:strand:identity\">\n",
);

/// The `##INFO` lines of calls with several tumours, with screened sequences and with genes.
const SHARED_LINE: &str = "##INFO=<ID=SHARED,Number=1,Type=Integer,Description=\"Number of tumours with the change, that is with genotype 0/1\">\n";
const SCREEN_LINE: &str = "##INFO=<ID=SCREEN,Number=1,Type=String,Description=\"Screened sequence that the new sequence is part of, with the position in it (1-based)\">\n";
// bcftools +split-vep finds the fields after "Format: ".
const GENE_LINES: &str = concat!(
    "##INFO=<ID=BCSQ,Number=.,Type=String,Description=\"Consequences for all transcripts, named as in bcftools csq. Format: Consequence|gene|transcript|biotype|strand|amino_acid_change|dna_change\">\n",
    "##INFO=<ID=HGVS,Number=.,Type=String,Description=\"HGVS names in all transcripts, %3D for an equals sign. Format: gene|HGVSc|HGVSp\">\n",
    "##INFO=<ID=FUSION,Number=.,Type=String,Description=\"Fusions of genes. Format: genes|transcript_5|transcript_3|last_exon_5|first_exon_3|frame\">\n",
    "##INFO=<ID=EXONS,Number=.,Type=String,Description=\"Exons that are deleted or duplicated. Format: gene|transcript|exons|num_exons|frame\">\n",
);

/// Declaration of a carried-over INFO field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarriedInfoField {
    /// ID of the field in the records of the call.
    pub id: String,
    /// The declaration in the file of known variants.
    pub source: InfoFieldDefinition,
    /// Name of this file without its folder.
    pub file_name: String,
}

/// Whether genuma itself writes an INFO field with this ID.
pub(crate) fn is_own_info_field(id: &str) -> bool {
    let start = format!("##INFO=<ID={id},");
    [ALT_AND_INFO_LINES, SHARED_LINE, SCREEN_LINE, GENE_LINES].iter().any(|lines| lines.contains(&start))
}

/// The `##FORMAT` lines.
const FORMAT_LINES: &str = concat!(
    "##FORMAT=<ID=GT,Number=1,Type=String,Description=\"Genotype; 0/1 in a tumour means that the allele is present, not its number of copies\">\n",
    "##FORMAT=<ID=AD,Number=R,Type=Integer,Description=\"Molecules that support each allele (read pairs, duplicates counted once)\">\n",
    "##FORMAT=<ID=DP,Number=1,Type=Integer,Description=\"Molecules that support one of the alleles\">\n",
    "##FORMAT=<ID=AF,Number=A,Type=Float,Description=\"Fraction of molecules with the tumour allele; molecules at the second end of a long allele do not count\">\n",
    "##FORMAT=<ID=F1R2,Number=R,Type=Integer,Description=\"Molecules for each allele whose read 1 has the orientation of the contig, which is that of the reference at its longest segment\">\n",
    "##FORMAT=<ID=F2R1,Number=R,Type=Integer,Description=\"Molecules for each allele whose read 2 has the orientation of the contig\">\n",
    "##FORMAT=<ID=SB,Number=4,Type=Integer,Description=\"Molecules by allele and by strand of the most informative mate: normal allele on the strand of the contig and on the other strand, tumour allele likewise\">\n",
    "##FORMAT=<ID=PS,Number=1,Type=Integer,Description=\"Phase set: position of the first record on the same haplotype\">\n",
);

/// Formats the VCF header (section 1.2) including the `#CHROM` line.
pub fn format_vcf_header(content: &VcfHeaderContent<'_>) -> String {
    let samples = content.samples;
    let mut h = String::from("##fileformat=VCFv4.3\n");
    write_provenance(&mut h, content);
    h.push_str("##FILTER=<ID=PASS,Description=\"All filters passed\">\n");
    for (_, name, why) in Filter::ALL_FILTERS {
        let _ = writeln!(h, "##FILTER=<ID={name},Description=\"{why}\">");
    }
    h.push_str(ALT_AND_INFO_LINES);
    if samples.has_several_tumours() {
        h.push_str(SHARED_LINE);
    }
    h.push_str(FORMAT_LINES);
    if content.has_screen {
        h.push_str(SCREEN_LINE);
    }
    // Mutect2 writes these lines, and programs that read its calls need them. Each tumour has a line.
    let normal = if samples.has_normal() { &samples.names()[..1] } else { &[] };
    for (role, names) in [("normal", normal), ("tumor", samples.tumour_names())] {
        for name in names {
            let _ = writeln!(h, "##{role}_sample={name}");
        }
    }
    h.push_str("#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT");
    for name in samples.output_sample_names() {
        let _ = write!(h, "\t{name}");
    }
    h.push('\n');
    h
}

/// Adds the lines that show from what the call was made, and the `##contig` lines. Only `##genumaCommandLine`,
/// `##genumaInput` and `##reference` differ between calls with equal results.
fn write_provenance(h: &mut String, content: &VcfHeaderContent<'_>) {
    let VcfHeaderContent { genome, reference, settings, provenance, .. } = content;
    let _ = writeln!(h, "##source=genuma {}", env!("CARGO_PKG_VERSION"));
    let _ = writeln!(h, "##genumaCommand={settings}");
    if !provenance.command_line.is_empty() {
        let _ = writeln!(h, "##genumaCommandLine={}", provenance.command_line);
    }
    for (number, InputFile { role, path, bytes }) in (1..).zip(&provenance.inputs) {
        let bytes = bytes.map_or_else(String::new, |bytes| format!(",Bytes={bytes}"));
        let _ = writeln!(h, "##genumaInput=<ID={number},Role={},Path={}{bytes}>", quote(role), quote(path));
    }
    if let Some(url) = &reference.url {
        let _ = writeln!(h, "##reference={url}");
    }
    let assembly = reference.assembly.as_deref().map_or_else(String::new, |name| format!(",assembly={}", quote(name)));
    for (c, contig) in genome.contigs.iter().enumerate() {
        let md5 = reference.sequence_md5.get(c).map_or_else(String::new, |md5| format!(",md5={md5}"));
        let _ = writeln!(h, "##contig=<ID={},length={}{assembly}{md5}>", contig.name, contig.seq.len());
    }
}

/// Quotes a value of a structured header line (section 1.4). Control characters become spaces.
fn quote(text: &str) -> String {
    let printable: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("\"{}\"", printable.replace('\\', r"\\").replace('"', "\\\""))
}

/// Inserts lines into a VCF header before the `#CHROM` line.
fn insert_header_lines(header: &mut String, lines: &str) {
    let columns = header.find("#CHROM").unwrap_or(header.len());
    header.insert_str(columns, lines);
}

/// Adds a line `##genumaWarning=` for each warning to a VCF header.
pub fn add_warning_header_lines(header: &mut String, warnings: &[ResultWarning]) {
    let lines: String = warnings.iter().map(|warning| format!("##genumaWarning={}\n", warning.message)).collect();
    insert_header_lines(header, &lines);
}

/// Adds a line `##genumaPair=` for each tumour to a VCF header: the relation of tumour and normal by their alleles, their
/// k-mer depths, and their contamination (share of DNA of another person), as far as these are known. Adds nothing in a
/// tumour-only call.
pub fn add_sample_pair_header_lines(
    header: &mut String,
    samples: &SampleNames,
    depths: &KmerDepths,
    summaries: &[SampleSummary],
) {
    if !samples.has_normal() {
        return;
    }
    let names = samples.names();
    let mut lines = String::new();
    for (tumour, summary) in (usize::from(TUMOUR_SAMPLE)..).zip(summaries) {
        let depth = |sample: usize| depths.kmer.get(sample).copied().unwrap_or(0.0);
        let _ = write!(
            lines,
            "##genumaPair=<ID={},Normal={},KmerDepth={},NormalKmerDepth={}",
            names[tumour],
            names[0],
            depth(tumour),
            depth(0)
        );
        if let Some(pair) = &summary.pair {
            let _ = write!(lines, ",Relation={}", pair.identity.relation.relation_name());
            for (key, contamination) in ["NormalContamination", "Contamination"].iter().zip(&pair.contamination) {
                if let Some(found) = contamination {
                    let _ = write!(lines, ",{key}={:.4}", found.share.value);
                }
            }
        }
        lines.push_str(">\n");
    }
    insert_header_lines(header, &lines);
}

/// Adds the lines that declare the INFO fields of the gene annotation to a VCF header. `gff_name` is the name of the
/// GFF3 file.
pub fn add_gene_annotation_header_lines(header: &mut String, gff_name: &str) {
    insert_header_lines(header, &format!("##genumaGff={gff_name}\n{GENE_LINES}"));
}

/// Adds the lines that declare the INFO fields of known variants to a VCF header.
pub fn add_known_info_header_lines(header: &mut String, fields: &[CarriedInfoField]) {
    let line = |field: &CarriedInfoField| {
        let InfoFieldDefinition { id, number, value_type, description } = &field.source;
        let renamed = if *id == field.id { String::new() } else { format!("{id}: ") };
        format!(
            "##INFO=<ID={},Number={number},Type={value_type},Description=\"{renamed}{description}\",Source={}>\n",
            field.id,
            quote(&field.file_name)
        )
    };
    insert_header_lines(header, &fields.iter().map(line).collect::<String>());
}

/// Formats a record as a line of VCF text, without the line end. `has_normal` is set if the normal has a column.
pub fn format_vcf_record(record: &VcfRecord, genome: &Reference, has_normal: bool) -> String {
    let GenotypingResult { normal, tumour, tumours, quality, limits: _, odds: _, filters } = &record.genotype;
    let filter = if filters.is_empty() {
        "PASS".to_owned()
    } else {
        filters.iter().map(|f| f.filter_id()).collect::<Vec<_>>().join(";")
    };
    let sample = |s: &AlleleSupport, gt: &str| {
        let AlleleSupport { reference, alternative, forward, first_forward, .. } = *s;
        let (with, first) = (s.reference_forward, s.reference_first_forward);
        format!(
            "{gt}:{reference},{alternative}:{}:{:.3}:{first},{first_forward}:{},{}:{with},{},{forward},{}",
            s.num_informative_molecules(),
            s.allele_fraction(),
            reference - first,
            alternative - first_forward,
            reference - with,
            alternative - forward
        )
    };
    // The normal haplotype that carries the change is unknown.
    let (genotype, key, own, none) = match record.phase_set {
        Some(first) => ("0|1", ":PS", format!(":{first}"), ":."),
        None => ("0/1", "", String::new(), ""),
    };
    let one = [TumourSupport { support: *tumour, has: true }];
    let mut columns = String::new();
    if has_normal {
        let genotype = if filters.contains(&Filter::Germline) { "0/1" } else { "0/0" };
        let _ = write!(columns, "\t{}{none}", sample(normal, genotype));
    }
    for TumourSupport { support, has } in if tumours.is_empty() { &one } else { &tumours[..] } {
        let (genotype, own) = if *has { (genotype, &*own) } else { ("0/0", none) };
        let _ = write!(columns, "\t{}{own}", sample(support, genotype));
    }
    format!(
        "{}\t{}\t{}\t{}\t{}\t{:.1}\t{filter}\t{}\tGT:AD:DP:AF:F1R2:F2R1:SB{key}{columns}",
        genome.contigs[record.chrom].name,
        record.pos,
        record.id,
        record.reference,
        record.format_alt(genome),
        quality,
        info_field(record, genome, has_normal),
    )
}

/// Minimum population frequency that is written; lower ones, and 0, which has no logarithm, are written as this
/// frequency.
const MIN_WRITTEN_FREQUENCY: f64 = 1e-9;

fn info_field(record: &VcfRecord, genome: &Reference, has_normal: bool) -> String {
    let mut info = format!("SOMATIC;CLASS={}", record.class.class_name());
    if let Some(of) = &record.structural {
        write_structural_info(&mut info, record, of, genome);
    }
    let GenotypingResult { odds, tumour, normal, .. } = &record.genotype;
    let _ = write!(info, ";CONTIG=t{};TLOD={:.2}", record.locus + 1, odds.tumour);
    if has_normal {
        let _ = write!(info, ";NLOD={:.2}", odds.normal);
    }
    // The tags that PCGR reads: depth and allele fraction of tumour and control.
    let _ = write!(info, ";TDP={};TVAF={:.3}", tumour.num_informative_molecules(), tumour.allele_fraction());
    if has_normal {
        let _ = write!(info, ";CDP={};CVAF={:.3}", normal.num_informative_molecules(), normal.allele_fraction());
    }
    let tumours = &record.genotype.tumours;
    if !tumours.is_empty() {
        let _ = write!(info, ";SHARED={}", tumours.iter().filter(|tumour| tumour.has).count());
    }
    if let Some(frequency) = record.population_frequency {
        let _ = write!(info, ";POPAF={:.2}", -frequency.max(MIN_WRITTEN_FREQUENCY).log10());
    }
    if let Some(normals) = record.panel {
        let _ = write!(info, ";PANEL={normals}");
    }
    if let Some((name, place)) = &record.screen {
        let _ = write!(info, ";SCREEN={}:{place}", encode_sequence_name(name));
    }
    if !record.other_loci.best.is_empty() {
        let loci: Vec<String> = record.other_loci.best.iter().map(|locus| format_other_locus(locus, genome)).collect();
        let _ = write!(info, ";PARALOGS={}", loci.join(","));
    }
    for KnownInfoValue { id, value } in &record.known_info {
        let _ = if value.is_empty() { write!(info, ";{id}") } else { write!(info, ";{id}={value}") };
    }
    if let Some(annotation) = &record.annotation {
        let RecordGeneAnnotation { bcsq, hgvs, fusions, exons, gene: _ } = annotation;
        for (key, values) in [("BCSQ", bcsq), ("HGVS", hgvs), ("FUSION", fusions), ("EXONS", exons)] {
            if !values.is_empty() {
                let _ = write!(info, ";{key}={}", values.join(","));
            }
        }
    }
    info
}

/// Percent-encodes the name of a sequence for INFO.
fn encode_sequence_name(name: &str) -> String {
    percent_encode(name, &['%', ';', '=', ','])
}

/// Formats a range of the reference (0-based) with a strand: sequence:first-last:strand.
fn format_stranded_range(chrom: usize, range: &Range<usize>, is_forward: bool, genome: &Reference) -> String {
    let name = encode_sequence_name(&genome.contigs[chrom].name);
    format!("{name}:{}-{}:{}", range.start + 1, range.end, if is_forward { '+' } else { '-' })
}

/// Formats another locus of the contig as a value of PARALOGS.
fn format_other_locus(locus: &OtherLocus, genome: &Reference) -> String {
    let range = format_stranded_range(locus.chrom, &locus.range, locus.forward, genome);
    format!("{range}:{:.3}", locus.identity())
}

fn write_structural_info(info: &mut String, record: &VcfRecord, of: &StructuralVariantFields, genome: &Reference) {
    let StructuralVariantFields {
        len,
        end,
        mate_id: mate,
        homology,
        homology_bases: shared,
        inserted,
        sides,
        source,
        junctions: _,
    } = of;
    let bases = |bases: &[u8]| String::from_utf8_lossy(bases).into_owned();
    let _ = write!(info, ";SVTYPE={}", record.class.class_name());
    if let Some(len) = len {
        let _ = write!(info, ";SVLEN={len}");
    }
    if matches!(record.alternative, AltAllele::Symbolic(EventClass::Del | EventClass::Dup)) {
        let _ = write!(info, ";SVCLAIM=J");
    }
    for (key, side) in ["LEFT_SVINSSEQ", "RIGHT_SVINSSEQ"].iter().zip(sides) {
        if let Some(side) = side {
            let _ = write!(info, ";{key}={}", bases(side));
        }
    }
    if let Some(end) = end {
        let _ = write!(info, ";END={end}");
    }
    if let Some(mate) = mate {
        let _ = write!(info, ";MATEID={mate};EVENT={}", vcf_record::format_event_id(record.event));
    }
    if *homology > 0 {
        let _ = write!(info, ";HOMLEN={homology}");
        if let Some(shared) = shared {
            let _ = write!(info, ";HOMSEQ={}", bases(shared));
        }
        if mate.is_none() {
            let _ = write!(info, ";CIPOS=0,{homology}");
        }
    }
    if !inserted.is_empty() {
        let _ = write!(info, ";SVINSSEQ={}", bases(inserted));
    }
    if let Some(ElementSource { chrom, range, forward }) = source {
        let _ = write!(info, ";INSSOURCE={}", format_stranded_range(*chrom, range, *forward, genome));
    }
}
