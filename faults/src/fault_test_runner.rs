//! Runs test cases with or without faults in a folder of its own, and judges the runs.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use crate::fault::{FaultEffect, FaultRepetition, InjectedFault, SystemCallKind};
use crate::oracle::{ObservedRun, ReferenceRun, RunOutcome, RunVerdict, new_verdict};
use crate::process::{ExitKind, ProcessResult, start_in_own_process_group};
use crate::shim::{FaultShim, ShimActions, SystemCallCounts};
use crate::snapshot::{FolderSnapshot, copy_file_or_folder, read_folder_snapshot};
use crate::sync_trace::find_unsynced_publication;
use crate::test_cases::TestCase;
use crate::test_inputs::{create_test_inputs, split_and_fill_command_line};

/// The verdict on a run, and the data that a report of it needs.
#[derive(Debug)]
pub struct JudgedRun {
    /// Whether the run, and runs that repeated or resumed it, behaved correctly, with evidence.
    pub verdict: RunVerdict,
    /// Number of calls that failed or were changed by the shim; 1 for a damaged file or two parallel runs.
    pub(crate) num_faults: u64,
    /// Text that the run (both parallel runs) wrote to standard error.
    pub stderr: String,
}

/// Runs test cases for one thread of a campaign, in a folder with the inputs and outputs of the runs.
#[derive(Debug)]
pub struct FaultTestRunner {
    program: PathBuf,
    shim: FaultShim,
    root: PathBuf,
    given: PathBuf,
    undisturbed: HashMap<&'static str, ReferenceRun>,
    /// Runs of a case with a replaced input, by the names of the case and of the input; `None` if the run fails.
    with_replacement: HashMap<(&'static str, &'static str), Option<ReferenceRun>>,
}

impl FaultTestRunner {
    /// Creates the folder `root` with the inputs of `cases` and the shim. An existing folder at `root` is removed.
    ///
    /// # Errors
    /// The folder cannot be created, or a command that creates an input fails.
    pub fn create(program: &Path, root: PathBuf, cases: &[&TestCase]) -> anyhow::Result<FaultTestRunner> {
        remove_folder_if_exists(&root)?;
        let given = root.join("given");
        let inputs = cases.iter().flat_map(|case| case.inputs).copied().collect();
        create_test_inputs(inputs, program, &given)?;
        let shim = FaultShim::write_shim_into_folder(&root)?;
        Ok(FaultTestRunner {
            program: program.to_path_buf(),
            shim,
            root,
            given,
            undisturbed: HashMap::new(),
            with_replacement: HashMap::new(),
        })
    }

    fn output_folder(&self) -> PathBuf {
        self.root.join("made")
    }

