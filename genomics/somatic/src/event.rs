//! Builds events from genotyped changes: merges calls of the same change, and combines the junctions of one
//! rearrangement.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::allele_kind_odds::probability_of_log_odds;
use crate::change::{
    self, Breakend, Change, MAX_SAME_BREAKEND_DISTANCE_BP, MIN_STRUCTURAL_VARIANT_BP, RetainedSide,
    are_breakends_equal_within_tolerance, are_breakends_near, change_sort_position, is_small_variant,
};
use crate::element_from_junctions::InsertedElement;
use crate::genotype::{
    ErrorFrequency, Filter, GenotypingResult, MIN_CALL_MOLECULES_COMMON_ERROR, QualityLimits, log_odds_of_phred,
    phred_of_log_odds,
};
use crate::genotype_params::GENOTYPE_MODEL_PARAMS;
use crate::group::DisjointSets;
use crate::locus::VariantCall;
use crate::pcr_errors;
use crate::shared_alleles;
use genuma_reads::TrimCounts;
use genuma_reads::fasta::Reference;
use genuma_reads::targets::Targets;

/// Class of an event, named as in tables, the report and the INFO field CLASS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum EventClass {
    /// Substitution of one base.
    Snv,
    /// Multi-nucleotide variant: adjacent bases are replaced by the same number of bases.
    Mnv,
    /// Insertion or deletion of up to 49 bp, or both at one position.
    Indel,
    /// Deletion of 50 bp or more.
    Del,
    /// Insertion of 50 bp or more, or of novel sequence of unknown length.
    Ins,
    /// Tandem duplication of 50 bp or more.
    Dup,
    /// Inversion: a stretch of the reference is replaced by its reverse complement.
    Inv,
    /// Any other junction of two positions of the reference, such as a translocation.
    Bnd,
}

impl EventClass {
    /// Name of the class in the VCF (CLASS, SVTYPE) and in reports.
    pub fn class_name(self) -> &'static str {
        match self {
            EventClass::Snv => "SNV",
            EventClass::Mnv => "MNV",
            EventClass::Indel => "INDEL",
            EventClass::Del => "DEL",
            EventClass::Ins => "INS",
            EventClass::Dup => "DUP",
            EventClass::Inv => "INV",
            EventClass::Bnd => "BND",
        }
    }
}

/// One somatic change as it is reported: one or two VCF records.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Class of the event: SNV, MNV, indel or type of structural variant.
    pub class: EventClass,
    /// The genotyped changes of the event, the best first: two for an event with two junctions or two ends of novel
    /// sequence, otherwise one.
    pub calls: Vec<VariantCall>,
    /// The inserted element, if the event is one of which both junctions are known.
    pub inserted_element: Option<InsertedElement>,
    /// 0-based position of the first event in the phase set, if reads show that several events are on the same
    /// haplotype.
    pub phase_set: Option<usize>,
}

impl Event {
    /// Whether the event overlaps the targets, extended by `padding_bp` on both sides. Of a structural variant either
    /// end counts.
    pub(crate) fn is_on_target(&self, targets: &Targets, padding_bp: usize) -> bool {
        self.calls.iter().any(|call| change::is_on_target(&call.change, targets, padding_bp))
    }
}

/// Maximum distance in bp between the breakends of two junctions that form one event. Empirical.
const MAX_PARTNER_JUNCTION_DISTANCE_BP: usize = 60;

