//! VCF in: the columns that scoring needs, as text.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use crate::error::{Error, Result};

/// One alternate allele of one record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// CHROM.
    pub chrom: String,
    /// POS, from 1.
    pub pos: usize,
    /// ID; `.` when there is none.
    pub id: String,
    /// REF.
    pub reference: String,
    /// One of ALT.
    pub alternate: String,
    /// QUAL as it stands.
    pub quality: String,
    /// FILTER as it stands.
    pub filter: String,
    /// INFO; flags have an empty value.
    pub info: HashMap<String, String>,
}

impl Record {
    /// Whether no filter speaks against it.
    pub fn passed(&self) -> bool {
        matches!(self.filter.as_str(), "PASS" | ".")
    }

    /// A number of INFO, the first of a list, without its sign.
    pub fn length(&self, key: &str) -> Option<usize> {
        let first = self.info.get(key)?.split(',').next()?;
        first.parse::<i64>().ok().map(|n| n.unsigned_abs() as usize)
    }
}

/// Reads a VCF file, plain or gzip'd; a record with several alternate alleles gives several.
pub fn read(path: &Path) -> Result<Vec<Record>> {
    let mut text = std::fs::read(path).map_err(Error::io(path))?;
    if text.starts_with(&[0x1f, 0x8b]) {
        let packed = std::mem::take(&mut text);
        flate2::read::MultiGzDecoder::new(packed.as_slice())
            .read_to_end(&mut text)
            .map_err(Error::io(path))?;
    }
    parse(&String::from_utf8_lossy(&text), path)
}

/// Reads the text of a VCF file; `path` is for errors.
pub fn parse(text: &str, path: &Path) -> Result<Vec<Record>> {
    let mut records = vec![];
    let mut header = false;
    for (i, line) in text.lines().enumerate() {
        let fail = |what: &str| Error::Format { path: path.into(), line: i as u64 + 1, what: what.into() };
        if line.starts_with('#') {
            header |= line.starts_with("#CHROM") || line.starts_with("##fileformat=VCF");
            continue;
        }
        if !header {
            return Err(fail("not a VCF file: it does not begin with ##fileformat=VCF"));
        }
        if line.is_empty() {
            continue;
        }
        let columns: Vec<&str> = line.split('\t').collect();
        let [chrom, pos, id, reference, alternates, quality, filter, info] = *columns
            .first_chunk::<8>()
            .ok_or_else(|| fail("fewer than 8 columns; is the file cut short?"))?;
        let pos = pos.parse().map_err(|_| fail("POS is not a number"))?;
        let info: HashMap<String, String> = info
            .split(';')
            .map(|field| field.split_once('=').unwrap_or((field, "")))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        // `.` and `*` say that there is nothing new here.
        for alternate in alternates.split(',').filter(|a| !matches!(*a, "." | "*" | "<*>" | "<NON_REF>")) {
            records.push(Record {
                chrom: chrom.to_owned(),
                pos,
                id: id.to_owned(),
                reference: reference.to_ascii_uppercase(),
                alternate: alternate.to_owned(),
                quality: quality.to_owned(),
                filter: filter.to_owned(),
                info: info.clone(),
            });
        }
    }
    if !header {
        return Err(Error::Format {
            path: path.into(),
            line: 1,
            what: "an empty file where a VCF file is due".into(),
        });
    }
    Ok(records)
}

#[cfg(test)]
pub(crate) fn records(lines: &str) -> Vec<Record> {
    let tabbed: Vec<String> =
        lines.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join("\t")).collect();
    parse(&format!("##fileformat=VCFv4.2\n{}\n", tabbed.join("\n")), Path::new("test.vcf")).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alleles_come_one_by_one() {
        let found = records("chr1 10 . a G,*,GT 50 PASS SVLEN=-12,3;FLAG\nchr1 20 x A . . low .");
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].reference.as_str(), found[1].alternate.as_str()), ("A", "GT"));
        assert_eq!(found[0].length("SVLEN"), Some(12));
        assert!(found[0].info.contains_key("FLAG") && found[0].passed());
    }

    #[test]
    fn errors_name_the_line() {
        let message = |text: &str| parse(text, Path::new("a.vcf")).unwrap_err().to_string();
        assert!(message("##fileformat=VCFv4.2\nchr1\t10\n").starts_with("a.vcf: line 2: fewer than 8"));
        assert!(message("##fileformat=VCFv4.2\nchr1\tx\t.\tA\tC\t.\t.\t.\n").contains("POS is not a number"));
        assert!(message(">chr1\nACGT\n").contains("not a VCF"));
        assert!(message("").contains("empty"));
    }
}
