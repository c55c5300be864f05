//! Command line presets of snap-aligner single and paired. SNAP aligns read by read; with several threads the order is
//! arbitrary.
//!
//! Instances read interleaved mates on standard input, because SNAP 2.0.2 does not accept two pipes. With `-b-`, SNAP
//! does not bind its threads to CPUs from 0 on, so they stay on the CPUs of the instance.

use std::ffi::OsStr;

use super::options::OptionArgument::{Attached, Nothing, TwoValues, TypedValue, Value};
use super::options::OptionRole::{Drop, Output, Pass, Refuse, Threads as AsThreads};
use super::options::{OptionGrammar, OptionStyle, OptionTable};
use super::parsed_command::{ParsedCommand, ThreadSetting};
use super::{AlignerProgram, InvocationFacts, OperandKinds, index_path};
use crate::invocation::{
    AlignerIndex, CommandWord, Determinism, Error, IndexLoading, OutputTarget as Goes, ReadFiles, ReadInputMode,
    RecordOrder,
};

const SORTED: &str = "the order of an instance is not that of all instances; sort the result";
const FILTER: &str = "genuma needs a record of each read to put them in order; filter the result";
const FORM: &str = "only FASTQ and FASTA are supported";

const OPTIONS: OptionTable = &[
    (Value, AsThreads, "-t"),
    (TypedValue, Output, "-o"),
    (Nothing, Drop, "-fastq -compressedFastq -pairedFastq -pairedInterleavedFastq -pairedCompressedInterleavedFastq"),
    (Nothing, Drop, "-b-|--b"),
    (Nothing, Refuse(FORM), "-sam -bam -ku"),
    (Nothing, Refuse(SORTED), "-so -di"),
    (Value, Refuse(SORTED), "-sm -sid -S"),
    (Value, Refuse(FILTER), "-F -E"),
    (Value, Refuse("each instance would write its own file; omit it"), "-pf"),
    (Nothing, Refuse("it may end an instance early; omit it"), "-kts"),
    (Value, Pass, "-d -i -n -sc -h -ms -cc -D -rg -R -om -omax -mpc -xf -mrl -wbs -is -gm -gs -go -ge -g5 -g3"),
    (Value, Pass, "-asg -fmb -H -mcp -N -en -es -eg"),
    (TwoValues, Pass, "-s"),
    (Nothing, Pass, "-P -x -f -I -= -M -hp -pc -hdp -map -map- -pre -pre- -lp -nu -no -nt -ne -nb -pro -proAg -ae"),
    (Nothing, Pass, "-G- -A- -ea -hc -hc- -at -pfc -q -qq -ins -fs -eh -eh-"),
    (Attached, Pass, "-C"),
];

const fn verb(aligner: &'static str, verb: &'static str, stdin: &'static [&'static str]) -> AlignerProgram {
    AlignerProgram {
        grammar: OptionGrammar { aligner, table: OPTIONS, style: OptionStyle::WholeWords },
        files: &["snap-aligner", "snap"],
        verb: Some(verb),
        operands: OperandKinds::IndexStdin(stdin),
        named: [""; 4],
        commas: false,
        threads: Some("-t"),
        derive_facts,
    }
}

/// Command preset of `snap-aligner single`.
pub(super) const SNAP_SINGLE: AlignerProgram = verb("snap-aligner single", "single", &["-fastq", "-"]);
/// Command preset of `snap-aligner paired`.
pub(super) const SNAP_PAIRED: AlignerProgram = verb("snap-aligner paired", "paired", &["-pairedInterleavedFastq", "-"]);

fn derive_facts(sketch: &ParsedCommand) -> Result<InvocationFacts, Error> {
    let folder = index_path(sketch)?;
    if !sketch.starts_with_operand {
        return Err(sketch.usage_error("the index comes before all options".to_owned()));
    }
    if sketch.read_operands.iter().any(|file| file.as_os_str() == ",") {
        return Err(sketch.usage_error("several alignments in one command; run one after the other".to_owned()));
    }
    written(sketch)?;
    let files = ["Genome", "GenomeIndex", "GenomeIndexHash", "OverflowTable"];
    let index = AlignerIndex {
        files: files.map(|file| folder.join(file)).to_vec(),
        loading: if sketch.has_option("-map-") { IndexLoading::Private } else { IndexLoading::Mapped },
        made_by: Some(format!("snap-aligner index REFERENCE {}", folder.display())),
    };
    let determinism = match sketch.threads {
        _ if sketch.has_option("-at") => {
            Determinism::Nondeterministic("-at: times are written into records".to_owned())
        }
        _ if sketch.has_option("-ins") => Determinism::Nondeterministic(
            "-ins: SNAP estimates the insert size from the reads that it has aligned so far, and each instance \
                 aligns other reads"
                .to_owned(),
        ),
        ThreadSetting::Given(1) => Determinism::Exact,
        _ => Determinism::Unordered,
    };
    Ok(InvocationFacts {
        determinism,
        order: RecordOrder::InputOrderWithOneThread,
        extra: ["-b-", "-o", "-sam", "-"].map(CommandWord::fixed_text_word).to_vec(),
        ..InvocationFacts::read_by_read(Some(index), (reads(sketch)?, ReadInputMode::Stdin))
    })
}

/// Checks that the output is SAM text, the only format that genuma can merge.
fn written(sketch: &ParsedCommand) -> Result<(), Error> {
    let kind = sketch.options.iter().find(|(name, ..)| *name == "-o").map(|(_, _, kind)| kind.as_deref());
    let sam = match (kind, &sketch.output) {
        // Without -o SNAP writes no records.
        (None, _) => false,
        (Some(Some(kind)), _) => kind == "-sam",
        (Some(None), Goes::File(path)) => path.extension() == Some(OsStr::new("sam")),
        (Some(None), Goes::Stdout) => false,
    };
    if sam {
        Ok(())
    } else {
        Err(sketch.usage_error("genuma merges SAM text only; write -o FILE.sam or -o -sam -".to_owned()))
    }
}

fn reads(sketch: &ParsedCommand) -> Result<ReadFiles, Error> {
    let in_turn =
        ["-pairedInterleavedFastq", "-pairedCompressedInterleavedFastq"].iter().any(|form| sketch.has_option(form));
    let reads = match (sketch.aligner, sketch.read_operands.as_chunks::<2>()) {
        _ if sketch.read_operands.is_empty() => return Err(sketch.usage_error("no reads are given".to_owned())),
        ("snap-aligner single", _) => ReadFiles::Single(sketch.read_operands.clone()),
        _ if in_turn => ReadFiles::Interleaved(sketch.read_operands.clone()),
        (_, (pairs, [])) => ReadFiles::Paired(pairs.to_vec()),
        _ => {
            return Err(sketch.usage_error("mates need two files for each lane, or -pairedInterleavedFastq".to_owned()));
        }
    };
    super::parsed_command::replace_placeholders_by_unnamed(reads).map_err(|why| sketch.usage_error(why))
}
