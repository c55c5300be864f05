//! Command line presets of bwa mem, bwa-mem2 mem, bwa aln, samse and sampe.
//!
//! `mem` reads blocks of 10,000,000 bases per thread (with `-K`: of the given number of bases for all threads
//! together), estimates insert sizes from each block separately, and breaks ties by the number of the read in the whole
//! input.

use std::path::PathBuf;

use super::options::OptionArgument::{Nothing, Value};
use super::options::OptionRole::{BlockBases, Output, Pass, Refuse, Threads as AsThreads};
use super::options::{OptionGrammar, OptionStyle, OptionTable};
use super::parsed_command::{ParsedCommand, ThreadSetting};
use super::{AlignerProgram, InvocationFacts, OperandKinds, index_path, path_with_suffix};
use crate::invocation::{
    AlignerIndex, CommandWord, Error, IndexLoading, OutputFormat, ReadDependence, ReadFiles, WordPart,
};

/// Bases of a block per thread (`opt->chunk_size`).
const BLOCK_BASES_PER_THREAD: u64 = 10_000_000;

const MEM_OPTIONS: OptionTable = &[
    (Value, AsThreads, "-t"),
    (Value, Output, "-o -f"),
    (Value, BlockBases, "-K"),
    (Value, Pass, "-k -w -d -r -y -c -D -W -m -A -B -O -E -L -U -x -R -H -v -T -h -I -s -G -N -X -Q -F -z"),
    (Nothing, Pass, "-S -P -p -j -5 -q -a -C -V -Y -M -u -1"),
];

const MEM2_OPTIONS: OptionTable = &[
    (Value, AsThreads, "-t"),
    (Value, Output, "-o"),
    (Value, BlockBases, "-K"),
    (Value, Refuse("its index has other files, which genuma does not support"), "-Z"),
    (Value, Pass, "-k -w -d -r -y -c -D -W -m -A -B -O -E -L -U -x -R -H -v -T -h -I -s -G -N -X -Q"),
    (Nothing, Pass, "-S -P -p -j -5 -a -C -V -Y -M -1"),
];

const BAM: &str = "reads in a BAM file are not supported; convert them to FASTQ";

const ALN_OPTIONS: OptionTable = &[
    (Value, AsThreads, "-t"),
    (Value, Output, "-f"),
    (Nothing, Refuse(BAM), "-b -0 -1 -2"),
    (Value, Pass, "-n -o -e -i -d -l -k -m -M -O -E -R -q -B"),
    (Nothing, Pass, "-L -N -I -Y"),
];

const SAMSE_OPTIONS: OptionTable = &[(Value, Output, "-f"), (Value, Pass, "-n -r")];

const SAMPE_OPTIONS: OptionTable =
    &[(Value, Output, "-f"), (Value, Pass, "-a -o -n -N -c -r"), (Nothing, Pass, "-P -s -A")];

const fn verb(
    aligner: &'static str,
    files: &'static [&'static str],
    verb: &'static str,
    table: OptionTable,
    derive_facts: fn(&ParsedCommand) -> Result<InvocationFacts, Error>,
) -> AlignerProgram {
    AlignerProgram {
        grammar: OptionGrammar { aligner, table, style: OptionStyle::Getopt },
        files,
        verb: Some(verb),
        operands: OperandKinds::IndexReads { between: 0 },
        named: [""; 4],
        commas: false,
        threads: Some("-t"),
        derive_facts,
    }
}

/// Command preset of `bwa mem`.
pub(super) const BWA_MEM: AlignerProgram = verb("bwa mem", &["bwa"], "mem", MEM_OPTIONS, mem);
/// Command preset of `bwa-mem2 mem`.
pub(super) const BWA_MEM2: AlignerProgram = verb("bwa-mem2 mem", &["bwa-mem2"], "mem", MEM2_OPTIONS, mem);
/// Command preset of `bwa aln`.
pub(super) const BWA_ALN: AlignerProgram = verb("bwa aln", &["bwa"], "aln", ALN_OPTIONS, aln);
/// Command preset of `bwa samse`.
pub(super) const BWA_SAMSE: AlignerProgram = AlignerProgram {
    operands: OperandKinds::IndexReads { between: 1 },
    threads: None,
    ..verb("bwa samse", &["bwa"], "samse", SAMSE_OPTIONS, sequential_facts)
};
/// Command preset of `bwa sampe`.
pub(super) const BWA_SAMPE: AlignerProgram = AlignerProgram {
    operands: OperandKinds::IndexReads { between: 2 },
    threads: None,
    ..verb("bwa sampe", &["bwa"], "sampe", SAMPE_OPTIONS, sequential_facts)
};

