//! Faults of files with positions on the reference: known variants and targets.

use crate::compression::CompressionFormat;

/// Why a file of known variants cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KnownVariantsFault {
    /// The compressed data are damaged or truncated; the text describes the damage.
    #[error("damaged {0} data ({1}): copy or make the file again")]
    Compressed(CompressionFormat, String),
    /// The file does not begin with a VCF header.
    #[error("not a VCF file, whose first line is ##fileformat=VCF...: give VCF, plain or compressed (not BCF)")]
    NotVcf,
    /// A record has too few columns.
    #[error("has fewer than 7 columns: make the file again")]
    MissingColumns,
    /// POS is not a whole number; the field is its text.
    #[error("\"{0}\" is not a position: make the file again")]
    Position(String),
    /// The reference has none of the contigs of the file; the field is the name of one of them.
    #[error(
        "has contig \"{0}\" and others, but none of the reference: give a file of the same genome build, or rename its contigs with `bcftools annotate --rename-chrs`"
    )]
    NoSharedContig(String),
    /// The header does not declare an INFO field that is asked for.
    #[error("the header has no INFO field \"{id}\"; it has {}", list_some(declared))]
    NoInfoField {
        /// ID of the field.
        id: String,
        /// IDs of the INFO fields that the header declares.
        declared: Vec<String>,
    },
}

/// Lists the first names; "none" if there are none.
fn list_some(names: &[String]) -> String {
    const MAX_NAMES: usize = 12;
    match names.len() {
        0 => "none".to_owned(),
        1..=MAX_NAMES => names.join(", "),
        all => format!("{} and {} more", names[..MAX_NAMES].join(", "), all - MAX_NAMES),
    }
}

/// What is wrong with a line of a targets file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetFault {
    /// The compressed data are damaged or truncated; the text describes the damage.
    #[error("damaged {0} data ({1}): copy or make the file again")]
    Compressed(CompressionFormat, String),
    /// The line has fewer columns than the number in the field.
    #[error(
        "has fewer than {0} columns: give BED (contig, start, end) or an interval list of Picard with its @SQ header"
    )]
    MissingColumns(usize),
    /// A start or end is not a number, or is negative; the field is its text.
    #[error("\"{0}\" is not a position: give a whole number, not negative")]
    Position(String),
    /// The interval of a BED file contains no base.
    #[error("start {start} is not before end {end}: BED starts at 0 and excludes its end; correct or remove the line")]
    EmptyBedInterval {
        /// Start as in the file (0-based).
        start: u64,
        /// End as in the file (exclusive).
        end: u64,
    },
    /// The interval of an interval list contains no base, or starts before the first base.
    #[error(
        "{start} to {end} is not an interval: interval lists start at 1 and include their end; correct or remove the line"
    )]
    EmptyListInterval {
        /// Start as in the file (1-based).
        start: u64,
        /// End as in the file (inclusive).
        end: u64,
    },
    /// The reference has no contig of this name.
    #[error("the reference has no contig \"{name}\"{}", contig_hint(similar))]
    UnknownContig {
        /// Name in the targets file.
        name: String,
        /// Name of a contig of the reference that differs only in the prefix `chr` or in the name of the
        /// mitochondrion; `None` if there is none.
        similar: Option<String>,
    },
    /// The interval ends beyond the end of the contig.
    #[error(
        "end {end} is beyond contig \"{name}\" of {contig_bases} bases: give targets of the reference's genome build"
    )]
    BeyondContig {
        /// End as in the file.
        end: u64,
        /// Name of the contig.
        name: String,
        /// Length of the contig in bases.
        contig_bases: usize,
    },
    /// A contig has another length in the header of the interval list than in the reference.
    #[error(
        "contig \"{name}\" has {header_bases} bases in the header and {contig_bases} in the reference: give targets of the reference's genome build"
    )]
    ContigLength {
        /// Name of the contig.
        name: String,
        /// Length in the @SQ line in bases.
        header_bases: usize,
        /// Length in the reference in bases.
        contig_bases: usize,
    },
}

/// Advice about a contig that the reference does not have.
fn contig_hint(similar: &Option<String>) -> String {
    match similar {
        Some(similar) => format!(
            ", but \"{similar}\": rename the contigs of the targets, or give the reference that they were made for"
        ),
        None => ": give targets of the reference's genome build, or remove the line".to_owned(),
    }
}
