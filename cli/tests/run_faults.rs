//! `genuma run` with unusable input and with aligners that die: one line that says what and what to do, no files
//! under final names, no process left behind.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::common::{genuma, gzip, installed, json, names, scratch, text};
use rustix::process::{Pid, Signal, kill_process};

/// A small aligner: it answers each read with an unmapped record, in the order of the reads.
const STUB: &str = r#"#!/usr/bin/awk -f
BEGIN { OFS = "\t"; print "@SQ", "SN:c", "LN:9"; print "@PG", "ID:stub" }
NR % 4 == 1 { name = substr($1, 2) }
NR % 4 == 2 { print name, 4, "*", 0, 0, "*", "*", 0, 0, $1, "*" }
"#;

const READS: usize = 60_000;

fn reads(count: usize) -> String {
    (0..count).map(|i| format!("@read{i}\n{}\n+\n{}\n", "ACGTA".repeat(8), "F".repeat(40))).collect()
}

fn script(path: PathBuf, text: &str) -> PathBuf {
    fs::write(&path, text).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
    path
}

/// A folder for scripts and reads, and one for output.
fn folders(name: &str) -> (PathBuf, PathBuf) {
    let folder = scratch(name);
    let out = folder.join("out");
    fs::create_dir(&out).expect("a folder");
    fs::write(folder.join("reads.fq"), reads(READS)).expect("a file");
    script(folder.join("stub"), STUB);
    (folder, out)
}

fn by_genuma(folder: &Path, args: &[&str]) -> Output {
    genuma().arg("run").args(args).current_dir(folder).output().expect("genuma starts")
}

/// Asserts that the run exits with `code` and one error line that contains all of `parts`, and leaves nothing in
/// `out`.
#[track_caller]
fn refused(folder: &Path, args: &[&str], code: i32, parts: &[&str]) {
    let ended = by_genuma(folder, &[&["-o", "out/x.sam"], args].concat());
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(code), "{args:?}: {said}");
    let errors: Vec<&str> = said.lines().filter(|l| l.contains("error: ")).collect();
    let [error, ..] = errors[..] else { panic!("no error: {said}") };
    for part in parts {
        assert!(error.contains(part), "'{part}' is not in: {error}");
    }
    assert_eq!(names(&folder.join("out")), Vec::<String>::new(), "{args:?}");
}

/// Processes whose command line contains `word`.
fn processes(word: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("processes").flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| {
        fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(word))
    })
    .collect()
}

#[test]
fn wishes_that_cannot_be_fulfilled() {
    let (folder, _) = folders("usage");
    let stub = text(&folder.join("stub")).to_owned();
    for (args, parts) in [
        (&["--strategy", "2xfast", "--reads", "reads.fq", "--", &stub][..], &["not a strategy", "4xbind"][..]),
        (&["--", &stub], &["leave out -o", "--reads"]),
        (&["--reads", "reads.fq", "reads.fq", "reads.fq", "--", &stub], &["has no mate file"]),
        (&["--", "bwa", "mem", "-o", "y.sam", "g.fa", "reads.fq"], &["the output is given twice"]),
        (&["--", "bwa", "mem", "--what", "g.fa", "reads.fq"], &["--what"]),
    ] {
        refused(&folder, args, 2, parts);
    }
    refused(&folder, &["--reads", "reads.fq", "--", "no-such-aligner"], 1, &["no-such-aligner", "install"]);
    if installed("bwa").is_some() {
        refused(&folder, &["--", "bwa", "mem", "g.fa", "reads.fq"], 1, &["g.fa", "index", "bwa index g.fa"]);
    }
}

