//! Machine recordings: the kernel files that describe a machine, stored in one text file.
//!
//! The format is described in `docs/formats/recording.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, Cursor, Read};
use std::path::Path;

use super::file_tree::{FileTree, KernelFileReader, RecordedFiles, malformed_content_error};
use super::{Error, Sysfs, Topology, TopologySource, sysfs};

const RECORDING_HEADER: &str = "genuma recording 1";

/// Size limit of a recording in bytes. Larger than a recording of any machine: 64 KiB for each of 1024 CPUs.
const MAX_RECORDING_BYTES: u64 = 64 << 20;

/// A recorded machine: the kernel files that its topology is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedMachine {
    name: String,
    /// Text of each recorded file by path. `None` for a path that was only listed in a folder.
    text_by_path: RecordedFiles,
}

impl RecordedMachine {
    /// Records a running system: the files that [`Sysfs`] reads, reduced to the lines that it uses.
    ///
    /// Names of control groups are replaced, because they may reveal users and containers. If the topology of the
    /// system cannot be read, the recording has the files that were read, and reading the recording fails with the
    /// same error.
    pub fn record_system(system: &Sysfs) -> Self {
        let reader = KernelFileReader::new(system.file_tree());
        // An error shows again when the recording is read.
        let _ = sysfs::read_topology(&reader, String::new());
        RecordedMachine {
            name: "a recording".to_owned(),
            text_by_path: anonymize_cgroups(remove_nonempty_folders(reader.into_files_read())),
        }
    }

    /// Reads a recording from a file.
    ///
    /// # Errors
    /// The file cannot be read, is larger than 64 MiB, is not a recording of a supported version, or has a malformed
    /// line. The error names the file, and the number of a malformed line.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(MAX_RECORDING_BYTES + 1).read_to_end(&mut bytes));
        read.map_err(|source| Error::Read { path: path.display().to_string(), source })?;
        if bytes.len() as u64 > MAX_RECORDING_BYTES {
            return Err(malformed_content_error(
                &path.display().to_string(),
                "is not a recording: it is larger than 64 MiB",
            ));
        }
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let mut recorded = Self::parse(&path.display().to_string(), &String::from_utf8_lossy(&bytes))?;
        recorded.name = name;
        Ok(recorded)
    }

    /// Parses a recording from its text. `name` is used in error messages and as the name of the machine.
    ///
    /// # Errors
    /// The text is not a recording of a supported version, or has a malformed line.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let mut lines = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim_end_matches('\r')));
        match lines.next().map(|(_, line)| line.trim_end()) {
            Some(RECORDING_HEADER) => (),
            Some(line) if line.starts_with("genuma recording ") => {
                let why = format!("'{line}' is another version than '{RECORDING_HEADER}': record the machine anew");
                return Err(malformed_content_error(name, why));
            }
            _ => {
                return Err(malformed_content_error(
                    name,
                    format!("is not a recording: its first line is not '{RECORDING_HEADER}'"),
                ));
            }
        }
        let mut files = RecordedFiles::new();
        for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let wrong = |why: &str| malformed_content_error(&format!("{name}:{number}"), why);
            let (path, text) = line.split_once(' ').unwrap_or((line, ""));
            let path =
                unescape_line(path).ok_or_else(|| wrong("the path has an unknown escape sequence after '\\'"))?;
            let text =
                unescape_line(text).ok_or_else(|| wrong("the text has an unknown escape sequence after '\\'"))?;
            if !path.starts_with('/') {
                return Err(wrong(
                    "a line must consist of a path that begins with '/', a space, and the text of the file",
                ));
            }
            let entry = match path.strip_suffix('/') {
                Some(path) => (path.to_owned(), None),
                None => (path, Some(text)),
            };
            if files.insert(entry.0, entry.1).is_some() {
                return Err(wrong("this path occurs twice"));
            }
        }
        Ok(RecordedMachine { name: name.to_owned(), text_by_path: files })
    }

    /// Returns the recording as the text of a recording file.
    pub fn to_text(&self) -> String {
        let mut text = format!("{RECORDING_HEADER}\n");
        for (path, content) in &self.text_by_path {
            let path = escape_line(path).replace(' ', "\\u{20}");
            let written = match content {
                None => writeln!(text, "{path}/"),
                Some(content) if content.is_empty() => writeln!(text, "{path}"),
                Some(content) => writeln!(text, "{path} {}", escape_line(content)),
            };
            written.expect("a string takes all");
        }
        text
    }
}

