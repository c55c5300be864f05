//! The verbs as the campaign runs them: tiny inputs, made once, and command lines.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

/// Something that runs are given. `{given}` is the folder that they lie in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Given {
    /// 20 kbp, a tumour and a normal of 20x, truth; `pair/old.txt` and `bare/genome.fa`, the genome without indexes.
    Pair,
    /// `deep/normal_1.fq.gz` and its mates: 300x, which do not fit into the least memory.
    Deep,
    /// minibwa's index beside `pair/genome.fa`.
    Minibwa,
    /// strobealign's index beside it.
    Strobealign,
    /// bwa's index beside it.
    Bwa,
    /// `n.gkt`, a table of k-mers.
    Table,
    /// `t.gkt`, one of the tumour's.
    TumourTable,
    /// `calls/`, calls of the pair.
    Calls,
    /// `machine.txt`, a recording of this machine.
    Recording,
    /// `probe/machine.json`, what this machine's memory measures.
    Machine,
    /// `begun-call/calls`, left by a call that was killed after its units, and `begun-count/work`, by a count.
    Begun,
    /// `planned/run`, a call in parts of which all steps are done but the last.
    Planned,
    /// `stub`, an aligner of a few lines.
    Stub,
}

const STUB: &str = r#"#!/usr/bin/awk -f
BEGIN { OFS = "\t"; print "@SQ", "SN:c", "LN:9"; print "@PG", "ID:stub" }
NR % 4 == 1 { name = substr($1, 2) }
NR % 4 == 2 { print name, 4, "*", 0, 0, "*", "*", 0, 0, $1, "*" }
"#;

const CALL: &str = "call -t 2 --tumor {given}/pair/tumor_1.fq.gz {given}/pair/tumor_2.fq.gz \
    --normal {given}/pair/normal_1.fq.gz {given}/pair/normal_2.fq.gz";
const COUNT: &str = "count -t 2 --sample n={given}/pair/normal_1.fq.gz,{given}/pair/normal_2.fq.gz";
const CHECK: &str = "check -t 2 --tumor {given}/pair/tumor_1.fq.gz {given}/pair/tumor_2.fq.gz \
    --normal {given}/pair/normal_1.fq.gz {given}/pair/normal_2.fq.gz";
const TRACK: &str = "track -t 2 {given}/pair/truth.vcf {given}/pair/tumor_1.fq.gz {given}/pair/tumor_2.fq.gz \
    --reference {given}/pair/genome.fa";
const READS: &str = "{given}/pair/normal_1.fq.gz {given}/pair/normal_2.fq.gz";

impl Given {
    /// What must be there before.
    fn needs(self) -> &'static [Given] {
        match self {
            Given::Pair | Given::Deep | Given::Recording | Given::Machine | Given::Stub => &[],
            Given::Begun
            | Given::Planned
            | Given::Calls
            | Given::Minibwa
            | Given::Strobealign
            | Given::Bwa
            | Given::Table
            | Given::TumourTable => &[Given::Pair],
        }
    }

    fn make(self, program: &Path, given: &Path) -> anyhow::Result<()> {
        let genuma = |line: &str| run(Command::new(program).args(words(line, given, given)));
        let reference = "--reference {given}/pair/genome.fa";
        match self {
            Given::Pair => {
                genuma(
                    "simulate --genome-length 20000 --contigs 2 --snvs 6 --indels 4 --svs 2 --largest-sv 500 \
                     --germline-svs 1 --depth-tumor 20 --depth-normal 20 -t 2 -o {given}/pair",
                )?;
                fs::write(given.join("pair/old.txt"), "what was there before\n")?;
                fs::create_dir_all(given.join("bare"))?;
                fs::copy(given.join("pair/genome.fa"), given.join("bare/genome.fa"))?;
                Ok(())
            }
            Given::Deep => genuma(
                "simulate --genome-length 20000 --contigs 2 --snvs 0 --indels 0 --svs 0 --germline-svs 0 --depth-tumor 1 \
                 --depth-normal 300 -t 2 -o {given}/deep",
            ),
            Given::Minibwa => genuma("index -t 2 {given}/pair/genome.fa"),
            Given::Strobealign => genuma("index --engine strobealign -t 2 {given}/pair/genome.fa"),
            Given::Bwa => run(Command::new("bwa").arg("index").arg(given.join("pair/genome.fa"))),
            Given::Table => genuma(&format!("{COUNT} -o {{given}}/n.gkt")),
            Given::TumourTable => genuma(
                "count -t 2 --sample t={given}/pair/tumor_1.fq.gz,{given}/pair/tumor_2.fq.gz -o {given}/t.gkt",
            ),
            Given::Calls => genuma(&format!("{CALL} {reference} -o {{given}}/calls")),
            Given::Recording => genuma("topology --record {given}/machine.txt"),
            Given::Machine => genuma("probe --quick -o {given}/probe"),
            // Units stay if the run that made them is killed, or fails: here its output cannot be made.
            Given::Begun => {
                let begun = given.join("begun-call/calls");
                fs::create_dir_all(begun.join("summary.json/taken"))?;
                let failed = genuma(&format!("{CALL} {reference} -o {{given}}/begun-call/calls"));
                ensure!(failed.is_err(), "a call into a folder whose summary.json is a folder was to fail");
                fs::remove_dir_all(begun.join("summary.json"))?;
                fs::create_dir_all(given.join("begun-count/n.gkt/taken"))?;
                fs::create_dir_all(given.join("begun-count/work"))?;
                let line = "--resume --work {given}/begun-count/work -o {given}/begun-count/n.gkt";
                ensure!(genuma(&format!("{COUNT} {line}")).is_err(), "a count into a folder was to fail");
                fs::remove_dir_all(given.join("begun-count/n.gkt"))?;
                Ok(())
            }
            Given::Planned => {
                let plan = "--plan {given}/planned/run --shards 2 --parts 2";
                genuma(&format!("{CALL} {reference} {plan} -o {{given}}/planned/calls"))?;
                for step in [
                    "scatter 1",
                    "scatter 2",
                    "count 1",
                    "count 2",
                    "pick",
                    "label 1",
                    "label 2",
                    "assemble",
                    "place",
                    "recruit 1",
                    "recruit 2",
                ] {
                    genuma(&format!("step {{given}}/planned/run {step}"))?;
                }
                Ok(())
            }
            Given::Stub => {
                fs::write(given.join("stub"), STUB)?;
                Ok(fs::set_permissions(given.join("stub"), fs::Permissions::from_mode(0o755))?)
            }
        }
    }
}

