//! The engine `genuma`: the mapper of [`genuma_mapper`] with its index in memory, with SAM records like those of bwa
//! mem. Reads longer than 2,000 bp get unmapped records and are counted.
//!
//! Records have the tags of bwa mem (`NM MD MC MQ AS XS RG SA pa XA`), and `ms` for duplicate marking. The index is one
//! file, `PREFIX.gnm`, of about 1.1 bytes per base. The seal of the index ([`super::seal`]) must match it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use genuma_machine::simd_and_prefetch::SimdLevel;
use genuma_mapper::index::{self, Index, ReferenceBuilder};
use genuma_mapper::insert_size::{self, InsertSizeModels, InsertSizesByOrientation};
use genuma_mapper::pairs::IncompleteSearchReadCounts;
use genuma_mapper::{mapper, pairs};
use genuma_reads::fasta::{FastaEvent, read_fasta_events};
use genuma_reads::{CarriedTags, ReadBatch};
use genuma_work::publish::AtomicFileSet;

use super::file_in_memory::FileInMemory;
use super::seal::{Checksum, ChecksummingWriter, IndexSeal};
use super::{AlignerNameAndVersion, BlockRule, Engine, Error, IndexArray, ReadLayout, append_extension};
use crate::sam::Contigs;

mod alt;
mod records;

pub use genuma_mapper::options::{MAX_READ_BP, ScoringOptions};

/// Name and version of the mapper. The version is that of the index format.
const PROGRAM: AlignerNameAndVersion = AlignerNameAndVersion { name: "genuma-mapper", version: "1" };
/// Number of bases (bp) in a block of pairs, if the options do not set it. Chosen.
const DEFAULT_BLOCK_BASES: u64 = 25_000_000;

/// Kind of skipped reads ([`Engine::skipped_reads`]): reads longer than [`MAX_READ_BP`], which are not mapped. They
/// are not counted in the kind `reads`.
pub const TOO_LONG_READS_LABEL: &str = "reads_longer_than_2000_bp";

/// Options of the engine. The letters are the options of bwa mem with the same meaning.
#[derive(Debug, Clone, PartialEq)]
pub struct GenumaEngineOptions {
    /// Alignment scores and penalties (`-A -B -O -E -L -U -T`).
    pub scores: ScoringOptions,
    /// Whether all alignments are reported, those at other positions as secondary records (`-a`).
    pub report_all: bool,
    /// Whether the further segments of a split read are marked as secondary instead of supplementary (`-M`).
    pub supplementary_as_secondary: bool,
    /// Whether supplementary records are soft-clipped, so that they keep all bases (`-Y`).
    pub soft_clip_supplementary: bool,
    /// Maximum number of other placements listed in `XA`: if none of them is on an ALT contig, and if some are (`-h`).
    /// If there are more placements, `XA` is omitted.
    pub max_xa_placements: [usize; 2],
    /// Whether ALT contigs are treated like other sequences, even if `PREFIX.alt` exists (`-j`).
    pub ignore_alt: bool,
    /// Whether the comments of the reads, which must be SAM tags, are appended to the records (`-C`).
    pub copy_comments: bool,
    /// The carried tags: which of their values ([`ReadRef::tags`](genuma_reads::ReadRef::tags)) are reversed or
    /// complemented in records on the reverse strand.
    pub carried_tags: Arc<CarriedTags>,
    /// Read group IDs of the lanes (`-R`); a lane without ID gets no `RG` tag.
    pub read_groups: Vec<String>,
    /// Number of bases (bp) in a block of pairs, from which the insert sizes are estimated (`-K`).
    pub block_bases: u64,
}

impl Default for GenumaEngineOptions {
    fn default() -> Self {
        GenumaEngineOptions {
            scores: ScoringOptions::default(),
            report_all: false,
            supplementary_as_secondary: false,
            soft_clip_supplementary: false,
            max_xa_placements: [5, 200],
            ignore_alt: false,
            copy_comments: false,
            carried_tags: Arc::default(),
            read_groups: Vec::new(),
            block_bases: DEFAULT_BLOCK_BASES,
        }
    }
}

/// The engine `genuma` with its index in memory.
pub struct GenumaEngine {
    index: Index<FileInMemory>,
    contigs: Contigs,
    options: GenumaEngineOptions,
    vectors: SimdLevel,
}

