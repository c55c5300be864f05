//! Translates containers of CRAM 2.0 and 2.1 (CRAM format specification 2.1) to CRAM 3.0, which the decoder reads. Their
//! records are encoded alike. In version 3.0 the headers of containers, and blocks, end with a CRC32, and the record
//! counters of containers and slices are LTF8 numbers instead of ITF8 numbers.

use std::io;

use super::cram_block::{Block, BlockHeader, Fields, RAW, invalid, push_crc, push_itf8};
use super::cram_container::LENGTH_BYTES;
use super::cram_version::{CramVersion, EOF_CONTAINER_3};

/// Alignment start in the end-of-file container: the letters `EOF` as a number.
const EOF_ALIGNMENT_START: i32 = 0x45_4f46;
/// Content type of a block with the header of a slice.
const SLICE_HEADER: u8 = 2;

/// Returns the bytes of a container of version 2.0 or 2.1, header and blocks, as those of the same container in version
/// 3.0. Bytes that follow the last block stay as they are: the container of a file's header may have room for a longer
/// header.
///
/// # Errors
/// The headers contradict themselves; the header of a slice is compressed.
pub(super) fn container_to_version_3(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let header = ContainerHeader::read(bytes)?;
    if header.is_end_of_file {
        return Ok(EOF_CONTAINER_3.to_vec());
    }
    let mut fields = Fields::new(header.blocks);
    let mut blocks = Vec::with_capacity(header.blocks.len());
    // Offsets of each block in both versions.
    let mut offsets = Vec::new();
    for _ in 0..header.num_blocks {
        if fields.at == header.blocks.len() {
            break;
        }
        offsets.push((fields.at, blocks.len()));
        append_block(&mut fields, &mut blocks)?;
    }
    blocks.extend(&header.blocks[fields.at..]);

    let length = i32::try_from(blocks.len()).map_err(|_| invalid("a container of 2 GiB"))?;
    let mut container = Vec::with_capacity(blocks.len() + bytes.len() - header.blocks.len());
    container.extend(length.to_le_bytes());
    container.extend(header.numbers_before_counter);
    push_ltf8(&mut container, header.record_counter);
    container.extend(header.numbers_after_counter);
    push_itf8(&mut container, header.landmarks.len());
    for landmark in header.landmarks {
        let at = offsets.binary_search_by_key(&landmark, |(offset, _)| *offset);
        let at = at.map_err(|_| invalid("a slice does not begin with a block"))?;
        push_itf8(&mut container, offsets[at].1);
    }
    push_crc(&mut container, 0);
    container.extend(blocks);
    Ok(container)
}

/// Number of bytes by which the first block of a container of version 2.0 or 2.1 is longer than the container as its
/// header states. Some old files state a length that is too small for the container of the file's header. As in htslib,
/// the size of the block counts.
///
/// # Errors
/// The header of the container or of the block is not complete, or has an invalid size.
pub(super) fn num_bytes_beyond_length(container: &[u8]) -> io::Result<u64> {
    let blocks = ContainerHeader::read(container)?.blocks;
    let mut fields = Fields::new(blocks);
    let first_block = BlockHeader::read(&mut fields)?;
    Ok((fields.at as u64 + first_block.stored_bytes as u64).saturating_sub(blocks.len() as u64))
}

/// The header of a container of version 2.0 or 2.1, and the blocks that follow it.
struct ContainerHeader<'a> {
    /// The bytes of reference sequence, alignment start and span, and number of records.
    numbers_before_counter: &'a [u8],
    record_counter: u32,
    /// The bytes of the numbers of bases and of blocks.
    numbers_after_counter: &'a [u8],
    num_blocks: usize,
    /// Offsets in bytes at which the slices begin within the blocks of the container.
    landmarks: Vec<usize>,
    blocks: &'a [u8],
    is_end_of_file: bool,
}

impl<'a> ContainerHeader<'a> {
    fn read(bytes: &'a [u8]) -> io::Result<Self> {
        let mut fields = Fields::new(bytes);
        fields.take(LENGTH_BYTES)?;
        let (reference, start, _span, num_records) = (fields.itf8()?, fields.itf8()?, fields.itf8()?, fields.itf8()?);
        let numbers_before_counter = &bytes[LENGTH_BYTES..fields.at];
        let record_counter = fields.itf8()? as u32;
        let after_counter = fields.at;
        fields.skip_ltf8()?;
        let num_blocks = fields.size()?;
        let numbers_after_counter = &bytes[after_counter..fields.at];
        let landmarks = (0..fields.size()?).map(|_| fields.size()).collect::<io::Result<_>>()?;
        Ok(ContainerHeader {
            numbers_before_counter,
            record_counter,
            numbers_after_counter,
            num_blocks,
            landmarks,
            blocks: &bytes[fields.at..],
            is_end_of_file: reference == -1 && start == EOF_ALIGNMENT_START && num_records == 0,
        })
    }
}

/// Reads the next block of version 2.0 or 2.1, and appends it to `blocks` as one of version 3.0.
fn append_block(fields: &mut Fields<'_>, blocks: &mut Vec<u8>) -> io::Result<()> {
    let (start, new_start) = (fields.at, blocks.len());
    let block = Block::read(fields, CramVersion::V2_1)?;
    if block.header.content_type == SLICE_HEADER {
        if block.header.method != RAW {
            return Err(invalid("the header of a slice is compressed"));
        }
        let slice_header = slice_header_to_version_3(block.stored)?;
        blocks.extend([RAW, SLICE_HEADER]);
        push_itf8(blocks, block.header.content_id as u32 as usize);
        push_itf8(blocks, slice_header.len());
        push_itf8(blocks, slice_header.len());
        blocks.extend(slice_header);
    } else {
        blocks.extend(&fields.bytes[start..fields.at]);
    }
    push_crc(blocks, new_start);
    Ok(())
}

