//! Runs that are killed, interrupted, resumed, or started twice.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Stdio};

use common::{RESULTS, assert_same, called, data, genuma, names, run, scratch};
use rustix::process::{Pid, Signal, kill_process};

/// A run that has just begun a unit.
struct Begun {
    child: Child,
    stderr: BufReader<ChildStderr>,
    said: String,
}

/// Starts a call and waits until it says that the unit begins.
fn begin(out: &Path, unit: &str, options: &[&str]) -> Begun {
    let mut child =
        genuma().args(data().call_with(out, options)).stderr(Stdio::piped()).spawn().expect("genuma starts");
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut said = String::new();
    while !said.contains(&format!("{unit} begins")) {
        assert!(stderr.read_line(&mut said).expect("lines") > 0, "{unit} never began: {said}");
    }
    Begun { child, stderr, said }
}

impl Begun {
    /// Sends a signal and waits for the end: exit code and all that was said.
    fn end(mut self, signal: Signal) -> (Option<i32>, String) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("a process to signal");
        self.stderr.read_to_string(&mut self.said).expect("lines");
        (self.child.wait().expect("an end").code(), self.said)
    }
}

/// Starts a call into a new folder and ends it by a signal in the midst of a unit: the folder and all that was said.
fn ended_in(unit: &str, signal: Signal, code: Option<i32>) -> (PathBuf, String) {
    // On a busy machine a short unit may be over before the signal comes.
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
        ("recruit", &["assemble.unit", "count.unit"]),
        ("judge", &["assemble.unit", "count.unit", "recruit.unit"]),
        ("write", &["assemble.unit", "count.unit", "recruit.unit"]),
    ] {
        let (out, _) = ended_in(unit, Signal::KILL, None);
        assert_no_results(&out);
        let mut units = names(&out.join(".work"));
        units.retain(|n| n.ends_with(".unit") && !n.starts_with('.'));
        assert_eq!(units, finished, "{unit}");

        let said = run(data().call_with(&out, &["--resume"])).well().stderr;
        assert_eq!(said.contains("count begins"), finished.is_empty(), "{said}");
        assert_same(&out, called());
    }
}

#[test]
fn an_interrupted_run_says_what_it_keeps() {
    let (out, said) = ended_in("recruit", Signal::INT, Some(130));
    assert_no_results(&out);
    assert!(
        said.lines().last().is_some_and(|l| l.contains("interrupted") && l.contains("--resume")),
        "{said}"
    );
    let left = names(&out.join(".work"));
    assert_eq!(left, ["assemble.unit", "count.unit", "genuma.lock"]);
    run(data().call_with(&out, &["--resume"])).well();
    assert_same(&out, called());

    // Nothing is finished yet: nothing stays.
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
    // The work folder stands: the right command goes on.
    assert!(!run(data().call_with(&out, &["--resume"])).well().stderr.contains("count begins"));
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