#[test]
fn reads_that_are_not_right() {
    let (folder, _) = folders("reads");
    let stub = text(&folder.join("stub")).to_owned();
    let whole = gzip(folder.join("whole.fq.gz"), reads(READS).as_bytes());
    let bytes = fs::read(&whole).expect("reads");
    fs::write(folder.join("truncated.fq.gz"), &bytes[..bytes.len() * 3 / 4]).expect("a file");
    fs::write(folder.join("fewer.fq"), reads(READS - 1)).expect("a file");
    fs::write(folder.join("at.fq"), reads(READS).replace("\n@", "\n@@")).expect("a file");
    fs::write(folder.join("mates.fq"), reads(READS).replace("ACGTA", "TTTTT")).expect("a file");
    let pairs = script(folder.join("pairs"), "#!/bin/sh\ncat $1 >/dev/null & cat $2 >/dev/null; wait\n");
    let lines = reads(READS).replace("ACGTAACGTA\n", "ACGTA\nACGTA\n").replace("FFFFFFFF\n", "FFF\nFFFFF\n");
    fs::write(folder.join("lines.fq"), &lines[..lines.len() - 4]).expect("a file");
    fs::write(folder.join("damaged.fq"), lines.replacen("\nFFFFF\n@read40001\n", "\nFFFF\n@read40001\n", 1))
        .expect("a file");
    for strategy in ["default", "2xlocal"] {
        let run = |reads: &[&str], command: &[&str], parts: &[&str]| {
            let args = [&["--strategy", strategy, "--reads"], reads, &["--"], command].concat();
            refused(&folder, &args, 1, parts);
        };
        run(&["at.fq"], &[&stub], &["at.fq: read \"@", "its name begins with '@', so SAM cannot hold it"]);
        run(&["truncated.fq.gz"], &[&stub], &["truncated.fq.gz: record ", "truncated, copy or make it again"]);
        let last = format!("lines.fq: record {READS}: the file ends inside the record");
        run(&["lines.fq"], &[&stub], &[&last]);
        run(&["damaged.fq"], &[&stub], &["damaged.fq: record 40001: 40 bases but ", "the file is damaged"]);
        run(
            &["mates.fq", "fewer.fq"],
            &[text(&pairs), "{reads1}", "{reads2}"],
            &["fewer.fq: ends after", "mates are missing"],
        );
    }
}

/// An aligner whose awk `program` runs for each line of the reads and may write a read's unmapped record. `header` is
/// written first.
fn answering_aligner(path: PathBuf, header: &str, program: &str) -> PathBuf {
    let text = format!(
        "#!/usr/bin/awk -f\nfunction record(n) {{ print n, 4, \"*\", 0, 0, \"*\", \"*\", 0, 0, \"*\", \"*\" }}\n\
         BEGIN {{ OFS = \"\\t\"; {header} }}\nNR % 4 == 1 {{ name = substr($1, 2) }}\n{program}\n"
    );
    script(path, &text)
}

const HEADER: &str = "print \"@SQ\", \"SN:c\", \"LN:9\"";

