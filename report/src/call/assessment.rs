//! Assesses the quality of a sample pair: whether its calls can be trusted, and what the user should do.

use genuma_pair::confidence_interval::Estimate;
use genuma_pair::identity::Relation;
use genuma_pair::library::LibraryMetrics;
use genuma_pair::library_properties::SamplePairLibraryProperties;
use genuma_pair::pair_summary::SamplePairSummary;
use genuma_pair::site_tally::SUBSTITUTION_CLASS_NAMES;
use genuma_somatic::call_summary::CallSummary;
use genuma_somatic::sample_summary::SampleSummary;
use genuma_somatic::target_depth::CallTargetSummary;

use super::number_format::{format_percent, format_share_with_interval};

/// How good a property of the sample pair is; ordered from good to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingLevel {
    /// The property does not impair the calls.
    Good,
    /// The data are too few for a statement.
    Unknown,
    /// The property impairs some calls: the user should check them.
    Check,
    /// The property makes the calls untrustworthy.
    Bad,
}

/// A statement of the report on one property of the sample pair.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub level: FindingLevel,
    /// Name of the property, such as `Purity`.
    pub topic: &'static str,
    /// One or two sentences of plain text.
    pub message: String,
}

/// Contamination levels (shares). From the first level on, the report advises to check calls, unless the interval of
/// the contamination includes 0. If the value and the lower end of its interval are above the second level, the report
/// says that calls cannot be trusted. Chosen: a heterozygous foreign allele is in half as many reads as the
/// contamination share. At 1% contamination it is in one read of 200, as rare as sequencing errors; at 3% it looks like
/// the variants of a small subclone.
const CONTAMINATION_LEVELS: [f64; 2] = [0.01, 0.03];
/// Maximum number of somatic changes per heterozygous site of the genome. If a tumour has more, they cannot be
/// distinguished from foreign alleles. Empirical: a clean tumour with 0.26 was estimated to have 5.8% contamination
/// (4.4-6.8).
const MAX_CHANGES_PER_HET_SITE: f64 = 0.1;
/// Levels of tumour in normal (shares). From the first level on, the report advises to check calls, unless the interval
/// of the share includes 0. If the share is above the second level, and the lower end of its interval above the first,
/// the report says that calls cannot be trusted. Chosen: a heterozygous clonal change is in half as many reads of the
/// normal as this share. At 5% it is in one read of 40, and looks like a germline variant.
const TUMOUR_IN_NORMAL_LEVELS: [f64; 2] = [0.02, 0.05];
/// Levels of the low-depth share (share of sites with less than a fifth of the mean depth) and, with `--targets`, of
/// the share of target bases in targets with nearly no coverage. Above the first level the report advises to check
/// calls, above the second it says that calls cannot be trusted. Chosen: evenly covered genomes have about 1%; at 20%,
/// changes in a fifth of the genome cannot be found.
const LOW_DEPTH_LEVELS: [f64; 2] = [0.05, 0.2];
/// Maximum unevenness of depth (coefficient of variation beyond chance) for a good finding. Whole genomes have 0.1 to
/// 0.3, captured exomes more. Above 0.5 copy numbers cannot be estimated from depth. Empirical.
const MAX_UNEVENNESS: f64 = 0.5;
/// Minimum depth for a good finding on coverage: mean number of molecules per site, mean depth of the targets, or read
/// pairs per base of deep libraries. Chosen: at a lower depth, a change that half of the cells have is in one or two
/// molecules only.
const MIN_DEPTH: f64 = 5.0;
/// Levels of the share of PCR duplicates: above the first the report advises to check, above the second it rates the
/// library as bad. Chosen: from 30% on the number of molecules limits the depth; at 75% only a quarter of the pairs is
/// informative.
const DUPLICATE_LEVELS: [f64; 2] = [0.3, 0.75];
/// Minimum ratio of a substitution's error rate to the median rate of all six substitutions for which damage is
/// reported. Empirical: without damage the ratio is below 2.
const MIN_DAMAGE_RATIO: f64 = 2.5;
/// Minimum error rate of a substitution for which damage is reported. Lower rates (Phred 47) do not cause false calls.
/// Chosen.
const MIN_DAMAGE_RATE: f64 = 2e-5;
/// Minimum number of reads with a substitution for which damage is reported. Chosen.
const MIN_DAMAGE_READS: f64 = 20.0;
/// If the upper end of the interval of the purity is below this value, the report warns of low purity. Chosen: at this
/// purity a clonal change is in only a tenth of the reads.
const MIN_PURITY: f64 = 0.2;

