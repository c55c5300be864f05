//! Whether a pair of samples can be trusted: what each fact means, and what to do.

use genuma_pair::facts::PairFacts;
use genuma_pair::identity::Relation;
use genuma_pair::interval::Estimate;
use genuma_pair::library::Library;
use genuma_pair::roots::SUBSTITUTIONS;
use genuma_somatic::outcome::Outcome;
use genuma_somatic::portrait::Portrait;

use super::words::{percent, share};

/// How a fact is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Nothing to do.
    Good,
    /// There is too little to tell.
    Untold,
    /// Calls of one kind are to be looked at.
    Look,
    /// Calls are not to be trusted.
    Bad,
}

/// One fact, and what it means.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    /// What it is about.
    pub(crate) about: &'static str,
    /// A sentence or two, as text.
    pub(crate) says: String,
}

/// Share of another person's DNA from which one looks, and from which calls are not to be trusted even at the lower end of the interval: an allele of another
/// person is in half of his share, so that of 1 % one read in 200 has it, which errors have too, and of 3 % as many reads as a change of few cells has.
const CONTAMINATION: [f64; 2] = [0.01, 0.03];
/// Changes of the tumour for each heterozygous place of the person, above which they are too many to be told from another person's alleles: of a clean tumour
/// with 0.26 of them 5.8 % (4.4-6.8) are told to be foreign.
const MUTATED: f64 = 0.1;
/// Share of the tumour's cells in the normal. A change of all of its cells is in half as many reads: from 5 % on one read of 40, and it looks inherited.
const TUMOUR_IN_NORMAL: [f64; 2] = [0.02, 0.05];
/// Share of places with less than a fifth of the average depth: an even genome has a hundredth, and in a fifth of the genome nothing could be found.
const THIN: [f64; 2] = [0.05, 0.2];
/// Unevenness beyond chance: genomes have 0.1 to 0.3, captured ones more, and at one half depth says little of copies.
const UNEVEN: f64 = 0.5;
/// Molecules at a place, below which a change of half of the cells is in one or two.
const SHALLOW: f64 = 5.0;
/// Share of pairs that are copies beyond chance: from a third on the library is what limits the depth, of three quarters a fourth of the reads says anything.
const COPIES: [f64; 2] = [0.3, 0.75];
/// How many times the median of all six a substitution is read wrong that is damage: without damage they differ by less than two.
const DAMAGE: f64 = 2.5;
/// What is read wrong less often than this does not make calls, whatever it is (quality 47).
const HARMLESS: f64 = 2e-5;
/// Fewest reads with a substitution by which it is known.
const FEWEST_WRONG: f64 = 20.0;
/// Purity at the upper end of the interval, below which a change of all tumour cells is in less than a tenth of the reads.
const PURITY: f64 = 0.2;

/// Everything that is told, in the order that it is read.
pub(crate) fn findings(outcome: &Outcome) -> Vec<Finding> {
    let pair = outcome.portrait.pair.as_ref();
    let libraries = [&outcome.libraries.normal, &outcome.libraries.tumor];
    vec![
        person(pair, outcome.strangers),
        contamination(pair, 0, None),
        contamination(pair, 1, outcome.portrait.burden),
        tumour_in_normal(pair, &outcome.portrait),
        purity(pair),
        coverage(pair),
        copies(libraries),
        damage(pair),
    ]
}

/// All of it in a sentence. Calls can be good where a fact cannot be told, but not where nobody knows whether the samples are a pair.
pub(crate) fn together(findings: &[Finding]) -> (Level, &'static str) {
    let worst = findings.iter().map(|f| f.level).filter(|&level| level != Level::Untold).max();
    let person = findings.first().map_or(Level::Untold, |f| f.level);
    match worst {
        Some(Level::Bad) if person == Level::Bad => {
            (Level::Bad, "Do not trust these calls: the samples are not a pair")
        }
        Some(Level::Bad) => (Level::Bad, "Do not trust these calls before you know why"),
        Some(Level::Look) => (Level::Look, "Trust these calls with care: look at what is marked"),
        _ if person == Level::Good => (Level::Good, "Nothing speaks against this pair of samples"),
        _ => (Level::Untold, "Too little to tell whether the samples are a pair"),
    }
}

