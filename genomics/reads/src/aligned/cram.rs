//! CRAM (CRAM format specifications 2.1 and 3). Each container is decoded by the thread that takes it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, PipeReader};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use md5::{Digest, Md5};
use noodles_cram::io::reader::{Container, Reader};
use noodles_fasta::record::{Definition, Sequence};
use noodles_fasta::{self as fasta, Repository};
use noodles_sam::alignment::Record as _;
use noodles_sam::alignment::record::Cigar as _;
use noodles_sam::alignment::record::cigar::op::Kind;
use noodles_sam::alignment::record::data::field::value::Array;
use noodles_sam::alignment::record::data::field::{Tag, Value};

use crate::error::{Error, FileFault, RecordFault};
use crate::input_file::RawInputFile;
use crate::pipe::is_regular_file;
use crate::tags::{CarriedTags, RecordStrandAndClipping};
use crate::umi::UmiOrMoleculeId;
use genuma_work::ProgressCounters;

use super::cram_2::container_to_version_3;
use super::cram_container::{
    ContainerHeaders, SliceHeader, add_missing_base_and_quality_series, ends_with_whole_container, read_container_bytes,
};
use super::cram_decoder_guard::{call_decoder, call_outside_decoder};
use super::cram_header::CramHeader;
use super::cram_reference::CramReference;
use super::cram_version::CramVersion;
use super::eof_marker::check_eof_marker_or_last_block;
use super::header::AlignedHeader;
use super::record_buffer::{RecordBuffer, SamFields, flag};
use super::reference_search_path::ReferenceSearchPath;
use crate::record_counts::RecordCounts;

/// Number of reference sequences in memory above which all are removed before the next container is decoded.
const MAX_CACHED_SEQUENCES: usize = 3;
/// Number of N that follow each reference sequence, for reads that extend beyond its end. Chosen: more than a short
/// read with its deletions has.
const BASES_BEYOND_END: usize = 1 << 16;
/// Quality (Phred) of a base without a stored quality if other bases of its read have one; the value of htslib.
const DEFAULT_QUALITY: u8 = 30;
/// Number of bytes per read call.
const DISK_CHUNK_BYTES: usize = 256 << 10;

/// A CRAM file from which containers are read.
pub(super) struct CramFileReader<M> {
    path: PathBuf,
    input: BufReader<RawInputFile<M>>,
    version: CramVersion,
    context: Arc<DecodeContext>,
    records_read: u64,
    /// Bytes of the container that was read last.
    container_bytes: Vec<u8>,
    /// Whether the file must end with the marker: it is a pipe, or was found to have the marker.
    ends_with_marker: bool,
    /// Whether the file was found to have the marker, which a pipe can only show at its end.
    has_eof_marker: bool,
}

/// Header of the file and reference, which are needed to decode its containers.
struct DecodeContext {
    header: Arc<CramHeader>,
    reference: Repository,
    /// Replaces the reference where records store all their bases, because the decoder requires a reference even then.
    blank_reference: Repository,
    genome: CramReference,
    /// Maximum size in bytes of the decompressed data of a slice.
    max_slice_bytes: u64,
}

/// A container that still has to be decoded.
pub(super) struct EncodedContainer {
    context: Arc<DecodeContext>,
    container: Container,
    layout: ContainerHeaders,
    /// Number, in the file, of the first record of the container, counted from 1.
    first_record: u64,
}

/// Provides reference sequences to the decoder: from the FASTA file or, if there is none, by MD5 sum from the folders
/// of `REF_CACHE` and `REF_PATH`.
struct ReferenceAdapter {
    genome: CramReference,
    cache: ReferenceSearchPath,
    header: Arc<CramHeader>,
}

impl fasta::repository::Adapter for ReferenceAdapter {
    fn get(&mut self, name: &[u8]) -> Option<io::Result<fasta::Record>> {
        let sequence = self.header.find_sequence(name)?;
        let length = sequence.length as usize;
        let bases = match &sequence.md5 {
            Some(md5) if self.genome.path().is_none() && !self.cache.has_no_path_templates() => {
                self.cache.read_sequence_by_md5(name, md5, length)
            }
            _ => self.genome.read_sequence(name, length),
        };
        Some(bases.map(|mut bases| {
            bases.resize(bases.len() + BASES_BEYOND_END, b'N');
            fasta::Record::new(Definition::new(name, None), Sequence::from(bases))
        }))
    }
}

