//! One suite for whoever counts: threads with each of the processor's sets of vectors, the twin of the kernels, and OpenCL.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, OnceLock};

use genuma_gpu::{Device, Trial, find};
use genuma_machine::processor::Vectors;

use super::lane::{Counting, Fault};
use super::opencl::OpenCl;
use super::table::{Gathered, Sizes, Table};
use super::twin::Twin;
use crate::superkmer::{Cutter, Keys, MAX_RECORD, records};
use crate::tally::{Class, Harvest, Rows, Spectra, Tally, Wanted};
use crate::tests::{Random, by_definition, random_bases};
use crate::{Error, SPECTRUM_SLOTS};
use genuma_reads::{Mate, dna};

/// What a thread does, by given vectors, in the frame of the others.
struct Threads<const S: usize> {
    k: u32,
    vectors: Vectors,
    sizes: Sizes,
    tally: Tally<S>,
    keys: Vec<u64>,
    counts: Vec<[u32; S]>,
}

impl<const S: usize> Table<S> for Threads<S> {
    type Stage = Vec<u8>;

    fn stage(&self) -> Result<Vec<u8>, genuma_gpu::Error> {
        Ok(vec![0; self.sizes.piece])
    }

    fn most_chunks(&self) -> usize {
        self.sizes.chunks
    }

    fn most_slots(&self) -> usize {
        self.sizes.slots
    }

    fn start(&mut self, class: Class, slots: usize) -> Result<(), genuma_gpu::Error> {
        self.tally = Tally::new(slots);
        self.tally.start(class, 0);
        Ok(())
    }

    fn add(&mut self, bytes: &[u8], _: &[u32]) -> Result<(), genuma_gpu::Error> {
        let mut keys = Keys::default();
        for record in records(bytes, self.k) {
            let mut counts = [0; S];
            counts[record.sample] = 1;
            self.tally.add(keys.by(self.vectors, record.word(self.k), record.kmers, self.k), counts);
        }
        Ok(())
    }

    fn finish(
        &mut self,
        wanted: Wanted,
        spectra: &mut Spectra<S>,
    ) -> Result<Option<Gathered<'_, S>>, genuma_gpu::Error> {
        let Self { tally, keys, counts, .. } = self;
        tally.settle();
        if tally.next_class().is_some() {
            return Ok(None);
        }
        keys.clear();
        counts.clear();
        let (distinct, mut roots) = (tally.len() as u64, 0);
        tally.drain(spectra, |root| {
            roots += 1;
            for (low, n) in (0..).zip(root.counts) {
                let least = if let Wanted::Kmers { least } = wanted { least } else { 1 };
                if n.iter().sum::<u32>() >= least.max(1) {
                    keys.push(root.stem << 4 | low);
                    counts.push(n);
                }
            }
        });
        Ok(Some(Gathered { rows: Rows { keys, counts }, distinct, roots }))
    }
}

/// A device to test with, the same for all tests so that kernels are compiled once.
fn device() -> Option<Arc<Device>> {
    static DEVICE: OnceLock<Option<Arc<Device>>> = OnceLock::new();
    DEVICE.get_or_init(|| Some(opened(&Trial::default())?.remove(0))).clone()
}

/// The first device as a trial has it; says so where there is none.
pub(crate) fn opened(trial: &Trial) -> Option<Vec<Arc<Device>>> {
    let found = find();
    let Some(described) = found.devices.first() else {
        // Past what is kept of passing tests.
        let _ = writeln!(std::io::stderr(), "skipped: no device, see scripts/setup.sh: {:?}", found.missing);
        return None;
    };
    Some(Device::open(described, trial).expect("opened"))
}

/// All that is harvested.
#[derive(Debug)]
struct All<const S: usize> {
    wanted: Wanted,
    kmers: BTreeMap<u64, [u32; S]>,
    roots: u64,
    /// Roots that came in several pieces.
    torn: u64,
    fails: bool,
}

impl<const S: usize> All<S> {
    fn new(wanted: Wanted) -> Self {
        Self { wanted, kmers: BTreeMap::new(), roots: 0, torn: 0, fails: false }
    }
}

impl<const S: usize> Harvest<S> for All<S> {
    fn take(&mut self, _: &mut Tally<S>, _: &mut Spectra<S>) -> Result<(), Error> {
        panic!("tables are elsewhere")
    }

