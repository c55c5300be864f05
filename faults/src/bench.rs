//! A worker's place: a folder in which commands run one after the other, with a fault or without.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::case::{Case, make_given, words};
use crate::fault::{Fault, What};
use crate::oracle::{Outcome, Run, Undisturbed, Verdict, verdict};
use crate::process::{Ended, How, start};
use crate::shim::{Seen, Shim};
use crate::snapshot::{Snapshot, copy, snapshot};

/// A run and what was thought of it.
#[derive(Debug)]
pub struct Judged {
    /// What became of it.
    pub verdict: Verdict,
    /// How many calls failed in it.
    pub(crate) fired: u64,
    /// What it said on stderr.
    pub stderr: String,
}

/// A folder for one worker, with all that its runs are given and make.
#[derive(Debug)]
pub struct Bench {
    program: PathBuf,
    shim: Shim,
    root: PathBuf,
    given: PathBuf,
    undisturbed: HashMap<&'static str, Undisturbed>,
}

impl Bench {
    /// A bench in a new folder, with all that the cases are given.
    ///
    /// # Errors
    /// The folder cannot be made, or a command that makes what is given fails.
    pub fn new(program: &Path, root: PathBuf, cases: &[&Case]) -> anyhow::Result<Bench> {
        clear(&root)?;
        let given = root.join("given");
        make_given(cases, program, &given)?;
        let shim = Shim::unpack(&root)?;
        Ok(Bench { program: program.to_path_buf(), shim, root, given, undisturbed: HashMap::new() })
    }

    fn made(&self) -> PathBuf {
        self.root.join("made")
    }

