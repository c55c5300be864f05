//! Tests of primary placements, mapping qualities and further reported segments, with ALT contigs and with repeats.

use genuma_reads::dna::reverse_complement;

use super::*;
use crate::index::Index;
use crate::index::tests::{Dice, Held, index};
use crate::insert_size::InsertSizesByOrientation;
use crate::mapper;

/// A chromosome, two alternative forms of a part of it, and a unique sequence; the last three are ALT contigs.
struct Bench {
    contigs: Vec<(String, Vec<u8>)>,
    index: Index<Held>,
}

/// Start and length of the part of the chromosome that has alternative forms.
const PART: (usize, usize) = (20_000, 20_000);

/// The sequence with one base in `every` changed.
fn changed(dice: &mut Dice, letters: &[u8], every: usize) -> Vec<u8> {
    let change = |&letter: &u8| if dice.roll(every) == 0 { b"CGTA"[letter as usize >> 1 & 3] } else { letter };
    letters.iter().map(change).collect()
}

fn bench(seed: u64, others: impl Fn(&mut Dice, &[u8]) -> Vec<Vec<u8>>) -> Bench {
    let mut dice = Dice(seed);
    let chromosome = dice.bases(60_000);
    let part = &chromosome[PART.0..PART.0 + PART.1];
    let alt = others(&mut dice, part).into_iter().enumerate().map(|(i, letters)| (format!("alt{i}"), letters));
    let mut contigs: Vec<_> = alt.collect();
    // ALT contigs are not last, unlike in most references.
    contigs.insert(1, ("chromosome".into(), chromosome.clone()));
    let mut index = index(&contigs);
    index.set_alt_contigs(|contig| contig.name.starts_with("alt"));
    Bench { contigs, index }
}

fn plain() -> Bench {
    bench(1, |dice, part| vec![changed(dice, part, 60), changed(dice, part, 20), dice.bases(5000)])
}

/// A reported segment.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    contig: String,
    /// First aligned base of the sequence, and first and last aligned base of the read.
    at: u64,
    of: (usize, usize),
    score: i32,
    quality: u8,
    next: i32,
    alt: i32,
    /// Contigs of other placements that are listed with it.
    named: Vec<String>,
}

/// Reported segments of each read, and whether the mates are a proper pair.
type Told = Vec<(Vec<Vec<Line>>, bool)>;

fn lines(bench: &Bench, reads: &[Vec<u8>], paired: bool) -> Told {
    run(&bench.index, reads, paired).0
}

/// Reported segments and the counts of skipped reads.
fn run(index: &Index<Held>, reads: &[Vec<u8>], paired: bool) -> (Told, IncompleteSearchReadCounts) {
    let (view, options, vectors) = (index.view(), ScoringOptions::default(), SimdLevel::widest_available());
    let mut mapped = MappedReads::default();
    let all = reads.iter().map(Vec::as_slice);
    mapper::map_reads(&view, &options, vectors, &mut mapper::MappingBuffers::default(), all, &mut mapped);
    let mut insert_sizes = InsertSizesByOrientation::default();
    insert_sizes[1] = (300..500).collect();
    let inserts = InsertSizeModels::estimate_from_insert_sizes(insert_sizes, options.match_score);
    let (mut state, mut told) = (PairingBuffers::default(), Vec::new());
    let contig = |place: &Placement| &view.contigs[view.contig_index_at(place.ref_start())];
    let inserts = paired.then_some(&inserts);
    pair_and_report_templates(
        &view,
        &options,
        vectors,
        &mut state,
        &mut mapped,
        inserts,
        |_, first, reports, proper| {
            let of = |i: usize, report: &ReadReport| {
                let line = |piece: &ReportedSegment| {
                    let place = &report.placements[piece.place];
                    let named = report.best_of_same_bases.iter().enumerate();
                    let named = named.filter(|(i, leader)| *i != piece.place && **leader == piece.place);
                    Line {
                        contig: contig(place).name.clone(),
                        at: place.ref_start() - contig(place).start,
                        of: place.aligned_range_as_sequenced(reads[first + i].len()),
                        score: place.score,
                        quality: piece.mapq,
                        next: piece.next_score,
                        alt: piece.alt_score,
                        named: named.map(|(i, _)| contig(&report.placements[i]).name.clone()).collect(),
                    }
                };
                report.segments.iter().map(line).collect()
            };
            told.push((reports.iter().enumerate().map(|(i, report)| of(i, report)).collect(), proper));
            Ok::<(), ()>(())
        },
    )
    .unwrap();
    (told, state.skipped)
}

