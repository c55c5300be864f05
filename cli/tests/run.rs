//! `genuma run`: gives the records of the plain run with any number of instances.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{SharedFixture, genuma, gzip, installed, run, scratch};

/// A genome with repeats, so that alignments tie, with its indexes and reads.
struct Fixture {
    folder: PathBuf,
}

/// A small random number generator: splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    fn bases(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| b"ACGT"[self.below(4) as usize]).collect()
    }
}

const PAIRS: u64 = 3000;
const LENGTH: usize = 100;

fn fixture() -> &'static Fixture {
    static MADE: SharedFixture<Fixture> = SharedFixture::new();
    MADE.get_or_init(|| {
        let folder = scratch("fixture");
        let mut random = Random(7);
        let repeats: Vec<Vec<u8>> = (0..4).map(|_| random.bases(700)).collect();
        let mut genome = Vec::new();
        while genome.len() < 200_000 {
            let unique = 200 + random.below(2500) as usize;
            genome.extend(random.bases(unique));
            genome.extend_from_slice(&repeats[random.below(4) as usize]);
        }
        let (one, two) = genome.split_at(120_000);
        let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
        fs::write(folder.join("g.fa"), format!(">c1\n{}\n>c2\n{}\n", text(one), text(two))).expect("a file");
        let mut mates = [String::new(), String::new()];
        for i in 0..PAIRS {
            let insert = 180 + random.below(200) as usize;
            let start = random.below((genome.len() - insert) as u64) as usize;
            let fragment = &genome[start..start + insert];
            let complement = |b: &u8| match b {
                b'A' => b'T',
                b'C' => b'G',
                b'G' => b'C',
                _ => b'A',
            };
            let reverse: Vec<u8> = fragment.iter().rev().map(complement).collect();
            for (mate, strand) in [fragment, &reverse].into_iter().enumerate() {
                let mut seq = strand[..LENGTH].to_vec();
                if random.below(20) == 0 {
                    seq = random.bases(LENGTH);
                }
                for _ in 0..random.below(4) {
                    seq[random.below(LENGTH as u64) as usize] = b'N';
                }
                let qual: String = (0..LENGTH).map(|_| (b'#' + random.below(38) as u8) as char).collect();
                let n = mate + 1;
                mates[mate] += &format!("@r{i}/{n} BC:Z:AC{i}\tX\n{}\n+\n{qual}\n", text(&seq));
            }
        }
        for (n, text) in (1..).zip(&mates) {
            fs::write(folder.join(format!("r{n}.fq")), text).expect("a file");
            gzip(folder.join(format!("r{n}.fq.gz")), text.as_bytes());
            // Two lanes.
            let half = text.match_indices("@r1000/").next().expect("a read").0;
            fs::write(folder.join(format!("a{n}.fq")), &text[..half]).expect("a file");
            fs::write(folder.join(format!("b{n}.fq")), &text[half..]).expect("a file");
        }
        let records = |text: &str| -> Vec<String> {
            text.lines().collect::<Vec<_>>().chunks(4).map(|r| r.join("\n") + "\n").collect()
        };
        let turns = records(&mates[0]).into_iter().zip(records(&mates[1])).map(|(a, b)| a + &b);
        fs::write(folder.join("il.fq"), turns.collect::<String>()).expect("a file");
        Fixture { folder }
    })
}

