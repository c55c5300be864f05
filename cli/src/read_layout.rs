//! Options that describe the files with the reads of a sample: where mates are, and which bases are UMIs.

use std::path::PathBuf;

use genuma_reads::umi::MIN_UMI_BASES;
use genuma_reads::{AlignedOptions, Lane, MateLayout, ReadStructure, ReadStructures};

use crate::errors::{UsageError, to_usage_error_unless_unreadable};
use crate::first_reads::warn_of_phred64_and_mate_files;

/// How the reads of all samples are stored.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ReadLayoutOptions {
    /// Each FASTQ file of any sample is one lane in which read 1 and read 2 alternate
    #[arg(long, conflicts_with = "single", help_heading = "Input")]
    interleaved: bool,
    /// Each FASTQ file of any sample is one lane of reads without mates (single-end)
    #[arg(long, visible_alias = "single-end", help_heading = "Input")]
    single: bool,
    /// Reads begin with a UMI. Read structure of each read in the notation of fgbio, one for both reads or two:
    /// `3M1S+T`, or `8M+T,+T` for a UMI in read 1 only. UMI bases (M) are moved to the read name, skipped bases (S) are
    /// removed, the template (T) stays. UMIs in the tags RX or MI of BAM and CRAM reads are used without this option
    #[arg(long, value_name = "STRUCTURE", num_args = 1..=2, value_delimiter = ',', help_heading = "Input")]
    umi: Vec<ReadStructure>,
    /// Read structures of the normal, if they differ: +T for reads without UMIs [default: those of --umi]
    #[arg(long, value_name = "STRUCTURE", num_args = 1..=2, value_delimiter = ',', requires = "umi", help_heading = "Input")]
    normal_umi: Vec<ReadStructure>,
}

/// Which option gives the read structures of a sample: that of the normal, or that of tumours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadStructureOption {
    /// `--normal-umi`, or `--umi` if it is not given.
    Normal,
    /// `--umi`.
    Tumour,
}

impl ReadLayoutOptions {
    /// Returns whether the reads have no mates (`--single`).
    pub(crate) fn has_single_reads(&self) -> bool {
        self.single
    }

    /// Groups the files of one sample into lanes. `role` selects the option with the read structures.
    ///
    /// # Errors
    /// A file has no mate file or cannot be read, or the read structures have too few UMI bases or do not fit the
    /// layout.
    pub(crate) fn open_lanes(
        &self,
        sample: u8,
        role: ReadStructureOption,
        files: &[PathBuf],
        options: &AlignedOptions,
    ) -> anyhow::Result<Vec<Lane>> {
        let layout = match (self.single, self.interleaved) {
            (true, _) => MateLayout::Single,
            (_, true) => MateLayout::Interleaved,
            _ => MateLayout::Pairs,
        };
        let structures = self.read_structures(role)?;
        let lanes =
            Lane::group_files_into_lanes(sample, files, layout, options).map_err(to_usage_error_unless_unreadable)?;
        let fastq = lanes.iter().filter(|lane| lane.is_fastq()).flat_map(Lane::paths);
        warn_of_phred64_and_mate_files(fastq, layout == MateLayout::Single);
        Ok(match structures {
            Some(structures) => lanes.into_iter().map(|lane| lane.with_read_structures(structures.clone())).collect(),
            None => lanes,
        })
    }

    /// Returns the read structures of a sample; `None` if no UMIs are given.
    fn read_structures(&self, role: ReadStructureOption) -> Result<Option<ReadStructures>, UsageError> {
        let (option, given) = match role {
            ReadStructureOption::Normal if !self.normal_umi.is_empty() => ("--normal-umi", &self.normal_umi),
            _ => ("--umi", &self.umi),
        };
        let structures = match &given[..] {
            [] => return Ok(None),
            [one] => ReadStructures([one.clone(), one.clone()]),
            [_, _] if self.single => {
                return Err(UsageError(format!("{option}: reads of --single have no mates: give one structure")));
            }
            [one, two] => ReadStructures([one.clone(), two.clone()]),
            _ => {
                return Err(UsageError(format!("{option}: give the structures of read 1 and read 2, or one for both")));
            }
        };
        let umi_bp = if self.single { structures.0[0].umi_bp() } else { structures.umi_bp() };
        if umi_bp < MIN_UMI_BASES && !(umi_bp == 0 && option == "--normal-umi") {
            return Err(UsageError(format!(
                "{option}: the structures have {umi_bp} UMI bases (M): at least {MIN_UMI_BASES} are needed to tell molecules apart"
            )));
        }
        Ok(Some(structures))
    }
}
