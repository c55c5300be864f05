//! `genuma count`: from reads to a table of k-mers and how often each sample has them.

pub(crate) mod outputs;
mod resume;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::value_parser;
use genuma_kmers::{CountParams, Devices, MAX_SAMPLES, Part, Scattered, Sorted, least_memory};
use genuma_reads::{AlignedOptions, Genome, Lane, Layout, Meter, check_lanes, check_lanes_once};
use genuma_work::Watch;
use genuma_work::clock::{Clock, UnitCost, process_cost};
use tracing::{debug, info};

use crate::call::{budget, room};
use crate::failure::{Usage, must_be_folder};
use crate::note::Note;
use crate::progress::Progress;
use genuma_work::publish::Set;
use genuma_work::{folder, signals};

use crate::{aligned, command, gpu, multiqc, sizes};
use outputs::{Outcome, Target};
use resume::Resumable;

/// Bytes of the process that are not the counter's (measured: 40 MiB with two threads and two files), ...
const BASE: u64 = 48 << 20;
/// ... for the reads that a thread holds, ...
const PER_THREAD: u64 = 12 << 20;
/// ... and for an open file.
const PER_FILE: u64 = 1 << 20;

/// Count the k-mers of one sample, or of several jointly.
///
/// A k-mer and its reverse complement are one: the smaller by the alphabet is written. K-mers with
/// other letters than A, C, G and T are left out. Reads are FASTQ, plain, gzip'd or BGZF, or BAM or
/// CRAM; mates need no special care, each file is read for itself.
///
/// Writes, in the order of the k-mers:
///   -o x.gkt   a table that `genuma query` reads, on flash, without loading it
///   -o x.tsv   text: the k-mer and a column for each sample
///
/// The same reads and parameters give the same bytes, whatever the threads and the memory.
#[derive(Debug, clap::Args)]
#[command(
    about = "Count the k-mers of one sample, or of several jointly",
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    One sample, its table and its histogram:\n    \
    genuma count -k 31 --memory 8G S_1.fq.gz S_2.fq.gz -o S.gkt --histogram S.hist\n  \
    Tumour and normal jointly; what does not fit in memory goes to a fast disk:\n    \
    genuma count -k 31 --memory 8G --work /scratch --tumor T_*.fq.gz --normal N_*.fq.gz -o pair.gkt\n  \
    A trio:\n    \
    genuma count --sample mother=M_1.fq.gz,M_2.fq.gz --sample father=F_1.fq.gz,F_2.fq.gz \\\n      \
    --sample child=C_1.fq.gz,C_2.fq.gz -o trio.gkt\n  \
    A long count that may be interrupted: begun, and later taken up, by the same command\n    \
    genuma count -k 31 --memory 8G --work /scratch --resume S_*.fq.gz -o S.gkt"
)]
pub(crate) struct Args {
    /// Reads of the only sample: FASTQ, plain, gzip'd or BGZF, or BAM or CRAM; `-` is stdin, and pipes are read as well, unless with --resume
    #[arg(value_name = "READS", required_unless_present_any = ["normal", "tumor", "sample"], conflicts_with_all = ["normal", "tumor", "sample"])]
    reads: Vec<PathBuf>,
    /// Reads of the tumour
    #[arg(long, alias = "tumour", value_name = "READS", num_args = 1.., help_heading = "Input")]
    tumor: Vec<PathBuf>,
    /// Reads of the normal
    #[arg(long, value_name = "READS", num_args = 1.., help_heading = "Input")]
    normal: Vec<PathBuf>,
    /// Reads of a sample with a name; up to 8 samples, one option each or several of one name
    #[arg(long, value_name = "NAME=READS,...", value_parser = named, help_heading = "Input")]
    sample: Vec<Named>,

    /// Reference that CRAM was written against, plain or gzip'd FASTA
    #[arg(long, value_name = "FASTA", help_heading = "Input")]
    reference: Option<PathBuf>,

    /// x.gkt for a table, x.tsv for text
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    out: PathBuf,
    /// Also write how many k-mers there are of each count: count, then a column for each sample; counts of 1023
    /// and more in the last row
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    histogram: Option<PathBuf>,
    /// Also write what was done, with times and sizes, as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
    /// Also write what MultiQC shows of it, files that begin with this name: PREFIX_..._mqc.json
    #[arg(long, value_name = "PREFIX", help_heading = "Output")]
    multiqc: Option<PathBuf>,

