//! Predicts time, memory, and bytes read and written of each unit of a call. The prediction depends only on its
//! arguments, not on the machine or on files.
//!
//! The number of partitions is computed by the k-mer counter's own function, so that forecast and call agree.
//! Everything else is a number of bases multiplied by [`CostRates`].

use std::path::PathBuf;

use genuma_align::scan;
use genuma_kmers::{CountForecast, CountParams, ExpectedKmers, MAX_PARTITIONS, min_memory_bytes};
use genuma_reads::ReadEstimate;
use genuma_somatic::count::{
    CANDIDATE_KMER_BYTES_PER_REFERENCE_BASE, KMER_SKETCH_PARAMS, forecast_counting_resources,
    packed_reads_budget_bytes, scratch_bytes_for_reads_and_kmers,
};
use genuma_somatic::pipeline::{CallParams, Resources};
use genuma_work::energy::estimate_energy_j;
use genuma_work::quantity;
use serde::Serialize;

use super::rates::{CostRates, MAX_GENOME_GBP_OF_UNSCALED_RATES};

/// Minimum memory of a call, however small its input (bytes). A call with less is refused. Measured: 90 MiB with two
/// threads on 0.2 Mbp.
const BASE_MEMORY_BYTES: u64 = 96 << 20;
/// Minimum memory for the reads that one thread processes (bytes).
const MEMORY_PER_THREAD_BYTES: u64 = 16 << 20;
/// Memory that a call does not count as remaining memory, as a reserve (bytes).
const RESERVED_MEMORY_BYTES: u64 = 256 << 20;
/// Memory for looking up a batch of a million k-mers in a panel: k-mers, table pages and results (bytes). The filter of
/// the table is not included.
const PANEL_LOOKUP_BYTES: u64 = 40 << 20;
/// Number of read pairs of one sample in one thread above which the memory of the library statistics no longer grows.
const LIBRARY_SATURATION_PAIRS: f64 = 65_536.0;

/// Returns the minimum memory of a call with this number of threads and without a reference (bytes). A call with less
/// is refused.
pub(crate) fn min_memory_bytes_without_reference(threads: usize) -> u64 {
    (BASE_MEMORY_BYTES + MEMORY_PER_THREAD_BYTES * threads as u64).max(2 * min_memory_bytes(threads))
}

/// Returns the minimum memory of a call (bytes). The reference takes one byte a base. The result is rounded up to MiB,
/// so that the value shown in messages is sufficient.
pub(crate) fn min_call_memory_bytes(threads: usize, reference: Option<u64>) -> u64 {
    (min_memory_bytes_without_reference(threads) + reference.unwrap_or(0)).next_multiple_of(1 << 20)
}

/// Size of the input of a call, and the resources that the call may use.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ForecastInput {
    /// Number of bases of the reads: of the normal, and of all tumours together.
    pub(crate) bases: [u64; 2],
    /// Number of samples, including the normal.
    pub(crate) num_samples: usize,
    /// Size of the files of the normal, and of all tumours together (bytes).
    pub(crate) file_bytes: [u64; 2],
    /// Expected size of the packed reads of all samples (bytes).
    pub(crate) packed_bytes: u64,
    /// Mean length of a read (bases).
    pub(crate) read_length: u64,
    /// Number of files of reads. Each file is decompressed by one thread at a time.
    pub(crate) num_files: u64,
    /// Number of BAM, CRAM or BINSEQ files. Reads of these files wait in memory until their mates are read.
    pub(crate) num_aligned_files: u64,
    /// The panel of normals, if there is one.
    pub(crate) panel: Option<PanelSize>,
    /// Number of bases of the reference, if there is one.
    pub(crate) reference_bases: Option<u64>,
    /// Length of k-mers.
    pub(crate) k: u32,
    /// Resources that the call may use.
    pub(crate) resources: Resources,
}

/// Size of a panel of normals, a k-mer table or dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct PanelSize {
    /// Size of the k-mer pages of a table in bytes; 0 for a dictionary.
    pub(crate) page_bytes: u64,
    /// Size of the rest of a table in bytes: index, filter and hot k-mers. A call loads them if they fit in half of its
    /// remaining memory. Of a dictionary the whole size: it is always loaded.
    pub(crate) filter_and_index_bytes: u64,
}