/// Properties of the libraries, and thresholds, on which filters and qualities of calls depend.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallThresholds {
    /// Whether the library has fold-back artefacts: molecules whose second half is the reverse complement of the first.
    pub has_fold_back_artefacts: bool,
    /// Number of bases whose k-mers both samples have often enough to know their sequence.
    pub known_bases: u64,
    /// Whether qualities may be raised if the sample has more mutations than the prior assumes. True only if the error
    /// rate was measured, not merely bounded.
    pub may_raise_quality: bool,
    /// Whether the normal has tumour cells, so that its reads distinguish mutations less clearly from germline
    /// variants.
    pub normal_has_tumour_cells: bool,
    /// Whether the reads of a tumour do not show which pairs are copies of one molecule, as in amplicon sequencing.
    pub has_unknown_duplicates: bool,
    /// Minimum somatic quality (Phred) of a passing call.
    pub min_quality: f64,
    /// Minimum number of distinct molecules of a call whose change looks like a common error: see
    /// [`crate::genotype::min_call_molecules_common_error`].
    pub min_molecules: usize,
}

/// Minimum number of different fold-back sequences per mate in a library with fold-back artefacts. Libraries without
/// such artefacts have fewer. Empirical.
const MIN_FOLD_BACK_SITES_PER_MATE: f64 = 6e-4;

impl CallThresholds {
    /// Thresholds for a library with these trimming statistics, which show whether it has fold-back artefacts. `bases`
    /// is the number of bases known in both samples. The other thresholds are those of a library whose error rate was
    /// not measured and whose duplicates are known.
    pub fn from_trim_counts(trimmed: &TrimCounts, bases: u64, min_quality: f64) -> CallThresholds {
        CallThresholds {
            has_fold_back_artefacts: trimmed.estimate_fold_back_sites_per_mate() > MIN_FOLD_BACK_SITES_PER_MATE,
            known_bases: bases,
            may_raise_quality: false,
            normal_has_tumour_cells: false,
            has_unknown_duplicates: false,
            min_quality,
            min_molecules: MIN_CALL_MOLECULES_COMMON_ERROR,
        }
    }
}

/// Maximum distance in bp between the ends of a junction that arises because a strand folds back or the polymerase
/// switches templates during library preparation. Empirical.
const MAX_LOCAL_JUNCTION_BP: usize = 1000;

/// Support up to which a junction may be a fold-back artefact.
#[derive(Clone, Copy)]
struct ArtefactLimit {
    /// A junction with at most this number of supporting molecules may be an artefact.
    max_molecules: u32,
    /// A junction that less than this share of the informative molecules supports may be an artefact.
    min_share: f64,
    /// Whether a junction whose molecules all have one strand may be an artefact: a strand folds back at its own
    /// hairpin, but an inversion is on both strands.
    includes_one_strand: bool,
}

/// Limits for inverted junctions in libraries with fold-back artefacts. Empirical; larger limits filter more junctions.
const INVERTED_ARTEFACT_LIMIT: ArtefactLimit =
    ArtefactLimit { max_molecules: 7, min_share: 0.25, includes_one_strand: true };
/// Limits for local junctions that are not inverted, in libraries with fold-back artefacts. Empirical.
const LOCAL_ARTEFACT_LIMIT: ArtefactLimit =
    ArtefactLimit { max_molecules: 4, min_share: 0.15, includes_one_strand: false };
/// Limits for inverted junctions in libraries without fold-back artefacts. Empirical.
const RARE_ARTEFACT_LIMIT: ArtefactLimit =
    ArtefactLimit { max_molecules: 2, min_share: 0.0, includes_one_strand: false };
/// Limits for local junctions that are not inverted, in libraries without fold-back artefacts: no junction counts as an
/// artefact.
const NO_ARTEFACT_LIMIT: ArtefactLimit = ArtefactLimit { max_molecules: 0, min_share: 0.0, includes_one_strand: false };

