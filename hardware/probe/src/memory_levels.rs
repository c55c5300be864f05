//! Finds the levels of the memory hierarchy in a latency curve: the plateaus between its steps.

use crate::profile::{LatencyCurve, LatencyPoint, MemoryLevel};

/// Maximum growth (factor) of latency per doubling of the chain size within a plateau. Empirical. A higher value merges
/// levels.
const MAX_FLAT_GROWTH: f64 = 1.22;
/// Minimum ratio of the latencies of two separate plateaus; plateaus with a smaller ratio are joined. Empirical.
const MIN_PLATEAU_RATIO: f64 = 1.3;
/// A flat part of a latency curve: the points with indices from `from` to `to`, both included.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Plateau {
    from: usize,
    to: usize,
}

/// Finds the memory levels in a curve of ascending chain sizes. `caches` are the sizes of the data caches in bytes,
/// nearest first.
///
/// A plateau belongs to the smallest cache that holds chains of the plateau's geometric mean size: a shared cache
/// appears smaller than it is, seldom larger. If several plateaus belong to one cache, the widest one is used. The last
/// of several plateaus is DRAM if it ends beyond the last cache; its latency is that of the largest chain. The latency
/// of other plateaus is that of their flattest point. Any other plateau beyond all caches is named `step N` and has no
/// cache size.
pub(crate) fn find_memory_levels(curve: &LatencyCurve, caches: &[u64]) -> Vec<MemoryLevel> {
    let points = &curve.points;
    let plateaus = find_plateaus(points);
    let beyond = caches.last().copied().unwrap_or(0);
    let mut levels: Vec<MemoryLevel> = Vec::new();
    for (place, plateau) in plateaus.iter().enumerate() {
        let (from_bytes, to_bytes) = (points[plateau.from].bytes, points[plateau.to].bytes);
        let dram = place + 1 == plateaus.len() && to_bytes > beyond && plateaus.len() > 1;
        let middle = (from_bytes as f64 * to_bytes as f64).sqrt();
        let cache = caches.iter().position(|bytes| !dram && middle <= *bytes as f64);
        let name = match (dram, cache) {
            (true, _) => "DRAM".to_owned(),
            (false, Some(i)) => format!("L{}", i + 1),
            (false, None) => format!("step {}", levels.len() + 1),
        };
        let cache_bytes = cache.map(|i| caches[i]);
        // The largest chain gives the latency of DRAM, as for node pairs: two different figures for one quantity
        // would be confusing.
        let flattest = flattest_point(&points[plateau.from..=plateau.to]);
        let latency = points.last().filter(|_| dram).map_or(flattest.latency, |last| last.latency);
        let level = MemoryLevel { name, from_bytes, to_bytes, cache_bytes, latency };
        match levels.last_mut() {
            Some(before) if before.name == level.name => {
                if plateau_octaves(&level) > plateau_octaves(before) {
                    *before = level;
                }
            }
            _ => levels.push(level),
        }
    }
    levels
}

/// Number of times the chain size doubles from the start to the end of the plateau.
fn plateau_octaves(level: &MemoryLevel) -> f64 {
    (level.to_bytes as f64 / level.from_bytes as f64).log2()
}

/// Maximal flat runs of at least two points. Runs of nearly the same latency are joined.
fn find_plateaus(points: &[LatencyPoint]) -> Vec<Plateau> {
    let mut found: Vec<Plateau> = Vec::new();
    for (i, pair) in points.windows(2).enumerate() {
        if growth_per_octave(&pair[0], &pair[1]) > MAX_FLAT_GROWTH {
            continue;
        }
        match found.last_mut() {
            Some(plateau) if plateau.to == i => plateau.to = i + 1,
            _ => found.push(Plateau { from: i, to: i + 1 }),
        }
    }
    let mut joined: Vec<Plateau> = Vec::new();
    for plateau in found {
        let middle = |p: &Plateau| flattest_point(&points[p.from..=p.to]).latency.min;
        match joined.last_mut() {
            Some(before) if middle(&plateau) < middle(before) * MIN_PLATEAU_RATIO => before.to = plateau.to,
            _ => joined.push(plateau),
        }
    }
    joined
}

/// Growth (factor) of latency per doubling of the chain size. Uses the fastest repetitions, because other processes
/// only slow a measurement down.
fn growth_per_octave(a: &LatencyPoint, b: &LatencyPoint) -> f64 {
    let octaves = (b.bytes as f64 / a.bytes as f64).log2();
    (b.latency.min / a.latency.min).powf(1.0 / octaves)
}