#[test]
fn output_that_is_not_what_it_should_be() {
    let (folder, _) = folders("output");
    let of = |field: usize, value: &str| {
        let fields = ["name", "0", "\"c\"", "1", "9", "\"1M\"", "\"*\"", "0", "0", "\"A\"", "\"F\""];
        let field_of = |(i, was): (usize, &&str)| if i == field { value.to_owned() } else { (*was).to_owned() };
        let record: Vec<String> = fields.iter().enumerate().map(field_of).collect();
        format!("NR % 4 == 2 {{ print {} }}", record.join(", "))
    };
    for (name, header, program, parts) in [
        (
            "fewer",
            HEADER,
            "NR % 4 == 2 && !/read7$/ { if (name != \"read7\") record(name) }".to_owned(),
            "where \"read7\" was expected",
        ),
        ("early", HEADER, "NR % 4 == 2 && NR < 4000 { record(name) }".to_owned(), "wrote no record for "),
        ("more", HEADER, "NR % 4 == 2 { record(name); record(name) }".to_owned(), "where \"read1\" was expected"),
        ("other", HEADER, "NR % 4 == 2 { record(\"z\" name) }".to_owned(), "a record of read \"zread0\""),
        (
            "words",
            HEADER,
            "NR % 4 == 2 { print \"hello\" }".to_owned(),
            "invalid SAM: fewer than 11 fields in a line 'hello'",
        ),
        (
            "columns",
            HEADER,
            "NR % 4 == 2 { print name, 4, \"*\", 0, 0, \"*\", \"*\", 0, 0, \"*\" }".to_owned(),
            "fewer than 11 fields",
        ),
        ("place", HEADER, of(3, "-5"), "an impossible place in a line 'read0"),
        ("sequence", HEADER, of(2, "\"nowhere\""), "a sequence that the header does not have"),
        ("mate", HEADER, of(6, "\"nowhere\""), "a mate's sequence that the header does not have"),
        ("qualities", HEADER, of(10, "\"FF\""), "not as many qualities as bases"),
        ("no_header", "", of(0, "name"), "no header with sequences"),
        ("no_sequences", "print \"@PG\", \"ID:x\"", of(0, "name"), "no header with sequences"),
        ("silent", "", String::new(), "no header with sequences"),
    ] {
        let stub = answering_aligner(folder.join(name), header, &program);
        refused(&folder, &["--reads", "reads.fq", "--", text(&stub)], 1, &[parts]);
    }
    let good = answering_aligner(folder.join("good"), HEADER, &of(0, "name"));
    let ended = by_genuma(&folder, &["--reads", "reads.fq", "--", text(&good)]);
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    // awk would end the line at a NUL.
    let nul = script(
        folder.join("nul"),
        "#!/bin/sh\nprintf '@SQ\\tSN:c\\nread0\\t4\\t*\\t0\\t0\\t*\\t*\\t0\\t0\\tA\\0C\\t*\\n'; cat > /dev/null\n",
    );
    refused(&folder, &["--reads", "reads.fq", "--", text(&nul)], 1, &["a NUL in a line 'read0"]);
    let endless = script(folder.join("endless"), "#!/bin/sh\nyes '@CO\tand so on, and so on, and so on'\n");
    refused(&folder, &["--reads", "reads.fq", "--", text(&endless)], 1, &["a header that does not end"]);
}

#[test]
fn what_an_aligner_leaves_behind_does_not_hold_the_run() {
    let (folder, out) = folders("behind");
    let plain = without_programs(&by_genuma(&folder, &["--reads", "reads.fq", "--", "./stub"]).stdout);
    // A child in the aligner's process group, which is killed with it, and a child in a session of its own, which
    // survives.
    let left = |start: &str| format!("{start} sh -c 'echo $$ >> pids; exec sleep 600' left_behind &\nexit 0\n");
    for (name, start) in [("grandchild", ""), ("daemon", "setsid")] {
        let program = script(folder.join(name), &format!("#!/bin/sh\n{}/stub\n{}", text(&folder), left(start)));
        for strategy in ["default", "2xlocal"] {
            let args = ["--strategy", strategy, "--reads", "reads.fq", "-o", "out/x.sam", "--", text(&program)];
            let ended = by_genuma(&folder, &args);
            assert!(ended.status.success(), "{name}: {}", String::from_utf8_lossy(&ended.stderr));
            assert!(without_programs(&fs::read(out.join("x.sam")).expect("SAM")) == plain, "{name}");
            fs::remove_file(out.join("x.sam")).expect("a file");
        }
    }
    // The child also has the reads open, but reads nothing.
    let holds = format!("#!/bin/sh\nhead -n 400 | {}/stub\nexec 3<&0\n{}", text(&folder), left("setsid"));
    let holds = script(folder.join("holds"), &holds);
    refused(&folder, &["--reads", "reads.fq", "--", text(&holds)], 1, &["wrote no record for "]);
    for id in fs::read_to_string(folder.join("pids")).expect("numbers").lines() {
        let id = id.parse().ok().and_then(Pid::from_raw).expect("a number");
        // The processes of the group are gone.
        let _ = kill_process(id, Signal::KILL);
    }
}

