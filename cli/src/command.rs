//! The command line: what options of several verbs may be, and how it is told to whoever wants to run it again.

use clap::builder::RangedI64ValueParser;
use clap::value_parser;

/// Most threads that may be asked for: above what machines have, and few enough for the kernel to map the stacks of all.
const MOST_THREADS: i64 = 4096;

/// What `--threads` may be.
pub(crate) fn threads() -> RangedI64ValueParser<u16> {
    value_parser!(u16).range(1..=MOST_THREADS)
}

/// As many threads as were asked for, else all processors.
pub(crate) fn all_or(asked: Option<u16>) -> usize {
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    asked.map_or_else(all, usize::from)
}

/// The command line of this process as a shell would read it back.
pub(crate) fn line() -> String {
    typed(std::env::args())
}

/// A command line that a shell would read back.
fn typed(args: impl Iterator<Item = String>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+@%".contains(c);
    let quoted = |arg: String| match !arg.is_empty() && arg.chars().all(plain) {
        true => arg,
        false => format!("'{}'", arg.replace('\'', r"'\''")),
    };
    args.map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_quoted_where_a_shell_needs_it() {
        let args = ["genuma", "call", "-o", "my calls", "", "it's"].map(str::to_owned);
        assert_eq!(typed(args.into_iter()), r"genuma call -o 'my calls' '' 'it'\''s'");
    }
}
