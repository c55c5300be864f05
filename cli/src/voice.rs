//! The two ends to which genuma speaks: messages on stderr, results on stdout.
//!
//! A message that cannot be written is lost, and the run goes on; a result that cannot be written is a failure. What messages quote, such
//! as names of reads, sequences and files, and the words of aligners, others have written: nothing of it reaches a terminal as a command.

use std::fmt::{self, Display, Write as _};
use std::io::{self, ErrorKind, Write};

use anyhow::Context;
use clap::{ArgAction, Args};
use genuma_strategy::instance::WORDS;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

use crate::{progress, stdout};

/// The options of every verb.
#[derive(Debug, Args)]
pub(crate) struct Voice {
    /// Say more on stderr; -vv says most
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = "Messages")]
    verbose: u8,
    /// Say nothing on stderr but errors: no progress, no warnings
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = "Messages")]
    quiet: bool,
}

impl Voice {
    /// Sets the voice of the whole process.
    pub(crate) fn set(&self) {
        let level = match (self.quiet, self.verbose) {
            (true, _) => Level::ERROR,
            (_, 0) => Level::INFO,
            (_, 1) => Level::DEBUG,
            _ => Level::TRACE,
        };
        tracing_subscriber::fmt().with_max_level(level).event_format(Line).with_writer(AboveBars).init();
    }
}

/// Says a line on stderr, if anybody can hear it.
pub(crate) fn say(line: &str) {
    let text = format!("{}\n", Safe(line));
    // Nothing better can be done with a message that cannot be written.
    let _ = progress::above_bars(|| io::stderr().write_all(text.as_bytes()));
}

/// Standard output, for results.
///
/// # Errors
/// It was closed before the program began.
pub(crate) fn results() -> anyhow::Result<io::StdoutLock<'static>> {
    if stdout::was_closed() {
        anyhow::bail!(
            "standard output: is closed, so that results cannot be written; open it, or name a file"
        );
    }
    Ok(io::stdout().lock())
}

/// Writes a result to standard output. Who reads it may stop when it has seen enough.
///
/// # Errors
/// It is closed, or does not take all of the text.
pub(crate) fn print(text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    let mut stdout = results()?;
    match stdout.write_all(text.as_ref()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("standard output"),
    }
}

/// A text that is safe to show on a terminal: control characters, and those that turn the direction of writing, are shown by their number.
struct Safe<'a>(&'a str);

impl Display for Safe<'_> {
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

/// `genuma: warning: what happened`; what an aligner says is passed on without a word of ours.
struct Line;

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        ctx: &FmtContext<'_, S, N>,
        mut line: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        line.write_str(match *event.metadata().level() {
            _ if event.metadata().target() == WORDS => "",
            Level::WARN => "genuma: warning: ",
            Level::ERROR => "genuma: error: ",
            _ => "genuma: ",
        })?;
        let mut said = String::new();
        ctx.field_format().format_fields(Writer::new(&mut said), event)?;
        writeln!(line, "{}", Safe(&said))
    }
}

/// Standard error, which takes everything; progress bars make room for what is written.
struct AboveBars;

impl MakeWriter<'_> for AboveBars {
    type Writer = AboveBars;

    fn make_writer(&self) -> AboveBars {
        AboveBars
    }
}

impl Write for AboveBars {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        // Who gets an error here would tell it on stderr, and panic.
        let _ = progress::above_bars(|| io::stderr().write_all(text));
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
            assert_eq!(Safe(text).to_string(), shown);
        }
    }
}