fn index(sketch: &ParsedCommand) -> Result<AlignerIndex, Error> {
    let prefix = index_path(sketch)?;
    // bwa looks for an index with this suffix first.
    let wide = path_with_suffix(&prefix, ".64");
    // I/O error ignored: the aligner reports an index that it cannot read.
    let wide_there = path_with_suffix(&wide, ".bwt").exists();
    let (stem, extensions, program) = match sketch.aligner {
        "bwa-mem2 mem" => (&prefix, [".0123", ".amb", ".ann", ".bwt.2bit.64", ".pac"], "bwa-mem2"),
        _ if wide_there => (&wide, [".amb", ".ann", ".bwt", ".pac", ".sa"], "bwa"),
        _ => (&prefix, [".amb", ".ann", ".bwt", ".pac", ".sa"], "bwa"),
    };
    Ok(AlignerIndex {
        files: extensions.map(|extension| path_with_suffix(stem, extension)).to_vec(),
        loading: IndexLoading::Private,
        made_by: Some(format!("{program} index {}", prefix.display())),
    })
}

fn mem(sketch: &ParsedCommand) -> Result<InvocationFacts, Error> {
    let mates = sketch.has_option("-p");
    if mates && sketch.read_operands.len() > 1 {
        return Err(sketch.usage_error("with -p it ignores the second file of reads; omit one of the two".to_owned()));
    }
    let index = index(sketch)?;
    let reads =
        sketch.read_files_and_input_mode(false, if mates { ReadFiles::Interleaved } else { ReadFiles::Single })?;
    let given = sketch.parse_num_bases_option("-K", false)?;
    let (bases, per_thread) = match (given, sketch.threads) {
        (Some(bases), _) => (bases, false),
        (None, ThreadSetting::Given(n)) => (BLOCK_BASES_PER_THREAD.saturating_mul(n as u64), false),
        (None, ThreadSetting::ProgramDefault) => (BLOCK_BASES_PER_THREAD, false),
        (None, ThreadSetting::Placeholder) => (BLOCK_BASES_PER_THREAD, true),
    };
    Ok(InvocationFacts {
        depends: ReadDependence::Blocks { bases, per_thread, even: true, min_reads: 0, numbered: true },
        // With -p bwa compares names to find mates.
        accepts_unpaired_in_interleaved: true,
        extra: vec![CommandWord::fixed_text_word("-K"), CommandWord(vec![WordPart::BlockBases])],
        ..InvocationFacts::read_by_read(Some(index), reads)
    })
}

fn one_file(sketch: &ParsedCommand, reads: fn(Vec<PathBuf>) -> ReadFiles) -> Result<InvocationFacts, Error> {
    if sketch.read_operands.len() > 1 {
        return Err(sketch.usage_error("it takes one file of reads".to_owned()));
    }
    Ok(InvocationFacts::read_by_read(Some(index(sketch)?), sketch.read_files_and_input_mode(false, reads)?))
}

fn aln(sketch: &ParsedCommand) -> Result<InvocationFacts, Error> {
    Ok(InvocationFacts { format: OutputFormat::Sai, ..one_file(sketch, ReadFiles::Single)? })
}

/// Facts of `bwa samse` and `bwa sampe`. They take random numbers from one sequence for all reads, so the result for a
/// read depends on all reads before it.
fn sequential_facts(sketch: &ParsedCommand) -> Result<InvocationFacts, Error> {
    let facts = match sketch.aligner {
        "bwa samse" => one_file(sketch, ReadFiles::Single)?,
        _ if sketch.read_operands.len() != 2 => {
            return Err(sketch.usage_error("it takes an index, two .sai files and two files of reads".to_owned()));
        }
        _ => InvocationFacts::read_by_read(
            Some(index(sketch)?),
            sketch.read_files_and_input_mode(false, ReadFiles::Single)?,
        ),
    };
    Ok(InvocationFacts { depends: ReadDependence::AllEarlierReads, ..facts })
}
