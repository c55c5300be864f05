//! JSON outputs of all commands have the keys and types that docs/schema describes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use genuma_machine::topology::{SyntheticMachine, TopologySource};
use genuma_probe::measure::{UnmeasuredMachineFacts, measure_profile};
use genuma_probe::plan::{MeasurementPlan, PlanOptions};
use genuma_probe::profile::TheoreticalBandwidth;
use genuma_probe::simulated_machine::SimulatedMachine;
use serde_json::{Map, Value};

use crate::common::{Data, PATIENT, SharedFixture, bgzip, called, data, gunzip, json, names, run, scratch, text};

const SCHEMA_FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/schema");
const SCHEMA_SUFFIX: &str = ".schema.json";

/// A JSON Schema with the keywords that the schemas of genuma use. Other keywords are reported as errors.
struct Schema(Value);

impl Schema {
    fn load(name: &str) -> Schema {
        Schema(json(&Path::new(SCHEMA_FOLDER).join(format!("{name}{SCHEMA_SUFFIX}"))))
    }

    /// All differences of `value` from the schema, each with its path.
    fn errors(&self, value: &Value) -> Vec<String> {
        let mut errors = Vec::new();
        self.check(&self.0, value, "$", &mut errors);
        errors
    }

    /// The differences of `value` from the choice that fits to the deepest path; none if it fits a choice.
    fn errors_of_best_choice(&self, choices: &[Value], value: &Value, at: &str) -> Vec<String> {
        let errors_of_choice = |choice: &Value| {
            let mut errors = Vec::new();
            self.check(choice, value, at, &mut errors);
            errors
        };
        let failed: Vec<Vec<String>> = choices.iter().map(errors_of_choice).collect();
        if failed.iter().any(Vec::is_empty) {
            return Vec::new();
        }
        let depth = |errors: &Vec<String>| errors.iter().map(|error| error.find(": ")).min();
        failed.into_iter().max_by_key(depth).unwrap_or_default()
    }

