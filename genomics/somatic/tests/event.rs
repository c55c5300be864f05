//! Tests that genotyped changes become events: copies are merged and two-sided events paired, whatever the order of
//! the calls.

use crate::common::Rng;
use genuma_reads::TrimCounts;
use genuma_reads::fasta::{Contig, Reference};
use genuma_somatic::change::{Breakend, Change, RetainedSide};
use genuma_somatic::event::{CallThresholds, Event, EventClass, build_events};
use genuma_somatic::genotype::{
    AlleleSupport, ErrorFrequency, Filter, GenotypingResult, MIN_CALL_MOLECULES_COMMON_ERROR,
    MIN_CALL_MOLECULES_RARE_ERROR, QualityLimits,
};
use genuma_somatic::known_variants::PopulationFrequency;
use genuma_somatic::locus::VariantCall;

const L: RetainedSide = RetainedSide::Left;
const R: RetainedSide = RetainedSide::Right;

const CLEAN: CallThresholds = CallThresholds {
    has_fold_back_artefacts: false,
    known_bases: 0,
    has_unknown_duplicates: false,
    may_raise_quality: false,
    normal_has_tumour_cells: false,
    min_quality: 8.0,
    min_molecules: 3,
};
const FOLDING: CallThresholds = CallThresholds { has_fold_back_artefacts: true, ..CLEAN };

/// Two sequences of unknown bases.
fn genome() -> Reference {
    let contig = |name: &str| Contig { name: name.into(), seq: vec![b'N'; 100_000] };
    Reference::from_contigs(vec![contig("chr1"), contig("chr2")])
}

fn call(change: Change, locus: usize, quality: f64) -> VariantCall {
    let genotype = GenotypingResult { quality, ..GenotypingResult::default() };
    VariantCall {
        change,
        error_frequency: ErrorFrequency::Common,
        genotype,
        population_frequency: PopulationFrequency::NoKnownVariants,
        panel_normals: None,
        is_fold_back: false,
        locus,
        change_index: 0,
        supporting_pairs: Vec::new(),
        phased_changes: Vec::new(),
    }
}

/// A call with `alternative` of `molecules` molecules, of a change that sequencing errors hardly make.
fn rare(change: Change, alternative: u32, molecules: u32) -> VariantCall {
    let mut call = VariantCall { error_frequency: ErrorFrequency::Rare, ..call(change, 0, 50.0) };
    call.genotype.tumour = AlleleSupport {
        alternative,
        reference: molecules - alternative,
        forward: alternative / 2,
        ..Default::default()
    };
    call
}

fn end((chrom, pos, side): (usize, usize, RetainedSide)) -> Breakend {
    Breakend { chrom, pos, side }
}

fn junction(a: (usize, usize, RetainedSide), b: (usize, usize, RetainedSide)) -> Change {
    let mut ends = [end(a), end(b)];
    ends.sort();
    Change::Junction { ends, inserted: Vec::new(), homology: 0 }
}

fn novel(at: (usize, usize, RetainedSide)) -> Change {
    Change::Novel { end: end(at), sequence: b"ACGTTGCA".repeat(8) }
}

fn allele(pos: usize, reference: &[u8], alternative: &[u8]) -> Change {
    Change::Allele { chrom: 0, pos, reference: reference.to_vec(), alternative: alternative.to_vec() }
}

/// Class and changes of each event. Asserts that the order of the changes does not matter.
fn events_of_changes(changes: &[Change]) -> Vec<(EventClass, Vec<Change>)> {
    let run = |calls: Vec<VariantCall>| -> Vec<(EventClass, Vec<Change>)> {
        let found = build_events(calls, &CLEAN, &genome());
        found.into_iter().map(|e| (e.class, e.calls.into_iter().map(|c| c.change).collect())).collect()
    };
    let calls: Vec<VariantCall> = changes.iter().enumerate().map(|(i, c)| call(c.clone(), i, 50.0)).collect();
    let expected = run(calls.clone());
    for seed in 0..20 {
        let mut shuffled = calls.clone();
        Rng(seed).shuffle(&mut shuffled);
        assert_eq!(run(shuffled), expected, "order {seed}");
    }
    expected
}

fn classes(changes: &[Change]) -> Vec<(EventClass, usize)> {
    events_of_changes(changes).into_iter().map(|(class, calls)| (class, calls.len())).collect()
}

