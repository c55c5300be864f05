//! `genuma kmers count`: counts the k-mers of one or several samples and writes them to a table or to text.

pub(crate) mod outputs;
mod resume;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::value_parser;
use genuma_kmers::{
    CountParams, Devices, MAX_SAMPLES, Partition, ScatteredSamples, SortableSampleKmers, min_memory_bytes,
};
use genuma_reads::{
    AlignedOptions, CramReference, Lane, MateLayout, ProgressCounters, check_lanes, check_lanes_for_one_pass,
};
use genuma_tables::note::TableNote;
use genuma_tables::output::KmerOutputFile;
use genuma_work::ProgressListener;
use genuma_work::cost::{CostTimer, UnitCost, measure_process_cost};
use genuma_work::quantity;
use tracing::{debug, info};

use crate::call::{disk_space, memory_limits};
use crate::errors::{UsageError, require_existing_folder};
use crate::first_reads::warn_of_phred64_and_mate_files;
use crate::input_files::{InputFileStates, leave_out_empty_lanes};
use crate::progress::UnitProgressDisplay;
use genuma_work::publish::AtomicFileSet;
use genuma_work::{folder, signals};

use crate::{aligned_files, command_line, fpga, gpu, multiqc};
use outputs::{CountOutcome, choose_format_by_extension, write_kmers};
use resume::ResumableCount;

/// Memory of the process without the k-mer counter (bytes). Measured: 40 MiB with two threads and two files, rounded
/// up.
const BASE_MEMORY_BYTES: u64 = 48 << 20;
/// Memory for the reads that each thread processes, not part of the k-mer counter (bytes). Measured.
const MEMORY_PER_THREAD_BYTES: u64 = 12 << 20;
/// Memory for each open input file, not part of the k-mer counter (bytes). Measured.
const MEMORY_PER_FILE_BYTES: u64 = 1 << 20;

/// Count the k-mers of one sample, or of several samples jointly.
///
/// A k-mer and its reverse complement are counted together, as the alphabetically smaller of the two
/// (canonical k-mer). K-mers with letters other than A, C, G and T are skipped. Reads are FASTQ, plain
/// or compressed, or BAM, CRAM, CBQ, VBQ or BQ. Files are counted independently: mate files need not be
/// paired.
///
/// Writes, in the order of the k-mers:
///   -o x.gkt   a k-mer table on disk, which the other commands of `genuma kmers` read
///   -o x.tsv   text: the k-mer, and a column with its count for each sample
///
/// The same reads and parameters give the same bytes, whatever the number of threads and the memory.
#[derive(Debug, clap::Args)]
#[command(
    about = "Count the k-mers of one sample, or of several samples jointly",
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    The table and the k-mer spectrum of one sample:\n    \
    genuma kmers count -k 31 --memory 8G S_1.fq.gz S_2.fq.gz -o S.gkt --histogram S.hist\n  \
    Tumour and normal jointly; k-mers that do not fit in memory are spilled to a fast disk:\n    \
    genuma kmers count -k 31 --memory 8G --work /scratch --tumor T_*.fq.gz \\\n      \
    --normal N_*.fq.gz -o pair.gkt\n  \
    A trio:\n    \
    genuma kmers count --sample mother=M_1.fq.gz,M_2.fq.gz --sample father=F_1.fq.gz,F_2.fq.gz \\\n      \
    --sample child=C_1.fq.gz,C_2.fq.gz -o trio.gkt\n  \
    A long count: if it is interrupted, the same command resumes it:\n    \
    genuma kmers count -k 31 --memory 8G --work /scratch --resume S_*.fq.gz -o S.gkt"
)]
pub(crate) struct Args {
    /// Reads, if there is only one sample: FASTQ, plain or compressed, or BAM, CRAM, CBQ, VBQ or BQ; `-` is standard
    /// input. Pipes can be read, too, but not with --resume
    #[arg(value_name = "READS", required_unless_present_any = ["normal", "tumor", "sample"], conflicts_with_all = ["normal", "tumor", "sample"])]
    reads: Vec<PathBuf>,
    /// Reads of the tumour; its sample is named `tumor`. Columns are in the order normal, tumor, then those of --sample
    #[arg(long, alias = "tumour", value_name = "READS", num_args = 1.., help_heading = "Input")]
    tumor: Vec<PathBuf>,
    /// Reads of the normal; its sample is named `normal`
    #[arg(long, value_name = "READS", num_args = 1.., help_heading = "Input")]
    normal: Vec<PathBuf>,
    /// Reads of a named sample; up to 8 samples. Repeat the option for each sample, or to add files to a sample
    #[arg(long, value_name = "NAME=READS,...", value_parser = parse_named_files, help_heading = "Input")]
    sample: Vec<NamedFiles>,

