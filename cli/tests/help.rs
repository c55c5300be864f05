//! What genuma says of itself: help, completions, manual pages.

mod common;

use std::collections::BTreeSet;
use std::fs;

use common::{names, run, scratch};

const VERBS: [&str; 23] = [
    "call",
    "check",
    "step",
    "plan",
    "count",
    "query",
    "table",
    "table union",
    "table intersect",
    "table subtract",
    "table filter",
    "table info",
    "index",
    "align",
    "run",
    "advise",
    "track",
    "simulate",
    "evaluate",
    "topology",
    "probe",
    "completions",
    "man",
];

fn help(verb: &str) -> String {
    run(verb.split(' ').chain(["--help"])).well().stdout
}

/// The manual page of a verb.
fn page_of(verb: &str) -> String {
    format!("genuma-{}.1", verb.replace(' ', "-"))
}

/// The long options that a verb's help names.
fn options(verb: &str) -> BTreeSet<String> {
    let option = |word: &str| {
        let end = word.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(word.len());
        (end > 2 && word.starts_with("--")).then(|| word[..end].to_owned())
    };
    let shown = |line: &str| line.trim_start().starts_with('-');
    help(verb).lines().filter(|l| shown(l)).flat_map(str::split_whitespace).filter_map(option).collect()
}

#[test]
fn help_is_as_reviewed() {
    // One file a verb: a change of help is seen in review. GENUMA_BLESS=1 writes them anew.
    for verb in std::iter::once("").chain(VERBS) {
        let said = if verb.is_empty() { run(["--help"]).well().stdout } else { help(verb) };
        let name = if verb.is_empty() { "genuma" } else { verb };
        let file = name.replace(' ', "-");
        let path = format!("{}/tests/help/{file}.txt", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("GENUMA_BLESS").is_some() {
            fs::write(&path, &said).expect("a file");
        }
        assert_eq!(said, fs::read_to_string(&path).unwrap_or_default(), "{path}");
    }
}

#[test]
fn wrong_usage_is_told_with_code_2() {
    for args in [&["cal"][..], &["call"], &["call", "--tumour", "x"], &["completions", "dos"], &[]] {
        let ended = run(args);
        assert_eq!(ended.code, Some(2), "{args:?}");
        assert!(ended.stderr.contains("Usage: ") || ended.stderr.contains("error: "), "{}", ended.stderr);
    }
    assert_eq!(run(["--version"]).well().stdout, format!("genuma {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_know_every_option() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(["completions", shell]).well().stdout;
        for option in VERBS.iter().flat_map(|verb| options(verb)) {
            let option = if shell == "fish" { option.trim_start_matches('-') } else { &option };
            assert!(script.contains(option), "{shell}: {option}");
        }
    }
}

#[test]
fn manual_pages_tell_every_option() {
    let folder = scratch("man").join("man1");
    run(["man", folder.to_str().expect("UTF-8")]).well();
    let mut expected: Vec<String> = VERBS.iter().map(|verb| page_of(verb)).collect();
    expected.push("genuma.1".to_owned());
    expected.sort();
    assert_eq!(names(&folder), expected);
    for verb in VERBS {
        let page = fs::read_to_string(folder.join(page_of(verb))).expect("a page");
        let page = page.replace("\\-", "-");
        let missing: Vec<String> = options(verb).into_iter().filter(|o| !page.contains(o)).collect();
        assert!(missing.is_empty(), "{verb}: {missing:?}");
    }
}
