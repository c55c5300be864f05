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
pub(crate) fn copy_file_or_folder(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        return fs::copy(from, to).map(|_| ());
    }
    fs::create_dir_all(to)?;
    fs::read_dir(from)?.try_for_each(|entry| {
        let entry = entry?;
        copy_file_or_folder(&entry.path(), &to.join(entry.file_name()))
    })
}

/// Returns the content of a file without values that vary between runs: times, memory, and the distribution of work to
/// threads.
///
/// In JSON the keys of [`is_measured_key`] and list items that mention packed reads are removed, in HTML the elements
/// that [`remove_measured_rows`] removes, in objects of steps their cost, in recordings of machines the free memory.
/// Other files are unchanged.
pub(crate) fn strip_measurements_from_content(path: &str, bytes: &[u8]) -> Vec<u8> {
    if path.ends_with(".json") {
        let value = serde_json::from_slice(bytes).map(remove_measured_values);
        return value.map_or_else(|_| bytes.to_vec(), |value| value.to_string().into_bytes());
    }
    if path.ends_with(".html") {
        return remove_measured_rows(&String::from_utf8_lossy(bytes)).into_bytes();
    }
    if bytes.starts_with(RECORDING_START) {
        return remove_free_memory(&String::from_utf8_lossy(bytes)).into_bytes();
    }
    object_without_cost(bytes).unwrap_or_else(|| bytes.to_vec())
}

/// First bytes of a recording of a machine (docs/formats/recording.md).
const RECORDING_START: &[u8] = b"genuma recording ";

/// Removes the free memory and the free huge pages from a recording.
fn remove_free_memory(recording: &str) -> String {
    let is_free = |line: &&str| line.contains("MemFree:") || line.contains("free_hugepages");
    let lines = recording.split("\\n").flat_map(str::lines);
    lines.filter(|line| !is_free(line)).collect::<Vec<_>>().join("\n")
}

/// Last bytes of an object of a step (docs/formats/object.md).
const OBJECT_END: &[u8] = b"GENUMAO4";

/// Returns an object of a step without the times and memory of its cost, and without the checksum of its trailer;
/// `None` if the bytes are no object.
fn object_without_cost(bytes: &[u8]) -> Option<Vec<u8>> {
    let (rest, footer) = bytes.strip_suffix(OBJECT_END)?.split_last_chunk::<16>()?;
    let trailer_bytes = u64::from_le_bytes(footer[..8].try_into().ok()?);
    let (blocks, trailer) = rest.split_at(rest.len().checked_sub(usize::try_from(trailer_bytes).ok()?)?);
    let mut at = 0;
    // Step, fingerprint, name of the cost.
    for _ in 0..3 {
        let text_bytes = take_varint(trailer, &mut at)?;
        at = at.checked_add(usize::try_from(text_bytes).ok()?)?;
    }
    let names = trailer.get(..at)?;
    // Wall time and CPU time, peak memory, whether it was resumed.
    at += 16;
    take_varint(trailer, &mut at)?;
    Some([blocks, names, trailer.get(at + 1..)?].concat())
}

/// Reads a number in the encoding of postcard: seven bits in each byte, the lowest first.
fn take_varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
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

    /// Returns an object with this value and a cost of so many seconds.
    fn object(value: &[u8], seconds: f64) -> Vec<u8> {
        let texts = ["count 1", &"k 31\n".repeat(40), "count"];
        let mut trailer = Vec::new();
        for text in texts {
            let (low, high) = (text.len() % 128, text.len() / 128);
            trailer.extend(if high > 0 { vec![low as u8 | 0x80, high as u8] } else { vec![low as u8] });
            trailer.extend(text.as_bytes());
        }
        trailer.extend([seconds.to_le_bytes(), seconds.to_le_bytes()].concat());
        // Peak memory, not resumed, range and checksum of the value.
        trailer.extend(if seconds > 1.0 { &[0x80, 0x80, 1][..] } else { &[9] });
        trailer.extend([0, 0, value.len() as u8, 77]);
        let footer = [trailer.len() as u64, seconds.to_bits()].map(u64::to_le_bytes).concat();
        [value, &trailer, &footer, OBJECT_END].concat()
    }

    #[test]
    fn only_the_cost_of_an_object_is_left_out() {
        let stripped = |bytes: &[u8]| strip_measurements_from_content("run/count-1", bytes);
        assert_eq!(stripped(&object(b"value", 0.5)), stripped(&object(b"value", 7.25)));
        assert_ne!(stripped(&object(b"value", 0.5)), stripped(&object(b"valve", 0.5)));
        assert!(stripped(&object(b"value", 0.5)).ends_with(&[0, 5, 77]));
        // Damaged objects are compared as they are.
        let cut = &object(b"value", 0.5)[5 + 100..];
        assert_eq!(stripped(cut), cut);
    }

    #[test]
    fn free_memory_of_a_recording_is_left_out() {
        let of = |free: u32, total: u32| {
            let text =
                format!("genuma recording 1\n/proc/meminfo MemTotal: {total} kB\\nMemFree: {free} kB\n/sys/a 1\n");
            strip_measurements_from_content("r.txt", text.as_bytes())
        };
        assert_eq!(of(1, 9), of(2, 9));
        assert_ne!(of(1, 9), of(1, 8));
    }

    #[test]
    fn measures_do_not_last() {
        let [one, other] = [("0.1", "8", "a"), ("7.25", "9", "a")].map(|(seconds, bytes, name)| {
            let json =
                format!(r#"{{"name":"{name}","steps":[{{"wall_s":{seconds},"kmers":4}}],"peak_bytes":{bytes}}}"#);
            strip_measurements_from_content("x.json", json.as_bytes())
        });
        assert_eq!(one, other);
        assert_eq!(String::from_utf8_lossy(&one), r#"{"name":"a","steps":[{"kmers":4}]}"#);
        let page = |time: &str| format!("<table><tr><td>count<td>{time} s</tr><tr><td>SNV<td>4 sites</tr></table>");
        assert_eq!(
            strip_measurements_from_content("x.html", page("1.5").as_bytes()),
            strip_measurements_from_content("x.html", page("22").as_bytes())
        );
        assert!(
            String::from_utf8_lossy(&strip_measurements_from_content("x.html", page("1").as_bytes()))
                .contains("4 sites")
        );
        assert_eq!(strip_measurements_from_content("x.sam", b"0.1 s"), b"0.1 s");
        let page = |line: &str| format!("<p>a{TIMELINE_START}<path d=\"{line}\"/></div><section><p>b");
        assert_eq!(
            strip_measurements_from_content("x.html", page("M1").as_bytes()),
            strip_measurements_from_content("x.html", page("M2").as_bytes())
        );
        let kept = strip_measurements_from_content("x.html", page("M1").as_bytes());
        assert!([&b"<p>a"[..], b"<p>b"].iter().all(|row| kept.windows(4).any(|at| at == *row)));
    }
}
