use std::collections::BTreeMap;

use genuma_kmers::encode::pack;
use genuma_reads::packed_bases::CodesAndPackedBases;
use genuma_reads::{Mate, ReadPair, dna};

use super::mate_kmers::{canonical_key_and_is_palindrome, has_kmer_min_quality, hash_read_starts};
use super::molecules::MAX_MOLECULES_IN_PROBABILITY_TABLE;
use super::pattern::PATTERN_BITS;
use super::*;

/// The matrix agrees with random read starts.
#[test]
fn molecule_count_matrix_matches_random_starts() {
    let mut seed = 3u64;
    let mut begin = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        seed >> 40
    };
    for (molecules, chances) in probabilities_of_counted_molecules().iter().enumerate() {
        let mut seen = [0u32; MAX_MOLECULES_IN_PROBABILITY_TABLE + 1];
        const TRIES: u32 = 20_000;
        for _ in 0..TRIES {
            let mut all = PairAndMoleculeCount::default();
            (0..molecules).for_each(|_| all.merge_count(PairAndMoleculeCount::of_one_pair(begin())));
            seen[all.num_molecules_if_few_bits().unwrap() as usize] += 1;
        }
        for (told, (seen, chance)) in seen.into_iter().zip(chances).enumerate() {
            let (seen, most) = (f64::from(seen) / f64::from(TRIES), 0.001 + 5.0 * (chance / f64::from(TRIES)).sqrt());
            assert!((seen - chance).abs() < most, "{molecules} told as {told}: {seen}, {chance}");
        }
    }
}

fn random(n: usize, mut seed: u64) -> Vec<u8> {
    let mut next = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        b"ACGT"[(seed >> 62) as usize]
    };
    (0..n).map(|_| next()).collect()
}

/// Read pairs of a random genome, from both strands: mates of 100 bases, fragments of 150 to 450.
fn pairs(genome: &[u8], n: usize) -> Vec<[Vec<u8>; 2]> {
    let piece = |i: usize| {
        let (start, len) = ((i * 7919) % (genome.len() - 450), 150 + (i * 31) % 300);
        let fragment = &genome[start..start + len];
        let fragment = if i.is_multiple_of(2) { fragment.to_vec() } else { dna::reverse_complement(fragment) };
        [fragment[..100].to_vec(), dna::reverse_complement(&fragment)[..100].to_vec()]
    };
    (0..n).map(piece).collect()
}

fn packed(seq: &[u8]) -> CodesAndPackedBases {
    let mut codes = CodesAndPackedBases::default();
    codes.encode_bases(seq, seq, 0);
    codes
}

fn sampled(pairs: &[[Vec<u8>; 2]], qual: &[u8], params: SketchParams) -> KmerSketch {
    let sampling = SketchBuilder::empty(params);
    let mut sampler = sampling.new_writer();
    for (i, [a, b]) in pairs.iter().enumerate() {
        let mate = |seq| Mate { seq, qual };
        let codes = [a, b].map(|seq| packed(seq));
        let pair = ReadPair { name: b"p", mates: [mate(a), mate(b)] };
        sampler.add_pair(pair, codes.each_ref().map(CodesAndPackedBases::packed_bases), (i % 2) as u8);
    }
    drop(sampler);
    sampling.take_sketch()
}

