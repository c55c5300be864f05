//! Checks the direction of dependencies: between crates, and between the modules of each crate.
//!
//! The table of allowed dependencies is the one in ARCHITECTURE.md. A crate that is missing from it, or a dependency that it
//! does not list (build and test dependencies included), fails this test. Modules of a crate must not use each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// For each crate (by folder name) the crates of the workspace that it may depend on.
const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("work", &[]),
    ("storage", &["work"]),
    ("machine", &[]),
    ("place", &["machine"]),
    ("farm", &["machine"]),
    ("probe", &["machine"]),
    ("flash", &["work", "machine"]),
    ("gpu", &[]),
    ("reads", &["work", "machine"]),
    ("annotate", &["reads"]),
    ("kmers", &["work", "reads", "machine", "farm", "gpu"]),
    ("dictionary", &["work", "flash", "kmers"]),
    ("tables", &["work", "machine", "flash", "reads", "dictionary"]),
    ("mapper", &["work", "reads", "machine"]),
    ("align", &["work", "reads", "machine", "farm", "mapper"]),
    ("pair", &["work", "reads", "kmers"]),
    ("somatic", &["work", "storage", "flash", "reads", "annotate", "kmers", "dictionary", "pair", "align"]),
    ("track", &["work", "reads", "kmers", "somatic"]),
    ("simulate", &["work", "reads"]),
    ("strategy", &["work", "reads", "machine", "probe"]),
    ("planner", &["work", "flash", "reads", "kmers", "dictionary", "align", "somatic"]),
    ("report", &["work", "machine", "probe", "annotate", "kmers", "pair", "somatic", "strategy", "planner"]),
    ("faults", &[]),
];

/// The crate of the binary: it may depend on every crate, and no crate may depend on it.
const BINARY_CRATE: &str = "cli";

/// A dependency of crate `user` on crate `used`; both are folder names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    user: String,
    used: String,
}

/// The crates of the workspace and the dependencies between them, from `cargo metadata`.
#[derive(Debug, Default)]
struct WorkspaceGraph {
    crates: BTreeSet<String>,
    edges: BTreeSet<Edge>,
}

impl WorkspaceGraph {
    fn from_metadata(metadata: &Value) -> WorkspaceGraph {
        let mut graph = WorkspaceGraph::default();
        for package in list(metadata, "packages") {
            let manifest = package["manifest_path"].as_str().expect("a package has a manifest");
            let user = folder(Path::new(manifest).parent().expect("a manifest lies in a folder"));
            // Only dependencies inside the workspace have a path.
            let used = list(package, "dependencies").iter().filter_map(|d| d["path"].as_str());
            let edges = used.map(|path| Edge { user: user.clone(), used: folder(Path::new(path)) });
            graph.edges.extend(edges);
            graph.crates.insert(user);
        }
        graph
    }

    /// One line for each crate or dependency that the table does not allow.
    fn violations(&self) -> Vec<String> {
        let unknown = self.crates.iter().filter(|name| *name != BINARY_CRATE && allowed_dependencies(name).is_none());
        let unknown = unknown.map(|name| format!("crate '{name}' is not in the table of layering.rs"));
        let forbidden = self.edges.iter().filter(|edge| !allowed(edge));
        let forbidden = forbidden.map(|edge| format!("'{}' may not depend on '{}'", edge.user, edge.used));
        unknown.chain(forbidden).collect()
    }
}

fn allowed_dependencies(name: &str) -> Option<&'static [&'static str]> {
    ALLOWED_DEPENDENCIES.iter().find(|(crate_name, _)| *crate_name == name).map(|(_, below)| *below)
}

fn allowed(edge: &Edge) -> bool {
    if edge.user == BINARY_CRATE {
        return allowed_dependencies(&edge.used).is_some();
    }
    allowed_dependencies(&edge.user).is_some_and(|below| below.contains(&edge.used.as_str()))
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
    let graph = WorkspaceGraph::from_metadata(&workspace());
    assert!(graph.crates.contains(BINARY_CRATE), "the workspace has the binary: {:?}", graph.crates);
    let cli_to_reads = Edge { user: BINARY_CRATE.into(), used: "reads".into() };
    assert!(graph.edges.contains(&cli_to_reads), "edges are found: {:?}", graph.edges);
    assert_eq!(graph.violations(), Vec::<String>::new());
}

#[test]
fn an_edge_to_a_higher_crate_is_reported() {
    let mut metadata = workspace();
    let packages = metadata["packages"].as_array_mut().expect("packages");
    let reads = packages.iter_mut().find(|p| p["name"] == "genuma-reads").expect("the crate reads");
    let upward = serde_json::json!({ "name": "genuma-somatic", "kind": "dev", "path": "/w/genomics/somatic" });
    reads["dependencies"].as_array_mut().expect("dependencies").push(upward);
    assert_eq!(WorkspaceGraph::from_metadata(&metadata).violations(), ["'reads' may not depend on 'somatic'"]);
}

