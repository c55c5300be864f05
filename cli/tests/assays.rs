//! Libraries other than whole genomes of sheared DNA from clean samples: amplicons, consensus reads, short reads, normals
//! that are shallow or contain tumour cells, and DNA of another person in the tumour.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{self, Data, run, summary};

/// A variant: contig, position, reference and alternative bases.
type Variant = (String, String, String, String);

/// Calls a simulated pair and returns the folder with the results.
fn call_pair(data: &Data, options: &[&str]) -> PathBuf {
    let out = data.folder.join("calls");
    run(data.call_with(&out, options)).assert_success();
    out
}

/// The variants of a VCF text, all or those with FILTER PASS.
fn variants(vcf: &str, only_passed: bool) -> BTreeSet<Variant> {
    let records = vcf.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect::<Vec<_>>());
    records
        .filter(|fields| !only_passed || fields[6] == "PASS")
        .map(|fields| (fields[0].into(), fields[1].into(), fields[3].into(), fields[4].into()))
        .collect()
}

/// The true small variants of a simulated pair.
fn truth(data: &Data) -> BTreeSet<Variant> {
    let truth = fs::read_to_string(data.folder.join("truth.vcf")).expect("the truth");
    variants(&truth, false)
        .into_iter()
        .filter(|(_, _, _, alternative)| !alternative.contains(['<', '[', ']']))
        .collect()
}

/// Numbers of true variants, of those that pass, and of variants that pass and are not true.
fn score(data: &Data, out: &Path) -> [usize; 3] {
    let (truth, called) = (truth(data), variants(&vcf_text(out), true));
    [truth.len(), truth.intersection(&called).count(), called.difference(&truth).count()]
}

/// Allele fraction of a variant in the tumour, the last sample.
fn allele_fraction(vcf: &str, (contig, position, _, alternative): &Variant) -> f64 {
    let is_own = |fields: &Vec<&str>| fields[0] == contig && fields[1] == position && fields[4] == alternative;
    let mut records = vcf.lines().map(|line| line.split('\t').collect::<Vec<_>>()).filter(|fields| fields.len() > 9);
    let fields = records.find(is_own).expect("a record");
    let value = |key: &str| {
        let at = fields[8].split(':').position(|other| other == key).expect("a key of FORMAT");
        fields[fields.len() - 1].split(':').nth(at).expect("a value").to_owned()
    };
    value("AF").parse().expect("a number")
}

#[test]
fn pairs_of_amplicons_are_molecules() {
    for (seed, depths) in [("3", ["600", "300"]), ("4", ["200", "100"])] {
        let [tumor, normal] = depths;
        let data = Data::simulate(
            &format!("amplicons-{tumor}"),
            &[
                "--library",
                "amplicon",
                "--genome-length",
                "30000",
                "--snvs",
                "25",
                "--indels",
                "0",
                "--svs",
                "0",
                "--seed",
                seed,
                "--depth-tumor",
                tumor,
                "--depth-normal",
                normal,
                "--purity",
                "0.5",
            ],
        );
        let out = call_pair(&data, &[]);
        let library = &summary(&out)["sample_summary"]["libraries"];
        assert_eq!(
            (&library["tumour"]["fragment_ends"], &library["normal"]["fragment_ends"]),
            (&"fixed".into(), &"fixed".into())
        );
        assert_eq!(library["tumour"]["assay"]["assay"], "amplicon");
        assert_eq!(library["tumour"]["assay"]["is_given"], false);
        let (truth, vcf) = (truth(&data), vcf_text(&out));
        let called = variants(&vcf, true);
        // Primers hide the variants below them.
        let found = truth.intersection(&called).count();
        assert!(found * 10 >= truth.len() * 8, "{tumor}x: {found} of {}", truth.len());
        // Errors of early PCR cycles are in up to a tenth of the pairs at 200x, and cannot be distinguished from subclones.
        let is_rare = |variant: &&Variant| allele_fraction(&vcf, variant) < 0.12;
        let wrong: Vec<&Variant> = called.difference(&truth).filter(|variant| !is_rare(variant)).collect();
        assert!(wrong.is_empty(), "{tumor}x: {wrong:?}");
        // The user decides.
        let out = call_pair(&data, &["--assay", "panel"]);
        let library = &summary(&out)["sample_summary"]["libraries"]["tumour"];
        assert_eq!((&library["assay"]["assay"], &library["assay"]["is_given"]), (&"panel".into(), &true.into()));
        assert_eq!(library["fragment_ends"], "random");
        assert!(variants(&vcf_text(&out), true).len() < found, "most pairs are removed as duplicates");
    }
}

