//! Predicts time, memory, and bytes read and written of each unit of a call: a number of bases multiplied by
//! [`CostRates`].

use genuma_align::scan;
use genuma_kmers::CountForecast;
use genuma_somatic::count::CANDIDATE_KMER_BYTES_PER_REFERENCE_BASE;
use serde::Serialize;

use crate::input::{ForecastInput, PanelSize};
use crate::rates::{CostRates, MAX_GENOME_GBP_OF_UNSCALED_RATES};

/// Memory that a call does not count as remaining memory, as a reserve (bytes).
const RESERVED_MEMORY_BYTES: u64 = 256 << 20;
/// Memory for looking up a batch of a million k-mers in a panel: k-mers, table pages and results (bytes). The filter of
/// the table is not included.
const PANEL_LOOKUP_BYTES: u64 = 40 << 20;

/// Predicted time, memory and bytes of one unit (count, assemble, recruit, ...) of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnitForecast {
    /// Name of the unit, as in `summary.json`.
    pub name: &'static str,
    /// CPU seconds, summed over all threads.
    pub cpu_s: f64,
    /// Wall-clock time (s).
    pub wall_s: f64,
    /// Peak memory (bytes).
    pub peak_bytes: u64,
    /// Bytes read from files.
    pub read_bytes: u64,
    /// Bytes written to files.
    pub written_bytes: u64,
}

impl ForecastInput {
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
pub(crate) struct UnitForecaster<'a> {
    input: &'a ForecastInput,
    rates: &'a CostRates,
    /// Bases of the reads of all tumour samples, in Gbases (10⁹ bases).
    pub(crate) tumour_gbases: f64,
    /// Bases of the reads of all samples, in Gbases.
    pub(crate) all_gbases: f64,
    /// Size of packed reads (bytes); `None` if they are not written.
    pub(crate) packed_bytes: Option<u64>,
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
    pub(crate) fn new(input: &'a ForecastInput, rates: &'a CostRates, reads_are_packed: bool) -> Self {
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

    pub(crate) fn unit_forecasts(&self, planned: &CountForecast) -> Vec<UnitForecast> {
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
            wall_s: self.count_wall_s(cpu_s, partitions, moved),
            peak_bytes,
            read_bytes: input * u64::from(partitions) + moved,
            written_bytes: moved + copied + Self::scaled_bytes(self.rates.unit_file_bytes, self.tumour_gbases),
        }
    }

    /// Returns the wall-clock time (s) of counting with this CPU time (s) in `partitions` partitions, if `spilled` bytes of
    /// k-mers are written to the work folder and read again.
    pub(crate) fn count_wall_s(&self, cpu_s: f64, partitions: u32, spilled: u64) -> f64 {
        let inflated = f64::from(partitions) * self.all_gbases;
        self.wall_s(cpu_s, inflated, 2 * spilled + self.packed_bytes.unwrap_or(0), 0.0)
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
