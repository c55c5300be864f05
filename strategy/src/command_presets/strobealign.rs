//! Command line preset of strobealign from version 0.17 on.
//!
//! strobealign reads blocks of more than 1,000,000 bases. The sequence of random numbers and the estimate of insert
//! sizes start again with each block. The mean length of the first 500 reads selects its parameters unless `-r` or `-P`
//! is given.

use super::options::OptionArgument::{Nothing, Value};
use super::options::OptionRole::{Output, Pass, Refuse, Threads as AsThreads};
use super::options::{OptionGrammar, OptionStyle, OptionTable};
use super::parsed_command::ParsedCommand;
use super::{AlignerProgram, InvocationFacts, OperandKinds, UNMAPPED_NEEDED, index_path};
use crate::invocation::{AlignerIndex, Determinism, Error, IndexLoading, ReadDependence, ReadFiles};

/// Number of bases that a block of reads exceeds (`--chunk-size`).
const BLOCK_BASES: u64 = 1_000_000;

const LENGTH: &str = "without -r each instance chooses parameters by the mean length of the first 500 reads it gets; \
                      write -r LENGTH";

const OPTIONS: OptionTable = &[
    (Value, AsThreads, "-t|--threads"),
    (Value, Output, "-o"),
    (Nothing, Refuse("PAF has no line for reads without a hit; omit it"), "-x"),
    (Nothing, Refuse("abundances need all reads, and an instance gets only some"), "--aemb"),
    (Nothing, Refuse("it builds an index and maps nothing; build the index beforehand"), "-i|--create-index"),
    (Nothing, Refuse("it maps with one thread; omit it"), "--trace"),
    (Nothing, Refuse(UNMAPPED_NEEDED), "-U"),
    (Nothing, Pass, "-v --no-progress -p|--interleaved --use-index --eqx --no-PG --details -C --ssw"),
    (Value, Pass, "--ithreads --chunk-size --rg-id --rg -N --st -r -P -m -k -s -l -u -c -b --aux-len --mcs"),
    (Value, Pass, "-f -S -M -R -H --gd --gl --vp --sg --mw --mr -A -B -O -E -L --bw"),
];

/// Command preset of strobealign.
pub(super) const STROBEALIGN: AlignerProgram = AlignerProgram {
    grammar: OptionGrammar { aligner: "strobealign", table: OPTIONS, style: OptionStyle::Getopt },
    files: &["strobealign"],
    verb: None,
    operands: OperandKinds::IndexReads { between: 0 },
    named: [""; 4],
    commas: false,
    threads: Some("-t"),
    derive_facts,
};

fn derive_facts(sketch: &ParsedCommand) -> Result<InvocationFacts, Error> {
    let files = vec![index_path(sketch)?];
    let loading = if sketch.has_option("--use-index") { IndexLoading::Private } else { IndexLoading::Built };
    let reads = sketch
        .read_files_and_input_mode(false, if sketch.has_option("-p") { ReadFiles::Mixed } else { ReadFiles::Single })?;
    let bases = sketch.parse_num_bases_option("--chunk-size", false)?.unwrap_or(BLOCK_BASES).saturating_add(1);
    let said = sketch.has_option("-r") || sketch.has_option("-P");
    Ok(InvocationFacts {
        depends: ReadDependence::Blocks { bases, per_thread: false, even: false, min_reads: 0, numbered: false },
        determinism: if said { Determinism::Exact } else { Determinism::Nondeterministic(LENGTH.to_owned()) },
        ..InvocationFacts::read_by_read(Some(AlignerIndex { files, loading, made_by: None }), reads)
    })
}
