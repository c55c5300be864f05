//! Divides the reference into intervals of about equal weight. The weight of a range is the number of bytes of its reads,
//! or its length if there are no reads.

#[cfg(test)]
mod tests;

/// Number of intervals for each slot. A slot takes the next interval when it has finished one, so at the end a slot waits
/// for half an interval on average, 6 % of the run. More intervals would start more processes, and a program on Java needs
/// seconds to start.
pub const INTERVALS_PER_SLOT: usize = 8;
/// Minimum length of an interval, except at the end of the reference, bp. With the default padding of 1,000 bp on both
/// sides an instance then processes at most 20 % more than its own range.
pub const MIN_INTERVAL_BP: u64 = 10_000;
/// Maximum distance of a cut from its wished place, as a share of the weight of an interval.
const MAX_CUT_SHIFT: f64 = 0.25;

/// Name and length of a contig of the reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contig {
    /// Name of the contig.
    pub name: String,
    /// Length, bp.
    pub length: u64,
}

/// Range of a contig; 0-based, half-open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// Index of the contig in the reference.
    pub contig: usize,
    /// Position of the first base.
    pub start: u64,
    /// Position after the last base.
    pub end: u64,
}

/// Regions of the reference that one instance processes: sorted by contig and position, not empty, without overlaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    /// The regions.
    pub regions: Vec<Region>,
}

/// Weight of each position of a contig, as the total weight before it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CumulativeWeight {
    /// Positions, in increasing order, and the weight of all bases before them. Weight is spread evenly between two
    /// positions.
    points: Vec<(u64, f64)>,
}

/// A range of a region with evenly spread weight.
#[derive(Debug, Clone, Copy)]
struct Segment {
    region: usize,
    start: u64,
    end: u64,
    weight: f64,
    /// Weight of all segments before this one.
    weight_before: f64,
    /// Length of all segments before this one, bp.
    bp_before: u64,
}

/// A cut between two intervals.
#[derive(Debug, Clone, Copy)]
struct Cut {
    region: usize,
    /// Position of the first base after the cut. If the region starts here, the cut is between two regions.
    pos: u64,
    /// Length of all regions before the cut, bp.
    bp_before: u64,
}

impl Region {
    /// Length, bp.
    pub fn len_bp(&self) -> u64 {
        self.end - self.start
    }
}

impl Interval {
    /// Returns the region that contains a position (0-based).
    pub fn find_region(&self, contig: usize, pos: u64) -> Option<&Region> {
        let after = self.regions.partition_point(|region| (region.contig, region.start) <= (contig, pos));
        self.regions[..after].last().filter(|region| region.contig == contig && pos < region.end)
    }

    /// Returns the regions with `padding_bp` bases more on both sides, within their contigs. Regions that then overlap or
    /// touch are merged.
    pub fn padded_regions(&self, padding_bp: u64, contigs: &[Contig]) -> Vec<Region> {
        let mut padded: Vec<Region> = Vec::with_capacity(self.regions.len());
        for region in &self.regions {
            let start = region.start.saturating_sub(padding_bp);
            let end = (region.end + padding_bp).min(contigs[region.contig].length);
            match padded.last_mut() {
                Some(last) if last.contig == region.contig && start <= last.end => last.end = end,
                _ => padded.push(Region { start, end, ..*region }),
            }
        }
        padded
    }

    /// Name for messages: `chr1:1-5000`, or the first and the last region.
    pub fn display_name(&self, contigs: &[Contig]) -> String {
        match &self.regions[..] {
            [] => String::new(),
            [region] => format_region(region, contigs),
            [first, .., last] => format!("{} to {}", format_region(first, contigs), format_region(last, contigs)),
        }
    }
}

/// Formats a region as samtools does: 1-based, with the last base.
pub(super) fn format_region(region: &Region, contigs: &[Contig]) -> String {
    format!("{}:{}-{}", contigs[region.contig].name, region.start + 1, region.end)
}

