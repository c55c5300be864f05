//! Access to kernel files of a running or recorded system, with a record of everything that was read.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::Error;
use crate::{IdSet, sys};

/// Size limit in bytes when a whole file is read. Larger than any kernel file that is read as a whole.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// A tree of files addressed by absolute paths: those of a running system or of a recording.
pub(crate) trait FileTree {
    /// Opens a file.
    ///
    /// # Errors
    /// The error of the system; for a recording always `NotFound`.
    fn open(&self, path: &str) -> io::Result<Box<dyn BufRead + '_>>;

    /// Names of the entries of a folder, in any order.
    ///
    /// # Errors
    /// As for [`FileTree::open`].
    fn list_folder(&self, folder: &str) -> io::Result<Vec<String>>;
}

/// The files of a running system, below a root folder.
#[derive(Debug, Clone)]
pub(super) struct RunningSystemFiles {
    root: PathBuf,
}

impl RunningSystemFiles {
    /// Creates a file tree of the files below the folder `root`.
    pub(super) fn with_root(root: &Path) -> Self {
        RunningSystemFiles { root: root.to_path_buf() }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}

impl FileTree for RunningSystemFiles {
    fn open(&self, path: &str) -> io::Result<Box<dyn BufRead + '_>> {
        match File::open(self.path(path)) {
            Ok(file) => Ok(Box::new(BufReader::new(file))),
            // A root file system in which `/proc` or `/sys` is not mounted, or may not be read.
            Err(error) if self.root == Path::new("/") => {
                text_from_syscalls(path).map_or(Err(error), |text| Ok(Box::new(Cursor::new(text))))
            }
            Err(error) => Err(error),
        }
    }

    fn list_folder(&self, folder: &str) -> io::Result<Vec<String>> {
        let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
        fs::read_dir(self.path(folder))?.map(name).collect()
    }
}

/// Replacement text for a missing kernel file, from system calls: the CPUs of the calling thread for
/// `/proc/self/status`, total and free memory for `/proc/meminfo`. `None` for other paths.
fn text_from_syscalls(path: &str) -> Option<String> {
    match path {
        "/proc/self/status" => Some(format!("Cpus_allowed_list:\t{}\n", sys::thread_affinity(0).ok()?)),
        "/proc/meminfo" => {
            let [total, free] = sys::total_and_free_memory_bytes().ok()?.map(|bytes| bytes >> 10);
            Some(format!("MemTotal: {total} kB\nMemFree: {free} kB\n"))
        }
        _ => None,
    }
}

/// Recorded files: text by path. `None` for a name that was only listed in a folder.
pub(super) type RecordedFiles = BTreeMap<String, Option<String>>;

/// Reads kernel files of a [`FileTree`]. Keeps the text that was read, so that it can be recorded, and notes about
/// missing information.
pub(super) struct KernelFileReader<'a> {
    tree: &'a dyn FileTree,
    files_read: RefCell<RecordedFiles>,
    missing_notes: RefCell<Vec<String>>,
}

impl<'a> KernelFileReader<'a> {
    /// Creates a reader of the files of `tree`.
    pub(super) fn new(tree: &'a dyn FileTree) -> Self {
        KernelFileReader { tree, files_read: RefCell::default(), missing_notes: RefCell::default() }
    }

    /// Returns the files that were read so far.
    pub(crate) fn into_files_read(self) -> RecordedFiles {
        self.files_read.into_inner()
    }

    /// Adds a note about missing information. `sentence` says what could not be read and what is used instead.
    pub(super) fn add_missing_note(&self, sentence: impl Into<String>) {
        self.missing_notes.borrow_mut().push(sentence.into());
    }

    /// Returns the value that was read. If reading failed or the content was invalid, returns `None` and adds a note
    /// with the error and `instead`, which says what is assumed: an unusual machine must not end the program.
    pub(super) fn value_or_add_missing_note<T>(&self, read: Result<Option<T>, Error>, instead: &str) -> Option<T> {
        read.unwrap_or_else(|error| {
            self.add_missing_note(format!("{error}: {instead}"));
            None
        })
    }

    /// Returns the notes about missing information and removes them from the reader.
    pub(crate) fn take_missing_notes(&self) -> Vec<String> {
        self.missing_notes.take()
    }

