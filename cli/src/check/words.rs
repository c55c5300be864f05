//! Facts of a pair in plain words, a line each.

use std::fmt::Write;

use genuma_pair::coverage::Covered;
use genuma_pair::facts::PairFacts;
use genuma_pair::identity::Relation;
use genuma_pair::interval::Estimate;
use genuma_pair::library::facts::Libraries;
use genuma_pair::roots::SUBSTITUTIONS;

use crate::sizes;

/// Shares of another person from which a sample is to be looked at, and from which it is not to be used.
const MIXED: [f64; 2] = [0.01, 0.03];
/// A substitution that is so much more frequent than the median of all six is damage.
const DAMAGE: f64 = 2.5;

/// A share with its interval, in percent.
fn percent(share: &Estimate) -> String {
    format!("{:.1} % ({:.1} to {:.1})", 100.0 * share.value, 100.0 * share.low, 100.0 * share.high)
}

fn number(value: &Estimate) -> String {
    format!("{:.2} ({:.2} to {:.2})", value.value, value.low, value.high)
}

/// What both samples say, of which so many bases were read.
pub(crate) fn told(pair: &PairFacts, libraries: &Libraries, bases: [u64; 2]) -> String {
    let mut text = String::new();
    let mut line = |name: &str, what: String| {
        let _ = writeln!(text, "{name:<18}{what}");
    };
    line("person", person(pair));
    let names = ["normal", "tumour"];
    for (s, name) in names.iter().enumerate() {
        line(&format!("{}, mixed", name), mixed(pair, s));
    }
    if let Some(tumour) = &pair.tumour {
        let told = |value: &Option<Estimate>, show: fn(&Estimate) -> String, none: &str| {
            value.as_ref().map_or_else(|| format!("not told: {none}"), show)
        };
        let few = format!(
            "{} ({} sites of two alleles and {} changes at {:.0} molecules a place)",
            tumour.word, tumour.sites, tumour.changes, pair.coverage[0].depth
        );
        line("purity", told(&tumour.purity, percent, &few));
        line("ploidy", told(&tumour.ploidy, number, &few));
        if let Some(lost) = tumour.lost {
            line("lost", format!("one parent's copy of {:.0} % of the genome", 100.0 * lost));
        }
        for other in &tumour.also {
            line(
                "purity, perhaps",
                format!("{:.1} %, with {:.2} copies of the genome", 100.0 * other.purity, other.ploidy),
            );
        }
    }
    for (s, library) in [&libraries.normal, &libraries.tumor].into_iter().enumerate() {
        let Covered { depth, unevenness, thin, .. } = &pair.coverage[s];
        line(
            &format!("{}, depth", names[s]),
            format!(
                "{depth:.1} molecules in good bases; uneven by {:.0} %; {:.1} % of the places have less than a fifth",
                100.0 * unevenness,
                100.0 * thin
            ),
        );
        let mut what = format!("{} pairs, {}bases", library.pairs, sizes::show(bases[s]).replace('B', ""));
        if let Some(copies) = &library.duplicates.share {
            let _ = write!(what, "; copies {}", percent(copies));
        }
        if let Some(adapters) = &library.adapters {
            let _ = write!(what, "; adapters {}", percent(adapters));
        }
        line(&format!("{}, library", names[s]), what);
        line(
            &format!("{}, damage", names[s]),
            pair.wrong[s].as_ref().map_or_else(|| "not told: too shallow".into(), damage),
        );
    }
    text
}

fn person(pair: &PairFacts) -> String {
    let identity = &pair.identity;
    let distance = identity.distance.as_ref().map_or_else(String::new, |d| {
        format!("; distance {}, where 0 is one person, about a half close relatives, 1 strangers", number(d))
    });
    let word = match identity.relation {
        Relation::Same => "one",
        Relation::Relatives => {
            "TWO, close relatives (parent and child, or siblings): are the samples swapped?"
        }
        Relation::Strangers => "TWO: are the samples swapped?",
        Relation::Different => {
            "TWO; whether relatives cannot be told at this depth: are the samples swapped?"
        }
        Relation::SameOrRelatives => {
            "one, or close relatives: not two people who are not related; the samples are too small or too shallow for more"
        }
        Relation::Unknown => "not told: the samples have too little in common that is deep enough",
    };
    format!("{word}{distance}")
}

fn mixed(pair: &PairFacts, sample: usize) -> String {
    let Some(contamination) = &pair.contamination[sample] else {
        return "not told: too shallow, or not of one person".into();
    };
    let share = &contamination.share;
    let word = match share.low {
        low if low >= MIXED[1] => "MUCH of another person",
        low if low >= MIXED[0] => "some of another person",
        _ => "no one else's to speak of",
    };
    format!("{word}: {}", percent(share))
}

fn damage(wrong: &[f64; 6]) -> String {
    let mut sorted = *wrong;
    sorted.sort_by(f64::total_cmp);
    let usual = (sorted[2] + sorted[3]) / 2.0;
    let odd: Vec<String> = SUBSTITUTIONS
        .iter()
        .zip(wrong)
        .filter(|(_, rate)| usual > 0.0 && **rate > DAMAGE * usual)
        .map(|(name, rate)| format!("{name} {:.1} times", rate / usual))
        .collect();
    match odd.is_empty() {
        true => format!(
            "none to be seen; good bases are wrong once in {:.0}",
            1.0 / wrong.iter().sum::<f64>().max(1e-9)
        ),
        false => format!("{} as often as other wrong bases", odd.join(", ")),
    }
}
