//! Qualities and filters of alleles, from the votes of molecules.

use crate::common::Rng;
use genuma_somatic::genotype::{
    ErrorFrequency, Filter, GenotypingParams, GenotypingResult, MIN_CALL_MOLECULES_COMMON_ERROR,
    MIN_CALL_MOLECULES_RARE_ERROR, genotype_change,
};
use genuma_somatic::molecule_vote::MoleculeVote;
use genuma_somatic::recruit::RecruitedPair;

/// Votes of good reads: `reference` and `alternative` of them, half on each strand and of each orientation, far from
/// the reads' ends.
fn ballot(reference: usize, alternative: usize) -> Vec<MoleculeVote> {
    (0..reference + alternative)
        .map(|i| MoleculeVote {
            pair: i as u32,
            log_odds: if i < reference { -9.0 } else { 9.0 },
            forward: i % 2 == 0,
            is_f1r2: i % 4 < 2,
            distance_from_end: 40,
            quality: 37,
            duplicates: 0,
            counts_in_fraction: true,
        })
        .collect()
}

fn reasons(normal: &[MoleculeVote], tumour: &[MoleculeVote]) -> Vec<Filter> {
    genotype_change(normal, &[tumour.to_vec()], GenotypingParams::default()).filters.into_iter().collect()
}

#[test]
fn clear_somatic_changes_pass() {
    for (reference, alternative) in [(15, 15), (22, 8), (24, 6), (0, 30), (40, 10)] {
        let (mut normal, mut tumour) = (ballot(30, 0), ballot(reference, alternative));
        (normal[3].duplicates, tumour[1].duplicates, tumour[2].duplicates) = (1, 1, 1);
        let judged = genotype_change(&normal, &[tumour], GenotypingParams::default());
        assert!(judged.filters.is_empty(), "{reference} {alternative}: {judged:?}");
        assert_eq!((judged.normal.reference, judged.normal.alternative, judged.normal.copies), (30, 0, 1));
        assert_eq!((judged.tumour.reference, judged.tumour.alternative), (reference as u32, alternative as u32));
        assert_eq!((judged.tumour.copies, judged.tumour.forward), (2, (alternative / 2) as u32));
    }
    // More support gives a higher quality, if the normal is deep enough to exclude a germline variant.
    let quality =
        |n: usize| genotype_change(&ballot(300, 0), &[ballot(30 - n, n)], GenotypingParams::default()).quality;
    assert!((3..15).all(|n| quality(n) <= quality(n + 1)));
}

#[test]
fn rare_errors_need_fewer_molecules() {
    let reasons = |kind, molecules| {
        let mut tumour = ballot(10, molecules);
        tumour.iter_mut().for_each(|v| v.log_odds = v.log_odds.signum() * 13.0);
        genotype_change(&ballot(30, 0), &[tumour], GenotypingParams::defaults_for_error_frequency(kind)).filters
    };
    assert!(reasons(ErrorFrequency::Common, MIN_CALL_MOLECULES_COMMON_ERROR - 1).contains(&Filter::FewReads));
    assert!(!reasons(ErrorFrequency::Common, MIN_CALL_MOLECULES_COMMON_ERROR).contains(&Filter::FewReads));
    assert!(reasons(ErrorFrequency::Rare, MIN_CALL_MOLECULES_RARE_ERROR - 1).contains(&Filter::FewReads));
    assert!(reasons(ErrorFrequency::Rare, MIN_CALL_MOLECULES_RARE_ERROR).is_empty());
}

#[test]
fn germline_variants_are_named() {
    for (normal, tumour) in [((15, 15), (14, 16)), ((0, 30), (0, 30)), ((20, 9), (10, 20))] {
        let found = reasons(&ballot(normal.0, normal.1), &ballot(tumour.0, tumour.1));
        assert!(found.contains(&Filter::Germline), "{found:?}");
        assert!(!found.contains(&Filter::TumourInNormal), "{found:?}");
    }
}

#[test]
fn slight_contamination_passes() {
    assert_eq!(reasons(&ballot(59, 1), &ballot(30, 30)), []);
    assert_eq!(reasons(&ballot(29, 1), &ballot(15, 15)), []);
}

#[test]
fn the_same_small_share_in_both_is_named() {
    for n in [1, 2] {
        let found = reasons(&ballot(30, n), &ballot(30, 4));
        assert!(found.contains(&Filter::TumourInNormal), "{found:?}");
        assert!(!found.contains(&Filter::Germline), "{found:?}");
    }
}

