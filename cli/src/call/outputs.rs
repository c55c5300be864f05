//! The files of a finished call: all of them appear at the end, or none.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use genuma_somatic::outcome::Outcome;
use genuma_somatic::pipeline::{Finished, Job};
use genuma_somatic::{output, record, screened, tables, vcf};
use genuma_work::publish::{self, AtomicFile, Set};
use genuma_work::{Meter, Watch};
use serde::Serialize;
use tracing::info;

use super::watched::Watched;
use super::{outcome, why};
use crate::{multiqc, report};

/// The file to look at first.
pub(crate) const REPORT: &str = "report.html";

const VCF: &str = "somatic.vcf.gz";
const CONTIGS: &str = "contigs.fa";
const READS: &str = "supporting.bam";
/// Either of them, by the length of the longest sequence.
const READS_INDEXES: [&str; 2] = ["supporting.bam.bai", "supporting.bam.csi"];
const SUMMARY: &str = "summary.json";
/// How names of what MultiQC shows begin.
const MULTIQC: &str = "genuma";
/// Only when it was asked for.
const WHY: &str = "why.txt";

/// Tables beside the results, where they were asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tables {
    /// Small changes, as MAF.
    pub(crate) maf: Option<PathBuf>,
    /// Structural variants, as BEDPE.
    pub(crate) bedpe: Option<PathBuf>,
}

/// A table that was asked for, its file begun.
struct Begun {
    path: PathBuf,
    file: AtomicFile,
}

impl Begun {
    fn of(path: &Option<PathBuf>) -> Result<Option<Begun>, publish::Error> {
        let begun = |path: &PathBuf| Ok(Begun { path: path.clone(), file: AtomicFile::create(path)? });
        path.as_ref().map(begun).transpose()
    }
}

/// The results that are to be. The files of the report and of tables are begun with the run, so that a folder that cannot be written to, or that another run
/// writes to, shows at once.
pub(crate) struct Outputs<'a> {
    folder: &'a Path,
    page: AtomicFile,
    maf: Option<Begun>,
    bedpe: Option<Begun>,
}

impl<'a> Outputs<'a> {
    /// Begins in `folder`.
    ///
    /// # Errors
    /// It is read-only, full, or another run is writing its results there.
    pub(crate) fn begin(folder: &'a Path, tables: &Tables) -> Result<Self, publish::Error> {
        let page = AtomicFile::create(folder.join(REPORT))?;
        let (maf, bedpe) = (Begun::of(&tables.maf)?, Begun::of(&tables.bedpe)?);
        let there = earlier(folder, tables);
        if !there.is_empty() {
            info!(
                "{}: results of an earlier run are replaced at the end: {}",
                folder.display(),
                there.join(", ")
            );
        }
        Ok(Outputs { folder, page, maf, bedpe })
    }

