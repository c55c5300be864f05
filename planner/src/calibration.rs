//! Adapts the cost rates to a machine: compares earlier runs on it (`summary.json`) with their forecasts.

use std::fs;
use std::path::Path;

use genuma_somatic::count::PACKED_READS_LEDGER_LINE;
use genuma_somatic::ledger::Ledger;
use genuma_somatic::pipeline::Resources;
use genuma_work::cost::UnitCost;
use genuma_work::timeline::Timeline;
use serde::Deserialize;

use crate::error::Error;
use crate::input::ForecastInput;
use crate::rates::{CostRates, MEASURED_RATES};
use crate::units::UnitForecast;

/// An earlier call of tumour and normal, from its `summary.json`: the values that calibration needs.
#[derive(Debug, Clone, Deserialize)]
pub struct EarlierRun {
    /// Number of bases of the reads: of the normal, then of each tumour.
    bases: Vec<u64>,
    k: u32,
    reference: Option<String>,
    sequences: Vec<(String, u64)>,
    units: Vec<UnitCost>,
    /// Absent if the summary is of an early version of genuma that did not record resources.
    #[serde(alias = "means")]
    resources: Option<Resources>,
    #[serde(rename = "stages", alias = "ledger", deserialize_with = "deserialize_ledger")]
    ledger: Ledger,
    /// Empty if the summary is of an early version of genuma that did not record a timeline.
    #[serde(default)]
    timeline: Timeline,
}

/// Bounds of plausible ratios of measured to predicted cost. Ratios outside these bounds are ignored, because they have
/// another cause than the speed of the machine. Empirical.
const PLAUSIBLE_RATIOS: (f64, f64) = (0.02, 50.0);

/// Start of the description of the ledger line that contains the number of partitions.
const PARTITIONS_LINE_START: &str = "partitions of the k-mer space";

/// Descriptions of ledger lines that calibration reads: start of the description up to version 0.2.0, and present
/// description.
const RENAMED_LINES: [(&str, &str); 2] = [
    ("partitions that the k-mers were counted in", PARTITIONS_LINE_START),
    ("pairs in a packed copy in the work folder", PACKED_READS_LEDGER_LINE),
];

/// Deserialises a ledger. The present format is an array. Up to version 0.2.0 the ledger was an object that contained
/// the array; descriptions of its lines are replaced by the present ones.
fn deserialize_ledger<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Ledger, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum AnyVersion {
        Array(Ledger),
        Object { lines: Ledger },
    }
    match AnyVersion::deserialize(deserializer)? {
        AnyVersion::Array(ledger) => Ok(ledger),
        AnyVersion::Object { lines: mut ledger } => {
            for line in &mut ledger.lines {
                let renamed = RENAMED_LINES.iter().find(|(old, _)| line.description.starts_with(old));
                if let Some((_, present)) = renamed {
                    line.description = (*present).to_owned();
                }
            }
            Ok(ledger)
        }
    }
}

impl EarlierRun {
    /// Loads a summary.
    ///
    /// # Errors
    /// The file cannot be read, is no summary of `genuma call`, or has one sample only.
    pub fn load(path: &Path) -> Result<EarlierRun, Error> {
        let text = fs::read(path).map_err(|source| Error::Read { path: path.to_path_buf(), source })?;
        let run: EarlierRun = serde_json::from_slice(&text)
            .map_err(|source| Error::InvalidSummary { path: path.to_path_buf(), source })?;
        if run.bases.len() < 2 {
            return Err(Error::SingleSampleSummary { path: path.to_path_buf() });
        }
        Ok(run)
    }

    /// Returns the input of the earlier run in the form in which a forecast takes it. What the summary lacks, such as
    /// the sizes of the files and the read length, has fixed values.
    fn call_input(&self) -> ForecastInput {
        let placed = self.reference.as_ref();
        let (normal, tumours) = self.bases.split_at(1);
        ForecastInput {
            bases: [normal, tumours].map(|of| of.iter().sum()),
            num_samples: self.bases.len(),
            file_bytes: [0; 2],
            packed_bytes: 0,
            read_length: 150,
            num_files: u64::MAX,
            num_aligned_files: 0,
            panel: None,
            reference_bases: placed.map(|_| self.sequences.iter().map(|sequence| sequence.1).sum()),
            k: self.k,
            resources: self.resources.clone().unwrap_or(Resources {
                threads: 1,
                memory: 4 << 30,
                scratch: u64::MAX,
                devices: Default::default(),
            }),
        }
    }

