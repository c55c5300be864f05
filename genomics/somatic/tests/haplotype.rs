//! The haplotypes that reads are compared with: all changes, none, each alone, and a rival's.

use std::collections::BTreeSet;

use crate::common::Rng;
use genuma_somatic::aligned_contig::{AlignedContig, ContigChange};
use genuma_somatic::change::{Breakend, Change, RetainedSide};
use genuma_somatic::evidence::LocusEvidence;
use genuma_somatic::haplotype::{Haplotype, haplotype_of_rival_contig, haplotypes_of_contig};
use genuma_somatic::locus::{Locus, find_and_set_rival_contigs};
use genuma_somatic::packed::OwnedRead;
use genuma_somatic::read_placement::PlacedRead;
use genuma_somatic::recruit::RecruitedPair;
use genuma_somatic::sequencing_errors::{BaseErrorCounts, ErrorModel};
use genuma_somatic::slippage::SlippageModel;

/// One small change: position in the normal sequence, number of removed bases, added bases.
type Edit<'a> = (usize, usize, &'a [u8]);

/// The normal sequence with some edits, sorted by position, and the range of each edit in the result.
fn edited(normal: &[u8], edits: &[Edit]) -> (Vec<u8>, Vec<std::ops::Range<usize>>) {
    let (mut seq, mut at, mut ranges) = (Vec::new(), 0, Vec::new());
    for &(pos, removed, added) in edits {
        seq.extend_from_slice(&normal[at..pos]);
        ranges.push(seq.len()..seq.len() + added.len());
        seq.extend_from_slice(added);
        at = pos + removed;
    }
    seq.extend_from_slice(&normal[at..]);
    (seq, ranges)
}

/// A contig without a position on the genome, all of whose bases are assembled and novel.
fn contig_with_changes(seq: Vec<u8>, changes: Vec<ContigChange>) -> AlignedContig {
    AlignedContig {
        novel: vec![true; seq.len()],
        quality_sums: vec![400; seq.len()],
        assembled: 0..seq.len(),
        num_reads: 10,
        changes,
        diagonals: [None; 2],
        family_alleles: Vec::new(),
        other_loci: Default::default(),
        explanations: Vec::new(),
        seq,
    }
}

/// A contig of the whole of `normal` with `edits`. The normal sequence of each change is the contig with that change
/// undone.
fn contig(normal: &[u8], edits: &[Edit]) -> AlignedContig {
    let (seq, ranges) = edited(normal, edits);
    let finding = |(&(pos, removed, added), at): (&Edit, &std::ops::Range<usize>)| {
        let without = [&seq[..at.start], &normal[pos..pos + removed], &seq[at.end..]].concat();
        ContigChange {
            change: Change::Allele {
                chrom: 0,
                pos,
                reference: normal[pos..pos + removed].to_vec(),
                alternative: added.to_vec(),
            },
            contig_range: at.clone(),
            left_normal: without.clone(),
            right_normal: without,
            right_shift: removed as i32 - added.len() as i32,
            mapq: 60,
        }
    };
    let changes = edits.iter().zip(&ranges).map(finding).collect();
    AlignedContig { diagonals: [Some((0, 0)); 2], ..contig_with_changes(seq, changes) }
}

/// Substitutions of a sequence, one at each position.
fn substitutions(normal: &[u8], places: &[usize]) -> Vec<(usize, Vec<u8>)> {
    places.iter().map(|&at| (at, vec![Rng(at as u64).another(normal[at])])).collect()
}

/// The changes of a haplotype that covers all of them.
fn all_known(haplotype: &Haplotype) -> Vec<bool> {
    haplotype.has_change.iter().map(|has| has.expect("it reaches the place")).collect()
}

fn has(haplotypes: &[Haplotype]) -> BTreeSet<Vec<bool>> {
    haplotypes.iter().map(all_known).collect()
}

/// Checks that every haplotype is the normal sequence with exactly the edits that it claims to have.
fn spelled_right(normal: &[u8], edits: &[Edit], haplotypes: &[Haplotype]) {
    for haplotype in haplotypes {
        let kept: Vec<Edit> =
            edits.iter().zip(all_known(haplotype)).filter(|(_, has)| *has).map(|(edit, _)| *edit).collect();
        assert!(haplotype.seq == edited(normal, &kept).0, "{:?}", haplotype.has_change);
        assert!(haplotype.shifts.is_sorted_by(|a, b| a < b), "{:?}", haplotype.shifts);
    }
}