/// Reported segments of a single read.
fn pieces(index: &Index<Held>, read: &[u8]) -> Vec<Line> {
    let (mut told, _) = run(index, &[read.to_vec()], false);
    told.remove(0).0.remove(0)
}

/// Mates of 150 bp that face each other, from the 400 bases at `at`.
fn mates(letters: &[u8], at: usize) -> [Vec<u8>; 2] {
    [letters[at..at + 150].to_vec(), reverse_complement(&letters[at + 250..at + 400])]
}

fn differing(a: &[u8], b: &[u8]) -> i32 {
    a.iter().zip(b).filter(|(a, b)| a != b).count() as i32
}

#[test]
fn reads_of_another_form_lie_on_the_chromosome_and_say_so() {
    let bench = plain();
    let (other, chromosome) = (&bench.contigs[0].1, &bench.contigs[1].1);
    for at in (0..19_000).step_by(500) {
        for paired in [true, false] {
            let told = lines(&bench, &mates(other, at), paired);
            let reads: Vec<&Vec<Line>> = told.iter().flat_map(|(reads, _)| reads).collect();
            assert!(told.iter().all(|(_, proper)| *proper == paired));
            for (mate, (read, at)) in reads.into_iter().zip([at, at + 250]).enumerate() {
                let there = PART.0 + at;
                let n = differing(&other[at..at + 150], &chromosome[there..there + 150]);
                let [first, rest @ ..] = &read[..] else { panic!("not found") };
                // Read 2 is on the reverse strand.
                let clipped = if mate == 0 { first.of.0 } else { 150 - first.of.1 };
                assert_eq!((first.contig.as_str(), first.at), ("chromosome", (there + clipped) as u64));
                // Unique in the chromosome; a much better placement on an ALT contig does not compete.
                assert_eq!(first.next, 0);
                assert!(first.quality >= if paired { 40 } else { 20 }, "{n}: {first:?}");
                if n == 0 {
                    assert_eq!((rest, first.alt, first.score), (&[][..], 0, 150));
                    assert!(first.named.contains(&"alt0".into()));
                    continue;
                }
                let [alt] = rest else { panic!("{rest:?}") };
                assert_eq!((alt.contig.as_str(), alt.at, alt.score, alt.alt), ("alt0", at as u64, 150, 0));
                assert_eq!((first.alt, first.named.len()), (150, 0));
                assert!(alt.named.contains(&"chromosome".into()) && alt.next >= first.score);
                // One mismatch lowers the quality a little, many lower it to zero.
                assert!(if n == 1 { alt.quality < 25 } else { n < 4 || alt.quality > 35 }, "{n}: {alt:?}");
            }
        }
    }
}