    /// Length of k-mers in bases, 12 to 32
    #[arg(short, default_value_t = 31, value_name = "K", value_parser = value_parser!(u32).range(12..=32), help_heading = "Method")]
    k: u32,
    /// Write k-mers that are there at least this often, all samples summed
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = value_parser!(u32).range(1..), help_heading = "Method")]
    min_count: u32,
    /// k-mers with a base below this quality (Phred) are not counted; 0 counts all
    #[arg(long, value_name = "PHRED", default_value_t = 0, value_parser = value_parser!(u8).range(0..=60), help_heading = "Method")]
    min_base_quality: u8,

    /// Threads [default: all processors]
    #[arg(short, long, value_name = "N", value_parser = command::threads(), help_heading = "Resources")]
    threads: Option<u16>,
    /// Most memory of the whole process, such as 8G or 512M (powers of 1024) [default: half of what is free]
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse, help_heading = "Resources")]
    memory: Option<u64>,
    /// Folder for what does not fit in memory, best on a fast disk [default: that of the output]
    #[arg(long, value_name = "DIR", help_heading = "Resources")]
    work: Option<PathBuf>,
    #[command(flatten)]
    gpu: gpu::Gpus,
    /// Keep finished steps on disk until all is done, and take up an interrupted run that did: the same command, repeated
    /// until it is done. Threads and memory may be others. Needs room for all k-mers
    #[arg(long, help_heading = "Resources")]
    resume: bool,
}

/// Files of a sample.
type Named = (String, Vec<PathBuf>);

/// Reads `NAME=FILE,FILE`.
fn named(text: &str) -> Result<Named, String> {
    match text.split_once('=') {
        Some((name, files))
            if !name.is_empty() && !files.is_empty() && !name.contains(char::is_whitespace) =>
        {
            Ok((name.to_owned(), files.split(',').map(PathBuf::from).collect()))
        }
        _ => Err("write NAME=FILE, or NAME=FILE,FILE and so on".into()),
    }
}

/// Counts and writes.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let samples = args.samples()?;
    match samples.len() {
        1 => args.count::<1>(&samples),
        2 => args.count::<2>(&samples),
        3 | 4 => args.count::<4>(&samples),
        _ => args.count::<MAX_SAMPLES>(&samples),
    }
}

impl Args {
    /// All samples by their names: the normal first, then the tumour, then the others in the order given.
    fn samples(&self) -> Result<Vec<Named>, Usage> {
        let usual = [("reads", &self.reads), ("normal", &self.normal), ("tumor", &self.tumor)];
        let usual = usual.into_iter().filter(|(_, files)| !files.is_empty());
        let mut samples: Vec<Named> = usual.map(|(name, files)| (name.to_owned(), files.clone())).collect();
        for (name, files) in &self.sample {
            match samples.iter_mut().find(|(other, _)| other == name) {
                Some((_, all)) => all.extend_from_slice(files),
                None => samples.push((name.clone(), files.clone())),
            }
        }
        if samples.len() > MAX_SAMPLES {
            return Err(Usage(format!(
                "{} samples: at most {MAX_SAMPLES} are counted jointly",
                samples.len()
            )));
        }
        Ok(samples)
    }

