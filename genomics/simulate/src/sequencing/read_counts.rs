//! Counts of the molecules, reads and artefacts of a sample.

use serde::Serialize;

/// Counts of the molecules, reads and artefacts of a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ReadCounts {
    /// Number of different molecules that were sequenced.
    pub molecules: u64,
    /// Pairs that are duplicates of an earlier molecule.
    pub duplicate_pairs: u64,
    /// Pairs from another person or species.
    pub foreign_pairs: u64,
    /// Pairs from the mitochondrial genome.
    pub mitochondrial_pairs: u64,
    /// Pairs captured by targets.
    pub captured_pairs: u64,
    /// Molecules that are not longer than a read, including adapter dimers.
    pub short_inserts: u64,
    /// Molecules that consist of adapters only.
    pub(crate) adapter_dimers: u64,
    /// Molecules whose second half is the reverse complement of their first half.
    pub fold_backs: u64,
    /// Chimeric molecules of two fragments.
    pub chimeras: u64,
    /// Number of bases that oxidation changed (G>T), counted once in each molecule.
    pub oxidised_bases: u64,
    /// C>T errors by deamination, in molecules.
    pub(crate) deaminated_bases: u64,
    /// Errors at recurrent error sites, in molecules.
    #[serde(skip_serializing_if = "super::params::is_default")]
    pub recurrent_errors: u64,
    /// Substitutions by PCR, in molecules.
    pub pcr_errors: u64,
    /// Tandem repeats whose length PCR changed, in molecules.
    pub pcr_slips: u64,
    /// Tandem repeats whose length sequencing changed, in mates.
    pub(crate) sequencing_slips: u64,
    /// Homopolymers that mates show one base too short or too long.
    #[serde(skip_serializing_if = "super::params::is_default")]
    pub homopolymer_errors: u64,
    /// Mates that read into an adapter.
    pub adapter_mates: u64,
    /// Mates trimmed at their 3' end.
    pub trimmed_mates: u64,
    /// Mates with a 3' tail of quality 2.
    pub quality_tails: u64,
    /// Bases called N, in addition to those that low quality explains.
    pub(crate) n_bases: u64,
}

impl std::ops::AddAssign for ReadCounts {
    fn add_assign(&mut self, other: ReadCounts) {
        let ReadCounts {
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
            homopolymer_errors,
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
        self.homopolymer_errors += homopolymer_errors;
        self.adapter_mates += adapter_mates;
        self.trimmed_mates += trimmed_mates;
        self.quality_tails += quality_tails;
        self.n_bases += n_bases;
    }
}