    fn wanted(&self) -> Wanted {
        self.wanted
    }

    fn rows(&mut self, rows: Rows<'_, S>, roots: u64) -> Result<(), Error> {
        if self.fails {
            return Err(Error::Params("enough".into()));
        }
        self.roots += roots;
        for (key, counts) in rows.keys.iter().zip(rows.counts) {
            assert!(self.kmers.insert(*key, *counts).is_none(), "a k-mer came twice");
        }
        let mut stems = std::collections::BTreeSet::new();
        rows.for_each_root(|root| self.torn += u64::from(!stems.insert(root.stem)));
        Ok(())
    }
}

/// Records of reads of both strands of a genome with repeats, of `S` samples, and how often each has each key.
fn generated<const S: usize>(k: u32, reads: usize, seed: u64) -> (Vec<u8>, BTreeMap<u64, [u32; S]>) {
    let random = &mut Random(seed);
    let mut genome = random_bases(2000, seed);
    genome.extend(b"A".repeat(300));
    genome.extend(b"CAG".repeat(60));
    genome.extend(b"ACGT".repeat(40));
    let (mut bytes, mut expected) = (Vec::new(), BTreeMap::<u64, [u32; S]>::new());
    let mut cutter = Cutter::new(k, 0);
    for _ in 0..reads {
        let len = [k as usize, 63, 64, 65, 100, 150][random.below(6) as usize].max(k as usize);
        let at = random.below((genome.len() - len) as u64) as usize;
        let mut seq = genome[at..at + len].to_vec();
        if random.below(2) == 1 {
            seq = dna::revcomp(&seq);
        }
        if random.below(3) == 0 {
            seq[random.below(len as u64) as usize] = b"ACGT"[random.below(4) as usize];
        }
        let sample = random.below(S as u64) as usize;
        for kmer in seq.windows(k as usize) {
            expected.entry(by_definition(kmer)).or_insert([0; S])[sample] += 1;
        }
        let mut pieces = Vec::new();
        let packed = cutter.cut(Mate { seq: &seq, qual: &seq }, |piece| pieces.push(piece));
        for piece in pieces {
            let mut record = [0; MAX_RECORD];
            let len = piece.write_record(packed, k, sample as u8, &mut record);
            bytes.extend_from_slice(&record[..len]);
        }
    }
    (bytes, expected)
}

/// Counts the records, in so many readings, and compares everything.
fn holds<const S: usize, T: Table<S>>(
    name: &str,
    table: T,
    k: u32,
    (bytes, expected): &(Vec<u8>, BTreeMap<u64, [u32; S]>),
) -> u64 {
    let mut counting = Counting::new(k, table).expect("ready");
    let read = |each: &mut dyn FnMut(&[u8])| {
        // Whole records, in two pieces.
        let half = records(bytes, k).take(100).map(|r| crate::superkmer::record_bytes(r.kmers, k)).sum();
        let (one, two) = bytes.split_at(half);
        each(one);
        each(two);
        Ok(())
    };
    let mut passes = 0;
    let kmers: u64 = expected.values().flatten().map(|&n| u64::from(n)).sum();
    // A second bin finds nothing of the first.
    for wanted in [Wanted::Roots, Wanted::Kmers { least: 1 }, Wanted::Kmers { least: 3 }] {
        let mut all = All::new(wanted);
        counting
            .bin(kmers, read, &mut vec![Class::ALL], &mut all)
            .unwrap_or_else(|e| panic!("{name}: {e:?}"));
        let least = if let Wanted::Kmers { least } = wanted { least } else { 1 };
        let mut expected = expected.clone();
        let roots = expected.keys().map(|key| key >> 4).collect::<std::collections::BTreeSet<_>>().len();
        expected.retain(|_, counts| counts.iter().sum::<u32>() >= least);
        assert!(all.kmers == expected, "{name}, k {k}, {S} samples, {wanted:?}: k-mers differ");
        assert_eq!(all.roots, roots as u64, "{name}, k {k}: roots");
        assert!(wanted != Wanted::Roots || all.torn == 0, "{name}: roots were torn apart");
        passes = counting.share.passes;
    }
    let share = &mut counting.share;
    share.spectra.only_present();
    for sample in 0..S {
        let mut spectrum = vec![0; SPECTRUM_SLOTS];
        for n in expected.values().map(|counts| counts[sample] as usize).filter(|&n| n > 0) {
            spectrum[n.min(SPECTRUM_SLOTS - 1)] += 3;
        }
        assert_eq!(share.spectra.0[sample], spectrum, "{name}, k {k}, sample {sample}");
    }
    assert_eq!(share.distinct, 3 * expected.len() as u64);
    passes
}

