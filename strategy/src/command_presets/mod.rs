//! Parses the command lines of known aligners.
//!
//! An aligner is defined by a table of its options, its properties ([`AlignerProgram`]), and a function that derives
//! from the options how the aligner treats reads ([`InvocationFacts`]). Options that are not in the table are refused.

mod options;
mod parsed_command;
mod placeholders;
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

use self::options::OptionGrammar;
use self::parsed_command::{ParsedCommand, ThreadSetting};
use genuma_reads::AlignedOptions;

use crate::invocation::{
    AlignerIndex, CommandWord, Determinism, Error, Invocation, OutputFormat, ReadDependence, ReadFiles, ReadInputMode,
    RecordOrder, WordPart,
};

/// Reason why options that drop unmapped reads are refused.
const UNMAPPED_NEEDED: &str =
    "genuma needs a record of each read to put them in order; filter the result (samtools view -F 4)";

/// Properties of a known aligner.
struct AlignerProgram {
    grammar: OptionGrammar,
    /// File names of the program, without version and instruction set.
    files: &'static [&'static str],
    /// Subcommand of the program, such as `mem`; `None` without subcommands.
    verb: Option<&'static str>,
    operands: OperandKinds,
    /// Names of the options that give an instance its reads: read 1, read 2, single reads, interleaved mates.
    named: [&'static str; 4],
    /// Whether one value of an option may list several files, separated by commas.
    commas: bool,
    /// Option for the number of threads; `None` if the program has one thread.
    threads: Option<&'static str>,
    /// Derives from a command line how the aligner treats reads.
    derive_facts: fn(&ParsedCommand) -> Result<InvocationFacts, Error>,
}

/// Meaning of operands (words that are not options).
#[derive(Clone, Copy)]
enum OperandKinds {
    /// No operands.
    Nothing,
    /// The index, then files that stay unchanged, then one or two read files.
    IndexReads {
        /// Number of files between the index and the reads that stay unchanged.
        between: usize,
    },
    /// Like `IndexReads`, but an instance reads standard input: it gets these words instead of the files.
    IndexStdin(&'static [&'static str]),
}

/// How an aligner treats reads under a given command line, and what genuma adds to the command.
struct InvocationFacts {
    index: Option<AlignerIndex>,
    /// The read files, and how an instance reads them.
    reads: (ReadFiles, ReadInputMode),
    /// Whether the aligner accepts unpaired reads in an interleaved file.
    accepts_unpaired_in_interleaved: bool,
    format: OutputFormat,
    depends: ReadDependence,
    determinism: Determinism,
    order: RecordOrder,
    /// Words that genuma adds to an instance's command, besides the number of threads.
    extra: Vec<CommandWord>,
}

impl InvocationFacts {
    /// Facts of an aligner that aligns read by read in input order and writes SAM.
    fn read_by_read(index: Option<AlignerIndex>, reads: (ReadFiles, ReadInputMode)) -> InvocationFacts {
        InvocationFacts {
            index,
            reads,
            accepts_unpaired_in_interleaved: false,
            format: OutputFormat::Sam,
            depends: ReadDependence::Nothing,
            determinism: Determinism::Exact,
            order: RecordOrder::InputOrder,
            extra: Vec::new(),
        }
    }
}

const KNOWN_PROGRAMS: [&AlignerProgram; 12] = [
    &bwa::BWA_MEM,
    &bwa::BWA_MEM2,
    &bwa::BWA_ALN,
    &bwa::BWA_SAMSE,
    &bwa::BWA_SAMPE,
    &minibwa::MINIBWA_MAP,
    &bowtie2::BOWTIE2,
    &minimap2::MINIMAP2,
    &strobealign::STROBEALIGN,
    &snap::SNAP_SINGLE,
    &snap::SNAP_PAIRED,
    &gem::GEM_MAPPER,
];