    fn check(&self, schema: &Value, value: &Value, at: &str, errors: &mut Vec<String>) {
        let keywords = schema.as_object().expect("a schema is an object");
        let nothing = Map::new();
        let properties = keywords.get("properties").and_then(Value::as_object).unwrap_or(&nothing);
        for (keyword, argument) in keywords {
            match (keyword.as_str(), value) {
                ("$schema" | "$defs" | "title" | "description" | "properties", _) => {}
                ("$ref", _) => {
                    let pointer =
                        argument.as_str().and_then(|path| path.strip_prefix('#')).expect("a path in the file");
                    self.check(self.0.pointer(pointer).expect("a definition"), value, at, errors);
                }
                ("type", _) => {
                    let types = argument.as_array().map_or(std::slice::from_ref(argument), Vec::as_slice);
                    if !types.iter().any(|name| has_type(value, name.as_str().expect("a name"))) {
                        errors.push(format!("{at}: {value} is not of type {argument}"));
                    }
                }
                ("const", _) if argument == value => {}
                ("enum", _) if argument.as_array().is_some_and(|values| values.contains(value)) => {}
                ("const" | "enum", _) => errors.push(format!("{at}: {value} is not {argument}")),
                ("anyOf", _) => {
                    errors.extend(self.errors_of_best_choice(argument.as_array().expect("choices"), value, at));
                }
                ("required", Value::Object(object)) => {
                    let keys = argument.as_array().expect("keys").iter().filter_map(Value::as_str);
                    errors.extend(
                        keys.filter(|key| !object.contains_key(*key)).map(|key| format!("{at}.{key}: missing")),
                    );
                }
                ("additionalProperties", Value::Object(object)) => {
                    for (key, value) in object.iter().filter(|(key, _)| !properties.contains_key(*key)) {
                        match argument {
                            Value::Bool(false) => errors.push(format!("{at}.{key}: not in the schema")),
                            schema => self.check(schema, value, &format!("{at}.{key}"), errors),
                        }
                    }
                }
                ("items", Value::Array(items)) => {
                    for (i, item) in items.iter().enumerate() {
                        self.check(argument, item, &format!("{at}[{i}]"), errors);
                    }
                }
                ("prefixItems", Value::Array(items)) => {
                    for (i, (schema, item)) in argument.as_array().expect("schemas").iter().zip(items).enumerate() {
                        self.check(schema, item, &format!("{at}[{i}]"), errors);
                    }
                }
                ("minItems", Value::Array(items)) if items.len() as u64 >= argument.as_u64().expect("a number") => {}
                ("maxItems", Value::Array(items)) if items.len() as u64 <= argument.as_u64().expect("a number") => {}
                ("minItems" | "maxItems", Value::Array(items)) => {
                    errors.push(format!("{at}: has {} items", items.len()))
                }
                ("minimum", Value::Number(number)) if number.as_f64() >= argument.as_f64() => {}
                ("minimum", Value::Number(number)) => errors.push(format!("{at}: {number} is too small")),
                // These say nothing on values of other types.
                (
                    "required" | "additionalProperties" | "items" | "prefixItems" | "minItems" | "maxItems" | "minimum",
                    _,
                ) => {}
                _ => errors.push(format!("{at}: the test does not implement the keyword {keyword}")),
            }
        }
        if let Value::Object(object) = value {
            for (key, schema) in properties {
                if let Some(value) = object.get(key) {
                    self.check(schema, value, &format!("{at}.{key}"), errors);
                }
            }
        }
    }
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

/// Asserts that `output` fits the schema, and that the schema notices when any key at the top is renamed or missing.
#[track_caller]
pub(crate) fn assert_fits(name: &str, output: &Value) {
    let schema = Schema::load(name);
    let errors = schema.errors(output);
    assert!(errors.is_empty(), "{name}: {errors:#?}");
    let number = if name == "machine" { "version" } else { "schema" };
    assert_eq!(output[number], schema.0["properties"][number]["const"], "{name}");
    for key in output.as_object().expect("an object").keys() {
        let mut renamed = output.clone();
        let object = renamed.as_object_mut().expect("an object");
        let value = object.remove(key).expect("a key");
        object.insert(format!("{key}_"), value);
        let errors = schema.errors(&renamed);
        assert!(errors.contains(&format!("$.{key}_: not in the schema")), "{name}: {errors:?}");
        let required = schema.0["required"].as_array().is_some_and(|keys| keys.contains(&key.as_str().into()));
        assert_eq!(errors.contains(&format!("$.{key}: missing")), required, "{name}: {errors:?}");
    }
}

/// Runs genuma with `--json FILE` and returns the file's content, whatever the exit code.
fn output_of<S: AsRef<str>>(name: &str, args: &[S]) -> Value {
    let path = scratch(name).join("out.json");
    let ended = run(args.iter().map(AsRef::as_ref).chain(["--json", text(&path)]));
    assert!(path.exists(), "{}", ended.stderr);
    json(&path)
}

/// Names of the schemas, from the files.
fn schema_names() -> Vec<String> {
    let files = names(Path::new(SCHEMA_FOLDER));
    files.iter().filter_map(|file| file.strip_suffix(SCHEMA_SUFFIX)).map(str::to_owned).collect()
}

/// Calls `visit` with each schema inside `schema` and its path.
fn visit_schemas(schema: &Value, at: &str, visit: &mut impl FnMut(&str, &Value)) {
    visit(at, schema);
    for keyword in ["properties", "$defs"] {
        for (key, part) in schema[keyword].as_object().into_iter().flatten() {
            visit_schemas(part, &format!("{at}/{keyword}/{key}"), visit);
        }
    }
    for keyword in ["items", "additionalProperties"] {
        if schema[keyword].is_object() {
            visit_schemas(&schema[keyword], &format!("{at}/{keyword}"), visit);
        }
    }
    for keyword in ["anyOf", "prefixItems"] {
        for part in schema[keyword].as_array().into_iter().flatten() {
            visit_schemas(part, &format!("{at}/{keyword}"), visit);
        }
    }
}

/// A second tumour of the patient of [`data`] at low depth, for outputs with several tumours.
fn second_tumour() -> &'static Data {
    static SECOND: SharedFixture<Data> = SharedFixture::new();
    SECOND.get_or_init(|| {
        let sample = ["--depth-tumor", "12", "--depth-normal", "1", "--reads-seed", "9"];
        Data::simulate("second", &[&PATIENT[..], &sample].concat())
    })
}

/// `--tumor` twice and `--normal`, with the reads of two tumours and of the normal.
fn two_tumours() -> Vec<String> {
    let (first, second) = (data(), second_tumour());
    let owned = |paths: &[PathBuf]| paths.iter().map(|path| text(path).to_owned()).collect::<Vec<String>>();
    let [mut one, mut two] = [owned(&first.tumor), owned(&second.tumor)];
    one[0].insert_str(0, "first=");
    two[0].insert_str(0, "second=");
    let [tumor, normal] = ["--tumor", "--normal"].map(|option| vec![option.to_owned()]);
    [tumor.clone(), one, tumor, two, normal, owned(&first.normal)].concat()
}

