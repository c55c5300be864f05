//! The plan of a distributed call. `genuma call --plan` writes it to the run store, and every `genuma step` reads it.

pub(crate) mod planning;
mod sbatch;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use genuma_reads::Lane;
use genuma_somatic::distributed_call::{DistributedCall, StepKind};
use genuma_storage::RunStore;
use serde::{Deserialize, Serialize};

use crate::fingerprint::Fingerprint;

/// Name of the object that holds the plan.
pub(crate) const PLAN_OBJECT_NAME: &str = "plan.json";

/// Describes a distributed call to its steps.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DistributedPlan {
    /// Version of genuma that made the plan.
    pub(crate) genuma: String,
    /// Location of the run store: a folder by its absolute path, or a bucket with a prefix.
    pub(crate) run: String,
    /// Folder of the results.
    pub(crate) out: PathBuf,
    /// Number of shards of the reads.
    pub(crate) shards: u32,
    /// Number of partitions of the k-mers.
    pub(crate) parts: u32,
    /// The steps in an order in which they can run.
    pub(crate) steps: Vec<StepPlan>,
    /// The input lanes as given.
    pub(crate) lanes: Vec<Lane>,
    /// The input of the steps.
    pub(crate) call: DistributedCall,
}

/// One step of a distributed call, with the resources of its tasks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StepPlan {
    /// Name of the step.
    pub(crate) name: String,
    /// Number of tasks.
    pub(crate) tasks: u32,
    /// Names of the steps that must be finished before.
    pub(crate) after: Vec<String>,
    /// Threads of one task.
    pub(crate) threads: usize,
    /// Memory of one task (MiB).
    pub(crate) memory_mb: u64,
    /// Time limit of one task (minutes), with a wide margin.
    pub(crate) minutes: u64,
    /// Disk space in the work folder of one task (MiB).
    pub(crate) scratch_mb: u64,
}

impl StepPlan {
    /// Memory to request from a scheduler (MiB): that of genuma, and the kernel's on its behalf.
    pub(crate) fn requested_memory_mb(&self) -> u64 {
        self.memory_mb + self.memory_mb / 10 + 128
    }
}

impl DistributedPlan {
    /// Loads the plan from the run store; `None` if there is none.
    ///
    /// # Errors
    /// The object cannot be read, is no plan, or was made by another version of genuma.
    pub(crate) fn load(run_store: &RunStore) -> anyhow::Result<Option<DistributedPlan>> {
        let Some(entry) = run_store.find(PLAN_OBJECT_NAME)? else { return Ok(None) };
        let text = entry.read(0..entry.len())?;
        #[derive(Deserialize)]
        struct PlanVersion {
            genuma: String,
        }
        let version: PlanVersion =
            serde_json::from_slice(&text).with_context(|| format!("{entry}: is not the plan of a distributed call"))?;
        let own = env!("CARGO_PKG_VERSION");
        if version.genuma != own {
            bail!(
                "{entry}: made by genuma {}, this is {own}: use that version, or plan the call again in another location",
                version.genuma
            );
        }
        Ok(Some(serde_json::from_slice(&text).with_context(|| format!("{entry}: is damaged; plan the call again"))?))
    }

    /// The plan of a step.
    ///
    /// # Errors
    /// The plan does not contain the step.
    pub(crate) fn find_step_plan(&self, kind: StepKind) -> anyhow::Result<&StepPlan> {
        let steps = self.steps.iter().find(|steps| steps.name == kind.command_line_name());
        steps.with_context(|| {
            format!("{}/{PLAN_OBJECT_NAME}: has no step {}; plan again", self.run, kind.command_line_name())
        })
    }

    /// Fails if an input file has changed since the run was planned.
    ///
    /// # Errors
    /// The file has changed or is not the planned one, or its metadata cannot be read.
    pub(crate) fn check_unchanged(&self, role: &str, path: &Path) -> anyhow::Result<()> {
        let now = Fingerprint::describe_file(role, path)?;
        let then =
            |line: &&str| line.starts_with(&format!("{role} ")) && line.contains(&format!("{} of ", path.display()));
        let mut lines = self.call.fingerprint.lines();
        if lines.clone().any(|line| line == now) {
            return Ok(());
        }
        match lines.find(then) {
            Some(then) => bail!(
                "{}: changed since the run was planned (now {now}, then {then}); plan the call again in another location",
                path.display()
            ),
            None => bail!(
                "{}: not the file of that name that the run was planned with (now {now}); plan the call again in another location",
                path.display()
            ),
        }
    }
}
