//! `genuma plan`: forecasts from sizes and from files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::common::{Data, RunOutput, called, data, genuma, gunzip, json, records, run, scratch, text};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A human genome, and sufficient resources.
const HUMAN: [&str; 11] =
    ["plan", "--genome", "3.1G", "--depth", "30,30", "--threads", "16", "--memory", "64G", "--scratch", "300G"];

fn plan(args: &[&str]) -> RunOutput {
    run(HUMAN.iter().chain(args))
}

/// The JSON that a run with `--json` writes.
fn written(args: impl IntoIterator<Item = String>, name: &str) -> (RunOutput, Value) {
    let path = scratch(name).join("plan.json");
    let json = ["--json".to_owned(), path.to_str().expect("UTF-8").to_owned()];
    let ended = run(args.into_iter().chain(json));
    let plan = fs::read(path).expect("a plan");
    (ended, serde_json::from_slice(&plan).expect("JSON"))
}

/// The forecast of a call of these reads.
fn of_files(data: &Data, args: &[&str], name: &str) -> (RunOutput, Value) {
    let call = data.call(Path::new("calls"));
    written(
        ["plan".to_owned()].into_iter().chain(call.into_iter().skip(1)).chain(args.iter().map(|&a| a.to_owned())),
        name,
    )
}

