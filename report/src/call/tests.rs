//! Tests that the report is well-formed, escapes its input, and works in a browser.

mod examples;
mod rendered;

use genuma_pair::identity::Relation;
use genuma_pair::purity::AlternativePurityFit;
use genuma_somatic::call_summary::{AdditionalTumourSummary, CallSummary, ReportedEvent};
use genuma_somatic::genotype::{AlleleSupport, TumourSupport};
use genuma_somatic::sequencing_errors::EstimatedErrorRates;
use genuma_somatic::signatures::SignatureExposures;
use genuma_somatic::target_gaps::TargetGap;
use genuma_somatic::vcf_record::{GeneEffect, KnownInfoValue};

use super::calls::{MAX_CALL_TABLE_ROWS, MAX_READ_PILEUPS, choose_calls_with_pileups};
use super::render_page;
use crate::testing::{assert_html_is_nested, run_chromium};
use examples::{calls, example_exposures, read, snv, with_sample_facts};
pub use examples::{example_pair, example_summary, example_targets};

#[test]
fn the_depth_on_target_replaces_that_of_the_genome() {
    let page = render_page(&CallSummary { targets: Some(example_targets()), ..example_summary(calls()) });
    for part in [
        "Normal depth on target</dt><dd><b>60×</b>",
        "Tumour depth on target</dt><dd><b>120×</b>",
        "99\u{a0}% of the bases 20× or more",
        "targets.bed (400 targets, 80.0 kbp, extended by 100 bp on both sides; 20 intervals merged)",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("in k\u{2011}mers"));
}

#[test]
fn the_page_says_what_was_found_and_what_it_cost() {
    let html = render_page(&example_summary(calls()));
    assert_html_is_nested(&html);
    for expected in [
        "3 somatic changes",
        "genuma 0.1.0",
        "genuma call --tumor t_1.fq --normal n_1.fq",
        "chr1:12,345",
        "<code>C</code> → <code>T</code>",
        "−3 bp <code>ACT</code>",
        "to chr1:55,678 (10,000 bp)",
        "14 <span class=\"of\" data-pairs=\"14 29\">/ 29</span>",
        "title=\"Quality below the threshold\">low_quality",
        "319 MiB",
        "resumed from an earlier run",
        "normal 30×",
    ] {
        assert!(html.contains(expected), "{expected} is missing");
    }
    assert_eq!(html.matches("<tr class=\"call\"").count(), 3);
    assert_eq!(html.matches("<tr class=\"call filtered\"").count(), 1);
    assert_eq!(html.matches("<figure>").count(), 6);
    // The only word with these letters.
    let values = html.replace("informative", "");
    assert!(!values.contains("{{") && !values.contains("NaN") && !values.contains("inf"), "a value is not filled in");
}

#[test]
fn page_one_says_whose_samples_these_are_and_shows_the_calls() {
    let mut outcome = with_sample_facts(example_summary(calls()));
    outcome.targets = Some(example_targets());
    let html = render_page(&outcome);
    for expected in [
        "<title>TUMOR: 3 somatic changes – genuma</title>",
        "genuma 0.1.0 · 2026-01-31 12:00 UTC",
        "<dt>Tumour</dt><dd>TUMOR</dd>",
        "<dt>Normal</dt><dd>NORMAL</dd>",
        "<dt>Assay</dt><dd>wgs, 400 targets of targets.bed (80.0 kbp)</dd>",
        "<dt>Reference</dt><dd>GRCh38 (genome.fa)</dd>",
        "<code>0123456789abcdef0123456789abcdef</code>",
        "3 targets not covered",
        "<dt>Burden</dt><dd><b>4.2</b><span>SNVs and indels per callable Mbp of 78.0 kbp (",
    ] {
        assert!(html.contains(expected), "{expected}");
    }
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text}"));
    assert!(at("class=\"verdict\"") < at("id=\"calls\"") && at("id=\"calls\"") < at("id=\"plots\""));
    // Good findings follow the calls, so that they do not push them down.
    assert!(at("class=\"findings\"") > at("id=\"samples\""));
    let tumour_only = render_page(&CallSummary { has_normal: false, ..outcome });
    assert!(tumour_only.contains("<dt>Normal</dt><dd>none</dd>") && tumour_only.contains(", tumour only</dd>"));
}

