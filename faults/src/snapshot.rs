//! What lies in a folder, and what of it must be the same each time.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

/// Files below a folder, by their path in it, with what they hold.
pub(crate) type Snapshot = BTreeMap<String, Vec<u8>>;

/// What lies below a folder now.
///
/// # Errors
/// Something in it cannot be read.
pub(crate) fn snapshot(folder: &Path) -> io::Result<Snapshot> {
    let mut found = Snapshot::new();
    walk(folder, "", &mut found)?;
    Ok(found)
}

fn walk(folder: &Path, name: &str, found: &mut Snapshot) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = format!("{name}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), &format!("{path}/"), found)?;
        } else {
            found.insert(path, fs::read(entry.path())?);
        }
    }
    Ok(())
}

/// Copies a file or a folder with all in it.
///
/// # Errors
/// It cannot be read, or the copy not written.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        return fs::copy(from, to).map(|_| ());
    }
    fs::create_dir_all(to)?;
    fs::read_dir(from)?.try_for_each(|entry| {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))
    })
}

/// What a file holds without what is measured: times, memory, and how work was shared out among threads.
///
/// In JSON the values of such keys go ([`is_measured`]), in pages the elements whose text is a time or a size of memory.
pub(crate) fn lasting(path: &str, bytes: &[u8]) -> Vec<u8> {
    if path.ends_with(".json") {
        let value = serde_json::from_slice(bytes).map(without_measures);
        return value.map_or_else(|_| bytes.to_vec(), |value| value.to_string().into_bytes());
    }
    if path.ends_with(".html") {
        return without_times(&String::from_utf8_lossy(bytes)).into_bytes();
    }
    bytes.to_vec()
}

/// Whether the value of a key of JSON is measured, as free memory is that a run may take, is how work fell on threads, processes and pages, or
/// tells `--resume`.
fn is_measured(key: &str) -> bool {
    key.ends_with("_s")
        || key.contains("seconds")
        || key.starts_with("peak")
        || matches!(
            key,
            "command"
                | "resumed"
                | "workers"
                | "copies"
                | "instances"
                | "pages"
                | "spilled_bytes"
                | "means"
                | "timeline"
        )
}

fn without_measures(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().filter(|(key, _)| !is_measured(key));
            Value::Object(kept.map(|(key, value)| (key, without_measures(value))).collect())
        }
        Value::Array(list) => {
            let kept = list.into_iter().filter(|value| !tells_copy(&value.to_string()));
            Value::Array(kept.map(without_measures).collect())
        }
        other => other,
    }
}

/// Where the figures of time begin that end with their section of the page.
const TIMELINE: &str = r#"<div class="charts timeline">"#;

/// The page row by row, without the rows that tell a time or a size of memory.
fn without_times(page: &str) -> String {
    // What happened when is measured from the first figure to the last.
    let (before, behind) = page.split_once(TIMELINE).unwrap_or((page, ""));
    let page = [before, behind.split_once("<section").map_or("", |(_, rest)| rest)].concat();
    let rows = page.replace("<tr", "\n<tr").replace("<div", "\n<div").replace("<p", "\n<p");
    rows.lines()
        .filter(|row| !row.contains("<dt>Command") && !tells_measure(row) && !tells_copy(row))
        .collect()
}

/// Whether it tells whether there is a packed copy of the reads: without one, as where it cannot be written, the files are read again, and the ledger says so.
fn tells_copy(text: &str) -> bool {
    text.contains(" packed copy ")
}

/// Whether a number with a unit of time or memory stands in the text.
fn tells_measure(text: &str) -> bool {
    [" s", " ms", " min", " h", " kB", " MB", " GB", " KiB", " MiB", " GiB"].iter().any(|unit| {
        text.match_indices(unit).any(|(at, _)| {
            let number = text[..at].chars().next_back().is_some_and(|c| c.is_ascii_digit());
            number && !text[at + unit.len()..].starts_with(|c: char| c.is_alphanumeric())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_do_not_last() {
        let [one, other] = [("0.1", "8", "a"), ("7.25", "9", "a")].map(|(seconds, bytes, name)| {
            let json = format!(
                r#"{{"name":"{name}","steps":[{{"wall_s":{seconds},"kmers":4}}],"peak_bytes":{bytes}}}"#
            );
            lasting("x.json", json.as_bytes())
        });
        assert_eq!(one, other);
        assert_eq!(String::from_utf8_lossy(&one), r#"{"name":"a","steps":[{"kmers":4}]}"#);
        let page =
            |time: &str| format!("<table><tr><td>count<td>{time} s</tr><tr><td>SNV<td>4 sites</tr></table>");
        assert_eq!(lasting("x.html", page("1.5").as_bytes()), lasting("x.html", page("22").as_bytes()));
        assert!(String::from_utf8_lossy(&lasting("x.html", page("1").as_bytes())).contains("4 sites"));
        assert_eq!(lasting("x.sam", b"0.1 s"), b"0.1 s");
        let page = |line: &str| format!("<p>a{TIMELINE}<path d=\"{line}\"/></div><section><p>b");
        assert_eq!(lasting("x.html", page("M1").as_bytes()), lasting("x.html", page("M2").as_bytes()));
        let kept = lasting("x.html", page("M1").as_bytes());
        assert!([&b"<p>a"[..], b"<p>b"].iter().all(|row| kept.windows(4).any(|at| at == *row)));
    }
}