    fn open(&self, path: &str) -> Result<Option<Box<dyn BufRead + '_>>, Error> {
        self.tree.open(path).map(Some).or_else(|e| none_if_inaccessible(path, e))
    }

    fn record_text(&self, path: &str, text: &str) {
        self.files_read.borrow_mut().insert(path.to_owned(), Some(text.to_owned()));
    }

    /// Reads a whole file, without trailing white space. `None` if the file does not exist or may not be read.
    pub(super) fn read_text(&self, path: &str) -> Result<Option<String>, Error> {
        let Some(file) = self.open(path)? else { return Ok(None) };
        let mut bytes = Vec::new();
        if let Err(e) = file.take(MAX_FILE_BYTES).read_to_end(&mut bytes) {
            return none_if_inaccessible(path, e);
        }
        let text = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        self.record_text(path, &text);
        Ok(Some(text))
    }

    /// Passes the lines of a file to `select`, which decides for each line whether it is recorded, until `select`
    /// stops. `None` if the file does not exist or may not be read.
    fn read_selected_lines(
        &self,
        path: &str,
        mut select: impl FnMut(&str) -> LineSelection,
    ) -> Result<Option<()>, Error> {
        let Some(mut file) = self.open(path)? else { return Ok(None) };
        let (mut line, mut kept) = (Vec::new(), Vec::new());
        loop {
            line.clear();
            match file.by_ref().take(MAX_FILE_BYTES).read_until(b'\n', &mut line) {
                Ok(0) => break,
                Ok(_) => (),
                Err(e) => return none_if_inaccessible(path, e),
            }
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            match select(&text) {
                LineSelection::Skip => (),
                LineSelection::Keep => kept.push(text),
                LineSelection::KeepAndStop => {
                    kept.push(text);
                    break;
                }
            }
        }
        self.record_text(path, &kept.join("\n"));
        Ok(Some(()))
    }

    /// Reads the values of `keys` from a file with lines such as `MemTotal:  16 kB` or `Node 0 MemTotal:  16 kB`: for
    /// each key the text after the colon of the first line that has the key. `None` if the file does not exist or may
    /// not be read.
    pub(super) fn read_values_of_keys<const N: usize>(
        &self,
        path: &str,
        keys: [&str; N],
    ) -> Result<Option<[Option<String>; N]>, Error> {
        let mut values = [const { None }; N];
        let read = self.read_selected_lines(path, |line| {
            let Some((name, value)) = line.split_once(':') else { return LineSelection::Skip };
            let is = |key: &str| {
                name.trim_end().strip_suffix(key).is_some_and(|rest| rest.is_empty() || rest.ends_with(' '))
            };
            let Some(at) = keys.iter().position(|key| is(key)).filter(|at| values[*at].is_none()) else {
                return LineSelection::Skip;
            };
            values[at] = Some(value.trim().to_owned());
            if values.iter().all(Option::is_some) { LineSelection::KeepAndStop } else { LineSelection::Keep }
        })?;
        Ok(read.map(|()| values))
    }

    /// Reads the lines of a file that contain the text `part`. Empty if the file does not exist or may not be read.
    pub(crate) fn read_lines_containing(&self, path: &str, part: &str) -> Result<Vec<String>, Error> {
        let mut found = Vec::new();
        self.read_selected_lines(path, |line| {
            if !line.contains(part) {
                return LineSelection::Skip;
            }
            found.push(line.to_owned());
            LineSelection::Keep
        })?;
        Ok(found)
    }

    /// Reads a file that holds one number. `None` if the file does not exist or may not be read.
    pub(super) fn read_number<T: FromStr>(&self, path: &str) -> Result<Option<T>, Error> {
        self.read_text(path)?.map(|text| parse_number(path, &text)).transpose()
    }

    /// Reads a file that holds a list of CPUs or nodes. `None` if the file does not exist or may not be read.
    pub(super) fn read_id_list(&self, path: &str) -> Result<Option<IdSet>, Error> {
        self.read_text(path)?.map(|text| parse_id_list(path, &text)).transpose()
    }

    /// Names of the entries of a folder, sorted. Empty if the folder does not exist or may not be read.
    pub(super) fn list_folder(&self, folder: &str) -> Result<Vec<String>, Error> {
        let listed = self.tree.list_folder(folder).map(Some).or_else(|e| none_if_inaccessible(folder, e))?;
        let mut names = listed.unwrap_or_default();
        names.sort();
        let mut seen = self.files_read.borrow_mut();
        for name in &names {
            seen.entry(format!("{folder}/{name}")).or_default();
        }
        Ok(names)
    }
}

