//! The results say what they were made from: command line, inputs with sizes, reference with checksums, platform.

use std::fs;
use std::path::Path;
use std::process::Command;

use md5::{Digest, Md5};

use crate::common::{called, data, gunzip, installed, json, run, scratch};

fn vcf_text(out: &Path) -> String {
    String::from_utf8(gunzip(&out.join("somatic.vcf.gz"))).expect("UTF-8")
}

/// The text of a BAM header.
fn bam_header(path: &Path) -> String {
    let bytes = gunzip(path);
    let end = 8 + u32::from_le_bytes(bytes[4..8].try_into().expect("a length")) as usize;
    String::from_utf8(bytes[8..end].to_vec()).expect("UTF-8")
}

#[test]
fn headers_name_command_inputs_and_reference() {
    let vcf = vcf_text(called());
    let header: Vec<&str> = vcf.lines().take_while(|line| line.starts_with("##")).collect();
    let command = header.iter().find_map(|line| line.strip_prefix("##genumaCommandLine=")).expect("a command line");
    for part in [" call --tumor ", "tumor_1.fq.gz", " --threads 2", "-o "] {
        assert!(command.contains(part), "{part}: {command}");
    }
    let files = [("NORMAL", &data().normal), ("TUMOR", &data().tumor)];
    let files = files.into_iter().flat_map(|(role, files)| files.iter().map(move |path| (role, path)));
    let expected: Vec<String> = (1..)
        .zip(files)
        .map(|(number, (role, path))| {
            let bytes = fs::metadata(path).expect("reads").len();
            format!("##genumaInput=<ID={number},Role=\"{role}\",Path=\"{}\",Bytes={bytes}>", path.display())
        })
        .collect();
    let inputs: Vec<&str> = header.iter().filter(|line| line.starts_with("##genumaInput=")).copied().collect();
    assert_eq!(inputs, expected);
    let reference = data().reference.as_ref().expect("a reference");
    assert!(header.contains(&&*format!("##reference=file://{}", reference.display())), "{header:?}");
    let text = fs::read_to_string(reference).expect("FASTA");
    for sequence in text.split('>').skip(1) {
        let (name, bases) = sequence.split_once('\n').expect("bases");
        let (name, bases) = (name.split(' ').next().expect("a name"), bases.replace('\n', "").to_uppercase());
        let md5: String = Md5::digest(&bases).iter().map(|byte| format!("{byte:02x}")).collect();
        let line = format!("##contig=<ID={name},length={},md5={md5}>", bases.len());
        assert!(header.contains(&&*line), "{line}: {header:?}");
        let line = format!("@SQ\tSN:{name}\tLN:{}\tM5:{md5}\n", bases.len());
        assert!(bam_header(&called().join("supporting.bam")).contains(&line), "{line}");
    }
}

#[test]
fn depth_and_fraction_of_tumour_and_control_are_in_info() {
    for record in vcf_text(called()).lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = record.split('\t').collect();
        let value = |key: &str| {
            let field = columns[7].split(';').find_map(|field| field.strip_prefix(key)?.strip_prefix('='));
            field.expect(key).to_owned()
        };
        for (column, keys) in [(10, ["TDP", "TVAF"]), (9, ["CDP", "CVAF"])] {
            let sample: Vec<&str> = columns[column].split(':').collect();
            assert_eq!(keys.map(value), [sample[2], sample[3]], "{record}");
        }
    }
}

/// Names with blanks and quotes, given names of the samples, and the platform of read groups.
#[test]
fn names_and_platform_reach_all_results() {
    let Some(samtools) = installed("samtools") else { return };
    let folder = scratch("a lab's \"run\"");
    let path = |name: &str| folder.join(name).to_str().expect("UTF-8").to_owned();
    let tumour = path("tumour.bam");
    let groups = ["-r", "ID:one", "-r", "SM:other", "-r", "PL:dnbseq"];
    let mut import = Command::new(samtools);
    import.arg("import").args(groups).arg("-1").arg(&data().tumor[0]).arg("-2").arg(&data().tumor[1]);
    let made = import.args(["-o", &tumour]).output().expect("samtools");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let (out, maf) = (folder.join("out"), path("x.maf"));
    let normal = data().normal.iter().map(|path| path.to_str().expect("UTF-8"));
    let mut args = vec!["call", "--tumor", &tumour, "--tumor-name", "P1T", "--normal-name", "P1N", "--normal"];
    args.extend(normal);
    let reference = data().reference.as_ref().expect("a reference").to_str().expect("UTF-8");
    let out_text = out.to_str().expect("UTF-8").to_owned();
    args.extend(["--reference", reference, "--maf", &maf, "-o", &out_text, "--threads", "2"]);
    run(&args).assert_success();
    let vcf = vcf_text(&out);
    assert!(vcf.contains("\tFORMAT\tP1N\tP1T\n"), "{vcf}");
    let quoted = format!("--tumor '{}'", tumour.replace('\'', r"'\''"));
    assert!(vcf.contains(&quoted), "{quoted}");
    assert!(vcf.contains(r#"run\"/tumour.bam",Bytes="#), "{vcf}");
    let header = bam_header(&out.join("supporting.bam"));
    assert!(header.contains("@RG\tID:P1N\tSM:P1N\n@RG\tID:P1T\tSM:P1T\tPL:DNBSEQ\n"), "{header}");
    assert!(header.contains("\tCL:") && header.contains("--tumor-name P1T"), "{header}");
    let table = fs::read_to_string(&maf).expect("a MAF");
    assert!(table.lines().filter(|line| line.contains("\tP1T\tP1N\t")).count() > 20, "{table}");
    let page = fs::read_to_string(out.join("report.html")).expect("a report");
    let summary = json(&out.join("summary.json"));
    let md5 = summary["reference_identity"]["md5"].as_str().expect("a sum");
    for part in ["<dd>P1T</dd>", "<dd>P1N</dd>", md5, summary["date"].as_str().expect("a date")] {
        assert!(page.contains(part), "{part}");
    }
    let sections = fs::read_to_string(out.join("genuma_general_mqc.json")).expect("a section");
    assert!(sections.contains("P1T") && sections.contains("P1N"), "{sections}");

    // The given platform is that of all samples.
    let again = folder.join("again").to_str().expect("UTF-8").to_owned();
    let at = args.iter().position(|arg| *arg == "-o").expect("an option");
    args[at + 1] = &again;
    run(args.iter().chain(&["--platform", "ultima"])).assert_success();
    let header = bam_header(&Path::new(&again).join("supporting.bam"));
    assert_eq!(header.matches("\tPL:ULTIMA\n").count(), 2, "{header}");
    assert_eq!(run(args.iter().chain(&["--platform", "nanopore"])).code, Some(2));
}
