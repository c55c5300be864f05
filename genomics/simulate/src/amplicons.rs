//! Amplicon panels: covers the targets, or the whole genome, with amplicons that each have a fixed primer pair.

use std::fmt::Write as _;

use genuma_reads::dna;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::genome::Genome;
use crate::rng::Rng;
use crate::variant::ContigSpan;

/// Parameters of an amplicon panel. Pairs of numbers are the minimum and the maximum, both inclusive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AmpliconParams {
    /// Minimum and maximum length of an amplicon, its primers included, bp.
    pub length_bp: (usize, usize),
    /// Minimum and maximum length of a primer, bp.
    pub primer_bp: (usize, usize),
    /// Coefficient of variation of the depth between amplicons.
    pub depth_cv: f64,
}

impl Default for AmpliconParams {
    fn default() -> Self {
        AmpliconParams { length_bp: (120, 250), primer_bp: (18, 25), depth_cv: 0.4 }
    }
}

/// Number of primer pools, which are amplified separately. Neighbouring amplicons overlap, so their primers are in
/// different pools.
const NUM_POOLS: usize = 2;
/// Largest deviation of an amplicon's efficiency from the mean, in standard deviations of its logarithm.
const MAX_EFFICIENCY_SDS: f64 = 3.0;

/// An amplicon on the reference, with its primers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Amplicon {
    /// Span of the amplicon on the reference, its primers included.
    pub span: ContigSpan,
    /// Sequences of the left and the right primer, each from its 5' to its 3' end. The right one is the reverse
    /// complement of the reference.
    pub primers: [Vec<u8>; 2],
    /// Expected number of PCR products of this amplicon, relative to the mean amplicon.
    pub relative_efficiency: f64,
}

impl Amplicon {
    /// Returns the spans of the left and the right primer on the reference.
    pub(crate) fn primer_spans(&self) -> [ContigSpan; 2] {
        let [left, right] = self.primers.each_ref().map(Vec::len);
        [
            ContigSpan { end: self.span.start + left, ..self.span },
            ContigSpan { start: self.span.end - right, ..self.span },
        ]
    }

    /// Returns the positions on the contig (0-based) to which the 3' bases of the left and the right primer bind.
    pub(crate) fn primer_3prime_positions(&self) -> [usize; 2] {
        let [left, right] = self.primer_spans();
        [left.end - 1, right.start]
    }
}

/// The amplicons of a panel.
#[derive(Debug, Clone)]
pub(crate) struct AmpliconPanel {
    /// The amplicons, sorted by contig and start.
    pub amplicons: Vec<Amplicon>,
}

impl AmpliconPanel {
    /// Covers `targets`, or the whole genome, with amplicons whose inserts (the bases between the primers) adjoin. No
    /// amplicon contains an N, so that bases near N and near the ends of contigs may stay uncovered.
    ///
    /// # Errors
    /// Returns an error if no amplicon fits into the targets.
    pub(crate) fn design_amplicons(
        params: &AmpliconParams,
        genome: &Genome,
        targets: Option<&[ContigSpan]>,
        rng: &mut Rng,
    ) -> Result<AmpliconPanel> {
        let whole = |(contig, seq): (usize, &std::sync::Arc<Vec<u8>>)| ContigSpan { contig, start: 0, end: seq.len() };
        let regions =
            targets.map_or_else(|| genome.seqs.iter().enumerate().map(whole).collect(), <[ContigSpan]>::to_vec);
        let mut panel = AmpliconPanel { amplicons: vec![] };
        for region in regions {
            panel.tile_region(params, genome, region, rng);
        }
        if panel.amplicons.is_empty() {
            return Err(Error::Parameters(format!(
                "no amplicon of {} bp fits into the targets; choose other targets or a larger genome",
                params.length_bp.0
            )));
        }
        Ok(panel)
    }

    fn tile_region(&mut self, params: &AmpliconParams, genome: &Genome, region: ContigSpan, rng: &mut Rng) {
        let sd = (1.0 + params.depth_cv * params.depth_cv).ln().sqrt();
        let seq = &genome.seqs[region.contig];
        let between = |(low, high): (usize, usize), rng: &mut Rng| low + rng.draw_below(high - low + 1);
        // The insert of the last amplicon may already cover the start of the region.
        let before = self.amplicons.last().filter(|a| a.span.contig == region.contig);
        let mut covered = region.start.max(before.map_or(0, |a| a.primer_3prime_positions()[1]));
        while covered < region.end {
            let [left, right] = [0, 1].map(|_| between(params.primer_bp, rng));
            let start = covered.saturating_sub(left);
            let length = between(params.length_bp, rng).min(seq.len().saturating_sub(start));
            if length < params.length_bp.0 {
                return;
            }
            let span = ContigSpan { start, end: start + length, ..region };
            if let Some(last) = seq[span.start..span.end].iter().rposition(|&b| b == b'N') {
                covered = span.start + last + 1 + params.primer_bp.1;
                continue;
            }
            let bases = &seq[span.start..span.end];
            let primers = [bases[..left].to_vec(), dna::reverse_complement(&bases[length - right..])];
            let z = rng.draw_gaussian(0.0, 1.0).clamp(-MAX_EFFICIENCY_SDS, MAX_EFFICIENCY_SDS);
            let relative_efficiency = (sd * z - sd * sd / 2.0).exp();
            covered = span.end - right;
            self.amplicons.push(Amplicon { span, primers, relative_efficiency });
        }
    }