fn finding(level: Level, about: &'static str, says: impl Into<String>) -> Finding {
    Finding { level, about, says: says.into() }
}

/// Bad where it is above the second bound and its lower end above `sure`, to be looked at above the first where it is not nothing.
fn grade(found: Estimate, [look, bad]: [f64; 2], sure: f64) -> Level {
    match found {
        Estimate { value, low, .. } if value > bad && low > sure => Level::Bad,
        Estimate { value, low, .. } if value >= look && low > 0.0 => Level::Look,
        _ => Level::Good,
    }
}

fn person(pair: Option<&PairFacts>, strangers: Option<f64>) -> Finding {
    let apart = |of: &str, and: &str| {
        format!(
            "The samples are of {of}, not of one person{and}. Calls are not to be trusted, most are what one \
             inherited and the other did not: are the samples swapped?"
        )
    };
    let (level, says) = match (pair.map(|pair| pair.identity.relation), strangers) {
        (Some(Relation::Relatives), _) => (Level::Bad, apart("close relatives", "")),
        (Some(Relation::Strangers), _) => (Level::Bad, apart("two people", "")),
        (Some(Relation::Different), _) => (Level::Bad, apart("two people", "; perhaps they are relatives")),
        (Some(Relation::Same), None) => (Level::Good, "Both samples are of the same person.".into()),
        (Some(Relation::Same), Some(alone)) => (
            Level::Look,
            format!(
                "Both samples pass for the same person's, yet at {} of the places known in both each has an \
                 allele alone, which is more than one person has. Is a sample a mixture?",
                percent(alone)
            ),
        ),
        (_, Some(alone)) => (
            Level::Bad,
            format!(
                "At {} of the places known in both samples each has an allele alone, which is more than one \
                 person has. Calls are not to be trusted: are the samples swapped?",
                percent(alone)
            ),
        ),
        (Some(Relation::SameOrRelatives), None) => (
            Level::Untold,
            "The samples are of the same person or of close relatives, not of two people who are not related: \
             they are too shallow to tell more."
                .into(),
        ),
        (Some(Relation::Unknown) | None, None) => (
            Level::Untold,
            "Too few places are deep enough in both samples to tell whether they are of the same person. \
             Make sure of it in another way."
                .into(),
        ),
    };
    finding(level, "Person", says)
}

/// Whether facts can be told that take the samples for one person's.
fn is_pair(pair: Option<&PairFacts>) -> bool {
    pair.is_some_and(|pair| pair.identity.is_pair())
}

/// Why there is nothing of how much of a sample is another person's.
pub(crate) fn why_no_contamination(pair: Option<&PairFacts>) -> &'static str {
    match pair {
        None => "the samples were not compared",
        Some(pair) if !pair.identity.is_pair() => "the samples are not of one person",
        Some(pair) if pair.identity.heterozygous.is_none() => "too shallow, or too few places",
        Some(_) => "too few places",
    }
}

/// Why there is nothing of how pure the tumour is.
pub(crate) fn why_no_purity(pair: Option<&PairFacts>) -> String {
    match pair.map(|pair| (pair.identity.is_pair(), pair.tumour.as_ref())) {
        None => "the samples were not compared".into(),
        Some((false, _)) => "the samples are not of one person".into(),
        Some((true, tumour)) => {
            let Some(tumour) = tumour else { return "nothing was looked at".into() };
            let (word, sites, changes) = (&tumour.word, tumour.sites, tumour.changes);
            format!("{word} ({sites} heterozygous places, {changes} changes)")
        }
    }
}

