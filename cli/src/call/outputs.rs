//! The files of a finished call: all of them appear at the end, or none.

use std::fmt;
use std::io::Write;
use std::path::Path;

use genuma_reads::atomic_file::AtomicFile;
use genuma_somatic::event::Class;
use genuma_somatic::pipeline::{Finished, Job, Params};
use genuma_somatic::vcf;

use crate::signals;

/// The file to look at first.
pub const BEST: &str = "somatic.vcf";

/// Calls of each class that pass.
pub struct Counts(Vec<(Class, usize)>);

impl Counts {
    /// Counts the events of a call.
    pub fn of(finished: &Finished) -> Self {
        let passing = |event: &&genuma_somatic::event::Event| event.calls[0].genotype.filters.is_empty();
        let mut counts = std::collections::BTreeMap::new();
        for event in finished.events.iter().filter(passing) {
            *counts.entry(event.class).or_default() += 1;
        }
        Counts(counts.into_iter().collect())
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: usize = self.0.iter().map(|c| c.1).sum();
        write!(f, "{all} calls pass")?;
        for (i, (class, n)) in self.0.iter().enumerate() {
            write!(f, "{}{n} {}", if i == 0 { " (" } else { ", " }, class.name())?;
        }
        f.write_str(if self.0.is_empty() { "" } else { ")" })
    }
}

/// Fails when nothing can be written into the folder.
///
/// # Errors
/// The folder is read-only or full.
pub fn probe(out: &Path) -> Result<(), genuma_reads::Error> {
    AtomicFile::create(out.join(BEST)).map(drop)
}

/// The parameters that the result depends on, in one order: equal runs have equal headers.
fn command(params: &Params, reference: Option<&Path>) -> String {
    let mut line = format!(
        "genuma call -k {} --min-base-quality {} --min-quality {}",
        params.k, params.min_base_quality, params.least_quality
    );
    if let Some(name) = reference.and_then(Path::file_name) {
        line += &format!(" --reference {}", name.to_string_lossy());
    }
    line
}

/// Writes all files of a finished call.
///
/// # Errors
/// A file cannot be written; then none appears.
pub fn write(job: &Job, finished: &Finished, out: &Path) -> anyhow::Result<()> {
    let mut file = AtomicFile::create(out.join(BEST))?;
    let command = command(&job.params, job.reference.as_deref());
    file.write_all(vcf::header(&finished.genome, &command).as_bytes())?;
    for line in vcf::lines(&finished.events, &finished.genome) {
        writeln!(file, "{}", line.text)?;
    }
    let _undivided = signals::undivided();
    file.finish()?;
    Ok(())
}