/// Predicted time, memory and bytes of one unit (count, assemble, recruit, ...) of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct UnitForecast {
    /// Name of the unit, as in `summary.json`.
    pub(crate) name: &'static str,
    /// CPU seconds, summed over all threads.
    pub(crate) cpu_s: f64,
    /// Wall-clock time (s).
    pub(crate) wall_s: f64,
    /// Peak memory (bytes).
    pub(crate) peak_bytes: u64,
    /// Bytes read from files.
    pub(crate) read_bytes: u64,
    /// Bytes written to files.
    pub(crate) written_bytes: u64,
}

/// Predicted time, memory and bytes of a call, whether its resources suffice, and advice how to change them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct CallForecast {
    /// Forecast of each unit in the order of execution. Empty if the call is refused.
    pub(crate) units: Vec<UnitForecast>,
    /// Number of partitions of the k-mers, each counted in one pass over all reads.
    pub(crate) partitions: u32,
    /// Size of packed reads (bytes); 0 if later passes read the input files again.
    pub(crate) packed_bytes: u64,
    /// Peak size of the work folder (bytes).
    pub(crate) scratch_bytes: u64,
    /// Reason why the call is refused; `None` if it can start.
    pub(crate) refused: Option<String>,
    /// Advice to the user: first what makes the resources suffice, then what makes the call faster.
    pub(crate) advice: Vec<String>,
    /// Whether the call is not refused and no unit is expected to need more memory than the call may use. Too little
    /// disk space only makes the call slower, unless it is refused.
    pub(crate) fits: bool,
}

impl CallForecast {
    fn refuse(why: String, advice: String) -> CallForecast {
        CallForecast {
            units: Vec::new(),
            partitions: 0,
            packed_bytes: 0,
            scratch_bytes: 0,
            refused: Some(why),
            advice: vec![advice],
            fits: false,
        }
    }

    /// Returns the wall-clock time of all units (s).
    pub(crate) fn total_wall_s(&self) -> f64 {
        self.units.iter().map(|unit| unit.wall_s).sum()
    }

    /// Returns the energy of all units (J), estimated from their CPU time and memory.
    pub(crate) fn estimated_energy_j(&self) -> f64 {
        self.units.iter().map(|unit| estimate_energy_j(unit.cpu_s, unit.peak_bytes as f64, unit.wall_s)).sum()
    }

    /// Returns the CPU seconds of all units.
    pub(crate) fn total_cpu_s(&self) -> f64 {
        self.units.iter().map(|unit| unit.cpu_s).sum()
    }

    /// Returns the peak memory of the call: the maximum of all units (bytes).
    pub(crate) fn peak_memory_bytes(&self) -> u64 {
        self.units.iter().map(|unit| unit.peak_bytes).max().unwrap_or(0)
    }

    /// Returns the bytes read and the bytes written by all units.
    pub(crate) fn total_read_and_written_bytes(&self) -> [u64; 2] {
        let sum = |of: fn(&UnitForecast) -> u64| self.units.iter().map(of).sum();
        [sum(|unit| unit.read_bytes), sum(|unit| unit.written_bytes)]
    }
}

impl ForecastInput {
    /// Returns the total numbers of bases and reads, and the size of the packed reads.
    fn estimate(&self) -> ReadEstimate {
        let bases = self.bases.iter().sum();
        ReadEstimate { bases, reads: u64::div_ceil(bases, self.read_length.max(1)), packed_bytes: self.packed_bytes }
    }