/// Provides sequences of the right lengths that consist of zero bytes. Their memory is never touched.
struct BlankAdapter {
    header: Arc<CramHeader>,
}

impl fasta::repository::Adapter for BlankAdapter {
    fn get(&mut self, name: &[u8]) -> Option<io::Result<fasta::Record>> {
        let blank = vec![0; self.header.find_sequence(name)?.length as usize + BASES_BEYOND_END];
        Some(Ok(fasta::Record::new(Definition::new(name, None), Sequence::from(blank))))
    }
}

impl<M: Deref<Target = ProgressCounters>> CramFileReader<M> {
    /// Samples, platforms and reference sequences in the header.
    pub(super) fn header(&self) -> AlignedHeader {
        self.context.header.aligned.clone()
    }

    /// Opens a file and reads its header. `max_slice_bytes` is the maximum size in bytes of the decompressed data of a
    /// slice.
    ///
    /// # Errors
    /// The file cannot be read, has an unsupported version or a damaged header, or has no end-of-file marker.
    pub(super) fn open(
        path: &Path,
        progress: M,
        genome: &CramReference,
        max_slice_bytes: u64,
        pipes: Option<&Arc<PipeReader>>,
    ) -> Result<Self, Error> {
        let unreadable = |source| Error::Read { path: path.into(), source };
        let input = RawInputFile::open(path, None, progress, pipes)?;
        let mut input = BufReader::with_capacity(DISK_CHUNK_BYTES, input);
        let version = CramVersion::read(path, &mut input)?;
        let ends_with_marker = match version.eof_marker() {
            Some(marker) => {
                check_eof_marker_or_last_block(path, marker, |file| ends_with_whole_container(&file, version))?
            }
            None => false,
        };
        let header = Arc::new(CramHeader::read(path, &mut input, version)?);
        let cache = ReferenceSearchPath::from_environment();
        let reference = ReferenceAdapter { genome: genome.clone(), cache, header: header.clone() };
        let blank_reference = BlankAdapter { header: header.clone() };
        Ok(CramFileReader {
            path: path.into(),
            input,
            version,
            context: Arc::new(DecodeContext {
                header,
                reference: Repository::new(reference),
                blank_reference: Repository::new(blank_reference),
                genome: genome.clone(),
                max_slice_bytes,
            }),
            records_read: 0,
            container_bytes: Vec::new(),
            ends_with_marker,
            has_eof_marker: ends_with_marker && is_regular_file(path).map_err(unreadable)?,
        })
    }