/// Assesses all properties of the normal and the first tumour. Returns the findings in the order in which the report
/// shows them; the identity of the samples (or the missing normal) is the first.
pub fn assess_sample_pair(outcome: &CallSummary) -> Vec<Finding> {
    let pair = outcome.sample_summary.pair.as_ref();
    let libraries = [&outcome.libraries.normal, &outcome.libraries.tumor];
    let mut findings = if outcome.has_normal {
        vec![
            assess_identity(pair, outcome.genotype_mismatch_rate),
            assess_contamination(pair, 0, None),
            assess_contamination(pair, 1, outcome.sample_summary.burden),
            assess_tumour_in_normal(pair, &outcome.sample_summary),
            assess_purity(pair),
        ]
    } else {
        vec![missing_normal(outcome)]
    };
    findings.extend([
        outcome.targets.as_ref().map_or_else(
            || assess_deep_coverage(&outcome.sample_summary.libraries).unwrap_or_else(|| assess_coverage(pair)),
            assess_target_coverage,
        ),
        assess_duplicates(libraries, outcome.has_normal),
        assess_damage(pair),
    ]);
    findings
}

/// Returns the finding that there is no normal.
fn missing_normal(outcome: &CallSummary) -> Finding {
    let advice = match outcome.known {
        Some(_) => {
            "Germline variants that the known variants lack may be among the calls, and somatic variants with the allele \
             fraction of a germline variant are missed"
        }
        None => {
            "Hardly any call passes without known variants of the population (--known), because nearly all variants are \
             germline variants"
        }
    };
    new_finding(FindingLevel::Check, "Normal", format!("There is no normal. {advice}."))
}

/// Returns the overall level of the findings, and a sentence that states it. Unknown properties are ignored, except the
/// identity of the samples, which must be the first finding.
pub fn overall_verdict(findings: &[Finding]) -> (FindingLevel, &'static str) {
    let worst = findings.iter().map(|f| f.level).filter(|&level| level != FindingLevel::Unknown).max();
    let person = findings.first().map_or(FindingLevel::Unknown, |f| f.level);
    match worst {
        Some(FindingLevel::Bad) if person == FindingLevel::Bad => {
            (FindingLevel::Bad, "Do not trust these calls: the samples are not a matched pair")
        }
        Some(FindingLevel::Bad) => {
            (FindingLevel::Bad, "Do not trust these calls until the findings marked as bad are explained")
        }
        Some(FindingLevel::Check) => (FindingLevel::Check, "Check the marked findings before you trust these calls"),
        _ if person == FindingLevel::Good => (FindingLevel::Good, "No problems found with this pair of samples"),
        _ => (FindingLevel::Unknown, "Too little data to decide whether the samples are a matched pair"),
    }
}

fn new_finding(level: FindingLevel, about: &'static str, says: impl Into<String>) -> Finding {
    Finding { level, topic: about, message: says.into() }
}

/// Grades a share by two thresholds, the second of which is the higher one. The grade is `Bad` if the share is above the
/// second threshold and the lower end of its interval is above `sure`, else `Check` if the share is at least the first
/// threshold and its interval does not include 0, else `Good`.
fn grade_share(found: Estimate, [look, bad]: [f64; 2], sure: f64) -> FindingLevel {
    match found {
        Estimate { value, low, .. } if value > bad && low > sure => FindingLevel::Bad,
        Estimate { value, low, .. } if value >= look && low > 0.0 => FindingLevel::Check,
        _ => FindingLevel::Good,
    }
}

