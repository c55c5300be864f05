//! Pages by pread, one after the other: what works everywhere.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use genuma_machine::placement::{Placed, Placement};

use super::{Done, Queue, Refusal};
use crate::format::{PAGE, Page};

/// See the module.
#[derive(Debug)]
pub struct Pread {
    file: File,
    pages: Placed<Page>,
    asked: Vec<(usize, u64)>,
}

impl Pread {
    /// With so many slots.
    pub fn new(file: &File, depth: usize, at: &Placement) -> Result<Pread, Refusal> {
        Ok(Pread { file: file.try_clone()?, pages: Placed::zeroed(depth, at)?, asked: Vec::new() })
    }
}

impl Queue for Pread {
    fn push(&mut self, slot: usize, page: u64) {
        self.asked.push((slot, page));
    }

    fn wait(&mut self, done: &mut Vec<Done>) -> io::Result<()> {
        for (slot, page) in self.asked.drain(..) {
            let bytes = &mut self.pages[slot].0;
            let read = loop {
                match self.file.read_at(bytes, page * PAGE as u64) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    read => break read,
                }
            };
            done.push(Done { slot, read });
        }
        Ok(())
    }

    fn page(&self, slot: usize) -> &Page {
        &self.pages[slot]
    }
}