#[test]
fn one_molecule_of_the_normal_is_forgiven_where_all_else_is_clear() {
    // Errors give one read in thirty, a tumour fraction of a quarter gives many.
    assert_eq!(reasons(&ballot(32, 1), &ballot(60, 20)), []);
    // The same share in both samples, and two molecules of the normal, are not an error.
    assert!(reasons(&ballot(33, 1), &ballot(207, 7)).contains(&Filter::TumourInNormal));
    assert!(reasons(&ballot(31, 2), &ballot(107, 12)).contains(&Filter::TumourInNormal));
}

#[test]
fn a_fraction_that_both_samples_may_share_needs_a_deep_normal() {
    let quality = |normal: usize, [others, own]: [usize; 2], params: GenotypingParams| {
        genotype_change(&ballot(normal, 0), &[ballot(others, own)], params).quality
    };
    let default = GenotypingParams::default();
    // A fraction of a twelfth: a normal of 16 molecules does not show its absence, one of 60 does.
    assert!(quality(16, [35, 3], default) < default.min_quality);
    assert!(quality(60, [35, 3], default) >= default.min_quality);
    // One half shows in few molecules.
    assert!(quality(16, [15, 15], default) >= default.min_quality);
    // Molecules with two changes are rather of another copy of the sequence.
    let linked = GenotypingParams { is_linked: true, ..default };
    assert!(quality(60, [35, 3], linked) < linked.min_quality);
    assert!(quality(60, [15, 15], linked) >= linked.min_quality);
    // Without a normal nothing is compared.
    let alone = GenotypingParams { has_normal: false, ..linked };
    assert!(quality(0, [35, 3], alone) > quality(60, [35, 3], linked));
}

#[test]
fn thin_support_is_named() {
    let clean = ballot(30, 0);
    assert!(reasons(&clean, &ballot(20, MIN_CALL_MOLECULES_COMMON_ERROR - 1)).contains(&Filter::FewReads));
    assert!(!reasons(&clean, &ballot(20, MIN_CALL_MOLECULES_COMMON_ERROR)).contains(&Filter::FewReads));
    assert!(reasons(&ballot(3, 0), &ballot(15, 15)).contains(&Filter::NormalDepth));
    assert!(!reasons(&ballot(12, 0), &ballot(15, 15)).contains(&Filter::NormalDepth));
    // Votes with weak evidence count for neither allele.
    let unsure: Vec<MoleculeVote> =
        ballot(15, 15).into_iter().map(|v| MoleculeVote { log_odds: v.log_odds / 9.0, ..v }).collect();
    let judged = genotype_change(&clean, &[unsure], GenotypingParams::default());
    assert_eq!(judged.tumour.num_informative_molecules(), 0);
    assert!(judged.filters.contains(&Filter::FewReads) && judged.filters.contains(&Filter::LowQuality));
}

#[test]
fn a_normal_that_cannot_tell_at_a_tandem_copy_speaks_by_its_depth() {
    // No molecule of the normal supports an allele, but there are forty, none with the tumour's.
    let with = |kind, molecules| {
        genotype_change(
            &[],
            &[ballot(0, 12)],
            GenotypingParams { num_molecules: molecules, ..GenotypingParams::defaults_for_error_frequency(kind) },
        )
        .filters
    };
    assert!(with(ErrorFrequency::Rare, [0, 40]).contains(&Filter::NormalDepth));
    assert!(!with(ErrorFrequency::Rare, [40, 40]).contains(&Filter::NormalDepth));
    // In a repeat reads may end and show no length: that they do not show the tumour's length is not evidence.
    assert!(with(ErrorFrequency::Common, [40, 40]).contains(&Filter::NormalDepth));
}

type Trait = fn(&mut MoleculeVote);

/// Filters of a tumour allele whose reads have a property, if the other allele's reads have it or not.
fn traits(of_tumour_allele: Trait, of_normal_allele: Trait) -> Vec<Filter> {
    let (mut normal, mut tumour) = (ballot(60, 0), ballot(40, 40));
    for vote in normal.iter_mut().chain(&mut tumour) {
        if vote.supports_tumour_allele() { of_tumour_allele(vote) } else { of_normal_allele(vote) }
    }
    reasons(&normal, &tumour)
}

