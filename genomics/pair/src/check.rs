//! Both samples looked at without counting all of their k-mers: one pass over the reads.

use genuma_reads::{Error, Estimate, Lane, Meter, Trimmed, Trimmer, for_each_batch};

use crate::facts::Looked;
use crate::library::facts::Libraries;
use crate::library::{LibraryTally, Observer, Seen};
use crate::sampled::{SampleParams, Sampler, Sampling};

/// What a look at the reads of a normal and a tumour gives.
#[derive(Debug, Clone)]
pub struct Checked {
    /// What a sample of the roots says.
    pub looked: Looked,
    /// What the reads say of the libraries.
    pub libraries: Libraries,
    /// Bases read of the normal and of the tumour.
    pub bases: [u64; 2],
}

/// What one thread sees.
struct Look<'a> {
    trimmers: [Trimmer; 2],
    observer: Observer,
    sampler: Sampler<'a>,
}

/// Pairs that are expected of the normal and of the first tumour.
pub fn pairs_expected(by_sample: &[Estimate]) -> [u64; 2] {
    [0, 1].map(|sample| by_sample.get(sample).map_or(0, |own| own.reads / 2))
}

/// Looks at all lanes, those of the normal and of the tumour.
///
/// # Errors
/// Reads that cannot be read.
pub fn check(lanes: &[Lane], params: SampleParams, threads: usize, meter: &Meter) -> Result<Checked, Error> {
    let sampling = Sampling::new(params);
    let expected = pairs_expected(&Estimate::by_sample(lanes));
    let start = || Look {
        trimmers: Default::default(),
        observer: Observer::expecting(expected),
        sampler: sampling.sampler(),
    };
    let looks = for_each_batch(lanes, threads, meter, start, |look, batch| {
        let trimmer = &mut look.trimmers[usize::from(batch.sample)];
        for raw in batch.iter() {
            let cut = trimmer.trim(raw);
            look.observer.see(&Seen { raw, cut, packed: trimmer.packed() }, batch.sample);
            look.sampler.see(cut, trimmer.packed(), batch.sample);
        }
        Ok::<(), Error>(())
    })?;
    let (mut trimmed, mut tallies): ([Trimmed; 2], [LibraryTally; 2]) = Default::default();
    for Look { trimmers, observer, sampler } in looks {
        drop(sampler);
        trimmed.iter_mut().zip(&trimmers).for_each(|(sum, own)| sum.add(&own.counts()));
        tallies.iter_mut().zip(observer.finish()).for_each(|(sum, own)| sum.add(&own));
    }
    let looked = Looked::at(&sampling.finish());
    let bases = tallies.each_ref().map(LibraryTally::bases);
    // Depth as the reads have it is not known: roots in good bases are fewer.
    let libraries = Libraries::of(&tallies, &trimmed, [None, None]);
    Ok(Checked { looked, libraries, bases })
}
