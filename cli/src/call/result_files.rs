//! Writes the result files of a call. Either all files appear at the end, or none.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use genuma_reads::fasta::Reference;
use genuma_somatic::call_summary::CallSummary;
use genuma_somatic::export_tables::{ExportTable, MafGeneAnnotation};
use genuma_somatic::gene_annotation::{AnnotationSummary, GeneFile};
use genuma_somatic::known_info::KnownInfoSource;
use genuma_somatic::output::SupportingBamHeaderContent;
use genuma_somatic::pipeline::{CallJob, FinishedCall};
use genuma_somatic::provenance::ReferenceIdentity;
use genuma_somatic::result_warnings::ResultWarning;
use genuma_somatic::sample_names::SampleNames;
use genuma_somatic::signatures::SignatureMatrix;
use genuma_somatic::target_gaps::TargetGap;
use genuma_somatic::vcf::VcfHeaderContent;
use genuma_somatic::vcf_record::VcfRecord;
use genuma_somatic::{export_tables, output, screen_hits, sequence_families, target_gaps, vcf, vcf_record};
use genuma_work::publish::{self, AtomicFile, AtomicFileSet};
use genuma_work::{ProgressCounters, ProgressListener};
use serde::Serialize;
use tracing::info;

use super::summary::ScreenHitsAndAnnotationSummary;
use super::watcher::CallWatcher;
use super::{provenance, signature_fit, summary, targets, why};
use crate::json_file::{JsonOutput, schema_numbers};
use crate::multiqc;
use genuma_report as report;

/// Name of the HTML report.
pub(crate) const REPORT_FILE_NAME: &str = "report.html";

const VCF_FILE: &str = "somatic.vcf.gz";
const CONTIGS_FILE: &str = "contigs.fa";
const SUPPORTING_READS_FILE: &str = "supporting.bam";
/// Possible names of the index of the BAM file: CSI if a reference sequence is too long for BAI, otherwise BAI.
const SUPPORTING_READS_INDEX_FILES: [&str; 2] = ["supporting.bam.bai", "supporting.bam.csi"];
const SUMMARY_FILE: &str = "summary.json";
/// Prefix of the names of the MultiQC files.
const MULTIQC_PREFIX: &str = "genuma";
/// Name of the file with the explanations that `--why` requests; only written with that option.
const WHY_FILE: &str = "why.txt";

/// Name of the table with the depths of the targets; only written with `--targets`.
const TARGETS_FILE: &str = "targets.tsv";

/// Paths of optional output files of a call; `None` for files that are not wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct OptionalOutputPaths {
    /// The MAF file with the small variants.
    pub(crate) maf: Option<PathBuf>,
    /// The BEDPE file with the structural variants.
    pub(crate) bedpe: Option<PathBuf>,
    /// A copy of `summary.json`.
    pub(crate) json: Option<PathBuf>,
}

/// Optional outputs of a call: further files, exposures to mutational signatures, and fields of known variants.
#[derive(Debug, Clone, Default)]
pub(crate) struct OptionalOutputs {
    paths: OptionalOutputPaths,
    /// Matrix of the mutational signatures whose exposures are estimated; `None` if the user gave none.
    signatures: Option<SignatureMatrix>,
    /// Files of known variants with the INFO fields that the records get.
    pub(super) known_info: Vec<KnownInfoSource>,
}

impl OptionalOutputs {
    /// Creates the options. Reads the matrix of mutational signatures from the file `signatures`.
    ///
    /// # Errors
    /// The matrix cannot be read or is malformed.
    pub(crate) fn new(
        paths: OptionalOutputPaths,
        signatures: Option<&Path>,
        known_info: Vec<KnownInfoSource>,
    ) -> anyhow::Result<OptionalOutputs> {
        let signatures = signatures.map(SignatureMatrix::read).transpose()?;
        if let Some(matrix) = &signatures {
            info!("{}: {} signatures", matrix.path().display(), matrix.num_signatures());
        }
        Ok(OptionalOutputs { paths, signatures, known_info })
    }
}

