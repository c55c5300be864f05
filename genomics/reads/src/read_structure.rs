//! Read structures in the notation of fgbio: which bases of a read are UMI, skipped bases and template.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::pair_batch::Mate;

/// Maximum length in bases of a segment before the template.
const MAX_SEGMENT_BP: usize = 100;

/// Structure of one read: UMI bases (`M`) and skipped bases (`S`), then the template (`T`), such as `3M1S+T`. Bases
/// after a template of fixed length are skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ReadStructure {
    /// Segments before the template: length in bases, and whether it is a UMI (otherwise skipped bases).
    segments_before_template: Vec<(usize, bool)>,
    /// Maximum length of the template; `None` if it extends to the end of the read.
    template_bp: Option<usize>,
}

/// What the parser of a read structure has read so far.
#[derive(PartialEq)]
enum Progress {
    BeforeTemplate,
    Template,
    AfterTemplate,
}

impl ReadStructure {
    /// Segments before the template, in the order of the read: length in bases, and whether it is a UMI (otherwise
    /// skipped bases).
    pub fn segments_before_template(&self) -> &[(usize, bool)] {
        &self.segments_before_template
    }

    /// Maximum length of the template; `None` if it extends to the end of the read.
    pub fn max_template_bp(&self) -> Option<usize> {
        self.template_bp
    }

    /// Number of UMI bases.
    pub fn umi_bp(&self) -> usize {
        self.segments_before_template.iter().filter(|segment| segment.1).map(|segment| segment.0).sum()
    }

    /// Number of bases before the template.
    pub fn num_bases_before_template(&self) -> usize {
        self.segments_before_template.iter().map(|segment| segment.0).sum()
    }

    /// Appends the UMI bases of a read to `umi`, in upper case; letters other than A, C, G and T become N. The read
    /// must have at least [`Self::num_bases_before_template`] bases.
    pub(crate) fn append_umi(&self, seq: &[u8], umi: &mut Vec<u8>) {
        let mut start = 0;
        for &(length, is_umi) in &self.segments_before_template {
            if is_umi {
                let base = |base: &u8| if b"ACGT".contains(&(base & !0x20)) { base & !0x20 } else { b'N' };
                umi.extend(seq[start..start + length].iter().map(base));
            }
            start += length;
        }
    }

    /// The template bases and qualities of a read, which must have at least [`Self::num_bases_before_template`] bases.
    pub(crate) fn template_of_read<'a>(&self, read: Mate<'a>) -> Mate<'a> {
        let start = self.num_bases_before_template();
        let end = self.template_bp.map_or(read.seq.len(), |template| read.seq.len().min(start + template));
        Mate { seq: &read.seq[start..end], qual: &read.qual[start..end] }
    }

    /// Adds the next segment: its length (`None` for `+`) and its kind (`M`, `S` or `T`). The error is the reason why
    /// the segment is not allowed.
    fn add_segment(&mut self, progress: &mut Progress, length: Option<usize>, kind: u8) -> Result<(), &'static str> {
        match (kind, length) {
            (b'B' | b'C', _) => {
                Err("it has barcodes (B or C): demultiplex the reads first, or skip these bases with S")
            }
            (b'T', _) if *progress != Progress::BeforeTemplate => {
                Err("it has two templates (T): give one for each read")
            }
            (b'T', length) => {
                (*progress, self.template_bp) = (Progress::Template, length);
                Ok(())
            }
            (b'S', _) if *progress != Progress::BeforeTemplate => {
                *progress = Progress::AfterTemplate;
                Ok(())
            }
            (b'M', _) if *progress != Progress::BeforeTemplate => {
                Err("it has UMI bases (M) after the template: these are not supported")
            }
            (b'M' | b'S', Some(length @ 1..=MAX_SEGMENT_BP)) => {
                self.segments_before_template.push((length, kind == b'M'));
                Ok(())
            }
            (b'M' | b'S', Some(_)) => Err("M and S before the template have 1 to 100 bases"),
            (b'M' | b'S', None) => Err("only the last segment may have the length +"),
            _ => Err("the kinds of bases are M (UMI), S (skipped) and T (template)"),
        }
    }
}

