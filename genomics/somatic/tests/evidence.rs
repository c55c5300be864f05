//! Planted reads of both alleles are recruited, placed, compared and genotyped.

use crate::common::planted_reads::{PlantedChange, Planter, hit, recruit, weigh, weigh_all};
use crate::common::{READ, Rng, Sequencer, canonical, contig, edit, other, pair, replaced};
use genuma_align::{CigarKind, CigarOp, Hit};
use genuma_reads::dna::reverse_complement;
use genuma_reads::fasta::{self, Reference};
use genuma_reads::{NORMAL_SAMPLE, TUMOUR_SAMPLE};
use genuma_somatic::adjacent_substitutions::{count_molecules_of_adjacent_substitutions, merge_adjacent_substitutions};
use genuma_somatic::aligned_contig::{AlignedContig, align_contig};
use genuma_somatic::change::Change;
use genuma_somatic::genotype::{Admixture, ErrorFrequency, Filter};
use genuma_somatic::known_variants::KnownVariantFrequencies;
use genuma_somatic::labelled_pair::LabelledPair;
use genuma_somatic::locus::{GenotypingInputs, VariantCall};
use genuma_somatic::sequencing_errors::{BaseErrorCounts, ErrorModel};
use genuma_somatic::slippage::SlippageModel;

/// Plants 11 and 17 pairs of the tumour's two alleles and 21 of the normal, and finds exactly these.
fn counts_what_was_planted(
    locus: &PlantedChange,
    margin: usize,
    normal: std::ops::Range<usize>,
    tumour: std::ops::Range<usize>,
) {
    for seed in 0..10 {
        let mut planter = Planter { rng: Rng(seed), made: 0 };
        let pairs = [
            planter.plant(11, TUMOUR_SAMPLE, &locus.tumour, tumour.clone(), margin),
            planter.plant(17, TUMOUR_SAMPLE, &locus.normal, normal.clone(), margin),
            planter.plant(21, NORMAL_SAMPLE, &locus.normal, normal.clone(), margin),
        ]
        .concat();
        let weighed = weigh(locus, &pairs);
        assert_eq!(weighed.counts(TUMOUR_SAMPLE), (17, 11), "seed {seed}");
        assert_eq!(weighed.counts(NORMAL_SAMPLE), (21, 0), "seed {seed}");
        assert_eq!(weighed.copies(), [0, 0]);
        let judged = weighed.judged();
        assert!(judged.filters.is_empty(), "{:?}", judged.filters);
        assert!(judged.quality > 30.0);
    }
}

#[test]
fn both_alleles_of_a_substitution_are_counted() {
    let mut rng = Rng(51);
    let normal = rng.sequence(2000);
    let base = rng.another(normal[1000]);
    counts_what_was_planted(&PlantedChange::new(normal, 1000, 1, &[base]), 30, 1000..1001, 1000..1001);
}

#[test]
fn both_alleles_of_an_indel_in_a_tandem_repeat_are_counted() {
    for (repeats, unit, shorter) in [(10, &b"CA"[..], true), (10, b"CA", false), (12, b"A", true), (12, b"A", false)] {
        let mut rng = Rng(52);
        let mut normal = rng.sequence(2000);
        let repeat = unit.repeat(repeats);
        let end = 1000 + repeat.len();
        normal[1000..end].copy_from_slice(&repeat);
        (normal[999], normal[end]) = (b'G', b'T');
        let locus = if shorter {
            PlantedChange::new(normal, 1000, unit.len(), b"")
        } else {
            PlantedChange::new(normal, 1000, 0, unit)
        };
        let tumour = 1000..end + locus.added - locus.removed;
        counts_what_was_planted(&locus, 30, 1000..end, tumour);
    }
}

#[test]
fn both_alleles_of_a_tandem_duplication_are_counted() {
    let normal = Rng(53).sequence(2000);
    let copied = normal[1000..1090].to_vec();
    let locus = PlantedChange::new(normal, 1000, 0, &copied);
    // Only a read across the border of the copies, or across the whole single copy, supports an allele.
    counts_what_was_planted(&locus, 20, 1000..1090, 1070..1110);
    // Reads from the flanks into a copy, and from inside a copy, support no allele.
    let mut planter = Planter { rng: Rng(9), made: 0 };
    let silent = [
        planter.plant(10, NORMAL_SAMPLE, &locus.normal, 920..1010, 25),
        planter.plant(10, TUMOUR_SAMPLE, &locus.normal, 1080..1160, 25),
    ]
    .concat();
    let weighed = weigh(&locus, &silent);
    assert_eq!((weighed.counts(NORMAL_SAMPLE).1, weighed.counts(TUMOUR_SAMPLE).1), (0, 0));
}

