//! Versions of CRAM: how a file states its version, and how files of each version end (CRAM format specifications 2.1
//! and 3).

use std::io::{self, BufRead};
use std::path::Path;

use crate::error::{Error, FileFault};
use crate::input_file::read_exactly;

/// First bytes of every CRAM file, by which the format is recognised.
pub(super) const CRAM_MAGIC: &[u8] = b"CRAM";
/// Number of bytes of a file before its first container: magic, version and identifier.
pub(super) const FILE_DEFINITION_BYTES: u64 = 26;
/// The empty container at the end of a file of version 3.
pub(super) const EOF_CONTAINER_3: [u8; 38] = [
    0x0f, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 0xe0, 0x45, 0x4f, 0x46, 0, 0, 0, 0, 1, 0, 5, 0xbd, 0xd9, 0x4f, 0, 1,
    0, 6, 6, 1, 0, 1, 0, 1, 0, 0xee, 0x63, 1, 0x4b,
];
/// The last bytes of the empty container at the end of a file of version 2.1, from the alignment start on. The number
/// before them, -1, ends with 0x0f or, as in the specification, with 0xff.
const EOF_CONTAINER_2_1_END: [u8; 21] = [0xe0, 0x45, 0x4f, 0x46, 0, 0, 0, 0, 1, 0, 0, 1, 0, 6, 6, 1, 0, 1, 0, 1, 0];

/// A version of CRAM that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CramVersion {
    V2_0,
    V2_1,
    /// 3.0 and 3.1, which differ only in their compression methods.
    V3,
}

impl CramVersion {
    /// Reads the file definition, with which a CRAM file begins.
    ///
    /// # Errors
    /// The file cannot be read or ends inside the file definition; its version is not supported.
    pub(super) fn read(path: &Path, input: &mut impl BufRead) -> Result<CramVersion, Error> {
        let mut definition = Vec::new();
        let is_whole = match read_exactly(input, FILE_DEFINITION_BYTES, &mut definition) {
            Ok(()) => true,
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => false,
            Err(source) => return Err(Error::Read { path: path.into(), source }),
        };
        let fault = match definition.strip_prefix(CRAM_MAGIC) {
            Some(&[2, 0, ..]) if is_whole => return Ok(CramVersion::V2_0),
            Some(&[2, 1, ..]) if is_whole => return Ok(CramVersion::V2_1),
            Some(&[3, 0 | 1, ..]) if is_whole => return Ok(CramVersion::V3),
            Some(&[major, minor, ..]) if !matches!((major, minor), (2 | 3, 0 | 1)) => {
                FileFault::CramVersion { major, minor }
            }
            None if is_whole => FileFault::Header("it violates the specification"),
            _ => FileFault::Header("the file ends inside the header"),
        };
        Err(Error::error_in_file(path, fault))
    }

    /// Whether containers and blocks have checksums, and record counters are LTF8 numbers.
    pub(super) fn is_version_3(self) -> bool {
        self == CramVersion::V3
    }

    /// The bytes with which every whole file of this version ends. `None` for version 2.0, in which the end of a file
    /// is not marked.
    pub(super) fn eof_marker(self) -> Option<&'static [u8]> {
        match self {
            CramVersion::V2_0 => None,
            CramVersion::V2_1 => Some(&EOF_CONTAINER_2_1_END),
            CramVersion::V3 => Some(&EOF_CONTAINER_3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_2_and_3_are_read() {
        let read = |bytes: &[u8]| CramVersion::read(Path::new("x.cram"), &mut &bytes[..]).map_err(|e| e.to_string());
        let definition = |major: u8, minor: u8| [b"CRAM", &[major, minor][..], &[0; 20]].concat();
        for (major, minor, version) in
            [(2, 0, CramVersion::V2_0), (2, 1, CramVersion::V2_1), (3, 0, CramVersion::V3), (3, 1, CramVersion::V3)]
        {
            assert_eq!(read(&definition(major, minor)), Ok(version));
            for length in [5, 6, 25] {
                let error = read(&definition(major, minor)[..length]).expect_err("truncated");
                assert!(error.contains("the file ends inside the header"), "{error}");
            }
        }
        for (major, minor) in [(1, 0), (1, 1), (2, 2), (3, 2), (4, 0)] {
            for length in [6, 26] {
                let error = read(&definition(major, minor)[..length]).expect_err("not supported");
                assert!(error.contains(&format!("is CRAM {major}.{minor}, but only")), "{error}");
            }
        }
        assert!(read(&[b'B'; 26]).expect_err("no CRAM").contains("it violates the specification"));
    }
}
