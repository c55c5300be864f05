//! UMIs in read names, in tags of BAM and CRAM files, and in the bases of the reads give the same calls and the same
//! tracked molecules. Reads without mates are called.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use genuma_reads::dna::reverse_complement;

use crate::common::{
    Data, assert_same, bgzip, gunzip, gzip, installed, json, records, run, run_all_steps, scratch, text,
};

/// A read pair: name without UMI, UMI, bases of both mates.
struct UmiPair {
    name: String,
    umi: &'static str,
    mates: [String; 2],
}

/// A genome of 2000 bases, and pairs of a normal and of a tumour: five molecules at each of 60 positions, all with the
/// same ends and with two pairs each. One of five molecules of the tumour has a changed base at position 1001.
struct Molecules {
    reference: PathBuf,
    change: [char; 2],
    normal: Vec<UmiPair>,
    tumour: Vec<UmiPair>,
}

impl Molecules {
    fn new(folder: &Path) -> Molecules {
        let mut x = 17u64;
        let mut base = || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 62) as usize
        };
        let genome: Vec<u8> = (0..2000).map(|_| b"ACGT"[base()]).collect();
        let mut changed = genome.clone();
        changed[1000] = if genome[1000] == b'A' { b'C' } else { b'A' };
        let text = |seq: &[u8]| String::from_utf8(seq.to_vec()).expect("bases");
        let pairs = |has_change: bool| {
            let mut pairs = Vec::new();
            for start in (700..1300).step_by(10) {
                for copy in 0..10 {
                    let own = if has_change && copy % 5 == 0 { &changed } else { &genome };
                    let fragment = &own[start - 200..start + 100];
                    pairs.push(UmiPair {
                        name: format!("A1:1:FC:1:{has_change}:{start}:{copy}"),
                        umi: ["ACGTAC", "CCGTAA", "TTGCAC", "GAGATC", "TGTGTG"][copy % 5],
                        mates: [text(&fragment[..120]), text(&reverse_complement(&fragment[180..]))],
                    });
                }
            }
            pairs
        };
        let reference = folder.join("genome.fa");
        fs::write(&reference, format!(">chr1\n{}\n", text(&genome))).expect("a reference");
        let change = [genome[1000], changed[1000]].map(char::from);
        Molecules { reference, change, normal: pairs(false), tumour: pairs(true) }
    }

    /// The samples in files that `write` makes: a name of the sample and its pairs.
    fn data(&self, folder: &Path, write: impl Fn(&str, &[UmiPair]) -> Vec<PathBuf>) -> Data {
        Data {
            folder: folder.to_path_buf(),
            tumor: write("tumor", &self.tumour),
            normal: write("normal", &self.normal),
            reference: Some(self.reference.clone()),
        }
    }

    /// The samples as FASTQ files with a name and bases of each read from `record`.
    fn fastq(&self, folder: &Path, record: impl Fn(&UmiPair, usize) -> [String; 2]) -> Data {
        fs::create_dir_all(folder).expect("a folder");
        self.data(folder, |sample, pairs| {
            let write = |mate: usize| {
                let mut fastq = String::new();
                for pair in pairs {
                    let [name, seq] = record(pair, mate);
                    writeln!(fastq, "@{name}\n{seq}\n+\n{}", "I".repeat(seq.len())).expect("memory");
                }
                bgzip(folder.join(format!("{sample}_{}.fq.gz", mate + 1)), fastq.as_bytes())
            };
            vec![write(0), write(1)]
        })
    }

    fn with_names(&self, folder: &Path) -> Data {
        self.fastq(&folder.join("names"), |pair, mate| {
            [format!("{}:{}", pair.name, pair.umi), pair.mates[mate].clone()]
        })
    }

    /// The UMI is before read 1, with a skipped base.
    fn with_bases(&self, folder: &Path) -> Data {
        self.fastq(&folder.join("bases"), |pair, mate| {
            let prefix = if mate == 0 { format!("{}T", pair.umi) } else { String::new() };
            [pair.name.clone(), prefix + &pair.mates[mate]]
        })
    }

    /// Unaligned BAM or CRAM with the tag RX, written by samtools.
    fn with_tags(&self, folder: &Path, format: &str) -> Data {
        self.data(folder, |sample, pairs| {
            let mut sam = "@HD\tVN:1.6\tSO:unsorted\n@SQ\tSN:chr1\tLN:2000\n".to_owned();
            for pair in pairs {
                for (seq, flags) in pair.mates.iter().zip([77, 141]) {
                    let (name, qual) = (&pair.name, "I".repeat(seq.len()));
                    let tags = format!("NM:i:300\tRX:Z:{}", pair.umi);
                    writeln!(sam, "{name}\t{flags}\t*\t0\t0\t*\t*\t0\t0\t{seq}\t{qual}\t{tags}").expect("memory");
                }
            }
            let (from, to) = (folder.join("reads.sam"), folder.join(format!("{sample}.{format}")));
            fs::write(&from, sam).expect("a file");
            let mut samtools = Command::new("samtools");
            samtools.args(["view", "-O", format, "--output-fmt-option", "no_ref=1", "-o", text(&to), text(&from)]);
            assert!(samtools.status().expect("samtools").success());
            vec![to]
        })
    }
}

