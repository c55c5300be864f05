use super::*;
use crate::call::tests::{example_pair, example_summary};

fn assess_with(change: impl FnOnce(&mut CallSummary, &mut SamplePairSummary)) -> (Vec<Finding>, FindingLevel) {
    let (mut outcome, mut pair) = (example_summary(Vec::new()), example_pair());
    change(&mut outcome, &mut pair);
    outcome.sample_summary.pair = Some(pair);
    let found = assess_sample_pair(&outcome);
    let level = overall_verdict(&found).0;
    (found, level)
}

fn share_of(value: f64, low: f64, high: f64) -> Estimate {
    Estimate { value, low, high }
}

fn level(found: &[Finding], about: &str) -> FindingLevel {
    found.iter().find(|f| f.topic == about).expect(about).level
}

#[test]
fn the_evenness_of_deep_libraries_is_not_judged() {
    for (normal, wanted) in [(300.0, FindingLevel::Good), (2.0, FindingLevel::Check)] {
        let found = assess_with(|outcome, pair| {
            pair.coverage[1].low_depth_share = 0.9;
            outcome.sample_summary.libraries.normal.depth = normal;
            outcome.sample_summary.libraries.tumour.depth = 600.0;
        });
        assert_eq!(level(&found.0, "Coverage"), wanted);
    }
}

#[test]
fn a_good_pair_is_good_and_nothing_known_is_not() {
    let (found, all) = assess_with(|_, _| {});
    assert_eq!(all, FindingLevel::Good, "{found:?}");
    assert!(found.iter().all(|f| f.level <= FindingLevel::Unknown), "{found:?}");
    let found = assess_sample_pair(&example_summary(Vec::new()));
    assert!(found.iter().all(|f| f.level == FindingLevel::Unknown), "{found:?}");
    assert_eq!(overall_verdict(&found).0, FindingLevel::Unknown);
}

#[test]
fn two_people_are_never_a_pair() {
    for relation in [Relation::Relatives, Relation::Unrelated, Relation::Different] {
        let (found, all) = assess_with(|outcome, pair| {
            pair.identity.relation = relation;
            pair.contamination = [None, None];
            outcome.sample_summary.tumour_in_normal = Some(share_of(0.5, 0.4, 0.6));
        });
        assert_eq!((all, level(&found, "Identity")), (FindingLevel::Bad, FindingLevel::Bad));
        assert_eq!(level(&found, "Tumour in the normal"), FindingLevel::Unknown, "it would mean nothing");
        assert!(found[0].message.contains("swap"));
    }
    let (found, all) = assess_with(|outcome, pair| {
        pair.identity.relation = Relation::Unknown;
        outcome.genotype_mismatch_rate = Some(0.002);
    });
    assert_eq!((all, found[0].level), (FindingLevel::Bad, FindingLevel::Bad), "they show it all the same");
    assert_eq!(assess_with(|_, pair| pair.identity.relation = Relation::Unknown).1, FindingLevel::Unknown);
    assert_eq!(assess_with(|outcome, _| outcome.genotype_mismatch_rate = Some(0.002)).1, FindingLevel::Check);
}

#[test]
fn another_persons_dna_is_bad_when_it_is_sure() {
    for (estimate, wanted) in [
        (share_of(0.004, 0.001, 0.008), FindingLevel::Good),
        (share_of(0.01, 0.0, 0.02), FindingLevel::Good),
        (share_of(0.015, 0.0, 0.052), FindingLevel::Unknown),
        (share_of(0.0175, 0.0095, 0.026), FindingLevel::Check),
        (share_of(0.05, 0.024, 0.1), FindingLevel::Check),
        (share_of(0.048, 0.038, 0.062), FindingLevel::Bad),
    ] {
        let found = assess_with(|outcome, pair| {
            outcome.sample_summary.burden = Some(share_of(228.0, 207.0, 251.0));
            pair.contamination[1].as_mut().unwrap().share = estimate;
        });
        assert_eq!(
            level(&found.0, "Contamination of the tumour"),
            wanted.min(FindingLevel::Check),
            "many changes look alike"
        );
        for (sample, about) in ["Contamination of the normal", "Contamination of the tumour"].into_iter().enumerate() {
            let found = assess_with(|_, pair| pair.contamination[sample].as_mut().unwrap().share = estimate).0;
            assert_eq!(level(&found, about), wanted, "{estimate:?}");
        }
    }
}

