//! `genuma track`: known changes looked for in later samples.

mod annotated;
mod table;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::bail;
use clap::value_parser;
use genuma_reads::{AlignedOptions, Genome, Lane, Layout, check_lanes_once};
use genuma_simulate::evaluate::vcf;
use genuma_track::change::Record;
use genuma_track::pipeline::{Job, Tracking};
use genuma_work::clock::process_cost;
use genuma_work::publish::{AtomicFile, Set};
use tracing::{info, warn};

use crate::failure::Usage;
use crate::progress::Progress;
use crate::{aligned, command, json, sizes, voice};

/// Look for known changes in later samples: relapses, residual disease.
///
/// Takes the changes of a VCF file and reads of one or several later samples, and says how many molecules have each change, whether
/// errors make as many, and for each sample whether there is tumour in it and how much. Reads are not aligned: k-mers that stand
/// once in the genome, or only in the changed one, tell where they come from. PCR copies and both mates count as one molecule.
/// Errors are the sample's own, measured at the bases round the changes.
///
/// Writes a table with a line for each sample and change to standard output or into a file; lines that begin with # say what each
/// sample as a whole says, and how the columns are meant.
#[derive(Debug, clap::Args)]
#[command(
    about = "Look for known changes in later samples: relapses, residual disease",
    after_help = "Examples:\n  \
    What `genuma call` has found, in a sample taken half a year later:\n    \
    genuma track calls/somatic.vcf.gz later_1.fq.gz later_2.fq.gz --reference ref.fa -o later.tsv\n  \
    Two later samples and the patient's normal, everything as JSON too:\n    \
    genuma track calls.vcf --sample may=M_1.fq.gz,M_2.fq.gz --sample july=J_1.fq.gz,J_2.fq.gz \\\n      \
    --normal N_1.fq.gz N_2.fq.gz --reference ref.fa --json both.json -o both.tsv"
)]
pub(crate) struct Args {
    /// The known changes: VCF of any caller, plain or gzip'd
    #[arg(value_name = "VCF")]
    calls: PathBuf,
    /// Reads of the only later sample: FASTQ, plain or gzip'd, files of read 1 and read 2 in turn, lane after lane, or BAM or CRAM
    #[arg(value_name = "READS", required_unless_present = "sample", conflicts_with = "sample")]
    reads: Vec<PathBuf>,
    /// Reads of a later sample with a name; one option for each sample
    #[arg(long, value_name = "NAME=READS,...", value_parser = named, help_heading = "Input")]
    sample: Vec<(String, Vec<PathBuf>)>,
    /// Reads of the patient's normal: what it has is no tumour's
    #[arg(long, value_name = "READS", num_args = 1.., help_heading = "Input")]
    normal: Vec<PathBuf>,
    /// Each FASTQ file holds read 1 and read 2 in turn: one file a lane
    #[arg(long, conflicts_with = "single", help_heading = "Input")]
    interleaved: bool,
    /// Each file holds reads without mates: one file a lane
    #[arg(long, help_heading = "Input")]
    single: bool,
    /// Genome that the VCF speaks of, plain or gzip'd FASTA, no index needed
    #[arg(long, value_name = "FASTA", required = true, help_heading = "Input")]
    reference: PathBuf,
    /// Look for all records of the VCF, not only those that passed their filters
    #[arg(long, help_heading = "Input")]
    all_filters: bool,

    /// File for the table [default: standard output]; a name that ends in .vcf or .vcf.gz: the VCF with the later samples as its columns
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Also write everything as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,

    /// Length of k-mers in bases, 24 to 32: short ones find more of short reads, long ones tell repeats apart
    #[arg(short, default_value_t = 31, value_name = "K", value_parser = value_parser!(u32).range(24..=32), help_heading = "Method")]
    k: u32,

    /// Threads [default: all processors]
    #[arg(short, long, value_name = "N", value_parser = command::threads(), help_heading = "Resources")]
    threads: Option<u16>,
}

/// Name of the only later sample.
const ONLY: &str = "later";
/// Name of the normal.
const NORMAL: &str = "normal";