    /// Empties the output folder `{made}`, creates `tmp` in it and copies the initial files of the case into it.
    /// Returns its content.
    fn prepare_output_folder(&self, case: &TestCase) -> anyhow::Result<FolderSnapshot> {
        let made = self.output_folder();
        if made.exists() {
            fs::remove_dir_all(&made)?;
        }
        fs::create_dir_all(made.join("tmp"))?;
        for (from, to) in case.initial_files {
            copy_file_or_folder(&self.given.join(from), &made.join(to))
                .with_context(|| format!("{from} for {}", case.name))?;
        }
        Ok(read_folder_snapshot(&made)?)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(split_and_fill_command_line(line, &self.given, &self.output_folder()))
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

    fn run_preloaded(&self, line: &str, actions: ShimActions<'_>) -> anyhow::Result<(ProcessResult, SystemCallCounts)> {
        let mut command = self.command(line);
        let under = format!("{}/", self.root.display());
        self.shim.preload_into_command(&mut command, &self.program, &under, &self.log_path(), actions)?;
        let ended = start_in_own_process_group(command, &self.root, "one")?.wait_for_exit()?;
        Ok((ended, FaultShim::read_system_call_counts(&self.log_path())?))
    }

    /// Runs a case without faults and returns the run, with which all later runs are compared. Only the first call runs
    /// the command.
    ///
    /// # Errors
    /// The run fails, or its output cannot be read.
    pub(crate) fn run_without_fault_once(&mut self, case: &TestCase) -> anyhow::Result<&ReferenceRun> {
        if !self.undisturbed.contains_key(case.name) {
            self.prepare_output_folder(case)?;
            let ended = start_in_own_process_group(self.command(&case.line), &self.root, "one")?.wait_for_exit()?;
            ensure!(ended.how == ExitKind::Exit(0), "{} fails without a fault: {}", case.name, ended.stderr);
            let made = ReferenceRun { stdout: ended.stdout, files: read_folder_snapshot(&self.output_folder())? };
            self.undisturbed.insert(case.name, made);
        }
        self.reference_run(case)
    }

    fn reference_run(&self, case: &TestCase) -> anyhow::Result<&ReferenceRun> {
        self.undisturbed.get(case.name).context("a case is first run undisturbed")
    }

    /// Runs a case with the shim but without a fault, and returns how many calls of each kind the case makes.
    ///
    /// # Errors
    /// As [`FaultTestRunner::run_without_fault_once`]; or the output differs from that of the run without the shim, or
    /// a result got its name before it was on the disk.
    pub(crate) fn run_and_count_system_calls(&mut self, case: &TestCase) -> anyhow::Result<SystemCallCounts> {
        self.run_without_fault_once(case)?;
        let before = self.prepare_output_folder(case)?;
        let trace = self.root.join("trace");
        fs::write(&trace, "")?;
        let actions = ShimActions { trace: Some(&trace), ..ShimActions::default() };
        let (ended, seen) = self.run_preloaded(&case.line, actions)?;
        let verdict = self.judge_run(case, &ended, &before, None, Some(&seen))?;
        ensure!(
            verdict.outcome == RunOutcome::SameResults,
            "{} under the shim: {verdict}; {}",
            case.name,
            ended.stderr
        );
        let results =
            self.reference_run(case)?.files.iter().filter(|(name, content)| before.get(*name) != Some(*content));
        let results = results.map(|(name, _)| self.output_folder().join(name)).collect();
        if let Some(fault) = find_unsynced_publication(&fs::read_to_string(&trace)?, &results) {
            bail!("{}: {fault}", case.name);
        }
        Ok(seen)
    }

    fn judge_run(
        &self,
        case: &TestCase,
        ended: &ProcessResult,
        before: &FolderSnapshot,
        fault: Option<InjectedFault>,
        seen: Option<&SystemCallCounts>,
    ) -> anyhow::Result<RunVerdict> {
        let want = self.reference_run(case)?;
        let after = read_folder_snapshot(&self.output_folder())?;
        Ok(ObservedRun { case, ended, before, after: &after, reference: want, root: &self.root, damaged_file: None }
            .judge_run(fault, seen))
    }

    /// Runs a case with a fault and judges the run. If the run was killed, or failed and can be resumed, the command is
    /// run again without a fault, and that run is judged too.
    ///
    /// # Errors
    /// The case fails without a fault, a process cannot be started, or a file cannot be read or written.
    pub(crate) fn run_with_fault(&mut self, case: &TestCase, fault: InjectedFault) -> anyhow::Result<JudgedRun> {
        self.run_without_fault_once(case)?;
        let before = self.prepare_output_folder(case)?;
        let actions = ShimActions { fault: Some(fault), ..ShimActions::default() };
        let (ended, seen) = self.run_preloaded(&case.line, actions)?;
        let mut verdict = self.judge_run(case, &ended, &before, Some(fault), Some(&seen))?;
        if matches!(verdict.outcome, RunOutcome::Killed | RunOutcome::Interrupted)
            || (verdict.outcome == RunOutcome::FailedCleanly && case.resume.is_some())
        {
            verdict = self.rerun_and_judge(case, fault, &before)?.unwrap_or(verdict);
        }
        Ok(JudgedRun { verdict, num_faults: seen.num_faults, stderr: ended.stderr })
    }

    /// Runs the command again after an unfinished run: after a kill or a signal the same command, and then the command
    /// with the option that resumes, if the case has one. Each run starts from the files that the unfinished run left.
    /// Returns a verdict if one of these runs does not give the right results; otherwise `None`.
    fn rerun_and_judge(
        &self,
        case: &TestCase,
        fault: InjectedFault,
        before: &FolderSnapshot,
    ) -> anyhow::Result<Option<RunVerdict>> {
        let (made, kept) = (self.output_folder(), self.root.join("kept"));
        let is_ended_early = fault.what == FaultEffect::Kill || fault.what.signal_handled_by_program().is_some();
        let again = is_ended_early.then_some("");
        for more in again.into_iter().chain(case.resume) {
            if kept.exists() {
                fs::remove_dir_all(&kept)?;
            }
            copy_file_or_folder(&made, &kept)?;
            let ended = start_in_own_process_group(self.command(&format!("{} {more}", case.line)), &self.root, "one")?;
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
            if verdict_then.outcome != RunOutcome::SameResults {
                return Ok(Some(new_verdict(RunOutcome::CannotRecover, format!("then '{more}': {verdict_then}"))));
            }
            fs::remove_dir_all(&made)?;
            fs::rename(&kept, &made)?;
        }
        Ok(None)
    }

    /// Runs a case twice at the same time and judges both runs. The second run starts `apart` after the first. Each run
    /// must make the right results or fail cleanly. The verdict is that of a run with a violation, if there is one.
    ///
    /// # Errors
    /// As [`FaultTestRunner::run_with_fault`].
    pub(crate) fn run_twice_in_parallel(&mut self, case: &TestCase, apart: Duration) -> anyhow::Result<JudgedRun> {
        self.run_without_fault_once(case)?;
        let before = self.prepare_output_folder(case)?;
        let first = start_in_own_process_group(self.command(&case.line), &self.root, "one")?;
        std::thread::sleep(apart);
        let second = start_in_own_process_group(self.command(&case.line), &self.root, "two")?;
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

    /// Runs `action` with the paths of an input and of a copy of another file, which may be renamed to it. The original
    /// file, with its inode and times, is back afterwards.
    fn with_replaceable_input<T>(
        &self,
        [input, replacement]: [&str; 2],
        action: impl FnOnce([&Path; 2]) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let input = self.given.join(input);
        let (original, copy) = (self.root.join("original"), self.root.join("replacement"));
        fs::hard_link(&input, &original)?;
        fs::copy(self.given.join(replacement), &copy)?;
        let result = action([&input, &copy]);
        // A rename between two names of one file does nothing, so the name is freed first.
        fs::remove_file(&input)?;
        fs::rename(&original, &input)?;
        result
    }

    /// Runs a case without the shim whose input was replaced before. Only the first call runs the command.
    fn run_with_replacement_once(&mut self, case: &TestCase, files: [&'static str; 2]) -> anyhow::Result<()> {
        if self.with_replacement.contains_key(&(case.name, files[0])) {
            return Ok(());
        }
        self.prepare_output_folder(case)?;
        let ended = self.with_replaceable_input(files, |[input, replacement]| {
            fs::rename(replacement, input)?;
            Ok(start_in_own_process_group(self.command(&case.line), &self.root, "one")?.wait_for_exit()?)
        })?;
        let files_after = read_folder_snapshot(&self.output_folder())?;
        let run = (ended.how == ExitKind::Exit(0)).then_some(ReferenceRun { stdout: ended.stdout, files: files_after });
        self.with_replacement.insert((case.name, files[0]), run);
        Ok(())
    }

    /// Runs a case, and renames another file over an input at the call number `at` that opens a file. The results must
    /// be those of the original or those of the replacement, or the run must fail cleanly.
    ///
    /// # Errors
    /// As [`FaultTestRunner::run_with_fault`].
    pub(crate) fn run_with_replaced_input(
        &mut self,
        case: &TestCase,
        files: [&'static str; 2],
        at: u64,
    ) -> anyhow::Result<JudgedRun> {
        self.run_without_fault_once(case)?;
        self.run_with_replacement_once(case, files)?;
        let before = self.prepare_output_folder(case)?;
        let what = FaultEffect::ReplaceInput;
        let fault = InjectedFault { kind: SystemCallKind::Open, what, at, every: FaultRepetition::Once };
        let (ended, seen) = self.with_replaceable_input(files, |paths| {
            let actions = ShimActions { fault: Some(fault), replacement: Some(paths), ..ShimActions::default() };
            self.run_preloaded(&case.line, actions)
        })?;
        let mut verdict = self.judge_run(case, &ended, &before, Some(fault), Some(&seen))?;
        if let (RunOutcome::DifferentResults, Some(Some(reference))) =
            (verdict.outcome, self.with_replacement.get(&(case.name, files[0])))
        {
            let after = read_folder_snapshot(&self.output_folder())?;
            let (ended, before, root) = (&ended, &before, &*self.root);
            let run = ObservedRun { case, ended, before, after: &after, reference, root, damaged_file: None };
            verdict = run.judge_run(Some(fault), Some(&seen));
        }
        Ok(JudgedRun { verdict, num_faults: seen.num_faults, stderr: ended.stderr })
    }

    /// Reads an input file; `file` is its path in the input folder.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn read_input_file(&self, file: &str) -> io::Result<Vec<u8>> {
        fs::read(self.given.join(file))
    }

    /// Runs a case after replacing the input file `file` by the damaged content `bytes`, and judges the run. If the
    /// file has a checksum (`sealed`), the damage must be detected or have no effect; otherwise results may differ. The
    /// damaged file keeps its modification time, and is restored after the run.
    ///
    /// # Errors
    /// As [`FaultTestRunner::run_with_fault`].
    pub(crate) fn run_with_damaged_input(
        &mut self,
        case: &TestCase,
        file: &str,
        bytes: &[u8],
        sealed: bool,
    ) -> anyhow::Result<JudgedRun> {
        self.run_without_fault_once(case)?;
        let path = self.given.join(file);
        let (whole, modified) = (fs::read(&path)?, fs::metadata(&path)?.modified()?);
        let write = |bytes: &[u8]| {
            fs::write(&path, bytes)?;
            // Keep the modification time, so that only the content shows the damage.
            fs::File::options().write(true).open(&path)?.set_modified(modified)
        };
        write(bytes)?;
        let before = self.prepare_output_folder(case)?;
        let ended = start_in_own_process_group(self.command(&case.line), &self.root, "one")?.wait_for_exit()?;
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
        if !sealed && verdict.outcome == RunOutcome::DifferentResults {
            verdict.outcome = RunOutcome::SameResults;
        }
        write(&whole)?;
        Ok(JudgedRun { verdict, num_faults: 1, stderr: ended.stderr })
    }
}

/// Removes a folder with its content, if it exists.
///
/// # Errors
/// An entry cannot be removed.
pub fn remove_folder_if_exists(folder: &Path) -> io::Result<()> {
    if folder.exists() { fs::remove_dir_all(folder) } else { Ok(()) }
}
