//! Allele frequencies of small variants in a population, from a VCF file such as that of gnomAD: plain, gzipped, or
//! BGZF with a tabix index.
//!
//! Only the frequencies of requested variants are kept.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::error::Error;
use crate::fasta::Reference;
use crate::known_vcf::{KnownVcf, SmallVariant};

/// Allele frequencies of small variants in a population.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PopulationFrequencies {
    by_variant: HashMap<SmallVariant, f64>,
    /// Number of requested variants whose record has no frequency. [`DEFAULT_FREQUENCY_OF_LISTED_VARIANT`] is assumed
    /// for them.
    pub num_variants_without_frequency: u64,
}

/// Frequency that is assumed for a variant whose record has none. Chosen: most records without a frequency, for
/// example those of dbSNP, are rare variants.
pub(crate) const DEFAULT_FREQUENCY_OF_LISTED_VARIANT: f64 = 1e-3;

impl PopulationFrequencies {
    /// Reads the allele frequencies of `variants` from a VCF file: `AF`, or `AC` divided by `AN` where `AF` is missing.
    /// The highest frequency counts if several records have the same variant.
    ///
    /// # Errors
    /// The file or its index cannot be read or is damaged; a line is no VCF record; the file has no contig of the
    /// reference.
    pub fn read_vcf_file(
        path: &Path,
        genome: &Reference,
        variants: &[SmallVariant],
    ) -> Result<PopulationFrequencies, Error> {
        let wanted: HashSet<SmallVariant> = variants.iter().flat_map(SmallVariant::substitutions).collect();
        let mut found = PopulationFrequencies::default();
        KnownVcf { path, genome }.for_each_record(&wanted, &mut |record| {
            for (number, variant) in record.variants() {
                let single = variant.substitutions().into_iter().filter(|variant| wanted.contains(variant));
                single.for_each(|variant| found.add_frequency(variant, allele_frequency(record.info, number)));
            }
        })?;
        Ok(found)
    }

    /// Checks what can be checked of a VCF file without reading it as a whole: its header, its first record, and its
    /// index.
    ///
    /// # Errors
    /// The file cannot be read or is empty; its header, first record or index is not valid, as for
    /// [`Self::read_vcf_file`]; or the reference has none of the contigs in the header.
    pub fn check_vcf_header_and_index(path: &Path, genome: &Reference) -> Result<(), Error> {
        KnownVcf { path, genome }.check_header_and_index().map(drop)
    }

    fn add_frequency(&mut self, variant: SmallVariant, frequency: Option<f64>) {
        self.num_variants_without_frequency += u64::from(frequency.is_none());
        let frequency = frequency.unwrap_or(DEFAULT_FREQUENCY_OF_LISTED_VARIANT);
        let known = self.by_variant.entry(variant).or_insert(frequency);
        *known = known.max(frequency);
    }

    /// Frequency of a variant in the population; `None` if the file does not have the variant, or the variant was not
    /// requested. The frequency of a substitution of several bases is the lowest of its single-base substitutions;
    /// `None` if the file lacks one of these.
    pub fn frequency_of_variant(&self, variant: &SmallVariant) -> Option<f64> {
        let single = variant.substitutions();
        single.iter().map(|variant| self.by_variant.get(variant).copied()).reduce(|a, b| Some(a?.min(b?))).flatten()
    }
}

