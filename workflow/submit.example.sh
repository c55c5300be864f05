#!/bin/sh
# Submits this distributed call to Slurm, each step as an array job. Written by genuma call --plan --sbatch. Prints the job numbers.
# After a failure run it again: tasks that are already done end at once.
#
# usage: [SBATCH_ARGS='--partition=long --account=me'] [GENUMA_SCRATCH=/scratch] [GENUMA=program] sh submit.sh
#
# SBATCH_ARGS: additional options of each sbatch command, split at spaces; they override those of the plan. Slurm's own
# SBATCH_PARTITION, SBATCH_ACCOUNT and SBATCH_QOS work too. GENUMA_SCRATCH: folder on a local disk of each node, for data that does not
# fit in memory.
set -eu
GENUMA=${GENUMA:-'/opt/genuma/bin/genuma'}
RUN='/data/a patient'\''s 100% run'
LOGS='/data/a patient'\''s 100%% run/logs'
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
