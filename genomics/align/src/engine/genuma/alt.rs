//! Reads the names of the ALT contigs from the file `PREFIX.alt`, as bwa mem does.
//!
//! The file is usually SAM and contains the alignments of the ALT contigs to the primary assembly. Only the first
//! column counts, the name of the contig. Lines that begin with `@` are ignored. A list of names is valid, too.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use genuma_reads::fasta::check_sequence_name;

use super::super::Error;
use crate::sam::Contigs;

/// Reads the names of the ALT contigs; `None` if the file does not exist. Logs a warning if `contigs` lacks some of
/// the names.
///
/// # Errors
/// The file cannot be read, or a line does not begin with a valid name.
pub(super) fn read_alt_contig_names(path: &Path, contigs: &Contigs) -> Result<Option<HashSet<String>>, Error> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(path)(error)),
    };
    let names = parse_alt_names(&bytes).map_err(|reason| Error::Reference { path: path.into(), reason })?;
    let mut unknown: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| contigs.contig_index(name.as_bytes()).is_none()).collect();
    unknown.sort_unstable();
    if let Some(first) = unknown.first() {
        tracing::warn!(
            "{}: {} of {} names, such as {first}, are not in the reference and are ignored, so ALT contigs that have other names \
             there are treated like primary sequences; check that the file belongs to this reference",
            path.display(),
            unknown.len(),
            names.len()
        );
    }
    Ok(Some(names))
}

/// The names in the first column. The error is the reason why a line is not valid.
fn parse_alt_names(bytes: &[u8]) -> Result<HashSet<String>, String> {
    let mut names = HashSet::new();
    for (number, line) in bytes.split(|&b| b == b'\n').enumerate() {
        let name = line.split(|b| b"\t\r".contains(b)).next().unwrap_or_default();
        if name.first() == Some(&b'@') || line.trim_ascii().is_empty() {
            continue;
        }
        let wrong =
            |reason: String| format!("line {} does not begin with the name of an ALT contig: {reason}", number + 1);
        if name.is_empty() {
            return Err(wrong("there is none".into()));
        }
        check_sequence_name(name).map_err(|fault| wrong(format!("it {fault}")))?;
        // A name that passed the check is ASCII.
        names.insert(String::from_utf8_lossy(name).into_owned());
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_first_columns() {
        let read = |text: &str| {
            parse_alt_names(text.as_bytes()).map(|names| {
                let mut names: Vec<String> = names.into_iter().collect();
                names.sort_unstable();
                names.join(" ")
            })
        };
        assert_eq!(read(""), Ok(String::new()));
        assert_eq!(read("a\t0\tchr1\nb\r\n\n@HD\tx\na\t16\tchr2\nHLA*01:01"), Ok("HLA*01:01 a b".into()));
        for (text, line) in [("a\n\tb\n", 2), (">a\nACGT\n", 1), ("a\nb c\t0\n", 2), ("a\n\u{1f}\u{8b}\0", 2)] {
            let said = read(text).unwrap_err();
            let expected = format!("line {line} does not begin with the name of an ALT contig: ");
            assert!(said.starts_with(&expected), "{text:?}: {said}");
        }
    }
}
