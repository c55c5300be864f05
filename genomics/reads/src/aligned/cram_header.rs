//! Header of a CRAM file: the text of a SAM header in the first container. As in BAM files, only the lines of reference
//! sequences and read groups are parsed, and errors in other lines do not matter.

use std::io::{self, BufRead, Read as _};
use std::num::NonZero;
use std::path::Path;

use noodles_cram::io::reader::Reader;
use noodles_sam::Header;
use noodles_sam::header::record::value::Map;
use noodles_sam::header::record::value::map::{ReadGroup, ReferenceSequence};

use crate::error::{Error, FileFault};
use crate::input_file::read_exactly;

use super::cram_2::{container_to_version_3, num_bytes_beyond_length};
use super::cram_container::read_container_bytes;
use super::cram_decoder_guard::call_decoder;
use super::cram_version::CramVersion;
use super::header::{self, AlignedHeader, HeaderSequence};

/// Header of a CRAM file.
pub(super) struct CramHeader {
    /// Samples, platforms and reference sequences.
    pub(super) aligned: AlignedHeader,
    /// The reference sequences and read groups, to whose indexes records refer, for the decoder.
    pub(super) decoder: Header,
}

impl CramHeader {
    /// Reads the header, which follows the file definition.
    ///
    /// # Errors
    /// The file cannot be read or ends inside the header; the header is damaged.
    pub(super) fn read(path: &Path, input: &mut impl BufRead, version: CramVersion) -> Result<CramHeader, Error> {
        let text = read_text(input, version).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => {
                Error::error_in_file(path, FileFault::Header("the file ends inside the header"))
            }
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                Error::error_in_file(path, FileFault::Header("it violates the specification"))
            }
            _ => Error::Read { path: path.into(), source: e },
        })?;
        CramHeader::parse(&text).map_err(|why| Error::error_in_file(path, FileFault::Header(why)))
    }

    /// The reference sequence with this name.
    pub(super) fn find_sequence(&self, name: &[u8]) -> Option<&HeaderSequence> {
        self.aligned.sequences.get(self.decoder.reference_sequences().get_index_of(name)?)
    }

    /// Parses a header text. As in htslib, a read group with the ID of an earlier one gets no index, and two reference
    /// sequences with the same name are an error.
    ///
    /// # Errors
    /// A line lacks a field to which records refer, or a name is not unique; the text says which.
    fn parse(text: &[u8]) -> Result<CramHeader, &'static str> {
        let mut decoder = Header::default();
        let sequences = header::parse_sequences(text)?;
        for sequence in &sequences {
            // The decoder does not use the length, but allows no sequence of length 0.
            let length = NonZero::new(sequence.length as usize).unwrap_or(NonZero::<usize>::MIN);
            let map = Map::<ReferenceSequence>::new(length);
            if decoder.reference_sequences_mut().insert(sequence.name.as_str().into(), map).is_some() {
                return Err("two reference sequences have the same name");
            }
        }
        for id in header::read_group_ids(text) {
            let id = id.ok_or("a read group has no ID")?;
            decoder.read_groups_mut().insert(id.into(), Map::<ReadGroup>::default());
        }
        let aligned = AlignedHeader {
            sample_names: header::parse_sample_names(text),
            platforms: header::parse_platforms(text),
            sequences,
            needs_reference: true,
        };
        Ok(CramHeader { aligned, decoder })
    }
}

/// Reads the container with the header, and returns the header text.
fn read_text(input: &mut impl BufRead, version: CramVersion) -> io::Result<Vec<u8>> {
    let mut container = Vec::new();
    read_container_bytes(input, version, &mut container)?;
    if !version.is_version_3() {
        let missing_bytes = num_bytes_beyond_length(&container)?;
        read_exactly(input, missing_bytes, &mut container)?;
        container = container_to_version_3(&container)?;
    }
    let text = call_decoder(|| {
        let mut reader = Reader::new(&container[..]);
        let mut reader = reader.header_reader();
        let mut container = reader.container_reader()?;
        let mut text = Vec::new();
        container.raw_sam_header_reader()?.read_to_end(&mut text)?;
        Ok(text)
    });
    text.unwrap_or_else(|| Err(io::ErrorKind::InvalidData.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_read_groups_have_the_index_of_the_first() {
        let text = b"@HD\tVN:1\n@SQ\tLN:30\tSN:one\n@RG\tID:a\tSM:x\n@RG\tID:b\n@RG\tID:a\tSM:y\n@RG\tID:c\n";
        let CramHeader { aligned, decoder } = CramHeader::parse(text).expect("a header");
        let ids: Vec<String> = decoder.read_groups().keys().map(ToString::to_string).collect();
        assert_eq!(ids, ["a", "b", "c"]);
        assert_eq!(decoder.reference_sequences().len(), 1);
        assert_eq!(aligned.sample_names.into_iter().collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!((aligned.sequences[0].name.as_str(), aligned.sequences[0].length), ("one", 30));
    }

    #[test]
    fn missing_and_repeated_names_are_errors() {
        for (text, why) in [
            ("@SQ\tSN:a\tLN:5\n@SQ\tSN:a\tLN:5\n", "two reference sequences have the same name"),
            ("@SQ\tLN:5\n", "a reference sequence has no name"),
            ("@SQ\tSN:a\n", "a reference sequence has no valid length"),
            ("@SQ\tSN:a\tLN:-1\n", "a reference sequence has no valid length"),
            ("@SQ\tSN:a\tLN:9223372036854775807\n", "a reference sequence has no valid length"),
            ("@RG\tSM:a\n", "a read group has no ID"),
        ] {
            assert_eq!(CramHeader::parse(text.as_bytes()).err(), Some(why));
        }
    }
}
