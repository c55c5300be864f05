//! INFO fields of small variants from a VCF file of known variants, such as CLNSIG of ClinVar.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::error::{Error, KnownVariantsFault};
use crate::fasta::Reference;
use crate::known_vcf::{KnownVcf, SmallVariant};

/// Declaration of an INFO field in a VCF header (section 1.4.2 of VCF 4.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InfoFieldDefinition {
    /// ID of the field.
    pub id: String,
    /// Number of values: a count, `A`, `R`, `G` or `.`.
    pub number: String,
    /// Type of the values, such as `Float`.
    pub value_type: String,
    /// Description, without the quotes around it; quotes and backslashes in it are escaped.
    pub description: String,
}

impl InfoFieldDefinition {
    /// Parses a header line; `None` if it does not declare an INFO field.
    fn parse(line: &str) -> Option<InfoFieldDefinition> {
        let fields = line.strip_prefix("##INFO=<")?;
        // The description may contain commas, and is the only value in quotes that genuma writes.
        let (plain, quoted) = fields.split_once("Description=\"").unwrap_or((fields, ""));
        let value = |key: &str| plain.split([',', '>']).find_map(|field| field.strip_prefix(key)?.strip_prefix('='));
        let mut is_escaped = false;
        let is_end = |c: char| {
            let ends = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            ends
        };
        let description = quoted.split(is_end).next().unwrap_or_default().to_owned();
        Some(InfoFieldDefinition {
            id: value("ID")?.to_owned(),
            number: value("Number").unwrap_or(".").to_owned(),
            value_type: value("Type").unwrap_or("String").to_owned(),
            description,
        })
    }
}

/// Checks the header, the first record and the index of a VCF file, and returns the declarations of the INFO fields
/// `ids`, in their order.
///
/// # Errors
/// The file cannot be read or is no VCF file, the reference has none of its contigs, or the header does not declare a
/// field.
pub fn read_info_definitions(
    path: &Path,
    genome: &Reference,
    ids: &[String],
) -> Result<Vec<InfoFieldDefinition>, Error> {
    let vcf = KnownVcf { path, genome };
    let header = vcf.check_header_and_index()?;
    let declared: Vec<InfoFieldDefinition> =
        header.iter().filter_map(|line| InfoFieldDefinition::parse(line)).collect();
    let find = |id: &String| {
        declared.iter().find(|field| field.id == *id).cloned().ok_or_else(|| {
            let declared = declared.iter().map(|field| field.id.clone()).collect();
            vcf.error_at(0, KnownVariantsFault::NoInfoField { id: id.clone(), declared })
        })
    };
    ids.iter().map(find).collect()
}

/// Values of INFO fields of known variants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownInfo {
    by_variant: HashMap<SmallVariant, Vec<Option<String>>>,
}

impl KnownInfo {
    /// Reads the values of `fields` for `variants` from a VCF file. Values for each allele or genotype are reduced to
    /// those of the variant. If several records have the same variant, the first value of each field counts.
    ///
    /// # Errors
    /// The file or its index cannot be read or is damaged; a line is no VCF record; the file has no contig of the
    /// reference.
    pub fn read_vcf_file(
        path: &Path,
        genome: &Reference,
        fields: &[InfoFieldDefinition],
        variants: &HashSet<SmallVariant>,
    ) -> Result<KnownInfo, Error> {
        let mut found = KnownInfo::default();
        KnownVcf { path, genome }.for_each_record(variants, &mut |record| {
            for (number, variant) in record.variants().filter(|(_, variant)| variants.contains(variant)) {
                let values = fields.iter().map(|field| value_of_allele(record.info, field, number)).collect();
                let known = found.by_variant.entry(variant).or_insert_with(|| vec![None; fields.len()]);
                merge_missing_values(known, values);
            }
        })?;
        Ok(found)
    }

    /// Values of a variant, in the order of the fields: `None` for a field that its record lacks, an empty text for a
    /// flag that is set. `None` if the file does not list the variant.
    pub fn values_of_variant(&self, variant: &SmallVariant) -> Option<&[Option<String>]> {
        self.by_variant.get(variant).map(Vec::as_slice)
    }
}

fn merge_missing_values(known: &mut [Option<String>], values: Vec<Option<String>>) {
    for (known, value) in known.iter_mut().zip(values) {
        if known.is_none() {
            *known = value;
        }
    }
}