impl TopologySource for RecordedMachine {
    fn topology(&self) -> Result<Topology, Error> {
        let origin = format!("recording {}", self.name);
        sysfs::read_topology(&KernelFileReader::new(self), origin).map_err(|e| match e {
            Error::MalformedContent { path, why } => {
                Error::MalformedContent { path: format!("{}: {path}", self.name), why }
            }
            e => e,
        })
    }
}

impl FileTree for RecordedMachine {
    fn open(&self, path: &str) -> io::Result<Box<dyn BufRead + '_>> {
        match self.text_by_path.get(path) {
            Some(Some(text)) => Ok(Box::new(Cursor::new(text.as_bytes()))),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn list_folder(&self, folder: &str) -> io::Result<Vec<String>> {
        let below = format!("{folder}/");
        let paths = self.text_by_path.range(below.clone()..).map_while(|(path, _)| path.strip_prefix(&below));
        let mut names: Vec<String> = paths.filter_map(|rest| rest.split('/').next()).map(str::to_owned).collect();
        names.dedup();
        Ok(names)
    }
}

/// Escapes backslashes, newlines, tabs and control characters, so that the text fits on one line.
fn escape_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\t' => line.push_str("\\t"),
            c if c.is_control() => line.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => line.push(c),
        }
    }
    line
}

/// Reverses [`escape_line`]. `None` for an unknown escape sequence.
fn unescape_line(line: &str) -> Option<String> {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('\\') {
        text.push_str(before);
        let mut chars = after.chars();
        match chars.next()? {
            '\\' => text.push('\\'),
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'u' => {
                let (number, after) = chars.as_str().strip_prefix('{')?.split_once('}')?;
                text.push(char::from_u32(u32::from_str_radix(number, 16).ok()?)?);
                chars = after.chars();
            }
            _ => return None,
        }
        rest = chars.as_str();
    }
    text.push_str(rest);
    Some(text)
}

/// Removes the entries of folders that contain other recorded entries: the paths of these imply the folder.
fn remove_nonempty_folders(mut files: RecordedFiles) -> RecordedFiles {
    let has_entries = |folder: &str| {
        let below = format!("{folder}/");
        files.range(below.clone()..).next().is_some_and(|(path, _)| path.starts_with(&below))
    };
    let folders: Vec<String> =
        files.iter().filter(|(path, text)| text.is_none() && has_entries(path)).map(|(path, _)| path.clone()).collect();
    folders.iter().for_each(|folder| {
        files.remove(folder);
    });
    files
}

