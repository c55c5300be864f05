//! Warnings on the result of a call: the inputs do not fit together, so the calls are not meaningful. Most of them
//! withhold the results unless the user requests them.

use genuma_pair::identity::{IdentityResult, Relation};
use genuma_reads::targets::Targets;
use genuma_reads::{INCOMPLETE_READ_KINDS, NORMAL_SAMPLE, TUMOUR_SAMPLE};
use serde::{Deserialize, Serialize};

use crate::event::Event;
use crate::genotyping_unit::{FinishedCall, MIN_MISMATCH_SHARE_OF_TWO_PEOPLE};
use crate::ledger::{
    Ledger, LedgerLine, MOST_TUMOUR_KMERS_NOT_IN_NORMAL_LEDGER_LINE, OTHER_SPECIES_CONTIGS_LEDGER_LINE,
    SHALLOW_NORMAL_LEDGER_LINE, TOO_MANY_VARIANTS_LEDGER_LINE, TUMOUR_ONLY_CONTIGS_LEDGER_LINE,
    UNPLACED_NORMAL_SEQUENCE_LEDGER_LINE,
};
use crate::sample_names::SampleNames;
use crate::target_depth::TargetDepths;
use crate::tumour_alleles::OwnAlleleRootCounts;

/// Topic of a warning: what is wrong with the inputs. Its name is in `summary.json` and in the VCF header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarningTopic {
    /// The reference is not the genome of the reads, or only a part of it.
    WrongReference,
    /// A file of aligned reads was made with another reference.
    OtherReference,
    /// The tumour and the normal come from two people.
    TwoPeople,
    /// The tumour and the normal are exchanged.
    ExchangedSamples,
    /// Most of the tumour's sequence is missing in the normal or, without a normal, in the reference; or many contigs
    /// that only the tumour has differ from the reference as those of another species.
    OtherSpecies,
    /// A sample has too few reads for most variants.
    ShallowSample,
    /// The reads are so short that the k-mers are shorter than usual.
    ShortReads,
    /// The samples have reads of different lengths.
    ReadLengths,
    /// Files have no reads.
    EmptyLane,
    /// Read groups of two samples have the same sample name (SM).
    SampleNames,
    /// A call without a normal left out k-mers because the person has too many variants.
    TooManyVariants,
    /// Reads lack their mates or bases, or are shorter than their read structure.
    IncompleteReads,
}

/// A warning on the result of a call: why the calls are probably not meaningful.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultWarning {
    /// Topic of the warning.
    pub topic: WarningTopic,
    /// Whether the results are withheld unless the user requests them.
    pub withholds_results: bool,
    /// Text of the warning in one line: what was found, and what to do.
    pub message: String,
}

impl ResultWarning {
    /// A warning that does not withhold the results.
    pub fn new(topic: WarningTopic, message: String) -> ResultWarning {
        ResultWarning { topic, withholds_results: false, message }
    }
}

/// Maximum share of contigs without a position on the reference whose sequence the normal has. Chosen: correct sample
/// pairs in `bench/` have at most 7 %, runs with the reference of another genome or of a part of the genome nearly 100
/// %. A higher value tolerates larger gaps of the reference.
const MAX_UNPLACED_SHARE: f64 = 0.3;
/// Minimum number of contigs without a position for a warning. Chosen: fewer contigs may all lie in one gap of the
/// reference.
const MIN_UNPLACED_CONTIGS: u64 = 4;
/// Number of standard deviations by which the share must exceed [`MAX_UNPLACED_SHARE`]: 97.5 % one-sided. With a higher
/// value, more calls with few contigs get no warning.
const UNPLACED_DEVIATIONS: f64 = 1.96;

