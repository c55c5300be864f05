//! Shared by the tests of the binary: a small simulated pair, and functions that run genuma.

// Every test binary uses only some of these items.
#![allow(dead_code)]

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value;

mod cleanup;

pub use cleanup::SharedFixture;

/// File names of the results of a call with a reference.
pub const RESULTS: [&str; 11] = [
    "somatic.vcf.gz",
    "somatic.vcf.gz.tbi",
    "contigs.fa",
    "supporting.bam",
    "supporting.bam.bai",
    "summary.json",
    "report.html",
    "genuma_general_mqc.json",
    "genuma_pair_mqc.json",
    "genuma_calls_mqc.json",
    "genuma_spectrum_mqc.json",
];

/// File of a call with warnings.
const WARNINGS_FILE: &str = "genuma_warnings_mqc.json";

/// Result files that must be identical in equal runs.
pub const DETERMINISTIC_RESULTS: [&str; 5] =
    ["somatic.vcf.gz", "somatic.vcf.gz.tbi", "contigs.fa", "supporting.bam", "supporting.bam.bai"];

/// The program under test.
pub fn genuma() -> Command {
    let mut genuma = Command::new(env!("CARGO_BIN_EXE_genuma"));
    genuma.stdin(Stdio::null()).env_remove("COLUMNS");
    genuma
}

/// The program under test with umask 022, under which other users may read the files that it creates with the usual
/// permissions.
pub fn genuma_with_open_umask() -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"umask 022; exec "$0" "$@""#, env!("CARGO_BIN_EXE_genuma")]);
    shell.stdin(Stdio::null()).env_remove("COLUMNS");
    shell
}

