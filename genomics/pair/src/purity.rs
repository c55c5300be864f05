//! Estimation of tumour purity and ploidy.
//!
//! Sites that are heterozygous in the normal show the allelic balance of the tumour, and roots show the depth ratio of
//! tumour to normal. Both are functions of the purity and of the copy number of each allele. Neighbouring sites have
//! the same copy numbers ([`crate::segments`]). The read fractions of somatic changes are functions of the same
//! quantities. The estimate is the likeliest combination of purity and copy numbers; alternatives that are about as
//! likely are reported too ([`crate::purity_fit`]).

use serde::{Deserialize, Serialize};

use crate::confidence_interval::Estimate;
use crate::copy_number::CopyNumberProfile;
use crate::non_somatic::NonSomaticModelInputs;
use crate::purity_fit::{PurityFit, PurityModel};
use crate::purity_params::PURITY_PARAMS;
use crate::root_depths::RootDepth;
use crate::segments::{MinorShareLikelihoodCache, OptionalGenomePosition, estimate_overdispersion, segment_genome};
use crate::site_tally::TwoAlleleSite;
use crate::somatic_changes::{SomaticChange, SomaticChangeModel};

/// Estimated purity, ploidy and LOH of a tumour.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PurityPloidyEstimate {
    /// Share of tumour cells among all cells of the sample (0 to 1); `None` if neither copy numbers nor somatic
    /// changes determine it.
    pub purity: Option<Estimate>,
    /// Mean number of copies of the genome in tumour cells; `None` if undetermined.
    pub ploidy: Option<Estimate>,
    /// Share of the genome with loss of heterozygosity in the tumour (0 to 1); `None` if undetermined.
    pub loh_fraction: Option<f64>,
    /// Other combinations of purity and ploidy that explain the data about as well.
    pub alternatives: Vec<AlternativePurityFit>,
    /// Note as text on the reliability of the estimate, or on why there is none.
    pub note: String,
    /// Number of heterozygous sites of the normal from which the allelic balance was measured.
    pub heterozygous_sites: u64,
    /// Number of somatic changes, without those that are expected to be germline or foreign alleles. Of more than 2000
    /// changes, every second, third, … is evaluated and weighted accordingly.
    pub changes: u64,
    /// Number of copy-number segments.
    pub segments: u64,
    /// Depth ratio and allelic balance along the genome, with the copy numbers if they are determined.
    pub profile: CopyNumberProfile,
}

/// Another combination of purity and ploidy that fits about as well as the best one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AlternativePurityFit {
    /// Share of the sample's cells that are tumour cells (0 to 1).
    pub purity: f64,
    /// Mean number of copies of the genome in tumour cells.
    pub ploidy: f64,
    /// Share of the segmented genome with loss of heterozygosity (0 to 1).
    pub loh_fraction: f64,
    /// Log-posterior of the best fit minus the log-posterior of this fit, in natural-log units (positive: this fit is
    /// less likely).
    pub delta_log_likelihood: f64,
}

/// Data from which purity, ploidy and LOH of a tumour are estimated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PurityEvidence<'a> {
    /// Heterozygous sites of the normal, with their positions on the reference.
    pub het_sites: &'a [(TwoAlleleSite, OptionalGenomePosition)],
    /// Depths of both samples at single-copy roots, with their positions on the reference.
    pub root_depths: &'a [(RootDepth, OptionalGenomePosition)],
    /// Somatic changes with their molecule counts and positions, from a call or from the sketch.
    pub changes: &'a [SomaticChange],
    /// Properties of the pair from which the number of non-somatic alleles among the changes is computed.
    pub context: NonSomaticModelInputs<'a>,
    /// Mean depth of the normal at single-copy roots, in molecules; used as its modal depth.
    pub mean_normal_depth: f64,
    /// Length of a root in bases, k−2.
    pub root_bases: u32,
    /// Names of the contigs, by the contig index of the positions.
    pub contig_names: &'a [&'a str],
}

