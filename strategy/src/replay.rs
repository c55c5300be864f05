//! Evaluates the advisor on published run times: which strategies it would have chosen, and how much slower they are
//! than the best.
//!
//! [`fit_aligners_of_server`] uses the runs of one server.
//! [`rank_strategies_by_predicted_time`](crate::trial_race::rank_strategies_by_predicted_time) uses the parameters
//! fitted there, the description of the other server and the names of the strategies, never its run times. Only
//! [`PublishedCase::relative_regret`] compares choices with run times.

pub mod report;
pub mod published_servers;
pub mod race_simulation;
pub mod published_runs;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::{ApplicationModel, MachineModel};
use crate::model_fitting::{RunObservation, WorkloadSizes, fit_application_models};
use crate::strategy::{InstanceMemoryPolicy, Strategy};
pub use published_runs::PublishedRun;

/// Reason why a table of published runs cannot be evaluated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// A line of the table is invalid.
    #[error(transparent)]
    Table(#[from] published_runs::TableLineError),
    /// The table names a server, aligner or data set of which genuma has no description.
    #[error("{what} '{name}' is not described; the replay knows the servers, aligners and data sets of lenis2017")]
    Unknown {
        /// What the name denotes: a server, an aligner or a data set.
        what: &'static str,
        /// The name in the table.
        name: String,
    },
    /// The table does not have exactly two servers. The field is their number.
    #[error("runs of two servers are needed, one to learn from and one to be judged; the table has {0}")]
    NotTwoServers(usize),
    /// A case has no plain run to compare with. The field names the case.
    #[error("{0}: the table lacks a run of the strategy default with that many threads: add that row")]
    NoPlainRun(String),
}

/// An aligner and the data set that it aligned in the published runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AlignerAndDataset {
    /// Name of the aligner.
    pub aligner: String,
    /// Name of the data set.
    pub dataset: String,
}

impl AlignerAndDataset {
    fn from_run(run: &PublishedRun) -> Self {
        Self { aligner: run.aligner.clone(), dataset: run.dataset.clone() }
    }

    fn workload(&self) -> Result<WorkloadSizes, Error> {
        if let Some(workload) = published_servers::published_workload_sizes(&self.aligner, &self.dataset) {
            return Ok(workload);
        }
        let (what, name) = match published_servers::published_workload_sizes(&self.aligner, "gcat") {
            Some(_) => ("data set", &self.dataset),
            None => ("aligner", &self.aligner),
        };
        Err(Error::Unknown { what, name: name.clone() })
    }
}

/// Application models by aligner and data set, fitted to the runs of one server.
pub(crate) type ModelsByAlignerAndDataset = BTreeMap<AlignerAndDataset, ApplicationModel>;

fn server_model(server: &str) -> Result<MachineModel, Error> {
    published_servers::published_server_model(server)
        .ok_or_else(|| Error::Unknown { what: "server", name: server.to_owned() })
}

/// Fits the models of all aligners to runs of `server`: all runs with the maximum number of threads, and plain runs
/// with fewer threads. Other runs with fewer threads are left out, because the paper does not report their CPUs.
///
/// # Errors
/// The server, an aligner or a data set is not described.
pub fn fit_aligners_of_server(runs: &[PublishedRun], server: &str) -> Result<ModelsByAlignerAndDataset, Error> {
    let machine = server_model(server)?;
    let of_server = || runs.iter().filter(|run| run.server == server);
    let most = of_server().map(|run| run.threads).max().unwrap_or(0);
    let useful = || of_server().filter(|run| run.threads == most || run.strategy == Strategy::PLAIN_RUN);
    let mut jobs: BTreeMap<&str, Vec<AlignerAndDataset>> = BTreeMap::new();
    for run in useful() {
        let jobs = jobs.entry(&run.aligner).or_default();
        if !jobs.contains(&AlignerAndDataset::from_run(run)) {
            jobs.push(AlignerAndDataset::from_run(run));
        }
    }
    let mut fitted = ModelsByAlignerAndDataset::new();
    for (aligner, mut jobs) in jobs {
        jobs.sort();
        let workloads = jobs.iter().map(AlignerAndDataset::workload).collect::<Result<Vec<_>, _>>()?;
        let observe = |run: &PublishedRun| {
            let workload = jobs.iter().position(|workload| *workload == AlignerAndDataset::from_run(run))?;
            Some(RunObservation { workload, strategy: run.strategy, threads: run.threads, seconds: run.seconds })
        };
        let of_aligner = useful().filter(|run| run.aligner == aligner);
        let observations: Vec<RunObservation> = of_aligner.filter_map(observe).collect();
        fitted.extend(jobs.into_iter().zip(fit_application_models(&machine, &workloads, &observations)));
    }
    Ok(fitted)
}

