//! Maps reads of all kinds with the whole mapper and checks that the reports are consistent with the reference and
//! independent of the batches.
//!
//! `GENUMA_PAIRS=1000000 cargo test -p genuma-mapper --test reads` maps a million pairs.

use std::ops::Deref;
use std::sync::LazyLock;

use bytemuck::{Pod, Zeroable};
use genuma_machine::simd_and_prefetch::SimdLevel;
use genuma_mapper::bases::{BASE_LETTERS, is_acgt};
use genuma_mapper::gapped::{CIGAR_DELETION, CIGAR_INSERTION, CIGAR_MATCH};
use genuma_mapper::index::{Error, Index, IndexView, ReferenceBuilder, build_and_write_index};
use genuma_mapper::insert_size::{self, InsertSizeModels, InsertSizesByOrientation};
use genuma_mapper::mapper::{self, MappedReads};
use genuma_mapper::options::{AMBIGUOUS_BASE_SCORE, MAX_READ_BP, ScoringOptions};
use genuma_mapper::pairs::{self, ReportedSegment};
use genuma_mapper::placement::Placement;
use genuma_reads::dna::reverse_complement;

/// Random numbers (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % sides as u64) as usize
    }

    fn bases(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| b"ACGT"[self.roll(4)]).collect()
    }

    /// A copy with errors: one base in `rate` changed, and a fifth as many gaps of up to 40 bp.
    fn copy(&mut self, seq: &[u8], rate: usize) -> Vec<u8> {
        let mut copy = Vec::with_capacity(seq.len() + 40);
        let mut left_out = 0;
        for &base in seq {
            if left_out > 0 {
                left_out -= 1;
                continue;
            }
            match self.roll(rate * 20) {
                0..18 => copy.push(b"ACGT"[self.roll(4)]),
                18..20 => copy.push(b'N'),
                20 | 21 => {
                    let n = 1 + self.roll(self.0 as usize % 40 + 1);
                    copy.extend(self.bases(n));
                }
                22 | 23 => left_out = self.roll(self.0 as usize % 40 + 1),
                _ => copy.push(base),
            }
        }
        copy
    }
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Bytes that are aligned to 64.
struct Held(Vec<Line>, usize);

impl Deref for Held {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.0)[..self.1]
    }
}

struct Reference {
    contigs: Vec<Vec<u8>>,
    index: Index<Held>,
}

/// Two repeat families of three ages, tandem repeats and ambiguous ranges; then a unique sequence; then short ones.
static REFERENCE: LazyLock<Reference> = LazyLock::new(|| {
    let mut dice = Dice(1);
    let families = [dice.bases(300), dice.bases(2500)];
    let mut repeats = Vec::new();
    while repeats.len() < 120_000 {
        let n = 200 + dice.roll(1500);
        repeats.extend(dice.bases(n));
        let rate = [8, 60, 100_000][dice.roll(3)];
        let copy = match dice.roll(4) {
            0 | 1 => dice.copy(&families[0], rate),
            2 => dice.copy(&families[1], rate),
            _ => {
                let unit = 1 + dice.roll(60);
                dice.bases(unit).repeat(900 / unit)
            }
        };
        repeats.extend(if dice.roll(2) == 0 { copy } else { reverse_complement(&copy) });
    }
    repeats[50_000..50_300].fill(b'N');
    (0..100).for_each(|_| repeats[dice.roll(120_000)] = b'N');
    let mut contigs = vec![repeats, dice.bases(80_000)];
    contigs.extend([20, 40, 100, 300, 1000].map(|n| dice.bases(n)));
    let mut built = ReferenceBuilder::default();
    for (i, contig) in contigs.iter().enumerate() {
        built.begin_contig(format!("contig{i}"));
        built.add_bases(contig);
    }
    let mut bytes = Vec::new();
    build_and_write_index(built, 1, |some| {
        bytes.extend_from_slice(some);
        Ok::<(), Error>(())
    })
    .unwrap();
    let mut held = Held(vec![Line([0; 64]); bytes.len().div_ceil(64)], bytes.len());
    bytemuck::cast_slice_mut(&mut held.0)[..bytes.len()].copy_from_slice(&bytes);
    Reference { contigs, index: Index::from_bytes(held).unwrap() }
});