/// Whether a junction may be a fold-back artefact. The limits are those of inverted junctions and of other local
/// junctions. A junction whose sequence shows a hairpin counts as inverted, however far apart its ends are.
fn may_be_fold_back_artefact(call: &VariantCall, [inverted, local]: [ArtefactLimit; 2]) -> bool {
    let limit = match &call.change {
        _ if call.is_fold_back => inverted,
        Change::Junction { ends: [a, b], .. }
            if a.chrom == b.chrom && a.pos.abs_diff(b.pos) <= MAX_LOCAL_JUNCTION_BP =>
        {
            if a.side == b.side {
                inverted
            } else {
                local
            }
        }
        Change::Novel { .. } => local,
        _ => return false,
    };
    let support = &call.genotype.tumour;
    let all = support.num_informative_molecules();
    let has_one_strand = support.forward == 0 || support.forward == support.alternative;
    support.alternative <= limit.max_molecules
        || f64::from(support.alternative) < limit.min_share * f64::from(all)
        || (limit.includes_one_strand && has_one_strand)
}

/// Minimum number of bases of a hairpin's stem: the bases at both ends of the junction that are each other's reverse
/// complement. Chosen: strands of DNA that was sheared fold back at stems of 5 to 16 bases, whereas 1 in 300 real
/// junctions has as much microhomology by chance.
const MIN_HAIRPIN_STEM_BASES: usize = 5;
/// A junction at a hairpin with less than this share of the informative molecules may be an artefact. Chosen: at 300
/// molecules, artefacts at one hairpin have up to 2 %.
const MAX_HAIRPIN_ARTEFACT_SHARE: f64 = 0.05;

/// Whether a junction may be an artefact of strands that folded back at a hairpin of the genome. All molecules of the
/// hairpin have the same junction, so deep sequencing finds several of them in any library.
fn may_be_hairpin_artefact(call: &VariantCall) -> bool {
    let Change::Junction { ends: [a, b], homology, .. } = &call.change else { return false };
    let support = &call.genotype.tumour;
    are_breakends_near(a, b, MAX_LOCAL_JUNCTION_BP)
        && a.side == b.side
        && *homology >= MIN_HAIRPIN_STEM_BASES
        && f64::from(support.alternative) < MAX_HAIRPIN_ARTEFACT_SHARE * f64::from(support.num_informative_molecules())
}

/// Filters calls with two molecules if there are more of them than the number of calls with more molecules predicts.
/// Small variants are not filtered if the measured error rate is so low that two molecules suffice: their quality
/// decides.
fn filter_two_molecule_calls(calls: &mut [VariantCall], thresholds: &CallThresholds) {
    let two_suffice = |c: &VariantCall| {
        thresholds.min_molecules < MIN_CALL_MOLECULES_COMMON_ERROR && matches!(c.change, Change::Allele { .. })
    };
    let passing = |calls: &[VariantCall], few: bool| {
        let is = |c: &&VariantCall| {
            c.error_frequency == ErrorFrequency::Rare && c.genotype.filters.is_empty() && !two_suffice(c)
        };
        calls
            .iter()
            .filter(is)
            .filter(|c| ((c.genotype.tumour.alternative as usize) < MIN_CALL_MOLECULES_COMMON_ERROR) == few)
            .count()
    };
    if passing(calls, true) as f64 <= GENOTYPE_MODEL_PARAMS.max_two_molecule_call_share * passing(calls, false) as f64 {
        return;
    }
    for call in calls {
        if (call.genotype.tumour.alternative as usize) < MIN_CALL_MOLECULES_COMMON_ERROR && !two_suffice(call) {
            call.genotype.filters.insert(Filter::FewReads);
        }
    }
}

/// Frequency of mutations among the calls of one kind, learned from their qualities (empirical Bayes; Efron 2010,
/// "Large-scale inference").
struct MutationFrequency {
    /// Number of mutations that the prior assumes, with pseudo-calls.
    expected: f64,
    /// Estimated number of mutations, with pseudo-calls.
    estimated: f64,
    /// Maximum log-odds (natural) that are added to a quality.
    max_shift: f64,
}

