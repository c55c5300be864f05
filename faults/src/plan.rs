//! What a campaign does: a list of trials, which can be cut short anywhere.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use fastrand::Rng;

use crate::bench::{Bench, Judged};
use crate::case::Case;
use crate::damage::{Harm, places};
use crate::fault::{Every, Fault, Kind};
use crate::oracle::{Outcome, verdict};

/// One thing to do to one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trial {
    /// Calls fail.
    Fault(Fault),
    /// The command runs twice at once, the second so long after the first.
    Twice(Duration),
    /// A file that the case is given is damaged.
    Damage {
        /// Its path in `{given}`.
        file: String,
        /// How.
        harm: Harm,
        /// From which byte on.
        at: usize,
    },
}

impl Trial {
    /// What is done, without the place: the column of a table.
    pub fn series(&self) -> (&'static str, &'static str) {
        match self {
            Trial::Fault(fault) => (fault.kind.word(), fault.what.word()),
            Trial::Twice(_) => ("twice", "twice"),
            Trial::Damage { harm, .. } => ("damage", harm.word()),
        }
    }

    /// Does it. `None`: the call never came, or the damage changes nothing.
    ///
    /// # Errors
    /// The campaign itself cannot go on.
    pub fn run(&self, bench: &mut Bench, case: &Case) -> anyhow::Result<Option<Judged>> {
        match self {
            Trial::Fault(fault) => {
                let judged = bench.under(case, *fault)?;
                Ok((judged.fired > 0 || judged.verdict.outcome.is_violation()).then_some(judged))
            }
            Trial::Twice(apart) => Ok(Some(bench.twice(case, *apart)?)),
            Trial::Damage { file, harm, at } => {
                let whole = bench.given(file)?;
                let sealed = case.sealed.contains(&file.as_str());
                match harm.done(&whole, *at) {
                    Some(bytes) => Ok(Some(bench.damaged(case, file, &bytes, sealed)?)),
                    None => Ok(None),
                }
            }
        }
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trial::Fault(fault) => fault.fmt(f),
            Trial::Twice(apart) => write!(f, "twice:{}", apart.as_micros()),
            Trial::Damage { file, harm, at } => write!(f, "damage:{}:{at}:{file}", harm.word()),
        }
    }
}

impl FromStr for Trial {
    type Err = String;

    fn from_str(text: &str) -> Result<Trial, String> {
        let wrong = || {
            format!(
                "'{text}' is no trial: write KIND:WHAT:AT:EVERY, twice:MICROSECONDS or damage:HARM:AT:FILE"
            )
        };
        if let Some(apart) = text.strip_prefix("twice:") {
            return Ok(Trial::Twice(Duration::from_micros(apart.parse().map_err(|_| wrong())?)));
        }
        let Some(damage) = text.strip_prefix("damage:") else { return text.parse().map(Trial::Fault) };
        let [word, at, file] = damage.splitn(3, ':').collect::<Vec<_>>()[..] else { return Err(wrong()) };
        let harm = Harm::ALL.into_iter().find(|harm| harm.word() == word).ok_or_else(wrong)?;
        Ok(Trial::Damage { file: file.to_owned(), harm, at: at.parse().map_err(|_| wrong())? })
    }
}

/// How much of everything a campaign does at most.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// Numbers of calls at which each series of faults begins.
    pub numbers: u64,
    /// Regions of each file to damage.
    pub regions: usize,
    /// Pairs of runs at once, of each case.
    pub pairs: u64,
}

/// All trials of a case, in no order.
///
/// # Errors
/// The case does not run as it should without faults, or what it is given cannot be read.
pub fn trials(bench: &mut Bench, case: &Case, extent: Extent) -> anyhow::Result<Vec<Trial>> {
    let seen = bench.count(case)?;
    let mut trials = Vec::new();
    for kind in Kind::ALL {
        let calls = seen.calls(kind);
        for &(what, every) in kind.series() {
            // Where each following call fails too, it matters little where it begins.
            let most = if every == Every::Once { extent.numbers } else { extent.numbers.div_ceil(8) };
            let of = |at| Trial::Fault(Fault { kind, what, at, every });
            trials.extend(spread(calls, most).map(of));
        }
    }
    trials.extend((0..extent.pairs).map(|i| Trial::Twice(Duration::from_micros(i * i * 500))));
    for file in case.sealed.iter().chain(case.plain) {
        let length = bench.given(file)?.len();
        for at in places(length, extent.regions) {
            trials.extend(Harm::ALL.map(|harm| Trial::Damage { file: (*file).to_owned(), harm, at }));
        }
    }
    Ok(trials)
}

/// The numbers 1 to `calls`, or `most` of them, evenly.
fn spread(calls: u64, most: u64) -> impl Iterator<Item = u64> {
    let picked = calls.min(most);
    (0..picked).map(move |i| 1 + i * calls / picked)
}

/// Shuffles trials, so that wherever a campaign ends it has tried some of everything.
pub fn shuffle<T>(trials: &mut [T], seed: u64) {
    Rng::with_seed(seed).shuffle(trials);
}

/// Runs a trial; what the campaign itself cannot do is told as what became of it.
pub fn attempt(trial: &Trial, bench: &mut Bench, case: &Case) -> Option<Judged> {
    trial.run(bench, case).unwrap_or_else(|error| {
        let verdict = verdict(Outcome::Code, format!("the campaign failed: {error:#}"));
        Some(Judged { verdict, fired: 0, stderr: String::new() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for text in ["write:ENOSPC:17:0", "twice:2500", "damage:zero:512:pair/genome.fa.mbw"] {
            assert_eq!(text.parse::<Trial>().expect("a trial").to_string(), text);
        }
        assert!("damage:zero".parse::<Trial>().is_err());
    }

    #[test]
    fn all_numbers_or_some_evenly() {
        assert_eq!(spread(3, 9).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(spread(100, 4).collect::<Vec<_>>(), [1, 26, 51, 76]);
        assert_eq!(spread(0, 4).count(), 0);
    }
}
