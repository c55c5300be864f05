//! The plan of a call in parts: what `genuma call --plan` writes, and every `genuma step` reads.

pub(crate) mod making;
mod sbatch;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use genuma_reads::Lane;
use genuma_somatic::parts::{Kind, Parts};
use genuma_storage::Depot;
use serde::{Deserialize, Serialize};

use crate::fingerprint::Fingerprint;

/// The object that holds it.
pub(crate) const PLAN: &str = "plan.json";

/// What is to be done, and all that steps have to know.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RunPlan {
    /// Version of genuma that made it.
    pub(crate) genuma: String,
    /// Where it and all objects are: a folder, by its full path, or a bucket with a prefix.
    pub(crate) run: String,
    /// Folder of the results.
    pub(crate) out: PathBuf,
    /// Shards of the reads.
    pub(crate) shards: u32,
    /// Partitions of the k-mer space.
    pub(crate) parts: u32,
    /// The steps, by kind, each after those that it needs.
    pub(crate) steps: Vec<Steps>,
    /// The reads as they were given.
    pub(crate) lanes: Vec<Lane>,
    /// What the steps work on.
    pub(crate) call: Parts,
}

/// All steps of a kind.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Steps {
    /// What they are called.
    pub(crate) name: String,
    /// How many there are.
    pub(crate) tasks: u32,
    /// All steps of these names have to be done before.
    pub(crate) after: Vec<String>,
    /// Threads of one step.
    pub(crate) threads: usize,
    /// MiB of memory that one step may take.
    pub(crate) memory_mb: u64,
    /// Minutes that one step will hardly take.
    pub(crate) minutes: u64,
    /// MiB that one step may want in its own work folder.
    pub(crate) scratch_mb: u64,
}

impl Steps {
    /// MiB to ask a scheduler for: beside what genuma may take, what the kernel takes for it.
    pub(crate) fn asked_mb(&self) -> u64 {
        self.memory_mb + self.memory_mb / 10 + 128
    }
}

impl RunPlan {
    /// The plan of a run, if there is one.
    ///
    /// # Errors
    /// It cannot be read, is no plan, or was made by another version.
    pub(crate) fn find(depot: &Depot) -> anyhow::Result<Option<RunPlan>> {
        let Some(entry) = depot.find(PLAN)? else { return Ok(None) };
        let text = entry.read(0..entry.len())?;
        #[derive(Deserialize)]
        struct Version {
            genuma: String,
        }
        let version: Version =
            serde_json::from_slice(&text).with_context(|| format!("{entry}: no plan of a run"))?;
        let own = env!("CARGO_PKG_VERSION");
        if version.genuma != own {
            bail!(
                "{entry}: made by genuma {}, this is {own}: use that version, or plan again in another place",
                version.genuma
            );
        }
        Ok(Some(serde_json::from_slice(&text).with_context(|| format!("{entry}: damaged; plan again"))?))
    }

    /// What steps of a kind may use.
    ///
    /// # Errors
    /// The plan does not tell.
    pub(crate) fn of(&self, kind: Kind) -> anyhow::Result<&Steps> {
        let steps = self.steps.iter().find(|steps| steps.name == kind.name());
        steps.with_context(|| format!("{}/{PLAN}: has no step {}; plan again", self.run, kind.name()))
    }

    /// Fails when a file is not what it was when the run was planned.
    ///
    /// # Errors
    /// So it is, or it cannot be looked at.
    pub(crate) fn check(&self, role: &str, path: &Path) -> anyhow::Result<()> {
        let now = Fingerprint::of_file(role, path)?;
        let then = |line: &&str| {
            line.starts_with(&format!("{role} ")) && line.contains(&format!("{} of ", path.display()))
        };
        let mut lines = self.call.fingerprint.lines();
        if lines.clone().any(|line| line == now) {
            return Ok(());
        }
        match lines.find(then) {
            Some(then) => bail!(
                "{}: changed since the run was planned (now {now}, then {then}); plan again in another place",
                path.display()
            ),
            None => bail!(
                "{}: not the file of that name that the run was planned with (now {now}); plan again in another place",
                path.display()
            ),
        }
    }
}
