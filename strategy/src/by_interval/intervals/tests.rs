use super::*;

fn region(contig: usize, start: u64, end: u64) -> Region {
    Region { contig, start, end }
}

fn contigs(lengths: &[u64]) -> (Vec<Contig>, Vec<Region>) {
    let contigs = lengths.iter().enumerate().map(|(n, &length)| Contig { name: format!("c{n}"), length }).collect();
    (contigs, lengths.iter().enumerate().map(|(n, &length)| region(n, 0, length)).collect())
}

/// Asserts that the intervals together are `regions`, without gaps and overlaps.
#[track_caller]
fn assert_covers(intervals: &[Interval], regions: &[Region]) {
    let mut joined: Vec<Region> = Vec::new();
    for part in intervals.iter().flat_map(|interval| &interval.regions) {
        assert!(part.start < part.end, "{part:?} is empty");
        match joined.last_mut() {
            Some(last) if last.contig == part.contig && last.end == part.start => last.end = part.end,
            _ => joined.push(*part),
        }
    }
    assert_eq!(joined, regions);
}

#[test]
fn equal_weights_give_equal_intervals() {
    let (_, regions) = contigs(&[400_000]);
    let intervals = divide_regions(&regions, &[CumulativeWeight::of_length(400_000)], 8, true);
    assert_covers(&intervals, &regions);
    let lengths: Vec<u64> = intervals.iter().map(|interval| interval.regions[0].len_bp()).collect();
    assert_eq!(lengths, [50_000; 8]);
}

#[test]
fn intervals_are_balanced_by_reads_and_not_by_length() {
    let (_, regions) = contigs(&[1_000_000]);
    // Nine tenths of the reads are in the first tenth.
    let points =
        (0..=100).map(|n| (10_000 * n, if n <= 10 { 90.0 * n as f64 } else { 900.0 + (n - 10) as f64 })).collect();
    let weight = CumulativeWeight::from_points(points);
    let intervals = divide_regions(&regions, std::slice::from_ref(&weight), 8, true);
    assert_covers(&intervals, &regions);
    assert_eq!(intervals.len(), 8);
    for interval in &intervals {
        let [Region { start, end, .. }] = interval.regions[..] else { panic!("{interval:?}") };
        let weight = weight.weight_before(end) - weight.weight_before(start);
        assert!((60.0..190.0).contains(&weight), "{interval:?} weighs {weight}");
    }
}

#[test]
fn cuts_are_where_reads_are_missing() {
    let (_, regions) = contigs(&[300_000]);
    // The wished cut is at 150,000; there are no reads from 160,000 to 180,000.
    let points = vec![(0, 0.0), (160_000, 160.0), (180_000, 160.0), (300_000, 280.0)];
    let intervals = divide_regions(&regions, &[CumulativeWeight::from_points(points)], 2, true);
    assert_covers(&intervals, &regions);
    assert_eq!(intervals[0].regions, [region(0, 0, 170_000)]);
}

#[test]
fn cuts_prefer_the_ends_of_contigs() {
    let (_, regions) = contigs(&[110_000, 90_000]);
    let weights = [CumulativeWeight::of_length(110_000), CumulativeWeight::of_length(90_000)];
    let intervals = divide_regions(&regions, &weights, 2, true);
    assert_eq!(
        intervals.iter().map(|interval| interval.regions.clone()).collect::<Vec<_>>(),
        [[regions[0]], [regions[1]]]
    );
}

#[test]
fn small_contigs_share_an_interval_if_the_command_permits_it() {
    let (contigs, regions) = contigs(&[100_000, 500, 500, 500, 100_000]);
    let weights: Vec<_> = contigs.iter().map(|contig| CumulativeWeight::of_length(contig.length)).collect();
    let joined = divide_regions(&regions, &weights, 4, true);
    assert_covers(&joined, &regions);
    assert_eq!(joined.len(), 4);
    let single = divide_regions(&regions, &weights, 4, false);
    assert_covers(&single, &regions);
    assert!(single.iter().all(|interval| interval.regions.len() == 1) && single.len() == 7, "{single:?}");
    assert_eq!(joined[0].display_name(&contigs), "c0:1-50375");
}

#[test]
fn reads_of_one_place_do_not_give_tiny_intervals() {
    let (_, regions) = contigs(&[1_000_000]);
    let points = vec![(0, 0.0), (500_000, 0.0), (501_000, 1e9), (1_000_000, 1e9)];
    let intervals = divide_regions(&regions, &[CumulativeWeight::from_points(points)], 64, true);
    assert_covers(&intervals, &regions);
    assert!(intervals.iter().all(|interval| interval.regions[0].len_bp() >= MIN_INTERVAL_BP), "{intervals:?}");
}

#[test]
fn without_reads_the_lengths_decide() {
    let (_, regions) = contigs(&[100_000, 100_000]);
    let none = [CumulativeWeight::from_points(vec![(0, 0.0), (100_000, 0.0)]), CumulativeWeight::default()];
    let intervals = divide_regions(&regions, &none, 4, true);
    assert_covers(&intervals, &regions);
    assert_eq!(intervals.len(), 4);
    assert!(divide_regions(&[], &[], 4, true).is_empty());
}

#[test]
fn a_random_genome_is_covered_once() {
    let mut state = 1_u64;
    let mut below = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    for _ in 0..200 {
        let lengths: Vec<u64> = (0..1 + below(12)).map(|_| 1 + below(200_000)).collect();
        let (_, regions) = contigs(&lengths);
        let weights: Vec<CumulativeWeight> = lengths
            .iter()
            .map(|&length| {
                let mut total = 0.0;
                let points = (0..=length / 16_384).map(|window| {
                    total += below(4) as f64 * below(1000) as f64;
                    (window * 16_384, total)
                });
                CumulativeWeight::from_points(points.collect())
            })
            .collect();
        let max = 1 + below(40) as usize;
        let intervals = divide_regions(&regions, &weights, max, true);
        assert_covers(&intervals, &regions);
        assert!(intervals.len() <= max, "{} of {max}", intervals.len());
        assert_covers(&divide_regions(&regions, &weights, max, false), &regions);
    }
}

#[test]
fn padding_ends_at_the_contig_and_merges_neighbours() {
    let (contigs, _) = contigs(&[10_000, 5_000]);
    let interval =
        Interval { regions: vec![region(0, 500, 600), region(0, 900, 950), region(0, 9_500, 9_900), region(1, 0, 10)] };
    assert_eq!(
        interval.padded_regions(200, &contigs),
        [region(0, 300, 1150), region(0, 9_300, 10_000), region(1, 0, 210)]
    );
    assert_eq!(interval.padded_regions(0, &contigs), interval.regions);
    assert_eq!(interval.find_region(0, 599), Some(&region(0, 500, 600)));
    assert!(
        [(0, 499), (0, 600), (0, 899), (1, 10), (2, 0)].iter().all(|&(c, pos)| interval.find_region(c, pos).is_none())
    );
    assert_eq!(interval.display_name(&contigs), "c0:501-600 to c1:1-10");
}

#[test]
fn weights_of_files_add_up() {
    let one = CumulativeWeight::from_points(vec![(0, 0.0), (100, 10.0)]);
    let two = CumulativeWeight::from_points(vec![(0, 0.0), (50, 40.0), (100, 40.0)]);
    let sum = one.add(&two);
    assert_eq!([0, 25, 50, 75, 100, 200].map(|pos| sum.weight_before(pos)), [0.0, 22.5, 45.0, 47.5, 50.0, 50.0]);
}