/// A random range of the reference.
fn stretch(dice: &mut Dice, n: usize) -> &'static [u8] {
    let contig = &REFERENCE.contigs[[0, 0, 0, 0, 1, 1, 1, 2, 3, 4, 5, 6][dice.roll(12)]];
    let n = n.min(contig.len());
    let at = dice.roll(contig.len() - n + 1);
    &contig[at..at + n]
}

/// A pair of one of many kinds; most are proper pairs.
fn pair(dice: &mut Dice) -> [Vec<u8>; 2] {
    const ADAPTER: &[u8] = b"AGATCGGAAGAGCACACGTCTGAACTCCAGTCAC";
    let longest = [100, 150, 150, 150, 300][dice.roll(5)];
    let insert = 30 + (0..4).map(|_| dice.roll(2 * longest)).sum::<usize>() / 2;
    let fragment = stretch(dice, insert);
    let ends = [fragment.to_vec(), reverse_complement(fragment)];
    let rate = [1000, 100, 30, 12][dice.roll(4)];
    // Short fragments end in adapters.
    let mut mates = ends.map(|end| [&dice.copy(&end, rate)[..], ADAPTER, &[b'G'; 300]].concat());
    mates.iter_mut().for_each(|mate| mate.truncate(longest));
    let one = dice.roll(2);
    match dice.roll(24) {
        0 => mates[one] = stretch(dice, longest).to_vec(),
        1 => mates[one] = dice.bases(longest),
        2 => mates = [dice.bases(longest), dice.bases(longest)],
        3 => {
            let at = dice.roll(longest);
            let other = stretch(dice, longest);
            let other = if dice.roll(2) == 0 { other.to_vec() } else { reverse_complement(other) };
            mates[one].splice(at.., other);
            mates[one].truncate(longest);
        }
        4 => mates[one] = vec![b"ACGTN"[dice.roll(5)]; longest],
        5..8 => mates[one].truncate(dice.roll(301)),
        8 => mates.iter_mut().for_each(|mate| mate.truncate(dice.roll(60))),
        9 => mates[one].clear(),
        10 => mates[one] = reverse_complement(&mates[one]),
        11 => {
            let unit = 1 + dice.roll(20);
            mates[one] = dice.bases(unit).repeat(longest);
            mates[one].truncate(longest);
        }
        12 => mates[one][20..longest.min(80)].fill(b'N'),
        13 => mates[one].make_ascii_lowercase(),
        14 if dice.roll(40) == 0 => mates[one] = stretch(dice, MAX_READ_BP).to_vec(),
        _ => {}
    }
    if dice.roll(2) == 0 {
        mates.swap(0, 1);
    }
    mates
}

/// The report of a read: its placements with their CIGAR operations, and the reported segments.
type Told = (Vec<(Placement, Vec<u32>)>, Vec<ReportedSegment>);

/// The reports of the reads by template, and whether the mates are a proper pair; mapped `pieces` templates at a
/// time.
fn told(
    reads: &[Vec<u8>],
    paired: bool,
    options: &ScoringOptions,
    vectors: SimdLevel,
    pieces: usize,
) -> Vec<(Vec<Told>, bool)> {
    let view = REFERENCE.index.view();
    let (mut map, mut finish) = (mapper::MappingBuffers::default(), pairs::PairingBuffers::default());
    let mut insert_sizes = InsertSizesByOrientation::default();
    let mut drafts = Vec::new();
    for some in reads.chunks(if paired { 2 } else { 1 } * pieces) {
        let mut mapped = MappedReads::default();
        mapper::map_reads(&view, options, vectors, &mut map, some.iter().map(Vec::as_slice), &mut mapped);
        if paired {
            (0..some.len()).step_by(2).for_each(|first| {
                insert_size::record_insert_size_if_unique(&mut insert_sizes, &view, &mapped, first, options)
            });
        }
        drafts.push(mapped);
    }
    let inserts = InsertSizeModels::estimate_from_insert_sizes(insert_sizes, options.match_score);
    let inserts = paired.then_some(&inserts);
    let mut all = Vec::new();
    for mapped in &mut drafts {
        let whole = |mapped: &MappedReads, place: &Placement| {
            let at = place.cigar_start as usize;
            (Placement { cigar_start: 0, ..*place }, mapped.cigars[at..at + usize::from(place.num_cigar_ops)].to_vec())
        };
        pairs::pair_and_report_templates(
            &view,
            options,
            vectors,
            &mut finish,
            mapped,
            inserts,
            |mapped, first, answers, proper| {
                assert_eq!((answers.len(), first % answers.len()), (if paired { 2 } else { 1 }, 0));
                let told = |answer: &pairs::ReadReport| {
                    (answer.placements.iter().map(|place| whole(mapped, place)).collect(), answer.segments.clone())
                };
                all.push((answers.iter().map(told).collect(), proper));
                Ok::<(), ()>(())
            },
        )
        .unwrap();
    }
    all
}

