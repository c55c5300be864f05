//! Checks BAM files with samtools.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use genuma_align::indexed_file::{IndexedFile, IndexedRecordFormat, RecordReferenceRange};
use genuma_align::scan::ReferenceScan;
use genuma_align::scan_to_bam::{
    BamHeader, BamHeaderProgram, BamReadGroup, HasUnalignedTemplate, SequencedRead, UnalignedTemplate,
    align_and_write_bam,
};
use genuma_reads::dna::reverse_complement;
use genuma_reads::fasta::{Contig, Reference};
use genuma_work::ProgressCounters;
use genuma_work::publish::AtomicFileSet;

/// A small random generator, so that the data never change.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }

    fn bases(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| b"ACGT"[self.below(4)]).collect()
    }
}

struct Pair {
    name: String,
    group: usize,
    mates: [(Vec<u8>, Vec<u8>); 2],
    /// Origin of the pair.
    places: Vec<(usize, usize)>,
}

impl Pair {
    fn template(&self) -> UnalignedTemplate<'_> {
        let mates = [0, 1].map(|m| SequencedRead { seq: &self.mates[m].0, qual: &self.mates[m].1 });
        UnalignedTemplate {
            name: self.name.as_bytes(),
            read_group: self.group,
            mates,
            omits_empty_mate: false,
            expected_positions: &[],
            max_mapq: 0,
            search_genome: true,
        }
    }
}

/// A template as it is.
#[derive(Clone, Copy)]
struct Given<'a>(UnalignedTemplate<'a>);

impl HasUnalignedTemplate for Given<'_> {
    fn template(&self) -> UnalignedTemplate<'_> {
        self.0
    }
}

fn genome(random: &mut Random) -> Reference {
    let mut contigs: Vec<Contig> =
        [("one", 30_000), ("two", 20_000)].map(|(name, n)| Contig { name: name.into(), seq: random.bases(n) }).into();
    contigs[0].seq[5_000..5_050].fill(b'N');
    Reference::from_contigs(contigs)
}

/// Fragments of both contigs with errors and indels; some reads are chimeras, some are random.
fn pairs(genome: &Reference, n: usize, random: &mut Random) -> Vec<Pair> {
    let pair = |i: usize, random: &mut Random| {
        let from = random.below(2);
        let contig = &genome.contigs[from].seq;
        let (size, at) = (200 + random.below(300), random.below(contig.len() - 600));
        let mut fragment = contig[at..at + size].to_vec();
        match i % 10 {
            3 => drop(fragment.drain(40..47)),
            4 => drop(fragment.splice(60..60, *b"GATTACA")),
            5 => {
                // A chimera: the first 80 bases come from the other strand at another position.
                let from = random.below(genome.contigs[1].seq.len() - 80);
                fragment.splice(..80, reverse_complement(&genome.contigs[1].seq[from..from + 80]));
            }
            _ => {}
        }
        if random.below(2) == 1 {
            fragment = reverse_complement(&fragment);
        }
        let mut mates = [fragment[..150].to_vec(), reverse_complement(&fragment)[..150].to_vec()];
        match i % 20 {
            7 => mates[1] = random.bases(150),
            8 => mates = [random.bases(150), random.bases(150)],
            9 => mates[0].truncate(0),
            _ => {}
        }
        let mates = mates.map(|mut seq| {
            for base in &mut seq {
                if random.below(200) == 0 {
                    *base = b"ACGTN"[random.below(5)];
                }
            }
            let qual = seq.iter().map(|_| 2 + random.below(39) as u8).collect();
            (seq, qual)
        });
        Pair { name: format!("pair{i}"), group: i % 2, mates, places: vec![(from, at)] }
    };
    (0..n).map(|i| pair(i, random)).collect()
}

struct Made {
    folder: tempfile::TempDir,
    genome: Reference,
    pairs: Vec<Pair>,
}

impl Made {
    fn new(n: usize) -> Made {
        let folder = tempfile::tempdir().unwrap();
        let mut random = Random(11);
        let genome = genome(&mut random);
        let fasta = folder.path().join("genome.fa");
        genome.write_fasta_file(&fasta).unwrap();
        let pairs = pairs(&genome, n, &mut random);
        Made { folder, genome, pairs }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, path: &Path, threads: usize) -> Result<(), genuma_align::scan_to_bam::Error> {
        self.write_templates(path, &self.pairs.iter().map(Pair::template).collect::<Vec<_>>(), threads)
    }

