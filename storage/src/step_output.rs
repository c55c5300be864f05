//! The output of one task of a distributed call, stored as one object of the run store:
//!
//! ```text
//! data blocks, written while the task runs; other tasks read some of them
//! value: index of the data blocks and other results, serialised by postcard
//! trailer: step, fingerprint of the run, cost, range and checksum of the value, serialised by postcard
//! length of the trailer (8 bytes, little-endian), its checksum (XXH3, 8 bytes), `GENUMAO4`
//! ```
//!
//! To read a data block, first the trailer is read, then the value, then the block. The layout is described in
//! `docs/formats/object.md`.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use genuma_work::cost::UnitCost;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use crate::run_store::{LocalObjectFile, RunStore, StoredObject};
use crate::temp_object::TempObject;

const MAGIC: &[u8; 8] = b"GENUMAO4";
/// Number of bytes after the trailer: its length, its checksum and the magic number.
const FOOTER_BYTES: u64 = 24;
/// Number of bytes that are read at once from the end of an object. They usually contain the whole trailer.
const TAIL_READ_BYTES: u64 = 64 << 10;
/// Size of read and write buffers in bytes.
const BUFFER_BYTES: usize = 1 << 20;
const MAX_STRING_BYTES: u64 = 1 << 30;

/// An error when the output of a task is written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The object cannot be written to, found in, or read from the run store.
    #[error(transparent)]
    Storage(#[from] crate::error::Error),
    /// A local temporary file cannot be written or read.
    #[error("{object}: {source}")]
    LocalFile {
        /// Path or URL of the object.
        object: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The object is damaged, or was written by an incompatible version.
    #[error("{object}: damaged ({what}); run the step that made it again (genuma step RUN STEP NUMBER --again)")]
    Damaged {
        /// Path or URL of the object.
        object: String,
        /// The check that failed, such as `checksum`.
        what: &'static str,
    },
    /// The object was made for a call with other inputs or parameters.
    #[error(
        "{object}: made for another plan ({difference}); run the step that made it again (genuma step RUN STEP NUMBER --again), or use another run store for this plan"
    )]
    OtherRun {
        /// Path or URL of the object.
        object: String,
        /// First line of the fingerprint in which the two calls differ.
        difference: String,
    },
    /// The task that makes the object has not run.
    #[error("{object}: missing; first run the step that makes it: {step}")]
    Missing {
        /// Path or URL of the object.
        object: String,
        /// The task, as it is given to `genuma step`: step and number.
        step: String,
    },
}

/// Metadata at the end of the object.
#[derive(Debug, Serialize, Deserialize)]
struct Trailer {
    step: String,
    fingerprint: String,
    cost: UnitCost,
    /// Range of bytes of the object that contains the value.
    value_range: Range<u64>,
    /// Checksum of the value (XXH3, 64 bits).
    value_checksum: u64,
}

/// The output of a task, found in the run store.
#[derive(Debug)]
pub struct StepOutput {
    object: StoredObject,
    name: String,
    trailer: Trailer,
}

/// Identifies the output of one task of a distributed call.
#[derive(Debug, Clone, Copy)]
pub struct StepOutputId<'a> {
    /// The task, as it is given to `genuma step`: `scatter 3`.
    pub step: &'a str,
    /// Name of the object in the run store.
    pub name: &'a str,
    /// Text with everything that results depend on (inputs, parameters, version), one item per line.
    pub fingerprint: &'a str,
}

/// Appends the value and the trailer to the data blocks in `temp_object`, and publishes it as the object `label.name`.
/// `cost`: the resources that the task used.
///
/// # Errors
/// The temporary object cannot be written, or the object cannot be published.
pub fn publish_step_output<T: Serialize>(
    store: &RunStore,
    temp_object: TempObject,
    label: &StepOutputId<'_>,
    value: &T,
    cost: UnitCost,
) -> Result<(), Error> {
    let object = || format!("{store}/{}", label.name);
    let local = |source| Error::LocalFile { object: object(), source };
    let open = || {
        let mut file = File::options().append(true).open(temp_object.path())?;
        let start = file.seek(SeekFrom::End(0))?;
        Ok((start, file))
    };
    let (start, file) = open().map_err(local)?;
    let mut file =
        ChecksumWriter { file: BufWriter::with_capacity(BUFFER_BYTES, file), checksum: XxHash3_64::new(), bytes: 0 };
    postcard::to_io(value, &mut file).map_err(|e| local(io::Error::other(e)))?;
    let value = start..start + file.bytes;
    let (step, fingerprint) = (label.step.to_owned(), label.fingerprint.to_owned());
    let end = Trailer { step, fingerprint, cost, value_range: value, value_checksum: file.checksum.finish() };
    let end = postcard::to_stdvec(&end).map_err(|e| local(io::Error::other(e)))?;
    let foot = [(end.len() as u64).to_le_bytes(), XxHash3_64::oneshot(&end).to_le_bytes(), *MAGIC];
    let mut file = file.file;
    let rest = file.write_all(&end).and_then(|()| file.write_all(&foot.concat())).and_then(|()| file.flush());
    rest.map_err(local)?;
    drop(file);
    Ok(store.publish(temp_object, label.name)?)
}

