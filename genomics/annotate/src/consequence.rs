//! Consequences of variants for transcripts, with their names in `bcftools csq` and in the Sequence Ontology.

use std::collections::BTreeSet;

/// Consequence of a variant for a transcript. The variants of the enum are in the order of severity of Ensembl VEP, the
/// most severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Consequence {
    /// All exons of the transcript are deleted.
    TranscriptAblation,
    /// A gene fusion: the start of this transcript is joined to the end of a transcript of another gene, or the other
    /// way round.
    GeneFusion,
    /// One of the last two bases of an intron, in the direction of the transcript, changes.
    SpliceAcceptor,
    /// One of the first two bases of an intron, in the direction of the transcript, changes.
    SpliceDonor,
    /// A new stop codon ends the protein early.
    StopGained,
    /// An insertion or deletion shifts the reading frame.
    Frameshift,
    /// The stop codon is lost.
    StopLost,
    /// The start codon is lost.
    StartLost,
    /// All exons of the transcript are duplicated.
    TranscriptAmplification,
    /// Some exons of the transcript, or parts of them, are deleted.
    ExonLoss,
    /// Some exons of the transcript, or parts of them, are duplicated.
    FeatureElongation,
    /// A junction breaks the transcript.
    FeatureTruncation,
    /// Whole codons are inserted; the reading frame is kept.
    InframeInsertion,
    /// Whole codons are deleted; the reading frame is kept.
    InframeDeletion,
    /// Insertions and deletions that are translated together change the protein, but keep the reading frame and the
    /// length.
    InframeAltering,
    /// An amino acid changes.
    Missense,
    /// A base near a splice site changes: one of the 3 exon bases next to the intron, or of intron bases 3 to 8.
    SpliceRegion,
    /// The start codon changes but stays a start codon.
    StartRetained,
    /// The stop codon changes but stays a stop codon.
    StopRetained,
    /// The codon changes, the amino acid does not.
    Synonymous,
    /// The coding sequence changes, but no protein can be predicted.
    CodingSequence,
    /// The untranslated region before the start codon changes.
    FivePrimeUtr,
    /// The untranslated region after the stop codon changes.
    ThreePrimeUtr,
    /// An exon of a non-coding transcript changes.
    NonCodingExon,
    /// An intron of a coding transcript changes.
    Intron,
    /// An intron of a non-coding transcript changes.
    NonCodingIntron,
}

/// For each consequence, its name in `bcftools csq`, and its Sequence Ontology terms joined by `&` as VEP writes them.
const NAMES: [(Consequence, &str, &str); 26] = [
    (Consequence::TranscriptAblation, "transcript_ablation", "transcript_ablation"),
    (Consequence::GeneFusion, "gene_fusion", "gene_fusion"),
    (Consequence::SpliceAcceptor, "splice_acceptor", "splice_acceptor_variant"),
    (Consequence::SpliceDonor, "splice_donor", "splice_donor_variant"),
    (Consequence::StopGained, "stop_gained", "stop_gained"),
    (Consequence::Frameshift, "frameshift", "frameshift_variant"),
    (Consequence::StopLost, "stop_lost", "stop_lost"),
    (Consequence::StartLost, "start_lost", "start_lost"),
    (Consequence::TranscriptAmplification, "transcript_amplification", "transcript_amplification"),
    (Consequence::ExonLoss, "exon_loss", "exon_loss_variant"),
    (Consequence::FeatureElongation, "feature_elongation", "feature_elongation"),
    (Consequence::FeatureTruncation, "feature_truncation", "feature_truncation"),
    (Consequence::InframeInsertion, "inframe_insertion", "inframe_insertion"),
    (Consequence::InframeDeletion, "inframe_deletion", "inframe_deletion"),
    (Consequence::InframeAltering, "inframe_altering", "protein_altering_variant"),
    (Consequence::Missense, "missense", "missense_variant"),
    (Consequence::SpliceRegion, "splice_region", "splice_region_variant"),
    (Consequence::StartRetained, "start_retained", "start_retained_variant"),
    (Consequence::StopRetained, "stop_retained", "stop_retained_variant"),
    (Consequence::Synonymous, "synonymous", "synonymous_variant"),
    (Consequence::CodingSequence, "coding_sequence", "coding_sequence_variant"),
    (Consequence::FivePrimeUtr, "5_prime_utr", "5_prime_UTR_variant"),
    (Consequence::ThreePrimeUtr, "3_prime_utr", "3_prime_UTR_variant"),
    (Consequence::NonCodingExon, "non_coding", "non_coding_transcript_exon_variant"),
    (Consequence::Intron, "intron", "intron_variant"),
    (Consequence::NonCodingIntron, "non_coding", "intron_variant&non_coding_transcript_variant"),
];

/// The consequences of a variant for one transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConsequenceSet(BTreeSet<Consequence>);

