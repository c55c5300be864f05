//! The process that simulates the FPGA, and the protocol of the pipes to it (`hardware/fpga/sim/scatter_device.cpp`).

use std::fmt;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use genuma_reads::dna;

use crate::minimizer::minimizer_length;

/// A program that simulates the FPGA for one k-mer length, with counts of the batches that it has scattered.
#[derive(Debug, Clone)]
pub struct SimulatedFpga {
    program: PathBuf,
    arguments: Vec<String>,
    statistics: Arc<BatchStatistics>,
}

#[derive(Debug, Default)]
struct BatchStatistics {
    total: AtomicU64,
    on_device: AtomicU64,
}

/// Two values are equal if they are the same program, whatever it has scattered.
impl PartialEq for SimulatedFpga {
    fn eq(&self, other: &Self) -> bool {
        (&self.program, &self.arguments) == (&other.program, &other.arguments)
    }
}

impl Eq for SimulatedFpga {}

impl SimulatedFpga {
    /// Finds the simulator for `k`-mers in a folder.
    ///
    /// # Errors
    /// Returns what is missing and how to build it.
    pub fn find_simulator(folder: &Path, k: u32) -> Result<Self, String> {
        let program = folder.join(format!("genuma-fpga-sim-k{k}"));
        // I/O error ignored: reported as a missing program, with its path.
        match program.is_file() {
            true => Ok(Self::with_program(program, Vec::new())),
            false => Err(format!("{} is missing: build it with scripts/fpga.sh sim {k}", program.display())),
        }
    }

    /// A simulator that is started as `program` with `arguments`.
    pub(crate) fn with_program(program: PathBuf, arguments: Vec<String>) -> Self {
        Self { program, arguments, statistics: Arc::default() }
    }

    /// Counts a batch: `on_device` says whether the device scattered it, or a thread did so instead.
    pub(super) fn add_to_batch_counts(&self, on_device: bool) {
        self.statistics.total.fetch_add(1, Relaxed);
        self.statistics.on_device.fetch_add(u64::from(on_device), Relaxed);
    }

    /// Number of batches in total, and of those that the device scattered.
    pub fn num_total_and_device_batches(&self) -> [u64; 2] {
        [&self.statistics.total, &self.statistics.on_device].map(|number| number.load(Relaxed))
    }
}

impl fmt::Display for SimulatedFpga {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "simulated FPGA {}", self.program.display())
    }
}

/// Up to 32 bases of a read with the mask of good bases, as an FPGA takes them in one cycle. Good bases are A, C, G or
/// T of sufficient quality.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Beat {
    /// The bases, the first in the highest bits.
    pub(super) bases: u64,
    /// Mask of good bases, the first in the highest bit.
    pub(super) good: u32,
    pub(super) count: u8,
    pub(super) ends_read: bool,
    pub(super) ends_batch: bool,
}

/// The beat that ends a batch in each lane; it has no bases.
pub(super) const BATCH_END_BEAT: Beat = Beat { bases: 0, good: 0, count: 0, ends_read: false, ends_batch: true };

impl Beat {
    /// Maximum number of bases in a beat.
    pub(super) const MAX_BASES_PER_BEAT: usize = 32;

    fn to_bytes(self) -> [u8; 16] {
        let Beat { bases, good, count, ends_read, ends_batch } = self;
        let flags = count | u8::from(ends_read) << 6 | u8::from(ends_batch) << 7;
        let word = u128::from(bases) | u128::from(good) << 64 | u128::from(flags) << 96;
        word.to_le_bytes()
    }

    /// Decodes the bases of the beat as ASCII; N where the mask excludes the base.
    pub(super) fn decode_bases(&self) -> impl Iterator<Item = u8> + use<> {
        let Beat { bases, good, count, .. } = *self;
        (0..u32::from(count)).map(move |i| match good << i >> 31 {
            0 => b'N',
            _ => dna::decode_base((bases << (2 * i) >> 62) as u8),
        })
    }
}

/// Output of the device for a batch.
#[derive(Debug)]
pub(super) struct FpgaReply {
    /// Whether a device bin was too small; if so, there are no records.
    pub(super) overflow: bool,
    /// Frames (minimizers and records) in each device bin of each lane, as bytes.
    pub(super) bins: Vec<Vec<u8>>,
}