impl fmt::Display for ReadStructure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &(length, is_umi) in &self.segments_before_template {
            write!(f, "{length}{}", if is_umi { 'M' } else { 'S' })?;
        }
        match self.template_bp {
            Some(length) => write!(f, "{length}T+S"),
            None => f.write_str("+T"),
        }
    }
}

impl From<ReadStructure> for String {
    fn from(structure: ReadStructure) -> String {
        structure.to_string()
    }
}

impl TryFrom<String> for ReadStructure {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl FromStr for ReadStructure {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let error = |fault| Error::ReadStructure { text: text.into(), fault };
        let (mut structure, mut progress) = (ReadStructure::default(), Progress::BeforeTemplate);
        let mut segments_before_template = text.split_inclusive(|letter: char| letter.is_ascii_alphabetic()).peekable();
        while let Some(segment) = segments_before_template.next() {
            let (length, kind) =
                segment.split_at(segment.len() - segment.chars().next_back().map_or(0, char::len_utf8));
            let length = match length {
                "+" if segments_before_template.peek().is_some() => {
                    return Err(error("only the last segment may have the length +"));
                }
                "+" => None,
                digits => match digits.parse() {
                    Ok(length @ 1..) => Some(length),
                    _ => return Err(error("write the length of each segment before its letter, or + for the rest")),
                },
            };
            structure.add_segment(&mut progress, length, kind.as_bytes()[0]).map_err(error)?;
        }
        if progress == Progress::BeforeTemplate {
            return Err(error("it has no template (T)"));
        }
        Ok(structure)
    }
}

/// Structures of read 1 and read 2.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReadStructures(pub [ReadStructure; 2]);

impl ReadStructures {
    /// Number of UMI bases of both reads.
    pub fn umi_bp(&self) -> usize {
        self.0.iter().map(ReadStructure::umi_bp).sum()
    }
}

impl fmt::Display for ReadStructures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.0[0], self.0[1])
    }
}

impl FromStr for ReadStructures {
    type Err = Error;

    /// Parses one structure, which is that of both reads, or two structures separated by a comma.
    fn from_str(text: &str) -> Result<Self, Error> {
        let (first, second) = text.split_once(',').unwrap_or((text, text));
        Ok(ReadStructures([first.parse()?, second.parse()?]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_of_fgbio_are_parsed() {
        let structure: ReadStructure = "3M1S+T".parse().unwrap();
        assert_eq!(
            (structure.umi_bp(), structure.num_bases_before_template(), structure.to_string()),
            (3, 4, "3M1S+T".into())
        );
        let ReadStructures([first, second]) = "8M+T,+T".parse().unwrap();
        assert_eq!((first.num_bases_before_template(), second.num_bases_before_template()), (8, 0));
        for (text, fault) in [
            ("3M1S", "no template"),
            ("3M1ST", "length of each segment"),
            ("M+T", "length of each segment"),
            ("3X+T", "kinds of bases"),
            ("0M+T", "length of each segment"),
            ("101M+T", "1 to 100"),
            ("3+T", "length of each segment"),
            ("+M", "last segment"),
            ("+T3M", "last segment"),
            ("10T3M", "UMI bases (M) after"),
            ("10T+T", "two templates"),
            ("8B+T", "barcodes"),
            ("3M+é", "kinds of bases"),
            ("", "no template"),
            ("3M+T,", "no template"),
        ] {
            let error = text.parse::<ReadStructures>().unwrap_err().to_string();
            assert!(error.contains(fault), "{text}: {error}");
        }
    }

    #[test]
    fn reads_are_divided_into_umi_and_template() {
        let read = Mate { seq: b"acnTGGGGCC", qual: b"0123456789" };
        for (text, umi, template) in [
            ("3M1S+T", "ACN", "GGGGCC"),
            ("1S2M4T+S", "CN", "TGGG"),
            ("2M1S1M50T", "ACT", "GGGGCC"),
            ("+T", "", "acnTGGGGCC"),
        ] {
            let structure: ReadStructure = text.parse().unwrap();
            let mut own = Vec::new();
            structure.append_umi(read.seq, &mut own);
            let kept = structure.template_of_read(read);
            assert_eq!(
                (&own[..], kept.seq, kept.qual.len()),
                (umi.as_bytes(), template.as_bytes(), template.len()),
                "{text}"
            );
            let again: ReadStructure = structure.to_string().parse().unwrap();
            assert_eq!(again, structure);
        }
    }
}
