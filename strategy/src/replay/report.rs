//! Evaluates the advisor on published run times and reports the result as a table.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use super::race_simulation::{RaceOutcome, simulate_race};
use super::{
    AlignerAndDataset, BaselineRule, Error, ModelsByAlignerAndDataset, PublishedCase, PublishedRun,
    average_models_of_other_aligners, fit_aligners_of_server, list_published_cases, published_runs, server_model,
};
use crate::model::{ApplicationModel, MachineModel, predict_run_time};
use crate::strategy::Strategy;
use crate::trial_race::{RaceCandidate, RaceRules, rank_strategies_by_predicted_time};

/// Number of simulated races per case, each with its own seed.
pub(crate) const RACES_PER_CASE: u64 = 1000;

/// The advisor's choice for one published case, with model parameters fitted on the other server.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluatedCase {
    /// The published case: aligner, data set and server with the measured runs.
    pub case: PublishedCase,
    /// Server on which the parameters were fitted.
    pub fitted_server: String,
    /// Strategy that the model predicts to be the fastest.
    pub model_choice: Strategy,
    /// Strategy that the model predicts to be the fastest with the mean parameters of the other aligners.
    pub choice_by_other_aligners: Strategy,
    /// Strategy that each simple rule chooses, in the order of [`BaselineRule::ALL_BASELINE_RULES`].
    pub rules: Vec<Strategy>,
    /// Results of the simulated races, one per seed.
    pub races: Vec<RaceOutcome>,
    /// Rank correlation (Spearman) of the predicted with the published run times of all strategies and numbers of
    /// threads.
    pub rank_correlation: f64,
}

impl EvaluatedCase {
    /// Returns the regret of the model's choice.
    pub fn model_regret(&self) -> f64 {
        self.case.relative_regret(self.model_choice)
    }

    /// Returns the mean regret of the races, including the time of trials.
    pub fn mean_race_regret(&self) -> f64 {
        mean(self.races.iter().map(|race| race.regret))
    }

    fn most_frequent_choice(&self) -> Strategy {
        let mut wins: BTreeMap<Strategy, usize> = BTreeMap::new();
        for race in &self.races {
            *wins.entry(race.strategy).or_default() += 1;
        }
        wins.into_iter().max_by_key(|(_, wins)| *wins).map_or(self.model_choice, |(strategy, _)| strategy)
    }
}

/// Evaluation of the advisor on the published runs of two servers: for each server with parameters fitted to the other
/// one.
#[derive(Debug, Clone, PartialEq)]
pub struct AdvisorEvaluation {
    /// All evaluated cases, sorted by the server of the fit, aligner and data set.
    pub judged: Vec<EvaluatedCase>,
    /// For each server of the fit: ratios of measured to predicted time of the plain runs with fewer threads, in
    /// ascending order.
    pub(crate) fewer_threads: Vec<(String, Vec<f64>)>,
    /// Rules of the simulated races: sample size, time budget and noise of trials.
    pub rules: RaceRules,
}

/// Evaluates the advisor on `text`, the content of the table `file`.
///
/// # Errors
/// The table is invalid, has names that are not described, does not have exactly two servers, or lacks the plain run of
/// a case.
pub fn evaluate_advisor_on_table(file: &str, text: &str) -> Result<AdvisorEvaluation, Error> {
    let runs = published_runs::parse_published_runs(file, text)?;
    let mut servers: Vec<&str> = runs.iter().map(|run| run.server.as_str()).collect();
    servers.sort_unstable();
    servers.dedup();
    let &[one, other] = servers.as_slice() else { return Err(Error::NotTwoServers(servers.len())) };
    let rules = RaceRules::default();
    let mut report = AdvisorEvaluation { judged: Vec::new(), fewer_threads: Vec::new(), rules };
    for (from, to) in [(one, other), (other, one)] {
        let fitted = fit_aligners_of_server(&runs, from)?;
        report.judged.extend(evaluate_cases(&fitted, from, &runs, to, rules)?);
        report.fewer_threads.push((from.to_owned(), fewer_threads(&fitted, &runs, to)?));
    }
    Ok(report)
}