#[test]
fn lone_changes_are_classed_by_size_and_sides() {
    let class = |change: Change| classes(&[change])[0];
    assert_eq!(class(allele(5, b"A", b"C")), (EventClass::Snv, 1));
    assert_eq!(class(allele(5, b"AC", b"GT")), (EventClass::Mnv, 1));
    assert_eq!(class(allele(5, &[b'A'; 50], b"A")), (EventClass::Indel, 1));
    assert_eq!(class(allele(5, &[b'A'; 51], b"A")), (EventClass::Del, 1));
    assert_eq!(class(allele(5, b"A", &[b'A'; 50])), (EventClass::Indel, 1));
    assert_eq!(class(allele(5, b"A", &[b'A'; 51])), (EventClass::Ins, 1));
    assert_eq!(class(junction((0, 100, L), (0, 5000, R))), (EventClass::Del, 1));
    assert_eq!(class(junction((0, 100, R), (0, 5000, L))), (EventClass::Dup, 1));
    assert_eq!(class(junction((0, 100, L), (0, 5000, L))), (EventClass::Bnd, 1));
    assert_eq!(class(junction((0, 100, R), (0, 5000, R))), (EventClass::Bnd, 1));
    assert_eq!(class(junction((0, 100, L), (1, 100, R))), (EventClass::Bnd, 1));
    assert_eq!(class(novel((0, 100, L))), (EventClass::Ins, 1));
}

#[test]
fn copies_of_a_call_are_one_and_the_best_stays() {
    let snv = allele(500, b"A", b"C");
    let mut poor = call(snv.clone(), 0, 400.0);
    poor.genotype.filters.insert(Filter::Repeat);
    let calls = [call(snv.clone(), 1, 30.0), poor, call(snv.clone(), 2, 60.0), call(snv, 3, 45.0)];
    for seed in 0..10 {
        let mut shuffled = calls.to_vec();
        Rng(seed).shuffle(&mut shuffled);
        let found = build_events(shuffled, &CLEAN, &genome());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].calls.len(), found[0].calls[0].locus), (1, 2));
    }
    // A contig with few of the molecules does not show why the call of another contig is filtered.
    let with_molecules = |mut call: VariantCall, reference| {
        call.genotype.normal.reference = reference;
        call
    };
    for (molecules, passes) in [(8, false), (28, true)] {
        let of_short_contig = with_molecules(calls[0].clone(), molecules);
        let found = build_events(vec![of_short_contig, with_molecules(calls[1].clone(), 30)], &CLEAN, &genome());
        assert_eq!((found.len(), found[0].calls[0].genotype.filters.is_empty()), (1, passes));
    }
    // Another allele at the same position is another event.
    assert_eq!(classes(&[allele(500, b"A", b"C"), allele(500, b"A", b"G")]).len(), 2);
}

#[test]
fn junctions_nearly_the_same_are_one() {
    let at = |shift: usize| junction((0, 100 + shift, L), (0, 5000 + shift, R));
    assert_eq!(classes(&[at(0), at(9)]), [(EventClass::Del, 1)]);
    assert_eq!(classes(&[at(0), at(40)]).len(), 2);
    // Near, but with other sides: a tandem duplication is no deletion.
    let both = classes(&[at(0), junction((0, 100, R), (0, 5000, L))]);
    assert_eq!(both.iter().map(|e| e.1).sum::<usize>(), 2);
    assert_eq!(classes(&[novel((0, 100, L)), novel((0, 104, L))]), [(EventClass::Ins, 1)]);
}

#[test]
fn both_junctions_of_an_inversion_are_one_event() {
    let inversion = [junction((0, 999, L), (0, 4999, L)), junction((0, 1000, R), (0, 5000, R))];
    assert_eq!(classes(&inversion), [(EventClass::Inv, 2)]);
    // With some bases lost or copied at the ends.
    assert_eq!(
        classes(&[junction((0, 990, L), (0, 5020, L)), junction((0, 1010, R), (0, 5003, R))]),
        [(EventClass::Inv, 2)]
    );
    // One common end is not enough.
    let other = [junction((0, 999, L), (0, 4999, L)), junction((0, 1000, R), (0, 9000, R))];
    assert!(classes(&other).iter().all(|e| e.0 != EventClass::Inv));
    let far = [junction((0, 999, L), (0, 4999, L)), junction((0, 1200, R), (0, 5200, R))];
    assert_eq!(classes(&far), [(EventClass::Bnd, 1), (EventClass::Bnd, 1)]);
}

