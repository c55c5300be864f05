//! Tests uneven coverage: GC bias, coverage wave, capture targets.

use genuma_simulate::{CaptureParams, CoverageParams, SimulationParams, TargetSource};

use crate::common::{clean, close, made, of_genome, write_fasta};

fn random(n: usize, gc: u64) -> Vec<u8> {
    let mut state = gc + n as u64;
    let mut bits = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state >> 33
    };
    (0..n)
        .map(|_| {
            let pair = if bits() % 100 < gc { b"GC" } else { b"AT" };
            pair[(bits() >> 5) as usize % 2]
        })
        .collect()
}

fn mean(depth: &[f64]) -> f64 {
    depth.iter().sum::<f64>() / depth.len() as f64
}

#[test]
fn gc_decides_coverage_and_the_mean_stays() {
    let folder = tempfile::tempdir().unwrap();
    let contigs = [("low", random(100_000, 25)), ("best", random(100_000, 45)), ("high", random(100_000, 70))];
    let mut params = of_genome(&write_fasta(folder.path(), &contigs), 20.0);
    let even = made(&params).depth("tumor");
    assert!(even.values().all(|d| (mean(d) / 20.0 - 1.0).abs() < 0.05));
    params.sequencing.coverage = CoverageParams { gc_bias: 1.0, unevenness: 0.0 };
    let depth = made(&params).depth("tumor");
    close(depth.values().map(|d| mean(d)).sum::<f64>() / 3.0, 20.0, 0.01);
    // GC content varies between fragments.
    close(mean(&depth["low"]) / mean(&depth["best"]), 1.0 / 3.0, 0.1);
    close(mean(&depth["high"]) / mean(&depth["best"]), 1.0 / 3.0, 0.1);
}

#[test]
fn coverage_comes_in_waves_that_samples_share() {
    let mut params = clean(1_000_000, 1, 15.0);
    params.samples.depth_normal = 15.0;
    let windows = |params: &SimulationParams, sample: &str| -> Vec<f64> {
        let depth = &made(params).depth(sample)["chr1"];
        depth[1000..].chunks_exact(1000).map(mean).collect()
    };
    let moments = |w: &[f64]| {
        let m = mean(w);
        (m, (w.iter().map(|x| (x - m).powi(2)).sum::<f64>() / w.len() as f64).sqrt())
    };
    let (_, even) = moments(&windows(&params, "tumor"));
    params.sequencing.coverage = CoverageParams { gc_bias: 0.0, unevenness: 0.4 };
    let [tumour, normal] = ["tumor", "normal"].map(|sample| windows(&params, sample));
    let ((m, sd), (n, of_normal)) = (moments(&tumour), moments(&normal));
    close(m, 15.0, 0.01);
    close((sd * sd - even * even).sqrt() / m, 0.4, 0.15);
    let product = tumour.iter().zip(&normal).map(|(a, b)| (a - m) * (b - n)).sum::<f64>() / tumour.len() as f64;
    let correlation = product / (sd * of_normal);
    assert!((0.45..0.8).contains(&correlation), "{correlation}");
}

#[test]
fn targets_have_the_depth_and_the_variants() {
    for targets in [TargetSource::Panel, TargetSource::Exome] {
        let mut params = clean(1_000_000, 2, 200.0);
        params.samples.depth_normal = 60.0;
        (params.somatic.snvs, params.somatic.indels, params.somatic.svs) = (300, 150, 40);
        params.somatic.spacing = 150;
        params.sequencing.insert_mean = 220.0;
        params.capture = Some(CaptureParams { targets, off_target: 0.02, fewer_variants: true });
        let made = made(&params);
        let spans = made.bed("targets.bed");
        let bases: usize = spans.iter().map(|s| s.2 - s.1).sum();
        assert!((20_000..23_000).contains(&bases), "{bases}");
        for (sample, asked) in [("tumor", 200.0), ("normal", 60.0)] {
            let depth = made.depth(sample);
            let on: f64 = spans.iter().flat_map(|(c, s, e)| &depth[c][*s..*e]).sum();
            // Off-target fragments also fall on targets; reads across breakpoints have no origin.
            close(on / bases as f64, asked * 1.02, 0.03);
            let near = |contig: &str, at: usize, by: usize| {
                spans.iter().any(|(c, s, e)| c == contig && at + by > *s && at < e + by)
            };
            let far: Vec<f64> = depth
                .iter()
                .flat_map(|(c, d)| d.iter().enumerate().step_by(7).map(move |(i, x)| (c, i, *x)))
                .filter(|(c, i, _)| !near(c, *i, 1000))
                .map(|(_, _, x)| x)
                .collect();
            close(mean(&far), asked * 0.02, 0.15);
            // Next to a target the coverage falls over about 200 bp.
            let edge = |by: usize| mean(&spans.iter().map(|(c, _, e)| depth[c][e + by]).collect::<Vec<f64>>());
            assert!(edge(0) > 0.4 * asked && edge(400) < 0.3 * edge(0), "{} {}", edge(0), edge(400));
        }
        // Targets are captured unevenly, with the same efficiency in both samples.
        let depths = ["tumor", "normal"].map(|sample| {
            let depth = made.depth(sample);
            spans.iter().map(|(c, s, e)| mean(&depth[c][*s..*e])).collect::<Vec<f64>>()
        });
        let spread = |d: &[f64]| {
            let m = mean(d);
            (d.iter().map(|x| (x - m).powi(2)).sum::<f64>() / d.len() as f64).sqrt() / m
        };
        assert!((0.35..0.75).contains(&spread(&depths[0])), "{}", spread(&depths[0]));
        let ratio: Vec<f64> = depths[0].iter().zip(&depths[1]).map(|(a, b)| a / b).collect();
        assert!(spread(&ratio) < 0.3, "{}", spread(&ratio));

        let truth = made.vcf("truth.vcf");
        let in_target = |contig: &str, pos: usize, by: usize| {
            spans.iter().any(|(c, s, e)| c == contig && pos + by > *s && pos <= e + by)
        };
        let small: Vec<_> = truth.iter().filter(|v| ["SNV", "INDEL"].contains(&v.class())).collect();
        assert!(small.len() >= 30 && small.len() < 100, "{}", small.len());
        // The position of a deletion is the base before it, and may be left-aligned.
        assert!(small.iter().all(|v| in_target(&v.contig, v.pos, 60)));
        assert!(small.iter().filter(|v| in_target(&v.contig, v.pos, 0)).count() * 20 > small.len() * 19);
        let svs: Vec<_> = truth.iter().filter(|v| v.class() == "DEL").collect();
        assert!(!svs.is_empty() && svs.iter().all(|v| in_target(&v.contig, v.pos, 60)));
        // Germline variants are everywhere.
    }
}

#[test]
fn targets_may_be_ones_own() {
    let folder = tempfile::tempdir().unwrap();
    let bed = folder.path().join("own.bed");
    std::fs::write(&bed, "chr1\t50000\t50400\nchr1\t90000\t92000\n").unwrap();
    let mut params = clean(200_000, 1, 300.0);
    params.capture = Some(CaptureParams { targets: TargetSource::File(bed), off_target: 0.0, fewer_variants: false });
    let made = made(&params);
    let depth = &made.depth("tumor")["chr1"];
    let on: f64 = depth[50_000..50_400].iter().chain(&depth[90_000..92_000]).sum();
    close(on / 2400.0, 300.0, 0.02);
    assert_eq!(depth[10_000..40_000].iter().sum::<f64>(), 0.0);
    assert_eq!(made.count("tumor", "captured_pairs"), made.pairs("tumor").len() as f64);
}
