//! Export tables of the passing calls: MAF for calls with known bases, BEDPE for structural variants. An insertion or
//! deletion of 50 bp or more with known bases is in both.

use std::fmt::Write as _;

use genuma_annotate::hgvs::shorten_protein_change;
use genuma_reads::fasta::Reference;

use crate::change::{Breakend, RetainedSide};
use crate::genotype::{AlleleSupport, TumourSupport};
use crate::sample_names::SampleNames;
use crate::vcf_record::{AltAllele, VcfRecord};

/// A MAF or BEDPE table as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportTable {
    /// The text, including the header.
    pub text: String,
    /// Number of rows without the header.
    pub num_rows: usize,
    /// Number of passing records that are not in this table, because they are only in the other one.
    pub skipped_records: usize,
}

/// Columns of a MAF file, named as in the Genomic Data Commons specification.
const MAF_COLUMNS: [&str; 26] = [
    "Hugo_Symbol",
    "Entrez_Gene_Id",
    "Center",
    "NCBI_Build",
    "Chromosome",
    "Start_Position",
    "End_Position",
    "Strand",
    "Variant_Classification",
    "Variant_Type",
    "Reference_Allele",
    "Tumor_Seq_Allele1",
    "Tumor_Seq_Allele2",
    "Tumor_Sample_Barcode",
    "Matched_Norm_Sample_Barcode",
    "t_depth",
    "t_ref_count",
    "t_alt_count",
    "n_depth",
    "n_ref_count",
    "n_alt_count",
    "HGVSp_Short",
    "FILTER",
    "vcf_id",
    "vcf_pos",
    "vcf_qual",
];

/// Additional MAF columns at the end, present if the records are annotated with genes.
const MAF_ANNOTATION_COLUMNS: [&str; 4] = ["HGVSc", "HGVSp", "Transcript_ID", "Consequence"];

/// Whether the VCF records are annotated with genes and consequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MafGeneAnnotation {
    /// The records are not annotated; gene columns contain `Unknown`.
    Unknown,
    /// The records are annotated.
    Annotated,
}

/// Values of the gene columns of one MAF row.
#[derive(Default)]
struct MafGeneFields<'a> {
    symbol: &'a str,
    classification: &'a str,
    protein: String,
    /// Values of [`MAF_ANNOTATION_COLUMNS`], each preceded by a tab.
    columns: String,
}

fn maf_gene_fields(record: &VcfRecord, genes: MafGeneAnnotation) -> MafGeneFields<'_> {
    let gene = record.annotation.as_ref().and_then(|annotation| annotation.gene.as_ref());
    let unknown = MafGeneFields { symbol: "Unknown", classification: "Unknown", ..MafGeneFields::default() };
    match (genes, gene) {
        (MafGeneAnnotation::Unknown, _) => unknown,
        (MafGeneAnnotation::Annotated, None) => {
            MafGeneFields { classification: "IGR", columns: "\t\t\t\tintergenic_variant".to_owned(), ..unknown }
        }
        (MafGeneAnnotation::Annotated, Some(gene)) => {
            let [coding, protein] = [&gene.hgvs_c, &gene.hgvs_p].map(|name| name.as_deref().unwrap_or_default());
            MafGeneFields {
                symbol: &gene.gene,
                classification: &gene.classification,
                protein: shorten_protein_change(protein),
                columns: format!("\t{coding}\t{protein}\t{}\t{}", gene.transcript, gene.consequence.replace('&', ",")),
            }
        }
    }
}

/// Values of the INFO fields of known variants, each preceded by a tab; 1 for a flag that is set.
fn known_info_columns(record: &VcfRecord, fields: &[&str]) -> String {
    let value = |id: &&str| {
        let found = record.known_info.iter().find(|field| field.id == *id);
        found.map_or("", |field| if field.value.is_empty() { "1" } else { &field.value })
    };
    fields.iter().map(|id| format!("\t{}", value(id))).collect()
}

/// Builds a MAF table of the passing records whose ALT consists of bases, also of long insertions and deletions. A
/// variant has one row for each tumour that has it. `known_fields` are the INFO fields of known variants, which become
/// the last columns.
pub fn build_maf_table(
    records: &[VcfRecord],
    genome: &Reference,
    samples: &SampleNames,
    genes: MafGeneAnnotation,
    known_fields: &[&str],
) -> ExportTable {
    let mut text = String::from("#version 2.4\n");
    if genes == MafGeneAnnotation::Unknown {
        text += "#unannotated: without a genes file (genuma call --gff) Hugo_Symbol is Unknown\n";
    }
    let annotation_columns: &[&str] = if genes == MafGeneAnnotation::Annotated { &MAF_ANNOTATION_COLUMNS } else { &[] };
    text += &([&MAF_COLUMNS, annotation_columns, known_fields].concat().join("\t") + "\n");
    let (mut rows, mut others) = (0, 0);
    for record in records.iter().filter(|record| record.genotype.filters.is_empty()) {
        let AltAllele::Bases(alternative) = &record.alternative else {
            others += 1;
            continue;
        };
        let MafAllele { start, end, kind, reference, alternative } =
            trim_maf_allele(record.pos, &record.reference, alternative);
        let genotype = &record.genotype;
        let one = [TumourSupport { support: genotype.tumour, has: true }];
        let tumours = if genotype.tumours.is_empty() { &one } else { &genotype.tumours[..] };
        let counts =
            |s: &AlleleSupport| format!("{}\t{}\t{}", s.num_informative_molecules(), s.reference, s.alternative);
        for (name, own) in samples.tumour_names().iter().zip(tumours).filter(|(_, own)| own.has) {
            let chrom = &genome.contigs[record.chrom].name;
            let (normal, of_normal) = match samples.has_normal() {
                true => (&*samples.names()[0], counts(&genotype.normal)),
                false => ("", "\t\t".to_owned()),
            };
            let of_tumour = counts(&own.support);
            let MafGeneFields { symbol, classification, protein, columns } = maf_gene_fields(record, genes);
            let known = known_info_columns(record, known_fields);
            let _ = writeln!(
                text,
                "{symbol}\t0\tgenuma\t.\t{chrom}\t{start}\t{end}\t+\t{classification}\t{kind}\t{reference}\t{reference}\t{alternative}\t{name}\t{normal}\t\
                 {of_tumour}\t{of_normal}\t{protein}\tPASS\t{}\t{}\t{:.1}{columns}{known}",
                record.id, record.pos, genotype.quality
            );
            rows += 1;
        }
    }
    ExportTable { text, num_rows: rows, skipped_records: others }
}

