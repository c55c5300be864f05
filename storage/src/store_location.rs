//! Locations of run stores, as users give them, and rules for names of objects.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::error::Error;

/// Maximum length of an object name in bytes. The name of its temporary file, which has a prefix and a suffix, is then
/// short enough for file systems.
const MAX_NAME_BYTES: usize = 160;

/// Cloud service of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StorageProvider {
    /// Amazon S3 or a compatible service.
    S3,
    /// Google Cloud Storage.
    Google,
}

impl StorageProvider {
    fn scheme(self) -> &'static str {
        match self {
            StorageProvider::S3 => "s3",
            StorageProvider::Google => "gs",
        }
    }
}

/// A bucket, and the prefix of the keys of all objects of the run store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BucketLocation {
    pub(crate) provider: StorageProvider,
    /// Name of the bucket.
    pub bucket: String,
    /// Prefix of all keys: empty, or components separated by slashes. It has no slash at the end.
    pub prefix: String,
}

impl BucketLocation {
    /// Returns the key of an object in the bucket: the prefix of the run store, a slash, and the name of the object.
    #[cfg(any(feature = "cluster", test))]
    pub(crate) fn object_key(&self, name: &str) -> String {
        if self.prefix.is_empty() { name.to_owned() } else { format!("{}/{name}", self.prefix) }
    }
}

impl fmt::Display for BucketLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.provider.scheme(), self.bucket)?;
        if self.prefix.is_empty() { Ok(()) } else { write!(f, "/{}", self.prefix) }
    }
}

/// Location of a run store: a folder, or a bucket of a cloud provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreLocation {
    /// Path of the folder.
    Folder(PathBuf),
    /// A bucket of S3 or Google Cloud Storage, and the prefix of the keys.
    Bucket(BucketLocation),
}

impl StoreLocation {
    /// Parses the location of a run store: a folder, or a URL with the scheme `file`, `s3` or `gs`.
    pub fn parse(text: &str) -> Result<StoreLocation, Error> {
        let invalid = |reason: &str| Error::InvalidLocation { location: text.to_owned(), reason: reason.to_owned() };
        match text.split_once(':') {
            Some(("file", _)) => {
                parse_folder_url(text).map(StoreLocation::Folder).ok_or_else(|| invalid("not a folder's URL"))
            }
            Some(("s3", rest)) => {
                parse_bucket_url(StorageProvider::S3, rest).map(StoreLocation::Bucket).map_err(invalid)
            }
            Some(("gs", rest)) => {
                parse_bucket_url(StorageProvider::Google, rest).map(StoreLocation::Bucket).map_err(invalid)
            }
            Some((scheme, rest)) if rest.starts_with("//") && !scheme.contains('/') => {
                Err(invalid(&format!("the scheme '{scheme}' is not supported")))
            }
            _ if text.is_empty() => Err(invalid("empty")),
            _ => Ok(StoreLocation::Folder(PathBuf::from(text))),
        }
    }
}

/// Returns the absolute path of a `file` URL without a host, query and fragment. Percent-encoded bytes are decoded.
fn parse_folder_url(text: &str) -> Option<PathBuf> {
    let path = text.strip_prefix("file://").filter(|path| path.starts_with('/') && !path.contains(['?', '#']))?;
    Some(PathBuf::from(OsString::from_vec(percent_encoding::percent_decode_str(path).collect())))
}

/// Parses a bucket URL. `rest` is its part after `s3:` or `gs:`.
fn parse_bucket_url(provider: StorageProvider, rest: &str) -> Result<BucketLocation, &'static str> {
    let rest = rest.strip_prefix("//").ok_or("the colon must be followed by two slashes")?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    if bucket.is_empty() {
        return Err("the name of the bucket is missing");
    }
    let is_bucket_char = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._".contains(c);
    if !bucket.chars().all(is_bucket_char) || bucket.starts_with('.') {
        return Err("not a valid bucket name");
    }
    let is_prefix_part = |part: &str| is_portable_name(part) && part != "." && part != "..";
    if !prefix.is_empty() && !prefix.split('/').all(is_prefix_part) {
        return Err("the prefix may only have letters, digits and . _ - + = between its slashes");
    }
    Ok(BucketLocation { provider, bucket: bucket.to_owned(), prefix: prefix.to_owned() })
}

