//! The page is well formed, harmless whatever its input, and works in a browser.

use genuma_somatic::errors::{Learned, Substitution, Wrong};
use genuma_somatic::event::Class;
use genuma_somatic::genotype::{Own, Support};
use genuma_somatic::ledger::Ledger;
use genuma_somatic::outcome::{Outcome, Picture, Reported, Row};
use genuma_somatic::pipeline::Means;
use genuma_somatic::select::Depths;
use genuma_somatic::slippage::RepeatSlips;
use genuma_work::clock::UnitCost;
use genuma_work::timeline::Timeline;

use super::calls::{MOST_PICTURES, MOST_ROWS};
use super::render;
use crate::report::testing::{assert_nested, chromium};

fn read(sample: u8, alternative: Option<bool>, from: u32, cells: &str) -> Row {
    Row { sample, alternative, forward: from.is_multiple_of(2), copy: from == 3, from, cells: cells.into() }
}

/// One SNV in the middle of `ACGTACGTACG`.
fn snv() -> Reported {
    Reported {
        id: "snv1".into(),
        chrom: "chr1".into(),
        pos: 12_345,
        other: None,
        alleles: ["C".into(), "T".into()],
        class: Class::Snv,
        quality: 61.4,
        filters: Vec::new(),
        normal: Support { reference: 30, reference_first_forward: 15, ..Support::default() },
        tumour: Support { reference: 15, alternative: 14, forward: 8, copies: 1, ..Support::default() },
        tumours: Vec::new(),
        contig: "tumour_7".into(),
        picture: Picture {
            normal: "ACGTACGTACG".into(),
            tumour: "ACGTATGTACG".into(),
            change: (5, 6),
            rows: vec![
                read(0, Some(false), 0, "..........."),
                read(1, Some(true), 2, "..A......"),
                read(1, Some(true), 3, "......"),
                read(1, Some(false), 0, ".........."),
                read(1, None, 0, ".....T"),
            ],
        },
    }
}

fn learned() -> Learned {
    let damage = |from, to, share| Substitution { sample: 1, first_forward: true, from, to, share };
    Learned {
        wrong: (2..42)
            .map(|quality| Wrong { quality, share: 10f64.powf(-f64::from(quality) / 10.0) })
            .collect(),
        substitutions: vec![damage('A', 'G', 2e-4), damage('C', 'T', 0.0123)],
        slips: vec![RepeatSlips { unit: 1, copies: 12, reads: 900, shorter: 0.0071, longer: 0.002 }],
    }
}

fn outcome(calls: Vec<Reported>) -> Outcome {
    let spectrum: Vec<u64> =
        (0..200u64).map(|m| if m < 4 { 9000 >> m } else { 2000 / (1 + m.abs_diff(30)) }).collect();
    let unit = |name: &str| UnitCost {
        name: name.into(),
        wall_s: 8.5,
        cpu_s: 16.2,
        peak_bytes: 334_000_000,
        resumed: name == "count",
    };
    Outcome {
        command: "genuma call --tumor t_1.fq --normal n_1.fq".into(),
        version: "0.1.0".into(),
        samples: vec!["NORMAL".into(), "TUMOR".into()],
        inputs: vec![vec!["n_1.fq".into()], vec!["t_1.fq".into()]],
        reference: Some("genome.fa".into()),
        panel: None,
        k: 31,
        means: Means { threads: 2, memory: 2 << 30, scratch: 0 },
        units: vec![unit("count"), unit("assemble")],
        timeline: Timeline::default(),
        bases: vec![3_000_000, 3_100_000],
        spectra: vec![spectrum.clone(), spectrum],
        depths: Depths { kmer: vec![30.0, 30.0], error_share: 0.05 },
        libraries: Default::default(),
        known: Default::default(),
        portrait: Default::default(),
        screened: Vec::new(),
        ledger: Ledger::default(),
        errors: learned(),
        strangers: None,
        sequences: vec![("chr1".into(), 100_000)],
        calls,
    }
}

