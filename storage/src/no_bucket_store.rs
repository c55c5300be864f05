//! Replaces the run store in a bucket in a build without the feature `cluster`: opening one is an error, so no value of
//! these types exists.

use std::convert::Infallible;
use std::ops::Range;
use std::path::Path;

use crate::bucket_options::BucketOptions;
use crate::error::Error;
use crate::store_location::BucketLocation;
use crate::temp_object::TempObject;

/// A run store in a bucket, which this build cannot access.
#[derive(Debug)]
pub(crate) struct BucketStore(Infallible);

/// An object of a bucket.
#[derive(Debug)]
pub(crate) struct BucketObject {
    store: BucketStore,
    /// Length of the object in bytes.
    pub len: u64,
    /// Version of the object.
    pub(crate) etag: Option<String>,
}

impl BucketStore {
    /// Returns an error: this build has no network code.
    pub fn open(location: BucketLocation, _scratch: &Path, _options: &BucketOptions) -> Result<BucketStore, Error> {
        Err(Error::BucketsUnsupported { location: location.to_string() })
    }

    pub fn location(&self) -> &BucketLocation {
        match self.0 {}
    }

    pub fn url(&self, _name: &str) -> String {
        match self.0 {}
    }

    pub fn create_temp_object(&self, _name: &str) -> Result<TempObject, Error> {
        match self.0 {}
    }

    pub fn publish(&self, _temp_object: TempObject, _name: &str) -> Result<(), Error> {
        match self.0 {}
    }

    pub fn publish_if_absent(&self, _temp_object: TempObject, _name: &str) -> Result<bool, Error> {
        match self.0 {}
    }

    pub fn open_object_if_exists(&self, _name: &str) -> Result<Option<BucketObject>, Error> {
        match self.0 {}
    }

    pub fn list_object_names(&self) -> Result<Vec<String>, Error> {
        match self.0 {}
    }

    pub fn remove_object(&self, _name: &str) -> Result<(), Error> {
        match self.0 {}
    }

    pub fn read_range(&self, _found: &BucketObject, _range: Range<u64>, _bytes: &mut [u8]) -> Result<(), Error> {
        match self.0 {}
    }

    pub fn fetch_range_to_file(&self, _found: &BucketObject, _range: Range<u64>) -> Result<TempObject, Error> {
        match self.0 {}
    }
}

impl BucketObject {
    pub fn name(&self) -> &str {
        match self.store.0 {}
    }
}