/// Best sum of consecutive scores.
fn best_part(scores: &[i32]) -> i32 {
    let (mut best, mut now) = (0, 0);
    for score in scores {
        now = (now + score).max(0);
        best = best.max(now);
    }
    best
}

/// Asserts that a placement is consistent with the read and the reference.
fn true_of(view: &IndexView<'_>, options: &ScoringOptions, read: &[u8], place: &Placement, operations: &[u32]) {
    let read = if place.reverse { reverse_complement(read) } else { read.to_ascii_uppercase() };
    let contig = &view.contigs[view.contig_index_at(place.ref_start())];
    assert!(place.from < place.to && usize::from(place.to) <= read.len());
    assert!(
        contig.start <= place.ref_start()
            && place.ref_start() < place.ref_end()
            && place.ref_end() <= contig.packed_end()
    );
    let whole = [u32::from(place.to - place.from) << 4 | CIGAR_MATCH];
    let operations = if operations.is_empty() { &whole } else { operations };
    assert!(operations.windows(2).all(|two| two[0] & 15 != two[1] & 15) && operations[0] & 15 == CIGAR_MATCH);
    let (mut at, mut target, mut scores) = (usize::from(place.from), place.ref_start(), Vec::new());
    for operation in operations {
        let n = (operation >> 4) as i32;
        assert!(n > 0);
        match operation & 15 {
            CIGAR_INSERTION => {
                at += n as usize;
                scores.push(-options.gap_open[1] - n * options.gap_extend[1]);
            }
            CIGAR_DELETION => {
                target += n as u64;
                scores.push(-options.gap_open[0] - n * options.gap_extend[0]);
            }
            kind => {
                assert_eq!(kind, CIGAR_MATCH);
                for (letter, target) in read[at..at + n as usize].iter().zip(target..) {
                    scores.push(match *letter {
                        letter if !is_acgt(letter) => AMBIGUOUS_BASE_SCORE,
                        letter if BASE_LETTERS[usize::from(view.base_code_at(target))] == letter => options.match_score,
                        _ => -options.mismatch_penalty,
                    });
                }
                (at, target) = (at + n as usize, target + n as u64);
            }
        }
    }
    assert_eq!((at, target), (usize::from(place.to), place.ref_end()));
    let part = best_part(&scores);
    // The score may be that of a part of the alignment without gaps that this one replaced.
    let replaced = place.is_gapped_alignment && place.score > part;
    assert!(place.score == part || replaced, "{} {part}", place.score);
    let [left, right] = options.left_and_right_clip_penalties(place.reverse);
    let clipped = if place.from > 0 { left } else { 0 } + if at < read.len() { right } else { 0 };
    assert_eq!(place.net_score, scores.iter().sum::<i32>() - clipped);
}

/// Asserts that the reports of a template are consistent.
fn check(view: &IndexView<'_>, options: &ScoringOptions, reads: &[Vec<u8>], (told, proper): &(Vec<Told>, bool)) {
    for (read, (placements, pieces)) in reads.iter().zip(told) {
        placements.iter().for_each(|(place, operations)| true_of(view, options, read, place, operations));
        for (i, piece) in pieces.iter().enumerate() {
            assert!(piece.mapq <= 60 && placements[piece.place].0.score >= options.min_score);
            assert!(pieces[..i].iter().all(|other| other.place != piece.place) && piece.mapq <= pieces[0].mapq);
        }
    }
    if *proper {
        let first =
            told.iter().map(|(placements, pieces)| view.contig_index_at(placements[pieces[0].place].0.ref_start()));
        let first: Vec<usize> = first.collect();
        assert_eq!(first[0], first[1], "mates lie on one sequence");
    }
}

/// Number of pairs in a block.
const BLOCK: usize = 2000;

