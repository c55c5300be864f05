//! Recordings: what the kernel shows of a machine, kept in one text file.
//!
//! The format is described in `docs/formats/recording.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, Cursor, Read};
use std::path::Path;

use super::tree::{Reader, Seen, Tree, content};
use super::{Error, Source, Sysfs, Topology, sysfs};

const FIRST_LINE: &str = "genuma recording 1";

/// More than a recording of any machine: 64 KiB for each of 1024 CPUs.
const LARGEST: u64 = 64 << 20;

/// A machine as it was when it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    name: String,
    /// Text of each file by its path; nothing for what a folder was only seen to hold.
    files: Seen,
}

impl Recorded {
    /// Records a running system: the files that [`Sysfs`] reads of it, and of those only the lines it uses.
    ///
    /// Names of control groups are replaced, since they may tell of users and containers. A system that cannot be
    /// understood is recorded as far as it was read: its recording fails in the same way.
    pub fn of(system: &Sysfs) -> Self {
        let reader = Reader::new(system.tree());
        // What is wrong with the system shows when the recording is read.
        let _ = sysfs::read(&reader, String::new());
        Recorded { name: "a recording".to_owned(), files: nameless(told(reader.into_seen())) }
    }

    /// Reads a recording from a file.
    ///
    /// # Errors
    /// The file cannot be read, or is no recording of a version that is known; the line is named.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes));
        read.map_err(|source| Error::Read { path: path.display().to_string(), source })?;
        if bytes.len() as u64 > LARGEST {
            return Err(content(&path.display().to_string(), "is no recording: it is larger than 64 MiB"));
        }
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let mut recorded = Self::parse(&path.display().to_string(), &String::from_utf8_lossy(&bytes))?;
        recorded.name = name;
        Ok(recorded)
    }

    /// Reads a recording from its text; `name` stands for it in errors.
    ///
    /// # Errors
    /// As [`Recorded::open`].
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let mut lines = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim_end_matches('\r')));
        match lines.next().map(|(_, line)| line.trim_end()) {
            Some(FIRST_LINE) => (),
            Some(line) if line.starts_with("genuma recording ") => {
                let why =
                    format!("'{line}' is of another version than '{FIRST_LINE}': record the machine anew");
                return Err(content(name, why));
            }
            _ => return Err(content(name, format!("is no recording: its first line is not '{FIRST_LINE}'"))),
        }
        let mut files = Seen::new();
        for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let wrong = |why: &str| content(&format!("{name}:{number}"), why);
            let (path, text) = line.split_once(' ').unwrap_or((line, ""));
            let path = plain(path).ok_or_else(|| wrong("the path has a '\\' that begins nothing known"))?;
            let text = plain(text).ok_or_else(|| wrong("the text has a '\\' that begins nothing known"))?;
            if !path.starts_with('/') {
                return Err(wrong("a line is a path, which begins with '/', a space, and the file's text"));
            }
            let entry = match path.strip_suffix('/') {
                Some(path) => (path.to_owned(), None),
                None => (path, Some(text)),
            };
            if files.insert(entry.0, entry.1).is_some() {
                return Err(wrong("this path is there twice"));
            }
        }
        Ok(Recorded { name: name.to_owned(), files })
    }

    /// The recording as the text of a file.
    pub fn to_text(&self) -> String {
        let mut text = format!("{FIRST_LINE}\n");
        for (path, content) in &self.files {
            let path = escaped(path).replace(' ', "\\u{20}");
            let written = match content {
                None => writeln!(text, "{path}/"),
                Some(content) if content.is_empty() => writeln!(text, "{path}"),
                Some(content) => writeln!(text, "{path} {}", escaped(content)),
            };
            written.expect("a string takes all");
        }
        text
    }
}

impl Source for Recorded {
    fn topology(&self) -> Result<Topology, Error> {
        let origin = format!("recording {}", self.name);
        sysfs::read(&Reader::new(self), origin).map_err(|e| match e {
            Error::Content { path, why } => Error::Content { path: format!("{}: {path}", self.name), why },
            e => e,
        })
    }
}

impl Tree for Recorded {
    fn open(&self, path: &str) -> io::Result<Box<dyn BufRead + '_>> {
        match self.files.get(path) {
            Some(Some(text)) => Ok(Box::new(Cursor::new(text.as_bytes()))),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        let below = format!("{folder}/");
        let paths = self.files.range(below.clone()..).map_while(|(path, _)| path.strip_prefix(&below));
        let mut names: Vec<String> =
            paths.filter_map(|rest| rest.split('/').next()).map(str::to_owned).collect();
        names.dedup();
        Ok(names)
    }
}

