//! Typical mistakes of users: none is silent, and the messages say what to do.

use std::fs;
use std::path::Path;

use crate::common::{RunOutput, data, genuma, gunzip, gzip, scratch};

/// A mistake: its name, the command (`PAIR` and `NORMAL` stand for good options, see [`full_command`]), the exit code,
/// words of the cause, and words of the advice (empty without advice).
type Mistake = (&'static str, &'static str, i32, &'static str, &'static str);

const MISTAKES: [Mistake; 92] = [
    // Files of reads.
    (
        "reads not there",
        "call --tumor no_1.fq no_2.fq NORMAL",
        1,
        "no_1.fq: cannot read: No such file",
        "check the path",
    ),
    ("one file of a pair", "call --tumor t_1.fq NORMAL", 2, "t_1.fq: has no mate file", "or add --interleaved"),
    ("one file of a pair, check", "check --tumor t_1.fq --normal n_1.fq n_2.fq", 2, "has no mate file", "--single"),
    ("one file of a pair, plan", "plan --tumor t_1.fq --normal n_1.fq n_2.fq", 2, "has no mate file", "--single"),
    ("read 1 twice", "call --tumor t_1.fq t_1.fq NORMAL", 1, "are the same reads", "give each file once"),
    ("tumour as normal", "call --tumor n_1.fq n_2.fq NORMAL", 1, "are the same reads", "give each file once"),
    (
        "tumour as normal, check",
        "check --tumor t_1.fq t_2.fq --normal t_1.fq t_2.fq",
        1,
        "the same reads",
        "each file once",
    ),
    ("a copy of the reads", "call --tumor copy_1.fq n_2.fq NORMAL", 1, "are the same reads", "give each file once"),
    ("read 2 first", "call --tumor t_2.fq t_1.fq NORMAL", 1, "is read 2", "give the files in the order read 1, read 2"),
    (
        "mates of another sample",
        "align genome.fa t_1.fq n_2.fq -o x.sam",
        1,
        "has mate",
        "mates must come in the same order",
    ),
    (
        "all read 1, then all read 2",
        "call --tumor t_1.fq n2_1.fq t_2.fq n2_2.fq NORMAL",
        1,
        "has mate",
        "in the same order",
    ),
    ("mates in another order", "call --tumor t_1.fq order_2.fq NORMAL", 1, "has mate", "in the same order"),
    (
        "mates missing",
        "call --tumor t_1.fq short_2.fq NORMAL",
        1,
        "short_2.fq: ends after 500 records",
        "give files that have the same",
    ),
    ("not interleaved", "call --interleaved PAIR", 1, "has mate", "in the same order"),
    (
        "mates as single reads",
        "call --single PAIR",
        0,
        "n_1.fq and n_2.fq: have reads of the same names",
        "omit --single",
    ),
    (
        "mates as single reads, align",
        "align genome.fa --single t_1.fq t_2.fq -o x.sam",
        1,
        "have reads of the same names",
        "omit --single",
    ),
    (
        "Phred+64",
        "call --tumor old_1.fq old_2.fq NORMAL",
        0,
        "old_1.fq: qualities seem to be in Phred+64",
        "seqtk seq -Q64 -V",
    ),
    (
        "Phred+64, count",
        "kmers count old_1.fq -o x.gkt",
        0,
        "old_1.fq: qualities seem to be in Phred+64",
        "seqtk seq -Q64 -V",
    ),
    (
        "empty files",
        "call --tumor empty_1.fq empty_2.fq NORMAL",
        1,
        "empty_1.fq: is empty",
        "give a file with at least one record",
    ),
    ("empty file, count", "kmers count empty_1.fq -o x.gkt", 1, "empty_1.fq: is empty", "give a file with"),
    (
        "an empty lane",
        "kmers count t_1.fq empty_1.fq -o x.gkt",
        0,
        "empty_1.fq: no reads in this lane",
        "check that it should",
    ),
    ("cut download", "call --tumor cut.fq.gz t_2.fq NORMAL", 1, "the gzip data end too early", "copy or make it again"),
    (
        "cut text",
        "call --tumor half_1.fq t_2.fq NORMAL",
        1,
        "half_1.fq: record 100: the file ends inside",
        "copy or make it again",
    ),
    (
        "page of a login",
        "call --tumor page.fq.gz t_2.fq NORMAL",
        1,
        "is an HTML page, not FASTQ",
        "download the file again",
    ),
    ("git-lfs pointer", "call --tumor lfs.fq.gz t_2.fq NORMAL", 1, "is a pointer of git-lfs", "git lfs pull"),
    ("compressed twice", "call --tumor twice.fq.gz t_2.fq NORMAL", 1, "is compressed with gzip twice", "gzip -d"),
    (
        "FASTA as reads",
        "call --tumor genome.fa t_2.fq NORMAL",
        1,
        "genome.fa: is a FASTA file",
        "give reads with qualities",
    ),
    ("reference among the reads", "align t_1.fq t_2.fq genome.fa -o x.sam", 1, "has mate", "in the same order"),
    // Options that describe reads and samples.
    ("no normal, no reference", "call --tumor t_1.fq t_2.fq -o out", 2, "--normal", "needs --reference in its place"),
    ("no normal for check", "check --tumor t_1.fq t_2.fq", 2, "--normal", "--help"),
    ("UMI without template", "call --umi 3M PAIR", 2, "it has no template (T)", "such as 3M1S+T"),
    ("UMI too long", "call --umi 300M+T PAIR", 2, "'300M+T' is not a read structure", "have 1 to 100 bases"),
    ("UMI of an unknown letter", "call --umi 3X+T PAIR", 2, "'3X+T' is not a read structure", "such as 3M1S+T"),
    ("space in a name", "call --tumor-name a\u{a0}b PAIR", 2, "invalid value 'a b'", "use letters, digits"),
    ("slash in a name", "call --tumor-name A/B PAIR", 2, "invalid value 'A/B'", "use letters, digits"),
    (
        "one name for both",
        "call --tumor-name A --normal-name A PAIR",
        2,
        "two samples have the name A",
        "rename one of them",
    ),
    ("unknown assay", "call --assay wes PAIR", 2, "invalid value 'wes'", "possible values"),
    ("read group without ID", "align genome.fa t_1.fq t_2.fq -R SM:x -o x.sam", 2, "has no ID", "give the ID too"),
    (
        "two read groups for one lane",
        "align genome.fa t_1.fq t_2.fq -R ID:a -R ID:b -o x.sam",
        2,
        "2 read groups for 1 lane",
        "give one -R",
    ),
    // References, and files that belong to one.
    (
        "reference not there",
        "call --tumor t_1.fq t_2.fq --normal n_1.fq n_2.fq -o out --reference no.fa",
        1,
        "no.fa: cannot read",
        "check the path",
    ),
    ("reference misspelt", "index no.fa", 1, "no.fa: cannot read: No such file", "check the path"),
    ("VCF as reference", "index other.vcf", 1, "is a VCF file", "give the file with the sequences"),
    ("FASTQ as reference", "index t_1.fq", 1, "instead of '>': not a FASTA file", "give FASTA"),
    (".fai as reference", "index genome.fa.fai", 1, "instead of '>': not a FASTA file", "give FASTA"),
    ("no index", "align genome.fa t_1.fq t_2.fq -o x.sam", 1, "genome.fa.gnm: no index", "genuma index genome.fa"),
    (
        "targets beyond the end",
        "call --targets beyond.bed PAIR",
        1,
        "is beyond contig \"chr1\"",
        "of the reference's genome build",
    ),
    (
        "targets without chr",
        "call --targets nochr.bed PAIR",
        1,
        "the reference has no contig \"1\"",
        "rename the contigs",
    ),
    ("empty targets", "call --targets empty_1.fq PAIR", 1, "empty_1.fq: is empty", "give a file with"),
    ("VCF as targets", "call --targets other.vcf PAIR", 1, "other.vcf: line 2", "give a whole number"),
    ("FASTA as targets", "call --targets genome.fa PAIR", 1, "has fewer than 3 columns", "give BED"),
    (
        "known variants of another build",
        "call --known other.vcf PAIR",
        1,
        "none of the reference",
        "rename its contigs",
    ),
    ("BED as known variants", "call --known nochr.bed PAIR", 1, "not a VCF file", "give VCF, plain or compressed"),
    ("known variants not there", "call --known no.vcf PAIR", 1, "no.vcf: cannot read", "check the path"),
    (
        "genes of another build",
        "call --gff other.gff3 PAIR",
        1,
        "no contig of the file is in the reference",
        "of the same assembly",
    ),
    ("VCF as genes", "call --gff other.vcf PAIR", 1, "no GFF3 feature", "9 columns separated by tabs"),
    ("genes not there", "call --gff no.gff3 PAIR", 1, "no.gff3: cannot read", "check the path"),
    ("panel not there", "call --panel no.gkt PAIR", 1, "no.gkt: cannot open", "check the path"),
    (
        "VCF as panel",
        "call --panel other.vcf PAIR",
        1,
        "other.vcf: is not a genuma table",
        "give a table that genuma wrote",
    ),
    // Numbers.
    ("threads in words", "call --threads all PAIR", 2, "invalid value 'all' for '--threads", "--help"),
    ("no threads", "call --threads 0 PAIR", 2, "0 is not in 1..=4096", "--help"),
    ("memory without a unit", "call --memory 8 PAIR", 2, "8 bytes of memory is too little", "such as 8G"),
    ("memory in an unknown unit", "call --memory 16X PAIR", 2, "'16X' is not a size", "such as 8G"),
    (
        "little memory",
        "call --memory 100M --threads 64 PAIR",
        2,
        "of memory is too little",
        "raise --memory or lower --threads",
    ),
    ("k too high", "call -k 40 PAIR", 2, "40 is not in 17..=32", "--help"),
    ("quality in words", "call --min-quality high PAIR", 2, "invalid value 'high'", "give a number from 0 to 1000"),
    // Outputs.
    ("no output folder", "call --tumor t_1.fq t_2.fq --normal n_1.fq n_2.fq", 2, "required", "--help"),
    (
        "a file as output folder",
        "call --tumor t_1.fq t_2.fq --normal n_1.fq n_2.fq -o genome.fa",
        1,
        "genome.fa: is not a folder",
        "give the name of",
    ),
    (
        "work folder with inputs",
        "call --work . PAIR",
        2,
        "is in the work folder",
        "name another work folder with --work",
    ),
    (
        "table with another ending",
        "kmers count t_1.fq -o x.txt",
        2,
        "-o x.txt",
        "give a name that ends in .gkt or .tsv",
    ),
    ("output in no folder", "kmers count t_1.fq -o no/x.gkt", 2, "no: is not a folder", "create it"),
    ("records with another ending", "align genome.fa t_1.fq -o x.vcf", 2, "-o x.vcf", "give a name that ends in .sam"),
    // Tables, calls, and other files of genuma.
    ("FASTA as table", "kmers info genome.fa", 1, "genome.fa: is not a genuma table", "give a table that genuma wrote"),
    (
        "VCF as table",
        "kmers query other.vcf t_1.fq",
        1,
        "other.vcf: is not a genuma table",
        "give a table that genuma wrote",
    ),
    ("table not there", "kmers query no.gkt t_1.fq", 1, "no.gkt: cannot open", "check the path"),
    ("union of no tables", "kmers union genome.fa other.vcf -o x.gkt", 1, "is not a genuma table", "give a table that"),
    ("track without reference", "track other.vcf t_1.fq t_2.fq", 2, "--reference", "--help"),
    ("BED to track", "track nochr.bed t_1.fq t_2.fq --reference genome.fa", 1, "not a VCF file", "give VCF, plain or"),
    (
        "no calls to track",
        "track none.vcf t_1.fq t_2.fq --reference genome.fa",
        1,
        "contains no variant records",
        "give the VCF of",
    ),
    ("BED as truth", "bench evaluate nochr.bed other.vcf", 1, "not a VCF file", "give VCF, plain or"),
    ("FASTA as calls", "bench evaluate other.vcf genome.fa", 1, "not a VCF file", "give VCF, plain or"),
    ("--why without alleles", "call --why chr1:5 PAIR", 2, "neither a VCF file nor", "such as chr1:12345:A>T"),
    ("recording of nothing", "machine show --from other.vcf", 1, "is not a recording", ""),
    // Commands.
    ("command misspelt", "cal PAIR", 2, "unrecognized subcommand 'cal'", "'call'"),
    ("option misspelt", "call --refrence genome.fa PAIR", 2, "unexpected argument '--refrence'", "'--reference'"),
    ("quiet and verbose", "call -q -v PAIR", 2, "cannot be used with", "--help"),
    ("aligner without --", "run bwa mem genome.fa t_1.fq", 2, "unexpected argument 'bwa'", "--help"),
    (
        "aligner misspelt",
        "run -- bwaa mem genome.fa t_1.fq",
        1,
        "bwaa: no such program on PATH",
        "install it or write its full path",
    ),
    ("run store not there", "step nowhere scatter 1", 1, "this folder does not exist", "check its name"),
    ("run store without plan", "step . scatter 1", 1, "contains no plan.json", "genuma call --plan"),
    (
        "address of a bucket",
        "step s3:/x scatter 1",
        1,
        "the colon must be followed by two slashes",
        "s3://bucket/prefix",
    ),
    ("step misspelt", "step . scater 1", 2, "invalid value 'scater'", "'scatter'"),
    ("resume from the standard input", "kmers count --resume - -o x.gkt", 1, "-: ", "save them to a file"),
];

