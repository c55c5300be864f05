//! A file being read: by several workers, or by one thread for whoever wants its reads in a fixed order.

use std::collections::BTreeSet;
use std::io::PipeReader;
use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::batch::{Mate, PairBatch};
use crate::error::{Error, FileFault};
use crate::inflate::Access;
use crate::packed_read::Packer;
use crate::pipe::is_regular;
use genuma_work::Meter;

use super::bam::Bam;
use super::cbq::{self, Cbq};
use super::cram::{self, Cram};
use super::file::{Aligned, Format};
use super::mates::{Mates, ROOM, Rest};
use super::pairing::{Pairing, Template};
use super::piece::Piece;
use super::tally::Tally;
use super::vbq::{self, Vbq};

/// Templates that are handed on at once when all was read.
const BATCH: usize = 1024;

/// What a file is read with, beside the threads that read it.
#[derive(Debug, Clone)]
pub(crate) struct Crew {
    /// Threads that inflate it.
    inflaters: usize,
    /// Where pipes are welcome: waiting for one ends when the other end of this is dropped.
    pipes: Option<Arc<PipeReader>>,
}

impl Crew {
    /// Of each of `files` that `threads` read together: inflating is about a third of what there is to do with reads, and one thread more for a file gains nothing where
    /// a reader would wait for it.
    pub(crate) fn of(threads: usize, files: usize) -> Crew {
        Crew::exactly(threads / (3 * files.max(1)))
    }

    /// So many, if these are of use.
    pub(crate) fn exactly(threads: usize) -> Crew {
        Crew { inflaters: if threads < 2 { 0 } else { threads }, pipes: None }
    }

    /// The same for a pipe as well.
    pub(crate) fn or_pipe(self, pipes: Option<Arc<PipeReader>>) -> Crew {
        Crew { pipes, ..self }
    }
}

/// What a worker reads with; reused for every batch.
#[derive(Default)]
pub(crate) struct Hands {
    cut: Cut,
    pairing: Pairing,
    rest: Option<Rest>,
}

impl Hands {
    /// Records of the file before those in hand.
    pub(crate) fn before(&self) -> u64 {
        match &self.cut.packed {
            Packed::None => self.cut.piece.before,
            Packed::Cram(container) => container.as_ref().map_or(0, cram::Packed::before),
            Packed::Cbq(block) => block.before(),
            Packed::Vbq(block) => block.before(),
        }
    }
}

/// Some records, as they were cut from a file.
#[derive(Default)]
struct Cut {
    piece: Piece,
    packed: Packed,
}

/// What is to be decoded into a piece.
#[derive(Default)]
enum Packed {
    /// Nothing: of BAM pieces are cut as they are.
    #[default]
    None,
    Cram(Option<cram::Packed>),
    Cbq(Box<cbq::Packed>),
    Vbq(Box<vbq::Packed>),
}

impl Cut {
    /// Finds the reads among the records, and counts these.
    fn find(&mut self, path: &Path, tally: &mut Tally) -> Result<(), Error> {
        match &mut self.packed {
            Packed::Cram(Some(container)) => container.find(path, &mut self.piece, tally),
            Packed::Cbq(block) => block.find(path, &mut self.piece, tally),
            Packed::Vbq(block) => block.find(path, &mut self.piece, tally),
            Packed::None | Packed::Cram(None) => self.piece.find(path, tally),
        }
    }
}

/// A file of any of the formats.
enum Records<M> {
    Bam(Box<Bam<M>>),
    Cbq(Box<Cbq<M>>),
    Cram(Box<Cram<M>>),
    Vbq(Box<Vbq<M>>),
}

impl<M: Deref<Target = Meter>> Records<M> {
    fn open(of: &Aligned, meter: M, crew: &Crew) -> Result<Self, Error> {
        let pipes = crew.pipes.clone();
        Ok(match Format::of(&of.path) {
            Ok(Some(Format::Cram)) => {
                let genome = &of.options.genome;
                Records::Cram(Box::new(Cram::open(&of.path, meter, genome, pipes.as_ref())?))
            }
            Ok(Some(Format::Cbq)) => Records::Cbq(Box::new(Cbq::open(&of.path, meter)?)),
            Ok(Some(Format::Vbq)) => Records::Vbq(Box::new(Vbq::open(&of.path, meter)?)),
            _ => {
                let access = Access { inflaters: crew.inflaters, pipes, ..Access::default() };
                Records::Bam(Box::new(Bam::open(&of.path, meter, access)?))
            }
        })
    }

