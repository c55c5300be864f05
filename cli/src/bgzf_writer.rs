//! Writes files that are compressed with BGZF (SAM specification, section 4.1).

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use genuma_align::bgzf::{BlockCompressor, CompressionLevel, EOF_BLOCK, MAX_BLOCK_DATA_BYTES};
use genuma_work::publish::AtomicFileSet;

/// Compresses data in blocks as it is written. Without [`BgzfWriter::finish`] the file is incomplete.
pub(crate) struct BgzfWriter<W: Write> {
    out: W,
    compressor: BlockCompressor,
    data: Vec<u8>,
    block: Vec<u8>,
}

impl<W: Write> BgzfWriter<W> {
    /// Creates a writer with the default compression level.
    pub(crate) fn with_default_level(out: W) -> BgzfWriter<W> {
        let compressor = BlockCompressor::with_compression_level(CompressionLevel::default());
        BgzfWriter { out, compressor, data: Vec::with_capacity(MAX_BLOCK_DATA_BYTES), block: Vec::new() }
    }

    fn write_block(&mut self) -> io::Result<()> {
        self.block.clear();
        self.compressor.compress_block(&self.data, &mut self.block);
        self.data.clear();
        self.out.write_all(&self.block)
    }

    /// Writes the rest of the data and the block that marks the end. Returns the inner writer.
    ///
    /// # Errors
    /// The inner writer fails.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        if !self.data.is_empty() {
            self.write_block()?;
        }
        self.out.write_all(&EOF_BLOCK)?;
        Ok(self.out)
    }
}

impl<W: Write> Write for BgzfWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(MAX_BLOCK_DATA_BYTES - self.data.len());
        self.data.extend_from_slice(&bytes[..taken]);
        if self.data.len() == MAX_BLOCK_DATA_BYTES {
            self.write_block()?;
        }
        Ok(taken)
    }

    /// Flushes the inner writer. Data of the current block waits until the block is full.
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Registers the indexes of an earlier VCF file of this name to be removed when the set is published.
pub(crate) fn remove_vcf_index_on_publish(path: &Path, set: &mut AtomicFileSet) {
    for index in ["tbi", "csi"] {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{index}"));
        set.remove_file_on_publish(PathBuf::from(name));
    }
}
