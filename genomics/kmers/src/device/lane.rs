//! What a lane does: bin after bin, until there are none left or the device fails.

use std::sync::{Arc, Mutex, PoisonError};

use genuma_gpu::Device;

use super::Devices;
use super::opencl::OpenCl;
use super::staged::Staged;
use super::table::{Sizes, Table};
use crate::Error;
use crate::bins::Countable;
use crate::tally::{Class, Harvest, Share};

/// Slots of the smallest table.
const MIN_SLOTS: usize = 1024;

/// A bin of so many k-mers could have one of them more often than a device can count.
const TOO_MANY: u64 = 1 << 32;

/// Bins, and which classes of their roots are still to be counted.
pub type Left = Mutex<Vec<(usize, Vec<Class>)>>;

/// A lane of a device, before it has begun.
#[derive(Debug)]
pub struct OnDevice {
    /// Its number among all lanes.
    pub number: usize,
    /// Whose it is.
    pub device: Arc<Device>,
    /// Bytes of the device's memory that it may use.
    pub(crate) device_bytes: u64,
    /// Bytes of the host's memory that it may use.
    pub(crate) host_bytes: u64,
    /// What is told of what was done.
    pub devices: Devices,
}

/// Why a bin was not counted here.
#[derive(Debug)]
pub enum Fault {
    /// The device failed.
    Device(genuma_gpu::Error),
    /// The count failed, whoever counts.
    Count(Error),
}

impl From<genuma_gpu::Error> for Fault {
    fn from(error: genuma_gpu::Error) -> Self {
        Fault::Device(error)
    }
}

impl OnDevice {
    /// Counts bins until there are none left. What was begun when the device fails goes to `left`, and so does what no device can count.
    pub fn count<const S: usize>(
        &self,
        k: u32,
        bins: &impl Countable,
        mut which: impl Iterator<Item = usize>,
        harvest: &mut impl Harvest<S>,
        left: &Left,
    ) -> Result<Share<S>, Error> {
        let mut counting = match self.ready::<S>(k) {
            Ok(counting) => counting,
            Err(error) => {
                self.warn(&error);
                return Ok(Share::none());
            }
        };
        let leave = |bin, classes| {
            left.lock().unwrap_or_else(PoisonError::into_inner).push((bin, classes));
        };
        for bin in which.by_ref() {
            let mut classes = vec![Class::ALL];
            if bins.kmers(bin) >= TOO_MANY {
                leave(bin, classes);
                continue;
            }
            let read = |each: &mut dyn FnMut(&[u8])| bins.read(bin, each);
            match counting.bin(bins.kmers(bin), read, &mut classes, harvest) {
                Ok(()) => self.devices.counted_here(),
                Err(Fault::Count(error)) => return Err(error),
                Err(Fault::Device(error)) => {
                    self.warn(&error);
                    self.devices.left_to_threads();
                    leave(bin, classes);
                    return Ok(counting.share);
                }
            }
            bins.free(bin);
        }
        Ok(counting.share)
    }

    /// A lane of the device, its kernels compiled.
    fn ready<const S: usize>(&self, k: u32) -> Result<Counting<OpenCl<S>, S>, genuma_gpu::Error> {
        let described = self.device.described();
        let unfit =
            |what: &str| genuma_gpu::Error::Unfit { device: described.name.clone(), what: what.into() };
        if !described.atomics {
            return Err(unfit("it has no 64-bit atomics (cl_khr_int64_base_atomics)"));
        }
        let sizes = Sizes::of::<S>(self.device_bytes, described.largest, self.host_bytes);
        let sizes = sizes.ok_or_else(|| unfit("there is too little memory to count on it"))?;
        Counting::new(k, OpenCl::new(&self.device, k, sizes)?)
    }

    /// Says that the device does no more, once a device.
    fn warn(&self, error: &genuma_gpu::Error) {
        match error {
            genuma_gpu::Error::Lost { .. } => {}
            // All lanes find that; one says it.
            genuma_gpu::Error::Unfit { .. } if !self.number.is_multiple_of(super::LANES) => {}
            _ => tracing::warn!("{error}; the CPUs count what it does not"),
        }
    }
}

/// A table, and what came out of it.
pub struct Counting<T: Table<S>, const S: usize> {
    table: T,
    staged: Staged<T::Stage>,
    /// K-mers of the bins so far.
    kmers: u64,
    /// What was counted.
    pub share: Share<S>,
}

impl<T: Table<S>, const S: usize> Counting<T, S> {
    /// Of `k`-mers.
    ///
    /// # Errors
    /// The device fails.
    pub fn new(k: u32, table: T) -> Result<Self, genuma_gpu::Error> {
        let staged = Staged::new(k, table.stage()?, table.most_chunks());
        Ok(Self { table, staged, kmers: 0, share: Share::none() })
    }

    /// Counts the `classes` of the roots of a bin of so many k-mers, which `read` reads. Of those that are left in `classes` after a fault of the device
    /// nothing was taken.
    pub fn bin(
        &mut self,
        kmers: u64,
        read: impl Fn(&mut dyn FnMut(&[u8])) -> Result<(), Error>,
        classes: &mut Vec<Class>,
        harvest: &mut impl Harvest<S>,
    ) -> Result<(), Fault> {
        let Self { table, staged, kmers: before, share } = self;
        // As diverse as the bins before.
        let distinct = match *before {
            0 => kmers / 8,
            before => (u128::from(kmers) * u128::from(share.distinct) / u128::from(before)) as u64,
        };
        let most = table.most_slots();
        let mut slots = (distinct.min(most as u64) as usize * 2).clamp(MIN_SLOTS.min(most), most);
        while let Some(&class) = classes.last() {
            table.start(class, slots)?;
            staged.clear();
            let mut sent = Ok(());
            read(&mut |records| {
                if sent.is_ok() {
                    sent = staged.take(records, |piece, starts| table.add(piece, starts));
                }
            })
            .map_err(Fault::Count)?;
            sent?;
            staged.send(|piece, starts| table.add(piece, starts))?;
            match table.finish(harvest.wanted(), &mut share.spectra)? {
                Some(gathered) => {
                    classes.pop();
                    share.distinct += gathered.distinct;
                    share.passes += 1;
                    harvest.rows(gathered.rows, gathered.roots).map_err(Fault::Count)?;
                }
                None if slots < most => slots = (2 * slots).min(most),
                None => {
                    classes.pop();
                    classes.extend(class.halves());
                }
            }
        }
        *before += kmers;
        Ok(())
    }
}
