//! Spillable buckets: numbered lists of values that are kept in memory as long as the memory budget allows, and then in
//! [disk buckets](crate::disk_buckets).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::disk_buckets::DiskBuckets;
use crate::spill::Error;

/// Number of bytes that may still be kept in memory. Clones share one budget.
#[derive(Debug, Clone)]
pub struct MemoryBudget(Arc<AtomicU64>);

impl MemoryBudget {
    /// Creates a budget of `bytes` bytes, none of which is used.
    pub fn with_available_bytes(bytes: u64) -> MemoryBudget {
        MemoryBudget(Arc::new(AtomicU64::new(bytes)))
    }

    /// Reserves `bytes` bytes if the budget has that many left. Returns whether they were reserved.
    fn try_reserve(&self, bytes: u64) -> bool {
        self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }

    fn release(&self, bytes: u64) {
        self.0.fetch_add(bytes, Relaxed);
    }
}

#[derive(Debug)]
struct InMemoryBucket<T> {
    values: Vec<T>,
    /// Bytes of memory that the values of the bucket take.
    bytes: u64,
}

/// A fixed number of buckets, numbered from 0. Values that no longer fit in the memory budget are written to disk.
#[derive(Debug)]
pub struct SpillableBuckets<T> {
    memory: MemoryBudget,
    in_memory: Vec<Mutex<InMemoryBucket<T>>>,
    on_disk: DiskBuckets,
}

impl<T: Serialize + DeserializeOwned> SpillableBuckets<T> {
    /// Creates `num_buckets` empty buckets. Values that exceed the budget `memory` are written to a spill file without
    /// a name in `folder`; `contents` names the contents of that file in messages.
    pub fn new(
        contents: &'static str,
        folder: &Path,
        num_buckets: usize,
        memory: &MemoryBudget,
    ) -> SpillableBuckets<T> {
        let empty = |_| Mutex::new(InMemoryBucket { values: Vec::new(), bytes: 0 });
        let in_memory = (0..num_buckets).map(empty).collect();
        SpillableBuckets {
            memory: memory.clone(),
            in_memory,
            on_disk: DiskBuckets::create_unnamed(contents, folder, num_buckets),
        }
    }

    /// Number of buckets, empty ones included.
    pub fn num_buckets(&self) -> usize {
        self.in_memory.len()
    }

    /// Adds a value that takes `bytes` of memory to the bucket with number `index`.
    ///
    /// # Errors
    /// The spill file cannot be written.
    pub fn push_value(&self, index: usize, value: T, bytes: u64) -> Result<(), Error> {
        if !self.memory.try_reserve(bytes) {
            return self.on_disk.push_value(index, &value);
        }
        let mut bucket = self.lock(index);
        bucket.values.push(value);
        bucket.bytes += bytes;
        Ok(())
    }

    /// Removes and returns all values of the bucket with number `index`, in no particular order.
    ///
    /// # Errors
    /// The spill file cannot be read or is damaged.
    pub fn take_bucket(&self, index: usize) -> Result<Vec<T>, Error> {
        let empty = InMemoryBucket { values: Vec::new(), bytes: 0 };
        let InMemoryBucket { mut values, bytes } = std::mem::replace(&mut *self.lock(index), empty);
        self.memory.release(bytes);
        values.append(&mut self.on_disk.take_bucket(index)?);
        Ok(values)
    }

    fn lock(&self, index: usize) -> MutexGuard<'_, InMemoryBucket<T>> {
        // A panic in another thread ends the whole run anyway, so a poisoned lock is ignored.
        self.in_memory[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taken_values_equal_pushed_values_in_memory_and_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        for budget_bytes in [0, 3_000, 1 << 30] {
            let memory = MemoryBudget::with_available_bytes(budget_bytes);
            let buckets = SpillableBuckets::new("test", folder.path(), 3, &memory);
            let others = SpillableBuckets::new("test", folder.path(), 2, &memory);
            let text = |i: usize| "x".repeat(i % 50);
            (0..300).for_each(|i| buckets.push_value(i % 3, (i, text(i)), 50).unwrap());
            let mut seen = Vec::new();
            for bucket in 0..buckets.num_buckets() {
                for (i, value) in buckets.take_bucket(bucket).unwrap() {
                    assert_eq!((i % 3, &value), (bucket, &text(i)));
                    others.push_value(i % 2, i, 8).unwrap();
                }
                assert_eq!(buckets.take_bucket(bucket).unwrap(), []);
            }
            (0..others.num_buckets()).for_each(|bucket| seen.append(&mut others.take_bucket(bucket).unwrap()));
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..300), "{budget_bytes}");
            // All memory of the budget is available again.
            assert_eq!(memory.0.load(Relaxed), budget_bytes);
        }
    }

    #[test]
    fn a_file_is_created_only_beyond_the_memory_budget() {
        let nowhere = Path::new("/no/such");
        let large = vec![7u8; 2 * crate::disk_buckets::BLOCK_BYTES];
        let buckets = SpillableBuckets::new("test", nowhere, 1, &MemoryBudget::with_available_bytes(1 << 20));
        buckets.push_value(0, large.clone(), 1 << 20).unwrap();
        assert_eq!(buckets.take_bucket(0).unwrap(), std::slice::from_ref(&large));
        buckets.push_value(0, large.clone(), 1 << 20).unwrap();
        assert!(buckets.push_value(0, large, 1).unwrap_err().to_string().contains("No such file"));
    }
}