    /// Predicts the cost of the call with these rates.
    pub(crate) fn forecast_call(&self, rates: &CostRates) -> CallForecast {
        let Resources { threads, memory, .. } = self.resources;
        let min_memory_bytes = min_call_memory_bytes(threads, self.reference_bases);
        if memory < min_memory_bytes {
            let (have, need) = (quantity::format_bytes(memory), quantity::format_bytes(min_memory_bytes));
            return CallForecast::refuse(
                format!("{have} of memory is too little: the call needs {need} or more"),
                format!(
                    "give --memory {}, or lower --threads",
                    quantity::format_bytes_as_option_value(min_memory_bytes)
                ),
            );
        }
        let expected = ExpectedKmers::from_read_estimate(&self.estimate(), self.k);
        let Some((planned, reads_are_packed)) = self.plan_count(&expected) else {
            return CallForecast::refuse(
                format!(
                    "counting {} of k-mers would need more than {MAX_PARTITIONS} passes over the reads",
                    quantity::format_bytes(expected.super_kmer_bytes)
                ),
                format!(
                    "give --scratch {} or more",
                    quantity::format_bytes_as_option_value(expected.super_kmer_bytes / 16 + 1)
                ),
            );
        };
        let work = UnitForecaster::new(self, rates, reads_are_packed);
        let unit_files_bytes =
            rates.unit_file_bytes * work.tumour_gbases + rates.recruited_disk_bytes * work.all_gbases;
        let mut forecast = CallForecast {
            units: work.unit_forecasts(&planned),
            partitions: planned.partitions,
            packed_bytes: work.packed_bytes.unwrap_or(0),
            scratch_bytes: planned.spilled_bytes.max(unit_files_bytes as u64) + work.packed_bytes.unwrap_or(0),
            refused: None,
            advice: Vec::new(),
            fits: true,
        };
        let over = forecast.units.iter().filter(|unit| unit.peak_bytes > memory);
        if let Some(UnitForecast { name, peak_bytes, .. }) = over.max_by_key(|unit| unit.peak_bytes) {
            forecast.fits = false;
            forecast.advice.push(format!(
                "{name} may take {} of memory, more than --memory: give --memory {}",
                quantity::format_bytes(*peak_bytes),
                quantity::format_bytes_as_option_value(self.sufficient_memory_bytes(*peak_bytes, rates))
            ));
        }
        if planned.partitions > 1 {
            let all_kmers_bytes = expected.super_kmer_bytes + expected.super_kmer_bytes / 16;
            forecast.advice.push(format!(
                "counting needs {} passes over the reads: with --scratch {} one pass is enough (now {})",
                planned.partitions,
                quantity::format_bytes_as_option_value(all_kmers_bytes),
                quantity::format_bytes(self.resources.scratch)
            ));
        }
        if !reads_are_packed {
            forecast.advice.push(format!(
                "with --scratch {} later passes would read packed reads instead of the input files (now {})",
                quantity::format_bytes_as_option_value(scratch_bytes_for_reads_and_kmers(
                    &self.kmer_count_params(),
                    self.num_samples,
                    &expected,
                    &self.estimate()
                )),
                quantity::format_bytes(self.resources.scratch)
            ));
        }
        forecast
    }

    /// Returns the memory for data about the samples that are collected while reads are counted (bytes): a k-mer sketch
    /// for each tumour, and library statistics for each sample in each thread.
    pub(crate) fn sketch_and_library_memory_bytes(&self, rates: &CostRates) -> u64 {
        let tumours = self.num_samples.saturating_sub(1).max(1) as f64;
        // On average half as many k-mers are held as at most; a small genome has fewer.
        let sampled = KMER_SKETCH_PARAMS
            .max_kmers_for_genome(self.reference_bases.unwrap_or(u64::MAX))
            .min(self.expected_num_kmer_occurrences());
        let tallies = (self.resources.threads * self.num_samples) as f64;
        let pairs = self.estimate().reads / 2 / self.resources.threads.max(1) as u64 / self.num_samples.max(1) as u64;
        let library = rates.library_bytes * (pairs as f64 / LIBRARY_SATURATION_PAIRS).min(1.0);
        (rates.sketch_kmer_bytes * sampled as f64 * tumours + library * tallies) as u64
    }

    /// Returns the expected number of k-mers in the reads, counting repeated ones.
    pub(crate) fn expected_num_kmer_occurrences(&self) -> u64 {
        ExpectedKmers::from_read_estimate(&self.estimate(), self.k).kmers
    }

    /// Returns the parameters of the k-mer counter.
    fn kmer_count_params(&self) -> CountParams {
        // The minimum base quality does not change the forecast.
        let params = CallParams { k: self.k, min_base_quality: 0, min_tumour_count: 2, min_quality: 0.0, assay: None };
        self.resources.kmer_count_params(
            &params,
            self.reference_bases,
            self.num_samples.saturating_sub(1),
            PathBuf::new(),
        )
    }

