//! Assembles the pairs of all tumours pooled and, in addition, the pairs of each tumour alone.
//!
//! In repeats, reads of another tumour may shift the consensus of a stack to another copy of the repeat, so that a
//! change with many pairs in one tumour has only two pairs in the pooled assembly. So the pairs of each tumour are
//! assembled, too. A contig of a single tumour is kept if it has more pairs than any pooled contig with the same novel
//! sequence.

use std::collections::HashMap;

use genuma_kmers::encode::kmers;
use genuma_reads::TUMOUR_SAMPLE;
use genuma_reads::dna::reverse_complement;

use crate::assemble::{AssembledContigs, Contig, MIN_CONTIG_PAIRS, assemble_group};
use crate::labelled_pair::LabelledPair;

/// Index of contigs by the k-mers that they contain.
struct ContigIndex<'a> {
    k: u32,
    contigs: &'a [Contig],
    by_kmer: HashMap<u64, Vec<u32>>,
}

impl<'a> ContigIndex<'a> {
    fn new(contigs: &'a [Contig], k: u32) -> ContigIndex<'a> {
        let mut by_kmer: HashMap<u64, Vec<u32>> = HashMap::new();
        for (c, contig) in (0..).zip(contigs) {
            for (_, kmer) in kmers(&contig.seq, k) {
                let candidates = by_kmer.entry(kmer.canonical()).or_default();
                if candidates.last() != Some(&c) {
                    candidates.push(c);
                }
            }
        }
        ContigIndex { k, contigs, by_kmer }
    }

    /// Whether one of the indexed contigs contains the novel sequence of `contig`, from its first to its last novel
    /// base, and has at least as many pairs. True if `contig` has no novel base.
    fn has_novel_sequence(&self, contig: &Contig) -> bool {
        let novel = |at: &usize| contig.novel[*at];
        let (Some(first), Some(last)) = ((0..contig.novel.len()).find(novel), (0..contig.novel.len()).rfind(novel))
        else {
            return true;
        };
        let stretch = &contig.seq[first..=last];
        let reversed = reverse_complement(stretch);
        let Some((_, kmer)) = kmers(stretch, self.k).next() else { return false };
        let candidates = self.by_kmer.get(&kmer.canonical()).into_iter().flatten();
        let pairs = contig.num_pairs();
        candidates.map(|&c| &self.contigs[c as usize]).any(|index| {
            let has = |part: &[u8]| index.seq.windows(part.len()).any(|window| window == part);
            index.num_pairs() >= pairs && (has(stretch) || has(&reversed))
        })
    }
}

/// Assembles a group: the pairs of all tumours pooled and, if there are several tumours, those of each tumour with at
/// least [`MIN_CONTIG_PAIRS`] pairs in the group. Keeps a contig of a single tumour if it has more pairs than the
/// pooled contigs with the same novel sequence. `branching` says for each k-mer, by k-mer rank, whether it is a
/// branching k-mer.
pub(crate) fn assemble_pooled_and_per_tumour(
    group: &[u32],
    pairs: &[LabelledPair],
    branching: &[bool],
    tumours: usize,
    k: u32,
) -> AssembledContigs {
    let mut all = assemble_group(group, pairs, branching);
    if tumours < 2 {
        return all;
    }
    let of = |tumour: u8| -> Vec<u32> {
        group.iter().copied().filter(|&pair| pairs[pair as usize].sample == tumour).collect()
    };
    let tumour_pairs: Vec<Vec<u32>> = (TUMOUR_SAMPLE..).take(tumours).map(of).collect();
    let tumour_groups = tumour_pairs
        .iter()
        .filter(|tumour_pairs| tumour_pairs.len() >= MIN_CONTIG_PAIRS && tumour_pairs.len() < group.len());
    let index = ContigIndex::new(&all.contigs, k);
    let mut better_contigs: Vec<Contig> = tumour_groups
        .flat_map(|tumour_pairs| assemble_group(tumour_pairs, pairs, branching).contigs)
        .filter(|tumour_pairs| !index.has_novel_sequence(tumour_pairs))
        .collect();
    // The order does not depend on the order of the tumours.
    better_contigs.sort_by(|a, b| b.num_pairs().cmp(&a.num_pairs()).then_with(|| a.seq.cmp(&b.seq)));
    all.contigs.append(&mut better_contigs);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::ContigRead;

    const K: u32 = 31;

    fn bases(n: usize, seed: u64) -> Vec<u8> {
        let mut x = seed;
        let mut next = || {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(x >> 62) as usize]
        };
        (0..n).map(|_| next()).collect()
    }

    /// A contig of `pairs` pairs whose bases 40 to 100 are novel.
    fn contig(seq: &[u8], pairs: u32) -> Contig {
        Contig {
            novel: (0..seq.len()).map(|at| (40..100).contains(&at)).collect(),
            quality_sums: vec![60; seq.len()],
            reads: (0..pairs).map(|pair| ContigRead { pair, mate: 0, forward: true, start: 0 }).collect(),
            outer_mates: Default::default(),
            seq: seq.to_vec(),
        }
    }

    #[test]
    fn what_all_show_as_well_or_better_is_not_shown_again() {
        let seq = bases(140, 5);
        let shows = |index: &[u8], pairs: u32, tumour_pairs: &Contig| {
            ContigIndex::new(&[contig(&bases(200, 9), 30), contig(index, pairs)], K).has_novel_sequence(tumour_pairs)
        };
        let tumour_pairs = contig(&seq, 5);
        assert!(shows(&seq, 5, &tumour_pairs) && shows(&reverse_complement(&seq), 8, &tumour_pairs));
        assert!(shows(&seq[30..110], 5, &tumour_pairs), "all that is novel");
        assert!(!shows(&seq, 4, &tumour_pairs), "by fewer pairs");
        assert!(!shows(&seq[50..], 9, &tumour_pairs), "a part of it");
        assert!(!shows(&bases(140, 6), 9, &tumour_pairs), "another sequence");
        let mut changed = seq.clone();
        changed[90] = if changed[90] == b'A' { b'C' } else { b'A' };
        assert!(!shows(&changed, 9, &tumour_pairs), "another change");
    }
}
