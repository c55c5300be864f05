//! One suite for all backends: the records by bin are those of a definition, whatever the backend.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use genuma_reads::Mate;

use super::*;
use crate::encode::pack;
use crate::encode::reverse_complement_kmer;
use crate::extents::ExtentPool;
use crate::minimizer::minimizer_length;
use crate::node_assignment::NodeAssignment;
use crate::superkmer::super_kmer_records;
use crate::tests::{Random, random_bases};

type Read = (Vec<u8>, Vec<u8>);
/// Records of each bin, sorted.
type Records = BTreeMap<usize, Vec<Vec<u8>>>;

const MIN_QUALITY: u8 = 20;
const GRIDS: [BinGrid; 3] = [
    BinGrid { num_partitions: 1, bins_per_partition: 16 },
    BinGrid { num_partitions: 1, bins_per_partition: 777 },
    BinGrid { num_partitions: 3, bins_per_partition: 40 },
];

/// Reads of 1 to 10,000 bases with N, lower case, low qualities, poly-A and tandem repeats.
fn awkward_reads(seed: u64) -> Vec<Read> {
    let random = &mut Random(seed);
    let mut lengths: Vec<usize> = (1..=70).chain([95, 96, 97, 10_000]).collect();
    lengths.extend((0..120).map(|_| 100 + random.below(100) as usize));
    let read = |len: usize| {
        let mut seq = random_bases(len, random.below(u64::MAX));
        match random.below(10) {
            0 => seq.fill(b'A'),
            1 => (0..len).for_each(|i| seq[i] = b"ACACACT"[i % 7]),
            2 => seq.iter_mut().for_each(|base| base.make_ascii_lowercase()),
            3 => seq.fill(b'N'),
            _ => {}
        }
        let mut qual = vec![b'I'; len];
        for _ in 0..len / 90 {
            seq[random.below(len as u64) as usize] = b'N';
            qual[random.below(len as u64) as usize] = 33 + MIN_QUALITY - 1;
        }
        (seq, qual)
    };
    lengths.into_iter().map(read).collect()
}

/// The minimizer of a k-mer by its definition.
fn minimizer_by_definition(kmer: &[u8], m: u32) -> u32 {
    let root = &kmer[1..kmer.len() - 1];
    let hash = |word: u64| (word as u32 ^ 0x2545_f491).wrapping_mul(0x9e37_79b1);
    let words = root.windows(m as usize).map(|mmer| pack(mmer).expect("good bases"));
    words.map(|word| hash(word.min(reverse_complement_kmer(word, m)))).min().expect("a root has m-mers")
}

/// Adds the records of a stretch of good bases; returns the number of k-mers.
fn add_records(seq: &[u8], sample: u8, layout: &BinLayout, records: &mut Records) -> u64 {
    let k = layout.k as usize;
    let minimizers: Vec<u32> =
        seq.windows(k).map(|kmer| minimizer_by_definition(kmer, minimizer_length(layout.k))).collect();
    let mut first = 0;
    for run in minimizers.chunk_by(|one, next| one == next).flat_map(|run| run.chunks(32)) {
        if let Some(bin) = layout.bin_of_minimizer(run[0]) {
            let bases = &seq[first..first + run.len() + k - 1];
            let quad = |four: &[u8]| (pack(four).expect("good bases") << (8 - 2 * four.len())) as u8;
            let head = sample << 5 | (run.len() - 1) as u8;
            records.entry(bin).or_default().push([head].into_iter().chain(bases.chunks(4).map(quad)).collect());
        }
        first += run.len();
    }
    minimizers.len() as u64
}

/// The records of all reads, and their totals.
fn expected(reads: &[Read], sample: u8, layout: &BinLayout) -> (Records, ScatteredRecords) {
    let mut records = Records::new();
    let mut kmers = 0;
    for (seq, qual) in reads {
        let good = |(&base, &quality): (&u8, &u8)| match quality >= 33 + MIN_QUALITY {
            true => base.to_ascii_uppercase(),
            false => b'N',
        };
        let letters: Vec<u8> = seq.iter().zip(qual).map(good).collect();
        for stretch in letters.split(|&letter| letter == b'N') {
            kmers += add_records(stretch, sample, layout, &mut records);
        }
    }
    let bytes = records.values().flatten().map(|record| record.len() as u64).sum();
    records.values_mut().for_each(|records| records.sort());
    (records, ScatteredRecords { kmers, bytes })
}

