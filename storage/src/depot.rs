//! Objects by their names, wherever they are.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::bucket::{self, Bucket};
use crate::draft::Draft;
use crate::error::Error;
use crate::folder::{self, Folder};
use crate::options::Options;
use crate::place::{Place, checked};

/// Where the objects of a run are. Names are of letters, digits and `. _ - + =`, without a dot in front.
#[derive(Debug)]
pub struct Depot(Backend);

#[derive(Debug)]
enum Backend {
    Folder(Folder),
    Bucket(Arc<Bucket>),
}

impl Depot {
    /// At `place`: a folder, `file:///folder`, `s3://bucket/prefix` or `gs://bucket/prefix`. What is on its way to or from a bucket waits in
    /// the folder `scratch`. How a bucket is reached is in the usual environment variables (`AWS_…`, `GOOGLE_…`). Nothing is sent.
    ///
    /// # Errors
    /// No such place can be; what the environment says of a bucket is wrong or not enough.
    pub fn open(place: &str, scratch: &Path) -> Result<Depot, Error> {
        Depot::open_with(place, scratch, &Options::of_environment())
    }

    /// The same, with other options.
    ///
    /// # Errors
    /// Those of [`Depot::open`].
    pub fn open_with(place: &str, scratch: &Path, options: &Options) -> Result<Depot, Error> {
        Ok(Depot(match Place::parse(place)? {
            Place::Folder(path) => Backend::Folder(Folder(path)),
            Place::Bucket(place) => Backend::Bucket(Arc::new(Bucket::open(place, scratch, options)?)),
        }))
    }

    /// Makes the folder if it is missing. A bucket must be there.
    ///
    /// # Errors
    /// The system refuses.
    pub fn create(&self) -> Result<(), Error> {
        match &self.0 {
            Backend::Folder(folder) => folder.create(),
            Backend::Bucket(_) => Ok(()),
        }
    }

    /// A file to write what will be the object `name`: in the folder, or in the scratch folder of a bucket.
    ///
    /// # Errors
    /// No name, or the file cannot be made.
    pub fn draft(&self, name: &str) -> Result<Draft, Error> {
        let name = checked(name)?;
        match &self.0 {
            Backend::Folder(folder) => folder.draft(name),
            Backend::Bucket(bucket) => bucket.draft(name),
        }
    }

    /// Gives a finished file its name, replacing what had it: it appears whole, and is on the disk or in the bucket for good when this
    /// returns. The draft is gone then, and after an error too.
    ///
    /// # Errors
    /// The disk is full or the system refuses; the bucket cannot be reached for a long time, or refuses.
    pub fn publish(&self, draft: Draft, name: &str) -> Result<(), Error> {
        let name = checked(name)?;
        match &self.0 {
            Backend::Folder(folder) => folder.publish(draft, name),
            Backend::Bucket(bucket) => bucket.publish(draft, name),
        }
    }

    /// The object of a name, as it is now; none if there is none.
    ///
    /// # Errors
    /// The folder or bucket is missing, or refuses; it cannot be reached for a long time.
    pub fn find(&self, name: &str) -> Result<Option<Entry>, Error> {
        let name = checked(name)?;
        Ok(match &self.0 {
            Backend::Folder(folder) => folder.find(name)?.map(|found| Entry(Found::Folder(found))),
            Backend::Bucket(bucket) => {
                bucket.find(name)?.map(|found| Entry(Found::Bucket(Arc::clone(bucket), found)))
            }
        })
    }

    /// The names of all objects, sorted. Drafts are not among them.
    ///
    /// # Errors
    /// Those of [`Depot::find`].
    pub fn names(&self) -> Result<Vec<String>, Error> {
        match &self.0 {
            Backend::Folder(folder) => folder.names(),
            Backend::Bucket(bucket) => bucket.names(),
        }
    }

    /// Removes an object, if there is one.
    ///
    /// # Errors
    /// Those of [`Depot::find`].
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        let name = checked(name)?;
        match &self.0 {
            Backend::Folder(folder) => folder.remove(name),
            Backend::Bucket(bucket) => bucket.remove(name),
        }
    }
}

/// As it is told: the folder, or the bucket's URL.
impl fmt::Display for Depot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Backend::Folder(folder) => folder.0.display().fmt(f),
            Backend::Bucket(bucket) => bucket.place().fmt(f),
        }
    }
}

/// An object that was found. What gets its name later is another: bytes of that are never given.
#[derive(Debug)]
pub struct Entry(Found);

#[derive(Debug)]
enum Found {
    Folder(folder::Found),
    Bucket(Arc<Bucket>, bucket::Found),
}

impl Entry {
    /// Its length, in bytes.
    pub fn len(&self) -> u64 {
        match &self.0 {
            Found::Folder(found) => found.len,
            Found::Bucket(_, found) => found.len,
        }
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A text that differs between any two objects that have the name one after the other. Empty where a bucket does not tell.
    pub fn version(&self) -> &str {
        match &self.0 {
            Found::Folder(found) => &found.version,
            Found::Bucket(_, found) => found.etag.as_deref().unwrap_or_default(),
        }
    }

    /// Some bytes of it, in memory: an index at its end, say.
    ///
    /// # Errors
    /// It has not so many; it was removed, replaced or cut short meanwhile (where that matters); it cannot be read for a long time.
    pub fn read(&self, range: Range<u64>) -> Result<Vec<u8>, Error> {
        self.check(&range)?;
        let mut bytes = vec![0; (range.end - range.start) as usize];
        match &self.0 {
            Found::Folder(found) => found.read(range, &mut bytes)?,
            Found::Bucket(bucket, found) => bucket.read(found, range, &mut bytes)?,
        }
        Ok(bytes)
    }

    /// A local file with at least these bytes: of a folder the object itself, of a bucket a copy in the scratch folder.
    ///
    /// # Errors
    /// Those of [`Entry::read`]; the scratch folder has no room.
    pub fn fetch(&self, range: Range<u64>) -> Result<Fetched, Error> {
        self.check(&range)?;
        Ok(match &self.0 {
            Found::Folder(found) => {
                Fetched { path: found.open_path(range)?, start: 0, _kept: Kept::Open(found.clone()) }
            }
            Found::Bucket(bucket, found) => {
                let start = range.start;
                let copy = bucket.fetch(found, range)?;
                Fetched { path: copy.path().to_owned(), start, _kept: Kept::Copied(copy) }
            }
        })
    }

    fn check(&self, range: &Range<u64>) -> Result<(), Error> {
        let len = self.len();
        if range.start <= range.end && range.end <= len {
            return Ok(());
        }
        Err(Error::Range { object: self.to_string(), range: range.clone(), len })
    }
}

/// As it is told: the file's path, or the object's URL.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Found::Folder(found) => found.path().display().fmt(f),
            Found::Bucket(bucket, found) => f.write_str(&bucket.url(found.name())),
        }
    }
}

/// A local file with bytes of an object. The path is good for as long as this lives, and in this process.
#[derive(Debug)]
pub struct Fetched {
    path: PathBuf,
    start: u64,
    _kept: Kept,
}

/// What keeps the path good.
#[derive(Debug)]
enum Kept {
    Open(#[expect(dead_code, reason = "its file stays open")] folder::Found),
    Copied(#[expect(dead_code, reason = "removed when dropped")] Draft),
}

impl Fetched {
    /// Where to open it, for reading.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The byte of the object that is the file's first.
    pub fn start(&self) -> u64 {
        self.start
    }
}
