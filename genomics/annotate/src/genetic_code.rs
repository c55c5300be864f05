//! Genetic codes: the standard code (table 1 of NCBI) and the vertebrate mitochondrial code (table 2).

use genuma_reads::fasta::is_mitochondrial_name;

/// A genetic code: translation of codons to amino acids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GeneticCode {
    /// The standard code: NCBI translation table 1.
    Standard,
    /// The vertebrate mitochondrial code: NCBI translation table 2.
    VertebrateMitochondrial,
}

/// Amino acids of the standard code, for the 64 codons in the order TTT, TTC, TTA, TTG, TCT and so on; `*` is a stop
/// codon.
const STANDARD: &[u8; 64] = b"FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG";
/// Amino acids of the vertebrate mitochondrial code, for the codons in the order of [`STANDARD`].
const VERTEBRATE_MITOCHONDRIAL: &[u8; 64] = b"FFLLSSSSYY**CCWWLLLLPPPPHHQQRRRRIIMMTTTTNNKKSS**VVVVAAAADDEEGGGG";

impl GeneticCode {
    /// The genetic code for a contig: the mitochondrial code for the usual names of the human mitochondrial genome,
    /// such as `chrM` and `MT`; otherwise the standard code.
    pub(crate) fn for_contig(name: &str) -> GeneticCode {
        if is_mitochondrial_name(name) { GeneticCode::VertebrateMitochondrial } else { GeneticCode::Standard }
    }

    /// The amino acid of a codon in one-letter code; `*` for a stop codon, `X` if a base is ambiguous.
    pub(crate) fn translate_codon(self, codon: &[u8]) -> u8 {
        let table = match self {
            GeneticCode::Standard => STANDARD,
            GeneticCode::VertebrateMitochondrial => VERTEBRATE_MITOCHONDRIAL,
        };
        let digit = |base: &u8| b"TCAG".iter().position(|b| b == base);
        let number = codon.iter().try_fold(0, |sum, base| Some(4 * sum + digit(base)?));
        number.and_then(|number| table.get(number)).copied().unwrap_or(b'X')
    }

    /// The amino acids of all complete codons, also those after a stop codon.
    pub fn translate_all_codons(self, bases: &[u8]) -> Vec<u8> {
        bases.chunks_exact(3).map(|codon| self.translate_codon(codon)).collect()
    }

    /// The amino acids up to the first stop codon, with its `*`.
    pub(crate) fn translate_to_stop(self, bases: &[u8]) -> Vec<u8> {
        let mut protein = Vec::new();
        for codon in bases.chunks_exact(3) {
            protein.push(self.translate_codon(codon));
            if protein.last() == Some(&b'*') {
                break;
            }
        }
        protein
    }
}

/// The three-letter name of an amino acid in one-letter code; `Ter` for a stop.
pub(crate) fn three_letter_name(amino_acid: u8) -> &'static str {
    match amino_acid {
        b'A' => "Ala",
        b'C' => "Cys",
        b'D' => "Asp",
        b'E' => "Glu",
        b'F' => "Phe",
        b'G' => "Gly",
        b'H' => "His",
        b'I' => "Ile",
        b'K' => "Lys",
        b'L' => "Leu",
        b'M' => "Met",
        b'N' => "Asn",
        b'P' => "Pro",
        b'Q' => "Gln",
        b'R' => "Arg",
        b'S' => "Ser",
        b'T' => "Thr",
        b'V' => "Val",
        b'W' => "Trp",
        b'Y' => "Tyr",
        b'*' => "Ter",
        _ => "Xaa",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codons() {
        let (standard, mitochondrial) = (GeneticCode::for_contig("chr1"), GeneticCode::for_contig("MT"));
        for (codon, expected) in
            [("ATG", "MM"), ("TGA", "*W"), ("AGA", "R*"), ("ATA", "IM"), ("GGC", "GG"), ("NNN", "XX")]
        {
            let both = [standard, mitochondrial].map(|code| code.translate_codon(codon.as_bytes()) as char);
            assert_eq!(both.iter().collect::<String>(), expected, "{codon}");
        }
        assert_eq!(standard.translate_to_stop(b"ATGTGTTAAGGG"), b"MC*");
        assert_eq!(standard.translate_all_codons(b"ATGTGTTAAGG"), b"MC*");
    }
}
