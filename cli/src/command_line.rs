//! Helpers for the command line: the `--threads` parser, and this process's command line quoted for a shell.

use clap::builder::RangedI64ValueParser;
use clap::value_parser;

/// Maximum of `--threads`: more than any machine has CPUs, and few enough that the kernel can map the stacks of all
/// threads.
const MAX_THREADS: i64 = 4096;

/// Parser of `--threads`: 1 to [`MAX_THREADS`].
pub(crate) fn thread_count_parser() -> RangedI64ValueParser<u16> {
    value_parser!(u16).range(1..=MAX_THREADS)
}

/// The requested number of threads, or the number of CPUs that this process may use.
pub(crate) fn threads_or_all_cpus(requested: Option<u16>) -> usize {
    let all_cpus = || std::thread::available_parallelism().map_or(1, usize::from);
    requested.map_or_else(all_cpus, usize::from)
}

/// The command line of this process, quoted so that a shell reads the same arguments.
pub(crate) fn quoted_command_line() -> String {
    quote_for_shell(std::env::args())
}

/// Joins arguments to one line, each quoted where a shell needs it.
fn quote_for_shell(args: impl Iterator<Item = String>) -> String {
    let needs_no_quotes = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+@%".contains(c);
    let quoted = |arg: String| match !arg.is_empty() && arg.chars().all(needs_no_quotes) {
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
        assert_eq!(quote_for_shell(args.into_iter()), r"genuma call -o 'my calls' '' 'it'\''s'");
    }
}
