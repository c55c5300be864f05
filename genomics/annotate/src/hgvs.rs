//! Formats variants as HGVS names: changes of transcripts (c. and n.) and of proteins (p.).

use std::ops::Range;

use genuma_reads::dna::reverse_complement;

use crate::gene_model::{Strand, Transcript};
use crate::genetic_code::three_letter_name;

/// HGVS name of a variant in a transcript, without the transcript ID: `c.76A>T`, `n.12dup`. `range` of the contig is
/// replaced by `alternative`; the alleles share no first or last base. `None` if the variant extends beyond the
/// transcript.
///
/// Deletions and insertions are moved as far as possible in the direction of the transcript (3' rule).
pub(crate) fn format_transcript_change(
    transcript: &Transcript,
    contig: &[u8],
    range: &Range<usize>,
    alternative: &[u8],
) -> Option<String> {
    let span = transcript.transcript_span();
    let strand = transcript.strand;
    let (range, alternative) = shift_to_transcript_end(contig, &span, strand, range.clone(), alternative.to_vec());
    let oriented = |bases: &[u8]| match strand {
        Strand::Forward => String::from_utf8_lossy(bases).into_owned(),
        Strand::Reverse => String::from_utf8_lossy(&reverse_complement(bases)).into_owned(),
    };
    let interval = |range: &Range<usize>| -> Option<String> {
        if range.start < span.start || range.end > span.end {
            return None;
        }
        let [first, last] =
            [range.start, range.end - 1].map(|position| format_transcript_position(transcript, position));
        Some(match (range.len(), strand) {
            (1, _) => first,
            (_, Strand::Forward) => format!("{first}_{last}"),
            (_, Strand::Reverse) => format!("{last}_{first}"),
        })
    };
    let kind = if transcript.coding.is_some() { "c" } else { "n" };
    let change = match (range.len(), alternative.len()) {
        (1, 1) => format!("{}{}>{}", interval(&range)?, oriented(&contig[range]), oriented(&alternative)),
        (_, 0) => format!("{}del", interval(&range)?),
        (0, length) => {
            let copied = match strand {
                Strand::Forward => range.start.checked_sub(length).map(|start| start..range.start),
                Strand::Reverse => Some(range.start..range.start + length),
            };
            match copied.filter(|copied| contig.get(copied.clone()) == Some(&alternative[..])) {
                Some(copied) => format!("{}dup", interval(&copied)?),
                None => {
                    let around = range.start.checked_sub(1)?..range.start + 1;
                    format!("{}ins{}", interval(&around)?, oriented(&alternative))
                }
            }
        }
        (length, other) => {
            let is_inversion = length == other && reverse_complement(&contig[range.clone()]) == alternative;
            match is_inversion {
                true => format!("{}inv", interval(&range)?),
                false => format!("{}delins{}", interval(&range)?, oriented(&alternative)),
            }
        }
    };
    Some(format!("{kind}.{change}"))
}

/// Shifts an insertion or deletion in the direction of the transcript, within the transcript, as far as the resulting
/// sequence stays the same.
fn shift_to_transcript_end(
    contig: &[u8],
    span: &Range<usize>,
    strand: Strand,
    mut range: Range<usize>,
    mut alternative: Vec<u8>,
) -> (Range<usize>, Vec<u8>) {
    if range.is_empty() == alternative.is_empty() {
        return (range, alternative);
    }
    match strand {
        Strand::Forward => {
            while range.end < span.end && contig[range.end] == first_base(contig, &range, &alternative) {
                range = range.start + 1..range.end + 1;
                if !alternative.is_empty() {
                    alternative.rotate_left(1);
                }
            }
        }
        Strand::Reverse => {
            while range.start > span.start && contig[range.start - 1] == last_base(contig, &range, &alternative) {
                range = range.start - 1..range.end - 1;
                if !alternative.is_empty() {
                    alternative.rotate_right(1);
                }
            }
        }
    }
    (range, alternative)
}

fn first_base(contig: &[u8], range: &Range<usize>, alternative: &[u8]) -> u8 {
    alternative.first().copied().unwrap_or_else(|| contig[range.start])
}

fn last_base(contig: &[u8], range: &Range<usize>, alternative: &[u8]) -> u8 {
    alternative.last().copied().unwrap_or_else(|| contig[range.end - 1])
}