impl CumulativeWeight {
    /// Creates the weight from positions and the weight before them. Points that are not in order are raised to the
    /// weight of earlier ones.
    pub fn from_points(mut points: Vec<(u64, f64)>) -> CumulativeWeight {
        points.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut highest = 0.0_f64;
        for (_, before) in &mut points {
            highest = highest.max(*before);
            *before = highest;
        }
        CumulativeWeight { points }
    }

    /// Weight of a contig whose bases all weigh the same.
    pub fn of_length(length: u64) -> CumulativeWeight {
        CumulativeWeight { points: vec![(0, 0.0), (length, length as f64)] }
    }

    /// Returns the weight of all bases before `pos`.
    fn weight_before(&self, pos: u64) -> f64 {
        let after = self.points.partition_point(|(at, _)| *at <= pos);
        match (self.points[..after].last(), self.points.get(after)) {
            (Some(&(from, low)), Some(&(to, high))) => low + (high - low) * (pos - from) as f64 / (to - from) as f64,
            (Some(&(_, low)), None) => low,
            (None, Some(&(_, high))) => high,
            (None, None) => 0.0,
        }
    }

    /// Returns the sum of two weights.
    #[must_use]
    pub fn add(&self, other: &CumulativeWeight) -> CumulativeWeight {
        let positions = self.points.iter().chain(&other.points).map(|(pos, _)| *pos);
        let sum = |pos| (pos, self.weight_before(pos) + other.weight_before(pos));
        CumulativeWeight::from_points(positions.map(sum).collect())
    }

    fn total(&self) -> f64 {
        self.points.last().map_or(0.0, |(_, weight)| *weight) - self.points.first().map_or(0.0, |(_, weight)| *weight)
    }
}

/// Divides `regions` into at most `max_intervals` intervals of about equal weight, in their order. A cut is where reads are
/// few, near its wished place: between two regions, else in the part of the region with the least weight for its length.
/// Without `joins_regions` each interval has one region, and there may be more intervals.
///
/// `weights` are those of the contigs. Lengths are used instead if all regions together have no weight.
pub fn divide_regions(
    regions: &[Region],
    weights: &[CumulativeWeight],
    max_intervals: usize,
    joins_regions: bool,
) -> Vec<Interval> {
    let mut segments = segments_of_regions(regions, |region| weights.get(region.contig));
    if segments.iter().all(|segment| segment.weight <= 0.0) {
        segments = segments_of_regions(regions, |_| None);
    }
    let mut cuts = choose_cuts(&segments, max_intervals);
    if !joins_regions {
        let starts = regions.iter().enumerate().map(|(region, of)| Cut { region, pos: of.start, bp_before: 0 });
        cuts.extend(starts);
        cuts.sort_by_key(|cut| (cut.region, cut.pos));
        cuts.dedup_by_key(|cut| (cut.region, cut.pos));
    }
    cut_regions(regions, &cuts)
}

/// Returns the segments of the regions. A region without weights (`None`) is one segment that weighs its length.
fn segments_of_regions<'a>(
    regions: &[Region],
    weight_of: impl Fn(&Region) -> Option<&'a CumulativeWeight>,
) -> Vec<Segment> {
    let (mut segments, mut weight_before, mut bp_before) = (Vec::new(), 0.0, 0);
    for (index, region) in regions.iter().enumerate() {
        let weight = weight_of(region).filter(|weight| weight.total() > 0.0);
        let flat = CumulativeWeight::of_length(region.end);
        let has_weights = weight_of(region).is_some();
        let (weight, scale) = weight.map_or((&flat, if has_weights { 0.0 } else { 1.0 }), |weight| (weight, 1.0));
        let inside =
            weight.points.iter().map(|(pos, _)| *pos).filter(|pos| (region.start + 1..region.end).contains(pos));
        let mut ends: Vec<u64> = inside.chain([region.end]).collect();
        ends.dedup();
        let mut start = region.start;
        for end in ends {
            let weight = scale * (weight.weight_before(end) - weight.weight_before(start));
            segments.push(Segment { region: index, start, end, weight, weight_before, bp_before });
            weight_before += weight;
            bp_before += end - start;
            start = end;
        }
    }
    segments
}

