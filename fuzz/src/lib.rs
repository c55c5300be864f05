//! What the targets share: inputs as files, for parsers that open their own, and reads read to the end.

use std::fs;
use std::path::{Path, PathBuf};

use genuma_reads::{Cut, Error, ReadBatch, ReadLane, ReadStream, StreamOptions};

/// A file in memory that holds an input; it goes with the value.
pub struct Input(PathBuf);

impl Input {
    /// Writes the input.
    pub fn new(name: &str, bytes: &[u8]) -> Input {
        let path = Path::new("/dev/shm").join(format!("genuma-fuzz-{}-{name}", std::process::id()));
        fs::write(&path, bytes).expect("/dev/shm can be written");
        Input(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        fs::remove_file(&self.0).expect("it was there");
    }
}

/// A read as its reader gives it: name, bases, qualities.
pub type Read = (Vec<u8>, Vec<u8>, Vec<u8>);

/// All reads before the end or the first error, and which of both it was.
pub fn reads(lane: ReadLane, cut: Cut) -> (Vec<Read>, Option<Error>) {
    let mut reads = Vec::new();
    let mut stream = match ReadStream::open(&[lane], StreamOptions::new(cut)) {
        Ok(stream) => stream,
        Err(error) => return (reads, Some(error)),
    };
    let mut batch = ReadBatch::new();
    loop {
        match stream.fill(&mut batch) {
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