#[test]
fn reads_of_the_chromosome_are_as_sure_as_without_other_forms() {
    let bench = plain();
    let mut ignored = plain();
    ignored.index.set_alt_contigs(|_| false);
    let chromosome = &bench.contigs[1].1;
    let mut doubtful = 0;
    for at in (0..59_000).step_by(500) {
        for paired in [true, false] {
            let told = lines(&bench, &mates(chromosome, at), paired);
            for (reads, _) in &told {
                for lines in reads {
                    let [line] = &lines[..] else { panic!("{lines:?}") };
                    assert_eq!((line.contig.as_str(), line.score, line.quality), ("chromosome", 150, 60));
                    assert_eq!((line.next, line.alt), (0, 0));
                }
            }
            // Treated as sequences like any other, the ALT contigs make such reads ambiguous.
            let told = lines(&ignored, &mates(chromosome, at), paired);
            doubtful += told.iter().flat_map(|(reads, _)| reads).filter(|lines| lines[0].quality < 30).count();
        }
    }
    assert!(doubtful > 20, "{doubtful}");
}

#[test]
fn reads_that_stand_on_an_alt_contig_only_lie_there() {
    let bench = plain();
    let own = &bench.contigs[3].1;
    for paired in [true, false] {
        for (reads, proper) in lines(&bench, &mates(own, 3000), paired) {
            assert_eq!(proper, paired, "mates may lie as mates do there, too");
            for lines in &reads {
                let [line] = &lines[..] else { panic!("{lines:?}") };
                assert_eq!((line.contig.as_str(), line.quality, line.alt), ("alt2", 60, 0));
            }
        }
    }
}

#[test]
fn a_part_that_stands_on_an_alt_contig_only_is_a_piece_of_its_own() {
    let bench = plain();
    let (chromosome, own) = (&bench.contigs[1].1, &bench.contigs[3].1);
    let mut reads = mates(chromosome, 50_000);
    reads[0].splice(90.., own[1000..1060].iter().copied());
    let told = lines(&bench, &reads, true);
    let (reports, proper) = &told[0];
    // A further segment does not prevent a proper pair.
    assert!(*proper);
    let [first, piece] = &reports[0][..] else { panic!("{reports:?}") };
    assert_eq!((first.contig.as_str(), first.at, first.of, first.alt), ("chromosome", 50_000, (0, 90), 0));
    assert_eq!((piece.contig.as_str(), piece.at, piece.of), ("alt2", 1000, (90, 150)));
    // The part on the chromosome is too short to be reported, so that only the other one is.
    reads[0] = [&chromosome[50_000..50_028], &own[1000..1122]].concat();
    let told = lines(&bench, &reads, true);
    let (reports, proper) = &told[0];
    let [only] = &reports[0][..] else { panic!("{reports:?}") };
    assert_eq!((only.contig.as_str(), only.at, only.of, *proper), ("alt2", 1000, (28, 150), false));
    assert_eq!((reports[1].len(), reports[1][0].contig.as_str()), (1, "chromosome"));
}

#[test]
fn many_other_forms_hide_no_place_in_the_chromosome() {
    let bench = bench(2, |dice, part| (0..70).map(|_| changed(dice, &part[5000..8000], 100)).collect());
    let chromosome = &bench.contigs[1].1;
    for paired in [true, false] {
        for at in (PART.0 + 4900..PART.0 + 7900).step_by(100) {
            for (reads, _) in lines(&bench, &mates(chromosome, at), paired) {
                for lines in reads {
                    assert_eq!((lines[0].contig.as_str(), lines[0].score, lines[0].quality), ("chromosome", 150, 60));
                    assert_eq!(lines.len(), 1);
                }
            }
        }
        let (mut alone, mut named) = (0, 0);
        for (contig, letters) in bench.contigs.iter().filter(|(name, _)| name != "chromosome").take(10) {
            for (reads, _) in lines(&bench, &mates(letters, 1000), paired) {
                for lines in reads {
                    assert_eq!((lines[0].contig.as_str(), lines[0].next), ("chromosome", 0));
                    assert!(lines[0].quality >= 40);
                    // The true position is found, too.
                    match lines.get(1) {
                        None => alone += 1,
                        Some(alt) => {
                            named += usize::from(alt.named.len() > 60);
                            assert_eq!((alt.score, lines[0].alt, &alt.contig), (150, 150, contig));
                        }
                    }
                }
            }
        }
        assert!(alone < 10 && named > 10, "{alone}, {named}");
    }
}

