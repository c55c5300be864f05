//! The truth as VCF and BEDPE.

use std::fmt::Write as _;

use crate::genome::Genome;
use crate::germline::Germline;
use crate::mitochondrion::Mitochondrion;
use crate::ploidy::Ploidy;
use crate::repeats::RepeatMap;
use crate::sequencing::Recurrent;
use crate::tandem;
use crate::tumour::{Event, Placed, Tumour};
use crate::variant::{Breakend, Cut, Edit, Side, Span, Structural};

/// Longest inserted sequence that is written out, bp.
const LONGEST_ALLELE: usize = 1000;

const INFO: &[(&str, &str, &str, &str)] = &[
    ("CLASS", "1", "String", "SNV, INDEL, DEL, INS, DUP, INV, TRA (translocation) or COPY (dispersed copy)"),
    ("AF", "1", "Float", "Expected share of the tumour sample's reads that show the variant"),
    ("CLONE", "1", "Integer", "0: founder clone, in all tumour cells; otherwise the subclone"),
    ("REPEAT", "0", "Flag", "A 31-mer at the variant's place occurs more than once in the genome"),
    ("STR", "0", "Flag", "The variant lies in a tandem repeat or homopolymer"),
    ("SVTYPE", "1", "String", "Type of structural variant"),
    ("SVLEN", "1", "Integer", "Length of the structural variant, bp; negative when bases are lost"),
    ("END", "1", "Integer", "Last base of the variant"),
    ("EVENT", "1", "String", "Name of the event that a breakend belongs to"),
    ("MATEID", "1", "String", "The breakend at the other side"),
];
/// What only some truths tell.
const RARE_INFO: &[(&str, &str, &str, &str)] = &[
    ("CN", "1", "Integer", "Copies of the span in a tumour cell"),
    (
        "SHARE",
        "1",
        "Float",
        "Share of the molecules, of those of the strand, that show the wrong base, in the mean over libraries",
    ),
    (
        "STRAND",
        "1",
        "String",
        "Molecules that show it: forward or reverse, by how read 1 runs on the reference, or both",
    ),
    ("CLUSTER", "1", "Integer", "Cluster that the variant belongs to: all on one haplotype of one clone"),
];
const ALT: &[(&str, &str)] =
    &[("DEL", "Deletion"), ("INS", "Insertion"), ("DUP", "Tandem duplication"), ("INV", "Inversion")];

/// One line of a VCF file, before sorting.
struct Record {
    contig: usize,
    /// 1-based.
    pos: usize,
    id: String,
    reference: String,
    alternate: String,
    info: String,
    genotype: &'static str,
}

/// What the records of the truth say beyond the variant itself.
pub(crate) struct Annotator<'a> {
    /// The reference.
    pub genome: &'a Genome,
    /// Its repeats.
    pub repeats: &'a RepeatMap<'a>,
    /// How many copies of each contig healthy cells have.
    pub ploidy: &'a Ploidy,
}

fn text(bases: &[u8]) -> String {
    String::from_utf8_lossy(bases).into_owned()
}

/// POS (1-based), REF and ALT of a small variant, with the base before an indel.
fn alleles(genome: &Genome, edit: &Edit) -> (usize, String, String) {
    if edit.is_substitution() {
        return (edit.at.pos + 1, text(&edit.removed), text(&edit.added));
    }
    let before = text(&genome.seqs[edit.at.contig][edit.at.pos - 1..edit.at.pos]);
    (edit.at.pos, format!("{before}{}", text(&edit.removed)), format!("{before}{}", text(&edit.added)))
}

/// Short name of the class: SNV, MNV or INDEL.
fn class(edit: &Edit) -> &'static str {
    match edit.is_substitution() {
        true if edit.is_snv() => "SNV",
        true => "MNV",
        false => "INDEL",
    }
}

/// Which haplotypes of those that there are have a variant.
fn genotype(haplotypes: [bool; 2], there: [bool; 2]) -> &'static str {
    match (there, haplotypes) {
        ([true, true], [true, true]) => "1|1",
        ([true, true], [true, false]) => "1|0",
        ([true, true], [false, true]) => "0|1",
        ([true, true], [false, false]) => "0|0",
        _ => "1",
    }
}

/// What decides how much of a tumour sample's reads show a variant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleOf {
    /// Share of tumour cells among the patient's.
    pub purity: f64,
    /// Share of the patient's reads among all that come from the place.
    pub own: f64,
}

/// Where the truth tells whether the genome repeats itself.
pub fn places(tumour: &Tumour, mitochondrion: Option<&Mitochondrion>) -> Vec<Span> {
    let small = tumour.small.iter().map(|p| p.variant.span());
    let cuts = tumour.structural.iter().flat_map(|p| p.variant.cuts()).map(place);
    let inner = tumour.inner.iter().flat_map(|p| p.variant.span().cuts()).map(place);
    let circular = mitochondrion.iter().flat_map(|m| &m.somatic).map(|(edit, _)| edit.span());
    small.chain(cuts).chain(inner).chain(circular).collect()
}

