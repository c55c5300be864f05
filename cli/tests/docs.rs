//! Runs the commands of the documentation as they are written there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Data, PATIENT, called, data, installed, scratch, two_genes};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository")
}

/// A block of commands, and the lines that their output must contain.
#[derive(Default)]
struct Block {
    line: usize,
    commands: String,
    said: Vec<String>,
}

/// Fenced blocks of `sh`, each with the `text` block after it.
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

/// Runs commands with a shell that finds genuma, in `folder`; returns success and all output.
fn shell(folder: &Path, commands: &str) -> (bool, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_genuma"));
    let path = format!("{}:{}", program.parent().expect("a folder").display(), std::env::var("PATH").expect("PATH"));
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
    let page = fs::read_to_string(root().join("docs/guide/tutorial.md")).expect("the tutorial");
    fs::create_dir_all(folder.join("docs")).expect("a folder");
    std::os::unix::fs::symlink(root().join("docs/tutorial"), folder.join("docs/tutorial")).expect("a link");
    let blocks = fenced(&page);
    assert!(blocks.len() >= 9, "{} blocks", blocks.len());
    for block in blocks {
        let (well, said) = shell(&folder, &block.commands);
        assert!(well, "docs/guide/tutorial.md:{}: {}\n{said}", block.line, block.commands);
        for line in &block.said {
            assert!(
                said.contains(line.as_str()),
                "docs/guide/tutorial.md:{}: '{line}' is not said:\n{said}",
                block.line
            );
        }
    }
    picture(&folder.join("calls/report.html"));
}

/// Draws the picture of the README beside the report; with `GENUMA_BLESS` that of the documentation is written again.
fn picture(report: &Path) {
    if installed("chromium").is_none() {
        return;
    }
    let to = match std::env::var_os("GENUMA_BLESS") {
        Some(_) => root().join("docs/guide/report.png"),
        None => report.with_file_name("report.png"),
    };
    let output = Command::new(root().join("scripts/report-picture.sh")).arg(report).arg(&to).output().expect("a shell");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let bytes = fs::read(&to).expect("a picture");
    assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 50_000, "{} bytes", bytes.len());
}

