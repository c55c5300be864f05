//! Entry point for `fuzz/` to the SAM parser, which is otherwise private.

use std::sync::{Arc, Mutex, PoisonError};

use genuma_reads::ReadRef;

use crate::batching::InstanceBatch;
use crate::invocation::ReadInputMode;
use crate::merge::{AlignerOutputError, AlignerOutputReceiver, SamParser};

/// The batches assigned to a process in a test, and the records that the parser has delivered so far.
struct TestBatches {
    batches: Vec<Arc<InstanceBatch>>,
    records: Mutex<Vec<u8>>,
}

impl AlignerOutputReceiver for TestBatches {
    fn assigned_batch(&self, index: usize) -> Option<Arc<InstanceBatch>> {
        self.batches.get(index).cloned()
    }

    fn deliver_records(&self, _: &InstanceBatch, records: Vec<u8>, _: bool) {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).extend(records);
    }

    fn accept_header(&self, _: Vec<u8>) -> Result<(), AlignerOutputError> {
        Ok(())
    }
}

/// Parses the SAM text `output` in chunks of `piece` bytes. It is taken as the output of an aligner that got two
/// batches of two pairs, with the names `a` to `d`. `in_order`: the aligner writes records in the order of the reads.
/// Returns the records that the parser delivered.
///
/// # Errors
/// The output is invalid or incomplete.
pub fn parse_sam_of_two_batches(output: &[u8], in_order: bool, piece: usize) -> Result<Vec<u8>, AlignerOutputError> {
    let read = |name| ReadRef { name, comment: b"", tags: b"", seq: b"ACGT", qual: b"FFFF" };
    let batch = |number: u64, names: [&'static [u8]; 2]| {
        let templates = names.map(|name| [read(name), read(name)]);
        Arc::new(InstanceBatch::new_complete_batch(number, 4 * number, &templates, ReadInputMode::TwoFiles))
    };
    let batches = vec![batch(0, [b"a", b"b"]), batch(1, [b"c", b"d"])];
    let assigned = TestBatches { batches, records: Mutex::default() };
    let mut parser = SamParser::new(in_order, false);
    output.chunks(piece.max(1)).try_for_each(|bytes| parser.parse_bytes(bytes, &assigned))?;
    parser.finish_parsing(&assigned)?;
    Ok(assigned.records.into_inner().unwrap_or_else(PoisonError::into_inner))
}
