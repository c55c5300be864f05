//! K-mer sketches of one normal and several tumours of a person: one sketch per tumour. Each has the same content as if
//! this tumour were the only one.

use genuma_reads::packed_bases::PackedBases;
use genuma_reads::{NORMAL_SAMPLE, ReadPair, TUMOUR_SAMPLE};

use crate::sketch::{KmerSketch, SketchBuilder, SketchParams, SketchWriter};

/// The sketches under construction, one per tumour, which all reader threads fill together.
#[derive(Debug)]
pub struct SketchBuilders(Vec<SketchBuilder>);

impl SketchBuilders {
    /// Creates an empty sketch for each of `tumours` tumours. Each sketch may hold as many k-mers as `params` allow.
    pub fn empty_for_tumours(params: SketchParams, tumours: usize) -> SketchBuilders {
        SketchBuilders((0..tumours).map(|_| SketchBuilder::empty(params)).collect())
    }

    /// Creates writers through which one thread adds read pairs to all sketches.
    pub fn new_writers(&self) -> SketchWriters<'_> {
        SketchWriters(self.0.iter().map(SketchBuilder::new_writer).collect())
    }

    /// Adds the counts of finished sketches from another shard of the reads, one per tumour.
    pub fn merge_sketches(&self, others: &[KmerSketch]) {
        self.0.iter().zip(others).for_each(|(own, other)| own.merge_sketch(other));
    }

    /// Takes the finished sketches out of the builders, one per tumour. All writers must have been dropped.
    pub fn take_sketches(&self) -> Vec<KmerSketch> {
        self.0.iter().map(SketchBuilder::take_sketch).collect()
    }
}

/// Adds the read pairs of one thread to the sketches of all tumours.
#[derive(Debug)]
pub struct SketchWriters<'a>(Vec<SketchWriter<'a>>);

impl SketchWriters<'_> {
    /// Adds a trimmed read pair to the sketches. A pair of the normal (`sample` 0) is added to all sketches, a pair of
    /// tumour i (`sample` i) only to the sketch of this tumour. The packed bases may be longer than the trimmed mates.
    pub fn add_pair(&mut self, pair: ReadPair<'_>, packed: [PackedBases<'_>; 2], sample: u8) {
        if sample == NORMAL_SAMPLE {
            self.0.iter_mut().for_each(|own| own.add_pair(pair, packed, NORMAL_SAMPLE));
        } else if let Some(own) = self.0.get_mut(usize::from(sample - TUMOUR_SAMPLE)) {
            own.add_pair(pair, packed, TUMOUR_SAMPLE);
        }
    }
}
