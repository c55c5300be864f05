//! Contigs of several tumours' pairs, and what one of them shows better by its pairs alone.
//!
//! In repeats reads of another tumour lead stacks elsewhere: a change that is clear in one tumour has two pairs where all are laid together. So
//! each tumour's pairs of a group are assembled too, and contigs of theirs stay that have more pairs than any of all together with the same
//! sequence.

use std::collections::HashMap;

use genuma_kmers::encode::kmers;
use genuma_reads::TUMOUR;
use genuma_reads::dna::revcomp;

use crate::assemble::{Assembled, Contig, FEWEST, assemble};
use crate::label::Labelled;

/// Contigs by their k-mers.
struct Known<'a> {
    k: u32,
    contigs: &'a [Contig],
    by_kmer: HashMap<u64, Vec<u32>>,
}

impl<'a> Known<'a> {
    fn of(contigs: &'a [Contig], k: u32) -> Known<'a> {
        let mut by_kmer: HashMap<u64, Vec<u32>> = HashMap::new();
        for (c, contig) in (0..).zip(contigs) {
            for (_, kmer) in kmers(&contig.seq, k) {
                let there = by_kmer.entry(kmer.canonical()).or_default();
                if there.last() != Some(&c) {
                    there.push(c);
                }
            }
        }
        Known { k, contigs, by_kmer }
    }

    /// Whether one of them has all that is novel in a contig, by as many pairs or more.
    fn shows(&self, contig: &Contig) -> bool {
        let novel = |at: &usize| contig.novel[*at];
        let (Some(first), Some(last)) =
            ((0..contig.novel.len()).find(novel), (0..contig.novel.len()).rfind(novel))
        else {
            return true;
        };
        let stretch = &contig.seq[first..=last];
        let turned = revcomp(stretch);
        let Some((_, kmer)) = kmers(stretch, self.k).next() else { return false };
        let there = self.by_kmer.get(&kmer.canonical()).into_iter().flatten();
        let pairs = contig.pairs();
        there.map(|&c| &self.contigs[c as usize]).any(|known| {
            let has = |part: &[u8]| known.seq.windows(part.len()).any(|window| window == part);
            known.pairs() >= pairs && (has(stretch) || has(&turned))
        })
    }
}

/// Assembles a group of pairs of so many tumours, all together and where there are several each as well.
pub(crate) fn assemble_apart(
    group: &[u32],
    pairs: &[Labelled],
    parting: &[bool],
    tumours: usize,
    k: u32,
) -> Assembled {
    let mut all = assemble(group, pairs, parting);
    if tumours < 2 {
        return all;
    }
    let of = |tumour: u8| -> Vec<u32> {
        group.iter().copied().filter(|&pair| pairs[pair as usize].sample == tumour).collect()
    };
    let own: Vec<Vec<u32>> = (TUMOUR..).take(tumours).map(of).collect();
    let some = own.iter().filter(|own| own.len() >= FEWEST && own.len() < group.len());
    let known = Known::of(&all.contigs, k);
    let mut better: Vec<Contig> =
        some.flat_map(|own| assemble(own, pairs, parting).contigs).filter(|own| !known.shows(own)).collect();
    // Whichever tumour comes first.
    better.sort_by(|a, b| b.pairs().cmp(&a.pairs()).then_with(|| a.seq.cmp(&b.seq)));
    all.contigs.append(&mut better);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::Placed;

    const K: u32 = 31;

    fn bases(n: usize, seed: u64) -> Vec<u8> {
        let mut x = seed;
        let mut next = || {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(x >> 62) as usize]
        };
        (0..n).map(|_| next()).collect()
    }

    /// A contig of so many pairs, of which bases 40 to 100 are novel.
    fn contig(seq: &[u8], pairs: u32) -> Contig {
        Contig {
            novel: (0..seq.len()).map(|at| (40..100).contains(&at)).collect(),
            weight: vec![60; seq.len()],
            reads: (0..pairs).map(|pair| Placed { pair, mate: 0, forward: true, at: 0 }).collect(),
            beyond: Default::default(),
            seq: seq.to_vec(),
        }
    }

    #[test]
    fn what_all_show_as_well_or_better_is_not_shown_again() {
        let seq = bases(140, 5);
        let shows = |known: &[u8], pairs: u32, own: &Contig| {
            Known::of(&[contig(&bases(200, 9), 30), contig(known, pairs)], K).shows(own)
        };
        let own = contig(&seq, 5);
        assert!(shows(&seq, 5, &own) && shows(&revcomp(&seq), 8, &own));
        assert!(shows(&seq[30..110], 5, &own), "all that is novel");
        assert!(!shows(&seq, 4, &own), "by fewer pairs");
        assert!(!shows(&seq[50..], 9, &own), "a part of it");
        assert!(!shows(&bases(140, 6), 9, &own), "another sequence");
        let mut changed = seq.clone();
        changed[90] = if changed[90] == b'A' { b'C' } else { b'A' };
        assert!(!shows(&changed, 9, &own), "another change");
    }
}
