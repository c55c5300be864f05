//! The plan of a run as array jobs of Slurm, each kind of step after those that it needs.

use std::fmt::Write;
use std::path::Path;

use super::{RunPlan, Steps};

/// The object that holds it.
pub const SCRIPT: &str = "submit.sh";

/// A script for `sh` that submits all steps, done by the program at `genuma`.
pub fn script(plan: &RunPlan, genuma: &Path) -> String {
    let (run, genuma) = (quoted(&plan.run), quoted(&genuma.display().to_string()));
    let mut text = format!(
        "#!/bin/sh\n\
         # A call of genuma in {} shards and {} partitions. Submit it with: sh {}\n\
         # Options for all jobs: SBATCH_ARGS='--partition short --account me', or Slurm's own SBATCH_... variables.\n\
         # Steps that are done are not done again: after a failure submit it once more.\n\
         set -eu\n\
         RUN={run}\n\
         GENUMA=${{GENUMA:-{genuma}}}\n\
         mkdir -p \"$RUN/logs\"\n\n\
         # submit NAME TASKS AFTER CPUS MIB MINUTES: prints the job's number.\n\
         submit() {{\n\
         \x20 name=$1 tasks=$2 after=$3 cpus=$4 mib=$5 minutes=$6\n\
         \x20 # shellcheck disable=SC2086\n\
         \x20 job=$(sbatch ${{SBATCH_ARGS:-}} --parsable --requeue --job-name \"genuma-$name\" --array \"1-$tasks\" \\\n\
         \x20   ${{after:+--dependency \"afterok:$after\" --kill-on-invalid-dep yes}} --cpus-per-task \"$cpus\" --mem \"${{mib}}M\" --time \"$minutes\" \\\n\
         \x20   --output \"$RUN/logs/$name-%a.%A.log\" --open-mode append <<EOF\n\
         #!/bin/sh\n\
         exec \"$GENUMA\" step \"$RUN\" $name \\$SLURM_ARRAY_TASK_ID --threads $cpus\n\
         EOF\n\
         \x20 )\n\
         \x20 job=${{job%%;*}}\n\
         \x20 echo \"$name: job $job, $tasks task(s)\" >&2\n\
         \x20 echo \"$job\"\n\
         }}\n\n",
        plan.shards,
        plan.parts,
        quoted(&format!("{}/{SCRIPT}", plan.run)),
    );
    for Steps { name, tasks, after, threads, memory_mb, minutes, .. } in &plan.steps {
        let after = after.first().map_or_else(|| "''".to_owned(), |name| format!("\"${name}\""));
        // Beside what genuma may take, the kernel's own for the job.
        let mib = memory_mb + memory_mb / 10 + 128;
        // A string takes all that is written to it.
        let _ = writeln!(text, "{name}=$(submit {name} {tasks} {after} {threads} {mib} {minutes})");
    }
    let last = plan.steps.last().map_or("", |steps| &steps.name);
    text + &format!(
        "echo \"results of job ${last}: {}\"\n",
        quoted(&plan.out.display().to_string()).replace('"', "\\\"")
    )
}

/// A word that a shell takes as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
