//! Tandem repeats with units of 7 to 60 bp (minisatellites) in reads.
//!
//! A repeat of k bases and more that gains or loses a unit has no new k-mer if the shorter allele contains all k-mers
//! of the longer one. So [`crate::tandem_repeat`] makes artificial k-mers of the flanks and the length. This module
//! finds the repeats: first by a test with vector instructions that most reads fail, then base by base.

use std::ops::Range;

use genuma_kmers::run_with_widest_simd;
use genuma_reads::packed_bases::{PackedBases, WORD_BASES};

/// Minimum length of a unit in bp: one more than that of short tandem repeats.
pub(crate) const MIN_MINISATELLITE_UNIT_BP: usize = 7;
/// Maximum length of a unit in bp. Chosen: with flanks, a read of 150 bp holds two units of this length.
pub(crate) const MAX_MINISATELLITE_UNIT_BP: usize = 60;
/// Minimum length of a repeat in bp. Chosen: if the length of a shorter repeat changes, its k-mers with both flanks are
/// new.
const MIN_REPEAT_BP: usize = 28;
/// Minimum number of bases of a repeat that equal the base one unit before. Chosen: of reads of 150 random bases, one
/// in ten thousand has such a stretch by chance.
pub(crate) const MIN_BASES_EQUAL_ONE_UNIT_BEFORE: usize = 14;
/// Number of bases of a seed: consecutive bases that are compared at once.
const SEED_BP: usize = 8;
/// Distance in bp between compared seeds. Each minisatellite contains a whole seed that is repeated one unit later.
const SEED_STEP_BP: usize = MIN_BASES_EQUAL_ONE_UNIT_BEFORE - SEED_BP + 1;
/// Maximum unit length in bp of short tandem repeats, which are excluded here.
const MAX_SHORT_DISTANCE_BP: usize = 6;
/// If at least this percentage of the bases of a sequence equal the base a short distance before, the sequence is a
/// short tandem repeat with a few other bases, not a minisatellite. Chosen: of random bases 25 percent do.
const MIN_SHORT_REPEAT_PERCENT: usize = 60;

/// Maximum drop of the score over which a repeat is extended. Chosen: four other bases in a row.
const MAX_EXTENSION_SCORE_DROP: i32 = 8;

/// Number of seed positions that are tested together.
const BLOCK_POSITIONS: usize = 26 * SEED_STEP_BP;
/// Number of positions whose bases are needed to test a block: those of the seeds, and of the later ones that are
/// compared with them.
const BLOCK_BASES: usize = 256;
/// Number of later seeds that a seed is compared with: one for each unit length, and some more to fill whole vectors.
const COMPARED_SEEDS: usize = 64;
const _: () = assert!(
    MAX_MINISATELLITE_UNIT_BP < MIN_MINISATELLITE_UNIT_BP + COMPARED_SEEDS
        && BLOCK_POSITIONS - SEED_STEP_BP + MIN_MINISATELLITE_UNIT_BP + COMPARED_SEEDS <= BLOCK_BASES
        && BLOCK_BASES.is_multiple_of(WORD_BASES)
);

/// The seeds of the block of bases that starts at `at` that are repeated 7 to 60 bp later: one bit for each seed, the
/// first one lowest. `bases` is the length of the read. False positives are possible, false negatives are not.
#[inline(always)]
fn repeated_seeds_of_block(read: PackedBases<'_>, at: usize, bases: usize) -> u32 {
    let positions = (bases - at + 1).saturating_sub(SEED_BP + MIN_MINISATELLITE_UNIT_BP).min(BLOCK_POSITIONS);
    let mut seeds = [0u16; BLOCK_BASES];
    let words = (bases - at).div_ceil(WORD_BASES);
    for (word, to) in seeds.as_chunks_mut::<WORD_BASES>().0.iter_mut().enumerate().take(words) {
        for (seed, sixteen) in to.iter_mut().zip(read.next_32_sixteen_mers(at + word * WORD_BASES)) {
            *seed = (sixteen >> 16) as u16;
        }
    }
    let mut repeated = 0;
    for number in 0..positions.div_ceil(SEED_STEP_BP) {
        let seed = number * SEED_STEP_BP;
        let later = seeds[seed + MIN_MINISATELLITE_UNIT_BP..].first_chunk::<COMPARED_SEEDS>().expect("a whole block");
        let equal = later.iter().fold(0, |any, other| any | u16::from(*other == seeds[seed]));
        repeated |= u32::from(equal) << number;
    }
    repeated
}

