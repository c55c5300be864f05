//! Inputs of the test cases, which are created once.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use binseq::write::{BinseqWriterBuilder, Format};
use binseq::{BitSize, SequencingRecordBuilder};

/// Arguments of `genuma call` with the reads of the simulated sample pair, to which test cases add theirs.
pub(crate) const CALL_ARGS: &str = "call -t 2 --tumor {given}/pair/tumor_1.fq.gz {given}/pair/tumor_2.fq.gz \
    --normal {given}/pair/normal_1.fq.gz {given}/pair/normal_2.fq.gz";
/// Arguments of `genuma kmers count` with the reads of the simulated normal sample, to which test cases add theirs.
pub(crate) const COUNT_ARGS: &str =
    "kmers count -t 2 --sample n={given}/pair/normal_1.fq.gz,{given}/pair/normal_2.fq.gz";

/// An input of test cases. Paths are relative to the input folder, `{given}` in command lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TestInput {
    /// Simulated sample pair in `pair/`: 20 kbp, tumour and normal at 20x, with truth. Also `pair/old.txt`, and
    /// `bare/genome.fa`, the genome without indexes.
    SamplePair,
    /// `deep/normal_1.fq.gz` and its mates: reads of 300x, whose k-mers do not fit in the minimum memory budget.
    DeepReads,
    /// Index of genuma next to `pair/genome.fa`.
    Index,
    /// Index of bwa next to `pair/genome.fa`.
    BwaIndex,
    /// `n.gkt`, a k-mer table of the normal sample.
    NormalTable,
    /// `t.gkt`, a k-mer table of the tumour sample.
    TumourTable,
    /// `calls/`, the results of `genuma call` for the pair.
    Calls,
    /// `machine.txt`, a recording of this machine's topology.
    MachineRecording,
    /// `probe/machine.json`, a profile of this machine's memory.
    MachineProfile,
    /// Work folders of runs that failed when they wrote their results, and can be resumed: that of a call in
    /// `begun-call/calls`, and `begun-count/work` of a k-mer count.
    InterruptedWork,
    /// `planned/run`, the run store of a distributed call in which all steps but the last are done.
    PlannedRun,
    /// `stub`, a script that stands for an aligner and writes unmapped records.
    StubAligner,
    /// Genes, targets, known variants and signatures for the genome of the pair: `genes.gff3`, `targets.bed`, `known.vcf`
    /// and `signatures.tsv`.
    Annotation,
    /// `n.gkd`, the dictionary of `n.gkt`.
    NormalDictionary,
    /// `p.gkt`, a panel of normals with the normal of the pair.
    NormalPanel,
    /// The reads of the pair as `tumor` and `normal` with the suffixes `.bam`, `.cram` and `.cbq`.
    AlignedReads,
    /// Valid files that replace inputs while a command runs: `masked.fa`, the genome with a masked line; `other/`, the
    /// first reads of the pair as FASTQ, `other/tumor.bam`, `other/normal.bam` and `other/normal.cram`.
    ReplacementInputs,
}

/// Number of reads in each FASTQ file of the replacements; those of the pair have some 1,300.
const REPLACEMENT_READS: usize = 1200;

/// The steps of a distributed call with two shards and two partitions, without the last one.
const STEPS_BUT_LAST: [&str; 11] = [
    "scatter 1",
    "scatter 2",
    "count 1",
    "count 2",
    "pick",
    "label 1",
    "label 2",
    "assemble",
    "place",
    "recruit 1",
    "recruit 2",
];

const STUB_SCRIPT: &str = r#"#!/usr/bin/awk -f
BEGIN { OFS = "\t"; print "@SQ", "SN:c", "LN:9"; print "@PG", "ID:stub" }
NR % 4 == 1 { name = substr($1, 2) }
NR % 4 == 2 { print name, 4, "*", 0, 0, "*", "*", 0, 0, $1, "*" }
"#;

