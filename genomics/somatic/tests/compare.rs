//! Contigs with planted changes, placed on a genome by a scan: the changes found are the planted ones.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::common::{READ, Rng, canonical, contig, find, novel, replaced};
use genuma_align::{Hit, scan::ReferenceScan};
use genuma_reads::dna::reverse_complement;
use genuma_reads::fasta::{self, Reference};
use genuma_somatic::aligned_contig::{AlignedContig, ContigChange, align_contig};
use genuma_somatic::change::{Breakend, Change, RetainedSide};
use genuma_work::ProgressCounters;

const CASES: usize = 200;

struct World {
    genome: Reference,
    known: HashSet<u64>,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let mut rng = Rng(31);
    let contigs = ["one", "two"].map(|name| fasta::Contig { name: name.into(), seq: rng.sequence(40_000) });
    let genome = Reference::from_contigs(contigs.into());
    let known = canonical(&[&genome.contigs[0].seq, &genome.contigs[1].seq]);
    World { genome, known }
});

fn hits(seq: &[u8], genome: &Reference) -> Vec<Hit> {
    let scan = ReferenceScan {
        genome,
        regions: None,
        threads: 1,
        memory_bytes: 0,
        meter: &ProgressCounters::new("the reference"),
    };
    scan.find_hits(&[seq]).hits.remove(0)
}

fn chrom(i: usize) -> &'static [u8] {
    &WORLD.genome.contigs[i].seq
}

/// Aligns a tumour sequence in either orientation. The result is the same for both except for the orientation of
/// `seq`.
fn compared(seq: &[u8], flipped: bool) -> AlignedContig {
    let seq = if flipped { reverse_complement(seq) } else { seq.to_vec() };
    let contig = contig(seq, &WORLD.known);
    let hits = hits(&contig.seq, &WORLD.genome);
    let compared = align_contig(&contig, &hits, &WORLD.genome);
    let assembled = &compared.seq[compared.assembled.clone()];
    assert!(assembled == contig.seq || assembled == reverse_complement(&contig.seq));
    assert_eq!(compared.novel[compared.assembled.clone()], novel(assembled, &WORLD.known));
    compared
}

/// Checks that the normal sequences of a change are the genome's, and that coordinates convert as documented.
fn normals_fit(compared: &AlignedContig, finding: &ContigChange) {
    let in_genome = |seq: &[u8]| {
        (0..2).any(|c| find(chrom(c), seq).is_some() || find(chrom(c), &reverse_complement(seq)).is_some())
    };
    let ContigChange { contig_range: at, left_normal, right_normal, right_shift, .. } = finding;
    assert!(in_genome(left_normal), "left normal of {:?}", finding.change);
    assert!(in_genome(right_normal), "right normal of {:?}", finding.change);
    assert_eq!(compared.seq[..at.start], left_normal[..at.start]);
    let right = usize::try_from(at.end as i32 + right_shift).unwrap();
    assert_eq!(compared.seq[at.end..], right_normal[right..]);
    // A normal read across either edge of the change aligns with them from its first base to its last. An unaligned
    // end of the contig has no added genome bases.
    let padded = compared.assembled.start > 0 && compared.assembled.end < compared.seq.len();
    for into in [20, 75, 130].into_iter().filter(|_| padded) {
        let from = at.start - into;
        assert!(left_normal.len() >= from + READ, "left normal too short for a read {into} bases before the change");
        assert!(right >= READ - into, "right normal too short for a read {into} bases behind the change");
    }
}

/// One planted change.
struct Case {
    seq: Vec<u8>,
    change: Change,
}