/// Buffers that a worker reuses for mapping, pairing and records, and its number of reads that are too long.
#[derive(Default)]
pub struct WorkerState {
    mapping: mapper::MappingBuffers,
    pairing: pairs::PairingBuffers,
    records: records::RecordBuffers,
    /// Number of reads so far that were not mapped because they are longer than [`MAX_READ_BP`].
    num_too_long_reads: u64,
}

/// Placements of the reads of a batch, and the insert sizes of its pairs that are uniquely placed on one sequence.
#[derive(Default)]
pub struct MappedBatch {
    placements: mapper::MappedReads,
    insert_sizes: InsertSizesByOrientation,
}

/// Path of the index file: `prefix` with `.gnm` appended.
pub fn index_path(prefix: &Path) -> PathBuf {
    append_extension(prefix, "gnm")
}

/// Path of the optional file that lists the ALT contigs of the reference: `prefix` with `.alt` appended.
pub(crate) fn alt_contigs_path(prefix: &Path) -> PathBuf {
    append_extension(prefix, "alt")
}

/// Builds the index of `reference` (FASTA, plain or gzip) and writes it with its seal to files whose names begin with
/// `prefix`. The files get their final names when they are complete. Memory: 1.8 bytes per base of the reference.
///
/// # Errors
/// The reference is not FASTA, is too long, or changes during the build; or a file cannot be written.
pub fn build_index(reference: &Path, prefix: &Path, threads: usize) -> Result<(), Error> {
    let sum = || Checksum::checksum_of_file(reference, threads).map_err(Error::io(reference));
    let before = sum()?;
    let mut built = ReferenceBuilder::default();
    read_fasta_events(reference, |part| match part {
        FastaEvent::Header { name, .. } => built.begin_contig(String::from_utf8_lossy(name).into_owned()),
        FastaEvent::Bases(bases) => built.add_bases(bases),
    })?;
    let path = index_path(prefix);
    let mut file = ChecksummingWriter::create_checksummed_file(&path)?;
    index::build_and_write_index(built, threads, |bytes| {
        file.write_and_checksum_bytes(bytes).map_err(IndexBuildError::Write)
    })
    .map_err(|error| match error {
        IndexBuildError::Write(error) => error,
        IndexBuildError::Build(error) => Error::Reference { path: reference.into(), reason: error.to_string() },
    })?;
    if sum()? != before {
        let reason = "changed while the index was built".into();
        return Err(Error::Reference { path: reference.into(), reason });
    }
    let mut set = AtomicFileSet::default();
    let made = file.finish_and_add_to_file_set(&mut set)?;
    IndexSeal::write_seal_and_publish_files(PROGRAM, before, &[made], set)
}

enum IndexBuildError {
    Write(Error),
    Build(index::Error),
}

impl From<index::Error> for IndexBuildError {
    fn from(error: index::Error) -> Self {
        IndexBuildError::Build(error)
    }
}

impl GenumaEngine {
    /// Loads the index that was built from `reference` and whose file names begin with `prefix`. The calling thread
    /// reads it, `threads` threads compute its checksum. Unless [`GenumaEngineOptions::ignore_alt`] is set, also reads
    /// the ALT contigs from the file [`alt_contigs_path`], and logs a warning if the reference lacks some of them.
    ///
    /// # Errors
    /// The index is missing, has no seal, cannot be read, is damaged, or is not the index of `reference` (if that
    /// file exists); or the list of ALT contigs cannot be read or is not valid.
    pub fn load_index(
        prefix: &Path,
        reference: &Path,
        options: GenumaEngineOptions,
        threads: usize,
    ) -> Result<Self, Error> {
        let path = index_path(prefix);
        // I/O error ignored: reported as a missing index, with its path.
        if !path.is_file() {
            return Err(Error::NoIndex { path, reference: reference.into() });
        }
        let index_error = |reason: String| Error::Index { path: path.clone(), reason };
        let seal = IndexSeal::read_seal(PROGRAM, &path)?;
        seal.check_reference_checksum(reference, threads)?;
        let image = FileInMemory::read_file(&path)?;
        seal.check_index_file_checksum(&path, Checksum::checksum_of_bytes(&image, threads))?;
        let mut index = Index::from_bytes(image).map_err(|error| index_error(error.to_string()))?;
        let mut contigs = Contigs::new(index.contigs().iter().map(|contig| (contig.name.clone(), contig.length)));
        if !options.ignore_alt
            && let Some(names) = alt::read_alt_contig_names(&alt_contigs_path(prefix), &contigs)?
        {
            index.set_alt_contigs(|contig| names.contains(&contig.name));
            contigs = contigs.with_alt_contigs_marked(|name| names.contains(name));
        }
        Ok(GenumaEngine { index, contigs, options, vectors: SimdLevel::widest_available() })
    }

