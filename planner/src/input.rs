//! The input of a call, from which its cost is predicted: sizes of the reads, the reference and the panel of normals, and
//! the resources that the call may use. The sizes are given, or measured from the files.

use std::fs;
use std::path::{Path, PathBuf};

use genuma_dictionary::{DictionaryHeader, is_dictionary_file};
use genuma_flash::{PAGE_BYTES, TablePageReader};
use genuma_kmers::{CountForecast, CountParams, ExpectedKmers};
use genuma_reads::{Lane, LaneFiles, NORMAL_SAMPLE, ReadEstimate, num_samples};
use genuma_somatic::count::{KMER_SKETCH_PARAMS, forecast_counting_resources, packed_reads_budget_bytes};
use genuma_somatic::pipeline::{CallParams, Resources};
use serde::Serialize;

use crate::error::Error;
use crate::rates::{CostRates, MEASURED_RATES};

/// Number of read pairs of one sample in one thread above which the memory of the library statistics no longer grows.
const LIBRARY_SATURATION_PAIRS: f64 = 65_536.0;

/// Size of the input of a call, and the resources that the call may use.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ForecastInput {
    /// Number of bases of the reads: of the normal, and of all tumours together.
    pub bases: [u64; 2],
    /// Number of samples, including the normal.
    pub num_samples: usize,
    /// Size of the files of the normal, and of all tumours together (bytes).
    pub file_bytes: [u64; 2],
    /// Expected size of the packed reads of all samples (bytes).
    pub packed_bytes: u64,
    /// Mean length of a read (bases).
    pub read_length: u64,
    /// Number of files of reads. Each file is decompressed by one thread at a time.
    pub num_files: u64,
    /// Number of BAM, CRAM or BINSEQ files. Reads of these files wait in memory until their mates are read.
    pub num_aligned_files: u64,
    /// The panel of normals, if there is one.
    pub panel: Option<PanelSize>,
    /// Number of bases of the reference, if there is one.
    pub reference_bases: Option<u64>,
    /// Length of k-mers.
    pub k: u32,
    /// Resources that the call may use.
    pub resources: Resources,
}

/// Size of a panel of normals, a k-mer table or dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PanelSize {
    /// Size of the k-mer pages of a table in bytes; 0 for a dictionary.
    pub page_bytes: u64,
    /// Size of the rest of a table in bytes: index, filter and hot k-mers. A call loads them if they fit in half of its
    /// remaining memory. Of a dictionary the whole size: it is always loaded.
    pub filter_and_index_bytes: u64,
}

impl ForecastInput {
    /// Returns the input of a call of a normal and a tumour, each in two files of gzipped FASTQ, from sizes alone:
    /// `genome_bp` is the number of bases of the reference, `depths` are the mean depths of normal and tumour, and
    /// `read_length` is in bases. The sizes of files and of packed reads are computed from [`MEASURED_RATES`]. There is no
    /// panel of normals.
    pub fn from_genome_and_depths(
        genome_bp: u64,
        depths: [f64; 2],
        read_length: u64,
        k: u32,
        resources: Resources,
    ) -> ForecastInput {
        let bases = depths.map(|depth| (genome_bp as f64 * depth) as u64);
        let scaled = |n: u64, bytes_per_base: f64| (n as f64 * bytes_per_base) as u64;
        ForecastInput {
            bases,
            num_samples: 2,
            file_bytes: bases.map(|n| scaled(n, MEASURED_RATES.gzip_bytes_per_base)),
            packed_bytes: bases.iter().map(|&n| scaled(n, MEASURED_RATES.packed_bytes_per_base)).sum(),
            read_length,
            num_files: 4,
            num_aligned_files: 0,
            panel: None,
            reference_bases: Some(genome_bp),
            k,
            resources,
        }
    }

    /// Returns the total numbers of bases and reads, and the size of the packed reads.
    pub(crate) fn estimate(&self) -> ReadEstimate {
        let bases = self.bases.iter().sum();
        ReadEstimate { bases, reads: u64::div_ceil(bases, self.read_length.max(1)), packed_bytes: self.packed_bytes }
    }

