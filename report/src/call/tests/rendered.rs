//! Renders reports of five kinds of calls in a browser: where the first call lies, whether the page fits its window, the
//! size of the file, and the pages of a print. `GENUMA_REPORT_PICTURES=DIR` keeps pages, pictures and prints.

use std::fs;
use std::path::{Path, PathBuf};

use genuma_pair::identity::Relation;
use genuma_somatic::call_summary::{CallSummary, EventPileup, ReportedEvent};
use genuma_somatic::event::EventClass;
use genuma_somatic::result_warnings::{ResultWarning, WarningTopic};
use genuma_somatic::target_gaps::TargetGap;
use genuma_somatic::vcf_record::{GeneEffect, KnownInfoValue};

use super::examples::{calls, example_summary, example_targets, read, snv, with_sample_facts};
use crate::call::render_page;
use crate::testing::run_chromium;

/// Maximum size of a report in bytes: mail servers and browsers take 10 MB.
const MAX_REPORT_BYTES: usize = 10_000_000;
/// Size of a usual browser window on a laptop, in CSS pixels.
const WINDOW: [u32; 2] = [1_400, 900];
/// Maximum number of printed pages of a report with a few calls, and of one with a full table of 100 annotated rows.
const MAX_PAGES_OF_FEW_CALLS: usize = 8;
const MAX_PAGES_OF_FULL_TABLE: usize = 14;
/// Width of a telephone, in CSS pixels.
const NARROW_WIDTH: u32 = 420;

/// `num` SNVs and deletions, of which every third is filtered, with genes and known variants.
fn many_calls(num: usize) -> Vec<ReportedEvent> {
    let call = |n: usize| {
        let rows = (0..40).map(|r| read(r % 2, Some(r % 4 == 1), u32::from(r) % 9, "....A.........")).collect();
        let long = |base: &str| base.repeat(120);
        let picture = EventPileup { normal: long("C"), tumour: long("T"), change: (60, 61), rows };
        ReportedEvent {
            id: format!("g{}", n + 1),
            chrom: format!("chr{}", 1 + n * 22 / num.max(1)),
            pos: 100_000 + 12_345 * n as u64,
            class: if n.is_multiple_of(5) { EventClass::Indel } else { EventClass::Snv },
            alleles: if n.is_multiple_of(5) { ["CACACAGT".into(), "C".into()] } else { ["C".into(), "T".into()] },
            quality: (n % 90) as f64,
            filters: if n % 3 == 2 { vec!["low_quality".into(), "normal_depth".into()] } else { Vec::new() },
            gene: Some(GeneEffect {
                gene: "ARID1A".into(),
                transcript: "ENST00000324856.13".into(),
                consequence: "missense_variant&splice_region_variant".into(),
                classification: "Missense_Mutation".into(),
                hgvs_c: Some("c.5548G>A".into()),
                hgvs_p: Some("p.Asp1850Asn".into()),
            }),
            known_info: vec![KnownInfoValue { id: "CLNSIG".into(), value: "Conflicting_classifications".into() }],
            picture,
            ..snv()
        }
    };
    (0..num).map(call).collect()
}

/// The summary of a call with `num_calls` calls, and with the columns of genes and known variants.
fn annotated_summary(num_calls: usize) -> CallSummary {
    CallSummary {
        annotation: Some(Default::default()),
        known_info_fields: vec!["CLNSIG".into()],
        ..with_sample_facts(example_summary(many_calls(num_calls)))
    }
}

/// The summaries by name: that of the tutorial, an exome with uncovered targets, a wrong pair, 5,000 calls, and a call
/// without a normal.
fn example_calls() -> Vec<(&'static str, CallSummary)> {
    let tutorial = with_sample_facts(example_summary(calls()));
    let gap = |n: u64| TargetGap {
        contig: 0,
        chrom: "chr1".into(),
        start: 10_000 * n,
        end: 10_000 * n + 240,
        name: format!("exon_{n}"),
        genes: vec![format!("GENE{n}")],
        depths: vec![31.0, 0.4],
    };
    let exome = CallSummary {
        targets: Some(example_targets()),
        target_gaps: (1..40).map(gap).collect(),
        ..annotated_summary(250)
    };
    let mut wrong_pair = with_sample_facts(example_summary(calls()));
    wrong_pair.sample_summary.pair.as_mut().expect("a pair").identity.relation = Relation::Unrelated;
    wrong_pair.warnings = vec![ResultWarning {
        withholds_results: true,
        ..ResultWarning::new(
            WarningTopic::TwoPeople,
            "the samples are of two people: give the tumour and the normal of one person".into(),
        )
    }];
    let tumour_only = CallSummary { has_normal: false, ..annotated_summary(60) };
    vec![
        ("tutorial", tutorial),
        ("exome", exome),
        ("wrong-pair", wrong_pair),
        ("5000-calls", annotated_summary(5_000)),
        ("tumour-only", tumour_only),
    ]
}

/// What a page reports of itself in a frame, in CSS pixels.
#[derive(Debug)]
struct Layout {
    /// Lower end of the first row of the table of calls.
    first_call_bottom: f64,
    /// Width of the content, which is larger than the frame if the page has to be scrolled sideways.
    content_width: f64,
}

