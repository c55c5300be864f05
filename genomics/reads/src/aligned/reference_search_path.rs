//! Reference sequences in files that are named by the MD5 sum of their bases, as htslib stores them. The environment
//! variables `REF_CACHE` and `REF_PATH` of samtools name the folders. Nothing is fetched from the network.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::FileFault;
use crate::md5_sum::md5_hex;

/// Paths in which a reference sequence is searched for, in this order, as templates. `%s` stands for the MD5 sum in
/// hexadecimal digits, `%2s` for its next two digits. Digits that no `%s` contains become the last component of the
/// path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ReferenceSearchPath {
    templates: Vec<String>,
    /// Entries of `REF_PATH` that are network addresses. They are only mentioned in messages.
    urls: Vec<String>,
}

impl ReferenceSearchPath {
    /// Reads the templates from the environment variables `REF_CACHE` and `REF_PATH`.
    pub(super) fn from_environment() -> ReferenceSearchPath {
        ReferenceSearchPath::new(std::env::var_os("REF_CACHE").as_deref(), std::env::var_os("REF_PATH").as_deref())
    }

    /// Creates the list of templates. `cache` is one template; `search_path` is a list of templates and network
    /// addresses, separated by `:`.
    fn new(cache: Option<&OsStr>, search_path: Option<&OsStr>) -> ReferenceSearchPath {
        let mut found = ReferenceSearchPath::default();
        found
            .templates
            .extend(cache.filter(|value| !value.is_empty()).map(|value| value.to_string_lossy().into_owned()));
        for entry in search_path.map(|value| split_search_path(&value.to_string_lossy())).unwrap_or_default() {
            if is_url(&entry) { found.urls.push(entry) } else { found.templates.push(entry) }
        }
        found
    }

    /// Whether there is no folder in which sequences could be searched for.
    pub(super) fn has_no_path_templates(&self) -> bool {
        self.templates.is_empty()
    }

    /// Reads the bases, in upper case, of the sequence with this MD5 sum and length from the first path that exists.
    ///
    /// # Errors
    /// No file of that name exists, it cannot be read, or its bases have another sum or length.
    pub(super) fn read_sequence_by_md5(&self, name: &[u8], md5: &str, length: usize) -> io::Result<Vec<u8>> {
        let md5 = md5.to_ascii_lowercase();
        let fault = |reason: String| {
            let name = String::from_utf8_lossy(name).into_owned();
            io::Error::other(FileFault::ReferenceSearchPath { name, md5: md5.clone(), reason })
        };
        let paths: Vec<PathBuf> = self.templates.iter().map(|template| expand_template(template, &md5)).collect();
        // I/O error ignored: reported as a missing sequence, with the paths.
        let Some(path) = paths.iter().find(|path| path.is_file()) else {
            return Err(fault(self.missing_reason(&paths)));
        };
        let mut bases = std::fs::read(path).map_err(|error| fault(format!("{}: {error}", path.display())))?;
        bases.retain(|base| !base.is_ascii_whitespace());
        bases.make_ascii_uppercase();
        if bases.len() != length || md5_hex(&bases) != md5 {
            return Err(fault(format!("{} has other bases than its name says", path.display())));
        }
        Ok(bases)
    }

    fn missing_reason(&self, paths: &[PathBuf]) -> String {
        let tried: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let mut reason = format!("no such file: {}", tried.join(", "));
        if !self.urls.is_empty() {
            reason += &format!("; addresses in REF_PATH are not fetched: {}", self.urls.join(", "));
        }
        reason
    }
}

fn is_url(entry: &str) -> bool {
    ["http://", "https://", "ftp://", "s3://"].iter().any(|scheme| entry.starts_with(scheme))
}