/// Minimum number of roots with a minor own allele of the normal, for a warning that the samples are exchanged. Each
/// change is next to two roots. Chosen: the few changes of blood cells (clonal haematopoiesis) stay below.
const MIN_EXCHANGED_ROOTS: u64 = 20;
/// Minimum ratio of the number of roots with a minor own allele of the normal to that of roots with one of the tumour,
/// for a warning that the samples are exchanged. Chosen: a lower ratio has other causes.
const MIN_EXCHANGED_RATIO: u64 = 10;
/// Minimum ratio of minor to balanced own alleles of the normal, for a warning that the samples are exchanged. Germline
/// alleles that the tumour lost are balanced in the normal: by the binomial distribution 0.18 of them at a depth of 15
/// look like minor alleles, 0.05 at a depth of 30. Changes of a tumour of 80 % purity have a ratio of 0.4. A higher
/// value misses purer tumours.
const MIN_MINOR_TO_BALANCED_RATIO: f64 = 0.25;

/// Minimum depth of a sample for a call without a warning. Chosen: at lower depth many heterozygous variants have no read
/// or one. A higher value warns of more samples.
const MIN_DEPTH: f64 = 8.0;
/// Minimum depth of a sample for results that are not withheld. Chosen: at lower depth the normal has no read at many
/// sites, and most variants of a tumour have no second read. A higher value withholds the results of more samples.
const MIN_MEANINGFUL_DEPTH: f64 = 4.0;

/// Maximum number of calls that pass, for a warning that samples with few changes are exchanged. Chosen: exchanged
/// samples have no somatic changes but those of blood cells.
const MAX_CALLS_OF_EXCHANGED_SAMPLES: usize = 2;

/// Determines the warnings on a finished call, of all topics that are not known from the inputs alone; empty if nothing
/// is wrong.
pub fn find_result_warnings(finished: &FinishedCall) -> Vec<ResultWarning> {
    let incomplete = find_incomplete_reads(&finished.ledger);
    let shallow = find_shallow_samples(finished);
    if shallow.iter().any(|warning| warning.withholds_results) {
        // Other tests need reads.
        return [incomplete, shallow].concat();
    }
    let species = find_other_species(&finished.ledger, finished.samples.has_normal(), !shallow.is_empty());
    let reference = finished.on_reference.then(|| find_wrong_reference(&finished.ledger)).flatten();
    let variants = find_too_many_variants(&finished.ledger);
    let tumours = (usize::from(TUMOUR_SAMPLE)..).zip(&finished.sample_summaries);
    let identities = tumours.filter_map(|(sample, summary)| {
        Some((finished.samples.name_in_messages(sample), summary.pair.as_ref()?.identity))
    });
    let people = find_two_people(&identities.collect::<Vec<_>>(), finished.genotype_mismatch_share);
    // Another person's DNA in the normal looks like changes of the normal.
    let exchanged = people.is_none().then(|| find_exchanged_samples(finished)).flatten();
    incomplete
        .into_iter()
        .chain(shallow)
        .chain(species.or_else(|| find_some_other_species(&finished.ledger)))
        .chain(reference)
        .chain(variants)
        .chain(people)
        .chain(exchanged)
        .collect()
}

/// Returns a warning for each kind of incomplete reads of each sample. The ledger has them, also of a distributed call.
fn find_incomplete_reads(ledger: &Ledger) -> Vec<ResultWarning> {
    let warn = |line: &LedgerLine| {
        let (start, advice) = INCOMPLETE_READ_KINDS
            .iter()
            .find_map(|kind| Some((line.description.find(kind.description)?, kind.advice)))?;
        let (sample, what) = line.description.split_at(start);
        let message = format!("{sample}{} {what}: {advice}", line.count);
        Some(ResultWarning::new(WarningTopic::IncompleteReads, message))
    };
    ledger.lines.iter().filter(|line| line.skipped).filter_map(warn).collect()
}

