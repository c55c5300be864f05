//! minimap2 -a: read by read; ties are broken by the read's name.

use std::fs;

use super::options::Means::{Output, Pass, Refuse, Threads as AsThreads};
use super::options::Takes::{Nothing, Perhaps, Value};
use super::options::{Grammar, Style, Table};
use super::sketch::Sketch;
use super::{Facts, Operands, Program, UNMAPPED, indexed};
use crate::invocation::{Error, Index, Loading, Reads};

/// Bases of a part of the index (`-I`) by default, of the version that has fewest.
const PART: u64 = 4_000_000_000;

const OPTIONS: Table = &[
    (Value, AsThreads, "-t"),
    (Value, Output, "-o"),
    (Value, Refuse("it makes an index and maps nothing; make it beforehand"), "-d"),
    (
        Value,
        Refuse("it maps all reads to one part of the index after the other; use an index of one part"),
        "--split-prefix",
    ),
    (Nothing, Refuse(UNMAPPED), "--sam-hit-only --paf-no-hit"),
    (
        Value,
        Refuse("it leaves reads out, and genuma needs a record of each; cut the input beforehand"),
        "--max-qlen",
    ),
    (Value, Pass, "-k -w -I -f -U -e -g -r -n -m -p -N -G -F -M -A -B -C -O -E -z -s -u -R -K -x -b"),
    (Nothing, Pass, "-H -D -P -X -a -c -Q -L -y -Y -2"),
    (Value, Pass, "--alt --alt-drop --q-occ-frac --dual --rmq --mask-len --max-chain-skip --max-chain-iter"),
    (Value, Pass, "--chain-gap-scale --frag --heap-sort --end-bonus --score-N --splice-flank --junc-bed"),
    (Value, Pass, "--junc-bonus --end-seed-pen --cap-sw-mem --cap-kalloc --seed --secondary --min-occ-floor"),
    (Nothing, Pass, "--idx-no-seq --hard-mask-level --no-long-join --splice --sr --for-only --rev-only"),
    (Nothing, Pass, "--no-pairing --no-hash-name --no-end-flt --MD --eqx --no-kalloc"),
    (Perhaps, Pass, "--cs"),
];

pub(super) const MAP: Program = Program {
    grammar: Grammar { aligner: "minimap2", table: OPTIONS, style: Style::Getopt },
    files: &["minimap2"],
    verb: None,
    operands: Operands::IndexReads { between: 0 },
    named: [""; 4],
    commas: false,
    threads: Some("-t"),
    conclude,
};

fn conclude(sketch: &Sketch) -> Result<Facts, Error> {
    if !sketch.has("-a") {
        let why = "without -a it writes PAF, which has no line for reads without a hit; add -a";
        return Err(sketch.usage(why.to_owned()));
    }
    let target = indexed(sketch)?;
    let made = target.extension().is_some_and(|extension| extension == "mmi");
    let part = sketch.bases("-I", true)?.unwrap_or(PART);
    if !made && fs::metadata(&target).is_ok_and(|target| target.len() > part) {
        let why =
            format!("{} makes an index of several parts; give -I its number of bases", target.display());
        return Err(sketch.usage(why));
    }
    let fragments = match sketch.value("--frag") {
        Some(word) => matches!(word, "yes" | "y"),
        None => sketch.value("-x").is_some_and(|preset| preset == "sr" || preset == "short"),
    };
    if !fragments && sketch.loose.len() > 1 {
        let why = "two files without -x sr are mapped one after the other; run it once for each";
        return Err(sketch.usage(why.to_owned()));
    }
    let reads = sketch.reads(false, if fragments { Reads::Mixed } else { Reads::Single })?;
    let loading = if made { Loading::Private } else { Loading::Built };
    Ok(Facts::plain(Some(Index { files: vec![target], loading, made_by: None }), reads))
}