    /// Returns the engine with the vector instructions `vectors` instead of the widest that the CPU has.
    pub fn with_simd_level(self, vectors: SimdLevel) -> Self {
        GenumaEngine { vectors, ..self }
    }
}

impl Engine for GenumaEngine {
    type WorkerState = WorkerState;
    type MappedBatch = MappedBatch;
    type LibraryEstimate = InsertSizeModels;

    fn program(&self) -> AlignerNameAndVersion {
        PROGRAM
    }

    fn contigs(&self) -> &Contigs {
        &self.contigs
    }

    fn block_rule(&self, layout: ReadLayout) -> BlockRule {
        match layout {
            ReadLayout::Single => BlockRule::EachBatch,
            ReadLayout::Paired | ReadLayout::Interleaved => BlockRule::MinBases(self.options.block_bases),
        }
    }

    fn memory_bytes(&self) -> u64 {
        self.index.as_stored_bytes().len() as u64
    }

    fn index_arrays(&self) -> Vec<IndexArray<'_>> {
        self.index.large_arrays_with_names().into_iter().map(|(name, bytes)| IndexArray { name, bytes }).collect()
    }

    fn new_worker_state(&self) -> WorkerState {
        WorkerState::default()
    }

    fn map_batch(&self, state: &mut WorkerState, reads: &ReadBatch, mapped: &mut MappedBatch) -> Result<(), Error> {
        let view = self.index.view();
        // A read that is too long to be mapped is mapped like a read without bases, so that its record is unmapped.
        let mut num_too_long = 0;
        let letters = reads.iter().map(|read| {
            let too_long = read.seq.len() > MAX_READ_BP;
            num_too_long += u64::from(too_long);
            if too_long { &[][..] } else { read.seq }
        });
        mapper::map_reads(
            &view,
            &self.options.scores,
            self.vectors,
            &mut state.mapping,
            letters,
            &mut mapped.placements,
        );
        state.num_too_long_reads += num_too_long;
        mapped.insert_sizes.iter_mut().for_each(Vec::clear);
        if reads.is_paired {
            for first in (0..reads.len() & !1).step_by(2) {
                insert_size::record_insert_size_if_unique(
                    &mut mapped.insert_sizes,
                    &view,
                    &mapped.placements,
                    first,
                    &self.options.scores,
                );
            }
        }
        Ok(())
    }

    fn estimate_library<'d>(&self, batches: impl Iterator<Item = &'d MappedBatch>) -> InsertSizeModels {
        let mut insert_sizes = InsertSizesByOrientation::default();
        for mapped in batches {
            for (all, some) in insert_sizes.iter_mut().zip(&mapped.insert_sizes) {
                all.extend_from_slice(some);
            }
        }
        InsertSizeModels::estimate_from_insert_sizes(insert_sizes, self.options.scores.match_score)
    }

    fn skipped_reads(&self, state: &WorkerState) -> Vec<(&'static str, u64)> {
        let IncompleteSearchReadCounts { reads, sampled, joined, lists, placements } = state.pairing.skipped;
        vec![
            ("reads", reads),
            ("reads_with_sampled_placements", sampled),
            ("reads_with_skipped_mate_placements", joined),
            ("single_reads_with_skipped_frequent_seeds", lists),
            ("reads_with_dropped_placements", placements),
            (TOO_LONG_READS_LABEL, state.num_too_long_reads),
        ]
    }

    fn write_records(
        &self,
        state: &mut WorkerState,
        reads: &ReadBatch,
        mapped: &mut MappedBatch,
        estimate: &InsertSizeModels,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let view = self.index.view();
        let group = self.options.read_groups.get(reads.lane_index as usize).map_or("", String::as_str);
        let record_writer =
            records::RecordWriter { view, contigs: &self.contigs, options: &self.options, group: group.as_bytes() };
        let inserts = reads.is_paired.then_some(estimate);
        let WorkerState { pairing: pairs, records, .. } = state;
        let (scores, vectors) = (&self.options.scores, self.vectors);
        pairs::pair_and_report_templates(
            &view,
            scores,
            vectors,
            pairs,
            &mut mapped.placements,
            inserts,
            |found, first, reports, proper| {
                record_writer.append_template_records(records, found, reads, first, reports, proper, out)
            },
        )
    }
}