    fn write_templates(
        &self,
        path: &Path,
        templates: &[UnalignedTemplate<'_>],
        threads: usize,
    ) -> Result<(), genuma_align::scan_to_bam::Error> {
        let groups = [
            BamReadGroup { id: "n", sample: "NORMAL", platform: None },
            BamReadGroup { id: "t", sample: "TUMOR", platform: Some("ILLUMINA") },
        ];
        let program = BamHeaderProgram { name: "genuma", version: "0", command: "genuma call\t--tumor 'a b'" };
        let mut set = AtomicFileSet::default();
        let md5 = ["0123", "4567"].map(str::to_owned);
        let heading = BamHeader { reference: &self.genome, sequence_md5: &md5, read_groups: &groups, program };
        let meter = ProgressCounters::new("the reference");
        let scan = ReferenceScan { genome: &self.genome, regions: None, threads, memory_bytes: 1 << 30, meter: &meter };
        let portion = Ok::<_, genuma_align::scan_to_bam::Error>(templates.iter().copied().map(Given).collect());
        align_and_write_bam(path, &heading, [portion], &scan, usize::MAX, &mut set)?;
        assert_eq!(meter.bytes_done(), meter.bytes_total());
        assert_eq!(meter.bytes_done() > 0, !templates.is_empty());
        set.publish_all().map_err(|e| genuma_align::sort::Error::Output(e.into()).into())
    }
}

/// Output of a program that must succeed; `None` if it is not installed.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Err(_) => {
            println!("skipped: {program} is not installed");
            None
        }
        Ok(out) => {
            let said = String::from_utf8_lossy(&out.stderr).into_owned();
            assert!(out.status.success(), "{program} {arguments:?}: {said}");
            assert!(said.is_empty(), "{program} {arguments:?} said: {said}");
            Some(String::from_utf8(out.stdout).unwrap())
        }
    }
}