#[test]
fn no_crate_depends_on_the_binary() {
    let edge = |user: &str, used: &str| Edge { user: user.into(), used: used.into() };
    assert!(!allowed(&edge("simulate", BINARY_CRATE)));
    assert!(!allowed(&edge(BINARY_CRATE, BINARY_CRATE)));
    assert!(allowed(&edge(BINARY_CRATE, "somatic")));
}

#[test]
fn a_crate_that_the_table_does_not_know_is_reported() {
    let metadata = serde_json::json!({ "packages": [
        { "manifest_path": "/w/genomics/reads/Cargo.toml", "dependencies": [] },
        { "manifest_path": "/w/attic/Cargo.toml", "dependencies": [{ "path": "/w/genomics/reads" }] },
    ] });
    let violations = WorkspaceGraph::from_metadata(&metadata).violations();
    assert_eq!(violations, ["crate 'attic' is not in the table of layering.rs", "'attic' may not depend on 'reads'"]);
}

/// For each module or crate the modules or crates that it uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Returns the nodes that are in a circle, or on a path between two circles.
fn circle(mut uses: Uses) -> Uses {
    loop {
        // A node that uses none of the remaining nodes, or is used by none, is in no circle.
        let left: BTreeSet<String> = uses.keys().cloned().collect();
        let used: BTreeSet<String> = uses.values().flatten().cloned().collect();
        uses.retain(|name, uses| used.contains(name) && !uses.is_disjoint(&left));
        if uses.len() == left.len() {
            return uses;
        }
    }
}

/// The path of a module from the root of its crate: `["aligned", "file"]` for `aligned/file.rs`.
type ModulePath = Vec<String>;

/// The module that a source file holds, by its path below `src`; `lib.rs` and `main.rs` hold the root.
fn module_of_file(path: &Path) -> ModulePath {
    let path = path.with_extension("");
    let mut module: ModulePath = path.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&&last[..])) {
        module.pop();
    }
    module
}