#[test]
fn what_an_aligner_says_does_not_command_the_terminal() {
    let (folder, _) = folders("terminal");
    let stub = answering_aligner(folder.join("clears"), HEADER, "NR % 4 == 2 { record(name \"\\033[2J\"); exit }");
    let says = format!("#!/bin/sh\nprintf 'hello \\033]0;title\\007\\n' >&2\nexec {}\n", text(&stub));
    let says = script(folder.join("says"), &says);
    let ended = by_genuma(&folder, &["--reads", "reads.fq", "--", text(&says)]);
    let said = String::from_utf8(ended.stderr).expect("UTF-8");
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.lines().any(|line| line == "hello \\x1b]0;title\\x07"), "{said}");
    assert!(said.contains("a record of read \"read0\\x1b[2J\""), "{said}");
    assert!(!said.chars().any(|c| c.is_control() && c != '\n'), "{said:?}");
}

/// A stub that is killed once: the first process that takes the flag file dies after some records.
fn dies_once(folder: &Path) -> PathBuf {
    let stub = format!(
        "#!/bin/sh\nif mkdir {0}/died 2>/dev/null; then\n  head -n 60001 | {0}/stub\n  kill -KILL $$\nfi\nexec {0}/stub\n",
        text(folder)
    );
    script(folder.join("dies_once"), &stub)
}

#[test]
fn an_instance_that_is_killed_is_replaced() {
    let (folder, out) = folders("killed");
    let plain = by_genuma(&folder, &["--reads", "reads.fq", "--", "./stub"]);
    assert!(plain.status.success());
    let plain = without_programs(&plain.stdout);
    assert_eq!(plain.lines().count(), READS + 1);
    let stub = dies_once(&folder);
    for strategy in ["default", "2xlocal", "4xbind"] {
        fs::remove_dir(folder.join("died")).unwrap_or_default();
        let args = ["--strategy", strategy, "--reads", "reads.fq", "-o", "out/x.sam", "--json", "x.json", "--"];
        let ended = by_genuma(&folder, &[&args[..], &[text(&stub)]].concat());
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{said}");
        assert!(said.contains("was killed by signal 9: its unfinished reads go to a new process"), "{said}");
        let found = fs::read(out.join("x.sam")).expect("SAM");
        assert!(without_programs(&found) == plain, "{strategy}");
        let json = json(&folder.join("x.json"));
        let processes = json["run"]["instances"].as_array().expect("instances").iter();
        let most = processes.filter_map(|instance| instance["processes"].as_u64()).max();
        assert_eq!(most, Some(2), "{json}");
    }
}

fn without_programs(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.lines().filter(|line| !line.starts_with("@PG")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_real_instance_that_is_killed_is_replaced() {
    if installed("bwa").is_none() {
        return;
    }
    let (folder, _) = folders("bwa");
    // Each read occurs twice in the genome: ties, which are broken by the read number.
    let mut state = 1_u64;
    let mut bases = |n: usize| -> String {
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            b"ACGT"[(state >> 62) as usize] as char
        };
        (0..n).map(|_| next()).collect()
    };
    let half = bases(20_000);
    fs::write(folder.join("g.fa"), format!(">c\n{half}{}{half}\n", bases(500))).expect("a file");
    let read = |i: usize| {
        let start = i * 7919 % (half.len() - 80);
        format!("@r{i}\n{}\n+\n{}\n", &half[start..start + 80], "F".repeat(80))
    };
    fs::write(folder.join("ties.fq"), (0..12_000).map(read).collect::<String>()).expect("a file");
    let shell = |command: &str| {
        let ended = Command::new("bash").args(["-c", command]).current_dir(&folder).output().expect("a shell");
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        ended.stdout
    };
    shell("bwa index g.fa");
    let plain = without_programs(&shell("bwa mem -K 80000 g.fa ties.fq"));
    // bwa under another name, killed once after some blocks.
    fs::create_dir(folder.join("bin")).expect("a folder");
    let killed = format!(
        "#!/bin/bash\nif mkdir {0}/died 2>/dev/null; then\n  \"$(PATH=${{PATH#*:}} command -v bwa)\" \"$@\" | head -n 1500\n  kill -KILL $$\nfi\n\
         PATH=${{PATH#*:}} exec bwa \"$@\"\n",
        text(&folder)
    );
    script(folder.join("bin/bwa"), &killed);
    let path = format!("{}:{}", text(&folder.join("bin")), std::env::var("PATH").expect("a PATH"));
    for strategy in ["default", "2xlocal"] {
        fs::remove_dir(folder.join("died")).unwrap_or_default();
        let ended = genuma()
            .args(["run", "--strategy", strategy, "--", "bwa", "mem", "-K", "80000", "g.fa", "ties.fq"])
            .env("PATH", &path)
            .current_dir(&folder)
            .output()
            .expect("genuma starts");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success() && said.contains("was killed by signal 9"), "{said}");
        assert!(without_programs(&ended.stdout) == plain, "{strategy}");
    }
}

