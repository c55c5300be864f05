//! The job of a call, from its options.

use std::path::{Path, PathBuf};

use anyhow::Context;
use genuma_kmers::Devices;
use genuma_planner::rate_source::RateSource;
use genuma_reads::{AlignedOptions, CramReference, Lane, LaneFiles, check_lanes, check_lanes_for_one_pass};
use genuma_somatic::gene_annotation::GeneFile;
use genuma_somatic::known_variants::KnownVariants;
use genuma_somatic::pipeline::{CallJob, CallParams, Resources};
use genuma_somatic::result_warnings::ResultWarning;
use genuma_somatic::target_depth::TargetsOption;
use genuma_work::quantity;
use genuma_work::unit::UnitStore;
use tracing::debug;

use super::blocking_warnings::BlockingWarningRule;
use super::call_fingerprint::{AdditionalInputs, call_fingerprint};
use super::provenance::ProvenanceInputs;
use super::result_files::{OptionalOutputPaths, OptionalOutputs};
use super::sample_options::{SampleNameOptions, SamplesAndLanes};
use super::{
    Args, DEFAULT_TARGET_PADDING_BP, disk_space, known_info, measure_forecast_input, memory_limits, panel,
    sample_options, why,
};
use crate::command_line;
use crate::errors::UsageError;
use crate::forecast::options::CostOptions;
use crate::forecast::text;
use crate::input_files::InputFileStates;
use crate::kmer_length::choose_kmer_length;

/// A call that can run.
pub(super) struct PreparedCall {
    pub(super) job: CallJob,
    /// Warnings on the samples and their reads.
    pub(super) warnings: Vec<ResultWarning>,
    /// States of the input files when the job was built.
    pub(super) input_files: InputFileStates,
}

impl Args {
    /// Returns which warnings prevent the results from being written (`--force`, `--strict`).
    pub(super) fn blocking_warning_rule(&self) -> BlockingWarningRule {
        BlockingWarningRule::from_force_and_strict(self.force, self.strict)
    }

    /// Returns the optional outputs that are requested. Reads the matrix of mutational signatures, if one is given.
    pub(super) fn optional_outputs(&self) -> anyhow::Result<OptionalOutputs> {
        let known_info = known_info::known_info_sources(&self.known_info, self.known.as_deref())?;
        let paths = OptionalOutputPaths { maf: self.maf.clone(), bedpe: self.bedpe.clone(), json: self.json.clone() };
        OptionalOutputs::new(paths, self.signatures.as_deref(), known_info)
    }

    /// Returns the resources of the call. With `--plan` these are the resources of one task of a distributed call,
    /// which may run on another machine. They have no devices with `--plan` and with `--dry-run`.
    fn choose_resources(&self, lanes: &[Lane], k: u32) -> anyhow::Result<Resources> {
        if self.plan.is_some() {
            let default_threads = || command_line::threads_or_all_cpus(None).min(MAX_DEFAULT_STEP_THREADS);
            return Ok(Resources {
                threads: self.threads.map_or_else(default_threads, usize::from),
                memory: self.memory.unwrap_or(DEFAULT_STEP_MEMORY_BYTES),
                scratch: u64::MAX,
                devices: Devices::default(),
            });
        }
        let means = build_resources(self.threads, self.memory, self.scratch)?;
        if self.dry_run {
            return Ok(means);
        }
        let devices = self.gpu.choose_counting_devices(lanes, k, means.threads, means.memory)?;
        let devices = self.fpga.add_scatter_device(devices, k)?;
        Ok(Resources { devices, ..means })
    }

    /// Prints the forecast of a call (--dry-run) whose reference has this number of bases.
    ///
    /// # Errors
    /// The call does not fit in memory and disk space.
    pub(super) fn print_forecast(&self, mut job: CallJob, reference: Option<u64>) -> anyhow::Result<()> {
        job.resources.scratch = disk_space::choose_scratch_bytes(&job.store.work_folder, self.scratch)?;
        text::print_and_write_forecast(
            measure_forecast_input(&job, reference)?,
            &RateSource::BuiltIn,
            &self.gpu,
            &CostOptions::default(),
            None,
        )
    }

