//! Scattering: reads are cut into super-k-mers, which are written as records to their bins. The CPU or a device does
//! it, each behind the trait [`Scatter`].

mod cpu;
mod fpga;
mod fpga_process;
#[cfg(test)]
pub(crate) mod tests;

use genuma_machine::simd_and_prefetch::SimdLevel;
use genuma_reads::packed_bases::CodesAndPackedBases;
use genuma_reads::{Mate, PairBatch};

use crate::bin_buffers::BinBuffers;
use crate::bins::Bins;
use crate::partition::{BinGrid, Partition};
use crate::superkmer::QualityMaskingPacker;
use crate::{CountParams, Error, PreparePair};

use cpu::CpuScatter;
pub use fpga::SimulatedFpga;
use fpga::SimulatedFpgaScatter;

/// Device that scatters reads into bins. All give the same records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ScatterDevice {
    /// The CPU: the threads that read, with the widest vector instructions.
    #[default]
    Cpu,
    /// A simulated FPGA for each of the threads that read.
    SimulatedFpga(SimulatedFpga),
}

/// Scatters batches of packed reads into super-k-mer records by bin. A batch has the reads of one sample.
///
/// A base that is [`genuma_reads::dna::NOT_A_BASE_CODE`] is of low quality or no base, and in no k-mer. A backend may
/// keep reads until [`Scatter::finish_batch`]. The records of a bin may be in any order.
pub(crate) trait Scatter: Send {
    /// Takes one read.
    fn scatter_read(
        &mut self,
        read: &CodesAndPackedBases,
        sample: u8,
        buffers: &mut BinBuffers<'_>,
    ) -> Result<(), Error>;

    /// Writes the records that were kept. Returns the numbers of k-mers and bytes of all reads taken since the last
    /// call.
    fn finish_batch(&mut self, sample: u8, buffers: &mut BinBuffers<'_>) -> Result<ScatteredRecords, Error>;
}

/// Which k-mers are written as records, and to which bins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BinLayout {
    pub(crate) k: u32,
    /// Partition of the k-mer space whose super-k-mers go into bins.
    pub(crate) partition: Partition,
    pub(crate) grid: BinGrid,
}

impl BinLayout {
    /// The bin of a minimizer; `None` if it is in another partition.
    #[inline]
    fn bin_of_minimizer(&self, minimizer: u32) -> Option<usize> {
        self.partition.contains_minimizer(minimizer).then(|| self.grid.bin_of_minimizer(minimizer))
    }
}

/// Number of k-mers of a batch in all partitions, and number of bytes of its records in bins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ScatteredRecords {
    kmers: u64,
    bytes: u64,
}

/// State of one thread that scatters reads.
pub(crate) struct ScatterThread<'a, R, const S: usize> {
    k: u32,
    prepare: R,
    /// Bases (ASCII) of the k-mers that [`PreparePair`] adds to the current pair.
    added: Vec<u8>,
    /// Quality characters of the highest quality for one added k-mer.
    good_letters: Vec<u8>,
    packer: QualityMaskingPacker,
    scatter: Box<dyn Scatter>,
    buffers: BinBuffers<'a>,
    totals: ScatterTotals<S>,
}

/// Totals of the scattered reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScatterTotals<const S: usize> {
    /// Number of bases read, per sample, before [`PreparePair`] changes the pairs.
    pub bases: [u64; S],
    /// Number of k-mers read, per sample, in all partitions.
    pub kmers: [u64; S],
    /// Bytes of records in bins.
    pub bytes: u64,
}

impl<const S: usize> ScatterTotals<S> {
    /// Totals before any read is scattered.
    pub(crate) fn zero() -> Self {
        Self { bases: [0; S], kmers: [0; S], bytes: 0 }
    }

    /// Adds the totals that another thread collected.
    pub(crate) fn merge_totals(&mut self, other: &Self) {
        for sample in 0..S {
            self.bases[sample] += other.bases[sample];
            self.kmers[sample] += other.kmers[sample];
        }
        self.bytes += other.bytes;
    }
}

impl<'a, R: PreparePair, const S: usize> ScatterThread<'a, R, S> {
    /// Creates the state of a thread that scatters into the bins of a grid, with a buffer of `buffer_bytes` bytes for
    /// each bin.
    pub(crate) fn new(bins: &'a Bins, grid: BinGrid, params: &CountParams, buffer_bytes: usize, prepare: R) -> Self {
        let layout = BinLayout { k: params.k, partition: params.partition, grid };
        let scatter: Box<dyn Scatter> = match params.devices.scatter_device() {
            ScatterDevice::Cpu => Box::new(CpuScatter::new(layout, SimdLevel::widest_available())),
            ScatterDevice::SimulatedFpga(fpga) => Box::new(SimulatedFpgaScatter::new(layout, fpga.clone())),
        };
        Self {
            k: params.k,
            prepare,
            added: Vec::new(),
            good_letters: vec![u8::MAX; params.k as usize],
            packer: QualityMaskingPacker::with_min_base_quality(params.min_base_quality),
            scatter,
            buffers: BinBuffers::allocate_for_bins(bins, buffer_bytes),
            totals: ScatterTotals::zero(),
        }
    }

    /// Scatters the k-mers of a batch. K-mers of other partitions only enter the totals.
    ///
    /// # Errors
    /// Returns an error if the sample number is `S` or more, if the spill file fails, or if a device cannot be started.
    pub(crate) fn scatter_batch(&mut self, batch: &PairBatch) -> Result<(), Error> {
        let sample = usize::from(batch.sample);
        if sample >= S {
            return Err(Error::InvalidParams(format!(
                "sample number {sample} is out of range: this count has {S} samples, numbered from 0"
            )));
        }
        let Self { k, prepare, added, good_letters: good, packer, scatter, buffers, totals } = self;
        let mut take = |mate: Mate<'_>| scatter.scatter_read(packer.pack_and_mask_read(mate), batch.sample, buffers);
        for pair in batch.iter() {
            totals.bases[sample] += pair.mates.iter().map(|mate| mate.seq.len() as u64).sum::<u64>();
            added.clear();
            let mates = prepare.prepare(pair, batch.sample, added).mates;
            mates.into_iter().try_for_each(&mut take)?;
            added.chunks_exact(*k as usize).try_for_each(|seq| take(Mate { seq, qual: good }))?;
        }
        let written = scatter.finish_batch(batch.sample, buffers)?;
        totals.kmers[sample] += written.kmers;
        totals.bytes += written.bytes;
        Ok(())
    }

    /// Appends the content of all buffers to the bins. Returns the totals and the [`PreparePair`] of the thread.
    ///
    /// # Errors
    /// Returns an error if the spill file fails.
    pub(crate) fn finish(self) -> Result<(ScatterTotals<S>, R), Error> {
        self.buffers.flush_all_to_bins()?;
        Ok((self.totals, self.prepare))
    }
}
