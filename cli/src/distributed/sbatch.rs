//! Writes a shell script that submits the steps of a distributed call to Slurm, one array job for each step.

use std::fmt::Write;
use std::path::Path;

use super::{DistributedPlan, StepPlan};

/// Name of the object that holds the script.
pub(crate) const SBATCH_SCRIPT_OBJECT_NAME: &str = "submit.sh";

/// Beginning of the script. `{genuma}`, `{run}` and `{logs}` are replaced by quoted strings: path of the program, run
/// store, folder of the logs.
const SCRIPT_HEAD: &str = r#"#!/bin/sh
# Submits this distributed call to Slurm, each step as an array job. Written by genuma call --plan --sbatch. Prints the job numbers.
# After a failure run it again: tasks that are already done end at once.
#
# usage: [SBATCH_ARGS='--partition=long --account=me'] [GENUMA_SCRATCH=/scratch] [GENUMA=program] sh submit.sh
#
# SBATCH_ARGS: additional options of each sbatch command, split at spaces; they override those of the plan. Slurm's own
# SBATCH_PARTITION, SBATCH_ACCOUNT and SBATCH_QOS work too. GENUMA_SCRATCH: folder on a local disk of each node, for data that does not
# fit in memory.
set -eu
GENUMA=${GENUMA:-{genuma}}
RUN={run}
LOGS={logs}
export GENUMA

# A task: Slurm runs a copy of this file.
if [ "${1-}" = task ]; then
  exec "$GENUMA" step "$RUN" "$2" "$SLURM_ARRAY_TASK_ID" --threads "$SLURM_CPUS_PER_TASK" \
    ${GENUMA_SCRATCH:+--work "$GENUMA_SCRATCH"}
fi

# Created before sbatch, because a job without its log folder fails without a message.
mkdir -p "$RUN/logs"
jobs=
job=
after=

# submit STEP TASKS THREADS MB MINUTES: submits a step that waits for the job in $after.
submit() {
  # --kill-on-invalid-dep removes jobs that can never start because an earlier job failed. If one sbatch fails, all jobs are cancelled.
  # shellcheck disable=SC2086 # options, split at spaces
  job=$(sbatch --parsable --requeue --open-mode=append --kill-on-invalid-dep=yes --job-name="genuma-$1" \
    --output="$LOGS/$1-%A_%a.log" --array="1-$2" ${after:+"--dependency=afterok:$after"} \
    --cpus-per-task="$3" --mem="$4M" --time="$5" ${SBATCH_ARGS-} "$0" task "$1") || {
    if [ -n "$jobs" ]; then scancel $jobs; fi
    echo "submit.sh: step $1 could not be submitted; all jobs of this call are cancelled" >&2
    exit 1
  }
  job=${job%%;*}
  jobs="$jobs $job"
  echo "$1 $job"
}
"#;

/// Returns the script that submits all steps. Its jobs run the program at the path `genuma`.
pub(crate) fn render_sbatch_script(plan: &DistributedPlan, genuma: &Path) -> String {
    let head = SCRIPT_HEAD
        .replace("{genuma}", &shell_quoted(&genuma.display().to_string()))
        // Slurm replaces patterns that begin with a percent sign.
        .replace("{logs}", &shell_quoted(&format!("{}/logs", plan.run.replace('%', "%%"))))
        .replace("{run}", &shell_quoted(&plan.run));
    let job = |text: String, steps: &StepPlan| {
        let StepPlan { name, tasks, threads, minutes, .. } = steps;
        let after = if steps.after.is_empty() { "" } else { "after=$job\n" };
        format!("{text}\n{after}submit {name} {tasks} {threads} {} {minutes}", steps.task_memory_request_mib())
    };
    let mut text = plan.steps.iter().fold(head, job);
    // Writing to a string cannot fail.
    let _ = writeln!(text);
    text
}

fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use genuma_kmers::BinGrid;
    use genuma_somatic::distributed_call::{DistributedCallPlan, StepKind};
    use genuma_somatic::pipeline::CallParams;

    use super::*;

    #[test]
    fn the_example_is_such_a_script() {
        let call = DistributedCallPlan {
            panel: None,
            known: None,
            gff: None,
            shards: vec![Vec::new(); 3],
            samples: genuma_somatic::sample_names::SampleNames::default(),
            grid: BinGrid { num_partitions: 2, bins_per_partition: 8 },
            reference: None,
            screen: None,
            targets: None,
            genome_bases: None,
            params: CallParams { k: 31, min_base_quality: 0, min_tumour_count: 2, min_quality: 8.0, assay: None },
            fingerprint: String::new(),
        };
        let steps = StepKind::ALL_STEP_KINDS.into_iter().map(|kind| StepPlan {
            name: kind.command_line_name().to_owned(),
            tasks: call.num_tasks_of_step(kind),
            after: kind.preceding_step().iter().map(|kind| kind.command_line_name().to_owned()).collect(),
            threads: 2,
            memory_mb: if kind.has_task_per_shard() { 2048 } else { 4096 },
            minutes: if kind.has_task_per_shard() { 10 } else { 20 },
            scratch_mb: 0,
        });
        let plan = DistributedPlan {
            genuma: "0.1.0".into(),
            run: "/data/a patient's 100% run".into(),
            out: PathBuf::from("/data/calls"),
            shards: 3,
            parts: 2,
            steps: steps.collect(),
            lanes: Vec::new(),
            warnings: Vec::new(),
            provenance: Default::default(),
            call,
        };
        let text = render_sbatch_script(&plan, Path::new("/opt/genuma/bin/genuma"));
        for word in ["{genuma}", "{run}", "{logs}"] {
            assert!(!text.contains(word), "{word}");
        }
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../workflow/submit.example.sh");
        if std::env::var_os("GENUMA_BLESS").is_some() {
            std::fs::write(example, &text).expect("the example");
        }
        assert_eq!(text, std::fs::read_to_string(example).expect("the example"));
    }
}
