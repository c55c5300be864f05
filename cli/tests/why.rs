//! `genuma call --why`: explanations for called and invented variants.

use std::fs;
use std::path::Path;

use crate::common::{
    Data, SharedFixture, assert_same, gunzip, names, peak_memory_bytes, run, scratch, write_many_substitutions,
};

fn data() -> &'static Data {
    static DATA: SharedFixture<Data> = SharedFixture::new();
    DATA.get_or_init(|| {
        let size = ["--genome-length", "60000", "--contigs", "1", "--seed", "11"];
        let variants = ["--snvs", "8", "--indels", "6", "--svs", "4", "--largest-sv", "3000"];
        Data::simulate("why-data", &[size.as_slice(), &variants].concat())
    })
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("a text file")
}

/// Explanations by the variant asked for.
fn answers(said: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for line in said.lines() {
        match (line.starts_with(' '), all.last_mut()) {
            (true, Some((_, lines))) => *lines += &format!("{}\n", line.trim()),
            _ => all.push((line.to_owned(), String::new())),
        }
    }
    all
}

#[test]
fn each_variant_is_followed_to_its_end() {
    let data = data();
    let plain = scratch("plain");
    run(data.call(&plain)).assert_success();
    let genome = text(&data.folder.join("genome.fa"));
    let chrom = genome.lines().next().expect("a header")[1..].split(' ').next().expect("a name").to_owned();
    let seq: String = genome.lines().skip(1).take_while(|l| !l.starts_with('>')).collect();
    let truth = text(&data.folder.join("truth.vcf"));
    let germline = text(&data.folder.join("germline.vcf"));
    let field = |line: &str, n: usize| line.split('\t').nth(n).expect("a column").to_owned();
    let places = |vcf: &str| -> Vec<usize> {
        vcf.lines().filter(|l| !l.starts_with('#')).map(|l| field(l, 1).parse().expect("POS")).collect()
    };
    let taken = [places(&truth), places(&germline)].concat();
    // A substitution that no sample has, far from all variants.
    let pos = (5000..55_000).find(|p| taken.iter().all(|t| t.abs_diff(*p) > 200)).expect("a free place");
    let base = &seq[pos - 1..pos];
    let other = if base == "A" { "C" } else { "A" };
    let made_up = format!("{chrom}:{pos}:{base}>{other}");

    let out = scratch("asked");
    let vcf = data.folder.join("truth.vcf");
    let asked = ["--why", vcf.to_str().expect("UTF-8"), "--why", &made_up];
    let said = run(data.call_with(&out, &asked)).assert_success().stdout;
    assert_eq!(said, text(&out.join("why.txt")));
    let answers = answers(&said);
    assert_eq!(answers.len(), 1 + places(&truth).len());

    // Calls that pass in the VCF pass in the explanation.
    let called = String::from_utf8(gunzip(&out.join("somatic.vcf.gz"))).expect("UTF-8");
    let passed: Vec<String> = called
        .lines()
        .filter(|l| !l.starts_with('#') && field(l, 6) == "PASS" && field(l, 7).contains("CLASS=SNV;"))
        .map(|l| format!("{}:{}:{}>{}", field(l, 0), field(l, 1), field(l, 3), field(l, 4)))
        .collect();
    assert!(passed.len() >= 4, "{called}");
    let mut told = 0;
    for (question, answer) in answers.iter().filter(|(question, _)| passed.contains(question)) {
        told += 1;
        let verdict = answer.lines().find(|l| l.starts_with("judge: this is")).expect("a verdict");
        assert!(verdict.ends_with("PASS") && verdict.contains(question.as_str()), "{answer}");
        assert!(answer.contains("assemble: contig"), "{answer}");
        assert!(answer.contains("explained by ") && answer.contains(", cost "), "{answer}");
        assert!(answer.contains("0 in the normal"), "{answer}");
    }
    assert_eq!(told, passed.len());

    let (question, answer) = answers.last().expect("an answer");
    assert_eq!(question, &made_up);
    for line in [
        "count: 31 k-mers of the changed sequence only, 0 times in the tumour and 0 in the normal; 31 of the unchanged sequence only, ",
        "select: 0 of them are candidates",
        "assemble: no contig contains any of the k-mers",
        "judge: no call at this position",
    ] {
        assert!(answer.contains(line), "{line} is not in\n{answer}");
    }

    // --why changes no other result, and removes the explanations of an earlier run.
    assert!(names(&out).contains(&"why.txt".to_owned()));
    fs::remove_file(out.join("why.txt")).expect("why.txt goes");
    assert_same(&plain, &out);
    fs::write(plain.join("why.txt"), "an earlier run's").expect("a file");
    run(data.call(&plain)).assert_success();
    assert!(!names(&plain).contains(&"why.txt".to_owned()));
}

#[test]
fn many_variants_keep_to_the_memory_or_are_refused() {
    let data = data();
    let folder = scratch("many-variants");
    let [genome, vcf] = write_many_substitutions(&folder, 12_000);
    let data = Data { reference: Some(genome), ..data.clone() };
    let ask = |memory: &str| {
        let asked = ["--why", vcf.to_str().expect("UTF-8"), "--threads", "2", "--memory", memory, "--force"];
        data.call_with(&folder.join("out"), &asked)
    };
    let refused = run(ask("160M"));
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let reason = "160 MiB of memory is too little for --why of 12000 variants, which needs ";
    assert!(refused.stderr.contains(reason) && refused.stderr.contains("raise --memory"), "{}", refused.stderr);
    let peak = peak_memory_bytes(ask("256M"));
    assert!(peak < 256 << 20, "{peak} bytes");
}

#[test]
fn questions_that_make_no_sense_are_refused_before_work_starts() {
    let data = data();
    let out = scratch("refused");
    let ask = |data: &Data, question: &str| run(data.call_with(&out, &["--why", question]));
    for (question, reason) in [
        ("chr9:100:A>C", "the reference has no sequence chr9"),
        ("no such file", "neither a VCF file nor CHROM:POS:REF>ALT"),
        ("chr1:0:A>C", "no position 0"),
        ("chr1:99999999:A>C", "no position 99999999"),
        ("chr1:100:X>C", "no sequence to search for"),
    ] {
        let ended = ask(data, question);
        assert_eq!(ended.code, Some(2), "{question}: {}", ended.stderr);
        assert!(ended.stderr.contains(reason), "{question}: {}", ended.stderr);
    }
    let genome = text(&data.folder.join("genome.fa"));
    let here = &genome.lines().nth(1).expect("bases")[9..10];
    let (wrong, other) = if here == "A" { ("C", "G") } else { ("A", here) };
    let ended = ask(data, &format!("chr1:10:{wrong}>{other}"));
    assert_eq!(ended.code, Some(2));
    let reason = format!("the reference has {here} at chr1:10, not {wrong}");
    assert!(ended.stderr.contains(&reason), "{}", ended.stderr);
    let without = Data { reference: None, ..data.clone() };
    let ended = ask(&without, "chr1:100:A>C");
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("--reference"), "{}", ended.stderr);
}