/// The contig across the junction of two copies of `normal[1500..1500 + len]`, with `flank` bases on each side.
fn duplication_contig(normal: &[u8], tumour: &[u8], len: usize, flank: usize) -> (AlignedContig, Reference) {
    let genome = Reference::from_contigs(vec![fasta::Contig { name: "normal".into(), seq: normal.to_vec() }]);
    let junction = 1500 + len;
    let contig = contig(tumour[junction - flank..junction + flank].to_vec(), &canonical(&[normal]));
    let half = |query: usize, start: usize, primary: bool| Hit {
        ref_end: start + flank,
        query_end: query + flank,
        score: flank as i32,
        alignment_columns: flank,
        matching_bases: flank,
        cigar: vec![CigarOp { kind: CigarKind::Match, len: flank as u32 }],
        ..hit(query, start, primary)
    };
    let hits = [half(0, junction - flank, true), half(flank, 1500, false)];
    let compared = align_contig(&contig, &hits, &genome);
    assert_eq!(compared.changes.len(), 1, "{:?}", compared.changes);
    (compared, genome)
}

#[test]
fn the_fraction_of_a_duplication_is_that_of_its_molecules_whatever_its_length() {
    for (len, flank) in [(30, 140), (70, 140), (110, 140), (150, 140), (180, 140), (260, 140), (400, 140), (900, 140)] {
        for share in [0.1, 0.3] {
            let mut rng = Rng(len as u64);
            let normal = rng.sequence(4000);
            let copied = normal[1500..1500 + len].to_vec();
            let tumour = replaced(&normal, 1500, 0, &copied);
            let (compared, genome) = duplication_contig(&normal, &tumour, len, flank);
            let mut pairs = Vec::new();
            let depths =
                [(NORMAL_SAMPLE, &normal, 0.5), (TUMOUR_SAMPLE, &normal, 1.0 - share), (TUMOUR_SAMPLE, &tumour, share)];
            for (sample, haplotype, part) in depths {
                let depth = (800.0 * part) as usize;
                let rng = Rng(rng.word());
                pairs.extend(Sequencer { rng, sample, depth, error: 0.001 }.pairs(haplotype));
            }
            let weighed = weigh_all(&compared, &genome, &pairs).remove(0);
            let (reference, alternative) = weighed.counts(TUMOUR_SAMPLE);
            let fraction = alternative as f64 / (reference + alternative) as f64;
            assert!((fraction - share).abs() < 0.05, "{len} bp at {share}: {fraction}");
            // About 430 molecules cross an end: no fragment begins in the last bases of the haplotype, so that its middle is deeper.
            let (reference, alternative) = weighed.counts(NORMAL_SAMPLE);
            assert!((300..510).contains(&reference) && alternative == 0, "{len} bp: {reference}, {alternative}");
            let judged = weighed.judged();
            assert!(judged.filters.is_empty(), "{len} bp at {share}: {:?}", judged.filters);
        }
    }
}

#[test]
fn pcr_copies_are_counted_once() {
    let mut rng = Rng(54);
    let normal = rng.sequence(2000);
    let base = rng.another(normal[1000]);
    let locus = PlantedChange::new(normal, 1000, 1, &[base]);
    let mut planter = Planter { rng: Rng(55), made: 0 };
    let mut pairs = planter.plant(5, TUMOUR_SAMPLE, &locus.tumour, 1000..1001, 40);
    pairs.extend(planter.plant(8, NORMAL_SAMPLE, &locus.normal, 1000..1001, 40));
    // Two duplicates of each of the tumour's pairs: one read from the other strand, one with errors at its start.
    let copies: Vec<LabelledPair> = pairs[..5]
        .iter()
        .flat_map(|p| {
            let (mut turned, mut worn) = (p.clone(), p.clone());
            turned.mates.reverse();
            turned.name = [&p.name, &b"turned"[..]].concat().into();
            edit(&mut worn.mates[0], |read| (read.seq[3], read.qual[3]) = (rng.another(read.seq[3]), 8));
            worn.name = [&p.name, &b"worn"[..]].concat().into();
            [turned, worn]
        })
        .collect();
    pairs.extend(copies);
    let weighed = weigh(&locus, &pairs);
    assert_eq!(weighed.counts(TUMOUR_SAMPLE), (0, 5));
    assert_eq!(weighed.counts(NORMAL_SAMPLE), (8, 0));
    assert_eq!(weighed.copies(), [0, 10]);
    assert_eq!(weighed.judged().tumour.copies, 10);
}

