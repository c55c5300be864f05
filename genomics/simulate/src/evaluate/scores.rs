//! Scores of the calls, and the variants and calls that do not match.

use std::collections::BTreeMap;

use serde::Serialize;

use super::vcf::VcfRecord;

/// Class of variants for which recall and precision are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum VariantClass {
    /// One base is substituted.
    Snv,
    /// A length change of less than 50 bp.
    Indel,
    /// A structural variant of 50 bp or more.
    Sv,
}

/// Whether a variant is in unique or in repeated sequence of the genome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum UniqueOrRepeat {
    /// No 31-mer that overlaps or adjoins the variant occurs more than once in the genome. False calls are also unique
    /// if no reference was given.
    Unique,
    /// A 31-mer at the variant occurs more than once in the genome.
    Repeat,
}

/// Numbers of true positives, false negatives and false positives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct VariantScores {
    /// Number of variants of the truth that were called.
    pub true_positives: usize,
    /// Number of variants of the truth that were not called.
    pub(crate) false_negatives: usize,
    /// Number of calls that match no variant of the truth.
    pub(crate) false_positives: usize,
}

fn optional_ratio(part: usize, rest: usize) -> Option<f64> {
    (part + rest > 0).then(|| part as f64 / (part + rest) as f64)
}

impl VariantScores {
    /// Returns the recall, TP/(TP+FN); `None` if the truth is empty.
    pub fn recall(&self) -> Option<f64> {
        optional_ratio(self.true_positives, self.false_negatives)
    }

    /// Returns the precision, TP/(TP+FP); `None` without true and false positives.
    pub fn precision(&self) -> Option<f64> {
        optional_ratio(self.true_positives, self.false_positives)
    }

    /// Returns the F1 score: the harmonic mean of recall and precision; `None` without variants in truth and calls.
    pub fn f1(&self) -> Option<f64> {
        optional_ratio(2 * self.true_positives, self.false_negatives + self.false_positives)
    }
}

impl std::ops::Add for VariantScores {
    type Output = VariantScores;

    fn add(self, other: VariantScores) -> VariantScores {
        VariantScores {
            true_positives: self.true_positives + other.true_positives,
            false_negatives: self.false_negatives + other.false_negatives,
            false_positives: self.false_positives + other.false_positives,
        }
    }
}

/// A false negative: a variant of the truth that was not called.
#[derive(Debug, Clone, Serialize)]
pub struct MissedVariant {
    /// SNV, indel or structural variant.
    pub class: VariantClass,
    /// Whether the variant is in unique or in repeated sequence, by the flag REPEAT of its truth record.
    pub part: UniqueOrRepeat,
    /// CHROM, POS, REF and ALT of the variant (of its first record, if it has several).
    pub place: VariantPositionAndAlleles,
    /// Description of the variant as text: CLASS, AF and STR of its truth record.
    pub about: String,
    /// Reason as text: FILTER of the call that matches but did not pass, or the nearest call.
    pub why: String,
}

/// A false positive: a call that matches no variant of the truth.
#[derive(Debug, Clone, Serialize)]
pub struct FalseCall {
    /// SNV, indel or structural variant.
    pub class: VariantClass,
    /// Whether the call is in unique or in repeated sequence; `Unique` without a reference.
    pub part: UniqueOrRepeat,
    /// CHROM, POS, REF and ALT of the call (of its first record, if it has several).
    pub place: VariantPositionAndAlleles,
    /// QUAL of the call as in the VCF; `.` if missing.
    pub quality: String,
    /// FILTER of the call as in the VCF.
    pub filter: String,
    /// Text `germline` if the call is a germline variant; otherwise a nearby variant of the truth or the germline, or
    /// empty.
    pub note: String,
}

/// The VCF columns CHROM, POS, REF and ALT, which identify a variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VariantPositionAndAlleles {
    /// CHROM: name of the contig.
    pub chrom: String,
    /// POS: position, 1-based.
    pub pos: usize,
    /// REF allele; long alleles are shortened.
    pub reference: String,
    /// ALT allele; long alleles are shortened.
    pub alternate: String,
}

impl VariantPositionAndAlleles {
    pub(super) fn from_record_with_shortened_alleles(record: &VcfRecord) -> Self {
        let cut = |bases: &str| {
            if bases.len() <= 60 { bases.to_owned() } else { format!("{}...({} bp)", &bases[..20], bases.len()) }
        };
        VariantPositionAndAlleles {
            chrom: record.chrom.clone(),
            pos: record.pos,
            reference: cut(&record.reference),
            alternate: cut(&record.alternate),
        }
    }
}

/// Result of an evaluation: scores, missed variants and false calls.
#[derive(Debug, Clone, Default)]
pub struct EvaluationResult {
    /// Notes for the user about the reliability of the scores.
    pub notes: Vec<String>,
    /// Numbers of true and false positives and of false negatives, by variant class and region type.
    pub scores: BTreeMap<(VariantClass, UniqueOrRepeat), VariantScores>,
    /// Number of structural variants of the truth that were called, and number of all, by CLASS of the truth.
    pub structural: BTreeMap<String, [usize; 2]>,
    /// Numbers of structural variants that were called (1) as in the truth, (2) with another orientation, (3) as an
    /// insertion instead of a duplication or copy, or the reverse.
    pub(crate) structural_matches: [usize; 3],
    /// The variants of the truth that were not called, by class and then in the order of the truth file.
    pub misses: Vec<MissedVariant>,
    /// The calls that match no variant of the truth, by class and then in the order of the file of calls.
    pub false_calls: Vec<FalseCall>,
}

impl EvaluationResult {
    /// Returns the scores of a variant class in one region type; without a region type, the sum over both.
    pub fn scores_of_class(&self, class: VariantClass, part: Option<UniqueOrRepeat>) -> VariantScores {
        let chosen = self.scores.iter().filter(|((c, p), _)| *c == class && part.is_none_or(|wanted| *p == wanted));
        chosen.fold(VariantScores::default(), |sum, (_, s)| sum + *s)
    }
}