/// Plants `CASES` changes, aligns both orientations of their contigs and expects exactly the planted changes.
fn check(seed: u64, plant: impl Fn(&mut Rng) -> Case) {
    let mut rng = Rng(seed);
    for case in 0..CASES {
        let Case { seq, change } = plant(&mut rng);
        for flipped in [false, true] {
            let compared = compared(&seq, flipped);
            let changes: Vec<Change> = compared.changes.iter().map(|f| leftmost(&f.change)).collect();
            assert_eq!(changes, [leftmost(&change)], "case {case} of seed {seed}, flipped: {flipped}");
            normals_fit(&compared, &compared.changes[0]);
        }
    }
}

/// The leftmost representation of `chrom(c)[at..at + removed]` → `added` if one of both is empty, by trying all
/// positions.
fn allele(c: usize, at: usize, removed: usize, added: &[u8]) -> Change {
    let genome = chrom(c);
    let from = at.saturating_sub(200);
    let window = &genome[from..at + removed + 200];
    let changed = replaced(window, at - from, removed, added);
    let grown = added.len();
    let start = (1..=at - from).find(|&p| replaced(window, p, removed, &changed[p..p + grown]) == changed).unwrap();
    Change::Allele {
        chrom: c,
        pos: from + start - 1,
        reference: window[start - 1..start + removed].to_vec(),
        alternative: changed[start - 1..start + grown].to_vec(),
    }
}

/// A contig with `genome[at..at + removed]` → `added` and flanks of 80 to 160 bases.
fn small(rng: &mut Rng, removed: usize, added: &[u8]) -> Case {
    let (c, at) = (rng.within(0..2), rng.within(1000..38_000));
    let (left, right) = (rng.within(80..161), rng.within(80..161));
    let seq = [&chrom(c)[at - left..at], added, &chrom(c)[at + removed..at + removed + right]].concat();
    Case { seq, change: allele(c, at, removed, added) }
}

#[test]
fn substitutions() {
    check(100, |rng| {
        let (c, at) = (rng.within(0..2), rng.within(1000..38_000));
        let (left, right) = (rng.within(61..150), rng.within(61..150));
        let base = rng.another(chrom(c)[at]);
        let change = Change::Allele { chrom: c, pos: at, reference: vec![chrom(c)[at]], alternative: vec![base] };
        let seq = [&chrom(c)[at - left..at], &[base], &chrom(c)[at + 1..at + right]].concat();
        Case { seq, change }
    });
}

#[test]
fn short_deletions() {
    check(101, |rng| small(rng, 3, b""));
}

#[test]
fn short_insertions() {
    check(102, |rng| {
        let added = rng.sequence(3);
        small(rng, 0, &added)
    });
}

#[test]
fn long_deletions() {
    check(103, |rng| small(rng, 120, b""));
}

#[test]
fn long_insertions_of_novel_sequence() {
    check(104, |rng| {
        let added = rng.sequence(80);
        small(rng, 0, &added)
    });
}

/// One end of a planted junction: its outermost base and the side that is kept.
fn end(chrom: usize, pos: usize, side: RetainedSide) -> Breakend {
    Breakend { chrom, pos, side }
}

/// `n` bases that end at a breakend, read towards the junction.
fn towards(end: Breakend, n: usize) -> Vec<u8> {
    match end.side {
        RetainedSide::Left => chrom(end.chrom)[end.pos + 1 - n..=end.pos].to_vec(),
        RetainedSide::Right => reverse_complement(&chrom(end.chrom)[end.pos..end.pos + n]),
    }
}

