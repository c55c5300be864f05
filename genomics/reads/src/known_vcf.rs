//! Reads records of VCF files of known variants: plain, gzipped, or BGZF with a tabix index. With an index (`.tbi`) only
//! the records at the positions of the requested variants are read.

use std::collections::BTreeSet;
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
    pub(crate) fn substitutions(&self) -> Vec<SmallVariant> {
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

/// One record of a VCF file of known variants.
#[derive(Debug)]
pub(crate) struct KnownRecord<'a> {
    contig: usize,
    /// 0-based position of the first base of REF.
    pos: usize,
    reference: String,
    alternatives: &'a str,
    /// The INFO column; empty if the line has none.
    pub(crate) info: &'a str,
}

impl<'a> KnownRecord<'a> {
    /// Parses a line that is neither a header line nor empty; `None` if the reference lacks the contig.
    fn parse(line: &'a str, genome: &Reference) -> Result<Option<KnownRecord<'a>>, KnownVariantsFault> {
        let mut fields = line.split('\t');
        let mut next = || fields.next().ok_or(KnownVariantsFault::MissingColumns);
        let [name, pos, _id, reference, alternatives, _qual, _filter] =
            [next()?, next()?, next()?, next()?, next()?, next()?, next()?];
        let info = next().unwrap_or_default();
        let Some(contig) = genome.contig_index(name) else { return Ok(None) };
        let pos: usize = pos.parse().map_err(|_| KnownVariantsFault::Position(pos.to_owned()))?;
        let reference = reference.to_ascii_uppercase();
        // POS 0 is the telomere, which has no bases.
        Ok(pos.checked_sub(1).map(|pos| KnownRecord { contig, pos, reference, alternatives, info }))
    }

    /// The variants of the record, each with the number of its ALT allele (from 0). Symbolic alleles are left out.
    pub(crate) fn variants(&self) -> impl Iterator<Item = (usize, SmallVariant)> + '_ {
        let is_sequence = |bases: &str| !bases.is_empty() && bases.bytes().all(|base| b"ACGTN".contains(&base));
        let all = if is_sequence(&self.reference) { self.alternatives } else { "" };
        all.split(',').enumerate().filter_map(move |(number, alternative)| {
            let alternative = alternative.to_ascii_uppercase();
            is_sequence(&alternative).then(|| {
                let bases = [self.reference.as_bytes(), alternative.as_bytes()];
                (number, SmallVariant::from_untrimmed_alleles(self.contig, self.pos, bases[0], bases[1]))
            })
        })
    }
}

/// A VCF file of known variants.
pub(crate) struct KnownVcf<'a> {
    pub(crate) path: &'a Path,
    /// The reference with the contigs of the variants.
    pub(crate) genome: &'a Reference,
}

impl KnownVcf<'_> {
    /// Reads the records at the positions of `wanted`, or all records if the file has no index, and calls `visit` with
    /// each whose contig the reference has.
    ///
    /// # Errors
    /// The file or its index cannot be read or is damaged; a line is no VCF record; the file has no contig of the
    /// reference.
    pub(crate) fn for_each_record<'v>(
        &self,
        wanted: impl IntoIterator<Item = &'v SmallVariant>,
        visit: &mut dyn FnMut(&KnownRecord<'_>),
    ) -> Result<(), Error> {
        match self.find_index()? {
            Some(index) => self.visit_indexed(index, wanted.into_iter().map(|v| (v.contig, v.pos)).collect(), visit),
            None => self.visit_all(visit),
        }
    }

    /// Checks what can be checked without reading the file as a whole: its header, its first record, and its index.
    /// Returns the lines of the header.
    ///
    /// # Errors
    /// The file cannot be read or is empty; its header, first record or index is not valid; or the reference has none of
    /// the contigs in the header.
    pub(crate) fn check_header_and_index(&self) -> Result<Vec<String>, Error> {
        let header = self.check_header_and_first_record()?;
        if let Some(index) = self.find_index()? {
            self.visit_indexed(index, BTreeSet::new(), &mut |_| ())?;
        }
        Ok(header)
    }

    pub(crate) fn error_at(&self, line: u64, fault: KnownVariantsFault) -> Error {
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
    /// Returns the lines of the header.
    fn check_header_and_first_record(&self) -> Result<Vec<String>, Error> {
        let (mut contigs, mut header, mut has_lines) = (Vec::new(), Vec::new(), false);
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
                    header.push(line.to_owned());
                    return Ok(ControlFlow::Continue(()));
                }
                KnownRecord::parse(line, self.genome).map_err(|fault| self.error_at(number, fault))?;
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
            _ => Ok(header),
        }
    }

    fn check_first_line(&self, number: u64, line: &str) -> Result<(), Error> {
        match number {
            1 if !line.starts_with("##fileformat=VCF") => Err(self.error_at(number, KnownVariantsFault::NotVcf)),
            _ => Ok(()),
        }
    }

    fn visit_all(&self, visit: &mut dyn FnMut(&KnownRecord<'_>)) -> Result<(), Error> {
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
                if let Some(record) =
                    KnownRecord::parse(line, self.genome).map_err(|fault| self.error_at(number, fault))?
                {
                    visit(&record);
                }
                Ok(())
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

    /// Reads the records at these positions (contig, 0-based) by means of a tabix index.
    fn visit_indexed(
        &self,
        index_path: PathBuf,
        positions: BTreeSet<(usize, usize)>,
        visit: &mut dyn FnMut(&KnownRecord<'_>),
    ) -> Result<(), Error> {
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
                if let Some(record) = KnownRecord::parse(&line, self.genome).map_err(|fault| self.error_at(0, fault))? {
                    visit(&record);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_are_trimmed_to_one_anchor_base() {
        for (given, pos, reference, alternative) in [
            (("A", "C"), 7, "A", "C"),
            (("ACGT", "ACCT"), 9, "G", "C"),
            (("CAAA", "CAA"), 7, "CA", "C"),
            (("CA", "CAGA"), 7, "C", "CAG"),
            (("AC", "GT"), 7, "AC", "GT"),
        ] {
            let trimmed = SmallVariant::from_untrimmed_alleles(0, 7, given.0.as_bytes(), given.1.as_bytes());
            let expected = (pos, reference.as_bytes().to_vec(), alternative.as_bytes().to_vec());
            assert_eq!((trimmed.pos, trimmed.reference, trimmed.alternative), expected, "{given:?}");
        }
    }
}
