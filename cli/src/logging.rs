//! Output to the terminal: log messages on stderr, results on stdout.
//!
//! A log message that cannot be written is dropped. A result that cannot be written is an error. Messages quote text
//! from input files, such as read names, so control characters are escaped before they reach a terminal.

use std::fmt::{self, Display, Write as _};
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::Context;
use clap::{ArgAction, Args};
use genuma_strategy::instance::STDERR_LOG_TARGET;
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, MakeWriter};
use tracing_subscriber::layer::{Context as LayerContext, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::{progress, stdout_state};

/// The options `--verbose` and `--quiet`, which every command has.
#[derive(Debug, Args)]
pub(crate) struct Verbosity {
    /// Log more to standard error; -vv logs most
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = "Messages")]
    verbose: u8,
    /// Log only errors to standard error: no progress, no warnings
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = "Messages")]
    quiet: bool,
}

impl Verbosity {
    /// Initialises logging of the whole process according to these options.
    pub(crate) fn init_logging(&self) {
        let level = match (self.quiet, self.verbose) {
            (true, _) => Level::ERROR,
            (_, 0) => Level::INFO,
            (_, 1) => Level::DEBUG,
            _ => Level::TRACE,
        };
        let lines = tracing_subscriber::fmt::layer().event_format(LineFormat).with_writer(StderrAboveBars);
        let lines = lines.with_filter(LevelFilter::from_level(level));
        tracing_subscriber::registry().with(lines).with(WarningCounter.with_filter(LevelFilter::WARN)).init();
    }
}

/// Crates whose warnings are about inputs and results. Those of the others are about the machine, such as a device or a
/// network that fails, and change no result.
const DATA_LOG_TARGETS: [&str; 5] = ["genuma", "genuma_annotate", "genuma_pair", "genuma_reads", "genuma_somatic"];

/// Target of warnings about the chosen options, which the user knows: `--strict` does not count them.
pub(crate) const OPTIONS_LOG_TARGET: &str = "options";

static NUM_DATA_WARNINGS: AtomicU64 = AtomicU64::new(0);

/// Returns the number of warnings about inputs and results that were logged so far, also those that `--quiet` hides.
pub(crate) fn num_data_warnings() -> u64 {
    NUM_DATA_WARNINGS.load(Relaxed)
}

/// Counts warnings about inputs and results.
struct WarningCounter;

impl<S: Subscriber> Layer<S> for WarningCounter {
    fn on_event(&self, event: &Event<'_>, _: LayerContext<'_, S>) {
        let krate = event.metadata().target().split("::").next().unwrap_or_default();
        if *event.metadata().level() == Level::WARN && DATA_LOG_TARGETS.contains(&krate) {
            NUM_DATA_WARNINGS.fetch_add(1, Relaxed);
        }
    }
}

/// Prints a line on stderr above the progress bars, with control characters escaped. Errors of writing are ignored.
pub(crate) fn print_stderr_line(line: &str) {
    let text = format!("{}\n", EscapedControls(line));
    // A message that cannot be written is lost.
    let _ = progress::with_hidden_progress_bars(|| io::stderr().write_all(text.as_bytes()));
}

/// Locks standard output for results.
///
/// # Errors
/// Standard output was closed before the program started.
pub(crate) fn lock_stdout_for_results() -> anyhow::Result<io::StdoutLock<'static>> {
    if stdout_state::was_stdout_closed_at_start() {
        anyhow::bail!("standard output: is closed, so results cannot be written; open it, or name an output file");
    }
    Ok(io::stdout().lock())
}

/// Writes a result to standard output. A closed pipe is not an error: the reader may stop early.
///
/// # Errors
/// Standard output is closed or cannot be written.
pub(crate) fn print_result(text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    let mut stdout = lock_stdout_for_results()?;
    match stdout.write_all(text.as_ref()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("standard output"),
    }
}

/// Displays text so that it is safe on a terminal: control characters other than tabs, and bidirectional formatting
/// characters, are replaced by their codes.
struct EscapedControls<'a>(&'a str);

impl Display for EscapedControls<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '\t' => f.write_char(c)?,
                _ if c.is_ascii_control() => write!(f, "\\x{:02x}", u32::from(c))?,
                '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                    write!(f, "{}", c.escape_unicode())?;
                }
                _ if c.is_control() => write!(f, "{}", c.escape_unicode())?,
                _ => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Format of log lines: `genuma: warning: MESSAGE`. Messages of external aligners have no prefix.
struct LineFormat;

impl<S, N> FormatEvent<S, N> for LineFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, ctx: &FmtContext<'_, S, N>, mut line: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        line.write_str(match *event.metadata().level() {
            _ if event.metadata().target() == STDERR_LOG_TARGET => "",
            Level::WARN => "genuma: warning: ",
            Level::ERROR => "genuma: error: ",
            _ => "genuma: ",
        })?;
        let mut message = String::new();
        ctx.field_format().format_fields(Writer::new(&mut message), event)?;
        writeln!(line, "{}", EscapedControls(&message))
    }
}

/// Writer to standard error that hides the progress bars while it writes. It never returns an error.
struct StderrAboveBars;

impl MakeWriter<'_> for StderrAboveBars {
    type Writer = StderrAboveBars;

    fn make_writer(&self) -> StderrAboveBars {
        StderrAboveBars
    }
}

impl Write for StderrAboveBars {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        // tracing would report an error on stderr and panic.
        let _ = progress::with_hidden_progress_bars(|| io::stderr().write_all(text));
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_command_a_terminal_is_shown_by_its_number() {
        for (text, shown) in [
            ("r\x1b[2J\x07\x7f", "r\\x1b[2J\\x07\\x7f"),
            ("a\r\nb\tc", "a\\x0d\\x0ab\tc"),
            ("\u{9b}31m\u{202e}x", "\\u{9b}31m\\u{202e}x"),
            ("Grüße, 読み取り", "Grüße, 読み取り"),
        ] {
            assert_eq!(EscapedControls(text).to_string(), shown);
        }
    }
}
