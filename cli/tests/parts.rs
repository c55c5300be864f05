//! A distributed call gives the same bytes as a call in one process, whatever the number of shards and partitions,
//! the kind of run store, and interruptions of its tasks.

#[path = "../../storage/tests/common/proxy.rs"]
#[allow(dead_code)]
mod proxy;
#[path = "../../storage/tests/common/server.rs"]
#[allow(dead_code)]
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{
    self, Data, RunOutput, SharedFixture, assert_private, assert_same, bgzip, called, data, genuma,
    genuma_with_open_umask, gunzip, names, run, scratch, skipped,
};

/// The reads of [`data`] in files that can be divided into shards.
fn cut() -> &'static Data {
    static CUT: SharedFixture<Data> = SharedFixture::new();
    CUT.get_or_init(|| {
        let folder = scratch("bgzf");
        let pack = |path: &PathBuf| bgzip(folder.join(path.file_name().expect("a name")), &gunzip(path));
        let mut cut = data().clone();
        for file in cut.tumor.iter_mut().chain(&mut cut.normal) {
            *file = pack(file);
        }
        cut
    })
}

/// A planned distributed call.
#[derive(Debug, Clone)]
struct Run {
    place: String,
    out: PathBuf,
    shards: u32,
    parts: u32,
}

/// All steps in order: each needs all steps before it.
const STEPS: [&str; 8] = ["scatter", "count", "pick", "label", "assemble", "place", "recruit", "finish"];

impl Run {
    /// Plans a call in a new folder.
    fn plan(data: &Data, name: &str, shards: u32, parts: u32) -> Run {
        let folder = scratch(name);
        let place = folder.join("run").to_str().expect("UTF-8").to_owned();
        Run::plan_at(data, place, &folder, shards, parts)
    }

    fn plan_at(data: &Data, place: String, folder: &Path, shards: u32, parts: u32) -> Run {
        let run = Run { place, out: folder.join("out"), shards, parts };
        let said = run.plan_again(data, &[]).assert_success().stderr;
        assert!(said.contains("shard"), "{said}");
        run
    }

    fn plan_again(&self, data: &Data, options: &[&str]) -> RunOutput {
        let numbers = [self.shards, self.parts].map(|n| n.to_string());
        let plan = ["--plan", &self.place, "--shards", &numbers[0], "--partitions", &numbers[1], "--threads", "2"];
        run(data.call_with(&self.out, &[plan.as_slice(), options].concat()))
    }

    fn tasks(&self, step: &str) -> u32 {
        match step {
            "count" => self.parts,
            "scatter" | "label" | "recruit" => self.shards,
            _ => 1,
        }
    }

    /// The command of a task.
    fn step(&self, step: &str, number: u32) -> Command {
        let mut command = genuma_with_open_umask();
        command.args(["step", &self.place, step, &number.to_string(), "-q"]);
        // The folder of temporary files may be shared with other users.
        command.env("TMPDIR", self.out.parent().expect("a folder"));
        command
    }

    fn done(&self, step: &str, number: u32) {
        ended(self.step(step, number)).assert_success();
    }

    /// Does all tasks of a step.
    fn all(&self, step: &str) {
        (1..=self.tasks(step)).for_each(|number| self.done(step, number));
    }

    /// Does all steps before the given one.
    fn before(&self, step: &str) {
        STEPS.iter().take_while(|name| **name != step).for_each(|name| self.all(name));
    }
}