fn place(cut: Cut) -> Span {
    Span { contig: cut.contig, start: cut.pos, end: cut.pos }
}

/// The somatic variants as VCF.
pub(crate) fn somatic_vcf(
    annotator: &Annotator,
    tumour: &Tumour,
    mitochondrion: Option<&Mitochondrion>,
    sample: SampleOf,
) -> String {
    let small = |p| annotator.small(p, tumour.allele_fraction(p, sample.purity) * sample.own);
    let mut records: Vec<Record> = tumour.small.iter().filter(|p| tumour.is_here(p)).map(small).collect();
    for (i, event) in tumour.events(sample.purity).iter().enumerate() {
        records.extend(annotator.structural(event, &format!("sv{}", i + 1), sample.own));
    }
    for (edit, fraction) in mitochondrion.iter().flat_map(|m| &m.somatic) {
        // There are no haplotypes; the second one stands for the copies that have it.
        let placed = Placed::new(edit.clone(), 1, 0);
        records.push(annotator.small(&placed, fraction * sample.purity * sample.own));
    }
    render(annotator.genome, records, "TUMOR")
}

/// Germline variants of one person as VCF.
pub(crate) fn germline_vcf(
    genome: &Genome,
    ploidy: &Ploidy,
    germline: &[Germline],
    mitochondrion: Option<&Mitochondrion>,
) -> String {
    let record = |(i, g): (usize, &Germline)| {
        let (pos, reference, alternate) = alleles(genome, &g.edit);
        let genotype = genotype(g.haplotypes, ploidy.haplotypes(g.edit.at.contig));
        Record {
            contig: g.edit.at.contig,
            pos,
            id: format!("g{}", i + 1),
            reference,
            alternate,
            info: format!("CLASS={}", class(&g.edit)),
            genotype,
        }
    };
    let all = germline.iter().chain(mitochondrion.iter().flat_map(|m| &m.germline));
    render(genome, all.enumerate().map(record).collect(), "NORMAL")
}

/// Wrong bases that recur, as VCF; nobody has them.
pub(crate) fn recurrent_vcf(genome: &Genome, places: &[Recurrent]) -> String {
    let record = |(i, place): (usize, &Recurrent)| Record {
        contig: place.at.contig,
        pos: place.at.pos + 1,
        id: format!("r{}", i + 1),
        reference: text(&[place.normal]),
        alternate: text(&[place.wrong]),
        info: format!("CLASS=SNV;SHARE={:.3};STRAND={}", place.share, place.strand.name()),
        genotype: "0|0",
    };
    render(genome, places.iter().enumerate().map(record).collect(), "TUMOR")
}

