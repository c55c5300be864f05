//! How many copies of the genome the tumour's cells have.

use serde::Serialize;

use crate::genome::Genome;
use crate::karyotype::Karyotype;
use crate::tumour::Tumour;

/// Copies of the genome, on average over the tumour's cells.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Content {
    /// Copies of a base of the reference in a tumour cell, on average; sequence that the reference lacks does not count.
    pub ploidy: f64,
    /// Share of what healthy cells have of both parents of which tumour cells lack one parent's.
    pub lost: f64,
    /// Share of the genome of which not all tumour cells have as many copies.
    pub subclonal: f64,
}

impl Content {
    /// Of a tumour.
    pub fn of(genome: &Genome, tumour: &Tumour) -> Content {
        let mut sum = [0.0; 4];
        let populations = || tumour.shares.iter().zip(&tumour.karyotypes).filter(|(share, _)| **share > 0.0);
        for (contig, seq) in genome.seqs.iter().enumerate() {
            // Where stretches of any population begin and end.
            let mut cuts = vec![0, seq.len()];
            for (span, _) in populations().flat_map(|(_, pair)| pair).flat_map(Karyotype::stretches) {
                if span.contig == contig {
                    cuts.extend([span.start, span.end]);
                }
            }
            cuts.sort_unstable();
            cuts.dedup();
            let copies: Vec<(f64, [Vec<usize>; 2])> = populations()
                .map(|(share, pair)| (*share, pair.each_ref().map(|k| between(k, contig, &cuts))))
                .collect();
            let both = tumour.ploidy.copies(contig) == 2;
            for (i, ends) in cuts.windows(2).enumerate() {
                let bases = (ends[1] - ends[0]) as f64;
                for (share, [a, b]) in &copies {
                    sum[0] += bases * share * (a[i] + b[i]) as f64;
                    let lost = both && (a[i] == 0) != (b[i] == 0);
                    sum[1] += bases * share * f64::from(lost);
                }
                sum[2] += bases * f64::from(both);
                let alike =
                    copies.iter().all(|(_, [a, b])| [a[i], b[i]] == [copies[0].1[0][i], copies[0].1[1][i]]);
                sum[3] += bases * f64::from(!alike);
            }
        }
        let all = genome.length().max(1) as f64;
        Content { ploidy: sum[0] / all, lost: sum[1] / sum[2].max(1.0), subclonal: sum[3] / all }
    }
}

/// Copies of a contig that a haplotype has from each cut to the next.
fn between(karyotype: &Karyotype, contig: usize, cuts: &[usize]) -> Vec<usize> {
    let mut copies = vec![0; cuts.len() - 1];
    for (span, times) in karyotype.stretches().filter(|(span, _)| span.contig == contig) {
        let [from, to] = [span.start, span.end].map(|at| cuts.partition_point(|&cut| cut < at));
        copies[from..to].iter_mut().for_each(|n| *n += times);
    }
    copies
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ploidy::Ploidy;
    use crate::variant::{Span, Structural};

    #[test]
    fn copies_and_losses_are_those_of_all_cells() {
        let genome = Genome::new(vec!["a".into(), "b".into()], vec![vec![b'A'; 60], vec![b'C'; 40]]);
        let mut tumour = Tumour::new(&genome, &[0.25], Ploidy::diploid()).unwrap();
        let of = |tumour: &Tumour| Content::of(&genome, tumour);
        assert_eq!(of(&tumour), Content { ploidy: 2.0, lost: 0.0, subclonal: 0.0 });
        // The second contig of the one haplotype is lost in all cells, and there twice on the other: lost, still two copies.
        for pair in &mut tumour.karyotypes {
            pair[0].set_copies(1, 0);
            pair[1].set_copies(1, 2);
        }
        assert_eq!(of(&tumour), Content { ploidy: 2.0, lost: 0.4, subclonal: 0.0 });
        // A quarter of the cells lacks 20 bases of the first, and has 10 others thrice.
        let spans = [(10, 30), (40, 50)].map(|(start, end)| Span { contig: 0, start, end });
        tumour.karyotypes[1][0].apply(&Structural::Deletion(spans[0])).unwrap();
        tumour.karyotypes[1][1].apply(&Structural::Amplification { span: spans[1], copies: 3 }).unwrap();
        let found = of(&tumour);
        assert!((found.ploidy - 2.0).abs() < 1e-12, "{found:?}");
        assert!((found.lost - 0.45).abs() < 1e-12 && (found.subclonal - 0.3).abs() < 1e-12, "{found:?}");
    }
}