#[test]
fn schemas_describe_every_key_and_agree_with_each_other() {
    let mut definitions: BTreeMap<String, Value> = BTreeMap::new();
    let readme = fs::read_to_string(Path::new(SCHEMA_FOLDER).join("README.md")).expect("the list of schemas");
    for name in schema_names() {
        assert!(readme.contains(&format!("({name}{SCHEMA_SUFFIX})")), "README.md lacks {name}");
        let schema = Schema::load(&name).0;
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{name}");
        let (mut used, mut wrong) = (BTreeSet::new(), Vec::new());
        visit_schemas(&schema, &name, &mut |at, part| {
            let described = part["description"].as_str().is_some_and(|text| text.len() > 3);
            if !described && at.rsplit('/').nth(1).is_some_and(|above| above == "properties") {
                wrong.push(format!("{at}: no description"));
            }
            if part["type"] == "object" && part["additionalProperties"].is_null() {
                wrong.push(format!("{at}: additionalProperties is missing"));
            }
            let keys = part["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            wrong.extend(
                keys.filter(|key| part["properties"][key].is_null()).map(|key| format!("{at}: requires {key}")),
            );
            used.extend(part["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")).map(str::to_owned));
        });
        let defined = schema["$defs"].as_object().cloned().unwrap_or_default();
        for (definition, part) in &defined {
            if !used.contains(definition) {
                wrong.push(format!("{name}: {definition} is not used"));
            }
            if definitions.entry(definition.clone()).or_insert_with(|| part.clone()) != part {
                wrong.push(format!("{name}: {definition} differs from the definition in another schema"));
            }
        }
        wrong.extend(
            used.iter()
                .filter(|used| !defined.contains_key(*used))
                .map(|used| format!("{name}: {used} is not defined")),
        );
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

#[test]
fn changed_keys_and_types_are_reported_with_their_path() {
    let summary = json(&called().join("summary.json"));
    let schema = Schema::load("summary");
    let changed = |change: fn(&mut Value)| {
        let mut changed = summary.clone();
        change(&mut changed);
        schema.errors(&changed)
    };
    assert_eq!(changed(|s| s["schema"] = 0.into()), ["$.schema: 0 is not 1"]);
    assert_eq!(
        changed(|s| s["units"][0]["cpu_s"] = "1 s".into()),
        [r#"$.units[0].cpu_s: "1 s" is not of type "number""#]
    );
    assert_eq!(changed(|s| s["k"] = 1.5.into()).len(), 1);
    assert_eq!(changed(|s| s["k"] = (-1).into()), ["$.k: -1 is too small"]);
    assert_eq!(changed(|s| s["calls"][0]["class"] = "TRA".into()).len(), 1);
    assert_eq!(changed(|s| s["calls"][0]["alleles"] = Value::Array(Vec::new())), ["$.calls[0].alleles: has 0 items"]);
    let renamed = changed(|s| {
        let stage = s["stages"][0].as_object_mut().expect("a line");
        let skipped = stage.remove("skipped").expect("a value");
        stage.insert("left_out".to_owned(), skipped);
    });
    assert_eq!(renamed, ["$.stages[0].left_out: not in the schema", "$.stages[0].skipped: missing"]);
    let deep = changed(|s| s["sample_summary"]["pair"]["coverage"][1]["depth"] = 1.into());
    assert_eq!(deep, ["$.sample_summary.pair.coverage[1].depth: not in the schema"]);
}

/// A BED file with the contigs of the genome of [`data`].
fn whole_genome_bed(folder: &Path) -> PathBuf {
    let bed = folder.join("genome.bed");
    let index = fs::read_to_string(data().folder.join("genome.fa.fai")).expect("an index of the genome");
    let line = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        format!("{}\t0\t{}\n", fields[0], fields[1])
    };
    fs::write(&bed, index.lines().map(line).collect::<String>()).expect("a file");
    bed
}

#[test]
fn summaries_of_calls_fit_their_schema() {
    let summary = json(&called().join("summary.json"));
    assert!(summary["calls"].as_array().is_some_and(|calls| !calls.is_empty()));
    assert_fits("summary", &summary);
    // Several tumours; sequences to screen for, some of which calls have; and targets.
    let out = scratch("several");
    let mut args = vec!["call".to_owned()];
    args.extend(two_tumours());
    let contigs = called().join("contigs.fa");
    let genome = data().folder.join("genome.fa");
    args.extend(["--reference", text(&genome), "--screen", text(&contigs), "-o", text(&out)].map(str::to_owned));
    args.extend(["--counters", "--targets", text(&whole_genome_bed(&scratch("several_targets")))].map(str::to_owned));
    let ended = run(args).assert_success();
    assert!(ended.stderr.contains("genuma: voluntary context switches "), "{}", ended.stderr);
    let summary = json(&out.join("summary.json"));
    assert!(summary["counters"]["process"]["user_cpu_s"].as_f64() > Some(0.0), "{}", summary["counters"]);
    assert_eq!(summary["targets"]["samples"].as_array().map(Vec::len), Some(3));
    assert!(summary["other_tumours"].is_array() && summary["known_sequences"]["screen"].is_object());
    assert!(summary["screened_calls"].as_array().is_some_and(|calls| !calls.is_empty()));
    assert_fits("summary", &summary);
}

#[test]
fn outputs_on_samples_fit_their_schema() {
    let Data { folder, tumor, .. } = data();
    let file = |name: &str| text(&folder.join(name)).to_owned();
    let genome = file("genome.fa");
    assert_fits("simulate", &json(&folder.join("simulate.json")));
    let check = [vec!["check".to_owned()], two_tumours(), vec!["--reference".to_owned(), genome.clone()]].concat();
    assert_fits("check", &output_of("check", &check));
    // The BAM of a call has the counts of its records.
    let bam = called().join("supporting.bam");
    let table = scratch("tables").join("x.gkt");
    for reads in [vec![text(&tumor[0]), text(&tumor[1])], vec![text(&bam)]] {
        let count = [&["kmers", "count", "-t", "2", "-o", text(&table)], &reads[..]].concat();
        assert_fits("count", &output_of("count", &count));
    }
    let track = ["track", &file("truth.vcf"), text(&tumor[0]), text(&tumor[1]), "--reference", &genome];
    let tracked = output_of("track", &track);
    assert!(tracked["samples"][0]["changes"].as_array().is_some_and(|changes| changes.len() > 20));
    assert_fits("track", &tracked);
    let regions = scratch("regions").join("regions.bed");
    let contig = fs::read_to_string(folder.join("genome.fa.fai")).expect("an index of the genome");
    let contig = contig.split('\t').next().expect("a name");
    fs::write(&regions, format!("{contig}\t0\t50000\tfirst\n")).expect("a file");
    let calls = called().join("somatic.vcf.gz");
    let evaluate =
        ["bench", "evaluate", &file("truth.vcf"), text(&calls), "--reference", &genome, "--regions", text(&regions)];
    assert_fits("evaluate", &output_of("evaluate", &evaluate));
}

#[test]
fn outputs_of_the_aligners_fit_their_schema() {
    let folder = scratch("aligners");
    let genome = folder.join("genome.fa");
    fs::copy(data().folder.join("genome.fa"), &genome).expect("a copy");
    run(["index", text(&genome)]).assert_success();
    let sam = folder.join("x.bam");
    let reads = &data().normal;
    let align = ["align", text(&genome), text(&reads[0]), text(&reads[1]), "--mark-duplicates", "-o", text(&sam)];
    assert_fits("align", &output_of("align", &align));
    let counted = output_of("align", &[&align[..], &["--counters"]].concat());
    assert!(counted["counters"]["process"]["minor_faults"].as_u64() > Some(0), "{}", counted["counters"]);
    assert_fits("align", &counted);

    let few = folder.join("reads.fq");
    fs::write(&few, "@a\nACGT\n+\nFFFF\n").expect("a file");
    let unmapped = "NR == 1 { print \"@SQ\\tSN:c\\tLN:9\"; print \"a\\t4\\t*\\t0\\t0\\t*\\t*\\t0\\t0\\tACGT\\tFFFF\" }";
    let aligner = ["--", "awk", unmapped];
    let out = folder.join("x.sam");
    for (name, verb) in [
        ("run", vec!["run", "--strategy", "default", "-o", text(&out)]),
        ("run", vec!["run", "--strategy", "2xdefault", "--counters", "-o", text(&out)]),
        ("advise", vec!["machine", "advise", "--trial-budget", "0"]),
        ("advise", vec!["machine", "advise", "--trial-budget", "0", "--nodes", "1"]),
    ] {
        let path = folder.join(format!("{name}.json"));
        let args = [&verb[..], &["--reads", text(&few), "--json", text(&path)], &aligner].concat();
        run(args).assert_success();
        assert_fits(name, &json(&path));
    }
    let path = folder.join("placed.json");
    run(["run", "--counters", "--json", text(&path), "--", "awk", "BEGIN { exit }"]).assert_success();
    assert_fits("run", &json(&path));
    run(["run", "--pages", "base", "--json", text(&path), "--", "sleep", "0.5"]).assert_success();
    let sampled = json(&path);
    assert_eq!(sampled["run"]["instances"][0]["huge_pages"]["huge_bytes"], 0, "{sampled}");
    assert_fits("run", &sampled);
    run(["machine", "advise", "--nodes", "1", "--json", text(&path)]).assert_success();
    assert_fits("advise", &json(&path));
}

#[test]
fn plans_fit_their_schema() {
    let summary = called().join("summary.json");
    let human = ["plan", "--genome", "3.1G", "--depth", "30,30", "--threads", "16", "--scratch", "300G"];
    let with = |more: &[&str]| human.iter().chain(more).map(|&arg| arg.to_owned()).collect::<Vec<String>>();
    let earlier = with(&["--memory", "64G", "--from", text(&summary), "--watts", "250", "--price-per-kwh", "0.3"]);
    assert_fits("forecast", &output_of("forecast", &earlier));
    let devices = output_of("accelerators", &with(&["--memory", "64G", "--accelerators"]));
    assert_eq!(devices["accelerators"].as_array().map(Vec::len), Some(3), "{devices}");
    assert_fits("forecast", &devices);
    let machines = scratch("machines").join("machines.tsv");
    let table = "name\tthreads\tmemory\twatts\tprice\nserver\t48\t512G\t549\t7000\nsmall\t4\t2G\t\t300\n";
    fs::write(&machines, table).expect("a file");
    let sizes = ["plan", "--genome", "3.1G", "--depth", "30,30", "--price-per-kwh", "0.3"];
    let compare = [&sizes[..], &["--machines", text(&machines)]].concat();
    let compared = output_of("compared", &compare);
    assert!(compared["machines"][0]["cost"]["cost_per_call"].as_f64() > Some(0.0), "{compared}");
    assert!(compared["machines"][1]["cost"].is_null(), "{compared}");
    assert_fits("machine_comparison", &compared);
    let refused = output_of("refused", &with(&["--memory", "100M"]));
    assert!(refused["forecast"]["refused"].is_string());
    assert_fits("forecast", &refused);

    let folder = scratch("distributed");
    let pack = |path: &PathBuf| bgzip(folder.join(path.file_name().expect("a name")), &gunzip(path));
    let divisible = Data { tumor: data().tumor.iter().map(pack).collect(), ..data().clone() };
    let store = folder.join("run");
    let bed = whole_genome_bed(&folder);
    let plan =
        ["--plan", text(&store), "--shards", "2", "--partitions", "2", "--threads", "2", "--targets", text(&bed)];
    run(divisible.call_with(&folder.join("out"), &plan)).assert_success();
    assert_fits("distributed_plan", &json(&store.join("plan.json")));
}

#[test]
fn descriptions_of_machines_fit_their_schema() {
    let parsed = |text: &str| -> Value { serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}")) };
    let numa = "2 nodes x 4 cores, 2 threads, 16 GiB, 1 memory-only node";
    for args in [vec!["machine", "show", "--json"], vec!["machine", "show", "--json", "--synthetic", numa]] {
        assert_fits("topology", &parsed(&run(args).assert_success().stdout));
    }
    // Exit code 1 reports that the kernel placed something elsewhere.
    assert_fits("placement", &parsed(&run(["machine", "measure", "--placement", "--json"]).stdout));

    let machine: SyntheticMachine = "2 nodes x 4 cores, 16 GiB".parse().expect("a description");
    let topology = machine.topology().expect("a topology");
    let plan = MeasurementPlan::new(&topology, &PlanOptions::quick_plan()).expect("a plan");
    let description = UnmeasuredMachineFacts {
        topology: topology.clone(),
        theory: TheoreticalBandwidth::default(),
        host: None,
        unix_time_s: None,
    };
    let profile = measure_profile(description, &plan, &mut SimulatedMachine::new_typical_server(topology), &mut |_| {})
        .expect("a profile");
    let mut written = Vec::new();
    profile.write_json(&mut written).expect("memory");
    assert_fits("machine", &serde_json::from_slice(&written).expect("JSON"));
}
