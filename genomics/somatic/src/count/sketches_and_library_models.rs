//! k-mer sketches and library models, which the first pass over the reads makes.

use genuma_pair::assay::{GivenAssayAndGenomeSize, RandomOrFixedEnds};
use genuma_pair::library::LibraryTally;
use genuma_pair::library_properties::SamplePairLibraryProperties;
use genuma_pair::sketch::KmerSketch;
use genuma_pair::sketches_per_tumour::SketchBuilders;

/// For each tumour, the k-mer sketch of the tumour and the normal, and the properties of both libraries.
#[derive(Default)]
pub(super) struct SketchesAndLibraryModels {
    /// One sketch for each tumour; empty if an earlier pass made the sketches.
    pub(super) sketches: Vec<KmerSketch>,
    /// One library model for each tumour.
    pub(super) models: Vec<SamplePairLibraryProperties>,
}

impl SketchesAndLibraryModels {
    /// Finishes the sketches and estimates the library models. `tallies` has the library statistics of all samples.
    pub(super) fn finish_sketches_and_estimate_models(
        tallies: &[LibraryTally],
        sketches: &SketchBuilders,
        context: &GivenAssayAndGenomeSize,
    ) -> SketchesAndLibraryModels {
        let mut sketches = sketches.take_sketches();
        let model = |(sketch, tumour): (&KmerSketch, &LibraryTally)| {
            SamplePairLibraryProperties::from_tallies_and_sketch([&tallies[0], tumour], sketch, context)
        };
        let models: Vec<SamplePairLibraryProperties> = sketches.iter().zip(&tallies[1..]).map(model).collect();
        for (sketch, model) in sketches.iter_mut().zip(&models) {
            for (sample, library) in [&model.normal, &model.tumour].into_iter().enumerate() {
                if library.fragment_ends == RandomOrFixedEnds::Fixed {
                    sketch.treat_pairs_as_molecules(sample);
                }
            }
        }
        SketchesAndLibraryModels { sketches, models }
    }

    /// Library models of an earlier pass, without sketches.
    pub(super) fn from_models_of_earlier_pass(models: &[SamplePairLibraryProperties]) -> SketchesAndLibraryModels {
        SketchesAndLibraryModels { sketches: Vec::new(), models: models.to_vec() }
    }
}