    /// Moves the next container into `packed`; false if the file has no more containers.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, or has no end-of-file marker.
    pub(super) fn read_container(&mut self, packed: &mut Option<EncodedContainer>) -> Result<bool, Error> {
        let (shared, first) = (self.context.clone(), self.records_read + 1);
        if !self.ends_with_marker {
            let rest = self.input.fill_buf();
            if rest.map_err(|source| Error::Read { path: self.path.clone(), source })?.is_empty() {
                *packed = None;
                return Ok(false);
            }
        }
        let container = packed.take().map_or_else(Container::default, |packed| packed.container);
        let EncodedContainer { container, layout, .. } = packed.insert(EncodedContainer {
            context: shared,
            container,
            layout: ContainerHeaders::default(),
            first_record: first,
        });
        let (bytes, max_slice_bytes) = (&mut self.container_bytes, self.context.max_slice_bytes);
        let has_eof_marker = self.has_eof_marker;
        let read = read_container_bytes(&mut self.input, self.version, bytes).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof if has_eof_marker => unfinished_container_error(bytes),
            _ => e,
        });
        let read = read.and_then(|()| {
            if !self.version.is_version_3() {
                *bytes = container_to_version_3(bytes)?;
            }
            *layout = ContainerHeaders::from_container_bytes(bytes, max_slice_bytes)?;
            if let Some(completed) = add_missing_base_and_quality_series(bytes)? {
                *bytes = completed;
            }
            let decoded = call_decoder(|| Reader::new(&bytes[..]).read_container(container));
            decoded.unwrap_or_else(|| Err(io::ErrorKind::InvalidData.into()))
        });
        let bytes = read.map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => Error::error_in_file(&self.path, FileFault::MissingEofMarker),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                let fault = RecordFault::CramCorrupt(e.to_string());
                Error::error_in_record(&self.path, self.records_read + 1, fault)
            }
            _ => Error::from_reader_io_error(&self.path, e),
        })?;
        if bytes == 0 {
            // Read the rest of the input, so that all bytes are counted.
            let rest = io::copy(&mut self.input, &mut io::sink());
            rest.map_err(|source| Error::Read { path: self.path.clone(), source })?;
            return Ok(false);
        }
        self.records_read += container.header().record_count() as u64;
        Ok(true)
    }

    /// Number of bytes of the file that were read ahead and are not in a container yet.
    pub(super) fn num_bytes_read_ahead(&self) -> u64 {
        self.input.buffer().len() as u64
    }
}

/// The error for a container that does not end before the end-of-file container. `bytes` are those that the file has.
fn unfinished_container_error(bytes: &[u8]) -> io::Error {
    let message = match bytes.first_chunk() {
        Some(length) => {
            format!("a container of {} bytes goes beyond the end of the file", i32::from_le_bytes(*length))
        }
        None => "the end-of-file container is inside another container".to_owned(),
    };
    io::Error::new(io::ErrorKind::InvalidData, message)
}

impl EncodedContainer {
    /// Number of records of the file before the container.
    pub(super) fn num_records_before(&self) -> u64 {
        self.first_record - 1
    }

    /// Decodes the reads of the container into `buffer`, and adds the records of the container to the record counts.
    ///
    /// # Errors
    /// The container is damaged; the reference is missing or is not that of the file.
    pub(super) fn decode_reads(
        &self,
        path: &Path,
        buffer: &mut RecordBuffer,
        counts: &mut RecordCounts,
    ) -> Result<(), Error> {
        self.context.limit_cached_sequences(&self.container);
        buffer.reset(self.num_records_before());
        let mut records = 0;
        let (uses_umi_tags, carried_tags) = (buffer.uses_umi_tags, buffer.carried_tags.clone());
        decode_container(self, path, uses_umi_tags, carried_tags.as_deref(), |number, fields| {
            records += 1;
            buffer.push_read(number, fields, counts)
        })?;
        counts.records += records;
        Ok(())
    }
}