    /// Returns the number of partitions in which the k-mers were counted; 1 if the ledger lacks it.
    fn partitions(&self) -> u32 {
        let line = self.ledger.lines.iter().find(|line| line.description.starts_with(PARTITIONS_LINE_START));
        line.and_then(|line| u32::try_from(line.count).ok()).unwrap_or(1).max(1)
    }

    /// Returns whether later passes of the run read packed reads instead of the input files.
    fn had_packed_reads(&self) -> bool {
        self.ledger.lines.iter().any(|line| line.description == PACKED_READS_LEDGER_LINE)
    }

    fn unit_forecast(&self, rates: &CostRates, name: &str) -> Option<UnitForecast> {
        self.call_input().forecast_unit(name, self.partitions(), self.had_packed_reads(), rates)
    }

    /// Returns the ratio of a unit's measured CPU time to its forecast at [`MEASURED_RATES`]; `None` if the unit did
    /// not run or was resumed, or if the ratio is implausible.
    fn cpu_time_ratio(&self, name: &str) -> Option<f64> {
        let cost = self.units.iter().find(|cost| cost.name == name && !cost.resumed)?;
        plausible_ratio(cost.cpu_s / self.unit_forecast(&MEASURED_RATES, name)?.cpu_s)
    }

    /// Returns the ratio of measured to predicted memory for one part of a unit's memory: the part that is proportional
    /// to the rates which `without` sets to zero. The predicted memory of the other parts is subtracted from both.
    /// `None` if the summary has no resources, if the unit did not run or was resumed, if it did not use more memory
    /// than all units before it, or if the ratio is implausible.
    fn memory_ratio(&self, name: &str, without: impl FnOnce(&mut CostRates)) -> Option<f64> {
        self.resources.as_ref()?;
        let at = self.units.iter().position(|cost| cost.name == name && !cost.resumed)?;
        let before = self.units[..at].iter().map(|cost| cost.peak_bytes).max().unwrap_or(0);
        let peak = self.units[at].peak_bytes;
        let mut rest = MEASURED_RATES;
        without(&mut rest);
        let rest = self.unit_forecast(&rest, name)?.peak_bytes;
        let figured = self.unit_forecast(&MEASURED_RATES, name)?.peak_bytes.saturating_sub(rest);
        if peak <= before {
            return None;
        }
        plausible_ratio(peak.saturating_sub(rest) as f64 / figured as f64)
    }

    /// Returns the share of the time in which the threads used a CPU: CPU time / (wall-clock time × threads), limited
    /// to 0.02 to 1. `None` if the summary does not have these values.
    pub fn busy_share(&self) -> Option<f64> {
        let threads = self.resources.as_ref()?.threads as f64;
        let run = || self.units.iter().filter(|cost| !cost.resumed);
        let wall_s: f64 = run().map(|cost| cost.wall_s).sum();
        let cpu_s: f64 = run().map(|cost| cost.cpu_s).sum();
        (wall_s > 0.0 && cpu_s > 0.0).then(|| (cpu_s / wall_s / threads).clamp(0.02, 1.0))
    }
}

impl EarlierRun {
    /// Returns the CPU time (s) of all units that are in the summary.
    pub fn total_cpu_s(&self) -> f64 {
        self.units.iter().map(|cost| cost.cpu_s).sum()
    }

    /// Returns the mean power of the machine (W); `None` if the run did not record its energy.
    pub fn mean_watts(&self) -> Option<f64> {
        let seconds = self.timeline.samples.last()?.elapsed_s;
        let watts = self.timeline.energy_j? / seconds;
        watts.is_finite().then_some(watts)
    }
}

/// Returns the ratio if it is within [`PLAUSIBLE_RATIOS`], otherwise `None`.
fn plausible_ratio(ratio: f64) -> Option<f64> {
    (ratio.is_finite() && ratio > PLAUSIBLE_RATIOS.0 && ratio < PLAUSIBLE_RATIOS.1).then_some(ratio)
}

