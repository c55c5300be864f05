//! Tests of the whole count against a map of k-mers as text.

mod devices;
mod parts;
mod resume;
mod shards;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use genuma_reads::{Lane, LaneFiles, Mate, ProgressCounters, ReadPair, dna};

use crate::encode::pack;
use crate::pipeline::ScatteredReads;
use crate::plan::MemoryPlan;
use crate::{
    CountParams, CountResult, CountStats, Devices, Error, KeepPairUnchanged, NUM_SPECTRUM_ENTRIES, Partition,
    PreparePair, RootCounters, count_partition, min_memory_bytes,
};

/// Random numbers from a seed (splitmix64).
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % n
    }
}

pub(crate) fn random_bases(len: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    (0..len).map(|_| b"ACGT"[random.below(4) as usize]).collect()
}

/// Key of a k-mer given as text: the smaller root-first-last of both strands.
pub(crate) fn by_definition(kmer: &[u8]) -> u64 {
    let key = |kmer: &[u8]| {
        let (first, last) = (kmer[0], kmer[kmer.len() - 1]);
        let rest = [&kmer[1..kmer.len() - 1], &[first], &[last]].concat();
        pack(&rest).expect("bases only")
    };
    key(kmer).min(key(&dna::reverse_complement(kmer)))
}

type Counters = [[u32; 2]; 16];
type Roots = BTreeMap<u64, Counters>;
type Read = (Vec<u8>, Vec<u8>);

/// Expected counts of all reads, `reads[sample]`.
fn expected(reads: &[Vec<Read>; 2], k: u32, min_base_quality: u8) -> Roots {
    let mut roots = Roots::new();
    for (sample, reads) in reads.iter().enumerate() {
        for (seq, qual) in reads {
            for (kmer, qual) in seq.windows(k as usize).zip(qual.windows(k as usize)) {
                let clean = kmer.iter().all(|&b| dna::encode_base(b) < 4);
                if clean && (min_base_quality == 0 || qual.iter().all(|&q| q - 33 >= min_base_quality)) {
                    let key = by_definition(kmer);
                    roots.entry(key >> 4).or_default()[(key & 15) as usize][sample] += 1;
                }
            }
        }
    }
    roots
}

/// A folder with the reads of both samples as interleaved lanes.
struct Files {
    lanes: Vec<Lane>,
    dir: tempfile::TempDir,
}

impl Files {
    fn new(reads: &[Vec<Read>; 2]) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let lanes = reads.iter().enumerate().map(|(sample, reads)| {
            let path = dir.path().join(format!("{sample}.fq"));
            let mut text = Vec::new();
            for (i, (seq, qual)) in reads.iter().enumerate() {
                text.extend(format!("@r{}\n", i / 2).bytes());
                text.extend([seq.as_slice(), b"\n+\n", qual.as_slice(), b"\n"].concat());
            }
            fs::write(&path, text).expect("written");
            Lane::with_whole_files(sample as u8, LaneFiles::Interleaved(path))
        });
        Self { lanes: lanes.collect(), dir }
    }

    fn params(&self, k: u32) -> CountParams {
        CountParams {
            k,
            min_base_quality: 0,
            threads: 2,
            memory_bytes: 64 << 20,
            work_dir: self.dir.path().into(),
            max_scratch_bytes: u64::MAX,
            partition: Partition::WHOLE_KMER_SPACE,
            devices: Devices::default(),
        }
    }
}

/// The smallest possible plan.
const SMALL: MemoryPlan = MemoryPlan {
    bins: 1,
    sort_ranges: 0,
    extent_bytes: 4096,
    max_extents: 1,
    buffer_bytes: 256,
    collapser_slots: 64,
    slots: 1024,
    sort_bytes: 4096,
};

fn all(root: &RootCounters, picks: &mut Vec<(u64, Counters)>) {
    picks.push((root.root, root.counts));
}

fn count_all(lanes: &[Lane], params: &CountParams) -> Result<CountResult<(u64, Counters)>, Error> {
    Ok(count_partition(lanes, params, &ProgressCounters::default(), || KeepPairUnchanged, |_, _| all)?.0)
}

