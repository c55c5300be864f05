//! BGZF (SAM specification, section 4.1): gzip members of limited size that store their own length, so that several
//! threads can decompress one file.
//!
//! The reading thread collects whole blocks into jobs and distributes the jobs to the inflating threads in rotation.
//! It takes the results back in the same rotation, so nothing has to be sorted, and the number of jobs limits the
//! memory.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use flate2::bufread::MultiGzDecoder;
use flate2::{Crc, Decompress, FlushDecompress, Status};

/// Bytes of a block before its deflate data.
pub(crate) const HEADER_BYTES: usize = 18;
/// Bytes of the CRC and of the length after the deflate data.
const TRAILER_BYTES: usize = 8;
/// Maximum uncompressed size of a block in bytes.
const MAX_BLOCK_CONTENT_BYTES: usize = 1 << 16;
/// Number of blocks per job: together nearly 0.4 MB of uncompressed data.
const BLOCKS_PER_JOB: usize = 6;
/// Number of jobs per inflating thread: one that is decompressed and one that waits.
const JOBS_PER_THREAD: usize = 2;

/// Size in bytes of the block that starts with `header`; `None` if the header is not that of a BGZF block.
pub(crate) fn parse_block_size(header: &[u8]) -> Option<usize> {
    let [0x1f, 0x8b, 8, 4, _, _, _, _, _, _, 6, 0, b'B', b'C', 2, 0, low, high, ..] = *header else {
        return None;
    };
    let size = usize::from(u16::from_le_bytes([low, high])) + 1;
    (size >= HEADER_BYTES + TRAILER_BYTES).then_some(size)
}

/// Reads the block at byte `at` of a file, appends its uncompressed data to `content`, and returns the compressed size
/// of the block; `None` if no block starts there.
pub(crate) fn inflate_block_at(file: &File, at: u64, content: &mut Vec<u8>) -> io::Result<Option<u64>> {
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

/// Reads the compressed size of the block at byte `at` of a file from its header; `None` if no block starts there.
pub(crate) fn block_size_at(file: &File, at: u64) -> io::Result<Option<u64>> {
    let mut header = [0; HEADER_BYTES];
    match file.read_exact_at(&mut header, at) {
        Ok(()) => Ok(parse_block_size(&header).map(|size| size as u64)),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(e) => Err(e),
    }
}

/// Whether a file ends with a whole block. Looks for its header in the last bytes, so another file is very unlikely to
/// pass.
pub(crate) fn ends_with_whole_block(file: &File) -> io::Result<bool> {
    let file_bytes = file.metadata()?.len();
    let start = file_bytes.saturating_sub(1 << u16::BITS);
    let mut end = vec![0; (file_bytes - start) as usize];
    file.read_exact_at(&mut end, start)?;
    Ok((0..end.len()).any(|at| parse_block_size(&end[at..]) == Some(end.len() - at)))
}

/// Decompresses the BGZF blocks at the start of a stream.
pub(crate) struct BgzfReader<R> {
    compressed: R,
    threads: InflateThreads,
    /// The job whose uncompressed data are being delivered. `current_pos` is the position in these data.
    current: Job,
    current_pos: usize,
    /// Jobs that can be filled. Their number limits how far the reader reads ahead.
    spare_jobs: Vec<Job>,
    /// Bytes after the last whole block: other data, or the start of a truncated block.
    leftover: Vec<u8>,
    /// Whether there are no further whole blocks.
    at_end: bool,
    /// The error of the system call that failed after the last whole block.
    read_error: Option<io::Error>,
}

impl<R: Read> BgzfReader<R> {
    /// Decompresses with `num_threads` threads; with 0, in the calling thread.
    pub(crate) fn new(packed: R, num_threads: usize) -> Self {
        let crew = InflateThreads::new(num_threads);
        // Without threads only one job is needed.
        let spare = (0..(num_threads * JOBS_PER_THREAD).max(1)).map(|_| Job::default()).collect();
        let current = Job::default();
        BgzfReader {
            compressed: packed,
            threads: crew,
            current,
            current_pos: 0,
            spare_jobs: spare,
            leftover: Vec::new(),
            at_end: false,
            read_error: None,
        }
    }

    /// Returns the bytes after the last block, and the reader of everything after them.
    pub(crate) fn into_unread_input(self) -> (Vec<u8>, R) {
        (self.leftover, self.compressed)
    }

    /// Takes the next decompressed job as `current`, after giving all spare jobs to the threads; false at the end.
    fn next_job(&mut self) -> bool {
        while !self.at_end
            && let Some(mut job) = self.spare_jobs.pop()
        {
            self.fill_job(&mut job);
            self.threads.submit(job);
        }
        let Some(job) = self.threads.take_oldest() else {
            return false;
        };
        self.spare_jobs.push(std::mem::replace(&mut self.current, job));
        self.current_pos = 0;
        true
    }

    /// Fills a decompression job with the next whole BGZF blocks of the stream.
    fn fill_job(&mut self, job: &mut Job) {
        job.compressed.clear();
        job.block_ends.clear();
        while !self.at_end && job.block_ends.len() < BLOCKS_PER_JOB {
            let start = job.compressed.len();
            let whole = self.append_exact(&mut job.compressed, HEADER_BYTES)
                && parse_block_size(&job.compressed[start..])
                    .is_some_and(|size| self.append_exact(&mut job.compressed, size - HEADER_BYTES));
            if whole {
                job.block_ends.push(job.compressed.len());
            } else {
                self.at_end = true;
                self.leftover.extend(job.compressed.drain(start..));
            }
        }
    }

    /// Reads exactly `n` bytes of the stream and appends them to `bytes`; false if the stream ends before.
    fn append_exact(&mut self, bytes: &mut Vec<u8>, n: usize) -> bool {
        match self.compressed.by_ref().take(n as u64).read_to_end(bytes) {
            Ok(read) => read == n,
            Err(e) => {
                self.read_error = Some(e);
                false
            }
        }
    }
}

impl<R: Read> Read for BgzfReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.current_pos == self.current.content.len() {
            if let Some(e) = self.current.error.take() {
                return Err(e);
            }
            if !self.next_job() {
                return self.read_error.take().map_or(Ok(0), Err);
            }
        }
        let n = buf.len().min(self.current.content.len() - self.current_pos);
        buf[..n].copy_from_slice(&self.current.content[self.current_pos..][..n]);
        self.current_pos += n;
        Ok(n)
    }
}