impl Fixture {
    /// Runs a shell command in the folder and returns its output.
    #[track_caller]
    fn shell(&self, command: &str) -> Vec<u8> {
        let output = Command::new("bash")
            .args(["-c", command])
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .output()
            .expect("a shell");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// Asserts that genuma gives the same bytes as the command, except @PG lines, with any number of instances.
    #[track_caller]
    fn same(&self, command: &str) {
        let plain = self.shell(command);
        assert!(plain.len() > 10_000, "{command}: {} bytes", plain.len());
        for strategy in ["default", "2xlocal", "4xbind"] {
            let found = self.by_genuma(strategy, command);
            assert!(without_programs(&found) == without_programs(&plain), "{strategy}: {command}");
            assert_eq!(programs(&found).len(), programs(&plain).len() + usize::from(plain[0] == b'@'));
        }
    }

    #[track_caller]
    fn by_genuma(&self, strategy: &str, command: &str) -> Vec<u8> {
        let output = genuma()
            .args(["run", "--strategy", strategy, "--"])
            .args(command.split(' '))
            .current_dir(&self.folder)
            .output()
            .expect("genuma starts");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|&b| b == b'\n')
}

fn without_programs(text: &[u8]) -> Vec<u8> {
    lines(text).filter(|line| !line.starts_with(b"@PG")).flatten().copied().collect()
}

fn programs(text: &[u8]) -> Vec<String> {
    let programs = lines(text).filter(|line| line.starts_with(b"@PG"));
    programs.map(|line| String::from_utf8_lossy(line).trim_end().to_owned()).collect()
}

#[test]
fn bwa_mem() {
    if installed("bwa").is_none() {
        return;
    }
    let fixture = fixture();
    fixture.shell("bwa index g.fa");
    // 15 blocks of 200 pairs.
    for command in [
        "bwa mem -t 2 -K 40000 g.fa r1.fq r2.fq",
        "bwa mem -t 4 -K 40000 -C -a g.fa r1.fq.gz r2.fq.gz",
        "bwa mem -K 15050 g.fa r1.fq",
        // Several blocks fit in one buffer of bwa.
        "bwa mem -K 1000 g.fa r1.fq r2.fq",
        "bwa mem -t 2 -K 40000 g.fa r2.fq.gz",
        "bwa mem -p -K 40000 g.fa il.fq",
        "bwa mem -t 2 -M -R @RG\\tID:x g.fa r1.fq.gz r2.fq",
    ] {
        let typed = command.replace("\\t", "\\\\t");
        let plain = fixture.shell(&typed);
        for strategy in ["default", "2xlocal", "4xbind"] {
            let found = fixture.by_genuma(strategy, command);
            assert!(without_programs(&found) == without_programs(&plain), "{strategy}: {command}");
            let [own, ours] = &programs(&found)[..] else { panic!("{:?}", programs(&found)) };
            assert_eq!(own, &programs(&plain)[0], "{strategy}");
            assert!(ours.contains("ID:genuma\t") && ours.contains("PP:bwa\t"), "{ours}");
            assert!(ours.contains(&format!("--strategy {strategy} -- bwa mem")), "{ours}");
        }
    }
    // Read numbers matter here: without them ties are broken differently.
    let all = fixture.shell("bwa mem -K 40000 g.fa r1.fq r2.fq");
    let half = fixture.shell("bwa mem -K 40000 g.fa b1.fq b2.fq");
    assert!(!without_programs(&all).ends_with(&without_programs(&half)[1000..]));
}

#[test]
fn bwa_mem_of_unusual_files() {
    if installed("bwa").is_none() {
        return;
    }
    let fixture = fixture();
    fixture.shell("cp g.fa u.fa; bwa index u.fa; : > empty1.fq; : > empty2.fq");
    for mate in [1, 2] {
        // Sequences and qualities in two lines, the first records in one; `.` for N; read 2 of three.
        let lines = "NR > 12 && NR % 2 == 0 { print substr($0, 1, 60); print substr($0, 61); next } 1";
        fixture.shell(&format!("awk '{lines}' r{mate}.fq > lines{mate}.fq; gzip -k lines{mate}.fq"));
        fixture.shell(&format!(
            "awk 'NR % 4 == 2 {{ gsub(/N/, \".\") }} 1' r{mate}.fq | sed 's,^@\\(r[0-9]*\\)/2,@\\1/3,' > dots{mate}.fq"
        ));
    }
    assert!(fs::read_to_string(fixture.folder.join("dots2.fq")).expect("reads").starts_with("@r0/3 BC"));
    fixture.same("bwa mem -t 2 -K 40000 u.fa lines1.fq lines2.fq.gz");
    fixture.same("bwa mem -t 2 -K 40000 u.fa lines1.fq.gz r2.fq");
    fixture.same("bwa mem -t 2 -K 15050 u.fa lines2.fq");
    fixture.same("bwa mem -t 2 -K 40000 -C u.fa dots1.fq dots2.fq");
    for command in ["bwa mem u.fa empty1.fq", "bwa mem u.fa empty1.fq empty2.fq"] {
        let (plain, found) = (fixture.shell(command), fixture.by_genuma("2xlocal", command));
        assert_eq!(without_programs(&found), without_programs(&plain), "{command}");
    }
}

#[test]
fn bwa_aln_samse_and_sampe() {
    if installed("bwa").is_none() {
        return;
    }
    let fixture = fixture();
    fixture.shell("cp g.fa h.fa; bwa index h.fa");
    fixture.same("bwa aln -t 3 h.fa r1.fq.gz");
    fixture.same("bwa aln h.fa r2.fq");
    fixture.shell("bwa aln h.fa r1.fq > 1.sai; bwa aln h.fa r2.fq > 2.sai");
    for command in ["bwa samse h.fa 1.sai r1.fq", "bwa sampe h.fa 1.sai 2.sai r1.fq.gz r2.fq.gz"] {
        let (plain, found) = (fixture.shell(command), fixture.by_genuma("default", command));
        assert!(without_programs(&found) == without_programs(&plain), "{command}");
        let refused = genuma()
            .args(["run", "--strategy", "2xbind", "--"])
            .args(command.split(' '))
            .current_dir(&fixture.folder)
            .output()
            .expect("genuma starts");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && said.contains("only one instance is possible"), "{said}");
    }
}