    /// Plans the k-mer counting. Returns the plan, and whether packed reads are written too; `None` if the counter
    /// would need too many partitions.
    fn plan_count(&self, expected: &ExpectedKmers) -> Option<(CountForecast, bool)> {
        let params = self.kmer_count_params();
        let packed_reads_bytes = packed_reads_budget_bytes(&params, self.num_samples, expected, &self.estimate());
        let kmer_params =
            CountParams { max_scratch_bytes: params.max_scratch_bytes - packed_reads_bytes.unwrap_or(0), ..params };
        Some((forecast_counting_resources(&kmer_params, self.num_samples, expected)?, packed_reads_bytes.is_some()))
    }

    /// Returns a memory budget (bytes), at least `least`, that no unit is expected to exceed. Some units use more
    /// memory when the budget is larger, so up to 16 budgets are tried one after another.
    fn sufficient_memory_bytes(&self, least: u64, rates: &CostRates) -> u64 {
        let mut memory = least;
        for _ in 0..16 {
            let input = ForecastInput { resources: Resources { memory, ..self.resources.clone() }, ..self.clone() };
            let expected = ExpectedKmers::from_read_estimate(&input.estimate(), input.k);
            let Some((planned, reads_are_packed)) = input.plan_count(&expected) else { break };
            let units = UnitForecaster::new(&input, rates, reads_are_packed).unit_forecasts(&planned);
            let peak = units.iter().map(|unit| unit.peak_bytes).max().unwrap_or(0);
            if peak <= memory {
                break;
            }
            memory = peak;
        }
        memory
    }

    /// Predicts the CPU seconds and the peak memory of one unit with these rates, for a call with `partitions`
    /// partitions, with packed reads or without; `None` if there is no unit of this name. The memory of the k-mer
    /// counter and the spilled k-mers are not included.
    pub(crate) fn forecast_unit(
        &self,
        name: &str,
        partitions: u32,
        reads_are_packed: bool,
        rates: &CostRates,
    ) -> Option<UnitForecast> {
        let planned = CountForecast { partitions, peak_memory_bytes: 0, spilled_bytes: 0 };
        UnitForecaster::new(self, rates, reads_are_packed)
            .unit_forecasts(&planned)
            .into_iter()
            .find(|unit| unit.name == name)
    }
}

/// Input, rates and derived sizes from which the forecasts of the units of a call are computed.
struct UnitForecaster<'a> {
    input: &'a ForecastInput,
    rates: &'a CostRates,
    /// Bases of the reads of all tumour samples, in Gbases (10⁹ bases).
    tumour_gbases: f64,
    /// Bases of the reads of all samples, in Gbases.
    all_gbases: f64,
    /// Size of packed reads (bytes); `None` if they are not written.
    packed_bytes: Option<u64>,
    /// Bases of the reference in Gbp (10⁹ bases); 0 without a reference.
    reference_gbp: f64,
    /// Memory of the reference (bytes): one byte a base.
    reference_bytes: u64,
    /// Memory that units use whatever their input (bytes), with `panel_counts_bytes`.
    base_bytes: u64,
    /// Memory of the panel's counts of candidate k-mers (bytes), used by the unit `panel` and all later units.
    panel_counts_bytes: u64,
}

impl<'a> UnitForecaster<'a> {
    fn new(input: &'a ForecastInput, rates: &'a CostRates, reads_are_packed: bool) -> Self {
        let giga = |n: u64| n as f64 / 1e9;
        let reference_bytes = input.reference_bases.unwrap_or(0);
        let base = (rates.base_bytes + rates.thread_bytes * input.resources.threads as f64) as u64;
        let [normal, tumour] = input.bases.map(giga);
        let copied = reads_are_packed.then_some(input.packed_bytes);
        let in_normals = input.panel.map_or(0, |_| Self::scaled_bytes(rates.panel_counts_bytes, tumour));
        UnitForecaster {
            input,
            rates,
            tumour_gbases: tumour,
            all_gbases: normal + tumour,
            packed_bytes: copied,
            reference_gbp: giga(reference_bytes),
            reference_bytes,
            base_bytes: base + in_normals,
            panel_counts_bytes: in_normals,
        }
    }

