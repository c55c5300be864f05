//! Records → tables that other tools take: MAF for small changes, BEDPE for structural ones. Both have the calls that passed.

use std::fmt::Write as _;

use genuma_reads::fasta::Reference;

use crate::change::{Breakend, Side};
use crate::genotype::{Own, Support};
use crate::record::{Alternative, Record};
use crate::samples::Samples;

/// A table, and what it leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The text, with its header.
    pub text: String,
    /// Rows.
    pub rows: usize,
    /// Records that passed and are of the other kind: they are in the other table.
    pub others: usize,
}

/// Columns of a MAF file, as the Genomic Data Commons names them. Those of annotation are there, and say that it is missing.
const MAF: [&str; 26] = [
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

/// A MAF file of all changes whose bases are known, a row for each tumour that has it. Genes and consequences are not known: `Unknown` stands
/// for them.
pub fn maf(records: &[Record], genome: &Reference, samples: &Samples) -> Table {
    let mut text = String::from(
        "#version 2.4\n#unannotated: genes and consequences (Hugo_Symbol, Variant_Classification) are not known to genuma\n",
    );
    text += &(MAF.join("\t") + "\n");
    let (mut rows, mut others) = (0, 0);
    for record in records.iter().filter(|record| record.genotype.filters.is_empty()) {
        let Alternative::Bases(alternative) = &record.alternative else {
            others += 1;
            continue;
        };
        let Shape { start, end, kind, reference, alternative } =
            shape(record.pos, &record.reference, alternative);
        let genotype = &record.genotype;
        let one = [Own { support: genotype.tumour, has: true }];
        let tumours = if genotype.tumours.is_empty() { &one } else { &genotype.tumours[..] };
        let counts = |s: &Support| format!("{}\t{}\t{}", s.depth(), s.reference, s.alternative);
        for (name, own) in samples.tumours().iter().zip(tumours).filter(|(_, own)| own.has) {
            let (chrom, normal) = (&genome.contigs[record.chrom].name, &samples.names()[0]);
            let (of_tumour, of_normal) = (counts(&own.support), counts(&genotype.normal));
            let _ = writeln!(
                text,
                "Unknown\t0\tgenuma\t.\t{chrom}\t{start}\t{end}\t+\tUnknown\t{kind}\t{reference}\t{reference}\t{alternative}\t{name}\t{normal}\t\
                 {of_tumour}\t{of_normal}\t\tPASS\t{}\t{}\t{:.1}",
                record.id, record.pos, genotype.quality
            );
            rows += 1;
        }
    }
    Table { text, rows, others }
}

/// A change as MAF has it: without the bases that both alleles begin with, 1-based, ends included.
struct Shape<'a> {
    start: usize,
    end: usize,
    kind: &'static str,
    reference: &'a str,
    alternative: &'a str,
}

fn shape<'a>(pos: usize, reference: &'a str, alternative: &'a str) -> Shape<'a> {
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
    // Of what is put in between two bases these are named.
    let (start, end) = if old.is_empty() { (start - 1, start) } else { (start, start + old.len() - 1) };
    let or_none = |bases: &'a str| if bases.is_empty() { "-" } else { bases };
    Shape { start, end, kind, reference: or_none(old), alternative: or_none(new) }
}

/// Columns of a BEDPE file: the first ten are bedtools'.
const BEDPE: &str = "#chrom1\tstart1\tend1\tchrom2\tstart2\tend2\tname\tscore\tstrand1\tstrand2\ttype\thomlen\tinserted\ttumor_ref\ttumor_alt\tnormal_ref\tnormal_alt";

/// A BEDPE file of all structural variants, a row for each junction. Each end is the last base that stays, its strand `+` where what stays lies
/// to the left: a deletion is `+-`, a tandem copy `-+`. What is known of both tumours and more is summed up.
pub fn bedpe(records: &[Record], genome: &Reference) -> Table {
    let mut text = format!("{BEDPE}\n");
    let (mut rows, mut others) = (0, 0);
    for record in records.iter().filter(|record| record.genotype.filters.is_empty()) {
        let Some(structural) = &record.structural else {
            others += 1;
            continue;
        };
        let inserted = match (&structural.inserted[..], &record.alternative) {
            ([], Alternative::Bases(bases)) => {
                shape(record.pos, &record.reference, bases).alternative.as_bytes()
            }
            (inserted, _) => inserted,
        };
        let inserted = if matches!(inserted, b"" | b"-") { b"." } else { inserted };
        let inserted = String::from_utf8_lossy(inserted);
        for ends in &structural.junctions {
            let place =
                |end: &Breakend| format!("{}\t{}\t{}", genome.contigs[end.chrom].name, end.pos, end.pos + 1);
            let strand = |end: &Breakend| if end.side == Side::Left { '+' } else { '-' };
            let [a, b] = ends;
            let (tumour, normal) = (&record.genotype.tumour, &record.genotype.normal);
            let _ = writeln!(
                text,
                "{}\t{}\t{}\t{:.1}\t{}\t{}\t{}\t{}\t{inserted}\t{}\t{}\t{}\t{}",
                place(a),
                place(b),
                record.id,
                record.genotype.quality,
                strand(a),
                strand(b),
                record.class.name(),
                structural.homology,
                tumour.reference,
                tumour.alternative,
                normal.reference,
                normal.alternative
            );
            rows += 1;
        }
    }
    Table { text, rows, others }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alleles_lose_what_they_share() {
        let of = |pos, reference, alternative| {
            let Shape { start, end, kind, reference, alternative } = shape(pos, reference, alternative);
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
