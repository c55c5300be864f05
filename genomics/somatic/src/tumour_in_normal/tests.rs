use genuma_pair::copy_number::CopyNumberProfile;

use super::*;

/// Pseudorandom numbers from 0 to 1, the same in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn binomial(&mut self, n: u32, p: f64) -> u32 {
        (0..n).map(|_| u32::from(self.next() < p)).sum()
    }
}

/// Parameters of a simulated pair of samples.
struct Pair {
    depths: [u32; 2],
    purity: f64,
    /// Share of tumour cells in the normal.
    share: f64,
    changes: usize,
    inherited: usize,
    /// Number of counts of each molecule.
    copies: u32,
}

fn own(pair: &Pair, seed: u64) -> TumourAlleles {
    let mut random = Random(seed);
    for _ in 0..10 {
        random.next();
    }
    let (mut own, error, copies) = (TumourAlleles::default(), 0.001, pair.copies);
    own.error_counts = [1000; 6];
    own.base_counts = [1_000_000; 2];
    own.allele_imbalance = vec![[0; 2]; 1024];
    for i in 0..pair.changes + pair.inherited {
        let depths = pair.depths.map(|depth| depth - depth / 4 + (random.next() * f64::from(depth / 2)) as u32);
        let fractions = if i < pair.changes { [pair.share / 2.0 + error, pair.purity / 2.0] } else { [0.5, 0.5] };
        // Two roots; three quarters of the reads have both.
        let draw = |random: &mut Random, s: usize, part: u32| random.binomial(depths[s] * part / 4, fractions[s]);
        let both = [0, 1].map(|s| draw(&mut random, s, 3));
        for _ in 0..2 {
            let [normal, tumour] = [0, 1]
                .map(|s| [(both[s] + draw(&mut random, s, 1)) * copies, (depths[s] * 3 / 4 + depths[s] / 4) * copies]);
            if normal[0].min(normal[1] - normal[0]) * 4 > normal[1] {
                own.allele_imbalance[normal[1] as usize][0] += 1;
                own.allele_imbalance[normal[1] as usize][1] += u64::from(normal[1].abs_diff(2 * normal[0])).pow(2);
            }
            if tumour[0] >= min_tumour_allele_count(tumour[1])
                && normal[0] <= max_normal_count_of_tumour_allele(normal[1], tumour)
            {
                own.alleles.push((TumourAlleleCounts { normal, tumour, substitution: 2 }, 1));
            }
        }
    }
    own.alleles.sort_unstable();
    own
}

fn usual(pair: &Pair) -> f64 {
    f64::from(pair.depths[0] * pair.copies)
}

fn clone(purity: f64) -> PurityPloidyEstimate {
    let estimate = |value: f64| Some(Estimate { value, low: value, high: value });
    PurityPloidyEstimate {
        purity: estimate(purity),
        ploidy: estimate(2.0),
        loh_fraction: Some(0.0),
        alternatives: Vec::new(),
        note: String::new(),
        heterozygous_sites: 3000,
        changes: 300,
        segments: 10,
        profile: CopyNumberProfile::default(),
    }
}

/// Mean of the estimates, and number of intervals that contain the truth.
fn estimate_over_seeds(pair: &Pair, seeds: u64) -> (f64, usize) {
    let of = |seed| {
        estimate_tumour_in_normal(&own(pair, 1 + 1000 * seed), usual(pair), Some(&clone(pair.purity))).expect("told")
    };
    let all: Vec<Estimate> = (0..seeds).map(of).collect();
    let holds = all.iter().filter(|e| e.low <= pair.share && pair.share <= e.high).count();
    (all.iter().map(|e| e.value).sum::<f64>() / seeds as f64, holds)
}

#[test]
fn what_is_not_looked_at_does_not_show() {
    for (depths, purity, copies) in [([24, 24], 0.7, 1), ([24, 24], 0.4, 1), ([24, 80], 0.9, 1), ([24, 48], 0.6, 2)] {
        for share in [0.0, 0.01, 0.03, 0.06, 0.1] {
            let pair = Pair { depths, purity, share, changes: 300, inherited: 5000, copies };
            let (mean, holds) = estimate_over_seeds(&pair, 20);
            let off = f64::max(0.003, 0.08 * share);
            assert!((mean - share).abs() < off, "{depths:?}, {purity}, {copies}: {share} told {mean}");
            assert!(holds >= 16, "{depths:?}, {purity}, {copies}: {share} in {holds}");
        }
    }
}

#[test]
fn what_cannot_be_told_is_not() {
    let pair = |share, changes, purity| Pair { depths: [24, 24], purity, share, changes, inherited: 5000, copies: 1 };
    let told = |pair: &Pair| estimate_tumour_in_normal(&own(pair, 7), usual(pair), Some(&clone(pair.purity)));
    assert_eq!(told(&Pair { inherited: 0, ..pair(0.02, 8, 0.7) }), Err(NotEstimatedReason::TooFewAlleles));
    assert_eq!(
        estimate_tumour_in_normal(&own(&pair(0.02, 300, 0.7), 7), 24.0, None),
        Err(NotEstimatedReason::UnknownPurity)
    );
    // At a lower depth than roots are examined at, most roots are repeats.
    assert_eq!(
        estimate_tumour_in_normal(&own(&pair(0.1, 300, 0.7), 7), 7.0, Some(&clone(0.7))),
        Err(NotEstimatedReason::ShallowNormal)
    );
    // In a shallow normal inherited alleles look like alleles of tumour cells.
    let shallow = Pair { depths: [8, 48], ..pair(0.0, 30, 0.8) };
    assert_eq!(estimate_fraction_ratio_before_calls(&own(&shallow, 7), usual(&shallow)), None);
    // In amplicons few molecules have many copies each, and inherited alleles are often rare in the normal by chance.
    let amplicons = Pair { depths: [15, 30], inherited: 600, copies: 10, ..pair(0.0, 6, 0.5) };
    assert_eq!(estimate_fraction_ratio_before_calls(&own(&amplicons, 7), usual(&amplicons)), None);
    // As frequent in the normal as in the tumour.
    assert!(told(&pair(0.4, 300, 0.4)).is_err());
    let much = told(&pair(0.3, 300, 0.9)).expect("a third of the tumour's");
    assert!(much.low <= 0.3 && much.high >= 0.3, "{much:?}");
}
