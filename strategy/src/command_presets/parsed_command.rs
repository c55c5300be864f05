//! The parsed words of an aligner's command line: options, index, files of reads and output.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::slice;

use super::options::{CommandItem, OptionRole};
use super::{AlignerProgram, OperandKinds};
use crate::invocation::{CommandWord, Error, OutputTarget, ReadFiles, ReadInputMode, WordPart};

/// How a command line gives the number of threads of the plain run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThreadSetting {
    /// As this number.
    Given(usize),
    /// As the placeholder `{threads}`: genuma chooses the number.
    Placeholder,
    /// Not at all: the default of the program applies.
    ProgramDefault,
}

/// An aligner's command line divided into options, index, files of reads and output.
pub(super) struct ParsedCommand {
    /// Name of the aligner, for messages.
    pub aligner: &'static str,
    /// Words of an instance's command after the program and its subcommand, without those that genuma adds.
    pub words: Vec<CommandWord>,
    /// Number of threads in the command line.
    pub threads: ThreadSetting,
    /// Where the plain run writes its records.
    pub output: OutputTarget,
    /// Whether an operand comes before all options.
    pub(crate) starts_with_operand: bool,
    /// The index that the command line names.
    pub index: Option<OsString>,
    /// Number of operands between the index and the first file of reads.
    between: usize,
    /// Files of read 1, one per lane, given by options.
    pub reads1: Vec<PathBuf>,
    /// Files of read 2, one per lane, given by options.
    pub reads2: Vec<PathBuf>,
    /// Files of single reads, or of interleaved mates if another option says so, given by options.
    pub single: Vec<PathBuf>,
    /// Files of interleaved mates, given by options.
    pub interleaved: Vec<PathBuf>,
    /// Read files given as operands.
    pub read_operands: Vec<PathBuf>,
    /// Options by main name, with value and the word that gives the value's type.
    pub options: Vec<(&'static str, Option<OsString>, Option<OsString>)>,
}

impl ParsedCommand {
    /// Sorts the items of the command line of `program` into options, index, files of reads and output.
    pub(super) fn classify_command_items(
        program: &AlignerProgram,
        items: Vec<CommandItem>,
    ) -> Result<ParsedCommand, Error> {
        let mut sketch = ParsedCommand {
            aligner: program.grammar.aligner,
            words: Vec::new(),
            threads: ThreadSetting::ProgramDefault,
            output: OutputTarget::Stdout,
            starts_with_operand: matches!(items.first(), Some(CommandItem::Operand(_))),
            index: None,
            between: 0,
            reads1: Vec::new(),
            reads2: Vec::new(),
            single: Vec::new(),
            interleaved: Vec::new(),
            read_operands: Vec::new(),
            options: Vec::new(),
        };
        for item in items {
            match item {
                CommandItem::DoubleDash => sketch.words.push(CommandWord::fixed_text_word("--")),
                CommandItem::Operand(word) => sketch.add_operand(program, word)?,
                CommandItem::Option { name, role, option_text, value, kind } => {
                    sketch.options.push((name, value.clone(), kind.clone()));
                    sketch.add_option(program, role, option_text, [kind, value])?;
                }
            }
        }
        Ok(sketch)
    }

    fn add_operand(&mut self, program: &AlignerProgram, word: OsString) -> Result<(), Error> {
        match program.operands {
            OperandKinds::Nothing => {
                return Err(
                    self.usage_error(format!("{}: unexpected operand; give files by their options", word.display()))
                );
            }
            OperandKinds::IndexReads { .. } | OperandKinds::IndexStdin(_) if self.index.is_none() => {
                self.words.push(CommandWord::fixed_text_word(&word));
                self.index = Some(word);
                if let OperandKinds::IndexStdin(stdin) = program.operands {
                    self.words.extend(stdin.iter().map(CommandWord::fixed_text_word));
                }
            }
            OperandKinds::IndexReads { between } if self.between < between => {
                self.between += 1;
                self.words.push(CommandWord::fixed_text_word(word));
            }
            OperandKinds::IndexReads { .. } => {
                match self.read_operands.len() {
                    0 => self.words.push(CommandWord(vec![WordPart::Reads1])),
                    1 => self.words.push(CommandWord(vec![WordPart::Reads2])),
                    _ => return Err(self.usage_error("more than two files of reads".to_owned())),
                }
                self.read_operands.push(word.into());
            }
            OperandKinds::IndexStdin(_) => self.read_operands.push(word.into()),
        }
        Ok(())
    }