    fn cut(&mut self, cut: &mut Cut) -> Result<bool, Error> {
        match self {
            Records::Bam(bam) => {
                // Hands go from file to file: those of a CRAM file hold its last container still.
                cut.packed = Packed::None;
                bam.cut(&mut cut.piece)
            }
            Records::Cram(cram) => {
                if !matches!(cut.packed, Packed::Cram(_)) {
                    cut.packed = Packed::Cram(None);
                }
                let Packed::Cram(container) = &mut cut.packed else { return Ok(false) };
                cram.cut(container)
            }
            Records::Cbq(cbq) => {
                if !matches!(cut.packed, Packed::Cbq(_)) {
                    cut.packed = Packed::Cbq(Box::default());
                }
                let Packed::Cbq(block) = &mut cut.packed else { return Ok(false) };
                cbq.cut(block)
            }
            Records::Vbq(vbq) => {
                if !matches!(cut.packed, Packed::Vbq(_)) {
                    cut.packed = Packed::Vbq(Box::default());
                }
                let Packed::Vbq(block) = &mut cut.packed else { return Ok(false) };
                vbq.cut(block)
            }
        }
    }

    /// Bytes of the file that were read and are not in pieces yet, as far as that is known.
    fn ahead(&self) -> u64 {
        match self {
            Records::Bam(_) => 0,
            Records::Cbq(cbq) => cbq.ahead(),
            Records::Vbq(vbq) => vbq.ahead(),
            Records::Cram(cram) => cram.ahead(),
        }
    }
}

/// Samples that the read groups of a file are of.
pub(super) fn samples(of: &Aligned) -> Result<BTreeSet<String>, Error> {
    if !is_regular(&of.path).map_err(|source| Error::Read { path: of.path.clone(), source })? {
        return Ok(BTreeSet::new());
    }
    Ok(match Records::open(of, &Meter::default(), &Crew::exactly(0))? {
        Records::Bam(bam) => bam.samples,
        Records::Cram(cram) => cram.samples(),
        // They have no read groups.
        Records::Cbq(_) | Records::Vbq(_) => BTreeSet::new(),
    })
}

/// Looks at the end and the header of a file.
pub(crate) fn check(of: &Aligned) -> Result<(), Error> {
    Records::open(of, &Meter::default(), &Crew::exactly(0)).map(drop)
}

/// What the beginning of a file holds, up to so many bytes of records: its reads, their bases, the bytes that a copy takes of them, and the bytes of the file that they
/// take. What cannot be read is told by whoever reads it.
pub(crate) fn estimate(of: &Aligned, look: u64) -> Option<[u64; 4]> {
    let (path, meter) = (&of.path, Meter::default());
    let mut file = Records::open(of, &meter, &Crew::exactly(0)).ok()?;
    let (mut cut, mut tally, mut packer) = (Cut::default(), Tally::default(), Packer::default());
    let ([mut reads, mut bases, mut copied], mut looked) = ([0; 3], 0);
    let [mut seq, mut qual, mut packed] = <[Vec<u8>; 3]>::default();
    while looked < look {
        if !file.cut(&mut cut).ok()? {
            return Some([reads, bases, copied, path.metadata().ok()?.len()]);
        }
        cut.find(path, &mut tally).ok()?;
        let piece = &cut.piece;
        looked += piece.len() as u64;
        for read in &piece.reads {
            piece.letters(read, &mut seq, &mut qual);
            packed.clear();
            packer.pack(&seq, &qual, &mut packed);
            reads += 1;
            bases += seq.len() as u64;
            copied += packed.len() as u64 + piece.name(read).len() as u64 / 2;
        }
    }
    Some([reads, bases, copied, meter.bytes_done() - file.ahead()])
}

fn waiting(of: &Aligned) -> Result<Mates, Error> {
    let unreadable = |source| Error::Read { path: of.path.clone(), source };
    // Nobody knows how much there is in a pipe.
    let size = match is_regular(&of.path).map_err(unreadable)? {
        true => of.path.metadata().map_err(unreadable)?.len(),
        false => u64::MAX,
    };
    let folder = of.options.work.clone().unwrap_or_else(std::env::temp_dir);
    Ok(Mates::new(size, ROOM, &folder))
}

/// One file being read by several workers.
pub(crate) struct Source<'a> {
    of: &'a Aligned,
    sample: u8,
    meter: &'a Meter,
    crew: Crew,
    mates: Option<Mates>,
    file: Mutex<State<'a>>,
    /// Told when a worker has shown the mates of its piece to the others.
    shown: Condvar,
    /// The next part of those that waited to the end.
    next: AtomicUsize,
    tally: Mutex<Tally>,
}

struct State<'a> {
    file: File<'a>,
    /// Workers that have a piece whose reads they have not shown to the others.
    at_work: usize,
    /// Parts of those that waited to the end; known when all have been shown.
    parts: Option<usize>,
}

enum File<'a> {
    Unopened,
    Open(Records<&'a Meter>),
    Over,
}

/// A worker that has a piece.
struct AtWork<'s, 'a>(&'s Source<'a>);

impl Drop for AtWork<'_, '_> {
    fn drop(&mut self) {
        lock(&self.0.file).at_work -= 1;
        self.0.shown.notify_all();
    }
}

impl<'a> Source<'a> {
    /// Of a sample.
    pub(crate) fn new(of: &'a Aligned, sample: u8, meter: &'a Meter, crew: Crew) -> Result<Self, Error> {
        let mates = if of.options.mates { Some(waiting(of)?) } else { None };
        Ok(Source {
            of,
            sample,
            meter,
            crew,
            mates,
            file: Mutex::new(State { file: File::Unopened, at_work: 0, parts: None }),
            shown: Condvar::new(),
            next: AtomicUsize::new(0),
            tally: Mutex::default(),
        })
    }