/// An optional output table (MAF or BEDPE): its path, and the temporary file that becomes this file at the end.
struct OpenTable {
    path: PathBuf,
    file: AtomicFile,
}

impl OpenTable {
    fn create(path: &Option<PathBuf>) -> Result<Option<OpenTable>, publish::Error> {
        let begun = |path: &PathBuf| Ok(OpenTable { path: path.clone(), file: AtomicFile::create(path)? });
        path.as_ref().map(begun).transpose()
    }

    /// Writes the table to its temporary file and adds the file to `set`. `rows` and `others` are words for the log:
    /// the kind of variants that the table contains, and the kind that is left out.
    fn write_table(
        mut self,
        table: &ExportTable,
        rows: &str,
        others: &str,
        set: &mut AtomicFileSet,
    ) -> anyhow::Result<()> {
        self.file.write_all(table.text.as_bytes())?;
        set.add_file(self.file.flush_to_partial_file()?);
        let (path, num_rows, skipped) = (self.path.display(), table.num_rows, table.skipped_records);
        info!("{path}: {num_rows} {rows} of calls that pass; {skipped} {others} records are left out");
        Ok(())
    }
}

/// Adds a text file at `path` to the set. Without a text, the file of an earlier run is removed when the set is
/// published.
fn add_text_file(
    path: PathBuf,
    texts: Option<impl IntoIterator<Item = String>>,
    set: &mut AtomicFileSet,
) -> anyhow::Result<()> {
    match texts {
        Some(texts) => {
            let mut file = AtomicFile::create(path)?;
            texts.into_iter().try_for_each(|text| file.write_all(text.as_bytes()))?;
            set.add_file(file.flush_to_partial_file()?);
        }
        None => set.remove_file_on_publish(path),
    }
    Ok(())
}

/// The result files of a call. The temporary files of the report and the tables are opened when the run starts. A
/// folder without write permission, or a second run that writes to the same folder, is thus an error at the start.
pub(crate) struct CallOutputs<'a> {
    folder: &'a Path,
    page: AtomicFile,
    maf: Option<OpenTable>,
    bedpe: Option<OpenTable>,
    json: Option<AtomicFile>,
    signatures: Option<SignatureMatrix>,
    known_info: Vec<KnownInfoSource>,
}

impl<'a> CallOutputs<'a> {
    /// Opens the temporary files of the report and the tables.
    ///
    /// # Errors
    /// The folder is read-only or full, or another run writes its results there.
    pub(crate) fn create(folder: &'a Path, options: OptionalOutputs) -> Result<Self, publish::Error> {
        let page = AtomicFile::create(folder.join(REPORT_FILE_NAME))?;
        let (maf, bedpe) = (OpenTable::create(&options.paths.maf)?, OpenTable::create(&options.paths.bedpe)?);
        let json = options.paths.json.as_ref().map(AtomicFile::create).transpose()?;
        let existing = earlier_result_files(folder, &options);
        if !existing.is_empty() {
            info!(
                "{}: results of an earlier run will be replaced at the end: {}",
                folder.display(),
                existing.join(", ")
            );
        }
        let OptionalOutputs { signatures, known_info, .. } = options;
        Ok(CallOutputs { folder, page, maf, bedpe, json, signatures, known_info })
    }

