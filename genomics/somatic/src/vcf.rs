//! Events → VCF 4.3 text (sections cited are those of its specification).

use std::fmt::Write as _;

use genuma_reads::dna::revcomp;
use genuma_reads::fasta::Reference;

use crate::change::{Breakend, Change, Side};
use crate::event::{Class, Event};
use crate::genotype::{Filter, Genotype, Own, Support};
use crate::locus::Call;
use crate::samples::Samples;

/// One data line, ready to be sorted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// Index of the sequence.
    pub chrom: usize,
    /// 1-based position.
    pub pos: usize,
    /// Last base the record speaks of, 1-based: for the index.
    pub end: usize,
    /// The line without its line end.
    pub text: String,
}

/// The header (section 1.2), `#CHROM` line included.
pub fn header(genome: &Reference, samples: &Samples, command: &str) -> String {
    let mut h = String::from("##fileformat=VCFv4.3\n");
    let _ = writeln!(h, "##source=genuma {}", env!("CARGO_PKG_VERSION"));
    let _ = writeln!(h, "##genumaCommand={command}");
    for contig in &genome.contigs {
        let _ = writeln!(h, "##contig=<ID={},length={}>", contig.name, contig.seq.len());
    }
    h.push_str("##FILTER=<ID=PASS,Description=\"All filters passed\">\n");
    for (_, name, why) in Filter::ALL {
        let _ = writeln!(h, "##FILTER=<ID={name},Description=\"{why}\">");
    }
    for alt in [
        "DEL,Description=\"Deletion",
        "DUP,Description=\"Tandem duplication",
        "INV,Description=\"Inversion",
        "INS,Description=\"Insertion of sequence not fully known",
    ] {
        let _ = writeln!(h, "##ALT=<ID={alt}\">");
    }
    h.push_str(concat!(
        "##INFO=<ID=SOMATIC,Number=0,Type=Flag,Description=\"Somatic event\">\n",
        "##INFO=<ID=CLASS,Number=1,Type=String,Description=\"SNV, MNV, INDEL, DEL, INS, DUP, INV or BND\">\n",
        "##INFO=<ID=CONTIG,Number=1,Type=String,Description=\"Assembled tumour contig, as named in contigs.fa\">\n",
        "##INFO=<ID=MAPQ,Number=1,Type=Integer,Description=\"Mapping quality of the contig\">\n",
        "##INFO=<ID=SVTYPE,Number=1,Type=String,Description=\"Type of structural variant\">\n",
        "##INFO=<ID=SVLEN,Number=1,Type=Integer,Description=\"Length difference between the alleles\">\n",
        "##INFO=<ID=END,Number=1,Type=Integer,Description=\"Last base of the event\">\n",
        "##INFO=<ID=MATEID,Number=1,Type=String,Description=\"ID of the mate breakend\">\n",
        "##INFO=<ID=EVENT,Number=1,Type=String,Description=\"ID of the event the breakend belongs to\">\n",
        "##INFO=<ID=HOMLEN,Number=1,Type=Integer,Description=\"Length of microhomology at the breakpoint\">\n",
        "##INFO=<ID=CIPOS,Number=2,Type=Integer,Description=\"Interval the position may be shifted in\">\n",
        "##INFO=<ID=SVINSSEQ,Number=1,Type=String,Description=\"Bases inserted at the breakpoint\">\n",
        "##INFO=<ID=LEFT_SVINSSEQ,Number=1,Type=String,Description=\"Known left side of an insertion\">\n",
        "##INFO=<ID=RIGHT_SVINSSEQ,Number=1,Type=String,Description=\"Known right side of an insertion\">\n",
        "##INFO=<ID=PANEL,Number=1,Type=Integer,Description=\"Normals of the panel that have half of the k-mers of the change, or more\">\n",
    ));
    if samples.several() {
        h.push_str("##INFO=<ID=SHARED,Number=1,Type=Integer,Description=\"How many of the tumours have the change: those of genotype 0/1\">\n");
    }
    h.push_str(concat!(
        "##FORMAT=<ID=GT,Number=1,Type=String,Description=\"Genotype: 0/1 in the tumour says the allele is there, not how many copies\">\n",
        "##FORMAT=<ID=AD,Number=R,Type=Integer,Description=\"Read pairs for each allele, PCR copies counted once\">\n",
        "##FORMAT=<ID=DP,Number=1,Type=Integer,Description=\"Read pairs that tell the alleles apart\">\n",
        "##FORMAT=<ID=AF,Number=A,Type=Float,Description=\"Share of pairs with the tumour allele\">\n",
        "##FORMAT=<ID=PS,Number=1,Type=Integer,Description=\"Phase set: position of the first of the records on one haplotype\">\n",
        "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT",
    ));
    for name in samples.names() {
        let _ = write!(h, "\t{name}");
    }
    h.push('\n');
    h
}