fn assess_identity(pair: Option<&SamplePairSummary>, genotype_mismatch_rate: Option<f64>) -> Finding {
    let different_people = |of: &str, and: &str| {
        format!(
            "The samples are of {of}, not of one person{and}. Calls cannot be trusted, because most are germline \
             differences: check for a sample swap."
        )
    };
    let (level, message) = match (pair.map(|pair| pair.identity.relation), genotype_mismatch_rate) {
        (Some(Relation::Relatives), _) => (FindingLevel::Bad, different_people("close relatives", "")),
        (Some(Relation::Unrelated), _) => (FindingLevel::Bad, different_people("two people", "")),
        (Some(Relation::Different), _) => (FindingLevel::Bad, different_people("two people", "; they are possibly relatives")),
        (Some(Relation::Same), None) => (FindingLevel::Good, "Both samples are of the same person.".into()),
        (Some(Relation::Same), Some(mismatch_rate)) => (
            FindingLevel::Check,
            format!(
                "The samples match one person, but at {} of the sites covered in both each has an allele that the other \
                 lacks, which is more than in one person. Check the contamination below.",
                format_percent(mismatch_rate)
            ),
        ),
        (_, Some(alone)) => (
            FindingLevel::Bad,
            format!(
                "At {} of the sites covered in both samples each has an allele that the other lacks, which is more than \
                 in one person. Calls cannot be trusted: check for a sample swap.",
                format_percent(alone)
            ),
        ),
        (Some(Relation::SameOrRelatives), None) => (
            FindingLevel::Unknown,
            "The samples are of the same person or of close relatives, not of two unrelated people. The depth is too low \
             to tell more."
                .into(),
        ),
        (Some(Relation::Unknown) | None, None) => (
            FindingLevel::Unknown,
            "Too few sites are covered deeply enough in both samples to decide whether they are of the same person. \
             Verify the identity in another way."
                .into(),
        ),
    };
    new_finding(level, "Identity", message)
}

/// Returns whether the samples were compared and may be of one person. Otherwise other facts about the pair are
/// meaningless.
fn may_be_one_person(pair: Option<&SamplePairSummary>) -> bool {
    pair.is_some_and(|pair| pair.identity.may_be_same_person())
}

/// Returns the reason why the contamination of a sample is unknown.
pub fn contamination_unknown_reason(pair: Option<&SamplePairSummary>) -> &'static str {
    match pair {
        None => "the samples were not compared",
        Some(pair) if !pair.identity.may_be_same_person() => "the samples are of different people",
        Some(pair) if pair.identity.heterozygosity.is_none() => "depth too low, or too few sites",
        Some(_) => "too few sites",
    }
}

/// Returns the reason why the purity is unknown.
pub fn purity_unknown_reason(pair: Option<&SamplePairSummary>) -> String {
    match pair.map(|pair| (pair.identity.may_be_same_person(), pair.tumour.as_ref())) {
        None => "the samples were not compared".into(),
        Some((false, _)) => "the samples are of different people".into(),
        Some((true, tumour)) => {
            let Some(tumour) = tumour else { return "purity was not estimated".into() };
            let (word, sites, changes) = (&tumour.note, tumour.heterozygous_sites, tumour.changes);
            format!("{word} ({sites} heterozygous sites, {changes} somatic changes)")
        }
    }
}

/// Returns whether a tumour has so many somatic changes that contamination cannot be estimated. `burden` is their
/// number per million bases.
fn is_highly_mutated(pair: Option<&SamplePairSummary>, burden: Option<Estimate>) -> bool {
    let het = pair.and_then(|pair| pair.identity.heterozygosity).map_or(0.0, |both| both[0]);
    burden.is_some_and(|burden| burden.value / 1e6 > MAX_CHANGES_PER_HET_SITE * het)
}

