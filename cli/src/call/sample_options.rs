//! Reads and names of the samples of a call: the option `--tumor`, each occurrence of which is one tumour sample, and
//! the options for the normal.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use genuma_kmers::MAX_SAMPLES;
use genuma_reads::{
    AlignedOptions, Lane, LaneFiles, NORMAL_SAMPLE, TUMOUR_SAMPLE, format_empty_lane_warning, remove_empty_lanes,
};
use genuma_somatic::result_warnings::{ResultWarning, WarningTopic};
use genuma_somatic::sample_names::SampleNames;

use crate::errors::UsageError;
use crate::read_layout::{ReadLayoutOptions, ReadStructureOption};

/// Files and names of all tumour samples: the values of all `--tumor` options, in the given order. `REQUIRED`: whether
/// the command needs at least one, instead of which `genuma plan` also takes `--genome`.
#[derive(Debug, Clone, Default)]
pub(crate) struct TumourReadFileOptions<const REQUIRED: bool>(Vec<TumourFiles>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct TumourFiles {
    name: Option<String>,
    files: Vec<PathBuf>,
}

/// The samples of a call or check, with their reads.
pub(crate) struct SamplesAndLanes {
    /// Names of the samples, the normal first.
    pub(crate) samples: SampleNames,
    /// The lanes of all samples that have reads.
    pub(crate) lanes: Vec<Lane>,
    /// Warnings on names and lanes.
    pub(crate) warnings: Vec<ResultWarning>,
}

const OPTION_ID: &str = "tumor";
const OPTION_HELP: &str = "\
    Reads of the tumour: FASTQ files in the order read 1, read 2 of the first lane, read 1, read 2 of the second \
    lane, and so on; or BAM, CRAM, CBQ, VBQ or BQ files. Repeat the option for each further tumour sample of the same \
    person, such as a relapse, up to 7. NAME= directly before the first file names the sample, as in `--tumor \
    relapse=R_1.fq.gz R_2.fq.gz` [default: the SM of BAM or CRAM input, else TUMOR, or TUMOR_1, TUMOR_2 and so on]";

/// Splits `NAME=FILE` into name and file; `None` if the text has another form, or if a file with that whole name
/// exists.
///
/// # Errors
/// The name breaks the rule of sample names, and there is a file of the second name only.
fn split_name_and_file(first: &OsStr) -> Result<Option<(String, PathBuf)>, String> {
    let parts = first.to_str().and_then(|text| text.split_once('=')).filter(|(_, file)| !file.is_empty());
    // A file whose state cannot be read is there.
    let Some((name, file)) = parts.filter(|_| matches!(Path::new(first).try_exists(), Ok(false))) else {
        return Ok(None);
    };
    match parse_sample_name(name) {
        Ok(name) => Ok(Some((name, file.into()))),
        Err(rule) if matches!(Path::new(file).try_exists(), Ok(true)) => {
            Err(format!("the sample name '{name}' cannot be used: {rule}"))
        }
        Err(_) => Ok(None),
    }
}

/// How messages of `genuma call` show the option that names the normal.
pub(crate) const NORMAL_NAME_OPTION: &str = "--normal-name NAME";

/// Sample names given on the command line.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SampleNameOptions<'a> {
    /// Name of the normal (`--normal-name`).
    pub(crate) normal: Option<&'a str>,
    /// Name of the tumour, if there is only one (`--tumor-name`).
    pub(crate) tumour: Option<&'a str>,
    /// The option that names the normal, as messages show it; `None` if the command has no such option.
    pub(crate) normal_option: Option<&'a str>,
}

/// Returns the sample name (SM) in the read groups of a sample's BAM and CRAM files; `None` if a file has no read
/// groups with a sample name. `option` is the command-line option that names the sample; without such an option,
/// contradictory or invalid names are no error. If the option was used (`is_named`), the files may have different
/// sample names, and the result is `None`.
///
/// # Errors
/// A header cannot be read; a file has reads of several samples; or the files have different sample names, or a name
/// that is not allowed, and the command line does not name the sample.
fn read_group_sample_name(
    lanes: &[Lane],
    sample: u8,
    is_named: bool,
    option: Option<&str>,
) -> anyhow::Result<Option<String>> {
    let mut names: BTreeMap<String, &Path> = BTreeMap::new();
    let mut is_complete = true;
    for lane in lanes.iter().filter(|lane| lane.sample == sample) {
        let LaneFiles::Aligned(aligned) = &lane.files else {
            is_complete = false;
            continue;
        };
        let mut own = aligned.read_header()?.sample_names;
        own.remove("");
        is_complete &= !own.is_empty();
        names.extend(own.into_iter().map(|name| (name, aligned.path.as_path())));
    }
    if is_named {
        return Ok(None);
    }
    if let (Some((first, path)), Some((last, other))) = (names.first_key_value(), names.last_key_value())
        && first != last
    {
        let Some(option) = option else { return Ok(None) };
        bail!(
            "{} is of the sample {}, {} of the sample {}, but both are given as one sample: give them as different samples, \
             or, if they are one sample, name it with {option}",
            path.display(),
            first.escape_debug(),
            other.display(),
            last.escape_debug()
        );
    }
    let Some((name, path)) = names.pop_first() else { return Ok(None) };
    if let Err(rule) = parse_sample_name(&name) {
        let Some(option) = option else { return Ok(None) };
        let shown: String = name.chars().take(MAX_SHOWN_NAME_CHARS).collect();
        bail!(
            "{}: the sample name \"{}\" of its read groups (SM) cannot be used: {rule}; name the sample with {option}",
            path.display(),
            shown.escape_debug()
        );
    }
    Ok(is_complete.then_some(name))
}