/// A junction with its ends as far left on the first one as microhomology permits.
fn leftmost(change: &Change) -> Change {
    let Change::Junction { ends, inserted, .. } = change else { return change.clone() };
    if !inserted.is_empty() {
        return change.clone();
    }
    let mut ends = *ends;
    // Moving the junction by one base: one end loses its outermost base, the other gains its next base.
    let step = |e: Breakend, outwards: bool| {
        let up = (e.side == RetainedSide::Left) == outwards;
        Breakend { pos: if up { e.pos + 1 } else { e.pos - 1 }, ..e }
    };
    let spells = |ends: [Breakend; 2]| [towards(ends[0], 60), reverse_complement(&towards(ends[1], 60))].concat();
    let shift = |ends: [Breakend; 2], first_grows: bool| [step(ends[0], first_grows), step(ends[1], !first_grows)];
    // The sequence around the junction must stay the same: it moves in the window by one base.
    let equal = |from: [Breakend; 2], first_grows: bool| {
        let (a, b) = (spells(from), spells(shift(from, first_grows)));
        if first_grows { a[1..] == b[..b.len() - 1] } else { b[1..] == a[..a.len() - 1] }
    };
    let leftwards = ends[0].side == RetainedSide::Right;
    while equal(ends, leftwards) {
        ends = shift(ends, leftwards);
    }
    let (mut homology, mut other) = (0, ends);
    while equal(other, !leftwards) {
        (homology, other) = (homology + 1, shift(other, !leftwards));
    }
    Change::Junction { ends, inserted: Vec::new(), homology }
}

/// A contig across a junction.
fn junction(rng: &mut Rng, mut ends: [Breakend; 2]) -> Case {
    ends.sort();
    let (left, right) = (rng.within(80..161), rng.within(80..161));
    let seq = [towards(ends[0], left), reverse_complement(&towards(ends[1], right))].concat();
    Case { seq, change: leftmost(&Change::Junction { ends, inserted: Vec::new(), homology: 0 }) }
}

#[test]
fn tandem_duplications() {
    check(105, |rng| {
        let (c, from) = (rng.within(0..2), rng.within(1000..30_000));
        let to = from + rng.within(700..8000);
        junction(rng, [end(c, from, RetainedSide::Right), end(c, to, RetainedSide::Left)])
    });
}

/// A genome with an imperfect repeat in the middle of random bases: each copy of a unit differs in one base in eight.
fn genome_with_imperfect_repeat(rng: &mut Rng) -> Vec<u8> {
    let unit_len = rng.within(12..24);
    let unit = rng.sequence(unit_len);
    let copy = |rng: &mut Rng| -> Vec<u8> {
        unit.iter().map(|&b| if rng.chance(0.125) { rng.another(b) } else { b }).collect()
    };
    let repeat: Vec<u8> = (0..12).flat_map(|_| copy(rng)).collect();
    [rng.sequence(2000), repeat, rng.sequence(2000)].concat()
}

/// Aligns a contig of 276 bases around `at` of a changed genome with the genome, both orientations alike, and returns
/// its changes.
fn changes_in_repeat(genome: &[u8], changed: &[u8], at: usize) -> Vec<Change> {
    let reference = Reference::from_contigs(vec![fasta::Contig { name: "repeat".into(), seq: genome.to_vec() }]);
    let [one, other] = [false, true].map(|flipped| {
        let seq = changed[at - 138..at + 138].to_vec();
        let seq = if flipped { reverse_complement(&seq) } else { seq };
        let contig = contig(seq, &canonical(&[genome]));
        align_contig(&contig, &hits(&contig.seq, &reference), &reference)
    });
    let changes = |compared: &AlignedContig| compared.changes.iter().map(|f| f.change.clone()).collect::<Vec<_>>();
    assert_eq!(changes(&one), changes(&other));
    changes(&one)
}

/// Number of bases that a change adds to the genome; negative for a deletion.
fn growth(change: &Change) -> i64 {
    match change {
        Change::Allele { reference, alternative, .. } => alternative.len() as i64 - reference.len() as i64,
        Change::Junction { ends: [a, b], inserted, .. } if a.side == RetainedSide::Right => {
            (b.pos + 1 - a.pos + inserted.len()) as i64
        }
        Change::Junction { ends: [a, b], inserted, .. } => inserted.len() as i64 - (b.pos - a.pos - 1) as i64,
        Change::Novel { .. } => panic!("{change:?}"),
    }
}

