//! Both samples looked at without counting all of their k-mers: one pass over the reads.

use genuma_reads::{Error, Estimate, Lane, Meter, Trimmed, Trimmer, for_each_batch};

use crate::each::{Samplers, Samplings};
use crate::facts::Looked;
use crate::library::facts::Libraries;
use crate::library::{LibraryTally, Observer, Seen};
use crate::sampled::{SampleParams, Sampled};

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
    trimmers: Vec<Trimmer>,
    observer: Observer,
    samplers: Samplers<'a>,
}

/// Pairs that are expected of each of so many samples.
pub fn pairs_expected(by_sample: &[Estimate], samples: usize) -> Vec<u64> {
    (0..samples).map(|sample| by_sample.get(sample).map_or(0, |own| own.reads / 2)).collect()
}

/// Looks at all lanes, those of the normal and of one tumour or several of the same person: the normal beside each, in their order.
///
/// # Errors
/// Reads that cannot be read.
pub fn check(
    lanes: &[Lane],
    tumours: usize,
    params: SampleParams,
    threads: usize,
    meter: &Meter,
) -> Result<Vec<Checked>, Error> {
    let (samplings, samples) = (Samplings::new(params, tumours), tumours + 1);
    let expected = pairs_expected(&Estimate::by_sample(lanes), samples);
    let start = || Look {
        trimmers: (0..samples).map(|_| Trimmer::default()).collect(),
        observer: Observer::expecting(&expected),
        samplers: samplings.samplers(),
    };
    let looks = for_each_batch(lanes, threads, meter, start, |look, batch| {
        let trimmer = &mut look.trimmers[usize::from(batch.sample)];
        for raw in batch.iter() {
            let cut = trimmer.trim(raw);
            look.observer.see(&Seen { raw, cut, packed: trimmer.packed() }, batch.sample);
            look.samplers.see(cut, trimmer.packed(), batch.sample);
        }
        Ok::<(), Error>(())
    })?;
    let mut trimmed = vec![Trimmed::default(); samples];
    let mut tallies = vec![LibraryTally::default(); samples];
    for Look { trimmers, observer, samplers } in looks {
        drop(samplers);
        trimmed.iter_mut().zip(&trimmers).for_each(|(sum, own)| sum.add(&own.counts()));
        tallies.iter_mut().zip(observer.finish()).for_each(|(sum, own)| sum.add(&own));
    }
    let of = |(tumour, sampled): (usize, Sampled)| {
        // Depth as the reads have it is not known: roots in good bases are fewer.
        let libraries =
            Libraries::of([&tallies[0], &tallies[tumour]], [&trimmed[0], &trimmed[tumour]], [None, None]);
        let bases = [tallies[0].bases(), tallies[tumour].bases()];
        Checked { looked: Looked::at(&sampled), libraries, bases }
    };
    Ok((1..).zip(samplings.finish()).map(of).collect())
}
