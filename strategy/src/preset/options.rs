//! One parser for all command lines: tables of options say what takes a value and what it means.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::invocation::Error;

/// Rows of a program's options. The names of a row stand apart by spaces; those of one option by `|`, its own name first.
pub(super) type Table = &'static [(Takes, Means, &'static str)];

/// What follows an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// Nothing.
    Nothing,
    /// A value: the rest of the word, or the next word.
    Value,
    /// A value in the same word behind `=`, or none.
    Perhaps,
    /// Anything, in the same word; only where words are whole options.
    Rest,
    /// A value, which may have a word such as `-sam` before it that says what it is.
    Typed,
    /// Two values, in the next two words.
    Two,
}

/// What an option is to genuma.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Means {
    /// Nothing: every instance has it as it is.
    Pass,
    /// It is for the plain run only, or taken into account otherwise: an instance goes without.
    Drop,
    /// The number of threads.
    Threads,
    /// The file of the output.
    Output,
    /// Bases of a block.
    Block,
    /// The index.
    Index,
    /// Files of read 1, comma between them.
    Reads1,
    /// Files of read 2.
    Reads2,
    /// Files of single reads, or of mates in turn.
    Reads,
    /// Files of mates in turn.
    Interleaved,
    /// It cannot be had with several instances.
    Refuse(&'static str),
}

/// How a program reads its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// As `getopt_long`: `-pM`, `-t4`, `-t 4`, `--threads=4`, `--threads 4`, `--`; options may follow operands.
    Getopt,
    /// A word is an option as a whole: `-so`.
    Words,
}

/// A word or two of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    /// An option of the table.
    Option {
        /// The name that stands first in the table.
        name: &'static str,
        /// What it is to genuma.
        means: Means,
        /// It as the program reads it, without its value: `-t`, `--cs=`.
        spelled: OsString,
        /// Its value.
        value: Option<OsString>,
        /// The word before its value that says what it is.
        kind: Option<OsString>,
    },
    /// `--`: what follows are operands.
    Dashes,
    /// Anything else.
    Operand(OsString),
}

/// A table and how it is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grammar {
    /// The program's name, for messages.
    pub aligner: &'static str,
    pub table: Table,
    pub style: Style,
}

struct Entry {
    takes: Takes,
    means: Means,
    name: &'static str,
}

impl Grammar {
    fn find(&self, word: &OsStr) -> Option<Entry> {
        self.table.iter().find_map(|&(takes, means, names)| {
            let matches = |alias: &str| match takes {
                Takes::Rest => word.as_bytes().starts_with(alias.as_bytes()),
                _ => word == alias,
            };
            let option = names.split_whitespace().find(|option| option.split('|').any(matches))?;
            Some(Entry { takes, means, name: option.split('|').next().unwrap_or(option) })
        })
    }

    fn refused(&self, option: &OsStr, why: &str) -> Error {
        let option = option.to_string_lossy().into_owned();
        Error::Refused { aligner: self.aligner.to_owned(), option, why: why.to_owned() }
    }

    fn unknown(&self, option: &OsStr) -> Error {
        self.refused(
            option,
            "genuma does not know this option and will not guess what it does; leave it away",
        )
    }

    /// Takes a command line apart, the words behind the program and its verb.
    ///
    /// # Errors
    /// An option is unknown, refused, or lacks its value.
    pub fn parse(&self, words: &[OsString]) -> Result<Vec<Item>, Error> {
        let mut items = Vec::new();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let bytes = word.as_bytes();
            if bytes.len() < 2 || bytes[0] != b'-' {
                items.push(Item::Operand(word.clone()));
            } else if self.style == Style::Words {
                let entry = self.find(word).ok_or_else(|| self.unknown(word))?;
                items.push(self.option(entry, word.clone(), None, &mut rest)?);
            } else if bytes == b"--" {
                items.push(Item::Dashes);
                items.extend(rest.by_ref().cloned().map(Item::Operand));
            } else if bytes.starts_with(b"--") {
                let cut = bytes.iter().position(|&byte| byte == b'=');
                let name = OsStr::from_bytes(&bytes[..cut.unwrap_or(bytes.len())]);
                let entry = self.find(name).ok_or_else(|| self.unknown(name))?;
                let glued = cut.map(|at| OsStr::from_bytes(&bytes[at + 1..]).to_owned());
                items.push(self.option(entry, name.to_owned(), glued, &mut rest)?);
            } else {
                self.cluster(bytes, &mut rest, &mut items)?;
            }
        }
        Ok(items)
    }

    /// `-pMt4`: flags, the last of which may take a value.
    fn cluster<'a>(
        &self,
        word: &[u8],
        rest: &mut impl Iterator<Item = &'a OsString>,
        items: &mut Vec<Item>,
    ) -> Result<(), Error> {
        for at in 1..word.len() {
            let name = OsString::from_vec(vec![b'-', word[at]]);
            let entry = self.find(&name).ok_or_else(|| self.unknown(&name))?;
            let behind = OsStr::from_bytes(&word[at + 1..]).to_owned();
            let flag = entry.takes == Takes::Nothing;
            let glued = (!flag && !behind.is_empty()).then_some(behind);
            items.push(self.option(entry, name, glued, rest)?);
            if !flag {
                break;
            }
        }
        Ok(())
    }

    fn option<'a>(
        &self,
        entry: Entry,
        mut spelled: OsString,
        glued: Option<OsString>,
        rest: &mut impl Iterator<Item = &'a OsString>,
    ) -> Result<Item, Error> {
        let Entry { takes, means, name } = entry;
        if let Means::Refuse(why) = means {
            return Err(self.refused(&spelled, why));
        }
        let mut next = || rest.next().cloned().ok_or_else(|| self.refused(&spelled, "it lacks its value"));
        let (kind, value) = match (takes, glued) {
            (Takes::Nothing, Some(_)) => return Err(self.refused(&spelled, "it takes no value")),
            (Takes::Nothing | Takes::Perhaps | Takes::Rest, None) => (None, None),
            (_, Some(value)) => (None, Some(value)),
            (Takes::Value, None) => (None, Some(next()?)),
            (Takes::Two, None) => (Some(next()?), Some(next()?)),
            (Takes::Typed, None) => match next()? {
                word if word.len() > 1 && word.as_bytes()[0] == b'-' => (Some(word), Some(next()?)),
                word => (None, Some(word)),
            },
        };
        if takes == Takes::Perhaps && value.is_some() && spelled.as_bytes().starts_with(b"--") {
            spelled.push("=");
        }
        Ok(Item::Option { name, means, spelled, value, kind })
    }
}
