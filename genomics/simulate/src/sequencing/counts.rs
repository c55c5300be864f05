//! What became of the molecules and reads of a sample.

use serde::Serialize;

/// How many of each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Molecules sequenced.
    pub molecules: u64,
    /// Pairs that are copies of a molecule sequenced already.
    pub duplicate_pairs: u64,
    /// Pairs from another person or species.
    pub foreign_pairs: u64,
    /// Pairs of the mitochondrial genome.
    pub mitochondrial_pairs: u64,
    /// Pairs caught by targets.
    pub captured_pairs: u64,
    /// Molecules made no longer than a read, dimers among them.
    pub short_inserts: u64,
    /// Molecules that are nothing but adapters.
    pub(crate) adapter_dimers: u64,
    /// Molecules folded back on themselves.
    pub fold_backs: u64,
    /// Molecules joined from two fragments.
    pub chimeras: u64,
    /// G read as T, in molecules.
    pub oxidised_bases: u64,
    /// C read as T, in molecules.
    pub(crate) deaminated_bases: u64,
    /// Bases shown wrongly at places where every library shows them, in molecules.
    #[serde(skip_serializing_if = "super::params::is_default")]
    pub recurrent_errors: u64,
    /// Bases that PCR copied wrongly, in molecules.
    pub pcr_errors: u64,
    /// Tandem repeats whose length PCR changed, in molecules.
    pub pcr_slips: u64,
    /// Tandem repeats whose length sequencing changed, in mates.
    pub(crate) sequencing_slips: u64,
    /// Mates that run into an adapter.
    pub adapter_mates: u64,
    /// Mates cut at their 3' ends.
    pub trimmed_mates: u64,
    /// Mates with a 3' part of quality 2.
    pub quality_tails: u64,
    /// Bases called N beyond what the qualities lead to.
    pub(crate) n_bases: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        let Counts {
            molecules,
            duplicate_pairs,
            foreign_pairs,
            mitochondrial_pairs,
            captured_pairs,
            short_inserts,
            adapter_dimers,
            fold_backs,
            chimeras,
            oxidised_bases,
            deaminated_bases,
            recurrent_errors,
            pcr_errors,
            pcr_slips,
            sequencing_slips,
            adapter_mates,
            trimmed_mates,
            quality_tails,
            n_bases,
        } = other;
        self.molecules += molecules;
        self.duplicate_pairs += duplicate_pairs;
        self.foreign_pairs += foreign_pairs;
        self.mitochondrial_pairs += mitochondrial_pairs;
        self.captured_pairs += captured_pairs;
        self.short_inserts += short_inserts;
        self.adapter_dimers += adapter_dimers;
        self.fold_backs += fold_backs;
        self.chimeras += chimeras;
        self.oxidised_bases += oxidised_bases;
        self.deaminated_bases += deaminated_bases;
        self.recurrent_errors += recurrent_errors;
        self.pcr_errors += pcr_errors;
        self.pcr_slips += pcr_slips;
        self.sequencing_slips += sequencing_slips;
        self.adapter_mates += adapter_mates;
        self.trimmed_mates += trimmed_mates;
        self.quality_tails += quality_tails;
        self.n_bases += n_bases;
    }
}
