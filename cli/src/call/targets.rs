//! Formats `targets.tsv`: the depth of each target in each sample.

use std::fmt::Write;

use genuma_reads::TUMOUR_SAMPLE;
use genuma_reads::fasta::Reference;
use genuma_somatic::sample_names::SampleNames;
use genuma_somatic::target_depth::TargetsWithDepths;

/// Formats the table of the targets: BED columns, the depth in each tumour and in the normal, and the status. `samples`
/// are the names of the samples, the normal first.
pub(crate) fn format_target_depth_table(
    finished: &TargetsWithDepths,
    genome: &Reference,
    samples: &SampleNames,
) -> String {
    let order: Vec<usize> =
        (usize::from(TUMOUR_SAMPLE)..samples.num_samples()).chain(samples.has_normal().then_some(0)).collect();
    let mut text = String::from("#chrom\tstart\tend\tname");
    for &sample in &order {
        // Writing to a string cannot fail.
        let _ = write!(text, "\tdepth_{}", samples.names()[sample]);
    }
    text.push_str("\tstatus\n");
    for (target, depth) in finished.targets.intervals.iter().zip(&finished.depths.targets) {
        let name = if target.name.is_empty() { "." } else { &target.name };
        let _ = write!(text, "{}\t{}\t{}\t{name}", genome.contigs[target.contig].name, target.start, target.end);
        for &sample in &order {
            let _ = match depth.num_markers {
                0 => write!(text, "\t."),
                _ => write!(text, "\t{:.1}", depth.depths[sample]),
            };
        }
        let status = match depth.num_markers {
            0 => "unknown",
            _ if depth.is_uncovered_in_any_sample() => "uncovered",
            _ => "covered",
        };
        let _ = writeln!(text, "\t{status}");
    }
    text
}
