//! Both workflows on the samplesheet of nf-core/sarek: FASTQ of a wrong pair, BAM, and CRAM without a normal. The names of the
//! sheet are those of the results, and the wrong pair ends only its own branch.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{Data, SharedFixture, fetched, gunzip, installed, names, python_peer, repository, scratch};
use genuma_faults::test_inputs::format_test_signature_matrix;
use serde_json::Value;

fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

/// A patient, and a pair of two people with the same reference.
fn patients() -> &'static [Data; 2] {
    static MADE: SharedFixture<[Data; 2]> = SharedFixture::new();
    MADE.get_or_init(|| {
        let size = ["--genome-length", "300000", "--contigs", "2", "--seed", "11"];
        let changes = ["--snvs", "30", "--indels", "10", "--svs", "2", "--largest-sv", "3000", "--depth-tumor", "20"];
        let own = Data::simulate("patient", &[&size[..], &changes].concat());
        let other = Data::simulate("two-people", &[&size[..], &changes, &["--foreign-normal", "1"]].concat());
        let genome = |data: &Data| fs::read(data.folder.join("genome.fa")).expect("a genome");
        assert!(genome(&own) == genome(&other), "one reference");
        [own, other]
    })
}

/// Writes the reads of a sample as unaligned BAM or CRAM.
fn import(samtools: &Path, reads: &[PathBuf], to: &Path) -> String {
    let mut command = Command::new(samtools);
    command.args(["import", "-r", "ID:x", "-r", "SM:of-the-laboratory", "-r", "PL:ILLUMINA", "-1"]).arg(&reads[0]);
    let done = command.arg("-2").arg(&reads[1]).arg("-o").arg(to).output().expect("samtools");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    text(to)
}

/// Writes the samplesheet with all columns of sarek, and returns its path and that of MultiQC.
fn prepare(folder: &Path, samtools: &Path) -> (String, String) {
    let [own, other] = patients();
    let row = |patient: &str, status: &str, sample: &str, reads: &[(&str, &str)]| {
        let columns = ["fastq_1", "fastq_2", "bam", "bai", "cram", "crai"];
        let value =
            |column: &&str| reads.iter().find(|(name, _)| name == column).map_or("", |(_, path)| path).to_owned();
        let cells: Vec<String> = columns.iter().map(value).collect();
        format!("{patient},XX,{status},{sample},L1,{}\n", cells.join(","))
    };
    let fastq = |files: &[PathBuf]| [text(&files[0]), text(&files[1])];
    let [t, n] = [fastq(&other.tumor), fastq(&other.normal)];
    let bam = |reads: &[PathBuf], name: &str| import(samtools, reads, &folder.join(name));
    let (tumour_bam, normal_bam) = (bam(&own.tumor, "t.bam"), bam(&own.normal, "n.bam"));
    let cram = bam(&own.tumor, "only.cram");
    let sheet = [
        "patient,sex,status,sample,lane,fastq_1,fastq_2,bam,bai,cram,crai\n".to_owned(),
        row("WRONG", "1", "W_T", &[("fastq_1", &t[0]), ("fastq_2", &t[1])]),
        row("WRONG", "0", "W_N", &[("fastq_1", &n[0]), ("fastq_2", &n[1])]),
        row("P2", "1", "P2_T", &[("bam", &tumour_bam)]),
        row("P2", "0", "P2_N", &[("bam", &normal_bam)]),
        row("P3", "1", "P3_T", &[("cram", &cram)]),
    ];
    let path = folder.join("samplesheet.csv");
    fs::write(&path, sheet.concat()).expect("a samplesheet");
    (text(&path), multiqc_or_replacement(folder))
}

/// MultiQC, or where it cannot be installed a program that writes what MultiQC would be given: it keeps the names of its files.
fn multiqc_or_replacement(folder: &Path) -> String {
    if let Some(multiqc) = python_peer("multiqc") {
        return text(&multiqc);
    }
    let multiqc = folder.join("multiqc");
    let script = "#!/bin/sh\nfor word; do case $last in --filename) name=$word;; --outdir) mkdir -p \"$word\"; out=$word/;; esac; last=$word; done\n\
        find -L \"$1\" -name '*general_mqc.json' -exec cat {} + >\"$out$name\"\n";
    fs::write(&multiqc, script).expect("a script");
    fs::set_permissions(&multiqc, fs::Permissions::from_mode(0o755)).expect("a program");
    text(&multiqc)
}