#[test]
fn a_duplication_or_deletion_beside_an_imperfect_repeat_is_one_change() {
    let mut rng = Rng(120);
    let (mut found, mut right) = (0, 0);
    for case in 0..120 {
        let genome = genome_with_imperfect_repeat(&mut rng);
        let (at, len) = (rng.within(2040..2200), rng.within(40..110));
        let filler_len = [0, 6][case / 2 % 2];
        let filler = rng.sequence(filler_len);
        let (changed, grown) = if case % 2 == 0 {
            let copy = [&filler, &genome[at - len..at]].concat();
            (replaced(&genome, at, 0, &copy), copy.len() as i64)
        } else {
            (replaced(&genome, at, 2 * len, b""), -2 * len as i64)
        };
        let changes = changes_in_repeat(&genome, &changed, at);
        // A change of whole units of the repeat may make no new k-mer.
        found += usize::from(!changes.is_empty());
        right += usize::from(matches!(&changes[..], [one] if growth(one) == grown));
    }
    assert!(found >= 110 && right * 100 >= found * 95, "{right} of {found}");
}

#[test]
fn deletions_of_kilobases() {
    check(106, |rng| {
        let (c, from) = (rng.within(0..2), rng.within(1000..30_000));
        let to = from + rng.within(1000..8000);
        junction(rng, [end(c, from, RetainedSide::Left), end(c, to, RetainedSide::Right)])
    });
}

#[test]
fn inversions() {
    check(107, |rng| {
        let (c, from) = (rng.within(0..2), rng.within(1000..30_000));
        let to = from + rng.within(1000..8000);
        let side = [RetainedSide::Left, RetainedSide::Right][rng.within(0..2)];
        junction(rng, [end(c, from, side), end(c, to, side)])
    });
}

#[test]

fn translocations() {
    check(108, |rng| {
        let sides = [0, 1].map(|_| [RetainedSide::Left, RetainedSide::Right][rng.within(0..2)]);
        let places = [0, 1].map(|_| rng.within(1000..38_000));
        junction(rng, [end(0, places[0], sides[0]), end(1, places[1], sides[1])])
    });
}

#[test]

fn junctions_are_written_as_far_left_on_the_first_end_as_they_go() {
    let mut rng = Rng(113);
    for case in 0..CASES {
        let side = [RetainedSide::Left, RetainedSide::Right][rng.within(0..2)];
        let ends = [end(0, rng.within(1000..18_000), side), end(0, rng.within(20_000..38_000), side)];
        let Case { seq, change } = junction(&mut rng, ends);
        for flipped in [false, true] {
            let found = compared(&seq, flipped).changes;
            assert_eq!(found.iter().map(|f| &f.change).collect::<Vec<_>>(), [&change], "case {case}");
        }
    }
}

#[test]

fn a_deletion_in_unique_sequence_lies_surely_and_has_surroundings() {
    let mut rng = Rng(103);
    for case in 0..CASES {
        let Case { seq, .. } = small(&mut rng, 120, b"");
        let compared = compared(&seq, false);
        assert_eq!(compared.changes[0].mapq, 60, "case {case}");
        assert_eq!(compared.assembled.len(), seq.len(), "case {case}");
        let beyond = [compared.assembled.start, compared.seq.len() - compared.assembled.end];
        assert!(beyond.iter().all(|&n| n >= 2 * READ), "case {case}: {beyond:?}");
    }
}

