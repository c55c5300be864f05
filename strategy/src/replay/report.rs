//! What a replay found, as a table.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use super::simulate::{Outcome, race};
use super::{Case, Error, Lessons, Rule, Run, cases, described, from_others, learn, table};
use crate::model::predict;
use crate::pilot::{Candidate, Rules, rank};
use crate::strategy::Strategy;

/// How often each case is raced, with another seed each time.
pub(crate) const RACES: u64 = 1000;

/// A case, judged with lessons from the other server.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The case.
    pub case: Case,
    /// The server that the application was fitted on.
    pub learnt_on: String,
    /// The model's choice.
    pub chosen: Strategy,
    /// The choice with an application that is the mean of the other aligners.
    pub stranger: Strategy,
    /// What the rules choose, in the order of [`Rule::ALL`].
    pub rules: Vec<Strategy>,
    /// Races of the pilots.
    pub races: Vec<Outcome>,
}

impl Judged {
    /// Regret of the model's choice.
    pub fn regret(&self) -> f64 {
        self.case.regret(self.chosen)
    }

    /// Mean regret of the races, trials counted.
    pub fn raced(&self) -> f64 {
        mean(self.races.iter().map(|race| race.regret))
    }

    fn most_raced(&self) -> Strategy {
        let mut wins: BTreeMap<Strategy, usize> = BTreeMap::new();
        for race in &self.races {
            *wins.entry(race.strategy).or_default() += 1;
        }
        wins.into_iter().max_by_key(|(_, wins)| *wins).map_or(self.chosen, |(strategy, _)| strategy)
    }
}

/// A replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Every case, by server learnt on, aligner and data set.
    pub judged: Vec<Judged>,
    /// Plain runs with fewer threads: server learnt on, then measured over predicted seconds, by rising ratio.
    pub(crate) fewer_threads: Vec<(String, Vec<f64>)>,
    /// What the races were held by.
    pub rules: Rules,
}

/// Replays `text`, the content of `file`.
///
/// # Errors
/// The table is wrong, names what is not described, or has not two servers.
pub fn replay(file: &str, text: &str) -> Result<Report, Error> {
    let runs = table::parse(file, text)?;
    let mut servers: Vec<&str> = runs.iter().map(|run| run.server.as_str()).collect();
    servers.sort_unstable();
    servers.dedup();
    let &[one, other] = servers.as_slice() else { return Err(Error::Servers(servers.len())) };
    let rules = Rules::default();
    let mut report = Report { judged: Vec::new(), fewer_threads: Vec::new(), rules };
    for (from, to) in [(one, other), (other, one)] {
        let lessons = learn(&runs, from)?;
        report.judged.extend(judge(&lessons, from, cases(&runs, to)?, rules)?);
        report.fewer_threads.push((from.to_owned(), fewer_threads(&lessons, &runs, to)?));
    }
    Ok(report)
}

/// Judges `cases` with `lessons` learnt on `from`.
///
/// # Errors
/// A server or a job is not described, or its aligner was not run on `from`.
pub fn judge(lessons: &Lessons, from: &str, cases: Vec<Case>, rules: Rules) -> Result<Vec<Judged>, Error> {
    let others = from_others(lessons);
    let one = |case: Case| {
        let machine = described(&case.server)?;
        let unknown = || Error::Unknown { what: "aligner", name: case.job.aligner.clone() };
        let app = lessons.get(&case.job).ok_or_else(unknown)?;
        let stranger = others.get(&case.job).ok_or_else(unknown)?;
        let strategies = case.strategies();
        let ranked = rank(&machine, app, &strategies, case.threads);
        let first = |ranked: &[Candidate]| ranked.first().map_or(Strategy::PLAIN, |c| c.strategy);
        let stranger = first(&rank(&machine, stranger, &strategies, case.threads));
        Ok(Judged {
            learnt_on: from.to_owned(),
            chosen: first(&ranked),
            stranger,
            rules: Rule::ALL.iter().map(|rule| rule.choice(&case, &machine, app.index_bytes)).collect(),
            races: (0..RACES).map(|seed| race(&case, &ranked, rules, seed)).collect(),
            case,
        })
    };
    cases.into_iter().map(one).collect()
}

