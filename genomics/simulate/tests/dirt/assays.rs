//! Tests libraries of assays: amplicons.

use std::collections::BTreeMap;
use std::fs;

use genuma_simulate::{AmpliconParams, CaptureParams, GermlineParams, SimulationParams, TargetSource};

use crate::common::{Made, Mate, clean, close, made, of_genome, revcomp, write_fasta};

/// A primer of `primers.bed`.
struct Primer {
    contig: String,
    start: usize,
    end: usize,
    reverse: bool,
}

/// Returns the left and right primer of each amplicon.
fn primers(made: &Made) -> Vec<[Primer; 2]> {
    let text = fs::read_to_string(made.folder.path().join("primers.bed")).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    let primer = |f: &[&str]| Primer {
        contig: f[0].into(),
        start: f[1].parse().unwrap(),
        end: f[2].parse().unwrap(),
        reverse: f[5] == "-",
    };
    let pair = |(i, pair): (usize, &[Vec<&str>])| {
        assert_eq!(pair[0][3], format!("amplicon{}_LEFT", i + 1));
        assert_eq!(pair[1][3], format!("amplicon{}_RIGHT", i + 1));
        let primers = [primer(&pair[0]), primer(&pair[1])];
        assert!(!primers[0].reverse && primers[1].reverse);
        primers
    };
    lines.chunks(2).enumerate().map(pair).collect()
}

fn amplified(mut params: SimulationParams) -> SimulationParams {
    params.sequencing.library.amplicons = Some(AmpliconParams::default());
    params
}

#[test]
fn reads_of_amplicons_begin_with_primers() {
    let made = made(&amplified(clean(100_000, 2, 100.0)));
    let primers = primers(&made);
    let lengths =
        |[left, right]: &[Primer; 2]| (right.end - left.start, left.end - left.start, right.end - right.start);
    assert!(primers.iter().map(lengths).all(|(all, left, right)| {
        (120..=250).contains(&all) && (18..=25).contains(&left) && (18..=25).contains(&right)
    }));
    let mut pairs_of_amplicon: BTreeMap<(&str, usize, usize), f64> = BTreeMap::new();
    for [left, right] in &primers {
        pairs_of_amplicon.insert((&left.contig, left.start, right.end), 0.0);
    }
    let pairs = made.pairs("tumor");
    for [first, second] in &pairs {
        let (first, second) = (first.place.as_ref().unwrap(), second.place.as_ref().unwrap());
        assert!(first.reverse != second.reverse);
        let (left, right) = if first.reverse { (second, first) } else { (first, second) };
        *pairs_of_amplicon.get_mut(&(left.contig.as_str(), left.start, right.end)).unwrap() += 1.0;
    }
    let depths: Vec<f64> = pairs_of_amplicon.into_values().collect();
    let mean = depths.iter().sum::<f64>() / depths.len() as f64;
    let variance = depths.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / depths.len() as f64;
    // The variance of the Poisson distribution is its mean.
    close((variance - mean).sqrt() / mean, 0.4, 0.15);
    let depth: Vec<f64> = made.depth("tumor").into_values().flatten().filter(|&d| d > 0.0).collect();
    close(depth.iter().sum::<f64>() / depth.len() as f64, 100.0, 0.02);
    assert!(depth.len() > 99_000);
}

/// Returns the share of the mates with an error in the bases `from..to` of the reads that begin at a primer.
fn differing_share(made: &Made, mates: &[&Mate], from: usize, to: usize) -> f64 {
    let differs = |mate: &&&Mate| {
        let expected = made.expected(mate.place.as_ref().unwrap());
        mate.bases[from..to] != expected[from..to]
    };
    mates.iter().filter(differs).count() as f64 / mates.len() as f64
}

#[test]
fn primers_hide_variants() {
    let mut params = amplified(clean(60_000, 1, 40.0));
    params.germline = GermlineParams { snv_rate: 0.02, homozygous_share: 1.0, ..params.germline };
    let made = made(&params);
    let pairs = made.pairs("tumor");
    let mates: Vec<&Mate> = pairs.iter().flatten().collect();
    // 18 bases with an error rate of 0.001, and with SNVs at 0.02.
    assert!(differing_share(&made, &mates, 0, 18) < 0.04);
    close(differing_share(&made, &mates, 30, 48), 0.31, 0.15);
}

#[test]
fn amplicons_tile_the_targets_on_both_strands() {
    let folder = tempfile::tempdir().unwrap();
    let source = made(&clean(50_000, 1, 1.0)).genome["chr1"].clone();
    let genome = write_fasta(folder.path(), &[("a", source)]);
    let bed = folder.path().join("t.bed");
    fs::write(&bed, "a\t10000\t10900\na\t30000\t30100\n").unwrap();
    let mut params = amplified(of_genome(&genome, 200.0));
    params.capture = Some(CaptureParams { targets: TargetSource::File(bed), off_target: 0.0, fewer_variants: true });
    params.somatic.snvs = 5;
    let made = made(&params);
    let depth = &made.depth("tumor")["a"];
    assert!((10_000..10_900).chain(30_000..30_100).all(|at| depth[at] > 20.0));
    assert_eq!(depth[..9_970].iter().chain(&depth[11_150..29_970]).sum::<f64>(), 0.0);
    let strands = made.pairs("tumor").iter().filter(|[a, _]| a.place.as_ref().unwrap().reverse).count();
    close(strands as f64, made.pairs("tumor").len() as f64 / 2.0, 0.1);
    let [left, right] = &primers(&made)[0];
    let primer = |p: &Primer| made.genome["a"][p.start..p.end].to_vec();
    let (left, right) = (primer(left), revcomp(&primer(right)));
    let begins = |mate: &Mate| mate.bases.starts_with(&left) || mate.bases.starts_with(&right);
    assert!(made.pairs("tumor").iter().filter(|[a, b]| begins(a) && begins(b)).count() > 50);
}
