//! Runs that are killed, interrupted, resumed or started twice.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use crate::common::{
    Data, RESULTS, assert_private, assert_same, called, data, genuma, genuma_with_open_umask, names, run, scratch, text,
};
use rustix::process::{Pid, Signal, kill_process};

/// A run that has just begun a unit.
struct Begun {
    child: Child,
    stderr: BufReader<ChildStderr>,
    said: String,
}

/// Starts a call and waits until it logs that the unit begins.
fn begin(out: &Path, unit: &str, options: &[&str]) -> Begun {
    begin_call(&data().call_with(out, options), &format!("{unit} begins"))
}

/// Starts a call and waits until it logs this text.
fn begin_call(call: &[String], says: &str) -> Begun {
    let mut command = genuma();
    command.args(call);
    begin_command(command, says)
}

fn begin_command(mut command: Command, says: &str) -> Begun {
    let mut child = command.stderr(Stdio::piped()).spawn().expect("genuma starts");
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut said = String::new();
    while !said.contains(says) {
        assert!(stderr.read_line(&mut said).expect("lines") > 0, "never '{says}': {said}");
    }
    Begun { child, stderr, said }
}

impl Begun {
    /// Sends a signal and waits for the end; returns the exit code and all messages.
    fn end(mut self, signal: Signal) -> (Option<i32>, String) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("a process to signal");
        self.stderr.read_to_string(&mut self.said).expect("lines");
        (self.child.wait().expect("an end").code(), self.said)
    }
}

/// Starts a call into a new folder and sends a signal during a unit; returns the folder and all messages.
fn ended_in(unit: &str, signal: Signal, code: Option<i32>) -> (PathBuf, String) {
    // On a busy machine a short unit may end before the signal arrives.
    for _ in 0..5 {
        let out = scratch(&format!("{unit}-{}", signal.as_raw())).join("out");
        let (ended, said) = begin(&out, unit, &["--threads", "1"]).end(signal);
        if ended == code {
            return (out, said);
        }
        assert_eq!(ended, Some(0), "{said}");
    }
    panic!("{unit} is over before a signal comes");
}

fn assert_no_results(out: &Path) {
    let left = names(out);
    assert!(left.iter().all(|name| !RESULTS.contains(&name.as_str())), "{left:?}");
}

#[test]
fn a_run_killed_in_any_unit_is_resumed_to_the_same_bytes() {
    for (unit, finished) in [
        ("count", &[][..]),
        ("assemble", &["count.unit"]),
        ("place", &["assemble.unit", "count.unit"]),
        ("recruit", &["assemble.unit", "count.unit", "place.unit"]),
        ("judge", &["assemble.unit", "count.unit", "place.unit", "recruit.unit"]),
        ("write", &["assemble.unit", "count.unit", "place.unit", "recruit.unit"]),
    ] {
        let (out, _) = ended_in(unit, Signal::KILL, None);
        assert_no_results(&out);
        let mut units = names(&out.join(".work"));
        let copied = units.contains(&"reads.bins".to_owned());
        // After recruiting, the packed reads are no longer needed.
        assert_eq!(copied, !["judge", "write"].contains(&unit), "{unit}: {units:?}");
        units.retain(|n| n.ends_with(".unit") && !n.starts_with('.'));
        assert_eq!(units, finished, "{unit}");

        let said = run(data().call_with(&out, &["--resume"])).assert_success().stderr;
        assert_eq!(said.contains("count begins"), finished.is_empty(), "{said}");
        assert!(!said.contains("reads.bins"), "{said}");
        assert_same(&out, called());
    }
}

#[test]
fn a_copy_of_the_reads_that_is_gone_is_told_and_one_that_is_damaged_is_refused() {
    let (out, _) = ended_in("assemble", Signal::TERM, Some(143));
    let copy = out.join(".work").join("reads.bins");
    let mut bytes = fs::read(&copy).expect("a copy");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&copy, &bytes).expect("a file");
    let refused = run(data().call_with(&out, &["--resume"]));
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("reads.bins is damaged"), "{}", refused.stderr);
    assert_no_results(&out);

    fs::remove_file(&copy).expect("a file");
    let said = run(data().call_with(&out, &["--resume"])).assert_success().stderr;
    assert!(
        said.contains("reads.bins: the packed reads are missing or incomplete; the input files are read again"),
        "{said}"
    );
    assert!(!said.contains("count begins"), "{said}");
    assert_same(&out, called());
}

