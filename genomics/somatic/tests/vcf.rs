//! Tests the lines of the VCF byte for byte, and that bcftools accepts them.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::Command;

use crate::common::Rng;
use genuma_reads::fasta::{Contig, Reference};
use genuma_somatic::change::{Breakend, Change, RetainedSide};
use genuma_somatic::element_from_junctions::InsertedElement;
use genuma_somatic::event::{Event, EventClass};
use genuma_somatic::export_tables::{MafGeneAnnotation, build_bedpe_table, build_maf_table};
use genuma_somatic::genotype::{
    AlleleSupport, ErrorFrequency, Filter, GenotypingResult, Log10LikelihoodRatios, TumourSupport,
};
use genuma_somatic::known_variants::PopulationFrequency;
use genuma_somatic::locus::VariantCall;
use genuma_somatic::other_loci::{OtherLoci, OtherLocus};
use genuma_somatic::provenance::{InputFile, Provenance, ReferenceIdentity};
use genuma_somatic::sample_names::SampleNames;
use genuma_somatic::vcf::{VcfHeaderContent, format_vcf_header, format_vcf_record};
use genuma_somatic::vcf_record::{VcfRecord, build_vcf_records};

const L: RetainedSide = RetainedSide::Left;
const R: RetainedSide = RetainedSide::Right;
/// The end of every line in these tests.
const SAMPLES: &str =
    "GT:AD:DP:AF:F1R2:F2R1:SB\t0/0:30,0:30:0.000:16,0:14,0:14,16,0,0\t0/1:15,5:20:0.250:8,2:7,3:7,8,3,2";

fn reference(seqs: &[(&str, &[u8])]) -> Reference {
    Reference::from_contigs(seqs.iter().map(|(n, s)| Contig { name: (*n).into(), seq: s.to_vec() }).collect())
}

/// A header with all that is known of a call.
fn header(genome: &Reference, samples: &SampleNames, has_screen: bool) -> String {
    let input = |role: &str, path: &str, bytes| InputFile { role: role.to_owned(), path: path.to_owned(), bytes };
    let provenance = Provenance {
        command_line: r"genuma call --tumor 'T 1.fq' $'a\nb'".to_owned(),
        inputs: vec![input("TUMOR", "/a \"b\"\\c,>.fq", Some(12)), input("NORMAL", "/dev/fd/3", None)],
        platforms: Vec::new(),
    };
    let reference = ReferenceIdentity {
        url: Some("file:///my%20genomes/x.fa".to_owned()),
        assembly: Some("GRCh38".to_owned()),
        sequence_md5: genome.contigs.iter().enumerate().map(|(c, _)| format!("{c:032x}")).collect(),
        ..ReferenceIdentity::default()
    };
    let (reference, provenance) = (&reference, &provenance);
    format_vcf_header(&VcfHeaderContent { genome, samples, reference, settings: "genuma call", provenance, has_screen })
}

#[test]
fn header_says_what_the_call_was_made_from() {
    let genome = reference(&[("chr1", b"ACGT"), ("chr2", b"ACG")]);
    let header = header(&genome, &SampleNames::default(), false);
    let expected = concat!(
        "##genumaCommand=genuma call\n",
        r"##genumaCommandLine=genuma call --tumor 'T 1.fq' $'a\nb'",
        "\n",
        r#"##genumaInput=<ID=1,Role="TUMOR",Path="/a \"b\"\\c,>.fq",Bytes=12>"#,
        "\n##genumaInput=<ID=2,Role=\"NORMAL\",Path=\"/dev/fd/3\">\n",
        "##reference=file:///my%20genomes/x.fa\n",
        "##contig=<ID=chr1,length=4,assembly=\"GRCh38\",md5=00000000000000000000000000000000>\n",
        "##contig=<ID=chr2,length=3,assembly=\"GRCh38\",md5=00000000000000000000000000000001>\n",
    );
    assert!(header.contains(expected), "{header}");
}

