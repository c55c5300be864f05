//! Trimming: simulated adapters, poly-G tails and tails of failed quality are removed, fold-back reads are counted, and nothing else changes.

use genuma_reads::dna::reverse_complement;
use genuma_reads::{Mate, ReadPair, TrimCounts, Trimmer};

const READ: usize = 150;
const TRUSEQ: [&[u8]; 2] = [
    b"AGATCGGAAGAGCACACGTCTGAACTCCAGTCACATTACTCGATCTCGTATGCCGTCTTCTGCTTG",
    b"AGATCGGAAGAGCGTCGTGTAGGGAAAGAGTGTAGATCTCGGTGGTCGCCGTATCATT",
];
const NEXTERA: [&[u8]; 2] = [
    b"CTGTCTCTTATACACATCTCCGAGCCCACGAGACTAAGGCGAATCTCGTATGCCGTCTTCTGCTTG",
    b"CTGTCTCTTATACACATCTGACGCTGCCGACGAGCGATCTAGTGTAGATCTCGGTGGTCGCCGTATC",
];

/// A random number generator (splitmix64).
struct Rng(u64);

impl Rng {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn within(&mut self, n: usize) -> usize {
        (self.word() % n as u64) as usize
    }

    fn sequence(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| b"ACGT"[self.within(4)]).collect()
    }

    fn another(&mut self, base: u8) -> u8 {
        loop {
            let other = b"ACGT"[self.within(4)];
            if other != base {
                return other;
            }
        }
    }
}

/// Two mates with their own memory.
#[derive(Clone)]
struct Reads([Vec<u8>; 2], [Vec<u8>; 2]);

impl Reads {
    /// Mates with high qualities.
    fn new(seqs: [Vec<u8>; 2]) -> Reads {
        let quals = seqs.each_ref().map(|s| vec![b'F'; s.len()]);
        Reads(seqs, quals)
    }

    /// Both mates of a fragment, followed by `adapters` and then G (no signal).
    fn of(fragment: &[u8], adapters: [&[u8]; 2]) -> Reads {
        let read = |strand: Vec<u8>, adapter: &[u8]| {
            let mut seq = [&strand, adapter, &[b'G'; READ]].concat();
            seq.truncate(READ);
            seq
        };
        Reads::new([read(fragment.to_vec(), adapters[0]), read(reverse_complement(fragment), adapters[1])])
    }

    /// Substitutes about one base in `every`.
    fn misread(mut self, rng: &mut Rng, every: usize) -> Reads {
        for base in self.0.iter_mut().flatten() {
            if rng.within(every) == 0 {
                *base = rng.another(*base);
            }
        }
        self
    }

    /// Lengths after trimming; checks that the remaining bases are unchanged.
    fn cut(&self, trimmer: &mut Trimmer) -> [usize; 2] {
        let mate = |m: usize| Mate { seq: &self.0[m], qual: &self.1[m] };
        let trimmed = trimmer.trim_pair(ReadPair { name: b"pair", mates: [mate(0), mate(1)] });
        assert_eq!(trimmed.name, b"pair");
        for (before, after) in [mate(0), mate(1)].iter().zip(trimmed.mates) {
            assert_eq!(after.seq.len(), after.qual.len());
            assert!(before.seq.starts_with(after.seq) && before.qual.starts_with(after.qual));
        }
        trimmed.mates.map(|m| m.seq.len())
    }
}

fn cut(reads: &Reads) -> ([usize; 2], TrimCounts) {
    let mut trimmer = Trimmer::default();
    let lengths = reads.cut(&mut trimmer);
    (lengths, trimmer.counts())
}

#[test]
fn fragments_shorter_than_their_reads_are_trimmed_exactly() {
    let mut rng = Rng(1);
    for adapters in [TRUSEQ, NEXTERA] {
        for len in 32..READ {
            let fragment = rng.sequence(len);
            let (lengths, counts) = cut(&Reads::of(&fragment, adapters));
            assert_eq!(lengths, [len, len]);
            assert_eq!((counts.pairs_with_adapter, counts.adapter_bases), (1, 2 * (READ - len) as u64));
            assert_eq!((counts.pairs, counts.low_quality_bases, counts.fold_back_mates), (1, 0, 0));
        }
    }
}

#[test]
fn unknown_adapters_are_found_by_the_overlap_of_mates() {
    let mut rng = Rng(21);
    let unknown = rng.sequence(60);
    for len in 40..READ - 20 {
        let fragment = rng.sequence(len);
        let (lengths, _) = cut(&Reads::of(&fragment, [&unknown, &unknown]));
        assert_eq!(lengths, [len, len]);
    }
}

