//! Tests that the report is well-formed, escapes its input, and works in a browser.

use genuma_pair::confidence_interval::Estimate;
use genuma_pair::contamination::ContaminationEstimate;
use genuma_pair::copy_number::{CopyNumberProfile, ProfileSegment};
use genuma_pair::coverage::CoverageMetrics;
use genuma_pair::identity::{IdentityResult, Relation};
use genuma_pair::library::metrics::{LibraryMetrics, SingleCycleMetrics};
use genuma_pair::marker_kmers::contig_copies_and_screen::{
    ContigCopyNumber, DetectedSequence, RelativeContigCopyNumbers, ScreenResult, SequenceDetectionInSample,
};
use genuma_pair::pair_summary::SamplePairSummary;
use genuma_pair::purity::{AlternativePurityFit, PurityPloidyEstimate};
use genuma_somatic::call_summary::{AdditionalTumourSummary, CallSummary, EventPileup, PileupRow, ReportedEvent};
use genuma_somatic::candidate_kmer::KmerDepths;
use genuma_somatic::event::EventClass;
use genuma_somatic::genotype::{AlleleSupport, TumourSupport};
use genuma_somatic::ledger::Ledger;
use genuma_somatic::msi::MicrosatelliteInstability;
use genuma_somatic::pipeline::Resources;
use genuma_somatic::provenance::ReferenceIdentity;
use genuma_somatic::screen_hits::ScreenHit;
use genuma_somatic::sequencing_errors::{EstimatedErrorRates, QualityErrorRate, SubstitutionRate};
use genuma_somatic::signatures::{SignatureExposure, SignatureExposures};
use genuma_somatic::slippage::RepeatSlippage;
use genuma_somatic::target_depth::{CallTargetSummary, TargetCoverage};
use genuma_work::cost::UnitCost;
use genuma_work::timeline::Timeline;

use super::calls::{MAX_CALL_TABLE_ROWS, MAX_READ_PILEUPS, choose_calls_with_pileups};
use super::render_page;
use crate::report::testing::{assert_html_is_nested, run_chromium};

fn read(sample: u8, alternative: Option<bool>, from: u32, cells: &str) -> PileupRow {
    PileupRow {
        sample,
        supports_tumour_allele: alternative,
        forward: from.is_multiple_of(2),
        is_duplicate: from == 3,
        start: from,
        cells: cells.into(),
    }
}

