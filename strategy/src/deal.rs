//! Reads as text again, cut into batches that instances are given whole.
//!
//! A batch of an aligner that works in blocks is such a block. It is handed out as soon as it begins, and its chunks follow while they are
//! read, so that an instance need not wait for a block of hundreds of megabases.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use genuma_reads::{
    Aligned, AlignedOptions, Cut, Error, FileFault, ReadBatch, ReadLane, ReadRef, ReadStream,
};

use crate::invocation::{Depends, Feed, Invocation, Reads};

/// Bases (bp) of a chunk: about 1 MB of FASTQ.
const CHUNK_BASES: u64 = 400_000;

/// Where chunks end.
pub(crate) const CHUNK: Cut =
    Cut { bases: CHUNK_BASES, reads: 8192, fewest_reads: 0, most_bases: CHUNK_BASES };

/// The lanes that `reads` are; files of aligned reads among them are read as `aligned` says.
pub fn lanes(reads: &Reads, aligned: &AlignedOptions) -> Vec<ReadLane> {
    let each = |files: &[PathBuf], mates: bool, text: fn(PathBuf) -> ReadLane| {
        let lane = |file: &PathBuf| match Aligned::is(file) {
            true => ReadLane::Aligned(Aligned::new(file, AlignedOptions { mates, ..aligned.clone() })),
            false => text(file.clone()),
        };
        files.iter().map(lane).collect()
    };
    match reads {
        Reads::Unnamed => Vec::new(),
        Reads::Single(files) => each(files, false, ReadLane::Single),
        Reads::Mixed(files) => each(files, true, ReadLane::Single),
        Reads::Paired(files) => files.iter().cloned().map(|[one, two]| ReadLane::Pair(one, two)).collect(),
        Reads::Interleaved(files) => each(files, true, ReadLane::Interleaved),
    }
}

/// The files of reads as a command line names them: one text, or one for reads 1 and one for reads 2; lanes have commas between.
pub(crate) fn named(reads: &Reads) -> Vec<String> {
    let join = |files: Vec<&PathBuf>| {
        files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(",")
    };
    match reads {
        Reads::Unnamed => Vec::new(),
        Reads::Single(files) | Reads::Interleaved(files) | Reads::Mixed(files) => {
            vec![join(files.iter().collect())]
        }
        Reads::Paired(files) => {
            (0..2).map(|mate| join(files.iter().map(|pair| &pair[mate]).collect())).collect()
        }
    }
}

/// What a template's name is in a record: the first word of the header, of which aligners may cut off `/1`.
pub(crate) fn template_name(header: &[u8]) -> &[u8] {
    let end = header.iter().position(|b| matches!(b, b' ' | b'\t')).unwrap_or(header.len());
    match &header[..end] {
        [name @ .., b'/', b'0'..=b'9'] if !name.is_empty() => name,
        name => name,
    }
}

/// Some consecutive templates, as they are written to an instance.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    /// One text, or one of reads 1 and one of reads 2.
    pub texts: [Vec<u8>; 2],
    templates: Vec<Template>,
}

/// A template of a chunk.
#[derive(Debug)]
struct Template {
    /// Where its name lies in the first text.
    name: Range<usize>,
    reads: u32,
}

impl Chunk {
    /// Number of templates.
    pub fn templates(&self) -> usize {
        self.templates.len()
    }

    /// The name of the template at `i`.
    pub fn name(&self, i: usize) -> &[u8] {
        &self.texts[0][self.templates[i].name.clone()]
    }

    /// Reads of the template at `i`.
    pub fn reads(&self, i: usize) -> u32 {
        self.templates[i].reads
    }

    /// An empty one with room for as much, and a little more.
    fn alike(&self) -> Chunk {
        let more = |length: usize| length + length / 16;
        Chunk {
            texts: self.texts.each_ref().map(|text| Vec::with_capacity(more(text.len()))),
            templates: Vec::with_capacity(more(self.templates.len())),
        }
    }