/// HGVS position in a transcript: `76` in the coding sequence, `-12` before it, `*5` after it, `75+3` and `76-4` in
/// introns. In a non-coding transcript, positions are counted from its first base.
pub(crate) fn format_transcript_position(transcript: &Transcript, position: usize) -> String {
    let forward = transcript.strand == Strand::Forward;
    let exon = transcript.exons.partition_point(|exon| exon.end <= position);
    if transcript.exons.get(exon).is_some_and(|exon| exon.start <= position) {
        return exonic_position(transcript, position);
    }
    let (left, right) = (transcript.exons[exon - 1].end - 1, transcript.exons[exon].start);
    let (to_left, to_right) = (position - left, right - position);
    // In the middle of an intron the exon before it, in the direction of the transcript, counts.
    let uses_left = if forward { to_left <= to_right } else { to_left < to_right };
    let (edge, distance) = if uses_left { (left, to_left) } else { (right, to_right) };
    let sign = if uses_left == forward { '+' } else { '-' };
    format!("{}{sign}{distance}", exonic_position(transcript, edge))
}

/// Number of exon bases between the start of the transcript and an exonic position.
fn exonic_offset(transcript: &Transcript, position: usize) -> usize {
    let before = |exon: &Range<usize>| match transcript.strand {
        Strand::Forward => exon.end.min(position).saturating_sub(exon.start),
        Strand::Reverse => exon.end.saturating_sub(exon.start.max(position + 1)),
    };
    transcript.exons.iter().map(before).sum()
}

fn exonic_position(transcript: &Transcript, position: usize) -> String {
    let offset = exonic_offset(transcript, position);
    let Some(coding) = &transcript.coding else { return (offset + 1).to_string() };
    let span = coding.coding_span();
    let ends = match transcript.strand {
        Strand::Forward => [span.start, span.end - 1],
        Strand::Reverse => [span.end - 1, span.start],
    };
    let [first, last] = ends.map(|end| exonic_offset(transcript, end));
    if offset < first {
        format!("-{}", first - offset)
    } else if offset > last {
        format!("*{}", offset - last)
    } else {
        (offset - first + 1).to_string()
    }
}

fn residue(protein: &[u8], index: usize) -> String {
    format!("{}{}", three_letter_name(protein[index]), index + 1)
}

fn residues(protein: &[u8]) -> String {
    protein.iter().map(|&amino_acid| three_letter_name(amino_acid)).collect()
}

/// HGVS name of consecutive residues: `Lys2` or `Lys2_Met4`.
fn residue_interval(protein: &[u8], range: &Range<usize>) -> String {
    match range.len() {
        1 => residue(protein, range.start),
        _ => format!("{}_{}", residue(protein, range.start), residue(protein, range.end - 1)),
    }
}

/// HGVS name of a protein change that keeps the reading frame. `old` and `new` are the proteins with their stop codons,
/// `codons` the codons that the variant overlaps.
pub(crate) fn format_in_frame_protein_change(old: &[u8], new: &[u8], codons: &Range<usize>) -> String {
    let alike = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    if old == new {
        return match codons.len() {
            1 => format!("p.{}=", residue(old, codons.start)),
            _ => "p.=".to_owned(),
        };
    }
    if alike == old.len() || alike == new.len() {
        return "p.?".to_owned();
    }
    if old[alike] == b'*' {
        return format!("p.{}{}", residue(old, alike), format_extension(new, alike));
    }
    let rest = old.len().min(new.len()) - alike;
    let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let (removed, added) = (alike..old.len() - tail, alike..new.len() - tail);
    match (removed.len(), added.len()) {
        (1, 1) => format!("p.{}{}", residue(old, alike), three_letter_name(new[alike])),
        (_, 0) => format!("p.{}del", residue_interval(old, &removed)),
        (0, length) => {
            let inserted = &new[added];
            match alike.checked_sub(length).filter(|&start| old[start..alike] == *inserted) {
                Some(start) => format!("p.{}dup", residue_interval(old, &(start..alike))),
                None if alike == 0 => "p.?".to_owned(),
                None => format!("p.{}ins{}", residue_interval(old, &(alike - 1..alike + 1)), residues(inserted)),
            }
        }
        _ => format!("p.{}delins{}", residue_interval(old, &removed), residues(&new[added])),
    }
}

/// HGVS name of a protein change that keeps the reading frame and makes an early stop codon: `p.Lys2Ter`. `old` and
/// `new` are the proteins with their stop codons.
pub(crate) fn format_gained_stop(old: &[u8], new: &[u8]) -> String {
    let alike = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    match (old.get(alike), new.get(alike)) {
        (Some(_), Some(b'*')) => format!("p.{}Ter", residue(old, alike)),
        (Some(_), Some(_)) => format!("p.{}delins{}", residue(old, alike), residues(&new[alike..])),
        _ => "p.?".to_owned(),
    }
}

/// End of the HGVS name of a protein `new` that continues beyond the former stop codon at index `stop`: `GlnextTer17`.
fn format_extension(new: &[u8], stop: usize) -> String {
    let first = three_letter_name(new[stop]);
    match new.last() {
        Some(b'*') => format!("{first}extTer{}", new.len() - 1 - stop),
        _ => format!("{first}extTer?"),
    }
}

