//! Detects input files that change while a command reads them, and leaves out lanes without reads.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use genuma_reads::{CompressionFormat, Lane, LaneFiles, format_empty_lane_warning, remove_empty_lanes};
use tracing::warn;

/// Removes lanes without reads and warns of them, unless the sample has no other lane.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn leave_out_empty_lanes(lanes: &mut Vec<Lane>) -> anyhow::Result<()> {
    for lane in remove_empty_lanes(lanes)? {
        warn!("{}", format_empty_lane_warning(lane.paths()));
    }
    Ok(())
}

/// Maximum size in bytes of a file whose whole content is compared: more than the FASTA of any common genome has.
const MAX_COMPARED_BYTES: u64 = 4 << 30;
/// First bytes of files of which only pieces are compared, as of compressed files and BAM, because they are large and one
/// place is like any other: CRAM, BINSEQ, and FASTQ. A compressed file whose content changes hardly keeps its size.
const SAMPLED_MAGICS: [&[u8]; 5] = [b"CRAM", b"CBQFILE", b"VSEQ", b"BSEQ", b"@"];
/// Number and size in bytes of the pieces. Chosen: reading them takes less than a second even from a slow disk.
const NUM_PIECES: u64 = 64;
const PIECE_BYTES: usize = 256 << 10;

/// Identity and state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileState {
    device: u64,
    inode: u64,
    bytes: u64,
    /// Time of the last change of the content, in seconds and nanoseconds. A program can set it back.
    modified: (i64, i64),
    /// Time of the last change of the content or of the metadata, such as permissions and links, which only the system
    /// sets.
    changed: (i64, i64),
}

impl FileState {
    /// Whether the states are equal except for `changed`.
    fn may_have_same_content(self, other: FileState) -> bool {
        FileState { changed: other.changed, ..self } == other
    }
}

/// Path of a file, and its state and the CRC32 of its content or of pieces of it at the start of the command.
#[derive(Debug)]
struct RecordedFile {
    path: PathBuf,
    state: FileState,
    crc: u32,
}

/// Paths of the regular input files of a command, with their states at the start of the command. Each path is there once.
#[derive(Debug, Default)]
pub(crate) struct InputFileStates(Vec<RecordedFile>);

impl InputFileStates {
    /// Records the state of the files of these lanes, of the references of CRAM files, and of `others`.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(crate) fn record_lane_file_states<'a>(
        lanes: &'a [Lane],
        others: impl IntoIterator<Item = &'a Path>,
    ) -> anyhow::Result<InputFileStates> {
        let references = lanes.iter().filter_map(|lane| match &lane.files {
            LaneFiles::Aligned(aligned) => aligned.options.reference.path(),
            _ => None,
        });
        InputFileStates::record_file_states(lanes.iter().flat_map(Lane::paths).chain(references).chain(others))
    }

    /// Records the states of the regular files among these files. Pipes and devices are left out.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(crate) fn record_file_states<'a>(paths: impl Iterator<Item = &'a Path>) -> anyhow::Result<InputFileStates> {
        let mut states = InputFileStates::default();
        states.record_further_file_states(paths)?;
        Ok(states)
    }

    /// Records the states of the regular files among these files, unless they are recorded already. Pipes and devices
    /// are left out.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(crate) fn record_further_file_states<'a>(
        &mut self,
        paths: impl Iterator<Item = &'a Path>,
    ) -> anyhow::Result<()> {
        for path in paths {
            if !self.0.iter().any(|file| file.path == path)
                && let Some(state) = regular_file_state(path)?
            {
                self.0.push(RecordedFile { path: path.to_path_buf(), state, crc: content_crc(path)? });
            }
        }
        Ok(())
    }

    /// Checks that all files still have the recorded state. Otherwise the passes over a file may have read different
    /// data. If only the time of the last change of the metadata differs, the content is compared: permissions or links
    /// may have changed, or the file was rewritten and its time set back.
    ///
    /// # Errors
    /// A file was changed or replaced, or cannot be read.
    pub(crate) fn check_files_unchanged(&self) -> anyhow::Result<()> {
        for RecordedFile { path, state, crc } in &self.0 {
            let now = regular_file_state(path)?;
            let is_unchanged = match now {
                Some(now) if now == *state => true,
                Some(now) => now.may_have_same_content(*state) && content_crc(path)? == *crc,
                None => false,
            };
            if !is_unchanged {
                bail!(
                    "{}: was changed or replaced while it was read, so no results are written: start again, without \
                     --resume, when the file is complete",
                    path.display()
                );
            }
        }
        Ok(())
    }
}