/// Writes a gene and a matrix of signatures. Returns their paths.
fn write_gff_and_signatures(folder: &Path) -> [String; 2] {
    let [gff, signatures] = ["genes.gff3", "signatures.txt"].map(|name| folder.join(name));
    let feature = |kind: &str, id: &str| format!("chr1\tmade\t{kind}\t1001\t1300\t.\t+\t0\t{id}\n");
    let features = [
        feature("gene", "ID=gene:G1;Name=ABC1;biotype=protein_coding"),
        feature("mRNA", "ID=transcript:T1;Parent=gene:G1;biotype=protein_coding"),
        feature("exon", "Parent=transcript:T1"),
        feature("CDS", "Parent=transcript:T1"),
    ];
    fs::write(&gff, format!("##gff-version 3\n{}", features.concat())).expect("a file");
    fs::write(&signatures, format_test_signature_matrix()).expect("a file");
    [text(&gff), text(&signatures)]
}

/// Asserts that the results of both right patients have the names of the sheet, and that the wrong pair has none.
#[track_caller]
fn assert_named(results: &Path) {
    for (folder, columns) in [("P2/P2_T_vs_P2_N", "\tP2_N\tP2_T\n"), ("P3/P3_T", "FORMAT\tP3_T\n")] {
        let out = results.join(folder);
        let vcf = String::from_utf8(gunzip(&out.join("somatic.vcf.gz"))).expect("UTF-8");
        assert!(vcf.contains(columns), "{folder}");
        assert!(vcf.contains("##genumaInput=<ID=1,Role="), "{folder}");
        assert!(vcf.contains("##genumaGff="), "{folder}");
        assert!(vcf.contains(",Role=\"signatures\",Path="), "{folder}");
        let summary = fs::read(out.join("summary.json")).expect("a summary");
        let summary: Value = serde_json::from_slice(&summary).expect("JSON");
        assert_eq!(summary["sample_summary"]["signatures"]["num_signatures"], 3, "{folder}");
        let bam = gunzip(&out.join("supporting.bam"));
        let header = String::from_utf8_lossy(&bam[..bam.len().min(4_000)]).into_owned();
        assert!(header.contains("_T\tPL:ILLUMINA\n") && !header.contains("of-the-laboratory\tPL"), "{header}");
        let maf = fs::read_to_string(out.join("somatic.maf")).expect("a MAF");
        assert!(maf.starts_with('#') && maf.contains("Tumor_Sample_Barcode"), "{maf}");
        let page = fs::read_to_string(out.join("report.html")).expect("a report");
        assert!(page.contains(&format!("<dd>{}_T</dd>", &folder[..2])), "{folder}");
    }
    let own = fs::read_to_string(results.join("P2/P2_T_vs_P2_N/somatic.maf")).expect("a MAF");
    assert!(own.lines().filter(|line| line.contains("\tP2_T\tP2_N\t")).count() > 15, "{own}");
    assert!(names(&results.join("WRONG/W_T_vs_W_N")).is_empty());
    let common = fs::read_to_string(results.join("multiqc/multiqc_report.html")).expect("a common report");
    assert!(common.contains("P2_T") && common.contains("P3_T") && !common.contains("W_T"), "{common}");
    let is_real = common.contains("<title>MultiQC Report</title>");
    assert_eq!(is_real, python_peer("multiqc").is_some());
    let versions = fs::read_to_string(results.join("pipeline_info/versions.yml")).expect("the versions");
    assert!(versions.contains(&format!("    genuma: {}\n", env!("CARGO_PKG_VERSION"))), "{versions}");
    assert!(versions.contains("Workflow:\n    ") && versions.lines().all(|line| !line.ends_with(": ")), "{versions}");
    assert_eq!(versions.contains("    multiqc: 1."), is_real, "{versions}");
}