fn calls() -> Vec<Reported> {
    let mut filtered = Reported { id: "snv2".into(), pos: 23_456, quality: 3.0, ..snv() };
    filtered.filters = vec!["low_quality".into(), "germline".into()];
    let deletion = Reported {
        id: "del1".into(),
        pos: 34_567,
        alleles: ["GACT".into(), "G".into()],
        class: Class::Indel,
        ..snv()
    };
    let junction = Reported {
        id: "bnd1".into(),
        pos: 45_678,
        other: Some(("chr1".into(), 55_678)),
        alleles: ["N".into(), "N[chr1:55678[".into()],
        class: Class::Bnd,
        ..snv()
    };
    vec![snv(), filtered, deletion, junction]
}

#[test]
fn the_page_says_what_was_found_and_what_it_cost() {
    let html = render(&outcome(calls()));
    assert_nested(&html);
    for expected in [
        "3 somatic changes",
        "genuma 0.1.0",
        "genuma call --tumor t_1.fq --normal n_1.fq",
        "chr1:12,345",
        "<code>C</code> → <code>T</code>",
        "−3 bp <code>ACT</code>",
        "to chr1:55,678 (10,000 bp)",
        "14 <span class=\"of\">/ 29</span>",
        "title=\"Quality under the threshold\">low_quality",
        "334 MB",
        "taken from an earlier run",
        "normal 30×",
    ] {
        assert!(html.contains(expected), "{expected} is missing");
    }
    assert_eq!(html.matches("<tr class=\"call\"").count(), 3);
    assert_eq!(html.matches("<tr class=\"call filtered\"").count(), 1);
    assert_eq!(html.matches("<figure>").count(), 6);
    assert!(
        !html.contains("{{") && !html.contains("NaN") && !html.contains("inf"),
        "a value is not filled in"
    );
}

#[test]
fn several_tumours_have_columns_and_a_menu() {
    let own = |reference, alternative, has| Own {
        support: Support { reference, alternative, copies: 3, ..Support::default() },
        has,
    };
    let mut shared = snv();
    shared.tumours = vec![own(38, 2, true), own(28, 12, true)];
    shared.picture.rows.push(read(2, Some(true), 1, "......"));
    let private = Reported { id: "own".into(), tumours: vec![own(40, 0, false), own(20, 20, true)], ..snv() };
    let mut outcome = outcome(vec![shared, private]);
    outcome.samples.push("relapse".into());
    outcome.inputs.push(vec!["r_1.fq".into()]);
    outcome.bases.push(2_000_000);
    outcome.spectra.push(outcome.spectra[1].clone());
    outcome.depths.kmer.push(20.0);
    let html = render(&outcome);
    assert_nested(&html);
    for expected in [
        "<dt>relapse</dt><dd>r_1.fq",
        "<dt>relapse depth</dt>",
        "<option value=\"1\">in relapse</option>",
        "data-has=\"11\"",
        "data-has=\"01\"",
        "data-pairs=\"12 40\"",
        "data-copies=\"0 1 3 3\"",
        "Allele fractions in relapse",
        "TUMOR against relapse",
        "relapse 20×",
    ] {
        assert!(html.contains(expected), "{expected} is missing");
    }
    assert_eq!(html.matches("tumour-column\" data-sort").count(), 2);
    // A read of the second tumour with its allele: 1 + 2·2 + 32.
    assert!(html.contains("[37,1,\"6\"]"), "{html}");
}

#[test]
fn an_empty_outcome_is_a_page_too() {
    let mut empty = outcome(Vec::new());
    empty.spectra = vec![Vec::new(); 2];
    empty.depths.kmer = vec![0.0; 2];
    empty.sequences.clear();
    empty.reference = None;
    empty.units.clear();
    let html = render(&empty);
    assert_nested(&html);
    assert!(html.contains("0 somatic changes"));
    assert!(!html.contains("NaN"));
}

