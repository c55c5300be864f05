//! A call in parts gives the bytes of a call in one process, whatever the shards and the partitions, where its objects are, and what becomes of its
//! steps meanwhile.

mod common;
#[path = "../../storage/tests/common/proxy.rs"]
#[allow(dead_code)]
mod proxy;
#[path = "../../storage/tests/common/server.rs"]
#[allow(dead_code)]
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use common::{Data, Ended, assert_same, bgzip, called, data, genuma, gunzip, names, run, scratch, skipped};

/// The reads of [`data`] in files that can be cut.
fn cut() -> &'static Data {
    static CUT: OnceLock<Data> = OnceLock::new();
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

/// A planned run.
#[derive(Debug, Clone)]
struct Run {
    place: String,
    out: PathBuf,
    shards: u32,
    parts: u32,
}

/// All steps, by name: those of each need all of those before.
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
        let said = run.plan_again(data, &[]).well().stderr;
        assert!(said.contains("shard"), "{said}");
        run
    }

    fn plan_again(&self, data: &Data, options: &[&str]) -> Ended {
        let numbers = [self.shards, self.parts].map(|n| n.to_string());
        let plan = ["--plan", &self.place, "--shards", &numbers[0], "--parts", &numbers[1], "--threads", "2"];
        run(data.call_with(&self.out, &[plan.as_slice(), options].concat()))
    }

    fn tasks(&self, step: &str) -> u32 {
        match step {
            "count" => self.parts,
            "scatter" | "label" | "recruit" => self.shards,
            _ => 1,
        }
    }

    /// The command of a step.
    fn step(&self, step: &str, number: u32) -> Command {
        let mut command = genuma();
        command.args(["step", &self.place, step, &number.to_string(), "-q"]);
        // As on machines of many users.
        command.env("TMPDIR", self.out.parent().expect("a folder"));
        command
    }

    fn done(&self, step: &str, number: u32) {
        ended(self.step(step, number)).well();
    }

    /// Does all steps of a name.
    fn all(&self, step: &str) {
        (1..=self.tasks(step)).for_each(|number| self.done(step, number));
    }

    /// Does all steps that come before one.
    fn before(&self, step: &str) {
        STEPS.iter().take_while(|name| **name != step).for_each(|name| self.all(name));
    }
}

