//! strobealign from version 0.17 on.
//!
//! It reads blocks of more than 1,000,000 bases; random numbers and the estimate of insert sizes begin anew with each. The mean length
//! of the first 500 reads chooses its parameters unless `-r` says it.

use super::options::Means::{Output, Pass, Refuse, Threads as AsThreads};
use super::options::Takes::{Nothing, Value};
use super::options::{Grammar, Style, Table};
use super::sketch::Sketch;
use super::{Facts, Operands, Program, UNMAPPED, indexed};
use crate::invocation::{Depends, Determinism, Error, Index, Loading, Reads};

/// Bases that a block exceeds (`--chunk-size`).
const BLOCK: u64 = 1_000_000;

const LENGTH: &str = "without -r each instance chooses parameters by the mean length of the first 500 reads it gets; \
                      write -r LENGTH";

const OPTIONS: Table = &[
    (Value, AsThreads, "-t|--threads"),
    (Value, Output, "-o"),
    (Nothing, Refuse("PAF has no line for reads without a hit; leave it away"), "-x"),
    (Nothing, Refuse("abundances are of all reads, not of an instance's"), "--aemb"),
    (Nothing, Refuse("it makes an index and maps nothing; make it beforehand"), "-i|--create-index"),
    (Nothing, Refuse("it maps with one thread; leave it away"), "--trace"),
    (Nothing, Refuse(UNMAPPED), "-U"),
    (Nothing, Pass, "-v --no-progress -p|--interleaved --use-index --eqx --no-PG --details -C --ssw"),
    (Value, Pass, "--ithreads --chunk-size --rg-id --rg -N --st -r -P -m -k -s -l -u -c -b --aux-len --mcs"),
    (Value, Pass, "-f -S -M -R -H --gd --gl --vp --sg --mw --mr -A -B -O -E -L --bw"),
];

pub(super) const ALIGN: Program = Program {
    grammar: Grammar { aligner: "strobealign", table: OPTIONS, style: Style::Getopt },
    files: &["strobealign"],
    verb: None,
    operands: Operands::IndexReads { between: 0 },
    named: [""; 4],
    commas: false,
    threads: Some("-t"),
    conclude,
};

fn conclude(sketch: &Sketch) -> Result<Facts, Error> {
    let files = vec![indexed(sketch)?];
    let loading = if sketch.has("--use-index") { Loading::Private } else { Loading::Built };
    let reads = sketch.reads(false, if sketch.has("-p") { Reads::Mixed } else { Reads::Single })?;
    let bases = sketch.bases("--chunk-size", false)?.unwrap_or(BLOCK).saturating_add(1);
    let said = sketch.has("-r") || sketch.has("-P");
    Ok(Facts {
        depends: Depends::Blocks { bases, per_thread: false, even: false, least_reads: 0, numbered: false },
        determinism: if said { Determinism::Exact } else { Determinism::Loose(LENGTH.to_owned()) },
        ..Facts::plain(Some(Index { files, loading, made_by: None }), reads)
    })
}