/// Estimates purity, ploidy, LOH and the copy-number profile of a tumour. The estimates are `None`, with a note on the
/// reason, if the data do not determine them.
pub(crate) fn estimate_purity_ploidy(evidence: &PurityEvidence<'_>) -> PurityPloidyEstimate {
    let het = select_het_sites(evidence);
    let none = |why: &str| PurityPloidyEstimate {
        purity: None,
        ploidy: None,
        loh_fraction: None,
        alternatives: Vec::new(),
        note: why.into(),
        heterozygous_sites: het.len() as u64,
        changes: 0,
        segments: 0,
        profile: CopyNumberProfile::default(),
    };
    // Most sites without a position are in repeats.
    let varies = estimate_overdispersion(het.iter().filter(|(_, place)| place.is_some()).map(|(site, _)| site.normal));
    if let Some(why) = find_obstacle(evidence, het.len(), varies) {
        return none(why);
    }
    let deepest = het.iter().map(|(site, _)| site.tumour[0] + site.tumour[1]).max().unwrap_or(0);
    let mut balances = MinorShareLikelihoodCache::with_max_site_depth(deepest as usize, varies);
    let segmentation = segment_genome(&het, evidence.root_depths, &mut balances, evidence.root_bases);
    let segments = &segmentation.segments;
    let called = evidence.context.zygosity_counts.is_empty();
    // A call counts molecules more precisely than a sketch.
    let sketched = PURITY_PARAMS.sketched_overdispersion_factor * varies;
    let own_varies = if called { PURITY_PARAMS.called_overdispersion } else { sketched };
    let changes = SomaticChangeModel::from_changes(
        evidence.changes,
        &evidence.context,
        segments,
        evidence.root_bases,
        own_varies,
    );
    let balanced = het.iter().filter(|(_, place)| place.is_some()).count() >= PURITY_PARAMS.min_het_sites;
    let none = |why: &str| PurityPloidyEstimate {
        changes: changes.count.round() as u64,
        segments: segments.len() as u64,
        profile: CopyNumberProfile::from_segmentation(&segmentation, evidence.contig_names, &[]),
        ..none(why)
    };
    let no_changes = SomaticChangeModel::from_changes(&[], &evidence.context, segments, evidence.root_bases, 0.0);
    let model = PurityModel::from_segments_and_changes(
        segments,
        if changes.count.round() < PURITY_PARAMS.min_changes[usize::from(!called)] { &no_changes } else { &changes },
    );
    let kinds = model.find_best_fits();
    let Some(best) = kinds.first().copied() else { return none("no model of purity and copy numbers could be fitted") };
    let near = find_near_fits(&model, &kinds, &best);
    let best = near.iter().copied().max_by(|a, b| a.log_posterior.total_cmp(&b.log_posterior)).unwrap_or(best);
    if best.unexplained_fraction > PURITY_PARAMS.max_unexplained_fraction {
        return none("no combination of copy numbers explains the depths and allele balances");
    }
    let FitIntervals { purity, ploidy, loh_spread } = FitIntervals::around(&best, &near);
    let wide = |of: Estimate| of.high - of.low;
    let alternatives = list_alternatives(&best, &kinds);
    let is_diploid = best.balanced_diploid_fraction > PURITY_PARAMS.min_diploid_fraction;
    let is_too_low = purity.low < PURITY_PARAMS.min_purity;
    let is_determined = wide(purity) <= PURITY_PARAMS.max_interval_widths[0] && !is_too_low;
    let note = describe_fit([is_determined, is_diploid, is_too_low], alternatives.is_empty());
    let ploidy =
        ((is_determined || is_diploid) && wide(ploidy) <= PURITY_PARAMS.max_interval_widths[1]).then_some(ploidy);
    let copies = if is_determined && ploidy.is_some() { model.allele_copies_by_segment(&best) } else { Vec::new() };
    PurityPloidyEstimate {
        purity: is_determined.then_some(purity),
        ploidy,
        profile: CopyNumberProfile::from_segmentation(&segmentation, evidence.contig_names, &copies),
        loh_fraction: (balanced && (is_determined || is_diploid) && loh_spread < PURITY_PARAMS.max_loh_spread)
            .then_some(best.loh_fraction),
        alternatives,
        changes: (changes.count * (1.0 - best.foreign_fraction)).round() as u64,
        ..none(note)
    }
}