#[test]
fn inserted_bases_of_a_junction_are_read_from_the_first_end() {
    let mut rng = Rng(109);
    for case in 0..CASES {
        let sides = [0, 1].map(|_| [RetainedSide::Left, RetainedSide::Right][rng.within(0..2)]);
        let ends = [end(0, rng.within(1000..38_000), sides[0]), end(1, rng.within(1000..38_000), sides[1])];
        // No inserted base continues one of the ends.
        let beyond = |e: Breakend| match e.side {
            RetainedSide::Left => chrom(e.chrom)[e.pos + 1..e.pos + 10].to_vec(),
            RetainedSide::Right => reverse_complement(&chrom(e.chrom)[e.pos - 9..e.pos]),
        };
        let (on, back) = (beyond(ends[0]), reverse_complement(&beyond(ends[1])));
        let inserted: Vec<u8> =
            (0..9).map(|i| *b"ACGT".iter().find(|b| **b != on[i] && **b != back[i]).unwrap()).collect();
        let seq = [towards(ends[0], 120), inserted.clone(), reverse_complement(&towards(ends[1], 120))].concat();
        for flipped in [false, true] {
            let compared = compared(&seq, flipped);
            let change = Change::Junction { ends, inserted: inserted.clone(), homology: 0 };
            assert_eq!(compared.changes.iter().map(|f| &f.change).collect::<Vec<_>>(), [&change], "case {case}");
            normals_fit(&compared, &compared.changes[0]);
        }
    }
}

#[test]
fn a_contig_of_the_genome_shows_nothing() {
    let mut rng = Rng(110);
    for _ in 0..50 {
        let (c, at) = (rng.within(0..2), rng.within(0..39_700));
        for flipped in [false, true] {
            assert_eq!(compared(&chrom(c)[at..at + 300], flipped).changes, []);
        }
    }
    assert_eq!(compared(&rng.sequence(300), false).changes, []);
}

#[test]
fn two_changes_on_one_contig_are_both_found() {
    let mut rng = Rng(111);
    for case in 0..CASES {
        let at = rng.within(1000..38_000);
        let (one, two) = (rng.another(chrom(0)[at]), rng.another(chrom(0)[at + 20]));
        let whole = replaced(&replaced(chrom(0), at, 1, &[one]), at + 20, 1, &[two]);
        let snv = |pos: usize, base: u8| Change::Allele {
            chrom: 0,
            pos,
            reference: vec![chrom(0)[pos]],
            alternative: vec![base],
        };
        for flipped in [false, true] {
            let compared = compared(&whole[at - 100..at + 120], flipped);
            let changes: Vec<Change> = compared.changes.iter().map(|f| f.change.clone()).collect();
            assert_eq!(changes, [snv(at, one), snv(at + 20, two)], "case {case}");
        }
    }
}

#[test]
fn a_long_insertion_is_known_from_each_side() {
    let mut rng = Rng(112);
    for case in 0..CASES {
        let (c, at) = (rng.within(0..2), rng.within(1000..38_000));
        let mut novel = rng.sequence(100);
        // Neither edge continues as the genome does.
        novel[0] = rng.another(chrom(c)[at]);
        novel[99] = rng.another(chrom(c)[at - 1]);
        let left = [&chrom(c)[at - 150..at], &novel[..]].concat();
        let right = [&novel[..], &chrom(c)[at..at + 150]].concat();
        for flipped in [false, true] {
            let found = compared(&left, flipped).changes;
            let change = Change::Novel { end: end(c, at - 1, RetainedSide::Left), sequence: novel.clone() };
            assert_eq!(found.iter().map(|f| &f.change).collect::<Vec<_>>(), [&change], "case {case}, left");
            let found = compared(&right, flipped).changes;
            let change = Change::Novel { end: end(c, at, RetainedSide::Right), sequence: reverse_complement(&novel) };
            assert_eq!(found.iter().map(|f| &f.change).collect::<Vec<_>>(), [&change], "case {case}, right");
        }
    }
}

