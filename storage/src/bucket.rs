//! A depot that is a bucket: uploads that appear whole, and ranges that are fetched, several requests at once.
//!
//! Callers are plain threads. Each waits for one request at a time; connections are served by a small runtime beside them.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::StreamExt;
use genuma_work::parallel::try_in_order;
use object_store::multipart::PartId;
use object_store::path::Path as Key;
use object_store::{
    GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt, PutOptions, PutPayload,
};
use tokio::time::timeout;

use crate::draft::Draft;
use crate::error::Error;
use crate::network::Network;
use crate::options::Options;
use crate::place::{InBucket, is_name};
use crate::retry::{Stop, Task, persist};
use crate::wire::{Client, beyond_the_end, said, stop};

/// Parts that an upload may have.
const MOST_PARTS: u64 = 10_000;
/// How often an upload is begun anew when all its parts are there and it still cannot be completed.
const UPLOADS: u32 = 3;
/// How long an upload that failed is called off, at most.
const ABORTING: Duration = Duration::from_secs(10);

/// A bucket of objects.
#[derive(Debug)]
pub struct Bucket {
    place: InBucket,
    client: Client,
    network: Network,
    scratch: PathBuf,
    options: Options,
}

/// An object that was found.
#[derive(Debug, Clone)]
pub struct Found {
    name: String,
    /// Bytes.
    pub len: u64,
    /// What the storage calls this version; none if it does not.
    pub(crate) etag: Option<String>,
}

impl Bucket {
    pub fn open(place: InBucket, scratch: &Path, options: &Options) -> Result<Bucket, Error> {
        let client = Client::new(&place, options)?;
        let network = Network::start().map_err(|e| Error::Settings {
            place: place.to_string(),
            why: format!("no thread for its connections: {e}"),
        })?;
        Ok(Bucket { place, client, network, scratch: scratch.to_owned(), options: options.clone() })
    }

    pub fn place(&self) -> &InBucket {
        &self.place
    }

    pub fn url(&self, name: &str) -> String {
        format!("{}/{name}", self.place)
    }

    pub fn draft(&self, name: &str) -> Result<Draft, Error> {
        Draft::create(&self.scratch, name)
    }

    pub fn publish(&self, draft: Draft, name: &str) -> Result<(), Error> {
        let refused = || Error::system("read", draft.path());
        let file = File::open(draft.path()).map_err(refused())?;
        let len = file.metadata().map_err(refused())?.len();
        let upload =
            Upload { bucket: self, url: self.url(name), key: self.key(name), file: &file, draft: &draft };
        if len <= self.options.part { upload.whole(len) } else { upload.in_parts(len) }
    }

    pub fn find(&self, name: &str) -> Result<Option<Found>, Error> {
        // The answer to a range says why there is none, which that to HEAD does not. An empty object has no range.
        let first = GetOptions { range: Some(GetRange::Bounded(0..1)), ..GetOptions::default() };
        let head = GetOptions { head: true, ..GetOptions::default() };
        let url = self.url(name);
        let task = Task { doing: "read", object: &url };
        let found = self.persist(task, || match self.get(name, first.clone()) {
            Err(e) if beyond_the_end(&e) => self.get(name, head.clone()).map_err(|e| self.stop(task, &e)),
            got => got.map_err(|e| self.stop(task, &e)),
        });
        match found {
            Err(Error::Missing { .. }) => Ok(None),
            found => found
                .map(|got| Some(Found { name: name.to_owned(), len: got.meta.size, etag: got.meta.e_tag })),
        }
    }

    pub fn names(&self) -> Result<Vec<String>, Error> {
        let place = self.place.to_string();
        let task = Task { doing: "list", object: &place };
        let prefix = (!self.place.prefix.is_empty()).then(|| Key::from(self.place.prefix.as_str()));
        let listed = self.persist(task, || {
            let listing = self.client.store.list_with_delimiter(prefix.as_ref());
            self.wait(listing).map_err(|e| self.stop(task, &e))
        });
        let listed = listed.map_err(|e| self.no_bucket(e))?;
        let names = listed.objects.iter().filter_map(|object| object.location.filename());
        let mut names: Vec<String> = names.filter(|name| is_name(name)).map(str::to_owned).collect();
        names.sort_unstable();
        Ok(names)
    }

    pub fn remove(&self, name: &str) -> Result<(), Error> {
        let url = self.url(name);
        let task = Task { doing: "remove", object: &url };
        let key = self.key(name);
        let removed =
            self.persist(task, || self.wait(self.client.store.delete(&key)).map_err(|e| self.stop(task, &e)));
        match removed {
            Err(Error::Missing { .. }) => Ok(()),
            removed => removed,
        }
    }

