//! A normal beside each of several tumours of one person: a sample of roots for each, which holds what it would hold if that tumour were the only one.

use genuma_reads::packed::Packed;
use genuma_reads::{NORMAL, Pair, TUMOUR};

use crate::sampled::{SampleParams, Sampled, Sampler, Sampling};

/// The samples that are being taken, one for each tumour. Threads take them together.
#[derive(Debug)]
pub struct Samplings(Vec<Sampling>);

impl Samplings {
    /// Nothing yet of so many tumours. Each may hold what `params` say.
    pub fn new(params: SampleParams, tumours: usize) -> Samplings {
        Samplings((0..tumours).map(|_| Sampling::new(params)).collect())
    }

    /// For one thread.
    pub fn samplers(&self) -> Samplers<'_> {
        Samplers(self.0.iter().map(Sampling::sampler).collect())
    }

    /// Adds what was sampled elsewhere, by tumour.
    pub fn add_sampled(&self, others: &[Sampled]) {
        self.0.iter().zip(others).for_each(|(own, other)| own.add_sampled(other));
    }

    /// What was sampled, by tumour, when no thread takes more.
    pub fn finish(self) -> Vec<Sampled> {
        self.0.into_iter().map(Sampling::finish).collect()
    }
}

/// Takes the samples of the pairs that one thread sees.
#[derive(Debug)]
pub struct Samplers<'a>(Vec<Sampler<'a>>);

impl Samplers<'_> {
    /// Looks at a pair of a sample, normal 0, tumour 1 and so on, as it was cut; its packed bases may go on behind that.
    pub fn see(&mut self, pair: Pair<'_>, packed: [Packed<'_>; 2], sample: u8) {
        if sample == NORMAL {
            self.0.iter_mut().for_each(|own| own.see(pair, packed, NORMAL));
        } else if let Some(own) = self.0.get_mut(usize::from(sample - TUMOUR)) {
            own.see(pair, packed, TUMOUR);
        }
    }
}
