//! Command line preset of minibwa map.
//!
//! minibwa reads blocks of 100,000,000 bases, whatever the number of threads (`-K`). It estimates insert sizes from
//! each block separately, and breaks ties by the read's name. In one file, adjacent reads with the same name are mates;
//! a block of such a file has at least 40,000 reads.

use super::options::OptionArgument::{Nothing, OptionalValue, Value};
use super::options::OptionRole::{Output, Pass, Refuse, Threads as AsThreads};
use super::options::{OptionGrammar, OptionStyle, OptionTable};
use super::parsed_command::ParsedCommand;
use super::{AlignerProgram, InvocationFacts, OperandKinds, UNMAPPED_NEEDED, index_path, path_with_suffix};
use crate::invocation::{AlignerIndex, Error, IndexLoading, ReadDependence, ReadFiles, ReadInputMode};

/// Bases of a block of short reads (`mb_size`).
const BLOCK_BASES: u64 = 100_000_000;
/// Minimum number of reads in a block if all reads are in one file (`min_read_cnt`).
const MIN_BLOCK_READS: u64 = 40_000;

const OPTIONS: OptionTable = &[
    (Value, AsThreads, "-t"),
    (Value, Output, "-o"),
    (Nothing, Refuse("PAF has no line for reads without a hit; omit it"), "-f"),
    (Nothing, Refuse(UNMAPPED_NEEDED), "-u"),
    (Value, Pass, "-x -k -c -m -p -A -B -U -b -O -E -K -N -R -H -l -w -W -g -s -I"),
    (Nothing, Pass, "-P -y -Y -a -5 --eqx --chain-only --meth --hic"),
    (Value, Pass, "--kalloc --outn --rescue --pe --adap --xa --xa-ratio --outs"),
    (OptionalValue, Pass, "--long --mmap"),
];

/// Command preset of `minibwa map`.
pub(super) const MINIBWA_MAP: AlignerProgram = AlignerProgram {
    grammar: OptionGrammar { aligner: "minibwa map", table: OPTIONS, style: OptionStyle::Getopt },
    files: &["minibwa"],
    verb: Some("map"),
    operands: OperandKinds::IndexReads { between: 0 },
    named: [""; 4],
    commas: false,
    threads: Some("-t"),
    derive_facts,
};

fn derive_facts(sketch: &ParsedCommand) -> Result<InvocationFacts, Error> {
    let prefix = index_path(sketch)?;
    let pairs = sketch.option_value("-x") != Some("lr") && !matches!(sketch.option_value("--pe"), Some("no" | "n"));
    let reads = sketch.read_files_and_input_mode(false, if pairs { ReadFiles::Mixed } else { ReadFiles::Single })?;
    // An index for --meth has other files.
    let index = (!sketch.has_option("--meth")).then(|| AlignerIndex {
        files: [".l2b", ".mbw"].map(|extension| path_with_suffix(&prefix, extension)).to_vec(),
        loading: if sketch.has_option("--mmap") { IndexLoading::Mapped } else { IndexLoading::Private },
        made_by: Some(format!("minibwa index REFERENCE {}", prefix.display())),
    });
    let estimates = pairs && !["-P", "-I", "--hic"].iter().any(|option| sketch.has_option(option));
    // NUM1[,NUM2]: a block that ends by number of reads may have up to NUM2 bases.
    let given =
        sketch.option_value("-K").map(|text| text.split_once(',').map_or((text, false), |(one, _)| (one, true)));
    let bases = given.map(|(text, _)| sketch.parse_num_bases("-K", text, true)).transpose()?;
    let least_reads = match (reads.1, given) {
        (ReadInputMode::TwoFiles, _) | (_, Some((_, false))) => 0,
        _ => MIN_BLOCK_READS,
    };
    let blocks = ReadDependence::Blocks {
        bases: bases.unwrap_or(BLOCK_BASES),
        per_thread: false,
        even: false,
        min_reads: least_reads,
        numbered: false,
    };
    Ok(InvocationFacts {
        depends: if estimates { blocks } else { ReadDependence::Nothing },
        ..InvocationFacts::read_by_read(index, reads)
    })
}
