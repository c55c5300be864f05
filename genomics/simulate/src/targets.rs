//! The parts of the genome that a capture kit is made for.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::genome::Genome;
use crate::ground::Ground;
use crate::rng::Rng;
use crate::variant::{Cut, Span};

/// What is sequenced instead of the whole genome.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaptureParams {
    /// The targets.
    pub targets: TargetSource,
    /// Coverage of the rest of the genome relative to that of the targets.
    pub off_target: f64,
    /// Whether fewer somatic variants are placed, in the same proportions, when the targets have no room for all.
    pub fewer_variants: bool,
}

/// Where targets come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetSource {
    /// Made: exons of 100–400 bp of some genes, 2% of the genome, and 20 kb at least if the genome is large enough.
    Panel,
    /// Made: exons of 80–300 bp of many genes, 2.2% of the genome.
    Exome,
    /// A BED file.
    File(PathBuf),
}

/// What made targets are like.
struct Design {
    /// Part of the genome.
    share: f64,
    /// Fewest bases of all targets, bp.
    least: usize,
    /// Lengths of an exon, bp.
    exon: (usize, usize),
    /// Exons of a gene.
    exons: (usize, usize),
    /// Lengths of an intron, bp.
    intron: (usize, usize),
}

const PANEL: Design =
    Design { share: 0.02, least: 20_000, exon: (100, 400), exons: (4, 15), intron: (300, 5_000) };
const EXOME: Design =
    Design { share: 0.022, least: 0, exon: (80, 300), exons: (3, 12), intron: (300, 5_000) };
/// Largest part of a genome that targets are made of, however small it is.
const MOST: f64 = 0.2;
/// Bases between two made targets, at least.
const APART: usize = 50;
/// Coefficient of variation of how well targets are captured.
const EFFICIENCY_CV: f64 = 0.5;
/// Farthest from the mean that an efficiency lies, standard deviations of its logarithm.
const FARTHEST: f64 = 3.0;

/// Targets, sorted and apart, and how well each is captured.
#[derive(Debug, Clone)]
pub(crate) struct Targets {
    /// Where they lie.
    pub spans: Vec<Span>,
    /// Relative to the average.
    pub(crate) efficiency: Vec<f64>,
}

impl Targets {
    /// Makes or reads targets of `genome`.
    pub fn new(source: &TargetSource, genome: &Genome, rng: &mut Rng) -> Result<Self> {
        let spans = match source {
            TargetSource::Panel => design(&PANEL, genome, rng),
            TargetSource::Exome => design(&EXOME, genome, rng),
            TargetSource::File(path) => read(path, genome)?,
        };
        let spans = merged(spans);
        if spans.is_empty() {
            return Err(Error::Parameters(match source {
                TargetSource::File(path) => {
                    format!("{}: no targets; give a BED file with some", path.display())
                }
                _ => "the genome is too small for targets; make it larger, or give your own with --targets"
                    .into(),
            }));
        }
        let sd = (1.0 + EFFICIENCY_CV * EFFICIENCY_CV).ln().sqrt();
        let mut efficiency = || {
            let z = rng.normal(0.0, 1.0).clamp(-FARTHEST, FARTHEST);
            (sd * z - sd * sd / 2.0).exp()
        };
        let efficiency = spans.iter().map(|_| efficiency()).collect();
        Ok(Targets { spans, efficiency })
    }

    /// Bases of all targets.
    pub fn bases(&self) -> usize {
        self.spans.iter().map(Span::length).sum()
    }

    /// The targets that overlap a span, by number.
    pub fn within(&self, span: Span) -> impl Iterator<Item = usize> + '_ {
        let first = self.spans.partition_point(|t| (t.contig, t.end) <= (span.contig, span.start));
        let inside = move |&i: &usize| self.spans[i].contig == span.contig && self.spans[i].start < span.end;
        (first..self.spans.len()).take_while(inside)
    }

    /// As BED.
    pub fn bed(&self, genome: &Genome) -> String {
        let mut out = String::new();
        for (i, span) in self.spans.iter().enumerate() {
            let contig = &genome.names[span.contig];
            let _ = writeln!(out, "{contig}\t{}\t{}\ttarget{}", span.start, span.end, i + 1);
        }
        out
    }
}