    /// Opens the lanes and chooses the names of all samples. `work` is the work folder of the call. With `--plan` the paths
    /// are absolute, and several tumours are an error.
    fn open_samples_and_lanes(&self, work: &Path) -> anyhow::Result<SamplesAndLanes> {
        let genome = CramReference::new(self.reference.clone());
        // The steps of a distributed call run on machines where this folder may not exist.
        let options = AlignedOptions {
            temp_folder: self.plan.is_none().then(|| work.to_path_buf()),
            reference: genome,
            max_slice_bytes: memory_limits::max_cram_slice_bytes_for_budget(self.memory, self.threads),
            ..AlignedOptions::default()
        };
        let names = SampleNameOptions {
            normal: self.normal_name.as_deref(),
            tumour: self.tumor_name.as_deref(),
            normal_option: Some(sample_options::NORMAL_NAME_OPTION),
        };
        let normal = sample_options::choose_normal_read_source(&self.normal, self.reference.as_deref())?;
        let mut opened = self.tumor.open_samples_and_lanes(normal, names, &self.layout, &options)?;
        if self.plan.is_some() {
            if opened.samples.has_several_tumours() {
                return Err(UsageError("--plan: several tumours are called in one process, not in a distributed call; give all lanes of one tumour after one --tumor".into()).into());
            }
            // The steps run in other current folders, so paths must be absolute.
            opened.lanes.iter_mut().try_for_each(make_lane_paths_absolute)?;
        }
        Ok(opened)
    }

    /// Checks that the lanes can be read as often as the call needs them.
    fn check_lanes(&self, lanes: &[Lane]) -> anyhow::Result<()> {
        let piped = lanes.iter().any(Lane::has_pipe);
        let reads_again = [("--plan", self.plan.is_some()), ("--resume", self.resume), ("--dry-run", self.dry_run)];
        if let Some((option, _)) = reads_again.iter().find(|(_, given)| piped && *given) {
            let why = format!("{option}: reads from a pipe can be read only once: save them to files");
            return Err(UsageError(why).into());
        }
        if piped {
            check_lanes_for_one_pass(lanes)?
        } else {
            check_lanes(lanes)?
        }
        Ok(())
    }

    /// Returns the call parameters for k-mers of length `k`.
    fn call_params(&self, k: u32, has_normal: bool) -> CallParams {
        let defaults = CallParams::with_defaults(has_normal);
        CallParams {
            k,
            min_base_quality: self.min_base_quality,
            min_quality: self.min_quality.unwrap_or(defaults.min_quality),
            assay: self.assay.assay(),
            ..defaults
        }
    }

    /// Returns the file of the targets and their padding, if there are targets.
    fn targets_option(&self) -> Option<TargetsOption> {
        let padding_bp = self.target_padding.unwrap_or(DEFAULT_TARGET_PADDING_BP) as usize;
        self.targets.clone().map(|path| TargetsOption { path, padding_bp })
    }

