//! Helpers of the fuzz targets: temporary input files, and reading of all reads in a file.

use std::fs;
use std::path::{Path, PathBuf};

use genuma_reads::{BatchLimits, Error, ReadBatch, ReadStream, StreamLane, StreamOptions};

/// A temporary file in memory (/dev/shm) with the input of a fuzz target. Dropping the value removes the file.
pub struct InputFile(PathBuf);

impl InputFile {
    /// Writes the input to a new file whose name contains `name`.
    pub fn new(name: &str, bytes: &[u8]) -> InputFile {
        let path = Path::new("/dev/shm").join(format!("genuma-fuzz-{}-{name}", std::process::id()));
        fs::write(&path, bytes).expect("/dev/shm can be written");
        InputFile(path)
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for InputFile {
    fn drop(&mut self) {
        fs::remove_file(&self.0).expect("the file exists");
    }
}

/// Fields of a read: name, bases, qualities.
pub type ReadFields = (Vec<u8>, Vec<u8>, Vec<u8>);

/// Reads the reads of a lane until its end or the first error. Returns the reads, and the error if there was one.
pub fn read_all(lane: StreamLane, limit: BatchLimits) -> (Vec<ReadFields>, Option<Error>) {
    let mut reads = Vec::new();
    let mut stream = match ReadStream::open(&[lane], StreamOptions::new(limit)) {
        Ok(stream) => stream,
        Err(error) => return (reads, Some(error)),
    };
    let mut batch = ReadBatch::new();
    loop {
        match stream.fill_batch(&mut batch) {
            Ok(true) => {
                for i in 0..batch.len() {
                    let read = batch.read(i);
                    assert!(read.qual.is_empty() || read.qual.len() == read.seq.len());
                    reads.push((read.name.to_vec(), read.seq.to_vec(), read.qual.to_vec()));
                }
            }
            Ok(false) => return (reads, None),
            Err(error) => return (reads, Some(error)),
        }
    }
}
