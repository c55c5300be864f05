//! The plan of a distributed call. `genuma call --plan` writes it to the run store, and every `genuma step` reads it.

pub(crate) mod planning;
mod sbatch;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use genuma_kmers::BinGrid;
use genuma_reads::md5_sum::md5_hex;
use genuma_reads::{Lane, TUMOUR_SAMPLE};
use genuma_somatic::distributed_call::{DistributedCallPlan, StepKind};
use genuma_somatic::provenance::Provenance;
use genuma_somatic::result_warnings::ResultWarning;
use genuma_storage::RunStore;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::command_line::ALLOWED_CALL_KMER_LENGTHS;
use crate::fingerprint::Fingerprint;
use crate::json_file::{JsonOutput, schema_numbers};

/// Name of the object that holds the plan.
pub(crate) const PLAN_OBJECT_NAME: &str = "plan.json";

/// Key of the checksum in the plan.
const CHECKSUM_KEY: &str = "checksum";

/// Returns the checksum of a plan: the MD5 sum, in hexadecimal digits, of its compact JSON text with sorted keys,
/// without the checksum itself.
fn compute_checksum(plan: &Value) -> String {
    md5_hex(plan.to_string().as_bytes())
}

/// The plan of a distributed call (`plan.json`): its input, its steps, and the resources of their tasks.
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
    /// The steps, each after the steps that it depends on.
    pub(crate) steps: Vec<StepPlan>,
    /// The input lanes, before they are divided into shards.
    pub(crate) lanes: Vec<Lane>,
    /// Warnings on the inputs, which are written into the results too.
    pub(crate) warnings: Vec<ResultWarning>,
    /// The command that planned the call, and its inputs.
    pub(crate) provenance: Provenance,
    /// Input and parameters of the call, which all steps use.
    pub(crate) call: DistributedCallPlan,
}

/// One step of a distributed call, with the resources of its tasks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StepPlan {
    /// Name of the step in `genuma step`, such as `scatter`.
    pub(crate) name: String,
    /// Number of tasks of the step, 1 or more.
    pub(crate) tasks: u32,
    /// Names of the steps that must be finished before this step can start.
    pub(crate) after: Vec<String>,
    /// Threads of one task.
    pub(crate) threads: usize,
    /// Memory of one task (MiB).
    pub(crate) memory_mb: u64,
    /// Time limit of one task (minutes): the forecast with a wide margin.
    pub(crate) minutes: u64,
    /// Disk space in the work folder of one task (MiB).
    pub(crate) scratch_mb: u64,
}

impl StepPlan {
    /// Returns the memory to request from a scheduler for one task (MiB): the memory budget of genuma, and a margin for
    /// memory that the kernel uses for the process.
    pub(crate) fn task_memory_request_mib(&self) -> u64 {
        self.memory_mb + self.memory_mb / 10 + 128
    }
}

