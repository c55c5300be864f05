//! The engine `strobealign`.
//!
//! Records are those of strobealign's command line with its defaults and the options of [`Options`], with bases
//! restricted to the 16 letters of BAM. Its output does not depend on the number of threads, because it maps chunks
//! of reads and restarts its random numbers and its insert size estimate with each chunk. A chunk is a block of this
//! engine, so that the records are the same here. The chunk boundaries do matter, because the insert size is learnt
//! from the first 400 unique pairs of a chunk.
//!
//! The index depends on the read length, in steps: `PREFIX.r150.sti` is for reads of about 150 bp. It contains only
//! seeds; the sequences are read from the reference. Memory: about 10 bytes per base in total. Loading fills the
//! arrays on the calling thread with memory of Rust's allocator; the crate does not expose where they are.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use fastrand::Rng;
use genuma_reads::{ReadBatch, ReadRef};
use genuma_work::publish::{FileSet, PartialFile};
use strobealign::aligner::{Aligner, Scores};
use strobealign::chain::get_sorted_chains;
use strobealign::chainer::{Chainer, ChainingParameters, MAXIMUM_QUERY_LENGTH};
use strobealign::index::{StrobemerIndex, read_index};
use strobealign::indexer::make_index;
use strobealign::insertsize::InsertSizeDistribution;
use strobealign::io::fasta::read_fasta;
use strobealign::io::record::SequenceRecord;
use strobealign::io::sam::{READ2, SamRecord};
use strobealign::io::xopen::xopen;
use strobealign::modes::align::{MappingParameters, SamOutput, align_paired_end_read, align_single_end_read};
use strobealign::refseq::{ContigPosition, RefSequence};
use strobealign::seeding::SeedingParameters;

use super::seal::{self, Checksum, IndexSeal};
use super::{BlockLimit, BlockRule, Engine, Error, IndexArray, Program, ReadLayout};
use crate::sam::{self, Contigs, FixedFields, NO_POSITION, RecordBuilder};

/// Name and version; the version is that in `Cargo.toml`, because the library does not report its own.
const PROGRAM: Program = Program { name: "strobealign", version: "0.19.1" };
/// Number of bases in a chunk of strobealign's command line (`--chunk-size`); a chunk ends when it has more.
const BLOCK_BASES: u64 = 1_000_000;
/// Share of the seeds that are skipped as too frequent (`-f`): the default of strobealign's command line.
const FREQUENT_SEED_SHARE: f64 = 0.0002;
/// Bandwidth of the alignment (`--bw`): the default of strobealign's command line.
const BANDWIDTH: usize = 1024;
/// File format version of the index (`STI_FILE_FORMAT_VERSION` of strobealign).
const STI_FORMAT_VERSION: u32 = 7;
/// Number of reads from which [`mean_read_length`] computes the read length.
pub(crate) const READ_LENGTH_SAMPLE_READS: usize = 500;

/// Options of strobealign's command line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options {
    /// Read group IDs of the lanes (`--rg-id`); a lane without ID gets no `RG` tag.
    pub read_groups: Vec<String>,
    /// Maximum number of secondary records of a read (`-N`).
    pub max_secondary: u32,
    /// Append the comments of the reads, which must be SAM tags, to the records (`-C`).
    pub copy_comments: bool,
}

/// The engine `strobealign` with its index in memory.
pub struct Strobealign {
    reference: RefSequence,
    index: StrobemerIndex,
    chainer: Chainer,
    mapping: MappingParameters,
    output: SamOutput,
    contigs: Contigs,
    options: Options,
}

/// Aligner and text buffer of a worker.
pub struct WorkerState {
    aligner: Aligner,
    text: String,
}

/// Mean length (bp) of the first [`READ_LENGTH_SAMPLE_READS`] reads of the first file, as strobealign's command line
/// computes it.
pub fn mean_read_length(lengths: impl Iterator<Item = usize>) -> usize {
    let (reads, bases) = lengths.take(READ_LENGTH_SAMPLE_READS).fold((0usize, 0usize), |(n, sum), l| (n + 1, sum + l));
    bases.checked_div(reads).unwrap_or(0)
}

