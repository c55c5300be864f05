//! Writes reads into the input pipes of a process.

use std::io::{self, PipeWriter, Write};
use std::thread;

use rustix::io::ioctl_fionread;

use super::batch_broker::{BatchBroker, INPUT_CONSUMED_POLL_INTERVAL};
use super::placement_sampler::PlacementSampler;
use crate::instance::ProcessPipe;

/// Maximum number of placeholder reads in a block. An aligner stores about 300 bytes for each read until its block
/// ends.
const PLACEHOLDERS_PER_BLOCK: u64 = 4 << 20;

/// Options for writing reads to one input pipe of an aligner process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PipeFeedOptions {
    /// Index of the instance.
    pub instance: usize,
    /// Index of this pipe among the `pipes` input pipes of the process.
    pub pipe: usize,
    /// Number of input pipes of the process: 1 or 2.
    pub pipes: usize,
    /// For a process that must count all reads of the input: the number of bases in a block. The process gets
    /// placeholder reads instead of the reads of other instances. `None` for other processes.
    pub numbered: Option<u64>,
    /// Whether placeholder reads must be in blocks of their own.
    pub own_block: bool,
}

/// Writes all assigned batches to a pipe, until there are no more or the process stops reading. Then closes the pipe.
pub(crate) fn feed_input_pipe(
    broker: &BatchBroker,
    feeding: PipeFeedOptions,
    sampler: &PlacementSampler,
    mut to: ProcessPipe<PipeWriter>,
) {
    // A process that stops reading has ended or will end. Its exit status tells more.
    if write_batches(broker, feeding, &mut to).is_ok() {
        sample_before_end_of_input(broker, feeding.instance, sampler, &to);
    }
}

/// Samples the placement of a process that has not written records yet, as soon as it has read all its input.
fn sample_before_end_of_input(
    broker: &BatchBroker,
    instance: usize,
    sampler: &PlacementSampler,
    to: &ProcessPipe<PipeWriter>,
) {
    while !sampler.has_sample() && broker.is_process_running(instance) {
        match ioctl_fionread(to.pipe()) {
            Ok(unread) if unread > 0 => thread::sleep(INPUT_CONSUMED_POLL_INTERVAL),
            _ => return sampler.sample_before_end_of_input(),
        }
    }
}

fn write_batches(broker: &BatchBroker, feeding: PipeFeedOptions, to: &mut ProcessPipe<PipeWriter>) -> io::Result<()> {
    let mut counted = 0;
    for index in 0.. {
        // The process has read all its input and may wait for more before it answers.
        let is_starved = || ioctl_fionread(to.pipe()).is_ok_and(|unread| unread == 0);
        let Some(batch) = broker.get_or_assign_batch(feeding.instance, index, is_starved) else { return Ok(()) };
        if let Some(block) = feeding.numbered {
            let absent = PlaceholderWriter { block, apart: feeding.own_block, at_once: PLACEHOLDERS_PER_BLOCK };
            absent.write_placeholders(batch.first_read - counted, feeding, to)?;
        }
        let mut chunks = 0;
        while let Some(chunk) = batch.wait_for_chunk(chunks) {
            to.write_all(&chunk.texts[feeding.pipe])?;
            chunks += 1;
        }
        if feeding.numbered.is_some() {
            counted = batch.first_read + batch.wait_for_num_reads();
        }
    }
    Ok(())
}

/// Writes placeholder reads instead of the reads that other instances get. Placeholder reads have no bases, so that
/// they do not add to the size of a block. A FASTA header without a sequence is such a read; it is allowed among FASTQ
/// reads, too (`kseq.h` of klib, used by bwa).
struct PlaceholderWriter {
    block: u64,
    apart: bool,
    at_once: u64,
}

const EMPTY_READ: &[u8] = b">x\n";

impl PlaceholderWriter {
    /// Writes the placeholders of `reads` reads of the input (an even number) that belong to this pipe.
    fn write_placeholders(&self, reads: u64, feeding: PipeFeedOptions, to: &mut impl Write) -> io::Result<()> {
        let many = EMPTY_READ.repeat(4096);
        let pipes = feeding.pipes as u64;
        // The last placeholder of each group has as many bases as a block, so that the aligner's block ends behind
        // it.
        let mut left = reads;
        while left > 0 {
            let now = left.min(self.at_once);
            left -= now;
            let long = now == self.at_once || (left == 0 && self.apart);
            let last = long && feeding.pipe + 1 == feeding.pipes;
            let mut empty = now / pipes - u64::from(last);
            while empty > 0 {
                let some = empty.min(4096);
                to.write_all(&many[..some as usize * EMPTY_READ.len()])?;
                empty -= some;
            }
            if last {
                to.write_all(EMPTY_READ)?;
                io::copy(&mut io::Read::take(io::repeat(b'N'), self.block), to)?;
                to.write_all(b"\n")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(reads: u64, pipe: usize, pipes: usize, apart: bool) -> String {
        let feeding = PipeFeedOptions { instance: 0, pipe, pipes, numbered: Some(5), own_block: apart };
        let mut out = Vec::new();
        PlaceholderWriter { block: 5, apart, at_once: 4 }
            .write_placeholders(reads, feeding, &mut out)
            .expect("a vector takes all");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn there_are_as_many_as_reads_and_blocks_of_them_end() {
        assert_eq!(written(2, 0, 1, false), ">x\n>x\n");
        assert_eq!(written(6, 0, 1, false), ">x\n>x\n>x\n>x\nNNNNN\n>x\n>x\n");
        assert_eq!(written(6, 0, 1, true), ">x\n>x\n>x\n>x\nNNNNN\n>x\n>x\nNNNNN\n");
        assert_eq!(written(6, 0, 2, false), ">x\n>x\n>x\n");
        assert_eq!(written(6, 1, 2, false), ">x\n>x\nNNNNN\n>x\n");
        assert_eq!(written(0, 0, 1, true), "");
    }
}