/// Returns a warning for each sample with too few reads for most variants. The results are withheld if a sample has
/// hardly any reads.
pub(crate) fn find_samples_below_min_depth(samples: &SampleNames, depths: &SampleDepths<'_>) -> Vec<ResultWarning> {
    let first = usize::from(!samples.has_normal());
    (first..depths.spectra.len())
        .map(|sample| (sample, depths.max_depth_estimate(sample)))
        .filter(|(_, depth)| *depth < MIN_DEPTH)
        .map(|(sample, depth)| ResultWarning {
            topic: WarningTopic::ShallowSample,
            withholds_results: depth < MIN_MEANINGFUL_DEPTH,
            message: format!(
                "the {} has a depth of about {depth:.1}, below the minimum of {MIN_DEPTH} (results are withheld below \
                 {MIN_MEANINGFUL_DEPTH}): heterozygous variants often have no read or one, and are missed. Check that \
                 all of its files were given, or sequence it deeper",
                samples.name_in_messages(sample)
            ),
        })
        .collect()
}

/// Returns a warning for each sample below the minimum depth, and one if k-mers of the tumour were skipped because the
/// normal covers too little.
fn find_shallow_samples(finished: &FinishedCall) -> Vec<ResultWarning> {
    let reference_bases: usize = finished.genome.contigs.iter().map(|contig| contig.seq.len()).sum();
    let depths = SampleDepths {
        spectra: &finished.spectra,
        bases: &finished.bases,
        reference_bases: finished.on_reference.then_some(reference_bases as u64),
        targets: finished.targets.as_ref().map(|targets| (&targets.depths, &targets.targets)),
    };
    let mut warnings = find_samples_below_min_depth(&finished.samples, &depths);
    let skipped = finished.ledger.sum_counts_of_description(SHALLOW_NORMAL_LEDGER_LINE);
    if skipped > 0 {
        let message = format!(
            "the normal is too shallow: {skipped} k-mers of the tumour are not in it, too many to be somatic, and were \
             skipped, so indels and structural variants may be missed. Sequence the normal deeper, or check that all \
             of its files were given"
        );
        warnings.push(ResultWarning::new(WarningTopic::ShallowSample, message));
    }
    warnings
}

/// What the depths of the samples are estimated from.
pub(crate) struct SampleDepths<'a> {
    /// k-mer spectrum of each sample.
    pub(crate) spectra: &'a [Vec<u64>],
    /// Number of bases of each sample.
    pub(crate) bases: &'a [u64],
    /// Number of bases of the reference; `None` without a reference.
    pub(crate) reference_bases: Option<u64>,
    /// Targets with their depths; `None` without targets.
    pub(crate) targets: Option<(&'a TargetDepths, &'a Targets)>,
}

impl SampleDepths<'_> {
    /// The largest of the estimates of a sample's depth, so that only samples that are shallow by all estimates count as
    /// shallow: bases divided by the length of the reference, which is too low for targeted assays; the multiplicity
    /// that half of the k-mer occurrences exceed, which is too low for reads with many errors; and the k-mer depth on the
    /// targets.
    fn max_depth_estimate(&self, sample: usize) -> f64 {
        let on_reference = self.reference_bases.map_or(0.0, |bases| self.bases[sample] as f64 / bases.max(1) as f64);
        let on_targets = self.targets.map_or(0.0, |(depths, targets)| depths.median_kmer_depth(targets, sample));
        on_reference.max(median_multiplicity(&self.spectra[sample])).max(on_targets)
    }
}

/// The multiplicity that half of the k-mer occurrences of a spectrum exceed; 0 for an empty spectrum.
fn median_multiplicity(spectrum: &[u64]) -> f64 {
    let occurrences = || spectrum.iter().zip(0u64..).map(|(kmers, multiplicity)| kmers * multiplicity);
    let half = occurrences().sum::<u64>() / 2;
    let mut sum = 0;
    let exceeds_half = |occurrences: u64| {
        sum += occurrences;
        sum > half
    };
    occurrences().map(exceeds_half).position(|exceeds| exceeds).unwrap_or(0) as f64
}