impl MutationFrequency {
    /// Learns the frequency from the qualities of the calls, in natural-log units. `expected` is the number of
    /// mutations that the prior assumes.
    fn learn(qualities_nats: &[f64], expected: f64, max_shift: f64) -> MutationFrequency {
        let pseudo_calls = GENOTYPE_MODEL_PARAMS.frequency_pseudo_calls;
        let expected = expected + pseudo_calls;
        let mut frequency = MutationFrequency { expected, estimated: expected, max_shift };
        for _ in 0..GENOTYPE_MODEL_PARAMS.frequency_iterations {
            // docs/model/genotype.md (12)
            let found: f64 = qualities_nats.iter().map(|&quality| frequency.probability(quality)).sum();
            frequency.estimated = found + pseudo_calls;
        }
        frequency
    }

    /// Log-odds (natural) to add to all qualities.
    fn shift(&self) -> f64 {
        (self.estimated / self.expected).ln().min(self.max_shift)
    }

    /// Probability that a call of this quality (natural-log units) is a mutation.
    fn probability(&self, quality: f64) -> f64 {
        probability_of_log_odds(quality + self.shift())
    }

    /// Log-odds (natural) to add to the quality of one of the calls, according to all other calls: a call is no
    /// evidence for the frequency that adjusts its own quality.
    fn shift_without(&self, quality: f64) -> f64 {
        ((self.estimated - self.probability(quality)) / self.expected).ln().min(self.max_shift)
    }
}

/// Adjusts the qualities of alleles (not of junctions and novel sequence) to the mutation frequency of this sample, and
/// sets or removes the filter `low_quality` accordingly. The prior assumes one mutation in
/// exp(`GENOTYPE_MODEL_PARAMS.somatic_prior_log_odds`) bases. If hardly any call is certain, as in a normal compared
/// with itself, mutations are rarer than the prior but errors and germline variants are not, so the log-odds over these
/// are lowered; those over alleles that normal and tumour share are adjusted to the sample already. If many calls are
/// certain, the qualities are raised, but only where the error rate is measured: otherwise more errors than mutations
/// would be added. With tumour cells in the normal, qualities that germline variants limit are raised too, because the
/// share of germline variants among the calls does not depend on errors. No quality is raised above the log-odds over
/// alleles that normal and tumour share.
fn adjust_quality_by_frequency(calls: &mut [VariantCall], thresholds: &CallThresholds) {
    if thresholds.known_bases == 0 {
        return;
    }
    let raises_germline_limit_only = thresholds.normal_has_tumour_cells && !thresholds.may_raise_quality;
    let is_raised = thresholds.may_raise_quality || thresholds.normal_has_tumour_cells;
    let max_shift = if is_raised { f64::INFINITY } else { 0.0 };
    let expected = thresholds.known_bases as f64 * (-GENOTYPE_MODEL_PARAMS.somatic_prior_log_odds).exp();
    let has_quality = |genotype: &GenotypingResult| genotype.quality > 0.0;
    let is_counted = |genotype: &GenotypingResult| {
        has_quality(genotype) && genotype.filters.iter().all(|&f| f == Filter::LowQuality)
    };
    for kind in [ErrorFrequency::Common, ErrorFrequency::Rare] {
        let is_of_kind = |c: &VariantCall| c.error_frequency == kind && matches!(c.change, Change::Allele { .. });
        let qualities: Vec<f64> = calls
            .iter()
            .filter(|c| is_of_kind(c) && is_counted(&c.genotype))
            .map(|c| log_odds_of_phred(c.genotype.quality))
            .collect();
        let frequency = MutationFrequency::learn(&qualities, expected, max_shift);
        let is_adjusted = |c: &VariantCall| is_of_kind(c) && (thresholds.may_raise_quality || has_quality(&c.genotype));
        for genotype in calls.iter_mut().filter(|c| is_adjusted(c)).map(|c| &mut c.genotype) {
            let shift = phred_of_log_odds(match is_counted(genotype) {
                true => frequency.shift_without(log_odds_of_phred(genotype.quality)),
                false => frequency.shift(),
            });
            let QualityLimits { against_error, against_germline, against_shared } = genotype.limits;
            // The log-odds over shared alleles are adjusted to this sample already.
            let unadjusted = phred_of_log_odds(against_error.min(against_germline));
            let quality = match (has_quality(genotype), against_shared.is_finite()) {
                (true, true) => unadjusted.min(GENOTYPE_MODEL_PARAMS.max_quality),
                (true, false) => genotype.quality,
                // A quality of 0 stands for all negative log-odds.
                (false, _) => unadjusted.min(phred_of_log_odds(against_shared)).min(0.0),
            };
            let error_limit = match raises_germline_limit_only {
                true => phred_of_log_odds(against_error) + shift.min(0.0),
                false => f64::INFINITY,
            };
            let limit = error_limit.min(phred_of_log_odds(against_shared));
            genotype.quality = (quality + shift).min(limit).clamp(0.0, GENOTYPE_MODEL_PARAMS.max_quality);
            if genotype.quality < thresholds.min_quality {
                genotype.filters.insert(Filter::LowQuality);
            } else {
                genotype.filters.remove(&Filter::LowQuality);
            }
        }
    }
}