fn call(change: Change) -> VariantCall {
    let normal =
        AlleleSupport { reference: 30, reference_forward: 14, reference_first_forward: 16, ..AlleleSupport::default() };
    let tumour = AlleleSupport {
        reference: 15,
        alternative: 5,
        forward: 3,
        first_forward: 2,
        reference_forward: 7,
        reference_first_forward: 8,
        copies: 0,
        at_second_end: [0, 0],
    };
    let odds = Log10LikelihoodRatios { tumour: 12.346, normal: 8.5 };
    let genotype = GenotypingResult { normal, tumour, quality: 87.65, odds, ..GenotypingResult::default() };
    VariantCall {
        change,
        error_frequency: ErrorFrequency::Common,
        genotype,
        population_frequency: PopulationFrequency::NoKnownVariants,
        panel_normals: None,
        is_fold_back: false,
        locus: 6,
        change_index: 0,
        supporting_pairs: Vec::new(),
        phased_changes: Vec::new(),
    }
}

fn event(class: EventClass, changes: impl IntoIterator<Item = Change>) -> Event {
    Event { class, calls: changes.into_iter().map(call).collect(), inserted_element: None, phase_set: None }
}

fn allele(pos: usize, reference: &[u8], alternative: &[u8]) -> Change {
    Change::Allele { chrom: 0, pos, reference: reference.to_vec(), alternative: alternative.to_vec() }
}

/// A junction of ends given as sequence, 1-based position and side.
fn junction(ends: [(usize, usize, RetainedSide); 2], inserted: &[u8], homology: usize) -> Change {
    let ends = ends.map(|(chrom, pos, side)| Breakend { chrom, pos: pos - 1, side });
    Change::Junction { ends, inserted: inserted.to_vec(), homology }
}

fn texts(events: &[Event], genome: &Reference) -> Vec<String> {
    build_vcf_records(events, genome).iter().map(|record| format_vcf_record(record, genome, true)).collect()
}

#[test]
fn sequence_alleles() {
    let genome = reference(&[("chr1", b"ACGTACGTAC")]);
    let one = |class, change| texts(&[event(class, [change])], &genome);
    assert_eq!(
        one(EventClass::Snv, allele(2, b"G", b"T")),
        [format!(
            "chr1\t3\tg1\tG\tT\t87.7\tPASS\tSOMATIC;CLASS=SNV;CONTIG=t7;TLOD=12.35;NLOD=8.50;TDP=20;TVAF=0.250;CDP=30;CVAF=0.000\t{SAMPLES}"
        )]
    );
    assert_eq!(
        one(EventClass::Indel, allele(2, b"GTA", b"G")),
        [format!(
            "chr1\t3\tg1\tGTA\tG\t87.7\tPASS\tSOMATIC;CLASS=INDEL;CONTIG=t7;TLOD=12.35;NLOD=8.50;TDP=20;TVAF=0.250;CDP=30;CVAF=0.000\t{SAMPLES}"
        )]
    );
    assert_eq!(
        one(EventClass::Del, allele(2, b"GTACG", b"G")),
        [format!(
            "chr1\t3\tg1\tGTACG\tG\t87.7\tPASS\tSOMATIC;CLASS=DEL;SVTYPE=DEL;SVLEN=-4;END=7;CONTIG=t7;TLOD=12.35;NLOD=8.50;TDP=20;TVAF=0.250;CDP=30;CVAF=0.000\t{SAMPLES}"
        )]
    );
    assert_eq!(
        one(EventClass::Ins, allele(2, b"G", b"GTTTT")),
        [format!(
            "chr1\t3\tg1\tG\tGTTTT\t87.7\tPASS\tSOMATIC;CLASS=INS;SVTYPE=INS;SVLEN=4;END=3;CONTIG=t7;TLOD=12.35;NLOD=8.50;TDP=20;TVAF=0.250;CDP=30;CVAF=0.000\t{SAMPLES}"
        )]
    );
}

