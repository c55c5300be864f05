use genuma_reads::fasta;

use super::*;

pub(super) struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % sides
    }

    pub fn bases(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| b"ACGT"[self.roll(4)]).collect()
    }
}

fn genome(sequences: Vec<Vec<u8>>) -> Reference {
    let contig = |(i, seq)| fasta::Contig { name: format!("s{i}"), seq };
    Reference::from_contigs(sequences.into_iter().enumerate().map(contig).collect())
}

fn scan<T>(genome: &Reference, threads: usize, memory: u64, find: impl Fn(Scan<'_>) -> T) -> T {
    find(Scan { genome, parts: None, threads, memory, meter: &Meter::of("the reference") })
}

fn one(genome: &Reference, sequence: &[u8]) -> Vec<Hit> {
    scan(genome, 1, 0, |scan| scan.find(&[sequence])).hits.remove(0)
}

fn cigar(hit: &Hit) -> String {
    let letter = |kind| match kind {
        CigarKind::Ins => 'I',
        CigarKind::Del => 'D',
        _ => 'M',
    };
    hit.cigar.iter().map(|op| format!("{}{}", op.len, letter(op.kind))).collect()
}

/// The bases that a hit says are side by side, and how many are equal, score it as it says.
fn holds(hit: &Hit, sequence: &[u8], genome: &Reference) {
    let own = &sequence[bases(hit)];
    let own = if hit.strand == Strand::Reverse { revcomp(own) } else { own.to_vec() };
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
    assert_eq!((q, t, score, equal), (own.len(), target.len(), hit.score, hit.mlen), "{hit:?}");
}

#[test]
fn parts_of_a_sequence_lie_where_they_were_taken_from() {
    let mut dice = Dice(1);
    let genome = genome(vec![dice.bases(30_000), dice.bases(20_000)]);
    for _ in 0..300 {
        // Two parts, each from anywhere and either strand, each with a few wrong bases away from its ends.
        let mut part = || {
            let (chrom, length, reverse) = (dice.roll(2), 60 + dice.roll(200), dice.roll(2) == 1);
            let seq = &genome.contigs[chrom].seq;
            let start = dice.roll(seq.len() - length);
            let mut bases = seq[start..start + length].to_vec();
            for _ in 0..dice.roll(3) {
                let at = 25 + dice.roll(length - 50);
                bases[at] = b"CGTA"[b"ACGT".iter().position(|b| *b == bases[at]).unwrap()];
            }
            let bases = if reverse { revcomp(&bases) } else { bases };
            (chrom, start, length, reverse, bases)
        };
        let parts = [part(), part()];
        let sequence = [&parts[0].4[..], &parts[1].4].concat();
        let hits = one(&genome, &sequence);
        hits.iter().for_each(|hit| holds(hit, &sequence, &genome));
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
    let mut dice = Dice(2);
    let genome = genome(vec![dice.bases(20_000)]);
    let seq = &genome.contigs[0].seq;
    for n in [1, 2, 5, 12, 19, 35] {
        let without = [&seq[5000..5100], &seq[5100 + n..5200]].concat();
        for (sequence, reverse) in [(without.clone(), false), (revcomp(&without), true)] {
            let hits = one(&genome, &sequence);
            assert_eq!(hits.len(), 1, "{hits:?}");
            holds(&hits[0], &sequence, &genome);
            assert_eq!((hits[0].ref_start, hits[0].ref_end), (5000, 5200));
            assert_eq!(hits[0].strand == Strand::Reverse, reverse);
            assert!(cigar(&hits[0]).contains(&format!("{n}D")), "{}", cigar(&hits[0]));
        }
        let with = [&seq[5000..5100], &dice.bases(n), &seq[5100..5200]].concat();
        let hits = one(&genome, &with);
        assert_eq!((hits.len(), hits[0].ref_start, hits[0].ref_end), (1, 5000, 5200), "{hits:?}");
        holds(&hits[0], &with, &genome);
        assert_eq!((hits[0].score, hits[0].mapq), (200 - 6 - n as i32, 60), "{}", cigar(&hits[0]));
    }
    let parted = [&seq[5000..5100], &seq[5150..5250]].concat();
    let hits = one(&genome, &parted);
    assert_eq!(hits.len(), 2);
    assert!(hits.iter().all(|hit| hit.cigar.len() == 1 && !hit.is_secondary && hit.score >= 100));
}

#[test]
fn a_copy_is_secondary_and_nobody_is_sure_of_equals() {
    let mut dice = Dice(3);
    let unit = dice.bases(300);
    let mut near = unit.clone();
    near[150] = if near[150] == b'A' { b'C' } else { b'A' };
    let genome =
        genome(vec![[dice.bases(2000), unit.clone(), dice.bases(2000), near, dice.bases(2000)].concat()]);
    let hits = one(&genome, &unit);
    assert_eq!(hits.len(), 2);
    assert_eq!((hits[0].ref_start, hits[0].score, hits[0].mapq), (2000, 300, 15));
    assert_eq!((hits[1].ref_start, hits[1].score, hits[1].mapq), (4300, 295, 0));
    assert!(hits[0].is_primary && !hits[0].is_secondary && hits[1].is_secondary && !hits[1].is_primary);
}

#[test]
fn threads_batches_and_chunks_do_not_show() {
    let mut dice = Dice(4);
    let unit = dice.bases(400);
    let mut seq = dice.bases(CHUNK - 200);
    // A copy across the border of two chunks, and some hundred beside each other.
    seq.extend(&unit);
    for _ in 0..150 {
        let mut copy = unit.clone();
        for _ in 0..40 {
            copy[dice.roll(400)] = b"ACGT"[dice.roll(4)];
        }
        seq.extend(copy);
        seq.extend(dice.bases(50));
    }
    let genome = genome(vec![seq]);
    let mut sequences: Vec<Vec<u8>> = (0..60)
        .map(|_| {
            let at = dice.roll(genome.contigs[0].seq.len() - 300);
            genome.contigs[0].seq[at..at + 300].to_vec()
        })
        .collect();
    sequences.push(unit.clone());
    let all: Vec<&[u8]> = sequences.iter().map(Vec::as_slice).collect();
    let with = |threads, memory| scan(&genome, threads, memory, |scan| scan.find(&all));
    let (one, two) = (with(1, 1 << 30), with(2, 0));
    assert_eq!(one.hits, two.hits);
    // The unit, and what lies in copies of it.
    assert_eq!((one.unkept, one.crowded), (two.unkept, 0));
    assert!(one.unkept >= 1, "{}", one.unkept);
    let last = one.hits.last().unwrap();
    assert_eq!((last[0].ref_start, last[0].score), (CHUNK - 200, 400));
    assert!(last.len() >= KEPT && last.len() < MANY, "{}", last.len());
    for (hits, sequence) in one.hits.iter().zip(&all) {
        assert_eq!(hits, &scan(&genome, 2, 0, |scan| scan.find(&[sequence])).hits[0]);
        hits.iter().for_each(|hit| holds(hit, sequence, &genome));
    }
}

#[test]
fn what_stands_everywhere_is_counted() {
    let mut dice = Dice(5);
    let unit = dice.bases(60);
    let mut seq = dice.bases(1000);
    for _ in 0..VERY_OFTEN + 100 {
        seq.extend(&unit);
        seq.extend(dice.bases(3));
    }
    let genome = genome(vec![seq]);
    let whole = [&genome.contigs[0].seq[800..1000], &unit].concat();
    let some = [&whole[..], &unit, &genome.contigs[0].seq[100..300]];
    let found = scan(&genome, 1, 0, |scan| scan.find(&some));
    assert_eq!(found.crowded, 2);
    // By what is its own it lies where it was taken from, with all its bases.
    assert_eq!((found.hits[0][0].ref_start, found.hits[0][0].score), (800, 260));
    assert!(found.hits[1].is_empty());
    assert_eq!(found.hits[2].len(), 1);
}

#[test]
fn of_equal_places_mates_believe_those_that_fit() {
    let mut dice = Dice(6);
    let unit = dice.bases(150);
    let mut seq = dice.bases(3000);
    for _ in 0..4 {
        seq.extend(&unit);
        seq.extend(dice.bases(3000));
    }
    let genome = genome(vec![seq]);
    let seq = &genome.contigs[0].seq;
    let pairs = |pairs: &[[&[u8]; 2]]| {
        let Found { hits, crowded, unkept } = scan(&genome, 1, 0, |scan| scan.find(pairs.as_flattened()));
        let mut hits: Vec<[Vec<Hit>; 2]> = hits.as_chunks().0.to_vec();
        let apart = farthest(&hits).unwrap_or(APART);
        hits.iter_mut().for_each(|mates| choose(mates, apart));
        (hits, crowded, unkept)
    };
    for copy in 0..4 {
        let at = 3000 + copy * 3150;
        let mate = revcomp(&seq[at + 250..at + 400]);
        let (hits, crowded, unkept) = pairs(&[[&unit, &mate]]);
        let [one, two] = &hits[0];
        assert_eq!((one[0].ref_start, two[0].ref_start), (at, at + 250));
        assert!(one[0].is_primary && one[0].proper_pair && two[0].proper_pair && one[0].mapq == 40);
        assert!(one[1..].iter().all(|hit| hit.is_secondary && !hit.is_primary && !hit.proper_pair));
        assert_eq!((crowded, unkept), (0, 0));
    }
    // Nothing fits: both lie as alone.
    let (hits, ..) = pairs(&[[&unit, &seq[100..250]], [b"ACGT", b""]]);
    assert_eq!((hits[0][0][0].mapq, hits[0][1][0].mapq, hits[0][0][0].proper_pair), (0, 60, false));
    assert!(hits[1].iter().all(Vec::is_empty));
}

#[test]
fn only_what_begins_in_the_parts_that_go_past_is_found_and_goes_on_beyond_them() {
    let mut dice = Dice(16);
    let genome = genome(vec![dice.bases(30_000), dice.bases(2_000_000)]);
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
    let all = scan(&genome, 1, 0, |scan| scan.find(&sequences)).hits;
    let meter = Meter::of("the reference");
    let scan = Scan { genome: &genome, parts: Some(&parts), threads: 2, memory: 0, meter: &meter };
    let found = scan.find(&sequences);
    for (i, (found, all)) in found.hits.iter().zip(&all).enumerate() {
        assert_eq!(all.len(), 1);
        if [3, 6].contains(&i) {
            assert_eq!(*found, []);
        } else {
            assert_eq!(found, all, "{i}");
        }
    }
    assert_eq!(meter.bytes_done(), scan.expected(&[300; 7]));
    assert_eq!(meter.bytes_done(), 2 * (1_000 + 100 + 1_600_000));
}

#[test]
fn what_is_laid_twice_is_kept_once_and_counts_as_no_rival() {
    let mut dice = Dice(7);
    let all = |from: usize, to: usize, left: i64| Laid {
        sequence: 0,
        chrom: 0,
        reverse: false,
        left,
        stretch: Stretch::new(from..to, (to - from) as i32),
    };
    // One diagonal over and over, whole and in parts, and another that is a little worse.
    let mut laid: Vec<Laid> = (0..200)
        .map(|_| {
            let from = dice.roll(50);
            all(from, 150 + dice.roll(50), 1000)
        })
        .collect();
    laid.push(all(0, 200, 1000));
    laid.push(all(5, 195, 3000));
    assert!(!thin(&mut laid, 200));
    assert_eq!(laid, [all(0, 200, 1000), all(5, 195, 3000)]);
    // So many diagonals are too many.
    let mut laid: Vec<Laid> = (0..60).map(|i| all(0, 200 - i, 1000 * i as i64)).collect();
    assert!(thin(&mut laid, 200));
    assert_eq!(laid, (0..50).map(|i| all(0, 200 - i, 1000 * i as i64)).collect::<Vec<_>>());
}

#[test]
fn a_tandem_repeat_is_found_in_all_its_phases() {
    let mut dice = Dice(8);
    let unit = dice.bases(40);
    let (before, behind) = (dice.bases(2000), dice.bases(2000));
    let genome = genome(vec![[&before[..], &unit.repeat(30), &behind].concat()]);
    // With a flank it lies in one place; without one nobody is sure.
    let seq = &genome.contigs[0].seq;
    let hits = one(&genome, &seq[1950..2200]);
    hits.iter().for_each(|hit| holds(hit, &seq[1950..2200], &genome));
    assert_eq!((hits[0].ref_start, hits[0].score, hits[0].mapq), (1950, 250, 60));
    let hits = one(&genome, &unit.repeat(5));
    assert_eq!((hits[0].score, hits[0].mapq), (200, 0));
    let whole: Vec<usize> = hits.iter().filter(|hit| hit.score == 200).map(|hit| hit.ref_start).collect();
    assert_eq!(whole, (0..26).map(|i| 2000 + 40 * i).collect::<Vec<_>>());
}
