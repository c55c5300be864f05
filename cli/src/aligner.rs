//! Somebody else's aligner on the command line of genuma: its own words, and reads that they do not name.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use genuma_reads::{Aligned, AlignedOptions, Genome};
use genuma_strategy::invocation::{Error as Wrong, Reads};
use genuma_strategy::{Invocation, preset};

use crate::failure::Usage;

/// Reads for a command that does not name its own.
#[derive(Debug, Args)]
pub(crate) struct Given {
    /// Reads for a command that does not name them: one file, or files of read 1 and read 2 in turn, lane after lane; or files of
    /// aligned reads (BAM, CRAM, CBQ)
    #[arg(long, value_name = "READS", num_args = 1.., help_heading = "Input")]
    reads: Vec<PathBuf>,
    /// Each file of --reads holds read 1 and read 2 in turn
    #[arg(long, requires = "reads", help_heading = "Input")]
    interleaved: bool,
    /// Each file of --reads holds reads without mates
    #[arg(long, requires = "reads", conflicts_with = "interleaved", help_heading = "Input")]
    single: bool,
    /// The FASTA file that CRAM among the reads was written against
    #[arg(long, value_name = "FASTA", help_heading = "Input")]
    reference: Option<PathBuf>,
}

impl Given {
    /// What a command is, with these reads if there are any.
    ///
    /// # Errors
    /// Wrong usage, or a program or an index that is not there.
    pub(crate) fn understand(&self, command: &[OsString]) -> anyhow::Result<Invocation> {
        let invocation = preset::understand(command).map_err(usage)?;
        let invocation = match invocation.reads != Reads::Unnamed && self.reads.is_empty() {
            true => invocation,
            false => {
                invocation.with_reads(named(&self.reads, self.interleaved, self.single)?).map_err(usage)?
            }
        };
        let genome = Genome::of(self.reference.clone());
        invocation.with_aligned(AlignedOptions { genome, ..AlignedOptions::default() }).map_err(usage)
    }
}

/// A command that is not understood is wrong usage; what is missing on the machine is not.
fn usage(error: Wrong) -> anyhow::Error {
    match error {
        missing @ (Wrong::NotInstalled { .. } | Wrong::NoIndex { .. } | Wrong::Io { .. }) => missing.into(),
        wrong => Usage(wrong.to_string()).into(),
    }
}

/// Reads that the command line of genuma names.
fn named(files: &[PathBuf], interleaved: bool, single: bool) -> Result<Reads, Usage> {
    if files.is_empty() {
        return Err(Usage("no reads: name them with --reads".to_owned()));
    }
    // They hold both mates.
    let aligned = !single && files.iter().all(|file| Aligned::is(file));
    if interleaved || aligned {
        return Ok(Reads::Interleaved(files.to_vec()));
    }
    if single || files.len() == 1 {
        return Ok(Reads::Single(files.to_vec()));
    }
    match files.as_chunks::<2>() {
        (pairs, []) => Ok(Reads::Paired(pairs.to_vec())),
        (_, [last, ..]) => Err(Usage(format!(
            "{}: has no mate file: give files of read 1 and read 2 in turn, or say --interleaved or --single",
            last.display()
        ))),
    }
}

/// The words of the plain run.
pub(crate) fn plain(invocation: &Invocation, threads: usize) -> Vec<String> {
    let threads = threads.to_string();
    invocation.given.iter().map(|word| word.to_string_lossy().replace("{threads}", &threads)).collect()
}
