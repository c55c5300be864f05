//! Command line preset of bowtie2. bowtie2 aligns read by read; with several threads the order is arbitrary without
//! `--reorder`.

use std::path::PathBuf;

use super::options::OptionArgument::{Nothing, Value};
use super::options::OptionRole::{
    Drop, Index as AsIndex, Interleaved, Output, Pass, Reads as AsReads, Reads1, Reads2, Refuse, Threads as AsThreads,
};
use super::options::{OptionGrammar, OptionStyle, OptionTable};
use super::parsed_command::{ParsedCommand, ThreadSetting};
use super::{AlignerProgram, InvocationFacts, OperandKinds, UNMAPPED_NEEDED, index_path, path_with_suffix};
use crate::invocation::{AlignerIndex, CommandWord, Determinism, Error, IndexLoading, ReadFiles};

const SIDE: &str = "each instance would write its own file; extract these reads from the result";
const FORM: &str = "only FASTQ and FASTA are supported";
const COUNTED: &str = "an instance does not get all reads; cut the input beforehand";

const OPTIONS: OptionTable = &[
    (Value, AsIndex, "-x"),
    (Value, Reads1, "-1"),
    (Value, Reads2, "-2"),
    (Value, AsReads, "-U"),
    (Value, Interleaved, "--interleaved"),
    (Value, Output, "-S|--output"),
    (Value, AsThreads, "-p|--threads"),
    (Nothing, Drop, "--reorder"),
    (Value, Refuse(SIDE), "--un --un-gz --un-bz2 --un-lz4 --al --al-gz --al-bz2 --al-lz4"),
    (Value, Refuse(SIDE), "--un-conc --un-conc-gz --un-conc-bz2 --un-conc-lz4 --un-mates"),
    (Value, Refuse(SIDE), "--al-conc --al-conc-gz --al-conc-bz2 --al-conc-lz4 --met-file"),
    (Nothing, Refuse(UNMAPPED_NEEDED), "--no-unal"),
    (Value, Refuse(FORM), "--tab5 --tab6 -b -F"),
    (Nothing, Refuse(FORM), "--qseq -r -c --align-paired-reads --preserve-tags"),
    (Value, Refuse(COUNTED), "-s|--skip -u|--upto"),
    (Value, Pass, "-5|--trim5 -3|--trim3 --trim-to -N -L -i --n-ceil --dpad --gbar --ma --mp --np --rdg --rfg"),
    (Value, Pass, "--score-min -k -D -R -I|--minins -X|--maxins --met --rg-id --rg --seed"),
    (Nothing, Pass, "-q -f --phred33 --phred64 --int-quals --ignore-quals --nofw --norc --no-1mm-upfront"),
    (Nothing, Pass, "--very-fast --fast --sensitive --very-sensitive --very-fast-local --fast-local"),
    (Nothing, Pass, "--sensitive-local --very-sensitive-local --end-to-end --local -a|--all --fr --rf --ff"),
    (Nothing, Pass, "--no-mixed --no-discordant --dovetail --no-contain --no-overlap -t|--time --quiet"),
    (Nothing, Pass, "--met-stderr --no-head|--no-hd --no-sq --omit-sec-seq --sam-no-qname-trunc --xeq"),
    (Nothing, Pass, "--soft-clipped-unmapped-tlen --sam-append-comment --mm --qc-filter --non-deterministic"),
];

/// Command preset of bowtie2.
pub(super) const BOWTIE2: AlignerProgram = AlignerProgram {
    grammar: OptionGrammar { aligner: "bowtie2", table: OPTIONS, style: OptionStyle::Getopt },
    files: &["bowtie2", "bowtie2-align-s", "bowtie2-align-l"],
    verb: None,
    operands: OperandKinds::Nothing,
    named: ["-1", "-2", "-U", "--interleaved"],
    commas: true,
    threads: Some("-p"),
    derive_facts,
};

fn derive_facts(sketch: &ParsedCommand) -> Result<InvocationFacts, Error> {
    let mut prefix = index_path(sketch)?;
    // I/O error ignored: the aligner reports an index that it cannot read.
    let there =
        |prefix: &PathBuf| [".1.bt2", ".1.bt2l"].iter().any(|extension| path_with_suffix(prefix, extension).exists());
    if !there(&prefix) {
        let elsewhere = std::env::var_os("BOWTIE2_INDEXES").map(|folder| PathBuf::from(folder).join(&prefix));
        prefix = elsewhere.filter(there).unwrap_or(prefix);
    }
    // I/O error ignored: the aligner reports an index that it cannot read.
    let large = !path_with_suffix(&prefix, ".1.bt2").exists() && path_with_suffix(&prefix, ".1.bt2l").exists();
    let extension = if large { "bt2l" } else { "bt2" };
    let parts = ["1", "2", "3", "4", "rev.1", "rev.2"];
    let index = AlignerIndex {
        files: parts.map(|part| path_with_suffix(&prefix, &format!(".{part}.{extension}"))).to_vec(),
        loading: if sketch.has_option("--mm") { IndexLoading::Mapped } else { IndexLoading::Private },
        made_by: Some(format!("bowtie2-build REFERENCE {}", prefix.display())),
    };
    let determinism = match sketch.threads {
        _ if sketch.has_option("--non-deterministic") => {
            Determinism::Nondeterministic("--non-deterministic: random numbers begin with the time".to_owned())
        }
        _ if sketch.has_option("--reorder") => Determinism::Exact,
        ThreadSetting::Given(1) | ThreadSetting::ProgramDefault => Determinism::Exact,
        ThreadSetting::Given(_) | ThreadSetting::Placeholder => Determinism::Unordered,
    };
    Ok(InvocationFacts {
        determinism,
        extra: vec![CommandWord::fixed_text_word("--reorder")],
        ..InvocationFacts::read_by_read(Some(index), sketch.read_files_and_input_mode(false, ReadFiles::Single)?)
    })
}