/// Whether a line of a file is recorded.
enum LineSelection {
    Skip,
    Keep,
    /// Record this line and stop reading.
    KeepAndStop,
}

/// Converts "not found" and "permission denied" to `None`, because containers hide or protect kernel files. Other
/// errors are returned.
fn none_if_inaccessible<T>(path: &str, e: io::Error) -> Result<Option<T>, Error> {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    match e.kind() {
        NotFound | NotADirectory | PermissionDenied => Ok(None),
        _ => Err(Error::Read { path: path.to_owned(), source: e }),
    }
}

/// Parses a number from the text of the file `path`.
pub(super) fn parse_number<T: FromStr>(path: &str, text: &str) -> Result<T, Error> {
    text.trim()
        .parse()
        .map_err(|_| malformed_content_error(path, format!("'{}' is not a number that can be here", text.trim())))
}

/// Parses a list of CPU or node numbers from the text of the file `path`.
pub(super) fn parse_id_list(path: &str, text: &str) -> Result<IdSet, Error> {
    text.parse().map_err(|e: crate::ids::ParseIdSetError| malformed_content_error(path, e.to_string()))
}

/// Parses a byte count such as `32K` or `16 kB` from the text of the file `path`. K is 1024, as in the kernel.
pub(super) fn parse_byte_count(path: &str, text: &str) -> Result<u64, Error> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text[digits.len()..].trim() {
        "" => 0,
        "K" | "kB" => 10,
        "M" => 20,
        "G" => 30,
        _ => return Err(malformed_content_error(path, format!("'{text}' is not a size"))),
    };
    let number: Option<u64> = digits.parse().ok();
    number
        .and_then(|n| n.checked_mul(1 << shift))
        .ok_or_else(|| malformed_content_error(path, format!("'{text}' is not a size")))
}

/// Creates the error for a file with malformed content.
pub(super) fn malformed_content_error(path: &str, why: impl Into<String>) -> Error {
    Error::MalformedContent { path: path.to_owned(), why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_the_kernel_writes_them() {
        for (text, size) in [("32K", 32 << 10), ("16 kB", 16 << 10), ("7", 7), ("1M", 1 << 20), (" 2G\n", 2 << 30)] {
            assert_eq!(parse_byte_count("f", text).expect("a size"), size, "{text}");
        }
        for text in ["", "K", "-1K", "1 kb", "1.5M", "99999999999999999999", "99999999999999999K", "é"] {
            let said = parse_byte_count("f", text).expect_err("no size").to_string();
            assert_eq!(said, format!("f: '{text}' is not a size"));
        }
    }

    #[test]
    fn only_what_is_asked_for_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let tree = RunningSystemFiles::with_root(folder.path());
        fs::write(folder.path().join("status"), "Name:\tx\nNode 0 MemTotal: 5 kB\nTotal: 6\nMemTotal: 7\nSeen: 8\n")
            .expect("a file");
        fs::create_dir(folder.path().join("pools")).expect("a folder");
        fs::create_dir(folder.path().join("pools/b")).expect("a folder");

        let reader = KernelFileReader::new(&tree);
        let found = reader.read_values_of_keys("/status", ["MemTotal", "Total"]).expect("readable").expect("a file");
        assert_eq!(found, [Some("5 kB".to_owned()), Some("6".to_owned())]);
        assert_eq!(reader.read_values_of_keys("/gone", ["MemTotal"]).expect("readable"), None);
        assert_eq!(reader.list_folder("/pools").expect("readable"), ["b"]);
        assert_eq!(reader.list_folder("/gone").expect("readable"), [""; 0]);
        // A folder is neither an absent file nor a readable one.
        assert!(reader.read_text("/pools").expect_err("an error").to_string().starts_with("/pools: "));

        let seen = reader.into_files_read();
        let status = Some("Node 0 MemTotal: 5 kB\nTotal: 6".to_owned());
        assert_eq!(seen, BTreeMap::from([("/pools/b".to_owned(), None), ("/status".to_owned(), status)]));
    }
}
