//! Scatter on a simulated FPGA (`hardware/fpga`): the host packs reads into beats, the device cuts them into records.
//!
//! The device sorts records by device bins, the highest bits of the hash that gives the bin of a count. Each record
//! comes with its minimizer, so the host finds its bin, whatever the number of bins and partitions. A device bin has
//! limited memory. If it overflows, the host scatters the batch again, as it does with the batch of a device that
//! fails. Only complete batches are written to bins, so no record is lost or written twice.

use genuma_machine::simd_and_prefetch::SimdLevel;
use genuma_reads::packed_bases::CodesAndPackedBases;
use genuma_reads::{Mate, dna};
use tracing::warn;

use super::cpu::CpuScatter;
use super::fpga_process::{BATCH_END_BEAT, Beat, FpgaReply, FpgaSimulatorProcess};
use super::{BinLayout, Scatter, ScatteredRecords};
use crate::Error;
use crate::bin_buffers::BinBuffers;
use crate::superkmer::{MAX_RECORD_BYTES, QualityMaskingPacker, record_bytes};

pub use super::fpga_process::SimulatedFpga;

/// Bytes of the minimizer before a record.
const MINIMIZER_BYTES: usize = 4;
/// Size in bytes of a line, the unit in which the device writes to memory.
const LINE_BYTES: usize = 64;
/// Memory of a device bin as a multiple of its expected bytes. Chosen: bins get equal shares of random sequence, and a
/// batch that overflows costs as much as without a device.
const BIN_MEMORY_FACTOR: usize = 4;
/// Expected bytes of records and minimizers for each base. Measured: 1.31 with random reads of 150 bases and k = 31;
/// more for smaller k, which the factor above covers.
const EXPECTED_BYTES_PER_BASE: f64 = 1.5;

/// Scatters the k-mers of one thread on a simulated FPGA, or on the CPU if the simulator fails.
pub(super) struct SimulatedFpgaScatter {
    layout: BinLayout,
    fpga: SimulatedFpga,
    device: DeviceState,
    /// Beats of the current batch for each lane of the device.
    lanes: Vec<Vec<Beat>>,
    /// Number of bases of the current batch.
    bases: usize,
    /// Scatters the batches that the device could not scatter.
    cpu: CpuScatter,
}

/// Whether the simulator of this thread runs.
enum DeviceState {
    NotStarted,
    Running(FpgaSimulatorProcess),
    /// The simulator failed: the CPU scatters the reads.
    Lost,
}

impl SimulatedFpgaScatter {
    /// Creates a scatterer for the bins of `layout`. It starts the simulator `fpga` with the first batch.
    pub(super) fn new(layout: BinLayout, fpga: SimulatedFpga) -> Self {
        let cpu = CpuScatter::new(layout, SimdLevel::widest_available());
        Self { layout, fpga, device: DeviceState::NotStarted, lanes: Vec::new(), bases: 0, cpu }
    }

    /// Scatters the batch again on the CPU.
    fn repeat_batch(&mut self, sample: u8, buffers: &mut BinBuffers<'_>) -> Result<ScatteredRecords, Error> {
        let mut packer = QualityMaskingPacker::with_min_base_quality(0);
        for seq in self.lanes.iter().flat_map(|beats| reads_of_beats(beats)) {
            self.cpu.scatter_read(packer.pack_and_mask_read(Mate { seq: &seq, qual: &seq }), sample, buffers)?;
        }
        self.cpu.finish_batch(sample, buffers)
    }

    /// Sends the batch to the device and returns its reply; `None` if the CPU must scatter the batch.
    fn run_device(&mut self, sample: u8) -> Option<FpgaReply> {
        let DeviceState::Running(device) = &mut self.device else { return None };
        let bins = device.num_device_bins_per_lane() * self.lanes.len();
        let expected = (self.bases as f64 * EXPECTED_BYTES_PER_BASE) as usize / bins;
        let max_lines = (BIN_MEMORY_FACTOR * expected / LINE_BYTES + 2).min(usize::from(u16::MAX)) as u16;
        let beats = interleave_lanes(&self.lanes);
        let reply = device.scatter_batch(sample, max_lines, &beats).and_then(|reply| {
            reply.bins.iter().try_for_each(|bytes| check_frames(bytes, self.layout.k, sample))?;
            Ok(reply)
        });
        match reply {
            Ok(reply) if reply.overflow => {
                tracing::debug!("a bin of the FPGA has overflowed: a thread scatters this batch");
                None
            }
            Ok(reply) => Some(reply),
            Err(why) => {
                warn!(
                    "{}: {why}: this FPGA is not used any more and CPU threads do its work; the result is the same. \
                     Omit --fpga to avoid this",
                    self.fpga
                );
                self.device = DeviceState::Lost;
                None
            }
        }
    }