#[test]
fn two_inversions_that_begin_beside_each_other_are_apart() {
    let inversion = |a: usize, b: usize| [junction((0, a, L), (0, b, L)), junction((0, a + 1, R), (0, b + 1, R))];
    let both = [inversion(1000, 5000), inversion(1012, 90_000)].concat();
    assert_eq!(classes(&both), [(EventClass::Inv, 2), (EventClass::Inv, 2)]);
}

#[test]
fn a_dispersed_copy_is_one_event() {
    // chr1:3000-4000 copied to chr0:1000, in either orientation, and within one chromosome.
    let forward = [junction((0, 999, L), (1, 3000, R)), junction((0, 1000, R), (1, 3999, L))];
    let reverse = [junction((0, 999, L), (1, 3999, L)), junction((0, 1000, R), (1, 3000, R))];
    let within = [junction((0, 999, L), (0, 30_000, R)), junction((0, 1000, R), (0, 30_999, L))];
    for copy in [forward, reverse, within] {
        assert_eq!(classes(&copy), [(EventClass::Bnd, 2)], "{copy:?}");
    }
}

#[test]
fn both_junctions_of_an_inserted_element_are_one_event() {
    let element = [junction((0, 5014, L), (1, 20_000, R)), junction((0, 5000, R), (1, 22_999, L))];
    assert_eq!(classes(&element), [(EventClass::Ins, 2)]);
    // A translocation breaks the genome beside the copy from which the element comes.
    let beside = junction((0, 70_000, R), (1, 19_993, L));
    let both = [element.to_vec(), vec![beside]].concat();
    assert_eq!(classes(&both), [(EventClass::Ins, 2), (EventClass::Bnd, 1)]);
    // Without target-site duplication both junctions have one common end.
    let other = [junction((0, 4999, L), (1, 20_000, R)), junction((0, 5000, R), (1, 22_999, L))];
    assert_eq!(classes(&other), [(EventClass::Bnd, 2)]);
}

#[test]
fn a_reciprocal_translocation_is_one_event() {
    let same_way = [junction((0, 999, L), (1, 5000, R)), junction((0, 1000, R), (1, 4999, L))];
    let turned = [junction((0, 999, L), (1, 4999, L)), junction((0, 1000, R), (1, 5000, R))];
    for event in [same_way, turned] {
        assert_eq!(classes(&event), [(EventClass::Bnd, 2)], "{event:?}");
    }
}

#[test]
fn the_two_sides_of_a_long_insertion_are_one_event() {
    assert_eq!(classes(&[novel((0, 999, L)), novel((0, 1000, R))]), [(EventClass::Ins, 2)]);
    assert_eq!(classes(&[novel((0, 999, L)), novel((0, 1200, R))]), [(EventClass::Ins, 1), (EventClass::Ins, 1)]);
    assert_eq!(classes(&[novel((0, 999, L)), novel((1, 1000, R))]), [(EventClass::Ins, 1), (EventClass::Ins, 1)]);
}

#[test]
fn unrelated_junctions_stay_apart() {
    let apart = [
        junction((0, 1000, L), (1, 5000, R)),
        junction((0, 2000, R), (1, 9000, L)),
        junction((0, 30_000, L), (0, 31_000, R)),
        junction((0, 40_000, R), (0, 41_000, L)),
        junction((1, 20_000, L), (1, 21_000, L)),
    ];
    assert!(classes(&apart).iter().all(|e| e.1 == 1));
    assert_eq!(classes(&apart).len(), 5);
}

#[test]
fn events_come_by_position_and_nothing_is_lost() {
    let mut changes = vec![
        allele(77_000, b"A", b"C"),
        allele(12, b"A", b"C"),
        junction((0, 999, L), (0, 4999, L)),
        junction((0, 1000, R), (0, 5000, R)),
        junction((0, 60_000, L), (1, 3000, R)),
        novel((1, 10, L)),
    ];
    let found = events_of_changes(&changes);
    let place = |change: &Change| genuma_somatic::change::change_sort_position(change);
    assert!(found.is_sorted_by_key(|(_, calls)| place(&calls[0])));
    let mut back: Vec<Change> = found.into_iter().flat_map(|e| e.1).collect();
    back.sort();
    changes.sort();
    assert_eq!(back, changes);
}