    /// Writes all files of a finished call. The warnings are written to the VCF header, to the summary and to the
    /// report. Returns the summary.
    ///
    /// # Errors
    /// A file cannot be written, or an input or a file of the work folder cannot be read. No file appears in that case.
    pub(crate) fn write_result_files(
        self,
        job: &CallJob,
        finished: &mut FinishedCall,
        warnings: Vec<ResultWarning>,
        watched: &CallWatcher,
    ) -> anyhow::Result<CallSummary> {
        let CallOutputs { folder, mut page, maf, bedpe, json, signatures, known_info } = self;
        // Each batch of supporting reads adds another scan of the reference, so the total is unknown and is not shown.
        let meter = ProgressCounters::new("the reference");
        watched.unit_started("write", None);
        let file = |name: &str| folder.join(name);
        let mut set = AtomicFileSet::default();
        if !finished.on_reference {
            remove_supporting_reads(folder, &mut set);
        }
        let answers = why::format_trace_reports(&finished.traces);
        add_text_file(file(WHY_FILE), (!finished.traces.is_empty()).then_some(answers), &mut set)?;
        let table = (finished.targets.as_ref())
            .map(|targets| targets::format_target_depth_table(targets, &finished.genome, &finished.samples));
        add_text_file(file(TARGETS_FILE), table.map(|table| [table]), &mut set)?;
        let VcfContent { header, records, reference, annotations } =
            VcfContent::build(job, finished, &known_info, &warnings)?;
        let genome = &finished.genome;
        output::write_vcf(&file(VCF_FILE), &header, &records, genome, finished.samples.has_normal(), &mut set)?;
        let genes =
            if annotations.annotation.is_some() { MafGeneAnnotation::Annotated } else { MafGeneAnnotation::Unknown };
        let tables = TableContent {
            records: &records,
            genome,
            samples: &finished.samples,
            genes,
            known_info_fields: &annotations.known_info_fields,
        };
        tables.write_tables([maf, bedpe], &mut set)?;
        output::write_contigs(&file(CONTIGS_FILE), finished, &mut set)?;
        output::write_supporting_pairs(
            &file(SUPPORTING_READS_FILE),
            finished,
            SupportingBamHeaderContent { provenance: &job.provenance, reference: &reference },
            &job.resources,
            &job.store.work_folder,
            &meter,
            &mut set,
        )?;
        if let Some(matrix) = &signatures {
            signature_fit::add_signature_exposures(matrix, job, finished);
        }
        let outcome = summary::build_call_summary(job, finished, &records, annotations, watched.timeline())?;
        let counters = watched.stop_and_take_counters();
        let outcome = CallSummary { warnings, counters, reference_identity: reference, ..outcome };
        page.write_all(report::call::render_page(&outcome).as_bytes())?;
        set.add_file(page.flush_to_partial_file()?);
        write_summaries(&outcome, folder, json, &mut set)?;
        set.publish_all()?;
        Ok(outcome)
    }
}

/// Removes the supporting reads of an earlier run when `set` is published. They would be mistaken for those of this
/// run.
fn remove_supporting_reads(folder: &Path, set: &mut AtomicFileSet) {
    [SUPPORTING_READS_FILE]
        .iter()
        .chain(&SUPPORTING_READS_INDEX_FILES)
        .for_each(|name| set.remove_file_on_publish(folder.join(name)));
}

/// Header and records of the VCF file, with what the annotation of the records found.
struct VcfContent {
    header: String,
    records: Vec<VcfRecord>,
    reference: ReferenceIdentity,
    annotations: ScreenHitsAndAnnotationSummary,
}

impl VcfContent {
    /// Builds header and records from the events of a call, and adds screened sequences, known variants and genes to
    /// them.
    fn build(
        job: &CallJob,
        finished: &FinishedCall,
        known_info: &[KnownInfoSource],
        warnings: &[ResultWarning],
    ) -> anyhow::Result<VcfContent> {
        let genome = &finished.genome;
        let settings = format_result_parameters(job, known_info);
        let mut records = vcf_record::build_vcf_records(&finished.events, genome);
        sequence_families::add_other_loci_to_records(&mut records, finished.ranges.loci());
        let reference =
            provenance::identify_reference_sequences(genome, job.reference.as_deref(), job.resources.threads)?;
        let mut header = vcf::format_vcf_header(&VcfHeaderContent {
            genome,
            samples: &finished.samples,
            reference: &reference,
            settings: &settings,
            provenance: &job.provenance,
            has_screen: job.screen.is_some(),
        });
        vcf::add_sample_pair_header_lines(&mut header, &finished.samples, &finished.depths, &finished.sample_summaries);
        vcf::add_warning_header_lines(&mut header, warnings);
        let mut screened_calls = Vec::new();
        if let Some(path) = &job.screen {
            screened_calls = screen_hits::find_screen_hits(&finished.events, genome, path, job.params.k)?;
            screen_hits::annotate_records(&screened_calls, &mut records);
        }
        let known_info_fields = add_known_info(known_info, genome, &mut records, &mut header)?;
        let mut target_gaps =
            (finished.targets.as_ref()).map_or_else(Vec::new, |targets| target_gaps::list_target_gaps(targets, genome));
        let annotation = (job.gff.as_ref())
            .map(|gff| annotate_records(gff, genome, &mut records, &mut target_gaps, &mut header))
            .transpose()?;
        let annotations = ScreenHitsAndAnnotationSummary { screened_calls, annotation, target_gaps, known_info_fields };
        Ok(VcfContent { header, records, reference, annotations })
    }
}

