//! BGZF (SAM specification, section 4.1): a gzip of small members that say how long they are, so that several threads
//! can inflate one file.
//!
//! The reading thread gathers whole blocks into jobs and deals these to the inflating threads in turn; it takes them
//! back in the same turn, so nothing has to be sorted and the number of jobs bounds the memory.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use flate2::bufread::MultiGzDecoder;
use flate2::{Crc, Decompress, FlushDecompress, Status};

/// Bytes of a block before its deflate data.
pub(crate) const HEADER: usize = 18;
/// CRC and length after them.
const TRAILER: usize = 8;
/// A block holds at most this many bytes of content.
const CONTENT: usize = 1 << 16;
/// Blocks in a job: nearly 0.4 MB of content.
const JOB: usize = 6;
/// Jobs of each inflating thread: one at work, one waiting.
const JOBS: usize = 2;

/// Size in bytes of the block that starts with `header`; absent when it is not a BGZF block.
pub(crate) fn block_size(header: &[u8]) -> Option<usize> {
    let [0x1f, 0x8b, 8, 4, _, _, _, _, _, _, 6, 0, b'B', b'C', 2, 0, low, high, ..] = *header else {
        return None;
    };
    let size = usize::from(u16::from_le_bytes([low, high])) + 1;
    (size >= HEADER + TRAILER).then_some(size)
}

/// Appends the content of the block at a byte of a file, and returns its size in bytes of the file; `None`, and nothing appended, when there is no block.
pub(crate) fn read_block(file: &File, at: u64, content: &mut Vec<u8>) -> io::Result<Option<u64>> {
    let Some(size) = block_size_at(file, at)? else {
        return Ok(None);
    };
    let mut block = vec![0; size as usize];
    file.read_exact_at(&mut block, at)?;
    if !inflate_block(&block, content, &mut Decompress::new(false)) {
        inflate_member(&block, content)?;
    }
    Ok(Some(size))
}

/// Bytes of the block at a byte of a file, by its header; `None` when there is none.
pub(crate) fn block_size_at(file: &File, at: u64) -> io::Result<Option<u64>> {
    let mut header = [0; HEADER];
    match file.read_exact_at(&mut header, at) {
        Ok(()) => Ok(block_size(&header).map(|size| size as u64)),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(e) => Err(e),
    }
}

/// The content of the BGZF blocks at the start of `packed`.
pub(crate) struct Bgzf<R> {
    packed: R,
    crew: Crew,
    /// The job whose content is handed out, from `at` on.
    current: Job,
    at: usize,
    /// Jobs to fill: their number bounds what is read ahead.
    spare: Vec<Job>,
    /// What was read beyond the last whole block: not a block, or the start of one that the file ends in.
    begun: Vec<u8>,
    /// There is no further whole block.
    over: bool,
    /// The system could not read on after the last whole block.
    unreadable: Option<io::Error>,
}

impl<R: Read> Bgzf<R> {
    /// Inflates with that many threads; with 0 in the caller's own.
    pub(crate) fn new(packed: R, inflaters: usize) -> Self {
        let crew = Crew::new(inflaters);
        // Without threads nothing is done ahead.
        let spare = (0..(inflaters * JOBS).max(1)).map(|_| Job::default()).collect();
        let current = Job::default();
        Bgzf { packed, crew, current, at: 0, spare, begun: Vec::new(), over: false, unreadable: None }
    }

    /// What was read beyond the last block, and the reader of all that follows.
    pub(crate) fn into_rest(self) -> (Vec<u8>, R) {
        (self.begun, self.packed)
    }

    /// Makes the next job the current one; false when there is none.
    fn next_job(&mut self) -> bool {
        while !self.over
            && let Some(mut job) = self.spare.pop()
        {
            self.gather(&mut job);
            self.crew.give(job);
        }
        let Some(job) = self.crew.take() else {
            return false;
        };
        self.spare.push(std::mem::replace(&mut self.current, job));
        self.at = 0;
        true
    }

    /// Reads whole blocks into a job.
    fn gather(&mut self, job: &mut Job) {
        job.packed.clear();
        job.ends.clear();
        while !self.over && job.ends.len() < JOB {
            let start = job.packed.len();
            let whole = self.append(&mut job.packed, HEADER)
                && block_size(&job.packed[start..])
                    .is_some_and(|size| self.append(&mut job.packed, size - HEADER));
            if whole {
                job.ends.push(job.packed.len());
            } else {
                self.over = true;
                self.begun.extend(job.packed.drain(start..));
            }
        }
    }

    /// Appends `n` bytes of the file; false when there are fewer.
    fn append(&mut self, bytes: &mut Vec<u8>, n: usize) -> bool {
        match self.packed.by_ref().take(n as u64).read_to_end(bytes) {
            Ok(read) => read == n,
            Err(e) => {
                self.unreadable = Some(e);
                false
            }
        }
    }
}