/// Returns whether a text is not empty and has only characters that are allowed in the names of all file systems and
/// buckets.
fn is_portable_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-+=".contains(c))
}

/// Returns whether a text is a valid object name.
pub(crate) fn is_object_name(name: &str) -> bool {
    is_portable_name(name) && !name.starts_with('.') && name.len() <= MAX_NAME_BYTES
}

/// Returns the name if it is a valid object name, else an error.
pub(crate) fn check_object_name(name: &str) -> Result<&str, Error> {
    if is_object_name(name) { Ok(name) } else { Err(Error::InvalidObjectName { name: name.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(provider: StorageProvider, bucket: &str, prefix: &str) -> StoreLocation {
        StoreLocation::Bucket(BucketLocation { provider, bucket: bucket.into(), prefix: prefix.into() })
    }

    #[test]
    fn locations_are_parsed() {
        let parsed = |text: &str| StoreLocation::parse(text).unwrap();
        for folder in ["runs/1", "/runs", ".", "a:b", "a/b://c", "~/x y"] {
            assert_eq!(parsed(folder), StoreLocation::Folder(folder.into()));
        }
        assert_eq!(parsed("file:///runs/one%20two"), StoreLocation::Folder("/runs/one two".into()));
        assert_eq!(parsed("s3://runs"), bucket(StorageProvider::S3, "runs", ""));
        assert_eq!(parsed("s3://runs/"), bucket(StorageProvider::S3, "runs", ""));
        assert_eq!(parsed("s3://runs/a/b=1/"), bucket(StorageProvider::S3, "runs", "a/b=1"));
        assert_eq!(parsed("gs://my_runs.org/a"), bucket(StorageProvider::Google, "my_runs.org", "a"));
    }

    #[test]
    fn invalid_locations_are_reported() {
        let message = |text: &str| StoreLocation::parse(text).unwrap_err().to_string();
        let end = "; give a folder, s3://bucket/prefix, gs://bucket/prefix or file:///folder";
        for (text, reason) in [
            ("", "empty"),
            ("ftp://x/y", "the scheme 'ftp' is not supported"),
            ("file://host/x", "not a folder's URL"),
            ("file:x", "not a folder's URL"),
            ("file:///x?y", "not a folder's URL"),
            ("file:///x#y", "not a folder's URL"),
            ("s3:/runs", "the colon must be followed by two slashes"),
            ("s3://", "the name of the bucket is missing"),
            ("s3:///x", "the name of the bucket is missing"),
            ("s3://Runs/x", "not a valid bucket name"),
            ("s3://u:p@runs/x", "not a valid bucket name"),
            ("gs://runs/a//b", "the prefix may only have letters, digits and . _ - + = between its slashes"),
            ("gs://runs/a/../b", "the prefix may only have letters, digits and . _ - + = between its slashes"),
            ("s3://runs/a?x", "the prefix may only have letters, digits and . _ - + = between its slashes"),
        ] {
            assert_eq!(message(text), format!("{text}: {reason}{end}"));
        }
    }

    #[test]
    fn keys_and_urls_of_a_bucket_location() {
        for text in ["s3://runs", "gs://runs/a/b"] {
            let StoreLocation::Bucket(location) = StoreLocation::parse(text).unwrap() else { panic!("a bucket") };
            assert_eq!(location.to_string(), text);
        }
        let key = |prefix: &str| {
            BucketLocation { provider: StorageProvider::S3, bucket: "b".into(), prefix: prefix.into() }.object_key("x")
        };
        assert_eq!([key(""), key("a/b")], ["x", "a/b/x"]);
    }

    #[test]
    fn object_names_are_portable() {
        for name in ["x", "part-0001.bins", "a=1+b_2", "x..y"] {
            assert!(is_object_name(name), "{name}");
        }
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        for name in ["", ".", "..", ".x", "a/b", "a b", "ä", "a%", "a\n", &long] {
            assert!(!is_object_name(name), "{name}");
        }
        assert!(check_object_name("a/b").unwrap_err().to_string().starts_with("'a/b' is not a valid object name"));
    }
}
