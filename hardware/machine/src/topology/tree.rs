//! Files that tell of a machine, and reading them with a record of what was read.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::Error;
use crate::{IdSet, sys};

/// More than any file of the kernel that is read as a whole holds.
const LARGEST: u64 = 16 << 20;

/// Files by absolute path: those of a running system, or of a recording.
pub(crate) trait Tree {
    /// Opens a file.
    ///
    /// # Errors
    /// What the system says; a recording knows no other error than that there is no such file.
    fn open(&self, path: &str) -> io::Result<Box<dyn BufRead + '_>>;

    /// Names in a folder, in any order.
    ///
    /// # Errors
    /// As [`Tree::open`].
    fn names(&self, folder: &str) -> io::Result<Vec<String>>;
}

/// The files of a running system.
#[derive(Debug, Clone)]
pub struct Live {
    root: PathBuf,
}

impl Live {
    /// The system whose root folder this is.
    pub fn at(root: &Path) -> Self {
        Live { root: root.to_path_buf() }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}

impl Tree for Live {
    fn open(&self, path: &str) -> io::Result<Box<dyn BufRead + '_>> {
        match File::open(self.path(path)) {
            Ok(file) => Ok(Box::new(BufReader::new(file))),
            // A folder of a root of its own, in which nobody has mounted what the kernel shows.
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.root == Path::new("/") => {
                called(path).map_or(Err(error), |text| Ok(Box::new(Cursor::new(text))))
            }
            Err(error) => Err(error),
        }
    }

    fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
        fs::read_dir(self.path(folder))?.map(name).collect()
    }
}

/// What the kernel answers when it is called instead of a file's text, as far as there is a call: the CPUs of this process, and memory.
fn called(path: &str) -> Option<String> {
    match path {
        "/proc/self/status" => Some(format!("Cpus_allowed_list:\t{}\n", sys::affinity(0).ok()?)),
        "/proc/meminfo" => {
            let [total, free] = sys::memory().ok()?.map(|bytes| bytes >> 10);
            Some(format!("MemTotal: {total} kB\nMemFree: {free} kB\n"))
        }
        _ => None,
    }
}

/// What was read of a tree: the text of each file, nothing for a name that was only listed.
pub type Seen = BTreeMap<String, Option<String>>;

/// Reads a tree. Keeps what was read, so that what a parser reads can be recorded, and what the parser says is missing.
pub struct Reader<'a> {
    tree: &'a dyn Tree,
    seen: RefCell<Seen>,
    missing: RefCell<Vec<String>>,
}

impl<'a> Reader<'a> {
    pub fn new(tree: &'a dyn Tree) -> Self {
        Reader { tree, seen: RefCell::default(), missing: RefCell::default() }
    }

    /// What was read so far.
    pub(crate) fn into_seen(self) -> Seen {
        self.seen.into_inner()
    }

    /// Notes what could not be read and what stands in for it, in a sentence.
    pub fn miss(&self, sentence: impl Into<String>) {
        self.missing.borrow_mut().push(sentence.into());
    }

    /// The sentences noted so far.
    pub(crate) fn take_missing(&self) -> Vec<String> {
        self.missing.take()
    }

    fn open(&self, path: &str) -> Result<Option<Box<dyn BufRead + '_>>, Error> {
        self.tree.open(path).map(Some).or_else(|e| absent(path, e))
    }

    fn note(&self, path: &str, text: &str) {
        self.seen.borrow_mut().insert(path.to_owned(), Some(text.to_owned()));
    }

    /// A whole file, without white space at its end; `None` when it is not there or may not be read.
    pub fn text(&self, path: &str) -> Result<Option<String>, Error> {
        let Some(file) = self.open(path)? else { return Ok(None) };
        let mut bytes = Vec::new();
        if let Err(e) = file.take(LARGEST).read_to_end(&mut bytes) {
            return absent(path, e);
        }
        let text = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        self.note(path, &text);
        Ok(Some(text))
    }

    /// The lines of a file that `wanted` chooses, read until it says that there are enough.
    fn lines(&self, path: &str, mut wanted: impl FnMut(&str) -> Wanted) -> Result<Option<()>, Error> {
        let Some(mut file) = self.open(path)? else { return Ok(None) };
        let (mut line, mut kept) = (Vec::new(), Vec::new());
        loop {
            line.clear();
            match file.by_ref().take(LARGEST).read_until(b'\n', &mut line) {
                Ok(0) => break,
                Ok(_) => (),
                Err(e) => return absent(path, e),
            }
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            match wanted(&text) {
                Wanted::No => (),
                Wanted::Yes => kept.push(text),
                Wanted::Last => {
                    kept.push(text);
                    break;
                }
            }
        }
        self.note(path, &kept.join("\n"));
        Ok(Some(()))
    }

    /// Values of a file of lines such as `MemTotal:  16 kB` or `Node 0 MemTotal:  16 kB`: for each key what follows
    /// the colon of the first line with it. `None` when there is no such file.
    pub fn values<const N: usize>(
        &self,
        path: &str,
        keys: [&str; N],
    ) -> Result<Option<[Option<String>; N]>, Error> {
        let mut values = [const { None }; N];
        let read = self.lines(path, |line| {
            let Some((name, value)) = line.split_once(':') else { return Wanted::No };
            let is = |key: &str| {
                name.trim_end().strip_suffix(key).is_some_and(|rest| rest.is_empty() || rest.ends_with(' '))
            };
            let Some(at) = keys.iter().position(|key| is(key)).filter(|at| values[*at].is_none()) else {
                return Wanted::No;
            };
            values[at] = Some(value.trim().to_owned());
            if values.iter().all(Option::is_some) { Wanted::Last } else { Wanted::Yes }
        })?;
        Ok(read.map(|()| values))
    }

    /// The lines of a file that hold `part`; none when there is no such file.
    pub(crate) fn lines_with(&self, path: &str, part: &str) -> Result<Vec<String>, Error> {
        let mut found = Vec::new();
        self.lines(path, |line| {
            if !line.contains(part) {
                return Wanted::No;
            }
            found.push(line.to_owned());
            Wanted::Yes
        })?;
        Ok(found)
    }

    /// A file that holds one number.
    pub fn number<T: FromStr>(&self, path: &str) -> Result<Option<T>, Error> {
        self.text(path)?.map(|text| parse(path, &text)).transpose()
    }

    /// A file that holds a list of CPUs or nodes.
    pub fn list(&self, path: &str) -> Result<Option<IdSet>, Error> {
        self.text(path)?.map(|text| list(path, &text)).transpose()
    }

    /// Names in a folder, sorted; none when there is no such folder.
    pub fn names(&self, folder: &str) -> Result<Vec<String>, Error> {
        let listed = self.tree.names(folder).map(Some).or_else(|e| absent(folder, e))?;
        let mut names = listed.unwrap_or_default();
        names.sort();
        let mut seen = self.seen.borrow_mut();
        for name in &names {
            seen.entry(format!("{folder}/{name}")).or_default();
        }
        Ok(names)
    }
}