#[test]
fn what_is_told_of_reads_is_true_and_the_same_however_they_come() {
    let pairs: usize = std::env::var("GENUMA_PAIRS").map_or(6000, |n| n.parse().unwrap());
    let others = [
        ScoringOptions { min_score: 0, ..ScoringOptions::default() },
        ScoringOptions { clip_penalty: [0, 0], min_score: 10, unpaired_penalty: 0, ..ScoringOptions::default() },
        ScoringOptions { clip_penalty: [100, 100], gap_open: [1, 1], ..ScoringOptions::default() },
        ScoringOptions {
            match_score: 2,
            mismatch_penalty: 3,
            gap_open: [5, 2],
            gap_extend: [1, 3],
            clip_penalty: [7, 4],
            min_score: 40,
            unpaired_penalty: 9,
        },
    ];
    let mut mapped = 0;
    for block in 0..pairs.div_ceil(BLOCK) {
        let mut dice = Dice(block as u64 + 2);
        let reads: Vec<Vec<u8>> = (0..BLOCK.min(pairs - block * BLOCK)).flat_map(|_| pair(&mut dice)).collect();
        // Every other block uses the default options.
        let options = if block % 2 == 0 { ScoringOptions::default() } else { others[block / 2 % others.len()] };
        let paired = block % 5 != 4;
        let first = told(&reads, paired, &options, SimdLevel::widest_available(), BLOCK);
        let view = REFERENCE.index.view();
        for (i, (template, told)) in reads.chunks(if paired { 2 } else { 1 }).zip(&first).enumerate() {
            let checked = std::panic::catch_unwind(|| check(&view, &options, template, told));
            let letters = || template.iter().map(|read| String::from_utf8_lossy(read)).collect::<Vec<_>>();
            assert!(checked.is_ok(), "template {i} of block {block}, {options:?}: {:?}: {told:?}", letters());
            mapped += told.0.iter().filter(|(_, pieces)| !pieces.is_empty()).count();
        }
        for (vectors, pieces) in
            SimdLevel::available_simd_levels().iter().zip([1 + dice.roll(7), 33, 1 + dice.roll(500), BLOCK])
        {
            let other = told(&reads, paired, &options, *vectors, pieces);
            for (i, (other, first)) in other.iter().zip(&first).enumerate() {
                assert_eq!(other, first, "template {i} of block {block}, {vectors:?}, {pieces} at a time, {options:?}");
            }
        }
    }
    assert!(mapped > pairs, "{mapped} of {pairs} pairs");
}

#[test]
fn reads_that_stand_in_one_place_are_found_there_for_sure() {
    let (mut dice, mut reads, mut placements) = (Dice(9), Vec::new(), Vec::new());
    let contig = &REFERENCE.contigs[1];
    let start = REFERENCE.index.contigs()[1].start;
    for _ in 0..2000 {
        let length = [100, 150, 250][dice.roll(3)];
        let insert = length + dice.roll(300);
        let at = dice.roll(contig.len() - insert);
        let fragment = &contig[at..at + insert];
        let mut mates = [
            (fragment[..length].to_vec(), at, false),
            (reverse_complement(&fragment[insert - length..]), at + insert - length, true),
        ];
        mates.rotate_left(dice.roll(2));
        for (read, at, reverse) in mates {
            reads.push(read);
            placements.push((start + at as u64, reverse));
        }
    }
    for paired in [true, false] {
        let all = told(&reads, paired, &ScoringOptions::default(), SimdLevel::widest_available(), BLOCK);
        assert!(all.iter().all(|(_, proper)| *proper == paired));
        let told: Vec<&Told> = all.iter().flat_map(|(told, _)| told).collect();
        for ((found, pieces), (expected, read)) in told.into_iter().zip(placements.iter().zip(&reads)) {
            assert_eq!(pieces.len(), 1);
            let (place, operations) = &found[pieces[0].place];
            assert_eq!((place.ref_start(), place.reverse), *expected);
            assert_eq!((place.score, operations.len()), (read.len() as i32, 0));
            assert_eq!(pieces[0].mapq, 60, "{paired}: {}", String::from_utf8_lossy(read));
        }
    }
}

#[test]
fn no_reads_at_all_are_mapped() {
    for paired in [true, false] {
        assert_eq!(told(&[], paired, &ScoringOptions::default(), SimdLevel::widest_available(), 5), []);
        let empty =
            told(&[Vec::new(), Vec::new()], paired, &ScoringOptions::default(), SimdLevel::widest_available(), 5);
        assert!(
            empty
                .iter()
                .flat_map(|(told, _)| told)
                .all(|(placements, pieces)| placements.is_empty() && pieces.is_empty())
        );
    }
}
