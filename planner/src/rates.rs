//! The cost rates of a call: CPU time, memory and disk space of each stage for one unit of input. All forecasts are
//! computed from this table.
//!
//! A Gbase is 10⁹ bases of reads, a Gbp is 10⁹ bases of the reference. CPU seconds are summed over all threads.

use serde::Serialize;

/// Cost rates of a call. Each field is the cost of one activity, for the amount of input that its description states.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CostRates {
    /// Counting k-mers in one partition: CPU s per Gbase of all samples.
    pub count_cpu_s: f64,
    /// Reading the reads again and cutting them into super-k-mers, for each partition after the first: CPU s per Gbase
    /// of all samples.
    pub extra_partition_cpu_s: f64,
    /// Writing packed reads: CPU s per Gbase of all samples.
    pub pack_reads_cpu_s: f64,
    /// Additional cost of a later pass that reads the input files instead of packed reads: CPU s per Gbase of the
    /// reads.
    pub reread_files_cpu_s: f64,
    /// Finding the tumour's reads with candidate k-mers in the packed reads, grouping and assembling them: CPU s per
    /// Gbase of the tumour.
    pub assemble_cpu_s: f64,
    /// Scanning the reference once for seeds of contigs: CPU s per Gbp of the reference. Each round of placing contigs
    /// scans twice.
    pub scan_reference_cpu_s: f64,
    /// Comparing contigs with the seed matches of the scans: CPU s per Gbase of the tumour.
    pub align_contigs_cpu_s: f64,
    /// Recruiting reads from the packed reads: CPU s per Gbase of all samples.
    pub recruit_cpu_s: f64,
    /// Genotyping the loci (unit `judge`): CPU s per Gbase of all samples, at 30x.
    pub judge_cpu_s: f64,
    /// Writing the results: CPU s per Gbase of all samples, at 30x.
    pub write_cpu_s: f64,
    /// Relative growth of `assemble_cpu_s` and `recruit_cpu_s` on a genome ten times as large as
    /// [`MAX_GENOME_GBP_OF_UNSCALED_RATES`]: repeats have more copies, and tables exceed the caches.
    pub tenfold_genome_read_growth: f64,
    /// Relative growth of `align_contigs_cpu_s` on a genome ten times as large as [`MAX_GENOME_GBP_OF_UNSCALED_RATES`],
    /// where contigs have more placements.
    pub tenfold_genome_placement_growth: f64,
    /// Relative growth of `judge_cpu_s` and `write_cpu_s` on a genome ten times as large as
    /// [`MAX_GENOME_GBP_OF_UNSCALED_RATES`]: there are more candidate calls.
    pub tenfold_genome_call_growth: f64,
    /// Reading the reference once: s per Gbp in one thread. A call reads it three times.
    pub read_reference_s: f64,
    /// Decompressing and parsing one file of reads: s per Gbase in one thread.
    pub inflate_s: f64,
    /// Share of the time in which a thread uses its CPU while there is work for all threads.
    pub busy_share: f64,
    /// Transfer rate of the disk of the work folder (bytes/s).
    pub disk_bytes_per_s: f64,
    /// Memory of the process before it holds any data (bytes).
    pub base_bytes: f64,
    /// Memory for the reads that one thread processes (bytes).
    pub thread_bytes: f64,
    /// Memory for each k-mer of the k-mer sketch (bytes).
    pub sketch_kmer_bytes: f64,
    /// Memory of the library statistics of one sample in one thread (bytes).
    pub library_bytes: f64,
    /// Memory of reads that wait for their mates (bytes for each BAM, CRAM or BINSEQ file).
    pub waiting_mates_bytes: f64,
    /// Looking up candidate k-mers in the panel of normals: CPU s per Gbase of the tumour.
    pub panel_lookup_cpu_s: f64,
    /// Memory of the panel's counts of candidate k-mers (bytes per Gbase of the tumour).
    pub panel_counts_bytes: f64,
    /// Memory of the candidate k-mers during assembly (bytes per Gbase of the tumour).
    pub candidate_kmer_bytes: f64,
    /// Memory of the read pairs with candidate k-mers (bytes per Gbase of the tumour). At most half of the remaining
    /// memory is used for them.
    pub candidate_pair_bytes: f64,
    /// Memory while contigs are placed on the reference: contigs and their placements, without the seed tables (bytes
    /// per Gbase of the tumour).
    pub place_bytes: f64,
    /// Total length of the contigs (bases per Gbase of the tumour).
    pub contig_bases: f64,
    /// Memory while reads are recruited: contigs, their index and write buffers (bytes per Gbase of all samples).
    pub recruit_bytes: f64,
    /// Memory while loci are genotyped (unit `judge`), without the recruited pairs: contigs and their calls (bytes per
    /// Gbase of all samples).
    pub judge_bytes: f64,
    /// Additional memory while results are written, on top of the memory of genotyping: reads of calls (bytes per Gbase
    /// of all samples).
    pub write_bytes: f64,
    /// Disk space of recruited pairs in the work folder (bytes per Gbase of all samples).
    pub recruited_disk_bytes: f64,
    /// Memory of the recruited pairs during genotyping if all fit in memory (bytes per Gbase of all samples).
    pub recruited_memory_bytes: f64,
    /// Disk space of the files of finished units (bytes per Gbase of the tumour).
    pub unit_file_bytes: f64,
    /// Size of the result files (bytes per Gbase of all samples).
    pub result_bytes: f64,
    /// Size of gzipped FASTQ (bytes per base), used when there are no files to measure.
    pub gzip_bytes_per_base: f64,
    /// Size of packed reads with four quality values (bytes per base), used when there are no files to measure.
    pub packed_bytes_per_base: f64,
    /// Power of the machine during a call (W), if known.
    pub watts: Option<f64>,
}

