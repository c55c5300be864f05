//! What a program's words say, before anything is concluded from it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::slice;

use super::options::{Item, Means};
use super::{Operands, Program};
use crate::invocation::{Error, Feed, Output, Piece, Reads, Word};

/// Threads of a plain run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Threads {
    /// As many as the command says.
    Said(usize),
    /// `{threads}`.
    Open,
    /// The command does not say: the program's default.
    Unsaid,
}

/// What the words say.
pub(super) struct Sketch {
    pub aligner: &'static str,
    /// Words of an instance's command behind the program and its verb; without those that genuma adds.
    pub words: Vec<Word>,
    pub threads: Threads,
    pub output: Output,
    /// Whether an operand comes before all options.
    pub(crate) operand_leads: bool,
    pub index: Option<OsString>,
    /// Operands seen between index and reads.
    between: usize,
    pub reads1: Vec<PathBuf>,
    pub reads2: Vec<PathBuf>,
    pub single: Vec<PathBuf>,
    pub interleaved: Vec<PathBuf>,
    /// Files of reads that stood alone, as operands.
    pub loose: Vec<PathBuf>,
    /// Options by their first name, with value and the word that says what the value is.
    pub options: Vec<(&'static str, Option<OsString>, Option<OsString>)>,
}

impl Sketch {
    /// Reads the items of `program`'s command line.
    pub fn of(program: &Program, items: Vec<Item>) -> Result<Sketch, Error> {
        let mut sketch = Sketch {
            aligner: program.grammar.aligner,
            words: Vec::new(),
            threads: Threads::Unsaid,
            output: Output::Stdout,
            operand_leads: matches!(items.first(), Some(Item::Operand(_))),
            index: None,
            between: 0,
            reads1: Vec::new(),
            reads2: Vec::new(),
            single: Vec::new(),
            interleaved: Vec::new(),
            loose: Vec::new(),
            options: Vec::new(),
        };
        for item in items {
            match item {
                Item::Dashes => sketch.words.push(Word::plain("--")),
                Item::Operand(word) => sketch.operand(program, word)?,
                Item::Option { name, means, spelled, value, kind } => {
                    sketch.options.push((name, value.clone(), kind.clone()));
                    sketch.option(program, means, spelled, [kind, value])?;
                }
            }
        }
        Ok(sketch)
    }

    fn operand(&mut self, program: &Program, word: OsString) -> Result<(), Error> {
        match program.operands {
            Operands::Nothing => {
                return Err(
                    self.usage(format!("{}: what is this? name files by their options", word.display()))
                );
            }
            Operands::IndexReads { .. } | Operands::IndexStdin(_) if self.index.is_none() => {
                self.words.push(Word::plain(&word));
                self.index = Some(word);
                if let Operands::IndexStdin(stdin) = program.operands {
                    self.words.extend(stdin.iter().map(Word::plain));
                }
            }
            Operands::IndexReads { between } if self.between < between => {
                self.between += 1;
                self.words.push(Word::plain(word));
            }
            Operands::IndexReads { .. } => {
                match self.loose.len() {
                    0 => self.words.push(Word(vec![Piece::Reads1])),
                    1 => self.words.push(Word(vec![Piece::Reads2])),
                    _ => return Err(self.usage("more than two files of reads".to_owned())),
                }
                self.loose.push(word.into());
            }
            Operands::IndexStdin(_) => self.loose.push(word.into()),
        }
        Ok(())
    }

