//! The advisor scored on published run times: what it would have chosen, and how much that loses.
//!
//! [`learn`] sees the runs of one server; [`rank`](crate::pilot::rank) sees that server's lessons, the description of the other one and the
//! names of the strategies, never its times; [`Case::regret`] alone holds times against choices.

pub mod report;
pub mod servers;
pub mod simulate;
pub mod table;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fit::{Observation, Workload, fit};
use crate::model::{Application, Machine};
use crate::strategy::{Memory, Strategy};
pub use table::Run;

/// Why a table cannot be replayed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// A line of it is wrong.
    #[error(transparent)]
    Table(#[from] table::Error),
    /// It has something that is not described here.
    #[error(
        "{what} '{name}' is not described; the replay knows the servers, aligners and data sets of lenis2017"
    )]
    Unknown {
        /// Kind of thing.
        what: &'static str,
        /// Its name in the table.
        name: String,
    },
    /// There is nothing to learn from or nothing to judge.
    #[error("runs of two servers are needed, one to learn from and one to be judged; the table has {0}")]
    Servers(usize),
    /// A case has no plain run, which everything is compared with.
    #[error("{0}: no plain run with that many threads; add it")]
    NoPlain(String),
}

/// What an aligner does with a set of reads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Job {
    /// The program.
    pub aligner: String,
    /// The reads.
    pub dataset: String,
}

impl Job {
    fn of(run: &Run) -> Self {
        Self { aligner: run.aligner.clone(), dataset: run.dataset.clone() }
    }

    fn workload(&self) -> Result<Workload, Error> {
        if let Some(workload) = servers::workload(&self.aligner, &self.dataset) {
            return Ok(workload);
        }
        let (what, name) = match servers::workload(&self.aligner, "gcat") {
            Some(_) => ("data set", &self.dataset),
            None => ("aligner", &self.aligner),
        };
        Err(Error::Unknown { what, name: name.clone() })
    }
}

/// Applications as one server's runs show them.
pub(crate) type Lessons = BTreeMap<Job, Application>;

fn described(server: &str) -> Result<Machine, Error> {
    servers::machine(server).ok_or_else(|| Error::Unknown { what: "server", name: server.to_owned() })
}

/// Fits every aligner on `server`'s runs with all threads and its plain runs with fewer; other servers' are not looked at.
/// (Runs with fewer threads and a policy are left out: the paper does not say on which CPUs they were.)
///
/// # Errors
/// The server, an aligner or a data set is not described.
pub fn learn(runs: &[Run], server: &str) -> Result<Lessons, Error> {
    let machine = described(server)?;
    let of_server = || runs.iter().filter(|run| run.server == server);
    let most = of_server().map(|run| run.threads).max().unwrap_or(0);
    let useful = || of_server().filter(|run| run.threads == most || run.strategy == Strategy::PLAIN);
    let mut jobs: BTreeMap<&str, Vec<Job>> = BTreeMap::new();
    for run in useful() {
        let jobs = jobs.entry(&run.aligner).or_default();
        if !jobs.contains(&Job::of(run)) {
            jobs.push(Job::of(run));
        }
    }
    let mut lessons = Lessons::new();
    for (aligner, mut jobs) in jobs {
        jobs.sort();
        let workloads = jobs.iter().map(Job::workload).collect::<Result<Vec<_>, _>>()?;
        let observe = |run: &Run| {
            let workload = jobs.iter().position(|job| *job == Job::of(run))?;
            Some(Observation { workload, strategy: run.strategy, threads: run.threads, seconds: run.seconds })
        };
        let of_aligner = useful().filter(|run| run.aligner == aligner);
        let observations: Vec<Observation> = of_aligner.filter_map(observe).collect();
        lessons.extend(jobs.into_iter().zip(fit(&machine, &workloads, &observations)));
    }
    Ok(lessons)
}