/// Counts with `plan` or the default one, and compares selections, spectra and stats with `roots`.
fn assert_counts(files: &Files, params: &CountParams, plan: Option<MemoryPlan>, roots: &Roots) -> CountStats {
    let meter = ProgressCounters::default();
    let counted = match plan {
        Some(plan) => {
            ScatteredReads::scatter_with_memory_plan(plan, &files.lanes, params, &meter, || KeepPairUnchanged)
                .and_then(|(s, _)| s.count_and_select_roots(all))
        }
        None => count_all(&files.lanes, params),
    };
    let CountResult { selected: picks, spectra, stats, roots: found } = counted.expect("counted");
    assert!(picks.iter().map(|(root, counts)| (root, counts)).eq(roots), "roots differ: {params:?} {plan:?}");
    for sample in 0..2 {
        let mut spectrum = vec![0; NUM_SPECTRUM_ENTRIES];
        let counts: Vec<usize> = roots.values().flatten().map(|c| c[sample] as usize).filter(|&n| n > 0).collect();
        counts.iter().for_each(|&n| spectrum[n.min(NUM_SPECTRUM_ENTRIES - 1)] += 1);
        assert_eq!(spectra[sample], spectrum);
        assert_eq!(stats.kmers[sample], counts.iter().sum::<usize>() as u64);
    }
    assert_eq!(found, roots.len() as u64);
    assert_eq!(stats.distinct, roots.values().flatten().filter(|c| **c != [0, 0]).count() as u64);
    stats
}

/// Reads from both strands of a genome with repeats, with errors, N, short reads and low qualities.
fn awkward_reads(n: usize, seed: u64) -> [Vec<Read>; 2] {
    let random = &mut Random(seed);
    let mut genome = random_bases(3000, seed);
    genome.extend(b"CAG".repeat(100));
    genome.extend(b"A".repeat(400));
    genome.extend(b"ACGT".repeat(60));
    genome.extend_from_within(200..900);
    let mut read = |foreign: bool| -> Read {
        let len = [0, 11, 40, 100, 150, 150, 150][random.below(7) as usize];
        let at = random.below((genome.len() - len) as u64) as usize;
        let mut seq = genome[at..at + len].to_vec();
        if random.below(2) == 1 {
            seq = dna::reverse_complement(&seq);
        }
        for base in &mut seq {
            match random.below(200) {
                0 => *base = b"ACGT"[random.below(4) as usize],
                1 if foreign => *base = b'N',
                2 => *base = base.to_ascii_lowercase(),
                _ => {}
            }
        }
        let qual = seq.iter().map(|_| if random.below(150) == 0 { b'#' } else { b'I' }).collect();
        (seq, qual)
    };
    [(0..n).map(|_| read(true)).collect(), (0..n / 2 * 2).map(|_| read(false)).collect()]
}

#[test]
fn counts_are_those_of_a_plain_map() {
    let reads = awkward_reads(400, 1);
    let files = Files::new(&reads);
    for k in [12, 13, 24, 25, 31, 32] {
        for min_base_quality in [0, 15] {
            let params = CountParams { min_base_quality, ..files.params(k) };
            let stats = assert_counts(&files, &params, None, &expected(&reads, k, min_base_quality));
            assert_eq!(stats.spilled_bytes, 0);
            let bases = reads.each_ref().map(|r| r.iter().map(|(seq, _)| seq.len() as u64).sum());
            assert_eq!(stats.bases, bases);
        }
    }
}

#[test]
fn results_do_not_depend_on_threads_memory_and_bins() {
    let reads = awkward_reads(3000, 2);
    let files = Files::new(&reads);
    for k in [24, 31] {
        let roots = expected(&reads, k, 0);
        for threads in [1, 2, 5] {
            let params = CountParams { threads, memory_bytes: min_memory_bytes(threads), ..files.params(k) };
            assert_counts(&files, &params, None, &roots);
            for (bins, extents) in [(1, 1), (7, 7), (7, 20), (300, 600)] {
                let plan = MemoryPlan { bins, max_extents: extents, ..SMALL };
                let stats = assert_counts(&files, &params, Some(plan), &roots);
                assert_eq!(stats.bins, bins as u64);
                assert_eq!(stats.spilled_bytes > 0, bins < 300, "{stats:?}");
                assert_eq!(stats.extra_passes > 0, bins < 300, "{stats:?}");
            }
        }
    }
}

