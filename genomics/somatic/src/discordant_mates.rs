//! Detects small variants whose reads come from another copy of the sequence, by the positions of the mates.
//!
//! In a family of repeats with many copies a wrong base can make the read of one copy equal to another copy with one
//! base changed, and each copy adds such reads. Their mates lie where the reads come from, not here.

use genuma_kmers::encode::kmers;
use genuma_reads::fasta::Reference;

use crate::change::{Change, change_sort_position, is_small_variant};
use crate::genotype::{Filter, GenotypingResult};
use crate::genotype_params::GENOTYPE_MODEL_PARAMS;
use crate::molecule_vote::MoleculeVote;
use crate::recruit::RecruitedPair;
use crate::unchanged_allele_ends::select_evenly_spaced;

/// Length of the k-mers by which a read is found in the sequence around a variant: short enough for reads of 36 bases
/// with an error, long enough that few of them occur there by chance.
const MATE_K: u32 = 15;
/// Minimum number of such k-mers that a read has in common with the sequence around the variant.
const MIN_SHARED_KMERS: usize = 2;
/// Maximum distance in bases of a mate from the variant; longer than nearly all fragments that are sequenced.
const MAX_MATE_DISTANCE_BP: usize = 1000;
/// Maximum number of molecules of each allele whose mates are examined; of more, evenly spaced ones are.
const MAX_EXAMINED_MOLECULES: usize = 64;

/// Numbers of molecules with one allele whose two reads are both known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct MateConcordance {
    /// Number of molecules of which both reads have the sequence around the variant.
    concordant: u32,
    /// Number of all molecules.
    all: u32,
}

impl MateConcordance {
    /// Natural log-likelihood of the counts if each molecule is concordant with this probability.
    fn log_likelihood(self, probability: f64) -> f64 {
        f64::from(self.concordant) * probability.ln() + f64::from(self.all - self.concordant) * (1.0 - probability).ln()
    }
}

/// Log-odds (natural) that the molecules with the tumour allele come from other copies of the sequence, over a mutation
/// here.
fn log_odds_of_other_copy(normal_allele: MateConcordance, tumour_allele: MateConcordance) -> f64 {
    let p = &GENOTYPE_MODEL_PARAMS;
    // docs/model/genotype.md (28)
    let here = f64::from(normal_allele.concordant + 1) / f64::from(normal_allele.all + 2);
    // Of a read beside a junction the mate may lie on either side.
    let beside_junction = tumour_allele.log_likelihood(here / 2.0) - p.near_junction_log_odds;
    tumour_allele.log_likelihood(p.copy_mate_concordance) - tumour_allele.log_likelihood(here).max(beside_junction)
}

/// The k-mers of the reference around a variant, ascending.
struct NearbyReferenceKmers(Vec<u64>);

impl NearbyReferenceKmers {
    /// The k-mers within [`MAX_MATE_DISTANCE_BP`] of 0-based position `pos` of chromosome `chrom`.
    fn around_position(genome: &Reference, (chrom, pos): (usize, usize)) -> NearbyReferenceKmers {
        let seq = &genome.contigs[chrom].seq;
        let range = pos.saturating_sub(MAX_MATE_DISTANCE_BP)..(pos + MAX_MATE_DISTANCE_BP).min(seq.len());
        let mut found: Vec<u64> = kmers(&seq[range], MATE_K).map(|(_, kmer)| kmer.canonical()).collect();
        found.sort_unstable();
        found.dedup();
        NearbyReferenceKmers(found)
    }

    /// Whether a read has enough of the k-mers.
    fn contain_read(&self, read: &[u8]) -> bool {
        let shared = kmers(read, MATE_K).filter(|(_, kmer)| self.0.binary_search(&kmer.canonical()).is_ok());
        shared.take(MIN_SHARED_KMERS).count() == MIN_SHARED_KMERS
    }

    /// Counts the molecules of which both reads have the k-mers. Pairs without two reads of sufficient length are left
    /// out.
    fn count_concordant(&self, molecules: Vec<u32>, pairs: &[RecruitedPair]) -> MateConcordance {
        let min_len = MATE_K as usize + MIN_SHARED_KMERS;
        let mut counts = MateConcordance::default();
        for pair in select_evenly_spaced(molecules, MAX_EXAMINED_MOLECULES) {
            let mates = &pairs[pair as usize].mates;
            if mates.iter().all(|mate| mate.seq.len() >= min_len) {
                counts.all += 1;
                counts.concordant += u32::from(mates.iter().all(|mate| self.contain_read(&mate.seq)));
            }
        }
        counts
    }

