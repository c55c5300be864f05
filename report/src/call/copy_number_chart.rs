//! The plot of the copy-number profile: depth ratio and minor allele share along the genome.

use genuma_pair::copy_number::{CopyNumberProfile, ProfileSegment};
use genuma_somatic::call_summary::CallSummary;
use genuma_work::quantity::group_thousands;

use crate::plot::{Axis, LegendKey, PlotArea, PlotSize, html_figure};

const PROFILE_PLOT: PlotSize =
    PlotSize { width: 1000.0, height: 200.0, left: 62.0, right: 10.0, top: 10.0, bottom: 30.0 };
/// Maximum depth ratio in the plot. Points with larger ratios are drawn at the top.
const MAX_DEPTH_RATIO: f64 = 4.0;
/// Minimum number of bins of the copy-number profile for which it is plotted.
const MIN_BINS: usize = 10;
const BIN_KEY: LegendKey<'static> = LegendKey { style: "kept", name: "bins" };
const SEGMENT_KEY: LegendKey<'static> = LegendKey { style: "tumour", name: "segments" };

/// Lays out the contigs one after another on the x axis of a plot, in the order of the reference. The unit is bp.
struct GenomeAxis<'a> {
    /// Name, start on the axis and length of each contig, in bp.
    contigs: Vec<(&'a str, f64, f64)>,
    length: f64,
}

impl<'a> GenomeAxis<'a> {
    fn new(bins: &'a [ProfileSegment]) -> GenomeAxis<'a> {
        let (mut contigs, mut length) = (Vec::new(), 0.0);
        for own in bins.chunk_by(|a, b| a.contig == b.contig) {
            let bases = own.last().map_or(0.0, |bin| f64::from(bin.end));
            contigs.push((own[0].contig.as_str(), length, bases));
            length += bases;
        }
        GenomeAxis { contigs, length }
    }

    fn range(&self, segment: &ProfileSegment) -> (f64, f64) {
        let found = self.contigs.iter().find(|(name, ..)| *name == segment.contig);
        let start = found.map_or(0.0, |(_, start, _)| *start);
        (start + f64::from(segment.start), start + f64::from(segment.end))
    }

    fn bands(&self) -> Vec<(f64, f64, &str)> {
        self.contigs.iter().map(|(name, start, bases)| (*start, start + bases, *name)).collect()
    }
}

/// Plots the copy-number profile as an HTML figure. Empty if there are too few bins.
pub(super) fn copy_number_profile_figure(outcome: &CallSummary) -> String {
    let tumour = outcome.sample_summary.pair.as_ref().and_then(|pair| pair.tumour.as_ref());
    let Some(profile) = tumour.map(|tumour| &tumour.profile).filter(|profile| profile.bins.len() >= MIN_BINS) else {
        return String::new();
    };
    let genome = GenomeAxis::new(&profile.bins);
    let ratio = |segment: &ProfileSegment| segment.log2_ratio.exp2();
    let highest = profile.bins.iter().map(ratio).fold(1.9, f64::max).min(MAX_DEPTH_RATIO);
    let depth = profile_plot(
        (profile, &genome),
        Axis::with_linear_scale(highest * 1.05, "relative depth", |n| format!("{n:.1}")),
        &|segment| Some(ratio(segment)),
        (1.0, "Depth ratio of tumour to normal along the genome"),
    );
    let balance = profile_plot(
        (profile, &genome),
        Axis::with_linear_scale(0.55, "minor allele", |n| format!("{n:.1}")),
        &|segment| segment.minor_allele_share,
        (0.5, "Share of the minor allele in the tumour along the genome"),
    );
    html_figure(
        "Copy-number profile",
        "Above: depth of the tumour relative to the normal, 1 for the mean of the genome. Below: share of the tumour's reads \
         with the rarer allele, at sites where the normal is heterozygous: 0.5 if both alleles have as many copies, lower \
         where an allele was lost or gained. Pointing at a segment shows its copies, if purity and ploidy are known.",
        &[BIN_KEY, SEGMENT_KEY],
        &(depth + &balance),
    )
}

/// Plots one quantity of the bins and segments, with a dashed line at `unchanged`, its value for a genome without
/// copy-number changes.
fn profile_plot(
    (profile, genome): (&CopyNumberProfile, &GenomeAxis<'_>),
    axis: Axis<'_>,
    value: &dyn Fn(&ProfileSegment) -> Option<f64>,
    (unchanged, described): (f64, &str),
) -> String {
    let mut plot = PlotArea::empty(PROFILE_PLOT, Axis::without_ticks(genome.length, ""), axis);
    plot.add_named_x_axis_bands(&genome.bands());
    plot.add_horizontal_line(unchanged);
    let top = plot.max_y();
    let point = |bin: &ProfileSegment| {
        let (from, to) = genome.range(bin);
        value(bin).map(|value| ((from + to) / 2.0, value.min(top)))
    };
    plot.add_points(BIN_KEY, profile.bins.iter().filter_map(point));
    for segment in &profile.segments {
        if let Some(value) = value(segment) {
            plot.add_horizontal_segment(SEGMENT_KEY.style, genome.range(segment), value, &segment_title(segment));
        }
    }
    plot.into_svg(described)
}

/// Returns the tooltip of a segment: `chr1:1-2,000,000: relative depth 1.50, minor allele 0.33, copies 2 + 1`.
fn segment_title(segment: &ProfileSegment) -> String {
    let place = format!(
        "{}:{}-{}",
        segment.contig,
        group_thousands(u64::from(segment.start) + 1),
        group_thousands(u64::from(segment.end))
    );
    let minor = segment.minor_allele_share.map_or(String::new(), |share| format!(", minor allele {share:.2}"));
    let copies = segment.copies.map_or(String::new(), |[major, minor]| format!(", copies {major:.1} + {minor:.1}"));
    format!("{place}: relative depth {:.2}{minor}{copies}", segment.log2_ratio.exp2())
}
