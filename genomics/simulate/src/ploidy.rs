//! How many copies of each contig a healthy cell has.

use crate::genome::Genome;

/// Which of the two haplotypes of each contig there are. Contigs beyond the last have both.
#[derive(Debug, Clone)]
pub struct Ploidy(Vec<[bool; 2]>);

/// The sex chromosomes of a man: what he has of his mother, and of his father.
const MALE: [(&str, [bool; 2]); 2] = [("chrX", [true, false]), ("chrY", [false, true])];

impl Ploidy {
    /// Two copies of everything.
    pub fn diploid() -> Self {
        Ploidy(vec![])
    }

    /// One copy of chrX and one of chrY, two of everything else.
    pub fn male(genome: &Genome) -> Self {
        let of = |name: &String| MALE.iter().find(|m| m.0 == name).map_or([true; 2], |m| m.1);
        Ploidy(genome.names.iter().map(of).collect())
    }

    /// The haplotypes of a contig that there are.
    pub fn haplotypes(&self, contig: usize) -> [bool; 2] {
        self.0.get(contig).copied().unwrap_or([true; 2])
    }

    /// Copies of a contig.
    pub fn copies(&self, contig: usize) -> usize {
        self.haplotypes(contig).into_iter().filter(|&there| there).count()
    }

    /// Bases of a cell relative to two copies of each contig.
    pub fn content(&self, genome: &Genome) -> f64 {
        let cell: usize = genome.seqs.iter().enumerate().map(|(i, seq)| self.copies(i) * seq.len()).sum();
        cell as f64 / (2 * genome.length()) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_man_has_one_x_and_one_y() {
        let names = ["chr1", "chrX", "chrY"].map(str::to_owned).to_vec();
        let genome = Genome::new(names, vec![vec![b'A'; 70], vec![b'C'; 20], vec![b'G'; 10]]);
        let male = Ploidy::male(&genome);
        assert_eq!([0, 1, 2, 3].map(|i| male.copies(i)), [2, 1, 1, 2]);
        assert_eq!((male.haplotypes(1), male.haplotypes(2)), ([true, false], [false, true]));
        assert_eq!(male.content(&genome), 0.85);
        assert_eq!(Ploidy::diploid().content(&genome), 1.0);
    }
}
