#!/bin/sh
# Submits this call to Slurm, a job a kind of step; made by genuma call --plan --sbatch. Prints the jobs' numbers.
# May be run again after a failure: steps that are done end at once.
#
# usage: [SBATCH_ARGS='--partition=long --account=me'] [GENUMA_SCRATCH=/scratch] [GENUMA=program] sh submit.sh
#
# SBATCH_ARGS: more options for each sbatch, split at spaces; they win over those of the plan. Slurm's own SBATCH_PARTITION,
# SBATCH_ACCOUNT, SBATCH_QOS work too. GENUMA_SCRATCH: a disk of the nodes for what has no room in memory.
set -eu
GENUMA=${GENUMA:-'/opt/genuma/bin/genuma'}
RUN='/data/a patient'\''s 100% run'
LOGS='/data/a patient'\''s 100%% run/logs'
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

submit scatter 3 2 2380 10
after=$job
submit count 2 2 4633 20
after=$job
submit pick 1 2 4633 20
after=$job
submit label 3 2 2380 10
after=$job
submit assemble 1 2 4633 20
after=$job
submit place 1 2 4633 20
after=$job
submit recruit 3 2 2380 10
after=$job
submit finish 1 2 4633 20