fn decode_container(
    encoded: &EncodedContainer,
    path: &Path,
    uses_umi_tags: bool,
    carried_tags: Option<&CarriedTags>,
    mut each: impl FnMut(u32, SamFields<'_>) -> Result<(), RecordFault>,
) -> Result<(), Error> {
    let EncodedContainer { context: shared, container, layout, first_record: first } = encoded;
    let first = *first;
    let to_error = |e: io::Error| decode_error(path, first, e);
    let fault_in_record = |number: u32, fault| Error::error_in_record(path, first + u64::from(number), fault);
    let mut number = 0;
    let decoded = call_decoder(|| -> Result<(), Error> {
        let compression = container.compression_header().map_err(to_error)?;
        let [mut seq, mut qual, mut all_tags, mut carried_bytes] = <[Vec<u8>; 4]>::default();
        for (slice, layout_of_slice) in container.slices().zip(&layout.slices) {
            let slice = slice.map_err(to_error)?;
            let (core, mut external) = slice.decode_blocks().map_err(to_error)?;
            prepare_embedded_reference(layout_of_slice, &mut external)
                .map_err(|()| Error::error_in_file(path, FileFault::EmbeddedReferenceDiffers { record: first }))?;
            layout.add_empty_blocks_of_missing_series(&mut external);
            let stored = layout.which_records_have_qualities(layout_of_slice, &external).map_err(to_error)?;
            let are_all_stored = stored.as_ref().is_none_or(|stored| !stored.contains(&false));
            let is_shifted = !are_all_stored && layout.increment_qualities(&mut external);
            let reference = if layout.requires_reference { &shared.reference } else { &shared.blank_reference };
            let reference = reference.clone();
            let records = slice.records(reference, &shared.header.decoder, &compression, &core, &external);
            let records = records.map_err(to_error)?;
            if layout.requires_reference && layout_of_slice.reference_md5.is_none() {
                shared.check_reference_md5(&records).map_err(to_error)?;
            }
            let mut slice_bytes = 0;
            for (in_slice, record) in records.iter().enumerate() {
                slice_bytes += 2 * record.sequence().len() as u64;
                shared.check_slice_bytes(slice_bytes).map_err(to_error)?;
                let flags = record.flags().map_err(to_error)?.bits();
                let cigar = record.cigar();
                let mut clipped = false;
                for operation in cigar.iter() {
                    clipped |= operation.map_err(to_error)?.kind() == Kind::HardClip;
                }
                seq.clear();
                seq.extend(record.sequence().iter().map(|base| base.to_ascii_uppercase()));
                let is_stored = stored.as_ref().and_then(|stored| stored.get(in_slice).copied()).unwrap_or(true);
                collect_qualities(record, seq.len(), &mut qual).map_err(to_error)?;
                restore_qualities(&mut qual, is_stored, is_shifted);
                let name = record.name().map_or(&b"*"[..], |name| name.as_ref());
                let tags = record.data();
                let value = |tag: Tag| match tags.get(&tag).filter(|_| uses_umi_tags).transpose() {
                    Ok(Some(Value::String(text))) => Ok(Some(text.to_vec())),
                    Ok(_) => Ok(None),
                    Err(error) => Err(to_error(error)),
                };
                let (rx, mi) = (value(Tag::UMI_SEQUENCE)?, value(Tag::UMI_ID)?);
                let umi = UmiOrMoleculeId::choose_from_rx_and_mi(rx.as_deref(), mi.as_deref());
                if let Some(carried) = carried_tags {
                    all_tags.clear();
                    tags.iter().try_for_each(|tag| encode_tag(tag?, &mut all_tags)).map_err(to_error)?;
                    carried.check_tags_of_record(&all_tags).map_err(|fault| fault_in_record(number, fault))?;
                    carried_bytes.clear();
                    let strand =
                        RecordStrandAndClipping { is_reverse: flags & flag::REVERSE != 0, is_hard_clipped: clipped };
                    carried.append_tags_as_sequenced(&all_tags, strand, &mut carried_bytes);
                }
                let (seq, qual, tags) = (&seq[..], &qual[..], &carried_bytes[..]);
                let fields = SamFields { flags, name, is_hard_clipped: clipped, seq, qual, umi, tags };
                call_outside_decoder(|| each(number, fields)).map_err(|fault| fault_in_record(number, fault))?;
                number += 1;
            }
        }
        Ok(())
    });
    decoded.unwrap_or_else(|| Err(fault_in_record(number, RecordFault::CramUndecodable)))
}

/// Appends a tag encoded as in BAM.
///
/// # Errors
/// A value cannot be decoded, or a text has a zero byte, which would end it in BAM.
fn encode_tag((tag, value): (Tag, Value<'_>), out: &mut Vec<u8>) -> io::Result<()> {
    if let Value::String(text) | Value::Hex(text) = value
        && text.contains(&0)
    {
        let message = format!("the text of tag {} has a zero byte", tag.as_ref().escape_ascii());
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    out.extend_from_slice(tag.as_ref());
    let mut put = |kind: u8, value: &[u8]| {
        out.push(kind);
        out.extend_from_slice(value);
    };
    match value {
        Value::Character(letter) => put(b'A', &[letter]),
        Value::Int8(number) => put(b'c', &number.to_le_bytes()),
        Value::UInt8(number) => put(b'C', &number.to_le_bytes()),
        Value::Int16(number) => put(b's', &number.to_le_bytes()),
        Value::UInt16(number) => put(b'S', &number.to_le_bytes()),
        Value::Int32(number) => put(b'i', &number.to_le_bytes()),
        Value::UInt32(number) => put(b'I', &number.to_le_bytes()),
        Value::Float(number) => put(b'f', &number.to_le_bytes()),
        Value::String(text) => put(b'Z', &[text, &b"\0"[..]].concat()),
        Value::Hex(text) => put(b'H', &[text, &b"\0"[..]].concat()),
        Value::Array(array) => match array {
            Array::Int8(numbers) => encode_array(b'c', numbers.iter(), |number| number.to_le_bytes(), out)?,
            Array::UInt8(numbers) => encode_array(b'C', numbers.iter(), |number| number.to_le_bytes(), out)?,
            Array::Int16(numbers) => encode_array(b's', numbers.iter(), |number| number.to_le_bytes(), out)?,
            Array::UInt16(numbers) => encode_array(b'S', numbers.iter(), |number| number.to_le_bytes(), out)?,
            Array::Int32(numbers) => encode_array(b'i', numbers.iter(), |number| number.to_le_bytes(), out)?,
            Array::UInt32(numbers) => encode_array(b'I', numbers.iter(), |number| number.to_le_bytes(), out)?,
            Array::Float(numbers) => encode_array(b'f', numbers.iter(), |number| number.to_le_bytes(), out)?,
        },
    }
    Ok(())
}

/// Appends the type and value of an array tag with elements of the type `kind`, encoded as in BAM.
fn encode_array<T, const N: usize>(
    kind: u8,
    numbers: impl Iterator<Item = io::Result<T>>,
    to_bytes: impl Fn(T) -> [u8; N],
    out: &mut Vec<u8>,
) -> io::Result<()> {
    out.extend_from_slice(&[b'B', kind, 0, 0, 0, 0]);
    let start = out.len();
    for number in numbers {
        out.extend_from_slice(&to_bytes(number?));
    }
    let count = ((out.len() - start) / N) as u32;
    out[start - 4..start].copy_from_slice(&count.to_le_bytes());
    Ok(())
}

/// Replaces `qual` by the qualities of a record with `bases` bases, as the decoder returns them.
fn collect_qualities(record: &noodles_cram::Record<'_>, bases: usize, qual: &mut Vec<u8>) -> io::Result<()> {
    qual.clear();
    if bases > 0 {
        for score in record.quality_scores().iter() {
            qual.push(score?);
        }
    }
    Ok(())
}

/// Restores the qualities of a record. `is_shifted`: whether 1 was added to each quality that the file stores. The
/// decoder returns 0 for each quality that is missing, because the record does not store all its qualities (`is_stored`
/// is false). As in htslib, `qual` is then empty if all are missing; otherwise the missing ones become
/// [`DEFAULT_QUALITY`]. Without the shift, a stored 0 counts as missing.
fn restore_qualities(qual: &mut Vec<u8>, is_stored: bool, is_shifted: bool) {
    if !is_stored && qual.iter().all(|score| *score == 0) {
        return qual.clear();
    }
    for score in qual {
        *score = match *score {
            0 if !is_stored => DEFAULT_QUALITY,
            score if is_shifted => score.wrapping_sub(1),
            score => score,
        };
    }
}

/// Checks the MD5 sum of a reference that is embedded in a slice, and appends N for reads that extend beyond its end.
fn prepare_embedded_reference(slice: &SliceHeader, blocks: &mut [(i32, Cow<'_, [u8]>)]) -> Result<(), ()> {
    let Some(id) = slice.embedded_reference else { return Ok(()) };
    let Some((_, bases)) = blocks.iter_mut().find(|(content_id, _)| *content_id == id) else { return Err(()) };
    if let Some(expected) = slice.reference_md5
        && Md5::digest(bases.to_ascii_uppercase())[..] != expected
    {
        return Err(());
    }
    let bases = bases.to_mut();
    bases.resize(bases.len() + BASES_BEYOND_END, b'N');
    Ok(())
}

/// Converts an error of the decoder to an error of a damaged container or of a wrong reference. `first` is the number
/// of the first record of the container.
fn decode_error(path: &Path, first: u64, error: io::Error) -> Error {
    let message = error.to_string();
    if message.starts_with("reference sequence checksum mismatch") {
        return Error::error_in_file(path, FileFault::ReferenceDiffers { record: first });
    }
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
            Error::error_in_record(path, first, RecordFault::CramCorrupt(message))
        }
        _ => Error::from_reader_io_error(path, error),
    }
}

impl DecodeContext {
    /// Checks the size of the decoded bases and qualities of a slice, so far.
    fn check_slice_bytes(&self, slice_bytes: u64) -> io::Result<()> {
        let max_bytes = self.max_slice_bytes;
        match slice_bytes > max_bytes {
            true => Err(io::Error::other(FileFault::SliceTooLarge { slice_bytes, max_bytes })),
            false => Ok(()),
        }
    }

    /// Compares the MD5 sums of the reference sequences of mapped records with those of the header (`@SQ M5`). Called
    /// for slices with records of several sequences, which store no MD5 sum.
    ///
    /// # Errors
    /// A sum differs, or the header has none although the reference is a file.
    fn check_reference_md5(&self, records: &[noodles_cram::Record<'_>]) -> io::Result<()> {
        let mapped = records.iter().filter(|record| record.flags().is_ok_and(|flags| !flags.is_unmapped()));
        let ids = mapped.filter_map(|record| record.reference_sequence_id(&self.header.decoder)?.ok());
        for id in ids.collect::<BTreeSet<_>>() {
            let Some(sequence) = self.header.aligned.sequences.get(id) else { continue };
            let name = &sequence.name;
            match (&sequence.md5, self.genome.path()) {
                (Some(expected), _) => {
                    self.genome.check_sequence_md5(name.as_bytes(), sequence.length as usize, expected)?
                }
                (None, Some(_)) => return Err(io::Error::other(FileFault::ReferenceMd5Missing(name.clone()))),
                (None, None) => {}
            }
        }
        Ok(())
    }

    /// Removes the reference sequences from memory if there are more than [`MAX_CACHED_SEQUENCES`], unless the
    /// container has records of several sequences.
    fn limit_cached_sequences(&self, container: &Container) {
        for reference in [&self.reference, &self.blank_reference] {
            if !container.header().reference_sequence_context().is_many() && reference.len() > MAX_CACHED_SEQUENCES {
                reference.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_missing_qualities_are_replaced() {
        let restore = |qual: &[u8], is_stored, is_shifted| {
            let mut qual = qual.to_vec();
            restore_qualities(&mut qual, is_stored, is_shifted);
            qual
        };
        // Shifted: 0 is missing, 1 is a stored 0.
        assert_eq!(restore(&[0, 1, 41, 0], false, true), [30, 0, 40, 30]);
        assert_eq!(restore(&[1, 1], false, true), [0, 0]);
        assert_eq!(restore(&[0, 0], false, true), []);
        assert_eq!(restore(&[1, 41, 0], true, true), [0, 40, 255]);
        assert_eq!(restore(&[0, 41], false, false), [30, 41]);
        assert_eq!(restore(&[0, 0], false, false), []);
        assert_eq!(restore(&[0, 41], true, false), [0, 41]);
    }

    #[test]
    fn texts_with_a_zero_byte_are_refused() {
        let encode = |value: Value<'_>| {
            let mut out = Vec::new();
            encode_tag((Tag::from(*b"CO"), value), &mut out).map(|()| out)
        };
        assert_eq!(encode(Value::String("ab".into())).unwrap(), b"COZab\0");
        assert_eq!(encode(Value::Hex("1F".into())).unwrap(), b"COH1F\0");
        for text in ["a\0b", "\0", "ab\0"] {
            for value in [Value::String(text.into()), Value::Hex(text.into())] {
                assert_eq!(encode(value).unwrap_err().to_string(), "the text of tag CO has a zero byte");
            }
        }
    }
}