fn assess_contamination(pair: Option<&SamplePairSummary>, sample: usize, burden: Option<Estimate>) -> Finding {
    let (topic, whose) = [("Contamination of the normal", "normal"), ("Contamination of the tumour", "tumour")][sample];
    let Some(found) = pair.and_then(|pair| pair.contamination[sample]) else {
        let why = contamination_unknown_reason(pair);
        return new_finding(
            FindingLevel::Unknown,
            topic,
            format!("The contamination of the {whose} is unknown: {why}."),
        );
    };
    let share = format_share_with_interval(found.share);
    let mutated = is_highly_mutated(pair, burden);
    let level = grade_share(found.share, CONTAMINATION_LEVELS, CONTAMINATION_LEVELS[1]);
    let level = match level {
        FindingLevel::Bad if mutated => FindingLevel::Check,
        FindingLevel::Good if found.share.high > CONTAMINATION_LEVELS[1] => FindingLevel::Unknown,
        level => level,
    };
    let message = match level {
        FindingLevel::Check if mutated => format!(
            "{share} of the DNA in the {whose} looks like another person's, but the tumour has so many somatic changes \
             that they may be mistaken for it. Verify the contamination in another way."
        ),
        FindingLevel::Bad => format!(
            "{share} of the DNA in the {whose} is another person's. Calls cannot be trusted: prepare and sequence the \
             sample again."
        ),
        FindingLevel::Check if sample == 1 => format!(
            "{share} of the DNA in the tumour is another person's. Check calls of low allele fraction at known germline \
             variants (dbSNP, gnomAD)."
        ),
        FindingLevel::Check => format!(
            "{share} of the DNA in the normal is another person's. Somatic variants that this person inherited may be \
             filtered."
        ),
        FindingLevel::Unknown => {
            format!("There are too few sites to decide whether the {whose} is contaminated: {share}.")
        }
        _ if found.share.value >= CONTAMINATION_LEVELS[0] => {
            format!("The {whose} may be slightly contaminated or not at all: {share}.")
        }
        _ => format!("The {whose} has almost no contamination: {share}."),
    };
    new_finding(level, topic, message)
}

/// Default reason in the report why the share of tumour in normal is unknown.
pub const DEFAULT_UNKNOWN_TIN_REASON: &str = "too few clear somatic changes";

fn assess_tumour_in_normal(pair: Option<&SamplePairSummary>, portrait: &SampleSummary) -> Finding {
    const ABOUT: &str = "Tumour in the normal";
    let Some(found) = portrait.tumour_in_normal.filter(|_| may_be_one_person(pair)) else {
        let why = if may_be_one_person(pair) || pair.is_none() {
            portrait.why_no_tumour_in_normal.as_deref().unwrap_or(DEFAULT_UNKNOWN_TIN_REASON)
        } else {
            "the samples are of different people"
        };
        let message = format!("The share of tumour cells in the normal is unknown: {why}.");
        return new_finding(FindingLevel::Unknown, ABOUT, message);
    };
    let share = format_share_with_interval(found);
    let level = grade_share(found, TUMOUR_IN_NORMAL_LEVELS, TUMOUR_IN_NORMAL_LEVELS[0]);
    let message = match level {
        FindingLevel::Bad => format!(
            "{share} of the normal's cells are tumour cells. Many somatic variants look inherited and are missed: \
             use another normal, such as saliva or skin."
        ),
        FindingLevel::Check => format!(
            "{share} of the normal's cells are tumour cells. Check the calls that were filtered as tumour_in_normal \
             or germline."
        ),
        _ => format!("The normal has almost no tumour cells: {share}."),
    };
    new_finding(level, ABOUT, message)
}

fn assess_purity(pair: Option<&SamplePairSummary>) -> Finding {
    const ABOUT: &str = "Purity";
    match pair.and_then(|pair| pair.tumour.as_ref()).and_then(|tumour| tumour.purity) {
        None => new_finding(
            FindingLevel::Unknown,
            ABOUT,
            format!("The purity is unknown: {}.", purity_unknown_reason(pair)),
        ),
        Some(purity) if purity.high < MIN_PURITY => new_finding(
            FindingLevel::Check,
            ABOUT,
            format!(
                "Only {} of the cells are tumour cells. Subclonal variants are missed: deeper sequencing or a purer \
                 sample would show more.",
                format_share_with_interval(purity)
            ),
        ),
        Some(purity) => new_finding(
            FindingLevel::Good,
            ABOUT,
            format!("{} of the cells are tumour cells.", format_share_with_interval(purity)),
        ),
    }
}