/// The point whose neighbours differ least; the point itself if there is only one.
fn flattest_point(points: &[LatencyPoint]) -> LatencyPoint {
    let around = |i: usize| {
        let (before, after) = (points[i.saturating_sub(1)], points[(i + 1).min(points.len() - 1)]);
        (after.latency.min / before.latency.min).ln().abs()
    };
    let best = (0..points.len()).min_by(|a, b| around(*a).total_cmp(&around(*b)));
    points[best.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{BufferPageKind, Measurement, MeasurementUnit};

    const CACHES: [u64; 3] = [32 << 10, 1 << 20, 32 << 20];

    /// Four points per octave from 8 KiB to 256 MiB of a latency function of the chain size in bytes, with a little
    /// noise.
    fn curve(latency: impl Fn(f64) -> f64) -> LatencyCurve {
        let point = |i: u32| {
            let bytes = (8192.0 * (f64::from(i) / 4.0).exp2()).round();
            let noise = 1.0 + f64::from(i * 7919 % 13) / 13.0 * 0.02;
            let latency = Measurement::summarize_repetitions(MeasurementUnit::Nanoseconds, &[latency(bytes) * noise])
                .expect("a latency");
            LatencyPoint { bytes: bytes as u64, latency }
        };
        let points = (0..=60).map(point).collect();
        LatencyCurve { cpu_node: 0, memory_node: 0, pages: BufferPageKind::Huge, points }
    }

    /// Latency with caches of these sizes under random replacement.
    fn staircase(bytes: f64, caches: &[(f64, f64)], dram: f64) -> f64 {
        let mut missed = 1.0;
        let mut time = 0.0;
        for (size, ns) in caches {
            let hit = missed * (size / bytes).min(1.0).powi(3);
            time += hit * ns;
            missed -= hit;
        }
        time + missed * dram
    }

    fn summarize_levels(levels: &[MemoryLevel]) -> Vec<(&str, Option<u64>, i64)> {
        levels.iter().map(|l| (l.name.as_str(), l.cache_bytes, l.latency.median.round() as i64)).collect()
    }

    #[test]
    fn a_staircase_gives_its_steps() {
        let caches = [(32768.0, 1.5), (1048576.0, 5.0), (33554432.0, 20.0)];
        let curve = curve(|bytes| staircase(bytes, &caches, 120.0));
        let levels = find_memory_levels(&curve, &CACHES);
        let names: Vec<_> = levels.iter().map(|l| (l.name.as_str(), l.cache_bytes)).collect();
        let [l1, l2, l3] = CACHES.map(Some);
        assert_eq!(names, [("L1", l1), ("L2", l2), ("L3", l3), ("DRAM", None)]);
        let near = |level: &MemoryLevel, ns: f64| (level.latency.median / ns - 1.0).abs() < 0.15;
        assert!(near(&levels[0], 1.5) && near(&levels[1], 5.0) && near(&levels[2], 20.0), "{levels:#?}");
        assert!(near(&levels[3], 120.0), "{levels:#?}");
        assert_eq!(levels[3].latency, curve.points.last().expect("a largest ring").latency);
    }

    #[test]
    fn a_cache_that_others_use_too_ends_early() {
        // A guest sees 32 MiB but can use a quarter of it.
        let caches = [(32768.0, 1.5), (1048576.0, 5.0), (8388608.0, 20.0)];
        let levels = find_memory_levels(&curve(|bytes| staircase(bytes, &caches, 120.0)), &CACHES);
        assert_eq!(levels[2].cache_bytes, Some(32 << 20), "{:?}", summarize_levels(&levels));
        assert_eq!(levels.len(), 4);
    }

    #[test]
    fn a_cache_is_one_level_however_many_steps_it_has() {
        // TLB misses start at half of the second cache.
        let caches = [(32768.0, 1.5), (400000.0, 5.0), (1048576.0, 7.5), (8388608.0, 20.0)];
        let levels = find_memory_levels(&curve(|bytes| staircase(bytes, &caches, 120.0)), &CACHES);
        let names: Vec<_> = levels.iter().map(|l| (l.name.as_str(), l.cache_bytes)).collect();
        let [l1, l2, l3] = CACHES.map(Some);
        assert_eq!(names, [("L1", l1), ("L2", l2), ("L3", l3), ("DRAM", None)]);
        assert_eq!(summarize_levels(&levels)[1].2, 5, "{:?}", summarize_levels(&levels));
    }

    #[test]
    fn repetitions_that_others_slowed_down_do_not_hide_a_level() {
        let caches = [(32768.0, 1.5), (1048576.0, 5.0), (33554432.0, 20.0)];
        let mut disturbed = curve(|bytes| staircase(bytes, &caches, 120.0));
        for (i, point) in disturbed.points.iter_mut().enumerate() {
            point.latency.median *= 1.0 + (i * 31 % 7) as f64;
        }
        let names: Vec<_> = find_memory_levels(&disturbed, &CACHES).iter().map(|l| l.name.clone()).collect();
        assert_eq!(names, ["L1", "L2", "L3", "DRAM"]);
    }

    #[test]
    fn a_step_that_is_no_known_cache_has_no_size() {
        let caches = [(32768.0, 1.5), (1048576.0, 5.0), (33554432.0, 20.0)];
        let levels = find_memory_levels(&curve(|bytes| staircase(bytes, &caches, 120.0)), &CACHES[..1]);
        let names: Vec<_> = levels.iter().map(|l| l.name.as_str()).collect();
        assert_eq!(names, ["L1", "step 2", "step 3", "DRAM"]);
        assert!(levels[1..].iter().all(|l| l.cache_bytes.is_none()));
    }

    #[test]
    fn a_flat_curve_is_one_level_and_a_slope_none() {
        let flat = find_memory_levels(&curve(|_| 80.0), &[]);
        assert_eq!(summarize_levels(&flat).len(), 1);
        assert!(find_memory_levels(&curve(|bytes| bytes / 1000.0), &CACHES).is_empty());
        let empty = LatencyCurve { points: Vec::new(), ..curve(|_| 80.0) };
        assert!(find_memory_levels(&empty, &CACHES).is_empty());
    }
}