#[test]
fn a_short_inversion_is_both_its_junctions() {
    let mut rng = Rng(114);
    let mut found = 0;
    for _ in 0..CASES {
        let (c, at) = (rng.within(0..2), rng.within(1000..38_000));
        let len = rng.within(100..250);
        let turned = reverse_complement(&chrom(c)[at..at + len]);
        let seq = [&chrom(c)[at - 150..at], &turned, &chrom(c)[at + len..at + len + 150]].concat();
        let expected = [
            leftmost(&Change::Junction {
                ends: [end(c, at - 1, RetainedSide::Left), end(c, at + len - 1, RetainedSide::Left)],
                inserted: Vec::new(),
                homology: 0,
            }),
            leftmost(&Change::Junction {
                ends: [end(c, at, RetainedSide::Right), end(c, at + len, RetainedSide::Right)],
                inserted: Vec::new(),
                homology: 0,
            }),
        ];
        let changes: Vec<Change> =
            compared(&seq, rng.chance(0.5)).changes.iter().map(|f| leftmost(&f.change)).collect();
        found += usize::from(expected.iter().all(|e| changes.contains(e)));
    }
    assert!(found * 100 >= CASES * 98, "{found} of {CASES}");
}

#[test]
fn a_change_on_poor_bases_alone_is_not_well_read() {
    let mut rng = Rng(115);
    let change = |rng: &mut Rng, removed: usize, added: &[u8]| {
        let at = rng.within(1000..38_000);
        [&chrom(0)[at - 120..at], added, &chrom(0)[at + removed..at + removed + 120]].concat()
    };
    let read = |seq: &[u8], weight: u16| {
        let mut contig = contig(seq.to_vec(), &WORLD.known);
        contig.quality_sums[120] = weight;
        let hits = hits(seq, &WORLD.genome);
        let compared = align_contig(&contig, &hits, &WORLD.genome);
        assert_eq!(compared.changes.len(), 1);
        compared.has_change_with_good_bases()
    };
    for _ in 0..20 {
        let at = rng.within(1000..38_000);
        let base = rng.another(chrom(0)[at]);
        let seq = [&chrom(0)[at - 120..at], &[base], &chrom(0)[at + 1..at + 121]].concat();
        assert!(!read(&seq, 20));
        assert!(read(&seq, 100));
    }
    // A deletion has no base quality.
    assert!(read(&change(&mut rng, 12, b""), 20));
}

#[test]
fn mates_beyond_a_contig_tell_which_copy_of_a_repeat_it_lies_in() {
    let mut rng = Rng(116);
    let copy = rng.sequence(600);
    let flanks: Vec<Vec<u8>> = (0..4).map(|_| rng.sequence(5000)).collect();
    let one = [&flanks[0], &copy, &flanks[1]].map(Vec::as_slice).concat();
    let two = [&flanks[2], &reverse_complement(&copy), &flanks[3]].map(Vec::as_slice).concat();
    let contigs = [("one", one), ("two", two)].map(|(name, seq)| fasta::Contig { name: name.into(), seq });
    let genome = Reference::from_contigs(contigs.into());
    let seqs: Vec<&[u8]> = genome.contigs.iter().map(|c| &c.seq[..]).collect();
    let known = canonical(&seqs);
    // The contig is bases 200 to 500 of the copy with one changed base. Fragments of 450 bases extend beyond it to
    // the right, which is to the left on the second sequence, where the copy is reverse-complemented.
    let changed = replaced(&copy, 350, 1, &[rng.another(copy[350])]);
    let seq = &changed[200..500];
    let beyond: [Vec<Vec<u8>>; 2] = [
        (0..6).map(|i| genome.contigs[0].seq[5620 + 9 * i..5770 + 9 * i].to_vec()).collect(),
        (0..6).map(|i| reverse_complement(&genome.contigs[1].seq[4830 - 9 * i..4980 - 9 * i])).collect(),
    ];
    let at = |mates: &[Vec<u8>]| {
        let mut contig = contig(seq.to_vec(), &known);
        contig.outer_mates[1] = mates.to_vec();
        let hits = hits(seq, &genome);
        let compared = align_contig(&contig, &hits, &genome);
        assert_eq!(compared.changes.len(), 1);
        match compared.changes[0].change {
            Change::Allele { chrom, pos, .. } => (chrom, pos, compared.changes[0].mapq),
            _ => panic!("{:?}", compared.changes[0].change),
        }
    };
    let first = at(&beyond[0]);
    assert_eq!((first.0, first.1), (0, 5350));
    let second = at(&beyond[1]);
    assert_eq!((second.0, second.1), (1, 5000 + 599 - 350));
    let none = at(&[]);
    assert!(none.2 < 3 && first.2 > 20 && second.2 > 20, "{none:?} {first:?} {second:?}");
}