#[test]
fn strangers_and_reads_of_another_change_do_not_vote_for_it() {
    let mut rng = Rng(56);
    let normal = rng.sequence(2000);
    let base = rng.another(normal[1000]);
    let other = b"ACGT".iter().copied().find(|&b| b != base && b != normal[1000]).unwrap();
    let locus = PlantedChange::new(normal, 1000, 1, &[base]);
    let third = replaced(&locus.normal, 1000, 1, &[other]);
    let mut planter = Planter { rng: Rng(57), made: 0 };
    let pairs = planter.plant(10, TUMOUR_SAMPLE, &third, 1000..1001, 40);
    let weighed = weigh(&locus, &pairs);
    // A third base supports neither allele.
    assert_eq!(weighed.counts(TUMOUR_SAMPLE), (0, 0));
    // Paralogous sequence: except for the nearest bases, one in six differs.
    let mut strange = locus.tumour.clone();
    for i in (0..strange.len()).step_by(6).filter(|i| !(975..1025).contains(i)) {
        strange[i] = rng.another(strange[i]);
    }
    let weighed = weigh(&locus, &planter.plant(10, TUMOUR_SAMPLE, &strange, 1000..1001, 40));
    assert_eq!(weighed.counts(TUMOUR_SAMPLE), (0, 0));
}

#[test]
fn linked_changes_are_each_judged_by_all_reads_across_them() {
    let mut rng = Rng(58);
    let normal = rng.sequence(2000);
    let places = [970, 985, 1000, 1020];
    let tumour = places.iter().fold(normal.clone(), |seq, &at| replaced(&seq, at, 1, &[rng.another(seq[at])]));
    // A subclone without the last of the changes.
    let subclone = replaced(&tumour, 1020, 1, &normal[1020..1021]);
    let genome = Reference::from_contigs(vec![fasta::Contig { name: "normal".into(), seq: normal.clone() }]);
    let contig = contig(tumour[800..1200].to_vec(), &canonical(&[&normal]));
    let compared = align_contig(&contig, &[hit(0, 800, true), hit(200, 1000, false)], &genome);
    assert_eq!(compared.changes.len(), 4);
    let mut planter = Planter { rng: Rng(59), made: 0 };
    let pairs = [
        planter.plant(20, NORMAL_SAMPLE, &normal, 965..1025, 20),
        planter.plant(9, TUMOUR_SAMPLE, &normal, 965..1025, 20),
        planter.plant(12, TUMOUR_SAMPLE, &tumour, 965..1025, 20),
        planter.plant(7, TUMOUR_SAMPLE, &subclone, 965..1025, 20),
    ]
    .concat();
    for (f, weighed) in weigh_all(&compared, &genome, &pairs).iter().enumerate() {
        let (without, with) = if f == 3 { (16, 12) } else { (9, 19) };
        assert_eq!(
            (weighed.counts(NORMAL_SAMPLE), weighed.counts(TUMOUR_SAMPLE)),
            ((20, 0), (without, with)),
            "change {f}"
        );
        assert_eq!(weighed.judged().filters.len(), 0, "change {f}");
    }
}

/// Planted pairs: number, sample and haplotype.
type Planted<'a> = (usize, u8, &'a [u8]);

