//! A table on a device that OpenCL drives.
//!
//! A hash table, not a sort: a k-mer that was seen before, as nine of ten are at thirty-fold depth, costs an addition to a table of a bin, which a
//! device's cache holds, where sorting would move all of them through its memory some sixteen times. It takes 64-bit atomics, which the
//! drivers in use have (docs/gpu.md); a device without is not used, and that is told.
//!
//! `unsafe` is for starting kernels, whose arguments are made here, and for reading rows as what they were written as.
#![allow(unsafe_code)]

use std::sync::Arc;

use genuma_gpu::{Arg, Device, Error, Kernel, Lane, Memory, Staging};

use super::table::{CHUNK, GROUP, Gathered, MARGIN, STRETCH, Sizes, Table};
use crate::SPECTRUM_SLOTS;
use crate::tally::{Class, Rows, Spectra, Wanted};

const SOURCE: &str = concat!(include_str!("key.cl"), include_str!("insert.cl"), include_str!("gather.cl"));

/// Words of the state before the spectra.
const STATE: usize = 4;

/// A table on a device.
#[derive(Debug)]
pub(crate) struct OpenCl<const S: usize> {
    sizes: Sizes,
    class: Class,
    slots: usize,
    insert: Kernel,
    gather: Kernel,
    records: Memory,
    starts: Memory,
    keys: Memory,
    counts: Memory,
    state: Memory,
    spectra: Memory,
    row_keys: Memory,
    row_counts: Memory,
    /// What is read back lies here.
    host_keys: Staging,
    host_counts: Staging,
    lane: Lane,
}

impl<const S: usize> OpenCl<S> {
    /// For `k`-mers, on a lane of its own.
    ///
    /// # Errors
    /// The device lacks what is needed, its driver cannot compile the kernels, or it fails.
    pub fn new(device: &Arc<Device>, k: u32, sizes: Sizes) -> Result<Self, Error> {
        let options = format!(
            "-D K={k} -D SAMPLES={S} -D CHUNK={CHUNK} -D GROUP={GROUP} -D MARGIN={MARGIN} -D STRETCH={STRETCH} -D SLOTS={SPECTRUM_SLOTS}"
        );
        let lane = device.lane()?;
        let all = sizes.slots + MARGIN;
        let (keys, counts) = (8 * all, 4 * S * all);
        Ok(Self {
            sizes,
            class: Class::ALL,
            slots: 0,
            insert: lane.kernel(SOURCE, &options, "insert")?,
            gather: lane.kernel(SOURCE, &options, "gather")?,
            records: lane.memory(sizes.piece)?,
            starts: lane.memory(4 * (sizes.chunks + 1))?,
            keys: lane.memory(keys)?,
            counts: lane.memory(counts)?,
            state: lane.memory(4 * STATE)?,
            spectra: lane.memory(4 * S * SPECTRUM_SLOTS)?,
            row_keys: lane.memory(keys)?,
            row_counts: lane.memory(counts)?,
            host_keys: lane.staging(keys)?,
            host_counts: lane.staging(counts)?,
            lane,
        })
    }

    fn state(&self) -> Result<[u32; STATE], Error> {
        let mut bytes = [0; 4 * STATE];
        self.lane.read(&self.state, &mut bytes)?;
        Ok(std::array::from_fn(|i| u32::from_ne_bytes(bytes.as_chunks().0[i])))
    }
}

/// Reads `n` values out of bytes that a kernel wrote as such.
///
/// # Safety
/// Any bytes are a `T`.
unsafe fn values<T>(bytes: &[u8], n: usize) -> &[T] {
    // SAFETY: any bytes are values.
    let (before, values, _) = unsafe { bytes.align_to::<T>() };
    assert!(before.is_empty(), "drivers align memory to the largest of their types");
    &values[..n]
}

impl<const S: usize> Table<S> for OpenCl<S> {
    type Stage = Staging;

    fn stage(&self) -> Result<Staging, Error> {
        self.lane.staging(self.sizes.piece)
    }

    fn most_chunks(&self) -> usize {
        self.sizes.chunks
    }