/// Makes all that the cases are given, in the folder `given`.
///
/// # Errors
/// A command that makes it fails: the words are its own.
pub(crate) fn make_given(cases: &[&Case], program: &Path, given: &Path) -> anyhow::Result<()> {
    let mut wanted: BTreeSet<Given> = cases.iter().flat_map(|case| case.given).copied().collect();
    // The deepest needs need needs of their own.
    for _ in 0..2 {
        wanted.extend(wanted.clone().into_iter().flat_map(|given| given.needs()));
    }
    fs::create_dir_all(given)?;
    wanted.into_iter().try_for_each(|one| one.make(program, given).with_context(|| format!("{one:?}")))
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// A command line cut at blanks, with the folders in it.
pub fn words(line: &str, given: &Path, made: &Path) -> Vec<String> {
    let folder = |path: &Path| path.to_string_lossy().into_owned();
    let word = |word: &str| word.replace("{given}", &folder(given)).replace("{made}", &folder(made));
    line.split_whitespace().map(word).collect()
}

/// One command of a verb. All that it makes lies in the folder `{made}`.
#[derive(Debug)]
pub struct Case {
    /// Its name; the verb is what stands before the first dash.
    pub name: &'static str,
    /// The command line.
    pub line: String,
    /// What it is given.
    pub given: &'static [Given],
    /// What lies in `{made}` before: a file or folder of `{given}`, and its name there.
    pub before: &'static [(&'static str, &'static str)],
    /// What a run that fails may leave there.
    pub keeps: &'static [&'static str],
    /// What is added to take up a run that was interrupted.
    pub resume: Option<&'static str>,
    /// Files of `{given}` that it reads back and that are checked by a sum, for damage.
    pub sealed: &'static [&'static str],
    /// Files of `{given}` that it reads and that have no sum: damage must be survived, and may show.
    pub plain: &'static [&'static str],
    /// Whether the answer is the same each time: what is measured is not.
    pub exact: bool,
}

impl Case {
    /// The verb.
    pub fn verb(&self) -> &'static str {
        self.name.split('-').next().unwrap_or(self.name)
    }
}

const CASE: Case = Case {
    name: "",
    line: String::new(),
    given: &[],
    before: &[],
    keeps: &[],
    resume: None,
    sealed: &[],
    plain: &[],
    exact: true,
};