fn ended(mut command: Command) -> Ended {
    let output = command.output().expect("genuma starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("genuma writes UTF-8");
    Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// What a step that fails says: one line.
#[track_caller]
fn refused(command: Command, code: i32) -> String {
    let Ended { code: ended, stderr, .. } = ended(command);
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
        assert_eq!(
            (plan["shards"].as_u64(), plan["parts"].as_u64()),
            (Some(shards.into()), Some(parts.into()))
        );
        for (steps, name) in plan["steps"].as_array().expect("steps").iter().zip(STEPS) {
            assert_eq!(
                (steps["name"].as_str(), steps["tasks"].as_u64()),
                (Some(name), Some(run.tasks(name).into()))
            );
        }
        STEPS.iter().for_each(|step| run.all(step));
        assert_same(&run.out, called());
        let left = names(Path::new(&run.place));
        let objects = shards * 3 + parts + 3 + 1;
        assert_eq!(left.len(), objects as usize, "{left:?}");
        assert!(names(run.out.parent().expect("a folder")).iter().all(|name| !name.starts_with('.')));
    }
}

#[test]
fn without_a_reference_and_in_other_files_it_is_the_same() {
    let folder = scratch("other-files");
    let mut data = data().clone();
    data.reference = None;
    let whole = folder.join("whole");
    common::run(data.call(&whole)).well();
    // One sample in plain text, the other in gzip that cannot be cut.
    for file in &mut data.tumor {
        let text = gunzip(file);
        *file = folder.join(file.file_stem().expect("a name"));
        fs::write(&file, text).expect("a file");
    }
    let run =
        Run { place: folder.join("run").display().to_string(), out: folder.join("out"), shards: 3, parts: 2 };
    let said = run.plan_again(&data, &[]).well().stderr;
    assert!(said.contains("normal_1.fq.gz") && said.contains("not cut"), "{said}");
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
            // What is there is whole: the one of before, or the one of the killed step.
            let said = common::run(["step", &run.place]).well().stdout;
            let line =
                said.lines().find(|line| line.starts_with(if step == "finish" { "recruit" } else { step }));
            let done = line.and_then(|line| line.split_whitespace().nth(1)).expect("how many are done");
            assert_eq!(done, if step == "finish" { "2" } else { "1" }, "{said}");
        }
        run.all(step);
        if step != "finish" {
            let mut again = run.step(step, 1);
            again.arg("--again");
            ended(again).well();
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
                // Results are one run's at a time, and the second is told so or comes after.
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
fn what_does_not_fit_is_told_in_a_line() {
    let mut data = cut().clone();
    let folder = scratch("own-reads");
    for file in data.tumor.iter_mut().chain(&mut data.normal) {
        let own = folder.join(file.file_name().expect("a name"));
        fs::copy(&file, &own).expect("a copy");
        *file = own;
    }
    let run = Run::plan(&data, "faults", 2, 2);
    let place = Path::new(&run.place);
    // Steps out of order, steps that there are not, no run at all.
    assert!(
        refused(run.step("count", 1), 1)
            .contains("scatter-1: not there; do the step that makes it first: scatter 1")
    );
    assert!(refused(run.step("recruit", 2), 1).contains("do the step that makes it first: place"));
    assert!(refused(run.step("scatter", 3), 2).contains("scatter 3: there are 1 to 2"));
    assert!(refused(run.step("scatter", 0), 2).contains("scatter 0: there are 1 to 2"));
    let mut number = genuma();
    number.args(["step", &run.place, "count"]);
    assert!(refused(number, 2).contains("count: which? Give a number, 1 to 2"));
    let elsewhere = Run { place: run.out.display().to_string(), ..run.clone() };
    assert!(refused(elsewhere.step("scatter", 1), 1).contains("no such folder"));
    fs::create_dir_all(&run.out).expect("a folder");
    assert!(refused(elsewhere.step("scatter", 1), 1).contains("holds no plan.json"));
    // Too little memory is told before anything is done.
    let little = run.plan_again(&data, &["--memory", "64M"]);
    assert!(
        little.code == Some(2) && little.stderr.contains("64 MiB of memory are too little"),
        "{}",
        little.stderr
    );
    // Another call in the same place; the same call is welcome.
    let other = run.plan_again(&data, &["-k", "25"]);
    assert!(
        other.code == Some(1) && other.stderr.contains("holds the plan of another call"),
        "{}",
        other.stderr
    );
    run.plan_again(&data, &[]).well();

    run.all("scatter");
    let object = place.join("scatter-2");
    let good = fs::read(&object).expect("an object");
    let with = |bytes: &[u8]| {
        fs::write(&object, bytes).expect("an object");
        let mut count = run.step("count", 1);
        count.arg("--again");
        refused(count, 1)
    };
    for (what, bytes) in
        [("cut short", &good[..good.len() - 1]), ("cut", &good[..good.len() / 2]), ("empty", &[])]
    {
        let said = with(bytes);
        assert!(
            said.contains("scatter-2: damaged (") && said.contains("do the step that made it again"),
            "{what}: {said}"
        );
    }
    // A byte of the copy of the reads, of the k-mers, of what lies where, of the end: whoever reads it tells.
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
        let said: Vec<Ended> = said.filter(|ended| ended.code != Some(0)).collect();
        let told = |ended: &Ended| ended.stderr.contains("scatter-2") && ended.stderr.contains("damaged");
        assert!(!said.is_empty() && said.iter().all(told), "byte {at} of {}: {said:?}", good.len());
    }
    // That of another run, and another step's.
    let other = Run::plan(&data, "faults-other", 3, 2);
    other.done("scatter", 2);
    let foreign = fs::read(Path::new(&other.place).join("scatter-2")).expect("an object");
    let said = with(&foreign);
    assert!(said.contains("scatter-2: made for another plan (now shards 2, then shards 3)"), "{said}");
    let said = with(&fs::read(place.join("scatter-1")).expect("an object"));
    assert!(said.contains("scatter-2: damaged (another step's)"), "{said}");
    // One's own that is of no use is made anew.
    let mut anew = genuma();
    anew.args(["step", &run.place, "scatter", "2"]);
    let said = ended(anew).well().stderr;
    assert!(said.contains("so it is done now"), "{said}");
    let mut done = genuma();
    done.args(["step", &run.place, "scatter", "2"]);
    assert!(ended(done).well().stderr.contains("scatter 2: done already"));
    // Another version's plan.
    let plan = place.join("plan.json");
    let text = fs::read_to_string(&plan).expect("a plan");
    let version = format!("\"genuma\": \"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(text.contains(&version));
    fs::write(&plan, text.replace(&version, "\"genuma\": \"0.0.9\"")).expect("a plan");
    assert!(refused(run.step("label", 1), 1).contains("made by genuma 0.0.9, this is"));
    fs::write(&plan, &text[..text.len() / 2]).expect("a plan");
    assert!(refused(run.step("label", 1), 1).contains("plan.json"));
    fs::write(&plan, text).expect("a plan");
    // Reads that changed.
    let reads = fs::read(&data.tumor[0]).expect("reads");
    fs::write(&data.tumor[0], reads).expect("reads");
    let mut scatter = run.step("scatter", 1);
    scatter.arg("--again");
    let said = refused(scatter, 1);
    assert!(said.contains("tumor_1.fq.gz: changed since the run was planned"), "{said}");
}

#[test]
fn objects_may_be_in_a_bucket_of_a_network_that_fails_now_and_then() {
    let server = match server::server() {
        Ok(server) => server,
        Err(why) => return skipped(why),
    };
    server.make("genuma");
    // Every seventh request meets a server that is too busy, every eleventh loses its answer in the middle.
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
    let numbers = ["--shards", "2", "--parts", "3", "--threads", "2"];
    let mut plan = genuma();
    plan.args(cut().call_with(&run.out, &[&["--plan", &run.place], &numbers[..]].concat()));
    ended(in_bucket(plan)).well();
    for step in STEPS {
        (1..=run.tasks(step)).for_each(|number| drop(ended(in_bucket(run.step(step, number))).well()));
    }
    assert_same(&run.out, called());
    let left = names(&folder);
    assert_eq!(left, ["out"], "what was on its way is gone");
    // An object that is gone, and one that is cut short.
    let gone = server::plain(server.port, "DELETE", "/genuma/a/run/scatter-2");
    assert!(gone.starts_with("HTTP/1.1 204"), "{gone}");
    let mut count = in_bucket(run.step("count", 2));
    count.arg("--again");
    let said = refused(count, 1);
    assert!(
        said.contains("s3://genuma/a/run/scatter-2: not there; do the step that makes it first: scatter 2"),
        "{said}"
    );
    ended(in_bucket(run.step("scatter", 2))).well();
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
