//! Command line preset of minimap2 -a. minimap2 aligns read by read, and breaks ties by the read's name.

use std::fs;

use super::options::OptionArgument::{Nothing, OptionalValue, Value};
use super::options::OptionRole::{Output, Pass, Refuse, Threads as AsThreads};
use super::options::{OptionGrammar, OptionStyle, OptionTable};
use super::parsed_command::ParsedCommand;
use super::{AlignerProgram, InvocationFacts, OperandKinds, UNMAPPED_NEEDED, index_path};
use crate::invocation::{AlignerIndex, Error, IndexLoading, ReadFiles};

/// Default number of reference bases per part of the index (`-I`): the smallest default of all versions of minimap2.
const INDEX_PART_BASES: u64 = 4_000_000_000;

const OPTIONS: OptionTable = &[
    (Value, AsThreads, "-t"),
    (Value, Output, "-o"),
    (Value, Refuse("it builds an index and maps nothing; build the index beforehand"), "-d"),
    (
        Value,
        Refuse("it maps all reads to one part of the index after the other; use an index of one part"),
        "--split-prefix",
    ),
    (Nothing, Refuse(UNMAPPED_NEEDED), "--sam-hit-only --paf-no-hit"),
    (Value, Refuse("it leaves reads out, and genuma needs a record of each; cut the input beforehand"), "--max-qlen"),
    (Value, Pass, "-k -w -I -f -U -e -g -r -n -m -p -N -G -F -M -A -B -C -O -E -z -s -u -R -K -x -b"),
    (Nothing, Pass, "-H -D -P -X -a -c -Q -L -y -Y -2"),
    (Value, Pass, "--alt --alt-drop --q-occ-frac --dual --rmq --mask-len --max-chain-skip --max-chain-iter"),
    (Value, Pass, "--chain-gap-scale --frag --heap-sort --end-bonus --score-N --splice-flank --junc-bed"),
    (Value, Pass, "--junc-bonus --end-seed-pen --cap-sw-mem --cap-kalloc --seed --secondary --min-occ-floor"),
    (Nothing, Pass, "--idx-no-seq --hard-mask-level --no-long-join --splice --sr --for-only --rev-only"),
    (Nothing, Pass, "--no-pairing --no-hash-name --no-end-flt --MD --eqx --no-kalloc"),
    (OptionalValue, Pass, "--cs"),
];

/// Command preset of minimap2.
pub(super) const MINIMAP2: AlignerProgram = AlignerProgram {
    grammar: OptionGrammar { aligner: "minimap2", table: OPTIONS, style: OptionStyle::Getopt },
    files: &["minimap2"],
    verb: None,
    operands: OperandKinds::IndexReads { between: 0 },
    named: [""; 4],
    commas: false,
    threads: Some("-t"),
    derive_facts,
};

fn derive_facts(sketch: &ParsedCommand) -> Result<InvocationFacts, Error> {
    if !sketch.has_option("-a") {
        let why = "without -a it writes PAF, which has no line for reads without a hit; add -a";
        return Err(sketch.usage_error(why.to_owned()));
    }
    let target = index_path(sketch)?;
    let made = target.extension().is_some_and(|extension| extension == "mmi");
    let part = sketch.parse_num_bases_option("-I", true)?.unwrap_or(INDEX_PART_BASES);
    // I/O error ignored: a missing index is reported when it is checked.
    if !made && fs::metadata(&target).is_ok_and(|target| target.len() > part) {
        let why = format!("{} makes an index of several parts; give -I its number of bases", target.display());
        return Err(sketch.usage_error(why));
    }
    let fragments = match sketch.option_value("--frag") {
        Some(word) => matches!(word, "yes" | "y"),
        None => sketch.option_value("-x").is_some_and(|preset| preset == "sr" || preset == "short"),
    };
    if !fragments && sketch.read_operands.len() > 1 {
        let why = "two files without -x sr are mapped one after the other; run it once for each";
        return Err(sketch.usage_error(why.to_owned()));
    }
    let reads =
        sketch.read_files_and_input_mode(false, if fragments { ReadFiles::Mixed } else { ReadFiles::Single })?;
    let loading = if made { IndexLoading::Private } else { IndexLoading::Built };
    Ok(InvocationFacts::read_by_read(Some(AlignerIndex { files: vec![target], loading, made_by: None }), reads))
}
