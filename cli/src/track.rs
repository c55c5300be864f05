//! `genuma track`: counts the molecules of later samples that have known variants.

mod annotated_vcf;
mod table;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{anyhow, bail};
use genuma_reads::{AlignedOptions, CramReference, Lane, check_lanes_for_one_pass};
use genuma_simulate::evaluate::vcf;
use genuma_track::change::VcfAlleleRecord;
use genuma_track::pipeline::{TrackingJob, TrackingResult};
use genuma_work::cost::measure_process_cost;
use genuma_work::publish::{AtomicFile, AtomicFileSet};
use genuma_work::quantity;
use tracing::{info, warn};

use crate::errors::UsageError;
use crate::input_files::{InputFileStates, leave_out_empty_lanes};
use crate::progress::UnitProgressDisplay;
use crate::read_layout::{ReadLayoutOptions, ReadStructureOption};
use crate::{aligned_files, command_line, json_file, logging};

/// Track known variants in later samples: relapse, residual disease.
///
/// Takes the variants of a VCF file and the reads of one or several later samples. Reports for each variant the number of molecules that
/// have it and whether sequencing errors explain them, and for each sample whether it contains tumour DNA and how much. Reads are not aligned:
/// k-mers that are unique in the genome, or occur only in the changed genome, identify where they come from. PCR duplicates and both mates
/// count as one molecule. Error rates are measured in each sample at the bases around the variants.
///
/// Writes a table with a line for each sample and variant to standard output or a file. Lines that begin with # have the result of each
/// sample and explain the columns.
///
/// Memory: about 90 bytes for each read pair at a variant, and of each sample and variant at most about 65,000 pairs are kept. There is no
/// option `--memory`, because nothing that is kept can be spilled.
#[derive(Debug, clap::Args)]
#[command(
    about = "Track known variants in later samples: relapse, residual disease",
    after_help = "Examples:\n  \
    The calls of `genuma call` in a sample taken half a year later:\n    \
    genuma track calls/somatic.vcf.gz later_1.fq.gz later_2.fq.gz --reference ref.fa -o later.tsv\n  \
    Two later samples and the patient's normal, with JSON output:\n    \
    genuma track calls.vcf --sample may=M_1.fq.gz,M_2.fq.gz --sample july=J_1.fq.gz,J_2.fq.gz \\\n      \
    --normal N_1.fq.gz N_2.fq.gz --reference ref.fa --json both.json -o both.tsv"
)]
pub(crate) struct Args {
    /// VCF file with the known variants, of any caller, plain or gzipped
    #[arg(value_name = "VCF")]
    calls: PathBuf,
    /// Reads of the only later sample: FASTQ, plain or compressed, in the order read 1, read 2 of the first lane, read
    /// 1, read 2 of the second lane, and so on; or BAM, CRAM, CBQ, VBQ or BQ files
    #[arg(value_name = "READS", required_unless_present = "sample", conflicts_with = "sample")]
    reads: Vec<PathBuf>,
    /// Reference genome of the VCF file, plain or compressed FASTA, no index needed. CRAM input is decoded with it
    #[arg(long, value_name = "FASTA", required = true, help_heading = "Input")]
    reference: PathBuf,
    /// Name and reads of a later sample; repeat the option for each sample
    #[arg(long, value_name = "NAME=READS,...", value_parser = parse_named_reads, help_heading = "Input")]
    sample: Vec<(String, Vec<PathBuf>)>,
    /// Reads of the patient's normal sample: variants found in it get the verdict in_normal and do not count as evidence of
    /// tumour DNA
    #[arg(long, value_name = "READS", num_args = 1.., help_heading = "Input")]
    normal: Vec<PathBuf>,
    #[command(flatten)]
    layout: ReadLayoutOptions,
    /// Track all records of the VCF file, not only those whose FILTER is PASS or `.`
    #[arg(long, help_heading = "Input")]
    all_filters: bool,