/// Selects the heterozygous sites of usual depth that the tumour covers.
fn select_het_sites(evidence: &PurityEvidence<'_>) -> Vec<(TwoAlleleSite, OptionalGenomePosition)> {
    let fits = |(site, _): &&(TwoAlleleSite, OptionalGenomePosition)| {
        let depth = f64::from(site.normal[0] + site.normal[1]);
        depth >= PURITY_PARAMS.het_depth_range[0] * evidence.mean_normal_depth
            && depth <= PURITY_PARAMS.het_depth_range[1] * evidence.mean_normal_depth
            && site.tumour[0] + site.tumour[1] > 0
    };
    evidence.het_sites.iter().filter(fits).copied().collect()
}

/// Returns the reason why nothing can be estimated. `overdispersion` is that of the alleles of the normal.
fn find_obstacle(evidence: &PurityEvidence<'_>, num_het_sites: usize, overdispersion: f64) -> Option<&'static str> {
    if evidence.mean_normal_depth < PURITY_PARAMS.min_normal_depth {
        return Some("depth too low");
    }
    if evidence.root_depths.iter().filter(|(_, place)| place.is_some()).count() < PURITY_PARAMS.min_placed_roots {
        return Some("without a reference the positions of the sites are unknown (give --reference)");
    }
    if num_het_sites >= PURITY_PARAMS.min_het_sites && overdispersion > PURITY_PARAMS.max_normal_overdispersion {
        return Some(
            "the alleles at heterozygous sites of the normal are not balanced: its cells have more than two copies of the genome, or it is contaminated",
        );
    }
    None
}

/// Returns the fits of each purity that are about as likely as the best one.
fn find_near_fits(model: &PurityModel<'_>, fits: &[PurityFit], best: &PurityFit) -> Vec<PurityFit> {
    fits.iter()
        .filter(|fit| fit.log_posterior > best.log_posterior - PURITY_PARAMS.alternative_log_drop)
        .flat_map(|fit| model.best_fits_by_purity(*fit, PURITY_PARAMS.alternative_log_drop))
        .collect()
}

/// Values of the best fit with their intervals, from the fits that are about as likely.
struct FitIntervals {
    purity: Estimate,
    ploidy: Estimate,
    /// Largest minus smallest LOH fraction of the fits that are about as likely as the best.
    loh_spread: f64,
}

impl FitIntervals {
    fn around(best: &PurityFit, near: &[PurityFit]) -> FitIntervals {
        // docs/model/purity_ploidy.md (18)
        let likely = |fit: &&PurityFit| {
            let other = usize::from((fit.ploidy - best.ploidy).abs() > PURITY_PARAMS.same_ploidy_tolerance);
            fit.log_posterior > best.log_posterior - PURITY_PARAMS.interval_log_drops[other]
        };
        let profile = |of: fn(&PurityFit) -> f64, least: f64, bounds: [f64; 2]| {
            let likely = || near.iter().filter(likely).map(of);
            let value = of(best);
            Estimate {
                value,
                low: likely().fold(value - least, f64::min).max(bounds[0]).min(value),
                high: likely().fold(value + least, f64::max).min(bounds[1]).max(value),
            }
        };
        let purity = profile(|fit| fit.purity, PURITY_PARAMS.min_half_widths[0], [0.0, 1.0]);
        let ploidy = profile(|fit| fit.ploidy, PURITY_PARAMS.min_half_widths[1], [0.0, f64::INFINITY]);
        let lost: Vec<f64> = near.iter().filter(likely).map(|fit| fit.loh_fraction).collect();
        let loh_spread = lost.iter().copied().fold(0.0, f64::max) - lost.iter().copied().fold(1.0, f64::min);
        FitIntervals { purity, ploidy, loh_spread }
    }
}

/// Lists the fits that are almost as likely as the best one and differ from it in purity or ploidy.
fn list_alternatives(best: &PurityFit, fits: &[PurityFit]) -> Vec<AlternativePurityFit> {
    fits.iter()
        .filter(|fit| fit.log_posterior > best.log_posterior - PURITY_PARAMS.alternative_log_drop)
        .filter(|fit| {
            (fit.purity - best.purity).abs() > PURITY_PARAMS.min_alternative_differences[0]
                || (fit.ploidy - best.ploidy).abs() > PURITY_PARAMS.min_alternative_differences[1]
        })
        .map(|fit| AlternativePurityFit {
            purity: fit.purity,
            ploidy: fit.ploidy,
            loh_fraction: fit.loh_fraction,
            delta_log_likelihood: best.log_posterior - fit.log_posterior,
        })
        .collect()
}

fn describe_fit([is_determined, is_diploid, is_too_low]: [bool; 3], is_unique: bool) -> &'static str {
    match (is_determined, is_diploid, is_unique) {
        (false, false, _) if is_too_low => {
            "too few tumour cells, or too little of the genome with other copy numbers, to estimate purity"
        }
        (false, true, _) => "copy number 2 throughout, and too few changes to estimate purity from",
        (false, ..) => "ambiguous: several combinations of purity and copy numbers fit equally well",
        (true, true, _) => "copy number 2 throughout, so purity is estimated from somatic changes alone",
        (true, false, true) => "estimated from copy numbers",
        (true, false, false) => "other combinations of purity and copy numbers fit almost as well (see `alternatives`)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reproducible random numbers.
    struct Random(u64);

    impl Random {
        fn chance(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let x = (self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (x >> 40) as f64 / (1u64 << 24) as f64
        }

        fn poisson(&mut self, mean: f64) -> u32 {
            let (least, mut product, mut n) = ((-mean).exp(), self.chance(), 0);
            while product > least {
                product *= self.chance();
                n += 1;
            }
            n
        }
    }

    /// A simulated tumour of contigs of 300,000 bases. Each contig has its own copy numbers.
    struct Made {
        het: Vec<(TwoAlleleSite, OptionalGenomePosition)>,
        deep: Vec<(RootDepth, OptionalGenomePosition)>,
        changes: Vec<SomaticChange>,
    }

    fn made(states: &[[u32; 2]], purity: f64, apart: usize, changes: u32, seed: u64) -> Made {
        let states: Vec<[f64; 2]> = states.iter().map(|copies| copies.map(f64::from)).collect();
        made_with(&states, purity, apart, changes, 2, seed)
    }

    /// Simulates a tumour with a heterozygous site every `apart` bases and `changes` somatic changes per contig; one
    /// in `older` of them is in all copies of an allele, the others in one copy.
    fn made_with(states: &[[f64; 2]], purity: f64, apart: usize, changes: u32, older: u32, seed: u64) -> Made {
        const LENGTH: u32 = 300_000;
        const DEPTH: f64 = 14.0;
        let mut random = Random(seed);
        let mut made = Made { het: Vec::new(), deep: Vec::new(), changes: Vec::new() };
        for (contig, copies) in (0..).zip(states) {
            let alleles = copies.map(|n| purity * n + 1.0 - purity);
            let all = alleles[0] + alleles[1];
            for at in (0..LENGTH).step_by(150) {
                let depth = [random.poisson(DEPTH), random.poisson(DEPTH * all / 2.0)];
                made.deep.push((RootDepth { root: 0, depth }, Some((contig, at))));
            }
            for at in (70..LENGTH).step_by(apart) {
                let normal = [0, 1].map(|_| random.poisson(DEPTH / 2.0));
                let turned = usize::from(random.chance() < 0.5);
                let tumour = [turned, 1 - turned].map(|i| random.poisson(DEPTH * alleles[i] / 2.0));
                let (a, b) = (normal[0].min(normal[1]), normal[0] + normal[1]);
                if b >= 8 && tumour[0] + tumour[1] >= 8 && a >= 3 && 4 * a >= b {
                    let site = serde_json::json!({"hash": 0, "root": 0, "normal": normal, "tumour": tumour});
                    made.het.push((serde_json::from_value(site).expect("a site"), Some((contig, at))));
                }
            }
            for i in 0..changes {
                let with = if i % older == 0 { copies[0].max(1.0) } else { 1.0 };
                let mean = DEPTH * purity * with / 2.0;
                let [with, without] = [mean, DEPTH * all / 2.0 - mean].map(|mean| random.poisson(mean));
                made.changes.push(SomaticChange {
                    position: Some((contig, 1_000 * i + 500)),
                    molecules: [without, with],
                    normal_depth: 14,
                });
            }
        }
        made
    }

    fn estimate(made: &Made) -> PurityPloidyEstimate {
        estimate_in_context(
            made,
            NonSomaticModelInputs {
                zygosity_counts: &[],
                heterozygosity: 0.001,
                contamination: None,
                tumour_depths: &[],
            },
        )
    }

    fn estimate_in_context(made: &Made, context: NonSomaticModelInputs<'_>) -> PurityPloidyEstimate {
        let Made { het, deep, changes } = made;
        estimate_purity_ploidy(&PurityEvidence {
            het_sites: het,
            root_depths: deep,
            changes,
            context,
            mean_normal_depth: 14.0,
            root_bases: 29,
            contig_names: &["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "c10", "c11"],
        })
    }

    #[track_caller]
    fn assert_about(estimate: Option<Estimate>, truth: f64, off: f64, what: &str) {
        let estimate = estimate.unwrap_or_else(|| panic!("{what}: no estimate"));
        assert!((estimate.value - truth).abs() <= off, "{what}: {truth} is estimated as {estimate:?}");
        assert!(
            estimate.low <= truth + 0.01 && truth - 0.01 <= estimate.high,
            "{what}: {truth} is not in {estimate:?}"
        );
    }

    /// Fails unless nine tenths of the bases of the profile have the depth, the balance and the copies of their contig.
    #[track_caller]
    fn assert_profile_matches(profile: &CopyNumberProfile, states: &[[u32; 2]], purity: f64, what: &str) {
        let depth = |copies: [u32; 2]| purity * f64::from(copies[0] + copies[1]) + 2.0 * (1.0 - purity);
        let mean_depth = states.iter().map(|copies| depth(*copies)).sum::<f64>() / states.len() as f64;
        let mut right = 0;
        for segment in &profile.segments {
            let contig: usize = segment.contig[1..].parse().expect("a number");
            let copies = states[contig];
            let minor = (purity * f64::from(copies[1]) + 1.0 - purity) / depth(copies);
            let is_near = (segment.log2_ratio - (depth(copies) / mean_depth).log2()).abs() < 0.1
                && segment.minor_allele_share.is_some_and(|share| (share - minor).abs() < 0.06);
            if is_near && segment.copies.is_none_or(|found| found == copies.map(f64::from)) {
                right += segment.end - segment.start;
            }
        }
        let all: u32 = profile.bins.iter().map(|bin| bin.end - bin.start).sum();
        assert!(right >= all / 10 * 9, "{what}: {right} of {all} bases, {:?}", profile.segments);
        assert!(all > 290_000 * states.len() as u32, "{what}: {all} bases");
        assert!(profile.segments.iter().any(|segment| segment.copies.is_some()), "{what}: no copies");
    }

    #[test]
    fn purity_ploidy_and_loh_match_the_simulation() {
        let lost_and_gained = [[1, 1], [2, 1], [1, 0], [2, 0], [1, 1], [2, 1], [1, 1], [1, 0], [2, 2], [1, 1]];
        let gained = [[1, 1], [2, 1], [2, 1], [1, 1], [2, 1], [1, 1], [3, 1], [2, 1], [1, 1], [1, 1]];
        let doubled = [[2, 2], [3, 2], [2, 0], [2, 1], [2, 2], [4, 2], [2, 2], [1, 0], [2, 2], [3, 2]];
        for (name, states) in [("mixed", lost_and_gained), ("gained", gained), ("doubled", doubled)] {
            let sum = |of: fn(&[u32; 2]) -> f64| states.iter().map(of).sum::<f64>() / states.len() as f64;
            let ploidy = sum(|s| f64::from(s[0] + s[1]));
            let lost = sum(|s| f64::from(u8::from(s[1] == 0)));
            for (purity, seed) in [(0.3, 11), (0.5, 12), (0.65, 13), (0.8, 14), (0.95, 15)] {
                let found = estimate(&made(&states, purity, 1_000, 8, seed));
                let what = format!("{name}, {purity}");
                assert_about(found.purity, purity, 0.03, &what);
                assert_about(found.ploidy, ploidy, 0.1, &what);
                assert!(found.loh_fraction.is_some_and(|share| (share - lost).abs() < 0.05), "{what}: {found:?}");
                assert_profile_matches(&found.profile, &states, purity, &what);
            }
        }
    }

    #[test]
    fn diploid_tumours_need_changes_for_a_purity() {
        let even = [[1, 1]; 8];
        let found = estimate(&made(&even, 0.7, 1_000, 30, 21));
        assert_about(found.purity, 0.7, 0.06, "even");
        assert_about(found.ploidy, 2.0, 0.03, "even");
        let found = estimate(&made(&even, 0.7, 1_000, 0, 22));
        assert_eq!((found.purity, found.loh_fraction), (None, Some(0.0)));
        assert!(found.profile.segments.iter().all(|segment| segment.copies.is_none()));
        assert!(found.note.contains("too few changes"), "{}", found.note);
        // No tumour cells at all.
        assert_eq!(estimate(&made(&even, 0.0, 1_000, 0, 23)).purity, None);
    }

    /// Many segments that differ in the same fraction of the cells form one subclone.
    #[test]
    fn a_large_subclone_does_not_change_the_purity() {
        for (part, purity, seed) in [(0.35, 0.8, 51), (0.35, 0.5, 52), (0.25, 0.7, 53), (0.7, 0.8, 54)] {
            let (more, less) = (1.0 + part, 1.0 - part);
            let states = [[1.0; 2], [more, 1.0], [1.0, less], [1.0; 2], [more, 1.0], [2.0, 1.0], [1.0; 2], [1.0, less]];
            let states: Vec<[f64; 2]> =
                states.into_iter().chain([[more, 1.0], [1.0, 0.0], [1.0; 2], [more, 1.0]]).collect();
            let found = estimate(&made_with(&states, purity, 1_000, 12, 2, seed));
            let ploidy = states.iter().flatten().sum::<f64>() / states.len() as f64;
            let what = format!("{part} of the cells, {purity}");
            assert_about(found.purity, purity, 0.03, &what);
            assert!(found.ploidy.is_some_and(|estimate| (estimate.value - ploidy).abs() < 0.1), "{what}: {found:?}");
        }
    }

    /// Half of the apparent changes are alleles of a contaminant or inherited.
    #[test]
    fn non_somatic_alleles_do_not_change_the_purity() {
        let mut random = Random(31);
        let with = |shares: [f64; 2], normal: u32, random: &mut Random| {
            let mut made = made(&[[1, 1]; 8], 0.7, 1_000, 30, 32);
            let mut at = 0;
            while at < 240 {
                let reads = 14.0 * shares[usize::from(random.chance() < 175.0 / 825.0)];
                let molecules = [random.poisson(14.0 - reads), random.poisson(reads)];
                if molecules[1] >= 4 {
                    made.changes.push(SomaticChange {
                        position: Some((at % 8, 1_000 * (at / 8) + 250)),
                        molecules,
                        normal_depth: normal,
                    });
                    at += 1;
                }
            }
            made
        };
        let none = NonSomaticModelInputs {
            zygosity_counts: &[],
            heterozygosity: 0.001,
            contamination: None,
            tumour_depths: &[],
        };
        let foreign = with([0.1, 0.2], 14, &mut random);
        let share = Estimate { value: 0.2, low: 0.18, high: 0.22 };
        let context = NonSomaticModelInputs { contamination: Some(share), tumour_depths: &[14], ..none };
        let inherited = with([0.5, 0.5], 8, &mut random);
        let mut zygosities = [[0.0; 2]; 15];
        (zygosities[8], zygosities[14]) = ([20_000.0, 240.0 * 128.0], [1_000_000.0, 1_000.0]);
        let unseen = NonSomaticModelInputs { zygosity_counts: &zygosities, ..none };
        for (what, made, context) in [("foreign", foreign, context), ("inherited", inherited, unseen)] {
            let off = |found: &PurityPloidyEstimate| found.purity.map_or(1.0, |purity| (purity.value - 0.7).abs());
            let (known, unknown) = (estimate_in_context(&made, context), estimate(&made));
            assert_about(known.purity, 0.7, 0.06, what);
            assert!(off(&unknown) > 0.1, "{what}: {unknown:?}");
        }
    }

    /// The purity does not depend on whether changes came before or after a genome doubling.
    #[test]
    fn changes_of_a_doubled_tumour_may_be_of_any_age() {
        let states = [[2, 2], [2, 2], [3, 2], [2, 2], [3, 3], [2, 2], [2, 1], [2, 2]].map(|own| own.map(f64::from));
        for older in [1, 2, 4] {
            let mut off = 0.0;
            for seed in 41..45 {
                let found = estimate(&made_with(&states, 0.8, 1_000, 30, older, seed));
                assert_about(found.purity, 0.8, 0.09, &format!("one of {older} is older, seed {seed}"));
                off += found.purity.map_or(0.0, |purity| purity.value - 0.8) / 4.0;
            }
            assert!(off.abs() < 0.035, "one of {older} is older: off by {off} on average");
        }
    }

    #[test]
    fn undetermined_purity_is_not_reported() {
        let states = [[1, 1], [2, 1], [1, 0], [2, 1], [1, 1], [1, 1]];
        // An inbred mouse: without heterozygous sites LOH is unknown.
        let inbred = estimate(&made(&states, 0.6, 1_000_000, 30, 31));
        assert_eq!((inbred.heterozygous_sites < 150, inbred.loh_fraction), (true, None));
        // Without LOH and without changes: an undoubled tumour of lower purity looks the same.
        let twins = made(&[[2, 2], [3, 2], [2, 1], [2, 2], [3, 2], [2, 2]], 0.7, 600, 0, 32);
        let found = estimate(&twins);
        let all: Vec<f64> =
            found.purity.iter().map(|p| p.value).chain(found.alternatives.iter().map(|o| o.purity)).collect();
        assert!(all.iter().any(|p| (p - 0.7).abs() < 0.05) || found.purity.is_none(), "{found:?}");
        // Normal cells with four copies: alleles have one and three.
        let mut four = made(&states, 0.6, 500, 0, 33);
        let mut random = Random(5);
        for (site, _) in &mut four.het {
            let a = (0..16).filter(|_| random.chance() < 0.25).count().clamp(4, 12) as u32;
            site.normal = [a, 16 - a];
        }
        let found = estimate(&four);
        assert_eq!((found.purity, found.ploidy), (None, None));
        assert!(found.note.contains("more than two copies"), "{}", found.note);
        // Without positions.
        let mut loose = made(&states, 0.6, 1_000, 0, 34);
        loose.deep.iter_mut().for_each(|(_, place)| *place = None);
        assert!(estimate(&loose).note.contains("without a reference"));
    }
}
