//! snap-aligner single and paired: read by read, with several threads in any order.
//!
//! Mates come to an instance in turn on standard input: SNAP 2.0.2 took no two pipes. Its threads stay where the instance
//! is put (`-b-`), not on CPUs from 0 on.

use std::ffi::OsStr;

use super::options::Means::{Drop, Output, Pass, Refuse, Threads as AsThreads};
use super::options::Takes::{Nothing, Rest, Two, Typed, Value};
use super::options::{Grammar, Style, Table};
use super::sketch::{Sketch, Threads};
use super::{Facts, Operands, Program, indexed};
use crate::invocation::{Determinism, Error, Feed, Index, Loading, Order, Output as Goes, Reads, Word};

const SORTED: &str = "an instance's order is not that of all; sort the result";
const FILTER: &str = "reads would be missing, and genuma needs a record of each; filter the result";
const FORM: &str = "genuma deals FASTQ and FASTA only";

const OPTIONS: Table = &[
    (Value, AsThreads, "-t"),
    (Typed, Output, "-o"),
    (
        Nothing,
        Drop,
        "-fastq -compressedFastq -pairedFastq -pairedInterleavedFastq -pairedCompressedInterleavedFastq",
    ),
    (Nothing, Drop, "-b-|--b"),
    (Nothing, Refuse(FORM), "-sam -bam -ku"),
    (Nothing, Refuse(SORTED), "-so -di"),
    (Value, Refuse(SORTED), "-sm -sid -S"),
    (Value, Refuse(FILTER), "-F -E"),
    (Value, Refuse("each instance would write it for itself; leave it away"), "-pf"),
    (Nothing, Refuse("it may end an instance midway; leave it away"), "-kts"),
    (
        Value,
        Pass,
        "-d -i -n -sc -h -ms -cc -D -rg -R -om -omax -mpc -xf -mrl -wbs -is -gm -gs -go -ge -g5 -g3",
    ),
    (Value, Pass, "-asg -fmb -H -mcp -N -en -es -eg"),
    (Two, Pass, "-s"),
    (
        Nothing,
        Pass,
        "-P -x -f -I -= -M -hp -pc -hdp -map -map- -pre -pre- -lp -nu -no -nt -ne -nb -pro -proAg -ae",
    ),
    (Nothing, Pass, "-G- -A- -ea -hc -hc- -at -pfc -q -qq -ins -fs -eh -eh-"),
    (Rest, Pass, "-C"),
];

const fn verb(aligner: &'static str, verb: &'static str, stdin: &'static [&'static str]) -> Program {
    Program {
        grammar: Grammar { aligner, table: OPTIONS, style: Style::Words },
        files: &["snap-aligner", "snap"],
        verb: Some(verb),
        operands: Operands::IndexStdin(stdin),
        named: [""; 4],
        commas: false,
        threads: Some("-t"),
        conclude,
    }
}

pub(super) const SINGLE: Program = verb("snap-aligner single", "single", &["-fastq", "-"]);
pub(super) const PAIRED: Program = verb("snap-aligner paired", "paired", &["-pairedInterleavedFastq", "-"]);

fn conclude(sketch: &Sketch) -> Result<Facts, Error> {
    let folder = indexed(sketch)?;
    if !sketch.operand_leads {
        return Err(sketch.usage("the index comes before all options".to_owned()));
    }
    if sketch.loose.iter().any(|file| file.as_os_str() == ",") {
        return Err(sketch.usage("several alignments in one command; run one after the other".to_owned()));
    }
    written(sketch)?;
    let files = ["Genome", "GenomeIndex", "GenomeIndexHash", "OverflowTable"];
    let index = Index {
        files: files.map(|file| folder.join(file)).to_vec(),
        loading: if sketch.has("-map-") { Loading::Private } else { Loading::Mapped },
        made_by: Some(format!("snap-aligner index REFERENCE {}", folder.display())),
    };
    let determinism = match sketch.threads {
        _ if sketch.has("-at") => Determinism::Loose("-at: times are written into records".to_owned()),
        _ if sketch.has("-ins") => Determinism::Loose("-ins: spacing is estimated as reads go by".to_owned()),
        Threads::Said(1) => Determinism::Exact,
        _ => Determinism::Unordered,
    };
    Ok(Facts {
        determinism,
        order: Order::AsReadByOneThread,
        extra: ["-b-", "-o", "-sam", "-"].map(Word::plain).to_vec(),
        ..Facts::plain(Some(index), (reads(sketch)?, Feed::Stdin))
    })
}

/// Only SAM text is merged.
fn written(sketch: &Sketch) -> Result<(), Error> {
    let kind = sketch.options.iter().find(|(name, ..)| *name == "-o").map(|(_, _, kind)| kind.as_deref());
    let sam = match (kind, &sketch.output) {
        // Without -o there are no records at all.
        (None, _) => false,
        (Some(Some(kind)), _) => kind == "-sam",
        (Some(None), Goes::File(path)) => path.extension() == Some(OsStr::new("sam")),
        (Some(None), Goes::Stdout) => false,
    };
    if sam {
        Ok(())
    } else {
        Err(sketch.usage("genuma merges SAM text only; write -o FILE.sam or -o -sam -".to_owned()))
    }
}

fn reads(sketch: &Sketch) -> Result<Reads, Error> {
    let in_turn =
        ["-pairedInterleavedFastq", "-pairedCompressedInterleavedFastq"].iter().any(|form| sketch.has(form));
    let reads = match (sketch.aligner, sketch.loose.as_chunks::<2>()) {
        _ if sketch.loose.is_empty() => return Err(sketch.usage("it names no reads".to_owned())),
        ("snap-aligner single", _) => Reads::Single(sketch.loose.clone()),
        _ if in_turn => Reads::Interleaved(sketch.loose.clone()),
        (_, (pairs, [])) => Reads::Paired(pairs.to_vec()),
        _ => {
            return Err(
                sketch.usage("mates want two files for each lane, or -pairedInterleavedFastq".to_owned())
            );
        }
    };
    super::sketch::unnamed(reads).map_err(|why| sketch.usage(why))
}
