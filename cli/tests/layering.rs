//! The house has floors: each crate of the workspace may use only the crates below it.
//!
//! The table is the one in ARCHITECTURE.md. A crate that is not in it, or an edge that the table does not name (build and
//! test dependencies count too), fails this test. And no room leads back to itself: modules of a crate use each other in one direction.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Each crate, by the name of its folder, and the crates of the workspace that it may depend on.
const FLOORS: &[(&str, &[&str])] = &[
    ("work", &[]),
    ("storage", &["work"]),
    ("machine", &[]),
    ("farm", &["machine"]),
    ("probe", &["machine"]),
    ("flash", &["work", "machine"]),
    ("gpu", &[]),
    ("reads", &["work", "machine"]),
    ("kmers", &["work", "reads", "machine", "farm", "gpu"]),
    ("mapper", &["work", "reads", "machine"]),
    ("align", &["work", "reads", "machine", "farm", "mapper"]),
    ("pair", &["work", "reads", "kmers"]),
    ("somatic", &["work", "storage", "flash", "reads", "kmers", "pair", "align"]),
    ("track", &["work", "reads", "kmers", "somatic"]),
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

/// What each of some things uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Those that are in a circle, or between two.
fn circle(mut uses: Uses) -> Uses {
    loop {
        // Whoever uses none of those left, or is used by none, is in no circle.
        let left: BTreeSet<String> = uses.keys().cloned().collect();
        let used: BTreeSet<String> = uses.values().flatten().cloned().collect();
        uses.retain(|name, uses| used.contains(name) && !uses.is_disjoint(&left));
        if uses.len() == left.len() {
            return uses;
        }
    }
}

/// Which module of a crate uses which others, by its files and their text. A folder belongs to the module of its name.
fn modules(files: &[(PathBuf, String)]) -> Uses {
    let mut uses = Uses::new();
    // Tests in files of their own are tests.
    for (path, text) in files.iter().filter(|(path, _)| !path.ends_with("tests.rs")) {
        let module = Path::new(path.iter().next().expect("a file has a name")).with_extension("");
        let module = module.to_str().expect("UTF-8").to_owned();
        if !["lib", "main"].contains(&&module[..]) {
            let others = of_the_crate(text).into_iter().filter(|other| *other != module);
            uses.entry(module.clone()).or_default().extend(others);
        }
    }
    uses
}

/// The first names of all paths from the crate's root, outside of comments and tests.
fn of_the_crate(text: &str) -> BTreeSet<String> {
    let (mut lines, mut code) = (text.lines(), String::new());
    while let Some(line) = lines.next() {
        if let Some(indent) = line.strip_suffix("#[cfg(test)]") {
            // The item ends with the first such line at its own depth.
            lines.find(|line| {
                line.ends_with([';', '}'])
                    && line.strip_prefix(indent).is_some_and(|line| !line.starts_with(' '))
            });
        } else {
            code += line.split("//").next().unwrap_or_default();
        }
    }
    let name = |path: &str| -> String {
        path.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut names = BTreeSet::new();
    for path in code.split("crate::").skip(1) {
        let Some(group) = path.strip_prefix('{') else {
            names.insert(name(path));
            continue;
        };
        let mut depth = 1;
        for part in group.split_inclusive([',', '{', '}']) {
            if depth == 1 {
                names.insert(name(part));
            }
            depth += i32::from(part.ends_with('{')) - i32::from(part.ends_with('}'));
            if depth == 0 {
                break;
            }
        }
    }
    names
}

/// All Rust files of a folder, by their paths from `root`, with their text.
fn sources(root: &Path, folder: &Path, files: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(root, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("text");
            files.push((path.strip_prefix(root).expect("below the root").to_owned(), text));
        }
    }
}

#[test]
fn modules_go_in_no_circle() {
    let metadata = workspace();
    let manifests = list(&metadata, "packages").iter().filter_map(|p| p["manifest_path"].as_str());
    for crate_root in manifests.filter_map(|path| Path::new(path).parent()) {
        let (src, mut files) = (crate_root.join("src"), Vec::new());
        sources(&src, &src, &mut files);
        assert!(!files.is_empty(), "{} has sources", src.display());
        let circles = circle(modules(&files));
        assert_eq!(circles, Uses::new(), "modules of {} that use each other in a circle", src.display());
    }
}

#[test]
fn a_circle_of_modules_is_reported() {
    let found = |a: &str| {
        let files = [
            ("a.rs", a),
            ("b/mod.rs", "use crate::c;\n"),
            ("b/inner.rs", "use crate::{Error, c::{self, d}, e};\n"),
            ("e.rs", "fn f() -> crate::a::A {\n    crate::a::new()\n}\n"),
            ("c.rs", ""),
            ("lib.rs", "use crate::a;\n"),
        ];
        let files = files.map(|(path, text)| (PathBuf::from(path), text.to_owned()));
        circle(modules(&files)).into_keys().collect::<Vec<String>>()
    };
    assert_eq!(found("use crate::c;\n"), [""; 0]);
    assert_eq!(found("use crate::{\n    c,\n    b::inner,\n};\n"), ["a", "b", "e"]);
    // Neither what tests use nor what comments tell.
    let tests = "#[cfg(test)]\nmod tests {\n    use crate::b;\n    fn f() {}\n}\n";
    assert_eq!(found(&format!("// crate::b\n{tests}")), [""; 0]);
    assert_eq!(found(&format!("{tests}use crate::b;\n")), ["a", "b", "e"]);
}

#[test]
fn the_table_has_no_cycle_and_names_only_its_own_crates() {
    let owned = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    let uses: Uses = FLOORS.iter().map(|(name, below)| (name.to_string(), owned(below))).collect();
    assert!(uses.values().flatten().all(|used| uses.contains_key(used)), "{uses:?}");
    assert_eq!(circle(uses), Uses::new());
}