#[test]
fn what_an_aborted_run_leaves_the_next_one_removes() {
    let (folder, out) = folders("aborted");
    // The signal of the standard library when memory runs out: no cleanup runs.
    let deadly = script(folder.join("deadly"), "#!/bin/sh\nkill -ABRT $PPID\nexec sleep 100\n");
    let by = |aligner: &Path| {
        let args = ["-o", "out/x.sam", "--json", "out/x.json", "--reads", "reads.fq", "--", text(aligner)];
        by_genuma(&folder, &args)
    };
    assert_eq!(by(&deadly).status.signal(), Some(Signal::ABORT.as_raw()));
    let left = names(&out);
    assert!(matches!(&left[..], [one] if one.starts_with(".x.sam.") && one.ends_with(".partial")), "{left:?}");
    assert!(by(&folder.join("stub")).status.success());
    assert_eq!(names(&out), ["x.json", "x.sam"]);
}

#[test]
fn an_instance_that_always_dies_ends_the_run() {
    let (folder, _) = folders("dies");
    let dies = format!("#!/bin/sh\nhead -n 400 | {}/stub\necho 'out of luck' >&2\nkill -KILL $$\n", text(&folder));
    let dies = script(folder.join("dies"), &dies);
    let fails = script(folder.join("fails"), "#!/bin/sh\necho 'no such index' >&2\nexit 3\n");
    for strategy in ["default", "2xlocal"] {
        let run = |program: &Path, parts: &[&str]| {
            let args = ["--strategy", strategy, "--reads", "reads.fq", "--", text(program)];
            refused(&folder, &args, 1, parts);
        };
        run(&dies, &["was killed by signal 9", "the second process over the same reads", "out of luck"]);
        run(&fails, &["failed with exit code 3", "no such index"]);
    }
}

#[test]
fn a_full_disk() {
    let (folder, out) = folders("full");
    let full = fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    let ended = genuma()
        .args(["run", "--strategy", "2xlocal", "--reads", "reads.fq", "--", "./stub"])
        .current_dir(&folder)
        .stdout(full)
        .output()
        .expect("genuma starts");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.code() == Some(1) && said.contains("error: standard output: No space left"), "{said}");
    let script = format!(
        "trap '' XFSZ; ulimit -f 64; exec {} run --reads reads.fq -o out/x.sam -- ./stub",
        env!("CARGO_BIN_EXE_genuma")
    );
    let ended = Command::new("bash").args(["-c", &script]).current_dir(&folder).output().expect("a shell");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.code() == Some(1) && said.contains("File too large") && said.contains("x.sam"), "{said}");
    assert_eq!(names(&out), Vec::<String>::new());
}