    /// Reference that CRAM input was compressed against, plain or compressed FASTA
    #[arg(long, value_name = "FASTA", help_heading = "Input")]
    reference: Option<PathBuf>,

    /// File for the k-mers: x.gkt for a table, x.tsv for text
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    out: PathBuf,
    /// Also write the k-mer spectrum: one row for each count, with the number of distinct k-mers of each sample that
    /// have this count. The last row has the k-mers with counts of 1023 and more
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    histogram: Option<PathBuf>,
    /// Also write statistics, times and sizes as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
    /// Also write a summary for MultiQC to files that begin with this name: PREFIX_..._mqc.json
    #[arg(long, value_name = "PREFIX", help_heading = "Output")]
    multiqc: Option<PathBuf>,

    /// Length of k-mers in bases, 12 to 32
    #[arg(short, default_value_t = 31, value_name = "K", value_parser = value_parser!(u32).range(12..=32), help_heading = "Method")]
    k: u32,
    /// Minimum count of a k-mer that is written, summed over all samples
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = value_parser!(u32).range(1..), help_heading = "Method")]
    min_count: u32,

    /// Threads [default: all CPUs]
    #[arg(short, long, value_name = "N", value_parser = command_line::thread_count_parser(), help_heading = "Resources")]
    threads: Option<u16>,
    /// Maximum memory of the whole process, such as 8G or 512M (powers of 1024) [default: half of the free memory]
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_bytes, help_heading = "Resources")]
    memory: Option<u64>,
    /// Folder for data that does not fit in memory, best on a fast disk [default: the folder of the output]
    #[arg(long, value_name = "DIR", help_heading = "Resources")]
    work: Option<PathBuf>,
    #[command(flatten)]
    gpu: gpu::GpuOptions,
    /// Keep the results of finished units (read, count) in the work folder until all is done, so that an interrupted
    /// run can be resumed: repeat the same command until it succeeds. The number of threads and the memory may change.
    /// Needs disk space for all k-mers
    #[arg(long, help_heading = "Resources")]
    resume: bool,
    /// Do not count k-mers that have a base below this quality (Phred); 0 counts all
    #[arg(long, value_name = "PHRED", default_value_t = 0, value_parser = value_parser!(u8).range(0..=60), help_heading = "Advanced")]
    min_base_quality: u8,
    #[command(flatten)]
    fpga: fpga::FpgaOptions,
}

/// Name of a sample, and the files with its reads.
type NamedFiles = (String, Vec<PathBuf>);

/// Parses `NAME=FILE,FILE`.
fn parse_named_files(text: &str) -> Result<NamedFiles, String> {
    match text.split_once('=') {
        Some((name, files)) if !name.is_empty() && !files.is_empty() && !name.contains(char::is_whitespace) => {
            Ok((name.to_owned(), files.split(',').map(PathBuf::from).collect()))
        }
        _ => Err("write NAME=FILE, or NAME=FILE,FILE and so on".into()),
    }
}

/// Counts the k-mers and writes the results.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let samples = args.collect_samples()?;
    args.count(&samples)
}

impl Args {
    /// Returns names and files of all samples: the unnamed sample (`reads`), the normal and the tumour, if given, then
    /// the samples of `--sample` in the order given. Files of the same sample name are one sample.
    fn collect_samples(&self) -> Result<Vec<NamedFiles>, UsageError> {
        let unnamed = [("reads", &self.reads), ("normal", &self.normal), ("tumor", &self.tumor)];
        let usual = unnamed.into_iter().filter(|(_, files)| !files.is_empty());
        let mut samples: Vec<NamedFiles> = usual.map(|(name, files)| (name.to_owned(), files.clone())).collect();
        for (name, files) in &self.sample {
            match samples.iter_mut().find(|(other, _)| other == name) {
                Some((_, all)) => all.extend_from_slice(files),
                None => samples.push((name.clone(), files.clone())),
            }
        }
        if samples.len() > MAX_SAMPLES {
            return Err(UsageError(format!("{} samples: at most {MAX_SAMPLES} are counted jointly", samples.len())));
        }
        Ok(samples)
    }

