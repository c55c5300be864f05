//! Command line preset of gem-mapper (GEM3). gem-mapper keeps the order of the reads. It estimates the template length
//! from each input buffer of pairs separately, and the size of a buffer is given in bytes.

use std::path::PathBuf;

use super::options::OptionArgument::{Nothing, OptionalValue, Value};
use super::options::OptionRole::{
    Index as AsIndex, Output, Pass, Reads as AsReads, Reads1, Reads2, Refuse, Threads as AsThreads,
};
use super::options::{OptionGrammar, OptionStyle, OptionTable};
use super::parsed_command::ParsedCommand;
use super::{AlignerProgram, InvocationFacts, OperandKinds, index_path};
use crate::invocation::{AlignerIndex, Determinism, Error, IndexLoading, ReadFiles, ReadInputMode};

const PACKED: &str = "only plain text is merged; compress the result";

const OPTIONS: OptionTable = &[
    (Value, AsIndex, "-I|--index"),
    (Value, AsReads, "-i|--input -z|--gzip-input"),
    (Value, Reads1, "-1|--i1"),
    (Value, Reads2, "-2|--i2"),
    (Value, Output, "-o|--output"),
    (Value, AsThreads, "-t|--threads"),
    (Value, Refuse("bzip2 is not supported; decompress the reads"), "-j|--bzip-input"),
    (Nothing, Refuse(PACKED), "--gzip-output --bzip-output"),
    (Value, Refuse("each instance would write its own file; omit it"), "--report-file"),
    (Nothing, Refuse("several instances cannot share a GPU; omit it"), "--gpu"),
    (Nothing, Pass, "-p|--paired-end-alignment"),
    (Value, Pass, "--mapping-mode -e|--alignment-max-error --alignment-global-min-identity"),
    (Value, Pass, "--alignment-global-min-score --alignment-local --alignment-local-min-identity"),
    (Value, Pass, "--alignment-local-min-score -l|--min-template-length -L|--max-template-length"),
    (Value, Pass, "--discordant-pair-search --gap-affine-penalties -M|--max-reported-matches"),
    (Value, Pass, "-F|--output-format --sam-compact -r|--sam-read-group-header"),
    (OptionalValue, Pass, "-v|--verbose"),
];

/// Command preset of gem-mapper.
pub(super) const GEM_MAPPER: AlignerProgram = AlignerProgram {
    grammar: OptionGrammar { aligner: "gem-mapper", table: OPTIONS, style: OptionStyle::Getopt },
    files: &["gem-mapper"],
    verb: None,
    operands: OperandKinds::Nothing,
    named: ["-1", "-2", "-i", "-i"],
    commas: false,
    threads: Some("-t"),
    derive_facts,
};

fn derive_facts(sketch: &ParsedCommand) -> Result<InvocationFacts, Error> {
    let file = index_path(sketch)?;
    if sketch.option_value("-F").is_some_and(|format| format != "SAM") {
        return Err(sketch.usage_error("genuma merges SAM only; omit -F".to_owned()));
    }
    let one = if sketch.has_option("-p") { ReadFiles::Interleaved } else { ReadFiles::Single };
    let reads = match sketch.single.is_empty() && sketch.reads1.is_empty() && sketch.reads2.is_empty() {
        true => (one(vec![PathBuf::from("-")]), ReadInputMode::Stdin),
        false if sketch.single.len() > 1 => {
            return Err(sketch.usage_error("more than one file of reads".to_owned()));
        }
        false => sketch.read_files_and_input_mode(false, one)?,
    };
    let index = AlignerIndex {
        made_by: Some(format!("gem-indexer -i REFERENCE -o {}", file.with_extension("").display())),
        files: vec![file],
        loading: IndexLoading::Private,
    };
    let single = matches!(reads.0, ReadFiles::Single(_))
        || (reads.0 == ReadFiles::Unnamed && !sketch.has_option("-p") && reads.1 == ReadInputMode::OneFile);
    let why = "the length of templates is estimated by buffers of the input, which differ between instances";
    Ok(InvocationFacts {
        determinism: if single { Determinism::Exact } else { Determinism::Nondeterministic(why.to_owned()) },
        ..InvocationFacts::read_by_read(Some(index), reads)
    })
}
