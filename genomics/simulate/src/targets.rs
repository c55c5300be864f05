//! Capture targets: intervals of the genome that are enriched before sequencing.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::genome::Genome;
use crate::occupied_regions::OccupiedRegions;
use crate::rng::Rng;
use crate::variant::{ContigSpan, GenomePosition};

/// Parameters of target capture.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaptureParams {
    /// How the target intervals are chosen.
    pub targets: TargetSource,
    /// Depth outside the targets, relative to the depth of the targets.
    pub off_target: f64,
    /// Whether the numbers of somatic variants are reduced by the same factor, so that the variants fit into the
    /// targets.
    pub fewer_variants: bool,
}

/// How the target intervals are chosen: synthetic exons, or those of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetSource {
    /// Synthetic gene panel: exons of 100–400 bp of some genes. They make up 2 % of the genome, and at least 20 kb if
    /// the genome is large enough.
    Panel,
    /// Synthetic exome: exons of 80–300 bp of many genes. They make up 2.2 % of the genome.
    Exome,
    /// The intervals of a BED file.
    File(PathBuf),
}

/// Properties of synthetic targets.
struct TargetDesign {
    /// Share of the genome that is in targets, 0 to 1.
    genome_share: f64,
    /// Minimum total length of all targets, bp; [`MAX_GENOME_SHARE`] limits it.
    min_bases: usize,
    /// Minimum and maximum length of an exon, bp.
    exon_bp: (usize, usize),
    /// Minimum and maximum number of exons of a gene.
    exons_per_gene: (usize, usize),
    /// Minimum and maximum length of an intron, bp.
    intron_bp: (usize, usize),
}

const PANEL_DESIGN: TargetDesign = TargetDesign {
    genome_share: 0.02,
    min_bases: 20_000,
    exon_bp: (100, 400),
    exons_per_gene: (4, 15),
    intron_bp: (300, 5_000),
};
const EXOME_DESIGN: TargetDesign = TargetDesign {
    genome_share: 0.022,
    min_bases: 0,
    exon_bp: (80, 300),
    exons_per_gene: (3, 12),
    intron_bp: (300, 5_000),
};
/// Largest share of a genome that is in synthetic targets, however small the genome is.
const MAX_GENOME_SHARE: f64 = 0.2;
/// Minimum distance between two synthetic targets, bp.
const MIN_TARGET_GAP_BP: usize = 50;
/// Coefficient of variation of the capture efficiency between targets (chosen).
const EFFICIENCY_CV: f64 = 0.5;
/// Largest deviation of a target's capture efficiency from the mean, in standard deviations of its logarithm.
const MAX_EFFICIENCY_SDS: f64 = 3.0;

/// Capture targets, sorted by position and without overlap, and the capture efficiency of each.
#[derive(Debug, Clone)]
pub(crate) struct CaptureTargets {
    /// Target intervals on the reference, sorted by position and without overlap.
    pub spans: Vec<ContigSpan>,
    /// Capture efficiency of each target, relative to the mean over the targets.
    pub(crate) relative_efficiency: Vec<f64>,
}

impl CaptureTargets {
    /// Designs synthetic targets or reads targets from a BED file, and draws their capture efficiencies.
    ///
    /// # Errors
    /// Returns an error if the BED file cannot be read or is malformed, if it names a contig that the genome lacks, or
    /// if there are no targets.
    pub(crate) fn design_or_read_targets(source: &TargetSource, genome: &Genome, rng: &mut Rng) -> Result<Self> {
        let spans = match source {
            TargetSource::Panel => design_targets(&PANEL_DESIGN, genome, rng),
            TargetSource::Exome => design_targets(&EXOME_DESIGN, genome, rng),
            TargetSource::File(path) => read_bed(path, genome)?,
        };
        let spans = merge_spans(spans);
        if spans.is_empty() {
            return Err(Error::Parameters(match source {
                TargetSource::File(path) => {
                    format!("{}: the BED file has no targets", path.display())
                }
                _ => "the genome is too small for synthetic targets; make it larger, or give a BED file with --targets"
                    .into(),
            }));
        }
        let sd = (1.0 + EFFICIENCY_CV * EFFICIENCY_CV).ln().sqrt();
        let mut efficiency = || {
            let z = rng.draw_gaussian(0.0, 1.0).clamp(-MAX_EFFICIENCY_SDS, MAX_EFFICIENCY_SDS);
            (sd * z - sd * sd / 2.0).exp()
        };
        let efficiency = spans.iter().map(|_| efficiency()).collect();
        Ok(CaptureTargets { spans, relative_efficiency: efficiency })
    }

