//! Reads the columns of a VCF file that scoring needs. Their values are kept as text.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use crate::error::{Error, Result};

/// One ALT allele of one VCF record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VcfRecord {
    /// CHROM: name of the contig.
    pub chrom: String,
    /// POS, 1-based.
    pub pos: usize,
    /// ID; `.` if missing.
    pub id: String,
    /// REF: bases of the reference from POS on, in upper case.
    pub reference: String,
    /// One ALT allele.
    pub alternate: String,
    /// QUAL as text; `.` if missing.
    pub quality: String,
    /// FILTER as text: `PASS`, `.`, or names joined by `;`.
    pub filter: String,
    /// INFO as map from key to value; flags have an empty value.
    pub info: HashMap<String, String>,
    /// Allele fraction of this allele in the tumour as text; empty if unknown. It is taken from the first of these that
    /// exists: FORMAT fields AF, Strelka's counts or AD of the tumour's column; AF of INFO.
    pub allele_fraction: String,
    /// Index of the record's line in the file, from 0.
    pub line_index: usize,
    /// Index of the allele in ALT, from 0.
    pub allele_index: usize,
}

impl VcfRecord {
    /// Returns whether the record passed all filters (FILTER is PASS or missing).
    pub fn has_passed(&self) -> bool {
        matches!(self.filter.as_str(), "PASS" | ".")
    }

    /// Returns the absolute value of the first value of an INFO field; `None` if it is missing or not an integer.
    pub fn absolute_info_value(&self, key: &str) -> Option<usize> {
        let first = self.info.get(key)?.split(',').next()?;
        first.parse::<i64>().ok().map(|n| n.unsigned_abs() as usize)
    }
}

/// Reads a VCF file, plain or gzipped. Each ALT allele of a record becomes a [`VcfRecord`] of its own;
/// `.`, `*`, `<*>` and `<NON_REF>` are left out.
///
/// # Errors
/// Returns an error if the file cannot be read or has a malformed line.
pub fn read_vcf(path: &Path) -> Result<Vec<VcfRecord>> {
    parse_vcf(&read_vcf_text(path)?, path)
}

