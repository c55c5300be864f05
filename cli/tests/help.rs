//! The texts that genuma prints about itself: help, completions, manual pages.

use std::collections::BTreeSet;
use std::fs;

use crate::common::{names, run, scratch};

const COMMANDS: [&str; 26] = [
    "call",
    "check",
    "track",
    "align",
    "index",
    "run",
    "kmers",
    "kmers count",
    "kmers query",
    "kmers union",
    "kmers intersect",
    "kmers subtract",
    "kmers filter",
    "kmers compact",
    "kmers info",
    "machine",
    "machine show",
    "machine measure",
    "machine advise",
    "plan",
    "step",
    "bench",
    "bench simulate",
    "bench evaluate",
    "completions",
    "man",
];

fn help(command: &str) -> String {
    run(command.split(' ').chain(["--help"])).assert_success().stdout
}

/// File name of a command's manual page.
fn manual_page_name(command: &str) -> String {
    format!("genuma-{}.1", command.replace(' ', "-"))
}

/// The long options in a command's help.
fn options(command: &str) -> BTreeSet<String> {
    let option = |word: &str| {
        let end = word.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(word.len());
        (end > 2 && word.starts_with("--")).then(|| word[..end].to_owned())
    };
    let shown = |line: &str| line.trim_start().starts_with('-');
    help(command).lines().filter(|l| shown(l)).flat_map(str::split_whitespace).filter_map(option).collect()
}

#[test]
fn help_is_as_reviewed() {
    // One file per command, so that changes of help are reviewed. GENUMA_BLESS=1 rewrites the files.
    for command in std::iter::once("").chain(COMMANDS) {
        let said = if command.is_empty() { run(["--help"]).assert_success().stdout } else { help(command) };
        let name = if command.is_empty() { "genuma" } else { command };
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
    assert_eq!(run(["--version"]).assert_success().stdout, format!("genuma {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_know_every_option() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(["completions", shell]).assert_success().stdout;
        for option in COMMANDS.iter().flat_map(|command| options(command)) {
            let option = if shell == "fish" { option.trim_start_matches('-') } else { &option };
            assert!(script.contains(option), "{shell}: {option}");
        }
    }
}

#[test]
fn manual_pages_tell_every_option() {
    let folder = scratch("man").join("man1");
    run(["man", folder.to_str().expect("UTF-8")]).assert_success();
    let mut expected: Vec<String> = COMMANDS.iter().map(|command| manual_page_name(command)).collect();
    expected.push("genuma.1".to_owned());
    expected.sort();
    assert_eq!(names(&folder), expected);
    for command in COMMANDS {
        let page = fs::read_to_string(folder.join(manual_page_name(command))).expect("a page");
        let page = page.replace("\\-", "-");
        let missing: Vec<String> = options(command).into_iter().filter(|o| !page.contains(o)).collect();
        assert!(missing.is_empty(), "{command}: {missing:?}");
    }
}

#[test]
fn the_first_list_of_commands_is_short() {
    let said = run(["--help"]).assert_success().stdout;
    let first = said.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("a list");
    let listed: Vec<&str> = first.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(listed, ["call", "check", "track", "align", "index", "run", "kmers", "machine", "help"]);
    let more = said.split("More commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("a list");
    let all = listed.len() - 1 + more.lines().count();
    assert_eq!(all, COMMANDS.iter().filter(|command| !command.contains(' ')).count());
}

#[test]
fn earlier_command_names_are_accepted() {
    let earlier = [
        ("count", "kmers count"),
        ("query", "kmers query"),
        ("table", "kmers"),
        ("table union", "kmers union"),
        ("table info", "kmers info"),
        ("topology", "machine show"),
        ("probe", "machine measure"),
        ("advise", "machine advise"),
        ("simulate", "bench simulate"),
        ("evaluate", "bench evaluate"),
    ];
    for (earlier, present) in earlier {
        assert_eq!(help(earlier), help(present), "{earlier}");
        assert_eq!(run(["-q", "help"].into_iter().chain(earlier.split(' '))).assert_success().stdout, help(present));
    }
    // A user who mistypes an option learns the present name.
    assert!(run(["count", "--no-such"]).stderr.contains("Usage: genuma kmers count"));
}

#[test]
fn earlier_option_names_are_accepted() {
    let earlier = [
        "call --panel-least 3",
        "call --parts 2",
        "kmers union --least 2",
        "kmers intersect --most 9",
        "align --least-score 20",
        "align --pieces-secondary",
        "align --named-places 5",
        "machine advise --pilot-budget 0.1",
        "bench evaluate --kinds x.bed",
        "bench simulate --contamination 0.1",
    ];
    for words in earlier {
        run(words.split(' ').chain(["--help"])).assert_success();
    }
    // The help is not printed if an option is unknown.
    assert_eq!(run(["call", "--no-such-option", "3", "--help"]).code, Some(2));
}