/// Returns a warning if the genotyping detected DNA of another species in the tumour.
fn find_some_other_species(ledger: &Ledger) -> Option<ResultWarning> {
    let [divergent, all] = [OTHER_SPECIES_CONTIGS_LEDGER_LINE, TUMOUR_ONLY_CONTIGS_LEDGER_LINE]
        .map(|line| ledger.sum_counts_of_description(line));
    let message = format!(
        "the tumour seems to have DNA of another species that the normal lacks, such as the host of a xenograft: \
         {divergent} of {all} contigs with variants of the tumour only have five or more. \
         Their small variants are filtered (divergent), but single differences of that DNA may pass. Remove its reads \
         before the call"
    );
    (divergent > 0).then(|| ResultWarning::new(WarningTopic::OtherSpecies, message))
}

/// Returns a warning if most k-mers of the tumour are missing in the normal or, in a call without a normal, in the
/// reference. It withholds the results unless a sample `is_shallow`: then k-mers may be missing by chance.
fn find_other_species(ledger: &Ledger, has_normal: bool, is_shallow: bool) -> Option<ResultWarning> {
    let skipped = ledger.sum_counts_of_description(MOST_TUMOUR_KMERS_NOT_IN_NORMAL_LEDGER_LINE);
    let (lacks_it, advice) = match has_normal {
        true => ("normal", "both samples are of the same species, and remove the reads of a xenograft's host"),
        false => ("reference", "the reference is of the same species as the sample, and complete"),
    };
    let message = format!(
        "more than half of the tumour's k-mers are missing in the {lacks_it}; {skipped} of them were skipped, so \
         indels and structural variants are not called reliably. Check that {advice}"
    );
    (skipped > 0).then_some(ResultWarning {
        topic: WarningTopic::OtherSpecies,
        withholds_results: !is_shallow,
        message,
    })
}

/// Returns a warning if k-mers were left out because the person has more variants than a call without a normal can
/// examine.
fn find_too_many_variants(ledger: &Ledger) -> Option<ResultWarning> {
    let skipped = ledger.sum_counts_of_description(TOO_MANY_VARIANTS_LEDGER_LINE);
    let message = format!(
        "{skipped} k-mers of the tumour were skipped because it has more germline variants than a call without a normal can \
         examine, so indels and structural variants may be missed: give a normal (--normal), or reads of an exome or a panel"
    );
    (skipped > 0).then(|| ResultWarning::new(WarningTopic::TooManyVariants, message))
}

/// Returns a warning if too many contigs with the person's own sequence have no position on the reference.
fn find_wrong_reference(ledger: &Ledger) -> Option<ResultWarning> {
    let contigs = ledger.sum_counts_of_description("contigs");
    let unplaced = ledger.sum_counts_of_description(UNPLACED_NORMAL_SEQUENCE_LEDGER_LINE);
    if unplaced < MIN_UNPLACED_CONTIGS || lower_bound_of_share(unplaced, contigs) <= MAX_UNPLACED_SHARE {
        return None;
    }
    let message = format!(
        "{unplaced} of {contigs} contigs do not align to the reference, although the normal has most of their sequence: \
         the reference is of another species or lacks a large part of the genome; give the complete reference of these \
         samples with --reference"
    );
    Some(ResultWarning { topic: WarningTopic::WrongReference, withholds_results: true, message })
}

/// Lower end of the confidence interval of a share (Wilson score), with [`UNPLACED_DEVIATIONS`] standard deviations.
fn lower_bound_of_share(found: u64, all: u64) -> f64 {
    let (found, all) = (found as f64, all.max(found).max(1) as f64);
    let (share, z2) = (found / all, UNPLACED_DEVIATIONS * UNPLACED_DEVIATIONS);
    let spread = UNPLACED_DEVIATIONS * (share * (1.0 - share) / all + z2 / (2.0 * all).powi(2)).sqrt();
    (share + z2 / (2.0 * all) - spread) / (1.0 + z2 / all)
}

