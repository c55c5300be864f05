//! C programs that are linked with the library, and the example of the documentation.

mod compiler;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use compiler::{Linking, compile, include_folder, is_installed, library_folder, run, skipped};

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

/// The example of the documentation in `language`, if there is a compiler for it.
fn example(test: &str, language: &str, compiler: &str) -> Option<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals/c-api.md");
    let Ok(page) = fs::read_to_string(page) else {
        skipped(test, "the documentation is not part of the package");
        return None;
    };
    is_installed(test, compiler).then(|| fenced_block(&page, language))
}

#[test]
fn the_example_of_the_documentation_runs() {
    let Some(text) = example("the_example_of_the_documentation_runs", "c", "cc") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("example.c");
    fs::write(&source, text).expect("a file");
    let said = run(&mut Command::new(compile(&source, folder.path(), Linking::Shared)));
    assert!(said.contains("node 0: ") && said.contains(" pages\n"), "{said}");
}

#[test]
fn the_fortran_example_of_the_documentation_runs() {
    let test = "the_fortran_example_of_the_documentation_runs";
    let Some(text) = example(test, "fortran", "gfortran") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let [source, program] = ["example.f90", "example"].map(|name| folder.path().join(name));
    fs::write(&source, text).expect("a file");
    let libraries = library_folder();
    let mut gfortran = Command::new("gfortran");
    gfortran.args(["-Wall", "-Werror"]).arg(&source).arg("-o").arg(&program).arg("-L").arg(&libraries);
    run(gfortran.arg(format!("-Wl,-rpath,{}", libraries.display())).arg("-lgenuma_place"));
    assert_eq!(run(&mut Command::new(program)), "sum 100000.0\n");
}