impl DistributedPlan {
    /// Returns the plan as an indented JSON object, with the checksum that [`Self::load`] verifies.
    ///
    /// # Errors
    /// A path is not UTF-8.
    pub(crate) fn to_checksummed_json(&self) -> anyhow::Result<Vec<u8>> {
        #[derive(Serialize)]
        struct ChecksummedPlan<'a> {
            #[serde(flatten)]
            plan: JsonOutput<&'a DistributedPlan>,
            checksum: String,
        }
        let plan = JsonOutput::with_schema_number(schema_numbers::DISTRIBUTED_PLAN_SCHEMA_NUMBER, self);
        let checksum = compute_checksum(&serde_json::to_value(&plan)?);
        Ok(serde_json::to_vec_pretty(&ChecksummedPlan { plan, checksum })?)
    }

    /// Loads the plan from the run store; `None` if the run store has no plan.
    ///
    /// # Errors
    /// The object cannot be read, is no plan, was changed, was made by another version of genuma, or has unknown keys or
    /// values that no plan has.
    pub(crate) fn load(run_store: &RunStore) -> anyhow::Result<Option<DistributedPlan>> {
        let Some(entry) = run_store.open_object_if_exists(PLAN_OBJECT_NAME)? else { return Ok(None) };
        let text = entry.read_range(0..entry.len_bytes())?;
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
        let mut value: Value =
            serde_json::from_slice(&text).with_context(|| format!("{entry}: is damaged; plan the call again"))?;
        let checksum = value.as_object_mut().and_then(|object| object.remove(CHECKSUM_KEY));
        if checksum != Some(Value::String(compute_checksum(&value))) {
            bail!(
                "{entry}: was changed after it was planned (its checksum is wrong): plan the call again; resources of a \
                 task are set with options of genuma step"
            );
        }
        let plan: DistributedPlan = serde_json::from_value(value.clone())
            .with_context(|| format!("{entry}: is damaged; plan the call again"))?;
        // A key that no struct has would be lost, whatever its depth.
        let written = JsonOutput::with_schema_number(schema_numbers::DISTRIBUTED_PLAN_SCHEMA_NUMBER, &plan);
        if serde_json::to_value(&written)? != value {
            bail!("{entry}: has other keys than genuma {own} writes; plan the call again");
        }
        if let Some(fault) = plan.find_fault() {
            bail!("{entry}: {fault}; plan the call again");
        }
        Ok(Some(plan))
    }

    /// Describes what no plan of [`planning`] can have: numbers out of range, or numbers and steps that contradict each
    /// other; `None` for a valid plan.
    fn find_fault(&self) -> Option<String> {
        let call = &self.call;
        if !call.grid.is_valid_grid() {
            let BinGrid { num_partitions, bins_per_partition } = call.grid;
            return Some(format!("{num_partitions} partitions of {bins_per_partition} bins cannot be counted"));
        }
        if call.shards.is_empty() || self.shards as usize != call.shards.len() || self.parts != call.grid.num_partitions
        {
            return Some("its numbers of shards or partitions contradict each other".to_owned());
        }
        let mut lanes = call.shards.iter().flatten().chain(&self.lanes);
        if call.samples.names().len() != 2 || lanes.any(|lane| lane.sample > TUMOUR_SAMPLE) {
            return Some("its samples are not a normal and a tumour".to_owned());
        }
        if !ALLOWED_CALL_KMER_LENGTHS.contains(&i64::from(call.params.k)) {
            return Some(format!("k-mers of {} bp cannot be counted", call.params.k));
        }
        let is_valid = |(step, kind): (&StepPlan, StepKind)| {
            step.name == kind.command_line_name()
                && step.tasks == call.num_tasks_of_step(kind)
                && step.after.iter().map(String::as_str).eq(kind.preceding_step().map(StepKind::command_line_name))
                && step.threads >= 1
                && step.memory_mb >= 1
                && step.minutes >= 1
        };
        let kinds = StepKind::ALL_STEP_KINDS;
        let all_valid = self.steps.len() == kinds.len() && self.steps.iter().zip(kinds).all(is_valid);
        (!all_valid).then(|| "its steps are not those of a distributed call".to_owned())
    }

    /// Returns the plan of a step.
    ///
    /// # Errors
    /// The plan does not contain the step.
    pub(crate) fn find_step_plan(&self, kind: StepKind) -> anyhow::Result<&StepPlan> {
        let steps = self.steps.iter().find(|steps| steps.name == kind.command_line_name());
        steps.with_context(|| {
            format!("{}/{PLAN_OBJECT_NAME}: has no step {}; plan again", self.run, kind.command_line_name())
        })
    }

    /// Checks that an input file is the file that was planned. `role` is the role of the file in the fingerprint, such
    /// as the name of its sample.
    ///
    /// # Errors
    /// The file has changed or is not the planned one, or its metadata cannot be read.
    pub(crate) fn check_input_unchanged(&self, role: &str, path: &Path) -> anyhow::Result<()> {
        let now = Fingerprint::format_fingerprint_line_of_file(role, path)?;
        let then =
            |line: &&str| line.starts_with(&format!("{role} ")) && line.contains(&format!("{} of ", path.display()));
        let mut lines = self.call.fingerprint.lines();
        if lines.clone().any(|line| line == now) {
            return Ok(());
        }
        match lines.find(then) {
            Some(then) => bail!(
                "{}: changed since the run was planned ({}); plan the call again in another location",
                path.display(),
                Fingerprint::describe_file_change(then, &now)
            ),
            None => bail!(
                "{}: is not among the input files of the plan; plan the call again in another location",
                path.display()
            ),
        }
    }
}