/// One SNV in the middle of `ACGTACGTACG`.
fn snv() -> ReportedEvent {
    ReportedEvent {
        id: "snv1".into(),
        chrom: "chr1".into(),
        pos: 12_345,
        other: None,
        alleles: ["C".into(), "T".into()],
        class: EventClass::Snv,
        quality: 61.4,
        filters: Vec::new(),
        normal: AlleleSupport { reference: 30, reference_first_forward: 15, ..AlleleSupport::default() },
        tumour: AlleleSupport { reference: 15, alternative: 14, forward: 8, copies: 1, ..AlleleSupport::default() },
        tumours: Vec::new(),
        contig: "tumour_7".into(),
        gene: None,
        picture: EventPileup {
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

fn learned() -> EstimatedErrorRates {
    let damage = |from, to, share| SubstitutionRate { sample: 1, first_forward: true, from, to, share };
    EstimatedErrorRates {
        by_quality: (2..42)
            .map(|quality| QualityErrorRate { quality, share: 10f64.powf(-f64::from(quality) / 10.0) })
            .collect(),
        substitutions: vec![damage('A', 'G', 2e-4), damage('C', 'T', 0.0123)],
        slippage: vec![RepeatSlippage { unit: 1, copies: 12, reads: 900, shorter: 0.0071, longer: 0.002 }],
    }
}

pub(crate) fn example_summary(calls: Vec<ReportedEvent>) -> CallSummary {
    let spectrum: Vec<u64> = (0..200u64).map(|m| if m < 4 { 9000 >> m } else { 2000 / (1 + m.abs_diff(30)) }).collect();
    let unit = |name: &str| UnitCost {
        name: name.into(),
        wall_s: 8.5,
        cpu_s: 16.2,
        peak_bytes: 334_000_000,
        resumed: name == "count",
    };
    CallSummary {
        date: "2026-01-31 12:00 UTC".to_owned(),
        reference_identity: ReferenceIdentity {
            url: Some("file:///ref.fa".to_owned()),
            assembly: Some("GRCh38".to_owned()),
            md5: "0123456789abcdef0123456789abcdef".to_owned(),
            sequence_md5: Vec::new(),
        },
        command: "genuma call --tumor t_1.fq --normal n_1.fq".into(),
        version: "0.1.0".into(),
        samples: vec!["NORMAL".into(), "TUMOR".into()],
        has_normal: true,
        inputs: vec![vec!["n_1.fq".into()], vec!["t_1.fq".into()]],
        reference: Some("genome.fa".into()),
        panel: None,
        known: None,
        annotation: None,
        targets: None,
        k: 31,
        resources: Resources { threads: 2, memory: 2 << 30, scratch: 0, devices: Default::default() },
        units: vec![unit("count"), unit("assemble")],
        timeline: Timeline::default(),
        counters: None,
        bases: vec![3_000_000, 3_100_000],
        spectra: vec![spectrum.clone(), spectrum],
        depths: KmerDepths { kmer: vec![30.0, 30.0], error_share: 0.05 },
        libraries: Default::default(),
        known_sequences: Default::default(),
        sample_summary: Default::default(),
        other_tumours: Vec::new(),
        screened_calls: Vec::new(),
        ledger: Ledger::default(),
        errors: learned(),
        genotype_mismatch_rate: None,
        warnings: Vec::new(),
        admixture: Default::default(),
        sequences: vec![("chr1".into(), 100_000)],
        calls,
    }
}

/// Targets of an exome that are well covered.
pub(crate) fn example_targets() -> CallTargetSummary {
    let coverage = |mean_depth: f64| TargetCoverage {
        mean_depth,
        median_depth: mean_depth - 5.0,
        share_at_20x: 0.99,
        uncovered_targets: 3,
        uncovered_share: 0.01,
    };
    CallTargetSummary {
        path: "targets.bed".into(),
        padding_bp: 100,
        intervals: 420,
        targets: 400,
        bases: 80_000,
        not_assessed: 2,
        callable_bases: vec![78_000],
        calls_outside: 5,
        samples: vec![coverage(60.0), coverage(120.0)],
    }
}

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

fn estimate(value: f64) -> Estimate {
    Estimate { value, low: value * 0.75, high: value * 1.25 }
}

/// A pair without any finding.
pub(crate) fn example_pair() -> SamplePairSummary {
    let foreign =
        Some(ContaminationEstimate { share: Estimate { value: 0.004, low: 0.0, high: 0.008 }, sites: 900_000 });
    let covered = || CoverageMetrics {
        mean_depth: 22.0,
        unevenness: 0.2,
        low_depth_share: 0.004,
        depth_by_gc: (5..25).map(|gc| (f64::from(gc) / 30.0, 1.1 - f64::from(gc) / 100.0)).collect(),
    };
    SamplePairSummary {
        sampled_share: 0.25,
        roots: 1_000_000,
        identity: IdentityResult {
            relation: Relation::Same,
            excess_mismatch_rate: estimate(1e-5),
            genetic_distance: Some(estimate(0.04)),
            heterozygosity: Some([9.5e-4, 9.8e-4]),
            sites: 1_234_567,
        },
        contamination: [foreign, foreign],
        duplicate_share: [0.02, 0.02],
        coverage: [covered(), covered()],
        substitution_error_rates: [Some([1e-4; 6]); 2],
        tumour: Some(PurityPloidyEstimate {
            purity: Some(Estimate { value: 0.64, low: 0.615, high: 0.67 }),
            ploidy: Some(estimate(2.4)),
            loh_fraction: Some(0.06),
            alternatives: Vec::new(),
            note: "estimated from copy numbers".into(),
            segments: 23,
            heterozygous_sites: 1_017,
            changes: 239,
            profile: example_profile(),
        }),
    }
}

/// Two contigs; the second has lost a copy.
fn example_profile() -> CopyNumberProfile {
    let stretch = |contig: &str, start, end, log2_ratio, share, copies| ProfileSegment {
        contig: contig.into(),
        start,
        end,
        roots: 100,
        log2_ratio,
        minor_allele_share: share,
        copies,
    };
    let bin = |i: u32| match i < 10 {
        true => stretch("chr1", 90_000 * i, 90_000 * (i + 1), 0.02, Some(0.5), None),
        false => stretch("chr<2>", 90_000 * (i - 10), 90_000 * (i - 9), 3.0, None, None),
    };
    CopyNumberProfile {
        segments: vec![
            stretch("chr1", 0, 900_000, 0.0, Some(0.5), Some([1.0, 1.0])),
            stretch("chr<2>", 0, 900_000, -0.415, Some(0.26), Some([1.0, 0.0])),
        ],
        bins: (0..20).map(bin).collect(),
    }
}

fn library() -> LibraryMetrics {
    let mut library =
        LibraryMetrics { pairs: 504_195, bases: 150_651_982, examined_pairs: 31_213, ..LibraryMetrics::default() };
    for (at, mate) in library.mates.iter_mut().enumerate() {
        mate.lengths = [30, 150, 150];
        mate.quality = Some(36.4 - at as f64);
        mate.q30 = Some(0.97);
        let cycle = |i: usize| SingleCycleMetrics {
            quality: 37.0 - i as f64 / 50.0,
            errors: (i > 60).then_some(1e-5 * i as f64),
            ..SingleCycleMetrics::default()
        };
        mate.cycles = (0..150).map(cycle).collect();
    }
    library.insert.max_measurable = 276;
    library.insert.overlapping_share = Some(estimate(0.4));
    library.insert.quantiles = [Some(180), Some(220), Some(260), None];
    library.insert.histogram = (0..28).map(|i| i * 20).collect();
    library.duplicates.pcr_duplicates = Some(estimate(0.08));
    library.duplicates.note = "some duplicates".into();
    library.telomeres.per_million = Some(estimate(45.6));
    library.telomeres.motif = Some("TTAGGG".into());
    library
}

/// Exposures to three of four signatures, of which one is uncertain.
fn example_exposures() -> SignatureExposures {
    let exposure = |name: &str, value, low, high| SignatureExposure {
        signature: name.into(),
        share: Estimate { value, low, high },
    };
    SignatureExposures {
        matrix: "/data/COSMIC_v3.4_SBS_GRCh38.txt".into(),
        num_signatures: 86,
        num_snvs: 4_560,
        is_normalised_to_targets: false,
        cosine_similarity: Some(0.9754),
        exposures: vec![
            exposure("SBS<1>", 0.62, 0.57, 0.66),
            exposure("SBS5", 0.33, 0.28, 0.39),
            exposure("SBS13", 0.02, 0.0, 0.05),
        ],
        why_no_exposures: None,
    }
}

fn with_sample_facts(mut outcome: CallSummary) -> CallSummary {
    outcome.libraries.normal = library();
    outcome.libraries.tumor = library();
    outcome.sample_summary.pair = Some(example_pair());
    outcome.sample_summary.tumour_in_normal = Some(estimate(0.008));
    outcome.sample_summary.spectrum = (0..96).collect();
    outcome.sample_summary.signatures = Some(example_exposures());
    outcome.sample_summary.burden = Some(estimate(4.2));
    outcome.sample_summary.repeats =
        Some(MicrosatelliteInstability { tracts: 1_706, not_assessable: 12, unstable: 77, share: estimate(0.045) });
    let contig = |name: &str, ratio, word: &str| ContigCopyNumber {
        name: name.into(),
        bases: 900_000,
        marker_kmers: 4_000,
        relative_depth: [Some(estimate(1.0)); 2],
        tumour_normal_ratio: Some(estimate(ratio)),
        status: word.into(),
    };
    outcome.known_sequences.karyotype = Some(RelativeContigCopyNumbers {
        autosome_depth: [21.0, 21.0],
        sex: ["female".into(), "unknown: too few reads".into()],
        y_loss: None,
        mitochondrial_copies: [Some(estimate(400.0)), None],
        changed_contigs: vec!["chr2".into()],
        unassessed_contigs: 0,
        contigs: vec![contig("chr1", 1.0, "unchanged"), contig("chr2", 0.6, "lost")],
    });
    let found = |reads, word: &str| SequenceDetectionInSample {
        breadth: 0.7,
        depth: 2.0,
        reads,
        reads_per_million: 3.0,
        note: word.into(),
    };
    outcome.known_sequences.screen = Some(ScreenResult {
        sequences: 9,
        searched_share: 1.0,
        indistinguishable: 1,
        detected: vec![DetectedSequence {
            name: "HPV16".into(),
            bases: 7_906,
            marker_kmers: [4_000, 0],
            most_similar: Some("HPV31".into()),
            samples: [found(0.0, "not detected"), found(210.0, "detected")],
        }],
        not_detected: 7,
    });
    outcome.screened_calls = vec![ScreenHit {
        id: "g7".into(),
        chrom: "chr2".into(),
        pos: 5_000,
        name: "HPV16".into(),
        sequence_pos: 1_200,
        forward: false,
        kmers: [90, 100],
    }];
    outcome
}

fn calls() -> Vec<ReportedEvent> {
    let mut filtered = ReportedEvent { id: "snv2".into(), pos: 23_456, quality: 3.0, ..snv() };
    filtered.filters = vec!["low_quality".into(), "germline".into()];
    let deletion = ReportedEvent {
        id: "del1".into(),
        pos: 34_567,
        alleles: ["GACT".into(), "G".into()],
        class: EventClass::Indel,
        ..snv()
    };
    let junction = ReportedEvent {
        id: "bnd1".into(),
        pos: 45_678,
        other: Some(("chr1".into(), 55_678)),
        alleles: ["N".into(), "N[chr1:55678[".into()],
        class: EventClass::Bnd,
        ..snv()
    };
    vec![snv(), filtered, deletion, junction]
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