/// Path of the index at `prefix` for reads of this length (bp).
pub fn index_path(prefix: &Path, read_length: usize) -> PathBuf {
    let mut name = prefix.as_os_str().to_owned();
    name.push(SeedingParameters::new(read_length).filename_extension());
    PathBuf::from(name)
}

fn read_reference(path: &Path) -> Result<RefSequence, Error> {
    let index_error = |reason: String| Error::Reference { path: path.into(), reason };
    let file = xopen(path).map_err(Error::io(path))?;
    let reference = read_fasta(&mut BufReader::new(file)).map_err(|e| index_error(e.to_string()))?;
    match reference.total_length() {
        0 => Err(index_error("no sequences".into())),
        _ => Ok(reference),
    }
}

/// Builds the index of `reference` (FASTA, plain or gzip) at `prefix` for reads of this length (bp), and its seal.
/// The files get their final names when they are complete. Memory: that of the index and a fifth more.
///
/// # Errors
/// The reference is not FASTA or changes during the build, or a file cannot be written.
pub fn build_index(reference: &Path, prefix: &Path, read_length: usize, threads: usize) -> Result<(), Error> {
    let sum = || Checksum::from_file(reference, threads).map_err(Error::io(reference));
    let before = sum()?;
    let (sequences, seeding) = (read_reference(reference)?, SeedingParameters::new(read_length));
    let bits = seeding.syncmer.pick_bits(&sequences);
    let (index, _) = make_index(&sequences, seeding, bits, FREQUENT_SEED_SHARE, threads.max(1));
    let path = index_path(prefix, read_length);
    let file = PartialFile::create(&path)?;
    // The library writes the file itself, by name. The entries are compared afterwards to check that the file is
    // correct.
    let partial = file.partial_path().unwrap_or(&path).to_path_buf();
    let written = index.write(&partial).and_then(|()| Checksum::from_file(&partial, threads));
    let built_index = written.map_err(Error::io(&path))?;
    check_entries(&partial, &index, bits)?;
    if sum()? != before {
        let reason = "changed while the index was built".into();
        return Err(Error::Reference { path: reference.into(), reason });
    }
    let mut set = FileSet::default();
    set.add_file(file);
    IndexSeal::write_seal(PROGRAM, before, &[(path, built_index)], set)
}

/// Checks that the file contains the seeds of `index`. The size of the file must have been checked.
fn check_entries(path: &Path, index: &StrobemerIndex, bits: u8) -> Result<(), Error> {
    let index_error = || Error::Index { path: path.into(), reason: "damaged, or not an index of the reference".into() };
    let mut file = BufReader::with_capacity(1 << 20, File::open(path).map_err(Error::io(path))?);
    let number = |file: &mut BufReader<File>| {
        let mut bytes = [0; 8];
        file.read_exact(&mut bytes).map_err(Error::io(path))?;
        Ok::<u64, Error>(u64::from_ne_bytes(bytes))
    };
    number(&mut file)?;
    let reserved = number(&mut file)?;
    file.seek(SeekFrom::Start(16 + reserved + 4 + 32 + 8)).map_err(Error::io(path))?;
    if number(&mut file)? != index.len() as u64 {
        return Err(index_error());
    }
    let top = |hash: u64| hash.checked_shr(64 - u32::from(bits)).unwrap_or(0);
    for entry in (0..index.len()).map(|i| index.entry(i)) {
        let (hash, start) = (number(&mut file)?, number(&mut file)?);
        if hash != entry.hash() | entry.strobe2_offset() as u64 || start != entry.ref_start() as u64 {
            return Err(index_error());
        }
    }
    // For each value of the first bits of a hash: the first entry with that value.
    let (buckets, mut first) = (1u64 << bits, 0);
    if number(&mut file)? != buckets + 1 {
        return Err(index_error());
    }
    for bucket in 0..=buckets {
        while first < index.len() && top(index.entry(first).hash()) < bucket {
            first += 1;
        }
        if number(&mut file)? != first as u64 {
            return Err(index_error());
        }
    }
    Ok(())
}