/// Best score of a stretch of a read without gaps.
fn best_local_score(read: &[u8], reference: &[u8]) -> i32 {
    let (mut best, mut now) = (0, 0);
    for (a, b) in read.iter().zip(reference) {
        now = (now + if a == b { 1 } else { -4 }).max(0);
        best = best.max(now);
    }
    best
}

/// A sequence of copies of a repeat family, each with one base in `every` changed and 200 random bases before it; and
/// the starts of the copies.
fn family(dice: &mut Dice, copies: usize, every: usize) -> (Vec<u8>, Vec<usize>) {
    let first = dice.bases(400);
    let (mut letters, mut starts) = (Vec::new(), Vec::new());
    for _ in 0..copies {
        letters.extend(dice.bases(200));
        starts.push(letters.len());
        letters.extend(changed(dice, &first, every));
    }
    letters.extend(dice.bases(200));
    (letters, starts)
}

#[test]
fn a_read_alone_is_held_against_all_copies() {
    let mut dice = Dice(21);
    let (letters, starts) = family(&mut dice, 150, 120);
    let index = index(&[("family".into(), letters.clone())]);
    let mut near = 0;
    for &start in &starts {
        let read = &letters[start + 100..start + 250];
        let line = &pieces(&index, read)[0];
        let others = || starts.iter().filter(|other| **other != start).map(|other| &letters[other + 100..other + 250]);
        let fewest = others().map(|other| differing(read, other)).min().unwrap();
        assert!(line.score == 150 && (line.at == start as u64 + 100 || fewest == 0));
        // A copy with at most one mismatch has seeds whose lists were examined.
        let next = others().map(|other| best_local_score(read, other)).max().unwrap();
        assert!(fewest > 1 || line.next == next && line.quality < 20, "{line:?} {next}");
        near += usize::from(fewest <= 1);
    }
    assert!((50..150).contains(&near), "{near}");
}

#[test]
fn a_read_alone_with_too_many_copies_is_counted() {
    let mut dice = Dice(22);
    let (letters, starts) = family(&mut dice, 2100, 100_000);
    let read = letters[starts[5]..starts[5] + 150].to_vec();
    let index = index(&[("family".into(), letters)]);
    let (told, unseen) = run(&index, &[read], false);
    assert_eq!((unseen.reads, unseen.sampled, unseen.lists, unseen.joined), (1, 1, 1, 0));
    assert_eq!(told[0].0[0][0].quality, 0);
}

#[test]
fn a_further_piece_is_as_sure_as_its_own_bases() {
    let mut dice = Dice(23);
    let (mut letters, twice) = (dice.bases(5000), dice.bases(300));
    letters[1000..1300].copy_from_slice(&twice);
    letters[3000..3300].copy_from_slice(&twice);
    let index = index(&[("some".into(), letters.clone())]);
    let read = |piece: &[u8]| [&letters[4000..4100], piece].concat();
    for (piece, unsure) in [(&letters[1100..1150], true), (&letters[2000..2050], false)] {
        let [first, second] = &pieces(&index, &read(piece))[..] else { panic!("not two pieces") };
        assert_eq!(((first.at, first.of), second.of), ((4000, (0, 100)), (100, 150)));
        assert_eq!((second.score, second.next), (50, if unsure { 50 } else { 0 }));
        assert_eq!((second.quality == 0, second.quality >= 30), (unsure, !unsure), "{second:?}");
        // Bases that another segment explains do not lower the quality of the first one.
        assert_eq!(first.quality, 60);
    }
}

