//! strobealign as an engine.
//!
//! Records are those of its command line with defaults and with the options of [`Options`], bases of the 16 letters that
//! BAM has. Its own output does not depend on its number of threads: it maps chunks of reads, and with each chunk its
//! random numbers and its idea of the insert size start anew. A chunk is a block of ours, so neither does ours. What
//! does matter is where a file is cut, as the insert size is learnt from the first 400 sure pairs of a chunk.
//!
//! The index depends on the length of the reads, in steps: it is `PREFIX.r150.sti` for reads of about 150 bp. It holds
//! seeds only, the sequences are read from the reference itself: some 10 bytes a base in all. Loading fills the arrays on
//! the calling thread, from Rust's allocator; the crate does not show where they are.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use fastrand::Rng;
use genuma_reads::{ReadBatch, ReadRef};
use genuma_work::publish::{Partial, Set};
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

use super::seal::{self, Seal, Sum};
use super::{Cut, Engine, Error, Layout, Limit, Program, Region};
use crate::sam::{self, Builder, Contigs, Fixed, NO_PLACE};

/// The version that `Cargo.toml` names: the library does not say its own.
const PROGRAM: Program = Program { name: "strobealign", version: "0.19.1" };
/// A chunk of its command line ends when it has more bases (`--chunk-size`).
const CHUNK: u64 = 1_000_000;
/// Share of seeds that are too frequent (`-f`) and bandwidth (`--bw`), the defaults of its command line.
const FREQUENT: f64 = 0.0002;
const BANDWIDTH: usize = 1024;
/// Version of its files (its `STI_FILE_FORMAT_VERSION`).
const FORMAT: u32 = 7;
/// Reads of a file whose mean length chooses the index, see [`read_length`].
pub(crate) const PEEK: usize = 500;

/// Options of its command line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options {
    /// Identifiers of the read groups, lane by lane (`--rg-id`); a lane without one has no `RG` tag.
    pub read_groups: Vec<String>,
    /// Secondary records of a read at most (`-N`).
    pub secondary: u32,
    /// Comments of the reads, which must be tags, are copied (`-C`).
    pub comments: bool,
}

/// strobealign with an index in memory.
pub struct Strobealign {
    reference: RefSequence,
    index: StrobemerIndex,
    chainer: Chainer,
    mapping: MappingParameters,
    output: SamOutput,
    contigs: Contigs,
    options: Options,
}

/// A worker's aligner.
pub struct State {
    aligner: Aligner,
    text: String,
}

/// The mean length of the first reads (bp): of the first [`PEEK`] reads of the first file, as its command line takes it.
pub fn read_length(lengths: impl Iterator<Item = usize>) -> usize {
    let (reads, bases) = lengths.take(PEEK).fold((0usize, 0usize), |(n, sum), l| (n + 1, sum + l));
    bases.checked_div(reads).unwrap_or(0)
}

/// The index at `prefix` for reads of that length (bp).
pub fn index_path(prefix: &Path, read_length: usize) -> PathBuf {
    let mut name = prefix.as_os_str().to_owned();
    name.push(SeedingParameters::new(read_length).filename_extension());
    PathBuf::from(name)
}

fn read_reference(path: &Path) -> Result<RefSequence, Error> {
    let wrong = |what: String| Error::Reference { path: path.into(), what };
    let file = xopen(path).map_err(Error::io(path))?;
    let reference = read_fasta(&mut BufReader::new(file)).map_err(|e| wrong(e.to_string()))?;
    match reference.total_length() {
        0 => Err(wrong("no sequences".into())),
        _ => Ok(reference),
    }
}

/// Builds the index of `reference` (FASTA, plain or gzip) for reads of that length (bp) at `prefix`, and seals it. The
/// files appear when they are complete. Memory: that of the index, and a fifth more.
///
/// # Errors
/// The reference is no FASTA or changes meanwhile, or a file cannot be written.
pub fn build_index(reference: &Path, prefix: &Path, read_length: usize, threads: usize) -> Result<(), Error> {
    let sum = || Sum::of_file(reference, threads).map_err(Error::io(reference));
    let before = sum()?;
    let (sequences, seeding) = (read_reference(reference)?, SeedingParameters::new(read_length));
    let bits = seeding.syncmer.pick_bits(&sequences);
    let (index, _) = make_index(&sequences, seeding, bits, FREQUENT, threads.max(1));
    let path = index_path(prefix, read_length);
    let file = Partial::create(&path)?;
    // The library writes it itself, by name: that it is what was meant shows in what it holds, entry by entry.
    let partial = file.waits_at().unwrap_or(&path).to_path_buf();
    let written = index.write(&partial).and_then(|()| Sum::of_file(&partial, threads));
    let made = written.map_err(Error::io(&path))?;
    same(&partial, &index, bits)?;
    if sum()? != before {
        let what = "changed while it was indexed".into();
        return Err(Error::Reference { path: reference.into(), what });
    }
    let mut set = Set::default();
    set.add(file);
    Seal::write(PROGRAM, before, &[(path, made)], set)
}