fn ended(mut command: Command) -> RunOutput {
    let output = command.output().expect("genuma starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("genuma writes UTF-8");
    RunOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// The error of a task that fails: one line.
#[track_caller]
fn refused(command: Command, code: i32) -> String {
    let RunOutput { code: ended, stderr, .. } = ended(command);
    assert_eq!(ended, Some(code), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    stderr
}

#[test]
fn shards_and_partitions_do_not_show() {
    for (shards, parts) in [(1, 1), (2, 3), (4, 8), (7, 5)] {
        let run = Run::plan(cut(), &format!("{shards}x{parts}"), shards, parts);
        let plan = fs::read(Path::new(&run.place).join("plan.json")).expect("a plan");
        let plan: serde_json::Value = serde_json::from_slice(&plan).expect("JSON");
        assert_eq!((plan["shards"].as_u64(), plan["parts"].as_u64()), (Some(shards.into()), Some(parts.into())));
        for (steps, name) in plan["steps"].as_array().expect("steps").iter().zip(STEPS) {
            assert_eq!((steps["name"].as_str(), steps["tasks"].as_u64()), (Some(name), Some(run.tasks(name).into())));
        }
        STEPS.iter().for_each(|step| run.all(step));
        assert_same(&run.out, called());
        let left = names(Path::new(&run.place));
        let objects = shards * 3 + parts + 3 + 1;
        assert_eq!(left.len(), objects as usize, "{left:?}");
        // Of all objects only the plan holds nothing of the reads.
        assert_private(Path::new(&run.place), |name| name != "plan.json");
        assert!(names(run.out.parent().expect("a folder")).iter().all(|name| !name.starts_with('.')));
    }
}

#[test]
fn without_a_reference_and_in_other_files_it_is_the_same() {
    let folder = scratch("other-files");
    let mut data = data().clone();
    data.reference = None;
    let whole = folder.join("whole");
    crate::common::run(data.call(&whole)).assert_success();
    // One sample in plain text, the other in gzip, which cannot be divided.
    for file in &mut data.tumor {
        let text = gunzip(file);
        *file = folder.join(file.file_stem().expect("a name"));
        fs::write(&file, text).expect("a file");
    }
    let run = Run { place: folder.join("run").display().to_string(), out: folder.join("out"), shards: 3, parts: 2 };
    let said = run.plan_again(&data, &[]).assert_success().stderr;
    assert!(said.contains("normal_1.fq.gz") && said.contains("not divided"), "{said}");
    STEPS.iter().for_each(|step| run.all(step));
    assert_same(&run.out, &whole);
}

#[test]
fn a_step_killed_anywhere_is_done_again_to_the_same_bytes() {
    let run = Run::plan(cut(), "killed", 2, 2);
    for step in STEPS {
        let begun = Instant::now();
        run.done(step, 1);
        let took = begun.elapsed();
        for point in 0..10 {
            let mut command = run.step(step, 1);
            if step != "finish" {
                command.arg("--again");
            }
            let mut child: Child = command.stderr(Stdio::null()).spawn().expect("genuma starts");
            std::thread::sleep(took * point / 10);
            child.kill().expect("a process to kill");
            child.wait().expect("an end");
            // The object is complete: either the earlier one or that of the killed task.
            let said = crate::common::run(["step", &run.place]).assert_success().stdout;
            let line = said.lines().find(|line| line.starts_with(if step == "finish" { "recruit" } else { step }));
            let done = line.and_then(|line| line.split_whitespace().nth(1)).expect("how many are done");
            assert_eq!(done, if step == "finish" { "2" } else { "1" }, "{said}");
        }
        run.all(step);
        if step != "finish" {
            let mut again = run.step(step, 1);
            again.arg("--again");
            ended(again).assert_success();
        }
    }
    assert_same(&run.out, called());
}

#[test]
fn two_copies_of_a_step_at_once_do_no_harm() {
    let run = Run::plan(cut(), "twice", 2, 2);
    for step in STEPS {
        for number in 1..=run.tasks(step) {
            let mut both = [(); 2].map(|()| {
                let mut command = run.step(step, number);
                if step == "finish" {
                    return command;
                }
                command.arg("--again");
                command
            });
            if step == "finish" {
                // Only one run at a time may write the results; the second one fails or runs afterwards.
                both[1].args(["-o", run.out.with_file_name("second").to_str().expect("UTF-8")]);
            }
            let children = both.map(|mut command| command.spawn().expect("genuma starts"));
            for mut child in children {
                assert!(child.wait().expect("an end").success());
            }
        }
    }
    assert_same(&run.out, called());
    assert_same(&run.out.with_file_name("second"), called());
}

#[test]
fn steps_and_reads_that_do_not_fit_the_plan_are_refused() {
    let mut data = cut().clone();
    let folder = scratch("own-reads");
    for file in data.tumor.iter_mut().chain(&mut data.normal) {
        let own = folder.join(file.file_name().expect("a name"));
        fs::copy(&file, &own).expect("a copy");
        *file = own;
    }
    let run = Run::plan(&data, "faults", 2, 2);
    // Steps out of order, unknown steps, and a folder without a plan.
    assert!(
        refused(run.step("count", 1), 1).contains("scatter-1: missing; first run the step that makes it: scatter 1")
    );
    assert!(refused(run.step("recruit", 2), 1).contains("first run the step that makes it: place"));
    assert!(refused(run.step("scatter", 3), 2).contains("scatter 3: the tasks of this run have numbers 1 to 2"));
    assert!(refused(run.step("scatter", 0), 2).contains("scatter 0: the tasks of this run have numbers 1 to 2"));
    let mut number = genuma();
    number.args(["step", &run.place, "count"]);
    assert!(refused(number, 2).contains("count: give the number of the task, 1 to 2"));
    let elsewhere = Run { place: run.out.display().to_string(), ..run.clone() };
    assert!(refused(elsewhere.step("scatter", 1), 1).contains("this folder does not exist"));
    fs::create_dir_all(&run.out).expect("a folder");
    assert!(refused(elsewhere.step("scatter", 1), 1).contains("contains no plan.json"));
    // Too little memory is reported before work begins.
    let little = run.plan_again(&data, &["--memory", "64M"]);
    assert!(little.code == Some(2) && little.stderr.contains("64 MiB of memory is too little"), "{}", little.stderr);
    // Another call in the same run store is refused; the same call is accepted.
    let other = run.plan_again(&data, &["-k", "25"]);
    assert!(other.code == Some(1) && other.stderr.contains("contains the plan of another call"), "{}", other.stderr);
    run.plan_again(&data, &[]).assert_success();
    // The plan of another version.
    let plan = Path::new(&run.place).join("plan.json");
    let text = fs::read_to_string(&plan).expect("a plan");
    let version = format!("\"genuma\": \"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(text.contains(&version));
    fs::write(&plan, text.replace(&version, "\"genuma\": \"0.0.9\"")).expect("a plan");
    assert!(refused(run.step("label", 1), 1).contains("made by genuma 0.0.9, this is"));
    fs::write(&plan, &text[..text.len() / 2]).expect("a plan");
    assert!(refused(run.step("label", 1), 1).contains("plan.json"));
    fs::write(&plan, text).expect("a plan");
    // Reads that have changed.
    let reads = fs::read(&data.tumor[0]).expect("reads");
    fs::write(&data.tumor[0], reads).expect("reads");
    let mut scatter = run.step("scatter", 1);
    scatter.arg("--again");
    let said = refused(scatter, 1);
    assert!(said.contains("tumor_1.fq.gz: changed since the run was planned"), "{said}");
}

#[test]
fn damaged_and_foreign_objects_are_refused() {
    let run = Run::plan(cut(), "damaged-objects", 2, 2);
    let place = Path::new(&run.place);
    run.all("scatter");
    let object = place.join("scatter-2");
    let good = fs::read(&object).expect("an object");
    let with = |bytes: &[u8]| {
        fs::write(&object, bytes).expect("an object");
        let mut count = run.step("count", 1);
        count.arg("--again");
        refused(count, 1)
    };
    for (what, bytes) in [("cut short", &good[..good.len() - 1]), ("cut", &good[..good.len() / 2]), ("empty", &[])] {
        let said = with(bytes);
        assert!(
            said.contains("scatter-2: damaged (") && said.contains("run the step that made it again"),
            "{what}: {said}"
        );
    }
    // A changed byte of the packed reads, the k-mers, the index or the end of an object is reported by each reader.
    fs::write(&object, &good).expect("an object");
    run.before("finish");
    let stretch = |share: f64| (good.len() as f64 * share) as usize;
    for at in [0.1, 0.3, 0.5, 0.7, 0.9].map(stretch).into_iter().chain([good.len() - 30, good.len() - 5]) {
        let mut bytes = good.clone();
        bytes[at] ^= 4;
        fs::write(&object, bytes).expect("an object");
        let readers = [("count", 1), ("count", 2), ("label", 2), ("recruit", 2)];
        let said = readers.into_iter().map(|(step, number)| {
            let mut command = run.step(step, number);
            command.arg("--again");
            ended(command)
        });
        let said: Vec<RunOutput> = said.filter(|ended| ended.code != Some(0)).collect();
        let told = |ended: &RunOutput| ended.stderr.contains("scatter-2") && ended.stderr.contains("damaged");
        assert!(!said.is_empty() && said.iter().all(told), "byte {at} of {}: {said:?}", good.len());
    }
    // An object of another run, and one of another step.
    let other = Run::plan(cut(), "damaged-objects-other", 3, 2);
    other.done("scatter", 2);
    let foreign = fs::read(Path::new(&other.place).join("scatter-2")).expect("an object");
    let said = with(&foreign);
    assert!(said.contains("scatter-2: made for another plan (now shards 2, then shards 3)"), "{said}");
    let said = with(&fs::read(place.join("scatter-1")).expect("an object"));
    assert!(said.contains("scatter-2: damaged (made by another step)"), "{said}");
    // A task replaces its own invalid object.
    let mut anew = genuma();
    anew.args(["step", &run.place, "scatter", "2"]);
    let said = ended(anew).assert_success().stderr;
    assert!(said.contains("the task is done again"), "{said}");
    let mut done = genuma();
    done.args(["step", &run.place, "scatter", "2"]);
    assert!(ended(done).assert_success().stderr.contains("scatter 2: is already done"));
}

#[test]
fn a_plan_that_was_changed_is_refused() {
    let run = Run::plan(cut(), "changed-plan", 2, 2);
    let plan = Path::new(&run.place).join("plan.json");
    let good = fs::read_to_string(&plan).expect("a plan");
    let with = |text: &str| {
        fs::write(&plan, text).expect("a plan");
        refused(run.step("count", 1), 1)
    };
    for (from, to) in [
        ("\"reference\": \"", "\"referense\": \""),
        ("\"slice\": {", "\"slise\": {"),
        ("\"call\": {", "\"more\": 1, \"call\": {"),
        ("\"k\": 31", "\"k\": 30"),
        ("\"checksum\": \"", "\"checksum\": \"0"),
    ] {
        assert!(good.contains(from), "{from}: {good}");
        let said = with(&good.replacen(from, to, 1));
        assert!(said.contains("plan.json: was changed after it was planned"), "{from}: {said}");
    }
    // Without bins.
    let (before, number) = good.split_once("\"bins_per_partition\": ").expect("a grid");
    let rest = number.trim_start_matches(|c: char| c.is_ascii_digit());
    assert!(with(&format!("{before}\"bins_per_partition\": 0{rest}")).contains("was changed after it was planned"));
    // A changed character anywhere is noticed, unless the plan says the same.
    for at in (0..good.len()).step_by(good.len() / 60) {
        let old = good.as_bytes()[at];
        if old.is_ascii_whitespace() {
            continue;
        }
        let mut bytes = good.clone().into_bytes();
        bytes[at] = if old == b'1' { b'2' } else { b'1' };
        let said = with(std::str::from_utf8(&bytes).expect("ASCII"));
        assert!(said.contains("plan.json"), "{at}: {said}");
    }
    fs::write(&plan, good).expect("a plan");
    run.all("scatter");
}

/// The program that edits a plan can compute its checksum again.
#[test]
fn a_plan_with_a_right_checksum_must_be_valid_too() {
    let run = Run::plan(cut(), "edited-plan", 2, 2);
    let path = Path::new(&run.place).join("plan.json");
    let good = common::json(&path);
    let write = |mut plan: Value| {
        plan.as_object_mut().expect("an object").remove("checksum");
        plan["checksum"] = genuma_reads::md5_sum::md5_hex(plan.to_string().as_bytes()).into();
        fs::write(&path, plan.to_string()).expect("a plan");
    };
    for (place, value, words) in [
        ("/more", json!(1), "other keys"),
        ("/steps/0/more", json!(1), "other keys"),
        ("/call/grid/more", json!(1), "other keys"),
        ("/call/params/more", json!(1), "other keys"),
        ("/lanes/0/more", json!(1), "other keys"),
        ("/call/grid/bins_per_partition", json!(0), "2 partitions of 0 bins"),
        ("/call/grid/bins_per_partition", json!(u32::MAX), "bins cannot be counted"),
        ("/call/grid/num_partitions", json!(0), "0 partitions of"),
        ("/call/grid/num_partitions", json!(3), "contradict each other"),
        ("/call/shards", json!([]), "contradict each other"),
        ("/call/params/k", json!(0), "k-mers of 0 bp"),
        ("/lanes/0/sample", json!(9), "its samples are not"),
        ("/call/samples/names", json!([]), "its samples are not"),
        ("/shards", json!(3), "contradict each other"),
        ("/parts", json!(0), "contradict each other"),
        ("/steps", json!([]), "its steps are not those"),
        ("/steps/3/name", json!("sort"), "its steps are not those"),
        ("/steps/3/after", json!(["finish"]), "its steps are not those"),
        ("/steps/0/tasks", json!(0), "its steps are not those"),
        ("/steps/1/threads", json!(0), "its steps are not those"),
        ("/steps/1/memory_mb", json!(0), "its steps are not those"),
        ("/steps/1/minutes", json!(0), "its steps are not those"),
    ] {
        let mut plan = good.clone();
        let (parent, key) = place.rsplit_once('/').expect("a path");
        plan.pointer_mut(parent).expect("a place")[key] = value;
        write(plan);
        let said = refused(run.step("scatter", 1), 1);
        assert!(said.contains(words) && said.contains("plan the call again"), "{place}: {said}");
    }
    write(good);
    run.done("scatter", 1);
}

#[test]
fn a_call_that_is_planned_again_keeps_its_output_folder() {
    let run = Run::plan(cut(), "planned-again", 2, 2);
    let plan = || fs::read(Path::new(&run.place).join("plan.json")).expect("a plan");
    let first = plan();
    let other = Run { out: run.out.with_file_name("other"), ..run.clone() };
    let ended = other.plan_again(cut(), &[]);
    let words = format!("contains this call with results in {}; give -o ", run.out.display());
    assert!(ended.code == Some(1) && ended.stderr.contains(&words), "{}", ended.stderr);
    assert!(plan() == first);
    run.plan_again(cut(), &[]).assert_success();
}

#[test]
fn of_two_calls_planned_at_once_into_one_place_one_is_refused() {
    let folder = scratch("two-plans");
    for attempt in 0..4 {
        let place = folder.join(format!("run-{attempt}"));
        let plan = |k: &str| {
            let mut command = genuma();
            let place = place.to_str().expect("UTF-8");
            command.args(cut().call_with(&folder.join("out"), &["--plan", place, "--shards", "1", "-k", k]));
            command.stderr(Stdio::piped()).spawn().expect("genuma starts")
        };
        let both = [plan("31"), plan("25")].map(|child| child.wait_with_output().expect("genuma"));
        let codes: Vec<Option<i32>> = both.iter().map(|ended| ended.status.code()).collect();
        let said: String = both.iter().map(|ended| String::from_utf8_lossy(&ended.stderr).into_owned()).collect();
        assert!(codes.contains(&Some(0)) && codes.contains(&Some(1)), "{codes:?} {said}");
        assert!(said.contains("at the same time") || said.contains("the plan of another call"), "{said}");
    }
}

#[test]
fn objects_may_be_in_a_bucket_of_a_network_that_fails_now_and_then() {
    let server = match server::server() {
        Ok(server) => server,
        Err(why) => return skipped(why),
    };
    server.make("genuma");
    // Every seventh request gets "too busy", every eleventh loses its answer halfway.
    let proxy = proxy::Proxy::before(server.port, |asked| match asked.number {
        n if n % 7 == 3 => proxy::Fault::Status(503),
        n if n % 11 == 5 => proxy::Fault::Cut,
        _ => proxy::Fault::None,
    });
    let folder = scratch("bucket");
    let run = Run { place: "s3://genuma/a/run".into(), out: folder.join("out"), shards: 2, parts: 3 };
    let environment = server::options(proxy.port).environment;
    let in_bucket = |mut command: Command| {
        command.env_remove("AWS_PROFILE").envs(environment.iter().map(|(name, value)| (name, value)));
        command
    };
    let numbers = ["--shards", "2", "--partitions", "3", "--threads", "2"];
    let mut plan = genuma();
    plan.args(cut().call_with(&run.out, &[&["--plan", &run.place], &numbers[..]].concat()));
    ended(in_bucket(plan)).assert_success();
    for step in STEPS {
        (1..=run.tasks(step)).for_each(|number| drop(ended(in_bucket(run.step(step, number))).assert_success()));
    }
    assert_same(&run.out, called());
    let left = names(&folder);
    assert_eq!(left, ["out"], "what was on its way is gone");
    // One object is missing, another one is truncated.
    let gone = server::plain(server.port, "DELETE", "/genuma/a/run/scatter-2");
    assert!(gone.starts_with("HTTP/1.1 204"), "{gone}");
    let mut count = in_bucket(run.step("count", 2));
    count.arg("--again");
    let said = refused(count, 1);
    assert!(
        said.contains("s3://genuma/a/run/scatter-2: missing; first run the step that makes it: scatter 2"),
        "{said}"
    );
    ended(in_bucket(run.step("scatter", 2))).assert_success();
    proxy.follow(|asked| match asked.target.contains("scatter-2") {
        true => proxy::Fault::Shorten(5000),
        false => proxy::Fault::None,
    });
    let begun = Instant::now();
    let mut count = in_bucket(run.step("count", 2));
    count.arg("--again");
    let said = refused(count, 1);
    assert!(said.contains("scatter-2") && (said.contains("cut short") || said.contains("damaged")), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(120));
}
