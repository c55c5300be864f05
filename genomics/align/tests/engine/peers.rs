//! Builds the command lines with which the engines are compared, from the sources of the crates.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Prints that a test is skipped, in spite of libtest's output capture.
pub fn skipped(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}

/// Folder in which builds are kept between runs.
fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn output(command: &mut Command) -> Result<Output, String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    match output.status.success() {
        true => Ok(output),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Folder of a package that this crate depends on.
fn sources(package: &str) -> Result<PathBuf, String> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    // Only packages for this system have been downloaded.
    let system = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let metadata = output(
        cargo()
            .args(["metadata", "--format-version=1", "--offline", "--filter-platform", &system])
            .arg("--manifest-path")
            .arg(manifest),
    )?;
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).map_err(|e| e.to_string())?;
    let packages = metadata["packages"].as_array().ok_or("no packages")?;
    let found = packages.iter().find(|p| p["name"] == package).and_then(|p| p["manifest_path"].as_str());
    let found = found.and_then(|path| Path::new(path).parent());
    found.map(Path::to_path_buf).ok_or_else(|| format!("no package {package}"))
}

/// `minibwa`, from the C sources in minibwa-sys.
pub fn minibwa() -> Result<&'static Path, &'static str> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let build = || {
        let binary = kept("minibwa-0.2.0");
        if !binary.is_file() {
            let vendored = sources("minibwa-sys")?.join("vendor/minibwa");
            let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).map_err(|e| e.to_string())?;
            for file in fs::read_dir(vendored).map_err(|e| e.to_string())?.flatten() {
                fs::copy(file.path(), folder.path().join(file.file_name())).map_err(|e| e.to_string())?;
            }
            // The allocator and the GPL part that the Makefile adds are not in the sources.
            output(Command::new("make").arg("-C").arg(folder.path()).args([
                "CC=cc",
                "mimalloc=0",
                "gpl=0",
                "omp=0",
                "-j2",
                "minibwa",
            ]))?;
            fs::rename(folder.path().join("minibwa"), &binary).map_err(|e| e.to_string())?;
        }
        Ok(binary)
    };
    BUILT.get_or_init(build).as_ref().map(PathBuf::as_path).map_err(String::as_str)
}

/// `strobealign` of the version that this crate depends on, with the dependencies of its own release.
pub fn strobealign() -> Result<&'static Path, &'static str> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let build = || {
        let root = kept("strobealign-0.19.1");
        let binary = root.join("bin/strobealign");
        if !binary.is_file() {
            // Link-time optimisation takes minutes and changes no result.
            let quick = ["profile.release.lto=false", "profile.release.codegen-units=16"];
            output(
                cargo()
                    .args(["install", "strobealign", "--version", "=0.19.1", "--locked"])
                    .args(quick.iter().flat_map(|setting| ["--config", setting]))
                    .arg("--root")
                    .arg(&root)
                    .arg("--target-dir")
                    .arg(kept("strobealign-target")),
            )?;
        }
        Ok(binary)
    };
    BUILT.get_or_init(build).as_ref().map(PathBuf::as_path).map_err(String::as_str)
}

/// Output of a command line.
pub fn run(binary: &Path, arguments: &[&str], folder: &Path) -> Vec<u8> {
    output(Command::new(binary).args(arguments).current_dir(folder)).unwrap().stdout
}
