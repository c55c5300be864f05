//! Places of depots and names of objects, as they are given.

use std::fmt;
use std::path::PathBuf;

use crate::error::Error;

/// Bytes that a name has at most: with what stands around those of drafts it is still a file's name.
const LONGEST: usize = 160;

/// Whose bucket it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Provider {
    /// S3, of Amazon or anyone who speaks like it.
    S3,
    /// Google Cloud Storage.
    Google,
}

impl Provider {
    fn scheme(self) -> &'static str {
        match self {
            Provider::S3 => "s3",
            Provider::Google => "gs",
        }
    }
}

/// A bucket and where in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InBucket {
    /// Whose it is.
    pub(crate) provider: Provider,
    /// Its name.
    pub bucket: String,
    /// What the names of all objects begin with: empty, or parts with a slash between each two.
    pub prefix: String,
}

impl InBucket {
    /// An object's key in the bucket.
    pub fn key(&self, name: &str) -> String {
        if self.prefix.is_empty() { name.to_owned() } else { format!("{}/{name}", self.prefix) }
    }
}

impl fmt::Display for InBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.provider.scheme(), self.bucket)?;
        if self.prefix.is_empty() { Ok(()) } else { write!(f, "/{}", self.prefix) }
    }
}

/// Where a depot is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In a folder.
    Folder(PathBuf),
    /// In a bucket.
    Bucket(InBucket),
}

impl Place {
    /// Understands what a user wrote.
    pub fn parse(text: &str) -> Result<Place, Error> {
        let wrong = |why: &str| Error::Place { place: text.to_owned(), why: why.to_owned() };
        match text.split_once(':') {
            Some(("file", _)) => {
                folder_of_url(text).map(Place::Folder).ok_or_else(|| wrong("not a folder's URL"))
            }
            Some(("s3", rest)) => in_bucket(Provider::S3, rest).map(Place::Bucket).map_err(wrong),
            Some(("gs", rest)) => in_bucket(Provider::Google, rest).map(Place::Bucket).map_err(wrong),
            Some((scheme, rest)) if rest.starts_with("//") && !scheme.contains('/') => {
                Err(wrong(&format!("'{scheme}' is not known")))
            }
            _ if text.is_empty() => Err(wrong("empty")),
            _ => Ok(Place::Folder(PathBuf::from(text))),
        }
    }
}

fn folder_of_url(text: &str) -> Option<PathBuf> {
    let url = url::Url::parse(text).ok().filter(|url| url.query().is_none() && url.fragment().is_none())?;
    text.starts_with("file:///").then(|| url.to_file_path().ok()).flatten()
}

/// What follows the colon of a bucket's URL.
fn in_bucket(provider: Provider, rest: &str) -> Result<InBucket, &'static str> {
    let rest = rest.strip_prefix("//").ok_or("two slashes belong behind the colon")?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    if bucket.is_empty() {
        return Err("no bucket is named");
    }
    let of_bucket = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._".contains(c);
    if !bucket.chars().all(of_bucket) || bucket.starts_with('.') {
        return Err("not a bucket's name");
    }
    let part = |part: &str| plain(part) && part != "." && part != "..";
    if !prefix.is_empty() && !prefix.split('/').all(part) {
        return Err("the prefix may have letters, digits and . _ - + = between its slashes");
    }
    Ok(InBucket { provider, bucket: bucket.to_owned(), prefix: prefix.to_owned() })
}

/// Not empty, and of letters that every file system and every bucket takes as they are.
fn plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-+=".contains(c))
}

/// Whether an object may have this name.
pub(crate) fn is_name(name: &str) -> bool {
    plain(name) && !name.starts_with('.') && name.len() <= LONGEST
}

/// The name, if an object may have it.
pub fn checked(name: &str) -> Result<&str, Error> {
    if is_name(name) { Ok(name) } else { Err(Error::Name { name: name.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(provider: Provider, bucket: &str, prefix: &str) -> Place {
        Place::Bucket(InBucket { provider, bucket: bucket.into(), prefix: prefix.into() })
    }

    #[test]
    fn places_are_understood() {
        let parsed = |text: &str| Place::parse(text).unwrap();
        for folder in ["runs/1", "/runs", ".", "a:b", "a/b://c", "~/x y"] {
            assert_eq!(parsed(folder), Place::Folder(folder.into()));
        }
        assert_eq!(parsed("file:///runs/one%20two"), Place::Folder("/runs/one two".into()));
        assert_eq!(parsed("s3://runs"), bucket(Provider::S3, "runs", ""));
        assert_eq!(parsed("s3://runs/"), bucket(Provider::S3, "runs", ""));
        assert_eq!(parsed("s3://runs/a/b=1/"), bucket(Provider::S3, "runs", "a/b=1"));
        assert_eq!(parsed("gs://my_runs.org/a"), bucket(Provider::Google, "my_runs.org", "a"));
    }

    #[test]
    fn what_is_no_place_is_told() {
        let said = |text: &str| Place::parse(text).unwrap_err().to_string();
        let end = "; give a folder, s3://bucket/prefix, gs://bucket/prefix or file:///folder";
        for (text, why) in [
            ("", "empty"),
            ("ftp://x/y", "'ftp' is not known"),
            ("file://host/x", "not a folder's URL"),
            ("file:x", "not a folder's URL"),
            ("s3:/runs", "two slashes belong behind the colon"),
            ("s3://", "no bucket is named"),
            ("s3:///x", "no bucket is named"),
            ("s3://Runs/x", "not a bucket's name"),
            ("s3://u:p@runs/x", "not a bucket's name"),
            ("gs://runs/a//b", "the prefix may have letters, digits and . _ - + = between its slashes"),
            ("gs://runs/a/../b", "the prefix may have letters, digits and . _ - + = between its slashes"),
            ("s3://runs/a?x", "the prefix may have letters, digits and . _ - + = between its slashes"),
        ] {
            assert_eq!(said(text), format!("{text}: {why}{end}"));
        }
    }

    #[test]
    fn keys_and_urls_are_of_the_place() {
        for text in ["s3://runs", "gs://runs/a/b"] {
            let Place::Bucket(place) = Place::parse(text).unwrap() else { panic!("a bucket") };
            assert_eq!(place.to_string(), text);
        }
        let key = |prefix: &str| {
            InBucket { provider: Provider::S3, bucket: "b".into(), prefix: prefix.into() }.key("x")
        };
        assert_eq!([key(""), key("a/b")], ["x", "a/b/x"]);
    }

    #[test]
    fn names_are_plain() {
        for name in ["x", "part-0001.bins", "a=1+b_2", "x..y"] {
            assert!(is_name(name), "{name}");
        }
        let long = "x".repeat(LONGEST + 1);
        for name in ["", ".", "..", ".x", "a/b", "a b", "ä", "a%", "a\n", &long] {
            assert!(!is_name(name), "{name}");
        }
        assert!(checked("a/b").unwrap_err().to_string().starts_with("'a/b' is no name for an object"));
    }
}