/// Whether a tumour has so many changes of its own, each million bases, that they look like another person's alleles.
fn is_mutated(pair: Option<&PairFacts>, burden: Option<Estimate>) -> bool {
    let het = pair.and_then(|pair| pair.identity.heterozygous).map_or(0.0, |both| both[0]);
    burden.is_some_and(|burden| burden.value / 1e6 > MUTATED * het)
}

fn contamination(pair: Option<&PairFacts>, sample: usize, burden: Option<Estimate>) -> Finding {
    let (about, whose) = [("Foreign DNA, normal", "normal"), ("Foreign DNA, tumour", "tumour")][sample];
    let Some(found) = pair.and_then(|pair| pair.contamination[sample]) else {
        let why = why_no_contamination(pair);
        return finding(
            Level::Untold,
            about,
            format!("How much of the {whose} is another person's cannot be told: {why}."),
        );
    };
    let told = share(found.share);
    let mutated = is_mutated(pair, burden);
    let level = grade(found.share, CONTAMINATION, CONTAMINATION[1]);
    let level = match level {
        Level::Bad if mutated => Level::Look,
        Level::Good if found.share.high > CONTAMINATION[1] => Level::Untold,
        level => level,
    };
    let says = match level {
        Level::Look if mutated => format!(
            "{told} of the {whose} looks like another person's DNA, but the tumour has so many changes of its \
             own that these may be taken for it. Make sure of it in another way."
        ),
        Level::Bad => format!(
            "{told} of the {whose} is another person's DNA. Calls are not to be trusted: prepare and sequence \
             the sample anew."
        ),
        Level::Look if sample == 1 => format!(
            "{told} of the tumour is another person's DNA. Look at calls of low fraction that many people \
             have (dbSNP, gnomAD)."
        ),
        Level::Look => format!(
            "{told} of the normal is another person's DNA. Changes may be filtered that this person \
             inherited."
        ),
        Level::Untold => format!(
            "So few places tell of it that the {whose} may have another person's DNA, or nothing of it: {told}."
        ),
        _ if found.share.value >= CONTAMINATION[0] => {
            format!("{told} of the {whose} may be another person's DNA, or nothing of it.")
        }
        _ => format!("Hardly anything of the {whose} is another person's DNA: {told}."),
    };
    finding(level, about, says)
}

/// Why tumour in the normal is not told, where nothing else is known.
pub(crate) const FEW_CHANGES: &str = "too few clear changes";

fn tumour_in_normal(pair: Option<&PairFacts>, portrait: &Portrait) -> Finding {
    const ABOUT: &str = "Tumour in the normal";
    let Some(found) = portrait.tumour_in_normal.filter(|_| is_pair(pair)) else {
        let why = if is_pair(pair) || pair.is_none() {
            portrait.why_no_tumour_in_normal.as_deref().unwrap_or(FEW_CHANGES)
        } else {
            "the samples are not of one person"
        };
        let says = format!("Whether tumour cells are in the normal cannot be told: {why}.");
        return finding(Level::Untold, ABOUT, says);
    };
    let told = share(found);
    let level = grade(found, TUMOUR_IN_NORMAL, TUMOUR_IN_NORMAL[0]);
    let says = match level {
        Level::Bad => format!(
            "{told} of the normal's cells are the tumour's. Many changes look inherited and are missing: \
             take another normal, such as saliva or skin."
        ),
        Level::Look => format!(
            "{told} of the normal's cells are the tumour's. Look at what was filtered as tumour in the \
             normal or as germline."
        ),
        _ => format!("Hardly any of the normal's cells are the tumour's: {told}."),
    };
    finding(level, ABOUT, says)
}