/// Returns the median: for an even number of values, the mean of the two middle ones. `None` without values.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    Some(if values.len() % 2 == 1 { upper } else { (values[values.len() / 2 - 1] + upper) / 2.0 })
}

/// Returns [`MEASURED_RATES`], adapted to earlier runs. CPU times and memory are multiplied by the median ratio of
/// measured to predicted values. The share of time in which CPUs are used and the power are medians of the measured
/// values. Rates without data stay as they are, except that the power is then `None`.
pub(crate) fn calibrate_rates(runs: &[EarlierRun]) -> CostRates {
    let mut rates = MEASURED_RATES;
    let time = |name: &str| median(runs.iter().filter_map(|run| run.cpu_time_ratio(name))).unwrap_or(1.0);
    let (count, place, judge) = (time("count"), time("place"), time("judge"));
    rates.count_cpu_s *= count;
    rates.extra_partition_cpu_s *= count;
    rates.pack_reads_cpu_s *= count;
    rates.reread_files_cpu_s *= count;
    rates.assemble_cpu_s *= time("assemble");
    rates.scan_reference_cpu_s *= place;
    rates.align_contigs_cpu_s *= place;
    rates.recruit_cpu_s *= time("recruit");
    rates.judge_cpu_s *= judge;
    // Writing is not in the summary, because the summary is written by it.
    rates.write_cpu_s *= judge;
    rates.busy_share = median(runs.iter().filter_map(EarlierRun::busy_share)).unwrap_or(rates.busy_share);
    rates.watts = median(runs.iter().filter_map(EarlierRun::mean_watts));
    let memory = |name: &str, without: fn(&mut CostRates)| {
        median(runs.iter().filter_map(|run| run.memory_ratio(name, without))).unwrap_or(1.0)
    };
    let assemble = memory("assemble", |rates| (rates.candidate_kmer_bytes, rates.candidate_pair_bytes) = (0.0, 0.0));
    rates.candidate_kmer_bytes *= assemble;
    rates.candidate_pair_bytes *= assemble;
    rates.place_bytes *= memory("place", |rates| rates.place_bytes = 0.0);
    rates.recruit_bytes *= memory("recruit", |rates| rates.recruit_bytes = 0.0);
    rates.judge_bytes *= memory("judge", |rates| rates.judge_bytes = 0.0);
    rates
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A run with 1 and 2 Gbases on 100 Mbp. Its units took `times` the forecast CPU time, on two threads that worked
    /// for `busy` of the time.
    fn summary(times: f64, busy: f64, partitions: u32) -> Value {
        let unit = |name: &str, cpu_s: f64, peak: u64| {
            let cpu_s = cpu_s * times;
            json!({"name": name, "cpu_s": cpu_s, "wall_s": cpu_s / 2.0 / busy, "peak_bytes": peak, "resumed": false})
        };
        let CostRates {
            count_cpu_s: count,
            extra_partition_cpu_s: again,
            pack_reads_cpu_s: record,
            reread_files_cpu_s: reread,
            assemble_cpu_s: assemble,
            scan_reference_cpu_s: scan,
            align_contigs_cpu_s: compare,
            recruit_cpu_s: recruit,
            judge_cpu_s: judge,
            read_reference_s: reference,
            ..
        } = MEASURED_RATES;
        // The genome is four times as large as the one that the rates hold for.
        let CostRates {
            tenfold_genome_read_growth: tenfold,
            tenfold_genome_placement_growth: tenfold_places,
            tenfold_genome_call_growth: tenfold_found,
            ..
        } = MEASURED_RATES;
        let [read, places, found] =
            [tenfold, tenfold_places, tenfold_found].map(|tenfold| 1.0 + tenfold * 4f64.log10());
        // A count in several partitions leaves no packed reads.
        let (record, reread, left_out) = if partitions == 1 { (record, 0.0, false) } else { (0.0, reread, true) };
        let copy =
            if left_out { "bytes of packed reads that were not written, and so on" } else { PACKED_READS_LEDGER_LINE };
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
                "stage": "count", "what": "partitions of the k-mer space, each counted in its own pass over the reads",
                "count": partitions, "left_out": false,
            }, {"stage": "count", "what": copy, "count": 7, "left_out": left_out}]},
            "more": "is not looked at",
        })
    }

    fn run(summary: Value) -> EarlierRun {
        serde_json::from_value(summary).expect("a summary")
    }

    fn near(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 1e-6
    }

    #[test]
    fn ledger_lines_of_version_0_2_0_count_as_those_of_today() {
        for partitions in [1, 3] {
            let present = summary(1.0, 0.5, partitions).to_string();
            let old = present.replace(PARTITIONS_LINE_START, "partitions that the k-mers were counted in").replace(
                PACKED_READS_LEDGER_LINE,
                "pairs in a packed copy in the work folder, which later passes read",
            );
            assert_ne!(old, present);
            let run: EarlierRun = serde_json::from_str(&old).expect("a summary");
            assert_eq!((run.partitions(), run.had_packed_reads()), (partitions, partitions == 1));
        }
    }

    #[test]
    fn rates_become_the_medians_of_what_runs_say() {
        assert_eq!(calibrate_rates(&[]), MEASURED_RATES);
        let runs = [(1.0, 0.5, 1), (2.0, 0.7, 3), (9.0, 0.8, 1)].map(|(t, b, p)| run(summary(t, b, p)));
        let rates = calibrate_rates(&runs);
        let times = |of: fn(&CostRates) -> f64| of(&rates) / of(&MEASURED_RATES);
        for of in [
            |r: &CostRates| r.count_cpu_s,
            |r: &CostRates| r.extra_partition_cpu_s,
            |r: &CostRates| r.reread_files_cpu_s,
            |r: &CostRates| r.assemble_cpu_s,
            |r: &CostRates| r.scan_reference_cpu_s,
            |r: &CostRates| r.recruit_cpu_s,
            |r: &CostRates| r.judge_cpu_s,
        ] {
            assert!(near(times(of), 2.0), "{rates:?}");
        }
        assert!(near(rates.busy_share, 0.7), "{rates:?}");
        // 844 MB less 40 MB of the process and 24 MB of its threads are 390 MB per Gbase of the tumour.
        assert!(near(rates.candidate_kmer_bytes + rates.candidate_pair_bytes, 390e6), "{rates:?}");
        assert!(near(rates.place_bytes, MEASURED_RATES.place_bytes), "no more than before says nothing");
        // A forecast of the same call now equals what the run took.
        let forecast = runs[1].unit_forecast(&rates, "count").expect("a unit");
        assert!((forecast.cpu_s - runs[1].units[0].cpu_s).abs() < 0.02 * forecast.cpu_s, "{forecast:?}");
        assert!(near(calibrate_rates(&runs[..2]).recruit_cpu_s, 1.5 * MEASURED_RATES.recruit_cpu_s), "the mean of two");
    }

    #[test]
    fn what_a_run_does_not_say_is_left_as_it_is() {
        let mut none = summary(3.0, 0.5, 1);
        none["means"] = Value::Null;
        none["units"][0]["resumed"] = true.into();
        none["units"][1]["cpu_s"] = 0.0.into();
        let rates = calibrate_rates(&[run(none)]);
        assert_eq!(
            (rates.count_cpu_s, rates.assemble_cpu_s),
            (MEASURED_RATES.count_cpu_s, MEASURED_RATES.assemble_cpu_s)
        );
        assert_eq!(
            (rates.busy_share, rates.candidate_kmer_bytes),
            (MEASURED_RATES.busy_share, MEASURED_RATES.candidate_kmer_bytes)
        );
        assert!(near(rates.recruit_cpu_s, 3.0 * MEASURED_RATES.recruit_cpu_s));
        let mut old = summary(1.0, 0.5, 1);
        old.as_object_mut().expect("an object").remove("means");
        assert_eq!(calibrate_rates(&[run(old)]).busy_share, MEASURED_RATES.busy_share);
    }

    #[test]
    fn what_is_no_summary_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summary.json");
        let said = |path: &Path| EarlierRun::load(path).unwrap_err().to_string();
        assert!(said(&path).contains("summary.json: cannot read"));
        for text in ["", "{}", "[1, 2]", "{\"bases\": [1]}"] {
            fs::write(&path, text).unwrap();
            assert!(said(&path).contains("is no summary.json of `genuma call`"), "{text}");
        }
    }
}