    /// File for the table [default: standard output]. With a name that ends in .vcf or .vcf.gz: write the VCF file with
    /// the later samples as columns instead
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Also write all results as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,

    /// Length of k-mers in bases, 17 to 32: shorter k-mers find more molecules in short reads, longer ones are
    /// unique in more repeats
    #[arg(short, default_value_t = 31, value_name = "K", value_parser = command_line::call_kmer_length_parser(), help_heading = "Method")]
    k: u32,

    /// Threads [default: all CPUs]
    #[arg(short, long, value_name = "N", value_parser = command_line::thread_count_parser(), help_heading = "Resources")]
    threads: Option<u16>,
}

/// Name of the sample whose reads are given without `--sample`.
const DEFAULT_SAMPLE_NAME: &str = "later";
/// Name of the normal sample in the output.
const NORMAL_NAME: &str = "normal";

/// Parses `NAME=FILE,FILE`.
fn parse_named_reads(text: &str) -> Result<(String, Vec<PathBuf>), String> {
    match text.split_once('=') {
        Some((name, files)) if !name.is_empty() && !files.is_empty() && !name.contains(char::is_whitespace) => {
            Ok((name.to_owned(), files.split(',').map(PathBuf::from).collect()))
        }
        _ => Err("write NAME=FILE, or NAME=FILE,FILE and so on".into()),
    }
}

/// Runs `genuma track`: counts the molecules with each known variant, writes the table or the VCF file, and the JSON
/// file.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let TrackRequest { mut job, num_filtered, text } = args.build_request()?;
    let progress = UnitProgressDisplay::start();
    let input_files =
        InputFileStates::record_lane_file_states(&job.lanes, [job.reference.as_path(), args.calls.as_path()])?;
    let tracking = job.track_changes(&progress).map_err(|error| match error {
        genuma_track::Error::Record { .. } => anyhow!("{}: {error}", args.calls.display()),
        other => other.into(),
    })?;
    input_files.check_files_unchanged()?;
    drop(progress);
    let table = table::render_tracking_table(&tracking);
    let mut set = AtomicFileSet::default();
    if let Some(path) = &args.json {
        let mut value = table::tracking_to_json(&tracking);
        value["command"] = command_line::quoted_command_line().into();
        value["left_out_by_filter"] = num_filtered.into();
        value["aligned"] = aligned_files::record_counts_to_json(&job.lanes);
        json_file::add_json_file_with_schema_number(
            path,
            json_file::schema_numbers::TRACK_SCHEMA_NUMBER,
            &value,
            &mut set,
        )?;
    }
    match &args.out {
        Some(path) if annotated_vcf::is_vcf_path(path) => {
            annotated_vcf::add_vcf_file(
                path,
                &annotated_vcf::render_vcf_with_tracking_results(&text, &tracking),
                &mut set,
            )?;
        }
        Some(path) => {
            use std::io::Write as _;
            let mut file = AtomicFile::create(path)?;
            file.write_all(table.as_bytes())?;
            set.add_file(file.flush_to_partial_file()?);
        }
        None => {}
    }
    set.publish_all()?;
    if args.out.is_none() {
        logging::print_result(&table)?;
    }
    aligned_files::log_record_counts(&job.lanes);
    log_skipped_records(&tracking, num_filtered);
    for line in table::format_tumour_detection_lines(&tracking) {
        info!("{line}");
    }
    let seconds = start.elapsed().as_secs_f64();
    info!("{seconds:.1} s, {} peak memory", quantity::format_bytes(measure_process_cost().peak_bytes));
    Ok(())
}