    fn unit_forecasts(&self, planned: &CountForecast) -> Vec<UnitForecast> {
        let count = self.forecast_count_unit(planned.partitions, planned.peak_memory_bytes, planned.spilled_bytes);
        let reference = (self.reference_bytes > 0).then(|| self.forecast_reference_unit());
        let panel = self.input.panel.map(|panel| self.forecast_panel_unit(panel));
        let units = [
            self.forecast_assemble_unit(),
            self.forecast_place_unit(),
            self.forecast_recruit_unit(),
            self.forecast_judge_unit(),
            self.forecast_write_unit(),
        ];
        reference.into_iter().chain([count]).chain(panel).chain(units).collect()
    }

    /// Returns the wall-clock time (s) of work that consists of two phases. First all threads spend `cpu_s` CPU
    /// seconds, while `inflated` Gbases are decompressed from files and `moved` bytes are transferred to and from the
    /// work folder; the slowest of the three determines the time. Then one thread works for `alone_s` seconds.
    fn wall_s(&self, cpu_s: f64, inflated: f64, moved: u64, alone_s: f64) -> f64 {
        let threads = self.input.resources.threads as f64;
        // docs/model/time_and_memory.md (1)
        let together = cpu_s / (threads * self.rates.busy_share);
        let inflating = inflated * self.rates.inflate_s / self.input.num_files.max(1) as f64;
        together.max(inflating).max(moved as f64 / self.rates.disk_bytes_per_s) + alone_s
    }

    /// Returns the factor by which the cost per Gbase on this genome exceeds the cost on a genome of
    /// [`MAX_GENOME_GBP_OF_UNSCALED_RATES`]. `tenfold` is the relative growth for a genome ten times as large.
    fn genome_size_factor(&self, tenfold: f64) -> f64 {
        // docs/model/time_and_memory.md (2)
        1.0 + tenfold * (self.reference_gbp / MAX_GENOME_GBP_OF_UNSCALED_RATES).max(1.0).log10()
    }

    /// Returns the bytes of `gbases` Gbases at `rate` bytes per Gbase.
    fn scaled_bytes(rate: f64, gbases: f64) -> u64 {
        (rate * gbases) as u64
    }

    /// Predicts a later pass over `gbases` Gbases of reads, whose input files have `files` bytes. The pass needs
    /// `cpu_s` CPU seconds besides reading, and transfers `moved` bytes to and from the work folder. Returns CPU
    /// seconds, wall-clock seconds and bytes read.
    fn forecast_later_pass(&self, gbases: f64, files: u64, cpu_s: f64, moved: u64) -> (f64, f64, u64) {
        match self.packed_bytes {
            Some(all) => {
                let read = (all as f64 * gbases / self.all_gbases.max(1e-9)) as u64;
                (cpu_s, self.wall_s(cpu_s, 0.0, moved + read, 0.0), read)
            }
            None => {
                let cpu_s = cpu_s + gbases * self.rates.reread_files_cpu_s;
                (cpu_s, self.wall_s(cpu_s, gbases, moved, 0.0), files)
            }
        }
    }

    /// Predicts the unit that reads the reference: when the call begins, and again for the bases that are not N.
    fn forecast_reference_unit(&self) -> UnitForecast {
        let alone_s = 2.0 * self.rates.read_reference_s * self.reference_gbp;
        UnitForecast {
            name: "reference",
            cpu_s: alone_s,
            wall_s: alone_s,
            peak_bytes: self.base_bytes_without_panel() + self.reference_bytes,
            read_bytes: 2 * self.reference_bytes,
            written_bytes: 0,
        }
    }

    /// Returns the memory that every unit uses, without the panel of normals (bytes).
    fn base_bytes_without_panel(&self) -> u64 {
        self.base_bytes - self.panel_counts_bytes
    }

    /// Returns the memory of reads that wait for their mates while all files are read (bytes).
    fn waiting_mates_bytes(&self) -> u64 {
        (self.rates.waiting_mates_bytes * self.input.num_aligned_files as f64) as u64
    }

