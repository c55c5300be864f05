//! What a step of a call in parts leaves: one object.
//!
//! ```text
//! pieces that other steps read some of, written while the step runs
//! the value: what lies where in these, and what else there is to say, as postcard has it
//! the end: which step, fingerprint of the run, what it cost, where the value is and its sum, as postcard has it
//! bytes of the end (8, little-endian), its sum (XXH3, 8), `GENUMAO3`
//! ```
//!
//! So whoever wants a part of an object reads its end, the value, and that part. `docs/formats/object.md`.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use genuma_work::clock::UnitCost;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use crate::depot::{Depot, Entry, Fetched};
use crate::draft::Draft;

const MAGIC: &[u8; 8] = b"GENUMAO3";
/// Bytes behind the end.
const FOOT: u64 = 24;
/// Bytes that are read at once to find the end.
const LOOK: u64 = 64 << 10;
/// Bytes read or written at once; of the longest string of bytes in a value.
const BUFFER: usize = 1 << 20;
const LONGEST: u64 = 1 << 30;

/// What can go wrong with an object.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be written, found or read.
    #[error(transparent)]
    Storage(#[from] crate::error::Error),
    /// The local file cannot be written or read.
    #[error("{object}: {source}")]
    Local {
        /// The object.
        object: String,
        /// The system's own words.
        source: io::Error,
    },
    /// It is damaged.
    #[error("{object}: damaged ({what}); do the step that made it again")]
    Damaged {
        /// The object.
        object: String,
        /// What does not fit.
        what: &'static str,
    },
    /// It was made for another run.
    #[error(
        "{object}: made for another plan ({difference}); do the step that made it again, or give this plan a place of its own"
    )]
    Foreign {
        /// The object.
        object: String,
        /// First line in which the two runs differ.
        difference: String,
    },
    /// The step that makes it is not done.
    #[error("{object}: not there; do the step that makes it first: {step}")]
    Missing {
        /// The object.
        object: String,
        /// The step, as it is given to `genuma step`.
        step: String,
    },
}

/// The end of an object.
#[derive(Debug, Serialize, Deserialize)]
struct End {
    step: String,
    fingerprint: String,
    cost: UnitCost,
    /// Where the value is.
    value: Range<u64>,
    /// Its sum (XXH3, 64 bits).
    sum: u64,
}

/// An object that is there.
#[derive(Debug)]
pub struct Object {
    entry: Entry,
    name: String,
    end: End,
}

/// Whose object it is, among those of a run.
#[derive(Debug, Clone, Copy)]
pub struct Label<'a> {
    /// The step, as it is given to `genuma step`: `scatter 3`.
    pub step: &'a str,
    /// Name of the object.
    pub name: &'a str,
    /// What results depend on, line by line.
    pub fingerprint: &'a str,
}

/// Writes the value and the end behind the pieces in a draft, and publishes it.
///
/// # Errors
/// The draft or the object cannot be written.
pub fn publish<T: Serialize>(
    depot: &Depot,
    draft: Draft,
    label: &Label<'_>,
    value: &T,
    cost: UnitCost,
) -> Result<(), Error> {
    let object = || format!("{depot}/{}", label.name);
    let local = |source| Error::Local { object: object(), source };
    let open = || {
        let mut file = File::options().append(true).open(draft.path())?;
        let start = file.seek(SeekFrom::End(0))?;
        Ok((start, file))
    };
    let (start, file) = open().map_err(local)?;
    let mut file = Summed { file: BufWriter::with_capacity(BUFFER, file), sum: XxHash3_64::new(), bytes: 0 };
    postcard::to_io(value, &mut file).map_err(|e| local(io::Error::other(e)))?;
    let value = start..start + file.bytes;
    let (step, fingerprint) = (label.step.to_owned(), label.fingerprint.to_owned());
    let end = End { step, fingerprint, cost, value, sum: file.sum.finish() };
    let end = postcard::to_stdvec(&end).map_err(|e| local(io::Error::other(e)))?;
    let foot = [(end.len() as u64).to_le_bytes(), XxHash3_64::oneshot(&end).to_le_bytes(), *MAGIC];
    let mut file = file.file;
    let rest = file.write_all(&end).and_then(|()| file.write_all(&foot.concat())).and_then(|()| file.flush());
    rest.map_err(local)?;
    drop(file);
    Ok(depot.publish(draft, label.name)?)
}

