//! bowtie2: read by read; with several threads in any order unless it has `--reorder`.

use std::path::PathBuf;

use super::options::Means::{
    Drop, Index as AsIndex, Interleaved, Output, Pass, Reads as AsReads, Reads1, Reads2, Refuse,
    Threads as AsThreads,
};
use super::options::Takes::{Nothing, Value};
use super::options::{Grammar, Style, Table};
use super::sketch::{Sketch, Threads};
use super::{Facts, Operands, Program, UNMAPPED, added, indexed};
use crate::invocation::{Determinism, Error, Index, Loading, Reads, Word};

const SIDE: &str = "each instance would write it for itself; take these reads out of the result";
const FORM: &str = "genuma deals FASTQ and FASTA only";
const COUNTED: &str = "an instance does not see the reads of the others; cut the input beforehand";

const OPTIONS: Table = &[
    (Value, AsIndex, "-x"),
    (Value, Reads1, "-1"),
    (Value, Reads2, "-2"),
    (Value, AsReads, "-U"),
    (Value, Interleaved, "--interleaved"),
    (Value, Output, "-S|--output"),
    (Value, AsThreads, "-p|--threads"),
    (Nothing, Drop, "--reorder"),
    (Value, Refuse(SIDE), "--un --un-gz --un-bz2 --un-lz4 --al --al-gz --al-bz2 --al-lz4"),
    (Value, Refuse(SIDE), "--un-conc --un-conc-gz --un-conc-bz2 --un-conc-lz4 --un-mates"),
    (Value, Refuse(SIDE), "--al-conc --al-conc-gz --al-conc-bz2 --al-conc-lz4 --met-file"),
    (Nothing, Refuse(UNMAPPED), "--no-unal"),
    (Value, Refuse(FORM), "--tab5 --tab6 -b -F"),
    (Nothing, Refuse(FORM), "--qseq -r -c --align-paired-reads --preserve-tags"),
    (Value, Refuse(COUNTED), "-s|--skip -u|--upto"),
    (
        Value,
        Pass,
        "-5|--trim5 -3|--trim3 --trim-to -N -L -i --n-ceil --dpad --gbar --ma --mp --np --rdg --rfg",
    ),
    (Value, Pass, "--score-min -k -D -R -I|--minins -X|--maxins --met --rg-id --rg --seed"),
    (Nothing, Pass, "-q -f --phred33 --phred64 --int-quals --ignore-quals --nofw --norc --no-1mm-upfront"),
    (Nothing, Pass, "--very-fast --fast --sensitive --very-sensitive --very-fast-local --fast-local"),
    (Nothing, Pass, "--sensitive-local --very-sensitive-local --end-to-end --local -a|--all --fr --rf --ff"),
    (Nothing, Pass, "--no-mixed --no-discordant --dovetail --no-contain --no-overlap -t|--time --quiet"),
    (Nothing, Pass, "--met-stderr --no-head|--no-hd --no-sq --omit-sec-seq --sam-no-qname-trunc --xeq"),
    (Nothing, Pass, "--soft-clipped-unmapped-tlen --sam-append-comment --mm --qc-filter --non-deterministic"),
];

pub(super) const ALIGN: Program = Program {
    grammar: Grammar { aligner: "bowtie2", table: OPTIONS, style: Style::Getopt },
    files: &["bowtie2", "bowtie2-align-s", "bowtie2-align-l"],
    verb: None,
    operands: Operands::Nothing,
    named: ["-1", "-2", "-U", "--interleaved"],
    commas: true,
    threads: Some("-p"),
    conclude,
};

fn conclude(sketch: &Sketch) -> Result<Facts, Error> {
    let mut prefix = indexed(sketch)?;
    let there =
        |prefix: &PathBuf| [".1.bt2", ".1.bt2l"].iter().any(|extension| added(prefix, extension).exists());
    if !there(&prefix) {
        let elsewhere = std::env::var_os("BOWTIE2_INDEXES").map(|folder| PathBuf::from(folder).join(&prefix));
        prefix = elsewhere.filter(there).unwrap_or(prefix);
    }
    let large = !added(&prefix, ".1.bt2").exists() && added(&prefix, ".1.bt2l").exists();
    let extension = if large { "bt2l" } else { "bt2" };
    let parts = ["1", "2", "3", "4", "rev.1", "rev.2"];
    let index = Index {
        files: parts.map(|part| added(&prefix, &format!(".{part}.{extension}"))).to_vec(),
        loading: if sketch.has("--mm") { Loading::Mapped } else { Loading::Private },
        made_by: Some(format!("bowtie2-build REFERENCE {}", prefix.display())),
    };
    let determinism = match sketch.threads {
        _ if sketch.has("--non-deterministic") => {
            Determinism::Loose("--non-deterministic: random numbers begin with the time".to_owned())
        }
        _ if sketch.has("--reorder") => Determinism::Exact,
        Threads::Said(1) | Threads::Unsaid => Determinism::Exact,
        Threads::Said(_) | Threads::Open => Determinism::Unordered,
    };
    Ok(Facts {
        determinism,
        extra: vec![Word::plain("--reorder")],
        ..Facts::plain(Some(index), sketch.reads(false, Reads::Single)?)
    })
}
