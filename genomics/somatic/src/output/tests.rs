use std::fs;
use std::path::PathBuf;
use std::process::Command;

use genuma_reads::dna::reverse_complement;
use genuma_reads::fasta::Contig;

use super::*;
use crate::candidate_kmer::KmerDepths;
use crate::change::{Breakend, RetainedSide};
use crate::event::{Event, EventClass, event_class_of_change};
use crate::genotype::{ErrorFrequency, GenotypingResult};
use crate::ledger::Ledger;
use crate::locus_ranges::LocusRanges;
use crate::packed;
use crate::provenance::{Provenance, ReferenceIdentity};
use crate::read_placement::{MAX_CANDIDATE_OFFSETS_PER_READ, PlacedRead};
use crate::recruit::RecruitedPair;
use crate::sample_names::SampleNames;
use crate::sequencing_errors::{BaseErrorCounts, ErrorModel};
use crate::slippage::SlippageModel;
use crate::vcf_record;

fn random_bases(n: usize, seed: u64) -> Vec<u8> {
    let mut x = seed;
    let mut next = || {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        b"ACGT"[(x >> 62) as usize]
    };
    (0..n).map(|_| next()).collect()
}

fn genome() -> Reference {
    let contig = |name: &str, n, seed| Contig { name: name.into(), seq: random_bases(n, seed) };
    Reference::from_contigs(vec![contig("chr1", 50_000, 1), contig("empty", 1_000, 2), contig("chr2", 40_000, 3)])
}

fn call(change: Change, supporting: &[u32]) -> VariantCall {
    let genotype = GenotypingResult { quality: 50.0, ..GenotypingResult::default() };
    let supporting = supporting.to_vec();
    VariantCall {
        change,
        error_frequency: ErrorFrequency::Common,
        genotype,
        population_frequency: Default::default(),
        panel_normals: None,
        is_fold_back: false,
        locus: 0,
        change_index: 0,
        supporting_pairs: supporting,
        phased_changes: Vec::new(),
    }
}

fn allele(genome: &Reference, chrom: usize, pos: usize, deleted: usize, alternative: &[u8]) -> Change {
    let reference = genome.contigs[chrom].seq[pos..pos + 1 + deleted].to_vec();
    Change::Allele { chrom, pos, alternative: [&reference[..1], alternative].concat(), reference }
}

fn junction(ends: [(usize, usize, RetainedSide); 2], inserted: &[u8]) -> Change {
    let ends = ends.map(|(chrom, pos, side)| Breakend { chrom, pos, side });
    Change::Junction { ends, inserted: inserted.to_vec(), homology: 2 }
}

/// One event of every kind, and many substitutions.
fn events(genome: &Reference) -> Vec<Event> {
    use RetainedSide::{Left, Right};
    let base = genome.contigs[0].seq[99];
    let other = if base == b'A' { b'C' } else { b'A' };
    let snv = Change::Allele { chrom: 0, pos: 99, reference: vec![base], alternative: vec![other] };
    let novel =
        |side, pos| Change::Novel { end: Breakend { chrom: 0, pos, side }, sequence: b"GATTACAGATTACA".to_vec() };
    let mut changes = vec![
        vec![snv],
        vec![allele(genome, 0, 200, 3, b"")],
        vec![allele(genome, 0, 300, 0, b"GATTACA")],
        vec![allele(genome, 2, 400, 80, b"")],
        vec![junction([(0, 5_000, Left), (0, 9_000, Right)], b"")],
        vec![junction([(0, 12_000, Right), (0, 13_000, Left)], b"AC")],
        vec![junction([(0, 20_000, Left), (2, 7_000, Left)], b"")],
        vec![novel(Left, 30_000), novel(Right, 30_001)],
    ];
    changes.extend((0..800).map(|i| {
        let (pos, r) = (1_000 + 40 * i, genome.contigs[2].seq[1_000 + 40 * i]);
        let alternative = vec![if r == b'G' { b'T' } else { b'G' }];
        vec![Change::Allele { chrom: 2, pos, reference: vec![r], alternative }]
    }));
    let event = |changes: Vec<Change>| Event {
        class: if changes.len() == 2 { EventClass::Ins } else { event_class_of_change(&changes[0]) },
        calls: changes.into_iter().map(|c| call(c, &[])).collect(),
        inserted_element: None,
        phase_set: None,
    };
    changes.into_iter().map(event).collect()
}

