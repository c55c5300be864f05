//! genuma's own engine: the index of [`genuma_mapper`] in memory, its places as records.
//!
//! Records have what bwa mem's have: `NM MD MC MQ AS XS SA XA`, and `ms` for marking duplicates. The index is one file, `PREFIX.gnm`, of about 1.1
//! bytes a base; it is sealed, and nothing is taken from one that its seal does not fit.

use std::path::{Path, PathBuf};

use genuma_machine::processor::Vectors;
use genuma_mapper::index::{self, Built, Index};
use genuma_mapper::insert::{self, Distances, Inserts};
use genuma_mapper::options::LONGEST;
use genuma_mapper::pairs::Unseen;
use genuma_mapper::{mapper, pairs};
use genuma_reads::ReadBatch;
use genuma_reads::fasta::{Part, read_parts};
use genuma_work::publish::Set;

use super::image::Image;
use super::seal::{self, Seal, Sum, Summed};
use super::{Cut, Engine, Error, Layout, Limit, Program, Region, with_added};
use crate::sam::Contigs;

mod alt;
mod records;

pub use genuma_mapper::options::Options as Scores;

/// Its version is that of its index.
const PROGRAM: Program = Program { name: "genuma-mapper", version: "1" };
/// Bases (bp) of a block of pairs: what distances are estimated from.
const BLOCK: u64 = 25_000_000;

/// Options, those of bwa mem's command line.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// What alignments are worth (`-A -B -O -E -L -U -T`).
    pub scores: Scores,
    /// Secondary alignments are reported (`-a`).
    pub all: bool,
    /// Pieces of a read that are not its primary one are secondary, not supplementary (`-M`).
    pub pieces_secondary: bool,
    /// Supplementary records keep all bases (`-Y`).
    pub soft_clips: bool,
    /// Other places are named in `XA` where there are so many at most, or so many with some on ALT contigs (`-h`).
    pub named: [usize; 2],
    /// ALT contigs are sequences like any other, whatever `PREFIX.alt` says (`-j`).
    pub ignore_alt: bool,
    /// Comments of the reads, which must be tags, are copied (`-C`).
    pub comments: bool,
    /// Identifiers of the read groups, lane by lane (`-R`); a lane without one has no `RG` tag.
    pub read_groups: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            scores: Scores::default(),
            all: false,
            pieces_secondary: false,
            soft_clips: false,
            named: [5, 200],
            ignore_alt: false,
            comments: false,
            read_groups: Vec::new(),
        }
    }
}

/// The engine with an index in memory.
pub struct Genuma {
    index: Index<Image>,
    contigs: Contigs,
    options: Options,
    vectors: Vectors,
}

/// A worker's buffers.
#[derive(Default)]
pub struct State {
    map: mapper::State,
    pairs: pairs::State,
    records: records::Buffers,
}

/// Places of a piece, and what its pairs say of their distance.
#[derive(Default)]
pub struct Draft {
    found: mapper::Draft,
    distances: Distances,
}

/// The file of the index at `prefix`.
pub fn index_path(prefix: &Path) -> PathBuf {
    with_added(prefix, "gnm")
}

/// The file beside the index at `prefix` that says which sequences are ALT contigs, if there is one.
pub(crate) fn alt_path(prefix: &Path) -> PathBuf {
    with_added(prefix, "alt")
}

/// Builds the index of `reference` (FASTA, plain or gzip) at `prefix`, and seals it. The files appear when they are complete.
/// Memory: 1.8 bytes a base in all.
///
/// # Errors
/// The reference is no FASTA, is too long, or changes meanwhile, or a file cannot be written.
pub fn build_index(reference: &Path, prefix: &Path, threads: usize) -> Result<(), Error> {
    let sum = || Sum::of_file(reference, threads).map_err(Error::io(reference));
    let before = sum()?;
    let mut built = Built::default();
    read_parts(reference, |part| match part {
        Part::Header { name, .. } => built.begin(String::from_utf8_lossy(name).into_owned()),
        Part::Bases(bases) => built.add(bases),
    })?;
    let path = index_path(prefix);
    let mut file = Summed::create(&path)?;
    index::build(built, threads, |bytes| file.write(bytes).map_err(Building::Writing)).map_err(|error| {
        match error {
            Building::Writing(error) => error,
            Building::Index(error) => Error::Reference { path: reference.into(), what: error.to_string() },
        }
    })?;
    if sum()? != before {
        let what = "changed while it was indexed".into();
        return Err(Error::Reference { path: reference.into(), what });
    }
    let mut set = Set::default();
    let made = file.complete(&mut set)?;
    Seal::write(PROGRAM, before, &[made], set)
}

enum Building {
    Writing(Error),
    Index(index::Error),
}

impl From<index::Error> for Building {
    fn from(error: index::Error) -> Self {
        Building::Index(error)
    }
}

