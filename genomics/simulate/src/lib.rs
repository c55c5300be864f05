//! Tumour and normal samples made up, with the truth; and calls scored against it. Modules in the order data flows
//! through them.
mod error;
mod rng;

mod presets;
mod params;

mod genome;
mod made;
mod human;
mod repeats;
mod tandem;

mod ground;
mod ploidy;
mod marks;
mod origin;
mod sequence;
mod karyotype;
mod variant;
mod targets;

mod tumour;
mod site;
mod small;
mod copies;
mod somatic;
mod linked;
mod integrated;
mod unstable;
mod germline;
mod foreign;
mod mitochondrion;

mod cells;
mod samples;
mod sequencing;
mod recurrent;
mod truth;
mod content;
mod pipeline;

pub mod evaluate;

pub use copies::{Aneuploid, CopyParams};
pub use error::{Error, Result};
pub use foreign::{ForeignParams, Kin};
pub use genome::Genome;
pub use germline::GermlineParams;
pub use integrated::IntegratedParams;
pub use linked::LinkedParams;
pub use params::{GenomeSource, Params, SampleParams};
pub use pipeline::{Summary, Which, simulate, stream};
pub use presets::Preset;
pub use recurrent::RecurrentParams;
pub use sequencing::{Adapter, Counts, CoverageParams, LibraryParams, MachineParams, SequencingParams};
pub use somatic::SomaticParams;
pub use targets::{CaptureParams, TargetSource};
pub use unstable::UnstableParams;