/// HGVS name of a frameshift: `p.Arg97ProfsTer23`. `codon` is the index of the first codon that the variant overlaps.
pub(crate) fn format_frameshift(old: &[u8], new: &[u8], codon: usize) -> String {
    let rest = old[codon.min(old.len())..].iter().zip(&new[codon.min(new.len())..]);
    let first = codon + rest.take_while(|(a, b)| a == b).count();
    let (Some(&old_residue), Some(&new_residue)) = (old.get(first), new.get(first)) else {
        return if old == new { "p.=".to_owned() } else { "p.?".to_owned() };
    };
    if old_residue == b'*' {
        return format!("p.{}{}", residue(old, first), format_extension(new, first));
    }
    if new_residue == b'*' {
        return format!("p.{}Ter", residue(old, first));
    }
    let end = match new.last() {
        Some(b'*') => (new.len() - first).to_string(),
        _ => "?".to_owned(),
    };
    format!("p.{}{}fsTer{end}", residue(old, first), three_letter_name(new_residue))
}

/// Converts the HGVS name of a protein change to one-letter amino acids, with `*` for a stop: `p.R97Pfs*23`.
pub fn shorten_protein_change(name: &str) -> String {
    let (mut short, mut rest) = (String::new(), name);
    while let Some(first) = rest.chars().next() {
        let letter = rest.get(..3).and_then(|three| {
            b"ACDEFGHIKLMNPQRSTVWY*X".iter().find(|&&amino_acid| three_letter_name(amino_acid) == three)
        });
        match letter {
            Some(&letter) => {
                short.push(letter as char);
                rest = &rest[3..];
            }
            None => {
                short.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protein_changes() {
        // Old, new, first codon, number of codons, name.
        let cases: [(&str, &str, usize, usize, &str); 14] = [
            ("MKRC*", "MKRC*", 2, 1, "p.Arg3="),
            ("MKRC*", "MKRC*", 1, 2, "p.="),
            ("MKRC*", "MKQC*", 2, 1, "p.Arg3Gln"),
            ("MKRC*", "MRC*", 1, 1, "p.Lys2del"),
            ("MKRCW*", "MKW*", 2, 2, "p.Arg3_Cys4del"),
            ("MKKRC*", "MKRC*", 1, 1, "p.Lys3del"),
            ("MKRC*", "MKRRC*", 2, 0, "p.Arg3dup"),
            ("MKRC*", "MKRKRC*", 3, 0, "p.Lys2_Arg3dup"),
            ("MKRC*", "MKWRC*", 2, 0, "p.Lys2_Arg3insTrp"),
            ("MKRC*", "MKWWC*", 2, 1, "p.Arg3delinsTrpTrp"),
            ("MKRCD*", "MWWCD*", 1, 2, "p.Lys2_Arg3delinsTrpTrp"),
            ("MKRC*", "MKRCQVW*", 4, 1, "p.Ter5GlnextTer3"),
            ("MKRC*", "MKRCQV", 4, 1, "p.Ter5GlnextTer?"),
            ("MKRCW*", "MKRC*", 4, 1, "p.Trp5del"),
        ];
        for (old, new, first, codons, name) in cases {
            let found = format_in_frame_protein_change(old.as_bytes(), new.as_bytes(), &(first..first + codons));
            assert_eq!(found, name, "{old} {new}");
        }
    }

    #[test]
    fn gained_stops() {
        assert_eq!(format_gained_stop(b"MKRC*", b"MK*"), "p.Arg3Ter");
        assert_eq!(format_gained_stop(b"MKRCDE*", b"MKWV*"), "p.Arg3delinsTrpValTer");
    }

    #[test]
    fn frameshifts() {
        let cases = [
            ("MKRC*", "MKPVWL*", 1, "p.Arg3ProfsTer5"),
            ("MKRC*", "MKPVWL", 2, "p.Arg3ProfsTer?"),
            ("MKRC*", "MK*", 1, "p.Arg3Ter"),
            ("MKRC*", "MKRCW*", 4, "p.Ter5TrpextTer1"),
            ("MKRC*", "MKRC*", 4, "p.="),
        ];
        for (old, new, codon, name) in cases {
            assert_eq!(format_frameshift(old.as_bytes(), new.as_bytes(), codon), name, "{old} {new}");
        }
    }

    #[test]
    fn short_names() {
        let cases = [
            ("p.Arg97ProfsTer23", "p.R97Pfs*23"),
            ("p.Arg97=", "p.R97="),
            ("p.Lys2_Met4del", "p.K2_M4del"),
            ("p.Ter5GlnextTer3", "p.*5Qext*3"),
            ("p.Met1?", "p.M1?"),
            ("p.Lys2_Arg3insTrp", "p.K2_R3insW"),
        ];
        for (long, short) in cases {
            assert_eq!(shorten_protein_change(long), short);
        }
    }
}
