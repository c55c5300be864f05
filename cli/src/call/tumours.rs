//! `--tumor`: each occurrence of the option is a sample of its own.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use genuma_kmers::MAX_SAMPLES;
use genuma_reads::{AlignedOptions, Lane, LaneFiles, Layout, NORMAL, TUMOUR};
use genuma_somatic::samples::Samples;
use tracing::warn;

use crate::failure::Usage;

/// The tumours in the order given. Whether there has to be one is for the command to say.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tumours<const REQUIRED: bool>(Vec<Tumour>);

/// Reads of one tumour.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tumour {
    name: Option<String>,
    files: Vec<PathBuf>,
}

const ID: &str = "tumor";
const HELP: &str = "Reads of the tumour: FASTQ files of read 1 and read 2 in turn, lane after lane, or BAM or CRAM files. Once more for each other sample of the same person, such as \
    a relapse, up to 7; NAME= before the first file gives it a name [default: the SM of BAM or CRAM, else TUMOR, or TUMOR_1, TUMOR_2 and so on]";

/// `NAME=FILE`, where no file has that name itself.
fn split(first: &OsStr) -> Option<(String, PathBuf)> {
    let (name, file) = first.to_str()?.split_once('=')?;
    let fit = self::name(name).is_ok() && !file.is_empty();
    (fit && !Path::new(first).exists()).then(|| (name.to_owned(), file.into()))
}

/// Names given by options of their own.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Names<'a> {
    /// The normal's.
    pub(crate) normal: Option<&'a str>,
    /// That of the only tumour.
    pub(crate) tumour: Option<&'a str>,
}

/// The one sample that all read groups of a sample's BAM and CRAM files are of.
fn in_groups(lanes: &[Lane], sample: u8) -> Option<String> {
    let mut all = BTreeSet::new();
    for lane in lanes.iter().filter(|lane| lane.sample == sample) {
        match &lane.files {
            // A header that cannot be read is told of when the files are checked, before anything else is done.
            LaneFiles::Aligned(aligned) => all.append(&mut aligned.samples().unwrap_or_default()),
            _ => return None,
        }
    }
    all.pop_first().filter(|name| all.is_empty() && !name.is_empty())
}

/// What samples are called: as given, else as their read groups say, else as usual. Of read groups of one name in two samples nothing is taken.
fn names(lanes: &[Lane], given: Names<'_>, tumours: &[Tumour]) -> Samples {
    let mut found: Vec<Option<String>> =
        (0..).take(1 + tumours.len()).map(|sample| in_groups(lanes, sample)).collect();
    let mut seen = BTreeSet::new();
    if let Some(twice) = found.iter().flatten().find(|name| !seen.insert(*name)) {
        warn!("read groups of two samples are of {twice} (SM): names are not taken from them");
        found.fill(None);
    }
    let own = |(i, tumour): (usize, &Tumour)| {
        let given = given.tumour.map(str::to_owned).filter(|_| i == 0);
        given.or_else(|| tumour.name.clone()).or_else(|| found[1 + i].clone())
    };
    let normal = given.normal.map(str::to_owned).or_else(|| found[0].clone());
    Samples::named(normal, tumours.iter().enumerate().map(own))
}

/// A name of a sample, as a column of a VCF and a read group can have it.
///
/// # Errors
/// It is empty or has other letters.
pub(crate) fn name(text: &str) -> Result<String, String> {
    let letters = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let fit = !text.is_empty() && text.chars().all(letters);
    if fit { Ok(text.to_owned()) } else { Err("give letters, digits, '.', '_' and '-'".to_owned()) }
}

impl Tumour {
    fn of(files: Vec<OsString>) -> Tumour {
        let (name, first) = match files.first().and_then(|first| split(first)) {
            Some((name, file)) => (Some(name), Some(file)),
            None => (None, None),
        };
        let named = usize::from(first.is_some());
        let files = first.into_iter().chain(files.into_iter().skip(named).map(PathBuf::from)).collect();
        Tumour { name, files }
    }
}

impl<const REQUIRED: bool> Tumours<REQUIRED> {
    /// What all samples are called, and their lanes with the normal's first. Several occurrences of one name are one sample.
    ///
    /// # Errors
    /// Too many tumours, two with the name of one, an odd number of files.
    pub(crate) fn lanes(
        &self,
        normal: &[PathBuf],
        names_given: Names<'_>,
        interleaved: bool,
        options: &AlignedOptions,
    ) -> Result<(Samples, Vec<Lane>), Usage> {
        let mut tumours: Vec<Tumour> = Vec::new();
        for tumour in &self.0 {
            match tumours.iter_mut().find(|known| known.name.is_some() && known.name == tumour.name) {
                Some(known) => known.files.extend_from_slice(&tumour.files),
                None => tumours.push(tumour.clone()),
            }
        }
        if names_given.tumour.is_some() && (tumours.len() > 1 || tumours.iter().any(|one| one.name.is_some()))
        {
            return Err(Usage("--tumor-name: of several tumours, and of one with NAME= before its first file, names stand there".to_owned()));
        }
        if tumours.len() >= MAX_SAMPLES {
            let (given, most) = (tumours.len(), MAX_SAMPLES - 1);
            return Err(Usage(format!(
                "{given} tumours: at most {most} are called together; lanes of one go behind one --tumor"
            )));
        }
        let layout = if interleaved { Layout::Interleaved } else { Layout::Pairs };
        let of = |sample, files| {
            Lane::from_files(sample, files, layout, options).map_err(|e| Usage(e.to_string()))
        };
        let mut lanes = of(NORMAL, normal)?;
        for (sample, tumour) in (TUMOUR..).zip(&tumours) {
            lanes.extend(of(sample, &tumour.files)?);
        }
        let samples = names(&lanes, names_given, &tumours);
        for (i, name) in samples.names().iter().enumerate() {
            if samples.names()[..i].contains(name) {
                return Err(Usage(format!(
                    "another sample is called {name}: give one of them another name (NAME= behind --tumor, --tumor-name, --normal-name)"
                )));
            }
        }
        Ok((samples, lanes))
    }
}

impl<const REQUIRED: bool> clap::FromArgMatches for Tumours<REQUIRED> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = matches.get_occurrences::<OsString>(ID).into_iter().flatten();
        Ok(Tumours(given.map(|files| Tumour::of(files.cloned().collect())).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<const REQUIRED: bool> clap::Args for Tumours<REQUIRED> {
    fn augment_args(command: Command) -> Command {
        let arg =
            Arg::new(ID).long(ID).alias("tumour").value_name("READS").num_args(1..).action(ArgAction::Append);
        let arg = arg.value_parser(value_parser!(OsString)).help_heading("Input").help(HELP);
        command.arg(if REQUIRED { arg.required(true) } else { arg.required_unless_present("genome") })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