fn fewer_threads(lessons: &Lessons, runs: &[Run], server: &str) -> Result<Vec<f64>, Error> {
    let machine = described(server)?;
    let most = runs.iter().filter(|run| run.server == server).map(|run| run.threads).max();
    let plain =
        |run: &&Run| run.server == server && run.strategy == Strategy::PLAIN && Some(run.threads) != most;
    let ratio = |run: &Run| {
        let app = lessons.get(&super::Job::of(run))?;
        let predicted = predict(&machine, app, &run.strategy, run.threads).ok()?;
        Some(run.seconds / predicted.seconds)
    };
    let mut ratios: Vec<f64> = runs.iter().filter(plain).filter_map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    Ok(ratios)
}

/// Mean of some numbers; not a number if there are none.
pub fn mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = numbers.fold((0.0, 0.0), |(sum, n), number| (sum + number, n + 1.0));
    sum / n
}

/// The largest of some numbers.
pub fn most(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.fold(f64::NEG_INFINITY, f64::max)
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = (share * sorted.len().saturating_sub(1) as f64).round() as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let head = ["case", "learnt on", "best", "model", "regret", "pilots", "regret", "cost", "trials"];
        line(f, &head.map(str::to_owned))?;
        for judged in &self.judged {
            let Case { server, job, .. } = &judged.case;
            let cost = mean(judged.races.iter().map(|race| race.cost));
            let trials = mean(judged.races.iter().map(|race| f64::from(race.trials)));
            let cells = [
                format!("{} {server} {}", job.aligner, job.dataset),
                judged.learnt_on.clone(),
                judged.case.best().0.to_string(),
                judged.chosen.to_string(),
                percent(judged.regret()),
                judged.most_raced().to_string(),
                percent(judged.raced()),
                percent(cost),
                format!("{trials:.1}"),
            ];
            line(f, &cells)?;
        }
        writeln!(f, "\n{:34} {:>8} {:>8}", "regret", "mean", "max")?;
        for (from, _) in &self.fewer_threads {
            let of = || self.judged.iter().filter(|judged| judged.learnt_on == *from);
            summary(f, &format!("model only, learnt on {from}"), of().map(Judged::regret))?;
        }
        summary(f, "model only, both", self.judged.iter().map(Judged::regret))?;
        for (from, _) in &self.fewer_threads {
            let of = || self.judged.iter().filter(|judged| judged.learnt_on == *from);
            summary(f, &format!("with pilots, learnt on {from}"), of().map(Judged::raced))?;
        }
        summary(f, "with pilots, both", self.judged.iter().map(Judged::raced))?;
        let strangers = self.judged.iter().map(|judged| judged.case.regret(judged.stranger));
        summary(f, "model only, aligner never seen", strangers)?;
        for (n, rule) in Rule::ALL.iter().enumerate() {
            summary(f, rule.name(), self.judged.iter().map(|judged| judged.case.regret(judged.rules[n])))?;
        }
        self.notes(f)
    }
}

impl Report {
    fn notes(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut single: Vec<f64> =
            self.judged.iter().flat_map(|j| j.races.iter().map(|race| race.regret)).collect();
        single.sort_by(f64::total_cmp);
        let [half, most, nearly, worst] =
            [0.5, 0.9, 0.99, 1.0].map(|share| percent(quantile(&single, share)));
        writeln!(
            f,
            "\nPilots: {RACES} races a case with the table's own errors; a trial aligns {}, its time is counted.",
            percent(self.rules.sample)
        )?;
        writeln!(f, "Single races: half lose at most {half}, 90% {most}, 99% {nearly}, the worst {worst}.")?;
        for (from, ratios) in &self.fewer_threads {
            let [low, middle, high] = [0.1, 0.5, 0.9].map(|share| quantile(ratios, share));
            writeln!(
                f,
                "Plain runs with fewer threads on the other server, learnt on {from}: measured/predicted {middle:.2} \
                (80% within {low:.2} to {high:.2})."
            )?;
        }
        Ok(())
    }
}

fn line(f: &mut Formatter<'_>, cells: &[String; 9]) -> fmt::Result {
    let [case, from, best, model, regret, pilots, raced, cost, trials] = cells;
    writeln!(
        f,
        "{case:22} {from:9} {best:12} {model:12} {regret:>7}  {pilots:12} {raced:>7} {cost:>6} {trials:>6}"
    )
}

fn summary(f: &mut Formatter<'_>, name: &str, regrets: impl Iterator<Item = f64>) -> fmt::Result {
    let regrets: Vec<f64> = regrets.collect();
    let largest = most(regrets.iter().copied());
    writeln!(f, "{name:34} {:>8} {:>8}", percent(mean(regrets.into_iter())), percent(largest))
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}