/// Lessons for each job from all aligners but its own: the geometric means of theirs on the same reads.
pub(crate) fn from_others(lessons: &Lessons) -> Lessons {
    let of = |job: &Job, own: &Application| {
        let others: Vec<&Application> = lessons
            .iter()
            .filter(|(other, _)| other.aligner != job.aligner && other.dataset == job.dataset)
            .map(|(_, app)| app)
            .collect();
        let mean = |pick: fn(&Application) -> f64| {
            (others.iter().map(|app| pick(app).ln()).sum::<f64>() / others.len() as f64).exp()
        };
        Application {
            cpu: mean(|app| app.cpu),
            touches: mean(|app| app.touches),
            bytes_per_touch: mean(|app| app.bytes_per_touch),
            handovers: mean(|app| app.handovers),
            spread: mean(|app| app.spread),
            ..*own
        }
    };
    lessons.iter().map(|(job, own)| (job.clone(), of(job, own))).collect()
}

/// A job on a server with all its threads, and how long each strategy took.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The server.
    pub server: String,
    /// The job.
    pub job: Job,
    /// Threads of all instances together.
    pub threads: u32,
    runs: Vec<Run>,
}

impl Case {
    /// Strategies that were measured.
    pub fn strategies(&self) -> Vec<Strategy> {
        self.runs.iter().map(|run| run.strategy).collect()
    }

    /// The measured run of a strategy.
    pub fn run(&self, strategy: Strategy) -> Option<&Run> {
        self.runs.iter().find(|run| run.strategy == strategy)
    }

    /// The fastest measured strategy and its seconds.
    pub fn best(&self) -> (Strategy, f64) {
        let best = self.runs.iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds));
        best.map_or((Strategy::PLAIN, f64::NAN), |run| (run.strategy, run.seconds))
    }

    /// Time of `strategy` over the best one's, less 1; infinite if it was not measured.
    pub fn regret(&self, strategy: Strategy) -> f64 {
        self.run(strategy).map_or(f64::INFINITY, |run| run.seconds / self.best().1 - 1.0)
    }
}

/// The cases of a server, by aligner and data set, with the most threads that it was run with.
///
/// # Errors
/// A case lacks its plain run.
pub fn cases(runs: &[Run], server: &str) -> Result<Vec<Case>, Error> {
    let of_server = || runs.iter().filter(|run| run.server == server);
    let threads = of_server().map(|run| run.threads).max().unwrap_or(0);
    let mut by_job: BTreeMap<Job, Vec<Run>> = BTreeMap::new();
    for run in of_server().filter(|run| run.threads == threads) {
        by_job.entry(Job::of(run)).or_default().push(run.clone());
    }
    let case = |(job, runs): (Job, Vec<Run>)| {
        let case = Case { server: server.to_owned(), job, threads, runs };
        let name = || format!("{} {} {}, {threads} threads", case.job.aligner, case.server, case.job.dataset);
        if case.run(Strategy::PLAIN).is_none() {
            return Err(Error::NoPlain(name()));
        }
        Ok(case)
    };
    by_job.into_iter().map(case).collect()
}

/// A rule that needs no model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Leave it as it is.
    Default,
    /// Interleave over all nodes.
    Interleave,
    /// As many instances as were tried, bound.
    Instances,
    /// lenis2017, section 6.3: an index that fits a bank gets the most instances, any other is interleaved.
    Paper,
}

impl Rule {
    /// All of them.
    pub const ALL: [Rule; 4] = [Rule::Default, Rule::Interleave, Rule::Instances, Rule::Paper];

    /// What it does, in a few words.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Default => "always default",
            Rule::Interleave => "always interleave",
            Rule::Instances => "always most instances",
            Rule::Paper => "the paper's rule",
        }
    }

    /// What it chooses.
    pub fn choice(self, case: &Case, machine: &Machine, index_bytes: u64) -> Strategy {
        let interleave = Strategy { instances: 1, memory: Memory::Interleave };
        let most = case.strategies().iter().map(|strategy| strategy.instances).max().unwrap_or(1);
        let instances = Strategy { instances: most, memory: Memory::Bind };
        // "Much smaller than the capacity of a bank": a third, which parts the two small indexes from the two large ones.
        let fits = machine.nodes.iter().all(|node| index_bytes * 3 <= node.memory_bytes);
        match self {
            Rule::Default => Strategy::PLAIN,
            Rule::Interleave => interleave,
            Rule::Instances => instances,
            Rule::Paper if fits => instances,
            Rule::Paper => interleave,
        }
    }
}