#[test]
fn the_tumour_in_the_normal_and_a_thin_tumour_are_told() {
    for (estimate, wanted) in [
        (share_of(0.008, 0.005, 0.012), FindingLevel::Good),
        (share_of(0.03, 0.02, 0.04), FindingLevel::Check),
        (share_of(0.06, 0.01, 0.12), FindingLevel::Check),
        (share_of(0.06, 0.04, 0.08), FindingLevel::Bad),
    ] {
        let found = assess_with(|outcome, _| outcome.sample_summary.tumour_in_normal = Some(estimate)).0;
        assert_eq!(level(&found, "Tumour in the normal"), wanted, "{estimate:?}");
    }
    for (high, wanted) in [(0.19, FindingLevel::Check), (0.3, FindingLevel::Good)] {
        let (found, _) = assess_with(|_, pair| pair.tumour.as_mut().unwrap().purity = Some(share_of(0.15, 0.1, high)));
        assert_eq!(level(&found, "Purity"), wanted);
    }
    assert_eq!(level(&assess_with(|_, pair| pair.tumour = None).0, "Purity"), FindingLevel::Unknown);
}

#[test]
fn targets_replace_the_coverage_of_the_genome() {
    for (uncovered, wanted) in [(0.01, FindingLevel::Good), (0.06, FindingLevel::Check), (0.3, FindingLevel::Bad)] {
        let found = assess_with(|outcome, pair| {
            pair.coverage[1].low_depth_share = 0.9;
            let mut targets = super::super::tests::example_targets();
            targets.samples[1].uncovered_share = uncovered;
            outcome.targets = Some(targets);
        });
        assert_eq!(level(&found.0, "Coverage"), wanted);
        let coverage = found.0.iter().find(|finding| finding.topic == "Coverage").expect("a finding");
        assert!(coverage.message.contains("On target the tumour has a mean depth of 120; 99\u{a0}%"), "{coverage:?}");
    }
}

#[test]
fn coverage_copies_and_damage_are_told() {
    for (thin, wanted) in [(0.01, FindingLevel::Good), (0.06, FindingLevel::Check), (0.3, FindingLevel::Bad)] {
        assert_eq!(level(&assess_with(|_, pair| pair.coverage[1].low_depth_share = thin).0, "Coverage"), wanted);
    }
    assert_eq!(level(&assess_with(|_, pair| pair.coverage[0].unevenness = 0.6).0, "Coverage"), FindingLevel::Check);
    assert_eq!(level(&assess_with(|_, pair| pair.coverage[0].mean_depth = 3.0).0, "Coverage"), FindingLevel::Check);
    for (copied, wanted) in [(0.1, FindingLevel::Good), (0.56, FindingLevel::Check), (0.9, FindingLevel::Bad)] {
        let found = |word: &str| {
            assess_with(|outcome, _| {
                outcome.libraries.tumor.duplicates.pcr_duplicates = Some(share_of(copied, copied, copied));
                outcome.libraries.tumor.duplicates.note = word.into();
            })
            .0
        };
        assert_eq!(level(&found("many duplicates"), "Duplicates"), wanted);
        assert!(level(&found("probably amplicons: nearly all"), "Duplicates") <= FindingLevel::Unknown);
    }
    let rates = |rate: f64| [1e-4, 1e-4, rate, 1e-4, 1.2e-4, 0.9e-4];
    for (rate, wanted) in [(2e-4, FindingLevel::Good), (3e-4, FindingLevel::Check)] {
        let found = assess_with(|_, pair| pair.substitution_error_rates[1] = Some(rates(rate))).0;
        assert_eq!(level(&found, "Damage"), wanted);
    }
    let found = assess_with(|_, pair| pair.substitution_error_rates[1] = Some(rates(3e-4).map(|rate| rate / 100.0))).0;
    assert_eq!(level(&found, "Damage"), FindingLevel::Good, "so seldom that it does not matter");
}