    /// Folder of the output.
    fn folder(&self) -> &Path {
        self.out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    /// What the counter may use, of the memory of the process (bytes).
    fn params(&self, files: usize) -> Result<CountParams, Usage> {
        let threads = command::all_or(self.threads);
        let memory = self.memory.map_or_else(budget::usual, budget::at_most_all);
        let reserve = BASE + PER_THREAD * threads as u64 + PER_FILE * files as u64;
        let least = reserve + 2 * least_memory(threads);
        if memory < least {
            let (have, need) = (sizes::show(memory), sizes::show(least));
            return Err(Usage(format!(
                "{have} of memory are too little: {threads} threads need {need} or more; raise --memory or lower --threads"
            )));
        }
        debug!("{threads} threads, {} of memory", sizes::show(memory));
        let work = self.work.clone().unwrap_or_else(|| self.folder().to_path_buf());
        Ok(CountParams {
            k: self.k,
            min_base_quality: self.min_base_quality,
            threads,
            memory: memory - reserve,
            work,
            scratch: u64::MAX,
            part: Part::WHOLE,
            devices: Devices::default(),
        })
    }

    /// Counts with room for `S` samples, as many as there are or more.
    fn count<const S: usize>(&self, samples: &[Named]) -> anyhow::Result<()> {
        let target = Target::of(&self.out)?;
        let genome = Genome::of(self.reference.clone());
        let options = AlignedOptions { mates: false, genome, ..AlignedOptions::default() };
        let mut lanes = Vec::new();
        for ((_, files), sample) in samples.iter().zip(0u8..) {
            lanes.extend(Lane::from_files(sample, files, Layout::Single, &options)?);
        }
        let params = self.params(lanes.len())?;
        for folder in [self.folder(), &params.work] {
            must_be_folder(folder, &folder.display().to_string())?;
        }
        // What is to be resumed is read again.
        if self.resume {
            check_lanes(&lanes)?
        } else {
            check_lanes_once(&lanes)?
        }
        let devices = self.gpu.choose(&lanes, self.k, params.threads, params.memory)?;
        let params = CountParams { devices, ..params };
        let folder = resume::folder(&params.work, &self.out);
        let outputs = [&self.out]
            .into_iter()
            .chain(&self.histogram)
            .chain(&self.json)
            .chain(&self.multiqc)
            .map(PathBuf::as_path);
        let inputs = lanes.iter().flat_map(Lane::paths);
        folder::check_apart(&folder, inputs.chain(outputs)).map_err(|e| Usage(e.to_string()))?;
        if !self.resume {
            room::check(&params.work, room::needed(&lanes, params.memory))?;
            folder::discard(&folder)?;
            outputs::heed_interruption(None);
            return self.write::<S>(&target, samples, &lanes, &params, None);
        }
        let fingerprint = resume::fingerprint(&params, self.min_count, samples, &lanes)?;
        let resumable = Resumable::open(folder.clone(), fingerprint)?;
        outputs::heed_interruption(Some(folder));
        let done = self.write::<S>(&target, samples, &lanes, &params, Some(&resumable));
        let undivided = signals::undivided();
        signals::on_interruption(None);
        resumable.end(done.is_ok());
        drop(undivided);
        done
    }

    /// Counts, or takes up a count, and writes the results.
    fn write<const S: usize>(
        &self,
        target: &Target,
        samples: &[Named],
        lanes: &[Lane],
        params: &CountParams,
        resumable: Option<&Resumable>,
    ) -> anyhow::Result<()> {
        let (start, progress, mut costs) = (Instant::now(), Progress::start(), Vec::new());
        let sorted = match resumable {
            Some(resumable) => resumable.sorted::<S>(lanes, params, self.min_count, &progress, &mut costs)?,
            None => self.sorted::<S>(lanes, params, &progress, &mut costs)?,
        };
        progress.begins("write", None);
        let clock = Clock::start();
        let names = samples.iter().map(|(name, _)| name.clone()).collect();
        let note = Note::new(self.k, self.min_count, self.min_base_quality, names);
        let mut set = Set::default();
        let written = target.write(&sorted, &note, params.memory, &mut set)?;
        costs.push(clock.cost("write"));

        let (stats, spectra, shares) = (sorted.stats(), &sorted.spectra, &sorted.shares);
        let devices = &params.devices;
        let outcome = Outcome { note, stats, spectra, shares, devices, written, costs };
        if let Some(path) = &self.histogram {
            outcome.histogram(path, &mut set)?;
        }
        if let Some(path) = &self.json {
            outcome.json(path, samples, aligned::value(lanes), start.elapsed(), &mut set)?;
        }
        if let Some(prefix) = &self.multiqc {
            multiqc::add(prefix, &multiqc::of_counts(outcome.counted()), &mut set)?;
        }
        set.publish()?;
        if resumable.is_none() {
            signals::on_interruption(None);
        }
        drop(progress);
        aligned::tell(lanes);
        gpu::tell(&params.devices);
        info!(
            "{} distinct {}-mers of {} are there {} times or more; {:.1} s, {} of memory at most; see {}",
            outcome.written.entries,
            self.k,
            outcome.stats.distinct,
            self.min_count,
            start.elapsed().as_secs_f64(),
            sizes::show(process_cost().peak_bytes),
            self.out.display()
        );
        Ok(())
    }

    /// Counts, and leaves nothing behind whatever happens.
    fn sorted<const S: usize>(
        &self,
        lanes: &[Lane],
        params: &CountParams,
        progress: &Progress,
        costs: &mut Vec<UnitCost>,
    ) -> anyhow::Result<Sorted<S>> {
        let meter = Arc::new(Meter::default());
        progress.begins("read", Some(meter.clone()));
        let clock = Clock::start();
        let scattered = Scattered::<S>::new(lanes, params, &meter)?;
        costs.push(clock.cost("read"));
        progress.begins("count", None);
        let clock = Clock::start();
        let sorted = scattered.count(self.min_count)?;
        costs.push(clock.cost("count"));
        Ok(sorted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_named() {
        assert_eq!(named("m=a.fq,b.fq"), Ok(("m".into(), vec!["a.fq".into(), "b.fq".into()])));
        for text in ["", "m", "=a", "m=", "m m=a"] {
            assert!(named(text).unwrap_err().contains("NAME=FILE"), "{text}");
        }
    }
}
