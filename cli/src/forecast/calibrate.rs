//! What earlier runs on a machine say of its rates: their `summary.json`.

use std::fs;
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use genuma_somatic::count::COPIED;
use genuma_somatic::ledger::Ledger;
use genuma_somatic::pipeline::Means;
use genuma_work::clock::UnitCost;
use genuma_work::timeline::Timeline;
use serde::Deserialize;

use super::model::{Given, Unit};
use super::rates::{MEASURED, Rates};

/// What a plan needs of a `summary.json`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Run {
    /// Of the normal and of each tumour.
    bases: Vec<u64>,
    k: u32,
    reference: Option<String>,
    sequences: Vec<(String, u64)>,
    units: Vec<UnitCost>,
    /// Absent in summaries of versions that did not tell.
    means: Option<Means>,
    ledger: Ledger,
    /// Absent in summaries of versions that did not tell.
    #[serde(default)]
    timeline: Timeline,
}

/// Bounds of what is believed of a run: beyond them something else was measured.
const BELIEVED: (f64, f64) = (0.02, 50.0);

impl Run {
    /// Of the summary at `path`.
    ///
    /// # Errors
    /// It cannot be read, or is no summary of `genuma call`.
    pub(crate) fn load(path: &Path) -> anyhow::Result<Run> {
        let name = path.display();
        let text = fs::read(path).with_context(|| format!("{name}: cannot read"))?;
        let run: Run = serde_json::from_slice(&text)
            .map_err(|e| anyhow!("{name}: is no summary.json of `genuma call`: {e}"))?;
        if run.bases.len() < 2 {
            bail!("{name}: is no summary.json of `genuma call`: bases of one sample");
        }
        Ok(run)
    }

    /// The call as a plan sees it.
    fn given(&self) -> Given {
        let placed = self.reference.as_ref();
        let (normal, tumours) = self.bases.split_at(1);
        Given {
            bases: [normal, tumours].map(|of| of.iter().sum()),
            samples: self.bases.len(),
            bytes: [0; 2],
            copied: 0,
            read_length: 150,
            files: u64::MAX,
            aligned: 0,
            panel: None,
            reference: placed.map(|_| self.sequences.iter().map(|sequence| sequence.1).sum()),
            k: self.k,
            means: self.means.clone().unwrap_or(Means {
                threads: 1,
                memory: 4 << 30,
                scratch: u64::MAX,
                devices: Default::default(),
            }),
        }
    }

    /// Readings of all reads that counting took.
    fn partitions(&self) -> u32 {
        let says = |what: &str| what.starts_with("partitions that the k-mers were counted in");
        let line = self.ledger.lines.iter().find(|line| says(&line.what));
        line.and_then(|line| u32::try_from(line.count).ok()).unwrap_or(1).max(1)
    }

    /// Whether later passes read a copy of the reads.
    fn copied(&self) -> bool {
        self.ledger.lines.iter().any(|line| line.what == COPIED)
    }

    /// What a unit takes by the given rates.
    fn by(&self, rates: &Rates, name: &str) -> Option<Unit> {
        self.given().unit(name, self.partitions(), self.copied(), rates)
    }

    /// CPU seconds of a unit that was run, over those that [`MEASURED`] gives it.
    fn time(&self, name: &str) -> Option<f64> {
        let cost = self.units.iter().find(|cost| cost.name == name && !cost.resumed)?;
        believed(cost.cpu_s / self.by(&MEASURED, name)?.cpu_s)
    }

    /// What a unit takes in memory beside what all calls take, over what [`MEASURED`] gives it by its figure, which `without` leaves out. Known
    /// only where the unit took more than those before it.
    fn memory(&self, name: &str, without: impl FnOnce(&mut Rates)) -> Option<f64> {
        self.means.as_ref()?;
        let at = self.units.iter().position(|cost| cost.name == name && !cost.resumed)?;
        let before = self.units[..at].iter().map(|cost| cost.peak_bytes).max().unwrap_or(0);
        let peak = self.units[at].peak_bytes;
        let mut rest = MEASURED;
        without(&mut rest);
        let rest = self.by(&rest, name)?.peak_bytes;
        let figured = self.by(&MEASURED, name)?.peak_bytes.saturating_sub(rest);
        if peak <= before {
            return None;
        }
        believed(peak.saturating_sub(rest) as f64 / figured as f64)
    }

