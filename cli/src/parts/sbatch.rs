//! The plan of a run as array jobs of Slurm, each kind of step after those that it needs.

use std::fmt::Write;
use std::path::Path;

use super::{RunPlan, Steps};

/// The object that holds it.
pub(crate) const SCRIPT: &str = "submit.sh";

/// What comes before the jobs; `{genuma}`, `{run}` and `{logs}` are words that a shell takes as they are.
const HEAD: &str = r#"#!/bin/sh
# Submits this call to Slurm, a job a kind of step; made by genuma call --plan --sbatch. Prints the jobs' numbers.
# May be run again after a failure: steps that are done end at once.
#
# usage: [SBATCH_ARGS='--partition=long --account=me'] [GENUMA_SCRATCH=/scratch] [GENUMA=program] sh submit.sh
#
# SBATCH_ARGS: more options for each sbatch, split at spaces; they win over those of the plan. Slurm's own SBATCH_PARTITION,
# SBATCH_ACCOUNT, SBATCH_QOS work too. GENUMA_SCRATCH: a disk of the nodes for what has no room in memory.
set -eu
GENUMA=${GENUMA:-{genuma}}
RUN={run}
LOGS={logs}
export GENUMA

# What a job does: Slurm starts a copy of this file.
if [ "${1-}" = task ]; then
  exec "$GENUMA" step "$RUN" "$2" "$SLURM_ARRAY_TASK_ID" --threads "$SLURM_CPUS_PER_TASK" \
    ${GENUMA_SCRATCH:+--work "$GENUMA_SCRATCH"}
fi

# Before sbatch: a log's folder that is missing fails a job without a word.
mkdir -p "$RUN/logs"
jobs=
job=
after=

# submit STEP TASKS THREADS MB MINUTES; it waits for the job in $after.
submit() {
  # Jobs that can never start, because one before them failed, go (--kill-on-invalid-dep); without all jobs none stays.
  # shellcheck disable=SC2086 # options, split at spaces
  job=$(sbatch --parsable --requeue --open-mode=append --kill-on-invalid-dep=yes --job-name="genuma-$1" \
    --output="$LOGS/$1-%A_%a.log" --array="1-$2" ${after:+"--dependency=afterok:$after"} \
    --cpus-per-task="$3" --mem="$4M" --time="$5" ${SBATCH_ARGS-} "$0" task "$1") || {
    if [ -n "$jobs" ]; then scancel $jobs; fi
    echo "submit.sh: step $1 could not be submitted: no job of this call stays" >&2
    exit 1
  }
  job=${job%%;*}
  jobs="$jobs $job"
  echo "$1 $job"
}
"#;

/// A script for `sh` that submits all steps, done by the program at `genuma`.
pub(crate) fn script(plan: &RunPlan, genuma: &Path) -> String {
    let words = HEAD
        .replace("{genuma}", &quoted(&genuma.display().to_string()))
        // Slurm takes a percent sign for the beginning of something that it knows.
        .replace("{logs}", &quoted(&format!("{}/logs", plan.run.replace('%', "%%"))))
        .replace("{run}", &quoted(&plan.run));
    let job = |text: String, steps: &Steps| {
        let Steps { name, tasks, threads, minutes, .. } = steps;
        let after = if steps.after.is_empty() { "" } else { "after=$job\n" };
        format!("{text}\n{after}submit {name} {tasks} {threads} {} {minutes}", steps.asked_mb())
    };
    let mut text = plan.steps.iter().fold(words, job);
    // A string takes all that is written to it.
    let _ = writeln!(text);
    text
}

/// A word that a shell takes as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use genuma_kmers::Grid;
    use genuma_somatic::parts::{Kind, Parts};
    use genuma_somatic::pipeline::Params;

    use super::*;

    #[test]
    fn the_example_is_such_a_script() {
        let call = Parts {
            panel: None,
            shards: vec![Vec::new(); 3],
            samples: genuma_somatic::samples::Samples::default(),
            grid: Grid { parts: 2, bins: 8 },
            reference: None,
            screen: None,
            genome_bases: None,
            params: Params { k: 31, min_base_quality: 0, least_tumour: 2, least_quality: 8.0 },
            fingerprint: String::new(),
        };
        let steps = Kind::ALL.into_iter().map(|kind| Steps {
            name: kind.name().to_owned(),
            tasks: call.tasks(kind),
            after: kind.after().iter().map(|kind| kind.name().to_owned()).collect(),
            threads: 2,
            memory_mb: if kind.is_of_shard() { 2048 } else { 4096 },
            minutes: if kind.is_of_shard() { 10 } else { 20 },
            scratch_mb: 0,
        });
        let plan = RunPlan {
            genuma: "0.1.0".into(),
            run: "/data/a patient's 100% run".into(),
            out: PathBuf::from("/data/calls"),
            shards: 3,
            parts: 2,
            steps: steps.collect(),
            lanes: Vec::new(),
            call,
        };
        let text = script(&plan, Path::new("/opt/genuma/bin/genuma"));
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