#[test]
fn support_unlike_that_of_the_other_allele_is_named() {
    let none: Trait = |_| ();
    let cases: [(Trait, Filter); 6] = [
        (|v| v.distance_from_end = 5, Filter::ReadEnds),
        (|v| v.quality = 12, Filter::BaseQuality),
        (|v| v.forward = true, Filter::StrandBias),
        (|v| v.forward = false, Filter::StrandBias),
        (|v| v.is_f1r2 = true, Filter::Orientation),
        (|v| v.is_f1r2 = false, Filter::Orientation),
    ];
    for (trait_of, filter) in cases {
        assert_eq!(traits(trait_of, none), [filter]);
    }
    // If all reads of the locus have the property, as at the end of a target or in poor cycles, it is not evidence.
    assert_eq!(traits(|v| v.forward = true, |v| v.forward = true), []);
    assert_eq!(traits(|v| v.is_f1r2 = false, |v| v.is_f1r2 = false), []);
    assert_eq!(traits(|v| v.quality = 12, |v| v.quality = 12), []);
    // Nor is a property of few reads.
    assert_eq!(traits(|v| v.forward |= v.pair % 8 == 1, none), []);
    // Three reads on one strand are chance.
    let mut few = ballot(20, 4);
    few.iter_mut().skip(20).for_each(|v| (v.forward, v.is_f1r2) = (true, true));
    assert_eq!(reasons(&ballot(30, 0), &few), []);
}

#[test]
fn no_reads_at_all_are_no_call() {
    let judged = genotype_change(&[], &[], GenotypingParams::default());
    assert_eq!((judged.quality, judged.tumour.allele_fraction()), (0.0, 0.0));
    assert!(judged.filters.contains(&Filter::LowQuality) && judged.filters.contains(&Filter::NormalDepth));
    let repeat = GenotypingParams { mapq: 0, ..GenotypingParams::default() };
    assert!(genotype_change(&ballot(30, 0), &[ballot(15, 15)], repeat).filters.contains(&Filter::Repeat));
}

/// Genotype of a change in several tumours, and the tumours that have the change.
fn together(normal: &[MoleculeVote], tumours: &[Vec<MoleculeVote>]) -> (GenotypingResult, Vec<bool>) {
    let judged = genotype_change(normal, tumours, GenotypingParams::default());
    let has = judged.tumours.iter().map(|own| own.has).collect();
    (judged, has)
}

#[test]
fn a_change_that_is_seldom_in_one_tumour_counts_beside_another_where_it_is_frequent() {
    let (normal, seldom, frequent) = (ballot(30, 0), ballot(38, 2), ballot(28, 12));
    assert!(reasons(&normal, &seldom).contains(&Filter::FewReads));
    let (both, has) = together(&normal, &[seldom.clone(), frequent.clone()]);
    assert!(both.filters.is_empty(), "{both:?}");
    assert_eq!(has, [true, true]);
    assert_eq!((both.tumours[0].support.alternative, both.tumours[1].support.alternative), (2, 12));
    assert_eq!((both.tumour.reference, both.tumour.alternative), (66, 14));
    // Two molecules in each of two tumours are four. A normal of 30 molecules may lack an allele that all samples share.
    let (few, has) = together(&ballot(150, 0), &[ballot(28, 2), ballot(28, 2)]);
    assert!(few.filters.is_empty(), "{few:?}");
    assert_eq!(has, [true, true]);
    let (shared, _) = together(&normal, &[ballot(28, 2), ballot(28, 2)]);
    assert!(shared.filters.contains(&Filter::LowQuality), "{shared:?}");
    // Three of sixty molecules in two tumours are no more evidence than in one tumour of as many reads.
    let all = genotype_change(&normal, &[ballot(57, 3)], GenotypingParams::default());
    let (spread, _) = together(&normal, &[ballot(28, 2), ballot(29, 1)]);
    assert!(spread.quality <= all.quality, "{} for {}", spread.quality, all.quality);
    let (two, _) = together(&normal, &[ballot(29, 1), ballot(29, 1)]);
    assert!(two.filters.contains(&Filter::FewReads));
}

