//! Fields of known variants that the calls get (`--known-info`).

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use genuma_reads::fasta::Reference;
use genuma_somatic::known_info::{KnownInfoSource, carried_field_id};

use crate::errors::UsageError;

/// Value of `--known-info`: fields, and the VCF file that has them if it is not that of `--known`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownInfoOption {
    path: Option<PathBuf>,
    fields: Vec<String>,
}

/// Parses `FIELD,FIELD` or `VCF:FIELD,FIELD`.
///
/// # Errors
/// A field is no key of INFO.
pub(crate) fn parse_known_info(text: &str) -> Result<KnownInfoOption, String> {
    let (path, fields) = match text.rsplit_once(':') {
        Some((path, fields)) => (Some(PathBuf::from(path)), fields),
        None => (None, text),
    };
    let is_key = |field: &str| {
        field.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && field.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')
    };
    let fields: Vec<String> = fields.split(',').map(str::to_owned).collect();
    match fields.iter().find(|field| !is_key(field)) {
        Some(field) => Err(format!(
            "'{field}' is not the name of an INFO field: give names such as CLNSIG,CLNDN, and the file before them if it is not that of --known: clinvar.vcf.gz:CLNSIG"
        )),
        None => Ok(KnownInfoOption { path, fields }),
    }
}

/// Returns the files with their fields. `known` is the file of `--known`.
///
/// # Errors
/// There is no file for a field, a file is a pipe, or two fields would have the same name in the calls.
pub(crate) fn known_info_sources(
    options: &[KnownInfoOption],
    known: Option<&Path>,
) -> Result<Vec<KnownInfoSource>, UsageError> {
    let mut first_source: HashMap<String, &str> = HashMap::new();
    let mut sources = Vec::new();
    for KnownInfoOption { path, fields } in options {
        let Some(path) = path.as_deref().or(known) else {
            let given = fields.join(",");
            return Err(UsageError(format!(
                "--known-info {given}: give the VCF file too, as --known-info VCF:{given}, or with --known"
            )));
        };
        // I/O error ignored: a file that cannot be read is reported when it is checked. It is read then and at the end.
        if path.metadata().is_ok_and(|file| !file.is_file()) {
            return Err(UsageError(format!(
                "--known-info: {} is not a regular file, and it is read twice: save it to a file",
                path.display()
            )));
        }
        for field in fields {
            if let Some(other) = first_source.insert(carried_field_id(field), field) {
                return Err(UsageError(format!(
                    "--known-info: {other} and {field} would have the same name in the calls: give one of them, or rename a field with `bcftools annotate --rename-annots`"
                )));
            }
        }
        sources.push(KnownInfoSource { path: path.to_owned(), fields: fields.clone() });
    }
    Ok(sources)
}

/// Checks that each file fits the reference and declares its fields.
///
/// # Errors
/// A file cannot be read, is no VCF file, does not fit the reference, or does not declare a field.
pub(crate) fn check_known_info(sources: &[KnownInfoSource], genome: &Reference) -> Result<(), genuma_reads::Error> {
    sources.iter().try_for_each(|source| source.read_fields(genome).map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_from_fields() {
        let parse = |text: &str| known_info_sources(&[parse_known_info(text).unwrap()], Some(Path::new("/k.vcf")));
        let source = |path: &str, fields: &[&str]| KnownInfoSource {
            path: path.into(),
            fields: fields.iter().map(|field| (*field).to_owned()).collect(),
        };
        assert_eq!(parse("AF,AC.x").unwrap(), [source("/k.vcf", &["AF", "AC.x"])]);
        assert_eq!(parse("/a:b/c.vcf.gz:CLNSIG").unwrap(), [source("/a:b/c.vcf.gz", &["CLNSIG"])]);
        assert!(parse_known_info("AF,").is_err() && parse_known_info("a.vcf:A B").is_err());
        assert!(parse("AF,AF").unwrap_err().to_string().contains("same name"));
        let without_file = known_info_sources(&[parse_known_info("AF").unwrap()], None);
        assert!(without_file.unwrap_err().to_string().contains("--known-info VCF:AF"));
    }
}
