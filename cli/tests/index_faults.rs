//! Damaged indexes: `align` either prints one line that names the index, or writes the same bytes; it never dies by a
//! signal. `call` reads no index.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Data, SharedFixture, assert_same, names, run, scratch, text};

/// A pair that is small enough to be aligned often.
fn small() -> &'static Data {
    static MADE: SharedFixture<Data> = SharedFixture::new();
    MADE.get_or_init(|| {
        let size = ["--genome-length", "24000", "--contigs", "2", "--seed", "7"];
        let few = ["--snvs", "12", "--indels", "4", "--svs", "1", "--depth-tumor", "20", "--depth-normal", "15"];
        Data::simulate("small", &[&size[..], &few[..]].concat())
    })
}

/// The pair, with its genome in a folder of its own, indexed.
fn indexed(name: &str) -> (Data, PathBuf) {
    let (folder, data) = (scratch(name), small());
    let genome = folder.join("genome.fa");
    fs::copy(data.folder.join("genome.fa"), &genome).expect("a copy");
    run(["index", text(&genome)]).assert_success();
    (Data { reference: Some(genome), ..data.clone() }, folder)
}

/// Whether `align` refuses the index with a line that names it; otherwise asserts that the records are the same as
/// with the undamaged index.
#[track_caller]
fn refused(data: &Data, folder: &Path, what: &str) -> bool {
    let sam = folder.join("out.sam");
    let genome = text(data.reference.as_deref().expect("a reference")).to_owned();
    let ended = run(["align", &genome, text(&data.normal[0]), text(&data.normal[1]), "-o", text(&sam)]);
    let errors: Vec<&str> = ended.stderr.lines().filter(|l| l.contains("error: ")).collect();
    let refused = match (ended.code, &errors[..]) {
        (Some(0), []) => false,
        (Some(1), [error]) if error.contains("genome.fa.") && error.contains("genuma index") => true,
        _ => panic!("{what}: {ended:?}"),
    };
    let body = |path: &Path| {
        let sam = fs::read_to_string(path).expect("SAM");
        sam.lines().filter(|line| !line.starts_with("@PG")).map(|line| format!("{line}\n")).collect::<String>()
    };
    let whole = folder.join("whole.sam");
    match (refused, whole.exists()) {
        (true, _) => assert!(!sam.exists(), "{what}"),
        (false, true) => assert!(body(&sam) == body(&whole), "{what}: other records"),
        (false, false) => {
            fs::rename(&sam, &whole).expect("the first is what others are compared with");
        }
    }
    let _ = fs::remove_file(&sam);
    refused
}

#[test]
fn damaged_in_any_region() {
    let (data, folder) = indexed("damaged");
    assert!(!refused(&data, &folder, "whole"));
    let path = folder.join("genome.fa.gnm");
    let whole = fs::read(&path).expect("an index");
    let n = whole.len();
    // Positions in the header, lengths, bases and seeds, and at the end.
    for at in [0, 8, 17, 40, 66, 90, n / 3, n / 2, n - 2000, n - 9, n - 2] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x15;
        fs::write(&path, bytes).expect("a file");
        let what = format!("byte {at} of {n}");
        assert!(refused(&data, &folder, &what), "{what}");
    }
    for cut in [0, 47, n / 2, n - 8, n - 1] {
        fs::write(&path, &whole[..cut]).expect("a file");
        let what = format!("cut at {cut} of {n}");
        assert!(refused(&data, &folder, &what), "{what}");
    }
    // The file has its full length, but a part was not written.
    let mut holed = whole.clone();
    holed[n / 4..n / 2].fill(0);
    fs::write(&path, holed).expect("a file");
    assert!(refused(&data, &folder, "a hole"));
    fs::write(&path, whole).expect("a file");
    let seal = folder.join("genome.fa.gnm.seal");
    let sealed = fs::read(&seal).expect("a seal");
    fs::remove_file(&seal).expect("it was there");
    assert!(refused(&data, &folder, "no seal"));
    fs::write(&seal, sealed).expect("a file");
    assert!(!refused(&data, &folder, "whole again"));
}

#[test]
fn of_other_sequences_with_the_same_names_and_lengths() {
    let (data, folder) = indexed("stale");
    let genome = folder.join("genome.fa");
    let seal = folder.join("genome.fa.gnm.seal");
    let sealed = fs::read(&seal).expect("a seal");
    let fasta = fs::read_to_string(&genome).expect("a genome");
    // A few bases changed, and all bases changed.
    let turned = |line: &str| if line.starts_with('>') { line.into() } else { line.chars().rev().collect::<String>() };
    let turned: String = fasta.lines().map(|line| turned(line) + "\n").collect();
    for other in [fasta.replacen("ACG", "ATG", 3), turned] {
        fs::write(&genome, other).expect("a file");
        for has_seal in [true, false] {
            if has_seal { fs::write(&seal, &sealed) } else { fs::remove_file(&seal) }.expect("a seal");
            let what = format!("another reference, sealed: {has_seal}");
            assert!(refused(&data, &folder, &what), "{what}");
        }
    }
    fs::write(&genome, fasta).expect("a file");
    for (from, to) in [("genuma-mapper 1", "genuma-mapper 9"), ("genuma-seal 2", "genuma-seal 1")] {
        fs::write(&seal, String::from_utf8_lossy(&sealed).replace(from, to)).expect("a seal");
        assert!(refused(&data, &folder, to), "{to}");
    }
}

/// The disk becomes full while an index is built, early or late.
#[test]
fn made_on_a_disk_that_fills() {
    let (data, folder) = (small(), scratch("full"));
    let genome = folder.join("genome.fa");
    fs::copy(data.folder.join("genome.fa"), &genome).expect("a copy");
    let limited = |kib: usize, args: &[String]| {
        let script = format!("trap '' XFSZ; ulimit -f {kib}; exec \"$@\"");
        let mut shell = Command::new("bash");
        shell.args(["-c", &script, "-", env!("CARGO_BIN_EXE_genuma")]).args(args);
        let output = shell.output().expect("a shell");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let args = ["index", text(&genome)].map(str::to_owned);
    for kib in [0, 1, 5, 8, 20, 40] {
        let (code, said) = limited(kib, &args);
        assert!(code == Some(1) && said.contains("genome.fa") && said.contains("File too large"), "{kib}: {said}");
        assert_eq!(names(&folder), ["genome.fa"], "{kib} KiB");
    }
}

/// `call` ignores a damaged index next to the reference.
#[test]
fn beside_a_reference_to_call_on() {
    let (data, folder) = indexed("unread");
    let (before, after) = (scratch("before"), scratch("after"));
    run(data.call(&before)).assert_success();
    for name in ["genome.fa.gnm", "genome.fa.gnm.seal"] {
        fs::write(folder.join(name), "damaged").expect("a file");
    }
    run(data.call(&after)).assert_success();
    assert_same(&after, &before);
}

#[test]
fn of_what_is_no_file() {
    let folder = scratch("special");
    let pipe = folder.join("pipe.fa");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    // Reading the memory of a process from its start is an I/O error.
    for (path, what) in [("/proc/self/mem", "/proc/self/mem: "), (text(&folder), "is a folder")] {
        let ended = run(["index", path]);
        assert!(ended.code == Some(1) && ended.stderr.contains(what), "{path}: {}", ended.stderr);
    }
    assert_eq!(names(&folder), ["pipe.fa"]);
}