    /// Returns the total length of the targets, bp.
    pub(crate) fn total_target_bp(&self) -> usize {
        self.spans.iter().map(ContigSpan::length_bp).sum()
    }

    /// Iterates over the indices of the targets that overlap `span`.
    pub(crate) fn indices_of_overlapping_targets(&self, span: ContigSpan) -> impl Iterator<Item = usize> + '_ {
        let first = self.spans.partition_point(|t| (t.contig, t.end) <= (span.contig, span.start));
        let inside = move |&i: &usize| self.spans[i].contig == span.contig && self.spans[i].start < span.end;
        (first..self.spans.len()).take_while(inside)
    }

    /// Formats the targets as BED lines.
    pub(crate) fn format_targets_as_bed(&self, genome: &Genome) -> String {
        let mut out = String::new();
        for (i, span) in self.spans.iter().enumerate() {
            let contig = &genome.names[span.contig];
            let _ = writeln!(out, "{contig}\t{}\t{}\ttarget{}", span.start, span.end, i + 1);
        }
        out
    }
}

/// Places the exons of genes at random positions until the targets are large enough or the attempts are used up.
fn design_targets(design: &TargetDesign, genome: &Genome, rng: &mut Rng) -> Vec<ContigSpan> {
    let known = genome.num_acgt_bases() as f64;
    let wanted = (known * design.genome_share).max(design.min_bases as f64).min(known * MAX_GENOME_SHARE) as usize;
    let between = |(low, high): (usize, usize), rng: &mut Rng| low + rng.draw_below(high - low + 1);
    let mut occupied = OccupiedRegions::empty(genome);
    let mut spans: Vec<ContigSpan> = vec![];
    let mut bases = 0;
    for _ in 0..20 * (1 + wanted / design.exon_bp.0) {
        let GenomePosition { contig, pos: mut at } = occupied.draw_allowed_position(rng);
        for _ in 0..between(design.exons_per_gene, rng) {
            if bases >= wanted {
                return spans;
            }
            let span = ContigSpan { contig, start: at, end: at + between(design.exon_bp, rng) };
            if occupied.can_place_at_span(span, MIN_TARGET_GAP_BP) {
                occupied.occupy_span(span);
                bases += span.length_bp();
                spans.push(span);
            }
            at = span.end + rng.draw_log_uniform(design.intron_bp.0, design.intron_bp.1);
        }
    }
    spans
}

/// Reads target intervals from a BED file: contig, start and end of each line.
fn read_bed(path: &Path, genome: &Genome) -> Result<Vec<ContigSpan>> {
    let text = std::fs::read_to_string(path).map_err(Error::add_path_to_error(path))?;
    let mut spans = vec![];
    for (i, line) in text.lines().enumerate() {
        let fail = |what: String| Error::Format { path: path.into(), line: i as u64 + 1, what };
        if line.trim().is_empty() || ["#", "track", "browser"].iter().any(|word| line.starts_with(word)) {
            continue;
        }
        let mut fields = line.split_whitespace();
        let (Some(name), Some(start), Some(end)) = (fields.next(), fields.next(), fields.next()) else {
            return Err(fail("fewer than 3 columns; BED has contig, start and end".into()));
        };
        let contig = genome
            .names
            .iter()
            .position(|n| n == name)
            .ok_or_else(|| fail(format!("the genome has no contig {name}; remove the line")))?;
        let number = |text: &str| text.parse::<usize>().map_err(|_| fail(format!("'{text}' is not a position")));
        let span = ContigSpan { contig, start: number(start)?, end: number(end)? };
        if span.start >= span.end || span.end > genome.seqs[contig].len() {
            return Err(fail(format!("{start} to {end} is not a span of {name}; BED starts are 0-based")));
        }
        spans.push(span);
    }
    Ok(spans)
}