/// Returns the source without comments and without items under `#[cfg(test)]`.
fn code_without_tests(text: &str) -> String {
    let (mut lines, mut code) = (text.lines(), String::new());
    while let Some(line) = lines.next() {
        if let Some(indent) = line.strip_suffix("#[cfg(test)]") {
            // The item ends with the first such line at its own depth.
            lines.find(|line| {
                line.ends_with([';', '}']) && line.strip_prefix(indent).is_some_and(|line| !line.starts_with(' '))
            });
        } else {
            code += line.split("//").next().unwrap_or_default();
            code.push('\n');
        }
    }
    code
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Appends every path that begins at the start of `text` to `paths`, with groups (`a::{b, c}`) expanded. Each is `prefix` and the names that follow, and
/// the name under which a `use` makes it visible.
fn expand_path(prefix: &[String], text: &str, paths: &mut Vec<(Vec<String>, String)>) {
    let (mut path, mut rest) = (prefix.to_vec(), text.trim_start());
    loop {
        if let Some(group) = rest.strip_prefix('{') {
            let (mut depth, mut start) = (1, 0);
            for (i, c) in group.char_indices() {
                depth += i32::from(c == '{') - i32::from(c == '}');
                if depth == 0 || (depth == 1 && c == ',') {
                    if !group[start..i].trim().is_empty() {
                        expand_path(&path, &group[start..i], paths);
                    }
                    start = i + 1;
                }
                if depth == 0 {
                    break;
                }
            }
            return;
        }
        let name: String = rest.chars().take_while(|c| is_name(*c)).collect();
        rest = &rest[name.len()..];
        if name != "self" || path.is_empty() {
            path.push(name);
        }
        let Some(next) = rest.strip_prefix("::") else { break };
        rest = next.trim_start();
    }
    let alias = rest.trim_start().strip_prefix("as ").map(|alias| alias.trim_start());
    let alias = alias.map(|alias| alias.chars().take_while(|c| is_name(*c)).collect());
    let visible = alias.or(path.last().cloned()).unwrap_or_default();
    paths.push((path, visible));
}

/// A crate's modules, by the files that hold them.
struct Modules {
    code: BTreeMap<ModulePath, String>,
    /// For each module the names that it makes visible from elsewhere by `use`, with their paths from the crate's root.
    exports: BTreeMap<ModulePath, BTreeMap<String, ModulePath>>,
}

impl Modules {
    /// Reads the modules of a crate from its files: paths below `src`, and text. Test modules in files of their own are skipped.
    fn new(files: &[(PathBuf, String)]) -> Modules {
        let is_test = |path: &Path| path.iter().any(|part| part == "tests.rs" || part == "tests");
        let code = files.iter().filter(|(path, _)| !is_test(path));
        let code = code.map(|(path, text)| (module_of_file(path), code_without_tests(text))).collect();
        let mut modules = Modules { code, exports: BTreeMap::new() };
        modules.exports =
            modules.code.iter().map(|(module, code)| (module.clone(), modules.exports_of(module, code))).collect();
        modules
    }

    fn exports_of(&self, module: &ModulePath, code: &str) -> BTreeMap<String, ModulePath> {
        let mut exports = BTreeMap::new();
        for line in code.split("pub").skip(1) {
            let line = line.strip_prefix("(crate)").or(line.strip_prefix("(super)")).unwrap_or(line);
            let Some(tree) = line.trim_start().strip_prefix("use ") else { continue };
            let mut paths = Vec::new();
            expand_path(&[], tree.split(';').next().unwrap_or_default(), &mut paths);
            for (path, visible) in paths {
                if let Some(path) = self.absolute(module, &path) {
                    exports.insert(visible, path);
                }
            }
        }
        exports
    }

    /// The path from the crate's root for a path that stands in `module`; `None` if it is of another crate.
    fn absolute(&self, module: &ModulePath, path: &[String]) -> Option<ModulePath> {
        let up = path.iter().take_while(|name| *name == "super").count();
        match path.first().map(String::as_str) {
            Some("crate") => Some(path[1..].to_vec()),
            Some("self") => Some([module, &path[1..]].concat()),
            Some("super") => Some([&module[..module.len().checked_sub(up)?], &path[up..]].concat()),
            Some(name) => {
                let child = [&module[..], &[name.to_owned()]].concat();
                self.code.contains_key(&child).then(|| [module, path].concat())
            }
            None => None,
        }
    }

    /// The module in which what `path` names is defined: re-exports are followed.
    fn defining_module(&self, mut path: ModulePath) -> ModulePath {
        for _ in 0..8 {
            let known = (0..=path.len()).rev().find(|&n| self.code.contains_key(&path[..n])).unwrap_or(0);
            let exported = path.get(known).and_then(|name| self.exports.get(&path[..known])?.get(name));
            match exported {
                Some(target) if *target != path => path = [target, &path[known + 1..]].concat(),
                _ => return path[..known].to_vec(),
            }
        }
        path
    }

    /// Which modules use which of their siblings, by themselves or by modules below them. A module and those below it may use each other.
    fn uses(&self) -> Uses {
        let mut uses = Uses::new();
        for (module, code) in &self.code {
            for keyword in ["crate::", "super::", "self::"] {
                for (at, _) in code.match_indices(keyword) {
                    if code[..at].ends_with(|c| is_name(c) || c == ':') {
                        continue;
                    }
                    let mut paths = Vec::new();
                    expand_path(&[], &code[at..], &mut paths);
                    let targets = paths.iter().filter_map(|(path, _)| self.absolute(module, path));
                    for target in targets.map(|path| self.defining_module(path)) {
                        let common = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
                        if common < module.len() && common < target.len() {
                            let user = module[..=common].join("/");
                            uses.entry(user).or_default().insert(target[..=common].join("/"));
                        }
                    }
                }
            }
        }
        uses
    }
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
        let circles = circle(Modules::new(&files).uses());
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
        circle(Modules::new(&files).uses()).into_keys().collect::<Vec<String>>()
    };
    assert_eq!(found("use crate::c;\n"), [""; 0]);
    assert_eq!(found("use crate::{\n    c,\n    b::inner,\n};\n"), ["a", "b", "e"]);
    // What tests use and what comments mention does not count.
    let tests = "#[cfg(test)]\nmod tests {\n    use crate::b;\n    fn f() {}\n}\n";
    assert_eq!(found(&format!("// crate::b\n{tests}")), [""; 0]);
    assert_eq!(found(&format!("{tests}use crate::b;\n")), ["a", "b", "e"]);
}

#[test]
fn a_circle_of_siblings_is_reported_through_super_and_re_exports() {
    let found = |file: &str, parent: &str| {
        let files = [
            ("aligned.rs", parent),
            ("aligned/file.rs", file),
            ("aligned/source.rs", "use super::file::File;\n"),
            ("lib.rs", "mod aligned;\n"),
        ];
        let files = files.map(|(path, text)| (PathBuf::from(path), text.to_owned()));
        circle(Modules::new(&files).uses()).into_keys().collect::<Vec<String>>()
    };
    let both = ["aligned/file", "aligned/source"];
    assert_eq!(found("use super::Options;\n", "pub struct Options;\n"), [""; 0]);
    assert_eq!(found("fn f(source: super::source::Source) {}\n", ""), both);
    assert_eq!(found("use super::{Options, Source};\n", "pub use source::Source;\n"), both);
    assert_eq!(found("use crate::aligned::S;\n", "pub(crate) use self::source::Source as S;\n"), both);
}

#[test]
fn the_table_has_no_cycle_and_names_only_its_own_crates() {
    let owned = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    let uses: Uses = ALLOWED_DEPENDENCIES.iter().map(|(name, below)| (name.to_string(), owned(below))).collect();
    assert!(uses.values().flatten().all(|used| uses.contains_key(used)), "{uses:?}");
    assert_eq!(circle(uses), Uses::new());
}