impl CostRates {
    /// Multiplies all times by `ratio`.
    pub(crate) fn scale_times(&mut self, ratio: f64) {
        for rate in [
            &mut self.count_cpu_s,
            &mut self.extra_partition_cpu_s,
            &mut self.pack_reads_cpu_s,
            &mut self.reread_files_cpu_s,
            &mut self.assemble_cpu_s,
            &mut self.scan_reference_cpu_s,
            &mut self.align_contigs_cpu_s,
            &mut self.recruit_cpu_s,
            &mut self.judge_cpu_s,
            &mut self.write_cpu_s,
            &mut self.read_reference_s,
            &mut self.inflate_s,
            &mut self.panel_lookup_cpu_s,
        ] {
            *rate *= ratio;
        }
    }
}

/// Size of the largest genome (Gbp) for which the rates are valid unchanged. On larger genomes the cost per Gbase is
/// higher; the fields `tenfold_genome_…` say by how much.
pub(crate) const MAX_GENOME_GBP_OF_UNSCALED_RATES: f64 = 0.025;

/// Machine on which [`MEASURED_RATES`] were measured.
pub const MACHINE_OF_MEASURED_RATES: &str = "AMD EPYC virtual machine (Zen 4), 2 cores, 24 GB, a virtual disk";

/// Rates that were measured on [`MACHINE_OF_MEASURED_RATES`]: CPU times of count, assemble, place, recruit and judge on
/// 2026-11-29 with 25 and 100 Mbp of `simulate --genome-like human --library wgs` at 30x/30x, 2×150 bp; the others on
/// 2026-11-24 with 25, 100 and 300 Mbp. `extra_partition_cpu_s` was measured on 2026-11-30 with 1 Gbp in two partitions
/// and 100 Mbp in one, relative to `count_cpu_s`. `scan_reference_cpu_s` is from earlier runs; `busy_share` and
/// `disk_bytes_per_s` are guesses. `genuma plan --measure` and `--from` adapt the rates to the user's machine.
pub const MEASURED_RATES: CostRates = CostRates {
    count_cpu_s: 25.8,
    extra_partition_cpu_s: 17.5,
    pack_reads_cpu_s: 1.2,
    reread_files_cpu_s: 3.2,
    assemble_cpu_s: 6.7,
    scan_reference_cpu_s: 18.0,
    align_contigs_cpu_s: 4.8,
    recruit_cpu_s: 2.7,
    judge_cpu_s: 2.4,
    write_cpu_s: 0.65,
    tenfold_genome_read_growth: 0.2,
    tenfold_genome_placement_growth: 0.7,
    tenfold_genome_call_growth: 0.0,
    read_reference_s: 0.8,
    inflate_s: 4.5,
    busy_share: 0.9,
    disk_bytes_per_s: 5e8,
    base_bytes: 40e6,
    thread_bytes: 12e6,
    sketch_kmer_bytes: 70.0,
    library_bytes: 3e6,
    waiting_mates_bytes: 10e6,
    panel_lookup_cpu_s: 3.0,
    panel_counts_bytes: 20e6,
    candidate_kmer_bytes: 50e6,
    candidate_pair_bytes: 60e6,
    place_bytes: 15e6,
    contig_bases: 2.5e6,
    recruit_bytes: 20e6,
    judge_bytes: 18e6,
    write_bytes: 20e6,
    recruited_disk_bytes: 43e6,
    recruited_memory_bytes: 145e6,
    unit_file_bytes: 20e6,
    result_bytes: 4e6,
    gzip_bytes_per_base: 0.46,
    packed_bytes_per_base: 0.55,
    watts: None,
};
