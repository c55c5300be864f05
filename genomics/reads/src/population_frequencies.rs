//! Allele frequencies of small variants in a population, from a VCF file such as that of gnomAD: plain, gzipped, or
//! BGZF with a tabix index.
//!
//! Only the frequencies of requested variants are kept. With an index (`.tbi`) only the records at their positions are
//! read.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use noodles_core::{Position, Region};
use noodles_csi::BinningIndex as _;
use noodles_csi::binning_index::index::header::ReferenceSequenceNames;

use crate::error::{Error, KnownVariantsFault};
use crate::fasta::Reference;
use crate::text_lines::{for_each_line, for_each_line_until_break};

/// A substitution, insertion or deletion as in VCF, with as few bases as possible. It must be left-aligned to be found.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SmallVariant {
    /// Index of the contig in the reference.
    pub contig: usize,
    /// 0-based position of the first base of REF.
    pub pos: usize,
    /// REF without bases shared with ALT, except one before an indel; upper case.
    pub reference: Vec<u8>,
    /// One ALT without bases shared with REF, except one before an indel; upper case.
    pub alternative: Vec<u8>,
}

impl SmallVariant {
    /// Creates a variant from alleles that may have bases in common at their ends: these are removed, except for one
    /// base before an indel.
    pub fn from_untrimmed_alleles(contig: usize, pos: usize, reference: &[u8], alternative: &[u8]) -> SmallVariant {
        let shorter = reference.len().min(alternative.len());
        let backward = reference.iter().rev().zip(alternative.iter().rev());
        let suffix = backward.take(shorter.saturating_sub(1)).take_while(|(a, b)| a == b).count();
        let [reference, alternative] = [reference, alternative].map(|allele| &allele[..allele.len() - suffix]);
        let forward = reference.iter().zip(alternative);
        let prefix = forward.take((shorter - suffix).saturating_sub(1)).take_while(|(a, b)| a == b).count();
        SmallVariant {
            contig,
            pos: pos + prefix,
            reference: reference[prefix..].to_vec(),
            alternative: alternative[prefix..].to_vec(),
        }
    }

    /// The single-base substitutions of a substitution of several bases; otherwise only the variant itself.
    fn substitutions(&self) -> Vec<SmallVariant> {
        if self.reference.len() != self.alternative.len() {
            return vec![self.clone()];
        }
        let bases = self.reference.iter().zip(&self.alternative).enumerate();
        let differing = bases.filter(|(_, (from, to))| from != to);
        let single = |(i, (from, to)): (usize, (&u8, &u8))| SmallVariant {
            contig: self.contig,
            pos: self.pos + i,
            reference: vec![*from],
            alternative: vec![*to],
        };
        differing.map(single).collect()
    }
}

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
        let single = variants.iter().flat_map(SmallVariant::substitutions).collect();
        let mut reader = FrequencyReader { path, genome, wanted: single, found: PopulationFrequencies::default() };
        match reader.find_index()? {
            Some(index) => reader.read_indexed(index),
            None => reader.read_all(),
        }?;
        Ok(reader.found)
    }

    /// Checks what can be checked of a VCF file without reading it as a whole: its header, its first record, and its
    /// index.
    ///
    /// # Errors
    /// The file cannot be read or is empty; its header, first record or index is not valid, as for
    /// [`Self::read_vcf_file`]; or the reference has none of the contigs in the header.
    pub fn check_vcf_header_and_index(path: &Path, genome: &Reference) -> Result<(), Error> {
        let found = PopulationFrequencies::default();
        let mut reader = FrequencyReader { path, genome, wanted: HashSet::new(), found };
        reader.check_header_and_first_record()?;
        reader.find_index()?.map_or(Ok(()), |index| reader.read_indexed(index))
    }

    /// Frequency of a variant in the population; `None` if the file does not have the variant, or the variant was not
    /// requested. The frequency of a substitution of several bases is the lowest of its single-base substitutions;
    /// `None` if the file lacks one of these.
    pub fn frequency_of_variant(&self, variant: &SmallVariant) -> Option<f64> {
        let single = variant.substitutions();
        single.iter().map(|variant| self.by_variant.get(variant).copied()).reduce(|a, b| Some(a?.min(b?))).flatten()
    }
}