#[test]
fn sizes_are_enough_for_a_plan() {
    let said = plan(&["--watts", "250", "--price-per-kwh", "0.3", "--price-per-hour", "1"]).assert_success().stdout;
    for part in [
        "tumour 93.0 Gbp, normal 93.0 Gbp",
        "16 threads, 64 GiB of memory, 300 GiB of scratch",
        "\nreference ",
        "\ncount ",
        "\nassemble ",
        "\nplace ",
        "\nrecruit ",
        "\njudge ",
        "\nwrite ",
        "\nall ",
        "\npartitions  1: ",
        "\npacked      95.3 GiB: later passes read packed reads\n",
        "\nscratch ",
        "Wh at 250 W",
        "\ncost ",
        "or give earlier runs on it with --from",
        "\nfits\n",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(plan(&[]).assert_success().stdout.contains("estimated from CPU time and memory; --watts gives the power"));
    // Devices shorten counting if the threads are few. With many, reading the files takes as long with each of them.
    for (threads, is_shorter) in [("4", true), ("64", false)] {
        let mut args = HUMAN.map(str::to_owned);
        threads.clone_into(&mut args[6]);
        let (ended, forecast) = written(args.into_iter().chain(["--accelerators".to_owned()]), "accelerators");
        let said = ended.assert_success().stdout;
        for part in ["\nk-mers counted by  ", "measured on an NVIDIA H200", "simulated, no card was tried"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let ways = &forecast["accelerators"];
        let values = |key: &str| [0, 1, 2].map(|way| ways[way][key].as_f64().expect("a number"));
        let ([by_threads, gpu, fpga], cpu_s) = (values("wall_s"), values("cpu_s"));
        assert_eq!(fpga < gpu && gpu < by_threads, is_shorter, "{ways}");
        assert!(cpu_s.is_sorted_by(|a, b| a > b), "{ways}");
    }
    let priced = plan(&["--price-per-kwh", "1000"]).assert_success().stdout;
    assert!(priced.contains("\ncost "), "{priced}");
}

#[test]
fn what_does_not_fit_is_told_with_what_to_change() {
    let small = ["plan", "--genome", "3.1G", "--depth", "30,30", "--threads", "16", "--scratch", "100G"];
    let refused = run(small.iter().chain(&["--memory", "2G"]));
    assert_eq!(refused.code, Some(1), "{}", refused.stdout);
    assert!(refused.stdout.contains("does not fit: 2 GiB of memory is too little"), "{}", refused.stdout);
    assert!(refused.stderr.contains("does not fit: give --memory 3.3G"), "{}", refused.stderr);
    assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);

    let over = run(small.iter().chain(&["--memory", "4G"]));
    assert_eq!(over.code, Some(1), "{}", over.stdout);
    assert!(over.stdout.contains("more than --memory: give --memory "), "{}", over.stdout);

    let less = run(small.iter().chain(&["--memory", "64G"])).assert_success().stdout;
    let none = run(small[..7].iter().chain(&["--scratch", "0", "--memory", "64G"])).assert_success().stdout;
    for said in [less, none] {
        assert!(!said.contains("partitions  1"), "{said}");
        assert!(said.contains("one pass is enough"), "{said}");
    }
}

#[test]
fn files_are_looked_at() {
    let means = ["--threads", "2", "--memory", "2G", "--scratch", "1G"];
    let (ended, plan) = of_files(data(), &means, "files");
    let said = ended.assert_success().stdout;
    let summary = fs::read(called().join("summary.json")).expect("a summary");
    let summary: Value = serde_json::from_slice(&summary).expect("JSON");
    for sample in 0..2 {
        let number = |of: &Value| of[sample].as_f64().expect("a number");
        let [planned, read] = [number(&plan["input"]["bases"]), number(&summary["bases"])];
        assert!((planned / read - 1.0).abs() < 0.1, "{planned} {read}");
    }
    let length: u64 = summary["sequences"].as_array().into_iter().flatten().filter_map(|s| s[1].as_u64()).sum();
    assert_eq!(plan["input"]["reference_bases"], length);
    assert!(said.contains("in reads of 150, a reference of "), "{said}");
    assert_eq!(plan["forecast"]["partitions"], 1);
    let copied = plan["forecast"]["packed_bytes"].as_u64().expect("a number");
    let took = summary["stages"].as_array().into_iter().flatten();
    let took = took.filter(|line| line["description"].as_str().is_some_and(|what| what.contains("packed reads")));
    let took: Vec<u64> = took.filter_map(|line| line["count"].as_u64()).collect();
    let [pairs] = took[..] else { panic!("one line, not {took:?}") };
    // For 300 bases: two bits a base, four to eight qualities, and a name.
    assert!((250..400).contains(&(copied / pairs)), "{copied} {pairs}");
    assert_eq!(plan["forecast"]["fits"], true);
    // Nothing was called.
    assert!(!Path::new("calls").exists());

    // The length is also in the index.
    let fasta = data().reference.clone().expect("a reference");
    let folder = scratch("indexed");
    let mut indexed = data().clone();
    let copy = folder.join("genome.fa");
    fs::copy(fasta, &copy).expect("a copy");
    fs::write(folder.join("genome.fa.fai"), "chr1\t1000\t6\t60\t61\nchr2\t234\t6\t60\t61\n").expect("an index");
    indexed.reference = Some(copy);
    assert_eq!(of_files(&indexed, &means, "index").1["input"]["reference_bases"], 1234);
}

/// The reads of a pair of files, half in each of two BAM lanes.
fn in_two_lanes(folder: &Path, name: &str, reference: &Path, mates: &[PathBuf]) -> Vec<PathBuf> {
    let mates: Vec<Vec<u8>> = mates.iter().map(|path| gunzip(path)).collect();
    let mates: Vec<Vec<&[u8]>> = mates.iter().map(|reads| records(reads)).collect();
    let lane = |lane: usize| {
        let half = mates[0].len() / 2;
        let own = if lane == 0 { 0..half } else { half..mates[0].len() };
        let files: Vec<String> = (1..)
            .zip(&mates)
            .map(|(mate, reads)| {
                let path = folder.join(format!("{name}_{lane}_{mate}.fq"));
                fs::write(&path, reads[own.clone()].concat()).expect("written");
                path.to_str().expect("UTF-8").to_owned()
            })
            .collect();
        let (group, bam) = (format!("ID:{lane}\\tSM:{name}"), folder.join(format!("{name}_{lane}.bam")));
        let [reference, out] = [reference, &bam].map(|path| path.to_str().expect("UTF-8"));
        run(["align", reference, &files[0], &files[1], "-R", &group, "-o", out]).assert_success();
        bam
    };
    vec![lane(0), lane(1)]
}

/// With evidence about the pair, a panel and several BAM lanes.
#[test]
fn memory_is_as_planned() {
    let size = ["--genome-length", "1500000", "--contigs", "2", "--seed", "8"];
    let made = Data::simulate("memory", &[&size[..], &["--snvs", "40", "--indels", "10", "--svs", "2"]].concat());
    let reference = made.reference.clone().expect("a reference");
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    run(["index".to_owned(), text(&reference)]).assert_success();
    let [one, panel] = ["one.gkt", "panel.gkt"].map(|name| text(&made.folder.join(name)));
    run(["kmers", "count", "-q", &text(&made.normal[0]), &text(&made.normal[1]), "-o", &one]).assert_success();
    run(["kmers", "union", "-q", "--counts", "samples", &one, &one, "-o", &panel]).assert_success();
    let lanes = |name, mates: &[PathBuf]| in_two_lanes(&made.folder, name, &reference, mates);
    let (normal, tumor) = (lanes("normal", &made.normal), lanes("tumor", &made.tumor));
    let data = Data { normal, tumor, ..made.clone() };
    let means = ["--threads", "2", "--memory", "1G", "--scratch", "1G"];
    let options = [&means[..], &["--panel", &panel]].concat();
    let (ended, plan) = of_files(&data, &options, "memory-plan");
    assert!(ended.assert_success().stdout.contains("\npanel "));
    assert_eq!((&plan["input"]["num_aligned_files"], &plan["input"]["num_files"]), (&Value::from(4), &Value::from(4)));

    let out = made.folder.join("calls");
    run(data.call_with(&out, &options)).assert_success();
    let summary = json(&out.join("summary.json"));
    let units = |of: &Value| of.as_array().expect("units").clone();
    let (planned, took) = (units(&plan["forecast"]["units"]), units(&summary["units"]));
    let names = |units: &[Value]| -> Vec<String> {
        let own = units.iter().filter(|unit| unit["name"] != "reference");
        own.map(|unit| unit["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert!(names(&took).iter().all(|name| names(&planned).contains(name)), "{took:?}");
    let peak = |units: &[Value]| units.iter().filter_map(|unit| unit["peak_bytes"].as_f64()).fold(0.0, f64::max);
    let (planned, took) = (peak(&planned), peak(&took));
    // Without evidence and lanes the forecast would be a fifth too low.
    assert!((0.9..1.4).contains(&(planned / took)), "{planned} {took}");
}

#[test]
fn earlier_runs_say_what_this_machine_does() {
    let summary = called().join("summary.json");
    let means = ["--threads", "2", "--memory", "2G", "--scratch", "1G"];
    let from = [&means[..], &["--from", text(&summary), text(&summary)]].concat();
    let (ended, plan) = of_files(data(), &from, "from");
    assert!(ended.assert_success().stdout.contains("the medians of 2 earlier runs"));
    let ran = json(&summary);
    let cpu = |units: &Value| {
        let unit = units.as_array().into_iter().flatten().find(|unit| unit["name"] == "count");
        unit.and_then(|unit| unit["cpu_s"].as_f64()).expect("a unit")
    };
    // The forecast of the same reads, calibrated with the run, is what the run took.
    let [planned, took] = [cpu(&plan["forecast"]["units"]), cpu(&ran["units"])];
    assert!((planned / took - 1.0).abs() < 0.1, "{planned} {took}");
}

#[test]
fn a_measured_machine_scales_all_times() {
    let work = scratch("plan_measure");
    fs::create_dir_all(&work).expect("a folder");
    let options =
        ["plan", "--genome", "100M", "--depth", "30,30", "--threads", "2", "--memory", "4G", "--scratch", "40G"];
    let forecast = |name: &str, more: &[&str]| {
        let file = work.join(format!("{name}.json"));
        let ended =
            run([&options[..], more, &["--work", text(&work), "--json", text(&file)]].concat()).assert_success();
        let written = json(&file);
        fs::remove_file(&file).expect("a file");
        (ended.stdout, written)
    };
    let (said, built_in) = forecast("built_in", &[]);
    assert!(said.contains("with --measure") && built_in["machine_speed"].is_null(), "{said}");
    let (said, measured) = forecast("measured", &["--measure"]);
    let speed = |key: &str| measured["machine_speed"][key].as_f64().expect("a number");
    let ratio = speed("cpu_s") / speed("cpu_s_on_machine_of_rates");
    assert!(said.contains(&format!("this machine takes {ratio:.2} times")), "{said}");
    let cpu_s = |forecast: &Value| forecast["forecast"]["units"][1]["cpu_s"].as_f64().expect("a number");
    assert!((cpu_s(&measured) / cpu_s(&built_in) / ratio - 1.0).abs() < 1e-6, "{measured}");
    // Reads and calls of the measurement are removed.
    assert_eq!(fs::read_dir(&work).expect("a folder").count(), 0);
    let both = run(["plan", "--genome", "1M", "--depth", "30,30", "--measure", "--from", "x"]);
    assert_eq!(both.code, Some(2), "{}", both.stderr);
}

#[test]
fn an_interrupted_measurement_leaves_nothing() {
    let work = scratch("plan_interrupted");
    let mut plan = genuma();
    plan.args(["plan", "--genome", "1M", "--depth", "30,30", "--memory", "4G", "--measure", "--work", text(&work)]);
    let mut child = plan.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("genuma starts");
    let start = Instant::now();
    while fs::read_dir(&work).expect("a folder").count() == 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "the measurement makes no folder");
        thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&child), Signal::TERM).expect("a process to signal");
    assert!(!child.wait().expect("an end").success());
    assert_eq!(fs::read_dir(&work).expect("a folder").count(), 0);
}

#[test]
fn machines_are_compared() {
    let folder = scratch("plan_machines");
    let (table, page) = (folder.join("machines.tsv"), folder.join("machines.html"));
    let machines = [
        "name\tthreads\tmemory\tscratch\tcpu_time\twatts\tprice\tprice_per_hour",
        "server\t48\t512G\t2T\t1\t549\t7000\t-",
        "desktop\t12\t32G\t1T\t1\t120\t1650\t-",
        "cloud\t32\t64G\t1T\t1\t-\t-\t1.5",
        "old PC\t4\t2G\t200G\t2\t90\t200\t-",
    ];
    fs::write(&table, machines.join("\n") + "\n").expect("a file");
    let sizes = ["plan", "--genome", "3.1G", "--depth", "60,30", "--machines", text(&table)];
    let said = run([&sizes[..], &["--calls", "5000", "--price-per-kwh", "0.3", "--html", text(&page)]].concat());
    let said = said.assert_success().stdout;
    for part in ["\nserver ", "\ndesktop ", "\ncloud ", "\nold PC: does not fit: ", "h*  ", "at 0.3 a kWh", "5,000"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let html = fs::read_to_string(&page).expect("a page");
    assert!(html.contains("Energy of a call") && html.contains("old PC"), "{html}");
    // The forecast of a machine is the one for its threads, memory and scratch space.
    let json_of = |name: &str, args: &[&str]| written(args.iter().map(|&arg| arg.to_owned()), name).1;
    let compared = json_of("compared", &sizes);
    let resources = ["--threads", "12", "--memory", "32G", "--scratch", "1T", "--watts", "120"];
    let alone = json_of("alone", &[&sizes[..5], &resources].concat());
    let desktop = &compared["machines"][1];
    assert_eq!(desktop["forecast"], alone["forecast"]);
    let kwh = |value: &Value| value.as_f64().expect("a number");
    assert!((kwh(&desktop["cost"]["energy_kwh"]) / kwh(&alone["energy_kwh"]) - 1.0).abs() < 1e-9);
    // No machine is large enough.
    fs::write(&table, [machines[0], machines[4]].join("\n")).expect("a file");
    let refused = run(sizes);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("fits on no machine"), "{}", refused.stderr);
}

#[test]
fn a_power_log_gives_the_energy() {
    let folder = scratch("power_log");
    let log = folder.join("power.tsv");
    let call = |readings: &str| {
        fs::write(&log, readings).expect("a file");
        let out = folder.join("calls");
        let ended = run(data().call_with(&out, &["--threads", "2", "--memory", "2G", "--power-log", text(&log)]));
        let timeline = out.join("summary.json").exists().then(|| json(&out.join("summary.json"))["timeline"].take());
        (ended, timeline)
    };
    let (wrong, _) = call("now 100\n");
    assert!(wrong.code == Some(1) && wrong.stderr.contains("line 1: not a time"), "{}", wrong.stderr);
    // Readings of 100 W, from a minute ago until a minute after the call will have ended.
    let now_s = SystemTime::UNIX_EPOCH.elapsed().expect("a time after 1970").as_secs();
    let readings: String = (0..20).map(|i| format!("{} 100\n", now_s - 60 + 60 * i)).collect();
    let (ended, timeline) = call(&readings);
    ended.assert_success();
    let timeline = timeline.expect("a summary");
    assert_eq!(timeline["energy_source"], "power_log");
    let number = |value: &Value| value.as_f64().expect("a number");
    let samples = timeline["samples"].as_array().expect("samples");
    let last = samples.last().expect("a sample");
    let energy_j = number(&timeline["energy_j"]);
    assert!((energy_j / number(&last["elapsed_s"]) - 100.0).abs() < 0.01, "{timeline}");
    // Units share the energy of the whole call.
    let starts = timeline["units"].as_array().expect("units");
    let at: Vec<f64> = starts.iter().map(|unit| number(&unit["at"]["energy_j"])).collect();
    assert!(at.len() > 3 && at.is_sorted() && at[at.len() - 1] < energy_j, "{at:?}");
    let (ended, timeline) = call("1000000000 100\n1000000060 100\n");
    let said = ended.assert_success().stderr;
    assert!(said.contains("no reading of the power"), "{said}");
    assert_ne!(timeline.expect("a summary")["energy_source"], "power_log");
}

#[test]
fn a_dry_run_of_a_call_says_what_plan_says() {
    let out = scratch("dry").join("calls");
    let options = ["--threads", "2", "--memory", "2G", "--scratch", "1G"];
    let call = data().call_with(&out, &[&options[..], &["--strict", "--dry-run"]].concat());
    let mut plan = data().call_with(&out, &options);
    plan[0] = "plan".to_owned();
    let said = run(&call).assert_success().stdout;
    assert_eq!(said, run(&plan).assert_success().stdout);
    assert!(!out.exists());
    let refused = run(call.iter().map(String::as_str).chain(["--resume"]));
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
}

#[test]
fn a_dry_run_has_the_limits_and_the_names_of_the_call() {
    let out = scratch("dry_limits").join("calls");
    let dry = |options: &[&str]| run(data().call_with(&out, &[options, &["--threads", "2", "--dry-run"]].concat()));
    let capped = dry(&["--memory", "9000T", "--scratch", "9000T"]).assert_success();
    for limit in ["--memory: ", "--scratch: "] {
        assert!(capped.stderr.contains(limit), "{}", capped.stderr);
    }
    // What the call refuses, its dry run refuses too.
    let second = data().tumor.iter().map(|path| path.to_str().expect("UTF-8"));
    let two: Vec<&str> = ["--tumor-name", "X", "--tumor"].into_iter().chain(second).collect();
    let refused = run(data().call_with(&out, &two));
    let dry = dry(&two);
    let reason = |stderr: &str| stderr.lines().last().map(str::to_owned);
    assert_ne!(refused.code, Some(0));
    assert_eq!((dry.code, reason(&dry.stderr)), (refused.code, reason(&refused.stderr)));
}

#[test]
fn a_dry_run_checks_every_input_of_the_call() {
    let folder = scratch("dry_inputs");
    let (out, malformed) = (folder.join("calls"), folder.join("malformed"));
    fs::write(&malformed, "chr1\tnot\ta\tnumber\n").expect("a file");
    let malformed = malformed.to_str().expect("UTF-8");
    for (option, file) in [
        ("--targets", malformed),
        ("--gff", malformed),
        ("--signatures", malformed),
        ("--known", "/none.vcf"),
        ("--screen", "/none.fa"),
    ] {
        let options = [option, file];
        let refused = run(data().call_with(&out, &options));
        let dry = run(data().call_with(&out, &[&options[..], &["--dry-run"]].concat()));
        let reason = |stderr: &str| stderr.lines().last().map(str::to_owned);
        assert_ne!(refused.code, Some(0), "{option}");
        assert_eq!((dry.code, reason(&dry.stderr)), (refused.code, reason(&refused.stderr)), "{option}");
        assert!(dry.stderr.contains(file) && dry.stdout.is_empty() && !out.exists(), "{option}: {}", dry.stderr);
    }
}

#[test]
fn what_is_wrong_is_told() {
    let report = called().join("report.html");
    let report = report.to_str().expect("UTF-8");
    for (args, code, words) in [
        (&["plan"][..], 2, "--tumor"),
        (&["plan", "--genome", "3.1G"], 2, "--depth"),
        (&["plan", "--depth", "30,30"], 2, "--genome"),
        (&["plan", "--genome", "3.1X", "--depth", "30,30"], 2, "such as 3.1G"),
        (&["plan", "--genome", "3.1G", "--depth", "30"], 2, "such as 60,30"),
        (&["plan", "--genome", "3.1G", "--depth", "30,-1"], 2, "such as 60,30"),
        (&["plan", "--genome", "3.1G", "--depth", "30,30", "--tumor", "x"], 2, "cannot be used with"),
        (&["plan", "--tumor", "a", "--normal", "b"], 1, ": cannot read"),
        (&["plan", "--tumor", "/none1", "/none2", "--normal", "/none3", "/none4"], 1, "/none"),
        (&["plan", "--genome", "1M", "--depth", "30,30", "--watts=-1"], 2, "from 0 on"),
        (&["plan", "--genome", "1M", "--depth", "30,30", "--machines", "/none"], 1, "/none: cannot read"),
        (
            &["plan", "--genome", "1M", "--depth", "30,30", "--machines", "/none", "--threads", "2"],
            2,
            "cannot be used with",
        ),
        (&["plan", "--genome", "1M", "--depth", "30,30", "--calls", "2"], 2, "--machines"),
        (&["plan", "--genome", "1M", "--depth", "30,30", "--from", "/none"], 1, "/none: cannot read"),
        (&["plan", "--genome", "1M", "--depth", "30,30", "--from", report], 1, "is no summary.json"),
        (&["plan", "--genome", "1M", "--depth", "30,30", "--json", "/none/x"], 1, "/none/x"),
    ] {
        let ended = run(args);
        assert_eq!(ended.code, Some(code), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{args:?}");
    }
}