    /// Writes the records of a reply to their bins.
    fn write_records(&self, reply: &FpgaReply, buffers: &mut BinBuffers<'_>) -> Result<ScatteredRecords, Error> {
        let mut written = ScatteredRecords::default();
        for frame in reply.bins.iter().flat_map(|bytes| frames(bytes, self.layout.k)) {
            let Frame { minimizer, kmers, record } = frame.expect("the reply has been checked");
            written.kmers += kmers as u64;
            if let Some(bin) = self.layout.bin_of_minimizer(minimizer) {
                buffers.reserve_space_for_record(bin, MAX_RECORD_BYTES)?[..record.len()].copy_from_slice(record);
                buffers.commit_record(bin, record.len(), kmers);
                written.bytes += record.len() as u64;
            }
        }
        Ok(written)
    }
}

impl Scatter for SimulatedFpgaScatter {
    fn scatter_read(
        &mut self,
        read: &CodesAndPackedBases,
        sample: u8,
        buffers: &mut BinBuffers<'_>,
    ) -> Result<(), Error> {
        if matches!(self.device, DeviceState::NotStarted) {
            let device =
                FpgaSimulatorProcess::start_and_check(&self.fpga, self.layout.k).map_err(Error::ScatterDevice)?;
            self.lanes = vec![Vec::new(); device.num_lanes()];
            self.device = DeviceState::Running(device);
        }
        if matches!(self.device, DeviceState::Lost) {
            return self.cpu.scatter_read(read, sample, buffers);
        }
        self.bases += read.codes().len();
        let shortest = self.lanes.iter_mut().min_by_key(|beats| beats.len()).expect("a device has lanes");
        push_read(read, shortest);
        Ok(())
    }

    fn finish_batch(&mut self, sample: u8, buffers: &mut BinBuffers<'_>) -> Result<ScatteredRecords, Error> {
        if !matches!(self.device, DeviceState::Running(_)) {
            self.fpga.add_to_batch_counts(false);
            return self.cpu.finish_batch(sample, buffers);
        }
        let reply = self.run_device(sample);
        self.fpga.add_to_batch_counts(reply.is_some());
        let written = match reply {
            Some(reply) => self.write_records(&reply, buffers)?,
            None => self.repeat_batch(sample, buffers)?,
        };
        self.lanes.iter_mut().for_each(Vec::clear);
        self.bases = 0;
        Ok(written)
    }
}

/// Appends a read to the beats of a lane.
fn push_read(read: &CodesAndPackedBases, beats: &mut Vec<Beat>) {
    let codes = read.codes().chunks(Beat::MAX_BASES_PER_BEAT);
    let last = codes.len().saturating_sub(1);
    for (i, (codes, &bases)) in codes.zip(read.packed_bases().words()).enumerate() {
        let good = (codes.iter().zip((0..32).rev()))
            .fold(0, |mask, (&code, bit)| mask | u32::from(code != dna::NOT_A_BASE_CODE) << bit);
        beats.push(Beat { bases, good, count: codes.len() as u8, ends_read: i == last, ends_batch: false });
    }
}

/// Arranges the beats in the order in which the device takes them: alternately one beat of each lane. The last beat of
/// each lane ends the batch.
fn interleave_lanes(lanes: &[Vec<Beat>]) -> Vec<Beat> {
    let rounds = lanes.iter().map(Vec::len).max().unwrap_or(0);
    let beat = |round: usize, lane: &Vec<Beat>| lane.get(round).copied().unwrap_or_default();
    let reads = (0..rounds).flat_map(|round| lanes.iter().map(move |lane| beat(round, lane)));
    reads.chain(lanes.iter().map(|_| BATCH_END_BEAT)).collect()
}

/// Decodes the reads in the beats of a lane as ASCII bases; N where the mask excludes the base.
fn reads_of_beats(beats: &[Beat]) -> impl Iterator<Item = Vec<u8>> {
    beats.chunk_by(|beat, _| !beat.ends_read).map(|beats| beats.iter().flat_map(Beat::decode_bases).collect())
}

/// A frame: a super-k-mer as the device writes it, with its minimizer, number of k-mers and record.
#[derive(Debug)]
struct Frame<'a> {
    minimizer: u32,
    kmers: usize,
    record: &'a [u8],
}

/// Iterates over the frames in the bytes of a device bin. Returns an error if the last frame is incomplete.
fn frames(bytes: &[u8], k: u32) -> impl Iterator<Item = Result<Frame<'_>, String>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let frame = rest.split_first_chunk::<MINIMIZER_BYTES>().and_then(|(minimizer, after)| {
            let kmers = crate::superkmer::decode_num_kmers(*after.first()?);
            let (record, after) = after.split_at_checked(record_bytes(kmers, k))?;
            rest = after;
            Some(Frame { minimizer: u32::from_le_bytes(*minimizer), kmers, record })
        });
        if frame.is_none() {
            rest = &[];
        }
        Some(frame.ok_or_else(|| "its reply ends within a record".to_owned()))
    })
}

/// Checks that a device bin has complete records of the sample.
fn check_frames(bytes: &[u8], k: u32, sample: u8) -> Result<(), String> {
    frames(bytes, k).try_for_each(|frame| match crate::superkmer::decode_sample(frame?.record[0]) == sample {
        true => Ok(()),
        false => Err("its reply has records of another sample".to_owned()),
    })
}