impl Object {
    /// The object of a step of the run that `label` tells of; `None` when it is not there.
    ///
    /// # Errors
    /// It cannot be read, is damaged, or is of another run.
    pub fn find(depot: &Depot, label: &Label<'_>) -> Result<Option<Object>, Error> {
        let Some(entry) = depot.find(label.name)? else { return Ok(None) };
        let (name, len) = (entry.to_string(), entry.len());
        let damaged = |what| Error::Damaged { object: name.clone(), what };
        let tail = entry.read(len.saturating_sub(LOOK)..len)?;
        let other = "not an object of this version";
        let at = tail.len().checked_sub(FOOT as usize).ok_or_else(|| damaged("too short"))?;
        let foot = &tail[at..];
        let [bytes, sum] = [0, 8].map(|at| {
            let mut number = [0; 8];
            number.copy_from_slice(&foot[at..at + 8]);
            u64::from_le_bytes(number)
        });
        if foot[16..] != *MAGIC {
            return Err(damaged(other));
        }
        let start = (len - FOOT).checked_sub(bytes).ok_or_else(|| damaged("too short"))?;
        let end = match (at as u64).checked_sub(bytes) {
            Some(from) => tail[from as usize..at].to_vec(),
            None => entry.read(start..len - FOOT)?,
        };
        if XxHash3_64::oneshot(&end) != sum {
            return Err(damaged("checksum of its end"));
        }
        let end: End = postcard::from_bytes(&end).map_err(|_| damaged(other))?;
        if end.fingerprint != label.fingerprint {
            let then = end.fingerprint.lines().chain(std::iter::repeat("nothing"));
            let difference = label.fingerprint.lines().zip(then).find(|(now, then)| now != then);
            let difference = difference
                .map_or("more inputs then".to_owned(), |(now, then)| format!("now {now}, then {then}"));
            return Err(Error::Foreign { object: name, difference });
        }
        if end.step != label.step {
            return Err(damaged("another step's"));
        }
        if end.value.start > end.value.end || end.value.end != start {
            return Err(damaged("lengths"));
        }
        Ok(Some(Object { entry, name, end }))
    }

    /// The object of a step that has to be done by now.
    ///
    /// # Errors
    /// Those of [`Object::find`], and that it is missing.
    pub fn of(depot: &Depot, label: &Label<'_>) -> Result<Object, Error> {
        Object::find(depot, label)?.ok_or_else(|| Error::Missing {
            object: format!("{depot}/{}", label.name),
            step: label.step.to_owned(),
        })
    }

    /// How it is told.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the step cost.
    pub fn cost(&self) -> &UnitCost {
        &self.end.cost
    }

    /// Bytes of the pieces in front of the value.
    pub fn pieces(&self) -> Range<u64> {
        0..self.end.value.start
    }

    /// All bytes.
    pub fn bytes(&self) -> u64 {
        self.entry.len()
    }

    /// A local file with some of its bytes.
    ///
    /// # Errors
    /// They cannot be read, or there are not so many.
    pub fn fetch(&self, range: Range<u64>) -> Result<Fetched, Error> {
        Ok(self.entry.fetch(range)?)
    }

    /// The value. It is read twice, once to sum it up and once to decode it, and never held in bytes.
    ///
    /// # Errors
    /// It cannot be read, or is damaged.
    pub fn value<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let local = |source| Error::Local { object: self.name.clone(), source };
        let damaged = |what| Error::Damaged { object: self.name.clone(), what };
        let Range { start, end } = self.end.value;
        let fetched = self.fetch(start..end)?;
        let from = SeekFrom::Start(start - fetched.start());
        let mut file = BufReader::with_capacity(BUFFER, File::open(fetched.path()).map_err(local)?);
        file.seek(from).map_err(local)?;
        let mut sum = Summed { file: io::sink(), sum: XxHash3_64::new(), bytes: 0 };
        let read = io::copy(&mut file.by_ref().take(end - start), &mut sum).map_err(local)?;
        if read != end - start || sum.sum.finish() != self.end.sum {
            return Err(damaged("checksum"));
        }
        file.seek(from).map_err(local)?;
        // Holds one text or string of bytes at a time; what is not used of it takes no memory.
        let mut scratch = vec![0; (end - start).min(LONGEST) as usize];
        let value = postcard::from_io((file.take(end - start), &mut scratch));
        value.map(|(value, _)| value).map_err(|_| damaged("contents"))
    }
}

/// Passes bytes on and sums them up.
struct Summed<W> {
    file: W,
    sum: XxHash3_64,
    bytes: u64,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        Hasher::write(&mut self.sum, &bytes[..n]);
        self.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