/// The nf-core module gives the results the names of the samples, with targets, known variants and genes.
#[test]
fn the_module_of_nf_core_runs() {
    if !fetched("scripts/nextflow.sh") {
        return;
    }
    let folder = scratch("nf-core");
    let own = &patients()[0];
    let [gff, _] = write_gff_and_signatures(&folder);
    let [targets, known] = ["targets.bed", "known.vcf"].map(|name| folder.join(name));
    fs::write(&targets, "chr1\t0\t100000\n").expect("a file");
    let header = "##fileformat=VCFv4.2\n##INFO=<ID=AF,Number=A,Type=Float,Description=\"Frequency\">\n";
    fs::write(&known, format!("{header}chr1\t5\t.\tA\tC\t.\t.\tAF=0.1\n")).expect("a file");
    let file = |path: &str| format!("file('{path}')");
    let reads = |files: &[PathBuf]| files.iter().map(|path| file(&text(path))).collect::<Vec<_>>().join(", ");
    let script = format!(
        "nextflow.preview.topic = true\ninclude {{ GENUMA_CALL }} from '{}'\nworkflow {{\n  GENUMA_CALL(\n    \
         [[id: 'pair', tumor_id: 'LAB_T', normal_id: 'LAB_N'], [{}], [{}]],\n    [[:], {}], [[:], []], [[:], {}], \
         [[:], {}, []], [[:], {}])\n}}\n",
        text(&repository("contrib/nf-core/modules/nf-core/genuma/call/main.nf")),
        reads(&own.tumor),
        reads(&own.normal),
        file(&text(&own.folder.join("genome.fa"))),
        file(&text(&targets)),
        file(&text(&known)),
        file(&gff),
    );
    fs::write(folder.join("module.nf"), script).expect("a workflow");
    let config = "process.cpus = 2\nprocess.publishDir = [path: 'out', mode: 'copy']\n";
    fs::write(folder.join("nextflow.config"), config).expect("a file");
    let mut command = Command::new(repository("scripts/nextflow.sh"));
    command.args(["run", "module.nf", "-ansi-log", "false"]).current_dir(&folder).stdin(Stdio::null());
    let program = Path::new(env!("CARGO_BIN_EXE_genuma")).parent().expect("a folder");
    command.env("PATH", format!("{}:{}", text(program), std::env::var("PATH").expect("PATH")));
    let output = command.output().expect("nextflow");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let out = folder.join("out/pair");
    let vcf = String::from_utf8(gunzip(&out.join("pair.vcf.gz"))).expect("UTF-8");
    assert!(vcf.contains("FORMAT\tLAB_N\tLAB_T\n") && vcf.contains("##genumaGff=genes.gff3\n"), "{vcf}");
    assert!(vcf.contains(" --known known.vcf") && vcf.contains(" --targets targets.bed"), "{vcf}");
    for name in ["pair.vcf.gz.tbi", "contigs.fa", "supporting.bam", "summary.json", "report.html", "targets.tsv"] {
        assert!(out.join(name).exists(), "{name}");
    }
}

#[test]
fn nextflow_ends_only_the_branch_of_the_wrong_pair() {
    let Some(samtools) = installed("samtools").filter(|_| fetched("scripts/nextflow.sh")) else { return };
    let folder = scratch("nextflow");
    let (sheet, multiqc) = prepare(&folder, &samtools);
    let mut command = Command::new(repository("scripts/nextflow.sh"));
    command.arg("run").arg(repository("workflow/main.nf")).args(["-ansi-log", "false", "-profile", "standard,test"]);
    command.args(["--input", &sheet, "--multiqc", &multiqc, "--strict", "--genuma", env!("CARGO_BIN_EXE_genuma")]);
    command.arg("--reference").arg(patients()[0].folder.join("genome.fa"));
    let [gff, signatures] = write_gff_and_signatures(&folder);
    command.args(["--gff", &gff, "--signatures", &signatures]);
    command.args(["--genuma_args=--threads 2"]).current_dir(&folder).stdin(Stdio::null());
    let output = command.output().expect("nextflow");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("FINISH (WRONG W_T_vs_W_N)") && said.contains("Error is ignored"), "{said}");
    assert_named(&folder.join("results"));
}

/// Runs Nextflow in `folder` on a tumour whose reads lie in `reads`, with a program in place of docker that appends its
/// arguments to the file `arguments`, one a line, and runs no task. Returns the output and the arguments.
fn run_with_docker_stub(folder: &Path, reads: &Path) -> (String, String) {
    let (bin, log) = (folder.join("bin"), folder.join("arguments"));
    for created in [&bin, reads] {
        fs::create_dir_all(created).expect("a folder");
    }
    let docker = bin.join("docker");
    let script = format!("#!/bin/sh\nif [ \"$1\" = run ]; then printf '%s\\n' \"$@\" >>'{}'; exit 1; fi\n", text(&log));
    fs::write(&docker, script).expect("a script");
    fs::set_permissions(&docker, fs::Permissions::from_mode(0o755)).expect("a program");
    let files = ["t_1.fq", "t_2.fq"].map(|name| reads.join(name));
    let reference = folder.join("genome.fa");
    files.iter().chain([&reference]).for_each(|path| fs::write(path, "").expect("a file"));
    let row = format!("P,1,T,L1,{},{}\n", text(&files[0]), text(&files[1]));
    fs::write(folder.join("sheet.csv"), format!("patient,status,sample,lane,fastq_1,fastq_2\n{row}")).expect("a sheet");
    let mut command = Command::new(repository("scripts/nextflow.sh"));
    command.arg("run").arg(repository("workflow/main.nf")).args(["-ansi-log", "false"]);
    command.args(["-profile", "standard,test,docker", "--input", "sheet.csv", "--reference"]).arg(reference);
    let path = std::env::var("PATH").expect("PATH");
    command.env("PATH", format!("{}:{path}", text(&bin))).current_dir(folder).stdin(Stdio::null());
    let output = command.output().expect("nextflow");
    assert!(!output.status.success(), "no task can succeed");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    // Without a task there is no log.
    let arguments = if log.exists() { fs::read_to_string(&log).expect("a log") } else { String::new() };
    (said, arguments)
}