fn purity(pair: Option<&PairFacts>) -> Finding {
    const ABOUT: &str = "Purity";
    match pair.and_then(|pair| pair.tumour.as_ref()).and_then(|tumour| tumour.purity) {
        None => finding(
            Level::Untold,
            ABOUT,
            format!("How many of the cells are the tumour's cannot be told: {}.", why_no_purity(pair)),
        ),
        Some(purity) if purity.high < PURITY => finding(
            Level::Look,
            ABOUT,
            format!(
                "Only {} of the cells are the tumour's. Changes of a part of them are missing: deeper reads, \
                 or a purer piece, would show more.",
                share(purity)
            ),
        ),
        Some(purity) => {
            finding(Level::Good, ABOUT, format!("{} of the cells are the tumour's.", share(purity)))
        }
    }
}

fn coverage(pair: Option<&PairFacts>) -> Finding {
    const ABOUT: &str = "Coverage";
    let Some(pair) = pair else {
        return finding(Level::Untold, ABOUT, "How evenly places are covered cannot be told.");
    };
    let (mut level, mut odd) = (Level::Good, Vec::new());
    for (name, covered) in ["normal", "tumour"].into_iter().zip(&pair.coverage) {
        if covered.thin > THIN[0] {
            level = level.max(if covered.thin > THIN[1] { Level::Bad } else { Level::Look });
            odd.push(format!("{} of the {name}'s places are thinly covered", percent(covered.thin)));
        }
        if covered.unevenness > UNEVEN {
            level = level.max(Level::Look);
            odd.push(format!("the {name}'s depth is uneven ({:.2})", covered.unevenness));
        }
        if covered.depth < SHALLOW {
            level = level.max(Level::Look);
            odd.push(format!("the {name} has {:.1} molecules at a place", covered.depth));
        }
    }
    let says = match odd.is_empty() {
        true => {
            let [normal, tumour] = [0, 1].map(|s| percent(pair.coverage[s].thin));
            format!("Both samples are even; {normal} and {tumour} of the places are thinly covered.")
        }
        false => {
            let mut odd = odd.join("; ");
            odd[..1].make_ascii_uppercase();
            format!("{odd}. Where there are few reads a change that is not called may be there all the same.")
        }
    };
    finding(level, ABOUT, says)
}

fn copies(libraries: [&Library; 2]) -> Finding {
    const ABOUT: &str = "Copies";
    // Of amplicons nobody knows.
    let known = |library: &&Library| !library.duplicates.word.starts_with("amplicons");
    let found = libraries.map(|library| Some(library).filter(known).and_then(|own| own.duplicates.copied));
    if found == [None, None] {
        return finding(Level::Untold, ABOUT, "How many pairs are PCR copies cannot be told.");
    }
    let level = found.iter().flatten().map(|copied| match copied.value {
        value if value > COPIES[1] => Level::Bad,
        value if value > COPIES[0] => Level::Look,
        _ => Level::Good,
    });
    let level = level.max().unwrap_or(Level::Untold);
    let [normal, tumour] = found.map(|copied| copied.map_or("an unknown share".into(), |c| percent(c.value)));
    let more = match level {
        Level::Good => "They are counted once.",
        Level::Look => {
            "They are counted once, so depth is less than what was read. More reads of the same library bring \
             little."
        }
        _ => "Hardly anything but copies was read, so little is known of each place: make another library.",
    };
    finding(
        level,
        ABOUT,
        format!("{normal} of the normal's pairs and {tumour} of the tumour's are copies. {more}"),
    )
}

/// The substitution that a sample has much more often than others, and how many times the median of all.
pub(crate) fn damaged(pair: &PairFacts, sample: usize) -> Option<(usize, f64)> {
    let wrong = pair.wrong[sample]?;
    let mut sorted = wrong;
    sorted.sort_by(f64::total_cmp);
    let median = (sorted[2] + sorted[3]) / 2.0;
    let (at, rate) = wrong.into_iter().enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let reads = pair.roots as f64 * pair.coverage[sample].depth * rate;
    let much = rate > DAMAGE * median && rate > HARMLESS && reads >= FEWEST_WRONG;
    much.then(|| (at, rate / median.max(1e-9)))
}

