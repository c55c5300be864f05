//! What a release needs: one address and one maintainer, the bill of materials, checksums and signatures.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use toml::Table;

use crate::common::{installed, repository, scratch, skipped, text};

fn workspace_package() -> Table {
    let manifest: Table = fs::read_to_string(repository("Cargo.toml")).expect("Cargo.toml").parse().expect("TOML");
    manifest["workspace"]["package"].as_table().expect("a table").clone()
}

fn run_script(name: &str, args: &[&str], environment: &[(&str, &str)]) -> Output {
    let script = repository(name);
    Command::new(&script).args(args).envs(environment.iter().copied()).output().expect("the script starts")
}

/// The addresses in a text that name genuma.
fn project_addresses(text: &str) -> Vec<String> {
    let ends = |c: char| c.is_whitespace() || "\"'<>)]`".contains(c);
    let found = text.match_indices("https://").map(|(at, _)| text[at..].split(ends).next().unwrap_or_default());
    found.filter(|address| address.contains("genuma") || address.contains("example.org")).map(str::to_owned).collect()
}

#[test]
fn packages_have_the_address_and_the_maintainer_of_the_workspace() {
    let package = workspace_package();
    let address = package["repository"].as_str().expect("a text");
    for file in ["contrib/bioconda/genuma/meta.yaml", "contrib/nf-core/modules/nf-core/genuma/call/meta.yml"] {
        let found = project_addresses(&fs::read_to_string(repository(file)).expect(file));
        assert!(found.len() >= 3, "{file}: {found:?}");
        assert!(found.iter().all(|own| own.starts_with(address)), "{file}: {found:?}, Cargo.toml: {address}");
    }
    let [maintainer] = &package["authors"].as_array().expect("a list")[..] else { panic!("one maintainer") };
    let maintainer = maintainer.as_str().expect("a text");
    assert!(maintainer.contains('<') && maintainer.ends_with('>') && !maintainer.contains("localhost"), "{maintainer}");
    // The package takes both from Cargo.toml.
    let pack = fs::read_to_string(repository("scripts/dist/pack.sh")).expect("a script");
    assert!(pack.contains("Maintainer: $maintainer\nHomepage: $repository\n"));
    assert_eq!(project_addresses(&pack), Vec::<String>::new());
}

