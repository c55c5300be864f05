//! Options of `genuma align` that only genuma's own engine has: those of bwa mem, by the same letters.

use std::str::FromStr;

use genuma_align::engine::genuma::{Options, Scores};

use crate::failure::Usage;

/// One number for both, or one for each: `6` or `6,7`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Two([i32; 2]);

impl FromStr for Two {
    type Err = String;

    fn from_str(text: &str) -> Result<Two, String> {
        let number = |text: &str| text.parse::<u16>().map(i32::from).map_err(|e| format!("'{text}': {e}"));
        match text.split_once(',') {
            None => number(text).map(|n| Two([n, n])),
            Some((a, b)) => Ok(Two([number(a)?, number(b)?])),
        }
    }
}

/// What alignments are worth, and which are reported.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Engine genuma (letters as in bwa mem)")]
pub(crate) struct Scoring {
    /// Score of a base that is the reference's; without -B -O -E -L -U -T theirs are multiplied by it [default: 1]
    #[arg(short = 'A', long = "match", value_name = "N")]
    equal: Option<u8>,
    /// Lost by one that is not [default: 4]
    #[arg(short = 'B', long = "mismatch", value_name = "N")]
    differs: Option<u16>,
    /// Lost by opening a deletion, an insertion [default: 6,6]
    #[arg(short = 'O', long = "gap-open", value_name = "N[,N]")]
    open: Option<Two>,
    /// Lost by each base of a deletion, an insertion [default: 1,1]
    #[arg(short = 'E', long = "gap-extend", value_name = "N[,N]")]
    extend: Option<Two>,
    /// Lost by clipping the 5' end, the 3' end [default: 5,5]
    #[arg(short = 'L', long = "clip", value_name = "N[,N]")]
    clip: Option<Two>,
    /// Lost by mates that do not lie as mates do [default: 17]
    #[arg(short = 'U', long = "unpaired", value_name = "N")]
    unpaired: Option<u16>,
    /// Least score of an alignment that is reported [default: 30]
    #[arg(short = 'T', long = "least-score", value_name = "N")]
    least: Option<u16>,
    /// Report all alignments that were found, other places as secondary records
    #[arg(short = 'a', long = "all")]
    all: bool,
    /// Report further pieces of a read as secondary instead of supplementary records
    #[arg(short = 'M', long = "pieces-secondary")]
    pieces_secondary: bool,
    /// Keep all bases in supplementary records
    #[arg(short = 'Y', long = "soft-clips")]
    soft_clips: bool,
    /// Copy the comments of reads, which must be SAM tags
    #[arg(short = 'C', long = "comments")]
    comments: bool,
    /// Treat ALT contigs, which ref.fa.alt names, like any other sequence
    #[arg(short = 'j', long = "ignore-alt")]
    ignore_alt: bool,
    /// Name other places in the tag XA where there are so many at most, or so many with ALT contigs (-h of bwa mem)
    /// [default: 5,200]
    #[arg(long = "named-places", value_name = "N[,N]")]
    named: Option<Two>,
}

impl Scoring {
    /// Whether nothing was said.
    pub(crate) fn is_default(&self) -> bool {
        let numbers = [self.differs, self.unpaired, self.least];
        let twos = [self.open, self.extend, self.clip, self.named];
        self.equal.is_none()
            && numbers.iter().all(Option::is_none)
            && twos.iter().all(Option::is_none)
            && !(self.all || self.pieces_secondary || self.soft_clips || self.ignore_alt || self.comments)
    }

    /// The engine's options.
    ///
    /// # Errors
    /// Scores that make no sense.
    pub(crate) fn options(&self, read_groups: Vec<String>) -> Result<Options, Usage> {
        let plain = Scores::default();
        let times = i32::from(self.equal.unwrap_or(1));
        let one = |said: Option<u16>, plain: i32| said.map_or(plain * times, i32::from);
        let two = |said: Option<Two>, plain: [i32; 2]| said.map_or(plain.map(|n| n * times), |two| two.0);
        let scores = Scores {
            equal: times,
            differs: one(self.differs, plain.differs),
            open: two(self.open, plain.open),
            extend: two(self.extend, plain.extend),
            clip: two(self.clip, plain.clip),
            unpaired: one(self.unpaired, plain.unpaired),
            least: one(self.least, plain.least),
        };
        if let Some(fault) = scores.fault() {
            return Err(Usage(fault.to_owned()));
        }
        Ok(Options {
            scores,
            all: self.all,
            pieces_secondary: self.pieces_secondary,
            soft_clips: self.soft_clips,
            named: self.named.map_or(Options::default().named, |two| two.0.map(|n| n as usize)),
            ignore_alt: self.ignore_alt,
            comments: self.comments,
            read_groups,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_scales_what_was_not_said() {
        let said =
            Scoring { equal: Some(2), differs: Some(3), open: Some(Two([7, 8])), ..Scoring::default() };
        assert!(!said.is_default() && Scoring::default().is_default());
        let scores = said.options(Vec::new()).unwrap().scores;
        let plain = Scores {
            equal: 2,
            differs: 3,
            open: [7, 8],
            extend: [2; 2],
            clip: [10; 2],
            unpaired: 34,
            least: 60,
        };
        assert_eq!(scores, plain);
        assert_eq!("6".parse(), Ok(Two([6, 6])));
        assert_eq!("6,7".parse(), Ok(Two([6, 7])));
        for wrong in ["", "6,", "-1", "1,2,3", "x"] {
            assert!(wrong.parse::<Two>().is_err(), "{wrong}");
        }
        let none = Scoring { equal: Some(0), ..Scoring::default() };
        assert!(none.options(Vec::new()).is_err());
    }
}