/// Checks that the file is as long as its header says and was built with the required parameters. The library's
/// loader would not check that.
fn check_header(path: &Path, seeding: &SeedingParameters, bits: u8) -> Result<(), Error> {
    let index_error = |reason: &str| Error::Index { path: path.into(), reason: reason.into() };
    let mut file = File::open(path).map_err(Error::io(path))?;
    let size = file.metadata().map_err(Error::io(path))?.len();
    let number = |file: &mut File| {
        let mut bytes = [0; 8];
        file.read_exact(&mut bytes).map_err(|_| index_error("cut short"))?;
        Ok::<u64, Error>(u64::from_ne_bytes(bytes))
    };
    let to = |file: &mut File, at: Option<u64>| {
        let at = at.filter(|&at| at <= size).ok_or_else(|| index_error("cut short"))?;
        file.seek(SeekFrom::Start(at)).map_err(Error::io(path))
    };
    // Magic and version, reserved bytes, and number of entries.
    let [magic @ .., a, b, c, d] = number(&mut file)?.to_ne_bytes();
    if magic != *b"STI\x01" {
        return Err(index_error("not an index of strobealign"));
    }
    if u32::from_ne_bytes([a, b, c, d]) != STI_FORMAT_VERSION {
        return Err(index_error("has another file format version"));
    }
    let reserved = number(&mut file)?;
    // The limit of frequent seeds depends on the genome and is not checked.
    to(&mut file, reserved.checked_add(16 + 4))?;
    let (syncmer, randstrobe) = (&seeding.syncmer, &seeding.randstrobe);
    let parameters = [
        u32::from(bits),
        seeding.profile as u32,
        syncmer.k as u32,
        syncmer.s as u32,
        randstrobe.w_min as u32,
        randstrobe.w_max as u32,
        randstrobe.q as u32,
        u32::from(randstrobe.max_dist),
    ];
    let mut found = [[0; 4]; 8];
    file.read_exact(found.as_flattened_mut()).map_err(|_| index_error("cut short"))?;
    if found.map(u32::from_ne_bytes) != parameters || number(&mut file)? != randstrobe.main_hash_mask {
        return Err(index_error("built with other parameters, or for another genome"));
    }
    let mut at = reserved + 16 + 4 + 32 + 8;
    for item in [16, 8] {
        let bytes = number(&mut file)?.checked_mul(item);
        at = to(&mut file, bytes.and_then(|n| n.checked_add(at + 8)))?;
    }
    if at == size { Ok(()) } else { Err(index_error("longer than it should be")) }
}

