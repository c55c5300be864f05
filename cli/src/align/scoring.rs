//! Scoring and reporting options of `genuma align`. They have the letters of bwa mem's options.

use std::str::FromStr;

use genuma_align::engine::genuma::{GenumaEngineOptions, ScoringOptions};

use crate::errors::UsageError;

/// Value of a scoring option with one or two numbers: `6` sets both numbers, `6,7` sets each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OneOrTwoNumbers([i32; 2]);

impl FromStr for OneOrTwoNumbers {
    type Err = String;

    fn from_str(text: &str) -> Result<OneOrTwoNumbers, String> {
        let number = |text: &str| text.parse::<u16>().map(i32::from).map_err(|e| format!("'{text}': {e}"));
        match text.split_once(',') {
            None => number(text).map(|n| OneOrTwoNumbers([n, n])),
            Some((a, b)) => Ok(OneOrTwoNumbers([number(a)?, number(b)?])),
        }
    }
}

/// Alignment scores, and which alignments are reported.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Scores and records (letters as in bwa mem)")]
pub(crate) struct ScoringAndReportOptions {
    /// Score of a matching base; the defaults of -B, -O, -E, -L, -U and -T are multiplied by it [default: 1]
    #[arg(short = 'A', long = "match", value_name = "N")]
    match_score: Option<u8>,
    /// Penalty of a mismatch [default: 4]
    #[arg(short = 'B', long = "mismatch", value_name = "N")]
    mismatch_penalty: Option<u16>,
    /// Penalty of opening a gap; two numbers are for deletions and insertions [default: 6,6]
    #[arg(short = 'O', long = "gap-open", value_name = "N[,N]")]
    gap_open_penalty: Option<OneOrTwoNumbers>,
    /// Penalty of each base of a gap; two numbers are for deletions and insertions [default: 1,1]
    #[arg(short = 'E', long = "gap-extend", value_name = "N[,N]")]
    gap_extend_penalty: Option<OneOrTwoNumbers>,
    /// Penalty of clipping an end of a read; two numbers are for the 5' and the 3' end [default: 5,5]
    #[arg(short = 'L', long = "clip", value_name = "N[,N]")]
    clip_penalty: Option<OneOrTwoNumbers>,
    /// Penalty of placing the mates of a pair independently instead of as a proper pair [default: 17]
    #[arg(short = 'U', long = "unpaired", value_name = "N")]
    unpaired_penalty: Option<u16>,
    /// Minimum score of a reported alignment [default: 30]
    #[arg(short = 'T', long = "min-score", alias = "least-score", value_name = "N")]
    min_score: Option<u16>,
    /// Report all alignments found, those at other positions as secondary records
    #[arg(short = 'a', long = "all")]
    report_all: bool,
    /// Report the further segments of a split read as secondary instead of supplementary records
    #[arg(short = 'M', long = "split-secondary", alias = "pieces-secondary")]
    supplementary_as_secondary: bool,
    /// Soft-clip supplementary records instead of hard-clipping them, so that they keep all bases
    #[arg(short = 'Y', long = "soft-clips")]
    soft_clips: bool,
    /// Append the comments of FASTQ headers to the records; the comments must be SAM tags
    #[arg(short = 'C', long = "comments")]
    comments: bool,
    /// Treat ALT contigs, which ref.fa.alt lists, like any other sequence
    #[arg(short = 'j', long = "ignore-alt")]
    ignore_alt: bool,
    /// Write the tag XA, which lists the other positions of a read, only if there are at most this many; the second
    /// number is for reads with positions on ALT contigs (-h of bwa mem) [default: 5,200]
    #[arg(long = "xa-max", alias = "named-places", value_name = "N[,N]")]
    max_xa_placements: Option<OneOrTwoNumbers>,
}

impl ScoringAndReportOptions {
    /// Converts the options for the aligner. Defaults of options that are not given scale with the match score.
    ///
    /// # Errors
    /// The scores contradict each other.
    pub(crate) fn to_engine_options(&self, read_groups: Vec<String>) -> Result<GenumaEngineOptions, UsageError> {
        let defaults = ScoringOptions::default();
        let scale = i32::from(self.match_score.unwrap_or(1));
        let scaled_number = |said: Option<u16>, plain: i32| said.map_or(plain * scale, i32::from);
        let scaled_pair =
            |said: Option<OneOrTwoNumbers>, plain: [i32; 2]| said.map_or(plain.map(|n| n * scale), |two| two.0);
        let scores = ScoringOptions {
            match_score: scale,
            mismatch_penalty: scaled_number(self.mismatch_penalty, defaults.mismatch_penalty),
            gap_open: scaled_pair(self.gap_open_penalty, defaults.gap_open),
            gap_extend: scaled_pair(self.gap_extend_penalty, defaults.gap_extend),
            clip_penalty: scaled_pair(self.clip_penalty, defaults.clip_penalty),
            unpaired_penalty: scaled_number(self.unpaired_penalty, defaults.unpaired_penalty),
            min_score: scaled_number(self.min_score, defaults.min_score),
        };
        if let Some(fault) = scores.validation_error() {
            return Err(UsageError(fault.to_owned()));
        }
        Ok(GenumaEngineOptions {
            scores,
            report_all: self.report_all,
            supplementary_as_secondary: self.supplementary_as_secondary,
            soft_clip_supplementary: self.soft_clips,
            max_xa_placements: self
                .max_xa_placements
                .map_or(GenumaEngineOptions::default().max_xa_placements, |two| two.0.map(|n| n as usize)),
            ignore_alt: self.ignore_alt,
            copy_comments: self.comments,
            read_groups,
            ..GenumaEngineOptions::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_scales_what_was_not_said() {
        let said = ScoringAndReportOptions {
            match_score: Some(2),
            mismatch_penalty: Some(3),
            gap_open_penalty: Some(OneOrTwoNumbers([7, 8])),
            ..ScoringAndReportOptions::default()
        };
        let scores = said.to_engine_options(Vec::new()).unwrap().scores;
        let plain = ScoringOptions {
            match_score: 2,
            mismatch_penalty: 3,
            gap_open: [7, 8],
            gap_extend: [2; 2],
            clip_penalty: [10; 2],
            unpaired_penalty: 34,
            min_score: 60,
        };
        assert_eq!(scores, plain);
        assert_eq!("6".parse(), Ok(OneOrTwoNumbers([6, 6])));
        assert_eq!("6,7".parse(), Ok(OneOrTwoNumbers([6, 7])));
        for wrong in ["", "6,", "-1", "1,2,3", "x"] {
            assert!(wrong.parse::<OneOrTwoNumbers>().is_err(), "{wrong}");
        }
        let none = ScoringAndReportOptions { match_score: Some(0), ..ScoringAndReportOptions::default() };
        assert!(none.to_engine_options(Vec::new()).is_err());
    }
}