    /// Builds the [`CallJob`], the input of the library `genuma_somatic`, from the options. Opens and checks the input
    /// files.
    pub(super) fn prepare_call(&self) -> anyhow::Result<PreparedCall> {
        let work = self.work.clone().unwrap_or_else(|| self.out.join(".work"));
        let SamplesAndLanes { samples, lanes, mut warnings } = self.open_samples_and_lanes(&work)?;
        let (k, short_reads) = choose_kmer_length(self.k, &lanes)?;
        warnings.extend(short_reads);
        let mut input_files = InputFileStates::record_lane_file_states(&lanes, self.reference.as_deref())?;
        let params = self.call_params(k, samples.has_normal());
        let means = self.choose_resources(&lanes, params.k)?;
        self.check_lanes(&lanes)?;
        let panel = self
            .panel
            .as_deref()
            .map(|table| panel::open_panel_of_normals(table, params.k, self.panel_min_samples))
            .transpose()?;
        let targets = self.targets_option();
        let known = self.known.clone().map(|path| KnownVariants { path });
        let gff = self.gff.clone().map(|path| GeneFile { path });
        let store = UnitStore {
            work_folder: work,
            fingerprint: call_fingerprint(
                &samples,
                &lanes,
                self.reference.as_deref(),
                &AdditionalInputs {
                    screen: self.screen.as_deref(),
                    panel: panel.as_ref(),
                    targets: targets.as_ref(),
                    known: known.as_ref(),
                    gff: gff.as_ref(),
                },
                &params,
            )?,
            resume: self.resume,
        };
        let provenance = ProvenanceInputs {
            samples: &samples,
            lanes: &lanes,
            screen: self.screen.as_deref(),
            panel: panel.as_ref(),
            known: known.as_ref(),
            known_info: &known_info::known_info_sources(&self.known_info, self.known.as_deref())?,
            targets: targets.as_ref(),
            gff: self.gff.as_deref(),
            signatures: self.signatures.as_deref(),
            platform: self.platform.as_deref(),
        }
        .collect_provenance()?;
        let why = why::parse_traced_variants(&self.why, self.reference.as_deref())?;
        // The fingerprint and the provenance describe the files that will be read.
        input_files.check_files_unchanged()?;
        let job = CallJob {
            lanes,
            samples,
            reference: self.reference.clone(),
            screen: self.screen.clone(),
            targets,
            params,
            resources: means,
            store,
            traced_variants: why,
            panel,
            known,
            gff,
            provenance,
        };
        input_files.record_further_file_states(job.input_paths())?;
        Ok(PreparedCall { job, warnings, input_files })
    }
}

/// Maximum of the default number of threads of one task of a distributed call. Tasks run on machines that may have
/// fewer CPUs than this one.
const MAX_DEFAULT_STEP_THREADS: usize = 4;

/// Default memory budget of one task of a distributed call, in bytes.
const DEFAULT_STEP_MEMORY_BYTES: u64 = 16 << 30;

/// Replaces the paths of a lane's files, and of the reference of aligned files, by absolute paths.
fn make_lane_paths_absolute(lane: &mut Lane) -> anyhow::Result<()> {
    let make = |path: &mut PathBuf| {
        *path = std::path::absolute(&*path).with_context(|| path.display().to_string())?;
        Ok(())
    };
    match &mut lane.files {
        LaneFiles::Pair(one, two) => [one, two].into_iter().try_for_each(make),
        LaneFiles::Interleaved(one) | LaneFiles::Single(one) | LaneFiles::Reference(one) => make(one),
        LaneFiles::Aligned(aligned) => {
            make(&mut aligned.path)?;
            aligned.options.reference.path_mut().map_or(Ok(()), make)
        }
    }
}

/// Builds the resources of a call from the options. The memory is limited to that of the machine. The scratch space is
/// not limited to the free disk space yet, because the work folder may not exist at this point.
///
/// # Errors
/// The memory budget is too small for the number of threads.
fn build_resources(threads: Option<u16>, memory: Option<u64>, scratch: Option<u64>) -> Result<Resources, UsageError> {
    let memory =
        memory.map_or_else(memory_limits::default_memory_budget_bytes, memory_limits::cap_memory_to_machine_total);
    let scratch = scratch.unwrap_or(u64::MAX);
    let means =
        Resources { threads: command_line::threads_or_all_cpus(threads), memory, scratch, devices: Devices::default() };
    memory_limits::check_memory_budget(&means, None)?;
    debug!("{} threads, {} of memory", means.threads, quantity::format_bytes(memory));
    Ok(means)
}