impl StepOutput {
    /// Finds the output of a task; `None` if the object does not exist.
    ///
    /// # Errors
    /// The object cannot be read, is damaged, or was made for a call with other inputs or parameters.
    pub fn find_step_output(store: &RunStore, label: &StepOutputId<'_>) -> Result<Option<StepOutput>, Error> {
        let Some(entry) = store.open_object_if_exists(label.name)? else { return Ok(None) };
        let (name, len) = (entry.to_string(), entry.len_bytes());
        let damaged = |what| Error::Damaged { object: name.clone(), what };
        let tail = entry.read_range(len.saturating_sub(TAIL_READ_BYTES)..len)?;
        let other = "not an object of this version";
        let at = tail.len().checked_sub(FOOTER_BYTES as usize).ok_or_else(|| damaged("too short"))?;
        let foot = &tail[at..];
        let [bytes, sum] = [0, 8].map(|at| {
            let mut number = [0; 8];
            number.copy_from_slice(&foot[at..at + 8]);
            u64::from_le_bytes(number)
        });
        if foot[16..] != *MAGIC {
            return Err(damaged(other));
        }
        let start = (len - FOOTER_BYTES).checked_sub(bytes).ok_or_else(|| damaged("too short"))?;
        let end = match (at as u64).checked_sub(bytes) {
            Some(from) => tail[from as usize..at].to_vec(),
            None => entry.read_range(start..len - FOOTER_BYTES)?,
        };
        if XxHash3_64::oneshot(&end) != sum {
            return Err(damaged("checksum of its end"));
        }
        let end: Trailer = postcard::from_bytes(&end).map_err(|_| damaged(other))?;
        if end.fingerprint != label.fingerprint {
            let then = end.fingerprint.lines().chain(std::iter::repeat("nothing"));
            let difference = label.fingerprint.lines().zip(then).find(|(now, then)| now != then);
            let difference =
                difference.map_or("more inputs then".to_owned(), |(now, then)| format!("now {now}, then {then}"));
            return Err(Error::OtherRun { object: name, difference });
        }
        if end.step != label.step {
            return Err(damaged("made by another step"));
        }
        if end.value_range.start > end.value_range.end || end.value_range.end != start {
            return Err(damaged("lengths"));
        }
        Ok(Some(StepOutput { object: entry, name, trailer: end }))
    }

    /// Finds the output of a task that must have run.
    ///
    /// # Errors
    /// The errors of [`StepOutput::find_step_output`]; [`Error::Missing`] if the object does not exist.
    pub fn find_required_step_output(store: &RunStore, label: &StepOutputId<'_>) -> Result<StepOutput, Error> {
        StepOutput::find_step_output(store, label)?
            .ok_or_else(|| Error::Missing { object: format!("{store}/{}", label.name), step: label.step.to_owned() })
    }

    /// Returns the path or URL of the object, for messages.
    pub fn object_path_or_url(&self) -> &str {
        &self.name
    }

    /// Returns the resources that the task used.
    pub fn task_cost(&self) -> &UnitCost {
        &self.trailer.cost
    }

    /// Returns the range of bytes of the data blocks, which is the part of the object before the value.
    pub fn data_blocks_range(&self) -> Range<u64> {
        0..self.trailer.value_range.start
    }

    /// Returns the length of the object in bytes.
    pub fn len_bytes(&self) -> u64 {
        self.object.len_bytes()
    }

    /// Returns a local file with at least this range of bytes of the object.
    ///
    /// # Errors
    /// The bytes cannot be read, or the object has fewer.
    pub fn fetch_range_to_file(&self, range: Range<u64>) -> Result<LocalObjectFile, Error> {
        Ok(self.object.fetch_range_to_file(range)?)
    }

    /// Reads the value. The bytes are read twice, first for the checksum and then to decode them, so that they are
    /// never all in memory.
    ///
    /// # Errors
    /// The bytes cannot be read, or are damaged.
    pub fn read_value<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let local = |source| Error::LocalFile { object: self.name.clone(), source };
        let damaged = |what| Error::Damaged { object: self.name.clone(), what };
        let Range { start, end } = self.trailer.value_range;
        let fetched = self.fetch_range_to_file(start..end)?;
        let from = SeekFrom::Start(start - fetched.object_offset());
        let mut file = BufReader::with_capacity(BUFFER_BYTES, File::open(fetched.local_path()).map_err(local)?);
        file.seek(from).map_err(local)?;
        let mut sum = ChecksumWriter { file: io::sink(), checksum: XxHash3_64::new(), bytes: 0 };
        let read = io::copy(&mut file.by_ref().take(end - start), &mut sum).map_err(local)?;
        if read != end - start || sum.checksum.finish() != self.trailer.value_checksum {
            return Err(damaged("checksum"));
        }
        file.seek(from).map_err(local)?;
        // Buffer for one string or byte array at a time; pages that are not touched take no memory.
        let mut scratch = vec![0; (end - start).min(MAX_STRING_BYTES) as usize];
        let value = postcard::from_io((file.take(end - start), &mut scratch));
        value.map(|(value, _)| value).map_err(|_| damaged("contents"))
    }
}

/// Passes bytes on to a writer, and computes their number and checksum.
struct ChecksumWriter<W> {
    file: W,
    checksum: XxHash3_64,
    bytes: u64,
}

impl<W: Write> Write for ChecksumWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        Hasher::write(&mut self.checksum, &bytes[..n]);
        self.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