/// Parses a command line, the program first. In the command line of a program that genuma does not know, words may
/// contain the placeholders `{reads1}`, `{reads2}`, `{reads}`, `{threads}` and `{block}`. Without a placeholder for
/// reads, such a program gets them on standard input.
///
/// # Errors
/// An option is unknown or not possible with several instances, or reads or index are missing.
pub fn parse_command(words: &[OsString]) -> Result<Invocation, Error> {
    let Some((file, rest)) = words.split_first() else {
        return Err(Error::Usage { aligner: "genuma".to_owned(), why: "no command; write it behind --".to_owned() });
    };
    let name = Path::new(file).file_name().unwrap_or_default();
    let known = known_programs(name);
    if known.is_empty() {
        return placeholders::parse_command_of_unknown_program(words);
    }
    let verb = rest.first();
    let program = known.iter().find(|program| program.verb.is_none_or(|known| verb.is_some_and(|word| word == known)));
    let Some(program) = program else {
        let verbs: Vec<&str> = known.iter().filter_map(|program| program.verb).collect();
        let said = verb.map_or("the subcommand is missing".to_owned(), |word| {
            format!("'{}' does not align reads", word.display())
        });
        let why = format!("{said}; genuma runs {}", verbs.join(", "));
        return Err(Error::Usage { aligner: name.to_string_lossy().into_owned(), why });
    };
    program.parse_invocation(words)
}

/// Returns whether the program is unknown to genuma and the command line has no placeholder for reads or blocks.
pub fn is_unknown_program_without_read_placeholder(words: &[OsString]) -> bool {
    let name = words.first().and_then(|file| Path::new(file).file_name()).unwrap_or_default();
    known_programs(name).is_empty() && !placeholders::has_read_or_block_placeholder(words)
}

/// Returns the known programs with a file name.
fn known_programs(name: &OsStr) -> Vec<&'static AlignerProgram> {
    let is_named = |program: &&AlignerProgram| program.files.iter().any(|file| is_program_name(name, file));
    KNOWN_PROGRAMS.into_iter().filter(is_named).collect()
}

/// Returns whether a file is `program`, optionally with the suffix of an instruction set (`bwa-mem2.avx2`).
fn is_program_name(file: &OsStr, program: &str) -> bool {
    let Some(rest) = file.to_str().and_then(|file| file.strip_prefix(program)) else { return false };
    rest.is_empty() || rest.starts_with('.')
}

impl AlignerProgram {
    fn parse_invocation(&self, given: &[OsString]) -> Result<Invocation, Error> {
        let head = 1 + usize::from(self.verb.is_some());
        let sketch = ParsedCommand::classify_command_items(self, self.grammar.parse_command_words(&given[head..])?)?;
        let facts = (self.derive_facts)(&sketch)?;
        let mut added: Vec<CommandWord> = Vec::new();
        if let Some(option) = self.threads {
            added.extend([CommandWord::fixed_text_word(option), CommandWord(vec![WordPart::Threads])]);
        }
        added.extend(facts.extra);
        let mut words: Vec<CommandWord> = given[..head].iter().map(CommandWord::fixed_text_word).collect();
        // A program whose options are whole words needs its files first.
        match self.operands {
            OperandKinds::IndexStdin(_) => words.extend(sketch.words.into_iter().chain(added)),
            OperandKinds::Nothing | OperandKinds::IndexReads { .. } => {
                words.extend(added.into_iter().chain(sketch.words))
            }
        }
        let threads = match sketch.threads {
            _ if self.threads.is_none() => Some(1),
            ThreadSetting::Given(n) => Some(n),
            ThreadSetting::Placeholder | ThreadSetting::ProgramDefault => None,
        };
        Ok(Invocation {
            aligner: self.grammar.aligner.to_owned(),
            given: given.to_vec(),
            words,
            reads: facts.reads.0,
            aligned: AlignedOptions::default(),
            feed: facts.reads.1,
            unpaired_in_interleaved: facts.accepts_unpaired_in_interleaved,
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

/// Returns the index path that the command line names.
fn index_path(sketch: &ParsedCommand) -> Result<PathBuf, Error> {
    let index = sketch.index.as_ref().ok_or_else(|| sketch.usage_error("no index is given".to_owned()))?;
    Ok(index.into())
}

/// Returns a path with a suffix added to its name.
fn path_with_suffix(path: &Path, end: &str) -> PathBuf {
    let mut whole = path.as_os_str().to_owned();
    whole.push(end);
    whole.into()
}