/// Consecutive BGZF blocks that one thread decompresses, and their uncompressed data.
#[derive(Default)]
struct Job {
    compressed: Vec<u8>,
    /// End of each block in the compressed data.
    block_ends: Vec<usize>,
    content: Vec<u8>,
    /// The error in the block that follows the uncompressed data; `None` if all blocks are valid.
    error: Option<io::Error>,
}

impl Job {
    fn inflate(&mut self, inflater: &mut Decompress) {
        self.content.clear();
        let mut start = 0;
        for &end in &self.block_ends {
            let block = &self.compressed[start..end];
            if !inflate_block(block, &mut self.content, inflater)
                && let Err(e) = inflate_member(block, &mut self.content)
            {
                self.error = Some(e);
                return;
            }
            start = end;
        }
    }
}

/// Appends the uncompressed data of a block. Returns false and appends nothing if the block violates the BGZF
/// specification.
fn inflate_block(block: &[u8], content: &mut Vec<u8>, inflater: &mut Decompress) -> bool {
    let (deflated, trailer) = block[HEADER_BYTES..].split_at(block.len() - HEADER_BYTES - TRAILER_BYTES);
    let [a, b, c, d, e, f, g, h] = *trailer else { return false };
    let (checksum, length) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]) as usize);
    if length > MAX_BLOCK_CONTENT_BYTES {
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

/// Decompresses a block as an ordinary gzip member, and appends all data before the first error.
fn inflate_member(block: &[u8], content: &mut Vec<u8>) -> io::Result<()> {
    match MultiGzDecoder::new(block).read_to_end(content) {
        Ok(_) => Ok(()),
        // The file continues after this block, so it is not truncated.
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "a BGZF block ends before its data"))
        }
        Err(e) => Err(e),
    }
}

/// The inflating threads. Without threads, the calling thread decompresses each job when it is submitted.
struct InflateThreads {
    threads: Vec<InflateThread>,
    inflater: Decompress,
    /// The finished job, if the calling thread decompresses.
    finished_job: Option<Job>,
    num_submitted: usize,
    num_taken: usize,
}

struct InflateThread {
    jobs: SyncSender<Job>,
    done: Receiver<Job>,
    thread: JoinHandle<()>,
}

impl InflateThreads {
    fn new(threads: usize) -> Self {
        let workers = (0..threads).map_while(|_| InflateThread::start()).collect();
        InflateThreads {
            threads: workers,
            inflater: Decompress::new(false),
            finished_job: None,
            num_submitted: 0,
            num_taken: 0,
        }
    }

    /// Number of jobs that were submitted and whose results have not been taken.
    fn num_outstanding(&self) -> usize {
        self.num_submitted - self.num_taken
    }

    fn submit(&mut self, mut job: Job) {
        if self.threads.is_empty() {
            job.inflate(&mut self.inflater);
            self.finished_job = Some(job);
        } else {
            let turn = self.num_submitted % self.threads.len();
            self.threads[turn].jobs.send(job).expect("an inflating thread waits for jobs");
        }
        self.num_submitted += 1;
    }

    /// Waits for the job that was submitted first among the outstanding ones, and returns it with its decompressed
    /// data. `None` if no job is outstanding.
    fn take_oldest(&mut self) -> Option<Job> {
        if self.num_outstanding() == 0 {
            return None;
        }
        let job = match self.threads.len() {
            0 => self.finished_job.take(),
            n => self.threads[self.num_taken % n].done.recv().ok(),
        };
        self.num_taken += 1;
        Some(job.expect("an inflating thread returns its jobs"))
    }
}

impl Drop for InflateThreads {
    fn drop(&mut self) {
        for InflateThread { jobs, done, thread } in self.threads.drain(..) {
            drop((jobs, done));
            // A panic of the thread was noticed when its job was taken.
            let _ = thread.join();
        }
    }
}

impl InflateThread {
    /// Starts a thread; `None` if the system cannot start one. The work is then done by the other threads or by the
    /// reader.
    fn start() -> Option<Self> {
        let (jobs, to_do) = sync_channel::<Job>(JOBS_PER_THREAD);
        let (finished, done) = sync_channel(JOBS_PER_THREAD);
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
        Some(InflateThread { jobs, done, thread })
    }
}