const GENES: &str = "##gff-version 3\n\
    chr1\tmade\tgene\t1001\t7000\t.\t+\t.\tID=gene:g1;Name=G1;biotype=protein_coding\n\
    chr1\tmade\tmRNA\t1001\t7000\t.\t+\t.\tID=transcript:t1;Parent=gene:g1;biotype=protein_coding\n\
    chr1\tmade\texon\t1001\t3000\t.\t+\t.\tParent=transcript:t1\n\
    chr1\tmade\texon\t5001\t7000\t.\t+\t.\tParent=transcript:t1\n\
    chr1\tmade\tCDS\t1001\t3000\t.\t+\t0\tParent=transcript:t1\n\
    chr1\tmade\tCDS\t5001\t6001\t.\t+\t1\tParent=transcript:t1\n";

impl TestInput {
    /// Returns the other inputs from which this input is created.
    fn required_inputs(self) -> &'static [TestInput] {
        match self {
            TestInput::SamplePair
            | TestInput::DeepReads
            | TestInput::MachineRecording
            | TestInput::MachineProfile
            | TestInput::StubAligner => &[],
            TestInput::InterruptedWork
            | TestInput::PlannedRun
            | TestInput::Calls
            | TestInput::Index
            | TestInput::BwaIndex
            | TestInput::NormalTable
            | TestInput::TumourTable
            | TestInput::Annotation => &[TestInput::SamplePair],
            TestInput::NormalDictionary | TestInput::NormalPanel => &[TestInput::NormalTable],
            TestInput::AlignedReads | TestInput::ReplacementInputs => &[TestInput::SamplePair, TestInput::Index],
        }
    }

    fn create_input(self, program: &Path, given: &Path) -> anyhow::Result<()> {
        let genuma =
            |line: &str| run_checked(Command::new(program).args(split_and_fill_command_line(line, given, given)));
        let reference = "--reference {given}/pair/genome.fa";
        let align = |folder: &str, sample: &str, out: &str| {
            let reads = format!("{{given}}/{folder}/{sample}_1.fq.gz {{given}}/{folder}/{sample}_2.fq.gz");
            genuma(&format!("align -t 2 {{given}}/pair/genome.fa {reads} -o {{given}}/{out}"))
        };
        match self {
            TestInput::SamplePair => {
                genuma(
                    "bench simulate --genome-length 20000 --contigs 2 --snvs 6 --indels 4 --svs 2 --largest-sv 500 \
                     --germline-svs 1 --depth-tumor 20 --depth-normal 20 -t 2 -o {given}/pair",
                )?;
                fs::write(given.join("pair/old.txt"), "what was there before\n")?;
                fs::create_dir_all(given.join("bare"))?;
                fs::copy(given.join("pair/genome.fa"), given.join("bare/genome.fa"))?;
                Ok(())
            }
            TestInput::DeepReads => genuma(
                "bench simulate --genome-length 20000 --contigs 2 --snvs 0 --indels 0 --svs 0 --germline-svs 0 --depth-tumor 1 \
                 --depth-normal 300 -t 2 -o {given}/deep",
            ),
            TestInput::Index => genuma("index -t 2 {given}/pair/genome.fa"),
            TestInput::BwaIndex => run_checked(Command::new("bwa").arg("index").arg(given.join("pair/genome.fa"))),
            TestInput::NormalTable => genuma(&format!("{COUNT_ARGS} -o {{given}}/n.gkt")),
            TestInput::TumourTable => genuma(
                "kmers count -t 2 --sample t={given}/pair/tumor_1.fq.gz,{given}/pair/tumor_2.fq.gz -o {given}/t.gkt",
            ),
            TestInput::Calls => genuma(&format!("{CALL_ARGS} {reference} -o {{given}}/calls")),
            TestInput::MachineRecording => genuma("machine show --record {given}/machine.txt"),
            TestInput::MachineProfile => genuma("machine measure --quick --force -o {given}/probe"),
            // Units stay in the work folder if the run is killed or fails. Here the output cannot be created.
            TestInput::InterruptedWork => interrupt_call_and_count(genuma, given),
            TestInput::PlannedRun => {
                let plan = "--plan {given}/planned/run --shards 2 --partitions 2";
                genuma(&format!("{CALL_ARGS} {reference} {plan} -o {{given}}/planned/calls"))?;
                STEPS_BUT_LAST.iter().try_for_each(|step| genuma(&format!("step {{given}}/planned/run {step}")))
            }
            TestInput::Annotation => {
                fs::write(given.join("genes.gff3"), GENES)?;
                fs::write(given.join("targets.bed"), "chr1\t500\t9500\nchr2\t500\t6000\n")?;
                fs::write(given.join("signatures.tsv"), format_test_signature_matrix())?;
                Ok(fs::copy(given.join("pair/germline.vcf"), given.join("known.vcf")).map(drop)?)
            }
            TestInput::NormalDictionary => genuma("kmers compact {given}/n.gkt -o {given}/n.gkd"),
            TestInput::NormalPanel => genuma("kmers union --counts samples {given}/n.gkt -o {given}/p.gkt"),
            TestInput::AlignedReads => ["tumor", "normal"].iter().try_for_each(|sample| {
                align("pair", sample, &format!("{sample}.bam"))?;
                align("pair", sample, &format!("{sample}.cram"))?;
                let mates = [1, 2].map(|mate| given.join(format!("pair/{sample}_{mate}.fq.gz")));
                write_cbq(&given.join(format!("{sample}.cbq")), &mates)
            }),
            TestInput::ReplacementInputs => {
                write_replacement_reads(given)?;
                align("other", "tumor", "other/tumor.bam")?;
                align("other", "normal", "other/normal.bam")?;
                align("other", "normal", "other/normal.cram")?;
                write_masked_genome(given)
            }
            TestInput::StubAligner => {
                fs::write(given.join("stub"), STUB_SCRIPT)?;
                Ok(fs::set_permissions(given.join("stub"), fs::Permissions::from_mode(0o755))?)
            }
        }
    }
}