/// Logs how many VCF records were skipped or cannot be tracked, and why.
fn log_skipped_records(tracking: &TrackingResult, num_filtered: usize) {
    if num_filtered > 0 {
        info!("{num_filtered} records did not pass their filters and are skipped; use --all-filters to track them too");
    }
    if !tracking.duplicate_records.is_empty() {
        info!("{} records repeat another record and are skipped", tracking.duplicate_records.len());
    }
    if !tracking.untracked.is_empty() {
        let total = tracking.untracked.len() + tracking.changes.len();
        warn!(
            "{} of {total} variants cannot be tracked, so the results are those of the others; the output gives the reason for each",
            tracking.untracked.len()
        );
    }
}

/// Checked input of a tracking run.
struct TrackRequest {
    job: TrackingJob,
    /// Number of VCF records that were skipped because of their FILTER.
    num_filtered: usize,
    /// Text of the VCF file with the known variants; empty unless a VCF file is written.
    text: String,
}

/// Returns whether `genuma call` made the VCF file without a reference. Such variants have no positions, and cannot be
/// tracked.
fn was_called_without_reference(text: &str) -> bool {
    let header = || text.lines().take_while(|line| line.starts_with("##"));
    let command = header().find(|line| line.starts_with("##genumaCommand=genuma call"));
    header().any(|line| line.starts_with("##source=genuma "))
        && command.is_some_and(|line| !line.contains(" --reference "))
}

impl Args {
    /// Builds the [`TrackingJob`], the input of the library `genuma_track`, from the options. Reads the VCF file and
    /// opens the read files.
    fn build_request(&self) -> anyhow::Result<TrackRequest> {
        let mut samples: Vec<(String, &[PathBuf])> = Vec::new();
        if !self.reads.is_empty() {
            samples.push((DEFAULT_SAMPLE_NAME.to_owned(), &self.reads));
        }
        for (name, files) in &self.sample {
            if samples.iter().any(|(other, _)| other == name) {
                return Err(
                    UsageError(format!("two samples have the name {name}: give each sample its own name")).into()
                );
            }
            samples.push((name.clone(), files));
        }
        let normal = (!self.normal.is_empty()).then_some(samples.len());
        if normal.is_some() {
            if samples.iter().any(|(name, _)| name == NORMAL_NAME) {
                return Err(UsageError(format!(
                    "a later sample has the name {NORMAL_NAME}, which is reserved for the sample of --normal"
                ))
                .into());
            }
            samples.push((NORMAL_NAME.to_owned(), &self.normal));
        }
        if samples.len() > MAX_SAMPLES {
            return Err(UsageError(format!(
                "{} samples: at most {MAX_SAMPLES} can be tracked in one run",
                samples.len()
            ))
            .into());
        }
        let mut lanes = Vec::new();
        for (number, (_, files)) in (0u8..).zip(&samples) {
            let role =
                if normal == Some(number.into()) { ReadStructureOption::Normal } else { ReadStructureOption::Tumour };
            lanes.extend(self.open_lanes(number, role, files)?);
        }
        leave_out_empty_lanes(&mut lanes)?;
        check_lanes_for_one_pass(&lanes)?;
        let text = vcf::read_vcf_text(&self.calls)?;
        let (mut records, mut num_filtered): (Vec<VcfAlleleRecord>, usize) = Default::default();
        vcf::for_each_vcf_record(&text, &self.calls, |record| {
            if self.all_filters || record.has_passed() {
                let chrom = records.last().map(|last| last.chrom.clone()).filter(|last| **last == *record.chrom);
                records.push(to_tracked_record(&record, chrom.unwrap_or_else(|| record.chrom.as_str().into())));
            } else {
                num_filtered += 1;
            }
        })?;
        if was_called_without_reference(&text) {
            bail!(
                "{}: these calls were made without a reference and have no positions to track: call again with --reference",
                self.calls.display()
            );
        }
        if records.is_empty() {
            let file = self.calls.display();
            match num_filtered {
                0 => bail!("{file}: contains no variant records: give the VCF of a call that found changes"),
                _ => bail!(
                    "{file}: none of the {num_filtered} records passed its filters; use --all-filters to track them all"
                ),
            }
        }
        let text = if self.out.as_deref().is_some_and(annotated_vcf::is_vcf_path) { text } else { String::new() };
        let samples = samples.into_iter().map(|(name, _)| name).collect();
        let (reference, k, threads) = (self.reference.clone(), self.k, command_line::threads_or_all_cpus(self.threads));
        let job = TrackingJob { records, reference, lanes, samples, normal, k, threads };
        Ok(TrackRequest { job, num_filtered, text })
    }