/// A running simulator of the FPGA, with the pipes to it.
pub(super) struct FpgaSimulatorProcess {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    lanes: u32,
    bins: u32,
}

impl FpgaSimulatorProcess {
    /// Starts the simulator and checks that it is one for `k`.
    ///
    /// # Errors
    /// Returns why it cannot be used, and how to build it.
    pub(super) fn start_and_check(fpga: &SimulatedFpga, k: u32) -> Result<Self, String> {
        let rebuild = |why: String| format!("{fpga}: {why}: build it with scripts/fpga.sh sim {k}");
        let child = Command::new(&fpga.program)
            .args(&fpga.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| rebuild(error.to_string()))?;
        let mut device = Self::with_pipes(child).ok_or_else(|| rebuild("it has no pipes".into()))?;
        let mut greeting = [0; 24];
        let cut_off = |error: io::Error| rebuild(format!("it does not greet ({error})"));
        device.output.read_exact(&mut greeting).map_err(cut_off)?;
        let number = |i: usize| u32::from_le_bytes(std::array::from_fn(|byte| greeting[8 + 4 * i + byte]));
        let [its_k, its_m, lanes, bins] = std::array::from_fn(number);
        if &greeting[..8] != b"GNMFPGA1" || [its_k, its_m] != [k, minimizer_length(k)] || lanes == 0 || bins == 0 {
            return Err(rebuild(format!("it is not for k = {k} and this version of genuma")));
        }
        (device.lanes, device.bins) = (lanes, bins);
        Ok(device)
    }

    fn with_pipes(mut child: Child) -> Option<Self> {
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take()?));
        Some(Self { child, input, output, lanes: 0, bins: 0 })
    }

    /// Number of lanes of the simulated design.
    pub(super) fn num_lanes(&self) -> usize {
        self.lanes as usize
    }

    /// Number of device bins of a lane.
    pub(super) fn num_device_bins_per_lane(&self) -> usize {
        self.bins as usize
    }

    /// Scatters a batch. Each device bin may have `max_lines` lines of 64 bytes.
    ///
    /// # Errors
    /// Returns why there is no reply.
    pub(super) fn scatter_batch(&mut self, sample: u8, max_lines: u16, beats: &[Beat]) -> Result<FpgaReply, String> {
        let mut request = Vec::with_capacity(12 + 16 * beats.len());
        let num_beats = u32::try_from(beats.len()).map_err(|_| "the batch is too large".to_owned())?;
        for number in [u32::from(sample), u32::from(max_lines), num_beats] {
            request.extend(number.to_le_bytes());
        }
        beats.iter().for_each(|beat| request.extend(beat.to_bytes()));
        self.exchange(&request, usize::from(max_lines)).map_err(|error| format!("it has ended ({error})"))
    }

    fn exchange(&mut self, request: &[u8], max_lines: usize) -> io::Result<FpgaReply> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all(request)?;
        input.flush()?;
        // Overflow, and clock cycles, which are not used here.
        let mut head = [0; 12];
        self.output.read_exact(&mut head)?;
        let mut sizes = vec![0; 4 * self.num_lanes() * self.num_device_bins_per_lane()];
        self.output.read_exact(&mut sizes)?;
        let sizes = sizes.as_chunks::<4>().0.iter().map(|&size| u32::from_le_bytes(size) as usize);
        let bins = sizes.map(|size| {
            if size > max_lines * 64 {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a bin is larger than its memory"));
            }
            let mut bytes = vec![0; size];
            self.output.read_exact(&mut bytes)?;
            Ok(bytes)
        });
        Ok(FpgaReply { overflow: head[0] != 0, bins: bins.collect::<io::Result<_>>()? })
    }
}

impl Drop for FpgaSimulatorProcess {
    fn drop(&mut self) {
        // The simulator ends when its input ends.
        self.input = None;
        if let Err(error) = self.child.wait() {
            tracing::debug!("the simulated FPGA cannot be waited for: {error}");
        }
    }
}
