//! Compares the reference sequences (@SQ) in the headers of BAM and CRAM input with the reference of the call.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use genuma_reads::fasta::{Contig, Reference};
use genuma_reads::md5_sum::md5_hex;
use genuma_reads::{AlignedHeader, HeaderSequence, Lane, LaneFiles};
use genuma_somatic::result_warnings::{ResultWarning, WarningTopic};
use tracing::info;

/// Maximum number of sequence names that a message shows.
const MAX_SHOWN_NAMES: usize = 3;

/// Returns a warning for each file whose header contradicts the reference: a sequence of the same name has another
/// length or another MD5 sum, or the reference has none of the file's sequences, not even under other names. The reads
/// of such a file were aligned to another reference, and may be of another genome. For CRAM files that are decoded with
/// the reference, the warning prevents results from being written. Pipes are checked only when
/// they have been read.
///
/// # Errors
/// A header cannot be read.
pub(super) fn find_header_reference_mismatches(
    lanes: &[Lane],
    reference: &Reference,
    path: &Path,
) -> Result<Vec<ResultWarning>, genuma_reads::Error> {
    let mut sums = Md5Sums { reference, known: HashMap::new() };
    let mut warnings = Vec::new();
    for lane in lanes {
        let LaneFiles::Aligned(aligned) = &lane.files else { continue };
        let header = aligned.read_header()?;
        if let Some(difference) = find_difference(&header, &mut sums) {
            let withholds_results = header.needs_reference;
            let advice = if withholds_results {
                "the bases of a CRAM file cannot be decoded correctly with another reference: give the one that the \
                 file was made with (--reference), or the same reads as FASTQ or BAM"
            } else {
                "alignments in the file are not used, so another build of the same genome does no harm; check that \
                 the reads are of the species of the reference"
            };
            let message = format!(
                "{}: was made with another reference than {}: {difference}; {advice}",
                aligned.path.display(),
                path.display()
            );
            warnings.push(ResultWarning { topic: WarningTopic::OtherReference, withholds_results, message });
        }
    }
    Ok(warnings)
}

/// MD5 sums of the sequences of the reference; each is computed when it is first needed.
struct Md5Sums<'a> {
    reference: &'a Reference,
    known: HashMap<String, String>,
}

impl Md5Sums<'_> {
    /// Returns the MD5 sum of a contig in hexadecimal digits.
    fn md5_of_contig(&mut self, contig: &Contig) -> &str {
        self.known.entry(contig.name.clone()).or_insert_with(|| md5_hex(&contig.seq))
    }
}

/// Describes the first contradiction between a header and the reference; `None` if there is none. A sequence that only
/// one of the two has is no contradiction, unless they have no sequence in common.
fn find_difference(header: &AlignedHeader, sums: &mut Md5Sums<'_>) -> Option<String> {
    let reference = sums.reference;
    let mut num_shared = 0;
    for sequence in &header.sequences {
        let Some(contig) = reference.contig_named(&sequence.name) else { continue };
        num_shared += 1;
        let (name, bases) = (sequence.name.escape_debug(), contig.seq.len() as u64);
        if bases != sequence.length {
            return Some(format!("sequence {name} has {} bases there, and {bases} in the reference", sequence.length));
        }
        if let Some(md5) = &sequence.md5
            && !md5.eq_ignore_ascii_case(sums.md5_of_contig(contig))
        {
            return Some(format!("sequence {name} has other bases there (M5)"));
        }
    }
    if num_shared > 0 || header.sequences.is_empty() || has_renamed_sequences(&header.sequences, reference) {
        return None;
    }
    let names: Vec<String> = header
        .sequences
        .iter()
        .take(MAX_SHOWN_NAMES)
        .map(|sequence| sequence.name.escape_debug().to_string())
        .collect();
    let more = if header.sequences.len() > MAX_SHOWN_NAMES { " and others" } else { "" };
    Some(format!("its sequences {}{more} are not in the reference", names.join(", ")))
}

/// Returns whether the reference probably has the sequences under other names (`chr1` instead of `1`): sequences with
/// at least half of the bases are as long as one of its contigs. If so, this is logged.
fn has_renamed_sequences(sequences: &[HeaderSequence], reference: &Reference) -> bool {
    let contig_lengths: BTreeSet<u64> = reference.contigs.iter().map(|contig| contig.seq.len() as u64).collect();
    let lengths = sequences.iter().map(|sequence| sequence.length);
    let (num_equal, num_equal_bases) = lengths
        .clone()
        .filter(|length| contig_lengths.contains(length))
        .fold((0, 0), |(number, bases), length| (number + 1, bases + length));
    let is_renamed = num_equal > 0 && 2 * num_equal_bases >= lengths.sum();
    if is_renamed {
        info!("{num_equal} sequences of the reads' header are as long as sequences of the reference with other names");
    }
    is_renamed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference() -> Reference {
        let contig = |name: &str, seq: &[u8]| Contig { name: name.to_owned(), seq: seq.to_vec() };
        Reference::from_contigs(vec![contig("chr1", b"ACGTACGTAC"), contig("chr2", b"ACGTA")])
    }

    fn difference(sequences: &[(&str, u64, Option<&str>)]) -> Option<String> {
        let sequence = |&(name, length, md5): &(&str, u64, Option<&str>)| HeaderSequence {
            name: name.to_owned(),
            length,
            md5: md5.map(str::to_owned),
        };
        let header = AlignedHeader { sequences: sequences.iter().map(sequence).collect(), ..AlignedHeader::default() };
        find_difference(&header, &mut Md5Sums { reference: &reference(), known: HashMap::new() })
    }

    #[test]
    fn names_lengths_and_sums_must_agree_where_both_have_them() {
        // echo -n ACGTACGTAC | md5sum
        let md5 = "45AFF2FECF7615D56BC0567DFFAB9FA8";
        let lower = md5.to_lowercase();
        assert_eq!(difference(&[]), None);
        assert_eq!(difference(&[("chr1", 10, None), ("chr3", 77, None)]), None);
        assert_eq!(difference(&[("chr1", 10, Some(&lower))]), None, "{}", md5_hex(b"ACGTACGTAC"));
        assert_eq!(difference(&[("chr1", 10, Some(md5))]), None);
        let said = |sequences: &[(&str, u64, Option<&str>)]| difference(sequences).expect("a difference");
        assert!(said(&[("chr1", 11, None)]).contains("chr1 has 11 bases there, and 10 in the reference"));
        assert!(said(&[("chr2", 5, Some(md5))]).contains("chr2 has other bases"));
        assert!(said(&[("I", 100, None), ("II", 5, None)]).contains("sequences I, II are not in the reference"));
        // Only the prefix differs.
        assert_eq!(difference(&[("1", 10, None), ("2", 5, None)]), None);
        // One sequence is as long as one of the reference by chance, as those of other assemblies may be.
        assert!(said(&[("1", 10, None), ("2", 6, None), ("3", 7, None)]).contains("are not in the reference"));
    }
}