/// Reads `NAME=FILE,FILE`.
fn named(text: &str) -> Result<(String, Vec<PathBuf>), String> {
    match text.split_once('=') {
        Some((name, files))
            if !name.is_empty() && !files.is_empty() && !name.contains(char::is_whitespace) =>
        {
            Ok((name.to_owned(), files.split(',').map(PathBuf::from).collect()))
        }
        _ => Err("write NAME=FILE, or NAME=FILE,FILE and so on".into()),
    }
}

/// Tracks and writes.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let Asked { job, filtered, text } = args.job()?;
    let progress = Progress::start();
    let tracking = job.run(&progress)?;
    drop(progress);
    let table = table::render(&tracking);
    let mut set = Set::default();
    if let Some(path) = &args.json {
        let mut value = table::json(&tracking);
        value["command"] = command::line().into();
        value["left_out_by_filter"] = filtered.into();
        value["aligned"] = aligned::value(&job.lanes);
        json::add(path, &value, &mut set)?;
    }
    match &args.out {
        Some(path) if annotated::is_wanted(path) => {
            annotated::add(path, &annotated::render(&text, &tracking), &mut set)?;
        }
        Some(path) => {
            use std::io::Write as _;
            let mut file = AtomicFile::create(path)?;
            file.write_all(table.as_bytes())?;
            set.add(file.complete()?);
        }
        None => {}
    }
    set.publish()?;
    if args.out.is_none() {
        voice::print(&table)?;
    }
    aligned::tell(&job.lanes);
    caution(&tracking, filtered);
    for line in table::wholes(&tracking) {
        info!("{line}");
    }
    let seconds = start.elapsed().as_secs_f64();
    info!("{seconds:.1} s, {} of memory at most", sizes::show(process_cost().peak_bytes));
    Ok(())
}

/// Says what was left out.
fn caution(tracking: &Tracking, filtered: usize) {
    if filtered > 0 {
        info!(
            "{filtered} records did not pass their filters and are not looked for; --all-filters takes them too"
        );
    }
    if !tracking.repeated.is_empty() {
        info!("{} records say what others say", tracking.repeated.len());
    }
    if !tracking.untracked.is_empty() {
        let all = tracking.untracked.len() + tracking.changes.len();
        warn!("{} of {all} changes cannot be tracked; the table says why", tracking.untracked.len());
    }
}

/// What is asked.
struct Asked {
    job: Job,
    /// Records left out by their filters.
    filtered: usize,
    /// The file of known changes.
    text: String,
}

/// Whether the file is one of `genuma call` that had no reference.
fn without_reference(text: &str) -> bool {
    let header = || text.lines().take_while(|line| line.starts_with("##"));
    let command = header().find(|line| line.starts_with("##genumaCommand=genuma call"));
    header().any(|line| line.starts_with("##source=genuma "))
        && command.is_some_and(|line| !line.contains(" --reference "))
}

impl Args {
    /// The job as the library wants it.
    fn job(&self) -> anyhow::Result<Asked> {
        let mut samples: Vec<(String, &[PathBuf])> = Vec::new();
        if !self.reads.is_empty() {
            samples.push((ONLY.to_owned(), &self.reads));
        }
        for (name, files) in &self.sample {
            if samples.iter().any(|(other, _)| other == name) {
                return Err(Usage(format!("two samples are called {name}")).into());
            }
            samples.push((name.clone(), files));
        }
        let normal = (!self.normal.is_empty()).then_some(samples.len());
        if normal.is_some() {
            if samples.iter().any(|(name, _)| name == NORMAL) {
                return Err(Usage(format!("a later sample is called {NORMAL}, as that of --normal")).into());
            }
            samples.push((NORMAL.to_owned(), &self.normal));
        }
        if samples.len() > MOST_SAMPLES {
            return Err(Usage(format!("{} samples: at most {MOST_SAMPLES} at once", samples.len())).into());
        }
        let mut lanes = Vec::new();
        for (number, (_, files)) in (0u8..).zip(&samples) {
            lanes.extend(self.lanes(number, files)?);
        }
        check_lanes_once(&lanes)?;
        let text = vcf::text(&self.calls)?;
        let all = vcf::parse(&text, &self.calls)?;
        if without_reference(&text) {
            bail!(
                "{}: calls that were made without a reference, on contigs of their own, cannot be tracked: call again with --reference",
                self.calls.display()
            );
        }
        let read = all.len();
        let passed: Vec<_> = all.into_iter().filter(|r| self.all_filters || r.passed()).collect();
        let filtered = read - passed.len();
        if passed.is_empty() {
            let file = self.calls.display();
            match filtered {
                0 => bail!("{file}: no record to look for"),
                _ => bail!(
                    "{file}: none of {filtered} records passed its filters; --all-filters takes them all"
                ),
            }
        }
        let records = passed.iter().map(record).collect();
        let samples = samples.into_iter().map(|(name, _)| name).collect();
        let (reference, k, threads) = (self.reference.clone(), self.k, command::all_or(self.threads));
        let job = Job { records, reference, lanes, samples, normal, k, threads };
        Ok(Asked { job, filtered, text })
    }