/// The line of the README that sets up a bare Debian is where the script that tries it looks for it. The try itself takes
/// minutes and a network, so here the mirror cannot be reached.
#[test]
fn the_line_for_a_bare_system_is_found() {
    let mut script = Command::new(root().join("scripts/bare-root.sh"));
    let output = script.env("GENUMA_MIRROR", "http://127.0.0.1:9/debian").output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.starts_with("bare-root: skipped: "), "{said}");
    let wrong = Command::new(root().join("scripts/bare-root.sh")).arg("--unknown").output().expect("a shell");
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn commands_of_the_readme_run() {
    if installed("bwa").is_none() {
        return;
    }
    let folder = scratch("readme");
    let data = data();
    let copy = |from: &Path, to: &str| fs::copy(from, folder.join(to)).expect("a copy");
    for (mate, (tumor, normal)) in data.tumor.iter().zip(&data.normal).enumerate() {
        copy(tumor, &format!("T_{}.fq.gz", mate + 1));
        copy(normal, &format!("N_{}.fq.gz", mate + 1));
        for name in ["L", "R", "S"] {
            copy(normal, &format!("{name}_{}.fq.gz", mate + 1));
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
        // Takes half a minute on an otherwise idle machine; cli/tests/probe.rs runs it.
        if command.starts_with("genuma machine measure") {
            continue;
        }
        let command = command.replace("--memory 8G", "--memory 1G");
        let (well, said) = shell(&folder, &command);
        assert!(well, "README.md: {command}\n{said}");
    }
}

/// Commands of pages that are not run here: how they begin, and the reason. Commands with `…` or `...` are
/// placeholders and are not run either.
const NOT_RUN: [(&str, &str); 8] = [
    ("genuma machine measure -o server7", "takes a minute; cli/tests/probe.rs runs --quick"),
    ("genuma machine measure --quick", "half a minute in which nothing else may run; cli/tests/probe.rs runs it"),
    ("genuma machine advise --machine", "wants what a probe measured here; cli/tests/advise.rs makes it up"),
    ("genuma machine measure --placement", "is a defect of the machine where it fails; cli/tests/probe.rs runs it"),
    ("genuma step run", "goes on with what sbatch has begun; cli/tests/slurm.rs runs it"),
    ("bcftools view out/somatic.vcf.gz | sed", "needs vcftools; cli/tests/accepted.rs runs it"),
    ("genuma recording 1", "the first line of a file, no command"),
    ("genuma run --reads reads_1.fq.gz reads_2.fq.gz -- mapper", "a program that nobody has"),
];

/// How the indented lines begin that are commands.
const PROGRAMS: [&str; 4] = ["genuma ", "for ", "bcftools ", "jq "];

/// The commands in indented lines of a page, with their line numbers. Lines that end with a backslash are joined.
fn indented(page: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let (mut open, mut fence) = (false, false);
    for (number, line) in page.lines().enumerate() {
        fence ^= line.starts_with("```");
        match line.strip_prefix("    ").filter(|_| !fence) {
            Some(line) if open => found.last_mut().expect("a command").1 += line,
            Some(line) if PROGRAMS.iter().any(|program| line.starts_with(program)) => {
                found.push((number + 1, line.to_owned()));
            }
            _ => continue,
        }
        let command = &mut found.last_mut().expect("a command").1;
        open = command.ends_with('\\');
        if open {
            command.pop();
        }
    }
    found
}

/// A command reduced so that all commands together take a minute or two: a genome of at most 1 Mbp, 20x, few
/// variants.
fn shrunk(command: &str) -> String {
    const MOST: [(&str, u64); 14] = [
        ("--genome-length", 1_000_000),
        ("--depth-tumor", 20),
        ("--depth-normal", 15),
        ("--snvs", 60),
        ("--indels", 20),
        ("--svs", 4),
        ("--integrations", 4),
        ("--clusters", 4),
        ("--mnvs", 8),
        ("--amplifications", 1),
        ("--losses", 1),
        ("--shards", 4),
        ("--partitions", 2),
        ("-t", 2),
    ];
    let simulated = command.starts_with("genuma bench simulate ");
    let mut words: Vec<String> = command.split(' ').map(str::to_owned).collect();
    for i in 1..words.len() {
        let unit = |text: &str| match text.strip_suffix(['M', 'G']) {
            Some(number) => number.parse::<f64>().ok().map(|_| u64::MAX),
            None => text.parse().ok(),
        };
        if let Some((_, most)) = MOST.iter().find(|(option, _)| *option == words[i - 1])
            && unit(&words[i]).is_some_and(|number| number > *most)
        {
            words[i] = most.to_string();
        }
    }
    let mut command = words.join(" ");
    for (option, least) in MOST.iter().take(if simulated { 6 } else { 0 }) {
        if !command.contains(option) {
            let least = if *option == "--genome-length" { 300_000 } else { *least };
            command = command.replacen("simulate ", &format!("simulate {option} {least} "), 1);
        }
    }
    // Memory and threads are those of the user's machine.
    if !command.starts_with("genuma plan ") {
        command = command.replace("--memory 8G", "--memory 1G").replace("--scratch 30G", "--scratch 2G");
    }
    command
}

/// Creates a folder with all files that the pages' commands read.
fn world(folder: &Path) {
    let shallow = [&PATIENT[..], &["--depth-tumor", "12", "--depth-normal", "12"]].concat();
    let data = Data::simulate("first", &shallow);
    let all = |commands: &str| {
        let (well, said) = shell(folder, commands);
        assert!(well, "{commands}\n{said}");
    };
    // Copies: a command may write to these names, and other tests use the files.
    let copy = |from: &Path, to: &str| {
        let to = folder.join(to);
        fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        fs::copy(from, to).expect("a copy");
    };
    for (mate, (tumor, normal)) in (1..).zip(data.tumor.iter().zip(&data.normal)) {
        for name in ["T", "A", "M", "R", "S", "later", "tumor", "data/tumor"] {
            copy(tumor, &format!("{name}_{mate}.fq.gz"));
        }
        for name in ["N", "N01", "normal", "data/normal"] {
            copy(normal, &format!("{name}_{mate}.fq.gz"));
        }
    }
    let reference = data.reference.as_ref().expect("a reference");
    for name in ["ref.fa", "genome.fa", "genes.fa", "data/genome.fa"] {
        fs::copy(reference, folder.join(name)).expect("a copy");
    }
    copy(&root().join("docs/guide/machines.tsv"), "machines.tsv");
    fs::write(folder.join("genes.gff3"), two_genes(reference)).expect("a file");
    // Results that are written through links replace the targets of the links.
    for name in ["a", "b", "calls", "out"] {
        fs::create_dir_all(folder.join(name)).expect("a folder");
        for file in ["summary.json", "somatic.vcf.gz", "contigs.fa"] {
            fs::copy(called().join(file), folder.join(name).join(file)).expect("a copy");
        }
    }
    let second = Data::simulate("second", &[&shallow[..], &["--reads-seed", "8"]].concat());
    for (mate, (tumor, normal)) in (1..).zip(second.tumor.iter().zip(&second.normal)) {
        for name in ["B", "J"] {
            copy(tumor, &format!("{name}_{mate}.fq.gz"));
        }
        for name in ["N02", "N03"] {
            copy(normal, &format!("{name}_{mate}.fq.gz"));
        }
    }
    fs::write(folder.join("mapper"), "#!/bin/sh\nexec bwa mem \"$@\"\n").expect("a script");
    all("chmod +x mapper; gunzip -c out/somatic.vcf.gz > calls.vcf
        bwa index ref.fa; bowtie2-build -q ref.fa ref; samtools faidx ref.fa
        awk '{ print $1, 1000, 2000 }' ref.fa.fai > exome.bed; cp exome.bed amplicons.bed; cp exome.bed panel.bed
        sed 's/SOMATIC;/AF=0.01;/' calls.vcf | bgzip > gnomad.vcf.gz; tabix -p vcf gnomad.vcf.gz
        for mate in 1 2; do gunzip -c R_$mate.fq.gz > R_$mate.fq; done
        bwa mem ref.fa R_1.fq R_2.fq | samtools sort -o R.bam -; samtools index R.bam; samtools view -C -T ref.fa -o R.cram R.bam
        cp R.bam T.bam; bwa mem ref.fa N_1.fq.gz N_2.fq.gz | samtools sort -O cram --reference ref.fa -o N.cram -
        samtools import -1 R_1.fq -2 R_2.fq -o unaligned.bam; cp unaligned.bam consensus.bam
        head -c 6000 ref.fa | tr 'ACGT' 'CTAG' > virus.fa; cp virus.fa viruses.fa
        mkdir normals; genuma kmers count -q N01_1.fq.gz N01_2.fq.gz -o a.gkt; genuma kmers count -q N02_1.fq.gz N02_2.fq.gz -o b.gkt
        cp a.gkt normals/1.gkt; cp b.gkt normals/2.gkt; cp a.gkt child.gkt; cp b.gkt mother.gkt; cp b.gkt father.gkt; cp a.gkt S.gkt
        genuma kmers union -q --counts samples a.gkt b.gkt -o panel.gkt
        genuma call -q --tumor T_1.fq.gz T_2.fq.gz --normal N_1.fq.gz N_2.fq.gz -o alone");
}

#[test]
fn commands_of_all_pages_run() {
    if ["bwa", "bowtie2", "samtools", "bcftools", "jq"].iter().any(|tool| installed(tool).is_none()) {
        return;
    }
    let made = scratch("world");
    world(&made);
    // A page must not use files that another page's commands wrote.
    let anew = |page: &Path| {
        let folder = scratch(&format!("pages-{}", page.file_stem().expect("a name").display()));
        fs::remove_dir_all(&folder).expect("no folder");
        let copied = Command::new("cp").arg("-a").args([&made, &folder]).status().expect("cp");
        assert!(copied.success(), "a copy of {}", made.display());
        folder
    };
    let mut pages: Vec<PathBuf> = ["docs", "docs/guide", "docs/guide/assays", "docs/internals", "docs/evidence"]
        .iter()
        .flat_map(|folder| fs::read_dir(root().join(folder)).expect("a folder of pages"))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    pages.push(root().join("docs/formats/recording.md"));
    pages.sort();
    let (mut run, mut not_run) = (0, vec![0; NOT_RUN.len()]);
    for page in pages.iter().filter(|page| !page.ends_with("tutorial.md")) {
        let commands = indented(&fs::read_to_string(page).expect("a page"));
        if commands.is_empty() {
            continue;
        }
        let folder = anew(page);
        for (line, command) in commands {
            if command.contains('…') || command.contains("...") {
                continue;
            }
            if let Some(left) = NOT_RUN.iter().position(|(begin, _)| command.starts_with(begin)) {
                not_run[left] += 1;
                continue;
            }
            run += 1;
            // Each plan is for a separate call.
            let _ = fs::remove_dir_all(folder.join("run"));
            let (well, said) = shell(&folder, &shrunk(&command));
            assert!(well, "{}:{line}: {}\n{said}", page.display(), shrunk(&command));
        }
        fs::remove_dir_all(&folder).expect("the page's folder");
    }
    // Every entry of NOT_RUN occurs in the pages.
    for ((begin, _), times) in NOT_RUN.iter().zip(&not_run) {
        assert!(*times > 0, "no page has '{begin}'");
    }
    assert!(run >= 60, "{run} commands");
}