/// The arguments of a command. A no-break space stands for a space in an argument.
fn full_command(command: &str) -> Vec<String> {
    let command = command.replace("PAIR", "--tumor t_1.fq t_2.fq NORMAL");
    let command = command.replace("NORMAL", "--normal n_1.fq n_2.fq --reference genome.fa -o out");
    command.split(' ').map(|word| word.replace('\u{a0}', " ")).collect()
}

/// Writes the files that the commands name: 3,500 pairs of each sample, a depth of 7, and what users take for such files.
fn write_inputs(folder: &Path) {
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("a file");
    let lines = |text: &str, range: std::ops::Range<usize>| -> String {
        text.lines().skip(range.start).take(range.len()).map(|line| format!("{line}\n")).collect()
    };
    let [t_1, t_2, n_1, n_2] = [&data().tumor[0], &data().tumor[1], &data().normal[0], &data().normal[1]]
        .map(|path| String::from_utf8(gunzip(path)).expect("UTF-8"));
    for (name, text) in [("t_1", &t_1), ("t_2", &t_2), ("n_1", &n_1), ("n_2", &n_2)] {
        write(&format!("{name}.fq"), &lines(text, 0..14_000));
    }
    for (name, text) in [("n2_1", &n_1), ("n2_2", &n_2)] {
        write(&format!("{name}.fq"), &lines(text, 14_000..28_000));
    }
    write("copy_1.fq", &lines(&n_1, 0..14_000));
    write("order_2.fq", &(lines(&t_2, 4..14_000) + &lines(&t_2, 0..4)));
    write("short_2.fq", &lines(&t_2, 0..2000));
    write("half_1.fq", &lines(&t_1, 0..398));
    for (name, text) in [("old_1.fq", &t_1), ("old_2.fq", &t_2)] {
        let phred64 = |(i, line): (usize, &str)| match i % 4 {
            3 => line.bytes().map(|quality| char::from((quality + 31).min(b'h'))).chain(['\n']).collect(),
            _ => format!("{line}\n"),
        };
        write(name, &text.lines().take(14_000).enumerate().map(phred64).collect::<String>());
    }
    for name in ["empty_1.fq", "empty_2.fq"] {
        write(name, "");
    }
    write("page.fq.gz", "<!DOCTYPE html><html><body>Log in</body></html>\n");
    write("lfs.fq.gz", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
    let packed = fs::read(gzip(folder.join("cut.fq.gz"), lines(&t_1, 0..4000).as_bytes())).expect("a file");
    gzip(folder.join("twice.fq.gz"), &packed);
    fs::write(folder.join("cut.fq.gz"), &packed[..packed.len() / 2]).expect("a file");
    fs::copy(data().folder.join("genome.fa"), folder.join("genome.fa")).expect("a file");
    write("genome.fa.fai", "chr1\t93334\t6\t60\t61\n");
    write("beyond.bed", "chr1\t1\t99999999\n");
    write("nochr.bed", "1\t1\t100\n");
    write("none.vcf", "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n");
    write("other.vcf", "##fileformat=VCFv4.2\n1\t5\t.\tA\tC\t.\t.\tAF=0.1\n");
    write("other.gff3", "##gff-version 3\n1\tx\tgene\t1\t50\t.\t+\t.\tID=g\n");
}

#[test]
fn typical_mistakes_are_reported_with_advice() {
    let folder = scratch("files");
    write_inputs(&folder);
    let mut with_advice = 0;
    for (name, command, code, cause, advice) in MISTAKES {
        let output = genuma().args(full_command(command)).current_dir(&folder).output().expect("genuma starts");
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        let ended = RunOutput { code: output.status.code(), stdout: String::new(), stderr };
        assert_eq!(ended.code, Some(code), "{name}: {}", ended.stderr);
        assert!(ended.stderr.contains(cause) && !cause.is_empty(), "{name}: '{cause}' is not in {}", ended.stderr);
        assert!(ended.stderr.contains(advice), "{name}: '{advice}' is not in {}", ended.stderr);
        with_advice += usize::from(!advice.is_empty());
        let vcf = folder.join("out/somatic.vcf.gz");
        assert_eq!(vcf.exists(), code == 0 && command.starts_with("call"), "{name}");
        if folder.join("out").exists() {
            fs::remove_dir_all(folder.join("out")).expect("a folder");
        }
    }
    assert!(MISTAKES.len() >= 54 && with_advice >= 50, "{with_advice} of {}", MISTAKES.len());
}