/// Builds the events: adjusts the qualities of the calls, merges calls of the same change, combines junctions of one
/// event, and adds filters for artefacts. Events are sorted by the position of their first call.
pub fn build_events(mut calls: Vec<VariantCall>, thresholds: &CallThresholds, genome: &Reference) -> Vec<Event> {
    shared_alleles::limit_quality_by_shared_alleles(&mut calls, thresholds.min_quality);
    adjust_quality_by_frequency(&mut calls, thresholds);
    if thresholds.has_unknown_duplicates {
        pcr_errors::limit_quality_by_pcr_errors(&mut calls, thresholds.min_quality);
    }
    filter_two_molecule_calls(&mut calls, thresholds);
    let links = collect_phase_links(&calls);
    let (kept, structural) = merge_equal_calls(calls);
    let mut events: Vec<Event> = join_calls(kept, &structural, genome);
    events.iter_mut().for_each(|event| filter_artefacts(&mut event.calls, thresholds));
    events.sort_by(|a, b| change_sort_position(&a.calls[0].change).cmp(&change_sort_position(&b.calls[0].change)));
    assign_phase_sets(&mut events, &links);
    events
}

/// Minimum share of the molecules of the contig with the most molecules at an allele that another contig with the same
/// allele needs to take its place. Chosen: contigs of one allele that differ in length have nearly the same molecules.
const MIN_MOLECULE_SHARE_OF_EQUAL_CALL: f64 = 0.9;

/// For each allele the largest number of informative molecules of a call.
fn most_molecules_by_allele(calls: &[VariantCall]) -> HashMap<Change, u32> {
    let mut most: HashMap<Change, u32> = HashMap::new();
    for call in calls.iter().filter(|call| matches!(call.change, Change::Allele { .. })) {
        let molecules = num_informative_molecules(call);
        most.entry(call.change.clone()).and_modify(|n| *n = molecules.max(*n)).or_insert(molecules);
    }
    most
}

/// Number of molecules of all samples that support one of the alleles.
fn num_informative_molecules(call: &VariantCall) -> u32 {
    call.genotype.normal.num_informative_molecules() + call.genotype.tumour.num_informative_molecules()
}

