//! Compiles C programs with the built library. Tests include this file.
#![allow(dead_code, reason = "not every test uses all of it")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How a program is linked with the library.
#[derive(Debug, Clone, Copy)]
pub enum Linking {
    /// With `libgenuma_place.so`, found at run time where it was built.
    Shared,
    /// With `libgenuma_place.a`.
    Static,
}

/// Folder with the header.
pub fn include_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include")
}

/// Folder with the built libraries: that of this test's program.
pub fn library_folder() -> PathBuf {
    let program = std::env::current_exe().expect("this program");
    program.parent().expect("its folder").to_owned()
}

/// Reports on standard error that a test or a part of it is skipped. `eprintln!` would be kept by the test runner.
pub fn skipped(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}

/// Whether `program` can be started; reports that `test` is skipped if not.
pub fn is_installed(test: &str, program: &str) -> bool {
    let starts = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !starts {
        skipped(test, &format!("there is no {program}"));
    }
    starts
}

/// Runs a command, and returns its standard output.
///
/// # Panics
/// When it fails.
pub fn run(command: &mut Command) -> String {
    let output = command.output().expect("the command starts");
    let [said, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(output.status.success(), "{command:?}: {}\n{said}{errors}", output.status);
    said
}

/// Compiles a C source with all warnings as errors. Returns the path of the program, which lies in `folder`.
pub fn compile(source: &Path, folder: &Path, linking: Linking) -> PathBuf {
    let (libraries, name) = (library_folder(), source.file_stem().expect("a file"));
    let program = folder.join(format!("{}-{linking:?}", name.to_string_lossy()));
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-O1", "-pedantic", "-Wall", "-Wextra", "-Werror", "-I"]).arg(include_folder());
    cc.arg(source).arg("-o").arg(&program);
    match linking {
        Linking::Shared => {
            cc.arg("-L").arg(&libraries).arg(format!("-Wl,-rpath,{}", libraries.display())).arg("-lgenuma_place");
        }
        Linking::Static => {
            cc.arg(libraries.join("libgenuma_place.a")).args(["-ldl", "-lm"]);
        }
    }
    run(cc.arg("-lpthread"));
    program
}
