//! One test suite for all implementations: threads with each vector instruction set, the reference implementation,
//! and OpenCL.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, OnceLock};

use genuma_gpu::{Device, DeviceTestSettings, find_devices};
use genuma_machine::simd_and_prefetch::SimdLevel;

use super::cpu_table::CpuDeviceTable;
use super::lane::{LaneCounter, LaneError};
use super::opencl::OpenClTable;
use super::table::{DeviceTable, GatheredCounts, LaneMemorySizes};
use crate::counter_table::{CounterSink, CounterTable, DeviceRowRequest, DeviceTableRows, KmerSpectra, RootClass};
use crate::superkmer::{KmerKeyBuffer, MAX_RECORD_BYTES, QualityMaskingPacker, SuperKmerCutter, super_kmer_records};
use crate::tests::{Random, by_definition, random_bases};
use crate::{Error, NUM_SPECTRUM_ENTRIES};
use genuma_reads::{Mate, dna};

/// A thread's counter table with given vector instructions, behind the interface of device tables.
struct Threads<const S: usize> {
    k: u32,
    vectors: SimdLevel,
    sizes: LaneMemorySizes,
    tally: CounterTable<S>,
    keys: Vec<u64>,
    counts: Vec<[u32; S]>,
}

impl<const S: usize> DeviceTable<S> for Threads<S> {
    type StagingMemory = Vec<u8>;

    fn allocate_staging(&self) -> Result<Vec<u8>, genuma_gpu::Error> {
        Ok(vec![0; self.sizes.staging_bytes])
    }

    fn max_chunks(&self) -> usize {
        self.sizes.max_chunks
    }

    fn max_slots(&self) -> usize {
        self.sizes.max_slots
    }

    fn start_class(&mut self, class: RootClass, slots: usize) -> Result<(), genuma_gpu::Error> {
        self.tally = CounterTable::with_max_slots(slots);
        self.tally.start_class(class, 0);
        Ok(())
    }

    fn add_records(&mut self, bytes: &[u8], _: &[u32]) -> Result<(), genuma_gpu::Error> {
        let mut keys = KmerKeyBuffer::default();
        for record in super_kmer_records(bytes, self.k) {
            let mut counts = [0; S];
            counts[record.sample] = 1;
            self.tally.add_counts_to_keys(
                keys.compute_keys_at_simd_level(
                    self.vectors,
                    record.canonical_bases_as_word(self.k),
                    record.kmers,
                    self.k,
                ),
                counts,
            );
        }
        Ok(())
    }

    fn gather_counts(
        &mut self,
        wanted: DeviceRowRequest,
        spectra: &mut KmerSpectra<S>,
    ) -> Result<Option<GatheredCounts<'_, S>>, genuma_gpu::Error> {
        let Self { tally, keys, counts, .. } = self;
        tally.add_waiting_kmers();
        if tally.take_postponed_class().is_some() {
            return Ok(None);
        }
        keys.clear();
        counts.clear();
        let (distinct, mut roots) = (tally.num_kmers() as u64, 0);
        tally.drain_roots(spectra, |root| {
            roots += 1;
            for (low, n) in (0..).zip(root.counts) {
                let least = if let DeviceRowRequest::Kmers { min_count: least } = wanted { least } else { 1 };
                if n.iter().sum::<u32>() >= least.max(1) {
                    keys.push(root.root << 4 | low);
                    counts.push(n);
                }
            }
        });
        Ok(Some(GatheredCounts { rows: DeviceTableRows { keys, counts }, num_kmers: distinct, num_roots: roots }))
    }
}

/// A device for tests, shared by all tests so that kernels are compiled once.
fn device() -> Option<Arc<Device>> {
    static DEVICE: OnceLock<Option<Arc<Device>>> = OnceLock::new();
    DEVICE.get_or_init(|| Some(opened(&DeviceTestSettings::default())?.remove(0))).clone()
}

/// Opens the first device as configured by a trial; reports if there is none.
pub(crate) fn opened(trial: &DeviceTestSettings) -> Option<Vec<Arc<Device>>> {
    let found = find_devices();
    let Some(described) = found.devices.first() else {
        // Bypasses the output capture of passing tests.
        let _ = writeln!(std::io::stderr(), "skipped: no device, see scripts/setup.sh: {:?}", found.missing);
        return None;
    };
    Some(Device::open_whole_or_in_parts(described, trial).expect("opened"))
}

/// Consumer that collects everything.
#[derive(Debug)]
struct All<const S: usize> {
    wanted: DeviceRowRequest,
    kmers: BTreeMap<u64, [u32; S]>,
    roots: u64,
    /// Roots that came in several pieces.
    torn: u64,
    fails: bool,
}

impl<const S: usize> All<S> {
    fn new(wanted: DeviceRowRequest) -> Self {
        Self { wanted, kmers: BTreeMap::new(), roots: 0, torn: 0, fails: false }
    }
}

impl<const S: usize> CounterSink<S> for All<S> {
    fn take_table(&mut self, _: &mut CounterTable<S>, _: &mut KmerSpectra<S>) -> Result<(), Error> {
        panic!("tables are elsewhere")
    }