#[test]
fn sketch_contains_matching_roots_once_per_pair() {
    let genome = random(4_000, 1);
    let pairs = pairs(&genome, 400);
    for k in [24, 25, 31, 32] {
        let params =
            SketchParams { k, min_quality: [20, 30], max_kmers_small_genome: usize::MAX, max_kmers: usize::MAX };
        // Expected counts from the letters.
        let mut expected: BTreeMap<u64, [PairAndMoleculeCount; 2]> = BTreeMap::new();
        for (i, mates) in pairs.iter().enumerate() {
            let keys = |seq: &Vec<u8>| -> Vec<u64> {
                seq.windows(k as usize)
                    .map(|w| canonical_key_and_is_palindrome(pack(w).unwrap(), k))
                    .filter(|key| !key.1)
                    .map(|key| key.0)
                    .collect()
            };
            let [mut own, other] = mates.each_ref().map(keys);
            own.extend(other);
            own.sort_unstable();
            own.dedup();
            assert!(own.is_sorted_by(|a, b| a >> 4 != b >> 4), "no root twice in a random genome");
            let [a, b] = mates.each_ref().map(|seq| Mate { seq, qual: &[] });
            let [one, two] = mates.each_ref().map(|seq| packed(seq));
            let once =
                hash_read_starts(&ReadPair { name: b"p", mates: [b, a] }, [two.packed_bases(), one.packed_bases()]);
            let once = PairAndMoleculeCount::of_one_pair(once);
            own.iter().for_each(|key| expected.entry(*key).or_default()[i % 2].merge_count(once));
        }
        let whole = sampled(&pairs, &[70; 100], params);
        assert_eq!((whole.level, whole.counts.len()), (0, expected.len()));
        assert!(whole.counts.iter().copied().eq(expected.clone()));
        for (few, most) in [3_000, 500, 100, 2].map(|most| (usize::MAX, most)).into_iter().chain([
            (4, usize::MAX),
            (1_000, usize::MAX),
            (3, 90),
        ]) {
            let params = SketchParams { max_kmers_small_genome: few, max_kmers: most, ..params };
            let part = sampled(&pairs, &[70; 100], params);
            let fits: Vec<_> =
                expected.iter().filter(|(key, _)| params.sampling_level_of_key(**key) >= part.level).collect();
            assert!(part.counts.iter().map(|(key, count)| (key, count)).eq(fits.iter().copied()), "{few} {most}");
            let fit = |level| expected.keys().filter(|key| params.sampling_level_of_key(**key) >= level).count();
            assert!(part.counts.len() <= params.max_kmers_at_level(part.level));
            assert!((0..part.level).all(|level| fit(level) > params.max_kmers_at_level(level)), "as many as have room");
            // In another order, and in two shards.
            let turned: Vec<_> = pairs.iter().rev().cloned().collect();
            assert_eq!(pairs.len() % 2, 0);
            let other = sampled(&turned, &[70; 100], params);
            let swapped = |c: &(u64, [PairAndMoleculeCount; 2])| (c.0, [c.1[1], c.1[0]]);
            assert!(other.level == part.level && other.counts.iter().map(swapped).eq(part.counts.clone()));
            let together = SketchBuilder::empty(params);
            for shard in [&pairs[..100], &pairs[100..]] {
                together.merge_sketch(&sampled(shard, &[70; 100], params));
            }
            assert_eq!(together.take_sketch(), part);
        }
    }
}

#[test]
fn positions_of_matching_roots_are_found() {
    let seq = random(333, 3);
    for (bases, level) in [(29, 0), (29, 1), (29, 4), (29, 10), (29, 14), (30, 5), (23, 3), (10, 5), (11, 2)] {
        let params = SketchParams { k: bases + 2, min_quality: [0; 2], max_kmers_small_genome: 1, max_kmers: 1 };
        let (mut memory, mut fit) = Default::default();
        SketchRootSampling { root_bases: bases, pattern_level: level }.find_pattern_matches(
            packed(&seq).packed_bases(),
            &mut memory,
            &mut fit,
        );
        for (at, root) in seq.windows(bases as usize).enumerate() {
            let fits = params.sampling_level_of_key(pack(root).unwrap() << 4) >= level.min(PATTERN_BITS).min(bases / 2);
            assert_eq!(fit[at / 64] << (at % 64) >> 63 == 1, fits, "{bases} {level} {at}");
        }
    }
}