#[test]
fn bowtie2() {
    if installed("bowtie2").is_none() {
        return;
    }
    let fixture = fixture();
    fixture.shell("bowtie2-build -q g.fa g");
    fixture.same("bowtie2 --reorder -p 2 -x g -1 r1.fq.gz -2 r2.fq.gz");
    fixture.same("bowtie2 --reorder -p 4 -k 3 -x g -U a1.fq,b1.fq");
    fixture.same("bowtie2 --reorder -p 2 -x g -U r2.fq.gz");
    fixture.same("bowtie2 --mm -x g -1 a1.fq,b1.fq -2 a2.fq,b2.fq");
    fixture.same("bowtie2 --local -x g --interleaved il.fq");
}

#[test]
fn minimap2() {
    if installed("minimap2").is_none() {
        return;
    }
    let fixture = fixture();
    fixture.same("minimap2 -ax sr -t 2 g.fa r1.fq.gz r2.fq.gz");
    fixture.same("minimap2 -ax sr -N 5 --secondary=yes -t 3 g.fa r1.fq");
    fixture.same("minimap2 -ax sr g.fa r1.fq r2.fq");
    fixture.same("minimap2 -ax sr -t 2 g.fa r2.fq.gz");
    fixture.same("minimap2 -ax sr -y g.fa il.fq");
}

#[test]
fn snap_gives_the_same_set_in_the_order_of_the_reads() {
    if installed("snap-aligner").is_none() {
        return;
    }
    let fixture = fixture();
    fixture.shell("mkdir -p snap; snap-aligner index g.fa snap -s 20");
    for command in [
        "snap-aligner paired snap r1.fq r2.fq -t 2 -o -sam -",
        "snap-aligner single snap r1.fq -t 2 -o -sam -",
        "snap-aligner paired snap r1.fq.gz r2.fq.gz -t 2 -o -sam -",
        "snap-aligner single snap r1.fq.gz -t 2 -o -sam -",
    ] {
        let sorted = |text: &[u8]| {
            let text = without_programs(text);
            let mut records: Vec<Vec<u8>> = lines(&text).map(<[u8]>::to_vec).collect();
            records.sort();
            records
        };
        let plain = fixture.shell(command);
        for strategy in ["default", "2xlocal", "4xbind"] {
            let found = fixture.by_genuma(strategy, command);
            assert!(sorted(&found) == sorted(&plain), "{strategy}: {command}");
            let records = lines(&found).filter(|line| !line.starts_with(b"@"));
            let number = |line: &[u8]| -> u64 {
                let name = line[1..].split(|b| matches!(b, b'/' | b'\t')).next().expect("a name");
                String::from_utf8_lossy(name).parse().expect("a number")
            };
            let numbers: Vec<u64> = records.map(number).collect();
            assert!(numbers.is_sorted() && numbers.last() == Some(&(PAIRS - 1)), "{strategy}: {command}");
        }
    }
}