#[test]
fn each_of_a_few_changes_stands_alone_and_lacks_alone() {
    let normal = Rng(1).sequence(600);
    let places = substitutions(&normal, &[250, 280, 300, 330]);
    let edits: Vec<Edit> = places.iter().map(|(at, base)| (*at, 1, &base[..])).collect();
    let contig = contig(&normal, &edits);
    let all = haplotypes_of_contig(&contig);
    assert_eq!(all[0].seq, contig.seq);
    spelled_right(&normal, &edits, &all);
    assert!(all.iter().all(|h| h.shifts == [0]));
    let mut expected = BTreeSet::from([vec![true; 4], vec![false; 4]]);
    for one in 0..4 {
        expected.insert((0..4).map(|i| i == one).collect());
        expected.insert((0..4).map(|i| i != one).collect());
    }
    assert_eq!(has(&all), expected);
    assert_eq!(all.len(), 10);
}

#[test]
fn of_many_changes_each_is_only_taken_away() {
    let normal = Rng(2).sequence(600);
    let places = substitutions(&normal, &(200..320).step_by(10).collect::<Vec<_>>());
    let edits: Vec<Edit> = places.iter().map(|(at, base)| (*at, 1, &base[..])).collect();
    let all = haplotypes_of_contig(&contig(&normal, &edits));
    spelled_right(&normal, &edits, &all);
    let n = edits.len();
    for one in 0..n {
        assert!(has(&all).contains(&(0..n).map(|i| i != one).collect::<Vec<_>>()));
    }
    assert!(all.len() <= n + 2, "the work grows with the square of changes at most");
}

#[test]
fn votes_are_the_same_without_known_equal_haplotypes() {
    let normal = Rng(6).sequence(600);
    let places = substitutions(&normal, &(150..450).step_by(20).collect::<Vec<_>>());
    let mut edits: Vec<Edit> = places.iter().map(|(at, base)| (*at, 1, &base[..])).collect();
    edits.push((460, 3, b""));
    let contig = contig(&normal, &edits);
    let distinct = haplotypes_of_contig(&contig);
    for haplotype in &distinct[1..] {
        let Some((other, differing)) = &haplotype.equal_outside else {
            assert_ne!(haplotype.shifts, distinct[0].shifts);
            continue;
        };
        let outside = |h: &Haplotype| [&h.seq[..differing.start], &h.seq[differing.end..]].concat();
        assert_eq!(outside(haplotype), outside(&distinct[*other]));
    }
    let mut rng = Rng(7);
    let mut pairs = Vec::new();
    let mut reads = Vec::new();
    for pair in 0..200u32 {
        let start = rng.within(100..400);
        let source = if pair % 3 == 0 { &contig.seq } else { &distinct[1].seq };
        let mut seq = source[start..start + 100].to_vec();
        seq[50] = rng.another(seq[50]);
        let mate = OwnedRead { qual: vec![30; seq.len()], seq };
        let sample = (pair % 2) as u8;
        let mates = [mate, OwnedRead::default()];
        pairs.push(RecruitedPair { sample, name: Vec::new(), mates, id: pair.into(), contigs: vec![0] });
        let offsets = [start as i32, start as i32 + 3, start as i32, start as i32];
        reads.push(PlacedRead { pair, mate: 0, forward: true, offsets });
    }
    let errors = ErrorModel::from_error_counts_and_slippage(&BaseErrorCounts::zero_counts(2), SlippageModel::default());
    let votes = |haplotypes: Vec<Haplotype>| {
        let evidence = LocusEvidence::from_placed_reads(&contig, haplotypes.into(), &reads, &pairs, &errors);
        (0..edits.len()).map(|f| (evidence.molecule_votes(f), evidence.count_covering_molecules(f))).collect::<Vec<_>>()
    };
    let without = distinct.iter().map(|h| Haplotype { equal_outside: None, ..h.clone() }).collect();
    let expected = votes(without);
    assert!(expected.iter().all(|(votes, _)| votes.iter().all(|of_sample| of_sample.len() > 5)));
    assert_eq!(votes(distinct), expected);
}