#[test]
fn consensus_reads_show_changes_of_few_molecules() {
    let data = Data::simulate(
        "consensus",
        &[
            "--umi",
            "3M1S+T",
            "--consensus",
            "--genome-length",
            "20000",
            "--snvs",
            "20",
            "--indels",
            "0",
            "--svs",
            "0",
            "--seed",
            "5",
            "--depth-tumor",
            "500",
            "--depth-normal",
            "250",
            "--purity",
            "0.05",
        ],
    );
    let out = call_pair(&data, &[]);
    let libraries = &summary(&out)["sample_summary"]["libraries"];
    let error_rate = libraries["tumour"]["error_rate"].as_f64().expect("a measured rate");
    assert!(error_rate < 1e-4, "{error_rate}");
    let [all, found, wrong] = score(&data, &out);
    assert!(found * 10 >= all * 8 && wrong <= 1, "{found} of {all}, {wrong} wrong");
}

#[test]
fn short_reads_get_short_kmers() {
    let data = Data::simulate(
        "short",
        &[
            "--read-length",
            "36",
            "--insert-mean",
            "200",
            "--genome-length",
            "100000",
            "--snvs",
            "20",
            "--indels",
            "10",
            "--svs",
            "0",
            "--seed",
            "6",
            "--depth-tumor",
            "60",
            "--depth-normal",
            "30",
        ],
    );
    let out = call_pair(&data, &[]);
    assert_eq!(summary(&out)["k"], 21);
    let [all, found, wrong] = score(&data, &out);
    assert!(found * 10 >= all * 8 && wrong <= 1, "{found} of {all}, {wrong} wrong");
}

#[test]
fn shallow_normals_leave_a_record_of_each_change() {
    let data = Data::simulate(
        "shallow",
        &[
            "--genome-length",
            "100000",
            "--snvs",
            "30",
            "--indels",
            "0",
            "--svs",
            "0",
            "--seed",
            "7",
            "--depth-tumor",
            "60",
            "--depth-normal",
            "5",
            "--purity",
            "0.9",
        ],
    );
    let out = call_pair(&data, &[]);
    let (truth, recorded) = (truth(&data), variants(&vcf_text(&out), false));
    let missing: Vec<_> = truth.difference(&recorded).collect();
    // A twentieth of the positions has no read of the normal.
    assert!(missing.len() * 8 <= truth.len(), "{missing:?}");
}

