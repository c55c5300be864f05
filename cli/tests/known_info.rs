//! `genuma call --known-info`: INFO fields of known variants in all outputs.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::common::{
    bgzip, called, data, genuma, read_without_provenance, run, run_all_steps, scratch, skipped, summary, text,
};
use crate::schema::assert_fits;

const HEADER: &str = "##fileformat=VCFv4.2\n\
    ##INFO=<ID=AF,Number=A,Type=Float,Description=\"Frequency, of all\">\n\
    ##INFO=<ID=CLNSIG,Number=.,Type=String,Description=\"Clinical significance\">\n\
    ##INFO=<ID=HOTSPOT,Number=0,Type=Flag,Description=\"Recurrent in tumours\">\n\
    #CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n";

fn vcf(out: &Path) -> String {
    String::from_utf8(read_without_provenance(&out.join("somatic.vcf.gz"))).expect("UTF-8")
}

/// The records that pass and have one base in REF and ALT, as columns.
fn passed_snvs(vcf: &str) -> Vec<Vec<&str>> {
    let records = vcf.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect::<Vec<_>>());
    records.filter(|record| record[6] == "PASS" && record[3].len() == 1 && record[7].contains("CLASS=SNV")).collect()
}

/// Three known variants: the second ALT of the first record and the second record are calls. The third record has the
/// position of a call and another allele.
fn known_variants() -> String {
    let plain = vcf(called());
    let calls = passed_snvs(&plain);
    let other = |base: &str| ["A", "C", "G", "T"].into_iter().find(|b| !base.contains(b)).expect("a base").to_owned();
    let [first, second, third] = [&calls[0], &calls[1], &calls[2]];
    let [more, third_other] = [first, third].map(|call| other(&format!("{}{}", call[3], call[4])));
    format!(
        "{HEADER}{}\t{}\t.\t{}\t{more},{}\t.\t.\tAF=0.5,0.001;CLNSIG=Likely_benign,x;HOTSPOT\n\
         {}\t{}\t.\t{}\t{}\t.\t.\tCLNSIG=Pathogenic\n{}\t{}\t.\t{}\t{third_other}\t.\t.\tCLNSIG=Benign\n",
        first[0],
        first[1],
        first[3],
        first[4],
        second[0],
        second[1],
        second[3],
        second[4],
        third[0],
        third[1],
        third[3]
    )
}

/// The VCF without the fields of known variants.
fn without_known_info(vcf: &str) -> String {
    let ids = ["KNOWN_AF", "CLNSIG", "HOTSPOT"];
    let is_added = |line: &str| {
        line.starts_with("##genumaCommand=") || ids.iter().any(|id| line.starts_with(&format!("##INFO=<ID={id},")))
    };
    let strip = |line: &str| {
        let fields = line.split('\t').map(|column| {
            let kept = column.split(';').filter(|field| !ids.contains(&field.split('=').next().unwrap_or_default()));
            kept.collect::<Vec<_>>().join(";")
        });
        fields.collect::<Vec<_>>().join("\t") + "\n"
    };
    vcf.lines().filter(|line| !is_added(line)).map(strip).collect()
}