impl Strobealign {
    /// Loads the index at `prefix` for reads of this length (bp), and `reference`, on the calling thread; `threads`
    /// threads check the checksums.
    ///
    /// An index made by `strobealign --create-index` has no seal. Such an index is built again in memory and compared
    /// with the file, and a warning reports that.
    ///
    /// # Errors
    /// The index is missing, damaged or not the index of `reference`, or the reference cannot be read.
    pub fn load_index(
        prefix: &Path,
        reference: &Path,
        read_length: usize,
        options: Options,
        threads: usize,
    ) -> Result<Self, Error> {
        let path = index_path(prefix, read_length);
        if !path.is_file() {
            return Err(Error::NoIndex { path, engine: "strobealign", reference: reference.into() });
        }
        let seal = IndexSeal::read_seal(PROGRAM, &path)?;
        if let Some(seal) = &seal {
            seal.check_reference(reference, threads)?;
            seal.check_file(&path, Checksum::from_file(&path, threads).map_err(Error::io(&path))?)?;
        }
        let sequences = read_reference(reference)?;
        let seeding = SeedingParameters::new(read_length);
        let bits = seeding.syncmer.pick_bits(&sequences);
        check_header(&path, &seeding, bits)?;
        let index = if seal.is_some() {
            read_index(&path, seeding, bits, sequences.starts.clone())
                .map_err(|e| Error::Index { path, reason: e.to_string() })?
        } else {
            let (built_index, _) = make_index(&sequences, seeding, bits, FREQUENT_SEED_SHARE, threads.max(1));
            check_entries(&path, &built_index, bits)?;
            let seal = seal::seal_path(&path);
            tracing::warn!(
                "{} is missing, so the index was built again in memory to check the index file, which is right: alignments are the \
                 same, but starting takes longer; an index built by `genuma index` has this file",
                seal.display()
            );
            built_index
        };
        let lengths = (0..sequences.names.len()).map(|i| sequences.contig(i).len() as u64);
        let contigs = Contigs::new(sequences.names.iter().cloned().zip(lengths));
        Ok(Strobealign {
            chainer: Chainer::new(index.k(), ChainingParameters::default()),
            mapping: MappingParameters {
                max_secondary: options.max_secondary as usize,
                ..MappingParameters::default()
            },
            // Read group and comment are added later: the crate would copy them for each record.
            output: SamOutput::new(false, false, None, false),
            reference: sequences,
            index,
            contigs,
            options,
        })
    }

    /// Appends the BAM record of a strobealign record of `read`.
    fn push_record(
        &self,
        text: &mut String,
        read: ReadRef<'_>,
        lane: u32,
        record: &SamRecord,
        out: &mut Vec<u8>,
    ) -> Result<(), sam::Error> {
        let number = |name: &Option<String>| match name {
            None => NO_POSITION.0,
            Some(name) => self.contigs.contig_number(name.as_bytes()).unwrap_or(NO_POSITION.0),
        };
        let position = |position: Option<ContigPosition>| position.map_or(NO_POSITION.1, |p| p.0 as i32);
        let here = (number(&record.reference_name), position(record.pos));
        let mate = match record.mate_reference_name.as_deref() {
            Some("=") => here.0,
            _ => number(&record.mate_reference_name),
        };
        let fixed = FixedFields {
            flag: record.flags,
            position: here,
            mapq: record.mapq,
            mate_position: (mate, position(record.mate_pos)),
            template_length: record.template_len.unwrap_or(0),
        };
        let mut bam = RecordBuilder::new(out, read.name, fixed)?;
        if let Some(cigar) = &record.cigar {
            text.clear();
            // Writing to a string cannot fail.
            let _ = write!(text, "{cigar}");
            sam::parse_cigar(text.as_bytes(), &mut bam).map_err(|reason| sam::Error::SamLine {
                name: String::from_utf8_lossy(read.name).into_owned(),
                reason,
            })?;
        }
        let whole = !record.is_secondary();
        bam.push_bases(record.query_sequence.as_deref().filter(|_| whole).unwrap_or_default(), false);
        bam.push_qualities(record.query_qualities.as_deref().filter(|_| whole).unwrap_or_default(), false);
        if let Some(distance) = record.edit_distance {
            bam.push_int_tag(b"NM", i64::from(distance));
        }
        if let Some(score) = record.alignment_score {
            bam.push_int_tag(b"AS", i64::from(score));
        }
        if let Some(group) = self.options.read_groups.get(lane as usize) {
            bam.push_text_tag(b"RG", |out| out.extend_from_slice(group.as_bytes()));
        }
        if self.options.copy_comments && !read.comment.is_empty() {
            sam::parse_tags(read.comment, &mut bam).map_err(|reason| sam::Error::SamLine {
                name: String::from_utf8_lossy(read.name).into_owned(),
                reason: format!("its comment cannot be copied: {reason}"),
            })?;
        }
        bam.finish_record();
        Ok(())
    }
}

