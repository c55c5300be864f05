//! bwa mem, bwa-mem2 mem, bwa aln, samse and sampe.
//!
//! `mem` reads blocks of 10,000,000 bases a thread (`-K`: in all), estimates insert sizes by block, and breaks ties by the
//! read's number in the whole input.

use std::path::PathBuf;

use super::options::Means::{Block, Output, Pass, Refuse, Threads as AsThreads};
use super::options::Takes::{Nothing, Value};
use super::options::{Grammar, Style, Table};
use super::sketch::{Sketch, Threads};
use super::{Facts, Operands, Program, added, indexed};
use crate::invocation::{Depends, Error, Format, Index, Loading, Piece, Reads, Word};

/// Bases of a block for each thread (`opt->chunk_size`).
const BLOCK: u64 = 10_000_000;

const MEM_OPTIONS: Table = &[
    (Value, AsThreads, "-t"),
    (Value, Output, "-o -f"),
    (Value, Block, "-K"),
    (Value, Pass, "-k -w -d -r -y -c -D -W -m -A -B -O -E -L -U -x -R -H -v -T -h -I -s -G -N -X -Q -F -z"),
    (Nothing, Pass, "-S -P -p -j -5 -q -a -C -V -Y -M -u -1"),
];

const MEM2_OPTIONS: Table = &[
    (Value, AsThreads, "-t"),
    (Value, Output, "-o"),
    (Value, Block, "-K"),
    (Value, Refuse("its index is other files; genuma does not know them"), "-Z"),
    (Value, Pass, "-k -w -d -r -y -c -D -W -m -A -B -O -E -L -U -x -R -H -v -T -h -I -s -G -N -X -Q"),
    (Nothing, Pass, "-S -P -p -j -5 -a -C -V -Y -M -1"),
];

const BAM: &str = "reads in a BAM file are not dealt; make FASTQ of them";

const ALN_OPTIONS: Table = &[
    (Value, AsThreads, "-t"),
    (Value, Output, "-f"),
    (Nothing, Refuse(BAM), "-b -0 -1 -2"),
    (Value, Pass, "-n -o -e -i -d -l -k -m -M -O -E -R -q -B"),
    (Nothing, Pass, "-L -N -I -Y"),
];

const SAMSE_OPTIONS: Table = &[(Value, Output, "-f"), (Value, Pass, "-n -r")];

const SAMPE_OPTIONS: Table =
    &[(Value, Output, "-f"), (Value, Pass, "-a -o -n -N -c -r"), (Nothing, Pass, "-P -s -A")];

const fn verb(
    aligner: &'static str,
    files: &'static [&'static str],
    verb: &'static str,
    table: Table,
    conclude: fn(&Sketch) -> Result<Facts, Error>,
) -> Program {
    Program {
        grammar: Grammar { aligner, table, style: Style::Getopt },
        files,
        verb: Some(verb),
        operands: Operands::IndexReads { between: 0 },
        named: [""; 4],
        commas: false,
        threads: Some("-t"),
        conclude,
    }
}

pub(super) const MEM: Program = verb("bwa mem", &["bwa"], "mem", MEM_OPTIONS, mem);
pub(super) const MEM2: Program = verb("bwa-mem2 mem", &["bwa-mem2"], "mem", MEM2_OPTIONS, mem);
pub(super) const ALN: Program = verb("bwa aln", &["bwa"], "aln", ALN_OPTIONS, aln);
pub(super) const SAMSE: Program = Program {
    operands: Operands::IndexReads { between: 1 },
    threads: None,
    ..verb("bwa samse", &["bwa"], "samse", SAMSE_OPTIONS, in_sequence)
};
pub(super) const SAMPE: Program = Program {
    operands: Operands::IndexReads { between: 2 },
    threads: None,
    ..verb("bwa sampe", &["bwa"], "sampe", SAMPE_OPTIONS, in_sequence)
};

fn index(sketch: &Sketch) -> Result<Index, Error> {
    let prefix = indexed(sketch)?;
    // bwa looks for an index of this name first.
    let wide = added(&prefix, ".64");
    let wide_there = added(&wide, ".bwt").exists();
    let (stem, extensions, program) = match sketch.aligner {
        "bwa-mem2 mem" => (&prefix, [".0123", ".amb", ".ann", ".bwt.2bit.64", ".pac"], "bwa-mem2"),
        _ if wide_there => (&wide, [".amb", ".ann", ".bwt", ".pac", ".sa"], "bwa"),
        _ => (&prefix, [".amb", ".ann", ".bwt", ".pac", ".sa"], "bwa"),
    };
    Ok(Index {
        files: extensions.map(|extension| added(stem, extension)).to_vec(),
        loading: Loading::Private,
        made_by: Some(format!("{program} index {}", prefix.display())),
    })
}

fn mem(sketch: &Sketch) -> Result<Facts, Error> {
    let mates = sketch.has("-p");
    if mates && sketch.loose.len() > 1 {
        return Err(
            sketch.usage("with -p it ignores the second file of reads; leave one of the two away".to_owned())
        );
    }
    let index = index(sketch)?;
    let reads = sketch.reads(false, if mates { Reads::Interleaved } else { Reads::Single })?;
    let given = sketch.bases("-K", false)?;
    let (bases, per_thread) = match (given, sketch.threads) {
        (Some(bases), _) => (bases, false),
        (None, Threads::Said(n)) => (BLOCK.saturating_mul(n as u64), false),
        (None, Threads::Unsaid) => (BLOCK, false),
        (None, Threads::Open) => (BLOCK, true),
    };
    Ok(Facts {
        depends: Depends::Blocks { bases, per_thread, even: true, least_reads: 0, numbered: true },
        // With -p it looks at names.
        strays: true,
        extra: vec![Word::plain("-K"), Word(vec![Piece::Block])],
        ..Facts::plain(Some(index), reads)
    })
}

fn one_file(sketch: &Sketch, reads: fn(Vec<PathBuf>) -> Reads) -> Result<Facts, Error> {
    if sketch.loose.len() > 1 {
        return Err(sketch.usage("it takes one file of reads".to_owned()));
    }
    Ok(Facts::plain(Some(index(sketch)?), sketch.reads(false, reads)?))
}

fn aln(sketch: &Sketch) -> Result<Facts, Error> {
    Ok(Facts { format: Format::Sai, ..one_file(sketch, Reads::Single)? })
}

/// They draw random numbers read after read.
fn in_sequence(sketch: &Sketch) -> Result<Facts, Error> {
    let facts = match sketch.aligner {
        "bwa samse" => one_file(sketch, Reads::Single)?,
        _ if sketch.loose.len() != 2 => {
            return Err(sketch.usage("it takes an index, two .sai files and two files of reads".to_owned()));
        }
        _ => Facts::plain(Some(index(sketch)?), sketch.reads(false, Reads::Single)?),
    };
    Ok(Facts { depends: Depends::Everything, ..facts })
}