/// Returns the state of a regular file; `None` for standard input, a pipe or a device, which are read only once.
fn regular_file_state(path: &Path) -> anyhow::Result<Option<FileState>> {
    // `-` is the standard input.
    if path == Path::new("-") {
        return Ok(None);
    }
    let found = fs::metadata(path).with_context(|| format!("{}: cannot read", path.display()))?;
    let state = FileState {
        device: found.dev(),
        inode: found.ino(),
        bytes: found.len(),
        modified: (found.mtime(), found.mtime_nsec()),
        changed: (found.ctime(), found.ctime_nsec()),
    };
    Ok(found.is_file().then_some(state))
}

/// Returns the CRC32 of the content of a file: of [`NUM_PIECES`] pieces if it is longer than [`MAX_COMPARED_BYTES`] or
/// is compressed or begins with one of [`SAMPLED_MAGICS`], otherwise of all bytes.
fn content_crc(path: &Path) -> anyhow::Result<u32> {
    compute_content_crc(path).with_context(|| format!("{}: cannot read", path.display()))
}

fn compute_content_crc(path: &Path) -> io::Result<u32> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let (mut crc, mut buffer) = (flate2::Crc::new(), vec![0; PIECE_BYTES]);
    let first = file.read_at(&mut buffer, 0)?;
    let head = &buffer[..first];
    let is_sampled =
        CompressionFormat::detect(head).is_some() || SAMPLED_MAGICS.iter().any(|magic| head.starts_with(magic));
    if bytes <= MAX_COMPARED_BYTES && !is_sampled {
        let mut file = file;
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(crc.sum()),
                Ok(n) => crc.update(&buffer[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
    let last = bytes.saturating_sub(PIECE_BYTES as u64);
    for piece in 0..NUM_PIECES {
        let n = file.read_at(&mut buffer, last * piece / (NUM_PIECES - 1))?;
        crc.update(&buffer[..n]);
    }
    Ok(crc.sum())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::Duration;

    use super::*;

    #[test]
    fn content_decides_where_only_metadata_differ() {
        let folder = tempfile::tempdir().expect("a folder");
        let head: [&[u8]; 2] = [b">chr1\n", b"\x1f\x8b\x08"];
        for (number, head) in head.into_iter().enumerate() {
            let path = folder.path().join(format!("reference_{number}"));
            let content = [head, &b"ACGT\n".repeat(200_000)].concat();
            fs::write(&path, &content).expect("a file");
            let states = InputFileStates::record_file_states([path.as_path()].into_iter()).expect("a file");
            let modified = fs::metadata(&path).and_then(|found| found.modified()).expect("a time");
            // File systems count time in steps of some milliseconds.
            std::thread::sleep(Duration::from_millis(30));
            fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).expect("permissions");
            fs::hard_link(&path, folder.path().join(format!("link_{number}"))).expect("a link");
            states.check_files_unchanged().expect("the content is the same");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("permissions");
            let file = File::options().write(true).open(&path).expect("a file");
            file.write_all_at(b"N", content.len() as u64 - 3).expect("written");
            file.set_modified(modified).expect("a time");
            assert!(
                states.check_files_unchanged().expect_err("changed").to_string().contains("was changed or replaced")
            );
            file.write_all_at(b"G", content.len() as u64 - 3).expect("written");
            file.set_modified(modified).expect("a time");
            states.check_files_unchanged().expect("the content is the same again");
        }
    }
}