    fn most_slots(&self) -> usize {
        self.sizes.slots
    }

    fn start(&mut self, class: Class, slots: usize) -> Result<(), Error> {
        assert!(slots <= self.sizes.slots, "more slots than there is memory for");
        (self.class, self.slots) = (class, slots);
        let all = slots + MARGIN;
        self.lane.fill(&mut self.keys, u32::MAX, 2 * all)?;
        self.lane.fill(&mut self.counts, 0, S * all)?;
        self.lane.fill(&mut self.state, 0, STATE)?;
        self.lane.fill(&mut self.spectra, 0, S * SPECTRUM_SLOTS)
    }

    fn add(&mut self, records: &[u8], starts: &[u32]) -> Result<(), Error> {
        // Chunks that lie as they should are what keeps the kernel within its memory.
        let fit = |chunk: &[u32]| chunk[0] < chunk[1] && (chunk[1] - chunk[0]) as usize <= CHUNK * 17;
        assert!(starts.windows(2).all(fit) && starts.last().is_none_or(|&end| end as usize <= records.len()));
        self.lane.write(&mut self.records, records)?;
        // SAFETY: words are bytes.
        let bytes = unsafe { starts.align_to::<u8>().1 };
        self.lane.write(&mut self.starts, bytes)?;
        let (bits, id) = self.class.bits_and_id();
        let args = [
            Arg::Memory(&self.records),
            Arg::Memory(&self.starts),
            Arg::Memory(&self.keys),
            Arg::Memory(&self.counts),
            Arg::U32(self.slots as u32),
            Arg::U32(bits),
            Arg::U64(id),
            Arg::Memory(&self.state),
        ];
        // SAFETY: a group a chunk, which lies within the records and is no longer than the kernel's local memory; places are below `slots`, and the
        // memory has a margin behind.
        unsafe { self.lane.start(&self.insert, &args, starts.len() - 1, GROUP) }
    }

    fn finish(&mut self, wanted: Wanted, spectra: &mut Spectra<S>) -> Result<Option<Gathered<'_, S>>, Error> {
        if self.state()?[0] != 0 {
            return Ok(None);
        }
        let (whole_roots, least) = match wanted {
            Wanted::Roots => (1, 0),
            Wanted::Kmers { least } => (0, least),
        };
        let args = [
            Arg::Memory(&self.keys),
            Arg::Memory(&self.counts),
            Arg::U32(self.slots as u32),
            Arg::U32(whole_roots),
            Arg::U64(least.into()),
            Arg::Memory(&self.state),
            Arg::Memory(&self.spectra),
            Arg::Memory(&self.row_keys),
            Arg::Memory(&self.row_counts),
        ];
        // SAFETY: slots up to the margin are memory, and there are as many places for rows as slots.
        unsafe {
            self.lane.start(&self.gather, &args, (self.slots + MARGIN).div_ceil(STRETCH), GROUP)?;
        }
        let [_, rows, distinct, roots] = self.state()?;
        let mut seen = vec![0; 4 * S * SPECTRUM_SLOTS];
        self.lane.read(&self.spectra, &mut seen)?;
        let rows = rows as usize;
        self.lane.read(&self.row_keys, &mut self.host_keys[..8 * rows])?;
        self.lane.read(&self.row_counts, &mut self.host_counts[..4 * S * rows])?;
        // All is here: from now on nothing can fail.
        let seen = seen.as_chunks().0.chunks(SPECTRUM_SLOTS);
        for (spectrum, seen) in spectra.0.iter_mut().zip(seen) {
            spectrum.iter_mut().zip(seen).for_each(|(sum, &n)| *sum += u64::from(u32::from_ne_bytes(n)));
        }
        // SAFETY: any bytes are integers.
        let keys = unsafe { values(&self.host_keys, rows) };
        // SAFETY: and arrays of them.
        let counts = unsafe { values(&self.host_counts, rows) };
        let rows = Rows { keys, counts };
        Ok(Some(Gathered { rows, distinct: distinct.into(), roots: roots.into() }))
    }
}