#[test]
fn a_wrong_pair_is_the_largest_text() {
    let mut outcome = with_sample_facts(example_summary(calls()));
    outcome.sample_summary.pair.as_mut().unwrap().identity.relation = Relation::Unrelated;
    let html = render_page(&outcome);
    assert!(html.contains("<h1>Do not trust these calls: the samples are not a matched pair (3 somatic changes)</h1>"));
    let identity = html.find("<b>Identity</b>").unwrap();
    assert!(identity < html.find("id=\"calls\"").unwrap(), "the finding is on page one");
}

#[test]
fn too_little_data_makes_no_statement() {
    let mut outcome = with_sample_facts(example_summary(calls()));
    let pair = outcome.sample_summary.pair.as_mut().unwrap();
    let tumour = pair.tumour.as_mut().unwrap();
    tumour.purity = None;
    tumour.note = "no statement".into();
    tumour.alternatives =
        vec![AlternativePurityFit { purity: 0.9, ploidy: 2.0, loh_fraction: 0.0, delta_log_likelihood: 1.0 }];
    outcome.known_sequences.karyotype.as_mut().unwrap().contigs[1].bases = 3_700;
    outcome.libraries.tumor.telomeres.motif = Some("TTAGG".into());
    outcome.libraries.tumor.telomeres.taxon = Some("insects".into());
    let html = render_page(&outcome);
    let facts = &html[html.find("facts-of-samples").unwrap()..];
    assert_eq!(facts.matches("no statement").count(), 1, "the reason stands once in the table");
    for part in ["Ploidy", "LOH", "Alternative purity", "<td>chr2</td>", "insects"] {
        assert!(!facts.contains(part), "{part}");
    }
}

#[test]
fn doubtful_calls_have_pictures_first() {
    let call = |n: usize| ReportedEvent {
        quality: (n % 4_000) as f64,
        filters: if n < 4_000 { Vec::new() } else { vec!["germline".into()] },
        ..snv()
    };
    let calls: Vec<ReportedEvent> = (0..5_000).map(call).collect();
    let drawn = choose_calls_with_pileups(&calls);
    assert_eq!(drawn.len(), MAX_READ_PILEUPS);
    let (filtered, passed): (Vec<usize>, Vec<usize>) = drawn.into_iter().partition(|&n| n >= 4_000);
    assert_eq!(passed, (0..1_500).collect::<Vec<_>>());
    assert_eq!(filtered, (4_500..5_000).rev().collect::<Vec<_>>());
    // With few calls that pass, filtered calls get the rest.
    let drawn = choose_calls_with_pileups(&calls[3_990..]);
    assert_eq!(drawn.len(), 1_010);
}

#[test]
fn pictures_stop_before_the_page_is_too_large() {
    let mut wide = snv();
    wide.picture.rows = (0..60).map(|n| read(1, Some(true), n, &"ACGT".repeat(40))).collect();
    let html = render_page(&example_summary(vec![wide; 5_000]));
    assert!(html.len() < 10_000_000, "{} bytes", html.len());
    assert!(html.contains(" that need a look most have a picture of their reads"));
    assert!(html.matches("[\"ACGTACGTACG\"").count() > 300);
}