/// The positions of the seeds among the first `bases` bases of a read that are repeated 7 to 60 bp later, in order.
fn repeated_seeds(read: PackedBases<'_>, bases: usize) -> impl Iterator<Item = usize> {
    (0..bases).step_by(BLOCK_POSITIONS).flat_map(move |at| {
        let mut repeated = 0;
        run_with_widest_simd(
            #[inline(always)]
            || repeated = repeated_seeds_of_block(read, at, bases),
        );
        std::iter::from_fn(move || {
            let number = repeated.trailing_zeros() as usize;
            (repeated != 0).then(|| {
                repeated &= repeated - 1;
                at + number * SEED_STEP_BP
            })
        })
    })
}

/// Calls `each` with the range and the unit length in bp of every minisatellite, in order of start. `read` is the
/// packed form of `seq`.
pub(crate) fn for_each_minisatellite(seq: &[u8], read: PackedBases<'_>, each: impl FnMut(Range<usize>, usize)) {
    if seq.len() >= MIN_REPEAT_BP {
        extend_seeds(seq, repeated_seeds(read, seq.len()), each);
    }
}

/// Finds minisatellites: extends the seeds at the given positions that are repeated 7 to 60 bp later. Skips seeds in
/// short tandem repeats.
fn extend_seeds(seq: &[u8], seeds: impl Iterator<Item = usize>, mut each: impl FnMut(Range<usize>, usize)) {
    let seed_at = |at: usize| seq.get(at..at + SEED_BP);
    let mut done = 0;
    for at in seeds {
        let Some(seed) = seed_at(at) else { break };
        // The seed of a short tandem repeat is equal at many distances.
        if at < done || (1..=MAX_SHORT_DISTANCE_BP).any(|distance| seed_at(at + distance) == Some(seed)) {
            continue;
        }
        let units = MIN_MINISATELLITE_UNIT_BP..=MAX_MINISATELLITE_UNIT_BP;
        for unit in units.filter(|unit| seed_at(at + unit) == Some(seed)) {
            let range = extend_repeat(seq, at, unit);
            if range.len() >= min_minisatellite_length_bp(unit) && is_minisatellite(&seq[range.clone()]) {
                done = range.end;
                each(range, unit);
                break;
            }
        }
    }
}

/// Minimum length in bp of a minisatellite with units of `unit` bp.
pub(crate) fn min_minisatellite_length_bp(unit: usize) -> usize {
    MIN_REPEAT_BP.max(unit + MIN_BASES_EQUAL_ONE_UNIT_BEFORE)
}

/// Whether the bases are a single minisatellite from the first to the last base.
pub(crate) fn consists_of_one_minisatellite(bases: &[u8]) -> bool {
    let is_repeated = |unit: usize| {
        bases.len() >= min_minisatellite_length_bp(unit) && bases.iter().zip(&bases[unit..]).all(|(a, b)| a == b)
    };
    (MIN_MINISATELLITE_UNIT_BP..=MAX_MINISATELLITE_UNIT_BP.min(bases.len())).any(is_repeated) && is_minisatellite(bases)
}

/// The minisatellites of a sequence, each extended over single other bases, with its unit length in bp.
pub(crate) fn find_imperfect_minisatellites(seq: &[u8]) -> Vec<(Range<usize>, usize)> {
    let mut found = Vec::new();
    extend_seeds(seq, (0..seq.len()).step_by(SEED_STEP_BP), |range, unit| {
        let equals_next = |i: usize| seq[i] == seq[i + unit];
        let start = range.start - num_positions_extending_repeat((0..range.start).rev().map(equals_next));
        let repeated = range.end - unit..seq.len() - unit;
        let end = range.end + num_positions_extending_repeat(repeated.map(equals_next));
        found.push((start..end, unit));
    });
    found
}

/// Number of positions by which a repeat is extended. `repeats` says for each position whether its base is the one a
/// unit away. Positions are added as long as more than two of three are.
pub(crate) fn num_positions_extending_repeat(repeats: impl Iterator<Item = bool>) -> usize {
    let (mut score, mut best, mut len) = (0i32, 0i32, 0);
    for (i, is_repeated) in repeats.enumerate() {
        score += if is_repeated { 1 } else { -2 };
        if score > best {
            (best, len) = (score, i + 1);
        }
        if score + MAX_EXTENSION_SCORE_DROP < best {
            break;
        }
    }
    len
}

/// The longest range around `at` in which each base equals the base `unit` bases after or before it.
fn extend_repeat(seq: &[u8], at: usize, unit: usize) -> Range<usize> {
    let equals_next = |i: &usize| seq[*i] == seq[i + unit];
    let start = at - (0..at).rev().take_while(equals_next).count();
    let repeated = (at..seq.len() - unit).take_while(equals_next).count();
    start..at + repeated + unit
}

