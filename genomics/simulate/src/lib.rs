//! Tumour and normal samples made up, with the truth; and calls scored against it. Modules in the order data flows
//! through them.
mod error;
mod rng;

mod genome;
mod made;
mod repeats;
mod tandem;

mod germline;
mod ground;
mod karyotype;
mod origin;
mod small;
mod somatic;
mod variant;

mod pipeline;

pub mod evaluate;
mod sequencing;
mod truth;

pub use error::{Error, Result};
pub use genome::Genome;
pub use germline::GermlineParams;
pub use pipeline::{GenomeSource, Params, SampleParams, Summary, simulate};
pub use sequencing::SequencingParams;
pub use somatic::SomaticParams;
