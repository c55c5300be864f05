use genuma_reads::fasta;

use super::extend::ScoredUngappedRange;
use super::ranking::query_range;
use super::*;

pub(super) struct TestRng(pub u64);

impl TestRng {
    pub(super) fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % sides
    }

    pub(super) fn bases(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| b"ACGT"[self.below(4)]).collect()
    }
}

fn genome(sequences: Vec<Vec<u8>>) -> Reference {
    let contig = |(i, seq)| fasta::Contig { name: format!("s{i}"), seq };
    Reference::from_contigs(sequences.into_iter().enumerate().map(contig).collect())
}

fn scan<T>(genome: &Reference, threads: usize, memory: u64, find: impl Fn(ReferenceScan<'_>) -> T) -> T {
    find(ReferenceScan {
        genome,
        regions: None,
        threads,
        memory_bytes: memory,
        meter: &ProgressCounters::new("the reference"),
    })
}

fn find_hits_of(genome: &Reference, sequence: &[u8]) -> Vec<Hit> {
    scan(genome, 1, 0, |scan| scan.find_hits(&[sequence])).hits.remove(0)
}

fn cigar(hit: &Hit) -> String {
    let letter = |kind| match kind {
        CigarKind::Ins => 'I',
        CigarKind::Del => 'D',
        _ => 'M',
    };
    hit.cigar.iter().map(|op| format!("{}{}", op.len, letter(op.kind))).collect()
}

/// Asserts that score and number of equal bases of a hit follow from its alignment.
fn assert_score_is_consistent(hit: &Hit, sequence: &[u8], genome: &Reference) {
    let own = &sequence[query_range(hit)];
    let own = if hit.strand == Strand::Reverse { reverse_complement(own) } else { own.to_vec() };
    let target = &genome.contigs[hit.tid].seq[hit.ref_start..hit.ref_end];
    let (mut q, mut t, mut score, mut equal) = (0, 0, 0, 0);
    for op in &hit.cigar {
        let n = op.len as usize;
        match op.kind {
            CigarKind::Ins => (q, score) = (q + n, score - 6 - n as i32),
            CigarKind::Del => (t, score) = (t + n, score - 6 - n as i32),
            _ => {
                for i in 0..n {
                    let same = own[q + i] == target[t + i];
                    (score, equal) = if same { (score + 1, equal + 1) } else { (score - 4, equal) };
                }
                (q, t) = (q + n, t + n);
            }
        }
    }
    assert_eq!((q, t, score, equal), (own.len(), target.len(), hit.score, hit.matching_bases), "{hit:?}");
}

#[test]
fn parts_of_a_sequence_lie_where_they_were_taken_from() {
    let mut rng = TestRng(1);
    let genome = genome(vec![rng.bases(30_000), rng.bases(20_000)]);
    for _ in 0..300 {
        // Two parts, each from a random position and strand, each with a few substitutions away from its ends.
        let mut part = || {
            let (chrom, length, reverse) = (rng.below(2), 60 + rng.below(200), rng.below(2) == 1);
            let seq = &genome.contigs[chrom].seq;
            let start = rng.below(seq.len() - length);
            let mut bases = seq[start..start + length].to_vec();
            for _ in 0..rng.below(3) {
                let at = 25 + rng.below(length - 50);
                bases[at] = b"CGTA"[b"ACGT".iter().position(|b| *b == bases[at]).unwrap()];
            }
            let bases = if reverse { reverse_complement(&bases) } else { bases };
            (chrom, start, length, reverse, bases)
        };
        let parts = [part(), part()];
        let sequence = [&parts[0].4[..], &parts[1].4].concat();
        let hits = find_hits_of(&genome, &sequence);
        hits.iter().for_each(|hit| assert_score_is_consistent(hit, &sequence, &genome));
        for (i, (chrom, start, length, reverse, _)) in parts.iter().enumerate() {
            let from = if i == 0 { 0 } else { parts[0].2 };
            let near = |a: usize, b: usize| a.abs_diff(b) <= 12;
            let found = hits.iter().any(|hit| {
                hit.tid == *chrom
                    && (hit.strand == Strand::Reverse) == *reverse
                    && near(hit.ref_start, *start)
                    && near(hit.ref_end, start + length)
                    && near(hit.query_start, from)
                    && !hit.is_secondary
            });
            assert!(found, "{chrom} {start} {length} {reverse} of {hits:?}");
        }
        assert_eq!(hits.iter().filter(|hit| hit.is_primary).count(), 1);
    }
}

#[test]
fn short_gaps_are_within_a_hit_and_long_ones_part_it() {
    let mut rng = TestRng(2);
    let genome = genome(vec![rng.bases(20_000)]);
    let seq = &genome.contigs[0].seq;
    for n in [1, 2, 5, 12, 19, 35] {
        let without = [&seq[5000..5100], &seq[5100 + n..5200]].concat();
        for (sequence, reverse) in [(without.clone(), false), (reverse_complement(&without), true)] {
            let hits = find_hits_of(&genome, &sequence);
            assert_eq!(hits.len(), 1, "{hits:?}");
            assert_score_is_consistent(&hits[0], &sequence, &genome);
            assert_eq!((hits[0].ref_start, hits[0].ref_end), (5000, 5200));
            assert_eq!(hits[0].strand == Strand::Reverse, reverse);
            assert!(cigar(&hits[0]).contains(&format!("{n}D")), "{}", cigar(&hits[0]));
        }
        let with = [&seq[5000..5100], &rng.bases(n), &seq[5100..5200]].concat();
        let hits = find_hits_of(&genome, &with);
        assert_eq!((hits.len(), hits[0].ref_start, hits[0].ref_end), (1, 5000, 5200), "{hits:?}");
        assert_score_is_consistent(&hits[0], &with, &genome);
        assert_eq!((hits[0].score, hits[0].mapq), (200 - 6 - n as i32, 60), "{}", cigar(&hits[0]));
    }
    let parted = [&seq[5000..5100], &seq[5150..5250]].concat();
    let hits = find_hits_of(&genome, &parted);
    assert_eq!(hits.len(), 2);
    assert!(hits.iter().all(|hit| hit.cigar.len() == 1 && !hit.is_secondary && hit.score >= 100));
}

#[test]
fn a_copy_is_secondary_and_nobody_is_sure_of_equals() {
    let mut rng = TestRng(3);
    let unit = rng.bases(300);
    let mut near = unit.clone();
    near[150] = if near[150] == b'A' { b'C' } else { b'A' };
    let genome = genome(vec![[rng.bases(2000), unit.clone(), rng.bases(2000), near, rng.bases(2000)].concat()]);
    let hits = find_hits_of(&genome, &unit);
    assert_eq!(hits.len(), 2);
    assert_eq!((hits[0].ref_start, hits[0].score, hits[0].mapq), (2000, 300, 15));
    assert_eq!((hits[1].ref_start, hits[1].score, hits[1].mapq), (4300, 295, 0));
    assert!(hits[0].is_primary && !hits[0].is_secondary && hits[1].is_secondary && !hits[1].is_primary);
}

#[test]
fn threads_batches_and_chunks_do_not_show() {
    let mut rng = TestRng(4);
    let unit = rng.bases(400);
    let mut seq = rng.bases(CHUNK_BP - 200);
    // One copy spans the border of two chunks, and 150 copies follow each other.
    seq.extend(&unit);
    for _ in 0..150 {
        let mut copy = unit.clone();
        for _ in 0..40 {
            copy[rng.below(400)] = b"ACGT"[rng.below(4)];
        }
        seq.extend(copy);
        seq.extend(rng.bases(50));
    }
    let genome = genome(vec![seq]);
    let mut sequences: Vec<Vec<u8>> = (0..60)
        .map(|_| {
            let at = rng.below(genome.contigs[0].seq.len() - 300);
            genome.contigs[0].seq[at..at + 300].to_vec()
        })
        .collect();
    sequences.push(unit.clone());
    let all: Vec<&[u8]> = sequences.iter().map(Vec::as_slice).collect();
    let with = |threads, memory| scan(&genome, threads, memory, |scan| scan.find_hits(&all));
    let (one, two) = (with(1, 1 << 30), with(2, 0));
    assert_eq!(one.hits, two.hits);
    // The unit, and the sequences within its copies.
    assert_eq!((one.sequences_with_dropped_hits, one.num_repetitive_sequences), (two.sequences_with_dropped_hits, 0));
    assert!(one.sequences_with_dropped_hits >= 1, "{}", one.sequences_with_dropped_hits);
    let last = one.hits.last().unwrap();
    assert_eq!((last[0].ref_start, last[0].score), (CHUNK_BP - 200, 400));
    assert!(last.len() >= MAX_HITS_PER_PART && last.len() < MIN_SEGMENTS_TO_DROP_DOMINATED, "{}", last.len());
    for (hits, sequence) in one.hits.iter().zip(&all) {
        assert_eq!(hits, &scan(&genome, 2, 0, |scan| scan.find_hits(&[sequence])).hits[0]);
        hits.iter().for_each(|hit| assert_score_is_consistent(hit, sequence, &genome));
    }
}

#[test]
fn what_stands_everywhere_is_counted() {
    let mut rng = TestRng(5);
    let unit = rng.bases(60);
    let mut seq = rng.bases(1000);
    for _ in 0..MAX_COUNT_RAREST_SEED + 100 {
        seq.extend(&unit);
        seq.extend(rng.bases(3));
    }
    let genome = genome(vec![seq]);
    let whole = [&genome.contigs[0].seq[800..1000], &unit].concat();
    let some = [&whole[..], &unit, &genome.contigs[0].seq[100..300]];
    let found = scan(&genome, 1, 0, |scan| scan.find_hits(&some));
    assert_eq!(found.num_repetitive_sequences, 2);
    // The unique bases place the sequence where it was taken from, with all its bases.
    assert_eq!((found.hits[0][0].ref_start, found.hits[0][0].score), (800, 260));
    assert!(found.hits[1].is_empty());
    assert_eq!(found.hits[2].len(), 1);
}

#[test]
fn of_equal_places_mates_believe_those_that_fit() {
    let mut rng = TestRng(6);
    let unit = rng.bases(150);
    let mut seq = rng.bases(3000);
    for _ in 0..4 {
        seq.extend(&unit);
        seq.extend(rng.bases(3000));
    }
    let genome = genome(vec![seq]);
    let seq = &genome.contigs[0].seq;
    let pairs = |pairs: &[[&[u8]; 2]]| {
        let ScanResult { hits, num_repetitive_sequences, sequences_with_dropped_hits } =
            scan(&genome, 1, 0, |scan| scan.find_hits(pairs.as_flattened()));
        let mut hits: Vec<[Vec<Hit>; 2]> = hits.as_chunks().0.to_vec();
        let apart = estimate_max_insert_size(&hits).unwrap_or(FALLBACK_MAX_INSERT_SIZE_BP);
        hits.iter_mut().for_each(|mates| choose_best_pair_and_set_mapq(mates, apart));
        (hits, num_repetitive_sequences, sequences_with_dropped_hits)
    };
    for copy in 0..4 {
        let at = 3000 + copy * 3150;
        let mate = reverse_complement(&seq[at + 250..at + 400]);
        let (hits, num_repetitive_sequences, sequences_with_dropped_hits) = pairs(&[[&unit, &mate]]);
        let [one, two] = &hits[0];
        assert_eq!((one[0].ref_start, two[0].ref_start), (at, at + 250));
        assert!(one[0].is_primary && one[0].proper_pair && two[0].proper_pair && one[0].mapq == 40);
        assert!(one[1..].iter().all(|hit| hit.is_secondary && !hit.is_primary && !hit.proper_pair));
        assert_eq!((num_repetitive_sequences, sequences_with_dropped_hits), (0, 0));
    }
    // No pair of hits fits: each mate keeps its own hit.
    let (hits, ..) = pairs(&[[&unit, &seq[100..250]], [b"ACGT", b""]]);
    assert_eq!((hits[0][0][0].mapq, hits[0][1][0].mapq, hits[0][0][0].proper_pair), (0, 60, false));
    assert!(hits[1].iter().all(Vec::is_empty));
}

#[test]
fn only_what_begins_in_the_parts_that_go_past_is_found_and_goes_on_beyond_them() {
    let mut rng = TestRng(16);
    let genome = genome(vec![rng.bases(30_000), rng.bases(2_000_000)]);
    let seq = |chrom: usize| &genome.contigs[chrom].seq;
    let parts = [(0, 1_000..2_000), (0, 9_000..9_100), (1, 100_000..1_700_000)];
    let sequences: Vec<&[u8]> = vec![
        &seq(0)[1_100..1_400],
        &seq(0)[1_950..2_250],
        &seq(0)[8_750..9_050],
        &seq(0)[5_000..5_300],
        &seq(1)[700_000..700_300],
        &seq(1)[1_699_990..1_700_290],
        &seq(1)[1_800_000..1_800_300],
    ];
    let all = scan(&genome, 1, 0, |scan| scan.find_hits(&sequences)).hits;
    let meter = ProgressCounters::new("the reference");
    let scan = ReferenceScan { genome: &genome, regions: Some(&parts), threads: 2, memory_bytes: 0, meter: &meter };
    let found = scan.find_hits(&sequences);
    for (i, (found, all)) in found.hits.iter().zip(&all).enumerate() {
        assert_eq!(all.len(), 1);
        if [3, 6].contains(&i) {
            assert_eq!(*found, []);
        } else {
            assert_eq!(found, all, "{i}");
        }
    }
    assert_eq!(meter.bytes_done(), scan.reference_bases_of_all_passes(&[300; 7]));
    assert_eq!(meter.bytes_done(), 2 * (1_000 + 100 + 1_600_000));
}

#[test]
fn what_is_laid_twice_is_kept_once_and_counts_as_no_rival() {
    let mut rng = TestRng(7);
    let all = |from: usize, to: usize, diagonal: i64| UngappedSegment {
        sequence: 0,
        chrom: 0,
        reverse: false,
        diagonal,
        scored_range: ScoredUngappedRange::new(from..to, (to - from) as i32),
    };
    // The same diagonal many times, whole and in parts, and another diagonal with a slightly lower score.
    let mut laid: Vec<UngappedSegment> = (0..200)
        .map(|_| {
            let from = rng.below(50);
            all(from, 150 + rng.below(50), 1000)
        })
        .collect();
    laid.push(all(0, 200, 1000));
    laid.push(all(5, 195, 3000));
    assert!(!drop_dominated_segments(&mut laid, 200));
    assert_eq!(laid, [all(0, 200, 1000), all(5, 195, 3000)]);
    // More diagonals than are kept.
    let mut laid: Vec<UngappedSegment> = (0..60).map(|i| all(0, 200 - i, 1000 * i as i64)).collect();
    assert!(drop_dominated_segments(&mut laid, 200));
    assert_eq!(laid, (0..50).map(|i| all(0, 200 - i, 1000 * i as i64)).collect::<Vec<_>>());
}

#[test]
fn a_tandem_repeat_is_found_in_all_its_phases() {
    let mut rng = TestRng(8);
    let unit = rng.bases(40);
    let (before, behind) = (rng.bases(2000), rng.bases(2000));
    let genome = genome(vec![[&before[..], &unit.repeat(30), &behind].concat()]);
    // With a flank the position is unique, without one it is ambiguous.
    let seq = &genome.contigs[0].seq;
    let hits = find_hits_of(&genome, &seq[1950..2200]);
    hits.iter().for_each(|hit| assert_score_is_consistent(hit, &seq[1950..2200], &genome));
    assert_eq!((hits[0].ref_start, hits[0].score, hits[0].mapq), (1950, 250, 60));
    let hits = find_hits_of(&genome, &unit.repeat(5));
    assert_eq!((hits[0].score, hits[0].mapq), (200, 0));
    let whole: Vec<usize> = hits.iter().filter(|hit| hit.score == 200).map(|hit| hit.ref_start).collect();
    assert_eq!(whole, (0..26).map(|i| 2000 + 40 * i).collect::<Vec<_>>());
}