#[test]
fn a_run_killed_in_a_partition_goes_on_with_it() {
    let size = ["--genome-length", "1000000", "--snvs", "40", "--indels", "20", "--svs", "0"];
    let data = Data::simulate("partitioned", &size);
    let whole = scratch("whole");
    run(data.call_with(&whole, &["--memory", "1G"])).assert_success();

    let out = scratch("in-partition").join("out");
    let little = ["--threads", "2", "--memory", "130M", "--scratch", "8M"];
    let begun = begin_call(&data.call_with(&out, &little), "count, partition 2 of ");
    let (code, said) = begun.end(Signal::KILL);
    assert_eq!(code, None, "{said}");
    assert_no_results(&out);
    let units = || {
        let mut units = names(&out.join(".work"));
        units.retain(|name| name.ends_with(".unit") && !name.starts_with('.'));
        units
    };
    let left = units();
    let [first] = &left[..] else { panic!("one partition, not {left:?}") };
    assert!(first.starts_with("count-1-of-"), "{first}");

    // A damaged file is refused before anything is counted.
    let path = out.join(".work").join(first);
    let good = fs::read(&path).expect("a unit");
    let mut bad = good.clone();
    bad[good.len() / 2] ^= 1;
    fs::write(&path, bad).expect("a file");
    let refused = run(data.call_with(&out, &["--resume"]));
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains(first) && refused.stderr.contains("damaged (checksum)"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("begins"), "{}", refused.stderr);
    let other = first.replace("count-1-", "count-2-");
    fs::write(out.join(".work").join(&other), &good).expect("a file");
    fs::remove_file(&path).expect("a file");
    let refused = run(data.call_with(&out, &["--resume"]));
    assert!(refused.stderr.contains("damaged (another partition)"), "{}", refused.stderr);
    fs::remove_file(out.join(".work").join(&other)).expect("a file");
    fs::write(&path, good).expect("a file");

    // Interrupted again, with enough memory for one partition; the existing partitions stay.
    let begun = begin_call(&data.call_with(&out, &["--resume", "--memory", "1G"]), "assemble begins");
    let (code, said) = begun.end(Signal::KILL);
    assert_eq!(code, None, "{said}");
    assert!(said.contains("count, partition 2 of ") && !said.contains("count, partition 1 of "), "{said}");
    assert!(said.contains("(1 are already counted)"), "{said}");
    assert_eq!(units(), ["count.unit"], "partitions go when the whole is there");
    let said = run(data.call_with(&out, &["--resume"])).assert_success().stderr;
    assert!(!said.contains("count"), "{said}");
    assert_same(&out, &whole);
}

#[test]
fn an_interrupted_run_says_what_it_keeps() {
    let (out, said) = ended_in("recruit", Signal::INT, Some(130));
    assert_no_results(&out);
    // Other threads run until the process ends, so that they may log a line after this one.
    let word = said.lines().find(|line| line.contains("warning: interrupted")).unwrap_or_default();
    assert!(word.contains("--resume"), "{said}");
    let mut left = names(&out.join(".work"));
    // The file that recruiting has begun may or may not exist; it is written again.
    left.retain(|name| name != "recruit.bins");
    assert_eq!(left, ["assemble.unit", "count.unit", "genuma.lock", "place.unit", "reads.bins"]);
    run(data().call_with(&out, &["--resume"])).assert_success();
    assert_same(&out, called());

    // No unit is finished yet: nothing is kept.
    let (out, said) = ended_in("count", Signal::TERM, Some(143));
    assert!(said.contains("interrupted") && !said.contains("--resume"), "{said}");
    assert!(!out.exists());
}

#[test]
fn a_resumed_run_must_be_the_same_run() {
    let (out, _) = ended_in("assemble", Signal::INT, Some(130));
    let refused = run(data().call_with(&out, &["--resume", "-k", "27"]));
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("now k 27, then k 31"), "{}", refused.stderr);
    assert_no_results(&out);
    // The work folder is still valid for the right command.
    assert!(!run(data().call_with(&out, &["--resume"])).assert_success().stderr.contains("count begins"));
    assert_same(&out, called());
}

#[test]
fn two_runs_do_not_share_a_work_folder() {
    let out = scratch("shared");
    let first = begin(&out, "count", &[]);
    kill_process(Pid::from_child(&first.child), Signal::STOP).expect("a process to stop");
    let second = run(data().call(&out));
    kill_process(Pid::from_child(&first.child), Signal::CONT).expect("a process to go on");
    assert_eq!(second.code, Some(1));
    assert!(second.stderr.contains("another run uses this work folder"), "{}", second.stderr);
    first.end(Signal::TERM);

    let taken = scratch("taken");
    fs::write(taken.join("thesis.tex"), "x").expect("a file");
    let refused = run(data().call_with(&out, &["--work", taken.to_str().expect("UTF-8")]));
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("holds other files"), "{}", refused.stderr);
    assert_eq!(names(&taken), ["thesis.tex"]);
}

/// A work folder that was there before may be open to others.
#[test]
fn files_of_reads_are_private_in_an_open_work_folder() {
    let folder = scratch("open-work-folder");
    let work = folder.join("work");
    fs::create_dir(&work).expect("a folder");
    fs::set_permissions(&work, fs::Permissions::from_mode(0o755)).expect("permissions");
    let mut command = genuma_with_open_umask();
    command.args(data().call_with(&folder.join("out"), &["--work", text(&work)]));
    begin_command(command, "assemble begins").end(Signal::KILL);
    for file in ["reads.bins", "count.unit"] {
        assert_private(&work, |name| name == file);
    }
    // The lock is empty, and the reference is no patient's.
    assert_private(&work, |name| name != "genuma.lock" && !name.starts_with("reference."));
}