/// Whether a file of this name is in the folder or below it.
fn is_below(folder: &Path, name: &str) -> bool {
    let mut entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    entries.any(|entry| {
        entry.file_name() == name || (entry.file_type().expect("a type").is_dir() && is_below(&entry.path(), name))
    })
}

#[test]
fn folder_names_are_no_shell_commands_in_a_container() {
    if !fetched("scripts/nextflow.sh") {
        return;
    }
    let folder = scratch("docker");
    let reads = folder.join("x'$(id>pwned)");
    let (said, arguments) = run_with_docker_stub(&folder, &reads);
    let mount = format!("-v\n{0}:{0}\n", text(&reads));
    assert!(arguments.contains(&mount), "{arguments}{said}");
    assert!(!is_below(&folder, "pwned"), "a command of a folder name ran");

    let folder = scratch("docker-colon");
    let (said, arguments) = run_with_docker_stub(&folder, &folder.join("a:b"));
    assert!(
        said.contains("a:b: docker cannot be given a folder with ':'") && arguments.is_empty(),
        "{said}{arguments}"
    );
}

#[test]
fn snakemake_ends_only_the_jobs_of_the_wrong_pair() {
    let Some(samtools) = installed("samtools").filter(|_| fetched("scripts/snakemake.sh")) else { return };
    let folder = scratch("snakemake");
    let (sheet, multiqc) = prepare(&folder, &samtools);
    let mut command = Command::new(repository("scripts/snakemake.sh"));
    command.arg("-s").arg(repository("workflow/Snakefile")).args(["--cores", "2", "--keep-going", "--retries", "0"]);
    command.arg("--config").arg(format!("input={sheet}")).arg(format!("multiqc={multiqc}"));
    command.arg(format!("reference={}", text(&patients()[0].folder.join("genome.fa"))));
    command.args([&format!("genuma={}", env!("CARGO_BIN_EXE_genuma")), "shards=2", "partitions=2", "strict=true"]);
    let [gff, signatures] = write_gff_and_signatures(&folder);
    command.arg(format!("gff={gff}")).arg(format!("signatures={signatures}"));
    command.arg("genuma_args=--threads 2").current_dir(&folder).stdin(Stdio::null());
    let output = command.output().expect("snakemake");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("two people"), "{said}");
    assert_named(&folder.join("results"));
}

#[test]
fn errors_of_the_sheet_are_reported_by_line() {
    if !fetched("scripts/snakemake.sh") {
        return;
    }
    let folder = scratch("sheet");
    let rows = [
        "patient,status,sample,lane,fastq_1,fastq_2,bam\n",
        "P1,1,T,L1,a.fq,b.fq,c.bam\n",
        "P1,0,N,L1,,,\n",
        "P2,1,T2,L1,,,none.bam\n",
        "P3,0,N3,L1,a.fq,,\n",
    ];
    fs::write(folder.join("sheet.csv"), rows.concat()).expect("a sheet");
    let mut command = Command::new(repository("scripts/snakemake.sh"));
    command.arg("-s").arg(repository("workflow/Snakefile")).args(["--cores", "1", "--config", "input=sheet.csv"]);
    let output = command.current_dir(&folder).stdin(Stdio::null()).output().expect("snakemake");
    let said = String::from_utf8_lossy(&output.stderr);
    for part in [
        "line 2: reads in columns fastq_1, fastq_2, bam: give one kind in a line",
        "line 3: no reads: give fastq_1 and fastq_2, bam, or cram",
        "line 4: there is no file none.bam",
        "line 5: no fastq_2: reads come in pairs",
        "patient P2 has no normal sample (status 0): a tumour-only call needs a reference",
        "patient P3 has no tumour sample (status 1)",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}