/// Maximum depth, in read pairs per base, up to which the report states the evenness of coverage. Chosen: somewhat
/// below the largest depth that the site tally distinguishes.
const MAX_DEPTH_FOR_EVENNESS: f64 = 200.0;

/// Assesses the coverage of libraries that are too deep to measure its evenness, such as amplicons; `None` for other
/// libraries.
fn assess_deep_coverage(libraries: &SamplePairLibraryProperties) -> Option<Finding> {
    let [normal, tumour] = [libraries.normal.depth, libraries.tumour.depth];
    (normal.max(tumour) >= MAX_DEPTH_FOR_EVENNESS).then(|| {
        let level = if normal.min(tumour) < MIN_DEPTH { FindingLevel::Check } else { FindingLevel::Good };
        let message = format!(
            "A typical base has {normal:.0} read pairs of the normal and {tumour:.0} of the tumour, without bases of low quality. \
             The evenness of so deep libraries is not measured; --targets gives the depth of each target."
        );
        new_finding(level, "Coverage", message)
    })
}

fn assess_coverage(pair: Option<&SamplePairSummary>) -> Finding {
    const ABOUT: &str = "Coverage";
    let Some(pair) = pair else {
        return new_finding(FindingLevel::Unknown, ABOUT, "The evenness of coverage is unknown.");
    };
    let (mut level, mut problems) = (FindingLevel::Good, Vec::new());
    for (name, covered) in ["normal", "tumour"].into_iter().zip(&pair.coverage) {
        if covered.low_depth_share > LOW_DEPTH_LEVELS[0] {
            level = level.max(if covered.low_depth_share > LOW_DEPTH_LEVELS[1] {
                FindingLevel::Bad
            } else {
                FindingLevel::Check
            });
            problems
                .push(format!("{} of the sites of the {name} have low depth", format_percent(covered.low_depth_share)));
        }
        if covered.unevenness > MAX_UNEVENNESS {
            level = level.max(FindingLevel::Check);
            problems.push(format!("the depth of the {name} is uneven ({:.2})", covered.unevenness));
        }
        if covered.mean_depth < MIN_DEPTH {
            level = level.max(FindingLevel::Check);
            problems.push(format!("the {name} has {:.1} molecules per site", covered.mean_depth));
        }
    }
    let message = match problems.is_empty() {
        true => {
            let [normal, tumour] = [0, 1].map(|s| format_percent(pair.coverage[s].low_depth_share));
            format!(
                "Both samples are evenly covered; {normal} (normal) and {tumour} (tumour) of the sites have low depth."
            )
        }
        false => {
            let mut odd = problems.join("; ");
            odd[..1].make_ascii_uppercase();
            format!("{odd}. Variants may be missed where the depth is low.")
        }
    };
    new_finding(level, ABOUT, message)
}

/// Assesses the depth of capture targets. It replaces the evenness of the whole genome, which says nothing about a
/// capture.
fn assess_target_coverage(targets: &CallTargetSummary) -> Finding {
    let (mut level, mut messages) = (FindingLevel::Good, Vec::new());
    for (name, covered) in ["normal", "tumour"].into_iter().zip(&targets.samples) {
        if covered.uncovered_share > LOW_DEPTH_LEVELS[1] {
            level = FindingLevel::Bad;
        } else if covered.uncovered_share > LOW_DEPTH_LEVELS[0] || covered.mean_depth < MIN_DEPTH {
            level = level.max(FindingLevel::Check);
        }
        messages.push(format!(
            "On target the {name} has a mean depth of {:.0}; {} of the bases have 20 or more, and {} of {} targets have \
             nearly no coverage.",
            covered.mean_depth,
            format_percent(covered.share_at_20x),
            covered.uncovered_targets,
            targets.targets
        ));
    }
    if level > FindingLevel::Good {
        messages
            .push("Variants may be missed where the depth is low; targets.tsv lists the depth of each target.".into());
    }
    new_finding(level, "Coverage", messages.join(" "))
}

