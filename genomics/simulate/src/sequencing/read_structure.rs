//! Read structures in the notation of fgbio: which bases of a read are UMI, skipped bases and template.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::error::Error;
use crate::rng::Rng;

/// Base of skipped positions: the T that ligation to A-tailed fragments leaves behind the UMI.
const SKIPPED_BASE: u8 = b'T';

/// Structure of one read: UMI bases (`M`) and skipped bases (`S`) before the template (`T`), such as `3M1S+T`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadStructure {
    /// Length of each segment before the template, and whether it is UMI, otherwise skipped.
    segments: Vec<(usize, bool)>,
}

impl ReadStructure {
    /// Returns the number of UMI bases.
    pub(crate) fn umi_bp(&self) -> usize {
        self.segments.iter().filter(|s| s.1).map(|s| s.0).sum()
    }

    /// Returns the number of bases before the template.
    pub fn prefix_bp(&self) -> usize {
        self.segments.iter().map(|s| s.0).sum()
    }

    /// Draws a random UMI.
    pub(crate) fn draw_umi(&self, rng: &mut Rng) -> Vec<u8> {
        (0..self.umi_bp()).map(|_| rng.random_base(0.5)).collect()
    }

    /// Spells the bases before the template. `umi` has [`Self::umi_bp`] bases.
    pub(crate) fn prefix_bases(&self, umi: &[u8]) -> Vec<u8> {
        let mut umi = umi.iter();
        let base = |is_umi: bool| if is_umi { umi.next().copied().unwrap_or(b'N') } else { SKIPPED_BASE };
        self.segments.iter().flat_map(|&(length, is_umi)| std::iter::repeat_n(is_umi, length)).map(base).collect()
    }
}

impl fmt::Display for ReadStructure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &(length, is_umi) in &self.segments {
            write!(f, "{length}{}", if is_umi { 'M' } else { 'S' })?;
        }
        f.write_str("+T")
    }
}

impl Serialize for ReadStructure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for ReadStructure {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let fail =
            || Error::Parameters(format!("'{text}' is not a read structure such as 3M1S+T, or +T without a UMI"));
        let mut segments = vec![];
        let prefix = text.strip_suffix("+T").ok_or_else(fail)?;
        for segment in prefix.split_inclusive(|c: char| c.is_ascii_alphabetic()) {
            let (length, is_umi) = match (segment.strip_suffix('M'), segment.strip_suffix('S')) {
                (Some(length), _) => (length, true),
                (_, Some(length)) => (length, false),
                _ => return Err(fail()),
            };
            segments.push((length.parse().ok().filter(|n| (1..=100).contains(n)).ok_or_else(fail)?, is_umi));
        }
        Ok(ReadStructure { segments })
    }
}

/// Structures of read 1 and read 2.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ReadStructures(pub [ReadStructure; 2]);

impl FromStr for ReadStructures {
    type Err = Error;

    /// Parses one structure for both reads, or two that a comma separates.
    fn from_str(text: &str) -> Result<Self, Error> {
        let (first, second) = text.split_once(',').unwrap_or((text, text));
        let structures = ReadStructures([first.parse()?, second.parse()?]);
        if structures.0.iter().all(|s| s.umi_bp() == 0) {
            return Err(Error::Parameters(format!("'{text}' has no UMI; add its bases, such as 3M1S+T")));
        }
        Ok(structures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_of_fgbio_are_parsed_and_spelled() {
        let structure: ReadStructure = "3M1S+T".parse().unwrap();
        assert_eq!((structure.umi_bp(), structure.prefix_bp(), structure.to_string()), (3, 4, "3M1S+T".into()));
        assert_eq!(structure.prefix_bases(b"ACG"), b"ACGT");
        assert_eq!("2S4M1S+T".parse::<ReadStructure>().unwrap().prefix_bases(b"AAAA"), b"TTAAAAT");
        let ReadStructures([first, second]) = "8M+T,+T".parse().unwrap();
        assert_eq!((first.prefix_bp(), second.prefix_bp()), (8, 0));
        for wrong in ["3M1S", "3M1ST", "M+T", "3X+T", "0M+T", "3+T", "+T3M", "", "1S+T", "3M+T,"] {
            assert!(wrong.parse::<ReadStructures>().is_err(), "{wrong}");
        }
    }
}
