//! The spill file: where sorted runs wait, packed, that memory has no room for.

use std::path::Path;

use genuma_work::spill::{self, Piece};

use super::Error;
use super::pack::{Packer, unpack};

#[derive(Debug)]
pub(crate) struct Spill(spill::Spill);

/// A piece of a run in the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    packed: Piece,
    /// Bytes once unpacked.
    size: u32,
}

impl Spill {
    /// Nothing yet; the file will be in `folder`.
    pub(crate) fn new(folder: &Path) -> Spill {
        Spill(spill::Spill::unnamed("sorting", folder))
    }

    /// Bytes written so far.
    pub(crate) fn written(&self) -> u64 {
        self.0.written()
    }

    /// Packs `items` and writes them wherever there is room. `scratch` is for reuse.
    pub(crate) fn write(
        &self,
        items: &[u8],
        packer: &mut Packer,
        scratch: &mut Vec<u8>,
    ) -> Result<Extent, Error> {
        packer.pack(items, scratch);
        Ok(Extent { packed: self.0.write(scratch, scratch.len())?, size: items.len() as u32 })
    }

    /// Reads a piece back and gives its room back to the disk: a piece is read once.
    pub(crate) fn take(&self, extent: Extent, scratch: &mut Vec<u8>) -> Result<Vec<u8>, Error> {
        self.0.read(&extent.packed, scratch)?;
        self.0.give_back(extent.packed);
        Ok(unpack(scratch, extent.size as usize)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let spill = Spill::new(folder.path());
        let (mut packer, mut scratch) = (Packer, Vec::new());
        let pieces: Vec<Vec<u8>> =
            (0..50u32).map(|i| (0..i * 997).map(|b| ((b * i) >> 4) as u8).collect()).collect();
        let extents: Vec<Extent> =
            pieces.iter().map(|p| spill.write(p, &mut packer, &mut scratch).expect("room")).collect();
        for (piece, extent) in pieces.iter().zip(extents).rev() {
            assert!(spill.take(extent, &mut scratch).expect("readable") == *piece);
        }
        assert!(spill.written() > 0);
    }
}
