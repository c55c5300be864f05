//! A call in parts on a real Slurm of three nodes on this machine: as it submits itself, under Nextflow and under Snakemake.
//! Nodes die with kill -9 meanwhile, and the results are those of one process.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{assert_same, called, data, run, scratch, skipped};

/// A file of this repository.
fn repository(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace").join(name)
}

fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

/// Standard output of a command that succeeds.
#[track_caller]
fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("UTF-8").trim().to_owned()
}

/// Asks until there is an answer; a cluster that hangs fails a test instead of holding it for ever.
#[track_caller]
fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < Duration::from_secs(240), "waited in vain: {what}");
        sleep(Duration::from_millis(200));
    }
}

/// A Slurm of this test's own, which ends with it.
struct Cluster {
    /// Elsewhere than what it works on: the names of its sockets must be short.
    folder: tempfile::TempDir,
}

impl Cluster {
    /// Starts one; without Slurm's programs says that the test is skipped.
    fn start() -> Option<Cluster> {
        let folder = tempfile::Builder::new().prefix("slurm-").tempdir_in("/tmp").expect("a folder");
        let output = Cluster::script("start", folder.path(), &[]);
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.code() == Some(3) {
            skipped(&why);
            return None;
        }
        assert!(output.status.success(), "{why}");
        Some(Cluster { folder })
    }

    fn script(verb: &str, folder: &Path, more: &[&str]) -> Output {
        let mut script = Command::new(repository("scripts/slurm.sh"));
        script.arg(verb).arg(folder).args(more).stdin(Stdio::null()).output().expect("slurm.sh")
    }

    /// A command that finds this Slurm.
    fn command(&self, program: impl AsRef<Path>) -> Command {
        let path = std::env::var("PATH").expect("PATH");
        let mut command = Command::new(program.as_ref());
        command
            .env("SLURM_CONF", self.folder.path().join("slurm.conf"))
            .env("PATH", format!("{}:{path}", text(&self.folder.path().join("bin"))))
            .stdin(Stdio::null());
        command
    }

    fn ask(&self, program: &str, args: &[&str]) -> String {
        said(&self.command(program).args(args).output().expect("a client of Slurm"))
    }

    /// Kills slurmd, slurmstepd and jobs of a node at once.
    fn crash(&self, node: &str) {
        let _ = said(&Cluster::script("crash", self.folder.path(), &[node]));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = Cluster::script("stop", self.folder.path(), &[]);
    }
}

