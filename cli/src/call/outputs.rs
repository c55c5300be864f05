//! The files of a finished call: all of them appear at the end, or none.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use genuma_reads::atomic_file::AtomicFile;
use genuma_somatic::outcome::Outcome;
use genuma_somatic::pipeline::{Finished, Job, Params};
use genuma_somatic::{output, vcf};
use serde_json::{Value, json};

use super::{outcome, why};
use crate::{report, signals};

/// The file to look at first.
pub const REPORT: &str = "report.html";

const VCF: &str = "somatic.vcf.gz";
/// Either of them, by the length of the longest sequence.
const VCF_INDEXES: [&str; 2] = ["somatic.vcf.gz.tbi", "somatic.vcf.gz.csi"];
const CONTIGS: &str = "contigs.fa";
const READS: &str = "supporting.bam";
const READS_INDEXES: [&str; 2] = ["supporting.bam.bai", "supporting.bam.csi"];
const SUMMARY: &str = "summary.json";
/// Only when it was asked for.
const WHY: &str = "why.txt";

/// Where the files wait, in the output folder, until all are complete.
const WAITING: &str = ".unfinished";

/// Fails when nothing can be written into the folder.
///
/// # Errors
/// The folder is read-only or full.
pub fn probe(out: &Path) -> Result<(), genuma_reads::Error> {
    AtomicFile::create(out.join(VCF)).map(drop)
}

/// Writes all files of a finished call.
///
/// # Errors
/// A file cannot be written; then none appears.
pub fn write(job: &Job, finished: &Finished, out: &Path) -> anyhow::Result<Outcome> {
    let waiting = Waiting::make(out)?;
    let file = |name: &str| waiting.0.join(name);
    let genome = &finished.genome;
    let command = command(&job.params, job.reference.as_deref());
    let lines = vcf::lines(&finished.events, genome);
    output::write_vcf(&file(VCF), &vcf::header(genome, &command), &lines, genome)?;
    output::write_contigs(&file(CONTIGS), finished)?;
    output::write_supporting(&file(READS), finished, &command, job.means.threads)?;
    let outcome = outcome::of(job, finished, &lines);
    output::write_json(&file(SUMMARY), &summary(&outcome)?)?;
    let mut page = AtomicFile::create(file(REPORT))?;
    page.write_all(report::call::render(&outcome).as_bytes())?;
    page.finish()?;
    if !finished.answers.is_empty() {
        let mut answers = AtomicFile::create(file(WHY))?;
        answers.write_all(why::told(&finished.answers).as_bytes())?;
        answers.finish()?;
    }
    waiting.publish(out)?;
    Ok(outcome)
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

/// Events that passed, by class.
pub fn passed(outcome: &Outcome) -> BTreeMap<&'static str, u64> {
    let mut passed = BTreeMap::new();
    for call in outcome.calls.iter().filter(|call| call.filters.is_empty()) {
        *passed.entry(call.class.name()).or_default() += 1;
    }
    passed
}

/// What was run and found, without the reads' pictures.
fn summary(outcome: &Outcome) -> serde_json::Result<Value> {
    let mut summary = serde_json::to_value(outcome)?;
    for call in summary["calls"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        call.remove("picture");
    }
    summary["passed"] = json!(passed(outcome));
    summary["filtered"] = json!(outcome.calls.iter().filter(|call| !call.filters.is_empty()).count());
    Ok(summary)
}

/// The folder of files that wait; it goes with its last holder.
struct Waiting(PathBuf);

impl Waiting {
    fn make(out: &Path) -> anyhow::Result<Self> {
        discard(out);
        let path = out.join(WAITING);
        fs::create_dir(&path).with_context(|| format!("{}: cannot make the folder", path.display()))?;
        Ok(Waiting(path))
    }

    /// Gives all files their final places; signals wait meanwhile.
    fn publish(self, out: &Path) -> anyhow::Result<()> {
        let _undivided = signals::undivided();
        let failed = || format!("{}: cannot put the results there", out.display());
        // Results of an earlier run that this one does not have would be taken for its own.
        for name in
            [READS, WHY].iter().chain(&READS_INDEXES).chain(&VCF_INDEXES).filter(|n| !self.0.join(n).exists())
        {
            match fs::remove_file(out.join(name)) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e).with_context(failed),
                _ => {}
            }
        }
        for entry in fs::read_dir(&self.0).with_context(failed)? {
            let name = entry.with_context(failed)?.file_name();
            fs::rename(self.0.join(&name), out.join(&name)).with_context(failed)?;
        }
        fs::File::open(out).and_then(|folder| folder.sync_all()).with_context(failed)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // What cannot be removed is removed by the next run.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes files that wait, be they of a run that was killed.
pub fn discard(out: &Path) {
    // There may be none.
    let _ = fs::remove_dir_all(out.join(WAITING));
}