#[test]
fn symbolic_alleles_begin_after_their_anchor() {
    //                                 1234567890123456789012345
    let genome = reference(&[("chr1", b"ACGTACGTACGGTTAACCGGTTAAC")]);
    let one = |class, changes: &[Change]| texts(&[event(class, changes.iter().cloned())], &genome);
    // Bases 6 to 15 deleted: 5 is the last base that stays, 16 the first one after the deletion.
    assert_eq!(
        one(EventClass::Del, &[junction([(0, 5, L), (0, 16, R)], b"TT", 0)]),
        [format!(
            "chr1\t5\tg1\tA\t<DEL>\t87.7\tPASS\tSOMATIC;CLASS=DEL;SVTYPE=DEL;SVLEN=-10;SVCLAIM=J;END=15;SVINSSEQ=TT;CONTIG=t7;TLOD=12.35;NLOD=8.50;TDP=20;TVAF=0.250;CDP=30;CVAF=0.000\t{SAMPLES}"
        )]
    );
    // Bases 6 to 15 duplicated.
    assert_eq!(
        one(EventClass::Dup, &[junction([(0, 6, R), (0, 15, L)], b"", 2)]),
        [format!(
            "chr1\t5\tg1\tA\t<DUP>\t87.7\tPASS\tSOMATIC;CLASS=DUP;SVTYPE=DUP;SVLEN=10;SVCLAIM=J;END=15;HOMLEN=2;HOMSEQ=TA;CIPOS=0,2;CONTIG=t7;TLOD=12.35;NLOD=8.50;TDP=20;TVAF=0.250;CDP=30;CVAF=0.000\t{SAMPLES}"
        )]
    );
    // Its junction is stored from the first base leftwards; the inserted bases are between base 15 and base 6.
    let with_bases = one(EventClass::Dup, &[junction([(0, 6, R), (0, 15, L)], b"AAC", 0)]);
    assert!(with_bases[0].contains("SVTYPE=DUP;SVLEN=10;SVCLAIM=J;END=15;SVINSSEQ=GTT;"), "{with_bases:?}");
    // Bases 6 to 15 inverted, given by either of the junctions.
    let inversion = [junction([(0, 5, L), (0, 15, L)], b"", 0), junction([(0, 6, R), (0, 16, R)], b"", 0)];
    let expected = format!(
        "chr1\t5\tg1\tA\t<INV>\t87.7\tPASS\tSOMATIC;CLASS=INV;SVTYPE=INV;SVLEN=10;END=15;CONTIG=t7;TLOD=12.35;NLOD=8.50;TDP=20;TVAF=0.250;CDP=30;CVAF=0.000\t{SAMPLES}"
    );
    assert_eq!(one(EventClass::Inv, &inversion), [expected.as_str()]);
    assert_eq!(one(EventClass::Inv, &[inversion[1].clone(), inversion[0].clone()]), [expected.as_str()]);
}

#[test]
fn a_long_insertion_shows_both_sides_as_the_genome_runs() {
    let genome = reference(&[("chr1", b"ACGTACGTAC")]);
    let novel = |pos: usize, side, sequence: &[u8]| Change::Novel {
        end: Breakend { chrom: 0, pos: pos - 1, side },
        sequence: sequence.to_vec(),
    };
    assert_eq!(
        texts(&[event(EventClass::Ins, [novel(5, L, b"GGGT"), novel(6, R, b"CCCT")])], &genome),
        [format!(
            "chr1\t5\tg1\tA\t<INS>\t87.7\tPASS\tSOMATIC;CLASS=INS;SVTYPE=INS;LEFT_SVINSSEQ=GGGT;RIGHT_SVINSSEQ=AGGG;END=5;CONTIG=t7;TLOD=12.35;NLOD=8.50;TDP=20;TVAF=0.250;CDP=30;CVAF=0.000\t{SAMPLES}"
        )]
    );
}

#[test]
fn an_inserted_element_is_one_record_with_its_copy() {
    let genome = reference(&[("chr1", &b"ACGT".repeat(10)), ("chr2", &b"ACGT".repeat(50))]);
    // Positions 21 to 28 are on both sides of the reverse complement of chr2:31-150, which has a tail of three bases.
    let first = junction([(0, 28, L), (1, 150, L)], b"", 0);
    let last = junction([(0, 21, R), (1, 31, R)], b"TTT", 0);
    let expected = format!(
        "chr1\t20\tg1\tT\t<INS>\t87.7\tPASS\tSOMATIC;CLASS=INS;SVTYPE=INS;SVLEN=131;END=20;INSSOURCE=chr2:31-150:-;CONTIG=t7;TLOD=12.35;NLOD=8.50;TDP=20;TVAF=0.250;CDP=30;CVAF=0.000\t{SAMPLES}"
    );
    let inserted_element = InsertedElement::from_junctions(&first, &last, &genome);
    let insertion = Event { inserted_element, ..event(EventClass::Ins, [first, last]) };
    assert_eq!(texts(&[insertion], &genome), [expected]);
}