#[test]
fn whoever_has_seen_enough_may_close_the_pipe() {
    let (folder, _) = folders("closed");
    let stub = script(folder.join("closed_pipe_stub"), STUB);
    let mut child = genuma()
        .args(["run", "--strategy", "2xlocal", "--reads", "reads.fq", "--", text(&stub)])
        .current_dir(&folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("genuma starts");
    let mut first = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut first).expect("a line");
    assert_eq!(first, "@SQ\tSN:c\tLN:9\n");
    let ended = child.wait_with_output().expect("an end");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && !said.contains("error"), "{said}");
    assert_eq!(processes(text(&stub)), Vec::<u32>::new());
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    let (folder, out) = folders("interrupted");
    // The aligner answers all reads and then never exits.
    let endless = format!("#!/bin/sh\n{0}/stub\necho all answered >&2\nsleep 1000\n", text(&folder));
    let endless = script(folder.join("endless_stub"), &endless);
    for (strategy, signal, code) in
        [("default", Signal::INT, 130), ("2xlocal", Signal::TERM, 143), ("default", Signal::HUP, 129)]
    {
        // The tests may run under nohup.
        let mut child = Command::new("env")
            .args(["--default-signal=HUP", env!("CARGO_BIN_EXE_genuma"), "run", "-v", "--strategy", strategy])
            .args(["--reads", "reads.fq", "-o", "out/x.sam", "--", text(&endless)])
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("genuma starts");
        let (mut stderr, mut said) = once_answered(&mut child);
        assert!(!processes(text(&endless)).is_empty());
        kill_process(Pid::from_child(&child), signal).expect("a process to signal");
        stderr.read_to_string(&mut said).expect("lines");
        assert_eq!(child.wait().expect("an end").code(), Some(code), "{said}");
        assert_eq!(names(&out), Vec::<String>::new());
        // Killed processes disappear when their new parent has waited for them.
        while !processes(text(&endless)).is_empty() {
            std::thread::yield_now();
        }
    }
}

/// Waits until an aligner has answered all reads; returns the messages after that, and those before.
fn once_answered(child: &mut std::process::Child) -> (BufReader<std::process::ChildStderr>, String) {
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut said = String::new();
    while !said.contains("all answered") {
        assert!(stderr.read_line(&mut said).expect("lines") > 0, "it never answered: {said}");
    }
    (stderr, said)
}

/// Starts genuma, ignoring SIGHUP if `deaf`, with an aligner that has answered all reads and does not exit; also
/// returns the aligner's path.
fn genuma_with_waiting_aligner(name: &str, deaf: bool) -> (std::process::Child, PathBuf) {
    let (folder, _) = folders(name);
    let endless = format!(
        "#!/bin/sh\n{0}/stub\necho all answered >&2\nexec tail -f {0}/endless_stub > /dev/null\n",
        text(&folder)
    );
    let endless = script(folder.join("endless_stub"), &endless);
    let trap = if deaf { "trap '' HUP; " } else { "" };
    let mut child = Command::new("bash")
        .args(["-c", &format!("{trap}exec \"$@\"; true"), "bash", env!("CARGO_BIN_EXE_genuma"), "run", "-v"])
        .args(["--reads", "reads.fq", "-o", "out/x.sam", "--", text(&endless)])
        .current_dir(&folder)
        .stderr(Stdio::piped())
        .spawn()
        .expect("genuma starts");
    once_answered(&mut child);
    assert!(!processes(text(&endless)).is_empty());
    (child, endless)
}

#[test]
fn an_aligner_does_not_outlive_genuma() {
    let (mut child, endless) = genuma_with_waiting_aligner("outlive", false);
    child.kill().expect("a process to kill");
    assert_eq!(child.wait().expect("an end").code(), None);
    while !processes(text(&endless)).is_empty() {
        std::thread::yield_now();
    }
}

#[test]
fn under_nohup_a_lost_terminal_does_not_end_it() {
    let (mut child, _) = genuma_with_waiting_aligner("nohup", true);
    kill_process(Pid::from_child(&child), Signal::HUP).expect("a process to signal");
    kill_process(Pid::from_child(&child), Signal::TERM).expect("a process to signal");
    assert_eq!(child.wait().expect("an end").code(), Some(143));
}