/// Scatters reads in batches of `batch` reads, and returns what is in the bins.
fn scatter_reads(
    scatter: &mut dyn Scatter,
    reads: &[Read],
    sample: u8,
    layout: &BinLayout,
    batch: usize,
) -> (Records, ScatteredRecords) {
    let folder = tempfile::tempdir().expect("a folder");
    let num_bins = layout.grid.num_bins();
    let pool = ExtentPool::with_unnamed_file(
        4096,
        num_bins,
        1 << 12,
        NodeAssignment::for_this_machine(1),
        folder.path(),
        u64::MAX,
    );
    let bins = Bins::create_empty(num_bins, pool.expect("a pool"));
    let mut buffers = BinBuffers::allocate_for_bins(&bins, 256);
    let mut packer = QualityMaskingPacker::with_min_base_quality(MIN_QUALITY);
    let mut sum = ScatteredRecords::default();
    for reads in reads.chunks(batch) {
        for (seq, qual) in reads {
            scatter
                .scatter_read(packer.pack_and_mask_read(Mate { seq, qual }), sample, &mut buffers)
                .expect("scattered");
        }
        let ScatteredRecords { kmers, bytes } = scatter.finish_batch(sample, &mut buffers).expect("scattered");
        sum.kmers += kmers;
        sum.bytes += bytes;
    }
    buffers.flush_all_to_bins().expect("flushed");
    let mut records = Records::new();
    for bin in 0..num_bins {
        let mut found = Vec::new();
        let add = |bytes: &[u8]| {
            let mut rest = bytes;
            for record in super_kmer_records(bytes, layout.k) {
                let (whole, after) = rest.split_at(crate::superkmer::record_bytes(record.kmers, layout.k));
                found.push(whole.to_vec());
                rest = after;
            }
        };
        bins.for_each_extent_of_bin(bin, add).expect("readable");
        found.sort();
        if !found.is_empty() {
            records.insert(bin, found);
        }
    }
    (records, sum)
}

/// Checks a backend with several grids, samples and sizes of batches.
fn assert_scatters(name: &str, k: u32, backend: impl Fn(BinLayout) -> Box<dyn Scatter>) {
    for (case, grid) in (0u8..).zip(GRIDS) {
        let partition = if case == 1 {
            Partition::from_number_and_total(1, 2).expect("a half")
        } else {
            Partition::WHOLE_KMER_SPACE
        };
        let (layout, sample, batch) = (BinLayout { k, partition, grid }, 3 * case, [50, 7, 1000][usize::from(case)]);
        let reads = awkward_reads(u64::from(k) + 100 * u64::from(case));
        let (records, sum) = scatter_reads(&mut *backend(layout), &reads, sample, &layout, batch);
        let (all, total) = expected(&reads, sample, &layout);
        assert!(sum.kmers > 10_000 && all.len() > 10, "the reads have k-mers: {sum:?}");
        assert_eq!(sum, total, "{name}, k {k}, {grid:?}");
        assert!(records == all, "{name}, k {k}, {grid:?}: other records");
    }
}

#[test]
fn every_simd_level_gives_the_records_of_the_definition() {
    for k in [12, 21, 24, 31, 32] {
        for &level in SimdLevel::available_simd_levels() {
            assert_scatters(&format!("{level:?}"), k, |layout| Box::new(CpuScatter::new(layout, level)));
        }
    }
}

/// The simulated FPGA for `k` with these arguments; `None` without Verilator, after saying so.
pub(crate) fn simulated_fpga(k: u32, arguments: &[&str]) -> Option<SimulatedFpga> {
    Some(SimulatedFpga::with_program(simulator(k)?, arguments.iter().map(|&argument| argument.to_owned()).collect()))
}