/// Returns for each aligner and data set the geometric mean of the fitted parameters of all other aligners on the same
/// data set. Memory and number of reads stay those of the aligner.
pub(crate) fn average_models_of_other_aligners(fitted: &ModelsByAlignerAndDataset) -> ModelsByAlignerAndDataset {
    let of = |workload: &AlignerAndDataset, own: &ApplicationModel| {
        let others: Vec<&ApplicationModel> = fitted
            .iter()
            .filter(|(other, _)| other.aligner != workload.aligner && other.dataset == workload.dataset)
            .map(|(_, app)| app)
            .collect();
        let mean = |pick: fn(&ApplicationModel) -> f64| {
            (others.iter().map(|app| pick(app).ln()).sum::<f64>() / others.len() as f64).exp()
        };
        ApplicationModel {
            cpu: mean(|app| app.cpu),
            touches: mean(|app| app.touches),
            bytes_per_touch: mean(|app| app.bytes_per_touch),
            handovers: mean(|app| app.handovers),
            spread: mean(|app| app.spread),
            ..*own
        }
    };
    fitted.iter().map(|(workload, own)| (workload.clone(), of(workload, own))).collect()
}

/// One aligner and data set on one server, with the published run time of each strategy.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedCase {
    /// Name of the server.
    pub server: String,
    /// The aligner and data set.
    pub workload: AlignerAndDataset,
    /// Threads of all instances together.
    pub threads: u32,
    runs: Vec<PublishedRun>,
}

impl PublishedCase {
    /// Returns the measured strategies.
    pub(crate) fn measured_strategies(&self) -> Vec<Strategy> {
        self.runs.iter().map(|run| run.strategy).collect()
    }

    /// Returns the measured run of a strategy.
    pub(crate) fn measured_run(&self, strategy: Strategy) -> Option<&PublishedRun> {
        self.runs.iter().find(|run| run.strategy == strategy)
    }

    /// Returns the fastest measured strategy and its published time, s.
    pub fn fastest_strategy(&self) -> (Strategy, f64) {
        let best = self.runs.iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds));
        best.map_or((Strategy::PLAIN_RUN, f64::NAN), |run| (run.strategy, run.seconds))
    }

    /// Returns the published time of `strategy` divided by that of the fastest strategy, minus 1; infinite if the table
    /// has no run of `strategy`.
    pub fn relative_regret(&self, strategy: Strategy) -> f64 {
        self.measured_run(strategy).map_or(f64::INFINITY, |run| run.seconds / self.fastest_strategy().1 - 1.0)
    }
}

/// Returns the cases of a server, sorted by aligner and data set. A case has only the runs with the maximum number of
/// threads on this server.
///
/// # Errors
/// A case has no plain run.
pub fn list_published_cases(runs: &[PublishedRun], server: &str) -> Result<Vec<PublishedCase>, Error> {
    let of_server = || runs.iter().filter(|run| run.server == server);
    let threads = of_server().map(|run| run.threads).max().unwrap_or(0);
    let mut by_job: BTreeMap<AlignerAndDataset, Vec<PublishedRun>> = BTreeMap::new();
    for run in of_server().filter(|run| run.threads == threads) {
        by_job.entry(AlignerAndDataset::from_run(run)).or_default().push(run.clone());
    }
    let case = |(workload, runs): (AlignerAndDataset, Vec<PublishedRun>)| {
        let case = PublishedCase { server: server.to_owned(), workload, threads, runs };
        let name = || format!("{} {} {}, {threads} threads", case.workload.aligner, case.server, case.workload.dataset);
        if case.measured_run(Strategy::PLAIN_RUN).is_none() {
            return Err(Error::NoPlainRun(name()));
        }
        Ok(case)
    };
    by_job.into_iter().map(case).collect()
}

/// A simple rule to choose a strategy, for comparison with the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaselineRule {
    /// Always chooses the plain run.
    Default,
    /// Always chooses one instance with interleaved memory.
    Interleave,
    /// Always chooses the largest measured number of instances, bound to nodes.
    MaxInstances,
    /// Rule of lenis2017, section 6.3: the largest number of instances if the index takes at most a third of the memory
    /// of each node, else one instance with interleaved memory.
    PublishedRule,
}

impl BaselineRule {
    /// The rules that the model is compared with, in the order of the table.
    pub const ALL_BASELINE_RULES: [BaselineRule; 4] =
        [BaselineRule::Default, BaselineRule::Interleave, BaselineRule::MaxInstances, BaselineRule::PublishedRule];

    /// Returns the name of this baseline rule, as in the report of the replay.
    pub(crate) fn rule_name(self) -> &'static str {
        match self {
            BaselineRule::Default => "always default",
            BaselineRule::Interleave => "always interleave",
            BaselineRule::MaxInstances => "always most instances",
            BaselineRule::PublishedRule => "the paper's rule",
        }
    }

    /// Returns the strategy that the rule chooses for a case.
    pub(crate) fn choose_strategy_by_rule(
        self,
        case: &PublishedCase,
        machine: &MachineModel,
        index_bytes: u64,
    ) -> Strategy {
        let interleave = Strategy { instances: 1, memory: InstanceMemoryPolicy::Interleave };
        let most = case.measured_strategies().iter().map(|strategy| strategy.instances).max().unwrap_or(1);
        let instances = Strategy { instances: most, memory: InstanceMemoryPolicy::Bind };
        // "Much smaller than the capacity of a bank" is taken as a third, which separates the two small indexes from
        // the two large ones.
        let fits = machine.nodes.iter().all(|node| index_bytes * 3 <= node.memory_bytes);
        match self {
            BaselineRule::Default => Strategy::PLAIN_RUN,
            BaselineRule::Interleave => interleave,
            BaselineRule::MaxInstances => instances,
            BaselineRule::PublishedRule if fits => instances,
            BaselineRule::PublishedRule => interleave,
        }
    }
}
