//! Runs test cases in a folder of their own, with or without an injected fault.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::fault::{FaultEffect, InjectedFault};
use crate::oracle::{ObservedRun, ReferenceRun, RunOutcome, RunVerdict, new_verdict};
use crate::process::{ExitKind, ProcessResult, start_process};
use crate::shim::{CallLog, FaultShim};
use crate::snapshot::{FolderSnapshot, copy_tree, read_folder_snapshot};
use crate::test_cases::{TestCase, create_inputs, split_command_line};

/// A run and the verdict on it.
#[derive(Debug)]
pub struct JudgedRun {
    /// Verdict of the oracle.
    pub verdict: RunVerdict,
    /// Number of system calls that failed.
    pub(crate) num_faults: u64,
    /// Standard error of the run.
    pub stderr: String,
}

/// The folder of one campaign thread, with the inputs and outputs of its runs.
#[derive(Debug)]
pub struct FaultBench {
    program: PathBuf,
    shim: FaultShim,
    root: PathBuf,
    given: PathBuf,
    undisturbed: HashMap<&'static str, ReferenceRun>,
}

impl FaultBench {
    /// Creates a bench in a new folder, with the inputs of all cases.
    ///
    /// # Errors
    /// The folder cannot be created, or a command that creates an input fails.
    pub fn create(program: &Path, root: PathBuf, cases: &[&TestCase]) -> anyhow::Result<FaultBench> {
        remove_folder(&root)?;
        let given = root.join("given");
        create_inputs(cases, program, &given)?;
        let shim = FaultShim::unpack_into(&root)?;
        Ok(FaultBench { program: program.to_path_buf(), shim, root, given, undisturbed: HashMap::new() })
    }

    fn output_folder(&self) -> PathBuf {
        self.root.join("made")
    }

    /// Prepares the output folder `{made}` for a run.
    fn prepare_output_folder(&self, case: &TestCase) -> anyhow::Result<FolderSnapshot> {
        let made = self.output_folder();
        if made.exists() {
            fs::remove_dir_all(&made)?;
        }
        fs::create_dir_all(made.join("tmp"))?;
        for (from, to) in case.initial_files {
            copy_tree(&self.given.join(from), &made.join(to)).with_context(|| format!("{from} for {}", case.name))?;
        }
        Ok(read_folder_snapshot(&made)?)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(split_command_line(line, &self.given, &self.output_folder()))
            .env("TMPDIR", self.output_folder().join("tmp"));
        // Device drivers run foreign code in the same process, and PoCL aborts when a thread cannot start: hide all
        // drivers.
        command.env("OCL_ICD_VENDORS", &self.root);
        command.env("RUST_BACKTRACE", "0").env_remove("GENUMA_MACHINE").current_dir(&self.root);
        command
    }

    fn log_path(&self) -> PathBuf {
        self.root.join("page")
    }

    fn run_preloaded(&self, line: &str, fault: Option<InjectedFault>) -> anyhow::Result<(ProcessResult, CallLog)> {
        let mut command = self.command(line);
        let under = format!("{}/", self.root.display());
        self.shim.preload_into_command(&mut command, &self.program, &under, &self.log_path(), fault)?;
        let ended = start_process(command, &self.root, "one")?.wait_for_exit()?;
        Ok((ended, FaultShim::read_call_log(&self.log_path())?))
    }

    /// Returns the reference run of a case without faults. It is run once.
    ///
    /// # Errors
    /// The run fails, or its output cannot be read.
    pub fn run_without_fault(&mut self, case: &TestCase) -> anyhow::Result<&ReferenceRun> {
        if !self.undisturbed.contains_key(case.name) {
            self.prepare_output_folder(case)?;
            let ended = start_process(self.command(&case.line), &self.root, "one")?.wait_for_exit()?;
            ensure!(ended.how == ExitKind::Exit(0), "{} fails without a fault: {}", case.name, ended.stderr);
            let made = ReferenceRun { stdout: ended.stdout, files: read_folder_snapshot(&self.output_folder())? };
            self.undisturbed.insert(case.name, made);
        }
        self.reference_run(case)
    }