/// The program, built by scripts/fpga.sh.
fn simulator(k: u32) -> Option<PathBuf> {
    static BUILD: Mutex<()> = Mutex::new(());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if Command::new("verilator").arg("--version").output().is_err() {
        // Written to stderr directly, because the test runner hides the output of passing tests.
        let why = b"skipped: no verilator here, which builds the simulated FPGA (scripts/setup.sh test)\n";
        std::io::Write::write_all(&mut std::io::stderr(), why).expect("stderr");
        return None;
    }
    let _one_at_a_time = BUILD.lock().unwrap_or_else(PoisonError::into_inner);
    let built = Command::new(root.join("scripts/fpga.sh")).args(["sim", &k.to_string()]).output().expect("a shell");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Some(root.join("target/fpga").join(format!("genuma-fpga-sim-k{k}")))
}

#[test]
fn the_simulated_fpga_gives_the_records_of_the_definition() {
    for k in [21, 24, 31, 32] {
        let Some(program) = simulator(k) else { return };
        let stalls = vec!["--stalls".to_owned(), k.to_string()];
        for arguments in [Vec::new(), stalls] {
            let fpgas = RefCell::new(Vec::new());
            assert_scatters(&format!("simulated FPGA {arguments:?}"), k, |layout| {
                let fpga = SimulatedFpga::with_program(program.clone(), arguments.clone());
                fpgas.borrow_mut().push(fpga.clone());
                Box::new(SimulatedFpgaScatter::new(layout, fpga))
            });
            // Batches that a thread scattered prove nothing.
            let batches: Vec<[u64; 2]> =
                fpgas.borrow().iter().map(SimulatedFpga::num_total_and_device_batches).collect();
            assert!(batches.iter().all(|&[_, on_device]| on_device > 0), "k {k}: {batches:?}");
        }
    }
}

#[test]
fn a_lost_or_overflowing_fpga_changes_nothing() {
    let Some(program) = simulator(31) else { return };
    let layout = BinLayout { k: 31, partition: Partition::WHOLE_KMER_SPACE, grid: GRIDS[0] };
    let mut reads = awkward_reads(3)[..194].to_vec();
    // All records of the second batch are in one bin, which overflows.
    reads.splice(100..100, vec![(vec![b'A'; 150], vec![b'I'; 150]); 100]);
    assert_eq!(reads.len(), 294);
    let expected = expected(&reads, 2, &layout);
    // Of three batches the second overflows; the simulator may end before the first or the third.
    for (batches, on_device) in [(9, 2), (2, 1), (0, 0)] {
        let arguments = vec!["--batches".to_owned(), batches.to_string()];
        let fpga = SimulatedFpga::with_program(program.clone(), arguments);
        let mut scatter = SimulatedFpgaScatter::new(layout, fpga.clone());
        let found = scatter_reads(&mut scatter, &reads, 2, &layout, 100);
        assert!(found == expected, "the simulator ends after {batches} batches");
        assert_eq!(fpga.num_total_and_device_batches(), [3, on_device]);
    }
}

#[test]
fn a_missing_simulator_is_an_error_that_says_how_to_build_it() {
    let missing = SimulatedFpga::find_simulator(Path::new("/nowhere"), 31).expect_err("nothing is there");
    assert_eq!(missing, "/nowhere/genuma-fpga-sim-k31 is missing: build it with scripts/fpga.sh sim 31");
    let layout = BinLayout { k: 31, partition: Partition::WHOLE_KMER_SPACE, grid: GRIDS[0] };
    for (program, why) in [("/nowhere/sim", "No such file"), ("/bin/true", "it does not greet")] {
        let mut scatter = SimulatedFpgaScatter::new(layout, SimulatedFpga::with_program(program.into(), Vec::new()));
        let folder = tempfile::tempdir().expect("a folder");
        let pool =
            ExtentPool::with_unnamed_file(4096, 16, 64, NodeAssignment::for_this_machine(1), folder.path(), u64::MAX);
        let bins = Bins::create_empty(16, pool.expect("a pool"));
        let mut packer = QualityMaskingPacker::with_min_base_quality(0);
        let read = packer.pack_and_mask_read(Mate { seq: b"ACGT", qual: b"IIII" });
        let failed =
            scatter.scatter_read(read, 0, &mut BinBuffers::allocate_for_bins(&bins, 256)).expect_err("no simulator");
        let message = failed.to_string();
        assert!(message.contains(why) && message.contains("scripts/fpga.sh sim 31"), "{message}");
    }
}