    fn add_option(
        &mut self,
        program: &AlignerProgram,
        role: OptionRole,
        option_text: OsString,
        [kind, value]: [Option<OsString>; 2],
    ) -> Result<(), Error> {
        let value_or = value.clone().unwrap_or_default();
        match role {
            OptionRole::Drop | OptionRole::BlockBases | OptionRole::Refuse(_) => {}
            OptionRole::Threads => {
                self.threads = match (value_or.to_str(), value_or.to_str().and_then(|n| n.parse().ok())) {
                    (Some("{threads}"), _) => ThreadSetting::Placeholder,
                    (_, Some(n)) if n > 0 => ThreadSetting::Given(n),
                    _ => {
                        let why = format!("{} {}: not a number of threads", option_text.display(), value_or.display());
                        return Err(self.usage_error(why));
                    }
                };
            }
            OptionRole::Output => {
                self.output = if value_or == "-" { OutputTarget::Stdout } else { OutputTarget::File(value_or.into()) };
            }
            OptionRole::Index => {
                self.words.extend([CommandWord::fixed_text_word(option_text), CommandWord::fixed_text_word(&value_or)]);
                self.index = Some(value_or);
            }
            OptionRole::Pass => match value {
                Some(value) if option_text.as_bytes().ends_with(b"=") => {
                    self.words.push(CommandWord(vec![WordPart::Text(option_text), WordPart::Text(value)]));
                }
                value => self
                    .words
                    .extend([Some(option_text), kind, value].into_iter().flatten().map(CommandWord::fixed_text_word)),
            },
            OptionRole::Reads1 | OptionRole::Reads2 | OptionRole::Reads | OptionRole::Interleaved => {
                let (files, name, piece) = match role {
                    OptionRole::Reads1 => (&mut self.reads1, program.named[0], WordPart::Reads1),
                    OptionRole::Reads2 => (&mut self.reads2, program.named[1], WordPart::Reads2),
                    OptionRole::Reads => (&mut self.single, program.named[2], WordPart::Reads1),
                    _ => (&mut self.interleaved, program.named[3], WordPart::Reads1),
                };
                if files.is_empty() {
                    self.words.extend([CommandWord::fixed_text_word(name), CommandWord(vec![piece])]);
                }
                let part = |part: &[u8]| PathBuf::from(OsStr::from_bytes(part));
                match program.commas {
                    true => files.extend(value_or.as_bytes().split(|&byte| byte == b',').map(part)),
                    false => files.push(value_or.into()),
                }
            }
        }
        Ok(())
    }

    /// Returns whether the command line has the option with the main name `name`.
    pub(super) fn has_option(&self, name: &str) -> bool {
        self.options.iter().any(|(option, ..)| *option == name)
    }

    /// Returns the value of the last occurrence of the option `name`; `None` without one.
    pub(super) fn option_value(&self, name: &str) -> Option<&str> {
        self.options
            .iter()
            .rev()
            .find(|(option, ..)| *option == name)
            .and_then(|(_, value, _)| value.as_ref()?.to_str())
    }

    /// Parses the value of the option `name` as a number of bases, such as `150`. With `suffix`, `100m` is accepted,
    /// too. `None` if the option is not given.
    pub(super) fn parse_num_bases_option(&self, name: &str, suffix: bool) -> Result<Option<u64>, Error> {
        let Some(text) = self.option_value(name) else {
            return if self.has_option(name) {
                Err(self.usage_error(format!("{name}: not a number of bases")))
            } else {
                Ok(None)
            };
        };
        self.parse_num_bases(name, text, suffix).map(Some)
    }

