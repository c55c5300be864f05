//! Cuts the reads into batches, and writes them as FASTQ or FASTA text again; each batch goes to one instance.
//!
//! For an aligner that works in blocks, a batch is one block. A batch is assigned to an instance before its chunks
//! exist, and the instance gets each chunk as soon as it is complete. So an instance does not wait until a block of
//! hundreds of megabases has been read.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use genuma_reads::{
    AlignedInput, AlignedOptions, BatchLimits, Error, FileFault, ReadBatch, ReadRef, ReadStream, StreamLane,
    leave_out_empty_stream_lanes,
};

use crate::invocation::{Invocation, OutputFormat, ReadDependence, ReadFiles, ReadInputMode};

/// Number of bases (bp) at which a text chunk ends: about 1 MB of FASTQ.
const CHUNK_BASES: u64 = 400_000;

/// Limits at which a text chunk ends. A text chunk is the text of consecutive templates that an instance is given as a
/// whole.
pub(crate) const TEXT_CHUNK_LIMITS: BatchLimits =
    BatchLimits { target_bases: CHUNK_BASES, max_reads: 8192, min_reads: 0, max_bases: CHUNK_BASES };

/// Returns the lanes of `reads`, without those that have no reads. Files of aligned reads are read with the options
/// `aligned`.
///
/// # Errors
/// A file exists and cannot be read.
pub(crate) fn lanes_of_read_files(reads: &ReadFiles, aligned: &AlignedOptions) -> Result<Vec<StreamLane>, Error> {
    let each = |files: &[PathBuf], mates: bool, text: fn(PathBuf) -> StreamLane| -> Result<Vec<StreamLane>, Error> {
        let lane = |file: &PathBuf| {
            Ok(match AlignedInput::is_bam_cram_or_binseq(file)? {
                true => StreamLane::Aligned(AlignedInput::new(
                    file,
                    AlignedOptions { pair_mates: mates, ..aligned.clone() },
                )),
                false => text(file.clone()),
            })
        };
        files.iter().map(lane).collect()
    };
    let lanes: Vec<StreamLane> = match reads {
        ReadFiles::Unnamed => Vec::new(),
        ReadFiles::Single(files) => each(files, false, StreamLane::Single)?,
        ReadFiles::Mixed(files) => each(files, true, StreamLane::Single)?,
        ReadFiles::Paired(files) => files.iter().cloned().map(|[one, two]| StreamLane::Pair(one, two)).collect(),
        ReadFiles::Interleaved(files) => each(files, true, StreamLane::Interleaved)?,
    };
    leave_out_empty_stream_lanes(lanes)
}

/// Returns the names of the read files as words of a command line: one word, or one each for read 1 and read 2. Lanes
/// are separated by commas.
pub(crate) fn format_read_file_names_as_words(reads: &ReadFiles) -> Vec<String> {
    let join = |files: Vec<&PathBuf>| files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(",");
    match reads {
        ReadFiles::Unnamed => Vec::new(),
        ReadFiles::Single(files) | ReadFiles::Interleaved(files) | ReadFiles::Mixed(files) => {
            vec![join(files.iter().collect())]
        }
        ReadFiles::Paired(files) => (0..2).map(|mate| join(files.iter().map(|pair| &pair[mate]).collect())).collect(),
    }
}

/// Returns a read's name as it appears in SAM records (QNAME): the first word of the FASTQ header, without a final `/`
/// and digit such as `/1`.
pub(crate) fn template_name_from_fastq_header(header: &[u8]) -> &[u8] {
    let end = header.iter().position(|b| matches!(b, b' ' | b'\t')).unwrap_or(header.len());
    match &header[..end] {
        [name @ .., b'/', b'0'..=b'9'] if !name.is_empty() => name,
        name => name,
    }
}

/// The FASTQ or FASTA text of consecutive templates, as it is written to an instance.
#[derive(Debug, Default)]
pub(crate) struct TextChunk {
    /// One text, or one each for read 1 and read 2.
    pub texts: [Vec<u8>; 2],
    templates: Vec<ChunkTemplate>,
}

#[derive(Debug)]
struct ChunkTemplate {
    /// Position of the name in the first text.
    name: Range<usize>,
    reads: u32,
}