/// Exit code, records and messages of a run with aligned reads.
fn of_aligned(fixture: &Fixture, options: &[&str], command: &str) -> (Option<i32>, Vec<u8>, String) {
    let output = genuma()
        .arg("run")
        .args(options)
        .arg("--")
        .args(command.split(' '))
        .current_dir(&fixture.folder)
        .output()
        .expect("genuma starts");
    (output.status.code(), output.stdout, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn reads_of_bam_and_cram_are_those_of_fastq() {
    if ["bwa", "samtools", "bowtie2", "minimap2"].iter().any(|tool| installed(tool).is_none()) {
        return;
    }
    let fixture = fixture();
    fixture.shell("cp g.fa m.fa; bwa index m.fa; samtools faidx m.fa; bowtie2-build -q m.fa m");
    // Unaligned; aligned and sorted by position, which separates mates; CRAM; one read missing.
    fixture.shell("bwa mem -K 10000000 m.fa r1.fq r2.fq | samtools view -b -o named.bam -");
    fixture.shell("samtools sort -o placed.bam named.bam; samtools view -C -T m.fa -o named.cram named.bam");
    fixture.shell("samtools view -h named.bam | awk '/^@/ || ++n != 9' | samtools view -b -o stray.bam -");
    let same = |options: &[&str], command: &str, fastq: &str| {
        let plain = fixture.shell(fastq);
        for strategy in ["default", "2xlocal"] {
            let options = [options, &["--strategy", strategy]].concat();
            let (code, found, said) = of_aligned(fixture, &options, command);
            assert_eq!(code, Some(0), "{command}: {said}");
            assert!(without_programs(&found) == without_programs(&plain), "{strategy}: {command}: {said}");
        }
    };
    same(&[], "bwa mem -p -t 2 -K 40000 m.fa named.bam", "bwa mem -p -t 2 -K 40000 m.fa il.fq");
    same(
        &["--reference", "m.fa"],
        "bowtie2 --reorder -x m --interleaved named.cram",
        "bowtie2 --reorder -x m --interleaved il.fq",
    );
    // The aligner breaks ties by read names, which have no /1 in BAM.
    fixture.shell("samtools fastq -n named.bam > bare.fq");
    same(&[], "minimap2 -ax sr -t 2 m.fa named.bam", "minimap2 -ax sr -t 2 m.fa bare.fq");
    let two = "bwa mem -K 10000000 m.fa {reads1} {reads2}";
    fixture.shell("printf '#!/bin/sh\\nexec bwa \"$@\"\\n' > other; chmod +x other");
    let (code, found, said) = of_aligned(fixture, &["--reads", "named.bam"], &two.replace("bwa", "./other"));
    assert_eq!(code, Some(0), "{said}");
    assert!(without_programs(&found) == without_programs(&fixture.shell("bwa mem -K 10000000 m.fa r1.fq r2.fq")));

    // Sorted by position the pairs come in another order, and bwa breaks ties by order: the records are those of
    // FASTQ in that order.
    let json = fixture.folder.join("placed.json");
    let (code, found, said) = of_aligned(fixture, &["--json", "placed.json"], "bwa mem -p m.fa placed.bam");
    assert_eq!(code, Some(0), "{said}");
    let mut order: Vec<String> = lines(&without_programs(&found))
        .filter(|line| !line.starts_with(b"@"))
        .map(|line| String::from_utf8_lossy(line.split(|b| *b == b'\t').next().expect("a name")).into_owned())
        .collect();
    order.dedup();
    let text = fs::read_to_string(fixture.folder.join("il.fq")).expect("pairs");
    let pairs: std::collections::HashMap<&str, String> = (text.lines().collect::<Vec<_>>().chunks(8))
        .map(|pair| (pair[0][1..].split('/').next().expect("a name"), pair.join("\n") + "\n"))
        .collect();
    assert_eq!((order.len(), pairs.len()), (PAIRS as usize, PAIRS as usize));
    let placed: String = order.iter().map(|name| pairs[name.as_str()].as_str()).collect();
    assert_ne!(placed, text);
    fs::write(fixture.folder.join("placed.fq"), placed).expect("pairs by place");
    let plain = fixture.shell("bwa mem -p m.fa placed.fq");
    assert!(without_programs(&found) == without_programs(&plain), "{said}");
    let json: serde_json::Value = serde_json::from_slice(&fs::read(json).expect("JSON")).expect("valid JSON");
    assert_eq!(json["run"]["aligned"][0][0], "placed.bam");
    assert!(json["run"]["aligned"][0][1]["records"].as_u64() >= Some(2 * PAIRS), "{json}");

    // A read without its mate is aligned alone by aligners that look at names, and is an error for others.
    let (code, found, said) = of_aligned(fixture, &[], "bwa mem -p m.fa stray.bam");
    assert!(code == Some(0) && said.contains("reads whose mate is not in the file"), "{said}");
    let reads = lines(&found).filter(|line| !line.starts_with(b"@")).count() as u64;
    assert!(reads >= 2 * PAIRS - 1 && said.contains("5999 reads in "), "{reads}: {said}");
    let (code, _, said) = of_aligned(fixture, &[], "bowtie2 -x m --interleaved stray.bam");
    assert!(
        code == Some(1) && said.contains("stray.bam: read \"") && said.contains("has no mate in the file"),
        "{said}"
    );
    // The command treats reads as single; a warning reports their mates.
    let (code, _, said) = of_aligned(fixture, &[], "bwa mem m.fa named.bam");
    assert!(code == Some(0) && said.contains("6000 reads have mates, and were aligned without them"), "{said}");
    let (code, _, said) = of_aligned(fixture, &[], "bwa mem m.fa named.bam r2.fq");
    assert!(code == Some(2) && said.contains("named.bam: holds both mates"), "{said}");
    let (code, _, said) = of_aligned(fixture, &[], "bowtie2 -x m --interleaved named.cram");
    assert!(code == Some(1) && said.contains("named.cram") && said.contains("--reference"), "{said}");
}

#[test]
fn a_program_that_is_not_known() {
    if installed("bwa").is_none() {
        return;
    }
    let fixture = fixture();
    let folder = scratch("template");
    fixture.shell("cp g.fa t.fa; bwa index t.fa");
    // A block that holds all reads.
    let script = "#!/bin/sh\nexec bwa mem -K 10000000 \"$@\"\n";
    let program = folder.join("mapper");
    fs::write(&program, script).expect("a file");
    fixture.shell(&format!("chmod +x {}", program.display()));
    let plain = fixture.shell("bwa mem -K 10000000 t.fa r1.fq r2.fq");
    let (out, json) = (folder.join("out.sam"), folder.join("out.json"));
    let output = genuma()
        .args(["run", "--threads", "2", "--reads", "r1.fq", "r2.fq", "-o"])
        .args([&out, Path::new("--json"), &json, Path::new("--"), &program])
        .args(["-t", "{threads}", "t.fa", "{reads1}", "{reads2}"])
        .current_dir(&fixture.folder)
        .output()
        .expect("genuma starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("the machine has one NUMA node"), "{said}");
    assert!(said.contains("6000 reads in ") && said.contains("see "), "{said}");
    assert!(without_programs(&fs::read(&out).expect("SAM")) == without_programs(&plain));
    let summary: serde_json::Value = serde_json::from_slice(&fs::read(&json).expect("JSON")).expect("valid JSON");
    assert_eq!(summary["run"]["reads"], 6000);
    assert_eq!(summary["aligner"], "mapper");
    assert_eq!(summary["strategy"], "default");
    assert!(summary["run"]["instances_cpu_s"].as_f64() > Some(0.0), "{summary}");
    assert_eq!(summary["run"]["instances"][0]["threads"], 2);
}

/// The aligner's SAM text does not go into a file that is named BAM.
#[test]
fn sam_text_is_not_named_bam() {
    let folder = scratch("named-bam");
    for name in ["x.bam", "x.CRAM"] {
        let out = folder.join(name);
        let ended = run(["run", "-o", out.to_str().expect("UTF-8"), "--", "bwa", "mem", "g.fa", "r1.fq", "r2.fq"]);
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains("the aligner writes SAM text, and not "), "{}", ended.stderr);
        assert!(!out.exists());
    }
}

/// Asserts that a counter has a number or says why it has none, and that a lower bound says so.
fn assert_counted(count: &Value) {
    let (number, note) = (count["value"].is_u64(), count["note"].is_string());
    assert!(number || note, "{count}");
    assert!(!number || !count["at_least"].as_bool().expect("a boolean") || note, "{count}");
}

#[test]
fn counters_of_instances_add_up() {
    if installed("bwa").is_none() {
        return;
    }
    let fixture = fixture();
    let folder = scratch("counters");
    fixture.shell("cp g.fa n.fa; bwa index n.fa");
    let run_with = |options: &[&str]| {
        let (out, json) = (folder.join("out.sam"), folder.join("out.json"));
        let output = genuma()
            .args(["run", "--strategy", "2xdefault", "--threads", "2", "-o"])
            .args([&out, Path::new("--json"), &json])
            .args(options)
            .args(["--", "bwa", "mem", "-t", "{threads}", "-K", "20000", "n.fa", "r1.fq", "r2.fq"])
            .current_dir(&fixture.folder)
            .output()
            .expect("genuma starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        let summary: Value = serde_json::from_slice(&fs::read(&json).expect("JSON")).expect("valid JSON");
        (without_programs(&fs::read(&out).expect("SAM")), summary["run"].clone(), said)
    };
    let (plain, without, quiet) = run_with(&[]);
    assert!(without["own_counters"].is_null() && without["instances"][0]["counters"].is_null(), "{without}");
    assert!(!quiet.contains("page faults"), "{quiet}");
    let (records, counted, said) = run_with(&["--counters"]);
    assert!(plain == records);
    for line in ["user CPU time, s", "CPU migrations", "minor page faults", "cycles", "memory on node 0"] {
        assert!(said.lines().any(|said| said.starts_with(&format!("genuma: {line}"))), "{line}: {said}");
    }
    let instances = counted["instances"].as_array().expect("instances");
    assert_eq!(instances.len(), 2);
    let mut cpu_s = 0.0;
    for counters in instances.iter().map(|instance| &instance["counters"]).chain([&counted["own_counters"]]) {
        for count in ["max_resident_bytes", "cpu_migrations", "disk_read_bytes", "disk_wait_ms", "cycles"] {
            assert_counted(&counters[count]);
        }
        for count in ["instructions", "llc_misses", "remote_loads", "disk_write_bytes"] {
            assert_counted(&counters[count]);
        }
        assert!(counters["minor_faults"].as_u64() > Some(50), "{counters}");
    }
    for counters in instances.iter().map(|instance| &instance["counters"]) {
        let seconds = |key: &str| counters[key].as_f64().expect("seconds");
        cpu_s += seconds("user_cpu_s") + seconds("system_cpu_s");
    }
    // The sum is in clock ticks of 10 ms.
    let all = counted["instances_cpu_s"].as_f64().expect("seconds");
    assert!((cpu_s - all).abs() < 0.1, "{cpu_s} {all}");
    for count in ["numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated"] {
        assert_counted(&counted["machine_counters"][count]);
    }
}

/// genuma with a program that it does not know, and what that program is given.
fn run_any(options: &[&str], script: &str, input: &str) -> (Option<i32>, String, String) {
    let mut child = genuma()
        .arg("run")
        .args(options)
        .args(["--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("genuma starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), input.as_bytes()).expect("input is read");
    let output = child.wait_with_output().expect("genuma ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn any_program_keeps_its_input_output_and_exit_code() {
    let json = scratch("any").join("any.json");
    let options = ["--strategy", "interleave", "--threads", "3", "--json", json.to_str().expect("UTF-8")];
    let (code, out, said) = run_any(&options, "cat; echo {threads} threads; echo complaint >&2; exit 3", "hello\n");
    assert_eq!((code, out.as_str()), (Some(3), "hello\n3 threads\n"), "{said}");
    assert!(said.contains("complaint\n") && said.contains("sh ended with exit code 3 after "), "{said}");
    assert!(!said.contains("error"), "{said}");
    let summary: Value = serde_json::from_slice(&fs::read(&json).expect("JSON")).expect("valid JSON");
    assert_eq!(summary["run"]["exit_code"], 3);
    assert!(summary["aligner"].is_null() && summary["run"]["reads"].is_null() && summary["reads_per_s"].is_null());
    assert_eq!((&summary["strategy"], &summary["run"]["instances"][0]["threads"]), (&"interleave".into(), &3.into()));

    let (code, _, said) = run_any(&[], "kill -KILL $$", "");
    assert!(code == Some(137) && said.contains("strategy default: genuma has no model of sh"), "{code:?} {said}");
    assert_eq!(run_any(&["-q"], "exit 0", ""), (Some(0), String::new(), String::new()));
}

#[test]
fn what_an_unknown_program_cannot_have_is_refused() {
    for (options, words) in [
        (&["--strategy", "4xbind"][..], "4xbind: genuma does not know true and cannot divide its input"),
        (&["-o", "x.bam"], "-o x.bam: genuma does not know true and passes its output on"),
        (&["--reference", "g.fa"], "--reference g.fa: genuma does not know true"),
        (&["--strategy", "fast"], "fast: not a strategy"),
    ] {
        let ended = run(["run"].into_iter().chain(options.iter().copied()).chain(["--", "true"]));
        assert!(ended.code == Some(2) && ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
    // A misspelt name is no question about reads or outputs.
    for command in [
        &["run", "--", "bwaa"][..],
        &["run", "-o", "x.sam", "--", "bwaa", "mem", "g.fa", "a.fq"],
        &["run", "--", "bwaa", "mem", "g.fa", "{reads}"],
        &["machine", "advise", "--", "bwaa", "mem", "g.fa", "a.fq", "b.fq"],
    ] {
        let ended = run(command);
        let words = "bwaa: no such program on PATH; install it or write its full path";
        assert!(ended.code == Some(1) && ended.stderr.contains(words), "{command:?}: {}", ended.stderr);
    }
    // A word of a template needs reads.
    let ended = run(["run", "--", "true", "{reads}"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("no reads are given: add --reads"), "{}", ended.stderr);
}

#[test]
fn signals_reach_any_program() {
    let script = "trap 'echo caught; exit 5' TERM; echo ready; while :; do sleep 0.05; done";
    let mut child =
        genuma().args(["run", "--", "sh", "-c", script]).stdout(Stdio::piped()).spawn().expect("genuma starts");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().expect("a pipe")));
    assert_eq!(lines.next().expect("a line").expect("text"), "ready");
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill starts");
    assert!(killed.success());
    assert_eq!(lines.next().expect("a line").expect("text"), "caught");
    assert_eq!(child.wait().expect("genuma ends").code(), Some(5));
}