    fn reference_run(&self, case: &TestCase) -> anyhow::Result<&ReferenceRun> {
        self.undisturbed.get(case.name).context("a case is first run undisturbed")
    }

    /// Counts the system calls of each kind that a case makes. Also checks that a run with the shim but without a
    /// fault gives the reference output.
    ///
    /// # Errors
    /// As [`FaultBench::run_without_fault`].
    pub fn count_system_calls(&mut self, case: &TestCase) -> anyhow::Result<CallLog> {
        self.run_without_fault(case)?;
        let before = self.prepare_output_folder(case)?;
        let (ended, seen) = self.run_preloaded(&case.line, None)?;
        let verdict = self.judge_run(case, &ended, &before, None, Some(&seen))?;
        ensure!(verdict.outcome == RunOutcome::Same, "{} under the shim: {verdict}; {}", case.name, ended.stderr);
        Ok(seen)
    }

    fn judge_run(
        &self,
        case: &TestCase,
        ended: &ProcessResult,
        before: &FolderSnapshot,
        fault: Option<InjectedFault>,
        seen: Option<&CallLog>,
    ) -> anyhow::Result<RunVerdict> {
        let want = self.reference_run(case)?;
        let after = read_folder_snapshot(&self.output_folder())?;
        Ok(ObservedRun { case, ended, before, after: &after, reference: want, root: &self.root, damaged_file: None }
            .judge_run(fault, seen))
    }

    /// Runs a case with a fault. A killed run, or one that leaves resumable work, is then repeated.
    ///
    /// # Errors
    /// The campaign cannot continue: a process cannot be started or a file cannot be written.
    pub fn run_with_fault(&mut self, case: &TestCase, fault: InjectedFault) -> anyhow::Result<JudgedRun> {
        self.run_without_fault(case)?;
        let before = self.prepare_output_folder(case)?;
        let (ended, seen) = self.run_preloaded(&case.line, Some(fault))?;
        let mut verdict = self.judge_run(case, &ended, &before, Some(fault), Some(&seen))?;
        if verdict.outcome == RunOutcome::Killed || (verdict.outcome == RunOutcome::Refused && case.resume.is_some()) {
            verdict = self.rerun_and_judge(case, fault, &before)?.unwrap_or(verdict);
        }
        Ok(JudgedRun { verdict, num_faults: seen.num_faults, stderr: ended.stderr })
    }

    /// Repeats the command after an unfinished run, unchanged and with `--resume`. Returns a verdict if a repeated
    /// run is wrong.
    fn rerun_and_judge(
        &self,
        case: &TestCase,
        fault: InjectedFault,
        before: &FolderSnapshot,
    ) -> anyhow::Result<Option<RunVerdict>> {
        let (made, kept) = (self.output_folder(), self.root.join("kept"));
        let again = (fault.what == FaultEffect::Kill).then_some("");
        for more in again.into_iter().chain(case.resume) {
            if kept.exists() {
                fs::remove_dir_all(&kept)?;
            }
            copy_tree(&made, &kept)?;
            let ended = start_process(self.command(&format!("{} {more}", case.line)), &self.root, "one")?;
            let ended = ended.wait_for_exit()?;
            let mut after = read_folder_snapshot(&made)?;
            // Files that a killed process left behind may stay.
            let want = self.reference_run(case)?;
            after.retain(|name, _| want.files.contains_key(name));
            let run = ObservedRun {
                case,
                ended: &ended,
                before,
                after: &after,
                reference: want,
                root: &self.root,
                damaged_file: None,
            };
            let verdict_then = if ended.how == ExitKind::Exit(0) {
                run.compare_output_with_reference(false)
            } else {
                run.judge_run(None, None)
            };
            if verdict_then.outcome != RunOutcome::Same {
                return Ok(Some(new_verdict(RunOutcome::CannotRecover, format!("then '{more}': {verdict_then}"))));
            }
            fs::remove_dir_all(&made)?;
            fs::rename(&kept, &made)?;
        }
        Ok(None)
    }

