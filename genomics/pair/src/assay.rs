//! The assay of a sample: the kind of library that was sequenced. The assay decides which read pairs count as
//! duplicates of one molecule, and whether the reads are expected to cover the whole genome.

use serde::{Deserialize, Serialize};

use crate::nucleosomes::NucleosomePattern;

/// Whether the ends of a library's fragments are at random or at fixed positions of the genome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RandomOrFixedEnds {
    /// Fragments end at random positions, so two read pairs with the same two ends are duplicates of one molecule.
    #[default]
    Random,
    /// Fragments end at the primers of an amplicon, so different molecules have the same two ends.
    Fixed,
}

/// The kind of library that was sequenced (`--assay`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Assay {
    /// The whole genome, fragmented at random positions.
    #[default]
    Wgs,
    /// The exons of all genes, enriched by target capture.
    Exome,
    /// The exons of some genes, enriched by target capture.
    Panel,
    /// Target regions, amplified by PCR between fixed primers.
    Amplicon,
    /// Cell-free DNA of blood plasma: most fragments are as long as the DNA around one nucleosome, about 167 bp.
    Cfdna,
}

impl Assay {
    /// All assays with their names on the command line and in `summary.json`.
    pub(crate) const ALL_ASSAYS_WITH_NAMES: [(Assay, &'static str); 5] = [
        (Assay::Wgs, "wgs"),
        (Assay::Exome, "exome"),
        (Assay::Panel, "panel"),
        (Assay::Amplicon, "amplicon"),
        (Assay::Cfdna, "cfdna"),
    ];

    /// The name of the assay on the command line and in `summary.json`, such as `wgs`.
    pub fn name(self) -> &'static str {
        Assay::ALL_ASSAYS_WITH_NAMES.iter().find(|known| known.0 == self).map_or("", |known| known.1)
    }

    /// Whether fragments of this assay end at random or at fixed positions. Only the ends of amplicons are fixed.
    pub fn random_or_fixed_ends(self) -> RandomOrFixedEnds {
        if self == Assay::Amplicon { RandomOrFixedEnds::Fixed } else { RandomOrFixedEnds::Random }
    }

    /// Whether only target regions are sequenced (exome, panel, amplicons), so that most of the genome has few reads or
    /// none.
    pub fn is_targeted(self) -> bool {
        matches!(self, Assay::Exome | Assay::Panel | Assay::Amplicon)
    }
}

/// The assay of a sample, and the reason for this assay.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AssayDecision {
    /// The assay: given by the user, or recognised from the reads.
    pub assay: Assay,
    /// `true` if the user gave the assay with `--assay`; `false` if it was recognised from the reads.
    pub is_given: bool,
    /// Reason for the decision as one line of text, such as the depth and the number of covered bases.
    pub reason: String,
}

/// Information from which the assay is decided besides the reads: the user's choice and the length of the reference.
#[derive(Debug, Clone, Copy, Default)]
pub struct GivenAssayAndGenomeSize {
    /// The assay that the user gave with `--assay`, for all samples; `None` to recognise the assay of each sample from
    /// its reads.
    pub given: Option<Assay>,
    /// Length of the reference in bases; `None` without a reference.
    pub genome_bases: Option<u64>,
}

/// Properties of the reads of a sample from which its assay is recognised.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AssayEvidence {
    /// Median number of read pairs that cover a sequenced base.
    pub(crate) depth: f64,
    /// Number of bases of all reads.
    pub(crate) bases: u64,
    /// Median over all read pairs of the number of pairs that have the same two fragment ends.
    pub(crate) pairs_per_fragment: u32,
    /// Most frequent fragment length, and the other features of the fragment lengths that show cell-free DNA.
    pub(crate) nucleosomes: NucleosomePattern,
}

/// Minimum number of read pairs with the same two ends in a library with fixed fragment ends. Chosen: other libraries
/// have fewer PCR duplicates per molecule; with a higher value, shallow amplicon libraries are missed.
const MIN_PAIRS_PER_FIXED_FRAGMENT: u32 = 8;
/// Maximum number of fragments with different ends that cover a base in a library with fixed fragment ends: a few
/// overlapping amplicons. Chosen: in libraries with random fragment ends, only extreme duplication gives so few
/// different fragments.
const MAX_FIXED_FRAGMENTS_PER_BASE: f64 = 4.0;
/// Depth, in read pairs, above which a library is not classified as a whole genome. Chosen: tumour genomes are
/// sequenced to depths of up to 300.
const MAX_GENOME_DEPTH: f64 = 500.0;
/// Minimum share of the reference that the reads of a whole-genome library cover. Chosen: exomes cover 2 %; whole
/// genomes cover more than half, even with gaps in the reference and duplicates.
const MIN_GENOME_SHARE: f64 = 0.3;
/// Minimum number of covered bases of an exome. Chosen: exomes have 30 million and more, panels up to a few million.
const MIN_EXOME_BASES: f64 = 1e7;