/// What MAF and BEDPE are made of.
struct TableContent<'a> {
    records: &'a [VcfRecord],
    genome: &'a Reference,
    samples: &'a SampleNames,
    genes: MafGeneAnnotation,
    known_info_fields: &'a [String],
}

impl TableContent<'_> {
    fn write_tables(&self, [maf, bedpe]: [Option<OpenTable>; 2], set: &mut AtomicFileSet) -> anyhow::Result<()> {
        let &TableContent { records, genome, samples, genes, known_info_fields } = self;
        if let Some(to) = maf {
            let known: Vec<&str> = known_info_fields.iter().map(String::as_str).collect();
            let table = export_tables::build_maf_table(records, genome, samples, genes, &known);
            to.write_table(&table, "small variants", "structural", set)?;
        }
        if let Some(to) = bedpe {
            let table = export_tables::build_bedpe_table(records, genome, samples);
            to.write_table(&table, "junctions", "small", set)?;
        }
        Ok(())
    }
}

/// Writes the summary as JSON, to the folder and to `copy`, and as custom content for MultiQC.
fn write_summaries(
    outcome: &CallSummary,
    folder: &Path,
    copy: Option<AtomicFile>,
    set: &mut AtomicFileSet,
) -> anyhow::Result<()> {
    multiqc::add_multiqc_section_files(
        &folder.join(MULTIQC_PREFIX),
        &multiqc::build_call_sections(outcome, &count_passed_calls_by_class(outcome), folder),
        set,
    )?;
    let summary = JsonOutput::with_schema_number(schema_numbers::CALL_SUMMARY_SCHEMA_NUMBER, summarize(outcome));
    if let Some(mut file) = copy {
        serde_json::to_writer_pretty(&mut file, &summary)?;
        file.write_all(b"\n")?;
        set.add_file(file.flush_to_partial_file()?);
    }
    output::write_json(&folder.join(SUMMARY_FILE), &summary, set)?;
    Ok(())
}

/// Adds the INFO fields of known variants to the records, and the lines that declare them to the header. Returns the IDs
/// of the fields.
fn add_known_info(
    sources: &[KnownInfoSource],
    genome: &Reference,
    records: &mut [VcfRecord],
    header: &mut String,
) -> anyhow::Result<Vec<String>> {
    let mut ids = Vec::new();
    for source in sources {
        let fields = source.annotate_records(genome, records)?;
        vcf::add_known_info_header_lines(header, &fields);
        ids.extend(fields.into_iter().map(|field| field.id));
    }
    Ok(ids)
}

/// Adds genes and consequences to the records, genes to the targets without coverage, and the lines that declare them to
/// the header.
fn annotate_records(
    gff: &GeneFile,
    genome: &Reference,
    records: &mut [VcfRecord],
    gaps: &mut [TargetGap],
    header: &mut String,
) -> anyhow::Result<AnnotationSummary> {
    let genes = gff.read_genes(genome)?;
    genes.annotate_records(genome, records);
    genes.annotate_target_gaps(gaps);
    vcf::add_gene_annotation_header_lines(header, &gff.file_name());
    let bytes = fs::metadata(&gff.path).with_context(|| gff.path.display().to_string())?.len();
    Ok(genes.summarise_annotation(&gff.path, bytes, records))
}

