//! What the tests of the binary share: a small simulated pair, and ways to run genuma.

// Every test binary uses its own part of this.
#![allow(dead_code)]

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

/// The final names of a call with a reference.
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

/// What must not differ between equal runs.
pub const SAME: [&str; 5] =
    ["somatic.vcf.gz", "somatic.vcf.gz.tbi", "contigs.fa", "supporting.bam", "supporting.bam.bai"];

/// The program under test.
pub fn genuma() -> Command {
    let mut genuma = Command::new(env!("CARGO_BIN_EXE_genuma"));
    genuma.stdin(Stdio::null()).env_remove("COLUMNS");
    genuma
}

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs genuma to its end.
pub fn run(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ended {
    let output = genuma().args(args).output().expect("genuma starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("genuma writes UTF-8");
    Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

impl Ended {
    /// Asserts success and gives it back.
    #[track_caller]
    pub fn well(self) -> Self {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self
    }
}

/// An empty folder for one test, under the target folder; what an earlier run left in it is removed.
pub fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(env!("CARGO_CRATE_NAME")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("an old folder goes");
    }
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Reads of both samples and the genome they come from.
#[derive(Debug, Clone)]
pub struct Data {
    pub folder: PathBuf,
    pub tumor: Vec<PathBuf>,
    pub normal: Vec<PathBuf>,
    /// The reference to call with.
    pub reference: Option<PathBuf>,
}

impl Data {
    /// Simulates a pair of 30x each into a scratch folder.
    pub fn simulate(name: &str, args: &[&str]) -> Data {
        let folder = scratch(name);
        let out = folder.to_str().expect("UTF-8");
        run(["simulate", "--threads", "2", "--germline-svs", "2", "-o", out].iter().chain(args)).well();
        let files = |sample: &str| {
            vec![folder.join(format!("{sample}_1.fq.gz")), folder.join(format!("{sample}_2.fq.gz"))]
        };
        Data {
            tumor: files("tumor"),
            normal: files("normal"),
            reference: Some(folder.join("genome.fa")),
            folder,
        }
    }

    /// The arguments of a call of this data into `out`.
    pub fn call(&self, out: &Path) -> Vec<String> {
        let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
        let mut args = vec!["call".to_owned(), "--tumor".to_owned()];
        args.extend(self.tumor.iter().map(|p| text(p)));
        args.push("--normal".to_owned());
        args.extend(self.normal.iter().map(|p| text(p)));
        args.extend(self.reference.iter().flat_map(|path| ["--reference".to_owned(), text(path)]));
        args.extend(["-o".to_owned(), text(out)]);
        args
    }

    /// The same with further options.
    pub fn call_with(&self, out: &Path, options: &[&str]) -> Vec<String> {
        let mut args = self.call(out);
        args.extend(options.iter().map(|o| (*o).to_owned()));
        args
    }

    /// What a guest needs for `bwa mem genome.fa reads_1.fq reads_2.fq` of the normal: index files, then reads.
    pub fn for_bwa(&self, bwa: &Path) -> Vec<PathBuf> {
        let genome = self.folder.join("genome.fa");
        let made = Command::new(bwa).arg("index").arg(&genome).output().expect("bwa");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let index =
            ["amb", "ann", "bwt", "pac", "sa"].map(|end| self.folder.join(format!("genome.fa.{end}")));
        index.into_iter().chain(self.unpacked()).collect()
    }

    /// Two million bases, of which only the normal is worth reading, at this depth.
    pub fn of_normal(name: &str, depth: &str) -> Data {
        let size = ["--genome-length", "2000000", "--contigs", "2", "--seed", "5"];
        Data::simulate(name, &[size.as_slice(), &["--depth-tumor", "1", "--depth-normal", depth]].concat())
    }

    /// The normal's reads as plain text: `reads_1.fq` and `reads_2.fq`.
    pub fn unpacked(&self) -> Vec<PathBuf> {
        let unpack = |(mate, packed): (usize, &PathBuf)| {
            let path = self.folder.join(format!("reads_{mate}.fq"));
            fs::write(&path, gunzip(packed)).expect("a file");
            path
        };
        (1..).zip(&self.normal).map(unpack).collect()
    }
}

/// 200 kbp with variants of all kinds, 30x; made once a test binary.
pub fn data() -> &'static Data {
    static DATA: OnceLock<Data> = OnceLock::new();
    DATA.get_or_init(|| {
        let size = ["--genome-length", "200000", "--contigs", "2", "--seed", "3"];
        let variants = ["--snvs", "40", "--indels", "24", "--svs", "8", "--largest-sv", "5000"];
        Data::simulate("data", &[size.as_slice(), &variants].concat())
    })
}

/// What a plain call of [`data`] leaves; made once a test binary.
pub fn called() -> &'static Path {
    static CALLED: OnceLock<PathBuf> = OnceLock::new();
    CALLED.get_or_init(|| {
        let out = scratch("called");
        run(data().call_with(&out, &["--threads", "2"])).well();
        out
    })
}

/// Asserts that two runs left the same calls, contigs and reads, and nothing else than results.
#[track_caller]
pub fn assert_same(out: &Path, other: &Path) {
    assert_eq!(names(out), names(other));
    assert!(names(out).iter().all(|name| RESULTS.contains(&name.as_str())), "{:?}", names(out));
    for name in names(out).iter().filter(|name| SAME.contains(&name.as_str())) {
        let read = |folder: &Path| fs::read(folder.join(name)).expect("a result");
        assert!(read(out) == read(other), "{name} differs: {} and {}", out.display(), other.display());
    }
}

/// Names in a folder, sorted; empty when there is no such folder.
pub fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<_> =
        entries.map(|e| e.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

/// What a gzip'd file holds.
pub fn gunzip(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    MultiGzDecoder::new(file).read_to_end(&mut bytes).expect("gzip data");
    bytes
}

/// Writes a gzip'd file and gives its path back.
pub fn gzip(path: PathBuf, bytes: &[u8]) -> PathBuf {
    let mut file = GzEncoder::new(fs::File::create(&path).expect("a file"), Compression::fast());
    file.write_all(bytes).and_then(|()| file.finish()).expect("a file that can be written");
    path
}

/// Writes a file in blocks of BGZF and gives its path back.
pub fn bgzip(path: PathBuf, bytes: &[u8]) -> PathBuf {
    let mut file = Vec::new();
    // The last one is empty: it marks the end.
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

/// The records of a FASTQ text, four lines each.
pub fn records(fastq: &[u8]) -> Vec<&[u8]> {
    let mut ends =
        fastq.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1).skip(3).step_by(4);
    let mut start = 0;
    std::iter::from_fn(|| {
        let end = ends.next()?;
        let record = &fastq[start..end];
        start = end;
        Some(record)
    })
    .collect()
}

/// FILTER of every record of a VCF made by a call.
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
    let found =
        std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(program)).find(|p| p.is_file());
    if found.is_none() {
        skipped(&format!("{program} is not installed"));
    }
    found
}

/// The script that runs GATK, if GATK is there already; else says that the test is skipped.
pub fn gatk() -> Option<PathBuf> {
    let cache = std::env::var_os("GENUMA_CACHE").map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cache"));
        Some(std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or(home)?.join("genuma"))
    });
    let kept = cache.filter(|cache| cache.is_dir()).map_or_else(Vec::new, |cache| names(&cache));
    if !kept.iter().any(|name| name.starts_with("gatk-") && !name.contains("new")) {
        skipped("GATK is not in the cache; bench/peers.sh --gatk-only fetches it");
        return None;
    }
    installed("java")?;
    Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/gatk.sh"))
}