/// A shallow normal cannot exclude germline variants, but known variants of the population do: nearly all other
/// variants of the tumour then pass.
#[test]
fn known_variants_take_the_place_of_a_deep_normal() {
    let data = Data::simulate(
        "known",
        &[
            "--genome-length",
            "100000",
            "--snvs",
            "30",
            "--indels",
            "10",
            "--svs",
            "0",
            "--seed",
            "17",
            "--depth-tumor",
            "60",
            "--depth-normal",
            "5",
            "--purity",
            "0.9",
        ],
    );
    let [_, without, _] = score(&data, &call_pair(&data, &[]));
    let germline = fs::read_to_string(data.folder.join("germline.vcf")).expect("the germline variants");
    let known: String = germline
        .lines()
        .map(|line| match line.split('\t').collect::<Vec<_>>()[..] {
            [contig, pos, id, reference, alternative, ..] if !line.starts_with('#') => {
                format!("{contig}\t{pos}\t{id}\t{reference}\t{alternative}\t.\tPASS\tAF=0.1\n")
            }
            _ => format!("{line}\n"),
        })
        .filter(|line| line.starts_with("##") || !line.starts_with('#'))
        .collect();
    let plain = data.folder.join("known.vcf");
    fs::write(&plain, &known).expect("a file");
    let out = call_pair(&data, &["--known", plain.to_str().expect("a path")]);
    let [all, found, wrong] = score(&data, &out);
    assert!(without * 2 < all && found * 100 >= all * 85 && wrong == 0, "{all}: {without}, {found} and {wrong}");
    let vcf = vcf_text(&out);
    let listed = vcf.lines().filter(|line| line.contains(";POPAF=1.00"));
    let filters: Vec<&str> = listed.filter_map(|line| line.split('\t').nth(6)).collect();
    assert!(filters.len() > 3 && filters.iter().all(|filter| filter.contains("germline")), "{filters:?}");

    // The same from a file that has an index.
    let indexed = common::bgzip(data.folder.join("known.vcf.gz"), known.as_bytes());
    let tabix = std::process::Command::new("tabix").args(["-p", "vcf"]).arg(&indexed).output();
    match tabix {
        Ok(done) if done.status.success() => {
            let by_index = call_pair(&data, &["--known", indexed.to_str().expect("a path")]);
            let records = |vcf: &str| vcf.lines().filter(|line| !line.starts_with("##")).collect::<Vec<_>>().join("\n");
            assert_eq!(records(&vcf_text(&by_index)), records(&vcf));
        }
        _ => common::skipped("the call with an index: tabix is missing or failed"),
    }

    // The same from a distributed call.
    let [store, parts] = ["run", "parts"].map(|name| data.folder.join(name));
    let [store_text, known_text] = [&store, &plain].map(|path| path.to_str().expect("a path").to_owned());
    let plan = ["--known", &known_text, "--plan", &store_text, "--shards", "1", "--partitions", "1"];
    run(data.call_with(&parts, &plan)).assert_success();
    common::run_all_steps(&store_text, [1, 1], &data.folder);
    assert_eq!(vcf_text(&parts), vcf);

    // A file of another genome build.
    let other = data.folder.join("other.vcf");
    fs::write(&other, "##fileformat=VCFv4.2\nnone\t5\t.\tA\tC\t.\t.\tAF=0.1\n").expect("a file");
    let refused = run(data.call_with(&data.folder.join("refused"), &["--known", other.to_str().expect("a path")]));
    assert!(refused.stderr.contains("has contig \"none\" and others, but none of the reference"), "{}", refused.stderr);
}

#[test]
fn tumour_cells_in_the_normal_do_not_hide_changes() {
    let data = Data::simulate(
        "tumour-in-normal",
        &[
            "--genome-length",
            "300000",
            "--snvs",
            "60",
            "--indels",
            "0",
            "--svs",
            "0",
            "--seed",
            "8",
            "--depth-tumor",
            "60",
            "--depth-normal",
            "30",
            "--purity",
            "0.9",
            "--tumor-in-normal",
            "0.2",
        ],
    );
    let [all, found, wrong] = score(&data, &call_pair(&data, &[]));
    assert!(found * 10 >= all * 7 && wrong <= 2, "{found} of {all}, {wrong} wrong");
}

#[test]
fn dna_of_another_person_makes_no_calls() {
    let data = Data::simulate(
        "another-person",
        &[
            "--genome-length",
            "1000000",
            "--snvs",
            "50",
            "--indels",
            "0",
            "--svs",
            "0",
            "--seed",
            "9",
            "--depth-tumor",
            "60",
            "--depth-normal",
            "30",
            "--purity",
            "0.8",
            "--foreign-tumor",
            "0.05",
        ],
    );
    let out = call_pair(&data, &[]);
    let [all, found, wrong] = score(&data, &out);
    assert!(found * 10 >= all * 9 && wrong <= 2, "{found} of {all}, {wrong} wrong");
    assert!(vcf_text(&out).lines().any(|line| line.split('\t').nth(6).is_some_and(|f| f.contains("contamination"))));
}

/// The text of the VCF in a folder of results.
fn vcf_text(out: &Path) -> String {
    String::from_utf8(common::read_without_provenance(&out.join("somatic.vcf.gz"))).expect("UTF-8")
}