/// A process that does not outlive its test, and the file it writes to.
struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    fn start(mut command: Command, log: PathBuf) -> Running {
        let file = fs::File::create(&log).expect("a log");
        let other = file.try_clone().expect("a log");
        Running { child: command.stdout(file).stderr(other).spawn().expect("a process"), log }
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("a log")
    }

    /// Waits until it succeeded.
    #[track_caller]
    fn well(&mut self) {
        let status = wait_for(&text(&self.log), || self.child.try_wait().expect("a child"));
        assert!(status.success(), "{}", self.log());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// genuma, but of the tasks of one step the first to come stops in the middle of its work and stays so; the next try and all
/// others go on. Which node it waits on is written to `held/node`.
fn held(folder: &Path, step: &str) -> PathBuf {
    let (path, hold) = (folder.join("genuma-held"), text(&folder.join("held")));
    let genuma = env!("CARGO_BIN_EXE_genuma");
    let script = format!(
        "#!/bin/sh\n\
         if [ \"$1\" = step ] && [ \"$3\" = {step} ] && mkdir '{hold}' 2>/dev/null; then\n\
           '{genuma}' \"$@\" &\n\
           sleep 0.05\n\
           kill -STOP $!\n\
           echo \"$SLURMD_NODENAME\" >'{hold}/new' && mv '{hold}/new' '{hold}/node'\n\
           sleep 600\n\
           exit 1\n\
         fi\n\
         exec '{genuma}' \"$@\"\n"
    );
    fs::write(&path, script).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
    path
}

/// The node on which the held task waits.
fn node(folder: &Path) -> String {
    wait_for("a task that is held", || fs::read_to_string(folder.join("held/node")).ok()).trim().to_owned()
}

/// A samplesheet of the data that all tests of the binary share.
fn samplesheet(folder: &Path) -> PathBuf {
    let line = |sample: &str, status: &str, files: &[PathBuf]| {
        format!("P,{sample},{status},L1,{},{}\n", text(&files[0]), text(&files[1]))
    };
    let lines = ["patient,sample,status,lane,fastq_1,fastq_2\n".to_owned()];
    let samples = [line("T", "1", &data().tumor), line("N", "0", &data().normal)];
    let path = folder.join("samplesheet.csv");
    fs::write(&path, [lines.as_slice(), &samples].concat().concat()).expect("a samplesheet");
    path
}

/// What one of our scripts fetches is there, or the test is skipped.
fn fetched(script: &str) -> bool {
    let output =
        Command::new(repository(script)).arg("--fetch").stdin(Stdio::null()).output().expect("a script");
    if !output.status.success() {
        skipped(String::from_utf8_lossy(&output.stderr).trim());
    }
    output.status.success()
}

#[test]
fn submitted_by_its_own_script_and_a_node_dies() {
    // Blanks and quotes, which a script must not trip over.
    let folder = scratch("sbatch");
    let (run_folder, out) = (folder.join("a patient's run"), folder.join("out"));
    let Some(cluster) = Cluster::start() else { return };
    let plan = ["--plan", &text(&run_folder), "--shards", "3", "--parts", "2", "--threads", "2", "--sbatch"];
    run(data().call_with(&out, &plan)).well();

    let mut submit = cluster.command("sh");
    submit.arg(run_folder.join("submit.sh")).env("GENUMA", held(&folder, "count"));
    let output = submit.output().expect("sh");
    let submitted = said(&output) + "\n" + &String::from_utf8_lossy(&output.stderr);
    let number = |line: &str| {
        line.split(|c: char| !c.is_ascii_digit()).find(|word| !word.is_empty()).map(str::to_owned)
    };
    let count = submitted.lines().find(|line| line.starts_with("count")).and_then(number);
    let count = count.unwrap_or_else(|| panic!("a line for each step with its number: {submitted}"));

    cluster.crash(&node(&folder));
    // Slurm finds the node dead and queues its job again, but not before two minutes have passed. We do not wait for that.
    let again = wait_for("the job is queued again", || {
        let waiting = cluster.ask("squeue", &["-h", "-t", "PD", "-j", &count, "-o", "%i %r"]);
        let job = waiting.lines().find_map(|l| l.strip_suffix(" BeginTime"));
        job.map(str::to_owned)
    });
    let job = cluster.ask("scontrol", &["show", "job", &again]);
    assert!(job.contains("Restarts=1"), "{job}");
    cluster.ask("scontrol", &["update", &format!("JobId={again}"), "StartTime=now"]);
    wait_for("the last job", || cluster.ask("squeue", &["-h"]).is_empty().then_some(()));
    assert_same(&out, called());
}

#[test]
fn under_nextflow_and_a_node_dies() {
    if !fetched("scripts/nextflow.sh") {
        return;
    }
    let folder = scratch("nextflow");
    let Some(cluster) = Cluster::start() else { return };
    let quick = "profiles { slurm { executor { pollInterval = '200ms'; queueStatInterval = '1s'; exitReadTimeout = '3s' } } }\n";
    fs::write(folder.join("quick.config"), quick).expect("a configuration");
    let genuma = held(&folder, "count");
    let nextflow = |log: &str, more: &[&str]| {
        let mut command = cluster.command(repository("scripts/nextflow.sh"));
        command.arg("run").arg(repository("workflow/main.nf"));
        command.args(["-ansi-log", "false", "-profile", "slurm,test", "-c", "quick.config"]);
        command.arg("--input").arg(samplesheet(&folder)).arg("--genuma").arg(&genuma);
        command.arg("--reference").arg(data().reference.as_ref().expect("a reference"));
        command.args(["--genuma_args=--threads 2"]).args(more).current_dir(&folder);
        Running::start(command, folder.join(log))
    };
    let out = folder.join("results/P/T_vs_N");

    let mut first = nextflow("first.log", &[]);
    cluster.crash(&node(&folder));
    first.well();
    assert!(first.log().contains("Re-submitted process > COUNT"), "{}", first.log());
    assert_same(&out, called());

    fs::remove_dir_all(folder.join("results")).expect("results");
    let mut second = nextflow("second.log", &["-resume"]);
    second.well();
    assert!(!second.log().contains("ubmitted process"), "all comes from the cache: {}", second.log());
    assert_same(&out, called());
}

#[test]
fn under_snakemake() {
    if !fetched("scripts/snakemake.sh") {
        return;
    }
    let folder = scratch("snakemake");
    let Some(cluster) = Cluster::start() else { return };
    let mut command = cluster.command(repository("scripts/snakemake.sh"));
    command.arg("-s").arg(repository("workflow/Snakefile"));
    command.args([
        "--executor",
        "slurm",
        "--jobs",
        "6",
        "--slurm-no-account",
        "--slurm-status-command",
        "squeue",
    ]);
    // A job that is not done when it is first asked about is asked about ten seconds later only.
    command.args(["--slurm-init-seconds-before-status-checks", "9", "--seconds-between-status-checks", "9"]);
    command.arg("--config").arg(format!("input={}", text(&samplesheet(&folder))));
    command.arg(format!("reference={}", text(data().reference.as_ref().expect("a reference"))));
    command.args([&format!("genuma={}", env!("CARGO_BIN_EXE_genuma")), "shards=2", "parts=2"]);
    command.arg("genuma_args=--threads 2");
    command.current_dir(&folder);
    Running::start(command, folder.join("log")).well();
    assert_same(&folder.join("results/P/T_vs_N"), called());
}