/// Canonical k-mers with a total count of at least `least`, in order.
fn sorted_by_definition(reads: &[Vec<Read>; 2], k: u32, least: u32) -> Vec<(u64, [u32; 2])> {
    let mut kmers = BTreeMap::<u64, [u32; 2]>::new();
    for (sample, reads) in reads.iter().enumerate() {
        for (_, kmer) in reads.iter().flat_map(|(seq, _)| crate::encode::kmers(seq, k)) {
            kmers.entry(kmer.canonical()).or_default()[sample] += 1;
        }
    }
    kmers.into_iter().filter(|(_, counts)| counts.iter().sum::<u32>() >= least).collect()
}

#[test]
fn sorted_kmers_are_those_of_a_plain_map() {
    let reads = awkward_reads(3000, 4);
    let files = Files::new(&reads);
    for (k, least) in [(12, 1), (24, 2), (25, 2), (31, 1), (31, 3), (32, 2)] {
        let expected = sorted_by_definition(&reads, k, least);
        for threads in [1, 3] {
            for memory in [min_memory_bytes(threads), 64 << 20] {
                let params = CountParams { threads, memory_bytes: memory, ..files.params(k) };
                let scattered = ScatteredReads::<2>::scatter_lanes(&files.lanes, &params, &ProgressCounters::default())
                    .expect("read");
                let sorted = scattered.count_and_keep_frequent_kmers(least).expect("counted");
                let mut found = Vec::new();
                let done = sorted.for_each_kmer(|kmer, &counts| {
                    found.push((kmer, counts));
                    Ok::<_, Error>(())
                });
                done.expect("readable");
                assert!(found == expected, "k {k}, {least} at least, {params:?}");
                assert_eq!(sorted.len(), expected.len() as u64);
            }
        }
    }
}

/// Keeps the first half of each mate and adds its first k letters in reverse order.
struct Halves {
    k: usize,
    pairs: u64,
}

/// The letters added for a read.
fn backwards(seq: &[u8], k: usize) -> Option<Vec<u8>> {
    let start = seq.get(..k).filter(|start| start.iter().all(|b| b"ACGT".contains(b)))?;
    Some(start.iter().rev().copied().collect())
}

impl PreparePair for Halves {
    fn prepare<'a>(&mut self, pair: ReadPair<'a>, _: u8, added: &mut Vec<u8>) -> ReadPair<'a> {
        self.pairs += 1;
        let half = |mate: Mate<'a>| {
            let len = mate.seq.len() / 2;
            Mate { seq: &mate.seq[..len], qual: &mate.qual[..len] }
        };
        pair.mates.iter().for_each(|mate| added.extend(backwards(mate.seq, self.k).unwrap_or_default()));
        ReadPair { mates: pair.mates.map(half), ..pair }
    }
}

#[test]
fn pairs_are_counted_as_they_were_prepared() {
    let reads = awkward_reads(400, 8);
    let files = Files::new(&reads);
    for k in [24, 31] {
        let prepared = reads.each_ref().map(|reads| -> Vec<Read> {
            let half = |(seq, qual): &Read| (seq[..seq.len() / 2].to_vec(), qual[..seq.len() / 2].to_vec());
            let added = |(seq, _): &Read| backwards(seq, k as usize).map(|seq| (seq, vec![b'I'; k as usize]));
            reads.iter().map(half).chain(reads.iter().filter_map(added)).collect()
        });
        let (counted, states) = count_partition(
            &files.lanes,
            &files.params(k),
            &ProgressCounters::default(),
            || Halves { k: k as usize, pairs: 0 },
            |_, _| all,
        )
        .expect("counted");
        let found: Roots = counted.selected.into_iter().collect();
        assert!(found == expected(&prepared, k, 0), "{k}");
        let pairs: usize = reads.iter().map(|r| r.len() / 2).sum();
        assert_eq!(states.iter().map(|s| s.pairs).sum::<u64>(), pairs as u64);
    }
}

#[test]
fn any_number_of_samples_is_counted() {
    let reads = awkward_reads(800, 6);
    let files = Files::new(&reads);
    let counts = |lanes: &[Lane]| {
        let scattered =
            ScatteredReads::<8>::scatter_lanes(lanes, &files.params(31), &ProgressCounters::default()).expect("read");
        let mut found = Vec::new();
        let done = scattered.count_and_keep_frequent_kmers(2).expect("counted").for_each_kmer(|kmer, &counts| {
            found.push((kmer, counts));
            Ok::<_, Error>(())
        });
        done.map(|()| found).expect("readable")
    };
    let others: Vec<_> =
        [7, 3].into_iter().zip(&files.lanes).map(|(sample, lane)| Lane { sample, ..lane.clone() }).collect();
    let moved = |(kmer, [normal, tumour]): (u64, [u32; 2])| (kmer, [0, 0, 0, tumour, 0, 0, 0, normal]);
    let expected: Vec<_> = sorted_by_definition(&reads, 31, 2).into_iter().map(moved).collect();
    assert!(counts(&others) == expected);
}