/// Whether a sequence with repeated bases is a minisatellite: it is not a short tandem repeat with a few other bases,
/// and has no N.
fn is_minisatellite(bases: &[u8]) -> bool {
    let is_short_repeat = |distance: usize| {
        let equal = bases.iter().zip(&bases[distance..]).filter(|(a, b)| a == b).count();
        equal * 100 >= MIN_SHORT_REPEAT_PERCENT * (bases.len() - distance)
    };
    !bases.contains(&b'N') && !(1..=MAX_SHORT_DISTANCE_BP).any(is_short_repeat)
}

#[cfg(test)]
mod tests {
    use super::*;
    use genuma_reads::packed_bases::CodesAndPackedBases;

    struct Bases(u64);

    impl Bases {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 33) as usize % n
        }

        fn draw(&mut self, n: usize) -> Vec<u8> {
            (0..n).map(|_| b"ACGT"[self.below(4)]).collect()
        }
    }

    fn find_in(seq: &[u8]) -> Vec<(Range<usize>, usize)> {
        let mut codes = CodesAndPackedBases::default();
        codes.encode_bases(seq, seq, 0);
        let mut found = Vec::new();
        for_each_minisatellite(seq, codes.packed_bases(), |range, unit| found.push((range, unit)));
        found
    }

    #[test]
    fn minisatellites_of_all_units_are_found_whole() {
        let mut bases = Bases(3);
        let (mut made, mut exact) = (0, 0);
        for unit in MIN_MINISATELLITE_UNIT_BP..=MAX_MINISATELLITE_UNIT_BP {
            for before in 10..24 {
                let one = bases.draw(unit);
                let len = MIN_REPEAT_BP.max(unit + MIN_BASES_EQUAL_ONE_UNIT_BEFORE) + bases.below(40);
                let repeat: Vec<u8> = one.iter().copied().cycle().take(len).collect();
                if !is_minisatellite(&repeat) {
                    continue;
                }
                let seq = [bases.draw(before), repeat, bases.draw(20)].concat();
                let found = find_in(&seq);
                let holds = |(range, _): &&(Range<usize>, usize)| range.start <= before && range.end >= before + len;
                let whole: Vec<_> = found.iter().filter(holds).collect();
                assert_eq!(whole.len(), 1, "unit {unit}: {found:?} in {}", String::from_utf8_lossy(&seq));
                made += 1;
                exact += usize::from(whole[0].1 == unit);
            }
        }
        assert!(made > 700 && exact * 100 >= made * 99, "{exact} of {made}");
    }

    #[test]
    fn unrelated_bases_and_short_repeats_are_no_minisatellites() {
        let mut bases = Bases(11);
        let false_finds = (0..2_000).filter(|_| !find_in(&bases.draw(150)).is_empty()).count();
        assert!(false_finds <= 2, "{false_finds}");
        let flank = bases.draw(30);
        for unit in [&b"A"[..], b"AC", b"CAG", b"AATG", b"ACGTT", b"AACCGT"] {
            // Also with one other base in the middle.
            let seq =
                [&flank, &unit.repeat(48 / unit.len()), &b"GC"[..], &unit.repeat(48 / unit.len()), &flank].concat();
            assert_eq!(find_in(&seq), [], "{}", String::from_utf8_lossy(&seq));
        }
        assert_eq!(find_in(&[&flank, &b"N".repeat(60)[..], &flank].concat()), []);
        assert_eq!(find_in(b"ACGT"), []);
    }

    #[test]
    fn the_fast_test_misses_nothing() {
        let mut bases = Bases(29);
        let (mut with, mut passed) = (0, 0);
        for round in 0..20_000 {
            let len = bases.below(400);
            let mut seq = bases.draw(len);
            if round % 2 == 0 {
                let unit = 7 + bases.below(54);
                let one = bases.draw(unit);
                let repeat_len = unit + 10 + bases.below(30);
                let at = bases.below(seq.len() + 1);
                seq.splice(at..at, one.into_iter().cycle().take(repeat_len));
            }
            let mut expected = Vec::new();
            extend_seeds(&seq, (0..seq.len()).step_by(SEED_STEP_BP), |range, unit| expected.push((range, unit)));
            assert_eq!(find_in(&seq), expected, "{}", String::from_utf8_lossy(&seq));
            with += usize::from(!expected.is_empty());
            let mut codes = CodesAndPackedBases::default();
            codes.encode_bases(&seq, &seq, 0);
            let seeds: Vec<_> = repeated_seeds(codes.packed_bases(), seq.len()).collect();
            let scalar = (0..seq.len())
                .step_by(BLOCK_POSITIONS)
                .map(|at| (repeated_seeds_of_block(codes.packed_bases(), at, seq.len())).count_ones() as usize);
            assert_eq!(seeds.len(), scalar.sum::<usize>());
            passed += usize::from(!seeds.is_empty());
        }
        assert!(with > 5_000 && passed < 12_000, "{with} {passed}");
    }
}