/// Text on one line.
fn escaped(text: &str) -> String {
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

/// The text that was [`escaped`]; `None` when a backslash begins nothing known.
fn plain(line: &str) -> Option<String> {
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

/// The same without folders that the files in them tell of.
fn told(mut files: Seen) -> Seen {
    let within = |folder: &str| {
        let below = format!("{folder}/");
        files.range(below.clone()..).next().is_some_and(|(path, _)| path.starts_with(&below))
    };
    let folders: Vec<String> = files
        .iter()
        .filter(|(path, text)| text.is_none() && within(path))
        .map(|(path, _)| path.clone())
        .collect();
    folders.iter().for_each(|folder| {
        files.remove(folder);
    });
    files
}

/// The same files with the names of control groups replaced by `g1`, `g2` and so on.
fn nameless(mut files: Seen) -> Seen {
    const GROUPS: &str = "/proc/self/cgroup";
    const MOUNTS: &str = "/proc/self/mountinfo";
    let lines = |files: &Seen, path: &str| -> Vec<String> {
        files
            .get(path)
            .cloned()
            .flatten()
            .map_or(Vec::new(), |text| text.lines().map(str::to_owned).collect())
    };
    let mut groups: Vec<Vec<String>> =
        lines(&files, GROUPS).iter().map(|line| line.splitn(3, ':').map(str::to_owned).collect()).collect();
    let mut mounts: Vec<Vec<String>> =
        lines(&files, MOUNTS).iter().map(|line| line.split(' ').map(str::to_owned).collect()).collect();

    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let rooted = mounts.iter().filter_map(|mount| mount.get(3));
    for name in groups.iter().filter_map(|group| group.get(2)).chain(rooted).flat_map(|path| path.split('/'))
    {
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
    let points: Vec<String> =
        mounts.iter().filter_map(|mount| mount.get(4)).map(|p| format!("{p}/")).collect();
    files = files
        .into_iter()
        .map(|(path, text)| match points.iter().find(|point| path.starts_with(point.as_str())) {
            // The last part is the file's own name.
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
        assert_eq!(escaped(text), "two\\nlines\\tand \\\\n \\u{7f}\\u{85} é \\\\u{20}\\u{d}");
        assert_eq!(plain(&escaped(text)).as_deref(), Some(text));
        for wrong in ["\\", "\\x", "\\u", "\\u{", "\\u{110000}", "\\u{zz}"] {
            assert_eq!(plain(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_recording_is_read_as_it_was_written() {
        let text = "genuma recording 1\n/a b\n/c/d\\u{20}e/\n/f two\\nlines\n/g\n";
        let recorded = Recorded::parse("x", text).expect("a recording");
        assert_eq!(recorded.to_text(), text);
        assert_eq!(recorded.names("/c").expect("a folder"), ["d e"]);
        assert_eq!(recorded.names("").expect("a folder"), ["a", "c", "f", "g"]);
        let reader = Reader::new(&recorded);
        assert_eq!(reader.text("/f").expect("readable").as_deref(), Some("two\nlines"));
        assert_eq!(reader.text("/g").expect("readable").as_deref(), Some(""));
        assert_eq!(reader.text("/c").expect("readable"), None);
        let commented = text.replacen('\n', "\n# why\n\n", 1);
        assert_eq!(Recorded::parse("x", &commented).expect("a recording"), recorded);
    }

    #[test]
    fn what_is_no_recording_is_refused_with_its_line() {
        let said = |text: &str| Recorded::parse("x", text).expect_err("an error").to_string();
        assert_eq!(said(""), "x: is no recording: its first line is not 'genuma recording 1'");
        assert_eq!(said("{}\n"), "x: is no recording: its first line is not 'genuma recording 1'");
        let other = "x: 'genuma recording 2' is of another version than 'genuma recording 1': record the machine anew";
        assert_eq!(said("genuma recording 2\n"), other);
        let body = |line: &str| said(&format!("genuma recording 1\n/a 1\n{line}\n"));
        assert_eq!(body("a"), "x:3: a line is a path, which begins with '/', a space, and the file's text");
        assert_eq!(body("/a 2"), "x:3: this path is there twice");
        assert_eq!(body("/b \\q"), "x:3: the text has a '\\' that begins nothing known");
        assert_eq!(body("/\\q b"), "x:3: the path has a '\\' that begins nothing known");
    }

    #[test]
    fn names_of_control_groups_are_replaced_everywhere() {
        let file = |path: &str, text: &str| (path.to_owned(), Some(text.to_owned()));
        let seen = |user: &str, job: &str| {
            Seen::from([
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
        assert_eq!(nameless(seen("user.slice", "job")), expected);
    }
}