/// The calls of a contig of `tumour` after adjacent substitutions are merged.
fn called(normal: &[u8], tumour: &[u8], planted: &[Planted<'_>]) -> Vec<VariantCall> {
    let genome = Reference::from_contigs(vec![fasta::Contig { name: "normal".into(), seq: normal.to_vec() }]);
    let contig = contig(tumour[800..1200].to_vec(), &canonical(&[normal]));
    let compared = align_contig(&contig, &[hit(0, 800, true), hit(200, 1000, false)], &genome);
    let mut planter = Planter { rng: Rng(62), made: 0 };
    let pairs: Vec<LabelledPair> =
        planted.iter().flat_map(|&(n, sample, haplotype)| planter.plant(n, sample, haplotype, 965..1025, 20)).collect();
    let (pairs, locus) = recruit(&compared, &genome, &pairs);
    let mut loci = [locus];
    let errors = ErrorModel::from_error_counts_and_slippage(&BaseErrorCounts::default(), SlippageModel::default());
    let neighbours = count_molecules_of_adjacent_substitutions(0, &loci, &pairs, &errors);
    merge_adjacent_substitutions(&mut loci, neighbours);
    loci[0].genotype_changes(
        0,
        &loci[0].compute_locus_evidence(&loci, &pairs, &errors),
        GenotypingInputs {
            min_quality: 8.0,
            admixture: Admixture::default(),
            known: &KnownVariantFrequencies::default(),
            has_normal: true,
            reference: None,
        },
    )
}

/// Position, length and filters of each call, and the number of calls in phase with it.
fn summarize_calls(calls: &[VariantCall]) -> Vec<(usize, usize, Vec<Filter>, usize)> {
    let tell = |call: &VariantCall| match &call.change {
        Change::Allele { pos, reference, alternative, .. } if reference.len() == alternative.len() => {
            let filters = call.genotype.filters.iter().copied().collect();
            (*pos, reference.len(), filters, call.phased_changes.len())
        }
        other => panic!("{other:?}"),
    };
    calls.iter().map(tell).collect()
}

/// `normal` with other bases at some positions: the same bases for the same positions.
fn changed(normal: &[u8], places: &[usize]) -> Vec<u8> {
    places.iter().fold(normal.to_vec(), |seq, &at| replaced(&seq, at, 1, &[other(normal[at])]))
}

#[test]
fn neighbouring_substitutions_of_the_same_molecules_are_one_change() {
    let normal = Rng(63).sequence(2000);
    for places in [&[1000, 1001][..], &[998, 999, 1000], &[999, 1000, 1001, 1002]] {
        let tumour = changed(&normal, places);
        // One molecule has an error that looks like the first change.
        let misread = changed(&normal, &places[..1]);
        let planted = [
            (20, NORMAL_SAMPLE, &normal[..]),
            (9, TUMOUR_SAMPLE, &normal),
            (12, TUMOUR_SAMPLE, &tumour),
            (1, TUMOUR_SAMPLE, &misread),
        ];
        let calls = called(&normal, &tumour, &planted);
        assert_eq!(summarize_calls(&calls), [(places[0], places.len(), vec![], 0)]);
        let support = calls[0].genotype.tumour;
        assert!(matches!((support.reference, support.alternative), (9 | 10, 12)), "{support:?}");
        let (at, end) = (places[0], places[places.len() - 1] + 1);
        let (reference, alternative) = (normal[at..end].to_vec(), tumour[at..end].to_vec());
        assert_eq!(calls[0].change, Change::Allele { chrom: 0, pos: at, reference, alternative });
    }
}

#[test]
fn substitutions_that_part_company_stay_apart() {
    let normal = Rng(64).sequence(2000);
    let both = changed(&normal, &[1000, 1001]);
    let [first, second] = [1000, 1001].map(|at| changed(&normal, &[at]));
    // The second change is germline.
    let germline = [
        (10, NORMAL_SAMPLE, &normal[..]),
        (10, NORMAL_SAMPLE, &second),
        (9, TUMOUR_SAMPLE, &normal),
        (9, TUMOUR_SAMPLE, &second),
        (12, TUMOUR_SAMPLE, &both),
    ];
    let calls = called(&normal, &both, &germline);
    let told_of = summarize_calls(&calls);
    assert_eq!(told_of[0], (1000, 1, vec![], 0));
    assert!(told_of[1].0 == 1001 && told_of[1].2.contains(&Filter::Germline), "{told_of:?}");
    assert_eq!((calls[0].genotype.tumour.reference, calls[0].genotype.tumour.alternative), (18, 12));
    // A subclone has the second change only.
    let later = [
        (20, NORMAL_SAMPLE, &normal[..]),
        (9, TUMOUR_SAMPLE, &normal),
        (14, TUMOUR_SAMPLE, &first),
        (12, TUMOUR_SAMPLE, &both),
    ];
    assert_eq!(summarize_calls(&called(&normal, &both, &later)), [(1000, 1, vec![], 1), (1001, 1, vec![], 0)]);
    // An unchanged base is between them.
    let split = changed(&normal, &[1000, 1002]);
    let planted = [(20, NORMAL_SAMPLE, &normal[..]), (9, TUMOUR_SAMPLE, &normal), (12, TUMOUR_SAMPLE, &split)];
    assert_eq!(summarize_calls(&called(&normal, &split, &planted)), [(1000, 1, vec![], 1), (1002, 1, vec![], 0)]);
    // Three adjacent substitutions; the first arose before the others.
    let three = changed(&normal, &[999, 1000, 1001]);
    let older = changed(&normal, &[999]);
    let planted = [
        (20, NORMAL_SAMPLE, &normal[..]),
        (9, TUMOUR_SAMPLE, &normal),
        (9, TUMOUR_SAMPLE, &older),
        (12, TUMOUR_SAMPLE, &three),
    ];
    assert_eq!(summarize_calls(&called(&normal, &three, &planted)), [(999, 1, vec![], 1), (1000, 2, vec![], 0)]);
}

#[test]
fn changes_are_in_phase_when_molecules_have_both() {
    let normal = Rng(65).sequence(2000);
    let both = changed(&normal, &[975, 1015]);
    let [first, second] = [975, 1015].map(|at| changed(&normal, &[at]));
    let noted = |tumour: &[Planted<'_>]| {
        let planted = [&[(20, NORMAL_SAMPLE, &normal[..]), (9, TUMOUR_SAMPLE, &normal)], tumour].concat();
        let calls = called(&normal, &both, &planted);
        let told = summarize_calls(&calls);
        assert!(told.len() == 2 && told.iter().all(|t| t.2.is_empty()), "{told:?}");
        assert!(calls[0].phased_changes.iter().all(|c| *c == calls[1].change) && calls[1].phased_changes.is_empty());
        calls[0].phased_changes.len()
    };
    assert_eq!(noted(&[(12, TUMOUR_SAMPLE, &both)]), 1);
    // One of the changes is in a subclone, or missed in some molecules.
    assert_eq!(noted(&[(8, TUMOUR_SAMPLE, &both), (14, TUMOUR_SAMPLE, &second)]), 1);
    assert_eq!(noted(&[(8, TUMOUR_SAMPLE, &both), (3, TUMOUR_SAMPLE, &first), (4, TUMOUR_SAMPLE, &second)]), 1);
    // Few molecules have both: chimeras of two haplotypes.
    assert_eq!(noted(&[(2, TUMOUR_SAMPLE, &both), (12, TUMOUR_SAMPLE, &first), (14, TUMOUR_SAMPLE, &second)]), 0);
    assert_eq!(noted(&[(1, TUMOUR_SAMPLE, &both), (12, TUMOUR_SAMPLE, &first), (14, TUMOUR_SAMPLE, &second)]), 0);
}

#[test]
fn what_sequencers_hardly_make_needs_fewer_molecules() {
    let kind = |removed: usize, added: &[u8]| {
        let place = PlantedChange::new(Rng(60).sequence(2000), 1000, removed, added);
        let mut planter = Planter { rng: Rng(61), made: 0 };
        weigh(&place, &planter.plant(5, NORMAL_SAMPLE, &place.normal, 1000..1010, 40)).kind
    };
    let normal = Rng(60).sequence(2000);
    assert_eq!(kind(1, &[Rng(62).another(normal[1000])]), ErrorFrequency::Common);
    assert_eq!(kind(8, b""), ErrorFrequency::Rare);
    assert_eq!(kind(0, &Rng(63).sequence(12)), ErrorFrequency::Rare);
    let mut run = Rng(64).sequence(2000);
    run[1000..1010].fill(b'A');
    let place = PlantedChange::new(run, 1000, 1, b"");
    assert_eq!(weigh(&place, &[]).kind, ErrorFrequency::Common);
}

#[test]
fn a_place_of_extreme_depth_is_thinned_alike_whatever_the_order_of_reads() {
    let mut rng = Rng(65);
    let normal = rng.sequence(2000);
    let base = rng.another(normal[1000]);
    let place = PlantedChange::new(normal, 1000, 1, &[base]);
    let compared = place.compared();
    let planted = |n: usize, prefix: &str| -> Vec<LabelledPair> {
        (0..n)
            .map(|i| {
                let haplotype = if i % 4 == 0 { &place.tumour } else { &place.normal };
                // Fragments of many lengths and all starts: each pair is a separate molecule.
                let (from, insert) = (880 + i % 100, 300 + i / 100 % 200);
                let fragment = &haplotype[from..from + insert];
                let mates = [fragment[..READ].to_vec(), reverse_complement(&fragment[insert - READ..])];
                pair(&format!("{prefix}{i}"), TUMOUR_SAMPLE, mates)
            })
            .collect()
    };
    // At a usual depth all pairs are kept.
    let few = planted(1000, "a");
    let (kept, locus) = recruit(&compared, &place.genome(), &few);
    assert_eq!((kept.len(), locus.downsampling_factors), (1000, [1, 1]));

    let mut many = planted(20_000, "b");
    let (kept, locus) = recruit(&compared, &place.genome(), &many);
    let one_in = locus.downsampling_factors;
    assert!(one_in[0] == 1 && one_in[1] > 1, "{one_in:?}");
    let expected = 20_000 / one_in[1] as usize;
    assert!(kept.len().abs_diff(expected) < expected / 10, "{}", kept.len());
    let with = kept.iter().filter(|p| {
        let i: usize = std::str::from_utf8(&p.name[1..]).unwrap().parse().unwrap();
        i.is_multiple_of(4)
    });
    assert!(with.count().abs_diff(expected / 4) < expected / 20, "both alleles are thinned alike");
    for seed in 0..3 {
        Rng(seed).shuffle(&mut many);
        let again = recruit(&compared, &place.genome(), &many);
        assert!(again == (kept.clone(), locus.clone()), "order {seed}");
    }
}

#[test]
fn slips_are_learned_from_the_normals_repeats() {
    let mut rng = Rng(70);
    let mut normal = rng.sequence(2000);
    normal[1030..1042].fill(b'A');
    (normal[1029], normal[1042]) = (b'G', b'C');
    let slipped = replaced(&normal, 1030, 1, b"");
    let base = rng.another(normal[1000]);
    let place = PlantedChange::new(normal, 1000, 1, &[base]);
    let learned = |slips: usize| {
        let mut planter = Planter { rng: Rng(71), made: 0 };
        let pairs = [
            planter.plant(40, NORMAL_SAMPLE, &place.normal, 1000..1042, 20),
            planter.plant(slips, NORMAL_SAMPLE, &slipped, 1000..1041, 20),
            planter.plant(20, TUMOUR_SAMPLE, &slipped, 1000..1041, 20),
        ]
        .concat();
        let (pairs, locus) = recruit(&place.compared(), &place.genome(), &pairs);
        SlippageModel::estimate_slippage_rates(&locus.count_base_and_length_errors(&pairs, None, true).1)
            .probability_of_shown_length(1, 12, 11)
    };
    // The tumour's length may be a change; a length in too many of the normal's reads is an allele.
    assert!(learned(0) < 0.01, "{}", learned(0));
    assert!(learned(2) > learned(0) + 0.005, "{}", learned(2));
    assert!(learned(12) < 0.01, "{}", learned(12));
}

#[test]
fn kmers_of_other_places_recruit_nothing() {
    // Next to the change is sequence that the genome has twice, as in a repeat.
    let mut rng = Rng(66);
    let copy = rng.sequence(400);
    let normal = [rng.sequence(800), copy.clone(), rng.sequence(800), copy, rng.sequence(600)].concat();
    let base = rng.another(normal[1210]);
    let place = PlantedChange::new(normal, 1210, 1, &[base]);
    let mut planter = Planter { rng: Rng(67), made: 0 };
    let own = planter.plant(20, NORMAL_SAMPLE, &place.normal, 1200..1220, 10);
    let others = planter.plant(20, NORMAL_SAMPLE, &place.normal, 2340..2390, 5);
    let (kept, _) = recruit(&place.compared(), &place.genome(), &[own.clone(), others].concat());
    let names = |mut names: Vec<Vec<u8>>| -> Vec<Vec<u8>> {
        names.sort();
        names
    };
    let kept = kept.iter().map(|p| p.name.clone()).collect();
    assert_eq!(names(kept), names(own.iter().map(|p| p.name.to_vec()).collect()));
}
