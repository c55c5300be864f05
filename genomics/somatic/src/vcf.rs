//! Records → VCF 4.3 text (sections cited are those of its specification).

use std::fmt::Write as _;

use genuma_reads::fasta::Reference;

use crate::genotype::{Filter, Genotype, Own, Support};
use crate::record::{self, Record, Structural};
use crate::samples::Samples;

/// The header (section 1.2), `#CHROM` line included, of calls some of which may be `screened` for known sequences.
pub fn header(genome: &Reference, samples: &Samples, command: &str, screened: bool) -> String {
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
        "##INFO=<ID=HOMSEQ,Number=1,Type=String,Description=\"Bases of the microhomology, where the reference shows them at both ends\">\n",
        "##INFO=<ID=CIPOS,Number=2,Type=Integer,Description=\"Interval the position may be shifted in\">\n",
        "##INFO=<ID=SVINSSEQ,Number=1,Type=String,Description=\"Bases inserted at the breakpoint\">\n",
        "##INFO=<ID=LEFT_SVINSSEQ,Number=1,Type=String,Description=\"Known left side of an insertion\">\n",
        "##INFO=<ID=RIGHT_SVINSSEQ,Number=1,Type=String,Description=\"Known right side of an insertion\">\n",
        "##INFO=<ID=TLOD,Number=A,Type=Float,Description=\"Log10 of the likelihood that the tumours have the allele, at the shares that fit best, over that of errors\">\n",
        "##INFO=<ID=NLOD,Number=A,Type=Float,Description=\"Log10 of the likelihood that the normal has not the allele over that of a heterozygous germline variant\">\n",
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
        "##FORMAT=<ID=F1R2,Number=R,Type=Integer,Description=\"Pairs for each allele whose read 1 runs along the contig, which runs as the reference does at its longest piece\">\n",
        "##FORMAT=<ID=F2R1,Number=R,Type=Integer,Description=\"Pairs for each allele whose read 2 runs along the contig\">\n",
        "##FORMAT=<ID=SB,Number=4,Type=Integer,Description=\"Pairs by allele and strand of the mate that says most: normal allele along the contig and against it, tumour allele along and against\">\n",
        "##FORMAT=<ID=PS,Number=1,Type=Integer,Description=\"Phase set: position of the first of the records on one haplotype\">\n",
    ));
    if screened {
        h.push_str("##INFO=<ID=SCREEN,Number=1,Type=String,Description=\"Sequence screened for that the new sequence is of, and where in it, 1-based\">\n");
    }
    // As Mutect2 says it, and what reads its calls asks for; of several tumours each has a line.
    for (role, names) in [("normal", &samples.names()[..1]), ("tumor", samples.tumours())] {
        for name in names {
            let _ = writeln!(h, "##{role}_sample={name}");
        }
    }
    h.push_str("#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT");
    for name in samples.names() {
        let _ = write!(h, "\t{name}");
    }
    h.push('\n');
    h
}

/// The line of a record, without its line end.
pub fn line(record: &Record, genome: &Reference) -> String {
    let Genotype { normal, tumour, tumours, quality, odds: _, filters } = &record.genotype;
    let filter = if filters.is_empty() {
        "PASS".to_owned()
    } else {
        filters.iter().map(|f| f.name()).collect::<Vec<_>>().join(";")
    };
    let sample = |s: &Support, gt: &str| {
        let Support { reference, alternative, forward, first_forward, .. } = *s;
        let (with, first) = (s.reference_forward, s.reference_first_forward);
        format!(
            "{gt}:{reference},{alternative}:{}:{:.3}:{first},{first_forward}:{},{}:{with},{},{forward},{}",
            s.depth(),
            s.fraction(),
            reference - first,
            alternative - first_forward,
            reference - with,
            alternative - forward
        )
    };
    // Which of the normal's haplotypes it would be is not known.
    let (genotype, key, own, none) = match record.phase_set {
        Some(first) => ("0|1", ":PS", format!(":{first}"), ":."),
        None => ("0/1", "", String::new(), ""),
    };
    let one = [Own { support: *tumour, has: true }];
    let mut columns = String::new();
    for Own { support, has } in if tumours.is_empty() { &one } else { &tumours[..] } {
        let (genotype, own) = if *has { (genotype, &*own) } else { ("0/0", none) };
        let _ = write!(columns, "\t{}{own}", sample(support, genotype));
    }
    format!(
        "{}\t{}\t{}\t{}\t{}\t{:.1}\t{filter}\t{}\tGT:AD:DP:AF:F1R2:F2R1:SB{key}\t{}{none}{columns}",
        genome.contigs[record.chrom].name,
        record.pos,
        record.id,
        record.reference,
        record.alternative(genome),
        quality,
        info(record),
        sample(normal, if filters.contains(&Filter::Germline) { "0/1" } else { "0/0" }),
    )
}

fn info(record: &Record) -> String {
    let mut info = format!("SOMATIC;CLASS={}", record.class.name());
    if let Some(of) = &record.structural {
        structural(&mut info, record, of);
    }
    let odds = &record.genotype.odds;
    let _ = write!(info, ";CONTIG=t{};TLOD={:.2};NLOD={:.2}", record.locus + 1, odds.tumour, odds.normal);
    let tumours = &record.genotype.tumours;
    if !tumours.is_empty() {
        let _ = write!(info, ";SHARED={}", tumours.iter().filter(|tumour| tumour.has).count());
    }
    if let Some(normals) = record.panel {
        let _ = write!(info, ";PANEL={normals}");
    }
    if let Some((name, place)) = &record.screen {
        let _ = write!(info, ";SCREEN={name}:{place}");
    }
    info
}

fn structural(info: &mut String, record: &Record, of: &Structural) {
    let Structural { len, end, mate, homology, shared, inserted, sides, junctions: _ } = of;
    let bases = |bases: &[u8]| String::from_utf8_lossy(bases).into_owned();
    let _ = write!(info, ";SVTYPE={}", record.class.name());
    if let Some(len) = len {
        let _ = write!(info, ";SVLEN={len}");
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
        let _ = write!(info, ";MATEID={mate};EVENT={}", record::id(record.event));
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
}