/// Writes the first reads of the pair to `other/`.
fn write_replacement_reads(given: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(given.join("other"))?;
    for name in ["tumor_1", "tumor_2", "normal_1", "normal_2"] {
        let text = gunzip(&given.join(format!("pair/{name}.fq.gz")))?;
        let lines = text.split_inclusive('\n').take(4 * REPLACEMENT_READS);
        // Without compression; genuma knows formats by their first bytes.
        fs::write(given.join(format!("other/{name}.fq.gz")), lines.collect::<String>())?;
    }
    Ok(())
}

/// Writes `masked.fa`, the genome with a line of N.
fn write_masked_genome(given: &Path) -> anyhow::Result<()> {
    let genome = fs::read_to_string(given.join("bare/genome.fa"))?;
    let masked = genome.lines().enumerate().map(|(i, line)| match i {
        20 => "N".repeat(line.len()) + "\n",
        _ => line.to_owned() + "\n",
    });
    Ok(fs::write(given.join("masked.fa"), masked.collect::<String>())?)
}

/// Runs a call and a count that fail when they write their results, so that their work folders stay.
fn interrupt_call_and_count(genuma: impl Fn(&str) -> anyhow::Result<()>, given: &Path) -> anyhow::Result<()> {
    let begun = given.join("begun-call/calls");
    fs::create_dir_all(begun.join("summary.json/taken"))?;
    let failed = genuma(&format!("{CALL_ARGS} --reference {{given}}/pair/genome.fa -o {{given}}/begun-call/calls"));
    ensure!(failed.is_err(), "a call into a folder whose summary.json is a folder was to fail");
    fs::remove_dir_all(begun.join("summary.json"))?;
    fs::create_dir_all(given.join("begun-count/n.gkt/taken"))?;
    fs::create_dir_all(given.join("begun-count/work"))?;
    let line = "--resume --work {given}/begun-count/work -o {given}/begun-count/n.gkt";
    ensure!(genuma(&format!("{COUNT_ARGS} {line}")).is_err(), "a count into a folder was to fail");
    fs::remove_dir_all(given.join("begun-count/n.gkt"))?;
    Ok(())
}

