//! Makes the shim, which `src/shim.rs` carries along.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs, process};

fn main() {
    println!("cargo::rerun-if-changed=shim/shim.c");
    let shim = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("shim.so");
    let compiler = cc::Build::new().get_compiler();
    let made = Command::new(compiler.path())
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "shim/shim.c", "-o"])
        .arg(&shim)
        .status();
    if !made.is_ok_and(|status| status.success()) || fs::metadata(&shim).is_err() {
        println!("cargo::error=the C compiler {} did not make the shim", compiler.path().display());
        process::exit(1);
    }
}