fn assess_duplicates(libraries: [&LibraryMetrics; 2], has_normal: bool) -> Finding {
    const ABOUT: &str = "Duplicates";
    // In amplicon libraries duplicates cannot be recognised.
    let known = |library: &&LibraryMetrics| !library.duplicates.note.contains("amplicons");
    let found = libraries.map(|library| Some(library).filter(known).and_then(|own| own.duplicates.pcr_duplicates));
    if found == [None, None] {
        return new_finding(FindingLevel::Unknown, ABOUT, "The share of PCR duplicates is unknown.");
    }
    let level = found.iter().flatten().map(|copied| match copied.value {
        value if value > DUPLICATE_LEVELS[1] => FindingLevel::Bad,
        value if value > DUPLICATE_LEVELS[0] => FindingLevel::Check,
        _ => FindingLevel::Good,
    });
    let level = level.max().unwrap_or(FindingLevel::Unknown);
    let [normal, tumour] = found.map(|copied| copied.map_or("an unknown share".into(), |c| format_percent(c.value)));
    let more = match level {
        FindingLevel::Good => "Duplicates are counted once.",
        FindingLevel::Check => {
            "Duplicates are counted once, so the effective depth is lower. More reads of the same library add little."
        }
        _ => "Almost only duplicates were sequenced, so the effective depth is very low: prepare another library.",
    };
    new_finding(
        level,
        ABOUT,
        if has_normal {
            format!(
                "{normal} of the pairs of the normal and {tumour} of the pairs of the tumour are duplicates. {more}"
            )
        } else {
            format!("{tumour} of the pairs are duplicates. {more}")
        },
    )
}

/// Returns the substitution with the highest error rate in a sample (index in [`SUBSTITUTION_CLASS_NAMES`]), and this
/// rate as a multiple of the median rate of all six substitutions. `None` if the rate is too low or rests on too few
/// reads for damage, or if the rates are unknown.
pub fn find_damaged_substitution(pair: &SamplePairSummary, sample: usize) -> Option<(usize, f64)> {
    let wrong = pair.substitution_error_rates[sample]?;
    let mut sorted = wrong;
    sorted.sort_by(f64::total_cmp);
    let median = (sorted[2] + sorted[3]) / 2.0;
    let (at, rate) = wrong.into_iter().enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let reads = pair.roots as f64 * pair.coverage[sample].mean_depth * rate;
    let much = rate > MIN_DAMAGE_RATIO * median && rate > MIN_DAMAGE_RATE && reads >= MIN_DAMAGE_READS;
    much.then(|| (at, rate / median.max(1e-9)))
}

fn assess_damage(pair: Option<&SamplePairSummary>) -> Finding {
    const ABOUT: &str = "Damage";
    let Some(pair) = pair.filter(|pair| {
        pair.substitution_error_rates.iter().all(|wrong| wrong.iter().flatten().any(|rate| *rate > 0.0))
    }) else {
        return new_finding(FindingLevel::Unknown, ABOUT, "DNA damage is unknown: too few bases.");
    };
    let found: Vec<String> = ["normal", "tumour"]
        .into_iter()
        .enumerate()
        .filter_map(|(sample, name)| {
            let (at, times) = find_damaged_substitution(pair, sample)?;
            let cause = match SUBSTITUTION_CLASS_NAMES[at] {
                "C>T" => ", as in old or formalin-fixed DNA",
                "C>A" => ", as in oxidised DNA",
                _ => "",
            };
            let times = if times < 100.0 { format!("{times:.1}") } else { "over 100".into() };
            Some(format!(
                "{} errors in the {name} are {times} times as frequent as the median substitution error{cause}",
                SUBSTITUTION_CLASS_NAMES[at]
            ))
        })
        .collect();
    match found.is_empty() {
        true => new_finding(FindingLevel::Good, ABOUT, "No substitution error is much more frequent than the others."),
        false => new_finding(
            FindingLevel::Check,
            ABOUT,
            format!(
                "{}. Check calls of this substitution that have a low allele fraction or come from one strand only.",
                found.join("; ")
            ),
        ),
    }
}

#[cfg(test)]
mod tests;