#[test]
fn hostile_names_stay_text() {
    const EVIL: &str = "x\"><script>alert('1')</script><img src=http://evil/ onerror=a>&{{rows}}";
    let mut call = snv();
    for text in
        [&mut call.id, &mut call.chrom, &mut call.contig, &mut call.alleles[1], &mut call.picture.normal]
    {
        *text = EVIL.into();
    }
    call.filters = vec![EVIL.into()];
    call.other = Some((EVIL.into(), 1));
    let mut outcome = outcome(vec![call]);
    for text in [&mut outcome.command, &mut outcome.version, &mut outcome.units[0].name] {
        *text = EVIL.into();
    }
    outcome.reference = Some(EVIL.into());
    outcome.inputs = vec![vec![EVIL.into()]; 2];
    let html = render(&outcome);
    assert_nested(&html);
    assert_eq!(html.matches("<script").count(), 2, "the page's own");
    assert_eq!(html.matches("<img").count(), 0);
    assert_eq!(html.matches("<tbody>").count(), 3, "{{{{rows}}}} in a name is not filled in");
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    let html = render(&outcome(calls()));
    for reference in ["http://", "https://", "src=", "@import", "url(//", "<iframe", "<object"] {
        assert!(!html.contains(reference), "{reference} in the page");
    }
    assert!(html.contains("default-src 'none'"));
    let links = html.match_indices("href=\"").map(|(at, _)| &html[at + 6..at + 12]);
    assert!(links.into_iter().all(|l| l == "data:,"));
}

#[test]
fn large_call_sets_keep_the_best() {
    let call = |n: usize| Reported {
        id: format!("c{n}"),
        pos: n as u64,
        quality: n as f64,
        filters: if n.is_multiple_of(2) { vec!["germline".into()] } else { Vec::new() },
        ..snv()
    };
    let html = render(&outcome((0..MOST_ROWS + 500).map(call).collect()));
    assert_eq!(html.matches("<tr class=\"call").count(), MOST_ROWS);
    assert_eq!(html.matches("<tr class=\"call\"").count(), MOST_ROWS / 2 + 250, "every PASS call");
    assert_eq!(html.matches("[\"ACGTACGTACG\"").count(), MOST_PICTURES);
    assert!(html.contains("500 more are in the VCF"));
    assert!(html.contains("8,000 in this table have none"));
    assert!(html.len() < 10_000_000, "{} bytes", html.len());
}

#[test]
fn a_browser_draws_the_reads_of_the_call_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    std::fs::write(&path, render(&outcome(calls()))).unwrap();
    let page = format!("file://{}#call-snv1", path.display());
    let Some(dom) = chromium(folder.path(), &["--dump-dom"], &page) else { return };
    assert!(dom.contains("<html lang=\"en\" class=\"scripted\">"), "the script ran");
    assert!(dom.contains("3 of 4 calls shown"));
    assert_eq!(dom.matches("<tr class=\"call").count(), 4);
    assert_eq!(dom.matches("<tr class=\"detail\">").count(), 1, "one call is open");
    assert!(dom.contains("<tr class=\"call opened\" id=\"call-snv1\""));
    assert_eq!(dom.matches("class=\"line allele\"").count(), 4, "two alleles in two samples");
    assert_eq!(dom.matches("<div class=\"line read").count(), 5);
    assert_eq!(dom.matches("<div class=\"line read copy\">").count(), 1);
    assert_eq!(
        dom.matches("<i class=\"is-t\">T</i>").count(),
        4,
        "two reads and the tumour's line on each side"
    );
    assert!(dom.contains("<i class=\"A\">A</i>"), "a base that differs");
    assert!(dom.contains("14 of 29 read pairs have the change; 1 PCR copy left out"));

    let page = format!("file://{}#call-snv2", path.display());
    let dom = chromium(folder.path(), &["--dump-dom"], &page).unwrap();
    assert!(
        dom.contains("<tr class=\"call filtered opened\" id=\"call-snv2\""),
        "a filtered call can be asked for"
    );
    assert!(dom.contains("4 of 4 calls shown"));

    let picture = folder.path().join("report.png");
    let shot = format!("--screenshot={}", picture.display());
    chromium(folder.path(), &[&shot, "--window-size=1400,2200"], &page).unwrap();
    let bytes = std::fs::read(&picture).unwrap();
    assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 50_000, "{} bytes", bytes.len());
}

#[test]
fn what_the_reads_get_wrong_is_told() {
    let page = render(&outcome(calls()));
    for told in [
        "0.0079% at Q41",
        "C\u{a0}&gt;\u{a0}T 1.2% (tumour, F1R2); A\u{a0}&gt;\u{a0}G 0.020% (tumour, F1R2)",
        "one base 12 times: 0.71% shorter, 0.20% longer",
    ] {
        assert!(page.contains(told), "{told}");
    }
    let nothing = Outcome { errors: Learned::default(), ..outcome(calls()) };
    assert_eq!(render(&nothing).matches("too few to tell").count(), 3);
}
