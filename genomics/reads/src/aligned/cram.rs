//! CRAM 3.0 and 3.1 (CRAM format specification): containers, each decoded by the thread that has it.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, PipeReader};
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use noodles_cram::io::reader::{Container, Reader};
use noodles_fasta::record::{Definition, Sequence};
use noodles_fasta::{self as fasta, Repository};
use noodles_sam::Header;
use noodles_sam::alignment::Record as _;
use noodles_sam::alignment::record::Cigar as _;
use noodles_sam::alignment::record::cigar::op::Kind;
use noodles_sam::alignment::record::data::field::{Tag, Value};
use noodles_sam::header::record::value::map::read_group::tag::SAMPLE;
use noodles_sam::header::record::value::map::reference_sequence::tag::MD5_CHECKSUM;

use crate::error::{Error, FileFault, RecordFault};
use crate::input_file::InputFile;
use crate::umi::UmiTag;
use genuma_work::ProgressCounters;

use super::cram_reference::CramReference;
use super::eof_marker::check_eof_marker;
use super::header::{AlignedHeader, HeaderSequence};
use super::record_buffer::{RecordBuffer, SamFields};
use crate::record_counts::RecordCounts;

/// First bytes of every CRAM file, by which the format is recognised.
pub(super) const MAGIC: &[u8] = b"CRAM";
/// The empty container at the end of a file (CRAM specification, section 9).
const EOF_CONTAINER: [u8; 38] = [
    0x0f, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 0xe0, 0x45, 0x4f, 0x46, 0, 0, 0, 0, 1, 0, 5, 0xbd, 0xd9, 0x4f, 0, 1,
    0, 6, 6, 1, 0, 1, 0, 1, 0, 0xee, 0x63, 1, 0x4b,
];
/// Maximum number of reference sequences to keep in memory if each container has one sequence.
const MAX_CACHED_SEQUENCES: usize = 3;
/// Bytes per read call.
const DISK_CHUNK_BYTES: usize = 256 << 10;

/// A CRAM file from which containers are read.
pub(super) struct CramFile<M> {
    path: PathBuf,
    reader: Reader<BufReader<InputFile<M>>>,
    context: Arc<DecodeContext>,
    records_read: u64,
}

/// Header and reference, which decoding of every container needs.
struct DecodeContext {
    header: Header,
    reference: Repository,
}

/// A container that still has to be decoded.
pub(super) struct EncodedContainer {
    context: Arc<DecodeContext>,
    container: Container,
    /// Number, in the file, of the first record of the container, counted from 1.
    first_record: u64,
}

/// Provides reference sequences to the decoder.
struct ReferenceAdapter {
    genome: CramReference,
    /// Lengths of the sequences in the header of the file.
    lengths: HashMap<Vec<u8>, usize>,
}

impl fasta::repository::Adapter for ReferenceAdapter {
    fn get(&mut self, name: &[u8]) -> Option<io::Result<fasta::Record>> {
        let length = self.lengths.get(name).copied().unwrap_or(0);
        let bases = self.genome.sequence(name, length);
        Some(bases.map(|bases| fasta::Record::new(Definition::new(name, None), Sequence::from(bases))))
    }
}

impl<M: Deref<Target = ProgressCounters>> CramFile<M> {
    /// Samples and reference sequences in the header.
    pub(super) fn header(&self) -> AlignedHeader {
        let groups = self.context.header.read_groups().values();
        let sequences = self.context.header.reference_sequences().iter().map(|(name, map)| HeaderSequence {
            name: name.to_string(),
            length: map.length().get() as u64,
            md5: map.other_fields().get(&MD5_CHECKSUM).map(ToString::to_string),
        });
        AlignedHeader {
            sample_names: groups.filter_map(|group| Some(group.other_fields().get(&SAMPLE)?.to_string())).collect(),
            sequences: sequences.collect(),
            is_decoded_by_reference: true,
        }
    }

    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// The file cannot be read, has an unsupported version or a damaged header, or has no end-of-file marker.
    pub(super) fn open(
        path: &Path,
        progress: M,
        genome: &CramReference,
        pipes: Option<&Arc<PipeReader>>,
    ) -> Result<Self, Error> {
        let unreadable = |source| Error::Read { path: path.into(), source };
        let mut disk = BufReader::with_capacity(DISK_CHUNK_BYTES, InputFile::open(path, None, progress, pipes)?);
        let head = disk.fill_buf().map_err(unreadable)?;
        if let &[b'C', b'R', b'A', b'M', major, minor, ..] = head
            && (major != 3 || minor > 1)
        {
            return Err(Error::in_file(path, FileFault::CramVersion { major, minor }));
        }
        check_eof_marker(path, &EOF_CONTAINER)?;
        let mut reader = Reader::new(disk);
        let header = reader.read_header().map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => Error::in_file(path, FileFault::Header("the file ends inside the header")),
            _ => Error::in_file(path, FileFault::Header("it violates the specification")),
        })?;
        let lengths = header.reference_sequences().iter();
        let lengths = lengths.map(|(name, map)| (name.to_vec(), map.length().get())).collect();
        let reference = Repository::new(ReferenceAdapter { genome: genome.clone(), lengths });
        Ok(CramFile {
            path: path.into(),
            reader,
            context: Arc::new(DecodeContext { header, reference }),
            records_read: 0,
        })
    }

    /// Moves the next container into `packed`; false if the file has no more containers.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, or has no end-of-file marker.
    pub(super) fn read_container(&mut self, packed: &mut Option<EncodedContainer>) -> Result<bool, Error> {
        let (shared, first) = (self.context.clone(), self.records_read + 1);
        let container = packed.take().map_or_else(Container::default, |packed| packed.container);
        let EncodedContainer { container, .. } =
            packed.insert(EncodedContainer { context: shared, container, first_record: first });
        let read = self.reader.read_container(container);
        let bytes = read.map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => Error::in_file(&self.path, FileFault::MissingEofMarker),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                let fault = RecordFault::CramCorrupt(e.to_string());
                Error::in_record(&self.path, self.records_read + 1, fault)
            }
            _ => Error::Read { path: self.path.clone(), source: e },
        })?;
        if bytes == 0 {
            // Read the rest of the input, so that all bytes are counted.
            let _ = io::copy(self.reader.get_mut(), &mut io::sink());
            return Ok(false);
        }
        self.records_read += container.header().record_count() as u64;
        Ok(true)
    }

    /// Bytes of the file that were read ahead and are not in a container yet.
    pub(super) fn read_ahead_bytes(&self) -> u64 {
        self.reader.get_ref().buffer().len() as u64
    }
}