/// Exons of genes at random places, until there are enough of them or no room for more.
fn design(design: &Design, genome: &Genome, rng: &mut Rng) -> Vec<Span> {
    let known = genome.known_bases() as f64;
    let wanted = (known * design.share).max(design.least as f64).min(known * MOST) as usize;
    let between = |(low, high): (usize, usize), rng: &mut Rng| low + rng.below(high - low + 1);
    let mut ground = Ground::new(genome);
    let mut spans: Vec<Span> = vec![];
    let mut bases = 0;
    for _ in 0..20 * (1 + wanted / design.exon.0) {
        let Cut { contig, pos: mut at } = ground.random(rng);
        for _ in 0..between(design.exons, rng) {
            if bases >= wanted {
                return spans;
            }
            let span = Span { contig, start: at, end: at + between(design.exon, rng) };
            if ground.is_free(span, APART) {
                ground.take(span);
                bases += span.length();
                spans.push(span);
            }
            at = span.end + rng.log_uniform(design.intron.0, design.intron.1);
        }
    }
    spans
}

/// Reads a BED file: contig, start and end of each line.
fn read(path: &Path, genome: &Genome) -> Result<Vec<Span>> {
    let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
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
            .ok_or_else(|| fail(format!("the genome has no contig {name}; leave such lines out")))?;
        let number =
            |text: &str| text.parse::<usize>().map_err(|_| fail(format!("'{text}' is not a position")));
        let span = Span { contig, start: number(start)?, end: number(end)? };
        if span.start >= span.end || span.end > genome.seqs[contig].len() {
            return Err(fail(format!("{start} to {end} is no span of {name}; starts count from 0")));
        }
        spans.push(span);
    }
    Ok(spans)
}

/// Sorted, those that touch joined.
fn merged(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable_by_key(|s| (s.contig, s.start));
    let mut merged: Vec<Span> = vec![];
    for span in spans {
        match merged.last_mut() {
            Some(last) if last.contig == span.contig && span.start <= last.end => {
                last.end = last.end.max(span.end)
            }
            _ => merged.push(span),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;

    #[test]
    fn made_targets_are_exons_in_clusters() {
        let genome = made::make(2_000_000, 3, None, &mut Rng::stream(1, &[]));
        for (source, share, exon) in
            [(TargetSource::Panel, 0.02, 100..=400), (TargetSource::Exome, 0.022, 80..=300)]
        {
            let targets = Targets::new(&source, &genome, &mut Rng::stream(2, &[])).unwrap();
            let found = targets.bases() as f64 / 2e6;
            assert!((found / share - 1.0).abs() < 0.02, "{found}");
            assert!(targets.spans.iter().all(|s| exon.contains(&s.length())));
            assert!(targets.spans.is_sorted_by_key(|s| (s.contig, s.start)));
            let near = targets.spans.windows(2).filter(|p| p[1].start.abs_diff(p[0].end) < 5000).count();
            assert!(near > targets.spans.len() / 2, "{near} of {}", targets.spans.len());
            let mean = targets.efficiency.iter().sum::<f64>() / targets.efficiency.len() as f64;
            assert!((0.85..1.15).contains(&mean), "{mean}");
        }
        let small = made::make(150_000, 1, None, &mut Rng::stream(1, &[]));
        let targets = Targets::new(&TargetSource::Panel, &small, &mut Rng::stream(2, &[])).unwrap();
        assert!((20_000..20_500).contains(&targets.bases()), "{}", targets.bases());
    }

    #[test]
    fn bed_files_are_read_and_faults_named() {
        let genome = Genome::new(vec!["a".into(), "b".into()], vec![vec![b'A'; 900], vec![b'C'; 80]]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.bed");
        let targets = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Targets::new(&TargetSource::File(path.clone()), &genome, &mut Rng::stream(1, &[]))
        };
        let read = targets("track x\nb 10 20 x\na\t500\t600\na 590 610\n\n").unwrap();
        let span = |contig, start, end| Span { contig, start, end };
        assert_eq!(read.spans, [span(0, 500, 610), span(1, 10, 20)]);
        assert_eq!(read.bed(&genome), "a\t500\t610\ttarget1\nb\t10\t20\ttarget2\n");
        let within = |s| read.within(s).collect::<Vec<_>>();
        assert_eq!(
            (within(span(0, 0, 500)), within(span(0, 609, 700)), within(span(1, 0, 80))),
            (vec![], vec![0], vec![1])
        );
        let refused = |text: &str| targets(text).unwrap_err().to_string();
        assert!(refused("a 1 2\nc 1 2").contains("line 2: the genome has no contig c"));
        assert!(refused("a 5 1000").contains("line 1: 5 to 1000 is no span"));
        assert!(refused("a x 5").contains("'x' is not a position"));
        assert!(refused("a 5").contains("fewer than 3 columns"));
        assert!(refused("# nothing").contains("no targets"));
    }
}