/// Returns the content of a gzipped text file.
fn gunzip(path: &Path) -> anyhow::Result<String> {
    let output = Command::new("gzip").arg("-dc").arg(path).output()?;
    ensure!(output.status.success(), "gzip -dc {}", path.display());
    Ok(String::from_utf8(output.stdout)?)
}

/// Writes the pairs in two gzipped FASTQ files as a CBQ file.
fn write_cbq(path: &Path, mates: &[PathBuf; 2]) -> anyhow::Result<()> {
    let texts = [gunzip(&mates[0])?, gunzip(&mates[1])?];
    let [first, second] = texts.each_ref().map(|text| text.lines().collect::<Vec<_>>());
    let builder = BinseqWriterBuilder::new(Format::Cbq).paired(true).bitsize(BitSize::Four);
    let mut writer = builder.quality(true).headers(true).compression(true).build(File::create(path)?)?;
    for (a, b) in first.chunks(4).zip(second.chunks(4)) {
        let name = |line: &str| line.trim_start_matches('@').as_bytes().to_vec();
        let (a_name, b_name) = (name(a[0]), name(b[0]));
        let record =
            SequencingRecordBuilder::default().s_header(&a_name).s_seq(a[1].as_bytes()).s_qual(a[3].as_bytes());
        let record = record.x_header(&b_name).x_seq(b[1].as_bytes()).x_qual(b[3].as_bytes());
        writer.push(record.build()?)?;
    }
    Ok(writer.finish()?)
}

/// Creates the inputs `wanted`, and those that they need, in the folder `given`.
///
/// # Errors
/// A command that creates an input fails. The message contains its standard error.
pub(crate) fn create_test_inputs(mut wanted: BTreeSet<TestInput>, program: &Path, given: &Path) -> anyhow::Result<()> {
    // Two rounds resolve the deepest dependencies.
    for _ in 0..2 {
        wanted.extend(wanted.clone().into_iter().flat_map(|given| given.required_inputs()));
    }
    fs::create_dir_all(given)?;
    wanted.into_iter().try_for_each(|one| one.create_input(program, given).with_context(|| format!("{one:?}")))
}

fn run_checked(command: &mut Command) -> anyhow::Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Returns a matrix of signatures in the format of COSMIC: C>T only, all other substitutions, and T>G only.
pub fn format_test_signature_matrix() -> String {
    let mut matrix = String::from("Type\tSBS-CT\tSBS-other\tSBS-TG\n");
    for (from, tos) in [('C', "AGT"), ('T', "ACG")] {
        for to in tos.chars() {
            for around in 0..16 {
                let [before, after] = [around / 4, around % 4].map(|at| char::from(b"ACGT"[at]));
                let is = |change: (char, char)| (from, to) == change;
                let shares = [is(('C', 'T')), !is(('C', 'T')), is(('T', 'G'))].map(f64::from);
                let numbers = [shares[0] / 16.0, shares[1] / 80.0, shares[2] / 16.0];
                let [ct, other, tg] = numbers;
                matrix += &format!("{before}[{from}>{to}]{after}\t{ct}\t{other}\t{tg}\n");
            }
        }
    }
    matrix
}

/// Splits a command line at blanks, and replaces `{given}` and `{made}` by the paths of the input and the output
/// folder.
pub(crate) fn split_and_fill_command_line(line: &str, given: &Path, made: &Path) -> Vec<String> {
    let folder = |path: &Path| path.to_string_lossy().into_owned();
    let word = |word: &str| word.replace("{given}", &folder(given)).replace("{made}", &folder(made));
    line.split_whitespace().map(word).collect()
}