#[test]
fn other_loci_of_a_contig_have_names_without_special_characters() {
    let genome = reference(&[("chr1", b"ACGTACGTAC"), ("a;b=c,d%:1", &b"ACGT".repeat(100))]);
    let locus = |chrom, start, forward, matching_bases| OtherLocus {
        chrom,
        range: start..start + 7,
        forward,
        matching_bases,
        alignment_columns: 8,
    };
    let mut divergent = event(EventClass::Snv, [allele(2, b"G", b"T")]);
    divergent.calls[0].genotype.filters = BTreeSet::from([Filter::Divergent]);
    let [record] = &build_vcf_records(&[divergent], &genome)[..] else { panic!("one record") };
    let best = vec![locus(1, 100, false, 7), locus(0, 3, true, 6)];
    let record = VcfRecord { other_loci: OtherLoci { best, num_found: 9 }, ..record.clone() };
    assert_eq!(
        format_vcf_record(&record, &genome, true),
        format!(
            "chr1\t3\tg1\tG\tT\t87.7\tdivergent\tSOMATIC;CLASS=SNV;CONTIG=t7;TLOD=12.35;NLOD=8.50;TDP=20;TVAF=0.250;CDP=30;CVAF=0.000;PARALOGS=a%3Bb%3Dc%2Cd%25:1:101-107:-:0.875,chr1:4-10:+:0.750\t{SAMPLES}"
        )
    );
    let declaration = "##INFO=<ID=PARALOGS,Number=.,Type=String,Description=\"Other loci of the reference that the contig resembles, at most three, best first: sequence:first-last:strand:identity\">\n";
    assert!(header(&genome, &SampleNames::default(), false).contains(declaration));
}

/// The rearrangement of section 5.4 of the specification: sequences 2, 13 and 17 with known bases at its breakends.
fn rearranged() -> (Reference, Vec<Event>) {
    let seq = |len: usize, bases: &[(usize, u8)]| {
        let mut seq = vec![b'N'; len];
        bases.iter().for_each(|&(pos, base)| seq[pos - 1] = base);
        seq
    };
    let two = seq(322_000, &[(321_681, b'G'), (321_682, b'T')]);
    let thirteen = seq(124_000, &[(123_456, b'C'), (123_457, b'A')]);
    let seventeen = seq(199_000, &[(198_982, b'A'), (198_983, b'C')]);
    let genome = reference(&[("2", &two), ("13", &thirteen), ("17", &seventeen)]);
    let bnd = |ends, inserted: &[u8]| event(EventClass::Bnd, [junction(ends, inserted, 0)]);
    let events = vec![
        bnd([(0, 321_681, L), (2, 198_982, L)], b""),
        bnd([(0, 321_682, R), (1, 123_456, L)], b"AGTT"),
        bnd([(1, 123_457, R), (2, 198_983, R)], b""),
    ];
    (genome, events)
}

#[test]
fn breakends_point_as_in_the_specification() {
    let (genome, events) = rearranged();
    let line = |place: &str, id: &str, alleles: &str, mate: &str, inserted: &str| {
        let event = &id[..2];
        format!(
            "{place}\t{id}\t{alleles}\t87.7\tPASS\tSOMATIC;CLASS=BND;SVTYPE=BND;MATEID={mate};EVENT={event}{inserted};CONTIG=t7;TLOD=12.35;NLOD=8.50;TDP=20;TVAF=0.250;CDP=30;CVAF=0.000\t{SAMPLES}"
        )
    };
    // bnd_W and bnd_V, bnd_U and bnd_X, bnd_Y and bnd_Z of the example. There the ALT of bnd_V is
    // ]13:123456]AGTNNNNNCAT: the inserted bases are read from its mate to it on the strand of bnd_V. Here they are
    // in INFO.
    assert_eq!(
        texts(&events, &genome),
        [
            line("2\t321681", "g1_1a", "G\tG]17:198982]", "g1_1b", ""),
            line("2\t321682", "g2_1a", "T\t]13:123456]T", "g2_1b", ";SVINSSEQ=AACT"),
            line("13\t123456", "g2_1b", "C\tC[2:321682[", "g2_1a", ";SVINSSEQ=AACT"),
            line("13\t123457", "g3_1a", "A\t[17:198983[A", "g3_1b", ""),
            line("17\t198982", "g1_1b", "A\tA]2:321681]", "g1_1a", ""),
            line("17\t198983", "g3_1b", "C\t[13:123457[C", "g3_1a", ""),
        ]
    );
}