/// The value of an INFO field for ALT allele number `alternative` (from 0), as text for a record with this ALT allele
/// only. `None` if the field is missing or all its values are.
fn value_of_allele(info: &str, field: &InfoFieldDefinition, alternative: usize) -> Option<String> {
    let id = field.id.as_str();
    let text = info.split(';').find_map(|item| match item.split_once('=') {
        Some((key, value)) => (key == id).then_some(value),
        None => (item == id).then_some(""),
    })?;
    let values: Vec<&str> = text.split(',').collect();
    let (reference, own) = (0, alternative + 1);
    // Genotypes in the order of VCF: the heterozygous one of REF and this allele, and the homozygous one.
    let heterozygous = own * (own + 1) / 2;
    let chosen = match field.number.as_str() {
        "A" => vec![alternative],
        "R" => vec![reference, own],
        "G" => vec![0, heterozygous, heterozygous + own],
        _ => (0..values.len()).collect(),
    };
    let chosen: Vec<&str> = chosen.into_iter().map(|at| values.get(at).copied().unwrap_or(".")).collect();
    // INFO must not contain white space (section 1.6.1).
    chosen.iter().any(|value| *value != ".").then(|| chosen.join(",").replace(' ', "%20"))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::fasta::Contig;

    const HEADER: &str = "##fileformat=VCFv4.2\n\
        ##INFO=<ID=AF,Number=A,Type=Float,Description=\"Frequency, of \\\"all\\\" people\">\n\
        ##INFO=<ID=CNT,Number=R,Type=Integer,Description=\"Counts\">\n\
        ##INFO=<ID=GL,Number=G,Type=Integer,Description=\"Genotypes\">\n\
        ##INFO=<ID=SIG,Number=.,Type=String,Description=\"Significance\",Source=\"x\">\n\
        ##INFO=<ID=HOT,Number=0,Type=Flag,Description=\"Hotspot\">\n\
        #CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n";

    fn genome() -> Reference {
        Reference::from_contigs(vec![Contig { name: "chr1".into(), seq: b"ACGTACGTACGTACGTACGT".to_vec() }])
    }

    fn file(records: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write!(file, "{HEADER}{records}").unwrap();
        file
    }

    fn ids(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn definitions_are_copied_and_unknown_fields_refused() {
        let file = file("");
        let fields = read_info_definitions(file.path(), &genome(), &ids(&["SIG", "AF"])).unwrap();
        assert_eq!(fields.iter().map(|field| field.number.as_str()).collect::<Vec<_>>(), [".", "A"]);
        assert_eq!(fields[0].description, "Significance");
        assert_eq!(fields[1].description, "Frequency, of \\\"all\\\" people");
        assert_eq!(fields[1].value_type, "Float");
        let error = read_info_definitions(file.path(), &genome(), &ids(&["CLNSIG"])).unwrap_err().to_string();
        assert!(error.contains("no INFO field \"CLNSIG\"; it has AF, CNT, GL, SIG, HOT"), "{error}");
    }

    #[test]
    fn values_are_those_of_the_allele() {
        let records = "chr1\t3\t.\tG\tA,T\t.\t.\tAF=0.1,0.2;CNT=7,8,9;GL=0,1,2,3,4,5;SIG=a b,c;HOT\n\
            chr1\t3\t.\tG\tT\t.\t.\tAF=0.9;CNT=.,.\n\
            chr1\t5\t.\tAC\tTG\t.\t.\tAF=.;SIG=x\n";
        let file = file(records);
        let names = ids(&["AF", "CNT", "GL", "SIG", "HOT"]);
        let fields = read_info_definitions(file.path(), &genome(), &names).unwrap();
        let variant = |pos, from: &[u8], to: &[u8]| SmallVariant::from_untrimmed_alleles(0, pos, from, to);
        let [second, double, single] = [variant(2, b"G", b"T"), variant(4, b"AC", b"TG"), variant(4, b"A", b"T")];
        let wanted = HashSet::from([second.clone(), double.clone(), single.clone()]);
        let found = KnownInfo::read_vcf_file(file.path(), &genome(), &fields, &wanted).unwrap();
        let texts = |variant: &SmallVariant| {
            let values = found.values_of_variant(variant)?;
            Some(values.iter().map(|value| value.clone().unwrap_or("-".into())).collect::<Vec<String>>())
        };
        assert_eq!(texts(&second), Some(ids(&["0.2", "7,9", "0,3,5", "a%20b,c", ""])));
        assert_eq!(texts(&double), Some(ids(&["-", "-", "-", "x", "-"])));
        // A substitution of two bases says nothing of its parts.
        assert_eq!(texts(&single), None);
    }
}