/// Evaluates the advisor on the cases of the server `to` with the parameters `fitted`, which were fitted on the server
/// `from`.
///
/// # Errors
/// A server, aligner or data set is not described, or an aligner was not run on `from`.
pub(crate) fn evaluate_cases(
    fitted: &ModelsByAlignerAndDataset,
    from: &str,
    runs: &[PublishedRun],
    to: &str,
    rules: RaceRules,
) -> Result<Vec<EvaluatedCase>, Error> {
    let others = average_models_of_other_aligners(fitted);
    let one = |case: PublishedCase| {
        let machine = server_model(&case.server)?;
        let unknown = || Error::Unknown { what: "aligner", name: case.workload.aligner.clone() };
        let app = fitted.get(&case.workload).ok_or_else(unknown)?;
        let stranger = others.get(&case.workload).ok_or_else(unknown)?;
        let strategies = case.measured_strategies();
        let ranked = rank_strategies_by_predicted_time(&machine, app, &strategies, case.threads);
        let first = |ranked: &[RaceCandidate]| ranked.first().map_or(Strategy::PLAIN_RUN, |c| c.strategy);
        let stranger = first(&rank_strategies_by_predicted_time(&machine, stranger, &strategies, case.threads));
        Ok(EvaluatedCase {
            fitted_server: from.to_owned(),
            model_choice: first(&ranked),
            choice_by_other_aligners: stranger,
            rules: BaselineRule::ALL_BASELINE_RULES
                .iter()
                .map(|rule| rule.choose_strategy_by_rule(&case, &machine, app.index_bytes))
                .collect(),
            races: (0..RACES_PER_CASE).map(|seed| simulate_race(&case, &ranked, rules, seed)).collect(),
            rank_correlation: rank_correlation(&predicted_and_published_times(&machine, app, runs, &case)),
            case,
        })
    };
    list_published_cases(runs, to)?.into_iter().map(one).collect()
}

/// Predicted and published seconds of each run of a case that the model can predict, whatever its strategy and number of
/// threads.
fn predicted_and_published_times(
    machine: &MachineModel,
    app: &ApplicationModel,
    runs: &[PublishedRun],
    case: &PublishedCase,
) -> Vec<[f64; 2]> {
    let is_of_case =
        |run: &&PublishedRun| run.server == case.server && AlignerAndDataset::from_run(run) == case.workload;
    let times = |run: &PublishedRun| {
        let predicted = predict_run_time(machine, app, &run.strategy, run.threads).ok()?;
        Some([predicted.seconds, run.seconds])
    };
    runs.iter().filter(is_of_case).filter_map(times).collect()
}

/// Rank correlation (Spearman) of pairs of numbers; NaN if all numbers of a kind are equal.
fn rank_correlation(pairs: &[[f64; 2]]) -> f64 {
    let ranks = |side: usize| -> Vec<f64> {
        // Equal numbers share the mean of their ranks.
        let rank = |pair: &[f64; 2]| {
            let below = pairs.iter().filter(|other| other[side] < pair[side]).count();
            let equal = pairs.iter().filter(|other| other[side] == pair[side]).count();
            below as f64 + (equal as f64 - 1.0) / 2.0
        };
        pairs.iter().map(rank).collect()
    };
    let middle = (pairs.len() as f64 - 1.0) / 2.0;
    let [one, other] =
        [ranks(0), ranks(1)].map(|ranks| ranks.into_iter().map(|rank| rank - middle).collect::<Vec<_>>());
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    product(&one, &other) / (product(&one, &one) * product(&other, &other)).sqrt()
}

fn fewer_threads(fitted: &ModelsByAlignerAndDataset, runs: &[PublishedRun], server: &str) -> Result<Vec<f64>, Error> {
    let machine = server_model(server)?;
    let most = runs.iter().filter(|run| run.server == server).map(|run| run.threads).max();
    let plain =
        |run: &&PublishedRun| run.server == server && run.strategy == Strategy::PLAIN_RUN && Some(run.threads) != most;
    let ratio = |run: &PublishedRun| {
        let app = fitted.get(&AlignerAndDataset::from_run(run))?;
        let predicted = predict_run_time(&machine, app, &run.strategy, run.threads).ok()?;
        Some(run.seconds / predicted.seconds)
    };
    let mut ratios: Vec<f64> = runs.iter().filter(plain).filter_map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    Ok(ratios)
}

/// Returns the mean of `numbers`; NaN if there are none.
pub fn mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = numbers.fold((0.0, 0.0), |(sum, n), number| (sum + number, n + 1.0));
    sum / n
}

/// Returns the maximum of `numbers`; negative infinity if there are none.
pub fn maximum(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.fold(f64::NEG_INFINITY, f64::max)
}

