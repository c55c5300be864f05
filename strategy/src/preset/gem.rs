//! gem-mapper (GEM3). It keeps the order of the reads. The length of templates is estimated for each buffer of pairs, whose ends depend
//! on bytes of the input.

use std::path::PathBuf;

use super::options::Means::{
    Index as AsIndex, Output, Pass, Reads as AsReads, Reads1, Reads2, Refuse, Threads as AsThreads,
};
use super::options::Takes::{Nothing, Perhaps, Value};
use super::options::{Grammar, Style, Table};
use super::sketch::Sketch;
use super::{Facts, Operands, Program, indexed};
use crate::invocation::{Determinism, Error, Feed, Index, Loading, Reads};

const PACKED: &str = "genuma merges plain text only; pack the result";

const OPTIONS: Table = &[
    (Value, AsIndex, "-I|--index"),
    (Value, AsReads, "-i|--input -z|--gzip-input"),
    (Value, Reads1, "-1|--i1"),
    (Value, Reads2, "-2|--i2"),
    (Value, Output, "-o|--output"),
    (Value, AsThreads, "-t|--threads"),
    (Value, Refuse("genuma does not read bzip2; unpack the reads"), "-j|--bzip-input"),
    (Nothing, Refuse(PACKED), "--gzip-output --bzip-output"),
    (Value, Refuse("each instance would write it for itself; leave it away"), "--report-file"),
    (Nothing, Refuse("genuma does not share out a GPU; leave it away"), "--gpu"),
    (Nothing, Pass, "-p|--paired-end-alignment"),
    (Value, Pass, "--mapping-mode -e|--alignment-max-error --alignment-global-min-identity"),
    (Value, Pass, "--alignment-global-min-score --alignment-local --alignment-local-min-identity"),
    (Value, Pass, "--alignment-local-min-score -l|--min-template-length -L|--max-template-length"),
    (Value, Pass, "--discordant-pair-search --gap-affine-penalties -M|--max-reported-matches"),
    (Value, Pass, "-F|--output-format --sam-compact -r|--sam-read-group-header"),
    (Perhaps, Pass, "-v|--verbose"),
];

pub(super) const MAP: Program = Program {
    grammar: Grammar { aligner: "gem-mapper", table: OPTIONS, style: Style::Getopt },
    files: &["gem-mapper"],
    verb: None,
    operands: Operands::Nothing,
    named: ["-1", "-2", "-i", "-i"],
    commas: false,
    threads: Some("-t"),
    conclude,
};

fn conclude(sketch: &Sketch) -> Result<Facts, Error> {
    let file = indexed(sketch)?;
    if sketch.value("-F").is_some_and(|format| format != "SAM") {
        return Err(sketch.usage("genuma merges SAM only; leave -F away".to_owned()));
    }
    let one = if sketch.has("-p") { Reads::Interleaved } else { Reads::Single };
    let reads = match sketch.single.is_empty() && sketch.reads1.is_empty() && sketch.reads2.is_empty() {
        true => (one(vec![PathBuf::from("-")]), Feed::Stdin),
        false if sketch.single.len() > 1 => {
            return Err(sketch.usage("more than one file of reads".to_owned()));
        }
        false => sketch.reads(false, one)?,
    };
    let index = Index {
        made_by: Some(format!("gem-indexer -i REFERENCE -o {}", file.with_extension("").display())),
        files: vec![file],
        loading: Loading::Private,
    };
    let single = matches!(reads.0, Reads::Single(_))
        || (reads.0 == Reads::Unnamed && !sketch.has("-p") && reads.1 == Feed::One);
    let why = "the length of templates is estimated by buffers of the input, which differ between instances";
    Ok(Facts {
        determinism: if single { Determinism::Exact } else { Determinism::Loose(why.to_owned()) },
        ..Facts::plain(Some(index), reads)
    })
}