/// Fields of the lines of a SAM without header.
fn fields(sam: &str) -> Vec<Vec<&str>> {
    sam.lines().map(|l| l.split('\t').collect()).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

const UNMAPPED: u16 = 0x4;
const REVERSE: u16 = 0x10;
const SUPPLEMENTARY: u16 = 0x800;

#[test]
fn every_read_is_there_as_sequenced() {
    let made = Made::new(1000);
    let path = made.path("x.bam");
    made.write(&path, 2).unwrap();
    let bam = path.to_str().unwrap();
    let Some(sam) = output("samtools", &["view", bam]) else { return };
    output("samtools", &["quickcheck", "-v", bam]).unwrap();

    let mut primary: BTreeMap<(String, bool), usize> = BTreeMap::new();
    let (mut supplementary, mut unmapped, mut gapped) = (0, 0, 0);
    for f in fields(&sam) {
        let flag: u16 = f[1].parse().unwrap();
        let pair = &made.pairs[f[0].strip_prefix("pair").unwrap().parse::<usize>().unwrap()];
        let first = flag & 0x40 != 0;
        assert_ne!(first, flag & 0x80 != 0);
        assert_eq!(flag & !0xbff & !SUPPLEMENTARY, 0);
        assert!(f.contains(&["RG:Z:n", "RG:Z:t"][pair.group]));
        let (mut seq, mut qual) = pair.mates[usize::from(!first)].clone();
        qual.iter_mut().for_each(|q| *q += 33);
        if flag & REVERSE != 0 {
            seq = reverse_complement(&seq);
            qual.reverse();
        }
        gapped += usize::from(f[5].contains(['I', 'D']));
        if flag & SUPPLEMENTARY != 0 {
            supplementary += 1;
            assert!(f[5].contains('H') && !f[5].contains('S'));
            assert!(seq.windows(f[9].len()).any(|w| w == f[9].as_bytes()));
            assert!(f.iter().any(|t| t.starts_with("SA:Z:")));
            continue;
        }
        *primary.entry((f[0].to_owned(), first)).or_default() += 1;
        if seq.is_empty() {
            assert_eq!((f[9], f[10]), ("*", "*"));
        } else {
            assert_eq!((f[9].as_bytes(), f[10].as_bytes()), (&seq[..], &qual[..]));
        }
        if flag & UNMAPPED != 0 {
            unmapped += 1;
            assert_eq!((f[4], f[5]), ("0", "*"));
            // It has the position of its mate, or none if the mate is unmapped, too.
            let mate_unmapped = flag & 0x8 != 0;
            assert_eq!(f[2] == "*", mate_unmapped);
            assert!(mate_unmapped || (f[6] == "=" && f[3] == f[7]));
        }
    }
    assert_eq!(primary.len(), 2000);
    assert!(primary.values().all(|&n| n == 1));
    // Of 20 pairs, 4 reads are random; two pairs in 20 have chimeras, within a read or between the mates.
    assert_eq!(unmapped, 200);
    assert!((60..=200).contains(&supplementary), "{supplementary}");
    assert!(gapped > 100, "{gapped}");
}

#[test]
fn samtools_agrees_on_order_mates_and_distances() {
    let made = Made::new(1000);
    let path = made.path("x.bam");
    made.write(&path, 1).unwrap();
    let bam = path.to_str().unwrap();
    let Some(sam) = output("samtools", &["view", bam]) else { return };

    // Sorting a sorted file changes nothing, ties included.
    assert!(output("samtools", &["sort", "--no-PG", "-O", "sam", bam]).unwrap().ends_with(&sam));

    // calmd corrects NM and prints a message that must not be counted.
    let out = Command::new("samtools")
        .args(["calmd", "--no-PG", bam, made.path("genome.fa").to_str().unwrap()])
        .output()
        .unwrap();
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.success() && !said.contains("different NM"), "{said}");
    let distances = |sam: &str| {
        let of = |l: &str| l.split('\t').find(|t| t.starts_with("NM:i:")).map(str::to_owned);
        sam.lines().filter(|l| !l.starts_with('@')).map(of).collect::<Vec<_>>()
    };
    assert_eq!(distances(&sam), distances(&String::from_utf8(out.stdout).unwrap()));

    // Mates as fixmate finds them, except two of its peculiarities: an MC of `*` for an unmapped mate, and a template
    // length of one base less between mates on one strand (Picard and bwa count both ends).
    let (collated, fixed) = (made.path("n.bam"), made.path("f.bam"));
    let (collated, fixed) = (collated.to_str().unwrap(), fixed.to_str().unwrap());
    output("samtools", &["sort", "-n", "-o", collated, bam]);
    output("samtools", &["fixmate", "-p", "-m", collated, fixed]);
    let fixed = output("samtools", &["view", fixed]).unwrap();
    let mates = |sam: &str| {
        let mut all: Vec<String> = fields(sam)
            .iter()
            .map(|f| {
                let flag: u16 = f[1].parse().unwrap();
                let facing = (flag & REVERSE != 0) != (flag & 0x20 != 0);
                let mate_cigar = f.iter().find(|t| t.starts_with("MC:") && **t != "MC:Z:*").unwrap_or(&"");
                format!("{} {} {mate_cigar}", f[..8].join(" "), if facing { f[8] } else { "" })
            })
            .collect();
        all.sort();
        all
    };
    for (ours, theirs) in mates(&sam).iter().zip(mates(&fixed)) {
        assert_eq!(*ours, theirs);
    }

    let stats = output("samtools", &["stats", bam]).unwrap();
    let count = |what: &str| {
        let line = stats.lines().find(|l| l.starts_with(&format!("SN\t{what}:"))).unwrap();
        line.split('\t').nth(2).unwrap().parse::<usize>().unwrap()
    };
    // samtools omits the 50 reads without bases.
    assert_eq!((count("sequences"), count("reads unmapped"), count("is sorted")), (1950, 150, 1));
    assert!(count("reads properly paired") > 1400);
}

#[test]
fn index_finds_what_filtering_finds() {
    let made = Made::new(1000);
    let path = made.path("x.bam");
    made.write(&path, 1).unwrap();
    let bam = path.to_str().unwrap();
    let Some(all) = output("samtools", &["view", bam]) else { return };
    let all = fields(&all);
    let span = |cigar: &str| {
        let mut span = 0;
        let mut n = 0;
        for c in cigar.bytes() {
            if c.is_ascii_digit() {
                n = 10 * n + usize::from(c - b'0');
            } else {
                span += if b"MDN=X".contains(&c) { n } else { 0 };
                n = 0;
            }
        }
        span.max(1)
    };
    for (chrom, from, to) in [("one", 1, 30_000), ("one", 16_300, 16_500), ("two", 1, 1), ("two", 9_000, 12_345)] {
        let expected: Vec<String> = all
            .iter()
            .filter(|f| {
                let start: usize = f[3].parse().unwrap();
                f[2] == chrom && start <= to && start + span(f[5]) > from
            })
            .map(|f| f.join("\t"))
            .collect();
        let found = output("samtools", &["view", bam, &format!("{chrom}:{from}-{to}")]).unwrap();
        assert_eq!(found.lines().collect::<Vec<_>>(), expected);
    }
    let nowhere = output("samtools", &["view", bam, "*"]).unwrap();
    assert_eq!(nowhere.lines().count(), all.iter().filter(|f| f[2] == "*").count());
    let counted = output("samtools", &["idxstats", bam]).unwrap();
    let total: usize = fields(&counted).iter().flat_map(|f| f[2..].iter()).map(|n| n.parse::<usize>().unwrap()).sum();
    assert_eq!(total, all.len());
}

