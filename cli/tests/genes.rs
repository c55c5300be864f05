//! `genuma call --gff`: genes, consequences and protein changes in all outputs.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{called, data, json, read_without_provenance, run, run_all_steps, scratch, two_genes};

fn vcf(out: &Path) -> String {
    String::from_utf8(read_without_provenance(&out.join("somatic.vcf.gz"))).expect("UTF-8")
}

/// The VCF without what the genes add.
fn without_genes(text: &str) -> String {
    let is_added = |line: &str| {
        let fields = ["##INFO=<ID=BCSQ", "##INFO=<ID=HGVS", "##INFO=<ID=FUSION", "##INFO=<ID=EXONS", "##genumaGff="];
        fields.iter().any(|field| line.starts_with(field)) || line.starts_with("##genumaCommand=")
    };
    let own_fields = ["BCSQ=", "HGVS=", "FUSION=", "EXONS="];
    let strip = |line: &str| -> String {
        let mut columns: Vec<String> = line.split('\t').map(str::to_owned).collect();
        if let Some(info) = columns.get_mut(7).filter(|_| !line.starts_with('#')) {
            let kept: Vec<&str> =
                info.split(';').filter(|f| !own_fields.iter().any(|own| f.starts_with(own))).collect();
            *info = kept.join(";");
        }
        columns.join("\t") + "\n"
    };
    text.lines().filter(|line| !is_added(line)).map(strip).collect()
}

#[test]
fn genes_are_in_all_outputs_and_change_nothing_else() {
    let folder = scratch("outputs");
    let gff = folder.join("genes.gff3");
    fs::write(&gff, two_genes(data().reference.as_ref().expect("a reference"))).expect("a file");
    let (gff, maf) = (gff.to_str().expect("UTF-8"), folder.join("calls.maf"));
    let out = folder.join("out");
    let copy = folder.join("copy.json");
    let options = ["--gff", gff, "--maf", maf.to_str().expect("UTF-8"), "--json", copy.to_str().expect("UTF-8")];
    run(data().call_with(&out, &options)).assert_success();

    let text = vcf(&out);
    assert!(text.contains("##genumaGff=genes.gff3\n") && text.contains(" --gff genes.gff3"), "{text}");
    let annotated =
        text.lines().filter(|line| line.contains(";BCSQ=") && line.contains("|ABC1|T1|protein_coding")).count();
    assert!(annotated > 3, "{text}");
    assert_eq!(without_genes(&text), without_genes(&vcf(called())), "only the fields of the genes are new");

    let rows = fs::read_to_string(&maf).expect("a MAF");
    let rows: Vec<Vec<&str>> = rows.lines().filter(|l| !l.starts_with('#')).map(|l| l.split('\t').collect()).collect();
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{rows:?}");
    assert_eq!(rows[0][rows[0].len() - 4..], ["HGVSc", "HGVSp", "Transcript_ID", "Consequence"]);
    let own: Vec<&Vec<&str>> = rows.iter().filter(|row| row[0] == "ABC1").collect();
    assert!(
        !own.is_empty() && own.iter().all(|row| row[8] != "Unknown" && row[row.len() - 4].starts_with("c.")),
        "{own:?}"
    );

    let summary = json(&out.join("summary.json"));
    assert_eq!(json(&copy), summary);
    let annotation = &summary["annotation"];
    assert_eq!((annotation["genes"].as_u64(), annotation["coding_transcripts"].as_u64()), (Some(2), Some(1)));
    let counted: u64 = annotation["consequences"].as_object().expect("counts").values().filter_map(Value::as_u64).sum();
    assert_eq!(Some(counted as usize), summary["calls"].as_array().map(Vec::len));
    let page = fs::read_to_string(out.join("report.html")).expect("a report");
    assert!(page.contains(">Gene</th>") && page.contains(">ABC1 <span"), "the report shows genes");
    let plain = fs::read_to_string(called().join("report.html")).expect("a report");
    assert!(!plain.contains(">Gene</th>"));

    let (store, apart) = (folder.join("run"), folder.join("apart"));
    let store = store.to_str().expect("UTF-8");
    let plan = ["--gff", gff, "--plan", store, "--shards", "2", "--partitions", "2", "--threads", "2"];
    run(data().call_with(&apart, &plan)).assert_success();
    run_all_steps(store, [2, 2], &folder);
    assert_eq!(vcf(&apart), text);
}

#[test]
fn unfit_gene_files_are_refused_before_the_call() {
    let folder = scratch("refused");
    let gff = folder.join("genes.gff3");
    let genes = two_genes(data().reference.as_ref().expect("a reference"));
    let name = genes.split('\t').next().expect("a name").to_owned();
    let cases = [
        (genes.replace(&format!("{name}\t"), "elsewhere\t"), "no contig of the file is in the reference"),
        (genes.replace("45000", "45000000"), "is beyond the"),
        ("no genes\n".to_owned(), "no GFF3 feature"),
    ];
    for (text, expected) in cases {
        fs::write(&gff, text).expect("a file");
        let ended = run(data().call_with(&folder.join("out"), &["--gff", gff.to_str().expect("UTF-8")]));
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
        assert!(!folder.join("out/somatic.vcf.gz").exists());
    }
}