#[test]
fn several_tumours_have_columns_and_a_menu() {
    let own = |reference, alternative, has| TumourSupport {
        support: AlleleSupport { reference, alternative, copies: 3, ..AlleleSupport::default() },
        has,
    };
    let mut shared = snv();
    shared.tumours = vec![own(38, 2, true), own(28, 12, true)];
    shared.picture.rows.push(read(2, Some(true), 1, "......"));
    let private = ReportedEvent { id: "own".into(), tumours: vec![own(40, 0, false), own(20, 20, true)], ..snv() };
    let mut outcome = example_summary(vec![shared, private]);
    outcome.samples.push("relapse".into());
    outcome.inputs.push(vec!["r_1.fq".into()]);
    outcome.bases.push(2_000_000);
    outcome.spectra.push(outcome.spectra[1].clone());
    outcome.depths.kmer.push(20.0);
    let html = render_page(&outcome);
    assert_html_is_nested(&html);
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
    // A read of the second tumour with the tumour's allele: 1 + 2·2 + 32.
    assert!(html.contains("[37,1,\"6\"]"), "{html}");
}

#[test]
fn an_empty_outcome_is_a_page_too() {
    let mut empty = example_summary(Vec::new());
    empty.spectra = vec![Vec::new(); 2];
    empty.depths.kmer = vec![0.0; 2];
    empty.sequences.clear();
    empty.reference = None;
    empty.units.clear();
    let html = render_page(&empty);
    assert_html_is_nested(&html);
    assert!(html.contains("0 somatic changes"));
    assert!(!html.contains("NaN"));
}

#[test]
fn hostile_names_stay_text() {
    const EVIL: &str = "x\"><script>alert('1')</script><img src=http://evil/ onerror=a>&{{rows}}";
    let mut call = snv();
    for text in [&mut call.id, &mut call.chrom, &mut call.contig, &mut call.alleles[1], &mut call.picture.normal] {
        *text = EVIL.into();
    }
    call.filters = vec![EVIL.into()];
    call.other = Some((EVIL.into(), 1));
    let mut outcome = example_summary(vec![call]);
    for text in [&mut outcome.command, &mut outcome.version, &mut outcome.units[0].name] {
        *text = EVIL.into();
    }
    outcome.reference = Some(EVIL.into());
    outcome.inputs = vec![vec![EVIL.into()]; 2];
    let html = render_page(&outcome);
    assert_html_is_nested(&html);
    assert_eq!(html.matches("<script").count(), 2, "the page's own");
    assert_eq!(html.matches("<img").count(), 0);
    assert_eq!(html.matches("<tbody>").count(), 4, "{{{{rows}}}} in a name is not filled in");
}

#[test]
fn names_of_what_the_samples_are_like_stay_text() {
    const EVIL: &str = "x\"><script>alert('1')</script><img src=http://evil/ onerror=a>&{{rows}}";
    let mut outcome = with_sample_facts(example_summary(calls()));
    outcome.samples = vec!["NORMAL".into(), EVIL.into(), EVIL.into()];
    let karyotype = outcome.known_sequences.karyotype.as_mut().unwrap();
    for text in karyotype.sex.iter_mut().chain(&mut karyotype.changed_contigs) {
        *text = EVIL.into();
    }
    karyotype.contigs.iter_mut().for_each(|contig| contig.name = EVIL.into());
    let found = &mut outcome.known_sequences.screen.as_mut().unwrap().detected[0];
    found.most_similar = Some(EVIL.into());
    found.name = EVIL.into();
    found.samples.iter_mut().for_each(|sample| sample.note = EVIL.into());
    let signatures = outcome.sample_summary.signatures.as_mut().unwrap();
    (signatures.matrix, signatures.exposures[1].signature) = (EVIL.into(), EVIL.into());
    let call = &mut outcome.screened_calls[0];
    for text in [&mut call.id, &mut call.chrom, &mut call.name] {
        *text = EVIL.into();
    }
    for library in [&mut outcome.libraries.normal, &mut outcome.libraries.tumor] {
        for text in [&mut library.telomeres.motif, &mut library.telomeres.taxon] {
            *text = Some(EVIL.into());
        }
        library.duplicates.note = EVIL.into();
    }
    let html = render_page(&outcome);
    assert_html_is_nested(&html);
    assert!(html.matches("x&quot;&gt;&lt;script&gt;").count() > 15, "all of them are shown");
    assert_eq!(html.matches("<script").count(), 2, "the page's own");
    assert_eq!(html.matches("<img").count(), 0);
}