/// Writes the report, and a page with it in a frame of this size, to `folder`. Returns the path of the latter.
fn write_framed_report(folder: &Path, html: &str, [width, height]: [u32; 2]) -> PathBuf {
    let measure = "<script>addEventListener('load', () => parent.postMessage([\
        [...document.querySelectorAll('#table tbody tr.call')].map((row) => row.getBoundingClientRect()).find((box) => box.height > 0).bottom, \
        document.documentElement.scrollWidth].join(' '), '*'))</script></body>";
    fs::write(folder.join("report.html"), html.replacen("</body>", measure, 1)).expect("a page");
    let frame = format!(
        "<body style=\"margin:0\"><script>addEventListener('message', (event) => {{ document.body.dataset.measured = event.data; }})</script>\
         <iframe src=\"report.html\" style=\"border:0;width:{width}px;height:{height}px\"></iframe></body>"
    );
    let path = folder.join(format!("frame-{width}.html"));
    fs::write(&path, frame).expect("a page");
    path
}

/// Measures a report in a window of this size; `None` without a browser.
fn measure_layout(folder: &Path, html: &str, window: [u32; 2]) -> Option<Layout> {
    let page = format!("file://{}", write_framed_report(folder, html, window).display());
    let dom = run_chromium(folder, &["--dump-dom", "--virtual-time-budget=20000", "--window-size=1500,1000"], &page)?;
    let (_, measured) = dom.split_once("data-measured=\"").expect("the page was measured");
    let numbers: Vec<f64> = measured[..measured.find('"').expect("an end")].split(' ').flat_map(str::parse).collect();
    let [first_call_bottom, content_width] = numbers[..] else { panic!("{numbers:?}") };
    Some(Layout { first_call_bottom, content_width })
}

/// Prints a page to PDF; returns its number of pages.
fn print_pages(folder: &Path, html: &str) -> Option<usize> {
    fs::write(folder.join("report.html"), html).expect("a page");
    let pdf = folder.join("report.pdf");
    let print = format!("--print-to-pdf={}", pdf.display());
    let page = format!("file://{}", folder.join("report.html").display());
    run_chromium(folder, &[&print, "--no-pdf-header-footer", "--virtual-time-budget=20000"], &page)?;
    let bytes = fs::read(&pdf).expect("a PDF");
    assert!(bytes.starts_with(b"%PDF-"));
    let text = String::from_utf8_lossy(&bytes);
    Some(text.matches("/Type /Page").count() - text.matches("/Type /Pages").count())
}

/// Keeps pictures for the eye: light, dark and narrow.
fn keep_pictures(folder: &Path, name: &str, html: &str, kept: &Path) {
    fs::create_dir_all(kept).expect("a folder");
    let shoot = |style: &str, page: &Path, size: &str, options: &[&str]| {
        let picture = format!("--screenshot={}", kept.join(format!("{name}-{style}.png")).display());
        let size = format!("--window-size={size}");
        let options =
            [&[picture.as_str(), &size, "--hide-scrollbars", "--virtual-time-budget=20000"], options].concat();
        run_chromium(folder, &options, &format!("file://{}", page.display()));
    };
    let narrow = write_framed_report(folder, html, [NARROW_WIDTH, 2_400]);
    shoot("narrow", &narrow, "420,2400", &[]);
    let page = folder.join("report.html");
    shoot("light", &page, "1400,900", &[]);
    shoot("dark", &page, "1400,1800", &["--blink-settings=preferredColorScheme=0"]);
    fs::copy(folder.join("report.pdf"), kept.join(format!("{name}.pdf"))).expect("a copy");
}

#[test]
fn reports_fit_their_window_the_mail_and_the_printer() {
    for (name, summary) in example_calls() {
        let html = render_page(&summary);
        assert!(html.len() <= MAX_REPORT_BYTES, "{name}: {} bytes", html.len());
        let folder = tempfile::tempdir().expect("a folder");
        let Some(wide) = measure_layout(folder.path(), &html, WINDOW) else { return };
        assert!(wide.first_call_bottom <= f64::from(WINDOW[1]), "{name}: the first call is not visible: {wide:?}");
        assert!(wide.content_width <= f64::from(WINDOW[0]), "{name}: {wide:?}");
        let narrow = measure_layout(folder.path(), &html, [NARROW_WIDTH, 900]).expect("a browser");
        assert!(narrow.content_width <= f64::from(NARROW_WIDTH), "{name}: {narrow:?}");
        let pages = print_pages(folder.path(), &html).expect("a browser");
        let max_pages = if summary.calls.len() < 10 { MAX_PAGES_OF_FEW_CALLS } else { MAX_PAGES_OF_FULL_TABLE };
        assert!((1..=max_pages).contains(&pages), "{name}: {pages} pages");
        if let Some(kept) = std::env::var_os("GENUMA_REPORT_PICTURES") {
            println!("{name}: {} bytes, {pages} pages, {wide:?}, narrow {narrow:?}", html.len());
            keep_pictures(folder.path(), name, &html, Path::new(&kept));
        }
    }
}