const INLINE: [&str; 3] = ["--umi", "6M1S+T", "+T"];

/// The records of the VCF in a folder of results.
fn vcf_records(out: &Path) -> Vec<String> {
    let vcf = String::from_utf8(gunzip(&out.join("somatic.vcf.gz"))).expect("UTF-8");
    vcf.lines().filter(|line| !line.starts_with("##")).map(str::to_owned).collect()
}

/// Counts of the ledger lines that contain `text`.
fn ledger_counts(out: &Path, text: &str) -> Vec<u64> {
    let summary = json(&out.join("summary.json"));
    let lines = summary["stages"].as_array().expect("lines").iter();
    let lines = lines.filter(|line| line["description"].as_str().expect("words").contains(text));
    lines.map(|line| line["count"].as_u64().expect("a number")).collect()
}

#[test]
fn umis_of_names_tags_and_bases_give_the_same_calls() {
    let folder = scratch("calls");
    let molecules = Molecules::new(&folder);
    let call = |data: &Data, name: &str, options: &[&str]| {
        let out = folder.join(name);
        run(data.call_with(&out, options)).assert_success();
        out
    };
    let expected = call(&molecules.with_names(&folder), "by-names", &[]);
    let records = vcf_records(&expected);
    let record = records.iter().find(|line| line.starts_with("chr1\t1001\t")).expect("a record");
    // The last column is the tumour: GT and AD are its first values.
    let values: Vec<&str> = record.split('\t').next_back().expect("a sample").split(':').collect();
    let format: Vec<&str> = record.split('\t').nth(8).expect("FORMAT").split(':').collect();
    let ad = values[format.iter().position(|key| *key == "AD").expect("AD")];
    let [unchanged, changed]: [u32; 2] =
        ad.split(',').map(|n| n.parse().expect("a number")).collect::<Vec<_>>().try_into().expect("two alleles");
    assert!(changed >= 8 && (3 * changed..=5 * changed).contains(&unchanged), "{record}");

    let data = molecules.with_bases(&folder);
    let inline = call(&data, "by-bases", &INLINE);
    assert_eq!(vcf_records(&inline), records);
    assert_eq!(ledger_counts(&inline, "reads whose UMI was taken"), [1200, 1200]);
    // The normal has other structures, which skip the UMI of the tumour.
    let other = call(&data, "no-umis", &["--umi", "7S4M+T", "--normal-umi", "7S+T", "+T"]);
    assert_ne!(vcf_records(&other), records);
    // In parts.
    let (store, out) = (folder.join("run"), folder.join("parts"));
    let options = [&INLINE[..], &["--plan", text(&store), "--shards", "2", "--partitions", "2"]].concat();
    run(data.call_with(&out, &options)).assert_success();
    run_all_steps(text(&store), [2, 2], &folder);
    assert_same(&out, &inline);

    if installed("samtools").is_none() {
        return;
    }
    for format in ["bam", "cram"] {
        let out = call(&molecules.with_tags(&folder, format), format, &[]);
        assert_eq!(vcf_records(&out), records, "{format}");
        assert_eq!(ledger_counts(&out, "reads whose UMI was taken"), [1200, 1200]);
    }
}

#[test]
fn umis_of_names_tags_and_bases_give_the_same_tracked_molecules() {
    let folder = scratch("track");
    let molecules = Molecules::new(&folder);
    let [reference, changed] = molecules.change;
    let vcf = folder.join("known.vcf");
    fs::write(
        &vcf,
        format!(
            "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\nchr1\t1001\t.\t{reference}\t{changed}\t.\tPASS\t.\n"
        ),
    )
    .expect("a file");
    let track = |data: &Data, name: &str, options: &[&str]| {
        let out = folder.join(name);
        let mut args = vec!["track", text(&vcf)];
        args.extend(data.tumor.iter().map(|path| text(path)));
        args.extend(["--normal"].into_iter().chain(data.normal.iter().map(|path| text(path))));
        args.extend(["--reference", text(&molecules.reference), "--json", text(&out)].iter().chain(options));
        run(args).assert_success();
        json(&out)["samples"].clone()
    };
    let expected = track(&molecules.with_names(&folder), "names.json", &[]);
    let change = &expected[0]["changes"][0];
    let [with, all] = ["changed", "molecules"].map(|key| change[key].as_u64());
    let (with, all) = (with.expect("a number"), all.expect("a number"));
    assert!(with >= 8 && (4 * with..=6 * with).contains(&all), "{change}");
    assert_eq!(track(&molecules.with_bases(&folder), "bases.json", &INLINE), expected);
    if installed("samtools").is_some() {
        assert_eq!(track(&molecules.with_tags(&folder, "bam"), "bam.json", &[]), expected);
    }
}

