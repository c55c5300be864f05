//! Disk buckets: numbered append-only lists of serialised values on disk, which are read back one bucket at a time.
//!
//! All buckets share one spill file. The last values of each bucket are kept in memory until they fill a block of
//! [`BLOCK_BYTES`] bytes.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::spill::{Error, LocalCopyOfObjectRange, SpillBlock, SpillFile};

/// Size of a block of the spill file in bytes; also the memory that each bucket uses while it is filled.
pub(crate) const BLOCK_BYTES: usize = 64 << 10;

/// Where the values of one disk bucket are in the spill file: number of values, bytes and blocks. Needed to read a
/// bucket of a completed file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskBucketLocation {
    /// Number of values that were appended to the bucket.
    pub num_values: u64,
    /// Bytes of the serialised values.
    pub bytes: u64,
    blocks: Vec<SpillBlock>,
}

/// A bucket that is being filled.
#[derive(Debug, Default)]
struct OpenBucket {
    bucket: DiskBucketLocation,
    /// Serialised bytes that are not in the file yet.
    unwritten: Vec<u8>,
}

/// A fixed number of disk buckets, numbered from 0.
#[derive(Debug)]
pub struct DiskBuckets {
    spill: SpillFile,
    buckets: Vec<Mutex<OpenBucket>>,
}

impl DiskBuckets {
    /// Creates `num_buckets` empty buckets in a spill file without a name in the folder `folder`. `contents` names the
    /// stored values in messages.
    pub fn create_unnamed(contents: &'static str, folder: &Path, num_buckets: usize) -> DiskBuckets {
        DiskBuckets::with_spill_file(
            SpillFile::create_unnamed(contents, folder),
            (0..num_buckets).map(|_| DiskBucketLocation::default()),
        )
    }