#[test]
fn both_junctions_of_an_event_share_its_name() {
    let genome = reference(&[("a", &[b'A'; 500]), ("b", &[b'C'; 500])]);
    let changes = [junction([(0, 100, L), (1, 200, R)], b"", 0), junction([(0, 101, R), (1, 300, L)], b"", 0)];
    let texts = texts(&[event(EventClass::Bnd, changes)], &genome);
    assert_eq!(texts.len(), 4);
    assert!(texts.iter().all(|t| t.contains(";EVENT=g1;")));
    let ids: BTreeSet<&str> = texts.iter().filter_map(|t| t.split('\t').nth(2)).collect();
    assert_eq!(ids, BTreeSet::from(["g1_1a", "g1_1b", "g1_2a", "g1_2b"]));
}

#[test]
fn reasons_and_germline_genotypes_show() {
    let genome = reference(&[("chr1", b"ACGTACGTAC")]);
    let mut germline = event(EventClass::Snv, [allele(2, b"G", b"T")]);
    germline.calls[0].genotype.filters = BTreeSet::from([Filter::Germline, Filter::FewReads]);
    let text = &texts(&[germline], &genome)[0];
    let columns: Vec<&str> = text.split('\t').collect();
    assert_eq!(
        (columns[6], columns[9], columns[10]),
        ("few_reads;germline", "0/1:30,0:30:0.000:16,0:14,0:14,16,0,0", "0/1:15,5:20:0.250:8,2:7,3:7,8,3,2")
    );
}

#[test]
fn records_on_one_haplotype_share_a_phase_set() {
    let genome = reference(&[("chr1", b"ACGTACGTAC")]);
    let in_set = |event: Event| Event { phase_set: Some(2), ..event };
    let events = [
        in_set(event(EventClass::Mnv, [allele(2, b"GT", b"TA")])),
        event(EventClass::Snv, [allele(5, b"C", b"G")]),
        in_set(event(EventClass::Indel, [allele(6, b"GT", b"G")])),
    ];
    let phased =
        "GT:AD:DP:AF:F1R2:F2R1:SB:PS\t0/0:30,0:30:0.000:16,0:14,0:14,16,0,0:.\t0|1:15,5:20:0.250:8,2:7,3:7,8,3,2:3";
    assert_eq!(
        texts(&events, &genome),
        [
            format!(
                "chr1\t3\tg1\tGT\tTA\t87.7\tPASS\tSOMATIC;CLASS=MNV;CONTIG=t7;TLOD=12.35;NLOD=8.50;TDP=20;TVAF=0.250;CDP=30;CVAF=0.000\t{phased}"
            ),
            format!(
                "chr1\t6\tg2\tC\tG\t87.7\tPASS\tSOMATIC;CLASS=SNV;CONTIG=t7;TLOD=12.35;NLOD=8.50;TDP=20;TVAF=0.250;CDP=30;CVAF=0.000\t{SAMPLES}"
            ),
            format!(
                "chr1\t7\tg3\tGT\tG\t87.7\tPASS\tSOMATIC;CLASS=INDEL;CONTIG=t7;TLOD=12.35;NLOD=8.50;TDP=20;TVAF=0.250;CDP=30;CVAF=0.000\t{phased}"
            ),
        ]
    );
}

#[test]
fn lines_come_by_place() {
    let mut rng = Rng(61);
    let genome = reference(&[("a", &rng.sequence(1000))]);
    let mut events: Vec<Event> = (0..50)
        .map(|_| {
            let at = rng.within(0..1000);
            let base = genome.contigs[0].seq[at];
            event(EventClass::Snv, [allele(at, &[base], &[rng.another(base)])])
        })
        .collect();
    rng.shuffle(&mut events);
    let sorted = build_vcf_records(&events, &genome);
    assert!(sorted.is_sorted_by_key(|l| (l.chrom, l.pos)));
    assert_eq!(sorted.len(), 50);
}

