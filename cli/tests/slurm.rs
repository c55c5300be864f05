//! A distributed call on a real Slurm cluster of three nodes on this machine, submitted by itself, Nextflow and
//! Snakemake. Nodes are killed meanwhile, and the results are those of one process.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{SharedFixture, assert_same, called, data, fetched, repository, run, scratch, skipped};

/// Results of a call of the shared data with the names of [`samplesheet`] and the table that a workflow writes.
fn called_by_name() -> &'static Path {
    static CALLED: SharedFixture<PathBuf> = SharedFixture::new();
    CALLED.get_or_init(|| {
        let out = scratch("called-by-name");
        let maf = text(&out.join("somatic.maf"));
        let names = ["--tumor-name", "T", "--normal-name", "N", "--maf", &maf];
        run(data().call_with(&out, &names)).assert_success();
        out
    })
}

fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

/// Standard output of a command that must succeed.
#[track_caller]
fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("UTF-8").trim().to_owned()
}

/// Polls until there is an answer; a cluster that hangs fails the test instead of blocking it for ever.
#[track_caller]
fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < Duration::from_secs(600), "waited in vain: {what}");
        sleep(Duration::from_millis(200));
    }
}

/// A Slurm cluster of this test, stopped at its end.
struct Cluster {
    /// Apart from the test's other files, because paths of its sockets must be short.
    folder: tempfile::TempDir,
}

impl Cluster {
    /// Starts a cluster; without Slurm's programs reports that the test is skipped.
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

    /// A command that uses this cluster.
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

    /// Kills slurmd, slurmstepd and the jobs of a node at once.
    fn crash(&self, node: &str) {
        let _ = said(&Cluster::script("crash", self.folder.path(), &[node]));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = Cluster::script("stop", self.folder.path(), &[]);
    }
}

/// A process that ends with its test, and the file of its output.
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

    /// Waits until it has succeeded.
    #[track_caller]
    fn assert_success(&mut self) {
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

/// A genuma that stops in the middle of the first task of one step; the next try and all other tasks proceed. The
/// node of the stopped task is written to `held/node`.
fn genuma_that_stops(folder: &Path, step: &str) -> PathBuf {
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

/// The node of the stopped task.
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

#[test]
fn submitted_by_its_own_script_and_a_node_dies() {
    // A path with blanks and quotes, which scripts must handle.
    let folder = scratch("sbatch");
    let (run_folder, out) = (folder.join("a patient's run"), folder.join("out"));
    let Some(cluster) = Cluster::start() else { return };
    let plan = ["--plan", &text(&run_folder), "--shards", "3", "--partitions", "2", "--threads", "2", "--sbatch"];
    run(data().call_with(&out, &plan)).assert_success();

    let mut submit = cluster.command("sh");
    submit.arg(run_folder.join("submit.sh")).env("GENUMA", genuma_that_stops(&folder, "count"));
    let output = submit.output().expect("sh");
    let submitted = said(&output) + "\n" + &String::from_utf8_lossy(&output.stderr);
    let number =
        |line: &str| line.split(|c: char| !c.is_ascii_digit()).find(|word| !word.is_empty()).map(str::to_owned);
    let count = submitted.lines().find(|line| line.starts_with("count")).and_then(number);
    let count = count.unwrap_or_else(|| panic!("a line for each step with its number: {submitted}"));

    cluster.crash(&node(&folder));
    // Slurm notices the dead node and requeues its job, but only after two minutes. The test does not wait for that.
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
    let genuma = genuma_that_stops(&folder, "count");
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
    first.assert_success();
    assert!(first.log().contains("Re-submitted process > COUNT"), "{}", first.log());
    assert_same(&out, called_by_name());

    fs::remove_dir_all(folder.join("results")).expect("results");
    let mut second = nextflow("second.log", &["-resume"]);
    second.assert_success();
    assert!(!second.log().contains("ubmitted process"), "all comes from the cache: {}", second.log());
    assert_same(&out, called_by_name());
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
    command.args(["--executor", "slurm", "--jobs", "6", "--slurm-no-account", "--slurm-status-command", "squeue"]);
    // Snakemake's plugin checks a job that is not done at its first check again only after ten seconds.
    command.args(["--slurm-init-seconds-before-status-checks", "9", "--seconds-between-status-checks", "9"]);
    command.arg("--config").arg(format!("input={}", text(&samplesheet(&folder))));
    command.arg(format!("reference={}", text(data().reference.as_ref().expect("a reference"))));
    command.args([&format!("genuma={}", env!("CARGO_BIN_EXE_genuma")), "shards=2", "parts=2"]);
    command.arg("genuma_args=--threads 2");
    command.current_dir(&folder);
    Running::start(command, folder.join("log")).assert_success();
    assert_same(&folder.join("results/P/T_vs_N"), called_by_name());
}