#[test]
fn the_samples_are_told_and_drawn() {
    let mut outcome = with_sample_facts(example_summary(calls()));
    let html = render_page(&outcome);
    assert_html_is_nested(&html);
    for expected in [
        "<b>No problems found with this pair of samples</b>",
        "</svg>Good</span>",
        "same person",
        "0.40\u{a0}% (0.00–\u{2060}0.80)",
        "64\u{a0}% (62–\u{2060}67)",
        "unknown: too few reads",
        "<td>chr2</td>",
        "MSI-high; 77 of 1,706",
        "median 260",
        "similar to HPV31",
        "210 reads",
        "7 sequences not detected",
        "reverse strand; g7",
        "<title>A[C&gt;A]A: 0</title>",
        "<th scope=\"row\">SBS&lt;1&gt;</th>",
        "62\u{a0}% (57–\u{2060}66)",
        "have a cosine similarity of 0.975",
        "The signatures are those of the whole reference. The spectrum",
        "The intervals do not include the choice of signatures.",
        "<th scope=\"row\">not explained</th><td></td><td>3.0\u{a0}%</td><td class=\"n\">137</td>",
        "83 other signatures were not detected: ",
        "Grey: the interval begins at 0",
        "<title>chr2: 0.60 (0.45–\u{2060}0.75), lost</title>",
        "<title>chr&lt;2&gt;:1-900,000: relative depth 0.75, minor allele 0.26, copies 1.0 + 0.0</title>",
    ] {
        assert!(html.contains(expected), "{expected} is missing");
    }
    assert_eq!(html.matches("<figure>").count(), 6 + 7);
    assert!(html.matches("<svg").count() == html.matches("</svg>").count());
    assert!(!html.contains("{{") && !html.contains("NaN") && !html.contains("inf\""));
    assert_eq!(html, render_page(&outcome), "the same each time");
    assert!(!html.contains("explain the spectrum poorly") && !html.contains("germline SNVs are among"));
    let poor = SignatureExposures {
        num_signatures: 4,
        cosine_similarity: Some(0.85),
        is_normalised_to_targets: true,
        ..example_exposures()
    };
    (outcome.has_normal, outcome.sample_summary.signatures) = (false, Some(poor));
    let html = render_page(&outcome);
    for expected in [
        "The signatures are normalised by the trinucleotides of the targets.",
        "germline SNVs are among the SNVs that passed",
        "0.850. The signatures explain the spectrum poorly.",
        "1 other signature was not detected: ",
    ] {
        assert!(html.contains(expected), "{expected} is missing");
    }
    outcome.sample_summary.signatures =
        Some(SignatureExposures { why_no_exposures: Some("<few>".into()), ..SignatureExposures::default() });
    let html = render_page(&outcome);
    assert!(html.contains("were not estimated: &lt;few&gt;.") && !html.contains("cosine similarity"));
}

#[test]
fn samples_that_say_nothing_are_not_drawn() {
    let html = render_page(&example_summary(calls()));
    assert!(html.contains("Too little data to decide whether the samples are a matched pair"));
    assert!(html.contains("unknown: the samples were not compared"));
    for drawn in [
        "Depth by GC",
        "Insert size",
        "by cycle",
        "Depth of the contigs",
        "Mutational spectrum",
        "Copy-number profile",
        "Mutational signatures",
    ] {
        assert!(!html.contains(drawn), "{drawn}");
    }
}