/// Converts a read for the crate, without its name, which the crate would only copy.
fn sequence_record(read: ReadRef<'_>) -> Result<SequenceRecord, Error> {
    if read.seq.len() > MAXIMUM_QUERY_LENGTH {
        return Err(Error::read(read.name, format!("longer than {MAXIMUM_QUERY_LENGTH} bp")));
    }
    let qualities = (!read.qual.is_empty()).then(|| read.qual.to_vec());
    Ok(SequenceRecord::new(String::new(), None, read.seq.to_ascii_uppercase(), qualities))
}

impl Engine for Strobealign {
    type WorkerState = WorkerState;
    /// Empty: [`Engine::write_records`] maps the reads of a block one after the other.
    type MappedBatch = ();
    type LibraryEstimate = ();

    fn program(&self) -> Program {
        PROGRAM
    }

    fn contigs(&self) -> &Contigs {
        &self.contigs
    }

    fn block_rule(&self, _: ReadLayout) -> BlockRule {
        BlockRule::OneBatchPerBlock(BlockLimit { min_bases: BLOCK_BASES + 1, min_reads: 0, max_bases: BLOCK_BASES + 1 })
    }

    fn memory_bytes(&self) -> u64 {
        let buckets = (1u64 << self.index.parameters.syncmer.pick_bits(&self.reference)) + 1;
        16 * self.index.len() as u64 + 8 * buckets + self.reference.total_length() as u64 / 4
    }

    fn index_arrays(&self) -> Vec<IndexArray<'_>> {
        Vec::new()
    }

    fn new_state(&self) -> WorkerState {
        WorkerState { aligner: Aligner::new(Scores::default(), self.index.k(), BANDWIDTH), text: String::new() }
    }

    fn map_batch(&self, _: &mut WorkerState, _: &ReadBatch, (): &mut ()) -> Result<(), Error> {
        Ok(())
    }

    fn estimate_library<'d>(&self, _: impl Iterator<Item = &'d ()>) {}

    fn write_records(
        &self,
        state: &mut WorkerState,
        reads: &ReadBatch,
        (): &mut (),
        (): &(),
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut rng = Rng::with_seed(0);
        let mut inserts = InsertSizeDistribution::new();
        let WorkerState { aligner, text } = state;
        let step = if reads.is_paired { 2 } else { 1 };
        for first in (0..reads.len()).step_by(step) {
            let mut chains = |read: &SequenceRecord| {
                get_sorted_chains(
                    &read.sequence,
                    &self.index,
                    &self.chainer,
                    self.mapping.rescue_distance,
                    self.mapping.mcs_strategy,
                    &mut rng,
                )
            };
            let one = sequence_record(reads.read(first))?;
            let (chains1, found1, hits1) = chains(&one);
            let records = if reads.is_paired {
                let two = sequence_record(reads.read(first + 1))?;
                let (chains2, found2, hits2) = chains(&two);
                align_paired_end_read(
                    &one,
                    &two,
                    &self.reference,
                    &self.mapping,
                    &self.output,
                    &self.index.parameters,
                    &mut inserts,
                    [hits1, hits2],
                    [found1, found2],
                    &mut [chains1, chains2],
                    aligner,
                    &mut rng,
                )
                .0
            } else {
                let mut chains1 = chains1;
                align_single_end_read(
                    &one,
                    &self.index,
                    &self.reference,
                    &self.mapping,
                    &self.output,
                    hits1,
                    found1,
                    &mut chains1,
                    aligner,
                    &mut rng,
                )
                .0
            };
            for record in &records {
                let second = reads.is_paired && record.flags & READ2 != 0;
                let mut read = reads.read(first + usize::from(second));
                // Its FASTQ reader (not its FASTA reader) also removes `/1` from the names of single reads.
                if !read.qual.is_empty() || read.seq.is_empty() {
                    let end = read.name.strip_suffix(b"/1").or_else(|| read.name.strip_suffix(b"/2"));
                    read.name = end.filter(|_| !reads.is_paired).unwrap_or(read.name);
                }
                self.push_record(text, read, reads.lane_index, record, out).map_err(Error::record(read.name))?;
            }
        }
        Ok(())
    }
}