struct FrequencyReader<'a> {
    path: &'a Path,
    genome: &'a Reference,
    /// The variants whose frequencies are read.
    wanted: HashSet<SmallVariant>,
    found: PopulationFrequencies,
}

impl FrequencyReader<'_> {
    fn error_at(&self, line: u64, fault: KnownVariantsFault) -> Error {
        Error::KnownVariants { path: self.path.into(), line, fault }
    }

    /// Returns the path of the tabix index; `None` if there is none.
    fn find_index(&self) -> Result<Option<PathBuf>, Error> {
        let mut index = self.path.as_os_str().to_owned();
        index.push(".tbi");
        let index = PathBuf::from(index);
        match index.try_exists() {
            Ok(exists) => Ok(exists.then_some(index)),
            Err(source) => Err(Error::Read { path: index, source }),
        }
    }

    /// Reads the file up to its first record. Of the contigs of the header and the record, the reference must have one.
    fn check_header_and_first_record(&mut self) -> Result<(), Error> {
        let (mut contigs, mut has_lines) = (Vec::new(), false);
        let path = self.path;
        for_each_line_until_break(
            path,
            |number, line| {
                has_lines = true;
                self.check_first_line(number, line)?;
                if let Some(fields) = line.strip_prefix("##contig=<") {
                    let id = fields.trim_end_matches('>').split(',').find_map(|field| field.strip_prefix("ID="));
                    contigs.extend(id.map(str::to_owned));
                }
                if line.starts_with('#') || line.is_empty() {
                    return Ok(ControlFlow::Continue(()));
                }
                self.add_record(line).map_err(|fault| self.error_at(number, fault))?;
                // Without contigs in the header, those of later records decide.
                if !contigs.is_empty() {
                    contigs.extend(line.split('\t').next().map(str::to_owned));
                }
                Ok(ControlFlow::Break(()))
            },
            |line, format, damage| {
                let fault = KnownVariantsFault::Compressed(format, damage);
                Error::KnownVariants { path: path.into(), line, fault }
            },
        )?;
        if !has_lines {
            return Err(self.error_at(1, KnownVariantsFault::NotVcf));
        }
        let is_shared = contigs.iter().any(|name| self.genome.contig_index(name).is_some());
        match contigs.into_iter().next() {
            Some(example) if !is_shared => Err(self.error_at(0, KnownVariantsFault::NoSharedContig(example))),
            _ => Ok(()),
        }
    }

    fn check_first_line(&self, number: u64, line: &str) -> Result<(), Error> {
        match number {
            1 if !line.starts_with("##fileformat=VCF") => Err(self.error_at(number, KnownVariantsFault::NotVcf)),
            _ => Ok(()),
        }
    }

    /// Reads all records of a file without an index and keeps the frequencies of the wanted variants.
    fn read_all(&mut self) -> Result<(), Error> {
        let (mut first_contig, mut has_shared_contig) = (None, false);
        let path = self.path;
        for_each_line(
            path,
            |number, line| {
                self.check_first_line(number, line)?;
                if line.starts_with('#') || line.is_empty() {
                    return Ok(());
                }
                let name = line.split('\t').next().unwrap_or_default();
                has_shared_contig |= self.genome.contig_index(name).is_some();
                if first_contig.is_none() {
                    first_contig = Some(name.to_owned());
                }
                self.add_record(line).map_err(|fault| self.error_at(number, fault))
            },
            |line, format, damage| {
                let fault = KnownVariantsFault::Compressed(format, damage);
                Error::KnownVariants { path: path.into(), line, fault }
            },
        )?;
        match first_contig {
            Some(example) if !has_shared_contig => Err(self.error_at(0, KnownVariantsFault::NoSharedContig(example))),
            _ => Ok(()),
        }
    }

    /// Reads the records at the positions of the variants by means of a tabix index.
    fn read_indexed(&mut self, index_path: PathBuf) -> Result<(), Error> {
        let read_error = |path: &Path| {
            let path = path.to_path_buf();
            move |source| Error::Read { path, source }
        };
        let index = noodles_tabix::fs::read(&index_path).map_err(read_error(&index_path))?;
        let names = index.header().map(|header| header.reference_sequence_names().clone());
        let names: ReferenceSequenceNames = names.unwrap_or_default();
        let is_shared = |name: &[u8]| self.genome.contig_index(&String::from_utf8_lossy(name)).is_some();
        if !names.iter().any(|name| is_shared(name)) {
            let example = names.first().map_or_else(String::new, |name| String::from_utf8_lossy(name).into_owned());
            return Err(self.error_at(0, KnownVariantsFault::NoSharedContig(example)));
        }
        let file = std::fs::File::open(self.path).map_err(read_error(self.path))?;
        let mut reader = noodles_csi::io::IndexedReader::new(file, index);
        let positions: BTreeSet<(usize, usize)> = self.wanted.iter().map(|v| (v.contig, v.pos)).collect();
        for (contig, pos) in positions {
            let name = self.genome.contigs[contig].name.as_bytes();
            if !names.contains(name) {
                continue;
            }
            let Ok(position) = Position::try_from(pos + 1) else { continue };
            let region = Region::new(name, position..=position);
            let records = reader.query(&region).map_err(read_error(self.path))?;
            let lines: Vec<String> = records
                .map(|record| record.map(|record| record.as_ref().to_owned()))
                .collect::<Result<_, _>>()
                .map_err(read_error(self.path))?;
            for line in lines {
                self.add_record(&line).map_err(|fault| self.error_at(0, fault))?;
            }
        }
        Ok(())
    }

    /// Adds the frequencies of those variants of a record that are in the list of requested variants.
    fn add_record(&mut self, line: &str) -> Result<(), KnownVariantsFault> {
        let mut fields = line.split('\t');
        let mut next = || fields.next().ok_or(KnownVariantsFault::MissingColumns);
        let [name, pos, _id, reference, alternatives, _qual, _filter] =
            [next()?, next()?, next()?, next()?, next()?, next()?, next()?];
        let info = next().unwrap_or_default();
        let Some(contig) = self.genome.contig_index(name) else { return Ok(()) };
        let pos: usize = pos.parse().map_err(|_| KnownVariantsFault::Position(pos.to_owned()))?;
        let reference = reference.to_ascii_uppercase();
        for (number, alternative) in alternatives.split(',').enumerate() {
            let is_sequence = |bases: &str| !bases.is_empty() && bases.bytes().all(|base| b"ACGTN".contains(&base));
            let alternative = alternative.to_ascii_uppercase();
            if pos == 0 || !is_sequence(&reference) || !is_sequence(&alternative) {
                continue;
            }
            let variant =
                SmallVariant::from_untrimmed_alleles(contig, pos - 1, reference.as_bytes(), alternative.as_bytes());
            for variant in variant.substitutions().into_iter().filter(|variant| self.wanted.contains(variant)) {
                let frequency = allele_frequency(info, number);
                self.found.num_variants_without_frequency += u64::from(frequency.is_none());
                let frequency = frequency.unwrap_or(DEFAULT_FREQUENCY_OF_LISTED_VARIANT);
                let known = self.found.by_variant.entry(variant).or_insert(frequency);
                *known = known.max(frequency);
            }
        }
        Ok(())
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
    fn variants_are_trimmed_to_one_anchor_base() {
        for (given, pos, reference, alternative) in [
            (("A", "C"), 7, "A", "C"),
            (("ACGT", "ACCT"), 9, "G", "C"),
            (("CAAA", "CAA"), 7, "CA", "C"),
            (("CA", "CAGA"), 7, "C", "CAG"),
            (("AC", "GT"), 7, "AC", "GT"),
        ] {
            let trimmed = variant(7, given.0, given.1);
            let expected = (pos, reference.as_bytes().to_vec(), alternative.as_bytes().to_vec());
            assert_eq!((trimmed.pos, trimmed.reference, trimmed.alternative), expected, "{given:?}");
        }
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