/// Minimum share of genotype mismatches at which the results are withheld although the identity test is undecided.
/// Chosen: two unrelated people have more, one pair of damaged fixed tissue without a reference had 1.3e-4. A lower
/// value withholds more results.
const MIN_WITHHELD_MISMATCH_SHARE: f64 = 2.5e-4;

/// Returns a warning if the samples seem to be of two people. `identities` has the name of each tumour, and its
/// comparison with the normal. `genotype_mismatch_share` is the share of sites at which each sample has an allele that
/// the other lacks; `None` if it is not higher than in one person. The results are withheld if the identity test shows
/// two unrelated people, or if genotype mismatches are frequent and the identity test does not show one person. If the
/// identity test alone shows relatives, the results are not withheld, because captures, amplicons and tumours with very
/// many changes may look like relatives.
fn find_two_people(
    identities: &[(String, IdentityResult)],
    genotype_mismatch_share: Option<f64>,
) -> Option<ResultWarning> {
    let has = |relation| identities.iter().any(|(_, identity)| identity.relation == relation);
    let are_same = identities.iter().all(|(_, identity)| identity.relation == Relation::Same) && !identities.is_empty();
    let withholds_results = match genotype_mismatch_share {
        Some(_) if identities.iter().any(|(_, identity)| identity.are_two_people_maybe_unrelated()) => true,
        Some(share) => !are_same && share >= MIN_WITHHELD_MISMATCH_SHARE,
        None if has(Relation::Unrelated) => true,
        None if has(Relation::Relatives) || has(Relation::Different) => false,
        None => return None,
    };
    let message = match genotype_mismatch_share {
        Some(share) => describe_genotype_mismatches(share, are_same),
        None => describe_genetic_distance(identities, withholds_results),
    };
    Some(ResultWarning { topic: WarningTopic::TwoPeople, withholds_results, message })
}

/// Text of the warning on genotype mismatches. `are_same`: whether the identity test shows one person.
fn describe_genotype_mismatches(share: f64, are_same: bool) -> String {
    let [percent, max_percent] = [share, MIN_MISMATCH_SHARE_OF_TWO_PEOPLE].map(|share| 100.0 * share);
    let found =
        format!("at {percent:.3}% of the sites covered in both, each sample has an allele that the other lacks");
    if are_same {
        return format!(
            "the samples match one person, but {found} (usual: below {max_percent}%): one of them may be contaminated, \
             so some calls are another person's alleles. Check the contamination (`genuma check`)"
        );
    }
    format!(
        "{found} (one person: below {max_percent}%), so the samples seem to come from two people and most calls are \
         germline differences. Check for a sample swap (`genuma check`)"
    )
}

/// Text of the warning if the identity test shows two people and genotype mismatches are not frequent. `are_unrelated`:
/// whether it shows unrelated people.
fn describe_genetic_distance(identities: &[(String, IdentityResult)], are_unrelated: bool) -> String {
    let distances = identities.iter().filter(|(_, identity)| !identity.may_be_same_person());
    let found = distances.filter_map(|(name, identity)| Some((name, identity.genetic_distance?.value)));
    let found = match found.max_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((name, distance)) => format!(
            "the genetic distance of normal and {name} is {distance:.2} (0 one person, 0.5 close relatives, 1 \
             unrelated people)"
        ),
        None => "normal and tumour have different alleles at many sites".to_owned(),
    };
    let other_causes = match are_unrelated {
        true => "",
        false => "Captures, amplicons and tumours with very many changes can look the same. ",
    };
    format!(
        "{found}, so the samples seem to come from two people and most calls are germline differences. {other_causes}\
         Check for a sample swap (`genuma check`)"
    )
}