    fn option(
        &mut self,
        program: &Program,
        means: Means,
        spelled: OsString,
        [kind, value]: [Option<OsString>; 2],
    ) -> Result<(), Error> {
        let value_or = value.clone().unwrap_or_default();
        match means {
            Means::Drop | Means::Block | Means::Refuse(_) => {}
            Means::Threads => {
                self.threads = match (value_or.to_str(), value_or.to_str().and_then(|n| n.parse().ok())) {
                    (Some("{threads}"), _) => Threads::Open,
                    (_, Some(n)) if n > 0 => Threads::Said(n),
                    _ => {
                        let why =
                            format!("{} {}: not a number of threads", spelled.display(), value_or.display());
                        return Err(self.usage(why));
                    }
                };
            }
            Means::Output => {
                self.output = if value_or == "-" { Output::Stdout } else { Output::File(value_or.into()) };
            }
            Means::Index => {
                self.words.extend([Word::plain(spelled), Word::plain(&value_or)]);
                self.index = Some(value_or);
            }
            Means::Pass => match value {
                Some(value) if spelled.as_bytes().ends_with(b"=") => {
                    self.words.push(Word(vec![Piece::Text(spelled), Piece::Text(value)]));
                }
                value => {
                    self.words.extend([Some(spelled), kind, value].into_iter().flatten().map(Word::plain))
                }
            },
            Means::Reads1 | Means::Reads2 | Means::Reads | Means::Interleaved => {
                let (files, name, piece) = match means {
                    Means::Reads1 => (&mut self.reads1, program.named[0], Piece::Reads1),
                    Means::Reads2 => (&mut self.reads2, program.named[1], Piece::Reads2),
                    Means::Reads => (&mut self.single, program.named[2], Piece::Reads1),
                    _ => (&mut self.interleaved, program.named[3], Piece::Reads1),
                };
                if files.is_empty() {
                    self.words.extend([Word::plain(name), Word(vec![piece])]);
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

    /// Whether the option is there.
    pub fn has(&self, name: &str) -> bool {
        self.options.iter().any(|(option, ..)| *option == name)
    }

    /// The last value of the option.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.options
            .iter()
            .rev()
            .find(|(option, ..)| *option == name)
            .and_then(|(_, value, _)| value.as_ref()?.to_str())
    }

    /// A number of bases such as `150`, and `100m` where `suffix`.
    pub fn bases(&self, name: &str, suffix: bool) -> Result<Option<u64>, Error> {
        let Some(text) = self.value(name) else {
            return if self.has(name) {
                Err(self.usage(format!("{name}: not a number of bases")))
            } else {
                Ok(None)
            };
        };
        self.number(name, text, suffix).map(Some)
    }

    /// The number of bases that `text`, the value of option `name`, says.
    pub fn number(&self, name: &str, text: &str, suffix: bool) -> Result<u64, Error> {
        let (digits, unit) = match text.as_bytes().last() {
            Some(b'k' | b'K') if suffix => (&text[..text.len() - 1], 1_000),
            Some(b'm' | b'M') if suffix => (&text[..text.len() - 1], 1_000_000),
            Some(b'g' | b'G') if suffix => (&text[..text.len() - 1], 1_000_000_000),
            _ => (text, 1),
        };
        let bases = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit)).filter(|&n| n > 0);
        bases.ok_or_else(|| self.usage(format!("{name} {text}: not a number of bases")))
    }

    pub fn usage(&self, why: String) -> Error {
        Error::Usage { aligner: self.aligner.to_owned(), why }
    }

    /// The reads, and how an instance gets them. `one` makes reads of one file.
    pub fn reads(&self, stdin: bool, one: fn(Vec<PathBuf>) -> Reads) -> Result<(Reads, Feed), Error> {
        let mut kinds =
            [&self.reads1, &self.single, &self.interleaved, &self.loose].map(|files| !files.is_empty());
        kinds[0] |= !self.reads2.is_empty();
        if kinds.iter().filter(|&&there| there).count() > 1 {
            return Err(self.usage(
                "several kinds of reads in one run; run single reads and pairs one after the other"
                    .to_owned(),
            ));
        }
        let pairs = |one: &[PathBuf], two: &[PathBuf]| {
            let pair = |(a, b): (&PathBuf, &PathBuf)| [a.clone(), b.clone()];
            Reads::Paired(one.iter().zip(two).map(pair).collect())
        };
        let reads = match (kinds, &self.loose[..]) {
            ([true, ..], _) if self.reads1.len() == self.reads2.len() => pairs(&self.reads1, &self.reads2),
            ([true, ..], _) => {
                let why = format!("{} files of read 1, {} of read 2", self.reads1.len(), self.reads2.len());
                return Err(self.usage(why));
            }
            ([_, true, ..], _) => one(self.single.clone()),
            ([_, _, true, _], _) => Reads::Interleaved(self.interleaved.clone()),
            (_, [file]) => one(vec![file.clone()]),
            (_, [a, b]) => pairs(slice::from_ref(a), slice::from_ref(b)),
            _ => return Err(self.usage("it names no reads".to_owned())),
        };
        let feed = match &reads {
            _ if stdin => Feed::Stdin,
            Reads::Paired(_) => Feed::Two,
            _ => Feed::One,
        };
        Ok((unnamed(reads).map_err(|why| self.usage(why))?, feed))
    }
}

/// Reads whose files are placeholders are named elsewhere.
pub(super) fn unnamed(reads: Reads) -> Result<Reads, String> {
    let files: Vec<&PathBuf> = match &reads {
        Reads::Unnamed => Vec::new(),
        Reads::Single(files) | Reads::Interleaved(files) | Reads::Mixed(files) => files.iter().collect(),
        Reads::Paired(lanes) => lanes.iter().flatten().collect(),
    };
    let open =
        |file: &&&PathBuf| ["{reads}", "{reads1}", "{reads2}"].iter().any(|word| file.as_os_str() == *word);
    match files.iter().filter(open).count() {
        0 => Ok(reads),
        n if n == files.len() => Ok(Reads::Unnamed),
        _ => Err("either all files of reads are placeholders such as {reads1}, or none".to_owned()),
    }
}