impl<R: Read> Read for Bgzf<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.at == self.current.content.len() {
            if let Some(e) = self.current.damage.take() {
                return Err(e);
            }
            if !self.next_job() {
                return self.unreadable.take().map_or(Ok(0), Err);
            }
        }
        let n = buf.len().min(self.current.content.len() - self.at);
        buf[..n].copy_from_slice(&self.current.content[self.at..][..n]);
        self.at += n;
        Ok(n)
    }
}

/// Some blocks and what is in them.
#[derive(Default)]
struct Job {
    packed: Vec<u8>,
    /// Where each block ends in `packed`.
    ends: Vec<usize>,
    content: Vec<u8>,
    /// What is wrong with the blocks after `content`.
    damage: Option<io::Error>,
}

impl Job {
    fn inflate(&mut self, inflater: &mut Decompress) {
        self.content.clear();
        let mut start = 0;
        for &end in &self.ends {
            let block = &self.packed[start..end];
            if !inflate_block(block, &mut self.content, inflater)
                && let Err(e) = inflate_member(block, &mut self.content)
            {
                self.damage = Some(e);
                return;
            }
            start = end;
        }
    }
}

/// Appends the content of a block; false, and nothing appended, when it is not as the specification has it.
fn inflate_block(block: &[u8], content: &mut Vec<u8>, inflater: &mut Decompress) -> bool {
    let (deflated, trailer) = block[HEADER..].split_at(block.len() - HEADER - TRAILER);
    let [a, b, c, d, e, f, g, h] = *trailer else { return false };
    let (checksum, length) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]) as usize);
    if length > CONTENT {
        return false;
    }
    let start = content.len();
    content.resize(start + length, 0);
    inflater.reset(false);
    let status = inflater.decompress(deflated, &mut content[start..], FlushDecompress::Finish);
    let mut crc = Crc::new();
    crc.update(&content[start..]);
    let whole = matches!(status, Ok(Status::StreamEnd))
        && inflater.total_in() == deflated.len() as u64
        && inflater.total_out() == length as u64
        && crc.sum() == checksum;
    if !whole {
        content.truncate(start);
    }
    whole
}

/// Appends the content of a block as of any gzip member, up to what is wrong with it.
fn inflate_member(block: &[u8], content: &mut Vec<u8>) -> io::Result<()> {
    match MultiGzDecoder::new(block).read_to_end(content) {
        Ok(_) => Ok(()),
        // The file goes on, so it is not truncated.
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "a BGZF block ends before its data"))
        }
        Err(e) => Err(e),
    }
}

/// The inflating threads, or none: then jobs are done as they are given.
struct Crew {
    workers: Vec<Worker>,
    inflater: Decompress,
    /// Done without threads.
    done: Option<Job>,
    given: usize,
    taken: usize,
}

struct Worker {
    jobs: SyncSender<Job>,
    done: Receiver<Job>,
    thread: JoinHandle<()>,
}

impl Crew {
    fn new(threads: usize) -> Self {
        let workers = (0..threads).map_while(|_| Worker::start()).collect();
        Crew { workers, inflater: Decompress::new(false), done: None, given: 0, taken: 0 }
    }

    /// Jobs given and not taken back.
    fn outstanding(&self) -> usize {
        self.given - self.taken
    }

    fn give(&mut self, mut job: Job) {
        if self.workers.is_empty() {
            job.inflate(&mut self.inflater);
            self.done = Some(job);
        } else {
            let turn = self.given % self.workers.len();
            self.workers[turn].jobs.send(job).expect("an inflating thread waits for jobs");
        }
        self.given += 1;
    }

    /// The oldest job given, done.
    fn take(&mut self) -> Option<Job> {
        if self.outstanding() == 0 {
            return None;
        }
        let job = match self.workers.len() {
            0 => self.done.take(),
            n => self.workers[self.taken % n].done.recv().ok(),
        };
        self.taken += 1;
        Some(job.expect("an inflating thread returns its jobs"))
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for Worker { jobs, done, thread } in self.workers.drain(..) {
            drop((jobs, done));
            // One that panicked was noticed when its job was wanted.
            let _ = thread.join();
        }
    }
}

impl Worker {
    /// `None` when the system refuses to start a thread: the others, or the reader itself, do its work.
    fn start() -> Option<Self> {
        let (jobs, to_do) = sync_channel::<Job>(JOBS);
        let (finished, done) = sync_channel(JOBS);
        let work = move || {
            let mut inflater = Decompress::new(false);
            for mut job in to_do {
                job.inflate(&mut inflater);
                if finished.send(job).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().spawn(work).ok()?;
        Some(Worker { jobs, done, thread })
    }
}