/// Returns a warning if the normal has somatic changes, as a tumour has, and one of the tumours has hardly any. The
/// results are withheld if the changes are many and the contamination of the normal is known, so that they are not
/// alleles of another person.
fn find_exchanged_samples(finished: &FinishedCall) -> Option<ResultWarning> {
    let is_passed = |event: &&Event| event.calls[0].genotype.filters.is_empty();
    let num_passed = finished.events.iter().filter(is_passed).count();
    let pair = |tumour: usize| finished.sample_summaries.get(tumour).and_then(|summary| summary.pair.as_ref());
    finished.own_alleles.iter().enumerate().find_map(|(number, &[normal, tumour])| {
        let contamination = pair(number).and_then(|pair| pair.contamination[usize::from(NORMAL_SAMPLE)]);
        // Alleles of another person in the normal are no changes of a tumour.
        if contamination.is_some_and(|found| found.share.low > 0.0) {
            return None;
        }
        let has_changes = has_changes_of_tumour(normal, tumour);
        let seems_exchanged = num_passed <= MAX_CALLS_OF_EXCHANGED_SAMPLES && has_all_changes(normal, tumour);
        let name = finished.samples.name_in_messages(number + usize::from(TUMOUR_SAMPLE));
        // Each change is next to two roots.
        let found = if has_changes {
            format!(
                "the normal has {} changes in at most a third of its reads that the {name} lacks, and the {name} only \
                 {} such changes that the normal lacks",
                normal.minor / 2,
                tumour.minor / 2
            )
        } else {
            format!(
                "the normal has {} alleles that the {name} lacks, the {name} only {} that the normal lacks, and only \
                 {num_passed} {} the filters",
                (normal.minor + normal.balanced) / 2,
                (tumour.minor + tumour.balanced) / 2,
                if num_passed == 1 { "call passes" } else { "calls pass" }
            )
        };
        let message = format!(
            "{found}: files of tumour and normal are probably swapped, in which case these calls are not the somatic \
             changes of the tumour. Check --tumor and --normal, and exchange them if needed"
        );
        (has_changes || seems_exchanged).then(|| ResultWarning {
            topic: WarningTopic::ExchangedSamples,
            withholds_results: has_changes && contamination.is_some(),
            message,
        })
    })
}

/// Whether the first sample has changes and the second has hardly any. Unlike [`has_changes_of_tumour`] this includes pure
/// tumours, whose changes are balanced, and samples in which another sample lost a part of the genome.
fn has_all_changes(first: OwnAlleleRootCounts, second: OwnAlleleRootCounts) -> bool {
    let [first, second] = [first, second].map(|own| own.minor + own.balanced);
    first >= MIN_EXCHANGED_ROOTS && first >= MIN_EXCHANGED_RATIO * second
}

/// Whether the first sample has somatic changes, as a tumour has, that the second sample lacks.
fn has_changes_of_tumour(first: OwnAlleleRootCounts, second: OwnAlleleRootCounts) -> bool {
    first.minor >= MIN_EXCHANGED_ROOTS
        && first.minor >= MIN_EXCHANGED_RATIO * second.minor
        && first.minor as f64 >= MIN_MINOR_TO_BALANCED_RATIO * first.balanced as f64
}

#[cfg(test)]
mod tests {
    use genuma_pair::confidence_interval::Estimate;

    use super::*;

    fn ledger(contigs: u64, unplaced: u64) -> Ledger {
        let mut ledger = Ledger::default();
        ledger.append_produced_line("assemble", "contigs", contigs);
        ledger.append_produced_line("place", UNPLACED_NORMAL_SEQUENCE_LEDGER_LINE, unplaced);
        ledger
    }