impl EncodedContainer {
    /// Number of records of the file before the container.
    pub(super) fn records_before(&self) -> u64 {
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
        buffer.reset(self.records_before());
        let mut records = 0;
        decode_container(self, path, buffer.has_umi_lookup, |number, fields| {
            records += 1;
            buffer.push_read(number, fields, counts)
        })?;
        counts.records += records;
        Ok(())
    }
}

fn decode_container(
    EncodedContainer { context: shared, container, first_record: first }: &EncodedContainer,
    path: &Path,
    has_umi_lookup: bool,
    mut each: impl FnMut(u32, SamFields<'_>) -> Result<(), RecordFault>,
) -> Result<(), Error> {
    let first = *first;
    let to_error = |e: io::Error| decode_error(path, first, e);
    let compression = container.compression_header().map_err(to_error)?;
    let (mut number, mut seq, mut qual) = (0, Vec::new(), Vec::new());
    for slice in container.slices() {
        let slice = slice.map_err(to_error)?;
        // The decoder may panic on damaged or crafted data.
        let decoding = AssertUnwindSafe(|| -> Result<(), Error> {
            let (core, external) = slice.decode_blocks().map_err(to_error)?;
            let reference = shared.reference.clone();
            let records = slice.records(reference, &shared.header, &compression, &core, &external);
            for record in records.map_err(to_error)? {
                let flags = record.flags().map_err(to_error)?.bits();
                let cigar = record.cigar();
                let mut clipped = false;
                for operation in cigar.iter() {
                    clipped |= operation.map_err(to_error)?.kind() == Kind::HardClip;
                }
                seq.clear();
                qual.clear();
                seq.extend(record.sequence().iter().map(|base| base.to_ascii_uppercase()));
                for score in record.quality_scores().iter() {
                    qual.push(score.map_err(to_error)?);
                }
                let name = record.name().map_or(&b"*"[..], |name| name.as_ref());
                let tags = record.data();
                let value = |tag: Tag| match tags.get(&tag).filter(|_| has_umi_lookup).transpose() {
                    Ok(Some(Value::String(text))) => Ok(Some(text.to_vec())),
                    Ok(_) => Ok(None),
                    Err(error) => Err(to_error(error)),
                };
                let (rx, mi) = (value(Tag::UMI_SEQUENCE)?, value(Tag::UMI_ID)?);
                let umi = UmiTag::from_tag_values(rx.as_deref(), mi.as_deref());
                let fields = SamFields { flags, name, is_hard_clipped: clipped, seq: &seq, qual: &qual, umi };
                each(number, fields).map_err(|fault| Error::in_record(path, first + u64::from(number), fault))?;
                number += 1;
            }
            Ok(())
        });
        catch_unwind(decoding).unwrap_or_else(|_| {
            Err(Error::in_record(path, first + u64::from(number), RecordFault::RecordCorrupt("it cannot be decoded")))
        })?;
    }
    Ok(())
}

/// Converts an error of the decoder: damage of the container, or a wrong reference.
fn decode_error(path: &Path, first: u64, error: io::Error) -> Error {
    let message = error.to_string();
    if message.starts_with("reference sequence checksum mismatch") {
        return Error::in_file(path, FileFault::ReferenceDiffers { record: first });
    }
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
            Error::in_record(path, first, RecordFault::CramCorrupt(message))
        }
        _ => Error::from_io(path, error),
    }
}

impl DecodeContext {
    /// Removes reference sequences from memory if containers have one sequence each and too many are kept.
    fn limit_cached_sequences(&self, container: &Container) {
        if !container.header().reference_sequence_context().is_many() && self.reference.len() > MAX_CACHED_SEQUENCES {
            self.reference.clear();
        }
    }
}