    /// Fills `bytes` with those of the range.
    pub fn read(&self, found: &Found, range: Range<u64>, bytes: &mut [u8]) -> Result<(), Error> {
        let start = range.start;
        self.pour(found, range, |at, chunk| {
            let at = (at - start) as usize;
            bytes[at..at + chunk.len()].copy_from_slice(chunk);
            Ok(())
        })
    }

    /// A copy of the range, in the scratch folder.
    pub fn fetch(&self, found: &Found, range: Range<u64>) -> Result<Draft, Error> {
        let copy = self.draft(&found.name)?;
        let refused = || Error::system("write", copy.path());
        let file = File::options().write(true).open(copy.path()).map_err(refused())?;
        let len = range.end - range.start;
        file.set_len(len).map_err(refused())?;
        let pieces = Pieces { len, each: self.options.part };
        try_in_order(
            pieces.count(),
            self.options.at_once,
            || (),
            |(), i| {
                let piece = pieces.get(i);
                self.pour(found, range.start + piece.start..range.start + piece.end, |at, chunk| {
                    file.write_all_at(chunk, at - range.start).map_err(refused())
                })
            },
        )?;
        Ok(copy)
    }

    /// Hands on the bytes of a range as they come, each once and with its place in the object. A try goes on where the last one ended.
    fn pour(
        &self,
        found: &Found,
        range: Range<u64>,
        mut sink: impl FnMut(u64, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let url = self.url(&found.name);
        let task = Task { doing: "read", object: &url };
        let mut at = range.start;
        if at == range.end {
            return Ok(());
        }
        self.persist(task, || {
            let options = GetOptions {
                range: Some(GetRange::Bounded(at..range.end)),
                if_match: found.etag.clone(),
                ..GetOptions::default()
            };
            let got = match self.get(&found.name, options) {
                Err(e) if beyond_the_end(&e) => return Err(self.shrunk(found, task)),
                got => got.map_err(|e| self.stop(task, &e))?,
            };
            found.check(&url, &got.meta).map_err(Stop::Lasting)?;
            let mut chunks = got.into_stream();
            while let Some(chunk) = self.wait(chunks.next()) {
                // Whatever breaks an answer that has begun may pass.
                let chunk = chunk.map_err(|e| Stop::Passing(broken(&said(&e), range.end - at)))?;
                if chunk.len() as u64 > range.end - at {
                    return Err(Stop::Passing("more bytes came than were asked for".to_owned()));
                }
                sink(at, &chunk).map_err(Stop::Lasting)?;
                at += chunk.len() as u64;
            }
            if at < range.end {
                Err(Stop::Passing(broken("the answer ended", range.end - at)))
            } else {
                Ok(())
            }
        })
    }

    /// What became of an object that has not the bytes that it had.
    fn shrunk(&self, found: &Found, task: Task<'_>) -> Stop {
        let head = GetOptions { head: true, ..GetOptions::default() };
        match self.get(&found.name, head) {
            Err(e) => self.stop(task, &e),
            Ok(got) => match found.check(task.object, &got.meta) {
                Err(error) => Stop::Lasting(error),
                Ok(()) => Stop::Passing("bytes are refused that it has".to_owned()),
            },
        }
    }

    fn get(&self, name: &str, options: GetOptions) -> object_store::Result<GetResult> {
        self.wait(self.client.store.get_opts(&self.key(name), options))
    }

    fn key(&self, name: &str) -> Key {
        Key::from(self.place.key(name))
    }

    fn stop(&self, task: Task<'_>, error: &object_store::Error) -> Stop {
        stop(&self.place, task, error)
    }

    fn persist<T>(&self, task: Task<'_>, attempt: impl FnMut() -> Result<T, Stop>) -> Result<T, Error> {
        persist(self.options.patience, task, attempt)
    }

    fn wait<F: Future>(&self, request: F) -> F::Output {
        self.network.wait(request)
    }

    /// The error of a request that names no object that must be there: what is not found is the bucket, whatever the answer calls it.
    fn no_bucket(&self, error: Error) -> Error {
        match error {
            Error::Missing { .. } => Error::NoPlace { place: self.place.to_string(), what: "bucket" },
            other => other,
        }
    }
}

fn broken(what: &str, missing: u64) -> String {
    format!("{what} with {missing} bytes still to come")
}

impl Found {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Fails unless the object is still the one that was found.
    fn check(&self, url: &str, now: &ObjectMeta) -> Result<(), Error> {
        let object = || url.to_owned();
        if now.e_tag != self.etag {
            return Err(Error::Replaced { object: object() });
        }
        if now.size < self.len {
            return Err(Error::Truncated { object: object(), len: self.len, found: now.size });
        }
        Ok(())
    }
}

/// What is cut into pieces of the same length, but for the last.
#[derive(Debug, Clone, Copy)]
struct Pieces {
    len: u64,
    each: u64,
}

impl Pieces {
    /// No more of them than an upload may have.
    fn for_upload(len: u64, each: u64) -> Pieces {
        Pieces { len, each: each.max(len.div_ceil(MOST_PARTS)) }
    }