#[test]
fn both_strands_match_equally_and_poor_bases_do_not_count() {
    let params =
        SketchParams { k: 31, min_quality: [20, 30], max_kmers_small_genome: usize::MAX, max_kmers: usize::MAX };
    let seq = random(3_000, 5);
    let levels = |seq: &[u8]| -> Vec<u32> {
        let keys = seq.windows(31).map(|w| canonical_key_and_is_palindrome(pack(w).unwrap(), 31));
        keys.map(|(key, _)| params.sampling_level_of_key(key)).collect()
    };
    let (here, mut there) = (levels(&seq), levels(&dna::reverse_complement(&seq)));
    there.reverse();
    assert_eq!(here, there);
    let half = here.iter().filter(|level| **level >= 1).count();
    assert!((1_300..1_700).contains(&half), "{half}");
    let one = vec![[seq[..100].to_vec(), seq[500..600].to_vec()]];
    let mut qual = [70u8; 100];
    assert_eq!(sampled(&one, &qual, params).counts.len(), 140);
    qual[50] = 33 + 19;
    assert_eq!(sampled(&one, &qual, params).counts.len(), 140 - 2 * 31);
    qual[50] = 33 + 29;
    assert_eq!(sampled(&one, &qual, params).counts.len(), 140 - 2 * 2);
    qual[50] = 33 + 30;
    assert_eq!(sampled(&one, &qual, params).counts.len(), 140);
    // A letter other than A, C, G or T never counts, whatever its quality.
    let mut unknown = one.clone();
    unknown[0][0][50] = b'N';
    assert_eq!(sampled(&unknown, &qual, params).counts.len(), 140 - 31);
    for (length, at, letter) in (12..=32).flat_map(|k| (0..k).map(move |at| (k, at, 33 + (7 * at % 50) as u8))) {
        let mut qual = vec![33 + 30; length];
        qual[at] = letter;
        let wanted = if at == 0 || at == length - 1 { 30 } else { 20 };
        assert_eq!(has_kmer_min_quality(&qual, [20, 30]), letter - 33 >= wanted, "{length} {at} {letter}");
    }
}

#[test]
fn duplicates_of_a_molecule_count_once() {
    let genome = random(100_000, 9);
    let pairs = pairs(&genome, 4_000);
    let params =
        SketchParams { k: 31, min_quality: [20, 30], max_kmers_small_genome: usize::MAX, max_kmers: usize::MAX };
    let depth = |of: &KmerSketch| {
        of.root_counters_in_molecules().flat_map(|root| root.counts).map(|c| u64::from(c[0] + c[1])).sum::<u64>()
    };
    let once = sampled(&pairs, &[70; 100], params);
    let copied: Vec<_> = pairs.iter().flat_map(|pair| [pair, pair, pair]).cloned().collect();
    // Each pair three times, alternating between the samples: each sample has it one and a half times.
    let thrice = sampled(&copied, &[70; 100], params);
    assert!(
        once.duplicate_shares()[0] < 0.03 && thrice.duplicate_shares().iter().all(|c| (0.28..0.42).contains(c)),
        "{:?}",
        thrice.duplicate_shares()
    );
    let (one, three) = (depth(&once) as f64, depth(&thrice) as f64);
    assert!(three < 2.2 * one, "{one} {three}");
}

/// The index finds the roots whose k-mers together have enough read pairs of both samples.
#[test]
fn root_index_contains_the_roots_with_enough_read_pairs() {
    let counts = |pairs: [u32; 2]| pairs.map(|pairs| PairAndMoleculeCount { pairs, ..Default::default() });
    let params = SketchParams { k: 31, min_quality: [20, 30], max_kmers_small_genome: 100, max_kmers: 100 };
    let kmers = vec![
        (5 << 4, counts([1, 0])),
        (5 << 4 | 3, counts([1, 1])),
        (7 << 4 | 2, counts([0, 1])),
        (9 << 4, counts([900, 1])),
    ];
    let sketch = KmerSketch { params, level: 0, counts: kmers };
    for (min_pairs, expected) in [(1, vec![5, 7, 9]), (2, vec![5, 9]), (3, vec![5, 9]), (4, vec![9]), (902, vec![])] {
        let index = sketch.build_root_index(min_pairs);
        let found: Vec<u64> = (0..12).filter(|&root| index.contains(root)).collect();
        assert_eq!(found, expected, "at least {min_pairs} pairs");
    }
}