    /// Lays out `{made}` as it is before a run.
    fn lay_out(&self, case: &Case) -> anyhow::Result<Snapshot> {
        let made = self.made();
        if made.exists() {
            fs::remove_dir_all(&made)?;
        }
        fs::create_dir_all(made.join("tmp"))?;
        for (from, to) in case.before {
            copy(&self.given.join(from), &made.join(to))
                .with_context(|| format!("{from} for {}", case.name))?;
        }
        Ok(snapshot(&made)?)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words(line, &self.given, &self.made())).env("TMPDIR", self.made().join("tmp"));
        // Drivers of devices are other people's code in the same process, and PoCL ends it when a thread cannot start: there are none.
        command.env("OCL_ICD_VENDORS", &self.root);
        command.env("RUST_BACKTRACE", "0").env_remove("GENUMA_MACHINE").current_dir(&self.root);
        command
    }

    fn page(&self) -> PathBuf {
        self.root.join("page")
    }

    fn run(&self, line: &str, fault: Option<Fault>) -> anyhow::Result<(Ended, Seen)> {
        let mut command = self.command(line);
        let under = format!("{}/", self.root.display());
        self.shim.preload(&mut command, &self.program, &under, &self.page(), fault)?;
        let ended = start(command, &self.root, "one")?.wait()?;
        Ok((ended, Shim::seen(&self.page())?))
    }

    /// What a case makes without faults; run once.
    ///
    /// # Errors
    /// It fails, or not all of it can be read.
    pub fn undisturbed(&mut self, case: &Case) -> anyhow::Result<&Undisturbed> {
        if !self.undisturbed.contains_key(case.name) {
            self.lay_out(case)?;
            let ended = start(self.command(&case.line), &self.root, "one")?.wait()?;
            ensure!(ended.how == How::Exit(0), "{} fails without a fault: {}", case.name, ended.stderr);
            let made = Undisturbed { stdout: ended.stdout, files: snapshot(&self.made())? };
            self.undisturbed.insert(case.name, made);
        }
        self.want(case)
    }

    fn want(&self, case: &Case) -> anyhow::Result<&Undisturbed> {
        self.undisturbed.get(case.name).context("a case is first run undisturbed")
    }

    /// How many calls of each kind a case makes; fails if a run under the shim alone is not the same.
    ///
    /// # Errors
    /// As [`Bench::undisturbed`].
    pub fn count(&mut self, case: &Case) -> anyhow::Result<Seen> {
        self.undisturbed(case)?;
        let before = self.lay_out(case)?;
        let (ended, seen) = self.run(&case.line, None)?;
        let verdict = self.judge(case, &ended, &before, None, Some(&seen))?;
        ensure!(
            verdict.outcome == Outcome::Same,
            "{} under the shim: {verdict}; {}",
            case.name,
            ended.stderr
        );
        Ok(seen)
    }

    fn judge(
        &self,
        case: &Case,
        ended: &Ended,
        before: &Snapshot,
        fault: Option<Fault>,
        seen: Option<&Seen>,
    ) -> anyhow::Result<Verdict> {
        let want = self.want(case)?;
        let after = snapshot(&self.made())?;
        Ok(Run { case, ended, before, after: &after, want, root: &self.root, damaged: None }
            .judge(fault, seen))
    }

    /// Runs a case under a fault; a run that was killed, and one that left work, is then taken up.
    ///
    /// # Errors
    /// The campaign itself cannot go on: no process can be started, no file be written.
    pub fn under(&mut self, case: &Case, fault: Fault) -> anyhow::Result<Judged> {
        self.undisturbed(case)?;
        let before = self.lay_out(case)?;
        let (ended, seen) = self.run(&case.line, Some(fault))?;
        let mut verdict = self.judge(case, &ended, &before, Some(fault), Some(&seen))?;
        if verdict.outcome == Outcome::Killed
            || (verdict.outcome == Outcome::Refused && case.resume.is_some())
        {
            verdict = self.taken_up(case, fault, &before)?.unwrap_or(verdict);
        }
        Ok(Judged { verdict, fired: seen.fired, stderr: ended.stderr })
    }

    /// What is wrong with what comes after a run that did not finish: the same command once more, and with `--resume`.
    fn taken_up(&self, case: &Case, fault: Fault, before: &Snapshot) -> anyhow::Result<Option<Verdict>> {
        let (made, kept) = (self.made(), self.root.join("kept"));
        let again = (fault.what == What::Kill).then_some("");
        for more in again.into_iter().chain(case.resume) {
            if kept.exists() {
                fs::remove_dir_all(&kept)?;
            }
            copy(&made, &kept)?;
            let ended = start(self.command(&format!("{} {more}", case.line)), &self.root, "one")?;
            let ended = ended.wait()?;
            let mut after = snapshot(&made)?;
            // What a killed process left may stay.
            let want = self.want(case)?;
            after.retain(|name, _| want.files.contains_key(name));
            let run =
                Run { case, ended: &ended, before, after: &after, want, root: &self.root, damaged: None };
            let verdict_then =
                if ended.how == How::Exit(0) { run.same(false) } else { run.judge(None, None) };
            if verdict_then.outcome != Outcome::Same {
                return Ok(Some(verdict(Outcome::Lost, format!("then '{more}': {verdict_then}"))));
            }
            fs::remove_dir_all(&made)?;
            fs::rename(&kept, &made)?;
        }
        Ok(None)
    }

    /// Runs a case twice at once, the second some time after the first: one at least must succeed, the results must be right.
    ///
    /// # Errors
    /// As [`Bench::under`].
    pub fn twice(&mut self, case: &Case, apart: Duration) -> anyhow::Result<Judged> {
        self.undisturbed(case)?;
        let before = self.lay_out(case)?;
        let first = start(self.command(&case.line), &self.root, "one")?;
        std::thread::sleep(apart);
        let second = start(self.command(&case.line), &self.root, "two")?;
        let ended = [first.wait()?, second.wait()?];
        let after = snapshot(&self.made())?;
        let want = self.want(case)?;
        // What one leaves untouched the other may have made.
        let any = ended.iter().any(|ended| ended.how == How::Exit(0));
        let before = if any { &after } else { &before };
        let judge = |ended| {
            Run { case, ended, before, after: &after, want, root: &self.root, damaged: None }
                .judge(None, None)
        };
        let verdicts = [judge(&ended[0]), judge(&ended[1])];
        let worst = verdicts.into_iter().max_by_key(|verdict| (verdict.outcome.is_violation(), !any));
        let verdict = worst.context("there are two")?;
        Ok(Judged { verdict, fired: 1, stderr: ended.map(|ended| ended.stderr).concat() })
    }

    /// What a file that cases are given holds.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn given(&self, file: &str) -> io::Result<Vec<u8>> {
        fs::read(self.given.join(file))
    }

    /// Runs a case with one of the files that it is given holding other bytes. Damage of a file with a sum is refused or does
    /// not show.
    ///
    /// # Errors
    /// As [`Bench::under`].
    pub fn damaged(&mut self, case: &Case, file: &str, bytes: &[u8], sealed: bool) -> anyhow::Result<Judged> {
        self.undisturbed(case)?;
        let path = self.given.join(file);
        let (whole, modified) = (fs::read(&path)?, fs::metadata(&path)?.modified()?);
        let write = |bytes: &[u8]| {
            fs::write(&path, bytes)?;
            // The time is that of the whole file: nothing but its bytes tells the damage.
            fs::File::options().write(true).open(&path)?.set_modified(modified)
        };
        write(bytes)?;
        let before = self.lay_out(case)?;
        let ended = start(self.command(&case.line), &self.root, "one")?.wait()?;
        let (after, want) = (snapshot(&self.made())?, self.want(case)?);
        let damaged = Path::new(file).file_name().and_then(|name| name.to_str());
        let run =
            Run { case, ended: &ended, before: &before, after: &after, want, root: &self.root, damaged };
        let mut verdict = run.judge(None, None);
        if !sealed && verdict.outcome == Outcome::Differs {
            verdict.outcome = Outcome::Same;
        }
        write(&whole)?;
        Ok(Judged { verdict, fired: 1, stderr: ended.stderr })
    }
}

/// Gives a folder back to the system.
///
/// # Errors
/// Something in it cannot be removed.
pub fn clear(folder: &Path) -> io::Result<()> {
    if folder.exists() { fs::remove_dir_all(folder) } else { Ok(()) }
}