    /// Returns the expected number of k-mers in the reads, counting repeated ones.
    pub fn expected_num_kmer_occurrences(&self) -> u64 {
        ExpectedKmers::from_read_estimate(&self.estimate(), self.k).kmers
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

    /// Returns the parameters of the k-mer counter.
    pub(crate) fn kmer_count_params(&self) -> CountParams {
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
    pub(crate) fn plan_count(&self, expected: &ExpectedKmers) -> Option<(CountForecast, bool)> {
        let params = self.kmer_count_params();
        let packed_reads_bytes = packed_reads_budget_bytes(&params, self.num_samples, expected, &self.estimate());
        let kmer_params =
            CountParams { max_scratch_bytes: params.max_scratch_bytes - packed_reads_bytes.unwrap_or(0), ..params };
        Some((forecast_counting_resources(&kmer_params, self.num_samples, expected)?, packed_reads_bytes.is_some()))
    }
}

/// Returns the size of the panel of normals in the file `table`, a k-mer table or dictionary.
///
/// # Errors
/// The file cannot be read.
pub fn measure_panel_size(table: &Path) -> Result<PanelSize, Error> {
    if is_dictionary_file(table)? {
        return Ok(PanelSize { page_bytes: 0, filter_and_index_bytes: DictionaryHeader::read(table)?.file_bytes });
    }
    let scan = TablePageReader::open(table)?;
    let header_bytes = PAGE_BYTES as u64;
    let page_bytes = scan.num_pages() * PAGE_BYTES as u64;
    let filter_and_index_bytes = scan.file_bytes().saturating_sub(header_bytes + page_bytes);
    Ok(PanelSize { page_bytes, filter_and_index_bytes })
}

/// Measures the input of a call with these lanes and k-mers of length `k`. `reference` is the number of bases of the
/// reference. The number of bases of the reads is estimated from the beginnings of the files.
///
/// # Errors
/// A file cannot be read.
pub fn measure_forecast_input(
    lanes: &[Lane],
    reference: Option<u64>,
    panel: Option<PanelSize>,
    k: u32,
    resources: Resources,
) -> Result<ForecastInput, Error> {
    let lanes_of = |normal| {
        let selected = lanes.iter().filter(|lane| (lane.sample == NORMAL_SAMPLE) == normal);
        selected.cloned().collect::<Vec<Lane>>()
    };
    let lanes_by_kind = [true, false].map(lanes_of);
    let [normal, tumour] = lanes_by_kind.each_ref().map(|lanes| ReadEstimate::estimate_reads_of_lanes(lanes));
    let estimates = [normal?, tumour?];
    let [bases, reads] = [estimates.map(|held| held.bases), estimates.map(|held| held.reads)];
    Ok(ForecastInput {
        bases,
        num_samples: num_samples(lanes),
        file_bytes: [sum_file_bytes(&lanes_by_kind[0])?, sum_file_bytes(&lanes_by_kind[1])?],
        packed_bytes: estimates.iter().map(|held| held.packed_bytes).sum(),
        read_length: bases.iter().sum::<u64>() / reads.iter().sum::<u64>().max(1),
        num_files: lanes.iter().flat_map(Lane::paths).count() as u64,
        num_aligned_files: lanes.iter().filter(|lane| matches!(lane.files, LaneFiles::Aligned(_))).count() as u64,
        panel,
        reference_bases: reference,
        k,
        resources,
    })
}

/// Returns the size in bytes of all files of these lanes. Pipes count as empty.
fn sum_file_bytes(lanes: &[Lane]) -> Result<u64, Error> {
    let paths = lanes.iter().flat_map(Lane::paths).filter(|path| *path != Path::new("-"));
    let examine_error = |path: &Path, source| Error::Examine { path: path.to_path_buf(), source };
    paths.map(|path| Ok(fs::metadata(path).map_err(|source| examine_error(path, source))?.len())).sum()
}