fn damage(pair: Option<&PairFacts>) -> Finding {
    const ABOUT: &str = "Damage";
    let Some(pair) =
        pair.filter(|pair| pair.wrong.iter().all(|wrong| wrong.iter().flatten().any(|rate| *rate > 0.0)))
    else {
        return finding(Level::Untold, ABOUT, "Whether the DNA is damaged cannot be told: too few bases.");
    };
    let found: Vec<String> = ["normal", "tumour"]
        .into_iter()
        .enumerate()
        .filter_map(|(sample, name)| {
            let (at, times) = damaged(pair, sample)?;
            let cause = match SUBSTITUTIONS[at] {
                "C>T" => ", as in old or formalin-fixed DNA",
                "C>A" => ", as in oxidised DNA",
                _ => "",
            };
            let times = if times < 100.0 { format!("{times:.1}") } else { "over 100".into() };
            Some(format!("{} in the {name} is {times} times as frequent as usual{cause}", SUBSTITUTIONS[at]))
        })
        .collect();
    match found.is_empty() {
        true => finding(
            Level::Good,
            ABOUT,
            "No substitution is much more frequent among wrong bases than others.",
        ),
        false => finding(
            Level::Look,
            ABOUT,
            format!(
                "Of wrong bases {}. Look at such calls of low fraction, or of one strand.",
                found.join("; ")
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::call::tests::{outcome, pair};

    fn of(change: impl FnOnce(&mut Outcome, &mut PairFacts)) -> (Vec<Finding>, Level) {
        let (mut outcome, mut pair) = (outcome(Vec::new()), pair());
        change(&mut outcome, &mut pair);
        outcome.portrait.pair = Some(pair);
        let found = findings(&outcome);
        let level = together(&found).0;
        (found, level)
    }

    fn share_of(value: f64, low: f64, high: f64) -> Estimate {
        Estimate { value, low, high }
    }

    fn level(found: &[Finding], about: &str) -> Level {
        found.iter().find(|f| f.about == about).expect(about).level
    }

    #[test]
    fn a_good_pair_is_good_and_nothing_known_is_not() {
        let (found, all) = of(|_, _| {});
        assert_eq!(all, Level::Good, "{found:?}");
        assert!(found.iter().all(|f| f.level <= Level::Untold), "{found:?}");
        let found = findings(&outcome(Vec::new()));
        assert!(found.iter().all(|f| f.level == Level::Untold), "{found:?}");
        assert_eq!(together(&found).0, Level::Untold);
    }

    #[test]
    fn two_people_are_never_a_pair() {
        for relation in [Relation::Relatives, Relation::Strangers, Relation::Different] {
            let (found, all) = of(|outcome, pair| {
                pair.identity.relation = relation;
                pair.contamination = [None, None];
                outcome.portrait.tumour_in_normal = Some(share_of(0.5, 0.4, 0.6));
            });
            assert_eq!((all, level(&found, "Person")), (Level::Bad, Level::Bad));
            assert_eq!(level(&found, "Tumour in the normal"), Level::Untold, "it would mean nothing");
            assert!(found[0].says.contains("swapped"));
        }
        let (found, all) = of(|outcome, pair| {
            pair.identity.relation = Relation::Unknown;
            outcome.strangers = Some(0.002);
        });
        assert_eq!((all, found[0].level), (Level::Bad, Level::Bad), "they show it all the same");
        assert_eq!(of(|_, pair| pair.identity.relation = Relation::Unknown).1, Level::Untold);
        assert_eq!(of(|outcome, _| outcome.strangers = Some(0.002)).1, Level::Look);
    }

    #[test]
    fn another_persons_dna_is_bad_when_it_is_sure() {
        for (estimate, wanted) in [
            (share_of(0.004, 0.001, 0.008), Level::Good),
            (share_of(0.01, 0.0, 0.02), Level::Good),
            (share_of(0.015, 0.0, 0.052), Level::Untold),
            (share_of(0.0175, 0.0095, 0.026), Level::Look),
            (share_of(0.05, 0.024, 0.1), Level::Look),
            (share_of(0.048, 0.038, 0.062), Level::Bad),
        ] {
            let found = of(|outcome, pair| {
                outcome.portrait.burden = Some(share_of(228.0, 207.0, 251.0));
                pair.contamination[1].as_mut().unwrap().share = estimate;
            });
            assert_eq!(
                level(&found.0, "Foreign DNA, tumour"),
                wanted.min(Level::Look),
                "many changes look alike"
            );
            for (sample, about) in ["Foreign DNA, normal", "Foreign DNA, tumour"].into_iter().enumerate() {
                let found = of(|_, pair| pair.contamination[sample].as_mut().unwrap().share = estimate).0;
                assert_eq!(level(&found, about), wanted, "{estimate:?}");
            }
        }
    }

    #[test]
    fn the_tumour_in_the_normal_and_a_thin_tumour_are_told() {
        for (estimate, wanted) in [
            (share_of(0.008, 0.005, 0.012), Level::Good),
            (share_of(0.03, 0.02, 0.04), Level::Look),
            (share_of(0.06, 0.01, 0.12), Level::Look),
            (share_of(0.06, 0.04, 0.08), Level::Bad),
        ] {
            let found = of(|outcome, _| outcome.portrait.tumour_in_normal = Some(estimate)).0;
            assert_eq!(level(&found, "Tumour in the normal"), wanted, "{estimate:?}");
        }
        for (high, wanted) in [(0.19, Level::Look), (0.3, Level::Good)] {
            let (found, _) =
                of(|_, pair| pair.tumour.as_mut().unwrap().purity = Some(share_of(0.15, 0.1, high)));
            assert_eq!(level(&found, "Purity"), wanted);
        }
        assert_eq!(level(&of(|_, pair| pair.tumour = None).0, "Purity"), Level::Untold);
    }

    #[test]
    fn coverage_copies_and_damage_are_told() {
        for (thin, wanted) in [(0.01, Level::Good), (0.06, Level::Look), (0.3, Level::Bad)] {
            assert_eq!(level(&of(|_, pair| pair.coverage[1].thin = thin).0, "Coverage"), wanted);
        }
        assert_eq!(level(&of(|_, pair| pair.coverage[0].unevenness = 0.6).0, "Coverage"), Level::Look);
        assert_eq!(level(&of(|_, pair| pair.coverage[0].depth = 3.0).0, "Coverage"), Level::Look);
        for (copied, wanted) in [(0.1, Level::Good), (0.56, Level::Look), (0.9, Level::Bad)] {
            let found = |word: &str| {
                of(|outcome, _| {
                    outcome.libraries.tumor.duplicates.copied = Some(share_of(copied, copied, copied));
                    outcome.libraries.tumor.duplicates.word = word.into();
                })
                .0
            };
            assert_eq!(level(&found("many copies"), "Copies"), wanted);
            assert!(level(&found("amplicons? nearly all"), "Copies") <= Level::Untold);
        }
        let rates = |rate: f64| [1e-4, 1e-4, rate, 1e-4, 1.2e-4, 0.9e-4];
        for (rate, wanted) in [(2e-4, Level::Good), (3e-4, Level::Look)] {
            let found = of(|_, pair| pair.wrong[1] = Some(rates(rate))).0;
            assert_eq!(level(&found, "Damage"), wanted);
        }
        let found = of(|_, pair| pair.wrong[1] = Some(rates(3e-4).map(|rate| rate / 100.0))).0;
        assert_eq!(level(&found, "Damage"), Level::Good, "so seldom that it does not matter");
    }
}
