//! The house has floors: each crate of the workspace may use only the crates below it.
//!
//! The table is the one in ARCHITECTURE.md. A crate that is not in it, or an edge that the table does not name (build and
//! test dependencies count too), fails this test.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Each crate, by the name of its folder, and the crates of the workspace that it may depend on.
const FLOORS: &[(&str, &[&str])] = &[
    ("work", &[]),
    ("machine", &[]),
    ("farm", &["machine"]),
    ("probe", &["machine"]),
    ("flash", &["work", "machine"]),
    ("reads", &["work"]),
    ("kmers", &["work", "reads", "machine", "farm"]),
    ("align", &["work", "reads", "machine", "farm"]),
    ("somatic", &["work", "reads", "kmers", "align"]),
    ("simulate", &["work", "reads"]),
    ("strategy", &["work", "reads", "machine", "probe"]),
    ("faults", &[]),
];

/// The door: it may depend on every crate, and no crate on it.
const DOOR: &str = "cli";

/// Crate `user` depends on crate `used`; both are names of folders.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    user: String,
    used: String,
}

/// What `cargo metadata` says of the workspace: its crates and the edges between them.
#[derive(Debug, Default)]
struct House {
    crates: BTreeSet<String>,
    edges: BTreeSet<Edge>,
}

impl House {
    fn of(metadata: &Value) -> House {
        let mut house = House::default();
        for package in list(metadata, "packages") {
            let manifest = package["manifest_path"].as_str().expect("a package has a manifest");
            let user = folder(Path::new(manifest).parent().expect("a manifest lies in a folder"));
            // Only dependencies inside the workspace have a path.
            let used = list(package, "dependencies").iter().filter_map(|d| d["path"].as_str());
            let edges = used.map(|path| Edge { user: user.clone(), used: folder(Path::new(path)) });
            house.edges.extend(edges);
            house.crates.insert(user);
        }
        house
    }

    /// One line for each thing that the table does not allow.
    fn breaches(&self) -> Vec<String> {
        let unknown = self.crates.iter().filter(|name| *name != DOOR && floor(name).is_none());
        let unknown = unknown.map(|name| format!("crate '{name}' is not in the table of layering.rs"));
        let forbidden = self.edges.iter().filter(|edge| !allowed(edge));
        let forbidden = forbidden.map(|edge| format!("'{}' may not depend on '{}'", edge.user, edge.used));
        unknown.chain(forbidden).collect()
    }
}

fn floor(name: &str) -> Option<&'static [&'static str]> {
    FLOORS.iter().find(|(crate_name, _)| *crate_name == name).map(|(_, below)| *below)
}

fn allowed(edge: &Edge) -> bool {
    if edge.user == DOOR {
        return floor(&edge.used).is_some();
    }
    floor(&edge.user).is_some_and(|below| below.contains(&edge.used.as_str()))
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("cargo metadata has no list '{key}'"))
}

fn folder(path: &Path) -> String {
    path.file_name().expect("a crate's folder has a name").to_string_lossy().into_owned()
}

fn workspace() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata writes JSON")
}

#[test]
fn every_edge_of_the_workspace_is_in_the_table() {
    let house = House::of(&workspace());
    assert!(house.crates.contains(DOOR), "the workspace has a door: {:?}", house.crates);
    let reads_to_the_door = Edge { user: DOOR.into(), used: "reads".into() };
    assert!(house.edges.contains(&reads_to_the_door), "edges are found: {:?}", house.edges);
    assert_eq!(house.breaches(), Vec::<String>::new());
}

#[test]
fn an_edge_that_climbs_is_reported() {
    let mut metadata = workspace();
    let packages = metadata["packages"].as_array_mut().expect("packages");
    let reads = packages.iter_mut().find(|p| p["name"] == "genuma-reads").expect("the crate reads");
    let climbing =
        serde_json::json!({ "name": "genuma-somatic", "kind": "dev", "path": "/w/genomics/somatic" });
    reads["dependencies"].as_array_mut().expect("dependencies").push(climbing);
    assert_eq!(House::of(&metadata).breaches(), ["'reads' may not depend on 'somatic'"]);
}

#[test]
fn nothing_depends_on_the_door() {
    let edge = |user: &str, used: &str| Edge { user: user.into(), used: used.into() };
    assert!(!allowed(&edge("simulate", DOOR)));
    assert!(!allowed(&edge(DOOR, DOOR)));
    assert!(allowed(&edge(DOOR, "somatic")));
}

#[test]
fn a_crate_that_the_table_does_not_know_is_reported() {
    let metadata = serde_json::json!({ "packages": [
        { "manifest_path": "/w/genomics/reads/Cargo.toml", "dependencies": [] },
        { "manifest_path": "/w/attic/Cargo.toml", "dependencies": [{ "path": "/w/genomics/reads" }] },
    ] });
    let breaches = House::of(&metadata).breaches();
    assert_eq!(
        breaches,
        ["crate 'attic' is not in the table of layering.rs", "'attic' may not depend on 'reads'"]
    );
}

#[test]
fn the_table_has_no_cycle_and_names_only_its_own_crates() {
    // A crate is settled when all it may use is settled: a cycle never settles.
    let mut settled: BTreeSet<&str> = BTreeSet::new();
    for _ in FLOORS {
        let ready = FLOORS.iter().filter(|(_, below)| below.iter().all(|name| settled.contains(name)));
        let ready: Vec<&str> = ready.map(|(name, _)| *name).collect();
        settled.extend(ready);
    }
    assert_eq!(settled.len(), FLOORS.len(), "settled: {settled:?}");
}