#[test]
fn shifts_carry_coordinates_over() {
    let normal = Rng(3).sequence(600);
    let inserted = Rng(4).sequence(12);
    let edits: [Edit; 3] = [(200, 7, b""), (300, 0, &inserted), (400, 1, &[Rng(5).another(normal[400])])];
    let contig = contig(&normal, &edits);
    let all = haplotypes_of_contig(&contig);
    spelled_right(&normal, &edits, &all);
    for haplotype in &all {
        let mut expected = BTreeSet::from([0]);
        let mut sum = 0;
        for (i, (_, removed, added)) in edits.iter().enumerate() {
            if haplotype.has_change[i] == Some(false) {
                sum += *removed as i32 - added.len() as i32;
                expected.insert(sum);
            }
        }
        assert_eq!(haplotype.shifts.iter().copied().collect::<BTreeSet<_>>(), expected, "{:?}", haplotype.has_change);
        // The last base of the contig is the last of each haplotype.
        let last = contig.seq.len() as i32 - 1;
        assert!(haplotype.shifts.iter().any(|s| last + s == haplotype.seq.len() as i32 - 1));
    }
}

#[test]
fn a_junction_can_be_left_on_either_side() {
    let (left, right) = (Rng(6).sequence(200), Rng(7).sequence(200));
    let (beyond, before) = (Rng(8).sequence(300), Rng(9).sequence(300));
    let end = |pos, side| Breakend { chrom: 0, pos, side };
    let base = Rng(10).another(left[150]);
    let mut changed = left.clone();
    changed[150] = base;
    let seq = [&changed[..], b"AC", &right].concat();
    let snv = ContigChange {
        change: Change::Allele { chrom: 0, pos: 150, reference: vec![left[150]], alternative: vec![base] },
        contig_range: 150..151,
        left_normal: [&left[..], b"AC", &right].concat(),
        right_normal: [&left[..], b"AC", &right].concat(),
        right_shift: 0,
        mapq: 60,
    };
    let junction = ContigChange {
        change: Change::Junction {
            ends: [end(199, RetainedSide::Left), end(9000, RetainedSide::Right)],
            inserted: b"AC".to_vec(),
            homology: 0,
        },
        contig_range: 200..202,
        left_normal: [&changed[..], &beyond].concat(),
        right_normal: [&before[..], &right].concat(),
        right_shift: 300 - 202,
        mapq: 60,
    };
    let contig = contig_with_changes(seq, vec![snv, junction]);
    let all = haplotypes_of_contig(&contig);
    let with = |snv: Option<bool>, junction: bool| -> Vec<&Vec<u8>> {
        all.iter().filter(|h| h.has_change == [snv, Some(junction)]).map(|h| &h.seq).collect()
    };
    // With the junction: the contig, and the same without the substitution.
    assert_eq!(with(Some(true), true), [&contig.seq]);
    assert_eq!(with(Some(false), true), [&contig.changes[0].left_normal]);
    // Without the junction: the left side continued as the genome, with or without the substitution, and the right
    // side, which does not cover it.
    assert_eq!(with(Some(true), false), [&[&changed[..], &beyond].concat()]);
    assert_eq!(with(Some(false), false), [&[&left[..], &beyond].concat()]);
    assert_eq!(with(None, false), [&[&before[..], &right].concat()]);
    assert_eq!(all.len(), 5);
    let of_right = all.iter().find(|h| h.seq.ends_with(&right) && h.seq.starts_with(&before)).unwrap();
    assert_eq!(of_right.shifts, [98]);
}

