//! A process in which several threads fail at once prints one error and leaves no partial files.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use genuma_work::publish::PartialFile;
use genuma_work::signals::{exit_after_failure, start_signal_thread};

const FOLDER: &str = "GENUMA_TEST_FOLDER";

#[test]
fn the_first_failure_is_printed_completely_and_no_file_is_created_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let body = Command::new(env::current_exe().unwrap())
        .args(["--ignored", "--exact", "several_threads_fail", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder.path())
        .output()
        .unwrap();
    assert_eq!(body.status.code(), Some(1), "{body:?}");
    assert_eq!(String::from_utf8(body.stderr).unwrap(), "begun\nended\n");
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_failure_while_printing_an_error_is_printed_instead() {
    let body = Command::new(env::current_exe().unwrap())
        .args(["--ignored", "--exact", "printing_the_error_fails", "--nocapture", "--test-threads=1"])
        .output()
        .unwrap();
    assert_eq!(body.status.code(), Some(1), "{body:?}");
    assert_eq!(String::from_utf8(body.stderr).unwrap(), "no memory to tell\n");
}

#[test]
#[ignore = "ends its process, which the_first_failure_is_printed_completely_and_no_file_is_created_after_it starts"]
fn several_threads_fail() {
    start_signal_thread().unwrap();
    let folder = env::var_os(FOLDER).unwrap();
    for writer in 0..4 {
        let folder = folder.clone();
        thread::spawn(move || {
            for number in 0.. {
                // Neither dropped nor published, as if the thread was stopped in the middle.
                std::mem::forget(PartialFile::create(Path::new(&folder).join(format!("{writer}.{number}"))));
            }
        });
    }
    let (sender, printing) = mpsc::channel();
    thread::spawn(move || {
        // Wait until some files exist.
        thread::sleep(Duration::from_millis(100));
        exit_after_failure(|| {
            eprintln!("begun");
            sender.send(()).unwrap();
            thread::sleep(Duration::from_millis(300));
            eprintln!("ended");
        })
    });
    printing.recv().unwrap();
    exit_after_failure(|| eprintln!("message twice"));
}

#[test]
#[ignore = "ends its process, which a_failure_while_printing_an_error_is_printed_instead starts"]
fn printing_the_error_fails() {
    start_signal_thread().unwrap();
    exit_after_failure(|| exit_after_failure(|| eprintln!("no memory to tell")));
}