    /// Whether the molecules with the tumour allele come from other copies of the sequence, as their mates show. `votes`
    /// are those of all samples on a small variant.
    fn are_mates_discordant<'a>(
        &self,
        votes: impl Iterator<Item = &'a MoleculeVote> + Clone,
        pairs: &[RecruitedPair],
    ) -> bool {
        let pairs_of = |supports: fn(&MoleculeVote) -> bool| {
            votes.clone().filter(|vote| supports(vote)).map(|vote| vote.pair).collect()
        };
        let tumour_allele = self.count_concordant(pairs_of(MoleculeVote::supports_tumour_allele), pairs);
        if tumour_allele.concordant == tumour_allele.all {
            return false;
        }
        let normal_allele = self.count_concordant(pairs_of(MoleculeVote::supports_normal_allele), pairs);
        log_odds_of_other_copy(normal_allele, tumour_allele) >= GENOTYPE_MODEL_PARAMS.min_discordant_log_odds
    }
}

/// Adds the filter `discordant_mates` to the genotype of a small variant whose reads come from other copies of the
/// sequence, unless another filter than that of the quality, which may be raised later, is set. `votes` are those of all
/// samples on the change.
pub(crate) fn filter_change_with_discordant_mates<'a>(
    change: &Change,
    genotype: &mut GenotypingResult,
    votes: impl Iterator<Item = &'a MoleculeVote> + Clone,
    pairs: &[RecruitedPair],
    genome: &Reference,
) {
    let may_pass = is_small_variant(change) && genotype.filters.iter().all(|&filter| filter == Filter::LowQuality);
    let nearby = || NearbyReferenceKmers::around_position(genome, change_sort_position(change));
    if may_pass && nearby().are_mates_discordant(votes, pairs) {
        genotype.filters.insert(Filter::DiscordantMates);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::OwnedRead;

    #[test]
    fn mates_elsewhere_outweigh_a_mutation_but_not_a_junction() {
        let is_of_copy = |normal: [u32; 2], tumour: [u32; 2]| {
            let counts = |[concordant, all]: [u32; 2]| MateConcordance { concordant, all };
            log_odds_of_other_copy(counts(normal), counts(tumour)) >= GENOTYPE_MODEL_PARAMS.min_discordant_log_odds
        };
        assert!(is_of_copy([37, 37], [0, 3]) && is_of_copy([37, 37], [0, 2]) && is_of_copy([60, 64], [1, 5]));
        assert!(!is_of_copy([37, 37], [3, 3]) && !is_of_copy([37, 37], [2, 3]));
        // Half of the mates lie beyond a junction.
        for tumour in [[2, 4], [5, 10], [10, 20], [30, 60], [6, 20], [20, 60]] {
            assert!(!is_of_copy([60, 62], tumour), "{tumour:?}");
        }
        // The mates of all reads lie elsewhere, as in a library of long fragments.
        assert!(!is_of_copy([1, 40], [0, 6]) && !is_of_copy([0, 0], [0, 4]));
    }

    #[test]
    fn mates_are_found_by_sequence() {
        let mut state = 7u64;
        let mut bases = |n: usize| -> Vec<u8> {
            let base = |_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                b"ACGT"[(state >> 62) as usize]
            };
            (0..n).map(base).collect()
        };
        let [here, elsewhere] = [bases(3000), bases(3000)];
        let genome =
            Reference::from_contigs(vec![genuma_reads::fasta::Contig { name: "one".into(), seq: here.clone() }]);
        let near = NearbyReferenceKmers::around_position(&genome, (0, 1500));
        let pair = |mates: [&[u8]; 2]| RecruitedPair {
            sample: 1,
            name: Vec::new(),
            mates: mates.map(|seq| OwnedRead { seq: seq.to_vec(), qual: vec![30; seq.len()] }),
            id: 0,
            contigs: Vec::new(),
        };
        let mut wrong = here[1550..1586].to_vec();
        wrong[18] = if wrong[18] == b'A' { b'C' } else { b'A' };
        let pairs = [
            pair([&here[1490..1526], &here[1700..1736]]),
            pair([&here[1490..1526], &wrong]),
            pair([&here[1490..1526], &elsewhere[..36]]),
            pair([&here[1490..1526], &here[2700..2736]]),
            pair([&here[1490..1526], b""]),
        ];
        assert_eq!(near.count_concordant((0..5).collect(), &pairs), MateConcordance { concordant: 2, all: 4 });
        let votes = |numbers: &[u32], log_odds| -> Vec<MoleculeVote> {
            numbers.iter().map(|&pair| MoleculeVote::for_test(pair, log_odds)).collect()
        };
        let is_of_copy = |numbers: &[u32]| {
            near.are_mates_discordant([votes(&[0; 30], -9.0), votes(numbers, 9.0)].concat().iter(), &pairs)
        };
        assert!(is_of_copy(&[2, 2, 3]));
        assert!(!is_of_copy(&[0, 1, 3]) && !is_of_copy(&[4, 4, 4]));
    }
}