impl TextChunk {
    /// Number of templates in the chunk.
    pub(crate) fn num_templates(&self) -> usize {
        self.templates.len()
    }

    /// Returns the name of template `i`.
    pub(crate) fn name_of_template(&self, i: usize) -> &[u8] {
        &self.texts[0][self.templates[i].name.clone()]
    }

    /// Returns the number of reads of template `i`.
    pub(crate) fn count_reads_of_template(&self, i: usize) -> u32 {
        self.templates[i].reads
    }

    /// Returns an empty chunk with slightly more capacity than this one uses.
    fn with_similar_capacity(&self) -> TextChunk {
        let more = |length: usize| length + length / 16;
        TextChunk {
            texts: self.texts.each_ref().map(|text| Vec::with_capacity(more(text.len()))),
            templates: Vec::with_capacity(more(self.templates.len())),
        }
    }

    fn push_template(&mut self, template: &[ReadRef<'_>], feed: ReadInputMode) {
        let start = self.texts[0].len() + 1;
        let name = start..start + template_name_from_fastq_header(template[0].name).len();
        self.templates.push(ChunkTemplate { name, reads: template.len() as u32 });
        for (mate, read) in template.iter().enumerate() {
            self.write_read(read, if feed == ReadInputMode::TwoFiles { mate } else { 0 });
        }
    }

    /// Returns whether a read with this header, the next in the file, is the mate of the last read.
    fn is_mate(&self, header: &[u8]) -> bool {
        let last = self.templates.len().wrapping_sub(1);
        self.templates
            .get(last)
            .is_some_and(|t| t.reads == 1 && self.name_of_template(last) == template_name_from_fastq_header(header))
    }

    /// Returns whether the next read may be the mate of the last read.
    fn may_take_mate(&self) -> bool {
        self.templates.last().is_some_and(|t| t.reads == 1)
    }

    /// Adds the mate of the last read.
    fn push_mate(&mut self, read: &ReadRef<'_>) {
        self.write_read(read, 0);
        if let Some(last) = self.templates.last_mut() {
            last.reads = 2;
        }
    }

    fn write_read(&mut self, read: &ReadRef<'_>, text: usize) {
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

/// A batch: consecutive templates that go to one instance.
#[derive(Debug)]
pub(crate) struct InstanceBatch {
    /// Number of the batch, from 0.
    pub number: u64,
    /// Number of reads of the input before the first read of the batch.
    pub first_read: u64,
    filling: Mutex<BatchState>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct BatchState {
    chunks: Vec<Arc<TextChunk>>,
    reads: u64,
    ended: bool,
    /// Number of processes that died before this batch was finished.
    failures: u32,
    /// Number of templates whose records have been delivered to the merger.
    delivered: usize,
}

impl InstanceBatch {
    /// Creates an empty batch with this number; `first` is the number of reads of the input before the batch.
    pub(crate) fn new_empty_batch(number: u64, first: u64) -> Self {
        InstanceBatch { number, first_read: first, filling: Mutex::default(), filled: Condvar::new() }
    }

    /// Creates a complete batch of one chunk with these templates, for fuzzing.
    #[cfg(fuzzing)]
    pub(crate) fn new_complete_batch(
        number: u64,
        first: u64,
        templates: &[[ReadRef<'_>; 2]],
        feed: ReadInputMode,
    ) -> Self {
        let batch = InstanceBatch::new_empty_batch(number, first);
        let mut chunk = TextChunk::default();
        templates.iter().for_each(|template| chunk.push_template(template, feed));
        batch.push_chunk(chunk, 2 * templates.len() as u64);
        batch.mark_complete();
        batch
    }

    fn lock_state(&self) -> MutexGuard<'_, BatchState> {
        self.filling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push_chunk(&self, chunk: TextChunk, reads: u64) {
        let mut filling = self.lock_state();
        filling.chunks.push(Arc::new(chunk));
        filling.reads += reads;
        self.filled.notify_all();
    }

    /// Marks that no more chunks follow: the batch is complete, or reading failed.
    fn mark_complete(&self) {
        self.lock_state().ended = true;
        self.filled.notify_all();
    }

    /// Waits for chunk `i`; `None` if `i` is after the last chunk.
    pub(crate) fn wait_for_chunk(&self, i: usize) -> Option<Arc<TextChunk>> {
        let open = |filling: &mut BatchState| filling.chunks.len() <= i && !filling.ended;
        let filling = self.filled.wait_while(self.lock_state(), open).unwrap_or_else(PoisonError::into_inner);
        filling.chunks.get(i).cloned()
    }

    /// Waits until the batch is complete and returns its number of reads.
    pub(crate) fn wait_for_num_reads(&self) -> u64 {
        let filling = self.filled.wait_while(self.lock_state(), |f| !f.ended);
        filling.unwrap_or_else(PoisonError::into_inner).reads
    }

    /// Frees the text of the batch, which no process needs any more.
    pub(crate) fn release_text(&self) {
        self.lock_state().chunks.clear();
    }

    /// Counts one more process that died while this batch was unfinished. Returns the number of such processes.
    pub(crate) fn increment_process_failures(&self) -> u32 {
        let mut filling = self.lock_state();
        filling.failures += 1;
        filling.failures
    }

    /// Returns the number of templates whose records have been delivered to the merger.
    pub(crate) fn num_templates_delivered_to_merger(&self) -> usize {
        self.lock_state().delivered
    }

    /// Sets the number of templates whose records have been delivered to the merger.
    pub(crate) fn set_num_templates_delivered_to_merger(&self, templates: usize) {
        self.lock_state().delivered = templates;
    }
}

/// Limits at which a block of reads ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BlockLimits {
    bases: u64,
    min_reads: u64,
    even: bool,
}

impl BlockLimits {
    fn is_reached(&self, bases: u64, reads: u64) -> bool {
        bases >= self.bases && reads >= self.min_reads && (!self.even || reads.is_multiple_of(2))
    }
}

/// Cuts the reads into batches.
pub(crate) struct BatchCutter {
    feed: ReadInputMode,
    block: Option<BlockLimits>,
    /// Whether adjacent reads with the same name are mates, and other reads are single.
    mixed: bool,
    /// The first file of each lane, for error messages.
    files: Vec<PathBuf>,
    /// Whether the aligner accepts only pairs.
    accepts_only_pairs: bool,
    /// Whether the aligner writes SAM, which cannot hold all names.
    writes_sam: bool,
    /// Whether the current batch has reached its limits: only a mate of its last read may still be added.
    full: bool,
    open: Option<Arc<InstanceBatch>>,
    chunk: TextChunk,
    chunk_reads: u64,
    bases: u64,
    reads: u64,
    begun: u64,
    /// Number of reads in all batches so far.
    all: u64,
}

impl BatchCutter {
    /// Creates a cutter for the instances of `invocation`, whose plain run has `threads` threads.
    pub(crate) fn for_invocation(invocation: &Invocation, lanes: &[StreamLane], threads: usize) -> Self {
        let block = match invocation.depends {
            ReadDependence::Blocks { even, min_reads: least_reads, .. } => {
                let bases = invocation.depends.min_block_bases(threads).unwrap_or(u64::MAX);
                Some(BlockLimits { bases, min_reads: least_reads, even })
            }
            ReadDependence::Nothing | ReadDependence::AllEarlierReads => None,
        };
        BatchCutter {
            feed: invocation.feed,
            block,
            mixed: matches!(invocation.reads, ReadFiles::Mixed(_)),
            files: lanes.iter().map(|lane| lane.paths().next().map_or_else(PathBuf::new, Path::to_path_buf)).collect(),
            accepts_only_pairs: matches!(invocation.reads, ReadFiles::Interleaved(_))
                && (!invocation.unpaired_in_interleaved || invocation.feed == ReadInputMode::TwoFiles),
            writes_sam: invocation.format == OutputFormat::Sam,
            full: false,
            open: None,
            chunk: TextChunk::default(),
            chunk_reads: 0,
            bases: 0,
            reads: 0,
            begun: 0,
            all: 0,
        }
    }

    /// Cuts all reads of `stream` into batches. Returns the number of reads. `begin` receives each batch before its
    /// first chunk is complete, and returns whether to go on. `failed` receives a read error, or an unpaired read where
    /// only pairs are accepted, before the last batch is marked complete.
    pub(crate) fn cut_batches(
        &mut self,
        stream: &mut ReadStream,
        mut begin: impl FnMut(Arc<InstanceBatch>) -> bool,
        failed: impl FnOnce(Error),
    ) -> u64 {
        let mut reads = ReadBatch::new();
        loop {
            match stream.fill_batch(&mut reads) {
                Ok(true) => {}
                Ok(false) => {
                    // Without reads, an aligner writes its header.
                    if self.begun == 0 {
                        self.begin_batch(&mut begin);
                    }
                    break;
                }
                Err(error) => {
                    failed(error);
                    break;
                }
            }
            if let Some(fault) = self.find_fault(&reads) {
                failed(Error::File { path: self.files[reads.lane_index as usize].clone(), fault });
                break;
            }
            if !self.add_reads(&reads, &mut begin) {
                break;
            }
        }
        self.end_chunk();
        if let Some(batch) = self.open.take() {
            batch.mark_complete();
        }
        self.all
    }

    /// Returns the first fault of the reads that the aligner, or its output, cannot hold.
    fn find_fault(&self, reads: &ReadBatch) -> Option<FileFault> {
        let name = |read: ReadRef<'_>| String::from_utf8_lossy(read.name).into_owned();
        if self.accepts_only_pairs && !reads.is_paired {
            return Some(FileFault::UnpairedRead { name: name(reads.read(0)) });
        }
        let read = reads.iter().find(|read| self.writes_sam && read.name_looks_like_sam_header())?;
        Some(FileFault::NameBeginsWithAt(name(read)))
    }

    fn add_reads(&mut self, reads: &ReadBatch, begin: &mut impl FnMut(Arc<InstanceBatch>) -> bool) -> bool {
        let step = if reads.is_paired { 2 } else { 1 };
        for i in (0..reads.len()).step_by(step) {
            let one = reads.read(i);
            let is_mate = self.mixed && self.open.is_some() && self.chunk.is_mate(one.name);
            if self.full && !is_mate {
                self.end_batch();
            }
            if self.open.is_none() && !self.begin_batch(begin) {
                return false;
            }
            let both = [one, if reads.is_paired { reads.read(i + 1) } else { one }];
            let template = &both[..step];
            match is_mate {
                true => self.chunk.push_mate(&one),
                false => self.chunk.push_template(template, self.feed),
            }
            self.chunk_reads += step as u64;
            self.bases += template.iter().map(|read| read.seq.len() as u64).sum::<u64>();
            self.reads += step as u64;
            if self.block.is_some_and(|block| block.is_reached(self.bases, self.reads)) {
                // A block with an even number of reads may also end between mates.
                match self.mixed && self.block.is_some_and(|block| !block.even) {
                    true => self.full = true,
                    false => self.end_batch(),
                }
            }
        }
        // Whether the last read has a mate may still be unknown.
        match (self.mixed && self.chunk.may_take_mate(), self.block) {
            (true, None) => self.full = true,
            (true, Some(_)) => {}
            (false, None) => self.end_batch(),
            (false, Some(_)) => self.end_chunk(),
        }
        true
    }

    /// Begins a batch. Returns whether to go on.
    fn begin_batch(&mut self, begin: &mut impl FnMut(Arc<InstanceBatch>) -> bool) -> bool {
        let batch = Arc::new(InstanceBatch::new_empty_batch(self.begun, self.all));
        self.begun += 1;
        self.open = Some(Arc::clone(&batch));
        begin(batch)
    }

    fn end_chunk(&mut self) {
        if self.chunk.num_templates() > 0
            && let Some(batch) = &self.open
        {
            self.all += self.chunk_reads;
            let next = self.chunk.with_similar_capacity();
            batch.push_chunk(std::mem::replace(&mut self.chunk, next), std::mem::take(&mut self.chunk_reads));
        }
    }

    fn end_batch(&mut self) {
        self.end_chunk();
        if let Some(batch) = self.open.take() {
            batch.mark_complete();
        }
        (self.bases, self.reads, self.full) = (0, 0, false);
    }
}
