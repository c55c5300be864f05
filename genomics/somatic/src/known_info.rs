//! Carries INFO fields of known variants over to the records of a call, such as CLNSIG of ClinVar.

use std::collections::HashSet;
use std::path::PathBuf;

use genuma_reads::fasta::Reference;
use genuma_reads::known_info::{InfoFieldDefinition, KnownInfo, read_info_definitions};
use genuma_reads::known_vcf::SmallVariant;

use crate::vcf::{self, CarriedInfoField};
use crate::vcf_record::{AltAllele, KnownInfoValue, VcfRecord};

/// A VCF file of known variants, and the INFO fields that are carried over from it (`--known-info`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownInfoSource {
    /// Path of the VCF file.
    pub path: PathBuf,
    /// IDs of the INFO fields in this file.
    pub fields: Vec<String>,
}

/// Keys of INFO that VCF 4.3 reserves for properties of the samples (table 1), and those of FORMAT that programs also
/// look for in INFO.
const RESERVED_KEYS: [&str; 21] = [
    "AA",
    "AC",
    "AD",
    "ADF",
    "ADR",
    "AF",
    "AN",
    "BQ",
    "CIGAR",
    "DB",
    "DP",
    "END",
    "H2",
    "H3",
    "MQ",
    "MQ0",
    "NS",
    "SB",
    "SOMATIC",
    "VALIDATED",
    "1000G",
];

/// ID in the records of a call of the field `id` of known variants: the same, or with the prefix `KNOWN_` if genuma
/// writes a field of this name or VCF reserves it.
pub fn carried_field_id(id: &str) -> String {
    let is_taken = RESERVED_KEYS.contains(&id) || vcf::is_own_info_field(id);
    if is_taken { format!("KNOWN_{id}") } else { id.to_owned() }
}

impl KnownInfoSource {
    /// Name of the file without its folder.
    pub fn file_name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Reads the declarations of the fields, so that a wrong file or field is reported before hours of work.
    ///
    /// # Errors
    /// The file cannot be read, is no VCF file, does not fit the reference, or does not declare a field.
    pub fn read_fields(&self, genome: &Reference) -> Result<Vec<CarriedInfoField>, genuma_reads::Error> {
        let definitions = read_info_definitions(&self.path, genome, &self.fields)?;
        let carried = |source: InfoFieldDefinition| CarriedInfoField {
            id: carried_field_id(&source.id),
            source,
            file_name: self.file_name(),
        };
        Ok(definitions.into_iter().map(carried).collect())
    }

    /// Adds the values of the fields to the small variants among the records that the file lists. Alleles must be equal:
    /// an adjacent substitution of several bases does not get the values of its parts. Returns the declarations of the
    /// fields.
    ///
    /// # Errors
    /// The file cannot be read, is no VCF file, does not fit the reference, or does not declare a field.
    pub fn annotate_records(
        &self,
        genome: &Reference,
        records: &mut [VcfRecord],
    ) -> Result<Vec<CarriedInfoField>, genuma_reads::Error> {
        let fields = self.read_fields(genome)?;
        let sources: Vec<InfoFieldDefinition> = fields.iter().map(|field| field.source.clone()).collect();
        let variants: Vec<Option<SmallVariant>> = records.iter().map(small_variant).collect();
        let wanted: HashSet<SmallVariant> = variants.iter().flatten().cloned().collect();
        let known = KnownInfo::read_vcf_file(&self.path, genome, &sources, &wanted)?;
        for (record, variant) in records.iter_mut().zip(&variants) {
            let Some(values) = variant.as_ref().and_then(|variant| known.values_of_variant(variant)) else { continue };
            let present = fields
                .iter()
                .zip(values)
                .filter_map(|(field, value)| Some(KnownInfoValue { id: field.id.clone(), value: value.clone()? }));
            record.known_info.extend(present);
        }
        Ok(fields)
    }
}

/// The record as a small variant; `None` if ALT is not a sequence of bases (breakends, symbolic alleles).
fn small_variant(record: &VcfRecord) -> Option<SmallVariant> {
    let AltAllele::Bases(alternative) = &record.alternative else { return None };
    let bases = [record.reference.as_bytes(), alternative.as_bytes()];
    Some(SmallVariant::from_untrimmed_alleles(record.chrom, record.pos - 1, bases[0], bases[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_taken_get_a_prefix() {
        let ids = ["CLNSIG", "AF", "POPAF", "BCSQ", "SHARED", "SCREEN", "AF_popmax"].map(carried_field_id);
        let expected = ["CLNSIG", "KNOWN_AF", "KNOWN_POPAF", "KNOWN_BCSQ", "KNOWN_SHARED", "KNOWN_SCREEN", "AF_popmax"];
        assert_eq!(ids, expected);
    }
}
