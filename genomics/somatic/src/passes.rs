//! The passes over the reads that follow the count: over the files, each pair cut as in the first pass, or over the packed copy that the first pass has left.

use genuma_reads::copy::ReadCopy;
use genuma_reads::{Lane, Pair, TUMOUR, Trimmer};
use genuma_work::Meter;

use crate::error::Error;
use crate::label::{self, Labelled};
use crate::recruit::{Index, Kept, Seen};
use crate::sought::{KmerHit, Looking, Sought};

/// Where the reads are.
#[derive(Debug, Clone, Copy)]
pub enum Reads<'a> {
    /// In files, as they came.
    Files(&'a [Lane]),
    /// In a packed copy, as they were cut.
    Copy(&'a ReadCopy),
}

/// What passes go over, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passes<'a> {
    /// The reads.
    pub reads: Reads<'a>,
    /// How many samples they are of, the normal first.
    pub samples: usize,
    /// Length of the k-mers that are looked for.
    pub k: u32,
    /// Threads, at least 1.
    pub threads: usize,
}

/// What a thread looks with, and what it found in the pair in hand.
struct Found {
    looking: Looking,
    hits: [Vec<KmerHit>; 2],
}

impl Found {
    fn new(k: u32) -> Found {
        Found { looking: Looking::new(k), hits: Default::default() }
    }
}

impl Passes<'_> {
    /// Shows every pair of all samples to `each`, with room for what it finds.
    ///
    /// # Errors
    /// Reads that cannot be read.
    pub fn all(
        &self,
        meter: &Meter,
        each: impl Fn(Pair<'_>, u8, &mut Looking, &mut Vec<KmerHit>) + Sync,
    ) -> Result<(), Error> {
        self.pass(
            0,
            meter,
            |_, _| true,
            |pair, sample, found| {
                each(pair, sample, &mut found.looking, &mut found.hits[0]);
                Ok(())
            },
        )
    }

    /// Hands on the tumours' pairs that carry k-mers that are `sought`.
    ///
    /// # Errors
    /// Reads that cannot be read, and those of `put`.
    pub fn label(
        &self,
        sought: &Sought,
        meter: &Meter,
        put: impl Fn(Labelled) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let search = |pair: Pair<'_>, found: &mut Found| {
            label::search(pair, sought, &mut found.looking, &mut found.hits)
        };
        self.pass(TUMOUR, meter, search, |pair, sample, found| {
            if search(pair, found) {
                put(Labelled::keep(pair, sample, &found.hits))?;
            }
            Ok(())
        })
    }

    /// Hands on the pairs of all samples that are recruited, and counts those `seen`.
    ///
    /// # Errors
    /// Reads that cannot be read, and those of `put`.
    pub fn recruit(
        &self,
        index: &Index,
        seen: &Seen,
        meter: &Meter,
        put: impl Fn(Kept) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let may = |pair: Pair<'_>, found: &mut Found| {
            index.may_recruit(pair, &mut found.looking, &mut found.hits[0])
        };
        self.pass(0, meter, may, |pair, sample, Found { looking, hits: [hits, _] }| {
            index.recruit(pair, sample, seen, looking, hits).map_or(Ok(()), &put)
        })
    }

    /// A pass over the reads of the samples from `first` on, each cut as in the first pass. Only those pairs go to `each` of which `may` says, before that, that they may
    /// be wanted; it is shown their bases, not always their qualities. They come in any order.
    fn pass(
        &self,
        first: u8,
        meter: &Meter,
        may: impl Fn(Pair<'_>, &mut Found) -> bool + Sync,
        each: impl Fn(Pair<'_>, u8, &mut Found) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let (threads, found) = (self.threads, || Found::new(self.k));
        let lanes = match self.reads {
            Reads::Files(lanes) => lanes,
            Reads::Copy(copy) => {
                let samples: Vec<u8> = (first..).take(self.samples - usize::from(first)).collect();
                return copy.for_each(&samples, threads, meter, found, |found, pair, sample| {
                    if may(pair.bases(), found) { each(pair.whole(), sample, found) } else { Ok(()) }
                });
            }
        };
        let of_samples = lanes.iter().filter(|lane| lane.sample >= first);
        let lanes: Vec<Lane> = of_samples.cloned().collect();
        let start = || (found(), Trimmer::default());
        genuma_reads::for_each_batch(&lanes, threads, meter, start, |(found, trimmer), batch| {
            let mut wanted = batch.iter();
            wanted.try_for_each(|pair| {
                if may(pair, found) { each(trimmer.trim(pair), batch.sample, found) } else { Ok(()) }
            })
        })
        .map(drop)
    }
}