fn reasons(calls: &[VariantCall], library: &CallThresholds) -> Vec<Vec<Filter>> {
    let found = build_events(calls.to_vec(), library, &genome());
    found.iter().flat_map(|e| &e.calls).map(|c| c.genotype.filters.iter().copied().collect()).collect()
}

#[test]
fn seldom_turns_nearby_are_doubted_in_a_library_that_folds() {
    let turned = |alternative| rare(junction((0, 1000, L), (0, 1300, L)), alternative, 80);
    let jumped = |alternative| rare(junction((0, 1000, L), (0, 1300, R)), alternative, 80);
    for few in [turned(3), jumped(3), rare(novel((0, 1000, L)), 3, 80)] {
        assert_eq!(reasons(std::slice::from_ref(&few), &FOLDING), [[Filter::FoldBack]], "{few:?}");
        assert_eq!(reasons(&[few], &CLEAN), [[]]);
    }
    // Few of many molecules fold back, and their junctions are local.
    for sound in [
        turned(40),
        jumped(40),
        rare(junction((0, 1000, L), (0, 90_000, L)), 3, 80),
        rare(junction((0, 1000, L), (1, 1000, L)), 3, 80),
        rare(allele(1000, b"ACGT", b"A"), 3, 80),
    ] {
        assert_eq!(reasons(std::slice::from_ref(&sound), &FOLDING), [[]], "{sound:?}");
    }
}

#[test]
fn rare_junctions_at_hairpins_are_filtered_in_any_library() {
    let hairpin = |stem, alternative| {
        let ends = [(0, 1000, L), (0, 1030, L)].map(end);
        rare(Change::Junction { ends, inserted: Vec::new(), homology: stem }, alternative, 300)
    };
    assert_eq!(reasons(&[hairpin(8, 4)], &CLEAN), [[Filter::FoldBack]]);
    for sound in [hairpin(2, 4), hairpin(8, 40)] {
        assert_eq!(reasons(std::slice::from_ref(&sound), &CLEAN), [[]], "{sound:?}");
    }
}

#[test]
fn turns_of_one_strand_are_doubted_in_a_library_that_folds() {
    let turned = |forward| {
        let mut call = rare(junction((0, 1000, L), (0, 1300, L)), 20, 40);
        call.genotype.tumour.forward = forward;
        call
    };
    for one_strand in [turned(0), turned(20)] {
        assert_eq!(reasons(std::slice::from_ref(&one_strand), &FOLDING), [[Filter::FoldBack]]);
        assert_eq!(reasons(&[one_strand], &CLEAN), [[]]);
    }
    assert_eq!(reasons(&[turned(4)], &FOLDING), [[]]);
}

#[test]
fn mutations_of_a_frequently_mutated_tumour_outweigh_germline_variants_where_the_normal_has_tumour_cells() {
    let library = |normal_has_tumour_cells| CallThresholds { known_bases: 60_000, normal_has_tumour_cells, ..CLEAN };
    let qualities = |thresholds: &CallThresholds| -> Vec<bool> {
        let mut calls: Vec<VariantCall> = (0..40).map(|i| call(allele(1000 + 100 * i, b"A", b"C"), 0, 60.0)).collect();
        // The normal excludes a germline variant hardly; other causes are excluded for the first of these calls only.
        for (i, against_error) in [9.0, 1.2].into_iter().enumerate() {
            let mut doubtful = call(allele(100 + 100 * i, b"A", b"C"), 0, 5.0);
            doubtful.genotype.limits.against_error = against_error;
            doubtful.genotype.filters.insert(Filter::LowQuality);
            calls.push(doubtful);
        }
        build_events(calls, thresholds, &genome())
            .iter()
            .take(2)
            .map(|e| e.calls[0].genotype.filters.is_empty())
            .collect()
    };
    assert_eq!(qualities(&library(true)), [true, false]);
    assert_eq!(qualities(&library(false)), [false, false]);
}