    fn requested_rows(&self) -> DeviceRowRequest {
        self.wanted
    }

    fn take_rows(&mut self, rows: DeviceTableRows<'_, S>, roots: u64) -> Result<(), Error> {
        if self.fails {
            return Err(Error::InvalidParams("enough".into()));
        }
        self.roots += roots;
        for (key, counts) in rows.keys.iter().zip(rows.counts) {
            assert!(self.kmers.insert(*key, *counts).is_none(), "a k-mer came twice");
        }
        let mut roots = std::collections::BTreeSet::new();
        rows.for_each_root(|root| self.torn += u64::from(!roots.insert(root.root)));
        Ok(())
    }
}

/// Records of reads of both strands of a genome with repeats, of `S` samples, and the expected count of each key.
fn generated<const S: usize>(k: u32, reads: usize, seed: u64) -> (Vec<u8>, BTreeMap<u64, [u32; S]>) {
    let random = &mut Random(seed);
    let mut genome = random_bases(2000, seed);
    genome.extend(b"A".repeat(300));
    genome.extend(b"CAG".repeat(60));
    genome.extend(b"ACGT".repeat(40));
    let (mut bytes, mut expected) = (Vec::new(), BTreeMap::<u64, [u32; S]>::new());
    let mut packer = QualityMaskingPacker::with_min_base_quality(0);
    let mut cutter = SuperKmerCutter::for_kmer_length(k, SimdLevel::widest_available());
    for _ in 0..reads {
        let len = [k as usize, 63, 64, 65, 100, 150][random.below(6) as usize].max(k as usize);
        let at = random.below((genome.len() - len) as u64) as usize;
        let mut seq = genome[at..at + len].to_vec();
        if random.below(2) == 1 {
            seq = dna::reverse_complement(&seq);
        }
        if random.below(3) == 0 {
            seq[random.below(len as u64) as usize] = b"ACGT"[random.below(4) as usize];
        }
        let sample = random.below(S as u64) as usize;
        for kmer in seq.windows(k as usize) {
            expected.entry(by_definition(kmer)).or_insert([0; S])[sample] += 1;
        }
        let mut pieces = Vec::new();
        let read = packer.pack_and_mask_read(Mate { seq: &seq, qual: &seq });
        cutter.cut_into_super_kmers(read, |piece| pieces.push(piece));
        for piece in pieces {
            let mut record = [0; MAX_RECORD_BYTES];
            let len = piece.write_record(read.packed_bases(), k, sample as u8, &mut record);
            bytes.extend_from_slice(&record[..len]);
        }
    }
    (bytes, expected)
}

/// Counts the records in several passes and compares all results.
fn holds<const S: usize, T: DeviceTable<S>>(
    name: &str,
    table: T,
    k: u32,
    (bytes, expected): &(Vec<u8>, BTreeMap<u64, [u32; S]>),
) -> u64 {
    let mut counting = LaneCounter::with_table(k, table).expect("ready");
    let read = |each: &mut dyn FnMut(&[u8])| {
        // Complete records, in two pieces.
        let half = super_kmer_records(bytes, k).take(100).map(|r| crate::superkmer::record_bytes(r.kmers, k)).sum();
        let (one, two) = bytes.split_at(half);
        each(one);
        each(two);
        Ok(())
    };
    let mut passes = 0;
    let kmers: u64 = expected.values().flatten().map(|&n| u64::from(n)).sum();
    // A second bin contains nothing of the first.
    for wanted in
        [DeviceRowRequest::Roots, DeviceRowRequest::Kmers { min_count: 1 }, DeviceRowRequest::Kmers { min_count: 3 }]
    {
        let mut all = All::new(wanted);
        counting
            .count_classes_of_bin(kmers, read, &mut vec![RootClass::ALL_ROOTS], &mut all)
            .unwrap_or_else(|e| panic!("{name}: {e:?}"));
        let least = if let DeviceRowRequest::Kmers { min_count: least } = wanted { least } else { 1 };
        let mut expected = expected.clone();
        let roots = expected.keys().map(|key| key >> 4).collect::<std::collections::BTreeSet<_>>().len();
        expected.retain(|_, counts| counts.iter().sum::<u32>() >= least);
        assert!(all.kmers == expected, "{name}, k {k}, {S} samples, {wanted:?}: k-mers differ");
        assert_eq!(all.roots, roots as u64, "{name}, k {k}: roots");
        assert!(wanted != DeviceRowRequest::Roots || all.torn == 0, "{name}: roots were torn apart");
        passes = counting.totals.passes;
    }
    let share = &mut counting.totals;
    share.spectra.clear_entries_of_count_zero();
    for sample in 0..S {
        let mut spectrum = vec![0; NUM_SPECTRUM_ENTRIES];
        for n in expected.values().map(|counts| counts[sample] as usize).filter(|&n| n > 0) {
            spectrum[n.min(NUM_SPECTRUM_ENTRIES - 1)] += 3;
        }
        assert_eq!(share.spectra.0[sample], spectrum, "{name}, k {k}, sample {sample}");
    }
    assert_eq!(share.distinct, 3 * expected.len() as u64);
    passes
}