    /// Share of the time that the threads worked.
    fn busy(&self) -> Option<f64> {
        let threads = self.means.as_ref()?.threads as f64;
        let run = || self.units.iter().filter(|cost| !cost.resumed);
        let wall_s: f64 = run().map(|cost| cost.wall_s).sum();
        let cpu_s: f64 = run().map(|cost| cost.cpu_s).sum();
        (wall_s > 0.0 && cpu_s > 0.0).then(|| (cpu_s / wall_s / threads).clamp(0.02, 1.0))
    }
}

impl Run {
    /// Power of the machine, W, where it tells.
    fn watts(&self) -> Option<f64> {
        let seconds = self.timeline.samples.last()?.s;
        let watts = self.timeline.energy_j? / seconds;
        watts.is_finite().then_some(watts)
    }
}

/// A ratio that may be one of the machine's.
fn believed(ratio: f64) -> Option<f64> {
    (ratio.is_finite() && ratio > BELIEVED.0 && ratio < BELIEVED.1).then_some(ratio)
}

/// The middle one, or the mean of the two in the middle.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    Some(if values.len() % 2 == 1 { upper } else { (values[values.len() / 2 - 1] + upper) / 2.0 })
}

/// The rates that runs say in the median, [`MEASURED`] where they say nothing.
pub(crate) fn calibrated(runs: &[Run]) -> Rates {
    let mut rates = MEASURED;
    let time = |name: &str| median(runs.iter().filter_map(|run| run.time(name))).unwrap_or(1.0);
    let (count, place, judge) = (time("count"), time("place"), time("judge"));
    rates.count *= count;
    rates.again *= count;
    rates.record *= count;
    rates.reread *= count;
    rates.assemble *= time("assemble");
    rates.scan *= place;
    rates.compare *= place;
    rates.recruit *= time("recruit");
    rates.judge *= judge;
    // It is not in the summary, which it writes.
    rates.write *= judge;
    rates.busy = median(runs.iter().filter_map(Run::busy)).unwrap_or(rates.busy);
    rates.watts = median(runs.iter().filter_map(Run::watts));
    let memory = |name: &str, without: fn(&mut Rates)| {
        median(runs.iter().filter_map(|run| run.memory(name, without))).unwrap_or(1.0)
    };
    let assemble = memory("assemble", |rates| (rates.assemble_bytes, rates.labelled_bytes) = (0.0, 0.0));
    rates.assemble_bytes *= assemble;
    rates.labelled_bytes *= assemble;
    rates.place_bytes *= memory("place", |rates| rates.place_bytes = 0.0);
    rates.recruit_bytes *= memory("recruit", |rates| rates.recruit_bytes = 0.0);
    rates.judge_bytes *= memory("judge", |rates| rates.judge_bytes = 0.0);
    rates
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A run of 1 and 2 Gbases on 100 Mbp, whose units took `times` the time that plans give them, on two threads that worked for `busy` of the
    /// time.
    fn summary(times: f64, busy: f64, partitions: u32) -> Value {
        let unit = |name: &str, cpu_s: f64, peak: u64| {
            let cpu_s = cpu_s * times;
            json!({"name": name, "cpu_s": cpu_s, "wall_s": cpu_s / 2.0 / busy, "peak_bytes": peak, "resumed": false})
        };
        let Rates {
            count, again, record, reread, assemble, scan, compare, recruit, judge, reference, ..
        } = MEASURED;
        // Four times as large as the genome that the rates are of.
        let Rates { tenfold, tenfold_places, tenfold_found, .. } = MEASURED;
        let [read, places, found] =
            [tenfold, tenfold_places, tenfold_found].map(|tenfold| 1.0 + tenfold * 4f64.log10());
        // One in several partitions leaves no copy of the reads.
        let (record, reread, left_out) =
            if partitions == 1 { (record, 0.0, false) } else { (0.0, reread, true) };
        let copy = if left_out { "bytes of a packed copy of the reads, and so on" } else { COPIED };
        json!({
            "bases": [1_000_000_000, 2_000_000_000],
            "k": 31,
            "reference": "ref.fa",
            "sequences": [["chr1", 60_000_000], ["chr2", 40_000_000]],
            "units": [
                unit("count", 3.0 * (count + record + again * f64::from(partitions - 1)), 200_000_000),
                unit("assemble", 2.0 * (assemble * read + reread), 844_000_000),
                unit("place", 0.2 * scan + 2.0 * compare * places + 0.1 * reference, 844_000_000),
                unit("recruit", 3.0 * (recruit * read + reread), 844_000_000),
                unit("judge", 3.0 * judge * found, 844_000_000),
            ],
            "means": {"threads": 2, "memory": 1 << 30, "scratch": 1 << 30},
            "ledger": {"lines": [{
                "stage": "count", "what": "partitions that the k-mers were counted in, each in a reading of all reads",
                "count": partitions, "left_out": false,
            }, {"stage": "count", "what": copy, "count": 7, "left_out": left_out}]},
            "more": "is not looked at",
        })
    }

    fn run(summary: Value) -> Run {
        serde_json::from_value(summary).expect("a summary")
    }

    fn near(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 1e-6
    }

    #[test]
    fn rates_become_the_medians_of_what_runs_say() {
        assert_eq!(calibrated(&[]), MEASURED);
        let runs = [(1.0, 0.5, 1), (2.0, 0.7, 3), (9.0, 0.8, 1)].map(|(t, b, p)| run(summary(t, b, p)));
        let rates = calibrated(&runs);
        let times = |of: fn(&Rates) -> f64| of(&rates) / of(&MEASURED);
        for of in [
            |r: &Rates| r.count,
            |r: &Rates| r.again,
            |r: &Rates| r.reread,
            |r: &Rates| r.assemble,
            |r: &Rates| r.scan,
            |r: &Rates| r.recruit,
            |r: &Rates| r.judge,
        ] {
            assert!(near(times(of), 2.0), "{rates:?}");
        }
        assert!(near(rates.busy, 0.7), "{rates:?}");
        // 844 MB less 40 of the process and 24 of its threads are 390 a Gbase of the tumour, here.
        assert!(near(rates.assemble_bytes + rates.labelled_bytes, 390e6), "{rates:?}");
        assert!(near(rates.place_bytes, MEASURED.place_bytes), "no more than before says nothing");
        // A plan of the same call then says what the run took.
        let again = runs[1].by(&rates, "count").expect("a unit");
        assert!((again.cpu_s - runs[1].units[0].cpu_s).abs() < 0.02 * again.cpu_s, "{again:?}");
        assert!(near(calibrated(&runs[..2]).recruit, 1.5 * MEASURED.recruit), "the mean of two");
    }

    #[test]
    fn what_a_run_does_not_say_is_left_as_it_is() {
        let mut none = summary(3.0, 0.5, 1);
        none["means"] = Value::Null;
        none["units"][0]["resumed"] = true.into();
        none["units"][1]["cpu_s"] = 0.0.into();
        let rates = calibrated(&[run(none)]);
        assert_eq!((rates.count, rates.assemble), (MEASURED.count, MEASURED.assemble));
        assert_eq!((rates.busy, rates.assemble_bytes), (MEASURED.busy, MEASURED.assemble_bytes));
        assert!(near(rates.recruit, 3.0 * MEASURED.recruit));
        let mut old = summary(1.0, 0.5, 1);
        old.as_object_mut().expect("an object").remove("means");
        assert_eq!(calibrated(&[run(old)]).busy, MEASURED.busy);
    }

    #[test]
    fn what_is_no_summary_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summary.json");
        let said = |path: &Path| format!("{:#}", Run::load(path).unwrap_err());
        assert!(said(&path).contains("summary.json: cannot read"));
        for text in ["", "{}", "[1, 2]", "{\"bases\": [1]}"] {
            fs::write(&path, text).unwrap();
            assert!(said(&path).contains("is no summary.json of `genuma call`"), "{text}");
        }
    }
}
