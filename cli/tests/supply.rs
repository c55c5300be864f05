//! What genuma is built from keeps to `deny.toml`: licences, no crate that is banned, none twice, all from crates.io.
//!
//! `cargo deny` reads the same file and checks all this and advisories, but has more crates to build than genuma: `scripts/supply.sh` runs it
//! where it is installed.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use toml::Table;

/// A rule's list: texts, or the crates that its tables name.
fn listed<'a>(rules: &'a Table, section: &str, key: &str) -> Vec<&'a str> {
    let items = rules[section][key].as_array().expect("a list").iter();
    items.map(|item| item.get("crate").unwrap_or(item).as_str().expect("a text")).collect()
}

/// Whether a licence expression (SPDX) leaves a choice that is allowed in every part of it.
fn allows(allowed: &[&str], expression: &str) -> bool {
    let choice = |part: &str| {
        let part = part.trim_matches(['(', ')', ' ']).replace('/', " OR ");
        part.split(" OR ").any(|licence| allowed.contains(&licence.trim()))
    };
    expression.split(" AND ").all(choice)
}

/// One line for each package that the rules do not allow.
fn breaches(rules: &Table, packages: &[Value]) -> Vec<String> {
    let licences = listed(rules, "licenses", "allow");
    let banned = listed(rules, "bans", "deny");
    let twice = listed(rules, "bans", "skip");
    let registries = listed(rules, "sources", "allow-registry");
    let mut versions: BTreeMap<&str, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for package in packages {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let (name, licence, source) = (text("name"), text("license"), text("source"));
        let known = format!("{name}@{}", text("version"));
        if !allows(&licences, licence) {
            found.push(format!("{known}: licence '{licence}'"));
        }
        if banned.contains(&name) {
            found.push(format!("{known}: banned"));
        }
        // Those of the workspace have no source.
        if !source.is_empty() && !registries.iter().any(|from| source == format!("registry+{from}")) {
            found.push(format!("{known}: from {source}"));
        }
        if !twice.contains(&known.as_str()) {
            *versions.entry(name).or_default() += 1;
        }
    }
    let several = versions.iter().filter(|(_, count)| **count > 1);
    found.extend(several.map(|(name, count)| format!("{name}: {count} versions")));
    found
}

fn rules() -> Table {
    include_str!("../../deny.toml").parse().expect("TOML")
}

#[test]
fn every_crate_keeps_to_the_rules() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("a list");
    assert!(packages.len() > 50);
    assert_eq!(breaches(&rules(), packages), Vec::<String>::new());
}

#[test]
fn what_does_not_keep_to_them_is_found() {
    let package = |name: &str, version: &str, licence: &str, source: &str| serde_json::json!({"name": name, "version": version, "license": licence, "source": source});
    let registry = "registry+https://github.com/rust-lang/crates.io-index";
    let found = breaches(
        &rules(),
        &[
            package("good", "1.0.0", "GPL-3.0-only OR MIT", registry),
            package("both", "1.0.0", "(MIT OR Apache-2.0) AND Unicode-3.0", registry),
            package("viral", "1.0.0", "MIT AND GPL-3.0-only", registry),
            package("unsaid", "1.0.0", "", registry),
            package("openssl-sys", "0.9.0", "MIT", registry),
            package("elsewhere", "1.0.0", "MIT", "git+https://example.org/x"),
            package("twice", "1.0.0", "MIT", registry),
            package("twice", "2.0.0", "MIT", registry),
        ],
    );
    assert_eq!(
        found,
        [
            "viral@1.0.0: licence 'MIT AND GPL-3.0-only'",
            "unsaid@1.0.0: licence ''",
            "openssl-sys@0.9.0: banned",
            "elsewhere@1.0.0: from git+https://example.org/x",
            "twice: 2 versions",
        ]
    );
}
