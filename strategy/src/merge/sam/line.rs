//! Parses and checks one SAM record (SAM specification, sections 1.3 and 1.4).

use std::collections::HashSet;

use crate::batching::template_name_from_fastq_header;
use crate::merge::{AlignerOutputError, read_name_to_text};

/// Number of mandatory fields of a record.
const NUM_MANDATORY_FIELDS: usize = 11;
/// Largest position and length that SAM allows, bp.
const MAX_POSITION_BP: u64 = i32::MAX as u64;
/// Flags of secondary and supplementary records.
const NOT_PRIMARY_FLAGS: u16 = 0x900;

/// A SAM record: its name, whether it is primary, and its text.
#[derive(Debug)]
pub(super) struct SamRecordLine<'a> {
    /// Name of the read (QNAME) without a final `/` and digit.
    pub name: &'a [u8],
    /// Whether the record is neither secondary nor supplementary.
    pub primary: bool,
    /// The whole line with its line end.
    pub text: &'a [u8],
}

fn format_error(what: &str, text: &[u8]) -> AlignerOutputError {
    let start = &text[..text.len().min(60)];
    AlignerOutputError::InvalidFormat {
        format: "SAM",
        what: format!("{what} in a line '{}'", read_name_to_text(start.trim_ascii_end())),
    }
}

impl<'a> SamRecordLine<'a> {
    /// Parses a line with its line end. Checks the mandatory fields, including the names of reference sequences.
    ///
    /// # Errors
    /// The line is not a valid record, or names a sequence that is not in the header.
    pub(super) fn parse_record(text: &'a [u8], sequences: &ReferenceSequenceNames) -> Result<Self, AlignerOutputError> {
        let wrong = |what| format_error(what, text);
        if memchr::memchr(0, text).is_some() {
            return Err(wrong("a NUL"));
        }
        let bare = text.strip_suffix(b"\n").unwrap_or(text);
        let mut fields = [&bare[..0]; NUM_MANDATORY_FIELDS];
        let mut found = 0;
        // All tags count as one field here.
        for (field, part) in fields.iter_mut().zip(bare.splitn(NUM_MANDATORY_FIELDS + 1, |&b| b == b'\t')) {
            *field = part;
            found += 1;
        }
        if found < NUM_MANDATORY_FIELDS {
            return Err(wrong("fewer than 11 fields"));
        }
        let [name, flag, sequence, place, quality, cigar, mate_sequence, mate_place, length, bases, qualities] = fields;
        let flag = parse_decimal(flag).and_then(|flag| u16::try_from(flag).ok()).ok_or_else(|| wrong("no flags"))?;
        let named = |name: &[u8]| name == b"*" || sequences.contains_name(name);
        let signless = length.strip_prefix(b"-").unwrap_or(length);
        for (fits, what) in [
            (!name.is_empty(), "no name"),
            (named(sequence), "a sequence that the header does not have"),
            (parse_decimal(place).is_some_and(|place| place <= MAX_POSITION_BP), "an impossible place"),
            (parse_decimal(quality).is_some_and(|quality| quality <= 255), "an impossible mapping quality"),
            (cigar == b"*" || is_cigar(cigar), "an impossible CIGAR"),
            (mate_sequence == b"=" || named(mate_sequence), "a mate's sequence that the header does not have"),
            (
                parse_decimal(mate_place).is_some_and(|place| place <= MAX_POSITION_BP),
                "an impossible place of the mate",
            ),
            (
                parse_decimal(signless).is_some_and(|length| length <= MAX_POSITION_BP + 1),
                "an impossible length of the template",
            ),
            (qualities == b"*" || qualities.len() == bases.len(), "not as many qualities as bases"),
        ] {
            if !fits {
                return Err(wrong(what));
            }
        }
        Ok(SamRecordLine { name: template_name_from_fastq_header(name), primary: flag & NOT_PRIMARY_FLAGS == 0, text })
    }
}

fn parse_decimal(text: &[u8]) -> Option<u64> {
    let digit = |sum: u64, b: &u8| match b {
        b'0'..=b'9' => sum.checked_mul(10)?.checked_add(u64::from(b - b'0')),
        _ => None,
    };
    text.iter().try_fold(0, digit).filter(|_| !text.is_empty())
}

/// Returns whether `text` is a CIGAR: numbers, each followed by an operation.
fn is_cigar(text: &[u8]) -> bool {
    let mut digits = 0;
    text.iter().all(|b| match b {
        b'0'..=b'9' => {
            digits += 1;
            true
        }
        b'M' | b'I' | b'D' | b'N' | b'S' | b'H' | b'P' | b'=' | b'X' => std::mem::take(&mut digits) > 0,
        _ => false,
    }) && digits == 0
        && !text.is_empty()
}