/// Chooses the cuts between at most `max_intervals` intervals of about equal weight.
fn choose_cuts(segments: &[Segment], max_intervals: usize) -> Vec<Cut> {
    let Some(last) = segments.last() else { return Vec::new() };
    let total_weight = last.weight_before + last.weight;
    let total_bp = last.bp_before + last.end - last.start;
    let num = (max_intervals as u64).min(total_bp / MIN_INTERVAL_BP).max(1);
    let share = total_weight / num as f64;
    let mut cuts: Vec<Cut> = Vec::new();
    for n in 1..num {
        let cut = choose_cut(segments, share * n as f64, share * MAX_CUT_SHIFT);
        let before = cuts.last().map_or(0, |cut| cut.bp_before);
        if cut.bp_before >= before + MIN_INTERVAL_BP && cut.bp_before + MIN_INTERVAL_BP <= total_bp {
            cuts.push(cut);
        }
    }
    cuts
}

/// Chooses the cut whose weight before it is at most `shift` away from `wished`.
fn choose_cut(segments: &[Segment], wished: f64, shift: f64) -> Cut {
    let (low, high) = (wished - shift, wished + shift);
    let first = segments.partition_point(|segment| segment.weight_before + segment.weight < low);
    let near = segments[first..].iter().take_while(|segment| segment.weight_before <= high);
    // For each candidate: weight for each base, distance from the wished weight, cut.
    let mut best: Option<(f64, f64, Cut)> = None;
    let mut consider = |density: f64, at: f64, cut: Cut| {
        let distance = (at - wished).abs();
        if best.is_none_or(|(d, far, _)| (density, distance) < (d, far)) {
            best = Some((density, distance, cut));
        }
    };
    for (n, segment) in near.enumerate() {
        let Segment { region, start, end, weight, weight_before, bp_before } = *segment;
        let starts_region = (first + n).checked_sub(1).is_some_and(|n| segments[n].region != region);
        if starts_region && (low..=high).contains(&weight_before) {
            consider(0.0, weight_before, Cut { region, pos: start, bp_before });
        }
        if end - start < 2 {
            continue;
        }
        // The wished place if it is in the segment, else the middle of the part that is near enough.
        let (from, to) = (low.max(weight_before), high.min(weight_before + weight));
        let at = if (from..=to).contains(&wished) { wished } else { (from + to) / 2.0 };
        let share = if weight > 0.0 { (at - weight_before) / weight } else { 0.5 };
        let inside = ((end - start) as f64 * share).round() as u64;
        let inside = inside.clamp(1, end - start - 1);
        let cut = Cut { region, pos: start + inside, bp_before: bp_before + inside };
        consider(weight / (end - start) as f64, at, cut);
    }
    best.map_or_else(
        || {
            let Segment { region, start, bp_before, .. } = segments[first.min(segments.len() - 1)];
            Cut { region, pos: start, bp_before }
        },
        |(.., cut)| cut,
    )
}

/// Cuts the regions at `cuts`, which are in order.
fn cut_regions(regions: &[Region], cuts: &[Cut]) -> Vec<Interval> {
    let mut cuts = cuts.iter().peekable();
    let (mut intervals, mut open) = (Vec::new(), Vec::new());
    for (index, region) in regions.iter().enumerate() {
        let mut start = region.start;
        while let Some(cut) = cuts.next_if(|cut| cut.region == index) {
            if cut.pos > start {
                open.push(Region { start, end: cut.pos, ..*region });
                start = cut.pos;
            }
            if !open.is_empty() {
                intervals.push(Interval { regions: std::mem::take(&mut open) });
            }
        }
        open.push(Region { start, ..*region });
    }
    if !open.is_empty() {
        intervals.push(Interval { regions: open });
    }
    intervals
}
