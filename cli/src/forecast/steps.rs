//! What the steps of a call in parts will take, each for itself: what the scheduler of a cluster is asked for.

use genuma_kmers::{Grid, least_for_grid};
use genuma_somatic::parts::Kind;
use genuma_somatic::pipeline::Means;

use super::model::{Given, Unit, least_for};
use super::rates::Rates;

/// What one step of a kind will take.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Need {
    /// Of this kind.
    pub(crate) kind: Kind,
    /// CPU seconds, all threads.
    pub(crate) cpu_s: f64,
    /// Seconds by the clock.
    pub(crate) wall_s: f64,
    /// Bytes of memory.
    pub(crate) memory: u64,
    /// Bytes of a work folder of its own.
    pub(crate) scratch: u64,
}

/// Share of counting that is scattering, as measured (docs/cluster.md).
const SCATTER: f64 = 0.69;
/// Bytes of k-mers for each base of the reads.
const KMER_BYTES: f64 = 1.0;
/// What steps take beyond what is expected: shards and partitions are not all of a size, and machines not all as fast.
const MARGIN: f64 = 1.3;
/// Bytes that each step takes at least.
const LEAST: u64 = 512 << 20;

impl Given {
    /// What steps of each kind take, where the reads are in so many shards, by the means of one step.
    pub(crate) fn steps(&self, shards: u32, grid: Grid, rates: &Rates) -> Vec<Need> {
        let Means { threads, memory, .. } = self.means;
        let (shards, parts) = (f64::from(shards.max(1)), f64::from(grid.parts));
        let unit = |name: &str| self.unit(name, 1, true, rates);
        let letters = self.reference.unwrap_or(0) as f64;
        let both = self.bases.iter().sum::<u64>() as f64;
        let base = rates.base_bytes + rates.thread_bytes * threads as f64;
        let tumour = self.bases[1] as f64 / 1e9;
        let picks = rates.assemble_bytes * tumour;
        let facts = self.facts(rates) as f64;
        let waiting = rates.waiting_bytes * self.aligned as f64;
        let panel = self.panel.map_or(0, |panel| panel.beside) as f64;
        let recruited = rates.pair_bytes * both / 1e9;
        let step = |kind: Kind| {
            let of = |name: &str, share: f64| {
                unit(name)
                    .map_or((0.0, 0.0), |Unit { cpu_s, peak_bytes, .. }| (cpu_s * share, peak_bytes as f64))
            };
            let kmers = both / shards * KMER_BYTES;
            let (cpu_s, peak, scratch) = match kind {
                Kind::Scatter => {
                    let least = least_for_grid(grid, threads) as f64;
                    (of("count", SCATTER / shards).0, base + kmers + least + facts + waiting, kmers)
                }
                Kind::Count => {
                    let picks = 1.2 * letters / parts;
                    (
                        of("count", (1.0 - SCATTER) / parts).0,
                        base + picks + facts + 64e6 * threads as f64,
                        0.0,
                    )
                }
                Kind::Pick => {
                    let scan = rates.scan * letters / 1e9;
                    (of("reference", 0.5).0 + scan, base + letters + 1.2 * letters + picks, 0.0)
                }
                Kind::Label => (of("assemble", 0.7 / shards).0, base + picks, 0.0),
                Kind::Assemble => {
                    (of("assemble", 0.3).0, of("assemble", 1.0).1, rates.labelled_bytes * tumour)
                }
                Kind::Place => (of("place", 1.0).0, of("place", 1.0).1, 0.0),
                Kind::Recruit => (of("recruit", 1.0 / shards).0, of("recruit", 1.0).1 - letters, 0.0),
                Kind::Finish => {
                    // Pairs get half of what is left: with less than this they come in several ranges, each read four times.
                    let twice = rates.resident_bytes * both / 1e9;
                    let cpu_s = of("judge", 1.0).0 + of("write", 1.0).0;
                    (cpu_s, (of("write", 1.0).1 + twice).max(base + picks + panel), 2.0 * recruited)
                }
            };
            let needed = ((peak * MARGIN) as u64).max(LEAST).max(least_for(threads, None));
            // As much as was allowed does for any step, if it does for the reference.
            let floor = if matches!(kind, Kind::Pick | Kind::Place | Kind::Finish) {
                least_for(threads, self.reference)
            } else {
                0
            };
            Need {
                kind,
                cpu_s,
                wall_s: cpu_s / (threads as f64 * rates.busy),
                memory: needed.min(memory).max(floor),
                scratch: (scratch * MARGIN) as u64,
            }
        };
        Kind::ALL.into_iter().map(step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::rates::MEASURED;

    #[test]
    fn more_shards_and_partitions_make_smaller_steps_and_no_less_work() {
        let given = Given {
            bases: [93_000_000_000; 2],
            samples: 2,
            bytes: [43_000_000_000; 2],
            copied: 110_000_000_000,
            read_length: 150,
            files: 4,
            aligned: 0,
            panel: None,
            reference: Some(3_100_000_000),
            k: 31,
            means: Means { threads: 4, memory: 16 << 30, scratch: 1 << 40, devices: Default::default() },
        };
        let steps = |n: u32| given.steps(n, genuma_kmers::grid(150_000_000_000, n), &MEASURED);
        let (few, many) = (steps(8), steps(32));
        let all = |steps: &[Need], n: u32| -> f64 {
            let tasks =
                |kind| if kind == Kind::Count || Kind::is_of_shard(kind) { f64::from(n) } else { 1.0 };
            steps.iter().map(|need| need.cpu_s * tasks(need.kind)).sum()
        };
        assert!(all(&many, 32) >= all(&few, 8) && all(&many, 32) < 1.1 * all(&few, 8));
        for (few, many) in few.iter().zip(&many) {
            assert_eq!(few.kind, many.kind);
            assert!(many.cpu_s <= few.cpu_s && many.memory <= few.memory, "{few:?} {many:?}");
            assert!((LEAST..=16 << 30).contains(&many.memory), "{many:?}");
        }
        let tiny = Given { bases: [1000; 2], reference: Some(500), ..given };
        assert!(
            tiny.steps(1, Grid { parts: 1, bins: 16 }, &MEASURED).iter().all(|need| need.memory < 1 << 30)
        );
    }
}