#[test]
fn of_several_tumours_each_is_told_of() {
    let mut outcome = with_sample_facts(example_summary(calls()));
    let one = render_page(&outcome);
    assert!(!one.contains("Normal and "));
    outcome.samples.push("<relapse>".into());
    outcome.other_tumours = vec![AdditionalTumourSummary {
        sample: "<relapse>".into(),
        libraries: outcome.libraries.clone(),
        sample_summary: outcome.sample_summary.clone(),
    }];
    let two = render_page(&outcome);
    assert!(two.contains("Normal and TUMOR") && two.contains("Normal and &lt;relapse&gt;"));
    let count = |page: &str, what: &str| page.matches(what).count();
    for (what, each) in [("class=\"verdict\"", 2), ("Contamination</th>", 2), ("burden", 2)] {
        assert!(count(&one, what) > 0, "{what}");
        assert!(
            count(&two, what) >= each * count(&one, what).min(1) && count(&two, what) > count(&one, what),
            "{what}"
        );
    }
    // Contigs are known for the first tumour only.
    assert_eq!(count(&two, "Contigs gained"), count(&one, "Contigs gained"));
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    let html = render_page(&example_summary(calls()));
    for reference in ["http://", "https://", "src=", "@import", "url(//", "<iframe", "<object"] {
        assert!(!html.contains(reference), "{reference} in the page");
    }
    assert!(html.contains("default-src 'none'"));
    let links = html.match_indices("href=\"").map(|(at, _)| &html[at + 6..at + 12]);
    assert!(links.into_iter().all(|l| l == "data:," || l.starts_with('#')));
}

#[test]
fn fractions_have_intervals_and_genes_stand_beside_the_change() {
    let mut summary = example_summary(calls());
    summary.annotation = Some(Default::default());
    summary.known_info_fields = vec!["CLNSIG".into()];
    summary.calls[0].gene = Some(GeneEffect {
        gene: "TP53".into(),
        transcript: "ENST00000269305.9".into(),
        consequence: "missense_variant".into(),
        classification: "Missense_Mutation".into(),
        hgvs_c: Some("c.524G>A".into()),
        hgvs_p: Some("p.Arg175His".into()),
    });
    summary.calls[0].known_info = vec![KnownInfoValue { id: "CLNSIG".into(), value: "Pathogenic".into() }];
    let html = render_page(&summary);
    // 14 of 29 molecules, Wilson 1927.
    assert!(html.contains("0.48 <span class=\"of\">(0.31–\u{2060}0.66)</span>"));
    let heads: Vec<usize> = [">Change</th>", ">Gene</th>", ">Protein</th>", ">Known</th>", ">Quality</th>"]
        .map(|head| html.find(head).expect(head))
        .to_vec();
    assert!(heads.is_sorted(), "{heads:?}");
    assert!(
        html.contains("TP53 <span class=\"of\">missense variant</span></td>")
            && html.contains(">p.R175H</td><td class=\"known\">")
    );
    assert!(html.contains("<span title=\"CLNSIG=Pathogenic\"><span class=\"of\">CLNSIG</span> Pathogenic</span>"));
    assert_html_is_nested(&html);
}

#[test]
fn targets_without_coverage_are_listed_on_the_first_page() {
    let mut summary = example_summary(calls());
    assert!(!render_page(&summary).contains("class=\"gaps\""));
    summary.target_gaps = (0..205)
        .map(|n| TargetGap {
            contig: 0,
            chrom: "chr1".into(),
            start: 1_000 * n + 1,
            end: 1_000 * n + 120,
            name: format!("exon<{n}>"),
            genes: if n == 0 { vec!["TP53".into(), "WRAP53".into()] } else { Vec::new() },
            depths: vec![31.0, 0.4],
        })
        .collect();
    let html = render_page(&summary);
    assert!(html.contains(
        "<b>205 targets</b> with a depth below 2 in a sample: TP53 (chr1:1–120), exon&lt;1&gt; (chr1:1,001–1,120), "
    ));
    assert!(html.contains("<td>TP53, WRAP53</td><td class=\"n\">31.0</td><td class=\"n\">0.4</td></tr>"));
    assert!(html.contains("5 more are in targets.tsv"));
    assert!(html.find("class=\"gaps\"") < html.find("<h2 id=\"calls\">"));
    assert_html_is_nested(&html);
    summary.has_normal = false;
    assert!(render_page(&summary).contains("<td>TP53, WRAP53</td><td class=\"n\">0.4</td></tr>"));
}