/// Returns the text of a VCF file, plain or gzipped.
///
/// # Errors
/// Returns an error if the file cannot be read or decompressed.
pub fn read_vcf_text(path: &Path) -> Result<String> {
    let mut text = std::fs::read(path).map_err(Error::add_path_to_error(path))?;
    if text.starts_with(&[0x1f, 0x8b]) {
        let packed = std::mem::take(&mut text);
        flate2::read::MultiGzDecoder::new(packed.as_slice())
            .read_to_end(&mut text)
            .map_err(Error::add_path_to_error(path))?;
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Parses the text of a VCF file. `path` is named in error messages.
///
/// # Errors
/// Returns an error if the text is not VCF or has a malformed line.
pub fn parse_vcf(text: &str, path: &Path) -> Result<Vec<VcfRecord>> {
    let mut records = vec![];
    for_each_vcf_record(text, path, |record| records.push(record))?;
    Ok(records)
}

/// Parses the text of a VCF file like [`parse_vcf`], and calls `each` with one record after the other. For files with
/// more records than fit into memory with all of their INFO fields.
///
/// # Errors
/// Returns an error if the text is not VCF or has a malformed line.
pub fn for_each_vcf_record(text: &str, path: &Path, mut each: impl FnMut(VcfRecord)) -> Result<()> {
    let (mut header, mut tumour) = (false, TumourColumn::default());
    for (i, line) in text.lines().enumerate() {
        let fail = |what: &str| Error::Format { path: path.into(), line: i as u64 + 1, what: what.into() };
        if line.starts_with('#') {
            header |= line.starts_with("#CHROM") || line.starts_with("##fileformat=VCF");
            tumour.parse_header_line(line);
            continue;
        }
        if !header {
            return Err(fail(
                "not a VCF file, whose first line is ##fileformat=VCF...: give VCF, plain or compressed (not BCF)",
            ));
        }
        if line.is_empty() {
            continue;
        }
        let columns: Vec<&str> = line.split('\t').collect();
        let [chrom, pos, id, reference, alternates, quality, filter, info] =
            *columns.first_chunk::<8>().ok_or_else(|| fail("fewer than 8 columns; is the file truncated?"))?;
        let pos = pos.parse().map_err(|_| fail("POS is not a number"))?;
        let info: HashMap<String, String> = info
            .split(';')
            .map(|field| field.split_once('=').unwrap_or((field, "")))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        // `.`, `*` and the like are no alternate alleles.
        let new = |alternate: &&str| !matches!(*alternate, "." | "*" | "<*>" | "<NON_REF>");
        for (allele, alternate) in alternates.split(',').enumerate().filter(|(_, a)| new(a)) {
            each(VcfRecord {
                chrom: chrom.to_owned(),
                pos,
                id: id.to_owned(),
                reference: reference.to_ascii_uppercase(),
                alternate: alternate.to_owned(),
                quality: quality.to_owned(),
                filter: filter.to_owned(),
                allele_fraction: tumour.allele_fraction(&columns, &info, allele),
                info: info.clone(),
                line_index: i,
                allele_index: allele,
            });
        }
    }
    if !header {
        return Err(Error::Format {
            path: path.into(),
            line: 1,
            what: "the file is empty; expected a VCF file".into(),
        });
    }
    Ok(())
}

/// Finds the sample column of the tumour and reads allele fractions from it.
#[derive(Default)]
struct TumourColumn {
    /// Sample name of the tumour, if the header gives it as `##tumor_sample`.
    name: Option<String>,
    column: Option<usize>,
}

/// Column index of REF, from 0.
const REF_COLUMN: usize = 3;
const ALT_COLUMN: usize = 4;
const FORMAT_COLUMN: usize = 8;

impl TumourColumn {
    /// Takes the sample name or the column of the tumour from a header line, if the line gives it.
    fn parse_header_line(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix("##tumor_sample=") {
            self.name = Some(name.to_owned());
        }
        if line.starts_with("#CHROM") {
            let samples: Vec<&str> = line.split('\t').skip(FORMAT_COLUMN + 1).collect();
            let named = |name: &&str| match &self.name {
                Some(tumour) => *name == tumour,
                None => matches!(name.to_ascii_lowercase().as_str(), "tumor" | "tumour"),
            };
            let only = (samples.len() == 1).then_some(0);
            self.column = samples.iter().position(named).or(only).map(|at| at + FORMAT_COLUMN + 1);
        }
    }

    /// Returns the allele fraction of a record in the tumour, as text.
    fn allele_fraction(&self, columns: &[&str], info: &HashMap<String, String>, allele: usize) -> String {
        let of_column = || {
            let (keys, values) = (columns.get(FORMAT_COLUMN)?, columns.get(self.column?)?);
            let field = |key: &str| {
                let at = keys.split(':').position(|k| k == key)?;
                values.split(':').nth(at).filter(|v| *v != ".")
            };
            if let Some(share) = field("AF").and_then(|shares| shares.split(',').nth(allele)) {
                return Some(share.to_owned());
            }
            let counted = |key: &str| field(key)?.split(',').next()?.parse::<f64>().ok();
            // Strelka counts bases by letter, and reads that support an indel or the reference (tier 1).
            let [old, new] = [REF_COLUMN, ALT_COLUMN].map(|at| columns.get(at).copied().unwrap_or_default());
            let new = new.split(',').nth(allele).unwrap_or_default();
            let by_letter = || Some([counted(&format!("{old}U"))?, counted(&format!("{new}U"))?]);
            if let Some([old, new]) = by_letter().or_else(|| Some([counted("TAR")?, counted("TIR")?])) {
                return Some((new / (old + new)).to_string()).filter(|_| old + new > 0.0);
            }
            let depths: Vec<f64> = field("AD")?.split(',').filter_map(|n| n.parse().ok()).collect();
            let all: f64 = depths.iter().sum();
            Some((depths.get(allele + 1)? / all).to_string()).filter(|_| all > 0.0)
        };
        let of_info = || info.get("AF")?.split(',').nth(allele).map(str::to_owned);
        of_column().or_else(of_info).unwrap_or_default()
    }
}

#[cfg(test)]
pub(crate) fn parse_test_records(lines: &str) -> Vec<VcfRecord> {
    let tabbed: Vec<String> = lines.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join("\t")).collect();
    parse_vcf(&format!("##fileformat=VCFv4.2\n{}\n", tabbed.join("\n")), Path::new("test.vcf")).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alleles_come_one_by_one() {
        let found = parse_test_records("chr1 10 . a G,*,GT 50 PASS SVLEN=-12,3;FLAG\nchr1 20 x A . . low .");
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].reference.as_str(), found[1].alternate.as_str()), ("A", "GT"));
        assert_eq!(found.iter().map(|r| (r.line_index, r.allele_index)).collect::<Vec<_>>(), [(1, 0), (1, 2)]);
        assert_eq!(found[0].absolute_info_value("SVLEN"), Some(12));
        assert!(found[0].info.contains_key("FLAG") && found[0].has_passed());
    }

    #[test]
    fn the_tumours_column_says_its_share() {
        let of = |header: &str, lines: &str| -> Vec<String> {
            let text = format!("##fileformat=VCFv4.2\n{header}\n{lines}\n").replace(' ', "\t");
            parse_vcf(&text, Path::new("a.vcf")).unwrap().into_iter().map(|r| r.allele_fraction).collect()
        };
        let columns = "#CHROM POS ID REF ALT QUAL FILTER INFO FORMAT";
        let two = of(&format!("{columns} NORMAL TUMOR"), "c 1 . A C,G . . AF=0.9 GT:AF 0/0:0,0 0/1:0.25,0.125");
        assert_eq!(two, ["0.25", "0.125"]);
        let named = format!("##tumor_sample=a\n{columns} a b");
        assert_eq!(of(&named, "c 1 . A C . . . AD 6,2 9,0"), ["0.25"]);
        assert_eq!(of(&format!("{columns} x y"), "c 1 . A C . . AF=0.5 AD 6,2 9,0"), ["0.5"]);
        assert_eq!(of(&format!("{columns} x"), "c 1 . A C . . . AD 0,0"), [""]);
        assert_eq!(of("#CHROM", "c 1 . A C . . ."), [""]);
        let strelka = format!("{columns} NORMAL TUMOR");
        assert_eq!(of(&strelka, "c 1 . A C . . . DP:AU:CU:GU:TU 9:9,9:0,0:0,0:0,0 8:6,7:2,2:0,0:0,0"), ["0.25"]);
        assert_eq!(of(&strelka, "c 1 . AT A . . . DP:TAR:TIR 9:9,9:0,0 8:3,4:1,1"), ["0.25"]);
    }

    #[test]
    fn errors_name_the_line() {
        let message = |text: &str| parse_vcf(text, Path::new("a.vcf")).unwrap_err().to_string();
        assert!(message("##fileformat=VCFv4.2\nchr1\t10\n").starts_with("a.vcf: line 2: fewer than 8"));
        assert!(message("##fileformat=VCFv4.2\nchr1\tx\t.\tA\tC\t.\t.\t.\n").contains("POS is not a number"));
        assert!(message(">chr1\nACGT\n").contains("not a VCF"));
        assert!(message("").contains("empty"));
    }
}
