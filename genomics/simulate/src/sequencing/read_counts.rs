//! Numbers of simulated molecules, reads and artefacts of a sample.

use serde::Serialize;

/// Numbers of simulated molecules, reads and artefacts of a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ReadAndArtefactCounts {
    /// Number of different molecules that were sequenced.
    pub molecules: u64,
    /// Number of read pairs that are duplicates: their molecule was already sequenced by another pair.
    pub duplicate_pairs: u64,
    /// Number of read pairs from another person or species.
    pub foreign_pairs: u64,
    /// Number of read pairs from the mitochondrial genome.
    pub mitochondrial_pairs: u64,
    /// Number of read pairs from fragments that were enriched by target capture.
    pub captured_pairs: u64,
    /// Number of molecules that were drawn as short inserts (see `LibraryParams::short_inserts`), adapter dimers
    /// included.
    pub short_inserts: u64,
    /// Number of molecules that consist of adapters only.
    pub(crate) adapter_dimers: u64,
    /// Number of fold-back molecules, whose second half is the reverse complement of their first half.
    pub fold_backs: u64,
    /// Number of chimeric molecules, which consist of two fragments.
    pub chimeras: u64,
    /// Number of bases that oxidation changed (G>T), summed over molecules.
    pub oxidised_bases: u64,
    /// Number of bases that deamination changed (C>T), summed over molecules.
    pub(crate) deaminated_bases: u64,
    /// Number of errors at recurrent error sites, summed over molecules.
    #[serde(skip_serializing_if = "super::params::is_default")]
    pub recurrent_errors: u64,
    /// Number of substitution errors made by PCR, summed over molecules.
    pub pcr_errors: u64,
    /// Number of tandem repeats whose length PCR changed, summed over molecules.
    pub pcr_slips: u64,
    /// Number of tandem repeats whose length sequencing changed, summed over mates.
    pub(crate) sequencing_slips: u64,
    /// Number of homopolymers that are one base too short or too long in a mate, summed over mates.
    #[serde(skip_serializing_if = "super::params::is_default")]
    pub homopolymer_errors: u64,
    /// Number of mates that contain adapter sequence.
    pub adapter_mates: u64,
    /// Number of mates that were shortened at their 3' end.
    pub trimmed_mates: u64,
    /// Number of mates with a 3' tail of quality 2.
    pub quality_tails: u64,
    /// Number of bases that were called N by the N rate, without those called N because of low quality.
    pub(crate) n_bases: u64,
}

impl std::ops::AddAssign for ReadAndArtefactCounts {
    fn add_assign(&mut self, other: ReadAndArtefactCounts) {
        let ReadAndArtefactCounts {
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