    fn push(&mut self, template: &[ReadRef<'_>], feed: Feed) {
        let start = self.texts[0].len() + 1;
        let name = start..start + template_name(template[0].name).len();
        self.templates.push(Template { name, reads: template.len() as u32 });
        for (mate, read) in template.iter().enumerate() {
            self.write(read, if feed == Feed::Two { mate } else { 0 });
        }
    }

    /// Whether a read of that name, the next in the file, is the mate of the last.
    fn is_mate(&self, header: &[u8]) -> bool {
        let last = self.templates.len().wrapping_sub(1);
        self.templates.get(last).is_some_and(|t| t.reads == 1 && self.name(last) == template_name(header))
    }

    /// Whether the next read may be the mate of the last.
    fn may_grow(&self) -> bool {
        self.templates.last().is_some_and(|t| t.reads == 1)
    }

    /// Adds the mate of the last read.
    fn push_mate(&mut self, read: &ReadRef<'_>) {
        self.write(read, 0);
        if let Some(last) = self.templates.last_mut() {
            last.reads = 2;
        }
    }

    fn write(&mut self, read: &ReadRef<'_>, text: usize) {
        let text = &mut self.texts[text];
        let fasta = read.qual.is_empty() && !read.seq.is_empty();
        text.push(if fasta { b'>' } else { b'@' });
        for part in [read.name, b"\n", read.seq, b"\n"] {
            text.extend_from_slice(part);
        }
        if !fasta {
            for part in [b"+\n", read.qual, b"\n"] {
                text.extend_from_slice(part);
            }
        }
    }
}

/// Consecutive templates that one instance gets.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Its number, from 0.
    pub number: u64,
    /// Reads before it.
    pub first: u64,
    filling: Mutex<Filling>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct Filling {
    chunks: Vec<Arc<Chunk>>,
    reads: u64,
    ended: bool,
    /// Times that an instance died over it.
    failures: u32,
    /// Templates whose records are with the merger.
    delivered: usize,
}

impl Batch {
    pub fn new(number: u64, first: u64) -> Self {
        Batch { number, first, filling: Mutex::default(), filled: Condvar::new() }
    }

    /// A batch of one chunk with these templates, whole.
    #[cfg(fuzzing)]
    pub fn whole(number: u64, first: u64, templates: &[[ReadRef<'_>; 2]], feed: Feed) -> Self {
        let batch = Batch::new(number, first);
        let mut chunk = Chunk::default();
        templates.iter().for_each(|template| chunk.push(template, feed));
        batch.push(chunk, 2 * templates.len() as u64);
        batch.end();
        batch
    }

    fn filling(&self) -> MutexGuard<'_, Filling> {
        self.filling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, chunk: Chunk, reads: u64) {
        let mut filling = self.filling();
        filling.chunks.push(Arc::new(chunk));
        filling.reads += reads;
        self.filled.notify_all();
    }

    /// No chunk follows, be it that the batch is whole or that the reads cannot be read on.
    fn end(&self) {
        self.filling().ended = true;
        self.filled.notify_all();
    }

    /// The chunk at `i`, when it is there; none behind the last.
    pub fn chunk(&self, i: usize) -> Option<Arc<Chunk>> {
        let open = |filling: &mut Filling| filling.chunks.len() <= i && !filling.ended;
        let filling = self.filled.wait_while(self.filling(), open).unwrap_or_else(PoisonError::into_inner);
        filling.chunks.get(i).cloned()
    }

    /// Number of reads, when the batch is whole.
    pub fn reads(&self) -> u64 {
        let filling = self.filled.wait_while(self.filling(), |f| !f.ended);
        filling.unwrap_or_else(PoisonError::into_inner).reads
    }

    /// Lets the text go: nobody needs it again.
    pub fn forget(&self) {
        self.filling().chunks.clear();
    }

    /// Counts a death over it; how many there are now.
    pub fn failed(&self) -> u32 {
        let mut filling = self.filling();
        filling.failures += 1;
        filling.failures
    }

    /// Templates whose records are with the merger.
    pub(crate) fn delivered(&self) -> usize {
        self.filling().delivered
    }

    /// Records of templates up to this number are with the merger.
    pub(crate) fn deliver(&self, templates: usize) {
        self.filling().delivered = templates;
    }
}

/// Where a batch ends, if not with each chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Block {
    bases: u64,
    least_reads: u64,
    even: bool,
}

impl Block {
    fn ends(&self, bases: u64, reads: u64) -> bool {
        bases >= self.bases && reads >= self.least_reads && (!self.even || reads.is_multiple_of(2))
    }
}

/// Cuts reads into batches.
pub(crate) struct Dealer {
    feed: Feed,
    block: Option<Block>,
    /// Neighbours of one name are mates.
    mixed: bool,
    /// Files of a lane each, if instances take nothing but pairs.
    pairs_only: Option<Vec<PathBuf>>,
    /// The batch ends unless a mate of its last read follows.
    full: bool,
    open: Option<Arc<Batch>>,
    chunk: Chunk,
    chunk_reads: u64,
    bases: u64,
    reads: u64,
    /// Batches begun.
    begun: u64,
    /// Reads in all batches.
    all: u64,
}

impl Dealer {
    /// For the instances of `invocation`, whose plain run has `threads` threads.
    pub fn new(invocation: &Invocation, threads: usize) -> Self {
        let block = match invocation.depends {
            Depends::Blocks { even, least_reads, .. } => {
                let bases = invocation.depends.block(threads).unwrap_or(u64::MAX);
                Some(Block { bases, least_reads, even })
            }
            Depends::Nothing | Depends::Everything => None,
        };
        Dealer {
            feed: invocation.feed,
            block,
            mixed: matches!(invocation.reads, Reads::Mixed(_)),
            pairs_only: match &invocation.reads {
                Reads::Interleaved(files) if !invocation.strays || invocation.feed == Feed::Two => {
                    Some(files.clone())
                }
                _ => None,
            },
            full: false,
            open: None,
            chunk: Chunk::default(),
            chunk_reads: 0,
            bases: 0,
            reads: 0,
            begun: 0,
            all: 0,
        }
    }