/// All backends with the same records; returns the passes of each.
fn all_hold<const S: usize>(k: u32, reads: usize, seed: u64, sizes: Sizes) -> Vec<(String, u64)> {
    let case = generated::<S>(k, reads, seed);
    let mut passes = Vec::new();
    for (i, &vectors) in Vectors::all().iter().enumerate() {
        let (tally, keys, counts) = (Tally::new(0), Vec::new(), Vec::new());
        let table = Threads { k, vectors, sizes, tally, keys, counts };
        passes.push((format!("threads {i}"), holds(&format!("{vectors:?}"), table, k, &case)));
    }
    passes.push(("twin".into(), holds("twin", Twin::new(k, sizes), k, &case)));
    if let Some(device) = device() {
        let opencl = OpenCl::new(&device, k, sizes).expect("a table");
        passes.push(("opencl".into(), holds("opencl", opencl, k, &case)));
    }
    passes
}

const AMPLE: Sizes = Sizes { piece: 1 << 20, chunks: 4097, slots: 1 << 16 };

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
fn edge_lengths_are_counted_by_all() {
    for reads in [0, 1, 2, 15, 16, 17] {
        all_hold::<2>(31, reads, 100 + reads as u64, AMPLE);
    }
}

#[test]
fn pieces_and_passes_do_not_show() {
    // A bin that goes over in many pieces, and has many times the k-mers that the table has slots.
    let sizes = Sizes { piece: 2048, chunks: 3, slots: 1024 };
    let passes = all_hold::<2>(31, 3000, 77, sizes);
    assert!(passes.iter().all(|(_, n)| *n > 9), "{passes:?}");
}

#[test]
fn what_a_lost_device_leaves_are_whole_classes() {
    let case = generated::<2>(25, 2000, 9);
    let sizes = Sizes { piece: 4096, chunks: 5, slots: 1024 };
    let kmers = case.1.values().flatten().map(|&n| u64::from(n)).sum();
    let read = |each: &mut dyn FnMut(&[u8])| {
        each(&case.0);
        Ok(())
    };
    let mut losses = 0;
    for fail in [10, 20, 40, 70, 110, 160, 220, 300, 600] {
        let Some(mut devices) = opened(&Trial::default().fail_at(fail)) else { return };
        let device = devices.remove(0);
        let (mut all, mut classes) = (All::new(Wanted::Roots), vec![Class::ALL]);
        let on_device = OpenCl::new(&device, 25, sizes)
            .map_err(Fault::Device)
            .and_then(|table| Counting::new(25, table)?.bin(kmers, read, &mut classes, &mut all));
        if let Err(fault) = on_device {
            assert!(matches!(fault, Fault::Device(_)) && device.is_lost(), "{fault:?}");
            losses += 1;
            let mut rest = Counting::new(25, Twin::new(25, AMPLE)).expect("ready");
            rest.bin(kmers, read, &mut classes, &mut all).expect("counted");
        }
        assert!(all.kmers == case.1, "call {fail}");
    }
    assert!(losses > 4, "{losses} losses");
}

#[test]
fn errors_of_a_count_are_no_faults_of_a_device() {
    let case = generated::<2>(31, 100, 1);
    let mut counting = Counting::new(31, Twin::<2>::new(31, AMPLE)).expect("ready");
    let mut all = All { fails: true, ..All::new(Wanted::Roots) };
    let read = |each: &mut dyn FnMut(&[u8])| {
        each(&case.0);
        Ok(())
    };
    let fault = counting.bin(1000, read, &mut vec![Class::ALL], &mut all).expect_err("refused");
    assert!(matches!(fault, Fault::Count(_)), "{fault:?}");
    let broken = |_: &mut dyn FnMut(&[u8])| Err(Error::Params("unreadable".into()));
    let fault = counting.bin(1000, broken, &mut vec![Class::ALL], &mut all).expect_err("unreadable");
    assert!(matches!(fault, Fault::Count(_)), "{fault:?}");
}