#[test]
fn every_word_used_is_described_in_the_header() {
    let (genome, _) = rearranged();
    let header = header(&genome, &SampleNames::default(), false);
    assert!(header.starts_with("##fileformat=VCFv4.3\n"));
    assert!(header.contains("##contig=<ID=13,length=124000,"));
    assert!(header.ends_with("#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tNORMAL\tTUMOR\n"));
    for (_, name, _) in Filter::ALL_FILTERS {
        assert!(header.contains(&format!("##FILTER=<ID={name},")), "{name}");
    }
    for text in texts(&every_class(&genome), &genome) {
        let columns: Vec<&str> = text.split('\t').collect();
        assert_eq!(columns.len(), 11);
        for key in columns[7].split(';').filter_map(|i| i.split('=').next()) {
            assert!(header.contains(&format!("##INFO=<ID={key},")), "{key}");
        }
        for key in columns[8].split(':') {
            assert!(header.contains(&format!("##FORMAT=<ID={key},")), "{key}");
        }
        if let Some(symbol) = columns[4].strip_prefix('<').and_then(|a| a.strip_suffix('>')) {
            assert!(header.contains(&format!("##ALT=<ID={symbol},")), "{symbol}");
        }
    }
}

/// One event of each kind, on the first sequence and between the first two.
fn every_class(genome: &Reference) -> Vec<Event> {
    let bases = |from: usize, to: usize| genome.contigs[0].seq[from..to].to_vec();
    let another = |at: usize| Rng(at as u64).another(genome.contigs[0].seq[at]);
    let grown = [bases(200, 201), Rng(5).sequence(70)].concat();
    let end = |pos, side| Breakend { chrom: 0, pos, side };
    vec![
        event(EventClass::Snv, [allele(100, &bases(100, 101), &[another(100)])]),
        Event {
            phase_set: Some(120),
            ..event(EventClass::Mnv, [allele(120, &bases(120, 122), &[another(120), another(121)])])
        },
        Event { phase_set: Some(120), ..event(EventClass::Indel, [allele(150, &bases(150, 155), &bases(150, 151))]) },
        event(EventClass::Ins, [allele(200, &bases(200, 201), &grown)]),
        event(EventClass::Del, [allele(300, &bases(300, 381), &bases(300, 301))]),
        event(EventClass::Del, [junction([(0, 400, L), (0, 600, R)], b"ACG", 0)]),
        event(EventClass::Dup, [junction([(0, 620, R), (0, 690, L)], b"", 1)]),
        event(
            EventClass::Inv,
            [junction([(0, 700, L), (0, 800, L)], b"", 0), junction([(0, 701, R), (0, 801, R)], b"", 0)],
        ),
        event(
            EventClass::Ins,
            [
                Change::Novel { end: end(850, L), sequence: Rng(6).sequence(80) },
                Change::Novel { end: end(851, R), sequence: Rng(7).sequence(80) },
            ],
        ),
        event(EventClass::Bnd, [junction([(0, 900, L), (1, 300, L)], b"ACGT", 0)]),
    ]
}

#[test]
fn bcftools_accepts_every_class() {
    if Command::new("bcftools").arg("--version").output().is_err() {
        // Written past the output capture of passing tests.
        writeln!(std::io::stderr(), "skipped: bcftools_accepts_every_class: bcftools is not installed")
            .expect("stderr");
        return;
    }
    let mut rng = Rng(62);
    let genome = reference(&[("a", &rng.sequence(2000)), ("b", &rng.sequence(2000))]);
    let events = every_class(&genome);
    let data = texts(&events, &genome);
    let folder = tempfile::tempdir().unwrap();
    let (vcf, fasta) = (folder.path().join("calls.vcf"), folder.path().join("genome.fa"));
    let body: String = data.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&vcf, header(&genome, &SampleNames::default(), false) + &body).unwrap();
    genome.write_fasta_file(&fasta).unwrap();
    let run = |args: &[&str]| {
        let out = Command::new("bcftools").args(args).arg(&vcf).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "{args:?}: {said}");
        assert!(!said.contains("[W::") && !said.contains("[E::") && !said.contains("Warning"), "{args:?}: {said}");
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let viewed = run(&["view", "-H"]);
    assert_eq!(viewed.lines().count(), data.len());
    assert_eq!(run(&["view", "-H", "-f", "PASS"]).lines().count(), data.len());
    let sets = run(&["query", "-f", "[%POS %GT %PS\\n]"]);
    let sets: Vec<&str> = sets.lines().filter(|l| l.starts_with("121 ") || l.starts_with("151 ")).collect();
    assert_eq!(sets, ["121 0/0 .", "121 0|1 121", "151 0/0 .", "151 0|1 121"]);
    run(&["stats"]);
    let normalised = run(&["norm", "--check-ref", "e", "-f", fasta.to_str().unwrap()]);
    assert_eq!(normalised.lines().filter(|l| !l.starts_with('#')).count(), data.len());
}

