//! The door for `fuzz/`, which has no other way to what takes an aligner's output apart.

use std::sync::{Arc, Mutex, PoisonError};

use genuma_reads::ReadRef;

use crate::deal::Batch;
use crate::invocation::Feed;
use crate::merge::{Fault, Given, Sam};

/// What an instance was given, and what was taken from it.
struct Desk {
    batches: Vec<Arc<Batch>>,
    records: Mutex<Vec<u8>>,
}

impl Given for Desk {
    fn given(&self, index: usize) -> Option<Arc<Batch>> {
        self.batches.get(index).cloned()
    }

    fn deliver(&self, _: &Batch, records: Vec<u8>, _: bool) {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).extend(records);
    }

    fn header(&self, _: Vec<u8>) -> Result<(), Fault> {
        Ok(())
    }
}

/// Takes the SAM of an aligner that was given two batches of two pairs, `a` to `d`, in pieces of `piece` bytes. The records, if they
/// are all that was due.
///
/// # Errors
/// What is wrong with it.
pub fn sam(output: &[u8], in_order: bool, piece: usize) -> Result<Vec<u8>, Fault> {
    let read = |name| ReadRef { name, comment: b"", seq: b"ACGT", qual: b"FFFF" };
    let batch = |number: u64, names: [&'static [u8]; 2]| {
        let templates = names.map(|name| [read(name), read(name)]);
        Arc::new(Batch::whole(number, 4 * number, &templates, Feed::Two))
    };
    let batches = vec![batch(0, [b"a", b"b"]), batch(1, [b"c", b"d"])];
    let desk = Desk { batches, records: Mutex::default() };
    let mut sam = Sam::new(in_order, false);
    output.chunks(piece.max(1)).try_for_each(|bytes| sam.take(bytes, &desk))?;
    sam.end(&desk)?;
    Ok(desk.records.into_inner().unwrap_or_else(PoisonError::into_inner))
}