    /// The lanes of one sample.
    fn lanes(&self, number: u8, files: &[PathBuf]) -> Result<Vec<Lane>, Usage> {
        let layout = match (self.single, self.interleaved) {
            (true, _) => Layout::Single,
            (_, true) => Layout::Interleaved,
            _ => Layout::Pairs,
        };
        let genome = Genome::of(Some(self.reference.clone()));
        let options = AlignedOptions { mates: !self.single, genome, ..AlignedOptions::default() };
        Lane::from_files(number, files, layout, &options).map_err(|e| Usage(e.to_string()))
    }
}

/// Most samples at once.
const MOST_SAMPLES: usize = 64;

/// A record of a VCF file as it is tracked.
fn record(of: &vcf::Record) -> Record {
    let info = |key: &str| of.info.get(key).filter(|value| !value.is_empty() && *value != ".");
    let chrom2 = info("CHR2");
    // Delly gives a mate's position in POS2, older ones in END.
    let pos2 = of.length("POS2").or_else(|| of.length("END"));
    let length =
        || of.length("SVLEN").filter(|_| matches!(of.alternate.as_str(), "<DEL>" | "<DUP>" | "<INV>"));
    Record {
        chrom: of.chrom.clone(),
        pos: of.pos,
        id: of.id.clone(),
        reference: of.reference.clone(),
        alternate: of.alternate.clone(),
        end: of.length("END").or_else(|| length().map(|length| of.pos + length)),
        inserted: ["SVINSSEQ", "LEFT_SVINSSEQ", "RIGHT_SVINSSEQ"].map(|key| info(key).cloned()),
        joined: info("CT").cloned(),
        mate: chrom2.cloned().zip(pos2),
        hidden: of.length("INSLEN").unwrap_or(0),
        imprecise: of.info.contains_key("IMPRECISE"),
        stands: (of.line, of.allele),
        share: of.share.parse().ok().filter(|share| (0.0..=1.0).contains(share) && *share > 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn records_of_delly_and_others_are_understood() {
        let of = |alternate: &str, info: &[(&str, &str)]| {
            let info: HashMap<String, String> =
                info.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            record(&vcf::Record {
                pos: 10,
                alternate: alternate.into(),
                info,
                share: "0.25".into(),
                ..Default::default()
            })
        };
        let delly =
            of("<TRA>", &[("CHR2", "d"), ("END", "77"), ("CT", "3to5"), ("INSLEN", "4"), ("IMPRECISE", "")]);
        assert_eq!((delly.mate, delly.joined.as_deref()), (Some(("d".into(), 77)), Some("3to5")));
        assert!(delly.imprecise && delly.hidden == 4 && delly.share == Some(0.25));
        assert_eq!(of("<DEL>", &[("SVLEN", "-20")]).end, Some(30));
        assert_eq!(of("A", &[("SVLEN", "-20")]).end, None);
        let known = of("<INS>", &[("LEFT_SVINSSEQ", "ACGT"), ("SVINSSEQ", ".")]);
        assert_eq!(known.inserted, [None, Some("ACGT".into()), None]);
    }
}