#[test]
fn frequent_mutations_raise_negative_log_odds_where_the_error_rate_is_measured() {
    let library = |may_raise_quality| CallThresholds { known_bases: 60_000, may_raise_quality, ..CLEAN };
    let passes = |thresholds: &CallThresholds, num_clear_calls: usize, against_error: f64| {
        let mut calls: Vec<VariantCall> =
            (0..num_clear_calls).map(|i| call(allele(1000 + 100 * i, b"A", b"C"), 0, 60.0)).collect();
        let mut doubtful = call(allele(100, b"A", b"C"), 0, 0.0);
        doubtful.genotype.limits.against_error = against_error;
        doubtful.genotype.filters.insert(Filter::LowQuality);
        calls.push(doubtful);
        build_events(calls, thresholds, &genome())[0].calls[0].genotype.filters.is_empty()
    };
    assert!(passes(&library(true), 40, -0.5));
    assert!(!passes(&library(true), 40, -5.0));
    assert!(!passes(&library(true), 1, -0.5));
    assert!(!passes(&library(false), 40, -0.5));
}

#[test]
fn a_hairpin_is_told_by_its_sequence_wherever_its_arms_lie() {
    let far =
        |turns_back| VariantCall { is_fold_back: turns_back, ..rare(junction((0, 1000, L), (1, 77_000, L)), 3, 80) };
    assert_eq!(reasons(&[far(true)], &FOLDING), [[Filter::FoldBack]]);
    assert_eq!(reasons(&[far(false)], &FOLDING), [[]]);
    assert_eq!(reasons(&[far(true)], &CLEAN), [[]]);
}

#[test]
fn the_two_junctions_of_an_inversion_bear_each_other_out() {
    let two = |alternative| {
        [
            rare(junction((0, 999, L), (0, 1399, L)), alternative, 30),
            rare(junction((0, 1000, R), (0, 1400, R)), alternative, 30),
        ]
    };
    let found: Vec<Event> = build_events(two(6).to_vec(), &FOLDING, &genome());
    assert_eq!((found.len(), found[0].class), (1, EventClass::Inv));
    assert!(found[0].calls.iter().all(|c| c.genotype.filters.is_empty()));
    // One such junction alone is filtered, and so are two if they are as rare as artefacts.
    assert_eq!(reasons(&two(6)[..1], &FOLDING), [[Filter::FoldBack]]);
    assert_eq!(reasons(&two(3), &FOLDING), [[Filter::FoldBack], [Filter::FoldBack]]);
}

#[test]
fn a_library_folds_when_its_reads_do() {
    let library_of = |folded, fold_back_turns| {
        CallThresholds::from_trim_counts(
            &TrimCounts { pairs: 100_000, fold_back_mates: folded, fold_back_turns, ..TrimCounts::default() },
            0,
            8.0,
        )
    };
    let library = |folded| library_of(folded, [u64::MAX; 16]);
    assert_eq!(library(0), CLEAN);
    assert_eq!(library(20), CLEAN);
    assert_eq!(library(8_000), FOLDING);
    // All of them turn back at four hairpins of the genome.
    let hairpins: [u64; 16] = std::array::from_fn(|word| u64::from(word % 4 == 0));
    assert_eq!(library_of(8_000, hairpins), CLEAN);
    assert_eq!(CallThresholds::from_trim_counts(&TrimCounts::default(), 0, 8.0), CLEAN);
}

#[test]
fn changes_of_two_molecules_are_believed_while_they_are_few() {
    let (few, enough) = (MIN_CALL_MOLECULES_RARE_ERROR as u32, MIN_CALL_MOLECULES_COMMON_ERROR as u32);
    assert!(few < enough);
    let calls = |seldom: usize, sure: usize| -> Vec<VariantCall> {
        let deletion = |i: usize| allele(1000 * i, b"ACGT", b"A");
        let of = |range: std::ops::Range<usize>, n| range.map(move |i| rare(deletion(i), n, 20));
        of(0..seldom, few).chain(of(seldom..seldom + sure, enough + 5)).collect()
    };
    let doubted_in = |seldom, sure, library: &CallThresholds| {
        let all = reasons(&calls(seldom, sure), library);
        assert!(all[seldom..].iter().all(Vec::is_empty));
        all[..seldom].iter().filter(|f| **f == [Filter::FewReads]).count()
    };
    let doubted = |seldom, sure| doubted_in(seldom, sure, &CLEAN);
    assert_eq!(doubted(1, 50), 0);
    assert_eq!(doubted(50, 50), 50);
    assert_eq!(doubted(1, 0), 1);
    // Where errors are measured to be rare, small changes of two molecules pass, but junctions do not.
    let consensus = CallThresholds { min_molecules: MIN_CALL_MOLECULES_RARE_ERROR, ..CLEAN };
    assert_eq!(doubted_in(50, 50, &consensus), 0);
    let far = rare(junction((0, 1000, L), (1, 77_000, L)), few, 20);
    assert_eq!(reasons(&[far], &consensus), [[Filter::FewReads]]);
}

