//! `genuma machine show`: recordings, synthetic machines and limits of control groups.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{genuma, installed, names, run, scratch, skipped};
use serde_json::Value;

/// A file among the tests of the machine crate: a recording, or its expected output.
fn machine(name: &str) -> String {
    format!("{}/../hardware/machine/tests/machines/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn recordings_are_shown_as_table_and_json() {
    for (option, golden) in [(None, "cpuset.table"), (Some("--json"), "cpuset.json")] {
        let recording = machine("cpuset.txt");
        let args = ["machine", "show", "--from", &recording].into_iter().chain(option);
        let expected = fs::read_to_string(machine(golden)).expect("golden output");
        // The golden JSON is that of the machine crate, without the number of the schema.
        let expected = if option.is_some() { expected.replacen('{', "{\n  \"schema\": 1,", 1) } else { expected };
        assert_eq!(run(args).assert_success().stdout, expected);
    }
}

#[test]
fn descriptions_are_shown() {
    let shown =
        run(["machine", "show", "--json", "--synthetic", "3 nodes x 2 cores, 2 threads, 1 GiB"]).assert_success();
    let shown = json(&shown.stdout);
    assert_eq!(shown["cpus"].as_array().map(Vec::len), Some(12));
    assert_eq!(shown["nodes"][2]["cpus"], "4-5,10-11");
}

#[test]
fn this_machine_is_recorded_and_shown_again() {
    let folder = scratch("recorded");
    let file = folder.join("here.txt");
    let file = file.to_str().expect("UTF-8");
    let here = run(["machine", "show", "--json", "--record", file]).assert_success();
    assert_eq!(names(&folder), ["here.txt"]);
    let again = run(["machine", "show", "--json", "--from", file]).assert_success();
    let (here, again) = (json(&here.stdout), json(&again.stdout));
    assert_eq!(again["origin"], "recording here.txt");
    for key in ["cpus", "caches", "kernel", "page"] {
        assert_eq!(here[key], again[key]);
    }
    let table = run(["machine", "show"]).assert_success().stdout;
    assert!(table.starts_with("this machine: ") && table.contains("\nnode  "), "{table}");
}

/// A folder with an OpenCL library whose first call runs this C statement. `None` if there is no C compiler.
fn opencl_library(name: &str, statement: &str) -> Option<PathBuf> {
    let cc = installed("cc")?;
    let folder = scratch(name);
    let source = folder.join("driver.c");
    let code = format!(
        "#include <stdlib.h>\n#include <unistd.h>\n#include <signal.h>\n\
         int clGetPlatformIDs(unsigned n, void *p, unsigned *m) {{ {statement}; return -1001; }}\n"
    );
    fs::write(&source, code).expect("written");
    let library = folder.join("libOpenCL.so.1");
    let built =
        Command::new(cc).args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status().expect("cc starts");
    assert!(built.success());
    Some(folder)
}

/// A driver that aborts or hangs does not end or block the program.
#[test]
fn drivers_that_fail_do_not_end_the_program() {
    let shown = |folder: &Path| {
        let mut topology = genuma();
        topology.args(["machine", "show"]).env("LD_LIBRARY_PATH", folder).env("GENUMA_DEVICE_LIST_SECONDS", "2");
        let output = topology.output().expect("genuma starts");
        assert!(output.status.success(), "{:?} {}", output.status, String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let Some(aborts) = opencl_library("aborts", "abort()") else { return };
    let text = shown(&aborts);
    assert!(text.starts_with("this machine: ") && text.contains("\nnode  "), "{text}");
    assert!(text.contains("an OpenCL driver ended the process that listed the devices (signal: 6"), "{text}");
    let hangs = "signal(SIGTERM, SIG_IGN); for (;;) sleep(1)";
    let Some(hangs) = opencl_library("hangs", hangs) else { return };
    let text = shown(&hangs);
    assert!(text.contains("an OpenCL driver has not listed its devices in 2 s: no device is used"), "{text}");
    let Some(talks) = opencl_library("talks", "write(1, \"hello\\n\", 6)") else { return };
    assert!(shown(&talks).contains("no OpenCL driver is installed"));
}

#[test]
fn machines_of_other_kinds_are_shown() {
    let shown = run(["machine", "show", "--json", "--from", &machine("gpu-memory-nodes.txt")]).assert_success();
    let nodes = json(&shown.stdout)["nodes"].clone();
    let of_gpus = |node: &Value| node["gpu"] == true;
    let ids = nodes.as_array().expect("nodes").iter().filter(|node| of_gpus(node)).map(|node| node["id"].as_u64());
    assert_eq!(ids.collect::<Vec<_>>(), [Some(254), Some(255)]);
    let shown = run(["machine", "show", "--from", &machine("offline-node.txt")]).assert_success().stdout;
    assert!(shown.contains("CPUs 4,6 are in no node's cpulist: assuming that they belong to node 1"), "{shown}");
}

#[test]
fn what_the_affinity_leaves_is_told() {
    let Some(taskset) = installed("taskset") else { return };
    let all = json(&run(["machine", "show", "--json"]).assert_success().stdout);
    let cpus: Vec<u64> = all["cpus"].as_array().expect("CPUs").iter().filter_map(|cpu| cpu["id"].as_u64()).collect();
    if cpus.len() < 2 || all["allowed"]["cpus"].as_str().is_none_or(|list| !list.starts_with("0-")) {
        return skipped("there are not two CPUs to choose from");
    }
    let confined = Command::new(taskset)
        .args(["-c", "0", env!("CARGO_BIN_EXE_genuma"), "machine", "show", "--json"])
        .output()
        .expect("taskset starts");
    let confined = json(&String::from_utf8_lossy(&confined.stdout));
    assert_eq!(confined["allowed"]["cpus"], "0");
    assert_eq!(confined["cpus"], all["cpus"], "the machine itself is reported as a whole");
}

/// A control group, removed when dropped.
struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        // A group that cannot be removed is empty, and its name shows which test made it.
        let _ = fs::remove_dir(&self.0);
    }
}

/// A new control group with a memory limit in bytes.
fn group_with_limit(bytes: u64) -> Result<Group, String> {
    let name = format!("genuma-test-{}", std::process::id());
    let mut whys = Vec::new();
    for (folder, limit) in [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")] {
        let folder = Path::new(folder).join(&name);
        match fs::create_dir(&folder) {
            Ok(()) => {
                let group = Group(folder);
                let limit = group.0.join(limit);
                if limit.exists() {
                    return fs::write(&limit, bytes.to_string()).map(|()| group).map_err(|e| e.to_string());
                }
                whys.push(format!("{} does not appear", limit.display()));
            }
            Err(e) => whys.push(format!("{}: {e}", folder.display())),
        }
    }
    Err(whys.join("; "))
}

#[test]
fn a_limit_of_a_control_group_is_told() {
    let group = match group_with_limit(1 << 30) {
        Ok(group) => group,
        Err(why) => return skipped(&format!("no control group can be made: {why}")),
    };
    let joins = format!("echo $$ > '{}/cgroup.procs' && exec \"$0\" \"$@\"", group.0.display());
    let output = Command::new("sh")
        .args(["-c", &joins, env!("CARGO_BIN_EXE_genuma"), "machine", "show", "--json"])
        .output()
        .expect("sh starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert_eq!(json(&String::from_utf8_lossy(&output.stdout))["allowed"]["memory"], 1 << 30);
}

#[test]
fn bad_input_is_told_in_one_line() {
    let folder = scratch("bad");
    let path = |name: &str| folder.join(name).to_str().expect("UTF-8").to_owned();
    let recording = fs::read_to_string(machine("2-nodes.txt")).expect("a recording");
    let write = |name: &str, text: &str| {
        fs::write(path(name), text).expect("a file");
        path(name)
    };
    let twice = recording.replacen("node1/cpulist 2-3", "node1/cpulist 1-3", 1);
    let unlisted: String =
        recording.lines().filter(|l| !l.contains("node1/cpulist")).map(|l| format!("{l}\n")).collect();
    let cases = [
        (path("gone.txt"), format!("{}: No such file or directory (os error 2): check the path", path("gone.txt"))),
        (path(""), format!("{}: Is a directory (os error 21): give a file, not a folder", path(""))),
        (
            write("json.txt", "{}"),
            format!("{}: is not a recording: its first line is not 'genuma recording 1'", path("json.txt")),
        ),
        (
            write("line.txt", "genuma recording 1\n/a 1\nb 2\n"),
            format!(
                "{}:3: a line must consist of a path that begins with '/', a space, and the text of the file",
                path("line.txt")
            ),
        ),
        (
            write("empty.txt", "genuma recording 1\n"),
            "empty.txt: /sys/devices/system/cpu/online: cannot be read, and no other file lists the CPUs".to_owned(),
        ),
        ("/dev/zero".to_owned(), "/dev/zero: is not a recording: it is larger than 64 MiB".to_owned()),
    ];
    for (file, why) in cases {
        let ended = run(["machine", "show", "--from", &file]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{file}");
        assert_eq!(ended.stderr, format!("genuma: error: {why}\n"));
    }
    // What contradicts itself or is missing is shown with a note.
    for (file, note) in [
        (
            write("twice.txt", &twice),
            "node1/cpulist: CPUs 1 are also in node 0: assuming that they belong to node 0 only",
        ),
        (
            write("unlisted.txt", &unlisted),
            "node1/cpulist cannot be read: assuming that the CPUs that no other node lists",
        ),
    ] {
        let shown = run(["machine", "show", "--from", &file]).assert_success().stdout;
        assert!(shown.contains(note), "{shown}");
    }
    let ended = run(["machine", "show", "--synthetic", "8 nodes x 8 cores"]);
    let why = "'8 nodes x 8 cores' is not a valid machine description: it lacks the memory of a node, such as '16 GiB'";
    assert_eq!((ended.code, ended.stderr), (Some(1), format!("genuma: error: {why}\n")));

    let nowhere = path("no/such/file");
    let ended = run(["machine", "show", "--record", &nowhere]);
    let why = format!("{nowhere}: cannot write: No such file or directory (os error 2): check the path");
    assert_eq!((ended.code, ended.stderr), (Some(1), format!("genuma: error: {why}\n")));
}

#[test]
fn one_machine_is_shown_at_a_time() {
    let recording = machine("2-nodes.txt");
    for other in [["--synthetic", "1 node x 1 core, 1 GiB"], ["--record", "never-written"]] {
        let ended = run(["machine", "show", "--from", &recording].into_iter().chain(other));
        assert_eq!(ended.code, Some(2));
        assert!(ended.stderr.contains("cannot be used with"), "{}", ended.stderr);
    }
    assert!(!Path::new("never-written").exists());
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    // More text than a pipe buffers.
    let many = ["machine", "show", "--json", "--synthetic", "64 nodes x 64 cores, 1 GiB"];
    let mut child = genuma();
    let mut child = child.args(many).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("genuma starts");
    drop(child.stdout.take());
    let ended = child.wait_with_output().expect("genuma ends");
    assert_eq!((ended.status.code(), String::from_utf8_lossy(&ended.stderr).as_ref()), (Some(0), ""));
}