/// Asserts that only the user may read the files of the folder whose names `has_reads` accepts, and that there are any.
#[track_caller]
pub fn assert_private(folder: &Path, has_reads: impl Fn(&str) -> bool) {
    let files: Vec<String> = names(folder).into_iter().filter(|name| has_reads(name)).collect();
    assert!(!files.is_empty(), "{:?}", names(folder));
    for name in files {
        let mode = fs::metadata(folder.join(&name)).expect("a file").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{name} has mode {mode:o}");
    }
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// A JSON file.
#[track_caller]
pub fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

/// The summary of a call.
#[track_caller]
pub fn summary(out: &Path) -> Value {
    json(&out.join("summary.json"))
}

/// Exit code and output of a run.
#[derive(Debug)]
pub struct RunOutput {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs genuma to its end.
pub fn run(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> RunOutput {
    let output = genuma().args(args).output().expect("genuma starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("genuma writes UTF-8");
    RunOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

impl RunOutput {
    /// Asserts success and returns the output.
    #[track_caller]
    pub fn assert_success(self) -> Self {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self
    }
}

/// Runs genuma to its end, which must be a success. Returns its peak memory in bytes, read while it runs.
pub fn peak_memory_bytes(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> u64 {
    let mut child = genuma().args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("genuma starts");
    let status = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0;
    loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        peak_kib = line.and_then(|kib| kib.trim().parse().ok()).unwrap_or(peak_kib);
        if let Some(ended) = child.try_wait().expect("a child") {
            assert!(ended.success(), "{ended}");
            return 1024 * peak_kib;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// Writes a genome of random bases (`random.fa`), and `random.vcf` with a substitution of every 160th base, until there
/// are `num_records`. Returns their paths.
pub fn write_many_substitutions(folder: &Path, num_records: usize) -> [PathBuf; 2] {
    let mut state = 7u64;
    let mut base = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        b"ACGT"[(state >> 62) as usize]
    };
    let genome: Vec<u8> = (0..(num_records + 2) * 160).map(|_| base()).collect();
    let mut records = "##fileformat=VCFv4.3\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n".to_owned();
    for pos in (1..=num_records).map(|record| record * 160) {
        let (here, other) = (genome[pos - 1] as char, if genome[pos - 1] == b'A' { 'C' } else { 'A' });
        records += &format!("chr1\t{pos}\t.\t{here}\t{other}\t.\tPASS\tAF=0.4\n");
    }
    let paths = ["random.fa", "random.vcf"].map(|name| folder.join(name));
    fs::write(&paths[0], [b">chr1\n", &genome[..], b"\n"].concat()).expect("a file");
    fs::write(&paths[1], records).expect("a file");
    paths
}

/// An empty folder for one test under the target folder; files of an earlier run are removed. It is removed again
/// when the test has passed, unless it belongs to a [`SharedFixture`].
#[track_caller]
pub fn scratch(name: &str) -> PathBuf {
    // One folder for each source file that has tests.
    let file = Path::new(Location::caller().file()).file_stem().expect("a file name");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(env!("CARGO_CRATE_NAME")).join(file).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("an old folder goes");
    }
    fs::create_dir_all(&folder).expect("a folder");
    cleanup::remove_after_test(&folder);
    folder
}

/// Reads of both samples, and the genome.
#[derive(Debug, Clone)]
pub struct Data {
    pub folder: PathBuf,
    pub tumor: Vec<PathBuf>,
    pub normal: Vec<PathBuf>,
    /// Reference for the call.
    pub reference: Option<PathBuf>,
}

impl Data {
    /// Simulates a pair at 30x/30x into a scratch folder.
    #[track_caller]
    pub fn simulate(name: &str, args: &[&str]) -> Data {
        let folder = scratch(name);
        let out = folder.to_str().expect("UTF-8");
        run(["bench", "simulate", "--threads", "2", "--germline-svs", "2", "-o", out].iter().chain(args))
            .assert_success();
        let files =
            |sample: &str| vec![folder.join(format!("{sample}_1.fq.gz")), folder.join(format!("{sample}_2.fq.gz"))];
        Data { tumor: files("tumor"), normal: files("normal"), reference: Some(folder.join("genome.fa")), folder }
    }

    /// Arguments of a call of this pair into `out`.
    pub fn call(&self, out: &Path) -> Vec<String> {
        let mut args = vec!["call", "--tumor"];
        args.extend(self.tumor.iter().map(|path| text(path)));
        args.push("--normal");
        args.extend(self.normal.iter().map(|path| text(path)));
        args.extend(self.reference.iter().flat_map(|path| ["--reference", text(path)]));
        args.extend(["-o", text(out)]);
        args.into_iter().map(str::to_owned).collect()
    }

    /// Arguments of a call of these samples with further options.
    pub fn call_with(&self, out: &Path, options: &[&str]) -> Vec<String> {
        let mut args = self.call(out);
        args.extend(options.iter().map(|o| (*o).to_owned()));
        args
    }

    /// Files that a virtual machine needs for `bwa mem genome.fa reads_1.fq reads_2.fq` of the normal: index files,
    /// then reads.
    pub fn bwa_guest_files(&self, bwa: &Path) -> Vec<PathBuf> {
        let genome = self.folder.join("genome.fa");
        let made = Command::new(bwa).arg("index").arg(&genome).output().expect("bwa");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let index = ["amb", "ann", "bwt", "pac", "sa"].map(|end| self.folder.join(format!("genome.fa.{end}")));
        index.into_iter().chain(self.write_unpacked_normal()).collect()
    }

    /// Two million bases, with the normal at this depth and hardly any tumour reads.
    #[track_caller]
    pub fn simulate_normal_only(name: &str, depth: &str) -> Data {
        let size = ["--genome-length", "2000000", "--contigs", "2", "--seed", "5"];
        Data::simulate(name, &[size.as_slice(), &["--depth-tumor", "1", "--depth-normal", depth]].concat())
    }

    /// Writes the normal's reads as plain text: `reads_1.fq` and `reads_2.fq`.
    pub fn write_unpacked_normal(&self) -> Vec<PathBuf> {
        let unpack = |(mate, packed): (usize, &PathBuf)| {
            let path = self.folder.join(format!("reads_{mate}.fq"));
            fs::write(&path, gunzip(packed)).expect("a file");
            path
        };
        (1..).zip(&self.normal).map(unpack).collect()
    }
}

/// Options of the genome and the variants of [`data`], for further samples of the same patient.
pub const PATIENT: [&str; 14] = [
    "--genome-length",
    "140000",
    "--contigs",
    "2",
    "--seed",
    "3",
    "--snvs",
    "40",
    "--indels",
    "24",
    "--svs",
    "8",
    "--largest-sv",
    "5000",
];

/// A pair of 140 kbp with variants of all kinds at 30x; simulated once per test binary. Most tests call it: the number
/// of its reads decides how long they take.
pub fn data() -> &'static Data {
    static DATA: SharedFixture<Data> = SharedFixture::new();
    DATA.get_or_init(|| Data::simulate("data", &PATIENT))
}

/// Results of a call of [`data`] with default options; made once per test binary.
pub fn called() -> &'static Path {
    static CALLED: SharedFixture<PathBuf> = SharedFixture::new();
    CALLED.get_or_init(|| {
        let out = scratch("called");
        run(data().call_with(&out, &["--threads", "2"])).assert_success();
        out
    })
}

/// Asserts that two runs have the same calls, contigs and reads, and only result files.
#[track_caller]
pub fn assert_same(out: &Path, other: &Path) {
    assert_eq!(names(out), names(other));
    let is_table = |name: &str| name == "somatic.maf";
    let is_result = |name: &str| RESULTS.contains(&name) || is_table(name) || name == WARNINGS_FILE;
    assert!(names(out).iter().all(|name| is_result(name)), "{:?}", names(out));
    let is_compared = |name: &str| DETERMINISTIC_RESULTS.contains(&name) || is_table(name);
    for name in names(out).iter().filter(|name| is_compared(name)) {
        let read = |folder: &Path| read_without_provenance(&folder.join(name));
        assert!(read(out) == read(other), "{name} differs: {} and {}", out.display(), other.display());
    }
}

/// Header lines of a VCF that differ between calls with equal results.
const PROVENANCE_LINES: [&str; 3] = ["##genumaCommandLine=", "##genumaInput=", "##reference="];

/// Content of a result file that must be equal in equal runs. The command line, the input files and the path of the
/// reference are left out of the headers of VCF and BAM files. An index, whose offsets depend on the header, is empty.
pub fn read_without_provenance(path: &Path) -> Vec<u8> {
    let name = path.file_name().and_then(OsStr::to_str).expect("a name");
    let without = |header: &[u8], is_kept: &dyn Fn(&str) -> bool| -> Vec<u8> {
        let text = std::str::from_utf8(header).expect("UTF-8");
        text.split_inclusive('\n').filter(|line| is_kept(line)).collect::<String>().into_bytes()
    };
    if name.ends_with(".vcf.gz") {
        return without(&gunzip(path), &|line| !PROVENANCE_LINES.iter().any(|start| line.starts_with(start)));
    }
    if name.ends_with(".bam") {
        let bytes = gunzip(path);
        let end = 8 + u32::from_le_bytes(bytes[4..8].try_into().expect("a length")) as usize;
        let header = without(&bytes[8..end], &|line| !line.starts_with("@PG\t"));
        return [header, bytes[end..].to_vec()].concat();
    }
    if name.ends_with(".tbi") || name.ends_with(".bai") {
        assert!(fs::metadata(path).expect("an index").len() > 0);
        return Vec::new();
    }
    fs::read(path).expect("a result")
}

/// Names in a folder, sorted; empty if the folder does not exist.
pub fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<_> = entries.map(|e| e.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

/// Content of a gzipped file.
pub fn gunzip(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    MultiGzDecoder::new(file).read_to_end(&mut bytes).expect("gzip data");
    bytes
}

/// Writes a gzipped file and returns its path.
pub fn gzip(path: PathBuf, bytes: &[u8]) -> PathBuf {
    let mut file = GzEncoder::new(fs::File::create(&path).expect("a file"), Compression::fast());
    file.write_all(bytes).and_then(|()| file.finish()).expect("a file that can be written");
    path
}

/// Writes a BGZF file and returns its path.
pub fn bgzip(path: PathBuf, bytes: &[u8]) -> PathBuf {
    let mut file = Vec::new();
    // The last block is empty: it marks the end of the file.
    for content in bytes.chunks(0xff00).chain([&b""[..]]) {
        let mut deflate = flate2::write::DeflateEncoder::new(Vec::new(), Compression::fast());
        let packed = deflate.write_all(content).and_then(|()| deflate.finish()).expect("memory");
        let mut sum = flate2::Crc::new();
        sum.update(content);
        file.extend([0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 6, 0, b'B', b'C', 2, 0]);
        file.extend((packed.len() as u16 + 25).to_le_bytes());
        file.extend(packed);
        file.extend(sum.sum().to_le_bytes());
        file.extend((content.len() as u32).to_le_bytes());
    }
    fs::write(&path, file).expect("a file");
    path
}

/// The records of FASTQ text, four lines each.
pub fn records(fastq: &[u8]) -> Vec<&[u8]> {
    let mut ends = fastq.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1).skip(3).step_by(4);
    let mut start = 0;
    std::iter::from_fn(|| {
        let end = ends.next()?;
        let record = &fastq[start..end];
        start = end;
        Some(record)
    })
    .collect()
}

/// FILTER of every record of a call's VCF.
pub fn filters(out: &Path) -> Vec<String> {
    let text = String::from_utf8(gunzip(&out.join("somatic.vcf.gz"))).expect("UTF-8");
    let column = |line: &str| line.split('\t').nth(6).expect("FILTER").to_owned();
    text.lines().filter(|l| !l.starts_with('#')).map(column).collect()
}

/// Says that the running test is skipped, and why, past the capture of what passing tests print.
pub fn skipped(why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    writeln!(std::io::stderr(), "skipped: {test}: {why}").expect("stderr");
}

/// Path of a program, `None` (and a word on why a test is skipped) when it is not installed.
pub fn installed(program: &str) -> Option<PathBuf> {
    let found = std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(program)).find(|p| p.is_file());
    if found.is_none() {
        skipped(&format!("{program} is not installed"));
    }
    found
}

/// The folder that keeps the peers which scripts/test-peers.sh installs.
fn peer_cache() -> Option<PathBuf> {
    std::env::var_os("GENUMA_CACHE").map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cache"));
        Some(std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or(home)?.join("genuma"))
    })
}

/// The script that runs GATK; `None` if GATK could not be installed.
pub fn gatk() -> Option<PathBuf> {
    let folders = names(&peer_cache()?);
    if !folders.iter().any(|name| name.starts_with("gatk-") && !name.contains("new")) {
        skipped("GATK is not installed; scripts/test-peers.sh installs it, or says why it cannot");
        return None;
    }
    installed("java")?;
    Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/gatk.sh"))
}

/// A program of the virtual environment with the packages of scripts/python-peers.txt; `None` if they could not be installed.
pub fn python_peer(program: &str) -> Option<PathBuf> {
    let path = peer_cache()?.join("python/bin").join(program);
    if !path.is_file() {
        skipped(&format!("{program} is not installed; scripts/test-peers.sh installs it, or says why it cannot"));
        return None;
    }
    Some(path)
}

/// Does all steps of a distributed call of this run store, with these numbers of shards and partitions. Temporary files go to
/// `temp`.
pub fn run_all_steps(store: &str, [shards, partitions]: [u32; 2], temp: &Path) {
    let steps = [
        ("scatter", shards),
        ("count", partitions),
        ("pick", 1),
        ("label", shards),
        ("assemble", 1),
        ("place", 1),
        ("recruit", shards),
        ("finish", 1),
    ];
    for (step, tasks) in steps {
        for task in 1..=tasks {
            let mut command = genuma();
            command.args(["step", store, step, &task.to_string(), "-q"]).env("TMPDIR", temp);
            assert!(command.status().expect("genuma starts").success(), "{step} {task}");
        }
    }
}

/// GFF3 lines of a coding gene with two exons and of a non-coding one on the first contig of a reference.
pub fn two_genes(reference: &Path) -> String {
    let fasta = fs::read_to_string(reference).expect("the reference");
    let name = fasta.lines().next().and_then(|line| line[1..].split(' ').next()).expect("a name").to_owned();
    let line = |kind: &str, range: &str, phase: &str, attributes: &str| {
        format!("{name}\ttest\t{kind}\t{range}\t.\t+\t{phase}\t{attributes}\n")
    };
    [
        line("gene", "501\t20000", ".", "ID=gene:G1;Name=ABC1;biotype=protein_coding"),
        line("mRNA", "501\t20000", ".", "ID=transcript:T1;Parent=gene:G1;biotype=protein_coding;tag=MANE_Select"),
        line("exon", "501\t1000", ".", "Parent=transcript:T1"),
        line("exon", "10001\t20000", ".", "Parent=transcript:T1"),
        line("CDS", "551\t1000", "0", "Parent=transcript:T1"),
        line("CDS", "10001\t19500", "0", "Parent=transcript:T1"),
        line("gene", "25001\t45000", ".", "ID=gene:G2;Name=LNC2;biotype=lncRNA"),
        line("lnc_RNA", "25001\t45000", ".", "ID=transcript:T2;Parent=gene:G2;biotype=lncRNA"),
        line("exon", "25001\t45000", ".", "Parent=transcript:T2"),
    ]
    .concat()
}

/// A file of this repository.
pub fn repository(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace").join(name)
}

/// Whether the files that one of our scripts fetches are there; otherwise the test is skipped.
pub fn fetched(script: &str) -> bool {
    let output = Command::new(repository(script)).arg("--fetch").stdin(Stdio::null()).output().expect("a script");
    if !output.status.success() {
        skipped(String::from_utf8_lossy(&output.stderr).trim());
    }
    output.status.success()
}