impl Genuma {
    /// Loads the index at `prefix`, made from `reference`, on the calling thread; `threads` more check it. ALT contigs are those that [`alt_path`]
    /// names; a warning tells of names that the reference does not have.
    ///
    /// # Errors
    /// There is no index, it has no seal, cannot be read, is damaged, or not one of `reference` (if that file is there); or the list of ALT contigs
    /// cannot be read or is none.
    pub fn load(prefix: &Path, reference: &Path, options: Options, threads: usize) -> Result<Self, Error> {
        let path = index_path(prefix);
        if !path.is_file() {
            return Err(Error::NoIndex { path, engine: "genuma", reference: reference.into() });
        }
        let wrong = |what: String| Error::Index { path: path.clone(), what };
        let Some(seal) = Seal::read(PROGRAM, &path)? else {
            return Err(wrong(format!(
                "{} is missing, which tells that it is whole",
                seal::path(&path).display()
            )));
        };
        seal.check_reference(reference, threads)?;
        let image = Image::read(&path, 0)?;
        seal.check(&path, Sum::of_bytes(&image, threads))?;
        let mut index = Index::new(image).map_err(|error| wrong(error.to_string()))?;
        let mut contigs =
            Contigs::new(index.contigs().iter().map(|contig| (contig.name.clone(), contig.length)));
        if !options.ignore_alt
            && let Some(names) = alt::names(&alt_path(prefix), &contigs)?
        {
            index.set_alt(|contig| names.contains(&contig.name));
            contigs = contigs.with_alt(|name| names.contains(name));
        }
        Ok(Genuma { index, contigs, options, vectors: Vectors::widest() })
    }

    /// The same with these instructions.
    pub fn with_vectors(self, vectors: Vectors) -> Self {
        Genuma { vectors, ..self }
    }
}

impl Engine for Genuma {
    type State = State;
    type Draft = Draft;
    type Estimate = Inserts;

    fn program(&self) -> Program {
        PROGRAM
    }

    fn contigs(&self) -> &Contigs {
        &self.contigs
    }

    fn cut(&self, layout: Layout) -> Cut {
        match layout {
            Layout::Single => Cut::Anywhere,
            Layout::Paired | Layout::Interleaved => {
                Cut::Blocks(Limit { bases: BLOCK, reads: 0, most: BLOCK })
            }
        }
    }

    fn bytes(&self) -> u64 {
        self.index.bytes().len() as u64
    }

    fn regions(&self) -> Vec<Region<'_>> {
        self.index.arrays().into_iter().map(|(name, bytes)| Region { name, bytes }).collect()
    }

    fn state(&self) -> State {
        State::default()
    }

    fn map(&self, state: &mut State, reads: &ReadBatch, draft: &mut Draft) -> Result<(), Error> {
        if let Some(read) = reads.iter().find(|read| read.seq.len() > LONGEST) {
            let what = format!("longer than {LONGEST} bp: align it with --engine minibwa");
            return Err(Error::read(read.name, what));
        }
        let view = self.index.view();
        let letters = reads.iter().map(|read| read.seq);
        mapper::map(&view, &self.options.scores, self.vectors, &mut state.map, letters, &mut draft.found);
        draft.distances.iter_mut().for_each(Vec::clear);
        if reads.paired {
            for first in (0..reads.len() & !1).step_by(2) {
                insert::add(&mut draft.distances, &view, &draft.found, first, &self.options.scores);
            }
        }
        Ok(())
    }

    fn estimate<'d>(&self, drafts: impl Iterator<Item = &'d Draft>) -> Inserts {
        let mut distances = Distances::default();
        for draft in drafts {
            for (all, some) in distances.iter_mut().zip(&draft.distances) {
                all.extend_from_slice(some);
            }
        }
        Inserts::new(distances, self.options.scores.equal)
    }

    fn left_out(&self, state: &State) -> Vec<(&'static str, u64)> {
        let Unseen { reads, sampled, joined, lists, places } = state.pairs.unseen;
        vec![
            ("reads", reads),
            ("reads_with_a_sample_of_places_seen", sampled),
            ("reads_with_places_beside_the_mate_unseen", joined),
            ("reads_alone_with_places_of_frequent_seeds_unseen", lists),
            ("reads_with_more_places_than_are_kept", places),
        ]
    }

    fn finish(
        &self,
        state: &mut State,
        reads: &ReadBatch,
        draft: &mut Draft,
        estimate: &Inserts,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let view = self.index.view();
        let group = self.options.read_groups.get(reads.lane as usize).map_or("", String::as_str);
        let format =
            records::Format { view, contigs: &self.contigs, options: &self.options, group: group.as_bytes() };
        let inserts = reads.paired.then_some(estimate);
        let State { pairs, records, .. } = state;
        let (scores, vectors) = (&self.options.scores, self.vectors);
        pairs::finish(
            &view,
            scores,
            vectors,
            pairs,
            &mut draft.found,
            inserts,
            |found, first, answers, proper| {
                format.template(records, found, reads, first, answers, proper, out)
            },
        )
    }
}