impl Annotator<'_> {
    fn genotype(&self, haplotype: usize, contig: usize) -> &'static str {
        genotype([0, 1].map(|h| h == haplotype), self.ploidy.haplotypes(contig))
    }

    fn flags(&self, cuts: &[Cut], span: Option<Span>) -> String {
        let spans: Vec<Span> = match span {
            Some(span) => vec![span],
            None => cuts.iter().map(|cut| place(*cut)).collect(),
        };
        let repeat = spans.iter().any(|s| self.repeats.touches(s.contig, s.start, s.end));
        let tandem = spans.iter().any(|s| tandem::touches_tract(&self.genome.seqs[s.contig], s.start, s.end));
        format!("{}{}", if repeat { ";REPEAT" } else { "" }, if tandem { ";STR" } else { "" })
    }

    fn small(&self, placed: &Placed<Edit>, af: f64) -> Record {
        let edit = &placed.variant;
        let (pos, reference, alternate) = alleles(self.genome, edit);
        let flags = self.flags(&[], Some(edit.span()));
        let cluster = placed.cluster.map_or_else(String::new, |n| format!(";CLUSTER={n}"));
        Record {
            contig: edit.at.contig,
            pos,
            id: ".".into(),
            reference,
            alternate,
            info: format!("CLASS={};AF={af:.4};CLONE={}{cluster}{flags}", class(edit), placed.clone),
            genotype: self.genotype(placed.haplotype, edit.at.contig),
        }
    }

    fn structural(&self, event: &Event, id: &str, own: f64) -> Vec<Record> {
        let Event { variant, haplotype, clone, .. } = event;
        let af = event.allele_fraction * own;
        let cuts = variant.cuts();
        let flags = self.flags(&cuts, None);
        let copies = event.copies.map_or_else(String::new, |n| format!(";CN={n:.0}"));
        let about = format!("CLASS={};AF={af:.4};CLONE={clone}{copies}{flags}", variant.class());
        let base = |contig: usize, at: usize| text(&self.genome.seqs[contig][at..=at]);
        let record = |contig: usize, pos: usize, alternate: String, info: String| Record {
            contig,
            pos,
            id: id.to_owned(),
            reference: base(contig, pos - 1),
            alternate,
            info,
            genotype: self.genotype(*haplotype, contig),
        };
        let symbolic = |span: &Span, svtype: &str, sign: &str| {
            let info = format!("{about};SVTYPE={svtype};END={};SVLEN={sign}{}", span.end, span.length());
            vec![record(span.contig, span.start, format!("<{svtype}>"), info)]
        };
        match variant {
            Structural::Deletion(span) => symbolic(span, "DEL", "-"),
            Structural::Duplication(span) | Structural::Amplification { span, .. } => {
                symbolic(span, "DUP", "")
            }
            Structural::Inversion(span) => symbolic(span, "INV", ""),
            Structural::Insertion(cut, sequence) => {
                let info = format!("{about};SVTYPE=INS;END={};SVLEN={}", cut.pos, sequence.len());
                let alternate = if sequence.len() <= LONGEST_ALLELE {
                    format!("{}{}", base(cut.contig, cut.pos - 1), text(sequence))
                } else {
                    "<INS>".into()
                };
                vec![record(cut.contig, cut.pos, alternate, info)]
            }
            Structural::Translocation { .. } | Structural::Copy { .. } => {
                let mut records = vec![];
                for (i, ends) in variant.adjacencies().iter().enumerate() {
                    let names = ["a", "b"].map(|end| format!("{id}_{}{end}", i + 1));
                    for side in 0..2 {
                        let (here, there) = (ends[side], ends[1 - side]);
                        let alternate = self.breakend(here, there);
                        let info = format!("{about};SVTYPE=BND;EVENT={id};MATEID={}", names[1 - side]);
                        let id = names[side].clone();
                        records.push(Record { id, ..record(here.contig, here.base + 1, alternate, info) });
                    }
                }
                records
            }
        }
    }

    /// ALT of a breakend (VCF 4.2, § 5.4).
    fn breakend(&self, here: Breakend, there: Breakend) -> String {
        let base = self.genome.seqs[here.contig][here.base] as char;
        let bracket = if there.side == Side::Left { ']' } else { '[' };
        let place = format!("{bracket}{}:{}{bracket}", self.genome.names[there.contig], there.base + 1);
        if here.side == Side::Left { format!("{base}{place}") } else { format!("{place}{base}") }
    }
}

fn render(genome: &Genome, mut records: Vec<Record>, sample: &str) -> String {
    records.sort_by(|a, b| (a.contig, a.pos, &a.id).cmp(&(b.contig, b.pos, &b.id)));
    let mut out = String::from("##fileformat=VCFv4.2\n##source=genuma simulate\n");
    out.push_str("##FILTER=<ID=PASS,Description=\"All filters passed\">\n");
    for (name, seq) in genome.names.iter().zip(&genome.seqs) {
        let _ = writeln!(out, "##contig=<ID={name},length={}>", seq.len());
    }
    let told = |id: &str| records.iter().any(|r| r.info.contains(&format!(";{id}=")));
    let rare = RARE_INFO.iter().filter(|(id, ..)| told(id));
    for (id, number, kind, what) in INFO.iter().chain(rare) {
        let _ = writeln!(out, "##INFO=<ID={id},Number={number},Type={kind},Description=\"{what}\">");
    }
    for (id, what) in ALT {
        let _ = writeln!(out, "##ALT=<ID={id},Description=\"{what}\">");
    }
    out.push_str("##FORMAT=<ID=GT,Number=1,Type=String,Description=\"Genotype by haplotype\">\n");
    let _ = writeln!(out, "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t{sample}");
    for r in records {
        let contig = &genome.names[r.contig];
        let Record { pos, id, reference, alternate, info, genotype, .. } = r;
        let _ =
            writeln!(out, "{contig}\t{pos}\t{id}\t{reference}\t{alternate}\t.\tPASS\t{info}\tGT\t{genotype}");
    }
    out
}

/// The new adjacencies of the structural variants as BEDPE, one a line.
pub fn bedpe(genome: &Genome, events: &[Event]) -> String {
    let mut out =
        String::from("#chrom1\tstart1\tend1\tchrom2\tstart2\tend2\tname\tscore\tstrand1\tstrand2\tclass\n");
    for (i, event) in events.iter().enumerate() {
        for (j, ends) in event.variant.adjacencies().iter().enumerate() {
            let [a, b] = ends.map(|e| format!("{}\t{}\t{}", genome.names[e.contig], e.base, e.base + 1));
            let [x, y] = ends.map(|e| if e.side == Side::Left { '+' } else { '-' });
            let class = event.variant.class();
            let _ = writeln!(out, "{a}\t{b}\tsv{}_{}\t.\t{x}\t{y}\t{class}", i + 1, j + 1);
        }
    }
    out
}