#[test]
fn read_structures_that_do_not_fit_are_refused_or_reported() {
    let folder = scratch("structures");
    let data = Molecules::new(&folder).with_bases(&folder);
    let out = folder.join("out");
    for (options, message) in [
        (&["--umi", "6M"][..], "'6M' is not a read structure such as 3M1S+T: it has no template (T)"),
        (&["--umi", "8B6M+T"], "demultiplex the reads first"),
        (&["--umi", "3M+T", "+T"], "--umi: the structures have 3 UMI bases (M): at least 4 are needed"),
        (&["--umi", "6M+T,+T", "--normal-umi", "2M+T,+T"], "--normal-umi: the structures have 2 UMI bases"),
        (&["--umi", "6M+T,+T,+T"], "--umi"),
        (&["--umi", "6M+T,+T", "--single"], "reads of --single have no mates: give one structure"),
        (&["--normal-umi", "6M+T"], "--umi"),
    ] {
        let refused = run(data.call_with(&out, options));
        assert_eq!(refused.code, Some(2), "{options:?}");
        assert!(refused.stderr.contains(message), "{options:?}: {}", refused.stderr);
    }
    // One read of the tumour is too short.
    let mut all = gunzip(&data.tumor[0]);
    all.extend(b"@short\nACGT\n+\nIIII\n");
    let first = gzip(folder.join("short_1.fq.gz"), &all);
    let mut all = gunzip(&data.tumor[1]);
    all.extend(b"@short\nACGT\n+\nIIII\n");
    let data = Data { tumor: vec![first, gzip(folder.join("short_2.fq.gz"), &all)], ..data };
    let done = run(data.call_with(&out, &INLINE)).assert_success();
    assert!(
        done.stderr.contains("1 reads shorter than their read structure, left out with their mates (such as short)"),
        "{}",
        done.stderr
    );
    assert_eq!(ledger_counts(&out, "shorter than their read structure"), [1]);
}

/// Variants of a VCF text that passed: contig, position, reference and alternative bases.
fn passed(lines: impl Iterator<Item = String>) -> BTreeSet<[String; 4]> {
    let fields = lines.filter(|line| !line.starts_with('#')).map(|line| line.split('\t').map(str::to_owned).collect());
    let passed = fields.filter(|fields: &Vec<String>| fields[6] == "PASS");
    passed.map(|fields| [0, 1, 3, 4].map(|i| fields[i].clone())).collect()
}

#[test]
fn reads_without_mates_are_called() {
    let data = Data::simulate(
        "single",
        &[
            &["--genome-length", "300000", "--snvs", "60", "--indels", "20", "--svs", "0", "--seed", "21"][..],
            // Half of the reads are used: 60x and 30x.
            &["--depth-tumor", "120", "--depth-normal", "60", "--purity", "0.8"],
        ]
        .concat(),
    );
    let single = Data { tumor: vec![data.tumor[0].clone()], normal: vec![data.normal[0].clone()], ..data.clone() };
    let out = data.folder.join("calls");
    let refused = run(single.call(&out));
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("has no mate file") && refused.stderr.contains("--single"), "{}", refused.stderr);
    run(single.call_with(&out, &["--single-end"])).assert_success();
    let truth =
        passed(fs::read_to_string(data.folder.join("truth.vcf")).expect("the truth").lines().map(str::to_owned));
    let called = passed(vcf_records(&out).into_iter());
    let is_snv = |variant: &&[String; 4]| variant[2].len() == 1 && variant[3].len() == 1;
    let (all, found) = (truth.iter().filter(is_snv).count(), truth.intersection(&called).filter(is_snv).count());
    assert!(all >= 50 && found * 100 >= all * 90, "{found} of {all}");
    assert!(called.difference(&truth).count() <= 2, "{:?}", called.difference(&truth));
    // Statistics that need mates are unknown, not wrong.
    let library = &json(&out.join("summary.json"))["library"]["tumor"];
    assert!(
        library["duplicates"]["share"].is_null() && library["insert"]["overlapping_share"]["value"] == 0.0,
        "{library}"
    );
    let samtools = installed("samtools").map(|_| {
        let bam = out.join("supporting.bam");
        let all = Command::new("samtools").args(["view", text(&bam)]).output().expect("samtools");
        String::from_utf8(all.stdout).expect("UTF-8")
    });
    for record in samtools.iter().flat_map(|sam| sam.lines()) {
        let flags: u16 = record.split('\t').nth(1).expect("flags").parse().expect("a number");
        assert_eq!(flags & 0x1, 0, "{record}");
    }
    assert_eq!(records(&gunzip(&single.tumor[0])).len() as u64, ledger_counts(&out, "tumour: pairs read")[0]);
}