/// Reads of the normal of a call: those in files, or reads cut from the reference in a tumour-only call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NormalReadSource<'a> {
    /// Files with the reads of the normal.
    Files(&'a [PathBuf]),
    /// There is no normal: reads cut from this reference replace its reads.
    Reference(&'a Path),
}

/// Returns the files of the normal or, if there are none, the reference that replaces the normal.
///
/// # Errors
/// There are neither files nor a reference.
pub(crate) fn choose_normal_read_source<'a>(
    files: &'a [PathBuf],
    reference: Option<&'a Path>,
) -> Result<NormalReadSource<'a>, UsageError> {
    match (files, reference) {
        ([], Some(reference)) => Ok(NormalReadSource::Reference(reference)),
        ([], None) => Err(UsageError(
            "give the reads of the normal with --normal; a tumour-only call needs --reference in its place".to_owned(),
        )),
        (files, _) => Ok(NormalReadSource::Files(files)),
    }
}

/// Maximum number of characters of a sample name that a message shows.
const MAX_SHOWN_NAME_CHARS: usize = 80;

/// Chooses the name of each sample: the given name, else the SM tag of its read groups, else a default. If two samples
/// have the same SM tag, the SM tags of all samples are ignored, with a warning.
///
/// # Errors
/// The errors of [`read_group_sample_name`].
fn choose_sample_names(
    lanes: &[Lane],
    given: SampleNameOptions<'_>,
    tumours: &[TumourFiles],
    warnings: &mut Vec<ResultWarning>,
) -> anyhow::Result<SampleNames> {
    let mut from_read_groups =
        vec![read_group_sample_name(lanes, NORMAL_SAMPLE, given.normal.is_some(), given.normal_option)?];
    for (sample, tumour) in (TUMOUR_SAMPLE..).zip(tumours) {
        let is_named = given.tumour.is_some() || tumour.name.is_some();
        from_read_groups.push(read_group_sample_name(lanes, sample, is_named, Some("--tumor NAME=FILE"))?);
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = from_read_groups.iter().flatten().find(|name| !seen.insert(*name)) {
        let message = format!(
            "read groups of two samples have the same name {twice} (SM tag), so the output has default sample names: check that the \
             files are of different samples, and name these with NAME= before a tumour's files or, in `genuma call`, --normal-name"
        );
        warnings.push(ResultWarning::new(WarningTopic::SampleNames, message));
        from_read_groups.fill(None);
    }
    let own = |(i, tumour): (usize, &TumourFiles)| {
        let given = given.tumour.map(str::to_owned).filter(|_| i == 0);
        given.or_else(|| tumour.name.clone()).or_else(|| from_read_groups[1 + i].clone())
    };
    let normal = given.normal.map(str::to_owned).or_else(|| from_read_groups[0].clone());
    Ok(SampleNames::from_normal_and_tumour_names(normal, tumours.iter().enumerate().map(own)))
}

/// Maximum length of a sample name in characters. Chosen: sample names become parts of file names, whose length file
/// systems limit.
const MAX_SAMPLE_NAME_CHARS: usize = 255;

/// Parses a sample name: letters, digits, `.`, `_` and `-`, as VCF columns and read groups allow. It begins with a letter
/// or a digit: `.` is a missing value in VCF, and `-x` an option of other programs.
///
/// # Errors
/// The name is empty, too long, or has other characters.
pub(crate) fn parse_sample_name(text: &str) -> Result<String, String> {
    let letters = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let fit = text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(letters);
    if text.len() > MAX_SAMPLE_NAME_CHARS {
        return Err(format!("use at most {MAX_SAMPLE_NAME_CHARS} characters"));
    }
    if fit {
        Ok(text.to_owned())
    } else {
        Err("use letters, digits, '.', '_' and '-', and begin with a letter or digit".to_owned())
    }
}

impl TumourFiles {
    fn from_arguments(files: Vec<OsString>) -> Result<TumourFiles, String> {
        let (name, first) = files.first().map_or(Ok(None), |first| split_name_and_file(first))?.unzip();
        let named = usize::from(first.is_some());
        let files = first.into_iter().chain(files.into_iter().skip(named).map(PathBuf::from)).collect();
        Ok(TumourFiles { name, files })
    }
}

impl<const REQUIRED: bool> TumourReadFileOptions<REQUIRED> {
    /// Opens the lanes of all samples, the normal first, and chooses the names of the samples. Occurrences of `--tumor`
    /// with the same name are merged into one sample. Lanes without reads are left out, with a warning. In a tumour-only
    /// call the lane of the normal is the reference.
    ///
    /// # Errors
    /// There are too many tumours, two samples have the same name, `--tumor-name` is given for several or named
    /// tumours, a file has no mate file, or the read structures do not fit the layout ([`UsageError`]); a file cannot
    /// be read, or is not of one sample.
    pub(crate) fn open_samples_and_lanes(
        &self,
        normal: NormalReadSource<'_>,
        names_given: SampleNameOptions<'_>,
        layout: &ReadLayoutOptions,
        options: &AlignedOptions,
    ) -> anyhow::Result<SamplesAndLanes> {
        let options = &AlignedOptions { requires_one_sample: true, ..options.clone() };
        let (mut tumours, mut warnings): (Vec<TumourFiles>, _) = (Vec::new(), Vec::new());
        for tumour in &self.0 {
            match tumours.iter_mut().find(|known| known.name.is_some() && known.name == tumour.name) {
                Some(known) => known.files.extend_from_slice(&tumour.files),
                None => tumours.push(tumour.clone()),
            }
        }
        if names_given.tumour.is_some() && (tumours.len() > 1 || tumours.iter().any(|one| one.name.is_some())) {
            return Err(UsageError("--tumor-name: only for a single tumour without NAME=; name several tumours with NAME= before the first file of each".to_owned()).into());
        }
        if tumours.len() >= MAX_SAMPLES {
            let (given, most) = (tumours.len(), MAX_SAMPLES - 1);
            return Err(UsageError(format!(
                "{given} tumours: at most {most} can be called together; give all lanes of one tumour after one --tumor"
            ))
            .into());
        }
        let mut lanes = match normal {
            NormalReadSource::Files(files) => {
                layout.open_lanes(NORMAL_SAMPLE, ReadStructureOption::Normal, files, options)?
            }
            NormalReadSource::Reference(path) => {
                vec![Lane::with_whole_files(NORMAL_SAMPLE, LaneFiles::Reference(path.to_owned()))]
            }
        };
        for (sample, tumour) in (TUMOUR_SAMPLE..).zip(&tumours) {
            lanes.extend(layout.open_lanes(sample, ReadStructureOption::Tumour, &tumour.files, options)?);
        }
        for lane in remove_empty_lanes(&mut lanes)? {
            warnings.push(ResultWarning::new(WarningTopic::EmptyLane, format_empty_lane_warning(lane.paths())));
        }
        let samples = choose_sample_names(&lanes, names_given, &tumours, &mut warnings)?;
        let samples = match normal {
            NormalReadSource::Files(_) => samples,
            NormalReadSource::Reference(_) => samples.replace_normal_by_reference(),
        };
        for (i, name) in samples.names().iter().enumerate() {
            if samples.names()[..i].contains(name) {
                return Err(UsageError(format!(
                    "two samples have the name {name}: rename one of them (NAME= after --tumor, --tumor-name, or --normal-name)"
                ))
                .into());
            }
        }
        Ok(SamplesAndLanes { samples, lanes, warnings })
    }
}

impl<const REQUIRED: bool> clap::FromArgMatches for TumourReadFileOptions<REQUIRED> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = matches.get_occurrences::<OsString>(OPTION_ID).into_iter().flatten();
        let tumours = given.map(|files| TumourFiles::from_arguments(files.cloned().collect()));
        let wrong_name = |reason: String| {
            clap::Error::raw(clap::error::ErrorKind::ValueValidation, format!("--{OPTION_ID}: {reason}\n"))
        };
        tumours.collect::<Result<_, _>>().map(TumourReadFileOptions).map_err(wrong_name)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<const REQUIRED: bool> clap::Args for TumourReadFileOptions<REQUIRED> {
    fn augment_args(command: Command) -> Command {
        let arg = Arg::new(OPTION_ID)
            .long(OPTION_ID)
            .alias("tumour")
            .value_name("READS")
            .num_args(1..)
            .action(ArgAction::Append);
        let arg = arg.value_parser(value_parser!(OsString)).help_heading("Input").help(OPTION_HELP);
        command.arg(if REQUIRED { arg.required(true) } else { arg.required_unless_present("genome") })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
