//! One parser for the command lines of all aligners: option tables define which options take values, and the role of
//! each.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::invocation::Error;

/// Option table of a program. Each row lists options with the same argument and role, separated by spaces; aliases of
/// one option are separated by `|`, its main name first.
pub(super) type OptionTable = &'static [(OptionArgument, OptionRole, &'static str)];

/// Whether an option takes a value, and where on the command line the value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OptionArgument {
    /// The option takes no value.
    Nothing,
    /// The option takes a value: the rest of its word (after `=` in a long option), or the next word.
    Value,
    /// The option may take a value in the same word: after `=` in a long option, the rest of the word in a short one.
    OptionalValue,
    /// The rest of the word is the value, as in `-t8`; only for programs whose options are whole words.
    Attached,
    /// A value, optionally preceded by a word such as `-sam` that gives its type.
    TypedValue,
    /// Two values in the next two words.
    TwoValues,
}

/// What genuma does with an option of an aligner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OptionRole {
    /// Is passed on unchanged to all instances.
    Pass,
    /// Is removed from the command lines of instances: it concerns the plain run only, or genuma does the same itself.
    Drop,
    /// Gives the number of threads.
    Threads,
    /// Gives the output file.
    Output,
    /// Gives the number of bases of a block of reads, as `-K` of bwa mem.
    BlockBases,
    /// Gives the index.
    Index,
    /// Gives files of read 1: one, or several separated by commas.
    Reads1,
    /// Gives files of read 2.
    Reads2,
    /// Gives files of single or interleaved reads.
    Reads,
    /// Gives files of interleaved mates.
    Interleaved,
    /// Is refused, because it is not possible with several instances. The text is the reason, for the user.
    Refuse(&'static str),
}

/// Syntax of a program's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OptionStyle {
    /// Syntax of `getopt_long`: `-pM`, `-t4`, `-t 4`, `--threads=4`, `--threads 4`, `--`; options may follow operands.
    Getopt,
    /// Each option is a whole word: `-so`.
    WholeWords,
}

/// A parsed item of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CommandItem {
    /// An option of the table.
    Option {
        /// Main name of the option.
        name: &'static str,
        /// What genuma does with the option.
        role: OptionRole,
        /// Text of the option as the program reads it, without its value: `-t`, `--cs=`.
        option_text: OsString,
        /// Value of the option, if it has one.
        value: Option<OsString>,
        /// Word between the option and its value: the type of the value (`-sam` in `-o -sam FILE`), or the first of two
        /// values.
        kind: Option<OsString>,
    },
    /// The word `--`: all words after it are operands.
    DoubleDash,
    Operand(OsString),
}

/// Option table and option syntax of an aligner.
#[derive(Debug, Clone, Copy)]
pub(super) struct OptionGrammar {
    /// Name of the aligner, for messages.
    pub aligner: &'static str,
    /// The options of the aligner.
    pub table: OptionTable,
    /// Syntax of the options.
    pub style: OptionStyle,
}

struct OptionEntry {
    takes: OptionArgument,
    role: OptionRole,
    name: &'static str,
}

impl OptionGrammar {
    fn find_option(&self, word: &OsStr) -> Option<OptionEntry> {
        self.table.iter().find_map(|&(takes, role, names)| {
            let matches = |alias: &str| match takes {
                OptionArgument::Attached => word.as_bytes().starts_with(alias.as_bytes()),
                _ => word == alias,
            };
            let option = names.split_whitespace().find(|option| option.split('|').any(matches))?;
            Some(OptionEntry { takes, role, name: option.split('|').next().unwrap_or(option) })
        })
    }

    fn refused_error(&self, option: &OsStr, why: &str) -> Error {
        let option = option.to_string_lossy().into_owned();
        Error::UnsupportedOption { aligner: self.aligner.to_owned(), option, why: why.to_owned() }
    }