/// All cases.
pub fn cases() -> Vec<Case> {
    let with_reference = format!("{CALL} --reference {{given}}/pair/genome.fa -o {{made}}/calls");
    let bwa_reads = format!("bwa mem -K 100000 {{given}}/pair/genome.fa {READS}");
    vec![
        Case {
            name: "simulate",
            line: "simulate --genome-length 8000 --contigs 2 --snvs 4 --indels 2 --svs 1 --largest-sv 300 --germline-svs 1 \
                   --depth-tumor 5 --depth-normal 5 -t 2 -o {made}/pair"
                .into(),
            ..CASE
        },
        Case {
            name: "simulate-genome",
            line: "simulate --genome {given}/bare/genome.fa --snvs 4 --indels 2 --svs 0 --germline-svs 0 \
                   --depth-tumor 2 --depth-normal 2 -t 2 -o {made}/pair"
                .into(),
            given: &[Given::Pair],
            ..CASE
        },
        Case {
            name: "index",
            line: "index -t 2 {made}/genome.fa".into(),
            given: &[Given::Pair],
            before: &[("bare/genome.fa", "genome.fa")],
            ..CASE
        },
        Case {
            name: "index-strobealign",
            line: "index --engine strobealign -t 2 {made}/genome.fa".into(),
            given: &[Given::Pair],
            before: &[("bare/genome.fa", "genome.fa")],
            ..CASE
        },
        Case {
            name: "align-sam",
            line: format!("align -t 2 {{given}}/pair/genome.fa {READS} -o {{made}}/x.sam"),
            given: &[Given::Pair, Given::Minibwa],
            before: &[("pair/old.txt", "x.sam")],
            sealed: &[
                "pair/genome.fa",
                "pair/genome.fa.l2b",
                "pair/genome.fa.mbw",
                "pair/genome.fa.l2b.seal",
                "pair/normal_1.fq.gz",
            ],
            ..CASE
        },
        Case {
            name: "align-stdout",
            line: format!("align -t 2 {{given}}/pair/genome.fa {READS}"),
            given: &[Given::Pair, Given::Minibwa],
            ..CASE
        },
        Case {
            name: "align-bam",
            line: format!(
                "align -t 2 --mark-duplicates {{given}}/pair/genome.fa {READS} -o {{made}}/x.bam --json {{made}}/x.json"
            ),
            given: &[Given::Pair, Given::Minibwa],
            before: &[("pair/old.txt", "x.bam"), ("pair/old.txt", "x.bam.bai")],
            ..CASE
        },
        Case {
            name: "align-strobealign",
            line: format!(
                "align -t 2 --engine strobealign {{given}}/pair/genome.fa {READS} -o {{made}}/x.sam"
            ),
            given: &[Given::Pair, Given::Strobealign],
            sealed: &["pair/genome.fa.r150.sti", "pair/genome.fa.r150.sti.seal"],
            ..CASE
        },
        Case {
            name: "call",
            line: with_reference.clone(),
            given: &[Given::Pair],
            keeps: &["calls/.work/"],
            resume: Some("--resume"),
            sealed: &["pair/tumor_2.fq.gz"],
            ..CASE
        },
        Case {
            name: "call-work",
            line: format!("{CALL} --reference {{given}}/bare/genome.fa --work {{made}}/work -o {{made}}/calls"),
            given: &[Given::Pair],
            keeps: &["work/"],
            resume: Some("--resume"),
            ..CASE
        },
        Case {
            name: "call-bare",
            line: format!("{CALL} -o {{made}}/calls"),
            given: &[Given::Pair, Given::Calls],
            before: &[("calls", "calls")],
            keeps: &["calls/.work/"],
            resume: Some("--resume"),
            ..CASE
        },
        Case {
            name: "call-resume",
            line: format!("{with_reference} --resume"),
            given: &[Given::Begun],
            before: &[("begun-call/calls", "calls")],
            keeps: &["calls/.work/"],
            resume: Some(""),
            sealed: &[
                "begun-call/calls/.work/count.unit",
                "begun-call/calls/.work/assemble.unit",
                "begun-call/calls/.work/place.unit",
                "begun-call/calls/.work/recruit.unit",
            ],
            ..CASE
        },
        Case {
            name: "step",
            line: "step {made}/run finish -t 2 --work {made}/run -o {made}/calls".into(),
            given: &[Given::Planned],
            before: &[("planned/run", "run")],
            keeps: &["run/.genuma-"],
            sealed: &["planned/run/place", "planned/run/recruit-1", "planned/run/recruit-2"],
            ..CASE
        },
        Case {
            name: "step-again",
            line: "step {made}/run pick --again -t 2 --work {made}/run".into(),
            given: &[Given::Planned],
            before: &[("planned/run", "run")],
            keeps: &["run/.genuma-", "run/pick", "run/..pick", "run/.pick"],
            sealed: &["planned/run/count-1", "planned/run/count-2"],
            // An object tells what it cost.
            exact: false,
            ..CASE
        },
        Case {
            name: "count",
            line: format!(
                "{COUNT} -o {{made}}/n.gkt --histogram {{made}}/n.hist --json {{made}}/n.json --work {{made}}"
            ),
            given: &[Given::Pair],
            before: &[("pair/old.txt", "n.gkt"), ("pair/old.txt", "n.hist"), ("pair/old.txt", "n.json")],
            sealed: &["pair/normal_2.fq.gz"],
            ..CASE
        },
        Case {
            name: "count-spill",
            line: "count -t 2 --memory 76M --sample n={given}/deep/normal_1.fq.gz,{given}/deep/normal_2.fq.gz --work {made} \
                   -o {made}/n.gkt"
                .into(),
            given: &[Given::Deep],
            ..CASE
        },
        Case {
            name: "count-text",
            line: format!("{COUNT} -o {{made}}/n.tsv"),
            given: &[Given::Pair],
            before: &[("pair/old.txt", "n.tsv")],
            ..CASE
        },
        Case {
            name: "count-resume",
            line: format!("{COUNT} --resume --work {{made}}/work -o {{made}}/n.gkt"),
            given: &[Given::Begun],
            before: &[("begun-count/work", "work")],
            keeps: &["work/"],
            resume: Some(""),
            ..CASE
        },
        Case {
            name: "query",
            line: "query -t 2 {given}/n.gkt {given}/pair/genome.fa".into(),
            given: &[Given::Table],
            sealed: &["n.gkt"],
            ..CASE
        },
        Case {
            name: "table",
            line: "table union -t 2 --counts sum {given}/n.gkt {given}/t.gkt -o {made}/u.gkt".into(),
            given: &[Given::Table, Given::TumourTable],
            before: &[("pair/old.txt", "u.gkt")],
            sealed: &["n.gkt", "t.gkt"],
            ..CASE
        },
        Case {
            name: "table-text",
            line: "table subtract -t 2 {given}/t.gkt {given}/n.gkt -o {made}/u.tsv".into(),
            given: &[Given::Table, Given::TumourTable],
            before: &[("pair/old.txt", "u.tsv")],
            ..CASE
        },
        Case {
            name: "check",
            line: format!("{CHECK} --reference {{given}}/pair/genome.fa --json {{made}}/pair.json"),
            given: &[Given::Pair],
            before: &[("pair/old.txt", "pair.json")],
            sealed: &["pair/tumor_2.fq.gz"],
            ..CASE
        },
        Case {
            name: "track",
            line: format!("{TRACK} -o {{made}}/x.tsv --json {{made}}/x.json"),
            given: &[Given::Pair],
            before: &[("pair/old.txt", "x.tsv"), ("pair/old.txt", "x.json")],
            sealed: &["pair/tumor_2.fq.gz"],
            plain: &["pair/truth.vcf"],
            ..CASE
        },
        Case {
            name: "track-vcf",
            line: format!("{TRACK} -o {{made}}/x.vcf.gz"),
            given: &[Given::Pair],
            before: &[("pair/old.txt", "x.vcf.gz"), ("pair/old.txt", "x.vcf.gz.tbi")],
            ..CASE
        },
        Case {
            name: "evaluate",
            line: "evaluate {given}/pair/truth.vcf {given}/calls/somatic.vcf.gz --reference {given}/pair/genome.fa \
                   --germline {given}/pair/germline.vcf --json {made}/scores.json"
                .into(),
            given: &[Given::Calls],
            before: &[("pair/old.txt", "scores.json")],
            sealed: &["calls/somatic.vcf.gz"],
            plain: &["pair/truth.vcf", "pair/germline.vcf"],
            ..CASE
        },
        Case {
            name: "run-stub",
            line: "run -t 2 --strategy default --reads {given}/pair/normal_1.fq.gz -o {made}/x.sam -- {given}/stub".into(),
            given: &[Given::Pair, Given::Stub],
            before: &[("pair/old.txt", "x.sam")],
            sealed: &["pair/normal_1.fq.gz"],
            ..CASE
        },
        Case {
            name: "run-bwa",
            line: format!(
                "run -t 2 --strategy 2xlocal -o {{made}}/x.sam --json {{made}}/x.json -- {bwa_reads}"
            ),
            given: &[Given::Pair, Given::Bwa],
            before: &[("pair/old.txt", "x.sam")],
            ..CASE
        },
        Case {
            name: "advise",
            line: format!(
                "advise -t 2 --machine {{given}}/probe/machine.json --json {{made}}/x.json --explain {{made}}/x.html -- {bwa_reads}"
            ),
            given: &[Given::Pair, Given::Bwa, Given::Machine],
            plain: &["probe/machine.json"],
            exact: false,
            ..CASE
        },
        Case {
            name: "probe-from",
            line: "probe --from {given}/probe/machine.json -o {made}/page".into(),
            given: &[Given::Machine],
            plain: &["probe/machine.json"],
            ..CASE
        },
        Case {
            name: "topology",
            line: "topology --from {given}/machine.txt --json".into(),
            given: &[Given::Recording],
            plain: &["machine.txt"],
            ..CASE
        },
        Case { name: "topology-record", line: "topology --record {made}/r.txt".into(), exact: false, ..CASE },
        Case { name: "man", line: "man {made}/man".into(), ..CASE },
        Case { name: "completions", line: "completions bash".into(), ..CASE },
    ]
}