#[test]
fn fields_are_in_all_outputs_and_change_nothing_else() {
    let folder = scratch("known-info");
    let (known, maf, out) = (folder.join("clinvar.vcf"), folder.join("calls.maf"), folder.join("out"));
    fs::write(&known, known_variants()).expect("a file");
    let option = format!("{}:CLNSIG,AF,HOTSPOT", text(&known));
    run(data().call_with(&out, &["--known-info", &option, "--maf", text(&maf)])).assert_success();

    let found = vcf(&out);
    assert!(found.contains(
        "##INFO=<ID=KNOWN_AF,Number=A,Type=Float,Description=\"AF: Frequency, of all\",Source=\"clinvar.vcf\">\n"
    ));
    assert!(found.contains("##INFO=<ID=CLNSIG,Number=.,Type=String,Description=\"Clinical significance\","));
    assert!(found.contains(" --known-info clinvar.vcf:CLNSIG,AF,HOTSPOT"), "the parameters are in the header");
    let calls = passed_snvs(&found);
    assert!(calls[0][7].ends_with(";CLNSIG=Likely_benign,x;KNOWN_AF=0.001;HOTSPOT"), "{}", calls[0][7]);
    assert!(calls[1][7].ends_with(";CLNSIG=Pathogenic"), "{}", calls[1][7]);
    assert!(!calls[2][7].contains("CLNSIG"), "another allele: {}", calls[2][7]);
    assert_eq!(without_known_info(&found), without_known_info(&vcf(called())), "only the chosen fields are new");

    let rows = fs::read_to_string(&maf).expect("a MAF");
    let rows: Vec<Vec<&str>> = rows.lines().filter(|l| !l.starts_with('#')).map(|l| l.split('\t').collect()).collect();
    assert!(rows[0].ends_with(&["CLNSIG", "KNOWN_AF", "HOTSPOT"]) && rows.iter().all(|row| row.len() == rows[0].len()));
    let position = rows[0].iter().position(|column| *column == "vcf_pos").expect("a column");
    let row_of = |call: &[&str]| rows.iter().find(|row| row[4] == call[0] && row[position] == call[1]).expect("a row");
    assert!(row_of(&calls[0]).ends_with(&["Likely_benign,x", "0.001", "1"]));
    assert!(row_of(&calls[2]).ends_with(&["", "", ""]));

    let summary = summary(&out);
    assert_fits("summary", &summary);
    assert_eq!(summary["known_info_fields"], json!(["CLNSIG", "KNOWN_AF", "HOTSPOT"]));
    let known_info: Vec<_> =
        summary["calls"].as_array().expect("calls").iter().map(|call| &call["known_info"]).collect();
    assert!(known_info.contains(&&json!([{ "id": "CLNSIG", "value": "Pathogenic" }])), "{known_info:?}");
    let page = fs::read_to_string(out.join("report.html")).expect("a report");
    assert!(page.contains(">Known</th>") && page.contains("<span class=\"of\">CLNSIG</span> Pathogenic"));
    let inputs = String::from_utf8(crate::common::gunzip(&out.join("somatic.vcf.gz"))).expect("UTF-8");
    assert!(inputs.lines().any(|line| line.starts_with("##genumaInput") && line.contains("clinvar.vcf")));
}

/// An index, and the last step of a distributed call, give the same records.
#[test]
fn an_index_and_a_distributed_call_give_the_same() {
    let folder = scratch("known-info-index");
    let (known, plain) = (folder.join("clinvar.vcf"), folder.join("plain"));
    fs::write(&known, known_variants()).expect("a file");
    let option = format!("{}:CLNSIG", text(&known));
    run(data().call_with(&plain, &["--known-info", &option])).assert_success();
    let records = |out: &Path| -> Vec<String> {
        vcf(out).lines().filter(|line| !line.starts_with("##")).map(str::to_owned).collect()
    };

    let indexed = bgzip(folder.join("clinvar.vcf.gz"), known_variants().as_bytes());
    match std::process::Command::new("tabix").args(["-p", "vcf"]).arg(&indexed).output() {
        Ok(done) if done.status.success() => {
            let out = folder.join("indexed");
            run(data().call_with(&out, &["--known-info", &format!("{}:CLNSIG", text(&indexed))])).assert_success();
            assert_eq!(records(&out), records(&plain));
        }
        _ => skipped("known variants with an index: tabix is missing or failed"),
    }

    let (store, parts) = (folder.join("run"), folder.join("parts"));
    run(data().call_with(&parts, &["--plan", text(&store), "--shards", "1", "--partitions", "1"])).assert_success();
    run_all_steps(text(&store), [1, 1], &folder);
    let mut finish = genuma();
    finish.args(["step", text(&store), "finish", "--again", "--known-info", &option]).env("TMPDIR", &folder);
    assert!(finish.status().expect("genuma starts").success());
    assert_eq!(records(&parts), records(&plain));
}

#[test]
fn unfit_fields_and_files_are_refused_before_the_call() {
    let folder = scratch("known-info-refused");
    let known = folder.join("clinvar.vcf");
    fs::write(&known, known_variants()).expect("a file");
    let out = folder.join("out");
    let of_file = |fields: &str| format!("{}:{fields}", text(&known));
    for (options, code, expected) in [
        (vec![of_file("CLNREVSTAT")], 1, "the header has no INFO field \"CLNREVSTAT\"; it has AF, CLNSIG, HOTSPOT"),
        (vec![folder.join("none.vcf").display().to_string() + ":AF"], 1, "none.vcf"),
        (vec!["CLNSIG".to_owned()], 2, "give the VCF file too, as --known-info VCF:CLNSIG, or with --known"),
        (vec![of_file("AF"), "--known-info".to_owned(), of_file("AF")], 2, "would have the same name in the calls"),
        (vec![of_file("A F")], 2, "'A F' is not the name of an INFO field"),
    ] {
        let options: Vec<&str> = std::iter::once("--known-info").chain(options.iter().map(String::as_str)).collect();
        let ended = run(data().call_with(&out, &options));
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
        assert!(!out.join("somatic.vcf.gz").exists());
    }
}
