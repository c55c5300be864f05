//! Presets: command lines of known aligners, understood.
//!
//! An aligner is a table of its options, a line of facts ([`Program`]) and one small function that draws conclusions.
//! What is not in the table is refused.

mod options;
mod sketch;
mod template;
mod bwa;
mod bowtie2;
mod minimap2;
mod minibwa;
mod strobealign;
mod snap;
mod gem;

#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use self::options::Grammar;
use self::sketch::{Sketch, Threads};
use genuma_reads::AlignedOptions;

use crate::invocation::{
    Depends, Determinism, Error, Feed, Format, Index, Invocation, Order, Piece, Reads, Word,
};

/// Why options that leave unmapped reads out are refused.
const UNMAPPED: &str =
    "genuma needs a record of each read to put them in order; filter the result (samtools view -F 4)";

/// An aligner genuma knows.
struct Program {
    grammar: Grammar,
    /// Names of its file, without version and instruction set behind.
    files: &'static [&'static str],
    /// Its verb, if it has verbs.
    verb: Option<&'static str>,
    operands: Operands,
    /// Options that name reads in an instance's command: of read 1, read 2, single reads, mates in turn.
    named: [&'static str; 4],
    /// Whether several files stand in one value with commas between them.
    commas: bool,
    /// The option for threads; none if it has one thread.
    threads: Option<&'static str>,
    conclude: fn(&Sketch) -> Result<Facts, Error>,
}

/// What words that are no options are.
#[derive(Clone, Copy)]
enum Operands {
    /// There are none.
    Nothing,
    /// The index, then so many files that stay as they are, then one file of reads or two.
    IndexReads {
        /// Files that stay as they are.
        between: usize,
    },
    /// The same, but an instance gets these words instead of files and reads standard input.
    IndexStdin(&'static [&'static str]),
}

/// What follows from a command line.
struct Facts {
    index: Option<Index>,
    /// Reads and how an instance gets them.
    reads: (Reads, Feed),
    strays: bool,
    format: Format,
    depends: Depends,
    determinism: Determinism,
    order: Order,
    /// Words that an instance has besides, right behind the verb.
    extra: Vec<Word>,
}

impl Facts {
    /// Of an aligner that answers read by read in the order of the reads, and writes SAM.
    fn plain(index: Option<Index>, reads: (Reads, Feed)) -> Facts {
        Facts {
            index,
            reads,
            strays: false,
            format: Format::Sam,
            depends: Depends::Nothing,
            determinism: Determinism::Exact,
            order: Order::AsRead,
            extra: Vec::new(),
        }
    }
}

const PROGRAMS: [&Program; 12] = [
    &bwa::MEM,
    &bwa::MEM2,
    &bwa::ALN,
    &bwa::SAMSE,
    &bwa::SAMPE,
    &minibwa::MAP,
    &bowtie2::ALIGN,
    &minimap2::MAP,
    &strobealign::ALIGN,
    &snap::SINGLE,
    &snap::PAIRED,
    &gem::MAP,
];

/// Understands a command line, its program first. What is no known aligner is a template:
/// `{reads1}`, `{reads2}`, `{reads}`, `{threads}` and `{block}` may stand in its words, and without a word for reads they come on
/// standard input.
///
/// # Errors
/// An option is unknown or cannot be had with several instances, or reads or index are missing.
pub fn understand(words: &[OsString]) -> Result<Invocation, Error> {
    let Some((file, rest)) = words.split_first() else {
        return Err(Error::Usage {
            aligner: "genuma".to_owned(),
            why: "no command; write it behind --".to_owned(),
        });
    };
    let name = Path::new(file).file_name().unwrap_or_default();
    let known: Vec<&Program> = PROGRAMS
        .into_iter()
        .filter(|program| program.files.iter().any(|file| is_called(name, file)))
        .collect();
    if known.is_empty() {
        return template::understand(words);
    }
    let verb = rest.first();
    let program =
        known.iter().find(|program| program.verb.is_none_or(|known| verb.is_some_and(|word| word == known)));
    let Some(program) = program else {
        let verbs: Vec<&str> = known.iter().filter_map(|program| program.verb).collect();
        let said = verb.map_or("it lacks its verb".to_owned(), |word| {
            format!("'{}' does not align reads", word.display())
        });
        let why = format!("{said}; genuma runs {}", verbs.join(", "));
        return Err(Error::Usage { aligner: name.to_string_lossy().into_owned(), why });
    };
    program.understand(words)
}

/// Whether a file is `program`, perhaps with an instruction set behind its name (`bwa-mem2.avx2`).
fn is_called(file: &OsStr, program: &str) -> bool {
    let Some(rest) = file.to_str().and_then(|file| file.strip_prefix(program)) else { return false };
    rest.is_empty() || rest.starts_with('.')
}

impl Program {
    fn understand(&self, given: &[OsString]) -> Result<Invocation, Error> {
        let head = 1 + usize::from(self.verb.is_some());
        let sketch = Sketch::of(self, self.grammar.parse(&given[head..])?)?;
        let facts = (self.conclude)(&sketch)?;
        let mut added: Vec<Word> = Vec::new();
        if let Some(option) = self.threads {
            added.extend([Word::plain(option), Word(vec![Piece::Threads])]);
        }
        added.extend(facts.extra);
        let mut words: Vec<Word> = given[..head].iter().map(Word::plain).collect();
        // A program whose words are whole options wants its files first.
        match self.operands {
            Operands::IndexStdin(_) => words.extend(sketch.words.into_iter().chain(added)),
            Operands::Nothing | Operands::IndexReads { .. } => {
                words.extend(added.into_iter().chain(sketch.words))
            }
        }
        let threads = match sketch.threads {
            _ if self.threads.is_none() => Some(1),
            Threads::Said(n) => Some(n),
            Threads::Open | Threads::Unsaid => None,
        };
        Ok(Invocation {
            aligner: self.grammar.aligner.to_owned(),
            given: given.to_vec(),
            words,
            reads: facts.reads.0,
            aligned: AlignedOptions::default(),
            feed: facts.reads.1,
            strays: facts.strays,
            threads,
            index: facts.index,
            output: sketch.output,
            format: facts.format,
            depends: facts.depends,
            determinism: facts.determinism,
            order: facts.order,
        })
    }
}

/// The index that the command line names.
fn indexed(sketch: &Sketch) -> Result<PathBuf, Error> {
    let index = sketch.index.as_ref().ok_or_else(|| sketch.usage("it names no index".to_owned()))?;
    Ok(index.into())
}

/// A path with `end` behind its name.
fn added(path: &Path, end: &str) -> PathBuf {
    let mut whole = path.as_os_str().to_owned();
    whole.push(end);
    whole.into()
}