    /// Opens the lanes of one sample. `number` is the number of the sample; `role` selects the option with its read
    /// structures.
    fn open_lanes(&self, number: u8, role: ReadStructureOption, files: &[PathBuf]) -> anyhow::Result<Vec<Lane>> {
        let genome = CramReference::new(Some(self.reference.clone()));
        let options = AlignedOptions {
            pair_mates: !self.layout.has_single_reads(),
            reference: genome,
            requires_one_sample: true,
            ..AlignedOptions::default()
        };
        self.layout.open_lanes(number, role, files, &options)
    }
}

/// Maximum number of samples in one run, with the normal.
const MAX_SAMPLES: usize = 64;

/// Converts a VCF record to the record type of the tracking library. `chrom` is the name of its contig.
fn to_tracked_record(of: &vcf::VcfRecord, chrom: Arc<str>) -> VcfAlleleRecord {
    let info = |key: &str| of.info.get(key).filter(|value| !value.is_empty() && *value != ".");
    let chrom2 = info("CHR2");
    // Delly stores the position of the mate in POS2, older versions in END.
    let pos2 = of.absolute_info_value("POS2").or_else(|| of.absolute_info_value("END"));
    let length =
        || of.absolute_info_value("SVLEN").filter(|_| matches!(of.alternate.as_str(), "<DEL>" | "<DUP>" | "<INV>"));
    VcfAlleleRecord {
        chrom,
        pos: of.pos,
        id: of.id.clone(),
        reference: of.reference.clone(),
        alternate: of.alternate.clone(),
        end: of.absolute_info_value("END").or_else(|| length().map(|length| of.pos + length)),
        inserted: ["SVINSSEQ", "LEFT_SVINSSEQ", "RIGHT_SVINSSEQ"].map(|key| info(key).cloned()),
        connection_type: info("CT").cloned(),
        mate: chrom2.cloned().zip(pos2),
        unlisted_inserted_len: of.absolute_info_value("INSLEN").unwrap_or(0),
        imprecise: of.info.contains_key("IMPRECISE"),
        file_position: (of.line_index, of.allele_index),
        allele_fraction: of.allele_fraction.parse().ok().filter(|share| (0.0..=1.0).contains(share) && *share > 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn records_of_delly_and_others_are_understood() {
        let of = |alternate: &str, info: &[(&str, &str)]| {
            let info: HashMap<String, String> = info.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            let record = vcf::VcfRecord {
                pos: 10,
                alternate: alternate.into(),
                info,
                allele_fraction: "0.25".into(),
                ..Default::default()
            };
            to_tracked_record(&record, "c".into())
        };
        let delly = of("<TRA>", &[("CHR2", "d"), ("END", "77"), ("CT", "3to5"), ("INSLEN", "4"), ("IMPRECISE", "")]);
        assert_eq!((delly.mate, delly.connection_type.as_deref()), (Some(("d".into(), 77)), Some("3to5")));
        assert!(delly.imprecise && delly.unlisted_inserted_len == 4 && delly.allele_fraction == Some(0.25));
        assert_eq!(of("<DEL>", &[("SVLEN", "-20")]).end, Some(30));
        assert_eq!(of("A", &[("SVLEN", "-20")]).end, None);
        let known = of("<INS>", &[("LEFT_SVINSSEQ", "ACGT"), ("SVINSSEQ", ".")]);
        assert_eq!(known.inserted, [None, Some("ACGT".into()), None]);
    }
}