    /// Reads the next pairs into `batch`; false when there are none left.
    pub(crate) fn fetch(&self, hands: &mut Hands, batch: &mut PairBatch) -> Result<bool, Error> {
        let path = &self.of.path;
        batch.clear();
        batch.sample = self.sample;
        let mut tally = Tally::default();
        let fetched = loop {
            if let Some(rest) = &mut hands.rest {
                let more =
                    hands.pairing.rest(rest, BATCH, &mut tally, |template| push(template, path, batch))?;
                if !more {
                    hands.rest = None;
                }
            } else if let Some(at_work) = self.cut(&mut hands.cut)? {
                hands.cut.find(path, &mut tally)?;
                let mates = self.mates.as_ref();
                hands.pairing.pair(&hands.cut.piece, path, mates, |template| push(template, path, batch))?;
                drop(at_work);
            } else if let Some(rest) = self.waited()? {
                hands.rest = Some(rest);
            } else {
                break false;
            }
            if !batch.is_empty() {
                break true;
            }
        };
        lock(&self.tally).add(&tally);
        Ok(fetched)
    }

    /// Cuts the next piece; none when there are no more.
    fn cut(&self, cut: &mut Cut) -> Result<Option<AtWork<'_, 'a>>, Error> {
        let mut state = lock(&self.file);
        // What is wrong with a file is met once.
        let mut file = match std::mem::replace(&mut state.file, File::Over) {
            File::Unopened => Records::open(self.of, self.meter, &self.crew)?,
            File::Open(file) => file,
            File::Over => return Ok(None),
        };
        if !file.cut(cut)? {
            return Ok(None);
        }
        state.file = File::Open(file);
        state.at_work += 1;
        Ok(Some(AtWork(self)))
    }

    /// The next part of those that waited to the end, which is when all workers have shown what they had.
    fn waited(&self) -> Result<Option<Rest>, Error> {
        let Some(mates) = &self.mates else { return Ok(None) };
        let mut state = lock(&self.file);
        while state.at_work > 0 {
            state = self.shown.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let parts = match state.parts {
            Some(parts) => parts,
            None => *state.parts.insert(mates.settle()?),
        };
        drop(state);
        let number = self.next.fetch_add(1, Relaxed);
        Ok(if number < parts { Some(mates.take(number)?) } else { None })
    }

    /// Notes what there was in the file, which all workers have read to its end.
    pub(crate) fn finish(self) {
        self.of.tell(self.tally.into_inner().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Appends a template to a batch of pairs.
fn push(template: Template<'_>, path: &Path, batch: &mut PairBatch) -> Result<(), Error> {
    if template.mates.iter().flatten().any(|mate| mate.qual.len() < mate.seq.len()) {
        let name = String::from_utf8_lossy(template.name).into_owned();
        return Err(Error::file(path, FileFault::NoQualities { name }));
    }
    let empty = Mate { seq: &[], qual: &[] };
    batch.push(template.name, template.mates.map(|mate| mate.unwrap_or(empty)));
    Ok(())
}

/// One file being read in the order of its records: templates come as their last reads do, and at the end those whose mates are not there.
pub(crate) struct Reader<M> {
    of: Aligned,
    file: Option<Records<M>>,
    mates: Option<Mates>,
    hands: Hands,
    parts: std::ops::Range<usize>,
    tally: Tally,
}

impl<M: Deref<Target = Meter>> Reader<M> {
    pub(crate) fn open(of: &Aligned, meter: M, crew: Crew) -> Result<Self, Error> {
        let mates = if of.options.mates { Some(waiting(of)?) } else { None };
        let file = Some(Records::open(of, meter, &crew)?);
        Ok(Reader {
            of: of.clone(),
            file,
            mates,
            hands: Hands::default(),
            parts: 0..0,
            tally: Tally::default(),
        })
    }

    /// Hands on the next templates, some of them at least unless there are none left, which is told by false.
    pub(crate) fn next<E: From<Error>>(
        &mut self,
        each: impl FnMut(Template<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let Reader { of, file, mates, hands, parts, tally } = self;
        if let Some(open) = file {
            if open.cut(&mut hands.cut)? {
                hands.cut.find(&of.path, tally)?;
                hands.pairing.pair(&hands.cut.piece, &of.path, mates.as_ref(), each)?;
                return Ok(true);
            }
            *file = None;
            if let Some(mates) = mates {
                *parts = 0..mates.settle().map_err(Error::from)?;
            }
        }
        if let (Some(mates), Some(part)) = (mates, parts.next()) {
            let mut rest = mates.take(part).map_err(Error::from)?;
            hands.pairing.rest(&mut rest, usize::MAX, tally, each)?;
            return Ok(true);
        }
        of.tell(std::mem::take(tally));
        Ok(false)
    }
}

/// Takes a lock even if its last holder panicked: the panic itself is passed on when the threads are joined.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