/// Output of a program that must succeed; `None` if the program is not installed.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let Ok(out) = Command::new(program).args(arguments).output() else {
        println!("skipped: {program} is not installed");
        return None;
    };
    assert!(out.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    Some(String::from_utf8(out.stdout).unwrap())
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Adds files to a set, and publishes the set.
fn published(put: impl FnOnce(&mut AtomicFileSet) -> Result<(), Error>) -> Result<(), Error> {
    let mut set = AtomicFileSet::default();
    put(&mut set)?;
    Ok(set.publish_all()?)
}

struct Written {
    folder: tempfile::TempDir,
    genome: Reference,
    records: Vec<VcfRecord>,
}

fn header(genome: &Reference) -> String {
    vcf::format_vcf_header(&vcf::VcfHeaderContent {
        genome,
        samples: &SampleNames::default(),
        reference: &ReferenceIdentity::default(),
        settings: "genuma call",
        provenance: &Provenance::default(),
        has_screen: false,
    })
}

impl Written {
    fn new() -> Written {
        let (folder, genome) = (tempfile::tempdir().unwrap(), genome());
        let records = vcf_record::build_vcf_records(&events(&genome), &genome);
        let written = Written { folder, genome, records };
        written.write(&written.path("somatic.vcf.gz")).unwrap();
        written
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, path: &Path) -> Result<(), Error> {
        let header = header(&self.genome);
        published(|set| write_vcf(path, &header, &self.records, &self.genome, true, set))
    }
}

#[test]
fn the_index_finds_what_filtering_finds() {
    let written = Written::new();
    let path = written.path("somatic.vcf.gz");
    let path = path.to_str().unwrap();
    let Some(all) = output("bcftools", &["view", "-H", path]) else { return };
    assert_eq!(all.lines().count(), written.records.len());
    let regions = [("chr1", 1, 50_000), ("chr1", 202, 204), ("chr1", 6_000, 6_001), ("chr1", 99, 99)];
    for (chrom, from, to) in regions.into_iter().chain([("chr2", 7_000, 9_123), ("empty", 1, 1_000)]) {
        let expected: Vec<&str> = written
            .records
            .iter()
            .filter(|l| written.genome.contigs[l.chrom].name == chrom && l.pos <= to && l.end >= from)
            .map(|l| &*l.id)
            .collect();
        let region = format!("{chrom}:{from}-{to}");
        let ids =
            |text: String| -> Vec<String> { text.lines().map(|l| l.split('\t').nth(2).unwrap().to_owned()).collect() };
        assert_eq!(ids(output("bcftools", &["view", "-H", "-r", &region, path]).unwrap()), expected, "{region}");
        if let Some(found) = output("tabix", &[path, &region]) {
            assert_eq!(ids(found), expected, "{region}");
        }
    }
    if let Some(chroms) = output("tabix", &["-l", path]) {
        assert_eq!(chroms, "chr1\nchr2\n");
    }
    assert_eq!(output("bcftools", &["index", "-n", path]).unwrap(), format!("{}\n", written.records.len()));
}

#[test]
fn alleles_agree_with_the_reference() {
    let written = Written::new();
    let fasta = written.path("genome.fa");
    written.genome.write_fasta_file(&fasta).unwrap();
    let path = written.path("somatic.vcf.gz");
    let arguments = ["norm", "--check-ref", "e", "-f", fasta.to_str().unwrap(), path.to_str().unwrap()];
    let Some(normalised) = output("bcftools", &arguments) else { return };
    let lines: Vec<&str> = normalised.lines().filter(|l| !l.starts_with('#')).collect();
    assert_eq!(lines.len(), written.records.len());
    for class in ["SNV", "INDEL", "DEL", "INS", "DUP", "BND"] {
        assert!(lines.iter().any(|l| l.contains(&format!("CLASS={class};"))), "{class}");
    }
}

#[test]
fn same_bytes_again_and_no_calls() {
    let written = Written::new();
    let again = written.path("again.vcf.gz");
    written.write(&again).unwrap();
    for suffix in ["", ".tbi"] {
        let read = |name: &str| fs::read(written.path(&format!("{name}.vcf.gz{suffix}"))).unwrap();
        assert!(read("somatic") == read("again"), "{suffix}");
    }
    let header = header(&written.genome);
    published(|set| write_vcf(&again, &header, &[], &written.genome, true, set)).unwrap();
    let Some(none) = output("bcftools", &["view", "-H", "-r", "chr1", again.to_str().unwrap()]) else {
        return;
    };
    assert!(none.is_empty());
}

#[test]
fn refusals_leave_nothing() {
    let written = Written::new();
    let path = written.path("no/such/somatic.vcf.gz");
    let refused = format!("{}: cannot write: No such file or directory (os error 2)", path.display());
    assert_eq!(written.write(&path).unwrap_err().to_string(), refused);

    let disk = tempfile::tempdir().unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=8k", "genuma-test"])
        .arg(disk.path())
        .output()
        .is_ok_and(|o| o.status.success());
    if !mounted {
        println!("skipped: no tmpfs can be mounted here");
        return;
    }
    let path = disk.path().join("x");
    let full = [written.write(&path), published(|set| write_json(&path, &vec![1; 100_000], set))]
        .map(|r| r.unwrap_err().to_string());
    let left = names(disk.path());
    Command::new("umount").arg(disk.path()).status().unwrap();
    let expected = format!("{}: cannot write: No space left on device (os error 28)", path.display());
    assert_eq!(full, [&*expected; 2]);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn json_is_indented_and_ends_its_last_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("summary.json");
    published(|set| write_json(&path, &("a", [1, 2]), set)).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "[\n  \"a\",\n  [\n    1,\n    2\n  ]\n]\n");
}