#[test]
fn several_tumours_have_a_column_each() {
    let (genome, _) = rearranged();
    let samples = SampleNames::from_tumour_names([Some("relapse".to_owned()), None, None]);
    assert_eq!(samples.names(), ["NORMAL", "relapse", "TUMOR_2", "TUMOR_3"]);
    assert_eq!(
        [0, 1, 3].map(|sample| samples.name_in_messages(sample)),
        ["normal", "tumour relapse", "tumour TUMOR_3"]
    );
    let header = header(&genome, &samples, false);
    assert!(header.ends_with("FORMAT\tNORMAL\trelapse\tTUMOR_2\tTUMOR_3\n"));
    assert!(header.contains("##INFO=<ID=SHARED,Number=1,Type=Integer,"));
    let base = genome.contigs[0].seq[500];
    let mut event = event(EventClass::Snv, [allele(500, &[base], &[Rng(3).another(base)])]);
    let own = |reference, alternative, has| TumourSupport {
        support: AlleleSupport { reference, alternative, ..AlleleSupport::default() },
        has,
    };
    event.calls[0].genotype.tumours = vec![own(38, 2, true), own(28, 12, true), own(40, 0, false)];
    let columns = |event: &Event| {
        let line = texts(std::slice::from_ref(event), &genome).remove(0);
        let columns: Vec<String> = line.split('\t').map(str::to_owned).collect();
        assert!(columns[7].ends_with(";SHARED=2"), "{line}");
        columns[8..].to_vec()
    };
    let whole = [
        "GT:AD:DP:AF:F1R2:F2R1:SB",
        "0/0:30,0:30:0.000:16,0:14,0:14,16,0,0",
        "0/1:38,2:40:0.050:0,0:38,2:0,38,0,2",
        "0/1:28,12:40:0.300:0,0:28,12:0,28,0,12",
        "0/0:40,0:40:0.000:0,0:40,0:0,40,0,0",
    ];
    assert_eq!(columns(&event), whole);
    event.phase_set = Some(99);
    let phased = columns(&event);
    assert_eq!(phased[0], "GT:AD:DP:AF:F1R2:F2R1:SB:PS");
    assert_eq!(phased[3..], ["0|1:28,12:40:0.300:0,0:28,12:0,28,0,12:100", "0/0:40,0:40:0.000:0,0:40,0:0,40,0,0:."]);
}

#[test]
fn homology_is_spelled_where_both_ends_show_it() {
    //                                 12345678901234567890
    let genome = reference(&[("chr1", b"AAAACGTTTTTTTTCGGGGG")]);
    let ends = [(0, 4, L), (0, 15, R)];
    let said = |class| texts(&[event(class, [junction(ends, b"", 2)])], &genome);
    assert!(said(EventClass::Del)[0].contains(";HOMLEN=2;HOMSEQ=CG;CIPOS=0,2;"));
    let joined = said(EventClass::Bnd);
    assert!(joined.len() == 2 && joined.iter().all(|line| line.contains(";HOMLEN=2;HOMSEQ=CG;CONTIG")), "{joined:?}");
    let other = texts(&[event(EventClass::Del, [junction([(0, 4, L), (0, 14, R)], b"", 2)])], &genome);
    assert!(other[0].contains(";HOMLEN=2;CIPOS=0,2;"), "{other:?}");
}