#[test]
fn contigs_across_the_origin_of_a_circular_sequence_have_only_their_own_changes() {
    let mut rng = Rng(131);
    let length = 5_000;
    let circle = fasta::Contig { name: "chrM".into(), seq: rng.sequence(length) };
    let genome = Reference::from_contigs(vec![circle]);
    let twice = genome.contigs[0].seq.repeat(2);
    let known = canonical(&[&twice]);
    for case in 0..CASES {
        // The origin is anywhere in the contig, also less than a seed from its end.
        let (start, len) = (length - rng.within(8..250), 260);
        let at = length + rng.within(0..60) - 30;
        let mut seq = twice[start..start + len].to_vec();
        let is_inside = at >= start + 20 && at + 20 < start + len;
        let base = rng.another(twice[at]);
        if is_inside {
            seq[at - start] = base;
        }
        let change = Change::Allele { chrom: 0, pos: at % length, reference: vec![twice[at]], alternative: vec![base] };
        let expected = if is_inside { vec![change] } else { Vec::new() };
        for flipped in [false, true] {
            let seq = if flipped { reverse_complement(&seq) } else { seq.clone() };
            let contig = contig(seq, &known);
            let found = align_contig(&contig, &hits(&contig.seq, &genome), &genome).changes;
            let found: Vec<Change> = found.into_iter().map(|f| f.change).collect();
            assert_eq!(found, expected, "case {case}: contig from {start} on, change at {at}");
        }
    }
    // A deletion across the origin is a junction of the two sides.
    let deleted = [&twice[length - 130..length - 20], &twice[length + 30..length + 150]].concat();
    let contig = contig(deleted, &known);
    let found = align_contig(&contig, &hits(&contig.seq, &genome), &genome).changes;
    let ends = |f: &ContigChange| match &f.change {
        Change::Junction { ends, .. } => ends.map(|end| end.pos),
        other => panic!("{other:?}"),
    };
    assert_eq!(found.len(), 1);
    let [right, left] = ends(&found[0]);
    assert_eq!(length - left + right, 51);
}

#[test]
fn the_other_copies_of_a_sequence_are_listed() {
    let mut rng = Rng(47);
    let copy = rng.sequence(400);
    // Another copy with a substitution in every 40th base, on the reverse strand of the second sequence.
    let mut other = copy.clone();
    (20..400).step_by(40).for_each(|at| other[at] = rng.another(copy[at]));
    let [first, second] = [copy.clone(), reverse_complement(&other)]
        .map(|inside| [rng.sequence(3_000), inside, rng.sequence(3_000)].concat());
    let known = canonical(&[&first, &second]);
    let sequences = [("one", first), ("two", second)].map(|(name, seq)| fasta::Contig { name: name.into(), seq });
    let genome = Reference::from_contigs(sequences.into());
    let changed = replaced(&copy, 200, 1, &[rng.another(copy[200])]);
    for seq in [changed.clone(), reverse_complement(&changed)] {
        let contig = contig(seq, &known);
        let aligned = align_contig(&contig, &hits(&contig.seq, &genome), &genome);
        assert_eq!(aligned.other_loci.num_found, 1);
        let [locus] = &aligned.other_loci.best[..] else { panic!("{:?}", aligned.other_loci) };
        assert_eq!((locus.chrom, locus.range.clone(), locus.forward), (1, 3_000..3_400, false));
        assert_eq!((locus.matching_bases, locus.alignment_columns), (389, 400));
    }
    assert_eq!(compared(&chrom(0)[500..900], false).other_loci, Default::default());
}