/// A call of a deletion of 20 bp at chr1:1001-1020, supported by pairs 1 and 2 of the tumour and pair 0 of the
/// normal.
fn finished(on_reference: bool) -> FinishedCall {
    let genome = genome();
    let chr1 = &genome.contigs[0].seq;
    let contig = [&chr1[850..1_000], &chr1[1_020..1_170]].concat();
    let change = allele(&genome, 0, 999, 20, b"");
    let finding = ContigChange {
        change: change.clone(),
        contig_range: 350..350,
        left_normal: chr1[650..1_370].to_vec(),
        right_normal: chr1[650..1_370].to_vec(),
        right_shift: 20,
        mapq: 60,
    };
    let compared = AlignedContig {
        seq: [&chr1[650..850], &contig, &chr1[1_170..1_370]].concat(),
        novel: vec![false; 700],
        quality_sums: vec![0; 700],
        assembled: 200..500,
        num_reads: 3,
        changes: vec![finding],
        diagonals: [None; 2],
        family_alleles: Vec::new(),
        other_loci: Default::default(),
        explanations: Vec::new(),
    };
    let pair = |i: u8| {
        let from = usize::from(10 * i);
        let seqs = [contig[from..from + 150].to_vec(), reverse_complement(&chr1[1_200 + from..1_350 + from])];
        let mates = seqs.map(|seq| packed::OwnedRead { qual: vec![30; seq.len()], seq });
        RecruitedPair { name: format!("p{i}").into(), sample: u8::from(i > 1), mates, id: i.into(), contigs: vec![0] }
    };
    let recruit =
        |pair, mate| PlacedRead { pair, mate, forward: mate == 0, offsets: [0; MAX_CANDIDATE_OFFSETS_PER_READ] };
    let event = |supporting: &[u32]| Event {
        class: EventClass::Indel,
        calls: vec![call(change.clone(), supporting)],
        inserted_element: None,
        phase_set: None,
    };
    let pairs: Vec<RecruitedPair> = (0..5).map(pair).collect();
    let mut locus = Locus::from_contig_without_reads(compared, [1; 2]);
    locus.set_placed_reads(vec![recruit(0, 0), recruit(2, 0), recruit(2, 1), recruit(3, 0)], &pairs);
    FinishedCall {
        libraries: Default::default(),
        known_sequences: Default::default(),
        sample_summaries: Default::default(),
        ranges: LocusRanges::from_pairs_in_memory(vec![locus], pairs),
        events: vec![event(&[3, 2]), event(&[0, 3])],
        samples: SampleNames::default(),
        spectra: vec![vec![]; 2],
        depths: KmerDepths { kmer: vec![1.0; 2], error_share: 0.0 },
        bases: vec![0; 2],
        costs: vec![],
        errors: ErrorModel::from_error_counts_and_slippage(&BaseErrorCounts::default(), SlippageModel::default()),
        ledger: Ledger::default(),
        genotype_mismatch_share: None,
        own_alleles: vec![],
        admixture: Default::default(),
        traces: vec![],
        on_reference,
        targets: None,
        genome,
    }
}

