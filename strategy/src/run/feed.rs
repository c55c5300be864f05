//! Reads into the pipes of a process.

use std::io::{self, PipeWriter, Write};

use rustix::io::ioctl_fionread;

use super::Desk;
use crate::instance::Patient;

/// Placeholders after which an aligner is made to work them off: it keeps about 300 bytes for each until then.
const AT_ONCE: u64 = 4 << 20;

/// How the reads of a process are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Feeding {
    /// Number of the instance.
    pub seat: usize,
    /// Which of its pipes this is, and how many there are.
    pub pipe: usize,
    pub pipes: usize,
    /// Where reads of other instances must be counted, the bases (bp) of a block.
    pub numbered: Option<u64>,
    /// Whether they must be in a block of their own.
    pub apart: bool,
}

/// Writes all batches that the process is given, until there are no more or it takes no more.
pub(crate) fn write_reads(desk: &Desk, feeding: Feeding, to: Patient<PipeWriter>) {
    // A process that takes no more has ended, or will: how it ended is what counts.
    let _ = write_all(desk, feeding, to);
}

fn write_all(desk: &Desk, feeding: Feeding, mut to: Patient<PipeWriter>) -> io::Result<()> {
    let mut counted = 0;
    for index in 0.. {
        // It has read all that it was given, and may wait for more before it answers any.
        let starved = || ioctl_fionread(to.pipe()).is_ok_and(|unread| unread == 0);
        let Some(batch) = desk.take(feeding.seat, index, starved) else { return Ok(()) };
        if let Some(block) = feeding.numbered {
            let absent = Placeholders { block, apart: feeding.apart, at_once: AT_ONCE };
            absent.write(batch.first - counted, feeding, &mut to)?;
        }
        let mut chunks = 0;
        while let Some(chunk) = batch.chunk(chunks) {
            to.write_all(&chunk.texts[feeding.pipe])?;
            chunks += 1;
        }
        if feeding.numbered.is_some() {
            counted = batch.first + batch.reads();
        }
    }
    Ok(())
}

/// Reads that stand for those that a process does not get: no bases, so that they are no part of any block's size. A header of FASTA alone is
/// such a read, also among FASTQ (`kseq.h` of klib, which bwa reads with).
struct Placeholders {
    block: u64,
    apart: bool,
    at_once: u64,
}

const EMPTY: &[u8] = b">x\n";

impl Placeholders {
    /// Writes this pipe's part of `reads` placeholders, an even number.
    fn write(&self, reads: u64, feeding: Feeding, to: &mut impl Write) -> io::Result<()> {
        let many = EMPTY.repeat(4096);
        let pipes = feeding.pipes as u64;
        // The last of every so many has the bases of a block, so that the aligner's block ends behind it.
        let mut left = reads;
        while left > 0 {
            let now = left.min(self.at_once);
            left -= now;
            let long = now == self.at_once || (left == 0 && self.apart);
            let last = long && feeding.pipe + 1 == feeding.pipes;
            let mut empty = now / pipes - u64::from(last);
            while empty > 0 {
                let some = empty.min(4096);
                to.write_all(&many[..some as usize * EMPTY.len()])?;
                empty -= some;
            }
            if last {
                to.write_all(EMPTY)?;
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
        let feeding = Feeding { seat: 0, pipe, pipes, numbered: Some(5), apart };
        let mut out = Vec::new();
        Placeholders { block: 5, apart, at_once: 4 }
            .write(reads, feeding, &mut out)
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