/// Returns the names of the files of an earlier run that this run replaces or removes.
fn earlier_result_files(folder: &Path, tables: &OptionalOutputs) -> Vec<String> {
    let ours = |name: &str| {
        [REPORT_FILE_NAME, CONTIGS_FILE, SUPPORTING_READS_FILE, SUMMARY_FILE, WHY_FILE, TARGETS_FILE].contains(&name)
            || SUPPORTING_READS_INDEX_FILES.contains(&name)
            || name.starts_with(VCF_FILE)
            || name.starts_with(MULTIQC_PREFIX) && name.ends_with("_mqc.json")
    };
    // I/O error ignored: a folder that cannot be listed may still be writable. Its content is then unknown.
    let listed = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        listed.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| ours(name)).collect();
    names.sort();
    // I/O error ignored: the names are for a message only.
    let tables =
        [&tables.paths.maf, &tables.paths.bedpe, &tables.paths.json].into_iter().flatten().filter(|path| path.exists());
    names.extend(tables.map(|path| path.display().to_string()));
    names
}

/// Returns the parameters that the result depends on as a command line, for the VCF header. Parameters are in a fixed
/// order and files are without their folders, so that equal runs have equal headers. The files of reads are left out.
fn format_result_parameters(job: &CallJob, known_info: &[KnownInfoSource]) -> String {
    let (params, reference, screen) = (&job.params, job.reference.as_deref(), job.screen.as_deref());
    let mut line = format!(
        "genuma call -k {} --min-base-quality {} --min-quality {}",
        params.k, params.min_base_quality, params.min_quality
    );
    if let Some(assay) = params.assay {
        line += &format!(" --assay {}", assay.name());
    }
    for (option, path) in [("reference", reference), ("screen", screen)] {
        if let Some(name) = path.and_then(Path::file_name) {
            line += &format!(" --{option} {}", name.to_string_lossy());
        }
    }
    if !job.samples.has_normal() {
        line += " (without a normal)";
    }
    if let Some(panel) = &job.panel {
        let name = panel.table.file_name().unwrap_or_default().to_string_lossy();
        line += &format!(" --panel {name} --panel-min-samples {}", panel.min_normals);
    }
    if let Some(name) = job.known.as_ref().and_then(|known| known.path.file_name()) {
        line += &format!(" --known {}", name.to_string_lossy());
    }
    for source in known_info {
        line += &format!(" --known-info {}:{}", source.file_name(), source.fields.join(","));
    }
    if let Some(gff) = &job.gff {
        line += &format!(" --gff {}", gff.file_name());
    }
    if let Some(option) = &job.targets {
        let name = option.path.file_name().unwrap_or_default().to_string_lossy();
        line += &format!(" --targets {name} --target-padding {}", option.padding_bp);
    }
    line
}

/// Returns the number of calls that passed all filters, by class.
pub(crate) fn count_passed_calls_by_class(outcome: &CallSummary) -> BTreeMap<&'static str, u64> {
    let mut passed = BTreeMap::new();
    for call in outcome.calls.iter().filter(|call| call.filters.is_empty()) {
        *passed.entry(call.class.class_name()).or_default() += 1;
    }
    passed
}

/// Content of `summary.json`: the summary of the call, the number of calls that passed by class, and the number of
/// calls that failed in total and by filter.
#[derive(Serialize)]
struct Summary<'a> {
    #[serde(flatten)]
    outcome: &'a CallSummary,
    passed: BTreeMap<&'static str, u64>,
    filtered: usize,
    filtered_by: BTreeMap<&'a str, u64>,
}

fn summarize(outcome: &CallSummary) -> Summary<'_> {
    let mut filtered_by = BTreeMap::new();
    for filter in outcome.calls.iter().flat_map(|call| &call.filters) {
        *filtered_by.entry(filter.as_str()).or_default() += 1;
    }
    let filtered = outcome.calls.iter().filter(|call| !call.filters.is_empty()).count();
    Summary { outcome, passed: count_passed_calls_by_class(outcome), filtered, filtered_by }
}