#[test]
fn inserted_bases_are_not_held_against_the_only_place() {
    let mut dice = Dice(24);
    let letters = dice.bases(5000);
    let index = index(&[("some".into(), letters.clone())]);
    for inserted in [3, 12, 28] {
        let read = [&letters[2000..2080], &dice.bases(inserted)[..], &letters[2080..2150 - inserted]].concat();
        let [line] = &pieces(&index, &read)[..] else { panic!("in pieces") };
        assert_eq!((line.at, line.of), (2000, (0, 150)));
        assert!(line.quality >= 40, "{inserted}: {line:?}");
    }
}

#[test]
fn a_mate_with_a_gap_is_compared_with_all_copies() {
    let mut dice = Dice(25);
    // Copies that do not differ where most of the second mate is.
    let (first, same, last) = (dice.bases(250), dice.bases(100), dice.bases(50));
    let copies: Vec<Vec<u8>> = (0..12)
        .map(|_| [&changed(&mut dice, &first, 40)[..], &same, &changed(&mut dice, &last, 10)].concat())
        .collect();
    // Each copy is there twice.
    let mut letters = dice.bases(200);
    for copy in copies.iter().chain(&copies) {
        letters.extend_from_slice(copy);
        letters.extend(dice.bases(200));
    }
    let index = index(&[("copies".into(), letters)]);
    for inserted in [2, 4] {
        for copy in &copies {
            let mut reads = mates(copy, 0);
            reads[1].splice(24..24, dice.bases(inserted));
            reads[1].truncate(150);
            let (reports, _) = &run(&index, &reads, true).0[0];
            let qualities: Vec<u8> = reports.iter().map(|lines| lines[0].quality).collect();
            assert!(qualities.iter().all(|quality| *quality <= 3), "{inserted}: {qualities:?}");
        }
    }
}

#[test]
fn copies_that_were_compared_do_not_lower_the_quality_of_a_pair() {
    let mut dice = Dice(26);
    let (letters, starts) = family(&mut dice, 250, 60);
    let index = index(&[("family".into(), letters.clone())]);
    let mut clear = 0;
    for &start in starts.iter().step_by(2) {
        let (reports, _) = &run(&index, &mates(&letters, start), true).0[0];
        let parts = [(0, 150), (250, 400)];
        let differing_from = |other: &usize| {
            parts
                .map(|(from, to)| differing(&letters[start + from..start + to], &letters[other + from..other + to]))
                .iter()
                .sum::<i32>()
        };
        let fewest = starts.iter().filter(|other| **other != start).map(differing_from).min().unwrap();
        // With a single difference, several other copies are nearly as good.
        if fewest >= 2 {
            clear += 1;
            for (mate, lines) in reports.iter().enumerate() {
                assert_eq!(lines[0].at, (start + parts[mate].0) as u64);
                assert!(lines[0].quality >= 20, "{fewest}: {lines:?}");
            }
        }
    }
    assert!(clear > 40, "{clear}");
}

#[test]
fn a_homopolymer_behind_the_adapter_is_not_placed_with_confidence() {
    let mut dice = Dice(27);
    let mut letters = dice.bases(5000);
    letters[3000..3025].fill(b'G');
    letters[3026..3060].fill(b'G');
    letters[2010..2016].fill(b'A');
    let index = index(&[("some".into(), letters.clone())]);
    let read = [&letters[1000..1040], &dice.bases(50)[..], &letters[3000..3060]].concat();
    let lines = pieces(&index, &read);
    let found: Vec<_> = lines.iter().map(|line| (line.at, line.of, line.quality)).collect();
    assert!(matches!(found[..], [(1000, (0, 40..46), 40..), (3000, (90, 150), 0)]), "{found:?}");
    // A short homopolymer does not lower the quality of a short alignment,
    let read = [&letters[2000..2034], &dice.bases(116)[..]].concat();
    let line = &pieces(&index, &read)[0];
    assert_eq!(line.at, 2000);
    assert!(line.quality >= 20, "{line:?}");
    // and a long one not that of an alignment of other bases.
    let line = &pieces(&index, &letters[2960..3110])[0];
    assert_eq!((line.at, line.quality), (2960, 60));
}