    fn output_folder(&self) -> &Path {
        self.out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    /// Returns the parameters of the k-mer counter. Its memory is that of the process less the memory that the rest of
    /// the process needs.
    fn kmer_count_params(&self, files: usize) -> Result<CountParams, UsageError> {
        let threads = command_line::threads_or_all_cpus(self.threads);
        let memory = self
            .memory
            .map_or_else(memory_limits::default_memory_budget_bytes, memory_limits::cap_memory_to_machine_total);
        let reserve =
            BASE_MEMORY_BYTES + MEMORY_PER_THREAD_BYTES * threads as u64 + MEMORY_PER_FILE_BYTES * files as u64;
        let min_memory_bytes = reserve + 2 * min_memory_bytes(threads);
        if memory < min_memory_bytes {
            let subject = format!("{threads} threads need");
            let alternative = Some("lower --threads");
            return Err(memory_limits::too_little_memory_error(memory, min_memory_bytes, &subject, alternative));
        }
        debug!("{threads} threads, {} of memory", quantity::format_bytes(memory));
        let work = self.work.clone().unwrap_or_else(|| self.output_folder().to_path_buf());
        Ok(CountParams {
            k: self.k,
            min_base_quality: self.min_base_quality,
            threads,
            memory_bytes: memory - reserve,
            work_dir: work,
            max_scratch_bytes: u64::MAX,
            partition: Partition::WHOLE_KMER_SPACE,
            devices: Devices::default(),
        })
    }

    /// Checks inputs and outputs, then counts the k-mers of all samples jointly and writes the results. With `--resume`
    /// the results of finished units are kept in a work folder until all is done. Without it, those of an interrupted
    /// run are removed.
    fn count(&self, samples: &[NamedFiles]) -> anyhow::Result<()> {
        let target = choose_format_by_extension(&self.out)?;
        let genome = CramReference::new(self.reference.clone());
        let options = AlignedOptions {
            pair_mates: false,
            reference: genome,
            accepts_missing_qualities: true,
            max_slice_bytes: memory_limits::max_cram_slice_bytes_for_budget(self.memory, self.threads),
            ..AlignedOptions::default()
        };
        let mut lanes = Vec::new();
        for ((_, files), sample) in samples.iter().zip(0u8..) {
            lanes.extend(Lane::group_files_into_lanes(sample, files, MateLayout::Single, &options)?);
        }
        leave_out_empty_lanes(&mut lanes)?;
        warn_of_phred64_and_mate_files(lanes.iter().filter(|lane| lane.is_fastq()).flat_map(Lane::paths), false);
        let params = self.kmer_count_params(lanes.len())?;
        for folder in [self.output_folder(), &params.work_dir] {
            require_existing_folder(folder, &folder.display().to_string())?;
        }
        // A resumed run reads the files again, so they may not be pipes.
        if self.resume {
            check_lanes(&lanes)?
        } else {
            check_lanes_for_one_pass(&lanes)?
        }
        let devices = self.gpu.choose_counting_devices(&lanes, self.k, params.threads, params.memory_bytes)?;
        let devices = self.fpga.add_scatter_device(devices, self.k)?;
        let params = CountParams { devices, ..params };
        let folder = resume::work_folder_path_of_count(&params.work_dir, &self.out);
        let outputs =
            [&self.out].into_iter().chain(&self.histogram).chain(&self.json).chain(&self.multiqc).map(PathBuf::as_path);
        let inputs = lanes.iter().flat_map(Lane::paths);
        folder::check_outside_work_folder(&folder, inputs.chain(outputs)).map_err(|e| UsageError(e.to_string()))?;
        if !self.resume {
            disk_space::check_free_space(
                &params.work_dir,
                disk_space::estimate_max_kmer_spill_bytes(&lanes, params.memory_bytes)?,
            )?;
            folder::remove_folder_of_interrupted_run(&folder)?;
            outputs::keep_finished_units_on_interruption(None);
            return self.count_and_write(&target, samples, &lanes, &params, None);
        }
        let fingerprint = resume::fingerprint_of_count(&params, self.min_count, samples, &lanes)?;
        let resumable = ResumableCount::open(folder.clone(), fingerprint)?;
        outputs::keep_finished_units_on_interruption(Some(folder));
        let done = self.count_and_write(&target, samples, &lanes, &params, Some(&resumable));
        let undivided = signals::enter_critical_section();
        signals::set_termination_handler(None);
        resumable.close_work_folder(done.is_ok());
        drop(undivided);
        done
    }

    /// Counts the k-mers, or resumes an earlier count, and writes the results.
    fn count_and_write(
        &self,
        target: &KmerOutputFile,
        samples: &[NamedFiles],
        lanes: &[Lane],
        params: &CountParams,
        resumable: Option<&ResumableCount>,
    ) -> anyhow::Result<()> {
        let (start, progress, mut costs) = (Instant::now(), UnitProgressDisplay::start(), Vec::new());
        let input_files = InputFileStates::record_lane_file_states(lanes, None)?;
        let sorted = match resumable {
            Some(resumable) => {
                resumable.count_kmers(samples.len(), lanes, params, self.min_count, &progress, &mut costs)?
            }
            None => self.count_kmers(samples.len(), lanes, params, &progress, &mut costs)?,
        };
        input_files.check_files_unchanged()?;
        progress.unit_started("write", None);
        let clock = CostTimer::start();
        let names = samples.iter().map(|(name, _)| name.clone()).collect();
        let note = TableNote::for_counted_table(self.k, self.min_count, self.min_base_quality, names);
        let mut set = AtomicFileSet::default();
        let written = write_kmers(target, &sorted, &note, params.memory_bytes, &mut set)?;
        costs.push(clock.stop("write"));

        let (stats, spectra, shares) = (sorted.count_stats(), sorted.spectra(), sorted.memory_by_node());
        let devices = &params.devices;
        let outcome = CountOutcome { note, stats, spectra, shares, devices, written, costs };
        if let Some(path) = &self.histogram {
            outcome.add_kmer_spectrum_file(path, &mut set)?;
        }
        if let Some(path) = &self.json {
            outcome.add_json_file_to_set(
                path,
                samples,
                aligned_files::record_counts_to_json(lanes),
                start.elapsed(),
                &mut set,
            )?;
        }
        if let Some(prefix) = &self.multiqc {
            multiqc::add_multiqc_section_files(
                prefix,
                &multiqc::build_count_sections(outcome.to_multiqc_statistics_by_sample()),
                &mut set,
            )?;
        }
        set.publish_all()?;
        if resumable.is_none() {
            signals::set_termination_handler(None);
        }
        drop(progress);
        aligned_files::log_record_counts(lanes);
        gpu::log_kmers_counted_by_devices(&params.devices);
        fpga::log_scattered_batches(&params.devices);
        info!(
            "{} distinct {}-mers of {} have a count of {} or more; {:.1} s, {} of memory at most; wrote {}",
            outcome.written.kmers,
            self.k,
            outcome.stats.distinct,
            self.min_count,
            start.elapsed().as_secs_f64(),
            quantity::format_bytes(measure_process_cost().peak_bytes),
            self.out.display()
        );
        Ok(())
    }

    /// Counts the k-mers without a work folder for finished units: no files are left behind on success, failure or
    /// interruption.
    fn count_kmers(
        &self,
        samples: usize,
        lanes: &[Lane],
        params: &CountParams,
        progress: &UnitProgressDisplay,
        costs: &mut Vec<UnitCost>,
    ) -> anyhow::Result<SortableSampleKmers> {
        let meter = Arc::new(ProgressCounters::default());
        progress.unit_started("read", Some(meter.clone()));
        let clock = CostTimer::start();
        let scattered = ScatteredSamples::scatter_lanes(samples, lanes, params, &meter)?;
        costs.push(clock.stop("read"));
        progress.unit_started("count", None);
        let clock = CostTimer::start();
        let sorted = scattered.count_and_keep_frequent_kmers(self.min_count)?;
        costs.push(clock.stop("count"));
        Ok(sorted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_named() {
        assert_eq!(parse_named_files("m=a.fq,b.fq"), Ok(("m".into(), vec!["a.fq".into(), "b.fq".into()])));
        for text in ["", "m", "=a", "m=", "m m=a"] {
            assert!(parse_named_files(text).unwrap_err().contains("NAME=FILE"), "{text}");
        }
    }
}