#[test]
fn large_call_sets_keep_the_best() {
    let call = |n: usize| ReportedEvent {
        id: format!("c{n}"),
        pos: n as u64,
        quality: n as f64,
        filters: if n.is_multiple_of(2) { vec!["germline".into()] } else { Vec::new() },
        ..snv()
    };
    let html = render_page(&example_summary((0..MAX_CALL_TABLE_ROWS + 500).map(call).collect()));
    assert_eq!(html.matches("<tr class=\"call").count(), MAX_CALL_TABLE_ROWS);
    assert_eq!(html.matches("<tr class=\"call\"").count(), MAX_CALL_TABLE_ROWS / 2 + 250, "every PASS call");
    assert_eq!(html.matches("[\"ACGTACGTACG\"").count(), MAX_READ_PILEUPS);
    assert!(html.contains("500 more are in the VCF"));
    assert!(html.contains("8,000 in this table have none"));
    assert!(html.len() < 10_000_000, "{} bytes", html.len());
}

#[test]
fn a_browser_draws_the_reads_of_the_call_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    std::fs::write(&path, render_page(&example_summary(calls()))).unwrap();
    let page = format!("file://{}#call-snv1", path.display());
    let Some(dom) = run_chromium(folder.path(), &["--dump-dom"], &page) else { return };
    assert!(dom.contains("<html lang=\"en\" class=\"scripted\">"), "the script ran");
    assert!(dom.contains("3 of 4 calls shown"));
    assert_eq!(dom.matches("<tr class=\"call").count(), 4);
    assert_eq!(dom.matches("<tr class=\"detail\">").count(), 1, "one call is open");
    assert!(dom.contains("<tr class=\"call opened\" id=\"call-snv1\""));
    assert_eq!(dom.matches("class=\"line allele\"").count(), 4, "two alleles in two samples");
    assert_eq!(dom.matches("<div class=\"line read").count(), 5);
    assert_eq!(dom.matches("<div class=\"line read copy\">").count(), 1);
    assert_eq!(dom.matches("<i class=\"is-t\">T</i>").count(), 4, "two reads and the tumour's line on each side");
    assert!(dom.contains("<i class=\"A\">A</i>"), "a base that differs");
    assert!(dom.contains("14 of 29 read pairs have the change; 1 duplicate left out"));

    let page = format!("file://{}#call-snv2", path.display());
    let dom = run_chromium(folder.path(), &["--dump-dom"], &page).unwrap();
    assert!(dom.contains("<tr class=\"call filtered opened\" id=\"call-snv2\""), "a filtered call can be asked for");
    assert!(dom.contains("4 of 4 calls shown"));

    let picture = folder.path().join("report.png");
    let shot = format!("--screenshot={}", picture.display());
    run_chromium(folder.path(), &[&shot, "--window-size=1400,2200"], &page).unwrap();
    let bytes = std::fs::read(&picture).unwrap();
    assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 50_000, "{} bytes", bytes.len());
}

#[test]
fn what_the_reads_get_wrong_is_told() {
    let page = render_page(&example_summary(calls()));
    for told in [
        "0.0079% at Q41",
        "C\u{a0}&gt;\u{a0}T 1.2% (tumour, F1R2); A\u{a0}&gt;\u{a0}G 0.020% (tumour, F1R2)",
        "one base 12 times: 0.71% shorter, 0.20% longer",
    ] {
        assert!(page.contains(told), "{told}");
    }
    let nothing = CallSummary { errors: EstimatedErrorRates::default(), ..example_summary(calls()) };
    assert_eq!(render_page(&nothing).matches("too few observations").count(), 3);
}
