//! Reads the files of a folder, and removes measured values (times, memory) from them, so that runs can be compared.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

/// Content of all files in a folder and its subfolders, by relative path.
pub(crate) type FolderSnapshot = BTreeMap<String, Vec<u8>>;

/// Reads all files in a folder and its subfolders.
///
/// # Errors
/// A file or folder cannot be read.
pub(crate) fn read_folder_snapshot(folder: &Path) -> io::Result<FolderSnapshot> {
    let mut found = FolderSnapshot::new();
    add_folder(folder, "", &mut found)?;
    Ok(found)
}

fn add_folder(folder: &Path, name: &str, found: &mut FolderSnapshot) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = format!("{name}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            add_folder(&entry.path(), &format!("{path}/"), found)?;
        } else {
            found.insert(path, fs::read(entry.path())?);
        }
    }
    Ok(())
}

/// Copies a file, or a folder with its content.
///
/// # Errors
/// The source cannot be read, or the copy cannot be written.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        return fs::copy(from, to).map(|_| ());
    }
    fs::create_dir_all(to)?;
    fs::read_dir(from)?.try_for_each(|entry| {
        let entry = entry?;
        copy_tree(&entry.path(), &to.join(entry.file_name()))
    })
}

/// Returns the content of a file without values that vary between runs: times, memory, and the distribution of work to
/// threads.
///
/// In JSON the keys of [`is_measured_key`] and list items that mention packed reads are removed, in HTML the elements
/// that [`remove_measured_rows`] removes. Other files are unchanged.
pub(crate) fn content_without_measurements(path: &str, bytes: &[u8]) -> Vec<u8> {
    if path.ends_with(".json") {
        let value = serde_json::from_slice(bytes).map(remove_measured_values);
        return value.map_or_else(|_| bytes.to_vec(), |value| value.to_string().into_bytes());
    }
    if path.ends_with(".html") {
        return remove_measured_rows(&String::from_utf8_lossy(bytes)).into_bytes();
    }
    bytes.to_vec()
}

/// Returns whether the value of a JSON key varies between runs: command line, dates, times, memory, spilled bytes,
/// distribution of work to threads, processes and pages, and whether the run was resumed.
fn is_measured_key(key: &str) -> bool {
    key.ends_with("_s")
        || key.contains("seconds")
        || key.starts_with("peak")
        || matches!(
            key,
            "command"
                | "date"
                | "resumed"
                | "workers"
                | "copies"
                | "instances"
                | "pages"
                | "spilled_bytes"
                | "resources"
                | "timeline"
        )
}

fn remove_measured_values(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().filter(|(key, _)| !is_measured_key(key));
            Value::Object(kept.map(|(key, value)| (key, remove_measured_values(value))).collect())
        }
        Value::Array(list) => {
            let kept = list.into_iter().filter(|value| !mentions_packed_reads(&value.to_string()));
            Value::Array(kept.map(remove_measured_values).collect())
        }
        other => other,
    }
}

/// Start of the timeline plots in the report. They end with their section of the page.
const TIMELINE_START: &str = r#"<div class="charts timeline">"#;

/// Removes from an HTML page the elements (rows, paragraphs) with the command line, a date, a time, a size of memory or
/// a mention of packed reads, and the timeline plots.
fn remove_measured_rows(page: &str) -> String {
    // Remove the timeline from the first figure to the last.
    let (before, behind) = page.split_once(TIMELINE_START).unwrap_or((page, ""));
    let page = [before, behind.split_once("<section").map_or("", |(_, rest)| rest)].concat();
    let rows = page.replace("<tr", "\n<tr").replace("<div", "\n<div").replace("<p", "\n<p");
    rows.lines()
        .filter(|row| {
            !row.contains("<dt>Command")
                && !row.contains(" UTC")
                && !contains_measure(row)
                && !mentions_packed_reads(row)
        })
        .collect()
}

/// Returns whether a text mentions packed reads. A run that cannot write them because of a fault reads the input files
/// again, and its ledger says so.
fn mentions_packed_reads(text: &str) -> bool {
    text.contains(" packed reads ")
}

/// Returns whether a text contains a number with a unit of time or memory.
fn contains_measure(text: &str) -> bool {
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
            let json =
                format!(r#"{{"name":"{name}","steps":[{{"wall_s":{seconds},"kmers":4}}],"peak_bytes":{bytes}}}"#);
            content_without_measurements("x.json", json.as_bytes())
        });
        assert_eq!(one, other);
        assert_eq!(String::from_utf8_lossy(&one), r#"{"name":"a","steps":[{"kmers":4}]}"#);
        let page = |time: &str| format!("<table><tr><td>count<td>{time} s</tr><tr><td>SNV<td>4 sites</tr></table>");
        assert_eq!(
            content_without_measurements("x.html", page("1.5").as_bytes()),
            content_without_measurements("x.html", page("22").as_bytes())
        );
        assert!(
            String::from_utf8_lossy(&content_without_measurements("x.html", page("1").as_bytes())).contains("4 sites")
        );
        assert_eq!(content_without_measurements("x.sam", b"0.1 s"), b"0.1 s");
        let page = |line: &str| format!("<p>a{TIMELINE_START}<path d=\"{line}\"/></div><section><p>b");
        assert_eq!(
            content_without_measurements("x.html", page("M1").as_bytes()),
            content_without_measurements("x.html", page("M2").as_bytes())
        );
        let kept = content_without_measurements("x.html", page("M1").as_bytes());
        assert!([&b"<p>a"[..], b"<p>b"].iter().all(|row| kept.windows(4).any(|at| at == *row)));
    }
}