/// Tests all backends with the same records; returns the number of passes of each.
fn all_hold<const S: usize>(k: u32, reads: usize, seed: u64, sizes: LaneMemorySizes) -> Vec<(String, u64)> {
    let case = generated::<S>(k, reads, seed);
    let mut passes = Vec::new();
    for (i, &vectors) in SimdLevel::available_simd_levels().iter().enumerate() {
        let (tally, keys, counts) = (CounterTable::with_max_slots(0), Vec::new(), Vec::new());
        let table = Threads { k, vectors, sizes, tally, keys, counts };
        passes.push((format!("threads {i}"), holds(&format!("{vectors:?}"), table, k, &case)));
    }
    passes.push(("twin".into(), holds("twin", CpuDeviceTable::new(k, sizes), k, &case)));
    if let Some(device) = device() {
        let opencl = OpenClTable::create_on_device(&device, k, sizes).expect("a table");
        passes.push(("opencl".into(), holds("opencl", opencl, k, &case)));
    }
    passes
}

const AMPLE: LaneMemorySizes = LaneMemorySizes { staging_bytes: 1 << 20, max_chunks: 4097, max_slots: 1 << 16 };

#[test]
fn all_backends_count_alike() {
    for k in [12, 24, 25, 31, 32] {
        let passes = all_hold::<2>(k, 800, u64::from(k), AMPLE);
        assert!(passes.iter().all(|(_, n)| *n == 3), "{passes:?}");
    }
    all_hold::<1>(31, 300, 5, AMPLE);
    all_hold::<4>(31, 300, 6, AMPLE);
    all_hold::<8>(31, 300, 7, AMPLE);
}

#[test]
fn all_backends_count_edge_lengths() {
    for reads in [0, 1, 2, 15, 16, 17] {
        all_hold::<2>(31, reads, 100 + reads as u64, AMPLE);
    }
}

#[test]
fn results_do_not_depend_on_pieces_and_passes() {
    // A bin that is sent in many pieces, and has many times more k-mers than the table has slots.
    let sizes = LaneMemorySizes { staging_bytes: 2048, max_chunks: 3, max_slots: 1024 };
    let passes = all_hold::<2>(31, 3000, 77, sizes);
    assert!(passes.iter().all(|(_, n)| *n > 9), "{passes:?}");
}

#[test]
fn a_lost_device_leaves_complete_classes() {
    let case = generated::<2>(25, 2000, 9);
    let sizes = LaneMemorySizes { staging_bytes: 4096, max_chunks: 5, max_slots: 1024 };
    let kmers = case.1.values().flatten().map(|&n| u64::from(n)).sum();
    let read = |each: &mut dyn FnMut(&[u8])| {
        each(&case.0);
        Ok(())
    };
    let mut losses = 0;
    for fail in [10, 20, 40, 70, 110, 160, 220, 300, 600] {
        let Some(mut devices) = opened(&DeviceTestSettings::default().with_failing_call_number(fail)) else { return };
        let device = devices.remove(0);
        let (mut all, mut classes) = (All::new(DeviceRowRequest::Roots), vec![RootClass::ALL_ROOTS]);
        let on_device =
            OpenClTable::create_on_device(&device, 25, sizes).map_err(LaneError::Device).and_then(|table| {
                LaneCounter::with_table(25, table)?.count_classes_of_bin(kmers, read, &mut classes, &mut all)
            });
        if let Err(fault) = on_device {
            assert!(matches!(fault, LaneError::Device(_)) && device.is_lost(), "{fault:?}");
            losses += 1;
            let mut rest = LaneCounter::with_table(25, CpuDeviceTable::new(25, AMPLE)).expect("ready");
            rest.count_classes_of_bin(kmers, read, &mut classes, &mut all).expect("counted");
        }
        assert!(all.kmers == case.1, "call {fail}");
    }
    assert!(losses > 4, "{losses} losses");
}

#[test]
fn errors_of_a_count_are_not_device_failures() {
    let case = generated::<2>(31, 100, 1);
    let mut counting = LaneCounter::with_table(31, CpuDeviceTable::<2>::new(31, AMPLE)).expect("ready");
    let mut all = All { fails: true, ..All::new(DeviceRowRequest::Roots) };
    let read = |each: &mut dyn FnMut(&[u8])| {
        each(&case.0);
        Ok(())
    };
    let fault =
        counting.count_classes_of_bin(1000, read, &mut vec![RootClass::ALL_ROOTS], &mut all).expect_err("refused");
    assert!(matches!(fault, LaneError::Counting(_)), "{fault:?}");
    let broken = |_: &mut dyn FnMut(&[u8])| Err(Error::InvalidParams("unreadable".into()));
    let fault =
        counting.count_classes_of_bin(1000, broken, &mut vec![RootClass::ALL_ROOTS], &mut all).expect_err("unreadable");
    assert!(matches!(fault, LaneError::Counting(_)), "{fault:?}");
}