/// A small variant in MAF notation: without the leading bases that both alleles share, with 1-based inclusive
/// positions.
struct MafAllele<'a> {
    start: usize,
    end: usize,
    kind: &'static str,
    reference: &'a str,
    alternative: &'a str,
}

fn trim_maf_allele<'a>(pos: usize, reference: &'a str, alternative: &'a str) -> MafAllele<'a> {
    let alike = reference.bytes().zip(alternative.bytes()).take_while(|(a, b)| a == b).count();
    let (old, new) = (&reference[alike..], &alternative[alike..]);
    let start = pos + alike;
    let kind = match (old.len(), new.len()) {
        (1, 1) => "SNP",
        (2, 2) => "DNP",
        (3, 3) => "TNP",
        (a, b) if a == b => "ONP",
        (a, b) if a < b => "INS",
        _ => "DEL",
    };
    // For an insertion MAF gives the bases on both sides of it.
    let (start, end) = if old.is_empty() { (start - 1, start) } else { (start, start + old.len() - 1) };
    let or_none = |bases: &'a str| if bases.is_empty() { "-" } else { bases };
    MafAllele { start, end, kind, reference: or_none(old), alternative: or_none(new) }
}

/// Header line of a BEDPE file; the first ten columns are those of bedtools.
const BEDPE_HEADER: &str = "#chrom1\tstart1\tend1\tchrom2\tstart2\tend2\tname\tscore\tstrand1\tstrand2\ttype\thomlen\tinserted\ttumor_ref\ttumor_alt\tnormal_ref\tnormal_alt";

/// Builds a BEDPE table of the passing structural variants, with one row for each junction. Each end is the outermost
/// base that the tumour keeps; its strand is `+` if the kept sequence is to its left. A deletion has the strands `+-`,
/// a tandem duplication `-+`. Counts are sums over all tumours.
pub fn build_bedpe_table(records: &[VcfRecord], genome: &Reference, samples: &SampleNames) -> ExportTable {
    let mut text = format!("{BEDPE_HEADER}\n");
    let (mut rows, mut others) = (0, 0);
    for record in records.iter().filter(|record| record.genotype.filters.is_empty()) {
        let Some(structural) = &record.structural else {
            others += 1;
            continue;
        };
        let inserted = match (&structural.inserted[..], &record.alternative) {
            ([], AltAllele::Bases(bases)) => {
                trim_maf_allele(record.pos, &record.reference, bases).alternative.as_bytes()
            }
            (inserted, _) => inserted,
        };
        let inserted = if matches!(inserted, b"" | b"-") { b"." } else { inserted };
        let inserted = String::from_utf8_lossy(inserted);
        for ends in &structural.junctions {
            let place = |end: &Breakend| format!("{}\t{}\t{}", genome.contigs[end.chrom].name, end.pos, end.pos + 1);
            let strand = |end: &Breakend| if end.side == RetainedSide::Left { '+' } else { '-' };
            let [a, b] = ends;
            let (tumour, normal) = (&record.genotype.tumour, &record.genotype.normal);
            let of_normal = match samples.has_normal() {
                true => format!("{}\t{}", normal.reference, normal.alternative),
                false => ".\t.".to_owned(),
            };
            let _ = writeln!(
                text,
                "{}\t{}\t{}\t{:.1}\t{}\t{}\t{}\t{}\t{inserted}\t{}\t{}\t{of_normal}",
                place(a),
                place(b),
                record.id,
                record.genotype.quality,
                strand(a),
                strand(b),
                record.class.class_name(),
                structural.homology,
                tumour.reference,
                tumour.alternative
            );
            rows += 1;
        }
    }
    ExportTable { text, num_rows: rows, skipped_records: others }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alleles_lose_what_they_share() {
        let of = |pos, reference, alternative| {
            let MafAllele { start, end, kind, reference, alternative } = trim_maf_allele(pos, reference, alternative);
            format!("{start}-{end} {kind} {reference}>{alternative}")
        };
        assert_eq!(of(100, "A", "G"), "100-100 SNP A>G");
        assert_eq!(of(100, "AC", "GT"), "100-101 DNP AC>GT");
        assert_eq!(of(100, "ACGT", "TTTT"), "100-103 ONP ACGT>TTTT");
        assert_eq!(of(100, "A", "AGG"), "100-101 INS ->GG");
        assert_eq!(of(100, "AGG", "A"), "101-102 DEL GG>-");
        assert_eq!(of(100, "ACGG", "ATC"), "101-103 DEL CGG>TC");
    }
}