/// Replaces the names of control groups in all files and paths by `g1`, `g2` and so on.
fn anonymize_cgroups(mut files: RecordedFiles) -> RecordedFiles {
    const GROUPS: &str = "/proc/self/cgroup";
    const MOUNTS: &str = "/proc/self/mountinfo";
    let lines = |files: &RecordedFiles, path: &str| -> Vec<String> {
        files.get(path).cloned().flatten().map_or(Vec::new(), |text| text.lines().map(str::to_owned).collect())
    };
    let mut groups: Vec<Vec<String>> =
        lines(&files, GROUPS).iter().map(|line| line.splitn(3, ':').map(str::to_owned).collect()).collect();
    let mut mounts: Vec<Vec<String>> =
        lines(&files, MOUNTS).iter().map(|line| line.split(' ').map(str::to_owned).collect()).collect();

    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let rooted = mounts.iter().filter_map(|mount| mount.get(3));
    for name in groups.iter().filter_map(|group| group.get(2)).chain(rooted).flat_map(|path| path.split('/')) {
        if !name.is_empty() && name != ".." {
            let next = format!("g{}", names.len() + 1);
            names.entry(name.to_owned()).or_insert(next);
        }
    }
    let renamed = |path: &str| -> String {
        let name = |name: &str| names.get(name).cloned().unwrap_or_else(|| name.to_owned());
        path.split('/').map(name).collect::<Vec<_>>().join("/")
    };

    groups.iter_mut().filter_map(|group| group.get_mut(2)).for_each(|path| *path = renamed(path));
    mounts.iter_mut().filter_map(|mount| mount.get_mut(3)).for_each(|path| *path = renamed(path));
    let points: Vec<String> = mounts.iter().filter_map(|mount| mount.get(4)).map(|p| format!("{p}/")).collect();
    files = files
        .into_iter()
        .map(|(path, text)| match points.iter().find(|point| path.starts_with(point.as_str())) {
            // The last component of the path is the file's own name.
            Some(point) => match path[point.len()..].rsplit_once('/') {
                Some((group, file)) => (format!("{point}{}/{file}", renamed(group)), text),
                None => (path, text),
            },
            None => (path, text),
        })
        .collect();
    for (path, lines, separator) in [(GROUPS, groups, ":"), (MOUNTS, mounts, " ")] {
        if let Some(Some(text)) = files.get_mut(path) {
            *text = lines.iter().map(|fields| fields.join(separator)).collect::<Vec<_>>().join("\n");
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_survives_its_line() {
        let text = "two\nlines\tand \\n \u{7f}\u{85} é \\u{20}\r";
        assert_eq!(escape_line(text), "two\\nlines\\tand \\\\n \\u{7f}\\u{85} é \\\\u{20}\\u{d}");
        assert_eq!(unescape_line(&escape_line(text)).as_deref(), Some(text));
        for wrong in ["\\", "\\x", "\\u", "\\u{", "\\u{110000}", "\\u{zz}"] {
            assert_eq!(unescape_line(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_recording_is_read_as_it_was_written() {
        let text = "genuma recording 1\n/a b\n/c/d\\u{20}e/\n/f two\\nlines\n/g\n";
        let recorded = RecordedMachine::parse("x", text).expect("a recording");
        assert_eq!(recorded.to_text(), text);
        assert_eq!(recorded.list_folder("/c").expect("a folder"), ["d e"]);
        assert_eq!(recorded.list_folder("").expect("a folder"), ["a", "c", "f", "g"]);
        let reader = KernelFileReader::new(&recorded);
        assert_eq!(reader.read_text("/f").expect("readable").as_deref(), Some("two\nlines"));
        assert_eq!(reader.read_text("/g").expect("readable").as_deref(), Some(""));
        assert_eq!(reader.read_text("/c").expect("readable"), None);
        let commented = text.replacen('\n', "\n# why\n\n", 1);
        assert_eq!(RecordedMachine::parse("x", &commented).expect("a recording"), recorded);
    }

    #[test]
    fn what_is_no_recording_is_refused_with_its_line() {
        let said = |text: &str| RecordedMachine::parse("x", text).expect_err("an error").to_string();
        assert_eq!(said(""), "x: is not a recording: its first line is not 'genuma recording 1'");
        assert_eq!(said("{}\n"), "x: is not a recording: its first line is not 'genuma recording 1'");
        let other = "x: 'genuma recording 2' is another version than 'genuma recording 1': record the machine anew";
        assert_eq!(said("genuma recording 2\n"), other);
        let body = |line: &str| said(&format!("genuma recording 1\n/a 1\n{line}\n"));
        assert_eq!(
            body("a"),
            "x:3: a line must consist of a path that begins with '/', a space, and the text of the file"
        );
        assert_eq!(body("/a 2"), "x:3: this path occurs twice");
        assert_eq!(body("/b \\q"), "x:3: the text has an unknown escape sequence after '\\'");
        assert_eq!(body("/\\q b"), "x:3: the path has an unknown escape sequence after '\\'");
    }

    #[test]
    fn names_of_control_groups_are_replaced_everywhere() {
        let file = |path: &str, text: &str| (path.to_owned(), Some(text.to_owned()));
        let seen = |user: &str, job: &str| {
            RecordedFiles::from([
                file("/proc/self/cgroup", &format!("4:memory:/{user}/{job}\n0::/{user}/{job}")),
                file("/proc/self/mountinfo", &format!("1 2 0:3 /{user} /sys/fs/cgroup rw - cgroup2 none rw")),
                file(&format!("/sys/fs/cgroup/{job}/memory.max"), "5"),
                file("/sys/fs/cgroup/memory.max", "max"),
                file(&format!("/sys/{job}"), "no group"),
            ])
        };
        let mut expected = seen("g1", "g2");
        expected.remove("/sys/g2");
        expected.insert("/sys/job".to_owned(), Some("no group".to_owned()));
        assert_eq!(anonymize_cgroups(seen("user.slice", "job")), expected);
    }
}
