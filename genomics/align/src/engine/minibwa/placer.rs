//! Single sequences and pairs against an index, with all their hits: what calling asks.

use std::path::Path;

use genuma_machine::placement;
use genuma_reads::fasta::Reference;

use super::super::Error;
use super::ffi::{Buffer, Hits, Index, Opts, PAIRED, Queries, Target};
use super::{Genome, LONGEST, files, open};

/// Secondary hits of a sequence at most.
const SECONDARY: i32 = 50;

/// The strand of the reference that a sequence is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strand {
    /// The one that the reference has.
    Forward,
    /// The other.
    Reverse,
}

/// What an operation of a CIGAR does, in the order of their numbers in BAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CigarKind {
    /// Bases side by side, equal or not.
    Match,
    /// Bases that the reference lacks.
    Ins,
    /// Bases that the sequence lacks.
    Del,
    /// A stretch of the reference that is passed over.
    RefSkip,
    /// Equal bases.
    Eq,
    /// Different bases.
    Diff,
}

/// An operation of a CIGAR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CigarOp {
    /// What it does.
    pub kind: CigarKind,
    /// With how many bases.
    pub len: u32,
}

/// A place that a sequence, or a part of it, is like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Number of the reference's sequence.
    pub tid: i64,
    /// First base on the reference, from 0.
    pub ref_start: i64,
    /// One past the last.
    pub ref_end: i64,
    /// First base of the part, from 0, as the sequence was given.
    pub query_start: i32,
    /// One past the last.
    pub query_end: i32,
    /// Which strand.
    pub strand: Strand,
    /// Mapping quality.
    pub mapq: u8,
    /// Score of the alignment.
    pub score: i32,
    /// Bases of the seeds, with the gaps between them.
    pub blen: i32,
    /// Of these, bases that match.
    pub mlen: i32,
    /// Whether it and one of the mate are as mates should be.
    pub proper_pair: bool,
    /// Whether it is the first choice.
    pub is_primary: bool,
    /// Whether it is another choice for a part that has a better one.
    pub is_secondary: bool,
    /// The alignment from start to end, along the reference.
    pub cigar: Vec<CigarOp>,
}

impl Hit {
    fn new(hit: &super::ffi::Hit) -> Hit {
        let raw = hit.get();
        let other = raw.parent != raw.id;
        let op = |&op: &u32| {
            let kind = match op & 15 {
                1 => CigarKind::Ins,
                2 => CigarKind::Del,
                3 => CigarKind::RefSkip,
                7 => CigarKind::Eq,
                8 => CigarKind::Diff,
                // minibwa has no others: it does not say what is clipped.
                _ => CigarKind::Match,
            };
            CigarOp { kind, len: op >> 4 }
        };
        Hit {
            tid: raw.tid,
            ref_start: raw.ts,
            ref_end: raw.te,
            query_start: raw.qs,
            query_end: raw.qe,
            strand: if hit.reverse() { Strand::Reverse } else { Strand::Forward },
            mapq: raw.mapq.clamp(0, 255) as u8,
            score: raw.score,
            blen: raw.blen,
            mlen: raw.mlen,
            proper_pair: raw.proper_pair() != 0,
            is_primary: !other && raw.sam_pri() != 0,
            is_secondary: other,
            cigar: hit.cigar().iter().map(op).collect(),
        }
    }
}

/// A reference index in memory, shared by all threads.
pub struct Placer {
    index: Index,
    alone: Opts,
    mates: Opts,
}

impl Placer {
    /// Whether both files of an index stand at `prefix`.
    pub fn index_exists(prefix: &Path) -> bool {
        files(prefix).iter().all(|file| file.is_file())
    }

    /// Loads the index at `prefix`, which must be of `genome`: all its bases are compared.
    ///
    /// # Errors
    /// The processor is too old, there is no index, it cannot be read, is damaged or of another reference.
    pub fn load(prefix: &Path, genome: &Reference, threads: usize) -> Result<Placer, Error> {
        let index = open(prefix, Genome::Here(genome), threads)?;
        for array in index.arrays() {
            // In huge pages, as `align` has it; where there are none it stays as it is.
            placement::collapse(array);
        }
        let mut alone = Opts::new(None);
        alone.raw().out_n = SECONDARY;
        alone.raw().flag &= !PAIRED;
        let mut mates = alone.clone();
        mates.raw().flag |= PAIRED;
        Ok(Placer { index, alone, mates })
    }

    /// A mapper for one thread.
    pub fn mapper(&self) -> Mapper<'_> {
        let (buffer, queries, hits) = (Buffer::new(), Queries::default(), Hits::default());
        Mapper { placer: self, buffer, queries, hits }
    }
}

/// One thread's way to the index.
pub struct Mapper<'a> {
    placer: &'a Placer,
    buffer: Buffer,
    queries: Queries,
    hits: Hits,
}

impl Mapper<'_> {
    /// All alignments of one sequence, primary, supplementary and secondary.
    ///
    /// # Errors
    /// A name with a NUL byte, or more than 2 Gbp.
    pub fn map(&mut self, name: &[u8], seq: &[u8]) -> Result<Vec<Hit>, Error> {
        check(name, seq)?;
        let target = Target { index: &self.placer.index, opts: &self.placer.alone };
        self.queries.map_one(target, &mut self.buffer, (name, seq), &mut self.hits);
        Ok(self.taken(0))
    }

    /// All alignments of two mates, paired as minibwa pairs them.
    ///
    /// # Errors
    /// Those of [`Mapper::map`].
    pub fn map_pair(&mut self, name: &[u8], mates: [&[u8]; 2]) -> Result<[Vec<Hit>; 2], Error> {
        if mates.iter().any(|m| m.is_empty()) {
            return Ok([self.map(name, mates[0])?, self.map(name, mates[1])?]);
        }
        mates.iter().try_for_each(|seq| check(name, seq))?;
        let target = Target { index: &self.placer.index, opts: &self.placer.mates };
        let reads = mates.iter().map(|&seq| (name, seq));
        self.queries.map(target, &mut self.buffer, reads, &mut self.hits);
        Ok([self.taken(0), self.taken(1)])
    }

    fn taken(&self, read: usize) -> Vec<Hit> {
        self.hits.of(read).iter().map(Hit::new).collect()
    }
}

fn check(name: &[u8], seq: &[u8]) -> Result<(), Error> {
    if memchr::memchr(0, name).is_some() {
        return Err(Error::read(name, "its name has a NUL byte"));
    }
    if seq.len() > LONGEST {
        return Err(Error::read(name, "longer than 2 Gbp"));
    }
    Ok(())
}