#[test]
fn a_tumour_without_a_change_does_not_take_it_from_another() {
    let (normal, frequent) = (ballot(30, 0), ballot(28, 12));
    let alone = genotype_change(&normal, std::slice::from_ref(&frequent), GenotypingParams::default());
    assert!(alone.tumours.is_empty());
    let (both, has) = together(&normal, &[ballot(40, 0), frequent.clone(), ballot(60, 0)]);
    assert!(both.filters.is_empty(), "{both:?}");
    assert_eq!(has, [false, true, false]);
    // A germline variant would be in all tumours.
    assert!(both.quality > alone.quality, "{} for {}", both.quality, alone.quality);
    // A tumour without reads gives no evidence.
    let (none, has) = together(&normal, &[frequent.clone(), Vec::new()]);
    assert_eq!((none.filters.is_empty(), has), (true, vec![true, false]));
    // One molecule of few is a share of the change, one of many an error.
    assert_eq!(together(&normal, &[ballot(29, 1), frequent.clone()]).1, [true, true]);
    assert_eq!(together(&normal, &[ballot(399, 1), frequent]).1, [false, true]);
}

#[test]
fn a_germline_variant_is_one_in_all_tumours() {
    let (judged, _) = together(&ballot(15, 15), &[ballot(15, 15), ballot(20, 10)]);
    assert!(judged.filters.contains(&Filter::Germline) && judged.quality < 8.0);
    // A normal with one molecule resembles the tumour with two molecules, but not the other tumour.
    let normal = ballot(29, 1);
    assert!(reasons(&normal, &ballot(38, 2)).contains(&Filter::TumourInNormal));
    assert!(!together(&normal, &[ballot(38, 2), ballot(20, 20)]).0.filters.contains(&Filter::TumourInNormal));
    // A tumour with clearly less than the normal does not make the normal cleaner.
    let less = together(&ballot(28, 2), &[ballot(38, 2), ballot(400, 0)]).0;
    assert!(less.filters.contains(&Filter::TumourInNormal), "{less:?}");
}

/// A clonal change of the tumours' founder is in half of the molecules of both: that does not make it a germline
/// variant.
#[test]
fn a_change_of_the_founder_is_no_more_a_germline_variant_than_in_one_tumour() {
    let (normal, tumour) = (ballot(10, 0), ballot(15, 15));
    let alone = genotype_change(&normal, std::slice::from_ref(&tumour), GenotypingParams::default());
    assert!(alone.filters.is_empty(), "{alone:?}");
    for tumours in 2..=4 {
        let (both, has) = together(&normal, &vec![tumour.clone(); tumours]);
        assert!(both.filters.is_empty() && has.iter().all(|has| *has), "{both:?}");
        assert!(both.quality > alone.quality - 4.0, "{} for {}", both.quality, alone.quality);
    }
    // A germline variant is not excluded by it: the few molecules of a normal that has the variant show it.
    let (germline, _) = together(&ballot(6, 3), &[tumour.clone(), tumour]);
    assert!(germline.filters.contains(&Filter::Germline));
}

#[test]
fn the_order_of_tumours_decides_nothing() {
    let mut rng = Rng(77);
    for _ in 0..50 {
        let mut tumour = || {
            let (reference, alternative) = (rng.within(0..40), rng.within(0..12));
            let mut votes = ballot(reference, alternative);
            votes.iter_mut().for_each(|vote| vote.log_odds *= 0.5 + rng.within(0..100) as f64 / 100.0);
            votes
        };
        let (normal, [a, b, c]) = (ballot(30, 0), [0; 3].map(|_| tumour()));
        let (one, has) = together(&normal, &[a.clone(), b.clone(), c.clone()]);
        let (other, turned) = together(&normal, &[c, a, b]);
        assert_eq!(one.quality.to_bits(), other.quality.to_bits());
        assert_eq!((one.tumour, one.filters), (other.tumour, other.filters));
        assert_eq!(has, [turned[1], turned[2], turned[0]]);
    }
}

#[test]
fn which_tumour_comes_first_does_not_show_in_the_order_of_pairs() {
    let kept = |sample: u8, name: &str, id: u64| RecruitedPair {
        sample,
        name: name.into(),
        mates: [0; 2].map(|_| genuma_somatic::packed::OwnedRead { seq: b"ACGT".to_vec(), qual: vec![30; 4] }),
        id,
        contigs: vec![0],
    };
    let names = |first: u8, second: u8| {
        let mut pairs = vec![kept(first, "b", 1), kept(second, "a", 2), kept(0, "z", 3), kept(second, "c", 4)];
        pairs.sort_unstable();
        pairs.into_iter().map(|pair| pair.id).collect::<Vec<u64>>()
    };
    assert_eq!(names(1, 2), [3, 2, 1, 4]);
    assert_eq!(names(2, 1), names(1, 2));
}
