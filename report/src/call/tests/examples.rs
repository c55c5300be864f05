//! Example results of a call, from which the tests draw pages.

use genuma_pair::confidence_interval::Estimate;
use genuma_pair::contamination::ContaminationEstimate;
use genuma_pair::copy_number::{CopyNumberProfile, ProfileSegment};
use genuma_pair::depth_and_evenness::CoverageMetrics;
use genuma_pair::identity::{IdentityResult, Relation};
use genuma_pair::library::metrics::{LibraryMetrics, SingleCycleMetrics};
use genuma_pair::marker_kmers::contig_copies_and_screen::{
    ContigCopyNumber, DetectedSequence, RelativeContigCopyNumbers, ScreenResult, SequenceDetectionInSample,
};
use genuma_pair::pair_summary::SamplePairSummary;
use genuma_pair::purity::PurityPloidyEstimate;
use genuma_somatic::call_summary::{CallSummary, EventPileup, PileupRow, ReportedEvent};
use genuma_somatic::candidate_kmer::KmerDepths;
use genuma_somatic::event::EventClass;
use genuma_somatic::genotype::AlleleSupport;
use genuma_somatic::ledger::Ledger;
use genuma_somatic::msi::MicrosatelliteInstability;
use genuma_somatic::pipeline::Resources;
use genuma_somatic::provenance::ReferenceIdentity;
use genuma_somatic::screen_hits::ScreenHit;
use genuma_somatic::sequencing_errors::{EstimatedErrorRates, QualityErrorRate, SubstitutionRate};
use genuma_somatic::signatures::{SignatureExposure, SignatureExposures};
use genuma_somatic::slippage::RepeatClassSlippage;
use genuma_somatic::target_depth::{CallTargetSummary, TargetCoverage};
use genuma_work::cost::UnitCost;
use genuma_work::timeline::Timeline;

pub(super) fn read(sample: u8, alternative: Option<bool>, from: u32, cells: &str) -> PileupRow {
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
pub(super) fn snv() -> ReportedEvent {
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
        known_info: Vec::new(),
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

pub(super) fn learned() -> EstimatedErrorRates {
    let damage = |from, to, share| SubstitutionRate { sample: 1, first_forward: true, from, to, share };
    EstimatedErrorRates {
        by_quality: (2..42)
            .map(|quality| QualityErrorRate { quality, share: 10f64.powf(-f64::from(quality) / 10.0) })
            .collect(),
        substitutions: vec![damage('A', 'G', 2e-4), damage('C', 'T', 0.0123)],
        slippage: vec![RepeatClassSlippage { unit: 1, copies: 12, reads: 900, shorter: 0.0071, longer: 0.002 }],
    }
}

pub fn example_summary(calls: Vec<ReportedEvent>) -> CallSummary {
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
        known_info_fields: Vec::new(),
        annotation: None,
        targets: None,
        target_gaps: Vec::new(),
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
        sequence_families: Vec::new(),
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
pub fn example_targets() -> CallTargetSummary {
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

pub(super) fn estimate(value: f64) -> Estimate {
    Estimate { value, low: value * 0.75, high: value * 1.25 }
}

/// A pair without any finding.
pub fn example_pair() -> SamplePairSummary {
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
pub(super) fn example_profile() -> CopyNumberProfile {
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

pub(super) fn library() -> LibraryMetrics {
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
pub(super) fn example_exposures() -> SignatureExposures {
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

pub(super) fn with_sample_facts(mut outcome: CallSummary) -> CallSummary {
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

pub(super) fn calls() -> Vec<ReportedEvent> {
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
