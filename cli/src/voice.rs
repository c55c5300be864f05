//! How much is said on stderr.

use std::fmt;
use std::io::{self, Write};

use clap::{ArgAction, Args};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

use crate::progress;

/// The options of every verb.
#[derive(Debug, Args)]
pub struct Voice {
    /// Say more on stderr; -vv says most
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = "Messages")]
    verbose: u8,
    /// Say nothing on stderr but errors: no progress, no warnings
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = "Messages")]
    quiet: bool,
}

impl Voice {
    /// Sets the voice of the whole process.
    pub fn set(&self) {
        let level = match (self.quiet, self.verbose) {
            (true, _) => Level::ERROR,
            (_, 0) => Level::INFO,
            (_, 1) => Level::DEBUG,
            _ => Level::TRACE,
        };
        tracing_subscriber::fmt().with_max_level(level).event_format(Line).with_writer(AboveBars).init();
    }
}

/// `genuma: warning: what happened`.
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
            Level::WARN => "genuma: warning: ",
            Level::ERROR => "genuma: error: ",
            _ => "genuma: ",
        })?;
        ctx.field_format().format_fields(line.by_ref(), event)?;
        writeln!(line)
    }
}

/// Standard error; progress bars make room for what is written.
struct AboveBars;

impl MakeWriter<'_> for AboveBars {
    type Writer = AboveBars;

    fn make_writer(&self) -> AboveBars {
        AboveBars
    }
}

impl Write for AboveBars {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        progress::above_bars(|| io::stderr().write(text))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