/// Entries of a list separated by `:`. `::` is a colon within an entry; the colons of an address (scheme and port) do
/// not separate.
fn split_search_path(list: &str) -> Vec<String> {
    let mut entries = vec![String::new()];
    let mut rest = list;
    while let Some(character) = rest.chars().next() {
        let Some(entry) = entries.last_mut() else { break };
        let scheme = ["http", "https", "ftp", "s3"].contains(&entry.as_str()) && rest.starts_with("://");
        let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
        let is_port =
            is_url(entry) && digits > 0 && matches!(rest.as_bytes().get(1 + digits), None | Some(b'/' | b':'));
        if character != ':' || scheme || is_port {
            entry.push(character);
            rest = &rest[character.len_utf8()..];
        } else if rest.starts_with("::") {
            entry.push(':');
            rest = &rest[2..];
        } else {
            entries.push(String::new());
            rest = &rest[1..];
        }
    }
    entries.retain(|entry| !entry.is_empty());
    entries
}

fn expand_template(template: &str, md5: &str) -> PathBuf {
    let mut path = String::new();
    let (mut rest, mut digits) = (template, md5);
    while let Some((before, after)) = rest.split_once('%') {
        path += before;
        let width = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        match after[width..].strip_prefix('s') {
            Some(tail) => {
                let taken = after[..width].parse().unwrap_or(digits.len()).min(digits.len());
                path += &digits[..taken];
                (digits, rest) = (&digits[taken..], tail);
            }
            None => {
                path.push('%');
                rest = after;
            }
        }
    }
    path += rest;
    if digits.is_empty() { PathBuf::from(path) } else { Path::new(&path).join(digits) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MD5: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn templates_expand_as_in_htslib() {
        for (template, expected) in [
            ("/cache/%2s/%2s/%s", "/cache/01/23/456789abcdef0123456789abcdef"),
            ("/cache/%s", "/cache/0123456789abcdef0123456789abcdef"),
            ("/cache", "/cache/0123456789abcdef0123456789abcdef"),
            ("/cache/%2s", "/cache/01/23456789abcdef0123456789abcdef"),
            ("/100%/%4s/%s.seq", "/100%/0123/456789abcdef0123456789abcdef.seq"),
        ] {
            assert_eq!(expand_template(template, MD5), Path::new(expected), "{template}");
        }
    }

    #[test]
    fn search_paths_are_split_at_colons() {
        let list = "/a/%2s/%s:/b::c:https://www.ebi.ac.uk/ena/cram/md5/%s:http://host:8080/%s::/d:";
        let found = ReferenceSearchPath::new(Some(OsStr::new("/cache/%s")), Some(OsStr::new(list)));
        assert_eq!(found.templates, ["/cache/%s", "/a/%2s/%s", "/b:c"]);
        assert_eq!(found.urls, ["https://www.ebi.ac.uk/ena/cram/md5/%s", "http://host:8080/%s:/d"]);
        assert!(ReferenceSearchPath::new(None, Some(OsStr::new("https://host/%s"))).has_no_path_templates());
        assert_eq!(ReferenceSearchPath::new(Some(OsStr::new("")), None), ReferenceSearchPath::default());
    }

    #[test]
    fn a_sequence_is_found_by_its_sum_and_checked() {
        let folder = tempfile::tempdir().unwrap();
        let md5 = md5_hex(b"ACGTN");
        std::fs::write(folder.path().join(&md5), b"acgtn\n").unwrap();
        let cache = ReferenceSearchPath::new(None, Some(folder.path().as_os_str()));
        assert_eq!(cache.read_sequence_by_md5(b"c1", &md5.to_uppercase(), 5).unwrap(), b"ACGTN");
        let error = cache.read_sequence_by_md5(b"c1", MD5, 5).unwrap_err().to_string();
        assert!(error.contains("\"c1\"") && error.contains("no such file") && error.contains(MD5), "{error}");
        std::fs::write(folder.path().join(&md5), b"ACGTA").unwrap();
        let error = cache.read_sequence_by_md5(b"c1", &md5, 5).unwrap_err().to_string();
        assert!(error.contains("has other bases than its name says"), "{error}");
    }
}