    /// Runs a case twice at the same time, the second with a delay. At least one run must succeed, and the results
    /// must be right.
    ///
    /// # Errors
    /// As [`FaultBench::run_with_fault`].
    pub fn run_twice_in_parallel(&mut self, case: &TestCase, apart: Duration) -> anyhow::Result<JudgedRun> {
        self.run_without_fault(case)?;
        let before = self.prepare_output_folder(case)?;
        let first = start_process(self.command(&case.line), &self.root, "one")?;
        std::thread::sleep(apart);
        let second = start_process(self.command(&case.line), &self.root, "two")?;
        let ended = [first.wait_for_exit()?, second.wait_for_exit()?];
        let after = read_folder_snapshot(&self.output_folder())?;
        let want = self.reference_run(case)?;
        // Files that one run leaves unchanged may have been created by the other.
        let any = ended.iter().any(|ended| ended.how == ExitKind::Exit(0));
        let before = if any { &after } else { &before };
        let judge = |ended| {
            ObservedRun { case, ended, before, after: &after, reference: want, root: &self.root, damaged_file: None }
                .judge_run(None, None)
        };
        let verdicts = [judge(&ended[0]), judge(&ended[1])];
        let worst = verdicts.into_iter().max_by_key(|verdict| (verdict.outcome.is_violation(), !any));
        let verdict = worst.context("there are two")?;
        Ok(JudgedRun { verdict, num_faults: 1, stderr: ended.map(|ended| ended.stderr).concat() })
    }

    /// Returns the content of an input file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn input_bytes(&self, file: &str) -> io::Result<Vec<u8>> {
        fs::read(self.given.join(file))
    }

    /// Runs a case with one damaged input file. Damage of a file with a checksum must be detected or have no effect.
    ///
    /// # Errors
    /// As [`FaultBench::run_with_fault`].
    pub fn run_with_damage(
        &mut self,
        case: &TestCase,
        file: &str,
        bytes: &[u8],
        sealed: bool,
    ) -> anyhow::Result<JudgedRun> {
        self.run_without_fault(case)?;
        let path = self.given.join(file);
        let (whole, modified) = (fs::read(&path)?, fs::metadata(&path)?.modified()?);
        let write = |bytes: &[u8]| {
            fs::write(&path, bytes)?;
            // Keep the modification time, so that only the content shows the damage.
            fs::File::options().write(true).open(&path)?.set_modified(modified)
        };
        write(bytes)?;
        let before = self.prepare_output_folder(case)?;
        let ended = start_process(self.command(&case.line), &self.root, "one")?.wait_for_exit()?;
        let (after, want) = (read_folder_snapshot(&self.output_folder())?, self.reference_run(case)?);
        let damaged = Path::new(file).file_name().and_then(|name| name.to_str());
        let run = ObservedRun {
            case,
            ended: &ended,
            before: &before,
            after: &after,
            reference: want,
            root: &self.root,
            damaged_file: damaged,
        };
        let mut verdict = run.judge_run(None, None);
        if !sealed && verdict.outcome == RunOutcome::Differs {
            verdict.outcome = RunOutcome::Same;
        }
        write(&whole)?;
        Ok(JudgedRun { verdict, num_faults: 1, stderr: ended.stderr })
    }
}

/// Removes a folder with its content, if it exists.
///
/// # Errors
/// An entry cannot be removed.
pub fn remove_folder(folder: &Path) -> io::Result<()> {
    if folder.exists() { fs::remove_dir_all(folder) } else { Ok(()) }
}