#[test]
fn reads_with_sequencing_errors_are_trimmed() {
    let mut rng = Rng(3);
    let (mut right, mut trimmer) = (0, Trimmer::default());
    for i in 0..400 {
        let len = 35 + i % 110;
        let reads = Reads::of(&rng.sequence(len), TRUSEQ).misread(&mut rng, 100);
        right += usize::from(reads.cut(&mut trimmer) == [len, len]);
    }
    assert!(right >= 390, "{right} of 400");
    assert_eq!(trimmer.counts().pairs, 400);
}

#[test]
fn adapter_dimers_become_empty() {
    let (lengths, counts) = cut(&Reads::of(b"", TRUSEQ));
    assert_eq!(lengths, [0, 0]);
    assert_eq!(counts.adapter_bases, 2 * READ as u64);
}

#[test]
fn a_known_adapter_is_found_if_the_mate_has_low_quality() {
    let mut rng = Rng(4);
    let fragment = rng.sequence(70);
    let mut reads = Reads::of(&fragment, TRUSEQ);
    reads.0[1] = rng.sequence(READ);
    assert_eq!(cut(&reads).0, [70, 70]);
}

#[test]
fn clean_reads_are_not_trimmed() {
    let mut rng = Rng(5);
    let (mut trimmer, mut cut) = (Trimmer::default(), 0);
    for _ in 0..20_000 {
        let len = READ + rng.within(400);
        let reads = Reads::of(&rng.sequence(len), TRUSEQ).misread(&mut rng, 300);
        cut += u32::from(reads.cut(&mut trimmer) != [READ, READ]);
    }
    // By chance, twelve bases of an adapter occur at the end of one read in some hundred thousand.
    assert!(cut <= 2, "{cut} pairs cut");
    let counts = trimmer.counts();
    assert!(counts.pairs == 20_000 && counts.estimate_fold_back_sites_per_mate() < 1e-4, "{counts:?}");
}

#[test]
fn overlapping_mates_without_adapters_are_not_trimmed() {
    let mut rng = Rng(6);
    for len in READ..2 * READ {
        assert_eq!(cut(&Reads::of(&rng.sequence(len), TRUSEQ)).0, [READ, READ], "{len}");
    }
}

#[test]
fn tandem_repeats_are_not_taken_for_adapters() {
    // A repeat whose period is the fragment length: the mates overlap in both copies, but continue with genomic sequence.
    let mut rng = Rng(7);
    for unit in [60, 80, 100, 120] {
        let copies = rng.sequence(unit).repeat(8);
        let fragment = &copies[..3 * unit + READ];
        assert_eq!(cut(&Reads::of(fragment, TRUSEQ)).0, [READ, READ], "{unit}");
    }
}

#[test]
fn poly_g_tails_are_removed_and_short_runs_of_g_stay() {
    let mut rng = Rng(8);
    let with = |rng: &mut Rng, dark: &[u8]| {
        let mut seqs = [rng.sequence(READ), rng.sequence(READ)];
        let from = READ - dark.len();
        seqs[0][from..].copy_from_slice(dark);
        seqs[0][from - 1] = b'T';
        seqs[0][from - 2] = b'A';
        cut(&Reads::new(seqs))
    };
    for len in [20, 40, 100] {
        let ([first, second], counts) = with(&mut rng, &vec![b'G'; len]);
        assert_eq!(([first, second], counts.poly_g_bases), ([READ - len, READ], len as u64));
    }
    // Some bases are N.
    let mut flicker = vec![b'G'; 40];
    (flicker[15], flicker[30]) = (b'A', b'C');
    assert_eq!(with(&mut rng, &flicker).0, [READ - 40, READ]);
    assert_eq!(with(&mut rng, b"GGGGGGG").0, [READ, READ]);
    // At the start or in the middle of a read, G runs are sequence.
    let mut seqs = [rng.sequence(READ), rng.sequence(READ)];
    seqs[0][..30].fill(b'G');
    seqs[1][60..90].fill(b'G');
    seqs.iter_mut().for_each(|s| s[READ - 1] = b'A');
    assert_eq!(cut(&Reads::new(seqs)).0, [READ, READ]);
}

#[test]
fn tails_of_quality_2_are_removed() {
    let mut rng = Rng(9);
    let mut reads = Reads::new([rng.sequence(READ), rng.sequence(READ)]);
    reads.1[0][100..].fill(b'#');
    // Quality 2 in the middle of a read is not a tail.
    reads.1[1][20..30].fill(b'#');
    let (lengths, counts) = cut(&reads);
    assert_eq!((lengths, counts.low_quality_bases, counts.num_trimmed_bases()), ([100, READ], 50, 50));
    reads.1[1].fill(b'#');
    assert_eq!(cut(&reads).0, [100, 0]);
}

