//! Helpers for the command line: the parsers of `--threads` and `-k`, the default number of threads, the command line
//! of this process, quoted for a shell, and the path of its program.

use std::ffi::{OsStr, OsString};
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use anyhow::Context;
use clap::builder::RangedI64ValueParser;
use clap::value_parser;

/// Maximum of `--threads`: more than any machine has CPUs, and few enough that the kernel can map the stacks of all
/// threads.
const MAX_THREADS: i64 = 4096;

/// Returns the parser of `--threads`, which accepts 1 to [`MAX_THREADS`].
pub(crate) fn thread_count_parser() -> RangedI64ValueParser<u16> {
    value_parser!(u16).range(1..=MAX_THREADS)
}

/// k-mer lengths of calls in bp: shorter k-mers are too rarely unique, longer ones do not fit in 64 bits.
pub(crate) const ALLOWED_CALL_KMER_LENGTHS: RangeInclusive<i64> = 17..=32;

/// Returns the parser of `-k`, the k-mer length of calls.
pub(crate) fn call_kmer_length_parser() -> RangedI64ValueParser<u32> {
    value_parser!(u32).range(ALLOWED_CALL_KMER_LENGTHS)
}

/// Returns the requested number of threads, or else the number of CPUs that this process may use.
pub(crate) fn threads_or_all_cpus(requested: Option<u16>) -> usize {
    let all_cpus = || std::thread::available_parallelism().map_or(1, usize::from);
    requested.map_or_else(all_cpus, usize::from)
}

/// Returns the absolute path of this program.
///
/// # Errors
/// The kernel does not tell it.
pub(crate) fn own_program_path() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("cannot find the path of the genuma program")
}

/// Returns the command line of this process, quoted so that a shell reads the same arguments.
pub(crate) fn quoted_command_line() -> String {
    quote_for_shell(std::env::args_os())
}

/// Returns the command line of this process without the option `--resume`, quoted for a shell. Results contain this
/// text, so that a resumed run writes the same bytes as an uninterrupted one.
pub(crate) fn quoted_command_line_without_resume() -> String {
    quote_for_shell(std::env::args_os().filter(|arg| arg != "--resume"))
}

/// Joins arguments to one line. Arguments with characters that are special in a shell are quoted.
pub(crate) fn quote_for_shell(args: impl Iterator<Item = OsString>) -> String {
    args.map(|arg| quote_argument(&arg)).collect::<Vec<_>>().join(" ")
}

/// Quotes an argument if a shell needs it. Control characters, and bytes that are not UTF-8, are written as escapes in
/// `$'...'`, which bash, ksh and zsh read. The result thus contains neither of them.
fn quote_argument(arg: &OsStr) -> String {
    let needs_no_quotes = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+@%".contains(c);
    match arg.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(needs_no_quotes) => text.to_owned(),
        Some(text) if !text.chars().any(char::is_control) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => {
            let escape = |&byte: &u8| match byte {
                b'\'' | b'\\' => format!("\\{}", char::from(byte)),
                b' '..=b'~' => char::from(byte).to_string(),
                byte => format!("\\x{byte:02x}"),
            };
            format!("$'{}'", arg.as_bytes().iter().map(escape).collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_quoted_where_a_shell_needs_it() {
        let args = ["genuma", "call", "-o", "my calls", "", "it's", "é è", "a\tb\n'\\é"].map(OsString::from);
        let line = quote_for_shell(args.into_iter().chain([OsStr::from_bytes(b"a\xff").to_owned()]));
        assert_eq!(line, r"genuma call -o 'my calls' '' 'it'\''s' 'é è' $'a\x09b\x0a\'\\\xc3\xa9' $'a\xff'");
    }
}