    fn count(self) -> usize {
        self.len.div_ceil(self.each.max(1)) as usize
    }

    fn get(self, i: usize) -> Range<u64> {
        let start = i as u64 * self.each.max(1);
        start..(start + self.each.max(1)).min(self.len)
    }
}

/// A file on its way to the bucket.
struct Upload<'a> {
    bucket: &'a Bucket,
    url: String,
    key: Key,
    file: &'a File,
    draft: &'a Draft,
}

impl Upload<'_> {
    fn whole(&self, len: u64) -> Result<(), Error> {
        let payload = PutPayload::from(self.bytes(0..len)?);
        self.persist(|| {
            let put = self.bucket.client.store.put_opts(&self.key, payload.clone(), PutOptions::default());
            self.bucket.wait(put).map(drop).map_err(|e| self.stop(&e))
        })
        .map_err(|e| self.bucket.no_bucket(e))
    }

    fn in_parts(&self, len: u64) -> Result<(), Error> {
        let pieces = Pieces::for_upload(len, self.bucket.options.part);
        let mut left = UPLOADS;
        // An upload whose completion is answered by a broken connection may be complete, and then is not known any more.
        loop {
            left -= 1;
            match self.once_in_parts(pieces) {
                Err(Error::Missing { .. }) if left > 0 => {
                    tracing::warn!("the upload of {} is lost; sending it again", self.url);
                }
                Err(Error::Missing { object }) => {
                    let said = format!("its upload was lost {UPLOADS} times");
                    return Err(Error::Refused { doing: "write", object, said });
                }
                sent => return sent,
            }
        }
    }

    fn once_in_parts(&self, pieces: Pieces) -> Result<(), Error> {
        let (bucket, parts) = (self.bucket, &self.bucket.client.parts);
        let begun =
            self.persist(|| bucket.wait(parts.create_multipart(&self.key)).map_err(|e| self.stop(&e)));
        let id = begun.map_err(|e| bucket.no_bucket(e))?;
        let send = |i: usize| -> Result<PartId, Error> {
            let payload = PutPayload::from(self.bytes(pieces.get(i))?);
            self.persist(|| {
                let put = parts.put_part(&self.key, &id, i, payload.clone());
                bucket.wait(put).map_err(|e| self.stop(&e))
            })
        };
        let sent = try_in_order(pieces.count(), bucket.options.at_once, || (), |(), i| send(i));
        let done = sent.and_then(|sent| {
            self.persist(|| {
                let complete = parts.complete_multipart(&self.key, &id, sent.clone());
                bucket.wait(complete).map(drop).map_err(|e| self.stop(&e))
            })
        });
        if done.is_err() {
            // Parts that stay behind cost something, but the error is what matters.
            let abort = async { timeout(ABORTING, parts.abort_multipart(&self.key, &id)).await };
            let _ = bucket.wait(abort);
        }
        done
    }

    fn bytes(&self, range: Range<u64>) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        self.file.read_exact_at(&mut bytes, range.start).map_err(Error::system("read", self.draft.path()))?;
        Ok(bytes)
    }

    fn persist<T>(&self, attempt: impl FnMut() -> Result<T, Stop>) -> Result<T, Error> {
        self.bucket.persist(self.task(), attempt)
    }

    fn stop(&self, error: &object_store::Error) -> Stop {
        self.bucket.stop(self.task(), error)
    }

    fn task(&self) -> Task<'_> {
        Task { doing: "write", object: &self.url }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_up_the_whole() {
        for (len, each) in [(0, 4), (1, 4), (4, 4), (5, 4), (1000, 7)] {
            let pieces = Pieces { len, each };
            let cut: Vec<_> = (0..pieces.count()).map(|i| pieces.get(i)).collect();
            assert_eq!(cut.first().map_or(0, |r| r.start), 0);
            assert_eq!(cut.last().map_or(0, |r| r.end), len);
            assert!(
                cut.windows(2).all(|two| two[0].end == two[1].start && two[0].end - two[0].start == each)
            );
            assert!(cut.iter().all(|r| r.start < r.end));
        }
    }

    #[test]
    fn an_upload_has_no_more_parts_than_it_may() {
        for len in [1 << 20, 80 << 30, (80 << 30) + 1, 5 << 40] {
            assert!(Pieces::for_upload(len, 8 << 20).count() as u64 <= MOST_PARTS);
        }
        assert_eq!(Pieces::for_upload(1 << 30, 8 << 20).each, 8 << 20);
    }
}