#[test]
fn fold_back_reads_are_counted_and_not_trimmed() {
    let mut rng = Rng(10);
    let (mut trimmer, n) = (Trimmer::default(), 200);
    for i in 0..n {
        // Inside read 1 the strand switches, and the earlier sequence follows as its reverse complement.
        let arm = rng.sequence(60 + i % 15);
        let turn = rng.sequence(i % 8);
        let mut folded = [&arm[..], &turn, &reverse_complement(&arm)].concat();
        folded.truncate(READ);
        let reads = Reads::new([folded.clone(), rng.sequence(READ)]);
        assert_eq!(reads.cut(&mut trimmer), [folded.len(), READ]);
    }
    let folded = trimmer.counts().fold_back_mates;
    assert!(folded as usize >= n * 9 / 10, "{folded} of {n}");
    // An estimate of their number, as all are different.
    assert!((trimmer.counts().estimate_fold_back_sites_per_mate() * 400.0 / folded as f64 - 1.0).abs() < 0.1);
}

#[test]
fn reads_across_a_hairpin_of_the_genome_fold_back_at_one_site() {
    let mut rng = Rng(14);
    let arm = rng.sequence(70);
    let hairpin = [&rng.sequence(60)[..], &arm, b"GATTACA", &reverse_complement(&arm), &rng.sequence(60)].concat();
    let mut trimmer = Trimmer::default();
    for i in 0..400 {
        // The last bases of each read are in the second arm; every other read is of the other strand.
        let sequence = if i % 2 == 0 { hairpin.clone() } else { reverse_complement(&hairpin) };
        let start = 20 + i % 40;
        Reads::new([sequence[start..start + READ].to_vec(), rng.sequence(READ)]).cut(&mut trimmer);
    }
    let counts = trimmer.counts();
    assert!(counts.fold_back_mates >= 300, "{counts:?}");
    assert!(counts.estimate_fold_back_sites() < 4.0, "{}", counts.estimate_fold_back_sites());
}

#[test]
fn repeats_equal_on_both_strands_are_not_fold_backs() {
    for unit in [&b"AT"[..], b"ACGT", b"CG", b"AATT"] {
        let read = unit.repeat(READ)[..READ].to_vec();
        let (lengths, counts) = cut(&Reads::new([read.clone(), Rng(11).sequence(READ)]));
        assert_eq!((lengths, counts.fold_back_mates), ([READ, READ], 0), "{}", String::from_utf8_lossy(unit));
    }
}

#[test]
fn short_unknown_and_empty_mates_are_accepted() {
    let mut rng = Rng(12);
    for len in [0, 1, 2, 11, 12, 15, 16, 17, 31, 32, 33] {
        let reads = Reads::new([rng.sequence(len), rng.sequence(READ)]);
        let ([first, second], _) = cut(&reads);
        assert!(first <= len && second <= READ);
        let reads = Reads::new([rng.sequence(READ), rng.sequence(len)]);
        assert_eq!(cut(&reads).0[0], READ, "{len}");
    }
    assert_eq!(cut(&Reads::new([Vec::new(), Vec::new()])).0, [0, 0]);
    let (lengths, counts) = cut(&Reads::new([vec![b'N'; READ], vec![b'N'; READ]]));
    assert_eq!((lengths, counts.pairs_with_adapter, counts.fold_back_mates), ([READ, READ], 0, 0));
    // Mates of different lengths.
    let fragment = rng.sequence(90);
    let mut reads = Reads::of(&fragment, TRUSEQ);
    reads.0[1].truncate(76);
    reads.1[1].truncate(76);
    assert_eq!(cut(&reads).0, [90, 76]);
    // Lower case is read as upper case.
    let mut reads = Reads::of(&rng.sequence(80), TRUSEQ);
    reads.0.iter_mut().for_each(|s| s.make_ascii_lowercase());
    assert_eq!(cut(&reads).0, [80, 80]);
}

#[test]
fn counts_add_up() {
    let mut rng = Rng(13);
    let (mut one, mut two, mut both) = (Trimmer::default(), Trimmer::default(), Trimmer::default());
    for i in 0..100 {
        let reads = Reads::of(&rng.sequence(40 + 2 * i), TRUSEQ);
        reads.cut(&mut both);
        reads.cut(if i % 3 == 0 { &mut one } else { &mut two });
    }
    let mut sum = one.counts();
    sum.merge_counts(&two.counts());
    assert_eq!(sum, both.counts());
    assert_eq!((sum.pairs, sum.pairs_with_adapter), (100, 55));
}
