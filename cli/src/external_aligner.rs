//! Parses the command of an external aligner in the arguments of `genuma run` and `genuma machine advise`, and the
//! option `--reads`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use genuma_reads::{AlignedInput, AlignedOptions, CramReference, check_no_other_format};
use genuma_strategy::invocation::{Error as Wrong, ReadFiles};
use genuma_strategy::{Invocation, command_presets};

use crate::errors::UsageError;

/// Options that name the reads when the aligner's command does not.
#[derive(Debug, Args)]
pub(crate) struct ReadFileOptions {
    /// Reads, if the command does not name them: one file of single reads, or files in the order read 1, read 2 of
    /// the first lane, read 1, read 2 of the second lane, and so on; or BAM, CRAM, CBQ, VBQ or BQ files
    #[arg(long, value_name = "READS", num_args = 1.., help_heading = "Input")]
    reads: Vec<PathBuf>,
    /// Each file of --reads holds pairs in which read 1 and read 2 alternate
    #[arg(long, requires = "reads", help_heading = "Input")]
    interleaved: bool,
    /// Each file of --reads holds reads without mates
    #[arg(long, requires = "reads", conflicts_with = "interleaved", help_heading = "Input")]
    single: bool,
    /// FASTA file of the reference that CRAM input was compressed against
    #[arg(long, value_name = "FASTA", help_heading = "Input")]
    reference: Option<PathBuf>,
}

impl ReadFileOptions {
    /// Returns whether the option `--reads` is given.
    pub(crate) fn is_reads_option_given(&self) -> bool {
        !self.reads.is_empty()
    }

    /// Returns the BAM and CRAM files and the reference of a variant caller, if options name them.
    ///
    /// # Errors
    /// [`UsageError`] for options that concern the pairing of reads.
    pub(crate) fn files_of_variant_caller(&self) -> Result<(&[PathBuf], Option<&Path>), UsageError> {
        match self.interleaved || self.single {
            true => {
                Err(UsageError("--by-interval: --interleaved and --single are for aligners: leave them out".to_owned()))
            }
            false => Ok((&self.reads, self.reference.as_deref())),
        }
    }

    /// Checks that `--reference` is not given for a program whose input genuma does not read.
    ///
    /// # Errors
    /// [`UsageError`] if `--reference` is given.
    pub(crate) fn check_no_reference_for_unknown_program(&self, program: &str) -> Result<(), UsageError> {
        match &self.reference {
            None => Ok(()),
            Some(path) => Err(UsageError(format!(
                "--reference {}: genuma does not know {program} and does not read its input: leave out --reference; if {program} \
                 aligns reads, name them with --reads",
                path.display()
            ))),
        }
    }

    /// Parses the aligner's command and adds the files of `--reads`, if any.
    ///
    /// # Errors
    /// [`UsageError`] for a command that genuma does not understand; other errors if a program, an index or a file is
    /// missing.
    pub(crate) fn parse_aligner_command(&self, command: &[OsString]) -> anyhow::Result<Invocation> {
        let invocation = command_presets::parse_command(command).map_err(to_usage_error)?;
        let names_reads = invocation.reads != ReadFiles::Unnamed;
        if !names_reads && self.reads.is_empty() {
            // A misspelt name of an aligner looks like a program whose reads are not named.
            invocation.check_program_exists()?;
        }
        let invocation = match names_reads && self.reads.is_empty() {
            true => invocation,
            false => invocation
                .with_reads(parse_reads(&self.reads, self.interleaved, self.single)?)
                .map_err(to_usage_error)?,
        };
        let genome = CramReference::new(self.reference.clone());
        invocation
            .with_aligned_read_options(AlignedOptions { reference: genome, ..AlignedOptions::default() })
            .map_err(to_usage_error)
    }
}

/// Converts an error of parsing a command: to a [`UsageError`] if the command is wrong, otherwise (a missing program,
/// index or file) to an ordinary error.
fn to_usage_error(error: Wrong) -> anyhow::Error {
    match error {
        missing @ (Wrong::NotInstalled { .. } | Wrong::NoIndex { .. } | Wrong::Format(_) | Wrong::Io { .. }) => {
            missing.into()
        }
        wrong => UsageError(wrong.to_string()).into(),
    }
}

/// Returns the files of `--reads` as lanes of paired, interleaved or single reads. If all are BAM, CRAM or BINSEQ files
/// and `single` is not set, they count as interleaved. A FASTQ file that is the only file has single reads.
fn parse_reads(files: &[PathBuf], interleaved: bool, single: bool) -> anyhow::Result<ReadFiles> {
    if files.is_empty() {
        return Err(UsageError("no reads are given: add --reads".to_owned()).into());
    }
    // Files of aligned reads contain both mates.
    let mut all_are_aligned = !single;
    for file in files {
        all_are_aligned &= AlignedInput::is_bam_cram_or_binseq(file)?;
    }
    if interleaved || all_are_aligned {
        return Ok(ReadFiles::Interleaved(files.to_vec()));
    }
    if single || files.len() == 1 {
        return Ok(ReadFiles::Single(files.to_vec()));
    }
    match files.as_chunks::<2>() {
        (pairs, []) => Ok(ReadFiles::Paired(pairs.to_vec())),
        (_, [last, ..]) => {
            check_no_other_format(last, true)?;
            Err(UsageError(format!(
                "{}: has no mate file: give files of read 1 and read 2 in turn, or add --interleaved or --single",
                last.display()
            ))
            .into())
        }
    }
}

/// Returns the command line of the plain run: the aligner's own command, with `{threads}` replaced by the number of
/// threads.
pub(crate) fn plain_run_command(invocation: &Invocation, threads: usize) -> Vec<String> {
    let threads = threads.to_string();
    invocation.given.iter().map(|word| word.to_string_lossy().replace("{threads}", &threads)).collect()
}
