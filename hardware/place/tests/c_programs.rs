//! C programs that are linked with the library, and the example of the documentation.

mod compiler;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use compiler::{Linking, compile, include_folder, is_installed, run, skipped};

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

#[test]
fn a_c_program_calls_every_function_with_valid_and_invalid_arguments() {
    if !is_installed("c_programs", "cc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for linking in [Linking::Shared, Linking::Static] {
        let said = run(&mut Command::new(compile(&source("program.c"), folder.path(), linking)));
        assert!(said.starts_with("all checks hold on "), "{said}");
    }
}

#[test]
fn costs_are_measured() {
    if !is_installed("costs_are_measured", "cc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let said = run(Command::new(compile(&source("cost.c"), folder.path(), Linking::Shared)).arg("1"));
    assert_eq!(said.lines().count(), 7, "{said}");
    assert!(said.contains("genuma_nearest_copy\t"), "{said}");
}

#[test]
fn the_header_is_valid_cplusplus() {
    if !is_installed("the_header_is_valid_cplusplus", "c++") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program.cpp");
    fs::write(&program, "#include \"genuma_place.h\"\nint main() { return genuma_free(nullptr); }\n").expect("a file");
    let mut cpp = Command::new("c++");
    cpp.args(["-std=c++11", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"]).arg(include_folder());
    run(cpp.arg(&program));
}

/// Text of the first fenced block of `language` in a page.
fn fenced_block(page: &str, language: &str) -> String {
    let start = format!("```{language}");
    let lines = page.lines().skip_while(|line| *line != start).skip(1);
    lines.take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_example_of_the_documentation_runs() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals/c-api.md");
    let Ok(page) = fs::read_to_string(page) else {
        return skipped("the_example_of_the_documentation_runs", "the documentation is not part of the package");
    };
    if !is_installed("the_example_of_the_documentation_runs", "cc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let example = folder.path().join("example.c");
    fs::write(&example, fenced_block(&page, "c")).expect("a file");
    let said = run(&mut Command::new(compile(&example, folder.path(), Linking::Shared)));
    assert!(said.starts_with("node 0: ") && said.contains(" pages\n"), "{said}");
}