/// Sorts spans by position, and joins those that overlap or touch.
fn merge_spans(mut spans: Vec<ContigSpan>) -> Vec<ContigSpan> {
    spans.sort_unstable_by_key(|s| (s.contig, s.start));
    let mut merged: Vec<ContigSpan> = vec![];
    for span in spans {
        match merged.last_mut() {
            Some(last) if last.contig == span.contig && span.start <= last.end => last.end = last.end.max(span.end),
            _ => merged.push(span),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic_genome;

    #[test]
    fn made_targets_are_exons_in_clusters() {
        let genome =
            synthetic_genome::generate_synthetic_genome(2_000_000, 3, None, &mut Rng::from_seed_and_labels(1, &[]));
        for (source, share, exon) in [(TargetSource::Panel, 0.02, 100..=400), (TargetSource::Exome, 0.022, 80..=300)] {
            let targets =
                CaptureTargets::design_or_read_targets(&source, &genome, &mut Rng::from_seed_and_labels(2, &[]))
                    .unwrap();
            let found = targets.total_target_bp() as f64 / 2e6;
            assert!((found / share - 1.0).abs() < 0.02, "{found}");
            assert!(targets.spans.iter().all(|s| exon.contains(&s.length_bp())));
            assert!(targets.spans.is_sorted_by_key(|s| (s.contig, s.start)));
            let near = targets.spans.windows(2).filter(|p| p[1].start.abs_diff(p[0].end) < 5000).count();
            assert!(near > targets.spans.len() / 2, "{near} of {}", targets.spans.len());
            let mean = targets.relative_efficiency.iter().sum::<f64>() / targets.relative_efficiency.len() as f64;
            assert!((0.85..1.15).contains(&mean), "{mean}");
        }
        let small =
            synthetic_genome::generate_synthetic_genome(150_000, 1, None, &mut Rng::from_seed_and_labels(1, &[]));
        let targets = CaptureTargets::design_or_read_targets(
            &TargetSource::Panel,
            &small,
            &mut Rng::from_seed_and_labels(2, &[]),
        )
        .unwrap();
        assert!((20_000..20_500).contains(&targets.total_target_bp()), "{}", targets.total_target_bp());
    }

    #[test]
    fn bed_files_are_read_and_faults_named() {
        let genome = Genome::from_sequences(vec!["a".into(), "b".into()], vec![vec![b'A'; 900], vec![b'C'; 80]]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.bed");
        let targets = |text: &str| {
            std::fs::write(&path, text).unwrap();
            CaptureTargets::design_or_read_targets(
                &TargetSource::File(path.clone()),
                &genome,
                &mut Rng::from_seed_and_labels(1, &[]),
            )
        };
        let read = targets("track x\nb 10 20 x\na\t500\t600\na 590 610\n\n").unwrap();
        let span = |contig, start, end| ContigSpan { contig, start, end };
        assert_eq!(read.spans, [span(0, 500, 610), span(1, 10, 20)]);
        assert_eq!(read.format_targets_as_bed(&genome), "a\t500\t610\ttarget1\nb\t10\t20\ttarget2\n");
        let within = |s| read.indices_of_overlapping_targets(s).collect::<Vec<_>>();
        assert_eq!(
            (within(span(0, 0, 500)), within(span(0, 609, 700)), within(span(1, 0, 80))),
            (vec![], vec![0], vec![1])
        );
        let refused = |text: &str| targets(text).unwrap_err().to_string();
        assert!(refused("a 1 2\nc 1 2").contains("line 2: the genome has no contig c"));
        assert!(refused("a 5 1000").contains("line 1: 5 to 1000 is not a span"));
        assert!(refused("a x 5").contains("'x' is not a position"));
        assert!(refused("a 5").contains("fewer than 3 columns"));
        assert!(refused("# nothing").contains("has no targets"));
    }
}