#[test]
fn threads_do_not_show() {
    let made = Made::new(1500);
    let written = [1, 2, 5].map(|threads| {
        let path = made.path(&format!("{threads}.bam"));
        made.write(&path, threads).unwrap();
        (fs::read(&path).unwrap(), fs::read(made.path(&format!("{threads}.bam.bai"))).unwrap())
    });
    assert!(written[0] == written[1] && written[0] == written[2]);
}

/// Reads with known positions align where a scan of the whole reference aligns them, with at most the mapping quality
/// of these positions; wrong positions do no harm.
#[test]
fn places_are_looked_at_first() {
    let made = Made::new(1000);
    let wrong = [(1, 19_990)];
    let known = |pair: &Pair, i: usize| if i.is_multiple_of(7) { wrong.to_vec() } else { pair.places.clone() };
    let places: Vec<_> = made.pairs.iter().enumerate().map(|(i, pair)| known(pair, i)).collect();
    let templates: Vec<UnalignedTemplate<'_>> = made
        .pairs
        .iter()
        .zip(&places)
        .map(|(pair, places)| UnalignedTemplate { expected_positions: places, max_mapq: 13, ..pair.template() })
        .collect();
    let written = [1, 3].map(|threads| {
        let path = made.path(&format!("{threads}.bam"));
        made.write_templates(&path, &templates, threads).unwrap();
        fs::read(&path).unwrap()
    });
    assert!(written[0] == written[1]);
    let everywhere = made.path("x.bam");
    made.write(&everywhere, 2).unwrap();
    let lines = |path: PathBuf| output("samtools", &["view", path.to_str().unwrap()]);
    let (Some(near), Some(all)) = (lines(made.path("1.bam")), lines(everywhere)) else { return };
    let best = |sam: &str| -> BTreeMap<(String, bool), (String, u8)> {
        let primary = |f: Vec<&str>| {
            let flag: u16 = f[1].parse().unwrap();
            let at = format!("{}:{} {}", f[2], f[3], f[5]);
            (flag & SUPPLEMENTARY == 0).then(|| ((f[0].to_owned(), flag & 0x40 != 0), (at, f[4].parse().unwrap())))
        };
        fields(sam).into_iter().filter_map(primary).collect()
    };
    let (near, all) = (best(&near), best(&all));
    let mut capped = 0;
    for (read, (at, quality)) in &near {
        assert_eq!(*at, all[read].0, "{read:?}");
        assert!(*quality <= all[read].1, "{read:?}");
        capped += usize::from(*quality <= 13 && all[read].1 > 13);
    }
    assert!(capped > 1000, "{capped}");
}

#[test]
fn header_and_no_reads() {
    let mut made = Made::new(0);
    made.pairs.clear();
    let path = made.path("x.bam");
    made.write(&path, 2).unwrap();
    let bam = path.to_str().unwrap();
    let Some(header) = output("samtools", &["view", "--no-PG", "-h", bam]) else { return };
    let expected = "@HD\tVN:1.6\tSO:coordinate\n\
        @SQ\tSN:one\tLN:30000\tM5:0123\n@SQ\tSN:two\tLN:20000\tM5:4567\n\
        @RG\tID:n\tSM:NORMAL\n@RG\tID:t\tSM:TUMOR\tPL:ILLUMINA\n\
        @PG\tID:genuma\tPN:genuma\tVN:0\tCL:genuma call --tumor 'a b'\n";
    assert_eq!(header, expected);
    output("samtools", &["quickcheck", "-v", bam]);
    assert_eq!(output("samtools", &["idxstats", bam]).unwrap(), "one\t30000\t0\t0\ntwo\t20000\t0\t0\n*\t0\t0\t0\n");
}

