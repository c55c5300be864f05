//! Ploidy, loss of heterozygosity and subclonal copy number of a simulated tumour.

use serde::Serialize;

use crate::genome::Genome;
use crate::karyotype::Karyotype;
use crate::tumour::Tumour;

/// Ploidy, LOH and subclonal copy number, averaged over the tumour cells.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CopyNumberSummary {
    /// Ploidy: mean number of copies of a reference base in a tumour cell. Inserted novel sequence does not count.
    pub ploidy: f64,
    /// Share of the bases with two parental copies in healthy cells at which tumour cells have lost one parental allele
    /// (LOH), averaged over the tumour cells (0 to 1).
    pub loh_fraction: f64,
    /// Share of the genome at which some tumour cells differ in the copy number of a haplotype (0 to 1).
    pub subclonal_fraction: f64,
}

impl CopyNumberSummary {
    /// Computes the summary from the karyotypes of all tumour cells.
    pub(crate) fn average_over_tumour_cells(genome: &Genome, tumour: &Tumour) -> CopyNumberSummary {
        let mut sum = [0.0; 4];
        let populations = || tumour.population_shares.iter().zip(&tumour.karyotypes).filter(|(share, _)| **share > 0.0);
        for (contig, seq) in genome.seqs.iter().enumerate() {
            // Boundaries of all karyotype segments of any population.
            let mut cuts = vec![0, seq.len()];
            for (span, _) in populations().flat_map(|(_, pair)| pair).flat_map(Karyotype::reference_spans_with_copies) {
                if span.contig == contig {
                    cuts.extend([span.start, span.end]);
                }
            }
            cuts.sort_unstable();
            cuts.dedup();
            let copies: Vec<(f64, [Vec<usize>; 2])> = populations()
                .map(|(share, pair)| (*share, pair.each_ref().map(|k| copies_between_cuts(k, contig, &cuts))))
                .collect();
            let both = tumour.ploidy.healthy_copy_number(contig) == 2;
            for (i, ends) in cuts.windows(2).enumerate() {
                let bases = (ends[1] - ends[0]) as f64;
                for (share, [a, b]) in &copies {
                    sum[0] += bases * share * (a[i] + b[i]) as f64;
                    let lost = both && (a[i] == 0) != (b[i] == 0);
                    sum[1] += bases * share * f64::from(lost);
                }
                sum[2] += bases * f64::from(both);
                let alike = copies.iter().all(|(_, [a, b])| [a[i], b[i]] == [copies[0].1[0][i], copies[0].1[1][i]]);
                sum[3] += bases * f64::from(!alike);
            }
        }
        let all = genome.length_bp().max(1) as f64;
        CopyNumberSummary {
            ploidy: sum[0] / all,
            loh_fraction: sum[1] / sum[2].max(1.0),
            subclonal_fraction: sum[3] / all,
        }
    }
}

/// Returns the copy number of one haplotype of a contig in each interval between two neighbouring positions of `cuts`.
fn copies_between_cuts(karyotype: &Karyotype, contig: usize, cuts: &[usize]) -> Vec<usize> {
    let mut copies = vec![0; cuts.len() - 1];
    for (span, times) in karyotype.reference_spans_with_copies().filter(|(span, _)| span.contig == contig) {
        let [from, to] = [span.start, span.end].map(|at| cuts.partition_point(|&cut| cut < at));
        copies[from..to].iter_mut().for_each(|n| *n += times);
    }
    copies
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::healthy_ploidy::HealthyPloidy;
    use crate::variant::{ContigSpan, StructuralVariant};

    #[test]
    fn copies_and_losses_are_those_of_all_cells() {
        let genome = Genome::from_sequences(vec!["a".into(), "b".into()], vec![vec![b'A'; 60], vec![b'C'; 40]]);
        let mut tumour = Tumour::without_variants(&genome, &[0.25], HealthyPloidy::all_diploid()).unwrap();
        let of = |tumour: &Tumour| CopyNumberSummary::average_over_tumour_cells(&genome, tumour);
        assert_eq!(of(&tumour), CopyNumberSummary { ploidy: 2.0, loh_fraction: 0.0, subclonal_fraction: 0.0 });
        // In all cells one haplotype of the second contig is lost and the other is there twice: LOH with two copies.
        for pair in &mut tumour.karyotypes {
            pair[0].set_chromosome_copies(1, 0);
            pair[1].set_chromosome_copies(1, 2);
        }
        assert_eq!(of(&tumour), CopyNumberSummary { ploidy: 2.0, loh_fraction: 0.4, subclonal_fraction: 0.0 });
        // A quarter of the cells lacks 20 bases of the first contig and has three copies of 10 others.
        let spans = [(10, 30), (40, 50)].map(|(start, end)| ContigSpan { contig: 0, start, end });
        tumour.karyotypes[1][0].apply_structural_variant(&StructuralVariant::Deletion(spans[0])).unwrap();
        tumour.karyotypes[1][1]
            .apply_structural_variant(&StructuralVariant::Amplification { span: spans[1], copies: 3 })
            .unwrap();
        let found = of(&tumour);
        assert!((found.ploidy - 2.0).abs() < 1e-12, "{found:?}");
        assert!(
            (found.loh_fraction - 0.45).abs() < 1e-12 && (found.subclonal_fraction - 0.3).abs() < 1e-12,
            "{found:?}"
        );
    }
}
