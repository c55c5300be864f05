//! Commands that the documentation shows, run as they stand there.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{data, installed, scratch, skipped};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository")
}

/// A block of commands, and the lines that have to be in what they say.
#[derive(Default)]
struct Block {
    line: usize,
    commands: String,
    said: Vec<String>,
}

/// Fenced blocks of `sh`, each with the `text` behind it.
fn fenced(page: &str) -> Vec<Block> {
    let (mut blocks, mut fence): (Vec<Block>, Option<&str>) = (Vec::new(), None);
    for (number, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), fence) {
            (Some("sh"), None) => {
                fence = Some("sh");
                blocks.push(Block { line: number + 1, ..Block::default() });
            }
            (Some(kind), None) => fence = Some(kind),
            (Some(_), Some(_)) => fence = None,
            (None, Some(kind)) => {
                let block = blocks.last_mut().expect("commands before what they say");
                match kind {
                    "sh" => block.commands += &format!("{line}\n"),
                    "text" => block.said.push(line.to_owned()),
                    other => panic!("a block of {other}"),
                }
            }
            (None, None) => {}
        }
    }
    blocks
}

/// Runs commands in a shell that finds genuma, in `folder`, and gives back all they say.
fn shell(folder: &Path, commands: &str) -> (bool, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_genuma"));
    let path =
        format!("{}:{}", program.parent().expect("a folder").display(), std::env::var("PATH").expect("PATH"));
    let mut bash = Command::new("bash");
    bash.args(["-euc", &format!("exec 2>&1\n{commands}")]).current_dir(folder).env("PATH", path);
    let output = bash.output().expect("bash starts");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn the_tutorial_does_what_it_says() {
    if ["bcftools", "samtools"].iter().any(|program| installed(program).is_none()) {
        return;
    }
    let folder = scratch("tutorial");
    let page = fs::read_to_string(root().join("docs/tutorial.md")).expect("the tutorial");
    fs::create_dir_all(folder.join("docs")).expect("a folder");
    std::os::unix::fs::symlink(root().join("docs/tutorial"), folder.join("docs/tutorial")).expect("a link");
    let blocks = fenced(&page);
    assert!(blocks.len() >= 9, "{} blocks", blocks.len());
    for block in blocks {
        let (well, said) = shell(&folder, &block.commands);
        assert!(well, "docs/tutorial.md:{}: {}\n{said}", block.line, block.commands);
        for line in &block.said {
            assert!(
                said.contains(line.as_str()),
                "docs/tutorial.md:{}: '{line}' is not said:\n{said}",
                block.line
            );
        }
    }
    picture(&folder.join("calls/report.html"));
}

/// The picture that README shows, made anew when `GENUMA_BLESS` is set.
fn picture(report: &Path) {
    let to = match std::env::var_os("GENUMA_BLESS") {
        Some(_) => root().join("docs/report.png"),
        None => report.with_file_name("report.png"),
    };
    let mut chromium = Command::new("chromium");
    chromium.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--window-size=1200,1500",
    ]);
    chromium.arg(format!("--screenshot={}", to.display())).arg(report);
    match chromium.output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let bytes = fs::read(&to).expect("a picture");
            assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 50_000, "{} bytes", bytes.len());
        }
        Err(error) => skipped(&format!("the picture of the report: chromium cannot be run here ({error})")),
    }
}

#[test]
fn commands_of_the_readme_run() {
    if installed("bwa").is_none() {
        return;
    }
    let folder = scratch("readme");
    let data = data();
    let link = |from: &Path, to: &str| std::os::unix::fs::symlink(from, folder.join(to)).expect("a link");
    for (mate, (tumor, normal)) in data.tumor.iter().zip(&data.normal).enumerate() {
        link(tumor, &format!("T_{}.fq.gz", mate + 1));
        link(normal, &format!("N_{}.fq.gz", mate + 1));
        for name in ["L", "R", "S"] {
            link(normal, &format!("{name}_{}.fq.gz", mate + 1));
        }
    }
    fs::copy(data.reference.as_ref().expect("a reference"), folder.join("ref.fa")).expect("a copy");
    fs::copy(folder.join("ref.fa"), folder.join("genes.fa")).expect("a copy");
    let readme = fs::read_to_string(root().join("README.md")).expect("the README");
    let commands: Vec<&str> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with("genuma "))
        .collect();
    assert!(commands.len() >= 9, "{commands:?}");
    let (indexed, said) = shell(&folder, "bwa index ref.fa");
    assert!(indexed, "{said}");
    for command in commands {
        // Half a minute in which nothing else may run: cli/tests/probe.rs runs it.
        if command.starts_with("genuma probe") {
            continue;
        }
        let command = command.replace("--memory 8G", "--memory 1G");
        let (well, said) = shell(&folder, &command);
        assert!(well, "README.md: {command}\n{said}");
    }
}