#[test]
fn odd_names_do_not_stop_it() {
    let mut made = Made::new(4);
    for (pair, name) in made.pairs.iter_mut().zip(["@a", "*", "", "b\u{e9}"]) {
        pair.name = name.into();
    }
    made.pairs[3].name.push_str(&"x".repeat(300));
    let path = made.path("x.bam");
    made.write(&path, 1).unwrap();
    let Some(sam) = output("samtools", &["view", path.to_str().unwrap()]) else { return };
    let mut found: Vec<&str> = fields(&sam).iter().map(|f| f[0]).collect();
    found.sort_unstable();
    found.dedup();
    let long = format!("b__{}", "x".repeat(251));
    assert_eq!(found, ["_", "_a", &long]);
}

#[test]
fn refusals_leave_nothing() {
    let made = Made::new(300);
    let path = made.path("no/such/x.bam");
    let said = made.write(&path, 1).unwrap_err().to_string();
    assert_eq!(said, format!("{}: cannot write: No such file or directory (os error 2)", path.display()));

    // If the index cannot be replaced, the data file is not replaced, either.
    fs::create_dir(made.path("y.bam.bai")).unwrap();
    let path = made.path("y.bam");
    let said = made.write(&path, 1).unwrap_err().to_string();
    assert_eq!(said, format!("{}.bai: cannot write: Is a directory (os error 21)", path.display()));
    assert!(!path.exists());
    assert!(!names(made.folder.path()).iter().any(|n| n.contains("partial")));
}

/// A file system of a few pages, where that is permitted.
struct Tiny(tempfile::TempDir);

impl Tiny {
    fn mount(size: &str) -> Option<Tiny> {
        let folder = tempfile::tempdir().unwrap();
        let options = format!("size={size}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "genuma-test"])
            .arg(folder.path())
            .output()
            .is_ok_and(|o| o.status.success());
        if !mounted {
            println!("skipped: no tmpfs can be mounted here");
        }
        mounted.then_some(Tiny(folder))
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_leaves_nothing() {
    let made = Made::new(600);
    // Space for nothing, for a part of the data, and for the data without the index.
    let whole = made.path("whole.bam");
    made.write(&whole, 1).unwrap();
    let pages = fs::metadata(&whole).unwrap().len().div_ceil(4096);
    for pages in [2, pages / 2, pages] {
        let Some(disk) = Tiny::mount(&(pages * 4096).to_string()) else { return };
        let path = disk.0.path().join("x.bam");
        let said = made.write(&path, 1).unwrap_err().to_string();
        assert!(said.starts_with(path.to_str().unwrap()), "{said}");
        assert!(said.ends_with(": cannot write: No space left on device (os error 28)"), "{said}");
        assert_eq!(said.matches("cannot write").count(), 1);
        assert!(names(disk.0.path()).is_empty(), "{pages} pages: {:?}", names(disk.0.path()));
    }
}

#[test]
fn long_sequences_get_a_csi() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.vcf.gz");
    fs::write(folder.path().join("x.vcf.gz.tbi"), "of an earlier file").unwrap();
    let mut file =
        IndexedFile::create(&path, 900_000_000, IndexedRecordFormat::Vcf { names: vec!["long".into()] }).unwrap();
    file.write_header(b"##fileformat=VCFv4.3\n##contig=<ID=long,length=900000000>\n").unwrap();
    file.write_header(b"#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n").unwrap();
    for start in (1..900).map(|i| i * 1_000_000) {
        let line = format!("long\t{start}\t.\tA\tC\t.\t.\t.\n");
        file.write_record(
            line.as_bytes(),
            Some(RecordReferenceRange { sequence: 0, start, end: start, is_aligned: true }),
        )
        .unwrap();
    }
    let past = RecordReferenceRange { sequence: 0, start: 5, end: 5, is_aligned: true };
    let said = file.write_record(b"long\t5\t.\tA\tC\t.\t.\t.\n", Some(past)).unwrap_err().to_string();
    assert!(said.starts_with(&format!("{}: record 900 cannot be indexed: ", path.display())), "{said}");
    let mut set = AtomicFileSet::default();
    file.finish_with_index_into_file_set(&mut set).unwrap();
    set.publish_all().unwrap();
    assert_eq!(names(folder.path()), ["x.vcf.gz", "x.vcf.gz.csi"]);
    let Some(found) = output("bcftools", &["view", "-H", "-r", "long:799500000-802000000", path.to_str().unwrap()])
    else {
        return;
    };
    assert_eq!(fields(&found).iter().map(|f| f[1]).collect::<Vec<_>>(), ["800000000", "801000000", "802000000"]);
}