    /// Writes all files of a finished call.
    ///
    /// # Errors
    /// A file cannot be written; then none appears.
    pub(crate) fn write(self, job: &Job, finished: &mut Finished, watched: &Watched) -> anyhow::Result<Outcome> {
        let Outputs { folder, mut page, maf, bedpe } = self;
        let meter = Arc::new(Meter::of("the reference"));
        watched.begins("write", finished.on_reference.then(|| meter.clone()));
        let file = |name: &str| folder.join(name);
        let mut set = Set::default();
        // Results of an earlier run that this one does not have would be taken for its own.
        if !finished.on_reference {
            [READS].iter().chain(&READS_INDEXES).for_each(|name| set.forget(file(name)));
        }
        if finished.answers.is_empty() {
            set.forget(file(WHY));
        } else {
            let mut answers = AtomicFile::create(file(WHY))?;
            answers.write_all(why::told(&finished.answers).as_bytes())?;
            set.add(answers.complete()?);
        }
        let genome = &finished.genome;
        let command = command(job);
        let mut records = record::records(&finished.events, genome);
        let header = vcf::header(genome, &finished.samples, &command, job.screen.is_some());
        let mut found = Vec::new();
        if let Some(path) = &job.screen {
            found = screened::find(&finished.events, genome, path, job.params.k)?;
            screened::tell(&found, &mut records);
        }
        output::write_vcf(&file(VCF), &header, &records, genome, &mut set)?;
        let maf = maf
            .map(|to| (to, "small changes", "structural", tables::maf(&records, genome, &finished.samples)));
        let bedpe = bedpe.map(|to| (to, "junctions", "small", tables::bedpe(&records, genome)));
        for (Begun { path, mut file }, what, other, table) in [maf, bedpe].into_iter().flatten() {
            file.write_all(table.text.as_bytes())?;
            set.add(file.complete()?);
            let (rows, others) = (table.rows, table.others);
            info!(
                "{}: {rows} {what} of calls that pass; {others} {other} records are not in it",
                path.display()
            );
        }
        output::write_contigs(&file(CONTIGS), finished, &mut set)?;
        output::write_supporting(
            &file(READS),
            finished,
            &command,
            &job.means,
            &job.store.work,
            &meter,
            &mut set,
        )?;
        let outcome = outcome::of(job, finished, &records, found, watched.timeline())?;
        output::write_json(&file(SUMMARY), &summary(&outcome), &mut set)?;
        multiqc::add(&file(MULTIQC), &multiqc::of_call(&outcome, &passed(&outcome), folder), &mut set)?;
        page.write_all(report::call::render(&outcome).as_bytes())?;
        set.add(page.complete()?);
        set.publish()?;
        Ok(outcome)
    }
}

/// Files of an earlier run that this one replaces or takes away, by name.
fn earlier(folder: &Path, tables: &Tables) -> Vec<String> {
    let ours = |name: &str| {
        [REPORT, CONTIGS, READS, SUMMARY, WHY].contains(&name)
            || READS_INDEXES.contains(&name)
            || name.starts_with(VCF)
            || name.starts_with(MULTIQC) && name.ends_with("_mqc.json")
    };
    // A folder that cannot be listed may still take files: what is in it is then not known.
    let listed = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        listed.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| ours(name)).collect();
    names.sort();
    let tables = [&tables.maf, &tables.bedpe].into_iter().flatten().filter(|path| path.exists());
    names.extend(tables.map(|path| path.display().to_string()));
    names
}

/// The parameters that the result depends on, in one order: equal runs have equal headers.
fn command(job: &Job) -> String {
    let (params, reference, screen) = (&job.params, job.reference.as_deref(), job.screen.as_deref());
    let mut line = format!(
        "genuma call -k {} --min-base-quality {} --min-quality {}",
        params.k, params.min_base_quality, params.least_quality
    );
    for (option, path) in [("reference", reference), ("screen", screen)] {
        if let Some(name) = path.and_then(Path::file_name) {
            line += &format!(" --{option} {}", name.to_string_lossy());
        }
    }
    if let Some(panel) = &job.panel {
        let name = panel.table.file_name().unwrap_or_default().to_string_lossy();
        line += &format!(" --panel {name} --panel-least {}", panel.least);
    }
    line
}

/// Events that passed, by class.
pub(crate) fn passed(outcome: &Outcome) -> BTreeMap<&'static str, u64> {
    let mut passed = BTreeMap::new();
    for call in outcome.calls.iter().filter(|call| call.filters.is_empty()) {
        *passed.entry(call.class.name()).or_default() += 1;
    }
    passed
}

/// What was run and found: the calls that passed, and how many did not, by filter.
#[derive(Serialize)]
struct Summary<'a> {
    #[serde(flatten)]
    outcome: &'a Outcome,
    passed: BTreeMap<&'static str, u64>,
    filtered: usize,
    filtered_by: BTreeMap<&'a str, u64>,
}

fn summary(outcome: &Outcome) -> Summary<'_> {
    let mut filtered_by = BTreeMap::new();
    for filter in outcome.calls.iter().flat_map(|call| &call.filters) {
        *filtered_by.entry(filter.as_str()).or_default() += 1;
    }
    let filtered = outcome.calls.iter().filter(|call| !call.filters.is_empty()).count();
    Summary { outcome, passed: passed(outcome), filtered, filtered_by }
}