    /// Returns the number of reference bases that at least one amplicon covers.
    pub(crate) fn count_bases_in_amplicons(&self) -> usize {
        let (mut bases, mut last) = (0, ContigSpan { contig: usize::MAX, start: 0, end: 0 });
        for Amplicon { span, .. } in &self.amplicons {
            let from = if span.contig == last.contig { span.start.max(last.end) } else { span.start };
            bases += span.end - from;
            last = *span;
        }
        bases
    }

    /// Formats the primers as BED lines: contig, start, end, name, pool (1 or 2), strand.
    pub(crate) fn format_primers_as_bed(&self, genome: &Genome) -> String {
        let mut out = String::new();
        for (i, amplicon) in self.amplicons.iter().enumerate() {
            for (span, (side, strand)) in amplicon.primer_spans().into_iter().zip([("LEFT", '+'), ("RIGHT", '-')]) {
                let (contig, pool) = (&genome.names[span.contig], i % NUM_POOLS + 1);
                let _ =
                    writeln!(out, "{contig}\t{}\t{}\tamplicon{}_{side}\t{pool}\t{strand}", span.start, span.end, i + 1);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn genome() -> Genome {
        let mut rng = Rng::from_seed_and_labels(3, &[]);
        let mut bases: Vec<u8> = (0..10_000).map(|_| rng.draw_base(0.5)).collect();
        bases[4_000..4_100].fill(b'N');
        Genome::from_sequences(vec!["a".into(), "b".into()], vec![bases, vec![b'A'; 100]])
    }

    fn design_amplicons(targets: Option<&[ContigSpan]>) -> Result<AmpliconPanel> {
        AmpliconPanel::design_amplicons(
            &AmpliconParams::default(),
            &genome(),
            targets,
            &mut Rng::from_seed_and_labels(4, &[]),
        )
    }

    #[test]
    fn inserts_cover_the_genome_without_its_gaps() {
        let amplicons = design_amplicons(None).unwrap().amplicons;
        assert!(amplicons.iter().all(|a| (120..=250).contains(&a.span.length_bp()) && a.span.contig == 0));
        assert!(amplicons.iter().flat_map(|a| &a.primers).all(|p| (18..=25).contains(&p.len()) && !p.contains(&b'N')));
        let apart =
            amplicons.windows(2).filter(|w| w[0].primer_3prime_positions()[1] != w[1].primer_3prime_positions()[0] + 1);
        let gaps: Vec<_> = apart.map(|w| (w[0].span.end, w[1].span.start)).collect();
        assert!(matches!(gaps[..], [(3_700..=4_000, 4_100..=4_107)]), "{gaps:?}");
        assert!(amplicons[0].span.start == 0 && amplicons.last().unwrap().span.end > 9_700);
    }

    #[test]
    fn targets_are_tiled_and_primers_written() {
        let span = |start, end| ContigSpan { contig: 0, start, end };
        let targets = [span(1_000, 1_300), span(1_310, 1_320), span(2_000, 2_010)];
        let panel = design_amplicons(Some(&targets)).unwrap();
        for target in targets {
            let inside = |at| {
                panel.amplicons.iter().any(|a| {
                    let [left, right] = a.primer_3prime_positions();
                    left < at && at < right
                })
            };
            assert!((target.start..target.end).all(inside));
        }
        let bed = panel.format_primers_as_bed(&genome());
        let lines: Vec<Vec<&str>> = bed.lines().map(|line| line.split('\t').collect()).collect();
        assert_eq!(lines.len(), 2 * panel.amplicons.len());
        assert_eq!((lines[0][0], &lines[0][2..]), ("a", &["1000", "amplicon1_LEFT", "1", "+"][..]));
        assert_eq!(lines[3][3..], ["amplicon2_RIGHT", "2", "-"]);
        let covered = panel.amplicons.iter().map(|a| a.span.length_bp()).sum::<usize>();
        assert!(panel.count_bases_in_amplicons() < covered);
        assert!(design_amplicons(Some(&[ContigSpan { contig: 1, start: 0, end: 100 }])).is_err());
    }
}
