use super::minor_counts::minor_count_probabilities;
use super::*;
use crate::confidence_interval::log_factorials;
use crate::site_tally::{NUM_DEPTH_CLASSES, NUM_MINOR_ALLELE_COUNT_CLASSES};

const HET: f64 = 7e-4;

/// Contamination of a simulated sample of four million sites with 20 molecules each: `share` is the
/// contamination, `diverse` the relative diversity of the contaminant, `changes` the density of somatic changes
/// and their share of the reads.
fn estimate(share: f64, diverse: f64, changes: (f64, f64), seed: u64) -> Estimate {
    let tally = made(share, 0.0, diverse, changes, seed);
    estimate_contamination(&tally, &known(0.0, false)).expect("enough sites").share
}

fn known(other: f64, both: bool) -> ContaminationInput {
    ContaminationInput {
        sample: 1,
        modal_depths: [20.0, 20.0],
        duplicate_share: 0.02,
        heterozygosity: HET,
        allele_loss_share: 0.0,
        other_contamination: other,
        use_shared_sites: both,
    }
}

/// Tally of a simulated sample. `other` is the share of the other sample that is the same contaminant's.
fn made(share: f64, other: f64, diverse: f64, (changes, of): (f64, f64), seed: u64) -> SiteTally {
    let mut seed = seed;
    let mut random = move || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((seed ^ (seed >> 31)) >> 8) as f64 / (1u64 << 56) as f64
    };
    let logs = log_factorials(NUM_DEPTH_CLASSES);
    let poisson = |mean: f64, k: usize| (k as f64 * mean.max(1e-300).ln() - mean - logs[k]).exp();
    let binomial = |m: usize, n: usize, p: f64| {
        (logs[n] - logs[m] - logs[n - m] + m as f64 * p.ln() + (n - m) as f64 * (1.0 - p).ln()).exp()
    };
    let mut tally = SiteTally::default();
    tally.sampled_share = 0.01;
    for (class, n, beside) in (0..6)
        .flat_map(|class| (8..40).map(move |n| (class, n)))
        .flat_map(|(class, n)| (0..2).map(move |beside| (class, n, beside)))
    {
        // A class has half of the bases; two of the six classes are transitions.
        let sites = 4e6 * poisson(20.0, n);
        let (inherited, own) = if class == 2 || class == 4 { (1.0 / 3.0, 0.25) } else { (1.0 / 12.0, 0.125) };
        let foreign = CONTAMINATION_PARAMS.foreign_sites_per_het_site.map(|of| of * HET * diverse * inherited);
        const ERROR: f64 = 1.5e-4;
        let seen = |share: f64| poisson(20.0 * (share + ERROR), beside);
        for m in 0..=n / 2 {
            let mean = n as f64 * ERROR;
            let alike = if m == 2 { CONTAMINATION_PARAMS.repeated_error_rate * 0.02 * mean } else { 0.0 };
            let odd = if m >= 2 { CONTAMINATION_PARAMS.unexplained_site_rate } else { 0.0 };
            let chance = 0.5 * (poisson(mean, m) + alike + odd) * seen(0.0)
                + foreign[0] * minor_count_probabilities(n, share / 2.0 + ERROR, &logs)[m] * seen(other / 2.0)
                + foreign[1] * minor_count_probabilities(n, share + ERROR, &logs)[m] * seen(other)
                + own * changes * binomial(m, n, of) * seen(0.0)
                // Inherited alleles that few molecules of the other sample show.
                + inherited * HET * binomial(m, n, 0.5) * binomial(beside, 20, 0.5);
            let expected = sites * chance;
            let normal = (-2.0 * random().max(1e-300).ln()).sqrt() * (std::f64::consts::TAU * random()).cos();
            let seen = match expected {
                0.0..3.0 => expected.floor() + f64::from(u8::from(random() < expected.fract())),
                _ => (expected + expected.sqrt() * normal).round(),
            };
            let at = (class * NUM_DEPTH_CLASSES + n) * NUM_MINOR_ALLELE_COUNT_CLASSES
                + m.min(NUM_MINOR_ALLELE_COUNT_CLASSES - 1);
            let table = if beside == 0 { &mut tally.minor_counts[1] } else { &mut tally.shared_minor_counts[1] };
            table[at] += seen.max(0.0) as u64;
        }
    }
    tally
}

/// The contaminant's alleles in the other sample hide some of those in this one, unless shared sites are used.
#[test]
fn shared_contamination_is_estimated_from_shared_sites() {
    for (i, (share, other)) in [(0.08, 0.08), (0.05, 0.1), (0.02, 0.05), (0.0, 0.06)].into_iter().enumerate() {
        let (mut off, mut wide) = ([0.0; 2], [0.0; 2]);
        for seed in 0..4 {
            let tally = made(share, other, 1.0, (2e-5, 0.35), 17 + 7 * i as u64 + seed);
            for both in [false, true] {
                let found = estimate_contamination(&tally, &known(other, both)).expect("enough sites").share;
                off[usize::from(both)] += (found.value - share) / 4.0;
                wide[usize::from(both)] += (found.high - found.low) / 4.0;
                let what = format!("{share} beside {other}, {both}: {found:?}");
                assert!(found.low - 0.004 <= share && share <= found.high + 0.004, "{what}");
            }
        }
        assert!(off[1].abs() < 0.005, "{share} beside {other}: off by {off:?}");
        assert!(share == 0.0 || wide[1] < 0.95 * wide[0], "{share} beside {other}: {wide:?}");
    }
}

/// The contaminant of the other sample may be a different person, who has no foreign sites in common.
#[test]
fn both_samples_may_have_different_contaminants() {
    let (alone, beside) = (made(0.05, 0.0, 1.0, (2e-5, 0.35), 5), made(0.0, 0.08, 1.0, (0.0, 0.35), 6));
    let mut tally = alone;
    tally.shared_minor_counts[1]
        .iter_mut()
        .zip(&beside.shared_minor_counts[1])
        .for_each(|(sites, others)| *sites += others);
    let found = estimate_contamination(&tally, &known(0.08, true)).expect("enough sites").share;
    assert!((found.value - 0.05).abs() < 0.012, "{found:?}");
}

#[test]
fn contamination_is_estimated_for_any_diversity_and_somatic_changes() {
    let (mut held, mut all, mut off) = (0, 0, 0.0);
    for (i, share) in [0.0, 0.01, 0.03, 0.05, 0.1].into_iter().enumerate() {
        for (j, (diverse, changes)) in
            [(1.0, (0.0, 0.3)), (1.08, (5e-6, 0.35)), (0.93, (2e-5, 0.3))].into_iter().enumerate()
        {
            let found = estimate(share, diverse, changes, (7 * i + j) as u64);
            let what = format!("{share} {diverse} {changes:?}: {found:?}");
            assert!((found.value - share).abs() < 0.006 + 0.12 * share, "{what}");
            held += u32::from(found.low <= share + 0.0005 && share - 0.0005 <= found.high);
            (all, off) = (all + 1, off + found.value - share);
        }
    }
    assert!(held + 2 >= all, "{held} of {all}");
    assert!((off / f64::from(all)).abs() < 0.003, "{off} in all");
}

#[test]
fn somatic_changes_are_not_taken_for_contamination() {
    for (changes, of) in [(1e-4, 0.35), (3e-4, 0.25), (2e-4, 0.45)] {
        let found = estimate(0.0, 1.0, (changes, of), 7);
        assert!(found.value < 0.02 && found.low == 0.0, "{changes} {of}: {found:?}");
    }
}
