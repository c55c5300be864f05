#!/bin/sh
# Submits this call to Slurm, a job a step; made by genuma call --plan --sbatch. Prints the jobs' numbers.
# May be run again after a failure: tasks that are done end at once.
#
# usage: [GENUMA_SBATCH='--partition=long --account=me'] [GENUMA_SCRATCH=/scratch] sh submit.sh
#
# GENUMA_SBATCH: more options for each sbatch, split at spaces; they win over those of the plan. Slurm's own SBATCH_PARTITION,
# SBATCH_ACCOUNT, SBATCH_QOS work too. GENUMA_SCRATCH: a disk of the nodes, $TMPDIR or /tmp unless given.
set -eu
genuma='/opt/genuma/bin/genuma'
run='/data/my run'
logs='/data/my run/logs'

# What a job does: Slurm starts a copy of this file.
if [ "${1-}" = task ]; then
  exec "$genuma" step "$run" "$2" ${3:+"$SLURM_ARRAY_TASK_ID"} \
    --threads "$SLURM_CPUS_PER_TASK" --work "${GENUMA_SCRATCH:-${TMPDIR:-/tmp}}/genuma-$SLURM_JOB_ID"
fi

# Before sbatch: a log's folder that is missing fails a job without a word.
if [ -n "$logs" ]; then mkdir -p "$run/logs"; fi
jobs=
job=
after=

# submit STEP TASKS THREADS MB MINUTES, with no TASKS for a step that is not dealt out; waits for the job in $after.
submit() {
  log=
  if [ -n "$logs" ]; then log=$logs/$1-%j.log; fi
  if [ -n "$logs" ] && [ -n "$2" ]; then log=$logs/$1-%A_%a.log; fi
  # Jobs that can never start, because one before them failed, go (--kill-on-invalid-dep); without all jobs none stays.
  # shellcheck disable=SC2086 # options, split at spaces
  job=$(sbatch --parsable --requeue --open-mode=append --kill-on-invalid-dep=yes --job-name="genuma-$1" \
    ${log:+"--output=$log"} ${2:+"--array=1-$2"} ${after:+"--dependency=afterok:$after"} \
    --cpus-per-task="$3" --mem="$4M" --time="$5" ${GENUMA_SBATCH-} "$0" task "$1" ${2:+array}) || {
    if [ -n "$jobs" ]; then scancel $jobs; fi
    echo "submit.sh: step $1 could not be submitted: no job of this call stays" >&2
    exit 1
  }
  job=${job%%;*}
  jobs="$jobs $job"
  echo "$1 $job"
}

submit scatter 3 2 2048 10
after=$job
submit count 2 2 4096 20
after=$job
submit label 3 2 2048 10
after=$job
submit assemble '' 2 4096 20
after=$job
submit place '' 2 4096 20
after=$job
submit recruit 3 2 2048 10
after=$job
submit finish '' 2 4096 20
