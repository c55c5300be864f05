//! A run store in a bucket: atomic uploads, and downloads of byte ranges by concurrent requests.
//!
//! Callers are ordinary threads, each of which waits for its request. One network thread serves all connections.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::StreamExt;
use genuma_work::parallel::try_map_in_order;
use object_store::multipart::PartId;
use object_store::path::Path as Key;
use object_store::{
    GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
};
use tokio::time::timeout;

use crate::bucket_client::{
    BucketClient, classify_request_error, is_not_implemented, is_range_not_satisfiable, root_cause_message,
};
use crate::bucket_options::BucketOptions;
use crate::error::Error;
use crate::network_thread::NetworkThread;
use crate::retry::{AttemptError, RequestDescription, retry};
use crate::store_location::{BucketLocation, is_object_name};
use crate::temp_object::TempObject;

/// Maximum number of parts of a multipart upload (S3).
const MAX_PARTS: u64 = 10_000;
/// Maximum number of times that a multipart upload is started. It is started again if all parts were sent but the
/// service does not know the upload any more.
const MAX_UPLOAD_ATTEMPTS: u32 = 3;
/// Maximum time for the request that aborts a failed upload.
const ABORT_TIMEOUT: Duration = Duration::from_secs(10);

/// A run store in a bucket of S3 or Google Cloud Storage.
#[derive(Debug)]
pub(crate) struct BucketStore {
    location: BucketLocation,
    client: BucketClient,
    network: NetworkThread,
    scratch: PathBuf,
    options: BucketOptions,
}

/// An object that was found in a bucket: its size and its version. Reading fails if the version changes.
#[derive(Debug, Clone)]
pub(crate) struct BucketObject {
    name: String,
    /// Length of the object in bytes.
    pub len: u64,
    /// Version of the object (ETag); `None` if the service does not report it.
    pub(crate) etag: Option<String>,
}

impl BucketStore {
    /// Opens a bucket. Temporary files are kept in the folder `scratch`. Sends no request.
    pub fn open(location: BucketLocation, scratch: &Path, options: &BucketOptions) -> Result<BucketStore, Error> {
        let client = BucketClient::new(&location, options)?;
        let network = NetworkThread::start().map_err(|e| Error::InvalidBucketSettings {
            location: location.to_string(),
            reason: format!("the network thread cannot be started: {e}"),
        })?;
        Ok(BucketStore { location, client, network, scratch: scratch.to_owned(), options: options.clone() })
    }

    /// Returns the bucket, and the prefix of all its object names.
    pub fn location(&self) -> &BucketLocation {
        &self.location
    }

    /// Returns the URL of an object, for messages.
    pub fn url(&self, name: &str) -> String {
        format!("{}/{name}", self.location)
    }

    /// See [`RunStore::create_temp_object`](crate::RunStore::create_temp_object).
    pub fn create_temp_object(&self, name: &str) -> Result<TempObject, Error> {
        TempObject::create(&self.scratch, name)
    }

    /// Publishes the temporary object as the object `name`. See [`RunStore::publish`](crate::RunStore::publish).
    pub fn publish(&self, temp_object: TempObject, name: &str) -> Result<(), Error> {
        let read_error = || Error::io_error_converter("read", temp_object.path());
        let file = File::open(temp_object.path()).map_err(read_error())?;
        let len = file.metadata().map_err(read_error())?.len();
        let upload = Upload { bucket: self, url: self.url(name), key: self.key(name), file: &file, temp: &temp_object };
        if len <= self.options.part_bytes { upload.upload_single(len) } else { upload.upload_multipart(len) }
    }

    /// Publishes the temporary object unless an object `name` exists. See
    /// [`RunStore::publish_if_absent`](crate::RunStore::publish_if_absent). The object is sent in a single request, so
    /// it must be small.
    pub fn publish_if_absent(&self, temp_object: TempObject, name: &str) -> Result<bool, Error> {
        let read_error = || Error::io_error_converter("read", temp_object.path());
        let file = File::open(temp_object.path()).map_err(read_error())?;
        let len = file.metadata().map_err(read_error())?.len();
        let upload = Upload { bucket: self, url: self.url(name), key: self.key(name), file: &file, temp: &temp_object };
        match upload.upload_if_absent(len)? {
            Some(is_published) => Ok(is_published),
            // The service cannot exclude that two processes publish at the same moment.
            None if self.open_object_if_exists(name)?.is_some() => Ok(false),
            None => upload.upload_single(len).map(|()| true),
        }
    }

