//! `genuma kmers count --resume`: a count killed at any time resumes with the same command and gives the same bytes;
//! damaged files are reported.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::common::{RunOutput, SharedFixture, data, genuma, names, run, scratch};
use rustix::process::{Pid, Signal, kill_process};

const WORK: &str = ".x.gkt.work";

/// Arguments of a count of the pair into `folder`.
fn count(folder: &Path, options: &[&str]) -> Vec<String> {
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let mut args = vec!["kmers".to_owned(), "count".to_owned(), "--tumor".to_owned()];
    args.extend(data().tumor.iter().map(|path| text(path)));
    args.push("--normal".to_owned());
    args.extend(data().normal.iter().map(|path| text(path)));
    args.extend(["-o".to_owned(), text(&folder.join("x.gkt"))]);
    args.extend(options.iter().map(|o| (*o).to_owned()));
    args
}

/// The table of an undisturbed count without finished stages.
fn expected() -> &'static [u8] {
    static TABLE: SharedFixture<Vec<u8>> = SharedFixture::new();
    TABLE.get_or_init(|| {
        let folder = scratch("undisturbed");
        run(count(&folder, &[])).assert_success();
        assert_eq!(names(&folder), ["x.gkt"]);
        fs::read(folder.join("x.gkt")).expect("a table")
    })
}

/// Asserts that the folder has only the table, and that it is that of an undisturbed count.
#[track_caller]
fn assert_done(folder: &Path) {
    assert_eq!(names(folder), ["x.gkt"]);
    assert!(fs::read(folder.join("x.gkt")).expect("a table") == expected(), "{}", folder.display());
}

/// Starts a resumable count in a new folder and sends a signal when a condition on the names in the folder and in its
/// work folder holds. Returns the folder, the names left in the work folder, and the last message.
fn ended_at(point: &str, signal: Signal, now: impl Fn(&[String], &[String]) -> bool) -> (PathBuf, Vec<String>, String) {
    // On a busy machine a stage may end before the signal arrives.
    for _ in 0..10 {
        let folder = scratch(point);
        let mut child = genuma()
            .args(count(&folder, &["--resume", "-t", "1", "--memory", "100M"]))
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let work = folder.join(WORK);
        let running = loop {
            if now(&names_now(&folder), &names_now(&work)) {
                break true;
            }
            if child.try_wait().expect("a state").is_some() {
                break false;
            }
            std::thread::sleep(Duration::from_micros(200));
        };
        if running {
            kill_process(Pid::from_child(&child), signal).expect("a process to signal");
        }
        let output = child.wait_with_output().expect("an end");
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        let left = names(&work);
        if !output.status.success() && now(&names(&folder), &left) {
            assert!(!folder.join("x.gkt").exists());
            return (folder, left, said);
        }
    }
    panic!("{point} is over before a signal comes");
}