/// Keeps the best call of each change, the best first, without single breakends that are an end of a passing junction
/// or insertion. Also returns which of them are junctions or single breakends. Of the calls of an allele on several
/// contigs only those with nearly the most molecules may be the best.
fn merge_equal_calls(mut calls: Vec<VariantCall>) -> (Vec<VariantCall>, Vec<usize>) {
    let most_molecules = most_molecules_by_allele(&calls);
    calls.sort_by(|a, b| {
        let loose = |c: &VariantCall| matches!(c.change, Change::Novel { .. });
        let quality = |c: &VariantCall| std::cmp::Reverse(c.genotype.quality as i64);
        let rank = |c: &VariantCall| (c.genotype.filters.len(), loose(c), quality(c), c.locus);
        rank(a).cmp(&rank(b)).then_with(|| a.change.cmp(&b.change))
    });
    // Alleles are copies if they are equal. Only junctions and loose ends, which are few, are compared by distance.
    let mut alleles: HashSet<Change> = HashSet::new();
    let (mut kept, mut structural): (Vec<VariantCall>, Vec<usize>) = (Vec::new(), Vec::new());
    for call in calls {
        let fresh = match &call.change {
            change @ Change::Allele { .. } => {
                let most = most_molecules.get(change).copied().unwrap_or_default();
                f64::from(num_informative_molecules(&call)) >= f64::from(most) * MIN_MOLECULE_SHARE_OF_EQUAL_CALL
                    && alleles.insert(change.clone())
            }
            change => {
                !structural.iter().any(|&i| are_breakends_equal_within_tolerance(&kept[i].change, change))
                    && !kept.iter().any(|k| k.genotype.filters.is_empty() && is_end_of_change(&k.change, change))
            }
        };
        if fresh {
            if !matches!(call.change, Change::Allele { .. }) {
                structural.push(kept.len());
            }
            kept.push(call);
        }
    }
    (kept, structural)
}

/// What two changes form together: the class and, if they insert an element, the element.
type JoinedClass = (EventClass, Option<InsertedElement>);

/// Returns what two calls form together; `None` if they are separate events.
type JoinTest<'a> = &'a dyn Fn(&VariantCall, &VariantCall) -> Option<JoinedClass>;