    /// Returns the memory of reads that wait for their mates in later passes (bytes); 0 if these passes read packed
    /// reads.
    fn waiting_mates_bytes_in_later_pass(&self) -> u64 {
        if self.packed_bytes.is_some() { 0 } else { self.waiting_mates_bytes() }
    }

    /// Predicts the unit that looks up all candidate k-mers in the panel.
    fn forecast_panel_unit(&self, panel: PanelSize) -> UnitForecast {
        let cpu_s = self.rates.panel_lookup_cpu_s * self.tumour_gbases;
        let held_bytes = self.base_bytes + Self::scaled_bytes(self.rates.candidate_kmer_bytes, self.tumour_gbases);
        let filter_fits = panel.page_bytes == 0
            || panel.filter_and_index_bytes
                <= self.input.resources.memory.saturating_sub(held_bytes + RESERVED_MEMORY_BYTES) / 2;
        let filter_bytes = if filter_fits { panel.filter_and_index_bytes } else { 0 };
        UnitForecast {
            name: "panel",
            cpu_s,
            wall_s: self.wall_s(cpu_s, 0.0, panel.page_bytes, 0.0),
            peak_bytes: held_bytes + filter_bytes + PANEL_LOOKUP_BYTES.min(panel.page_bytes),
            read_bytes: filter_bytes + panel.page_bytes,
            written_bytes: 0,
        }
    }

    fn forecast_count_unit(&self, partitions: u32, memory: u64, spilled: u64) -> UnitForecast {
        let candidate_bytes =
            (self.input.reference_bases.unwrap_or(0) as f64 * CANDIDATE_KMER_BYTES_PER_REFERENCE_BASE) as u64;
        // The counter leaves room for the candidate k-mers, and for as much of the other data as fits.
        let counter = self.base_bytes_without_panel() + memory + candidate_bytes;
        let evidence_bytes = self.input.sketch_and_library_memory_bytes(self.rates) + self.waiting_mates_bytes();
        let peak_bytes = (counter + evidence_bytes).min(self.input.resources.memory.max(counter));
        let readings = f64::from(partitions);
        let record = self.packed_bytes.map_or(0.0, |_| self.rates.pack_reads_cpu_s);
        let cpu_s =
            self.all_gbases * (self.rates.count_cpu_s + record + self.rates.extra_partition_cpu_s * (readings - 1.0));
        let moved = spilled * u64::from(partitions);
        let copied = self.packed_bytes.unwrap_or(0);
        let input: u64 = self.input.file_bytes.iter().sum();
        UnitForecast {
            name: "count",
            cpu_s,
            wall_s: self.wall_s(cpu_s, readings * self.all_gbases, 2 * moved + copied, 0.0),
            peak_bytes,
            read_bytes: input * u64::from(partitions) + moved,
            written_bytes: moved + copied + Self::scaled_bytes(self.rates.unit_file_bytes, self.tumour_gbases),
        }
    }

    fn forecast_assemble_unit(&self) -> UnitForecast {
        let cpu_s = self.tumour_gbases
            * self.rates.assemble_cpu_s
            * self.genome_size_factor(self.rates.tenfold_genome_read_growth);
        let (cpu_s, wall_s, read_bytes) =
            self.forecast_later_pass(self.tumour_gbases, self.input.file_bytes[1], cpu_s, 0);
        let held_bytes = self.base_bytes
            + self.waiting_mates_bytes_in_later_pass()
            + Self::scaled_bytes(self.rates.candidate_kmer_bytes, self.tumour_gbases);
        let labelled = Self::scaled_bytes(self.rates.candidate_pair_bytes, self.tumour_gbases);
        UnitForecast {
            name: "assemble",
            cpu_s,
            wall_s,
            peak_bytes: held_bytes + labelled.min(self.input.resources.memory.saturating_sub(held_bytes) / 2),
            read_bytes,
            written_bytes: Self::scaled_bytes(self.rates.unit_file_bytes, self.tumour_gbases),
        }
    }