#[test]
fn a_copied_sequence_is_also_compared_at_the_place_from_which_it_was_copied() {
    let sequence = |seed, len| Rng(seed).sequence(len);
    let (left, copy, right) = (sequence(21, 200), sequence(22, 100), sequence(23, 200));
    let (after_left, before_right) = (sequence(24, 300), sequence(25, 300));
    let (before_copy, after_copy) = (sequence(26, 300), sequence(27, 300));
    let junction = |at: usize, ends: [(usize, RetainedSide); 2], normal: [Vec<u8>; 2]| {
        let [left_normal, right_normal] = normal;
        ContigChange {
            change: Change::Junction {
                ends: ends.map(|(pos, side)| Breakend { chrom: 0, pos, side }),
                inserted: Vec::new(),
                homology: 0,
            },
            contig_range: at..at,
            left_normal,
            right_normal,
            right_shift: 300 - at as i32,
            mapq: 60,
        }
    };
    let seq = [&left[..], &copy, &right].concat();
    let first = junction(
        200,
        [(199, RetainedSide::Left), (9000, RetainedSide::Right)],
        [[&left[..], &after_left].concat(), [&before_copy[..], &copy, &right].concat()],
    );
    let second = junction(
        300,
        [(200, RetainedSide::Right), (9099, RetainedSide::Left)],
        [[&left[..], &copy, &after_copy].concat(), [&before_right[..], &right].concat()],
    );
    let contig = contig_with_changes(seq, vec![first, second]);
    let all = haplotypes_of_contig(&contig);
    let with = |has_change: [Option<bool>; 2]| -> Vec<&Vec<u8>> {
        all.iter().filter(|h| h.has_change == has_change).map(|h| &h.seq).collect()
    };
    assert_eq!(with([Some(true), Some(true)]), [&contig.seq]);
    assert_eq!(with([Some(true), Some(false)]), [&contig.changes[1].left_normal]);
    assert_eq!(with([Some(false), Some(true)]), [&contig.changes[0].right_normal]);
    assert_eq!(with([Some(false), Some(false)]), [&[&before_copy[..], &copy, &after_copy].concat()]);
    assert_eq!(all.len(), 6);
    assert_eq!(all.iter().find(|h| h.has_change == [Some(false); 2]).unwrap().shifts, [100]);
}

#[test]
fn a_rival_has_what_it_shows_too() {
    let normal = Rng(11).sequence(600);
    let places = substitutions(&normal, &[250, 400]);
    let edits: Vec<Edit> = places.iter().map(|(at, base)| (*at, 1, &base[..])).collect();
    // A contig with both changes next to one with only the first.
    let (both, first) = (contig(&normal, &edits), contig(&normal, &edits[..1]));
    let rival = haplotype_of_rival_contig(&both, &first).unwrap();
    assert_eq!(
        (&rival.seq, &rival.has_change[..], &rival.shifts[..]),
        (&first.seq, &[Some(true), Some(false)][..], &[0][..])
    );
    assert_eq!(haplotype_of_rival_contig(&first, &both).unwrap().has_change, [Some(true)]);
    // Another contig begins further on: contig position 100 is its first base.
    let mut later = contig(&normal[100..], &[(150, 1, edits[0].2)]);
    later.diagonals = [Some((0, 100)); 2];
    later.changes.iter_mut().for_each(|f| {
        f.change = both.changes[0].change.clone();
    });
    let rival = haplotype_of_rival_contig(&both, &later).unwrap();
    assert_eq!((&rival.has_change[..], &rival.shifts[..]), (&[Some(true), Some(false)][..], &[-100][..]));
    // A contig on another sequence is not a rival.
    let elsewhere = AlignedContig { diagonals: [Some((1, 0)); 2], ..first.clone() };
    assert_eq!(haplotype_of_rival_contig(&both, &elsewhere), None);
    let nowhere = AlignedContig { diagonals: [None; 2], ..first };
    assert_eq!(haplotype_of_rival_contig(&both, &nowhere), None);
}

#[test]
fn loci_of_one_place_are_rivals_the_deepest_first() {
    let normal = Rng(12).sequence(6000);
    let locus = |places: &[usize], depth: usize| {
        let bases = substitutions(&normal, places);
        let edits: Vec<Edit> = bases.iter().map(|(at, base)| (*at, 1, &base[..])).collect();
        Locus::from_contig_without_reads(AlignedContig { num_reads: depth, ..contig(&normal, &edits) }, [1; 2])
    };
    let mut loci =
        vec![locus(&[1000], 5), locus(&[1010], 20), locus(&[5000], 9), locus(&[960, 5030], 8), locus(&[3000], 9)];
    find_and_set_rival_contigs(&mut loci);
    let rivals: Vec<&[usize]> = loci.iter().map(|l| &l.rivals[..]).collect();
    assert_eq!(rivals, [&[1, 3][..], &[3, 0], &[3], &[1, 2, 0], &[]]);
}
