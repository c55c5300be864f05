//! Reads the table of published run times of lenis2017.

use crate::strategy::{InstanceMemoryPolicy, Strategy};

/// Header line of the table.
pub const PUBLISHED_RUNS_TABLE_HEADER: &str =
    "aligner,arch,dataset,strategy,policy,instances,threads_per_instance,threads_total,mean_s,err_pct";

/// A published run: the mean of ten repetitions.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedRun {
    /// Name of the aligner.
    pub aligner: String,
    /// Name of the server.
    pub server: String,
    /// Name of the data set.
    pub dataset: String,
    /// Number of instances and memory policy of the run.
    pub strategy: Strategy,
    /// Threads of all instances together.
    pub threads: u32,
    /// Mean wall-clock time of the repeated runs, s.
    pub seconds: f64,
    /// Relative error of the run time as published: 0.1 is 10 %.
    pub error: f64,
}

/// Error: a line of the table of published runs is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}, line {line}: {why}")]
pub struct TableLineError {
    file: String,
    line: usize,
    why: String,
}

/// Parses the table `text`; `file` is its name in errors.
///
/// # Errors
/// The header differs, or a line has missing or invalid fields.
pub fn parse_published_runs(file: &str, text: &str) -> Result<Vec<PublishedRun>, TableLineError> {
    let wrong = |line: usize, why: String| TableLineError { file: file.to_owned(), line, why };
    let mut lines = text.lines().enumerate().map(|(n, line)| (n + 1, line));
    match lines.next() {
        Some((_, header)) if header.trim_end() == PUBLISHED_RUNS_TABLE_HEADER => {}
        _ => return Err(wrong(1, format!("expected the header '{PUBLISHED_RUNS_TABLE_HEADER}'"))),
    }
    let mut runs: Vec<PublishedRun> = Vec::new();
    for (n, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let run = parse_row(line).map_err(|why| wrong(n, why))?;
        let same = |other: &PublishedRun| {
            (&other.aligner, &other.server, &other.dataset, other.strategy, other.threads)
                == (&run.aligner, &run.server, &run.dataset, run.strategy, run.threads)
        };
        if runs.iter().any(same) {
            return Err(wrong(n, format!("{} with {} threads occurs twice", run.strategy, run.threads)));
        }
        runs.push(run);
    }
    Ok(runs)
}

fn parse_row(line: &str) -> Result<PublishedRun, String> {
    let fields: Vec<&str> = line.trim_end().split(',').collect();
    let &[aligner, server, dataset, _, policy, instances, each, threads, seconds, error] = fields.as_slice() else {
        return Err(format!("{} fields; there are ten", fields.len()));
    };
    let memory = match policy {
        "none" => InstanceMemoryPolicy::Default,
        "localalloc" => InstanceMemoryPolicy::Local,
        "interleave" => InstanceMemoryPolicy::Interleave,
        "membind" => InstanceMemoryPolicy::Bind,
        other => return Err(format!("policy '{other}'; there are none, localalloc, interleave and membind")),
    };
    let (instances, each) = (parse_count("instances", instances)?, parse_count("threads_per_instance", each)?);
    let threads = parse_count("threads_total", threads)?;
    if instances.checked_mul(each) != Some(threads) {
        return Err(format!("{instances} instances of {each} threads do not make {threads} threads"));
    }
    let seconds = parse_number("mean_s", seconds)?;
    if seconds <= 0.0 {
        return Err(format!("mean_s is {seconds}; a time is above 0"));
    }
    let error = parse_number("err_pct", error)? / 100.0;
    if error < 0.0 {
        return Err("err_pct is below 0".into());
    }
    let [aligner, server, dataset] = [aligner, server, dataset].map(str::to_owned);
    Ok(PublishedRun { aligner, server, dataset, strategy: Strategy { instances, memory }, threads, seconds, error })
}

fn parse_count(name: &str, word: &str) -> Result<u32, String> {
    word.parse().ok().filter(|n| *n > 0).ok_or_else(|| format!("{name} is '{word}'; expected a number from 1"))
}

fn parse_number(name: &str, word: &str) -> Result<f64, String> {
    let finite = word.parse().ok().filter(|n: &f64| n.is_finite());
    finite.ok_or_else(|| format!("{name} is '{word}'; expected a number"))
}
