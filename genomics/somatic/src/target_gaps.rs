//! Targets that nearly no reads cover, for the report.

use genuma_reads::fasta::Reference;

use crate::target_depth::TargetsWithDepths;

/// A target with nearly no coverage in at least one sample.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetGap {
    /// Index of the contig in the reference.
    pub contig: usize,
    /// Name of the contig.
    pub chrom: String,
    /// Position of the first base (1-based).
    pub start: u64,
    /// Position of the last base (1-based).
    pub end: u64,
    /// Name of the target in its file; empty if it has none.
    pub name: String,
    /// Names of the genes that the target overlaps; empty without genes.
    pub genes: Vec<String>,
    /// Base depth in each sample, the normal first.
    pub depths: Vec<f64>,
}

/// Lists the targets with nearly no coverage in at least one sample, sorted by position, without their genes.
pub fn list_target_gaps(finished: &TargetsWithDepths, genome: &Reference) -> Vec<TargetGap> {
    let targets = finished.targets.intervals.iter().zip(&finished.depths.targets);
    let gaps = targets.filter(|(_, depth)| depth.is_uncovered_in_any_sample());
    gaps.map(|(target, depth)| TargetGap {
        contig: target.contig,
        chrom: genome.contigs[target.contig].name.clone(),
        start: target.start as u64 + 1,
        end: target.end as u64,
        name: target.name.clone(),
        genes: Vec::new(),
        depths: depth.depths.clone(),
    })
    .collect()
}