/// Position of each event, and of the first event of its phase set.
fn phased(calls: Vec<VariantCall>) -> Vec<(usize, Option<usize>)> {
    let at = |e: &Event| match e.calls[0].change {
        Change::Allele { pos, .. } => pos,
        _ => panic!("{e:?}"),
    };
    build_events(calls, &CLEAN, &genome()).iter().map(|e| (at(e), e.phase_set)).collect()
}

#[test]
fn what_is_in_phase_is_a_set() {
    let change = |pos: usize| allele(pos, b"A", b"C");
    let found = |pos: usize, locus: usize, quality: f64, in_phase: &[usize]| {
        let in_phase = in_phase.iter().map(|&pos| change(pos)).collect();
        VariantCall { phased_changes: in_phase, ..call(change(pos), locus, quality) }
    };
    let calls = vec![
        // The second contig shows the second change better, and a change beyond it. Both contigs together make the
        // set.
        found(300, 0, 50.0, &[420]),
        found(420, 0, 50.0, &[]),
        found(420, 1, 90.0, &[500, 510]),
        found(500, 1, 90.0, &[]),
        found(510, 1, 90.0, &[]),
        // It is between them, but may be on the other haplotype.
        found(430, 2, 90.0, &[]),
        found(900, 3, 90.0, &[920]),
        found(920, 3, 90.0, &[]),
    ];
    let one = |pos| (pos, Some(300));
    let other = [(900, Some(900)), (920, Some(900))];
    let sets = [one(300), one(420), (430, None), one(500), one(510), other[0], other[1]];
    for seed in 0..20 {
        let mut shuffled = calls.clone();
        Rng(seed).shuffle(&mut shuffled);
        assert_eq!(phased(shuffled), sets, "order {seed}");
    }
    // An event that fails a filter is in no set and joins no sets.
    let mut failed = calls;
    for call in failed.iter_mut().filter(|c| c.change == change(420)) {
        call.genotype.filters.insert(Filter::Germline);
    }
    let alone = [300, 420, 430, 500, 510].map(|pos| (pos, None));
    assert_eq!(phased(failed), [&alone[..], &other].concat());
    // A set never spans two sequences.
    let there = Change::Allele { chrom: 1, pos: 100, reference: b"A".to_vec(), alternative: b"C".to_vec() };
    let here = VariantCall { phased_changes: vec![there.clone()], ..call(change(100), 0, 50.0) };
    assert_eq!(phased(vec![here, call(there, 0, 50.0)]), [(100, None), (100, None)]);
}

/// Where mutations are rarer than the prior assumes, errors and germline variants are more likely, but the odds of
/// alleles that normal and tumour share are learned from the same sample already.
#[test]
fn rare_mutations_lower_only_the_quality_against_errors_and_germline_variants() {
    // Natural-log units; the quality is their minimum, Phred-scaled.
    let limited = |number: usize, against_error: f64, against_germline: f64, against_shared: f64| {
        let quality = 4.34 * against_error.min(against_germline).min(against_shared);
        let mut call = call(allele(100 + 100 * number, b"A", b"C"), number, quality);
        call.genotype.limits = QualityLimits { against_error, against_germline, against_shared };
        call
    };
    let certain = (3..23).map(|number| limited(number, 25.0, 25.0, 20.0));
    let calls: Vec<VariantCall> =
        [limited(0, 25.0, 25.0, 5.0), limited(1, 5.0, 25.0, 20.0), limited(2, 25.0, 5.0, 20.0)]
            .into_iter()
            .chain(certain)
            .collect();
    // 23 mutations where the prior assumes 1,670.
    let thresholds = CallThresholds { known_bases: 100_000_000, ..CLEAN };
    let events = build_events(calls, &thresholds, &genome());
    let passed: Vec<usize> = events
        .iter()
        .flat_map(|event| &event.calls)
        .filter(|c| c.genotype.filters.is_empty())
        .map(|c| c.locus)
        .collect();
    assert_eq!(passed, [vec![0], (3..23).collect()].concat());
}
