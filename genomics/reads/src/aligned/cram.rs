//! CRAM 3.0 and 3.1 (CRAM format specification): containers, each decoded by the thread that has it.

use std::collections::{BTreeSet, HashMap};
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
use noodles_sam::header::record::value::map::read_group::tag::SAMPLE;

use crate::error::{Error, FileFault, RecordFault};
use crate::source::Source;
use genuma_work::Meter;

use super::end::check_end;
use super::genome::Genome;
use super::piece::{Fields, Piece};
use super::tally::Tally;

/// What a CRAM file begins with.
pub(super) const MAGIC: &[u8] = b"CRAM";
/// The container of nothing that ends a file (section 9).
const END: [u8; 38] = [
    0x0f, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 0xe0, 0x45, 0x4f, 0x46, 0, 0, 0, 0, 1, 0, 5, 0xbd, 0xd9,
    0x4f, 0, 1, 0, 6, 6, 1, 0, 1, 0, 1, 0, 0xee, 0x63, 1, 0x4b,
];
/// Sequences of the reference that are held at once where containers are of one each: those that workers have in hand.
const HELD: usize = 3;
/// Bytes read from the disk at once.
const DISK_CHUNK: usize = 256 << 10;

/// A file being cut into pieces, of a container each.
pub(super) struct Cram<M> {
    path: PathBuf,
    reader: Reader<BufReader<Source<M>>>,
    shared: Arc<Shared>,
    records: u64,
}

/// What all containers are decoded with.
struct Shared {
    header: Header,
    reference: Repository,
}

/// A container that is to be decoded.
pub(super) struct Packed {
    shared: Arc<Shared>,
    container: Container,
    /// The number in the file, from 1, of its first record.
    first: u64,
}

/// Sequences for the decoder.
struct Wanted {
    genome: Genome,
    /// Those of the file's header, with their lengths.
    lengths: HashMap<Vec<u8>, usize>,
}

impl fasta::repository::Adapter for Wanted {
    fn get(&mut self, name: &[u8]) -> Option<io::Result<fasta::Record>> {
        let length = self.lengths.get(name).copied().unwrap_or(0);
        let bases = self.genome.sequence(name, length);
        Some(bases.map(|bases| fasta::Record::new(Definition::new(name, None), Sequence::from(bases))))
    }
}

impl<M: Deref<Target = Meter>> Cram<M> {
    /// Samples that the header's read groups are of (`@RG`, `SM`).
    pub(super) fn samples(&self) -> BTreeSet<String> {
        let groups = self.shared.header.read_groups().values();
        groups.filter_map(|group| Some(group.other_fields().get(&SAMPLE)?.to_string())).collect()
    }

    /// Opens a file, at its first container.
    ///
    /// # Errors
    /// It cannot be read, is of another version, or its header is damaged.
    pub(super) fn open(
        path: &Path,
        meter: M,
        genome: &Genome,
        pipes: Option<&Arc<PipeReader>>,
    ) -> Result<Self, Error> {
        let unreadable = |source| Error::Read { path: path.into(), source };
        let mut disk = BufReader::with_capacity(DISK_CHUNK, Source::open(path, None, meter, pipes)?);
        let head = disk.fill_buf().map_err(unreadable)?;
        if let &[b'C', b'R', b'A', b'M', major, minor, ..] = head
            && (major != 3 || minor > 1)
        {
            return Err(Error::file(path, FileFault::CramVersion { major, minor }));
        }
        check_end(path, &END)?;
        let mut reader = Reader::new(disk);
        let header = reader.read_header().map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => {
                Error::file(path, FileFault::Header("the file ends in the middle of it"))
            }
            _ => Error::file(path, FileFault::Header("it is not what the specification says")),
        })?;
        let lengths = header.reference_sequences().iter();
        let lengths = lengths.map(|(name, map)| (name.to_vec(), map.length().get())).collect();
        let reference = Repository::new(Wanted { genome: genome.clone(), lengths });
        Ok(Cram { path: path.into(), reader, shared: Arc::new(Shared { header, reference }), records: 0 })
    }

    /// Moves the next container into `packed`; false when there is none left.
    ///
    /// # Errors
    /// The file cannot be read on, is damaged, or has no end.
    pub(super) fn cut(&mut self, packed: &mut Option<Packed>) -> Result<bool, Error> {
        let (shared, first) = (self.shared.clone(), self.records + 1);
        let container = packed.take().map_or_else(Container::default, |packed| packed.container);
        let Packed { container, .. } = packed.insert(Packed { shared, container, first });
        let read = self.reader.read_container(container);
        let bytes = read.map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => Error::file(&self.path, FileFault::NoEnd),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                let fault = RecordFault::Corrupt(e.to_string());
                Error::record(&self.path, self.records + 1, fault)
            }
            _ => Error::Read { path: self.path.clone(), source: e },
        })?;
        if bytes == 0 {
            // What follows the end is no part of it, but was read.
            let _ = io::copy(self.reader.get_mut(), &mut io::sink());
            return Ok(false);
        }
        self.records += container.header().record_count() as u64;
        Ok(true)
    }

    /// Bytes of the file that were read and are not in pieces yet.
    pub(super) fn ahead(&self) -> u64 {
        self.reader.get_ref().buffer().len() as u64
    }
}

