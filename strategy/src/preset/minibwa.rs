//! minibwa map.
//!
//! It reads blocks of 100,000,000 bases whatever the threads (`-K`), estimates the distance of mates by block, and breaks ties
//! by the read's name. In one file, neighbours of one name are mates; such a block has 40,000 reads at least.

use super::options::Means::{Output, Pass, Refuse, Threads as AsThreads};
use super::options::Takes::{Nothing, Perhaps, Value};
use super::options::{Grammar, Style, Table};
use super::sketch::Sketch;
use super::{Facts, Operands, Program, UNMAPPED, added, indexed};
use crate::invocation::{Depends, Error, Feed, Index, Loading, Reads};

/// Bases of a block (`mb_size`), of short reads.
const BLOCK: u64 = 100_000_000;
/// Reads of a block of one file at least (`min_read_cnt`).
const LEAST: u64 = 40_000;

const OPTIONS: Table = &[
    (Value, AsThreads, "-t"),
    (Value, Output, "-o"),
    (Nothing, Refuse("PAF has no line for reads without a hit; leave it away"), "-f"),
    (Nothing, Refuse(UNMAPPED), "-u"),
    (Value, Pass, "-x -k -c -m -p -A -B -U -b -O -E -K -N -R -H -l -w -W -g -s -I"),
    (Nothing, Pass, "-P -y -Y -a -5 --eqx --chain-only --meth --hic"),
    (Value, Pass, "--kalloc --outn --rescue --pe --adap --xa --xa-ratio --outs"),
    (Perhaps, Pass, "--long --mmap"),
];

pub(super) const MAP: Program = Program {
    grammar: Grammar { aligner: "minibwa map", table: OPTIONS, style: Style::Getopt },
    files: &["minibwa"],
    verb: Some("map"),
    operands: Operands::IndexReads { between: 0 },
    named: [""; 4],
    commas: false,
    threads: Some("-t"),
    conclude,
};

fn conclude(sketch: &Sketch) -> Result<Facts, Error> {
    let prefix = indexed(sketch)?;
    let pairs = sketch.value("-x") != Some("lr") && !matches!(sketch.value("--pe"), Some("no" | "n"));
    let reads = sketch.reads(false, if pairs { Reads::Mixed } else { Reads::Single })?;
    // An index for --meth has other files.
    let index = (!sketch.has("--meth")).then(|| Index {
        files: [".l2b", ".mbw"].map(|extension| added(&prefix, extension)).to_vec(),
        loading: if sketch.has("--mmap") { Loading::Mapped } else { Loading::Private },
        made_by: Some(format!("minibwa index REFERENCE {}", prefix.display())),
    });
    let estimates = pairs && !["-P", "-I", "--hic"].iter().any(|option| sketch.has(option));
    // NUM1[,NUM2]: a block that ends by reads may be longer, up to NUM2.
    let given =
        sketch.value("-K").map(|text| text.split_once(',').map_or((text, false), |(one, _)| (one, true)));
    let bases = given.map(|(text, _)| sketch.number("-K", text, true)).transpose()?;
    let least_reads = match (reads.1, given) {
        (Feed::Two, _) | (_, Some((_, false))) => 0,
        _ => LEAST,
    };
    let blocks = Depends::Blocks {
        bases: bases.unwrap_or(BLOCK),
        per_thread: false,
        even: false,
        least_reads,
        numbered: false,
    };
    Ok(Facts { depends: if estimates { blocks } else { Depends::Nothing }, ..Facts::plain(index, reads) })
}