#[test]
fn palindromic_roots_have_one_slot_per_kmer() {
    // The root of 10 bases is its own reverse complement.
    let root = b"ACGTCGACGT";
    assert_eq!(dna::reverse_complement(root), root);
    let kmer = [b"T", &root[..], b"T"].concat();
    let other = dna::reverse_complement(&kmer);
    let own = [b"G", &root[..], b"C"].concat();
    let reads = [[&kmer, &other, &own, &own], [&other, &other, &kmer, &own]]
        .map(|reads| reads.map(|seq| (seq.clone(), vec![b'I'; 12])).to_vec());
    let files = Files::new(&reads);
    let counted = count_all(&files.lanes, &files.params(12)).expect("counted");
    let mut counts = [[0; 2]; 16];
    // T..T and A..A share the smaller slot, A..A; G..C is its own reverse complement.
    counts[0] = [2, 3];
    counts[4 * 2 + 1] = [2, 1];
    assert_eq!(counted.selected, [(pack(root).expect("bases"), counts)]);
    assert_eq!(counted.stats.distinct, 2);
}

#[test]
fn skewed_input_is_counted_in_the_minimum_memory() {
    let poly_a: Read = (vec![b'A'; 150], vec![b'I'; 150]);
    let one: Read = (random_bases(150, 5), vec![b'I'; 150]);
    let reads = [vec![poly_a; 20_000], vec![one; 20_000]];
    let files = Files::new(&reads);
    let params = CountParams { memory_bytes: min_memory_bytes(2), ..files.params(31) };
    let counted = count_all(&files.lanes, &params).expect("counted");
    assert_eq!(counted.stats.kmers, [120 * 20_000; 2]);
    assert_eq!(counted.stats.distinct, 121);
    assert_eq!(counted.selected[0], (0, std::array::from_fn(|i| [if i == 0 { 120 * 20_000 } else { 0 }, 0])));
    assert_eq!((counted.spectra[0][NUM_SPECTRUM_ENTRIES - 1], counted.spectra[1][NUM_SPECTRUM_ENTRIES - 1]), (1, 120));
    assert!(counted.stats.spilled_bytes > 0);
}

#[test]
fn empty_input_is_counted() {
    let reads = [vec![(b"ACGT".to_vec(), b"IIII".to_vec()); 2], vec![(b"N".repeat(40), b"I".repeat(40)); 2]];
    let files = Files::new(&reads);
    let stats = assert_counts(&files, &files.params(25), None, &Roots::new());
    assert_eq!(stats.bases, [8, 80]);
}

#[test]
fn errors_are_reported_in_one_line() {
    let reads = awkward_reads(2000, 3);
    let files = Files::new(&reads);
    let fault = |params: CountParams| {
        let message = count_all(&files.lanes, &params).expect_err("a fault").to_string();
        assert!(!message.contains('\n'));
        message
    };
    assert!(fault(files.params(33)).contains("k-mer length 33 is out of range: give 12 to 32"));
    assert!(fault(files.params(11)).contains("k-mer length 11"));
    assert!(fault(CountParams { threads: 0, ..files.params(25) }).contains("at least 1"));
    let too_little = CountParams { memory_bytes: min_memory_bytes(2) - 1, ..files.params(25) };
    assert!(fault(too_little).contains("too little"));

    let nowhere = PathBuf::from("/nowhere/at/all");
    let plan = MemoryPlan { bins: 3, max_extents: 3, ..SMALL };
    let params = CountParams { work_dir: nowhere, ..files.params(25) };
    let error = ScatteredReads::<2>::scatter_with_memory_plan(
        plan,
        &files.lanes,
        &params,
        &ProgressCounters::default(),
        || KeepPairUnchanged,
    )
    .expect_err("no such folder");
    assert!(matches!(error, Error::Spill(_)));
    assert!(error.to_string().contains("k-mer spill file in /nowhere/at/all"), "{error}");

    let other = Lane { sample: 2, ..files.lanes[0].clone() };
    let error = count_all(&[other], &files.params(25)).expect_err("no such sample");
    assert!(error.to_string().contains("sample number 2"));
}