#[test]
fn names_of_screened_sequences_are_percent_encoded() {
    let genome = reference(&[("chr1", b"AAAACGTTTTTTTTCGGGGG")]);
    let inserted = event(EventClass::Ins, [junction([(0, 4, L), (0, 5, R)], b"GATTACA", 0)]);
    let mut records = build_vcf_records(&[inserted], &genome);
    records[0].screen = Some(("HPV;16,type=a".to_owned(), 812));
    let line = format_vcf_record(&records[0], &genome, true);
    assert!(line.contains(";SCREEN=HPV%3B16%2Ctype%3Da:812\t"), "{line}");
}

#[test]
fn header_names_samples_as_mutect2_does() {
    let (genome, _) = rearranged();
    let samples = SampleNames::from_normal_and_tumour_names(Some("blood".to_owned()), [Some("met".to_owned()), None]);
    let header = header(&genome, &samples, true);
    let lines = "##normal_sample=blood\n##tumor_sample=met\n##tumor_sample=TUMOR_2\n#CHROM\t";
    assert!(header.contains(lines), "{header}");
    assert!(header.contains("##INFO=<ID=SCREEN,"));
}

#[test]
fn tables_have_what_passes_each_once() {
    let mut rng = Rng(62);
    let genome = reference(&[("a", &rng.sequence(2000)), ("b", &rng.sequence(2000))]);
    let mut events = every_class(&genome);
    let samples = SampleNames::default();
    let all = build_vcf_records(&events, &genome);
    let (small, structural) = (
        build_maf_table(&all, &genome, &samples, MafGeneAnnotation::Unknown, &[]),
        build_bedpe_table(&all, &genome, &SampleNames::default()),
    );
    // SNV, MNV, indel, and INS and DEL with known bases; the latter two are structural as well.
    assert_eq!((small.num_rows, small.skipped_records), (5, 6));
    let rows: Vec<Vec<&str>> =
        small.text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect()).collect();
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    let column = |name: &str| rows[0].iter().position(|own| *own == name).expect("a column");
    let of = |row: usize, names: &[&str]| names.iter().map(|name| rows[row][column(name)]).collect::<Vec<_>>();
    assert_eq!(of(1, &["Chromosome", "Start_Position", "End_Position", "Variant_Type"]), ["a", "101", "101", "SNP"]);
    assert_eq!(of(1, &["Tumor_Sample_Barcode", "Matched_Norm_Sample_Barcode"]), ["TUMOR", "NORMAL"]);
    assert_eq!(
        of(1, &["t_depth", "t_ref_count", "t_alt_count", "n_depth", "n_alt_count"]),
        ["20", "15", "5", "30", "0"]
    );
    assert_eq!(
        of(3, &["Start_Position", "End_Position", "Variant_Type", "Tumor_Seq_Allele2"]),
        ["152", "155", "DEL", "-"]
    );
    // INS and DEL with known bases, DEL, DUP, both junctions of INV, <INS>, BND.
    assert_eq!((structural.num_rows, structural.skipped_records), (8, 3));
    let lines: Vec<&str> = structural.text.lines().collect();
    assert!(lines.iter().all(|line| line.split('\t').count() == 17));
    let begins = |start: &str| lines.iter().any(|line| line.starts_with(start));
    assert!(begins("a\t399\t400\ta\t599\t600\tg6\t87.7\t+\t-\tDEL\t0\tACG\t15\t5\t30\t0"), "{}", structural.text);
    assert!(begins("a\t619\t620\ta\t689\t690\tg7\t87.7\t-\t+\tDUP\t1\t."));
    assert!(
        begins("a\t699\t700\ta\t799\t800\tg8\t87.7\t+\t+\tINV")
            && begins("a\t700\t701\ta\t800\t801\tg8\t87.7\t-\t-\tINV")
    );
    assert!(begins("a\t899\t900\tb\t299\t300\tg10_1a\t87.7\t+\t+\tBND\t0\tACGT"));
    // Calls that do not pass are in neither table.
    events.iter_mut().flat_map(|event| &mut event.calls).for_each(|call| {
        call.genotype.filters.insert(Filter::Repeat);
    });
    let none = build_vcf_records(&events, &genome);
    assert_eq!(
        (
            build_maf_table(&none, &genome, &samples, MafGeneAnnotation::Unknown, &[]).num_rows,
            build_bedpe_table(&none, &genome, &SampleNames::default()).num_rows
        ),
        (0, 0)
    );
}