fn slice_header_to_version_3(header: &[u8]) -> io::Result<Vec<u8>> {
    let mut fields = Fields::new(header);
    // Reference sequence, alignment start and span, number of records.
    for _ in 0..4 {
        fields.itf8()?;
    }
    let mut translated = header[..fields.at].to_vec();
    push_ltf8(&mut translated, fields.itf8()? as u32);
    translated.extend(&header[fields.at..]);
    Ok(translated)
}

/// Appends a number as LTF8, which equals ITF8 for numbers below 2^28.
fn push_ltf8(bytes: &mut Vec<u8>, number: u32) {
    match number {
        0..0x1000_0000 => push_itf8(bytes, number as usize),
        _ => {
            bytes.push(0xf0);
            bytes.extend(number.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aligned::cram_container::{ContainerHeaders, read_container_bytes};

    /// A block of version 2.1, stored as it is.
    fn block(content_type: u8, data: &[u8]) -> Vec<u8> {
        [&[RAW, content_type, 0, data.len() as u8, data.len() as u8], data].concat()
    }

    /// A container of version 2.1 with the record counter `counter`, encoded as ITF8.
    fn container(counter: &[u8], landmarks: &[u8], blocks: &[u8]) -> Vec<u8> {
        let length = (blocks.len() as i32).to_le_bytes();
        let num_landmarks = landmarks.len() as u8;
        [&length, &[0, 1, 9, 3][..], counter, &[27, 3, num_landmarks], landmarks, blocks].concat()
    }

    /// The header of a slice of version 2.1 with 3 records and one block.
    fn slice_header(counter: &[u8]) -> Vec<u8> {
        [&[0, 1, 9, 3][..], counter, &[1, 1, 7, 0xff, 0xff, 0xff, 0xff, 0x0f], &[5; 16]].concat()
    }

    #[test]
    fn checksums_and_wide_counters_are_added() {
        // 2^28 as ITF8 and as LTF8.
        let (itf8, ltf8) = ([0xf1, 0, 0, 0, 0], [0xf0, 0x10, 0, 0, 0]);
        let compression_header = [1, 0, 1, 0, 1, 0];
        let blocks = [block(1, &compression_header), block(SLICE_HEADER, &slice_header(&itf8)), block(5, b"core")];
        let old = container(&itf8, &[blocks[0].len() as u8], &blocks.concat());
        let mut bytes = Vec::new();
        read_container_bytes(&mut &old[..], CramVersion::V2_1, &mut bytes).expect("a container");
        assert_eq!(bytes, old);

        let translated = container_to_version_3(&old).expect("a container");
        let mut expected = Vec::new();
        let new_blocks = [block(1, &compression_header), block(SLICE_HEADER, &slice_header(&ltf8)), block(5, b"core")];
        for block in new_blocks {
            let start = expected.len();
            expected.extend(block);
            push_crc(&mut expected, start);
        }
        let mut header = container(&ltf8, &[blocks[0].len() as u8 + 4], &[]);
        header[..4].copy_from_slice(&(expected.len() as i32).to_le_bytes());
        push_crc(&mut header, 0);
        assert_eq!(translated, [header, expected].concat());
        read_container_bytes(&mut &translated[..], CramVersion::V3, &mut bytes).expect("a container");
        assert_eq!(ContainerHeaders::from_container_bytes(&bytes, 1 << 20).expect("a slice").slices.len(), 1);
    }

    #[test]
    fn both_forms_of_the_end_are_translated() {
        for last_byte in [0x0f, 0xff] {
            let mut eof = vec![11, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, last_byte];
            eof.extend(CramVersion::V2_1.eof_marker().expect("a marker"));
            assert_eq!(eof.len(), 30);
            assert_eq!(container_to_version_3(&eof).expect("a container"), EOF_CONTAINER_3);
        }
    }

    #[test]
    fn padding_after_the_blocks_is_kept() {
        let padded = [block(0, b"header"), vec![0; 9]].concat();
        let mut container = container(&[0], &[], &padded);
        // One block instead of three.
        container[10] = 1;
        let translated = container_to_version_3(&container).expect("a container");
        assert!(translated.ends_with(&[0; 9]) && translated.len() == container.len() + 8);
    }

    #[test]
    fn blocks_may_be_longer_than_the_container() {
        let whole = container(&[0], &[], &block(0, b"header"));
        assert_eq!(num_bytes_beyond_length(&whole).expect("a block"), 0);
        assert_eq!(num_bytes_beyond_length(&whole[..whole.len() - 2]).expect("a block"), 2);
        assert!(num_bytes_beyond_length(&whole[..12]).is_err());
    }

    #[test]
    fn contradictions_are_errors() {
        let blocks = [block(1, &[1, 0, 1, 0, 1, 0]), block(SLICE_HEADER, &slice_header(&[0])), block(5, b"core")];
        let second = blocks[0].len() as u8;
        let whole = container(&[0], &[second], &blocks.concat());
        assert!(container_to_version_3(&whole).is_ok());
        let message = |bytes: &[u8]| container_to_version_3(bytes).expect_err("damaged").to_string();
        let shifted = container(&[0], &[second + 1], &blocks.concat());
        assert_eq!(message(&shifted), "a slice does not begin with a block");
        assert_eq!(message(&whole[..whole.len() - 1]), "a field or block is longer than its container");
        let mut compressed = blocks.clone();
        compressed[1][0] = 1;
        assert_eq!(message(&container(&[0], &[second], &compressed.concat())), "the header of a slice is compressed");
        for length in 0..whole.len() {
            // Whatever is missing, nothing panics.
            let _ = container_to_version_3(&whole[..length]);
        }
    }
}