    #[test]
    fn the_reference_is_wrong_if_more_contigs_than_a_gap_has_lie_nowhere() {
        for (contigs, unplaced, wrong) in [
            (227, 204, true),
            (6, 6, true),
            (3, 3, false),
            (9, 5, false),
            (181, 12, false),
            (1_000, 320, false),
            (1_000, 340, true),
            (0, 0, false),
        ] {
            let found = find_wrong_reference(&ledger(contigs, unplaced));
            assert_eq!(found.is_some(), wrong, "{unplaced} of {contigs}: {found:?}");
        }
    }

    #[test]
    fn two_people_withhold_the_results_if_genotypes_show_it() {
        let interval = |value| Estimate { value, low: value - 0.2, high: value + 0.2 };
        let identity = |relation, distance: Option<f64>| IdentityResult {
            relation,
            excess_mismatch_rate: interval(0.0),
            genetic_distance: distance.map(interval),
            heterozygosity: None,
            sites: 0,
        };
        let found = |relations: &[Relation], share| {
            let identities: Vec<(String, IdentityResult)> =
                relations.iter().map(|relation| ("tumour".to_owned(), identity(*relation, None))).collect();
            find_two_people(&identities, share).map(|warning| warning.withholds_results)
        };
        assert_eq!(found(&[Relation::Same], None), None);
        assert_eq!(found(&[Relation::Unknown], None), None);
        assert_eq!(found(&[], None), None);
        assert_eq!(found(&[Relation::Same], Some(2e-4)), Some(false));
        assert_eq!(found(&[Relation::Unknown], Some(1.3e-4)), Some(false));
        assert_eq!(found(&[Relation::Unknown], Some(4e-4)), Some(true));
        assert_eq!(found(&[], Some(4e-4)), Some(true));
        assert_eq!(found(&[Relation::Unrelated], Some(1.3e-4)), Some(true));
        // The genetic distance may be that of unrelated people, or is that of relatives.
        for (distance, withheld) in [(0.87, true), (0.65, false)] {
            let relatives = [("tumour".to_owned(), identity(Relation::Relatives, Some(distance)))];
            assert_eq!(find_two_people(&relatives, Some(1.2e-4)).map(|w| w.withholds_results), Some(withheld));
            let message = find_two_people(&relatives, None).map(|w| w.message).unwrap_or_default();
            assert!(
                message.contains(&format!("distance of normal and tumour is {distance} (0 one person")),
                "{message}"
            );
        }
        assert_eq!(found(&[Relation::Same, Relation::Unrelated], None), Some(true));
        assert_eq!(found(&[Relation::Relatives], None), Some(false));
        assert_eq!(found(&[Relation::Relatives], Some(4e-4)), Some(true));
    }

    #[test]
    fn half_of_the_occurrences_exceed_the_median_multiplicity() {
        let median = |spectrum: &[u64]| median_multiplicity(spectrum) as u64;
        assert_eq!([median(&[]), median(&[0, 0, 0])], [0, 0]);
        // Shallow: most k-mers occur once to three times, and some repeats often.
        assert_eq!(median(&[0, 500, 400, 300, 5, 0, 1, 0, 0, 2]), 2);
        // 40 % of the occurrences are errors.
        assert_eq!(median(&[0, 2_000, 0, 0, 0, 20, 50, 100, 250, 10]), 7);
    }

    #[test]
    fn losses_of_the_tumour_and_few_changes_of_blood_are_no_exchange() {
        let counts = |minor, balanced| OwnAlleleRootCounts { minor, balanced };
        for (normal, tumour, exchanged) in [
            (counts(400, 900), counts(2, 0), true),
            (counts(400, 900), counts(2, 30_000), true),
            // Loss of heterozygosity.
            (counts(1_500, 30_000), counts(20, 10), false),
            // Clonal haematopoiesis.
            (counts(18, 10), counts(0, 0), false),
            // Changes of both.
            (counts(400, 900), counts(60, 20), false),
        ] {
            assert_eq!(has_changes_of_tumour(normal, tumour), exchanged, "{normal:?} {tumour:?}");
        }
    }
}