/// Makes the events of calls, the best first: of two calls for each pair of changes that form one event. Of an inversion
/// and of an inserted element both ends agree, of others one; so the former are joined first.
fn join_calls(calls: Vec<VariantCall>, structural: &[usize], genome: &Reference) -> Vec<Event> {
    let element = |a: &VariantCall, b: &VariantCall| -> Option<JoinedClass> {
        let passes = [a, b].iter().any(|call| call.genotype.filters.is_empty());
        let element = passes.then(|| InsertedElement::from_junctions(&a.change, &b.change, genome)).flatten()?;
        Some((EventClass::Ins, Some(element)))
    };
    let other = |a: &VariantCall, b: &VariantCall| Some((class_of_shared_end(&a.change, &b.change)?, None));
    let inversion = |a: &VariantCall, b: &VariantCall| {
        are_sides_of_inversion(&a.change, &b.change).then_some((EventClass::Inv, None))
    };
    let joins: [JoinTest<'_>; 3] = [&inversion, &element, &other];
    let mut is_second = vec![false; calls.len()];
    let mut seconds: HashMap<usize, (usize, JoinedClass)> = HashMap::new();
    for join in joins {
        for (n, &i) in structural.iter().enumerate() {
            let is_single = |j: usize| !is_second[j] && !seconds.contains_key(&j);
            if !is_single(i) {
                continue;
            }
            let mut later = structural[n + 1..].iter().copied().filter(|&j| is_single(j));
            let found = later.find_map(|j| Some((j, join(&calls[i], &calls[j])?)));
            if let Some((j, class)) = found {
                is_second[j] = true;
                seconds.insert(i, (j, class));
            }
        }
    }
    let firsts = (0..calls.len()).filter(|&i| !is_second[i]);
    firsts
        .map(|i| match seconds.remove(&i) {
            Some((j, (class, inserted_element))) => {
                Event { class, calls: vec![calls[i].clone(), calls[j].clone()], inserted_element, phase_set: None }
            }
            None => {
                let class = event_class_of_change(&calls[i].change);
                Event { class, calls: vec![calls[i].clone()], inserted_element: None, phase_set: None }
            }
        })
        .collect()
}

/// Adds filters to the calls of an event that ends of reads or fold-back artefacts may have made.
fn filter_artefacts(calls: &mut [VariantCall], thresholds: &CallThresholds) {
    // Where reads end a few bases beyond the junction, the new sequence is unknown.
    if let [VariantCall { change: Change::Novel { sequence, .. }, genotype, .. }] = calls
        && sequence.len() < MIN_STRUCTURAL_VARIANT_BP
    {
        genotype.filters.insert(Filter::ReadEnds);
    }
    // Two junctions confirm each other, unless both have as few molecules as artefacts have, or both turn back: an
    // inversion has no base twice.
    let apart = calls.len() > 1 && !calls.iter().all(|call| call.is_fold_back);
    let limits = if apart { [LOCAL_ARTEFACT_LIMIT; 2] } else { [INVERTED_ARTEFACT_LIMIT, LOCAL_ARTEFACT_LIMIT] };
    let limits = if thresholds.has_fold_back_artefacts { limits } else { [RARE_ARTEFACT_LIMIT, NO_ARTEFACT_LIMIT] };
    let is_hairpin = calls.len() == 1 && may_be_hairpin_artefact(&calls[0]);
    if is_hairpin || calls.iter().all(|call| may_be_fold_back_artefact(call, limits)) {
        calls.iter_mut().for_each(|call| _ = call.genotype.filters.insert(Filter::FoldBack));
    }
}

/// Converts deletions and tandem duplications below 50 bp that were found as junctions to small variants. If another
/// event has the same variant, only the one with fewer filters, or the higher quality, is kept. The order by position
/// is kept.
pub(crate) fn convert_short_junctions_to_alleles(events: &mut Vec<Event>, genome: &Reference) {
    let mut is_any_written = false;
    for event in events.iter_mut() {
        let [call] = &mut event.calls[..] else { continue };
        if let Some(allele) = change::convert_short_junction_to_allele(&call.change, genome) {
            event.class = event_class_of_change(&allele);
            call.change = allele;
            is_any_written = true;
        }
    }
    if !is_any_written {
        return;
    }
    let rank = |event: &Event| event.calls[0].genotype.sort_key_best_first();
    let place = |event: &Event| change_sort_position(&event.calls[0].change);
    events.sort_by(|a, b| {
        let by_change = || a.calls[0].change.cmp(&b.calls[0].change);
        place(a).cmp(&place(b)).then_with(by_change).then_with(|| rank(a).cmp(&rank(b)))
    });
    events.dedup_by(|next, first| next.calls.len() == 1 && next.calls[0].change == first.calls[0].change);
}

/// Whether `loose`, a single breakend with novel sequence, is one end of `whole`: a junction or an insertion at the
/// same position.
fn is_end_of_change(whole: &Change, loose: &Change) -> bool {
    let Change::Novel { end, .. } = loose else { return false };
    match whole {
        Change::Junction { ends, .. } => ends.iter().any(|e| are_breakends_near(e, end, MAX_SAME_BREAKEND_DISTANCE_BP)),
        Change::Allele { chrom, pos, reference, alternative } => {
            *chrom == end.chrom
                && alternative.len() > reference.len() + MAX_SAME_BREAKEND_DISTANCE_BP
                && pos.abs_diff(end.pos) <= MAX_SAME_BREAKEND_DISTANCE_BP
        }
        Change::Novel { .. } => false,
    }
}

/// The class of an event that consists of one change.
pub(crate) fn event_class_of_change(change: &Change) -> EventClass {
    match change {
        Change::Allele { reference, alternative, .. } => match (reference.len(), alternative.len()) {
            (1, 1) => EventClass::Snv,
            (r, a) if r == a => EventClass::Mnv,
            (r, a) if r >= a + MIN_STRUCTURAL_VARIANT_BP => EventClass::Del,
            (r, a) if a >= r + MIN_STRUCTURAL_VARIANT_BP => EventClass::Ins,
            _ => EventClass::Indel,
        },
        Change::Junction { ends: [a, b], .. } if a.chrom == b.chrom => match (a.side, b.side) {
            (RetainedSide::Left, RetainedSide::Right) => EventClass::Del,
            (RetainedSide::Right, RetainedSide::Left) => EventClass::Dup,
            _ => EventClass::Bnd,
        },
        Change::Junction { .. } => EventClass::Bnd,
        Change::Novel { .. } => EventClass::Ins,
    }
}

/// Whether two junctions are the two sides of an inversion.
fn are_sides_of_inversion(a: &Change, b: &Change) -> bool {
    let (Change::Junction { ends: x, .. }, Change::Junction { ends: y, .. }) = (a, b) else { return false };
    let inverted = |e: &[Breakend; 2], side| e[0].chrom == e[1].chrom && e[0].side == side && e[1].side == side;
    let both = |l, r| inverted(x, l) && inverted(y, r);
    (both(RetainedSide::Left, RetainedSide::Right) || both(RetainedSide::Right, RetainedSide::Left))
        && x.iter().zip(y).all(|(x, y)| are_breakends_near(x, y, MAX_PARTNER_JUNCTION_DISTANCE_BP))
}

/// The class of the event that two changes with one common end form: an insertion of which two sides are known, a copy
/// inserted elsewhere, or a reciprocal translocation. `None` if they are separate events.
fn class_of_shared_end(a: &Change, b: &Change) -> Option<EventClass> {
    let faces =
        |p: &Breakend, q: &Breakend| are_breakends_near(p, q, MAX_PARTNER_JUNCTION_DISTANCE_BP) && p.side != q.side;
    match (a, b) {
        (Change::Novel { end: x, .. }, Change::Novel { end: y, .. }) => faces(x, y).then_some(EventClass::Ins),
        (Change::Junction { ends: x, .. }, Change::Junction { ends: y, .. }) => {
            let is_joined = |(m, n): (usize, usize)| {
                let (other, another) = (&x[1 - m], &y[1 - n]);
                faces(&x[m], &y[n]) && other.chrom == another.chrom && other.side != another.side
            };
            [(0, 0), (0, 1), (1, 0), (1, 1)].into_iter().any(is_joined).then_some(EventClass::Bnd)
        }
        _ => None,
    }
}

/// Two changes that are on the same haplotype.
type PhaseLink = [Change; 2];

/// Collects the phase links of all calls, before calls of the same change from several contigs are merged.
fn collect_phase_links(calls: &[VariantCall]) -> Vec<PhaseLink> {
    calls.iter().flat_map(|c| c.phased_changes.iter().map(|other| [c.change.clone(), other.clone()])).collect()
}

/// Assigns phase sets to the passing small variants among the events, which must be sorted by position. The name of a
/// phase set is the position of its first event.
fn assign_phase_sets(events: &mut [Event], links: &[PhaseLink]) {
    let passing = |e: &Event| e.calls[0].genotype.filters.is_empty() && is_small_variant(&e.calls[0].change);
    let at: HashMap<&Change, u32> =
        (0..).zip(events.iter()).filter(|(_, e)| passing(e)).map(|(i, e)| (&e.calls[0].change, i)).collect();
    let sets = DisjointSets::create_singleton_sets(events.len());
    let mut linked = vec![false; events.len()];
    for [a, b] in links {
        let (Some(&a), Some(&b)) = (at.get(a), at.get(b)) else { continue };
        let chrom = |i: u32| change_sort_position(&events[i as usize].calls[0].change).0;
        if chrom(a) != chrom(b) {
            continue;
        }
        sets.join_sets(a, b);
        (linked[a as usize], linked[b as usize]) = (true, true);
    }
    for i in (0..events.len()).filter(|&i| linked[i]) {
        let first = sets.find_smallest_member(i as u32) as usize;
        events[i].phase_set = Some(change_sort_position(&events[first].calls[0].change).1);
    }
}