    /// Deals all of `stream`. `begin` is told of each batch as it begins and says whether to go on; `failed` of what is wrong with the
    /// reads, before the last batch looks whole. Gives the number of reads.
    pub(crate) fn deal(
        &mut self,
        stream: &mut ReadStream,
        mut begin: impl FnMut(Arc<Batch>) -> bool,
        failed: impl FnOnce(Error),
    ) -> u64 {
        let mut reads = ReadBatch::new();
        loop {
            match stream.fill(&mut reads) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    failed(error);
                    break;
                }
            }
            if let Some(files) = self.pairs_only.as_ref().filter(|_| !reads.paired) {
                let name = String::from_utf8_lossy(reads.read(0).name).into_owned();
                let path = files[reads.lane as usize].clone();
                failed(Error::File { path, fault: FileFault::Stray { name } });
                break;
            }
            if !self.add(&reads, &mut begin) {
                break;
            }
        }
        self.seal();
        if let Some(batch) = self.open.take() {
            batch.end();
        }
        self.all
    }

    fn add(&mut self, reads: &ReadBatch, begin: &mut impl FnMut(Arc<Batch>) -> bool) -> bool {
        let step = if reads.paired { 2 } else { 1 };
        for i in (0..reads.len()).step_by(step) {
            let one = reads.read(i);
            let is_mate = self.mixed && self.open.is_some() && self.chunk.is_mate(one.name);
            if self.full && !is_mate {
                self.end();
            }
            if self.open.is_none() {
                let batch = Arc::new(Batch::new(self.begun, self.all));
                self.begun += 1;
                self.open = Some(Arc::clone(&batch));
                if !begin(batch) {
                    return false;
                }
            }
            let both = [one, if reads.paired { reads.read(i + 1) } else { one }];
            let template = &both[..step];
            match is_mate {
                true => self.chunk.push_mate(&one),
                false => self.chunk.push(template, self.feed),
            }
            self.chunk_reads += step as u64;
            self.bases += template.iter().map(|read| read.seq.len() as u64).sum::<u64>();
            self.reads += step as u64;
            if self.block.is_some_and(|block| block.ends(self.bases, self.reads)) {
                // A block of an even number of reads ends between mates too.
                match self.mixed && self.block.is_some_and(|block| !block.even) {
                    true => self.full = true,
                    false => self.end(),
                }
            }
        }
        // Whether the last read has a mate may not be known yet.
        match (self.mixed && self.chunk.may_grow(), self.block) {
            (true, None) => self.full = true,
            (true, Some(_)) => {}
            (false, None) => self.end(),
            (false, Some(_)) => self.seal(),
        }
        true
    }

    /// Ends the chunk.
    fn seal(&mut self) {
        if self.chunk.templates() > 0
            && let Some(batch) = &self.open
        {
            self.all += self.chunk_reads;
            let next = self.chunk.alike();
            batch.push(std::mem::replace(&mut self.chunk, next), std::mem::take(&mut self.chunk_reads));
        }
    }

    /// Ends the batch.
    fn end(&mut self) {
        self.seal();
        if let Some(batch) = self.open.take() {
            batch.end();
        }
        (self.bases, self.reads, self.full) = (0, 0, false);
    }
}