/// Frequency of ALT allele number `alternative` (from 0) in an INFO field: `AF`, or `AC` divided by `AN` where `AF` is
/// missing. `None` if the record has neither, or the value is not between 0 and 1.
fn allele_frequency(info: &str, alternative: usize) -> Option<f64> {
    let values = |key: &str| info.split(';').find_map(|field| field.strip_prefix(key)?.strip_prefix('='));
    let number = |key: &str, at: usize| values(key)?.split(',').nth(at)?.parse::<f64>().ok();
    let of_counts = || Some(number("AC", alternative)? / number("AN", 0).filter(|&all| all > 0.0)?);
    number("AF", alternative).or_else(of_counts).filter(|frequency| (0.0..=1.0).contains(frequency))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::fasta::Contig;

    const HEADER: &str = "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n";

    fn genome() -> Reference {
        let contig = |name: &str| Contig { name: name.to_owned(), seq: b"ACGTACGTACGTACGTACGT".to_vec() };
        Reference::from_contigs(vec![contig("chr1"), contig("chr2")])
    }

    fn variant(pos: usize, reference: &str, alternative: &str) -> SmallVariant {
        SmallVariant::from_untrimmed_alleles(0, pos, reference.as_bytes(), alternative.as_bytes())
    }

    fn read(text: &str, variants: &[SmallVariant]) -> Result<PopulationFrequencies, Error> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        PopulationFrequencies::read_vcf_file(file.path(), &genome(), variants)
    }

    #[test]
    fn frequencies_of_each_alternative_allele_are_found() {
        let wanted = [
            variant(2, "G", "A"),
            variant(2, "G", "T"),
            variant(4, "A", "AC"),
            variant(6, "G", "C"),
            variant(8, "AC", "TG"),
            variant(10, "G", "T"),
            variant(12, "AC", "TG"),
        ];
        let records = "chr1\t3\t.\tG\tA,T\t.\tPASS\tAF=0.25,0.5\n\
            chr1\t5\trs1\tACG\tACCG\t.\t.\tAC=3;AN=12\n\
            chr1\t7\trs2\tG\tC\t.\t.\tRS=5\n\
            chr1\t9\t.\tA\tT\t.\t.\tAF=0.1\nchr1\t10\t.\tC\tG\t.\t.\tAF=0.2\n\
            chr1\t13\t.\tA\tT,<DEL>,*\t.\t.\tAF=0.1,0,0\n\
            chr9\t1\t.\tA\tT\t.\t.\tAF=0.1\n";
        let found = read(&format!("{HEADER}{records}"), &wanted).unwrap();
        let frequencies = wanted.each_ref().map(|variant| found.frequency_of_variant(variant));
        let expected =
            [Some(0.25), Some(0.5), Some(0.25), Some(DEFAULT_FREQUENCY_OF_LISTED_VARIANT), Some(0.1), None, None];
        assert_eq!(frequencies, expected);
        assert_eq!(found.num_variants_without_frequency, 1);
    }

    #[test]
    fn files_that_do_not_fit_are_errors() {
        let wanted = [variant(2, "G", "A")];
        for (text, message) in [
            ("chr1\t3\t.\tG\tA\t.\t.\t.\n".to_owned(), "not a VCF file"),
            (format!("{HEADER}1\t3\t.\tG\tA\t.\t.\tAF=1\n"), "has contig \"1\" and others, but none of the reference"),
            (format!("{HEADER}chr1\t3\t.\tG\n"), "fewer than 7 columns"),
            (format!("{HEADER}chr1\tx\t.\tG\tA\t.\t.\tAF=1\n"), "\"x\" is not a position"),
        ] {
            let error = read(&text, &wanted).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn the_beginning_of_a_file_is_checked_alone() {
        let check = |text: &str| {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            PopulationFrequencies::check_vcf_header_and_index(file.path(), &genome()).map_err(|error| error.to_string())
        };
        let contigs = |name: &str| HEADER.replace("#CHROM", &format!("##contig=<ID={name},length=9>\n#CHROM"));
        for (text, message) in [
            ("<!DOCTYPE html>\n<html>\n".to_owned(), "not a VCF file"),
            (contigs("1"), "has contig \"1\" and others, but none of the reference"),
            (contigs("1") + "2\t3\t.\tG\tA\t.\t.\tAF=1\n", "has contig \"1\" and others, but none of the reference"),
            (format!("{HEADER}chr1\t3\t.\tG\n"), "fewer than 7 columns"),
        ] {
            let error = check(&text).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
        assert!(check("").is_err());
        let record = "chr1\t3\t.\tG\tA\t.\t.\tAF=1\n";
        // What comes after the first record is not read.
        for text in [HEADER.to_owned(), contigs("chr2"), contigs("1") + record, format!("{HEADER}{record}chr1\tx\n")] {
            assert_eq!(check(&text), Ok(()), "{text}");
        }
    }
}
