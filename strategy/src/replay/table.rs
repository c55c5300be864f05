//! Run times as the file of lenis2017 has them.

use crate::strategy::{Memory, Strategy};

/// First line of the file.
pub const HEADER: &str =
    "aligner,arch,dataset,strategy,policy,instances,threads_per_instance,threads_total,mean_s,err_pct";

/// A measured strategy: mean of ten runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The program.
    pub aligner: String,
    /// The server.
    pub server: String,
    /// The reads.
    pub dataset: String,
    /// What was chosen.
    pub strategy: Strategy,
    /// Threads of all instances together.
    pub threads: u32,
    /// Seconds, mean.
    pub seconds: f64,
    /// Relative error: 0.1 is 10%.
    pub error: f64,
}

/// A line that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}, line {line}: {why}")]
pub struct Error {
    file: String,
    line: usize,
    why: String,
}

/// Reads `text`; `file` is its name in errors.
///
/// # Errors
/// The header is another one, or a line has fields that are missing or wrong.
pub fn parse(file: &str, text: &str) -> Result<Vec<Run>, Error> {
    let wrong = |line: usize, why: String| Error { file: file.to_owned(), line, why };
    let mut lines = text.lines().enumerate().map(|(n, line)| (n + 1, line));
    match lines.next() {
        Some((_, header)) if header.trim_end() == HEADER => {}
        _ => return Err(wrong(1, format!("expected the header '{HEADER}'"))),
    }
    let mut runs: Vec<Run> = Vec::new();
    for (n, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let run = row(line).map_err(|why| wrong(n, why))?;
        let same = |other: &Run| {
            (&other.aligner, &other.server, &other.dataset, other.strategy, other.threads)
                == (&run.aligner, &run.server, &run.dataset, run.strategy, run.threads)
        };
        if runs.iter().any(same) {
            return Err(wrong(n, format!("{} with {} threads is there twice", run.strategy, run.threads)));
        }
        runs.push(run);
    }
    Ok(runs)
}

fn row(line: &str) -> Result<Run, String> {
    let fields: Vec<&str> = line.trim_end().split(',').collect();
    let &[aligner, server, dataset, _, policy, instances, each, threads, seconds, error] = fields.as_slice()
    else {
        return Err(format!("{} fields; there are ten", fields.len()));
    };
    let memory = match policy {
        "none" => Memory::Default,
        "localalloc" => Memory::Local,
        "interleave" => Memory::Interleave,
        "membind" => Memory::Bind,
        other => return Err(format!("policy '{other}'; there are none, localalloc, interleave and membind")),
    };
    let (instances, each) = (count("instances", instances)?, count("threads_per_instance", each)?);
    let threads = count("threads_total", threads)?;
    if instances.checked_mul(each) != Some(threads) {
        return Err(format!("{instances} instances of {each} threads do not make {threads} threads"));
    }
    let seconds = number("mean_s", seconds)?;
    if seconds <= 0.0 {
        return Err(format!("mean_s is {seconds}; a time is above 0"));
    }
    let error = number("err_pct", error)? / 100.0;
    if error < 0.0 {
        return Err("err_pct is below 0".into());
    }
    let [aligner, server, dataset] = [aligner, server, dataset].map(str::to_owned);
    Ok(Run { aligner, server, dataset, strategy: Strategy { instances, memory }, threads, seconds, error })
}

fn count(name: &str, word: &str) -> Result<u32, String> {
    word.parse()
        .ok()
        .filter(|n| *n > 0)
        .ok_or_else(|| format!("{name} is '{word}'; expected a number from 1"))
}

fn number(name: &str, word: &str) -> Result<f64, String> {
    let finite = word.parse().ok().filter(|n: &f64| n.is_finite());
    finite.ok_or_else(|| format!("{name} is '{word}'; expected a number"))
}