fn quantile_of_sorted(sorted: &[f64], share: f64) -> f64 {
    let at = (share * sorted.len().saturating_sub(1) as f64).round() as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

impl Display for AdvisorEvaluation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let head = ["case", "learnt on", "best", "model", "regret", "pilots", "regret", "cost", "trials"];
        line(f, &head.map(str::to_owned))?;
        for judged in &self.judged {
            let PublishedCase { server, workload, .. } = &judged.case;
            let cost = mean(judged.races.iter().map(|race| race.cost));
            let trials = mean(judged.races.iter().map(|race| f64::from(race.trials)));
            let cells = [
                format!("{} {server} {}", workload.aligner, workload.dataset),
                judged.fitted_server.clone(),
                judged.case.fastest_strategy().0.to_string(),
                judged.model_choice.to_string(),
                percent(judged.model_regret()),
                judged.most_frequent_choice().to_string(),
                percent(judged.mean_race_regret()),
                percent(cost),
                format!("{trials:.1}"),
            ];
            line(f, &cells)?;
        }
        writeln!(f, "\n{:34} {:>8} {:>8}", "regret", "mean", "max")?;
        for (from, _) in &self.fewer_threads {
            let of = || self.judged.iter().filter(|judged| judged.fitted_server == *from);
            summary(f, &format!("model only, learnt on {from}"), of().map(EvaluatedCase::model_regret))?;
        }
        summary(f, "model only, both", self.judged.iter().map(EvaluatedCase::model_regret))?;
        for (from, _) in &self.fewer_threads {
            let of = || self.judged.iter().filter(|judged| judged.fitted_server == *from);
            summary(f, &format!("with pilots, learnt on {from}"), of().map(EvaluatedCase::mean_race_regret))?;
        }
        summary(f, "with pilots, both", self.judged.iter().map(EvaluatedCase::mean_race_regret))?;
        let strangers = self.judged.iter().map(|judged| judged.case.relative_regret(judged.choice_by_other_aligners));
        summary(f, "model only, aligner never seen", strangers)?;
        for (n, rule) in BaselineRule::ALL_BASELINE_RULES.iter().enumerate() {
            summary(
                f,
                rule.rule_name(),
                self.judged.iter().map(|judged| judged.case.relative_regret(judged.rules[n])),
            )?;
        }
        self.notes(f)
    }
}

impl AdvisorEvaluation {
    fn notes(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut single: Vec<f64> = self.judged.iter().flat_map(|j| j.races.iter().map(|race| race.regret)).collect();
        single.sort_by(f64::total_cmp);
        let [half, most, nearly, worst] =
            [0.5, 0.9, 0.99, 1.0].map(|share| percent(quantile_of_sorted(&single, share)));
        writeln!(
            f,
            "\nPilots: {RACES_PER_CASE} races a case with the table's own errors; a trial aligns {}, its time is counted.",
            percent(self.rules.sample)
        )?;
        writeln!(f, "Single races: half lose at most {half}, 90% {most}, 99% {nearly}, the worst {worst}.")?;
        for (from, ratios) in &self.fewer_threads {
            let [low, middle, high] = [0.1, 0.5, 0.9].map(|share| quantile_of_sorted(ratios, share));
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
    writeln!(f, "{case:22} {from:9} {best:12} {model:12} {regret:>7}  {pilots:12} {raced:>7} {cost:>6} {trials:>6}")
}

fn summary(f: &mut Formatter<'_>, name: &str, regrets: impl Iterator<Item = f64>) -> fmt::Result {
    let regrets: Vec<f64> = regrets.collect();
    let largest = maximum(regrets.iter().copied());
    writeln!(f, "{name:34} {:>8} {:>8}", percent(mean(regrets.into_iter())), percent(largest))
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_correlate_whatever_the_scale() {
        assert_eq!(rank_correlation(&[[1.0, 10.0], [2.0, 100.0], [3.0, 1e9]]), 1.0);
        assert_eq!(rank_correlation(&[[1.0, 3.0], [2.0, 2.0], [3.0, -7.0]]), -1.0);
        // Ranks 0, 1.5, 1.5, 3 and 0, 1, 2, 3.
        let ties = rank_correlation(&[[1.0, 1.0], [2.0, 2.0], [2.0, 3.0], [9.0, 4.0]]);
        assert!((ties - 4.5 / 22.5_f64.sqrt()).abs() < 1e-12, "{ties}");
        assert!(rank_correlation(&[[1.0, 1.0], [1.0, 2.0]]).is_nan());
    }
}