#[test]
fn the_bill_of_materials_lists_what_is_linked() {
    let triple = "x86_64-unknown-linux-gnu";
    let made = run_script("scripts/dist/sbom.py", &[triple, "--time", "86400"], &[]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let bom: Value = serde_json::from_slice(&made.stdout).expect("JSON");
    assert_eq!((&bom["bomFormat"], &bom["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));
    assert_eq!(bom["metadata"]["timestamp"], "1970-01-02T00:00:00Z");
    assert_eq!(bom["metadata"]["component"]["purl"], format!("pkg:cargo/genuma@{}", env!("CARGO_PKG_VERSION")));
    let components = bom["components"].as_array().expect("components");
    let names: BTreeSet<&str> = components.iter().filter_map(|one| one["name"].as_str()).collect();
    assert!(names.is_superset(&BTreeSet::from(["genuma-somatic", "noodles-bam", "clap", "rustls"])), "{names:?}");
    assert!(!names.contains("criterion") && !names.contains("proptest"), "crates of tests only");
    let refs: BTreeSet<&str> = components.iter().filter_map(|one| one["bom-ref"].as_str()).collect();
    assert_eq!(refs.len(), components.len());
    for one in components {
        let name = one["name"].as_str().expect("a name");
        assert!(one["licenses"][0]["expression"].is_string(), "{one}");
        let is_own = name.starts_with("genuma-");
        let sum = one["hashes"][0]["content"].as_str().unwrap_or_default();
        assert_eq!(sum.len(), if is_own { 0 } else { 64 }, "{one}");
    }
    let needed = bom["dependencies"].as_array().expect("dependencies").iter();
    let needed = needed.flat_map(|of| of["dependsOn"].as_array().expect("a list")).filter_map(Value::as_str);
    assert!(needed.clone().count() > components.len());
    assert!(needed.clone().all(|one| refs.contains(one)), "each dependency is a component");
    assert_eq!(run_script("scripts/dist/sbom.py", &[triple, "--time", "86400"], &[]).stdout, made.stdout);
}

fn verify_sums(folder: &Path) -> bool {
    Command::new("sha256sum")
        .args(["-c", "--quiet", "SHA256SUMS"])
        .current_dir(folder)
        .status()
        .expect("sums")
        .success()
}

#[test]
fn releases_have_checksums_and_a_signature_if_there_is_a_key() {
    let folder = scratch("sums");
    for (name, content) in [("b.deb", "two"), ("a file.tar.gz", "one")] {
        fs::write(folder.join(name), content).expect("a file");
    }
    let made = run_script("scripts/dist/sums.sh", &[text(&folder)], &[("GENUMA_SIGNING_KEY", "")]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert!(String::from_utf8_lossy(&made.stderr).contains("SHA256SUMS is not signed"));
    let sums = fs::read_to_string(folder.join("SHA256SUMS")).expect("sums");
    let names: Vec<&str> = sums.lines().map(|line| &line[66..]).collect();
    assert_eq!(names, ["a file.tar.gz", "b.deb"]);
    assert!(verify_sums(&folder) && !folder.join("SHA256SUMS.asc").exists());
    fs::write(folder.join("b.deb"), "three").expect("a file");
    assert!(!verify_sums(&folder));

    if installed("gpg").is_none() {
        return skipped("signed checksums: gpg is not installed");
    }
    // The socket of the agent lies in this folder, and its name must be short.
    let keys = tempfile::Builder::new().prefix("gpg").tempdir_in("/tmp").expect("a folder");
    let home = [("GNUPGHOME", text(keys.path())), ("GENUMA_SIGNING_KEY", "release@example.org")];
    let gpg = |args: &[&str]| Command::new("gpg").args(args).envs(home).output().expect("gpg starts");
    let key = ["--batch", "--passphrase", "", "--quick-gen-key", "release@example.org", "ed25519", "sign", "never"];
    let made_key = gpg(&key);
    if !made_key.status.success() {
        let why = String::from_utf8_lossy(&made_key.stderr).into_owned();
        return skipped(&format!("signed checksums: gpg makes no key here: {why}"));
    }
    let signed = run_script("scripts/dist/sums.sh", &[text(&folder)], &home);
    assert!(signed.status.success(), "{}", String::from_utf8_lossy(&signed.stderr));
    let [signature, sums] = ["SHA256SUMS.asc", "SHA256SUMS"].map(|name| folder.join(name));
    assert!(verify_sums(&folder) && gpg(&["--verify", text(&signature), text(&sums)]).status.success());
    fs::write(&sums, "0  b.deb\n").expect("a file");
    assert!(!gpg(&["--verify", text(&signature), text(&sums)]).status.success());
    Command::new("gpgconf").args(["--kill", "all"]).envs(home).output().ok();
}

#[test]
fn packages_and_workflows_have_the_version_of_the_workspace() {
    let version = env!("CARGO_PKG_VERSION");
    for (file, line) in [
        ("workflow/nextflow.config", format!("    version         = '{version}'\n")),
        ("contrib/bioconda/genuma/meta.yaml", format!("{{% set version = \"{version}\" %}}\n")),
        ("contrib/nf-core/modules/nf-core/genuma/call/environment.yml", format!("bioconda::genuma={version}\n")),
        ("contrib/nf-core/modules/nf-core/genuma/call/main.nf", format!("biocontainers/genuma:{version}--")),
    ] {
        let content = fs::read_to_string(repository(file)).expect(file);
        assert!(content.contains(&line), "{file}: no {line}");
    }
}