    /// Opens the present version of the object `name`; `None` if it does not exist. See
    /// [`RunStore::open_object_if_exists`](crate::RunStore::open_object_if_exists).
    pub fn open_object_if_exists(&self, name: &str) -> Result<Option<BucketObject>, Error> {
        // The answer to a range request says why there is no object; the answer to HEAD does not. An empty object has
        // no range.
        let first = GetOptions { range: Some(GetRange::Bounded(0..1)), ..GetOptions::default() };
        let head = GetOptions { head: true, ..GetOptions::default() };
        let url = self.url(name);
        let task = RequestDescription { action: "read", object: &url };
        let found = self.retry(task, || match self.get(name, first.clone()) {
            Err(e) if is_range_not_satisfiable(&e) => self.get(name, head.clone()).map_err(|e| self.classify(task, &e)),
            got => got.map_err(|e| self.classify(task, &e)),
        });
        match found {
            Err(Error::ObjectRemoved { .. }) => Ok(None),
            found => {
                found.map(|got| Some(BucketObject { name: name.to_owned(), len: got.meta.size, etag: got.meta.e_tag }))
            }
        }
    }

    /// Returns the sorted names of all objects. See
    /// [`RunStore::list_object_names`](crate::RunStore::list_object_names).
    pub fn list_object_names(&self) -> Result<Vec<String>, Error> {
        let location = self.location.to_string();
        let task = RequestDescription { action: "list", object: &location };
        let prefix = (!self.location.prefix.is_empty()).then(|| Key::from(self.location.prefix.as_str()));
        let listed = self.retry(task, || {
            let listing = self.client.store.list_with_delimiter(prefix.as_ref());
            self.block_on(listing).map_err(|e| self.classify(task, &e))
        });
        let listed = listed.map_err(|e| self.missing_bucket_error(e))?;
        let names = listed.objects.iter().filter_map(|object| object.location.filename());
        let mut names: Vec<String> = names.filter(|name| is_object_name(name)).map(str::to_owned).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Removes the object `name` if it exists. See [`RunStore::remove_object`](crate::RunStore::remove_object).
    pub fn remove_object(&self, name: &str) -> Result<(), Error> {
        let url = self.url(name);
        let task = RequestDescription { action: "remove", object: &url };
        let key = self.key(name);
        let removed =
            self.retry(task, || self.block_on(self.client.store.delete(&key)).map_err(|e| self.classify(task, &e)));
        match removed {
            Err(Error::ObjectRemoved { .. }) => Ok(()),
            removed => removed,
        }
    }

    /// Reads a range of an object into `bytes`, which must be as long as the range.
    pub fn read_range(&self, found: &BucketObject, range: Range<u64>, bytes: &mut [u8]) -> Result<(), Error> {
        let start = range.start;
        self.stream_range(found, range, |at, chunk| {
            let at = (at - start) as usize;
            bytes[at..at + chunk.len()].copy_from_slice(chunk);
            Ok(())
        })
    }

    /// Downloads a range of an object into a temporary file in the scratch folder, by concurrent requests.
    pub fn fetch_range_to_file(&self, found: &BucketObject, range: Range<u64>) -> Result<TempObject, Error> {
        let copy = self.create_temp_object(&found.name)?;
        let write_error = || Error::io_error_converter("write", copy.path());
        let file = File::options().write(true).open(copy.path()).map_err(write_error())?;
        let len = range.end - range.start;
        file.set_len(len).map_err(write_error())?;
        let parts = PartRanges { len, part_bytes: self.options.part_bytes };
        try_map_in_order(
            parts.count(),
            self.options.max_concurrent_requests,
            || (),
            |(), i| {
                let part = parts.range(i);
                self.stream_range(found, range.start + part.start..range.start + part.end, |at, chunk| {
                    file.write_all_at(chunk, at - range.start).map_err(write_error())
                })
            },
        )?;
        Ok(copy)
    }

    /// Downloads a range of an object. Calls `sink` with the bytes as they arrive, each once, and their offset in the
    /// object. A retry continues where the last attempt ended.
    fn stream_range(
        &self,
        found: &BucketObject,
        range: Range<u64>,
        mut sink: impl FnMut(u64, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let url = self.url(&found.name);
        let task = RequestDescription { action: "read", object: &url };
        let mut at = range.start;
        if at == range.end {
            return Ok(());
        }
        self.retry(task, || {
            let options = GetOptions {
                range: Some(GetRange::Bounded(at..range.end)),
                if_match: found.etag.clone(),
                ..GetOptions::default()
            };
            let got = match self.get(&found.name, options) {
                Err(e) if is_range_not_satisfiable(&e) => return Err(self.out_of_range_error(found, task)),
                got => got.map_err(|e| self.classify(task, &e))?,
            };
            found.check_unchanged(&url, &got.meta).map_err(AttemptError::Permanent)?;
            let mut chunks = got.into_stream();
            while let Some(chunk) = self.block_on(chunks.next()) {
                // Any failure after the response has started may be transient.
                let chunk = chunk.map_err(|e| {
                    AttemptError::Transient(broken_answer_message(&root_cause_message(&e), range.end - at))
                })?;
                if chunk.len() as u64 > range.end - at {
                    return Err(AttemptError::Transient("the answer has more bytes than were requested".to_owned()));
                }
                sink(at, &chunk).map_err(AttemptError::Permanent)?;
                at += chunk.len() as u64;
            }
            if at < range.end {
                Err(AttemptError::Transient(broken_answer_message("the answer ended", range.end - at)))
            } else {
                Ok(())
            }
        })
    }

    /// Returns the error for a range that the service cannot return ("range not satisfiable"): the object was removed,
    /// replaced or truncated. If the object is unchanged, the error is transient.
    fn out_of_range_error(&self, found: &BucketObject, task: RequestDescription<'_>) -> AttemptError {
        let head = GetOptions { head: true, ..GetOptions::default() };
        match self.get(&found.name, head) {
            Err(e) => self.classify(task, &e),
            Ok(got) => match found.check_unchanged(task.object, &got.meta) {
                Err(error) => AttemptError::Permanent(error),
                Ok(()) => AttemptError::Transient("the storage service did not return a part of the object".to_owned()),
            },
        }
    }

    fn get(&self, name: &str, options: GetOptions) -> object_store::Result<GetResult> {
        self.block_on(self.client.store.get_opts(&self.key(name), options))
    }

    fn key(&self, name: &str) -> Key {
        Key::from(self.location.object_key(name))
    }

    fn classify(&self, task: RequestDescription<'_>, error: &object_store::Error) -> AttemptError {
        classify_request_error(&self.location, task, error)
    }

    fn retry<T>(
        &self,
        task: RequestDescription<'_>,
        attempt: impl FnMut() -> Result<T, AttemptError>,
    ) -> Result<T, Error> {
        retry(self.options.retry_timeout, task, attempt)
    }

    fn block_on<F: Future>(&self, request: F) -> F::Output {
        self.network.block_on(request)
    }

    /// Converts "not found" to "bucket missing". It is used for requests that do not need an existing object.
    fn missing_bucket_error(&self, error: Error) -> Error {
        match error {
            Error::ObjectRemoved { .. } => Error::StoreMissing { location: self.location.to_string(), what: "bucket" },
            other => other,
        }
    }
}

fn broken_answer_message(what: &str, missing: u64) -> String {
    format!("{what} with {missing} bytes missing")
}

impl BucketObject {
    /// Returns the name of the object in the run store, without the prefix of the bucket.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns an error if the object was replaced or truncated since it was found. `now` is its present metadata.
    fn check_unchanged(&self, url: &str, now: &ObjectMeta) -> Result<(), Error> {
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

/// Division of an object into parts for a multipart upload, or of a range of it for concurrent downloads. All parts
/// have the same length, except the last.
#[derive(Debug, Clone, Copy)]
struct PartRanges {
    len: u64,
    part_bytes: u64,
}

impl PartRanges {
    /// Divides `len` bytes into parts of at least `part_bytes`; parts are longer if there would be too many for an
    /// upload.
    fn for_upload(len: u64, part_bytes: u64) -> PartRanges {
        PartRanges { len, part_bytes: part_bytes.max(len.div_ceil(MAX_PARTS)) }
    }

    fn count(self) -> usize {
        self.len.div_ceil(self.part_bytes.max(1)) as usize
    }

    fn range(self, i: usize) -> Range<u64> {
        let start = i as u64 * self.part_bytes.max(1);
        start..(start + self.part_bytes.max(1)).min(self.len)
    }
}

/// The upload of a local file to the bucket.
struct Upload<'a> {
    bucket: &'a BucketStore,
    url: String,
    key: Key,
    file: &'a File,
    temp: &'a TempObject,
}

impl Upload<'_> {
    fn upload_single(&self, len: u64) -> Result<(), Error> {
        let payload = PutPayload::from(self.read_bytes(0..len)?);
        self.retry(|| {
            let put = self.bucket.client.store.put_opts(&self.key, payload.clone(), PutOptions::default());
            self.bucket.block_on(put).map(drop).map_err(|e| self.classify(&e))
        })
        .map_err(|e| self.bucket.missing_bucket_error(e))
    }

    /// Uploads an object in one request, unless an object of its name exists. Returns whether it was uploaded; `None`
    /// if the service does not support conditional requests.
    fn upload_if_absent(&self, len: u64) -> Result<Option<bool>, Error> {
        let payload = PutPayload::from(self.read_bytes(0..len)?);
        let created = self.retry(|| {
            let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            let put = self.bucket.client.store.put_opts(&self.key, payload.clone(), options);
            match self.bucket.block_on(put) {
                Ok(_) => Ok(Some(true)),
                Err(object_store::Error::AlreadyExists { .. }) => Ok(Some(false)),
                Err(object_store::Error::NotImplemented { .. }) => Ok(None),
                Err(e) if is_not_implemented(&e) => Ok(None),
                Err(e) => Err(self.classify(&e)),
            }
        });
        created.map_err(|e| self.bucket.missing_bucket_error(e))
    }

    fn upload_multipart(&self, len: u64) -> Result<(), Error> {
        let ranges = PartRanges::for_upload(len, self.bucket.options.part_bytes);
        let mut attempts_left = MAX_UPLOAD_ATTEMPTS;
        // If the answer to the completion of an upload is lost, the upload may be complete and its identifier
        // unknown: send it again.
        loop {
            attempts_left -= 1;
            match self.try_multipart(ranges) {
                Err(Error::ObjectRemoved { .. }) if attempts_left > 0 => {
                    tracing::warn!(
                        "the upload of {} was lost and is sent again, which only takes longer; nothing needs to be done",
                        self.url
                    );
                }
                Err(Error::ObjectRemoved { object }) => {
                    let reason = format!("its upload was lost {MAX_UPLOAD_ATTEMPTS} times");
                    return Err(Error::Rejected { action: "write", object, reason });
                }
                sent => return sent,
            }
        }
    }

    fn try_multipart(&self, ranges: PartRanges) -> Result<(), Error> {
        let (bucket, parts) = (self.bucket, &self.bucket.client.multipart);
        let created = self.retry(|| bucket.block_on(parts.create_multipart(&self.key)).map_err(|e| self.classify(&e)));
        let id = created.map_err(|e| bucket.missing_bucket_error(e))?;
        let send = |i: usize| -> Result<PartId, Error> {
            let payload = PutPayload::from(self.read_bytes(ranges.range(i))?);
            self.retry(|| {
                let put = parts.put_part(&self.key, &id, i, payload.clone());
                bucket.block_on(put).map_err(|e| self.classify(&e))
            })
        };
        let sent = try_map_in_order(ranges.count(), bucket.options.max_concurrent_requests, || (), |(), i| send(i));
        let done = sent.and_then(|sent| {
            self.retry(|| {
                let complete = parts.complete_multipart(&self.key, &id, sent.clone());
                bucket.block_on(complete).map(drop).map_err(|e| self.classify(&e))
            })
        });
        if done.is_err() {
            // Parts that stay in the bucket cost money, but the first error is the one to report.
            let abort = async { timeout(ABORT_TIMEOUT, parts.abort_multipart(&self.key, &id)).await };
            let _ = bucket.block_on(abort);
        }
        done
    }

    fn read_bytes(&self, range: Range<u64>) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        self.file
            .read_exact_at(&mut bytes, range.start)
            .map_err(Error::io_error_converter("read", self.temp.path()))?;
        Ok(bytes)
    }

    fn retry<T>(&self, attempt: impl FnMut() -> Result<T, AttemptError>) -> Result<T, Error> {
        self.bucket.retry(self.request(), attempt)
    }

    fn classify(&self, error: &object_store::Error) -> AttemptError {
        self.bucket.classify(self.request(), error)
    }

    fn request(&self) -> RequestDescription<'_> {
        RequestDescription { action: "write", object: &self.url }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_ranges_cover_the_object() {
        for (len, each) in [(0, 4), (1, 4), (4, 4), (5, 4), (1000, 7)] {
            let parts = PartRanges { len, part_bytes: each };
            let cut: Vec<_> = (0..parts.count()).map(|i| parts.range(i)).collect();
            assert_eq!(cut.first().map_or(0, |r| r.start), 0);
            assert_eq!(cut.last().map_or(0, |r| r.end), len);
            assert!(cut.windows(2).all(|two| two[0].end == two[1].start && two[0].end - two[0].start == each));
            assert!(cut.iter().all(|r| r.start < r.end));
        }
    }

    #[test]
    fn an_upload_has_at_most_max_parts() {
        for len in [1 << 20, 80 << 30, (80 << 30) + 1, 5 << 40] {
            assert!(PartRanges::for_upload(len, 8 << 20).count() as u64 <= MAX_PARTS);
        }
        assert_eq!(PartRanges::for_upload(1 << 30, 8 << 20).part_bytes, 8 << 20);
    }
}