/// All data lines, sorted.
pub fn lines(events: &[Event], genome: &Reference) -> Vec<Line> {
    let mut lines: Vec<Line> = events
        .iter()
        .enumerate()
        .flat_map(|(i, event)| Writer { genome, serial: i + 1 }.event(event))
        .collect();
    lines.sort();
    lines
}

struct Writer<'a> {
    genome: &'a Reference,
    serial: usize,
}

/// The columns that differ between kinds of records.
struct Columns {
    id: String,
    chrom: usize,
    /// 1-based.
    pos: usize,
    end: usize,
    reference: String,
    alternative: String,
    info: String,
}

fn text(bases: &[u8]) -> String {
    String::from_utf8_lossy(bases).into_owned()
}

impl Writer<'_> {
    fn event(&self, event: &Event) -> Vec<Line> {
        let call = &event.calls[0];
        match &call.change {
            Change::Allele { chrom, pos, reference, alternative } => {
                let mut info = String::new();
                if matches!(event.class, Class::Del | Class::Ins) {
                    let _ = write!(
                        info,
                        ";SVTYPE={};SVLEN={};END={}",
                        event.class.name(),
                        alternative.len() as i64 - reference.len() as i64,
                        pos + reference.len()
                    );
                }
                let columns = Columns {
                    id: self.id(""),
                    chrom: *chrom,
                    pos: pos + 1,
                    end: pos + reference.len(),
                    reference: text(reference),
                    alternative: text(alternative),
                    info,
                };
                vec![self.line(columns, event, call)]
            }
            Change::Junction { ends, inserted, homology } => match event.class {
                Class::Del | Class::Dup | Class::Inv => {
                    vec![self.symbolic(event, call, ends, inserted, *homology)]
                }
                _ => event
                    .calls
                    .iter()
                    .enumerate()
                    .flat_map(|(n, call)| self.breakends(n, event, call))
                    .collect(),
            },
            Change::Novel { .. } => vec![self.insertion(event)],
        }
    }

    fn id(&self, suffix: &str) -> String {
        format!("g{}{suffix}", self.serial)
    }

    fn base(&self, chrom: usize, pos: usize) -> char {
        let base = self.genome.contigs[chrom].seq[pos];
        // REF admits A, C, G, T and N only (section 1.6.1).
        if b"ACGT".contains(&base) { base as char } else { 'N' }
    }

    /// `<DEL>`, `<DUP>`, `<INV>`: POS is the base before the event (section 1.6.1).
    fn symbolic(
        &self,
        event: &Event,
        call: &Call,
        ends: &[Breakend; 2],
        inserted: &[u8],
        homology: usize,
    ) -> Line {
        let (from, to) = match (ends[0].side, ends[1].side) {
            (Side::Left, Side::Right) => (ends[0].pos + 1, ends[1].pos),
            (Side::Right, Side::Left) => (ends[0].pos, ends[1].pos + 1),
            (Side::Left, Side::Left) => (ends[0].pos + 1, ends[1].pos + 1),
            (Side::Right, Side::Right) => (ends[0].pos, ends[1].pos),
        };
        // 0-based half-open [from, to) is the event; POS in 1-based is from, unless the event begins the sequence.
        let (chrom, pos) = (ends[0].chrom, from.max(1));
        let len = (to - from) as i64;
        let mut info = format!(
            ";SVTYPE={};SVLEN={};END={to}",
            event.class.name(),
            if event.class == Class::Del { -len } else { len }
        );
        if homology > 0 {
            let _ = write!(info, ";HOMLEN={homology};CIPOS=0,{homology}");
        }
        if !inserted.is_empty() {
            let _ = write!(info, ";SVINSSEQ={}", text(inserted));
        }
        let columns = Columns {
            id: self.id(""),
            chrom,
            pos,
            end: to,
            reference: self.base(chrom, pos - 1).to_string(),
            alternative: format!("<{}>", event.class.name()),
            info,
        };
        self.line(columns, event, call)
    }

    /// Two BND records that are each other's mates (section 5.4).
    fn breakends(&self, n: usize, event: &Event, call: &Call) -> Vec<Line> {
        let Change::Junction { ends, inserted, homology } = &call.change else { return Vec::new() };
        let name = |side: usize| self.id(&format!("_{}{}", n + 1, ["a", "b"][side]));
        [0usize, 1]
            .map(|i| {
                let (here, there) = (&ends[i], &ends[1 - i]);
                let base = self.base(here.chrom, here.pos);
                let bracket = if there.side == Side::Right { '[' } else { ']' };
                let place =
                    format!("{bracket}{}:{}{bracket}", self.genome.contigs[there.chrom].name, there.pos + 1);
                // Inserted bases stand in INFO: with them in ALT (section 5.4.1) `bcftools norm` stops.
                let alternative = match here.side {
                    Side::Left => format!("{base}{place}"),
                    Side::Right => format!("{place}{base}"),
                };
                let mut info = format!(";SVTYPE=BND;MATEID={};EVENT={}", name(1 - i), self.id(""));
                if *homology > 0 {
                    let _ = write!(info, ";HOMLEN={homology}");
                }
                if !inserted.is_empty() {
                    // Kept as read from the first end outwards; written as this end's strand reads, towards the mate.
                    let outwards = if i == 0 { inserted.clone() } else { revcomp(inserted) };
                    let here_strand = if here.side == Side::Left { outwards } else { revcomp(&outwards) };
                    let _ = write!(info, ";SVINSSEQ={}", text(&here_strand));
                }
                let columns = Columns {
                    id: name(i),
                    chrom: here.chrom,
                    pos: here.pos + 1,
                    end: here.pos + 1,
                    reference: base.to_string(),
                    alternative,
                    info,
                };
                self.line(columns, event, call)
            })
            .to_vec()
    }

    /// A long insertion known from one or both sides.
    fn insertion(&self, event: &Event) -> Line {
        let mut info = String::from(";SVTYPE=INS");
        let mut at: Option<(usize, usize)> = None;
        for call in &event.calls {
            let Change::Novel { end, sequence } = &call.change else { continue };
            // POS is the base before the insertion.
            let before = if end.side == Side::Left { end.pos } else { end.pos.saturating_sub(1) };
            match end.side {
                Side::Left => {
                    let _ = write!(info, ";LEFT_SVINSSEQ={}", text(sequence));
                }
                Side::Right => {
                    let _ = write!(info, ";RIGHT_SVINSSEQ={}", text(&revcomp(sequence)));
                }
            }
            at = Some(at.map_or((end.chrom, before), |a| (a.0, a.1.min(before))));
        }
        let (chrom, before) = at.unwrap_or_default();
        let _ = write!(info, ";END={}", before + 1);
        let columns = Columns {
            id: self.id(""),
            chrom,
            pos: before + 1,
            end: before + 1,
            reference: self.base(chrom, before).to_string(),
            alternative: "<INS>".into(),
            info,
        };
        self.line(columns, event, &event.calls[0])
    }

    fn line(&self, c: Columns, event: &Event, call: &Call) -> Line {
        let Genotype { normal, tumour, tumours, quality, filters } = &call.genotype;
        let filter = if filters.is_empty() {
            "PASS".to_owned()
        } else {
            filters.iter().map(|f| f.name()).collect::<Vec<_>>().join(";")
        };
        let sample = |s: &Support, gt: &str| {
            format!("{gt}:{},{}:{}:{:.3}", s.reference, s.alternative, s.depth(), s.fraction())
        };
        // Which of the normal's haplotypes it would be is not known.
        let (genotype, key, own, none) = match event.phase_set {
            Some(first) => ("0|1", ":PS", format!(":{}", first + 1), ":."),
            None => ("0/1", "", String::new(), ""),
        };
        let shared = match tumours.iter().filter(|tumour| tumour.has).count() {
            _ if tumours.is_empty() => String::new(),
            n => format!(";SHARED={n}"),
        };
        let panel = call.panel.map_or_else(String::new, |normals| format!(";PANEL={normals}"));
        let one = [Own { support: *tumour, has: true }];
        let mut columns = String::new();
        for Own { support, has } in if tumours.is_empty() { &one } else { &tumours[..] } {
            let (genotype, own) = if *has { (genotype, &*own) } else { ("0/0", none) };
            let _ = write!(columns, "\t{}{own}", sample(support, genotype));
        }
        let text = format!(
            "{}\t{}\t{}\t{}\t{}\t{:.1}\t{filter}\tSOMATIC;CLASS={}{};CONTIG=t{}{shared}{panel}\tGT:AD:DP:AF{key}\t{}{none}{columns}",
            self.genome.contigs[c.chrom].name,
            c.pos,
            c.id,
            c.reference,
            c.alternative,
            quality,
            event.class.name(),
            c.info,
            call.locus + 1,
            sample(normal, if filters.contains(&Filter::Germline) { "0/1" } else { "0/0" }),
        );
        Line { chrom: c.chrom, pos: c.pos, end: c.end, text }
    }
}