impl Packed {
    /// Records of the file before it.
    pub(super) fn before(&self) -> u64 {
        self.first - 1
    }

    /// Finds the reads among its records, and counts these.
    ///
    /// # Errors
    /// It is damaged; the reference is missing, or not that of the file.
    pub(super) fn find(&self, path: &Path, piece: &mut Piece, tally: &mut Tally) -> Result<(), Error> {
        self.shared.keep_few(&self.container);
        piece.start(self.before());
        let mut records = 0;
        decode(self, path, |number, fields| {
            records += 1;
            piece.put(number, fields, tally)
        })?;
        tally.records += records;
        Ok(())
    }
}

fn decode(
    Packed { shared, container, first }: &Packed,
    path: &Path,
    mut each: impl FnMut(u32, Fields<'_>) -> Result<(), RecordFault>,
) -> Result<(), Error> {
    let first = *first;
    let told = |e: io::Error| wrong(path, first, e);
    let compression = container.compression_header().map_err(told)?;
    let (mut number, mut seq, mut qual) = (0, Vec::new(), Vec::new());
    for slice in container.slices() {
        let slice = slice.map_err(told)?;
        // The decoder takes for granted what a damaged or made-up file need not have.
        let decoding = AssertUnwindSafe(|| -> Result<(), Error> {
            let (core, external) = slice.decode_blocks().map_err(told)?;
            let reference = shared.reference.clone();
            let records = slice.records(reference, &shared.header, &compression, &core, &external);
            for record in records.map_err(told)? {
                let flags = record.flags().map_err(told)?.bits();
                let cigar = record.cigar();
                let mut clipped = false;
                for operation in cigar.iter() {
                    clipped |= operation.map_err(told)?.kind() == Kind::HardClip;
                }
                seq.clear();
                qual.clear();
                seq.extend(record.sequence().iter().map(|base| base.to_ascii_uppercase()));
                for score in record.quality_scores().iter() {
                    qual.push(score.map_err(told)?);
                }
                let name = record.name().map_or(&b"*"[..], |name| name.as_ref());
                let fields = Fields { flags, name, clipped, seq: &seq, qual: &qual };
                each(number, fields)
                    .map_err(|fault| Error::record(path, first + u64::from(number), fault))?;
                number += 1;
            }
            Ok(())
        });
        catch_unwind(decoding).unwrap_or_else(|_| {
            Err(Error::record(path, first + u64::from(number), RecordFault::Damaged("it cannot be decoded")))
        })?;
    }
    Ok(())
}

/// What is wrong with a container, or with the reference.
fn wrong(path: &Path, first: u64, error: io::Error) -> Error {
    let said = error.to_string();
    if said.starts_with("reference sequence checksum mismatch") {
        return Error::file(path, FileFault::ReferenceDiffers { record: first });
    }
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
            Error::record(path, first, RecordFault::Corrupt(said))
        }
        _ => Error::reading(path, error),
    }
}

impl Shared {
    /// Sees that not all sequences are held where they come one after the other.
    fn keep_few(&self, container: &Container) {
        if !container.header().reference_sequence_context().is_many() && self.reference.len() > HELD {
            self.reference.clear();
        }
    }
}
