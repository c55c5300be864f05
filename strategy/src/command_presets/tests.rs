use crate::invocation::{IndexLoading, OutputTarget};

use super::*;

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

fn understood(line: &str) -> Invocation {
    parse_command(&words(line)).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// Returns the command of an instance with 4 threads, blocks of 99 bases and pipes a and b.
fn command(invocation: &Invocation) -> String {
    let pipes = [Path::new("a"), Path::new("b")];
    let words = invocation.build_instance_command(4, 99, &pipes);
    words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn paths(files: &str) -> Vec<PathBuf> {
    files.split(' ').map(PathBuf::from).collect()
}

fn pair(one: &str, two: &str) -> ReadFiles {
    ReadFiles::Paired(vec![[one.into(), two.into()]])
}

#[test]
fn commands_of_instances() {
    for (given, instance) in [
        ("bwa mem -t 8 ref.fa 1.fq 2.fq", "bwa mem -t 4 -K 99 ref.fa a b"),
        ("bwa mem -t8 -pM ref.fa x.fq", "bwa mem -t 4 -K 99 -p -M ref.fa a"),
        (
            "/opt/bwa mem -o out.sam ref.fa -t {threads} -K 500 -R @RG\\tID:1 1.fq",
            "/opt/bwa mem -t 4 -K 99 ref.fa -R @RG\\tID:1 a",
        ),
        ("bwa-mem2.avx2 mem -f1 ref.fa 1.fq", ""),
        ("bwa-mem2.avx2 mem -k 17 ref.fa 1.fq 2.fq", "bwa-mem2.avx2 mem -t 4 -K 99 -k 17 ref.fa a b"),
        ("bwa aln -t 2 -f x.sai ref.fa 1.fq", "bwa aln -t 4 ref.fa a"),
        ("bwa samse -n 2 ref.fa x.sai 1.fq", "bwa samse -n 2 ref.fa x.sai a"),
        ("bwa sampe -f o.sam ref.fa x.sai y.sai 1.fq 2.fq", "bwa sampe ref.fa x.sai y.sai a b"),
        ("minibwa map -x sr -K 50m,60m idx 1.fq 2.fq", "minibwa map -t 4 -x sr -K 50m,60m idx a b"),
        (
            "bowtie2 --local -p 8 --reorder -x bt -1 1.fq,3.fq -2 2.fq,4.fq -S o.sam --rg-id=x",
            "bowtie2 -p 4 --reorder --local -x bt -1 a -2 b --rg-id x",
        ),
        ("bowtie2 -k5 -x bt -U 1.fq -U 2.fq", "bowtie2 -p 4 --reorder -k 5 -x bt -U a"),
        ("bowtie2 -x bt --interleaved 1.fq", "bowtie2 -p 4 --reorder -x bt --interleaved a"),
        ("minimap2 -ax sr --cs=long --MD -t3 ref.fa 1.fq 2.fq", "minimap2 -t 4 -a -x sr --cs=long --MD ref.fa a b"),
        ("minimap2 -a --cs --secondary=no ref.mmi 1.fq", "minimap2 -t 4 -a --cs --secondary no ref.mmi a"),
        ("minimap2 -a -o o.sam -- ref.mmi 1.fq", "minimap2 -t 4 -a -- ref.mmi a"),
        ("strobealign -N -1 -r 150 ref.fa 1.fq 2.fq", "strobealign -t 4 -N -1 -r 150 ref.fa a b"),
        (
            "snap-aligner paired idx 1.fq 2.fq -t 8 -s 50 500 -C-+ -o -sam -",
            "snap-aligner paired idx -pairedInterleavedFastq - -s 50 500 -C-+ -t 4 -b- -o -sam -",
        ),
        (
            "snap-aligner single idx -compressedFastq 1.fq -o x.sam -b-",
            "snap-aligner single idx -fastq - -t 4 -b- -o -sam -",
        ),
        ("gem-mapper -I x.gem -z 1.fq.gz -p -o o.sam", "gem-mapper -t 4 -I x.gem -i a -p"),
        ("gem-mapper -I x.gem --i1=1.fq --i2 2.fq -t 3", "gem-mapper -t 4 -I x.gem -1 a -2 b"),
        ("other --in={reads1},{reads2} -j{threads} x", "other --in=a,b -j4 x"),
        ("other {reads} -b {block}", "other a -b 99"),
        ("other -x {}", "other -x {}"),
    ] {
        if instance.is_empty() {
            assert!(parse_command(&words(given)).is_err(), "{given}");
        } else {
            assert_eq!(command(&understood(given)), instance, "{given}");
        }
    }
}

#[test]
fn reads_and_how_they_are_fed() {
    for (given, reads, feed) in [
        ("bwa mem ref 1.fq 2.fq", pair("1.fq", "2.fq"), ReadInputMode::TwoFiles),
        ("bwa mem ref -", ReadFiles::Single(paths("-")), ReadInputMode::OneFile),
        ("bwa mem -p ref 1.fq", ReadFiles::Interleaved(paths("1.fq")), ReadInputMode::OneFile),
        ("bwa mem ref {reads1} {reads2}", ReadFiles::Unnamed, ReadInputMode::TwoFiles),
        ("bowtie2 -x b -U 1.fq,2.fq -U 3.fq", ReadFiles::Single(paths("1.fq 2.fq 3.fq")), ReadInputMode::OneFile),
        ("minimap2 -ax sr ref 1.fq", ReadFiles::Mixed(paths("1.fq")), ReadInputMode::OneFile),
        ("minimap2 -ax sr --frag=no ref 1.fq", ReadFiles::Single(paths("1.fq")), ReadInputMode::OneFile),
        ("minimap2 -ax map-ont ref 1.fq", ReadFiles::Single(paths("1.fq")), ReadInputMode::OneFile),
        ("minibwa map ref 1.fq", ReadFiles::Mixed(paths("1.fq")), ReadInputMode::OneFile),
        ("minibwa map -x lr ref 1.fq", ReadFiles::Single(paths("1.fq")), ReadInputMode::OneFile),
        ("strobealign -p ref 1.fq", ReadFiles::Mixed(paths("1.fq")), ReadInputMode::OneFile),
        ("snap-aligner single i 1.fq 2.fq -o a.sam", ReadFiles::Single(paths("1.fq 2.fq")), ReadInputMode::Stdin),
        (
            "snap-aligner paired i -pairedInterleavedFastq - -o a.sam",
            ReadFiles::Interleaved(paths("-")),
            ReadInputMode::Stdin,
        ),
        ("gem-mapper -I x.gem", ReadFiles::Single(paths("-")), ReadInputMode::Stdin),
        ("other", ReadFiles::Unnamed, ReadInputMode::Stdin),
    ] {
        let invocation = understood(given);
        assert_eq!((invocation.reads, invocation.feed), (reads, feed), "{given}");
    }
    let lanes = understood("bowtie2 -x b -1 1.fq,3.fq -2 2.fq,4.fq").reads;
    assert_eq!(lanes, ReadFiles::Paired(vec![["1.fq".into(), "2.fq".into()], ["3.fq".into(), "4.fq".into()]]));
}

#[test]
fn blocks_of_the_plain_run() {
    for (given, threads, block) in [
        ("bwa mem -t 8 r 1.fq", Some(8), Some(80_000_000)),
        ("bwa mem r 1.fq", None, Some(10_000_000)),
        ("bwa mem -t {threads} r 1.fq", None, Some(40_000_000)),
        ("bwa mem -t 8 -K 1000 r 1.fq", Some(8), Some(1000)),
        ("bwa-mem2 mem -t 2 r 1.fq", Some(2), Some(20_000_000)),
        ("bwa samse r s 1.fq", Some(1), None),
        ("minibwa map r 1.fq 2.fq", None, Some(100_000_000)),
        ("minibwa map -K 5k,7k r 1.fq 2.fq", None, Some(5000)),
        ("minibwa map -I 300 r 1.fq 2.fq", None, None),
        ("strobealign -t 3 r 1.fq", Some(3), Some(1_000_001)),
        ("other {block}", Some(1), Some(40_000_000)),
        ("bowtie2 -x b -U 1.fq -p 2", Some(2), None),
    ] {
        let invocation = understood(given);
        assert_eq!((invocation.threads, invocation.depends.min_block_bases(4)), (threads, block), "{given}");
    }
    let least = |given| match understood(given).depends {
        ReadDependence::Blocks { min_reads: least_reads, numbered, .. } => (least_reads, numbered),
        other => panic!("{other:?}"),
    };
    assert_eq!(least("minibwa map r 1.fq"), (40_000, false));
    assert_eq!(least("minibwa map -K 5 r 1.fq"), (0, false));
    assert_eq!(least("bwa mem r 1.fq"), (0, true));
    assert_eq!(understood("bwa sampe r s t 1.fq 2.fq").depends, ReadDependence::AllEarlierReads);
}

#[test]
fn determinism_and_order() {
    for (given, determinism, order) in [
        ("bowtie2 -x b -U 1.fq", Determinism::Exact, RecordOrder::InputOrder),
        ("bowtie2 -x b -U 1.fq -p 2", Determinism::Unordered, RecordOrder::InputOrder),
        ("bowtie2 -x b -U 1.fq -p 2 --reorder", Determinism::Exact, RecordOrder::InputOrder),
        ("snap-aligner single i 1.fq -o a.sam", Determinism::Unordered, RecordOrder::InputOrderWithOneThread),
        ("snap-aligner single i 1.fq -o a.sam -t 1", Determinism::Exact, RecordOrder::InputOrderWithOneThread),
        ("strobealign -r 100 r 1.fq", Determinism::Exact, RecordOrder::InputOrder),
        ("gem-mapper -I x.gem -i 1.fq", Determinism::Exact, RecordOrder::InputOrder),
    ] {
        let invocation = understood(given);
        assert_eq!((invocation.determinism, invocation.order), (determinism, order), "{given}");
    }
    for given in [
        "bowtie2 -x b -U 1.fq --non-deterministic",
        "strobealign r 1.fq",
        "gem-mapper -I x.gem -1 1.fq -2 2.fq",
        "snap-aligner single i 1.fq -o a.sam -at",
        "other",
    ] {
        assert!(matches!(understood(given).determinism, Determinism::Nondeterministic(_)), "{given}");
    }
}

#[test]
fn outputs_and_indexes() {
    let output = |given| understood(given).output;
    assert_eq!(output("bwa mem -o x.sam r 1.fq"), OutputTarget::File("x.sam".into()));
    assert_eq!(output("bwa mem -f x.sam r 1.fq"), OutputTarget::File("x.sam".into()));
    assert_eq!(output("minimap2 -a -o - r 1.fq"), OutputTarget::Stdout);
    assert_eq!(output("snap-aligner single i 1.fq -o -sam -"), OutputTarget::Stdout);
    assert_eq!(understood("bwa aln r 1.fq").format, OutputFormat::Sai);
    let index = |given| understood(given).index.map(|index| (index.files[0].clone(), index.files.len(), index.loading));
    for (given, file, files, loading) in [
        ("bwa mem d/r.fa 1.fq", "d/r.fa.amb", 5, IndexLoading::Private),
        ("bwa-mem2 mem r.fa 1.fq", "r.fa.0123", 5, IndexLoading::Private),
        ("bowtie2 -x b -U 1.fq", "b.1.bt2", 6, IndexLoading::Private),
        ("bowtie2 -x b -U 1.fq --mm", "b.1.bt2", 6, IndexLoading::Mapped),
        ("minimap2 -a r.fa 1.fq", "r.fa", 1, IndexLoading::Built),
        ("minimap2 -a r.mmi 1.fq", "r.mmi", 1, IndexLoading::Private),
        ("minibwa map --mmap=lite r 1.fq", "r.l2b", 2, IndexLoading::Mapped),
        ("snap-aligner single i 1.fq -o a.sam", "i/Genome", 4, IndexLoading::Mapped),
        ("snap-aligner single i 1.fq -o a.sam -map-", "i/Genome", 4, IndexLoading::Private),
        ("gem-mapper -I x.gem", "x.gem", 1, IndexLoading::Private),
        ("strobealign r.fa 1.fq", "r.fa", 1, IndexLoading::Built),
    ] {
        assert_eq!(index(given), Some((file.into(), files, loading)), "{given}");
    }
}

/// Commands that are refused, each with its error message.
const REFUSED_COMMANDS: &[(&str, &str)] = &[
    ("", "genuma: no command; write it behind --"),
    ("bwa index r.fa", "bwa: 'index' does not align reads; genuma runs mem, aln, samse, sampe"),
    ("bwa", "bwa: the subcommand is missing; genuma runs mem, aln, samse, sampe"),
    ("bwa mem -Z r 1.fq", "bwa mem: -Z: unknown option; its effect with several instances is not known; omit it"),
    ("bwa mem r 1.fq -t", "bwa mem: -t: its value is missing"),
    ("bwa mem -t x r 1.fq", "bwa mem: -t x: not a number of threads"),
    ("bwa mem -t 0 r 1.fq", "bwa mem: -t 0: not a number of threads"),
    ("bwa mem -K 1m r 1.fq", "bwa mem: -K 1m: not a number of bases"),
    ("bwa mem r", "bwa mem: no reads are given"),
    ("bwa mem", "bwa mem: no index is given"),
    ("bwa mem r 1 2 3", "bwa mem: more than two files of reads"),
    ("bwa mem r {reads1} 2.fq", "bwa mem: either all files of reads are placeholders such as {reads1}, or none"),
    ("bwa mem -p r 1.fq 2.fq", "bwa mem: with -p it ignores the second file of reads; omit one of the two"),
    ("bwa aln -b1 r 1.bam", "bwa aln: -b: reads in a BAM file are not supported; convert them to FASTQ"),
    ("bwa aln r 1.fq 2.fq", "bwa aln: it takes one file of reads"),
    (
        "bowtie2 -x b -U 1 -1 2 -2 3",
        "bowtie2: single reads and pairs in one run are not supported; run them one after the other",
    ),
    ("bowtie2 -x b -1 1,2 -2 3", "bowtie2: 2 files of read 1, 1 of read 2"),
    ("bowtie2 -x b -2 3", "bowtie2: 0 files of read 1, 1 of read 2"),
    ("bowtie2 b 1.fq", "bowtie2: b: unexpected operand; give files by their options"),
    (
        "bowtie2 -x b -U 1 --un x",
        "bowtie2: --un: each instance would write its own file; extract these reads from the result",
    ),
    ("bowtie2 -x b -U 1 --reorder=1", "bowtie2: --reorder: it takes no value"),
    ("minimap2 r 1.fq", "minimap2: without -a it writes PAF, which has no line for reads without a hit; add -a"),
    (
        "minimap2 -a r 1.fq 2.fq",
        "minimap2: two files without -x sr are mapped one after the other; run it once for each",
    ),
    (
        "minimap2 -a --split-prefix=x r 1.fq",
        "minimap2: --split-prefix: it maps all reads to one part of the index after the other; use an index of one part",
    ),
    (
        "strobealign -U r 1.fq",
        "strobealign: -U: genuma needs a record of each read to put them in order; filter the result (samtools view -F 4)",
    ),
    (
        "snap-aligner paired i 1.fq -o a.sam",
        "snap-aligner paired: mates need two files for each lane, or -pairedInterleavedFastq",
    ),
    (
        "snap-aligner single i 1.fq -o a.bam",
        "snap-aligner single: genuma merges SAM text only; write -o FILE.sam or -o -sam -",
    ),
    ("snap-aligner single i 1.fq", "snap-aligner single: genuma merges SAM text only; write -o FILE.sam or -o -sam -"),
    ("snap-aligner single -t 2 i 1.fq -o a.sam", "snap-aligner single: the index comes before all options"),
    (
        "snap-aligner single i 1.fq -o a.sam -so",
        "snap-aligner single: -so: the order of an instance is not that of all instances; sort the result",
    ),
    (
        "snap-aligner single i 1.fq , paired i 2.fq -o a.sam",
        "snap-aligner single: several alignments in one command; run one after the other",
    ),
    ("gem-mapper -I x.gem -F MAP", "gem-mapper: genuma merges SAM only; omit -F"),
    ("gem-mapper -i 1.fq", "gem-mapper: no index is given"),
    ("other {reads2}", "other: write {reads1} and {reads2} for mates in two files, or {reads} alone"),
];

#[test]
fn what_is_refused_says_why() {
    for &(given, said) in REFUSED_COMMANDS {
        match parse_command(&words(given)) {
            Err(error) => assert_eq!(error.to_string(), said, "{given}"),
            Ok(_) => panic!("{given}: taken"),
        }
    }
}

#[test]
fn reads_named_elsewhere() {
    let open = understood("other {reads1} {reads2}");
    assert_eq!(open.clone().with_reads(pair("1", "2")).expect("pairs").reads, pair("1", "2"));
    let said = |result: Result<Invocation, Error>| result.expect_err("refused").to_string();
    assert_eq!(
        said(open.clone().with_reads(ReadFiles::Single(paths("1")))),
        "other: {reads1} and {reads2} are mates; name two files of reads for each lane"
    );
    assert_eq!(said(open.with_reads(ReadFiles::Unnamed)), "other: no reads; name them with --reads");
    let named = understood("bwa mem r 1.fq");
    assert_eq!(said(named.with_reads(pair("1", "2"))), "bwa mem: the command names its reads; omit --reads");
}

#[test]
fn what_is_missing_is_said_before_anything_starts() {
    let said = |given| understood(given).check_program_and_index_exist().expect_err("something is missing").to_string();
    assert_eq!(
        said("/nowhere/bwa mem /nowhere/r.fa 1.fq"),
        "/nowhere/bwa: no such program on PATH; install it or write its full path"
    );
    // Any installed program will do.
    let mut invocation = understood("bwa mem /nowhere/r.fa 1.fq");
    invocation.given[0] = "sh".into();
    let said = invocation.check_program_and_index_exist().expect_err("no index").to_string();
    assert_eq!(said, "/nowhere/r.fa.amb: the index of bwa mem is missing; make it with 'bwa index /nowhere/r.fa'");
    invocation.index = None;
    invocation.check_program_and_index_exist().expect("nothing is missing");
}

#[test]
fn index_bytes() {
    let folder = std::env::temp_dir().join(format!("genuma-preset-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for (n, end) in ["l2b", "mbw"].iter().enumerate() {
        std::fs::write(folder.join(format!("r.{end}")), vec![0; n + 3]).expect("a file");
    }
    let index = understood(&format!("minibwa map {}/r 1.fq", folder.display())).index.expect("an index");
    assert_eq!(index.total_index_bytes().expect("bytes"), 7);
    std::fs::remove_dir_all(&folder).expect("removed");
    assert!(index.total_index_bytes().is_err());
}