/// Sees that the seeds in a file, which is as long as it says, are those of an index.
fn same(path: &Path, index: &StrobemerIndex, bits: u8) -> Result<(), Error> {
    let wrong =
        || Error::Index { path: path.into(), what: "damaged, or not an index of the reference".into() };
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
        return Err(wrong());
    }
    let top = |hash: u64| hash.checked_shr(64 - u32::from(bits)).unwrap_or(0);
    for entry in (0..index.len()).map(|i| index.entry(i)) {
        let (hash, start) = (number(&mut file)?, number(&mut file)?);
        if hash != entry.hash() | entry.strobe2_offset() as u64 || start != entry.ref_start() as u64 {
            return Err(wrong());
        }
    }
    // Where the entries begin whose hashes have the same first bits.
    let (buckets, mut first) = (1u64 << bits, 0);
    if number(&mut file)? != buckets + 1 {
        return Err(wrong());
    }
    for bucket in 0..=buckets {
        while first < index.len() && top(index.entry(first).hash()) < bucket {
            first += 1;
        }
        if number(&mut file)? != first as u64 {
            return Err(wrong());
        }
    }
    Ok(())
}

/// Whether the file is as long as it says and made as we need it; the loader would allocate and compute with anything.
fn check_head(path: &Path, seeding: &SeedingParameters, bits: u8) -> Result<(), Error> {
    let wrong = |what: &str| Error::Index { path: path.into(), what: what.into() };
    let mut file = File::open(path).map_err(Error::io(path))?;
    let size = file.metadata().map_err(Error::io(path))?.len();
    let number = |file: &mut File| {
        let mut bytes = [0; 8];
        file.read_exact(&mut bytes).map_err(|_| wrong("cut short"))?;
        Ok::<u64, Error>(u64::from_ne_bytes(bytes))
    };
    let to = |file: &mut File, at: Option<u64>| {
        let at = at.filter(|&at| at <= size).ok_or_else(|| wrong("cut short"))?;
        file.seek(SeekFrom::Start(at)).map_err(Error::io(path))
    };
    // Magic and version, bytes reserved, and how many.
    let [magic @ .., a, b, c, d] = number(&mut file)?.to_ne_bytes();
    if magic != *b"STI\x01" {
        return Err(wrong("not an index of strobealign"));
    }
    if u32::from_ne_bytes([a, b, c, d]) != FORMAT {
        return Err(wrong("of another file format version"));
    }
    let reserved = number(&mut file)?;
    // The number of copies that are too many is what the genome gave.
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
    file.read_exact(found.as_flattened_mut()).map_err(|_| wrong("cut short"))?;
    if found.map(u32::from_ne_bytes) != parameters || number(&mut file)? != randstrobe.main_hash_mask {
        return Err(wrong("made with other parameters, or of another genome"));
    }
    let mut at = reserved + 16 + 4 + 32 + 8;
    for item in [16, 8] {
        let bytes = number(&mut file)?.checked_mul(item);
        at = to(&mut file, bytes.and_then(|n| n.checked_add(at + 8)))?;
    }
    if at == size { Ok(()) } else { Err(wrong("longer than it should be")) }
}

impl Strobealign {
    /// Loads the index at `prefix` for reads of that length (bp), and `reference` itself, on the calling thread;
    /// `threads` more check its sum.
    ///
    /// An index made by `strobealign --create-index` has no seal: then it is made anew in memory and compared with the file, and a
    /// warning says so.
    ///
    /// # Errors
    /// There is no index, it is damaged or not one of `reference`, or that cannot be read.
    pub fn load(
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
        let seal = Seal::read(PROGRAM, &path)?;
        if let Some(seal) = &seal {
            seal.check_reference(reference, threads)?;
            seal.check(&path, Sum::of_file(&path, threads).map_err(Error::io(&path))?)?;
        }
        let sequences = read_reference(reference)?;
        let seeding = SeedingParameters::new(read_length);
        let bits = seeding.syncmer.pick_bits(&sequences);
        check_head(&path, &seeding, bits)?;
        let index = if seal.is_some() {
            read_index(&path, seeding, bits, sequences.starts.clone())
                .map_err(|e| Error::Index { path, what: e.to_string() })?
        } else {
            let (made, _) = make_index(&sequences, seeding, bits, FREQUENT, threads.max(1));
            same(&path, &made, bits)?;
            let seal = seal::path(&path);
            tracing::warn!("no {}: the index was made anew and compared with the file", seal.display());
            made
        };
        let lengths = (0..sequences.names.len()).map(|i| sequences.contig(i).len() as u64);
        let contigs = Contigs::new(sequences.names.iter().cloned().zip(lengths));
        Ok(Strobealign {
            chainer: Chainer::new(index.k(), ChainingParameters::default()),
            mapping: MappingParameters {
                max_secondary: options.secondary as usize,
                ..MappingParameters::default()
            },
            // Read group and comment do not come through the crate's records: they would be copied for each.
            output: SamOutput::new(false, false, None, false),
            reference: sequences,
            index,
            contigs,
            options,
        })
    }