/// Names in a folder whose files change meanwhile.
fn names_now(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn has(names: &[String], name: &str) -> bool {
    names.iter().any(|n| n == name)
}

fn in_bins(work: &[String]) -> bool {
    has(work, "read.unit") && !has(work, "count.unit")
}

/// Kills a count that has its reads in bins but has not counted them; returns the folder.
fn killed_in_bins(point: &str) -> PathBuf {
    ended_at(point, Signal::KILL, |_, work| in_bins(work)).0
}

#[test]
fn a_count_killed_anywhere_goes_on_to_the_same_bytes() {
    type When = fn(&[String], &[String]) -> bool;
    let points: [(&str, When); 6] = [
        ("started", |_, work| has(work, "genuma.lock") && !has(work, "read.unit")),
        ("reading", |_, work| has(work, "read.bins") && !has(work, "read.unit")),
        ("in-bins", |_, work| in_bins(work)),
        ("counting", |_, work| has(work, "count.bins") && !has(work, "count.unit")),
        ("counted", |_, work| has(work, "count.unit")),
        ("writing", |folder, work| folder.iter().any(|name| name.starts_with(".x.gkt.")) && has(work, "count.unit")),
    ];
    for (point, now) in points {
        let (folder, left, _) = ended_at(point, Signal::KILL, now);
        let (read, counted) = (has(&left, "read.unit"), has(&left, "count.unit"));
        let json = folder.with_extension("json");
        // Resume with another number of threads and other memory.
        let options = ["--resume", "-t", "2", "--memory", "200M", "--json", json.to_str().expect("UTF-8")];
        let said = run(count(&folder, &options)).assert_success().stderr;
        assert_eq!(said.contains("nothing to resume"), !read && !counted, "{point}: {said}");
        assert_eq!(said.contains("all reads are in bins already"), read && !counted, "{point}: {said}");
        assert_eq!(said.contains("all k-mers have been counted already"), counted, "{point}: {said}");
        assert_eq!(said.contains("read begins"), !read && !counted, "{point}: {said}");
        assert_eq!(said.contains("count begins"), !counted, "{point}: {said}");
        assert_done(&folder);
        let summary = fs::read_to_string(&json).expect("a summary");
        let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
        let resumed = |step: usize| summary["steps"][step]["resumed"].as_bool().expect("a step");
        assert_eq!([0, 1, 2].map(resumed), [read || counted, counted, false], "{point}");
        assert!(summary["spilled_bytes"].as_u64() > summary["packed_bytes"].as_u64(), "{point}");
    }
}

#[test]
fn a_count_is_killed_and_taken_up_until_it_is_done() {
    let (folder, _, _) = ended_at("again", Signal::KILL, |_, work| has(work, "read.bins"));
    let mut kills = 0;
    // Each run is given half as much time again as the run before.
    let pauses = std::iter::successors(Some(Duration::from_millis(40)), |&pause| Some(pause * 3 / 2));
    for pause in pauses {
        let mut child = genuma().args(count(&folder, &["--resume", "-q"])).spawn().expect("it starts");
        std::thread::sleep(pause);
        let _ = child.kill();
        if child.wait().expect("an end").success() {
            break;
        }
        kills += 1;
    }
    assert!(kills > 0);
    assert_done(&folder);
}

#[test]
fn an_interrupted_count_says_what_it_keeps() {
    let (folder, mut left, said) = ended_at("interrupted", Signal::INT, |_, work| in_bins(work));
    // Other threads run until the process ends, so that they may log a line after this one.
    let word = said.lines().find(|line| line.contains("warning: interrupted")).unwrap_or_default();
    assert!(word.contains(WORK) && word.contains("--resume"), "{said}");
    // The file that counting has begun may or may not exist; it is written again.
    left.retain(|name| name != "count.bins");
    assert_eq!(left, ["genuma.lock", "read.bins", "read.unit"]);
    // A count without --resume starts again and says so.
    let said = run(count(&folder, &[])).assert_success().stderr;
    assert!(said.contains("the results of an interrupted run are discarded"), "{said}");
    assert!(said.contains("read begins"), "{said}");
    assert_done(&folder);
}

#[test]
fn steps_can_be_on_another_disk() {
    let (folder, scratch) = (scratch("beside"), scratch("other-disk"));
    fs::write(scratch.join("thesis.tex"), "x").expect("a file");
    run(count(&folder, &["--resume", "--work", scratch.to_str().expect("UTF-8")])).assert_success();
    assert_done(&folder);
    assert_eq!(names(&scratch), ["thesis.tex"]);
}

#[track_caller]
fn refused(ended: &RunOutput, parts: &[&str]) {
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let errors: Vec<&str> = ended.stderr.lines().filter(|l| l.contains("error: ")).collect();
    assert_eq!(errors.len(), 1, "{}", ended.stderr);
    parts.iter().for_each(|part| assert!(errors[0].contains(part), "'{part}' is not in: {}", errors[0]));
}

#[test]
fn another_count_does_not_take_it_up() {
    let folder = killed_in_bins("another");
    for (option, parts) in [
        (["-k", "27"], ["now k 27, then k 31", "read.unit"]),
        (["--min-count", "5"], ["now min-count 5, then min-count 2", "leave out --resume"]),
        (["--min-base-quality", "9"], ["now min-base-quality 9", "name another folder with --work"]),
    ] {
        refused(&run(count(&folder, &["--resume"]).into_iter().chain(option.map(str::to_owned))), &parts);
        assert_eq!(names(&folder), [WORK]);
    }
    // The same samples under other names.
    let renamed = count(&folder, &["--resume"]).into_iter().map(|arg| match &arg[..] {
        "--tumor" => "--normal".to_owned(),
        "--normal" => "--tumor".to_owned(),
        _ => arg,
    });
    refused(&run(renamed), &["now normal", "then normal"]);
    // None of these runs removed the finished stages.
    let said = run(count(&folder, &["--resume"])).assert_success().stderr;
    assert!(said.contains("all reads are in bins already"), "{said}");
    assert_done(&folder);
}

#[test]
fn damage_is_told_and_nothing_comes_of_it() {
    let flip = |path: &Path, at: usize| {
        let mut bytes = fs::read(path).expect("a file");
        bytes[at] ^= 32;
        fs::write(path, bytes).expect("written");
    };
    let (counted, ..) = ended_at("damaged-parts", Signal::KILL, |_, work| has(work, "count.unit"));
    let read = killed_in_bins("damaged-bins");
    for (folder, step) in [(&read, "read"), (&counted, "count")] {
        let work = folder.join(WORK);
        let refuse = |file: &str, word: &str| {
            let said = run(count(folder, &["--resume"]));
            refused(&said, &[&format!("{WORK}/{step}.{file}"), word, "without --resume"]);
            assert_eq!(names(folder), [WORK]);
        };
        let (bins, unit) = (work.join(format!("{step}.bins")), work.join(format!("{step}.unit")));
        flip(&bins, 10);
        refuse("bins", "is damaged: the ");
        flip(&bins, 10);
        let middle = fs::metadata(&unit).expect("a file").len() as usize * 3 / 4;
        flip(&unit, middle);
        refuse("unit", "damaged (checksum)");
        flip(&unit, middle);
        fs::remove_file(&bins).expect("removed");
        refuse("bins", "No such file");
    }
    run(count(&read, &[])).assert_success();
    assert_done(&read);
}
