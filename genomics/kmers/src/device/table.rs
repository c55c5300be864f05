//! A table of counters that is no CPU thread's: what every backend does, whatever drives it.

use std::ops::DerefMut;

use genuma_gpu::Error;

use crate::SPECTRUM_SLOTS;
use crate::tally::{Class, Rows, Spectra, Wanted};

/// Records of a work-group.
pub const CHUNK: usize = 64;
/// Items of a work-group: a power of two that every device has, and two to one of its vectors.
pub const GROUP: usize = 64;
/// Slots that are looked at for a k-mer before the table counts as full, and slots behind it, so that nothing wraps.
pub const MARGIN: usize = 512;
/// Slots of a work-group that gathers.
pub const STRETCH: usize = 1024;

/// What a table came to.
#[derive(Debug)]
pub struct Gathered<'a, const S: usize> {
    /// What is wanted of it.
    pub rows: Rows<'a, S>,
    /// All k-mers.
    pub distinct: u64,
    /// All roots.
    pub roots: u64,
}

/// Counts the k-mers of records, in a table of fixed size.
pub trait Table<const S: usize> {
    /// Memory in which records are laid for [`Table::add`].
    type Stage: DerefMut<Target = [u8]>;

    /// Memory for a piece of records.
    ///
    /// # Errors
    /// The device fails.
    fn stage(&self) -> Result<Self::Stage, Error>;

    /// Most chunks of a piece.
    fn most_chunks(&self) -> usize;

    /// Most slots.
    fn most_slots(&self) -> usize;

    /// An empty table of so many slots, at most [`Table::most_slots`], for the roots of `class`.
    ///
    /// # Errors
    /// The device fails.
    fn start(&mut self, class: Class, slots: usize) -> Result<(), Error>;

    /// Counts a piece: whole records, and where each chunk of at most [`CHUNK`] of them starts, and the last ends.
    ///
    /// # Errors
    /// The device fails.
    fn add(&mut self, records: &[u8], starts: &[u32]) -> Result<(), Error>;

    /// What the table came to, whose k-mers are added to the spectra, those of count 0 too; `None`, and nothing added, if it was too small.
    ///
    /// # Errors
    /// The device fails; nothing is added then either.
    fn finish(&mut self, wanted: Wanted, spectra: &mut Spectra<S>) -> Result<Option<Gathered<'_, S>>, Error>;
}

/// What a lane takes of a device's memory and of the host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of a piece of records.
    pub piece: usize,
    /// Chunks of a piece, at most.
    pub chunks: usize,
    /// Slots of the table, without the margin.
    pub slots: usize,
}

/// Bytes of a row with counters of `S` samples, and of a slot.
pub(crate) const fn row_bytes<const S: usize>() -> usize {
    size_of::<u64>() + S * size_of::<u32>()
}

impl Sizes {
    /// Bytes of the state and the spectra.
    pub const fn small<const S: usize>() -> usize {
        (4 + S * SPECTRUM_SLOTS) * size_of::<u32>()
    }

    /// For so many bytes of the device, of which `largest` may be in one piece, and of the host; `None` when that is too little to count in.
    pub fn of<const S: usize>(device: u64, largest: u64, host: u64) -> Option<Self> {
        const MOST_PIECE: u64 = 16 << 20;
        const LEAST_PIECE: u64 = 8 << 10;
        const LEAST_SLOTS: u64 = 1024;
        let piece = (device / 8).min(host / 4).min(MOST_PIECE).min(largest).max(LEAST_PIECE);
        // Chunks are 256 bytes at least where they are full.
        let chunks = piece / 256 + 1;
        let other = piece + 4 * (chunks + 1) + Self::small::<S>() as u64;
        let row = row_bytes::<S>() as u64;
        // Slots and rows are on the device, rows on the host as well.
        let slots = (device.checked_sub(other)? / (2 * row)).min(host.checked_sub(other)? / row);
        let slots = slots.min(largest / (4 * S as u64).max(8)).min(1 << 31).checked_sub(MARGIN as u64)?;
        (slots >= LEAST_SLOTS).then_some(Self {
            piece: piece as usize,
            chunks: chunks as usize,
            slots: slots as usize,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits<const S: usize>() {
        for device in [64 << 10, 1 << 20, 1 << 30, 80 << 30] {
            for host in [64 << 10, 16 << 20, 1 << 30] {
                let Some(sizes) = Sizes::of::<S>(device, device / 4, host) else {
                    assert!(device.min(host) < 1 << 20);
                    continue;
                };
                let all = (sizes.slots + MARGIN) * row_bytes::<S>();
                let other = sizes.piece + 4 * (sizes.chunks + 1) + Sizes::small::<S>();
                assert!((2 * all + other) as u64 <= device && (all + other) as u64 <= host, "{sizes:?}");
                assert!((sizes.slots + MARGIN) as u64 * 8 <= device / 4, "{sizes:?}");
            }
        }
    }

    #[test]
    fn lanes_stay_within_their_memory() {
        fits::<1>();
        fits::<2>();
        fits::<8>();
        assert_eq!(Sizes::of::<2>(16 << 10, 16 << 10, 1 << 20), None);
    }
}