    /// Appends the record, which is of `read`.
    fn encode(
        &self,
        text: &mut String,
        read: ReadRef<'_>,
        lane: u32,
        record: &SamRecord,
        out: &mut Vec<u8>,
    ) -> Result<(), sam::Error> {
        let number = |name: &Option<String>| match name {
            None => NO_PLACE.0,
            Some(name) => self.contigs.number(name.as_bytes()).unwrap_or(NO_PLACE.0),
        };
        let position = |position: Option<ContigPosition>| position.map_or(NO_PLACE.1, |p| p.0 as i32);
        let here = (number(&record.reference_name), position(record.pos));
        let mate = match record.mate_reference_name.as_deref() {
            Some("=") => here.0,
            _ => number(&record.mate_reference_name),
        };
        let fixed = Fixed {
            flag: record.flags,
            place: here,
            mapq: record.mapq,
            mate: (mate, position(record.mate_pos)),
            template_length: record.template_len.unwrap_or(0),
        };
        let mut bam = Builder::new(out, read.name, fixed)?;
        if let Some(cigar) = &record.cigar {
            text.clear();
            // Writing to a string cannot fail.
            let _ = write!(text, "{cigar}");
            sam::parse_operations(text.as_bytes(), &mut bam).map_err(|what| sam::Error::Line {
                name: String::from_utf8_lossy(read.name).into_owned(),
                what,
            })?;
        }
        let whole = !record.is_secondary();
        bam.bases(record.query_sequence.as_deref().filter(|_| whole).unwrap_or_default(), false);
        bam.qualities(record.query_qualities.as_deref().filter(|_| whole).unwrap_or_default(), false);
        if let Some(distance) = record.edit_distance {
            bam.integer(b"NM", i64::from(distance));
        }
        if let Some(score) = record.alignment_score {
            bam.integer(b"AS", i64::from(score));
        }
        if let Some(group) = self.options.read_groups.get(lane as usize) {
            bam.text(b"RG", |out| out.extend_from_slice(group.as_bytes()));
        }
        if self.options.comments && !read.comment.is_empty() {
            sam::parse_fields(read.comment, &mut bam).map_err(|what| sam::Error::Line {
                name: String::from_utf8_lossy(read.name).into_owned(),
                what: format!("its comment cannot be copied: {what}"),
            })?;
        }
        bam.finish();
        Ok(())
    }
}

/// A read as the crate takes it, without its name: that is only copied.
fn sequence(read: ReadRef<'_>) -> Result<SequenceRecord, Error> {
    if read.seq.len() > MAXIMUM_QUERY_LENGTH {
        return Err(Error::read(read.name, format!("longer than {MAXIMUM_QUERY_LENGTH} bp")));
    }
    let qualities = (!read.qual.is_empty()).then(|| read.qual.to_vec());
    Ok(SequenceRecord::new(String::new(), None, read.seq.to_ascii_uppercase(), qualities))
}

impl Engine for Strobealign {
    type State = State;
    /// Nothing: the reads of a block are mapped one after the other, by [`Engine::finish`].
    type Draft = ();
    type Estimate = ();

    fn program(&self) -> Program {
        PROGRAM
    }

    fn contigs(&self) -> &Contigs {
        &self.contigs
    }

    fn cut(&self, _: Layout) -> Cut {
        Cut::Whole(Limit { bases: CHUNK + 1, reads: 0, most: CHUNK + 1 })
    }

    fn bytes(&self) -> u64 {
        let buckets = (1u64 << self.index.parameters.syncmer.pick_bits(&self.reference)) + 1;
        16 * self.index.len() as u64 + 8 * buckets + self.reference.total_length() as u64 / 4
    }

    fn regions(&self) -> Vec<Region<'_>> {
        Vec::new()
    }

    fn state(&self) -> State {
        State { aligner: Aligner::new(Scores::default(), self.index.k(), BANDWIDTH), text: String::new() }
    }

    fn map(&self, _: &mut State, _: &ReadBatch, (): &mut ()) -> Result<(), Error> {
        Ok(())
    }

    fn estimate<'d>(&self, _: impl Iterator<Item = &'d ()>) {}

    fn finish(
        &self,
        state: &mut State,
        reads: &ReadBatch,
        (): &mut (),
        (): &(),
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut rng = Rng::with_seed(0);
        let mut inserts = InsertSizeDistribution::new();
        let State { aligner, text } = state;
        let step = if reads.paired { 2 } else { 1 };
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
            let one = sequence(reads.read(first))?;
            let (chains1, found1, hits1) = chains(&one);
            let records = if reads.paired {
                let two = sequence(reads.read(first + 1))?;
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
                let second = reads.paired && record.flags & READ2 != 0;
                let mut read = reads.read(first + usize::from(second));
                // Its reader of FASTQ (not that of FASTA) takes `/1` off the names of single reads too.
                if !read.qual.is_empty() || read.seq.is_empty() {
                    let end = read.name.strip_suffix(b"/1").or_else(|| read.name.strip_suffix(b"/2"));
                    read.name = end.filter(|_| !reads.paired).unwrap_or(read.name);
                }
                self.encode(text, read, reads.lane, record, out).map_err(Error::record(read.name))?;
            }
        }
        Ok(())
    }
}