    fn forecast_place_unit(&self) -> UnitForecast {
        let held_bytes =
            self.base_bytes + self.reference_bytes + Self::scaled_bytes(self.rates.place_bytes, self.tumour_gbases);
        let contigs = Self::scaled_bytes(self.rates.contig_bases, self.tumour_gbases);
        // The seed tables get the memory that is left. The reference is scanned once for each set of contigs that
        // fits.
        let max_bases_per_batch = scan::max_sequence_bases_per_batch(
            self.reference_bytes,
            self.input.resources.memory.saturating_sub(held_bytes),
        )
        .min(contigs);
        let num_scans = if self.reference_bytes == 0 { 0 } else { contigs.div_ceil(max_bases_per_batch.max(1)) };
        let cpu_s = 2.0 * num_scans as f64 * self.rates.scan_reference_cpu_s * self.reference_gbp
            + self.rates.align_contigs_cpu_s
                * self.tumour_gbases
                * self.genome_size_factor(self.rates.tenfold_genome_placement_growth);
        let alone_s = self.rates.read_reference_s * self.reference_gbp;
        UnitForecast {
            name: "place",
            cpu_s: cpu_s + alone_s,
            wall_s: self.wall_s(cpu_s, 0.0, 0, alone_s),
            peak_bytes: held_bytes + scan::memory_bytes_for_sequence_bases(max_bases_per_batch),
            read_bytes: self.reference_bytes,
            written_bytes: 0,
        }
    }

    fn forecast_recruit_unit(&self) -> UnitForecast {
        let cpu_s =
            self.all_gbases * self.rates.recruit_cpu_s * self.genome_size_factor(self.rates.tenfold_genome_read_growth);
        let pairs = Self::scaled_bytes(self.rates.recruited_disk_bytes, self.all_gbases);
        let files = self.input.file_bytes.iter().sum();
        let (cpu_s, wall_s, read) = self.forecast_later_pass(self.all_gbases, files, cpu_s, 3 * pairs);
        UnitForecast {
            name: "recruit",
            cpu_s,
            wall_s,
            peak_bytes: self.base_bytes
                + self.waiting_mates_bytes_in_later_pass()
                + self.reference_bytes
                + Self::scaled_bytes(self.rates.recruit_bytes, self.all_gbases),
            read_bytes: read + pairs,
            written_bytes: 2 * pairs,
        }
    }

    fn forecast_judge_unit(&self) -> UnitForecast {
        let cpu_s =
            self.all_gbases * self.rates.judge_cpu_s * self.genome_size_factor(self.rates.tenfold_genome_call_growth);
        // All pairs at once, or as many as fit in half of the memory that the reference leaves.
        let pairs = Self::scaled_bytes(self.rates.recruited_disk_bytes, self.all_gbases);
        let resident = Self::scaled_bytes(self.rates.recruited_memory_bytes, self.all_gbases);
        let held_bytes =
            self.base_bytes + self.reference_bytes + Self::scaled_bytes(self.rates.judge_bytes, self.all_gbases);
        let free_bytes = self.input.resources.memory.saturating_sub(held_bytes) / 2;
        let needs_several_ranges = resident > free_bytes;
        // Pairs are read once; pairs that do not stay in memory are read again for each pass.
        let read = if needs_several_ranges { 4 * pairs } else { pairs };
        UnitForecast {
            name: "judge",
            cpu_s,
            wall_s: self.wall_s(cpu_s, 0.0, read, 0.0),
            peak_bytes: held_bytes + resident.min(free_bytes),
            read_bytes: read,
            written_bytes: 0,
        }
    }

    fn forecast_write_unit(&self) -> UnitForecast {
        let cpu_s =
            self.all_gbases * self.rates.write_cpu_s * self.genome_size_factor(self.rates.tenfold_genome_call_growth);
        let held_bytes = self.forecast_judge_unit().peak_bytes;
        let free_bytes = self.input.resources.memory.saturating_sub(held_bytes) / 2;
        let peak_bytes = held_bytes + Self::scaled_bytes(self.rates.write_bytes, self.all_gbases).min(free_bytes);
        let written = Self::scaled_bytes(self.rates.result_bytes, self.all_gbases);
        UnitForecast {
            name: "write",
            cpu_s,
            wall_s: self.wall_s(cpu_s, 0.0, written, 0.0),
            peak_bytes,
            read_bytes: 0,
            written_bytes: written,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