impl ConsequenceSet {
    /// Adds a consequence to the set.
    pub fn insert(&mut self, consequence: Consequence) {
        self.0.insert(consequence);
    }

    /// Adds a consequence to the set if `condition` is true.
    pub(crate) fn insert_consequence_if(&mut self, condition: bool, consequence: Consequence) {
        if condition {
            self.0.insert(consequence);
        }
    }

    /// Adds all consequences of another set.
    pub fn extend(&mut self, other: &ConsequenceSet) {
        self.0.extend(&other.0);
    }

    /// Whether the set contains a consequence.
    pub fn contains(&self, consequence: Consequence) -> bool {
        self.0.contains(&consequence)
    }

    /// Whether the set is empty: the variant has no consequence for the transcript.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The most severe consequence, in the order of [`Consequence`]; `None` if the set is empty.
    pub(crate) fn most_severe(&self) -> Option<Consequence> {
        self.0.first().copied()
    }

    /// Names of all consequences as `bcftools csq` writes them, joined by `&`.
    pub fn bcftools_csq_names(&self) -> String {
        self.join_names(|(_, name, _)| name)
    }

    /// Sequence Ontology terms of all consequences as VEP writes them, joined by `&`.
    pub fn ontology_terms(&self) -> String {
        self.join_names(|(_, _, terms)| terms)
    }

    fn join_names(&self, column: impl Fn((Consequence, &'static str, &'static str)) -> &'static str) -> String {
        let rows = NAMES.iter().filter(|(consequence, ..)| self.0.contains(consequence));
        let mut names: Vec<&str> = rows.map(|&row| column(row)).collect();
        names.dedup();
        names.join("&")
    }

    /// The Variant_Classification of a small variant in a MAF file (Genomic Data Commons). `length_difference` is the
    /// length of the alternative allele minus that of the reference allele.
    pub fn maf_classification(&self, length_difference: isize) -> &'static str {
        use Consequence as C;
        let is_insertion = length_difference > 0;
        match self.most_severe() {
            Some(C::SpliceAcceptor | C::SpliceDonor) => "Splice_Site",
            Some(C::StopGained) => "Nonsense_Mutation",
            Some(C::Frameshift) if is_insertion => "Frame_Shift_Ins",
            Some(C::Frameshift) => "Frame_Shift_Del",
            Some(C::StopLost) => "Nonstop_Mutation",
            Some(C::StartLost) => "Translation_Start_Site",
            Some(C::InframeInsertion) => "In_Frame_Ins",
            Some(C::InframeDeletion) => "In_Frame_Del",
            Some(C::Missense | C::InframeAltering) => "Missense_Mutation",
            Some(C::SpliceRegion) => "Splice_Region",
            Some(C::StartRetained | C::StopRetained | C::Synonymous) => "Silent",
            Some(C::CodingSequence) if is_insertion => "In_Frame_Ins",
            Some(C::CodingSequence) if length_difference < 0 => "In_Frame_Del",
            Some(C::CodingSequence) => "Missense_Mutation",
            Some(C::FivePrimeUtr) => "5'UTR",
            Some(C::ThreePrimeUtr) => "3'UTR",
            Some(C::NonCodingExon) => "RNA",
            Some(C::Intron | C::NonCodingIntron) => "Intron",
            // Consequences of structural variants have no class in MAF.
            Some(_) => "Targeted_Region",
            None => "IGR",
        }
    }
}

impl FromIterator<Consequence> for ConsequenceSet {
    fn from_iter<I: IntoIterator<Item = Consequence>>(consequences: I) -> Self {
        ConsequenceSet(consequences.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_consequence_has_its_names_once() {
        let listed: Vec<Consequence> = NAMES.iter().map(|row| row.0).collect();
        assert!(listed.windows(2).all(|two| two[0] < two[1]), "in the order of severity: {listed:?}");
        assert_eq!(listed.len(), Consequence::NonCodingIntron as usize + 1);
    }

    #[test]
    fn names_are_joined_by_severity() {
        let of = |list: &[Consequence]| list.iter().copied().collect::<ConsequenceSet>();
        let set = of(&[Consequence::SpliceRegion, Consequence::Missense]);
        assert_eq!(set.bcftools_csq_names(), "missense&splice_region");
        assert_eq!(set.ontology_terms(), "missense_variant&splice_region_variant");
        assert_eq!(set.maf_classification(0), "Missense_Mutation");
        let frameshift = of(&[Consequence::Frameshift]);
        assert_eq!([1, -1].map(|n| frameshift.maf_classification(n)), ["Frame_Shift_Ins", "Frame_Shift_Del"]);
        let intron = of(&[Consequence::NonCodingIntron]);
        assert_eq!(intron.ontology_terms(), "intron_variant&non_coding_transcript_variant");
        assert_eq!(ConsequenceSet::default().maf_classification(0), "IGR");
    }
}
