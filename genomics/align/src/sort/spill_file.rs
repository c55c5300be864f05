//! The spill file of the sorter: sorted runs that do not fit into memory, compressed.

use std::path::Path;

use genuma_work::spill::{self, SpillBlock};

use super::Error;
use super::lz4::{Lz4Compressor, decompress};

/// Temporary file for compressed parts (extents) of sorted runs. The space of extents that have been read is reused.
#[derive(Debug)]
pub(crate) struct SortedRunFile(spill::SpillFile);

/// Location in the spill file of one extent: a compressed part of a sorted run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunExtent {
    packed: SpillBlock,
    /// Size of the extent before compression (bytes).
    unpacked_bytes: u32,
}

impl SortedRunFile {
    /// Prepares a spill file in `folder`. The file is created at the first write.
    pub(crate) fn prepare_in_folder(folder: &Path) -> SortedRunFile {
        SortedRunFile(spill::SpillFile::create_unnamed("sorting", folder))
    }

    /// Number of bytes written so far.
    pub(crate) fn bytes_written(&self) -> u64 {
        self.0.written_bytes()
    }

    /// Compresses `items` and writes them to the file, as one extent. `scratch` is a reusable buffer.
    pub(crate) fn write_extent(
        &self,
        items: &[u8],
        compressor: &mut Lz4Compressor,
        scratch: &mut Vec<u8>,
    ) -> Result<RunExtent, Error> {
        compressor.compress(items, scratch);
        Ok(RunExtent { packed: self.0.write_block(scratch, scratch.len())?, unpacked_bytes: items.len() as u32 })
    }

    /// Reads an extent and frees its disk space; an extent can be read only once.
    pub(crate) fn read_extent_and_free(&self, extent: RunExtent, scratch: &mut Vec<u8>) -> Result<Vec<u8>, Error> {
        self.0.read_block(&extent.packed, scratch)?;
        self.0.punch_hole_at_block(extent.packed);
        Ok(decompress(scratch, extent.unpacked_bytes as usize)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let spill = SortedRunFile::prepare_in_folder(folder.path());
        let (mut compressor, mut scratch) = (Lz4Compressor, Vec::new());
        let pieces: Vec<Vec<u8>> = (0..50u32).map(|i| (0..i * 997).map(|b| ((b * i) >> 4) as u8).collect()).collect();
        let extents: Vec<RunExtent> =
            pieces.iter().map(|p| spill.write_extent(p, &mut compressor, &mut scratch).expect("room")).collect();
        for (piece, extent) in pieces.iter().zip(extents).rev() {
            assert!(spill.read_extent_and_free(extent, &mut scratch).expect("readable") == *piece);
        }
        assert!(spill.bytes_written() > 0);
    }
}