/// Whether a line is kept.
enum Wanted {
    No,
    Yes,
    /// It is, and no later one is.
    Last,
}

/// What a container hides or does not let its processes read is treated as what is not there.
fn absent<T>(path: &str, e: io::Error) -> Result<Option<T>, Error> {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    match e.kind() {
        NotFound | NotADirectory | PermissionDenied => Ok(None),
        _ => Err(Error::Read { path: path.to_owned(), source: e }),
    }
}

/// A number in a file.
pub fn parse<T: FromStr>(path: &str, text: &str) -> Result<T, Error> {
    text.trim()
        .parse()
        .map_err(|_| content(path, format!("'{}' is not a number that can be here", text.trim())))
}

/// A list of numbers in a file.
pub fn list(path: &str, text: &str) -> Result<IdSet, Error> {
    text.parse().map_err(|e: crate::ids::NotAList| content(path, e.to_string()))
}

/// Bytes from text such as `32K` or `16 kB`; the kernel means 1024 by k.
pub fn bytes(path: &str, text: &str) -> Result<u64, Error> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text[digits.len()..].trim() {
        "" => 0,
        "K" | "kB" => 10,
        "M" => 20,
        "G" => 30,
        _ => return Err(content(path, format!("'{text}' is not a size"))),
    };
    let number: Option<u64> = digits.parse().ok();
    number
        .and_then(|n| n.checked_mul(1 << shift))
        .ok_or_else(|| content(path, format!("'{text}' is not a size")))
}

/// The error for a file that says something wrong.
pub fn content(path: &str, why: impl Into<String>) -> Error {
    Error::Content { path: path.to_owned(), why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_the_kernel_writes_them() {
        for (text, size) in
            [("32K", 32 << 10), ("16 kB", 16 << 10), ("7", 7), ("1M", 1 << 20), (" 2G\n", 2 << 30)]
        {
            assert_eq!(bytes("f", text).expect("a size"), size, "{text}");
        }
        for text in ["", "K", "-1K", "1 kb", "1.5M", "99999999999999999999", "99999999999999999K", "é"] {
            let said = bytes("f", text).expect_err("no size").to_string();
            assert_eq!(said, format!("f: '{text}' is not a size"));
        }
    }

    #[test]
    fn only_what_is_asked_for_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let tree = Live::at(folder.path());
        fs::write(
            folder.path().join("status"),
            "Name:\tx\nNode 0 MemTotal: 5 kB\nTotal: 6\nMemTotal: 7\nSeen: 8\n",
        )
        .expect("a file");
        fs::create_dir(folder.path().join("pools")).expect("a folder");
        fs::create_dir(folder.path().join("pools/b")).expect("a folder");

        let reader = Reader::new(&tree);
        let found = reader.values("/status", ["MemTotal", "Total"]).expect("readable").expect("a file");
        assert_eq!(found, [Some("5 kB".to_owned()), Some("6".to_owned())]);
        assert_eq!(reader.values("/gone", ["MemTotal"]).expect("readable"), None);
        assert_eq!(reader.names("/pools").expect("readable"), ["b"]);
        assert_eq!(reader.names("/gone").expect("readable"), [""; 0]);
        // A folder is no file: that is neither absent nor readable.
        assert!(reader.text("/pools").expect_err("an error").to_string().starts_with("/pools: "));

        let seen = reader.into_seen();
        let status = Some("Node 0 MemTotal: 5 kB\nTotal: 6".to_owned());
        assert_eq!(seen, BTreeMap::from([("/pools/b".to_owned(), None), ("/status".to_owned(), status)]));
    }
}