/// Names of the reference sequences in a SAM header (`@SQ`, SN).
#[derive(Debug, Default)]
pub(super) struct ReferenceSequenceNames(HashSet<Box<[u8]>>);

impl ReferenceSequenceNames {
    /// Parses the sequence names of a header.
    ///
    /// # Errors
    /// The header has no sequences, a sequence without a name, or a NUL byte.
    pub(super) fn from_header(header: &[u8]) -> Result<Self, AlignerOutputError> {
        let mut names = HashSet::new();
        for line in header.split(|&b| b == b'\n').filter(|line| !line.is_empty()) {
            if memchr::memchr(0, line).is_some() {
                return Err(format_error("a NUL", line));
            }
            if line.starts_with(b"@SQ\t") {
                let name = line.split(|&b| b == b'\t').find_map(|field| field.strip_prefix(b"SN:"));
                let name = name.filter(|name| !name.is_empty());
                names.insert(name.ok_or_else(|| format_error("a sequence without a name", line))?.into());
            }
        }
        match names.is_empty() {
            true => Err(AlignerOutputError::InvalidFormat {
                format: "SAM",
                what: "it has no header with sequences (@SQ)".to_owned(),
            }),
            false => Ok(ReferenceSequenceNames(names)),
        }
    }

    fn contains_name(&self, name: &[u8]) -> bool {
        self.0.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "r1/1\t99\tc\t7\t60\t4M\t=\t20\t-17\tACGT\tFFFF\tNM:i:0\tXX:Z:";

    fn parse(text: &str) -> Result<bool, String> {
        let sequences = ReferenceSequenceNames::from_header(b"@SQ\tSN:c\tLN:9\n").map_err(|fault| fault.to_string())?;
        SamRecordLine::parse_record(text.as_bytes(), &sequences)
            .map(|line| line.primary)
            .map_err(|fault| fault.to_string())
    }

    #[test]
    fn records_are_looked_at_in_every_field() {
        assert_eq!(parse(&format!("{GOOD}\n")), Ok(true));
        assert_eq!(parse("r\t2308\t*\t0\t0\t*\t*\t0\t0\t*\t*\n"), Ok(false));
        for (from, to, what) in [
            ("r1/1\t", "\t", "no name"),
            ("\t99\t", "\t-1\t", "no flags"),
            ("\t99\t", "\t65536\t", "no flags"),
            ("\tc\t", "\td\t", "a sequence that the header does not have"),
            ("\t7\t", "\t-7\t", "an impossible place"),
            ("\t7\t", "\t2147483648\t", "an impossible place"),
            ("\t60\t", "\t256\t", "an impossible mapping quality"),
            ("\t4M\t", "\t4\t", "an impossible CIGAR"),
            ("\t4M\t", "\tM\t", "an impossible CIGAR"),
            ("\t4M\t", "\t\t", "an impossible CIGAR"),
            ("\t=\t", "\te\t", "a mate's sequence"),
            ("\t20\t", "\t\t", "an impossible place of the mate"),
            ("\t-17\t", "\t--17\t", "an impossible length of the template"),
            ("\tFFFF\t", "\tFFF\t", "not as many qualities as bases"),
            ("\tFFFF\tNM:i:0\tXX:Z:", "", "fewer than 11 fields"),
            ("XX:Z:", "XX:Z:\0", "a NUL"),
        ] {
            let said = parse(&GOOD.replacen(from, to, 1)).expect_err(what);
            assert!(said.contains(what) && said.contains("invalid SAM"), "{from:?} {to:?}: {said}");
        }
    }

    #[test]
    fn headers_have_sequences_with_names() {
        let said = |header: &[u8]| ReferenceSequenceNames::from_header(header).expect_err("no header").to_string();
        assert!(said(b"").contains("no header with sequences"));
        assert!(said(b"@PG\tID:x\n").contains("no header with sequences"));
        assert!(said(b"@SQ\tLN:9\n").contains("without a name"));
        assert!(said(b"@SQ\tSN:\n").contains("without a name"));
        assert!(said(b"@SQ\tSN:a\n@CO\t\0\n").contains("a NUL"));
        assert!(ReferenceSequenceNames::from_header(b"@HD\tVN:1.6\n@SQ\tSN:a\tLN:1\n@CO\tanything at all\n").is_ok());
    }
}
