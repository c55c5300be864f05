//! What the library and the sequencer do to the reads.

use serde::Serialize;

/// The library and the sequencer.
#[derive(Debug, Clone, Serialize)]
pub struct SequencingParams {
    /// Length of each mate, bases.
    pub read_length: usize,
    /// Mean fragment length, bp.
    pub insert_mean: f64,
    /// Its standard deviation, bp.
    pub insert_sd: f64,
    /// Share of the pairs that are PCR duplicates of another pair.
    pub duplicates: f64,
    /// Mean probability that a base is wrong.
    pub error_rate: f64,
    /// Whether read names tell where both mates come from.
    #[serde(skip_serializing_if = "is_default")]
    pub true_positions: bool,
    /// What happens to molecules before they are sequenced.
    #[serde(skip_serializing_if = "is_default")]
    pub library: LibraryParams,
    /// How evenly molecules cover the genome.
    #[serde(skip_serializing_if = "is_default")]
    pub coverage: CoverageParams,
    /// What the sequencer does beyond wrong bases.
    #[serde(skip_serializing_if = "is_default")]
    pub machine: MachineParams,
}

impl Default for SequencingParams {
    fn default() -> Self {
        SequencingParams {
            read_length: 150,
            insert_mean: 400.0,
            insert_sd: 60.0,
            duplicates: 0.0,
            error_rate: 0.003,
            true_positions: false,
            library: LibraryParams::default(),
            coverage: CoverageParams::default(),
            machine: MachineParams::default(),
        }
    }
}

/// Adapters at the ends of the molecules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Adapter {
    /// Ligated, as TruSeq's.
    Truseq,
    /// Put in by a transposase, as Nextera's.
    Nextera,
}

/// What happens to molecules before they are sequenced. Everything is off by default.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LibraryParams {
    /// The adapters that short molecules are read into. Without them no fragment is shorter than a read.
    pub adapter: Option<Adapter>,
    /// Share of the fragments that are no longer than a read.
    pub short_inserts: f64,
    /// Share of the molecules that are folded back on themselves.
    pub fold_backs: f64,
    /// Share of the molecules ligated from two fragments.
    pub chimeras: f64,
    /// Probability that a G is oxidised and read as T, each.
    pub oxidation: f64,
    /// Probability that a C is deaminated and read as T, each.
    pub deamination: f64,
    /// Probability that early PCR copies a base wrongly, each.
    pub pcr_errors: f64,
    /// How often PCR changes the length of a tandem repeat; 1 is as in libraries made by PCR.
    pub pcr_slippage: f64,
}

/// How evenly molecules cover the genome.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CoverageParams {
    /// How much coverage depends on a fragment's GC content; at 1 a fragment of 25% or 70% has a third.
    pub gc_bias: f64,
    /// Coefficient of variation of coverage from one few kb to the next.
    pub unevenness: f64,
}

/// What the sequencer does beyond wrong bases. Everything is off by default.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MachineParams {
    /// Lengths of reads, one for each pair, instead of [`SequencingParams::read_length`].
    pub read_lengths: Vec<usize>,
    /// Share of the mates that were cut at their 3' ends.
    pub trimmed: f64,
    /// Two colours: no signal is read as G.
    pub two_colour: bool,
    /// Qualities of four values only.
    pub binned_qualities: bool,
    /// Share of the mates whose 3' part has quality 2.
    pub quality_tails: f64,
    /// Probability that a base is called N, each.
    pub n_rate: f64,
    /// How often a read has a tandem repeat of another length than its molecule; 1 is usual.
    pub sequencing_slippage: f64,
}

impl SequencingParams {
    /// The lengths that reads can have, bases; never empty.
    pub fn read_lengths(&self) -> &[usize] {
        if self.machine.read_lengths.is_empty() {
            std::slice::from_ref(&self.read_length)
        } else {
            &self.machine.read_lengths
        }
    }

    /// The longest of them, bases.
    pub(crate) fn longest_read(&self) -> usize {
        self.read_lengths().iter().copied().max().unwrap_or(self.read_length)
    }

    /// The adapters, if reads can reach them.
    pub fn adapter(&self) -> Option<Adapter> {
        let library = &self.library;
        let short = self.insert_mean < self.longest_read() as f64;
        let reached = short || library.short_inserts > 0.0 || library.fold_backs > 0.0;
        library.adapter.or(reached.then_some(Adapter::Truseq))
    }
}

/// For leaving out what is off when parameters are written down.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