    /// Creates `num_buckets` empty buckets in a new spill file at `path`. `contents` names the stored values in
    /// messages.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(contents: &'static str, path: &Path, num_buckets: usize) -> Result<DiskBuckets, Error> {
        Ok(DiskBuckets::with_spill_file(
            SpillFile::create(contents, path)?,
            (0..num_buckets).map(|_| DiskBucketLocation::default()),
        ))
    }

    /// Opens the completed spill file at `path` for reading. `buckets` is what [`DiskBuckets::finish_writing`] returned
    /// for this file.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open_for_reading(
        contents: &'static str,
        path: &Path,
        buckets: Vec<DiskBucketLocation>,
    ) -> Result<DiskBuckets, Error> {
        Ok(DiskBuckets::with_spill_file(SpillFile::open_for_reading(contents, path)?, buckets.into_iter()))
    }

    /// Opens for reading the buckets in an object of the run store, where `file` is a local copy of
    /// the range of the object that contains them. `buckets` is what
    /// [`DiskBuckets::finish_writing`] returned for these buckets.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open_object_copy(
        contents: &'static str,
        file: &LocalCopyOfObjectRange<'_>,
        buckets: Vec<DiskBucketLocation>,
    ) -> Result<DiskBuckets, Error> {
        Ok(DiskBuckets::with_spill_file(SpillFile::open_object_copy(contents, file)?, buckets.into_iter()))
    }

    fn with_spill_file(spill: SpillFile, buckets: impl Iterator<Item = DiskBucketLocation>) -> DiskBuckets {
        let open = |bucket| Mutex::new(OpenBucket { bucket, unwritten: Vec::new() });
        DiskBuckets { spill, buckets: buckets.map(open).collect() }
    }

    /// Number of buckets, empty ones included.
    pub fn num_buckets(&self) -> usize {
        self.buckets.len()
    }

    /// Appends a value to bucket number `index`.
    ///
    /// # Errors
    /// The spill file cannot be written, or the value cannot be serialised.
    pub fn push_value(&self, index: usize, value: &impl Serialize) -> Result<(), Error> {
        let mut open = self.lock(index);
        let OpenBucket { bucket, unwritten } = &mut *open;
        let before = unwritten.len();
        *unwritten =
            postcard::to_extend(value, std::mem::take(unwritten)).map_err(|e| self.spill.serialisation_error(&e))?;
        bucket.num_values += 1;
        bucket.bytes += (unwritten.len() - before) as u64;
        let whole = unwritten.len() / BLOCK_BYTES * BLOCK_BYTES;
        for block in unwritten[..whole].chunks(BLOCK_BYTES) {
            bucket.blocks.push(self.spill.write_block(block, BLOCK_BYTES)?);
        }
        unwritten.drain(..whole);
        Ok(())
    }

    /// Reads all values of bucket number `index`, in the order in which they were added.
    ///
    /// # Errors
    /// The spill file cannot be read or is damaged.
    pub fn read_bucket<T: DeserializeOwned>(&self, index: usize) -> Result<Vec<T>, Error> {
        let open = self.lock(index);
        let (mut bytes, mut block) = (Vec::with_capacity(open.bucket.bytes as usize), Vec::new());
        for location in &open.bucket.blocks {
            self.spill.read_block(location, &mut block)?;
            bytes.extend_from_slice(&block);
        }
        bytes.extend_from_slice(&open.unwritten);
        let (mut values, mut rest) = (Vec::with_capacity(open.bucket.num_values as usize), &bytes[..]);
        for _ in 0..open.bucket.num_values {
            let (value, behind) = postcard::take_from_bytes(rest).map_err(|e| self.spill.serialisation_error(&e))?;
            values.push(value);
            rest = behind;
        }
        Ok(values)
    }

    /// Reads all values of bucket number `index` and empties the bucket. The blocks of the bucket in the file are
    /// reused.
    ///
    /// # Errors
    /// The errors of [`DiskBuckets::read_bucket`].
    pub fn take_bucket<T: DeserializeOwned>(&self, index: usize) -> Result<Vec<T>, Error> {
        let values = self.read_bucket(index)?;
        let OpenBucket { bucket, .. } = std::mem::take(&mut *self.lock(index));
        bucket.blocks.into_iter().for_each(|block| self.spill.free_block(block));
        Ok(values)
    }

    /// Writes all values to the file, waits until they are on the disk (fsync), and returns where the values of each
    /// bucket are.
    ///
    /// # Errors
    /// The spill file cannot be written.
    pub fn finish_writing(&self) -> Result<Vec<DiskBucketLocation>, Error> {
        let finish = |index: usize| {
            let mut open = self.lock(index);
            let OpenBucket { bucket, unwritten } = &mut *open;
            if !unwritten.is_empty() {
                // Nothing is appended later, so the last block needs only its own length.
                bucket.blocks.push(self.spill.write_block(unwritten, unwritten.len())?);
                unwritten.clear();
            }
            Ok(bucket.clone())
        };
        let buckets = (0..self.buckets.len()).map(finish).collect::<Result<_, Error>>()?;
        self.spill.sync_to_disk()?;
        Ok(buckets)
    }

    fn lock(&self, index: usize) -> std::sync::MutexGuard<'_, OpenBucket> {
        // A panic in another thread ends the whole run anyway, so a poisoned lock is ignored.
        self.buckets[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of many sizes, some longer than a block.
    fn value(i: usize) -> (usize, Vec<u8>) {
        (i, vec![i as u8; i * 7919 % 5000 + if i.is_multiple_of(97) { 3 * BLOCK_BYTES } else { 0 }])
    }

    #[test]
    fn values_are_read_in_order_and_freed_blocks_are_reused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.bins");
        let buckets = DiskBuckets::create("test", &path, 3).unwrap();
        (0..600).for_each(|i| buckets.push_value(i % 3, &value(i)).unwrap());
        let expected = |bucket: usize| (0..600).filter(move |i| i % 3 == bucket).map(value);
        for bucket in [2, 0, 1] {
            let values: Vec<(usize, Vec<u8>)> = buckets.take_bucket(bucket).unwrap();
            assert!(values.into_iter().eq(expected(bucket)));
            assert!(buckets.read_bucket::<(usize, Vec<u8>)>(bucket).unwrap().is_empty());
        }
        let size = || std::fs::metadata(&path).unwrap().len();
        let before = size();
        (0..300).for_each(|i| buckets.push_value(0, &value(i)).unwrap());
        let left = buckets.finish_writing().unwrap();
        assert_eq!((left[0].num_values, left[1].num_values, size()), (300, 0, before));

        let again = DiskBuckets::open_for_reading("test", &path, left.clone()).unwrap();
        assert!(again.read_bucket::<(usize, Vec<u8>)>(0).unwrap().into_iter().eq((0..300).map(value)));
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let again = DiskBuckets::open_for_reading("test", &path, left).unwrap();
        let message = again.read_bucket::<(usize, Vec<u8>)>(0).unwrap_err().to_string();
        assert!(message.contains("x.bins is damaged"), "{message}");
    }

    #[test]
    fn values_within_one_block_need_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let buckets = DiskBuckets::create_unnamed("test", &folder.path().join("no/such"), 1);
        buckets.push_value(0, &value(1)).unwrap();
        assert_eq!(buckets.take_bucket::<(usize, Vec<u8>)>(0).unwrap(), [value(1)]);
        assert!(buckets.push_value(0, &value(97)).unwrap_err().to_string().contains("No such file"));
    }
}