impl AssayDecision {
    /// Returns the assay that the user gave; without one, decides on the assay by the reads.
    pub(crate) fn decide_unless_given(shape: &AssayEvidence, context: &GivenAssayAndGenomeSize) -> AssayDecision {
        if let Some(assay) = context.given {
            return AssayDecision { assay, is_given: true, reason: "given by --assay".into() };
        }
        let (assay, reason) = decide_by_reads(shape, context.genome_bases);
        AssayDecision { assay, is_given: false, reason }
    }
}

/// Decides on the assay by the reads alone. Returns the assay and the reason for it.
fn decide_by_reads(shape: &AssayEvidence, genome_bases: Option<u64>) -> (Assay, String) {
    // Without bases of good quality the number of fragments is unknown.
    if shape.depth <= 0.0 {
        return (Assay::Wgs, "no base has two reads of good quality, so that the assay does not show".into());
    }
    let fragments_per_base = shape.depth / f64::from(shape.pairs_per_fragment.max(1));
    if shape.pairs_per_fragment >= MIN_PAIRS_PER_FIXED_FRAGMENT && fragments_per_base <= MAX_FIXED_FRAGMENTS_PER_BASE {
        let reason = format!(
            "the median pair has the same ends as {} others, and {fragments_per_base:.1} different fragments cover a base",
            shape.pairs_per_fragment - 1
        );
        return (Assay::Amplicon, reason);
    }
    if shape.nucleosomes.is_cell_free() {
        return (Assay::Cfdna, shape.nucleosomes.describe_cell_free_evidence());
    }
    let covered = shape.bases as f64 / shape.depth;
    let depth = shape.depth;
    let share = genome_bases.map(|genome| covered / genome.max(1) as f64);
    if depth <= MAX_GENOME_DEPTH && share.is_none_or(|share| share >= MIN_GENOME_SHARE) {
        let reason = match share {
            Some(_) => format!("the reads cover most of the reference, at a depth of {depth:.0} pairs"),
            None => format!("the depth is {depth:.0} pairs, and no reference shows how much of the genome is covered"),
        };
        return (Assay::Wgs, reason);
    }
    let assay = if covered >= MIN_EXOME_BASES { Assay::Exome } else { Assay::Panel };
    (assay, format!("the reads cover about {} kb at a depth of {depth:.0} pairs", (covered as u64).div_ceil(1000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(shape: AssayEvidence, genome_bases: Option<u64>) -> Assay {
        AssayDecision::decide_unless_given(&shape, &GivenAssayAndGenomeSize { given: None, genome_bases }).assay
    }

    const GENOME: AssayEvidence = AssayEvidence {
        depth: 30.0,
        bases: 90_000_000_000,
        pairs_per_fragment: 1,
        nucleosomes: NucleosomePattern::NO_FRAGMENTS,
    };
    const HUMAN: Option<u64> = Some(2_900_000_000);

    #[test]
    fn the_reads_show_the_assay() {
        assert_eq!(decide(GENOME, HUMAN), Assay::Wgs);
        assert_eq!(decide(GENOME, None), Assay::Wgs);
        assert_eq!(decide(AssayEvidence { depth: 0.0, ..GENOME }, HUMAN), Assay::Wgs);
        let exome = AssayEvidence { depth: 150.0, bases: 9_000_000_000, ..GENOME };
        assert_eq!(decide(exome, HUMAN), Assay::Exome);
        assert_eq!(decide(AssayEvidence { depth: 800.0, bases: 800_000_000, ..GENOME }, HUMAN), Assay::Panel);
        // A reference of the targets only: the depth shows a panel.
        assert_eq!(decide(AssayEvidence { depth: 800.0, bases: 80_000_000, ..GENOME }, Some(100_000)), Assay::Panel);
        let amplicons = AssayEvidence { depth: 900.0, bases: 50_000_000, pairs_per_fragment: 400, ..GENOME };
        assert_eq!(decide(amplicons, HUMAN), Assay::Amplicon);
        // Many duplicates of many fragments.
        assert_eq!(decide(AssayEvidence { pairs_per_fragment: 20, ..amplicons }, HUMAN), Assay::Panel);
        let plasma =
            NucleosomePattern { mode_bp: 167, mononucleosome_share: 0.8, period_amplitude: 0.2, period_gain: 90.0 };
        assert_eq!(decide(AssayEvidence { nucleosomes: plasma, ..GENOME }, HUMAN), Assay::Cfdna);
    }

    #[test]
    fn the_assay_that_the_user_gives_counts() {
        for (given, name) in Assay::ALL_ASSAYS_WITH_NAMES {
            let context = GivenAssayAndGenomeSize { given: Some(given), genome_bases: HUMAN };
            let decision = AssayDecision::decide_unless_given(&GENOME, &context);
            assert_eq!((decision.assay, decision.is_given), (given, true));
            assert_eq!(given.name(), name);
        }
    }
}