    /// Parses `text`, the value of the option `name`, as a number of bases; with `suffix` also `100m`.
    pub(super) fn parse_num_bases(&self, name: &str, text: &str, suffix: bool) -> Result<u64, Error> {
        let (digits, unit) = match text.as_bytes().last() {
            Some(b'k' | b'K') if suffix => (&text[..text.len() - 1], 1_000),
            Some(b'm' | b'M') if suffix => (&text[..text.len() - 1], 1_000_000),
            Some(b'g' | b'G') if suffix => (&text[..text.len() - 1], 1_000_000_000),
            _ => (text, 1),
        };
        let bases = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit)).filter(|&n| n > 0);
        bases.ok_or_else(|| self.usage_error(format!("{name} {text}: not a number of bases")))
    }

    /// Returns the error that genuma cannot run this command line, with the reason `why`.
    pub(super) fn usage_error(&self, why: String) -> Error {
        Error::Usage { aligner: self.aligner.to_owned(), why }
    }

    /// Returns the read files and how an instance reads them. `one` creates the [`ReadFiles`] if all reads are in one
    /// file per lane.
    pub(super) fn read_files_and_input_mode(
        &self,
        stdin: bool,
        one: fn(Vec<PathBuf>) -> ReadFiles,
    ) -> Result<(ReadFiles, ReadInputMode), Error> {
        let mut kinds =
            [&self.reads1, &self.single, &self.interleaved, &self.read_operands].map(|files| !files.is_empty());
        kinds[0] |= !self.reads2.is_empty();
        if kinds.iter().filter(|&&there| there).count() > 1 {
            return Err(self.usage_error(
                "single reads and pairs in one run are not supported; run them one after the other".to_owned(),
            ));
        }
        let pairs = |one: &[PathBuf], two: &[PathBuf]| {
            let pair = |(a, b): (&PathBuf, &PathBuf)| [a.clone(), b.clone()];
            ReadFiles::Paired(one.iter().zip(two).map(pair).collect())
        };
        let reads = match (kinds, &self.read_operands[..]) {
            ([true, ..], _) if self.reads1.len() == self.reads2.len() => pairs(&self.reads1, &self.reads2),
            ([true, ..], _) => {
                let why = format!("{} files of read 1, {} of read 2", self.reads1.len(), self.reads2.len());
                return Err(self.usage_error(why));
            }
            ([_, true, ..], _) => one(self.single.clone()),
            ([_, _, true, _], _) => ReadFiles::Interleaved(self.interleaved.clone()),
            (_, [file]) => one(vec![file.clone()]),
            (_, [a, b]) => pairs(slice::from_ref(a), slice::from_ref(b)),
            _ => return Err(self.usage_error("no reads are given".to_owned())),
        };
        let feed = match &reads {
            _ if stdin => ReadInputMode::Stdin,
            ReadFiles::Paired(_) => ReadInputMode::TwoFiles,
            _ => ReadInputMode::OneFile,
        };
        Ok((replace_placeholders_by_unnamed(reads).map_err(|why| self.usage_error(why))?, feed))
    }
}

/// Returns [`ReadFiles::Unnamed`] if all files are placeholders such as `{reads}`: then an option of genuma names the
/// reads.
pub(super) fn replace_placeholders_by_unnamed(reads: ReadFiles) -> Result<ReadFiles, String> {
    let files: Vec<&PathBuf> = match &reads {
        ReadFiles::Unnamed => Vec::new(),
        ReadFiles::Single(files) | ReadFiles::Interleaved(files) | ReadFiles::Mixed(files) => files.iter().collect(),
        ReadFiles::Paired(lanes) => lanes.iter().flatten().collect(),
    };
    let open = |file: &&&PathBuf| ["{reads}", "{reads1}", "{reads2}"].iter().any(|word| file.as_os_str() == *word);
    match files.iter().filter(open).count() {
        0 => Ok(reads),
        n if n == files.len() => Ok(ReadFiles::Unnamed),
        _ => Err("either all files of reads are placeholders such as {reads1}, or none".to_owned()),
    }
}
