//! Which haplotypes of each contig a healthy cell has: two of autosomes, one of chrX and chrY in a male.

use crate::genome::Genome;

/// For each contig: which of the two haplotypes (maternal, paternal) a healthy cell has. Contigs beyond the end of the
/// list have both.
#[derive(Debug, Clone)]
pub(crate) struct HealthyPloidy(Vec<[bool; 2]>);

/// Sex chromosomes of a male, and whether a cell has the maternal and the paternal haplotype of each.
const MALE_SEX_CHROMOSOMES: [(&str, [bool; 2]); 2] = [("chrX", [true, false]), ("chrY", [false, true])];

impl HealthyPloidy {
    /// Creates a ploidy with two haplotypes of all contigs.
    pub(crate) fn all_diploid() -> Self {
        HealthyPloidy(vec![])
    }

    /// Creates the ploidy of a male: one haplotype of the contigs named chrX and chrY, two of all other contigs.
    pub(crate) fn for_male(genome: &Genome) -> Self {
        let of = |name: &String| MALE_SEX_CHROMOSOMES.iter().find(|m| m.0 == name).map_or([true; 2], |m| m.1);
        HealthyPloidy(genome.names.iter().map(of).collect())
    }

    /// Returns whether a healthy cell has the first and the second haplotype of a contig.
    pub(crate) fn has_each_haplotype(&self, contig: usize) -> [bool; 2] {
        self.0.get(contig).copied().unwrap_or([true; 2])
    }

    /// Returns the number of copies of a contig in a healthy cell (0 to 2).
    pub fn healthy_copy_number(&self, contig: usize) -> usize {
        self.has_each_haplotype(contig).into_iter().filter(|&there| there).count()
    }

    /// Returns the number of bases in a healthy cell, relative to two copies of all contigs.
    pub(crate) fn dna_content_relative_to_diploid(&self, genome: &Genome) -> f64 {
        let cell: usize = genome.seqs.iter().enumerate().map(|(i, seq)| self.healthy_copy_number(i) * seq.len()).sum();
        cell as f64 / (2 * genome.length_bp()) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_man_has_one_x_and_one_y() {
        let names = ["chr1", "chrX", "chrY"].map(str::to_owned).to_vec();
        let genome = Genome::from_sequences(names, vec![vec![b'A'; 70], vec![b'C'; 20], vec![b'G'; 10]]);
        let male = HealthyPloidy::for_male(&genome);
        assert_eq!([0, 1, 2, 3].map(|i| male.healthy_copy_number(i)), [2, 1, 1, 2]);
        assert_eq!((male.has_each_haplotype(1), male.has_each_haplotype(2)), ([true, false], [false, true]));
        assert_eq!(male.dna_content_relative_to_diploid(&genome), 0.85);
        assert_eq!(HealthyPloidy::all_diploid().dna_content_relative_to_diploid(&genome), 1.0);
    }
}