#[test]
fn contigs_stand_beside_their_normal_alleles() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("contigs.fa");
    let with = finished(true);
    published(|set| write_contigs(&path, &with, set)).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let headers =
        |text: &str| -> Vec<String> { text.lines().filter(|l| l.starts_with('>')).map(str::to_owned).collect() };
    let tumour = ">t1 length=300 tumour_pairs=2 normal_pairs=1 changes=chr1:1000";
    assert_eq!(headers(&text), [tumour, ">n1 length=320 normal_of=t1"]);
    let read = Reference::read_fasta_file(&path).unwrap();
    let chr1 = &with.genome.contigs[0].seq;
    assert_eq!(read.contigs[0].seq, with.ranges.loci()[0].contig.seq[200..500]);
    assert_eq!(read.contigs[1].seq, chr1[850..1_170]);
    assert!(text.lines().all(|l| l.starts_with('>') || l.len() <= FASTA_LINE_WIDTH));

    // Without a reference the calls are placed on the normal's contigs.
    let without = finished(false);
    published(|set| write_contigs(&path, &without, set)).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(headers(&text), [tumour, ">chr1 length=50000", ">empty length=1000", ">chr2 length=40000"]);
    assert_eq!(Reference::read_fasta_file(&path).unwrap().contigs[1..], without.genome.contigs[..]);
}

fn means() -> Resources {
    Resources { threads: 2, memory: 1 << 30, scratch: 1 << 30, devices: Default::default() }
}

#[test]
fn supporting_pairs_are_those_of_any_call() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("supporting.bam");
    let mut without = finished(false);
    let portions = collect_supporting_pairs(&mut without, folder.path(), 0, 2).unwrap();
    let all: Vec<SupportingPair> = portions.flat_map(Result::unwrap).collect();
    let ids: Vec<u64> = all.iter().map(|one| one.pair.id).collect();
    assert_eq!(ids, [0, 2, 3]);
    assert!(all.iter().all(|one| one.positions == [(0, 999)] && one.quality == 60));
    published(|set| {
        write_supporting_pairs(
            &path,
            &mut without,
            SupportingBamHeaderContent { provenance: &Provenance::default(), reference: &ReferenceIdentity::default() },
            &means(),
            folder.path(),
            &ProgressCounters::default(),
            set,
        )
    })
    .unwrap();
    assert!(!path.exists());

    let mut finished = finished(true);
    published(|set| {
        write_supporting_pairs(
            &path,
            &mut finished,
            SupportingBamHeaderContent { provenance: &Provenance::default(), reference: &ReferenceIdentity::default() },
            &means(),
            folder.path(),
            &ProgressCounters::default(),
            set,
        )
    })
    .unwrap();
    let Some(sam) = output("samtools", &["view", path.to_str().unwrap(), "chr1"]) else { return };
    let mut found: Vec<[&str; 2]> = sam
        .lines()
        .map(|l| [l.split('\t').next().unwrap(), l.rsplit('\t').find(|t| t.starts_with("RG:")).unwrap()])
        .collect();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found, [["p0", "RG:Z:NORMAL"], ["p2", "RG:Z:TUMOR"], ["p3", "RG:Z:TUMOR"]]);
    assert!(sam.contains("20D"), "{sam}");
}

#[test]
fn portions_begin_where_calls_do() {
    let at = |n: usize| ((n % 3, n * 7919 % 100_000), 300);
    let starts = portion_starts((0..1_000).map(at).collect());
    assert!(starts.windows(2).all(|two| two[0] < two[1]), "{starts:?}");
    assert_eq!(starts.len(), (1_000 * 300_usize).div_ceil(MIN_PORTION_PAIRS / 300 * 300));
    // The pairs of one position are not divided.
    assert_eq!(portion_starts(vec![((0, 5), 1 << 20); 9]), [(0, 0), (0, 5)]);
    assert_eq!(portion_starts(Vec::new()), [(0, 0)]);
}