    fn unknown_error(&self, option: &OsStr) -> Error {
        self.refused_error(option, "unknown option; its effect with several instances is not known; omit it")
    }

    /// Parses the words after the program and its subcommand.
    ///
    /// # Errors
    /// An option is unknown, refused, lacks its value, or has a value that it does not take.
    pub(super) fn parse_command_words(&self, words: &[OsString]) -> Result<Vec<CommandItem>, Error> {
        let mut items = Vec::new();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let bytes = word.as_bytes();
            if bytes.len() < 2 || bytes[0] != b'-' {
                items.push(CommandItem::Operand(word.clone()));
            } else if self.style == OptionStyle::WholeWords {
                let entry = self.find_option(word).ok_or_else(|| self.unknown_error(word))?;
                items.push(self.parse_option(entry, word.clone(), None, &mut rest)?);
            } else if bytes == b"--" {
                items.push(CommandItem::DoubleDash);
                items.extend(rest.by_ref().cloned().map(CommandItem::Operand));
            } else if bytes.starts_with(b"--") {
                let cut = bytes.iter().position(|&byte| byte == b'=');
                let name = OsStr::from_bytes(&bytes[..cut.unwrap_or(bytes.len())]);
                let entry = self.find_option(name).ok_or_else(|| self.unknown_error(name))?;
                let glued = cut.map(|at| OsStr::from_bytes(&bytes[at + 1..]).to_owned());
                items.push(self.parse_option(entry, name.to_owned(), glued, &mut rest)?);
            } else {
                self.parse_flag_cluster(bytes, &mut rest, &mut items)?;
            }
        }
        Ok(items)
    }

    /// Parses a cluster such as `-pMt4`: flags, the last of which may take a value.
    fn parse_flag_cluster<'a>(
        &self,
        word: &[u8],
        rest: &mut impl Iterator<Item = &'a OsString>,
        items: &mut Vec<CommandItem>,
    ) -> Result<(), Error> {
        for at in 1..word.len() {
            let name = OsString::from_vec(vec![b'-', word[at]]);
            let entry = self.find_option(&name).ok_or_else(|| self.unknown_error(&name))?;
            let behind = OsStr::from_bytes(&word[at + 1..]).to_owned();
            let flag = entry.takes == OptionArgument::Nothing;
            let glued = (!flag && !behind.is_empty()).then_some(behind);
            items.push(self.parse_option(entry, name, glued, rest)?);
            if !flag {
                break;
            }
        }
        Ok(())
    }

    fn parse_option<'a>(
        &self,
        entry: OptionEntry,
        mut option_text: OsString,
        glued: Option<OsString>,
        rest: &mut impl Iterator<Item = &'a OsString>,
    ) -> Result<CommandItem, Error> {
        let OptionEntry { takes, role, name } = entry;
        if let OptionRole::Refuse(why) = role {
            return Err(self.refused_error(&option_text, why));
        }
        let mut next = || rest.next().cloned().ok_or_else(|| self.refused_error(&option_text, "its value is missing"));
        let (kind, value) = match (takes, glued) {
            (OptionArgument::Nothing, Some(_)) => return Err(self.refused_error(&option_text, "it takes no value")),
            (OptionArgument::Nothing | OptionArgument::OptionalValue | OptionArgument::Attached, None) => (None, None),
            (_, Some(value)) => (None, Some(value)),
            (OptionArgument::Value, None) => (None, Some(next()?)),
            (OptionArgument::TwoValues, None) => (Some(next()?), Some(next()?)),
            (OptionArgument::TypedValue, None) => match next()? {
                word if word.len() > 1 && word.as_bytes()[0] == b'-' => (Some(word), Some(next()?)),
                word => (None, Some(word)),
            },
        };
        if takes == OptionArgument::OptionalValue && value.is_some() && option_text.as_bytes().starts_with(b"--") {
            option_text.push("=");
        }
        Ok(CommandItem::Option { name, role, option_text, value, kind })
    }
}
